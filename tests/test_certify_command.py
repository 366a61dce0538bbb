"""`certify`: the length that is proven and the first word that fails, of a run and of any model."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import statetrack as st
from statetrack.cli.app import run as command
from statetrack.errors import SettingsError
from statetrack.evidence import (
    Bracket,
    Certificate,
    ContradictionError,
    Exhaustive,
    Failure,
    WorstCase,
    kinds_of,
    word_text,
)
from statetrack.evidence.kinds.certificate import not_proven
from statetrack.report import bracket_lines
from statetrack.runs import Run
from tests.computing import Computes, with_wrong_transition
from tests.setups import certificate_of, exhaustive_of, parity_run, worst_case_of
from tests.test_docs import documented

S3 = st.load_task("s3").automaton
BINARY = ("0", "1")
KINDS = [kind.kind for kind in kinds_of("certify")]


# --- the bracket ---


def test_the_bracket_is_between_the_longest_proof_and_the_shortest_failure() -> None:
    bracket = Bracket.of([exhaustive_of(), certificate_of(3)])
    assert (bracket.verdict, bracket.proven, bracket.proven_by) == ("to length", 5, "exhaustive")
    assert bracket.failure is not None and bracket.failure.position == 6
    assert bracket.contradiction is None
    assert bracket_lines(bracket, BINARY, BINARY) == [
        "proven: every word of up to 5 symbols is answered rightly (exhaustive)",
        "fails: symbol 6 of 0 1 0 0 1 1: the answer is 0, and 1 is right",
        "the longest length at which every word is right is 5",
    ]


@pytest.mark.parametrize("proof", [certificate_of(6), certificate_of(None)])
def test_a_word_that_fails_within_the_proven_length_is_an_error_of_the_program(
    proof: Certificate,
) -> None:
    bracket = Bracket.of([exhaustive_of(), proof])
    with pytest.raises(ContradictionError, match=r"'certificate' proves .* symbol 6 of a word"):
        bracket.require_consistent()
    Bracket.of([exhaustive_of(), certificate_of(5)]).require_consistent()


def test_the_worst_word_found_ends_the_bracket_and_contradicts_what_is_proven() -> None:
    fails = worst_case_of(Failure((), (1, 0), 31, 1, 0))
    right = exhaustive_of(failure=None, reason="time")
    bracket = Bracket.of([right, fails])
    assert (bracket.proven, bracket.failure) == (5, fails.failure)
    assert bracket_lines(bracket, BINARY, BINARY)[2] == (
        "the longest length at which every word is right lies between 5 and 30"
    )
    with pytest.raises(ContradictionError, match=r"up to 31 symbols .* symbol 31 of a word"):
        Bracket.of([right, fails, certificate_of(31)]).require_consistent()


def test_a_random_word_that_fails_counts_too() -> None:
    bracket = Bracket.of([exhaustive_of(failure=None, reason="time")], wrong_at=9)
    assert (bracket.fails_at, bracket.failure, bracket.right_to) == (9, None, 8)
    assert bracket_lines(bracket, BINARY, BINARY)[1:] == [
        "fails: symbol 9 of a random word (`eval --errors` shows some)",
        "the longest length at which every word is right lies between 5 and 8",
    ]
    with pytest.raises(ContradictionError, match=r"up to 9 symbols .* symbol 9 of a word"):
        Bracket.of([certificate_of(9)], wrong_at=9).require_consistent()
    sooner = Bracket.of([exhaustive_of()], wrong_at=9)
    assert (sooner.fails_at, sooner.right_to) == (6, 5)


def test_whether_a_word_was_tried_is_said_where_none_fails() -> None:
    tried, none = "fails: none of the words that were tried", "fails: no word was tried"
    assert bracket_lines(Bracket.of([worst_case_of(), not_proven("")]), BINARY, BINARY)[1] == tried
    assert bracket_lines(Bracket.of([not_proven("no method")]), BINARY, BINARY)[1] == none
    unread = exhaustive_of(length=0, words=0, failure=None, reason="time")
    assert bracket_lines(Bracket.of([unread]), BINARY, BINARY)[1] == none


def test_a_closed_orbit_within_a_tolerance_proves_nothing() -> None:
    closed = {"closed": True, "failure": None, "reason": "closed"}
    assert Bracket.of([exhaustive_of(**closed)]).verdict == "all lengths"
    assert Bracket.of([exhaustive_of(**closed, tolerance=1e-6)]).verdict == "not proven"
    assert Bracket.of([not_proven("no method")]).proven == 0


def test_without_evidence_nothing_is_proven_and_nothing_fails() -> None:
    bracket = Bracket()
    assert (bracket.verdict, bracket.proven, bracket.proven_by) == ("not proven", 0, None)
    assert bracket.failure is None and bracket.evidence == ()


def test_long_words_are_shown_by_their_period_and_shortened() -> None:
    assert word_text(Failure((), (0, 1, 0), 1702, 1, 0), BINARY) == "0 1 0 again and again"
    assert word_text(Failure((1, 1), (0,), 90, 1, 0), BINARY) == "1 1, then 0 again and again"
    assert word_text(Failure((1, 1), (0, 1), 3, 1, 0), BINARY) == "1 1 0"
    assert word_text(Failure((1, 1, 0), (), 2, 1, 0), BINARY) == "1 1"
    ended = Failure((1,), (0,), 90, 1, 0, (1, 1))
    assert word_text(ended, BINARY) == "1, then 0 for 87 symbols, then 1 1"
    many = word_text(Failure((1,) * 10**6, (), 10**6, 1, 0), BINARY)
    assert many.endswith("1 ... (1,000,000 symbols)") and len(many) < 100


def test_a_long_word_is_shown_whole_as_powers_where_it_has_some() -> None:
    word = (1, *(0,) * 120, 1, 1, *(0, 1, 1) * 40, 0, 0)
    shown = word_text(Failure(word, (), len(word), 1, 0), BINARY)
    assert shown == "1 0^120 (1 1 0)^41 0"
    irregular = tuple(np.random.default_rng(0).integers(2, size=900).tolist())
    assert word_text(Failure(irregular, (), 900, 1, 0), BINARY).endswith("(900 symbols)")


# --- any model ---


def test_a_model_that_computes_the_automaton_is_proven_for_all_lengths() -> None:
    bracket = st.certify(Computes(S3), "s3", seconds=0.5)
    assert (bracket.verdict, bracket.proven, bracket.failure) == ("all lengths", None, None)


def test_a_wrong_transition_is_found_and_everything_shorter_is_proven() -> None:
    state = int(S3.delta[S3.delta[S3.start, 1], 2])
    right = int(S3.delta[state, 3])
    wrong = next(to for to in range(S3.num_states) if S3.output[to] != S3.output[right])
    model = Computes(with_wrong_transition(S3, state, 3, wrong))
    bracket = st.certify(model, "s3", seconds=20)
    assert bracket.failure is not None and bracket.proven == bracket.failure.position - 1
    word = np.array([bracket.failure.word])
    assert S3.read(word)[0][0, -1] == bracket.failure.label != bracket.failure.answer


def test_what_a_model_does_not_allow_is_skipped_with_the_reason() -> None:
    bracket = st.certify(st.make_model("transformer", "parity"), "parity", seconds=0.5)
    assert dict(bracket.skipped)["exhaustive"].startswith("reading every word needs a model that")


def test_a_task_without_an_automaton_is_refused() -> None:
    name = next(name for name in st.TASKS if not st.TASKS[name].has_automaton)
    with pytest.raises(SettingsError, match=rf"^task '{name}' is .* no automaton says"):
        st.certify(Computes(S3), name)


# --- runs ---


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on parity whose replica 1 is wrong."""
    return parity_run(tmp_path_factory.mktemp("runs") / "exact")


@pytest.fixture
def runs(exact: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(exact, tmp_path / "exact")


def test_certify_prints_both_ends_and_keeps_the_rows(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["certify", str(runs), "--all", "--seconds", "0.5"]) == 0
    printed = capsys.readouterr()
    assert "warning" not in printed.err
    right, wrong = printed.out.split("\n\n")[:2]
    assert "proven: every word of every length is answered rightly (" in right
    assert "fails: " not in right
    assert "proven: every word of up to 1 symbol is answered" in wrong
    assert "fails: symbol 2 of 1 0: the answer is 0, and 1 is right" in wrong
    kinds = [(row.replica, row.kind) for row in Run.open(runs).evidence()]
    assert kinds == [(n, kind) for n in (0, 1) for kind in KINDS]


def test_certify_prints_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["certify", str(runs), "--replica", "1", "--seconds", "20", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (row,) = printed["replicas"]
    assert (row["replica"], row["verdict"], row["proven"]) == (1, "to length", 1)
    assert row["failure"] == {
        "position": 2,
        "prefix": ["1", "0"],
        "period": [],
        "suffix": [],
        "label": "1",
        "answer": "0",
    }
    assert set(row["failure"]) == documented("A failure in certify --json")
    assert list(row["evidence"]) == KINDS


def test_a_contradiction_is_an_internal_error_and_its_rows_are_kept(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(subject: object, **_: object) -> WorstCase:
        raise SettingsError("no words")

    searches = {
        Exhaustive: lambda subject, **_: exhaustive_of(),
        WorstCase: refuses,
        Certificate: lambda subject, **_: certificate_of(None),
    }
    for kind, search in searches.items():
        monkeypatch.setattr(kind, "search", staticmethod(search))
    assert command(["certify", str(runs)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert re.match(r"error: this is an internal error of statetrack: Contradiction", said.err)
    assert len(Run.open(runs).evidence()) == 2


def test_certify_reads_another_task_with_the_same_names(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["certify", str(runs), "--task", "s3", "--seconds", "1"]) == 1
    assert "task 's3' has other symbols than 'parity'" in capsys.readouterr().err
