"""A training step by compiled loops beside the same by torch, for every model made of blocks.

    python -m tests.benchmarks.kernels [--rounds 7] [--models gla,mamba]

Every model has its default settings. A step is forward, loss, backward and fused Adam, on one
thread: of one model and of a population of nine, with 64 words of 10 symbols, and of one model with
8 words of 256. Both kernels run in alternation in one process, and medians of CPU seconds are
compared. What numba compiles at its first call does not count.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from statetrack import MODELS, ops

NUM_SYMBOLS = 5
CASES = ((1, 64, 10), (9, 64, 10), (1, 8, 256))
"""Replicas, words and symbols of a word."""
WITH_LOOPS = [name for name in MODELS if "kernel" in MODELS[name].settings_class.model_fields]


def training_step(
    name: str, kernel: str, replicas: int, words: int, length: int
) -> Callable[[], None]:
    """One step of a model, or of a population in one `vmap`."""
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = kind.settings_class(kernel=kernel)
    models = [
        kind(settings, num_symbols=NUM_SYMBOLS, num_labels=NUM_SYMBOLS) for _ in range(replicas)
    ]
    symbols = torch.randint(NUM_SYMBOLS, (replicas, words, length))
    labels = torch.randint(NUM_SYMBOLS, (replicas * words * length,))
    if replicas == 1:
        weights = dict(models[0].named_parameters())
    else:
        weights, _ = stack_module_state(models)
    optimizer = torch.optim.Adam(list(weights.values()), lr=1e-4, fused=True)
    population = vmap(lambda values, given: functional_call(models[0], values, (given,)))

    def run() -> None:
        logits = models[0](symbols[0]) if replicas == 1 else population(weights, symbols)
        cross_entropy(logits.reshape(-1, NUM_SYMBOLS), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


def compare(name: str, case: tuple[int, int, int], rounds: int) -> tuple[float, float]:
    """Median milliseconds of CPU time by torch and by loops, measured in alternation."""
    sides = [training_step(name, kernel, *case) for kernel in ("torch", "native")]
    for run in (*sides, *sides):
        run()
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for run, own in zip(sides, times, strict=True):
            start = time.process_time()
            run()
            own.append(1e3 * (time.process_time() - start))
    by_torch, by_loops = (statistics.median(own) for own in times)
    return by_torch, by_loops


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(WITH_LOOPS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    ops.keep_freed_memory()
    heads = [f"R={replicas}, T={length}" for replicas, _, length in CASES]
    columns = [
        f"{head}: {what}" for head in heads for what in ("torch (ms)", "native (ms)", "ratio")
    ]
    print("| model | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in options.models.split(","):
        cells = []
        for case in CASES:
            by_torch, by_loops = compare(name, case, options.rounds)
            cells += [f"{by_torch:.1f}", f"{by_loops:.1f}", f"{by_torch / by_loops:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
