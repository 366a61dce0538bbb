"""The identity of a run: the settings and the task that decide what its weights are.

Weights and checkpoints carry the identity of the run they were made in, so those of another run,
or of settings that were changed since, are not taken for this run's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from statetrack.errors import RunError

WITHOUT_EFFECT = frozenset({"device", "threads", "kernel", "checkpoint_every"})
"""Settings that say where and how the same function is computed."""

_MISSING = object()


@dataclass(frozen=True)
class Identity:
    """The settings of config.yaml, and the SHA-256 of task.yaml.

    `task_hash` is None where it was not recorded, and in a folder without a task.
    """

    config: Mapping[str, Any]
    task_hash: str | None = None

    @classmethod
    def of(cls, config: Mapping[str, Any], task: bytes | None) -> Identity:
        """The identity of a configuration and the content of a task file."""
        if task is None:
            return cls(config)
        return cls(config, hashlib.sha256(task.replace(b"\r\n", b"\n")).hexdigest())

    @classmethod
    def from_json(cls, content: Any, where: str) -> Identity:
        """The identity that a file carries.

        Raises `RunError`, whose message begins with `where`, for content of another form.
        """
        config = content.get("config") if isinstance(content, dict) else None
        task_hash = content.get("task_sha256") if isinstance(content, dict) else None
        if not isinstance(config, dict) or not isinstance(task_hash, str | None):
            raise RunError(f"{where}: is damaged: it does not say which settings it belongs to")
        return cls(config, task_hash)

    def to_json(self) -> dict[str, Any]:
        """The identity as plain values."""
        task = {} if self.task_hash is None else {"task_sha256": self.task_hash}
        return {"config": dict(self.config), **task}

    def difference(self, now: Identity) -> str | None:
        """What differs from the identity of the folder, with the file that has it; None if equal.

        It continues the sentence `this file does not belong to ...`.
        """
        for key in dict.fromkeys([*self.config, *now.config]):
            then, current = self.config.get(key, _MISSING), now.config.get(key, _MISSING)
            if key not in WITHOUT_EFFECT and then != current:
                return (
                    f"config.yaml: '{key}' was {_shown(then)} when it was written, "
                    f"and is {_shown(current)} now"
                )
        if None not in (self.task_hash, now.task_hash) and self.task_hash != now.task_hash:
            return "task.yaml: that file is not the one that it was trained with"
        return None


def settings_hash(config: Mapping[str, Any]) -> str:
    """A short hash of a run's settings, without those in `WITHOUT_EFFECT`: 12 hexadecimal digits.

    It does not depend on the order of the settings.
    """
    counted = {key: value for key, value in config.items() if key not in WITHOUT_EFFECT}
    text = json.dumps(counted, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _shown(value: object) -> str:
    return "not set" if value is _MISSING else repr(value)
