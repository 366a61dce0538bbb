"""Writes `rwkv6-released.safetensors`: RWKV-6's time mixing by its released training code.

`--checkout` is a checkout of BlinkDL/RWKV-LM.
"""

import torch
from torch import Tensor

from tests.references.record._fla import arguments
from tests.references.record._rwkv import HEAD, load, record

FILE = "RWKV-v5/src/model.py"


def recurrence(
    num_words: int,
    length: int,
    width: int,
    heads: int,
    r: Tensor,
    k: Tensor,
    v: Tensor,
    w: Tensor,
    u: Tensor,
) -> Tensor:
    """y = r (S + diag(u) k v^T), then S <- diag(exp(-exp(w))) S + k v^T, by head."""
    r, k, v, w = (part.unflatten(-1, (-1, HEAD)) for part in (r, k, v, w))
    state, read = torch.zeros(num_words, heads, HEAD, HEAD).to(v), []
    for t in range(length):
        written = k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
        seen = state + u.unsqueeze(-1) * written
        read.append(torch.einsum("bnk,bnkv->bnv", r[:, t], seen))
        state = torch.exp(-torch.exp(w[:, t])).unsqueeze(-1) * state + written
    return torch.stack(read, 1).flatten(-2)


if __name__ == "__main__":
    options = arguments()
    module = load(options.checkout / FILE, "x060")
    module.RUN_CUDA_RWKV6 = recurrence
    record(
        module.RWKV_Tmix_x060,
        lambda layer, inputs: layer(inputs),
        {"commit": "033ce840de872dd67c42ed9f9bba08fa2d683eb7", "files": FILE},
        options.out,
    )
