"""L* and KV: a machine from the answers of a teacher and the counterexamples of an oracle.

Both are those of AALpy. Angluin's L* (1987, Information and Computation 75(2)) with counterexamples
processed as by Rivest and Schapire (1993, Information and Computation 103(2)) keeps a table of
access words and endings, all entries of which are asked for at once; Kearns and Vazirani's
algorithm (1994, MIT Press) keeps a tree, and asks for far fewer words, though few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aalpy import run_KV
from aalpy.learning_algs.deterministic.CounterExampleProcessing import (
    counterexample_successfully_processed,
    rs_cex_processing,
)
from aalpy.learning_algs.deterministic.ObservationTable import ObservationTable

from statetrack.evidence.extraction.machine import Word
from statetrack.evidence.extraction.oracles import Chain
from statetrack.evidence.extraction.teacher import Stop, Teacher

Learner = Callable[[Teacher, Chain, int], None]
"""Learns until the oracle finds no word; the last hypothesis is the oracle's. May raise `Stop`."""


def by_table(teacher: Teacher, oracle: Chain, max_states: int) -> None:
    """L*, with a table whose new entries are read at once."""
    table = _Table(teacher, max_states)
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


class _Table(ObservationTable):  # type: ignore[misc]
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
