"""What stands in the files of a run is of the type that the table of files says, or is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from statetrack.catalogue import LISTINGS
from statetrack.errors import RunError, StatetrackError
from statetrack.runs import RunFolder, compare, files
from tests.fuzz.mutations import places
from tests.fuzz.run_folders import SWAPS, draw_reports, make_runs, show, swapped

FINISH = {"kept": 1, "hidden": 3, "loss_before": 0.5, "loss_after": 0.1, "refused": ""}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of the fuzzer, one of which was finished exactly."""
    folder = tmp_path_factory.mktemp("runs")
    make_runs(folder)
    summary = folder / "finished" / "summary.json"
    content = json.loads(summary.read_text())
    content["replicas"] = [each | {"finish": FINISH} for each in content["replicas"]]
    summary.write_text(json.dumps(content))
    return folder


@pytest.fixture
def run(runs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(runs / "finished", tmp_path / "run"))


def texts_of(path: Path) -> tuple[Any, Callable[[Any], str]]:
    """What stands in a file, of a `.jsonl` the first row, and how it is written."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".jsonl":
        first, *others = text.splitlines(keepends=True)
        return json.loads(first), lambda row: "".join([json.dumps(row) + "\n", *others])
    return (yaml.safe_load if path.suffix == ".yaml" else json.loads)(text), json.dumps


WRONG: dict[type, tuple[Any, ...]] = {
    int: ("\\input{x}", "7", {"a": 1}, [1], True, 1.5, 10**40),
    float: ("\\input{x}", "7", {"a": 1}, [1], True, 10**40),
    bool: ("\\input{x}", {"a": 1}, [1], 1),
    str: ({"a": 1}, [1], 7, True),
}
"""What no field takes whose value is of a type."""


@pytest.mark.parametrize("file", [files.SUMMARY, files.EVALUATIONS, files.EVIDENCE, files.METRICS])
def test_a_value_of_another_type_is_refused_with_its_file_line_and_key(
    run: Path, file: files.RunFile[Any] | files.RowFile[Any]
) -> None:
    path = run / file.name
    content, written = texts_of(path)
    where = f"{path}, line 1: is damaged" if path.suffix == ".jsonl" else f"{path}: is damaged"
    for place in places(content):
        key = next(each for each in reversed(place) if isinstance(each, str))
        for value in WRONG.get(type(reduce(lambda inside, step: inside[step], place, content)), ()):
            path.write_text(written(swapped(content, place, value)))
            with pytest.raises(RunError) as refused:
                RunFolder(run).read(file)
            said = str(refused.value)
            assert said.startswith(where) and key in said and len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["eval.jsonl", "summary.json"])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, "\\input{x}") for key in ("nonfinite_from", "merging_horizon", "kept", "hidden")),
        *((key, "7") for key in ("nonfinite_from", "length", "loss_before", "loss_after", "steps")),
        *((key, True) for key in ("sequences", "replica", "best_step")),
        *((key, 3.0) for key in ("seed", "first_error", "best_step")),
        *(("accuracy", value) for value in (1e308, -0.5, None)),
        *(("lr", value) for value in (None, 0, -1.0)),
        *(("length", value) for value in (0, -1, 2**63)),
    ],
)
def test_a_number_is_a_number_that_can_be(run: Path, name: str, key: str, value: Any) -> None:
    path = run / name
    content, written = texts_of(path)
    for place in (place for place in places(content) if place[-1] == key):
        path.write_text(written(swapped(content, place, value)))
        with pytest.raises(RunError, match=f"{name}.*: is damaged: .*'?{key}") as refused:
            RunFolder(run).read(files.SUMMARY), RunFolder(run).read(files.EVALUATIONS)
        assert len(str(refused.value).splitlines()) == 1


@pytest.mark.filterwarnings("ignore::statetrack.errors.StatetrackWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("config.yaml", "task.yaml", "environment.json", "summary.json", "eval.jsonl"),
        "evidence.jsonl",
    ],
)
def test_no_value_ends_a_command_in_an_internal_error_or_is_written_raw(
    run: Path, name: str
) -> None:
    """Text by text that means something, other values by those of other types in turn.

    The fuzzer of run folders tries many more.
    """
    path = run / name
    content, written = texts_of(path)
    uses: list[Callable[[], object]] = [
        lambda: show(run),
        lambda: list(LISTINGS["runs"].rows([run.parent])),
        lambda: [one.to_json() for one in compare([run])],
        lambda: draw_reports(run, ["latex", "markdown", "parquet"]),
    ]
    for number, place in enumerate(places(content)):
        old = reduce(lambda inside, step: inside[step], place, content)
        value = SWAPS[0] if isinstance(old, str) else SWAPS[number % len(SWAPS)]
        path.write_text(written(swapped(content, place, value)))
        for use in uses:
            try:
                use()
            except StatetrackError as refused:
                assert len(str(refused).splitlines()) == 1
