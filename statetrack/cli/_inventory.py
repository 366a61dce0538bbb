"""Everything there is, as plain rows: models, tasks, kinds, protocols, suites and runs.

The names in the rows are what `statetrack list --json` prints. A thing that cannot be loaded
is a row with its `error`, never left out.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from statetrack.errors import StatetrackError
from statetrack.protocols import PROTOCOLS
from statetrack.sources import KINDS, arguments_of
from statetrack.spec import list_tasks

Row = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """One list: what it is of, its columns, and how its rows are found.

    `wide` and `widest` are the columns in wider terminals, `right` those that hold numbers.
    """

    about: str
    rows: Callable[[Path], Iterator[Row]]
    columns: tuple[str, ...]
    wide: tuple[str, ...] = ()
    widest: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    empty: str = "none yet"
    note: Callable[[], str] | None = None


def _models(_: Path) -> Iterator[Row]:
    from statetrack.cli._models import list_models  # brings torch in, which other lists do not need

    yield from list_models()


def _about_kernels() -> str:
    from statetrack.cli._models import about_kernels  # brings torch in, as above

    return about_kernels()


def _tasks(_: Path) -> Iterator[Row]:
    for name, task in list_tasks():
        if isinstance(task, StatetrackError):
            yield {"name": name, "error": str(task)}
            continue
        yield {
            "name": name,
            "states": task.automaton.num_states if task.has_automaton else None,
            "symbols": task.source.num_symbols,
            "labels": task.source.num_labels,
            "title": task.spec.title,
            "kind": task.spec.automaton["kind"],
            "version": task.spec.version,
            "reference": task.spec.reference,
        }


def _kinds(_: Path) -> Iterator[Row]:
    for name in KINDS:
        yield {
            "name": name,
            "arguments": [argument.name for argument in arguments_of(name)],
            "summary": (inspect.getdoc(KINDS[name]) or "").partition("\n")[0],
        }


def _protocols(_: Path) -> Iterator[Row]:
    for name in PROTOCOLS:
        try:
            protocol = PROTOCOLS[name]
        except StatetrackError as error:
            yield {"name": name, "error": str(error)}
            continue
        yield {"name": name, "title": protocol.title, "reference": protocol.reference}


def _suites(_: Path) -> Iterator[Row]:
    from statetrack.sweep.suite import SUITES  # brings torch in, as above

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
    from statetrack.runs.folder import find_runs  # brings torch in, as above

    for run in find_runs(folder):
        try:
            config = run.config()
            finished = run.finished
            summary = run.summary() if finished else None
            records = [] if finished else run.records()
        except StatetrackError as error:
            yield {"name": run.path.as_posix(), "error": str(error)}
            continue
        if summary is not None:
            step, best = summary.steps, summary.chosen.validation_accuracy
        else:
            step = max((record.step for record in records), default=0)
            seen = [r.validation_accuracy for r in records if r.validation_accuracy is not None]
            best = max(seen, default=None)
        yield {
            "run": run.path.as_posix(),
            "model": config.get("model"),
            "task": config.get("task"),
            "state": "finished" if finished else "unfinished",
            "step": step,
            "steps": config.get("steps"),
            "validation": best,
        }


LISTINGS: Mapping[str, Listing] = {
    "models": Listing(
        "Architectures that `--model` takes: whether the recurrence is linear, what multiplies its "
        "state (with the eigenvalues), what computes it, and how large state and weights are at "
        "default settings.",
        _models,
        ("name", "linear", "transition", "kernels", "state", "parameters"),
        wide=("name", "linear", "transition", "kernels", "state", "parameters", "summary"),
        widest=(
            "name",
            "family",
            "linear",
            "transition",
            "kernels",
            "state",
            "parameters",
            "summary",
            "source",
        ),
        right=("state", "parameters"),
        note=_about_kernels,
    ),
    "tasks": Listing(
        "Tasks that `--task` takes; a .yaml file of your own works too. Without a number of states "
        "the words come from a sampler.",
        _tasks,
        ("name", "states", "symbols", "title"),
        wide=("name", "states", "symbols", "labels", "title", "reference"),
        right=("states", "symbols", "labels"),
    ),
    "kinds": Listing(
        "Kinds of automata and samplers that a task file can name.",
        _kinds,
        ("name", "arguments", "summary"),
    ),
    "protocols": Listing(
        "Published training protocols that `--protocol` takes.",
        _protocols,
        ("name", "title", "reference"),
        empty="There are no protocols yet.",
    ),
    "suites": Listing(
        "Tables of models x tasks that `statetrack reproduce` makes.",
        _suites,
        ("name", "models", "tasks", "title"),
        wide=("name", "models", "tasks", "title", "reference"),
        right=("models", "tasks"),
        empty="There are no suites yet.",
    ),
    "runs": Listing(
        "Runs in a folder (`--runs`), oldest first.",
        _runs,
        ("run", "state", "validation"),
        wide=("run", "model", "task", "state", "step", "steps", "validation"),
        right=("step", "steps", "validation"),
        empty="There is no run in {folder}/ yet: `statetrack train` makes one.",
    ),
}
"""The lists, in the order in which `statetrack list` explains them."""
