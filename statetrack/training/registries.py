"""Losses, optimisers and kinds of robust training by name; each is a file of its folder.

Other losses and optimisers come from a user's own file (`--plugin`). Names are known without torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from statetrack.training.losses import Loss
    from statetrack.training.optimisers import OptimiserKind
    from statetrack.training.robust import Robust
    from statetrack.training.settings import TrainSettings

LOSSES: Registry[Callable[[TrainSettings], Loss]] = Registry(
    "loss",
    find=lambda: modules_in("statetrack.training.losses"),
    listing="statetrack train --help",
)

OPTIMISERS: Registry[type[OptimiserKind]] = Registry(
    "optimiser",
    find=lambda: modules_in("statetrack.training.optimisers"),
    listing="statetrack train --help",
)

ROBUST: Registry[type[Robust]] = Registry(
    "kind of robust training",
    find=lambda: modules_in("statetrack.training.robust"),
    listing="statetrack train --help",
)
