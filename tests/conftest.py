"""What every test shares: one thread, random numbers from one seed, no plugins of other tests."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy; processes of tests inherit it
os.environ.setdefault("COLUMNS", "160")  # tests read whole sentences; those of widths set their own

import pytest
import torch
from filelock import FileLock

from statetrack.models import MODELS
from statetrack.plugins import PREFIX
from statetrack.sources import KINDS
from statetrack.training import LOSSES, OPTIMISERS


@pytest.fixture(autouse=True, scope="session")
def _state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What commands remember of the user's own code is kept away from the user's home."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


SharedFolder = Callable[[str, Callable[[Path], None]], Path]


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


@pytest.fixture(autouse=True)
def _same_random_numbers() -> Iterator[None]:
    """Each test starts from the same seed, whichever tests ran before it."""
    before = torch.get_rng_state()
    # Where no device is, `torch.manual_seed` keeps a trace of the stack for each kind of device.
    (torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed)(0)
    yield
    torch.set_rng_state(before)


@pytest.fixture(autouse=True)
def _plugins_stay_in_their_test() -> Iterator[None]:
    """What a test's plugins register is forgotten, so that other tests do not meet it."""
    before = [(registry, set(registry)) for registry in (MODELS, KINDS, LOSSES, OPTIMISERS)]
    modules = set(sys.modules)
    yield
    for registry, names in before:
        for name in set(registry) - names:
            del registry._things[name]
    for module in sys.modules.keys() - modules:
        if module.startswith(PREFIX):
            del sys.modules[module]
