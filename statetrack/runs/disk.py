"""Files on a disk: read with bounds, written whole or not at all, extended line by line.

Every failure is a `RunError` of one line that begins with the file's path.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from statetrack.errors import RunError

LONGEST_ROW = 1 << 16
"""An upper bound of the bytes in a line of a file of rows, its end included."""

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+(-[0-9a-f]+)?")
"""A name that `temporary_name` gives, or that an earlier version gave."""

_NOT_SYNCHRONISED = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What a file system answers that cannot write its buffers out when asked to."""


def temporary_name(name: str) -> str:
    """A name beside the final one that no other process, thread or host uses."""
    return f".{name}.{os.getpid()}-{secrets.token_hex(8)}"


def final_name(name: str) -> str | None:
    """The name that a file or folder under a temporary name was to get; None for other names."""
    found = _TEMPORARY.fullmatch(name)
    return found["name"] if found else None


def is_file(path: Path) -> bool:
    """Whether there is a regular file; False also where that cannot be found out."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False also where that cannot be found out."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def reason_of(problem: Exception) -> str:
    """An exception in a few words, on one line."""
    reason = getattr(problem, "strerror", None) or str(problem).strip() or type(problem).__name__
    return str(reason).splitlines()[0]


def cannot_be_written(path: Path, problem: Exception) -> RunError:
    """The error that a file cannot be written."""
    return RunError(f"{path}: cannot be written: {reason_of(problem)}")


def require_file(path: Path, missing: str = "is missing") -> None:
    """Raise `RunError` unless there is a regular file, which can be opened without waiting."""
    if is_file(path):
        return
    try:
        path.stat()
    except FileNotFoundError:
        raise RunError(f"{path}: {missing}") from None
    except (OSError, ValueError) as problem:
        raise RunError(f"{path}: cannot be read: {reason_of(problem)}") from None
    raise RunError(f"{path}: is not a file")


def read_file(path: Path, *, missing: str = "is missing", largest: int | None = None) -> bytes:
    """The content of a file; one of more than `largest` bytes is damaged."""
    require_file(path, missing)
    try:
        with path.open("rb") as file:
            content = file.read(-1 if largest is None else largest + 1)
    except OSError as problem:
        raise RunError(f"{path}: cannot be read: {reason_of(problem)}") from None
    if largest is not None and len(content) > largest:
        raise RunError(f"{path}: is damaged: it has more than {largest:,} bytes")
    return content


def read_lines(path: Path, longest: int = LONGEST_ROW) -> Iterator[bytes]:
    """The complete lines of a file, none where there is no file; each of at most `longest` bytes.

    A last line without its end is left out: a killed process or a full disk leaves such a line.
    """
    if not os.path.lexists(path):
        return
    require_file(path)
    try:
        with path.open("rb") as file:
            number = 1
            while line := file.readline(longest + 1):
                if len(line) > longest:
                    raise RunError(f"{path}, line {number}: is damaged: longer than any row")
                if not line.endswith(b"\n"):
                    return
                yield line
                number += 1
    except OSError as problem:
        raise RunError(f"{path}: cannot be read: {reason_of(problem)}") from None


def write_named_file(path: Path, content: bytes) -> None:
    """Write a file that a user named, by `write_file` with the mode of the one that is there.

    A pipe, a device, what a symbolic link names, and a file in a folder that takes no new one are
    written to as they are.
    """
    there = is_file(path) and not path.is_symlink()
    replaceable = os.access(path, os.W_OK) if there else not os.path.lexists(path)
    if replaceable and os.access(path.parent, os.W_OK):
        write_file(path, content, mode=path.stat().st_mode & 0o777 if there else None)
        return
    try:
        path.write_bytes(content)
    except OSError as problem:
        raise cannot_be_written(path, problem) from None


def write_file(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Write a file under a temporary name and rename it, so that the old or the new one exists.

    It has the mode that the umask gives, unless one is given. The new file is on the disk before
    it takes the name, and the name before this returns: a loss of power leaves a whole file too.
    Where it fails, nothing is left beside the old file.
    """
    beside = path.with_name(temporary_name(path.name))
    try:
        try:
            with beside.open("xb") as file:
                if mode is not None:
                    beside.chmod(mode)
                file.write(content)
                file.flush()
                _synchronise(file.fileno())
            beside.replace(path)
        except BaseException:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise
        synchronise(path.parent)
    except OSError as problem:
        raise cannot_be_written(path, problem) from None


def _open_no_link(path: str, flags: int) -> int:
    """Open a file, but not what a symbolic link names: a run folder may come from anywhere."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def append_to_file(path: Path, content: bytes, longest: int = LONGEST_ROW) -> None:
    """Append whole lines, all of them or none; a last line without its end is removed first.

    Two processes must not do this at once: see `locking.appending`. A symbolic link is refused.
    """
    try:
        with open(path, "a+b", buffering=0, opener=_open_no_link) as file:
            end = file.seek(0, os.SEEK_END)
            begin = _end_of_lines(path, file, end, longest)
            if begin < end:
                file.truncate(begin)
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[file.write(rest) :]
            except BaseException:
                with suppress(OSError):
                    file.truncate(begin)
                raise
    except OSError as problem:
        raise cannot_be_written(path, problem) from None


def synchronise(path: Path) -> None:
    """Have a file or folder that exists written to the disk, where the system can do that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:  # there is none; or a folder, which Windows does not open
        return
    try:
        _synchronise(descriptor)
    except OSError as problem:
        raise cannot_be_written(path, problem) from None
    finally:
        os.close(descriptor)


def _synchronise(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _NOT_SYNCHRONISED:
            raise


def _end_of_lines(path: Path, file: BinaryIO, end: int, longest: int) -> int:
    """Where the last complete line ends."""
    begin = file.seek(max(0, end - longest))
    tail = b""
    while block := file.read(end - begin - len(tail)):
        tail += block
    line_end = tail.rfind(b"\n")
    if line_end < 0 and begin:
        raise RunError(f"{path}: is damaged: its last line is longer than any row")
    return begin + line_end + 1
