"""Kernels of the other families, step by step, as their equations are written in README.md."""

from __future__ import annotations

import torch
from torch import Tensor


def gated_attention(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float) -> Tensor:
    memory, outputs = 0.0, []
    for t in range(q.shape[1]):
        memory = g[:, t].exp().unsqueeze(-1) * memory + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(
            -2
        )
        outputs.append(scale * torch.einsum("bnk,bnkv->bnv", q[:, t], memory))
    return torch.stack(outputs, 1)


def kimi_delta(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, g: Tensor, scale: float) -> Tensor:
    memory, outputs = q.new_zeros(*q[:, 0].shape, v.shape[-1]), []
    for t in range(q.shape[1]):
        memory = g[:, t].exp().unsqueeze(-1) * memory
        error = v[:, t] - torch.einsum("bnk,bnkv->bnv", k[:, t], memory)
        memory = memory + torch.einsum("bn,bnk,bnv->bnkv", beta[:, t], k[:, t], error)
        outputs.append(scale * torch.einsum("bnk,bnkv->bnv", q[:, t], memory))
    return torch.stack(outputs, 1)


def selective_scan(u: Tensor, delta: Tensor, B: Tensor, C: Tensor, A: Tensor) -> Tensor:
    state, outputs = 0.0, []
    for t in range(u.shape[1]):
        written = (delta[:, t] * u[:, t]).unsqueeze(-1) * B[:, t].unsqueeze(-2)
        state = (delta[:, t].unsqueeze(-1) * A).exp() * state + written
        outputs.append((state * C[:, t].unsqueeze(-2)).sum(-1))
    return torch.stack(outputs, 1)


def state_space_dual(x: Tensor, dt: Tensor, B: Tensor, C: Tensor, A: Tensor) -> Tensor:
    state, outputs = 0.0, []
    for t in range(x.shape[1]):
        written = torch.einsum("bn,bh,bhp->bhnp", B[:, t], dt[:, t], x[:, t])
        state = (dt[:, t] * A).exp()[..., None, None] * state + written
        outputs.append(torch.einsum("bhnp,bn->bhp", state, C[:, t]))
    return torch.stack(outputs, 1)


def matrix_memory(
    q: Tensor, k: Tensor, v: Tensor, log_i: Tensor, log_f: Tensor, scale: float
) -> Tensor:
    matrix, normaliser, maximum, outputs = 0.0, 0.0, torch.zeros_like(log_i[:, 0]), []
    for t in range(q.shape[1]):
        before, key = log_f[:, t] + maximum, scale * k[:, t]
        maximum = torch.maximum(before, log_i[:, t])
        keep = (before - maximum).exp().unsqueeze(-1)
        write = (log_i[:, t] - maximum).exp().unsqueeze(-1)
        matrix = keep.unsqueeze(-1) * matrix + (write * key).unsqueeze(-1) * v[:, t].unsqueeze(-2)
        normaliser = keep * normaliser + write * key
        size = (normaliser * q[:, t]).sum(-1).abs().maximum((-maximum).exp()) + 1e-6
        outputs.append(torch.einsum("bnk,bnkv->bnv", q[:, t], matrix) / size.unsqueeze(-1))
    return torch.stack(outputs, 1)


def rwkv7(r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor) -> Tensor:
    memory, outputs = r.new_zeros(*r[:, 0].shape, v.shape[-1]), []
    for t in range(r.shape[1]):
        removed = torch.einsum("bnk,bnkv->bnv", a[:, t], memory)
        memory = (
            w[:, t].exp().unsqueeze(-1) * memory
            + b[:, t].unsqueeze(-1) * removed.unsqueeze(-2)
            + k[:, t].unsqueeze(-1) * v[:, t].unsqueeze(-2)
        )
        outputs.append(torch.einsum("bnk,bnkv->bnv", r[:, t], memory))
    return torch.stack(outputs, 1)
