"""C-RASP: counters by potentials against lists of cycles, published languages, and witnesses.

S states, V symbols, K letters.
"""

from __future__ import annotations

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA
from sympy import Matrix

from statetrack.algebra import Algebra, Attention, Size, analyse, replay
from statetrack.algebra.counters import Counters, counters_of_labels
from statetrack.predicting import predict
from statetrack.sources import Automaton, Integers, coarsest_partition, numbered
from statetrack.spec import load_task
from tests.claims.cells import algebra_of, automaton_of, tasks_with_automata

LANGUAGES = Path(__file__).parent / "fixtures" / "c_rasp_languages.csv"
"""The two suites of Yang et al. (2026, arXiv:2608.13433), with their classes."""


def language(regex: str) -> Automaton:
    """The smallest complete automaton of a regular expression, by automata-lib; label 1 accepts."""
    found = DFA.from_nfa(NFA.from_regex(regex), minify=True).to_complete().minify()
    place = {state: number for number, state in enumerate(sorted(found.states, key=str))}
    symbols = sorted(found.input_symbols)
    delta = [[place[found.transitions[state][each]] for each in symbols] for state in place]
    output = [int(state in found.final_states) for state in place]
    return Automaton(np.array(delta), np.array(output), start=place[found.initial_state])


def by_cycles(delta: Integers) -> bool:
    """Whether counters tell all states of every component apart, from lists of simple cycles.

    The states of a component that are not told apart are those between which the letters of a path
    lie in the rational span of those of all cycles, in every round anew.
    """
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(delta)))
    for state, symbol in itertools.product(*map(range, delta.shape)):
        graph.add_edge(state, int(delta[state, symbol]), key=symbol)
    return all(
        _told_apart(graph.subgraph(members).copy())
        for members in nx.strongly_connected_components(graph)
    )


def _told_apart(graph: nx.MultiDiGraph) -> bool:
    class_of = dict.fromkeys(graph.nodes, 0)
    while True:
        letters = sorted({(symbol, class_of[source]) for source, _, symbol in graph.edges})
        cycles = [
            _read(each, class_of, letters)
            for nodes in nx.simple_cycles(nx.DiGraph(graph))
            for each in _edges_through(graph, [*nodes, nodes[0]])
        ]
        rank = Matrix(cycles).rank() if cycles else 0
        finer: dict[int, int] = {}
        members: dict[int, list[int]] = {}
        for state in graph.nodes:
            for number, alike in members.items():
                path = nx.shortest_path(graph, alike[0], state)
                row = _read(next(_edges_through(graph, path)), class_of, letters)
                same = Matrix([*cycles, row]).rank() == rank if cycles else not any(row)
                if class_of[alike[0]] == class_of[state] and same:
                    finer[state] = number
                    break
            else:
                finer[state] = len(members)
            members.setdefault(finer[state], []).append(state)
        if len(members) == len(set(class_of.values())):
            return len(members) == len(graph)
        class_of = finer


def _edges_through(graph, nodes):
    choices = [
        [(source, symbol) for symbol in graph[source][target]]
        for source, target in itertools.pairwise(nodes)
    ]
    return itertools.product(*choices)


def _read(edges, class_of, letters) -> list[int]:
    counted = [0] * len(letters)
    for source, symbol in edges:
        counted[letters.index((symbol, class_of[source]))] += 1
    return counted


def random_machine(seed: int) -> Integers:
    """Next states of up to 8 states; half of them are near lines, in which counters tell more."""
    generator = np.random.default_rng(seed)
    num_states = int(generator.integers(2, 9 if seed % 2 else 6))
    num_symbols = int(generator.integers(1, 4 if num_states < 6 else 3))
    if seed % 2:  # steps up, down and to a sink, and now and then somewhere
        steps = generator.integers(-1, 2, (num_states, num_symbols))
        delta = np.arange(num_states)[:, None] + steps
        delta[(delta < 0) | (delta >= num_states)] = num_states - 1
        anywhere = generator.random(delta.shape) < 0.1
        return np.where(anywhere, generator.integers(0, num_states, delta.shape), delta)
    return generator.integers(0, num_states, (num_states, num_symbols))


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 2000), marks=pytest.mark.slow)]
)
def test_potentials_tell_what_cycles_tell(seeds: range) -> None:
    found = []
    for seed in seeds:
        delta = random_machine(seed)
        found.append(Counters.of(delta).tell_all)
        assert found[-1] == by_cycles(delta), (seed, delta.tolist())
    assert 0.2 < np.mean(found) < 0.8


def test_published_languages_have_their_classes() -> None:
    with LANGUAGES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 160
    for row in rows:
        algebra = analyse(language(row["regex"]))
        found = (algebra.c_rasp, algebra.r_infinity, algebra.one_idempotent_each)
        expected = (row["c_rasp"], row["r_infinity"], row["r_g"])
        assert tuple(map(str, found)) == expected, row["regex"]


def test_the_state_before_the_last_symbol_needs_the_counters_of_the_language() -> None:
    """So the authors ask: each state where the word so far has been read, and no later symbol."""
    with LANGUAGES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows[::3]:
        asked = load_task(f"regex:{row['regex']};labels=states-before,words=uniform")
        algebra = analyse(asked.automaton)
        assert str(algebra.c_rasp_in_place) == row["c_rasp"], row["regex"]


def test_the_machine_of_all_labels_says_what_its_labels_say() -> None:
    generator = np.random.default_rng(0)
    for seed in range(150):
        delta = random_machine(seed)
        labels = generator.integers(0, 3, len(delta))
        alone = []
        for label in range(3):
            blocks = coarsest_partition(delta, numbered((labels == label).astype(np.int64)))
            alone.append(Counters.of(_merged(delta, blocks)).tell_all)
        whole = _merged(delta, coarsest_partition(delta, numbered(labels)))
        assert Counters.of(whole).tell_all == all(alone), seed


def _merged(delta: Integers, blocks: Integers) -> Integers:
    _, first = np.unique(blocks, return_index=True)
    return blocks[delta[first]]


def test_the_last_symbol_needs_no_counter_where_it_is_seen() -> None:
    last = analyse(language("(a|b)*b"))
    assert (last.c_rasp, last.c_rasp_in_place) == (False, True)
    before = analyse(language("(a|b)*b(a|b)"))
    assert (before.c_rasp, before.c_rasp_in_place) == (False, False)
    numbers, _ = counters_of_labels(np.array([[0, 1], [0, 1]]), np.array([0, 1]))
    assert numbers.tolist() == [0, 0]


def test_states_that_need_not_be_told_apart_need_no_counter() -> None:
    """One label, which is not asked for in one of two states that a symbol leads round."""
    algebra = analyse(Automaton([[1], [0]], [0, 0], scored=[True, False]))
    assert (algebra.c_rasp, algebra.c_rasp_in_place) == (None, None)


def test_every_no_has_words_that_show_it() -> None:
    answers = []
    for name in tasks_with_automata():
        found = _generalises(algebra_of(name))
        answers.append(found.answer)
        assert found.answer != "unknown", name
        if found.answer == "no":
            said = replay(found.witness, automaton_of(name))
            assert said.confirmed, (name, said)
    assert 10 <= answers.count("yes") < len(answers) - 40


def _generalises(algebra: Algebra, positions: str = "none"):
    longest = 512 if positions == "learned" else None
    attention = Attention(layers=Size("layers", 2), positions=positions, longest=longest, bos=True)
    return predict(algebra, attention).generalises


@pytest.mark.parametrize("regex", ["(ab|bba)*", "(aa)*", "(a|b)*b(a|b)", "(ab|aabb)*"])
def test_changed_words_are_refuted(regex: str) -> None:
    automaton = language(regex)
    witness = _generalises(analyse(automaton)).witness
    assert replay(witness, automaton).confirmed
    way, more, fewer = witness.words
    changed = [
        replace(witness, order=witness.order + 1),
        replace(witness, words=(way, more + more, fewer)),
        replace(witness, words=((*way, 0), more, fewer)),
        replace(witness, suffixes=((),)),
        replace(witness, states=witness.states[::-1]),
    ]
    for each in changed:
        assert not replay(each, automaton).confirmed, each


def test_without_a_first_token_words_of_one_symbol_have_one_answer() -> None:
    answers = []
    for name in tasks_with_automata():
        algebra = algebra_of(name)
        for positions in ("rotary", "path"):
            attention = Attention(layers=Size("layers", 2), positions=positions)
            found = predict(algebra, attention)
            if algebra.witnesses.repeat is None:
                assert found.witness is None or found.witness.kind != "repeat"
                assert positions == "path" or found.generalises.answer != "yes"
                continue
            assert found.can == "no"
            said = replay(algebra.witnesses.repeat, automaton_of(name))
            assert said.confirmed, (name, said)
            with_token = predict(algebra, replace(attention, bos=True))
            assert with_token.can == "unknown" or with_token.witness.kind == "group"
        answers.append(algebra.witnesses.repeat is not None)
    assert answers.count(True) == 40, "of 59 tasks, as docs/predictions.md says"


def test_words_of_one_symbol_that_are_changed_are_refuted() -> None:
    automaton = automaton_of("cyclic")
    witness = algebra_of("cyclic").witnesses.repeat
    one, two = witness.accesses
    changed = [
        replace(witness, accesses=(one, one)),
        replace(witness, accesses=(one, (*two[:-1], (two[0] + 1) % 3))),
        replace(witness, states=witness.states[::-1]),
        replace(witness, accesses=((), two), states=(automaton.start, witness.states[1])),
        replace(witness, words=((*one, *one),)),
    ]
    assert replay(witness, automaton).confirmed
    for each in changed:
        assert not replay(each, automaton).confirmed, each


def test_learned_positions_end_somewhere() -> None:
    found = _generalises(algebra_of("tomita-1"), "learned")
    assert found.answer == "no"
    assert "512 symbols" in found.theorem
    assert _generalises(algebra_of("tomita-1"), "rotary").answer == "yes"
    assert "positions could help" in _generalises(algebra_of("parity"), "rotary").theorem


def test_too_much_work_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("statetrack.algebra.counters.MOST_STEPS", -1)
    algebra = analyse(language("(ab|ba)*"))
    assert (algebra.c_rasp, algebra.c_rasp_in_place) == (None, None)
    assert _generalises(algebra).answer == "unknown"
