"""Whether linear functions of points give every state its label, by what margin, and for how long.

A linear model puts a point p(s) in R^H where its state is s, and gives label c the logit
w_c . p(s). What logits there are is a matter of the span U of the coordinates, as functions of the
states. The *optimum* of a linear program says whether some of them give every state its label:

    maximise t  over functions f_c in U with |f_c(s)| <= 1
    subject to  f_label(s)(s) - f_c(s) >= t  for every state s and every other label c.

It is at most 2, is 0 where no linear readout is right everywhere, and depends on U alone.

The *margin* of given points and rows is geometric: the smallest distance of a point from the
boundary between its label and another one, over the largest norm of a point,

    min over s, c of  (w_label(s) - w_c) . p(s) / |w_label(s) - w_c|   /   max over s of |p(s)|.

It does not change when points or rows are scaled or turned, and it is at most 1.

*Horizons.* Let all operators be orthogonal, and let every step add to the state a disturbance. Its
label is right as long as the component of their sum along the normal of a boundary is less than the
distance from it, margin x norm. Independent noise of standard deviation sigma x norm along every
direction reaches that at `noise_horizon`, (margin / (z sigma))^2 steps for z deviations; rounding
that moves the state by at most epsilon x norm a step not before `rounding_horizon`, margin /
epsilon (docs/proofs.md).

Letters: S states, C labels, H coordinates, U the span of the coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from statetrack.sources import Booleans, Floats, Integers

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

CLEAR = 1e-6
"""Readouts whose logits, of magnitude 1 at most, are this far apart give every state its label."""
NO_MORE_THAN_ROUNDING = 1e-8
"""An optimum up to this is taken for 0.

The program is solved to 1e-9, and its data are rounded to about 1e-15. Its true optimum is a ratio
of determinants of its data. On thousands of random labels of small groups and machines, all optima
were either below 1e-12 or above 1e-3; one between this value and `CLEAR` is left undecided.
"""
SOLVED_TO = 1e-9

MOST_ENTRIES = 60_000
"""Most entries that are not 0 of a linear program that is solved."""
MOST_PIVOTS = 20_000
"""Most steps of the simplex method."""
MOST_GAPS = 400
"""Most pairs of a state and another label for which the widest readout is worked out."""
SAME_POINT = 1e-7
"""Points this close, as a part of the largest, are one."""
RANK = 1e-9
"""Singular values below this, as a part of the largest, are rounding."""
LIKELY = 3.0
"""Standard deviations within which noise is expected to stay."""


@dataclass(frozen=True, eq=False)
class Readout:
    """Rows `[labels, H]` that give every state its label, and by what margin.

    The row of a label that no state bears is the mean of the others: it never wins.
    """

    rows: Floats
    margin: float


@dataclass(frozen=True, eq=False)
class Search:
    """What a search for a readout came to: one, none, or `decided=False`."""

    readout: Readout | None
    decided: bool = True

    @property
    def exists(self) -> bool | None:
        """Whether there is a readout; None where that was not decided."""
        return self.readout is not None if self.decided else None


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels that a readout has to give: those of the states that are asked for."""

    output: Integers  # [S]
    asked: Booleans  # [S]
    number: int
    """How many rows a readout has: labels that no state bears count too."""

    @property
    def names(self) -> Integers:
        """The labels that some state that is asked for bears, in order."""
        return np.unique(self.output[self.asked])

    @property
    def are_different(self) -> bool:
        """Whether no two states that are asked for share a label."""
        return len(self.names) == int(self.asked.sum())

    @property
    def tell_states_apart(self) -> bool:
        """Whether every state is asked for and has a label of its own."""
        return bool(self.asked.all()) and self.are_different


def margin_of(points: Floats, rows: Floats, labels: Labels) -> float:
    """The margin of points `[S, H]` and rows `[labels, H]`: see above.

    It is negative where some state gets a wrong label, and 1 where there is one label only.
    """
    names = labels.names
    asked = np.flatnonzero(labels.asked)
    if len(names) == 1:
        return 1.0
    chosen = rows[names]  # [C, H]
    mine = np.searchsorted(names, labels.output[asked])
    logits = points[asked] @ chosen.T  # [asked, C]
    products = chosen @ chosen.T
    squares = np.diag(products)
    normals = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * products, 0.0))
    gaps = logits[np.arange(len(asked)), mine][:, None] - logits
    lengths = normals[mine]
    lengths[np.arange(len(asked)), mine] = np.inf
    largest = float(np.linalg.norm(points, axis=1).max())
    if lengths.min() == 0 or largest == 0:
        return 0.0
    ahead = gaps / lengths
    ahead[np.arange(len(asked)), mine] = np.inf
    return float(ahead.min() / largest)


def noise_horizon(margin: float, sigma: float, *, deviations: float = LIKELY) -> float:
    """The number of steps after which noise of sigma per step is as large as the margin allows.

    `sigma` is the standard deviation along one direction, as a part of the norm of the state.
    """
    if sigma == 0:
        return math.inf
    return (max(margin, 0.0) / (deviations * sigma)) ** 2


def rounding_horizon(margin: float, epsilon: float) -> float:
    """The number of steps in which rounding by epsilon x norm per step cannot exceed the margin."""
    return math.inf if epsilon == 0 else max(margin, 0.0) / epsilon


def find_readout(points: Floats, labels: Labels) -> Search:
    """A readout of points `[S, H]`, of a wide margin."""
    if len(labels.names) == 1:
        return _of_one_label(points, labels)
    if _is_clash(points, labels):
        return Search(None)
    if labels.are_different:
        found = _of_points_themselves(points, labels)
        return _solved(points, labels) if found is None else Search(found)
    found = _verified(points, _mean_rows(points, labels), labels)
    search = _solved(points, labels) if found is None else Search(found)
    return search if search.readout is None else Search(_widest(points, labels, search.readout))


def is_readable(points: Floats, labels: Labels) -> bool | None:
    """Whether points `[S, H]` have a readout; None where that was not decided."""
    if len(labels.names) == 1:
        return _of_one_label(points, labels).exists
    if _is_clash(points, labels):
        return False
    if labels.are_different and _of_points_themselves(points, labels) is not None:
        return True
    if _verified(points, _mean_rows(points, labels), labels) is not None:
        return True
    return _solved(points, labels).exists


# --- readouts without a linear program ---


def _is_clash(points: Floats, labels: Labels) -> bool:
    """Whether two states with different labels have the same point: no readout tells them apart."""
    asked, output = points[labels.asked], labels.output[labels.asked]
    squares = (asked**2).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * asked @ asked.T
    same = distances < SAME_POINT**2 * max(float(squares.max(initial=0.0)), SAME_POINT)
    return bool((same & (output[:, None] != output[None, :])).any())


def _of_one_label(points: Floats, labels: Labels) -> Search:
    """One label wins everywhere, against rows that are its negative: by a positive function."""
    asked = points[labels.asked]
    if np.abs(asked).max() <= SAME_POINT * np.abs(points).max():
        return Search(None)  # all are 0, where every function is
    constant = _constant(asked)
    direction = asked.mean(axis=0) if constant is None else constant
    if (asked @ direction).min() <= CLEAR * np.abs(asked @ direction).max():
        return Search(None, decided=False)
    rows = np.tile(-direction, (labels.number, 1))
    rows[labels.names] = direction
    return Search(Readout(rows, 1.0))


def _of_points_themselves(points: Floats, labels: Labels) -> Readout | None:
    """Where all states have labels of their own: logits 2 p(s) . p - |p(s)|^2 are largest at p(s).

    The squares are no linear function of the points, unless all are equal, or the constant is one:
    then the row a with a . p = 1 takes the squares in. None where neither is so, and where two
    points are one.
    """
    rows = np.zeros((labels.number, points.shape[1]))
    asked, output = points[labels.asked], labels.output[labels.asked]
    squares = (asked**2).sum(axis=1)
    if np.ptp(squares) <= CLEAR * squares.max():
        rows[output] = asked
        return _verified(points, rows, labels)
    constant = _constant(asked)
    if constant is None:
        return None
    middle = asked.mean(axis=0)
    centred = asked - middle
    offset = (centred**2).sum(axis=1) + 2 * centred @ middle
    rows[output] = 2 * centred - np.outer(offset, constant)
    return _verified(points, rows, labels)


def _constant(points: Floats) -> Floats | None:
    """A row a with a . p = 1 for all points `[S, H]`; None where there is none."""
    row: Floats = np.linalg.lstsq(points, np.ones(len(points)), rcond=RANK)[0].astype(np.float64)
    return row if np.abs(points @ row - 1).max() < RANK**0.5 else None


def _mean_rows(points: Floats, labels: Labels) -> Floats:
    """For every label the mean of its points."""
    rows = np.zeros((labels.number, points.shape[1]))
    for name in labels.names:
        rows[name] = points[labels.asked & (labels.output == name)].mean(axis=0)
    return rows


def _verified(points: Floats, rows: Floats, labels: Labels) -> Readout | None:
    """Rows as a readout, where the logits that they really give are right, and clearly so."""
    names = labels.names
    absent = np.setdiff1d(np.arange(len(rows)), names)
    rows = rows.copy()
    rows[absent] = rows[names].mean(axis=0)
    asked = np.flatnonzero(labels.asked)
    logits = points[asked] @ rows[names].T
    if len(names) > 1:
        mine = labels.output[asked][:, None] == names[None, :]
        largest = np.abs(logits - logits.mean(axis=1, keepdims=True)).max()
        gap = (logits[mine] - np.where(mine, -np.inf, logits).max(axis=1)).min()
        if gap <= CLEAR * largest:
            return None
    return Readout(rows, margin_of(points, rows, labels))


# --- the linear program ---


def _solved(points: Floats, labels: Labels) -> Search:
    """What the program finds: undecided where it is too large, or neither clear nor 0."""
    solution = _solution(_basis(points[labels.asked]), labels)
    if solution is None:
        return Search(None, decided=False)
    best, logits = solution
    if best <= NO_MORE_THAN_ROUNDING:
        return Search(None)
    rows = np.zeros((labels.number, points.shape[1]))
    coefficients = np.linalg.lstsq(points[labels.asked], logits, rcond=RANK)[0]
    rows[labels.names] = coefficients.T
    found = _verified(points, rows, labels)
    return Search(found, decided=found is not None)


def _basis(points: Floats) -> Floats:
    """An orthonormal basis of the span of columns `[S, H]`."""
    left, sizes, _ = np.linalg.svd(points, full_matrices=False)
    basis: Floats = left[:, sizes > RANK * max(float(sizes.max(initial=0.0)), RANK)]
    return basis


def _solution(basis: Floats, labels: Labels) -> tuple[float, Floats] | None:
    """The optimum and the logits `[asked, C]`, for an orthonormal basis `[asked, D]` of U.

    A function f in U is written as its values, with (I - B B^T) f = 0 as equations: of these as
    many as U has codimension. Of two labels one function is enough, the logits being g/2 and -g/2.
    """
    names = labels.names
    mine = np.searchsorted(names, labels.output[labels.asked])
    num_states, dimension = basis.shape
    if len(names) == 1:
        return 2.0, np.ones((num_states, 1))
    complement = np.linalg.svd(basis, full_matrices=True)[0][:, dimension:].T
    if len(names) == 2:
        if complement.size + 2 * num_states > MOST_ENTRIES:
            return None
        sign = np.where(mine == 0, 1.0, -1.0)
        solved = _maximised(complement * sign, None, num_states)
        if solved is None:
            return None
        values = sign * solved.x[:-1]
        return 2 * float(solved.x[-1]), np.column_stack([values, -values])
    if complement.size * len(names) + 3 * num_states * len(names) > MOST_ENTRIES:
        return None
    solved = _maximised(complement, mine, len(names))
    if solved is None:
        return None
    return float(solved.x[-1]), solved.x[:-1].reshape(num_states, len(names))


def _maximised(equations: Floats, mine: Integers | None, count: int) -> OptimizeResult | None:
    """Solve for values in [-1, 1], and t: `mine` None is one function, else one for each label."""
    from scipy import optimize, sparse

    if mine is None:
        variables = count
        over = np.column_stack([-np.eye(count), np.ones(count)])
        equal = np.column_stack([equations, np.zeros(len(equations))])
    else:
        states, others = np.nonzero(np.arange(count)[None, :] != mine[:, None])
        variables, gaps = len(mine) * count, np.arange(len(states))
        last = np.full(len(gaps), variables)
        columns = np.concatenate([states * count + others, states * count + mine[states], last])
        over = sparse.coo_matrix(
            (np.repeat([1.0, -1.0, 1.0], len(gaps)), (np.tile(gaps, 3), columns))
        )
        each = sparse.kron(equations, sparse.eye(count))
        equal = sparse.hstack([each, sparse.coo_matrix((each.shape[0], 1))])
    cost = np.zeros(variables + 1)
    cost[-1] = -1.0
    bounds = np.full((variables + 1, 2), [-1.0, 1.0])
    bounds[-1] = 0.0, 2.0
    solved = optimize.linprog(
        cost,
        A_ub=over,
        b_ub=np.zeros(over.shape[0]),
        A_eq=equal if equal.shape[0] else None,
        b_eq=np.zeros(equal.shape[0]) if equal.shape[0] else None,
        bounds=bounds,
        method="highs-ds",
        options={
            "maxiter": MOST_PIVOTS,
            "primal_feasibility_tolerance": SOLVED_TO,
            "dual_feasibility_tolerance": SOLVED_TO,
        },
    )
    return solved if solved.status == 0 else None


# --- the widest margin ---


def _widest(points: Floats, labels: Labels, found: Readout) -> Readout:
    """A readout of the largest margin for two labels; of more, of a margin that is often larger.

    It is the point nearest to 0 of the convex hull of all gaps, as vectors of logits' weights
    (Crammer and Singer 2001), a problem of least squares without negative weights. The one that is
    given is kept where it is better, and where there are too many gaps.
    """
    names = labels.names
    asked = np.flatnonzero(labels.asked)
    if len(asked) * (len(names) - 1) > MOST_GAPS:
        return found
    from scipy.optimize import nnls

    mine = np.searchsorted(names, labels.output[asked])
    states, others = np.nonzero(np.arange(len(names))[None, :] != mine[:, None])
    size = points.shape[1]
    gaps = np.zeros((len(states), len(names), size))
    gaps[np.arange(len(states)), mine[states]] = points[asked[states]]
    gaps[np.arange(len(states)), others] = -points[asked[states]]
    flat = gaps.reshape(len(states), -1)
    flat = flat / max(float(np.abs(flat).max()), RANK)
    system = np.vstack([flat.T, np.ones(len(states))])
    target = np.append(np.zeros(flat.shape[1]), 1.0)
    try:
        weights, _ = nnls(system, target)
    except RuntimeError:  # it did not converge
        return found
    rows = np.zeros_like(found.rows)
    rows[names] = (weights @ flat).reshape(len(names), size)
    wider = _verified(points, rows, labels)
    return wider if wider is not None and wider.margin > found.margin else found
