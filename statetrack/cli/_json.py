"""How commands print JSON: what `--json` of every command writes."""

from __future__ import annotations

import json
from typing import Any


def print_json(content: Any) -> None:
    """One JSON value on standard output, and nothing else."""
    print(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False))
