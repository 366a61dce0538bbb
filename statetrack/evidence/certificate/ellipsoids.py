"""The certificate of a network of one tanh layer: finitely many ellipsoids, mapped into each other.

A ball of radius r around c is {c + L y : |y| <= r} with the 2-norm, where L [D, D] belongs to a
context, a state of the task's automaton and the symbol that led to it: an ellipsoid, of a shape
that is learned so that one symbol brings states near those of sampled words nearer to one another.
Boxes leave out how errors of different units belong together; ellipsoids keep it. Otherwise the
proof is that of `saturating`: the first ball contains the first state; the image of a ball under a
symbol lies in a ball of the next context's shape; where no ball contains that image, it becomes
one, a little larger than it is; once all images are covered, every answer to every word is right.

The image. Let K be an approximate inverse of L' and delta >= |K L' - 1|. For h = c + L y the step
tanh(A h + b) is off from c' = tanh(A c + b) by S A L y, with a diagonal S of slopes of secants:
those of unit i lie between the least and the greatest tanh' on a_i +- r |(A L)_i|. With their
middle m and half-width w,

    |L'^-1 S A L y| <= r (|K diag(m) A L| + sum_i w_i |K_:i| |(A L)_i|) / (1 - delta),

K_:i being columns. The norm of a matrix N is bounded by the Frobenius norm of (N^T N)^(2^k), to the
power 2^-(k + 1), which needs sums and products alone.

As implemented: what float32 adds to A h + b is at most `TanhStep.rounding`, unit by unit, as all
states lie in [-1, 1] (the first one too), and tanh is off by 2^-20 at most (`statetrack.ops.boxes`
states the assumptions and the order of sums); tanh does not lengthen differences, so |K| times the
sum of both, in the 2-norm, over 1 - delta is added to r'. Those bounds have twice the rounding of
float32, and the other half covers that of c' in float64. The rest of float64, D being at most 32:
a product of matrices is off by 2^-40 of the product of their magnitudes at most, which is added to
its norms and to slopes; a sum of squares, also of those of a product of N^T N with itself (which
are at least the square of its trace over D), is right to D^1.5 2^-49, and 1 + 2^-30 is a factor of
every norm; coordinates K c, in which distances of centres are measured, are off by at most
(D + 4) 2^-52 |K| |c|, and twice that is added to a distance.

Source: quadratic forms that a system shortens, of Lyapunov; finitely many of them for products of
matrices as in Ando & Shih (1998), Simultaneous contractibility; regions of states as `saturating`.

S states, V symbols, C labels, D numbers of a state, N balls, M images; of tensors, K is the number
of contexts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import Tensor

from statetrack.evidence.budget import MULTIPLICATION
from statetrack.evidence.certificate.saturating import (
    LARGEST_WEIGHT,
    Covering,
    Network,
    best_cover,
    certificate_of,
)
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.models import WithBoxes
from statetrack.ops import FLOAT32, UNITS_OF_A_FUNCTION, TanhStep
from statetrack.sources import Automaton, Integers

METHOD: Final = "ellipsoids of states that are mapped into each other"

MOST_BALLS: Final = 60_000
"""Balls of one attempt."""

FEW_BALLS: Final = 4_000
"""Balls of every attempt, before any is given more."""

GROWN: Final = (0.03, 0.01, 0.003, 0.001, 0.0003)
"""By how much new balls grow, in the order in which it is tried.

Around sampled states balls of radius 1 are answered rightly.
"""

LARGEST_SIZE: Final = 32
"""Numbers of a state up to which shapes are learned."""

AT_ONCE: Final = 2_048
"""Images that are computed together."""

OUTWARD: Final = 1 + 2.0**-30
"""What norms are raised by."""

ROUNDED: Final = 2.0**-40
"""More than a product of four matrices of `LARGEST_SIZE` is off by, relative to magnitudes."""

SQUARINGS: Final = 3
"""k: products of N^T N with itself."""

MOST_DEFECT: Final = 2.0**-20
"""The largest delta of an inverse."""

SAMPLES: Final = 2_000
"""Sampled steps on which shapes are learned."""

ROUNDS: Final = 8
"""Rounds in which steps are weighted."""

POWERS: Final = 20
"""Symbols of the words that sums are taken over."""

DISCOUNT: Final = 1.1
"""How much faster than it grows a sum is discounted, per symbol."""

LEARNING: Final = 500
"""Multiplications of learning, for each sample and each number of a matrix times D."""

HARDEST: Final = 200
"""Steps with the largest factors, whose gradient is taken."""

RATE: Final = 0.01
"""The learning rate."""

MEAN_DECAY: Final = 0.9
"""Adam's decay of the mean of slopes, per step."""

SQUARE_DECAY: Final = 0.999
"""Adam's decay of the mean of squares of slopes, per step."""

GRADIENT_STEPS: Final = 400
"""Steps of the gradient that follow."""

REFRESHED: Final = 20
"""Steps after which the hardest ones are looked for again."""


@torch.no_grad()
def certify_ellipsoids(
    subject: Subject, *, budget: SearchBudget, seed: int = 0, most_balls: int = MOST_BALLS
) -> Certificate:
    """What ellipsoids prove about every word that can be drawn.

    `seed` draws the words on which shapes are learned, which does not decide what is proven.
    """
    begin = time.monotonic()
    model = subject.in_precision(torch.float64).model.cpu()
    assert isinstance(model, WithBoxes)
    step = model.tanh_step(FLOAT32)
    if step is None or step.matrices.shape[-1] > LARGEST_SIZE:
        return not_proven("the network is not one layer of tanh units", method=METHOD)
    if subject.dtype not in (torch.float32, torch.float64):
        return not_proven(f"rounding in {subject.dtype} is not counted", method=METHOD)
    if max(float(weight.abs().max()) for weight in model.parameters()) > LARGEST_WEIGHT:
        return not_proven("a weight is beyond 2^40, or not finite", method=METHOD)
    network = Network(Subject(model, subject.automaton))
    contexts = Contexts(subject.automaton)
    learning = LEARNING * SAMPLES * step.matrices.shape[-1] ** 3 * MULTIPLICATION
    if budget.left < learning:
        return not_proven("no time", method=METHOD, complete=False, seconds=0.0)
    budget.say("shapes of ellipsoids")
    budget.use(learning)
    shapes, factor = learned_shapes(network, contexts, step, seed)
    if shapes is None:
        return not_proven("no shapes were found", method=METHOD)
    make = partial(BallCover, network=network, contexts=contexts, step=step, shapes=shapes)
    attempts = [(size, partial(make, grown=size)) for size in GROWN]
    best = best_cover(attempts, {min(FEW_BALLS, most_balls), most_balls}, budget)
    return certificate_of(best, METHOD, factor, not budget.spent, time.monotonic() - begin)


class Contexts:
    """An automaton's states, each with the symbol that led to it: (x + 1) S + q; K of them.

    The start has led by no symbol, x = -1.
    """

    def __init__(self, automaton: Automaton) -> None:
        size, count = automaton.num_states, automaton.num_symbols + 1
        moves = torch.from_numpy(automaton.delta.copy()) + size * torch.arange(1, count)
        self.start = automaton.start
        self.delta = moves.repeat(count, 1)  # [K, V]
        self.drawable = torch.from_numpy(automaton.drawable.copy()).repeat(count, 1)
        self.scored = torch.from_numpy(automaton.scored.copy()).repeat(count)
        self.output = torch.from_numpy(automaton.output.copy()).repeat(count)

    def __len__(self) -> int:
        return len(self.delta)

    def followed(self, start: int, words: Tensor) -> Tensor:
        """The contexts [T + 1, B] around symbols [T, B]."""
        found = [torch.full(words.shape[1:], start)]
        for symbols in words:
            found.append(self.delta[found[-1], symbols])
        return torch.stack(found)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The shape L [K, D, D] of every context's balls, and what its inverse is known to.

    `inverse` is K, `defect` [K] is at least |K L - 1|, `blur` [K] at least the error of a distance
    of coordinates K c of points in [-1, 1]^D.
    """

    shape: Tensor
    inverse: Tensor
    defect: Tensor
    blur: Tensor

    @classmethod
    def of(cls, shape: Tensor) -> Shapes | None:
        """With bounds on what is inverted; None where an inverse is not known well enough."""
        inverse = torch.linalg.inv(shape)
        size = shape.shape[-1]
        rounding = (size + 4) * 2.0**-52
        exact = torch.eye(size, dtype=shape.dtype)
        off = (inverse @ shape - exact).abs() + rounding * (inverse.abs() @ shape.abs() + exact)
        defect = off.flatten(1).norm(dim=1) * OUTWARD
        if not bool((defect < MOST_DEFECT).all()):
            return None
        blur = 2 * rounding * inverse.abs().sum(-1).norm(dim=-1) * OUTWARD
        return cls(shape, inverse, defect, blur)


def norms_of(matrices: Tensor) -> Tensor:
    """Upper bounds of the 2-norms of matrices [M, D, D]: [M]."""
    largest = matrices.abs().flatten(1).amax(1).clamp(min=1e-150)
    scaled = matrices / largest[:, None, None]
    product = scaled.mT @ scaled
    for _ in range(SQUARINGS):
        product = product @ product
    found: Tensor = product.flatten(1).norm(dim=1).pow(0.5 ** (SQUARINGS + 1))
    return found * largest * OUTWARD


class Balls(NamedTuple):
    """Centres [M, D] and radii [M]."""

    centres: Tensor
    radii: Tensor

    def part(self, index: Any) -> Balls:
        """Those at an index."""
        return Balls(self.centres[index], self.radii[index])


@dataclass
class BallCover(Covering[Balls]):
    """Balls that cover the states of a network, each in a context."""

    contexts: Contexts
    step: TanhStep
    shapes: Shapes
    grown: float
    centres: Tensor = field(init=False)  # [N, D]
    coordinates: Tensor = field(init=False)  # [N, D]: K c
    radii: Tensor = field(init=False)  # [N]
    one, many, at_once = "an ellipsoid", "ellipsoids", AT_ONCE

    def __post_init__(self) -> None:
        contexts, first = self.contexts, self.network.first
        self.delta, self.drawable, self.scored = contexts.delta, contexts.drawable, contexts.scored
        self.states = torch.tensor([contexts.start])
        self.centres = first.centre
        off = self.shapes.inverse[self.states].abs() @ first.radius.unsqueeze(-1) * OUTWARD
        off = off.squeeze(-1).norm(dim=-1) / (1 - self.shapes.defect[self.states]) * OUTWARD
        self.radii = off + self.grown
        self.coordinates = self._coordinates(self.centres, self.states)

    def _coordinates(self, centres: Tensor, states: Tensor) -> Tensor:
        return (self.shapes.inverse[states] @ centres.unsqueeze(-1)).squeeze(-1)

    def images(
        self, centres: Tensor, radii: Tensor, before: Tensor, symbols: Tensor, after: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Centres [M, D] and radii [M] of balls that contain what symbols [M] make of others.

        They have the shapes of contexts `before` and `after` [M]. Everything in them that
        lies in [-1, 1]^D is followed, in float32 too.
        """
        matrices = self.step.matrices[symbols]
        argument = (matrices @ centres.unsqueeze(-1)).squeeze(-1) + self.step.biases[symbols]
        found = torch.tanh(argument)
        shape = self.shapes.shape[before]
        inner = matrices @ shape  # A L
        sizes = (matrices.abs() @ shape.abs()).norm(dim=-1) * OUTWARD
        lengths = inner.norm(dim=-1) * OUTWARD + ROUNDED * sizes
        reach = radii.unsqueeze(-1) * lengths * OUTWARD + self.step.rounding[symbols]
        low, high = argument - reach, argument + reach
        nearest = torch.where((low < 0) & (high > 0), 0.0, torch.minimum(low.abs(), high.abs()))
        farthest = torch.maximum(low.abs(), high.abs())
        least, most = (
            1 - torch.tanh(at).square() + off
            for at, off in ((farthest, -ROUNDED), (nearest, ROUNDED))
        )
        middle, width = (least + most) / 2, (most - least) / 2 * OUTWARD
        outer = self.shapes.inverse[after]  # K
        factor = norms_of(outer @ (middle.unsqueeze(-1) * inner))
        factor = factor + (width * outer.norm(dim=-2) * lengths).sum(-1) * OUTWARD
        errors = self.step.rounding[symbols] + UNITS_OF_A_FUNCTION * FLOAT32
        added = (outer.abs() @ errors.unsqueeze(-1)).squeeze(-1).norm(dim=-1)
        slack = ROUNDED * outer.flatten(1).norm(dim=-1) * sizes.norm(dim=-1) * radii
        grown = (factor * radii + added + slack) / (1 - self.shapes.defect[after])
        return found, grown * OUTWARD

    def worst_leads(self, centres: Tensor, radii: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of balls in contexts: the right label's lead, at least, and the widest lead."""
        labels = self.contexts.output[states]
        weight, bias = self.step.readout, self.step.readout_bias
        rows = weight - weight[labels].unsqueeze(-2)  # [M, C, D]
        offsets = bias - bias[labels].unsqueeze(-1)
        middle = (rows @ centres.unsqueeze(-1)).squeeze(-1) + offsets
        shape = self.shapes.shape[states]
        reach = (rows @ shape).norm(dim=-1) + ROUNDED * (rows.abs() @ shape.abs()).norm(dim=-1)
        reach = reach * radii.unsqueeze(-1) * OUTWARD
        sizes = weight.abs().sum(-1) + bias.abs() + 2.0**-100  # of states in [-1, 1]
        terms = FLOAT32 * (weight.shape[-1] + 2)
        sizes = terms / (1 - terms) * sizes * OUTWARD
        slack = sizes + sizes[labels].unsqueeze(-1)
        found = (middle + reach + slack).scatter(-1, labels.unsqueeze(-1), -torch.inf)
        return -found.amax(-1), middle.amax(-1) - middle.amin(-1)

    def _images(self, rows: Tensor, symbols: Tensor, after: Tensor, budget: SearchBudget) -> Balls:
        budget.use(len(rows) * (SQUARINGS + 4) * self.centres.shape[-1] ** 3 * MULTIPLICATION)
        before = self.states[rows]
        return Balls(*self.images(self.centres[rows], self.radii[rows], before, symbols, after))

    def _leads(self, images: Balls, states: Tensor) -> tuple[Tensor, Tensor]:
        return self.worst_leads(*images, states)

    def _cover(self, state: int, images: Balls, budget: SearchBudget) -> None:
        centres, radii = images
        places = torch.full((len(centres),), state)
        at = self._coordinates(centres, places)
        own = self.states == state
        budget.use(len(at) * (int(own.sum()) + 1) * at.shape[-1] * MULTIPLICATION)
        left = ~self._contained(state, at, radii, self.coordinates[own], self.radii[own])
        order = radii[left].argsort(descending=True)
        centres, at, radii = (part[left][order] for part in (centres, at, radii))
        new: list[tuple[Tensor, Tensor, Tensor]] = []
        while len(radii) and self.number + len(new) < self.most:
            ball = centres[:1], at[:1], radii[:1] + self.grown
            new.append(ball)
            budget.use(at.numel() * MULTIPLICATION)
            left = ~self._contained(state, at, radii, ball[1], ball[2])
            centres, at, radii = centres[left], at[left], radii[left]
        if new:
            more = [torch.cat(parts) for parts in zip(*new, strict=True)]
            self.centres = torch.cat([self.centres, more[0]])
            self.coordinates = torch.cat([self.coordinates, more[1]])
            self.radii = torch.cat([self.radii, more[2]])
            self.states = torch.cat([self.states, torch.full((len(new),), state)])

    def _contained(
        self, state: int, at: Tensor, radii: Tensor, others: Tensor, other_radii: Tensor
    ) -> Tensor:
        """Whether each of some balls [M] of a context lies in one of others [N]: [M]."""
        found = torch.zeros(len(at), dtype=torch.bool)
        if not len(others):
            return found
        distances = torch.cdist(at, others, compute_mode="donot_use_mm_for_euclid_dist")
        distances = (distances * OUTWARD + self.shapes.blur[state]) * OUTWARD
        distances = distances / (1 - self.shapes.defect[state])
        return (distances + radii.unsqueeze(-1) * OUTWARD <= other_radii).any(-1)


def learned_shapes(
    network: Network, contexts: Contexts, step: TanhStep, seed: int
) -> tuple[Shapes | None, float]:
    """Shapes in which a symbol shortens differences on sampled words, and the largest factor."""
    points, symbols = network.sampled_steps(seed)
    around = contexts.followed(contexts.start, symbols)
    before, after = around[:-1].flatten(), around[1:].flatten()
    points, symbols = points.flatten(0, 1), symbols.flatten()
    chosen = torch.from_numpy(_spread(len(points), SAMPLES))
    points, before, after, symbols = (part[chosen] for part in (points, before, after, symbols))
    matrices = step.matrices[symbols]
    images = torch.tanh((matrices @ points.unsqueeze(-1)).squeeze(-1) + step.biases[symbols])
    jacobians = (1 - images.square()).unsqueeze(-1) * matrices
    roots = _weighted_roots(jacobians, before, after, len(contexts))
    roots = _refined(roots, jacobians, before, after)
    factors = torch.linalg.matrix_norm(_changed(roots, jacobians, before, after), 2)
    # radius 1 around a sampled point is answered rightly
    scored = contexts.scored[after]
    shape = torch.linalg.inv(roots)
    if bool(scored.any()):
        labels = contexts.output[after[scored]]
        rows = step.readout - step.readout[labels].unsqueeze(-2)
        leads = (rows @ images[scored].unsqueeze(-1)).squeeze(-1)
        leads = leads + step.readout_bias - step.readout_bias[labels].unsqueeze(-1)
        reach = (rows @ shape[after[scored]]).norm(dim=-1)
        share = (-leads / reach).scatter(-1, labels.unsqueeze(-1), torch.inf).amin()
        shape = shape * share.clamp(min=1e-6)
    return Shapes.of(shape), float(factors.amax())


def _spread(number: int, most: int) -> Integers:
    """At most so many numbers below a number, at equal distances."""
    found: Integers = np.unique(np.linspace(0, number - 1, min(number, most)).astype(np.int64))
    return found


def _changed(roots: Tensor, jacobians: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """Jacobians [M, D, D] in the coordinates of contexts, whose roots are [K, D, D]."""
    found: Tensor = roots[after] @ jacobians @ torch.linalg.inv(roots)[before]
    return found


def _weighted_roots(jacobians: Tensor, before: Tensor, after: Tensor, num_contexts: int) -> Tensor:
    """Roots [K, D, D] of sums over words of J^T J.

    The words go on from a state and are discounted, so that the sum converges; steps that lengthen
    most get more weight, again and again.
    """
    size = jacobians.shape[-1]
    identity = torch.eye(size, dtype=jacobians.dtype).expand(num_contexts, -1, -1)
    weights = torch.ones(len(jacobians), dtype=jacobians.dtype)
    best, least = identity, float("inf")

    def read_earlier(forms: Tensor) -> Tensor:
        found = jacobians.mT @ forms[after] @ jacobians * shares[:, None, None]
        return torch.zeros_like(identity).index_add(0, before, found)

    for _ in range(ROUNDS):
        total = weights.new_zeros(num_contexts).index_add(0, before, weights)
        shares = weights / total[before]
        now, growth = identity, 1.0
        for _ in range(POWERS):
            now = read_earlier(now)
            growth = float(now.diagonal(dim1=1, dim2=2).sum())
            now = now / max(growth, 1e-30)
        forms, now = identity, identity
        for _ in range(POWERS):
            now = read_earlier(now) / max(growth * DISCOUNT, 1e-30)
            forms = forms + now
        roots, failed = torch.linalg.cholesky_ex((forms + forms.mT) / 2)
        if bool(failed.any()):
            break
        roots = roots.mT
        factors = torch.linalg.matrix_norm(_changed(roots, jacobians, before, after), 2)
        if float(factors.amax()) < least:
            best, least = roots, float(factors.amax())
        weights = weights * (factors / factors.mean()).square()
        weights = weights / weights.mean()
    return best


def _refined(roots: Tensor, jacobians: Tensor, before: Tensor, after: Tensor) -> Tensor:
    """The roots after steps of the gradient of the largest factors, if they are then smaller."""
    best, least = roots, float("inf")
    variables = roots.clone().requires_grad_()
    mean, square = torch.zeros_like(roots), torch.zeros_like(roots)
    hard = torch.arange(len(before))
    for step in range(GRADIENT_STEPS + 1):
        if step % REFRESHED == 0:
            changed = _changed(variables.detach(), jacobians, before, after)
            factors = torch.linalg.matrix_norm(changed, 2)
            if float(factors.amax()) < least:
                best, least = variables.detach().clone(), float(factors.amax())
            hard = factors.topk(min(HARDEST, len(factors))).indices
        with torch.enable_grad():
            changed = _changed(variables, jacobians[hard], before[hard], after[hard])
            left, _, right = torch.linalg.svd(changed.detach())
            # the gradient of the largest singular value, by its vectors
            product = (changed @ right[:, 0].unsqueeze(-1)).squeeze(-1)
            factors = (left[:, :, 0] * product).sum(-1)
            sharp = 10 + 90 * step / GRADIENT_STEPS
            loss = torch.logsumexp(sharp * factors.clamp(min=1e-9).log(), 0) / sharp
            (slope,) = torch.autograd.grad(loss, variables)
        # Adam (Kingma and Ba 2015); torch's own imports its compiler, which takes a second
        mean.lerp_(slope, 1 - MEAN_DECAY)
        square.mul_(SQUARE_DECAY).addcmul_(slope, slope, value=1 - SQUARE_DECAY)
        spread = square.sqrt() / (1 - SQUARE_DECAY ** (step + 1)) ** 0.5 + 1e-8
        with torch.no_grad():
            variables.addcdiv_(mean, spread, value=-RATE / (1 - MEAN_DECAY ** (step + 1)))
    return best
