"""Tasks and kinds as rows; one task: its words, its algebra and what follows; one kind."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from statetrack.algebra import Algebra, Prediction, merging_in
from statetrack.data import stream_words
from statetrack.errors import StatetrackError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.predicting import identification_by, predict
from statetrack.settings import Settings
from statetrack.sources import KINDS, arguments_of
from statetrack.spec import (
    TASKS,
    Task,
    WordSpec,
    arguments_that_can_be_set,
    golden_hash,
    group_meant,
    list_tasks,
    load_task,
)

Row = dict[str, Any]

EXAMPLE_LENGTH = 8


def rows_of_tasks() -> Iterator[Row]:
    """A row for every task, with the error of a task that cannot be loaded."""
    for name, task in list_tasks():
        if isinstance(task, StatetrackError):
            yield {"name": name, "error": str(task)}
            continue
        yield {
            "name": name,
            "states": task.automaton.num_states if task.has_automaton else None,
            "symbols": task.source.num_symbols,
            "labels": task.source.num_labels,
            "title": task.spec.title,
            "kind": task.spec.automaton["kind"],
            "version": task.spec.version,
            "reference": task.spec.reference,
        }


def describe_task(task: Task) -> dict[str, Any]:
    """The facts about a task without its algebra, as plain values.

    Facts of automata only are null for a task whose words come from a sampler.
    """
    spec = task.spec
    return {
        "name": task.name,
        "type": "task",
        "title": spec.title,
        "version": spec.version,
        "reference": spec.reference,
        "description": spec.description,
        "kind": spec.automaton["kind"],
        "arguments": arguments_that_can_be_set(task),
        "symbols": list(task.source.symbols),
        "labels": list(task.source.labels),
        **(_describe_automaton(task) if task.has_automaton else dict.fromkeys(OF_AUTOMATA)),
        "train_length": list(spec.train_length),
        "test_lengths": list(spec.test_lengths),
        "supervision": spec.supervision,
        "examples": dict(spec.examples) or _made_up_example(task),
        "hash": golden_hash(task),
    }


def load_named_task(name: str) -> Task:
    """The task of a name; the error for an unknown name suggests the nearest task or model."""
    plain = name.strip().isidentifier() or all(c.isalnum() or c == "-" for c in name)
    if plain and name not in TASKS:
        near = nearest(name, [*TASKS, *MODELS])
        hint = group_meant(name, TASKS) or f"{near}{MODELS.hint}"
        raise UnknownNameError(
            f"there is nothing called '{name}'.{hint} `statetrack list` says what there is."
        )
    return load_task(name)


OF_AUTOMATA = (
    *("states", "start", "transitions", "output", "scored", "weights", "slips", "slip_rate"),
    *("floor", "merging"),
)
"""What is shown of an automaton alone."""


def _describe_automaton(task: Task) -> dict[str, Any]:
    automaton = task.automaton
    floors = automaton.floors(task.spec.test_lengths) or {}
    merging = merging_in(automaton, max(task.spec.test_lengths))
    return {
        "states": list(automaton.states),
        "start": automaton.start,
        "transitions": automaton.delta.tolist(),
        "output": automaton.output.tolist(),
        "scored": automaton.scored.tolist(),
        "weights": automaton.weights.tolist(),
        "slips": automaton.slips.tolist(),
        "slip_rate": automaton.slip_rate,
        "floor": {str(length): floors.get(length) for length in task.spec.test_lengths},
        "merging": None if merging is None else merging.to_json(),
    }


def _made_up_example(task: Task) -> dict[str, str]:
    """One word that the task can draw, and its labels."""
    if not task.has_automaton:
        length = min(EXAMPLE_LENGTH, task.source.longest_word)
        (words,) = stream_words(task.source, 1, length, seed=0)
        return {task.format_word(words.symbols[0]): task.format_labels(words.symbols[0])}
    automaton = task.automaton
    word, state = [], automaton.start
    for place in range(EXAMPLE_LENGTH):
        allowed = [int(symbol) for symbol in automaton.drawable[state].nonzero()[0]]
        word.append(allowed[(place * place + 1) % len(allowed)])
        state = int(automaton.delta[state, word[-1]])
    return {task.format_word(word): task.format_labels(word)}


def describe_algebra(
    task: Task, algebra: Algebra | None, models: Mapping[str, Settings]
) -> dict[str, Any]:
    """A task's algebra, which words identify its machine, and the predictions for models.

    As plain values; null where the task has no algebra. `models` are the settings of every model,
    by the text that is the key of its prediction. A prediction has the number of its witness among
    all different ones, counted from 0.
    """
    if algebra is None:
        return {"algebra": None, "identification": None, "predictions": None, "witnesses": None}
    found = {name: predict(algebra, settings) for name, settings in models.items()}
    witnesses = list(dict.fromkeys(shown for each in found.values() for shown in each.witnesses))
    automaton = algebra.machine.whole

    def numbered(each: Prediction) -> dict[str, Any]:
        described = each.to_json()
        described["witness"] = witnesses.index(each.witness) if each.witness else None
        if (longer := each.generalises) is not None:
            number = witnesses.index(longer.witness) if longer.witness else None
            described["generalises"]["witness"] = number
        return described

    return {
        "algebra": algebra.to_json(),
        "identification": _describe_identification(WordSpec.of(task), algebra),
        "predictions": {name: numbered(each) for name, each in found.items()},
        "witnesses": [each.to_json(automaton.symbols, automaton.states) for each in witnesses],
    }


def _describe_identification(words: WordSpec, algebra: Algebra) -> dict[str, Any]:
    found, automaton = identification_by(words, algebra.machine), algebra.machine.automaton
    replaced = None
    if found.replaced is not None:
        state, symbol, target = found.replaced
        replaced = {
            "state": automaton.states[state],
            "symbol": automaton.symbols[symbol],
            "target": automaton.states[target],
        }
    return {
        "needed": found.needed,
        "enough": found.enough,
        "identified": found.by_words_up_to(words.lengths.longest),
        "replaced": replaced,
    }


def rows_of_kinds() -> Iterator[Row]:
    """A row for every kind of automaton or sampler."""
    for name in KINDS:
        yield {
            "name": name,
            "arguments": [argument.name for argument in arguments_of(name)],
            "summary": (inspect.getdoc(KINDS[name]) or "").partition("\n")[0],
        }


def describe_kind(name: str) -> dict[str, Any]:
    """All facts about a kind, as plain values: the output of `show --json`.

    The example is the automaton of the task that says least. Raises `UnknownNameError` for a kind
    that does not exist.
    """
    documentation = inspect.getdoc(KINDS[name]) or ""
    used = dict(_tasks_of(name))
    described = [spec for spec in used.values() if spec["kind"] == name]
    return {
        "name": name,
        "type": "kind",
        "summary": documentation.partition("\n")[0],
        "description": documentation,
        "arguments": [
            {
                "name": each.name,
                "help": each.help,
                "required": each.required,
                "default": _plain(each.default),
            }
            for each in arguments_of(name)
        ],
        "example": min(described, key=lambda spec: len(str(spec)), default=None),
        "tasks": list(used),
    }


def _tasks_of(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The shipped tasks whose automaton, or a part of it, is of a kind; and that automaton."""
    for task_name, task in list_tasks():
        if isinstance(task, StatetrackError):
            continue
        automaton = dict(task.spec.automaton)
        if name in _kinds_in(automaton):
            yield task_name, automaton


def _kinds_in(description: Any) -> Iterator[str]:
    if isinstance(description, dict):
        if isinstance(kind := description.get("kind"), str):
            yield kind
        description = list(description.values())
    if isinstance(description, list | tuple):
        for each in description:
            yield from _kinds_in(each)


def _plain(value: Any) -> Any:
    """A default as JSON has it; what JSON has not, as text."""
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)
