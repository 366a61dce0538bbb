"""The time mixing of RWKV's released training code on a CPU, as it starts and with other weights.

The code needs CUDA. Stand-ins replace pytorch_lightning and deepspeed, which a layer does not use;
the three fused operations that it takes from flash-linear-attention (elementwise: x + change *
share, the change since the last position, k (1 + (a - 1) alpha)); and the CUDA kernel, by the loop
over the recurrence that the kernel computes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import torch.utils.cpp_extension
from torch import Tensor, nn

from tests.references.recorded import save

HEAD = 8


def load(path: Path, testing: str) -> Any:
    """The module of a generation's training code."""
    os.environ |= {"RWKV_JIT_ON": "0", "RWKV_MY_TESTING": testing, "RWKV_TRAIN_TYPE": ""}
    os.environ |= {"RWKV_HEAD_SIZE": str(HEAD), "RWKV_HEAD_SIZE_A": str(HEAD), "RWKV_CTXLEN": "64"}
    os.environ |= {"RWKV_T_MAX": "64", "RWKV_FLOAT_MODE": "32"}
    stand_ins = {
        "pytorch_lightning": {"LightningModule": nn.Module},
        "pytorch_lightning.utilities": {"rank_zero_info": None, "rank_zero_only": None},
        "pytorch_lightning.strategies": {"DeepSpeedStrategy": object},
        "deepspeed": {},
        "deepspeed.ops": {},
        "deepspeed.ops.adam": {"DeepSpeedCPUAdam": None, "FusedAdam": None},
        "fla": {},
        "fla.ops": {},
        "fla.modules": {},
        "fla.ops.rwkv7": {},
        "fla.ops.rwkv7.fused_addcmul": {
            "fused_addcmul_rwkv7": lambda x, change, *shares: [x + change * s for s in shares]
        },
        "fla.modules.token_shift": {"token_shift": change_since_last},
        "fla.ops.rwkv7.fused_k_update": {
            "fused_k_rwkv7": lambda k, a, alpha: k * (1 + (a - 1) * alpha)
        },
    }
    for name, members in stand_ins.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(members)
    torch.utils.cpp_extension.load = lambda **_: None
    spec = importlib.util.spec_from_file_location("released", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def change_since_last(x: Tensor) -> Tensor:
    """The input one position before, minus the input."""
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1) - x


def record(
    layer_of: Callable[[SimpleNamespace, int], nn.Module],
    call: Callable[[nn.Module, Tensor], Tensor],
    about: dict[str, str],
    out: Path,
) -> None:
    """Write the second of three layers as it starts, and the first with noise and its outputs."""
    sizes = {"n_embd": 16, "dim_att": 16, "n_layer": 3, "head_size": HEAD, "head_size_a": HEAD}
    args = SimpleNamespace(**sizes, my_testing="", head_size_divisor=8, ctx_len=64)
    torch.manual_seed(0)
    fresh = {f"fresh.{name}": value for name, value in layer_of(args, 1).state_dict().items()}
    layer = layer_of(args, 0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        inputs = torch.randn(2, 19, 16)
        outputs = call(layer.double(), inputs.double())
    weights = {f"weights.{name}": value.float() for name, value in layer.state_dict().items()}
    tensors = {"inputs": inputs, "outputs": outputs, **weights, **fresh}
    about = about | {
        "repository": "BlinkDL/RWKV-LM",
        "licence": "Apache-2.0",
        "settings": json.dumps(sizes),
        "remark": "run with the class alone; stand-ins for pytorch_lightning, deepspeed, the "
        "operations of fla, and the CUDA kernel (its recurrence as a loop)",
    }
    save(out, tensors, about)
