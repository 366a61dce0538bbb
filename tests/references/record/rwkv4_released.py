"""Writes `rwkv4-released.safetensors`: RWKV-4's time mixing by its released training code.

`--checkout` is a checkout of BlinkDL/RWKV-LM.
"""

import torch
from torch import Tensor

from tests.references.record._fla import arguments
from tests.references.record._rwkv import load, record

FILE = "RWKV-v4neo/src/model.py"


def recurrence(
    num_words: int, length: int, width: int, decay: Tensor, first: Tensor, k: Tensor, v: Tensor
) -> Tensor:
    """(a + e^(u + k) v) / (b + e^(u + k)), then a and b decay by exp(-exp(w)) and gain e^k."""
    above, below, read = torch.zeros_like(v[:, 0]), torch.zeros_like(v[:, 0]), []
    kept = torch.exp(-torch.exp(decay))
    for t in range(length):
        own, weight = torch.exp(first + k[:, t]), torch.exp(k[:, t])
        read.append((above + own * v[:, t]) / (below + own))
        above, below = kept * above + weight * v[:, t], kept * below + weight
    return torch.stack(read, 1)


if __name__ == "__main__":
    options = arguments()
    module = load(options.checkout / FILE, "")
    module.RUN_CUDA = recurrence
    record(
        module.RWKV_TimeMix,
        lambda layer, inputs: layer(inputs),
        {"commit": "038f06b99627049729e332bc66159e0a0092cdaa", "files": FILE},
        options.out,
    )
