"""The package mamba_ssm on a CPU: its own references in torch take the place of its kernels."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from torch import Tensor

from tests.references.record.authors_code import stand_in

REPOSITORY = "state-spaces/mamba"
LICENCE = "Apache-2.0"
COMMIT = "0348a3dd7cd7b5a997d0bce5131c42146cc09324"
PACKAGE = (
    "run from the package mamba_ssm 2.3.2.post1, whose modules/mamba3.py is that of the commit; "
)


def module(name: str) -> ModuleType:
    """A module of the package, by its name inside the package."""
    stand_in("triton", "triton.language", "triton.testing", "selective_scan_cuda", "causal_conv1d")
    sys.modules["triton"].Config = _Config
    sys.modules["triton"].autotune = _Tuned
    sys.modules["causal_conv1d"] = None  # type: ignore[assignment]  # the layers then use torch's
    stand_in("cuda", "cuda.bindings", "cuda.bindings.driver", "cutlass", "cutlass.cute")
    stand_in("quack", "quack.compile_utils", "quack.cute_dsl_utils")
    sys.modules.setdefault("mamba_ssm", _without_imports())
    norm = importlib.import_module("mamba_ssm.ops.triton.layernorm_gated")
    norm.rmsnorm_fn = norm.rms_norm_ref
    return importlib.import_module(f"mamba_ssm.{name}")


class _Config:
    """What the package reads of a configuration of a kernel while it is imported."""

    def __init__(self, kwargs: dict[str, Any], **more: Any) -> None:
        self.kwargs = kwargs
        self.num_warps = more.get("num_warps", 4)


class _Tuned:
    """What the package reads of a kernel while it is imported: its configurations."""

    def __init__(self, configs: list[_Config], **more: Any) -> None:
        self.configs = configs

    def __call__(self, kernel: Any) -> _Tuned:
        return self


def _without_imports() -> ModuleType:
    """The package itself, whose own file would import its language models."""
    package = ModuleType("mamba_ssm")
    package.__path__ = [f"{sys.path[0]}/mamba_ssm"]
    return package


def step_in_torch(reference: Any) -> Any:
    """The step of Mamba-3's kernel, which works in place, by the package's reference of it."""

    def step(
        state: Tensor,
        last_writing: Tensor,
        last_x: Tensor,
        decay: Tensor,
        writing: Tensor,
        reading: Tensor,
        skip: Tensor,
        x: Tensor,
        dt: Tensor,
        rule: Tensor,
        inward: Tensor,
        outproj: Tensor,
        out: Tensor,
        z: Tensor,
        zproj: Tensor,
        **kernel: Any,
    ) -> None:
        outputs, after = reference(
            state,
            decay,
            writing,
            reading,
            inward,
            x,
            zproj,
            z,
            dt,
            last_writing,
            last_x,
            rule,
            skip,
            outproj,
            compute_dtype=state.dtype,
        )
        out.copy_(outputs)
        state.copy_(after)

    return step
