"""Changes to bytes, texts, values and folders that a case makes with its random generator."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

NUMBERS: Sequence[Any] = (
    *(0, -1, 1, 2, 3, 7, 255, 256, 65_536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64),
    *(10**30, -(10**30), 10**5000, 0.5, -0.0, 1.5, 1e308, -1e308, 5e-324),
    *(float("nan"), float("inf"), float("-inf")),
)
TEXTS: Sequence[str] = (
    *(
        "",
        " ",
        "\t",
        "\n",
        "a b",
        "x",
        "0",
        "-1",
        "1e3",
        "0x10",
        "1_000",
        "1:30",
        "~",
        "no",
        "null",
    ),
    *("nan", "inf", ".inf", "true", "None", "..", ".", "/", "../..", "a/b", "/dev/null", "-", "--"),
    *(
        "٣",
        "\uff11\uff12",
        "\U0001d7d8",
        "é",
        "e\u0301",
        "\u202e",
        "\u2028",
        "\x85",
        "\ufeff",
        "\x00",
        "\x1b[31m",
    ),
    *("\x1b]0;title\x07", "\x7f", "\r", "[on]", "[/a]", "[bold]x", "<b>", "&amp;", "|", "`", "$x$"),
    *("\\", "%s", "{}", "{0}", "'", '"', "#", "@", "!", "*", "&", "a" * 5000, "product(a,b)", "s5"),
    *("2-10", "10-2", "1-99999999999", "0-0", "1,2", "cpu", "cuda:99", "last", "every"),
)


def number(random: Random) -> Any:
    """A number that is seldom right."""
    if random.random() < 0.3:
        return random.randrange(-5, 20)
    return random.choice(NUMBERS)


def text(random: Random) -> str:
    """A text that is seldom right."""
    if random.random() < 0.15:
        return "".join(chr(random.randrange(1, 0x2FF)) for _ in range(random.randrange(1, 8)))
    return random.choice(TEXTS)


def value(random: Random, depth: int = 0) -> Any:
    """A value of any of the types of JSON and YAML."""
    draw = random.random()
    if draw < 0.35:
        return number(random)
    if draw < 0.6:
        return text(random)
    if draw < 0.7:
        return random.choice([None, True, False])
    if draw < 0.73:
        return nested(random.choice([50, 500, 3000]), random)
    if depth > 3:
        return []
    if draw < 0.87:
        return [value(random, depth + 1) for _ in range(random.choice([0, 1, 2, 3, 3, 50]))]
    return {text(random): value(random, depth + 1) for _ in range(random.choice([0, 1, 2, 4]))}


def nested(depth: int, random: Random) -> Any:
    """Lists or mappings, one inside the other."""
    made: Any = 0
    for _ in range(depth):
        made = [made] if random.random() < 0.7 else {"a": made}
    return made


def change_values(random: Random, content: Any) -> Any:
    """The content with one to three of its parts changed."""
    for _ in range(random.choice([1, 1, 1, 1, 2, 3])):
        content = _change_one(random, content)
    return content


def _change_one(random: Random, content: Any) -> Any:
    known = places(content)
    if not known or random.random() < 0.02:
        return value(random)
    path = random.choice(known)
    holder = content
    for key in path[:-1]:
        holder = holder[key]
    key = path[-1]
    old = holder[key]
    draw = random.random()
    if draw < 0.3:
        holder[key] = value(random)
    elif draw < 0.6:
        holder[key] = similar(random, old)
    elif draw < 0.7:
        del holder[key]
    elif draw < 0.78:
        other = random.choice(known)
        if other[:-1] == path[:-1]:
            holder[key], holder[other[-1]] = holder[other[-1]], old
        else:
            with recursion_allowed():  # a part of itself would have no end
                holder[key] = deepcopy(_at(content, other))
    elif isinstance(holder, list):
        _change_list(random, holder, key)
    else:
        new = text(random) if random.random() < 0.7 else random.choice(list(holder))
        holder[new] = holder.pop(key)
    return content


def _change_list(random: Random, items: list[Any], index: int) -> None:
    draw = random.random()
    if draw < 0.4:
        items.insert(index, items[index])
    elif draw < 0.7:
        items.insert(index, value(random))
    elif draw < 0.9:
        del items[index:]
    else:
        items.extend(items * random.choice([1, 3]))


def similar(random: Random, old: Any) -> Any:
    """A value of the same type as another, or one that looks like it."""
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        near = [old + 1, old - 1, old + 2, old * 2]
        return random.choice([*near, *near, -old, old * 1000, str(old), float(old), old + 0.5])
    if isinstance(old, float):
        return random.choice([-old, old * 1e300, int(old) if abs(old) < 1e9 else 0, str(old)])
    if isinstance(old, str):
        return change_text(random, old) if random.random() < 0.5 else old[::-1]
    if isinstance(old, list):
        return random.choice([old * 2, old[::-1], old[1:], old[:-1], [old], dict(enumerate(old))])
    if isinstance(old, dict):
        return random.choice([list(old), list(old.values()), {}, [old], {"a": old}])
    return value(random)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values inside some content: keys and numbers that lead to each."""
    found: list[tuple[Any, ...]] = []
    if len(path) > 12:
        return found
    items: Sequence[tuple[Any, Any]] = ()
    if isinstance(content, dict):
        items = list(content.items())
    elif isinstance(content, list):
        items = list(enumerate(content))[:60]
    for key, inner in items:
        found.append((*path, key))
        found.extend(places(inner, (*path, key)))
    return found


def _at(content: Any, path: Sequence[Any]) -> Any:
    for key in path:
        content = content[key]
    return content


def change_text(random: Random, old: str) -> str:
    """The text with one to three changes to letters or lines."""
    for _ in range(random.choice([1, 1, 2, 3])):
        draw = random.random()
        place = random.randrange(len(old) + 1)
        end = min(len(old), place + random.choice([1, 1, 2, 5, 20]))
        if draw < 0.25:
            old = old[:place] + old[end:]
        elif draw < 0.5:
            old = old[:place] + text(random) + old[place:]
        elif draw < 0.65:
            old = old[:place] + random.choice("0123456789-:,[]{}()'\"|*+ \n") + old[end:]
        elif draw < 0.8:
            old = old[:place] + old[place:end] * random.choice([2, 3, 50]) + old[end:]
        else:
            lines = old.split("\n")
            one, other = random.randrange(len(lines)), random.randrange(len(lines))
            lines[one], lines[other] = lines[other], lines[random.choice([one, other])]
            old = "\n".join(lines)
    return old


def change_bytes(random: Random, old: bytes) -> bytes:
    """The bytes with some flipped, cut out, repeated or put in."""
    for _ in range(random.choice([1, 1, 1, 2, 5])):
        draw = random.random()
        # what a file begins with says what it is and how large its parts are
        limit = len(old) if random.random() < 0.5 else min(len(old), 64)
        place = random.randrange(limit + 1)
        end = min(len(old), place + random.choice([1, 2, 4, 8, 100, 10_000]))
        if draw < 0.35 and old:
            place = min(place, len(old) - 1)
            flipped = old[place] ^ (1 << random.randrange(8))
            old = old[:place] + bytes([flipped]) + old[place + 1 :]
        elif draw < 0.5:
            old = old[:place]
        elif draw < 0.6:
            old = old[:place] + old[end:]
        elif draw < 0.7:
            old = old[:place] + old[place:end] * random.choice([2, 100]) + old[end:]
        elif draw < 0.85:
            size = random.choice([1, 2, 4, 8])
            filler = random.choice([b"\xff" * size, b"\0" * size, b"\x7f" + b"\xff" * (size - 1)])
            old = old[:place] + filler + old[place + size :]
        else:
            old = old[:place] + random.randbytes(random.choice([1, 8, 1000])) + old[place:]
    return old


def change_folder(random: Random, folder: Path, others: Sequence[Path]) -> str:
    """Put something in the place of a file of a folder; returns what was done.

    `others` are files of other folders, which may be put there.
    """
    paths = plain_files(folder)
    if not paths:
        return "nothing left to change"
    path = random.choice(paths)
    name = path.relative_to(folder.parent)
    changes: Mapping[str, Callable[[], object]] = {
        "is deleted": lambda: None,
        "is a folder": lambda: path.mkdir(),
        "is a folder with a file": lambda: _folder_with_file(path),
        "is a FIFO": lambda: os.mkfifo(path),
        "is a symbolic link to itself": lambda: path.symlink_to(path.name),
        "is a symbolic link to a file outside": lambda: path.symlink_to(
            os.path.relpath(Path.cwd().parent / "secret.txt", path.parent)
        ),
        "is a symbolic link to a file that is not there": lambda: path.symlink_to(
            os.path.relpath(Path.cwd().parent / "not-there.txt", path.parent)
        ),
        "is a symbolic link to /dev/zero": lambda: path.symlink_to("/dev/zero"),
        "is empty": lambda: path.write_bytes(b""),
        "is another file": lambda: shutil.copyfile(random.choice(others), path),
        "is another file of the folder": lambda: _copy(kept, path),
        "is not readable": lambda: _unreadable(path, kept[path]),
    }
    kept = {each: each.read_bytes() for each in paths}
    what = random.choice(list(changes))
    path.unlink()
    changes[what]()
    return f"{name} {what}"


def plain_files(folder: Path) -> list[Path]:
    """The files of a folder, without links to others."""
    found = (path for path in sorted(folder.rglob("*")) if not path.is_symlink())
    return [path for path in found if path.is_file()]


def _folder_with_file(path: Path) -> None:
    path.mkdir()
    (path / "inside.txt").write_text("x")


def _copy(kept: Mapping[Path, bytes], path: Path) -> None:
    donors = sorted(kept)
    path.write_bytes(kept[donors[(donors.index(path) + 1) % len(donors)]])


def _unreadable(path: Path, content: bytes) -> None:
    """Without permissions; an administrator reads it all the same."""
    path.write_bytes(content)
    path.chmod(0)


@contextmanager
def recursion_allowed() -> Iterator[None]:
    """Let what is nested deeply be handled here, as nothing that is tested may do."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def as_json(content: Any) -> str:
    """The text of a JSON file; whole numbers of any length, `NaN` and `Infinity` included."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with recursion_allowed():
            return json.dumps(content)
    finally:
        sys.set_int_max_str_digits(before)
