"""The representation that a linear model learned, on models whose representation is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from statetrack.algebra.representations import irreducible_parts
from statetrack.errors import SettingsError
from statetrack.evidence import Representation, SearchBudget, Subject
from statetrack.evidence.learned_operators import find_representation
from statetrack.evidence.linear_maps import affine_maps
from statetrack.models import Bilinear, make_model
from statetrack.sources import Automaton
from statetrack.spec import load_task


def linear_model(task, matrices, first, readout, *, seed=0, unread=3):
    """A full bilinear model with these operators in another basis, beside coordinates that fade."""
    draw = np.random.default_rng(seed)
    matrices = np.asarray(matrices, np.float64)
    size = matrices.shape[1]
    basis = np.linalg.qr(draw.normal(size=(size + unread, size + unread)))[0]
    basis *= np.exp(draw.uniform(-0.5, 0.5, size + unread))
    inverse = np.linalg.inv(basis)
    wide = np.zeros((len(matrices), size + unread, size + unread))
    wide[:, :size, :size] = matrices
    wide[:, size:, size:] = 0.2 * draw.normal(size=(len(matrices), unread, unread))
    readout = np.column_stack([readout, draw.normal(size=(len(readout), unread))])
    settings = Bilinear.settings_class(hidden=size + unread)
    source = load_task(task).source if isinstance(task, str) else task
    model = Bilinear(settings, num_symbols=len(matrices), num_labels=source.num_labels).double()
    with torch.no_grad():
        model.weight.copy_(torch.from_numpy(basis @ wide @ inverse))
        model.first.copy_(torch.from_numpy(basis @ np.append(first, np.ones(unread))))
        model.readout.weight.copy_(torch.from_numpy(readout @ inverse))
    return model


def model_of_parts(task, chosen):
    """A model of the parts of R^S whose numbers, among parts by rising dimension, are chosen."""
    automaton = load_task(task).source.automaton
    actions = automaton.delta.T
    parts = [irreducible_parts(actions)[place] for place in chosen]
    operators = [part.matrices(actions) for part in parts]
    size = sum(part.dimension for part in parts)
    matrices = np.zeros((len(actions), size, size))
    begin = 0
    for part, own in zip(parts, operators, strict=True):
        end = begin + part.dimension
        matrices[:, begin:end, begin:end] = own
        begin = end
    points = np.column_stack([part.points for part in parts])
    return linear_model(task, matrices, points[automaton.start], points)


def turns(angles):
    """Rotations of planes by angles [V, N], as matrices [V, 2 N, 2 N]."""
    angles = np.asarray(angles)
    found = np.zeros((len(angles), 2 * angles.shape[1], 2 * angles.shape[1]))
    for place in range(angles.shape[1]):
        cos, sin = np.cos(angles[:, place]), np.sin(angles[:, place])
        block = np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)
        found[:, 2 * place : 2 * place + 2, 2 * place : 2 * place + 2] = block
    return found


def counter(m, harmonics, *, extra=0.0):
    """A model of addition modulo m by these harmonics; `extra` is added to the angles of 1."""
    angles = 2 * np.pi / m * np.outer(np.arange(m), harmonics)
    states = np.column_stack([np.cos(angles), np.sin(angles)])
    order = np.arange(2 * len(harmonics)).reshape(2, -1).T.ravel()
    angles[1] += extra
    return linear_model(
        f"modular-addition:m={m}", turns(angles), states[0, order], states[:, order]
    )


def found(model, task, **given) -> Representation:
    return find_representation(Subject(model, task), budget=SearchBudget(60), **given)


def multiplicities(group):
    return {each.name: round(each.multiplicity) for each in group.irreducibles}


@pytest.mark.parametrize(
    ("task", "chosen"),
    [("s3", (0, 2)), ("s3", (0, 1, 2, 3)), ("s4", (2, 4)), ("a5", (1,)), ("a5", (2, 7, 11))],
)
def test_irreducibles_of_a_hand_built_model_are_named_with_their_multiplicity(task, chosen):
    parts = irreducible_parts(load_task(task).source.automaton.delta.T)
    dimensions = sorted(parts[place].dimension for place in chosen)
    result = found(model_of_parts(task, chosen), task)
    (group,) = result.groups
    assert result.dimension == sum(dimensions) == group.accounted
    assert group.residue < 1e-7 and group.spread < 1e-7
    learned = [
        (each.name, each.dimension)
        for each in group.irreducibles
        for _ in range(round(each.multiplicity))
    ]
    assert sorted(dimension for _, dimension in learned) == dimensions
    lines = [parts[place].points for place in chosen if parts[place].dimension == 1]
    expected = ["trivial" if np.ptp(line) < 1e-9 else "sign" for line in lines]
    assert sorted(name for name, dimension in learned if dimension == 1) == sorted(expected)
    assert all(name.rstrip("'") == str(dimension) for name, dimension in learned if dimension > 1)
    assert sum(each.weight for each in group.irreducibles) == pytest.approx(1)
    assert result.homomorphism is not None and result.homomorphism.complete
    assert result.homomorphism.largest < 1e-7


def test_all_elements_as_one_hot_states_give_every_irreducible_as_often_as_its_dimension():
    automaton = load_task("s4").source.automaton
    matrices = np.eye(24)[automaton.delta.T].transpose(0, 2, 1)
    model = linear_model("s4", matrices, np.eye(24)[automaton.start], np.eye(24))
    (group,) = found(model, "s4").groups
    assert (group.name, group.order, group.accounted) == ("S4", 24, 24)
    assert multiplicities(group) == {"trivial": 1, "sign": 1, "2": 2, "3": 3, "3'": 3}
    assert [each.faithful for each in group.irreducibles] == [False, False, False, True, True]
    assert group.character[0] == pytest.approx(24)
    assert group.character[1:] == pytest.approx([0] * 4, abs=1e-7)


def test_harmonics_of_a_counter_are_integers_by_weight():
    model = counter(10, [3, 1, 4])
    result = found(model, "modular-addition:m=10")
    assert (result.modulus, result.unit, result.dimension) == (10, 1, 6)
    assert sorted(plane.integer for plane in result.planes) == [1, 3, 4]
    for plane in result.planes:
        assert plane.harmonic == pytest.approx(plane.integer, abs=1e-6)
        assert plane.deviation < 1e-6 and plane.moduli == pytest.approx([1] * 10)
        assert plane.weight == pytest.approx(1 / 3)
    assert multiplicities(result.groups[0]) == {
        "trivial": 0,
        **{f"harmonic {k}": int(k in (1, 3, 4)) for k in range(1, 6)},
    }
    assert result.commutators is not None and result.commutators.largest < 1e-7
    assert result.strengths == pytest.approx([result.strengths[0]] * 6)


def test_the_planes_of_rotations_are_the_models_own_and_those_not_read_weigh_nothing():
    model = make_model("bilinear-rotation", "modular-addition:m=10", hidden=6)
    angles = torch.outer(torch.arange(10.0), torch.tensor([2.0, 1.0, 0.37])) * torch.pi / 5
    with torch.no_grad():
        model.angles.copy_(angles)
        model.first.copy_(torch.tensor([1.0, 0.0] * 3))
        rows = torch.stack([angles.cos(), angles.sin()], -1)
        rows[:, 0] *= 2
        rows[:, 2] = 0
        model.readout.weight.copy_(rows.flatten(1))
    result = found(model, "modular-addition:m=10")
    assert result.planes_are.startswith("the model's own")
    assert [plane.harmonic for plane in result.planes] == pytest.approx([2, 1, 0.37], abs=1e-5)
    assert [plane.weight for plane in result.planes] == pytest.approx([0.8, 0.2, 0])
    assert result.planes[2].deviation > 0.1
    assert result.dimension == 4


def test_a_wrong_angle_is_in_deviation_harmonic_and_homomorphism_defect():
    extra = 1e-3
    result = found(counter(5, [1], extra=extra), "modular-addition:m=5")
    (plane,) = result.planes
    assert plane.deviation == pytest.approx(extra, rel=1e-3)
    assert plane.harmonic == pytest.approx(1 + extra * 5 / (2 * np.pi), rel=1e-6)
    # 1 and then 1 turns by 2 extra more than 2 does
    assert result.homomorphism.largest == pytest.approx(2 * extra, rel=2e-2)
    assert result.homomorphism.mean < result.homomorphism.largest


def test_growth_of_a_scale_invariant_model_is_reported_and_divided_out():
    model = counter(5, [1, 2])
    with torch.no_grad():
        model.weight[2] *= 1.25
        model.weight[3] *= 0.5
    result = found(model, "modular-addition:m=5")
    assert result.growth == pytest.approx([1, 1, 1.25, 0.5, 1])
    assert result.homomorphism.largest < 1e-6
    assert result.groups[0].residue < 1e-6
    assert result.planes[0].moduli == pytest.approx([1, 1, 1.25, 0.5, 1])
    moduli = [np.hypot(*each) for each in result.spectra[2].used]
    assert moduli == pytest.approx([1.25] * 4)


def test_commutators_tell_pairs_that_commute_from_those_that_do_not():
    result = found(model_of_parts("s3", (1, 2)), "s3")
    assert result.commutators.pairs == 15 and result.commutators.complete
    assert result.commutators.largest_of_commuting < 1e-7
    assert result.commutators.smallest_of_others == pytest.approx(3**0.5)
    assert result.commutators.relative == pytest.approx(3**0.5)
    assert not result.planes and "do not commute" in result.planes_are


def test_of_a_machine_that_forgets_the_groups_of_its_monoid_are_decomposed():
    machine = Automaton([[1, 1, 0], [2, 0, 0], [0, 2, 0]])  # a cycle, a swap and a reset
    matrices = np.eye(3)[machine.delta.T].transpose(0, 2, 1)
    result = found(linear_model(machine, matrices, np.eye(3)[0], np.eye(3)), machine)
    (group,) = result.groups
    assert (result.dimension, group.name, group.accounted) == (3, "S3", 3)
    assert multiplicities(group) == {"trivial": 1, "sign": 0, "2": 1}
    assert result.homomorphism.elements == 9
    assert result.homomorphism.largest < 1e-7 and group.residue < 1e-7


def test_a_machine_without_groups_says_so():
    machine = Automaton([[0, 1], [1, 1]])
    matrices = np.eye(2)[machine.delta.T].transpose(0, 2, 1)
    result = found(linear_model(machine, matrices, np.eye(2)[0], np.eye(2)), machine)
    assert not result.groups and "no group" in result.groups_are
    assert result.dimension == 2


def test_what_is_added_and_a_bias_are_a_coordinate_that_is_always_1():
    model = make_model("bilinear", "parity", hidden=1, additive="input", readout_bias=True)
    with torch.no_grad():  # h -> h after 0, and 1 - h after 1
        model.weight.copy_(torch.tensor([[[1.0]], [[-1.0]]]))
        model.additive.copy_(torch.tensor([[0.0], [1.0]]))
        model.first.copy_(torch.zeros(1))
        model.readout.weight.copy_(torch.tensor([[-2.0], [2.0]]))
        model.readout.bias.copy_(torch.tensor([1.0, -1.0]))
    result = found(model, "parity")
    assert result.affine and result.growth == (1, 1)
    # the logits are 1 and -1, or -1 and 1: the constant is not read on its own
    assert result.dimension == 1
    assert multiplicities(result.groups[0]) == {"trivial": 0, "harmonic 1": 1}


def test_one_block_with_a_mixer_that_is_linear_has_maps_and_others_say_why_not():
    task = "modular-addition:m=3"
    subject = Subject(make_model("pd-ssm", task, width=8), task)
    maps = affine_maps(subject)
    assert len(maps.matrices) == 3 and maps.readout is None
    assert not find_representation(subject, budget=SearchBudget(60)).read
    with pytest.raises(SettingsError, match="depend on the symbols before"):
        affine_maps(Subject(make_model("mamba", task, width=8), task))
    with pytest.raises(SettingsError, match="no linear recurrence of one layer"):
        affine_maps(Subject(make_model("lstm", task, hidden=8), task))


def test_maps_beyond_the_cap_are_left_out_and_said_to_be():
    result = found(model_of_parts("s4", (3,)), "s4", most_elements=10)
    assert not result.complete and not result.homomorphism.complete
    assert result.homomorphism.elements == 10
    assert not result.groups and "24 maps" in result.groups_are


def test_a_spent_budget_ends_the_search_and_says_so():
    model = model_of_parts("s4", (3,))
    result = find_representation(Subject(model, "s4"), budget=SearchBudget(0))
    assert not result.complete and result.dimension == 2
