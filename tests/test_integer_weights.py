"""Weights that are integers: an own program follows every state that they lead to, in integers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import statetrack as st
from statetrack.errors import BuildError
from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.spec import load_task
from tests.pages import on_the_page

QUICK = ["parity", "modular-addition:m=3", "modular-addition:m=4", "quaternion", "dihedral"]
SLOW = [
    "modular-addition:m=2",
    "modular-addition:m=5",
    "modular-addition:m=6",
    "modular-addition:m=25",
    "s3",
    "s4",
    "a5",
    "s5",
    "permutation-reset",
    "random-fsm",
    "random-fsm:states=10",
    "tcp.dot:missing=stay",
]
TASKS = [*QUICK, *(pytest.param(task, marks=pytest.mark.slow) for task in SLOW)]
MODELS = ["bilinear", "bilinear-block", "bilinear-cp"]


def whole(numbers: Any) -> Any:
    """Floating-point numbers in lists and dictionaries as integers."""
    if isinstance(numbers, dict):
        return {name: whole(each) for name, each in numbers.items()}
    if isinstance(numbers, list):
        return [whole(each) for each in numbers]
    assert numbers == int(numbers)
    return int(numbers)


def times(matrix: list[list[int]], vector: list[int]) -> list[int]:
    return [sum(one * other for one, other in zip(row, vector, strict=True)) for row in matrix]


def matrices_of(weights: dict[str, Any]) -> list[list[list[int]]]:
    """A(x) for every symbol: of blocks, of terms, or as they are."""
    if "gains" in weights:
        left, right = weights["left"], weights["right"]
        return [
            [
                [
                    sum(a * g * b for a, g, b in zip(row, gains, other, strict=True))
                    for other in right
                ]
                for row in left
            ]
            for gains in weights["gains"]
        ]
    if not isinstance(weights["weight"][0][0][0], list):
        return weights["weight"]  # type: ignore[no-any-return]
    found = []
    for blocks in weights["weight"]:
        width = sum(map(len, blocks))
        matrix, begin = [], 0
        for block in blocks:
            matrix += [[0] * begin + row + [0] * (width - begin - len(row)) for row in block]
            begin += len(block)
        found.append(matrix)
    return found


def orbit(weights: dict[str, Any], delta: Any, output: Any, start: int) -> int:
    """The number of pairs of a state and a vector that words lead to; every answer is right."""
    matrices = matrices_of(weights)
    reached = {(start, tuple(weights["first"]))}
    frontier = list(reached)
    while frontier:
        state, vector = frontier.pop()
        for symbol, target in enumerate(delta[state]):
            after = times(matrices[symbol], list(vector))
            logits = times(weights["readout.weight"], after)
            assert all(
                logits[output[target]] > logit
                for label, logit in enumerate(logits)
                if label != output[target]
            )
            pair = (target, tuple(after))
            if pair not in reached:
                assert len(reached) < 1_000, "the orbit does not close"
                reached.add(pair)
                frontier.append(pair)
    return len(reached)


@pytest.mark.parametrize("task", TASKS)
def test_integers_track_for_all_lengths(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tcp.dot").write_text(on_the_page("tcp.dot", "exact-weights.md"), encoding="utf-8")
    loaded = load_task(task)
    automaton, file = loaded.automaton, tmp_path / "weights.json"
    for model in MODELS:
        built = st.build(loaded, model, integers=True)
        state = {name: values.tolist() for name, values in built.model.state_dict().items()}
        file.write_text(json.dumps(state), encoding="utf-8")
        pairs = orbit(
            whole(json.loads(file.read_text(encoding="utf-8"))),
            automaton.delta.tolist(),
            automaton.output.tolist(),
            automaton.start,
        )
        assert pairs == automaton.num_states
        proof = Certificate.search(Subject(built.model, loaded), budget=SearchBudget(60.0))
        assert (proof.verdict, proof.verdict_real) == ("all lengths", "all lengths")


def test_sizes_that_are_too_small_for_integers_are_refused() -> None:
    with pytest.raises(BuildError, match="too small for integers: 4 is enough"):
        st.build("modular-addition:m=5", "bilinear", integers=True, hidden=3)


def test_models_without_matrices_have_no_integers() -> None:
    with pytest.raises(BuildError, match="integers are known for linear models"):
        st.build("flip-flop-cascade", "lstm", integers=True)
