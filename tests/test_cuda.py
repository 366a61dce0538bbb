"""The same numbers on a GPU: run with `pytest -m cuda` where there is one."""

from __future__ import annotations

import pytest
import torch

from statetrack.automata import Automaton
from statetrack.evaluation import evaluate
from statetrack.experiment import Experiment, Setup
from statetrack.models import MODELS
from statetrack.spec import load_task
from statetrack.training import Population, Trainer

pytestmark = pytest.mark.cuda

CUDA, CPU = torch.device("cuda"), torch.device("cpu")


def _train(name: str, device: torch.device, precision: str = "float32") -> Trainer:
    values = {"model": name, "steps": 15, "seeds": 2, "validate_every": 15, "validation_words": 32}
    settings = {**values, "device": str(device), "precision": precision, "lrs": (1e-3, 3e-3)}
    setup = Setup.of(Experiment.from_values(settings, "test"))
    population = Population(setup.make_model, setup.experiment.replicas, device)
    batches, validation = setup.words()
    trainer = Trainer(population, batches, validation, setup.experiment.training, device)
    for _ in trainer.run():
        pass
    return trainer


@pytest.mark.parametrize("name", sorted(MODELS))
def test_training_on_cuda_is_training_on_the_cpu(name: str) -> None:
    there, here = _train(name, CUDA), _train(name, CPU)
    for mine, other in zip(there.progress, here.progress, strict=True):
        assert mine.best_loss == pytest.approx(other.best_loss, rel=2e-2, abs=1e-3)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_bfloat16_trains_on_cuda(name: str) -> None:
    trainer = _train(name, CUDA, "bfloat16")
    assert all(torch.isfinite(value).all() for value in trainer.best.values())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_evaluation_on_cuda_is_evaluation_on_the_cpu(name: str) -> None:
    automaton: Automaton = load_task("s3").automaton
    torch.manual_seed(0)
    kind = MODELS[name]
    model = kind(kind.settings_class(), num_symbols=6, num_labels=6)
    scores = []
    for device in (CPU, CUDA):
        model = model.to(device)
        scores.append(
            list(evaluate(model, automaton, [10, 60], num_words=500, seed=0, device=device))
        )
    for mine, other in zip(*scores, strict=True):
        assert mine.accuracy == pytest.approx(other.accuracy, abs=0.02)
