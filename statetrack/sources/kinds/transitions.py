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
    names = list(states)
    symbols = list(next(iter(states.values())))
    delta = [
        [_state(row[symbol], names, f"state '{state}', symbol '{symbol}'") for symbol in symbols]
        for state, row in _complete(states, symbols).items()
    ]
    label_of = _labels(outputs, names)
    order = _label_order(list(label_of.values())) if labels is None else labels
    return Automaton(
        delta,
        [_place_of(label_of[state], order, state) for state in names],
        start=_state(start, names, "start"),
        symbols=symbols,
        states=names,
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


def _place_of(label: int | str, order: list[int | str], state: str) -> int:
    shown = [str(each) for each in order]
    if str(label) not in shown:
        raise TaskError(
            f"labels: the label '{label}' of state '{state}' is not among them."
            f"{nearest_or_known(str(label), shown)}"
        )
    return order.index(label) if label in order else shown.index(str(label))


def _chances(
    what: str,
    chances: Mapping[str, Mapping[str, float]],
    names: list[str],
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


def _scored(scored: list[str], names: list[str]) -> list[bool]:
    asked = {_state(state, names, "scored") for state in scored}
    return [place in asked for place in range(len(names))]
