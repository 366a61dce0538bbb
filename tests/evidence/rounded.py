"""Does any model that is certified under a rounding model fail within its certified length?

The models are those of `soundness`, perturbed; rounding models are drawn: types of state, gates,
products, sums and logits. Each model is certified under one, and asked words of the certified
length, symbol by symbol, as `models.Rounded` computes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.models import LinearModel, Rounded
from statetrack.rounding import Rounding
from tests.evidence import networks, soundness, words
from tests.evidence.certificates import _claimed
from tests.evidence.checks import Check

FAMILIES = [name for name in soundness.FAMILIES if name != "rotations in float64"]

STATES = ("same", "float32", "bfloat16", "float16", "e8m4", "e8m10", "float8-e4m3", "e8m14")
OTHERS = ("same", "same", "same", "bfloat16", "float16", "e8m10", "float8-e4m3")
SUMS = ("float64", "float64", "float32", "float32", "bfloat16", "e8m12", "float16")

FAR = 200
"""Symbols to which words are read."""

SIZES = (-9.0, -1.0)
"""The powers of ten between which the sizes of perturbations are drawn."""


def drawn(draws: np.random.Generator, linear: bool) -> Rounding:
    """A rounding model; of other models than linear ones only the state and sums are cast."""

    def one(of: Sequence[str]) -> str:
        return str(draws.choice(of))

    more: dict[str, Any] = {"gates": one(OTHERS), "products": one(OTHERS)} if linear else {}
    return Rounding(
        state=one(STATES),
        kept="call" if draws.random() < 0.1 else "step",
        call=int(draws.integers(1, 4)),
        accumulation=one(SUMS if draws.random() < 0.5 else SUMS[:4]),
        weights=one(OTHERS),
        readout=one(OTHERS),
        **more,
    )


def rounded(
    cases: int, seconds: float, first_seed: int = 0, families: Sequence[str] = tuple(FAMILIES)
) -> Iterator[Check]:
    """Families, so many perturbed models of each; a family's do not depend on the others."""
    for name in families:
        check = Check(f"no model fails within its certified length under rounding: {name}")
        for number in range(cases):
            attack(check, name, number, seconds, first_seed)
        yield check


def attack(check: Check, family: str, number: int, seconds: float, first_seed: int) -> None:
    """Perturb a model, certify it under a rounding model, and ask words of its certified length."""
    draws = np.random.default_rng([first_seed, number, 7])
    case = soundness.FAMILIES[family](draws)
    size = float(10 ** draws.uniform(*SIZES))
    if number % 4:
        chosen = case.weights if number % 3 == 0 else case.weights[:1]
        networks.perturbed(case.model, size, draws, *chosen)
    rounding = drawn(draws, isinstance(case.model, LinearModel))
    subject = Subject(case.model, case.table.automaton(case.model.num_labels), rounding=rounding)
    found = Certificate.search(subject, budget=SearchBudget(seconds), seed=0)
    claimed = _claimed(found)
    check.add(found.verdict)
    if not claimed:
        return
    length = int(min(claimed, FAR))
    model = Rounded(case.model, rounding)
    symbols = case.table.num_symbols
    asked = [words.powers(words.short_words(symbols, 3, 24, draws), length)]
    asked.append(draws.integers(symbols, size=(16, length)))
    together = np.concatenate(asked)
    errors = words.first_errors(model, case.table, together, length)
    check.note("longest word", length)
    check.add("words", len(together))
    first = int(errors[errors > 0].min()) if errors.any() else 0
    detail = f"{family} {first_seed} {number}, {rounding!r}: certified {claimed}, fails at {first}"
    check.case(not first, detail)
