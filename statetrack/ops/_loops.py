"""Compiled loops: the recurrences over positions, and what surrounds them, in one pass each.

numba compiles each loop for the machine when it is first called, once in float32 and once in
float64, and keeps the machine code on disk. `statetrack.ops.native` calls them; it is the only
module that imports this one.

Loops work on vectors of `LANES` numbers, which are columns of a state or neighbouring channels, and
which LLVM maps to whatever registers the machine has. Arrays are flat and contiguous; an offset
counts numbers. `count` is how many lanes of a vector are in the array: the others are zeros when
read, and are not written. Exponentials are polynomials, since a call for each number is slow.

W words, T time, N heads, n keys per position, K key size, V value size, C positions of a chunk.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, Signature, infer_global
from numba.extending import lower_builtin, models, register_model
from numpy.typing import NDArray

LANES = 16
"""Numbers of a vector."""

CHUNK = 16
"""Positions between two states that are kept for the backward pass."""

Array = NDArray[Any]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


def compiled(function: FunctionT) -> FunctionT:
    """The function, compiled when it is first called, and kept on disk."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    result: Any = numba.njit(cache=True, **options)(function)
    return cast(FunctionT, result)


def intrinsic(function: FunctionT) -> Any:
    """A function whose code is written in LLVM's instructions."""
    return numba.extending.intrinsic(function)


# --- vectors ---


class Vector(types.Type):
    """The type of `LANES` numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


def _llvm(dtype: Any) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), LANES)


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        models.PrimitiveModel.__init__(self, manager, kind, _llvm(kind.dtype))


def _place(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [offset])


def _splat(builder: Any, number: Any) -> Any:
    kind = ir.VectorType(number.type, LANES)
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, places)


@intrinsic
def at(typing: Any, array: Any, offset: Any) -> Any:
    """The number at an offset."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(context, builder, array, *args))

    return array.dtype(array, types.int64), code


@intrinsic
def put(typing: Any, array: Any, offset: Any, number: Any) -> Any:
    """Write a number at an offset."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, array, *args[:2]))
        return context.get_dummy_value()

    return types.void(array, types.int64, array.dtype), code


@intrinsic
def load(typing: Any, array: Any, offset: Any) -> Any:
    """The `LANES` numbers from an offset on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, array, *args)
        loaded = builder.load(builder.bitcast(place, _llvm(array.dtype).as_pointer()))
        loaded.align = array.dtype.bitwidth // 8
        return loaded

    return Vector(array.dtype)(array, types.int64), code


@intrinsic
def store(typing: Any, array: Any, offset: Any, vector: Any) -> Any:
    """Write a vector from an offset on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _place(context, builder, array, *args[:2])
        stored = builder.store(args[2], builder.bitcast(place, _llvm(array.dtype).as_pointer()))
        stored.align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), code


@intrinsic
def splat(typing: Any, number: Any) -> Any:
    """A vector of one number."""
    return Vector(number)(number), lambda context, builder, signature, args: _splat(
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


swapped = _rearranged([lane ^ 1 for lane in range(LANES)])
evens = _rearranged([lane & ~1 for lane in range(LANES)])
odds = _rearranged([lane | 1 for lane in range(LANES)])
"""Pairs of numbers with their parts exchanged, and with the first or the second part twice."""


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """The sum of a vector's numbers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = _llvm(vector.dtype).element
        name = "f32" if vector.dtype == types.float32 else "f64"
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(number, (number, args[0].type)),
            f"llvm.vector.reduce.fadd.v{LANES}{name}",
        )
        zero = ir.Constant(number, 0.0)
        return builder.call(function, (zero, args[0]), fastmath=("reassoc",))

    return vector.dtype(vector), code


def _operator(symbol: Any, instruction: str) -> None:
    """Let an operator act on two vectors, or on a vector and a number, by one instruction."""

    class Template(AbstractTemplate):
        key = symbol

        def generic(self, args: Any, kws: Any) -> Any:
            kind = next((arg for arg in args if isinstance(arg, Vector)), None)
            if kind is None:
                return None
            given = tuple(arg if arg == kind else kind.dtype for arg in args)
            return Signature(kind, given, None)

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        both = [
            arg if isinstance(given, Vector) else _splat(builder, arg)
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
        kind = _llvm(vector.dtype)
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
        if less:
            series = builder.fmul(series, rest)
            scale = constant(1.0)
        exponent = builder.fptosi(power, whole)
        half = builder.ashr(exponent, integer(1))  # 2^n can be twice the largest power
        for part in (half, builder.sub(exponent, half)):
            biased = builder.add(part, integer(2 ** (bits - mantissa - 2) - 1))
            factor = builder.bitcast(builder.shl(biased, integer(mantissa)), kind)
            series = builder.fmul(series, factor)
            if less:
                scale = builder.fmul(scale, factor)
        if less:
            series = builder.fadd(series, builder.fsub(scale, constant(1.0)))
        return builder.select(too_low, constant(-less), series)

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


absolute, with_sign_of, greater = (
    _of_llvm(name, arguments) for name, arguments in (("fabs", 1), ("copysign", 2), ("maxnum", 2))
)
"""The magnitudes of numbers; these with the signs of others; the greater of two."""


@compiled
def sigmoid(vector: Any, array: Array) -> Any:
    """1 / (1 + e^-x), in the type of an array."""
    one = array.dtype.type(1)
    return one / (one + exponential(array.dtype.type(0) - vector))


@compiled
def hyperbolic_tangent(vector: Any, array: Array) -> Any:
    """Of small numbers too with all digits, in the type of an array."""
    less = exponential_less_one(array.dtype.type(-2) * absolute(vector))
    return with_sign_of(less / (array.dtype.type(2) + less), vector)


@compiled
def log_sigmoid(vector: Any, array: Array) -> Any:
    """The logarithm of the sigmoid: min(x, 0) - log(1 + e^-|x|), in the type of an array.

    log(1 + y) = 2 artanh(y / (2 + y)), of at most 1/3, where the series converges fast.
    """
    zero, one = array.dtype.type(0), array.dtype.type(1)
    small = exponential(zero - absolute(vector))
    small = small / (array.dtype.type(2) + small)
    square = small * small
    series = splat(array.dtype.type(1 / 37))
    for term in range(35, 0, -2):
        series = series * square + splat(array.dtype.type(1) / array.dtype.type(term))
    return zero - greater(zero - vector, splat(zero)) - (one + one) * small * series


def _masked(builder: Any, count: Any) -> Any:
    """Whether a vector is whole, and which of its lanes are in the array."""
    kind = ir.VectorType(ir.IntType(32), LANES)
    counts = _splat(builder, builder.trunc(count, ir.IntType(32)))
    lanes = builder.icmp_signed("<", ir.Constant(kind, list(range(LANES))), counts)
    return builder.icmp_signed(">=", count, ir.Constant(count.type, LANES)), lanes


@intrinsic
def load_some(typing: Any, array: Any, offset: Any, count: Any) -> Any:
    """`count` numbers from an offset on, and zeros."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind, size = _llvm(array.dtype), array.dtype.bitwidth
        place = builder.bitcast(_place(context, builder, array, *args[:2]), kind.as_pointer())
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
    """Write the first `count` numbers of a vector."""

    def code(context: Any, builder: Any, typed: Any, args: Any) -> Any:
        kind, size = _llvm(array.dtype), array.dtype.bitwidth
        place = builder.bitcast(_place(context, builder, array, *args[:2]), kind.as_pointer())
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
                builder.call(function, (args[3], place, align, lanes))
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, vector), code


@compiled
def add_at(array: Array, offset: int, number: Any) -> None:
    """Add to the number at an offset."""
    put(array, offset, at(array, offset) + number)


# --- the delta rule ---


@compiled
def _gains(log_gates: Array, place: int, G: int, K: int, gates: Array) -> None:
    """The exponentials of a head's G log-gates, for each of K rows; ones where there are none."""
    if G == 0:
        for i in range(0, K, LANES):
            store(gates, i, splat(gates.dtype.type(1)))
    elif G == 1:
        factor = exponential(splat(at(log_gates, place)))
        for i in range(0, K, LANES):
            store(gates, i, factor)
    else:
        for i in range(0, K, LANES):
            store(gates, i, exponential(load_some(log_gates, place + i, min(LANES, K - i))))


@compiled
def delta_forward(
    queries: Array,
    keys: Array,
    values: Array,
    betas: Array,
    log_gates: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    W: int,
    T: int,
    N: int,
    n: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    """Outputs [W, T, N, V], the last state [W, N, K, V] and, unless empty, what is kept.

    First states are of B words, which repeat; kept are the states before chunks, but the first, and
    the errors. Of the sequences the row (w, t) starts at (w T + t) times its stride. `log_gates`
    have G = K numbers a head, one or none.
    """
    state = np.empty(K * LANES, first.dtype)
    gates = np.empty(K + LANES, first.dtype)
    for word in range(W):
        for head in range(N):
            for column in range(0, V, LANES):
                count = min(LANES, V - column)
                own = (word * N + head) * K * V + column
                given = (word % B * N + head) * K * V + column
                for i in range(K):
                    store(state, i * LANES, load_some(first, given + i * V, count))
                for t in range(T):
                    if kept.size > 0 and t > 0 and t % CHUNK == 0:
                        place = _kept_place(word * N + head, t, T, K, V) + column
                        for i in range(K):
                            store(kept, place + i * _padded(V), load(state, i * LANES))
                    row = word * T + t
                    query = row * strides[0] + head * K
                    if G > 0:
                        _gains(log_gates, row * strides[4] + head * G, G, K, gates)
                        for i in range(K):
                            store(state, i * LANES, at(gates, i) * load(state, i * LANES))
                    read = splat(first.dtype.type(0))
                    for p in range(n):
                        key = row * strides[1] + (p * N + head) * K
                        value = row * strides[2] + (p * N + head) * V + column
                        error = load_some(values, value, count)
                        for i in range(K):
                            error = error - at(keys, key + i) * load(state, i * LANES)
                        if kept.size > 0:
                            place = _kept_row(word * N + head, W * N, t * n + p, T, n, K, V)
                            store(kept, place + column, error)
                        error = at(betas, row * strides[3] + p * N + head) * error
                        if p < n - 1:
                            for i in range(K):
                                after = load(state, i * LANES) + at(keys, key + i) * error
                                store(state, i * LANES, after)
                        else:
                            for i in range(K):
                                after = load(state, i * LANES) + at(keys, key + i) * error
                                store(state, i * LANES, after)
                                read = read + at(queries, query + i) * after
                    store_some(outputs, (row * N + head) * V + column, count, read)
                for i in range(K):
                    store_some(last, own + i * V, count, load(state, i * LANES))


@compiled
def _padded(V: int) -> int:
    """The numbers of a row of V numbers that is kept: whole vectors."""
    return -(-V // LANES) * LANES


@compiled
def _kept_place(own: int, t: int, T: int, K: int, V: int) -> int:
    """Where the state before a chunk, but the first, of head number `own` of W N is kept."""
    return (own * ((T - 1) // CHUNK) + t // CHUNK - 1) * K * _padded(V)


@compiled
def _kept_row(own: int, heads: int, place: int, T: int, n: int, K: int, V: int) -> int:
    """Where a row of a head's n T corrections is kept: after the states of all W N heads."""
    return heads * ((T - 1) // CHUNK) * K * _padded(V) + (own * T * n + place) * _padded(V)


@compiled
def _transposed(states: Array, place: int, stride: int, count: int, V: int, columns: Array) -> None:
    """Some rows of a state as lanes, zeros beside them and where there is none: [V, LANES]."""
    for j in range(V):
        store(columns, j * LANES, splat(states.dtype.type(0)))
    if states.size > 0:
        for j in range(V):
            for i in range(count):
                put(columns, j * LANES + i, at(states, place + i * stride + j))


@compiled
def _gain_lanes(log_gates: Array, place: int, G: int, first: int, count: int) -> Any:
    """The gains of some rows of a head, as lanes: ones where there are none."""
    if G == 0:
        return splat(log_gates.dtype.type(1))
    if G == 1:
        return exponential(splat(at(log_gates, place)))
    return exponential(load_some(log_gates, place + first, count))


@compiled
def _add_gates(by_gates: Array, place: int, G: int, first: int, count: int, found: Any) -> None:
    """Write the gradients by log-gates of some rows, or add their sum to that of all."""
    if G == 1:
        add_at(by_gates, place, total(found))
    elif G > 1:
        store_some(by_gates, place + first, count, found)


@compiled
def delta_backward(
    queries: Array,
    keys: Array,
    values: Array,
    betas: Array,
    log_gates: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_betas: Array,
    by_gates: Array,
    by_first: Array,
    W: int,
    T: int,
    N: int,
    n: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    """The gradients, those by gates added to zeros, of the gradients of outputs and last state.

    First those of values, with columns of the state's gradient as lanes, which need no state; then
    those of queries and keys, with rows as lanes, of states that are computed anew in each chunk.
    So no sum is over lanes.
    """
    alongs = np.empty(T * n * _padded(V), kept.dtype)
    states = np.empty((CHUNK * (n + 1) + 1) * V * LANES, kept.dtype)
    adjoint = np.empty(max(K, V) * LANES, kept.dtype)
    gates = np.empty(K + LANES, kept.dtype)
    for own in range(W * N):
        word, head = own // N, own % N
        for column in range(0, V, LANES):
            _delta_by_values(
                queries,
                keys,
                betas,
                log_gates,
                by_outputs,
                by_last,
                by_values,
                by_first,
                alongs,
                adjoint,
                gates,
                word,
                head,
                column,
                T,
                N,
                n,
                K,
                V,
                G,
                strides,
            )
        for t in range(T * n):
            found = splat(kept.dtype.type(0))
            place = _kept_row(own, W * N, t, T, n, K, V)
            for column in range(0, V, LANES):
                error = load(kept, place + column)
                found = found + error * load(alongs, t * _padded(V) + column)
            put(by_betas, (word * T * n + t) * N + head, total(found))
        for first in range(0, K, LANES):
            _delta_by_keys(
                queries,
                keys,
                betas,
                log_gates,
                initial,
                kept,
                by_outputs,
                by_last,
                by_queries,
                by_keys,
                by_gates,
                alongs,
                adjoint,
                states,
                word,
                head,
                first,
                W,
                T,
                N,
                n,
                K,
                V,
                G,
                B,
                strides,
            )


@compiled
def _delta_by_values(
    queries: Array,
    keys: Array,
    betas: Array,
    log_gates: Array,
    by_outputs: Array,
    by_last: Array,
    by_values: Array,
    by_first: Array,
    alongs: Array,
    adjoint: Array,
    gates: Array,
    word: int,
    head: int,
    column: int,
    T: int,
    N: int,
    n: int,
    K: int,
    V: int,
    G: int,
    strides: Any,
) -> None:
    zero = adjoint.dtype.type(0)
    count = min(LANES, V - column)
    own = (word * N + head) * K * V + column
    for i in range(K):
        store(adjoint, i * LANES, splat(zero))
        if by_last.size > 0:
            store(adjoint, i * LANES, load_some(by_last, own + i * V, count))
    for t in range(T - 1, -1, -1):
        row = word * T + t
        query = row * strides[0] + head * K
        key = row * strides[1] + ((n - 1) * N + head) * K
        wanted = load_some(by_outputs, (row * N + head) * V + column, count)
        if G > 0:
            _gains(log_gates, row * strides[4] + head * G, G, K, gates)
        along = splat(zero)
        for i in range(K):
            held = load(adjoint, i * LANES) + at(queries, query + i) * wanted
            store(adjoint, i * LANES, held)
            along = along + at(keys, key + i) * held
        for p in range(n - 1, -1, -1):
            store(alongs, (t * n + p) * _padded(V) + column, along)
            along = at(betas, row * strides[3] + p * N + head) * along
            place = ((row * n + p) * N + head) * V + column
            store_some(by_values, place, count, along)
            following = splat(zero)
            before = key - N * K
            if p > 0:
                for i in range(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, held)
                    following = following + at(keys, before + i) * held
            elif G > 0:
                for i in range(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, at(gates, i) * held)
            else:
                for i in range(K):
                    held = load(adjoint, i * LANES) - at(keys, key + i) * along
                    store(adjoint, i * LANES, held)
            along, key = following, before
    if by_first.size > 0:
        for i in range(K):
            store_some(by_first, own + i * V, count, load(adjoint, i * LANES))


@compiled
def _delta_by_keys(
    queries: Array,
    keys: Array,
    betas: Array,
    log_gates: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_gates: Array,
    alongs: Array,
    adjoint: Array,
    states: Array,
    word: int,
    head: int,
    first: int,
    W: int,
    T: int,
    N: int,
    n: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    zero = kept.dtype.type(0)
    count = min(LANES, K - first)
    own, size = word * N + head, V * LANES
    _transposed(by_last, (own * K + first) * V, V, count, V, adjoint)
    for start in range((T - 1) // CHUNK * CHUNK, -1, -CHUNK):
        length = min(CHUNK, T - start)
        if start > 0:
            place = _kept_place(own, start, T, K, V) + first * _padded(V)
            _transposed(kept, place, _padded(V), count, V, states)
        else:
            place = (word % B * N + head) * K * V + first * V
            _transposed(initial, place, V, count, V, states)
        now = 0
        for t in range(length):
            row = word * T + start + t
            gain = _gain_lanes(log_gates, row * strides[4] + head * G, G, first, count)
            for j in range(0, size, LANES):
                store(states, now + size + j, gain * load(states, now + j))
            now += size
            for p in range(n):
                key = load_some(keys, row * strides[1] + (p * N + head) * K + first, count)
                key = at(betas, row * strides[3] + p * N + head) * key
                place = _kept_row(own, W * N, (start + t) * n + p, T, n, K, V)
                for j in range(V):
                    after = load(states, now + j * LANES) + at(kept, place + j) * key
                    store(states, now + size + j * LANES, after)
                now += size
        for t in range(length - 1, -1, -1):
            row = word * T + start + t
            query = load_some(queries, row * strides[0] + head * K + first, count)
            place = (row * N + head) * V
            found = splat(zero)
            for j in range(V):
                wanted = at(by_outputs, place + j)
                found = found + wanted * load(states, now + j * LANES)
                store(adjoint, j * LANES, load(adjoint, j * LANES) + wanted * query)
            store_some(by_queries, (row * N + head) * K + first, count, found)
            for p in range(n - 1, -1, -1):
                now -= size
                key = load_some(keys, row * strides[1] + (p * N + head) * K + first, count)
                beta = at(betas, row * strides[3] + p * N + head)
                place = _kept_row(own, W * N, (start + t) * n + p, T, n, K, V)
                other = ((start + t) * n + p) * _padded(V)
                found = splat(zero)
                for j in range(V):
                    held = load(adjoint, j * LANES)
                    along = at(alongs, other + j)
                    found = found + at(kept, place + j) * held
                    found = found - along * load(states, now + j * LANES)
                    store(adjoint, j * LANES, held - beta * along * key)
                place = ((row * n + p) * N + head) * K + first
                store_some(by_keys, place, count, beta * found)
            if G > 0:
                gain = _gain_lanes(log_gates, row * strides[4] + head * G, G, first, count)
                found = splat(zero)
                for j in range(0, size, LANES):
                    held = load(adjoint, j)
                    found = found + held * load(states, now + j)
                    store(adjoint, j, gain * held)
                _add_gates(by_gates, (row * N + head) * G, G, first, count, found)
            now -= size


# --- attention without a softmax ---


@compiled
def attention_forward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    W: int,
    T: int,
    N: int,
    M: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    """S <- diag(a) S - p (S^T r)^T + k v^T, read as S^T q: outputs [W, T, N, V], the last state.

    Queries and keys are of M heads, N or 1 for all. Log-gates have G = K numbers a head, one or
    none. Removals r and replacements p [W, T, N, K] are empty where nothing is removed.
    """
    zero = first.dtype.type(0)
    state = np.empty(K * LANES, first.dtype)
    gates = np.empty(K + LANES, first.dtype)
    for word in range(W):
        for head in range(N):
            shared = head * K if M > 1 else 0
            for column in range(0, V, LANES):
                count = min(LANES, V - column)
                own = (word * N + head) * K * V + column
                given = (word % B * N + head) * K * V + column
                for i in range(K):
                    store(state, i * LANES, load_some(first, given + i * V, count))
                for t in range(T):
                    if kept.size > 0 and t > 0 and t % CHUNK == 0:
                        place = _kept_place(word * N + head, t, T, K, V) + column
                        for i in range(K):
                            store(kept, place + i * _padded(V), load(state, i * LANES))
                    row = word * T + t
                    _gains(log_gates, row * strides[3] + head * G, G, K, gates)
                    value = load_some(values, row * strides[2] + head * V + column, count)
                    query, key = row * strides[0] + shared, row * strides[1] + shared
                    read = splat(zero)
                    if removals.size > 0:
                        remove = row * strides[4] + head * K
                        replace = row * strides[5] + head * K
                        gone = splat(zero)
                        for i in range(K):
                            gone = gone + at(removals, remove + i) * load(state, i * LANES)
                        if kept.size > 0:
                            place = _kept_row(word * N + head, W * N, t, T, 1, K, V)
                            store(kept, place + column, gone)
                        for i in range(K):
                            after = at(gates, i) * load(state, i * LANES)
                            after = after - at(replacements, replace + i) * gone
                            after = after + at(keys, key + i) * value
                            store(state, i * LANES, after)
                            read = read + at(queries, query + i) * after
                    else:
                        for i in range(K):
                            after = at(gates, i) * load(state, i * LANES)
                            after = after + at(keys, key + i) * value
                            store(state, i * LANES, after)
                            read = read + at(queries, query + i) * after
                    store_some(outputs, (row * N + head) * V + column, count, read)
                for i in range(K):
                    store_some(last, own + i * V, count, load(state, i * LANES))


@compiled
def attention_backward(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_values: Array,
    by_gates: Array,
    by_removals: Array,
    by_replacements: Array,
    by_first: Array,
    W: int,
    T: int,
    N: int,
    M: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    """The gradients, added to zeros, in two passes as those of the delta rule."""
    gones = np.empty(T * _padded(V), kept.dtype)
    states = np.empty((CHUNK + 1) * V * LANES, kept.dtype)
    adjoint = np.empty(max(K, V) * LANES, kept.dtype)
    gates = np.empty(K + LANES, kept.dtype)
    for own in range(W * N):
        word, head = own // N, own % N
        for column in range(0, V, LANES):
            _attention_by_values(
                queries,
                keys,
                log_gates,
                removals,
                replacements,
                by_outputs,
                by_last,
                by_values,
                by_first,
                gones,
                adjoint,
                gates,
                word,
                head,
                column,
                T,
                N,
                M,
                K,
                V,
                G,
                strides,
            )
        for first in range(0, K, LANES):
            _attention_by_keys(
                queries,
                keys,
                values,
                log_gates,
                removals,
                replacements,
                initial,
                kept,
                by_outputs,
                by_last,
                by_queries,
                by_keys,
                by_gates,
                by_removals,
                by_replacements,
                gones,
                adjoint,
                states,
                word,
                head,
                first,
                W,
                T,
                N,
                M,
                K,
                V,
                G,
                B,
                strides,
            )


@compiled
def _attention_by_values(
    queries: Array,
    keys: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    by_outputs: Array,
    by_last: Array,
    by_values: Array,
    by_first: Array,
    gones: Array,
    adjoint: Array,
    gates: Array,
    word: int,
    head: int,
    column: int,
    T: int,
    N: int,
    M: int,
    K: int,
    V: int,
    G: int,
    strides: Any,
) -> None:
    zero = adjoint.dtype.type(0)
    count = min(LANES, V - column)
    own = (word * N + head) * K * V + column
    shared = head * K if M > 1 else 0
    for i in range(K):
        store(adjoint, i * LANES, splat(zero))
        if by_last.size > 0:
            store(adjoint, i * LANES, load_some(by_last, own + i * V, count))
    for t in range(T - 1, -1, -1):
        row = word * T + t
        query, key = row * strides[0] + shared, row * strides[1] + shared
        wanted = load_some(by_outputs, (row * N + head) * V + column, count)
        _gains(log_gates, row * strides[3] + head * G, G, K, gates)
        by_value = splat(zero)
        if removals.size > 0:
            remove, replace = row * strides[4] + head * K, row * strides[5] + head * K
            by_gone = splat(zero)
            for i in range(K):
                held = load(adjoint, i * LANES) + at(queries, query + i) * wanted
                store(adjoint, i * LANES, held)
                by_value = by_value + at(keys, key + i) * held
                by_gone = by_gone - at(replacements, replace + i) * held
            store(gones, t * _padded(V) + column, by_gone)
            for i in range(K):
                held = at(gates, i) * load(adjoint, i * LANES)
                store(adjoint, i * LANES, held + at(removals, remove + i) * by_gone)
        else:
            for i in range(K):
                held = load(adjoint, i * LANES) + at(queries, query + i) * wanted
                by_value = by_value + at(keys, key + i) * held
                store(adjoint, i * LANES, at(gates, i) * held)
        store_some(by_values, (row * N + head) * V + column, count, by_value)
    if by_first.size > 0:
        for i in range(K):
            store_some(by_first, own + i * V, count, load(adjoint, i * LANES))


@compiled
def _attention_by_keys(
    queries: Array,
    keys: Array,
    values: Array,
    log_gates: Array,
    removals: Array,
    replacements: Array,
    initial: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_queries: Array,
    by_keys: Array,
    by_gates: Array,
    by_removals: Array,
    by_replacements: Array,
    gones: Array,
    adjoint: Array,
    states: Array,
    word: int,
    head: int,
    first: int,
    W: int,
    T: int,
    N: int,
    M: int,
    K: int,
    V: int,
    G: int,
    B: int,
    strides: Any,
) -> None:
    zero = kept.dtype.type(0)
    count = min(LANES, K - first)
    own, size = word * N + head, V * LANES
    shared = (head * K if M > 1 else 0) + first
    _transposed(by_last, (own * K + first) * V, V, count, V, adjoint)
    for start in range((T - 1) // CHUNK * CHUNK, -1, -CHUNK):
        length = min(CHUNK, T - start)
        if start > 0:
            place = _kept_place(own, start, T, K, V) + first * _padded(V)
            _transposed(kept, place, _padded(V), count, V, states)
        else:
            place = (word % B * N + head) * K * V + first * V
            _transposed(initial, place, V, count, V, states)
        for t in range(length):
            row = word * T + start + t
            before, now = t * size, (t + 1) * size
            gain = _gain_lanes(log_gates, row * strides[3] + head * G, G, first, count)
            key = load_some(keys, row * strides[1] + shared, count)
            value = row * strides[2] + head * V
            for j in range(V):
                after = gain * load(states, before + j * LANES) + at(values, value + j) * key
                store(states, now + j * LANES, after)
            if removals.size > 0:
                replace = load_some(replacements, row * strides[5] + head * K + first, count)
                place = _kept_row(own, W * N, start + t, T, 1, K, V)
                for j in range(V):
                    after = load(states, now + j * LANES) - at(kept, place + j) * replace
                    store(states, now + j * LANES, after)
        for t in range(length - 1, -1, -1):
            row = word * T + start + t
            before, now = t * size, (t + 1) * size
            gain = _gain_lanes(log_gates, row * strides[3] + head * G, G, first, count)
            query = load_some(queries, row * strides[0] + shared, count)
            value, output = row * strides[2] + head * V, (row * N + head) * V
            by_query, by_key, found = splat(zero), splat(zero), splat(zero)
            if removals.size > 0:
                remove = load_some(removals, row * strides[4] + head * K + first, count)
                place = _kept_row(own, W * N, start + t, T, 1, K, V)
                other = (start + t) * _padded(V)
                by_removal, by_replacement = splat(zero), splat(zero)
                for j in range(V):
                    wanted, by_gone = at(by_outputs, output + j), at(gones, other + j)
                    held = load(adjoint, j * LANES) + wanted * query
                    earlier = load(states, before + j * LANES)
                    by_query = by_query + wanted * load(states, now + j * LANES)
                    by_key = by_key + at(values, value + j) * held
                    by_removal = by_removal + by_gone * earlier
                    by_replacement = by_replacement - at(kept, place + j) * held
                    found = found + held * earlier
                    store(adjoint, j * LANES, gain * held + by_gone * remove)
                place = (row * N + head) * K + first
                store_some(by_removals, place, count, by_removal)
                store_some(by_replacements, place, count, by_replacement)
            else:
                for j in range(V):
                    wanted = at(by_outputs, output + j)
                    held = load(adjoint, j * LANES) + wanted * query
                    by_query = by_query + wanted * load(states, now + j * LANES)
                    by_key = by_key + at(values, value + j) * held
                    found = found + held * load(states, before + j * LANES)
                    store(adjoint, j * LANES, gain * held)
            place = row * M * K + shared
            by_query = by_query + load_some(by_queries, place, count)
            store_some(by_queries, place, count, by_query)
            by_key = by_key + load_some(by_keys, place, count)
            store_some(by_keys, place, count, by_key)
            _add_gates(by_gates, (row * N + head) * G, G, first, count, gain * found)


# --- the scalar LSTM ---


@compiled
def slstm_forward(
    inputs: Array,
    recurrent: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    R: int,
    W: int,
    T: int,
    N: int,
    S: int,
    sigmoidal: bool,
    stride: int,
) -> None:
    """Hidden states [R, W, T, N, S] of gates i, f, z, o that inputs [R, W, T, N, 4 S] add to.

    First and last states c, n, h and m are [R, W, N, 4, S], weights [R, N, S, 4 S]. Unless empty,
    kept are the gates' arguments, c, n, h and m at all positions, [R, W, T, N, 8, padded S].
    """
    P = _padded(S)
    state = np.zeros(4 * P, first.dtype)
    gates = np.zeros(4 * P, first.dtype)
    for number in range(R * W):
        for head in range(N):
            place = (number * N + head) * 4 * S
            for part in range(4):
                for i in range(S):
                    put(state, part * P + i, at(first, place + part * S + i))
            weights = (number // W * N + head) * S * 4 * S
            for t in range(T):
                row = number * T + t
                for gate in range(4):
                    for i in range(0, S, LANES):
                        count = min(LANES, S - i)
                        own = gate * S + i
                        summed = load_some(inputs, row * stride + head * 4 * S + own, count)
                        for j in range(S):
                            weight = load_some(recurrent, weights + j * 4 * S + own, count)
                            summed = summed + at(state, 2 * P + j) * weight
                        store(gates, gate * P + i, summed)
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    write, before = load(gates, i), load(gates, P + i)
                    if sigmoidal:
                        before = log_sigmoid(before, first)
                    before = before + load(state, 3 * P + i)
                    most = greater(before, write)
                    keep, write = exponential(before - most), exponential(write - most)
                    new = hyperbolic_tangent(load(gates, 2 * P + i), first)
                    update = keep * load(state, i) + write * new
                    norm = keep * load(state, P + i) + write
                    hidden = sigmoid(load(gates, 3 * P + i), first) * update / norm
                    store(state, i, update)
                    store(state, P + i, norm)
                    store(state, 2 * P + i, hidden)
                    store(state, 3 * P + i, most)
                    store_some(outputs, (row * N + head) * S + i, count, hidden)
                if kept.size > 0:
                    own = (row * N + head) * 8 * P
                    for i in range(0, 4 * P, LANES):
                        store(kept, own + i, load(gates, i))
                        store(kept, own + 4 * P + i, load(state, i))
            for part in range(4):
                for i in range(S):
                    put(last, place + part * S + i, at(state, part * P + i))


@compiled
def slstm_backward(
    transposed: Array,
    first: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_inputs: Array,
    by_first: Array,
    R: int,
    W: int,
    T: int,
    N: int,
    S: int,
    sigmoidal: bool,
) -> None:
    """The gradients by inputs and first states, of weights transposed, [R, N, 4 S, S].

    m has no gradient: h does not depend on it.
    """
    P = _padded(S)
    zero, one = first.dtype.type(0), first.dtype.type(1)
    start = np.zeros(4 * P, first.dtype)
    adjoint = np.zeros(3 * P, first.dtype)
    found = np.zeros(4 * P, first.dtype)
    for number in range(R * W):
        for head in range(N):
            place = (number * N + head) * 4 * S
            for part in range(4):
                for i in range(S):
                    put(start, part * P + i, at(first, place + part * S + i))
                    if part < 3:
                        given = at(by_last, place + part * S + i) if by_last.size > 0 else zero
                        put(adjoint, part * P + i, given)
            weights = (number // W * N + head) * S * 4 * S
            for t in range(T - 1, -1, -1):
                row = number * T + t
                own = (row * N + head) * 8 * P
                before = own - N * 8 * P + 4 * P
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    if t > 0:
                        update = load(kept, before + i)
                        norm = load(kept, before + P + i)
                        most = load(kept, before + 3 * P + i)
                    else:
                        update, norm = load(start, i), load(start, P + i)
                        most = load(start, 3 * P + i)
                    forget = load(kept, own + P + i)
                    decayed, slope = forget, splat(one)
                    if sigmoidal:
                        decayed = log_sigmoid(forget, first)
                        slope = sigmoid(zero - forget, first)
                    after = load(kept, own + 7 * P + i)
                    keep = exponential(decayed + most - after)
                    write = exponential(load(kept, own + i) - after)
                    new = hyperbolic_tangent(load(kept, own + 2 * P + i), first)
                    opened = sigmoid(load(kept, own + 3 * P + i), first)
                    norm_after = load(kept, own + 5 * P + i)
                    ratio = load(kept, own + 4 * P + i) / norm_after
                    wanted = load_some(by_outputs, (row * N + head) * S + i, count)
                    wanted = wanted + load(adjoint, 2 * P + i)
                    by_output = wanted * ratio * opened * (one - opened)
                    wanted = wanted * opened / norm_after
                    by_update = load(adjoint, i) + wanted
                    by_norm = load(adjoint, P + i) - wanted * ratio
                    store(found, i, (by_update * new + by_norm) * write)
                    by_keep = by_update * update + by_norm * norm
                    store(found, P + i, by_keep * keep * slope)
                    store(found, 2 * P + i, by_update * write * (one - new * new))
                    store(found, 3 * P + i, by_output)
                    store(adjoint, i, by_update * keep)
                    store(adjoint, P + i, by_norm * keep)
                for gate in range(4):
                    for i in range(0, S, LANES):
                        count = min(LANES, S - i)
                        put_at = (row * N + head) * 4 * S + gate * S + i
                        store_some(by_inputs, put_at, count, load(found, gate * P + i))
                for i in range(0, S, LANES):
                    count = min(LANES, S - i)
                    back = splat(zero)
                    for gate in range(4):
                        for j in range(S):
                            weight = weights + (gate * S + j) * S + i
                            weight_row = load_some(transposed, weight, count)
                            back = back + at(found, gate * P + j) * weight_row
                    store(adjoint, 2 * P + i, back)
            for part in range(3):
                for i in range(S):
                    put(by_first, place + part * S + i, at(adjoint, part * P + i))


# --- a diagonal ---


@compiled
def _times(gain: Any, state: Any, signs: Any, paired: bool) -> Any:
    """A product by number, or of complex numbers as pairs; signs of -1, 1 conjugate by 1, -1."""
    if paired:
        return evens(gain) * state + signs * (odds(gain) * swapped(state))
    return gain * state


@compiled
def _signs(array: Array, first: float) -> Any:
    """The number `first` and its negative, in turn."""
    signs = np.empty(LANES, array.dtype)
    for lane in range(0, LANES, 2):
        put(signs, lane, array.dtype.type(first))
        put(signs, lane + 1, array.dtype.type(-first))
    return load(signs, 0)


@compiled
def diagonal_forward(
    gains: Array,
    inputs: Array,
    first: Array,
    outputs: Array,
    last: Array,
    W: int,
    T: int,
    D: int,
    paired: bool,
    strides: Any,
) -> None:
    """The states h <- a * h + u [W, T, D]; with `paired`, of complex numbers."""
    signs = _signs(outputs, -1.0)
    for word in range(W):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            state = load_some(first, word * D + channel, count)
            for t in range(T):
                row = word * T + t
                gain = load_some(gains, row * strides[0] + channel, count)
                added = load_some(inputs, row * strides[1] + channel, count)
                state = _times(gain, state, signs, paired) + added
                store_some(outputs, row * D + channel, count, state)
            store_some(last, word * D + channel, count, state)


@compiled
def diagonal_backward(
    gains: Array,
    states: Array,
    first: Array,
    by_outputs: Array,
    by_last: Array,
    by_gains: Array,
    by_inputs: Array,
    by_first: Array,
    W: int,
    T: int,
    D: int,
    paired: bool,
    strides: Any,
) -> None:
    """The gradients, of the states of all positions."""
    signs = _signs(states, 1.0)
    for word in range(W):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            adjoint = load_some(by_last, word * D + channel, count)
            for t in range(T - 1, -1, -1):
                row = word * T + t
                adjoint = adjoint + load_some(by_outputs, row * D + channel, count)
                store_some(by_inputs, row * D + channel, count, adjoint)
                if t > 0:
                    before = load_some(states, (row - 1) * D + channel, count)
                else:
                    before = load_some(first, word * D + channel, count)
                found = _times(before, adjoint, signs, paired)
                store_some(by_gains, row * D + channel, count, found)
                gain = load_some(gains, row * strides[0] + channel, count)
                adjoint = _times(gain, adjoint, signs, paired)
            store_some(by_first, word * D + channel, count, adjoint)


# --- a selective diagonal ---


@compiled
def _gain(step: Any, rates: Array, place: int, count: int, signed: bool) -> Any:
    """Gains exp(step rate), or twice that minus 1, and their derivatives by the product."""
    one = rates.dtype.type(1)
    grown = exponential(step * load_some(rates, place, count))
    if signed:
        grown = grown + grown
        return grown - one, grown
    return grown, grown


@compiled
def selective_forward(
    steps: Array,
    inputs: Array,
    writings: Array,
    readings: Array,
    rates: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    R: int,
    W: int,
    T: int,
    E: int,
    N: int,
    signed: bool,
    strides: Any,
) -> None:
    """The states h <- exp(dt A) * h + dt x B^T, read as h C: channels [R, W, T, E] of N numbers.

    The rates A are [R, N, E], states [R, W, N, E], and B and C [R, W, T, N]. Unless empty, `kept`
    gets the states before chunks, [R, W, chunks, blocks, N, LANES].
    """
    zero = first.dtype.type(0)
    state = np.empty(N * LANES, first.dtype)
    chunks, blocks = -(-T // CHUNK), -(-E // LANES)
    for number in range(R * W):
        rate = number // W * N * E
        for block in range(blocks):
            channel = block * LANES
            count = min(LANES, E - channel)
            own = number * N * E + channel
            for n in range(N):
                store(state, n * LANES, load_some(first, own + n * E, count))
            for t in range(T):
                if kept.size > 0 and t % CHUNK == 0:
                    place = ((number * chunks + t // CHUNK) * blocks + block) * N * LANES
                    for n in range(N):
                        store(kept, place + n * LANES, load(state, n * LANES))
                row = number * T + t
                step = load_some(steps, row * strides[0] + channel, count)
                added = step * load_some(inputs, row * strides[1] + channel, count)
                write, reading = row * strides[2], row * strides[3]
                read = splat(zero)
                for n in range(N):
                    gain, _ = _gain(step, rates, rate + n * E + channel, count, signed)
                    after = gain * load(state, n * LANES) + at(writings, write + n) * added
                    store(state, n * LANES, after)
                    read = read + at(readings, reading + n) * after
                store_some(outputs, row * E + channel, count, read)
            for n in range(N):
                store_some(last, own + n * E, count, load(state, n * LANES))


@compiled
def selective_backward(
    steps: Array,
    inputs: Array,
    writings: Array,
    readings: Array,
    rates: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_steps: Array,
    by_inputs: Array,
    by_writings: Array,
    by_readings: Array,
    by_rates: Array,
    by_first: Array,
    R: int,
    W: int,
    T: int,
    E: int,
    N: int,
    signed: bool,
    strides: Any,
) -> None:
    """The gradients; that by the rates is added to zeros."""
    zero = kept.dtype.type(0)
    size = N * LANES
    chunks, blocks = -(-T // CHUNK), -(-E // LANES)
    states = np.empty((CHUNK + 1) * size, kept.dtype)
    slopes = np.empty(CHUNK * size, kept.dtype)
    adjoints = np.empty(blocks * size, kept.dtype)
    by_writing = np.empty(CHUNK * size, kept.dtype)
    by_reading = np.empty(CHUNK * size, kept.dtype)
    one = kept.dtype.type(1)
    for number in range(R * W):
        rate = number // W * N * E
        for block in range(blocks):
            own = number * N * E + block * LANES
            count = min(LANES, E - block * LANES)
            for n in range(N):
                held = load_some(by_last, own + n * E, count)
                store(adjoints, block * size + n * LANES, held)
        for chunk in range(chunks - 1, -1, -1):
            start = chunk * CHUNK
            length = min(CHUNK, T - start)
            for i in range(0, length * size, LANES):
                store(by_writing, i, splat(zero))
                store(by_reading, i, splat(zero))
            for block in range(blocks):
                channel = block * LANES
                count = min(LANES, E - channel)
                place = ((number * chunks + chunk) * blocks + block) * size
                for i in range(0, size, LANES):
                    store(states, i, load(kept, place + i))
                for t in range(length):
                    row = number * T + start + t
                    step = load_some(steps, row * strides[0] + channel, count)
                    added = step * load_some(inputs, row * strides[1] + channel, count)
                    write = row * strides[2]
                    for n in range(N):
                        place = t * size + n * LANES
                        gain, slope = _gain(step, rates, rate + n * E + channel, count, signed)
                        store(slopes, place, slope)
                        after = gain * load(states, place) + at(writings, write + n) * added
                        store(states, place + size, after)
                for t in range(length - 1, -1, -1):
                    row = number * T + start + t
                    step = load_some(steps, row * strides[0] + channel, count)
                    given = load_some(inputs, row * strides[1] + channel, count)
                    added = step * given
                    write, reading = row * strides[2], row * strides[3]
                    wanted = load_some(by_outputs, row * E + channel, count)
                    by_added, by_step = splat(zero), splat(zero)
                    for n in range(N):
                        place = t * size + n * LANES
                        own = rate + n * E + channel
                        held = load(adjoints, block * size + n * LANES)
                        held = held + at(readings, reading + n) * wanted
                        found = load(by_reading, place) + load(states, place + size) * wanted
                        store(by_reading, place, found)
                        store(by_writing, place, load(by_writing, place) + held * added)
                        by_added = by_added + at(writings, write + n) * held
                        slope = load(slopes, place)
                        by_product = held * load(states, place) * slope
                        by_step = by_step + by_product * load_some(rates, own, count)
                        found = load_some(by_rates, own, count) + by_product * step
                        store_some(by_rates, own, count, found)
                        if signed:
                            slope = slope - one
                        store(adjoints, block * size + n * LANES, slope * held)
                    by_step = by_step + by_added * given
                    store_some(by_steps, row * E + channel, count, by_step)
                    store_some(by_inputs, row * E + channel, count, by_added * step)
            for t in range(length):
                for n in range(N):
                    place = (number * T + start + t) * N + n
                    put(by_writings, place, total(load(by_writing, t * size + n * LANES)))
                    put(by_readings, place, total(load(by_reading, t * size + n * LANES)))
        for block in range(blocks):
            own = number * N * E + block * LANES
            count = min(LANES, E - block * LANES)
            for n in range(N):
                store_some(by_first, own + n * E, count, load(adjoints, block * size + n * LANES))


# --- around recurrences ---


@compiled
def _gather(
    inputs: Array,
    window: Array,
    number: int,
    channel: int,
    count: int,
    T: int,
    D: int,
    size: int,
    stride: int,
    seen: Array,
) -> None:
    """Some channels of a word at all positions, those of the window first."""
    for t in range(size - 1):
        place = (number * (size - 1) + t) * D + channel
        store(seen, t * LANES, load_some(window, place, count))
    for t in range(T):
        place = (number * T + t) * stride + channel
        store(seen, (t + size - 1) * LANES, load_some(inputs, place, count))


@compiled
def _convolved(seen: Array, weights: Array, t: int, size: int) -> Any:
    """The weighted sum of `size` positions from t on, and the bias, which is the last weight."""
    summed = load(weights, size * LANES)
    for j in range(size):
        summed = summed + load(weights, j * LANES) * load(seen, (t + j) * LANES)
    return summed


@compiled
def _weights(
    filters: Array,
    biases: Array,
    lane: int,
    channel: int,
    count: int,
    D: int,
    size: int,
    weights: Array,
) -> None:
    """The filters of some channels, and their bias or zeros."""
    for j in range(size):
        place = (lane * size + j) * D + channel
        store(weights, j * LANES, load_some(filters, place, count))
    store(weights, size * LANES, splat(weights.dtype.type(0)))
    if biases.size > 0:
        store(weights, size * LANES, load_some(biases, lane * D + channel, count))


@compiled
def convolution_forward(
    inputs: Array,
    window: Array,
    filters: Array,
    biases: Array,
    outputs: Array,
    R: int,
    W: int,
    T: int,
    D: int,
    size: int,
    activated: bool,
    stride: int,
) -> None:
    """Channels [R, W, T, D] summed over `size` positions, weighted by filters [R, size, D].

    The window [R, W, size - 1, D] precedes the inputs, whose rows (r, w, t) have a stride. Biases
    are [R, D] or empty. With `activated`, outputs are z sigmoid(z).
    """
    zero, one = outputs.dtype.type(0), outputs.dtype.type(1)
    seen = np.empty((T + size) * LANES, outputs.dtype)
    weights = np.empty((size + 1) * LANES, outputs.dtype)
    for lane in range(R):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            _weights(filters, biases, lane, channel, count, D, size, weights)
            for number in range(lane * W, lane * W + W):
                _gather(inputs, window, number, channel, count, T, D, size, stride, seen)
                for t in range(T):
                    summed = _convolved(seen, weights, t, size)
                    if activated:
                        summed = summed / (one + exponential(zero - summed))
                    store_some(outputs, (number * T + t) * D + channel, count, summed)


@compiled
def convolution_backward(
    inputs: Array,
    window: Array,
    filters: Array,
    biases: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_window: Array,
    by_filters: Array,
    by_biases: Array,
    R: int,
    W: int,
    T: int,
    D: int,
    size: int,
    activated: bool,
    stride: int,
) -> None:
    """The gradients."""
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    seen = np.empty((T + size) * LANES, by_outputs.dtype)
    weights = np.empty((size + 1) * LANES, by_outputs.dtype)
    by_weights = np.empty((size + 1) * LANES, by_outputs.dtype)
    wanted = np.zeros((T + 2 * size) * LANES, by_outputs.dtype)  # between zeros
    for lane in range(R):
        for channel in range(0, D, LANES):
            count = min(LANES, D - channel)
            _weights(filters, biases, lane, channel, count, D, size, weights)
            for j in range(size + 1):
                store(by_weights, j * LANES, splat(zero))
            for number in range(lane * W, lane * W + W):
                _gather(inputs, window, number, channel, count, T, D, size, stride, seen)
                by_bias = load(by_weights, size * LANES)
                for t in range(T):
                    along = load_some(by_outputs, (number * T + t) * D + channel, count)
                    if activated:
                        summed = _convolved(seen, weights, t, size)
                        gate = one / (one + exponential(zero - summed))
                        along = along * gate * (one + summed * (one - gate))
                    by_bias = by_bias + along
                    store(wanted, (t + size) * LANES, along)
                store(by_weights, size * LANES, by_bias)
                for j in range(size):
                    summed = load(by_weights, j * LANES)
                    for t in range(T):
                        along = load(wanted, (t + size) * LANES)
                        summed = summed + along * load(seen, (t + j) * LANES)
                    store(by_weights, j * LANES, summed)
                for t in range(T + size - 1):
                    summed = splat(zero)
                    for j in range(size):
                        along = load(wanted, (t - j + size) * LANES)
                        summed = summed + load(weights, j * LANES) * along
                    if t < size - 1:
                        place = (number * (size - 1) + t) * D + channel
                        store_some(by_window, place, count, summed)
                    else:
                        place = (number * T + t - size + 1) * D + channel
                        store_some(by_inputs, place, count, summed)
            for j in range(size):
                place = (lane * size + j) * D + channel
                store_some(by_filters, place, count, load(by_weights, j * LANES))
            if biases.size > 0:
                store_some(by_biases, lane * D + channel, count, load(by_weights, size * LANES))


@compiled
def _measured(
    inputs: Array, place: int, D: int, share: float, epsilon: float, largest: float
) -> Any:
    """What to multiply a row by before it is squared, and 1 / sqrt(share |x|^2 + epsilon) then."""
    squares = splat(inputs.dtype.type(0))
    for first in range(0, D, LANES):
        part = load_some(inputs, place + first, min(LANES, D - first))
        squares = squares + part * part
    factor = inputs.dtype.type(1)
    summed = total(squares)
    if not summed <= largest * largest:
        most = inputs.dtype.type(0)
        for i in range(D):
            size = abs(at(inputs, place + i))
            if not size <= most:
                most = size
        if not most <= largest:
            factor = inputs.dtype.type(1 / (most / largest))
            squares = splat(inputs.dtype.type(0))
            for first in range(0, D, LANES):
                part = load_some(inputs, place + first, min(LANES, D - first)) * factor
                squares = squares + part * part
            summed = total(squares)
    return factor, inputs.dtype.type(1 / np.sqrt(share * summed + epsilon))


@compiled
def norm_forward(
    inputs: Array,
    gains: Array,
    outputs: Array,
    R: int,
    M: int,
    D: int,
    rows: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
) -> None:
    """Rows [R, M, D] times scale / sqrt(share |x|^2 + epsilon), times gains [R, rows, D] in turn.

    Rows with a number above `largest` are scaled down to it before. No gains are an empty array.
    """
    for lane in range(R):
        for m in range(M):
            place = (lane * M + m) * stride
            factor, measure = _measured(inputs, place, D, share, epsilon, largest)
            multiplier = factor * measure * outputs.dtype.type(scale)
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                part = multiplier * load_some(inputs, place + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    part = part * load_some(gains, row, count)
                store_some(outputs, (lane * M + m) * D + first, count, part)


@compiled
def norm_backward(
    inputs: Array,
    gains: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_gains: Array,
    R: int,
    M: int,
    D: int,
    rows: int,
    share: float,
    epsilon: float,
    largest: float,
    scale: float,
    stride: int,
) -> None:
    """The gradients; those by gains are added to zeros. No gradient is by the scaling down."""
    for lane in range(R):
        for m in range(M):
            place, own = (lane * M + m) * stride, (lane * M + m) * D
            factor, measure = _measured(inputs, place, D, share, epsilon, largest)
            multiplier = factor * measure
            along = splat(by_outputs.dtype.type(0))
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                normal = multiplier * load_some(inputs, place + first, count)
                wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    grown = load_some(by_gains, row, count) + wanted * normal
                    store_some(by_gains, row, count, grown)
                    wanted = wanted * load_some(gains, row, count)
                along = along + wanted * normal
            shared = by_outputs.dtype.type(share) * total(along)
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                normal = multiplier * load_some(inputs, place + first, count)
                wanted = by_outputs.dtype.type(scale) * load_some(by_outputs, own + first, count)
                if gains.size > 0:
                    row = (lane * rows + m % rows) * D + first
                    wanted = wanted * load_some(gains, row, count)
                found = multiplier * (wanted - shared * normal)
                store_some(by_inputs, own + first, count, found)


@compiled
def gated_forward(
    inputs: Array, gates: Array, outputs: Array, M: int, D: int, strides: Any
) -> None:
    """The products x z sigmoid(z) of rows [M, D] of x and z."""
    zero, one = outputs.dtype.type(0), outputs.dtype.type(1)
    for m in range(M):
        for first in range(0, D, LANES):
            count = min(LANES, D - first)
            gate = load_some(gates, m * strides[1] + first, count)
            given = load_some(inputs, m * strides[0] + first, count)
            found = given * gate / (one + exponential(zero - gate))
            store_some(outputs, m * D + first, count, found)


@compiled
def gated_backward(
    inputs: Array,
    gates: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_gates: Array,
    M: int,
    D: int,
    strides: Any,
) -> None:
    """The gradients."""
    zero, one = by_outputs.dtype.type(0), by_outputs.dtype.type(1)
    for m in range(M):
        for first in range(0, D, LANES):
            count = min(LANES, D - first)
            gate = load_some(gates, m * strides[1] + first, count)
            given = load_some(inputs, m * strides[0] + first, count)
            wanted = load_some(by_outputs, m * D + first, count)
            share = one / (one + exponential(zero - gate))
            store_some(by_inputs, m * D + first, count, wanted * gate * share)
            slope = share * (one + gate * (one - share))
            store_some(by_gates, m * D + first, count, wanted * given * slope)


@compiled
def mixed_forward(
    inputs: Array,
    before: Array,
    shares: Array,
    outputs: Array,
    R: int,
    M: int,
    D: int,
    n: int,
    strides: Any,
) -> None:
    """Mixtures x + s (y - x) of rows x and y [R, M, D] for n rows of shares s: [R, n, M, D]."""
    for lane in range(R):
        for m in range(lane * M, lane * M + M):
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                given = load_some(inputs, m * strides[0] + first, count)
                change = load_some(before, m * strides[1] + first, count) - given
                for j in range(n):
                    share = load_some(shares, (lane * n + j) * D + first, count)
                    place = ((lane * n + j) * M + m - lane * M) * D + first
                    store_some(outputs, place, count, given + share * change)


@compiled
def mixed_backward(
    inputs: Array,
    before: Array,
    shares: Array,
    by_outputs: Array,
    by_inputs: Array,
    by_before: Array,
    by_shares: Array,
    R: int,
    M: int,
    D: int,
    n: int,
    strides: Any,
) -> None:
    """The gradients; those by shares are added to zeros."""
    zero = by_outputs.dtype.type(0)
    for lane in range(R):
        for m in range(lane * M, lane * M + M):
            for first in range(0, D, LANES):
                count = min(LANES, D - first)
                given = load_some(inputs, m * strides[0] + first, count)
                change = load_some(before, m * strides[1] + first, count) - given
                all_of_them, shared = splat(zero), splat(zero)
                for j in range(n):
                    own = (lane * n + j) * D + first
                    place = ((lane * n + j) * M + m - lane * M) * D + first
                    wanted = load_some(by_outputs, place, count)
                    all_of_them = all_of_them + wanted
                    shared = shared + wanted * load_some(shares, own, count)
                    grown = load_some(by_shares, own, count) + wanted * change
                    store_some(by_shares, own, count, grown)
                store_some(by_inputs, m * D + first, count, all_of_them - shared)
                store_some(by_before, m * D + first, count, shared)
