"""The library on models of any class: made, trained, evaluated and predicted without a folder.

B batch, T time, V symbols, C labels, H hidden.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import statetrack as st
from statetrack.errors import SettingsError, StatetrackWarning, UnknownNameError
from statetrack.models import RecurrentModel
from statetrack.training import DataSettings, TrainingKeywords, TrainSettings

PARITY = st.load_task("parity")
QUICK: dict[str, Any] = {"steps": 30, "batch_size": 16, "validate_every": 10, "lrs": (1e-2,)}


class Plain(nn.Module):
    """A GRU that knows nothing of this package."""

    def __init__(self, num_symbols: int = 2, num_labels: int = 2, hidden: int = 8) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_symbols, hidden)
        self.network = nn.GRU(hidden, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, num_labels)
        self.register_buffer("scale", torch.ones(()))

    def forward(self, symbols: Tensor) -> Tensor:
        return self.readout(self.network(self.embedding(symbols))[0]) * self.scale


class Scanning(Plain):
    """The same, piece by piece; `lengths` has the length of every piece."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def initial_state(self, num_words: int) -> Tensor:
        return torch.zeros(1, num_words, self.network.hidden_size)

    def scan(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        self.lengths.append(symbols.shape[1])
        outputs, state = self.network(self.embedding(symbols), state)
        return self.readout(outputs), state


class Stepping(Plain):
    """The same, symbol by symbol."""

    def initial_state(self, num_words: int) -> Tensor:
        return torch.zeros(1, num_words, self.network.hidden_size)

    def step(self, symbols: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        outputs, state = self.network(self.embedding(symbols.unsqueeze(1)), state)
        return self.readout(outputs.squeeze(1)), state


class LooksAhead(Plain):
    """Not causal: every position sees the whole word."""

    def forward(self, symbols: Tensor) -> Tensor:
        return super().forward(symbols).mean(1, keepdim=True).expand(-1, symbols.shape[1], -1)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


# --- models by name ---


def test_a_task_is_given_by_its_name_too() -> None:
    model = st.make_model("bilinear-cp", "parity", rank=4)
    assert st.predict("parity", model) == st.predict(PARITY, "bilinear-cp", rank=4)
    assert torch.equal(st.stream("parity")[3].symbols, st.stream(PARITY)[3].symbols)
    assert [record.step for record in st.train(model, "parity", steps=2)][-1] == 2
    by_name = list(st.evaluate(model, "parity", [20], num_words=40))
    assert by_name == list(st.evaluate(model, PARITY, [20], num_words=40))
    with pytest.raises(UnknownNameError, match="Did you mean 'parity'"):
        list(st.evaluate(model, "party", [20]))


def test_an_evaluation_of_nothing_is_refused() -> None:
    model = st.make_model("bilinear-cp", PARITY, rank=4)
    with pytest.raises(SettingsError, match="give one length"):
        list(st.evaluate(model, PARITY, []))
    with pytest.raises(SettingsError, match="num_words 0"):
        list(st.evaluate(model, PARITY, [10], num_words=0))
    assert next(st.evaluate(model, PARITY, 10, num_words=3)).length == 10  # one length


NO_SEEDS = (-1, 1.5, "1", True, None, 2**70)
NO_TIMES = (math.nan, math.inf, -5, 0, "1", True, None)


def test_what_is_no_seed_no_number_of_words_and_no_time_is_refused() -> None:
    model, given = st.make_model("bilinear-cp", PARITY, rank=4), np.int64(3)
    words: dict[str, Callable[..., Any]] = {
        "evaluate": lambda **asked: st.evaluate(model, PARITY, 5, **{"num_words": 3} | asked),
        "sample": lambda num_words=3, **asked: PARITY.sample(num_words, length=5, **asked),
    }
    searches: dict[str, Callable[..., Any]] = {
        function.__name__: partial(function, model, PARITY)
        for function in (st.certify, st.extract, st.probe, st.stress)
    }
    for name, call in {**words, **searches, "stream": partial(st.stream, PARITY)}.items():
        for seed in NO_SEEDS:
            with pytest.raises(SettingsError, match=rf"^{name}: seed .*: give a whole number from"):
                call(seed=seed)
    for name, call in words.items():
        for number in (0, -1, 2.5, "3", True):
            with pytest.raises(SettingsError, match=rf"^{name}: num_words .*: give a whole number"):
                call(num_words=number)
        assert call(num_words=given, seed=given) is not None
    for name, call in {**searches, "snap": partial(st.snap, model, PARITY)}.items():
        for seconds in NO_TIMES:
            with pytest.raises(SettingsError, match=rf"^{name}: seconds .*: give a number above"):
                call(seconds=seconds)


def test_a_made_model_is_the_replica_of_that_seed() -> None:
    model = st.make_model("bilinear-cp", PARITY, seed=3, rank=5, hidden=7)
    from statetrack.runs import Experiment, make_replica

    values = {"model": "bilinear-cp", "task": "parity", "rank": 5, "hidden": 7}
    torch.manual_seed(3)
    replica = make_replica(Experiment.from_values(values, "here"), PARITY)
    for name, value in replica.state_dict().items():
        assert torch.equal(value, model.state_dict()[name])


def test_making_a_model_leaves_torchs_generator_as_it_was() -> None:
    before = torch.get_rng_state()
    st.make_model("lstm", PARITY)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_wrong_setting_or_name_is_one_line() -> None:
    with pytest.raises(
        SettingsError, match=r"bilinear-cp: unknown key 'rnak'. Did you mean 'rank'"
    ):
        st.make_model("bilinear-cp", PARITY, rnak=3)
    with pytest.raises(st.StatetrackError, match="Did you mean 'bilinear-cp'"):
        st.make_model("bilinear-pc", PARITY)


# --- training ---


class Tied(Plain):
    """Its readout is its embedding, under two names or under one."""

    def __init__(self, names: int) -> None:
        super().__init__()
        if names == 2:
            self.readout.weight = self.embedding.weight
        else:
            self.readout = Reading(self.embedding, self.readout.bias)


class Reading(nn.Module):
    """Reads states by the vectors of an embedding, which is not a part of this module."""

    def __init__(self, embedding: nn.Embedding, bias: Tensor) -> None:
        super().__init__()
        self.embedding, self.bias = (embedding,), bias

    def forward(self, states: Tensor) -> Tensor:
        return functional.linear(states, self.embedding[0].weight, self.bias)


def test_weights_that_have_two_names_are_trained_as_if_they_had_one() -> None:
    trained = []
    for names in (1, 2):
        torch.manual_seed(0)
        model = Tied(names)
        st.fit(model, PARITY, **QUICK)
        trained.append(weights_of(model))
    assert torch.equal(trained[1].pop("readout.weight"), trained[1]["embedding.weight"])
    assert trained[0].keys() == trained[1].keys()
    for name, value in trained[0].items():
        assert torch.equal(value, trained[1][name]), name


class Repeats(nn.Module):
    """One block in two places, under names of its own or under the same one."""

    def __init__(self, names: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2, 8)
        block = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([block] * names)
        self.readout = nn.Linear(8, 2)

    def forward(self, symbols: Tensor) -> Tensor:
        stream = self.embedding(symbols).cumsum(1)
        for place in range(2):
            stream = stream + self.blocks[place % len(self.blocks)](stream).tanh()
        return self.readout(stream)


def test_a_block_in_two_places_is_trained_as_one_and_stays_one() -> None:
    trained = []
    for names in (1, 2):
        torch.manual_seed(0)
        model = Repeats(names)
        st.fit(model, PARITY, **QUICK)
        assert model.blocks[0] is model.blocks[-1]
        assert all(isinstance(weight, nn.Parameter) for weight in model.parameters())
        trained.append([value.clone() for value in model.parameters()])
    assert all(torch.equal(one, two) for one, two in zip(*trained, strict=True))
    findings = st.check_model(Repeats(2), PARITY)
    assert all(finding.ok and not finding.detail for finding in findings)


class Frozen(Plain):
    """The same, of which the named parts are not trained; and one that has no effect."""

    def __init__(self, *parts: str) -> None:
        super().__init__()
        self.idle = nn.Parameter(torch.ones(3))
        for part in parts:
            self.get_submodule(part).requires_grad_(False)


def test_parameters_that_require_no_gradient_or_have_no_effect_stay_as_they_are() -> None:
    model = Frozen("network")
    before = weights_of(model)
    st.fit(model, PARITY, **QUICK)
    changed = {name for name, value in weights_of(model).items() if not value.equal(before[name])}
    assert changed == {"embedding.weight", "readout.weight", "readout.bias"}
    assert not any(weight.requires_grad for weight in model.network.parameters())


class Expanded(Plain):
    """The same, with a buffer and a parameter whose numbers are one in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.ones(1, 1, 1).expand(1, 1, 2))
        self.shift = nn.Parameter(torch.zeros(1).expand(2))

    def forward(self, symbols: Tensor) -> Tensor:
        return super().forward(symbols) + self.shift


def test_a_module_with_expanded_tensors_has_its_best_weights_after_training() -> None:
    model = Expanded()
    weight = model.shift
    assert st.fit(model, PARITY, **QUICK).best_step
    assert model.shift is weight and model.shift[0] != model.shift[1]
    assert model.scale.tolist() == [[[1, 1]]]


def test_training_changes_a_module_in_place_to_its_best_weights_and_keeps_its_mode() -> None:
    torch.manual_seed(0)
    model = Plain().eval()
    before = weights_of(model)
    records = list(st.train(model, PARITY, **QUICK))
    assert [record.step for record in records] == [10, 20, 30]
    assert records[-1].loss < records[0].loss
    assert not model.training
    after = weights_of(model)
    assert any(not torch.equal(before[name], after[name]) for name in before)
    best = max(records, key=lambda r: (r.validation_accuracy or 0, -(r.validation_loss or 0)))
    again = Plain().eval()
    again.load_state_dict(before)
    for record in st.train(again, PARITY, **QUICK):
        if record.step == best.step:
            break
    assert all(torch.equal(value, after[name]) for name, value in weights_of(again).items())


def test_training_that_diverges_warns_and_leaves_the_initial_weights() -> None:
    model = Plain()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.warns(
        StatetrackWarning, match="training diverged: .* from step [0-9]+ on; .* lower lrs"
    ):
        list(st.train(model, PARITY, **{**QUICK, "lrs": (1e30,)}))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_model_by_name_is_trained_as_a_run_trains_it(tmp_path) -> None:
    model = st.make_model("bilinear", PARITY, hidden=4)
    records = list(st.train(model, PARITY, **QUICK))
    run = st.Run.start(model="bilinear", task="parity", hidden=4, out=tmp_path / "run", **QUICK)
    assert list(run.train()) == records
    trained = run.model().state_dict()
    assert all(torch.equal(value, trained[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stpes": 3}, "train: unknown key 'stpes'. Did you mean 'steps'?"),
        ({"checkpoint_every": 3}, "'checkpoint_every' is a setting of runs"),
        ({"seeds": 2}, "one seed and one learning rate"),
        ({"learning_rate": 0.1}, "unknown key 'learning_rate'. Did you mean 'lrs'?"),
        ({"hidden_size": 4}, "unknown key 'hidden_size'"),
        ({"lrs": (0.1, 0.2)}, "one seed and one learning rate"),
    ],
    ids=str,
)
def test_settings_that_one_module_cannot_have_are_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        st.train(Plain(), PARITY, **settings)
    assert message in str(caught.value)


def test_logits_of_a_wrong_width_are_refused_before_training() -> None:
    with pytest.raises(SettingsError, match=r"gives logits \[2, 8, 3\] .* logits \[2, 8, 2\]: one"):
        list(st.train(Plain(num_labels=3), PARITY, **QUICK))
    with pytest.raises(SettingsError, match="one for each of 2 labels"):
        list(st.evaluate(Plain(num_labels=3), PARITY, [5], num_words=10))


def test_a_model_that_is_not_causal_is_warned_of_and_a_causal_one_is_not() -> None:
    with pytest.warns(StatetrackWarning, match="not causal"):
        list(st.train(LooksAhead(), PARITY, **QUICK))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(st.train(Plain(), PARITY, **QUICK))


class KnowsTheLength(Plain):
    """Answers change with the number of symbols that are still to come."""

    def forward(self, symbols: Tensor) -> Tensor:
        return super().forward(symbols) + symbols.shape[1] * torch.eye(2)[0]


def test_a_model_that_knows_how_long_a_word_is_is_not_causal() -> None:
    with pytest.warns(StatetrackWarning, match="change with the number of later symbols"):
        list(st.evaluate(KnowsTheLength(), PARITY, 5, num_words=4))


class Overflows(Plain):
    """Its logits are not finite from the fourth position on."""

    def forward(self, symbols: Tensor) -> Tensor:
        logits = super().forward(symbols)
        return torch.cat([logits[:, :3], logits[:, 3:] / 0], 1)


def test_evaluation_warns_once_each_of_later_symbols_and_of_logits_that_are_not_finite() -> None:
    model = LooksAhead().train()
    with pytest.warns(StatetrackWarning) as told:
        list(st.evaluate(model, PARITY, [5, 9], num_words=4))
    assert [str(each.message).partition(":")[0] for each in told] == ["the model is not causal"]
    assert model.training
    with pytest.warns(StatetrackWarning) as told:
        scores = list(st.evaluate(Overflows(), PARITY.source, [3, 9, 12], num_words=4))
    assert [score.nonfinite_from for score in scores] == [None, 4, 4] and len(told) == 1
    assert "NaN or infinite from position 4 on: such answers count as wrong" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for causal in (Plain(), Scanning(), Stepping()):
            list(st.evaluate(causal, PARITY, [1, 9], num_words=4))


@pytest.mark.parametrize("search", [st.extract, st.stress, st.certify, st.probe])
def test_searches_warn_once_of_a_model_that_is_not_causal(search: Any) -> None:
    with pytest.warns(StatetrackWarning) as told:
        search(LooksAhead(), PARITY, seconds=0.01)
    assert [str(each.message).partition(":")[0] for each in told] == ["the model is not causal"]


def test_a_module_is_fitted_in_one_call_to_what_train_yields() -> None:
    torch.manual_seed(0)
    model, again = Plain(), Plain()
    again.load_state_dict(model.state_dict())
    found = st.fit(model, PARITY, **{**QUICK, "lrs": 1e-2})  # a number is one rate
    assert list(found.records) == list(st.train(again, PARITY, **QUICK))
    assert weights_of(model).keys() == weights_of(again).keys()
    assert all(torch.equal(v, weights_of(again)[name]) for name, v in weights_of(model).items())
    best = max(found.records, key=lambda r: (r.validation_accuracy or 0, -(r.validation_loss or 0)))
    assert (found.steps, found.best_step, found.stopped) == (30, best.step, "")
    assert found.validation_accuracy == best.validation_accuracy
    assert "records" not in repr(found) and "best_step=" in repr(found)
    with pytest.warns(StatetrackWarning, match="training diverged"):
        wild = st.fit(Plain(), PARITY, **{**QUICK, "lrs": 1e30})
    assert (wild.best_step, wild.validation_loss, wild.stopped) == (0, None, "diverged")


def test_editors_know_every_setting_of_training_by_name() -> None:
    fields = {*DataSettings.model_fields, *TrainSettings.model_fields}
    assert {*TrainingKeywords.__annotations__} == fields - {"task", "checkpoint_every"}
    for function in (st.fit, st.train):
        (settings,) = get_type_hints(function)["settings"].__args__
        assert settings is TrainingKeywords


def test_training_that_nobody_iterates_is_warned_of(tmp_path) -> None:
    with pytest.warns(StatetrackWarning, match="nothing was trained.*statetrack.fit"):
        st.train(Plain(), PARITY, **QUICK)
    run = st.Run.start(model="lstm", task="parity", hidden=2, out=tmp_path / "run", **QUICK)
    with pytest.warns(StatetrackWarning, match="nothing was trained.*run.train"):
        run.train()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in st.train(Plain(), PARITY, **QUICK):
            break
        st.train(Plain(), PARITY, **QUICK).close()


def test_a_module_computes_with_one_thread_and_the_callers_number_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number, seen = [2], []
    monkeypatch.setattr("statetrack.ops.devices.os.cpu_count", lambda: 4)
    monkeypatch.setattr(torch, "get_num_threads", lambda: number[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda n: number.__setitem__(0, n))

    class Counting(Plain):
        def forward(self, symbols: Tensor) -> Tensor:
            seen.append(number[0])
            return super().forward(symbols)

    records = st.train(Counting(), PARITY, **QUICK)
    seen.clear()  # what is checked before
    for _ in records:
        assert number == [2]
    assert {*seen} == {1}
    seen.clear()
    assert list(st.evaluate(Counting(), PARITY, [5, 9], num_words=4)) and number == [2]
    assert {*seen} == {1}
    seen.clear()
    assert list(st.evaluate(Counting(), PARITY, 5, num_words=4, threads=3)) and {*seen} == {3}


class Bare(nn.Module):
    """It has no parameters."""

    def forward(self, symbols: Tensor) -> Tensor:
        return torch.zeros(*symbols.shape, 2)


class Detached(Plain):
    """The same, without gradients."""

    @torch.no_grad()
    def forward(self, symbols: Tensor) -> Tensor:
        return super().forward(symbols)


def scripted() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch would rather export it
        return torch.jit.script(Plain())


class Pair(Plain):
    """Logits, and something else beside them."""

    def forward(self, symbols: Tensor) -> Any:
        return super().forward(symbols), None


class BeginsWithNothing(Scanning):
    """torch takes zeros where it is given no state."""

    def initial_state(self, num_words: int) -> Any:
        return None


class Lazy(Plain):
    """Its readout gets its shape at the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.readout = nn.LazyLinear(2)


S3 = st.load_task("s3")
MISTAKES: dict[str, Any] = {
    "make_model: Plain is no name: give one": lambda: st.make_model(Plain(), "parity"),
    "fit: Bare has no parameters": lambda: st.fit(Bare(), PARITY),
    "fit: Linear cannot read symbols [B, T] of int64: mat1": lambda: st.fit(
        nn.Linear(3, 2), PARITY, **QUICK
    ),
    "there is nothing to train: no parameter": lambda: st.fit(
        Plain().requires_grad_(False), PARITY, **QUICK
    ),
    "logits depend on no weight that is trained": lambda: st.fit(Detached(), PARITY, **QUICK),
    "fit: Plain is a class: give a module that is made of it": lambda: st.fit(Plain, PARITY),
    "train: the model is a module, and the task comes after": lambda: st.train("parity", Plain()),
    "evaluate: the model is a torch.nn.Module, and the task": lambda: st.evaluate(
        PARITY, Plain(), 5
    ),
    "evaluate: Plain is a class": lambda: st.evaluate(Plain, PARITY, [5]),
    "does not read the symbols of the task, 0 to 5: index out of": lambda: st.fit(
        Plain(2, 6), S3, **QUICK
    ),
    "make it for num_symbols=6": lambda: list(st.evaluate(Plain(2, 6), S3, [5])),
    "0 to 5: it was made for 2; make it": lambda: list(
        st.evaluate(st.make_model("bilinear", PARITY), S3, [5])
    ),
    "lengths [0]: give one length or more, each from 1 on": lambda: st.evaluate(
        Plain(), PARITY, [0]
    ),
    "lengths '500': write whole numbers, as in [10, 500]": lambda: st.evaluate(
        Plain(), PARITY, "500"
    ),
    "lengths ['500']: write whole numbers": lambda: st.evaluate(Plain(), PARITY, ["500"]),
    "lengths [9.0]: write whole numbers": lambda: st.evaluate(Plain(), PARITY, [9.0]),
    "num_words '9'": lambda: st.evaluate(Plain(), PARITY, [9], num_words="9"),
    "'model' is the name of a registered model, and Plain is none": lambda: st.Run.start(
        model=Plain(), task="parity"
    ),
    "'task' is a task's name or the path of its file (given: a Task)": lambda: st.Run.start(
        model="lstm", task=PARITY
    ),
    "predict: lstm is a model: the task comes first": lambda: st.predict("lstm", "s3"),
    "predict: Plain is a class": lambda: st.predict("s3", Plain),
    "the model gives a tuple for symbols [2, 5], and not": lambda: list(
        st.evaluate(Pair(), PARITY, 5)
    ),
    "the model gives a tuple for symbols [1, 1], and not": lambda: st.extract(
        Pair(), num_symbols=2, num_labels=2
    ),
    "a tuple for symbols [1, 1], and not a tensor of logits [1, 1, 2]": lambda: st.certify(
        Pair(), PARITY
    ),
    "the model gives logits [1, 1, 6] for symbols [1, 1], and not": lambda: st.stress(
        Plain(2, 6), PARITY
    ),
    "Plain does not read the symbols of the task, 0 to 5": lambda: st.probe(Plain(2, 6), S3),
    "evaluate: Lazy is not initialised: 'readout.weight' gets its": lambda: st.evaluate(
        Lazy(), PARITY, 5
    ),
    "evidence: Lazy is not initialised: 'readout.weight' gets": lambda: st.stress(Lazy(), PARITY),
    "`initial_state` gives None, not made as the states after": lambda: st.probe(
        BeginsWithNothing(), PARITY, seconds=0.5
    ),
    "`initial_state(B)` must give the same tensors": lambda: st.extract(
        BeginsWithNothing(), num_symbols=2, num_labels=2, seconds=0.5
    ),
    "fit: a module of torch.jit cannot be trained": lambda: st.fit(scripted(), PARITY, **QUICK),
    "a task is given by its name, by the path of its file": lambda: st.load_task(5),
    "search for evidence: the model is a module": lambda: st.certify("parity", Plain()),
    "check_model: Plain is a class": lambda: st.check_model(Plain, "parity"),
    "check_model: give a task, or num_symbols": lambda: st.check_model(Plain()),
}


@pytest.mark.parametrize("told", MISTAKES)
def test_a_mistake_in_python_is_one_sentence(told: str) -> None:
    with pytest.raises(st.StatetrackError) as caught:
        MISTAKES[told]()
    assert told in str(caught.value) and "\n" not in str(caught.value)


class Turns(nn.Module):
    """Numbers of modulus 1 are multiplied with each other; all parameters are complex."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = nn.Parameter(torch.randn(2, 8, dtype=torch.complex64))
        self.readout = nn.Parameter(torch.randn(8, 2, dtype=torch.complex64))

    def forward(self, symbols: Tensor) -> Tensor:
        return (self.turns.sgn()[symbols].cumprod(1) @ self.readout).real


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_complex_parameters_are_trained_and_checked(optimizer: str) -> None:
    torch.manual_seed(0)
    model = Turns()
    found = st.fit(model, PARITY, optimizer=optimizer, **QUICK)
    assert found.best_step and model.turns.imag.abs().min() > 0
    assert all(finding.ok and not finding.detail for finding in st.check_model(model, PARITY))
    assert st.stress(model, PARITY, seconds=0.1).horizon < 100


class KeepsActivations(Plain):
    """The last logits are kept, as for a later look at them."""

    def forward(self, symbols: Tensor) -> Tensor:
        self.kept = super().forward(symbols)
        return self.kept


@pytest.mark.parametrize(
    "model",
    [KeepsActivations(), Plain().bfloat16(), scripted()],
    ids=["keeps", "bfloat16", "script"],
)
def test_modules_that_torch_treats_apart_are_searched_as_others_are(model: nn.Module) -> None:
    model(torch.zeros(1, 1, dtype=torch.int64))
    with torch.no_grad():
        (score,) = st.evaluate(model, PARITY, 3, num_words=20)
    assert score.accuracy < 1
    assert st.stress(model, PARITY, seconds=0.1).horizon < 3
    assert all(finding.ok for finding in st.check_model(model, PARITY)[:3])


def test_a_module_without_shapes_is_one_finding_until_it_is_called() -> None:
    model = Lazy()
    (found,) = st.check_model(model, PARITY)
    assert not found.ok and "call the module once on symbols [B, T]" in found.detail
    model(torch.zeros(1, 1, dtype=torch.int64))
    assert all(finding.ok for finding in st.check_model(model, PARITY))


def test_a_module_is_checked_on_a_task() -> None:
    by_task = st.check_model(Plain(), "parity")
    assert by_task == st.check_model(Plain(), num_symbols=2, num_labels=2)


# --- evaluation ---


@pytest.mark.parametrize("kind", [Scanning, Stepping])
def test_a_model_with_a_state_is_read_in_pieces_with_the_same_scores(
    kind: type[Plain], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("statetrack.evaluation.CHUNK", 50 * 7)
    torch.manual_seed(0)
    model, whole = kind(), Plain()
    whole.load_state_dict(model.state_dict())
    arguments: dict[str, Any] = {"num_words": 50, "seed": 1}
    scores = list(st.evaluate(model, PARITY, [3, 40], **arguments))
    assert scores == list(st.evaluate(whole, PARITY, [40, 3], **arguments))
    assert 0 < scores[1].accuracy < 1
    if isinstance(model, Scanning):
        assert max(model.lengths) == 7 and sum(model.lengths) == 40


def test_scores_of_an_automaton_are_those_of_its_task_and_leave_the_mode() -> None:
    model = Plain().train()
    by_task = list(st.evaluate(model, PARITY, [20], num_words=40))
    assert list(st.evaluate(model, PARITY.automaton, [20], num_words=40)) == by_task
    assert model.training
    assert by_task[0].interval == (by_task[0].low, by_task[0].high)


# --- predictions ---


def test_a_prediction_is_the_same_however_the_model_is_given() -> None:
    task = st.load_task("s3")
    expected = st.predict(task, "bilinear-block", block_size=1)
    model = st.make_model("bilinear-block", task, block_size=1)
    assert isinstance(model, RecurrentModel)
    assert st.predict(task, model) == st.predict(task, model.settings) == expected
    assert st.predict(st.analyse(task.automaton), model) == expected
    assert expected.answer == "no"
    assert st.predict(task, Plain()).can == "unknown"
    with pytest.raises(SettingsError, match="given by its name"):
        st.predict(task, model, block_size=2)


def test_a_path_may_be_given_as_text_or_as_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine.yaml"
    file.write_text(st.load_task("parity").document().replace("name: parity", "name: mine"))
    plugin = tmp_path / "nothing.py"
    plugin.write_text('"""A file that registers nothing."""\n')
    for kind in (str, Path):
        given = kind(file)
        assert st.load_task(given).name == "mine"
        assert st.predict(given, "lstm").can == "yes"
        assert next(iter(st.stream(given, batch_size=2, length=3))).symbols.shape == (2, 3)
        model = st.make_model("lstm", given, hidden=2)
        assert next(st.evaluate(model, given, [3], num_words=4)).sequences == 4
        run = st.Run.start(model="lstm", task=given, hidden=2, out=kind(tmp_path / kind.__name__))
        assert st.Run.open(kind(run.path)).task.name == "mine"
        st.load_plugin(kind(plugin))
