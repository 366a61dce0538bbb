"""Evidence in a run's folder: written and read as typed rows, of the weights it was found of."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import statetrack
from statetrack.cli.app import run as run_command
from statetrack.errors import RunError, SettingsError, StatetrackWarning
from statetrack.evidence import EVIDENCE, Evidence, Failure
from statetrack.runs import Conditions, EvidenceRow, Run, files, known_evidence
from tests.run_files import append_rows, rows_in, write_weights
from tests.setups import certificate_of, exhaustive_of, worst_case_of

SETTINGS: dict[str, Any] = {
    "model": "bilinear",
    "task": "modular-addition:m=3",
    "hidden": 4,
    "steps": 3,
    "batch_size": 4,
    "train_length": "2-4",
    "validate_every": 3,
    "validation_words": 8,
    "seeds": 2,
    "device": "cpu",
}


@dataclass(frozen=True)
class Family:
    """Part of the evidence below."""

    name: str
    first: float


@dataclass(frozen=True, kw_only=True)
class Measured(Evidence):
    """Evidence with a field of every form."""

    kind: ClassVar[str] = "measured"

    complete: bool = True
    seconds: float = 0.0
    reach: int | None
    margin: float
    failure: Failure | None = None
    families: tuple[Family, ...] = ()
    delta: tuple[tuple[int, ...], ...] = ()


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two replicas."""
    run = Run.start(**SETTINGS, out=tmp_path_factory.mktemp("runs") / "finished")
    for _ in run.train():
        pass
    return run.path


@pytest.fixture
def run(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the run, and a kind of evidence that is known."""
    monkeypatch.setitem(EVIDENCE._things, "measured", Measured)
    return Run.open(shutil.copytree(finished, tmp_path / "run"))


FOUND = Measured(
    reach=7,
    margin=0.25,
    failure=Failure((1, 0), (2, 0), 8, 1, None),
    families=(Family("ignores", 3.0),),
    delta=((0, 1), (1, 0)),
)


def test_evidence_is_read_as_it_was_written(run: Run) -> None:
    written = run.add_evidence(FOUND, run.selected)
    assert written.version == statetrack.__version__ and written.task == run.task.name
    assert run.evidence() == [written]
    assert run.evidence(Measured)[0].evidence == FOUND


def test_the_last_row_of_each_replica_task_and_kind_counts(run: Run) -> None:
    for outcome in run.summary.replicas:
        for reach in (1, 2):
            row = run.add_evidence(Measured(reach=reach, margin=1.0), outcome)
    run.folder.append(files.EVIDENCE, [replace(row, task="another")])
    found = [(row.replica, row.task, row.evidence.reach) for row in run.evidence(Measured)]  # type: ignore[attr-defined]
    assert found == [(0, run.task.name, 2), (1, run.task.name, 2), (1, "another", 2)]
    assert len(run.folder.evidence()) == 5
    assert run.evidence(Evidence) == run.evidence()


def test_a_number_that_is_not_finite_is_null_in_the_file_and_nan_when_read(run: Run) -> None:
    run.add_evidence(
        Measured(reach=None, margin=math.inf, families=(Family("a", math.nan),)), run.selected
    )
    row = rows_in(run.folder, "evidence.jsonl")[0]
    assert row["evidence"]["margin"] is None and row["evidence"]["families"][0]["first"] is None
    (found,) = run.evidence(Measured)
    assert isinstance(found.evidence, Measured)
    assert math.isnan(found.evidence.margin) and math.isnan(found.evidence.families[0].first)
    assert found.evidence.reach is None


def test_a_kind_of_a_later_version_is_left_out_and_stays_in_the_file(run: Run) -> None:
    known = run.add_evidence(FOUND, run.selected)
    row = known.to_json() | {"evidence": {"kind": "of tomorrow", "depth": [1]}, "new": 1}
    append_rows(run.folder, "evidence.jsonl", [row])
    run.add_evidence(FOUND, run.selected)
    assert [each.kind for each in run.folder.evidence()] == ["measured", "measured"]
    assert rows_in(run.folder, "evidence.jsonl")[1] == json.loads(json.dumps(row))


def test_evidence_about_other_weights_is_not_counted_and_a_warning_says_so(run: Run) -> None:
    run.add_evidence(FOUND, run.selected)
    weights = run.folder.read(files.WEIGHTS)
    write_weights(run.folder, {name: value * 2 for name, value in weights.items()})
    with pytest.warns(StatetrackWarning, match=r"1 of its rows are about other weights than"):
        assert run.evidence() == []
    again = run.add_evidence(FOUND, run.selected)
    with pytest.warns(StatetrackWarning, match="about other weights"):
        assert run.evidence() == [again]
    write_weights(run.folder, weights)
    with pytest.warns(StatetrackWarning, match="about other weights"):
        assert [row.weights for row in run.evidence()] != [again.weights]


def test_evidence_without_a_hash_or_weights_is_taken_as_it_is(run: Run) -> None:
    row = run.add_evidence(FOUND, run.selected)
    (run.path / "weights.safetensors").unlink()
    assert files.WEIGHTS.hash_in(run.folder.path) is None and run.evidence() == [row]
    unhashed = run.add_evidence(FOUND, run.selected)
    assert unhashed.weights is None and run.evidence() == [unhashed]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row.pop("evidence"), "does not say which kind of evidence it is"),
        (lambda row: row.update(evidence=[]), "does not say which kind"),
        (lambda row: row["evidence"].update(kind=3), "does not say which kind"),
        (lambda row: row["evidence"].update(reach="far"), "'reach'"),
        (lambda row: row["evidence"].pop("margin"), "'margin' is missing"),
        (lambda row: row["evidence"]["failure"].update(position=0), "no symbol 0"),
        (lambda row: row["evidence"]["failure"].update(period=[]), "no symbol 8"),
        (lambda row: row["evidence"].update(delta=[[0, "x"]]), "'delta.0.1'"),
        (lambda row: row.pop("task"), "'task' is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_damaged_row_is_one_line(run: Run, change: Any, said: str) -> None:
    row = run.add_evidence(FOUND, run.selected).to_json()
    row = json.loads(json.dumps(row))
    change(row)
    append_rows(run.folder, "evidence.jsonl", [row])
    with pytest.raises(RunError) as caught:
        run.folder.evidence()
    message = str(caught.value)
    assert message.startswith(f"{run.path / 'evidence.jsonl'}, line 2: is damaged: ")
    assert said in message and len(message.splitlines()) == 1


def test_no_search_begins_beside_evidence_that_cannot_be_read(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would spend its budget, and add to a file that nothing can read."""
    file = run.path / "evidence.jsonl"
    file.write_text("{broken\n")
    with pytest.raises(RunError, match="line 1: is damaged"):
        next(run.subjects())
    asked = ["--length", "20", "--stress", "--seconds", "1"]
    assert run_command(["eval", str(run.path), *asked]) == 1
    assert "line 1: is damaged" in capsys.readouterr().err
    assert file.read_text() == "{broken\n"


def test_evidence_of_another_run_is_refused(run: Run) -> None:
    row = run.add_evidence(FOUND, run.selected).to_json()
    append_rows(run.folder, "evidence.jsonl", [row | {"seed": 77}])
    with pytest.raises(RunError, match=r"evidence.jsonl does not belong to config.yaml: .*seed 77"):
        run.evidence()


@pytest.mark.parametrize(
    "failure",
    [Failure((1, 3), (), 2, 1, 0), Failure((), (-1,), 2, 1, 0), Failure((1,), (), 1, 3, None)],
)
def test_words_of_symbols_or_labels_that_the_task_has_not_are_refused(
    run: Run, failure: Failure
) -> None:
    run.add_evidence(replace(FOUND, failure=failure), run.selected)
    with pytest.raises(RunError, match=r"evidence.jsonl does not belong to task.yaml"):
        run.evidence()


def test_a_row_of_evidence_may_be_longer_than_one_of_an_evaluation(run: Run) -> None:
    long = Measured(reach=1, margin=1.0, failure=Failure(tuple([1] * 100_000), (), 100_000, 0, 1))
    row = run.add_evidence(long, run.selected)
    assert run.evidence() == [row]
    with pytest.warns(StatetrackWarning, match="a row has more than 1,048,576 bytes"):
        run.add_evidence(Measured(reach=1, margin=1.0, delta=(tuple([7] * 600_000),)), run.selected)
    assert run.evidence() == [row]


def test_evidence_that_cannot_be_written_is_returned_with_a_warning(run: Run) -> None:
    (run.path / "evidence.jsonl").mkdir()
    with pytest.warns(StatetrackWarning, match="these rows are not kept in the run's folder"):
        row = run.add_evidence(FOUND, run.selected)
    assert row.evidence == FOUND


def test_subjects_are_the_replicas_that_are_asked_for(run: Run) -> None:
    assert [one.replica for one, _ in run.subjects()] == [run.selected.replica]
    assert [one.replica for one, _ in run.subjects(replica=1)] == [1]
    both = dict(run.subjects(everyone=True))
    assert [one.replica for one in both] == [0, 1]
    weights = [next(subject.model.parameters()) for subject in both.values()]
    assert not weights[0].equal(weights[1])
    with pytest.raises(RunError, match="there is no replica 5"):
        next(run.subjects(replica=5))
    with pytest.raises(SettingsError, match="not both"):
        next(run.subjects(replica=1, everyone=True))
    with pytest.raises(SettingsError, match="has other symbols"):
        next(run.subjects(task="parity"))


def test_evidence_is_read_without_torch(run: Run) -> None:
    run.add_evidence(FOUND, run.selected)
    code = (
        "import sys; from pathlib import Path; from statetrack.runs.folder import RunFolder; "
        f"print(RunFolder(Path({str(run.path)!r})).evidence(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"


def test_every_kind_of_evidence_is_entered_under_its_own_name() -> None:
    for name, kind in EVIDENCE.items():
        assert kind.kind == name and issubclass(kind, Evidence)


def row_of(evidence: Evidence, weights: str | None = "a", version: str = "1") -> EvidenceRow:
    return EvidenceRow(
        replica=0,
        seed=0,
        lr=0.1,
        selected=True,
        task="parity",
        version=version,
        found="",
        weights=weights,
        conditions=Conditions("2", "float32", "cpu", 0, 1.0),
        evidence=evidence,
    )


def known(*rows: EvidenceRow) -> list[Evidence]:
    return [row.evidence for row in known_evidence(rows)]


NOTHING = replace(certificate_of(0), verdict="not proven", verdict_real="not proven")
LONG = replace(NOTHING, verdict="to length", length=255_980)
REAL = replace(NOTHING, verdict_real="to length", length_real=10**6)


def test_a_weaker_search_takes_back_no_proof() -> None:
    (found,) = known(row_of(LONG), row_of(REAL), row_of(NOTHING))
    assert found == replace(LONG, verdict_real="to length", length_real=10**6)
    (found,) = known(row_of(LONG), row_of(replace(LONG, length=10**7)))
    assert found.proves == 10**7


def test_a_search_that_finds_nothing_takes_back_no_failure() -> None:
    far, near = (worst_case_of(Failure((), (1,), position, 1, 0)) for position in (46, 43))
    none = worst_case_of(None)
    assert known(row_of(far), row_of(near), row_of(none), row_of(far)) == [near]
    short, long = (exhaustive_of(failure=None, reason="time", length=length) for length in (4, 9))
    assert known(row_of(long), row_of(short)) == [long]
    failing = exhaustive_of(failure=Failure((1, 1), (), 2, 1, 0), length=1)
    assert known(row_of(failing), row_of(exhaustive_of(failure=None, length=1))) == [failing]


def test_evidence_of_other_weights_or_versions_is_not_merged() -> None:
    weaker = NOTHING
    assert known(row_of(LONG, "b"), row_of(weaker)) == [weaker]
    assert known(row_of(LONG, None), row_of(weaker)) == [weaker]
    assert known(row_of(LONG, version="0"), row_of(weaker)) == [weaker]
    earlier = replace(row_of(LONG), conditions=None)
    assert known(earlier, row_of(weaker)) == [weaker]
    assert known(row_of(LONG), replace(row_of(LONG), evidence=weaker)) == [LONG]
