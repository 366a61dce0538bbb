"""Are predicted failures where the words fail, and is every word right up to the horizon?"""

from __future__ import annotations

from typing import Any

import numpy as np

from statetrack.evidence import SearchBudget, Subject, find_worst_case
from statetrack.models import RecurrentModel
from tests.evidence import certificates, networks, words
from tests.evidence.checks import Check
from tests.evidence.machines import Table

BUILDERS = tuple(build for build in certificates.LINEAR if build is not certificates._rotations)
SIZES = (3e-2, 1e-2, 3e-3, 1e-3)


def horizons(
    cases: int, seconds: float, first_seed: int = 0, sizes: tuple[float, ...] = SIZES
) -> list[Check]:
    """Perturbed exact models: the failing word is replayed, and others up to the horizon."""
    replayed = Check("a failing word fails first where it is said to")
    predicted = Check("predicted failures are within 5 % of the replayed ones")
    horizon = Check("no power of a word of one or two symbols fails up to the horizon")
    for number in range(cases):
        draws = np.random.default_rng([first_seed, 5, number])
        case = BUILDERS[number % len(BUILDERS)](draws)
        size = float(sizes[number % len(sizes)]) * float(draws.uniform(0.3, 1))
        model = networks.perturbed(case.model, size, draws, case.weights[0]).eval()
        subject = Subject(model, case.table.automaton(model.num_labels))
        found = find_worst_case(subject, budget=SearchBudget(seconds), seed=0)
        name = f"{case.name}, seed {number}, size {size:.1e}"
        _replay(replayed, name, model, case.table, found)
        _powers(horizon, name, model, case.table, found)
        if found.failure is not None and found.predicted is not None:
            position = found.failure.position
            off = abs(found.predicted - position) / position
            close = abs(found.predicted - position) <= max(
                0.05 * position, len(found.failure.period)
            )
            predicted.case(close, f"{name}: predicted {found.predicted}, fails at {position}")
            predicted.note("greatest part by which a prediction is off", off)
    return [replayed, predicted, horizon]


def _replay(check: Check, name: str, model: RecurrentModel, table: Table, found: Any) -> None:
    if found.failure is None:
        check.case(found.horizon == found.tested, f"{name}: {found.horizon} of {found.tested}")
        return
    word = np.array([found.failure.word])
    error = int(words.first_errors(model, table, word)[0])
    check.case(
        error == found.failure.position == found.horizon + 1,
        f"{name}: fails at {error}, said {found.failure.position}, horizon {found.horizon}",
    )


def _powers(check: Check, name: str, model: RecurrentModel, table: Table, found: Any) -> None:
    if found.horizon < 1 or found.horizon > 50_000 or not found.complete:
        return
    draws = np.random.default_rng(0)
    periods = words.short_words(table.num_symbols, 2, 200, draws)
    errors = words.first_errors(model, table, words.powers(periods, found.horizon))
    failed = np.flatnonzero(errors)
    detail = ", ".join(f"{periods[row].tolist()} at {errors[row]}" for row in failed[:3])
    check.case(not len(failed), f"{name}: horizon {found.horizon}, but {detail}")
