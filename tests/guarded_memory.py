"""A pytest plugin: tensors that compiled loops get stand beside memory that cannot be read.

    python -m pytest -p tests.guarded_memory tests/test_native_kernels.py

Loops get addresses and check no bounds. Here every tensor of a call ends where a page begins that
the process may not read or write, or, in every second call, begins where such a page ends: one
number too far ends the process. Tensors that are given by address alone are not guarded.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
import pkgutil
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor

import statetrack.ops.loops as package

PAGE = mmap.PAGESIZE
BY_ADDRESS = "mixtures", "symbol_pairs"
"""Families whose loops get some tensors by address."""

_C = ctypes.CDLL(None, use_errno=True)
_C.mmap.restype = ctypes.c_void_p
_C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 4]
_C.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_C.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Guarded:
    """A copy of a tensor's memory between two pages that cannot be read."""

    def __init__(self, tensor: Tensor, *, at_end: bool) -> None:
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        count = 1 + sum((size - 1) * step for size, step in steps)
        size = count * tensor.element_size()
        used = -(-size // PAGE) * PAGE
        self.size = used + 2 * PAGE
        private, anonymous = mmap.MAP_PRIVATE, mmap.MAP_ANONYMOUS
        self.place = _C.mmap(None, self.size, 0, private | anonymous, -1, 0)
        _C.mprotect(self.place + PAGE, used, mmap.PROT_READ | mmap.PROT_WRITE)
        first = self.place + PAGE + (used - size if at_end else 0)
        memory = (ctypes.c_char * size).from_address(first)
        self.numbers = torch.frombuffer(memory, dtype=tensor.dtype)
        self.own = tensor.as_strided((count,), (1,))
        self.numbers.copy_(self.own)
        self.tensor = self.numbers.as_strided(tensor.shape, tensor.stride())

    def give_back(self) -> None:
        """Copy what was written, as a loop would have, and free the memory."""
        autograd: Any = torch.autograd
        with autograd._unsafe_preserve_version_counter(self.own):
            self.own.copy_(self.numbers)
        _C.munmap(self.place, self.size)


def guarded(loop: Callable[..., None]) -> Callable[..., None]:
    """A loop that gets guarded tensors."""
    calls = 0

    @wraps(loop)
    def run(*given: Any) -> None:
        nonlocal calls
        calls += 1
        held: dict[int, Guarded] = {}
        for each in given:
            if isinstance(each, Tensor) and each.numel() and id(each) not in held:
                held[id(each)] = Guarded(each, at_end=calls % 2 == 1)
        loop(*(held[id(each)].tensor if id(each) in held else each for each in given))
        for part in held.values():
            part.give_back()

    return run


def guard() -> None:
    """Replace all loops by guarded ones, but those of `BY_ADDRESS`."""
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in list(vars(module).items()):
            code = getattr(value, "__code__", None)
            is_loop = getattr(code, "co_name", "") == "called" and hasattr(value, "__wrapped__")
            if is_loop and value.__module__ == module.__name__ and info.name not in BY_ADDRESS:
                setattr(module, name, guarded(value))


guard()
