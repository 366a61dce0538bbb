"""Machines of XState (npm), as JSON, if they are flat.

    {"initial": "off", "states": {
        "off": {"on": {"SWITCH": "on"}},
        "on": {"on": {"SWITCH": {"target": "off", "actions": ["click"]}}}
    }}

What is said is `meta.output` of states, else the `entry` actions of states or the `actions` of
transitions, each by its name; `_charts` says how a machine comes of it. `*` matches events that a
state does not list, `mouse.*` those that begin so, and transitions of the machine itself those that
no state's own match. States inside states, guards, delays, services and transitions without an
event are refused, by their path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._charts import Chart, Reaction, encoded, machine_of
from statetrack.sources.formats._text import (
    MOST_EDGES,
    MachineText,
    problem,
    shown,
    without_repetition,
)

MOST_DIGITS: Final = 300
"""The longest whole number."""

_PASSED_OVER: Final = frozenset(
    "id key version description tags meta order types tsTypes schema schemas context delimiter "
    "predictableActionArguments preserveActionOrder strict".split()
)
"""Keys that change nothing about an automaton; data without a guard that reads them among them."""

_WHY: Final = {
    "states": "states inside states are not read: flatten the machine",
    "initial": "states inside states are not read: flatten the machine",
    "history": "history is not read: write a state for each memory",
    "always": "transitions without an event are not read",
    "after": "delays are not read: time is no symbol",
    "invoke": "services are not read: an automaton has states alone",
    "activities": "services are not read: an automaton has states alone",
    "exit": "what is said on leaving a state is not read: say it in the transitions",
    "guard": "guards are not read: write a state for each case",
    "cond": "guards are not read: write a state for each case",
    "in": "guards are not read: write a state for each case",
}


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the path, or line, of what cannot be read."""
    content = _loaded(text)
    if not (isinstance(content, dict) and {"initial", "states"} <= content.keys()):
        raise TaskError("holds no machine of XState: an object with `initial` and `states` is one")
    start, states = content["initial"], content["states"]
    if not (isinstance(states, dict) and states):
        raise TaskError("states: must be an object with a state or more")
    if len(states) > MOST_EDGES:
        raise TaskError(f"states: {len(states):,} are too many: {MOST_EDGES:,} are the most")
    if not (isinstance(start, str) and start in states):
        raise TaskError(f"initial: {_written(start)} is no state")
    _check_keys(content, "", {"initial", "states", "on", "type"})
    common = _reactions(content.get("on"), "on", states, 1)
    says: dict[str, list[str]] = {}
    enters: dict[str, list[str]] = {}
    reactions: dict[str, Mapping[str, Reaction]] = {}
    for name, state in states.items():
        path = f"states.{name}"
        if not isinstance(state, dict):
            raise TaskError(f"{path}: must be an object")
        _check_keys(state, f"{path}.", {"on", "entry", "type"})
        if "entry" in state:
            enters[name] = _actions(state["entry"], f"{path}.entry")
        if (said := _output(state, path)) is not None:
            says[name] = [said]
        own = _reactions(state.get("on"), f"{path}.on", states, 0)
        reactions[name] = {} if state.get("type") == "final" else {**common, **own}
    events = dict.fromkeys(
        event for row in reactions.values() for event in row if not _is_pattern(event)
    )
    said_on_entry = {name: said for name, said in enters.items() if said}
    return machine_of(Chart(start, says or said_on_entry, reactions, list(events), _patterns))


def _loaded(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=without_repetition,
            parse_constant=_no_number,
            parse_int=_whole_number,
        )
    except json.JSONDecodeError as error:
        raise problem(error.lineno, f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise TaskError("lists and objects stand too deep inside each other") from None
    except ValueError as error:
        raise TaskError(f"this is not JSON: {error}") from None


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits: {MOST_DIGITS} are the most")
    return int(digits)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _check_keys(holder: Mapping[str, Any], path: str, known: set[str]) -> None:
    for key in holder:
        if key not in known and key not in _PASSED_OVER:
            why = _WHY.get(key, f"is not known: {', '.join(sorted(known))} are read")
            raise TaskError(f"{path}{key}: {why}")
    kind = holder.get("type", "atomic")
    if kind not in ("atomic", "final", "compound"):
        raise TaskError(f"{path}type: {_written(kind)} is not read: flatten the machine")


def _reactions(given: Any, path: str, states: Mapping[str, Any], level: int) -> dict[str, Reaction]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise TaskError(f"{path}: must be an object of events")
    if len(given) > MOST_EDGES:
        raise TaskError(f"{path}: {len(given):,} events are too many: {MOST_EDGES:,} are the most")
    found = {}
    for event, reaction in given.items():
        place = f"{path}.{event}"
        if not event:
            raise TaskError(f"{place}: {_WHY['always']}")
        # the longest pattern is tried first, and those of the machine after all of a state
        exact = 0 if not _is_pattern(event) else 10**8 - len(event)
        found[event] = _reaction(reaction, place, states, exact + level * 10**9)
    return found


def _reaction(given: Any, place: str, states: Mapping[str, Any], rank: int) -> Reaction:
    if isinstance(given, list):
        if len(given) != 1:
            raise TaskError(f"{place}: has {len(given)} transitions, and guards are not read")
        given = given[0]
    if given is None or isinstance(given, str):
        given = {"target": given}
    if not isinstance(given, dict):
        raise TaskError(f"{place}: {_written(given)} is no transition")
    known = {"target", "actions", "internal", "reenter"}
    _check_keys({key: value for key, value in given.items() if key != "type"}, f"{place}.", known)
    target = given.get("target")
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    if isinstance(target, str):
        target = target if target in states else target.removeprefix(".")
    if target is not None and not (isinstance(target, str) and target in states):
        raise TaskError(f"{place}: {_written(target)} is no state")
    says = _actions(given.get("actions"), f"{place}.actions")
    return Reaction(target, says, rank, path=f"{place}: ")


def _actions(given: Any, place: str) -> list[str]:
    """The names of actions."""
    names = []
    for each in given if isinstance(given, list) else [] if given is None else [given]:
        name = each.get("type") if isinstance(each, dict) else each
        if not (isinstance(name, str) and name):
            raise TaskError(f"{place}: {_written(each)} is no action with a name")
        names.append(name)
    return names


def _output(state: Mapping[str, Any], path: str) -> str | None:
    meta = state.get("meta")
    if not isinstance(meta, dict) or "output" not in meta:
        return None
    output = meta["output"]
    if isinstance(output, bool) or not isinstance(output, str | int | float):
        raise TaskError(f"{path}.meta.output: {_written(output)} must be text or a number")
    return str(output)


def _is_pattern(event: str) -> bool:
    return event == "*" or event.endswith(".*")


def _patterns(event: str) -> list[str]:
    """The patterns that an event matches: itself, `a.*` of what stands before its dots, and `*`."""
    parts = event.split(".")
    return [event, *(".".join(parts[:count]) + ".*" for count in range(1, len(parts))), "*"]


def _written(value: Any) -> str:
    """A value as an error quotes it."""
    return shown(json.dumps(value, ensure_ascii=False))


def write(automaton: Automaton) -> str:
    """The text of a machine, with the label of every state as its `meta.output`."""
    events = [encoded(symbol, "*") for symbol in automaton.symbols]
    states = {
        f"s{state}": {
            "meta": {"output": automaton.labels[label]},
            "on": {event: f"s{target}" for event, target in zip(events, row, strict=True)},
        }
        for state, (row, label) in enumerate(
            zip(automaton.delta.tolist(), automaton.output.tolist(), strict=True)
        )
    }
    content = {"initial": f"s{automaton.start}", "states": states}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


MACHINE_FORMATS.register("xstate")(MachineFormat((".xstate.json", ".json"), read, write))
