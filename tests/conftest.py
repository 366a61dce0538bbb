"""What every test shares: one thread, random numbers from one seed, no plugins of other tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy; processes of tests inherit it
os.environ.setdefault("COLUMNS", "160")  # tests read whole sentences; those of widths set their own

import pytest
import torch

from statetrack.models import MODELS
from statetrack.sources import KINDS
from statetrack.training import LOSSES, OPTIMISERS


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _same_random_numbers() -> Iterator[None]:
    """Each test starts from the same seed, whichever tests ran before it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


@pytest.fixture(autouse=True)
def _plugins_stay_in_their_test() -> Iterator[None]:
    """What a test's plugins register is forgotten, so that other tests do not meet it."""
    before = [(registry, set(registry)) for registry in (MODELS, KINDS, LOSSES, OPTIMISERS)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            del registry._things[name]
    for module in [name for name in sys.modules if name.startswith("statetrack_plugin_")]:
        del sys.modules[module]
