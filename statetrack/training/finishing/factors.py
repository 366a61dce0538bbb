"""The CP factors of given operators that are nearest to factors one has: a least-squares problem.

    A(x) = W1 diag(s_x) W2^T for every symbol x,    W1, W2 [K, R], s [V, R]

V symbols, K size of a state, R rank. Tensors are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares
from scipy.sparse.linalg import LinearOperator
from torch import Tensor

from statetrack.ops import FactoredOperators
from statetrack.training.finishing.equations import Numbers, joined

MOST_STEPS = 60
"""Gauss-Newton steps; four or five where the rank is ample, many where it barely suffices."""
STEPS_AT_ONCE = 4
"""Steps between two looks at whether the factors are close enough."""
MOST_PRODUCTS = 800
"""Products with the Jacobian for one step."""
MOST_WORK = 5 * 10**10
"""Multiplications in all: a bound on the time, some 10 s of one core, that no clock decides."""
CLOSE = 2.0**-25
"""The largest error of an entry, as a part of the largest entry, at which factors are close
enough: half of what float32 rounds, which they become."""


def factored(operators: Tensor, near: FactoredOperators) -> FactoredOperators:
    """Factors whose operators are close to the given ones [V, K, K], from those of `near`."""
    problem = _Factoring(operators, near)
    point = joined(near.left, near.gains, near.right)
    close = CLOSE * float(operators.abs().max())
    most = _most_steps(near)
    for done in range(0, most, STEPS_AT_ONCE):
        found = least_squares(
            problem.residual,
            point,
            problem.jacobian,
            method="trf",
            tr_solver="lsmr",
            tr_options={"atol": 1e-6, "btol": 1e-6, "maxiter": MOST_PRODUCTS, "regularize": False},
            ftol=1e-12,
            xtol=1e-12,
            gtol=1e-13,
            max_nfev=min(STEPS_AT_ONCE, most - done),
        )
        point = found.x
        if found.status or float(np.abs(found.fun).max()) <= close:  # 0: steps were used up
            break
    return problem.factors(point)


def _most_steps(near: FactoredOperators) -> int:
    """The Gauss-Newton steps that `MOST_WORK` allows, at least one."""
    num_symbols, rank = near.gains.shape
    size = near.left.shape[0]
    product = 3 * num_symbols * size**2 * rank
    affordable = MOST_WORK // (2 * MOST_PRODUCTS * product)
    return max(1, min(MOST_STEPS, affordable))


class _Factoring:
    """The residuals [V K K] of all factors, and products with their Jacobian."""

    def __init__(self, operators: Tensor, near: FactoredOperators) -> None:
        self.operators = operators
        self.near = near

    def factors(self, point: Any) -> FactoredOperators:
        """The unknowns as factors."""
        near = self.near
        sizes = [near.left.numel(), near.gains.numel(), near.right.numel()]
        left, gains, right = torch.from_numpy(np.ravel(point)).split(sizes)
        return FactoredOperators(
            left.view_as(near.left), gains.view_as(near.gains), right.view_as(near.right)
        )

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
            return joined(
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
