"""Splittings of the state: a part in which the centres lie, with a norm, and the rest of it.

A splitting is a list of parts. Part j has columns U_j [n, d_j] and coordinates K_j [d_j, n], with
sum_j U_j K_j = 1 up to the rounding of float64 (`defect`), and the norm of coordinates c is
|c|_1 or |c|_2.

n coordinates, S states, V symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from statetrack.evidence.certificate.arithmetic import OWN
from statetrack.sources import Floats

LESS = 1 - 1e-6
"""The share of a factor below which another one counts as smaller."""

NO_LENGTHENING = 1 + 1e-9
"""A factor up to which no other coordinates are looked for: errors do not grow."""


CONTRACTS = 0.95
"""A factor that is small enough: what is in the rest dies out."""

RATES = (1.1, 1.02, 1.5)
"""How much faster than it grows the sum over words is discounted, per symbol."""

REWEIGHTINGS = 8
POWERS = 20


@dataclass(frozen=True, eq=False)
class Subspace:
    """Columns and coordinates of a part, and its norm: 1 or 2.

    `centres` says that the columns are the centres of all states, in order, on the part's block.
    """

    columns: Floats  # [n, d]
    coordinates: Floats  # [d, n]
    norm: int
    centres: bool = False

    def size(self, vectors: Floats) -> Floats:
        """The norms of coordinates [d, ...] along the first axis."""
        is_sum = self.norm == 1
        found: Floats = abs(vectors).sum(0) if is_sum else np.sqrt(np.square(vectors).sum(0))
        return found

    def dual(self, rows: Floats) -> Floats:
        """The largest value of rows [..., d] on coordinates of norm 1: [...]."""
        largest = self.norm == 1
        found: Floats = (
            abs(rows).max(-1, initial=0.0) if largest else np.sqrt(np.square(rows).sum(-1))
        )
        return found

    @cached_property
    def reach(self) -> Floats:
        """The largest magnitude of every coordinate of the state over vectors of norm 1: [n]."""
        return self.dual(self.columns)


def gain(matrices: Floats, source: Subspace, target: Subspace) -> float:
    """A bound on the norms of matrices [V, d_target, d_source] of coordinates."""
    if not matrices.any():
        return 0.0
    if source.norm == 1:
        return float(target.size(matrices.transpose(1, 0, 2)).max())
    if target.norm == 2:
        return float(np.linalg.norm(matrices, 2, axis=(1, 2)).max())
    return float(np.sqrt(np.square(matrices).sum(-1)).sum(-1).max())


def gain_of_magnitudes(matrices: Floats, source: Subspace, target: Subspace) -> Floats:
    """The same of nonnegative matrices [..., V, d_target, d_source]: [...].

    Without singular values: a norm 2 is at most the root of the largest sum of a row and the
    largest of a column.
    """
    sizes: Floats
    if source.norm == 1:
        sizes = target.size(np.moveaxis(matrices, -2, 0)).max(-1)
    elif target.norm == 1:
        sizes = np.sqrt(np.square(matrices).sum(-1)).sum(-1)
    else:
        sizes = np.sqrt(matrices.sum(-1).max(-1) * matrices.sum(-2).max(-1))
    return np.asarray(sizes.max(-1))


@dataclass(frozen=True, eq=False)
class Splitting:
    """Parts that add up to the whole state, and what is missing to it."""

    parts: Sequence[Subspace]
    name: str

    @cached_property
    def alike(self) -> list[tuple[list[int], Subspace, Floats]]:
        """The places of parts of one norm and width, the first of these, and their |K_j|."""
        places: dict[tuple[int, int], list[int]] = {}
        for place, part in enumerate(self.parts):
            places.setdefault((part.norm, len(part.coordinates)), []).append(place)
        return [
            (own, self.parts[own[0]], abs(np.stack([self.parts[j].coordinates for j in own])))
            for own in places.values()
        ]

    @cached_property
    def reads(self) -> NDArray[np.bool_]:
        """Which coordinates of the state each part depends on: [k, n]."""
        return np.array([part.coordinates.any(0) for part in self.parts])

    @cached_property
    def defect(self) -> Floats:
        """The magnitudes of 1 - sum_j U_j K_j: [n, n], with the rounding of its computation."""
        size = self.parts[0].columns.shape[0]
        total, sizes = np.zeros((size, size)), np.zeros((size, size))
        for part in self.parts:
            total += part.columns @ part.coordinates
            sizes += abs(part.columns) @ abs(part.coordinates)
        found: Floats = abs(np.eye(size) - total) + (size + 4) * OWN * (sizes + np.eye(size))
        return found


def splittings(
    centres: Floats,
    blocks: Sequence[slice],
    matrices: Floats,
    observed: Floats | None,
    tolerance: float,
) -> Iterator[Splitting]:
    """The splittings that have, for each block of coordinates, the centres [S, n] and the rest.

    There is one for each norm of the centres' parts. `observed` [n, n] is a Gramian of what is
    read later, in whose sense the rest is orthogonal to the centres; without it, the rest is
    orthogonal to them. Directions in which the centres extend by less than `tolerance` belong to
    the rest.
    """
    size = centres.shape[1]
    signals: dict[int, list[Subspace]] = {2: [], 1: []}
    rests, total = [], 0
    for block in blocks:
        left, values, right = np.linalg.svd(centres[:, block], full_matrices=False)
        rank = int((values > tolerance).sum())
        left, values, right = left[:, :rank], values[:rank], right[:rank]
        functionals = right  # coordinates in the basis `right`, along the rest
        if observed is not None and rank:
            product = right @ observed[block, block]
            functionals = np.linalg.lstsq(product @ right.T, product, rcond=None)[0]
        if rank:
            basis, inverse = right.T * values, functionals / values[:, None]
            signals[2].append(_placed(basis, inverse, block, size, 2))
            signals[1].append(_placed(centres[:, block].T, left @ inverse, block, size, 1, True))
        width = block.stop - block.start
        if rank < width:
            projector = np.eye(width) - right.T @ functionals
            columns = np.linalg.svd(projector)[0][:, : width - rank]
            found = _contracting(columns, columns.T @ projector, matrices[:, block, block])
            rests.append(_placed(*found, block, size, 2))
        total += rank
    across = "all coordinates" if len(blocks) == 1 else f"{len(blocks)} blocks"
    for norm, parts in signals.items():
        yield Splitting(parts + rests, f"{total} directions in {across}, norm {norm}")


def _placed(
    columns: Floats,
    coordinates: Floats,
    block: slice,
    size: int,
    norm: int,
    centres: bool = False,
) -> Subspace:
    """A part of one block among all coordinates."""
    whole = np.zeros((size, columns.shape[1]))
    whole[block] = columns
    rows = np.zeros((columns.shape[1], size))
    rows[:, block] = coordinates
    return Subspace(whole, rows, norm, centres)


def _contracting(columns: Floats, rows: Floats, matrices: Floats) -> tuple[Floats, Floats]:
    """The same part in coordinates in which matrices [V, w, w] lengthen vectors as little as known.

    It starts from the mean of A_w^T A_w over words, discounted so that its sum over lengths
    converges, and gives more weight to the symbols that lengthen most. In no coordinates a matrix
    lengthens all vectors by less than its largest eigenvalue: where that is as much as now, as of
    rotations and single gains, none are sought.
    """
    inside = rows @ matrices @ columns
    factor = float(np.linalg.norm(inside, 2, axis=(1, 2)).max())
    least = float(abs(np.linalg.eigvals(inside)).max()) if np.isfinite(inside).all() else 0.0
    best = None
    for rate in RATES if factor > NO_LENGTHENING and least < factor * LESS else ():
        for root in _roots(inside, rate):
            changed = root @ inside @ np.linalg.inv(root)
            found = float(np.linalg.norm(changed, 2, axis=(1, 2)).max())
            if found < factor * LESS:
                best, factor = root, found
        if factor < CONTRACTS:
            break
    if best is None:
        return columns, rows
    return columns @ np.linalg.inv(best), best @ rows


def _roots(matrices: Floats, rate: float) -> Iterator[Floats]:
    """Changes of coordinates [w, w], each from a sum of A_w^T A_w with other weights of symbols."""
    weights = np.ones(len(matrices))
    identity = np.eye(matrices.shape[1])
    for _ in range(REWEIGHTINGS):
        weighted = matrices * np.sqrt(weights / weights.sum())[:, None, None]
        stacked = weighted.reshape(-1, matrices.shape[1])

        def read_earlier(
            gramian: Floats, weighted: Floats = weighted, stacked: Floats = stacked
        ) -> Floats:
            found: Floats = stacked.T @ (gramian @ weighted).reshape(stacked.shape)
            return found

        growth, now = 1.0, identity
        for _ in range(POWERS):
            now = read_earlier(now)
            growth = float(now.trace())
            if not np.isfinite(growth) or growth <= 0:
                return
            now = now / growth
        total, now = identity, identity
        with np.errstate(over="ignore", invalid="ignore"):  # of maps that vanish after some words
            for _ in range(10 * POWERS):
                now = read_earlier(now) / (growth * rate)
                total = total + now
                if now.trace() < 1e-6 * total.trace():
                    break
        if not np.isfinite(total).all():
            return
        try:
            root: Floats = np.linalg.cholesky((total + total.T) / 2).T.astype(np.float64)
            norms = np.linalg.norm(root @ matrices @ np.linalg.inv(root), 2, axis=(1, 2))
        except np.linalg.LinAlgError:
            return
        yield root
        weights = weights * norms**2
