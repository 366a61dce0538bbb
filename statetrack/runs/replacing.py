"""Replacing a run on purpose: what may be replaced, and what becomes of the old run.

The new run takes the folder once it has been checked and begun; until it has finished, the old one
stands beside it, as `.NAME.replaced`. So a start that fails changes nothing, and a training that
is stopped or killed has lost nothing: renamed back, the folder is the old run again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from statetrack.errors import RunError, setting
from statetrack.runs import locking
from statetrack.runs.files import FILES, final_name, reason_of
from statetrack.runs.loggers import LOGS

_FILES = frozenset(
    {
        *FILES,
        *(locking.TRAINING, locking.APPENDING, locking.POINT, *LOGS),
        *(f"words.{ending}" for ending in ("csv", "yaml", "yml", "jsonl")),
        *(f"plugin_{number}.py" for number in range(2, 10)),
    }
)
"""Everything that a run folder holds, but for the modules of a plugin."""


def kept_beside(path: Path) -> Path:
    """Where the old run is while the new one is trained."""
    return path.with_name(f".{path.name}.replaced")


def require_replaceable(path: Path, own: Collection[str] = ()) -> None:
    """Raise `RunError` unless a folder is a run that nobody trains, and holds nothing else.

    `own` are names that a new run has there too, such as modules of its plugin.
    """
    elsewhere = f"choose another {setting('out')}, or remove it yourself"
    if path.is_symlink() or not (path / "config.yaml").is_file():
        raise RunError(
            f"{path}: is no run folder, and only runs are replaced by {setting('force')}: "
            f"{elsewhere}"
        )
    try:
        names = sorted(os.listdir(path))
    except OSError as problem:
        raise RunError(f"{path}: cannot be read: {reason_of(problem)}") from None
    for name in names:
        if name not in _FILES and name not in own and final_name(name) not in _FILES:
            raise RunError(
                f"{path}: holds '{name}', which is no file of a run, and {setting('force')} "
                f"replaces nothing but runs: {elsewhere}"
            )
    with locking.training(path):
        pass
    if locking.TRAINING not in names:
        locking.remove_training_lock(path)


def replace_run(path: Path, made: Path, *, was_finished: bool) -> None:
    """Give the folder `made`, beside it, the place of the run at `path`.

    The old run is kept beside it; in place of one that was kept before, unless the old run has
    not finished: then that one stays, and the unfinished one goes.
    """
    kept = kept_beside(path)
    if kept.exists() and not was_finished:
        away = made.with_name(f"{made.name}.old")
        path.rename(away)
    else:
        if kept.exists():
            shutil.rmtree(kept)
        away = kept
        path.rename(away)
    try:
        made.rename(path)
    except OSError:
        away.rename(path)
        raise
    if away != kept:
        shutil.rmtree(away, ignore_errors=True)


def drop_replaced(path: Path) -> None:
    """Delete the run that one has replaced, which is complete now."""
    kept = kept_beside(path)
    with suppress(OSError):
        if (kept / "config.yaml").is_file() and not kept.is_symlink():
            shutil.rmtree(kept)
