"""The memory that loops read and write: numbers in a row, known by their address.

A loop gets no array, since an array is a structure of seven parts and a reference count, whose
copies are most of what LLVM would have to compile. So nothing knows how many numbers there are: the
caller sees to it that they are there, contiguous, for as long as the loop runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, lower_getattr, models, register_model, unbox

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Array = Any
"""Address in a row, of which a loop has the address; there may be none."""

ALIGNMENT = 64
"""Bytes of which the addresses of memory that a loop takes are multiples."""


class Address(types.Type):
    """The type of the address of numbers: 0 where there are none."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Address({dtype})")


@register_model(Address)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Address) -> None:
        pointer = manager.lookup(kind.dtype).get_data_type().as_pointer()
        models.PrimitiveModel.__init__(self, manager, kind, pointer)


def _of_address(kind: Any, address: Any, code: Any) -> Any:
    """An address is given as a whole number."""
    pointer = code.context.get_value_type(kind)
    return NativeValue(code.builder.bitcast(code.pyapi.long_as_voidptr(address), pointer))


unbox(Address)(_of_address)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Address

    def resolve_dtype(self, kind: Any) -> Any:
        return types.DType(kind.dtype)


lower_getattr(Address, "dtype")(lambda context, *_: context.get_dummy_value())


def intrinsic(function: FunctionT) -> Any:
    """A function whose code is written in LLVM's instructions."""
    return numba.extending.intrinsic(function)


@intrinsic
def exists(typing: Any, array: Any) -> Any:
    """Whether there are any numbers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return cgutils.is_not_null(builder, args[0])

    return types.boolean(array), code


@intrinsic
def at(typing: Any, array: Any, offset: Any) -> Any:
    """The number at an offset."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(builder.gep(args[0], [args[1]]))

    return array.dtype(array, types.int64), code


@intrinsic
def put(typing: Any, array: Any, offset: Any, number: Any) -> Any:
    """Write a number at an offset."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], builder.gep(args[0], [args[1]]))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), code


@intrinsic
def beyond(typing: Any, array: Any, offset: Any) -> Any:
    """The array from an offset on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]])

    return array(array, types.int64), code


@intrinsic
def one_of(typing: Any, like: Any, addresses: Any, place: Any) -> Any:
    """The array, of the type of another, whose address is at a place among some."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.load(builder.gep(args[1], [args[2]]))
        return builder.inttoptr(address, context.get_value_type(like))

    return like(like, addresses, types.int64), code


@intrinsic
def no_array(typing: Any, like: Any) -> Any:
    """An array of the type of another that does not exist."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(context.get_value_type(like), None)

    return like(like), code


@intrinsic
def smallest(typing: Any, array: Any) -> Any:
    """The smallest normal number of the type of numbers.

    `numpy.finfo` says it too, by code for which numba imports SciPy in every process.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        exponent = -126 if array.dtype == types.float32 else -1022
        return ir.Constant(context.get_value_type(array.dtype), 2.0**exponent)

    return array.dtype(array), code


def _taken(cleared: bool) -> Any:
    """Memory for as many arrays as there are sizes, of the type of numbers of an array."""

    @intrinsic
    def taken(typing: Any, like: Any, sizes: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            integer = ir.IntType(64)
            starts, end = [], integer(0)
            for place in range(len(sizes)):
                starts.append(end)
                size = builder.extract_value(args[1], place)
                used = builder.mul(size, integer(like.dtype.bitwidth // 8))
                end = builder.add(end, _aligned(builder, builder.add(used, integer(ALIGNMENT - 1))))
            memory = context.nrt.allocate(builder, builder.add(end, integer(2 * ALIGNMENT)))
            first = builder.add(builder.ptrtoint(memory, integer), integer(2 * ALIGNMENT))
            first = builder.inttoptr(_aligned(builder, first), memory.type)
            builder.store(memory, _before(builder, first))  # for `release`
            if cleared:
                cgutils.memset(builder, first, end, 0)
            pointer = context.get_value_type(Address(like.dtype))
            arrays = [builder.bitcast(builder.gep(first, [start]), pointer) for start in starts]
            return context.make_tuple(builder, signature.return_type, arrays)

        result = types.UniTuple(Address(like.dtype), len(sizes))
        return result(like, types.UniTuple(types.int64, len(sizes))), code

    return taken


def _aligned(builder: Any, number: Any) -> Any:
    """The number rounded down to a multiple of `ALIGNMENT`."""
    return builder.and_(number, number.type(-ALIGNMENT))


def _before(builder: Any, address: Any) -> Any:
    """The place of an address before another one."""
    places = builder.bitcast(address, address.type.as_pointer())
    return builder.gep(places, [ir.IntType(64)(-1)])


empty, zeros = _taken(False), _taken(True)
"""Memory for arrays of some sizes, one after the other, to be released by the first of them."""


@intrinsic
def release(typing: Any, array: Any) -> Any:
    """Give back the memory of the arrays of which this is the first."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.bitcast(args[0], cgutils.voidptr_t)
        context.nrt.free(builder, builder.load(_before(builder, first)))
        return context.get_dummy_value()

    return types.void(array), code
