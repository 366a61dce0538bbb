"""The device that a setting names, and the memory of a process."""

from __future__ import annotations

import ctypes
import platform

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


_TRIM_THRESHOLD = -1  # the names and numbers of glibc's malloc.h
_MMAP_MAX = -4
_LARGEST = 2**31 - 1


def keep_freed_memory() -> None:
    """Let glibc keep freed memory, so that large temporaries cost no page faults.

    By default glibc maps every block above 32 MB from the system and unmaps it when it is freed,
    so that each training step waits for zeroed pages again: several times the arithmetic of the
    gradient of a large weight. To be called once, before the first large tensor is allocated.
    Does nothing where the C library is not glibc.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    libc = ctypes.CDLL(None)
    libc.mallopt(_MMAP_MAX, 0)
    libc.mallopt(_TRIM_THRESHOLD, _LARGEST)
