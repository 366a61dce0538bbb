"""Parquet: a split is one file that `datasets.load_dataset` and every table reader opens."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from statetrack.data.formats.filling import (
    Declared,
    Extent,
    Filling,
    Flat,
    Format,
    Writing,
    file_size,
    flatten,
    one_line,
)
from statetrack.data.formats.jsonl import COLUMNS, NAMES
from statetrack.data.parts import SYMBOLS_AT_ONCE, Part
from statetrack.errors import DatasetError, setting
from statetrack.sources import Batch

_SYMBOLS_PER_ROW_GROUP: Final = 2**22

_BYTES_PER_SYMBOL: Final = 16
_BYTES_PER_GROUP: Final = 2**21
"""No column is larger than these allow, before it is compressed: a dictionary for each group."""


def write(folder: Path, split: str, part: Part, writing: Writing) -> None:
    """Write `<split>-00000-of-00001.parquet`, compressed with zstd.

    Its columns are the lists `input`, `target` and `scored`, and `length`.

    Raises `DatasetError` where pyarrow is not installed.
    """
    arrow, parquet = _library("pyarrow"), _library("pyarrow.parquet")
    words_per_group = max(1, _SYMBOLS_PER_ROW_GROUP // part.width)
    schema = _schema(arrow, next(part.pieces(at_once=1)))
    path = _path(folder, split)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in part.pieces(words_per_group):
            flat = flatten(batch)
            offsets = _array(arrow, np.concatenate([[0], flat.lengths.cumsum()]), arrow.int32())
            columns = [
                arrow.ListArray.from_arrays(
                    offsets, _array(arrow, values, schema.field(name).type.value_type)
                )
                for name, values in zip(
                    NAMES[:3],
                    (flat.symbols, flat.labels, flat.scored),
                    strict=True,
                )
            ]
            lengths = _array(arrow, flat.lengths, arrow.int32())
            writer.write_table(arrow.Table.from_arrays([*columns, lengths], schema=schema))


def _array(arrow: Any, values: NDArray[Any], kind: Any) -> Any:
    """Numbers as a column of a type; `arrow.array` would import pandas, where it is installed."""
    if kind == arrow.bool_():
        numbers = np.packbits(values, bitorder="little")
    else:
        numbers = np.ascontiguousarray(values, str(kind))
    return arrow.Array.from_buffers(kind, len(values), [None, arrow.py_buffer(numbers)])


def read(folder: Path, split: str, declared: Declared) -> Batch:
    """Read what `write` has written.

    Raises `DatasetError` where pyarrow is not installed, or the file is no such table or not as
    declared; what its footer declares is checked before a value is read.
    """
    arrow, parquet = _library("pyarrow"), _library("pyarrow.parquet")
    path = _path(folder, split)
    file_size(path)
    filling = Filling(str(path), declared)
    try:
        with parquet.ParquetFile(path) as file:
            _check_schema(arrow.types, file.schema_arrow, path)
            _check_size(file.metadata, declared, path)
            for name in NAMES:
                # every value is decoded in constant memory. pyarrow ends the process when it is
                # asked for the columns of a contradictory footer; here it says what is wrong
                file.scan_contents([name])
            _check_footer(file.metadata, declared, path)
            words_at_once = max(1, SYMBOLS_AT_ONCE // declared.longest)
            for piece in file.iter_batches(words_at_once, columns=list(NAMES)):
                filling.add(_flat(piece, path))
    except (arrow.ArrowException, OSError, ValueError, KeyError, OverflowError) as problem:
        raise DatasetError(f"{path}: not a split of a dataset: {one_line(problem)}") from None
    return filling.done()


def _check_schema(types: Any, schema: Any, path: Path) -> None:
    if sorted(schema.names) != sorted(NAMES):
        raise DatasetError(f"{path}: its columns are not {', '.join(NAMES)}")
    of_values = {
        "input": types.is_integer,
        "target": types.is_integer,
        "scored": types.is_boolean,
    }
    for name, right in of_values.items():
        column = schema.field(name).type
        if not types.is_list(column) or not right(column.value_type):
            raise DatasetError(f"{path}: the column '{name}' has another type: {one_line(column)}")
    if not types.is_integer(schema.field("length").type):
        raise DatasetError(f"{path}: the column 'length' is not of whole numbers")


def _check_size(footer: Any, declared: Declared, path: Path) -> None:
    """Hold the numbers of rows and of bytes against the card."""
    if footer.num_rows != declared.words:
        raise DatasetError(
            f"{path}: holds {footer.num_rows} rows, card.json {declared.words} words"
        )
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    most_bytes = len(NAMES) * _most_bytes(footer, declared)
    if any(not 0 <= group.total_byte_size <= most_bytes for group in groups):
        raise DatasetError(f"{path}: is larger than its symbols can be: it is not read")


def _most_bytes(footer: Any, declared: Declared) -> int:
    """The most bytes of a column before it is compressed."""
    return _BYTES_PER_SYMBOL * declared.symbols + _BYTES_PER_GROUP * int(footer.num_row_groups)


def _check_footer(footer: Any, declared: Declared, path: Path) -> None:
    """Hold the numbers of values and of bytes of each column against the card."""
    most_bytes = _most_bytes(footer, declared)
    groups = [footer.row_group(group) for group in range(footer.num_row_groups)]
    for index in range(footer.num_columns):
        columns = [group.column(index) for group in groups]
        is_length = any(column.path_in_schema == "length" for column in columns)
        expected = declared.words if is_length else declared.symbols
        if sum(column.num_values for column in columns) != expected:
            raise DatasetError(f"{path}: does not hold the {declared.symbols} symbols of card.json")
        if sum(column.total_uncompressed_size for column in columns) > most_bytes:
            raise DatasetError(
                f"{path}: a column is larger than its symbols can be: it is not read"
            )


def _flat(piece: Any, path: Path) -> Flat:
    """Words joined end to end, after a check that every word has all its parts."""
    lengths = piece.column("length")
    parts = [piece.column(name) for name in ("input", "target", "scored")]
    if any(part.null_count or part.flatten().null_count for part in parts) or lengths.null_count:
        raise DatasetError(f"{path}: a value is missing (null)")
    expected = _numbers(lengths)
    if not all(np.array_equal(_numbers(part.value_lengths()), expected) for part in parts):
        raise DatasetError(f"{path}: not every symbol has its label: write the dataset again")
    symbols, labels, scored = (_numbers(part.flatten()) for part in parts)
    return Flat(symbols, labels, scored, expected)


def _numbers(column: Any) -> NDArray[Any]:
    """What a column without nulls holds; its own `to_numpy` would import pandas as well."""
    kind, (_, values) = np.dtype(str(column.type)), column.buffers()
    if not len(column):
        return np.empty(0, kind)
    end = column.offset + len(column)
    if kind == np.bool_:
        bits = np.unpackbits(np.frombuffer(values, np.uint8), count=end, bitorder="little")
        return bits[column.offset :].view(np.bool_)
    return np.frombuffer(values, kind, count=end)[column.offset :]


def _path(folder: Path, split: str) -> Path:
    return folder / f"{split}-00000-of-00001.parquet"


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise DatasetError(
            f"Parquet needs pyarrow: pip install pyarrow, or choose {setting('format', 'jsonl')}"
        ) from None


def _schema(arrow: Any, batch: Batch) -> Any:
    def list_of(values: NDArray[np.unsignedinteger]) -> Any:
        return arrow.list_(arrow.from_numpy_dtype(values.dtype))

    return arrow.schema(
        [
            ("input", list_of(batch.symbols)),
            ("target", list_of(batch.labels)),
            ("scored", arrow.list_(arrow.bool_())),
            ("length", arrow.int32()),
        ]
    )


def _size(extent: Extent) -> float:
    return 2 * extent.request.num_words + (extent.entropy + 0.5) * extent.request.num_symbols


def _example(data: str) -> str:
    return (
        "from glob import glob\n\nimport pyarrow.parquet\n\n"
        f"files = sorted(glob({json.dumps(f'{data}-*.parquet')}))\n"
        "words = pyarrow.parquet.ParquetDataset(files).read()\n"
        "print(words.slice(0, 1).to_pylist())"
    )


FORMAT: Final = Format(write, read, _size, f"{COLUMNS}.\n", "{split}-*.parquet", _example)
