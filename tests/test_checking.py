"""What `check_model` finds: nothing in a good module, and each fault of a bad one by its name.

B batch, T time, V symbols, C labels, H hidden.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statetrack.models import Finding, RecurrentModel, check_model
from statetrack.settings import Settings

V, C, H = 4, 3, 6


class Averages(nn.Module):
    """A good module: the mean of the embeddings so far, and a linear readout."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(V, H)
        self.readout = nn.Linear(H, C)

    def forward(self, symbols: Tensor) -> Tensor:
        return self.readout(self.mix(self.embedding(symbols)))

    def mix(self, stream: Tensor) -> Tensor:
        return stream.cumsum(1) / torch.arange(1, stream.shape[1] + 1).unsqueeze(-1)


class SeesTheFuture(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        return stream + stream.mean(1, keepdim=True)


class SeesTheEnd(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        return super().mix(stream) / stream.shape[1]


class ForgetsSymbols(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        times = torch.arange(stream.shape[1]).view(1, -1, 1)
        return torch.where(times > 0, super().mix(stream * (times > 0)), self.readout.weight.sum())


class MixesWords(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        return super().mix(stream - stream.mean(0, keepdim=True))


class HasAnIdleWeight(Averages):
    def __init__(self) -> None:
        super().__init__()
        self.idle = nn.Parameter(torch.ones(3))


class BranchesOnValues(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        return super().mix(stream) if stream.sum() > -1e9 else stream


class HasTooManyLabels(Averages):
    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.Linear(H, C + 1)


class GivesATuple(Averages):
    def forward(self, symbols: Tensor) -> Any:
        return super().forward(symbols), None


class GivesNaN(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        return stream / 0


class Raises(Averages):
    def mix(self, stream: Tensor) -> Tensor:
        raise KeyError("a fault of the author's own")


def wrong(findings: list[Finding]) -> dict[str, str]:
    return {finding.name: finding.detail for finding in findings if not finding.ok}


def test_nothing_is_wrong_with_a_good_module_which_stays_as_it_is() -> None:
    module = Averages().train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    findings = check_model(module, num_symbols=V, num_labels=C)
    assert not wrong(findings) and len(findings) == 7
    assert module.training and module.readout.weight.dtype == torch.float32
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "name", "detail"),
    [
        (SeesTheFuture, "no logits depend on a later symbol", "logits before position 1 change"),
        (SeesTheEnd, "no logits depend on a later symbol", "change where the word ends there"),
        (ForgetsSymbols, "every symbol is read", "the symbol at position 0 changes no logits"),
        (MixesWords, "words of a batch are independent", "in a batch and alone"),
        (HasAnIdleWeight, "every parameter gets a gradient", "the parameter idle gets no gradient"),
        (HasTooManyLabels, "logits are [B, T, C]", "with 3 labels they are to be [1, 1, 3]"),
        (GivesATuple, "logits are [B, T, C]", "forward gives a tuple"),
        (GivesNaN, "logits are [B, T, C]", "are not finite"),
        (Raises, "logits are [B, T, C]", 'KeyError: "a fault of the author\'s own"'),
    ],
)
def test_a_fault_is_found_under_its_name(kind: type[nn.Module], name: str, detail: str) -> None:
    torch.manual_seed(0)
    assert detail in wrong(check_model(kind(), num_symbols=V, num_labels=C))[name]


class MasksByAParameter(Averages):
    """Symbols are added up through a mask that is a parameter, which is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = nn.Parameter(torch.ones(40, 40).tril(), requires_grad=False)
        self.order = nn.Parameter(torch.arange(H), requires_grad=False)

    def mix(self, stream: Tensor) -> Tensor:
        length = stream.shape[1]
        return super().mix(self.mask[:length, :length] @ stream[..., self.order])


class HasAnExtraState(Averages):
    def get_extra_state(self) -> Any:
        return {"layout": 2}

    def set_extra_state(self, state: Any) -> None:
        assert state == {"layout": 2}


def test_an_extra_state_is_no_weight() -> None:
    assert not wrong(check_model(HasAnExtraState(), num_symbols=V, num_labels=C))


def test_parameters_that_are_not_trained_are_left_as_they_are() -> None:
    assert not wrong(check_model(MasksByAParameter(), num_symbols=V, num_labels=C))
    still = MasksByAParameter().requires_grad_(False)
    findings = {each.name: each for each in check_model(still, num_symbols=V, num_labels=C)}
    assert all(finding.ok for finding in findings.values())
    assert "nothing to train" in findings["every parameter gets a gradient"].detail


def test_a_module_that_is_trained_alone_may_branch_on_values() -> None:
    findings = check_model(BranchesOnValues(), num_symbols=V, num_labels=C)
    (population,) = (finding for finding in findings if "population" in finding.name)
    assert not wrong(findings)
    assert population.detail.startswith("it is trained alone: torch.vmap cannot run it (Runtime")


def test_a_module_that_cannot_compute_in_float64_is_checked_in_float32() -> None:
    class Single(Averages):
        def mix(self, stream: Tensor) -> Tensor:
            return super().mix(stream @ torch.eye(H))

    findings = check_model(Single(), num_symbols=V, num_labels=C)
    assert not wrong(findings)
    assert findings[0].detail.startswith("checked in float32")


# --- recurrent models ---


class Counter(RecurrentModel):
    """A good recurrent model: sums of embeddings; not registered, without family and source."""

    settings_class = Settings

    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.embedding = nn.Embedding(num_symbols, H)
        self.readout = nn.Linear(H, num_labels)

    def initial_state(self, num_words: int) -> Any:
        return self.readout.weight.new_zeros(num_words, H)

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        state = state + self.embedding(symbols)
        return self.readout(state), state


class StepsApart(Counter):
    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, state = super().scan(symbols, state)
        return logits + 0.01, state


class HandsOnNothing(Counter):
    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, _ = super().scan(symbols, state)
        return logits, self.initial_state(len(symbols))


class Grows(Counter):
    def initial_state(self, num_words: int) -> Any:
        return super().initial_state(num_words).unsqueeze(1)

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        state = torch.cat([state, self.embedding(symbols).unsqueeze(1)], 1)
        return self.readout(state.sum(1)), state


class ChangesInTraining(Counter):
    """Its readout's spectral norm is measured in training, by what torch.vmap cannot compute."""

    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        nn.utils.parametrizations.spectral_norm(self.readout)

    def initial_state(self, num_words: int) -> Any:
        return self.embedding.weight.new_zeros(num_words, H)


class GivesLogitsAlone(Counter):
    def step(self, symbols: Tensor, state: Any) -> Any:
        return super().step(symbols, state)[0]


class IgnoresItsSeed(Counter):
    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.1)


class BranchesAsItRecurs(Counter):
    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        return super().step(symbols, state if state.sum() > -1e9 else -state)


class LosesAWeight(Counter):
    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.register_buffer("first", torch.randn(H), persistent=False)

    def initial_state(self, num_words: int) -> Any:
        return self.first.expand(num_words, -1)


class HasAHead(Counter):
    family, source = "own", "own"

    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.head = self.readout
        del self.readout

    def initial_state(self, num_words: int) -> Any:
        return self.head.weight.new_zeros(num_words, H)

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        state = state + self.embedding(symbols)
        return self.head(state), state


def test_what_a_model_does_not_say_of_itself_is_noted_and_not_wrong() -> None:
    findings = check_model(Counter, num_symbols=V, num_labels=C)
    assert not wrong(findings) and len(findings) == 12
    assert findings[-1].detail == "no family and no source for the listings"
    findings = check_model(HasAHead, num_symbols=V, num_labels=C)
    assert not wrong(findings)
    assert findings[-1].detail == "no parameters under 'readout': freeze='recurrence' is refused"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (StepsApart, "step by step is forward"),
        (HandsOnNothing, "a scan in two pieces is a scan in one"),
        (Grows, "the state keeps its size"),
        (ChangesInTraining, "a population is its replicas, each alone"),
        (BranchesAsItRecurs, "a population is its replicas, each alone"),
        (LosesAWeight, "saved weights are loaded"),
        (IgnoresItsSeed, "a seed determines the weights"),
    ],
)
def test_a_fault_of_a_recurrent_model_is_found(kind: type[Counter], name: str) -> None:
    assert name in wrong(check_model(kind, num_symbols=V, num_labels=C))


def test_a_step_that_gives_no_pair_is_said_so() -> None:
    found = wrong(check_model(GivesLogitsAlone, num_symbols=V, num_labels=C))
    assert "TypeError: step gives a Tensor, and is to give a pair" in found["logits are [B, T, C]"]


def test_a_method_that_is_missing_is_said_with_the_class_that_asks_for_it() -> None:
    class WithoutAStep(Counter):
        step = RecurrentModel.step

    found = wrong(check_model(WithoutAStep, num_symbols=V, num_labels=C))
    told = "it does not define `step`, which RecurrentModel asks for"
    assert told in found["logits are [B, T, C]"]


class StreamedAverages(Averages):
    """A module of no class of ours that reads piece by piece; its state is a dictionary."""

    def initial_state(self, num_words: int) -> Any:
        zeros = self.readout.weight.new_zeros
        return {"sum": zeros(num_words, H), "count": zeros(())}

    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        sums = state["sum"].unsqueeze(1) + self.embedding(symbols).cumsum(1)
        counts = state["count"] + torch.arange(1, symbols.shape[1] + 1)
        after = {"sum": sums[:, -1], "count": counts[-1]}
        return self.readout(sums / counts.unsqueeze(-1)), after


class StreamsWrongly(StreamedAverages):
    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        logits, after = super().scan(symbols, state)
        return logits, {**after, "count": state["count"]}


def test_a_module_that_scans_is_checked_as_one() -> None:
    findings = check_model(StreamedAverages(), num_symbols=V, num_labels=C)
    assert not wrong(findings) and len(findings) == 9
    name = "a scan in two pieces is a scan in one"
    assert name in wrong(check_model(StreamsWrongly(), num_symbols=V, num_labels=C))
