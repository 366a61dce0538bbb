"""Tables and pictures: reports, figures, pages, drawings of tasks, surveys of machines, sweeps."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import statetrack as st

from .files import RUN_FILES, file_as_text, folder_as_text, picture_as_text, table_as_text
from .knowledge import MACHINES
from .normalising import COLUMNS, normalised_csv
from .recording import Recorder
from .trained import TrainedRuns

REPORTS = """
    report runs
    report runs/a-cp runs/g-exact
    report runs --format markdown
    report runs --format latex --caption "A table" --label tab:one
    report runs --format json
    report runs --json
    report runs --long
    report runs --long --columns row,column,length,accuracy,best --format markdown
    report runs --transpose --best
    report runs --measure scaled --of best --format latex
    report runs --measure success --over seeds
    report runs --measure prefix --of mean --length 40
    report runs --measure horizon --of median --format markdown
    report runs --measure worst --transpose --format latex
    report runs --published
    report runs --out table.tex
    report runs --out table.md --transpose
"""

CSV_REPORTS = """
    report runs --format csv
    report runs --format csv --long
    report runs --format csv --columns row,column,length,accuracy
"""

PLOTS = (
    "plot runs --out length.svg",
    "plot runs/g-exact runs/b-block --out median.svg --of median --style paper --width column",
    "plot runs --kind heat --out heat.svg --width page --no-title",
    "plot runs --kind heat --measure prefix --length 40 --out prefix.svg --no-legend",
    "plot runs --kind data --axis steps --length 40 --out data.svg",
    "plot runs --kind data --axis hidden --length 40 --out hidden.svg",
    "plot runs --kind ablation --length 40 --out ablation.svg --title 'A title' --font 9",
    "plot runs/g-exact --kind angles --out angles.svg",
    "plot runs --kind length --out slides.svg --style slides --json",
    "eval runs/a-cp --length 10-40:10 --samples 20 --plot eval.svg",
)

DRAWN = (
    ("s3", "auto"),
    ("s3", "cayley"),
    ("s3", "table"),
    ("s3", "matrix"),
    ("parity", "diagram"),
    ("modular-addition:m=7", "panels"),
    ("gridworld", "auto"),
    ("s4-cascade", "auto"),
    ("tomita-4", "diagram"),
    ("office__coffee.dot", "auto"),
)

SUITE = """\
title: Two models on two tasks
reference: "own"
departures: few steps
settings: {seed: 3, seeds: 2, steps: 12, batch_size: 16, lrs: [0.01, 0.1], validate_every: 6, validation_words: 32}
models:
  small: {model: lstm, hidden: 4}
  blocks: {model: bilinear-block, hidden: 4, block_size: 2, finish: none}
tasks: {parity: parity, three: "cyclic:n=3"}
length: 30
samples: 40
curve_lengths: [10, 20]
budgets:
  minutes:
    says: Fewer steps.
    settings: {steps: 8}
published:
  small: {parity: 0.5, three: 1.0}
  blocks: {parity: 1.0}
"""  # noqa: E501

TINY = "--steps 8 --seeds 1 --lrs 0.01 --batch-size 16 --length 20 --samples 30 --jobs 1 --quiet"
SWEEPS = f"""
    sweep --model "lstm --hidden 4,bilinear-block" --task parity {TINY} --out sweeps/two
    sweep --model "lstm --hidden 4,bilinear-block" --task parity {TINY} --out sweeps/two --json
    sweep sweeps/two --finished
    sweep --model rnn --task parity --set hidden=3,5 {TINY} --out sweeps/axis --html axis.html
    report sweeps/axis
    report sweeps/axis --format latex
    list runs --runs sweeps
    compare sweeps/two
    reproduce suite.yaml --jobs 1 --stress-seconds 0 --markdown suite.md --html suite.html --quiet
    reproduce suite.yaml --finished --stress-seconds 0 --json
    reproduce suite.yaml --finished --budget hours
    report suite.yaml --published
    report suites/suite --format json
    show suite.yaml
    plot suite.yaml --kind heat --published --out suite.svg
    reproduce length-generalisation --rows LSTM --columns parity --steps 2 --seeds 1 --jobs 1 --stress-seconds 0 --quiet --out few
"""  # noqa: E501

ATLAS = """
    atlas machines --models lstm,mamba,bilinear --jobs 1 --markdown atlas.md
    atlas machines --models lstm,mamba,bilinear --jobs 1 --csv
    atlas machines --models lstm,mamba,bilinear --jobs 1 --json
    atlas machines/office__printer.dot --models lstm,mamba --jobs 1 --out one
    atlas machines/office__coffee.dot --models "rnn --hidden 4" --jobs 1 --train --steps 4 --seeds 1 --samples 20 --length 10,30 --quiet --out trained
"""  # noqa: E501


def record_reports(recorder: Recorder, trained: TrainedRuns) -> None:
    """Everything that is drawn or written about runs, suites and machines."""
    trained.copy()
    for line in ("probe runs/g-exact --only representation --seconds 300", "certify runs/c-lstm"):
        recorder.commands(line)
    recorder.commands(REPORTS)
    for line in CSV_REPORTS.strip().splitlines():
        recorder.command(*shlex.split(line), change=normalised_csv)
    recorder.commands("report runs --out page.html\nreport runs --out table.parquet")
    recorder.text("table.parquet", table_as_text(Path("table.parquet")))
    for page in ("page.html", "table.tex", "table.md"):
        recorder.text(page, page_as_text(Path(page)))
    for line in PLOTS:
        _record_picture(recorder, line)
    _record_drawings(recorder)
    recorder.library("st.make_report", lambda: "\n".join(map(str, _rows(st.make_report("runs")))))
    _record_sweeps(recorder)
    shutil.copytree(MACHINES, "machines")
    for line in ATLAS.strip().splitlines():
        change = normalised_csv if "--csv" in line else without_durations
        recorder.command(*shlex.split(line), change=change)
    recorder.text("atlas.md", without_durations(Path("atlas.md").read_text()))


def _rows(report: st.Report) -> list[tuple[object, ...]]:
    return [(each.row, each.column, each.state, each.rows) for each in report.entries]


def _record_picture(recorder: Recorder, line: str) -> None:
    words = shlex.split(line)
    recorder.command(*words)
    picture = Path(next(word for word in words if word.endswith(".svg")))
    if picture.exists():
        recorder.text(f"picture {picture.name}", picture_as_text(picture))


def _record_drawings(recorder: Recorder) -> None:
    for machine in MACHINES.iterdir():
        shutil.copy(machine, machine.name)
    for task, form in DRAWN:
        file = Path(f"drawn-{form}.svg")
        recorder.command("show", task, "--plot", str(file), "--plot-as", form)
        if file.exists():
            recorder.text(f"picture of {task} as {form}", picture_as_text(file))
            file.unlink()
    for ending in ("png", "pdf"):
        recorder.command("show", "s3", "--plot", f"s3.{ending}")
        recorder.text(f"s3.{ending}", file_as_text(Path(f"s3.{ending}")))


def _record_sweeps(recorder: Recorder) -> None:
    Path("suite.yaml").write_text(SUITE)
    for line in SWEEPS.strip().splitlines():
        recorder.command(*shlex.split(line), change=without_durations)
    dry = "sweep --model lstm --task parity --steps 4 --batch-size 16 --samples 30 --length 20"
    recorder.command(*shlex.split(f"{dry} --dry-run"), change=_in_one_line)
    recorder.text("files of two", folder_as_text(Path("sweeps/two"), RUN_FILES))
    recorder.text("files of suite", folder_as_text(Path("suites"), RUN_FILES))
    recorder.text("picture suite.svg", picture_as_text(Path("suite.svg")))
    for page in ("axis.html", "suite.html", "suite.md"):
        recorder.text(page, page_as_text(Path(page)))


def page_as_text(page: Path) -> str:
    """A page without durations, days and facts of the machine, its data over several lines."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r'(?<=id="row-data">)\{.*\}(?=</script>)', _row_data, text)
    text = re.sub(r"(<dt>(?:machine|version)</dt><dd>)[^<]*", r"\1MACHINE", text)
    text = re.sub(r"(?<=, added up, on ).*$", "MACHINE", text, flags=re.MULTILINE)
    return _without_column(without_durations(text), "s")


def _row_data(found: re.Match[str]) -> str:
    """The rows that a page keeps for its script, without columns that differ each time."""
    data = json.loads(found[0])
    for entry in data["entries"]:
        _replace_columns(entry, data["entry_fields"])
    long = data["long"]
    for run in long["runs"]:
        _replace_columns(run[0], [long["columns"][place] for place in long["once"]])
    return json.dumps(data, indent=1)


def _replace_columns(row: list[object], names: list[str]) -> None:
    for place, name in enumerate(names):
        if name in COLUMNS:
            row[place] = name.upper()


def _without_column(text: str, name: str) -> str:
    """A Markdown text whose tables have nothing in a column of this name."""
    lines, place = [], 0
    for line in text.splitlines():
        cells = line.split(" | ")
        if not line.startswith("|"):
            place = 0
        elif name in cells:
            place = cells.index(name)
        elif place and len(cells) > place:
            cells[place] = name
            line = " | ".join(cells)
        lines.append(line)
    return "\n".join([*lines, ""])


def without_durations(text: str) -> str:
    """A text in which no number of seconds, minutes or hours stands, and no day."""
    text = re.sub(r"\b\d[\d,.]*(?: |&nbsp;|\u00a0)(?:ms|s|min|h)\b *", "DURATION ", text)
    return re.sub(r"\b20\d\d-\d\d-\d\d(?![\dT])", "DAY", text)


def _in_one_line(text: str) -> str:
    """A text whose lines are broken where numbers of seconds have their places."""
    text = re.sub(r"with \d+ at a time", "with so many at a time", without_durations(text))
    return f"{' '.join(text.split())}\n"
