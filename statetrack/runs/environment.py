"""The environment of a run: threads, versions and machine."""

from __future__ import annotations

import datetime
import platform
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

import statetrack
from statetrack.models import SequenceModel, num_parameters, state_size
from statetrack.runs.processor import processor_name

SMALL = 1_000_000
"""Weights of a population below which one thread is faster than several."""


def prepare_cpu(threads: int, num_weights: int) -> None:
    """Set torch's number of threads; 0: one for a small number of weights."""
    if threads or num_weights < SMALL:
        torch.set_num_threads(threads or 1)


def environment(device: torch.device, model: SequenceModel, command: str | None) -> dict[str, Any]:
    """The versions and the machine of a run, and its model's size: what environment.json holds.

    `model` is one replica on the device; `command` is the command line that made the run, or None
    where it was made from Python.
    """
    kernel = model.kernel_on(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    return {
        "statetrack": statetrack.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": str(device),
        "device_name": name,
        "kernel": f"fla {version('fla-core')}" if kernel == "fla" else kernel,
        "threads": torch.get_num_threads(),
        "parameters": num_parameters(model),
        "dimensions": state_size(model),
        "started": timestamp(),
        "command": command,
    }


def timestamp() -> str:
    """The time, UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
