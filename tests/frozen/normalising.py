"""What differs between two recordings of one program, and what stands for it: all in one place."""

from __future__ import annotations

import csv
import io
import re

REPLACED: tuple[tuple[str, str], ...] = (
    # Times of day.
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?([+-]\d\d:?\d\d|Z)?( UTC)?", "TIME"),
    (r"\b\d{8}-\d{6}(-\d+)?\b", "TIME"),
    # Durations, as values of keys.
    (r'("(?:\w*_)?seconds": )[\d.e+-]+', r"\1SECONDS"),
    (r"((?:^|\s)seconds: )[\d.e+-]+", r"\1SECONDS"),
    # Versions and facts of the machine, as values of keys.
    (
        r'("(?:statetrack|statetrack_version|python|torch|numpy|platform|device_name|version|machine)"'
        r': )"[^"]*"',
        r"\1MACHINE",
    ),
    (r"(version\s*= \{)[\d.]+", r"\1VERSION"),
    (r"\bstatetrack \d+\.\d+\.\d+[\w.]*", "statetrack VERSION"),
    (r"^(with +)statetrack VERSION,.*(\n {10,}.*)?$", r"\1MACHINE"),
    # Durations and sizes that depend on them, in pages about runs.
    (r"\bTIME, [\d.,]+ (?:ms|s|min|h)\b *$", "TIME, DURATION"),
    (r"^( +(?:environment|summary|last|extensions|evidence)\.(?:jsonl?|pt)) .*$", r"\1 SIZE"),
    (
        r'("name": "(?:environment|summary|last|extensions|evidence)\.(?:jsonl?|pt)",'
        r'\n *"bytes": )\d+',
        r"\1SIZE",
    ),
    (r"(\d steps in )[\d.,]+ (?:ms|s|min|h)\b", r"\1SECONDS"),
    (r"(\btraining )[\d.,]+ (?:ms|s|min|h) in total, [\d.,]+ (?:ms|s|min|h)", r"\1SECONDS"),
    (r"^\d\d:\d\d:\d\d (?=\w+: )", "TIME "),
    (r", [\d.,]+ (?:ms|s|min|h)(?= \(\d+ of \d+)", ", SECONDS"),
    # What --verbose tells.
    (r"^\[[\d.]+ s\] (?:torch|CPU time).*$", "[SECONDS] MACHINE"),
    (r"^\[[\d.]+ s\] ", "[SECONDS] "),
    # A file of the program in a table, which breaks its path into lines.
    (r"^(file {2,})PROGRAM/(?:[^\n]*\n {6,})*?[^\n]*yaml *$", r"\1FILE OF THE PROGRAM"),
    # Names of objects.
    (r"\bat 0x[0-9a-f]+", "at ADDRESS"),
)
"""Patterns, and what is written in their place."""

COLUMNS = ("seconds", "version", "machine", "started")
"""Columns of CSV whose values are replaced by their name."""

PATTERNS = tuple((re.compile(pattern, re.MULTILINE), instead) for pattern, instead in REPLACED)


def normalised(text: str, paths: dict[str, str]) -> str:
    """A text without times, versions and facts of the machine; `paths` are replaced by names."""
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    return text


def normalised_csv(text: str) -> str:
    """CSV without the values of columns that differ each time."""
    rows = list(csv.reader(io.StringIO(text)))
    replaced = [place for place, name in enumerate(rows[0]) if name in COLUMNS] if rows else []
    for row in rows[1:]:
        for place in replaced:
            if place < len(row) and row[place]:
                row[place] = rows[0][place].upper()
    told = io.StringIO()
    csv.writer(told, lineterminator="\n").writerows(rows)
    return told.getvalue()
