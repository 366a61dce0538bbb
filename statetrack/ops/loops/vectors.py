"""Vectors of `LANES` numbers, on which loops work, by LLVM's instructions.

They are columns of a state or neighbouring channels, and LLVM maps them to whatever registers the
machine has. Arrays are flat and contiguous; an offset counts numbers. `count` is how many lanes of
a vector are in the array: the others are zeros when read, and are not written. Exponentials are
polynomials, since a call for each number is slow.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin, models, register_model

from statetrack.ops.loops.compiling import part
from statetrack.ops.loops.memory import ALIGNMENT, Array, at, intrinsic, put

LANES = 16
"""Numbers of a vector."""


class Vector(types.Type):
    """The type of `LANES` numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


def kind_of(dtype: Any) -> ir.VectorType:
    """LLVM's type of a vector."""
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), LANES)


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        models.PrimitiveModel.__init__(self, manager, kind, kind_of(kind.dtype))


def in_all_lanes(builder: Any, number: Any) -> Any:
    """LLVM's vector of one number."""
    kind = ir.VectorType(number.type, LANES)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, places)


@intrinsic
def load(typing: Any, array: Any, offset: Any) -> Any:
    """The `LANES` numbers from an offset on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        loaded = builder.load(builder.bitcast(place, kind_of(array.dtype).as_pointer()))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Vector(array.dtype)(array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, offset: Any, vector: Any) -> Any:
    """Write a vector from an offset on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        stored = builder.store(args[2], builder.bitcast(place, kind_of(array.dtype).as_pointer()))
        stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), code


@intrinsic
def expect(typing: Any, array: Any, offset: Any) -> Any:
    """Ask for the memory of a vector before it is used; nothing is read, so it need not exist."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(32)
        to_read, soon, data = integer(0), integer(3), integer(1)
        for start in range(0, LANES, ALIGNMENT * 8 // array.dtype.bitwidth):
            place = builder.gep(args[0], [builder.add(args[1], args[1].type(start))])
            function = cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(ir.VoidType(), (place.type, integer, integer, integer)),
                "llvm.prefetch.p0",
            )
            builder.call(function, (place, to_read, soon, data))
        return context.get_dummy_value()

    return types.void(array, types.int64), code


@intrinsic
def splat(typing: Any, number: Any) -> Any:
    """A vector of one number."""
    return Vector(number)(number), lambda context, builder, signature, args: in_all_lanes(
        builder, args[0]
    )


def _rearranged(places: list[int]) -> Any:
    """A vector with its numbers at other places."""

    @intrinsic
    def rearranged(typing: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
            order = ir.Constant(ir.VectorType(ir.IntType(32), LANES), places)
            return builder.shuffle_vector(args[0], ir.Constant(args[0].type, ir.Undefined), order)

        return vector(vector), code

    return rearranged


@intrinsic
def alternating(typing: Any, number: Any) -> Any:
    """A vector of a number and its negative, in turn."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = kind_of(number)
        signs = ir.Constant(
            kind, [ir.Constant(kind.element, 1 - 2 * (lane % 2)) for lane in range(LANES)]
        )
        return builder.fmul(in_all_lanes(builder, args[0]), signs)

    return Vector(number)(number), code


swapped = _rearranged([lane ^ 1 for lane in range(LANES)])
evens = _rearranged([lane & ~1 for lane in range(LANES)])
odds = _rearranged([lane | 1 for lane in range(LANES)])
"""Pairs of numbers with their parts exchanged, and with the first or the second part twice."""

doubled = _rearranged([lane // 2 for lane in range(LANES)])
firsts = _rearranged([2 * lane % LANES for lane in range(LANES)])
"""Each of a vector's first numbers twice, and the first parts of pairs at the front."""

first_of_four, second_of_four, third_of_four, last_of_four = (
    _rearranged([lane - lane % 4 + place for lane in range(LANES)]) for place in range(4)
)
"""One of every four neighbours, in the place of all four."""


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """The sum of a vector's numbers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = kind_of(vector.dtype).element
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(number, (number, args[0].type)),
            f"llvm.vector.reduce.fadd.v{LANES}f{vector.dtype.bitwidth}",
        )
        return builder.call(function, (ir.Constant(number, 0.0), args[0]), fastmath=("reassoc",))

    return vector.dtype(vector), code


@intrinsic
def largest(typing: Any, vector: Any) -> Any:
    """The largest of a vector's numbers, of which none may be NaN."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = kind_of(vector.dtype).element
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(number, (args[0].type,)),
            f"llvm.vector.reduce.fmax.v{LANES}f{vector.dtype.bitwidth}",
        )
        return builder.call(function, (args[0],), fastmath=("nnan",))

    return vector.dtype(vector), code


@intrinsic
def first_lane(typing: Any, vector: Any, number: Any) -> Any:
    """The first lane of a vector that has a number, or `LANES`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        equal = builder.fcmp_ordered("==", args[0], in_all_lanes(builder, args[1]))
        bits = builder.zext(builder.bitcast(equal, ir.IntType(LANES)), integer)
        bits = builder.or_(bits, integer(1 << LANES))
        return builder.cttz(bits, ir.IntType(1)(1))

    return types.int64(vector, vector.dtype), code


_INDICES = types.int64, types.int64


def _operator(symbol: Any, instruction: str) -> None:
    """Let an operator act on two vectors, or on a vector and a number, by one instruction."""

    class Template(AbstractTemplate):
        key = symbol
        metadata = {"target": "cpu"}  # asked before those of all targets

        def generic(self, args: Any, kws: Any) -> Any:
            if (
                args == _INDICES and symbol is not operator.truediv
            ):  # the same as numba finds, which asks for many other types before
                return Signature(types.int64, _INDICES, None)
            kind = next((arg for arg in args if isinstance(arg, Vector)), None)
            if kind is None:
                return None
            given = tuple(arg if arg == kind else kind.dtype for arg in args)
            return Signature(kind, given, None)

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        both = [
            arg if isinstance(given, Vector) else in_all_lanes(builder, arg)
            for arg, given in zip(args, typed.args, strict=True)
        ]
        return getattr(builder, instruction)(*both, flags=("contract",))

    infer_global(symbol)(Template)
    for given in ((Vector, Vector), (Vector, types.Float), (types.Float, Vector)):
        lower_builtin(symbol, *given)(code)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


_TAYLOR = {types.float32: 7, types.float64: 13}
"""The terms of the exponential's series that count on an interval of log(2) / 2."""


def _exponential(vector: Any, less: float) -> Any:
    """The code of e^x - `less`, 1 or 0, to rounding.

    e^x = 2^n e^r, with n whole and |r| at most log(2) / 2, where the series of e^r converges fast.
    It is 0 below the least exponent, and NaN of NaN.
    """
    single = vector.dtype == types.float32
    bits, mantissa = (32, 23) if single else (64, 52)
    least, most = (-87.3, 88.7) if single else (-708.3, 709.7)
    upper, lower = (
        (0.693359375, -2.12194440e-4)
        if single
        else (6.93145751953125e-1, 1.42860682030941723212e-6)
    )  # log(2), in a part with few digits and the rest

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind = kind_of(vector.dtype)
        whole = ir.VectorType(ir.IntType(bits), LANES)

        def constant(number: float) -> Any:
            return ir.Constant(kind, [ir.Constant(kind.element, number)] * LANES)

        def integer(number: int) -> Any:
            return ir.Constant(whole, [number] * LANES)

        def fused(x: Any, y: Any, z: Any) -> Any:
            return builder.fadd(builder.fmul(x, y, flags=contract), z, flags=contract)

        contract = ("contract",)
        given = args[0]
        too_low = builder.fcmp_ordered("<", given, constant(least))
        bounded = builder.select(too_low, constant(least), given)
        too_high = builder.fcmp_ordered(">", bounded, constant(most))
        bounded = builder.select(too_high, constant(most), bounded)
        floor = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(kind, (kind,)),
            f"llvm.floor.v{LANES}f{bits}",
        )
        power = builder.call(floor, (fused(bounded, constant(1 / math.log(2)), constant(0.5)),))
        rest = fused(power, constant(-upper), bounded)
        rest = fused(power, constant(-lower), rest)
        series = constant(1 / math.factorial(_TAYLOR[vector.dtype]))
        for term in reversed(range(int(less), _TAYLOR[vector.dtype])):
            series = fused(series, rest, constant(1 / math.factorial(term)))
        exponent = builder.fptosi(power, whole)
        if not less:  # n is added to the exponent of e^r, as 2^n can be twice the largest power
            added = builder.shl(exponent, integer(mantissa))
            sum_of_bits = builder.add(builder.bitcast(series, whole), added)
            found = builder.select(too_low, constant(0.0), builder.bitcast(sum_of_bits, kind))
            return builder.select(builder.fcmp_unordered("uno", given, given), given, found)
        series = builder.fmul(series, rest)
        scale = constant(1.0)
        half = builder.ashr(exponent, integer(1))
        for each in (half, builder.sub(exponent, half)):
            biased = builder.add(each, integer(2 ** (bits - mantissa - 2) - 1))
            factor = builder.bitcast(builder.shl(biased, integer(mantissa)), kind)
            series = builder.fmul(series, factor)
            scale = builder.fmul(scale, factor)
        series = builder.fadd(series, builder.fsub(scale, constant(1.0)))
        return builder.select(too_low, constant(-1.0), series)

    return vector(vector), code


@intrinsic
def exponential(typing: Any, vector: Any) -> Any:
    """The exponentials of numbers."""
    return _exponential(vector, 0.0)


@intrinsic
def exponential_less_one(typing: Any, vector: Any) -> Any:
    """The exponentials of numbers less 1, of which small ones have all their digits."""
    return _exponential(vector, 1.0)


def _of_llvm(name: str, arguments: int) -> Any:
    """A function of LLVM that acts on each number of vectors."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind = args[0].type
        size = typed.return_type.dtype.bitwidth
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(kind, (kind,) * arguments),
            f"llvm.{name}.v{LANES}f{size}",
        )
        return builder.call(function, args)

    if arguments == 1:
        return intrinsic(lambda typing, vector: (vector(vector), code))
    return intrinsic(lambda typing, left, right: (left(left, right), code))


absolute, with_sign_of = _of_llvm("fabs", 1), _of_llvm("copysign", 2)
"""The magnitudes of numbers; these with the signs of others."""


@intrinsic
def greater(typing: Any, left: Any, right: Any) -> Any:
    """The greater of two numbers, the right one where either is NaN: one instruction on x86."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return left(left, right), code


@part
def zero_vector(array: Array) -> Any:
    """Zeros, in the type of an array."""
    return splat(array.dtype.type(0))


@part
def sigmoid(vector: Any, array: Array) -> Any:
    """1 / (1 + e^-x), in the type of an array."""
    one = array.dtype.type(1)
    return one / (one + exponential(array.dtype.type(0) - vector))


@part
def hyperbolic_tangent(vector: Any, array: Array) -> Any:
    """Of small numbers too with all digits, in the type of an array."""
    less = exponential_less_one(array.dtype.type(-2) * absolute(vector))
    return with_sign_of(less / (array.dtype.type(2) + less), vector)


def polynomial(single: Sequence[float], double: Sequence[float]) -> Any:
    """A polynomial of vectors: its coefficients, constant first, in float32 and in float64."""

    @intrinsic
    def evaluated(typing: Any, vector: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind, contract = args[0].type, ("contract",)
            *others, last = single if vector.dtype == types.float32 else double

            def constant(number: float) -> Any:
                return ir.Constant(kind, [ir.Constant(kind.element, number)] * LANES)

            found = constant(last)
            for number in reversed(others):
                product = builder.fmul(found, args[0], flags=contract)
                found = builder.fadd(product, constant(number), flags=contract)
            return found

        return vector(vector), code

    return evaluated


_artanh_ratio = polynomial(*([1 / (2 * k + 1) for k in range(terms)] for terms in (8, 18)))
"""artanh(x) / x of squares x^2 of at most 1/9: the sum of x^2k / (2 k + 1), to rounding."""


@part
def log_sigmoid(vector: Any, array: Array) -> Any:
    """The logarithm of the sigmoid: min(x, 0) - log(1 + e^-|x|), in the type of an array.

    log(1 + y) = 2 artanh(y / (2 + y)), of at most 1/3, where its series converges fast.
    """
    zero, two = array.dtype.type(0), array.dtype.type(2)
    small = exponential(zero - absolute(vector))
    small = small / (two + small)
    least = zero - greater(zero - vector, splat(zero))
    return least - two * small * _artanh_ratio(small * small)


def _masked(builder: Any, count: Any) -> Any:
    """Whether a vector is whole, and which of its lanes are in the array."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    counts = in_all_lanes(builder, builder.trunc(count, ir.IntType(32)))
    lanes = builder.icmp_signed("<", ir.Constant(kind, list(range(LANES))), counts)
    return builder.icmp_signed(">=", count, ir.Constant(count.type, LANES)), lanes


@intrinsic
def from_lane(typing: Any, vector: Any, first: Any, number: Any) -> Any:
    """A vector with a number in the lanes before the first that counts."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        _, before = _masked(builder, args[1])
        return builder.select(before, in_all_lanes(builder, args[2]), args[0])

    return vector(vector, types.int64, vector.dtype), code


@intrinsic
def load_some(typing: Any, array: Any, offset: Any, count: Any) -> Any:
    """`count` numbers from an offset on, and zeros."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind, size = kind_of(array.dtype), array.dtype.bitwidth
        place = builder.bitcast(builder.gep(args[0], [args[1]]), kind.as_pointer())
        whole, lanes = _masked(builder, args[2])
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(kind, (place.type, ir.IntType(32), lanes.type, kind)),
            f"llvm.masked.load.v{LANES}f{size}.p0",
        )
        zeros = ir.Constant(kind, [0.0] * LANES)
        align = ir.Constant(ir.IntType(32), size // 8)
        with builder.if_else(whole) as (then, otherwise):
            with then:
                all_of_them = builder.load(place)
                all_of_them.align = size // 8
                after_all = builder.block
            with otherwise:
                some = builder.call(function, (place, align, lanes, zeros))
                after_some = builder.block
        found = builder.phi(kind)
        found.add_incoming(all_of_them, after_all)
        found.add_incoming(some, after_some)
        return found

    return Vector(array.dtype)(array, types.int64, types.int64), code


@intrinsic
def store_some(typing: Any, array: Any, offset: Any, count: Any, vector: Any) -> Any:
    """Write the first `count` numbers of a vector; a half by one store, as masked ones are slow."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind, size = kind_of(array.dtype), array.dtype.bitwidth
        place = builder.bitcast(builder.gep(args[0], [args[1]]), kind.as_pointer())
        whole, lanes = _masked(builder, args[2])
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), (kind, place.type, ir.IntType(32), lanes.type)),
            f"llvm.masked.store.v{LANES}f{size}.p0",
        )
        align = ir.Constant(ir.IntType(32), size // 8)
        with builder.if_else(whole) as (then, otherwise):
            with then:
                builder.store(args[3], place).align = size // 8
            with otherwise:
                half = ir.Constant(args[2].type, LANES // 2)
                with builder.if_else(builder.icmp_signed("==", args[2], half)) as (then, other):
                    with then:
                        lower = ir.VectorType(kind.element, LANES // 2)
                        order = ir.Constant(
                            ir.VectorType(ir.IntType(32), LANES // 2), list(range(LANES // 2))
                        )
                        part = builder.shuffle_vector(args[3], args[3], order)
                        stored = builder.store(part, builder.bitcast(place, lower.as_pointer()))
                        stored.align = size // 8
                    with other:
                        builder.call(function, (args[3], place, align, lanes))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), code


@intrinsic
def filled(typing: Any, vector: Any, count: Any, number: Any) -> Any:
    """The first `count` numbers of a vector, and another number in the lanes behind."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        _, lanes = _masked(builder, args[1])
        return builder.select(lanes, args[0], in_all_lanes(builder, args[2]))

    return vector(vector, types.int64, vector.dtype), code


@intrinsic
def less_in_lane(typing: Any, vector: Any, lane: Any, number: Any) -> Any:
    """A vector less a number in one lane, if there is that lane."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind = ir.VectorType(ir.IntType(64), LANES)
        wanted = in_all_lanes(builder, args[1])
        here = builder.icmp_signed("==", ir.Constant(kind, list(range(LANES))), wanted)
        less = builder.fsub(args[0], in_all_lanes(builder, args[2]))
        return builder.select(here, less, args[0])

    return vector(vector, types.int64, vector.dtype), code


@intrinsic
def keep_some(typing: Any, vector: Any, count: Any) -> Any:
    """The first `count` numbers of a vector, and zeros."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        zeros = ir.Constant(args[0].type, [0.0] * LANES)
        return builder.select(_masked(builder, args[1])[1], args[0], zeros)

    return vector(vector, types.int64), code


@part
def add_at(array: Array, offset: int, number: Any) -> None:
    """Add to the number at an offset."""
    put(array, offset, at(array, offset) + number)


@part
def add_some(array: Array, offset: int, count: int, vector: Any) -> None:
    """Add the first `count` numbers of a vector to those from an offset on."""
    store_some(array, offset, count, load_some(array, offset, count) + vector)


@part
def padded(V: int) -> int:
    """The numbers of a row of V numbers that is kept: whole vectors."""
    return (V + LANES - 1) & -LANES
