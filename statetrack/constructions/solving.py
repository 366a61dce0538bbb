"""Parameters that are solved for: zeros of smooth residuals, by damped steps from several starts.

The method is that of Levenberg (1944) and Marquardt (1963, doi:10.1137/0111030): steps d with
(J^T J + l D) d = -J^T r, where D is the diagonal of J^T J, and l falls with every step that makes
the sum of squares smaller and rises with every other.

N numbers that are solved for, M residuals, V symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.func import jacrev

from statetrack.constructions.case import BeyondBudget, NotBuilt

Numbers = dict[str, Tensor]
"""What is solved for, by name."""

ENOUGH = 1e-10
"""The largest residual of what counts as solved."""

MOST_STEPS = 100
"""Steps from each start."""

LARGEST = 6_000_000
"""The most entries N M of a matrix of derivatives."""

FALLING = 0.5
"""Ten steps have to make the sum of squares at least this much smaller."""


def solved(residuals: Callable[[Numbers], Tensor], starts: Iterable[Numbers], what: str) -> Numbers:
    """Numbers in float64 for which all residuals `[V, M / V]` are at most `ENOUGH`.

    Residuals are by symbol. Where some symbols are solved for and others are not, the next start
    has new numbers for the others alone, in all parameters that have a row for each symbol.

    Raises `NotBuilt` where no start leads to such numbers, with the least residual that was
    reached, and `BeyondBudget` where there are too many numbers and residuals.
    """
    reached: list[float] = []
    found: Numbers = {}
    missed = torch.ones(0, dtype=torch.bool)
    for drawn in starts:
        start = _redrawn(found, drawn, missed) if found and not missed.all() else drawn
        found, missing = _descend(residuals, start)
        reached.append(float(missing.max()))
        if reached[-1] <= ENOUGH:
            return found
        missed = missing > ENOUGH
    raise NotBuilt(
        f"its parameters were solved for from {len(reached)} starts, and {what} are missed by "
        f"{min(reached):.1e}"
    )


def _redrawn(found: Numbers, drawn: Numbers, missed: Tensor) -> Numbers:
    """What was found, with the drawn rows of the symbols that were missed, `[V]`."""
    return {
        name: torch.where(missed.view(-1, *[1] * (value.dim() - 1)), drawn[name].double(), value)
        if value.shape[:1] == missed.shape
        else value
        for name, value in found.items()
    }


def _descend(residuals: Callable[[Numbers], Tensor], start: Numbers) -> tuple[Numbers, Tensor]:
    """The numbers at the end of the steps from one start, and each symbol's largest residual."""
    names, shapes = list(start), [value.shape for value in start.values()]
    sizes = [value.numel() for value in start.values()]

    def unpacked(flat: Tensor) -> Numbers:
        parts = flat.split(sizes)
        return {name: part.view(to) for name, part, to in zip(names, parts, shapes, strict=True)}

    def flat_residuals(flat: Tensor) -> Tensor:
        return residuals(unpacked(flat)).flatten()

    flat = torch.cat([value.detach().double().flatten() for value in start.values()])
    missing = flat_residuals(flat).detach()
    if len(flat) * len(missing) > LARGEST:
        raise BeyondBudget(f"{len(flat):,} parameters are to be solved for")
    derivatives = jacrev(flat_residuals)
    damping, squares = 1e-2, [float(missing.square().sum())]
    while len(squares) <= MOST_STEPS and float(missing.abs().max()) > ENOUGH / 100:
        if len(squares) > 10 and squares[-1] > FALLING * squares[-11]:
            break
        slopes = derivatives(flat).detach()
        normal, gradient = slopes.mT @ slopes, slopes.mT @ missing
        diagonal = normal.diagonal().clamp_min(1e-12 * float(normal.diagonal().max()) + 1e-30)
        for _ in range(12):
            factor, failed = torch.linalg.cholesky_ex(normal + torch.diag(damping * diagonal))
            if not failed:
                next_flat = flat - torch.cholesky_solve(gradient[:, None], factor)[:, 0]
                next_missing = flat_residuals(next_flat).detach()
                next_squares = float(next_missing.square().sum())
                if next_squares < squares[-1]:
                    flat, missing, damping = next_flat, next_missing, damping / 5
                    squares.append(next_squares)
                    break
            damping *= 4
        else:
            break
    found = unpacked(flat)
    return found, residuals(found).detach().abs().flatten(1).amax(1)
