"""What commands print without torch: it takes seconds to import."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from statetrack.catalogue.models import SIZES, default_sizes, sizes_of
from statetrack.cli import app
from statetrack.registry import modules_in
from statetrack.runs import Experiment, Run, RunFacts, compare
from statetrack.spec import golden_hash
from tests.test_architecture import brings_in_torch
from tests.test_cli_frame import ROOT, imported_by

OURS = sorted(modules_in("statetrack.models"))
GEN = "gen parity --samples 8 --validation-samples 4 --test-samples 4 --test-length 12 --out words"
WRITE = """
python -c "
import json
from statetrack.catalogue.models import SIZES, sizes_of
from statetrack.registry import modules_in
sizes = {name: sizes_of(name) for name in sorted(modules_in('statetrack.models'))}
SIZES.write_text(json.dumps(sizes, indent=1) + chr(10))
"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that has been begun."""
    out = tmp_path_factory.mktemp("without-torch") / "run"
    return Run.start(model="deltanet", task="s3", width=8, seeds=2, steps=1, out=out)


@pytest.mark.parametrize("name", OURS)
def test_the_sizes_that_are_kept_are_those_of_the_models(name):
    assert default_sizes().get(name) == sizes_of(name), f"write {SIZES.name} again: {WRITE}"


def test_sizes_are_kept_of_the_models_of_statetrack_and_of_no_other():
    assert list(json.loads(SIZES.read_text(encoding="utf-8"))) == OURS


def test_a_recorded_run_says_what_the_run_says(run):
    read = RunFacts.read(run.path)
    assert read.experiment.values() == run.experiment.values()
    assert golden_hash(read.task) == golden_hash(run.task) and read.path == run.path
    assert read.finished is run.finished is False
    assert read.rows == run.rows == [] and read.evidence() == run.evidence()
    assert read.words.spec == run.words.spec and read.records == run.records


def test_an_experiment_to_be_read_refuses_what_one_to_be_built_refuses():
    values = {"model": "deltanet", "task": "s3", "width": 8}
    read = Experiment.from_values(values, "here", to_build=False)
    assert read.values() == Experiment.from_values(values, "here").values()
    assert len(read.replicas) == 1
    for wrong in ({"wdth": 8}, {"width": 0}):
        told = []
        for to_build in (True, False):
            with pytest.raises(Exception, match="here") as error:
                Experiment.from_values(values | wrong, "here", to_build=to_build)
            told.append(str(error.value))
        assert told[0] == told[1]


def test_compare_reads_runs_without_torch(run):
    line = f"compare {run.path}"
    found, shown = imported_by(line)[line]
    assert "torch" not in found and "1 run: 1 unfinished" in shown
    assert compare([run.path])[0].outcome == "unfinished"
    assert not brings_in_torch("statetrack.runs.comparison", set())


SAID = "--- said of one line ---"
"""What stands after all that a line prints on standard error."""


def without_torch(folder, lines, *, fail=False):
    """A process that runs command lines in a folder, all of which fail or none, without torch."""
    code = (
        "import sys; from statetrack.cli.app import run\n"
        f"for line in {lines!r}:\n"
        f"    code = run(line.split()); assert bool(code) is {fail}, (line, code)\n"
        "    assert not {'torch', 'pandas'} & set(sys.modules), line\n"
        f"    print({SAID!r}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done


def test_what_finished_runs_recorded_is_printed_and_drawn_without_torch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    swept = (
        "sweep --model rnn,gru --task parity --set hidden=4 --steps 2 --seeds 1 --length 4 "
        "--samples 8 --jobs 1 --out runs"
    )
    assert app.run(swept.split()) == 0
    before = {file: file.read_bytes() for file in Path("runs").rglob("*.json")}
    lines = [
        *(swept, "sweep runs --finished --json", "report runs --format json", "report runs/parity"),
        "reproduce runs --finished --stress-seconds 0 --out runs --markdown a.md --html a.html",
        "report groups --format csv --out groups.csv",
        *("plot runs --out a.svg", "compare runs", "list runs", "show runs/parity/gru"),
        *("audit parity --samples 50", GEN, "audit words"),
    ]
    shown = without_torch(tmp_path, lines).stdout
    assert '"parameters": ' in shown and '"parameters": null' not in shown
    assert {file: file.read_bytes() for file in Path("runs").rglob("*.json")} == before


def test_a_sweep_that_is_not_finished_still_checks_every_point_before_the_first(tmp_path, capsys):
    # the settings are right; only the model knows that its blocks do not divide them
    words = "sweep --model rnn,bilinear-block --task parity --set hidden=7 --steps 1"
    out = tmp_path / "runs"
    assert app.run([*words.split(), "--out", str(out)]) == 1
    assert "bilinear-block" in capsys.readouterr().err and not out.exists()


NO_SUCH = (
    *("eval nothing", "eval nothing nil", "certify nothing", "extract nothing"),
    *("snap nothing", "probe", "train --resume nothing", "train --learning-rate 3"),
    *("train --model LSTM", "show s3 --foo", "evaluate"),
)
TAKEN = (
    *("train --task s3 --out taken", "train --out taken --force"),
    "build s3 --model bilinear --out taken",
)


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    """By command line, what one process without torch says of it, which it refuses."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "taken").mkdir()
    (folder / "taken" / "notes.txt").write_text("mine", encoding="utf-8")
    lines = [*NO_SUCH, *TAKEN]
    done = without_torch(folder, lines, fail=True)
    *said, _ = done.stderr.split(f"{SAID}\n")
    return dict(zip(lines, said, strict=True))


def test_a_run_that_is_not_there_is_said_without_torch(refused):
    said = [refused[line] for line in NO_SUCH]
    assert all(each.count("error: ") == 1 for each in said)
    assert sum("nothing: there is no such" in each for each in said) == 6


def test_a_folder_that_is_taken_is_said_without_torch(refused):
    said = [refused[line] for line in TAKEN]
    assert all(each.count("error: taken: ") == 1 for each in said)
    taken = "already exists and is not empty: choose another --out"
    assert sum(taken in each for each in said) == 2
