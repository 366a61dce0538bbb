"""Losses, optimisers and kinds of robust training by name; each is a file of its folder.

Other losses and optimisers come from a user's own file (`--plugin`). Names are known without torch.
What is registered takes the settings that name it (`TrainSettings`, which imports these names): a
function that makes a `losses.Loss`, an `optimisers.OptimiserKind`, a `robust.Robust`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from statetrack.registry import Registry, modules_in

if TYPE_CHECKING:
    from statetrack.training.losses import Loss

LOSSES: Registry[Callable[[Any], Loss]] = Registry(
    "loss",
    find=lambda: modules_in("statetrack.training.losses"),
    listing="statetrack train --help",
)

OPTIMISERS: Registry[type[Any]] = Registry(
    "optimiser",
    find=lambda: modules_in("statetrack.training.optimisers"),
    listing="statetrack train --help",
)

ROBUST: Registry[type[Any]] = Registry(
    "kind of robust training",
    find=lambda: modules_in("statetrack.training.robust"),
    listing="statetrack train --help",
)
