"""What factored operators round, followed beside the errors of the state that it makes.

The model keeps p = R^T h + e, where h = psi(s) + d is a centre and the error of the state. One step
of symbol x, from a state s to t, is, up to a factor common to all,

    d' = A(x) d + r(s, x) + L diag(s_x) e + f,    |f| <= F(x) |p|
    |e'| <= E(x) |p| + B |psi(t) + d'|,           |p| <= |R^T psi(s)| + |R^T d| + |e|

with the bounds of `arithmetic.RankSpace`, and logits are those of psi(t) + d' and an error y' with
|y'| <= Y(x) |p|. With weights v, the largest E(x) |R^T psi(s)| + B |psi(t)| coordinate by
coordinate over all states and symbols, and w, the largest Y(x) |R^T psi(s)|, the largest
|e_i| / v_i and |y_i| / w_i are two more norms of the comparison system: each is about 1 after every
step. So e enters the state as L diag(s_x) e with |e| <= v: its directions are kept, and it is
measured once, in the norm of the state.

R rank, n coordinates, S states, V symbols, C labels, k parts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from statetrack.evidence.certificate.arithmetic import OWN, RANGE, UNDERFLOW, RankSpace
from statetrack.evidence.certificate.comparison import UP, Comparison
from statetrack.evidence.certificate.splitting import Splitting
from statetrack.sources import Floats

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The right label and the other one of every row of margins: [P] and [P]."""

LEAST_WEIGHT = 2.0**-20
"""The smallest weight of a coordinate, as a share of the largest: none is divided by zero."""


def with_rounding(
    exact: Comparison,
    rank_space: RankSpace,
    centres: Floats,
    splitting: Splitting,
    labels: Pairs,
) -> Comparison:
    """The comparison system of factored operators with rounding, from the one without: k + 2 parts.

    `centres` [S, n]. Where numbers in rank space are so small or large that underflow is not
    covered, nothing is proven of the system.
    """
    width = centres.shape[1]
    own = (width + 4) * OWN
    sizes = abs(rank_space.enter)
    at_centres = abs(centres @ rank_space.enter.T) + own * (abs(centres) @ sizes.T)  # [S, R]
    largest = at_centres.max(1)
    if not RANGE[0] < largest.min() <= largest.max() < RANGE[1]:
        return _unbounded(exact)
    at_centres += UNDERFLOW * largest.max()
    # the largest coordinates over vectors of norm 1 of every part: [k, R]
    reaches = np.stack(
        [
            part.dual(rank_space.enter @ part.columns) + own * (sizes @ part.reach)
            for part in splitting.parts
        ]
    )
    entering = abs(centres) @ rank_space.enter_rounding.T  # [S, R]
    weights = _weights(_rounded(rank_space.rounding, at_centres).max((0, 1)) + entering.max(0))
    read_weights = _weights(_rounded(rank_space.readout_rounding, at_centres).max((0, 1)))
    count = len(splitting.parts)
    # |p| by what it comes from: a unit of each part, of e, and the centres
    sources = np.concatenate([reaches, weights[None], at_centres])
    gains = np.zeros((count + 2, count + 2))
    terms = np.append(exact.terms, [0.0, 0.0])
    gains[:count, :count] = exact.gains
    gains[:count, count] = _into_parts(rank_space, splitting, weights)
    left = _rounded(rank_space.leave_rounding, sources)
    left += 2 * left @ splitting.defect.T
    for place, part in enumerate(splitting.parts):
        sizes_left = part.size(np.moveaxis(left @ abs(part.coordinates).T, -1, 0)).max(0)
        gains[place, : count + 1] += sizes_left[: count + 1]
        terms[place] += sizes_left[count + 1 :].max()
    for place, rounding, scale in (
        (count, rank_space.rounding, weights),
        (count + 1, rank_space.readout_rounding, read_weights),
    ):
        found = _in_weights(_rounded(rounding, sources), scale).max(0)
        gains[place, : count + 1] = found[: count + 1]
        terms[place] = found[count + 1 :].max()
    # what enters from the state after the symbol, whose error is one step of the other parts
    again = np.array(
        [_in_weights(rank_space.enter_rounding @ part.reach, weights) for part in splitting.parts]
    )
    gains[count] += again @ gains[:count]
    terms[count] += again @ terms[:count] + _in_weights(entering, weights).max()
    first = _in_weights(rank_space.first_rounding, weights)
    right, other = labels
    read = (read_weights[right] + read_weights[other])[:, None]
    return Comparison(
        gains=gains * UP,
        terms=terms * UP,
        first=np.append(exact.first, [first, 0.0]) * UP,
        margins=exact.margins,
        costs=np.concatenate([exact.costs, np.zeros_like(read), read], 1) * UP,
    )


def _unbounded(exact: Comparison) -> Comparison:
    return replace(exact, first=np.full_like(exact.first, np.inf))


def _rounded(rounding: Floats, sources: Floats) -> Floats:
    """Bounds [V, N, m] by `rounding` [V, m, R] for magnitudes [N, R]."""
    found: Floats = sources @ rounding.transpose(0, 2, 1)
    return found


def _weights(largest: Floats) -> Floats:
    """Positive weights that are at least the largest magnitudes."""
    found: Floats = largest + LEAST_WEIGHT * largest.max()
    return found


def _in_weights(magnitudes: Floats, weights: Floats) -> Floats:
    """The norms [...] of vectors of at most these magnitudes [..., m]."""
    assert (weights > 0).all()
    found: Floats = (magnitudes / weights).max(-1)
    return found


def _into_parts(rank_space: RankSpace, splitting: Splitting, weights: Floats) -> Floats:
    """The norms [k] of what L diag(s) e adds to every part, over symbols and all |e| <= weights."""
    reached = abs(rank_space.leave) @ weights  # [V, n]
    width = reached.shape[1]
    off = (width + len(weights) + 4) * OWN * reached + 2 * reached @ splitting.defect.T
    found = []
    for part in splitting.parts:
        inside = abs(part.coordinates @ rank_space.leave) @ weights  # [V, d]
        found.append(float((part.size(inside.T) + part.size(abs(part.coordinates) @ off.T)).max()))
    return np.array(found)
