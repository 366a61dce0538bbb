"""Losses, one file each: a file `squared_error.py` registers the loss `squared-error`.

A registered function makes the loss from settings: `(TrainSettings) -> Loss`.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Loss = Callable[[Tensor, Tensor], Tensor]
"""Logits [..., C] and labels [...] to one loss per position, [...]."""
