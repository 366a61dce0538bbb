"""Keeping freed memory in the process, for large tensors that are allocated at every step."""

from __future__ import annotations

import ctypes
import platform

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
