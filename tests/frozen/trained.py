"""Runs of a few seconds: trained once, and looked at by several sections, each in its own copy."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import statetrack as st

from .files import RUN_FILES, folder_as_text
from .recording import Printed, Recorder, call

FEW = "--validate-every 10 --validation-words 64 --batch-size 32 --seeds 2"
LEARNED = "--validate-every 50 --validation-words 64 --batch-size 32 --lrs 0.03"
TRAININGS = {
    "a-cp": f"bilinear-cp --task s3 --hidden 6 --rank 6 --steps 30 {FEW} --lrs 0.03,0.1",
    "b-block": f"bilinear-block --task parity --hidden 2 --block-size 1 --steps 40 {FEW} "
    "--lrs 0.03,0.1 --finish exact",
    "c-lstm": f"lstm --task s3 --hidden 8 --steps 30 {FEW} --lrs 0.003,0.03",
    "d-deltanet": f"deltanet --task parity --width 16 --steps 20 {FEW} --lrs 0.003,0.03",
    "e-second": f"second-order-rnn --task gridworld --hidden 6 --steps 30 {FEW} --lrs 0.003,0.03",
    "f-transformer": f"transformer --task flip-flop --train-length 4-10 --width 16 {FEW} "
    "--steps 20 --lrs 0.003,0.03",
    "g-exact": f"bilinear-block --task parity --hidden 4 --block-size 2 --steps 150 {LEARNED}",
    "h-full": f"bilinear --task s3 --hidden 6 --steps 250 {LEARNED} --finish exact",
}
"""The options of every run. By name they have the order in which they are trained."""

EVALUATIONS = {
    "a-cp": "--length 10,40 --samples 60 --all",
    "b-block": "--length 10-40:10 --samples 60 --all",
    "c-lstm": "--length 10,40,80 --samples 60 --words task --words group",
    "d-deltanet": "--length 40 --samples 60",
    "e-second": "--length 10,40 --samples 60 --seed 5",
    "f-transformer": "--length 10,40 --samples 60",
    "g-exact": "--length 10,40,200 --samples 60 --all",
    "h-full": "--length 10,40,200 --samples 60 --all",
}
"""How each run is evaluated once."""


@dataclass
class TrainedRuns:
    """A folder of small runs with evaluations, made when it is first asked for."""

    scratch: Path
    given: list[tuple[list[str], Printed]] = field(default_factory=list)

    def copy(self) -> None:
        """Copy all runs into `runs` in the current folder."""
        shutil.copytree(self._folder() / "runs", "runs", symlinks=True)

    def _folder(self) -> Path:
        folder = self.scratch / "trained"
        if not folder.exists():
            before = Path.cwd()
            folder.mkdir()
            os.chdir(folder)
            try:
                self._train()
            finally:
                os.chdir(before)
        return folder

    def _train(self) -> None:
        for name, options in TRAININGS.items():
            self._call(f"train --model {options} --out runs/{name}")
        for name, options in EVALUATIONS.items():
            self._call(f"eval runs/{name} {options}")

    def _call(self, line: str) -> None:
        words = shlex.split(line)
        printed = call(words)
        assert printed.code == 0, printed.error
        self.given.append((words, printed))


def record_runs(recorder: Recorder, trained: TrainedRuns) -> None:
    """What training and evaluation print, and every file of the runs that they leave."""
    trained.copy()
    for words, printed in trained.given:
        recorder.printed(words, printed, name=f"{words[0]} {_run_of(words)}")
    for run in TRAININGS:
        recorder.text(f"files of {run}", _files(f"runs/{run}"))
        recorder.commands(f"show runs/{run}\nshow runs/{run} --json")
    _record_lists(recorder)
    _record_evaluations(recorder)
    _record_continued(recorder)
    _record_trainings(recorder)
    _record_library(recorder)


def _run_of(words: list[str]) -> str:
    return next(Path(word).name for word in words if word.startswith("runs/"))


def _files(run: str) -> str:
    return folder_as_text(Path(run), RUN_FILES)


def _record_lists(recorder: Recorder) -> None:
    recorder.commands(
        """
        list runs
        list runs --json
        list runs --filter "task=s3 accuracy>=0.9"
        list runs --filter lstm
        list runs --runs runs/c-lstm
        cite runs/a-cp
        cite runs/c-lstm --json
        """
    )
    recorder.command("list", "runs", name="list runs wide", environment={"COLUMNS": "160"})


def _record_evaluations(recorder: Recorder) -> None:
    recorder.commands(
        """
        eval runs/c-lstm --length 10,50 --samples 50 --json
        eval runs/c-lstm --length 10,50 --samples 50 --csv --all
        eval runs/a-cp --length 12-60:x2 --samples 50 --csv
        eval runs/h-full --length 100 --samples 50 --words task --words group --words uniform --json
        eval runs/h-full --length 20 --samples 50 --task s3-two-tokens
        eval runs/e-second --length 30 --samples 50 --errors 3
        eval runs/e-second --length 30 --samples 50 --errors 2 --json
        eval runs/f-transformer --length 20 --samples 20 --task flip-flop-sparse
        eval runs/a-cp runs/b-block runs/nothing --length 20 --samples 20
        eval runs --length 20 --samples 20 --json --quiet
        eval
        """
    )
    recorder.text("files of c-lstm after evaluations", _files("runs/c-lstm"))


def _record_continued(recorder: Recorder) -> None:
    """A run that was left before its end: looked at, resumed, and then extended."""
    run = st.Run.start(
        model="lstm", task="parity", hidden=4, steps=30, validate_every=5, validation_words=32,
        seeds=2, lrs=[0.01, 0.1], batch_size=16, out="runs/left",
    )  # fmt: skip
    records = run.train()
    recorder.text("records of left", "\n".join(map(str, islice(records, 5))))
    records.close()
    recorder.text("files of left", _files("runs/left"))
    recorder.commands(
        """
        show runs/left
        eval runs/left --length 20 --samples 30
        list runs --runs runs/left
        report runs/left --format markdown
        train --resume runs/left
        eval runs/left --length 20 --samples 30 --all
        """
    )
    recorder.text("files of left, resumed", _files("runs/left"))
    recorder.commands("train --resume runs/left --steps 45 --json")
    recorder.text("files of left, extended", _files("runs/left"))
    recorder.commands("show runs/left --json\neval runs/left --length 20 --samples 30")


def _record_trainings(recorder: Recorder) -> None:
    """Further ways of training, and of giving settings."""
    few = "--task parity --steps 12 --validate-every 6 --validation-words 32 --batch-size 16"
    lines = {
        "json": f"--model gru --hidden 4 {few} --json",
        "protocol": "--protocol deltaproduct-paper --model deltaproduct --task s3 --steps 3 "
        "--width 16 --batch-size 4 --train-length 8 --validation-words 16 --seeds 1",
        "config": "--config runs/json/config.yaml --steps 8",
        "group": "--model rnn --hidden 4 --task permutation-reset --words group --steps 6 "
        "--batch-size 16 --validation-words 32",
        "fixed": f"--model lstm --hidden 4 {few} --train-samples 40",
        "noise": f"--model lstm --hidden 4 {few} --curriculum 0.5 --robust noise "
        "--optimizer adamw --warmup 0.2",
        "margin": f"--model bilinear --hidden 3 {few} --robust margin --finish exact --clip 1",
        "interval": f"--model lstm --hidden 3 {few} --robust interval --robust-start 0",
        "frozen": f"--model lstm --hidden 4 {few} --freeze recurrence --loss cross-entropy",
        "last": f"--model mamba --width 8 {few} --supervision last --schedule linear",
        "stopped": f"--model lstm --hidden 4 {few} --patience 1 --stop-loss 0.6 --lrs 0.001,0.5",
        "diverged": f"--model bilinear --hidden 3 {few} --lrs 1e30 --optimizer sgd --finish none",
        "traces": "--model rnn --hidden 4 --task regex:(a|b)*abb --steps 6 --batch-size 16 "
        "--validation-words 32",
    }
    for name, options in lines.items():
        recorder.command(
            "train", *shlex.split(options), "--out", f"runs/{name}", name=f"also {name}"
        )
        recorder.text(f"files of {name}", _files(f"runs/{name}"))


def _record_library(recorder: Recorder) -> None:
    for model, settings in (("lstm", {"hidden": 4}), ("bilinear", {"hidden": 3})):
        made = st.make_model(model, task="parity", **settings)
        recorder.library(f"st.train {model}", lambda made=made: _trained(made))
        recorder.library(f"st.evaluate {model}", lambda made=made: _evaluated(made))


def _trained(model: object) -> str:
    settings = {"steps": 12, "batch_size": 16, "validate_every": 6, "validation_words": 32}
    return "\n".join(map(str, st.train(model, "parity", lrs=[0.01], **settings)))


def _evaluated(model: object) -> str:
    return "\n".join(map(str, st.evaluate(model, "parity", [10, 30], num_words=50)))
