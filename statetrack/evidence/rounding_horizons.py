"""After how many symbols rounding should lead a model to a wrong answer: a margin over a unit.

The *margin* m of a model is the smallest distance of a state h from one that is answered wrongly,
over the root mean square of the D numbers of the largest state (those that are not always 0). With
logits l after the next symbol, right label y and any other y', that distance is, to first order,

    (l_y - l_y') / |grad_h (l_y - l_y')|

where h is what the recurrence hands on (its memory; inputs that are kept for a convolution are not
rounded again and again). It is measured on random words, in float64, over all states that they lead
to. The *growth* g is the factor by which one symbol multiplies a small error of the memory, in the
mean over many symbols, of the word where it is largest. The *unit* u is the largest unit roundoff
of the types that a step passes through, so that a step moves a state by about u of its norm, and
along the one direction that matters by 1 / sqrt(D) of that: by u, in the units of the margin.

After T symbols errors that add up are u (1 + g + ... + g^(T - 1)), and reach the margin at `worst`:
m / u for g = 1. Those that are independent of one another have u^2 (1 + g^2 + ... + g^(2 T - 2)) as
their mean square, and reach it at `random`: (m / u)^2 for g = 1. Both are infinite where errors
die out before. They are expectations and prove nothing: rounding that takes a state back to where
it was fails at no length. So it is with whole numbers, and often where states are cast and
operators, exact ones of a finite group, are not: casts then undo what the last one did.

B words, C labels, D numbers of the memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.algebra import needed_machine
from statetrack.errors import SettingsError
from statetrack.evidence.subject import Subject
from statetrack.evidence.words import RandomWords
from statetrack.models import BlockModel, is_linear
from statetrack.rounding import Rounding

NUM_WORDS, LENGTH = 61, 24
"""The random words that margins are measured on; their number is no other size of a state."""

MOST_RIVALS = 16
"""Wrong labels that are looked at: those with the largest logits."""

PARTS = ("state", "gates", "keys", "products", "accumulation")
"""The types that a step passes through; weights are rounded once, and logits not again."""


SETTLING = 4
"""Symbols before an error is made, whose growth is measured from there on."""

SMALL = 1e-6
"""The size of that error, as a share of the memory."""

STEADY = 1e-6
"""A growth that differs from 1 by less is 1."""


@dataclass(frozen=True)
class RoundingHorizon:
    """The margin, growth and unit of a model, and the lengths that they lead to expect."""

    margin: float
    growth: float
    unit: float

    @property
    def worst(self) -> float:
        """The symbols in which errors that add up reach a wrong answer."""
        return _reached(self.margin / self.unit, self.growth)

    @property
    def random(self) -> float:
        """The symbols in which errors that are independent of one another do."""
        return _reached((self.margin / self.unit) ** 2, self.growth**2)

    @property
    def summary(self) -> str:
        """What is expected, in one line."""
        of = f"(margin {self.margin:.3g}, unit {self.unit:.3g}, growth {self.growth:.4g})"
        if math.isinf(self.worst):
            return f"no failure: errors die out before they reach the margin {of}"
        worst, random = _count(self.worst), _count(self.random)
        return f"{worst} symbols where errors add up, {random} where they are independent {of}"

    def to_json(self) -> dict[str, float | None]:
        """Its numbers by name; None for what is infinite."""
        names = ("margin", "growth", "unit", "worst", "random")
        numbers = {name: float(getattr(self, name)) for name in names}
        return {name: one if math.isfinite(one) else None for name, one in numbers.items()}


def _count(symbols: float) -> str:
    return "no number of" if math.isinf(symbols) else f"about {math.ceil(symbols):,}"


def _reached(total: float, growth: float) -> float:
    """The number of terms of 1 + g + g^2 + ... that add up to a total; infinite where none does."""
    if abs(growth - 1) < STEADY:
        return total
    left = 1 - (1 - growth) * total
    return math.log(left) / math.log(growth) if growth > 0 and left > 0 else math.inf


def predict_rounding_horizon(subject: Subject, *, seed: int = 0) -> RoundingHorizon:
    """What is expected of a model under its rounding model; the words are drawn by `seed`.

    Raises `SettingsError` for a model that is under none, and as `state_margin` does.
    """
    if subject.rounding is None:
        raise SettingsError("a rounding horizon needs a rounding model: give one to the subject")
    margin, growth = state_margin(subject, seed=seed)
    unit = unit_roundoff(subject.rounding, additive=_has_keys(subject.unrounded))
    return RoundingHorizon(margin, growth, unit)


def expected_horizon(subject: Subject, *, seed: int = 0) -> RoundingHorizon | None:
    """The same; None for a model under no rounding model, or of whose states none is known."""
    if subject.rounding is None:
        return None
    try:
        return predict_rounding_horizon(subject, seed=seed)
    except SettingsError:
        return None


def unit_roundoff(rounding: Rounding, *, additive: bool = True) -> float:
    """The largest unit roundoff of the types that a step passes through.

    Without additive terms a recurrence has no keys.
    """
    formats = (rounding.format(part) for part in PARTS if additive or part != "keys")
    return max(each.unit for each in formats if each is not None)


def _has_keys(model: nn.Module) -> bool:
    return not is_linear(model) or model.additive is not None


def state_margin(subject: Subject, *, seed: int = 0) -> tuple[float, float]:
    """The smallest distance of a state from a wrong answer, and the growth of an error.

    The distance is over the root mean square of the numbers of the largest state; a rounding model
    changes nothing of both. It is 0 where an answer is wrong already, and infinite where there is
    one label. Raises
    `SettingsError` for a model without a state of its own.
    """
    subject.require_state("a margin of states")
    plain = subject.in_precision(torch.float64)
    model = plain.model
    machine = needed_machine(subject.automaton)
    words = RandomWords(machine, NUM_WORDS, seed)
    output, scored = machine.automaton.output, machine.automaton.scored
    smallest, largest, used = np.inf, 0.0, torch.zeros(())
    state, moved = plain.first(NUM_WORDS), None
    for position in range(LENGTH):
        symbols, states = words.read(1)
        symbol, reached = plain.tensor(symbols[:, 0]), states[:, 0]
        if position == SETTLING:
            moved = _moved(model, state, seed)
        with torch.enable_grad():
            before = _leaves(state)
            logits, state = model.step(symbol, before)  # type: ignore[operator]
            memory = _memory(model, before)
            asked = torch.from_numpy(scored[reached].copy())
            labels = plain.tensor(output[reached])
            smallest = min(smallest, _distances(logits, labels, asked, memory))
        rows = _rows(memory)
        largest, used = max(largest, float(rows.norm(dim=1).max())), used + rows.abs().amax(0)
        state = _leaves(state)
        if moved is not None:
            moved = _leaves(model.step(symbol, moved)[1])  # type: ignore[operator]
    if largest == 0:
        raise SettingsError("a margin of states needs states: those of this model are all zero")
    begun = SMALL * largest
    pairs = zip(_memory(model, state), _memory(model, moved), strict=True)
    left = float(_rows([one - other for one, other in pairs]).norm(dim=1).max())
    growth = (left / begun) ** (1 / (LENGTH - SETTLING))
    mean = largest / math.sqrt(int((used > 0).sum()))
    return max(float(smallest), 0.0) / mean, growth


def _moved(model: nn.Module, state: Any, seed: int) -> Any:
    """The state with an error of size `SMALL` in its memory, in a random direction."""
    found = _leaves(state)
    memory = _memory(model, found)
    draw = torch.Generator().manual_seed(seed)
    errors = [torch.randn(each.shape, generator=draw, dtype=each.dtype) for each in memory]
    sizes, norms = (float(_rows(each).norm(dim=1).max()) for each in (memory, errors))
    with torch.no_grad():
        for each, error in zip(memory, errors, strict=True):
            each.add_((SMALL * sizes / norms) * error.to(each.device))
    return found


def _distances(logits: Tensor, labels: Tensor, asked: Tensor, memory: list[Tensor]) -> float:
    """The smallest distance from a wrong answer of a word that is asked for one."""
    if not asked.any() or logits.shape[1] < 2:
        return np.inf
    right = logits.gather(1, labels.unsqueeze(1))
    rivals = logits.detach().scatter(1, labels.unsqueeze(1), -torch.inf)
    found = np.inf
    for rival in rivals.topk(min(MOST_RIVALS, logits.shape[1] - 1), 1).indices.unbind(1):
        gaps = (right - logits.gather(1, rival.unsqueeze(1))).squeeze(1)
        slopes = torch.autograd.grad(gaps.sum(), memory, retain_graph=True, allow_unused=True)
        ahead = gaps.detach().cpu()[asked]
        away = ahead / _rows([each for each in slopes if each is not None]).norm(dim=1)[
            asked
        ].clamp_min(1e-300)
        found = min(found, float(torch.where(ahead > 0, away, 0.0).min()))
    return found


def _rows(parts: Sequence[Tensor]) -> Tensor:
    """Every word's numbers, [B, D], of parts [B], [B, ...] or [L, B, H]."""
    rows = [torch.zeros(NUM_WORDS, 1, dtype=torch.float64)]
    for part in parts:
        axis = next(place for place, size in enumerate(part.shape) if size == NUM_WORDS)
        real = torch.view_as_real(part) if part.is_complex() else part
        rows.append(real.detach().movedim(axis, 0).reshape(NUM_WORDS, -1).double().cpu())
    return torch.cat(rows, 1)


def _leaves(state: Any) -> Any:
    """A copy of a state of whose numbers gradients can be taken, each apart."""
    if isinstance(state, Tensor):
        numbers = state.is_floating_point() or state.is_complex()
        return state.detach().clone().requires_grad_(numbers)
    if isinstance(state, Mapping):
        return {key: _leaves(part) for key, part in state.items()}
    if isinstance(state, tuple | list):
        parts = [_leaves(part) for part in state]
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return state


def _memory(model: nn.Module, state: Any) -> list[Tensor]:
    """The numbers that the recurrence hands on, of a state of `_leaves`."""
    if not isinstance(model, BlockModel):
        return list(_numbers(state))
    parts = zip(model.mixers, state, strict=True)
    return [each for mixer, own in parts for each in _numbers(mixer.memory_of(own))]


def _numbers(state: Any) -> Iterator[Tensor]:
    if isinstance(state, Tensor):
        if state.requires_grad:
            yield state
    elif isinstance(state, Mapping | tuple | list):
        for part in state.values() if isinstance(state, Mapping) else state:
            yield from _numbers(part)
