"""How commands print JSON: what `--json` of every command writes."""

from __future__ import annotations

import json
from typing import Any


def print_json(content: Any) -> None:
    """One JSON value on standard output, and nothing else.

    Letters of any script are written as they are, and what cannot be printed as an escape.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    print("\n".join(map(_printable, text.split("\n"))))


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in line)
