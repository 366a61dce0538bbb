"""How commands print JSON: what `--json` of every command writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from statetrack.evidence import Failure
    from statetrack.sources import Source


def print_json(content: Any) -> None:
    """One JSON value on standard output, and nothing else.

    Letters of any script are written as they are, and what cannot be printed as an escape.
    """
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    print("\n".join(map(_printable, text.split("\n"))))


def failure_json(failure: Failure | None, task: Source) -> dict[str, Any] | None:
    """A failure by the names of its symbols and labels."""
    if failure is None:
        return None
    return {
        "position": failure.position,
        "prefix": [task.symbols[symbol] for symbol in failure.prefix],
        "period": [task.symbols[symbol] for symbol in failure.period],
        "suffix": [task.symbols[symbol] for symbol in failure.suffix],
        "label": task.labels[failure.label],
        "answer": None if failure.answer is None else task.labels[failure.answer],
    }


def _printable(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(letter if letter.isprintable() else json.dumps(letter)[1:-1] for letter in line)
