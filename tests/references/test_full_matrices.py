"""SLiCE, the full-matrix model and the gated RNNs, held to their equations.

These are written another way in float64, beside exact identities: products of matrices, the matrix
exponential, affinity in the state. Of the last three no code was released.

B batch, T time, D width, H hidden, n matrix size.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from statetrack.models import MODELS, BlockModel, SequenceModel
from statetrack.models._blocks import Mixer
from statetrack.models.full_matrix import FullMatrix
from statetrack.models.slice import SliceMixer
from statetrack.models.state_gated_rnn import StateGatedMixer
from statetrack.models.token_gated_rnn import TokenGatedMixer
from statetrack.settings import build

B, T, D, H, V, C = 3, 19, 6, 5, 4, 3
EXACT = {"rtol": 1e-9, "atol": 1e-10}  # float64 on both sides


def make(name: str, spread: float = 0.1, **options: object) -> SequenceModel:
    """A model in float64, with none of its weights where it started."""
    kind = MODELS[name]
    torch.manual_seed(0)
    model = kind(build(kind.settings_class, options, name), num_symbols=V, num_labels=C).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


def mixer_of(name: str, spread: float = 0.1, **options: object) -> Mixer:
    model = make(name, spread, width=D, **options)
    assert isinstance(model, BlockModel)
    mixer = model.blocks[0].mixer
    assert isinstance(mixer, Mixer)
    return mixer


def outputs_of(mixer: Mixer, inputs: Tensor) -> Tensor:
    return mixer.scan(inputs, mixer.initial_state(len(inputs)))[0]


def random_inputs(num_steps: int = T) -> Tensor:
    return torch.randn(B, num_steps, D, dtype=torch.float64)


def assert_equal_with_gradients(one: Tensor, two: Tensor, leaves: Iterable[Tensor]) -> None:
    """Two results, and their gradients by the leaves, agree; and each leaf has a gradient."""
    torch.testing.assert_close(one, two, **EXACT)
    weights, leaves = torch.randn_like(one), tuple(leaves)
    mine, theirs = (
        torch.autograd.grad((result * weights).sum(), leaves, retain_graph=True)
        for result in (one, two)
    )
    for own, other in zip(mine, theirs, strict=True):
        scale = other.abs().max()
        assert scale > 0
        torch.testing.assert_close(own / scale, other / scale, **EXACT)


# --- SLiCE ---


@pytest.mark.parametrize("first", ["symbol", "learned"])
@pytest.mark.parametrize("block_size", [1, 2, 3, 6])
def test_a_slice_multiplies_by_the_identity_and_a_step_of_its_fields(
    block_size: int, first: str
) -> None:
    mixer = mixer_of("slice", block_size=block_size, dt=0.3, first=first)
    assert isinstance(mixer, SliceMixer)
    inputs, words = random_inputs(), []
    for word in inputs:
        state, outputs = mixer.first, []
        for number, x in enumerate(word):
            if state is None or (first == "symbol" and number == 0):
                assert mixer.first_of_symbol is not None
                state = mixer.first_of_symbol.weight @ x + mixer.first_of_symbol.bias
                outputs.append(state)
                continue
            fields = mixer.fields.weight @ x + mixer.fields.bias
            blocks = fields.view(D // block_size, block_size, block_size)
            state = state + 0.3 * torch.block_diag(*blocks) @ state
            outputs.append(state)
        words.append(torch.stack(outputs))
    assert_equal_with_gradients(outputs_of(mixer, inputs), torch.stack(words), mixer.parameters())


def test_small_steps_of_a_slice_solve_its_differential_equation() -> None:
    """dh = A(x) h dt under a constant input: h = exp(t A(x)) h_0, to first order in dt."""
    errors: list[Tensor] = []
    for num_steps in (200, 400):
        mixer = mixer_of("slice", block_size=3, gain=0.3, dt=1 / num_steps, first="learned")
        assert isinstance(mixer, SliceMixer)
        x = random_inputs(1)
        blocks = mixer.transition(x).blocks  # [B, N, b, b]
        fields = (blocks - torch.eye(3, dtype=torch.float64)) * num_steps
        first = mixer.initial_state(B)[1].unflatten(-1, (2, 3)).unsqueeze(-1)
        solution = (torch.linalg.matrix_exp(fields) @ first).flatten(1)
        outputs = outputs_of(mixer, x.expand(-1, num_steps, -1))[:, -1]
        errors.append((outputs - solution).abs().max())
    assert errors[0] < 0.1 and errors[1] < 0.6 * errors[0]


def test_blocks_of_a_slice_reach_eigenvalues_of_every_kind() -> None:
    mixer = mixer_of("slice", spread=20.0, block_size=3)
    assert isinstance(mixer, SliceMixer)
    values = torch.linalg.eigvals(mixer.transition(random_inputs()).blocks)
    assert (values.imag.abs() > 0.1).any()
    assert (values.real < -1).any() and (values.abs() > 2).any() and (values.abs() < 0.5).any()


def test_diagonal_slices_commute() -> None:
    mixer = mixer_of("slice", block_size=1, spread=1.0, first="learned")
    inputs = random_inputs()
    forwards, backwards = (outputs_of(mixer, x)[:, -1] for x in (inputs, inputs.flip(1)))
    torch.testing.assert_close(forwards, backwards, **EXACT)
    mixer = mixer_of("slice", block_size=2, spread=1.0, first="learned")
    forwards, backwards = (outputs_of(mixer, x)[:, -1] for x in (inputs, inputs.flip(1)))
    assert (forwards - backwards).abs().max() > 1e-3


def test_a_slice_starts_with_the_spread_of_its_source() -> None:
    settings = build(MODELS["slice"].settings_class, {"block_size": 16, "gain": 3.0}, "here")
    model = MODELS["slice"](settings, num_symbols=V, num_labels=C)
    assert isinstance(model, BlockModel)
    fields = model.blocks[0].mixer.fields
    for weights in (fields.weight, fields.bias):
        assert abs(weights.std() - 3 / 16**0.5) < 0.05


# --- the full-matrix model ---


def full_matrix_by_products(model: FullMatrix, symbols: Tensor) -> Tensor:
    """Logits word by word: the whole product, divided by its norm where that is above 1."""
    words = []
    for word in symbols:
        logits = []
        for length in range(1, len(word) + 1):
            product = torch.eye(model.matrices.shape[-1], dtype=model.matrices.dtype)
            for x in reversed(word[:length].tolist()):
                product = product @ model.matrices[x]
            flat = product.reshape(-1)
            norm = flat.square().sum().sqrt()
            flat = flat / norm if norm > 1 else flat
            logits.append(model.readout.weight @ flat + model.readout.bias)
        words.append(torch.stack(logits))
    return torch.stack(words)


@pytest.mark.parametrize("gain", [0.6, 1.0, 1.5])  # ends inside the ball, near it and outside
def test_the_full_matrix_model_reads_the_product_in_the_unit_ball(gain: float) -> None:
    model, symbols = make("full-matrix", size=H, gain=gain), torch.randint(V, (B, 8))
    assert isinstance(model, FullMatrix)
    expected = full_matrix_by_products(model, symbols)
    assert_equal_with_gradients(model(symbols), expected, model.parameters())


@pytest.mark.parametrize("gain", [0.1, 20.0])
def test_long_words_keep_the_full_matrix_model_in_the_range_of_floats(gain: float) -> None:
    model, symbols = make("full-matrix", size=H, gain=gain).float(), torch.randint(V, (B, 200))
    assert isinstance(model, FullMatrix)
    logits = model(symbols)
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    state = torch.eye(H, dtype=torch.float64).expand(B, -1, -1)
    for symbol in symbols.unbind(1):
        state = model.matrices.double()[symbol] @ state
        state = state / torch.linalg.matrix_norm(state)[:, None, None]
    inside = 0.0 if gain < 1 else 1.0
    expected = inside * state.flatten(1) @ model.readout.weight.double().mT + model.readout.bias
    torch.testing.assert_close(logits[:, -1].double(), expected, rtol=1e-3, atol=1e-4)


def test_the_matrices_start_orthogonal() -> None:
    settings = build(MODELS["full-matrix"].settings_class, {"gain": 2.0}, "here")
    model = MODELS["full-matrix"](settings, num_symbols=V, num_labels=C)
    assert isinstance(model, FullMatrix)
    squares = model.matrices @ model.matrices.mT
    torch.testing.assert_close(squares, 4 * torch.eye(32).expand(V, -1, -1), rtol=0, atol=1e-5)


# --- the gated RNNs ---

Gated = TokenGatedMixer | StateGatedMixer


def gated_rnn_by_equations(mixer: Gated, inputs: Tensor, activation: bool) -> Tensor:
    """The recurrence, one word at a time; only the state-gated one has weights on the state."""
    words = []
    for word in inputs:
        state, outputs = torch.zeros(H, dtype=torch.float64), []
        for x in word:
            matrix = (mixer.matrices.map.weight @ x + mixer.matrices.map.bias).view(H, H)
            logit = mixer.gate.weight @ x + mixer.gate.bias
            if isinstance(mixer, StateGatedMixer):
                logit = logit + mixer.gate_of_state.weight @ state
            state = (matrix @ state) / (1 + torch.exp(-logit))
            state = state + mixer.bias.weight @ x + mixer.bias.bias
            state = torch.tanh(state) if activation else state
            outputs.append(mixer.output.weight @ state)
        words.append(torch.stack(outputs))
    return torch.stack(words)


def test_the_token_gated_rnn_follows_its_equation() -> None:
    mixer, inputs = mixer_of("token-gated-rnn", hidden=H), random_inputs()
    assert isinstance(mixer, TokenGatedMixer)
    expected = gated_rnn_by_equations(mixer, inputs, activation=False)
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters())


@pytest.mark.parametrize("activation", ["tanh", "identity"])
def test_the_state_gated_rnn_follows_its_equation(activation: str) -> None:
    mixer = mixer_of("state-gated-rnn", hidden=H, activation=activation)
    assert isinstance(mixer, StateGatedMixer)
    inputs = random_inputs()
    expected = gated_rnn_by_equations(mixer, inputs, activation == "tanh")
    assert_equal_with_gradients(outputs_of(mixer, inputs), expected, mixer.parameters())


def test_a_state_gated_rnn_that_ignores_its_state_is_a_token_gated_one() -> None:
    token = mixer_of("token-gated-rnn", hidden=H)
    state = mixer_of("state-gated-rnn", hidden=H, activation="identity")
    assert isinstance(state, StateGatedMixer)
    weights = {**token.state_dict(), "gate_of_state.weight": torch.zeros(H, H)}
    state.load_state_dict(weights)
    inputs = random_inputs()
    torch.testing.assert_close(outputs_of(state, inputs), outputs_of(token, inputs), **EXACT)


def last_state(mixer: Mixer, inputs: Tensor, first: Tensor) -> Tensor:
    state = mixer.scan(inputs, first)[1]
    assert isinstance(state, Tensor)
    return state


def test_only_the_token_gated_rnn_maps_states_affinely() -> None:
    inputs = random_inputs(4)
    one, two = torch.randn(2, B, H, dtype=torch.float64)
    gaps: list[Tensor] = []
    for name in ("token-gated-rnn", "state-gated-rnn"):
        mixer = mixer_of(name, hidden=H, spread=0.5)
        between = last_state(mixer, inputs, 0.3 * one + 0.7 * two)
        line = 0.3 * last_state(mixer, inputs, one) + 0.7 * last_state(mixer, inputs, two)
        gaps.append((between - line).abs().max())
    assert gaps[0] < 1e-12 and gaps[1] > 1e-3


def test_the_jacobian_of_a_word_is_the_product_of_its_transitions() -> None:
    mixer, inputs = mixer_of("token-gated-rnn", hidden=H, spread=0.5), random_inputs(4)[:1]
    assert isinstance(mixer, TokenGatedMixer)
    jacobian = torch.autograd.functional.jacobian(
        lambda state: last_state(mixer, inputs, state.unsqueeze(0)).squeeze(0),
        torch.randn(H, dtype=torch.float64),
    )
    a, b, c, d = mixer.transition(inputs).dense()
    torch.testing.assert_close(jacobian, d @ c @ b @ a, **EXACT)


@pytest.mark.parametrize("name", ["token-gated-rnn", "state-gated-rnn"])
def test_gates_start_open_and_matrices_with_spectral_radius_one(name: str) -> None:
    settings = build(MODELS[name].settings_class, {"layers": 2, "hidden": 48}, "here")
    model = MODELS[name](settings, num_symbols=V, num_labels=C)
    assert isinstance(model, BlockModel)
    for block in model.blocks:
        assert (block.mixer.gate.bias == 2).all()
        matrices = block.mixer.matrices(torch.randn(20, 64))
        radii = torch.linalg.eigvals(matrices).abs().amax(-1)
        assert 0.85 < radii.mean() < 1.2
