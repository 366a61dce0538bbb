"""The squared error of a linear machine on given words, brought to its minimum.

    minimise    sum over words and scored positions t of |C A(x_t) .. A(x_1) h_0 - y_t|^2

over all operators, the first state and the readout, by Gauss-Newton steps: where the minimum is
zero they converge quadratically, to 1e-25 and below, which is beyond what float32 can hold.
`scipy.optimize.least_squares` takes the steps (Branch, Coleman & Li 1999, SIAM Journal on
Scientific Computing 21), each solved by LSMR (Fong & Saunders 2011, arXiv:1006.0758), which needs
products with the Jacobian and its transpose only.

V symbols, B words, T time, K size of a state, C labels, P scored positions. Tensors are float64.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from statetrack.ops import dense_recurrence
from statetrack.training.finishing.realization import Coordinates, Machine
from statetrack.training.words import Words

Numbers = NDArray[np.float64]

MOST_STEPS = 12
"""Gauss-Newton steps; from a trained model, four to six are enough where the minimum is zero."""
MOST_PRODUCTS = 150
"""Products with the Jacobian for one step."""
PRECISION = 1e-4
"""The relative error of a step: the next one corrects it."""
MOST_PRODUCTS_DETERMINED = 100
"""The same where the words are to determine the unknowns: 15 to 60 are enough where they do."""
LEAST_FALL = 4.0
"""By what a step divides the squared error at least, where the words determine the unknowns: from
a trained model it is 40 and more."""
ROUNDED = 1e-15
"""The squared error below which such a fall is not asked for: float32 rounds weights by more."""
SMALLEST = 1e-22
"""The mean squared error at which the equations are solved."""


class UndeterminedError(Exception):
    """The words do not determine the unknowns: steps take too many products, or gain too little."""


def solved(
    machine: Machine,
    words: Words,
    targets: Tensor,
    coordinates: Coordinates,
    *,
    determined: bool = False,
) -> Machine:
    """The machine after Gauss-Newton steps; `targets` [B, T, C] are the logits wanted.

    The steps are measured in units in which `coordinates` make all unknowns alike important.

    With `determined`, raises `UndeterminedError` after the first step that takes more than
    `MOST_PRODUCTS_DETERMINED` products or gains less than `LEAST_FALL`: then some of the unknowns
    hardly change the logits, and the machine at which all steps end is one of many.
    """
    equations = _Equations(machine, words, targets, determined)
    roots = coordinates.values.sqrt()
    units = _joined(
        Machine(
            (1 / torch.outer(roots, roots)).expand_as(machine.operators),
            1 / roots,
            (1 / roots).expand_as(machine.readout),
        )
    )
    # scipy ends where the largest gradient is below `gtol`; at a mean error e it is about sqrt(e)
    found = least_squares(
        equations.residual,
        _joined(machine),
        equations.jacobian,
        x_scale=units,
        method="trf",
        tr_solver="lsmr",
        tr_options={
            "atol": PRECISION,
            "btol": PRECISION,
            "maxiter": MOST_PRODUCTS_DETERMINED if determined else MOST_PRODUCTS,
            "regularize": False,
        },
        ftol=1e-8,
        xtol=1e-12,
        gtol=SMALLEST**0.5,
        max_nfev=MOST_STEPS,
    )
    return equations.machine(found.x)


class _Equations:
    """The residuals [P C] of all unknowns, and products with their Jacobian."""

    def __init__(
        self, machine: Machine, words: Words, targets: Tensor, determined: bool = False
    ) -> None:
        self.like = machine
        self.determined = determined
        self.products, self.error = 0, np.inf
        self.symbols = words.symbols
        self.scored = words.scored.mT  # [T, B]
        self.targets = targets.transpose(0, 1)[self.scored]  # [P, C]
        self.weight = float(words.scored.sum()) ** -0.5
        by_time = words.symbols.mT.flatten()
        counts = torch.bincount(by_time, minlength=len(machine.operators))
        self.by_symbol = by_time.argsort(stable=True).split(counts.tolist())
        self.point: Numbers | None = None
        self.kept = torch.empty(0)

    def machine(self, point: Numbers) -> Machine:
        """The unknowns as a machine."""
        like = self.like
        sizes = [like.operators.numel(), like.first.numel(), like.readout.numel()]
        operators, first, readout = torch.from_numpy(np.ravel(point)).split(sizes)
        return Machine(operators.view_as(like.operators), first, readout.view_as(like.readout))

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
        self.now = Machine(
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
        self.states = states.detach()
        self.before = torch.cat([first.detach().unsqueeze(0), self.states[:-1]])  # h_{t-1}
        return self.kept

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

    def _backward(self, direction: Numbers) -> Numbers:
        """The transposed Jacobian times a direction."""
        parts = (self.now.operators, self.now.first, self.now.readout)
        along = torch.from_numpy(np.ravel(direction))
        gradients = torch.autograd.grad(self.kept, parts, along, retain_graph=True)
        return _joined(Machine(*gradients))


def _joined(machine: Machine) -> Numbers:
    """All numbers of a machine as one vector."""
    return joined(machine.operators, machine.first, machine.readout)


def joined(*parts: Tensor) -> Numbers:
    """All numbers of some tensors as one vector."""
    return np.concatenate([part.detach().reshape(-1).numpy() for part in parts])
