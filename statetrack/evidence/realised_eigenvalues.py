"""Measures the eigenvalues of a network's steps: see `kinds.step_eigenvalues`."""

from __future__ import annotations

import time

from statetrack.evidence.kinds.step_eigenvalues import RealisedEigenvalues
from statetrack.evidence.records import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.models import claimed_eigenvalues, step_eigenvalues, with_random_inputs


def find_step_eigenvalues(
    subject: Subject, *, budget: SearchBudget, seed: int = 0
) -> RealisedEigenvalues:
    """The eigenvalues of steps over the task's symbols, and over random inputs.

    Raises `SettingsError` for a network without steps, or with too large a state.
    """
    started = time.monotonic()
    budget.say("eigenvalues of steps")
    model, symbols = subject.unrounded, subject.automaton.num_symbols
    drawn = with_random_inputs(model, seed=seed)
    return RealisedEigenvalues(
        on_symbols=step_eigenvalues(model, symbols, seed=seed),
        on_random=None if drawn is None else step_eigenvalues(drawn, symbols, seed=seed),
        claimed=claimed_eigenvalues(model),
        complete=True,
        seconds=time.monotonic() - started,
    )
