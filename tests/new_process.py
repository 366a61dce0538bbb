"""What a new process would not know: plugins, and what they registered. One that is new."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


SharedFolder = Callable[[str, Callable[[Path], None]], Path]

WITHOUT_NUMBA = """
import gc, json, sys
gc.disable()  # imports would look for garbage for a tenth of their time
sys.modules["numba"] = None
from statetrack.models import MODELS
from statetrack.models._registry import MODEL_FACTS

before = MODEL_FACTS["mamba"]
assert "torch" not in sys.modules
import torch
from statetrack import ops

kind = MODELS["mamba"]
assert issubclass(kind, torch.nn.Module)
assert MODEL_FACTS["mamba"].settings_class is kind.settings_class
assert kind.settings_class is not before.settings_class
model = kind(kind.settings_class(), num_symbols=2, num_labels=2)
model(torch.zeros(2, 3, dtype=torch.long)).sum().backward()
cpu = torch.device("cpu")
said = {"classes": "are those of the imported file"}
print(json.dumps(said | {"kernel": f"{model.kernel_on(cpu)} {ops.why_not('native', cpu)}"}))
"""


def said_without_numba(shared_folder: SharedFolder) -> dict[str, str]:
    """What a process without numba, which reads facts before it imports torch, says of a model."""

    def run(folder: Path) -> None:
        command = [sys.executable, "-c", WITHOUT_NUMBA]
        with (folder / "said.json").open("w") as file:
            subprocess.run(command, check=True, stdout=file, cwd=Path(__file__).parents[1])

    kept = shared_folder("without-numba", run) / "said.json"
    said: dict[str, str] = json.loads(kept.read_text())
    return said
