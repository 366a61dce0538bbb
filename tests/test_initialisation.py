"""Weights start where the model's own file puts them, and nothing moves them before training.

What the values are is tested with each model's other facts, in `tests/references`; here, that
they are the ones that training starts from.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from statetrack.models import MODELS, BlockModel, SequenceModel
from statetrack.runs import Experiment
from statetrack.training import Population, Trainer
from tests.setups import Setup

SEEDS = (3, 4)
NAMES = list(MODELS)
BLOCKS = [name for name in NAMES if issubclass(MODELS[name], BlockModel)]

every_model = pytest.mark.parametrize("name", NAMES)
every_block_model = pytest.mark.parametrize("name", BLOCKS)


def setup_of(name: str) -> Setup:
    """A default model in a short training on two seeds."""
    values = {"model": name, "seed": SEEDS[0], "seeds": len(SEEDS), "lrs": (1e-3,), "steps": 1}
    short = {"validation_words": 2, "train_length": "2", "batch_size": 2, "device": "cpu"}
    return Setup.of(Experiment.from_values({**values, **short}, "here"))


def alone(name: str, seed: int) -> SequenceModel:
    """The model as its own constructor leaves it."""
    kind, machine = MODELS[name], setup_of(name).task.source
    torch.manual_seed(seed)
    return kind(
        kind.settings_class(), num_symbols=machine.num_symbols, num_labels=machine.num_labels
    )


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in module.state_dict().items()}


@every_model
def test_training_starts_from_what_the_constructor_left(name: str) -> None:
    setup = setup_of(name)
    population = Population(setup.make_model, setup.experiment.replicas, torch.device("cpu"))
    trainer = Trainer(population, *setup.words(), setup.experiment.training, torch.device("cpu"))
    for row, seed in enumerate(SEEDS):
        expected = weights_of(alone(name, seed))
        for weights in (population.weights(), trainer.best):
            assert set(weights) == set(expected)
            for key, value in expected.items():
                assert torch.equal(weights[key][row], value), key


@every_block_model
def test_a_mixer_stays_as_its_model_made_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Embedding, norms, MLPs and readout are made around the mixers, some of them afterwards."""
    kind, made = MODELS[name], []
    assert issubclass(kind, BlockModel)
    make_mixer = kind.make_mixer

    def watched(self: Any, layer: int) -> Any:
        mixer = make_mixer(self, layer)
        made.append((mixer, weights_of(mixer)))
        return mixer

    monkeypatch.setattr(kind, "make_mixer", watched)
    model = alone(name, SEEDS[0])
    assert [mixer for mixer, _ in made] == [block.mixer for block in model._blocks()]
    for mixer, before in made:
        after = weights_of(mixer)
        assert set(after) == set(before)
        assert all(torch.equal(after[key], before[key]) for key in after)


@every_block_model
def test_a_frame_is_initialised_once_when_all_of_it_is_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A family draws its embedding and readout as its source does, in this one place."""
    kind, seen = MODELS[name], []
    assert issubclass(kind, BlockModel)
    monkeypatch.setattr(kind, "initialise_frame", lambda self: seen.append(self.readout))
    model = alone(name, SEEDS[0])
    assert seen == [model.readout]


@pytest.mark.parametrize(
    ("name", "by_depth"),
    [
        ("deltanet", True),
        ("gated-deltaproduct", True),
        ("gla", True),
        ("hgrn2", False),
        ("ttt-linear", False),
    ],
)
def test_a_frame_starts_as_that_of_the_library_of_its_source(name: str, by_depth: bool) -> None:
    kind = MODELS[name]
    settings = kind.settings_class.model_validate({"layers": 2, "mlp": 4.0, "mlp_kind": "swiglu"})
    torch.manual_seed(0)
    model = kind(settings, num_symbols=50, num_labels=50)
    assert isinstance(model, BlockModel)
    for weight in (model.embedding.weight, model.readout.weight):
        assert 0.018 < weight.std() < 0.022
    assert not model.readout.bias.any()
    for block in model._blocks():
        assert block.mlp is not None
        gate, up, down = (part for part in block.mlp.modules() if isinstance(part, nn.Linear))
        assert 0.018 < gate.weight.std() < 0.022 and 0.018 < up.weight.std() < 0.022
        assert 0.009 * (2 - by_depth) < down.weight.std() < 0.011 * (2 - by_depth)
