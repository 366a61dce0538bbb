"""The way to flash-linear-attention's kernels and back, with its naive recurrences in their place.

The kernels run on CUDA only (`tests/test_cuda.py` compares them). Here each is a stand-in: it
takes the arguments that the kernel's own definition names, in that order, and computes what
`fla-core` calls the naive form of the same operation. So layouts, scales, gates, interleaved keys,
first and last states, replicas and gradients are held without a GPU; all of it in float32.

R replicas, B batch, T time, N heads, K key size, V value size, D width.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from fla_by_path import fla
from torch import Tensor
from torch.func import vmap

from statetrack.errors import SettingsError
from statetrack.models import MODELS, KernelSettings, RecurrentModel, SequenceModel
from statetrack.ops import fla as kernels
from statetrack.ops import kernel_for, native
from statetrack.registry import missing_kernels
from statetrack.runs import Run, files
from statetrack.settings import build
from statetrack.training import Population, Replica

B, T, SYMBOLS, LABELS = 3, 19, 5, 4
CPU = torch.device("cpu")
SINGLE = {"rtol": 1e-4, "atol": 1e-5}  # both sides compute in float32
REPLICAS = tuple(Replica(index, seed, 3e-3) for index, seed in enumerate((5, 0)))

SMALL: dict[str, object] = {"width": 12, "heads": 2, "key_dim": 4, "value_dim": 3, "state": 5}
CASES: list[tuple[str, dict[str, object]]] = [
    ("deltanet", {"beta": "unit"}),
    ("deltanet", {"beta": "double", "conv": 0}),
    ("deltaproduct", {"householders": 1}),
    ("deltaproduct", {"householders": 3}),
    ("gated-deltanet", {"beta": "double"}),
    ("gated-deltaproduct", {"householders": 2}),
    ("gla", {"gate_slowness": 1.0}),
    ("gla", {"conv": 2, "layers": 2}),
    ("linear-attention", {}),
    ("mamba2", {}),
    ("hgrn", {}),
    ("hgrn", {"phase": "none"}),
    ("hgrn2", {"layers": 2}),
    ("rwkv6", {}),
    ("rwkv6", {"layers": 2}),
]
every_case = pytest.mark.parametrize(("name", "options"), CASES)


def make(name: str, kernel: str, **options: object) -> SequenceModel:
    """A model with none of its weights where it started: some start where nothing is read."""
    kind = MODELS[name]
    small = {key: value for key, value in SMALL.items() if key in kind.settings_class.model_fields}
    settings = build(kind.settings_class, {**small, **options, "kernel": kernel}, name)
    model = kind(settings, num_symbols=SYMBOLS, num_labels=LABELS)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


# --- stand-ins ---


def naive_delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, **given: Any) -> Any:
    """The naive form is [B, N, T, ...], and always scales queries by 1 / sqrt(K)."""
    scale = given.pop("scale") * q.shape[-1] ** 0.5
    parts = (part.transpose(1, 2) for part in (scale * q, k, v, beta))
    outputs, last = fla("delta_rule", "naive.py").delta_rule_recurrence(*parts, **given)
    return outputs.transpose(1, 2), last


def naive_gla(q: Tensor, **given: Any) -> Any:
    """The naive form always scales queries by 1 / sqrt(K)."""
    scale = given.pop("scale") * q.shape[-1] ** 0.5
    return fla("gla", "naive.py").naive_recurrent_gla(q=scale * q, **given)


def naive(module: str, name: str) -> Callable[..., Any]:
    def found(**given: Any) -> Any:
        return getattr(fla(module, "naive.py"), name)(**given)

    return found


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("delta_rule", "fused_recurrent_delta_rule"): naive_delta_rule,
    ("gated_delta_rule", "chunk_gated_delta_rule"): naive(
        "gated_delta_rule", "naive_recurrent_gated_delta_rule"
    ),
    ("gla", "fused_recurrent_gla"): naive_gla,
    ("simple_gla", "fused_recurrent_simple_gla"): naive("simple_gla", "naive_recurrent_simple_gla"),
    ("hgrn", "fused_recurrent_hgrn"): naive("hgrn", "naive_recurrent_hgrn"),
}


def parameters_of(module: str, name: str) -> list[str]:
    """The parameters of a kernel, from its source: importing it would need Triton."""
    package = importlib.util.find_spec("fla")
    assert package is not None and package.submodule_search_locations is not None
    for path in Path(package.submodule_search_locations[0], "ops", module).glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return [argument.arg for argument in node.args.args]
    raise AssertionError(f"fla.ops.{module} has no {name}")


def stand_in(module: str, name: str) -> Callable[..., Any]:
    """What `load` gives here: the naive form behind the kernel's own signature."""
    names, compute = parameters_of(module, name), STAND_INS[module, name]

    def kernel(*given: Any, **named: Any) -> Any:
        arguments = dict(zip(names, given, strict=False)) | named
        assert set(arguments) <= set(names) and len(arguments) == len(given) + len(named)
        return compute(**arguments)

    return kernel


@pytest.fixture
def by_stand_ins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """Kernels that can run here; the list is of those that were loaded."""
    loaded: list[tuple[str, str]] = []

    def load(module: str, name: str) -> Callable[..., Any]:
        loaded.append((module, name))
        return stand_in(module, name)

    monkeypatch.setattr(kernels, "why_not", lambda *_: None)
    monkeypatch.setattr(kernels, "load", load)
    yield loaded


# --- the same model by both ways ---


@every_case
def test_a_population_by_kernel_has_the_logits_and_gradients_of_one_by_torch(
    name: str, options: dict[str, object], by_stand_ins: list[tuple[str, str]]
) -> None:
    symbols = torch.randint(SYMBOLS, (len(REPLICAS), B, T))
    weights = torch.randn(len(REPLICAS), B, T, LABELS)
    populations = []
    for kernel in ("torch", "fla"):
        loaded_before = len(by_stand_ins)

        def build_one(kernel: str = kernel) -> SequenceModel:
            return make(name, kernel, **options)

        population = Population(build_one, REPLICAS, CPU)
        logits = population(symbols)
        assert (len(by_stand_ins) > loaded_before) == (kernel == "fla")
        (logits * weights).sum().backward()
        populations.append((logits, population.parameters))
    (expected, by_torch), (logits, by_kernel) = populations
    torch.testing.assert_close(logits, expected, **SINGLE)
    for key, parameter in by_torch.items():
        mine, theirs = by_kernel[key].grad, parameter.grad
        assert mine is not None and theirs is not None, key
        scale = theirs.abs().max()
        assert scale > 0, key
        torch.testing.assert_close(mine / scale, theirs / scale, **SINGLE, msg=key)


@every_case
def test_a_word_by_kernel_in_two_pieces_is_the_word_step_by_step(
    name: str, options: dict[str, object], by_stand_ins: list[tuple[str, str]]
) -> None:
    torch.manual_seed(1)
    model, symbols = make(name, "fla", **options), torch.randint(SYMBOLS, (B, T))
    assert isinstance(model, RecurrentModel)
    with torch.no_grad():
        early, state = model.scan(symbols[:, :7], model.initial_state(B))
        late, _ = model.scan(symbols[:, 7:], state)
        state, steps = model.initial_state(B), []
        for symbol in symbols.unbind(1):
            logits, state = model.step(symbol, state)
            steps.append(logits)
    assert by_stand_ins
    torch.testing.assert_close(torch.cat([early, late], 1), torch.stack(steps, 1), **SINGLE)


def test_every_model_with_a_kernel_is_compared() -> None:
    with_kernel = {
        name for name in MODELS if issubclass(MODELS[name].settings_class, KernelSettings)
    }
    assert with_kernel == {name for name, _ in CASES}


def test_bfloat16_training_gives_kernels_float32(
    monkeypatch: pytest.MonkeyPatch, by_stand_ins: list[tuple[str, str]]
) -> None:
    seen = set()

    def load(module: str, name: str) -> Callable[..., Any]:
        kernel = stand_in(module, name)

        def watched(*given: Any, **named: Any) -> Any:
            parts = (*given, *named.values())
            seen.update(part.dtype for part in parts if isinstance(part, Tensor))
            assert not torch.is_autocast_enabled("cpu")
            return kernel(*given, **named)

        return watched

    monkeypatch.setattr(kernels, "load", load)
    for name, options in CASES:
        with torch.autocast("cpu", torch.bfloat16):
            make(name, "fla", **options)(torch.randint(SYMBOLS, (B, T))).float().sum().backward()
    assert seen == {torch.float32}


def test_a_long_slow_turn_keeps_its_angle(by_stand_ins: list[tuple[str, str]]) -> None:
    """Nothing forgotten, nothing added: after t steps the state has turned by t theta."""
    length, phases = 3000, torch.tensor([1e-3, 0.5, 1.0])
    ones, zeros = torch.ones(1, length, 3), torch.zeros(1, length, 3, dtype=torch.complex64)
    first = torch.ones(1, 3, dtype=torch.complex64)
    _, last = kernels.turning_diagonal(ones, phases, zeros, first)
    expected = torch.polar(torch.ones(3, dtype=torch.float64), length * phases.double())
    torch.testing.assert_close(last[0].to(expected.dtype), expected, rtol=0, atol=1e-5)


# --- how a kernel is called ---


def products(state: Tensor, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """A kernel of its own: running sums, and the last."""
    sums = state.unsqueeze(1) + inputs.cumsum(1)
    return sums, sums[:, -1]


def test_replicas_are_more_of_the_batch() -> None:
    shapes = []

    def watched(*given: Tensor) -> tuple[Tensor, ...]:
        shapes.append([part.shape[0] for part in given])
        return products(*given)

    shared, inputs = torch.randn(B, 2), torch.randn(4, B, T, 2, requires_grad=True)
    sums, last = vmap(lambda part: kernels.call(watched, shared, part))(inputs)
    assert shapes == [[4 * B, 4 * B]]
    expected = torch.stack([products(shared, part)[0] for part in inputs])
    torch.testing.assert_close(sums, expected)
    (gradient,) = torch.autograd.grad(last.square().sum(), inputs)
    (wanted,) = torch.autograd.grad(expected[:, :, -1].square().sum(), inputs)
    torch.testing.assert_close(gradient, wanted)


def test_a_kernel_that_gets_a_gradient_for_one_input_gets_it_for_all() -> None:
    """The delta rule's kernel writes the first state's gradient wherever there is such a state."""
    asked = []

    def watched(*given: Tensor) -> tuple[Tensor, ...]:
        asked.append([part.requires_grad for part in given])
        return products(*given)

    inputs = torch.randn(B, T, 2, requires_grad=True)
    kernels.call(watched, torch.zeros(B, 2), inputs)[0].sum().backward()
    kernels.call(watched, torch.zeros(B, 2), inputs.detach())
    assert asked == [[True, True], [False, False]]
    assert inputs.grad is not None


# --- which one runs ---


@pytest.mark.parametrize("kernel", ["auto", "torch"])
def test_on_the_cpu_no_kernel_is_loaded(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "missing_kernels", lambda: None)
    monkeypatch.setattr("statetrack.ops.fla.load", lambda *_: pytest.fail("a kernel was loaded"))
    native_runs = kernel == "auto" and native.why_not(CPU) is None
    for name, options in CASES:
        model = make(name, kernel, **options)
        assert model.kernel_on(CPU) == ("native" if native_runs else "torch")
        model(torch.randint(SYMBOLS, (1, 3)))


@pytest.mark.parametrize("package", ["fla", "triton"])
def test_what_is_not_installed_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"fla": "fla-core", "triton": "triton"}
    missing_kernels.cache_clear()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else name)
    try:
        with pytest.raises(SettingsError) as error:
            kernel_for("fla", torch.device("cuda"))
    finally:
        missing_kernels.cache_clear()
    assert f"kernel='fla': {known[package]} is not installed" in str(error.value)
    assert ".[fla]" in str(error.value) and "take kernel='auto' or torch" in str(error.value)


def test_on_a_gpu_auto_takes_the_kernel_where_it_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = torch.device("cuda")
    monkeypatch.setattr(kernels, "missing_kernels", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert kernel_for("auto", cuda) == kernel_for("fla", cuda) == "fla"
    assert kernel_for("torch", cuda) == "torch"
    assert kernel_for("auto", cuda, torch.float64) == "torch"
    with pytest.raises(SettingsError, match=r"float32, not torch\.float64"):
        kernel_for("fla", cuda, torch.float64)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    assert kernel_for("auto", cuda) == "torch"
    with pytest.raises(SettingsError, match=r"compute capability 8\.0"):
        kernel_for("fla", cuda)


def test_a_kernel_that_cannot_run_is_refused_before_a_folder_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "missing_kernels", lambda: None)
    values = {"model": "deltanet", "kernel": "fla", "steps": 1, "device": "cpu"}
    with pytest.raises(SettingsError, match="run on CUDA only, and the device is cpu"):
        Run.start(**values, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_keys_too_large_for_the_gated_kernel_are_left_to_torch_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "why_not", lambda *_: None)
    assert make("gated-deltanet", "auto", key_dim=257).kernel_on(CPU) == "torch"
    assert make("gated-deltanet", "auto", key_dim=256).kernel_on(CPU) == "fla"
    assert make("deltanet", "auto", key_dim=257).kernel_on(CPU) == "fla"
    with pytest.raises(SettingsError, match="key_dim up to 256, not 257"):
        make("gated-deltanet", "fla", key_dim=257)


def test_a_run_says_what_computed_it_and_is_evaluated_where_its_kernel_is_not(
    tmp_path: Path, by_stand_ins: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "model": "deltanet",
        "kernel": "fla",
        "task": "parity",
        "steps": 2,
        "batch_size": 4,
        "train_length": "3",
        "validation_words": 4,
        "device": "cpu",
        **{"width": 8, "heads": 1, "key_dim": 4, "value_dim": 4},
    }
    run = Run.start(**values, out=tmp_path / "run")
    list(run.train())
    assert run.folder.read(files.ENVIRONMENT)["kernel"].startswith("fla 0.")
    assert by_stand_ins
    monkeypatch.undo()
    run = Run.open(tmp_path / "run")
    assert run.experiment.values()["kernel"] == "fla"
    assert [row.length for row in run.evaluate([5], num_words=4)] == [5]
