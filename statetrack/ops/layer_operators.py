"""The operators of layers: structures of matrix states, one operator for each position.

A layer's state is flattened to a vector: heads, then rows, then columns of a head's matrix. In
most layers the operator on each column is the same; `ColumnwiseOperators` wraps such operators.

V operators (the positions of a batch, say), B batch, H size of the flattened state, N heads,
K rows of a head's state, P columns, n Householder factors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from statetrack.ops.operators import Operators, as_complex, as_real


@dataclass(frozen=True)
class ColumnwiseOperators(Operators):
    """A tensor I_P: every column of a state with P columns is acted on by `each`, H = rows P."""

    each: Operators
    columns: int

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        by_column = states.unflatten(1, (-1, self.columns)).mT  # [B, P, rows]
        moved = self.each.apply(
            symbols.repeat_interleave(self.columns), by_column.reshape(-1, by_column.shape[-1])
        )
        return moved.reshape(by_column.shape).mT.flatten(1)

    @override
    def select(self, symbols: Tensor) -> ColumnwiseOperators:
        return ColumnwiseOperators(self.each.select(symbols), self.columns)

    @override
    def dense(self) -> Tensor:
        matrices = self.each.dense()
        identity = torch.eye(self.columns, dtype=matrices.dtype, device=matrices.device)
        product = torch.einsum("vij,pq->vipjq", matrices, identity)
        return product.flatten(3, 4).flatten(1, 2)


@dataclass(frozen=True)
class HouseholderOperators(Operators):
    """alpha (I - beta_n k_n k_n^T) ... (I - beta_1 k_1 k_1^T) in every head, H = N K.

    keys [V, n, N, K], betas [V, n, N], gates alpha [V, N], or None for 1.
    """

    keys: Tensor
    betas: Tensor
    gates: Tensor | None = None

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        heads: Tensor = states.unflatten(1, self.keys.shape[-2:])
        if self.gates is not None:
            heads = self.gates[symbols].unsqueeze(-1) * heads
        factors = zip(self.keys[symbols].unbind(1), self.betas[symbols].unbind(1), strict=True)
        for keys, betas in factors:
            read = (keys * heads).sum(-1)  # [B, N]
            heads = heads - (betas * read).unsqueeze(-1) * keys
        return heads.flatten(1)

    @override
    def select(self, symbols: Tensor) -> HouseholderOperators:
        gates = None if self.gates is None else self.gates[symbols]
        return HouseholderOperators(self.keys[symbols], self.betas[symbols], gates)

    @override
    def dense(self) -> Tensor:
        return _of_unit_vectors(self, len(self.keys), self.keys[0, 0].numel(), self.keys)


@dataclass(frozen=True)
class DiagonalMinusRankOneOperators(Operators):
    """diag(w) - l r^T in every head: gains w, left l and right r [V, N, K], with H = N K."""

    gains: Tensor
    left: Tensor
    right: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        heads: Tensor = states.unflatten(1, self.gains.shape[1:])
        read = (self.right[symbols] * heads).sum(-1, keepdim=True)  # [B, N, 1]
        return (self.gains[symbols] * heads - self.left[symbols] * read).flatten(1)

    @override
    def select(self, symbols: Tensor) -> DiagonalMinusRankOneOperators:
        return DiagonalMinusRankOneOperators(
            self.gains[symbols], self.left[symbols], self.right[symbols]
        )

    @override
    def dense(self) -> Tensor:
        return _of_unit_vectors(self, len(self.gains), self.gains[0].numel(), self.gains)


@dataclass(frozen=True)
class OneHotColumnOperators(Operators):
    """A complex diagonal matrix, then one that maps coordinate j to coordinate `targets[v, j]`.

    targets [V, N] are integers, gains [V, N] complex, on R^H = C^N as in
    `ComplexDiagonalOperators`.
    """

    targets: Tensor
    gains: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        moved = torch.view_as_real(self.gains[symbols] * as_complex(states))  # [B, N, 2]
        index = self.targets[symbols].unsqueeze(-1).expand_as(moved)
        return torch.zeros_like(moved).scatter_add(1, index, moved).flatten(1)

    @override
    def select(self, symbols: Tensor) -> OneHotColumnOperators:
        return OneHotColumnOperators(self.targets[symbols], self.gains[symbols])

    @override
    def dense(self) -> Tensor:
        return _of_unit_vectors(self, len(self.gains), 2 * self.gains.shape[1], self.gains.real)


@dataclass(frozen=True)
class OneHotRowOperators(Operators):
    """A matrix by which coordinate j reads coordinate `sources[v, j]`, then a complex diagonal one.

    sources [V, N] are integers, gains [V, N] complex, on R^H = C^N as in
    `ComplexDiagonalOperators`.
    """

    sources: Tensor
    gains: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        read = as_complex(states).gather(1, self.sources[symbols])
        return as_real(self.gains[symbols] * read)

    @override
    def select(self, symbols: Tensor) -> OneHotRowOperators:
        return OneHotRowOperators(self.sources[symbols], self.gains[symbols])

    @override
    def dense(self) -> Tensor:
        return _of_unit_vectors(self, len(self.gains), 2 * self.gains.shape[1], self.gains.real)


@dataclass(frozen=True)
class DirectSumOperators(Operators):
    """A direct sum of operators: `parts` in order, each on its own `sizes` coordinates."""

    parts: tuple[Operators, ...]
    sizes: tuple[int, ...]

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        split = zip(self.parts, states.split(self.sizes, 1), strict=True)
        return torch.cat([part.apply(symbols, own) for part, own in split], 1)

    @override
    def select(self, symbols: Tensor) -> DirectSumOperators:
        return DirectSumOperators(tuple(part.select(symbols) for part in self.parts), self.sizes)

    @override
    def dense(self) -> Tensor:
        by_operator = zip(*(part.dense() for part in self.parts), strict=True)
        return torch.stack([torch.block_diag(*blocks) for blocks in by_operator])


def _of_unit_vectors(operators: Operators, num: int, size: int, like: Tensor) -> Tensor:
    """The matrices [V, H, H] whose columns are the images of the unit vectors."""
    unit = torch.eye(size, dtype=like.dtype, device=like.device)
    symbols = torch.arange(num, device=like.device).repeat_interleave(size)
    moved = operators.apply(symbols, unit.repeat(num, 1))
    return moved.view(num, size, size).mT
