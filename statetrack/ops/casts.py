"""Numbers rounded to a type of any exponent and mantissa bits, and operations that round.

`rounded` is a cast to a `FloatFormat` and back, exact to the bit: to nearest, ties to even, gradual
underflow. The result is held in the tensor's own type, float64 or float32, which has to have it.

Inside `RoundedArithmetic` every operation of torch rounds. The factors of matrix products are cast
to one type, and what each operation gives to another. A sum, a product, a quotient or a square root
that float64 computes and that is then rounded to p <= 25 bits is rounded as if once, since 53 >=
2 p + 2 (Figueroa 1995, When is double rounding innocuous?). Matrix products are then sums of
products in the order of their index, each rounded; other sums, and functions, are rounded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from statetrack.rounding import FORMATS, LONGEST_ROUNDED_ONCE, FloatFormat

_HELD = {torch.float64: FORMATS["float64"], torch.float32: FORMATS["float32"]}
"""The types in which numbers can be held."""


def rounded(tensor: Tensor, to: FloatFormat | None, *, saturate: bool = False) -> Tensor:
    """The numbers of a tensor, float64, float32 or complex of these, cast to a type and back.

    Without a type they stay as they are, and so do tensors that are not floating-point.
    """
    if tensor.is_complex():
        real = rounded(torch.view_as_real(tensor), to, saturate=saturate)
        return torch.view_as_complex(real)
    if to is None or not tensor.is_floating_point() or to == FORMATS["float64"]:
        return tensor
    held = tensor.dtype
    if held not in _HELD:
        raise TypeError(f"{held} is neither float64 nor float32, so casts of it are not exact")
    if held == torch.float32 and to == FORMATS["float32"]:
        return tensor
    return _rounded(tensor.double(), to, saturate).to(held)


def _rounded(numbers: Tensor, to: FloatFormat, saturate: bool) -> Tensor:
    """The cast of float64 numbers."""
    normal = numbers
    if dropped := 52 - to.mantissa:
        bits = numbers.view(torch.int64)
        carried = ((bits >> dropped) & 1).add_(bits).add_((1 << (dropped - 1)) - 1)
        normal = carried.bitwise_and_(-(1 << dropped)).view(torch.float64)
    if numbers.device.type == "cpu" and numbers.numel():
        # most often all numbers are zero or in the range of normal ones
        sizes = normal.abs()
        if float(sizes.max()) <= to.largest:
            small = (sizes < 2.0**to.lowest).count_nonzero()
            if not small or small == numbers.numel() - numbers.count_nonzero():
                return normal
    # below the normal numbers their distance is `smallest`: adding a number whose own distance to
    # the next is that rounds to a multiple of it
    shift = 1.5 * to.smallest * 2.0**52
    below = torch.copysign((numbers + shift) - shift, numbers)
    found = torch.where(numbers.abs() < 2.0**to.lowest, below, normal)
    beyond = found.abs() > to.largest
    if saturate:
        limit = torch.full_like(found, to.largest)
    else:
        limit = torch.full_like(found, float("nan") if to.no_infinity else float("inf"))
    found = torch.where(beyond, torch.copysign(limit, numbers), found)
    if to.no_infinity and not saturate:
        found = torch.where(numbers.isinf(), torch.nan, found)
    return torch.where(numbers.isnan(), numbers, found)


def arithmetic(
    products: FloatFormat | None, results: FloatFormat | None
) -> AbstractContextManager[Any]:
    """The context in which operations round so; one that does nothing where none is to.

    Results are not rounded beyond the type in which tensors are held; `results` None leaves them.
    """
    if products is None and results is None:
        return nullcontext()
    return _operation_by_operation(RoundedArithmetic(products, results))


@contextmanager
def _operation_by_operation(mode: RoundedArithmetic) -> Iterator[None]:
    """The mode, without oneDNN, which computes a layer of torch.nn as one operation."""
    enabled = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with mode:
            yield
    finally:
        torch._C._set_mkldnn_enabled(enabled)


class RoundedArithmetic(TorchDispatchMode):
    """Operations whose matrix products take factors of one type, and whose results have another.

    `results` has at most 25 significant bits; tensors are float64 then.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to let it alone, torch would import its compiler, which takes a second."""
        return False

    def __init__(self, products: FloatFormat | None, results: FloatFormat | None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        assert results is None or results.mantissa < LONGEST_ROUNDED_ONCE
        self._products, self._results = products, results

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        product = _PRODUCTS.get(func.overloadpacket)
        if product is not None:
            if "out" in kwargs:
                kwargs = dict(kwargs)
                out = kwargs.pop("out")
                return out.copy_(self._product(func, product, args, kwargs))
            return self._product(func, product, args, kwargs)
        found = func(*args, **kwargs)
        if self._results is None:
            return found
        returns = func._schema.returns
        outputs = found if isinstance(found, tuple | list) else (found,)
        if len(returns) == 1 and isinstance(found, tuple | list):
            returns = returns * len(outputs)
        kept = [
            self._result(each, how.alias_info) for each, how in zip(outputs, returns, strict=True)
        ]
        return type(found)(kept) if isinstance(found, tuple | list) else kept[0]

    def _result(self, tensor: Any, alias: Any) -> Any:
        if not isinstance(tensor, Tensor) or not (
            tensor.is_floating_point() or tensor.is_complex()
        ):
            return tensor
        if alias is None:
            return rounded(tensor, self._results)
        if alias.is_write:  # in place
            return tensor.copy_(rounded(tensor, self._results))
        return tensor  # a view of numbers that are rounded already

    def _product(
        self, func: Any, places: tuple[int, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Tensor:
        """A matrix product [.., n, k] [.., k, m], or its sum with a first argument."""
        given = list(args)
        for place in places:
            given[place] = rounded(given[place], self._products)
        if self._results is None:
            found: Tensor = func(*given, **kwargs)
            return found
        left, right = (given[place] for place in places)
        if right.dim() == 1:
            return self._summed(left, right.unsqueeze(-1)).squeeze(-1)
        total = self._summed(left, right)
        if places[0] == 0:
            return total
        scaled = rounded(total * kwargs.get("alpha", 1), self._results)
        return rounded(given[0] * kwargs.get("beta", 1) + scaled, self._results)

    def _summed(self, left: Tensor, right: Tensor) -> Tensor:
        """The sum over k in the order of k, each product and each sum rounded."""
        total = None
        for column, row in zip(left.unbind(-1), right.unbind(-2), strict=True):
            term = rounded(column.unsqueeze(-1) * row.unsqueeze(-2), self._results)
            total = term if total is None else rounded(total + term, self._results)
        assert total is not None, "a product has a term"
        return total


_aten = torch.ops.aten
_PRODUCTS = {
    _aten.mm: (0, 1),
    _aten.bmm: (0, 1),
    _aten.mv: (0, 1),
    _aten.dot: (0, 1),
    _aten.addmm: (1, 2),
    _aten.baddbmm: (1, 2),
    _aten.addmv: (1, 2),
}
"""The operations that are matrix products, with the places of their factors."""
