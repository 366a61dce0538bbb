"""Runs an exported folder's `check_kernel.py` in this process, on a kernel that is named."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from statetrack.constructions import build
from statetrack.exporting import export
from statetrack.sources import Automaton
from statetrack.spec import Task
from tests.kernel_faults import layer

HERE = Path(__file__).parent
FOLDERS = {
    "parity": ("gated-deltanet", "parity", {"beta": "double"}),
    "s3": ("gated-deltaproduct", "s3", {}),
}
"""Exported folders by name: a model with one key a position, and one with two."""


@dataclass(frozen=True)
class Answer:
    """What `check_kernel.py` said, and its exit code."""

    code: int
    text: str


def check(folder: Path, kernel: str, options: Sequence[str] = ()) -> Answer:
    """Run the program on FILE.py:FUNCTION, a file of this package."""
    said, place = io.StringIO(), f"{HERE / kernel}"
    arguments = [str(folder / "check_kernel.py"), place, "--device", "cpu", *options]
    variables = {layer.FOLDER: str(folder)}
    code = 0
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.dict(os.environ, variables),
        contextlib.redirect_stdout(said),
    ):
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return Answer(code, said.getvalue())


def make_folder(name: str, folder: Path, length: int) -> Path:
    """Export one of `FOLDERS`, or `delayed`, with words of a length."""
    if name == "delayed":
        return delayed(folder, length)
    model, task, options = FOLDERS[name]
    return export(
        build(task, model, **options).model, "fla", folder, task=task, length=length
    ).folder


def delayed(folder: Path, length: int) -> Path:
    """DeltaNet on the parity of all symbols but the last: its convolution looks one position back.

    Of the model of parity, the taps of keys and values are moved by one position.
    """
    model = build("parity", "deltanet", beta="double").model
    mixer = model.get_submodule("blocks.0.mixer")
    taps = mixer.get_parameter("convolution.filters.weight")
    first = mixer.sizes[0]  # type: ignore[index]
    taps.data[first:] = taps.data[first:].roll(-1, -1)
    # a state is (parity of all but the last, the last)
    delta = [[2 * (before ^ last) + new for new in (0, 1)] for before in (0, 1) for last in (0, 1)]
    automaton = Automaton(delta=delta, output=[0, 0, 1, 1], start=0)
    task = Task.from_automaton(automaton, name="delayed-parity")
    return export(model, "fla", folder, task=task, length=length).folder
