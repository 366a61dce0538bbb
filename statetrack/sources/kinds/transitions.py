"""A machine with its transitions written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from statetrack.errors import TaskError, nearest, nearest_or_known
from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("transitions")
def transitions(
    *,
    states: Annotated[
        dict[str, dict[str, str]],
        argument("for every state, the state that each symbol leads to"),
        Field(min_length=1),
    ],
    start: Annotated[str, argument("the state before the first symbol")],
    outputs: Annotated[
        dict[str, int | str] | None,
        argument("the label of every state; left out, every state is its own label"),
    ] = None,
    weights: Annotated[
        dict[str, dict[str, float]] | None,
        argument(
            "for a state, how likely each symbol is drawn there, 0 where it is left out; "
            "a state that is left out draws all symbols alike"
        ),
    ] = None,
    scored: Annotated[
        list[str] | None,
        argument("the states whose label is asked for; left out, all of them"),
    ] = None,
) -> Automaton:
    """A machine of one's own. Symbols are ordered as in the first state.

    Labels that are all numbers are ordered by value, others by first appearance.
    """
    names = list(states)
    symbols = list(next(iter(states.values())))
    delta = [
        [_state(row[symbol], names, f"state '{state}', symbol '{symbol}'") for symbol in symbols]
        for state, row in _complete(states, symbols).items()
    ]
    labels = _labels(outputs, names)
    order = _label_order(list(labels.values()))
    return Automaton(
        delta,
        [order.index(labels[state]) for state in names],
        start=_state(start, names, "start"),
        symbols=symbols,
        states=names,
        labels=[str(label) for label in order],
        weights=None if weights is None else _weights(weights, names, symbols),
        scored=None if scored is None else _scored(scored, names),
    )


def _state(name: str, names: list[str], where: str) -> int:
    if name not in names:
        raise TaskError(f"{where}: there is no state '{name}'.{nearest_or_known(name, names)}")
    return names.index(name)


def _complete(
    states: Mapping[str, Mapping[str, str]], symbols: list[str]
) -> Mapping[str, Mapping[str, str]]:
    """The rows as they are, once every one of them has the same symbols."""
    for state, row in states.items():
        for symbol in symbols:
            if symbol not in row:
                raise TaskError(f"states: state '{state}' does not say where '{symbol}' leads")
        for symbol in row:
            if symbol not in symbols:
                raise TaskError(
                    f"states: state '{state}' has the symbol '{symbol}', which the first state "
                    f"'{next(iter(states))}' does not have.{nearest(symbol, symbols)}"
                )
    return states


def _labels(outputs: Mapping[str, int | str] | None, names: list[str]) -> Mapping[str, int | str]:
    if outputs is None:
        return {state: state for state in names}
    for state in outputs:
        _state(state, names, "outputs")
    for state in names:
        if state not in outputs:
            raise TaskError(f"outputs: the label of state '{state}' is missing")
    return outputs


def _label_order(labels: list[int | str]) -> list[int | str]:
    distinct = list(dict.fromkeys(labels))
    numbers = [label for label in distinct if isinstance(label, int)]
    return [*sorted(numbers)] if len(numbers) == len(distinct) else distinct


def _weights(
    weights: Mapping[str, Mapping[str, float]], names: list[str], symbols: list[str]
) -> list[list[float]]:
    for state, row in weights.items():
        _state(state, names, "weights")
        for symbol in row:
            if symbol not in symbols:
                raise TaskError(
                    f"weights: state '{state}': there is no symbol '{symbol}'."
                    f"{nearest_or_known(symbol, symbols)}"
                )
    alike = dict.fromkeys(symbols, 1.0)
    return [[weights.get(state, alike).get(symbol, 0.0) for symbol in symbols] for state in names]


def _scored(scored: list[str], names: list[str]) -> list[bool]:
    asked = {_state(state, names, "scored") for state in scored}
    return [place in asked for place in range(len(names))]
