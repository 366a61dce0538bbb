"""The certificate of a network with saturating units: finitely many boxes, mapped into each other.

Every box belongs to a state of the task's automaton. The first contains the network's first state.
The image of a box under a symbol lies in the box that interval bounds give (`WithBoxes`); where no
box of the next automaton state contains that image, it becomes a box itself, a little larger than
it is. Where the network corrects errors faster than the added size grows, images soon lie in boxes
that are there already, and nothing is left to do: then every state that any word leads to is in a
box of the right automaton state, and where the right label's logit is the largest on all of them,
every answer to every word, of any length, is right. Where a label is not proven, or there are too
many boxes, answers to words up to the number of symbols at which that happened are still proven.

The boxes need not be those of the automaton's states: a network that knows a state in several ways,
by its last symbols for instance, gets a box for each of them.

As implemented: bounds are computed in float64, and every operation is given the error that it may
have in float32 (`statetrack.ops.boxes` states the assumptions), so the boxes contain the states of
the network as torch runs it in float32 on a CPU, and those of exact arithmetic. Only words that can
be drawn count.

Interval bounds are written out here, and not taken from a library such as auto_LiRPA: the proof
needs boxes that are mapped into each other, with every rounding counted.

Source: interval bounds as in Gowal et al. (2018), arXiv:1810.12715; a network that keeps to
disjoint regions of its states as in Casey (1996), doi:10.1162/neco.1996.8.6.1135, and Omlin & Giles
(1996), doi:10.1145/235809.235811.

S states, V symbols, C labels, D numbers of a state, N boxes.
"""

from __future__ import annotations

import abc
import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from statetrack.evidence.budget import BOX, MULTIPLICATION, SearchBudget
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import Verdict
from statetrack.evidence.subject import Subject
from statetrack.models import Rounded, WithBoxes
from statetrack.ops import FLOAT32, UNITS_OF_A_FUNCTION, Box, rounded
from statetrack.rounding import FORMATS
from statetrack.sources import Automaton, Integers

MOST_BOXES: Final = 20_000
"""Boxes of one attempt."""

FEW_BOXES: Final = 2_000
"""Boxes of every attempt, before any is given more."""

AT_ONCE: Final = 4_096
"""Images that are computed together."""

COMPARED_AT_ONCE: Final = 2**22
"""Numbers that are compared together."""

GROWN_ALIKE: Final = (0.1, 0.03, 0.2, 0.01)
"""By how much new boxes grow, alike in all directions, in the order in which it is tried."""

GROWN_BY_NEED: Final = (0.1, 0.03, 0.01, 0.003, 0.001)
"""The same where each number of the state grows as errors of it do."""

SMALL: Final = 1e-6
"""The size of an error whose growth is measured."""

LARGEST_WEIGHT: Final = 2.0**40
"""Larger weights may leave the range of float32."""

METHOD: Final = "boxes of states that are mapped into each other"


@torch.no_grad()
def certify_saturating(
    subject: Subject, *, budget: SearchBudget, seed: int = 0, most_boxes: int = MOST_BOXES
) -> Certificate:
    """What boxes prove about every word that can be drawn.

    `seed` draws the words on which the growth of errors is measured: they decide how boxes grow,
    not what is proven. Attempts that end with many boxes are continued up to `most_boxes`.
    """
    begin = time.monotonic()
    under = subject.model if isinstance(subject.model, Rounded) else None
    if under is not None and (missing := _not_covered(under)):
        return not_proven(missing, method=METHOD)
    plain = subject.in_precision(torch.float64).model if under is None else copy.deepcopy(under)
    model = plain.cpu()
    if subject.dtype not in (torch.float32, torch.float64):
        return not_proven(f"rounding in {subject.dtype} is not counted", method=METHOD)
    if max(float(weight.abs().max()) for weight in model.parameters()) > LARGEST_WEIGHT:
        return not_proven("a weight is beyond 2^40, or not finite", method=METHOD)
    network: Network
    if under is None:
        network = Network(Subject(model, subject.automaton))
    else:
        network = CastNetwork(subject, under, unit_of(under))
    alike = torch.ones(network.automaton.num_states, network.first.lower.shape[-1])
    attempts = [(size, alike.double()) for size in GROWN_ALIKE]
    needed, growth = network.growth(seed)
    attempts += [(size, needed) for size in GROWN_BY_NEED]
    making = [(size, partial(Cover, network=network, grown=size * each)) for size, each in attempts]
    best = best_cover(making, {min(FEW_BOXES, most_boxes), most_boxes}, budget)
    return certificate_of(best, METHOD, growth, not budget.spent, time.monotonic() - begin)


def best_cover(
    attempts: Sequence[tuple[float, Callable[[int], CoverT]]], caps: set[int], budget: SearchBudget
) -> CoverT | None:
    """Of attempts, by what they grow regions, the cover that proves most; None without time.

    Those that end with as many regions as one cap are made again with the next.
    """
    best: CoverT | None = None
    for most in sorted(caps):
        again = []
        for size, make in attempts:
            if budget.spent:
                break
            cover = make(most)
            budget.say(f"{cover.many} grown by {size:g}")
            cover.run(budget)
            if best is None or (cover.closed, cover.proven) > (best.closed, best.proven):
                best = cover
            if cover.closed:
                return best
            if cover.number >= most:
                again.append((size, make))
        attempts = again
    return best


def certificate_of(
    best: Covering[Any] | None, method: str, growth: float, complete: bool, seconds: float
) -> Certificate:
    """What the best attempt proves."""
    if best is None:
        return not_proven("no time", method=method, complete=False, seconds=seconds)
    length = None if best.closed or not best.proven else best.proven
    verdict: Verdict = "to length" if best.proven else "not proven"
    if best.closed:
        verdict = "all lengths"
    drifts = f"near sampled states a step multiplies an error by up to {growth:.3g}"
    return Certificate(
        verdict=verdict,
        length=length,
        verdict_real=verdict,
        length_real=length,
        method=f"{method}: {best.number:,}" if best.closed else method,
        margin=best.margin / best.widest if best.proven and best.widest else None,
        residual=None,
        growth=None,
        reason="" if best.closed else f"{best.reason} ({drifts})",
        complete=complete or best.closed,
        seconds=seconds,
    )


class Network:
    """A model's boxes, beside its automaton."""

    def __init__(self, subject: Subject, unit: float = FLOAT32) -> None:
        assert isinstance(subject.model, WithBoxes)
        self.subject = subject
        self.unit = unit
        self.model: WithBoxes = subject.model
        self.automaton: Automaton = subject.automaton
        point = self.model.flat(subject.first(1))
        self.first = Box(point, point).grown(UNITS_OF_A_FUNCTION * unit)
        self.output = torch.from_numpy(self.automaton.output.copy())

    def images(self, box: Box, symbols: Tensor) -> Box:
        """Boxes that contain what symbols make of boxes, in float32 too."""
        return self.model.box_step(symbols, box, self.unit)

    def kept(self, box: Box) -> Box:
        """The boxes themselves."""
        return box

    def worst_leads(self, box: Box, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of boxes in automaton states: the right label's lead, at least, and the widest lead."""
        labels = self.output[states]
        found = self.model.box_leads(box, labels, self.unit)
        others = found.scatter(-1, labels.unsqueeze(-1), -torch.inf)
        if others.shape[-1] == 1:
            others = torch.full_like(others, -torch.inf)
        middle = self.model.box_leads(Box(box.centre, box.centre), labels)
        return -others.amax(-1), middle.amax(-1) - middle.amin(-1)

    def growth(self, seed: int) -> tuple[Tensor, float]:
        """How errors share out over the numbers of a state, [S, D], and the factor of one step.

        Small errors of those sizes become, after one symbol, errors of at most those sizes times
        the factor, at the states that were sampled.
        """
        words, states = self._walks(seed)
        points = self._reached(words).flatten(0, 1)
        before = torch.from_numpy(states[:, :-1].T.reshape(-1))
        after = torch.from_numpy(states[:, 1:].T.reshape(-1))
        symbols = torch.from_numpy(words.T.reshape(-1))
        size = points.shape[-1]
        scale = torch.ones(self.automaton.num_states, size, dtype=torch.float64)
        factor = 1.0
        for _ in range(20):
            radius = SMALL * scale[before]
            image = self.model.box_step(symbols, Box(points - radius, points + radius))
            grown = torch.zeros_like(scale).scatter_reduce(
                0, after.unsqueeze(-1).expand(-1, size), image.radius / SMALL, "amax"
            )
            factor = float((grown / scale).amax())
            scale = (grown / grown.amax()).clamp(min=0.05)
        return scale, factor

    def sampled_steps(self, seed: int) -> tuple[Tensor, Tensor]:
        """States [T, B, D] before every symbol [T, B] of random words."""
        words, _ = self._walks(seed)
        return self._reached(words), torch.from_numpy(words.T.copy())

    def _reached(self, words: Integers) -> Tensor:
        """The states [T, B, D] before every symbol of words [B, T]."""
        state = self.subject.first(len(words))
        found = []
        for symbols in words.T:
            found.append(self.model.flat(state))
            state = self.subject.step(symbols, state)[1]
        return torch.stack(found)

    def _walks(self, seed: int, num_words: int = 64, length: int = 48) -> tuple[Integers, Integers]:
        """Words [B, T] of symbols that can be drawn, all alike, and the states around them."""
        rng = np.random.default_rng(seed)
        drawable, delta = self.automaton.drawable, self.automaton.delta
        states = np.full((num_words, length + 1), self.automaton.start, np.int64)
        words = np.zeros((num_words, length), np.int64)
        for position in range(length):
            now = states[:, position]
            words[:, position] = (rng.random((num_words, len(delta[0]))) * drawable[now]).argmax(1)
            states[:, position + 1] = delta[now, words[:, position]]
        return words, states


class CastNetwork(Network):
    """The same under a rounding model: the next state is cast after its logits are read.

    A cast never decreases, so that bounds are cast. `unit` is twice the roundoff of the type of
    sums, which leaves room for weights that are rounded to it.
    """

    def __init__(self, subject: Subject, model: Rounded, unit: float) -> None:
        assert isinstance(model.model, WithBoxes)
        self._rounding = model.rounding
        wide = copy.deepcopy(model.model).double().cpu()
        super().__init__(Subject(wide, subject.automaton), unit)
        self.first = self.kept(self.first)
        read, readout = wide.get_submodule("readout"), model.rounding.format("readout")
        assert isinstance(read, torch.nn.Linear)
        sizes = read.weight.abs().sum(1) + read.bias.abs()  # of logits of numbers in [-1, 1]
        self.off = torch.zeros_like(sizes)
        if readout is not None:
            self.off = 1.01 * readout.unit * sizes + readout.smallest  # with their own rounding

    def kept(self, box: Box) -> Box:
        """The box of cast states, and of states that are not where only some are cast."""
        to, saturate = self._rounding.format("state"), self._rounding.saturate
        cast = box.mapped(lambda bound: rounded(bound, to, saturate=saturate))
        if self._rounding.every == 1:
            return cast
        return Box(torch.minimum(box.lower, cast.lower), torch.maximum(box.upper, cast.upper))

    def worst_leads(self, box: Box, states: Tensor) -> tuple[Tensor, Tensor]:
        """The same with what a cast of logits is off by, of the right one and of the others."""
        margins, widest = super().worst_leads(box, states)
        return margins - self.off[self.output[states]] - self.off.max(), widest


def unit_of(model: Rounded) -> float:
    """Twice the roundoff of one operation, and twice that of float64, in which bounds are."""
    sums = model.rounding.format("accumulation")
    assert sums is not None
    return 2 * max(sums.unit, 2 * FORMATS["float64"].unit) * (1 + 2.0**-10)


def _not_covered(model: Rounded) -> str:
    """What of a rounding model is not counted of networks, in words; empty where all is."""
    products, sums = model.rounding.format("products"), model.rounding.format("accumulation")
    assert sums is not None
    if products is not None:
        return f"factors of matrix products in {model.rounding.products} are not counted"
    if sums.exponent < FORMATS["float32"].exponent:
        return f"sums of small numbers in {model.rounding.accumulation} are not counted"
    return ""


class Followable(Protocol):
    """What `Cover` asks of a network."""

    automaton: Automaton
    first: Box

    def images(self, box: Box, symbols: Tensor) -> Box:
        """Boxes that contain what symbols make of boxes, as logits are read of it."""

    def kept(self, box: Box) -> Box:
        """Boxes that contain what is kept of these."""

    def worst_leads(self, box: Box, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of boxes in automaton states: the right label's lead, at least, and the widest lead."""


class Regions(Protocol):
    """Some regions of states."""

    def part(self, index: Any) -> Self:
        """Those at an index."""


RegionsT = TypeVar("RegionsT", bound=Regions)
CoverT = TypeVar("CoverT", bound="Covering[Any]")


@dataclass
class Covering(abc.ABC, Generic[RegionsT]):
    """Regions that cover the states of a network: those that were found, and what they prove.

    Every region belongs to a state of `delta` [S, V]: of the task's automaton, or of one that has
    all of its states once in each of several contexts.
    """

    one: ClassVar[str]
    """A region, with its article."""
    many: ClassVar[str]
    """Regions."""
    at_once: ClassVar[int]
    """Images that are computed together."""
    most: int
    """So many regions end the attempt."""
    network: Followable
    proven: int = field(default=0, init=False)
    """Answers to words of so many symbols are proven."""
    closed: bool = field(default=False, init=False)
    """Whether every image lies in a region."""
    margin: float = field(default=float("inf"), init=False)
    """The least lead of a right label, in logits."""
    widest: float = field(default=0.0, init=False)
    """The largest difference between two logits at a centre."""
    reason: str = field(default="", init=False)
    states: Tensor = field(init=False)  # [N]
    delta: Tensor = field(init=False)  # [S, V]
    drawable: Tensor = field(init=False)  # [S, V]
    scored: Tensor = field(init=False)  # [S]

    @property
    def number(self) -> int:
        """N."""
        return len(self.states)

    def run(self, budget: SearchBudget) -> None:
        """Add regions until all images are covered, or a label, a cap or the budget ends it."""
        done = 0
        size = max(1, self.at_once // self.delta.shape[1])
        while done < self.number:
            end = self.number  # regions that no shorter word needs
            for first in range(done, end, size):
                if budget.spent:
                    self.reason = f"the budget ended after {self.number:,} {self.many}"
                    return
                if not self._follow(first, min(end, first + size), budget):
                    return
            done = end
            self.proven += 1
        self.closed = True

    def _follow(self, first: int, end: int, budget: SearchBudget) -> bool:
        """Cover the images of regions; False where a label is not proven, or there are too many."""
        rows, symbols = self.drawable[self.states[first:end]].nonzero(as_tuple=True)
        rows = rows + first
        after = self.delta[self.states[rows], symbols]
        images = self._images(rows, symbols, after, budget)
        asked = self.scored[after]
        if bool(asked.any()):
            margins, widths = self._leads(images.part(asked), after[asked])
            self.widest = max(self.widest, float(widths.max()))
            if not bool((margins > 0).all()):
                names = self.network.automaton.states
                name = names[int(after[asked][margins.argmin()]) % len(names)]
                self.reason = f"{self.one} of state '{name}' has no single answer"
                return False
            self.margin = min(self.margin, float(margins.min()))
        for state in after.unique().tolist():
            self._cover(state, images.part(after == state), budget)
            if self.number >= self.most:
                self.reason = f"{self.number:,} {self.many} do not cover all states"
                return False
        return True

    @abc.abstractmethod
    def _images(
        self, rows: Tensor, symbols: Tensor, after: Tensor, budget: SearchBudget
    ) -> RegionsT:
        """Regions that contain what symbols make of the regions in some rows, [M] each."""

    @abc.abstractmethod
    def _leads(self, images: RegionsT, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of images in states [M]: the right label's lead, at least, and the widest lead."""

    @abc.abstractmethod
    def _cover(self, state: int, images: RegionsT, budget: SearchBudget) -> None:
        """Add regions of a state until all images lie in one."""


@dataclass
class Cover(Covering[Box]):
    """Boxes that cover the states of a network."""

    grown: Tensor  # [S, D]: by how much a new box is larger than an image
    lower: Tensor = field(init=False)  # [N, D]
    upper: Tensor = field(init=False)
    one, many, at_once = "a box", "boxes", AT_ONCE

    def __post_init__(self) -> None:
        automaton = self.network.automaton
        self.states = torch.tensor([automaton.start])
        self.lower, self.upper = self.network.first.grown(self.grown[self.states])
        self.delta = torch.from_numpy(automaton.delta.copy())
        self.drawable = torch.from_numpy(automaton.drawable.copy())
        self.scored = torch.from_numpy(automaton.scored.copy())

    def _follow(self, first: int, end: int, budget: SearchBudget) -> bool:
        images = (end - first) * self.delta.shape[1]
        compared = self.lower.numel() / len(self.delta)  # those of the image's own state
        budget.use(images * (BOX + 3 * MULTIPLICATION * compared))
        return super()._follow(first, end, budget)

    def _images(self, rows: Tensor, symbols: Tensor, after: Tensor, budget: SearchBudget) -> Box:
        return self.network.images(Box(self.lower[rows], self.upper[rows]), symbols)

    def _leads(self, images: Box, states: Tensor) -> tuple[Tensor, Tensor]:
        return self.network.worst_leads(images, states)

    def _cover(self, state: int, images: Box, budget: SearchBudget) -> None:
        images, own = self.network.kept(images), self.states == state
        left = ~contained(images, Box(self.lower[own], self.upper[own]))
        images = images.part(left)
        images = images.part(images.radius.sum(-1).argsort(descending=True))
        lower, upper, grown = (each.numpy() for each in (*images, self.grown[state]))
        new: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        room = self.most - self.number
        while len(lower) and len(new) < room:
            low, high = lower[0] - grown, upper[0] + grown
            new.append((low, high))
            inside = ((lower >= low) & (upper <= high)).all(-1)  # not where bounds are no numbers
            lower, upper = lower[~inside], upper[~inside]
        if new:
            lower, upper = (np.stack(bounds) for bounds in zip(*new, strict=True))
            self.lower = torch.cat([self.lower, torch.from_numpy(lower)])
            self.upper = torch.cat([self.upper, torch.from_numpy(upper)])
            self.states = torch.cat([self.states, torch.full((len(new),), state)])


def contained(inner: Box, outer: Box) -> Tensor:
    """Whether each of some boxes [M, D] lies in one of others [N, D]: [M]."""
    found = torch.zeros(len(inner.lower), dtype=torch.bool)
    if not len(outer.lower):
        return found
    size = max(1, COMPARED_AT_ONCE // outer.lower.numel())
    for first in range(0, len(found), size):
        piece = slice(first, first + size)
        above = inner.lower[piece].unsqueeze(1) >= outer.lower
        below = inner.upper[piece].unsqueeze(1) <= outer.upper
        found[piece] = (above & below).all(-1).any(-1)
    return found
