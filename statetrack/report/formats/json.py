"""JSON: what the command's `--json` prints, letters of any script as they are."""

from __future__ import annotations

import json
from typing import Any

from statetrack.report.table import FORMATS, Document, ReportFormat
from statetrack.scoring import plain


def json_lines(content: Any) -> str:
    """A value as strict JSON."""
    return json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _draw(document: Document) -> str:
    return json_lines(document.json())


FORMATS.register("json")(ReportFormat(".json", _draw, holds="everything"))
