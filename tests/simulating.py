"""Replaying witness words by AALpy's simulator, which shares no code with this package.

`python -m tests.simulating FOLDER` does it for every machine file of a folder: it analyses the
machine, makes the prediction of every registered class of recurrence, and replays the words of
every *cannot*. It stops with exit code 1 where one is not confirmed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from pathlib import Path

from aalpy.automata import MooreMachine, MooreState

from statetrack.algebra import Algebra, Prediction, Recurrence, analyse, replay_on
from statetrack.errors import StatetrackError
from statetrack.models import MODELS, recurrence_of
from statetrack.sources import Automaton, format_of
from statetrack.spec import load_task
from tests.claims.cells import variants


class Simulated:
    """An automaton as AALpy's Moore machine, whose simulator takes every step.

    Symbols that are never drawn in a state have no transition there, and a state whose label is not
    asked for puts out None.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.num_symbols = automaton.num_symbols
        self.start = automaton.start
        self._states = [
            MooreState(str(number), int(label) if asked else None)
            for number, (label, asked) in enumerate(
                zip(automaton.output, automaton.scored, strict=True)
            )
        ]
        for state, targets, drawn in zip(
            self._states, automaton.delta.tolist(), automaton.drawable, strict=True
        ):
            state.transitions = {
                symbol: self._states[target]
                for symbol, target in enumerate(targets)
                if drawn[symbol]
            }
        self._machine = MooreMachine(self._states[self.start], self._states)

    def step(self, state: int, symbol: int) -> int | None:
        """One symbol, by `execute_sequence`."""
        if symbol not in self._states[state].transitions:
            return None
        outputs = self._machine.execute_sequence(self._states[state], [symbol])
        reached = self._machine.current_state
        assert outputs == [reached.output]
        return int(reached.state_id)

    def label(self, state: int) -> Hashable | None:
        """What the simulator puts out."""
        label: Hashable | None = self._states[state].output
        return label


def recurrences() -> dict[str, Recurrence]:
    """All different classes of recurrence of the models, also with one layer, by a model's name."""
    found: dict[str, Recurrence] = {}
    for variant in variants():
        settings = MODELS[variant.model].settings_class
        for layers in ({}, {"layers": 1}) if "layers" in settings.model_fields else ({},):
            try:
                each = recurrence_of(settings(**dict(variant.options), **layers))
            except StatetrackError:
                continue  # a choice that needs more layers
            if isinstance(each, Recurrence) and each not in found.values():
                found[variant.name + " --layers 1" * bool(layers)] = each
    return found


def refused(algebra: Algebra, among: dict[str, Recurrence]) -> Iterator[tuple[str, Prediction]]:
    """The predictions that say that a class of models cannot track a task."""
    for name, recurrence in among.items():
        prediction = recurrence.predict(algebra)
        if prediction.can == "no":
            yield name, prediction


def main() -> None:
    """Replay all witnesses of the machines of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    files = sorted(each for each in folder.rglob("*") if format_of(each.name))
    among, counted = recurrences(), Counter[str]()
    for file in files:
        begin = time.perf_counter()
        automaton = load_task(str(file)).automaton
        steps, algebra = Simulated(automaton), analyse(automaton)
        answers = Counter[str]()
        replayed = {}
        for name, prediction in refused(algebra, among):
            witness = prediction.witness
            if witness is None:
                answers["without words"] += 1
                by_size = "cannot be read" in prediction.theorem
                counted["by the longest word" if by_size else "without words"] += 1
                continue
            if witness not in replayed:
                replayed[witness] = replay_on(witness, steps)
                counted["witnesses"] += 1
            answers["cannot"] += 1
            if not replayed[witness].confirmed:
                counted["refuted"] += 1
                print(f"  {name}: {replayed[witness].says}: {witness}")
        counted["cannot"] += answers["cannot"]
        longest = max((len(word) for witness in replayed for word in witness.words), default=0)
        seconds = time.perf_counter() - begin
        print(
            f"{file.name}: {automaton.num_states} states, {answers['cannot']} cannot, "
            f"{len(replayed)} witnesses, longest word {longest}, {seconds:.1f} s",
            flush=True,
        )
    print(f"{len(files)} files: " + ", ".join(f"{n} {what}" for what, n in counted.items()))
    sys.exit(bool(counted["refuted"] or counted["without words"]))


if __name__ == "__main__":
    main()
