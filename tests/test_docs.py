"""The pages do what they say: their commands run, their examples load, their keys are written.

A page is read from top to bottom in a folder of its own. A block after `<!-- file: NAME -->` is
saved there under that name; every line `$ statetrack ...` of a console block is run there, and
the lines printed beneath it must come out, in that order (`...` stands for what is left out).
So is every line `$ python FILE.py`, in the same process.
A console block after `<!-- not run: REASON -->` is passed over, and one after
`<!-- slow: REASON -->` is run by `-m slow` only. Of one after `<!-- numbers vary: REASON -->`, and
of slow ones, numbers are not compared: they are those of the computer that wrote the page.
"""

import doctest
import importlib
import inspect
import json
import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest
import safetensors.torch
import yaml

import statetrack
from statetrack import ops
from statetrack.audit import LONGEST_LOOKUP, VIEWS
from statetrack.catalogue import ALGEBRA
from statetrack.cli.app import find_commands, run
from statetrack.models import MODELS
from statetrack.plugins import load_plugin
from statetrack.references import ids_in, references
from statetrack.report.plain_values import COLUMNS as COLUMNS_OF_REPORTS
from statetrack.spec import TaskSpec, load_task
from statetrack.sweep import Budget, Suite
from statetrack.sweep.suite import PublishedTable
from statetrack.training import DataSettings, Protocol, TrainSettings
from tests.new_process import forget_plugins
from tests.test_architecture import face

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
COLUMNS = "100"

FENCE = re.compile(
    r"(?:<!-- (?P<mark>file|not run|slow|numbers vary): (?P<text>[^\n]+?) -->\n+)?"
    r"^(?P<fence>```+)(?P<language>[^\s`]*)[^\n]*\n(?P<body>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
VARIES = (
    (re.compile(r"fails: symbol [1-4]?\d{1,2} of .*"), "fails: symbol FEW of WORD"),
    (
        re.compile(r"up to [\d,]{7,} symbols is answered rightly"),
        "up to MANY symbols is answered rightly",
    ),
    (
        re.compile(r"up to [4-9] symbols is answered rightly"),
        "up to FEW symbols is answered rightly",
    ),
    (re.compile(r"\d{8}-\d{6}"), "TIME"),
    (re.compile(r"\d+(\.\d+)?e-\d+"), "SMALL"),
    (re.compile(r"\d+(\.\d+)? s\b"), "SECONDS"),
    (re.compile(r"\d+ steps in"), "STEPS in"),
    (re.compile(r"\blr [\d.]+"), "lr LR"),
    (re.compile(r"[\d.]+ │ +\d+ │(?= +\S+ │ +[\d.]+ │ ◀)"), "LR │ BEST_STEP │"),
    (re.compile(r"\s+"), " "),
)
"""What differs between two runs, or once a model's recipe is tuned, and what stands in for it."""

WALK = ("README.md", "tutorial.md", "add-a-task.md", "add-a-model.md", "figures.md")
"""The pages of someone's first hour. Of these every command shows output, all of it is compared,
and every Python block runs."""

NOT_RUN = (
    {
        ("atlas.md", "atlas"): "the machines are not in the repository",
        (
            "commands.md",
            "sweep",
        ): "thirty populations; tests/test_sweep_command.py runs smaller ones",
        ("sweeps.md", "sweep"): "thirty populations; tests/test_sweep_command.py runs smaller ones",
        ("machines.md", "atlas"): "a minute of training; tests/test_atlas.py trains less",
        ("robust-training.md", "certify"): "the run of that minute",
        (
            "robust-training.md",
            "train",
        ): "a minute of it; tests/test_robust_training.py trains less",
    }
    | {
        ("your-own-module.md", command): "the notebook that this page is made of is run, below"
        for command in ("check", "compare", "report", "plot", "cite")
    }
    | {
        (
            "map.md",
            command,
        ): "many networks; tests/test_learned_map.py trains six and draws their map"
        for command in ("reproduce", "sweep", "plot")
    }
)
"""The commands of console blocks that no test runs as they stand, and what holds them instead."""

NUMBER = re.compile(r"(-?\d[\d.,]*\d|-?\d|SMALL)")
"""A number, or what stands in for a small one."""

WRONG_ON_PURPOSE = "broken.yaml"
"""The name under which a page shows a file that is refused."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    body: str
    mark: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in their order."""
    found = FENCE.finditer(page.read_text(encoding="utf-8"))
    return [Block(m["language"], m["body"], m["mark"] or "", m["text"] or "") for m in found]


def commands(block: Block) -> Iterator[tuple[list[str], list[str]]]:
    """The command lines of a console block, each with the output lines beneath it."""
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", " ").partition("\n")
        yield shlex.split(line), [plain(o) for o in output.splitlines() if plain(o)]


def plain(line: str) -> str:
    """A line of output without what may differ between two runs; empty for `...`."""
    for pattern, word in VARIES:
        line = pattern.sub(word, line)
    return line.strip().removesuffix("...")


def first_missing(expected: list[str], output: str) -> str | None:
    """The first expected line that does not come, in this order, in the output.

    A page may break a long line of the output where it has a space.
    """
    printed = " ".join(map(plain, output.splitlines()))
    position = 0
    for line in expected:
        found = printed.find(line, position)
        if found < 0:
            return line
        position = found + len(line)
    return None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to run commands in, as on a computer of one core: sweeps start no workers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_run_and_print_what_it_shows(page, folder, capsys):
    if page.name == "losses.md":
        pytest.importorskip("numba")  # what a run that generalises a little has depends on rounding
    run_page(page, folder, capsys, passed_over=("not run", "slow"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.mark == "slow" for block in blocks(page))],
    ids=lambda page: page.name,
)
def test_the_slow_commands_of_a_page_run_and_print_what_it_shows(page, folder, capsys):
    if any("accelerate" in block.text for block in blocks(page)):
        pytest.importorskip("accelerate")
    run_page(page, folder, capsys, passed_over=("not run",))


def run_python(argv):
    """Run a program as `python FILE.py ARGUMENTS` does; its exit code."""
    with mock.patch.object(sys, "argv", argv):
        try:
            runpy.run_path(argv[0], run_name="__main__")
        except SystemExit as stopped:
            return stopped.code or 0
    return 0


def run_page(page, folder, capsys, *, passed_over):
    """Run the console blocks of a page in a folder, and compare what they print."""
    for block in blocks(page):
        if block.mark == "file":
            (folder / block.text).write_text(block.body, encoding="utf-8")
        elif block.language == "python" and page.name in WALK:
            exec(compile(block.body, page.name, "exec"), {})
        if block.language != "console" or block.mark in passed_over:
            continue
        for (program, *argv), expected in commands(block):
            assert program in ("statetrack", "python"), f"{page.name}: {program} is not run here"
            forget_plugins()  # the reader's commands are processes of their own
            if program == "python":
                code = run_python(argv)
            else:
                code = run(argv)
            shown = capsys.readouterr()
            fails = any(word in " ".join(expected) for word in ("error:", "WRONG"))
            assert bool(code) == fails, shown.err
            printed = shown.out + shown.err
            if block.mark in ("slow", "numbers vary"):
                expected, printed = masked("\n".join(expected)), "\n".join(masked(printed))
            missing = first_missing(expected, printed)
            assert missing is None, f"{program} {shlex.join(argv)}\n{missing}\n\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_sessions_of_a_page_print_what_it_shows(page, folder):
    sessions = "\n".join(block.body for block in blocks(page) if block.language == "pycon")
    session = doctest.DocTestParser().get_doctest(sessions, {}, page.name, str(page), 0)
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=printed.append)
    assert not printed, "".join(printed)


def masked(text: str) -> list[str]:
    """The lines of an output without numbers and without the widths that follow from them."""
    return [re.sub(r"\s+", " ", NUMBER.sub("N", plain(line))) for line in text.splitlines()]


def names_in(text: str) -> list[str]:
    """The words that lines begin with: of a table of what was measured, the names of its rows."""
    return re.findall(r"^([a-z][a-z-]+) ", text, re.M)


def test_the_notebook_leads_from_a_module_to_a_table_a_figure_and_a_bibliography(
    folder, monkeypatch
):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(DOCS)
    notebook = importlib.import_module("notebook")
    monkeypatch.setenv("COLUMNS", notebook.COLUMNS)
    forget_plugins()
    printed = {}
    for cell, now in notebook.run_cells(notebook.cells()):
        source, stored = notebook.source(cell), notebook.stored(cell)
        if re.search('evaluate|compare|table.tex"', source):  # measured: it differs by machine
            assert names_in(now)[:2] == names_in(stored)[:2], source
        else:
            assert masked(now) == masked(stored), source
        printed[cell["id"]] = now
    everything = "\n".join(printed.values())
    assert everything.count("bilinear-block     seed") == 2
    assert re.search(r"bilinear-block +can +tracks .* agrees", everything)
    assert re.search(r"bilinear-rotation +cannot .* agrees", everything)
    assert "\\begin{tabular}" in everything and "@inproceedings" in everything
    assert (folder / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert "</svg>" in (folder / "figure.svg").read_text(encoding="utf-8")


def test_the_page_of_the_notebook_has_its_cells_and_stored_outputs(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    notebook = importlib.import_module("notebook")
    page = notebook.PAGE.read_text(encoding="utf-8")
    assert page == notebook.page_of(notebook.cells()), "run `python docs/notebook.py`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_task_and_model_that_a_page_shows_is_used_in_it(page):
    """An example that no command reads could be wrong without anyone seeing it."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if block.mark == "file":
            lines = re.findall(r"^\$ (?:statetrack|python) .*", text, re.M)
            assert any(block.text in line for line in lines), block.text
        is_task = block.language == "yaml" and "\nautomaton:" in block.body
        is_model = block.language == "python" and "@MODELS.register" in block.body
        assert block.mark == "file" or not (is_task or is_model), block.body


def test_blocks_that_are_not_run_say_why_and_something_else_holds_them():
    found = set()
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console" and block.mark:
                assert block.mark != "file" and len(block.text) > 10, page.name
                if block.mark == "not run":
                    found |= {(page.name, argv[1]) for argv, _ in commands(block)}
    assert found == set(NOT_RUN)


@pytest.mark.parametrize("name", WALK)
def test_every_command_of_the_first_hour_shows_output_that_is_compared(name):
    (page,) = (page for page in PAGES if page.name == name)
    shown = [block for block in blocks(page) if block.language == "console" and not block.mark]
    for argv, expected in (command for block in shown for command in commands(block)):
        assert expected, f"{name}: nothing is shown of {shlex.join(argv)}"


def trained_tasks(page: Path) -> dict[str, set[str]]:
    """The tasks that models are trained on in a page, and by which commands."""
    found: dict[str, set[str]] = {}
    for block in blocks(page):
        if block.language == "console":
            for (_, command, *argv), _ in commands(block):
                if command in ("train", "sweep") and "--task" in argv:
                    for task in argv[argv.index("--task") + 1].split(","):
                        found.setdefault(task, set()).add(command)
        if block.language == "yaml" and block.mark == "file":
            for task in (yaml.safe_load(block.body).get("tasks") or {}).values():
                found.setdefault(task, set()).add("reproduce")
    return found


EXPLAINED = "footguns.md#accuracy-at-the-training-lengths"
"""Where it is said what the note on words of the training lengths means."""


@pytest.mark.parametrize("name", [name for name in WALK if name != "figures.md"])
def test_tasks_that_a_page_trains_on_pass_audit_or_it_explains_the_warning(name, folder, capsys):
    (page,) = (page for page in PAGES if page.name == name)
    for block in blocks(page):
        if block.mark == "file":
            (folder / block.text).write_text(block.body, encoding="utf-8")
    tasks = trained_tasks(page)
    assert tasks
    for task, by in tasks.items():
        asked = ["audit", task, "--samples", "500", "--train-samples", "5000", "--json"]
        assert run(asked) == 0
        found = json.loads(capsys.readouterr().out)
        assert not found["solved_by"] and not found["helped_by"], f"{name} trains on {task}"
        if found["held_out_solved_by"] and "train" in by:  # which prints a note
            assert EXPLAINED in page.read_text(encoding="utf-8"), f"{name} trains on {task}"


def cells(line: str) -> list[str]:
    """The cells of a row of a table, drawn with lines or written in Markdown."""
    return [cell.strip(" `\\") for cell in re.split(r"[│|]", line)[1:-1]]


def test_the_hierarchy_that_the_readme_shows_is_the_recorded_one():
    text = PAGES[0].read_text(encoding="utf-8")
    shown = text.split("<!-- hierarchy -->")[1].split("<!-- /hierarchy -->")[0]
    page = (DOCS / "reproductions" / "hierarchy.md").read_text(encoding="utf-8")
    recorded = page.split("## Table")[1].split("\nAt length 500")[0]
    rows = [cells(line) for line in shown.splitlines() if line.startswith("│")]
    assert rows == [cells(line) for line in recorded.splitlines() if line.startswith("| ")][2:]


def test_lines_of_output_are_compared_in_their_order():
    assert first_missing(["a", "c"], "a\nb\nc\n") is None
    assert first_missing(["c", "a"], "a\nb\nc\n") == "a"
    assert first_missing(["a b", "c"], "a b c\n") is None
    assert first_missing(["a b", "a b"], "a b c\n") == "a b"


@pytest.mark.parametrize("page", PAGES[2:], ids=lambda page: page.name)
def test_lines_of_the_blocks_of_a_page_fit_a_window_of_1280_pixels(page):
    """113 characters do, at the size of the site's code and beside its list of pages."""
    wide = [
        line
        for block in blocks(page)
        if block.language != "{eval-rst}"
        for line in block.body.splitlines()
        if len(line) > 113
    ]
    assert not wide


def tasks_in(page: Path) -> list[Block]:
    """The task files that a page shows, but for the one that shows how a mistake is reported."""
    found = [b for b in blocks(page) if b.language == "yaml" and "\nautomaton:" in b.body]
    return [block for block in found if block.text != WRONG_ON_PURPOSE]


def test_task_files_of_the_pages_are_tasks_with_examples(folder):
    for page in PAGES:
        for block in blocks(page):
            if block.language == "python" and "@KINDS.register" in block.body:
                (folder / block.text).write_text(block.body, encoding="utf-8")
                load_plugin(folder / block.text)
            elif block.mark == "file" and block.language != "yaml":
                (folder / block.text).write_text(block.body, encoding="utf-8")
        for block in tasks_in(page):
            (folder / block.text).write_text(block.body, encoding="utf-8")
            assert load_task(block.text).spec.examples


def documented(heading: str, page: str = "file-formats.md") -> set[str]:
    """The keys in the first column of the first table under a heading."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    assert found is not None, f"{page} has no heading {heading!r}"
    table = re.search(r"(?:^\|.*\n)+", found[1], re.M)
    assert table is not None, f"{page}: no table under {heading!r}"
    keys = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table[0].splitlines()[2:]]
    assert all(keys), f"{page}: a row under {heading!r} names no key"
    return {key for row in keys for key in row}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a run, a dataset and a suite, all as small as can be."""
    folder = tmp_path_factory.mktemp("written")
    suite = {
        "title": "t",
        "settings": {"steps": 5, "validate_every": 5},
        "models": {"signs": "diagonal-real"},
        "tasks": {"parity": "parity"},
        "length": 20,
        "samples": 10,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("suite.yaml").write_text(yaml.safe_dump(suite), encoding="utf-8")
        train = "train --model diagonal-real --task parity --steps 10 --validate-every 5"
        gen = "gen parity --length 2-5 --samples 20 --validation-samples 5 --test-samples 5"
        for line in (
            f"{train} --out run",
            "eval run --length 20 --samples 10",
            "certify run --seconds 0.2",
            "probe run --seconds 0.5",
            f"{gen} --test-length 20 --format jsonl --out words",
            f"{gen} --test-length 20 --format npz --out arrays",
            f"{gen} --test-length 20 --format csv --out csv",
            "reproduce suite.yaml --jobs 1 --stress-seconds 0.2 --out suite",
        ):
            assert run(line.split()) == 0, line
    return folder


def rows_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def keys_of(rows: list[dict]) -> set[str]:
    return {key for row in rows for key in row}


def test_the_files_of_a_run_are_those_that_the_page_names(written):
    (point,) = (path.parent for path in (written / "suite").rglob("cell.json"))
    names = {path.name for folder in (written / "run", point) for path in folder.iterdir()}
    passing = {"checkpoint.pt", "measuring.jsonl", ".training.lock", ".point.lock"}
    passing |= {"extension.json", "extensions.jsonl"}
    of_some = {"plugin.py", "error.json", "tensorboard", "wandb"}
    of_some |= {"words.csv", "words.yaml", "words.jsonl"}
    assert names | passing | of_some == documented("The run folder")


def test_config_holds_the_settings_of_data_model_and_training(written):
    config = yaml.safe_load((written / "run" / "config.yaml").read_text(encoding="utf-8"))
    parts = (DataSettings, MODELS["diagonal-real"].settings_class, TrainSettings)
    fields = {"model"}.union(*(part.model_fields for part in parts))
    assert set(config) == fields - {"extended_at"}  # which a run has that was extended
    assert next(iter(config)) == "model"


@pytest.mark.parametrize("name", ["environment.json", "summary.json"])
def test_the_json_files_of_a_run_have_the_documented_keys(written, name):
    content = json.loads((written / "run" / name).read_text(encoding="utf-8"))
    assert set(content) == documented(name)


def test_a_replica_in_the_summary_has_the_documented_keys(written):
    summary = json.loads((written / "run" / "summary.json").read_text(encoding="utf-8"))
    assert keys_of(summary["replicas"]) == documented("A replica in summary.json")


@pytest.mark.parametrize("name", ["metrics.jsonl", "eval.jsonl", "evidence.jsonl"])
def test_the_rows_of_a_run_have_the_documented_keys(written, name):
    assert keys_of(rows_of(written / "run" / name)) == documented(name)


def test_weights_are_stacked_by_replica_and_say_which_run_they_are(written):
    path = written / "run" / "weights.safetensors"
    assert {len(value) for value in safetensors.torch.load_file(path).values()} == {1}
    with safetensors.safe_open(path, "pt") as file:
        metadata = file.metadata()
    assert set(metadata) == {"statetrack"}
    assert set(json.loads(metadata["statetrack"])) == documented("weights.safetensors")


def test_eval_json_has_the_documented_keys(written, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["eval", "run", "--length", "20", "--samples", "10", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == documented("eval --json")
    assert keys_of(printed["rows"]) == documented("A row of eval --json")
    assert keys_of(printed["rows"]) | {"evaluation_seed", "weights"} == documented("eval.jsonl")
    asked = ["eval", "run", "--length", "20", "--samples", "10", "--json", "--errors", "1"]
    assert run([*asked, "--stress", "--seconds", "0.5"]) == 0
    printed = json.loads(capsys.readouterr().out)
    for name in ("stress", "errors"):
        assert keys_of(printed[name]) == documented(f"An entry of {name} in eval --json")


def test_certify_json_has_the_documented_keys(written, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["certify", "run", "--seconds", "0.2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == documented("certify --json")
    assert keys_of(printed["replicas"]) == documented("A replica in certify --json")


def test_reports_have_the_documented_keys_and_columns(written, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["report", "run", "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    (entry,) = printed["entries"]
    assert set(printed) == documented("report as JSON")
    assert set(entry) == documented("An entry of report as JSON")
    assert keys_of(entry["rows"]) == documented("eval.jsonl") - {"weights"}
    assert keys_of(entry["statistics"]) == documented("Statistics of report as JSON")
    assert set(COLUMNS_OF_REPORTS) == documented("report as CSV and Parquet")


def test_probe_json_has_the_documented_keys(written, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["probe", "run", "--seconds", "0.5", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == documented("probe --json")
    assert keys_of(printed["replicas"]) == documented("A replica in probe --json")


def test_audit_json_has_the_documented_keys(written, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["audit", "words", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == documented("audit --json")
    assert keys_of(printed["splits"]) == documented("A split in audit --json")
    lengths = [length for split in printed["splits"] for length in split["lengths"]]
    assert keys_of(lengths) == documented("A length in audit --json")
    assert keys_of(printed["rows"]) == documented("A row of audit --json")


def test_the_page_names_every_shortcut_of_an_audit():
    between = {f"last-{count}" for count in range(2, LONGEST_LOOKUP)}
    assert documented("audit", "commands.md") == set(VIEWS) - between


@pytest.mark.parametrize("name", ["parity", "lstm"])
def test_show_json_has_the_documented_keys(name, capsys):
    assert run(["show", name, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    kind = {"parity": "task", "lstm": "model"}[name]
    assert set(printed) == documented(f"show --json of a {kind}")
    if kind == "task":
        assert set(printed["algebra"]) == documented("The algebra in show --json")
        predictions = list(printed["predictions"].values())
        assert keys_of(predictions) == documented("A prediction in show --json")
        assert keys_of(printed["witnesses"]) == documented("A witness in show --json")
    else:
        assert keys_of(printed["settings"]) == documented("A setting in show --json")
        assert keys_of(printed["checked"]) == documented("A comparison in show --json")


@pytest.mark.parametrize("what", ["models", "tasks", "kinds", "suites", "runs"])
def test_list_json_has_the_documented_keys(written, what, monkeypatch, capsys):
    monkeypatch.chdir(written)
    assert run(["list", what, "--runs", ".", "--json"]) == 0
    keys = keys_of(json.loads(capsys.readouterr().out))
    of_a_filter = set(ALGEBRA) if what == "tasks" else set()
    assert keys | of_a_filter == documented(f"list {what} --json")
    assert not keys & of_a_filter


def test_a_dataset_has_the_documented_keys_and_columns(written):
    card = json.loads((written / "words" / "card.json").read_text(encoding="utf-8"))
    assert set(card) == documented("card.json")
    assert keys_of(list(card["splits"].values())) == documented("A split in card.json")
    assert keys_of(rows_of(written / "words" / "data" / "train.jsonl")) == documented("Columns")


def test_datasets_of_other_formats_have_the_documented_names(written):
    import numpy as np

    arrays = np.load(next((written / "arrays" / "data").glob("train*.npz")))
    assert set(arrays.files) == documented("Arrays of npz")
    header = next((written / "csv" / "data" / "train").glob("*=3.csv")).read_text().split("\n")[0]
    assert set(header.split(",")) == documented("Columns of csv")


def test_task_suite_and_protocol_files_have_the_documented_keys():
    assert set(TaskSpec.model_fields) == documented("Task files")
    assert set(Suite.model_fields) == documented("Suite files")
    assert set(Budget.model_fields) == documented("A budget")
    assert set(PublishedTable.model_fields) == documented("A published table")
    assert set(Protocol.model_fields) == documented("Protocol files")


def test_a_cell_of_a_suite_has_the_documented_keys(written):
    (path,) = (written / "suite").rglob("cell.json")
    assert set(json.loads(path.read_text(encoding="utf-8"))) == documented("cell.json")


def test_every_paper_that_is_named_stands_in_the_bibliography():
    page = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    sources = [
        *(ROOT / "statetrack").rglob("*.py"),
        *(ROOT / "tasks").rglob("*.yaml"),
        *PAGES,
    ]
    assert "<!-- generated: papers -->" in page
    known = {*references(), *ids_in(page)}
    for path in sources:
        for paper in ids_in(path.read_text(encoding="utf-8").replace(r"\_", "_")):
            assert paper in known, f"{path} names {paper}"


def test_every_command_has_a_section():
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    for command in find_commands():
        assert f"\n## {command}\n" in text, command


def test_every_page_is_in_the_contents_of_a_page_and_is_so_in_the_sidebar():
    """Pages are listed by a link between `<!-- contents -->` and `<!-- end of contents -->`."""
    listed = {DOCS / "index.md"}
    pages = {page for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for part in re.findall(r"^<!-- contents.*?^<!-- end of contents -->$", text, re.M | re.S):
            links = re.findall(r"\]\(([^):#\s]+\.md)(?:#[^)]*)?\)", part)
            listed |= {(page.parent / link).resolve() for link in links}
    assert {page.name for page in pages - listed} == set()


def test_no_page_has_a_block_that_only_the_built_pages_understand():
    """But for the pages of the API, whose text is in the code."""
    for page in [*PAGES, *DOCS.glob("*/*.md")]:
        if page.parent.name not in ("api", "_build"):
            assert "```{" not in page.read_text(encoding="utf-8"), page.name


def test_the_reference_has_every_public_name_once():
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    written = re.findall(r"^\.\. auto\w+:: (\S+)$", pages, re.M)
    public = {f"statetrack.{name}" for name in statetrack.__all__ if name != "__version__"}
    functions = {name: getattr(ops, name) for name in face("ops")}
    operations = {
        f"statetrack.ops.{name}"
        for name, function in functions.items()
        if inspect.isfunction(function)
        and {"first", "kernel"} & {*inspect.signature(function).parameters}
    }
    beside = ("contract", "delta_rule_step", "keep_freed_memory", "lookup")
    operations |= {f"statetrack.ops.{name}" for name in beside}
    assert len(operations) == 15
    assert public | operations <= set(written)
    assert len(written) == len(set(written))
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    for name in written:
        shown = f"st.{name.split('.')[1]}" if name.count(".") == 1 else name
        assert f"| [`{shown}`](api/" in reference, name


def test_links_between_files_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_links_into_pages_lead_to_a_heading(monkeypatch):
    """By the anchors that a code host gives to headings, which the built pages have too."""
    monkeypatch.syspath_prepend(DOCS)
    anchors_of = importlib.import_module("generated").anchors_of
    pages = [*PAGES, *DOCS.glob("*/*.md")]
    anchors = {page.resolve(): set(anchors_of(page.read_text("utf-8"))) for page in pages}
    for page in anchors:
        text = re.sub(r"^(```+).*?^\1$", "", page.read_text("utf-8"), flags=re.M | re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", text):
            if "://" not in target:
                to = (page.parent / target).resolve() if target else page
                assert anchor in anchors[to], f"{page.name}: {target}#{anchor}"
