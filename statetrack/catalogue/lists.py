"""The lists that `statetrack list` prints and the docs show.

A component that cannot be loaded is a row with its `error`, and is not left out. The imports of a
list are made when its rows are needed: only some lists need torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack.errors import StatetrackError

if TYPE_CHECKING:
    from statetrack.runs.folder import RunFolder

Row = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """One list: its description, how its rows are found, and the text for an empty list.

    `rows` takes the folder that holds runs; `note` gives a line about all of the rows.
    """

    about: str
    rows: Callable[[Path], Iterator[Row]]
    empty: str = "none yet"
    note: Callable[[], str] | None = None


def _models(_: Path) -> Iterator[Row]:
    from statetrack.catalogue.models import list_models

    yield from list_models()


def _about_models() -> str:
    from statetrack.catalogue.models import about_kernels

    return (
        f"{about_kernels()} hf:TYPE is any causal language model of transformers, by the type of "
        "its configuration: hf:gpt2, hf:mamba2."
    )


def _tasks(_: Path) -> Iterator[Row]:
    from statetrack.catalogue.tasks import rows_of_tasks

    yield from rows_of_tasks()


def _kinds(_: Path) -> Iterator[Row]:
    from statetrack.sources import KINDS, arguments_of

    for name in KINDS:
        yield {
            "name": name,
            "arguments": [argument.name for argument in arguments_of(name)],
            "summary": (inspect.getdoc(KINDS[name]) or "").partition("\n")[0],
        }


def _protocols(_: Path) -> Iterator[Row]:
    from statetrack.protocols import PROTOCOLS

    for name in PROTOCOLS:
        try:
            protocol = PROTOCOLS[name]
        except StatetrackError as error:
            yield {"name": name, "error": str(error)}
            continue
        yield {"name": name, "title": protocol.title, "reference": protocol.reference}


def _suites(_: Path) -> Iterator[Row]:
    from statetrack.sweep.suite import SUITES

    for name in SUITES:
        try:
            suite = SUITES[name]
        except StatetrackError as error:
            yield {"name": name, "error": str(error)}
            continue
        yield {
            "name": name,
            "models": len(suite.models),
            "tasks": len(suite.tasks),
            "title": suite.title,
            "reference": suite.reference,
        }


def _runs(folder: Path) -> Iterator[Row]:
    from statetrack.runs.folder import find_runs

    for run in find_runs(folder):
        try:
            config = run.config()
            finished = run.finished
            summary = run.summary() if finished else None
            records = [] if finished else run.records()
            needs = _needs_plugin(run)
        except (StatetrackError, OSError) as error:
            yield {"name": run.path.as_posix(), "error": str(error)}
            continue
        if summary is not None:
            step, chosen = summary.steps, summary.chosen
            best = None if chosen is None else chosen.validation_accuracy
            state = "diverged" if chosen is None else "finished"
        else:
            state = "unfinished"
            step = max((record.step for record in records), default=0)
            seen = [r.validation_accuracy for r in records if r.validation_accuracy is not None]
            best = max(seen, default=None)
        yield {
            "run": run.path.as_posix(),
            "model": config.get("model"),
            "task": config.get("task"),
            "state": state,
            "needs_plugin": needs,
            "step": step,
            "steps": config.get("steps"),
            "validation": best,
        }


def _needs_plugin(run: RunFolder) -> bool:
    """Whether the run can be opened only with its plugin; most runs have none."""
    if not run.plugins:
        return False
    from statetrack.runs.plugins import needs_plugin  # numpy, which a list does without

    return needs_plugin(run)


LISTINGS: Mapping[str, Listing] = {
    "models": Listing(
        "Architectures that `--model` takes: whether the recurrence is linear, what multiplies its "
        "state (with the eigenvalues), what computes it, and how large state and weights are at "
        "default settings.",
        _models,
        note=_about_models,
    ),
    "tasks": Listing(
        "Tasks that `--task` takes; a file of your own works too, and a machine in DOT. Without a "
        "number of states the words come from a sampler.",
        _tasks,
    ),
    "kinds": Listing("Kinds of automata and samplers that a task file can name.", _kinds),
    "protocols": Listing(
        "Published training protocols that `--protocol` takes.",
        _protocols,
        empty="There are no protocols yet.",
    ),
    "suites": Listing(
        "Tables of models x tasks that `statetrack reproduce` makes.",
        _suites,
        empty="There are no suites yet.",
    ),
    "runs": Listing(
        "Runs in a folder (`--runs`), oldest first.",
        _runs,
        empty="There is no run in {folder}/ yet: `statetrack train` makes one.",
    ),
}
"""The lists, in the order in which `statetrack list` explains them."""
