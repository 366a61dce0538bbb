"""A short run of each fuzzer; `make fuzz` is the long one."""

from __future__ import annotations

import os
import sys
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest

from statetrack.errors import TaskError
from tests.fuzz import harness, mutations
from tests.fuzz.command_lines import discover
from tests.fuzz.harness import Case, run_cases
from tests.fuzz.targets import TARGETS

CASES = {
    "task-files": 40,
    "machine-files": 80,
    "run-folders": 24,
    "datasets": 32,
    "command-lines": 24,
    "dry-runs": 16,
}
"""By default; four times as many among the slow tests."""


@pytest.mark.parametrize("parts", [(0, 1), pytest.param((1, 4), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_damaged_or_hostile_works_or_is_refused_in_one_line(
    name: str, parts: tuple[int, int], tmp_path: Path
) -> None:
    cases = range(*(CASES[name] * part for part in parts))
    report = run_cases(TARGETS[name](), cases, seed=1, keep=tmp_path)
    assert not report.failures, "\n".join(report.lines())
    assert report.cases == len(cases) and 0 < report.refused < report.cases


# --- the harness finds what it is there to find ---


class Scripted:
    """A target of which every case does the same."""

    name = "scripted"

    def __init__(self, action: object) -> None:
        self.action = action

    def prepare(self, folder: Path) -> None:
        """Nothing."""

    def attempt(self, case: Case) -> None:
        """Run the action."""
        self.action(case)  # type: ignore[operator]


def failure_of(action: object, *, cases: int = 1) -> str:
    """How the cases of an action fail: the same in all."""
    report = run_cases(Scripted(action), range(cases), seed=0)
    assert report.num_failed == cases
    (signature,) = report.failures
    return signature


def refuse(case: Case) -> None:
    """An error that is clear."""

    def refused() -> None:
        raise TaskError("task.yaml: there is no such thing")

    case.call("refuse", refused)


def wait(case: Case) -> None:
    """Wait for what never comes."""
    os.mkfifo("fifo")
    Path("fifo").read_text()


def need_memory(case: Case) -> None:
    """More than a case may need, whatever the tests before it leave to be freed."""
    bytearray(harness.MOST_MEMORY * 8)


def execute_plugin(case: Case) -> None:
    """What no command may do unasked."""
    exec(harness.PLANTED)


def test_a_clear_error_is_counted_as_refused() -> None:
    report = run_cases(Scripted(refuse), range(3), seed=0)
    assert (report.cases, report.refused, report.num_failed) == (3, 3, 0)


def test_other_errors_hangs_memory_and_execution_are_failures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(harness, "WALL_SECONDS", 0.1)
    assert failure_of(lambda case: {}["missing"]).startswith("KeyError")
    assert failure_of(wait).startswith("OutOfTime")
    assert failure_of(execute_plugin) == "a planted file of Python was executed"
    if sys.platform == "linux":
        assert failure_of(need_memory).startswith("MemoryError")


def test_a_process_that_dies_is_a_failure_of_its_case_and_the_others_go_on() -> None:
    def die_at_one(case: Case) -> None:
        if case.number == 1:
            os._exit(3)

    report = run_cases(Scripted(die_at_one), range(4), seed=0)
    assert report.cases == 4 and report.num_failed == 1
    assert [verdict.case for verdict in report.failures["its process ended with 3"]] == [1]


def test_what_is_changed_outside_the_folder_is_a_failure() -> None:
    outside = (
        lambda case: Path("../secret.txt").write_text("changed"),
        lambda case: Path("../new.txt").touch(),
        lambda case: Path("../folder").mkdir(),
        lambda case: os.rename("../secret.txt", "mine.txt"),
        lambda case: os.system("true"),
    )
    for action in outside:
        signature = failure_of(action)
        assert signature.startswith(("a file outside the folder", "a process was started"))


def test_a_case_is_the_same_whenever_it_is_run(tmp_path: Path) -> None:
    def told(cases: object) -> dict[int, list[str]]:
        told: dict[int, list[str]] = {}
        run_cases(
            TARGETS["task-files"](),
            cases,  # type: ignore[arg-type]
            seed=7,
            tick=lambda verdict: told.__setitem__(verdict.case, list(verdict.done)),
        )
        return told

    assert told(range(6))[5] == told([5])[5]


def test_changed_values_differ_and_can_be_written() -> None:
    content = {"title": "t", "sizes": [1, 2, 3], "inner": {"a": 0.5, "b": None}}
    changed = [
        mutations.as_json(mutations.change_values(Random(seed), deepcopy(content)))
        for seed in range(40)
    ]
    assert len(set(changed)) > 20


def test_the_options_of_a_command_are_those_that_its_help_shows() -> None:
    known = discover("gen")
    assert {"--samples", "--out", "--format"} <= set(known.options) and known.takes_arguments
    assert "jsonl" in known.options["--format"]
    assert "--json" in discover("audit").switches
