"""Is the machine that is extracted the one that the network was built as?"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.evidence import SearchBudget, Subject, find_extraction
from tests.evidence import machines, networks
from tests.evidence.checks import Check
from tests.evidence.machines import Table


def extractions(cases: int, seconds: float, most_states: int = 18) -> list[Check]:
    """Networks that compute random machines, compared with these machines and with others."""
    same = Check("the extracted machine is the one that the network was built as")
    differing = Check("the difference of two machines is a shortest one")
    for number in range(cases):
        draws = np.random.default_rng([11, number])
        states = int(draws.integers(2, most_states + 1))
        labels = int(draws.integers(2, 4))
        table = machines.random_table(draws, states, int(draws.integers(2, 4)), labels)
        labels = max(2, 1 + max(table.output))
        name = f"machine {number} of {len(table.delta)} states"
        _extract(same, name, table, table, labels, seconds)
        for what, other in _others(draws, table):
            if len(other.delta) * other.num_symbols > 300:
                continue
            expected = machines.shortest_difference(table, other)
            found = _extract(same, f"{name}, {what}", other, table, labels, seconds)
            if found is None:
                continue
            if expected is None:
                differing.case(
                    found.equivalent is not False and found.difference is None,
                    f"{name}, {what}: {found.difference}",
                )
                continue
            position = found.difference.position if found.difference is not None else None
            differing.case(
                found.equivalent is False and position == expected,
                f"{name}, {what}: {found.equivalent}, differs at {position}, shortest {expected}",
            )
    return [same, differing, _locks(cases, seconds)]


def _locks(cases: int, seconds: float) -> Check:
    """Networks that answer otherwise after one long word: what is missed has many more states."""
    check = Check("a machine that is not the network's has too few states to be it")
    for number in range(max(2, cases // 4)):
        draws = np.random.default_rng([17, number])
        word = tuple(draws.integers(2, size=2 + number % 16).tolist())
        table = machines.lock(word, 2)
        plain = Table(((0, 0),), (0,)).automaton(2)
        subject = Subject(networks.elman(table), plain)
        found = find_extraction(subject, budget=SearchBudget(seconds), seed=0)
        extracted = _table_of(found)
        if machines.shortest_difference(extracted, table) is None:
            check.add("found")
            check.case(found.equivalent is False, f"lock {word}: {found.equivalent}")
            continue
        check.add("missed")
        states = machines.num_distinct(table)
        known = found.states + (found.extra_states or 0)
        check.case(
            not found.complete or found.reason != "tested" or known < states,
            f"lock {word} of {states} states: {found.states}, and {found.extra_states} more",
        )
    return check


def _others(draws: np.random.Generator, table: Table) -> list[tuple[str, Table]]:
    merged = Table(table.delta, tuple(min(label, 1) for label in table.output), table.start)
    return [
        ("another transition", machines.with_another_transition(draws, table)),
        ("merged labels", machines.trimmed(merged)),
        ("right for a while", machines.right_for(table, int(draws.integers(2, 7)))),
    ]


def _extract(
    check: Check, name: str, table: Table, task: Table, labels: int, seconds: float
) -> Any:
    """Extract from a network of `table` beside a task, and compare with `table`."""
    model = networks.elman(table, labels)
    subject = Subject(model, task.automaton(labels))
    found = find_extraction(subject, budget=SearchBudget(seconds), seed=0)
    if not found.complete:
        check.add("cut by the budget")
        return None
    extracted = _table_of(found)
    difference = machines.shortest_difference(extracted, table)
    check.case(difference is None, f"{name}: differs from the network's after {difference} symbols")
    return found


def _table_of(found: Any) -> Table:
    """The machine that was extracted, all of whose states have labels."""
    return Table(tuple(tuple(row) for row in found.delta), tuple(found.output), found.start)
