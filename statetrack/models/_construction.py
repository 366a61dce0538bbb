"""The construction of a model by its name, whose weights must fit into memory.

Linux grants more memory than there is and ends the process later, without a message; so the size
is computed first, from a model on torch's `meta` device, which has shapes and no values. Of a small
model one with values tells it: arithmetic on `meta` imports torch's compiler (torch._dynamo, with
SymPy), which takes 1.2 s of CPU time, as much as the rest of torch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from statetrack.errors import SettingsError, setting
from statetrack.models._base import SequenceModel
from statetrack.models._registry import MODELS
from statetrack.settings import build
from statetrack.spec import Task, load_task

ModuleT = TypeVar("ModuleT", bound=nn.Module)

TRAINING: Final = 5
"""Copies of the weights in training: themselves, the best ones, gradients, two averages of Adam."""

FEW = 2**24
"""The most numbers that a model may draw before its size is known: 64 MB in float32."""

CGROUP = Path("/sys/fs/cgroup/memory.max")
MEMINFO = Path("/proc/meminfo")


def make_model(
    name: str, task: Task | str | Path, *, seed: int = 0, **settings: Any
) -> SequenceModel:
    """A model with random initial weights, for the symbols and labels of a task (or its name).

    `settings` are the model's own, by the names that `statetrack show NAME` lists; what is left
    out has its default. The weights are those of a replica with the same `seed` in a run.

    Raises `UnknownNameError` for a name that no model has, and `SettingsError` for a setting that
    the model does not have or that its field refuses, and where its weights do not fit into memory.
    """
    if not isinstance(name, str):
        raise SettingsError(
            f"make_model: {type(name).__name__} is no name: give one that `statetrack list models` "
            "shows; a module is trained by `st.fit(module, task)`"
        )
    kind, source = MODELS[name], load_task(task).source
    chosen = build(kind.settings_class, settings, name)

    def make() -> SequenceModel:
        return kind(chosen, num_symbols=source.num_symbols, num_labels=source.num_labels)

    check_memory(make, 1, 1, torch.device("cpu"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def check_memory(
    make: Callable[[], nn.Module], num_replicas: int, copies: int, device: torch.device
) -> int:
    """The numbers of one replica's weights and buffers; 0 where it is not known.

    `make` builds one replica; it is not known of one that cannot be built without values. Raises
    `SettingsError` where so many copies of all do not fit into a device's memory.
    """
    model = with_shapes(make)
    if model is None:
        return 0
    number = sum(weight.numel() for weight in (*model.parameters(), *model.buffers()))
    size = sum(weight.nbytes for weight in (*model.parameters(), *model.buffers()))
    free = free_memory(device)
    needed = size * copies * num_replicas
    if free is not None and needed > free:
        many = f" for each of {num_replicas} replicas" if num_replicas > 1 else ""
        use = ", with their gradients and averages" if copies > 1 else ""
        raise SettingsError(
            f"out of memory: {number:,} weights{many} take {_gigabytes(needed)}{use}, and "
            f"{_gigabytes(free)} are free: make the model smaller, or train fewer "
            f"{setting('seeds')} or {setting('lrs')}"
        )
    return number


def with_shapes(make: Callable[[], ModuleT]) -> ModuleT | None:
    """What `make` builds: with values where it is small, else on torch's `meta` device.

    None where it is large and needs values, or was there before. Raises `SettingsError` as
    `without_values` does.
    """
    return _small(make) or without_values(make)


def _small(make: Callable[[], ModuleT]) -> ModuleT | None:
    """What `make` builds; None where it is large, fails, or was there before."""
    counting = _CountedNumbers()
    try:
        with torch.random.fork_rng(devices=[]), counting:
            model = make()
    except Exception:  # what is wrong is found again, and said, when the model itself is built
        return None
    return model if counting.made else None


class _CountedNumbers(TorchFunctionMode):
    """Counts the numbers of new tensors; raises `MemoryError` instead of making more than `FEW`."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if function in _MAKERS:
            sizes = given.get("size") or next((one for one in args if type(one) in _SIZES), args)
            numbers = [one for one in sizes if isinstance(one, int)]
            self.made += math.prod(numbers) ** (2 if (function, len(numbers)) == _SQUARE else 1)
        if self.made > FEW:
            raise MemoryError
        return function(*args, **given)


_MAKERS: Final = frozenset(
    getattr(torch, name)
    for name in "empty empty_strided eye full ones rand randint randn zeros".split()
) | frozenset(
    getattr(torch.Tensor, name) for name in "new_empty new_full new_ones new_zeros".split()
)
_SIZES: Final = (tuple, list, torch.Size)
_SQUARE: Final = (torch.eye, 1)


def without_values(make: Callable[[], ModuleT]) -> ModuleT | None:
    """What `make` builds on torch's `meta` device; None where it needs values or was there before.

    Raises `SettingsError` for a weight with more numbers than can be counted.
    """
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            model = make()
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as problem:
        if "overflow" in str(problem).lower():
            raise SettingsError(
                "a weight of the model has more numbers than a computer can count: make the "
                f"model smaller, for example with a lower {setting('hidden')} or "
                f"{setting('width')}"
            ) from None
        return None
    has_values = any(weight.device.type != "meta" for weight in model.parameters())
    return None if has_values else model


def free_memory(device: torch.device) -> int | None:
    """The bytes that can be had on a device; None where that is not known."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    known = [_available(), _limit_of_group()]
    return min((size for size in known if size is not None), default=None)


def _available() -> int | None:
    """Memory that Linux can free for a process; elsewhere all memory there is."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # not Linux
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def _limit_of_group() -> int | None:
    """The limit of a container; None where there is none."""
    try:
        return int(CGROUP.read_text())
    except (OSError, ValueError):  # `max` stands for no limit
        return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
