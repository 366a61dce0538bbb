"""Numbers that authors' own code computed once: `tests/fixtures/authors/NAME.safetensors`.

A file has the tensors `inputs`, `outputs`, `weights.<name in the authors' state dict>` and, where
useful, more; its metadata says what computed them. `tests/references/record/MODEL.py` are the
drivers that wrote the files, by `save`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from statetrack.catalogue.models import comparisons
from statetrack.models import MODEL_FACTS

FOLDER = Path(__file__).parents[1] / "fixtures" / "authors"
MOST_BYTES = 100_000
KEYS = {"repository", "commit", "files", "licence", "settings", "made_with"}
"""What the metadata of a file says: `settings` is JSON, all are texts. `remark` may be added."""


@dataclass(frozen=True)
class Recorded:
    """What one file holds."""

    tensors: Mapping[str, Tensor]
    """All tensors, by the name they have in the file."""
    metadata: Mapping[str, str]

    @property
    def inputs(self) -> Tensor:
        """What the authors' code was given."""
        return self.tensors["inputs"]

    @property
    def outputs(self) -> Tensor:
        """What it computed from that."""
        return self.tensors["outputs"]

    @property
    def weights(self) -> dict[str, Tensor]:
        """The authors' weights, by their names in the authors' state dict."""
        return {
            name.removeprefix("weights."): tensor
            for name, tensor in self.tensors.items()
            if name.startswith("weights.")
        }

    @property
    def settings(self) -> dict[str, object]:
        """What the authors' class was built with."""
        return dict(json.loads(self.metadata["settings"]))


def recorded(name: str) -> Recorded:
    """The file of this name in `FOLDER`, with its metadata checked."""
    return load(FOLDER / f"{name}.safetensors")


def load(path: Path) -> Recorded:
    """A file of numbers; AssertionError, with the reason, where it does not say what they are."""
    tensors = safetensors.torch.load_file(path)
    with safetensors.safe_open(path, "pt") as file:
        found = Recorded(tensors, file.metadata() or {})
    check(found, path.name)
    assert path.stat().st_size < MOST_BYTES, f"{path.name} has {path.stat().st_size:,} bytes"
    return found


def check(found: Recorded, name: str) -> None:
    """That the metadata is complete and that there are inputs, outputs and weights."""
    about = found.metadata
    assert set(about) - {"remark"} == KEYS, f"{name}: metadata has {sorted(about)}"
    assert all(value.strip() for value in about.values()), f"{name}: metadata is empty somewhere"
    commit = about["commit"]
    full = re.fullmatch(r"[0-9a-f]{40}|[a-z-]+==[0-9.]+", commit)
    assert full, f"{name}: commit is no full hash, and no version of a package"
    assert isinstance(json.loads(about["settings"]), dict), f"{name}: settings are no JSON object"
    assert {"inputs", "outputs"} <= set(found.tensors), f"{name} has {sorted(found.tensors)}"
    assert found.weights, f"{name} has no weights"
    for key, tensor in found.tensors.items():
        floats = tensor.dtype in (torch.float32, torch.float64)
        assert floats or not tensor.is_floating_point(), f"{name}: {key} is {tensor.dtype}"
        assert not floats or torch.isfinite(tensor).all(), f"{name}: {key} is not finite"


def save(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file that `load` accepts; `made_with` is added. For the drivers."""
    about = {**metadata, "made_with": f"torch {torch.__version__}"}
    kept = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    check(Recorded(kept, about), path.name)
    safetensors.torch.save_file(kept, path, about)


def stated_difference(model: str, against: str = "") -> float:
    """The number of the first sentence `Checked:` of a model whose text contains `against`."""
    said = comparisons(MODEL_FACTS[model].description)
    found = [each.difference for each in said if against in each.against]
    assert found, f"{model} does not say that it was compared with '{against}'"
    return found[0]
