"""The same numbers on a GPU: run with `pytest -m cuda` where there is one."""

from __future__ import annotations

import pytest
import torch

from statetrack.evaluation import evaluate
from statetrack.models import MODELS, KernelSettings, RecurrentModel, SequenceModel
from statetrack.runs import Experiment
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import load_task
from statetrack.training import Population, Replica, Trainer
from tests.setups import Setup

pytestmark = pytest.mark.cuda

CUDA, CPU = torch.device("cuda"), torch.device("cpu")


WITH_KERNEL = [n for n in sorted(MODELS) if issubclass(MODELS[n].settings_class, KernelSettings)]


def _train(name: str, device: torch.device, **more: object) -> Trainer:
    values = {"model": name, "steps": 15, "seeds": 2, "validate_every": 15, "validation_words": 32}
    settings = {**values, "device": str(device), "lrs": (1e-3, 3e-3), **more}
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
    trainer = _train(name, CUDA, precision="bfloat16")
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


def _model(name: str, kernel: str) -> SequenceModel:
    kind = MODELS[name]
    settings = build(kind.settings_class, {"kernel": kernel}, name)
    model = kind(settings, num_symbols=6, num_labels=6)
    with torch.no_grad():  # some start with weights of 0, behind which nothing would be compared
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_the_kernel_of_flash_linear_attention_computes_what_torch_does(name: str) -> None:
    """Logits and gradients of a population, over words of several of the kernels' chunks."""
    pytest.importorskip("triton")
    replicas = tuple(Replica(index, seed, 1e-3) for index, seed in enumerate((0, 7)))
    symbols = torch.randint(6, (2, 8, 150), device=CUDA)
    weights = torch.randn(2, 8, 150, 6, device=CUDA)
    torch.backends.cuda.matmul.allow_tf32 = False
    results = []
    for kernel in ("torch", "fla"):

        def make(kernel: str = kernel) -> SequenceModel:
            return _model(name, kernel)

        population = Population(make, replicas, CUDA)
        logits = population(symbols)
        (logits * weights).sum().backward()
        results.append((logits, {k: v.grad for k, v in population.parameters.items()}))
    (expected, by_torch), (logits, by_kernel) = results
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)
    for key, gradient in by_torch.items():
        mine, scale = by_kernel[key], gradient.abs().max()
        torch.testing.assert_close(mine / scale, gradient / scale, rtol=0, atol=1e-3, msg=key)


@pytest.mark.parametrize("name", WITH_KERNEL)
def test_a_word_by_kernel_can_be_cut_anywhere(name: str) -> None:
    pytest.importorskip("triton")
    torch.manual_seed(0)
    model, symbols = _model(name, "fla").to(CUDA), torch.randint(6, (4, 90), device=CUDA)
    assert isinstance(model, RecurrentModel)
    with torch.no_grad():
        whole, _ = model.scan(symbols, model.initial_state(4))
        early, state = model.scan(symbols[:, :1], model.initial_state(4))
        late, _ = model.scan(symbols[:, 1:], state)
    torch.testing.assert_close(torch.cat([early, late], 1), whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", WITH_KERNEL)
def test_training_by_kernel_is_training_by_torch(name: str, precision: str) -> None:
    pytest.importorskip("triton")
    by_kernel = _train(name, CUDA, precision=precision, kernel="fla")
    by_torch = _train(name, CUDA, precision=precision, kernel="torch")
    for mine, other in zip(by_kernel.progress, by_torch.progress, strict=True):
        assert mine.best_loss == pytest.approx(other.best_loss, rel=2e-2, abs=1e-3)
