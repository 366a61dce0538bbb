"""Failing test words: those of evaluation, and what stands around their first wrong answer."""

from __future__ import annotations

import io

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn

from statetrack import evaluation
from statetrack.data import stream_words, whole_words
from statetrack.evaluation import evaluate
from statetrack.evidence import Subject, Window, failing_words, find_failing_words, window_of
from statetrack.evidence.failing_words import AFTER, BEFORE
from statetrack.report import window_table
from statetrack.spec import load_task
from tests.computing import Computes, with_wrong_transition

WORDS, LENGTH = 60, 45


class Whole(nn.Module):
    """A module without a state."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, symbols):
        return self.inner(symbols)


class SaysZero(nn.Module):
    """Always gives the first label."""

    def __init__(self, num_labels):
        super().__init__()
        self.num_labels = num_labels

    def forward(self, symbols):
        logits = torch.zeros(*symbols.shape, self.num_labels)
        logits[..., 0] = 1.0
        return logits


@pytest.mark.parametrize("chunk", [1, 7 * WORDS, 1 << 16])
@pytest.mark.parametrize("kind", [nn.Identity, Whole])
def test_failing_words_are_those_of_evaluation_wherever_pieces_end(monkeypatch, chunk, kind):
    monkeypatch.setattr(evaluation, "CHUNK", chunk)
    monkeypatch.setattr(failing_words, "CHUNK", chunk)
    source = load_task("s3").source
    model = Computes(with_wrong_transition(source.automaton, 3, 1, 0))
    model = kind(model) if kind is Whole else model
    found = find_failing_words(model, source, LENGTH, num_words=WORDS, seed=4, most=7)
    (words,) = stream_words(source, WORDS, LENGTH, 4, WORDS * LENGTH)
    subject = Subject(model, source)
    positions = subject.first_errors(words.symbols)
    answers = subject.answers(words.symbols)
    (score,) = evaluate(model, source, [LENGTH], num_words=WORDS, seed=4)
    assert found.failing == (positions > 0).sum() == round(WORDS * (1 - score.prefix_accuracy))
    ordered = sorted((position, word) for word, position in enumerate(positions) if position)
    assert [(each.position, each.word) for each in found.shown] == ordered[:7]
    assert found.shown[0].position == score.first_error
    for each in found.shown:
        part = slice(max(0, each.position - 1 - BEFORE), each.position + AFTER)
        assert each.begin == part.start + 1
        assert list(each.symbols) == words.symbols[each.word, part].tolist()
        assert list(each.labels) == words.labels[each.word, part].tolist()
        assert list(each.answers) == answers[each.word, part].tolist()
        assert each.label != each.answer


def test_words_that_are_drawn_whole_can_fail_too():
    source = load_task("boolean-3").source
    assert not source.prefixes_are_words
    model = SaysZero(source.num_labels)
    found = find_failing_words(model, source, 21, num_words=40, seed=0, most=40)
    (words,) = whole_words(source, 40, 21, 0)
    wrong = (words.labels != 0) & words.scored
    assert found.failing == wrong.any(1).sum() == len(found.shown)
    for each in found.shown:
        assert each.position == wrong[each.word].argmax() + 1


def test_labels_that_are_not_asked_for_are_left_out_of_a_window():
    source = load_task("flip-flop").source
    model = SaysZero(source.num_labels)
    found = find_failing_words(model, source, 60, num_words=30, seed=0, most=3)
    (words,) = stream_words(source, 30, 60, 0, 30 * 60)
    for each in found.shown:
        part = slice(each.begin - 1, each.begin - 1 + len(each.symbols))
        asked = [label is not None for label in each.labels]
        assert asked == words.scored[each.word, part].tolist()
        assert (each.label, each.answer) == (1, 0)


def test_a_right_model_has_no_failing_words():
    source = load_task("s3").source
    found = find_failing_words(
        Computes(source.automaton), source, LENGTH, num_words=WORDS, seed=0, most=5
    )
    assert found.failing == 0 and found.shown == ()


def test_the_window_of_a_word_shows_its_answers():
    automaton = load_task("s3").source.automaton
    subject = Subject(Computes(with_wrong_transition(automaton, 3, 1, 0)), automaton)
    word = np.array([3, 1] + [0] * 30)
    window = window_of(subject, word, 2)
    assert window.begin == 1 and window.symbols == tuple(word[: 2 + AFTER].tolist())
    assert window.answer == 0 and window.label == automaton.labels_of(word)[1]


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("place", [0, 8, 16])
def test_a_table_shows_as_many_positions_as_fit_and_the_wrong_one_among_them(width, place):
    names = tuple(f"state-{number:02}" for number in range(17))
    labels = tuple(range(17))
    window = Window(0, 1001 + place, 1001, labels, labels, labels)
    to = Console(width=width, file=io.StringIO(), legacy_windows=False)
    to.print(window_table(window, names, names, width))
    lines = to.file.getvalue().splitlines()
    assert len(lines) == 4 and not any("…" in line for line in lines)
    positions = lines[0].split()[1:]
    assert f"{1001 + place:,}" in positions
    assert len(positions) == min(17, (width - 12) // 10)
