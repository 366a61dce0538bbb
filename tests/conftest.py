"""What every test shares: one thread, random numbers from one seed, no plugins of other tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy; processes of tests inherit it
os.environ.setdefault("COLUMNS", "160")  # tests read whole sentences; those of widths set their own

import pytest
from filelock import FileLock

if TYPE_CHECKING:
    from tests.new_process import SharedFolder

MEMORY = Path("/dev/shm")
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    # Thousands of files are written, each to the disk at once: in memory that takes no time.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Torch is imported by fixtures: the process that deals tests out to others needs none, and begins
# the others the sooner.


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What commands remember of the user's own code is kept away from the user's home."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def _algebras_are_kept() -> Iterator[None]:
    """The algebra of a shipped task, which many tests ask for, is computed once in a process."""
    from statetrack import predicting

    kept = lru_cache(maxsize=128)(predicting.algebra_of.__wrapped__)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predicting, "algebra_of", kept)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_process_compiles_a_loop(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Of several processes of tests, one compiles a loop, and the others wait and read it."""
    import torch

    from statetrack.ops import native

    missing = native.why_not(torch.device("cpu"))
    if missing or "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    dispatcher = import_module("numba.core.dispatcher").Dispatcher
    common, compile_alone = tmp_path_factory.getbasetemp().parent, dispatcher.compile
    locks: dict[str, FileLock] = {}

    def compile_once(self: Any, types: Any) -> Any:
        name = f"{self.py_func.__module__}.{self.py_func.__name__}"
        if not name.startswith("statetrack."):
            return compile_alone(self, types)
        with locks.setdefault(name, FileLock(common / f"{name}.lock")):
            return compile_alone(self, types)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatcher, "compile", compile_once)
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--without numba` runs tests, but not processes they start, as where numba is missing."""
    told = "as if this package were not installed"
    parser.addoption("--without", action="append", default=[], metavar="PACKAGE", help=told)


def pytest_configure(config: pytest.Config) -> None:
    """An import of a package that is said not to be there fails; what is imported is no garbage."""
    gc.disable()
    for name in config.getoption("--without"):
        assert name not in sys.modules, f"{name} is imported before the tests"
        sys.modules[name] = None  # type: ignore[assignment]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Of two processes of all tests, the second imports from the last module on.

    So each compiles half of the modules in a new clone, and reads what the other compiled.
    """
    here = Path(__file__).parent
    second = os.environ.get("PYTEST_XDIST_WORKER") == "gw1"
    if second and [Path(given).resolve() for given in session.config.args] == [here]:
        for path in sorted(here.glob("test_*.py"), reverse=True):
            with suppress(pytest.skip.Exception):  # of a module that needs what is missing
                import_module(path.stem)


def pytest_collection_finish() -> None:
    """What was imported stays: it is not searched for garbage, nor copied by that in processes."""
    from hypothesis.internal.conjecture import providers

    # Hypothesis would read every module for constants to try, 10 s in each process of a new clone.
    providers._get_local_constants = lambda: providers._local_constants
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> SharedFolder:
    """Gives a folder by its name, filled by the first process of a run of tests that asks for it.

    Tests read it, and write nothing into it.
    """
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def filled(name: str, fill: Callable[[Path], None]) -> Path:
        folder = common / name
        with FileLock(common / f"{name}.lock"):
            if not folder.exists():
                unfinished = common / f"{name}.unfinished"
                shutil.rmtree(unfinished, ignore_errors=True)
                unfinished.mkdir()
                fill(unfinished)
                unfinished.rename(folder)
        return folder

    return filled


@pytest.fixture(autouse=True, scope="session")
def _seeds_keep_no_trace() -> Iterator[None]:
    """Where no device is, `torch.manual_seed` keeps a trace of the stack for each kind of device.

    Here it does not: it takes longer than to build a small model.
    """
    import torch

    with pytest.MonkeyPatch.context() as patch:
        if not torch.cuda.is_available():
            only_here = torch.default_generator.manual_seed
            patch.setattr(torch, "manual_seed", lambda seed: only_here(int(seed)))
        yield


@pytest.fixture(autouse=True)
def _same_random_numbers() -> Iterator[None]:
    """Each test starts from the same seed, whichever tests ran before it."""
    import torch

    before = torch.get_rng_state()
    torch.manual_seed(0)
    yield
    torch.set_rng_state(before)


@pytest.fixture(autouse=True)
def _plugins_stay_in_their_test() -> Iterator[None]:
    """What a test's plugins register is forgotten, so that other tests do not meet it."""
    from statetrack.models import MODELS
    from statetrack.plugins import _PLUGINS
    from statetrack.registry import Registry
    from statetrack.sources import KINDS
    from statetrack.training import LOSSES, OPTIMISERS

    registries: tuple[Registry, ...] = (MODELS, KINDS, LOSSES, OPTIMISERS)
    before = [(registry, set(registry._things)) for registry in registries]
    loaded = _PLUGINS.keys() & sys.modules.keys()
    yield
    for registry, names in before:
        if new := registry._things.keys() - names:
            for name in new - registry._names().keys():  # others were only loaded
                del registry._things[name]
    for module in (_PLUGINS.keys() & sys.modules.keys()) - loaded:
        del sys.modules[module]
