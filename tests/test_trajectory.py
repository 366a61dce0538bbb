"""States along a word again and again, on recurrences whose states are known."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from statetrack.algebra import needed_machine
from statetrack.errors import SettingsError
from statetrack.evidence import SearchBudget, Subject, Trajectory, find_trajectory
from statetrack.evidence.words import follow, shortest_words
from statetrack.models import make_model
from statetrack.pictures import draw_evidence
from tests.test_error_control import TASK, rotating


class Gains(nn.Module):
    """Two numbers with a gain each for symbol 1: h_t = a h_{t-1}; logits are h_t and its turn."""

    def __init__(self, *gains: float) -> None:
        super().__init__()
        self.gains = nn.Parameter(torch.tensor([[1.0, 1.0], gains], dtype=torch.float64))

    def initial_state(self, num_words: int) -> Tensor:
        return torch.ones(num_words, 2, dtype=torch.float64)

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.gains[symbols] * state
        return torch.stack([state[:, 0], -state[:, 0]], 1), state


def found(model: nn.Module, task: str, **given: object) -> Trajectory:
    budget = SearchBudget(given.pop("seconds", 60.0))  # type: ignore[arg-type]
    return find_trajectory(Subject(model, task), budget=budget, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("gains", [(0.9, 0.5), (-1.0, -0.5), (1.0, 0.2)])
def test_distances_are_those_of_the_powers_of_gains(gains: tuple[float, float]) -> None:
    told = found(Gains(*gains), "parity", times=(1, 3, 50))
    zero, one = told.words
    assert (zero.word, one.word, zero.states, one.states) == ((0,), (1,), 2, 2)
    at_start = [np.ones(2), np.array(gains)]  # of words without a 1, and with one
    for along, gain in ((zero, np.ones(2)), (one, np.array(gains))):
        assert [often for often, _ in along.apart] == [1, 3, 50]
        for often, apart in along.apart:
            first, second = (gain**often * start for start in at_start)
            longest = max(np.linalg.norm(first), np.linalg.norm(second))
            assert apart == pytest.approx(np.linalg.norm(first - second) / longest, rel=1e-9)


def test_states_that_alternate_stay_apart_and_those_of_positive_gains_converge() -> None:
    negative, positive = found(Gains(-1.0, -1.0), "parity"), found(Gains(0.9, 0.5), "parity")
    assert [apart for _, apart in negative.words[1].apart] == [2.0] * 4
    assert negative.words[1].first_error is None
    apart = [apart for _, apart in positive.words[1].apart]
    assert apart[0] > 0.25 and apart[2:] == pytest.approx([0.1, 0.1])  # as 1 - 0.9
    assert positive.words[1].first_error == 1  # after `1`, and 0 is the answer


def test_the_states_of_a_plane_that_turns_are_a_side_of_the_polygon_apart() -> None:
    told = found(rotating(), TASK)
    assert [each.states for each in told.words] == [5] * 5 and told.complete
    for each in told.words:
        assert [apart for _, apart in each.apart] == pytest.approx([2 * math.sin(math.pi / 5)] * 4)
        assert each.first_error is None


@pytest.mark.parametrize(
    ("model", "task"),
    [
        ("lstm", "s3"),
        ("mamba", "flip-flop"),
        ("deltanet", "gated-parity"),
        ("bilinear", "dihedral"),
    ],
)
def test_what_is_told_is_that_of_words_read_alone(model: str, task: str) -> None:
    subject = Subject(make_model(model, task).double(), task)
    told = found(subject.model, task, times=(1, 12))
    machine = needed_machine(subject.automaton)
    automaton, shortest = machine.automaton, shortest_words(machine.automaton)
    for each in told.words:
        kept = [s for s in shortest if returns(machine.delta, s, each.word) and machine.live[s]]
        assert len(kept) == each.states >= each.followed > 1
        rows, errors = [], []
        for state in sorted(kept)[: each.followed]:
            word = [*shortest[state], *each.word * 12]
            logits, last = subject.scan(np.array([word]), subject.first(1))
            rows.append(subject.compared(subject.vectors(last))[0])
            for end in range(len(shortest[state]) + 1, len(word) + 1):
                reached, drawn = follow(automaton, tuple(word[:end]))
                assert drawn
                answer = int(logits[0, end - 1].argmax())
                if automaton.scored[reached] and answer != automaton.output[reached]:
                    errors.append(end - len(shortest[state]))
        pairs = itertools.combinations(rows, 2)
        least = min(np.linalg.norm(first - second) for first, second in pairs)
        longest = max(np.linalg.norm(row) for row in rows)
        assert dict(each.apart)[12] == pytest.approx(least / longest, rel=1e-6)
        assert each.first_error == min(errors, default=None)


def returns(delta: np.ndarray, state: int, word: tuple[int, ...]) -> bool:
    """Whether a word, read often enough, leads from a state back to it."""
    reached = state
    for _ in range(len(delta)):
        for symbol in word:
            reached = int(delta[reached, symbol])
        if reached == state:
            return True
    return False


def test_a_word_of_two_symbols_is_repeated_where_no_symbol_keeps_states_apart() -> None:
    told = found(make_model("gru", "flip-flop"), "flip-flop")
    names = Subject(make_model("gru", "flip-flop"), "flip-flop").automaton.symbols
    words = {" ".join(names[symbol] for symbol in each.word) for each in told.words}
    assert words == {"i 0", "i 1", "0 i", "1 i"}


def test_of_many_states_some_are_followed() -> None:
    told = found(make_model("bilinear-rotation", "z60"), "z60", times=(1, 2))
    assert {(each.states, each.followed) for each in told.words} == {(60, 8)}


@pytest.mark.filterwarnings("error")
def test_states_that_are_no_longer_finite_are_not_compared() -> None:
    """Of 1e100^t in float64, t = 1 and 2 have squares that are finite, or are not; t = 4 is not."""
    told = found(Gains(1e100, -1e100), "parity", times=(1, 2, 4))
    zero, one = told.words
    assert [often for often, _ in zero.apart] == [1, 2, 4]
    assert [often for often, _ in one.apart] == [1, 2]
    assert all(apart == pytest.approx(1.0) for _, apart in one.apart)
    assert all(len(each.places) == (3 if each.word == "1" else 5) for each in told.traced)


def test_where_every_word_forgets_or_there_is_no_state_the_reason_is_one_line() -> None:
    with pytest.raises(SettingsError, match="leads all states to one"):
        found(make_model("gru", "ends-with-ab"), "ends-with-ab")
    with pytest.raises(SettingsError, match="a trajectory needs a model that reads"):
        found(make_model("looped-transformer", "parity"), "parity")


def test_a_search_without_time_says_that_it_ended() -> None:
    told = found(make_model("gru", "parity"), "parity", seconds=0.0)
    assert not told.complete and [often for often, _ in told.words[0].apart] == [1, 10]
    assert told.lines(Subject(make_model("gru", "parity"), "parity").automaton)[-1] == (
        "time ran out: not all lengths were read"
    )


def test_walks_follow_the_automaton_and_are_drawn(tmp_path: Path) -> None:
    told = found(Gains(-1.0, 0.5), "parity")
    for one in told.traced:
        turns = "01" if one.word == "1" else None
        start = one.states[0]
        expected = [start if turns is None else turns[(int(start) + t) % 2] for t in range(41)]
        assert list(one.states) == expected and len(one.places) == 41
    ones = [one for one in told.traced if one.word == "1"]
    assert np.sign(np.diff(ones[0].places)).tolist() == [
        (-1) ** t * np.sign(np.diff(ones[0].places)[0]) for t in range(40)
    ]
    (path,) = draw_evidence([told], tmp_path, ".svg", "gains")
    text = path.read_text(encoding="utf-8")
    assert path.name == "trajectory.svg" and "1 1 ..." in text and "how often the word" in text
