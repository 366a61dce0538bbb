"""Robust training: every kind does what it says, for each replica as if it were alone.

B batch, T time, C labels.
"""

import pytest
import torch

from statetrack.errors import SettingsError
from statetrack.evidence import SearchBudget, Subject
from statetrack.evidence.certificate.saturating import certify_saturating
from statetrack.models import MODELS
from statetrack.ops import Box
from statetrack.runs import Experiment, Run, files
from statetrack.training import Population, Trainer, TrainSettings, Words
from statetrack.training.losses import lead
from statetrack.training.robust.contraction import RATE, Asked, States
from statetrack.training.robust.interval import StateBounds
from statetrack.training.robust.noise import Noisy, noise, shapes_of
from statetrack.training.robust.spectral import Excess
from statetrack.training.settings import ROBUST
from tests.setups import Setup

SMALL = {
    "task": "modular-addition:m=3",
    "hidden": 5,
    "batch_size": 8,
    "train_length": "2-4",
    "validation_words": 20,
    "validate_every": 4,
    "loss": "cross-entropy",
    "steps": 8,
    "device": "cpu",
}
KINDS = [
    ("second-order-rnn", "interval"),
    ("lstm", "interval"),
    ("second-order-rnn", "contraction"),
    ("gru", "contraction"),
    ("lstm", "contraction"),
    ("second-order-rnn", "noise"),
    ("gru", "noise"),
    ("bilinear", "noise"),
    ("bilinear", "margin"),
    ("bilinear-cp", "spectral"),
]


def experiment_of(**values):
    start = {"robust_start": 0.2} if "robust" in values else {}
    return Experiment.from_values({**SMALL, **start, **values}, "test")


def trainer_of(**values):
    """A trainer as a run has it, in float64."""
    setup = Setup.of(experiment_of(**values))
    population = Population(
        lambda: setup.make_model().double(), setup.experiment.replicas, setup.device
    )
    return Trainer(population, *setup.words(), setup.experiment.training, setup.device)


def finish(trainer):
    return [record for records in trainer.run() for record in records]


def model_of(name, **values):
    setup = Setup.of(experiment_of(model=name, **values))
    torch.manual_seed(0)
    return setup.make_model().double()


def test_every_kind_is_tested_here():
    assert {kind for _, kind in KINDS} | {"none"} == set(ROBUST)


@pytest.mark.parametrize(("model", "robust"), KINDS)
def test_a_replica_is_trained_as_it_is_alone_and_differently_from_plain_training(model, robust):
    common = {"model": model, "seeds": 2, "robust": robust}
    both = trainer_of(lrs=(1e-2, 3e-2), **common)
    finish(both)
    alone = trainer_of(lrs=(3e-2,), **common)
    finish(alone)
    plain = trainer_of(lrs=(3e-2,), model=model, seeds=2)
    finish(plain)
    weights = both.population.weights()
    differs = False
    for key, value in alone.population.weights().items():
        torch.testing.assert_close(weights[key][2:], value, rtol=1e-6, atol=1e-9)
        differs |= not torch.equal(value, plain.population.weights()[key])
    assert differs


@pytest.mark.parametrize("robust", ["contraction", "interval", "noise"])
def test_a_run_that_was_stopped_and_resumed_is_the_run_that_was_not(tmp_path, robust):
    experiment = experiment_of(model="second-order-rnn", robust=robust, checkpoint_every=3)
    straight = Run.start(experiment, out=tmp_path / "straight")
    list(straight.train())
    stopped = Run.start(experiment, out=tmp_path / "stopped")
    for record in stopped.train():
        if record.step >= 4:
            break
    resumed = Run.resume(tmp_path / "stopped")
    list(resumed.train())
    weights = resumed.folder.read(files.WEIGHTS)
    assert all(
        torch.equal(value, weights[key])
        for key, value in straight.folder.read(files.WEIGHTS).items()
    )


@pytest.mark.parametrize(
    ("model", "robust", "says"),
    [
        ("bilinear", "interval", "robust='interval' needs a model whose steps have bounds"),
        ("bilinear", "contraction", "robust='contraction' needs a model whose steps have bounds"),
        ("transformer", "noise", "robust='noise' needs a model that reads symbol by symbol"),
        ("lstm", "spectral", "robust='spectral' is for linear models"),
    ],
)
def test_a_model_that_a_kind_is_not_for_is_refused_in_one_line(model, robust, says):
    settings = TrainSettings(robust=robust)
    kind = MODELS[model]
    made = kind(kind.settings_class(), num_symbols=2, num_labels=2)
    with pytest.raises(SettingsError, match=says) as refused:
        ROBUST[robust](settings, made)
    assert "\n" not in str(refused.value)


def test_a_size_without_a_kind_is_refused():
    with pytest.raises(SettingsError, match="robust_size is that of robust training"):
        TrainSettings(robust_size=0.2)
    with pytest.raises(SettingsError, match="robust_start is that of robust training"):
        TrainSettings(robust_start=0.9)


def test_the_size_grows_from_0_and_is_whole_before_the_end():
    settings = TrainSettings(steps=100, robust="noise", robust_start=0.2, robust_size=0.5)
    kind = ROBUST["noise"](settings, model_of("gru"))
    sizes = [kind.size_at(step) for step in range(100)]
    assert sizes[:21] == [0.0] * 21 and sizes == sorted(sizes)
    assert sizes[40:61:20] == pytest.approx([0.5 / 1000**0.5, 0.5])
    assert sizes[61:] == [0.5] * 39 and 0 < sizes[21] < 0.001
    assert ROBUST["noise"](TrainSettings(robust="noise"), model_of("gru")).size == 0.1


@pytest.mark.parametrize("model", ["second-order-rnn", "rnn", "gru", "lstm"])
def test_no_errors_of_the_stated_size_give_logits_worse_than_the_worst(model):
    net = model_of(model)
    symbols, size = torch.randint(3, (6, 7)), 0.2
    labels = torch.randint(3, (6, 7))
    worst = StateBounds(net, size)(symbols, labels)
    torch.testing.assert_close(worst.mean(-1), torch.zeros(6, 7, dtype=worst.dtype))
    worst = worst - worst.gather(-1, labels.unsqueeze(-1))
    exact = StateBounds(net, 0.0)(symbols, labels)
    logits = net(symbols)
    given = logits - logits.gather(-1, labels.unsqueeze(-1))
    torch.testing.assert_close(exact - exact.gather(-1, labels.unsqueeze(-1)), given)
    shapes = list(shapes_of(net.initial_state(6)))
    for _ in range(20):
        off = [size * (2 * torch.rand(7, *shape, dtype=worst.dtype) - 1) for shape in shapes]
        logits = Noisy(net)(symbols, *off)
        moved = logits - logits.gather(-1, labels.unsqueeze(-1))
        assert (moved <= worst + 1e-12).all() and (moved - given).abs().max() > 1e-3


def test_noise_is_normal_and_given_by_seed_and_step():
    shapes, device = [torch.Size([3, 4]), torch.Size([3])], torch.device("cpu")
    first, again = noise(5, 7, 2000, shapes, device), noise(5, 7, 2000, shapes, device)
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert [part.shape for part in first] == [(2000, 3, 4), (2000, 3)]
    assert abs(float(first[0].std()) - 1) < 0.02 and abs(float(first[0].mean())) < 0.02
    for seed, step in ((6, 7), (5, 8)):
        assert not torch.equal(noise(seed, step, 2000, shapes, device)[0], first[0])


@pytest.mark.parametrize("model", ["second-order-rnn", "rnn", "gru", "lstm"])
def test_no_error_before_a_symbol_grows_by_more_or_answers_worse_than_is_asked(model):
    net = model_of(model, **({} if model == "second-order-rnn" else {"layers": 2}))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(3)
    words, labels, size = torch.randint(3, (40, 6)), torch.randint(3, (240,)), 0.2
    states = States(net)(words)
    torch.testing.assert_close(states[:, 0], net.flat(net.initial_state(40)))
    points, symbols = states.flatten(0, 1), words.flatten()
    found = Asked(net, size)(points, symbols, labels)
    box = Box(points - size, points + size)
    image = net.box_step(symbols, box)
    expected = (image.radius / size - RATE).clamp(min=0).mean(-1)
    torch.testing.assert_close(found[:, 0], expected)
    assert (expected > 0).any()
    worst = found[:, 2:] - found[:, 2:].gather(-1, labels.unsqueeze(-1))
    for _ in range(20):
        near = points + size * (2 * torch.rand_like(points) - 1)
        after = net.box_step(symbols, Box(near, near))
        assert (after.lower >= image.lower - 1e-12).all()
        assert (after.upper <= image.upper + 1e-12).all()
        assert (net.box_leads(after, labels) <= worst + 1e-12).all()


def test_gates_that_keep_are_those_that_multiply_the_old_state():
    for name in ("gru", "lstm"):
        net = model_of(name, layers=2)
        states = States(net)(torch.randint(3, (9, 5))).flatten(0, 1)
        symbols = torch.randint(3, (45,))
        found = net.keeping(symbols, states)
        assert found.shape == (45, 2 * 5)
        with torch.no_grad():  # with gates of 1 and nothing that enters, the state stays
            gates = slice(5, 10)
            for layer in range(2):
                getattr(net.network, f"bias_ih_l{layer}")[gates] += 200
                if name == "lstm":
                    getattr(net.network, f"bias_ih_l{layer}")[:5] -= 200
            assert (net.keeping(symbols, states) > found + 150).all()
            after = net.box_step(symbols, Box(states, states)).lower
            parts = net.state_parts
            held = after.unflatten(-1, (2, parts, 5))[:, :, -1]
            torch.testing.assert_close(held, states.unflatten(-1, (2, parts, 5))[:, :, -1])
    assert model_of("rnn").keeping(symbols, states[:, :5]).shape == (45, 0)


def test_before_contraction_begins_gates_alone_are_asked_for():
    words = torch.randint(3, (1, 8, 4))
    for name, differs in (("gru", True), ("second-order-rnn", False)):
        trainer = trainer_of(model=name, robust="contraction", robust_start=0.5)
        batch = Words(words, torch.randint(3, words.shape), torch.ones_like(words).bool())
        with torch.no_grad():
            _, losses = trainer.robust.train(trainer.population, batch, trainer.loss, 0)
            logits = trainer.population(words)
        plain = trainer.robust.with_loss(logits, batch, trainer.loss)[1]
        assert bool((losses > plain + 1e-6).all()) is differs


def test_a_lead_is_over_the_best_of_the_others():
    logits = torch.tensor([[1.0, 4.0, 3.0], [1.0, 4.0, 3.0]])
    assert lead(logits, torch.tensor([1, 0])).tolist() == [1.0, -3.0]


def test_the_penalty_is_of_norms_above_1():
    model = model_of("bilinear")
    with torch.no_grad():
        model.weight.copy_(torch.eye(5) * torch.tensor([0.5, 1.0, 1.5]).view(3, 1, 1))
    assert float(Excess(model)().detach()) == pytest.approx(0.25 / 3)


def test_parity_is_learned_with_a_proof_for_all_lengths():
    values = {"model": "second-order-rnn", "task": "parity", "hidden": 4, "steps": 150}
    trainer = trainer_of(**values, robust="interval", lrs=(3e-2,), batch_size=16)
    finish(trainer)
    model = model_of("second-order-rnn", task="parity", hidden=4).float()
    model.load_state_dict({key: value[0] for key, value in trainer.best.items()})
    found = certify_saturating(Subject(model, "parity"), budget=SearchBudget(60), most_boxes=500)
    assert found.verdict == "all lengths"


def test_a_gru_learns_parity_with_a_proof_for_all_lengths():
    values = {"model": "gru", "task": "parity", "hidden": 16, "steps": 200}
    trainer = trainer_of(**values, robust="contraction", lrs=(1e-2,), batch_size=32)
    finish(trainer)
    model = model_of("gru", task="parity", hidden=16).float()
    model.load_state_dict({key: value[0] for key, value in trainer.best.items()})
    found = certify_saturating(Subject(model, "parity"), budget=SearchBudget(60), most_boxes=500)
    assert found.verdict == "all lengths"
