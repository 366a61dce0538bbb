"""What a page shows: the text of a file that its reader is to save."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def on_the_page(name: str, page: str) -> str:
    """The text of a file under `<!-- file: NAME -->`."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- file: {re.escape(name)} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None
    return found[1]
