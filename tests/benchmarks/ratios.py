"""How fast the recurrences and the algebra are, as ratios measured side by side in one process.

    python -m tests.benchmarks.ratios [--rounds 9] [--threads 2] [--only TITLE]

Absolute times of a shared machine say little, so every claim is a ratio: both sides run in
alternation, rounds in which the machine was busy with something else are set aside, and the
ratio of the medians is printed next to the one aimed at, as a markdown table.

A side is a function without arguments that does one unit of work. A training step takes any
module from symbols [B, T] to logits, so that a model of the toolkit can stand where a small
module of this file stands: give `training_step` another `build`.

T time, B batch, V symbols, C labels, D embedding, H hidden, K rank, R replicas.
"""

from __future__ import annotations

import argparse
import gc
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from statetrack import MODELS, load_task, ops
from statetrack.algebra import MonoidBudget, transition_monoid
from statetrack.algebra.images import holonomy_groups, images_of

BATCH, LENGTH, HIDDEN, EMBEDDING, RANK = 64, 10, 256, 256, 64
EVALUATION_BATCH = 1024

Work = Callable[[], object]
Build = Callable[[int], nn.Module]


@dataclass(frozen=True)
class Side:
    """One unit of work, and how many equal parts it consists of (steps, replicas)."""

    run: Work
    parts: int = 1


@dataclass(frozen=True)
class Comparison:
    """`fast` should need at most 1 / `target` of the time of `slow`, part by part."""

    title: str
    target: float
    slow: Callable[[], Side]
    fast: Callable[[], Side]


class EinsumBilinear(nn.Module):
    """The equation as papers print it: one product over W [H, H, D] per step and word."""

    def __init__(self, num_symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(_rows(num_symbols, EMBEDDING))
        self.weight = nn.Parameter(0.3 * _rows(HIDDEN, HIDDEN, EMBEDDING))
        self.first = nn.Parameter(_rows(HIDDEN))
        self.readout = nn.Linear(HIDDEN, num_symbols, bias=False)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [T, B, C]."""
        state = self.first.expand(len(symbols), -1)
        states = []
        for embedded in self.embedding[symbols].unbind(1):
            state = torch.einsum("ijk,bk,bj->bi", self.weight, embedded, state)
            states.append(state)
        logits: Tensor = self.readout(torch.stack(states))
        return logits


class Lstm(nn.Module):
    """torch's LSTM of the same width."""

    def __init__(self, num_symbols: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(_rows(num_symbols, EMBEDDING))
        self.layer = nn.LSTM(EMBEDDING, HIDDEN)
        self.readout = nn.Linear(HIDDEN, num_symbols, bias=False)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [T, B, C]."""
        logits: Tensor = self.readout(self.layer(self.embedding[symbols.t()])[0])
        return logits


def training_step(build: Build, num_symbols: int) -> Side:
    """A full step: logits, a label at every position, gradients, fused Adam."""
    module = build(num_symbols)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4, fused=True)
    symbols = torch.randint(num_symbols, (BATCH, LENGTH))
    labels = torch.randint(num_symbols, (LENGTH, BATCH))

    def run() -> None:
        loss = cross_entropy(module(symbols).flatten(0, 1), labels.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return Side(run)


def population_step(build: Build, num_symbols: int, num_replicas: int) -> Side:
    """A full step of a population in one `vmap`, each replica with words of its own."""
    modules = [build(num_symbols) for _ in range(num_replicas)]
    parameters, _ = stack_module_state(modules)
    optimizer = torch.optim.Adam(list(parameters.values()), lr=1e-4, fused=True)
    symbols = torch.randint(num_symbols, (num_replicas, BATCH, LENGTH))
    labels = torch.randint(num_symbols, (num_replicas, LENGTH, BATCH))
    population = vmap(lambda values, words: functional_call(modules[0], values, (words,)))

    def run() -> None:
        logits = population(parameters, symbols)
        loss = cross_entropy(logits.flatten(0, 2), labels.flatten()) * num_replicas
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return Side(run, num_replicas)


def evaluation_by_einsum(num_symbols: int, num_steps: int = 2) -> Side:
    """Steps of a large batch without gradients, as papers print the equation."""
    module = EinsumBilinear(num_symbols)
    symbols = torch.randint(num_symbols, (EVALUATION_BATCH, num_steps))

    def run() -> None:
        with torch.no_grad():
            state = module.first.expand(EVALUATION_BATCH, -1)
            for embedded in module.embedding[symbols].unbind(1):
                state = torch.einsum("ijk,bk,bj->bi", module.weight, embedded, state)

    return Side(run, num_steps)


def evaluation(num_symbols: int, hidden: int = HIDDEN, num_steps: int = 128) -> Side:
    """The same with the dense recurrence, normalised every 8 steps."""
    operators = 0.3 * _rows(num_symbols, hidden, hidden)
    first = _rows(EVALUATION_BATCH, hidden)
    symbols = torch.randint(num_symbols, (EVALUATION_BATCH, num_steps))

    def run() -> None:
        with torch.no_grad():
            ops.dense_recurrence(operators, symbols, first, normalise_every=8)

    return Side(run, num_steps)


def bare_products(num_steps: int = 32) -> Side:
    """The arithmetic that no dense evaluation can do without."""
    state, product = _rows(EVALUATION_BATCH, HIDDEN), torch.empty(EVALUATION_BATCH, HIDDEN)
    operator = _rows(HIDDEN, HIDDEN)

    def run() -> None:
        for _ in range(num_steps):
            torch.mm(state, operator, out=product)

    return Side(run, num_steps)


def groups_of_all_maps(num_states: int, *, by_images: bool) -> Side:
    """The maximal subgroups of the monoid of all maps of some states."""
    points = np.arange(num_states)
    actions = np.array([np.roll(points, -1), [1, 0, *points[2:]], [0, *points[:1], *points[2:]]])

    def by_elements() -> None:
        monoid = transition_monoid(actions, MonoidBudget())
        assert monoid is not None and len(monoid.maximal_subgroups()) == num_states

    def without() -> None:
        images = images_of(actions)
        assert images is not None and len(holonomy_groups(images)) == num_states - 1

    return Side(without if by_images else by_elements)


def registered(name: str, **settings: Any) -> Build:
    """A model of the toolkit, of the width of this file unless told otherwise."""
    model = MODELS[name]
    chosen = model.settings_class(**{"hidden": HIDDEN, **settings})
    return lambda num_symbols: model(chosen, num_symbols=num_symbols, num_labels=num_symbols)


def over_lstm(title: str, target: float, build: Build) -> Comparison:
    """A training step at five symbols, beside one of torch's LSTM."""
    return Comparison(
        f"{title}, V=5: over LSTM",
        target,
        lambda: training_step(Lstm, 5),
        lambda: training_step(build, 5),
    )


STRUCTURED = {
    "diagonal-real": (4.0, {}),
    "bilinear-rotation": (4.0, {}),
    "bilinear-cp": (4.0, {"rank": RANK}),
    "bilinear-block": (3.0, {"block_size": 2}),
}
"""The ratio aimed at with one-hot symbols, and the settings, of each model."""

COMPARISONS = (
    Comparison(
        "bilinear step, D=256, V=5: over einsum",
        15.0,
        lambda: training_step(EinsumBilinear, 5),
        lambda: training_step(registered("bilinear", embed_dim=EMBEDDING), 5),
    ),
    Comparison(
        "bilinear step, D=256, V=50: over einsum",
        8.0,
        lambda: training_step(EinsumBilinear, 50),
        lambda: training_step(registered("bilinear", embed_dim=EMBEDDING), 50),
    ),
    over_lstm("bilinear step, D=256", 1 / 3, registered("bilinear", embed_dim=EMBEDDING)),
    over_lstm("bilinear step, one-hot", 1.0, registered("bilinear")),
    *(
        over_lstm(f"{name} step, one-hot", target, registered(name, **settings))
        for name, (target, settings) in STRUCTURED.items()
    ),
    *(
        over_lstm(f"{name} step, D=256", 3.0, registered(name, embed_dim=EMBEDDING, **settings))
        for name, (_, settings) in STRUCTURED.items()
    ),
    *(
        Comparison(
            f"population of 9, {name}, one-hot H=64, V=5: over one at a time",
            2.0,
            partial(training_step, registered(name, hidden=64), 5),
            partial(population_step, registered(name, hidden=64), 5, 9),
        )
        for name in ("bilinear", "bilinear-cp", "bilinear-rotation", "diagonal-real")
    ),
    Comparison(
        "evaluation, V=5, B=1024: over einsum",
        200.0,
        lambda: evaluation_by_einsum(5),
        lambda: evaluation(5),
    ),
    Comparison(
        "evaluation, V=5, B=1024: over the bare products",
        1 / 2.5,
        bare_products,
        lambda: evaluation(5),
    ),
    Comparison(
        "groups of 46,656 maps of 6 states: by 63 images, over elements",
        20.0,
        lambda: groups_of_all_maps(6, by_images=False),
        lambda: groups_of_all_maps(6, by_images=True),
    ),
)


class Gate:
    """Tells whether the machine is quiet: whether a matrix product takes its usual time."""

    def __init__(self) -> None:
        self.matrix = torch.randn(768, 768)
        self.best = float("inf")
        for _ in range(50):
            self.is_quiet()

    def is_quiet(self) -> bool:
        """Whether the product is within a quarter of the best time seen so far."""
        seconds = _seconds(lambda: self.matrix @ self.matrix)
        self.best = min(self.best, seconds)
        return seconds < 1.25 * self.best


@dataclass(frozen=True)
class Measurement:
    """Median seconds per part of both sides, and from how many of how many quiet rounds."""

    slow: float
    fast: float
    quiet: int
    rounds: int


def measure(comparison: Comparison, gate: Gate, rounds: int, patience: int) -> Measurement:
    """Both sides in alternation, until enough rounds were quiet before and after each side.

    Gives up after `patience` times as many rounds; without any quiet one all are used.
    """
    sides = comparison.slow(), comparison.fast()
    for side in sides:
        side.run()
        side.run()
    every: list[tuple[float, ...]] = []
    quiet: list[tuple[float, ...]] = []
    gc.collect()
    gc.disable()
    try:
        while len(quiet) < rounds and len(every) < patience * rounds:
            checks = [gate.is_quiet()]
            times = []
            for side in sides:
                times.append(_seconds(side.run) / side.parts)
                checks.append(gate.is_quiet())
            every.append(tuple(times))
            if all(checks):
                quiet.append(tuple(times))
    finally:
        gc.enable()
    slow, fast = (statistics.median(times) for times in zip(*(quiet or every), strict=True))
    return Measurement(slow, fast, len(quiet), len(every))


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def table(comparisons: tuple[Comparison, ...], rounds: int, patience: int) -> Iterator[str]:
    """The lines of a markdown table, each as soon as it is measured."""
    yield f"{_processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}"
    yield ""
    yield "| comparison | slow (ms) | fast (ms) | ratio | aim | met | quiet rounds |"
    yield "|---|---|---|---|---|---|---|"
    gate = Gate()
    for comparison in comparisons:
        found = measure(comparison, gate, rounds, patience)
        ratio = found.slow / found.fast
        met = "yes" if ratio >= comparison.target else "no"
        yield (
            f"| {comparison.title} | {1e3 * found.slow:.3f} | {1e3 * found.fast:.3f} "
            f"| {ratio:.2f} | {comparison.target:.2f} | {met} | {found.quiet}/{found.rounds} |"
        )


def main() -> None:
    """Measure all comparisons, or those whose title contains `--only`, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="quiet rounds to wait for")
    parser.add_argument(
        "--patience", type=int, default=5, help="how many times as many to run at most"
    )
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument("--only", default="", help="a part of the titles to measure")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    ops.keep_freed_memory()
    chosen = tuple(each for each in COMPARISONS if options.only in each.title)
    for line in table(chosen, options.rounds, options.patience):
        print(line, flush=True)
    if not options.only:
        print(f"\nLabels of every prefix, V = S = 5, 1,000 words of 500: {labels_rate():.0f} M/s")


def labels_rate(num_words: int = 1000, length: int = 500, rounds: int = 50) -> float:
    """Millions of symbols that an automaton labels in a second, on one core, at the median."""
    automaton = load_task("modular-addition").automaton
    words = np.random.default_rng(0).integers(5, size=(num_words, length), dtype=np.uint8)
    automaton.labels_of(words)
    seconds = statistics.median(_seconds(lambda: automaton.labels_of(words)) for _ in range(rounds))
    return words.size / seconds / 1e6


def _rows(*shape: int) -> Tensor:
    """Normal numbers, scaled so that a product over the last axis keeps its size."""
    return torch.randn(*shape) / math.sqrt(shape[-1])


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
