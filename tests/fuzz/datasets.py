"""Datasets in every format with their cards, damaged."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from statetrack.data import FORMATS, draw_splits, read_dataset, write_dataset
from statetrack.spec import WordSpec, load_task
from tests.fuzz import mutations
from tests.fuzz.command_lines import import_all, run_command
from tests.fuzz.harness import Case, require
from tests.right_labels import check_labels

DTYPES = ("u1", "i8", "<f8", ">u2", "bool", "c16", "U3", "S2", "O", "M8[s]", "V5", "f2")


class Datasets:
    """A dataset with one or two damages, which is read and audited."""

    name = "datasets"

    def prepare(self, folder: Path) -> None:
        """Write one small dataset in every format."""
        import_all()
        self.task = load_task("parity")
        words = WordSpec.of(self.task)
        splits = draw_splits(
            self.task.source, words.lengths, 12, 4, [14], 5, words.supervision, seed=0
        )
        for format in FORMATS:
            write_dataset(folder / format, self.task, splits, format=format)
        self.folder = folder
        self.files = sorted(path for path in folder.rglob("*") if path.is_file())
        self.tables = {path.read_bytes() for path in folder.rglob("*.parquet")}

    def attempt(self, case: Case) -> None:
        """Damage a copy of one dataset, and use it."""
        random = case.random
        path = Path("data") / random.choice(list(FORMATS))
        shutil.copytree(self.folder / path.name, path)
        for _ in range(random.choice([1, 1, 1, 2])):
            case.note(self._damage(random, path))
        dataset = case.call("read_dataset", lambda: read_dataset(path))
        if dataset is not None:
            for name, batch in dataset.splits.items():
                shapes = {batch.symbols.shape, batch.labels.shape, batch.scored.shape}
                require(len(shapes) == 1, "a dataset that was read has arrays of other shapes")
                case.call(
                    "check_labels", lambda b=batch, n=name: check_labels(b, self.task.source, n)
                )
        if random.random() < 0.05:
            run_command(case, ["audit", f"./{path}", *random.choice([[], ["--json"]])])

    def _damage(self, random: Random, folder: Path) -> str:
        draw = random.random()
        if draw < 0.2:
            return mutations.change_folder(random, folder, self.files)
        paths = [path for path in mutations.plain_files(folder) if path.name != "README.md"]
        if not paths:
            return "nothing left to damage"
        path = random.choice(paths)
        # pyarrow ends the process on some damaged files, and here it reads them without care
        again = path.suffix == ".parquet" and path.read_bytes() not in self.tables
        try:
            changed = _changed_content(random, path) if draw < 0.65 and not again else None
        except Exception:  # it was damaged before, and is read here without any care
            changed = None
        if changed is None:
            changed = mutations.change_bytes(random, path.read_bytes())
        path.write_bytes(changed)
        return f"{path}: changed"


def _changed_content(random: Random, path: Path) -> bytes | None:
    """A file that is still of its format, with other values; None for a format without one."""
    if path.suffix == ".json":
        content = mutations.change_values(random, json.loads(path.read_text(encoding="utf-8")))
        return mutations.as_json(content).encode("utf-8", "surrogatepass")
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        changed = mutations.change_values(random, rows)
        rows = changed if isinstance(changed, list) else [changed]
        text = "".join(mutations.as_json(row) + "\n" for row in rows)
        return text.encode("utf-8", "surrogatepass")
    if path.suffix == ".csv":
        return mutations.change_text(random, path.read_text(encoding="utf-8")).encode()
    if path.suffix == ".npz":
        return _changed_archive(random, path)
    if path.suffix == ".parquet":
        return _changed_table(random, path)
    return None


def _is_nested(value: Any) -> bool:
    """Whether a value is more than a list of plain ones: pyarrow aborts on some that are deep."""
    parts = value if isinstance(value, list) else [value]
    return any(isinstance(part, list | dict) for part in parts)


def _changed_archive(random: Random, path: Path) -> bytes:
    """An archive with an array of another type or shape, or one that says it is huge."""
    with np.load(path) as archive:
        arrays: dict[str, Any] = dict(archive)
    name = random.choice(list(arrays))
    old = arrays[name]
    draw = random.random()
    if draw < 0.3:
        arrays[name] = _cast(old, random.choice(DTYPES))
    elif draw < 0.6:
        arrays[name] = random.choice(
            [old[:0], old[:-1], old[..., :1], old[None], old.ravel(), old.T, np.array(3), -old * 1]
            if old.dtype != bool
            else [old[:0], ~old, old[None]]
        )
    elif draw < 0.7:
        del arrays[name]
    elif draw < 0.85:
        arrays[name] = np.full_like(old, random.choice([1, 255]))
    else:
        return _huge_archive(path, name)
    np.savez_compressed("changed.npz", **arrays)
    content = Path("changed.npz").read_bytes()
    Path("changed.npz").unlink()
    return content


def _cast(array: Any, dtype: str) -> Any:
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        return array.astype("f4")


def _huge_archive(path: Path, name: str) -> bytes:
    """The archive with an array whose head says that it has 9 GB, which are zeros."""
    head = np.lib.format.magic(1, 0)
    about = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({9 * 10**9},), }}"
    about += " " * (64 - (len(head) + 2 + len(about) + 1) % 64) + "\n"
    made = head + len(about).to_bytes(2, "little") + about.encode() + b"\0" * 10**6
    with zipfile.ZipFile(path) as old, zipfile.ZipFile("changed.npz", "w") as new:
        for each in old.namelist():
            content = made if each == f"{name}.npy" else old.read(each)
            new.writestr(each, content, zipfile.ZIP_DEFLATED)
    content = Path("changed.npz").read_bytes()
    Path("changed.npz").unlink()
    return content


def _changed_table(random: Random, path: Path) -> bytes:
    """A Parquet table with a column of another type, or one row more, or one column less."""
    import pyarrow as arrow
    from pyarrow import parquet

    table = parquet.read_table(path, partitioning=None)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    name = random.choice(list(columns))
    draw = random.random()
    if draw < 0.6:
        changed = mutations.change_values(random, columns[name])
        columns[name] = changed if isinstance(changed, list) else [changed]
    elif draw < 0.8:
        del columns[name]
    else:
        columns[mutations.text(random)] = columns.pop(name)
    rows = min(map(len, columns.values()), default=0)
    if any(_is_nested(value) for values in columns.values() for value in values):
        return mutations.change_bytes(random, path.read_bytes())
    try:
        new = arrow.table({name: values[:rows] for name, values in columns.items()})
        parquet.write_table(new, "changed.parquet")
    except (arrow.ArrowException, OverflowError, TypeError, UnicodeError):  # mixed types
        return mutations.change_bytes(random, path.read_bytes())
    content = Path("changed.parquet").read_bytes()
    Path("changed.parquet").unlink()
    return content
