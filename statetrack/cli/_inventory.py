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

from statetrack.automata import KINDS, arguments_of
from statetrack.errors import StatetrackError
from statetrack.models import MODELS
from statetrack.models._base import SequenceModel
from statetrack.models._sizes import num_parameters, state_size
from statetrack.protocols import PROTOCOLS
from statetrack.spec import list_tasks, load_task

Row = dict[str, Any]

SIZED_FOR = "modular-addition"
"""The task for whose symbols and labels the sizes of models are given."""


@dataclass(frozen=True)
class Listing:
    """One list: what it is of, its columns, and how its rows are found.

    `wide` are the columns in a wide terminal, `right` those that hold numbers.
    """

    about: str
    rows: Callable[[Path], Iterator[Row]]
    columns: tuple[str, ...]
    wide: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    empty: str = "none yet"


def _models(_: Path) -> Iterator[Row]:
    for name in MODELS:
        try:
            model = MODELS[name]
        except (ImportError, StatetrackError) as error:
            yield {"name": name, "error": str(error)}
            continue
        summary = (inspect.getdoc(model) or "").partition("\n")[0]
        built = build_at_defaults(name)
        yield {
            "name": name,
            "family": model.family,
            "state": state_size(built),
            "parameters": num_parameters(built),
            "summary": summary,
            "source": model.source,
        }


def build_at_defaults(name: str) -> SequenceModel:
    """A model with its default settings, for the symbols and labels of the default task."""
    automaton = load_task(SIZED_FOR).automaton
    model = MODELS[name]
    return model(
        model.settings_class(),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    )


def _tasks(_: Path) -> Iterator[Row]:
    for name, task in list_tasks():
        if isinstance(task, StatetrackError):
            yield {"name": name, "error": str(task)}
            continue
        automaton = task.automaton
        yield {
            "name": name,
            "states": automaton.num_states,
            "symbols": automaton.num_symbols,
            "labels": automaton.num_labels,
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
    from statetrack.sweep import SUITES  # brings torch in, which lists of files do not need

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
    from statetrack.runs import find_runs  # brings torch in, as above

    for run in find_runs(folder):
        try:
            config = run.config()
            finished = run.finished
            outcome = run.read_json("summary.json") if finished else None
            records = [] if finished else run.rows("metrics.jsonl")
        except StatetrackError as error:
            yield {"name": run.path.as_posix(), "error": str(error)}
            continue
        if outcome is not None:
            selected = next(r for r in outcome["replicas"] if r["replica"] == outcome["selected"])
            step, best = outcome["steps"], selected["validation_accuracy"]
        else:
            step = max((record["step"] for record in records), default=0)
            seen = [r["validation_accuracy"] for r in records if "validation_accuracy" in r]
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
        "Architectures that `--model` takes, with the numbers that each remembers of a word and "
        "its weights at default settings.",
        _models,
        ("name", "family", "state", "parameters", "summary"),
        wide=("name", "family", "state", "parameters", "summary", "source"),
        right=("state", "parameters"),
    ),
    "tasks": Listing(
        "Tasks that `--task` takes; a .yaml file of your own works too.",
        _tasks,
        ("name", "states", "symbols", "title"),
        wide=("name", "states", "symbols", "labels", "title", "reference"),
        right=("states", "symbols", "labels"),
    ),
    "kinds": Listing(
        "Kinds of automata that a task file can name.", _kinds, ("name", "arguments", "summary")
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
