"""Widths and block sizes: what is printed is built and run, what is refused is attacked."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from statetrack import predicting
from statetrack.algebra import Algebra, MonoidBudget, analyse, transition_monoid
from statetrack.algebra.function_spaces import ChosenFunctions, completions
from statetrack.algebra.representations import commuting_dimension, num_terms
from statetrack.algebra.smallest_spaces import ChosenSpace
from statetrack.algebra.width_bounds import width_bounds
from statetrack.constructions import gains_of, spanning_terms
from statetrack.evaluation import evaluate
from statetrack.models import MODELS
from statetrack.predicting import predict
from statetrack.settings import build
from statetrack.sources import Automaton
from statetrack.spec import load_task
from tests.claims.cells import algebra_of

EIGHT_VALUES = Automaton([[*range(8), state] for state in range(8)])
"""A register: eight symbols write a value, one keeps it."""

# task: hidden, whether it is the smallest, block size, whether it is
KNOWN = {
    "register of eight": (2, True, 2, True),
    "permutation-reset": (5, True, 5, True),
    "gated-parity": (2, True, 2, True),
    "abab-star": (3, True, 2, True),
    "turnstile": (2, True, 2, True),
    "tomita-2": (3, False, 2, True),
    "flip-flop": (4, False, 4, False),
    "five-blocks": (7, False, 5, False),
}


def automaton_of(name: str) -> Automaton:
    return EIGHT_VALUES if name == "register of eight" else load_task(name).automaton


@pytest.fixture(scope="module")
def algebras() -> dict[str, Algebra]:
    return {name: predicting.algebra_of(automaton_of(name)) for name in KNOWN}


@pytest.mark.parametrize("name", KNOWN)
def test_widths_and_blocks_of_known_machines(name: str, algebras: dict[str, Algebra]) -> None:
    hidden, narrowest, block_size, finest = KNOWN[name]
    full = predict(algebras[name], "bilinear")
    blocks = predict(algebras[name], "bilinear-block")
    assert (full.can, full.size, full.smallest) == ("yes", hidden, narrowest)
    assert (blocks.can, blocks.size, blocks.smallest) == ("yes", block_size, finest)
    if narrowest:
        assert "no less suffices while products are bounded" in full.theorem


def cycles(num_points: int, *moved: list[int]) -> list[int]:
    """A permutation of points from 1 on, as images of points from 0 on."""
    images = list(range(num_points))
    for cycle in moved:
        for point, image in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            images[point - 1] = image - 1
    return images


def test_groups_of_mathieu_take_one_dimension_less_than_they_have_points() -> None:
    turn, fours = list(range(1, 12)), ([3, 7, 11, 8], [4, 10, 5, 6])
    swaps = ([1, 12], [2, 11], [3, 6], [4, 8], [5, 9], [7, 10])
    m11 = [cycles(11, turn), cycles(11, *fours)]
    m12 = [cycles(12, turn), cycles(12, *fours), cycles(12, *swaps)]
    for generators, order in ((m11, 7_920), (m12, 95_040)):
        algebra = analyse(Automaton(np.transpose(generators)))
        assert algebra.monoid is not None and algebra.monoid.size == order
        for model in ("bilinear", "bilinear-block"):
            found = predict(algebra, model)
            assert (found.size, found.smallest) == (len(generators[0]) - 1, True)


def test_where_bounds_do_not_meet_both_are_printed() -> None:
    algebra = algebra_of("tomita-3")
    for model, least, enough in (("bilinear", 3, 4), ("bilinear-block", 2, 3)):
        found = predict(algebra, model)
        (need,) = found.needs
        assert (need.least, need.value, need.smallest) == (least, enough, False)
        assert f"less than {least} does not suffice" in found.theorem
    assert predict(algebra, "bilinear", hidden=2).answer == "no"
    assert predict(algebra, "bilinear", hidden=3).answer == "unknown"
    assert predict(algebra, "bilinear-cp", rank=2).answer == "no"


def assert_runs(choice: ChosenFunctions, automaton: Automaton, algebra: Algebra) -> None:
    """The real block model with these spaces as blocks is right on 10,000 symbols."""
    size, count = choice.cost, len(choice.parts)
    blocks = np.zeros((automaton.num_symbols, count, size, size))
    first = np.zeros((count, size))
    rows = np.zeros((automaton.num_labels, count, size))
    begin = 0
    for place, part in enumerate(choice.parts):
        width = part.dimension
        blocks[:, place, :width, :width] = part.matrices(choice.actions)
        first[place, :width] = part.points[choice.start]
        rows[:, place, :width] = choice.readout.rows[:, begin : begin + width]
        begin += width
    name = "bilinear" if count == 1 else "bilinear-block"
    options = {"hidden": size * count} | ({} if count == 1 else {"block_size": size})
    model = MODELS[name](
        build(MODELS[name].settings_class, options, name),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    )
    weights = {
        "weight": blocks[:, 0] if count == 1 else blocks,
        "first": first.ravel(),
        "readout.weight": rows.reshape(len(rows), -1),
    }
    model.load_state_dict({key: torch.as_tensor(each).float() for key, each in weights.items()})
    device = torch.device("cpu")
    (score,) = evaluate(model, automaton, [10_000], num_words=2, seed=1, device=device)
    assert (score.symbol_accuracy, score.prefix_accuracy) == (1.0, 1.0)


@pytest.mark.parametrize("name", ["register of eight", "permutation-reset", "abab-star"])
def test_the_real_models_of_the_printed_sizes_run_exactly(
    name: str, algebras: dict[str, Algebra]
) -> None:
    algebra, automaton = algebras[name], automaton_of(name)
    for choice in (algebra.narrowest, algebra.smallest_blocks):
        assert choice is not None
        assert_runs(choice, automaton, algebra)


def test_the_flip_flop_runs_on_a_machine_completed_where_no_word_is_drawn(
    algebras: dict[str, Algebra],
) -> None:
    choice = algebras["flip-flop"].narrowest
    assert choice is not None and choice.cost < 8
    assert_runs(choice, automaton_of("flip-flop"), algebras["flip-flop"])


def random_machines(number: int, most: int) -> Iterator[Algebra]:
    draw = np.random.default_rng(0)
    while number:
        states, symbols = draw.integers(2, most + 1), draw.integers(1, 4)
        delta = draw.integers(0, states, (states, symbols))
        if draw.random() < 0.4:  # resets and permutations make small widths
            delta[:, 0] = draw.permutation(states)
            delta[:, -1] = draw.integers(0, states)
        reached = {0}
        for _ in range(states):
            reached |= {int(target) for state in reached for target in delta[state]}
        if len(reached) < states:
            continue
        number -= 1
        yield analyse(Automaton(delta, draw.integers(0, 3, states)))


def assert_moves_and_reads(choice: ChosenSpace, algebra: Algebra, actions: np.ndarray) -> None:
    """A(x) h(s) = h(delta(s, x)) in every part, and all labels that are asked for are right."""
    for part in choice.parts:
        matrices = part.matrices(actions)
        moved = np.einsum("vij,sj->vsi", matrices, part.points)
        np.testing.assert_allclose(moved, part.points[actions], atol=1e-7)
    logits = choice.points @ choice.readout.rows.T
    automaton = algebra.machine.automaton
    asked = automaton.scored
    if len(logits) == automaton.num_states:
        assert (logits.argmax(axis=1) == automaton.output)[asked].all()
    assert choice.readout.margin > 0


def test_what_is_found_for_random_machines_moves_and_reads_and_is_above_the_bounds() -> None:
    narrower = finer = exact = 0
    for algebra in random_machines(40, 6):
        if algebra.is_group or len(np.unique(algebra.machine.automaton.output)) < 2:
            continue
        bounds = algebra.width_bounds
        full, blocks = algebra.narrowest, algebra.smallest_blocks
        for choice in (full, blocks):
            if choice is not None:
                assert_moves_and_reads(choice, algebra, choice.actions)
        if full is not None:
            assert bounds.width <= full.cost < (algebra.linear_dimension or 99)
            narrower += 1
        if blocks is not None:
            assert bounds.block <= blocks.cost
            finer += 1
        exact += predict(algebra, "bilinear-block").smallest
    assert narrower > 3 and finer > 5 and exact > 5


def random_groups(number: int) -> Iterator[Automaton]:
    """Groups of up to 12 elements that act on themselves, asked for labels drawn at random."""
    draw = np.random.default_rng(1)
    while number:
        points = int(draw.integers(3, 6))
        generators = np.array([draw.permutation(points) for _ in range(2)])
        monoid = transition_monoid(generators, MonoidBudget(most_elements=12))
        if monoid is None or len(monoid) < 4:
            continue
        number -= 1
        labels = draw.integers(0, draw.integers(2, 4), len(monoid))
        yield Automaton(monoid.times(generators.astype(monoid.elements.dtype)), labels)


def test_sizes_of_random_groups_with_merged_labels_are_built_and_bounded_by_another_way() -> None:
    """The bounds are worked out of the monoid's labels, with no use of the states' space."""
    merged = 0
    for automaton in random_groups(40):
        algebra = analyse(automaton)
        if algebra.num_states == 1 or algebra.space is None:
            continue
        merged += not algebra.space.labels.tell_states_apart
        bounds = width_bounds(algebra.machine, algebra.elements, algebra.order_matters)
        blocks = algebra.space.with_smallest_largest(algebra.space.dimensions)
        full = algebra.representation
        assert blocks is not None and blocks.smallest
        actions = algebra.machine.delta.T
        assert_moves_and_reads(blocks, algebra, actions)
        assert bounds.block <= blocks.cost
        if full is not None:
            assert_moves_and_reads(full, algebra, actions)
            assert bounds.width <= full.cost
            assert blocks.cost <= full.cost
    assert merged > 15


# --- terms of rank one ---

# task: terms, and for a part of its group the dimension and that of what commutes with it
RANKS = {
    "quaternion": (8, (4, 4)),
    "cyclic:n=7": (3, (2, 2)),
    "a5": (9, (3, 1)),
    "heisenberg": (27, (6, 2)),
    "product(quaternion,s3)": (12, (8, 4)),
}


@pytest.mark.parametrize("task", RANKS)
def test_terms_of_real_complex_and_quaternionic_parts_span_their_operators(task: str) -> None:
    """d^2, 3/4 d^2 and 1/2 d^2 terms, with gains for every symbol."""
    rank, (dimension, commuting) = RANKS[task]
    algebra = algebra_of(task)
    assert algebra.space is not None
    assert predict(algebra, "bilinear-cp").size == rank
    part = next(each for each in algebra.space.parts if each.dimension == dimension)
    generating = part.matrices(algebra.space.generators)
    assert commuting_dimension(generating) == commuting
    left, right = spanning_terms(generating)
    assert left.shape == right.shape == (dimension, num_terms(dimension, commuting))
    matrices = part.matrices(algebra.machine.delta.T)
    gains = gains_of(matrices, left, right)
    sums = np.einsum("vk,ik,jk->vij", gains, left, right)
    np.testing.assert_allclose(sums, matrices, atol=1e-9)


def test_terms_that_do_not_span_the_operators_are_refused() -> None:
    turns = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    with pytest.raises(ArithmeticError, match="do not span"):
        gains_of(turns, np.eye(2), np.eye(2))


def test_the_rank_of_a_permutation_reset_is_that_of_all_matrices_of_its_width() -> None:
    assert predict(load_task("permutation-reset"), "bilinear-cp").size == 25
    assert predict(load_task("parity"), "bilinear-cp").smallest


# --- attacks on what is refused ---


def best_found(automaton: Automaton, hidden: int, replicas: int, steps: int) -> float:
    """The part of words of 24 symbols that some trained linear model gets right everywhere."""
    torch.manual_seed(0)
    words = torch.randint(automaton.num_symbols, (16, 24))
    labels = torch.as_tensor(automaton.labels_of(words.numpy())).long()
    names = automaton.num_labels
    weight = torch.linalg.qr(torch.randn(replicas, automaton.num_symbols, hidden, hidden))[0]
    first, rows = torch.randn(replicas, hidden), torch.randn(replicas, names, hidden)
    tensors = [each.requires_grad_() for each in (weight.contiguous(), first, rows)]

    def logits(read: torch.Tensor) -> torch.Tensor:
        state = tensors[1][:, None].expand(-1, len(read), -1)
        found = []
        for symbols in read.T:
            state = torch.einsum("rbij,rbj->rbi", tensors[0][:, symbols], state)
            state = state / state.norm(dim=-1, keepdim=True).clamp_min(1e-9)
            found.append(torch.einsum("rci,rbi->rbc", tensors[2], state))
        return torch.stack(found, 2)

    optimiser = torch.optim.Adam(tensors, lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        scores = logits(words)
        right = scores.gather(-1, labels.expand(replicas, -1, -1)[..., None])
        gaps = right - scores + torch.nn.functional.one_hot(labels, names) * 9.0
        torch.relu(1.0 - gaps).square().mean(dim=(1, 2, 3)).sum().backward()
        optimiser.step()
    with torch.no_grad():
        right = (logits(words).argmax(-1) == labels).all(-1).float().mean(-1)
    return float(right.max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tomita-5"])
def test_optimisation_finds_models_of_the_printed_width_and_none_that_are_narrower(
    name: str,
) -> None:
    automaton = load_task(name).automaton
    found = predict(load_task(name), "bilinear")
    assert found.smallest and found.size == 3
    assert best_found(automaton, 3, replicas=24, steps=220) == 1.0
    assert best_found(automaton, 2, replicas=48, steps=220) < 1.0


def test_completions_do_as_the_machine_does_wherever_words_are_drawn() -> None:
    for name in ("flip-flop", "modular-arithmetic-left-to-right", "s3-two-tokens"):
        machine = algebra_of(name).machine
        kept = np.flatnonzero(machine.live)
        assert len(list(completions(machine))) >= 2
        for spaces in completions(machine):
            states = kept if spaces.num_states < len(machine.delta) else np.arange(len(kept) + 1)
            for symbol, targets in enumerate(machine.delta[states].T):
                drawn = machine.live[targets]
                assert (states[spaces.actions[symbol]] == targets)[drawn].all()
