"""Weight decay: which parameters it leaves alone is what the models' authors exempt."""

from __future__ import annotations

import pytest
import torch

from statetrack.models import MODELS, SequenceModel
from statetrack.training import Population, TrainSettings
from statetrack.training.population import Optimiser
from statetrack.training.records import Replica

SPARED = {
    "transformer": set(),
    "deltanet": set(),
    "mamba": {"log_rates", "skip"},
    "mamba2": {"log_rates", "time_step_bias", "skip"},
    "mamba3": {"time_step_bias", "writing_bias", "reading_bias", "skip"},
    "gated-deltanet": {"log_rates", "bias"},
    "gated-deltaproduct": {"log_rates", "bias"},
    "kda": {"log_rates", "bias"},
    "gated-deltanet-2": {"log_rates", "bias"},
    "m2rnn": {"forget_bias", "log_rates", "skip"},
}
"""Of each model, the parameters of its mixers that keep their values, by the end of their names."""


def small(name: str, **more: int) -> SequenceModel:
    settings = MODELS[name].settings_class
    heads = {"heads": 2} if "heads" in settings.model_fields else {}
    return MODELS[name](settings(width=16, **heads, **more), num_symbols=2, num_labels=2)


@pytest.mark.parametrize("name", SPARED)
def test_parameters_that_the_authors_exempt_do_not_decay(name: str) -> None:
    model = small(name)
    names = [each for each, _ in model.named_parameters()]
    spared = {each for each in names if not model.decays(each)}
    assert all("mixer." in each for each in spared)
    assert {each.rpartition(".")[2] for each in spared} == SPARED[name]
    gates = {each for each in names if each.endswith("log_rates")}
    assert gates <= spared


@pytest.mark.parametrize("name", ["slstm", "mlstm", "xlstm"])
def test_of_xlstm_the_weights_of_maps_alone_decay(name: str) -> None:
    model = small(name, layers=2)
    modules = dict(model.named_modules())
    for each, _ in model.named_parameters():
        path, _, own = each.rpartition(".")
        kind = type(modules[path]).__name__
        maps = kind in ("Linear", "BlockDiagonal", "Conv1d", "Filters") and own == "weight"
        assert model.decays(each) == maps, (each, kind)


def test_a_step_without_gradients_shrinks_what_decays_and_nothing_else() -> None:
    """Of two replicas with rates of their own: AdamW takes off the rate times the decay."""
    replicas = [Replica(0, 0, 0.1), Replica(1, 0, 0.01)]
    population = Population(lambda: small("gated-deltanet"), replicas, torch.device("cpu"))
    settings = TrainSettings(optimizer="adamw", weight_decay=0.5, lrs=(0.1, 0.01))
    before = population.weights()
    optimiser = Optimiser(population, settings, {})
    for value in population.trained.values():
        value.grad = torch.zeros_like(value)
    optimiser.step(0)
    for name, value in population.weights().items():
        model = population.model
        assert isinstance(model, SequenceModel)
        for row, rate in enumerate((0.1, 0.01)):
            factor = 1 - 0.5 * rate if model.decays(name) else 1.0
            torch.testing.assert_close(value[row], factor * before[name][row])
