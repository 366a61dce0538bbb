"""Delta rules and RWKV-7 against other people's code, and their equations written another way.

`fla-core` and `transformers` compute in float32 and check the recurrences and one whole layer;
float64 loops over the papers' equations, with states as the papers write them (values times
keys, operators from the right), check every layer and the gradient by each of its weights.
Words are longer than the chunks in which the models read them.

B batch, T time, N heads, n keys a position, K key size, V value size, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import pytest
import torch
from fla_by_path import fla
from torch import Tensor, nn
from torch.nn import functional

from statetrack import ops
from statetrack.models import MODELS, BlockModel
from statetrack.models._blocks import Mixer
from statetrack.models._delta import DeltaFactors, DeltaMixer, ForgetGate
from statetrack.models.gated_deltanet_2 import GatedDeltaNet2Mixer
from statetrack.models.kda import (
    ErasingFactors,
    KDAFactors,
    KDAMixer,
    erasing_scan,
    erasing_step,
    kda_scan,
    kda_step,
)
from statetrack.models.rwkv7 import RWKV7Factors, RWKV7Mixer, rwkv7_scan, rwkv7_step
from statetrack.ops import ColumnwiseOperators, HouseholderOperators
from statetrack.settings import build
from tests.references.recorded import recorded, stated_difference

B, T, N, K, V, D = 2, 41, 2, 4, 3, 8
EXACT = {"rtol": 1e-9, "atol": 1e-10}  # float64 on both sides
SINGLE = {"rtol": 2e-4, "atol": 2e-5}  # the reference computes in float32
SINGLE_LAYER = {"rtol": 1e-3, "atol": 1e-4}  # and a whole layer of it

SMALL: dict[str, object] = {"width": D, "heads": N, "key_dim": K, "value_dim": V}
DELTA_OPTIONS: list[tuple[str, dict[str, object]]] = [
    ("deltanet", {"beta": "unit"}),
    ("deltanet", {"beta": "double", "conv": 0, "output_gate": True}),
    ("gated-deltanet", {"beta": "unit"}),
    ("gated-deltanet", {"beta": "double", "conv": 1}),
    ("deltaproduct", {"householders": 3}),
    ("deltaproduct", {"householders": 2, "beta": "unit", "conv": 2}),
    ("gated-deltaproduct", {"householders": 2}),
    ("gated-deltaproduct", {"householders": 3, "beta": "unit", "output_gate": False}),
]
every_delta_rule = pytest.mark.parametrize(("name", "options"), DELTA_OPTIONS)


def fresh(name: str, **options: object) -> BlockModel:
    """A model as it starts."""
    kind = MODELS[name]
    torch.manual_seed(0)
    model = kind(build(kind.settings_class, options, name), num_symbols=2, num_labels=2)
    assert isinstance(model, BlockModel)
    return model


def make(name: str, spread: float = 0.3, **options: object) -> Mixer:
    """The mixer of a model in float64, with none of its weights where it started."""
    mixer = fresh(name, **options).double().blocks[0].mixer
    assert isinstance(mixer, Mixer)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return mixer


def outputs_of(mixer: Mixer, inputs: Tensor) -> Tensor:
    return mixer.scan(inputs, mixer.initial_state(len(inputs)))[0]


def assert_equal_with_gradients(
    one: Tensor, two: Tensor, leaves: Iterable[Tensor], tolerance: dict[str, float]
) -> None:
    """Two results, and their gradients by the leaves, agree; and each leaf has a gradient."""
    torch.testing.assert_close(one.to(two.dtype), two, **tolerance)
    weights, leaves = torch.randn(one.shape, dtype=torch.float64), tuple(leaves)
    gradients = [
        torch.autograd.grad((result * weights).sum(), leaves, retain_graph=True)
        for result in (one, two)
    ]
    for mine, theirs in zip(*gradients, strict=True):
        scale = theirs.abs().max()
        assert scale > 0
        torch.testing.assert_close(mine / scale, theirs / scale, **tolerance)


# --- the recurrences against fla-core ---


def delta_factors(num_keys: int, beta_range: float = 2.0) -> DeltaFactors:
    """Random factors of unit keys and queries; each part is a leaf."""
    parts = (
        functional.normalize(torch.randn(B, T, N, K), dim=-1),
        functional.normalize(torch.randn(B, T, num_keys, N, K), dim=-1),
        torch.randn(B, T, num_keys, N, V),
        beta_range * torch.rand(B, T, num_keys, N),
        -torch.rand(B, T, N),
    )
    return DeltaFactors(*(part.double().requires_grad_() for part in parts))


def by_delta_scan(factors: DeltaFactors) -> Tensor:
    return ops.delta_rule(*factors, torch.zeros(B, N, K, V, dtype=torch.float64))[0]


def by_delta_steps(factors: DeltaFactors) -> Tensor:
    state, outputs = torch.zeros(B, N, K, V, dtype=torch.float64), []
    for time in range(T):
        output, state = ops.delta_rule_step(*(part[:, time] for part in factors), state)
        outputs.append(output)
    return torch.stack(outputs, 1)


both_ways = pytest.mark.parametrize("compute", [by_delta_scan, by_delta_steps])


@both_ways
def test_one_key_without_gates_is_the_delta_rule_of_fla(
    compute: Callable[[DeltaFactors], Tensor],
) -> None:
    ours = delta_factors(1)
    ours = ours._replace(log_gates=torch.zeros(B, T, N, dtype=torch.float64))
    theirs, _ = fla("delta_rule", "naive.py").delta_rule_recurrence(
        K**0.5 * ours.queries.transpose(1, 2),
        ours.keys.squeeze(2).transpose(1, 2),
        ours.values.squeeze(2).transpose(1, 2),
        ours.betas.squeeze(2).transpose(1, 2),
    )
    assert_equal_with_gradients(compute(ours), theirs.transpose(1, 2), ours[:4], SINGLE)


@both_ways
def test_one_key_with_gates_is_the_gated_delta_rule_of_fla(
    compute: Callable[[DeltaFactors], Tensor],
) -> None:
    ours = delta_factors(1)
    theirs, _ = fla("gated_delta_rule", "naive.py").naive_recurrent_gated_delta_rule(
        ours.queries,
        ours.keys.squeeze(2),
        ours.values.squeeze(2),
        ours.betas.squeeze(2),
        ours.log_gates,
        scale=1.0,
    )
    assert_equal_with_gradients(compute(ours), theirs, ours, SINGLE)


@both_ways
@pytest.mark.parametrize("num_keys", [2, 3])
def test_several_keys_with_gates_are_the_gated_delta_product_of_fla(
    compute: Callable[[DeltaFactors], Tensor], num_keys: int
) -> None:
    ours = delta_factors(num_keys)
    theirs, _ = fla("gated_delta_product", "naive.py").naive_recurrent_gated_delta_product(
        ours.queries,
        ours.keys.flatten(1, 2),
        ours.values.flatten(1, 2),
        ours.log_gates,
        ours.betas.flatten(1, 2),
        scale=1.0,
        num_householder=num_keys,
    )
    assert_equal_with_gradients(compute(ours), theirs, ours, SINGLE)


@pytest.mark.parametrize("num_keys", [1, 2, 40])
def test_chunks_are_steps_to_rounding(num_keys: int) -> None:
    factors = delta_factors(num_keys)
    assert_equal_with_gradients(by_delta_scan(factors), by_delta_steps(factors), factors, EXACT)


@pytest.mark.parametrize("log_gate", [0.0, -30.0, -1e4])
def test_extreme_gates_leave_outputs_and_gradients_finite(log_gate: float) -> None:
    factors = DeltaFactors(*(part.detach().float().requires_grad_() for part in delta_factors(1)))
    factors = factors._replace(log_gates=torch.full((B, T, N), log_gate, requires_grad=True))
    outputs, _ = ops.delta_rule(*factors, torch.zeros(B, N, K, V))
    gradients = torch.autograd.grad(outputs.sum(), factors)
    assert outputs.isfinite().all() and all(part.isfinite().all() for part in gradients)
    steps = by_delta_steps(DeltaFactors(*(part.detach().double() for part in factors)))
    torch.testing.assert_close(outputs.double(), steps, **SINGLE)


def rwkv7_factors() -> RWKV7Factors:
    """Random factors with decays over the whole of their range; each part is a leaf."""
    parts = (
        torch.randn(B, T, N, K),
        -0.6065 * torch.rand(B, T, N, K),
        functional.normalize(torch.randn(B, T, N, K), dim=-1),
        torch.rand(B, T, N, K),
        torch.randn(B, T, N, K),
        torch.randn(B, T, N, K),
    )
    return RWKV7Factors(*(part.double().requires_grad_() for part in parts))


def by_rwkv7_scan(factors: RWKV7Factors) -> Tensor:
    return rwkv7_scan(factors, torch.zeros(B, N, K, K, dtype=torch.float64))[0]


def by_rwkv7_steps(factors: RWKV7Factors) -> Tensor:
    state, outputs = torch.zeros(B, N, K, K, dtype=torch.float64), []
    for time in range(T):
        output, state = rwkv7_step(RWKV7Factors(*(part[:, time] for part in factors)), state)
        outputs.append(output)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("compute", [by_rwkv7_scan, by_rwkv7_steps])
def test_the_recurrence_of_rwkv7_is_a_generalised_delta_rule_of_fla(
    compute: Callable[[RWKV7Factors], Tensor],
) -> None:
    ours = rwkv7_factors()
    theirs, _ = fla("generalized_delta_rule", "dplr", "naive.py").dplr_recurrence(
        K**0.5 * ours.queries.transpose(1, 2),
        ours.keys.transpose(1, 2),
        ours.values.transpose(1, 2),
        -ours.removals.transpose(1, 2).float(),
        (ours.rates * ours.removals).transpose(1, 2),
        ours.log_decays.transpose(1, 2),
    )
    assert_equal_with_gradients(compute(ours), theirs.transpose(1, 2), ours, SINGLE)


def test_chunks_of_rwkv7_are_steps_to_rounding() -> None:
    factors = rwkv7_factors()
    assert_equal_with_gradients(by_rwkv7_scan(factors), by_rwkv7_steps(factors), factors, EXACT)


# --- a whole layer against transformers ---


@pytest.mark.parametrize("beta", ["unit", "double"])
def test_a_gated_deltanet_layer_is_that_of_transformers(beta: str) -> None:
    from transformers import OlmoHybridConfig
    from transformers.models.olmo_hybrid.modeling_olmo_hybrid import OlmoHybridGatedDeltaNet

    ours = make("gated-deltanet", **SMALL, beta=beta)
    assert isinstance(ours, DeltaMixer) and isinstance(ours.forget_gate, ForgetGate)
    assert ours.convolution.filters is not None and ours.gate is not None
    config = OlmoHybridConfig(
        hidden_size=D,
        linear_num_value_heads=N,
        linear_num_key_heads=N,
        linear_key_head_dim=K,
        linear_value_head_dim=V,
        linear_conv_kernel_dim=4,
        linear_allow_neg_eigval=beta == "double",
        num_hidden_layers=2,
        layer_types=["linear_attention", "full_attention"],
    )
    theirs = OlmoHybridGatedDeltaNet(config, 0).double()
    queries, keys, values = ours.project.weight.split([N * K, N * K, N * V])
    weights = {
        "q_proj.weight": queries,
        "k_proj.weight": keys,
        "v_proj.weight": values,
        "conv1d.weight": ours.convolution.filters.weight,
        "a_proj.weight": ours.forget_gate.steps.weight,
        "A_log": ours.forget_gate.log_rates,
        "dt_bias": ours.forget_gate.bias,
        "b_proj.weight": ours.betas.weight,
        "g_proj.weight": ours.gate.weight,
        "o_norm.weight": ours.norm.weight,
        "o_proj.weight": ours.output.weight,
    }
    assert set(weights) == {key for key, _ in theirs.named_parameters()}
    theirs.o_norm.variance_epsilon = 1e-6  # theirs is that of fla's layers, ours of its models
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    expected = torch.func.functional_call(theirs, weights, (inputs,))
    outputs = outputs_of(ours, inputs)
    assert_equal_with_gradients(outputs, expected, ours.parameters(), SINGLE_LAYER)


# --- whole layers against numbers that flash-linear-attention computed ---

LAYERS: list[tuple[str, dict[str, object]]] = [
    ("deltanet", {"beta": "double"}),
    ("gated-deltanet", {"beta": "double", "value_dim": 16}),
    ("deltaproduct", {"householders": 2}),
    ("gated-deltaproduct", {"householders": 3}),
]


@pytest.mark.parametrize(("name", "options"), LAYERS)
def test_a_delta_rules_layer_computes_what_that_of_fla_does(
    name: str, options: dict[str, object]
) -> None:
    found = recorded(name)
    mixer = make(name, **{"width": 16, "heads": 2, "key_dim": 8, "value_dim": 8} | options)
    theirs, parts = found.weights, ("q", "k", "v")
    weights = {
        "project.weight": torch.cat([theirs.pop(f"{part}_proj.weight") for part in parts]),
        "convolution.filters.weight": torch.cat(
            [theirs.pop(f"{part}_conv1d.weight") for part in parts]
        ),
        "betas.weight": theirs.pop("b_proj.weight"),
        "norm.weight": theirs.pop("o_norm.weight"),
        "output.weight": theirs.pop("o_proj.weight"),
    }
    if "a_proj.weight" in theirs:
        weights["forget_gate.steps.weight"] = theirs.pop("a_proj.weight")
        weights["forget_gate.log_rates"] = theirs.pop("A_log")
        weights["forget_gate.bias"] = theirs.pop("dt_bias")
    if "g_proj.weight" in theirs:
        weights["gate.weight"] = theirs.pop("g_proj.weight")
    assert not theirs
    mixer.load_state_dict(weights)
    with torch.no_grad():
        outputs = outputs_of(mixer, found.inputs.double())
    difference = (outputs - found.outputs).abs().max()
    assert difference <= stated_difference(name, "fla-org"), float(difference)


@pytest.mark.parametrize("name", [name for name, _ in LAYERS])
def test_the_maps_of_a_delta_rule_start_small(name: str) -> None:
    """Each of q, k, v and the others uniform up to 2^(-5/2) sqrt(6 / (inputs + outputs))."""
    mixer = fresh(name, width=64).blocks[0].mixer
    maps = [*mixer.project.weight.split(mixer.sizes), mixer.betas.weight, mixer.output.weight]
    if mixer.gate is not None:
        maps.append(mixer.gate.weight)
    if mixer.forget_gate is not None:
        maps.append(mixer.forget_gate.steps.weight)
    for weight in maps:
        bound = (6 / 32 / sum(weight.shape)) ** 0.5
        assert 0.9 * bound < weight.abs().max() <= bound
        assert 0.85 < weight.std() / (bound / 3**0.5) < 1.15
    filters = mixer.convolution.filters.weight
    assert 0.45 < filters.abs().max() <= 0.5  # torch's own, for a kernel of 4


# --- whole layers against the papers' equations ---


def delta_layer_by_equations(mixer: DeltaMixer, inputs: Tensor, beta_range: float) -> Tensor:
    """A delta rule's layer, one word, head, position and key at a time; states are [V, K]."""
    num_keys = mixer.key_shape[0]
    projected = inputs @ mixer.project.weight.mT
    if mixer.convolution.filters is not None:
        filters = mixer.convolution.filters.weight
        padded = functional.pad(projected.mT, (filters.shape[-1] - 1, 0))
        projected = functional.conv1d(padded, filters, groups=len(filters)).mT
    projected = projected * torch.sigmoid(projected)
    betas = beta_range / (1 + torch.exp(-inputs @ mixer.betas.weight.mT))
    words = []
    for b in range(B):
        heads = []
        for head in range(N):
            state, outputs = torch.zeros(V, K, dtype=torch.float64), []
            for time in range(T):
                row = projected[b, time]
                query = row[head * K :][:K]
                if mixer.forget_gate is not None:
                    gate = mixer.forget_gate
                    logit = inputs[b, time] @ gate.steps.weight[head] + gate.bias[head]
                    state = state * (1 + logit.exp()) ** -gate.log_rates[head].exp()
                for j in range(num_keys):
                    key = row[N * K + (j * N + head) * K :][:K]
                    value = row[N * K * (1 + num_keys) + (j * N + head) * V :][:V]
                    key = key / (key.square().sum() + 1e-6).sqrt()
                    beta = betas[b, time, j * N + head]
                    erase = torch.eye(K, dtype=torch.float64) - beta * key.outer(key)
                    state = state @ erase + beta * value.outer(key)
                output = state @ query / (query.square().sum() + 1e-6).sqrt() / K**0.5
                output = output / (output.square().mean() + 1e-6).sqrt() * mixer.norm.weight
                if mixer.gate is not None:
                    logit = (mixer.gate.weight @ inputs[b, time])[head * V :][:V]
                    output = output * logit * torch.sigmoid(logit)
                outputs.append(output)
            heads.append(torch.stack(outputs))
        words.append(torch.cat(heads, -1))
    return torch.stack(words) @ mixer.output.weight.mT


@every_delta_rule
def test_a_delta_rules_layer_follows_its_equation(name: str, options: dict[str, object]) -> None:
    mixer = make(name, **SMALL, **options)
    assert isinstance(mixer, DeltaMixer)
    assert (mixer.forget_gate is not None) == name.startswith("gated")
    default = build(MODELS[name].settings_class, options, name).beta  # type: ignore[attr-defined]
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    expected = delta_layer_by_equations(mixer, inputs, {"unit": 1.0, "double": 2.0}[default])
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters(), EXACT)


def rwkv7_layer_by_equations(mixer: RWKV7Mixer, inputs: Tensor, size: int) -> Tensor:
    """RWKV-7's time mixing, one word and head at a time; states are [values, keys]."""
    before = torch.cat([torch.zeros_like(inputs[:, :1]), inputs[:, :-1]], 1)
    r, w, k, v, a, g = (torch.lerp(inputs, before, mixer.shifts[i]) for i in range(6))

    def low_rank(x: Tensor, part: nn.Module, activation: Callable[[Tensor], Tensor]) -> Tensor:
        return activation(x @ part.inner.weight.mT) @ part.outer.weight.mT

    r, v = r @ mixer.receptance.weight.mT, v @ mixer.value.weight.mT
    logit = mixer.decay.bias + low_rank(w, mixer.decay, torch.tanh)
    w = torch.exp(-math.exp(-0.5) * torch.sigmoid(logit))
    a = torch.sigmoid(mixer.rate.bias + low_rank(a, mixer.rate, lambda x: x))
    g = low_rank(g, mixer.gate, torch.sigmoid)
    k = k @ mixer.key.weight.mT
    kappa, k = k * mixer.removal, k * (1 - mixer.replacement) + k * a * mixer.replacement
    words = []
    for b in range(len(inputs)):
        heads = []
        for head in range(inputs.shape[-1] // size):
            own = slice(head * size, (head + 1) * size)
            state, outputs = torch.zeros(size, size, dtype=torch.float64), []
            for t in range(inputs.shape[1]):
                removed = kappa[b, t, own] / kappa[b, t, own].norm()
                change = torch.diag(w[b, t, own]) - removed.outer(a[b, t, own] * removed)
                state = state @ change + v[b, t, own].outer(k[b, t, own])
                y = state @ r[b, t, own]
                y = (y - y.mean()) / (y.var(correction=0) + 64e-5).sqrt()
                y = y * mixer.norm.weight[own] + mixer.norm.bias[own]
                bonus = (r[b, t, own] * mixer.bonus[head] * k[b, t, own]).sum()
                outputs.append(y + bonus * v[b, t, own])
            heads.append(torch.stack(outputs))
        words.append(torch.cat(heads, -1))
    return (torch.stack(words) * g) @ mixer.output.weight.mT


def test_the_layer_of_rwkv7_follows_its_equations() -> None:
    mixer = make("rwkv7", width=D, heads=2, rank=3)
    assert isinstance(mixer, RWKV7Mixer)
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    expected = rwkv7_layer_by_equations(mixer, inputs, D // 2)
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters(), EXACT)


# --- where eigenvalues lie ---

SPREADS = (0.3, 30.0)  # ordinary weights, and such that every gate is at an end of its range


def transitions(name: str, spread: float, **options: object) -> Tensor:
    """The operators of a mixer's first head over random inputs: [B T, K, K]."""
    mixer = make(name, spread, **options)
    assert isinstance(mixer, DeltaMixer | RWKV7Mixer)
    with torch.no_grad():
        operators = mixer.transition(torch.randn(B, T, D, dtype=torch.float64))
    assert isinstance(operators, ColumnwiseOperators)
    return operators.each.dense()[:, :K, :K]


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize(("beta", "lowest"), [("unit", 0.0), ("double", -1.0)])
@pytest.mark.parametrize("name", ["deltanet", "gated-deltanet"])
def test_one_key_turns_one_eigenvalue_within_the_range_of_beta(
    name: str, beta: str, lowest: float, spread: float
) -> None:
    operators = transitions(name, spread, **SMALL, beta=beta)
    torch.testing.assert_close(operators, operators.mT, **EXACT)
    values = torch.linalg.eigvalsh(operators)
    assert values.min() >= lowest - 1e-12 and values.max() <= 1 + 1e-12
    rest = values[:, 1:]
    torch.testing.assert_close(rest, rest[:, :1].expand_as(rest), **EXACT)
    if name == "deltanet":
        torch.testing.assert_close(rest, torch.ones_like(rest), **EXACT)
    if spread > 1:
        assert values.min() < lowest + 0.01, "the extreme is not reached"


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("name", ["deltaproduct", "gated-deltaproduct"])
def test_several_keys_make_a_product_of_householder_matrices(name: str, spread: float) -> None:
    operators = transitions(name, spread, **SMALL, householders=2)
    assert (torch.linalg.matrix_norm(operators, 2) <= 1 + 1e-12).all()
    if name == "deltaproduct":
        moved = operators - torch.eye(K, dtype=torch.float64)
        assert (torch.linalg.svdvals(moved)[:, 2:] < 1e-12).all(), "more than rank 2"
    values = torch.linalg.eigvals(operators)
    assert (values.abs() <= 1 + 1e-12).all()
    assert (values.imag.abs() > 1e-3).any(), "two factors make no rotation"


def test_the_determinant_is_that_of_the_factors() -> None:
    mixer = make("gated-deltaproduct", **SMALL, householders=3)
    assert isinstance(mixer, DeltaMixer)
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    operators = mixer.transition(inputs)
    assert isinstance(operators, ColumnwiseOperators)
    products = operators.each
    assert isinstance(products, HouseholderOperators) and products.gates is not None
    lengths = products.keys.square().sum(-1)  # almost 1
    expected = (1 - products.betas * lengths).prod(1) * products.gates**K  # [B T, N]
    found = torch.linalg.det(products.dense())
    torch.testing.assert_close(found, expected.prod(1), **EXACT)


@pytest.mark.parametrize("spread", SPREADS)
def test_eigenvalues_of_rwkv7_are_real_and_hardly_negative(spread: float) -> None:
    operators = transitions("rwkv7", spread, width=D, heads=2, rank=3)
    values = torch.linalg.eigvals(operators)
    lowest = math.exp(-math.exp(-0.5)) - 1  # -0.4548
    assert (values.imag.abs() < 1e-6).all()
    assert values.real.min() >= lowest - 1e-9 and values.real.max() <= 1 + 1e-9
    if spread > 1:
        assert values.real.min() < -0.1, "no eigenvalue is negative"


# --- initialisations are kept ---


def test_forget_gates_start_as_in_mamba2() -> None:
    kind = MODELS["gated-deltaproduct"]
    options = {"heads": 4000, "key_dim": 1, "value_dim": 1, "layers": 2}
    settings = build(kind.settings_class, options, "here")
    model = kind(settings, num_symbols=2, num_labels=2)
    assert isinstance(model, BlockModel)
    for block in model.blocks:
        gate = block.mixer.forget_gate
        steps, rates = functional.softplus(gate.bias), gate.log_rates.exp()
        assert 0.00099 < steps.min() < 0.00101 and 0.098 < steps.max() < 0.101
        assert abs(steps.log().mean() - math.log(0.01)) < 0.1
        assert 0 < rates.min() < 0.1 and 15.9 < rates.max() <= 16
        assert abs(rates.mean() - 8) < 0.3


# --- Kimi delta attention ---


def kda_factors() -> KDAFactors:
    """Random factors of unit keys; each part is a leaf."""
    parts = (
        torch.randn(B, T, N, K),
        functional.normalize(torch.randn(B, T, N, K), dim=-1),
        torch.randn(B, T, N, V),
        2 * torch.rand(B, T, N),
        -torch.rand(B, T, N, K),
    )
    return KDAFactors(*(part.double().requires_grad_() for part in parts))


def by_kda_scan(factors: KDAFactors) -> Tensor:
    return kda_scan(factors, torch.zeros(B, N, K, V).to(factors.keys))[0]


def by_kda_steps(factors: KDAFactors) -> Tensor:
    state, outputs = torch.zeros(B, N, K, V).to(factors.keys), []
    for time in range(T):
        output, state = kda_step(KDAFactors(*(part[:, time] for part in factors)), state)
        outputs.append(output)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("compute", [by_kda_scan, by_kda_steps])
def test_the_recurrence_of_kda_is_that_of_fla(compute: Callable[[KDAFactors], Tensor]) -> None:
    ours = kda_factors()
    theirs, _ = fla("kda", "naive.py").naive_recurrent_kda(
        ours.queries, ours.keys, ours.values, ours.log_gates, ours.betas, scale=1.0
    )
    assert_equal_with_gradients(compute(ours), theirs, ours, SINGLE)


def test_chunks_of_kda_are_steps_to_rounding() -> None:
    factors = kda_factors()
    assert_equal_with_gradients(by_kda_scan(factors), by_kda_steps(factors), factors, EXACT)


@pytest.mark.parametrize("log_gate", [0.0, -30.0, -1e4])
def test_extreme_gates_leave_kda_and_its_gradients_finite(log_gate: float) -> None:
    factors = KDAFactors(*(part.detach().float().requires_grad_() for part in kda_factors()))
    factors = factors._replace(log_gates=torch.full((B, T, N, K), log_gate, requires_grad=True))
    outputs = by_kda_scan(factors)
    gradients = torch.autograd.grad(outputs.sum(), factors)
    assert outputs.isfinite().all() and all(part.isfinite().all() for part in gradients)
    torch.testing.assert_close(outputs, by_kda_steps(factors), **SINGLE)


def test_the_layer_of_kda_computes_what_that_of_fla_does() -> None:
    found = recorded("kda")
    theirs, parts = found.weights, ("q", "k", "v")
    weights = {
        "project.weight": torch.cat([theirs[f"{part}_proj.weight"] for part in parts]),
        "convolution.filters.weight": torch.cat(
            [theirs[f"{part}_conv1d.weight"] for part in parts]
        ),
        "betas.weight": theirs["b_proj.weight"],
        "steps.0.weight": theirs["f_proj.0.weight"],
        "steps.1.weight": theirs["f_proj.1.weight"],
        "log_rates": theirs["A_log"],
        "bias": theirs["dt_bias"],
        "gate.0.weight": theirs["g_proj.0.weight"],
        "gate.1.weight": theirs["g_proj.1.weight"],
        "gate.1.bias": theirs["g_proj.1.bias"],
        "norm.weight": theirs["o_norm.weight"],
        "output.weight": theirs["o_proj.weight"],
    }
    assert len(weights) + 4 == len(theirs)
    mixer = make("kda", width=16, heads=2, key_dim=8, value_dim=8, beta="double")
    mixer.load_state_dict(weights)
    with torch.no_grad():
        outputs = outputs_of(mixer, found.inputs.double())
    difference = (outputs - found.outputs).abs().max()
    assert difference <= stated_difference("kda", "fla-org"), float(difference)


def kda_layer_by_equations(mixer: KDAMixer, inputs: Tensor, beta_range: float) -> Tensor:
    """The layer with its transition as a dense matrix, one word, head and position at a time."""
    filters = mixer.convolution.filters.weight
    projected = inputs @ mixer.project.weight.mT
    padded = functional.pad(projected.mT, (filters.shape[-1] - 1, 0))
    projected = functional.conv1d(padded, filters, groups=len(filters)).mT
    projected = projected * torch.sigmoid(projected)
    steps = inputs @ mixer.steps[0].weight.mT @ mixer.steps[1].weight.mT + mixer.bias
    gates = (1 + steps.exp()) ** -mixer.log_rates.exp().repeat_interleave(K)
    betas = beta_range / (1 + torch.exp(-inputs @ mixer.betas.weight.mT))
    gate = inputs @ mixer.gate[0].weight.mT @ mixer.gate[1].weight.mT + mixer.gate[1].bias
    words = []
    for b in range(B):
        heads = []
        for head in range(N):
            state, outputs = torch.zeros(K, V, dtype=torch.float64), []
            for time in range(T):
                query = projected[b, time][head * K :][:K]
                key = projected[b, time][N * K + head * K :][:K]
                value = projected[b, time][2 * N * K + head * V :][:V]
                key = key / (key.square().sum() + 1e-6).sqrt()
                query = query / (query.square().sum() + 1e-6).sqrt() / K**0.5
                erase = torch.eye(K, dtype=torch.float64) - betas[b, time, head] * key.outer(key)
                state = erase @ torch.diag(gates[b, time][head * K :][:K]) @ state
                state = state + betas[b, time, head] * key.outer(value)
                output = query @ state
                output = output / (output.square().mean() + 1e-6).sqrt() * mixer.norm.weight
                outputs.append(output * torch.sigmoid(gate[b, time][head * V :][:V]))
            heads.append(torch.stack(outputs))
        words.append(torch.cat(heads, -1))
    return torch.stack(words) @ mixer.output.weight.mT


@pytest.mark.parametrize(("beta", "beta_range"), [("unit", 1.0), ("double", 2.0)])
def test_the_layer_of_kda_follows_its_equation(beta: str, beta_range: float) -> None:
    mixer = make("kda", **SMALL, beta=beta)
    assert isinstance(mixer, KDAMixer)
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    expected = kda_layer_by_equations(mixer, inputs, beta_range)
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters(), EXACT)


def test_kda_starts_as_in_version_0_6_of_its_library() -> None:
    mixer = fresh("kda", width=64).blocks[0].mixer
    for part in mixer.modules():
        if isinstance(part, nn.Linear | nn.Conv1d):
            assert 0.015 < part.weight.std() < 0.025
    assert not mixer.gate[1].bias.any()
    assert ((mixer.log_rates >= 0) & (mixer.log_rates <= math.log(16))).all()
    steps = functional.softplus(mixer.bias)
    assert ((steps > 0.9e-3) & (steps < 0.11)).all()


def test_kda_has_the_parameters_that_its_file_counts() -> None:
    k, v, n, d = 5, 7, 3, 11
    mixer = fresh("kda", width=d, heads=n, key_dim=k, value_dim=v).blocks[0].mixer
    count = d * n * (2 * k + 2 * v + 1) + 4 * n * (2 * k + v) + 2 * d * v
    count += n * v * (k + v + 1) + n * k + n + v
    assert sum(parameter.numel() for parameter in mixer.parameters()) == count


# --- Gated DeltaNet-2 ---


def gdn2_factors(beta_range: float = 2.0) -> ErasingFactors:
    """Random factors of unit keys; each part is a leaf."""
    keys = functional.normalize(torch.randn(B, T, N, K), dim=-1)
    parts = (
        torch.randn(B, T, N, K),
        keys,
        torch.rand(B, T, N, V) * torch.randn(B, T, N, V),
        beta_range * torch.rand(B, T, N, K) * keys,
        -torch.rand(B, T, N, K),
    )
    return ErasingFactors(*(part.double().requires_grad_() for part in parts))


def by_gdn2_scan(factors: ErasingFactors) -> Tensor:
    return erasing_scan(factors, torch.zeros(B, N, K, V).to(factors.keys))[0]


def by_gdn2_steps(factors: ErasingFactors) -> Tensor:
    state, outputs = torch.zeros(B, N, K, V).to(factors.keys), []
    for time in range(T):
        here = ErasingFactors(*(part[:, time] for part in factors))
        output, state = erasing_step(here, state)
        outputs.append(output)
    return torch.stack(outputs, 1)


@pytest.mark.parametrize("compute", [by_gdn2_scan, by_gdn2_steps])
def test_the_recurrence_of_gated_deltanet_2_is_that_of_fla(
    compute: Callable[[ErasingFactors], Tensor],
) -> None:
    ours = gdn2_factors()
    erase, write = (torch.rand(B, T, N, size, dtype=torch.float64) for size in (K, V))
    values = torch.randn(B, T, N, V, dtype=torch.float64)
    ours = ours._replace(
        erased=(2 * erase * ours.keys.detach()).requires_grad_(),
        written=(write * values).requires_grad_(),
    )
    theirs, _ = fla("gdn2", "naive.py").naive_recurrent_gdn2(
        ours.queries,
        ours.keys,
        values,
        ours.log_gates,
        ours.erased / ours.keys.detach(),  # their gate, so that both have one leaf
        ours.written / values,
        scale=1.0,
    )
    # the key of the erased vector is a constant here, and theirs multiplies the key itself
    parts = ours._replace(keys=ours.queries)
    assert_equal_with_gradients(compute(ours), theirs, parts[:1] + parts[2:3] + parts[4:], SINGLE)


def test_chunks_of_gated_deltanet_2_are_steps_to_rounding() -> None:
    factors = gdn2_factors()
    assert_equal_with_gradients(by_gdn2_scan(factors), by_gdn2_steps(factors), factors, EXACT)


@pytest.mark.parametrize("log_gate", [0.0, -30.0, -1e4])
def test_extreme_gates_leave_gated_deltanet_2_and_its_gradients_finite(log_gate: float) -> None:
    factors = ErasingFactors(*(part.detach().float().requires_grad_() for part in gdn2_factors()))
    factors = factors._replace(log_gates=torch.full((B, T, N, K), log_gate, requires_grad=True))
    outputs = by_gdn2_scan(factors)
    gradients = torch.autograd.grad(outputs.sum(), factors)
    assert outputs.isfinite().all() and all(part.isfinite().all() for part in gradients)
    torch.testing.assert_close(outputs, by_gdn2_steps(factors), **SINGLE)


def gdn2_layer_by_equations(
    mixer: GatedDeltaNet2Mixer, inputs: Tensor, beta_range: float
) -> Tensor:
    """The layer with its transition as a dense matrix, one word, head and position at a time."""
    filters = mixer.convolution.filters.weight
    projected = inputs @ mixer.project.weight.mT
    padded = functional.pad(projected.mT, (filters.shape[-1] - 1, 0))
    projected = functional.conv1d(padded, filters, groups=len(filters)).mT
    projected = projected * torch.sigmoid(projected)
    steps = inputs @ mixer.steps[0].weight.mT @ mixer.steps[1].weight.mT + mixer.bias
    gates = (1 + steps.exp()) ** -mixer.log_rates.exp().repeat_interleave(K)
    erase = beta_range / (1 + torch.exp(-inputs @ mixer.erase.weight.mT))
    write = 1 / (1 + torch.exp(-inputs @ mixer.write.weight.mT))
    gate = inputs @ mixer.gate[0].weight.mT @ mixer.gate[1].weight.mT + mixer.gate[1].bias
    words = []
    for b in range(B):
        heads = []
        for head in range(N):
            state, outputs = torch.zeros(K, V, dtype=torch.float64), []
            here, values_here = slice(head * K, head * K + K), slice(head * V, head * V + V)
            for time in range(T):
                row = projected[b, time]
                query, key = row[: N * K][here], row[N * K : 2 * N * K][here]
                key = key / (key.square().sum() + 1e-6).sqrt()
                query = query / (query.square().sum() + 1e-6).sqrt() / K**0.5
                value = row[2 * N * K :][values_here] * write[b, time][values_here]
                kept = torch.eye(K, dtype=torch.float64) - key.outer(erase[b, time][here] * key)
                state = kept @ torch.diag(gates[b, time][here]) @ state + key.outer(value)
                output = query @ state
                output = output / (output.square().mean() + 1e-6).sqrt() * mixer.norm.weight
                outputs.append(output * torch.sigmoid(gate[b, time][values_here]))
            heads.append(torch.stack(outputs))
        words.append(torch.cat(heads, -1))
    return torch.stack(words) @ mixer.output.weight.mT


@pytest.mark.parametrize(("beta", "beta_range"), [("unit", 1.0), ("double", 2.0)])
def test_the_layer_of_gated_deltanet_2_follows_its_equation(beta: str, beta_range: float) -> None:
    mixer = make("gated-deltanet-2", **SMALL, beta=beta)
    assert isinstance(mixer, GatedDeltaNet2Mixer)
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    expected = gdn2_layer_by_equations(mixer, inputs, beta_range)
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters(), EXACT)


def test_gated_deltanet_2_with_one_gate_is_kimi_delta_attention() -> None:
    mixer, other = make("gated-deltanet-2", **SMALL), make("kda", **SMALL)
    inputs = torch.randn(B, T, D, dtype=torch.float64)
    shared = {name: value for name, value in other.state_dict().items() if "betas" not in name}
    one = other.betas.weight.detach()
    mixer.load_state_dict(
        shared
        | {
            "erase.weight": one.repeat_interleave(K, 0),
            "write.weight": one.repeat_interleave(V, 0),
        }
    )
    torch.testing.assert_close(outputs_of(mixer, inputs), outputs_of(other, inputs), **EXACT)
