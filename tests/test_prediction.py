"""Predictions: each *can* with a size is built by hand and run, each *cannot* shown by its words.

V symbols, S states, C labels, H hidden, K rank, d the dimension of a part.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from statetrack.algebra import (
    Group,
    MonoidBudget,
    Need,
    Prediction,
    Size,
    analyse,
    transition_monoid,
)
from statetrack.algebra.representations import real_irreducibles
from statetrack.cli import app
from statetrack.errors import TaskError, UnknownNameError
from statetrack.models import MODELS, recurrence_of
from statetrack.predicting import predict
from statetrack.report.atlas import answer_text
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, build_automaton
from statetrack.spec import TASKS, load_task
from statetrack.sweep.machines import AnswerRow
from tests.claims.attacking import word_that_cycles
from tests.claims.building import built_model
from tests.claims.cells import algebra_of
from tests.claims.running import follow


def told(model: str, **options: Any) -> Settings:
    """The settings of a model that is told some options."""
    return build(MODELS[model].settings_class, options, model)


GROUP_TASKS = {
    # task: block size, Householder factors, smallest sum of dimensions
    "s3": (2, 2, 2),
    "s4": (3, 2, 3),
    "a4": (3, 2, 3),
    "a5": (3, 2, 3),
    "s5": (4, 4, 4),
    "s5-swaps": (4, 1, 4),
    "s5-swaps-and-3-cycles": (4, 2, 4),
    "z60": (2, 2, 2),
    "a4xz5": (3, 2, 5),
    "quaternion": (4, 4, 4),
    "dihedral:n=6": (2, 2, 2),
    "parity": (1, 1, 1),
    "product(parity,parity)": (1, 1, 2),
    "product(s3,s3)": (2, 2, 4),
}


@pytest.mark.parametrize("task", GROUP_TASKS)
def test_the_smallest_sizes_of_groups(task: str) -> None:
    block_size, factors, hidden = GROUP_TASKS[task]
    algebra = algebra_of(task)
    blocks = predict(algebra, "bilinear-block")
    assert (blocks.can, blocks.size, blocks.size_of) == ("yes", block_size, "block_size")
    assert blocks.smallest
    products = predict(algebra, "deltaproduct")
    assert (products.can, products.size, products.size_of) == ("yes", factors, "householders")
    full = predict(algebra, "bilinear")
    assert (full.can, full.size, full.size_of) == ("yes", hidden, "hidden")
    assert full.smallest


@pytest.mark.parametrize("task", [*GROUP_TASKS, "symmetric:n=6", "product(a4,dihedral:n=4)"])
def test_the_block_size_is_the_smallest_bound_under_which_kernels_meet_in_the_identity(
    task: str,
) -> None:
    """By characters, which know nothing of the states' space."""
    algebra = algebra_of(task)
    monoid = transition_monoid(algebra.machine.actions, MonoidBudget())
    assert monoid is not None
    irreducibles = real_irreducibles(Group(monoid.elements.astype(np.int64)))
    bounds = [
        bound
        for bound in sorted({each.dimension for each in irreducibles})
        if set.intersection(*(set(each.kernel) for each in irreducibles if each.dimension <= bound))
        == {0}
    ]
    assert predict(algebra, "bilinear-block").size == bounds[0]


@pytest.mark.parametrize("task", ["s3", "a5", "a4xz5", "product(s3,s3)", "z60"])
def test_no_set_of_parts_with_a_smaller_sum_tells_all_elements_apart(task: str) -> None:
    algebra = algebra_of(task)
    monoid = transition_monoid(algebra.machine.actions, MonoidBudget())
    assert monoid is not None
    irreducibles = real_irreducibles(Group(monoid.elements.astype(np.int64)))
    faithful_sums = [
        sum(each.dimension for each in chosen)
        for count in (1, 2, 3)
        for chosen in itertools.combinations(irreducibles, count)
        if set.intersection(*(set(each.kernel) for each in chosen)) == {0}
    ]
    assert predict(algebra, "bilinear").size == min(faithful_sums)


def merged(task: str, wanted: Sequence[str]) -> Automaton:
    """A task asked only whether the state is one of some."""
    automaton = load_task(task).automaton
    return Automaton(automaton.delta, [int(state in wanted) for state in automaton.states])


MERGED = {
    "even zeros and even ones": Automaton([[1, 2], [0, 3], [3, 0], [2, 1]], [1, 0, 0, 0]),
    "a multiple of 4": build_automaton(
        {"kind": "regex", "pattern": "(aaaa)*", "alphabet": "a"}, ""
    ),
    "identity of S4": merged("s4", ["e"]),
    "identity or swap in A5": merged("a5", ["e", "(1,2)(3,4)"]),
    "points of S5": Automaton(np.transpose([[1, 0, 2, 3, 4], [1, 2, 3, 4, 0]])),
    "points of A5": Automaton(np.transpose([[1, 2, 0, 3, 4], [0, 1, 3, 4, 2]])),
}


def test_five_points_need_larger_blocks_than_the_group_that_moves_them() -> None:
    """A5 has a faithful part of dimension 3, but no vector there is fixed where a point is."""
    points, elements = analyse(MERGED["points of A5"]), algebra_of("a5")
    assert points.monoid is not None and elements.monoid is not None
    assert points.monoid.size == elements.monoid.size == 60
    assert predict(points, "bilinear-block").size == 4
    assert predict(elements, "bilinear-block").size == 3


def test_labels_that_are_hard_to_read_need_more_than_telling_states_apart() -> None:
    """Points in blocks of 3 are all different, but these labels are not linear in them."""
    a5 = load_task("a5").automaton
    labels = np.random.default_rng(0).integers(0, 2, a5.num_states)
    prediction = predict(analyse(Automaton(a5.delta, labels)), "bilinear-block")
    assert (prediction.can, prediction.size, prediction.smallest) == ("yes", 5, True)
    assert "no less suffices while products are bounded" in prediction.theorem


ANY = {
    "flip-flop": load_task("flip-flop").automaton,
    "even-pairs": load_task("even-pairs").automaton,
    "modular-arithmetic": load_task("modular-arithmetic").automaton,
    "brackets of depth 3": Automaton([[1, 4], [2, 0], [3, 1], [4, 2], [4, 4]], [1, 0, 0, 0, 0]),
    "ends in 001 or 011": build_automaton(
        {"kind": "regex", "pattern": "(0|1)*0(0|1)1", "alphabet": "01"}, ""
    ),
}


ABELIAN = ["parity", "modular-addition", "z60", "product(cyclic:n=2,cyclic:n=6)"]

AT_MOST_TWO = Automaton([[0, 1], [1, 2], [2, 3], [3, 3]], [0, 0, 0, 1])
"""Whether there were three ones: counted up to a threshold, and the order does not matter."""


def test_positive_gains_count_up_to_a_threshold() -> None:
    """With r^n for the n-th one, 1 > (r^n)(r^-2.5) from the third on, and 1 < it before."""
    for model in ("diagonal-positive", "diagonal-real", "diagonal-complex"):
        assert predict(analyse(AT_MOST_TWO), model).can == "yes"
    model = MODELS["diagonal-positive"](
        told("diagonal-positive", hidden=2), num_symbols=2, num_labels=2
    )
    gains = torch.tensor([[0.5, 0.5], [0.5, 0.05]], dtype=torch.float64)
    weights = {
        "gain_logits": gains.logit(),
        "first": torch.tensor([1.0, 10.0**2.5]),
        "readout.weight": torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
    }
    model.load_state_dict(weights)
    assert follow(model, AT_MOST_TWO, 10_000).exact


# --- what can be: the real model, built by hand at the predicted sizes ---

REGISTER = Automaton([[0, 1, 0], [0, 1, 1]])
"""Written 0, written 1, kept."""

BUILT = {
    # models: tasks, or automata of above
    "bilinear-block": [*GROUP_TASKS, *MERGED, "flip-flop", "brackets of depth 3"],
    "bilinear": [*GROUP_TASKS, *MERGED, *ANY],
    "bilinear-cp": ["s3", "s4", "a5", "s5", "s5-swaps", "z60", "a4xz5", "parity", *ANY],
    "bilinear-rotation": [*ABELIAN, "even zeros and even ones", "a multiple of 4"],
    "diagonal-complex": [*ABELIAN, "even zeros and even ones", "a multiple of 4"],
    "diagonal-real": ["parity", "product(parity,parity,parity)"],
    "deltaproduct": ["s3", "a multiple of 4"],
    "rnn": ["flip-flop", "even-pairs", "brackets of depth 3", "s3", "a4"],
    "gru": ["flip-flop", "even-pairs", "brackets of depth 3", "s3"],
    "lstm": ["flip-flop", "even-pairs", "brackets of depth 3", "s3"],
}


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, names in BUILT.items() for name in names]
)
def test_the_model_of_the_predicted_size_tracks_the_task(model: str, name: str) -> None:
    named = MERGED | ANY
    automaton = named[name] if name in named else load_task(name).automaton
    symbols = 300 if model == "deltaproduct" else 600
    assert follow(built_model(model, automaton), automaton, symbols, num_words=3).exact


def test_gains_and_an_added_state_follow_resets() -> None:
    algebra = analyse(REGISTER)
    assert predict(algebra, "diagonal-real").can == "no"
    prediction = predict(algebra, told("diagonal-real", additive="input"))
    assert (prediction.can, prediction.size, prediction.robust) == ("yes", 2, "no")
    assert follow(built_model("diagonal-real", REGISTER, additive="input"), REGISTER, 2_000).exact


def test_half_turns_of_the_icosahedron_may_do_with_one_reflection_but_five_fold_turns_may_not() -> (
    None
):
    elements = load_task("a5")
    half_turns = ["(1,2)(3,4)", "(1,2)(3,5)", "(1,3)(2,5)"]
    only_half_turns = build_automaton(
        {"kind": "alternating", "n": 5, "generators": half_turns}, "test"
    )
    negative = told("deltanet", beta="double")
    for layers, answer in ((1, "no"), (2, "unknown"), (3, "unknown")):
        found = predict(analyse(elements.automaton), negative.model_copy(update={"layers": layers}))
        assert (found.can, found.answer) == ("yes", answer)
    assert predict(analyse(elements.automaton), "deltaproduct").smallest
    found = predict(analyse(only_half_turns), negative)
    assert (found.can, found.answer) == ("yes", "unknown")
    assert predict(analyse(only_half_turns), "deltaproduct").size == 2
    assert not predict(analyse(only_half_turns), "deltaproduct").smallest


# --- what cannot be ---


COMMUTING = ["diagonal-positive", "diagonal-real", "diagonal-complex", "bilinear-rotation"]


def words_in_another_order(automaton: Automaton) -> tuple[np.ndarray, np.ndarray] | None:
    """Two drawn words with the same symbols and, both asked for, different labels."""
    for length in range(2, 7):
        words = np.array([*itertools.product(range(automaton.num_symbols), repeat=length)])
        ends = automaton.states_after(words)
        states = np.column_stack([np.full(len(words), automaton.start), ends])
        drawn = (automaton.weights[states[:, :-1], words] > 0).all(1)
        found: dict[bytes, tuple[np.ndarray, int]] = {}
        for place in np.flatnonzero(drawn & automaton.scored[ends[:, -1]]):
            word, label = words[place], int(automaton.output[ends[place, -1]])
            other, other_label = found.setdefault(np.sort(word).tobytes(), (word, label))
            if label != other_label:
                return other, word
    return None


SMALL = ["s3", "quaternion", "flip-flop", "even-pairs", "ends-with-ab", "turnstile", "random-fsm"]


@pytest.mark.parametrize("task", SMALL)
def test_where_gains_that_commute_cannot_two_words_differ_only_in_their_order(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    assert {predict(algebra, model).can for model in COMMUTING} == {"no"}
    witness = words_in_another_order(automaton)
    assert witness is not None
    assert sorted(witness[0]) == sorted(witness[1])


@pytest.mark.parametrize("name", ["parity", "z60", "modular-addition", "cycle-navigation"])
def test_where_the_order_never_counts_no_such_words_are_found(name: str) -> None:
    automaton = load_task(name).automaton
    assert predict(analyse(automaton), "diagonal-complex").can == "yes"
    few = Automaton(automaton.delta[:, :3], automaton.output) if name == "z60" else automaton
    assert words_in_another_order(few) is None


def labels_that_cycle(automaton: Automaton, most: int) -> list[int] | None:
    """Labels along x, x^2, x^3 ... for a symbol x whose labels keep changing."""
    for symbol in range(automaton.num_symbols):
        labels = automaton.labels_of(np.full(2 * most, symbol)).tolist()
        if len(set(labels[most:])) > 1:
            return labels
    return None


def test_models_whose_states_settle_are_refused_exactly_where_a_word_cycles() -> None:
    names = "s3 a5 permutation-reset flip-flop tomita-3 register modular-addition"
    for name in names.split():
        algebra = algebra_of(name)
        cycles = word_that_cycles(algebra) is not None
        for model in (told("minmax"), told("deltanet"), told("gated-deltanet")):
            assert (predict(algebra, model).can == "no") == cycles, (name, type(model).__name__)


def test_what_a_minmax_stack_answers_after_powers_of_a_word_settles() -> None:
    automaton = load_task("s3").automaton
    settings = told("minmax", layers=2, width=16, state=8)
    model = MODELS["minmax"](settings, num_symbols=automaton.num_symbols, num_labels=6).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)  # bounds that cross, and bounds that are far apart
    for length in (1, 2, 3, 5):
        word = torch.randint(automaton.num_symbols, (8, length))
        with torch.no_grad():
            logits = model(word.repeat(1, 12))[:, length - 1 :: length]
        assert torch.equal(logits[:, 8:], logits[:, 7:-1])


def test_a_product_of_symmetric_contractions_has_no_eigenvalue_of_modulus_1_but_1() -> None:
    random = np.random.default_rng(0)
    negative = False
    for _ in range(300):
        product = np.eye(3)
        for _ in range(random.integers(1, 5)):
            key = np.append(random.standard_normal(2), 0.0)  # all factors fix the last direction
            key /= np.linalg.norm(key)
            product = product @ (np.eye(3) - random.choice([0.5, 1.0]) * np.outer(key, key))
        values = np.linalg.eigvals(product)
        negative = negative or bool((values.real < -1e-3).any())
        assert np.allclose(values[np.abs(values) > 1 - 1e-9], 1.0)
        assert (np.abs(values) > 1 - 1e-9).sum() >= 1
    assert negative, "such a product may have negative eigenvalues"


@pytest.mark.parametrize("task", ["parity", "z60", "s3", "a5", "random-permutations"])
def test_where_positive_gains_cannot_the_labels_of_a_repeated_symbol_cycle(task: str) -> None:
    automaton = load_task(task).automaton
    algebra = analyse(automaton)
    for model in ("diagonal-positive", "mamba", "gla", "rwkv6", "rwkv7", "mlstm", "deltanet"):
        assert predict(algebra, model).can == "no", model
    assert labels_that_cycle(automaton, 200) is not None


@pytest.mark.parametrize(
    ("task", "positive", "signs", "turns"),
    [
        ("parity", "no", "yes", "yes"),
        ("z60", "no", "no", "yes"),
        ("dihedral:n=4", "no", "no", "no"),
        ("product(parity,parity)", "no", "yes", "yes"),
        ("flip-flop", "no", "no", "no"),
    ],
)
def test_one_layer_of_gains_does_what_its_gains_can(
    task: str, positive: str, signs: str, turns: str
) -> None:
    algebra = algebra_of(task)
    found = [predict(algebra, model).can for model in COMMUTING]
    assert found == [positive, signs, turns, turns]


def test_rotations_forget_nothing() -> None:
    """A count up to three never decreases; powers of a rotation come near the identity."""
    assert predict(analyse(AT_MOST_TWO), "bilinear-rotation").can == "no"
    assert predict(analyse(AT_MOST_TWO), "diagonal-complex").can == "yes"


def test_stacks_follow_the_series_of_the_group() -> None:
    expected = {
        # complex gains, signs (-1 to 1), positive gains; layers of each
        "parity": (("yes", 1), ("yes", 1), ("no", None)),
        "dihedral:n=4": (("yes", 2), ("yes", 2), ("no", None)),
        "cyclic:n=4": (("yes", 1), ("yes", 2), ("no", None)),
        "s3": (("yes", 2), ("no", None), ("no", None)),
        "s4": (("yes", 3), ("no", None), ("no", None)),
        "a5": (("no", None), ("no", None), ("no", None)),
        "flip-flop": (("yes", None), ("yes", None), ("yes", None)),
        "turnstile": (("yes", 1), ("yes", 1), ("yes", 1)),
    }
    for task, answers in expected.items():
        algebra = algebra_of(task)
        found = [
            predict(algebra, told("mamba3", slowest=0)),
            predict(algebra, told("mamba", eigenvalues="signed")),
            predict(algebra, "mamba"),
        ]
        assert tuple((each.can, each.size) for each in found) == answers, task


def test_what_is_hard_for_nc1_is_beyond_constant_depth() -> None:
    for task, expected in (("a5", "no"), ("s5-swaps", "no"), ("s4", "unknown")):
        algebra = algebra_of(task)
        for model in (
            told("transformer", bos=True),
            "hgrn",
            told("s4d", layers=2),
            told("lru", layers=2),
        ):
            assert predict(algebra, model).can == expected


def test_a_group_that_labels_never_show_stops_no_model() -> None:
    hidden_phase = Automaton([[1, 1], [0, 0]], [0, 1], scored=[True, False])
    for model in ("diagonal-positive", "mamba"):
        assert predict(analyse(hidden_phase), model).can != "no"


def test_sizes_are_the_smallest_where_some_states_are_not_asked_for_too() -> None:
    turned = Automaton([[1, 2], [2, 0], [0, 1]], scored=[True, True, False])
    shown = Automaton([[1, 2], [2, 0], [0, 1]])
    for model in ("bilinear", "bilinear-block", "bilinear-rotation", "deltaproduct"):
        hidden, seen = predict(analyse(turned), model), predict(analyse(shown), model)
        assert (hidden.can, hidden.size) == (seen.can, seen.size) == ("yes", 2), model
        assert seen.smallest, model
        assert hidden.smallest == (model != "deltaproduct"), model


# --- what a prediction is ---


def test_additive_terms_keep_what_can_be_and_make_sizes_open() -> None:
    algebra = algebra_of("s4")
    without = predict(algebra, "bilinear-block")
    with_terms = predict(algebra, told("bilinear-block", additive="input"))
    assert (without.size, without.smallest) == (3, True)
    assert (with_terms.size, with_terms.smallest) == (3, False)
    assert predict(algebra, told("diagonal-complex", additive="input")).can == "no"
    commuting = algebra_of("parity")
    assert predict(commuting, told("diagonal-real", additive="constant")).can == "yes"


def test_an_answer_weighs_the_size_that_a_model_is_given() -> None:
    def with_blocks_of(size: int, *, smallest: bool) -> Prediction:
        need = Size("block_size", size).at_least(3, smallest)
        return Prediction("yes", "theorem", "source", (need,))

    sizes = (2, 3, 4)
    exact = [with_blocks_of(size, smallest=True).answer for size in sizes]
    enough = [with_blocks_of(size, smallest=False).answer for size in sizes]
    assert exact == ["no", "yes", "yes"]
    assert enough == ["unknown", "yes", "yes"]
    assert Prediction("yes", "theorem", "source").answer == "yes"
    enough = Size("block_size", 9).at_least(3)
    assert Prediction("no", "theorem", "source", (enough,)).answer == "no"
    layers = Size("layers", 2).at_least(None)
    assert Prediction("yes", "theorem", "source", (layers,)).answer == "unknown"


def test_a_model_can_with_its_settings_only_if_each_of_them_is_large_enough() -> None:
    factors, heads = Size("householders", 2).at_least(2, smallest=True), Size("heads", 4)
    found = Prediction("yes", "theorem", "source", (factors, heads.at_least(5)))
    assert (found.answer, found.unmet) == ("unknown", (Need("heads", 5, 4),))
    assert (found.size_of, found.size, found.smallest) == ("householders", 2, True)
    assert replace(found, needs=(factors, heads.at_least(5, smallest=True))).answer == "no"
    assert replace(found, needs=(factors, heads.at_least(4))).answer == "yes"
    assert replace(found, needs=(factors, heads.at_least(None))).answer == "unknown"
    written = found.to_json()
    assert (written["can"], written["suffices"]) == ("yes", "unknown")
    assert written["needs"] == [
        {"setting": "householders", "value": 2, "given": 2, "smallest": True, "least": 2},
        {"setting": "heads", "value": 5, "given": 4, "smallest": False, "least": None},
    ]


def test_less_than_what_is_known_to_be_too_few_does_not_suffice() -> None:
    def with_layers(number: int) -> Prediction:
        need = Size("layers", number).at_least(4, least=2)
        return Prediction("yes", "theorem", "source", (need,))

    assert [with_layers(number).answer for number in (1, 2, 3, 4)] == [
        "no",
        "unknown",
        "unknown",
        "yes",
    ]
    assert Size("layers", 1).at_least(2, least=2).smallest
    assert Size("layers", 1).at_least(None, least=2).met == "no"


def test_every_registered_model_names_its_recurrence_which_answers_for_every_task() -> None:
    recurrences = {model: recurrence_of(told(model)) for model in MODELS}
    for task in (name for name in TASKS if load_task(name).has_automaton):
        algebra = algebra_of(task)
        for model, recurrence in recurrences.items():
            assert recurrence is not None, model
            prediction = predict(algebra, model)
            if task in ("s3", "parity", "flip-flop"):
                assert prediction == recurrence.predict(algebra) == predict(algebra, recurrence)
            assert prediction.theorem and prediction.source, (task, model)
            if prediction.size is not None:
                assert (prediction.can, prediction.size >= 1) == ("yes", True), (task, model)
                assert prediction.size_of in MODELS[model].settings_class.model_fields


def test_the_size_that_a_model_is_given_is_the_value_of_the_setting_that_counts() -> None:
    algebras = [algebra_of(task) for task in ("s3", "parity", "flip-flop")]
    for model in MODELS:
        settings = told(model)
        for algebra in algebras:
            for need in predict(algebra, settings).needs:
                assert need.given == settings.model_dump()[need.setting], (model, need)


def test_a_task_and_its_algebra_a_model_and_its_settings_are_predicted_alike() -> None:
    task = load_task("s3")
    settings = told("bilinear-cp", rank=3)
    model = MODELS["bilinear-cp"](settings, num_symbols=6, num_labels=6)
    found = predict(task, model)
    assert found == predict(task, settings) == predict(analyse(task.automaton), settings)
    assert (found.size, found.answer) == (4, "unknown")
    assert found == predict(task, "bilinear-cp", rank=3)
    assert predict(task, "bilinear-cp").answer == "yes"


def test_nothing_is_predicted_of_a_module_that_names_no_class_of_recurrence() -> None:
    found = predict(load_task("s3"), torch.nn.GRU(3, 4))
    assert (found.can, found.answer, found.needs) == ("unknown", "unknown", ())
    assert "names no class" in found.theorem


def test_a_task_without_an_automaton_is_not_predicted() -> None:
    with pytest.raises(TaskError, match="no automaton"):
        predict(load_task("dyck-1"), "rnn")


def test_a_name_that_no_model_has_is_refused_with_the_nearest() -> None:
    algebra = algebra_of("parity")
    with pytest.raises(UnknownNameError, match="linear-attention"):
        predict(algebra, "linear-atention")


def test_a_machine_of_one_state_is_within_every_models_reach() -> None:
    algebra = analyse(Automaton([[0, 0]]))
    for model in MODELS:
        prediction = predict(algebra, model)
        assert prediction.can != "no", model
        assert prediction.size is None or prediction.size >= (0 if "product" in model else 1), model
    for model in ("bilinear", "bilinear-cp", "bilinear-block", *COMMUTING, "rnn", "mamba"):
        assert predict(algebra, model).can == "yes", model


@pytest.mark.parametrize("model", ["deltaproduct", "gated-deltaproduct"])
def test_where_no_reflection_is_needed_any_number_of_factors_does(model: str) -> None:
    one_state, one_label = Automaton([[0, 0]]), Automaton([[1, 0], [0, 1]], [0, 0])
    for automaton in (one_state, one_label):
        found = predict(analyse(automaton), model)
        (need,) = found.needs
        assert (found.answer, need.value, need.met, need.smallest) == ("yes", 0, "yes", True)
        assert "no reflections are needed" in found.theorem
        assert built_model(model, automaton).settings.householders == 1
    assert predict(analyse(Automaton([[1, 0], [0, 1]])), model).needs[0].value == 1


def test_a_size_that_may_be_any_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    machine = tmp_path / "one.yaml"
    machine.write_text(ONE_LABEL, encoding="utf-8")
    code, shown, _ = run_predict(capsys, str(machine), "--models", "deltaproduct")
    assert code == 0 and "any householders" in shown.replace("\N{NO-BREAK SPACE}", " ")
    code, written, _ = run_predict(capsys, str(machine), "--models", "deltaproduct", "--json")
    (about,) = json.loads(written).values()
    assert about["predictions"]["deltaproduct"]["size"] == 0
    answer = AnswerRow("yes", "yes", "householders", 0)
    assert answer_text(answer) == "can, any householders"


def test_a_machine_that_is_too_large_is_still_predicted_for() -> None:
    large = load_task("random-fsm:states=25,symbols=10").automaton
    algebra = analyse(large, MonoidBudget(most_images=1_000))
    assert algebra.monoid is None
    assert predict(algebra, "bilinear").size == 25
    assert predict(algebra, "rnn").can == "yes"
    assert predict(algebra, "diagonal-complex").can == "no"
    assert predict(algebra, told("mamba3", slowest=0)).can == "unknown"


# --- the command ---

ONE_LABEL = """
title: One label
version: 1
reference: own example
automaton:
  kind: transitions
  start: p
  states: {p: {a: q, b: p}, q: {a: p, b: q}}
  outputs: {p: x, q: x}
"""


def run_predict(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = app.run(["predict", *words])
    return code, *capsys.readouterr()


def test_predict_prints_sizes_reasons_and_tables(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, one, _ = run_predict(capsys, "s4", "--models", "bilinear-block,rnn")
    assert code == 0
    assert (
        "block_size >= 3" in one and "hidden 577 is enough" in one and "ACC0" in one and "S4" in one
    )
    code, several, _ = run_predict(capsys, "s4", "flip-flop", "parity")
    assert code == 0
    headings = [line for line in several.splitlines() if not line.startswith(" ")]
    assert headings[:3] == ["s4", "flip-flop", "parity"]
    assert "diagonal-real (hidden >= 1)" in several
    code, _, complaint = run_predict(capsys, "s4", "--models", "linear-atention")
    assert code == 1 and "linear-attention" in complaint


def test_predict_gives_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, written, _ = run_predict(capsys, "s5", "random-fsm", "--json")
    assert code == 0
    found = json.loads(written)
    for task, about in found.items():
        algebra = algebra_of(task)
        assert about["algebra"] == algebra.to_json()
        for model, prediction in about["predictions"].items():
            expected = predict(algebra, model)
            longer = expected.generalises
            numbers = {prediction.pop("witness"): expected.witness}
            if longer is not None:
                numbers[prediction["generalises"].pop("witness")] = longer.witness
            assert prediction == expected.to_json()
            for number, witness in numbers.items():
                assert (number is None) == (witness is None)
                if witness is not None:
                    assert about["witnesses"][number]["says"] == witness.says
        assert list(about["predictions"]) == list(MODELS)
    assert found["s5"]["algebra"]["irreducible_dimensions"]["real"] == [1, 1, 4, 4, 5, 5, 6]


# --- models from elsewhere ---

PLUGIN = """
from statetrack import MODELS, LinearModel, LinearSettings, option
from statetrack.algebra.recurrences import Blocks, Size


class OwnBlocksSettings(LinearSettings):
    width: int = option(2, "Size of each block.", min=1)

    @property
    def recurrence(self):
        return Blocks(size=Size("width", self.width), additive=self.additive)


@MODELS.register("own-blocks")
class OwnBlocks(LinearModel):
    settings_class = OwnBlocksSettings
"""


def test_a_users_model_that_names_its_recurrence_is_predicted_as_one_of_this_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(MODELS, "_things", dict(MODELS._things))
    path = tmp_path / "own_blocks.py"
    path.write_text(PLUGIN)
    words = ("s4", "--models", "own-blocks,bilinear-block", "--json", "--plugin", str(path))
    code, written, _ = run_predict(capsys, *words)
    assert code == 0
    predictions = json.loads(written)["s4"]["predictions"]
    needs = [predictions["bilinear-block"]["needs"][0] | {"setting": "width"}]
    expected = predictions["bilinear-block"] | {"size_of": "width", "needs": needs}
    assert predictions["own-blocks"] == expected
    algebra = algebra_of("s4")
    answers = [predict(algebra, told("own-blocks", width=width)).answer for width in (2, 3)]
    assert answers == ["no", "yes"]


@pytest.mark.parametrize(
    ("need", "bounds", "lack"),
    [
        (Need("hidden", 5, 4, smallest=True, least=5), "hidden >= 5", "hidden 4 < 5"),
        (Need("block_size", 5, 2, least=3), "block_size >= 3 (5 is enough)", None),
        (Need("block_size", 5, 4, least=3), "block_size >= 3 (5 is enough)", "block_size 4"),
        (Need("hidden", 37, 4), "hidden 37 is enough", "hidden 4 (37 is enough)"),
        (Need("layers", None, 1, least=2), "layers >= 2 ?", "layers 1 < 2"),
        (Need("layers", None, 1), "layers ?", "layers 1"),
        (Need("heads", 0, 1, smallest=True), "any heads", None),
    ],
)
def test_one_bound_is_printed_everywhere(need, bounds, lack):
    assert need.bounds == bounds
    assert lack is None or need.lack.startswith(lack)
    if (need.least, need.given) == (3, 2):
        assert need.lack == "block_size 2 < 3 (5 is enough)"


def test_rotations_of_four_dimensions_hold_a5_and_not_s5() -> None:
    """What a mixer of two unit quaternions, x -> q x p*, can be: blocks of determinant 1."""
    a5, s5 = (algebra_of(name) for name in ("a5", "s5-swaps"))
    for algebra, smallest in ((a5, 3), (s5, 4)):
        assert algebra.space is not None
        actions = algebra.machine.actions
        seen = [
            (part.dimension, np.linalg.det(part.matrices(actions)))
            for part in algebra.space.parts
            if part.dimension <= 4
        ]
        faithful = [signs for dimension, signs in seen if dimension > 1]
        assert faithful and min(dimension for dimension, _ in seen if dimension > 1) == smallest
        assert np.allclose(np.abs(np.concatenate([signs for _, signs in seen])), 1)
        if algebra is a5:
            assert all(np.allclose(signs, 1) for signs in faithful)
        else:
            identity = np.arange(actions.shape[1])
            swaps = (actions != identity).any(axis=1)
            assert all((signs[swaps] < 0).all() for signs in faithful)


def test_a_group_that_labels_do_not_show_has_no_series_where_it_is_not_solvable() -> None:
    """Labels are asked for at one point of A5, and are those of another bit."""
    turns = [[1, 2, 3, 4, 0], [1, 2, 0, 3, 4]]
    delta = [
        [*(2 * turn[state // 2] + state % 2 for turn in turns), state ^ 1] for state in range(10)
    ]
    automaton = Automaton(delta, [0, 1] * 5, scored=[True, True] + [False] * 8)
    algebra = analyse(automaton)
    assert algebra.is_group and algebra.monoid and not algebra.monoid.solvable
    for model in ("aussm", told("mamba3", slowest=0.0)):
        assert predict(algebra, model).can == "unknown"
