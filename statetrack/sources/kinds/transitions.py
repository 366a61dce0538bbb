"""An automaton with its transitions written out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from statetrack.errors import TaskError, nearest, nearest_or_known
from statetrack.sources.arrays import Floats
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
    labels: Annotated[
        list[int | str] | None,
        argument("all labels in their order; left out, numbers by value, others as they appear"),
    ] = None,
    slips: Annotated[
        dict[str, dict[str, float]] | None,
        argument(
            "for a state, how likely each symbol is drawn where a word slips; in a state that is "
            "left out no word does"
        ),
    ] = None,
    slip_rate: Annotated[
        float | None,
        argument("how often words slip: with chance r / (t + 1 + r) at position t", min=0),
    ] = None,
) -> Automaton:
    """An automaton of one's own. Symbols are ordered as in the first state."""
    names = {state: place for place, state in enumerate(states)}
    symbols = list(next(iter(states.values())))
    delta = [
        [_state(row[symbol], names, state, symbol) for symbol in symbols]
        for state, row in _complete(states, symbols).items()
    ]
    label_of = _labels(outputs, names)
    order = list(dict.fromkeys(label_of.values())) if labels is None else labels
    if labels is None and all(isinstance(label, int) for label in order):
        order.sort(key=int)
    return Automaton(
        delta,
        _places(label_of, names, order),
        start=_state(start, names, "start"),
        symbols=symbols,
        states=list(names),
        labels=[str(label) for label in order],
        weights=None if weights is None else _chances("weights", weights, names, symbols, 1.0),
        scored=None if scored is None else _scored(scored, names),
        slips=None if slips is None else _chances("slips", slips, names, symbols, 0.0),
        slip_rate=slip_rate or 0.0,
    )


def written_out(automaton: Automaton) -> dict[str, Any]:
    """The arguments of `transitions` that make this automaton."""
    states, symbols = automaton.states, automaton.symbols
    arguments: dict[str, Any] = {
        "start": states[automaton.start],
        "states": {
            state: {symbol: states[target] for symbol, target in zip(symbols, targets, strict=True)}
            for state, targets in zip(states, automaton.delta.tolist(), strict=True)
        },
        "outputs": {
            state: automaton.labels[label]
            for state, label in zip(states, automaton.output.tolist(), strict=True)
        },
        "labels": list(automaton.labels),
    }
    weights = _rows(automaton, automaton.weights, 1.0 / automaton.num_symbols)
    if weights:
        arguments["weights"] = weights
    if not automaton.all_scored:
        arguments["scored"] = [states[place] for place in np.flatnonzero(automaton.scored)]
    if automaton.can_slip:
        arguments["slips"] = _rows(automaton, automaton.slips, 0.0)
        arguments["slip_rate"] = automaton.slip_rate
    return arguments


def _rows(automaton: Automaton, chances: Floats, left_out: float) -> dict[str, dict[str, float]]:
    """The chances above 0 in a table `[S, V]`, but for states that have `left_out` everywhere."""
    return {
        state: {
            symbol: chance
            for symbol, chance in zip(automaton.symbols, row, strict=True)
            if chance > 0
        }
        for state, row in zip(automaton.states, chances.tolist(), strict=True)
        if set(row) != {left_out}
    }


def _state(name: str, names: Mapping[str, int], *where: str) -> int:
    """The place of a state; `where` is what names it, or a state and the symbol that leads there.

    A place is looked up for every transition, so that words are made for a wrong one only.
    """
    if name not in names:
        place = where[0] if len(where) == 1 else f"state '{where[0]}', symbol '{where[1]}'"
        raise TaskError(f"{place}: there is no state '{name}'.{nearest_or_known(name, names)}")
    return names[name]


def _complete(
    states: Mapping[str, Mapping[str, str]], symbols: list[str]
) -> Mapping[str, Mapping[str, str]]:
    """The rows as they are, once every one of them has the same symbols."""
    known = set(symbols)
    for state, row in states.items():
        if row.keys() == known:
            continue
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


def _labels(
    outputs: Mapping[str, int | str] | None, names: Mapping[str, int]
) -> Mapping[str, int | str]:
    if outputs is None:
        return {state: state for state in names}
    for state in outputs:
        _state(state, names, "outputs")
    for state in names:
        if state not in outputs:
            raise TaskError(f"outputs: the label of state '{state}' is missing")
    return outputs


def _places(
    label_of: Mapping[str, int | str], names: Mapping[str, int], order: list[int | str]
) -> list[int]:
    """The place of every state's label among the labels; `1` and `"1"` are the same one."""
    exact = {label: place for place, label in reversed(list(enumerate(order)))}
    shown = {str(label): place for place, label in reversed(list(enumerate(order)))}
    places = []
    for state in names:
        label = label_of[state]
        if str(label) not in shown:
            raise TaskError(
                f"labels: the label '{label}' of state '{state}' is not among them."
                f"{nearest_or_known(str(label), shown)}"
            )
        places.append(exact[label] if label in exact else shown[str(label)])
    return places


def _chances(
    what: str,
    chances: Mapping[str, Mapping[str, float]],
    names: Mapping[str, int],
    symbols: list[str],
    left_out: float,
) -> list[list[float]]:
    """The table `[S, V]`; a state that is left out has `left_out` for every symbol."""
    for state, row in chances.items():
        _state(state, names, what)
        for symbol in row:
            if symbol not in symbols:
                raise TaskError(
                    f"{what}: state '{state}': there is no symbol '{symbol}'."
                    f"{nearest_or_known(symbol, symbols)}"
                )
    alike = dict.fromkeys(symbols, left_out)
    return [[chances.get(state, alike).get(symbol, 0.0) for symbol in symbols] for state in names]


def _scored(scored: list[str], names: Mapping[str, int]) -> list[bool]:
    asked = {_state(state, names, "scored") for state in scored}
    return [place in asked for place in range(len(names))]
