"""What is measured: a model with weights on a task, a part that is rounded, and to how many bits.

Weights are built, built over the integers, or trained on short words. Where a part alone is
rounded, all else is computed in float64. Three changes of a model are measured too: *renormalised*
(every block gets its norm back after each symbol), *decayed* (every matrix is multiplied by
`DECAY`) and *turned* (coordinates of the state are others, by a random orthogonal matrix in every
block: what the model computes is the same but for rounding).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import statetrack as st
from statetrack.models import RecurrentModel
from statetrack.rounding import Rounding
from statetrack.sources import Automaton
from statetrack.spec import load_task
from tests.precision.words import (
    Rounded,
    of_all_words,
    of_greedy_words,
    of_periodic_words,
    of_random_words,
)

Part = Literal["state", "gates", "keys", "accumulation", "weights", "all"]

DECAY = 0.999
"""The gain of a decayed model."""

BITS = (3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 23)
FEW_BITS = (3, 4, 5, 6, 7, 8, 10, 12, 16, 23)
PART_BITS = (3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24)
"""Mantissa bits, the leading 1 apart, of numbers with 8 exponent bits."""

SEED = 20
NUM_WORDS = 8


@dataclass(frozen=True)
class Weights:
    """A model with weights on a task."""

    how: Literal["built", "integers", "trained"]
    task: str
    model: str
    options: tuple[tuple[str, Any], ...] = ()
    training: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """A name for a table and for a file of weights."""
        options = "".join(f" {key}={value}" for key, value in self.options)
        return f"{self.how} {self.model}{options} on {self.task}"

    def make(self, folder: Path | None) -> tuple[RecurrentModel, Automaton]:
        """The model in float64 and its task's machine; trained weights are kept in a folder."""
        automaton = load_task(self.task).automaton
        if self.how != "trained":
            integers = self.how == "integers"
            built = st.build(
                self.task, self.model, dtype="float64", integers=integers, **dict(self.options)
            )
            model: Any = built.model
        else:
            model = st.make_model(self.model, self.task, seed=SEED, **dict(self.options))
            kept = None if folder is None else folder / f"{self.name.replace('/', '-')}.pt"
            if kept is not None and kept.exists():
                model.load_state_dict(torch.load(kept))
            else:
                for _ in st.train(model, self.task, seed=SEED, **dict(self.training)):
                    pass
                if kept is not None:
                    torch.save(model.state_dict(), kept)
        assert isinstance(model, RecurrentModel)
        return model.double().eval().requires_grad_(False), automaton


@dataclass(frozen=True)
class Point:
    """Weights, the part that is rounded, its mantissa bits, and a change of the model."""

    weights: Weights
    bits: int
    part: Part = "state"
    change: Literal["none", "renormalised", "decayed", "turned"] = "none"

    @property
    def name(self) -> str:
        """What identifies the point in the record."""
        change = "" if self.change == "none" else f", {self.change}"
        return f"{self.weights.name}: {self.part} of {self.bits} bits{change}"

    @property
    def rounding(self) -> Rounding:
        """A type of 8 exponent bits for the part, and float64 for all else."""
        kind = f"e8m{self.bits}"
        every = ("state", "gates", "weights", "accumulation")
        parts = every if self.part == "all" else (self.part,)
        named: dict[str, Any] = {"accumulation": "float64", **dict.fromkeys(parts, kind)}
        return Rounding(**named, renormalise=int(self.change == "renormalised"))


@dataclass(frozen=True)
class Caps:
    """How far words are read: symbols of random words, of all periodic ones, of a greedy one."""

    random: int
    periodic: int
    greedy: int = 0
    width: int = 16
    states: int = 10_000


def caps_of(point: Point, subject: Rounded) -> Caps:
    """By what a step costs, and by what is expected: a cap far below it is not worth reading to."""
    if subject.blocks is None:
        if point.weights.model in ("deltanet", "deltaproduct"):
            return Caps(10_000, 50_000, states=3_000)
        return Caps(1_024, 10_000, states=3_000)
    ratio = subject.sine * 2.0 ** (point.bits + 1)
    numbers = int(subject.blocks[0].size)
    most = 1_000_000 if numbers <= 9 else 500_000
    random = 100_000 if ratio**2 > most else min(most, max(100_000, int(100 * ratio**2)))
    children = len(subject.blocks) * numbers
    greedy = max(1_500, 3_000_000 // children)
    return Caps(random, 200_000, greedy if ratio < greedy else 0, states=20_000)


LEAD_IN = 2_000
"""Random symbols after which all words are tried once more."""


def measure(point: Point, model: RecurrentModel, automaton: Automaton) -> dict[str, Any]:
    """The row of a point: horizons of random, periodic and greedy words, and of all words."""
    subject = Rounded(changed(model, point.change), automaton, point.rounding)
    caps = caps_of(point, subject)
    random, read = of_random_words(subject, num_words=NUM_WORDS, cap=caps.random, seed=SEED)
    periodic = of_periodic_words(subject, most=128, symbols=caps.periodic)
    row: dict[str, Any] = {
        "name": point.name,
        "how": point.weights.how,
        "task": point.weights.task,
        "model": point.weights.model,
        "options": dict(point.weights.options),
        "part": point.part,
        "bits": point.bits,
        "change": point.change,
        "random": random,
        "random_read": read,
        "periodic": [periodic.length, periodic.word],
    }
    if subject.blocks is not None:
        row["sine"] = float(f"{subject.sine:.6g}")
        if caps.greedy:
            greedy, _ = of_greedy_words(subject, width=caps.width, cap=caps.greedy)
            row["greedy"] = [greedy.length, greedy.word]
    if point.bits <= 12 or subject.blocks is None:
        found = of_all_words(subject, most_states=caps.states)
        row["all"] = {"horizon": found.horizon, "closed": found.closed, "states": found.states}
        if found.word:
            row["all"]["word"] = list(found.word)
        failed_early = any(each is not None and each <= LEAD_IN for each in random)
        few = subject.blocks is None or len(subject.blocks) <= 12
        if few and found.horizon is None and not found.closed and not failed_early:
            draw = np.random.default_rng(SEED)
            word = draw.integers(automaton.num_symbols, size=LEAD_IN)
            later = of_all_words(subject, most_states=caps.states, after=word)
            row["absorbed"] = {"closed": later.closed, "states": later.states}
    return row


def changed(model: RecurrentModel, change: str) -> RecurrentModel:
    """The model with its weights changed; renormalising is part of a rounding model."""
    if change not in ("decayed", "turned"):
        return model
    found: Any = copy.deepcopy(model)
    if change == "decayed":
        found.weight.data *= DECAY
        return found  # type: ignore[no-any-return]
    blocks = found.operators().blocks
    draw = torch.Generator().manual_seed(SEED)
    numbers = torch.randn(*blocks.shape[1:], generator=draw, dtype=torch.float64)
    turns, _ = torch.linalg.qr(numbers)  # [N, b, b]
    found.weight.data = turns @ blocks @ turns.mT
    first = found.first.data.unflatten(-1, turns.shape[:2])
    found.first.data = torch.einsum("nij,nj->ni", turns, first).flatten()
    readout = found.readout.weight.data.unflatten(-1, turns.shape[:2])
    found.readout.weight.data = torch.einsum("nij,cnj->cni", turns, readout).flatten(1)
    return found  # type: ignore[no-any-return]


def _built(model: str, *tasks: str, **options: Any) -> list[Weights]:
    return [Weights("built", task, model, tuple(options.items())) for task in tasks]


def _trained(
    model: str, task: str, training: dict[str, Any] | None = None, **options: Any
) -> Weights:
    return Weights("trained", task, model, tuple(options.items()), tuple((training or {}).items()))


CYCLIC = [f"cyclic:n={n}" for n in (3, 5, 7, 25)]
ROTATIONS = _built("bilinear-rotation", *CYCLIC)
BLOCKS = _built("bilinear-block", "s3", "s4", "a5", "s5", "s5-swaps", "point")
TURNED = _built("bilinear-block", "cyclic:n=5", "cyclic:n=25", "s3", "s4", "s5")
DENSE = _built("bilinear", "s4", "s5")
FULL = _built("full-matrix", "cyclic:n=5", "s3", "s4")
DELTA = [
    *_built("deltanet", "parity", beta="double"),
    *_built("deltaproduct", "cyclic:n=5", "s3", "s4", "s5-swaps"),
]
SATURATING = [
    each
    for model in ("lstm", "gru", "second-order-rnn")
    for each in _built(model, "parity", "cyclic:n=5", "s3")
]
INTEGERS = [
    Weights("integers", task, "bilinear-block") for task in ("cyclic:n=5", "s3", "s4", "s5")
]
TRAINED = [
    _trained("bilinear-rotation", "cyclic:n=5", {"steps": 400}, hidden=8),
    _trained("bilinear-block", "s3", {"steps": 400}, hidden=8),
    _trained("bilinear", "s3", {"steps": 400}, hidden=8),
    _trained("bilinear", "s4", {"steps": 600}, hidden=16),
    _trained("deltanet", "parity", {"steps": 300}, beta="double", heads=1, width=16),
    _trained("deltaproduct", "s3", {"steps": 600}, heads=1, width=32),
    _trained("gru", "parity", {"steps": 300}, hidden=16),
    _trained("lstm", "parity", {"steps": 300}, hidden=16),
    _trained("gru", "cyclic:n=5", {"steps": 500}, hidden=32),
    _trained("second-order-rnn", "s3", {"steps": 600}, hidden=16),
]

PARTS: tuple[Part, ...] = ("gates", "accumulation", "weights", "all")


def all_points() -> Iterator[Point]:
    """Every point, those of the law first."""
    for weights in TURNED:
        yield from (Point(weights, bits, "state", "turned") for bits in BITS)
    for part in PARTS:
        yield from (Point(TURNED[4], bits, part, "turned") for bits in PART_BITS)
    for weights in INTEGERS:
        yield from (Point(weights, bits) for bits in FEW_BITS[:5])
    for weights in (TURNED[1], TURNED[3]):
        for part in PARTS:
            yield from (Point(weights, bits, part, "turned") for bits in PART_BITS[:9])
    for weights in [*BLOCKS, *ROTATIONS]:
        yield from (Point(weights, bits) for bits in FEW_BITS[:7])
    for weights in (TURNED[1], TURNED[4]):
        yield from (Point(weights, bits, "state", "renormalised") for bits in FEW_BITS[:7])
    yield from (Point(BLOCKS[3], bits, "state", "decayed") for bits in FEW_BITS[:7])
    for bits in FEW_BITS[1:6:2]:
        yield from (Point(weights, bits) for weights in [*DELTA, *TRAINED, *SATURATING])
    for bits in FEW_BITS[2:7:2]:
        yield from (Point(weights, bits) for weights in [*DELTA, *TRAINED])
    for weights in [*DELTA[2:4], *TRAINED[4:6]]:
        for part in SOME_PARTS:
            yield from (Point(weights, bits, part) for bits in FEW_BITS[1:6:2])
    for weights in FULL:
        yield from (Point(weights, bits) for bits in FEW_BITS[1:6:2])
    for weights in DENSE:
        yield from (Point(weights, bits) for bits in FEW_BITS[:7])


SOME_PARTS: tuple[Part, ...] = ("keys", "gates", "accumulation")


def kept_rows(path: Path) -> dict[str, dict[str, Any]]:
    """The recorded rows by name."""
    if not path.exists():
        return {}
    return {row["name"]: row for row in json.loads(path.read_text())["points"]}
