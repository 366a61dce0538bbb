"""Run folders: a finished run, an unfinished one, a suite's cell and one with a plugin, damaged."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random
from typing import Any

import yaml
from rich.console import Console

from statetrack.catalogue import LISTINGS, describe_run
from statetrack.cli._descriptions import draw_run
from statetrack.evidence import Failure
from statetrack.report import FORMATS, Wanted, make_report
from statetrack.runs import Run, compare, files, find_run_folders
from statetrack.sweep import PointResult, points_of
from statetrack.sweep.suite import read_suite
from statetrack.sweep.work import run_point
from tests.fuzz import mutations
from tests.fuzz.command_lines import import_all, run_command
from tests.fuzz.harness import PLANTED, Case, require, require_printable
from tests.setups import certificate_of, exhaustive_of, worst_case_of

SMALL = {
    "model": "bilinear-cp",
    "task": "parity",
    "hidden": 3,
    "rank": 2,
    "batch_size": 2,
    "validation_words": 3,
    "threads": 1,
    "device": "cpu",
}
SUITE = {
    "title": "A suite of one cell",
    "settings": {key: value for key, value in SMALL.items() if key not in {"model", "task"}}
    | {"steps": 2},
    "models": {"cp": {"model": "bilinear-cp"}},
    "tasks": {"parity": "parity"},
    "length": 4,
    "samples": 2,
    "curve_lengths": [3],
}

HIDDEN = (
    *(".training.lock", ".append.lock", "eval.jsonl", "metrics.jsonl", "evidence.jsonl"),
    "checkpoint.pt",
)
"""Files that are opened to be written, and need not be there."""


COMMAND, TAG = r"\input{fuzz}", "<script>fuzz"
SWAPS: tuple[Any, ...] = (
    f"{COMMAND}{TAG}|`",
    {"a": 1},
    [1],
    [],
    {},
    None,
    True,
    -1,
    "7",
    10**40,
    1e308,
)
"""Values of every type, to stand in the place of others."""

EVIDENCE = (
    exhaustive_of(),
    certificate_of(3),
    worst_case_of(Failure((1,), (0, 1), 8, 1, None)),
)
"""What was found of the runs, as if it had been."""


def make_runs(folder: Path) -> None:
    """The four runs, in a folder each."""
    finished = Run.start(out=folder / "finished", **SMALL, steps=3, seeds=2, validate_every=1)
    for _ in finished.train():
        pass
    finished.evaluate([3, 20], num_words=3, everyone=True)
    for evidence in EVIDENCE:
        finished.add_evidence(evidence, finished.selected)
    unfinished = Run.start(out=folder / "unfinished", **SMALL, steps=20, seeds=2, validate_every=5)
    for record in unfinished.train(lambda: True):
        assert record.step <= 20
    (folder / "suite.yaml").write_text(json.dumps(SUITE))
    suite = read_suite(folder / "suite.yaml")
    for cell in points_of(suite, folder / "cells", {}):
        result = run_point(suite, cell)
        assert result is not None
        searched = {each.kind: 1.0 for each in EVIDENCE}
        content = replace(result, evidence=EVIDENCE, searched=searched).to_json()
        Run.open(cell.path).folder.write(files.CELL, content)
    shutil.move(folder / "cells" / "parity" / "cp", folder / "cell")
    shutil.rmtree(folder / "cells")
    (folder / "suite.yaml").unlink()
    shutil.copytree(folder / "finished", folder / "plugin")
    (folder / "plugin" / "plugin.py").write_text(PLANTED)


class RunFolders:
    """A run folder with one or two damages, then all that reads or continues it."""

    name = "run-folders"

    def prepare(self, folder: Path) -> None:
        """Train the runs."""
        import_all()
        self.runs = folder
        make_runs(folder)
        self.names = sorted(path.name for path in folder.iterdir())
        self.files = sorted(path for path in folder.rglob("*") if path.is_file())

    def attempt(self, case: Case) -> None:
        """Damage a copy of one run, and use it."""
        random = case.random
        path = Path("runs") / random.choice(self.names)
        shutil.copytree(self.runs / path.name, path)
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            case.note(self._damage(random, path))
        use(case, path)

    def _damage(self, random: Random, folder: Path) -> str:
        draw = random.random()
        if draw < 0.02:
            name = random.choice(HIDDEN)
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to("../../../secret.txt")
            return f"{name} is a symbolic link to a file outside"
        if draw < 0.25:
            return mutations.change_folder(random, folder, self.files)
        files = [path for path in mutations.plain_files(folder) if path.suffix != ".lock"]
        if not files:
            return "nothing left to damage"
        path = random.choice(files)
        if draw < 0.3 or path.suffix in {".pt", ".safetensors", ".py"}:
            path.write_bytes(mutations.change_bytes(random, path.read_bytes()))
            return f"{path}: bytes changed"
        try:
            _change_content(random, path)
        except Exception:  # it was damaged before, and is read here without any care
            return f"{path}: damaged already"
        return f"{path}: values changed"


def _change_content(random: Random, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
        changed = _change(random, rows)
        rows = changed if isinstance(changed, list) else [changed]
        new = "".join(mutations.as_json(row) + "\n" for row in rows)
    else:
        content: Any = yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)
        new = mutations.as_json(_change(random, content))
    path.write_bytes(new.encode("utf-8", "surrogatepass"))


def _change(random: Random, content: Any) -> Any:
    """The content with some of its parts changed, or with a value of another type in one place."""
    if random.random() < 0.4:
        return mutations.change_values(random, content)
    return swapped(content, random.choice(mutations.places(content)), random.choice(SWAPS))


def swapped(content: Any, place: Sequence[Any], value: Any) -> Any:
    """The content with a value in a place."""
    new = deepcopy(content)
    holder = new
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = deepcopy(value)
    return new


def require_escaped(form: str, text: str | bytes) -> None:
    """Text of a file means nothing to the format of a report; LaTeX reads no comments."""
    if form == "latex":
        read = [line for line in str(text).splitlines() if not line.startswith("%")]
        require(COMMAND not in "\n".join(read), f"a report has raw LaTeX: {COMMAND}")
    elif form in ("markdown", "html"):
        require(TAG not in str(text), f"a report in {form} has a raw tag: {TAG}")


def draw_reports(path: Path, forms: Iterable[str] = FORMATS) -> None:
    """Draw a report of a run in each format, also as lines for each length."""
    report = make_report(path)
    for form in forms:
        for long in (False, True) if form in ("rich", "markdown", "latex") else (False,):
            require_escaped(form, Wanted(form=form, long=long).of_report(report))


def show(path: Path) -> None:
    """Describe a run as `show RUN` does, and draw it."""
    about = describe_run(path)
    json.dumps(about, allow_nan=False)
    draw_run(about, Console(file=StringIO(), width=100))


def use(case: Case, path: Path) -> None:
    """Read the run, and then either evaluate it, continue it, or list it among others."""
    run = case.call("Run.open", lambda: Run.open(path))
    if run is not None:
        require_printable(repr(run), "a run's repr")
        case.call("run.summary", lambda: run.summary)
        case.call("run.rows", lambda: run.rows)
        case.call("run.records", lambda: run.records)
        case.call("run.evidence()", run.evidence)
        case.call("folder.cell", lambda: _cell(run))
    draw = case.random.random()
    if draw < 0.2:
        case.call("show", lambda: show(path))
    elif draw < 0.5:
        form = case.random.choice(list(FORMATS))
        case.call(f"report --format {form}", lambda: draw_reports(path, [form]))
    draw = case.random.random()
    if draw < 0.25 and run is not None:
        case.call("run.evaluate([4], num_words=1)", lambda: run.evaluate([4], num_words=1))
        case.call("run.model(0)", lambda: run.model(0))
    elif draw < 0.55:
        case.call("Run.resume, one step", lambda: list(Run.resume(path).train(lambda: True)))
    elif draw < 0.7:
        case.call("list runs", lambda: list(LISTINGS["runs"].rows([path.parent])))
    elif draw < 0.85:
        case.call(
            "compare", lambda: [c.to_json() for c in compare(find_run_folders([path.parent]))]
        )
    elif draw < 0.9:
        run_command(case, ["cite", str(path)])
    elif draw < 0.94:
        run_command(case, ["list", "runs"])
    elif draw < 0.97:
        run_command(case, ["compare", str(path)])
    elif draw < 0.98:
        run_command(case, ["certify", str(path), "--seconds", "0.1"])
    else:
        run_command(case, ["eval", str(path), "--length", "4", "--samples", "1", "--all"])


def _cell(run: Run) -> PointResult | None:
    kept = run.folder.find(files.CELL)
    return None if kept is None else PointResult.from_json(kept, "cell")
