"""A training step by compiled loops beside the same by torch, for every model made of blocks.

    python -m tests.benchmarks.kernels [--rounds 7] [--models gla,mamba] [--cases 0,1]

Every model has its default settings. A step is forward, loss, backward and fused Adam, on one
thread: of one model and of a population of nine, with 64 words of 10 symbols, and of one model with
8 words of 64 and of 256. Both kernels run in alternation in one process, and medians of CPU seconds
are compared. What numba compiles at its first call does not count. The matrix products of the step
by loops are measured alone too: no kernel of a recurrence makes the step faster than these.

R replicas, B batch, T time, C labels.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from statetrack import MODELS, ops
from statetrack.ops.native.calls import loops

NUM_SYMBOLS = 5
CASES = ((1, 64, 10), (9, 64, 10), (1, 8, 64), (1, 8, 256))
"""Replicas, words and symbols of a word."""
WITH_LOOPS = [name for name in MODELS if "kernel" in MODELS[name].settings_class.model_fields]


def training_step(
    name: str, kernel: str, replicas: int, words: int, length: int
) -> Callable[[], None]:
    """One step of a model, or of a population: in one `vmap`, where the model can."""
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = kind.settings_class(kernel=kernel)
    models = [
        kind(settings, num_symbols=NUM_SYMBOLS, num_labels=NUM_SYMBOLS) for _ in range(replicas)
    ]
    symbols = torch.randint(NUM_SYMBOLS, (replicas, words, length))
    labels = torch.randint(NUM_SYMBOLS, (replicas * words * length,))
    together = replicas > 1 and models[0].vectorises_on(torch.device("cpu"))
    if together:
        weights, _ = stack_module_state(models)
    else:  # one after the other
        own = (model.named_parameters(str(place)) for place, model in enumerate(models))
        weights = dict(pair for pairs in own for pair in pairs)
    optimizer = torch.optim.Adam(list(weights.values()), lr=1e-4, fused=True)
    population = vmap(lambda values, given: functional_call(models[0], values, (given,)))

    def run() -> None:
        if together:
            logits = population(weights, symbols)
        else:
            logits = torch.stack([model(own) for model, own in zip(models, symbols, strict=True)])
        cross_entropy(logits.reshape(-1, NUM_SYMBOLS), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return run


class _Products(TorchDispatchMode):
    """Collects the matrix products of what runs inside, to be computed again with other numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.again: list[Callable[[], object]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.overloadpacket.__name__ in ("mm", "bmm", "addmm", "baddbmm"):
            given = [drawn_like(part) if isinstance(part, Tensor) else part for part in args]
            places = {"out": drawn_like(kwargs["out"])} if "out" in kwargs else {}
            self.again.append(partial(func, *given, **places))
        return func(*args, **kwargs)


def drawn_like(part: Tensor) -> Tensor:
    """Other numbers in the same layout, also where several places share one number."""
    steps = zip(part.shape, part.stride(), strict=True)
    last = sum((size - 1) * step for size, step in steps)
    return torch.randn(last + 1).as_strided(part.shape, part.stride())


def products_of(run: Callable[[], None]) -> Callable[[], None]:
    """The matrix products of a step, of torch, linear maps and MLPs, and nothing else, in turn."""
    linear, mlps = loops("linear"), loops("mlp")
    places = [(linear, "linear_forward"), (linear, "linear_backward")]
    places += [(mlps, "mlp_forward"), (mlps, "mlp_backward")]
    own = [(module, name, getattr(module, name)) for module, name in places]
    with _Products() as found:

        def recorded(function: Callable[..., None], *given: Any) -> None:
            found.again.append(partial(function, *given))
            function(*given)

        try:
            for module, name, function in own:
                setattr(module, name, partial(recorded, function))
            run()
        finally:
            for module, name, function in own:
                setattr(module, name, function)

    def products() -> None:
        for product in found.again:
            product()

    return products


def compare(name: str, case: tuple[int, int, int], rounds: int) -> tuple[float, ...]:
    """Median milliseconds of CPU time by torch, by loops and of the products, in alternation."""
    sides = [training_step(name, kernel, *case) for kernel in ("torch", "native")]
    sides.append(products_of(sides[1]))
    for run in (*sides, *sides):
        run()
    times: list[list[float]] = [[] for _ in sides]
    for _ in range(rounds):
        for run, own in zip(sides, times, strict=True):
            start = time.process_time()
            run()
            own.append(1e3 * (time.process_time() - start))
    return tuple(statistics.median(own) for own in times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(WITH_LOOPS))
    parser.add_argument("--cases", default=",".join(map(str, range(len(CASES)))))
    options = parser.parse_args()
    cases = [CASES[int(number)] for number in options.cases.split(",")]
    torch.set_num_threads(1)
    ops.keep_freed_memory()
    heads = [f"R={replicas}, T={length}" for replicas, _, length in cases]
    columns = [
        f"{head}: {what}"
        for head in heads
        for what in ("torch (ms)", "native (ms)", "ratio", "products (ms)")
    ]
    print("| model | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in options.models.split(","):
        cells = []
        for case in cases:
            by_torch, by_loops, products = compare(name, case, options.rounds)
            cells += [f"{by_torch:.1f}", f"{by_loops:.1f}", f"{by_torch / by_loops:.2f}"]
            cells.append(f"{products:.1f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
