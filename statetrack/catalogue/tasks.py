"""Tasks as rows: their symbols, labels, states, lengths and examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from statetrack.algebra import merging_in
from statetrack.data import stream_words
from statetrack.errors import StatetrackError, UnknownNameError, nearest
from statetrack.models import MODELS
from statetrack.spec import (
    TASKS,
    Task,
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
        hint = group_meant(name) or nearest(name, [*TASKS, *MODELS])
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
