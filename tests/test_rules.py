"""The rules of what classes track: each *cannot* is attacked, each construction is run.

T time, V symbols, S states, n the power of a word.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from statetrack.algebra import Algebra, analyse, monoid
from statetrack.models import MODELS, SequenceModel, make_model
from statetrack.predicting import predict
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, reachable
from statetrack.spec import TASKS, load_task
from tests.claims.cells import algebra_of

SHIPPED = [name for name in TASKS if load_task(name).has_automaton]


@pytest.fixture(scope="module")
def algebras() -> dict[str, Algebra]:
    """The algebra of every shipped task that has an automaton."""
    return {name: algebra_of(name) for name in SHIPPED}


def told(model: str, **options: Any) -> Settings:
    return build(MODELS[model].settings_class, options, model)


def random_machines(number: int, seed: int = 0) -> Iterator[Automaton]:
    """Automata with a few states, every state with a label of its own."""
    random = np.random.default_rng(seed)
    while number:
        states, symbols = int(random.integers(2, 6)), int(random.integers(1, 4))
        delta = random.integers(0, states, (states, symbols))
        if reachable(delta, 0).all():
            number -= 1
            yield Automaton(delta)


def words(symbols: int, most: int) -> Iterator[tuple[int, ...]]:
    for length in range(1, most + 1):
        yield from itertools.product(range(symbols), repeat=length)


def some_word_cycles(automaton: Automaton, most: int = 6) -> bool:
    """Whether the powers of some short word go through several states for ever."""
    size = len(automaton.delta)
    for word in words(automaton.num_symbols, most):
        reached = automaton.start
        seen = []
        for _ in range(3 * size):
            for symbol in word:
                reached = automaton.delta[reached, symbol]
            seen.append(int(reached))
        if len(set(seen[size:])) > 1:
            return True
    return False


# --- answers along the powers of a word ---


def with_large_weights(model: str, seed: int, symbols: int = 3, **options: Any) -> SequenceModel:
    torch.manual_seed(seed)
    made = MODELS[model](told(model, **options), num_symbols=symbols, num_labels=4).double().eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(2.0 * torch.randn_like(weight))
    return made


def along_powers(model: SequenceModel, seed: int, powers: int) -> torch.Tensor:
    """Logits after u w^n, phase by phase: `[powers, phases, C]`, for random u and w."""
    random = np.random.default_rng(seed)
    first, period = random.integers(0, 3, 2), random.integers(1, 4)
    word = random.integers(0, 3, period)
    symbols = torch.as_tensor(np.concatenate([first, np.tile(word, powers)]))[None]
    with torch.no_grad():
        logits = model(symbols)[0, len(first) :]
    return logits.unflatten(0, (powers, int(period)))


IN_ORDER: dict[str, dict[str, Any]] = {
    "mamba": {"width": 8, "layers": 2, "state": 4},
    "mamba2": {"width": 8, "layers": 2, "state": 4, "heads": 2},
    "gla": {"width": 8, "layers": 2, "heads": 2, "mlp": 1.0},
    "mlstm": {"width": 8, "layers": 2, "heads": 2},
    "rwkv4": {"width": 8, "layers": 2},
    "rwkv6": {"width": 8, "layers": 2, "heads": 2},
    "linear-attention": {"width": 8, "layers": 2, "heads": 2},
    "hgrn": {"width": 8, "layers": 2, "phase": "none"},
    "minmax": {"width": 8, "layers": 2, "state": 6},
}


def changes(answers: torch.Tensor) -> int:
    """How often an answer is another than the one before, of the phase where that is most often."""
    return int((answers[1:] != answers[:-1]).sum(0).max())


@pytest.mark.parametrize("model", IN_ORDER)
def test_answers_of_layers_that_keep_the_order_of_states_settle_along_powers(model: str) -> None:
    for seed in range(4):
        made = with_large_weights(model, seed, **IN_ORDER[model])
        answers = along_powers(made, seed, 160).argmax(-1)
        assert changes(answers[60:]) <= 2, (seed, answers[60:].T)


@pytest.mark.parametrize("layers", [1, 2])
def test_a_layer_of_real_gains_doubles_the_period_of_answers_at_most(layers: int) -> None:
    alternating = 0
    for seed in range(8):
        options = {"width": 8, "layers": layers, "state": 4, "eigenvalues": "signed"}
        answers = along_powers(with_large_weights("mamba", seed, **options), seed, 400).argmax(-1)
        alternating += changes(answers[240:]) > 10
        for begin in range(2**layers):
            assert changes(answers[240 + begin :: 2**layers]) <= 2, (seed, begin)
    assert alternating, "some answers alternate"


CONTRACTING: dict[str, dict[str, Any]] = {
    "deltanet": {"width": 8, "layers": 2, "heads": 2, "key_dim": 3, "value_dim": 2},
    "gated-deltanet": {"width": 8, "layers": 2, "heads": 2, "key_dim": 3, "value_dim": 2},
    "deltaproduct": {"width": 8, "layers": 2, "heads": 2, "key_dim": 3, "beta": "unit"},
    "gated-deltaproduct": {"width": 8, "layers": 2, "heads": 2, "key_dim": 3, "beta": "unit"},
}


@pytest.mark.parametrize("model", CONTRACTING)
def test_logits_of_delta_rules_with_beta_up_to_1_converge_along_powers(model: str) -> None:
    for seed in range(4):
        made = with_large_weights(model, seed, **CONTRACTING[model])
        logits = along_powers(made, seed, 400)
        moved = (logits[1:] - logits[:-1]).abs().amax((1, 2))
        assert moved[-1] < 1e-3 * (1 + moved.max()), seed


def test_reflections_do_not_converge_where_projections_do() -> None:
    """The attack above is one that a model which can would not withstand."""
    options = CONTRACTING["deltanet"] | {"beta": "double"}
    made = with_large_weights("deltanet", 0, **options)
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if name.endswith("betas.weight"):
                weight.mul_(1e3)
    moving = [along_powers(made, seed, 400)[-2:].diff(dim=0).abs().max() for seed in range(12)]
    assert max(moving) > 1e-3


@pytest.mark.parametrize("model", ["rwkv7", "gated-deltanet-2"])
def test_powers_of_one_symbol_settle_in_a_diagonal_matrix_minus_one_of_rank_one(
    model: str,
) -> None:
    for seed in range(6):
        made = with_large_weights(model, seed, width=8, heads=2)
        symbols = torch.full((1, 400), seed % 3)
        with torch.no_grad():
            answers = made(symbols)[0].argmax(-1)
        assert changes(answers[100:, None]) <= 2, seed


@pytest.mark.parametrize("most", [1.0, 2.0])
def test_erase_gates_for_each_coordinate_leave_real_eigenvalues_and_powers_that_settle(
    most: float,
) -> None:
    random = np.random.default_rng(0)
    moved = []
    for _ in range(300):
        key = random.normal(size=5)
        alpha, erase = random.choice([0.0, 0.3, 1.0, 1.0], (2, 5)) * random.choice([1, 0.9], (2, 5))
        key *= random.choice([1.0, 0.5]) / np.linalg.norm(key)
        matrix = np.diag(alpha) - np.outer(key, most * erase * alpha * key)
        values = np.linalg.eigvals(matrix)
        assert np.abs(values.imag).max() < 1e-6
        assert values.real.min() > min(0, 1 - most) - 1e-6 and values.real.max() < 1 + 1e-6
        power = np.linalg.matrix_power(matrix, 2**34)
        assert np.abs(power @ matrix @ matrix - power).max() < 1e-3
        moved.append(np.abs(power @ matrix - power).max())
    assert max(moved) < 1e-3 or most == 2


def test_erase_gates_that_differ_turn_products_of_two_positions() -> None:
    """So a word of several symbols may have any eigenvalues, and the rule speaks of one alone."""
    random = np.random.default_rng(0)
    turned = []
    for _ in range(3000):
        keys = random.normal(size=(2, 4))
        keys /= np.linalg.norm(keys, axis=1, keepdims=True)
        gates = random.uniform(size=(2, 4))
        one, two = (np.eye(4) - np.outer(k, b * k) for k, b in zip(keys, gates, strict=True))
        turned.append(np.abs(np.linalg.eigvals(one @ two).imag).max())
    assert max(turned) > 1e-3


@pytest.mark.parametrize("model", ["lru", "s4d"])
def test_one_time_invariant_layer_does_not_count_modulo_a_number(model: str) -> None:
    """Gains of modulus 1; a swap in every 24 symbols, the others act as the identity."""
    for seed in range(4):
        made = with_large_weights(model, seed, symbols=2, width=6, state=6)
        turns = torch.as_tensor(np.random.default_rng(seed).integers(0, 24, 6) * 2 * np.pi / 24)
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if name.endswith("log_damping"):
                    weight.fill_(-40.0)
                if name.endswith("log_phases"):
                    weight.copy_(turns.log())
                if name.endswith("log_steps"):
                    weight.zero_()
                if name.endswith("frequencies"):
                    weight.copy_(turns.expand_as(weight))
        block = torch.zeros(24, dtype=torch.int64)
        block[0] = 1
        with torch.no_grad():
            answers = made(block.repeat(60)[None])[0, 23::24].argmax(-1)
        assert changes(answers[20:, None]) <= 2, seed


def test_one_layer_of_hgrn_forgets_that_a_word_took_the_place_of_another_of_its_length() -> None:
    for seed in range(4):
        made = with_large_weights("hgrn", seed, symbols=2, width=6, layers=1)
        often = [0, 1] * 1500
        with torch.no_grad():
            one, other = made(torch.tensor([often, [0, 1] * 20 + [1, 1] + often[42:]]))
        apart = (one - other).abs().amax(-1)
        assert apart[-1] < 1e-2 * apart.max(), seed
    parity = algebra_of("parity")
    assert predict(parity, told("hgrn", layers=1)).can == "no"
    assert predict(parity, "hgrn").can == "unknown"


def test_without_positions_a_repeated_symbol_is_as_one() -> None:
    """So not every R-trivial monoid is within reach of attention that sees its own position."""
    made = with_large_weights("transformer", 0, width=8, heads=2, positions="none")
    with torch.no_grad():
        logits = made(torch.ones(1, 9, dtype=torch.int64))[0]
    assert torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-8)
    three_ones = Automaton([[0, 1], [1, 2], [2, 3], [3, 3]], [0, 0, 0, 1])
    found = predict(analyse(three_ones), told("transformer", positions="none"))
    assert (found.can, found.witness.kind) == ("no", "repeat")


# --- answers against the words of random machines ---


NO_GROUPS = (
    "mamba",
    "gla",
    "mamba2",
    "rwkv6",
    "mlstm",
    "minmax",
    "deltanet",
    "gated-deltanet",
    told("deltaproduct", beta="unit"),
    told("mamba3", turned=0.0),
    "mamba3",
)


def test_what_tracks_no_group_is_refused_exactly_where_a_words_powers_cycle() -> None:
    refused = 0
    for automaton in random_machines(80):
        algebra = analyse(automaton)
        machine = algebra.machine.automaton
        cycles = some_word_cycles(machine, 4)
        answers = {predict(algebra, model).can for model in NO_GROUPS}
        assert len(answers) == 1
        assert answers == {"no"} or not cycles
        refused += cycles
        assert {predict(algebra, "rwkv4").can} == answers
        assert answers == {"yes"} or predict(algebra, "linear-attention").can == "no"
    assert 10 < refused < 75


def test_stronger_classes_track_whatever_weaker_ones_do(algebras: dict[str, Algebra]) -> None:
    chains = [
        (told("hgrn", phase="none"), "hgrn"),
        ("mamba", told("mamba", eigenvalues="signed"), told("mamba3", slowest=0), "pd-ssm"),
        ("deltanet", told("deltanet", beta="double"), "deltaproduct", "slice"),
        ("rwkv4", "mamba"),
        ("mamba", "rwkv4"),
        (told("transformer", positions="none"), "mamba"),
        ("linear-attention", "mamba"),
        ("rwkv7", "full-matrix"),
        ("diagonal-positive", "diagonal-real", "diagonal-complex", "full-matrix"),
        (told("pd-ssm", dictionary=1), "pd-ssm"),
    ]
    machines = [analyse(automaton) for automaton in random_machines(40, seed=1)]
    once: dict[str, Any] = {repr(model): model for chain in chains for model in chain}
    for algebra in (*algebras.values(), *machines):
        can = {name: predict(algebra, model).can for name, model in once.items()}
        for chain in chains:
            found = [can[repr(model)] for model in chain]
            for weaker, stronger in itertools.pairwise(found):
                assert weaker != "yes" or stronger == "yes", (chain, found)
                assert stronger != "no" or weaker != "yes", (chain, found)


def test_one_fixed_operator_is_refused_exactly_where_words_of_one_length_are_counted(
    algebras: dict[str, Algebra],
) -> None:
    for name, algebra in algebras.items():
        if algebra.num_states > 12:
            continue
        delta, start = algebra.machine.delta, algebra.machine.automaton.start
        counted = False
        for length in range(1, 5):
            maps = set()
            for word in itertools.product(range(delta.shape[1]), repeat=length):
                reached = np.arange(len(delta))
                for symbol in word:
                    reached = delta[reached, symbol]
                maps.add(tuple(reached))
            for acts in maps:
                orbit = np.array(acts)
                powers = [orbit := orbit[np.array(acts)] for _ in range(24)]
                cycle = {tuple(each) for each in powers[12:]}
                kept = [e for e in maps if all(e[state] == state for state in powers[-1])]
                counted |= len(cycle) > 1 and bool(kept) and algebra.machine.complete
            if len(maps) > 500:
                break
        assert start >= 0
        if counted:
            assert predict(algebra, "lru").can == "no", name
            assert predict(algebra, told("lru", layers=2)).can != "yes"
    assert predict(algebras["parity"], "s4d").can == "no"
    assert predict(algebras["aa-star"], "s4d").can == "unknown", "a clock knows the length"


def order_seen_by_words(automaton: Automaton, most: int) -> bool:
    """Whether words of one length, one of which is read often between, show their order."""
    delta = automaton.delta
    for length in range(1, most + 1):
        maps = set()
        for word in itertools.product(range(delta.shape[1]), repeat=length):
            reached = np.arange(len(delta))
            for symbol in word:
                reached = delta[reached, symbol]
            maps.add(tuple(reached.tolist()))
        every = [np.array(each) for each in maps]
        for kept in (each for each in every if (each[each] == each).all()):
            local = {tuple(kept[each[kept]].tolist()) for each in every}
            for first, second in itertools.combinations(map(np.array, local), 2):
                if (second[first] != first[second]).any():
                    return True
    return False


def test_one_fixed_operator_is_refused_where_far_words_of_one_length_show_their_order() -> None:
    found = 0
    for automaton in random_machines(50, seed=3):
        algebra = analyse(automaton)
        seen = order_seen_by_words(algebra.machine.automaton, 4)
        found += seen
        if seen:
            assert algebra.local_order_matters
            assert predict(algebra, "lru").can == predict(algebra, "s4d").can == "no"
    assert 5 < found < 48
    for task, expected in (("register", "no"), ("ends-with-ab", "unknown"), ("aa-star", "unknown")):
        assert predict(algebra_of(task), "lru").can == expected, task


def test_the_search_for_local_orders_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    parity = load_task("parity").automaton
    assert analyse(parity).local_order_matters is False
    monkeypatch.setattr(monoid, "MOST_ENTRIES", 0)
    assert analyse(parity).local_order_matters is None
    assert analyse(load_task("register").automaton).local_order_matters is None


@pytest.mark.parametrize("model", ["lru", "s4d"])
def test_one_time_invariant_layer_does_not_see_which_of_two_far_words_was_first(model: str) -> None:
    """The two orders give the same logits, up to what the phases at their positions differ."""
    for seed in range(3):
        made = with_large_weights(model, seed, width=6, state=6)
        turns = torch.as_tensor(np.random.default_rng(seed).integers(0, 12, 6) * 2 * np.pi / 12)
        with torch.no_grad():
            for name, weight in made.named_parameters():
                if name.endswith("log_phases"):
                    weight.copy_(turns.log())
                    kept = torch.arange(6) % 2 == 0
                    damping = dict(made.named_parameters())[name.replace("phases", "damping")]
                    damping[kept] = -40.0
                if name.endswith("log_steps"):
                    weight.zero_()
                if name.endswith("frequencies"):
                    weight.copy_(turns.expand_as(weight))
                    damping = dict(made.named_parameters())[
                        name.replace("frequencies", "log_damping")
                    ]
                    damping[:, ::2] = -40.0
            words = torch.zeros(2, 1200, dtype=torch.int64)
            words[0, [240, 480]] = torch.tensor([1, 2])
            words[1, [240, 480]] = torch.tensor([2, 1])
            one, other = made(words)[:, -1]
        assert torch.allclose(one, other, rtol=1e-6, atol=1e-6), (seed, one, other)


@pytest.mark.parametrize("model", ["aussm", "mamba3", "mamba"])
def test_two_words_of_one_length_have_the_same_gains_and_differ_in_a_group(model: str) -> None:
    """With symbols around them that a convolution spans: x y (y x)^(N - 1) and (y x)^N."""
    made = with_large_weights(model, 1, width=6, state=4).mixers[0]
    torch.manual_seed(0)
    embedded = torch.randn(3, 6, dtype=torch.float64)
    x, y = [2] * 4 + [0] + [2] * 4, [2] * 4 + [1] + [2] * 4

    def gains(word: list[int]) -> torch.Tensor:
        inputs = embedded[[2] * 4 + word][None]
        start = made.initial_state(1)
        part = made.recurrent_part(start)
        moved = made.with_recurrent_part(start, part + torch.ones_like(part))
        ends = [made.scan(inputs, state)[1] for state in (moved, start)]
        return made.recurrent_part(ends[0]) - made.recurrent_part(ends[1])

    with torch.no_grad():
        one, other = gains(x + y + y + x), gains(y + x + y + x)
    assert torch.allclose(one, other, rtol=1e-6, atol=1e-12)
    for task, least, enough in (("s3", 2, 2), ("s4", 2, 3), ("cyclic:n=6", 1, 1)):
        algebra = algebra_of(task)
        need = predict(algebra, told("mamba3", slowest=0)).needs[0]
        assert (need.setting, need.least, need.value) == ("layers", least, enough), task


def test_one_layer_of_linear_attention_sees_counts_and_the_last_symbol() -> None:
    made = with_large_weights("linear-attention", 0, width=8, heads=2)
    random = np.random.default_rng(0)
    word = random.integers(0, 3, 20)
    mixed = np.append(random.permutation(word[:-1]), word[-1])
    with torch.no_grad():
        one, other = made(torch.as_tensor(np.stack([word, mixed])))[:, -1]
    assert torch.allclose(one, other, rtol=1e-9, atol=1e-9)
    for task, expected in (("register", "no"), ("tomita-1", "yes"), ("ends-with-ab", "no")):
        algebra = algebra_of(task)
        assert predict(algebra, "linear-attention").can == expected, task
    assert predict(load_task("register"), told("linear-attention", layers=2)).can == "unknown"


def test_an_average_that_decays_and_skips_positions_is_a_register() -> None:
    """RWKV-4: weight 1 where a value is written, 0 elsewhere, and a gain near 0."""
    random = np.random.default_rng(0)
    gain, values = 1e-3, np.array([1.0, -1.0])
    above = below = last = 0.0
    for symbol in random.integers(0, 3, 400):
        write = float(symbol < 2)
        value = values[symbol] if write else 0.0
        above, below = gain * above + write * value, gain * below + write
        above, below = (above / below, 1.0) if below else (0.0, 0.0)  # only their ratio counts
        last = value if write else last
        assert above == 0.0 or abs(above - last) < 0.01


# --- constructions ---


def ordered_machine(random: np.random.Generator, repeating: bool = False) -> Automaton:
    """States that are never left for one before; symbols do nothing twice, or are `repeating`."""
    states, symbols = int(random.integers(2, 7)), int(random.integers(1, 5))
    delta = np.tile(np.arange(states)[:, None], symbols)
    for state in reversed(range(states - 1)):
        for symbol in range(symbols):
            later = range(state + 1, states)
            stays = [t for t in later if repeating or delta[t, symbol] == t]
            if random.random() < 0.6 and stays:
                delta[state, symbol] = random.choice(stays)
    kept = np.flatnonzero(reachable(delta, 0))
    return Automaton(np.searchsorted(kept, delta[kept]))


def answering(
    ordered: Automaton, random: np.random.Generator, repeating: bool = False
) -> Automaton:
    """It has a state before the last symbol, that symbol, and a random label of both.

    Where symbols are not `repeating`, the label after one does not tell whether it was read twice.
    """
    num_states, num_symbols = ordered.delta.shape
    pairs = num_symbols * np.arange(num_states)[:, None] + np.arange(num_symbols)
    label = random.integers(2, size=(num_states, num_symbols))
    if not repeating:
        label = label[ordered.delta, np.arange(num_symbols)]
    delta = np.vstack([pairs[ordered.delta.ravel()], pairs[[ordered.start]]])
    used = np.flatnonzero(reachable(delta, len(delta) - 1))
    return Automaton(
        np.searchsorted(used, delta[used]),
        np.append(label.ravel(), 0)[used],
        start=len(used) - 1,
        labels=["0", "1"],
    )


def by_occurrences(automaton: Automaton, word: np.ndarray, bos: bool = False) -> list[int]:
    """The state after every symbol, from averages; with `bos` that before every symbol."""
    delta = automaton.delta

    def once(holds: np.ndarray) -> np.ndarray:
        number = np.cumsum(holds)
        if not bos:
            return number / np.maximum(number, 1) > 0.5  # an average of ones, or 0
        return number / (number + 1) > np.where(holds, 0.6, 0.3)  # and the token's 0

    state = np.full(len(word), -1)

    def walk(at: int, done: np.ndarray) -> None:
        state[done] = at
        leaving = [x for x in range(automaton.num_symbols) if delta[at, x] != at]
        seen = {symbol: once((word == symbol) & done) for symbol in leaving}
        for symbol in leaving:
            first = (word == symbol) & done
            for other in leaving:
                if other != symbol:
                    first &= ~seen[other]
            walk(int(delta[at, symbol]), once(first))

    walk(automaton.start, np.ones(len(word), bool))
    return state.tolist()


def test_what_occurred_before_what_says_the_state_of_a_partially_ordered_machine() -> None:
    random = np.random.default_rng(0)
    for _ in range(100):
        automaton = ordered_machine(random)
        word = random.integers(0, automaton.num_symbols, 25)
        expected = automaton.states_after(word).tolist()
        assert by_occurrences(automaton, word) == expected
        algebra = analyse(automaton)
        for model in ("linear-attention", told("transformer", positions="none")):
            assert predict(algebra, model).can == "yes"


@pytest.mark.parametrize("bos", [False, True])
def test_the_last_symbol_is_seen_and_no_state_has_to_be_told_for_it(bos: bool) -> None:
    random = np.random.default_rng(1)
    attention, back = told("transformer", positions="none", bos=bos), 0
    for _ in range(60):
        ordered = ordered_machine(random, repeating=bos)
        word = random.integers(0, ordered.num_symbols, 25)
        after = ordered.states_after(word).tolist()
        expected = [ordered.start, *after[:-1]] if bos else after
        assert by_occurrences(ordered, word, bos) == expected
        algebra = analyse(answering(ordered, random, repeating=bos))
        assert predict(algebra, attention).can == "yes"
        back += not algebra.machine.partially_ordered
    assert back > 10


def test_without_positions_what_comes_back_is_refused_where_it_is_seen_after_a_symbol() -> None:
    answers = {
        "turnstile": ("yes", "yes"),  # the last symbol is the answer
        "even-pairs": ("yes", "yes"),  # the last symbol and the first, before which is no other
        "ab-d-bc": ("no", "yes"),  # where a a is not as a
        "register": ("no", "no"),
        "flip-flop": ("no", "no"),
        "tomita-2": ("no", "no"),
    }
    for task, expected in answers.items():
        attention = [told("transformer", positions="none", bos=bos) for bos in (False, True)]
        found = [predict(load_task(task), each) for each in attention]
        assert tuple(each.can for each in found) == expected, task
        assert all(each.witness is None or each.witness.suffixes != ((),) for each in found[1:])


def test_a_transformer_answers_by_the_last_symbol_alone() -> None:
    task = load_task("turnstile")
    made = make_model("transformer", task, positions="none", layers=1, width=8, heads=1).double()
    with torch.no_grad():
        for weight in made.parameters():
            weight.zero_()
        made.norm.weight.fill_(1)
        made.embedding.weight[:, :2] = torch.eye(2)
        label = task.automaton.output[task.automaton.delta[0]]
        made.readout.weight[label, [0, 1]] = 1
        word = np.random.default_rng(0).integers(0, 2, 500)
        answers = made(torch.from_numpy(word)[None])[0].argmax(-1)
    assert (answers.numpy() == task.automaton.output[task.automaton.states_after(word)]).all()


def test_two_layers_of_reflections_add_modulo_m() -> None:
    random = np.random.default_rng(0)
    for modulus in (3, 5, 12):
        word = random.integers(0, modulus, 300)
        state = np.eye(2)
        sign = 1.0  # the first layer: one reflection at every step
        for position, symbol in enumerate(word):
            angle = sign * -symbol * np.pi / modulus
            axis = np.array([-np.sin(angle), np.cos(angle)])
            state = (np.eye(2) - 2 * np.outer(axis, axis)) @ state
            total = int(word[: position + 1].sum()) % modulus
            # the query undoes the reflection that waits for a second one
            pending = np.eye(2) if sign < 0 else np.eye(2) - 2 * np.outer(axis, axis)
            before = total if sign < 0 else total - int(symbol)
            turned = pending @ state
            expected = 2 * np.pi * before / modulus
            assert np.allclose(turned[:, 0], [np.cos(expected), np.sin(expected)], atol=1e-9)
            sign = -sign


def swaps_of(permutation: np.ndarray) -> list[tuple[int, int]]:
    """Swaps whose product, the first one first, is the permutation of places."""
    left, found = permutation.copy(), []
    for place in range(len(left)):
        if left[place] != place:
            other = int(np.flatnonzero(left == place)[0])
            left[[place, other]] = left[[other, place]]
            found.append((place, other))
    return found[::-1]


def test_four_layers_of_reflections_follow_any_group_of_permutations() -> None:
    """One swap at each step, of the last whole block; the rest is known from the last symbols."""
    random = np.random.default_rng(0)
    for points in (3, 4, 5):
        block = points - 1
        word = np.array([random.permutation(points) for _ in range(20 * block)])

        def matrix(permutation: np.ndarray) -> np.ndarray:
            return np.eye(len(permutation))[:, permutation].T  # row vectors move by it

        total, state = np.eye(points), np.eye(points)
        for time, permutation in enumerate(word):
            total = matrix(permutation) @ total
            begin = time - time % block
            last = np.eye(points)
            for each in word[max(begin - block, 0) : begin]:
                last = matrix(each) @ last
            todo = swaps_of(last.argmax(1))
            assert len(todo) <= block
            reflections = []
            for one, other in todo:
                key = np.zeros(points)
                key[one], key[other] = 0.5**0.5, -(0.5**0.5)
                reflections.append(np.eye(points) - 2 * np.outer(key, key))
            reflections += [np.eye(points)] * (block - len(reflections))
            state = reflections[time % block] @ state
            turn = np.eye(points)
            for reflection in reflections[time % block + 1 :]:
                turn = reflection @ turn
            for each in word[begin : time + 1]:
                turn = matrix(each) @ turn
            assert np.allclose(turn @ state, total)


def test_directions_from_one_point_tell_the_points_of_a_sphere_apart() -> None:
    """A query reads X - A X, normalised by its length; it is 0 for the identity alone."""
    space = algebra_of("s4").space
    assert space is not None
    choice = space.with_smallest_largest(space.codimensions)
    assert choice is not None
    points = np.column_stack([part.points for part in choice.parts])
    chords = points - points[0]
    lengths = np.linalg.norm(chords, axis=1)
    assert lengths[0] == 0 and (lengths[1:] > 1e-6).all()
    directions = chords[1:] / lengths[1:, None]
    closest = directions @ directions.T - 2 * np.eye(len(directions))
    assert closest.max() < 1 - 1e-6


@pytest.mark.parametrize(("factors", "heads"), [(1, 5), (2, 3), (3, 2), (5, 1)])
def test_a_head_holds_as_many_parities_as_it_has_factors(factors: int, heads: int) -> None:
    algebra = analyse(load_task("product(parity,parity,parity,parity,parity)").automaton)
    found = predict(algebra, told("deltaproduct", householders=factors, heads=2))
    assert (found.can, found.size_of, found.size) == ("yes", "householders", 1)
    needed = {need.setting: need.value for need in found.needs}
    assert needed.get("heads", 1) == heads
    assert found.answer == ("yes" if heads <= 2 else "unknown")
    narrow = predict(algebra, told("deltaproduct", householders=factors, heads=2, key_dim=1))
    assert {need.setting: need.value for need in narrow.needs}["heads"] == 5


def test_delta_rules_say_how_many_layers_take_the_place_of_more_factors() -> None:
    one = told("deltanet", beta="double")
    for task, layers, least in (
        ("cyclic:n=5", 2, 2),
        ("dihedral:n=5", 2, 2),
        ("s3", 2, 2),
        ("s4", 4, 2),
        ("a5", 4, 2),
    ):
        found = predict(algebra_of(task), one)
        need = found.needs[0]
        assert (found.can, found.answer) == ("yes", "no"), task
        assert (need.setting, need.value, need.least) == ("layers", layers, least), task
    for task in ("parity", "s5-swaps"):
        assert predict(algebra_of(task), one).answer == "yes", task
    register = predict(algebra_of("register"), "deltanet")
    assert (register.can, register.size_of, register.size) == ("yes", "layers", 1)


def test_more_layers_take_the_place_of_more_reflections() -> None:
    found = predict(algebra_of("s5"), "deltaproduct")
    assert (found.size_of, found.size, found.answer) == ("householders", 4, "unknown")
    deeper = predict(algebra_of("s5"), told("deltaproduct", layers=4))
    assert (deeper.can, deeper.size_of, deeper.size) == ("yes", "layers", 4)


def affine_weights(automaton: Automaton, hidden: int) -> dict[str, torch.Tensor]:
    """States as corners of a simplex: the start at 0, the others at unit vectors."""
    delta, start = automaton.delta, automaton.start
    states, symbols = delta.shape
    order = [start, *(state for state in range(states) if state != start)]
    corners = np.zeros((states, hidden))
    for place, state in enumerate(order[1:]):
        corners[state, place] = 1
    width = symbols - 1 + hidden
    matrices = np.zeros((symbols, hidden, hidden))
    offsets = corners[delta[start]]  # [V, H]
    for place, state in enumerate(order[1:]):
        matrices[:, :, place] = corners[delta[state]] - offsets
    embedding = np.zeros((symbols, width))
    embedding[1:, : symbols - 1] = np.eye(symbols - 1)

    def linear(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        flat = values.reshape(symbols, -1)
        weight = np.zeros((flat.shape[1], width))
        weight[:, : symbols - 1] = (flat[1:] - flat[0]).T
        return weight, flat[0]

    by_matrix, by_offset = linear(matrices), linear(offsets)
    output, readout = np.zeros((width, hidden)), np.zeros((automaton.num_labels, width))
    output[symbols - 1 :] = np.eye(hidden)
    bias = np.zeros(automaton.num_labels)
    for state in range(states):
        readout[automaton.output[state], symbols - 1 :] += corners[state]
    bias[automaton.output[start]] = 0.5
    mixer = "blocks.0.mixer."
    parts = {
        "embedding.weight": embedding,
        mixer + "matrices.map.weight": by_matrix[0],
        mixer + "matrices.map.bias": by_matrix[1],
        mixer + "gate.weight": np.zeros((hidden, width)),
        mixer + "gate.bias": np.full(hidden, 60.0),
        mixer + "bias.weight": by_offset[0],
        mixer + "bias.bias": by_offset[1],
        mixer + "output.weight": output,
        "readout.weight": readout,
        "readout.bias": bias,
    }
    return {name: torch.as_tensor(part).float() for name, part in parts.items()}


@pytest.mark.parametrize("model", ["token-gated-rnn", "state-gated-rnn"])
def test_one_dimension_fewer_than_states_does_any_automaton(model: str) -> None:
    random = np.random.default_rng(0)
    options = {} if model == "token-gated-rnn" else {"activation": "identity", "norm": "none"}
    for automaton in random_machines(12, seed=2):
        algebra = analyse(automaton)
        found = predict(algebra, told(model, **options))
        hidden = len(automaton.delta) - 1
        assert found.can == "yes" and found.size is not None
        assert found.size <= max(algebra.num_states - 1, 1)
        weights = affine_weights(automaton, hidden)
        width = weights["embedding.weight"].shape[1]
        settings = told(model, hidden=hidden, width=width, **options)
        made = MODELS[model](
            settings, num_symbols=automaton.num_symbols, num_labels=automaton.num_labels
        )
        if model == "state-gated-rnn":
            weights["blocks.0.mixer.gate_of_state.weight"] = torch.zeros(hidden, hidden)
        made.load_state_dict(weights)
        word = random.integers(0, automaton.num_symbols, (2, 300))
        with torch.no_grad():
            answers = made(torch.as_tensor(word)).argmax(-1)
        assert np.array_equal(answers.numpy(), automaton.labels_of(word))


def test_the_width_that_an_affine_model_takes_is_named_where_it_is_too_narrow() -> None:
    algebra = algebra_of("random-permutations")
    found = predict(algebra, told("token-gated-rnn", width=4))
    assert (found.answer, [need.setting for need in found.needs]) == (
        "unknown",
        ["hidden", "width"],
    )
    assert predict(algebra, "token-gated-rnn").answer == "yes"


# --- other settings ---


def test_one_matrix_in_the_dictionary_leaves_complex_gains(algebras: dict[str, Algebra]) -> None:
    alone = told("pd-ssm", dictionary=1)
    for task in ("s3", "a5", "parity", "flip-flop"):
        found = predict(algebras[task], alone)
        gains = predict(algebras[task], told("mamba3", slowest=0))
        assert found.can == gains.can, task
    assert predict(algebras["s5"], told("pd-ssm", dictionary=8, state=120)).answer == "unknown"
    enough = told("pd-ssm", dictionary=120, state=120)
    assert predict(algebras["s5"], enough).answer == "yes"


def test_the_units_of_an_slstm_are_those_of_one_head(algebras: dict[str, Algebra]) -> None:
    parity = algebras["parity"]
    found = predict(parity, told("slstm", heads=2, width=16))
    assert (found.size_of, found.size, found.answer) == ("width", 2 * (2 * 2 + 1 + 3), "yes")
    assert predict(parity, told("slstm", heads=4, width=16)).answer == "unknown"
    assert predict(parity, told("xlstm", layers=1)).can == "no", "its first block is no scalar LSTM"


def test_layers_of_signs_need_one_for_each_factor_of_two_in_an_order() -> None:
    signed = told("mamba", eigenvalues="signed")
    for task, layers in (("parity", 1), ("cyclic:n=4", 2), ("cyclic:n=8", 3), ("quaternion", 2)):
        found = predict(algebra_of(task), signed)
        assert (found.size_of, found.size, found.smallest) == ("layers", layers, True), task


def test_learned_positions_end() -> None:
    found = predict(load_task("parity"), told("transformer", positions="learned"))
    assert found.can == "no" and "512" in found.theorem


def test_a_state_of_mamba3_lasts_as_long_as_its_slowest_rate_says(
    algebras: dict[str, Algebra],
) -> None:
    decaying, kept = "mamba3", told("mamba3", slowest=0)
    found = predict(algebras["parity"], decaying)
    assert found.can == "no" and "6,931" in found.theorem
    assert predict(algebras["parity"], kept).can == "yes"
    assert predict(algebras["flip-flop"], decaying).can == "yes"


# --- attention between recurrent layers ---


def test_maps_of_a_chain_that_keep_its_order_settle_and_others_have_a_period_of_two() -> None:
    size = 5
    maps = list(itertools.product(range(size), repeat=size))
    rising = [each for each in maps if all(a <= b for a, b in itertools.pairwise(each))]
    falling = [each for each in maps if all(a >= b for a, b in itertools.pairwise(each))]
    for each in rising + falling:
        power = tuple(range(size))
        powers = [power := tuple(each[point] for point in power) for _ in range(2 * size)]
        assert powers[-1] == powers[-3] and (each in falling or powers[-1] == powers[-2])
    assert {len(rising), len(falling)} == {126}


HYBRIDS = ("mamba", "linear-attention", "rwkv4", "hgrn", "kda", "kda:beta=double", "minmax")


@pytest.mark.parametrize("positions", ["none", "rotary"])
@pytest.mark.parametrize("recurrent", HYBRIDS)
def test_a_hybrid_does_what_its_recurrent_layers_do_and_is_refused_nothing_that_one_kind_does(
    algebras: dict[str, Algebra], recurrent: str, positions: str
) -> None:
    hybrid = told("hybrid", recurrent=recurrent, pattern="RAR", layers=3, positions=positions)
    for task, algebra in algebras.items():
        found = predict(algebra, hybrid)
        name, _, option = recurrent.partition(":")
        options = dict([option.split("=")]) if option else {}
        alone = predict(algebra, told(name, layers=2, mlp=4.0, **options))
        if alone.can == "yes" and alone.answer == "yes":
            assert found.can == found.answer == "yes", task
        if found.can == "no":
            assert alone.can != "yes", task
            attention = told("transformer", positions=positions, bos=True, mlp=4.0)
            assert predict(algebra, attention).can != "yes", task


def test_a_number_of_recurrent_layers_is_a_number_of_layers_of_the_pattern() -> None:
    """S4 takes three layers of complex gains by its series, and a hybrid has both kinds."""
    s4 = load_task("s4")
    aussm = {"recurrent": "aussm", "mlp": 4.0}
    for pattern, enough in (("RA", 5), ("RRA", 4), ("AR", 6), ("RRRA", 4)):
        found = predict(s4, told("hybrid", pattern=pattern, layers=4, **aussm))
        (need,) = found.needs
        assert (found.can, need.setting, need.value) == ("yes", "layers", enough)
        assert need.least is None, "attention may take the place of a layer"


def test_attention_without_positions_adds_no_group_to_gains() -> None:
    parity, s3, a5 = (load_task(name) for name in ("parity", "s3", "a5"))
    for recurrent in ("mamba", "gla", "minmax", "rwkv4", "mlstm"):
        found = predict(parity, told("hybrid", recurrent=recurrent, positions="none"))
        assert found.can == "no" and found.witness.kind == "powers"
        found = predict(parity, told("hybrid", recurrent=recurrent, positions="rotary"))
        assert found.can == "unknown"
    signed = "mamba:eigenvalues=signed"
    assert predict(s3, told("hybrid", recurrent=signed, positions="none")).can == "no"
    assert predict(s3, told("hybrid", recurrent=signed)).can == "unknown"
    assert predict(parity, told("hybrid", recurrent=signed)).answer == "yes"
    for positions in ("none", "rotary", "alibi"):
        assert predict(a5, told("hybrid", recurrent="mamba3", positions=positions)).can == "no"
        assert predict(a5, told("hybrid", positions=positions)).can == "unknown"


def test_what_is_not_added_to_the_stream_cannot_be_passed_over() -> None:
    flip_flop = load_task("flip-flop")
    assert predict(flip_flop, told("hybrid")).can == "yes"
    assert predict(flip_flop, told("hybrid", residual=False)).can == "unknown"
