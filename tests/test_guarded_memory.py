"""Loops read and write nothing outside their tensors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="without numba there are no loops")

ROOT = Path(__file__).resolve().parents[1]
OTHERS = "machine_code or folders or cache or compil or several_threads"
"""Tests of the file that call no loops of the package, or replace them."""

CAUGHT = """
import torch
from tests import guarded_memory
from statetrack.ops.native import calls

norms = calls.loops("norms")
rows = torch.randn(1, 2, 1, 16)
norms.norm_forward(rows, None, None, torch.empty(1, 2, 1, 16), 1, {rows}, 1, 16, 1,
                   False, 1 / 16, 1e-6, 1e9, 1.0, 16, 0)
print("done")
"""

only_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is mapped as on Linux")


@only_linux
def test_loops_stay_inside_their_tensors() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.guarded_memory"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-k", f"not ({OTHERS})"]
    told = subprocess.run(
        [*command, "tests/test_native_kernels.py"], cwd=ROOT, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    assert " passed" in told.stdout


@only_linux
@pytest.mark.parametrize("rows", [2, 3])
def test_a_row_too_many_ends_the_process(rows: int) -> None:
    command = [sys.executable, "-c", CAUGHT.format(rows=rows)]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (told.returncode == 0) == ("done" in told.stdout) == (rows == 2), told.stderr
