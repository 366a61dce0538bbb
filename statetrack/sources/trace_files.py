"""Files of recorded traces: CSV and JSON lines.

    symbols,outputs            trace,symbol,output        {"symbols": ["coin", "push"],
    coin push,open shut        1,coin,open                 "outputs": ["open", "shut"]}
    push,shut                  1,push,shut
                               2,push,shut

A CSV file has the names of its columns in its first line: `symbols` for a trace in each row, names
with spaces between them, or `trace` and `symbol` for a step in each row; rows of several traces may
stand between each other. Other columns, such as a time, are passed over. A line of JSON is one
trace. Outputs may be left out, everywhere. `count` says how often a trace was recorded, in all rows
of the trace.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from statetrack.errors import TaskError
from statetrack.sources.corpus import MOST_RECORDED, Trace
from statetrack.sources.formats._automata import MOST_BYTES, names_of
from statetrack.sources.formats._text import placed, read_text, shown, without_repetition
from statetrack.text import shortened, visible

ENDINGS: Final = (".csv", ".jsonl")
"""How the names of files of traces end."""


def is_trace_file(name: str) -> bool:
    """Whether a name is that of a file of traces."""
    return name.endswith(ENDINGS)


def is_header_of_traces(line: str) -> bool:
    """Whether the first line of a CSV file names the columns of traces."""
    names = {name.strip().strip('"') for name in line.split(",")}
    return "symbols" in names or {"trace", "symbol"} <= names


def read_traces(path: Path) -> list[Trace]:
    """The traces of a file, in its order, with names of symbols and outputs without spaces.

    Raises `TaskError`, opened by file and line, for a file that cannot be read so.
    """
    text = read_text(path, MOST_BYTES)
    try:
        traces = list(_in_lines(text) if path.name.endswith(".jsonl") else _in_rows(text))
        if not traces:
            raise TaskError("there are no traces in it")
        said = [trace.outputs is not None for trace in traces]
        if any(said) and not all(said):
            without = traces[said.index(False)]
            raise TaskError(f"line {without.line}: outputs are missing, which other traces have")
    except TaskError as wrong:
        raise placed(path, wrong) from None
    return _named(traces)


def _named(traces: list[Trace]) -> list[Trace]:
    symbols = names_of(sorted({name for trace in traces for name in trace.symbols}))
    outputs = names_of(sorted({name for trace in traces for name in trace.outputs or ()}))
    return [
        trace._replace(
            symbols=tuple(symbols[name] for name in trace.symbols),
            outputs=trace.outputs and tuple(outputs[name] for name in trace.outputs),
        )
        for trace in traces
    ]


def _in_lines(text: str) -> Iterator[Trace]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            content = json.loads(line, object_pairs_hook=without_repetition)
        except (ValueError, RecursionError):
            raise TaskError(f"line {number}: this is no JSON object") from None
        except TaskError as wrong:
            raise TaskError(f"line {number}: {wrong}") from None
        if not isinstance(content, dict) or "symbols" not in content:
            raise TaskError(f'line {number}: write {{"symbols": [...], "outputs": [...]}}')
        outputs = content.get("outputs")
        yield Trace(
            tuple(_texts(content["symbols"], "symbols", number)),
            None if outputs is None else tuple(_texts(outputs, "outputs", number)),
            _count(content.get("count", 1), number),
            number,
        )


def _texts(given: Any, what: str, line: int) -> Iterable[str]:
    """The names in a list; numbers as they are written."""
    if isinstance(given, str):
        return given.split()
    if not isinstance(given, list):
        raise TaskError(f"line {line}: '{what}' must be a list of names")
    for name in given:
        whole = isinstance(name, int) and not isinstance(name, bool) and abs(name) < 2**63
        if not (isinstance(name, str) or whole):
            value = visible(shortened(json.dumps(name)))
            raise TaskError(f"line {line}: {what}: {value} is neither text nor a whole number")
    return [str(name) for name in given]


def _count(given: Any, line: int) -> int:
    text = str(given).strip() if isinstance(given, str | int) else ""
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 0 < int(text)):
        raise TaskError(f"line {line}: 'count' must be a whole number from 1")
    return min(int(text), MOST_RECORDED + 1)


def _in_rows(text: str) -> Iterator[Trace]:
    rows = csv.reader(io.StringIO(text), strict=True)
    try:
        header = [cell.strip() for cell in next(rows, [])]
        columns = {name: place for place, name in enumerate(header)}
        twice = [name for place, name in enumerate(header) if columns[name] != place]
        if twice:
            raise TaskError(f"line 1: two columns are called {shown(twice[0])}: name each once")
        if "symbols" in columns:
            for line, cells in _cells(rows, columns):
                outputs = tuple(cells["outputs"].split()) if "outputs" in cells else None
                times = _count(cells.get("count", 1), line)
                yield Trace(tuple(cells["symbols"].split()), outputs, times, line)
        elif {"trace", "symbol"} <= columns.keys():
            yield from _steps(rows, columns)
        else:
            raise TaskError(
                "line 1: the columns must be `symbols` (and `outputs`), a trace in each row, or "
                "`trace` and `symbol` (and `output`), a step in each row"
            )
    except csv.Error as problem:
        raise TaskError(f"line {rows.line_num}: not CSV: {problem}") from None


def _cells(rows: Any, columns: dict[str, int]) -> Iterator[tuple[int, dict[str, str]]]:
    """The cells of every row that is not empty, by column, and its line."""
    for row in rows:
        if row:
            if len(row) != len(columns):
                raise TaskError(
                    f"line {rows.line_num}: {len(row)} cells, but there are {len(columns)} columns"
                )
            yield rows.line_num, {name: row[place] for name, place in columns.items()}


def _steps(rows: Any, columns: dict[str, int]) -> Iterator[Trace]:
    found: dict[str, tuple[int, int, list[str], list[str]]] = {}
    for line, cells in _cells(rows, columns):
        times = _count(cells.get("count", 1), line)
        first, said, symbols, outputs = found.setdefault(cells["trace"], (line, times, [], []))
        if times != said:
            raise TaskError(
                f"line {line}: 'count' is {cells['count'].strip()} here and another number in line "
                f"{first}, of the same trace: write one in all rows of a trace"
            )
        symbols.append(cells["symbol"])
        outputs.append(cells.get("output", ""))
    with_outputs = "output" in columns
    for line, times, symbols, outputs in found.values():
        yield Trace(tuple(symbols), tuple(outputs) if with_outputs else None, times, line)
