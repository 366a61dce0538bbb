"""Representations of a task's machine by integer matrices, and what is made of them in integers.

Integers of moderate size are added and multiplied without rounding, so that a linear model with
such weights goes through finitely many states, each exactly, on words of all lengths: which
`certify` proves. The price is in dimensions, and in terms of rank one, where rotations are not by
a half, a third, a quarter or a sixth of a turn (`algebra.rational_spaces`).

V symbols, S states, n dimensions, K terms, C labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from statetrack.algebra import (
    Algebra,
    ChosenFunctions,
    Machine,
    action_on,
    echelon_rows,
    rational_functions,
)
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.readouts import separate
from statetrack.constructions.representations import (
    LinearRepresentation,
    Terms,
    direct_sum,
    moves_of,
    one_hot,
    side_by_side,
    unit_vectors,
)
from statetrack.errors import setting
from statetrack.sources import Floats, Integers

MOST_BITS = 16
"""The largest weight of a readout is below two to this power."""
KEPT = 0.8
"""The least share of the lead of real weights that those of few bits keep."""


def smallest_integers(algebra: Algebra) -> LinearRepresentation:
    """The smallest representation by integers that is found: at most states as unit vectors."""
    found = _of_functions(algebra.narrowest_rational, algebra)
    return min([one_hot(algebra), *found], key=lambda each: each.size)


def smallest_integer_blocks(algebra: Algebra) -> list[LinearRepresentation]:
    """Representations by integers whose largest is as small as is found."""
    whole = one_hot(algebra)
    found = _of_functions(algebra.smallest_rational_blocks, algebra)
    return found if found and max(each.size for each in found) <= whole.size else [whole]


def fewest_integer_terms(algebra: Algebra) -> tuple[LinearRepresentation, Terms]:
    """The representation with the fewest terms of integers that are found, with these terms."""
    narrow = smallest_integers(algebra)
    parts = smallest_integer_blocks(algebra)
    found = [
        (narrow, integer_terms(narrow)),
        (one_hot(algebra), moves_of(algebra)),
        (direct_sum(parts), side_by_side([integer_terms(part) for part in parts])),
    ]
    return min(found, key=lambda each: each[1].rank)


def as_large_as(case: Case, name: str, least: int) -> Case:
    """The case with a setting of at least a size. Raises `NotBuilt` where it is given smaller."""
    given = case.options.get(name, least)
    if given < least:
        raise NotBuilt(f"{setting(name, given)} is too small for integers: {least} is enough")
    return replace(case, options={**case.options, name: given})


def integer_representations(machine: Machine) -> Iterator[LinearRepresentation]:
    """Representations by integers that are found, small ones first; at last, of unit vectors."""
    for functions, actions in rational_functions(machine):
        with suppress(ArithmeticError):  # of numbers that are too large
            yield _on(functions, actions, machine)
    yield unit_vectors(machine)


def _of_functions(choice: ChosenFunctions | None, algebra: Algebra) -> list[LinearRepresentation]:
    """The integer matrices and points of spaces of functions with integer bases."""
    if choice is None:
        return []
    return [
        _on(np.rint(part.points).astype(np.int64), choice.actions, algebra.machine)
        for part in choice.parts
    ]


def _on(functions: Integers, actions: Integers, machine: Machine) -> LinearRepresentation:
    """The action of symbols on functions `[S, d]` of all states, or of the live ones."""
    action, live = action_on(functions.T, actions), machine.live
    points = np.zeros((len(live), action.dimension))
    points[live if len(action.points) < len(live) else slice(None)] = action.points
    return LinearRepresentation(action.matrices.astype(np.float64), points)


# --- terms of rank one ---


def integer_terms(representation: LinearRepresentation) -> Terms:
    """Few terms of integers whose sums are all matrices of a representation.

    Of four choices, that of fewest terms: an entry each; those of every different matrix; the
    identity, and those of what every symbol changes beside it; of planes in which all matrices are
    a b; b c up to a sign of b, three (Gauss).
    """
    matrices = representation.matrices
    size = representation.size
    unit = np.eye(size)
    identity = Terms(unit, unit, np.ones((len(matrices), size)))
    beside = _own_terms(matrices - unit)
    found = [
        _entries(matrices),
        _own_terms(matrices),
        Terms(
            np.column_stack([identity.left, beside.left]),
            np.column_stack([identity.right, beside.right]),
            np.column_stack([identity.gains, beside.gains]),
        ),
    ]
    for sign in (1.0, -1.0) if size == 2 else ():
        if (matrices[:, 0, 1] == sign * matrices[:, 1, 0]).all():
            across = matrices[:, 1, 0]
            diagonal = matrices[:, [0, 1], [0, 1]] - across[:, None] * [sign, 1.0]
            found.append(
                Terms(
                    np.array([[1.0, 0.0, sign], [0.0, 1.0, 1.0]]),
                    np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]),
                    np.column_stack([diagonal, across]),
                )
            )
    return min(found, key=lambda each: each.rank)


def _entries(matrices: Floats) -> Terms:
    places = np.argwhere(matrices.any(0))
    unit = np.eye(matrices.shape[1])
    return Terms(
        unit[:, places[:, 0]], unit[:, places[:, 1]], matrices[:, places[:, 0], places[:, 1]]
    )


def _own_terms(matrices: Floats) -> Terms:
    """The terms of every different matrix, as many as its rank: an echelon form of its rows."""
    different, which = np.unique(matrices, axis=0, return_inverse=True)
    left, right, gains = [], [], []
    for place, matrix in enumerate(different):
        rows = _echelon_rows(np.rint(matrix).astype(np.int64))
        if len(rows):
            left.append(np.rint(matrix @ np.linalg.pinv(rows)))
            assert np.array_equal(left[-1] @ rows, matrix)
            right.append(rows.T.astype(np.float64))
            mine = (which.ravel() == place).astype(np.float64)
            gains.append(np.repeat(mine[:, None], len(rows), axis=1))
    size = matrices.shape[1]
    if not left:
        return Terms(np.zeros((size, 0)), np.zeros((size, 0)), np.zeros((len(matrices), 0)))
    return Terms(np.column_stack(left), np.column_stack(right), np.column_stack(gains))


def _echelon_rows(matrix: Integers) -> Integers:
    """Rows `[rank, n]` that generate the lattice that the rows of a matrix generate."""
    basis = echelon_rows(matrix.tolist())
    return np.array(basis, np.int64).reshape(-1, matrix.shape[1])


# --- readouts ---


def integer_readout(points: Floats, labels: Integers, num_labels: int) -> Floats:
    """Rows of integers `[C, n]` that give points `[N, n]` their labels, of few bits.

    Real ones are found for the points in a basis in which their sum of squares is the same in all
    directions, as symmetries leave it.
    """
    _, sizes, right = np.linalg.svd(points, full_matrices=False)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    scaled = right[:rank].T / sizes[:rank]
    real, _ = separate(points @ scaled, labels, num_labels, with_bias=False)
    rows = real @ scaled.T
    wanted = _lead(points @ rows.T, labels)
    for bits in range(MOST_BITS):
        whole: Floats = np.rint(rows * (2**bits / abs(rows).max()))
        if _lead(points @ whole.T, labels) >= KEPT * wanted:
            return whole
    raise NotBuilt(f"no readout of integers of {MOST_BITS} bits gives all labels")


def _lead(logits: Floats, labels: Integers) -> float:
    """The least lead of the right label as a part of the largest spread of logits `[N, C]`."""
    rows = np.arange(len(logits))
    spread = float(np.ptp(logits, axis=1).max())
    if logits.shape[1] == 1 or not spread:
        return 1.0 if logits.shape[1] == 1 else 0.0
    others = logits.copy()
    others[rows, labels] = -np.inf
    return float((logits[rows, labels] - others.max(1)).min()) / spread
