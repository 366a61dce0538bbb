"""Optional packages, each of which an extra of statetrack installs."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import Any

from statetrack.errors import SettingsError


@cache
def missing_kernels() -> str | None:
    """What the kernels of flash-linear-attention need and is not installed; None if all is."""
    for module, package in (("fla", "fla-core"), ("triton", "triton")):
        if importlib.util.find_spec(module) is None:
            return f"{package} is not installed (pip install 'statetrack[fla]')"
    return None


def import_extra(module: str, extra: str, needed_by: str) -> Any:
    """An optional package, imported.

    Raises `SettingsError`, which says what installs it, where it is missing or cannot be imported.
    """
    advice = f"`pip install 'statetrack[{extra}]'` installs it"
    if importlib.util.find_spec(module) is None:
        raise SettingsError(f"{needed_by} needs {module}, which is not installed: {advice}")
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        raise SettingsError(
            f"{needed_by} needs {module}, which cannot be imported ({problem}): {advice} anew"
        ) from None
