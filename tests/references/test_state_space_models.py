"""The state space models against other people's code, or their equations written another way.

A reference reads the mixer's own weights, so that its gradient by each of them is compared too.
Words are longer than the pieces in which the models read them. B batch, T time, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.models import MODELS, State, s4d
from statetrack.models._blocks import Mixer
from statetrack.ops import (
    CHUNK,
    ColumnwiseOperators,
    ComplexDiagonalOperators,
    DiagonalOperators,
    DirectSumOperators,
    OneHotColumnOperators,
    Operators,
    decayed_chunk,
)
from statetrack.settings import build
from tests.references.recorded import stated_difference

B, T, D = 2, 2 * CHUNK + 7, 6
EXACT = {"rtol": 1e-9, "atol": 1e-11}  # float64 on both sides
SINGLE = {"rtol": stated_difference("mamba", "transformers"), "atol": 2e-5}
"""The reference computes in float32."""

SMALL: dict[str, dict[str, object]] = {
    "mamba": {"state": 3},
    "mamba2": {"state": 5, "heads": 3},
    "mamba3": {"state": 9, "heads": 3},
    "s4d": {"state": 4},
    "lru": {"state": 5},
    "aussm": {"state": 3},
    "pd-ssm": {"state": 5, "dictionary": 3},
    "minmax": {"state": 5},
    "ids4": {"state": 4},
    "sd-ssm": {"state": 5, "dictionary": 3},
    "rg-lru": {"expand": 2, "heads": 3},
}


def make(name: str, **options: object) -> Mixer:
    """A mixer in float64 whose weights are not where they started."""
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = build(kind.settings_class, {"width": D, **SMALL[name], **options}, name)
    mixer = kind(settings, num_symbols=2, num_labels=2).double().blocks[0].mixer
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return mixer


def scan(mixer: Mixer, inputs: Tensor) -> Tensor:
    outputs, _ = mixer.scan(inputs, mixer.initial_state(len(inputs)))
    return outputs


def assert_agrees(
    mixer: Mixer,
    reference: Callable[[Tensor], Tensor],
    weights: Mapping[str, Tensor],
    **close: float,
) -> None:
    """The mixer's outputs, and their gradients by inputs and weights, are the reference's."""
    inputs = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    copied = inputs.detach().to(next(iter(weights.values())).dtype).requires_grad_()
    outputs, expected = scan(mixer, inputs), reference(copied)
    torch.testing.assert_close(outputs, expected.double(), **close)
    mix = torch.randn(B, T, D, dtype=torch.float64)
    own = dict(mixer.named_parameters())
    assert own.keys() == weights.keys()
    ours = torch.autograd.grad((outputs * mix).sum(), [inputs, *own.values()])
    theirs = torch.autograd.grad(
        (expected * mix.to(expected)).sum(), [copied, *(weights[key] for key in own)]
    )
    for key, one, two in zip(["inputs", *own], ours, theirs, strict=True):
        scale = float(two.abs().max())
        assert scale > 0, key
        two = two.double().view_as(one)
        torch.testing.assert_close(
            one / scale, two / scale, msg=lambda m, k=key: f"{k}: {m}", **close
        )


def assert_follows(name: str, equations: Callable[..., Tensor], **options: object) -> None:
    mixer = make(name, **options)
    assert_agrees(
        mixer, lambda inputs: equations(mixer, inputs), dict(mixer.named_parameters()), **EXACT
    )


# --- Mamba and Mamba-2 against transformers ---


def test_mamba_is_that_of_transformers() -> None:
    from transformers import MambaConfig
    from transformers.models.mamba.modeling_mamba import MambaMixer

    mixer = make("mamba")
    config = MambaConfig(hidden_size=D, state_size=3, conv_kernel=4, expand=2, num_hidden_layers=1)
    reference = MambaMixer(config, 0)
    weights = copy(
        mixer,
        {
            "inward.weight": reference.in_proj.weight,
            "convolution.filters.weight": reference.conv1d.weight,
            "convolution.filters.bias": reference.conv1d.bias,
            "selection.weight": reference.x_proj.weight,
            "time_steps.weight": reference.dt_proj.weight,
            "time_steps.bias": reference.dt_proj.bias,
            "log_rates": reference.A_log,
            "skip": reference.D,
            "outward.weight": reference.out_proj.weight,
        },
    )
    assert_agrees(mixer, reference, weights, **SINGLE)


def test_mamba2_is_that_of_transformers() -> None:
    from transformers import Mamba2Config
    from transformers.models.mamba2.modeling_mamba2 import Mamba2Mixer

    mixer = make("mamba2")
    config = Mamba2Config(
        hidden_size=D,
        state_size=5,
        num_heads=3,
        head_dim=4,
        n_groups=1,
        conv_kernel=4,
        chunk_size=16,
        layer_norm_epsilon=1e-5,
        num_hidden_layers=1,
    )
    reference = Mamba2Mixer(config, 0)
    weights = copy(
        mixer,
        {
            "inward.weight": reference.in_proj.weight,
            "convolution.filters.weight": reference.conv1d.weight,
            "convolution.filters.bias": reference.conv1d.bias,
            "log_rates": reference.A_log,
            "time_step_bias": reference.dt_bias,
            "skip": reference.D,
            "norm.weight": reference.norm.weight,
            "outward.weight": reference.out_proj.weight,
        },
    )
    assert_agrees(mixer, reference, weights, **SINGLE)


def copy(mixer: Mixer, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The reference's weights by the mixer's names, with the mixer's values."""
    with torch.no_grad():
        for key, parameter in mixer.named_parameters():
            assert weights[key].shape == parameter.shape, key
            weights[key].copy_(parameter)
    return weights


# --- the others against their equations, one position at a time or all sums written out ---


def convolved(mixer: Mixer, x: Tensor) -> Tensor:
    """The short convolution as a sum over the positions before."""
    filters = mixer.convolution.filters
    (kernel,) = filters.kernel_size
    outputs = torch.zeros_like(x) + filters.bias
    for back in range(kernel):
        shifted = functional.pad(x, (0, 0, back, 0))[:, : x.shape[1]]
        outputs = outputs + shifted * filters.weight[:, 0, kernel - 1 - back]
    return outputs


def signed_mamba(mixer: Mixer, inputs: Tensor) -> Tensor:
    x, gate = (inputs @ mixer.inward.weight.mT).tensor_split(2, 2)
    x = convolved(mixer, x)
    x = x * torch.sigmoid(x)
    rank, num_states = mixer.time_steps.in_features, mixer.log_rates.shape[1]
    selected = x @ mixer.selection.weight.mT
    steps = selected[..., :rank] @ mixer.time_steps.weight.mT + mixer.time_steps.bias
    steps = torch.log(1 + torch.exp(steps))
    outputs = mixer.skip * x
    for n in range(num_states):
        writing, reading = selected[..., rank + n], selected[..., rank + num_states + n]
        gains = 2 * torch.exp(-steps * torch.exp(mixer.log_rates[:, n])) - 1
        h, read = torch.zeros_like(x[:, 0]), []
        for t in range(x.shape[1]):
            h = gains[:, t] * h + steps[:, t] * writing[:, t, None] * x[:, t]
            read.append(h * reading[:, t, None])
        outputs = outputs + torch.stack(read, 1)
    return outputs * gate * torch.sigmoid(gate) @ mixer.outward.weight.mT


def mamba3(mixer: Mixer, inputs: Tensor) -> Tensor:
    """The paper's form: B and C turned by all angles since the start, both ends written apart."""
    z, x, b, c, steps, rates, rule, angles = (
        inputs @ part.mT for part in mixer.inward.weight.split(mixer.sizes)
    )
    num_turned = 2 * angles.shape[-1]
    steps = torch.log1p(torch.exp(steps + mixer.time_step_bias))
    if mixer.rates == "softplus":
        rates = torch.log1p(torch.exp(rates))
    else:
        rates = torch.where(rates >= 0, 1 + rates, 1 / (1 - rates.clamp(max=0)))
    decays = torch.exp(-steps * rates.clamp(min=mixer.slowest))
    rule = torch.sigmoid(rule)
    b = b / (b.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.writing_norm.weight
    c = c / (c.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.reading_norm.weight
    outputs = []
    for head, values in enumerate(x.tensor_split(mixer.head_shape[0], -1)):
        turns = torch.pi * torch.tanh(angles) * steps[..., head, None]
        phase = torch.exp(1j * turns.cumsum(1))
        keys, queries = b + mixer.writing_bias[head], c + mixer.reading_bias[head]
        turned_k, turned_q = (
            torch.view_as_complex(v[..., :num_turned].unflatten(-1, (-1, 2)).contiguous()) * phase
            for v in (keys, queries)
        )
        still_k, still_q = keys[..., num_turned:], queries[..., num_turned:]
        h_turned = h_still = torch.zeros((), dtype=torch.float64)
        read = []
        for t in range(x.shape[1]):
            a, dt, late = (v[:, t, head, None, None] for v in (decays, steps, rule))
            h_turned, h_still = a * h_turned, a * h_still
            if t:
                early = (1 - late) * dt * a * values[:, t - 1, None]
                h_turned = h_turned + early * turned_k[:, t - 1, :, None]
                h_still = h_still + early * still_k[:, t - 1, :, None]
            h_turned = h_turned + late * dt * values[:, t, None] * turned_k[:, t, :, None]
            h_still = h_still + late * dt * values[:, t, None] * still_k[:, t, :, None]
            from_turned = (turned_q[:, t, :, None].conj() * h_turned).real.sum(1)
            read.append(from_turned + (still_q[:, t, :, None] * h_still).sum(1))
        outputs.append(torch.stack(read, 1) + mixer.skip[head] * values)
    return torch.cat(outputs, -1) * functional.silu(z) @ mixer.outward.weight.mT


def s4d_by_exponentials(mixer: Mixer, inputs: Tensor) -> Tensor:
    """Each oscillator as a real system of two, discretised by one matrix exponential."""
    width, num_states = mixer.log_damping.shape
    damping, frequencies = -mixer.log_damping.exp(), mixer.frequencies
    steps = mixer.log_steps.exp()[:, None]
    zeros, ones = torch.zeros_like(damping), torch.ones_like(damping)
    generator = torch.stack(
        [
            torch.stack([damping, -frequencies, ones], -1),
            torch.stack([frequencies, damping, zeros], -1),
            torch.stack([zeros, zeros, zeros], -1),
        ],
        -2,
    )
    exponential = torch.linalg.matrix_exp(generator * steps[..., None, None])
    gains, writings = exponential[..., :2, :2], exponential[..., :2, 2]
    h = inputs.new_zeros(len(inputs), width, num_states, 2)
    filtered = []
    for u in inputs.unbind(1):
        h = torch.einsum("dnij,bdnj->bdni", gains, h) + writings * u[..., None, None]
        read = mixer.readings[..., 0] * h[..., 0] - mixer.readings[..., 1] * h[..., 1]
        filtered.append(2 * read.sum(-1) + mixer.skip * u)
    return gated_map(mixer.outward, gelu(torch.stack(filtered, 1)))


def lru(mixer: Mixer, inputs: Tensor) -> Tensor:
    """The impulse response, summed over all earlier positions."""
    modulus, phase = torch.exp(-mixer.log_damping.exp()), mixer.log_phases.exp()
    times = torch.arange(T, dtype=torch.float64)[:, None]
    powers = torch.polar(modulus**times, times * phase)  # [T, N]
    writings = torch.complex(*mixer.writings) * mixer.log_scales.exp()[:, None]
    readings = torch.complex(*mixer.readings)
    response = torch.einsum("dn,tn,ne->tde", readings, powers, writings).real
    lags = torch.arange(T)[:, None] - torch.arange(T)
    causal = torch.where((lags >= 0)[..., None, None], response[lags.clamp(min=0)], 0.0)
    filtered = torch.einsum("tsde,bse->btd", causal, inputs) + mixer.skip * inputs
    inner = (2 / torch.pi) ** 0.5 * (filtered + 0.044715 * filtered**3)
    return gated_map(mixer.outward, 0.5 * filtered * (1 + torch.tanh(inner)))


def gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.erf(x / 2**0.5))


def gated_map(linear: nn.Linear, kept: Tensor) -> Tensor:
    both = kept @ linear.weight.mT + linear.bias
    values, gates = both[..., : both.shape[-1] // 2], both[..., both.shape[-1] // 2 :]
    return values * torch.sigmoid(gates)


def aussm(mixer: Mixer, inputs: Tensor) -> Tensor:
    """The angles between two positions, written out, in cosines alone."""
    x, gate = inputs @ mixer.inward.weight[:D].mT, inputs @ mixer.inward.weight[D:].mT
    c = convolved(mixer, x)
    x = c * torch.sigmoid(c)
    angles = c @ mixer.angles.weight.mT / D**0.5 + mixer.angles.bias
    since_start = angles.unflatten(-1, (D, -1)).cumsum(1)  # [B, T, D, N]
    between = since_start[:, :, None] - since_start[:, None]  # [B, T, S, D, N]
    steps = c @ mixer.selection.weight.mT @ mixer.time_steps.weight.mT + 2 * mixer.time_steps.bias
    written = functional.softplus(steps) * x
    moduli = functional.softplus(mixer.writings[0]) * functional.softplus(mixer.readings[0])
    phases = mixer.writings[1] + mixer.readings[1]
    weights = (moduli * torch.cos(between + phases)).sum(-1)  # [B, T, S, D]
    weights = weights * torch.ones(T, T, dtype=weights.dtype).tril()[:, :, None]
    read = torch.einsum("btsd,bsd->btd", weights, written)
    return (read + mixer.skip * x) * functional.silu(gate) @ mixer.outward.weight.mT


class HardMax(torch.autograd.Function):
    """One-hot columns forwards; backwards the Jacobian of softmax, s_i (g_i - sum_j s_j g_j)."""

    @staticmethod
    def forward(ctx, scores: Tensor) -> Tensor:
        ctx.save_for_backward(scores)
        hard = torch.zeros_like(scores)
        return hard.scatter_(-2, scores.max(-2, keepdim=True).indices, 1.0)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> Tensor:
        (scores,) = ctx.saved_tensors
        soft = torch.exp(scores - scores.logsumexp(-2, keepdim=True))
        return soft * (gradient - (soft * gradient).sum(-2, keepdim=True))


def pd_ssm(mixer: Mixer, inputs: Tensor) -> Tensor:
    num_states = mixer.dictionary.shape[-1]

    def network(layers: nn.Sequential) -> Tensor:
        inner = functional.gelu(inputs @ layers[0].weight.mT + layers[0].bias)
        return 1 / (1 + torch.exp(-(inner @ layers[2].weight.mT + layers[2].bias)))

    gains = network(mixer.moduli) * torch.exp(2j * torch.pi * network(mixer.phases))
    shares = torch.exp(inputs @ mixer.selection.weight.mT)
    shares = shares / shares.sum(-1, keepdim=True)
    moves = HardMax.apply(torch.einsum("btk,kij->btij", shares, mixer.dictionary))
    writings = torch.complex(*mixer.writings)
    h = torch.zeros(len(inputs), num_states, dtype=torch.complex128)
    h[:, 0] = 1
    states = []
    for t in range(inputs.shape[1]):
        spread = moves[:, t] * (gains[:, t] * h)[:, None]  # column j of P, times D_j h_j
        h = spread.sum(-1) + inputs[:, t].to(writings) @ writings.mT
        states.append(h)
    states = torch.stack(states, 1)
    read = torch.cat([states.real, states.imag], -1) @ mixer.outward.weight.mT
    return read + mixer.outward.bias + mixer.skip * inputs


def minmax(mixer: Mixer, inputs: Tensor) -> Tensor:
    """Bounds composed from the start of the word, then applied to the first state at once."""
    gated, normal = mixer.mlp[1], layer_norm(inputs, mixer.convolution_norm)
    before = torch.cat([torch.zeros_like(normal[:, :1]), normal[:, :-1]], 1)
    old, new = mixer.convolution.weight.chunk(2, -1)
    inputs = inputs + before @ old.mT + normal @ new.mT + mixer.convolution.bias
    normal = layer_norm(inputs, mixer.mlp[0])
    open_ = normal @ gated.gate.weight.mT + gated.gate.bias
    inner = open_ * (open_ > 0) * (normal @ gated.up.weight.mT + gated.up.bias)
    inputs = layer_norm(inputs + inner @ gated.down.weight.mT + gated.down.bias, mixer.norm)
    maps = zip(mixer.inward.weight.chunk(3), mixer.inward.bias.chunk(3), strict=True)
    r, s, g = (inputs @ weight.mT + bias for weight, bias in maps)
    above, below, states = r[:, 0], s[:, 0], []
    for t in range(inputs.shape[1]):
        if t:
            below = torch.maximum(torch.minimum(r[:, t], below), s[:, t])
            above = torch.minimum(r[:, t], above)
        states.append(torch.maximum(torch.minimum(above, torch.zeros_like(above)), below))
    read = torch.stack(states, 1) / (1 + torch.exp(-g)) @ mixer.outward.weight.mT
    return read + mixer.outward.bias


def layer_norm(inputs: Tensor, norm: torch.nn.Module) -> Tensor:
    """Vectors with mean 0 and variance 1, times the norm's gain, plus its bias."""
    centred = inputs - inputs.mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * norm.weight + norm.bias


def test_signed_mamba_follows_its_equations() -> None:
    assert_follows("mamba", signed_mamba, eigenvalues="signed")


@pytest.mark.parametrize(
    ("turned", "rates", "slowest"),
    [(0.5, "softplus", 1e-4), (1.0, "heavy-tail", 0.0), (1.0, "softplus", 0.7)],
)
def test_mamba3_follows_its_equations(turned: float, rates: str, slowest: float) -> None:
    assert_follows("mamba3", mamba3, turned=turned, rates=rates, slowest=slowest)


@pytest.mark.parametrize(("slowest", "expected"), [(1e-4, 1e-4), (0.0, 0.0)])
def test_the_least_decay_rate_of_mamba3_is_that_of_its_settings(
    slowest: float, expected: float
) -> None:
    """With all rates driven to their end, log gains are the least rate times the time step."""
    mixer = make("mamba3", slowest=slowest)
    inputs = torch.randn(2, 3, D, dtype=torch.float64)
    heads = mixer.head_shape[0]
    start = sum(mixer.sizes[:5])
    with torch.no_grad():
        mixer.inward.weight[start : start + heads] = -1e4 * inputs[0, 0] / inputs[0, 0].norm()
    (selected, _), _ = mixer.terms(inputs[:1, :1], ())
    rates = -selected.log_decays / selected.steps
    torch.testing.assert_close(rates, torch.full_like(rates, expected), rtol=1e-9, atol=1e-30)


def test_signed_mamba_runs_with_a_convolution_of_one_position() -> None:
    """As the code of Grazzi et al. does: each channel is scaled and shifted."""
    assert_follows("mamba", signed_mamba, eigenvalues="signed", conv=1)
    mixer = make("mamba", conv=1)
    window, _ = mixer.initial_state(2)
    assert window.shape == (2, 0, 2 * D)


def ids4(mixer: Mixer, inputs: Tensor) -> Tensor:
    """Every prefix's product applied to w from its last factor to its first, all at once."""
    entries = torch.einsum("btd,dij->btij", inputs, mixer.matrices)
    matrices = gelu(entries)
    read = mixer.reading.weight[0].expand(B, T, -1)
    for factor in reversed(range(T)):
        moved = torch.einsum("bij,btj->bti", matrices[:, factor], read)
        read = torch.where((torch.arange(T) >= factor)[:, None], moved, read)
    outputs = (read + mixer.reading.bias) @ mixer.outward.weight.mT + mixer.outward.bias
    return outputs + inputs @ mixer.skip.weight.mT + mixer.skip.bias


def sd_ssm(mixer: Mixer, inputs: Tensor) -> Tensor:
    """One column at a time."""
    shares = torch.exp(inputs @ mixer.selection.weight.mT + mixer.selection.bias)
    shares = shares / shares.sum(-1, keepdim=True)
    num_states = mixer.dictionary.shape[-1]
    h = torch.zeros(B, num_states, dtype=torch.float64)
    outputs = []
    for t in range(T):
        following = inputs[:, t] @ mixer.writings.weight.mT
        for column in range(num_states):
            mixed = shares[:, t] @ mixer.dictionary[:, :, column]
            norm = (mixed.abs() ** mixer.power).sum(-1, keepdim=True) ** (1 / mixer.power)
            following = following + mixed / norm * h[:, column, None]
        h = following
        centred = h - h.mean(-1, keepdim=True)
        scale = (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        normal = centred / scale * mixer.state_norm.weight + mixer.state_norm.bias
        outputs.append(normal @ mixer.outward.weight.mT + mixer.outward.bias)
    return torch.stack(outputs, 1)


def rg_lru(mixer: Mixer, inputs: Tensor) -> Tensor:
    """Sums over earlier positions, with all gains between two positions multiplied out."""
    u = convolved(mixer, inputs @ mixer.inward.weight.mT + mixer.inward.bias)

    def gate(part: nn.Module) -> Tensor:
        return torch.sigmoid(u @ torch.block_diag(*part.blocks) + part.bias)

    log_gains = -8 * gate(mixer.forgetting) * torch.log1p(torch.exp(mixer.rates))
    factors = (1 - torch.exp(2 * log_gains)).sqrt()
    factors = torch.cat([torch.ones_like(factors[:, :1]), factors[:, 1:]], 1)
    terms = factors * gate(mixer.writing) * u
    since_start = log_gains.cumsum(1)
    between = since_start[:, :, None] - since_start[:, None]  # [B, T, S, E]
    causal = torch.ones(T, T, dtype=torch.bool).tril()[:, :, None]
    weights = torch.where(causal, between, -torch.inf).exp()
    states = torch.einsum("btse,bse->bte", weights, terms)
    gated = inputs @ mixer.gate.weight.mT + mixer.gate.bias
    inner = (2 / torch.pi) ** 0.5 * (gated + 0.044715 * gated**3)
    read = states * 0.5 * gated * (1 + torch.tanh(inner))
    return read @ mixer.outward.weight.mT + mixer.outward.bias


def test_ids4_follows_its_equations() -> None:
    mixer = make("ids4")
    with torch.no_grad():
        mixer.matrices.mul_(0.4)  # products neither vanish nor grow beyond what is read
    assert_agrees(
        mixer, lambda inputs: ids4(mixer, inputs), dict(mixer.named_parameters()), **EXACT
    )


def test_ids4_reads_a_state_that_has_grown_as_if_it_had_grown_less() -> None:
    """Beyond every float, with a norm after the layer that leaves nothing of the difference."""
    mixer = make("ids4")
    with torch.no_grad():
        mixer.matrices.mul_(30)
    inputs = torch.randn(B, 400, D, dtype=torch.float64)
    _, log_norm = mixer.scan(inputs, mixer.initial_state(B))[1]
    assert (log_norm > 710).all(), "exp of it is infinite in float64"
    outputs = scan(mixer, inputs)
    assert outputs.isfinite().all()
    assert outputs[:, -1].norm(dim=-1).min() > 1e10, "beside which all other terms vanish"


def test_sd_ssm_follows_its_equations() -> None:
    assert_follows("sd-ssm", sd_ssm)


def test_rg_lru_follows_its_equations() -> None:
    assert_follows("rg-lru", rg_lru)


def test_s4d_follows_its_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s4d, "PIECE", 30)
    assert_follows("s4d", s4d_by_exponentials)


def test_lru_follows_its_equations() -> None:
    assert_follows("lru", lru)


def test_aussm_follows_its_equations() -> None:
    assert_follows("aussm", aussm)


def test_pd_ssm_follows_its_equations() -> None:
    assert_follows("pd-ssm", pd_ssm)


def test_minmax_follows_its_equations() -> None:
    assert_follows("minmax", minmax)


def test_decayed_attention_keeps_short_spans_after_strong_decays() -> None:
    """In float32; running sums of logarithms near -3000 would be off by 1e-4."""
    size = 16
    log_decays = torch.where(torch.arange(size) < size // 2, -400.0, -1e-3).view(1, 1, size)
    keys, values, queries = torch.randn(3, 1, 1, size, 4).unbind(0)
    first = torch.randn(1, 1, 4, 4)
    outputs, last = decayed_chunk(queries, keys, values, log_decays, first)
    state = first[0, 0].double()
    for t in range(size):
        state = log_decays[0, 0, t].double().exp() * state
        state = state + torch.outer(keys[0, 0, t], values[0, 0, t])
        expected = queries[0, 0, t].double() @ state
        torch.testing.assert_close(outputs[0, 0, t].double(), expected, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(last[0, 0].double(), state, rtol=1e-5, atol=2e-6)


# --- where the eigenvalues lie ---


def extreme(name: str, **options: object) -> Tensor:
    """The transitions of inputs so large that every gate is driven to both its ends."""
    mixer = make(name, **options)
    inputs = torch.randn(40, 3, D, dtype=torch.float64)
    scales = 10 ** torch.linspace(-3, 3, 40, dtype=torch.float64)
    operators = mixer.transition(inputs * scales[:, None, None])
    return gains_of(operators).detach()


def gains_of(operators: Operators) -> Tensor:
    """The gains of diagonal operators, on each column or on the state itself."""
    found = operators.each if isinstance(operators, ColumnwiseOperators) else operators
    if isinstance(found, DirectSumOperators):
        return torch.cat([gains_of(part).to(torch.complex128) for part in found.parts], -1)
    assert isinstance(found, DiagonalOperators | ComplexDiagonalOperators)
    return found.gains


def test_positive_mamba_and_mamba2_have_eigenvalues_between_0_and_1() -> None:
    for name in ("mamba", "mamba2"):
        gains = extreme(name)
        assert gains.min() >= 0 and gains.max() <= 1
        assert gains.min() < 0.01 and gains.max() > 0.99


def test_signed_mamba_has_eigenvalues_between_minus_1_and_1() -> None:
    gains = extreme("mamba", eigenvalues="signed")
    assert gains.min() >= -1 and gains.max() <= 1
    assert gains.min() < -0.99 and gains.max() > 0.99


def test_rg_lru_has_eigenvalues_between_0_and_1() -> None:
    gains = extreme("rg-lru")
    assert gains.min() >= 0 and gains.max() <= 1
    assert gains.min() < 0.7 and gains.max() > 0.99


def test_mamba3_has_eigenvalues_in_the_unit_disc_and_all_around_it() -> None:
    eigenvalues = extreme("mamba3", turned=1.0)
    assert eigenvalues.abs().max() <= 1
    strong = eigenvalues[eigenvalues.abs() > 0.5]
    assert strong.real.min() < -0.4 and strong.real.max() > 0.9
    assert strong.imag.min() < -0.4 and strong.imag.max() > 0.4
    real = extreme("mamba3", turned=0.0)
    assert (real.imag == 0).all() and real.real.min() >= 0 and real.real.max() <= 1


def test_aussm_has_eigenvalues_on_the_unit_circle_in_every_direction() -> None:
    gains = extreme("aussm")
    torch.testing.assert_close(gains.abs(), torch.ones_like(gains.abs()), rtol=1e-12, atol=0)
    quarters = {
        (bool(re), bool(im))
        for re, im in zip(gains.real.flatten() > 0, gains.imag.flatten() > 0, strict=True)
    }
    assert len(quarters) == 4


@pytest.mark.parametrize("name", ["s4d", "lru"])
def test_time_invariant_models_have_one_transition_inside_the_unit_circle(name: str) -> None:
    mixer = make(name)
    inputs = torch.randn(2, 3, D, dtype=torch.float64)
    for scale in (1.0, 3.0, -3.0):
        with torch.no_grad():
            for parameter in mixer.parameters():
                parameter.mul_(scale)
        gains = gains_of(mixer.transition(inputs))
        assert (gains == gains[0]).all()
        assert gains.abs().max() <= 1


def matrices_of(operators: Operators) -> Tensor:
    """The matrices P D of PD-SSM, complex [V, N, N]."""
    assert isinstance(operators, OneHotColumnOperators)
    moves = functional.one_hot(operators.targets, operators.gains.shape[1]).mT
    return moves * operators.gains.unsqueeze(-2)


def test_pd_ssm_moves_whole_coordinates_and_never_expands_them() -> None:
    mixer, inputs = make("pd-ssm"), torch.randn(40, 3, D, dtype=torch.float64)
    mild = matrices_of(mixer.transition(inputs[:4]))
    assert ((mild != 0).sum(-2) == 1).all(), "one entry in each column"
    scales = 10 ** torch.linspace(-3, 3, 40, dtype=torch.float64)
    matrices = matrices_of(mixer.transition(inputs * scales[:, None, None]))
    assert ((matrices != 0).sum(-2) <= 1).all(), "none where a modulus vanishes"
    assert matrices.abs().max() <= 1
    eigenvalues = torch.linalg.eigvals(matrices)
    assert eigenvalues.abs().max() <= 1 + 1e-9
    assert eigenvalues.real.min() < -0.5, "phases turn a move beyond the positive reals"
    product = matrices[0]
    for matrix in matrices[1:]:
        product = matrix @ product
        assert ((product != 0).sum(-2) <= 1).all()


def test_minmax_passes_each_gradient_whole_or_not_at_all() -> None:
    mixer = make("minmax")
    inputs = torch.randn(1, 30, D, dtype=torch.float64)
    window, zeros = mixer.initial_state(1)
    upper, lower, _ = mixer.bounds(mixer._mixed(inputs, window)[0])

    def last(first: Tensor) -> Tensor:
        return mixer.scan(inputs[:, :2], (window, first))[1][1][0]

    seen = set()
    for _ in range(20):
        first = torch.randn_like(zeros)
        jacobian = torch.autograd.functional.jacobian(last, first)[:, 0]
        seen |= set(jacobian.diagonal().tolist())
        assert (jacobian - jacobian.diagonal().diag() == 0).all()
    assert seen == {0.0, 1.0}
    ordered = torch.maximum(upper, lower)
    _, (_, h) = mixer.scan(inputs, (window, zeros))
    assert (h >= lower[:, -1]).all() and (h <= ordered[:, -1]).all()


# --- how they start ---


@pytest.mark.parametrize("name", ["mamba", "mamba2", "mamba3"])
def test_time_steps_start_between_a_thousandth_and_a_tenth(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name](MODELS[name].settings_class(), num_symbols=2, num_labels=2)
    mixer = model.blocks[0].mixer
    bias = mixer.time_step_bias if name in {"mamba2", "mamba3"} else mixer.time_steps.bias
    steps = functional.softplus(bias.double())
    assert steps.min() > 0.99e-3 and steps.max() < 1.01e-1
    assert steps.std() > 1e-3


def test_the_initialisations_of_the_papers_are_kept() -> None:
    torch.manual_seed(0)
    built = {
        name: MODELS[name](MODELS[name].settings_class(), num_symbols=2, num_labels=2)
        for name in SMALL
    }
    mamba, mamba2, s4d, lru, aussm = (
        built[name].blocks[0].mixer for name in ("mamba", "mamba2", "s4d", "lru", "aussm")
    )
    torch.testing.assert_close(mamba.log_rates.exp(), torch.arange(1.0, 17).expand(128, -1))
    assert mamba2.log_rates.exp().min() >= 1 and mamba2.log_rates.exp().max() <= 16
    assert (built["mamba3"].blocks[0].mixer.writing_bias == 1).all()
    torch.testing.assert_close(s4d.log_damping.exp(), torch.full((64, 32), 0.5))
    torch.testing.assert_close(s4d.frequencies[5], torch.pi * torch.arange(32.0))
    modulus = torch.exp(-lru.log_damping.exp())
    torch.testing.assert_close(lru.log_scales.exp(), (1 - modulus**2).sqrt(), rtol=1e-3, atol=1e-4)
    assert (modulus**2).mean().sub(0.5).abs() < 0.15, "uniform on the disc"
    assert aussm.angles.bias.abs().max() <= torch.pi and aussm.angles.bias.abs().max() > 3


# --- how large they are ---

E = 2 * D
SIZES = {  # numbers in a block's weights and in its state, by the formulas of the docstrings
    "mamba": (3 * D * E + E * 5 + E * (1 + 2 * 3) + E * 2 + E * 3 + E, E * 3 + 3 * E),
    "mamba2": (
        D * (2 * E + 2 * 5 + 3) + E * D + (E + 2 * 5) * 5 + 3 * 3 + E,
        E * 5 + 3 * (E + 2 * 5),
    ),
    "mamba3": (
        D * (2 * E + 2 * 9 + 3 * 3 + 2) + E * D + 2 * 9 + 2 * 3 * 9 + 2 * 3,
        E * 9 + 3 * 9 + E,
    ),
    "s4d": (D * (4 * 4 + 2) + 2 * D * (D + 1), 2 * D * 4),
    "lru": (4 * D * 5 + 3 * 5 + D + 2 * D * (D + 1), 2 * 5),
    "aussm": (3 * D * D + D * 5 + (D + 1) * D * 3 + 7 * D + 4 * 3 + D, 2 * D * 3 + 3 * D),
    "ids4": (16 * D + 5 + D * 5 + D * (D + 1), 16 + 1),
    "sd-ssm": (3 * 25 + (D + 1) * 3 + 5 * D + 2 * 5 + 6 * D, 5),
    "rg-lru": (
        2 * (D + 1) * E + (E + 1) * D + E * 5 + 2 * (E * E // 3 + E) + E,
        E + 3 * E + 1,
    ),
    "pd-ssm": (
        3 * (25 + D) + 2 * (10 * (D + 1) + 5 * 11) + 10 * D + 11 * D + D,
        2 * 5,
    ),
    "minmax": (  # the MLP has width 8
        3 * (D + 1) * 5 + 6 * D + (2 * D + 1) * D + 2 * (D + 1) * 8 + 9 * D + 6 * D,
        5 + D,
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_weights_and_states_are_as_large_as_the_model_says(name: str) -> None:
    mixer, (num_weights, num_remembered) = make(name), SIZES[name]
    assert sum(parameter.numel() for parameter in mixer.parameters()) == num_weights
    assert numbers_in(mixer.initial_state(1)) == num_remembered


def numbers_in(state: State) -> int:
    if isinstance(state, Tensor):
        return state.numel() * (2 if state.is_complex() else 1)
    return sum(numbers_in(part) for part in state)
