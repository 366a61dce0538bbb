"""Does a kernel follow its machine? Says the first position at which an answer is wrong.

    python check_kernel.py my_kernel.py:forward            a kernel: its arguments by name -> o
    python check_kernel.py model.py:forward --whole        a whole model: tokens -> logits

README.md beside this file has the arguments; tensors are [words, time, ...]. With --pieces the
function is called piece by piece: it also gets `state`, at first None, and returns (o, state). With
--packed words stand one after the other in one, and it also gets their ends as `cu_seqlens`.
Needs torch and NumPy alone. Exits with 1 where an answer is wrong, with 2 where nothing is checked.
"""

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent


def _call(forward: Any, given: dict[str, Any], size: int, **fixed: Any) -> Any:
    length, state, found = next(iter(given.values())).shape[1], None, []
    for begin in range(0, length, size or length):
        piece = {name: each[:, begin : begin + (size or length)] for name, each in given.items()}
        result = forward(**piece, **fixed, **({"state": state} if size else {}))
        outputs, state = result if isinstance(result, tuple) else (result, None)
        found.append(outputs.detach().double().cpu())
    return torch.cat(found, 1)


def _normed(x: Any, centred: Any, epsilon: Any) -> Any:
    x = x - centred * x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + epsilon).sqrt()


def _logits(o: Any, rows: Any, t: dict[str, Any]) -> Any:
    """In float64, of what a kernel gives; tables have a row for every context."""
    o = (o.reshape(*rows.shape, -1) + t["plus"][rows]) * t["before"][rows]
    if t["groups"]:
        o = _normed(o.unflatten(-1, (int(t["groups"]), -1)), t["centred"], t["epsilon"]).flatten(-2)
    y = (o * t["gain"] + t["bias"] + t["shift"][rows]) * t["scale"][rows]
    x = t["stream"][rows] + y @ t["output"].T
    x = _normed(x, t["last_centred"], t["last_epsilon"]) if t["last_norm"] else x
    return (x * t["last_gain"] + t["last_bias"]) @ t["readout"].T + t["readout_bias"]


parser = argparse.ArgumentParser(description="Does a kernel follow its machine?")
parser.add_argument("forward", metavar="FILE.py:FUNCTION")
parser.add_argument("--whole", action="store_true", help="it maps tokens to logits")
parser.add_argument("--pieces", type=int, default=0, help="positions of a call (0: all)")
parser.add_argument("--packed", action="store_true", help="words one after the other")
parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
asked, failed, kernel = parser.parse_args(), False, {}
file, _, name = asked.forward.rpartition(":")
if not Path(file).is_file():
    parser.error(f"{asked.forward}: there is no file {file!r}: give FILE.py:FUNCTION")
if (forward := runpy.run_path(file).get(name)) is None:
    parser.error(f"{asked.forward}: the file has no function {name!r}")
if not asked.whole and not (FOLDER / "kernel.npz").exists():
    parser.error("no kernel can be checked alone here: give a whole model, and --whole")
words = dict(np.load(FOLDER / "words.npz"))
lengths = words["lengths"]
if not asked.whole:
    kernel = {n: torch.from_numpy(t) for n, t in np.load(FOLDER / "kernel.npz").items()}
fixed: dict[str, Any] = {n[6:]: t for n, t in kernel.items() if n.startswith("fixed.")}
fixed = {n: t.float().to(asked.device) if t.dim() else t.item() for n, t in fixed.items()}
groups = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
batches = [np.broadcast_arrays(each[:, None], np.arange(lengths[each[0]])) for each in groups]
if asked.packed:
    ends = np.array([0, *np.cumsum(lengths)])
    word = np.repeat(np.arange(len(lengths)), lengths)[None]
    batches = [(word, np.arange(ends[-1]) - np.repeat(ends[:-1], lengths)[None])]
    fixed["cu_seqlens"] = torch.from_numpy(ends).int().to(asked.device)
for kind in sorted({n.partition(".")[0] for n in kernel if "." in n} - {"fixed"}) or ["model"]:
    tables = {n.partition(".")[2]: t for n, t in kernel.items() if n.startswith(f"{kind}.")}
    wrong, count, least = list[Any](), 0, np.inf
    for word, time in batches:
        rows = torch.from_numpy(words["tokens" if asked.whole else "contexts"][word, time]).long()
        given = {n: t[rows].float().to(asked.device) for n, t in tables.items()}
        given = {"tokens": rows.to(asked.device)} if asked.whole else given
        with torch.no_grad():
            o = _call(forward, given, asked.pieces, **fixed)
        logits = o if asked.whole else _logits(o, rows, kernel)
        answers = words["answers"][word, time]
        right = torch.from_numpy(np.maximum(answers, 0)).long().unsqueeze(-1)
        others = logits.scatter(-1, right, -torch.inf)
        margin = (logits.gather(-1, right).squeeze(-1) - others.amax(-1)).numpy()
        bad = (answers >= 0) & ~(margin > 0)  # what is not a number is wrong
        labels = others.argmax(-1).numpy()[bad]
        wrong += zip(time[bad], word[bad], labels, margin[bad], strict=True)
        count, least = count + (answers >= 0).sum(), np.minimum(least, margin[answers >= 0].min())
    says = f"all {count:,} answers are right; the least margin is {least:.3g}"
    if wrong:
        at, at_word, label, by = min(wrong, key=lambda each: each[:2])
        kind_of, answer, own = (words[n][at_word] for n in ("kinds", "answers", "margins"))
        says = f"{len(wrong):,} of {count:,} answers are WRONG, first at position {at} of word "
        says += f"{at_word} ({kind_of}, {lengths[at_word]:,} symbols): label {label} in place of "
        says += f"{answer[at]}, by {by:.3g} ({own[at]:.3g} in float64)"
    sys.stdout.write(f"{kind}: {says}\n")
    failed = failed or bool(wrong)
sys.exit(int(failed))
