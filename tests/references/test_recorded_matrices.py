"""Models that mix their coordinates, held to numbers that their authors' code computed.

The files are `tests/fixtures/authors/NAME.safetensors`; each test maps the authors' weights onto
ours, by name, and runs our whole model on the recorded inputs.

B batch, T time, D width, N states of a model.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from statetrack.models import MODELS, BlockModel, m2rnn
from statetrack.models.m2rnn import M2RNNMixer
from statetrack.models.pd_ssm import PDSSMMixer
from statetrack.settings import build
from tests.references.recorded import Recorded, recorded, stated_difference


def model_of(name: str, symbols: int, labels: int, **options: object) -> BlockModel:
    """Our model with these settings, in float64, as the numbers are."""
    kind = MODELS[name]
    model = kind(build(kind.settings_class, options, name), num_symbols=symbols, num_labels=labels)
    assert isinstance(model, BlockModel)
    return model.double()


def with_weights(model: BlockModel, weights: dict[str, Tensor]) -> BlockModel:
    """The model with exactly these weights: none is missing, none is left over."""
    model.load_state_dict({name: weight.contiguous() for name, weight in weights.items()})
    return model


def assert_as_recorded(model: BlockModel, found: Recorded, difference: float) -> None:
    """All outputs at once and symbol by symbol, on words of the file."""
    outputs = model(found.inputs)
    assert (outputs - found.outputs).abs().max() <= difference
    state, steps = model.initial_state(len(found.inputs)), []
    for symbol in found.inputs.unbind(1):
        logits, state = model.step(symbol, state)
        steps.append(logits)
    assert (torch.stack(steps, 1) - found.outputs).abs().max() <= difference


# --- SLiCE ---


def slice_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Row 0 of `vf_A` belongs to time, which is our bias."""
    ours = {f"embedding.{key}": theirs[f"embedding.{key}"] for key in ("weight",)}
    for layer in (0, 1):
        fields = theirs[f"blocks.{layer}.LCDE.vf_A"]
        ours[f"blocks.{layer}.mixer.fields.weight"] = fields[1:].mT
        ours[f"blocks.{layer}.mixer.fields.bias"] = fields[0]
        for key in ("weight", "bias"):
            old, new = f"blocks.{layer}.", f"blocks.{layer}."
            ours[f"{new}mixer.first_of_symbol.{key}"] = theirs[f"{old}LCDE.init_layer.{key}"]
            ours[f"{new}stage.0.{key}"] = theirs[f"{old}linear.{key}"]
            ours[f"{new}norm.{key}"] = theirs[f"{old}norm.{key}"]
    ours.update({f"readout.{key}": theirs[f"linear.{key}"] for key in ("weight", "bias")})
    return ours


def test_slice_computes_what_its_authors_code_computes() -> None:
    found = recorded("slice")
    model = model_of("slice", 4, 3, width=6, layers=2, block_size=3)
    assert_as_recorded(
        with_weights(model, slice_weights(found.weights)),
        found,
        stated_difference("slice", "Benjamin-Walker"),
    )


def test_slice_without_its_stage_does_not_compute_what_its_authors_code_computes() -> None:
    found = recorded("slice")
    model = model_of("slice", 4, 3, width=6, layers=2, block_size=3, stage="none")
    weights = slice_weights(found.weights)
    with_weights(model, {name: weight for name, weight in weights.items() if "stage" not in name})
    assert (model(found.inputs) - found.outputs).abs().max() > 0.1


# --- PD-SSM ---


def pd_ssm_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    ours = {f"embedding.{key}": theirs[f"embedding.{key}"] for key in ("weight",)}
    ours |= {f"readout.{key}": theirs[f"readout.{key}"] for key in ("weight", "bias")}
    for layer in (0, 1):
        old, new = f"blocks.{layer}.", f"blocks.{layer}.mixer."
        ours[f"{new}selection.weight"] = theirs[f"{old}S.weight"]
        ours[f"{new}dictionary"] = theirs[f"{old}A_dict"].permute(2, 0, 1)
        ours[f"{new}writings"] = torch.stack([theirs[f"{old}B_re"], theirs[f"{old}B_im"]])
        ours[f"{new}skip"] = theirs[f"{old}D"]
        for key in ("weight", "bias"):
            ours[f"{new}outward.{key}"] = theirs[f"{old}readout.{key}"]
            ours[f"blocks.{layer}.norm.{key}"] = theirs[f"{old}norm.{key}"]
            for part in (0, 2):
                moduli = theirs[f"{old}D_magnitude_generator.{part}.{key}"]
                ours[f"{new}moduli.{part}.{key}"] = moduli
                phases = theirs[f"{old}D_phase_generator.{part}.{key}"]
                ours[f"{new}phases.{part}.{key}"] = phases
    return ours


def test_pd_ssm_computes_what_its_authors_code_computes() -> None:
    found = recorded("pd-ssm")
    model = model_of("pd-ssm", 4, 3, width=5, layers=2, state=5, dictionary=3, one_hot="rows")
    difference = stated_difference("pd-ssm", "IBM")
    assert_as_recorded(with_weights(model, pd_ssm_weights(found.weights)), found, difference)
    (model(found.inputs) * found.tensors["sums"]).sum().backward()
    theirs = pd_ssm_weights(
        {
            name.removeprefix("gradients."): tensor
            for name, tensor in found.tensors.items()
            if name.startswith("gradients.")
        }
    )
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None
        scale = theirs[name].abs().max().clamp_min(1)
        assert (parameter.grad - theirs[name]).abs().max() <= difference * scale, name


def pd_ssm_column_parts(mixer: PDSSMMixer, theirs: dict[str, Tensor]) -> None:
    """Give a mixer the weights of the authors' layer in JAX, and networks of one map as it has."""

    def gate(name: str) -> torch.nn.Sequential:
        linear = torch.nn.Linear(6, 5).double()
        linear.load_state_dict({"weight": theirs[f"W1_{name}"], "bias": theirs[f"b1_{name}"]})
        return torch.nn.Sequential(linear, torch.nn.Sigmoid())

    mixer.moduli, mixer.phases = gate("mag"), gate("pha")
    with torch.no_grad():
        mixer.selection.weight.copy_(theirs["P_selector"])
        mixer.dictionary.copy_(theirs["P_dict"])
        mixer.writings.copy_(torch.stack([theirs["B_re"], theirs["B_im"]]))
        mixer.skip.copy_(theirs["D"])
        mixer.outward.weight.copy_(torch.cat([theirs["C_re"], -theirs["C_im"]], 1))
        mixer.outward.bias.zero_()


def test_pd_ssm_with_columns_computes_what_its_authors_layer_in_jax_computes() -> None:
    found = recorded("pd-ssm-columns")
    (mixer,) = model_of("pd-ssm", 4, 3, width=6, state=5, dictionary=3).mixers
    assert isinstance(mixer, PDSSMMixer)
    pd_ssm_column_parts(mixer, found.weights)
    zeros = torch.zeros_like(mixer.initial_state(3))  # where their layer starts
    outputs, _ = mixer.scan(found.inputs, zeros)
    difference = stated_difference("pd-ssm", "JAX")
    assert (outputs - found.outputs).abs().max() <= difference
    (outputs * found.tensors["sums"]).sum().backward()
    gradients = {
        "P_dict": mixer.dictionary.grad,
        "P_selector": mixer.selection.weight.grad,
        "W1_mag": mixer.moduli[0].weight.grad,
        "W1_pha": mixer.phases[0].weight.grad,
        "D": mixer.skip.grad,
        "C_re": mixer.outward.weight.grad[:, :5],
    }
    for name, gradient in gradients.items():
        theirs = found.tensors[f"gradients.{name}"]
        assert (gradient - theirs).abs().max() <= difference, name


@pytest.mark.parametrize("one_hot", ["columns", "rows"])
def test_transitions_of_pd_ssm_are_what_it_multiplies_its_state_by(one_hot: str) -> None:
    torch.manual_seed(0)
    model = model_of("pd-ssm", 4, 3, width=6, state=5, one_hot=one_hot)
    (mixer,) = model.mixers
    assert isinstance(mixer, PDSSMMixer)
    inputs = torch.randn(3, 1, 6, dtype=torch.float64)
    one, two = torch.randn(2, 3, 5, 2, dtype=torch.float64)
    after, other = (mixer.scan(inputs, state)[1] for state in (one, two))
    matrices = mixer.transition(inputs).dense()
    moved = (matrices @ (one - two).flatten(1).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close((after - other).flatten(1), moved)


# --- MinMax ---


def minmax_weights(theirs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The blocks and the last norm; the author's backbone has neither embedding nor readout."""
    ours = {f"norm.{key}": theirs[f"postlayers_norm.{key}"] for key in ("weight", "bias")}
    for layer in (0, 1):
        for key in ("weight", "bias"):
            old, new = f"layers.{layer}.", f"blocks.{layer}.mixer."
            ours[f"{new}convolution_norm.{key}"] = theirs[f"{old}norm_conv.{key}"]
            ours[f"{new}convolution.{key}"] = theirs[f"{old}conv.conv_fn.{key}"]
            ours[f"{new}mlp.0.{key}"] = theirs[f"{old}norm_ffn.{key}"]
            gate, up = theirs[f"{old}ffn.proj_up.{key}"].chunk(2)
            ours[f"{new}mlp.1.gate.{key}"], ours[f"{new}mlp.1.up.{key}"] = gate, up
            ours[f"{new}mlp.1.down.{key}"] = theirs[f"{old}ffn.proj_down.{key}"]
            ours[f"{new}norm.{key}"] = theirs[f"{old}norm_neuron.{key}"]
            bounds = [theirs[f"{old}neuron.{part}.{key}"] for part in ("r", "s", "o_g")]
            ours[f"{new}inward.{key}"] = torch.cat(bounds)
            ours[f"{new}outward.{key}"] = theirs[f"{old}neuron.o.{key}"]
    return ours


def test_minmax_computes_what_its_authors_code_computes() -> None:
    found = recorded("minmax")
    model = model_of("minmax", 4, 3, width=6, layers=2, state=5)
    missing = model.load_state_dict(minmax_weights(found.weights), strict=False)
    assert not missing.unexpected_keys
    assert {name.partition(".")[0] for name in missing.missing_keys} == {"embedding", "readout"}
    stream, steps = found.inputs, []
    states = list(model.initial_state(len(stream)))
    for x in stream.unbind(1):
        for number, block in enumerate(model._blocks()):
            x, states[number] = block.scan(x, states[number])  # of [B, D]: one step
        steps.append(model.norm(x))
    for block in model._blocks():
        stream, _ = block.scan(stream, block.mixer.initial_state(len(stream)))
    for outputs in (model.norm(stream), torch.stack(steps, 1)):
        difference = (outputs - found.outputs).abs().max()
        assert difference <= stated_difference("minmax", "minmaxrnc")


def test_minmax_starts_as_its_authors_code_starts() -> None:
    torch.manual_seed(0)
    model = model_of("minmax", 4, 3, width=256, layers=2, state=128)
    small = (2 / (5 * 256)) ** 0.5
    spreads = {"embedding": small, "readout": small}
    for block in model._blocks():
        weights = dict(block.mixer.named_parameters())
        expected = {
            "convolution.weight": small / 2**0.5,
            "mlp.1.gate.weight": small,
            "mlp.1.up.weight": small,
            "mlp.1.down.weight": 1 / 333**0.5,  # 2 / (2 layers sqrt(1.3 x 256))
            "inward.weight": small,
            "outward.weight": 1 / 128**0.5,
        }
        for name, spread in expected.items():
            assert weights[name].std().item() == pytest.approx(spread, rel=0.05), name
        assert not any(weights[name].any() for name in weights if name.endswith("bias"))
    for name, spread in spreads.items():
        assert getattr(model, name).weight.std().item() == pytest.approx(spread, rel=0.15)


def test_powers_of_any_word_settle_in_minmax() -> None:
    """So no label can tell odd powers from even ones: the model has only star-free languages."""
    torch.manual_seed(0)
    model = model_of("minmax", 3, 2, width=8, layers=3, state=6)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))
    for length in (1, 2, 3):
        words = torch.randint(3, (16, length))
        logits = model(words.repeat(1, 12)).unflatten(1, (12, length))
        settled = logits[:, 8:]
        torch.testing.assert_close(settled, settled[:, :1].expand_as(settled))


# --- xLSTM ---


def xlstm_weights(theirs: dict[str, Tensor], heads: int) -> dict[str, Tensor]:
    """A language model of an mLSTM block and an sLSTM block; biases that it lacks are 0."""
    stack = "xlstm_block_stack."
    width = theirs["token_embedding.weight"].shape[1]
    zeros, size = torch.zeros(width).double(), width // heads
    ours = {
        "embedding.weight": theirs["token_embedding.weight"],
        "readout.weight": theirs["lm_head.weight"],
        "readout.bias": torch.zeros(len(theirs["lm_head.weight"])),
        "norm.weight": 1 + theirs[f"{stack}post_blocks_norm.weight"],
        "norm.bias": zeros,
    }
    for layer in (0, 1):
        ours[f"blocks.{layer}.mixer_norm.weight"] = (
            1 + theirs[f"{stack}blocks.{layer}.xlstm_norm.weight"]
        )
        ours[f"blocks.{layer}.mixer_norm.bias"] = zeros

    old, new = f"{stack}blocks.0.xlstm.", "blocks.0.mixer."
    ours[f"{new}up.weight"] = theirs[f"{old}proj_up.weight"]
    ours[f"{new}down.weight"] = theirs[f"{old}proj_down.weight"]
    ours[f"{new}skip"] = theirs[f"{old}learnable_skip"]
    pair = [theirs[f"{old}{part}_proj.weight"].mT for part in ("q", "k")]
    ours[f"{new}queries_and_keys.weight"] = torch.cat(pair, -1)
    ours[f"{new}values.weight"] = theirs[f"{old}v_proj.weight"].mT
    norm = 1 + theirs[f"{old}mlstm_cell.outnorm.weight"]
    ours[f"{new}norm.weight"] = norm.view(heads, -1)
    for key in ("weight", "bias"):
        ours[f"{new}convolution.filters.{key}"] = theirs[f"{old}conv1d.conv.{key}"]
        gates = [theirs[f"{old}mlstm_cell.{gate}gate.{key}"] for gate in "if"]
        ours[f"{new}gates.{key}"] = torch.cat(gates)

    old, new = f"{stack}blocks.1.xlstm.", "blocks.1.mixer."
    for key in ("weight", "bias"):
        ours[f"{new}convolution.filters.{key}"] = theirs[f"{old}conv1d.conv.{key}"]
    # The authors' layer hands the outputs of `fgate` to its cell as gate i, of `igate` as f.
    gates = [theirs[f"{old}{gate}gate.weight"].mT for gate in "fizo"]
    ours[f"{new}input_and_forget.weight"] = torch.cat(gates[:2], -1)
    ours[f"{new}update_and_output.weight"] = torch.cat(gates[2:], -1)
    recurrent = theirs[f"{old}slstm_cell._recurrent_kernel_"]  # [heads, 4 size to, size from]
    ours[f"{new}recurrent"] = recurrent.mT
    biases = theirs[f"{old}slstm_cell._bias_"].view(4, heads, size)
    ours[f"{new}forget_bias"], ours[f"{new}update_bias"], ours[f"{new}output_bias"] = biases[1:]
    ours[f"{new}norm.weight"] = (1 + theirs[f"{old}group_norm.weight"]).view(heads, size)
    ours["blocks.1.mlp.0.weight"] = 1 + theirs[f"{stack}blocks.1.ffn_norm.weight"]
    ours["blocks.1.mlp.0.bias"] = zeros
    gate, up = theirs[f"{stack}blocks.1.ffn.proj_up.weight"].chunk(2)
    ours["blocks.1.mlp.1.gate.weight"], ours["blocks.1.mlp.1.up.weight"] = gate, up
    ours["blocks.1.mlp.1.down.weight"] = theirs[f"{stack}blocks.1.ffn.proj_down.weight"]
    return ours


@pytest.fixture(scope="module")
def xlstm() -> BlockModel:
    model = model_of("xlstm", 4, 4, width=8, heads=2, mlp=11 / 8)
    return with_weights(model, xlstm_weights(recorded("xlstm").weights, 2))


def test_an_xlstm_computes_what_its_authors_code_computes(xlstm: BlockModel) -> None:
    assert_as_recorded(xlstm, recorded("xlstm"), stated_difference("xlstm", "NX-AI"))


@pytest.mark.parametrize(
    ("name", "layer", "outputs"),
    [("mlstm", 0, "mlstm_by_steps"), ("slstm", 1, "slstm"), ("xlstm", 0, "mlstm_in_parallel")],
)
def test_layers_of_an_xlstm_compute_what_those_of_its_authors_code_compute(
    xlstm: BlockModel, name: str, layer: int, outputs: str
) -> None:
    tensors, mixer = recorded("xlstm").tensors, xlstm.mixers[layer]
    ours, _ = mixer.scan(tensors["layer_inputs"], mixer.initial_state(2))
    assert (ours - tensors[outputs]).abs().max() <= stated_difference(name, "NX-AI")


@pytest.mark.parametrize("name", ["mlstm", "slstm", "xlstm"])
def test_the_frame_of_the_xlstm_family_starts_as_that_of_its_authors_code(name: str) -> None:
    torch.manual_seed(0)
    model = model_of(name, 64, 64, width=128, layers=2)
    small = (2 / (5 * 128)) ** 0.5
    for module in (model.embedding, model.readout):
        assert module.weight.std().item() == pytest.approx(small, rel=0.05)
    assert not model.readout.bias.any()
    for block in model._blocks():
        if block.mlp is not None:
            gated = block.mlp[1]
            assert gated.up.weight.shape == (166, 128) and gated.up.bias is None
            assert gated.up.weight.std().item() == pytest.approx(small, rel=0.05)
            assert gated.down.weight.std().item() == pytest.approx(1 / 128**0.5, rel=0.05)


# --- minGRU ---


def test_min_gru_computes_what_another_implementation_computes() -> None:
    found = recorded("min-gru")
    (mixer,) = model_of("min-gru", 4, 3, width=6).mixers
    theirs = found.weights
    weights = {"inward": theirs["to_hidden_and_gate.weight"], "outward": theirs["to_out.weight"]}
    mixer.load_state_dict({f"{name}.weight": weight for name, weight in weights.items()})
    outputs, _ = mixer.scan(found.inputs, mixer.initial_state(3))
    assert (outputs - found.outputs).abs().max() <= stated_difference("min-gru", "lucidrains")


@pytest.mark.parametrize("candidate", ["positive", "linear"])
def test_min_gru_mixes_its_state_with_its_candidate(candidate: str) -> None:
    torch.manual_seed(0)
    (mixer,) = model_of("min-gru", 4, 3, width=6, candidate=candidate).mixers
    inputs, h = 3 * torch.randn(1, 9, 6).double(), torch.zeros(9).double()
    outputs, _ = mixer.scan(inputs, mixer.initial_state(1))
    for x, output in zip(inputs[0], outputs[0], strict=True):
        for number, (row, gate) in enumerate(zip(*mixer.inward.weight.split(9), strict=True)):
            u, z = (row * x).sum(), 1 / (1 + torch.exp(-(gate * x).sum()))
            if candidate == "positive":
                u = u + 0.5 if u >= 0 else 1 / (1 + torch.exp(-u))
            h[number] = (1 - z) * h[number] + z * u
        torch.testing.assert_close(mixer.outward.weight @ h, output, rtol=1e-9, atol=1e-10)


# --- M2RNN ---


def test_m2rnn_computes_what_its_authors_code_computes() -> None:
    found = recorded("m2rnn")
    given = {name: found.tensors[f"inputs.{name}"] for name in ("q", "v", "xf", "h0")}
    outputs, last = m2rnn.run(
        given["q"], found.inputs, given["v"], given["xf"], found.weights["W"], given["h0"]
    )
    difference = stated_difference("m2rnn", "flash-model-architectures")
    assert (outputs - found.outputs).abs().max() <= difference
    assert (last - found.tensors["last"]).abs().max() <= difference


@pytest.mark.parametrize("conv", [0, 3])
def test_m2rnn_follows_its_equations(conv: int) -> None:
    """Head by head and row by row, one word at a time."""
    torch.manual_seed(0)
    sizes = {"heads": 2, "key_size": 3, "value_size": 4}
    (mixer,) = model_of("m2rnn", 4, 3, width=6, conv=conv, **sizes).mixers
    assert isinstance(mixer, M2RNNMixer)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    inputs = torch.randn(2, 9, 6).double()
    outputs, _ = mixer.scan(inputs, mixer.initial_state(2))
    for word, expected in zip(inputs, outputs, strict=True):
        written = word @ mixer.written.linear.weight.mT
        if conv:
            filters = mixer.written.convolution.filters
            before = torch.cat([torch.zeros(conv - 1, written.shape[1]), written])
            taps = (before[tap : tap + 9] * filters.weight[:, 0, tap] for tap in range(conv))
            assert filters.bias is None
            written = sum(taps)
            written = written / (1 + torch.exp(-written))
        rows = torch.zeros(2, 3, 4).double()
        for x, parts, output in zip(word, written, expected, strict=True):
            q, k, v = parts[:6].view(2, 3), parts[6:12].view(2, 3), parts[12:].view(2, 4)
            read = []
            for head in range(2):
                rate = torch.log(
                    1 + torch.exp(mixer.forget.weight[head] @ x + mixer.forget_bias[head])
                )
                keep = torch.exp(-torch.exp(mixer.log_rates[head]) * rate)
                new = [
                    keep * row
                    + (1 - keep) * torch.tanh(mixer.weight[head].mT @ row + key * v[head])
                    for row, key in zip(rows[head], k[head], strict=True)
                ]
                rows[head] = torch.stack(new)
                read.append(q[head] @ rows[head] + mixer.skip[head] * v[head])
            gate = mixer.gate.weight @ x
            y = torch.cat(read) * gate / (1 + torch.exp(-gate))
            y = y / (y.square().mean() + 1e-6).sqrt() * mixer.norm.weight
            difference = (mixer.output.weight @ y - output).abs().max()
            assert difference < stated_difference("m2rnn", "equations")


def test_one_row_of_m2rnn_is_an_elman_network_where_it_forgets_all() -> None:
    """On which its prediction rests: H_t = tanh(H_{t-1} W + k v), with k v of any signs."""
    torch.manual_seed(0)
    terms, weight = 5 * torch.randn(2, 11, 4).double(), torch.randn(4, 4).double()
    keys = torch.full((2, 11, 1, 1), 1000.0).double()
    values = terms.unsqueeze(2) / 1000
    assert values.min() > torch.nn.functional.silu(torch.linspace(-3, 0, 100)).min()
    silent = torch.zeros(2, 11, 1).double()
    zeros = torch.zeros(2, 1, 1, 4).double()
    read, _ = m2rnn.run(torch.ones_like(keys), keys, values, silent, weight[None], zeros)
    network = torch.nn.RNN(4, 4, batch_first=True).double()
    with torch.no_grad():
        network.weight_ih_l0.copy_(torch.eye(4))
        network.weight_hh_l0.copy_(weight.mT)
        network.bias_ih_l0.zero_()
        network.bias_hh_l0.zero_()
    torch.testing.assert_close(read.squeeze(2), network(terms)[0])


def test_m2rnn_starts_as_its_authors_code_starts() -> None:
    torch.manual_seed(0)
    (mixer,) = model_of("m2rnn", 4, 3, heads=500, key_size=1, value_size=2).mixers
    assert isinstance(mixer, M2RNNMixer)
    assert torch.equal(mixer.weight, torch.eye(2).double().expand(500, -1, -1))
    assert (mixer.skip == 1).all()
    rates, steps = mixer.log_rates.exp(), torch.nn.functional.softplus(mixer.forget_bias)
    assert 0 < rates.min() < 1 and 15 < rates.max() < 16
    assert 0.00099 < steps.min() < 0.0015 and 0.07 < steps.max() < 0.1001
