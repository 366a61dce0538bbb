"""Is a counterexample wrong, and is no shorter word wrong?

All words up to the length of a failure are enumerated, and read from their first symbol.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from statetrack.evidence import SearchBudget, Subject, find_exhaustive, find_extraction
from statetrack.models import MODELS
from statetrack.sources import Automaton
from tests.evidence import machines, networks, words
from tests.evidence.checks import Check
from tests.evidence.machines import Table

MOST_WORDS = 2**18


@torch.no_grad()
def shortest_failure(model: nn.Module, automaton: Automaton, longest: int) -> int | None:
    """The length of the shortest word whose last answer is wrong, of all words that can be drawn.

    Only answers that are asked for count.
    """
    symbols = automaton.num_symbols
    for length in range(1, longest + 1):
        if symbols**length > MOST_WORDS:
            return None
        batch = words.all_words(symbols, length)
        states = np.full(len(batch), automaton.start)
        allowed = np.ones(len(batch), bool)
        for symbol in batch.T:
            allowed &= automaton.weights[states, symbol] > 0
            states = automaton.delta[states, symbol]
        asked = allowed & automaton.scored[states]
        if not asked.any():
            continue
        answers = np.concatenate(
            [
                model(torch.from_numpy(part)).numpy()[:, -1]
                for part in np.array_split(batch[asked], -(-int(asked.sum()) // 4096))
            ]
        )
        if (answers.argmax(-1) != automaton.output[states[asked]]).any():
            return length
    return None


def wrong_at(model: nn.Module, automaton: Automaton, word: tuple[int, ...]) -> int | None:
    """The first position, from 1, at which the answer to a word is wrong."""
    with torch.no_grad():
        answers = model(torch.tensor([word]))[0].argmax(-1).tolist()
    state = automaton.start
    for position, (symbol, answer) in enumerate(zip(word, answers, strict=True), 1):
        state = int(automaton.delta[state, symbol])
        if automaton.scored[state] and answer != automaton.output[state]:
            return position
    return None


def compare(
    check: Check,
    name: str,
    model: nn.Module,
    automaton: Automaton,
    seconds: float,
    most: int,
) -> None:
    """The exhaustive check and extraction find the shortest failure that enumeration finds."""
    subject = Subject(model, automaton)
    whole = find_exhaustive(subject, budget=SearchBudget(seconds), seed=0, max_states=most)
    truth = shortest_failure(model, automaton, 9)
    _compare_failure(check, f"{name}, all words", model, automaton, whole.failure, truth)
    if whole.failure is None:
        check.case(
            truth is None or whole.length < truth,
            f"{name}: all words to {whole.length} are said to be right, one of {truth} is not",
        )
        far = automaton_words(automaton, 400, 40)
        errors = [wrong_at(model, automaton, tuple(word)) for word in far]
        failed = [error for error in errors if error is not None]
        if whole.closed:
            check.case(not failed, f"{name}: closed, and a word fails at {failed[:1]}")
    found = find_extraction(subject, budget=SearchBudget(seconds), seed=0, max_words=10 * most)
    if found.difference is not None and found.reason == "tested":
        _compare_failure(check, f"{name}, extraction", model, automaton, found.difference, truth)


def _compare_failure(
    check: Check,
    name: str,
    model: nn.Module,
    automaton: Automaton,
    failure: Any,
    truth: int | None,
) -> None:
    if failure is None:
        return
    check.case(
        wrong_at(model, automaton, failure.word) == failure.position,
        f"{name}: {failure} is not a first failure",
    )
    if truth is not None:
        check.case(
            failure.position == truth, f"{name}: fails at {failure.position}, shortest {truth}"
        )


def automaton_words(automaton: Automaton, length: int, count: int) -> Any:
    """Words that can be drawn, random."""
    draws = np.random.default_rng(0)
    found = []
    for _ in range(count):
        state, word = automaton.start, []
        for _ in range(length):
            symbol = int(draws.choice(np.flatnonzero(automaton.weights[state])))
            word.append(symbol)
            state = int(automaton.delta[state, symbol])
        found.append(word)
    return found


def mamba_on_parity(steps: int, seed: int = 0) -> tuple[nn.Module, Automaton]:
    """Mamba with gains in (0, 1), trained on short words of parity by a loop of its own."""
    torch.manual_seed(seed)
    kind = MODELS["mamba"]
    model = kind(kind.settings_class(width=8, state=4), num_symbols=2, num_labels=2)
    means = [(torch.zeros_like(each), torch.zeros_like(each)) for each in model.parameters()]
    for _ in range(steps):
        symbols = torch.randint(2, (64, 6))
        labels = symbols.cumsum(1) % 2
        loss = torch.nn.functional.cross_entropy(model(symbols).flatten(0, 1), labels.flatten())
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():  # Adam, without its corrections of the first steps
            for parameter, gradient, (mean, square) in zip(
                model.parameters(), gradients, means, strict=True
            ):
                mean.lerp_(gradient, 0.1)
                square.lerp_(gradient**2, 0.05)
                parameter.sub_(1e-2 * mean / (square.sqrt() + 1e-8))
    return model.eval(), Table(((0, 1), (1, 0)), (0, 1)).automaton()


def changed_tables(draws: np.random.Generator) -> tuple[Table, Table]:
    """A machine, and one that answers differently after some word."""
    while True:
        table = machines.random_table(draws, int(draws.integers(2, 8)), 2, 3)
        kind = draws.integers(3)
        if kind == 0:
            other = machines.with_another_transition(draws, table)
        elif kind == 1:
            other = machines.right_for(table, int(draws.integers(2, 7)))
        else:
            merged = tuple(label if label < 2 else 1 for label in table.output)
            other = Table(table.delta, merged, table.start)
        if machines.shortest_difference(table, other) is not None and len(other.delta) < 40:
            return table, other


def counterexamples(cases: int, seconds: float, steps: int = 300, most: int = 2**18) -> list[Check]:
    """All attacks on counterexamples."""
    check = Check("counterexamples are wrong, and no shorter word is")
    for number in range(cases):
        draws = np.random.default_rng([7, number])
        table, other = changed_tables(draws)
        automaton = table.automaton(3)
        compare(check, f"units {number}", networks.elman(other, 3), automaton, seconds, most)
    for name, automaton, model in partly_asked():
        compare(check, name, model, automaton, seconds, most)
    model, parity = mamba_on_parity(steps)
    truth = shortest_failure(model, parity, 16)
    check.case(truth is not None, "mamba on parity has no failure up to 16")
    check.note("shortest failure of mamba on parity", truth or 0)
    compare(check, "mamba on parity", model, parity, seconds, most)
    return [check]


def partly_asked() -> list[tuple[str, Automaton, nn.Module]]:
    """Machines in which some labels are not asked for, or some symbols not drawn.

    A register of one bit: 0 and 1 write, 2 reads. The network forgets at the third 2; in the first
    machine only reading is asked, in the second a read may follow a write alone.
    """
    # states: 0 empty, 1 holds 0, 2 holds 1, 3 read 0, 4 read 1
    delta = [[1, 2, 0], [1, 2, 3], [1, 2, 4], [1, 2, 3], [1, 2, 4]]
    output = [0, 0, 1, 0, 1]
    scored = [False, False, False, True, True]
    asked = Automaton(delta, output, scored=scored)
    weights = np.ones((5, 3))
    weights[3:, 2] = 0
    drawn = Automaton(delta, output, scored=scored, weights=weights)
    # forgets: after the second read in a row of a 1, answers 0; never asked labels are wrong
    forgetful = Table(
        ((1, 2, 0), (1, 2, 3), (1, 2, 4), (1, 2, 3), (1, 2, 5), (1, 2, 3)), (1, 1, 0, 0, 1, 0)
    )
    always = Table(((1, 2, 0), (1, 2, 3), (1, 2, 4), (1, 2, 3), (1, 2, 4)), (1, 1, 0, 0, 1))
    return [
        ("register, all drawn", asked, networks.elman(forgetful)),
        ("register, right where asked", asked, networks.elman(always)),
        ("register, reads after writes", drawn, networks.elman(forgetful)),
    ]
