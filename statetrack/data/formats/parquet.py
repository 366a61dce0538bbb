"""Parquet: a split is one file that `datasets.load_dataset` and every table reader opens."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from statetrack.data.formats.flat import Flat, flatten, pad
from statetrack.errors import DatasetError, setting
from statetrack.sources import Batch
from statetrack.sources.arrays import smallest_type

_SYMBOLS_PER_ROW_GROUP: Final = 2**24


def write(folder: Path, split: str, batch: Batch) -> None:
    """Write `<split>-00000-of-00001.parquet`, compressed with zstd.

    Its columns are the lists `input`, `target` and `scored`, and `length`.

    Raises `DatasetError` where pyarrow is not installed.
    """
    arrow, parquet = _library("pyarrow"), _library("pyarrow.parquet")
    schema = _schema(arrow, batch)
    words_per_group = max(1, _SYMBOLS_PER_ROW_GROUP // batch.symbols.shape[1])
    path = _path(folder, split)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for first in range(0, len(batch), words_per_group):
            flat = flatten(batch[first : first + words_per_group])
            offsets = np.concatenate([[0], flat.lengths.cumsum()]).astype(np.int32)
            columns = [
                arrow.ListArray.from_arrays(
                    offsets, arrow.array(values, schema.field(name).type.value_type)
                )
                for name, values in zip(
                    ("input", "target", "scored"),
                    (flat.symbols, flat.labels, flat.scored),
                    strict=True,
                )
            ]
            lengths = arrow.array(flat.lengths, arrow.int32())
            writer.write_table(arrow.Table.from_arrays([*columns, lengths], schema=schema))


def read(folder: Path, split: str) -> Batch:
    """Read what `write` has written.

    Raises `DatasetError` where pyarrow is not installed, or the file is no such table.
    """
    arrow, parquet = _library("pyarrow"), _library("pyarrow.parquet")
    path = _path(folder, split)
    try:
        table = parquet.read_table(path, columns=["input", "target", "scored", "length"])
        flat = Flat(
            _values(table["input"]),
            _values(table["target"]),
            _values(table["scored"]).astype(np.bool_),
            table["length"].to_numpy(),
        )
    except (arrow.ArrowException, KeyError) as problem:
        reason = str(problem).splitlines()[0]
        raise DatasetError(f"{path}: not a split of a dataset: {reason}") from None
    return pad(flat, str(path))


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
        return arrow.list_(arrow.from_numpy_dtype(smallest_type(int(values.max()) + 1)))

    return arrow.schema(
        [
            ("input", list_of(batch.symbols)),
            ("target", list_of(batch.labels)),
            ("scored", arrow.list_(arrow.bool_())),
            ("length", arrow.int32()),
        ]
    )


def _values(column: Any) -> Any:
    return np.concatenate([part.flatten().to_numpy(zero_copy_only=False) for part in column.chunks])
