"""The choice between torch and a kernel of flash-linear-attention for a recurrence.

A scan in torch launches hundreds of small operations per word; a kernel of flash-linear-attention
is one launch. It runs on CUDA, in float32.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from statetrack.errors import SettingsError, setting
from statetrack.extras import missing_kernels

KernelChoice = Literal["auto", "torch", "fla"]

OLDEST_GPU = (8, 0)
"""The least compute capability that Triton supports."""


def by_kernel(choice: KernelChoice, state: Tensor) -> bool:
    """Whether a kernel computes the recurrence that starts in `state`.

    Raises `SettingsError` where `fla` is requested and cannot run.
    """
    return kernel_for(choice, state.device, state.dtype.to_real()) == "fla"


def kernel_for(
    choice: KernelChoice, device: torch.device, dtype: torch.dtype = torch.float32
) -> Literal["torch", "fla"]:
    """The implementation, `torch` or `fla`, that a choice means on tensors of a device and type.

    Raises `SettingsError` where `fla` is requested and cannot run.
    """
    problem = None if choice == "torch" else why_not(device, dtype)
    if choice == "fla" and problem is not None:
        raise SettingsError(
            f"{setting('kernel', 'fla')}: {problem}; take {setting('kernel', 'auto')} or torch"
        )
    return "torch" if choice == "torch" or problem is not None else "fla"


def why_not(device: torch.device, dtype: torch.dtype = torch.float32) -> str | None:
    """Why the kernels cannot run on tensors of a device and type; None if they can."""
    if (problem := missing_kernels()) is not None:
        return problem
    if device.type != "cuda":
        return f"its kernels run on CUDA only, and the device is {device}"
    if torch.cuda.get_device_capability(device) < OLDEST_GPU:
        return f"Triton needs a GPU of compute capability {OLDEST_GPU[0]}.{OLDEST_GPU[1]} or more"
    return None if dtype == torch.float32 else f"its kernels get float32, not {dtype}"
