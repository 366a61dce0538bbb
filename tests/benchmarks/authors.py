"""Recurrences by compiled loops beside the same by their authors' own code for a CPU.

    python -m tests.benchmarks.authors [--rounds 5] [--models gla,mamba] [--mamba CHECKOUT]

A side is forward and backward of the recurrence alone, with the sizes that a layer has by default
(width 64): 64 words of 10 symbols, and 8 words of 64 and of 256, on one thread. The authors' code
is what fla-core has in torch, `selective_scan_ref` and `ssd_minimal_discrete` of a checkout of
state-spaces/mamba, and the mLSTM of transformers; where there are several forms, one position
after the other and by chunks, the faster one counts. All must give the same numbers, within 10^-3.
Medians of CPU seconds, in alternation in one process.

W words, T time, N heads, K key size, V value size.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.xlstm import modeling_xlstm

from statetrack import ops
from statetrack.models.mlstm import remember_by_loop
from statetrack.models.rwkv6 import RWKV6Factors, rwkv6_scan
from statetrack.ops import native
from tests.references.fla_by_path import fla
from tests.references.record.authors_code import stand_in

CASES = ((64, 10), (8, 64), (8, 256))
"""Words and symbols of a word."""

Function = Callable[..., Tensor]
Sides = tuple[list[Tensor], Function, list[Function]]
"""Inputs, ours, and theirs in all their forms."""

N, K, V = 4, 16, 16
SCALE = K**-0.5


def normal(*shape: int) -> Tensor:
    return torch.randn(shape)


def keys_of(*shape: int) -> Tensor:
    return functional.normalize(normal(*shape), dim=-1)


def decays(*shape: int) -> Tensor:
    return -0.1 * torch.rand(shape)


def first(function: Callable[..., Any], *orders: int, **given: Any) -> Function:
    """The outputs of a function, whose arguments come in an order."""
    return lambda *parts: function(*(parts[order] for order in orders), **given)[0]


def by_head(function: Callable[..., Any], **given: Any) -> Function:
    """The outputs of a function that has heads before positions."""

    def outputs(*parts: Tensor) -> Tensor:
        read: Tensor = function(*(part.transpose(1, 2) for part in parts), **given)[0]
        return read.transpose(1, 2)

    return outputs


def with_one_key(function: Function) -> Function:
    """A function of queries, keys, values, betas and gates that has no axis of keys."""
    return lambda queries, keys, values, betas, *gates: function(
        queries, keys.squeeze(2), values.squeeze(2), betas.squeeze(2), *gates
    )


def delta(words: int, steps: int, num_keys: int, gates: str) -> Sides:
    """Delta rules: without gates, with one for each head, and with one for each row."""
    parts = [
        normal(words, steps, N, K),
        keys_of(words, steps, num_keys, N, K),
        normal(words, steps, num_keys, N, V),
        torch.rand(words, steps, num_keys, N),
    ]
    parts += {"": [], "head": [decays(words, steps, N)], "row": [decays(words, steps, N, K)]}[gates]
    state = torch.zeros(words, N, K, V)

    def ours(
        queries: Tensor, keys: Tensor, values: Tensor, betas: Tensor, gates: Tensor | None = None
    ) -> Tensor:
        return native.delta_rule(SCALE * queries, keys, values, betas, gates, state)[0]

    if num_keys > 1:
        naive = fla("gated_delta_product", "naive.py").naive_recurrent_gated_delta_product

        def product(queries: Tensor, *others: Tensor) -> Tensor:
            flat = (part.flatten(1, 2) for part in others[:3])
            keys, values, betas = flat
            gate = others[3] if gates else None
            read: Tensor = naive(
                queries, keys, values, gate, betas, SCALE, num_householder=num_keys
            )[0]
            return read

        return parts, ours, [product]
    if gates == "row":
        module = fla("kda", "naive.py")
        forms = [module.naive_recurrent_kda]
        forms += [module.naive_chunk_kda] if steps % 64 == 0 else []
        theirs = [with_one_key(first(form, 0, 1, 2, 4, 3)) for form in forms]
    elif gates == "head":
        module = fla("gated_delta_rule", "naive.py")
        theirs = [
            with_one_key(first(module.naive_recurrent_gated_delta_rule, 0, 1, 2, 3, 4)),
            with_one_key(first(module.naive_chunk_gated_delta_rule, 0, 1, 2, 4, 3)),
        ]
    else:
        module = fla("delta_rule", "naive.py")
        forms = [module.delta_rule_recurrence]
        forms += [module.delta_rule_chunkwise] if steps % 32 == 0 else []
        theirs = [with_one_key(by_head(form)) for form in forms]
    return parts, ours, theirs


def attention(words: int, steps: int, gates: str, key_size: int, value_size: int) -> Sides:
    """Attention without a softmax: without decays, with one for each head or for each row."""
    queries = normal(words, steps, N, key_size)
    parts = [queries, keys_of(*queries.shape), normal(words, steps, N, value_size)]
    state = torch.zeros(words, N, key_size, value_size)
    scale = key_size**-0.5
    if gates == "none":
        module = fla("linear_attn", "naive.py")
        theirs = [first(module.naive_recurrent_linear_attn, 0, 1, 2)]
        if steps % 64 == 0:
            theirs.append(module.naive_chunk_linear_attn)
        compute: Callable[..., Any] = native.additive_attention
    elif gates == "head":
        parts.append(decays(words, steps, N))
        module = fla("simple_gla", "naive.py")
        theirs = [
            first(module.naive_recurrent_simple_gla, 0, 1, 2, 3),
            first(module.naive_chunk_simple_gla, 0, 1, 2, 3),
        ]
        compute = native.decayed_attention
    else:
        parts.append(decays(*queries.shape))
        theirs = [first(fla("gla", "naive.py").naive_recurrent_gla, 0, 1, 2, 3)]
        compute = native.gated_attention

    def ours(queries: Tensor, *others: Tensor) -> Tensor:
        read: Tensor = compute(scale * queries, *others, state)[0]
        return read

    return parts, ours, theirs


def replacing(words: int, steps: int) -> Sides:
    """RWKV-7, as diagonal plus rank one."""
    queries, keys, values = (normal(words, steps, N, K) for _ in range(3))
    removals, rates = keys_of(words, steps, N, K), torch.rand(words, steps, N, K)
    state = torch.zeros(words, N, K, K)

    def ours(q: Tensor, k: Tensor, v: Tensor, g: Tensor, removal: Tensor, rate: Tensor) -> Tensor:
        return native.replacing_attention(SCALE * q, k, v, g, removal, rate * removal, state)[0]

    def theirs(q: Tensor, k: Tensor, v: Tensor, g: Tensor, removal: Tensor, rate: Tensor) -> Tensor:
        naive = fla("generalized_delta_rule", "dplr", "naive.py").dplr_recurrence
        return by_head(naive)(q, k, v, -removal, rate * removal, g)

    return [queries, keys, values, decays(words, steps, N, K), removals, rates], ours, [theirs]


def rwkv6(words: int, steps: int) -> Sides:
    """RWKV-6, whose outputs read a state before its position is written, and a bonus."""
    queries, keys, values = (normal(words, steps, N, K) for _ in range(3))
    state, bonus = torch.zeros(words, N, K, K), torch.rand(N, K)

    def ours(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        own = (q * bonus * k).sum(-1, keepdim=True) * v
        return rwkv6_scan(RWKV6Factors(g, q, k, v), state, kernel="native")[0] + own

    naive = fla("rwkv6", "recurrent_naive.py").naive_recurrent_rwkv6
    theirs = by_head(lambda q, k, v, g: naive(q, k, v, g, bonus, scale=1.0))
    return [queries, keys, values, decays(words, steps, N, K)], ours, [theirs]


def diagonal(words: int, steps: int) -> Sides:
    """Gated diagonal recurrences, as HGRN's."""
    state = torch.zeros(words, 64)

    def ours(added: Tensor, log_gains: Tensor) -> Tensor:
        return native.gated_diagonal(log_gains.exp(), added, state)[0]

    theirs = first(fla("hgrn", "naive.py").naive_recurrent_hgrn, 0, 1)
    return [normal(words, steps, 64), decays(words, steps, 64)], ours, [theirs]


def selective(words: int, steps: int, checkout: Path) -> Sides:
    """Mamba's selective scan: 128 channels with 16 numbers each."""
    scan = _of_mamba(checkout, "mamba_ssm/ops/selective_scan_interface.py").selective_scan_ref
    sequences = [0.1 * torch.rand(words, steps, 128), normal(words, steps, 128)]
    sequences += [normal(words, steps, 16), normal(words, steps, 16)]
    state = torch.zeros(words, 128, 16)

    def ours(dt: Tensor, x: Tensor, writings: Tensor, readings: Tensor, rates: Tensor) -> Tensor:
        return native.selective_diagonal(dt, x, writings, readings, -rates, state)[0]

    def theirs(dt: Tensor, x: Tensor, writings: Tensor, readings: Tensor, rates: Tensor) -> Tensor:
        read: Tensor = scan(x.mT, dt.mT, -rates, writings.mT, readings.mT)
        return read.mT

    return [*sequences, torch.rand(128, 16)], ours, [theirs]


def state_space_duality(words: int, steps: int, checkout: Path | None) -> Sides:
    """Mamba-2's: four heads of 64 rows and 32 channels, by fla's simple GLA and the authors'."""
    parts, ours, theirs = attention(words, steps, "head", 64, 32)
    if checkout is not None and steps % 32 == 0:
        minimal = _of_mamba(checkout, "mamba_ssm/modules/ssd_minimal.py").ssd_minimal_discrete
        theirs.append(lambda q, k, v, g: minimal(v, g, k, 64**-0.5 * q, 32)[0])
    return parts, ours, theirs


def matrix_lstm(words: int, steps: int) -> Sides:
    """The mLSTM: four heads of 32 rows and columns, by transformers' own torch code."""
    size = 32
    parts = [normal(words, steps, N, size) for _ in range(3)]
    parts += [normal(words, steps, N), 3 + normal(words, steps, N)]
    state = torch.zeros(words, N, size, size + 1), torch.zeros(words, N)

    def ours(q: Tensor, k: Tensor, v: Tensor, write: Tensor, forget: Tensor) -> Tensor:
        forget = functional.logsigmoid(forget)
        return remember_by_loop(q, size**-0.5 * k, v, write, forget, *state)[0]

    def theirs(*parts: Tensor) -> Tensor:
        heads = [part.transpose(1, 2) for part in parts]
        read: Any = cast(Any, modeling_xlstm.mlstm_recurrent_sequence_native)(*heads)
        outputs: Tensor = read[0] if isinstance(read, tuple) else read
        return outputs.transpose(1, 2)

    return parts, ours, [theirs]


def _of_mamba(checkout: Path, place: str) -> Any:
    """A file of a checkout of state-spaces/mamba, without what it imports for a GPU."""
    for name in ("triton", "mamba_ssm", "selective_scan_cuda", "causal_conv1d"):
        stand_in(name)
    for name in (
        "mamba_ssm.ops mamba_ssm.ops.triton mamba_ssm.ops.triton.layer_norm "
        "mamba_ssm.ops.triton.ssd_combined mamba_ssm.utils mamba_ssm.utils.torch "
        "causal_conv1d.causal_conv1d_interface causal_conv1d.cpp_functions"
    ).split():
        stand_in(name)
    spec = importlib.util.spec_from_file_location(Path(place).stem, checkout / place)
    assert spec is not None and spec.loader is not None, f"{checkout} has no {place}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def recurrences(checkout: Path | None) -> dict[str, Callable[[int, int], Sides]]:
    """The recurrences of models, by a number of words and of positions."""
    found: dict[str, Callable[[int, int], Sides]] = {
        "deltanet": lambda w, t: delta(w, t, 1, ""),
        "gated-deltanet": lambda w, t: delta(w, t, 1, "head"),
        "deltaproduct": lambda w, t: delta(w, t, 2, ""),
        "gated-deltaproduct": lambda w, t: delta(w, t, 2, "head"),
        "kda": lambda w, t: delta(w, t, 1, "row"),
        "gla": lambda w, t: attention(w, t, "row", 8, 16),
        "hgrn2": lambda w, t: attention(w, t, "row", 16, 16),
        "linear-attention": lambda w, t: attention(w, t, "none", 16, 16),
        "mamba2": lambda w, t: state_space_duality(w, t, checkout),
        "mlstm": matrix_lstm,
        "rwkv6": rwkv6,
        "rwkv7": replacing,
        "hgrn": diagonal,
    }
    if checkout is not None:
        found["mamba"] = lambda w, t: selective(w, t, checkout)
    return found


def seconds(function: Function, parts: Sequence[Tensor]) -> float:
    """CPU seconds of one forward and backward pass."""
    leaves = [part.detach().requires_grad_() for part in parts]
    start = time.process_time()
    function(*leaves).sum().backward()
    return time.process_time() - start


def compare(sides: Sides, rounds: int) -> tuple[float, float]:
    """Median milliseconds of theirs in the faster form and of ours."""
    parts, ours, theirs = sides
    with torch.no_grad():
        for form in theirs:
            torch.testing.assert_close(ours(*parts), form(*parts), rtol=1e-3, atol=1e-3)
    every = [ours, *theirs]
    for function in every:
        seconds(function, parts)
    times = [[seconds(function, parts) for function in every] for _ in range(rounds)]
    mine, *others = (1e3 * statistics.median(own) for own in zip(*times, strict=True))
    return min(others), mine


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models")
    parser.add_argument("--mamba", type=Path, help="a checkout of state-spaces/mamba")
    options = parser.parse_args()
    known = recurrences(options.mamba)
    names = options.models.split(",") if options.models else list(known)
    if missing := [name for name in names if name not in known]:
        sys.exit(f"--models: {', '.join(missing)}: take from {', '.join(known)}")
    torch.set_num_threads(1)
    ops.keep_freed_memory()
    torch.manual_seed(0)
    columns = [
        f"T={steps}: {what}"
        for _, steps in CASES
        for what in ("authors (ms)", "native (ms)", "ratio")
    ]
    print("| recurrence | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in names:
        cells = []
        for case in CASES:
            theirs, ours = compare(known[name](*case), options.rounds)
            cells += [f"{theirs:.2f}", f"{ours:.2f}", f"{theirs / ours:.1f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
