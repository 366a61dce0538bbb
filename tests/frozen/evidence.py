"""What is found about runs beyond accuracies, scores of answers from elsewhere, and `check`."""

from __future__ import annotations

import itertools
import json
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import statetrack as st

from .files import RUN_FILES, folder_as_text, picture_as_text
from .recording import Recorder, call
from .trained import TrainedRuns

TICK = 0.002
"""Seconds that a counted clock goes on, each time that it is read."""

ENDING_BY_THEMSELVES = """
    certify runs/a-cp --seconds 300
    certify runs/b-block --seconds 300 --all
    certify runs/c-lstm --seconds 300 --json
    certify runs/d-deltanet --seconds 300
    certify runs/e-second --seconds 300 --replica 0
    certify runs/f-transformer --seconds 300
    certify runs/g-exact --seconds 300 --json --quiet
    probe runs/a-cp --only representation,myhill-nerode --seconds 300
    probe runs/b-block --only representation,myhill-nerode --seconds 300 --json
    probe runs/g-exact --only representation,myhill-nerode --seconds 300
    probe runs/h-full --only representation,myhill-nerode --seconds 300 --json
    probe runs/h-full --only representation --seconds 300 --plot figures
    probe runs/c-lstm --only myhill-nerode --seconds 300
    extract runs/a-cp --words 3000 --random-words 50 --length 30 --states 20 --seconds 300
    extract runs/b-block --words 3000 --random-words 50 --length 30 --seconds 300 --json
    extract runs/c-lstm --words 3000 --random-words 50 --length 30 --states 20 --seconds 300
    extract runs/e-second --words 3000 --random-words 50 --length 30 --states 9 --algorithm kv
    extract runs/g-exact --words 3000 --random-words 50 --length 30 --out machine.dot
    extract runs/g-exact --words 3000 --random-words 50 --length 30 --out machine.yaml --json
    extract runs/h-full --words 3000 --length 30 --out machine.kiss2 --plot machine.svg
    extract runs/h-full --words 3000 --random-words 50 --length 30 --out machine.aut --algorithm kv
    snap runs/g-exact --seconds 300
    snap runs/h-full --seconds 300 --out runs/snapped --json
    snap runs/h-full --out runs/snapped
    snap runs/a-cp --seconds 300
    eval runs/c-lstm --length 20,60 --samples 50 --stress --seconds 300
    eval runs/a-cp --length 20 --samples 50 --stress --seconds 300 --json
    eval runs/snapped --length 20,200 --samples 50
"""
"""Searches of runs that come to their end long before the time that they are given."""

ENDED_BY_THE_CLOCK = """
    probe runs/g-exact --only error-control --seconds 0.15 --json
    probe runs/c-lstm --only error-control --seconds 0.15
    certify runs/h-full --seconds 2 --quiet
"""
"""Searches that take what time there is."""

LOOKED_AT = """
    compare runs
    compare runs --json
    compare runs/g-exact runs/c-lstm
    show runs/g-exact
    show runs/g-exact --json
    show runs/h-full
    show runs/c-lstm
    list runs --filter bilinear
"""

GOOD_MODEL = '''"""A sum of numbers that are learned for every symbol."""

import statetrack as st
from torch import nn


class FrozenSumSettings(st.ModelSettings):
    """Settings of a sum."""

    hidden: int = st.option(8, "Numbers that are summed.", least=1)


@st.MODELS.register("frozen-sum")
class FrozenSum(st.SequenceModel):
    """A sum of numbers that are learned for every symbol."""

    settings_class = FrozenSumSettings

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.amounts = nn.Embedding(num_symbols, settings.hidden)
        self.readout = nn.Linear(settings.hidden, num_labels)

    def forward(self, symbols):
        return self.readout(self.amounts(symbols).cumsum(1))
'''

WRONG_MODEL = (
    GOOD_MODEL.replace("cumsum(1)", "flip(1).cumsum(1).flip(1)")
    .replace("FrozenSum", "FrozenFuture")
    .replace("frozen-sum", "frozen-future")
)


def record_evidence(recorder: Recorder, trained: TrainedRuns) -> None:
    """Certificates, probes, machines, exact representations, comparisons, scores and checks."""
    trained.copy()
    for line in shlex_lines(ENDING_BY_THEMSELVES):
        recorder.command(*line)
    with counted_clock():
        for line in shlex_lines(ENDED_BY_THE_CLOCK):
            recorder.command(*line)
    recorder.commands(LOOKED_AT)
    for run in ("g-exact", "h-full", "c-lstm", "a-cp"):
        recorder.text(f"evidence of {run}", Path("runs", run, "evidence.jsonl").read_text())
    for run in ("g-exact-snapped", "snapped"):
        recorder.text(f"files of {run}", folder_as_text(Path("runs", run), RUN_FILES))
    for machine in ("machine.dot", "machine.yaml", "machine.kiss2", "machine.aut"):
        recorder.text(machine, Path(machine).read_text())
    for picture in (Path("machine.svg"), *sorted(Path("figures").iterdir())):
        recorder.text(f"picture {picture.name}", picture_as_text(picture))
    _record_library(recorder)
    _record_scores(recorder)
    _record_checks(recorder)


def shlex_lines(text: str) -> list[list[str]]:
    """The command lines of a text."""
    return [shlex.split(line) for line in text.strip().splitlines()]


@contextmanager
def counted_clock() -> Iterator[None]:
    """A monotonic clock that goes on by being read: the same work ends at the same place.

    Where only outputs under this clock differ, it may be that the clock is read more often.
    """
    before: Callable[[], float] = time.monotonic
    count = itertools.count()
    time.monotonic = lambda: TICK * next(count)
    try:
        yield
    finally:
        time.monotonic = before


def _record_library(recorder: Recorder) -> None:
    run = st.Run.open("runs/c-lstm")
    recorder.library("st.certify", lambda: st.certify(run.model(), "s3", seconds=300).failure)
    recorder.library("st.Run.rows", lambda: "\n".join(map(str, run.rows)))
    recorder.library("st.Run.summary", lambda: "\n".join(map(str, run.summary.replicas)))
    recorder.library("st.check_model", _checked)


def _checked() -> str:
    return "\n".join(map(str, st.check_model(st.MODELS["lstm"], num_symbols=3, num_labels=2)))


def _record_scores(recorder: Recorder) -> None:
    """Answers from elsewhere: all right, some wrong, none, and only the last."""
    assert call(
        "gen parity --samples 200 --validation-samples 20 --test-samples 40 --test-length 20,60 "
        "--format jsonl --out dataset --quiet".split()
    ).code == 0  # fmt: skip
    splits = st.read_dataset("dataset").splits
    for name in ("answers", "right", "last"):
        Path(name).mkdir()
    for name, words in splits.items():
        labels = words.labels.astype(np.int64)
        np.save(f"right/{name}.npy", labels)
        np.save(f"last/{name}.npy", words.last_labels().astype(np.int64))
        labels[:7, -3:] = 0
        labels[3, 5:] = -1
        rows = [row[:length].tolist() for row, length in zip(labels, words.lengths, strict=True)]
        lines = "".join(json.dumps({"answers": row}) + "\n" for row in rows)
        Path(f"answers/{name}.jsonl").write_text(lines)
    recorder.commands(
        """
        score answers --data dataset
        score answers --data dataset --json
        score right --data dataset
        score right/test_len60.npy --data dataset --json
        score last --data dataset
        """
    )
    answers = {name: np.load(f"last/{name}.npy") for name in splits}
    recorder.library("st.score", lambda: "\n".join(map(str, st.score(answers, "dataset"))))


def _record_checks(recorder: Recorder) -> None:
    """Last, for the models of these files are known from then on."""
    Path("good.py").write_text(GOOD_MODEL)
    Path("wrong.py").write_text(WRONG_MODEL)
    recorder.commands(
        """
        check good.py
        check good.py --json
        check wrong.py
        check wrong.py --json
        check good.py --model nothing
        train --plugin good.py --model frozen-sum --task parity --steps 6 --out runs/own
        eval runs/own --length 20 --samples 20
        eval runs/own --length 20 --samples 20 --trust-plugin
        list runs --filter frozen-sum
        """
    )
