"""Modular arithmetic without brackets: the value of an expression, modulo m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.derived import minimise
from statetrack.sources.graphs import explore
from statetrack.sources.kinds import KINDS, argument

MOST_STATES = 20_000


@dataclass(frozen=True)
class _Awaiting:
    """A digit d comes next; the expression is then worth `fixed + factor * d`."""

    fixed: int
    factor: int


@dataclass(frozen=True)
class _Value:
    """An expression is complete: it is worth `fixed + term`, and `*` would act on `term`."""

    fixed: int
    term: int


@dataclass(frozen=True)
class _Broken:
    """Two digits or two operators followed each other: no expression any more."""


_State = _Awaiting | _Value | _Broken


@KINDS.register("modular-arithmetic")
def modular_arithmetic(
    *,
    m: Annotated[int, argument("the modulus: digits and values are 0 to m-1", min=2, max=50)],
    operators: Annotated[
        str,
        argument("the operators that may stand between digits, one letter each"),
        Field(pattern=r"^[-+*]+$"),
    ] = "+-*",
    order: Annotated[
        Literal["precedence", "left-to-right"],
        argument("precedence: `*` comes before `+` and `-`; left-to-right: as they stand"),
    ] = "precedence",
) -> Automaton:
    """The value of an expression of digits and operators, modulo m.

    Words are digit, operator, digit and so on: nothing else is drawn. The label is asked for
    after a digit, where the word so far is an expression. With m = 5 and all operators the
    smallest machine has 51 states by precedence (25 values of what is fixed and of the term that
    `*` acts on, 25 of what awaits a digit, and one for broken words) and 19 from left to right
    (5 values, 13 different functions of the digit to come, one for broken words).

    Grazzi et al. 2024, arXiv 2411.12537, without their closing `=`.
    """
    if len(set(operators)) < len(operators):
        raise TaskError("operators: one of them appears twice")
    symbols = [*map(str, range(m)), *operators]

    def step(state: _State, symbol: str) -> _State:
        if isinstance(state, _Awaiting) and symbol not in "+-*":
            term = state.factor * int(symbol) % m
            if order == "left-to-right":
                return _Value(0, (state.fixed + term) % m)
            return _Value(state.fixed, term)
        if isinstance(state, _Value) and symbol in "+-*":
            if symbol == "*":
                return _Awaiting(state.fixed, state.term)
            return _Awaiting((state.fixed + state.term) % m, {"+": 1, "-": m - 1}[symbol])
        return _Broken()

    start: _State = _Awaiting(0, 1)
    states, delta = explore(start, symbols, step, MOST_STATES)
    digits, signs = [1.0] * m, [1.0] * len(operators)
    return minimise(
        Automaton(
            delta,
            [_value(state) % m for state in states],
            symbols=symbols,
            states=[_name(state) for state in states],
            labels=[str(value) for value in range(m)],
            weights=[_weights(state, digits, signs) for state in states],
            scored=[isinstance(state, _Value) for state in states],
        )
    )


def _weights(state: _State, digits: list[float], signs: list[float]) -> list[float]:
    """Digits where one is awaited, operators after a value, any symbol in a broken word."""
    digit_weight = 0.0 if isinstance(state, _Value) else 1.0
    sign_weight = 0.0 if isinstance(state, _Awaiting) else 1.0
    return [digit_weight * each for each in digits] + [sign_weight * each for each in signs]


def _value(state: _State) -> int:
    return state.fixed + state.term if isinstance(state, _Value) else 0


def _name(state: _State) -> str:
    if isinstance(state, _Awaiting):
        return f"{state.fixed}+{state.factor}*?"
    if isinstance(state, _Value):
        return f"{state.fixed}+{state.term}"
    return "broken"
