"""The device and the implementation that settings name, and the memory of a process."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable, Iterator
from typing import Literal, TypeVar

import torch
from torch import Tensor

from statetrack.errors import DeviceError, SettingsError, setting
from statetrack.ops import fla, native

KernelChoice = Literal["auto", "torch", "native", "fla"]
Kernel = Literal["torch", "native", "fla"]
"""An implementation: torch's operations, compiled loops, or flash-linear-attention."""

Result = TypeVar("Result")


def kernel_for(
    choice: KernelChoice, device: torch.device, dtype: torch.dtype = torch.float32
) -> Kernel:
    """The implementation that a choice means on tensors of a device and type.

    Raises `SettingsError` where one is requested and cannot run.
    """
    if choice == "torch":
        return "torch"
    if choice == "auto":
        names: tuple[Literal["native", "fla"], ...] = ("fla", "native")
        return next((name for name in names if why_not(name, device, dtype) is None), "torch")
    if (problem := why_not(choice, device, dtype)) is not None:
        raise SettingsError(
            f"{setting('kernel', choice)}: {problem}; take {setting('kernel', 'auto')} or torch"
        )
    return choice


def why_not(
    name: Literal["native", "fla"], device: torch.device, dtype: torch.dtype = torch.float32
) -> str | None:
    """Why an implementation cannot run on tensors of a device and type; None if it can."""
    return fla.why_not(device, dtype) if name == "fla" else native.why_not(device, dtype)


def by_choice(
    choice: KernelChoice,
    state: Tensor,
    torch: Callable[..., Result],
    native: Callable[..., Result] | None = None,
    fla: Callable[..., Result] | None = None,
) -> Callable[..., Result]:
    """The function that computes a recurrence that starts in `state`, of those there are.

    Raises `SettingsError` where `choice` names an implementation that cannot run.
    """
    kernel = kernel_for(choice, state.device, state.dtype.to_real())
    return {"torch": torch, "native": native, "fla": fla}[kernel] or torch


def natively(choice: KernelChoice, inputs: Tensor) -> bool:
    """Whether compiled loops compute a layer that has no other kernel, of its inputs.

    Not under autocast, in which layers have lower precision.
    """
    device = inputs.device
    if choice == "torch" or (device.type == "cpu" and torch.is_autocast_enabled("cpu")):
        return False
    return kernel_for(choice, device, inputs.dtype) == "native"


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


SMALL = 1_000_000
"""Weights of a population below which one thread is faster than several."""


def num_threads(threads: int, num_weights: int) -> int:
    """The threads of torch for so many weights, one for each processor at most.

    0: one for a small number of weights, and torch's own number for a large one.
    """
    if not threads and num_weights >= SMALL:
        return torch.get_num_threads()
    return min(threads or 1, os.cpu_count() or 1)


def set_threads(threads: int, num_weights: int) -> None:
    """Set torch's number of threads to that of `num_threads`."""
    torch.set_num_threads(num_threads(threads, num_weights))


def in_threads(items: Iterator[Result], threads: int, num_weights: int) -> Iterator[Result]:
    """The items, each computed with the threads of `num_threads`; others have what there was."""
    own = num_threads(threads, num_weights)
    try:
        while True:
            before = torch.get_num_threads()
            torch.set_num_threads(own)
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                torch.set_num_threads(before)
            yield item
    finally:
        if (close := getattr(items, "close", None)) is not None:
            close()


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
