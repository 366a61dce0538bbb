"""What is released: a source distribution, and the wheel that is built from it and installed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from packaging.metadata import Metadata

import statetrack
from statetrack.models import MODELS
from statetrack.spec import TASKS
from tests.new_process import SharedFolder
from tests.test_docs import DOCS, blocks

ROOT = Path(__file__).parent.parent

USE_EVERYTHING = """
import json
from statetrack.cli.app import run
from statetrack import MODELS, load_task
from statetrack.spec import TASKS
for name in TASKS:
    load_task(name).sample(4, length=20, seed=0)
for task in ("parity", "s5", "adder", "dyck-1", "anbn"):  # of every kind of source
    options = ["--steps", "1", "--hidden", "4", "--validation-words", "8", "--batch-size", "4"]
    options += ["--finish", "none"]  # the example finishes what it trains
    code = run(["train", "--model", "bilinear", "--task", task, "--out", f"r/{task}", *options])
    code = code or run(["eval", f"r/{task}", "--length", "20", "--samples", "4", "--json"])
    assert code == 0, task
print(json.dumps({"models": list(MODELS), "tasks": list(TASKS)}))
"""


def _build(folder: Path) -> None:
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


@pytest.fixture(scope="module")
def built(shared_folder: SharedFolder) -> Path:
    """A folder with the source distribution, and the wheel that was built from it."""
    return shared_folder("built", _build)


@pytest.fixture(scope="module")
def site(built: Path, shared_folder: SharedFolder) -> Path:
    """A folder with nothing but the wheel's content in it, which is what pip puts there."""
    (wheel,) = built.glob("*.whl")

    def unpack(folder: Path) -> None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)

    return shared_folder("SITE", unpack)


def test_the_wheel_lists_every_file_that_is_in_it(built: Path) -> None:
    """By its hash, which is checked where it is installed; its place is where it is unpacked."""
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (about,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        told = archive.read(f"{about}/WHEEL").decode()
        assert "Root-Is-Purelib: true" in told and "Tag: py3-none-any" in told
        assert {name.split("/")[0] for name in archive.namelist()} == {"statetrack", about}
        listed = dict(
            line.rsplit(",", 2)[:2]
            for line in archive.read(f"{about}/RECORD").decode().splitlines()
        )
        assert listed.pop(f"{about}/RECORD") == ""
        assert {*listed, f"{about}/RECORD"} == {*archive.namelist()}
        for name, given in listed.items():
            digest = hashlib.sha256(archive.read(name)).digest()
            assert given == f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}", name
        entry_points = archive.read(f"{about}/entry_points.txt").decode()
        assert "statetrack = statetrack.cli.app:main" in entry_points


def test_the_source_distribution_has_what_its_tests_and_pages_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()}
    own = [*ROOT.glob("*.md"), *ROOT.glob("*.txt"), ROOT / "LICENSE", ROOT / "Makefile"]
    for folder, pattern in (("tests", "*.py"), ("docs", "*.md"), ("tasks", "*.yaml")):
        own += (ROOT / folder).rglob(pattern)
    missing = {path.relative_to(ROOT).as_posix() for path in own} - names
    assert not {name for name in missing if not name.startswith("docs/_build")}
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text("utf-8"))
    assert links and {link for link in links if "://" not in link} <= names


def test_the_metadata_is_valid_and_shows_the_readme(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = Metadata.from_email(archive.read(name), validate=True)
        assert any(name.endswith("licenses/LICENSE") for name in archive.namelist())
    assert (found.name, str(found.version)) == ("statetrack", statetrack.__version__)
    assert found.description_content_type == "text/markdown" and found.license_expression
    assert found.description == (ROOT / "README.md").read_text(encoding="utf-8")
    assert "3.12" in found.requires_python and "3.10" not in found.requires_python


def _run(site: Path, folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


MAKE_A_PAGE = """
from statetrack.report.wanted import Report
from statetrack.report.html import page
print(page(Report(title="None", entries=(), row_names=(), column_names=(), length=0)))
"""


NEXT = "--- next program ---"
"""The line between what two programs print."""

PRINTED = "printed.txt"


@pytest.fixture(scope="module")
def ran(site: Path, shared_folder: SharedFolder) -> Path:
    """A folder in which one process ran the library's first example, as typed, and more programs.

    `example.py` is the example, and PRINTED what that process printed.
    """

    def run(folder: Path) -> None:
        code = next(
            block.body for block in blocks(DOCS / "library.md") if block.language == "python"
        )
        (folder / "example.py").write_text(code, encoding="utf-8")
        where = "import statetrack; assert 'SITE' in statetrack.__file__, statetrack.__file__"
        program = f"\nprint({NEXT!r})\n".join([where, code, MAKE_A_PAGE, USE_EVERYTHING])
        (folder / PRINTED).write_text(_run(site, folder, "-c", program), encoding="utf-8")

    return shared_folder("ran", run)


@pytest.fixture(scope="module")
def printed(ran: Path) -> list[str]:
    """What was printed by the example, by the program of the page, and by that of everything."""
    return (ran / PRINTED).read_text(encoding="utf-8").split(f"{NEXT}\n")[1:]


def test_the_example_of_the_library_runs_as_typed(printed: list[str], ran: Path) -> None:
    lines = printed[0].splitlines()
    assert [line.split()[0] for line in lines] == ["Fit(steps=200,", "1.0", "1.0", "1.0"]
    (run,) = (ran / "runs").iterdir()
    assert run.name.startswith("bilinear-block_s3_") and (run / "eval.jsonl").exists()


def test_the_wheel_makes_the_page_of_a_report(printed: list[str]) -> None:
    made = printed[1]
    assert made.startswith("<!doctype html>") and "Content-Security-Policy" in made
    assert "prefers-color-scheme" in made and "showModal" in made


def test_the_wheel_has_every_model_and_task_and_trains_them(printed: list[str], ran: Path) -> None:
    *_, listed = printed[2].splitlines()
    assert json.loads(listed) == {"models": list(MODELS), "tasks": list(TASKS)}
    assert len(list(ran.glob("r/*/eval.jsonl"))) == 5


REVEALED = {
    'st.load_task("s3")': "statetrack.spec.task.Task",
    "batch": "statetrack.sources.arrays.Batch",
    "record": "statetrack.training.records.Record",
    "row": "statetrack.scoring.Score",
    "run": "statetrack.runs.run.Run",
    "net": "statetrack.models._base.SequenceModel",
    'st.predict(task, "lstm")': "statetrack.algebra.prediction.Prediction",
}
"""What mypy is to say of expressions after the example."""


UNREAD = ["numba", "numpy", "pydantic", "rich", "scipy", "torch", "typer"]
UNREAD += [f"statetrack.{part}" for part in ("cli", "constructions", "evidence")]
UNREAD += [f"statetrack.{part}" for part in ("pictures", "report", "sweep")]
"""Packages that the example does not use itself; mypy takes half a minute to read torch."""

SKIP = f"""
[mypy]
[mypy-{",".join(f"{package}.*" for package in UNREAD)}]
follow_imports = skip
follow_imports_for_stubs = true
"""


def test_the_example_of_the_library_is_typed(
    site: Path, ran: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    example = (ran / "example.py").read_text(encoding="utf-8")
    lines = "".join(f"reveal_type({expression})\n" for expression in REVEALED)
    (tmp_path / "revealing.py").write_text(example + lines, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(SKIP, encoding="utf-8")
    assert pytestconfig.cache is not None
    cache = pytestconfig.cache.mkdir("mypy")  # kept
    mypy = ["-m", "mypy", "--strict", "--cache-dir", str(cache), "revealing.py"]
    told = _run(site, tmp_path, *mypy)
    assert re.findall(r'Revealed type is "(.+)"', told) == [*REVEALED.values()]
