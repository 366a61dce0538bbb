"""Least-squares problems at the end of training: a linear machine on given words, and CP factors.

    minimise    sum over words and scored positions t of |C A(x_t) .. A(x_1) h_0 - y_t|^2

over all operators, the first state and the readout, by Gauss-Newton steps: where the minimum is
zero they converge quadratically, to 1e-25 and below, which is beyond what float32 can hold. And

    A(x) = W1 diag(s_x) W2^T for every symbol x,    W1, W2 [K, R], s [V, R]

for the CP factors of given operators that are nearest to factors one has; where the operators have
few entries, a term for each of them.

`scipy.optimize.least_squares` takes the steps (Branch, Coleman & Li 1999, SIAM Journal on
Scientific Computing 21), each solved by LSMR (Fong & Saunders 2011, arXiv:1006.0758), which needs
products with the Jacobian and its transpose only.

V symbols, B words, T time, K size of a state, C labels, P scored positions, R rank. Tensors are
float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from statetrack.ops import FactoredOperators, dense_recurrence
from statetrack.training.finish.realization import Coordinates, LinearMachine
from statetrack.training.words import Words

Numbers = NDArray[np.float64]

MOST_STEPS = 12
"""Gauss-Newton steps; from a trained model, four to six are enough where the minimum is zero."""
MOST_PRODUCTS = 150
"""Products with the Jacobian for one step."""
PRECISION = 1e-4
"""The relative error of a step: the next one corrects it."""
MOST_PRODUCTS_DETERMINED = 120
"""The same where the words are to determine the unknowns: 15 to 60 are enough where they do, and
some 100 in the step before they converge quadratically."""
LEAST_FALL = 4.0
"""By what a step divides the squared error at least, where the words determine the unknowns: from
a trained model it is 40 and more."""
ROUNDED = 1e-15
"""The squared error below which such a fall is not asked for: float32 rounds weights by more."""
SMALLEST = 1e-22
"""The mean squared error at which the equations are solved."""
MOST_WORK = 10**10
"""Multiplications of all products of one solution, a bound on the time that no clock decides: some
6 s of one core. Where the minimum is zero and words show few dimensions, a hundredth is enough."""


class UndeterminedError(Exception):
    """The words do not determine the unknowns: steps take too many products, or gain too little."""


class _WorkIsDoneError(Exception):
    """The products have taken `MOST_WORK`."""


def solved(
    machine: LinearMachine,
    words: Words,
    targets: Tensor,
    coordinates: Coordinates,
    *,
    determined: bool = False,
) -> LinearMachine:
    """The machine after Gauss-Newton steps; `targets` [B, T, C] are the logits wanted.

    The steps are measured in units in which `coordinates` make all unknowns alike important.

    With `determined`, raises `UndeterminedError` after the first step that takes more than
    `MOST_PRODUCTS_DETERMINED` products or gains less than `LEAST_FALL`: then some of the unknowns
    hardly change the logits, and the machine at which all steps end is one of many. Without it, the
    best machine is returned that `MOST_WORK` allows.
    """
    equations = _Equations(machine, words, targets, determined)
    roots = coordinates.values.sqrt()
    units = _joined(
        LinearMachine(
            (1 / torch.outer(roots, roots)).expand_as(machine.operators),
            1 / roots,
            (1 / roots).expand_as(machine.readout),
        )
    )
    # scipy ends where the largest gradient is below `gtol`; at a mean error e it is about sqrt(e)
    most = MOST_PRODUCTS_DETERMINED if determined else MOST_PRODUCTS
    try:
        found = least_squares(
            equations.residual,
            _joined(machine),
            equations.jacobian,
            x_scale=units,
            method="trf",
            tr_solver="lsmr",
            tr_options=_of_lsmr(PRECISION, most),
            ftol=1e-8,
            xtol=1e-12,
            gtol=SMALLEST**0.5,
            max_nfev=MOST_STEPS,
        )
    except _WorkIsDoneError:
        return equations.machine(equations.best)
    return equations.machine(found.x)


class _Equations:
    """The residuals [P C] of all unknowns, and products with their Jacobian."""

    def __init__(
        self, machine: LinearMachine, words: Words, targets: Tensor, determined: bool = False
    ) -> None:
        self.like = machine
        self.determined = determined
        self.products, self.error = 0, np.inf
        self.best, self.least = _joined(machine), np.inf
        self.work, self.work_of_one = 0.0, float(words.symbols.numel() * machine.size**2)
        self.symbols = words.symbols
        self.scored = words.scored.mT  # [T, B]
        self.targets = targets.transpose(0, 1)[self.scored]  # [P, C]
        self.weight = float(words.scored.sum()) ** -0.5
        by_time = words.symbols.mT.flatten()
        counts = torch.bincount(by_time, minlength=len(machine.operators))
        self.by_symbol = by_time.argsort(stable=True).split(counts.tolist())
        self.point: Numbers | None = None
        self.kept = torch.empty(0)

    def machine(self, point: Numbers) -> LinearMachine:
        """The unknowns as a machine."""
        like = self.like
        return LinearMachine(*_apart(point, like.operators, like.first, like.readout))

    def residual(self, point: Numbers) -> Numbers:
        """(C h_t - y_t) / sqrt(P) of all scored positions: their squares add up to the mean."""
        residual: Numbers = self._residual_at(point).numpy(force=True).copy()
        return residual

    def _residual_at(self, point: Numbers) -> Tensor:
        """The residuals, kept with what their derivatives need until another point is asked for."""
        if self.point is not None and np.array_equal(self.point, point):
            return self.kept
        if self.determined and self.products >= MOST_PRODUCTS_DETERMINED:
            raise UndeterminedError
        self.products = 0
        self.point = point.copy()
        given = self.machine(self.point)
        self.now = LinearMachine(
            *(
                part.clone().requires_grad_()
                for part in (given.operators, given.first, given.readout)
            )
        )
        with torch.enable_grad():
            first = self.now.first.expand(len(self.symbols), -1)
            states = dense_recurrence(self.now.operators, self.symbols, first)
            logits = states[self.scored] @ self.now.readout.mT
            self.kept = ((logits - self.targets) * self.weight).flatten()
        error = float(self.kept.detach().square().sum())
        if self.determined and error > max(ROUNDED, self.error / LEAST_FALL):
            raise UndeterminedError
        self.error = error
        if error < self.least:
            self.best, self.least = self.point, error
        self.states = states.detach()
        self.before = torch.cat([first.detach().unsqueeze(0), self.states[:-1]])  # h_{t-1}
        return self.kept

    @property
    def solved(self) -> bool:
        """Whether an error has been found that is below what float32 rounds."""
        return self.least <= ROUNDED

    def jacobian(self, point: Numbers) -> LinearOperator:
        """The Jacobian at a point, as an operator."""
        kept = self._residual_at(point)
        return LinearOperator(
            (kept.numel(), point.size),
            matvec=self._forward,
            rmatvec=self._backward,
            dtype=np.float64,
        )

    @torch.no_grad()
    def _forward(self, direction: Numbers) -> Numbers:
        """The Jacobian times a direction: dh_t = A(x_t) dh_{t-1} + dA(x_t) h_{t-1}."""
        self.products += 1
        self._count()
        change, now = self.machine(np.asarray(direction)), self.now
        before = self.before.flatten(0, 1)
        inputs = torch.empty_like(before)
        for operator, positions in zip(change.operators, self.by_symbol, strict=True):
            inputs[positions] = before[positions] @ operator.mT
        states = dense_recurrence(
            now.operators.detach(),
            self.symbols,
            change.first.expand(len(self.symbols), -1),
            inputs.view_as(self.before),
        )
        logits = states[self.scored] @ now.readout.detach().mT
        logits += self.states[self.scored] @ change.readout.mT
        product: Numbers = (logits * self.weight).flatten().numpy()
        return product

    def _count(self) -> None:
        """One more product with the Jacobian, or with its transpose."""
        self.work += self.work_of_one
        if self.work > MOST_WORK:
            raise UndeterminedError if self.determined and not self.solved else _WorkIsDoneError

    def _backward(self, direction: Numbers) -> Numbers:
        """The transposed Jacobian times a direction."""
        self._count()
        parts = (self.now.operators, self.now.first, self.now.readout)
        along = torch.from_numpy(np.ravel(direction))
        # torch imports SymPy, which takes half a second, where `grad` is given a gradient
        with torch.enable_grad():
            product = self.kept.dot(along)
        gradients = torch.autograd.grad(product, parts, retain_graph=True)
        return _joined(LinearMachine(*gradients))


def _of_lsmr(precision: float, most: int) -> dict[str, Any]:
    """The options of the solver of one step: at most so many products with the Jacobian."""
    return {"atol": precision, "btol": precision, "maxiter": most, "regularize": False}


def _apart(point: Any, *like: Tensor) -> list[Tensor]:
    """One vector as tensors of the shapes of others."""
    parts = torch.from_numpy(np.ravel(point)).split([each.numel() for each in like])
    return [part.view_as(each) for part, each in zip(parts, like, strict=True)]


def _joined(machine: LinearMachine) -> Numbers:
    """All numbers of a machine as one vector."""
    return _as_one(machine.operators, machine.first, machine.readout)


def _as_one(*parts: Tensor) -> Numbers:
    """All numbers of some tensors as one vector."""
    return np.concatenate([part.detach().reshape(-1).numpy() for part in parts])


MOST_FACTOR_STEPS = 60
"""Gauss-Newton steps; four or five where the rank is ample, many where it barely suffices."""
STEPS_AT_ONCE = 4
"""Steps between two looks at whether the factors are close enough."""
MOST_FACTOR_PRODUCTS = 800
"""Products with the Jacobian for one step."""
MOST_FACTOR_WORK = 5 * 10**10
"""The same of factors: some 10 s of one core."""
CLOSE = 2.0**-25
"""The largest error of an entry, as a part of the largest entry, at which factors are close
enough: half of what float32 rounds, which they become."""


def factored(operators: Tensor, near: FactoredOperators) -> FactoredOperators:
    """Factors whose operators are close to the given ones [V, K, K], from those of `near`.

    They have a term for every entry, where these are few enough, and no two terms then cancel.
    """
    by_entry = _by_entry(operators, near)
    if by_entry is not None:
        return by_entry
    near = _balanced(near)
    problem = _Factoring(operators, near)
    point = _as_one(near.left, near.gains, near.right)
    close = CLOSE * float(operators.abs().max())
    num_symbols, rank = near.gains.shape
    product = 3 * num_symbols * near.left.shape[0] ** 2 * rank
    most = max(1, min(MOST_FACTOR_STEPS, MOST_FACTOR_WORK // (2 * MOST_FACTOR_PRODUCTS * product)))
    for done in range(0, most, STEPS_AT_ONCE):
        found = least_squares(
            problem.residual,
            point,
            problem.jacobian,
            method="trf",
            tr_solver="lsmr",
            tr_options=_of_lsmr(1e-6, MOST_FACTOR_PRODUCTS),
            ftol=1e-12,
            xtol=1e-12,
            gtol=1e-13,
            max_nfev=min(STEPS_AT_ONCE, most - done),
        )
        point = found.x
        if found.status or float(np.abs(found.fun).max()) <= close:  # 0: steps were used up
            break
    return problem.factors(point)


def _balanced(factors: FactoredOperators) -> FactoredOperators:
    """The same operators by factors whose columns are as long, term by term, in all three."""
    parts = (factors.left, factors.gains, factors.right)
    lengths = torch.stack([part.norm(dim=0).clamp(min=1e-300) for part in parts])
    common = lengths.prod(0) ** (1 / 3)
    return FactoredOperators(
        *(part / own * common for part, own in zip(parts, lengths, strict=True))
    )


def entries_of(operators: Tensor) -> Tensor:
    """Which entries of operators [V, K, K] are more than what float32 rounds: [V, K, K]."""
    sizes = operators.abs()
    return sizes > CLOSE * sizes.max()


def _by_entry(operators: Tensor, near: FactoredOperators) -> FactoredOperators | None:
    """A term for every entry, in factors of the shapes of others; None where they are too few."""
    shown = entries_of(operators)
    rows, columns = shown.any(0).nonzero(as_tuple=True)
    terms = torch.arange(len(rows))
    if len(terms) > near.gains.shape[1]:
        return None
    left, right, gains = (torch.zeros_like(part) for part in (near.left, near.right, near.gains))
    left[rows, terms], right[columns, terms] = 1.0, 1.0
    gains[:, terms] = (operators * shown)[:, rows, columns]
    return FactoredOperators(left, gains, right)


class _Factoring:
    """The residuals [V K K] of all factors, and products with their Jacobian."""

    def __init__(self, operators: Tensor, near: FactoredOperators) -> None:
        self.operators = operators
        self.near = near

    def factors(self, point: Any) -> FactoredOperators:
        """The unknowns as factors."""
        near = self.near
        return FactoredOperators(*_apart(point, near.left, near.gains, near.right))

    def residual(self, point: Numbers) -> Numbers:
        """The entries of all operators, less those wanted."""
        return (self.factors(point).dense() - self.operators).flatten().numpy()

    def jacobian(self, point: Numbers) -> LinearOperator:
        """The Jacobian at a point, as an operator."""
        at = self.factors(point)
        gains = at.gains.unsqueeze(1)  # [V, 1, R]
        gated_left, gated_right = at.left * gains, at.right * gains  # [V, K, R]

        def forward(direction: Any) -> Numbers:
            change = self.factors(direction)
            moved = change.left @ gated_right.mT + gated_left @ change.right.mT
            moved += (at.left * change.gains.unsqueeze(1)) @ at.right.mT
            return moved.flatten().numpy()

        def backward(direction: Any) -> Numbers:
            errors = torch.from_numpy(np.ravel(direction)).view_as(self.operators)
            on_right = errors @ at.right  # [V, K, R]
            return _as_one(
                (on_right * gains).sum(0),
                (on_right * at.left).sum(1),
                (errors.mT @ gated_left).sum(0),
            )

        return LinearOperator(
            (self.operators.numel(), point.size),
            matvec=forward,
            rmatvec=backward,
            dtype=np.float64,
        )
