"""Writes `rwkv7-released.safetensors`: RWKV-7's time mixing by its released training code.

`--checkout` is a checkout of BlinkDL/RWKV-LM.
"""

import torch
from torch import Tensor

from tests.references.record._fla import arguments
from tests.references.record._rwkv import HEAD, load, record

FILE = "RWKV-v7/train_temp/src/model.py"


def recurrence(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """S <- S diag(exp(-exp(w))) + S a b^T + v k^T, read as S r, by head."""
    r, w, k, v, a, b = (part.unflatten(-1, (-1, HEAD)) for part in (r, w, k, v, a, b))
    state, read = torch.zeros(*v.shape[:1], *v.shape[2:], HEAD).to(v), []
    for t in range(v.shape[1]):
        decay = torch.exp(-torch.exp(w[:, t]))
        removed = torch.einsum("bnvk,bnk->bnv", state, a[:, t])
        state = state * decay.unsqueeze(-2)
        state = state + removed.unsqueeze(-1) * b[:, t].unsqueeze(-2)
        state = state + v[:, t].unsqueeze(-1) * k[:, t].unsqueeze(-2)
        read.append(torch.einsum("bnvk,bnk->bnv", state, r[:, t]))
    return torch.stack(read, 1).flatten(-2)


if __name__ == "__main__":
    options = arguments()
    module = load(options.checkout / FILE, "x070")
    module.RUN_CUDA_RWKV7g = recurrence
    record(
        module.RWKV_Tmix_x070,
        lambda layer, inputs: layer(inputs, None)[0],
        {"commit": "d4a6c3be999c5c2ece521660279a5d68ced0458d", "files": FILE},
        options.out,
    )
