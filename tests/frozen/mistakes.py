"""Typical mistakes on the command line and in files: the exit code and what is said."""

from __future__ import annotations

import shutil
from pathlib import Path

from .knowledge import MACHINES
from .normalising import normalised_csv
from .recording import Recorder, call
from .trained import TrainedRuns

RUN = "train --model lstm --hidden 4 --task parity --steps 2 --validation-words 8 --out run --quiet"
DATASET = (
    "gen parity --samples 20 --validation-samples 5 --test-samples 5 --test-length 12 "
    "--format jsonl --out dataset --quiet"
)

NAMES_AND_OPTIONS = """
    trian
    evaluate
    LIST
    --no-such-option
    list model
    list nothing
    list tasks --filter "states<=many"
    show s33
    show S3
    show modular_addition
    show bilinear_cp
    show task:lstm
    show nothing:parity
    show s3 --plot s3.txt
    show s3 --plot s3.svg --plot-as circle
    show s3 --width 3
    show modular-addition:m=none
    show modular-addition:n=3
    show symmetric:n=40
    show "regex:(a|b"
    predict
    predict s3 --models lstmm
    predict s3 --models "lstm --hidden none"
    predict s3 --models "lstm --rank 3"
    predict s6
    cite nobody
    audit s3 --length 0
    audit no-such-folder
    gen s3 --samples 0
    gen s3 --length 10-2
    gen s3 --test-length 10:5
    gen s3 --format excel
    gen s3 --format dot --samples 10
    gen s3 --prompt "{word}"
    gen s3 --format lm-eval --prompt nothing
    gen parity --samples 100 --length 2
    gen dyck-1 --format dot
    gen s3 --words none
    train --model lstmm
    train --modle lstm
    train --model lstm --rank 4
    train --learning-rate 0.1
    train --epochs 3
    train --steps
    train --steps many
    train --steps 0
    train --steps 1.5
    train --lrs 0.1,x
    train --lrs -1
    train --task s33
    train --task s3 --words group:Z7
    train --words weighted:nothing.csv
    train --model bilinear-block --hidden 5 --block-size 2
    train --loss squared
    train --device quantum
    train --protocol nothing
    train --config nothing.yaml
    train --train-length 0
    train --robust-size 2
    train --log paper
    train --quiet --verbose
    train --name --hidden 3
    train extra words
    eval nothing
    eval
    certify
    compare
    report
    report nothing
    plot nothing
    plot nothing --out figure.svg
    report hierarchy --budget days
    sweep
    sweep nothing.yaml
    sweep --model lstm
    sweep --model lstm --task s3 --set hiden=3
    sweep --model lstm --task s3 --set hidden
    sweep --model lstm --task s3 --executor cloud
    reproduce nothing
    reproduce hierarchy --budget days --dry-run
    atlas nothing
    score nothing --data nothing
    score answers
    check nothing.py
    check
    info extra
    list models --plugin nothing.py
"""
"""Names, options and values that are wrong; nothing stands in the folder."""

WITH_A_RUN = """
    train --model lstm --out run
    train --model lstm --out notes
    train --model lstm --out notes --force
    train --resume run
    train --resume run --steps 1
    train --resume run --steps 4 --hidden 5
    train --resume notes
    eval run --length 0
    eval run --length 2000000
    eval run --length ten
    eval run --task s3
    eval run --replica 3
    eval run --json --csv
    eval run --plot run.txt
    eval notes
    certify run --replica 9
    certify run --seconds 0
    extract run --algorithm guess
    extract run --out machine.txt
    probe run --only everything
    snap run
    plot run --out run.svg
    plot run --out run.doc
    plot run --out run.svg --kind pie
    plot run --out run.svg --kind angles
    report run --format word
    report run --measure luck
    report run --columns nothing --long
    report run --caption "A table"
    report run --length 77
    compare notes
    cite notes
    show ./notes
    gen parity --out dataset --samples 20 --test-samples 5
    gen parity --out notes --samples 20 --test-samples 5 --force
    audit dataset --samples 10
    score dataset/data/test_len12.jsonl --data dataset
    score dataset --data notes
"""
"""Mistakes about a run of two steps, a dataset, and a folder of somebody's notes."""

FILES = {
    "broken.yaml": "title: [a\n",
    "untitled.yaml": "version: 1\nautomaton: {kind: parity}\n",
    "no-kind.yaml": "title: A task\nversion: 1\nreference: own\nautomaton: {kind: party}\n"
    "examples: {'0 1': '0 1', '1 1': '1 0'}\n",
    "wrong-example.yaml": "title: A task\nversion: 1\nreference: own\nautomaton: {kind: parity}\n"
    "examples: {'0 1': '0 0', '1 1': '1 0'}\n",
    "wrong-key.yaml": "title: A task\nversion: 1\ntrian_length: 3\nautomaton: {kind: parity}\n",
    "wrong-state.yaml": "title: A task\nversion: 1\nreference: own\n"
    "automaton:\n  kind: transitions\n  start: red\n"
    "  states:\n    red: {next: gren}\n    green: {next: red}\n",
    "half.dot": "digraph half {\n  __start0 -> a;\n  a -> b [label=",
    "no-start.dot": 'digraph none {\n  a -> b [label="x / y"];\n  b -> a [label="x / z"];\n}\n',
    "two-ways.dot": 'digraph two {\n  __start0 -> a;\n  a -> b [label="x / y"];\n'
    '  a -> a [label="x / z"];\n}\n',
    "short.kiss2": ".i 2\n.o 1\n.s 2\n.p 2\n00 a b\n.e\n",
    "other.txt": "not a machine\n",
    "suite.yaml": "title: A suite\nreference: own\n"
    "models: {a: {model: lstm}}\ntasks: {b: {task: s33}}\n",
    "empty.py": '"""Nothing is registered here."""\n',
    "raises.py": 'raise KeyError("width")\n',
    "settings.yaml": "model: lstm\nhiden: 3\n",
}
"""Files with mistakes, by name."""

WITH_FILES = """
    show broken.yaml
    show untitled.yaml
    show no-kind.yaml
    show wrong-example.yaml
    show wrong-key.yaml
    show wrong-state.yaml
    show half.dot
    show no-start.dot
    show two-ways.dot
    show short.kiss2
    show other.txt
    train --task other.txt
    predict broken.yaml
    sweep suite.yaml
    sweep suite.yaml --dry-run
    reproduce broken.yaml
    train --config settings.yaml
    train --config broken.yaml
    check empty.py
    check raises.py
    list models --plugin raises.py
    audit other.txt
    score other.txt --data dataset
"""

DAMAGES = (
    ("weights.safetensors", "cut"),
    ("weights.safetensors", "changed"),
    ("weights.safetensors", "gone"),
    ("config.yaml", "cut"),
    ("config.yaml", "gone"),
    ("task.yaml", "cut"),
    ("task.yaml", "gone"),
    ("summary.json", "cut"),
    ("summary.json", "gone"),
    ("environment.json", "cut"),
    ("metrics.jsonl", "cut"),
)
"""What is done to a file of a run before it is evaluated."""


LEFT = 60
"""Bytes of a file that is cut: before any number that differs each time."""


def record_errors(recorder: Recorder, _: TrainedRuns) -> None:
    """Mistakes with nothing at hand, with a run and a dataset, with wrong files, with damage."""
    recorder.commands(NAMES_AND_OPTIONS)
    recorder.command("reproduce", "hierarchy", "--rows", "nobody", change=_sorted_names)
    assert call(RUN.split()).code == 0
    assert call(DATASET.split()).code == 0
    Path("notes").mkdir()
    Path("notes", "notes.txt").write_text("mine\n")
    recorder.commands(WITH_A_RUN)
    for name, text in FILES.items():
        Path(name).write_text(text)
    recorder.commands(WITH_FILES)
    for file, damage in DAMAGES:
        _record_damage(recorder, file, damage)
    _record_damaged_dataset(recorder)
    Path("street.kiss2").write_bytes(MACHINES.joinpath("street__lights.kiss2").read_bytes()[:90])
    recorder.command("show", "street.kiss2")


def _sorted_names(text: str) -> str:
    """A message with the names that it lists in order: theirs is another in every process."""
    before, said, names = text.rstrip(".\n").partition("Known are: ")
    return f"{before}{said}{', '.join(sorted(names.split(', ')))}\n"


def _record_damage(recorder: Recorder, file: str, damage: str) -> None:
    shutil.rmtree("damaged", ignore_errors=True)
    shutil.copytree("run", "damaged")
    _damage(Path("damaged", file), damage)
    for command in ("eval damaged --samples 10", "show ./damaged"):
        recorder.command(*command.split(), name=f"{file} {damage} {command}")
    words = ("report", "damaged", "--format", "csv")
    recorder.command(*words, name=f"{file} {damage} report", change=normalised_csv)


def _damage(path: Path, damage: str) -> None:
    held = path.read_bytes()
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(held[:LEFT])
    else:
        path.write_bytes(held[:-3] + bytes(255 - byte for byte in held[-3:]))


def _record_damaged_dataset(recorder: Recorder) -> None:
    for file in ("train.jsonl", "test_len12.jsonl"):
        for damage in ("cut", "gone"):
            shutil.rmtree("damaged", ignore_errors=True)
            shutil.copytree("dataset", "damaged")
            _damage(Path("damaged", "data", file), damage)
            recorder.command("audit", "./damaged", name=f"dataset {file} {damage}")
