"""How tests look at the refusal of a task or of a machine file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from statetrack.errors import TaskError


def message_of(action: Callable[..., object], *given: Any, **how: Any) -> str:
    """The message of the `TaskError` that a call raises: one line."""
    with pytest.raises(TaskError) as caught:
        action(*given, **how)
    message = str(caught.value)
    assert message and "\n" not in message
    return message
