"""Boxes of states that are mapped into each other: proofs for networks built by hand."""

import numpy as np
import pytest
import torch

from statetrack import constructions
from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.evidence.certificate.saturating import Cover, Network, certify_saturating, contained
from statetrack.models import MODELS
from statetrack.ops import FLOAT32, Box, boxes
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import load_task

BUILT = [
    ("second-order-rnn", "s3"),
    ("second-order-rnn", "random-fsm"),
    ("second-order-rnn", "flip-flop"),
    ("rnn", "parity"),
    ("rnn", "s3"),
    ("gru", "parity"),
    ("lstm", "parity"),
]


def built(model, task, **settings):
    """A network with weights set by hand, in float32, that follows a task."""
    return constructions.build(task, model, **settings).model


def certify(model, task, **caps):
    return certify_saturating(Subject(model, task), budget=SearchBudget(60), **caps)


def drawn(task, num_words, length):
    return np.asarray(load_task(task).sample(num_words, length=length, seed=3).symbols)


@pytest.mark.parametrize(("name", "task"), BUILT)
def test_networks_built_by_hand_are_proven_for_all_lengths(name, task):
    subject = Subject(built(name, task), task)
    found = Certificate.search(subject, budget=SearchBudget(60))
    assert (found.verdict, found.verdict_real, found.reason) == ("all lengths", "all lengths", "")
    assert found.length is None and found.complete and 0 < found.margin <= 1
    assert not subject.first_errors(drawn(task, 50, 300)).any()


@pytest.mark.parametrize(("name", "task"), [("second-order-rnn", "s3"), ("lstm", "parity")])
def test_states_in_float32_never_leave_the_boxes_of_their_automaton_state(name, task):
    subject = Subject(built(name, task), task)
    exact = subject.in_precision(torch.float64)
    cover = Cover(5000, Network(exact), torch.full((subject.automaton.num_states, 1), 0.1))
    cover.run(SearchBudget(60))
    assert cover.closed
    words = drawn(task, 1000, 40)
    states = subject.automaton.states_after(words).astype(np.int64)
    for reader in (subject, exact):
        state = reader.first(len(words))
        for position in range(words.shape[1]):
            state = reader.step(words[:, position], state)[1]
            points = reader.model.flat(state).double()
            for number in range(subject.automaton.num_states):
                own, mine = states[:, position] == number, cover.states == number
                inside = contained(
                    Box(points[own], points[own]), Box(cover.lower[mine], cover.upper[mine])
                )
                assert inside.all()


def test_perturbed_networks_are_proven_only_as_far_as_they_are_right():
    """Against every word up to the length at which the network is first wrong."""
    task, wrong, proven = "parity", 0, 0
    words = np.array(list(np.ndindex(*[2] * 10)))
    for seed in range(60):
        model = built("second-order-rnn", task)
        torch.manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += (1 + seed % 4) * torch.randn_like(parameter)
        errors = Subject(model, task).first_errors(words)
        found = certify(model, task, most_boxes=60)
        first = errors[errors > 0].min(initial=100)
        wrong += first < 100
        proven += found.verdict == "all lengths"
        if found.verdict == "all lengths":
            assert first == 100, seed
        elif found.length is not None:
            assert found.length < first, seed
    assert wrong >= 20 and proven >= 5


def test_a_network_that_is_wrong_on_long_words_only_is_proven_up_to_those():
    """A unit counts ones, slowly, and after 20 of them the answer changes."""
    automaton = Automaton([[0, 0]], labels=["same", "never"], output=[0])
    kind = MODELS["second-order-rnn"]
    model = kind(build(kind.settings_class, {"hidden": 1}, "test"), num_symbols=2, num_labels=2)
    with torch.no_grad():
        model.matrices[:] = 1.0
        model.biases[:] = torch.tensor([[0.0], [0.02]])
        model.first[:] = 0.0
        model.readout.weight[:] = torch.tensor([[-1.0], [1.0]])
        model.readout.bias[:] = torch.tensor([0.2, -0.2])
    subject = Subject(model, automaton)
    failing = int(subject.first_errors(np.ones((1, 100), np.int64))[0])
    found = certify_saturating(subject, budget=SearchBudget(60), most_boxes=200)
    assert found.verdict == "to length" and 3 <= found.length < failing
    assert "a box of state '0' has no single answer" in found.reason


def test_symbols_that_cannot_be_drawn_are_not_counted():
    """A mark that the network answers wrongly, in a task that may draw it and one that may not."""
    model = built("second-order-rnn", "parity")
    with torch.no_grad():
        model.matrices[0] = 0.0
    tables = {"delta": [[0, 1], [1, 0]], "weights": [[0, 1], [0, 1]]}
    assert certify(model, Automaton(**tables)).verdict == "all lengths"
    del tables["weights"]
    assert certify(model, Automaton(**tables)).verdict != "all lengths"


def test_a_budget_that_is_spent_ends_the_search_and_says_so():
    found = certify_saturating(
        Subject(built("rnn", "parity"), "parity"), budget=SearchBudget(0.0), seed=1
    )
    assert (found.verdict, found.complete) == ("not proven", False)


def test_weights_that_are_not_finite_prove_nothing():
    model = built("second-order-rnn", "parity")
    with torch.no_grad():
        model.biases[0, 0] = torch.nan
    assert certify(model, "parity").verdict == "not proven"


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rnn", {"layers": 2}),
        ("gru", {"layers": 2}),
        ("lstm", {"layers": 2}),
        ("second-order-rnn", {}),
    ],
)
def test_boxes_contain_what_networks_make_of_their_points_and_are_exact_for_points(name, options):
    torch.manual_seed(0)
    kind = MODELS[name]
    settings = build(kind.settings_class, {"hidden": 5, **options}, name)
    model = kind(settings, num_symbols=3, num_labels=4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 3
    subject = Subject(model, Automaton([[0, 0, 0]], labels=list("abcd"), output=[0]))
    exact = subject.in_precision(torch.float64)
    symbols = torch.randint(3, (400, 6))
    state, wide = subject.first(400), exact.first(400)
    for symbol in symbols.unbind(1):
        point = exact.model.flat(wide)
        radius = 0.3 * torch.rand_like(point)
        labels = torch.randint(4, (400,))
        logits, following = exact.step(symbol, wide)
        after = exact.model.box_step(symbol, Box(point, point))
        torch.testing.assert_close(after.lower, exact.model.flat(following))
        shift = radius * (2 * torch.rand_like(radius) - 1)
        leads = exact.model.box_leads(after, labels)
        given = logits.gather(1, labels.unsqueeze(1))
        torch.testing.assert_close(leads, logits - given)
        image = exact.model.box_step(symbol, Box(point - radius, point + radius))
        moved = exact.model.box_step(symbol, Box(point + shift, point + shift))
        assert (image.lower <= moved.lower).all() and (moved.upper <= image.upper).all()
        most = exact.model.box_leads(image, labels)
        assert (exact.model.box_leads(moved, labels) <= most + 1e-12).all()
        # what float32 makes of a point of float32 lies in the box with rounding counted
        own = subject.model.flat(state).double()
        rounded = exact.model.box_step(symbol, Box(own, own), FLOAT32)
        found, state = subject.step(symbol, state)
        vectors = subject.model.flat(state).double()
        assert (rounded.lower <= vectors).all() and (vectors <= rounded.upper).all()
        own = vectors
        known = exact.model.box_leads(Box(own, own), labels, FLOAT32)
        assert ((found.double() - found.double().gather(1, labels.unsqueeze(1))) <= known).all()
        wide = following


def test_tanh_and_sigmoid_of_this_torch_are_as_exact_as_boxes_take_them_to_be():
    x = torch.cat([torch.linspace(-20, 20, 2**18 + 1), torch.logspace(-30, 30, 2**12)])
    allowed = boxes.UNITS_OF_A_FUNCTION * FLOAT32
    for function in (torch.tanh, torch.sigmoid):
        error = (function(x).double() - function(x.double())).abs().max()
        assert error <= allowed / 4
