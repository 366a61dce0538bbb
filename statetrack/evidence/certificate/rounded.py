"""The certificate of a model under a rounding model: what its casts add, and boxes of cast states.

*Linear models.* `models.Rounded` reads a word symbol by symbol. Weights, operators and additive
terms are cast once; what is certified are the matrices as they are applied, so that no bound is
needed for these casts. With u the unit roundoff of the type of sums (that in which numbers are held
included), k the weights of a row that are not zero and w that of the type of products, a step is
off by

    E |h| + e,    E = ((1 + gamma_(k + 2)) (1 + w)^2 - 1) |A|

where w counts only if the state may have numbers that are not of that type, and e is what numbers
below the normal ones lose: the smallest number of the type of sums for each product and each sum,
and that of products times the magnitudes of a row. Factors take two such products one after the
other, gains alone one product. Then the state is cast to its type, with unit roundoff q and
smallest number s: off by at most q |h'| + s for the h' that was computed, coordinate by coordinate,
after every symbol (more than is cast where a state is kept for a chunk or a call). Logits are read
in the type in which numbers are held, and cast again. Nothing overflows while a state stays below
`ceiling`, which `comparison` proves: a quarter of the largest number of every type over the largest
sum of the magnitudes of a row. States are not divided by powers of two here.

*Boxes.* A cast never decreases: what lies between a and b is cast to between cast(a) and cast(b).
So a step takes a box of states to the box of cast bounds, and where the type of states is coarser
than what a step is off by, these are most often one number: errors do not add up, since casts take
them back. The boxes are those of `saturating`, mapped into each other. Boxes of networks with
saturating units are cast alike, after their logits are read.

*Whole numbers.* Where all numbers of a step are of one type that every type includes, no cast
changes any, and the orbits of `exact` are those of the rounding model.

V symbols, n coordinates, C labels, N boxes.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.certificate.arithmetic import (
    LARGEST_SIZE,
    OWN,
    Arithmetic,
    Both,
    Unsupported,
    assembled,
    both_of,
    gamma,
    terms_of,
    with_constant,
)
from statetrack.evidence.certificate.centres import Edges
from statetrack.evidence.certificate.exact import closes_exactly
from statetrack.evidence.certificate.linear import (
    ENOUGH,
    EXACT,
    METHOD,
    BestProof,
    automata_of,
)
from statetrack.evidence.certificate.saturating import Cover, certify_saturating
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.rounding_horizons import PARTS
from statetrack.evidence.subject import Subject, exactly
from statetrack.models import LinearModel, Rounded, has_boxes, is_linear
from statetrack.ops import (
    BlockOperators,
    Box,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    rounded,
)
from statetrack.rounding import FORMATS, FloatFormat, Rounding
from statetrack.sources import Floats

BOXES = "boxes of cast states that are mapped into each other"

GROWN = (0.0, 1e-9, 1e-5)
"""By how much new boxes grow, in the order in which it is tried: most are one state."""

MOST_BOXES = 4_000
"""Boxes of one attempt."""

ROUNDED_TWICE = 1 + 2.0**-20
"""What a unit roundoff is multiplied by where float64 rounds before."""


def includes(other: FloatFormat, one: FloatFormat) -> bool:
    """Whether every number of one type is a number of the other."""
    ranges = one.smallest >= other.smallest and one.largest <= other.largest
    return ranges and one.mantissa <= other.mantissa


class Types:
    """The types of a rounding model as a step passes through them."""

    def __init__(self, model: Rounded) -> None:
        rounding: Rounding = model.rounding
        single = model.casts.dtype == torch.float32
        self.held = FORMATS["float32" if single else "float64"]
        sums = rounding.format("accumulation")
        assert sums is not None
        self.sums = self.held if includes(sums, self.held) else sums
        self.unit = max(self.sums.unit * ROUNDED_TWICE, self.held.unit)
        state = rounding.format("state")
        self.state = None if state is None or includes(state, self.sums) else state
        each = self.state if rounding.every == 1 else None
        products = rounding.format("products")
        before = each or self.sums
        self.products = None if products is None or includes(products, before) else products
        self.factors = products
        self.readout = rounding.format("readout")
        self.all = [each for each in (self.held, self.sums, state, products) if each is not None]
        self.saturate = rounding.saturate

    def common(self, rounding: Rounding) -> FloatFormat | None:
        """A type that all those of a step include, float32 among them; None where logits are cast.

        Where all numbers of a step are of it, no cast changes any.
        """
        if self.readout is not None or rounding.renormalise:
            return None
        named = (rounding.format(part) for part in PARTS)
        formats = [FORMATS["float32"], *(each for each in named if each is not None)]
        return FloatFormat(
            min(each.exponent for each in formats), min(each.mantissa for each in formats)
        )

    def in_sums(self, numbers: Tensor) -> Tensor:
        """Numbers as a step takes them out of a table."""
        return rounded(numbers, self.sums)

    def as_factors(self, numbers: Tensor) -> Tensor:
        """Numbers as factors of a matrix product."""
        return rounded(numbers, self.factors)


def arithmetic_under(model: Rounded) -> Both:
    """What a linear model computes under its rounding model. Raises `Unsupported`."""
    linear, types = model.model, Types(model)
    assert isinstance(linear, LinearModel)
    if model.rounding.renormalise:
        raise Unsupported("states whose norm is restored")
    begun = model.casts.part("state", linear.first)
    if not torch.equal(types.as_factors(begun), begun):
        types.products = types.factors  # a first state need not be of the type of sums
    with torch.no_grad():
        operators, table = model.operators(), linear.additive_table()
    matrices, rounding, floor, size, sums = _step(operators, types)
    first = exactly(begun)
    readout = exactly(linear.readout.weight)
    bias = None if linear.readout.bias is None else exactly(linear.readout.bias)
    terms = None
    if table is not None:
        terms = exactly(types.in_sums(model.casts.part("keys", table)))
    if not all(np.isfinite(each).all() for each in (matrices, first, readout)):
        raise Unsupported("weights that are beyond the largest number of a type")
    width = len(first)
    own = (width + 4) * OWN
    executed = Arithmetic(
        matrices=matrices,
        rounding=rounding,
        first=first,
        first_rounding=np.zeros_like(first),
        readout=readout,
        readout_rounding=gamma(terms_of(readout) + 1, types.held.unit)[:, None] * abs(readout),
        blocks=tuple(slice(at, at + size) for at in range(0, width, size)),
        span=np.inf,
    )
    if terms is not None or bias is not None:
        executed = with_constant(executed, terms, bias, types.unit)
    cast, more = np.zeros(len(executed.first)), np.zeros_like(executed.matrices[..., 0])
    more[:, :width] = 2 * floor + types.sums.smallest
    if types.state is not None:
        cast[:width] = types.state.unit
    rows = max(float(sums.max()), float(abs(executed.matrices).sum(-1).max()), 1.0)
    limits = [each.largest / rows for each in types.all]
    read = max(float(abs(executed.readout).sum(-1).max()), 1.0)
    limits += [each.largest / read for each in (types.readout, types.held) if each is not None]
    executed = replace(
        executed,
        cast=cast,
        cast_floor=0.0 if types.state is None else types.state.smallest,
        floor=more,
        readout_cast=0.0 if types.readout is None else types.readout.unit,
        readout_floor=(width + 2) * types.held.smallest
        + (0.0 if types.readout is None else types.readout.smallest),
        ceiling=min(LARGEST_SIZE, *limits) / 4,
    )
    if not abs(first).max() < executed.ceiling:
        raise Unsupported("a first state that is beyond the largest number of a type")
    sizes = [own * abs(each) for each in (executed.matrices, executed.first, executed.readout)]
    return both_of(executed, *sizes)


def _step(operators: object, types: Types) -> tuple[Floats, Floats, Floats, int, Floats]:
    """The matrices, what a step is off by as a share of |h| and else, the size of blocks, sums.

    The last are sums of magnitudes of rows, of which none may overflow.
    """
    small = types.sums.smallest
    if isinstance(operators, DiagonalOperators):
        matrices = exactly(torch.diag_embed(types.in_sums(operators.gains)))
        sizes = abs(matrices)
        return matrices, gamma(2, types.unit) * sizes, sizes.sum(-1) * 0 + small, 1, sizes.sum(-1)
    if isinstance(operators, ComplexDiagonalOperators):
        turned = ComplexDiagonalOperators(types.in_sums(operators.gains))
        matrices = exactly(turned.dense())
        parts = exactly(torch.view_as_real(turned.gains))
        pairs = abs(np.stack([parts, parts[..., ::-1]], -2))
        rounding = assembled(gamma(5, types.unit) * pairs)
        sums = abs(matrices).sum(-1)
        return matrices, rounding, np.full_like(sums, 4 * small), 2, sums
    again = 0.0 if types.products is None else types.products.unit
    low = 0.0 if types.products is None else types.products.smallest
    if isinstance(operators, FactoredOperators):
        left, right = (
            exactly(types.as_factors(each)) for each in (operators.left, operators.right)
        )
        gains = exactly(types.in_sums(operators.gains))
        again = 0.0 if types.factors is None else types.factors.unit
        low = 0.0 if types.factors is None else types.factors.smallest
        leave = left * gains[:, None, :]
        sizes = abs(leave) @ abs(right).T
        most = int((right != 0).sum(0).max()) + int((left != 0).sum(1).max()) + 4
        rounding = ((1 + gamma(most, types.unit)) * (1 + again) ** 3 - 1) * sizes
        # what is off in rank space, before and after the gains
        off = 2 * len(left) * small + abs(right).sum(0) * low
        off = abs(gains) * off + small + low
        floor = 2 * (off @ abs(left).T) + 2 * left.shape[1] * small
        inside = abs(right).sum(0) * np.maximum(abs(gains), 1)
        sums = np.maximum((inside @ abs(left).T).max(-1), inside.max(-1))[:, None]
        return leave @ right.T, rounding, floor, len(left), sums
    if not isinstance(operators, DenseOperators | BlockOperators):
        raise Unsupported("operators of this structure")
    entries = types.in_sums(operators.dense())
    factors = types.as_factors(entries)
    matrices, sizes = exactly(factors), abs(exactly(factors))
    size = matrices.shape[-1]
    if isinstance(operators, BlockOperators):
        size = operators.blocks.shape[-1]
    counts = gamma(terms_of(matrices) + 2, types.unit)
    rounding = ((1 + counts[..., None]) * (1 + again) ** 2 - 1) * sizes
    if size == 1:  # torch may multiply numbers in place of matrices, and casts no factor then
        rounding += 2 * abs(exactly(entries) - matrices)
    floor = 2 * (terms_of(matrices) + 1) * small + sizes.sum(-1) * low
    return matrices, rounding, floor, size, sizes.sum(-1)


def certify_rounded(subject: Subject, *, budget: SearchBudget, seed: int = 0) -> Certificate:
    """The certificate of a model under its rounding model; `seed` is that of `saturating`."""
    model = subject.model
    assert isinstance(model, Rounded)
    if is_linear(model.model):
        return _certify_linear(subject, model, budget)
    if has_boxes(model.model):
        return certify_saturating(subject, budget=budget, seed=seed)
    return not_proven(
        "no bound is derived for this class of models between the casts of a rounding model: none "
        "for the norms, gates and keys of its layers"
    )


def _certify_linear(subject: Subject, model: Rounded, budget: SearchBudget) -> Certificate:
    began = time.monotonic()
    linear, types = model.model, Types(model)
    assert isinstance(linear, LinearModel)
    minimal = Edges.of(subject.automaton, minimal=True)
    if (within := types.common(model.rounding)) is not None:
        budget.say("following states that are computed exactly")
        if closes_exactly(linear, minimal, budget, within):
            nothing = not_proven("", method=EXACT, seconds=time.monotonic() - began)
            return replace(nothing, verdict="all lengths", verdict_real="all lengths", residual=0.0)
    try:
        both = arithmetic_under(model)
    except Unsupported as error:
        return not_proven(f"the arithmetic of {error} is not covered", method=METHOD)
    search = BestProof(budget.part(0.6))
    for transitions, rounds in automata_of(subject, minimal):
        search.attempt(both, transitions, rounds)
        if budget.spent or search.order >= (ENOUGH, ENOUGH):
            break
    found = search.certificate(time.monotonic() - began)
    if types.state is None or model.rounding.every > 1:
        return found
    cover = _cover(CastStates(subject, both.executed), budget)
    seconds = time.monotonic() - began
    if cover.closed:
        method = f"{BOXES}: {cover.number:,}"
        found = replace(found, verdict="all lengths", length=None, method=method, reason="")
    elif cover.proven > found.proves:
        found = replace(found, verdict="to length", length=cover.proven, method=BOXES)
    return replace(found, seconds=seconds, complete=found.complete and not budget.spent)


def _cover(network: CastStates, budget: SearchBudget) -> Cover:
    """The boxes that prove most, of those grown by several sizes."""
    states, width = network.automaton.num_states, network.first.lower.shape[-1]
    best: Cover | None = None
    for size in GROWN:
        budget.say(f"boxes of cast states grown by {size:g}")
        cover = Cover(MOST_BOXES, network, torch.full((states, width), size, dtype=torch.float64))
        cover.run(budget)
        if best is None or (cover.closed, cover.proven) > (best.closed, best.proven):
            best = cover
        if best.closed or budget.spent:
            break
    assert best is not None
    return best


class CastStates:
    """A linear model under a rounding model, as boxes of cast states follow it.

    It has what `saturating.Cover` asks of a network.
    """

    def __init__(self, subject: Subject, arithmetic: Arithmetic) -> None:
        model = subject.model
        assert isinstance(model, Rounded)
        self.automaton = subject.automaton
        self._output = torch.from_numpy(self.automaton.output.copy())
        self._types = Types(model)
        assert model.rounding.every == 1 and self._types.state is not None
        assert arithmetic.cast is not None
        width = int((arithmetic.cast > 0).sum())
        first = torch.from_numpy(arithmetic.first)
        self.first = Box(first.unsqueeze(0), first.unsqueeze(0))
        self._width = width
        names = ("matrices", "rounding", "floor", "readout", "readout_rounding")
        parts = (torch.from_numpy(np.ascontiguousarray(getattr(arithmetic, n))) for n in names)
        self._matrices, self._rounding, self._floor, self._readout, self._off = parts
        self._arithmetic = arithmetic

    def images(self, box: Box, symbols: Tensor) -> Box:
        """Boxes of what symbols make of states in boxes, cast."""
        matrices = self._matrices[symbols]
        largest = box.largest.unsqueeze(-1)
        centre = (matrices @ box.centre.unsqueeze(-1)).squeeze(-1)
        radius = matrices.abs() @ box.radius.unsqueeze(-1) * (1 + 2.0**-40)
        radius = (radius + self._rounding[symbols] @ largest * 2).squeeze(-1)
        radius = radius + self._floor[symbols] + 4 * OWN * centre.abs()
        wide = (largest.squeeze(-1) >= self._arithmetic.ceiling).any(-1, keepdim=True)
        radius = torch.where(wide, torch.inf, radius)
        return Box(self._cast(centre - radius), self._cast(centre + radius))

    def _cast(self, numbers: Tensor) -> Tensor:
        """The type of states, but for the coordinate that is 1."""
        found = rounded(numbers, self._types.state, saturate=self._types.saturate)
        found[..., self._width :] = 1.0
        return found

    def kept(self, box: Box) -> Box:
        """The images themselves, which are cast."""
        return box

    def worst_leads(self, box: Box, states: Tensor) -> tuple[Tensor, Tensor]:
        """Of boxes in automaton states: the right label's lead, at least, and the widest lead."""
        labels = self._output[states]
        own = self._readout[labels].unsqueeze(-2)
        rows = own - self._readout
        centre = (rows @ box.centre.unsqueeze(-1)).squeeze(-1)
        least = centre - (rows.abs() @ box.radius.unsqueeze(-1)).squeeze(-1)
        sizes = box.largest @ self._readout.abs().mT
        off = box.largest @ self._off.mT + self._arithmetic.readout_cast * 2 * sizes
        off = off + self._arithmetic.readout_floor + self._readout.shape[1] * OWN * sizes * 4
        off = off + off.gather(-1, labels.unsqueeze(-1))
        margins = (least - off).scatter(-1, labels.unsqueeze(-1), torch.inf)
        return margins.amin(-1), centre.amax(-1) - centre.amin(-1)
