"""Writes `exports.json`: exported models in the authors' own layers, on a CPU.

    pip install --no-deps --target FOLDER flash-linear-attention==0.6.0 fla-core==0.6.0 \
        triton==3.9.0 xlstm==2.0.6 mamba_ssm==2.3.2.post1
    python -m tests.references.record.exports --checkout FOLDER --out FILE [CASE ...]

Each model is built, exported in float32, and read from the folder by its `model.py`, which builds
the authors' layers and gives them their weights, none missing and none left over. Their logits on
three golden words of more than a thousand symbols are compared with those of statetrack in float64.
flash-linear-attention runs in Triton's interpreter, as in `_fla`; mamba_ssm with the references in
torch that it has beside its kernels. FILE keeps the cases that it has and that are not named.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from statetrack.constructions import build
from statetrack.exporting import export

RECORDED = Path(__file__).parents[2] / "fixtures" / "exports.json"
"""What was found with the versions above."""

SYMBOLS = 1_050
"""The length of each word."""

Case = tuple[str, str, str, dict[str, Any]]
CASES: dict[str, Case] = {
    # layout, model, task, options
    "fla deltanet": ("fla", "deltanet", "parity", {"beta": "double"}),
    "fla deltanet register": ("fla", "deltanet", "register", {"beta": "double"}),
    "fla gated-deltanet": ("fla", "gated-deltanet", "parity", {"beta": "double"}),
    "fla deltaproduct": ("fla", "deltaproduct", "s3", {}),
    "fla gated-deltaproduct": ("fla", "gated-deltaproduct", "s3", {}),
    "fla deltaproduct s4": ("fla", "deltaproduct", "s4", {}),
    "fla kda": ("fla", "kda", "parity", {"beta": "double"}),
    "fla gla": ("fla", "gla", "register", {}),
    "fla hgrn2": ("fla", "hgrn2", "register", {}),
    "fla rwkv6": ("fla", "rwkv6", "register", {}),
    "fla rwkv7": ("fla", "rwkv7", "register", {}),
    "mamba mamba": ("mamba", "mamba", "register", {}),
    "mamba mamba2": ("mamba", "mamba2", "register", {}),
    "xlstm mlstm": ("xlstm", "mlstm", "register", {}),
    "xlstm slstm": ("xlstm", "slstm", "s3", {}),
    "xlstm xlstm": ("xlstm", "xlstm", "parity", {}),
}
MODES: dict[str, dict[str, dict[str, Any]]] = {
    "fla": {"fused_recurrent": {"mode": "fused_recurrent"}},
    "mamba": {"": {}},
    "mamba2": {"": {"use_mem_eff_path": False}},
    "xlstm": {"": {}},
}
"""Which kernels of a layer are run, and the arguments by which it is told so.

The interpreter stops in the chunked delta rule, which asks a loop's index for its type.
"""


def run(case: Case, mode: str = "") -> dict[str, Any]:
    """Export one case and read three words by the authors' layers."""
    layout, model, task, options = case
    with tempfile.TemporaryDirectory() as folder:
        built = build(task, model, **options)
        found = export(built.model, layout, Path(folder) / "exported", task=task, length=SYMBOLS)
        if layout != "xlstm":
            config = found.folder / "config.json"
            said = json.loads(config.read_text())
            for layer in said["layers"]:
                layer["arguments"] |= MODES[model if model in MODES else layout][mode]
            config.write_text(json.dumps(said))
        return measured(found.folder) | {"layers": list(found.layers), "task": task}


def measured(folder: Path) -> dict[str, Any]:
    """What the `model.py` of a folder gives, beside float64."""
    import numpy as np

    spec = importlib.util.spec_from_file_location(
        f"exported{time.monotonic_ns()}", folder / "model.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    words = np.load(folder / "words.npz")
    longest = np.flatnonzero(words["lengths"] == words["lengths"].max())
    chosen = longest[[0, 3, 6]]  # random, a power of a short word, runs
    begun = time.process_time()
    logits = module.forward(torch.from_numpy(words["tokens"][chosen]).long()).double()
    answers = torch.from_numpy(words["answers"][chosen]).long()
    right = answers.clamp_min(0).unsqueeze(-1)
    others = logits.scatter(-1, right, -torch.inf).amax(-1)
    margins = logits.gather(-1, right).squeeze(-1) - others
    asked = answers >= 0
    own = torch.from_numpy(words["logits"][chosen])
    difference = (logits[:, words["places"].tolist()] - own).abs().max() / own.abs().max()
    return {
        "kinds": words["kinds"][chosen].tolist(),
        "symbols": int(words["lengths"].max()),
        "answers": int(asked.sum()),
        "wrong": int((asked & ~(margins > 0)).sum()),
        "margin": round(float(margins[asked].min()), 4),
        "margin_in_float64": round(float(words["margins"][chosen][asked.numpy()].min()), 4),
        "difference": float(f"{float(difference):.1e}"),
        "seconds": round(time.process_time() - begun, 1),
    }


def prepare(layout: str, checkout: Path) -> None:
    """Make the authors' package importable, ready to run on a CPU."""
    if layout == "fla":
        from tests.references.record._fla import layer_class

        layer_class(checkout, "fla.layers.delta_net", "DeltaNet")
        rwkv7 = importlib.import_module("fla.layers.rwkv7")
        recurrent = importlib.import_module("fla.ops.rwkv7").fused_recurrent_rwkv7

        def step_by_step(
            *, safe_gate: bool, lower_bound: float, chunk_size: int, **given: Any
        ) -> Any:
            return recurrent(**given)

        rwkv7.chunk_rwkv7 = step_by_step  # the layer takes chunks from 64 positions on
        return
    sys.path.insert(0, str(checkout))
    if layout == "mamba":
        from tests.references.record.mamba_ssm_package import module

        interface = module("ops.selective_scan_interface")
        module("modules.mamba_simple").selective_scan_fn = interface.selective_scan_ref
        interface.selective_scan_fn = interface.selective_scan_ref
        kernels = module("ops.triton.ssd_combined")

        def scan(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **named: Any) -> Tensor:
            steps = torch.nn.functional.softplus(dt + named["dt_bias"])
            outputs: Tensor = kernels.ssd_selective_scan(x, steps, a, b, c, D=named["D"])
            return outputs

        module("modules.mamba2").mamba_chunk_scan_combined = scan


def table(found: dict[str, Any]) -> str:
    """The table of docs/test-a-kernel.md."""
    lines = [
        "| layer | task | wrong answers | least margin | in float64 | logits differ by |",
        "|---|---|---|---|---|---|",
    ]
    for row in found.values():
        cells = (
            ", ".join(f"`{layer}`" for layer in row["layers"]),
            f"`{row['task']}`",
            f"{row['wrong']} of {row['answers']:,}",
            f"{row['margin']:.3f}",
            f"{row['margin_in_float64']:.3f}",
            f"{row['difference']:.0e}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Run the cases that are asked for; a case of another layout needs another process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--checkout", type=Path, required=True, help="the folder of the packages")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}; all if none is named")
    asked = parser.parse_args()
    names = asked.cases or list(CASES)
    (layout,) = {CASES[name][0] for name in names}
    prepare(layout, asked.checkout.resolve())
    for name in names:
        for mode in MODES[layout]:
            result = run(CASES[name], mode)
            kept = json.loads(asked.out.read_text()) if asked.out.exists() else {}
            kept[f"{name} {mode}".strip()] = result
            asked.out.write_text(json.dumps(kept, indent=1) + "\n")
            print(f"{name} {mode}: {result}", flush=True)


if __name__ == "__main__":
    main()
