"""Optimisers, one file each: a file `adamw.py` registers the optimiser `adamw`.

Which settings an optimiser uses is known without torch, which `make` imports.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from statetrack.training.settings import TrainSettings

if TYPE_CHECKING:
    import torch

Groups = list[dict[str, Any]]
"""Parameters and learning rates, as `torch.optim` takes them: `params` and `lr` in each.

A group that weight decay leaves alone has a `weight_decay` of 0.
"""


class OptimiserKind(abc.ABC):
    """How to make an optimiser with the interface of `torch.optim`.

    `uses` names those of the settings `beta1`, `beta2` and `epsilon` that it has; others are
    refused with it. Every optimiser has `weight_decay`.
    """

    uses: ClassVar[frozenset[str]] = frozenset()
    by_coordinate: ClassVar[bool] = False
    """Whether each number of a parameter changes by its own gradients alone.

    Then replicas of one learning rate are given as one parameter, [R, ...]; otherwise each alone.
    """

    @staticmethod
    @abc.abstractmethod
    def make(groups: Groups, settings: TrainSettings) -> torch.optim.Optimizer:
        """The optimiser of some groups of parameters, each with its own learning rate."""


def fuses(groups: Groups) -> bool:
    """Whether torch takes a step of all parameters at once: of real numbers alone."""
    return all(value.is_floating_point() for group in groups for value in group["params"])


@contextmanager
def without_compiler() -> Iterator[None]:
    """Optimisers are made without an import of torch's compiler.

    torch marks `add_param_group` as left alone by its compiler, and the mark imports the compiler
    (torch._dynamo, with SymPy) when it is first called: 1.2 s of CPU time, as much as the rest of
    torch. Here nothing is compiled.
    """
    from torch.optim import Optimizer

    marked = Optimizer.add_param_group
    Optimizer.add_param_group = inspect.unwrap(marked)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Optimizer.add_param_group = marked  # type: ignore[method-assign]


def step_of(optimiser: torch.optim.Optimizer) -> Callable[[], Any]:
    """What takes a step of an optimiser; of torch's own, likewise, without the compiler's mark."""
    import torch

    if not type(optimiser).__module__.startswith("torch.optim."):
        return optimiser.step
    step = inspect.unwrap(type(optimiser).step)

    def take() -> None:
        with torch.no_grad():
            step(optimiser)

    return take
