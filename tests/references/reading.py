"""Reading a word as the definition of an automaton says, and the automaton of a machine file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from statetrack.errors import TaskError
from statetrack.sources import Automaton, Integers, Missing, automaton_of, machine_in, placed


def run_by_steps(
    delta: Integers, emitted: Integers, words: npt.NDArray[np.integer], state: npt.ArrayLike
) -> Integers:
    """What is emitted after every symbol: `[..., T]` from words `[..., T]`."""
    states = np.broadcast_to(state, words.shape[:-1])
    result = np.empty(words.shape, np.int64)
    for time in range(words.shape[-1]):
        states = delta[states, words[..., time]]
        result[..., time] = emitted[states]
    return result


def read_machine(path: Path, missing: Missing = "sink") -> Automaton:
    """The automaton that a machine file describes, whatever its ending says of the format."""
    try:
        return automaton_of(machine_in(path), missing)
    except TaskError as wrong:
        raise wrong if str(wrong).startswith(str(path)) else placed(path, wrong) from None
