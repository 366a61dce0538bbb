"""The device that a setting names."""

from __future__ import annotations

import torch

from statetrack.errors import DeviceError, setting


def choose_device(name: str) -> torch.device:
    """The device that `auto`, `cpu`, `cuda` or `cuda:INDEX` names on this machine.

    Raises `DeviceError` where CUDA is requested and not available.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        found = torch.cuda.device_count()
        if not found:
            raise DeviceError(
                f"{setting('device', name)}: no CUDA device is available here; take cpu or auto"
            )
        if device.index is not None and device.index >= found:
            raise DeviceError(
                f"{setting('device', name)}: there are only {found} CUDA devices, from cuda:0"
            )
    return device
