"""RWKV-4, -6 and -7 against other people's code, and their equations written another way.

`transformers` has a whole layer of RWKV-4 and `fla-core` the recurrence of RWKV-6, both in
float32; float64 loops over the papers' equations check layers and the gradient by each of their
weights. Words are longer than the chunks in which the models read them.

B batch, T time, N heads, K head size, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from fla_by_path import fla
from torch import Tensor, nn
from torch.func import functional_call

from statetrack.models import MODELS, BlockModel
from statetrack.models._blocks import Mixer
from statetrack.models.rwkv4 import RWKV4Mixer, Sums, wkv_scan
from statetrack.models.rwkv6 import RWKV6Factors, RWKV6Mixer, rwkv6_scan, rwkv6_step
from statetrack.settings import build
from tests.references.recorded import recorded, stated_difference

B, T, N, K = 2, 41, 2, 4
D = N * K
EXACT = {"rtol": 1e-9, "atol": 1e-10}  # float64 on both sides
SINGLE = {"rtol": 2e-4, "atol": 2e-5}  # the reference computes in float32


def blocks(name: str, **options: object) -> nn.ModuleList:
    """The blocks of a model as they start."""
    kind = MODELS[name]
    torch.manual_seed(0)
    model = kind(build(kind.settings_class, options, name), num_symbols=2, num_labels=2)
    assert isinstance(model, BlockModel)
    return model.blocks


def make(name: str, spread: float = 0.3, **options: object) -> Mixer:
    """A mixer in float64, with none of its weights where it started."""
    mixer = blocks(name, width=D, **options)[0].double().mixer
    assert isinstance(mixer, Mixer)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return mixer


def leaf(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64).requires_grad_()


def assert_agree(
    one: Tensor, two: Tensor, leaves: Iterable[Tensor], tolerance: dict[str, float]
) -> None:
    """Two results agree, and so do their gradients by each leaf, none of which is zero."""
    leaves = list(leaves)
    torch.testing.assert_close(one, two.to(one), **tolerance)
    mix = torch.randn(one.shape, dtype=one.dtype)
    ours = torch.autograd.grad((one * mix).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((two * mix.to(two)).sum(), leaves)
    for mine, other in zip(ours, theirs, strict=True):
        scale = float(other.abs().max())
        assert scale > 0
        torch.testing.assert_close(mine / scale, other / scale, **tolerance)


# --- RWKV-6 ---

SMALL_6: dict[str, Any] = {"heads": N, "shift_rank": 3, "decay_rank": 2}


def by_scan(factors: RWKV6Factors, memory: Tensor) -> tuple[Tensor, Tensor]:
    return rwkv6_scan(factors, memory)


def by_steps(factors: RWKV6Factors, memory: Tensor) -> tuple[Tensor, Tensor]:
    outputs = []
    for time in range(T):
        read, memory = rwkv6_step(RWKV6Factors(*(part[:, time] for part in factors)), memory)
        outputs.append(read)
    return torch.stack(outputs, 1), memory


@pytest.mark.parametrize("compute", [by_scan, by_steps])
def test_the_recurrence_of_rwkv6_is_that_of_fla(
    compute: Callable[[RWKV6Factors, Tensor], tuple[Tensor, Tensor]],
) -> None:
    log_rates, queries, keys, values = (leaf(B, T, N, K) for _ in range(4))
    bonus, memory = leaf(N, K), leaf(B, N, K, K)
    factors = RWKV6Factors(-log_rates.exp(), queries, keys, values)
    outputs, last = fla("rwkv6", "recurrent_naive.py").naive_recurrent_rwkv6(
        *(part.transpose(1, 2) for part in (queries, keys, values, factors.log_decays)),
        bonus,
        scale=1.0,
        initial_state=memory,
        output_final_state=True,
    )
    read, own_last = compute(factors, memory)
    own = (queries * bonus * keys).sum(-1, keepdim=True) * values
    ours = torch.cat([read + own, own_last.transpose(1, 2)], 1)  # [B, T + K, N, K]
    theirs = torch.cat([outputs, last.to(outputs)], 2).transpose(1, 2)
    leaves = [log_rates, queries, keys, values, memory, bonus]
    assert_agree(ours, theirs, leaves, SINGLE)


def rwkv6_layer_by_equations(mixer: RWKV6Mixer, inputs: Tensor) -> Tensor:
    """RWKV-6's time mixing, one word and head at a time, as attention over earlier positions."""
    before = torch.cat([torch.zeros_like(inputs[:, :1]), inputs[:, :-1]], 1)
    common = torch.lerp(inputs, before, mixer.shift)
    inner = mixer.shift_inner.weight.chunk(5)
    z_w, z_k, z_v, z_r, z_g = (
        torch.lerp(inputs, before, nu + torch.tanh(common @ a.mT) @ b)
        for nu, a, b in zip(mixer.shifts, inner, mixer.shift_outer, strict=True)
    )
    first, second = mixer.decay.inner.weight, mixer.decay.outer.weight
    d = mixer.decay.bias + torch.tanh(z_w @ first.mT) @ second.mT
    w = torch.exp(-torch.exp(d))
    r, k = z_r @ mixer.receptance.weight.mT, z_k @ mixer.key.weight.mT
    v, g = z_v @ mixer.value.weight.mT, z_g @ mixer.gate.weight.mT
    words = []
    for b in range(len(inputs)):
        heads = []
        for head in range(N):
            own = slice(head * K, (head + 1) * K)
            outputs = []
            for t in range(inputs.shape[1]):
                total = (r[b, t, own] * mixer.bonus[head] * k[b, t, own]).sum() * v[b, t, own]
                decay = torch.ones(K, dtype=torch.float64)
                for i in range(t - 1, -1, -1):
                    total = total + (r[b, t, own] * decay * k[b, i, own]).sum() * v[b, i, own]
                    decay = decay * w[b, i, own]
                centred = total - total.mean()
                normal = centred / (centred.square().mean() + 64e-5).sqrt()
                outputs.append(normal * mixer.norm.weight[own] + mixer.norm.bias[own])
            heads.append(torch.stack(outputs))
        words.append(torch.cat(heads, -1))
    return (torch.stack(words) * g / (1 + torch.exp(-g))) @ mixer.output.weight.mT


def test_the_layer_of_rwkv6_follows_its_equations() -> None:
    mixer = make("rwkv6", **SMALL_6)
    assert isinstance(mixer, RWKV6Mixer)
    inputs = leaf(1, 35, D)
    outputs, _ = mixer.scan(inputs, mixer.initial_state(1))
    expected = rwkv6_layer_by_equations(mixer, inputs)
    assert_agree(outputs, expected, [inputs, *mixer.parameters()], EXACT)


def assert_computes(
    mixer: Mixer, weights: dict[str, Tensor], name: str, whose: str, file: str = ""
) -> None:
    """With the weights given, the mixer computes what other people's code recorded."""
    found = recorded(file or name)
    mixer.double().load_state_dict(weights)
    with torch.no_grad():
        outputs, _ = mixer.scan(found.inputs.double(), mixer.initial_state(2))
    difference = (outputs - found.outputs).abs().max()
    assert difference <= stated_difference(name, whose), float(difference)


def from_released_4(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the released RWKV-4 under our names, with shares of the previous position."""
    names = ("receptance", "key", "value", "output")
    return {f"{key}.weight": theirs[f"{key}.weight"] for key in names} | {
        "shifts": 1 - torch.cat([theirs[f"time_mix_{letter}"][0] for letter in "kvr"]),
        "log_rates": theirs["time_decay"],
        "bonus": theirs["time_first"],
    }


def from_released_6(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the released RWKV-6 under our names."""
    own = {f"{key}.weight": theirs[f"{key}.weight"] for key in ("key", "value", "gate", "output")}
    return own | {
        "receptance.weight": theirs["receptance.weight"],
        "shift": theirs["time_maa_x"].flatten(),
        "shifts": torch.cat([theirs[f"time_maa_{letter}"][0] for letter in "wkvrg"]),
        "shift_inner.weight": theirs["time_maa_w1"].mT,
        "shift_outer": theirs["time_maa_w2"],
        "decay.bias": theirs["time_decay"].flatten(),
        "decay.inner.weight": theirs["time_decay_w1"].mT,
        "decay.outer.weight": theirs["time_decay_w2"].mT,
        "bonus": theirs["time_faaaa"],
        "norm.weight": theirs["ln_x.weight"],
        "norm.bias": theirs["ln_x.bias"],
    }


def from_released_7(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the released RWKV-7 under our names; a first layer has no use for v_0."""
    names = ("receptance", "key", "value", "output")
    own = {f"{key}.weight": theirs[f"{key}.weight"] for key in names}
    for part, letter in (("decay", "w"), ("rate", "a"), ("gate", "g")):
        own[f"{part}.inner.weight"] = theirs[f"{letter}1"].mT
        own[f"{part}.outer.weight"] = theirs[f"{letter}2"].mT
    return own | {
        "shifts": torch.cat([theirs[f"x_{letter}"][0] for letter in "rwkvag"]),
        "decay.bias": theirs["w0"].flatten(),
        "rate.bias": theirs["a0"].flatten(),
        "removal": theirs["k_k"].flatten(),
        "replacement": theirs["k_a"].flatten(),
        "bonus": theirs["r_k"],
        "norm.weight": theirs["ln_x.weight"],
        "norm.bias": theirs["ln_x.bias"],
    }


RELEASED = [
    ("rwkv4", from_released_4, 0),
    ("rwkv6", from_released_6, 0),
    ("rwkv7", from_released_7, 3),
]
HEADS: dict[str, dict[str, Any]] = {"rwkv4": {}, "rwkv6": {"heads": 2}, "rwkv7": {"heads": 2}}
Renamed = Callable[[dict[str, Tensor]], dict[str, Tensor]]


@pytest.mark.parametrize(("name", "renamed", "unused"), RELEASED)
def test_a_layer_computes_what_the_released_training_code_does(
    name: str, renamed: Renamed, unused: int
) -> None:
    theirs = {key: value.double() for key, value in recorded(f"{name}-released").weights.items()}
    weights = renamed(theirs)
    assert len(weights) + len(weights["shifts"]) - 1 + unused == len(theirs)
    mixer = blocks(name, width=16, **HEADS[name])[0].mixer
    assert_computes(mixer, weights, name, "BlinkDL", f"{name}-released")


@pytest.mark.parametrize(("name", "renamed", "unused"), RELEASED)
def test_what_is_not_drawn_starts_as_in_the_released_training_code(
    name: str, renamed: Renamed, unused: int
) -> None:
    """Shares, decays, rates and bonuses of the second of three layers."""
    found = recorded(f"{name}-released").tensors
    theirs = {key.removeprefix("fresh."): value for key, value in found.items() if "fresh." in key}
    mixer = blocks(name, width=16, layers=3, **HEADS[name])[1].mixer
    ours, compared = mixer.state_dict(), 0
    for key, value in renamed(theirs).items():
        if not key.endswith(".weight") and key != "shift_outer":
            torch.testing.assert_close(ours[key], value, rtol=0, atol=1e-5)
            compared += 1
    assert compared == {"rwkv4": 3, "rwkv6": 5, "rwkv7": 7}[name]


def test_the_layer_of_rwkv6_computes_what_that_of_fla_does() -> None:
    """Their mixtures come in the order r, w, k, v, g, ours in the order w, k, v, r, g."""
    theirs, order = recorded("rwkv6").weights, [1, 2, 3, 0, 4]
    weights = {
        "shift": theirs["x_proj.0.mu"],
        "shifts": theirs["x_bias"][order],
        "shift_inner.weight": theirs["x_proj.0.linear.weight"].view(5, 3, 16)[order].flatten(0, 1),
        "shift_outer": theirs["x_proj.2.weight"].view(16, 5, 3).permute(1, 2, 0)[order],
        "decay.bias": theirs["w_proj.linear.lora.2.bias"],
        "decay.inner.weight": theirs["w_proj.linear.lora.0.weight"],
        "decay.outer.weight": theirs["w_proj.linear.lora.2.weight"],
        "bonus": theirs["bonus"],
        "norm.weight": theirs["g_norm.weight"],
        "norm.bias": theirs["g_norm.bias"],
        "output.weight": theirs["o_proj.weight"],
    }
    for ours, letter in (("receptance", "r"), ("key", "k"), ("value", "v"), ("gate", "g")):
        weights[f"{ours}.weight"] = theirs[f"{letter}_proj.linear.weight"]
    assert len(weights) == len(theirs)
    (block,) = blocks("rwkv6", width=16, heads=2, shift_rank=3, decay_rank=4)
    assert_computes(block.mixer, weights, "rwkv6", "fla-org")


def test_the_layer_of_rwkv7_computes_what_that_of_fla_does() -> None:
    theirs = recorded("rwkv7").weights
    shifts = torch.stack([theirs.pop(f"x_{letter}").flatten() for letter in "rwkvag"])
    weights = {
        "shifts": shifts,
        "removal": theirs["k_k"],
        "replacement": theirs["k_a"],
        "bonus": theirs["r_k"],
        "norm.weight": theirs["g_norm.weight"],
        "norm.bias": theirs["g_norm.bias"],
        "decay.bias": theirs["w_lora.lora.2.bias"],
        "rate.bias": theirs["a_lora.lora.2.bias"],
    }
    for ours, letter in (("decay", "w"), ("rate", "a"), ("gate", "g")):
        weights[f"{ours}.inner.weight"] = theirs[f"{letter}_lora.lora.0.weight"]
        weights[f"{ours}.outer.weight"] = theirs[f"{letter}_lora.lora.2.weight"]
    for ours, letter in (("receptance", "r"), ("key", "k"), ("value", "v"), ("output", "o")):
        weights[f"{ours}.weight"] = theirs[f"{letter}_proj.weight"]
    assert len(weights) == len(theirs) + 1
    (block,) = blocks("rwkv7", width=16, heads=2, rank=4)
    assert_computes(block.mixer, weights, "rwkv7", "fla-org")


def test_the_eigenvalues_of_rwkv6_lie_between_0_and_1() -> None:
    mixer, inputs = make("rwkv6", **SMALL_6), torch.randn(B, T, D, dtype=torch.float64)
    assert isinstance(mixer, RWKV6Mixer)
    decays = mixer.factors(inputs, inputs[:, -1])[0].log_decays.exp()
    assert ((decays > 0) & (decays < 1)).all()


@pytest.mark.parametrize("name", ["rwkv4", "rwkv6"])
@pytest.mark.parametrize("shift", [-200.0, 200.0])
def test_decays_at_their_ends_leave_outputs_and_gradients_finite(name: str, shift: float) -> None:
    mixer = make(name).float()
    with torch.no_grad():
        rates = mixer.log_rates if isinstance(mixer, RWKV4Mixer) else mixer.decay.bias
        rates.add_(shift)
    outputs, state = mixer.scan(torch.randn(B, T, D), mixer.initial_state(B))
    assert outputs.isfinite().all() and mixer.recurrent_part(state).isfinite().all()
    gradients = torch.autograd.grad(outputs.sum(), list(mixer.parameters()))
    assert all(part.isfinite().all() for part in gradients)


@pytest.mark.parametrize("name", ["rwkv6", "rwkv7"])
def test_heads_of_one_number_are_normalised_to_the_bias(name: str) -> None:
    model = MODELS[name](
        MODELS[name].settings_class(width=4, heads=4, kernel="torch"), num_symbols=2, num_labels=2
    )
    assert model(torch.zeros(1, 1, dtype=torch.int64)).isfinite().all()
    norm = model.blocks[0].mixer.norm
    nn.init.normal_(norm.bias)
    torch.testing.assert_close(norm(torch.randn(1, 4)), norm.bias.expand(1, -1))


def test_rwkv6_starts_as_in_its_training_code() -> None:
    first, _, last = (block.mixer for block in blocks("rwkv6", layers=3))
    assert not first.output.weight.any() and not first.shift_inner.weight.any()
    for linear, gain in ((first.key, 0.1), (first.gate, 0.1), (first.value, 1.0)):
        product = linear.weight @ linear.weight.mT
        torch.testing.assert_close(product, gain**2 * torch.eye(64), rtol=0, atol=1e-5)
    assert 0.009 < first.shift_outer.abs().max() <= 0.01
    # from the source's formulas by hand, at the first, a middle and the last coordinate of 64
    near = {"rtol": 0, "atol": 1e-4}
    decays = first.decay.bias[[0, 20, 63]]
    torch.testing.assert_close(decays, torch.tensor([-6.0, -3.76049, -1.0]), **near)
    torch.testing.assert_close(last.decay.bias[20], torch.tensor(-5.49610), **near)
    torch.testing.assert_close(
        first.shifts[:, 32], 1 - 0.5 ** torch.tensor([1, 1, 1, 0.5, 0.5]), **near
    )
    torch.testing.assert_close(last.shifts[2, 32], torch.tensor(0.7 - 0.5 ** (1 / 3)), **near)
    torch.testing.assert_close(first.bonus.flatten()[:4], torch.tensor([0, 0.1, -0.1, 0]), **near)
    torch.testing.assert_close(last.bonus[0, 0], torch.tensor(1.0), **near)
    torch.testing.assert_close(first.norm.weight, torch.full((64,), (1 / 3) ** 0.7), **near)


# --- RWKV-4 ---


def test_the_layer_of_rwkv4_is_that_of_transformers() -> None:
    from transformers import RwkvConfig
    from transformers.models.rwkv.modeling_rwkv import RwkvSelfAttention

    mixer = make("rwkv4")
    assert isinstance(mixer, RWKV4Mixer)
    inputs = leaf(B, T, D)
    config = RwkvConfig(hidden_size=D, attention_hidden_size=D, num_hidden_layers=2)
    weights = {
        f"time_mix_{name}": (1 - share).view(1, 1, D)
        for name, share in zip(("key", "value", "receptance"), mixer.shifts, strict=True)
    }
    weights |= {"time_decay": mixer.log_rates, "time_first": mixer.bonus}
    for name in ("key", "value", "receptance", "output"):
        weights[f"{name}.weight"] = getattr(mixer, name).weight
    expected, _ = functional_call(RwkvSelfAttention(config).double(), weights, (inputs,))
    outputs, _ = mixer.scan(inputs, mixer.initial_state(B))
    assert_agree(outputs, expected, [inputs, *mixer.parameters()], SINGLE)


@pytest.mark.parametrize(("spread", "rate"), [(1.0, 0.01), (300.0, 0.5), (30.0, 1e4)])
def test_sums_are_a_softmax_over_earlier_positions_whatever_the_exponents(
    spread: float, rate: float
) -> None:
    """In float32, from keys whose exponentials overflow, over words with w t beyond rounding."""
    steps = 600
    keys, values = spread * torch.randn(B, steps, D), torch.randn(B, steps, D)
    rates = rate * (1 + torch.rand(D))
    nothing = Sums(torch.zeros(B, 2, D), torch.full((B, D), -1e30))
    before, (scaled, exponents) = wkv_scan(keys, values, -rates, nothing)
    joined = torch.cat([before.scaled[:, 1:], scaled.unsqueeze(1)], 1)
    assert (joined[:, :, 1] > 0.5).all() and joined.isfinite().all() and exponents.isfinite().all()
    found = joined[:, :, 0] / joined[:, :, 1]
    times = torch.arange(steps)
    ages = (times.unsqueeze(1) - times).clamp_min(0).unsqueeze(-1)
    logits = keys.double().unsqueeze(1) - ages * rates.double()  # [B, t, i, D]
    later = (times > times.unsqueeze(1)).unsqueeze(-1)
    weights = logits.masked_fill(later, -math.inf).softmax(2)
    expected = torch.einsum("btid,bid->btd", weights, values.double())
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-3)


def test_rwkv4_starts_as_in_its_training_code() -> None:
    first, _, last = (block.mixer for block in blocks("rwkv4", layers=3))
    for linear in (first.key, first.receptance, first.output):
        assert not linear.weight.any()
    product = first.value.weight @ first.value.weight.mT
    torch.testing.assert_close(product, torch.eye(64), rtol=0, atol=1e-5)
    # from the source's formulas by hand
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(
        first.log_rates[[0, 20, 63]], torch.tensor([-5.0, -1.41679, 3.0]), **near
    )
    torch.testing.assert_close(
        first.bonus[:3], math.log(0.3) + torch.tensor([0.0, 0.5, -0.5]), **near
    )
    torch.testing.assert_close(first.shifts[:, 32], torch.tensor([0.5, 0.5, 1 - 0.5**0.5]), **near)
    torch.testing.assert_close(last.shifts[1, 32], torch.tensor(0.7 - 0.5 ** (1 / 3)), **near)


# --- RWKV-7 ---


def test_rwkv7_starts_as_in_its_training_code() -> None:
    first, middle, last = (block.mixer for block in blocks("rwkv7", layers=3))
    assert not first.output.weight.any() and not first.decay.inner.weight.any()
    for linear, gain in ((first.receptance, 1.0), (first.key, 0.1), (first.value, 1.0)):
        product = linear.weight @ linear.weight.mT
        torch.testing.assert_close(product, gain**2 * torch.eye(64), rtol=0, atol=1e-5)
    # from the source's formulas by hand, at the first, a middle and the last coordinate of 64
    near = {"rtol": 0, "atol": 1e-4}
    torch.testing.assert_close(
        first.decay.bias[[0, 20, 63]], torch.tensor([-8.0, -4.13968, 3.0]), **near
    )
    powers = torch.tensor([0.2, 0.9, 0.7, 0.7, 0.9, 0.2])
    torch.testing.assert_close(first.shifts[:, 32], 1 - 0.5**powers, **near)
    torch.testing.assert_close(last.shifts[1, 32], torch.tensor(1 - 0.5**0.3), **near)
    assert last.decay.bias[32] < first.decay.bias[32]
    for mixer, share in ((first, 1 / 3), (middle, 2 / 3), (last, 1.0)):
        torch.testing.assert_close(mixer.norm.weight, torch.full((64,), share**0.7), **near)


# --- the frame of all three ---


@pytest.mark.parametrize("name", ["rwkv4", "rwkv6", "rwkv7"])
def test_embeddings_are_normalised_before_the_first_block_and_start_small(name: str) -> None:
    kind = MODELS[name]
    torch.manual_seed(0)
    model = kind(build(kind.settings_class, {"width": 32}, name), num_symbols=100, num_labels=6)
    assert isinstance(model, BlockModel)
    table = model.embedding.weight
    assert 0.9e-4 < table.abs().max() <= 1e-4
    readout = model.readout.weight
    torch.testing.assert_close(readout @ readout.mT, 0.25 * torch.eye(6), rtol=0, atol=1e-5)
    assert isinstance(model.norm, nn.LayerNorm)
    table.data.normal_()
    stream = model.embedding(torch.arange(100))
    torch.testing.assert_close(stream, torch.nn.functional.layer_norm(table, (32,)))
    seen: list[Tensor] = []
    model.blocks[0].mixer_norm.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    model(torch.arange(100).unsqueeze(0))
    assert torch.equal(seen[0][0], stream)


# --- what the docstrings count ---


@pytest.mark.parametrize(
    ("name", "options", "count"),
    [
        ("rwkv4", {}, 4 * D**2 + 5 * D),
        ("rwkv6", SMALL_6, 5 * D**2 + 10 * 3 * D + 2 * 2 * D + 10 * D),
    ],
)
def test_a_mixer_has_the_parameters_that_its_file_counts(
    name: str, options: dict[str, object], count: int
) -> None:
    mixer = make(name, **options)
    assert sum(parameter.numel() for parameter in mixer.parameters()) == count
