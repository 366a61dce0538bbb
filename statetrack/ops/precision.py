"""The precision of a recurrence: float32 or better, since rounding errors accumulate."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
Result = TypeVar("Result")


def widened(tensor: Tensor) -> Tensor:
    """The tensor in float32 where it is bfloat16 or float16, else unchanged."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def in_full_precision(function: Callable[P, Result]) -> Callable[P, Result]:
    """The function with autocast switched off: its products keep the precision of its arguments."""

    @wraps(function)
    def precise(*args: P.args, **kwargs: P.kwargs) -> Result:
        device = next(arg.device.type for arg in args if isinstance(arg, Tensor))
        available = torch.amp.autocast_mode.is_autocast_available(device)
        if not available or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return precise
