"""What a new process would not know: plugins, and what they registered."""

from __future__ import annotations

import sys

from statetrack.models import MODELS
from statetrack.plugins import PREFIX, plugin_of
from statetrack.registry import Registry
from statetrack.sources import KINDS
from statetrack.training import LOSSES, OPTIMISERS


def forget_plugins() -> None:
    """Forget every plugin, and what each has registered."""
    registries: tuple[Registry, ...] = (MODELS, KINDS, LOSSES, OPTIMISERS)
    for registry in registries:
        for name in registry.loaded():
            plugin = plugin_of(registry.home(name))
            if plugin is not None:
                del registry._things[name]
                for text in plugin.texts:
                    module = text.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                    sys.modules.pop(module, None)
    for module in [name for name in sys.modules if name.startswith(PREFIX)]:
        del sys.modules[module]
