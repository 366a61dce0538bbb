"""What a linear model computes at every step: its matrices, and bounds on the rounding of each.

A state h of n coordinates goes to A(x) h, and what is computed differs from it by at most E(x) |h|,
coordinate by coordinate. The matrices are those of the weights as they are, in exact arithmetic, up
to what float64 cannot hold; that is in `own`, which every bound adds. `rounding` covers whatever
the model runs: `step`, `scan` in pieces of any lengths, any order of summation, and fused or
separate multiplications. The running normalisation divides by powers of two, which rounds nothing.

With unit roundoff u and gamma_k = k u / (1 - k u), a sum of k products is off by at most gamma_k
times the sum of their magnitudes (Higham 2002, Accuracy and Stability of Numerical Algorithms,
section 3.1); a product with a weight that is zero is exact, so k counts the other ones. By
structure:

- Dense matrices and blocks: gamma_k |A(x)| for k weights in a row. An additive term is one more
  weight, of a coordinate that is always 1.
- Factors, A(x) = L diag(s) R^T, that are summed to matrices in float64 and rounded once: a dense
  matrix, gamma_(k + 1) |A(x)|.
- Factors that are not: what is kept is p = R^T h + e in rank space (`RankSpace`), with an
  error e that only rounding makes; z = s * p. `scan` without gradients multiplies by R^T L, which
  is rounded once; then h = L z, and e is at most gamma_(K + 3) |R^T L| |z|. `step` and the seam
  between two pieces go through h = L z + f, |f| <= gamma_(K + 3) |L| |z|, and then e is at most
  gamma_(H + 1) |R^T| |h|. All three are added. H and K count coordinates and terms that are not
  zero. Logits are (C L) z, where C L sums over every coordinate at which neither C nor L is zero,
  J of them, whatever R is there. They are off from C h by at most gamma_(J + K + 3) |C| |L| |z|
  and by |C| |f|.
- Gains: scanned in chunks, a state after t symbols of a piece has at most 5 t / 4 roundings, each a
  share of itself: u for real ones, sqrt(5) u of the modulus for complex ones. So 4 u |s| covers
  both, for complex ones as every entry of E, since it is the modulus that is off by a share.
- Rotations: `step` multiplies by rounded cosines and sines. `scan` sums the angles of a piece and
  turns its first state. With w the unit roundoff of the accumulator, 2^-53 in float64, and a the
  largest angle, the sum of t angles is off by gamma_t t a in any order, so by w t^2 a, which is
  charged as a share of w T a for each of the t symbols, for pieces to T = 2^20 symbols. Of a
  float32 model that is u a / 512, but of a float64 model, whose accumulator is no wider than
  itself, 2^20 u a. To 64 symbols the sum is rounded to the model's type, by u t a; longer sums are
  reduced modulo 2 pi first, which is off by less than w (t a + 8), and rounded by at most 4 u. Sums
  in float32 elsewhere than on a CPU cost 64 u a. Cosine and sine are taken to be right to 2 units
  in the last place, at most 2 u, as the vector libraries under torch promise 1, and the product
  with the first state adds gamma_2. So every entry of E is (a k + 9) u, k = 1 + (T + 2) w / u, or
  with 64 in place of 1. This is enough for t symbols: an angle that is off by t shares is that of a
  path on which each symbol turns by one share too much.

*Range.* What underflows in a sum of n products is off by less than n 2^-149 (denormal numbers are
kept, as by default), which is below 2^-80 of the largest coordinate (`UNDERFLOW`) while that stays
above 2^-50: for the next state and for every logit. Nothing overflows while it stays below 2^50,
since rows of weights add up to less than 2^60 (`LARGEST_ROW`), else the model is refused. That
states stay within is proven in `comparison`.

V symbols, n coordinates, C labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from statetrack.evidence.subject import exactly
from statetrack.models import NORMALISE_EVERY, LinearModel
from statetrack.ops import (
    BlockOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    RotationOperators,
)
from statetrack.sources import Floats

OWN = 2.0**-52
"""Twice the unit roundoff of the float64 in which bounds are computed."""

UNDERFLOW = 2.0**-80
"""More than underflow adds to a coordinate, relative to the largest one of states in range."""

RANGE = (2.0**-20, 2.0**20)
"""The sizes of centres, and of the first state, for which that is so."""

SPAN = 2.0**30
"""By how much the largest coordinate of a state may differ between two divisions by it."""

LARGEST_SIZE = 2.0**40
"""The largest coordinate of a state that is never divided."""

LARGEST_ROW = 2.0**60
"""More than the magnitudes of the weights of any row add up to."""

LONGEST_PIECE = 2.0**20
"""Symbols of a piece that is scanned at once, at most."""

LONGEST_FLOAT32_SUM = 64
"""Symbols of a piece up to which `rotation_recurrence` keeps the sum of angles in float32."""

UNIT_OF_SUMS = 2.0**-53
"""The unit roundoff of the accumulator of angles."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RankSpace:
    """How factored operators are applied: p = R^T h + e, and h' = L diag(s) p + f after a symbol x.

    With |f| <= `leave_rounding[x]` |p| and a new |e| <= `rounding[x]` |p| + `enter_rounding` |h'|,
    at first `first_rounding`. Logits are rounded by at most `readout_rounding[x]` |p|.
    """

    enter: Floats  # R^T: [R, n]
    leave: Floats  # L diag(s): [V, n, R]
    enter_rounding: Floats  # [R, n], nonnegative
    leave_rounding: Floats  # [V, n, R], nonnegative
    rounding: Floats  # [V, R, R], nonnegative
    readout_rounding: Floats  # [V, C, R], nonnegative
    first_rounding: Floats  # [R], nonnegative


@dataclass(frozen=True, eq=False, kw_only=True)
class Arithmetic:
    """The matrices of every symbol, what rounding adds to them, and the first state and readout.

    With a `rank_space`, the rounding there comes on top of the other.
    """

    matrices: Floats  # [V, n, n]
    rounding: Floats  # [V, n, n], nonnegative
    first: Floats  # [n]
    first_rounding: Floats  # [n], nonnegative
    readout: Floats  # [C, n]
    readout_rounding: Floats  # [C, n], nonnegative
    blocks: tuple[slice, ...]  # coordinates that no matrix mixes with others
    rank_space: RankSpace | None = None
    cast: Floats | None = None
    """By which share of itself every coordinate is rounded after a step, [n]; None: not again."""
    cast_floor: float = 0.0
    """What such a rounding is off by, whatever the size of a coordinate."""
    floor: Floats | None = None
    """What is off by no share of a state, of every symbol, [V, n]; None: what `UNDERFLOW` says."""
    readout_cast: float = 0.0
    """By which share of itself a logit is rounded again."""
    readout_floor: float = 0.0
    """What a logit is off by, whatever its size."""
    ceiling: float = LARGEST_SIZE
    """The size of states that are never divided up to which nothing overflows."""
    span: float | None = None
    """The ratio of the largest sizes of a state and the smallest at which nothing underflows or
    overflows; infinite where states are never divided, None where numbers are real."""


class Unsupported(Exception):
    """The arithmetic of this model is not covered; the text says what of it."""


@dataclass(frozen=True)
class Both:
    """What a model computes in its own floating-point type, and the same weights computed exactly.

    The matrices are the same; the rounding of the second is that of float64, in which its bounds
    are computed.
    """

    executed: Arithmetic
    real: Arithmetic

    def divided_by(self, factors: Floats) -> Both:
        """The same with the operators of symbols divided by positive numbers [V]."""
        return Both(_divided(self.executed, factors), _divided(self.real, factors))


def _divided(arithmetic: Arithmetic, factors: Floats) -> Arithmetic:
    by = 1 / factors[:, None, None]
    space, span = arithmetic.rank_space, arithmetic.span
    if space is not None:
        space = replace(
            space,
            leave=space.leave * by,
            leave_rounding=space.leave_rounding * by + 2 * OWN * abs(space.leave * by),
            rounding=space.rounding * by,
            readout_rounding=space.readout_rounding * by,
        )
    if span is not None:
        ratio = max(1.0, float(factors.max())) / min(1.0, float(factors.min()))
        span = span / ratio**NORMALISE_EVERY
    matrices = arithmetic.matrices * by
    rounding = arithmetic.rounding * by + 2 * OWN * abs(matrices)
    return replace(arithmetic, matrices=matrices, rounding=rounding, rank_space=space, span=span)


def arithmetic_of(model: LinearModel) -> Both:
    """What a linear model computes. Raises `Unsupported` for what is not covered."""
    with torch.no_grad():
        operators, running = model.operators(), model.running_operators()
        table = model.additive_table()
    summed = isinstance(operators, FactoredOperators) and isinstance(running, DenseOperators)
    of_sums: Floats | float = 0.0
    unit = torch.finfo(model.readout.weight.dtype).eps / 2
    weight, first = exactly(model.readout.weight), exactly(model.first)
    bias = None if model.readout.bias is None else exactly(model.readout.bias)
    terms = None if table is None else exactly(table)
    if terms is not None and not isinstance(running, DenseOperators | BlockOperators):
        raise Unsupported("additive terms beside operators that are not dense or in blocks")
    if isinstance(running, FactoredOperators):
        if bias is not None:
            raise Unsupported("a readout bias beside factored operators")
        return _factored(running, first, weight, unit)
    if isinstance(operators, RotationOperators):
        matrices, rounding, size = _rotations(operators, unit)
    elif isinstance(running, DenseOperators | BlockOperators):
        matrices = exactly(running.dense())
        counts = gamma(terms_of(matrices) + (terms is not None) + summed, unit)
        rounding = counts[..., None] * abs(matrices)
        size = len(first)
        if isinstance(operators, FactoredOperators):
            matrices, of_sums = _summed(operators)
        if isinstance(operators, BlockOperators):
            size = operators.blocks.shape[-1]
    elif isinstance(operators, DiagonalOperators):
        matrices, size = exactly(operators.dense()), 1
        rounding = 4 * unit * abs(matrices)
    elif isinstance(operators, ComplexDiagonalOperators):
        matrices, size = exactly(operators.dense()), 2
        moduli = np.hypot(*exactly(torch.view_as_real(operators.gains)).transpose(2, 0, 1))
        rounding = 4 * unit * assembled(moduli[..., None, None] * np.ones((2, 2)))
    else:
        raise Unsupported("operators of this structure")
    executed = Arithmetic(
        matrices=matrices,
        rounding=rounding,
        first=first,
        first_rounding=np.zeros_like(first),
        readout=weight,
        readout_rounding=gamma(terms_of(weight) + 1, unit)[:, None] * abs(weight),
        blocks=tuple(slice(at, at + size) for at in range(0, len(first), size)),
        span=SPAN if model.scale_invariant else np.inf,
    )
    if terms is not None or bias is not None:
        executed = with_constant(executed, terms, bias, unit)
    own = (executed.matrices.shape[-1] + 4) * OWN
    return both_of(
        executed,
        own * abs(executed.matrices) + of_sums,
        own * abs(executed.first),
        own * abs(executed.readout),
    )


def _require_range(*weights: Floats) -> None:
    """Raise `Unsupported` where the weights of a row are too large for sums of their products."""
    for rows in weights:
        if not (abs(rows).sum(-1) < LARGEST_ROW).all():
            raise Unsupported("weights that add up to more than 2^60")


def both_of(executed: Arithmetic, matrices: Floats, first: Floats, readout: Floats) -> Both:
    """The arithmetic with bounds on the rounding of float64 added, and with nothing else."""
    real = replace(
        executed,
        rounding=matrices,
        first_rounding=first,
        readout_rounding=readout,
        rank_space=None,
        cast=None,
        cast_floor=0.0,
        floor=None,
        readout_cast=0.0,
        readout_floor=0.0,
        span=None,
    )
    _require_range(executed.matrices, executed.readout)
    return Both(
        replace(
            executed,
            rounding=executed.rounding + matrices,
            first_rounding=executed.first_rounding + first,
            readout_rounding=executed.readout_rounding + readout,
        ),
        real,
    )


def gamma(count: Floats | int, unit: float) -> Floats:
    """By which share of its magnitudes a sum of so many products is off: k u / (1 - k u)."""
    product = np.asarray(count, np.float64) * unit
    bound: Floats = product / (1 - product)
    return bound


def terms_of(matrices: Floats) -> Floats:
    """How many weights of each row are not zero."""
    counts: Floats = (matrices != 0).sum(-1).astype(np.float64)
    return counts


def _rotations(operators: RotationOperators, unit: float) -> tuple[Floats, Floats, int]:
    angles = exactly(operators.angles)
    blocks = np.empty((*angles.shape, 2, 2))
    blocks[..., 0, 0] = blocks[..., 1, 1] = np.cos(angles)
    blocks[..., 1, 0] = np.sin(angles)
    blocks[..., 0, 1] = -blocks[..., 1, 0]
    rounded = 1 if operators.angles.device.type == "cpu" else LONGEST_FLOAT32_SUM
    accumulated = (LONGEST_PIECE + 2) * UNIT_OF_SUMS / unit
    largest = np.broadcast_to(abs(angles).max(0), angles.shape)
    bounds = (((rounded + accumulated) * largest + 9) * unit)[..., None, None] * np.ones((2, 2))
    return assembled(blocks), assembled(bounds), 2


def assembled(blocks: Floats) -> Floats:
    """Block-diagonal matrices [V, n, n] of blocks [V, N, b, b]."""
    num_symbols, count, size, _ = blocks.shape
    matrices = np.zeros((num_symbols, count, size, count, size))
    places = np.arange(count)
    matrices[:, places, :, places] = blocks.transpose(1, 0, 2, 3)
    return matrices.reshape(num_symbols, count * size, count * size)


def _summed(operators: FactoredOperators) -> tuple[Floats, Floats]:
    """L diag(s) R^T in float64, [V, n, n], and what that and another such sum are off by."""
    left, right = exactly(operators.left), exactly(operators.right)
    leave = left * exactly(operators.gains)[:, None, :]
    own = 2 * (left.shape[1] + 4) * OWN
    return leave @ right.T, own * (abs(leave) @ abs(right).T)


def _factored(operators: FactoredOperators, first: Floats, weight: Floats, unit: float) -> Both:
    left, right = exactly(operators.left), exactly(operators.right)
    gains = exactly(operators.gains)[:, None, :]
    hidden, rank = left.shape
    coordinates = int((left.any(1) & right.any(1)).sum())
    terms = int((left.any(0) & right.any(0)).sum())
    leave = left * gains
    sizes = abs(leave)
    together = abs(right.T @ left) + (hidden + 4) * OWN * (abs(right).T @ abs(left))
    leave_rounding = gamma(terms + 3, unit) * sizes
    read = int((left.any(1) & weight.any(0)).sum())  # C L sums these, wherever `right` is zero
    of_logits = gamma(read + terms + 3, unit)
    _require_range(right.T, leave, abs(weight) @ abs(left), together[None] * abs(gains))
    taken = float(abs(right.T).sum(-1).max() * abs(gains).max())
    given = float(abs(left).sum(-1).max())
    executed = Arithmetic(
        matrices=leave @ right.T,
        rounding=np.zeros((len(gains), hidden, hidden)),
        first=first,
        first_rounding=np.zeros_like(first),
        readout=weight,
        readout_rounding=np.zeros_like(weight),
        blocks=(slice(0, hidden),),
        # numbers in rank space are at most `taken` times those of the state, which are at most
        # `given` times these
        span=SPAN / (max(taken, 1.0) * max(given, 1.0)),
        rank_space=RankSpace(
            enter=right.T,
            leave=leave,
            enter_rounding=gamma(coordinates + 1, unit) * abs(right.T),
            leave_rounding=leave_rounding,
            rounding=gamma(terms + 3, unit) * together * abs(gains),
            readout_rounding=abs(weight) @ (of_logits * sizes + leave_rounding),
            first_rounding=gamma(hidden, unit) * (abs(first) @ abs(right)),
        ),
    )
    own = (rank + 4) * OWN
    return both_of(executed, own * (abs(leave) @ abs(right).T), own * abs(first), own * abs(weight))


def with_constant(
    found: Arithmetic, terms: Floats | None, bias: Floats | None, unit: float
) -> Arithmetic:
    """With one more coordinate, which is 1: what it is multiplied by is added."""
    num_symbols, size, _ = found.matrices.shape
    matrices = np.zeros((num_symbols, size + 1, size + 1))
    rounding = np.zeros_like(matrices)
    matrices[:, :size, :size], rounding[:, :size, :size] = found.matrices, found.rounding
    matrices[:, size, size] = 1.0
    if terms is not None:
        matrices[:, :size, size] = terms
        counts = gamma(terms_of(found.matrices) + 1, unit)
        rounding[:, :size, size] = counts * abs(terms)
    num_labels = len(found.readout)
    column = np.zeros(num_labels) if bias is None else bias
    counts = gamma(terms_of(found.readout) + 1, unit)
    return replace(
        found,
        matrices=matrices,
        rounding=rounding,
        first=np.append(found.first, 1.0),
        first_rounding=np.append(found.first_rounding, 0.0),
        readout=np.append(found.readout, column[:, None], -1),
        readout_rounding=np.append(found.readout_rounding, (counts * abs(column))[:, None], -1),
        blocks=(slice(0, size + 1),)
        if terms is not None
        else (*found.blocks, slice(size, size + 1)),
    )
