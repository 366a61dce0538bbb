"""The end of training: what no training word shows is removed, and the rest is solved for.

V symbols, B words, T time, H hidden.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from statetrack import Run
from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.models import MODELS, LinearModel
from statetrack.ops import FactoredOperators
from statetrack.runs import Experiment, files
from statetrack.sources import Automaton
from statetrack.spec import load_task
from statetrack.training import Population, Trainer, TrainSettings, Words
from statetrack.training import finish as finishing
from statetrack.training.finish import Finished, finished, least_squares, obstacle
from statetrack.training.finish.realization import (
    Coordinates,
    LinearMachine,
    _gramians,
    at_labels,
    seen_coordinates,
)
from statetrack.training.finish.realization import in_blocks as in_irreducible_blocks
from statetrack.training.losses import smallest_margin
from tests.exact_models import in_blocks, put
from tests.setups import Setup

HIDDEN = 7
LENGTH = 20_000
RESETS = Automaton(np.array([[0, 1], [0, 0]]))
TRANSIENT = Automaton(np.array([[1, 2], [2, 1], [1, 1]]))
"""Symbol 0 leads to the first state, 1 to the other; and a first state that never comes back."""


def words_of(automaton: Automaton, num_words: int = 200, length: int = 7) -> Words:
    """Random words with labels, of which the last ones are shorter."""
    symbols = np.random.default_rng(0).integers(0, automaton.num_symbols, (num_words, length))
    labels, scored = automaton.read(symbols)
    scored = scored & (np.arange(length) < np.resize([length, length - 2], num_words)[:, None])
    return Words(
        torch.from_numpy(symbols),
        torch.from_numpy(labels.astype(np.int64)),
        torch.from_numpy(scored),
    )


def hidden_machine(automaton: Automaton, noise: float, growing: float = 1.01) -> LinearMachine:
    """A machine that follows an automaton, in coordinates drawn at random, beside faint modes.

    States are one-hot, in the first coordinates of `HIDDEN`; modes that grow have an amplitude of
    1e-3, and all numbers are off by `noise`.
    """
    generator = torch.Generator().manual_seed(3)
    size, labels = automaton.num_states, automaton.num_labels
    operators = torch.zeros(automaton.num_symbols, HIDDEN, HIDDEN, dtype=torch.float64)
    for state, row in enumerate(automaton.delta.tolist()):
        for symbol, target in enumerate(row):
            operators[symbol, target, state] = 1.0
    for extra in range(size, HIDDEN):
        operators[:, extra, extra] = growing
    first = torch.full((HIDDEN,), 1e-3, dtype=torch.float64)
    first[:size] = torch.eye(size)[0]
    output = torch.tensor(automaton.output.tolist())
    readout = torch.full((labels, HIDDEN), 1e-3, dtype=torch.float64)
    readout[:, :size] = torch.eye(labels, dtype=torch.float64)[output].mT - 1 / labels
    drawn = torch.randn(HIDDEN, HIDDEN, dtype=torch.float64, generator=generator)
    change = drawn + 2 * torch.eye(HIDDEN, dtype=torch.float64)
    back = torch.linalg.inv(change)

    def off(values: Tensor) -> Tensor:
        drawn = torch.randn(values.shape, dtype=torch.float64, generator=generator)
        return values + noise * drawn

    return LinearMachine(off(change @ operators @ back), off(change @ first), off(readout @ back))


def model_of(machine: LinearMachine, name: str, automaton: Automaton) -> LinearModel:
    """A model whose operators are those of a machine; for CP, by a factor for each entry."""
    kind = MODELS[name]
    ample = {"rank": HIDDEN * HIDDEN} if name == "bilinear-cp" else {}
    model = kind(
        kind.settings_class(hidden=HIDDEN, **ample),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    )
    assert isinstance(model, LinearModel)
    weights: dict[str, Tensor] = {
        "first": machine.first,
        "readout.weight": machine.readout,
    }
    if name == "bilinear":
        weights["weight"] = machine.operators
    else:
        identity = torch.eye(HIDDEN)
        weights["left"] = identity.repeat_interleave(HIDDEN, 1)
        weights["right"] = identity.repeat(1, HIDDEN)
        weights["gains"] = machine.operators.flatten(1)
    model.load_state_dict({name: value.float() for name, value in weights.items()})
    return model.eval()


def finish(model: LinearModel, automaton: Automaton, **settings: Any) -> Finished:
    found = finished(model, words_of(automaton), TrainSettings(finish="exact", **settings))
    assert isinstance(found, Finished), found
    return found


def first_errors(model: LinearModel, automaton: Automaton) -> list[int]:
    """Where the powers of short words are first answered wrongly, of `LENGTH` symbols; 0: never."""
    periods = [[0], [1], [0, 1], [0, 0, 1], [1, 1, 0]]
    words = np.stack([np.resize(period, LENGTH) for period in periods])
    return Subject(model, automaton).first_errors(words).tolist()


def blocks_of_three(with_sign: bool) -> tuple[LinearModel, Automaton]:
    """S3 in blocks of 3, all numbers off by 1e-4: a plane and a direction that forgets, in
    coordinates drawn at random; two blocks that forget; a faint one that grows; and the signs."""
    exact, automaton = in_blocks()
    generator = torch.Generator().manual_seed(5)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    turns = exact.weight.detach().double()  # [V, 2, 2, 2]
    blocks = torch.zeros(automaton.num_symbols, 5, 3, 3, dtype=torch.float64)
    blocks[:, 0, :2, :2], blocks[:, 0, 2, 2] = turns[:, 0], 0.5
    change = drawn(3, 3) + 2 * torch.eye(3)
    blocks[:, 0] = change @ blocks[:, 0] @ torch.linalg.inv(change)
    blocks[:, 1:3] = 0.6 * torch.linalg.qr(drawn(automaton.num_symbols, 2, 3, 3)).Q
    blocks[:, 3] = 1.01 * torch.eye(3)
    if with_sign:
        blocks[:, 4, 0, 0] = turns[:, 1, 0, 0]
    first = drawn(5, 3)
    first[3] *= 1e-3
    model = MODELS["bilinear-block"](
        MODELS["bilinear-block"].settings_class(hidden=15, block_size=3),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    )
    assert isinstance(model, LinearModel)
    put(model.weight, blocks + 1e-4 * drawn(*blocks.shape))
    put(model.first, first.flatten())
    put(model.readout.weight, drawn(automaton.num_labels, 15))
    return model.eval(), automaton


def automaton_of(task: str) -> Automaton:
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return automaton


@pytest.mark.parametrize("name", ["bilinear", "bilinear-cp"])
@pytest.mark.parametrize(
    ("automaton", "kept"),
    [(automaton_of("modular-addition:m=3"), 2), (RESETS, 2), (TRANSIENT, 3)],
    ids=["a group", "with resets", "a first state of its own"],
)
def test_what_grows_unseen_is_removed_and_the_rest_is_exact(
    name: str, automaton: Automaton, kept: int
) -> None:
    model = model_of(hidden_machine(automaton, 1e-4), name, automaton)
    before = first_errors(model, automaton)
    assert any(before)
    found = finish(model, automaton)
    assert found.loss_before > 1e-8
    assert found.loss_after < 1e-18
    assert found.kept == kept
    model.load_state_dict(found.weights)
    assert not any(first_errors(model, automaton))
    states = model.scan(torch.zeros(1, 5, dtype=torch.int64), model.initial_state(1))[1]
    assert not states[:, found.kept :].any()  # what is not used is zero


@pytest.mark.parametrize(
    ("automaton", "entries", "proven"),
    [
        (automaton_of("modular-addition:m=3"), 4, 10**6),
        (automaton_of("random-fsm:states=5"), 20, None),
        (RESETS, 3, None),
    ],
    ids=["a plane", "unit vectors", "unit vectors of resets"],
)
def test_factors_have_a_term_for_each_entry_in_coordinates_in_which_they_are_few(
    automaton: Automaton, entries: int, proven: int | None
) -> None:
    """Terms that do not cancel: fitted ones were proven to half as much, and not to all lengths."""
    model = model_of(hidden_machine(automaton, 1e-4), "bilinear-cp", automaton)
    model.load_state_dict(finish(model, automaton).weights)
    operators = model.operators()
    assert isinstance(operators, FactoredOperators)
    terms = operators.left.unsqueeze(1) * operators.right  # [H, H, K]
    assert int(terms.any(-1).sum()) == entries
    assert (terms != 0).sum(-1).amax() == 1
    found = Certificate.search(Subject(model, automaton), budget=SearchBudget(60.0))
    if proven is None:
        assert found.verdict == "all lengths"
    else:
        assert found.length is not None and found.length > proven


def test_operators_of_a_group_fall_into_their_irreducible_blocks() -> None:
    """S3 acts on its six states by 1, a sign and a plane twice: 1 + 1 + 4 + 4 entries."""
    machine = hidden_machine(automaton_of("s3"), 0.0, growing=1.0)
    change = in_irreducible_blocks(machine)
    assert change is not None
    operators = machine.changed(change).operators
    identity = torch.eye(HIDDEN, dtype=torch.float64)
    assert torch.allclose(operators.mT @ operators, identity.expand_as(operators), atol=1e-9)
    assert int(least_squares.entries_of(operators).any(0).sum()) == 10 + 1  # what is kept as well


def test_coordinates_are_sparse_only_where_there_are_such() -> None:
    generator = torch.Generator().manual_seed(2)
    drawn = torch.randn(2, 4, 4, dtype=torch.float64, generator=generator)
    machine = LinearMachine(drawn / 3, drawn[0, 0], drawn[1])
    assert in_irreducible_blocks(machine) is None
    words = words_of(automaton_of("modular-addition:m=4"))
    assert at_labels(machine, Words(words.symbols % 2, words.labels, words.scored)) is None
    growing = LinearMachine(drawn * 10, drawn[0, 0], drawn[1])
    assert in_irreducible_blocks(growing) is None


def equations_in_all_coordinates(noise: float) -> tuple[LinearMachine, Words, Tensor, Coordinates]:
    """Equations for all coordinates of a hidden machine, most of which no answer depends on."""
    automaton = automaton_of("modular-addition:m=3")
    machine, words = hidden_machine(automaton, noise), words_of(automaton, num_words=40)
    identity = torch.eye(HIDDEN, dtype=torch.float64)
    everything = Coordinates(identity, identity, torch.ones(HIDDEN).double(), machine.first)
    chosen = torch.nn.functional.one_hot(words.labels, automaton.num_labels).double()
    return machine, words, chosen - 1 / automaton.num_labels, everything


def test_steps_that_words_do_not_determine_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    products = []
    whole = least_squares._Equations._forward
    monkeypatch.setattr(
        least_squares._Equations, "_forward", lambda *a: products.append(1) or whole(*a)
    )
    given = equations_in_all_coordinates(1e-1)
    with pytest.raises(least_squares.UndeterminedError):
        least_squares.solved(*given, determined=True)
    assert 0 < len(products) <= 3 * least_squares.MOST_PRODUCTS_DETERMINED


def test_solving_ends_with_the_best_machine_that_its_work_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 64 dimensions of a machine with brackets it took half an hour, and gained nothing."""
    machine, words, targets, coordinates = equations_in_all_coordinates(1e-2)

    def error(of: LinearMachine) -> float:
        found = least_squares._Equations(of, words, targets)
        return float(np.square(found.residual(least_squares._joined(of))).sum())

    product = words.symbols.numel() * machine.size**2
    errors = []
    for products in (0, 700):
        monkeypatch.setattr(least_squares, "MOST_WORK", products * product)
        errors.append(error(least_squares.solved(machine, words, targets, coordinates)))
    assert errors[0] == error(machine), "nothing was done"
    assert errors[0] > errors[1]
    with pytest.raises(least_squares.UndeterminedError):
        monkeypatch.setattr(least_squares, "MOST_WORK", 0)
        least_squares.solved(machine, words, targets, coordinates, determined=True)


def test_what_is_solved_is_kept_where_the_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of S4 a replica was refused whose squared error was 4e-18, for one step too many."""
    machine, words, targets, _ = equations_in_all_coordinates(1e-3)
    coordinates = seen_coordinates(machine, words)
    begun, products = coordinates.of(machine), []
    whole = least_squares._Equations._count
    monkeypatch.setattr(
        least_squares._Equations, "_count", lambda own: products.append(1) or whole(own)
    )
    least_squares.solved(begun, words, targets, coordinates, determined=True)
    product = words.symbols.numel() * begun.size**2
    monkeypatch.setattr(least_squares, "MOST_WORK", (len(products) - 1) * product)
    found = least_squares.solved(begun, words, targets, coordinates, determined=True)
    equations = least_squares._Equations(found, words, targets)
    error = np.square(equations.residual(least_squares._joined(found))).sum()
    assert error < least_squares.ROUNDED


def test_what_has_more_unknowns_than_equations_is_not_solved_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    automaton = automaton_of("modular-addition:m=3")
    model = model_of(hidden_machine(automaton, 1e-4), "bilinear", automaton)
    words = words_of(automaton)
    monkeypatch.setattr(finishing, "solved", None)
    few = Words(*(part[:2, :4] for part in (words.symbols, words.labels, words.scored)))
    said = finished(model, few, TrainSettings(finish="exact"))
    assert re.fullmatch(
        r"training words show (\d) dimensions of its states, \d+ unknowns, and have 16 equations "
        "for them",
        said,
    )


def test_factors_are_not_sought_for_operators_that_words_do_not_determine(monkeypatch) -> None:
    def undetermined(*given: Any, determined: bool) -> LinearMachine:
        assert determined
        raise least_squares.UndeterminedError

    automaton = automaton_of("modular-addition:m=3")
    model = model_of(hidden_machine(automaton, 1e-4), "bilinear-cp", automaton)
    monkeypatch.setattr(finishing, "solved", undetermined)
    monkeypatch.setattr(finishing, "factored", None)
    said = finished(model, words_of(automaton), TrainSettings(finish="exact"))
    assert said == (
        "training words show 2 dimensions of its states, and do not determine the operators on them"
    )


@pytest.mark.parametrize("num_labels", [2, 3, 12])
def test_what_is_observed_is_the_sum_over_words_however_it_is_computed(num_labels: int) -> None:
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    machine = LinearMachine(drawn(2, 6, 6) / 3, drawn(6), drawn(num_labels, 6))
    words = words_of(automaton_of("parity"), num_words=50, length=4)
    expected = torch.zeros(2, 6, 6, dtype=torch.float64)
    for symbols, scored in zip(words.symbols, words.scored, strict=True):
        later = torch.zeros(6, 6, dtype=torch.float64)
        for t in reversed(range(4)):
            now = later + float(scored[t]) * machine.readout.mT @ machine.readout
            expected[0] += now
            later = machine.operators[symbols[t]].mT @ now @ machine.operators[symbols[t]]
        expected[1] += later
    _, observed, first = _gramians(machine, words)
    asked = words.scored.flip(1).cumsum(1).flip(1) > 0
    assert torch.allclose(observed, expected[0] / asked.sum())
    assert torch.allclose(first, expected[1] / 50)


def test_blocks_that_keep_a_state_for_every_label_are_made_exact() -> None:
    model, automaton = blocks_of_three(with_sign=True)
    assert any(first_errors(model, automaton))
    found = finish(model, automaton)
    # the plane has two coordinates, and a second block is given it with another first state
    assert found.kept == 5 and not found.minimal
    assert found.loss_after < 1e-18
    model.load_state_dict(found.weights)
    assert not any(first_errors(model, automaton))
    turns = model.operators().dense().double()
    products = turns.mT @ turns
    assert torch.allclose(products, products[:1].expand_as(products), atol=1e-6)


def test_exact_blocks_answer_rightly_where_no_weights_make_the_error_zero() -> None:
    model, automaton = blocks_of_three(with_sign=False)
    found = finish(model, automaton)
    assert found.kept == 4
    # without the signs, a sixth of the six dimensions of functions of states is missing
    assert found.loss_after == pytest.approx(1 / 6, abs=0.02)
    model.load_state_dict(found.weights)
    assert not any(first_errors(model, automaton))
    words = words_of(automaton)
    margin = smallest_margin(model(words.symbols).detach(), words.labels, words.scored)
    assert margin == pytest.approx(2 / 3, abs=1e-4)


def test_padding_behind_the_longest_word_changes_no_block() -> None:
    model, automaton = blocks_of_three(with_sign=False)
    words, padding = words_of(automaton), torch.zeros(200, 20, dtype=torch.int64)
    padded = Words(
        torch.cat([words.symbols, padding], 1),
        torch.cat([words.labels, padding], 1),
        torch.cat([words.scored, padding.bool()], 1),
    )
    found = finished(model, padded, TrainSettings(finish="exact"))
    assert isinstance(found, Finished) and found.kept == 4


def test_blocks_of_a_machine_that_forgets_are_left_as_they_are() -> None:
    kind = MODELS["bilinear-block"]
    model = kind(kind.settings_class(hidden=4), num_symbols=2, num_labels=2)
    # a reset follows from the label before and the symbol, but no orthogonal matrix does it
    blocks = torch.eye(2).repeat(2, 2, 1, 1)
    blocks[1, :, 1, :] = torch.tensor([1.0, 0.0])
    blocks[1, :, 0, 0] = 0.0
    model.load_state_dict(model.state_dict() | {"weight": blocks})
    found = finished(model, words_of(RESETS), TrainSettings(finish="exact"))
    assert isinstance(found, str) and "no block keeps" in found
    labels_say_too_little = Automaton(np.array([[1, 2], [2, 0], [0, 1]]), np.array([0, 0, 1]))
    words = words_of(labels_say_too_little)
    found = finished(model, words, TrainSettings(finish="exact"))
    assert isinstance(found, str) and "do not say the next label" in found


def test_the_smallest_margin_is_over_scored_positions_alone() -> None:
    logits = torch.tensor([[[3.0, 1.0, 2.5], [0.0, 1.0, 5.0]]])
    labels = torch.tensor([[0, 1]])
    assert smallest_margin(logits, labels, torch.tensor([[True, True]])) == -4.0
    assert smallest_margin(logits, labels, torch.tensor([[True, False]])) == 0.5


def test_all_coordinates_are_kept_where_no_gap_says_how_many() -> None:
    automaton = automaton_of("modular-addition:m=3")
    machine = hidden_machine(automaton, 0.0)
    generator = torch.Generator().manual_seed(0)
    drawn = torch.randn(2, 5, 5, dtype=torch.float64, generator=generator)
    turned = torch.linalg.qr(drawn.repeat(2, 1, 1)[:3]).Q
    free = LinearMachine(
        turned, torch.ones(5, dtype=torch.float64), torch.eye(5, dtype=torch.float64)
    )
    assert len(seen_coordinates(free, words_of(automaton)).values) == 5
    assert len(seen_coordinates(machine, words_of(automaton)).values) < HIDDEN


@pytest.mark.parametrize(
    ("name", "own", "settings", "reason"),
    [
        ("bilinear", {}, {}, ""),
        ("bilinear-cp", {}, {"loss": "smoothed-cross-entropy"}, ""),
        ("bilinear", {}, {"loss": "cross-entropy"}, "no minimum"),
        ("bilinear", {}, {"freeze": "recurrence"}, "not all"),
        ("bilinear", {}, {"robust": "spectral"}, "robust"),
        ("bilinear", {"first": "fixed"}, {}, "not all"),
        ("bilinear", {"additive": "input"}, {}, "additive"),
        ("bilinear-cp", {"readout_bias": True}, {}, "bias"),
        ("bilinear", {"embed_dim": 4}, {}, "embeddings"),
        ("bilinear-block", {}, {}, ""),
        ("bilinear-rotation", {}, {}, "coordinates"),
        ("lstm", {}, {}, "coordinates"),
    ],
)
def test_what_cannot_be_finished_says_why(
    name: str, own: dict[str, Any], settings: dict[str, Any], reason: str
) -> None:
    kind = MODELS[name]
    model = kind(kind.settings_class(hidden=4, **own), num_symbols=2, num_labels=2)
    said = obstacle(model, TrainSettings(**settings))
    assert reason in said and bool(reason) == bool(said)


def test_a_smoothed_loss_is_brought_to_its_own_minimum() -> None:
    automaton = automaton_of("modular-addition:m=3")
    machine = hidden_machine(automaton, 1e-4)
    same = 0.5 * torch.ones_like(machine.readout)  # in all logits
    scaled = LinearMachine(machine.operators, machine.first, 2 * machine.readout + same)
    model = model_of(scaled, "bilinear", automaton)
    found = finish(model, automaton, loss="smoothed-cross-entropy", label_smoothing=0.3)
    model.load_state_dict(found.weights)
    words = words_of(automaton)
    logits = model(words.symbols)[words.scored]
    optimum = torch.full((3,), 0.1)
    optimum[0] = 0.8
    shares = logits.softmax(-1).sort(-1, descending=True).values
    assert torch.allclose(shares, optimum.expand_as(shares), atol=1e-4)


SMALL = {
    "model": "bilinear",
    "task": "modular-addition:m=3",
    "hidden": 6,
    "steps": 80,
    "lrs": [0.03],
    "batch_size": 16,
    "train_length": "2-6",
    "validation_words": 40,
    "validate_every": 20,
    "device": "cpu",
}


def trained(**values: Any) -> Trainer:
    setup = Setup.of(Experiment.from_values({**SMALL, **values}, "test"))
    population = Population(setup.make_model, setup.experiment.replicas, setup.device)
    trainer = Trainer(population, *setup.words(), setup.experiment.training, setup.device)
    for _ in trainer.run():
        pass
    return trainer


def test_bilinear_models_are_finished_by_default_and_papers_ask_for_it_not_to_be() -> None:
    for name in ("bilinear", "bilinear-cp", "bilinear-block"):
        assert Experiment.from_values({"model": name}, "test").training.finish == "exact"
        paper = Experiment.from_values({"model": name}, "test", protocol="bilinear-paper")
        assert paper.training.finish == "none"


def test_the_best_weights_are_the_finished_ones_of_each_replica_alone() -> None:
    together = trained(seeds=2)
    for replica, progress in zip(together.everyone, together.progress, strict=True):
        end = together.finishes[replica.index]
        alone = trained(seed=replica.seed, lrs=[replica.lr])
        assert bool(alone.finishes[0].refused) == bool(end.refused)
        assert alone.progress[0].best_accuracy == progress.best_accuracy
        for name, value in alone.best.items():
            assert torch.allclose(value[0], together.best[name][replica.index], atol=1e-3), name
    learned = together.finishes[0]
    assert not learned.refused and learned.kept == 2 and learned.hidden == 6
    assert learned.loss_after is not None and learned.loss_after < 1e-18
    assert together.progress[0].best_loss < 1e-11


def test_weights_stay_as_they_were_where_validation_would_get_worse() -> None:
    setup = Setup.of(Experiment.from_values({**SMALL, "finish": "exact"}, "test"))
    population = Population(setup.make_model, setup.experiment.replicas, setup.device)
    trainer = Trainer(population, *setup.words(), setup.experiment.training, setup.device)
    for _ in trainer.run():
        trainer.progress[0].best_loss = 0.0  # no weights have a smaller one
    assert "worse" in trainer.finishes[0].refused
    assert trainer.finishes[0].kept is not None
    assert trainer.progress[0].best_loss == 0.0


def test_exact_blocks_are_taken_for_their_margin_where_the_loss_is_larger() -> None:
    values = {**SMALL, "model": "bilinear-block", "steps": 150, "lrs": [0.1], "finish": "exact"}
    setup = Setup.of(Experiment.from_values(values, "test"))
    for accuracy_before, taken in ((1.0, True), (2.0, False)):  # none is above 1
        population = Population(setup.make_model, setup.experiment.replicas, setup.device)
        trainer = Trainer(population, *setup.words(), setup.experiment.training, setup.device)
        for _ in trainer.run():
            if trainer.stepped:
                trainer.progress[0].best_accuracy = accuracy_before
                trainer.progress[0].best_loss = 0.0  # no weights have a smaller one
        assert bool(trainer.finishes[0].refused) != taken
        assert (trainer.progress[0].best_loss > 0) == taken


@pytest.mark.parametrize(
    ("num_symbols", "size", "rank", "most"), [(2, 4, 8, 60), (25, 25, 64, 10), (50, 50, 64, 1)]
)
def test_the_fit_of_factors_is_bounded_by_its_work(
    monkeypatch: pytest.MonkeyPatch, num_symbols: int, size: int, rank: int, most: int
) -> None:
    """Factors of a rank that barely suffices took minutes for each replica."""
    asked = []

    def unsatisfied(residual: Any, point: Any, *args: Any, max_nfev: int, **options: Any) -> Any:
        asked.append(max_nfev)
        return SimpleNamespace(x=point, status=0, fun=np.ones(1))

    monkeypatch.setattr(least_squares, "least_squares", unsatisfied)
    near = FactoredOperators(
        *(
            torch.ones(shape, dtype=torch.float64)
            for shape in ((size, rank), (num_symbols, rank), (size, rank))
        )
    )
    least_squares.factored(torch.ones(num_symbols, size, size, dtype=torch.float64), near)
    assert sum(asked) == most


def test_a_replica_that_has_not_learned_the_task_is_left_as_it_is() -> None:
    trainer = trained(lrs=[1e-4], steps=5)
    assert "too far" in trainer.finishes[0].refused
    assert trained(lrs=[1e-4], steps=5, finish="none").finishes == {}


def test_a_run_that_is_stopped_while_it_is_finished_starts_the_end_again(tmp_path: Path) -> None:
    settings = {**SMALL, "seeds": 2, "validate_every": 60}
    straight = Run.start(out=tmp_path / "straight", **settings)
    for _ in straight.train():
        pass
    stopped, calls = Run.start(out=tmp_path / "stopped", **settings), []

    def stop() -> bool:
        calls.append(1)
        return len(calls) == 81  # after the first replica of the end

    for _ in stopped.train(stop):
        pass
    assert not stopped.finished
    resumed = Run.resume(tmp_path / "stopped")
    for _ in resumed.train():
        pass
    assert resumed.summary.replicas == straight.summary.replicas
    assert straight.summary.replicas[0].finish is not None
    for name, value in straight.folder.read(files.WEIGHTS).items():
        assert torch.equal(value, resumed.folder.read(files.WEIGHTS)[name])
    assert len(resumed.records) == len(straight.records)
