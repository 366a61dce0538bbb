"""The certificate of a linear model, h_t = A(x_t) h_{t-1} with logits C h_t.

*Centres.* Every state s of the automaton has a point psi(s) near the hidden states of words that
lead to s (`centres`). Any points will do for a proof, good ones give a long one. Where s becomes t
by the symbol x, A(x) psi(s) = psi(t) + r(s, x), with a small residual r. A hidden state is written
as h = c (psi(s) + d) with a factor c > 0 that changes no answer (1 where there is a bias), and one
step leads to

    c' (psi(t) + d'),    d' = A(x) d + r(s, x) + f,    |f| <= E(x) |psi(s) + d|

where f is what is rounded (`arithmetic`), or 0 for the weights in exact arithmetic. What factored
operators round is followed on its own (`comparison`).

*Gauge.* Where states are divided now and then no answer changes with a factor c(x) > 0 of A(x), so
that A(x) / c(x) is certified, with its E(x) / c(x): factors for which A(x) psi(s) is not only along
psi(t) but as long. They are fitted to the centres, the sum of psi(t) . A(x) psi(s) over s as a
share of that of |psi(t)|^2, and the centres to them. Any factors will do for a proof; within the
symbols between two divisions they change the size of a state, which has to stay in range all the
same (`arithmetic`).

*Parts.* The error is d = sum_j U_j w_j, with coordinates w_j of parts j (`splitting`): U_j spans
the centres, or those on one block, or the rest. A step maps coordinates by K_i A(x) U_j, so that
bounds z_j on the norms |w_j| follow a nonnegative system, z' = G z + e (`comparison`), with
G_ij >= |K_i A(x) U_j| plus rounding, and e_i >= |K_i (r + f)| at the centres. What is rounded of
U_j w is at most E(x) |U_j| |w|, so that the norm of |K_i| E(x) |U_j| bounds it as well as that of
|K_i| E(x) u, u the largest |U_j w| of every coordinate: the smaller counts. The logit of a wrong
label exceeds what it has at psi(s) by at most sum_j |(C_y' - C_y) U_j|* z_j, in the dual norms, so
all answers are right while that stays below the margin at the centres.

*Two norms for which G is 1 plus the residual.* No search is needed, since the centres give them.

1. Let the columns of U be the centres, and |w|_1 the norm: its ball is the polytope with the
   corners psi(s) and -psi(s). The column s of K A(x) U may be taken as e_t + K r(s, x), because
   A(x) psi(s) = psi(t) + r, so that G <= 1 + max |K r(s, x)|_1. This holds for every automaton,
   with resets as well, for which no Euclidean norm has G = 1.
2. Let the columns of U be an orthonormal basis of the centres' span, stretched such that
   sum_s psi(s) psi(s)^T becomes the identity, and |w|_2 the norm. Where every symbol permutes the
   states and r = 0, A(x) (sum_s psi(s) psi(s)^T) A(x)^T is the same sum again, so K A(x) U is
   orthogonal and G = 1. Else G is computed: a largest singular value.

*The rest* is a complement of the span: the orthogonal one, or that which is orthogonal in the sense
of what is read after many symbols, which is where operators that forget it lead to nothing. Its
norm is Euclidean in coordinates that shorten it (`splitting`). What leaks from one part to another
is in G, and where blocks do not mix it is 0.

All is computed in float64 with its own rounding on top: of every product of matrices as in
`arithmetic`, with u = 2^-52; of sums K U that are not quite 1 (`Splitting.defect`); and of the
comparison system by factors above 1. Singular values are taken to be right to 1e-13 of themselves.
The operators are those that the model computes from its weights here; with learned embeddings,
another machine may round them otherwise.

Letters: S states, V symbols, C labels, n coordinates, k parts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch

from statetrack.evidence.budget import MULTIPLICATION, SearchBudget
from statetrack.evidence.certificate.arithmetic import (
    OWN,
    RANGE,
    UNDERFLOW,
    Arithmetic,
    Both,
    Unsupported,
    arithmetic_of,
)
from statetrack.evidence.certificate.centres import (
    FEW_ROUNDS,
    MOST_ROUNDS,
    SETTLED,
    Edges,
    find_centres,
)
from statetrack.evidence.certificate.comparison import (
    UP,
    ComparisonSystem,
    Pairs,
    Range,
    with_rounding,
)
from statetrack.evidence.certificate.exact import closes_exactly
from statetrack.evidence.certificate.splitting import (
    Splitting,
    Subspace,
    gain,
    gain_of_magnitudes,
    splittings,
)
from statetrack.evidence.kinds.certificate import Certificate, not_proven
from statetrack.evidence.records import Verdict
from statetrack.evidence.subject import Subject
from statetrack.models import LinearModel
from statetrack.sources import Floats

METHOD = "equivariant centres"
EXACT = "closed orbit of exact states"

TOLERANCES = (1e-9, 1e-5, 1e-3, 1e-2, 1e-1)
"""Directions in which the centres extend by less than this share may belong to the rest."""

NOISY = (None, 1e-2, 1e-4)
"""Blocks whose centres miss each other by more than this share may be left to the rest."""

PAIR = 1e-5
"""Seconds of work to bound what one part adds to another by one symbol."""

ENOUGH = 10
"""A length above which other centres are not tried."""

NEARLY_NOTHING = 2.0**-10
"""The share of a state that errors have to leave for it to stay in range."""

ROUNDS_OF_FITTING = 4
"""Rounds in which factors of symbols and centres are fitted to each other."""

SAME = 1e-9
"""Factors that differ from 1 by less are not tried."""

ROUNDS_OF_READING = 200
"""Symbols after which the Gramian of what is read later is taken."""


@dataclass(frozen=True, eq=False)
class _Proof:
    """A splitting's lengths, None for all, and its numbers."""

    real: int | None
    executed: int | None
    comparison: ComparisonSystem  # of what is executed
    splitting: Splitting

    @property
    def order(self) -> tuple[float, float]:
        """What a better proof has more of."""
        return _rank(self.executed), _rank(self.real)


def _rank(length: int | None) -> float:
    return float("inf") if length is None else float(length)


def certify_linear(subject: Subject, *, budget: SearchBudget, seed: int = 0) -> Certificate:
    """The certificate of a linear model; nothing in it is drawn at random."""
    began = time.monotonic()
    model = subject.model
    assert isinstance(model, LinearModel)
    weights = [each for each in model.state_dict().values() if isinstance(each, torch.Tensor)]
    types = {str(each.dtype).removeprefix("torch.") for each in weights if each.is_floating_point()}
    if types not in ({"float32"}, {"float64"}):
        return not_proven(f"rounding in {' and '.join(sorted(types))} is not counted")
    minimal = Edges.of(subject.automaton, minimal=True)
    budget.say("following states that are computed exactly")
    if closes_exactly(model, minimal, budget):
        nothing = not_proven("", method=EXACT, seconds=time.monotonic() - began)
        return replace(nothing, verdict="all lengths", verdict_real="all lengths", residual=0.0)
    try:
        both = arithmetic_of(model)
    except Unsupported as error:
        return not_proven(f"the arithmetic of {error} is not covered", method=METHOD)
    if not all(np.isfinite(part).all() for part in (both.real.matrices, both.real.first)):
        return not_proven("a weight is not finite", method=METHOD)
    search = BestProof(budget)
    for transitions, rounds in automata_of(subject, minimal):
        search.attempt(both, transitions, rounds)
        if budget.spent or search.order >= (ENOUGH, ENOUGH):
            break
    if model.scale_invariant:
        for scaled in _gauges(both, minimal, search):
            search.attempt(scaled, minimal, MOST_ROUNDS)
    return search.certificate(time.monotonic() - began)


class BestProof:
    """The best proof so far, with the arithmetic, centres and transitions that it is of."""

    def __init__(self, budget: SearchBudget) -> None:
        self.budget = budget
        self.complete = True
        self.best: _Proof | None = None
        self._found: tuple[Both, Floats, Edges] | None = None

    @property
    def order(self) -> tuple[float, float]:
        """What is proven, in the model's type and in exact arithmetic."""
        return (0.0, 0.0) if self.best is None else self.best.order

    def attempt(self, both: Both, transitions: Edges, rounds: int) -> None:
        """Find centres, and bound errors around them by every splitting."""
        self.budget.say("averaging the states of the model over words")
        real = both.real
        centres = find_centres(
            real.matrices, real.first, transitions, rounds=rounds, budget=self.budget
        )
        sizes = abs(centres).max(1)
        if not (np.isfinite(sizes).all() and RANGE[0] < sizes.min() <= sizes.max() < RANGE[1]):
            return
        for splitting, kept in _splittings(real, centres, transitions):
            if self.budget.spent:
                self.complete = False
                break
            self.budget.say(f"bounding errors: {splitting.name}")
            self.budget.use(MULTIPLICATION * 8 * real.matrices.size * len(real.first))
            self.budget.use(2 * PAIR * len(real.matrices) * len(splitting.parts) ** 2)
            executed = compare(both.executed, kept, transitions, splitting)
            length = executed.longest()
            # exact arithmetic rounds by nothing, which is within every bound on rounding
            exact = compare(real, kept, transitions, splitting).longest()
            proof = _Proof(max(exact, length, key=_rank), length, executed, splitting)
            if self.best is None or proof.order > self.best.order:
                self.best, self._found = proof, (both, kept, transitions)

    def certificate(self, seconds: float) -> Certificate:
        """The certificate of the best proof."""
        if self.best is None or self._found is None:
            return not_proven(
                "the states of the model vanish or grow beyond all bounds"
                if self.complete
                else "the budget ended before the first bound",
                method=METHOD,
                complete=self.complete,
                seconds=seconds,
            )
        return _certificate(self.best, *self._found, self.complete, seconds)


def _gauges(both: Both, transitions: Edges, search: BestProof) -> Iterator[Both]:
    """The arithmetic with the operators divided by factors that fit centres, as far as of use.

    They start from 1, and where nothing is proven yet from the largest moduli of eigenvalues, which
    are the factors where states are kept or turned and all else is forgotten.
    """
    matrices = both.real.matrices
    for starts in (np.ones(len(matrices)), abs(np.linalg.eigvals(matrices)).max(1)):
        if search.budget.spent or search.order[0] == np.inf:
            return
        factors = _fitted(both, transitions, starts, search.budget)
        if factors is not None and abs(factors - 1).max() > SAME:
            yield both.divided_by(factors)
        if search.order >= (ENOUGH, ENOUGH):
            return


def _fitted(both: Both, transitions: Edges, factors: Floats, budget: SearchBudget) -> Floats | None:
    """The factors [V] by which operators lengthen the centres that they have without them."""
    arithmetic = both.real
    source, symbol, target = transitions.source, transitions.symbol, transitions.target
    for _ in range(ROUNDS_OF_FITTING):
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            return None
        scaled = arithmetic.matrices / factors[:, None, None]
        centres = find_centres(scaled, arithmetic.first, transitions, budget=budget)
        images = np.matmul(centres, scaled.transpose(0, 2, 1))[symbol, source]
        aims = centres[target]
        along = np.bincount(symbol, (images * aims).sum(1), len(factors))
        sizes = np.bincount(symbol, np.square(aims).sum(1), len(factors))
        ratios = np.where(sizes > 0, along / np.maximum(sizes, 1e-300), 1.0)
        factors = factors * ratios
        if abs(ratios - 1).max() < SETTLED:
            break
    return factors if np.isfinite(factors).all() and (factors > 0).all() else None


def automata_of(subject: Subject, minimal: Edges) -> Iterator[tuple[Edges, int]]:
    """The automata to take centres of, each with the rounds of averaging.

    The smallest machine, and where that has fewer states the automaton as it is given.
    """
    yield minimal, MOST_ROUNDS
    yield minimal, FEW_ROUNDS
    given = Edges.of(subject.automaton, minimal=False)
    if given.num_states > minimal.num_states:
        yield given, MOST_ROUNDS


def _splittings(
    arithmetic: Arithmetic, centres: Floats, transitions: Edges
) -> Iterator[tuple[Splitting, Floats]]:
    """Splittings to try, each with the centres that it is for.

    Of centres to which the readout does not give their labels there is one: none proves anything.
    """
    blocks = arithmetic.blocks
    observed = observed_later(arithmetic.matrices)
    missed = np.abs(residuals_of(arithmetic.matrices, centres, transitions))
    tried: set[tuple[tuple[int, ...], bytes]] = set()
    for share in NOISY if len(blocks) > 1 else NOISY[:1]:
        kept = centres.copy()
        for block in blocks if share is not None else ():
            if missed[:, block].max() > (share or 0.0) * np.abs(centres[:, block]).max():
                kept[:, block] = 0.0
        found = _splittings_of(arithmetic, kept, centres, observed, tried)
        right = (_readouts(arithmetic, kept, transitions, ())[0] > 0).all()
        for splitting in found if right else islice(found, 1):
            yield splitting, kept


def _splittings_of(
    arithmetic: Arithmetic,
    kept: Floats,
    centres: Floats,
    observed: Floats | None,
    tried: set[tuple[tuple[int, ...], bytes]],
) -> Iterator[Splitting]:
    """Splittings for the blocks of centres that are kept, but for ranks that were tried."""
    blocks = arithmetic.blocks
    values = [np.linalg.svd(kept[:, block], compute_uv=False) for block in blocks]
    for tolerance in TOLERANCES:
        least = tolerance * float(np.linalg.norm(centres, 2))
        ranks = tuple(int((part > least).sum()) for part in values)
        if not any(ranks) or (ranks, kept.any(0).tobytes()) in tried:
            continue
        tried.add((ranks, kept.any(0).tobytes()))
        for metric in (None, observed):
            yield from splittings(kept, blocks, arithmetic.matrices, metric, least)


def observed_later(matrices: Floats) -> Floats | None:
    """The mean of A_w^T A_w over long words w, up to a factor: [n, n]; None where it vanishes."""
    gramian = np.eye(matrices.shape[1])
    for _ in range(ROUNDS_OF_READING):
        images = gramian @ matrices
        gramian = np.einsum("vij,vik->jk", matrices, images)
        size = gramian.trace()
        if not np.isfinite(size) or size <= 0:
            return None
        gramian /= size
    return gramian


def residuals_of(matrices: Floats, centres: Floats, transitions: Edges) -> Floats:
    """By how much the operators miss the centre that each transition leads to, [E, n]."""
    images = np.matmul(centres, matrices.transpose(0, 2, 1))
    found: Floats = images[transitions.symbol, transitions.source] - centres[transitions.target]
    return found


def _certificate(
    proof: _Proof,
    both: Both,
    centres: Floats,
    transitions: Edges,
    complete: bool,
    seconds: float,
) -> Certificate:
    comparison = proof.comparison
    residuals = residuals_of(both.real.matrices, centres, transitions)
    residual = np.linalg.norm(residuals, axis=1).max() / np.linalg.norm(centres, axis=1).max()
    margins = comparison.margins / np.maximum(comparison.costs.sum(1), 1e-300)
    margin = float(margins.min()) if len(margins) else None  # None: there is one label only
    return Certificate(
        verdict=_verdict(proof.executed),
        length=proof.executed or None,
        verdict_real=_verdict(proof.real),
        length_real=proof.real or None,
        method=f"{METHOD}, {proof.splitting.name}",
        margin=margin,
        residual=float(residual),
        growth=float(comparison.gains.diagonal().max()),
        reason=_reason(proof, centres, transitions, both),
        complete=complete,
        seconds=seconds,
    )


def _verdict(length: int | None) -> Verdict:
    if length is None:
        return "all lengths"
    return "to length" if length else "not proven"


def _reason(proof: _Proof, centres: Floats, transitions: Edges, both: Both) -> str:
    """What ends the proof, in plain terms."""
    if proof.executed is None:
        return ""
    comparison = proof.comparison
    if not (comparison.margins > 0).all():
        return "the readout does not give the mean state of every automaton state its label"
    if comparison.range is not None and not comparison.range.holds(np.zeros_like(comparison.terms)):
        return "states may leave the range of floating-point numbers"
    if proof.executed == 0:
        if not comparison.harmless(comparison.first):
            return "the first state is too far from the mean of the states it should be among"
        return "one symbol leads too far from the mean state of the automaton state it leads to"
    return "rounding and the residual of the operators add up to the margin"


def compare(
    arithmetic: Arithmetic, centres: Floats, transitions: Edges, splitting: Splitting
) -> ComparisonSystem:
    """The comparison system of a splitting."""
    matrices, rounding = arithmetic.matrices, arithmetic.rounding
    parts, defect = splitting.parts, splitting.defect
    source, symbol, target = transitions.source, transitions.symbol, transitions.target
    sizes = abs(centres)
    residuals = residuals_of(matrices, centres, transitions)
    spread = np.matmul(sizes, rounding.transpose(0, 2, 1))[symbol, source]
    if arithmetic.floor is not None:
        spread += arithmetic.floor[symbol]
    if arithmetic.cast is not None:
        spread += arithmetic.cast * (sizes[target] + abs(residuals) + spread)
        spread += arithmetic.cast_floor * (arithmetic.cast > 0)
    spread += sizes[target] * OWN + UNDERFLOW * sizes.max()
    terms = [_size(part, residuals, spread, defect).max() for part in parts]
    start = (arithmetic.first - centres[transitions.start])[None]
    first = [_size(part, start, arithmetic.first_rounding[None], defect)[0] for part in parts]
    gains = np.zeros((len(parts), len(parts)))
    for place, part in enumerate(parts):
        gains[:, place] = _gains(part, splitting, arithmetic, transitions)
    margins, costs, labels = _readouts(arithmetic, centres, transitions, parts)
    found = ComparisonSystem(
        gains=gains * UP,
        terms=np.array(terms) * UP,
        first=np.array(first) * UP,
        margins=margins,
        costs=costs,
        range=_range(arithmetic, centres, parts),
    )
    if arithmetic.rank_space is None:
        return found
    return with_rounding(found, arithmetic.rank_space, centres, splitting, labels)


def _size(part: Subspace, vectors: Floats, spread: Floats, defect: Floats) -> Floats:
    """Norms [N] in a part of vectors [N, n] that are off by up to `spread` by coordinate."""
    width = vectors.shape[1]
    off = spread + (width * OWN) * abs(vectors) + 2 * (abs(vectors) + spread) @ defect.T
    found: Floats = part.size(part.coordinates @ vectors.T)
    return found + part.size(abs(part.coordinates) @ off.T)


def _gains(
    part: Subspace,
    splitting: Splitting,
    arithmetic: Arithmetic,
    transitions: Edges,
) -> Floats:
    """What one step makes of a unit of one part, in every part: [k].

    Where the columns are centres, a centre becomes the centre of the next state and a residual.
    """
    images = arithmetic.matrices @ part.columns  # [V, n, d]
    # how far the image of U w may be off, over all |w| = 1, and by |w| coordinate by coordinate
    reach, sizes = part.reach[:, None], abs(part.columns)
    together = _off(arithmetic, part.dual(images)[..., None], reach, splitting.defect)
    apart = _off(arithmetic, abs(images), sizes, splitting.defect)
    found = np.empty(len(splitting.parts))
    for places, other, coordinates in splitting.alike:
        off = other.size(np.moveaxis(coordinates @ together[..., 0].T, 1, 0)).max(-1)
        each = gain_of_magnitudes(coordinates[:, None] @ apart, part, other)
        found[places] = np.where(each < off, each, off)
    source, symbol, target = transitions.source, transitions.symbol, transitions.target
    if part.centres:
        images[symbol, :, source] -= part.columns[:, target].T
    touched = splitting.reads @ images.any((0, 2))
    for place, other in enumerate(splitting.parts):
        if other is not part and not touched[place]:
            continue
        inside = other.coordinates @ images  # [V, d', d]
        if part.centres and other is part:
            inside[symbol, target, source] += 1
        found[place] += gain(inside, part, other)
    return found


def _off(arithmetic: Arithmetic, images: Floats, sizes: Floats, defect: Floats) -> Floats:
    """By how much images [V, n, m] of vectors of magnitudes [n, m] may be off: [V, n, m]."""
    off = arithmetic.rounding @ sizes + (len(defect) * OWN) * images
    if arithmetic.cast is not None:
        off += arithmetic.cast[:, None] * (images + off)
    off += sizes * OWN + UNDERFLOW * sizes.max(0)
    found: Floats = off + 2 * defect @ (images + off)
    return found


def _range(arithmetic: Arithmetic, centres: Floats, parts: Sequence[Subspace]) -> Range | None:
    """Which errors keep the states of floating-point numbers in range; None of real ones."""
    if arithmetic.span is None:
        return None
    reach = np.array([part.reach.max() for part in parts])
    largest = float(abs(centres).max())
    if np.isinf(arithmetic.span):
        return Range(None, np.zeros((0, 2, len(parts))), arithmetic.ceiling - largest, reach)
    rows = np.arange(len(centres))
    logits = centres @ arithmetic.readout.T
    read = arithmetic.readout[logits.argmax(1)] - arithmetic.readout[logits.argmin(1)]
    place = abs(centres).argmax(1)
    own = np.zeros_like(centres)
    own[rows, place] = np.sign(centres[rows, place])
    functionals = np.stack([read, own], 1)  # [S, 2, n]
    values = np.einsum("sfn,sn->sf", functionals, centres)
    sizes = abs(functionals).sum(-1)
    # what is lost to the rounding of these few products is far less than is left out
    smallest = float((values / np.maximum(sizes, 1e-300)).max(1).min()) * NEARLY_NOTHING
    costs = np.stack([part.dual(functionals @ part.columns) for part in parts], -1)
    return Range(
        values * (1 - NEARLY_NOTHING) - smallest * sizes,
        costs * UP,
        smallest * arithmetic.span - largest,
        reach,
    )


def _readouts(
    arithmetic: Arithmetic,
    centres: Floats,
    transitions: Edges,
    parts: Sequence[Subspace],
) -> tuple[Floats, Floats, Pairs]:
    """By how much right logits exceed others at the centres, [P], and what an error costs, [P, k].

    One row for every state that is asked for and every wrong label; the labels themselves, [P] and
    [P], come third.
    """
    entered = np.unique(transitions.target)
    at = entered[transitions.asked[entered]]
    answer = transitions.label[at]
    num_labels = len(arithmetic.readout)
    values = centres[at] @ arithmetic.readout.T
    spread = abs(centres[at]) @ arithmetic.readout_rounding.T
    spread += arithmetic.readout_floor + arithmetic.readout_cast * (abs(values) + spread)
    wrong = np.arange(num_labels) != answer[:, None]
    rows = np.arange(len(at))
    margins = values[rows, answer][:, None] - values
    margins -= (spread[rows, answer][:, None] + spread) * UP + OWN * abs(values).max()
    lost = 0.0 if arithmetic.span is None else 2 * UNDERFLOW  # of two logits that are rounded
    margins -= lost * abs(centres).max()
    pairs, others = np.nonzero(wrong)
    cost = np.empty((num_labels, num_labels, len(parts)))
    for place, part in enumerate(parts):
        seen = arithmetic.readout @ part.columns
        off = arithmetic.readout_rounding @ part.reach
        off += arithmetic.readout_cast * (part.dual(seen) + off)
        differences = seen[:, None] - seen[None]
        cost[:, :, place] = part.dual(differences) + off[:, None] + off + lost * part.reach.max()
    return margins[pairs, others], cost[answer[pairs], others] * UP, (answer[pairs], others)
