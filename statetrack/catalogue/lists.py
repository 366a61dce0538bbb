"""The lists that `statetrack list` prints and the docs show.

A component that cannot be loaded is a row with its `error`, and is not left out. The imports of a
list are made when its rows are needed: only some lists need torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from statetrack.errors import StatetrackError
from statetrack.scoring import plain

if TYPE_CHECKING:
    from statetrack.runs import EvaluationRow, RunFolder

Row = dict[str, Any]


@dataclass(frozen=True)
class Listing:
    """One list: its description, how its rows are found, and the text for an empty list.

    `rows` takes the folders that hold runs; `note` gives a line about all of the rows. `keys` are
    those of its rows. `more` gives properties of a row, of which `more_keys` are the names, that
    take longer to find: they are there for who asks for them.
    """

    about: str
    rows: Callable[[Sequence[Path]], Iterator[Row]]
    keys: tuple[str, ...]
    empty: str = "none yet"
    note: Callable[[], str] | None = None
    more: Callable[[Row], Row] | None = None
    more_keys: tuple[str, ...] = ()

    def filtered(self, folders: Sequence[Path], written: Sequence[str]) -> list[Row]:
        """The rows that fulfil every condition, with the further properties that these ask for.

        Raises `SettingsError` for a condition that no row of this list can have.
        """
        from statetrack.catalogue.filtering import conditions_of

        conditions = conditions_of(written, (*self.keys, *self.more_keys))
        first = [each for each in conditions if each.asked not in self.more_keys]
        asked = [each.asked for each in conditions if each.asked in self.more_keys]
        found = [row for row in self.rows(folders) if all(each.holds(row) for each in first)]
        if asked and self.more is not None:
            names = dict.fromkeys(asked)
            found = [row | _only(self.more(row), names) for row in found]
        return [row for row in found if all(each.holds(row) for each in conditions)]


def _only(row: Row, names: Iterable[str]) -> Row:
    return {name: row.get(name) for name in names}


def _models(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.catalogue.models import list_models

    yield from list_models()


def _about_models() -> str:
    from statetrack.catalogue.models import about_kernels

    return (
        f"{about_kernels()} hf:TYPE is any causal language model of transformers, by the type of "
        "its configuration: hf:gpt2, hf:mamba2."
    )


def _tasks(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.catalogue.tasks import rows_of_tasks

    yield from rows_of_tasks()


ALGEBRA = ("group", "monoid", "aperiodic", "commutative", "solvable", "complexity")
"""What `list tasks` can be asked about the algebra of a task, which takes longer to find."""


def _algebra(row: Row) -> Row:
    """The names of the groups in a task's monoid, its size, and what holds of it."""
    from statetrack.algebra import analyse
    from statetrack.spec import load_task

    if "error" in row or row["states"] is None:
        return {}
    found = analyse(load_task(row["name"]).automaton)
    facts = found.monoid
    known: Row = {"complexity": found.complexity.name}
    if facts is None:
        return known
    return known | {
        "group": list(dict.fromkeys(each.name for each in facts.subgroups if each.order > 1)),
        "monoid": facts.size,
        "aperiodic": facts.aperiodic,
        "commutative": facts.commutative,
        "solvable": facts.solvable,
    }


def _kinds(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.sources import KINDS, arguments_of

    for name in KINDS:
        yield {
            "name": name,
            "arguments": [argument.name for argument in arguments_of(name)],
            "summary": (inspect.getdoc(KINDS[name]) or "").partition("\n")[0],
        }


def _protocols(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.protocols import PROTOCOLS

    for name in PROTOCOLS:
        try:
            protocol = PROTOCOLS[name]
        except StatetrackError as error:
            yield {"name": name, "error": str(error)}
            continue
        yield {"name": name, "title": protocol.title, "reference": protocol.reference}


def _suites(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.sweep import SUITES

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


RUN_FOLDERS = (Path("runs"), Path("sweeps"), Path("suites"))
"""Where runs are looked for: what `train`, `sweep` and `reproduce` make."""


def _runs(folders: Sequence[Path]) -> Iterator[Row]:
    from statetrack.runs import find_runs_below

    for run in find_runs_below(folders):
        try:
            yield _run(run)
        except (StatetrackError, OSError) as error:
            yield {"name": run.path.as_posix(), "error": str(error)}


def _run(run: RunFolder) -> Row:
    config = run.config()
    finished = run.finished
    summary = run.summary() if finished else None
    records = [] if finished else run.records()
    if summary is not None:
        step, chosen = summary.steps, summary.chosen
        best = None if chosen is None else chosen.validation_accuracy
        state = "diverged" if chosen is None else "finished"
    else:
        state = "unfinished"
        step = max((record.step for record in records), default=0)
        seen = [r.validation_accuracy for r in records if r.validation_accuracy is not None]
        best = max(seen, default=None)
    measured = _measured(run) if finished else None
    return {
        "run": run.path.as_posix(),
        "model": config.get("model"),
        "task": config.get("task"),
        "accuracy": None if measured is None else plain(measured.accuracy),
        "length": None if measured is None else measured.length,
        "state": state,
        "needs_plugin": _needs_plugin(run),
        "step": step,
        "steps": config.get("steps"),
        "validation": best,
        "started": started_of(run),
    }


def _measured(run: RunFolder) -> EvaluationRow | None:
    """The last score of the selected replica at the longest length, on words as it trained on."""
    config = run.config()
    words = ("task", config.get("words", "task"))
    rows = [row for row in run.evaluations() if row.selected and row.words in words]
    own = {None, config.get("task")}
    if not own.issuperset(row.task for row in rows):  # rows have the task's one way of writing
        own.add(run.task_name())
    rows = [row for row in rows if row.task in own]
    longest = max((row.length for row in rows), default=0)
    return next((row for row in reversed(rows) if row.length == longest), None)


def started_of(run: RunFolder) -> str | None:
    """When training began, UTC, ISO 8601, where the run says so."""
    try:
        started = run.environment().get("started")
    except StatetrackError:
        return None
    return started if isinstance(started, str) else None


def _needs_plugin(run: RunFolder) -> bool:
    """Whether the run can be opened only with its plugin; most runs have none."""
    if not run.plugins:
        return False
    from statetrack.runs import needs_plugin  # numpy, which a list does without

    return needs_plugin(run)


LISTINGS: Mapping[str, Listing] = {
    "models": Listing(
        "Architectures that `--model` takes: whether the recurrence is linear, what multiplies its "
        "state (with the eigenvalues), what computes it, and how large state and weights are at "
        "default settings.",
        _models,
        keys=(
            *("name", "family", "linear", "transition", "kernels", "state", "parameters"),
            *("summary", "source"),
        ),
        note=_about_models,
    ),
    "tasks": Listing(
        "Tasks that `--task` takes; a file of your own works too, and a machine in DOT. Without a "
        "number of states the words come from a sampler.",
        _tasks,
        keys=("name", "states", "symbols", "labels", "title", "kind", "version", "reference"),
        more=_algebra,
        more_keys=ALGEBRA,
    ),
    "kinds": Listing(
        "Kinds of automata and samplers that a task file can name.",
        _kinds,
        keys=("name", "arguments", "summary"),
    ),
    "protocols": Listing(
        "Published training protocols that `--protocol` takes.",
        _protocols,
        keys=("name", "title", "reference"),
        empty="There are no protocols yet.",
    ),
    "suites": Listing(
        "Tables of models x tasks that `statetrack reproduce` makes.",
        _suites,
        keys=("name", "models", "tasks", "title", "reference"),
        empty="There are no suites yet.",
    ),
    "runs": Listing(
        "Runs, also those inside sweeps and suites, oldest first: the accuracy of the selected "
        "replica at the longest length that was evaluated.",
        _runs,
        keys=(
            *("run", "model", "task", "accuracy", "length", "state", "needs_plugin", "step"),
            *("steps", "validation", "started"),
        ),
        empty="There is no run in {folder} yet: `statetrack train` makes one.",
    ),
}
"""The lists, in the order in which `statetrack list` explains them."""
