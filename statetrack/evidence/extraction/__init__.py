"""The machine that a network computes, learned from its answers by L* or KV.

What is learned is a Moore machine: the label of the network after every word of one symbol or more.
Before the first symbol a network has no answer, so that the start is told apart from every other
state while learning, and is left out of the result where another state continues alike. Where
there is a task, labels are read where it asks for one, and words with a symbol that it never draws
lead to a sink: the result says what the network does on the words of the task. It is as
small as possible (`needed_machine`), and its number of states can be compared with that which the
task needs.

*A machine that was extracted is a hypothesis.* It agrees with the network on every word that was
read, and nothing is proven of other words, but for this: if the network is some machine with at
most `extra_states` states more, then it is this one (`WMethodOracle`). Where machine and task
differ, the shortest word on which they do is read by the network: if the network does not side
with the machine, learning goes on. So a difference that is reported is a word that the network
really answers wrongly.

A network that is right for n symbols only may be a machine with n times as many states as the task,
which L* and KV go on learning: hence the caps on states, words and time. Where a cap ends learning,
the machine is the last hypothesis, which need not agree with the network.

*The algorithms* are those of AALpy. Angluin's L* (1987, Information and Computation 75(2)) with
counterexamples processed as by Rivest and Schapire (1993, Information and Computation 103(2)) keeps
a table of access words and endings, all entries of which are asked for at once; Kearns and
Vazirani's algorithm (1994, MIT Press) keeps a tree, and asks for far fewer words, though few at a
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from aalpy import run_KV
from aalpy.learning_algs.deterministic.CounterExampleProcessing import (
    counterexample_successfully_processed,
    rs_cex_processing,
)
from aalpy.learning_algs.deterministic.ObservationTable import ObservationTable
from torch import nn

from statetrack.errors import SettingsError, nearest
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.extraction.machine import (
    Hypothesis,
    Word,
    machine_of,
    num_needed,
    smallest,
)
from statetrack.evidence.extraction.oracles import (
    Chain,
    KnownWordsOracle,
    RandomWordsOracle,
    ShortWordsOracle,
    Stop,
    TaskOracle,
    Teacher,
    WMethodOracle,
)
from statetrack.evidence.kinds.extraction import Extraction
from statetrack.evidence.records import Failure
from statetrack.evidence.subject import Reader, Subject
from statetrack.sources import Automaton, Source, shortest_difference
from statetrack.spec import Task

Algorithm = Literal["lstar", "kv"]

MOST_STATES, MOST_WORDS, RANDOM_WORDS, LONGEST = 200, 1_000_000, 1000, 200
"""The caps by default: on states, on words that are read, on random words and on their length."""


SPARE_STATES = 2
"""States of a hypothesis that are no states of the result: that before the first symbol, and sink.
"""


@dataclass(frozen=True)
class Extracted:
    """The machine that a network computes, None where none was extracted, and what is known of it.

    `machine` has the names of the task's symbols and labels; `Task.from_automaton` makes a task of
    it.
    """

    found: Extraction
    machine: Automaton | None


def extract(
    model: nn.Module,
    task: Task | str | Path | Source | None = None,
    *,
    num_symbols: int | None = None,
    num_labels: int | None = None,
    seconds: float = 40.0,
    report: Callable[[str], None] | None = None,
    seed: int = 0,
    algorithm: Algorithm = "lstar",
    max_states: int = MOST_STATES,
    max_words: int = MOST_WORDS,
    random_words: int = RANDOM_WORDS,
    max_length: int = LONGEST,
    known: Sequence[Failure] = (),
) -> Extracted:
    """Learn the machine that a module computes, and compare it with a task's, if one is given.

    The module maps symbols [B, T] to logits [B, T, C]; where it has `initial_state` and `step` or
    `scan`, long words are read in constant memory. Without a task, `num_symbols` and `num_labels`
    say how many there are. Learning ends after `seconds`; `report` is told what it is doing. The
    others are those of `find_extraction`. Raises `SettingsError` where neither a task nor both
    numbers are given, where the task has no automaton, and for what is no time or no seed.
    """
    budget = SearchBudget.asked("extract", seconds, seed, report)
    if task is not None:
        reader: Reader = Subject(model, task)
    elif num_symbols is None or num_labels is None:
        raise SettingsError("extract: give a task, or else num_symbols and num_labels")
    else:
        reader = Reader(model, num_symbols=num_symbols, num_labels=num_labels)
        reader.look_at_model()
    found = find_extraction(
        reader,
        budget=budget,
        seed=seed,
        algorithm=algorithm,
        max_states=max_states,
        max_words=max_words,
        random_words=random_words,
        max_length=max_length,
        known=known,
    )
    automaton = reader.automaton if isinstance(reader, Subject) else None
    return Extracted(found, machine_of(found, automaton) if found.states else None)


def find_extraction(
    reader: Reader,
    *,
    budget: SearchBudget,
    seed: int = 0,
    algorithm: Algorithm = "lstar",
    max_states: int = MOST_STATES,
    max_words: int = MOST_WORDS,
    random_words: int = RANDOM_WORDS,
    max_length: int = LONGEST,
    known: Sequence[Failure] = (),
) -> Extraction:
    """Learn the machine that a network computes; of a `Subject`, compare it with the task's.

    `random_words` of up to `max_length` symbols are tried on every hypothesis that agrees on all
    others, and before them the `known` words, which are known to be answered wrongly. Those of them
    that are longer than `max_length` are read once, and not learned from. `max_words` caps all
    words that are read, of whatever length. Raises `SettingsError` for an algorithm that is not
    known.
    """
    if algorithm not in LEARNERS:
        raise SettingsError(
            f"algorithm '{algorithm}': there are {' and '.join(LEARNERS)}."
            f"{nearest(algorithm, LEARNERS)}"
        )
    started = time.monotonic()
    task = reader.automaton if isinstance(reader, Subject) else None
    teacher = Teacher(reader, task, budget, max_words)
    drawing = task or Automaton(np.zeros((1, reader.num_symbols), np.int64))
    short = ShortWordsOracle(teacher, drawing)
    numbers = np.random.default_rng(seed)
    drawn = RandomWordsOracle(teacher, drawing, numbers, random_words, max_length)
    suites = WMethodOracle(teacher)
    room = max_states + SPARE_STATES
    failing = KnownWordsOracle(teacher, [each.word for each in known], max_length)
    oracle = Chain(teacher, [TaskOracle(teacher), short, failing, drawn, suites], budget, room)
    reason = "tested"
    try:
        LEARNERS[algorithm](teacher, oracle, room)
    except Stop as stop:
        reason = stop.args[0]
    if oracle.last is not None and failing.long_words_differ(oracle.last) and reason == "tested":
        reason = "length"
    found = None if oracle.last is None else smallest(oracle.last, teacher.num_labels)
    if reason != "tested" and found is not None and teacher.needed is not None:
        word = shortest_difference(found, teacher.needed)
        if word is not None:  # it is read, so that a failure is noted
            with suppress(Stop):
                teacher.read(np.array([word]))
    delta, output, start = _tables(found)
    agrees = None if teacher.needed is None or reason != "tested" else True
    return Extraction(
        algorithm=algorithm,
        states=0 if found is None else num_needed(found),
        needed=None if task is None else num_needed(task),
        equivalent=False if teacher.failure is not None else agrees,
        difference=_as_known(teacher.failure, known),
        words=teacher.words,
        longest=teacher.longest,
        all_to=short.all_to,
        random_words=random_words if reason in ("tested", "length") else 0,
        random_length=max_length,
        extra_states=_extra_states(oracle.last, found, teacher, suites.extra_states)
        if reason == "tested"
        else None,
        delta=delta,
        output=output,
        start=start,
        reason=reason,
        complete=reason != "time",
        seconds=time.monotonic() - started,
    )


def _as_known(failure: Failure | None, known: Sequence[Failure]) -> Failure | None:
    """A failure with its word written as it is among those known: by its period, if it has one."""
    if failure is None:
        return None
    for each in known:
        if each.position >= failure.position and not each.suffix:
            written = replace(each, position=failure.position)
            if written.word == failure.word:
                return replace(written, label=failure.label, answer=failure.answer)
    return failure


def _extra_states(
    last: Hypothesis | None, found: Automaton | None, teacher: Teacher, depth: int | None
) -> int | None:
    """How many more states a network may have that is a machine, as the result counts states.

    Suites of `depth` are about the states of the hypothesis, among them that before the first
    symbol and the sink. The network's machine may need both where the hypothesis does not.
    """
    if last is None or found is None or depth is None:
        return None
    sink = teacher.needed is not None and num_needed(teacher.needed) < teacher.needed.num_states
    extra = len(last.codes) + depth - num_needed(found) - 1 - int(sink)
    return extra if extra >= 0 else None


def _tables(
    found: Automaton | None,
) -> tuple[tuple[tuple[int, ...], ...], tuple[int | None, ...], int]:
    """The transitions, labels and start of a machine, as plain values."""
    if found is None:
        return (), (), 0
    output = [
        label if asked else None
        for label, asked in zip(found.output.tolist(), found.scored.tolist(), strict=True)
    ]
    return tuple(map(tuple, found.delta.tolist())), tuple(output), found.start


Learner = Callable[[Teacher, Chain, int], None]
"""Learns until the oracle finds no word; the last hypothesis is the oracle's. May raise `Stop`."""


def by_table(teacher: Teacher, oracle: Chain, max_states: int) -> None:
    """L*, with a table whose new entries are read at once."""
    table = _BatchedTable(teacher, max_states)
    table.update_obs_table()
    word: Word | None = None
    while True:
        while rows := table.get_rows_to_close("shortest_first"):
            table.S.extend(rows)
            table.update_obs_table(
                s_set=[(*row, symbol) for row in rows for symbol in teacher.alphabet]
            )
        hypothesis = table.gen_hypothesis()
        if word is None or counterexample_successfully_processed(teacher, word, hypothesis):
            word = oracle.find_cex(hypothesis)
            if word is None:
                return
        endings = rs_cex_processing(teacher, word, hypothesis, suffix_closedness=False)
        new = [ending for ending in endings if ending not in table.E]
        assert new, word
        table.E.extend(new)
        table.update_obs_table(e_set=new)


def by_tree(teacher: Teacher, oracle: Chain, max_states: int) -> None:
    """KV."""
    run_KV(teacher.alphabet, teacher, oracle, "moore", cache_and_non_det_check=False, print_level=0)


LEARNERS: Mapping[str, Learner] = {"lstar": by_table, "kv": by_tree}
"""The algorithms by name."""


class _BatchedTable(ObservationTable):  # type: ignore[misc]
    """An observation table that reads all words of an update at once."""

    def __init__(self, teacher: Teacher, max_states: int) -> None:
        super().__init__(teacher.alphabet, teacher, "moore", prefixes_in_cell=True)
        self._max_states = max_states

    def update_obs_table(self, s_set: Any = None, e_set: Any = None) -> None:
        if len(self.S) > self._max_states:
            raise Stop("states")
        rows = s_set or [*self.S, *self.s_dot_a()]
        self.sul.ask(row + ending for row in rows for ending in e_set or self.E)
        super().update_obs_table(s_set, e_set)
