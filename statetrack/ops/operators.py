"""The operators of a linear recurrence: one linear map of the state per symbol, by structure.

Every class applies its operators, runs the recurrence h_t = A(x_t) h_{t-1} (+ u_t), selects some
of its operators, and writes them out as dense matrices.

V symbols, B batch, T time, H hidden, K rank, N blocks, b block size. States are column vectors
[B, H]: the operator of a word x_1 .. x_T is A(x_T) ... A(x_1).

Where the tensors of operators have a leading axis of R replicas, and so have symbols [R, B, T] and
the first state [R, B, H], `recur` of the classes of this file gives states [T, R, B, H], and `read`
logits [R, B, T, C].
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from statetrack.ops import native
from statetrack.ops.devices import KernelChoice, natively
from statetrack.ops.diagonal import diagonal_recurrence, rotation_recurrence
from statetrack.ops.lanes import check_normalise, is_due, normalise_
from statetrack.ops.matrices import (
    LARGEST_BY_COORDINATE,
    block_recurrence,
    dense_recurrence,
    factored_recurrence,
)
from statetrack.ops.symbol_tables import lookup

LARGEST_NATIVE = 256
"""Above this size matrix products of torch are as fast as a compiled loop, or faster."""


class Operators(abc.ABC):
    """V linear maps of R^H."""

    @abc.abstractmethod
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        """A(x) h for symbols [B] and states [B, H]: the next states [B, H]."""

    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        """States [T, B, H] after each of the symbols [B, T], from a first state [B, H].

        `inputs` [T, B, H] is added at every step; every `normalise_every` steps the state is
        divided by a power of two (0: never); this is for evaluation without `inputs` only. By
        default one step is one `apply`; a structure with a faster recurrence overrides this method.
        """
        check_normalise(normalise_every, inputs)
        states = []
        for step, symbol in enumerate(symbols.unbind(1)):
            first = self.apply(symbol, first)
            if inputs is not None:
                first = first + inputs[step]
            if is_due(step, normalise_every):
                normalise_(first, (-1,))
            states.append(first)
        return torch.stack(states)

    def read(
        self,
        symbols: Tensor,
        first: Tensor,
        readout: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
        kernel: KernelChoice = "torch",
        ends: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Logits C h_t [B, T, C] by a matrix C `readout` [C, H], and the last state [B, H].

        The other arguments are those of `recur`, but a first state [1, H] is that of all words, and
        without `ends` the last state may be left out. Compiled loops compute them where `kernel`
        says so, there is such a loop, and it is not less exact than `recur`.
        """
        if inputs is None and natively(kernel, first):
            found = self._read_natively(symbols, first, readout, normalise_every, ends)
            if found is not None:
                return found
        first = first.expand(*symbols.shape[:-1], -1)
        return self._read_states(symbols, first, readout, inputs, normalise_every)

    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        """What `read` gives, by a compiled loop; None where there is none that is to be used."""
        return None

    def _read_states(
        self,
        symbols: Tensor,
        first: Tensor,
        readout: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
    ) -> tuple[Tensor, Tensor]:
        """What `read` gives, by `recur`."""
        states = self.recur(symbols, first, inputs, normalise_every=normalise_every)
        return (states @ readout.mT).movedim(0, -2), states[-1]

    @abc.abstractmethod
    def select(self, symbols: Tensor) -> Operators:
        """The operators of the given symbols [N], in that order."""

    @abc.abstractmethod
    def dense(self) -> Tensor:
        """The operators as matrices [V, H, H]."""


@dataclass(frozen=True)
class DenseOperators(Operators):
    """Dense matrices: `matrices` [V, H, H]."""

    matrices: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        return torch.einsum("bij,bj->bi", self.matrices[symbols], states)

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        return dense_recurrence(
            self.matrices, symbols, first, inputs, normalise_every=normalise_every
        )

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        if first.shape[-1] > LARGEST_NATIVE:
            return None
        return native.read_by_matrices(
            self.matrices, symbols, first, readout, normalise_every=normalise_every
        )

    @override
    def select(self, symbols: Tensor) -> DenseOperators:
        return DenseOperators(self.matrices[symbols])

    @override
    def dense(self) -> Tensor:
        return self.matrices


@dataclass(frozen=True)
class FactoredOperators(Operators):
    """A(x) = left diag(gains_x) right^T: `left`, `right` [H, K] shared, `gains` [V, K]."""

    left: Tensor
    gains: Tensor
    right: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        return (self.gains[symbols] * (states @ self.right)) @ self.left.mT

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        gated = self.recur_in_rank_space(symbols, first, inputs, normalise_every=normalise_every)
        states = gated @ self.left.mT
        return states if inputs is None else states + inputs

    def recur_in_rank_space(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        """z_t = s(x_t) * (right^T h_{t-1}), [T, B, K]: states are left z_t (+ u_t)."""
        return factored_recurrence(
            self.core(),
            lookup(self.gains, symbols),
            first @ self.right,
            None if inputs is None else inputs @ self.right,
            normalise_every=normalise_every,
        )

    def core(self) -> Tensor:
        """right^T left, [K, K]; without gradients it is summed in float64 and rounded once.

        The rounding of this one matrix acts at every step in the same direction.
        """
        if torch.is_grad_enabled() or self.left.device.type == "mps":  # which has no float64
            return _product(self.right.mT, self.left)
        return (self.right.double().mT @ self.left.double()).to(self.left.dtype)

    def summed(self) -> DenseOperators:
        """The same operators as matrices, each summed in float64 and rounded once."""
        left, right = (part.double().unsqueeze(-3) for part in (self.left, self.right))
        scaled = left * self.gains.double().unsqueeze(-2)  # [V, H, K]
        return DenseOperators((scaled @ right.mT).to(self.left.dtype))

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        if self.left.shape[-1] > LARGEST_NATIVE:
            return None
        logits, gated = native.read_by_factors(
            self.core(),
            self.gains,
            symbols,
            _product(first, self.right),
            _product(readout, self.left),
            normalise_every=normalise_every,
        )
        return logits, gated @ self.left.mT if ends else None

    @override
    def _read_states(
        self,
        symbols: Tensor,
        first: Tensor,
        readout: Tensor,
        inputs: Tensor | None,
        normalise_every: int,
    ) -> tuple[Tensor, Tensor]:
        """Without inputs in rank space, where the readout C left acts on gated coordinates."""
        if inputs is not None:
            return super()._read_states(symbols, first, readout, inputs, normalise_every)
        gated = self.recur_in_rank_space(symbols, first, normalise_every=normalise_every)
        return (gated @ (readout @ self.left).mT).movedim(0, -2), gated[-1] @ self.left.mT

    @override
    def select(self, symbols: Tensor) -> FactoredOperators:
        return FactoredOperators(self.left, self.gains[symbols], self.right)

    @override
    def dense(self) -> Tensor:
        return torch.einsum("ik,vk,jk->vij", self.left, self.gains, self.right)


@dataclass(frozen=True)
class BlockOperators(Operators):
    """Block-diagonal matrices: `blocks` [V, N, b, b], with H = N b."""

    blocks: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        parts = states.unflatten(1, self.blocks.shape[1:3])
        return torch.einsum("bnij,bnj->bni", self.blocks[symbols], parts).flatten(1)

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        parts = self.blocks.shape[-3:-1]
        return block_recurrence(
            self.blocks,
            symbols,
            first.unflatten(-1, parts),
            None if inputs is None else inputs.unflatten(-1, parts),
            normalise_every=normalise_every,
        ).flatten(-2)

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        if self.blocks.shape[-1] > LARGEST_BY_COORDINATE:
            return None
        return native.read_by_blocks(
            self.blocks, symbols, first, readout, normalise_every=normalise_every
        )

    @override
    def select(self, symbols: Tensor) -> BlockOperators:
        return BlockOperators(self.blocks[symbols])

    @override
    def dense(self) -> Tensor:
        return torch.stack([torch.block_diag(*blocks) for blocks in self.blocks])


@dataclass(frozen=True)
class RotationOperators(Operators):
    """Rotations of N planes: `angles` [V, N] in radians, with H = 2 N."""

    angles: Tensor

    def blocks(self) -> BlockOperators:
        """The same maps as matrices of 2 x 2."""
        cos, sin = self.angles.cos(), self.angles.sin()
        rows = torch.stack([cos, -sin, sin, cos], -1)
        return BlockOperators(rows.unflatten(-1, (2, 2)))

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        return self.blocks().apply(symbols, states)

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        angles = lookup(self.angles, symbols)  # [T, B, N]
        if inputs is None:  # lengths are kept: there is nothing to normalise
            return rotation_recurrence(angles, first.unflatten(-1, (-1, 2))).flatten(-2)
        check_normalise(normalise_every, inputs)
        gains = torch.polar(torch.ones_like(angles), angles)
        return as_real(diagonal_recurrence(gains, as_complex(first), as_complex(inputs)))

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        if not torch.is_grad_enabled():  # sums of angles are more exact on long words
            return None
        return native.read_by_angles(self.angles, symbols, first, readout)

    @override
    def select(self, symbols: Tensor) -> RotationOperators:
        return RotationOperators(self.angles[symbols])

    @override
    def dense(self) -> Tensor:
        return self.blocks().dense()


@dataclass(frozen=True)
class DiagonalOperators(Operators):
    """Diagonal matrices: `gains` [V, H], real."""

    gains: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        return self.gains[symbols] * states

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        gains = lookup(self.gains, symbols)
        return diagonal_recurrence(gains, first, inputs, normalise_every=normalise_every)

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        return native.read_by_gains(
            self.gains, symbols, first, readout, normalise_every=normalise_every
        )

    @override
    def select(self, symbols: Tensor) -> DiagonalOperators:
        return DiagonalOperators(self.gains[symbols])

    @override
    def dense(self) -> Tensor:
        return torch.diag_embed(self.gains)


@dataclass(frozen=True)
class ComplexDiagonalOperators(Operators):
    """Complex diagonal matrices, `gains` [V, N], on R^H = C^N with H = 2 N.

    A real state lists the real and imaginary part of each complex coordinate, interleaved.
    """

    gains: Tensor

    @override
    def apply(self, symbols: Tensor, states: Tensor) -> Tensor:
        return as_real(self.gains[symbols] * as_complex(states))

    @override
    def recur(
        self,
        symbols: Tensor,
        first: Tensor,
        inputs: Tensor | None = None,
        *,
        normalise_every: int = 0,
    ) -> Tensor:
        gains = torch.view_as_complex(lookup(torch.view_as_real(self.gains), symbols))
        states = diagonal_recurrence(
            gains,
            as_complex(first),
            None if inputs is None else as_complex(inputs),
            normalise_every=normalise_every,
        )
        return as_real(states)

    @override
    def _read_natively(
        self, symbols: Tensor, first: Tensor, readout: Tensor, normalise_every: int, ends: bool
    ) -> tuple[Tensor, Tensor | None] | None:
        return self._blocks()._read_natively(symbols, first, readout, normalise_every, ends)

    @override
    def select(self, symbols: Tensor) -> ComplexDiagonalOperators:
        return ComplexDiagonalOperators(self.gains[symbols])

    @override
    def dense(self) -> Tensor:
        return self._blocks().dense()

    def _blocks(self) -> BlockOperators:
        real, imaginary = self.gains.real, self.gains.imag
        rows = torch.stack([real, -imaginary, imaginary, real], -1)
        return BlockOperators(rows.unflatten(-1, (2, 2)))


def _product(left: Tensor, right: Tensor) -> Tensor:
    """The product of matrices, or of as many replicas of each: of these quicker than by `@`."""
    return torch.bmm(left, right) if left.dim() == right.dim() == 3 else left @ right


def diagonal_operators(gains: Tensor) -> Operators:
    """Diagonal operators of real gains [V, H] or complex gains [V, N]."""
    return ComplexDiagonalOperators(gains) if gains.is_complex() else DiagonalOperators(gains)


def as_complex(states: Tensor) -> Tensor:
    """Real states [..., 2 N] as complex ones [..., N]."""
    return torch.view_as_complex(states.unflatten(-1, (-1, 2)).contiguous())


def as_real(states: Tensor) -> Tensor:
    """Complex states [..., N] as real ones [..., 2 N]."""
    return torch.view_as_real(states).flatten(-2)
