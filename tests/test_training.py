"""Training a population: the sums are right, and no replica knows of any other.

R replicas, G seeds, B batch, T time, C labels.
"""

from __future__ import annotations

import io
import math
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack import training
from statetrack.errors import SettingsError
from statetrack.models import SequenceModel
from statetrack.runs import Experiment
from statetrack.runs.tensors import summary_of
from statetrack.settings import Settings
from statetrack.training import (
    LOSSES,
    Population,
    Record,
    Trainer,
    TrainSettings,
    Words,
    accuracy,
    answers_of,
    replicas_of,
    schedule_factor,
)
from statetrack.training.losses import mean_over_scored
from statetrack.training.losses.squared_error import squared_error
from statetrack.training.optimisers import step_of, without_compiler
from statetrack.training.population import Optimiser, clip_each_replica
from tests.setups import Setup

CPU = torch.device("cpu")

SMALL = {
    "model": "bilinear",
    "task": "modular-addition:m=3",
    "hidden": 6,
    "batch_size": 8,
    "train_length": "2-6",
    "validation_words": 40,
    "loss": "cross-entropy",
    "schedule": "constant",
    "device": "cpu",
}


def setup_of(**values: Any) -> Setup:
    return Setup.of(Experiment.from_values({**SMALL, **values}, "test"))


def trainer_of(setup: Setup, dtype: torch.dtype = torch.float64) -> Trainer:
    """A trainer as a run has it; in float64 replicas differ from each alone by rounding only."""
    population = Population(
        lambda: setup.make_model().to(dtype), setup.experiment.replicas, setup.device
    )
    batches, validation = setup.words()
    return Trainer(population, batches, validation, setup.experiment.training, setup.device)


def finish(trainer: Trainer) -> list[Record]:
    return [record for records in trainer.run() for record in records]


# --- losses ---


def example(*shape: int, num_labels: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    logits = torch.randn(*shape, num_labels)
    return logits, torch.randint(num_labels, shape), torch.rand(shape) < 0.6


def test_squared_error_is_the_distance_from_centred_one_hot_labels() -> None:
    logits, labels, _ = example(2, 3, 4)
    targets = functional.one_hot(labels, 5) - 1 / 5
    each = functional.mse_loss(logits, targets, reduction="none").sum(-1)
    torch.testing.assert_close(squared_error(logits, labels), each)
    torch.testing.assert_close(
        squared_error(targets, labels), torch.zeros(2, 3, 4), atol=1e-6, rtol=0
    )


@pytest.mark.parametrize(
    ("settings", "smoothing"),
    [
        (TrainSettings(loss="cross-entropy", label_smoothing=0.3), 0.0),
        (TrainSettings(loss="smoothed-cross-entropy", label_smoothing=0.3), 0.3),
    ],
)
def test_cross_entropy_is_smoothed_only_where_asked(
    settings: TrainSettings, smoothing: float
) -> None:
    logits, labels, _ = example(2, 3, 4)
    targets = (1 - smoothing) * functional.one_hot(labels, 5) + smoothing / 5
    each = -(targets * logits.log_softmax(-1)).sum(-1)
    torch.testing.assert_close(LOSSES[settings.loss](settings)(logits, labels), each)


@pytest.mark.parametrize("loss", ["squared-error", "smoothed-cross-entropy", "cross-entropy"])
def test_labels_that_are_not_asked_for_never_matter(loss: str) -> None:
    logits, labels, scored = example(2, 3, 4)
    logits.requires_grad_()
    others = torch.where(scored, labels, (labels + 1) % 5)
    function = LOSSES[loss](TrainSettings())
    one, two = (mean_over_scored(function(logits, each), scored) for each in (labels, others))
    assert torch.equal(one, two)
    (gradient,) = torch.autograd.grad(one.sum(), logits)
    assert (gradient[~scored] == 0).all() and (gradient[scored].abs().amax(-1) > 0).all()
    assert torch.equal(accuracy(logits, labels, scored), accuracy(logits, others, scored))


def test_the_mean_is_over_the_scored_positions_of_each_replica_alone() -> None:
    values = torch.arange(12.0).view(2, 2, 3)
    scored = torch.tensor([[[1, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]]]).bool()
    assert mean_over_scored(values, scored).tolist() == [2.5, 8.5]
    assert mean_over_scored(values, torch.zeros_like(scored)).tolist() == [0.0, 0.0]


def test_accuracy_counts_right_answers_where_they_are_asked_for() -> None:
    logits = torch.eye(3)[torch.tensor([[[0, 1, 2, 2]]])]
    labels = torch.tensor([[[0, 1, 1, 2]]])
    scored = torch.tensor([[[True, False, True, True]]])
    assert accuracy(logits, labels, scored).tolist() == [pytest.approx(2 / 3)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_answer_is_right_only_where_all_its_logits_are_finite(
    value: float, dtype: torch.dtype
) -> None:
    """The largest of NaNs would be the first: label 0."""
    logits = torch.eye(3, dtype=dtype)[torch.tensor([[[0, 0, 2, 2]]])]
    labels = torch.tensor([[[0, 0, 2, 2]]])
    scored = torch.ones(1, 1, 4, dtype=torch.bool)
    assert accuracy(logits, labels, scored).tolist() == [1.0]
    logits[0, 0, 1] = value
    logits[0, 0, 2, 0] = value
    assert accuracy(logits, labels, scored).tolist() == [0.5]
    assert answers_of(logits)[1].tolist() == [[[True, False, False, True]]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_answers_are_the_first_of_the_largest_logits_and_finite_where_all_are(
    dtype: torch.dtype,
) -> None:
    logits = torch.randint(0, 3, (2, 50, 20, 7)).to(dtype)
    odd = torch.rand(logits.shape) < 0.02
    values = torch.tensor([torch.nan, torch.inf, -torch.inf], dtype=dtype)
    logits[odd] = values[torch.randint(0, 3, (int(odd.sum()),))]
    answers, finite = answers_of(logits)
    assert torch.equal(answers, logits.argmax(-1))
    assert torch.equal(finite, logits.isfinite().all(-1))
    assert not finite.all() and finite.any()


def test_losses_of_bfloat16_logits_are_taken_in_float32() -> None:
    logits, labels, _ = example(2, 3, 4)
    rounded = logits.bfloat16()
    for settings in (TrainSettings(loss="cross-entropy"), TrainSettings(loss="squared-error")):
        losses = LOSSES[settings.loss](settings)(rounded, labels)
        assert losses.dtype == torch.float32
        torch.testing.assert_close(losses, LOSSES[settings.loss](settings)(rounded.float(), labels))


# --- schedules and clipping ---


@pytest.mark.parametrize(
    ("schedule", "warmup", "factors"),
    [
        ("constant", 0.0, {0: 1.0, 57: 1.0, 99: 1.0}),
        ("linear", 0.0, {0: 1.0, 50: 0.5, 99: 0.01}),
        ("cosine", 0.0, {0: 1.0, 50: 0.5, 25: 0.5 + math.sqrt(0.125), 99: 0.00024672}),
        ("constant", 0.2, {0: 0.05, 9: 0.5, 19: 1.0, 20: 1.0, 99: 1.0}),
        ("linear", 0.2, {0: 0.05, 19: 1.0, 20: 1.0, 60: 0.5, 99: 0.0125}),
        ("cosine", 0.2, {19: 1.0, 20: 1.0, 60: 0.5}),
    ],
)
def test_the_learning_rate_follows_its_schedule(
    schedule: str, warmup: float, factors: dict[int, float]
) -> None:
    settings = TrainSettings.model_validate({"steps": 100, "schedule": schedule, "warmup": warmup})
    for step, factor in factors.items():
        assert schedule_factor(step, settings) == pytest.approx(factor, rel=1e-3), step


@pytest.mark.parametrize("largest", [0.01, 1.0, 1e6])
def test_each_replica_is_clipped_as_torch_clips_it_alone(largest: float) -> None:
    scales = torch.tensor([0.01, 1.0, 100.0])
    gradients = [torch.randn(3, 4, 5), torch.randn(3, 7)]
    gradients = [g * scales.view(3, *[1] * (g.dim() - 1)) for g in gradients]
    alone = []
    for row in range(3):
        parameters = [torch.nn.Parameter(torch.zeros_like(g[row])) for g in gradients]
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient[row].clone()
        torch.nn.utils.clip_grad_norm_(parameters, largest)
        alone.append([parameter.grad for parameter in parameters])
    clip_each_replica(gradients, largest)
    for row in range(3):
        for gradient, expected in zip(gradients, alone[row], strict=True):
            assert expected is not None
            torch.testing.assert_close(gradient[row], expected, rtol=1e-4, atol=1e-7)


# --- a population against plain torch.optim, one replica at a time ---

BETAS = (0.9, 0.95)
OPTIMISERS: dict[str, Callable[[Any, float, float], torch.optim.Optimizer]] = {
    "adam": lambda p, lr, decay: torch.optim.Adam(p, lr, BETAS, weight_decay=decay),
    "adamw": lambda p, lr, decay: torch.optim.AdamW(p, lr, BETAS, weight_decay=decay),
    "sgd": lambda p, lr, decay: torch.optim.SGD(p, lr, momentum=0.9, weight_decay=decay),
    "rmsprop": lambda p, lr, decay: torch.optim.RMSprop(p, lr, weight_decay=decay),
}


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_twenty_steps_are_those_of_a_plain_optimiser(name: str, clip: float) -> None:
    setup = setup_of(
        optimizer=name,
        weight_decay=0.01,
        clip=clip,
        steps=20,
        schedule="cosine",
        warmup=0.2,
        seeds=2,
        lrs=(1e-3, 2e-2),
    )
    trainer = trainer_of(setup)
    words = trainer.batches.block(0, 20)
    finish(trainer)
    trained = trainer.population.weights()
    for row, replica in enumerate(setup.experiment.replicas):
        alone = plainly_trained(setup, replica.seed, replica.lr, words[:, replica.seed], clip)
        for key, parameter in alone.state_dict().items():
            torch.testing.assert_close(trained[key][row], parameter, rtol=1e-7, atol=1e-9)


def plainly_trained(setup: Setup, seed: int, lr: float, words: Words, clip: float) -> SequenceModel:
    """One replica, trained by a loop that knows nothing of populations."""
    settings = setup.experiment.training
    torch.manual_seed(seed)
    model = setup.make_model().double()
    optimiser = OPTIMISERS[settings.optimizer](model.parameters(), lr, settings.weight_decay)
    warm = [0.25, 0.5, 0.75, 1.0]
    fall = [0.5 * (1 + math.cos(math.pi * step / 16)) for step in range(16)]
    for step, factor in enumerate(warm + fall):
        batch = words[step]
        optimiser.param_groups[0]["lr"] = lr * factor
        optimiser.zero_grad()
        scored = batch.scored
        functional.cross_entropy(model(batch.symbols)[scored], batch.labels[scored]).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimiser.step()
    return model


def test_gradients_in_a_population_are_those_alone_where_training_multiplies_rounding() -> None:
    """`rwkv7` at a large learning rate: weights drift apart, gradients of equal weights do not."""
    small = {key: value for key, value in SMALL.items() if key != "hidden"}
    small |= {"model": "rwkv7", "width": 16, "rank": 8, "lrs": (1e-2,), "seeds": 2, "steps": 31}
    setup = Setup.of(Experiment.from_values(small, "test"))
    trainer = trainer_of(setup, torch.float32)
    words = trainer.batches.block(0, 31)
    for step, _ in enumerate(trainer.run()):
        if step % 10:
            continue
        weights = trainer.population.weights()
        together = gradients_of(trainer.population, weights, words[step])
        for row in range(2):
            alone = Population(setup.make_model, setup.experiment.replicas[row : row + 1], CPU)
            own = {key: value[[row]] for key, value in weights.items()}
            found = gradients_of(alone, own, words[step][[row]])[0]
            off = float((together[row] - found).norm() / found.norm())
            assert off < 1e-4, (step, row)


def gradients_of(population: Population, weights: dict[str, Tensor], words: Words) -> Tensor:
    """All gradients of some weights in one row for each replica: [R, N]."""
    population.load(weights)
    population(words.symbols).square().mean((1, 2, 3)).sum().backward()
    parts = []
    for value in population.trained.values():
        assert value.grad is not None
        parts.append(value.grad.flatten(1))
        value.grad = None
    return torch.cat(parts, 1)


def test_replicas_of_one_seed_see_the_same_words_and_others_do_not() -> None:
    setup = setup_of(seeds=2, lrs=(1e-3, 1e-2))
    trainer = trainer_of(setup)
    assert [(r.seed, r.lr) for r in setup.experiment.replicas] == [
        (0, 1e-3),
        (1, 1e-3),
        (0, 1e-2),
        (1, 1e-2),
    ]
    assert trainer.word_rows.tolist() == [0, 1, 0, 1]
    words = trainer.batches.block(0, 3)
    assert words.symbols.shape == (3, 2, 8, 6)
    assert not torch.equal(words.symbols[:, 0], words.symbols[:, 1])


def test_replicas_start_as_models_of_their_seed_do_whatever_stands_before_them() -> None:
    setup = setup_of()
    weights = Population(setup.make_model, replicas_of((4, 7), (1e-2, 1e-3)), CPU).weights()
    for row, seed in enumerate((4, 7, 4, 7)):
        torch.manual_seed(seed)
        for key, value in setup.make_model().state_dict().items():
            assert torch.equal(weights[key][row], value)


def test_building_a_population_draws_nothing_from_torchs_own_random_numbers() -> None:
    before = torch.get_rng_state()
    Population(setup_of().make_model, replicas_of((1, 2), (1e-2,)), CPU)
    assert torch.equal(torch.get_rng_state(), before)


# --- leaving the population ---


def assert_same_replica(one: Trainer, row: int, other: Trainer, other_row: int) -> None:
    for key, value in one.best.items():
        torch.testing.assert_close(value[row], other.best[key][other_row], rtol=1e-6, atol=1e-9)
    assert one.progress[row].best_step == other.progress[other_row].best_step


def test_a_replica_without_improvement_stops_and_the_others_never_notice() -> None:
    """A learning rate of nearly 0 never improves; the replicas beside it go on to the end."""
    common = {"steps": 60, "validate_every": 10, "patience": 3, "optimizer": "sgd"}
    both = trainer_of(setup_of(lrs=(1e-300, 1e-2), seeds=2, **common))
    start = both.population.weights()
    records = finish(both)
    assert [progress.stopped for progress in both.progress[:2]] == ["no improvement"] * 2
    assert {record.step for record in records if record.replica == 0} == {10, 20, 30, 40}
    for key, value in both.best.items():
        torch.testing.assert_close(value[:2], start[key][:2], rtol=0, atol=1e-12)
    alone = trainer_of(setup_of(lrs=(1e-2,), seeds=2, **common))
    finish(alone)
    for row in range(2):
        assert_same_replica(both, 2 + row, alone, row)


def test_a_replica_that_reaches_the_loss_stops_with_the_weights_that_reached_it() -> None:
    common = {"steps": 150, "validate_every": 10, "hidden": 9, "schedule": "constant"}
    trainer = trainer_of(setup_of(lrs=(1e-2, 1e-6), stop_loss=0.5, **common))
    records = finish(trainer)
    quick, slow = trainer.progress
    assert (quick.stopped, slow.stopped) == ("loss reached", "")
    assert quick.best_loss <= 0.5 < slow.best_loss
    last = max(record.step for record in records if record.replica == 0)
    assert quick.best_step == last < 150
    assert max(record.step for record in records if record.replica == 1) == 150
    alone = trainer_of(setup_of(lrs=(1e-6,), **common))
    finish(alone)
    assert_same_replica(trainer, 1, alone, 0)


def test_training_ends_when_every_replica_has_stopped() -> None:
    trainer = trainer_of(
        setup_of(lrs=(1e-300, 1e-299), steps=500, validate_every=10, patience=1, optimizer="sgd")
    )
    finish(trainer)
    assert trainer.finished and trainer.step == 20
    assert [progress.stopped for progress in trainer.progress] == ["no improvement"] * 2


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_replica_that_diverges_stops_and_leaves_the_others_as_they_are(clip: float) -> None:
    common = {"steps": 40, "validate_every": 10, "clip": clip}
    trainer = trainer_of(setup_of(lrs=(1e200, 1e-2), **common))
    start = trainer.population.weights()
    finish(trainer)
    wild, tame = trainer.progress
    assert (wild.stopped, tame.stopped) == ("diverged", "")
    assert (wild.diverged_at, tame.diverged_at) == (2, 0)  # the first step with the new weights
    for key, value in trainer.best.items():
        assert torch.equal(value[0], start[key][0]), "weights that are no numbers were kept"
    alone = trainer_of(setup_of(lrs=(1e-2,), **common))
    finish(alone)
    assert_same_replica(trainer, 1, alone, 0)


@pytest.mark.parametrize("at", [1, 2, 5, 9])
def test_the_step_at_which_a_replica_diverged_is_the_same_after_a_checkpoint(at: int) -> None:
    setup = setup_of(lrs=(1e200, 1e-2), steps=20, validate_every=10)
    first = trainer_of(setup)
    next(some for some in first.run() if first.step == at)
    second = trainer_of(setup)
    second.restore(first.state())
    finish(second)
    assert [progress.diverged_at for progress in second.progress] == [2, 0]


# --- selection ---


def test_a_replica_that_diverges_later_keeps_its_best_weights_and_can_be_selected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainer = trainer_of(setup_of(steps=30, validate_every=5, lrs=(1e-2, 1e-30)))
    step = trainer._train_step

    def overflow(words: Words) -> Tensor:
        totals = step(words)
        if trainer.step == 12:
            totals[0, 0] = math.nan
            with torch.no_grad():
                for value in trainer.population.parameters.values():
                    value[0] = math.nan
        return totals

    monkeypatch.setattr(trainer, "_train_step", overflow)
    finish(trainer)
    wild, _ = trainer.progress
    assert wild.stopped == "diverged" and 5 <= wild.best_step <= 10
    assert wild.diverged_at == 13  # of steps from 1
    assert all(value.isfinite().all() for value in trainer.best.values())
    summary = summary_of(trainer, 0.0)
    assert summary.selected == 0 and summary.trained == (0, 1)
    assert [outcome.diverged_at for outcome in summary.replicas] == [13, None]


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf], ids=str)
def test_a_validation_loss_that_is_not_finite_neither_selects_nor_reaches_anything(
    monkeypatch: pytest.MonkeyPatch, loss: float
) -> None:
    trainer = trainer_of(setup_of(steps=4, validate_every=2, stop_loss=0.1, patience=2))
    one = torch.tensor([1.0])
    monkeypatch.setattr(trainer, "_validate", lambda: (torch.tensor([loss]), one, one))
    finish(trainer)
    (progress,) = trainer.progress
    assert (progress.best_step, progress.stopped) == (0, "no improvement")
    summary = summary_of(trainer, 0.0)
    assert summary.selected is None and summary.replicas[0].stopped == "diverged"


def test_the_best_weights_are_those_of_the_best_validation() -> None:
    """At every validation the weights are copied; those kept are of the highest, first."""
    trainer = trainer_of(setup_of(seeds=2, lrs=(5e-2,), steps=60, validate_every=5))
    validated: dict[int, list[tuple[float, float, int]]] = {0: [], 1: []}
    weights = {}
    for records in trainer.run():
        for record in records:
            if record.validation_accuracy is not None and record.validation_loss is not None:
                score = (record.validation_accuracy, -record.validation_loss, record.step)
                validated[record.replica].append(score)
                weights[record.step] = trainer.population.weights()
    for row, scores in validated.items():
        assert [step for _, _, step in scores] == list(range(5, 61, 5))
        best = max(scores)[2]
        assert trainer.progress[row].best_step == best
        for key, value in trainer.best.items():
            assert torch.equal(value[row], weights[best][key][row])


def test_validation_is_computed_on_the_words_of_validation() -> None:
    trainer = trainer_of(setup_of(seeds=2, steps=5, validate_every=5))
    records = finish(trainer)
    model = trainer.population.model
    for row, record in enumerate(records):
        words = trainer.validation[row]
        model.load_state_dict({key: value[row] for key, value in trainer.best.items()})
        with torch.no_grad():
            logits = model(words.symbols)[words.scored]
        labels = words.labels[words.scored]
        right = (logits.argmax(-1) == labels).float().mean()
        assert record.validation_accuracy == pytest.approx(float(right))
        loss = functional.cross_entropy(logits, labels)
        assert record.validation_loss == pytest.approx(float(loss))


def test_validation_words_have_the_training_lengths_and_are_not_those_of_training() -> None:
    batches, validation = setup_of(steps=10, validation_words=200).words()
    lengths = validation.scored.sum(-1)
    assert (int(lengths.min()), int(lengths.max())) == (2, 6)
    trained = batches.block(0, 25)
    assert not torch.equal(trained.symbols[:, 0].flatten(0, 1), validation.symbols[0])


def test_a_frozen_recurrence_trains_the_readout_alone() -> None:
    trainer = trainer_of(setup_of(freeze="recurrence", steps=10, optimizer="adamw"))
    start = trainer.population.weights()
    finish(trainer)
    for key, value in trainer.population.weights().items():
        assert torch.equal(value, start[key]) == (not key.startswith("readout."))


@pytest.mark.parametrize(("submodule", "trained"), [("head", ["head.weight"]), ("readout", None)])
def test_the_readout_is_the_submodule_that_the_model_names(
    submodule: str, trained: list[str] | None
) -> None:
    class Headed(SequenceModel):
        settings_class = Settings
        readout_name = submodule

        def __init__(self) -> None:
            super().__init__(Settings(), num_symbols=2, num_labels=2)
            self.embedding = nn.Embedding(2, 3)
            self.head = nn.Linear(3, 2, bias=False)

        def forward(self, symbols: Tensor) -> Tensor:
            return self.head(self.embedding(symbols))

    population = Population(Headed, replicas_of([0], [1e-3]), torch.device("cpu"))
    if trained is None:
        with pytest.raises(SettingsError, match="Headed has no submodule 'readout'"):
            population.freeze_recurrence()
    else:
        population.freeze_recurrence()
        assert list(population.trained) == trained


def test_the_readout_of_a_module_is_the_submodule_that_it_names() -> None:
    class Headed(nn.Module):
        readout_name = "head"

        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(2, 3), nn.Linear(3, 2, bias=False)

    population = Population(Headed, replicas_of([0], [1e-3]), torch.device("cpu"))
    population.freeze_recurrence()
    assert list(population.trained) == ["head.weight"]


class Layered(SequenceModel):
    """A model with a layer that computes otherwise in training."""

    settings_class = Settings

    def __init__(self, layer: nn.Module) -> None:
        super().__init__(Settings(), num_symbols=2, num_labels=2)
        self.embedding, self.layer = nn.Embedding(2, 3), layer

    def forward(self, symbols: Tensor) -> Tensor:
        logits: Tensor = self.layer(self.embedding(symbols).flatten(0, 1))[:, :2]
        return logits.unflatten(0, symbols.shape)


class Fails(nn.Module):
    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            raise KeyError("a fault of the author's own")
        return inputs


@pytest.mark.parametrize(
    ("layer", "kind", "says"),
    [
        (lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)), SettingsError, "Layer"),
        (Fails, KeyError, "own"),
    ],
)
def test_replicas_that_cannot_be_computed_as_one_are_refused_before_training(
    layer: Callable[[], nn.Module], kind: type[Exception], says: str
) -> None:
    def population(num: int) -> Population:
        replicas = replicas_of(list(range(num)), [1e-3])
        return Population(lambda: Layered(layer()), replicas, torch.device("cpu"))

    with pytest.raises(kind, match=says) as refused:
        population(2).check_together(4)
    if kind is SettingsError:
        assert "set the class attribute `vectorises = False`" in str(refused.value)
        population(1).check_together(4)


def test_a_look_at_replicas_changes_neither_them_nor_random_numbers() -> None:
    def make() -> nn.Module:
        return Layered(nn.Sequential(nn.BatchNorm1d(3), nn.Dropout()))

    population = Population(make, replicas_of([0, 1], [1e-3]), torch.device("cpu"))
    before, drawn = population.weights(), torch.get_rng_state()
    population.check_together(4)
    assert torch.equal(drawn, torch.get_rng_state())
    assert all(torch.equal(before[name], now) for name, now in population.weights().items())
    population.model.train()
    population(torch.zeros(2, 2, 4, dtype=torch.int64))
    assert not torch.equal(
        before["layer.0.running_mean"], population.weights()["layer.0.running_mean"]
    )


# --- fixed words ---


def test_a_fixed_training_set_is_all_that_training_sees() -> None:
    setup = setup_of(train_samples=20, validation_words=30, seeds=2, batch_size=7)
    batches, validation = setup.words()
    words = batches.block(0, 40)
    for row in range(2):
        trained = keys(words.symbols[:, row].flatten(0, 1), words.scored[:, row].flatten(0, 1))
        held_out = keys(validation.symbols[row], validation.scored[row])
        assert len(trained) == 20 and len(held_out) == 30
        assert not trained & held_out


def keys(symbols: Tensor, scored: Tensor) -> set[tuple[int, ...]]:
    """The words themselves, without their padding."""
    return {
        tuple(word[:length].tolist())
        for word, length in zip(symbols, scored.sum(-1).tolist(), strict=True)
    }


# --- going on after an interruption ---


def interrupted(setup: Setup, at: int) -> tuple[Trainer, list[Record]]:
    """Train to a step, save, and go on in a new trainer from what was saved."""
    first, records = trainer_of(setup, torch.float32), []
    for some in first.run():
        records += some
        if first.step == at:
            break
    buffer = io.BytesIO()
    torch.save(first.state(), buffer)
    torch.manual_seed(12345)
    second = trainer_of(setup, torch.float32)
    buffer.seek(0)
    second.restore(torch.load(buffer, weights_only=True))
    assert second.step == at
    return second, records + finish(second)


@pytest.mark.parametrize(
    ("at", "values"),
    [
        (25, {"optimizer": "adam", "schedule": "cosine"}),
        (25, {"optimizer": "adamw", "weight_decay": 0.1, "clip": 0.5, "warmup": 0.3}),
        (30, {"optimizer": "sgd", "freeze": "recurrence"}),
        (1, {"optimizer": "rmsprop", "loss": "squared-error"}),
        (59, {"curriculum": 0.5, "supervision": "last", "model": "lstm"}),
        (33, {"lrs": (1e-300, 1e-2), "optimizer": "sgd", "patience": 1, "validate_every": 10}),
        (17, {"train_samples": 20, "model": "bilinear-cp", "rank": 7, "first": "fixed"}),
    ],
    ids=str,
)
def test_an_interruption_changes_no_bit(at: int, values: dict[str, Any]) -> None:
    common: dict[str, Any] = {"steps": 60, "validate_every": 15, "seeds": 2}
    setup = setup_of(**{**common, **values})
    straight = trainer_of(setup, torch.float32)
    records = finish(straight)
    resumed, records_of_both = interrupted(setup, at)
    assert records_of_both == records
    for key, value in straight.best.items():
        assert torch.equal(resumed.best[key], value), key
    for key, value in straight.population.weights().items():
        assert torch.equal(resumed.population.weights()[key], value), key
    assert resumed.progress == straight.progress


# --- the optimiser's own state ---


def test_replicas_that_leave_take_nothing_of_the_others_moments_with_them() -> None:
    population = Population(
        lambda: setup_of().make_model().double(), replicas_of((0, 1, 2), (1e-2,)), CPU
    )
    optimiser = Optimiser(population, TrainSettings(schedule="constant"), {})
    symbols = torch.randint(3, (3, 4, 5))
    population(symbols).square().sum().backward()
    optimiser.step(0)
    before = optimiser.moments()
    population.keep([0, 2])
    kept = Optimiser(population, TrainSettings(schedule="constant"), before).moments()
    assert {index for _, index in kept} == {0, 2}
    for key, moments in kept.items():
        assert torch.equal(moments["exp_avg"], before[key]["exp_avg"])


@pytest.mark.parametrize("name", ["adam", "adamw", "rmsprop", "sgd"])
def test_replicas_of_one_rate_are_one_parameter_and_change_as_each_alone(name, monkeypatch) -> None:
    given = TrainSettings(optimizer=name, weight_decay=0.1, schedule="constant")
    kind = training.OPTIMISERS[name]
    assert kind.by_coordinate
    found, numbers = [], []
    for together in (True, False):
        monkeypatch.setattr(kind, "by_coordinate", together)
        torch.manual_seed(0)
        replicas = replicas_of((0, 1), (1e-2, 3e-2))
        population = Population(lambda: setup_of().make_model().double(), replicas, CPU)
        optimiser = Optimiser(population, given, {})
        for step in range(3):
            symbols = torch.arange(60).view(1, 4, 15).expand(len(population), 4, 15) % 3
            population(symbols).square().sum().backward()
            optimiser.step(step)
            if step == 1:  # one rate has one replica left, the other two
                moments = optimiser.moments()
                population.keep([0, 2, 3])
                optimiser = Optimiser(population, given, moments)
        found.append((population.weights(), optimiser.moments()))
        numbers.append(sum(len(group["params"]) for group in optimiser.optimiser.param_groups))
    (weights, moments), (alone, moments_alone) = found
    assert numbers[0] == 2 * len(weights) and numbers[1] == 3 * len(weights)
    torch.testing.assert_close(weights, alone)
    torch.testing.assert_close(moments, moments_alone)


def test_a_tiny_model_learns_parity() -> None:
    trainer = trainer_of(
        setup_of(task="parity", hidden=4, lrs=(1e-2,), steps=150, validate_every=50, seeds=3),
        torch.float32,
    )
    finish(trainer)
    assert max(progress.best_accuracy for progress in trainer.progress) == 1.0


def test_numpy_words_become_tensors_that_torch_can_index_with() -> None:
    batches, validation = setup_of(seeds=2).words()
    words = batches.block(0, 2)
    for part in (words, validation):
        assert part.symbols.dtype == part.labels.dtype == torch.int64
        assert part.scored.dtype == torch.bool
    automaton = setup_of().task.automaton
    expected = automaton.labels_of(words.symbols.numpy())
    assert np.array_equal(words.labels.numpy()[words.scored], expected[words.scored])


def test_a_loss_of_exactly_zero_stops_nothing_unless_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(Trainer, "_validate", lambda self: (torch.zeros(1), torch.ones(1)))
    trainer = trainer_of(setup_of(steps=20, validate_every=5))
    finish(trainer)
    assert trainer.step == 20
    stopping = trainer_of(setup_of(steps=20, validate_every=5, stop_loss=1e-9))
    finish(stopping)
    assert stopping.step == 5 and stopping.progress[0].stopped == "loss reached"


def test_betas_are_refused_where_the_optimiser_has_none() -> None:
    with pytest.raises(SettingsError, match="beta2 is Adam's"):
        setup_of(optimizer="sgd", beta2=0.5)


def test_nothing_of_a_training_imports_the_compiler_of_torch(tmp_path):
    """It takes as long to import as the rest of torch; neither is SciPy or pandas needed.

    Of SciPy, numba imports `scipy.linalg` where it compiles loops, and what is solved at the end of
    training needs more.
    """
    code = """
        import gc
        import sys
        gc.disable()  # imports would look for garbage for a tenth of their time
        import statetrack as st
        from statetrack.cli.app import run
        from statetrack.models import MODELS
        from statetrack.training import OPTIMISERS

        def check(what):
            slow = {"torch._dynamo", "sympy", "pandas", "scipy.optimize"} & set(sys.modules)
            assert not slow, f"{what} imports {slow}"

        for name in MODELS:
            st.make_model(name, "parity")
            check(name)
        for name in OPTIMISERS:
            list(st.train(st.make_model("rnn", "parity"), "parity", optimizer=name, steps=2))
            check(name)
        train = "train --model lstm --task parity --steps 4 --seeds 2 --quiet"
        assert run([*train.split(), "--out", sys.argv[1]]) == 0
        check("train")
        assert run(["eval", sys.argv[1], "--length", "20", "--samples", "20"]) == 0
        check("eval")
        assert run(["train", "--resume", sys.argv[1], "--steps", "6", "--quiet"]) == 0
        check("resume")
        sweep = f"sweep --plugin {sys.argv[2]} --model divided --task parity --steps 2 --jobs 1"
        assert run([*sweep.split(), "--lrs", "0.1", "--out", sys.argv[1] + "s", "--quiet"]) == 0
        check("sweep")
        print("SciPy is imported:", "scipy.linalg" in sys.modules)
        solved = "train --model bilinear --hidden 8 --task parity --steps 60 --quiet"
        assert run([*solved.split(), "--out", sys.argv[1] + "solved"]) == 0
        assert "scipy.optimize" in sys.modules
        assert not {"torch._dynamo", "sympy"} & set(sys.modules)
    """
    own = """
        import torch
        from statetrack import MODELS, LinearModel, LinearSettings
        from statetrack.ops import DiagonalOperators

        @MODELS.register("divided")
        class Divided(LinearModel):
            settings_class = LinearSettings

            def __init__(self, settings, *, num_symbols, num_labels):
                super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
                drawn = torch.randn(self.embedding.num_rows, settings.hidden)
                self.gains = self.embedding.parameter(drawn / settings.hidden**0.5)

            def operators(self):
                return DiagonalOperators(self.embedding(self.gains))
    """
    (tmp_path / "own.py").write_text(textwrap.dedent(own))
    for name in ("compiling", "run"):
        paths = [str(tmp_path / name), str(tmp_path / "own.py")]
        command = [sys.executable, "-c", textwrap.dedent(code), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if "SciPy is imported: False" in done.stdout:
            return
    pytest.fail("loops that are on disk import SciPy")


def test_torch_has_its_own_marks_again_once_an_optimiser_is_made():
    marked = torch.optim.Optimizer.add_param_group
    with without_compiler():
        assert torch.optim.Optimizer.add_param_group is not marked
    assert torch.optim.Optimizer.add_param_group is marked


def test_the_step_of_an_optimiser_from_elsewhere_is_its_own():
    class Own(torch.optim.SGD):
        def step(self, closure=None):
            taken.append(closure)

    taken = []
    step_of(Own([nn.Parameter(torch.zeros(1))]))()
    assert taken == [None]
