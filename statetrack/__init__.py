"""Can this recurrent architecture track state, and how far?

The public names below are imported when they are first used, so that `import statetrack`
costs nothing; each is documented where it lives.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Automaton": "statetrack.sources",
    "KINDS": "statetrack.sources",
    "LinearModel": "statetrack.models._base",
    "LinearSettings": "statetrack.models._settings",
    "MODELS": "statetrack.models",
    "ModelSettings": "statetrack.models._settings",
    "RecurrentModel": "statetrack.models._base",
    "SequenceModel": "statetrack.models._base",
    "Settings": "statetrack.settings",
    "StatetrackError": "statetrack.errors",
    "TASKS": "statetrack.spec",
    "Task": "statetrack.spec",
    "load_task": "statetrack.spec",
    "option": "statetrack.settings",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'statetrack' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
