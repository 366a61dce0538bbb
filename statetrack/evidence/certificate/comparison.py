"""Comparison: how far an error can grow, part by part, and for how many steps that is harmless.

An error is split into k parts with a norm each. What one step does to the norms z is bounded by
z' = G z + e, with nonnegative G [k, k] and e [k]. The answers are right at every step at which

    margins - costs z > 0        margins [P], costs [P, k] >= 0

one row for every label that a right answer could be confused with. G, e, z and costs only ever
enter by sums and products of nonnegative numbers, so that a relative error of float64 is small and
can be put on top (`UP`): what is proven is proven of numbers rounded upwards.

*Factored operators.* What they round is followed beside the errors of the state that it makes. The
model keeps p = R^T h + e, where h = psi(s) + d is a centre and the error of the state. One step of
symbol x, from a state s to t, is, up to a factor common to all,

    d' = A(x) d + r(s, x) + L diag(s_x) e + f,    |f| <= F(x) |p|
    |e'| <= E(x) |p| + B |psi(t) + d'|,           |p| <= |R^T psi(s)| + |R^T d| + |e|

with the bounds of `arithmetic.RankSpace`, and logits are those of psi(t) + d' and an error y' with
|y'| <= Y(x) |p|. With weights v, the largest E(x) |R^T psi(s)| + B |psi(t)| coordinate by
coordinate over all states and symbols, and w, the largest Y(x) |R^T psi(s)|, the largest
|e_i| / v_i and |y_i| / w_i are two more norms of the comparison system: each is about 1 after every
step. So e enters the state as L diag(s_x) e with |e| <= v: its directions are kept, and it is
measured once, in the norm of the state.

*Range.* What underflows is small beside the largest coordinate of a state, and nothing overflows,
while that coordinate stays in range (`arithmetic`). A state is c (psi(s) + d); where no state is
divided c is 1, and c changes only by divisions that bring that coordinate into [1, 2). So its
ratio to the largest between two divisions is what counts. Some functional f of the state shows
that psi(s) + d is not small: its largest coordinate is at least f psi(s) - sum_j |f U_j|* z_j over
the sum of the magnitudes of f. For each state there are two, the difference of the largest logit
at psi(s) and the smallest, and the largest coordinate of psi(s); while one of them is `floors` -
`floor_costs` z > 0, the largest coordinate is above a number l. And it is below l times the ratio
that is allowed (or below `LARGEST_SIZE`) while `ceiling` - `reach` z > 0. Both are true of smaller
z where they are of larger ones, as is what is said of answers.

R rank, n coordinates, S states, V symbols, C labels, k parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from statetrack.evidence.certificate.arithmetic import OWN, RANGE, UNDERFLOW, RankSpace
from statetrack.evidence.certificate.splitting import Splitting
from statetrack.sources import Floats

UP = 1 + 2.0**-43
"""What sums of up to 1,000 nonnegative products are multiplied by, so as not to be too small."""

STEPS_ONE_BY_ONE = 512
"""Steps that are worked out one by one, before those that follow are bounded by powers of G."""

AT_ONCE = 1 << 18
"""Numbers that are compared together."""

DOUBLINGS = 40
"""Lengths are counted up to 2^40."""


@dataclass(frozen=True, eq=False)
class Range:
    """Which norms z [k] keep the largest coordinates of states in range; without `floors`, large.

    Norms of parts that are added after these k say nothing of states.
    """

    floors: Floats | None  # [S, 2]
    floor_costs: Floats  # [S, 2, k]
    ceiling: float
    reach: Floats  # [k]

    def holds(self, norms: Floats) -> bool:
        """Whether errors of these norms leave the states in range."""
        return bool(self.holds_each(norms[None])[0])

    def holds_each(self, norms: Floats) -> NDArray[np.bool_]:
        """The same of every row of norms [T, ...]."""
        own = norms[:, : len(self.reach)].T
        found: NDArray[np.bool_] = self.ceiling > (self.reach @ own) * UP
        if self.floors is not None and found.any():
            found &= (self.floors[..., None] > (self.floor_costs @ own) * UP).any(1).all(0)
        return found


@dataclass(frozen=True, eq=False)
class ComparisonSystem:
    """A comparison system: z <= `first` before the first step, then z' <= `gains` z + `terms`."""

    gains: Floats  # [k, k]
    terms: Floats  # [k]
    first: Floats  # [k]
    margins: Floats  # [P]
    costs: Floats  # [P, k]
    range: Range | None = None

    def harmless(self, norms: Floats) -> bool:
        """Whether an error of these norms changes no answer, and numbers stay in range."""
        return bool(self._harmless(norms[None])[0])

    def _harmless(self, norms: Floats) -> NDArray[np.bool_]:
        """The same of every row of norms [T, k]."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is not harmless
            found: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(norms), axis=1)
            found &= (self.margins[:, None] > (self.costs @ norms.T) * UP).all(0)
            if self.range is not None and found.any():
                found &= self.range.holds_each(norms)
        return found

    def step(self, norms: Floats) -> Floats:
        """A bound on the norms one step later."""
        found: Floats = (self.gains @ norms + self.terms) * UP
        return found

    def longest(self) -> int | None:
        """The number of symbols up to which every answer is right; None where all are."""
        norms, length = self.first, 0
        checks = len(self.margins)
        if self.range is not None and self.range.floors is not None:
            checks += self.range.floors.size
        while length < STEPS_ONE_BY_ONE:
            together = min(max(8, length), STEPS_ONE_BY_ONE - length, 1 + AT_ONCE // (checks + 1))
            rows = np.empty((together, len(norms)))
            with np.errstate(over="ignore", invalid="ignore"):
                for row in rows:
                    norms = row[:] = self.step(norms)
            harmless = self._harmless(rows)
            if not harmless.all():
                return length + int(harmless.argmin())
            length += together
        return self._later(norms)

    def _later(self, norms: Floats) -> int | None:
        """The same beyond the steps worked out one by one, at which the norms are given.

        Parts that shrink by themselves, F, follow the others, S. Let q and R be nonnegative with
        q >= G_FF q + e_F, q >= z_F and R >= G_FF R + G_FS. As long as z_S stays below Z, z_F stays
        below q + R Z, by induction over steps: G_FF (q + R Z) + G_FS Z + e_F <= q + R Z. So z_S is
        bounded by Z' = (G_SS + G_SF R) Z + (e_S + G_SF q), where the diagonal is raised to 1 at
        least, so that Z never falls and one check at the end covers all steps before.
        """
        followed = self._followed(norms)
        if followed is None:
            return STEPS_ONE_BY_ONE
        slow, fast, offset, response = followed
        step = self.gains[np.ix_(slow, slow)] + self.gains[np.ix_(slow, fast)] @ response * UP
        np.fill_diagonal(step, np.maximum(step.diagonal(), 1.0))
        added = (self.terms[slow] + self.gains[np.ix_(slow, fast)] @ offset) * UP

        def all_norms(slow_norms: Floats) -> Floats:
            found = np.empty(len(norms))
            found[slow] = slow_norms
            found[fast] = (offset + response @ slow_norms) * UP
            return found

        now = norms[slow]
        if not self.harmless(all_norms(now)):
            return STEPS_ONE_BY_ONE
        if not (added > 0).any() and np.array_equal(step @ now, now):
            return None
        size = len(slow)
        powers = [np.block([[step, added[:, None]], [np.zeros((1, size)), np.ones((1, 1))]])]
        for _ in range(DOUBLINGS - 1):
            with np.errstate(over="ignore", invalid="ignore"):
                powers.append(powers[-1] @ powers[-1] * UP)
        reached, state = STEPS_ONE_BY_ONE, np.append(now, 1.0)
        for doubling in reversed(range(DOUBLINGS)):
            with np.errstate(over="ignore", invalid="ignore"):
                later = powers[doubling] @ state * UP
                norms_later = all_norms(later[:-1])
            if self.harmless(norms_later):
                reached, state = reached + 2**doubling, np.append(later[:-1], 1.0)
        return reached

    def _followed(self, norms: Floats) -> tuple[list[int], list[int], Floats, Floats] | None:
        """The slow parts and the fast ones, with q [F] and R [F, S]; None without such."""
        order = np.argsort(self.gains.diagonal())
        count = int((self.gains.diagonal() < 1).sum())
        while count >= 0:
            fast, slow = sorted(order[:count].tolist()), sorted(order[count:].tolist())
            among = self.gains[np.ix_(fast, fast)]
            towards = self.gains[np.ix_(fast, slow)]
            if np.max(abs(np.linalg.eigvals(among)), initial=0.0) >= 1:
                count -= 1
                continue
            wanted = np.column_stack([self.terms[fast], towards, np.ones(len(fast))])
            solved = np.maximum(np.linalg.solve(np.eye(len(fast)) - among, wanted), 0.0)
            # a little of what every part answers to 1 pays for the rounding of the solution
            slack = solved[:, -1:] * np.maximum(solved[:, :-1].max(0, initial=0.0), 1e-300) * 1e-9
            found = solved[:, :-1] + slack
            decaying = self._decaying(among, norms[fast])
            if decaying is None:
                count -= 1
                continue
            offset = found[:, 0] + decaying
            response = found[:, 1:]
            holds = (offset >= (among @ offset + self.terms[fast]) * UP).all()
            holds = holds and (response >= (among @ response + towards) * UP).all()
            if holds and (offset >= norms[fast]).all():
                return slow, fast, offset, response
            count -= 1
        return None

    @staticmethod
    def _decaying(among: Floats, norms: Floats) -> Floats | None:
        """A vector v >= norms with G_FF v <= v, for G_FF of spectral radius below 1."""
        if not len(norms) or not norms.any():
            return norms
        ones = np.ones(len(among))
        found: Floats = np.linalg.solve(np.eye(len(among)) - among, ones).astype(np.float64)
        if not (found > 0).all():
            return None
        ratio = float((norms / found).max())
        return found * (ratio * UP)


Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]
"""The right label and the other one of every row of margins: [P] and [P]."""

LEAST_WEIGHT = 2.0**-20
"""The smallest weight of a coordinate, as a share of the largest: none is divided by zero."""


def with_rounding(
    exact: ComparisonSystem,
    rank_space: RankSpace,
    centres: Floats,
    splitting: Splitting,
    labels: Pairs,
) -> ComparisonSystem:
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
        return replace(exact, first=np.full_like(exact.first, np.inf))
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
    return replace(
        exact,
        gains=gains * UP,
        terms=terms * UP,
        first=np.append(exact.first, [first, 0.0]) * UP,
        costs=np.concatenate([exact.costs, np.zeros_like(read), read], 1) * UP,
    )


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
