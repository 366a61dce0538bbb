"""Surveys of machines: each in a process of its own, within limits, and kept in a file.

A file that takes too long, needs too much memory or ends its process spoils one row, which keeps
what was known by then, and no other. torch is not imported here.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import statetrack
from statetrack.algebra import Algebra, Prediction, analyse, merging_of
from statetrack.errors import RunError, StatetrackError
from statetrack.models import MODEL_FACTS
from statetrack.plugins import loaded_plugins
from statetrack.predicting import predict
from statetrack.runs import append_to_file, load_given, locking, read_lines, read_row
from statetrack.settings import build
from statetrack.sources import Automaton, machine_in
from statetrack.spec import Task, load_task
from statetrack.sweep.forking import forked_after
from statetrack.sweep.machines import (
    AnswerRow,
    GroupRow,
    MachineFile,
    MachineRow,
    MergingRow,
    WitnessRow,
)

KEPT = "rows.jsonl"
"""The file of an atlas's folder that keeps its rows."""

LONGEST_ROW = 1 << 22
"""An upper bound of the bytes in a line of that file: witness words can be long."""

POLL = 0.2
"""Seconds between two questions whether to stop."""

_SIGNALS_OF_TIME = [
    getattr(signal, name) for name in ("SIGXCPU", "SIGKILL") if hasattr(signal, name)
]

SLACK = 20.0
"""How many times the limit of processor time a process may last before it is ended."""


Models = Mapping[str, Mapping[str, Any]]
"""The settings of models that differ from their defaults, by texts that begin with their names.

They are plain values, which can be sent to another process.
"""


@dataclass(frozen=True)
class Limits:
    """What the survey of one machine may take: seconds of a processor, and gigabytes."""

    seconds: int = 60
    gigabytes: float = 4.0


def survey_all(
    files: Sequence[MachineFile],
    models: Models,
    folder: Path,
    limits: Limits,
    jobs: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[MachineRow]:
    """The row of every file, in the order in which they end; those that are kept come first.

    A row is kept in `folder`, by the file's content, the version of the program and the settings
    of the models, and is not worked out again; but one that was stopped is, where the limits are
    larger now. Once `stop` returns True, no further file begins, and the iterator ends.

    Raises `RunError` where the folder cannot be written or read, or another process uses it.
    """
    file = folder / KEPT
    with locking.output_folder(folder, ".atlas.lock", "makes an atlas"):
        kept = _read_kept(file)
        waiting = []
        for machine in files:
            key = _key(machine, models)
            there = kept.get(key)
            if there is not None and (not there[0].stopped or there[1] == limits):
                yield replace(there[0], name=machine.name, family=machine.family)
            else:
                waiting.append((machine, key))
        keys = {machine.name: key for machine, key in waiting}
        for row in _in_processes([machine for machine, _ in waiting], models, limits, jobs, stop):
            if not (row.error and row.stopped):  # a mistake of the program, which may be corrected
                _keep(file, keys[row.name], row, limits)
            yield row


def _key(machine: MachineFile, models: Models) -> str:
    try:
        digest = machine.digest
    except StatetrackError:
        digest = ""  # its row says why it cannot be read
    return json.dumps([digest, statetrack.__version__, models], sort_keys=True)


def _read_kept(file: Path) -> dict[str, tuple[MachineRow, Limits]]:
    """The rows of a file, and the limits of their surveys, by their keys."""
    kept = {}
    for number, line in enumerate(read_lines(file, LONGEST_ROW), start=1):
        where = f"{file}: line {number}"
        try:
            content = json.loads(line)
            key, row = str(content["key"]), content["row"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise RunError(f"{where}: is damaged: delete the file, and all is done again") from None
        kept[key] = (
            read_row(MachineRow, row, where),
            read_row(Limits, content.get("limits"), where),
        )
    return kept


def _keep(file: Path, key: str, row: MachineRow, limits: Limits) -> None:
    content = {"key": key, "limits": vars(limits), "row": row.to_json()}
    append_to_file(file, json.dumps(content).encode() + b"\n", LONGEST_ROW)


@dataclass
class _Running:
    """A process at work, and the fullest row that it sent."""

    machine: MachineFile
    process: BaseProcess
    row: MachineRow
    deadline: float


def _in_processes(
    machines: Sequence[MachineFile],
    models: Models,
    limits: Limits,
    jobs: int,
    stop: Callable[[], bool],
) -> Iterator[MachineRow]:
    context = forked_after(__name__)
    waiting = list(reversed(machines))
    running: dict[Connection, _Running] = {}
    try:
        while (waiting or running) and not stop():
            while waiting and len(running) < jobs:
                machine = waiting.pop()
                receiver, sender = context.Pipe(duplex=False)
                process = context.Process(
                    target=_work,
                    args=(sender, machine, models, limits, loaded_plugins()),
                    daemon=True,
                )
                process.start()
                sender.close()
                row = MachineRow(name=machine.name, family=machine.family, stopped="nothing yet")
                lasts = limits.seconds * (SLACK if _has_limits() else 1.0)
                running[receiver] = _Running(machine, process, row, time.monotonic() + lasts)
            for receiver in [each for each in wait(list(running), POLL) if each in running]:
                assert isinstance(receiver, Connection)
                one = running[receiver]
                try:
                    one.row = receiver.recv()
                except EOFError:  # it has ended, whether by itself or not
                    yield _ended(running.pop(receiver), limits)
            for one in list(running.values()):
                if time.monotonic() > one.deadline:
                    one.process.kill()
    finally:
        for receiver, one in running.items():
            one.process.kill()
            one.process.join()
            receiver.close()


def _ended(one: _Running, limits: Limits) -> MachineRow:
    """The last row of a process that has ended; one that it did not complete says why."""
    one.process.join()
    code = one.process.exitcode
    if not one.row.stopped or one.row.error:
        return one.row
    late = code is not None and code in {-number for number in _SIGNALS_OF_TIME}
    why = f"{limits.seconds} s were not enough" if late else f"its process ended with {code}"
    return replace(one.row, stopped=f"{one.row.stopped}: {why}")


def _has_limits() -> bool:
    """Whether the system limits the time and memory of a process."""
    try:
        import resource  # noqa: F401
    except ImportError:  # Windows
        return False
    return True


# --- in a process of its own ---

LONG = 1000
"""The length of the words whose merging is looked at."""


def survey(file: MachineFile, models: Models) -> Iterator[MachineRow]:
    """The row of a machine file, again and again with more in it; the last one is complete.

    All but the last say in `stopped` what is worked out next, which may take long. A file that
    cannot be read is a row with its error.
    """
    started = time.process_time()
    row = MachineRow(name=file.name, family=file.family)

    def timed(row: MachineRow, doing: str) -> MachineRow:
        return replace(row, seconds=round(time.process_time() - started, 2), stopped=doing)

    yield timed(row, "reading the file")
    try:
        given = machine_in(file.path)
        task = load_task(str(file.path))
    except StatetrackError as wrong:
        said = str(wrong).removeprefix(f"{file.path}: ").removeprefix(f"{file.path}, ")
        yield timed(replace(row, error=" ".join(said.split())), "")
        return
    automaton = task.automaton
    row = replace(
        row,
        given_states=len({state for edge in given.edges for state in (edge.source, edge.target)}),
        states=automaton.num_states,
        inputs=automaton.num_symbols,
        outputs=automaton.num_labels,
    )
    yield timed(row, "its algebra")
    algebra = analyse(automaton)
    row = _with_algebra(row, algebra)
    yield timed(row, "its predictions")
    found = {
        text: predict(algebra, build(MODEL_FACTS[text.split()[0]].settings_class, dict(own), text))
        for text, own in models.items()
    }
    row = replace(
        row,
        answers={name: _answer(each) for name, each in found.items()},
        witness=_witness(automaton, found),
    )
    yield timed(row, "its merging horizon")
    yield timed(replace(row, merging=_merging(task)), "")


def _with_algebra(row: MachineRow, algebra: Algebra) -> MachineRow:
    """The row with what the algebra says."""
    row = replace(row, states=algebra.num_states, complexity=algebra.complexity.name)
    facts = algebra.monoid
    if facts is None:
        return row
    counted = Counter(
        (group.name, group.order, group.solvable) for group in facts.subgroups if group.order > 1
    )
    largest = sorted(counted, key=lambda group: (-group[1], group[0]))
    return replace(
        row,
        aperiodic=facts.aperiodic,
        solvable=facts.solvable,
        groups=tuple(GroupRow(*group, counted[group]) for group in largest),
    )


def _answer(found: Prediction) -> AnswerRow:
    size_of = found.size_of if found.can == "yes" else None
    return AnswerRow(found.can, found.answer, size_of, found.size if size_of else None)


def _merging(task: Task) -> MergingRow | None:
    """After how many symbols uniform words merge all states, of words of `LONG` symbols."""
    found = merging_of(task.with_words("uniform").automaton, LONG)
    if found is None:
        return None
    half, most = found.symbols_for(0.5), found.symbols_for(0.9)
    return MergingRow(half, most, found.horizon, found.words is None, bool(found.never))


def _witness(automaton: Automaton, found: Mapping[str, Prediction]) -> WitnessRow | None:
    """The witness of the largest group that a prediction names; else of the longest period.

    Of several, that of the fewest symbols.
    """
    named = [each.witness for each in found.values() if each.witness is not None]
    shown = [each for each in named if each.kind in ("group", "powers")]
    if not shown:
        return None
    best = max(shown, key=lambda one: (one.kind == "group", one.order, -sum(map(len, one.words))))
    return WitnessRow(
        tuple(tuple(automaton.symbols[symbol] for symbol in word) for word in best.words),
        tuple(automaton.states[state] for state in best.states),
        tuple(automaton.symbols[symbol] for symbol in best.access),
    )


def _work(
    sender: Connection,
    machine: MachineFile,
    models: Models,
    limits: Limits,
    plugins: tuple[Path, ...],
) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    for plugin in plugins:
        load_given(plugin)
    _limit(limits)
    row = MachineRow(name=machine.name, family=machine.family)
    try:
        for row in survey(machine, models):
            sender.send(row)
    except MemoryError:
        why = f"{limits.gigabytes:g} GB of memory were not enough"
        sender.send(replace(row, stopped=f"{row.stopped}: {why}"))
    except Exception as mistake:
        told = " ".join(f"{type(mistake).__name__}: {mistake}".split())
        sender.send(replace(row, error=told))


def _limit(limits: Limits) -> None:
    if not _has_limits():
        return
    import resource

    most = int(limits.gigabytes * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.seconds, limits.seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
