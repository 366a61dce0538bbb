r"""Layers of flash-linear-attention on a CPU: its own Triton kernels, run by Triton's interpreter.

    pip install --no-deps --target FOLDER flash-linear-attention==0.6.0 fla-core==0.6.0 \
        triton==3.9.0
    python -m tests.references.record.deltanet --checkout FOLDER --out FILE

The interpreter computes what the kernels say, with numpy, one block after the other. Two things are
replaced: the search for the fastest block sizes, which needs a GPU to measure (the first candidate
is taken), and `torch.compile`, which is switched off.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.references.recorded import save

VERSION = "flash-linear-attention==0.6.0"
REMARK = (
    "fla's Triton kernels run by Triton's interpreter; the autotuner takes its first candidate, "
    "torch.compile is off"
)
B, T = 2, 13
"""Words, and positions of each."""


def arguments() -> argparse.Namespace:
    """The command line of a driver: where the packages are, and what to write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path, required=True, help="the folder of the packages")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    return parser.parse_args()


def layer_class(checkout: Path, module: str, name: str) -> Any:
    """A class of fla, ready to run on a CPU."""
    os.environ["TRITON_INTERPRET"] = "1"
    sys.path.insert(0, str(checkout))
    torch._dynamo.config.disable = True
    tuner = importlib.import_module("triton.runtime.autotuner").Autotuner
    tuner._bench = lambda self, *args, config, **meta: [0.0, 0.0, 0.0]
    return getattr(importlib.import_module(module), name)


def record(
    place: tuple[str, str],
    settings: dict[str, Any],
    *,
    shrink: Iterable[str] = (),
    call: dict[str, Any] | None = None,
) -> None:
    """Build a layer, give it random inputs, and write what it computes.

    The layer starts from its own draws; then every parameter gets noise, and those whose names
    begin with one of `shrink` are scaled down, so that epsilons count. Tensors of `call` are
    given to the layer with the inputs, and are written.
    """
    options = arguments()
    kind = layer_class(options.checkout, *place)
    torch.manual_seed(0)
    layer: nn.Module = kind(**settings).eval()
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
            if name.startswith(tuple(shrink)):
                parameter.mul_(0.1)
        inputs = torch.randn(B, T, settings["hidden_size"])
        extra: dict[str, Tensor] = call or {}
        outputs = layer(inputs, **extra)[0]
    weights = {f"weights.{name}": value for name, value in layer.state_dict().items()}
    module, name = place
    about = {
        "repository": "fla-org/flash-linear-attention",
        "commit": VERSION,
        "files": f"{module.replace('.', '/')}.py ({name})",
        "licence": "MIT",
        "settings": json.dumps(settings),
        "remark": REMARK,
    }
    save(options.out, {"inputs": inputs, "outputs": outputs, **extra, **weights}, about)
