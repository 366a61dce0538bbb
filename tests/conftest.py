"""What every test shares: one thread, and torch's random numbers from one seed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


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
