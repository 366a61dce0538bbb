"""The operators of a linear model: one linear map of the state per symbol, in its own structure.

Every class applies its operators, selects some of them, and writes them out as dense
matrices; a structure that is closed under multiplication also composes.

V symbols, B batch, H hidden, K rank, N blocks, b block size. States are column vectors
[B, H]: the operator of a word x_1 .. x_T is A(x_T) ... A(x_1).
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
from torch import Tensor


class Operators(abc.ABC):
    """V linear maps of R^H."""

    @abc.abstractmethod
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        """A(x) h for symbols [B] and states [B, H]: the next states [B, H]."""

    @abc.abstractmethod
    def select(self, symbols: Tensor) -> Operators:
        """The operators of the given symbols [N], in that order."""

    @abc.abstractmethod
    def dense(self) -> Tensor:
        """The operators as matrices [V, H, H]."""


class ComposableOperators(Operators):
    """Operators of a structure that is closed under multiplication."""

    @abc.abstractmethod
    def select(self, symbols: Tensor) -> ComposableOperators:
        """The operators of the given symbols [N], in that order."""

    @abc.abstractmethod
    def compose(self, earlier: ComposableOperators) -> ComposableOperators:
        """The v-th of these after the v-th of `earlier`, for every v."""


@dataclass(frozen=True)
class DenseOperators(ComposableOperators):
    """Matrices written out: `matrices` [V, H, H]."""

    matrices: Tensor

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        return torch.einsum("bij,bj->bi", self.matrices[symbols], states)

    def select(self, symbols: Tensor) -> DenseOperators:  # noqa: D102
        return DenseOperators(self.matrices[symbols])

    def compose(self, earlier: ComposableOperators) -> DenseOperators:  # noqa: D102
        return DenseOperators(self.matrices @ earlier.dense())

    def dense(self) -> Tensor:  # noqa: D102
        return self.matrices


@dataclass(frozen=True)
class FactoredOperators(Operators):
    """A(x) = left diag(gains_x) right^T: `left`, `right` [H, K] shared, `gains` [V, K]."""

    left: Tensor
    gains: Tensor
    right: Tensor

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        return (self.gains[symbols] * (states @ self.right)) @ self.left.mT

    def select(self, symbols: Tensor) -> FactoredOperators:  # noqa: D102
        return FactoredOperators(self.left, self.gains[symbols], self.right)

    def dense(self) -> Tensor:  # noqa: D102
        return torch.einsum("ik,vk,jk->vij", self.left, self.gains, self.right)


@dataclass(frozen=True)
class BlockOperators(ComposableOperators):
    """Block-diagonal matrices: `blocks` [V, N, b, b], with H = N b."""

    blocks: Tensor

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        parts = states.unflatten(1, self.blocks.shape[1:3])
        return torch.einsum("bnij,bnj->bni", self.blocks[symbols], parts).flatten(1)

    def select(self, symbols: Tensor) -> BlockOperators:  # noqa: D102
        return BlockOperators(self.blocks[symbols])

    def compose(self, earlier: ComposableOperators) -> BlockOperators:  # noqa: D102
        assert isinstance(earlier, BlockOperators)
        return BlockOperators(self.blocks @ earlier.blocks)

    def dense(self) -> Tensor:  # noqa: D102
        return torch.stack([torch.block_diag(*blocks) for blocks in self.blocks])


@dataclass(frozen=True)
class RotationOperators(ComposableOperators):
    """Rotations of N planes: `angles` [V, N] in radians, with H = 2 N."""

    angles: Tensor

    def _blocks(self) -> BlockOperators:
        cos, sin = self.angles.cos(), self.angles.sin()
        rows = torch.stack([cos, -sin, sin, cos], -1)
        return BlockOperators(rows.unflatten(-1, (2, 2)))

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        return self._blocks().apply(symbols, states)

    def select(self, symbols: Tensor) -> RotationOperators:  # noqa: D102
        return RotationOperators(self.angles[symbols])

    def compose(self, earlier: ComposableOperators) -> RotationOperators:  # noqa: D102
        assert isinstance(earlier, RotationOperators)
        return RotationOperators(self.angles + earlier.angles)

    def dense(self) -> Tensor:  # noqa: D102
        return self._blocks().dense()


@dataclass(frozen=True)
class DiagonalOperators(ComposableOperators):
    """Diagonal matrices: `gains` [V, H], real."""

    gains: Tensor

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        return self.gains[symbols] * states

    def select(self, symbols: Tensor) -> DiagonalOperators:  # noqa: D102
        return DiagonalOperators(self.gains[symbols])

    def compose(self, earlier: ComposableOperators) -> DiagonalOperators:  # noqa: D102
        assert isinstance(earlier, DiagonalOperators)
        return DiagonalOperators(self.gains * earlier.gains)

    def dense(self) -> Tensor:  # noqa: D102
        return torch.diag_embed(self.gains)


@dataclass(frozen=True)
class ComplexDiagonalOperators(ComposableOperators):
    """Complex diagonal matrices, `gains` [V, N], on R^H = C^N with H = 2 N.

    A real state lists the real and imaginary part of each complex coordinate in turn.
    """

    gains: Tensor

    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:  # noqa: D102
        return as_real(self.gains[symbols] * as_complex(states))

    def select(self, symbols: Tensor) -> ComplexDiagonalOperators:  # noqa: D102
        return ComplexDiagonalOperators(self.gains[symbols])

    def compose(self, earlier: ComposableOperators) -> ComplexDiagonalOperators:  # noqa: D102
        assert isinstance(earlier, ComplexDiagonalOperators)
        return ComplexDiagonalOperators(self.gains * earlier.gains)

    def dense(self) -> Tensor:  # noqa: D102
        real, imaginary = self.gains.real, self.gains.imag
        rows = torch.stack([real, -imaginary, imaginary, real], -1)
        return BlockOperators(rows.unflatten(-1, (2, 2))).dense()


def as_complex(states: Tensor) -> Tensor:
    """Real states [..., 2 N] as complex ones [..., N]."""
    return torch.view_as_complex(states.unflatten(-1, (-1, 2)).contiguous())


def as_real(states: Tensor) -> Tensor:
    """Complex states [..., N] as real ones [..., 2 N]."""
    return torch.view_as_real(states).flatten(-2)
