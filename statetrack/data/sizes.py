"""How much room a dataset takes on the disk, before it is drawn."""

from __future__ import annotations

import math
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from statetrack.data.formats import FormatName
from statetrack.data.large import Request, bytes_beside
from statetrack.data.texts import AS_TOKENS, TextRequest, texts_of
from statetrack.errors import DatasetError
from statetrack.sources import Source

_MARGIN: Final = 1.1


@dataclass(frozen=True)
class Size:
    """The size of a dataset, as far as it is known before its words."""

    num_words: int
    num_symbols: int
    written: int  # bytes
    beside: int  # bytes, until it is finished

    def __add__(self, other: Size) -> Size:
        return Size(
            self.num_words + other.num_words,
            self.num_symbols + other.num_symbols,
            self.written + other.written,
            self.beside + other.beside,
        )

    def check_room(self, folder: Path) -> None:
        """Raises `DatasetError` where the disk that is to hold the folder has no room for it."""
        needed = int(_MARGIN * (self.written + self.beside))
        free = _free_near(folder)
        if needed > free:
            raise DatasetError(
                f"{folder}: {self.num_words:,} words take about {in_bytes(needed)} of the disk "
                f"until they are written ({in_bytes(self.written)} afterwards), but it has only "
                f"{in_bytes(free)} left: ask for fewer words, or choose another disk"
            )


def estimate_size(
    source: Source, request: Request, format: FormatName, text: TextRequest = AS_TOKENS
) -> Size:
    """The size of a dataset; of the compressed formats as if symbols and labels were random.

    Raises `SettingsError` where words cannot be written as the text that is asked for.
    """
    words, symbols = request.num_words, request.num_symbols
    digits = _mean_digits(source.num_symbols) + _mean_digits(source.num_labels)
    entropy = (math.log2(source.num_symbols) + math.log2(source.num_labels)) / 8  # bytes
    in_text = texts_of(source, text).bytes_per_symbol if format == "lm-eval" else 0.0
    lines = 52 * words + (digits + 7.5) * symbols
    written = {
        "jsonl": lines,
        "lm-eval": lines + (60 + len(text.prompt)) * words + in_text * symbols,
        "csv": (3 + len(str(request.seed))) * words + (digits + 2) * symbols,
        "parquet": 2 * words + (entropy + 0.5) * symbols,
        "npz": 2 * words + (entropy + 0.2) * request.num_padded,
    }[format]
    return Size(words, symbols, int(written), bytes_beside(request, source))


def in_bytes(number: int) -> str:
    """A number of bytes for people: `1.2 GB`."""
    if number < 1_000_000:
        return f"{number / 1e3:,.1f} kB"
    return f"{number / 1e6:,.1f} MB" if number < 1_000_000_000 else f"{number / 1e9:,.1f} GB"


def _mean_digits(count: int) -> float:
    """The digits of the numbers `0 .. count - 1`, on average."""
    longest = len(str(count - 1))
    shorter: int = sum(10**digits for digits in range(1, longest))
    return longest - shorter / count


def _free_near(folder: Path) -> int:
    """The room on the disk of the nearest folder that is there."""
    for place in (folder, *folder.absolute().parents):
        if os.path.isdir(place):
            return shutil.disk_usage(place).free
    return 0
