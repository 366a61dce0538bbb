"""Runs that several sections look at, trained once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class TrainedRuns:
    """A folder of small runs, made when it is first asked for."""

    scratch: Path
