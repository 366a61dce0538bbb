"""What a change costs: the same work in two checkouts, in alternation, as ratios of CPU time.

    python -m tests.benchmarks.checkouts OTHER [--rounds 15] [--only WORD]

Run it in the checkout that has the change; OTHER is a checkout without it. Work of the library is
done in one process for each checkout, which stays, so that neither import nor compilation counts;
a command is a new process each time. Only names that both versions have are used. CPU seconds of
user and system are compared, by their medians over the rounds: wall time on a busy machine says
little. Both sides have one thread. A training step is one of 64 words of 10 symbols with one
replica (`train`) or nine (`population`), or of 8 words of 256 with one (`lengthy`).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

MODELS = (
    "bilinear",
    "bilinear-cp",
    "bilinear-block",
    "bilinear-rotation",
    "diagonal-real",
    "rnn",
    "gru",
    "lstm",
    "slstm",
    "mlstm",
    "gla",
    "rwkv7",
    "deltanet",
    "gated-deltanet",
    "deltaproduct",
    "hgrn2",
    "mamba",
    "transformer",
)
TASKS = ("s3", "a5", "modular-arithmetic", "random-fsm")
LARGE_TASKS = ("cyclic:n=200", "symmetric:n=6,generators=swaps", "random-fsm:states=1024")
LIBRARY = (
    *(f"train {model}" for model in MODELS),
    *(f"population {model}" for model in MODELS),
    *(f"lengthy {model}" for model in MODELS),
    *(f"evaluate {model}" for model in ("bilinear-cp", "lstm", "deltanet", "mamba")),
    *(f"analyse {task}" for task in TASKS),
    *(f"draw {task}" for task in TASKS),
    *(f"predict {task}" for task in LARGE_TASKS),
)
COMMANDS = (
    "--help",
    "--version",
    "list",
    "list models",
    "list tasks",
    "cite lstm",
    "predict s3 --models lstm",
    "train --help",
    "eval --help",
    "report --help",
)


class Ratio(NamedTuple):
    """Median CPU seconds in both checkouts."""

    name: str
    other: float
    here: float

    @property
    def ratio(self) -> float:
        return self.here / self.other


def library_work(name: str) -> Callable[[], object]:
    """One unit of work of the library, by the name that `LIBRARY` has for it."""
    import torch

    import statetrack as st
    from statetrack import ops

    kind, what = name.split()
    torch.set_num_threads(1)
    ops.keep_freed_memory()  # as training does, in all versions
    torch.manual_seed(0)
    if kind == "analyse":
        automaton = st.load_task(what).automaton
        return lambda: st.analyse(automaton)
    if kind == "predict":
        automaton = st.load_task(what).automaton

        def predict_all() -> None:
            algebra = st.analyse(automaton)
            for model in st.MODELS:
                st.predict(algebra, model)

        return predict_all
    task = st.load_task(what if kind == "draw" else "s3")
    if kind == "draw":
        words = st.stream(task, batch_size=256)
        return lambda: next(iter(words))
    if kind == "evaluate":
        module = st.make_model(what, task)
        symbols = torch.randint(task.automaton.num_symbols, (64, 500))

        def evaluate() -> None:
            with torch.no_grad():
                module(symbols)

        return evaluate
    return training_step(what, replicas=9 if kind == "population" else 1, long=kind == "lengthy")


def training_step(name: str, *, replicas: int, long: bool) -> Callable[[], None]:
    """One step of a model on S3, or of a population: forward, loss, backward and fused Adam."""
    import torch

    import statetrack as st
    from statetrack.training.population import Population
    from statetrack.training.records import Replica

    task = st.load_task("s3")
    seeds = tuple(Replica(index, seed=index, lr=1e-4) for index in range(replicas))
    population = Population(lambda: st.make_model(name, task), seeds, torch.device("cpu"))
    shape = (replicas, 8, 256) if long else (replicas, 64, 10)
    symbols = torch.randint(task.automaton.num_symbols, shape)
    optimizer = torch.optim.Adam(list(population.parameters.values()), lr=1e-4, fused=True)

    def step() -> None:
        population(symbols).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def serve() -> None:
    """Do what standard input names, line by line, and answer with CPU seconds."""
    works: dict[str, Callable[[], object]] = {}
    repeats: dict[str, int] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in works:
            works[name] = library_work(name)
            works[name]()
            start = time.process_time()
            works[name]()
            repeats[name] = 1 + int(0.05 / (time.process_time() - start + 1e-6))
        start = time.process_time()
        for _ in range(repeats[name]):
            works[name]()
        print((time.process_time() - start) / repeats[name], flush=True)


class Checkout:
    """The library of a folder in a process of its own, and its commands as new processes."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "OMP_NUM_THREADS": "1",
        }
        self.server = subprocess.Popen(
            [sys.executable, Path(__file__), "--serve"],
            env=self.environment,
            cwd=tempfile.gettempdir(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def cpu_seconds(self, name: str) -> float:
        """CPU seconds of a command, from the start of its interpreter, or of a library's work."""
        if name.startswith("statetrack "):
            return self._of_command(name.split()[1:])
        assert self.server.stdin is not None and self.server.stdout is not None
        self.server.stdin.write(f"{name}\n")
        self.server.stdin.flush()
        return float(self.server.stdout.readline())

    def _of_command(self, words: list[str]) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-m", "statetrack", *words],
            env=self.environment,
            cwd=tempfile.gettempdir(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(other: Path, here: Path, rounds: int, only: str) -> Iterator[Ratio]:
    """One ratio for each work whose name has `only` in it."""
    checkouts = Checkout(other), Checkout(here)
    for name in (*LIBRARY, *(f"statetrack {line}" for line in COMMANDS)):
        if only not in name:
            continue
        seconds: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds + 1):
            for times, checkout in zip(seconds, checkouts, strict=True):
                times.append(checkout.cpu_seconds(name))
        slow, fast = (statistics.median(times[1:]) for times in seconds)
        yield Ratio(name, slow, fast)


def main() -> None:
    """Print a markdown table, row by row."""
    if "--serve" in sys.argv:
        serve()
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("other", type=Path, help="a checkout without the change")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", metavar="WORD", help="works whose name has it")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[2]
    print("| work | other (CPU ms) | here (CPU ms) | ratio |\n| --- | --- | --- | --- |")
    for row in measure(options.other.resolve(), here, options.rounds, options.only):
        milliseconds = f"{1000 * row.other:.1f} | {1000 * row.here:.1f}"
        print(f"| {row.name} | {milliseconds} | {row.ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
