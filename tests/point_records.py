"""Records of measured points: a JSON file with a point a line, which is replaced whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from statetrack import __version__


def write_points(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write the rows, with the versions that measured them."""
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    head = json.dumps({"version": __version__, "torch": torch.__version__})[:-1]
    partial = path.with_suffix(".partial")
    partial.write_text(f'{head}, "points": [\n{lines}\n]}}\n')
    partial.replace(path)
