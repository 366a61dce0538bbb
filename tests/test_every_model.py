"""Contracts that every registered model keeps; a new model is tested by being there.

R replicas, B batch, T time, V symbols, C labels, H hidden.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError
from statetrack.models import (
    MODELS,
    LinearModel,
    LinearSettings,
    RecurrentModel,
    SequenceModel,
    check_model,
    num_parameters,
    recurrence_of,
    state_size,
)
from statetrack.models._checking import EVERY, FIRST, REGISTERED, SCANNING, STEPPING
from statetrack.ops import native
from statetrack.settings import build
from statetrack.training import DataSettings, Population, Replica, TrainSettings
from statetrack.training.population import Optimiser

B, T, V, C = 3, 11, 5, 7
FEW = 5
"""Symbols of a word where more of them would only repeat what is asked of each."""

CPU = torch.device("cpu")

NAMES = list(MODELS)
RECURRENT = [name for name in NAMES if issubclass(MODELS[name], RecurrentModel)]
LINEAR = [name for name in NAMES if issubclass(MODELS[name], LinearModel)]
NAMES_OF_THE_COMMAND = {"model", "config", "protocol", "out", "resume", "plugin", "help"}


def _one_of_each_class(names: list[str]) -> set[str]:
    """The first model of each class of recurrence."""
    first: dict[type, str] = {}
    for name in names:
        first.setdefault(type(recurrence_of(MODELS[name].settings_class())), name)
    return {*first.values()}


QUICK = _one_of_each_class(NAMES)
every_model = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.quick] * (name in QUICK)) for name in NAMES]
)
every_recurrent_model = pytest.mark.parametrize("name", RECURRENT)
every_linear_model = pytest.mark.parametrize("name", LINEAR)


def make(name: str, seed: int = 0, **options: object) -> SequenceModel:
    """A model of a seed, with its defaults but for `options`."""
    kind = MODELS[name]
    torch.manual_seed(seed)
    return kind(build(kind.settings_class, options, name), num_symbols=V, num_labels=C)


def generic(name: str, **options: object) -> SequenceModel:
    """A model in float64, in evaluation, none of whose weights is where it started."""
    model = make(name, **options).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def words(*shape: int) -> Tensor:
    return torch.randint(V, shape)


def trained_sum(logits: Tensor) -> Tensor:
    """A number that depends on every logit in a different way."""
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    return (logits * weights.to(logits.dtype)).sum()


# --- what a model says of itself ---


@every_model
def test_the_file_is_named_after_the_model(name: str) -> None:
    assert Path(inspect.getfile(MODELS[name])).stem.replace("_", "-") == name


@every_model
def test_the_module_gives_the_equation_and_its_source(name: str) -> None:
    text = sys.modules[MODELS[name].__module__].__doc__ or ""
    assert re.search(r"^ {4}\S.* = ", text, re.MULTILINE), "no indented line with an equation"
    source = re.search(r"^Source: (.*?)(\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    assert source, "no paragraph that begins with `Source:`"
    assert re.search(r"arXiv:\d{4}\.\d{4,5}|doi:10\.", source[1]), "no arXiv id or doi"


@every_model
def test_the_class_says_its_family_and_source(name: str) -> None:
    model = MODELS[name]
    assert model.family and (model.__doc__ or "").strip()
    assert re.search(r"arXiv:\d{4}\.\d{4,5}|doi:10\.", model.source)


@every_model
def test_every_setting_has_a_default_and_a_sentence_of_help(name: str) -> None:
    for key, field in MODELS[name].settings_class.model_fields.items():
        assert not field.is_required(), key
        assert field.description and field.description.rstrip().endswith("."), key


@every_model
def test_no_setting_has_the_name_of_another_option(name: str) -> None:
    others = NAMES_OF_THE_COMMAND | {*TrainSettings.model_fields, *DataSettings.model_fields}
    assert not others & set(MODELS[name].settings_class.model_fields)


@every_model
def test_the_training_defaults_are_valid_training_settings(name: str) -> None:
    build(TrainSettings, MODELS[name].training_defaults, name)


# --- what every model computes ---


@every_recurrent_model
@pytest.mark.parametrize("kernel", ["torch", "auto"])
@pytest.mark.parametrize("num_states", [1, B - 1, B + 1])
def test_a_state_of_other_words_is_refused(name: str, kernel: str, num_states: int) -> None:
    """Loops check no bounds; a state of one word may be that of all."""
    takes = "kernel" in MODELS[name].settings_class.model_fields
    model = make(name, **({"kernel": kernel} if takes else {}))
    assert isinstance(model, RecurrentModel)
    symbols, state = words(B, FEW), model.initial_state(num_states)
    try:
        logits, _ = model.scan(symbols, state)
    except (AssertionError, IndexError, RuntimeError, ValueError):
        return
    assert num_states == 1
    torch.testing.assert_close(logits, model(symbols), rtol=1e-4, atol=1e-4)


@every_model
def test_a_model_keeps_every_property(name: str) -> None:
    """Shapes, causality, gradients, replicas, steps and pieces: what `check_model` checks."""
    findings = check_model(MODELS[name], num_symbols=V, num_labels=C)
    assert [finding for finding in findings if not finding.ok] == []
    expected = {*FIRST, *EVERY, *REGISTERED} | (
        {*STEPPING, *SCANNING} if name in RECURRENT else set()
    )
    assert {finding.name for finding in findings} == expected
    notes = [finding.detail for finding in findings if finding.detail]
    together = make(name).vectorises_on(torch.device("cpu"))
    assert not notes if together else len(notes) == 1


@every_model
def test_a_model_computes_on_the_device_of_its_weights_without_reading_values(name: str) -> None:
    """Torch's device `meta` has shapes and no values: a tensor made elsewhere is an error."""
    with torch.device("meta"):
        model, symbols = make(name), torch.zeros(B, FEW, dtype=torch.int64)
    logits = model(symbols)
    assert logits.is_meta and logits.shape == (B, FEW, C) and logits.dtype == torch.float32
    logits.sum().backward()
    assert all(p.grad is not None and p.grad.is_meta for p in model.parameters())
    if isinstance(model, RecurrentModel):
        model.eval()
        with torch.no_grad():
            scanned, state = model.scan(symbols, model.initial_state(B))
            stepped, _ = model.step(symbols[:, 0], state)
        assert scanned.shape == (B, FEW, C) and stepped.shape == (B, C)


@every_model
def test_a_population_computes_on_the_device_of_its_weights(name: str) -> None:
    together = Population(lambda: make(name), REPLICAS, torch.device("meta"))
    logits = together(torch.zeros(len(REPLICAS), B, FEW, dtype=torch.int64, device="meta"))
    assert logits.is_meta and logits.shape == (len(REPLICAS), B, FEW, C)
    logits.sum().backward()


@every_model
def test_bfloat16_autocast_trains_to_finite_logits_and_gradients(name: str) -> None:
    model = make(name)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(words(B, T))
    assert logits.isfinite().all()
    trained_sum(logits.float()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@every_model
def test_no_words_and_empty_words_have_no_logits_and_no_gradient(name: str) -> None:
    model = make(name)
    for shape in ((0, FEW), (B, 0)):
        logits = model(words(*shape))
        assert logits.shape == (*shape, C)
        logits.sum().backward()
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


@every_model
@pytest.mark.parametrize("symbol", [-1, V])
def test_a_number_that_is_no_symbol_is_refused(name: str, symbol: int) -> None:
    symbols = words(B, FEW)
    symbols[1, 3] = symbol
    with pytest.raises(IndexError, match=f"a symbol is not in 0 to {V - 1}"):
        make(name)(symbols)
    with pytest.raises(TypeError, match="symbols are whole numbers"):
        make(name)(words(B, FEW).float())


@every_model
def test_weights_in_half_precision_work_or_are_refused_in_words(name: str) -> None:
    model = make(name).to(torch.bfloat16)
    try:
        assert model(words(B, FEW)).isfinite().all()
    except SettingsError as problem:
        assert "keep the weights in float32" in str(problem)


# --- hooks on the parts of a model, which loops read the weights of ---


@every_model
def test_a_part_with_a_hook_is_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every way of reading and by loops too: so is each part that has weights and no parts."""
    monkeypatch.setattr(native, "LEAST_ROWS", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    fields = MODELS[name].settings_class.model_fields
    options = {"mlp": 1.0} if "mlp" in fields else {}
    kernels = [{"kernel": kernel} for kernel in ("torch", "native") if "kernel" in fields]
    plain, *by_loops = (generic(name, **options, **kernel) for kernel in kernels or [{}])
    symbols = words(2, FEW)
    for part, module in plain.named_modules():
        called, logits = read_without(plain, part, symbols)
        if not any(called):
            assert [*module.children()] or not [*module.parameters()], f"{part} is never called"
            continue
        assert all(called), f"{part} is called in some ways of reading alone"
        for model in by_loops:
            called, found = read_without(model, part, symbols)
            assert all(called), f"loops do not call {part}"
            torch.testing.assert_close(found, logits)


def read_without(
    model: SequenceModel, part: str, symbols: Tensor
) -> tuple[list[bool], list[Tensor]]:
    """Whether a part is called in each way of reading, and logits, where a hook makes it zero."""
    seen: list[object] = []

    def hook(module: nn.Module, _: object, output: object) -> Tensor | None:
        seen.append(module)
        return output * 0 if isinstance(output, Tensor) else None

    handle = model.get_submodule(part).register_forward_hook(hook)
    ways = [lambda: model(symbols)]
    if part and isinstance(model, RecurrentModel):
        first = model.initial_state(len(symbols))
        ways += [lambda: model.scan(symbols, first)[0], lambda: model.step(symbols[:, 0], first)[0]]
    called, logits = [], []
    for way in ways:
        seen.clear()
        logits.append(way())
        called.append(bool(seen))
    handle.remove()
    return called, logits


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
def test_hooks_of_every_kind_are_called(kind: str) -> None:
    model, called = make("lstm"), list[nn.Module]()
    register = getattr(model.network, f"register_{kind}_hook")
    register(lambda module, *_: called.append(module))
    model(words(B, T)).sum().backward()
    assert called == [model.network]


def test_a_linear_model_has_a_linear_readout() -> None:
    model = make("bilinear").eval()
    assert isinstance(model, LinearModel)
    model.readout = nn.Sequential(model.readout)  # type: ignore[assignment]
    symbols, first = words(B, T), model.initial_state(B)
    for read in (lambda: model(symbols), lambda: model.scan(symbols, first)):
        with pytest.raises(TypeError, match=r"its readout is a Sequential.* is an nn\.Linear"):
            read()


# --- a population is its replicas, each alone ---

REPLICAS = tuple(Replica(index, seed, 3e-3) for index, seed in enumerate((5, 0, 9)))


def population(name: str) -> Population:
    kind = MODELS[name]
    settings = kind.settings_class()
    return Population(lambda: kind(settings, num_symbols=V, num_labels=C).double(), REPLICAS, CPU)


@every_model
def test_a_population_trained_for_three_steps_is_each_replica_trained_alone(name: str) -> None:
    together, batches = population(name), words(3, len(REPLICAS), B, FEW)
    targets = torch.randn(len(REPLICAS), B, FEW, C, dtype=torch.float64)
    settings = TrainSettings(steps=3, schedule="constant")
    optimiser = Optimiser(together, settings, {})
    for step, symbols in enumerate(batches):
        (together(symbols) - targets).square().sum().backward()
        optimiser.step(step)
    for row, replica in enumerate(REPLICAS):
        alone = make(name, replica.seed).double()
        betas = (settings.beta1, settings.beta2)
        adam = torch.optim.Adam(alone.parameters(), lr=replica.lr, betas=betas)
        for symbols in batches:
            adam.zero_grad()
            (alone(symbols[row]) - targets[row]).square().sum().backward()
            adam.step()
        for key, parameter in alone.named_parameters():
            trained = together.parameters[key][row]
            torch.testing.assert_close(trained, parameter, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "part"),
    [("gru", "embedding"), ("gru", "network"), *((name, "readout") for name in ("gru", *LINEAR))],
)
def test_a_hook_sees_one_replica_at_a_time(name: str, part: str) -> None:
    def with_hook() -> SequenceModel:
        kind = MODELS[name]
        model = kind(kind.settings_class(), num_symbols=V, num_labels=C)
        model.get_submodule(part).register_forward_hook(by_word)
        return model

    def by_word(_: nn.Module, __: object, output: object) -> Tensor | None:
        return output - output.mean(0, keepdim=True) if isinstance(output, Tensor) else None

    symbols, apart = words(len(REPLICAS), B, FEW), []
    together = Population(with_hook, REPLICAS, CPU)(symbols)
    for replica, own in zip(REPLICAS, symbols, strict=True):
        torch.manual_seed(replica.seed)
        apart.append(with_hook()(own))
    torch.testing.assert_close(together, torch.stack(apart))


# --- linear models: one operator per symbol ---


def linear(name: str, **options: object) -> LinearModel:
    model = generic(name, **options)
    assert isinstance(model, LinearModel)
    return model


def by_matrix_products(model: LinearModel, symbols: Tensor) -> Tensor:
    """The logits of words [B, T], matrix by matrix: what a linear model claims to compute."""
    matrices, table = model.operators().dense(), model.additive_table()
    states = []
    for word, state in zip(symbols, model.initial_state(len(symbols)), strict=True):
        for x in word:
            state = matrices[x] @ state
            state = state if table is None else state + table[x]
            states.append(state)
    return model.readout(torch.stack(states)).unflatten(0, symbols.shape)


@every_linear_model
@pytest.mark.parametrize("embed_dim", [0, 4])
@pytest.mark.parametrize("additive", ["none", "constant", "input"])
def test_forward_is_the_readout_of_a_product_of_matrices(
    name: str, additive: str, embed_dim: int
) -> None:
    symbols = words(B, T)
    for first in ("learned", "fixed"):
        for readout_bias in (False, True):
            model = linear(
                name,
                additive=additive,
                embed_dim=embed_dim,
                first=first,
                readout_bias=readout_bias,
            )
            learned = {key for key, _ in model.named_parameters()}
            assert ("first" in learned) == (first == "learned")
            assert ("readout.bias" in learned) == readout_bias
            torch.testing.assert_close(
                model(symbols), by_matrix_products(model, symbols), rtol=1e-9, atol=1e-9
            )


@every_linear_model
def test_operators_apply_as_their_matrices_do(name: str) -> None:
    operators = linear(name).operators()
    matrices = operators.dense()
    states = torch.randn(V, matrices.shape[-1], dtype=torch.float64)
    expected = torch.stack([matrix @ state for matrix, state in zip(matrices, states, strict=True)])
    torch.testing.assert_close(operators.apply(torch.arange(V), states), expected)


@every_linear_model
@pytest.mark.parametrize("scale", [0.3, 4.0])
def test_rescaled_states_give_the_exact_answers_on_long_words(name: str, scale: float) -> None:
    """With weights so scaled, plain float32 states overflow or vanish within 300 symbols."""
    model, symbols = make(name, additive="none", readout_bias=False).eval(), words(B, 300)
    assert isinstance(model, LinearModel)
    if not model.scale_invariant:
        pytest.fail(f"{name} has additive terms without being told to")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
        logits, _ = model.scan(symbols, model.initial_state(B))
        exact = directions_by_matrix_products(model, symbols)
    assert logits.isfinite().all() and (logits.abs().amax(-1) > 0).all()
    best, second = exact.topk(2).values.unbind(-1)
    clear = best - second > 1e-3 * exact.norm(dim=-1)
    assert clear.float().mean() > 0.9
    assert torch.equal(logits.argmax(-1)[clear], exact.argmax(-1)[clear])


@every_linear_model
@pytest.mark.parametrize("scale", [0.3, 4.0])
@pytest.mark.parametrize("piece", [1, 7])
def test_words_read_in_short_pieces_have_the_answers_of_whole_ones(
    name: str, scale: float, piece: int
) -> None:
    model, symbols = make(name, additive="none", readout_bias=False).eval(), words(B, 301)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
        whole, _ = model.scan(symbols, model.initial_state(B))
        state = model.initial_state(B)
        pieces = []
        for part in symbols.split(piece, 1):
            logits, state = model.scan(part, state)
            pieces.append(logits)
    logits = torch.cat(pieces, 1)
    assert logits.isfinite().all() and (logits.abs().amax(-1) > 0).all()
    best, second = whole.topk(2).values.unbind(-1)
    clear = best - second > 1e-3 * whole.norm(dim=-1)
    assert torch.equal(logits.argmax(-1)[clear], whole.argmax(-1)[clear])


def directions_by_matrix_products(model: LinearModel, symbols: Tensor) -> Tensor:
    """Logits of words in float64 up to a positive factor: states are kept at length 1."""
    matrices = model.operators().dense().double()
    state = model.initial_state(len(symbols)).double()
    states = []
    for time in range(symbols.shape[1]):
        state = torch.einsum("bij,bj->bi", matrices[symbols[:, time]], state)
        state = state / state.norm(dim=1, keepdim=True)
        states.append(state)
    return torch.stack(states, 1) @ model.readout.weight.double().mT


@pytest.mark.parametrize("gain", [0.01, 30.0])
def test_without_rescaling_the_full_model_leaves_the_range_of_floats(gain: float) -> None:
    model = make("bilinear", gain=gain).eval()
    assert isinstance(model, LinearModel)
    symbols = words(B, 300)
    with torch.no_grad():
        plain = model(symbols)
        rescaled, _ = model.scan(symbols, model.initial_state(B))
    assert not plain.isfinite().all() or (plain[:, -1] == 0).all()
    assert rescaled.isfinite().all() and (rescaled[:, -1].abs().amax(-1) > 1e-12).all()


@every_linear_model
@pytest.mark.parametrize(
    "options", [{"additive": "constant"}, {"additive": "input"}, {"readout_bias": True}], ids=str
)
def test_a_model_that_is_not_scale_invariant_is_never_rescaled(
    name: str, options: dict[str, object]
) -> None:
    model = make(name, **options).eval()
    assert isinstance(model, LinearModel) and not model.scale_invariant
    symbols = words(B, 40)
    with torch.no_grad():
        logits, _ = model.scan(symbols, model.initial_state(B))
        assert torch.equal(logits, model(symbols))


@every_linear_model
def test_the_settings_of_a_linear_model_include_those_of_all(name: str) -> None:
    assert issubclass(MODELS[name].settings_class, LinearSettings)


# --- the networks of torch.nn against their equations ---

Cell = Callable[[nn.Module, Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def gates(network: nn.Module, x: Tensor, h: Tensor, count: int) -> tuple[list[Tensor], ...]:
    """The maps of the input and of the state, both with their biases, gate by gate."""
    from_input = x @ network.weight_ih_l0.mT + network.bias_ih_l0
    from_state = h @ network.weight_hh_l0.mT + network.bias_hh_l0
    return list(from_input.chunk(count, -1)), list(from_state.chunk(count, -1))


def elman(network: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    (a,), (u,) = gates(network, x, state[0], 1)
    return (torch.tanh(a + u),)


def gated(network: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    (h,) = state
    (ar, az, an), (ur, uz, un) = gates(network, x, h, 3)
    reset, keep = torch.sigmoid(ar + ur), torch.sigmoid(az + uz)
    return ((1 - keep) * torch.tanh(an + reset * un) + keep * h,)


def long_short(network: nn.Module, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    h, c = state
    (ai, af, ag, ao), (ui, uf, ug, uo) = gates(network, x, h, 4)
    c = torch.sigmoid(af + uf) * c + torch.sigmoid(ai + ui) * torch.tanh(ag + ug)
    return torch.sigmoid(ao + uo) * torch.tanh(c), c


@pytest.mark.parametrize(
    ("name", "cell", "parts"), [("rnn", elman, 1), ("gru", gated, 1), ("lstm", long_short, 2)]
)
def test_the_networks_of_torch_follow_their_equations(name: str, cell: Cell, parts: int) -> None:
    by_torch, by_hand, symbols = generic(name, hidden=6), generic(name, hidden=6), words(B, T)
    by_hand.load_state_dict(by_torch.state_dict())
    state = tuple(torch.zeros(B, 6, dtype=torch.float64) for _ in range(parts))
    outputs = []
    for time in range(T):
        state = cell(by_hand.network, by_hand.embedding.weight[symbols[:, time]], state)
        outputs.append(state[0] @ by_hand.readout.weight.mT + by_hand.readout.bias)
    expected, logits = torch.stack(outputs, 1), by_torch(symbols)
    torch.testing.assert_close(logits, expected)
    trained_sum(logits).backward()
    trained_sum(expected).backward()
    for (key, one), two in zip(by_torch.named_parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, msg=key)


@every_model
def test_a_model_without_a_state_of_constant_size_says_so(name: str) -> None:
    size = state_size(make(name, 0))
    assert (size is not None and size > 0) == (name in RECURRENT)


def test_sizes_at_hand() -> None:
    lstm = MODELS["lstm"]
    model = lstm(lstm.settings_class(hidden=7), num_symbols=3, num_labels=2)
    assert state_size(model) == 2 * 7
    assert num_parameters(model) == 3 * 7 + 4 * (7 * 7 + 7 * 7 + 2 * 7) + 7 * 2 + 2
