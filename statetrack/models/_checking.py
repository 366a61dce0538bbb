"""The properties that training and evaluation rely on, checked on a model.

`check_model` takes a model's class, or any `nn.Module` from symbols [B, T] to logits [B, T, C], and
returns one `Finding` for each property. It works on copies with random weights, in evaluation mode
and in float64 (float32 where the module fails in float64); the given module is not changed.

R replicas, B batch, T time, V symbols, C labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from statetrack.errors import WHERE_NOT_FINITE, SettingsError
from statetrack.models._base import Scanning, SequenceModel, Stepping, numbers_in
from statetrack.models._given import cast, copy_of, other_names, require_module, without_shape
from statetrack.plugins import explain_mistake
from statetrack.settings import Settings
from statetrack.spec import Task, load_task

NUM_WORDS, LENGTH, NUM_REPLICAS, LONG = 3, 11, 3, 50

SPREAD = 0.05
"""Standard deviation of the noise added to trained weights: a weight of 0 would hide its effect."""

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Finding:
    """One property of a model: whether it holds, with the error or the remark that was found."""

    name: str
    ok: bool
    detail: str = ""


class Wrong(Exception):
    """A property does not hold; the message is one line that says what is wrong."""


def check_model(
    model: type[SequenceModel] | nn.Module,
    task: Task | str | Path | None = None,
    *,
    num_symbols: int | None = None,
    num_labels: int | None = None,
    settings: Settings | None = None,
) -> list[Finding]:
    """Check a registered model's class (with its settings or the defaults), or a module.

    It is checked on the symbols and labels of a task, or on so many. The first finding is that
    logits can be computed and have the shape [B, T, C]; where that fails, it is the only one. An
    exception that the model raises is a finding too.

    Raises `SettingsError` for what is neither, and where symbols or labels are not given.
    """
    if not (isinstance(model, type) and issubclass(model, SequenceModel)):
        model = require_module(model, "check_model")
    if task is not None:
        source = load_task(task).source
        num_symbols, num_labels = source.num_symbols, source.num_labels
    if num_symbols is None or num_labels is None:
        raise SettingsError("check_model: give a task, or num_symbols and num_labels")
    subject = _Subject(model, num_symbols, num_labels, settings)
    findings = [_found(name, check, subject) for name, check in FIRST.items()]
    if not all(finding.ok for finding in findings):
        return findings
    checks = dict(EVERY)
    if isinstance(subject.plain, Stepping):
        checks |= STEPPING
    if isinstance(subject.plain, Scanning):
        checks |= SCANNING
    if subject.is_class:
        checks |= REGISTERED
    return findings + [_found(name, check, subject) for name, check in checks.items()]


@dataclass
class _Subject:
    """The model under test: `plain` as it was built or given, and copies with other weights."""

    model: type[SequenceModel] | nn.Module
    num_symbols: int
    num_labels: int
    settings: Settings | None
    plain: nn.Module = field(init=False)
    dtype: torch.dtype = torch.float64

    @property
    def is_class(self) -> bool:
        return isinstance(self.model, type)

    def make(self, seed: int) -> nn.Module:
        """The model of a seed as its constructor leaves it, or a copy of the module."""
        if not isinstance(self.model, type):
            return copy_of(self.model)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            settings = self.settings or self.model.settings_class()
            return self.model(settings, num_symbols=self.num_symbols, num_labels=self.num_labels)

    def generic(self, seed: int = 0) -> nn.Module:
        """A copy in evaluation mode, with noise added to every weight that is trained."""
        module = cast(self.make(seed), self.dtype).eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in _trained(module):
                noise = torch.randn(parameter.shape, generator=generator, dtype=self.dtype)
                parameter.add_(SPREAD * noise.to(parameter.device))
        return module

    @cached_property
    def one(self) -> nn.Module:
        """The generic copy of seed 0, for checks that leave its weights as they are."""
        return self.generic(0)

    @cached_property
    def symbols(self) -> Tensor:
        """Words [NUM_WORDS, LENGTH], which most checks read."""
        return self.words(NUM_WORDS, LENGTH)

    @cached_property
    def logits(self) -> Tensor:
        """What `one` gives for `symbols`."""
        logits: Tensor = self.one(self.symbols)
        return logits.detach()

    def words(self, *shape: int) -> Tensor:
        """Random words of a shape, the same at every call, on the device of the weights."""
        words = torch.randint(self.num_symbols, shape, generator=torch.Generator().manual_seed(0))
        return words.to(next((weight.device for weight in self.plain.parameters()), None))

    def compare(
        self,
        found: Tensor,
        expected: Tensor,
        what: str,
        *,
        tolerance: float = 1e-9,
        least: float = 1.0,
    ) -> None:
        """Raise `Wrong` unless two tensors agree to rounding.

        The allowed error is `tolerance` (in float32, 10^5 times as much) times the largest
        magnitude, or times `least` where all are smaller.
        """
        if self.dtype == torch.float32:
            tolerance = 1e5 * tolerance
        size = max(least, float(expected.detach().abs().max()))
        error = float((found - expected).detach().abs().max())
        if not error <= tolerance * size:
            raise Wrong(f"{what}: they differ by up to {error:.2g}")


def _trained(module: nn.Module) -> list[nn.Parameter]:
    """The parameters that training changes."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _tensors(state: Mapping[str, Any]) -> Weights:
    """The weights and buffers of a `state_dict`, which may have an extra state of any type."""
    return {name: value for name, value in state.items() if isinstance(value, Tensor)}


def told(error: Exception) -> str:
    """An exception in one line, with the file and line of a user's file that it comes from."""
    what = explain_mistake(error, advice=False) or f"{type(error).__name__}: {error}"
    return what.splitlines()[0]


def _fault_of_vmap(error: Exception) -> str:
    first, *_ = str(error).splitlines() or [""]
    return f"torch.vmap cannot run it ({type(error).__name__}: {first})"


def cannot_vectorise(error: Exception) -> str:
    """What is wrong with a model whose replicas cannot be computed as one, and what to do."""
    return (
        f"{_fault_of_vmap(error)}: keep branches on values of tensors out of it, or set the class "
        "attribute `vectorises = False`"
    )


Check = Callable[[_Subject], str]
"""Raises `Wrong` where a property does not hold; returns a remark, or an empty text."""


def _found(name: str, check: Check, subject: _Subject) -> Finding:
    try:
        return Finding(name, True, check(subject))
    except Wrong as wrong:
        return Finding(name, False, str(wrong))
    except Exception as error:  # the model may raise any class of exception
        return Finding(name, False, told(error))


# --- what every model computes ---


def _shape(subject: _Subject) -> str:
    """Logits [B, T, C], finite, for words of several shapes."""
    subject.plain = subject.make(0).eval()
    if missing := without_shape(subject.plain):
        raise Wrong(missing)
    for shape in ((1, 1), (NUM_WORDS, LENGTH), (2, 17)):
        logits = subject.plain(subject.words(*shape))
        if not isinstance(logits, Tensor):
            raise Wrong(f"forward gives a {type(logits).__name__} and not a tensor of logits")
        expected = (*shape, subject.num_labels)
        if logits.shape != expected:
            raise Wrong(
                f"words {list(shape)} give logits {list(logits.shape)}, and with "
                f"{subject.num_labels} labels they are to be {list(expected)}"
            )
        if not logits.is_floating_point():
            raise Wrong(f"logits of words {list(shape)} are {logits.dtype}, no floating point")
        if not logits.isfinite().all():
            raise Wrong(f"logits of words {list(shape)} are not finite: {WHERE_NOT_FINITE}")
    if isinstance(subject.plain, SequenceModel) and subject.plain.computes_in_float32:
        subject.dtype = torch.float32
        return "checked in float32, in which parts of the model are always computed"
    try:
        subject.generic()(subject.words(1, 1))
    except RuntimeError:
        subject.dtype = torch.float32
        return "checked in float32: in float64 the model raises an error"
    return ""


def _causality(subject: _Subject) -> str:
    """A symbol changes no logits before it, and neither does the end of the word there."""
    before = subject.logits
    for time in (1, LENGTH // 2, LENGTH - 1):
        after = subject.one(_with_another_symbol(subject, time))
        what = f"logits before position {time} change with the symbol at {time}"
        subject.compare(after[:, :time], before[:, :time], what, tolerance=1e-12)
    for time in (1, LENGTH // 2, LENGTH - 1):
        what = f"logits before position {time} change where the word ends there"
        subject.compare(subject.one(subject.symbols[:, :time]), before[:, :time], what)
    return ""


def _reads_symbols(subject: _Subject) -> str:
    """A symbol changes logits at or after its position, in every word."""
    before = subject.logits
    for time in (0, LENGTH // 2, LENGTH - 1):
        after = subject.one(_with_another_symbol(subject, time))
        moved = (after[:, time:] - before[:, time:]).abs().amax((1, 2))
        if not (moved > 1e-9).all():
            raise Wrong(f"the symbol at position {time} changes no logits")
    return ""


def _with_another_symbol(subject: _Subject, time: int) -> Tensor:
    changed = subject.symbols.clone()
    changed[:, time] = (changed[:, time] + 1) % subject.num_symbols
    return changed


def _separate_words(subject: _Subject) -> str:
    """The logits of a word do not depend on the other words of the batch."""
    alone = torch.cat([subject.one(word.unsqueeze(0)) for word in subject.symbols])
    subject.compare(subject.logits, alone, "logits of a word in a batch and alone")
    return ""


def _gradients(subject: _Subject) -> str:
    """Every parameter gets a finite gradient that is not zero."""
    model = subject.one
    if not _trained(model):
        return "no parameter requires a gradient: there is nothing to train"
    words = subject.words(4 * subject.num_symbols, LENGTH)
    _weighted_sum(model(words)).backward()
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        gradient = parameter.grad
        if gradient is None or not gradient.abs().max() > 0:
            raise Wrong(f"the parameter {name} gets no gradient: it has no effect on the logits")
        if not gradient.isfinite().all():
            raise Wrong(f"the gradient of the parameter {name} is not finite")
    return ""


def _weighted_sum(logits: Tensor) -> Tensor:
    """A random weighted sum of all logits."""
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(1))
    return (logits * weights.to(logits)).sum()


def _saved(subject: _Subject) -> str:
    """Weights that are written to a file and loaded into another copy give the same logits."""
    loaded = subject.generic(1)
    if _trained(loaded) and torch.equal(subject.logits, loaded(subject.symbols)):
        raise Wrong("models with other weights give the same logits")
    state = subject.one.state_dict()
    weights = {name: value.clone().contiguous() for name, value in _tensors(state).items()}
    pairs = {
        name for name, value in weights.items() if value.is_complex()
    }  # safetensors has none in float64
    weights |= {name: torch.view_as_real(weights[name]) for name in pairs}
    read = safetensors.torch.load(safetensors.torch.save(weights))
    read |= {name: torch.view_as_complex(read[name]) for name in pairs}
    loaded.load_state_dict(state | read)  # what is no tensor, as an extra state, is in no file
    what = "logits of loaded weights and of those that were saved"
    subject.compare(loaded(subject.symbols), subject.logits, what, tolerance=0.0)
    return ""


def _population(subject: _Subject) -> str:
    """Replicas computed together by `torch.vmap` have the logits and gradients of each alone.

    Only a run trains replicas together, and its models are registered `SequenceModel`s. A module
    that is not one is trained alone, so that it need not work under `torch.vmap`.
    """
    device = next((weight.device for weight in subject.plain.parameters()), torch.device("cpu"))
    if isinstance(subject.plain, SequenceModel) and not subject.plain.vectorises_on(device):
        return "vectorises = False: the replicas of a run are computed one at a time"
    replicas = [subject.generic(seed) for seed in range(NUM_REPLICAS)]
    symbols = subject.words(NUM_REPLICAS, NUM_WORDS, LENGTH)
    parameters, buffers = stack_module_state(replicas)
    stacked = {
        name: value.detach().requires_grad_(value.requires_grad)
        for name, value in parameters.items()
    }

    def run(weights: Weights, buffers: Weights, symbols: Tensor) -> Tensor:
        own = weights | buffers
        given = own | {other: own[name] for other, name in other_names(replicas[0]).items()}
        logits: Tensor = functional_call(replicas[0], given, (symbols,), tie_weights=False)
        return logits

    def computed(*, training: bool) -> Tensor:
        replicas[0].train(training)
        own = {name: value.clone() for name, value in buffers.items()}
        logits: Tensor = vmap(run, randomness="different")(stacked, own, symbols)
        return logits

    try:
        with torch.random.fork_rng(devices=[]):
            computed(training=True)
        together = computed(training=False)
    except Exception as error:
        if not isinstance(subject.plain, SequenceModel):
            return f"it is trained alone: {_fault_of_vmap(error)}"
        raise Wrong(cannot_vectorise(error)) from error
    if trained := bool(_trained(replicas[0])):
        torch.stack([_weighted_sum(logits) for logits in together]).sum().backward()
    for row, replica in enumerate(replicas):
        alone = replica(symbols[row])
        subject.compare(together[row], alone, "logits of a replica in a population and alone")
        if not trained:
            continue
        _weighted_sum(alone).backward()
        for name, parameter in replica.named_parameters():
            if parameter.grad is None or (gradient := stacked[name].grad) is None:
                continue
            what = f"gradients of {name} in a population and in the replica alone"
            subject.compare(gradient[row], parameter.grad, what, least=0.0)
    return ""


# --- what a model with a state computes ---


def _steps(subject: _Subject) -> str:
    """`step`, symbol by symbol, gives the logits of `forward`."""
    model = subject.one
    assert isinstance(model, Stepping)
    state, outputs = model.initial_state(NUM_WORDS), []
    for symbol in subject.symbols.unbind(1):
        logits, state = model.step(symbol, state)
        if logits.shape != (NUM_WORDS, subject.num_labels):
            raise Wrong(f"step gives logits {list(logits.shape)}, which are to be [B, C]")
        outputs.append(logits)
    subject.compare(torch.stack(outputs, 1), subject.logits, "logits by step and by forward")
    return ""


def _pieces(subject: _Subject) -> str:
    """`scan` over two pieces of a word gives the logits of `forward`."""
    model, symbols = subject.one, subject.symbols
    assert isinstance(model, Scanning)
    for cut in (1, 4, LENGTH - 1):
        early, state = model.scan(symbols[:, :cut], model.initial_state(NUM_WORDS))
        late, _ = model.scan(symbols[:, cut:], state)
        what = f"logits of a word that is scanned in two pieces, cut after {cut}, and in one"
        subject.compare(torch.cat([early, late], 1), subject.logits, what)
    return ""


def _constant_state(subject: _Subject) -> str:
    """The number of values in the state is the same before and after a long word."""
    model, words = subject.one, subject.words(1, LONG)
    assert isinstance(model, Scanning)
    first = model.initial_state(1)
    _, last = model.scan(words, first)
    before, after = numbers_in(first), numbers_in(last)
    if before != after:
        raise Wrong(
            f"the state has {before} numbers before and {after} after {LONG} symbols: words of "
            "any length need a state of constant size"
        )
    return ""


# --- the declarations of a registered model ---


def _seeds(subject: _Subject) -> str:
    """Equal seeds build equal models, and different seeds build different ones."""
    first, again, other = (_tensors(subject.make(seed).state_dict()) for seed in (3, 3, 4))
    if not all(torch.equal(first[name], again[name]) for name in first):
        raise Wrong("two models of one seed differ: draw initial weights by torch, unseeded")
    if all(torch.equal(first[name], other[name]) for name in first):
        raise Wrong("models of two seeds are equal: draw initial weights by torch, unseeded")
    return ""


def _described(subject: _Subject) -> str:
    """Family and source are named, for the listings, and a readout, for `freeze='recurrence'`."""
    assert isinstance(subject.plain, SequenceModel)
    missing = [name for name in ("family", "source") if not getattr(subject.plain, name)]
    prefix = f"{subject.plain.readout_name}."
    notes = [f"no {' and no '.join(missing)} for the listings"] if missing else []
    if not any(name.startswith(prefix) for name, _ in subject.plain.named_parameters()):
        notes.append(f"no parameters under {prefix[:-1]!r}: freeze='recurrence' is refused")
    return "; ".join(notes)


FIRST: dict[str, Check] = {"logits are [B, T, C]": _shape}
EVERY: dict[str, Check] = {
    "no logits depend on a later symbol": _causality,
    "every symbol is read": _reads_symbols,
    "words of a batch are independent": _separate_words,
    "every parameter gets a gradient": _gradients,
    "saved weights are loaded": _saved,
    "a population is its replicas, each alone": _population,
}
STEPPING: dict[str, Check] = {"step by step is forward": _steps}
SCANNING: dict[str, Check] = {
    "a scan in two pieces is a scan in one": _pieces,
    "the state keeps its size": _constant_state,
}
REGISTERED: dict[str, Check] = {
    "a seed determines the weights": _seeds,
    "family, source and readout are named": _described,
}
