"""Times of every side of the comparisons, for `pytest -m slow tests/benchmarks`.

Nothing is asserted about them: claims about speed are ratios, and `ratios` measures those.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from statetrack import ops
from tests.benchmarks.ratios import COMPARISONS, Side

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _memory_is_kept() -> None:
    ops.keep_freed_memory()


def sides() -> list[object]:
    """Both sides of every comparison, named by it."""
    return [
        pytest.param(build, id=f"{comparison.title} ({name})")
        for comparison in COMPARISONS
        for name, build in (("slow", comparison.slow), ("fast", comparison.fast))
    ]


@pytest.mark.parametrize("build", sides())
def test_time(benchmark: BenchmarkFixture, build: Callable[[], Side]) -> None:
    side = build()
    benchmark.extra_info["parts"] = side.parts
    benchmark.pedantic(side.run, rounds=5, warmup_rounds=1)  # type: ignore[no-untyped-call]
