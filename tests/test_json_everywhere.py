"""Every command prints its facts as JSON, alone on standard output, in a documented shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli.app import find_commands, run
from tests.test_docs import documented, keys_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("json")


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert run(line.split()) == 0, line
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", find_commands())
def test_every_command_has_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([command, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_training_prints_the_run_and_its_summary(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    found = printed("train --model diagonal-real --task parity --steps 4 --out run --json", capsys)
    assert set(found) == documented("train --json")
    assert (found["run"], found["model"], found["task"]) == ("run", "diagonal-real", "parity")
    assert found["summary"] == json.loads(Path("run/summary.json").read_text(encoding="utf-8"))


def test_gen_prints_the_files_and_the_card(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = "--samples 9 --validation-samples 3 --test-samples 3 --test-length 20 --format jsonl"
    found = printed(f"gen parity s3 {words} --out words --json", capsys)
    assert set(found) == documented("gen --json")
    parity, s3 = found["datasets"]
    assert (parity["folder"], s3["card"]["task"]) == ("words/parity", "s3")
    assert parity["card"] == json.loads(Path("words/parity/card.json").read_text(encoding="utf-8"))
    for each in parity["files"]:
        assert (Path("words/parity") / each["name"]).stat().st_size == each["bytes"]
    (machine,) = printed("gen s3 --format dot --out s3.dot --json", capsys)["machines"]
    size = Path("s3.dot").stat().st_size
    assert machine == {"task": "s3", "file": "s3.dot", "bytes": size, "states": 6, "symbols": 6}


def test_cite_prints_entries_and_what_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed("cite lstm --json", capsys)
    assert set(found) == documented("cite --json")
    assert keys_of(found["entries"]) == {"id", "title", "year", "bibtex"}
    first = found["entries"][0]
    assert first["id"].startswith("doi:") and first["bibtex"].startswith("@")
    assert run(["cite", "lstm"]) == 0
    assert first["bibtex"] in capsys.readouterr().out
    (own,) = printed("cite --json", capsys)["entries"]
    assert own["id"] is None and "@software" in own["bibtex"]


def test_a_sweep_prints_its_report(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    sweep = "sweep --model diagonal-real --task parity --steps 4 --length 20 --samples 10 --jobs 1"
    found = printed(f"{sweep} --out swept --json", capsys)
    assert set(found) == documented("report as JSON")
    (entry,) = found["entries"]
    assert (entry["state"], entry["rows"][0]["length"]) == ("finished", 20)
    assert printed(f"{sweep} --out swept --finished --json", capsys)["entries"] == [entry]
    (again,) = printed("report swept --json", capsys)["entries"]
    assert again["rows"] == entry["rows"]
    assert run(["report", "swept", "--json", "--format", "csv"]) == 1
    assert "--json: prints JSON: leave it out, or --format csv" in capsys.readouterr().err


def test_where_there_is_an_error_nothing_is_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for line in ("train --task parityy --json", "gen parityy --json", "cite lstmm --json"):
        assert run(line.split()) != 0
        told = capsys.readouterr()
        assert not told.out and told.err.count("\n") == 1
