"""Tokens per second of every registered model, forward and in training, by length.

    python -m tests.benchmarks.throughput [--lengths 64,512] [--batch 16] [--threads 2]
                                          [--models gla,lstm]

Every model is measured unless some are named. Each has its default settings; the words are
those of modular addition modulo 5. A training step is forward, squared error, backward and
fused Adam. Each figure is the best of three runs after a warm-up, since what disturbs a run
only makes it slower.

B batch, T time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from statetrack import MODELS, SequenceModel, ops
from statetrack.training.losses.squared_error import squared_error

NUM_SYMBOLS = 5


def tokens_per_second(work: Callable[[], object], tokens: int, runs: int = 3) -> float:
    """The best of some runs, after one that does not count."""
    work()
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return tokens / best


def forward(model: SequenceModel, symbols: Tensor) -> Callable[[], object]:
    """One pass without gradients."""

    def run() -> None:
        with torch.no_grad():
            model(symbols)

    return run


def training(model: SequenceModel, symbols: Tensor) -> Callable[[], object]:
    """One optimisation step."""
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    labels = symbols.cumsum(1) % NUM_SYMBOLS

    def run() -> None:
        optimiser.zero_grad(set_to_none=True)
        squared_error(model(symbols), labels).mean().backward()
        optimiser.step()

    return run


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", default="64,512")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", default=",".join(MODELS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    ops.keep_freed_memory()
    lengths = [int(length) for length in options.lengths.split(",")]
    heads = [f"{what}, T={length}" for length in lengths for what in ("forward", "training")]
    print("| model | " + " | ".join(heads) + " |")
    print("|---|" + "---|" * len(heads))
    for name in options.models.split(","):
        kind = MODELS[name]
        model = kind(kind.settings_class(), num_symbols=NUM_SYMBOLS, num_labels=NUM_SYMBOLS)
        cells = []
        for length in lengths:
            symbols = torch.randint(NUM_SYMBOLS, (options.batch, length))
            for build in (forward, training):
                rate = tokens_per_second(build(model, symbols), symbols.numel())
                cells.append(f"{rate / 1000:,.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
