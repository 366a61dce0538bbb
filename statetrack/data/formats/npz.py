"""Numpy archives: a split is one file with the four padded arrays of its batch."""

from __future__ import annotations

import json
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from statetrack.data.formats.filling import (
    Declared,
    Extent,
    Filling,
    Format,
    Writing,
    file_size,
    one_line,
)
from statetrack.data.parts import SYMBOLS_AT_ONCE, Part
from statetrack.errors import DatasetError
from statetrack.sources import Batch

_ARRAYS = ("symbols", "labels", "scored", "lengths")

_UNSIGNED = ("|u1", "<u2", "<u4")
_TYPES: Final = {"symbols": _UNSIGNED, "labels": _UNSIGNED, "scored": ("|b1",), "lengths": ("<i8",)}

_ENCRYPTED: Final = 1
"""The bit among the flags of a zip member."""

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    KeyError,
    OverflowError,
    NotImplementedError,  # a zip of another kind
    RuntimeError,  # an encrypted one
    OSError,  # offsets outside the file
)
_BAD_HEADER = (
    *_DAMAGE,
    TypeError,
    SyntaxError,
    RecursionError,
    MemoryError,
    Warning,
    tokenize.TokenError,
)
"""What numpy raises for a header that is no header: it is parsed as Python."""


def write(folder: Path, split: str, part: Part, writing: Writing) -> None:
    """Write `<split>.npz`: `symbols`, `labels`, `scored` `[N, T]` and `lengths` `[N]`.

    As `numpy.savez_compressed` does, but with a few words at a time.
    """
    with zipfile.ZipFile(folder / f"{split}.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _ARRAYS:
            shape = (part.num_words,) if name == "lengths" else (part.num_words, part.width)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for index, batch in enumerate(part.pieces()):
                    array = getattr(batch, name)
                    if index == 0:
                        described = npy.dtype_to_descr(array.dtype)
                        header = {"descr": described, "fortran_order": False, "shape": shape}
                        npy.write_array_header_1_0(member, header)
                    member.write(np.ascontiguousarray(array).tobytes())


def read(folder: Path, split: str, declared: Declared) -> Batch:
    """Read what `write` has written.

    Nothing is expanded before the headers of all four arrays have been held against the card.

    Raises `DatasetError` where an array is missing, not as declared, or the file no such archive.
    """
    path = folder / f"{split}.npz"
    file_size(path)
    filling = Filling(str(path), declared)
    try:
        with zipfile.ZipFile(path) as archive, ExitStack() as files:
            _check_members(archive, path)
            members = [_open(archive, name, files, path) for name in _ARRAYS]
            _check_shapes(members, declared, path)
            width = members[0].shape[1]
            words_at_once = max(1, SYMBOLS_AT_ONCE // width)
            for first in range(0, declared.words, words_at_once):
                num_words = min(words_at_once, declared.words - first)
                symbols, labels, scored, lengths = (each.read(num_words) for each in members)
                filling.add_padded(symbols, labels, scored, lengths)
            for member in members:
                member.check_end()
    except _DAMAGE as problem:
        raise DatasetError(f"{path}: not a split of a dataset: {one_line(problem)}") from None
    return filling.done()


class _Member(NamedTuple):
    """An array of an archive, opened behind its header."""

    name: str
    file: IO[bytes]
    shape: tuple[int, ...]
    type: np.dtype[Any]

    def read(self, num_words: int) -> NDArray[Any]:
        """The next words: `[num_words]` or `[num_words, T]`."""
        shape = (num_words, *self.shape[1:])
        data = self.file.read(math.prod(shape) * self.type.itemsize)
        if self.type == np.bool_ and data.strip(b"\0\1"):
            raise ValueError(f"{self.name} is not yes or no everywhere")
        return np.frombuffer(data, self.type).reshape(shape)

    def check_end(self) -> None:
        """Raises `ValueError` where something follows, and `BadZipFile` for a wrong checksum."""
        if self.file.read(1):
            raise ValueError(f"{self.name} is longer than its header says")


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    names = sorted(member.filename for member in archive.infolist())
    if names != sorted(f"{name}.npy" for name in _ARRAYS):
        raise DatasetError(f"{path}: does not hold the arrays {', '.join(_ARRAYS)} and no others")
    for member in archive.infolist():
        if member.flag_bits & _ENCRYPTED:
            raise DatasetError(f"{path}: {member.filename} is encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DatasetError(f"{path}: {member.filename} is compressed in an unknown way")


def _open(archive: zipfile.ZipFile, name: str, files: ExitStack, path: Path) -> _Member:
    file = files.enter_context(archive.open(f"{name}.npy"))
    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("another version of the format")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy warns of headers that it has to repair
            shape, in_columns, type = npy.read_array_header_1_0(file)
    except _BAD_HEADER as problem:
        raise DatasetError(f"{path}: {name} is no array: {one_line(problem)}") from None
    where = f"{path}: {name}"
    if in_columns:
        raise DatasetError(f"{where} is not in the order of its words")
    if type.str not in _TYPES[name]:
        raise DatasetError(
            f"{where} has the type {one_line(type)}, not {' or '.join(_TYPES[name])}"
        )
    return _Member(name, file, shape, type)


def _check_shapes(members: Sequence[_Member], declared: Declared, path: Path) -> None:
    width = members[0].shape[1] if len(members[0].shape) == 2 else declared.longest
    for member in members:
        expected = (declared.words,) if member.name == "lengths" else (declared.words, width)
        if member.shape != expected or not declared.longest <= width <= declared.widest:
            raise DatasetError(
                f"{path}: {member.name} has the shape {member.shape}, but card.json declares "
                f"{declared.words} words of at most {declared.longest} symbols"
            )


def _size(extent: Extent) -> float:
    return 2 * extent.request.num_words + (extent.entropy + 0.2) * extent.request.num_padded


def _example(data: str) -> str:
    return (
        f"import numpy as np\n\nwords = np.load({json.dumps(f'{data}.npz')})\n"
        'print(words["symbols"][0], words["labels"][0], words["lengths"][0])'
    )


FORMAT: Final = Format(
    write,
    read,
    _size,
    "Arrays, padded with 0 at the end: `symbols`, `labels` and `scored` (whether the "
    "label is asked for), `[words, longest]`, and `lengths`, `[words]`.\n",
    example=_example,
)
