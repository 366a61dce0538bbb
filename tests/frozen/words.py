"""Words and labels: datasets in every format, machines as files, and what the library draws."""

from __future__ import annotations

import shlex
import shutil
from itertools import islice
from pathlib import Path

import statetrack as st

from .files import folder_as_text, hash_of_arrays
from .knowledge import MACHINES
from .recording import Recorder
from .trained import TrainedRuns

FEW = "--samples 40 --validation-samples 15 --test-samples 12 --test-length 12,30"
FORMATS = ("parquet", "jsonl", "npz", "csv", "lm-eval")
DATASETS = (
    *(f"s3 {FEW} --format {name}" for name in FORMATS),
    *(f"parity {FEW} --format {name} --supervision last --seed 7" for name in FORMATS),
    *(f"dyck-1 {FEW} --format {name} --length 4-12" for name in ("parquet", "jsonl")),
    f"flip-flop {FEW} --format npz --length 8",
    f"office__coffee.dot {FEW} --format csv",
    f"permutation-reset {FEW} --format jsonl --words group",
    f"permutation-reset {FEW} --format jsonl --words uniform",
    f"s4 {FEW} --format jsonl --words group",
    f"gated-parity {FEW} --format jsonl --words group:Z2",
    f"office__coffee.dot {FEW} --format jsonl --words group",
    f"office__coffee.dot {FEW} --format jsonl --words weighted:weights.csv",
    f"office__coffee.dot {FEW} --format jsonl --words weighted:weights.yaml",
    "anbn --samples 20 --validation-samples 4 --test-samples 4 --test-length 24 --length 4-20",
    f"adder {FEW} --format jsonl",
    f"random-fsm:states=7,symbols=2,seed=3 {FEW} --format jsonl",
    f"modular-arithmetic-with-brackets {FEW} --format jsonl --length 5-15",
    f"s3 {FEW} --format lm-eval --text repl",
    f"s3 {FEW} --format lm-eval --text repl --reveal 0.4",
    f"parity {FEW} --format lm-eval --prompt 'After {{word}} comes'",
    "parity --length 1-4 --samples 20 --validation-samples 8 --test-samples 9 --test-length 5 "
    "--format jsonl",
    "ends-with-ab --length 3 --samples 6 --validation-samples 2 --test-samples 16 --test-length 4 "
    "--format jsonl",
    "s3 s5 parity --samples 20 --validation-samples 4 --test-samples 4 --format jsonl --json",
    "--samples 20 --validation-samples 4 --test-samples 4 --format npz",
)
"""Small datasets, each into a folder of its own."""

LARGE = (
    "s5 --length 2-6 --samples 1048700 --validation-samples 10 --test-samples 10 --test-length 12",
    "s5 --length 2-6 --samples 1048700 --validation-samples 10 --test-samples 10 --test-length 12 "
    "--format npz",
)
"""So many words that they go over files."""

MACHINE_FORMATS = ("dot", "kiss2", "aut", "jff", "fst", "scxml", "xstate")
MACHINE_TASKS = ("parity", "gated-parity", "s3", "adder", "office__coffee.dot")

WEIGHTS = {
    "weights.csv": "symbol,weight\ncoin,3\nbrew,1\nswitch,0.5\n",
    "weights.yaml": "empty: {coin: 3, brew: 1}\npaid: {coin: 1, brew: 5}\n'off': {switch: 1}\n",
}

SAMPLED = (
    *("parity", "s3", "s5", "flip-flop", "flip-flop-sparse", "dyck-1", "shuffle-4", "anbncn"),
    *("boolean-3", "modular-arithmetic", "modular-arithmetic-with-brackets", "tomita-4"),
    *("cycle-navigation", "z60", "point", "random-permutations", "turnstile", "five-blocks"),
)


def record_data(recorder: Recorder, _: TrainedRuns) -> None:
    """Files of datasets and of machines, and hashes of words that the library draws."""
    for machine in MACHINES.iterdir():
        shutil.copy(machine, machine.name)
    for name, text in WEIGHTS.items():
        Path(name).write_text(text)
    for words in (*DATASETS, *LARGE):
        _record_dataset(recorder, words)
    _record_replacing(recorder)
    for task in MACHINE_TASKS:
        for name in MACHINE_FORMATS:
            _record_machine(recorder, task, name)
    for task in SAMPLED:
        recorder.library(f"sample {task}", lambda task=task: _sampled(st.load_task(task)))
        recorder.library(f"stream {task}", lambda task=task: _streamed(task))
    for words in ("group", "uniform", "weighted:weights.csv"):
        task = st.load_task("office__coffee.dot")
        recorder.library(
            f"sample coffee {words}",
            lambda task=task, words=words: _sampled(task.with_words(words)),
        )


def _record_dataset(recorder: Recorder, words: str) -> None:
    shutil.rmtree("data", ignore_errors=True)
    recorder.command("gen", *shlex.split(words))
    recorder.text(f"files of {words}", folder_as_text(Path("data")))
    for card in sorted(Path("data").rglob("card.json")):
        recorder.library(f"read {card.parent.name} {words}", lambda card=card: _read(card.parent))


def _read(folder: Path) -> str:
    dataset = st.read_dataset(folder)
    return "\n".join(f"{name}: {_hash_of(batch)}" for name, batch in dataset.splits.items())


def _hash_of(batch: st.Batch) -> str:
    return hash_of_arrays(batch.symbols, batch.labels, batch.scored, batch.lengths)


def _record_replacing(recorder: Recorder) -> None:
    """A dataset in place of another: refused, and with --force not."""
    few = "gen parity --samples 10 --validation-samples 2 --test-samples 2 --out replaced"
    recorder.commands(f"{few}\n{few}\n{few} --seed 1 --force\n{few} --format jsonl --force --quiet")
    recorder.text("files of replaced", folder_as_text(Path("replaced")))
    recorder.commands("audit ./replaced\naudit ./replaced --json")


def _record_machine(recorder: Recorder, task: str, name: str) -> None:
    shutil.rmtree("data", ignore_errors=True)
    recorder.command("gen", task, "--format", name)
    recorder.text(f"file of {task} {name}", folder_as_text(Path("data")))
    for file in sorted(Path("data").rglob("*.*")):
        recorder.command("show", str(file), name=f"show {task} {name}")


def _sampled(task: st.Task) -> str:
    lines = []
    for seed, length, supervision in ((0, None, None), (5, "3-9", "last"), (1, 20, "every")):
        batch = task.sample(8, length=length, seed=seed, supervision=supervision)
        lines.append(f"seed {seed}, length {length}: {_hash_of(batch)}")
        word = [int(symbol) for symbol in batch.symbols[0][: batch.lengths[0]]]
        lines.append(f"    {task.format_word(word)}")
        lines.append(f"    {task.format_labels(word)}")
    return "\n".join(lines)


def _streamed(task: str) -> str:
    stream = st.stream(task, batch_size=6, length="4-12", seed=3)
    taken = [(batch.symbols, batch.labels, batch.scored) for batch in islice(stream, 3)]
    return "\n".join(hash_of_arrays(*arrays) for arrays in [*taken, _parts(stream[7])])


def _parts(batch: object) -> tuple[object, ...]:
    return batch.symbols, batch.labels, batch.scored
