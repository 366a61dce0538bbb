"""The command line of the record of what users see: `record` and `compare`."""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ENVIRONMENT = {
    "COLUMNS": "80",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TERM": "dumb",
    "LANG": "C.UTF-8",
}
UNWANTED = ("NO_COLOR", "FORCE_COLOR", "LINES", "STATETRACK_DEBUG", "PYTHONHASHSEED")
LINES_OF_A_DIFFERENCE = 20
CHARACTERS_OF_A_LINE = 240


def main() -> int:
    """Record, or record anew and compare; return the exit code."""
    asked = _arguments()
    os.environ.update(ENVIRONMENT)
    for name in UNWANTED:
        os.environ.pop(name, None)
    if asked.action == "record":
        _record(asked.folder.resolve(), asked.only)
        return 0
    with tempfile.TemporaryDirectory(prefix="frozen-anew-") as anew:
        sections = asked.only or [each.name for each in asked.folder.iterdir() if each.is_dir()]
        _record(Path(anew), sections)
        return _compare(asked.folder, Path(anew), sections)


def _arguments() -> argparse.Namespace:
    from .sections import SECTIONS

    parser = argparse.ArgumentParser(prog="python -m tests.frozen", description=__doc__)
    parser.add_argument("action", choices=["record", "compare"])
    parser.add_argument("folder", type=Path, help="where the recorded files are")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), metavar="SECTION")
    asked = parser.parse_args()
    if asked.action == "compare" and not asked.folder.is_dir():
        parser.error(f"{asked.folder}: there is no such folder")
    return asked


def _record(folder: Path, only: list[str] | None) -> None:
    """Record the sections into a folder, each in place of what it has of that section."""
    import torch

    import statetrack

    from .recording import Recorder
    from .sections import SECTIONS
    from .trained import TrainedRuns

    torch.set_num_threads(1)
    print(f"recording {Path(statetrack.__file__).parent}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="frozen-") as scratch:
        trained = TrainedRuns(Path(scratch).resolve())
        for section, record in SECTIONS.items():
            if only and section not in only:
                continue
            shutil.rmtree(folder / section, ignore_errors=True)
            started = time.perf_counter()
            with Recorder(folder / section, Path(scratch).resolve() / section) as recorder:
                record(recorder, trained)
            seconds = time.perf_counter() - started
            print(f"{section}: {recorder.count} outputs, {seconds:.1f} s", file=sys.stderr)


def _compare(before: Path, after: Path, sections: list[str]) -> int:
    """Print every difference between two folders; 0 where there is none."""
    names = sorted(
        {
            file.relative_to(folder)
            for folder in (before, after)
            for section in sections
            for file in (folder / section).glob("*.txt")
        }
    )
    different = 0
    for name in names:
        texts = [_text(folder / name) for folder in (before, after)]
        if texts[0] == texts[1]:
            continue
        different += 1
        print(f"--- {name.with_suffix('')}: {_change(*texts)}")
        if None not in texts:
            _print_difference(texts[0] or "", texts[1] or "")
    print("equal" if not different else f"{different} of {len(names)} outputs differ")
    return int(different > 0)


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None


def _change(before: str | None, after: str | None) -> str:
    if before is None:
        return "was not there before"
    return "is no longer there" if after is None else "differs"


def _print_difference(before: str, after: str) -> None:
    lines = list(difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm=""))
    shown = lines[2:][:LINES_OF_A_DIFFERENCE]
    for line, following in zip(shown, [*shown[1:], ""], strict=True):
        print(_part_of(line, following if line[:1] == "-" else ""))
    if len(lines) - 2 > LINES_OF_A_DIFFERENCE:
        print(f"... {len(lines) - 2 - LINES_OF_A_DIFFERENCE} more lines")


def _part_of(line: str, following: str) -> str:
    """A line; of a long one the part in which the line that follows begins to differ."""
    if len(line) <= CHARACTERS_OF_A_LINE:
        return line
    if following[:1] != "+":
        return f"{line[:CHARACTERS_OF_A_LINE]} ... {len(line)} characters"
    pairs = zip(line[1:], following[1:], strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    part = slice(max(1, same - 60), same + 100)
    return f"{line[:60]} ... at character {same}: {line[part]}\n    and now {following[part]}"


if __name__ == "__main__":
    sys.exit(main())
