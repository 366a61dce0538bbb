"""The pictures of tasks on the page about figures, drawn again.

    python docs/gallery.py            draw them
    python docs/gallery.py --check    name those that have changed, and exit with 1 if any have

Their texts and shapes are compared, and places to a tenth of a point: the last digits are those of
a processor.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.pictures import Look, draw_task
from statetrack.spec import load_task

DOCS = Path(__file__).parent
PICTURES = DOCS / "figures" / "tasks"

BROKER = "broker.dot"
"""The machine that stands on the page about machines."""

GALLERY = {
    "s3.svg": "s3",
    "dihedral.svg": "dihedral:n=4",
    "modular-addition.svg": "modular-addition",
    "modular-addition-7.svg": "modular-addition:m=7",
    "s4-cascade.svg": "s4-cascade",
    "broker.svg": BROKER,
    "s5.svg": "s5",
}
"""The file of each picture, and the task in it."""

ENOUGH = 0.1
"""The difference of two numbers of a picture, in points, that cannot be seen."""

NUMBER = re.compile(r"-?\d+\.\d+")
IDS = re.compile(r"#?[a-z]*[0-9a-f]{10,}")
DOTS = re.compile(r'base64,[^"]*', re.S)


def draw(name: str, file: Path) -> None:
    """Draw one picture into a file."""
    task = GALLERY[name]
    with tempfile.TemporaryDirectory() as folder:
        if task == BROKER:
            page = (DOCS / "machines.md").read_text(encoding="utf-8")
            found = re.search(rf"<!-- file: {BROKER} -->\n```dot\n(.*?)```", page, re.S)
            assert found is not None, f"{BROKER} stands on the page about machines"
            path = Path(folder) / BROKER
            path.write_text(found[1], encoding="utf-8")
            task = str(path)
        draw_task(load_task(task), file, look=Look())


def same(first: str, second: str) -> bool:
    """Whether two pictures cannot be told apart."""
    texts = [DOTS.sub("", IDS.sub("", each)) for each in (first, second)]
    if len({NUMBER.sub("", text) for text in texts}) > 1:
        return False
    before, after = ([float(each) for each in NUMBER.findall(text)] for text in texts)
    return all(abs(a - b) < ENOUGH for a, b in zip(before, after, strict=True))


def changed(names: Sequence[str]) -> list[str]:
    """Those of some pictures that are no longer what the program draws."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            new, old = Path(folder) / name, PICTURES / name
            draw(name, new)
            if not old.is_file() or not same(old.read_text("utf-8"), new.read_text("utf-8")):
                found.append(name)
    return found


def main() -> int:
    """Draw or check all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only name those that have changed")
    if parser.parse_args().check:
        stale = changed([*GALLERY])
        print("\n".join(stale) or "all pictures are what the program draws")
        return int(bool(stale))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in GALLERY:
        draw(name, PICTURES / name)
        print(PICTURES / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
