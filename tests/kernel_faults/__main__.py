"""Which faults of kernels are found by golden words, and which by closeness on random inputs?

    python -m tests.kernel_faults [--length 2048] [--json FILE]

Every fault is one of `FAULTS`. The table is printed as docs/test-a-kernel.md has it.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.kernel_faults import kernels
from tests.kernel_faults.closeness import closeness
from tests.kernel_faults.running import check, make_folder

RECORDED = Path(__file__).with_name("recorded.json")
LENGTH = 2048


@dataclass(frozen=True)
class Fault:
    """A kernel with a fault, and what it is tested on."""

    says: str
    seen_in: str
    """Where it was reported; empty for one that is not from a report."""
    folder: str = "parity"
    options: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {
    "negative_eigenvalues_ignored": Fault(
        "the flag for negative eigenvalues is ignored: beta is half of what it should be",
        "fla 832",
    ),
    "state_in_bfloat16": Fault("the state is rounded at every position", "ollama 15865", "s3"),
    "state_in_bfloat16_between_chunks": Fault("the state is rounded at every chunk of 64", ""),
    "gates_in_bfloat16": Fault("log gates are rounded", ""),
    "beta_in_bfloat16": Fault("beta is rounded", "sglang 38975, vllm 53877"),
    "state_dropped_at_chunks": Fault("a chunk begins without the state", ""),
    "reflections_reversed": Fault("keys of a position in the wrong order", "", "s3"),
    "reset_missed": Fault("words of one sequence are not told apart", "", "parity", ("--packed",)),
    "convolution_state_late": Fault(
        "the convolution's inputs are handed on one position late",
        "",
        "delayed",
        ("--whole", "--pieces", "64"),
    ),
    "guard_drops_equal_gates": Fault(
        "a guard before exp drops pairs of positions with equal log gates", "fla 104"
    ),
    "inverse_in_bfloat16": Fault("the triangular inverse of a chunk is rounded", "aiter 4952"),
    "products_in_tf32": Fault("products with the state in TF32", "TileOPs 460", "s3"),
    "error_before_gate": Fault("the error is that of the state before it decays", "fla 885"),
}
RIGHT = ("right_step_by_step", "right_in_chunks")


def row_of(name: str, folder: Path) -> dict[str, Any]:
    """What becomes of one fault under both tests."""
    fault = FAULTS[name]
    whole = fault.folder == "delayed"
    begun = time.process_time()
    file = "layer.py" if whole else "kernels.py"
    answer = check(folder, f"{file}:{name}", fault.options)
    seconds = time.process_time() - begun
    lines = [line for line in answer.text.splitlines() if "WRONG" in line]
    first = [int(each) for each in re.findall(r"first at position (\d+)", answer.text)]
    found: dict[str, Any] = {
        "found": answer.code != 0,
        "by": [line.partition(":")[0] for line in lines],
        "first": min(first, default=None),
        "seconds": round(seconds, 1),
    }
    if not whole:
        num_keys = 2 if fault.folder == "s3" else 1
        near = closeness(getattr(kernels, name), num_keys, packed="--packed" in fault.options)
        found |= asdict(near) | {"ratio": float(f"{near.ratio:.1e}")}
    return found


def rows(length: int) -> dict[str, Any]:
    """All faults, and the kernels without one."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        needed = {fault.folder for fault in FAULTS.values()}
        folders = {name: make_folder(name, Path(place, name), length) for name in sorted(needed)}
        for name in RIGHT:
            for folder in ("parity", "s3"):
                answer = check(folders[folder], f"kernels.py:{name}")
                assert answer.code == 0, answer.text
        for name, fault in FAULTS.items():
            found[name] = row_of(name, folders[fault.folder])
    return found


def table(found: dict[str, Any]) -> str:
    """The table of docs/test-a-kernel.md."""
    lines = [
        "| fault | reported | golden words | ratio | 0.005 | rtol 1e-2 | rtol 1e-3 |",
        "|---|---|---|---|---|---|---|",
    ]
    marks = {True: "found", False: "missed", None: "-"}
    for name, row in found.items():
        golden = marks[row["found"]]
        if row["found"]:
            golden += f" ({', '.join(row['by'])}; position {row['first']})"
        near = [marks[row.get(key)] for key in ("by_ratio", "by_allclose_1e2", "by_allclose_1e3")]
        ratio = f"{row['ratio']:.0e}" if "ratio" in row else "-"
        fault = FAULTS[name]
        lines.append(
            f"| {fault.says} | {fault.seen_in} | {golden} | {ratio} | {' | '.join(near)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=LENGTH, help="symbols of the longest words")
    parser.add_argument("--json", type=Path, help="write the record to this file")
    asked = parser.parse_args()
    found = rows(asked.length)
    if asked.json is not None:
        asked.json.write_text(
            json.dumps({"length": asked.length, "faults": found}, indent=1) + "\n"
        )
    print(table(found))


if __name__ == "__main__":
    main()
