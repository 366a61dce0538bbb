"""Snapping: a linear model's operators replaced by the exact representation that they are close to.

Let psi(s) be the centres of the states s of the automaton (`certificate.centres`), as read later,
and Psi [S, d] their coordinates. A linear model with h = psi(s) for every state exists exactly
where the space U of the functions f(s) = w . psi(s) is kept by every symbol: f in U has to be in U
after s -> delta(s, x) too. The learned centres have that up to a defect. Snapping takes an exact U
near the learned one, an orthonormal basis Q of it, and the operators with A(x) q(s) = q(delta(s,
x)) for all states at once: in real arithmetic the residual of these operators is 0 (what is stored
is rounded), so the answers are right on all words if they are for the finitely many q(s).

- All functions: U = R^S, one coordinate per state, and matrices of zeros and ones. Float32 computes
  with these without rounding. It is taken where the model is dense and has the coordinates.
- Where symbols permute the states, their maps T(x) are orthogonal matrices on R^S. Let P be the
  orthogonal projector on the learned U. The mean of T P T^T over the group commutes with the group,
  so its eigenspaces are kept by every symbol, and U is that of the eigenvalues above 1/2. The mean
  is taken by averaging over symbols and the identity again and again.
- Planes of rotations, and complex gains: centres turn by the angle of a symbol, whose multiple by
  the order of its permutation is a full turn. Each angle is set to the nearest such, and the plane
  is kept if the angles are those of a character of the whole automaton.
- With integers, U is one that has a basis of functions whose values are integers, and that holds a
  representation equivalent to the learned one (`whole_numbers`): matrices, first state and readout
  are whole numbers then, which are computed with exactly.
- Factors A(x) = L diag(s) R^T: operators as those of a dense model, one term for every entry that
  is not zero for all symbols. Where that is more than the rank, L and R stay as they are but for a
  projection, and the gains solve linear equations; where these have no solution, snapping is
  refused.

S states, V symbols, C labels, n coordinates, d dimensions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from statetrack.algebra import needed_machine
from statetrack.constructions import LinearRepresentation, integer_terms, put_table
from statetrack.errors import SettingsError, setting
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.certificate.arithmetic import Unsupported, arithmetic_of
from statetrack.evidence.certificate.centres import FEW_ROUNDS, Edges, find_centres
from statetrack.evidence.certificate.linear import certify_linear, observed_later
from statetrack.evidence.kinds.certificate import Certificate
from statetrack.evidence.subject import Subject, exactly
from statetrack.evidence.whole_numbers import WholeNumbers
from statetrack.models import is_linear
from statetrack.ops import (
    BlockOperators,
    ComplexDiagonalOperators,
    DenseOperators,
    DiagonalOperators,
    FactoredOperators,
    Operators,
    RotationOperators,
)
from statetrack.sources import Automaton, Floats

if TYPE_CHECKING:
    from statetrack.sources import Source
    from statetrack.spec import Task

LARGEST_DEFECT = 0.05
"""The largest defect from which snapping starts, relative to the centres."""

SMALLEST_DIRECTION = 0.02
"""The share of the largest singular value from which a direction counts as used."""

SOLVED = 1e-9
"""The residual of equations, relative to their size, up to which they are solved."""


@dataclass(frozen=True)
class Snapped:
    """A model with exact operators, how far the learned ones were from them, and what is proven.

    `defect` is the largest distance by which a learned operator misses a centre, relative to the
    largest centre, and `dimension` that of the exact representation. The representation itself is
    right on words of all lengths, in real arithmetic; `certificate` is about its rounded weights.
    """

    model: nn.Module
    defect: float
    dimension: int
    kind: str
    certificate: Certificate


def snap(
    model: nn.Module,
    task: Task | str | Path | Source,
    *,
    largest_defect: float = LARGEST_DEFECT,
    seconds: float = 40.0,
    integers: bool = False,
) -> Snapped:
    """A copy of a linear model with the exact operators that its own are close to.

    With `integers` all weights are whole numbers: operators are matrices, blocks or factors then,
    and of the same characters, with their conjugates where these are not rational.

    Raises `SettingsError` where the task has no automaton, where the model's operators do not
    depend on the symbol alone, where no exact representation is as near as `largest_defect`, and
    for what is no time.
    """
    budget = SearchBudget.asked("snap", seconds)
    return snap_subject(Subject(model, task), largest_defect, budget, integers=integers)


def snap_subject(
    subject: Subject, largest_defect: float, budget: SearchBudget, *, integers: bool = False
) -> Snapped:
    """The same for a subject, within a budget."""
    model = subject.model
    if not is_linear(model):
        raise SettingsError(
            f"snap: {type(model).__name__} is not a linear model whose operators depend on the "
            "symbol alone, so there is no representation to snap to"
        )
    if not model.scale_invariant:
        raise SettingsError("snap: a model with additive terms or a readout bias is not snapped")
    try:
        real = arithmetic_of(model).real
    except Unsupported as error:
        raise SettingsError(f"snap: the arithmetic of {error} is not covered") from None
    transitions = Edges.of(subject.automaton, minimal=True)
    budget.say("averaging the states of the model over words")
    centres = find_centres(real.matrices, real.first, transitions, rounds=FEW_ROUNDS)
    found = copy.deepcopy(model)
    with torch.no_grad():
        operators = model.operators()
    goal = _Goal(real.matrices, centres, transitions, largest_defect)
    budget.say("solving for the exact operators")
    with torch.no_grad():
        match operators:
            case _ if integers:
                made = _snap_to_integers(found, operators, goal, subject.automaton)
            case RotationOperators() | ComplexDiagonalOperators():
                made = _snap_planes(found, operators, goal)
            case BlockOperators() | DiagonalOperators():
                made = _snap_blocks(found, operators, goal)
            case DenseOperators():
                made = _snap_dense(found, goal)
            case FactoredOperators():
                made = _snap_factors(found, operators, goal)
            case _:
                raise SettingsError("snap: operators of this structure are not snapped")
    defect, dimension, kind = made
    certificate = certify_linear(Subject(found, subject.automaton), budget=budget)
    if certificate.verdict_real == "not proven":
        remedy = "train longer" if certificate.complete else f"give more {setting('seconds')}"
        raise SettingsError(
            "snap: the exact representation nearest to the operators is not proven right "
            f"({certificate.reason}): {remedy}"
        )
    return Snapped(found, defect, dimension, kind, certificate)


Made = tuple[float, int, str]
"""The defect, the dimension of the representation, and its kind."""


@dataclass(frozen=True, eq=False)
class _Goal:
    """What is snapped: matrices [V, n, n], centres [S, n], and the largest defect allowed."""

    matrices: Floats
    centres: Floats
    transitions: Edges
    largest_defect: float

    @property
    def permutes(self) -> bool:
        """Whether every symbol can be read everywhere and permutes the states."""
        table = self.table
        states = np.arange(len(table))
        return bool((np.sort(table, axis=0) == states[:, None]).all())

    @property
    def table(self) -> Floats:
        """The next state, [S, V], -1 where a symbol is never drawn."""
        transitions = self.transitions
        table = np.full((transitions.num_states, len(self.matrices)), -1)
        table[transitions.source, transitions.symbol] = transitions.target
        return table

    def require(self, defect: float) -> float:
        """The defect, if it is small enough. Raises `SettingsError` otherwise."""
        if not defect <= self.largest_defect:
            raise SettingsError(
                f"snap: operators miss the nearest exact representation by {defect:.2g} of the "
                f"states' size, and {self.largest_defect:g} is the most that is snapped: train "
                "longer, or allow a larger --defect"
            )
        return defect

    def read_later(self) -> tuple[Floats, Floats, float]:
        """Coordinates of the centres as they are read later, [S, d], K [d, n], and the defect.

        Directions that operators forget, and that lead to nothing, are left out.
        """
        observed = observed_later(self.matrices)
        metric = np.eye(self.matrices.shape[1]) if observed is None else observed
        values, vectors = np.linalg.eigh((metric + metric.T) / 2)
        weigh = (np.sqrt(np.maximum(values, 0)) * vectors).T
        _, sizes, right = np.linalg.svd(self.centres @ weigh.T, full_matrices=False)
        rank = int((sizes > SMALLEST_DIRECTION * sizes[0]).sum())
        coordinates = right[:rank] @ weigh  # [d, n]
        points = self.centres @ coordinates.T
        defect = self.defect(points, coordinates)
        return points, coordinates, defect

    def defect(self, points: Floats, coordinates: Floats) -> float:
        """How far operators miss the centres in some coordinates, relative to the largest."""
        transitions = self.transitions
        images = np.matmul(self.centres, self.matrices.transpose(0, 2, 1))
        images = images[transitions.symbol, transitions.source] @ coordinates.T
        size = np.linalg.norm(points, axis=1).max()
        missed = np.linalg.norm(images - points[transitions.target], axis=1).max()
        return float(missed / size) if size > 0 else float("inf")

    def learned(self, points: Floats) -> Floats:
        """The operators [V, r, r] that lead points [S, d] to each other, on what these span."""
        _, sizes, right = np.linalg.svd(points, full_matrices=False)
        span = right[: int((sizes > SMALLEST_DIRECTION * sizes[0]).sum())]
        inside, edges = points @ span.T, self.transitions
        found = np.zeros((len(self.matrices), len(span), len(span)))
        for symbol in range(len(found)):
            mine = edges.symbol == symbol
            before, after = inside[edges.source[mine]], inside[edges.target[mine]]
            found[symbol] = np.linalg.lstsq(before, after, rcond=None)[0].T
        return found

    def kept_space(self, points: Floats) -> Floats:
        """A basis Q [S, d] of the functions near those of points that symbols keep.

        It is orthonormal, or one column of signs.

        Raises `SettingsError` where there is none of the same dimension.
        """
        num_states = len(points)
        left, sizes, _ = np.linalg.svd(points, full_matrices=False)
        rank = int((sizes > SMALLEST_DIRECTION * sizes[0]).sum())
        if rank == num_states:
            return np.eye(num_states)
        if not self.permutes:
            raise SettingsError(
                f"snap: the states lie in {rank} of {num_states} dimensions, and symbols do not "
                "permute them: no nearest exact representation is known"
            )
        projector = left[:, :rank] @ left[:, :rank].T
        inverse = np.argsort(self.table, axis=0).T  # of every symbol, [V, S]
        for _ in range(10_000):
            turned = np.mean([projector[np.ix_(each, each)] for each in inverse], axis=0)
            after = (projector + turned) / 2
            moved = abs(after - projector).max()
            projector = after
            if moved < 1e-15:
                break
        values, vectors = np.linalg.eigh((projector + projector.T) / 2)
        basis: Floats = vectors[:, values > 0.5].astype(np.float64)
        if basis.shape[1] != rank:
            raise SettingsError(
                f"snap: the states lie in {rank} dimensions, and the nearest space of functions "
                f"that symbols keep has {basis.shape[1]}: train longer"
            )
        # signs are exact in every floating-point type
        return basis / abs(basis).max() if rank == 1 else basis

    def operators_on(self, basis: Floats) -> Floats:
        """The operators [V, d, d] with A(x) q(s) = q(delta(s, x)) for the rows q of a basis.

        Raises `SettingsError` where there are none.
        """
        table = self.table
        found = np.zeros((table.shape[1], basis.shape[1], basis.shape[1]))
        for symbol, targets in enumerate(table.T):
            known = targets >= 0
            solved = np.linalg.lstsq(basis[known], basis[targets[known]], rcond=1e-10)[0]
            missed = abs(basis[known] @ solved - basis[targets[known]]).max(initial=0.0)
            if missed > SOLVED:
                raise SettingsError(
                    "snap: no operators lead the states' points exactly to each other, "
                    f"symbol {symbol} misses by {missed:.2g}"
                )
            found[symbol] = solved.T
        return found


def _snap_dense(model: Any, goal: _Goal) -> Made:
    """One coordinate per state where there is room, else a representation of the group."""
    points, _, defect = goal.read_later()
    goal.require(defect)
    num_states, hidden = goal.centres.shape
    logits = goal.centres @ exactly(model.readout.weight).T
    basis = np.eye(num_states) if num_states <= hidden else goal.kept_space(points)
    kind = "one coordinate per state" if num_states <= hidden else "orthogonal matrices"
    size = basis.shape[1]
    matrices = np.zeros_like(goal.matrices)
    matrices[:, :size, :size] = np.round(goal.operators_on(basis), 12)
    _put_table(model, "weight", matrices)
    _put(model.first, np.pad(basis[goal.transitions.start], (0, hidden - size)))
    weight = np.linalg.lstsq(basis, logits, rcond=None)[0].T
    _put(model.readout.weight, np.pad(weight, ((0, 0), (0, hidden - size))))
    return defect, size, kind


def _snap_blocks(model: Any, operators: BlockOperators | DiagonalOperators, goal: _Goal) -> Made:
    """Every block that holds a part of the states: its orthogonal operators; zeros elsewhere."""
    is_block = isinstance(operators, BlockOperators)
    if not is_block and not hasattr(model, "gains"):
        raise SettingsError("snap: gains between 0 and 1 are not exactly 0 or 1: not snapped")
    size = int(operators.blocks.shape[-1]) if isinstance(operators, BlockOperators) else 1
    hidden = goal.centres.shape[1]
    readout = exactly(model.readout.weight)
    matrices = np.zeros((len(goal.matrices), hidden // size, size, size))
    first, weight = np.zeros(hidden), np.zeros_like(readout)
    scale = np.linalg.norm(goal.centres, axis=1).max()
    defect, dimension = 0.0, 0
    for place in range(hidden // size):
        block = slice(place * size, (place + 1) * size)
        points = goal.centres[:, block]
        if np.linalg.norm(points, axis=1).max() < SMALLEST_DIRECTION * scale:
            continue
        missed = goal.defect(points, np.eye(hidden)[block])
        if missed > goal.largest_defect:
            continue  # what is left is proven right, or refused
        defect = max(defect, missed)
        basis = goal.kept_space(points)
        width = basis.shape[1]
        matrices[:, place, :width, :width] = np.round(goal.operators_on(basis), 12)
        # the nearest points, and the length of a state as it was
        length = float(np.linalg.norm(points) / np.linalg.norm(basis))
        if width == 1:  # a sign: of a power of two nothing is ever rounded
            length = 2.0 ** round(np.log2(length * abs(basis).max())) / abs(basis).max()
        start = slice(block.start, block.start + width)
        first[start] = basis[goal.transitions.start] * length
        nearest = np.linalg.lstsq(basis * length, points, rcond=None)[0]  # [width, size]
        weight[:, start] = readout[:, block] @ nearest.T
        dimension += width
    if not dimension:
        goal.require(goal.defect(goal.centres, np.eye(hidden)))
        raise SettingsError("snap: no block has operators near an exact representation")
    _put_table(
        model, "weight" if is_block else "gains", matrices if is_block else matrices[..., 0, 0]
    )
    _put(model.first, first)
    _put(model.readout.weight, weight)
    return defect, dimension, f"orthogonal blocks of {size}"


def _snap_planes(
    model: Any, operators: RotationOperators | ComplexDiagonalOperators, goal: _Goal
) -> Made:
    """Every plane whose angles are near a character of the automaton; zeros elsewhere."""
    if not goal.permutes:
        raise SettingsError("snap: rotations represent groups only, and symbols do not permute")
    table = goal.table
    planes = goal.centres.reshape(len(goal.centres), -1, 2)
    points = planes[..., 0] + 1j * planes[..., 1]  # [S, N]
    if isinstance(operators, RotationOperators):
        turns = exactly(operators.angles)
    else:
        turns = np.angle(operators.gains.detach().cpu().to(torch.complex128).numpy())
    orders = np.array([_order(column) for column in table.T])
    angles = np.round(turns * orders[:, None] / (2 * np.pi)) / orders[:, None] * 2 * np.pi
    scale = np.linalg.norm(goal.centres, axis=1).max()
    kept, defect = np.zeros(points.shape[1], bool), 0.0
    exact = np.zeros_like(points)
    for plane in range(points.shape[1]):
        if abs(points[:, plane]).max() < SMALLEST_DIRECTION * scale:
            continue
        character = _character(table, angles[:, plane], goal.transitions.start)
        if character is None:
            continue
        aligned = (points[:, plane] * character.conj()).mean()
        exact[:, plane] = aligned * character
        missed = abs(points[:, plane] - exact[:, plane]).max() / scale
        missed = max(missed, abs(np.exp(1j * (turns - angles)[:, plane]) - 1).max())
        if missed <= goal.largest_defect:
            kept[plane], defect = True, max(defect, float(missed))
    if not kept.any():
        goal.require(goal.defect(goal.centres, np.eye(goal.centres.shape[1])))
        raise SettingsError("snap: no plane turns by the angles of a character of the task")
    first = np.where(kept, exact[goal.transitions.start], 0)
    _put(model.first, np.stack([first.real, first.imag], -1).ravel())
    weight = exactly(model.readout.weight).reshape(len(model.readout.weight), -1, 2)
    _put(model.readout.weight, (weight * kept[:, None]).reshape(len(weight), -1))
    angles = np.where(kept, angles, 0.0)
    if isinstance(operators, RotationOperators):
        _put_table(model, "angles", angles)
    else:
        gains = np.where(kept, np.exp(1j * angles), 0)
        _put_table(model, "gains", np.stack([gains.real, gains.imag], -1))
    return defect, 2 * int(kept.sum()), "characters of the group"


def _order(targets: Floats) -> int:
    """The order of a permutation of the states."""
    states = np.arange(len(targets))
    reached, order = targets, 1
    while not np.array_equal(reached, states):
        reached, order = targets[reached], order + 1
    return order


def _character(table: Floats, angles: Floats, start: int) -> Any:
    """The value at every state of the character with these angles, 1 at the start; None if none."""
    values = np.zeros(len(table), complex)
    values[start] = 1
    seen = [start]
    for state in seen:
        for symbol, target in enumerate(table[state]):
            if values[target] == 0:
                values[target] = values[state] * np.exp(1j * angles[symbol])
                seen.append(int(target))
    turned = values[:, None] * np.exp(1j * angles)[None]
    return values if abs(turned - values[table]).max() < SOLVED else None


def _snap_factors(model: Any, operators: FactoredOperators, goal: _Goal) -> Made:
    """One term for every entry of the operators where there are enough, else the terms it has."""
    points, coordinates, defect = goal.read_later()
    goal.require(defect)
    left, right = exactly(operators.left), exactly(operators.right)
    hidden, rank = left.shape
    num_states = len(points)
    # logits are read from the state after a symbol: from those at the transitions' targets
    transitions, near = goal.transitions, exactly(operators.gains)
    images = np.matmul(goal.centres, goal.matrices.transpose(0, 2, 1))
    logits = images[transitions.symbol, transitions.source] @ exactly(model.readout.weight).T
    basis, kind = np.eye(num_states), "one coordinate per state"
    entries = np.argwhere(goal.operators_on(basis).any(0))
    if num_states > hidden or len(entries) > rank:
        basis, kind = goal.kept_space(points), "orthogonal matrices"
        entries = np.argwhere((abs(goal.operators_on(basis)) > SOLVED).any(0))
    size = basis.shape[1]
    if size > hidden:
        raise SettingsError(f"snap: {size} dimensions do not fit into hidden {hidden}")
    matrices = goal.operators_on(basis)
    if len(entries) <= rank:
        new_left, new_right = np.eye(size)[entries].transpose(1, 2, 0)
        gains = np.round(matrices[:, entries[:, 0], entries[:, 1]], 12)
        kind = f"{kind}, one term per entry"
    else:
        # points q(s) = to_basis h, and p = R^T h: columns of L and R in these coordinates
        new_left = np.linalg.lstsq(points, basis, rcond=None)[0].T @ coordinates @ left
        new_right = np.linalg.lstsq(basis, goal.centres @ right, rcond=None)[0]
        terms = np.einsum("ik,jk->ijk", new_left, new_right).reshape(size * size, -1)
        wanted = matrices.reshape(len(matrices), -1)
        gains = near + (wanted - near @ terms.T) @ np.linalg.pinv(terms, rcond=1e-8).T
        missed = abs(gains @ terms.T - wanted).max()
        if missed > SOLVED * max(1.0, abs(gains).max()):
            raise SettingsError(
                f"snap: {size * size} numbers of every operator are too many for rank {rank}: its "
                f"factors miss them by {missed:.2g}"
            )
        kind = f"{kind}, the terms that were learned"
    weight = np.linalg.lstsq(basis[transitions.target], logits, rcond=None)[0].T

    def padded(table: Any, rows: int, columns: int) -> Any:
        return np.pad(table, ((0, rows - len(table)), (0, columns - table.shape[1])))

    _put(model.left, padded(new_left, hidden, rank))
    _put(model.right, padded(new_right, hidden, rank))
    _put_table(model, "gains", padded(gains, len(gains), rank))
    _put(model.first, np.pad(basis[transitions.start], (0, hidden - size)))
    _put(model.readout.weight, padded(weight, len(weight), hidden))
    return defect, size, kind


# --- integers ---


def _snap_to_integers(model: Any, operators: Operators, goal: _Goal, automaton: Automaton) -> Made:
    """Matrices, blocks or factors of integers, where the model has room for them."""
    points, _, defect = goal.read_later()
    goal.require(defect)
    whole = WholeNumbers(needed_machine(automaton), defect)
    num_symbols, hidden = len(goal.matrices), goal.centres.shape[1]

    def within(room: int, name: str) -> Callable[[LinearRepresentation], str | None]:
        return lambda each: (
            None if each.size <= room else f"{setting(name, room)}: {each.size} is enough"
        )

    match operators:
        case DenseOperators():
            learned = goal.learned(points)
            parts = [whole.for_operators(learned, within(hidden, "hidden"), reads=True)]
            matrices = np.zeros((num_symbols, hidden, hidden))
            matrices[:, : parts[0].size, : parts[0].size] = parts[0].matrices
            put_table(model, model.weight, matrices)
        case BlockOperators():
            size, scale = operators.blocks.shape[-1], np.linalg.norm(goal.centres, axis=1).max()
            parts = []
            for place in range(hidden // size):
                own = goal.centres[:, place * size : (place + 1) * size]
                used = np.linalg.norm(own, axis=1).max() >= SMALLEST_DIRECTION * scale
                if (
                    used
                    and goal.defect(own, np.eye(hidden)[place * size :][:size])
                    <= goal.largest_defect
                ):
                    fits = within(size, "block_size")
                    found = whole.for_operators(goal.learned(own), fits, reads=False)
                    parts.append(found.padded(size))
            if not parts:
                raise SettingsError("snap: no block has operators near a representation")
            blocks = np.zeros((num_symbols, hidden // size, size, size))
            blocks[:, : len(parts)] = np.stack([part.matrices for part in parts], 1)
            put_table(model, model.weight, blocks)
        case FactoredOperators():
            rank = operators.left.shape[1]

            def has_terms(each: LinearRepresentation) -> str | None:
                terms = integer_terms(each).rank
                fewer = None if terms <= rank else f"{setting('rank', rank)}: {terms} suffice"
                return within(hidden, "hidden")(each) or fewer

            parts = [whole.for_operators(goal.learned(points), has_terms, reads=True)]
            terms = integer_terms(parts[0])
            for name, values in (("left", terms.left), ("right", terms.right)):
                side = np.zeros((hidden, rank))
                side[: len(values), : terms.rank] = values
                _put(getattr(model, name), side)
            gains = np.pad(terms.gains, ((0, 0), (0, rank - terms.rank)))
            put_table(model, model.gains, gains)
        case _:
            raise SettingsError(
                f"snap: {setting('integers', True)}: of matrices, blocks and factors alone"
            )
    readout = whole.readout(parts)
    if readout is None:
        raise SettingsError("snap: no whole numbers read the labels from blocks of integers")
    first = np.concatenate([part.points[whole.machine.automaton.start] for part in parts])
    _put(model.first, np.pad(first, (0, hidden - len(first))))
    _put(model.readout.weight, np.pad(readout, ((0, 0), (0, hidden - len(first)))))
    return defect, len(first), "integers"


def _put(parameter: Tensor, values: Any) -> None:
    parameter.copy_(torch.from_numpy(np.ascontiguousarray(values)).to(parameter.dtype))


def _put_table(model: Any, name: str, table: Floats) -> None:
    """Write a table with one row per symbol, [V, ...], through learned embeddings if there are."""
    parameter, vectors = getattr(model, name), model.embedding.vectors
    if vectors is None:
        _put(parameter, table)
        return
    embedding = exactly(vectors)
    if np.linalg.matrix_rank(embedding) < len(embedding):
        raise SettingsError(
            f"snap: {embedding.shape[1]} dimensions of embeddings do not give {len(embedding)} "
            "symbols operators of their own"
        )
    solved = np.linalg.pinv(embedding) @ table.reshape(len(table), -1)
    _put(parameter, np.moveaxis(solved.reshape(-1, *table.shape[1:]), 0, -1))
