"""What `show` takes: kinds and runs too, names that stand for several things, and unknown ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli.app import run
from statetrack.evidence import Evidence
from statetrack.runs import EvidenceRow, RunFolder, files, own_settings
from statetrack.sources import KINDS
from tests.setups import exhaustive_of, worst_case_of
from tests.test_comparison import make_run, row
from tests.test_docs import documented, keys_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run with evaluations and evidence, whose training never took place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    scores = [row(500, 40), row(500, 90), row(100, 100), row(500, 20, replica=1)]
    made = make_run("one", "lstm", "s3", scores, replicas=2, hidden=16)

    def found(evidence: Evidence, replica: int) -> EvidenceRow:
        return EvidenceRow(
            replica=replica,
            seed=replica,
            lr=0.01,
            selected=not replica,
            task="s3",
            version="0.2.0",
            found="2026-01-01T00:00:00+00:00",
            weights=None,
            evidence=evidence,
        )

    made.append(files.EVIDENCE, [found(exhaustive_of(), 0), found(worst_case_of(), 1)])
    return made


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run(["show", *argv]) == 0
    return capsys.readouterr().out


def described(capsys: pytest.CaptureFixture[str], name: str) -> dict[str, Any]:
    about: dict[str, Any] = json.loads(shown(capsys, name, "--json"))
    return about


def test_a_run_is_described_with_what_differs_what_was_measured_and_how_to_repeat_it(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    text = shown(capsys, "runs/one")
    assert text.startswith("runs/one  run, finished\nlstm on s3\n")
    assert "words of lengths 2-10, a label after every symbol" in text
    assert "hidden 16" in text and "--hidden 16" in text and "layers" not in text
    assert "replica 0 (seed 0, lr 0.01): validation accuracy 1.00" in text
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "500 100 0.90 0.825-0.945 0.90 0.16 0.90" in lines and not any(
        "0.40" in x for x in lines
    )
    assert any(line.startswith("exhaustive all words of up to 5 symbols") for line in lines)
    assert "--json has 1 more, of other replicas or tasks" in lines
    assert max(map(len, text.splitlines())) <= 80


def test_the_json_of_a_run_has_the_documented_keys_and_the_last_scores(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    about = described(capsys, "runs/one")
    assert set(about) == documented("show --json of a run")
    assert about["differs"] == own_settings(folder.read(files.CONFIG))
    assert about["differs"]["hidden"] == 16 and "layers" not in about["differs"]
    scores = [(each["length"], each["replica"], each["accuracy"]) for each in about["evaluations"]]
    assert scores == [(100, 0, 1.0), (500, 0, 0.9), (500, 1, 0.2)]
    assert keys_of(about["evaluations"]) == documented("A row of eval --json")
    assert keys_of(about["evidence"]) == documented("evidence.jsonl")
    assert "config.yaml" in [each["name"] for each in about["files"]]


def test_a_run_that_has_not_finished_says_how_far_it_is(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "summary.json").unlink()
    text = shown(capsys, "runs/one")
    assert "run, unfinished" in text and "0 of 2,000" in text


@pytest.mark.parametrize("kind", ["dihedral", "regex", "transitions"])
def test_a_kind_is_described_with_arguments_an_example_and_its_tasks(kind, capsys):
    about = described(capsys, f"kind:{kind}")
    assert set(about) == documented("show --json of a kind")
    assert about["example"]["kind"] == kind and about["tasks"]
    text = shown(capsys, f"kind:{kind}")
    for each in about["arguments"]:
        assert each["name"] in text
    assert f"kind: {kind}" in text and about["tasks"][0] in text


def test_every_kind_can_be_shown(capsys):
    for kind in KINDS:
        assert described(capsys, f"kind:{kind}")["name"] == kind


def test_a_name_that_stands_for_several_things_says_so(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.path.rename("parity")
    assert run(["show", "parity"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("parity  task")
    assert "parity is also a kind: `statetrack show kind:parity`" in printed.err
    assert "parity is also a run folder: `statetrack show ./parity`" in printed.err
    assert shown(capsys, "./parity").startswith("parity  run")
    assert shown(capsys, "task:parity").startswith("parity  task")
    assert shown(capsys, "cascade").startswith("cascade  kind of automaton")
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hierarchi", "there is nothing called 'hierarchi'. Did you mean 'hierarchy'?"),
        ("dihedrl", "Did you mean 'dihedral'?"),
        ("kind:dihedrl", "there is no kind 'dihedrl'. Did you mean 'dihedral'?"),
        ("suite:s3", "there is no suite 's3'."),
        ("run:runs", "there is no run 'runs'. `statetrack list runs` shows all."),
        ("runs/none", "runs/none: there is no such file and no such run folder; `statetrack list"),
        ("runs", "runs: is no run folder (it has no config.yaml); `statetrack list runs --runs"),
    ],
)
def test_an_unknown_name_is_one_line_with_the_nearest_of_all_names(
    name: str, said: str, folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["show", name]) == 1
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_a_long_example_stands_in_parts_with_labels_below_their_symbols(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    text = shown(capsys, "product(parity,s3)")
    words = [line for line in text.splitlines() if line.startswith(("word ", "labels  ("))]
    assert len(words) > 2 and all(line.startswith("word") for line in words[::2])
    assert max(map(len, text.splitlines())) <= 60
