"""What the writers of all formats share: the machine that a file holds."""

from __future__ import annotations

import numpy as np

from statetrack.sources.automaton import Automaton
from statetrack.sources.minimising import minimise

UNASKED = "-"
"""The label of states in which a task asks for none, unless a label is called so."""


def machine_to_write(automaton: Automaton) -> Automaton:
    """The smallest machine with the labels of an automaton, states numbered from the start.

    States are in the order in which words reach them, the shorter and then the earlier in the order
    of symbols first. How likely symbols are drawn is left out, and so are labels that no state has;
    where a task asks for no label, there is one, for a file can not leave it open.
    """
    labels = list(automaton.labels)
    output = automaton.output
    if not automaton.all_scored:
        unasked = UNASKED
        while unasked in labels:
            unasked += UNASKED
        output = np.where(automaton.scored, output, len(labels))
        labels.append(unasked)
    smallest = minimise(
        Automaton(
            automaton.delta,
            output,
            start=automaton.start,
            symbols=automaton.symbols,
            states=automaton.states,
            labels=labels,
        )
    )
    delta = smallest.delta.tolist()
    order = {smallest.start: 0}
    for state in (waiting := [smallest.start]):
        for target in delta[state]:
            if target not in order:
                order[target] = len(order)
                waiting.append(target)
    used = np.unique(smallest.output).tolist()
    place = {label: new for new, label in enumerate(used)}
    return Automaton(
        [[order[target] for target in delta[state]] for state in waiting],
        [place[label] for label in smallest.output[waiting].tolist()],
        symbols=smallest.symbols,
        states=[smallest.states[state] for state in waiting],
        labels=[smallest.labels[label] for label in used],
    )


def what_is_left_out(automaton: Automaton) -> list[str]:
    """What a task says that no machine file does, each as a sentence."""
    left_out = []
    if not automaton.uniform_weights:
        left_out.append("how likely each symbol is drawn, which a file of a machine does not hold")
    if not automaton.all_scored:
        left_out.append(
            "that no label is asked for in some states: the file gives these a label of their own"
        )
    return left_out


def first_label(automaton: Automaton) -> str | None:
    """The label of the start, where transitions that say the labels would leave it open.

    It is open where nothing enters the start, or where another state goes on like it.
    """
    delta, start = automaton.delta, automaton.start
    alike = int((delta == delta[start]).all(axis=1).sum()) > 1
    if alike or not (delta == start).any():
        return automaton.labels[int(automaton.output[start])]
    return None


def steps(automaton: Automaton) -> list[tuple[int, int, int]]:
    """The transitions, as state, symbol and target, state by state."""
    return [
        (state, symbol, target)
        for state, row in enumerate(automaton.delta.tolist())
        for symbol, target in enumerate(row)
    ]
