"""The commands as a user types them: train, eval and reproduce, and how they refuse."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from statetrack.cli._terminal import say_warnings
from statetrack.cli._warnings import warn_of_trained_lengths
from statetrack.cli.app import run
from statetrack.runs import Run, RunFolder, files
from statetrack.sources import LengthDistribution
from statetrack.training import Record
from tests.faults.processes import run_in_child

BRIEF = ["--stress-seconds", "0.2"]
QUICK = ["--steps", "20", "--hidden", "8", "--validation-words", "32", "--batch-size", "16"]

TURNSTILE = """
title: Turnstile
version: 1
reference: own example
automaton:
  kind: transitions
  start: locked
  states:
    locked: {coin: unlocked, push: locked}
    unlocked: {coin: unlocked, push: locked}
  outputs: {locked: 0, unlocked: 1}
examples: {"coin push push coin": "1 0 0 1"}
"""

COUNTER_MODEL = '''
"""A running sum of learned numbers, squashed."""
import torch
from torch import nn
from statetrack import MODELS, RecurrentModel, Settings, option

class CounterSettings(Settings):
    """Settings of the counter."""
    slope: float = option(1.0, "Steepness of the squash.", above=0)

@MODELS.register("counter")
class Counter(RecurrentModel):
    """A counter."""
    settings_class = CounterSettings
    family = "toy"
    source = "a test"

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.amounts = nn.Parameter(torch.randn(num_symbols))
        self.readout = nn.Linear(1, num_labels)

    def initial_state(self, num_words):
        return self.amounts.new_zeros(num_words)

    def step(self, symbols, state):
        state = state + self.amounts[symbols]
        return self.readout(torch.tanh(self.settings.slope * state).unsqueeze(-1)), state
'''


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")


def succeed(*argv: str) -> None:
    assert run(list(argv)) == 0, argv


def complaint(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 1) -> str:
    """The one line that a failing command prints."""
    capsys.readouterr()
    assert run(list(argv)) == code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    lines = [line for line in printed.err.splitlines() if line.startswith("error: ")]
    if code == 1:
        assert len(lines) == 1, printed.err
        return lines[0]
    return printed.err


@pytest.mark.quick
@pytest.mark.slow  # but for `make quick`: tests/test_docs.py runs the same of the README
def test_the_three_commands_work_as_typed(capsys: pytest.CaptureFixture[str]) -> None:
    succeed("gen")
    succeed("train", "--model", "bilinear-cp", "--rank", "64")
    capsys.readouterr()
    succeed("eval", "--length", "500", "--json")
    result = json.loads(capsys.readouterr().out)
    (row,) = result["rows"]
    assert result["model"] == "bilinear-cp" and result["task"] == "modular-addition"
    assert row["length"] == 500 and row["sequences"] == 2000 and row["accuracy"] == 1.0


def test_eval_takes_the_newest_run_and_every_replica_on_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeed("train", "--model", "diagonal-real", *QUICK, "--task", "parity")
    succeed("train", "--model", "gru", *QUICK, "--seeds", "2", "--lrs", "1e-3,3e-3")
    capsys.readouterr()
    succeed("eval", "--all", "--json", "--length", "10-30:10", "--length", "7", "--samples", "50")
    result = json.loads(capsys.readouterr().out)
    rows = result["rows"]
    assert result["model"] == "gru"
    assert {row["length"] for row in rows} == {7, 10, 20, 30}
    assert {(row["seed"], row["lr"]) for row in rows} == {
        (0, 1e-3),
        (1, 1e-3),
        (0, 3e-3),
        (1, 3e-3),
    }
    assert sum(row["selected"] for row in rows) == 4


def test_rows_have_the_documented_names_as_json_and_as_csv(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeed("train", "--model", "diagonal-real", *QUICK)
    capsys.readouterr()
    succeed("eval", "--json", "--length", "20", "--samples", "50")
    result = json.loads(capsys.readouterr().out)
    assert set(result) == {"run", "task", "model", "unfinished", "extended_at"} | {
        "merging",
        "rounding",
        "rows",
    }
    names = {
        *("replica", "seed", "lr", "selected", "length", "sequences", "accuracy", "low", "high"),
        *("symbol_accuracy", "prefix_accuracy", "floor", "chance", "scaled", "scaled_to_floor"),
        *("task", "words", "shortcut", "shortcut_accuracy", "nonfinite_from", "first_error"),
        "merging_horizon",
    }
    assert set(result["rows"][0]) == names
    succeed("eval", "--csv", "--length", "20", "--samples", "50")
    (line,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert set(line) == names | {"run", "task", "model", "unfinished_step"}
    assert float(line["accuracy"]) == result["rows"][0]["accuracy"]


def test_the_table_and_the_curve_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    succeed("train", "--model", "diagonal-real", *QUICK, "--task", "parity", "--out", "mine")
    succeed("eval", "mine", "--length", "10-100:10", "--samples", "50")
    printed = capsys.readouterr().out
    assert "95 % interval" in printed and "floor" in printed and "run: mine" in printed
    assert "└┬" in printed


def test_a_run_that_diverged_says_so_in_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    lost = ["train", *QUICK, "--task", "parity", "--lrs", "1e30", "--out", "runs/lost"]
    line = complaint(capsys, *lost)
    assert "the run diverged" in line and "--lrs" in line and "--clip 1.0" in line
    for asked in (["eval"], ["eval", "--all"], ["eval", "--json"]):
        assert "the run diverged" in complaint(capsys, *asked)
    succeed("list", "runs", "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["state"], row["validation"]) == ("diverged", None)
    succeed("compare", "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["outcome"], row["num_diverged"], row["selected"]) == ("diverged", 1, None)
    succeed("compare")
    assert "1 diverged" in capsys.readouterr().out


def test_a_replica_that_diverged_is_named_beside_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "warning: replica 0 (seed 0, lr 1e+30, training loss not finite from step 2) diverged"
    succeed("train", *QUICK, "--task", "parity", "--lrs", "1e30,1e-2", "--out", "runs/half")
    printed = capsys.readouterr()
    assert (
        said in printed.err
        and "│ diverged at step 2" in printed.out
        and "◀ selected" in printed.out
    )
    succeed("eval", "--all", "--length", "20", "--samples", "50")
    printed = capsys.readouterr()
    assert said in printed.err and "1e+30" not in printed.out


def test_logits_that_are_not_finite_are_wrong_answers_and_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The growing state of `slice` overflows; NaN as label 0 would be right on every odd word."""
    succeed("train", "--task", "aa-star", "--model", "slice", "--steps", "5", "--out", "mine")
    capsys.readouterr()
    asked = ["eval", "mine", "--length", "501", "--length", "2001", "--samples", "50"]
    succeed(*asked, "--json")
    printed = capsys.readouterr()
    rows = json.loads(printed.out)["rows"]
    (position,) = {row["nonfinite_from"] for row in rows}
    assert 30 < position <= 501 and [row["accuracy"] for row in rows] == [0.0, 0.0]
    said = f"logits are NaN or infinite from length {position}"
    assert f"{said}: such answers count as wrong" in printed.err
    assert "trained on" not in printed.err
    succeed(*asked)
    printed = capsys.readouterr()
    assert said in " ".join(printed.out.split()) and "every answer" not in printed.out
    assert said not in printed.err, "the sentence below the table has said it"


def test_eval_shows_failing_words_with_labels_and_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeed("train", "--task", "parity", "--model", "diagonal-positive", *QUICK, "--out", "mine")
    capsys.readouterr()
    asked = ["eval", "mine", "--length", "20", "--length", "40", "--samples", "30", "--errors", "2"]
    succeed(*asked, "--json")
    result = json.loads(capsys.readouterr().out)
    row = result["rows"][-1]
    (errors,) = result["errors"]
    assert (errors["length"], errors["sequences"], errors["replica"]) == (40, 30, 0)
    assert errors["failing"] == round(30 * (1 - row["prefix_accuracy"])) > 2
    first, second = errors["words"]
    assert row["first_error"] == first["position"] <= second["position"]
    for word in (first, second):
        place = word["position"] - word["begin"]
        assert word["labels"][place] != word["answers"][place]
        before = [*zip(word["labels"], word["answers"], strict=True)][:place]
        assert all(label == answer for label, answer in before)
    succeed(*asked)
    printed = capsys.readouterr().out
    assert f"length 40: {errors['failing']} of 30 words are answered wrongly" in printed
    assert f"word {first['word']}, position {first['position']}: the answer is" in printed
    assert printed.splitlines()[-1] == "run: mine"


def test_eval_under_stress_finds_a_word_that_fails_and_keeps_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeed("train", "--task", "parity", "--model", "diagonal-positive", *QUICK, "--out", "mine")
    capsys.readouterr()
    asked = ["eval", "mine", "--length", "20", "--samples", "30", "--stress"]
    succeed(*asked, "--json")
    result = json.loads(capsys.readouterr().out)
    (worst,) = result["stress"]
    failure, window = worst["failure"], worst["window"]
    assert worst["horizon"] == failure["position"] - 1
    assert failure["label"] != failure["answer"]
    place = failure["position"] - window["begin"]
    assert (window["labels"][place], window["answers"][place]) == (
        failure["label"],
        failure["answer"],
    )
    word = failure["prefix"] + failure["period"] * failure["position"]
    ones = (word[: failure["position"] - len(failure["suffix"])] + failure["suffix"]).count("1")
    assert failure["label"] == str(ones % 2)
    (kept,) = [row for row in Run.open("mine").evidence() if row.evidence.kind == "worst-case"]
    assert kept.evidence.horizon == worst["horizon"] == worst["evidence"]["horizon"]
    succeed(*asked)
    printed = capsys.readouterr().out
    assert f"worst-case horizon: {worst['horizon']} (random words: " in printed
    assert f"fails: symbol {failure['position']} of " in printed


def test_stress_and_errors_say_what_they_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    succeed("train", "--task", "boolean-3", "--model", "gru", *QUICK, "--out", "mine")
    for argv in (["eval", "mine", "--stress"], ["certify"], ["probe"], ["extract"], ["snap"]):
        assert "mine: task 'boolean-3' is a sampler: no automaton" in complaint(
            capsys, argv[0], "mine", *argv[2:]
        )
    assert "--csv" in complaint(capsys, "eval", "mine", "--errors", "3", "--csv")


def test_eval_says_where_test_words_may_have_been_trained_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    succeed("train", "--task", "parity", "--train-length", "2-10", *QUICK, "--out", "mine")
    capsys.readouterr()
    warned = {}
    for lengths in (["11"], ["10", "11"], ["5-11:1"]):
        succeed("eval", "mine", "--samples", "20", *(f"--length={one}" for one in lengths))
        lines = capsys.readouterr().err.splitlines()
        warned[lengths[0]] = [line for line in lines if "trained on" in line]
    assert not warned["11"]
    assert [line.split("the test")[0] for line in warned["10"]] == ["warning: at length 10 "]
    (line,) = warned["5-11:1"]
    assert "at 6 lengths from 5 to 10" in line and "up to 10 symbols" in line


def test_lengths_in_warnings_are_written_as_in_tables(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Any] = [SimpleNamespace(length=length) for length in (1000, 2000)]
    warn_of_trained_lengths(rows, LengthDistribution.parse("2-2000"))
    say_warnings()
    said = capsys.readouterr().err
    assert "at 2 lengths from 1,000 to 2,000 " in said and "up to 2,000 symbols" in said


def test_a_machine_of_ones_own_goes_through_all_three_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Path("turnstile.yaml").write_text(TURNSTILE)
    succeed("gen", "./turnstile.yaml", "--samples", "20", "--test-samples", "10")
    succeed("train", "--task", "turnstile.yaml", "--model", "bilinear", *QUICK, "--out", "mine")
    Path("turnstile.yaml").unlink()
    capsys.readouterr()
    succeed("eval", "mine", "--length", "30", "--samples", "50", "--json")
    assert json.loads(capsys.readouterr().out)["rows"][0]["length"] == 30


def test_a_plugin_model_trains_and_is_evaluated_after_its_file_has_moved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("counter.py").write_text(COUNTER_MODEL)
    options = ["--steps", "10", "--slope", "2.5", "--out", "mine", "--seeds", "2"]
    succeed("train", "--plugin", "counter.py", "--model", "counter", *options)
    Path("counter.py").unlink()
    capsys.readouterr()
    words = ["eval", "mine", "--length", "20", "--samples", "50", "--json", "--trust-plugin"]
    succeed(*words)
    assert json.loads(capsys.readouterr().out)["model"] == "counter"


def test_a_run_repeats_from_its_own_config() -> None:
    succeed("train", "--model", "bilinear-block", *QUICK, "--block-size", "4", "--out", "first")
    succeed("train", "--config", "first/config.yaml", "--out", "second")
    assert Path("first/config.yaml").read_text() == Path("second/config.yaml").read_text()
    weights = [Path(run, "weights.safetensors").read_bytes() for run in ("first", "second")]
    assert weights[0] == weights[1]
    succeed("train", "--config", "first/config.yaml", "--seed", "5", "--out", "third")
    assert Path("third/weights.safetensors").read_bytes() != weights[0]


def test_the_command_line_beats_the_file_and_the_file_beats_the_protocol() -> None:
    Path("mine.yaml").write_text("model: bilinear\nhidden: 6\nsteps: 7\nlrs: [0.5]\n")
    options = ["--config", "mine.yaml", "--steps", "3", "--validation-words", "16"]
    succeed("train", "--protocol", "bilinear-paper", *options, "--embed-dim", "5", "--out", "mine")
    config = Path("mine/config.yaml").read_text()
    for line in ("hidden: 6", "steps: 3", "loss: cross-entropy", "embed_dim: 5"):
        assert line in config
    assert "- 0.5" in config


def test_training_options_reach_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--train-length", "3-5", "--supervision", "last", "--train-samples", "50"]
    more = ["--loss", "smoothed-cross-entropy", "--optimizer", "adamw", "--weight-decay", "0.1"]
    rest = ["--schedule", "linear", "--warmup", "0.2", "--clip", "1", "--precision", "bfloat16"]
    succeed("train", "--model", "lstm", *QUICK, *options, *more, *rest, "--out", "mine")
    succeed("eval", "mine", "--length", "20", "--samples", "20")
    assert "smoothed-cross-entropy" in Path("mine/config.yaml").read_text()


def test_label_smoothing_is_refused_with_a_loss_that_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--task", "parity", "--hidden", "4", "--rank", "2", "--steps", "1"]
    words += ["--out", str(tmp_path / "run"), "--label-smoothing", "0.2"]
    assert run(words) == 1 and not (tmp_path / "run").exists()
    assert capsys.readouterr().err == (
        "error: --label-smoothing 0.2: the loss is squared-error, which has none: add --loss "
        "smoothed-cross-entropy, or leave it out\n"
    )
    assert run([*words, "--loss", "smoothed-cross-entropy"]) == 0


def test_a_suite_is_one_table_and_goes_on_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text(
        "title: Two by one\n"
        "settings: {steps: 20, hidden: 8, seeds: 2, validation_words: 16}\n"
        "models: {real: diagonal-real, Elman: {model: rnn, layers: 2, warmup: 0, clip: 0}}\n"
        "tasks: {parity: parity}\n"
        "length: 20\nsamples: 100\nhorizon_lengths: [40]\nhorizon_samples: 20\n"
        "published: {real: {parity: 1.0}}\npublished_trust: primary\n"
    )
    pages = ("--markdown", "mine.md", "--html", "mine.html", "--rows", "real", "--rows", "Elman")
    succeed("reproduce", "mine.yaml", "--jobs", "1", *BRIEF, "--out", "cells", *pages)
    first = capsys.readouterr().out
    assert "Elman" in first and "published" in first and "floor" in first
    how = "squared-error; adam (beta1 0.9, beta2 0.95, epsilon 1e-08); "
    assert f"trained with: {how}" in first and "  Elman: learning rate 0.01\n" in first
    times = {path: path.stat().st_mtime_ns for path in Path("cells").rglob("cell.json")}
    assert len(times) == 2
    succeed("reproduce", "mine.yaml", "--jobs", "1", *BRIEF, "--out", "cells")
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert "every word is right that was tried or proven" in capsys.readouterr().out
    succeed("reproduce", "mine.yaml", "--jobs", "1", "--stress-seconds", "0", "--out", "cells")
    assert "worst-case horizon: not measured" in capsys.readouterr().out
    shutil.rmtree("cells/parity/elman")
    succeed("reproduce", "mine.yaml", "--finished", "--stress-seconds", "0", "--out", "cells")
    assert not Path("cells/parity/elman").exists() and "1 agree" in capsys.readouterr().out
    line = complaint(capsys, "reproduce", "mine.yaml", "--seeds", "1", "--out", "cells")
    assert "other settings" in line
    report = Path("mine.md").read_text()
    page = Path("mine.html").read_text()
    command = "statetrack reproduce mine.yaml --rows real --rows Elman --stress-seconds 0.2"
    assert page.startswith("<!doctype html>") and f"<code>{command}</code>" in page
    assert f"$ {command}\n" in report
    assert page.count("paper 1.00") == 1 and page.count('class="run') == 2
    assert report.startswith("# Two by one\n") and "\nTrained with: squared-error; " in report
    assert "| real | parity | published | 1.00 |" in report
    assert "(of 1 published)" in report and "(of 1 published)" in first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_suite_that_gets_a_signal_keeps_a_checkpoint_and_says_how_to_go_on(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(
        "title: One by one\nsettings: {steps: 9, validate_every: 2, lrs: [0.01]}\n"
        "models: {real: diagonal-real}\ntasks: {parity: parity}\nlength: 20\nsamples: 50\n"
    )
    command = ["reproduce", "mine.yaml", "--jobs", "1", *BRIEF]
    train = Run.train

    def signalled(self: Run, stop: Callable[[], bool], **named: Any) -> Iterator[Record]:
        records = train(self, stop, **named)
        yield next(records)
        os.kill(os.getpid(), number)
        yield from records

    before = signal.signal(number, signal.default_int_handler)  # `nohup` has SIGHUP ignored
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Run, "train", signalled)
            assert run(command) == 130
    finally:
        signal.signal(number, before)
    told = capsys.readouterr().err
    assert "interrupted with 0 of 1 points finished; the same command continues" in told
    assert "Traceback" not in told
    kept = RunFolder.open(Path("suites/mine/parity/real"))
    assert kept.read(files.CHECKPOINT) is not None and not kept.finished
    succeed(*command)
    assert kept.finished and "One by one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("missing/mine.md", "there is no folder missing: make it first"),
        (".", "is a folder: name a file"),
        ("/proc/version", "cannot be written"),
        ("pipe", "cannot be written"),  # which nobody reads
    ],
)
@pytest.mark.parametrize("option", ["--markdown", "--html"])
def test_a_page_that_cannot_be_written_is_refused_before_training(
    option: str, file: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text("title: T\nmodels: {real: diagonal-real}\ntasks: {p: parity}\n")
    os.mkfifo("pipe")
    line = complaint(capsys, "reproduce", "mine.yaml", option, file)
    assert line.startswith(f"error: {option} {file}: ") and wanted in line
    assert not Path("suites").exists()


def test_a_full_disk_does_not_hide_the_table_of_a_suite(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text(
        "title: One by one\nsettings: {steps: 2, validation_words: 16, seeds: 1}\n"
        "models: {real: diagonal-real}\ntasks: {parity: parity}\nlength: 20\nsamples: 50\n"
    )
    assert run(["reproduce", "mine.yaml", "--jobs", "1", *BRIEF, "--markdown", "/dev/full"]) == 1
    printed = capsys.readouterr()
    assert "One by one" in printed.out and "runs: suites/mine" in printed.out
    assert "error: --markdown /dev/full: cannot be written: No space left on device" in printed.err


@pytest.mark.parametrize(
    ("argv", "wanted"),
    [
        (["train", "--model", "bilinr"], "Did you mean 'bilinear'?"),
        (["train", "--task", "modular-adition"], "Did you mean 'modular-addition'?"),
        (["train", "--task", "modular-addition:k=5"], "k"),
        (["train", "--task", "missing.yaml"], "missing.yaml"),
        (["train", "--model", "lstm", "--rank", "4"], "Models that have it:"),
        (["train", "--model", "lstm", "--layrs", "4"], "--layers"),
        (["train", "--train-length", "10-2"], "--train-length: length 10-2: lengths are out of"),
        (["train", "--lrs", "0"], "above 0"),
        (["train", "--lrs", "1e-3,1e-3"], "twice"),
        (["train", "--device", "tpu"], "cuda:INDEX"),
        (["train", "--robust-size", "0.1"], "--robust-size is that of robust training: say which"),
        (["train", "--robust-start", "0.9"], "--robust-start is that of robust training: say"),
        (
            ["train", "--robust", "spectral", "--freeze", "recurrence"],
            "--robust spectral trains operators, which --freeze recurrence leaves as they are",
        ),
        (["train", "--robust", "spectral", "--model", "gru"], "--robust spectral is for linear"),
        (
            ["train", "--curriculum", "0.5", "--train-length", "10"],
            "--curriculum 0.5 grows the longest length, and training has one alone, 10",
        ),
        (
            ["train", "--kernel", "native", "--additive", "input"],
            "--kernel native has no additive terms (--additive input): take --kernel auto or",
        ),
        (["train", "--extended-at", "5,3"], "--extended-at: steps rise"),
        (["train", "--epsilon", "1", "--optimizer", "sgd"], "--epsilon is Adam's"),
        (["train", "--model", "hybrid", "--recurrent", "kda:mlp_kind=relu"], "--mlp-kind"),
        (["train", "--model", "bilinear-block", "--hidden", "5", "--block-size", "2"], "4 or 6"),
        (["train", "--train-samples", "99999", "--train-length", "2"], "99999"),
        (["train", "--config", "missing.yaml"], "missing.yaml"),
        (["train", "--protocol", "papr"], "protocol"),
        (["train", "--plugin", "missing.py"], "no such file"),
        (["train", "--resume", "nowhere"], "no such run folder"),
        (["train", "--resume", __file__], "is no folder; `statetrack list runs` shows the runs"),
        (["eval", __file__], "is no folder; `statetrack list runs` shows the runs"),
        (["train", "--out", os.devnull], "is there, and no folder: choose another --out"),
        (["check", "."], ".: is no file: name one in Python"),
        (
            ["gen", "parity", "s3", "--out", __file__],
            "is a file: choose another",
        ),
        (["reproduce", "gone.yml"], "gone.yml: cannot be read: No such file"),
        (["reproduce", "./gone"], "gone: cannot be read: No such file"),
        (["reproduce", "."], ".: is a folder, and holds no sweep.yaml of a sweep"),
        (["show", "regex:("], "'(' at position 1: the bracket is not closed"),
        (["show", "regex:()"], "the pattern names no symbol"),
        (["eval"], "statetrack train"),
        (["eval", "nowhere"], "no such run folder"),
        (["eval", "."], "not a run folder"),
        (["reproduce", "hierrchy"], "Did you mean 'hierarchy'?"),
    ],
)
def test_bad_input_is_one_line_that_says_what_to_do(
    argv: list[str], wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    misspelt = {"--rank", "--layrs"} & {*argv}
    assert wanted in complaint(capsys, *argv, code=2 if misspelt else 1)
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    "argv",
    [
        ["train", "--steps", "0"],
        ["train", "--hidden", "1000001"],
        ["train", "--lrs", "fast"],
        ["train", "--loss", "hinge"],
        ["eval", "--samples", "none"],
        ["no-such-command"],
    ],
)
def test_a_command_line_that_cannot_be_parsed_exits_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint(capsys, *argv, code=2)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("model: bilinear\nhiden: 3\n", "'hidden'"),
        ("model: bilinear\nhidden: many\n", "hidden"),
        ("model: bilinear\nlrs: [1e-3]\n", "line 2"),
        ("model: bilinear\nno: 3\n", "in quotes"),
        ("model: bilinear\nhidden: yes\n", "hidden"),
        ("model: bilinear\nsteps: 3\nsteps: 4\n", "twice"),
        ("- 3\n", "key: value"),
        ("model: [\n", "line"),
    ],
)
def test_a_bad_config_file_is_named_with_its_key_or_line(
    text: str, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.yaml").write_text(text)
    line = complaint(capsys, "train", "--config", "mine.yaml")
    assert "mine.yaml" in line and wanted in line


def test_an_existing_run_folder_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    succeed("train", "--model", "diagonal-real", *QUICK, "--out", "mine")
    assert "not empty" in complaint(capsys, "train", "--out", "mine", *QUICK)
    assert "has finished" in complaint(capsys, "train", "--resume", "mine")


@pytest.mark.parametrize("name", ["weights.safetensors", "summary.json", "task.yaml"])
def test_a_damaged_run_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    succeed("train", "--model", "diagonal-real", *QUICK, "--out", "mine")
    path = Path("mine", name)
    path.write_bytes(path.read_bytes()[:10])
    assert name in complaint(capsys, "eval", "mine", "--length", "10")
    path.unlink()
    assert name in complaint(capsys, "eval", "mine", "--length", "10")


SMALL = ["--model", "bilinear", "--hidden", "16", "--steps", "240", "--batch-size", "16"]
SMALL += ["--validation-words", "32", "--checkpoint-every", "40"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole") / "whole"
    succeed("train", *SMALL, "--out", str(folder))
    return folder


@pytest.fixture
def signalled(monkeypatch: pytest.MonkeyPatch) -> Callable[[signal.Signals], int]:
    """A command that trains, and gets a signal when training is well under way."""
    train = Run.train

    def command(how: signal.Signals) -> int:
        def signalled(self: Run, stop: Callable[[], bool], **log: Any) -> Iterator[Record]:
            for number, record in enumerate(train(self, stop, **log)):
                yield record
                if number == 15:
                    os.kill(os.getpid(), how)

        with monkeypatch.context() as patch:
            patch.setattr(Run, "train", signalled)
            return run(["train", *SMALL, "--out", "stopped"])

    return command


@pytest.mark.parametrize("name", ["my run", "-run", "a'b"])
def test_a_command_that_names_a_run_can_be_copied_whatever_the_name(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["train", "--task", "parity", *QUICK, "--out", name]) == 0
    capsys.readouterr()
    assert run(["compare", "--", name]) == 0
    advised = re.search("`statetrack (eval .*)`", capsys.readouterr().out)
    assert advised is not None
    command = shlex.split(advised[1])
    assert run([*command, "--samples", "5"]) == 0

    Path(name, "summary.json").unlink()
    assert run(["compare", "--", name]) == 0
    advised = re.search("`statetrack (train --resume .*)`", capsys.readouterr().out)
    assert advised is not None
    assert run(shlex.split(advised[1])) == 0


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_training_that_gets_a_signal_goes_on_to_the_very_same_weights(
    how: signal.Signals,
    signalled: Callable[[signal.Signals], int],
    whole: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert signalled(how) == 130
    assert "statetrack train --resume stopped" in capsys.readouterr().err
    _goes_on_to("stopped", whole)


def test_training_that_was_killed_goes_on_to_the_very_same_weights(
    signalled: Callable[[signal.Signals], int], whole: Path
) -> None:
    assert run_in_child(lambda: signalled(signal.SIGKILL)).was_killed
    _goes_on_to("stopped", whole)


def _goes_on_to(stopped: str, whole: Path) -> None:
    """A run that was stopped is resumed, and is then the one that was not."""
    assert not Path(stopped, "weights.safetensors").exists()
    succeed("train", "--resume", stopped)
    for name in ("weights.safetensors", "config.yaml"):
        assert Path(stopped, name).read_bytes() == Path(whole, name).read_bytes()
    lines = Path(stopped, "metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step"] for line in lines]
    assert steps == sorted(set(steps))


def test_next_runs_the_points_with_the_most_open_numbers_a_second(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("open.yaml").write_text(
        "title: Three by one\n"
        "settings: {steps: 20, hidden: 8, validation_words: 16}\n"
        "models: {real: diagonal-real, signs: {model: diagonal-real, init: signs}, Elman: rnn}\n"
        "tasks: {parity: parity}\n"
        "length: 20\nsamples: 100\n"
        "tables:\n"
        "  - {source: T, trust: primary, values: {real: {parity: 1.0}, signs: {parity: 1.0}}}\n"
        "  - {source: U, trust: primary, unlike: another task, values: {Elman: {parity: 1.0}}}\n"
    )
    assert "name a suite, or give --next" in complaint(capsys, "reproduce")
    succeed("reproduce", "open.yaml", "--next", "100", "--jobs", "1", "--dry-run")
    asked = capsys.readouterr().out
    assert "real" in asked and "signs" in asked and "Elman" not in asked
    assert not Path("suites").exists()
    succeed("reproduce", "open.yaml", "--next", "100", "--jobs", "1")
    shown = capsys.readouterr().out
    assert "open.yaml: " in shown and "(of 2 published)" in shown
    assert len(list(Path("suites/open/parity").glob("*/cell.json"))) == 2
    assert "no published number waits" in complaint(capsys, "reproduce", "open.yaml", "--next", "9")
    line = complaint(capsys, "reproduce", "open.yaml", "--next", "9", "--rows", "real")
    assert "--next chooses the points itself, without --rows" in line
    for option in ("--stress-seconds 3", "--evidence-seconds 3", "--force"):
        line = complaint(capsys, "reproduce", "open.yaml", "--next", "9", *option.split())
        assert f"--next chooses the points itself, without {option.split()[0]}" in line
    line = complaint(capsys, "reproduce", "open.yaml", "--evidence-seconds", "3")
    assert "--evidence-seconds: is the work of --evidence" in line
    Path("suites").rename("away")
    line = complaint(capsys, "reproduce", "open.yaml", "--next", "0.0001", "--jobs", "1")
    assert "no point takes so few seconds" in line
