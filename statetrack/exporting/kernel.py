"""What the kernel of a model's only layer is given, and how its outputs become logits.

At every position the arguments of the kernel, and all that follows it, depend on the last few
symbols alone: as many as the short convolution spans, two with a token shift. So a word is a list
of contexts, and each argument a table with a row for each context. After the kernel,

    y = (norm((o + plus) * before) * gain + bias + shift) * scale
    logits = W norm'(stream + O y) + b

with a norm over groups of channels, where it has one, and tables `plus`, `before`, `shift`,
`scale` and `stream`. Whatever precision a kernel has, all of this is in float64.

A delta rule has many arguments for one map: I - beta k k^T and the term beta k v^T stay what they
are where beta is divided by c^2 and k and v are multiplied by c, and so do outputs where keys and
queries are turned by one orthogonal matrix. *Another gauge* draws beta anew and turns keys, so that
neither arguments nor states have values that every number format holds; where a head's keys are all
parallel, gates are drawn too.

X contexts, W words, T time, N heads, n keys a position, K key size, V value size, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from statetrack.errors import SettingsError
from statetrack.models import BlockModel
from statetrack.sources import Integers

Table = Mapping[str, Tensor]

LEAST_BETA, MOST_BETA = 0.35, 1.65
LEAST_GATE: Final = 0.6
MOST_CONTEXTS: Final = 2_000
CHECKED: Final = 200
"""Symbols of two words on which tables are compared with the model itself."""

ROUNDING: Final = 1e-9
"""How far from the model's own logits those by the tables may be, as a part of the largest."""


@dataclass(frozen=True)
class After:
    """What follows a kernel: y = (norm((o + plus) * before) * gain + bias + shift) * scale."""

    output: Tensor
    """O, [D, channels]."""
    plus: Tensor | None = None
    scale: Tensor | None = None
    shift: Tensor | None = None
    before: Tensor | None = None
    norm: str = "none"
    groups: int = 1
    epsilon: float = 0.0
    gain: Tensor | None = None
    bias: Tensor | None = None


@dataclass(frozen=True)
class Kernel:
    """A kernel's arguments, some of which are the same everywhere, and what follows it."""

    says: str
    """What is computed, as the authors write it."""
    arguments: Table
    """By name, [X, ...]."""
    constants: Table
    after: After
    gauged: Table = field(default_factory=dict)
    """The arguments that another gauge replaces."""


def delta_rule(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """DeltaNet, DeltaProduct and their gated forms."""
    heads, key_dim = mixer.query_shape
    single = mixer.key_shape[0] == 1
    arguments = {
        "q": terms.queries * key_dim**0.5,
        "k": terms.keys,
        "v": terms.values,
        "beta": terms.betas,
    }
    if terms.log_gates is not None:
        arguments["g"] = terms.log_gates
    gauged = other_gauge(arguments, draw)
    if single:
        arguments, gauged = (
            {n: _one_key(n, t) for n, t in each.items()} for each in (arguments, gauged)
        )
    gate = None if mixer.gate is None else functional.silu(mixer.gate(inputs))
    after = After(mixer.output.weight, scale=gate, **_rms(mixer.norm, heads))
    keys = "" if single else " for each of n keys in order, k [B, T, n, N, K]"
    decays = "S = exp(g) S; " if terms.log_gates is not None else ""
    says = f"{decays}S = S + beta k (v - S^T k)^T{keys}; o = scale S^T q"
    return Kernel(says, arguments, {"scale": torch.tensor(key_dim**-0.5)}, after, gauged)


def kimi_delta(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """Kimi delta attention, whose gates are by row of the state."""
    key_dim = mixer.key_shape[-1]
    arguments = {
        "q": terms.queries * key_dim**0.5,
        "k": terms.keys,
        "v": terms.values,
        "beta": terms.betas,
        "g": terms.log_gates,
    }
    apart = {n: t.unsqueeze(1) if n in ("k", "v", "beta") else t for n, t in arguments.items()}
    gauged = {n: _one_key(n, t) for n, t in other_gauge(apart, draw).items()}
    after = After(
        mixer.output.weight,
        scale=torch.sigmoid(mixer.gate(inputs)),
        **_rms(mixer.norm, mixer.heads),
    )
    says = "S = diag(exp(g)) S; S = S + beta k (v - S^T k)^T; o = scale S^T q"
    return Kernel(says, arguments, {"scale": torch.tensor(key_dim**-0.5)}, after, gauged)


def gated_attention(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """GLA and HGRN2."""
    size = terms.queries.shape[-1]
    arguments = {
        "q": terms.queries * size**0.5,
        "k": terms.keys,
        "v": terms.values,
        "g": terms.log_gains,
    }
    weight = mixer.norm.weight
    if hasattr(mixer, "output_gate"):
        gate = functional.silu(mixer.output_gate(inputs))
        after = After(
            mixer.output.weight,
            scale=gate,
            norm="rms",
            groups=mixer.heads,
            epsilon=1e-6,
            gain=weight,
        )
    else:
        after = After(mixer.output.weight, norm="rms", epsilon=mixer.norm.epsilon, gain=weight)
    says = "S = diag(exp(g)) S + k v^T; o = scale S^T q"
    return Kernel(says, arguments, {"scale": torch.tensor(size**-0.5)}, after)


def state_space(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """Mamba's selective scan, without its gate."""
    if mixer.eigenvalues == "signed":
        raise SettingsError("a scan with the gains 2 exp(dt A) - 1 is no kernel of the authors'")
    _, x, gate = terms
    steps, x, writings, readings = mixer.selected(x)
    arguments = {"u": x, "delta": steps, "B": writings, "C": readings}
    after = After(mixer.outward.weight, plus=mixer.skip * x, scale=functional.silu(gate))
    says = "h = exp(delta A) h + delta u B; o = h C, for each of the channels of u"
    return Kernel(says, arguments, {"A": -mixer.log_rates.exp()}, after)


def state_space_dual(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """Mamba-2's scan, without its gated norm."""
    arguments = {"x": terms.x, "dt": terms.steps, "B": terms.writings, "C": terms.readings}
    after = After(
        mixer.outward.weight,
        plus=(mixer.skip.unsqueeze(-1) * terms.x).flatten(-2),
        before=functional.silu(terms.gate),
        norm="rms",
        epsilon=mixer.norm.epsilon,
        gain=mixer.norm.weight,
    )
    says = "S = exp(dt A) S + B (dt x)^T; o = S^T C, for each head; B and C for all heads"
    return Kernel(says, arguments, {"A": -mixer.log_rates.exp()}, after)


def matrix_memory(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """The matrix LSTM."""
    heads, mixed, gate = terms
    size = heads.keys.shape[-1]
    arguments = {
        "q": heads.queries,
        "k": heads.keys * size**0.5,
        "v": heads.values,
        "log_i": heads.log_input,
        "log_f": heads.log_forget,
    }
    after = After(
        mixer.down.weight,
        scale=functional.silu(gate),
        shift=mixer.skip * mixed,
        norm="layer",
        groups=mixer.heads,
        epsilon=1e-5,
        gain=mixer.norm.weight,
    )
    says = (
        "C = f C + i (scale k) v^T; n = f n + i scale k; o = C^T q / (max(|n . q|, 1) + 1e-6 e^m), "
        "with m the running maximum of log_f + m and log_i"
    )
    return Kernel(says, arguments, {"scale": torch.tensor(size**-0.5)}, after)


def rwkv7(mixer: Any, terms: Any, inputs: Tensor, draw: np.random.Generator) -> Kernel:
    """RWKV-7, with -kappa and a kappa in the places of fla's a and b."""
    factors, gate = terms
    weights = (factors.queries * mixer.bonus * factors.keys).sum(-1, keepdim=True)
    arguments = {
        "r": factors.queries,
        "w": factors.log_decays,
        "k": factors.keys,
        "v": factors.values,
        "a": -factors.removals,
        "b": factors.rates * factors.removals,
    }
    after = After(
        mixer.output.weight,
        scale=gate,
        shift=(weights * factors.values).flatten(-2),
        norm="layer",
        groups=mixer.heads[0],
        epsilon=mixer.norm.eps,
        gain=mixer.norm.weight,
        bias=mixer.norm.bias,
    )
    return Kernel("S = diag(exp(w)) S + b (S^T a)^T + k v^T; o = S^T r", arguments, {}, after)


Maker = Callable[[Any, Any, Tensor, np.random.Generator], Kernel]

KERNELS: Final[Mapping[str, Maker]] = {
    "DeltaMixer": delta_rule,
    "KDAMixer": kimi_delta,
    "GLAMixer": gated_attention,
    "HGRN2Mixer": gated_attention,
    "MambaMixer": state_space,
    "Mamba2Mixer": state_space_dual,
    "MLSTMMixer": matrix_memory,
    "RWKV7Mixer": rwkv7,
}
"""By the name of a mixer's class."""


def _one_key(name: str, table: Tensor) -> Tensor:
    return table.squeeze(1) if name in ("k", "v", "beta") else table


def _rms(norm: Any, heads: int) -> dict[str, Any]:
    gain = norm.weight.repeat(heads)
    return {"norm": "rms", "groups": heads, "epsilon": norm.epsilon, "gain": gain}


# --- other gauges ---


def other_gauge(arguments: Table, draw: np.random.Generator) -> dict[str, Tensor]:
    """The same maps with other beta, k, v, q and, where all keys of a head are parallel, other g.

    k [X, n, N, K], v [X, n, N, V], beta [X, n, N], and g [X, N] or [X, N, K]. With b = beta |k|^2,
    a head whose state is one row along k goes to exp(g) (1 - b) times itself plus beta k v^T: so
    exp(g) may be any gate a where b becomes 1 - (1 - b) / a, which is positive for b >= 1.
    """
    keys, values, betas = (arguments[name] for name in ("k", "v", "beta"))
    squares = keys.square().sum(-1)
    turns, gauged = betas * squares, {}
    if "g" in arguments and keys.shape[1] == 1:
        gates = arguments["g"]
        open_gates = gates == 0 if gates.dim() == 2 else (gates == 0).all(-1)
        free = open_gates & (turns[:, 0] > 1 - 1e-9) & _parallel(keys[:, 0])
        drawn = _uniform(LEAST_GATE, 1.0, free, draw, like=betas)
        ratios = torch.where(free, drawn, 1.0)
        turns = torch.where(free, 1 - (1 - turns[:, 0]) / ratios, turns[:, 0]).unsqueeze(1)
        logs = ratios.log()
        gauged["g"] = gates + (logs if gates.dim() == 2 else logs.unsqueeze(-1))
    moved = turns > 1e-12
    beta = torch.where(moved, _uniform(LEAST_BETA, MOST_BETA, turns, draw, like=betas), betas)
    longer = torch.where(moved, (turns / (beta * squares)).sqrt(), 1.0)
    written = torch.where(moved, betas / (beta * longer), 1.0)
    gauged["k"], gauged["v"] = keys * longer.unsqueeze(-1), values * written.unsqueeze(-1)
    uniform = "g" not in arguments or arguments["g"].dim() == 2 or _same_in_rows(gauged["g"])
    if uniform:
        turned = _orthogonal(keys.shape[-1], draw, like=keys)
        gauged |= {"k": gauged["k"] @ turned, "q": arguments["q"] @ turned}
    return gauged | {"beta": beta}


def _same_in_rows(gates: Tensor) -> bool:
    return bool((gates == gates[..., :1]).all())


def _orthogonal(size: int, draw: np.random.Generator, *, like: Tensor) -> Tensor:
    """A random orthogonal matrix."""
    drawn: Tensor = torch.linalg.qr(torch.from_numpy(draw.normal(size=(size, size))))[0]
    return drawn.to(like)


def _parallel(keys: Tensor) -> Tensor:
    """Whether all keys [X, N, K] of a head are multiples of one: [N]."""
    parallel: Tensor = torch.linalg.matrix_rank(keys.transpose(0, 1)) == 1
    return parallel


def _uniform(
    low: float, high: float, shaped: Tensor, draw: np.random.Generator, *, like: Tensor
) -> Tensor:
    return torch.from_numpy(draw.uniform(low, high, tuple(shaped.shape))).to(like)


# --- contexts, and the tables of them ---


@dataclass(frozen=True)
class Tables:
    """A kernel, the context of every position [W, T], and the stream around it, [X, D]."""

    kernel: Kernel
    contexts: Integers
    stream: Tensor


def tables_of(model: BlockModel[Any], tokens: Integers, *, seed: int) -> Tables:
    """The tables of a model with one layer, in float64, for the contexts of words [W, T].

    Raises `SettingsError` where the model has no kernel that can be tested alone, with the reason.
    """
    (mixer,) = _only(model)
    windows, contexts = _contexts(tokens, _span(mixer))
    norm: Any = model.blocks[0].mixer_norm
    made: list[tuple[Integers, Any, Tensor, Tensor]] = []
    for length in np.unique((windows >= 0).sum(1)).tolist():
        rows = np.flatnonzero((windows >= 0).sum(1) == length)
        words = torch.from_numpy(windows[rows][:, windows.shape[1] - length :])
        stream = model.embedding(words)
        inputs = norm(stream)
        terms, _ = mixer.terms(inputs, mixer.split(mixer.initial_state(len(words)))[0])
        made.append((rows, _last(terms), inputs[:, -1], stream[:, -1]))
    order = np.argsort(np.concatenate([rows for rows, *_ in made]))
    terms = _joined([each for _, each, _, _ in made], order)
    inputs = torch.cat([each for _, _, each, _ in made])[order]
    stream = torch.cat([each for *_, each in made])[order]
    kernel = KERNELS[type(mixer).__name__](mixer, terms, inputs, np.random.default_rng(seed))
    tables = Tables(kernel, contexts, stream if model.settings.residual else 0 * stream)
    _check(tables, model, tokens)
    return tables


def _only(model: BlockModel[Any]) -> list[Any]:
    """The only mixer, in a list. Raises `SettingsError` for models with more than a kernel."""
    mixers, settings = model.mixers, model.settings
    if len(mixers) != 1:
        raise SettingsError(f"the model has {len(mixers)} layers, and contexts are those of one")
    if settings.mlp:
        raise SettingsError("the model has an MLP after its layer")
    if type(mixers[0]).__name__ not in KERNELS:
        raise SettingsError("the layer's recurrence is no kernel that is known here")
    return mixers


def _span(mixer: Any) -> int:
    """How many symbols the arguments at a position depend on."""
    if type(mixer).__name__ in ("RWKV6Mixer", "RWKV7Mixer"):
        return 2
    place = mixer.projection if hasattr(mixer, "projection") else mixer
    filters = place.convolution.filters if hasattr(place, "convolution") else None
    if filters is None:
        return 1
    used = np.flatnonzero((filters.weight != 0).flatten(0, 1).any(0).numpy())
    return int(filters.kernel_size[0] - used.min(initial=filters.kernel_size[0] - 1))


def _contexts(tokens: Integers, span: int) -> tuple[Integers, Integers]:
    """The different windows of so many symbols [X, span], -1 before a word; and the places."""
    padded = np.pad(tokens, ((0, 0), (span - 1, 0)), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, span, axis=1)
    different, places = np.unique(windows.reshape(-1, span), axis=0, return_inverse=True)
    if len(different) > MOST_CONTEXTS:
        raise SettingsError(f"{len(different):,} contexts are too many: at most {MOST_CONTEXTS:,}")
    return different, places.reshape(tokens.shape)


def _last(terms: Any) -> Any:
    """The terms at the last position: of tensors [B, T, ...] in nested tuples."""
    return _mapped(lambda part: part[:, -1], terms)


def _joined(parts: list[Any], order: Integers) -> Any:
    """Terms of several batches as one, in an order."""
    return _mapped(lambda *each: torch.cat(each)[order], *parts)


def _mapped(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    if isinstance(first, Tensor):
        return function(first, *others)
    if first is None:
        return None
    parts = [_mapped(function, *each) for each in zip(first, *others, strict=True)]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def _check(tables: Tables, model: BlockModel[Any], tokens: Integers) -> None:
    """That the tables give the model's own logits, of what its recurrence reads."""
    words, contexts = torch.from_numpy(tokens[:2, :CHECKED]), tables.contexts[:2, :CHECKED]
    mixer: Any = model.mixers[0]
    norm: Any = model.blocks[0].mixer_norm
    inputs = norm(model.embedding(words))
    window, memory = mixer.split(mixer.initial_state(len(words)))
    read, _ = mixer.recur(mixer.terms(inputs, window)[0], memory)
    stream = tables.stream[contexts] + after(tables.kernel.after, read.flatten(2), contexts)
    last: Any = model.norm
    logits, own = model.readout(last(stream)), model(words)
    assert (logits - own).abs().max() <= ROUNDING * own.abs().max(), (logits - own).abs().max()


def after(what: After, read: Tensor, contexts: Integers) -> Tensor:
    """What a layer adds to the stream [B, T, D], of what its kernel gives [B, T, channels]."""
    if what.plus is not None:
        read = read + what.plus[contexts]
    if what.before is not None:
        read = read * what.before[contexts]
    if what.norm != "none":
        grouped = read.unflatten(-1, (what.groups, -1))
        if what.norm == "layer":
            grouped = grouped - grouped.mean(-1, keepdim=True)
        size = (grouped.square().mean(-1, keepdim=True) + what.epsilon).sqrt()
        read = (grouped / size).flatten(-2)
    if what.gain is not None:
        read = read * what.gain.flatten()
    if what.bias is not None:
        read = read + what.bias
    if what.shift is not None:
        read = read + what.shift[contexts]
    if what.scale is not None:
        read = read * what.scale[contexts]
    return read @ what.output.mT
