"""Completion of a command line by a shell: commands, options, and the names that values are.

A shell asks by environment variables (`_STATETRACK_COMPLETE`), in the protocol of Typer. Names are
found by the files that have them, so that neither torch nor NumPy is imported; of names with
commas between, the last is completed. Where nothing is found, shells offer files.
"""

from __future__ import annotations

import copy
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from typer.models import ArgumentInfo, OptionInfo

from statetrack.cli._help import info_of
from statetrack.registry import tasks_folder

ASKS = "_STATETRACK_COMPLETE"
"""The variable by which a shell asks; Typer makes its name from that of the program."""

MOST = 500
"""The most run folders that are offered."""

Names = Callable[[str], Iterable[str]]
"""What gives the names that may stand for what is typed so far."""


def asked_words() -> list[str] | None:
    """The words before the one that is completed; None where no shell asks."""
    if ASKS not in os.environ:
        return None
    if "COMP_WORDS" in os.environ:  # bash; other shells give the text up to the cursor
        words = os.environ["COMP_WORDS"].split("\n")
        return words[1 : int(os.environ.get("COMP_CWORD") or 1)]
    text = os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = text.split()
    return words[1:] if text.endswith(" ") else words[1:-1]


def with_completion(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters of a command, of which those that take names complete them."""
    return [_completed(each) for each in parameters]


def _completed(parameter: inspect.Parameter) -> inspect.Parameter:
    info = info_of(parameter)
    if not isinstance(info, OptionInfo | ArgumentInfo):
        return parameter
    metavar = info.metavar or ""
    names = NAMES.get((parameter.name, metavar)) or NAMES.get((parameter.name, ""))
    words = metavar.split("|") if "|" in metavar and metavar.islower() else None
    if names is None and words is None:
        return parameter

    def offer(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        found = names(last) if words is None and names is not None else words or ()
        return [f"{before}{comma}{each}" for each in dict.fromkeys(found) if each.startswith(last)]

    known = copy.copy(info)
    known.autocompletion = offer
    kind = typing.get_args(parameter.annotation)[0]
    return parameter.replace(annotation=Annotated[kind, known])


def _stems(folder: Path, ending: str) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"[a-z]*{ending}"))


def _shipped(folder: str, typed: str = "") -> list[str]:
    """The names that shipped files of a folder give."""
    return _stems(tasks_folder() / folder, ".yaml")


tasks, protocols = partial(_shipped, ""), partial(_shipped, "protocols")
suites, roundings = partial(_shipped, "suites"), partial(_shipped, "rounding")


def models(typed: str = "") -> list[str]:
    """The models of statetrack and of installed packages."""
    from statetrack.models import MODELS

    return list(MODELS)


def kinds(typed: str = "") -> list[str]:
    """The kinds of automata and other sources; reading their registry would import NumPy."""
    folder = Path(__file__).parents[1] / "sources" / "kinds"
    return [stem.replace("_", "-") for stem in _stems(folder, ".py")]


def lists(typed: str = "") -> list[str]:
    """What `list` lists."""
    from statetrack.catalogue import LISTINGS

    return list(LISTINGS)


def runs(typed: str = "") -> list[str]:
    """Run folders: those in `runs`, in the folder that is typed, and folders on the way there."""
    from statetrack.runs import find_runs

    inside = Path(typed.rpartition("/")[0] or ("/" if typed.startswith("/") else "."))
    found = [run.path for run in find_runs(inside)]
    if "/" not in typed:
        found = [run.path for run in find_runs(Path("runs"))] + found
    try:
        folders = [path for path in sorted(inside.iterdir()) if path.is_dir()]
    except OSError:
        folders = []
    on_the_way = [f"{path}/" for path in folders if path not in found and path.name[0] != "."]
    return [*map(str, found[-MOST:]), *on_the_way]


def _any_name(typed: str) -> list[str]:
    """The names of everything that `show` shows."""
    everything = (tasks, models, suites, protocols, roundings, kinds, runs)
    return [name for names in everything for name in names(typed)]


def _runs_and_suites(typed: str) -> list[str]:
    return [*runs(typed), *suites(typed)]


NAMES: Mapping[tuple[str, str], Names] = {
    ("model", ""): models,
    ("models", ""): models,
    ("task", ""): tasks,
    ("tasks", ""): tasks,
    ("protocol", ""): protocols,
    ("rounding", "NAME|FILE"): roundings,
    ("suite", ""): suites,
    ("what", "WHAT"): lists,
    ("what", ""): tasks,
    ("name", ""): _any_name,
    ("names", "[NAME ...]"): _any_name,
    ("run", ""): runs,
    ("resume", ""): runs,
    ("runs", "[RUNS ... | SUITE]"): _runs_and_suites,
    ("runs", "RUN ... | SUITE"): _runs_and_suites,
    ("runs", ""): runs,
    ("file", "[FILE]"): suites,
    ("device", ""): lambda typed: ["auto", "cpu", "cuda"],
}
"""What completes a parameter, by its name and by what its help shows for its value, or by the
name alone."""
