"""What is installed here and on which machine: for a report of a bug, `statetrack info`.

Torch is imported only to ask it, and whatever it raises is told instead: a broken installation is
what such a report is often about. No path of the user's stands in what is returned unless `paths`
are asked for.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from statetrack import __version__
from statetrack.registry import tasks_folder
from statetrack.runs import instruction_sets, processor_name
from statetrack.sweep import available_cores

NEEDED = (
    *("numpy", "scipy", "pydantic", "typer", "rich", "pyarrow", "safetensors"),
    *("aalpy", "numba", "plotext", "tqdm"),
)
"""Packages that statetrack needs, beside torch."""

OPTIONAL: Mapping[str, str] = {
    "matplotlib": "plot",
    "fla-core": "fla",
    "triton": "fla",
    "transformers": "hf",
    "lm_eval": "lm-eval",
    "ray": "ray",
    "submitit": "slurm",
    "tensorboardX": "tensorboard",
    "wandb": "wandb",
}
"""Packages that statetrack can use, each with the extra that installs it."""

VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_PROC_BIND"),
    *("KMP_AFFINITY", "GOMP_CPU_AFFINITY", "ATEN_CPU_CAPABILITY", "CUDA_VISIBLE_DEVICES"),
    *("CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG", "PYTORCH_CUDA_ALLOC_CONF"),
    *("TRITON_INTERPRET", "PYTHONHASHSEED", "PYTHONPATH", "LD_LIBRARY_PATH"),
    *("STATETRACK_DEBUG", "NO_COLOR", "COLUMNS", "TERM", "LANG"),
)
"""Variables of the environment that change what is computed or shown."""

GROUPS = ("statetrack.models", "statetrack.commands")
"""The groups of entry points by which installed packages add models and commands."""


def describe_installation(*, paths: bool = False) -> dict[str, Any]:
    """Versions, machine, kernels and what adds to statetrack, as plain values for JSON."""
    torch = _torch()
    found = {
        "statetrack": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "torch": torch["about"],
        "packages": {name: _version(name) for name in NEEDED},
        "optional": {
            name: {"version": _version(name), "extra": extra} for name, extra in OPTIONAL.items()
        },
        "system": platform.platform(),
        "cpu": {
            "name": processor_name(),
            "cores": os.cpu_count(),
            "usable": available_cores(),
            "instructions": instruction_sets(),
        }
        | torch["cpu"],
        "memory": _memory(),
        "gpus": torch["gpus"],
        "driver": _driver(),
        "kernels": torch["kernels"],
        "environment": {name: os.environ.get(name) for name in VARIABLES},
        "added": {group: _entry_points(group) for group in GROUPS},
        "shipped": {
            "tasks": len(list(tasks_folder().glob("*.yaml"))),
            "protocols": len(list((tasks_folder() / "protocols").glob("*.yaml"))),
            "suites": len(list((tasks_folder() / "suites").glob("*.yaml"))),
        },
    }
    if paths:
        found["paths"] = {
            "package": str(Path(__file__).parents[1]),
            "tasks": str(tasks_folder()),
            "python": sys.executable,
        }
        return found
    return {key: _without_paths(value) for key, value in found.items()}


def _version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _torch() -> dict[str, Any]:
    """What torch says of itself and of the devices, or the error that it raises."""
    try:
        import torch

        about = {
            "version": str(torch.__version__),
            "cuda": torch.version.cuda,
            "deterministic": torch.are_deterministic_algorithms_enabled(),
        }
        cpu = {
            "threads": torch.get_num_threads(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "mkldnn": torch.backends.mkldnn.is_available(),
        }
        gpus = [_gpu(index) for index in range(torch.cuda.device_count())]
        kernels = _kernels(len(gpus))
    except Exception as problem:
        reason = " ".join(f"{type(problem).__name__}: {problem}".split())
        about = {"version": _version("torch"), "error": reason}
        why = {"available": False, "why": "torch cannot be imported"}
        return {
            "about": about,
            "cpu": {"threads": None, "capability": None, "mkldnn": None},
            "gpus": [],
            "kernels": dict.fromkeys(("torch", "native", "fla"), why),
        }
    return {"about": about, "cpu": cpu, "gpus": gpus, "kernels": kernels}


def _gpu(index: int) -> dict[str, Any]:
    import torch

    about = torch.cuda.get_device_properties(index)
    return {
        "name": about.name,
        "memory": about.total_memory,
        "capability": f"{about.major}.{about.minor}",
    }


def _kernels(num_gpus: int) -> dict[str, Any]:
    """Every value of `--kernel` that names an implementation, and why one cannot be used."""
    from statetrack.ops import choose_device, why_not

    problems = {
        "torch": None,
        "native": why_not("native", choose_device("cpu")),
        "fla": why_not("fla", choose_device("auto")),
    }
    return {
        name: {"available": problem is None, "why": problem} for name, problem in problems.items()
    }


def _driver() -> str | None:
    """The version of NVIDIA's driver; None where there is none."""
    try:
        said = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return next(iter(said.stdout.split()), None)


def _memory() -> int | None:
    """The bytes of memory that the machine has; None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _entry_points(group: str) -> list[str]:
    """What installed packages add, as `name (package version)`."""
    return [
        each.name if each.dist is None else f"{each.name} ({each.dist.name} {each.dist.version})"
        for each in metadata.entry_points(group=group)
    ]


_PATH = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?[/\\][^\s:;,'\"]+")


def _without_paths(value: Any) -> Any:
    """A value in which every path of a file is left out."""
    if isinstance(value, dict):
        return {key: _without_paths(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_paths(each) for each in value]
    if not isinstance(value, str):
        return value
    for known in (str(Path.home()), sys.prefix, sys.base_prefix, os.getcwd()):
        if len(known) > 1:  # a name in it may have a space, at which the expression would stop
            value = value.replace(known, "/PATH")
    return _PATH.sub("PATH", value)
