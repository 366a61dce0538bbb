"""The memory that evaluation takes does not grow with the length of words.

Storages of tensors are counted, as they are made and freed, by what torch dispatches.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from statetrack import MODELS, evaluate, evaluation
from statetrack.models import RecurrentModel, _blocks

SMALL = {"width": 8, "hidden": 8, "heads": 2, "key_dim": 4, "value_dim": 4, "state": 4, "rank": 4}
RECURRENT = [name for name in sorted(MODELS) if issubclass(MODELS[name], RecurrentModel)]
AT_ONCE = 64


class Peak(TorchDispatchMode):
    """The most bytes of tensors that are alive at once, of those that are made inside."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self._alive: dict[int, tuple[Any, int]] = {}
        self._sum = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        for part in tree_leaves(found):
            if isinstance(part, torch.Tensor):
                storage = part.untyped_storage()
                reference, size = StorageWeakRef(storage), storage.nbytes()
                _, before = self._alive.get(reference.cdata, (None, 0))
                self._alive[reference.cdata] = reference, size
                self._sum += size - before
        if self._sum > self.bytes:  # only then does it matter what is freed already
            self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
            self._sum = sum(size for _, size in self._alive.values())
            self.bytes = max(self.bytes, self._sum)
        return found


def peak_of(name: str, length: int) -> int:
    """Bytes at the peak of an evaluation of one word."""
    kind = MODELS[name]
    fields = kind.settings_class.model_fields
    settings = kind.settings_class(**{key: size for key, size in SMALL.items() if key in fields})
    model = kind(settings, num_symbols=2, num_labels=2)
    with Peak() as peak:
        (score,) = evaluate(model, "parity", [length], num_words=1)
    assert score.length == length
    return peak.bytes


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.parametrize(
    ("at_once", "length"),
    [
        (16, 128),
        pytest.param(AT_ONCE, 10_000, marks=pytest.mark.slow),
        pytest.param(AT_ONCE, 100_000, marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_grow_with_length(
    monkeypatch: pytest.MonkeyPatch, name: str, at_once: int, length: int
) -> None:
    monkeypatch.setattr(evaluation, "CHUNK", at_once)
    assert 0 < peak_of(name, length) <= 1.05 * peak_of(name, 2 * at_once)


@pytest.mark.parametrize("name", ["deltanet", "mamba"])
def test_a_long_word_at_once_is_read_piece_by_piece(monkeypatch: pytest.MonkeyPatch, name) -> None:
    """In less than half of what it takes whole, and to the same logits."""
    model = MODELS[name](MODELS[name].settings_class(), num_symbols=2, num_labels=2)
    symbols, found, bytes_ = torch.randint(2, (2, 4 * AT_ONCE)), [], []
    for at_once in (1 << 20, AT_ONCE // 2):
        monkeypatch.setattr(_blocks, "AT_ONCE", at_once)
        with Peak() as peak, torch.no_grad():
            found.append(model(symbols))
        bytes_.append(peak.bytes)
    torch.testing.assert_close(*found)
    assert bytes_[1] < bytes_[0] / 2
