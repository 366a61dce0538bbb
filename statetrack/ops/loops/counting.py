"""Whole numbers in loops: what they run through, and the lesser of two.

Python's own have code for all that numbers could be, of which most of a loop would consist before
LLVM sees that it is never run.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.core.types.common import SimpleIteratorType
from numba.extending import lower_builtin, models, register_model

from statetrack.ops.loops.memory import intrinsic

_INTEGER = ir.IntType(64)
_STATE = ir.LiteralStructType([_INTEGER, _INTEGER, _INTEGER])


class _Steps(SimpleIteratorType):
    """The type of the place of three numbers: the next one, where to stop, and a step."""

    def __init__(self) -> None:
        super().__init__("Steps", types.int64)


@register_model(_Steps)
class _StepsModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: _Steps) -> None:
        models.PrimitiveModel.__init__(self, manager, kind, _STATE.as_pointer())


def _steps(builder: Any, start: Any, stop: Any, step: Any) -> Any:
    state = ir.Constant(_STATE, ir.Undefined)
    for place, number in enumerate((start, stop, step)):
        state = builder.insert_value(state, number, place)
    place = cgutils.alloca_once(builder, _STATE)
    builder.store(state, place)
    return place


@intrinsic
def spaced(typing: Any, start: Any, stop: Any, step: Any) -> Any:
    """The numbers of `range(start, stop, step)`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _steps(builder, *args)

    return _Steps()(types.int64, types.int64, types.int64), code


@intrinsic
def up_to(typing: Any, stop: Any) -> Any:
    """The numbers of `range(stop)`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _steps(builder, _INTEGER(0), args[0], _INTEGER(1))

    return _Steps()(types.int64), code


def _next(context: Any, builder: Any, signature: Any, args: Any, result: Any) -> None:
    state = builder.load(args[0])
    number, stop, step = (builder.extract_value(state, place) for place in range(3))
    upwards = builder.icmp_signed(">", step, _INTEGER(0))
    below, above = (builder.icmp_signed(sign, number, stop) for sign in "<>")
    result.set_valid(builder.select(upwards, below, above))
    result.yield_(number)
    following = builder.add(number, step, flags=("nsw",))
    builder.store(builder.insert_value(state, following, 0), args[0])


lower_builtin("iternext", _Steps)(iternext_impl(RefType.UNTRACKED)(_next))


@intrinsic
def least(typing: Any, left: Any, right: Any) -> Any:
    """The lesser of two numbers."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.icmp_signed("<", *args), *args)

    return types.int64(types.int64, types.int64), code
