"""Linear maps, and which implementation a layer has that has several.

B batch, T time, D width, V symbols, K inputs, N outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.ops import KernelChoice, native, natively


class WithKernel(nn.Module):
    """A layer with several implementations; a model names the one that its layers have."""

    kernel: KernelChoice = "torch"


def compute_by(kernel: KernelChoice, model: nn.Module) -> None:
    """Give all layers of a model, of those that have several, one choice of implementation."""
    for part in model.modules():
        if isinstance(part, WithKernel):
            part.kernel = kernel


def linear_map(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kernel: KernelChoice = "torch",
    others: Tensor | None = None,
) -> Tensor:
    """W x + b, plus others, [..., N], of inputs x [..., K].

    Of many by a loop, unless torch has threads.
    """
    if maps_by_loop(inputs, kernel):
        return native.linear(inputs, weight, bias, others)
    outputs = functional.linear(inputs, weight, bias)
    return outputs if others is None else others + outputs


def linear_beside(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    kernel: KernelChoice = "torch",
    others: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The same, and the inputs for other uses (`native.linear_beside`)."""
    if maps_by_loop(inputs, kernel):
        return native.linear_beside(inputs, weight, bias, others)
    return linear_map(inputs, weight, bias, kernel, others), inputs


def maps_by_loop(inputs: Tensor, kernel: KernelChoice) -> bool:
    """Whether a linear map of inputs [..., K] is computed by a loop."""
    many = inputs.numel() >= native.LEAST_ROWS * inputs.shape[-1]
    alone = many and not isinstance(inputs, RowsOfSymbols) and torch.get_num_threads() == 1
    return alone and natively(kernel, inputs)


def is_watched(*layers: nn.Module) -> bool:
    """Whether a layer has a hook, which is called only if the layer is: not as a part of a loop."""
    for layer in layers:
        if layer._forward_hooks or layer._forward_pre_hooks:
            return True
        if layer._backward_hooks or layer._backward_pre_hooks:
            return True
    return False


class Linear(WithKernel, nn.Linear):
    """A linear map that a choice of implementation can be given to."""

    def forward(self, inputs: Tensor, others: Tensor | None = None) -> Tensor:
        """W x + b, plus others, [..., N], of inputs x [..., K]."""
        return linear_map(inputs, self.weight, self.bias, self.kernel, others)


class RowsOfSymbols(Tensor):
    """Vectors [B, T, D] that depend on the symbol at their position alone.

    A linear map of them is computed once for each of V symbols in place of B T times; to all else
    they are a tensor like any other.
    """

    table: Tensor  # [V, D]
    symbols: Tensor  # [B, T]
    kernel: KernelChoice

    @classmethod
    def of(cls, table: Tensor, symbols: Tensor, kernel: KernelChoice = "torch") -> RowsOfSymbols:
        """The rows of a table [V, D] at symbols [B, T]."""
        rows: RowsOfSymbols = at_symbols(table, symbols, kernel).as_subclass(cls)
        rows.table, rows.symbols, rows.kernel = table, symbols, kernel
        return rows

    def mapped(self, module: nn.Module) -> RowsOfSymbols:
        """What a module makes of each vector by itself."""
        table: Tensor = module(self.table)
        return type(self).of(table, self.symbols, self.kernel)

    @classmethod
    def __torch_function__(
        cls,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Tensors of no class of their own; linear maps by symbol."""
        with torch.DisableTorchFunctionSubclass():
            if func is functional.linear and isinstance(args[0], cls):
                rows = args[0]
                table = functional.linear(rows.table, *args[1:], **(kwargs or {}))
                return at_symbols(table, rows.symbols, rows.kernel)
            return func(*args, **(kwargs or {}))


def at_symbols(terms: Any, symbols: Tensor, kernel: KernelChoice = "torch") -> Any:
    """Tensors [V, ...], one or a tuple of them, at symbols [B, T]: [B, T, ...]; None is None."""
    if terms is None:
        return None
    if not isinstance(terms, Tensor):
        make = getattr(terms, "_make", tuple)
        given = [part for part in terms if part is not None]
        if all(isinstance(part, Tensor) and _by_loop(part, kernel) for part in given):
            assert len({part.dtype for part in given}) == 1, "terms of one type"
            found = iter(native.rows_at_each(given, symbols))
            return make(None if part is None else next(found) for part in terms)
        return make(at_symbols(part, symbols, kernel) for part in terms)
    if terms.is_complex():
        return torch.view_as_complex(at_symbols(torch.view_as_real(terms), symbols, kernel))
    if _by_loop(terms, kernel):
        return native.rows_at(terms, symbols)
    rows = functional.embedding(symbols, terms.flatten(1))
    return rows.unflatten(-1, terms.shape[1:])


def _by_loop(terms: Tensor, kernel: KernelChoice) -> bool:
    """Whether a loop takes the rows of a tensor: those of real numbers."""
    return not terms.is_complex() and natively(kernel, terms)
