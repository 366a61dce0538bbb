"""Which cascade and which setter the layers of each kind of model are made with."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.claims.constructions import mixers
from tests.claims.constructions.base import Case
from tests.claims.constructions.cascades import register, series
from tests.claims.constructions.stacks import Layered, build_stack


def selective(case: Case) -> Any:
    """Mamba: signs where eigenvalues may be -1 and the task is a group's, else a register."""
    if case.options.get("eigenvalues") == "signed" and case.algebra.is_group:
        cascade = partial(series, squares=True)
    else:
        cascade = register
    return build_stack(
        case,
        Layered(
            cascade,
            mixers.mamba,
            lambda numbers: numbers,
            lambda numbers, _: {"state": 1, "rank": numbers},
        ),
    )


def turning(case: Case) -> Any:
    """AUSSM: characters of modulus 1."""
    return build_stack(
        case,
        Layered(
            partial(series, squares=False),
            mixers.aussm,
            lambda numbers: 2 * numbers,
            lambda numbers, width: {"state": 1, "width": width + 4 * numbers},
        ),
    )


def mamba3(case: Case) -> Any:
    """Characters of modulus 1, without decay, where the task is a group's; else a register."""
    if not case.algebra.is_group:
        return _mamba3_register(case)

    def free(numbers: int, width: int) -> dict[str, Any]:
        heads = 2 * numbers
        wide = width + -width % heads
        return {"heads": heads, "state": heads, "turned": 1.0, "slowest": 0.0, "width": wide}

    return build_stack(
        case,
        Layered(
            partial(series, squares=False),
            mixers.mamba3_turns,
            lambda numbers: 2 * numbers,
            free,
        ),
    )


def _register(setter: Any, **free: Any) -> Any:
    def construct(case: Case) -> Any:
        def chosen(numbers: int, width: int) -> dict[str, Any]:
            given = {
                name: value(numbers, width) if callable(value) else value
                for name, value in free.items()
            }
            return given

        return build_stack(case, Layered(register, setter, lambda numbers: numbers, chosen))

    return construct


mamba2 = _register(mixers.mamba2, heads=1, state=1)
_mamba3_register = _register(mixers.mamba3, heads=1, state=2)
gla = _register(mixers.gla, heads=1, gate_rank=1, expand_keys=lambda _, width: 1 / width)
rwkv6 = _register(mixers.rwkv6, heads=1)
mlstm = _register(mixers.mlstm, heads=1, expand=1.0, projection_block=lambda _, width: width)
minmax = _register(mixers.minmax, state=lambda numbers, _: numbers)
hgrn = _register(mixers.hgrn)
rg_lru = _register(mixers.rg_lru, heads=1, expand=2)
min_gru = _register(mixers.min_gru, mlp=0.0)
hgrn2 = _register(mixers.hgrn2, heads=1)
rwkv7 = _register(mixers.rwkv7, heads=1)
delta = _register(mixers.delta, heads=1, key_dim=1, value_dim=lambda numbers, _: max(numbers, 2))
rwkv4 = _register(mixers.rwkv4)
