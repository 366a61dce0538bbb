"""Ellipsoids of states that are mapped into each other: every bound against points, and proofs."""

import numpy as np
import pytest
import torch

from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.evidence.certificate import ellipsoids
from statetrack.evidence.certificate.ellipsoids import (
    BallCover,
    Contexts,
    Shapes,
    certify_ellipsoids,
    learned_shapes,
    norms_of,
)
from statetrack.evidence.certificate.saturating import Network, certify_saturating
from statetrack.models import MODELS
from statetrack.ops import FLOAT32
from statetrack.settings import build
from statetrack.sources import Automaton
from tests.test_saturating_certificates import built, drawn


@pytest.fixture(autouse=True)
def _shapes_are_learned_on_few_steps(monkeypatch):
    """What is proven must be right in whatever shapes."""
    monkeypatch.setattr(ellipsoids, "SAMPLES", 500)
    monkeypatch.setattr(ellipsoids, "GRADIENT_STEPS", 100)


SPIRAL = 0.93
"""The factor of the spiral below; times the square root of 2, it is above 1."""


def network(name, automaton, hidden, scale=1.0, seed=0):
    kind = MODELS[name]
    torch.manual_seed(seed)
    sizes = {"num_symbols": automaton.num_symbols, "num_labels": automaton.num_labels}
    model = kind(build(kind.settings_class, {"hidden": hidden}, "test"), **sizes).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= scale
    return model


def spiral():
    """A point that turns by 45 degrees and is shortened: in a box around 0 it leaves the box."""
    automaton = Automaton([[0]], labels=["same", "never"], output=[0])
    model = network("second-order-rnn", automaton, 2)
    angle = torch.tensor(np.pi / 4)
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).view(2, 2)
    with torch.no_grad():
        model.matrices[0] = SPIRAL * turn
        model.biases[:] = 0
        model.first[:] = torch.tensor([0.2, 0.05])
        model.readout.weight[:] = torch.tensor([[1.0], [-1.0]])
        model.readout.bias[:] = torch.tensor([0.4, -0.4])
    return model, automaton


def cover_of(model, automaton, grown=0.01, most=20_000, shapes=None):
    exact = Subject(model, automaton).in_precision(torch.float64)
    step, contexts = exact.model.tanh_step(FLOAT32), Contexts(automaton)
    found = Network(exact)
    with torch.no_grad():
        shapes = shapes or learned_shapes(found, contexts, step, 0)[0]
        return BallCover(most, found, contexts, step, shapes, grown)


def test_bounds_of_norms_are_above_the_norms_and_near():
    torch.manual_seed(0)
    for size in (1, 2, 16, 32):
        matrices = torch.randn(200, size, size, dtype=torch.float64)
        matrices = matrices * torch.logspace(-100, 100, 200, dtype=torch.float64)[:, None, None]
        exact = torch.linalg.matrix_norm(matrices, 2)
        assert (norms_of(matrices) >= exact).all()
        assert (norms_of(matrices) <= 1.25 * exact).all()
    assert float(norms_of(torch.zeros(1, 3, 3, dtype=torch.float64))) == 0.0


@pytest.mark.parametrize("name", ["second-order-rnn", "rnn"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 40.0])
@torch.no_grad()
def test_what_float32_makes_of_points_of_a_ball_lies_in_its_image(name, scale):
    automaton = Automaton([[0, 1, 1], [1, 0, 1]])
    generator = torch.Generator().manual_seed(int(scale * 10))
    model = network(name, automaton, 7, scale, seed=int(scale * 10))
    for size in (0.0, 1e-3, 0.1, 1.0):
        shape = torch.randn(8, 7, 7, generator=generator, dtype=torch.float64)
        cover = cover_of(model, automaton, shapes=Shapes.of(shape))
        number = 200
        before, symbols = torch.randint(8, (number,)), torch.randint(3, (number,))
        after = cover.contexts.delta[before, symbols]
        centres = 2 * torch.rand(number, 7, generator=generator, dtype=torch.float64) - 1
        radii = torch.full((number,), size, dtype=torch.float64)
        images, reach = cover.images(centres, radii, before, symbols, after)
        for _ in range(10):
            ways = torch.randn(number, 7, 1, generator=generator, dtype=torch.float64)
            ways = ways / ways.norm(dim=1, keepdim=True)
            points = centres + size * (shape[before] @ ways).squeeze(-1)
            inside = (points.abs() <= 1).all(-1)
            narrow = points.float()  # off from the ball by rounding, which the step does not count
            off = torch.linalg.solve(shape[before], narrow.double() - points).norm(dim=-1)
            state = narrow if name == "second-order-rnn" else narrow.unsqueeze(0)
            found = model.flat(model.step(symbols, state)[1]).double()
            away = torch.linalg.solve(shape[after], found - images).norm(dim=-1)
            _, wider = cover.images(centres, radii + off, before, symbols, after)
            assert (away <= wider)[inside].all()
            logits = model.readout(found.float()).double()
            labels = automaton.output[after.numpy() % 2]
            leads = logits.gather(1, torch.from_numpy(labels.copy())[:, None]) - logits
            others = leads.scatter(1, torch.from_numpy(labels.copy())[:, None], torch.inf)
            least, _ = cover.worst_leads(images, wider, after)
            assert (others.amin(1) >= least)[inside].all()
        assert (reach >= 0).all()


def test_a_spiral_that_no_boxes_prove_is_proven_by_ellipsoids():
    model, automaton = spiral()
    subject = Subject(model, automaton)
    boxes = certify_saturating(subject, budget=SearchBudget(30), most_boxes=300)
    assert boxes.verdict != "all lengths"
    found = Certificate.search(subject, budget=SearchBudget(60))
    assert found.verdict == "all lengths" and "ellipsoids" in found.method
    assert found.length is None and 0 < found.margin <= 1
    with torch.no_grad():
        model.matrices[0] *= 1.2 / SPIRAL  # a spiral that winds outward
    wrong = Subject(model, automaton).first_errors(np.zeros((1, 200), np.int64))[0]
    found = certify_ellipsoids(Subject(model, automaton), budget=SearchBudget(60), most_balls=500)
    assert wrong and found.verdict != "all lengths" and (found.length or 0) < wrong


@pytest.mark.parametrize(("name", "task"), [("second-order-rnn", "parity"), ("rnn", "parity")])
def test_states_in_float32_never_leave_the_ellipsoids_of_their_context(name, task):
    subject = Subject(built(name, task), task)
    cover = cover_of(subject.model, subject.automaton, 0.1, 500)
    with torch.no_grad():
        cover.run(SearchBudget(600))
    assert cover.closed
    words = drawn(task, 2000, 12)
    contexts = cover.contexts.followed(
        cover.contexts.start, torch.from_numpy(words.T.astype(np.int64).copy())
    )
    state = subject.first(len(words))
    for position in range(words.shape[1]):
        state = subject.step(words[:, position], state)[1]
        points = subject.model.flat(state).double()
        for context in contexts[position + 1].unique().tolist():
            own, mine = contexts[position + 1] == context, cover.states == context
            away = points[own].unsqueeze(1) - cover.centres[mine]
            shape = cover.shapes.shape[context]
            lengths = torch.linalg.solve(shape, away.unsqueeze(-1)).squeeze(-1).norm(dim=-1)
            assert (lengths <= cover.radii[mine]).any(1).all()


@pytest.mark.parametrize(
    ("seeds", "least_wrong", "least_proven"),
    [((2, 4, 7), 2, 1), pytest.param((0, 1, 3, 5, 6), 3, 1, marks=pytest.mark.slow)],
)
def test_perturbed_networks_are_proven_only_as_far_as_they_are_right(
    seeds, least_wrong, least_proven
):
    """Against every word up to the length at which the network is first wrong."""
    task, wrong, proven = "parity", 0, 0
    words = np.array(list(np.ndindex(*[2] * 10)))
    for seed in seeds:
        model = built("second-order-rnn", task, hidden=5)
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += (1 + seed % 4) * torch.randn_like(parameter)
        errors = Subject(model, task).first_errors(words)
        subject = Subject(model, task)
        found = certify_ellipsoids(subject, budget=SearchBudget(60), most_balls=100)
        first = errors[errors > 0].min(initial=100)
        wrong += first < 100
        proven += found.verdict == "all lengths"
        if found.verdict == "all lengths":
            assert first == 100, seed
        elif found.length is not None:
            assert found.length < first, seed
    assert wrong >= least_wrong and proven >= least_proven


def test_other_networks_and_a_budget_that_is_spent_prove_nothing():
    subject = Subject(built("gru", "parity"), "parity")
    found = certify_ellipsoids(subject, budget=SearchBudget(60))
    assert (found.verdict, found.reason) == (
        "not proven",
        "the network is not one layer of tanh units",
    )
    subject = Subject(built("second-order-rnn", "parity"), "parity")
    found = certify_ellipsoids(subject, budget=SearchBudget(0.0))
    assert (found.verdict, found.complete) == ("not proven", False)
