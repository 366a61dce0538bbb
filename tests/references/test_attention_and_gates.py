"""Attention, gated linear recurrences, xLSTM and TTT against other people's code or equations.

`fla-core` and `transformers` compute in float32 (or round to it) and check the recurrences and
rotary attention; float64 loops over the papers' equations check every layer whole, and the
gradient by each of its weights. Words are longer than the chunks in which the models read them.

B batch, T time, D width, N heads, K head size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from fla_by_path import fla
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from statetrack import ops
from statetrack.errors import SettingsError
from statetrack.models import MODELS, BlockModel, SequenceModel, mlstm, slstm, ttt_linear
from statetrack.models._blocks import Mixer
from statetrack.models.hgrn import HGRN, HGRNMixer
from statetrack.models.hgrn2 import HGRN2Mixer
from statetrack.models.looped_transformer import LoopedTransformer
from statetrack.models.transformer import Transformer
from statetrack.settings import build
from tests.references.recorded import recorded, stated_difference

B, T, D, N, K = 2, 71, 8, 2, 4
V, C = 5, 3
EXACT = {"rtol": 1e-9, "atol": 1e-11}  # float64 on both sides
SINGLE = {"rtol": 2e-4, "atol": 2e-5}  # the reference computes in float32

Equations = Callable[[nn.Module, Tensor], Tensor]


def make(name: str, **options: object) -> SequenceModel:
    """A model in float64, with none of its weights where it started."""
    kind = MODELS[name]
    torch.manual_seed(0)
    settings = build(kind.settings_class, {"width": D, "heads": N} | options, name)
    model = kind(settings, num_symbols=V, num_labels=C).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def make_mixer(name: str, **options: object) -> Mixer:
    model = make(name, **options)
    assert isinstance(model, BlockModel)
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, Mixer)
    return mixer


def scan(mixer: nn.Module, inputs: Tensor) -> Tensor:
    assert isinstance(mixer, Mixer)
    return mixer.scan(inputs, mixer.initial_state(len(inputs)))[0]


def assert_agree(
    one: Tensor, two: Tensor, leaves: Sequence[Tensor], tolerance: dict[str, float]
) -> None:
    """Two results agree, and so do their gradients by each leaf, none of which is zero."""
    torch.testing.assert_close(one, two.to(one), **tolerance)
    mix = torch.randn(one.shape, dtype=one.dtype)
    ours = torch.autograd.grad((one * mix).sum(), leaves, retain_graph=True)
    theirs = torch.autograd.grad((two * mix.to(two)).sum(), leaves)
    for mine, other in zip(ours, theirs, strict=True):
        scale = float(other.abs().max())
        assert scale > 0
        torch.testing.assert_close(mine / scale, other / scale, **tolerance)


def assert_mixer_follows(mixer: Mixer, equations: Equations) -> None:
    """A mixer's outputs, and gradients by inputs and weights, are those of its equations."""
    inputs = torch.randn(B, T, D, dtype=torch.float64, requires_grad=True)
    leaves = [inputs, *mixer.parameters()]
    assert_agree(scan(mixer, inputs), equations(mixer, inputs), leaves, EXACT)


def leaf(*shape: int, scale: float = 1.0) -> Tensor:
    return (scale * torch.randn(*shape, dtype=torch.float64)).requires_grad_()


def by_head(vectors: Tensor) -> Tensor:
    """[..., N size] as [..., N, size]."""
    return vectors.unflatten(-1, (N, -1))


def convolved(convolution: nn.Module, inputs: Tensor) -> Tensor:
    """silu of a causal filter of every channel, position by position."""
    weight, bias = convolution.filters.weight[:, 0], convolution.filters.bias
    bias = torch.zeros(len(weight)) if bias is None else bias
    kernel = weight.shape[1]
    outputs = []
    for time in range(inputs.shape[1]):
        total = bias.expand(len(inputs), -1)
        for back in range(min(kernel, time + 1)):
            total = total + weight[:, kernel - 1 - back] * inputs[:, time - back]
        outputs.append(total / (1 + torch.exp(-total)))
    return torch.stack(outputs, 1)


def projected(projection: nn.Module, inputs: Tensor) -> Tensor:
    outputs = inputs @ projection.linear.weight.mT
    absent = projection.convolution.filters is None
    return outputs if absent else convolved(projection.convolution, outputs)


def standardised(vectors: Tensor, epsilon: float) -> Tensor:
    """Mean 0 and variance 1 over the last axis."""
    centred = vectors - vectors.sum(-1, keepdim=True) / vectors.shape[-1]
    variance = (centred**2).sum(-1, keepdim=True) / vectors.shape[-1]
    return centred / (variance + epsilon) ** 0.5


def silu(inputs: Tensor) -> Tensor:
    return inputs / (1 + torch.exp(-inputs))


def logistic(inputs: Tensor) -> Tensor:
    return 1 / (1 + torch.exp(-inputs))


# --- the Transformer ---

POSITIONS = ["none", "learned", "sinusoidal", "rotary", "alibi"]


def rotate_as_complex(vectors: Tensor) -> Tensor:
    """Coordinates k and k + K / 2 of [B, T, K] as complex numbers, times e^{i t / 10000^(2k/K)}."""
    half = vectors.shape[-1] // 2
    numbers = torch.complex(vectors[..., :half], vectors[..., half:])
    for k in range(half):
        angles = torch.arange(vectors.shape[1]).double() / 10000 ** (2 * k / (2 * half))
        turned = numbers[..., k] * torch.polar(torch.ones_like(angles), angles)
        numbers = torch.cat([numbers[..., :k], turned.unsqueeze(-1), numbers[..., k + 1 :]], -1)
    return torch.cat([numbers.real, numbers.imag], -1)


def attention_word_by_word(model: Transformer, symbols: Tensor) -> Tensor:
    """The logits of a Transformer, every position and head by itself."""
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    length = symbols.shape[1]
    stream = model.embedding.weight[symbols]
    if model.learned is not None:
        stream = stream + model.learned[:length]
    if model.positions == "sinusoidal":
        rates = 10000.0 ** (-torch.arange(D // 2).double() * 2 / D)
        angles = torch.arange(length).double()[:, None] * rates
        stream = stream + torch.cat([torch.sin(angles), torch.cos(angles)], -1)
    slopes = build_alibi_tensor(torch.ones(1, 2, dtype=torch.int64), N, torch.float64)[:, 0, 1]
    for block in model.blocks:
        q, k, v = (by_head_of(block, stream, part) for part in range(3))
        read = []
        for i in range(length):
            heads = []
            for n in range(N):
                scores = (k[:, : i + 1, n] * q[:, i, None, n]).sum(-1) / K**0.5
                if model.positions == "alibi":
                    scores = scores - slopes[n] * (i - torch.arange(i + 1))
                weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
                heads.append((weights.unsqueeze(-1) * v[:, : i + 1, n]).sum(1))
            read.append(torch.cat(heads, -1))
        stream = stream + torch.stack(read, 1) @ block.output.weight.mT
        norm, up, _, down = block.mlp
        inner = functional.gelu(root_mean_square(norm, stream) @ up.weight.mT + up.bias)
        stream = stream + inner @ down.weight.mT + down.bias
    return root_mean_square(model.norm, stream) @ model.readout.weight.mT + model.readout.bias


def by_head_of(block: nn.Module, stream: Tensor, part: int) -> Tensor:
    """Queries (part 0), keys (1) or values (2) of all heads, [B, T, N, K]."""
    weight = block.projection.weight[part * D : (part + 1) * D]
    heads = by_head(root_mean_square(block.attention_norm, stream) @ weight.mT)
    if block.rotary and part < 2:
        return torch.stack([rotate_as_complex(heads[:, :, n]) for n in range(N)], 2)
    return heads


def root_mean_square(norm: nn.Module, inputs: Tensor, epsilon: float = 1e-6) -> Tensor:
    return inputs / (inputs.square().mean(-1, keepdim=True) + epsilon) ** 0.5 * norm.weight


@pytest.mark.parametrize("positions", POSITIONS)
def test_a_transformer_is_softmax_attention_with_its_positions(positions: str) -> None:
    model = make("transformer", positions=positions, max_positions=9)
    assert isinstance(model, Transformer)
    symbols = torch.randint(V, (B, 9))
    leaves = list(model.parameters())
    assert_agree(model(symbols), attention_word_by_word(model, symbols), leaves, EXACT)


def test_rotary_attention_is_that_of_llama() -> None:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

    block = make("transformer", norm="none", mlp=0.0, residual=False).blocks[0]
    config = LlamaConfig(
        hidden_size=D, num_attention_heads=N, num_key_value_heads=N, attn_implementation="eager"
    )
    llama = LlamaAttention(config, 0).double()
    inputs = leaf(B, T, D)
    parts = block.projection.weight.split(D)
    names = ("q_proj.weight", "k_proj.weight", "v_proj.weight", "o_proj.weight")
    weights = dict(zip(names, (*parts, block.output.weight), strict=True))
    waves = LlamaRotaryEmbedding(config)(inputs, torch.arange(T).unsqueeze(0))
    mask = torch.full((T, T), -torch.inf).triu(1).expand(B, 1, T, T)
    expected, _ = functional_call(
        llama, weights, (inputs,), {"position_embeddings": waves, "attention_mask": mask}
    )
    leaves = [inputs, block.projection.weight, block.output.weight]
    assert_agree(block(inputs, None), expected, leaves, SINGLE)


@pytest.mark.parametrize("positions", POSITIONS)
def test_replicas_of_a_transformer_are_each_one_alone(positions: str) -> None:
    models = [make("transformer", positions=positions) for _ in range(3)]
    for model in models[1:]:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
    symbols = torch.randint(V, (3, B, 9))
    weights, _ = stack_module_state(list(models))
    together = vmap(lambda own, word: functional_call(models[0], own, (word,)))(weights, symbols)
    for model, word, logits in zip(models, symbols, together, strict=True):
        torch.testing.assert_close(logits, model(word), **EXACT)


def test_words_begin_at_random_learned_positions_only_while_training() -> None:
    model = make("transformer", positions="learned", max_positions=12, random_offset=True)
    symbols = torch.randint(V, (40, 9))
    shifted = []
    for first in range(4):
        plain = make("transformer", positions="learned", max_positions=12)
        plain.load_state_dict(model.state_dict())
        plain.learned.data = model.learned.data.roll(-first, 0)
        shifted.append(plain(symbols).detach())
    found = model(symbols)
    errors = torch.stack([(found - each).abs().amax((1, 2)) for each in shifted])  # [first, B]
    assert errors.amin(0).max() < 1e-12, "every word begins at one of the positions that fit"
    assert set(errors.argmin(0).tolist()) == set(range(4)), "and words begin at all of them"
    found.sum().backward()
    assert bool((model.learned.grad.abs().sum(1) > 0).all())
    with torch.no_grad():
        assert torch.equal(model(symbols), shifted[0])
    assert torch.equal(model.eval()(symbols), shifted[0])


WITH_TOKEN = [
    *(("transformer", {"positions": positions}) for positions in POSITIONS),
    ("looped-transformer", {"loops": 3}),
    ("path-attention", {}),
]


@pytest.mark.parametrize(("name", "options"), WITH_TOKEN)
def test_the_first_token_is_one_more_symbol_that_begins_every_word(
    name: str, options: dict[str, object]
) -> None:
    model = make(name, bos=True, **options)
    plain = type(model)(
        model.settings.model_copy(update={"bos": False}), num_symbols=V + 1, num_labels=C
    ).double()
    plain.load_state_dict(model.state_dict())
    symbols = torch.randint(V, (B, 9))
    begun = torch.cat([torch.full((B, 1), V), symbols], 1)
    torch.testing.assert_close(model(symbols), plain(begun)[:, 1:], **EXACT)
    assert model(symbols[:, :0]).shape == (B, 0, C)


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize(("name", "options"), WITH_TOKEN)
def test_words_of_one_symbol_have_one_answer_where_nothing_marks_their_beginning(
    name: str, options: dict[str, object], bos: bool
) -> None:
    torch.manual_seed(1)
    logits = make(name, bos=bos, **options)(torch.zeros(1, 9, dtype=torch.int64))
    marked = bos or options.get("positions") in ("learned", "sinusoidal")
    spread = (logits - logits[:, :1]).abs().max()
    assert spread > 1e-3 if marked else spread < 1e-12


def test_learned_positions_refuse_words_that_are_too_long() -> None:
    model = make("transformer", positions="learned", max_positions=6)
    assert model(torch.zeros(1, 6, dtype=torch.int64)).shape == (1, 6, C)
    with pytest.raises(SettingsError, match="7 symbols is longer than max_positions=6"):
        model(torch.zeros(1, 7, dtype=torch.int64))
    model = make("transformer", positions="learned", max_positions=6, bos=True)
    with pytest.raises(SettingsError, match="6 symbols and its first token is longer than"):
        model(torch.zeros(1, 6, dtype=torch.int64))


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("transformer", {"width": 9, "heads": 3, "positions": "sinusoidal"}, "9 is odd: .* width"),
        ("transformer", {"width": 9, "heads": 3}, "3 is odd: take an even width per head"),
        ("transformer", {"heads": 3}, "heads=3 does not divide width 8: take 2 instead"),
        ("linear-attention", {"heads": 16}, "heads=16 does not divide width 8: take 8"),
        ("gla", {"expand_keys": 0.1}, "leaves the 2 heads no keys: take 0.25 or more"),
        ("mlstm", {"expand": 0.01}, "leaves a mixer no channels: take 0.25 or more"),
        ("mlstm", {"projection_block": 3}, "3 does not divide the inner width 16: take 2"),
        ("slstm", {"heads": 5}, "heads=5 does not divide width 8: take 4"),
        ("ttt-linear", {"heads": 8}, "leaves 1 channel to each head"),
        ("xlstm", {"pattern": "msx"}, "made of the letters m and s"),
        ("xlstm", {"pattern": ""}, "made of the letters m and s"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    name: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        make(name, **options)


# --- the looped Transformer ---


def by_copied_blocks(model: LoopedTransformer, symbols: Tensor) -> Tensor:
    """Every prefix by a Transformer that has the repeated blocks as often as they are applied."""
    depths = [1, 2, 2, 3, 3, 3, 3, 4, 4]
    logits = []
    for place, depth in enumerate(depths[: symbols.shape[1]], 1):
        depth = model.loops or depth
        settings = model.settings.model_copy(update={"layers": 1})
        plain = Transformer(settings, num_symbols=V, num_labels=C).double()
        plain.embedding, plain.learned = model.embedding, model.learned
        plain.norm, plain.readout = model.norm, model.readout
        plain.blocks = nn.ModuleList([*model.before, *(depth * [*model.blocks])])
        logits.append(plain(symbols[:, :place])[:, -1])
    return torch.stack(logits, 1)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"layers": 2, "before": 1, "positions": "alibi"},
        {"loops": 3, "positions": "learned", "max_positions": 9},
    ],
)
def test_a_looped_transformer_repeats_its_blocks_for_each_binary_digit(
    options: dict[str, object],
) -> None:
    model = make("looped-transformer", **options)
    assert isinstance(model, LoopedTransformer)
    symbols = torch.randint(V, (B, 9))
    leaves = list(model.parameters())
    assert_agree(model(symbols), by_copied_blocks(model, symbols), leaves, EXACT)


# --- PaTH attention ---


def test_the_layer_of_path_attention_computes_what_that_of_fla_does() -> None:
    found = recorded("path-attention")
    theirs = found.weights
    weights = {
        "projection.weight": torch.cat([theirs[f"{part}_proj.weight"] for part in "qkv"]),
        "directions.0.weight": theirs["w_proj.0.weight"],
        "directions.1.weight": theirs["w_proj.1.weight"],
        "convolution.filters.weight": theirs["w_conv1d.weight"],
        "betas.weight": theirs["bt_proj.weight"],
        "betas.bias": theirs["bt_proj.bias"],
        "output.weight": theirs["o_proj.weight"],
    }
    assert len(theirs) == len(weights) + 2
    options = {"width": 32, "norm": "none", "mlp": 0.0, "residual": False}
    block = make("path-attention", **options).blocks[0]
    block.load_state_dict(weights)
    with torch.no_grad():
        outputs = block(found.inputs.double())
    difference = (outputs - found.outputs).abs().max()
    assert difference <= stated_difference("path-attention", "fla-org"), float(difference)


def attention_along_products(block: nn.Module, inputs: Tensor) -> Tensor:
    """Every key multiplied by the reflections of all later positions, one after the other."""
    q, k, v = (by_head(part) for part in (inputs @ block.projection.weight.mT).chunk(3, -1))
    w = inputs @ block.directions[0].weight.mT @ block.directions[1].weight.mT
    if block.convolution.filters is not None:
        w = convolved(block.convolution, w)
    w = by_head(w)
    w = w / (w.square().sum(-1, keepdim=True) + 1e-6) ** 0.5
    betas = 2 * logistic(inputs @ block.betas.weight.mT + block.betas.bias)  # [B, T, N]
    earlier: list[Tensor] = []
    read = []
    for i in range(inputs.shape[1]):
        reflection = torch.eye(K) - betas[:, i, :, None, None] * (
            w[:, i].unsqueeze(-1) * w[:, i].unsqueeze(-2)
        )
        earlier = [torch.einsum("bnkl,bnl->bnk", reflection, key) for key in earlier]
        earlier.append(k[:, i])
        scores = torch.stack([(q[:, i] * key).sum(-1) for key in earlier], -1) / K**0.5
        weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
        read.append(torch.einsum("bnj,bjnk->bnk", weights, v[:, : i + 1]).flatten(-2))
    return torch.stack(read, 1) @ block.output.weight.mT


@pytest.mark.parametrize("conv", [0, 3])
def test_path_attention_is_attention_through_products_of_reflections(conv: int) -> None:
    options = {"norm": "none", "mlp": 0.0, "residual": False, "conv": conv}
    block = make("path-attention", **options).blocks[0]
    inputs = leaf(B, 20, D)
    leaves = [inputs, *block.parameters()]
    assert_agree(block(inputs), attention_along_products(block, inputs), leaves, EXACT)


def test_path_attention_starts_as_in_version_0_6_of_its_library() -> None:
    model = make_fresh("path-attention", width=64, conv=3)
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Conv1d | nn.Embedding):
            assert 0.015 < part.weight.std() < 0.025
    mixing = model.blocks[0].parameters()
    mlp = sum(parameter.numel() for parameter in model.blocks[0].mlp.parameters())
    assert sum(each.numel() for each in mixing) - mlp == (
        4 * 64**2 + 2 * 32 * 64 + (3 + N) * 64 + N + 64
    )


# --- linear attention ---


def test_adding_up_is_the_normalised_linear_attention_of_fla() -> None:
    queries, keys, values = (leaf(B, T, N, K) for _ in range(3))
    naive = fla("linear_attn", "naive.py").naive_recurrent_linear_attn
    expected, (sums, norms) = naive(
        functional.elu(queries) + 1,
        functional.elu(keys) + 1,
        values,
        scale=1.0,
        normalize=True,
        output_final_state=True,
    )
    with_one = torch.cat([values, torch.ones(B, T, N, 1)], -1)
    read, last = ops.additive_attention(
        functional.elu(queries) + 1,
        functional.elu(keys) + 1,
        with_one,
        torch.zeros(B, N, K, K + 1, dtype=torch.float64),
    )
    assert_agree(read[..., :-1] / read[..., -1:], expected, [queries, keys, values], SINGLE)
    torch.testing.assert_close(last[..., :-1].float(), sums, **SINGLE)
    torch.testing.assert_close(last[..., -1].float(), norms.squeeze(1), **SINGLE)


def attention_with_a_kernel(mixer: nn.Module, inputs: Tensor) -> Tensor:
    """Every value weighed by phi(q) . phi(k), the weights divided by their sum."""
    q, k, v = (by_head(part) for part in projected(mixer.projection, inputs).chunk(3, -1))
    q, k = (torch.where(part > 0, part + 1, torch.exp(part)) for part in (q, k))
    weights = torch.einsum("binc,bjnc->bnij", q, k) * torch.ones(T, T).tril()
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-6)
    return torch.einsum("bnij,bjnc->binc", weights, v).flatten(-2) @ mixer.output.weight.mT


@pytest.mark.parametrize("conv", [0, 3])
def test_linear_attention_is_attention_with_a_kernel(conv: int) -> None:
    assert_mixer_follows(make_mixer("linear-attention", conv=conv), attention_with_a_kernel)


def test_the_layer_of_linear_attention_computes_what_that_of_fla_does() -> None:
    theirs = recorded("linear-attention").weights
    weights = {
        "projection.linear.weight": torch.cat([theirs[f"{part}_proj.weight"] for part in "qkv"]),
        "output.weight": theirs["o_proj.weight"],
    }
    assert len(theirs) == 4
    mixer = recorded_mixer("linear-attention")
    assert_computes(mixer, weights, "linear-attention", "fla-org")


# --- gated linear attention ---


def test_the_recurrence_of_gla_is_that_of_fla() -> None:
    queries, keys, values = leaf(B, T, N, K), leaf(B, T, N, K), leaf(B, T, N, 3)
    logits = leaf(B, T, N, K)
    log_gains = functional.logsigmoid(logits)
    expected, last = fla("gla", "naive.py").naive_recurrent_gla(
        queries * K**0.5, keys, values, log_gains, output_final_state=True
    )
    first = torch.zeros(B, N, K, 3, dtype=torch.float64)
    read, matrices = ops.gated_attention(queries, keys, values, log_gains, first)
    assert_agree(read, expected, [queries, keys, values, logits], SINGLE)
    torch.testing.assert_close(matrices.float(), last, **SINGLE)


def gated_attention(mixer: nn.Module, inputs: Tensor) -> Tensor:
    """Every value weighed by q . k times the gates between, the output normalised and gated."""
    size = mixer.key_size
    sizes = (N * size, N * size, D)
    q, k, v = (by_head(part) for part in projected(mixer.projection, inputs).split(sizes, -1))
    first, second = mixer.gate
    logits = inputs @ first.weight.mT @ second.weight.mT + second.bias
    gains = by_head(logistic(logits) ** (1 / mixer.slowness))
    read = []
    for i in range(T):
        total, decay = torch.zeros(()), torch.ones(())
        for j in range(i, -1, -1):
            score = (q[:, i] * decay * k[:, j]).sum(-1, keepdim=True) / size**0.5
            total, decay = total + score * v[:, j], decay * gains[:, j]
        read.append(total)
    heads = torch.stack(read, 1)
    normal = heads / (heads.square().mean(-1, keepdim=True) + 1e-6) ** 0.5 * mixer.norm.weight
    gate = silu(inputs @ mixer.output_gate.weight.mT)
    return (normal.flatten(-2) * gate) @ mixer.output.weight.mT


@pytest.mark.parametrize("options", [{}, {"conv": 2, "expand_keys": 1.5, "gate_slowness": 2.0}])
def test_gla_is_attention_with_the_product_of_gates_between(options: dict[str, object]) -> None:
    assert_mixer_follows(make_mixer("gla", **options), gated_attention)


def assert_computes(mixer: nn.Module, weights: dict[str, Tensor], name: str, whose: str) -> None:
    """With the weights given, the mixer computes in float64 what the authors' code recorded."""
    found = recorded(name)
    mixer.double().load_state_dict(weights)
    with torch.no_grad():
        outputs = scan(mixer, found.inputs.double())
    difference = (outputs - found.outputs).abs().max()
    assert difference <= stated_difference(name, whose), float(difference)


def recorded_mixer(name: str, **options: object) -> nn.Module:
    """A mixer of the sizes of the recorded layers."""
    mixer: nn.Module = untouched(name, width=16, heads=2, **options)[0].mixer
    return mixer


def test_the_layer_of_gla_computes_what_that_of_fla_does() -> None:
    theirs = recorded("gla").weights
    weights = {
        "projection.linear.weight": torch.cat([theirs[f"{part}_proj.weight"] for part in "qkv"]),
        "projection.convolution.filters.weight": torch.cat(
            [theirs[f"{part}_conv1d.weight"] for part in "qkv"]
        ),
        "gate.0.weight": theirs["gk_proj.0.weight"],
        "gate.1.weight": theirs["gk_proj.1.weight"],
        "gate.1.bias": theirs["gk_proj.1.bias"],
        "norm.weight": theirs["g_norm_swish_gate.weight"].expand(2, -1),
        "output_gate.weight": theirs["g_proj.weight"],
        "output.weight": theirs["o_proj.weight"],
    }
    assert len(theirs) == len(weights) + 4
    mixer = recorded_mixer("gla", gate_rank=3, conv=4)
    assert_computes(mixer, weights, "gla", "fla-org")


def test_the_maps_of_gla_start_small() -> None:
    mixer = untouched("gla", width=64)[0].mixer
    parts = mixer.projection.linear.weight.split(mixer.sizes)
    for weight in (*parts, mixer.gate[0].weight, mixer.gate[1].weight, mixer.output.weight):
        bound = (6 / 32 / sum(weight.shape)) ** 0.5
        assert 0.9 * bound < weight.abs().max() <= bound
    assert not mixer.gate[1].bias.any()


# --- HGRN ---


def lower_bounds(model: SequenceModel) -> list[Tensor]:
    """The sum of the softmax weights of the layers below."""
    if model.bounds is None:
        return [torch.zeros(D)]
    weights = torch.exp(model.bounds) / torch.exp(model.bounds).sum(0)
    return [sum(weights[:layer], torch.zeros(D)) for layer in range(len(weights))]  # type: ignore


def hgrn_by_layers(model: HGRN, symbols: Tensor) -> Tensor:
    """The logits of an HGRN, in real numbers: a complex state is a pair that is turned."""
    stream = model.embedding.weight[symbols]
    for block, bound in zip(model.blocks, lower_bounds(model), strict=True):
        mixer, x = block.mixer, root_mean_square(block.mixer_norm, stream)
        forget = x @ mixer.forget.weight.mT + mixer.forget.bias
        forget = bound + (1 - bound) * logistic(forget)
        values = silu(x @ mixer.inputs.weight.mT + mixer.inputs.bias)
        real, imaginary = values[..., :D], values[..., D:]
        turn = torch.zeros(D) if mixer.phases is None else mixer.phases
        a, b, states = torch.zeros(B, D), torch.zeros(B, D), []
        for time in range(symbols.shape[1]):
            keep, write = forget[:, time], 1 - forget[:, time]
            a, b = (
                keep * (torch.cos(turn) * a - torch.sin(turn) * b) + write * real[:, time],
                keep * (torch.sin(turn) * a + torch.cos(turn) * b)
                + (write * imaginary[:, time] if mixer.phases is not None else 0),
            )
            states.append(a if mixer.phases is None else torch.cat([a, b], -1))
        normal = standardised(torch.stack(states, 1), 1e-5) * mixer.norm.weight + mixer.norm.bias
        gate = silu(x @ mixer.output_gate.weight.mT + mixer.output_gate.bias)
        stream = stream + (normal * gate) @ mixer.output.weight.mT + mixer.output.bias
    return root_mean_square(model.norm, stream) @ model.readout.weight.mT + model.readout.bias


@pytest.mark.parametrize("phase", ["learned", "none"])
@pytest.mark.parametrize("layers", [1, 3])
def test_hgrn_turns_and_forgets_above_its_lower_bounds(phase: str, layers: int) -> None:
    kind = MODELS["hgrn"]
    torch.manual_seed(0)
    options = {"width": D, "layers": layers, "phase": phase}
    model = kind(build(kind.settings_class, options, "hgrn"), num_symbols=V, num_labels=C).double()
    assert isinstance(model, HGRN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    symbols = torch.randint(V, (B, 40))
    leaves = list(model.parameters())
    assert_agree(model(symbols), hgrn_by_layers(model, symbols), leaves, EXACT)


def test_real_hgrn_states_are_those_of_fla() -> None:
    kind = MODELS["hgrn"]
    settings = build(kind.settings_class, {"width": D, "phase": "none"}, "hgrn")
    mixer = kind(settings, num_symbols=V, num_labels=C).double().blocks[1].mixer
    inputs = leaf(B, T, D)
    forget = mixer.transition(inputs).gains.unflatten(0, (B, T))
    assert ((forget > 0.5) & (forget < 1)).all(), "the upper of two layers keeps half or more"
    terms = silu(mixer.inputs(inputs)) * (1 - forget)
    expected, last = fla("hgrn", "naive.py").naive_recurrent_hgrn(
        terms, forget.log(), output_final_state=True
    )
    outputs, state = mixer.scan(inputs, mixer.initial_state(B))
    torch.testing.assert_close(state.float(), last, **SINGLE)
    gate = silu(mixer.output_gate(inputs))
    assert_agree(outputs, mixer.output(mixer.norm(expected.double()) * gate), [inputs], SINGLE)


def test_the_complex_layer_of_hgrn_computes_what_that_of_its_authors_does() -> None:
    """Their real and imaginary parts alternate where ours follow each other."""
    found = recorded("hgrn")
    theirs, apart = found.weights, [*range(0, 16, 2), *range(1, 16, 2)]
    weights = {"phases": theirs["theta"].flatten()}
    for ours, name in (("inputs", "input"), ("forget", "lambda"), ("output", "out")):
        for kind in ("weight", "bias"):
            weights[f"{ours}.{kind}"] = theirs[f"{name}_proj.{kind}"]
    for kind in ("weight", "bias"):
        weights[f"inputs.{kind}"] = weights[f"inputs.{kind}"][apart]
        weights[f"output_gate.{kind}"] = theirs[f"gate.{kind}"]
        weights[f"norm.{kind}"] = theirs[f"norm.{kind}"]
    assert len(weights) == len(theirs)
    settings = build(MODELS["hgrn"].settings_class, {"width": 8}, "hgrn")
    bound = torch.tensor(found.settings["lower_bound"])
    assert_computes(HGRNMixer(settings, lambda: bound), weights, "hgrn", "hgru-pytorch")


# --- HGRN2 ---


def test_the_layer_of_hgrn2_computes_what_that_of_fla_does() -> None:
    found = recorded("hgrn2")
    settings = build(MODELS["hgrn2"].settings_class, {"width": 16, "heads": 2}, "hgrn2")
    mixer = HGRN2Mixer(settings, lambda: found.tensors["lower_bound"].double())
    names = {"query": "q", "forget": "f", "value": "i", "output": "o"}
    weights = {
        f"{ours}.weight": found.weights[f"{name}_proj.weight"] for ours, name in names.items()
    }
    weights["norm.weight"] = found.weights["g_norm.weight"]
    assert len(weights) == len(found.weights)
    assert_computes(mixer, weights, "hgrn2", "fla-org")


def matrix_hgrn_by_layers(model: SequenceModel, symbols: Tensor) -> Tensor:
    """The logits of an HGRN2: every value weighed by the gates since it was written."""
    stream = model.embedding.weight[symbols]
    for block, bound in zip(model.blocks, lower_bounds(model), strict=True):
        mixer, x = block.mixer, root_mean_square(block.mixer_norm, stream)
        gates = by_head(bound + (1 - bound) * logistic(x @ mixer.forget.weight.mT))
        q, v = by_head(silu(x @ mixer.query.weight.mT)), by_head(x @ mixer.value.weight.mT)
        read = []
        for i in range(symbols.shape[1]):
            total, decay = torch.zeros(()), torch.ones(())
            for j in range(i, -1, -1):
                score = (q[:, i] * decay * (1 - gates[:, j])).sum(-1, keepdim=True) / K**0.5
                total, decay = total + score * v[:, j], decay * gates[:, j]
            read.append(total.flatten(-2))
        normal = root_mean_square(mixer.norm, torch.stack(read, 1), 1e-5)
        stream = stream + normal @ mixer.output.weight.mT
    return root_mean_square(model.norm, stream) @ model.readout.weight.mT + model.readout.bias


@pytest.mark.parametrize("layers", [1, 3])
def test_hgrn2_is_attention_with_bounded_gates_between(layers: int) -> None:
    model = make("hgrn2", layers=layers)
    symbols = torch.randint(V, (B, 12))
    leaves = list(model.parameters())
    assert_agree(model(symbols), matrix_hgrn_by_layers(model, symbols), leaves, EXACT)


@pytest.mark.parametrize("extreme", [-1e4, 1e4])
def test_extreme_gates_leave_hgrn2_and_its_gradients_finite(extreme: float) -> None:
    model = make("hgrn2", layers=2).float()
    with torch.no_grad():
        for block in model.blocks:
            block.mixer.forget.weight.mul_(extreme)
    logits = model(torch.randint(V, (B, T)))
    gradients = torch.autograd.grad(logits.sum(), list(model.parameters()))
    assert logits.isfinite().all() and all(part.isfinite().all() for part in gradients)


# --- the matrix LSTM ---


def plain_matrix_memory(
    queries: Tensor, keys: Tensor, values: Tensor, write: Tensor, keep: Tensor
) -> Tensor:
    """C and n as the equations have them, beside the running maximum; heads [B, T, N, K]."""
    read = []
    maximum = torch.zeros_like(keep[:, 0])
    memory = torch.zeros(*values[:, 0].shape, keys.shape[-1], dtype=torch.float64)
    total = torch.zeros_like(keys[:, 0])
    for time in range(queries.shape[1]):
        i, f = write[:, time].unsqueeze(-1), keep[:, time].unsqueeze(-1)
        product = values[:, time].unsqueeze(-1) * keys[:, time].unsqueeze(-2)  # v k^T
        memory = f.unsqueeze(-1) * memory + i.unsqueeze(-1) * product
        total = f * total + i * keys[:, time]
        weight = (total * queries[:, time]).sum(-1, keepdim=True).abs()
        answer = (memory @ queries[:, time].unsqueeze(-1)).squeeze(-1)
        maximum = torch.maximum(keep[:, time].log() + maximum, write[:, time].log()).detach()
        size = torch.where(weight > 1, weight, torch.ones_like(weight))
        read.append(answer / (size + 1e-6 * maximum.exp().unsqueeze(-1)))
    return torch.stack(read, 1)


@pytest.mark.parametrize("forget", ["sigmoid", "exponential"])
def test_running_maxima_change_a_reading_of_a_matrix_memory_by_their_epsilon_alone(
    forget: str,
) -> None:
    queries, keys, values = (leaf(B, T, N, K) for _ in range(3))
    logits = leaf(B, T, N)
    keep = logistic(logits) if forget == "sigmoid" else torch.exp(0.2 * logits)
    log_input = leaf(B, T, N, scale=2.0)
    first = torch.zeros(B, N, K, K + 1, dtype=torch.float64)
    read, _, _ = mlstm.remember(
        queries, keys, values, log_input, keep.log(), first, first[..., 0, 0]
    )
    expected = plain_matrix_memory(queries, keys, values, log_input.exp(), keep)
    leaves = [queries, keys, values, logits, log_input]
    assert_agree(read, expected, leaves, EXACT)


def test_both_branches_of_the_normaliser_are_compared() -> None:
    below = mlstm.normalised(torch.tensor([[3.0, -0.25]]), torch.zeros(1))
    above = mlstm.normalised(torch.tensor([[3.0, -6.0]]), torch.zeros(1))
    assert below.item() == pytest.approx(3 / (1 + 1e-6), rel=1e-7)
    assert above.item() == pytest.approx(3 / (6 + 1e-6), rel=1e-7)


@pytest.mark.parametrize("extreme", [-200.0, 200.0])
def test_extreme_input_gates_keep_a_matrix_memory_finite(extreme: float) -> None:
    mixer = make_mixer("mlstm").float()
    with torch.no_grad():
        mixer.gates.bias[:N] = torch.tensor([extreme, -extreme])
    inputs = torch.randn(B, T, D, requires_grad=True)
    outputs = scan(mixer, inputs)
    outputs.sum().backward()
    assert outputs.isfinite().all() and inputs.grad is not None and inputs.grad.isfinite().all()


def spread_over_blocks(weight: Tensor, inputs: Tensor) -> Tensor:
    """Each block of channels through its own matrix: [..., blocks, outputs]."""
    blocks = inputs.unflatten(-1, (weight.shape[0], -1))
    return torch.stack([blocks[..., n, :] @ weight[n] for n in range(len(weight))], -2)


def matrix_memory_layer(mixer: nn.Module, inputs: Tensor) -> Tensor:
    upper, gate = (inputs @ mixer.up.weight.mT).chunk(2, -1)
    mixed = upper if mixer.convolution.filters is None else convolved(mixer.convolution, upper)
    pair = spread_over_blocks(mixer.queries_and_keys.weight, mixed)
    q, k = (part.flatten(-2) for part in pair.chunk(2, -1))
    v = spread_over_blocks(mixer.values.weight, upper).flatten(-2)
    logits = torch.cat([q, k, v], -1) @ mixer.gates.weight.mT + mixer.gates.bias
    keep = logistic(logits[..., N:]) if mixer.forget_kind == "sigmoid" else logits[..., N:].exp()
    q, k, v = by_head(q), by_head(k), by_head(v)
    read = plain_matrix_memory(q, k / q.shape[-1] ** 0.5, v, logits[..., :N].exp(), keep)
    normal = (standardised(read, 1e-5) * mixer.norm.weight).flatten(-2)
    return ((normal + mixer.skip * mixed) * silu(gate)) @ mixer.down.weight.mT


@pytest.mark.parametrize(
    "options", [{}, {"conv": 0, "expand": 1.0, "projection_block": 2}, {"forget": "exponential"}]
)
def test_mlstm_is_a_gated_matrix_memory(options: dict[str, object]) -> None:
    mixer = make_mixer("mlstm", **options)
    if mixer.forget_kind == "exponential":
        with torch.no_grad():
            mixer.gates.bias[N:] = torch.tensor([-0.1, 0.05])
    assert_mixer_follows(mixer, matrix_memory_layer)


# --- the scalar LSTM ---


def scalar_memory_layer(mixer: nn.Module, inputs: Tensor) -> Tensor:
    """c and n as the equations have them, without running maxima, head by head."""
    mixed = inputs if mixer.convolution.filters is None else convolved(mixer.convolution, inputs)
    fast = spread_over_blocks(mixer.input_and_forget.weight, mixed)
    slow = spread_over_blocks(mixer.update_and_output.weight, inputs)
    heads = []
    for n in range(N):
        c = total = h = torch.zeros(B, K, dtype=torch.float64)
        states = []
        for time in range(T):
            back = (h @ mixer.recurrent[n]).chunk(4, -1)
            i, f = fast[:, time, n].chunk(2, -1)
            z, o = slow[:, time, n].chunk(2, -1)
            write = torch.exp(i + back[0])
            keep = f + back[1] + mixer.forget_bias[n]
            keep = logistic(keep) if mixer.forget_kind == "sigmoid" else torch.exp(keep)
            c = keep * c + write * torch.tanh(z + back[2] + mixer.update_bias[n])
            total = keep * total + write
            h = logistic(o + back[3] + mixer.output_bias[n]) * c / total
            states.append(h)
        heads.append(standardised(torch.stack(states, 1), 1e-5) * mixer.norm.weight[n])
    return torch.cat(heads, -1)


@pytest.mark.parametrize("options", [{}, {"conv": 0}, {"forget": "exponential"}])
def test_slstm_is_a_normalised_memory_that_feeds_back(options: dict[str, object]) -> None:
    mixer = make_mixer("slstm", **options)
    if mixer.forget_kind == "exponential":
        with torch.no_grad():
            mixer.forget_bias.sub_(2)
    assert_mixer_follows(mixer, scalar_memory_layer)


@pytest.mark.parametrize("extreme", [-300.0, 300.0])
def test_extreme_gates_keep_a_scalar_memory_finite(extreme: float) -> None:
    recurrent = torch.zeros(1, 1, 4)
    gates = torch.tensor([[[extreme, -extreme, 0.5, 0.0]]]).requires_grad_()
    zeros = torch.zeros(1, 1, 1)
    cell = slstm.Cell(zeros, zeros, zeros, torch.full_like(zeros, -torch.inf))
    for _ in range(5):
        cell = slstm.advance(gates, recurrent, cell, "sigmoid")
    assert cell.hidden.item() == pytest.approx(0.5 * torch.tanh(torch.tensor(0.5)).item())
    cell.hidden.sum().backward()
    assert gates.grad is not None and gates.grad.isfinite().all()


# --- the xLSTM ---


def test_an_xlstm_is_its_blocks_in_turn() -> None:
    model = make("xlstm", layers=5, pattern="mms", norm="none")
    assert isinstance(model, BlockModel)
    kinds = [type(block.mixer).__name__[0] for block in model.blocks]
    assert kinds == ["M", "M", "S", "M", "M"]
    assert [block.mlp is not None for block in model.blocks] == [kind == "S" for kind in kinds]
    symbols = torch.randint(V, (B, T))
    stream = model.embedding.weight[symbols]
    for block in model.blocks:
        matrix = block.mlp is None
        equations = matrix_memory_layer if matrix else scalar_memory_layer
        stream = stream + equations(block.mixer, stream)
        if not matrix:
            _, mlp = block.mlp
            inner = functional.gelu(stream @ mlp.gate.weight.mT) * (stream @ mlp.up.weight.mT)
            stream = stream + inner @ mlp.down.weight.mT
    expected = stream @ model.readout.weight.mT + model.readout.bias
    assert_agree(model(symbols), expected, list(model.parameters()), EXACT)


# --- TTT-Linear ---


def test_ttt_linear_computes_what_the_code_of_its_authors_does() -> None:
    theirs = recorded("ttt-linear").weights
    assert not theirs.pop("learnable_token_idx").any()
    weights = {
        "projection.linear.weight": torch.cat([theirs[f"{part}_proj.weight"] for part in "qkv"]),
        "rate.weight": theirs["learnable_ttt_lr_weight"].squeeze(1),
        "rate.bias": theirs["learnable_ttt_lr_bias"].squeeze(1),
        "first_weight": theirs["W1"],
        "first_bias": theirs["b1"].squeeze(1),
        "gain": theirs["ttt_norm_weight"],
        "shift": theirs["ttt_norm_bias"],
        "norm.weight": theirs["post_norm.weight"],
        "norm.bias": theirs["post_norm.bias"],
        "output.weight": theirs["o_proj.weight"],
    }
    assert len(weights) + 2 == len(theirs)
    assert_computes(recorded_mixer("ttt-linear"), weights, "ttt-linear", "ttt-lm-pytorch")


def test_inner_steps_are_those_of_fla_with_mini_batches_of_one() -> None:
    keys, values = leaf(B, T, N, K), leaf(B, T, N, K)
    rates = leaf(B, T, N, 1)
    gain, shift = leaf(N, K), leaf(N, K)
    weight, bias = leaf(B, N, K, K), leaf(B, N, K)
    _, last_weight, last_bias = fla("ttt", "naive.py").chunk_ttt_linear_ref(
        torch.zeros(B, T, N, K),
        keys.float(),
        values.float(),
        gain,
        shift,
        0.1 * logistic(rates).float(),
        mini_batch_size=1,
        initial_state=weight.float(),
        initial_state_bias=bias.float().unsqueeze(-2),
        output_final_state=True,
    )
    ours = weight, bias
    for time in range(T):
        tokens = keys[:, time], values[:, time], 0.1 * logistic(rates[:, time])
        _, *ours = ttt_linear.learn(
            ttt_linear.Tokens(torch.zeros(B, N, K).double(), *tokens), *ours, gain, shift
        )
    leaves = [keys, values, rates, gain, shift, weight, bias]
    joined = torch.cat([ours[0], ours[1].unsqueeze(-2)], -2)
    assert_agree(joined, torch.cat([last_weight, last_bias], -2).double(), leaves, SINGLE)


def inner_model_by_autograd(mixer: nn.Module, inputs: Tensor) -> Tensor:
    """The inner loss of every token, differentiated by torch."""
    q, k, v = (by_head(part) for part in projected(mixer.projection, inputs).chunk(3, -1))
    rates = logistic(inputs @ mixer.rate.weight.mT + mixer.rate.bias) / K

    def answer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        inner = (x.unsqueeze(-2) @ weight).squeeze(-2) + bias
        return x + standardised(inner, 1e-6) * mixer.gain + mixer.shift

    weight, bias = mixer.first_weight.repeat(B, 1, 1, 1), mixer.first_bias.repeat(B, 1, 1)
    read = []
    for time in range(T):
        loss = (answer(k[:, time], weight, bias) - v[:, time]).square().sum() / 2
        steps = torch.autograd.grad(loss, (weight, bias), create_graph=True)
        rate = rates[:, time].unsqueeze(-1)
        weight, bias = weight - rate.unsqueeze(-1) * steps[0], bias - rate * steps[1]
        read.append(answer(q[:, time], weight, bias))
    joined = torch.stack(read, 1).flatten(-2)
    normal = standardised(joined, 1e-6) * mixer.norm.weight + mixer.norm.bias
    return normal @ mixer.output.weight.mT


@pytest.mark.parametrize("conv", [0, 2])
def test_ttt_linear_descends_the_gradient_of_its_inner_loss(conv: int) -> None:
    assert_mixer_follows(make_mixer("ttt-linear", conv=conv), inner_model_by_autograd)


# --- transitions: where their eigenvalues lie ---


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e3])
def test_the_transition_of_linear_attention_is_the_identity(scale: float) -> None:
    mixer, inputs = make_mixer("linear-attention"), scale * torch.randn(B, 1, D).double()
    (_, state), (_, first) = mixer.scan(inputs, mixer.initial_state(B))[1], mixer.initial_state(B)
    change = torch.randn_like(first)
    (_, moved) = mixer.scan(inputs, ((), first + change))[1]
    torch.testing.assert_close(moved - state, change, rtol=1e-6, atol=1e-6)
    assert (mixer.transition(inputs).each.gains == 1).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_the_eigenvalues_of_gla_lie_between_0_and_1(scale: float) -> None:
    mixer, inputs = make_mixer("gla"), scale * torch.randn(B, 1, D).double()
    gains = mixer.transition(inputs).each.gains
    assert (gains >= 0).all() and (gains <= 1).all()
    assert scale == 1e4 or ((gains > 0) & (gains < 1)).all()
    assert scale < 1e4 or gains.min() < 1e-9, "extreme gates forget everything"


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_the_eigenvalue_of_an_mlstm_head_lies_between_0_and_1(scale: float) -> None:
    mixer, inputs = make_mixer("mlstm", conv=0), scale * torch.randn(B, 1, D).double()
    forget = mixer.transition(inputs).each.gains
    assert forget.shape == (B, N) and (forget >= 0).all() and (forget <= 1).all()
    if scale < 1e4:
        assert ((forget > 0) & (forget < 1)).all()


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_the_eigenvalues_of_hgrn_lie_above_the_bound_at_fixed_phases(scale: float) -> None:
    kind = MODELS["hgrn"]
    options = {"width": D, "layers": 3}
    model = kind(build(kind.settings_class, options, "hgrn"), num_symbols=V, num_labels=C).double()
    assert isinstance(model, HGRN)
    inputs = scale * torch.randn(B, 1, D).double()
    for layer, block in enumerate(model.blocks):
        gains = block.mixer.transition(inputs).gains
        bound = model.lower_bound(layer)
        assert (gains.abs() >= bound - 1e-12).all() and (gains.abs() <= 1 + 1e-12).all()
        if scale < 1e4:
            turns = torch.polar(torch.ones(D).double(), block.mixer.phases.double())
            torch.testing.assert_close(gains / gains.abs(), turns.expand(B, D))
    torch.testing.assert_close(model.lower_bound(2), torch.full((D,), 2 / 3).double())


# --- what the docstrings count ---

D_, N_ = 12, 3
"""A width and heads for which no two terms of a count agree."""


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("linear-attention", 4 * D_**2),
        ("gla", 4 * D_**2 + 24 * D_ + 3 * D_ // 2),
        ("hgrn", 7 * D_**2 + 11 * D_),
        ("hgrn2", 4 * D_**2 + D_),
        ("mlstm", 6 * D_**2 + 2 * D_ * (3 * 4 + 4 + 3 + 6 * N_) + 2 * N_),
        ("slstm", 8 * D_**2 // N_ + 9 * D_),
        ("ttt-linear", 4 * D_**2 + D_ * (D_ // N_ + N_ + 5) + N_),
    ],
)
def test_a_mixer_has_the_parameters_that_its_file_counts(name: str, count: int) -> None:
    kind = MODELS[name]
    heads = {} if name == "hgrn" else {"heads": N_}
    settings = build(kind.settings_class, {"width": D_, "layers": 1} | heads, name)
    (block,) = kind(settings, num_symbols=V, num_labels=C).blocks
    assert sum(parameter.numel() for parameter in block.mixer.parameters()) == count


# --- first weights ---


def make_fresh(name: str, **options: object) -> SequenceModel:
    """A model as it starts."""
    kind = MODELS[name]
    torch.manual_seed(0)
    settings = build(kind.settings_class, {"width": D, "heads": N} | options, name)
    return kind(settings, num_symbols=V, num_labels=C)


def untouched(name: str, **options: object) -> nn.ModuleList:
    return make_fresh(name, **options).blocks


def test_gates_of_the_xlstm_start_open_and_without_feedback() -> None:
    (block,) = untouched("mlstm")
    gates = block.mixer.gates
    assert not gates.weight.any() and gates.bias[N:].tolist() == [3.0, 6.0]
    assert 0 < gates.bias[:N].abs().max() < 1
    first, last = untouched("slstm", layers=2)
    assert not first.mixer.recurrent.any()
    for block, power in ((first, 0.3), (last, 1.6)):
        bias = torch.tensor([5 - 12 * (index / (K - 1)) ** power for index in range(K)])
        torch.testing.assert_close(block.mixer.forget_bias, bias.expand(N, K))


def test_an_inner_model_starts_small_and_learns_at_half_its_rate() -> None:
    (block,) = untouched("ttt-linear", width=64)
    mixer = block.mixer
    assert 0 < mixer.first_weight.std() < 0.03 and not mixer.first_bias.any()
    for linear in (mixer.rate, mixer.projection.linear, mixer.output):
        assert 0.01 < linear.weight.std() < 0.03
    assert not mixer.rate.bias.any()
    _, mlp = block.mlp
    assert mlp.up.weight.shape == (172, 64) and isinstance(mlp.activation, nn.SiLU)


def test_phases_of_hgrn_start_as_falling_frequencies() -> None:
    kind = MODELS["hgrn"]
    settings = build(kind.settings_class, {"width": D}, "hgrn")
    block, _ = kind(settings, num_symbols=V, num_labels=C).blocks
    expected = torch.tensor([10000 ** (-2 * index / D) for index in range(D)])
    torch.testing.assert_close(block.mixer.phases.detach(), expected)


# --- hybrids: blocks of attention and of a recurrent model ---

RECURRENT_BLOCKS = (
    "gated-deltanet:heads=2,key_dim=4,value_dim=4",
    "mamba:state=3",
    "slstm:heads=2",
    "linear-attention:heads=2",
    "hgrn",
)


def hybrid_and_parts(pattern: str, recurrent: str, **options: object) -> tuple[SequenceModel, ...]:
    """A hybrid, and the recurrent model and the Transformer of its blocks, with other weights."""
    options = {"pattern": pattern, "layers": len(pattern), "mlp": 1.5, **options}
    model = make("hybrid", recurrent=recurrent, **options)
    torch.manual_seed(1)
    parts = [
        MODELS[name](settings, num_symbols=V, num_labels=C).double()
        for name, settings in (
            (model.settings.recurrent_name, model.settings.recurrent_settings()),
            ("transformer", model.settings.attention_settings()),
        )
    ]
    return model, *parts


def copied(source: nn.Module, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


@pytest.mark.parametrize("positions", ["none", "rotary", "alibi"])
@pytest.mark.parametrize("recurrent", RECURRENT_BLOCKS)
def test_a_hybrid_is_its_blocks_one_after_the_other(recurrent: str, positions: str) -> None:
    """Recurrent blocks are read symbol by symbol here, and attention by the Transformer's layer."""
    model, other, transformer = hybrid_and_parts("RAR", recurrent, positions=positions)
    copied(model.blocks[0], other.blocks[0])
    copied(model.blocks[2], other.blocks[1])
    copied(model.blocks[1], transformer.blocks[0])
    symbols = torch.randint(V, (B, 19))

    def by_blocks(symbols: Tensor) -> Tensor:
        stream = model.embedding(symbols)
        _, bias = transformer.embedded(symbols)
        for layer in range(3):
            if layer == 1:
                stream = transformer.blocks[0](stream, bias)
                continue
            block = other.blocks[layer // 2]
            state, outputs = block.mixer.initial_state(len(symbols)), []
            for position in stream.unbind(1):
                output, state = block.scan(position, state)
                outputs.append(output)
            stream = torch.stack(outputs, 1)
        return model.readout(model.norm(stream))

    expected, found = by_blocks(symbols), model(symbols)
    torch.testing.assert_close(found, expected, **EXACT)
    weights = torch.randn_like(found)
    (weights * found).sum().backward()
    (weights * expected).sum().backward(inputs=list(other.blocks.parameters()))
    for layer, block in ((0, other.blocks[0]), (2, other.blocks[1])):
        for (name, one), two in zip(
            model.blocks[layer].named_parameters(), block.parameters(), strict=True
        ):
            torch.testing.assert_close(one.grad, two.grad, **EXACT, msg=name)


@pytest.mark.parametrize("bos", [False, True])
def test_a_hybrid_whose_recurrent_blocks_write_nothing_is_the_transformer(bos: bool) -> None:
    model, _, transformer = hybrid_and_parts("RAA", RECURRENT_BLOCKS[0], bos=bos)
    with torch.no_grad():
        model.blocks[0].mixer.output.weight.zero_()
        model.blocks[0].mlp[-1].weight.zero_()
        model.blocks[0].mlp[-1].bias.zero_()
    for name in ("embedding", "norm", "readout"):
        copied(model.get_submodule(name), transformer.get_submodule(name))
    for mine, its in zip(model.blocks[1:], transformer.blocks, strict=True):
        copied(mine, its)
    symbols = torch.randint(V, (B, T))
    torch.testing.assert_close(model(symbols), transformer(symbols), **EXACT)


@pytest.mark.parametrize("recurrent", RECURRENT_BLOCKS)
def test_a_hybrid_whose_attention_writes_nothing_is_the_recurrent_model(recurrent: str) -> None:
    model, other, _ = hybrid_and_parts("RAR", recurrent)
    with torch.no_grad():
        model.blocks[1].output.weight.zero_()
        model.blocks[1].mlp[-1].weight.zero_()
        model.blocks[1].mlp[-1].bias.zero_()
    for name in ("embedding", "norm", "readout"):
        copied(model.get_submodule(name), other.get_submodule(name))
    for mine, its in zip((model.blocks[0], model.blocks[2]), other.blocks, strict=True):
        copied(mine, its)
    symbols = torch.randint(V, (B, T))
    torch.testing.assert_close(model(symbols), other(symbols), **EXACT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "RB"}, "letters R and A"),
        ({"pattern": "RRA"}, "first 2 blocks of the pattern RRA have no A"),
        ({"recurrent": "transformer"}, "transformer is not made of recurrent blocks"),
        ({"recurrent": "hybrid"}, "hybrid is not made of recurrent blocks"),
        ({"recurrent": "lstm"}, "lstm is not made of recurrent blocks"),
        ({"recurrent": "mambo"}, "mambo"),
        ({"recurrent": "kda:beta"}, "'beta' is no option=value of kda alone"),
        ({"recurrent": "kda:width=3"}, "width, .* are the hybrid's"),
        ({"recurrent": "kda:bet=double"}, "unknown key 'bet'"),
        ({"recurrent": "kda:beta=triple"}, "beta"),
        ({"heads": 3}, "heads=3 does not divide width 8"),
        ({"width": 9, "heads": 3}, "3 is odd: take an even width per head"),
    ],
    ids=str,
)
def test_a_hybrid_that_is_none_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make("hybrid", **options)
