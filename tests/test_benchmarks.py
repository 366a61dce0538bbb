"""Programs of `tests/benchmarks` run, each with a small case: what they print is of no matter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
import torch

from tests.benchmarks import authors, estimates, kernels, ratios, throughput

SMALL: dict[str, tuple[Callable[[], object], list[str], str]] = {
    "throughput": (throughput.main, ["--models", "lstm", "--lengths", "4"], "| lstm |"),
    "kernels": (kernels.main, ["--models", "pd-ssm,gla", "--rounds", "1", "--cases", "0"], "| gla"),
    "ratios": (
        ratios.main,
        ["--only", "groups of", "--rounds", "1", "--patience", "1"],
        "| groups of",
    ),
    "estimates": (estimates.main, ["--models", "diagonal-real", "--tasks", "parity"], "parity"),
}
"""Programs, what they are given and a part of what they print."""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", SMALL)
def test_program_prints_its_table(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "kernels":
        pytest.importorskip("numba")
    main, words, part = SMALL[name]
    monkeypatch.setattr(sys, "argv", ["program", *words])
    main()
    assert part in capsys.readouterr().out


@pytest.mark.parametrize("name", authors.recurrences(None))
def test_authors_recurrence_gives_the_same_numbers(name: str) -> None:
    pytest.importorskip("numba")
    theirs, ours = authors.compare(authors.recurrences(None)[name](2, 32), rounds=1)
    assert min(theirs, ours) > 0
