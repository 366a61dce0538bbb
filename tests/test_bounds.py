"""Sizes that were once unbounded: each is refused with a figure and the limit, before it is met."""

import time

import numpy as np
import pytest
import torch
from torch import nn

from statetrack import evaluate, load_task, make_model
from statetrack.catalogue import describe_task, inner_type
from statetrack.cli import app
from statetrack.cli.audit import AuditSettings
from statetrack.cli.gen import GenSettings
from statetrack.errors import SettingsError, TaskError
from statetrack.models import MODEL_FACTS, _construction
from statetrack.sources import (
    Automaton,
    build_automaton,
    floors,
    graphs,
    interleave,
    minimise,
    patterns,
    product,
    reachable,
)
from statetrack.sources.kinds.transitions import transitions
from statetrack.spec import arguments_that_can_be_set, task_names
from statetrack.training import DataSettings, Population, TrainSettings, replicas_of

PATTERNS = {
    "a set of states for every word of 20 letters": ("(a|b)*a(a|b){20}", "more than 8,192 states"),
    "repetitions of repetitions": ("(a{1000}){1000}", "more than 50,000 states"),
    "a billion letters": ("a{999999999}", "more than 50,000 states"),
    "a number that Python does not read": ("a{" + "9" * 5000 + "}", "more than 50,000 states"),
    "a long word": ("ab" * 5000, "more than 8,192 states"),
    "a longer one": ("ab" * 5001, "10,002 letters, the most is 10,000"),
    "a million letters": ("a" * 10**6, "1,000,000 letters, the most is 10,000"),
    "a shuffle": (f"(?shuffle:{'|'.join(['(ab)*'] * 12)})", "more than 50,000 states"),
    "an intersection": (
        "&".join(f"(a{{{prime}}}|b)*" for prime in (2, 3, 5, 7, 11, 13)),
        "more than 50,000 states",
    ),
    "letters that may be left out": ("a?" * 2000, "more than 1,000,000 steps"),
    "a range over all of Unicode": ("[a-\U0010ffff]" * 100, "more than 1,000 letters"),
    "digits of another script": ("a{٣}", r"write \{2\}"),
    "brackets that nothing closes": ("(" * 9000, "the bracket is not closed"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_whose_automaton_is_too_large_is_refused_while_it_is_built(pattern):
    text, message = PATTERNS[pattern]
    started = time.process_time()
    with pytest.raises(TaskError, match=message) as refused:
        build_automaton({"kind": "regex", "pattern": text, "alphabet": "ab"}, "here")
    assert time.process_time() - started < 60
    assert len(str(refused.value)) < 300


def test_sets_of_states_are_counted_as_they_are_found(monkeypatch):
    formed = []
    explore = patterns.explore

    def watched(start, symbols, step, most):
        return explore(start, symbols, lambda *at: (formed.append(at), step(*at))[1], most)

    monkeypatch.setattr(patterns, "explore", watched)
    monkeypatch.setattr(patterns, "MOST_SETS", 100)
    with pytest.raises(TaskError, match="more than 100 states"):
        build_automaton({"kind": "regex", "pattern": "(a|b)*a(a|b){20}", "alphabet": "ab"}, "x")
    assert len(formed) <= 2 * 101


def test_the_largest_pattern_is_still_the_smallest_automaton():
    given = {"kind": "regex", "pattern": "(a|b)*a(a|b){8}", "alphabet": "ab"}
    assert build_automaton(given, "here").num_states == 2**9
    deep = {"kind": "regex", "pattern": "(" * 4000 + "a" + ")" * 4000, "alphabet": "ab"}
    assert build_automaton(deep, "here").num_states == 3
    stars = {"kind": "regex", "pattern": "(" * 1000 + "a" + ")*" * 1000, "alphabet": "ab"}
    assert build_automaton(stars, "here").num_states == 2


def chain(count):
    """States in a line: as many rounds of a search as there are states."""
    return {f"s{n}": {"a": f"s{(n + 1) % count}", "b": "s0"} for n in range(count)}


class Counted(str):
    """A name that counts how often it is compared with another."""

    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_written_out_states_are_looked_up_and_not_searched(monkeypatch):
    monkeypatch.setattr(Counted, "comparisons", 0)
    count = 2_000
    states = {
        Counted(state): {symbol: Counted(target) for symbol, target in row.items()}
        for state, row in chain(count).items()
    }
    outputs = {state: state for state in states}
    automaton = transitions(states=states, start="s0", outputs=outputs, labels=list(outputs))
    assert automaton.num_states == count
    assert Counted.comparisons < 50 * count  # a search in a list takes count / 2 for each name


def test_a_name_among_many_that_appears_twice_is_found_at_once():
    count = 30_000
    started = time.process_time()
    with pytest.raises(TaskError, match="the name 'x' appears twice"):
        Automaton(
            np.zeros((count, 1), int) + np.arange(1, count + 1)[:, None] % count,
            states=[*map(str, range(count - 2)), "x", "x"],
        )
    assert time.process_time() - started < 30


def test_what_is_reached_is_what_single_steps_reach():
    draw = np.random.default_rng(0)
    for _ in range(20):
        delta = draw.integers(0, 30, (30, 2))
        allowed = draw.random((30, 2)) < 0.7
        for may in (None, allowed):
            seen = {0}
            while (
                further := {
                    int(delta[state, x])
                    for state in seen
                    for x in range(2)
                    if may is None or may[state, x]
                }
                - seen
            ):
                seen |= further
            assert set(np.flatnonzero(reachable(delta, 0, may))) == seen


def test_a_floor_beyond_its_budget_is_not_computed(monkeypatch):
    ring = Automaton((np.arange(700)[:, None] + [1, 2]) % 700, np.arange(700) // 500)
    exact = ring.floors([20, 300])
    assert exact is not None and exact[300] < 1
    monkeypatch.setattr(floors, "MOST_WORK", 100 * 1400)
    assert ring.floors([20]) == {20: exact[20]}
    assert ring.floors([20, 300]) is None
    monkeypatch.setattr(floors, "MOST_NODES", 600)
    assert ring.floors([20]) is None


def test_evaluation_measures_the_floor_where_it_is_not_computed(monkeypatch):
    task = load_task("parity")
    monkeypatch.setattr(floors, "MOST_NODES", 1)
    assert task.source.floors([5]) is None
    model = make_model("lstm", task, hidden=2)
    [score] = evaluate(model, task, [5], num_words=50)
    assert 0.5 <= score.floor <= 1
    assert describe_task(task)["floor"] == {str(n): None for n in task.spec.test_lengths}


def test_weights_that_do_not_fit_are_refused_before_memory_is_taken(monkeypatch):
    monkeypatch.setattr(_construction, "free_memory", lambda device: 10**6)
    built = []
    make_small = make_model("lstm", "parity", hidden=8)
    assert sum(weight.numel() for weight in make_small.parameters()) < 10**5
    with pytest.raises(SettingsError, match=r"out of memory: [\d,]+ weights take .* GB"):
        make_model("lstm", "parity", hidden=100_000)

    def make():
        built.append(torch.get_default_device().type)
        return nn.Linear(1000, 1000)

    with pytest.raises(SettingsError, match=r"1,001,000 weights for each of 3 replicas"):
        Population(make, replicas_of(range(3), (0.1,)), torch.device("cpu"))
    assert built == ["cpu"], "a model of few weights is built to be measured"
    built.clear()
    monkeypatch.setattr(_construction, "FEW", 10**6)
    with pytest.raises(SettingsError, match=r"1,001,000 weights for each of 3 replicas"):
        Population(make, replicas_of(range(3), (0.1,)), torch.device("cpu"))
    assert built == ["cpu", "meta"], "one of many weights is given up, and built without values"


def test_a_weight_beyond_counting_is_refused():
    def make():
        return nn.Linear(2**40, 2**40)

    with pytest.raises(SettingsError, match="more numbers than a computer can count"):
        _construction.check_memory(make, 1, 1, torch.device("cpu"))


def test_the_check_leaves_random_numbers_and_finished_models_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    _construction.check_memory(lambda: nn.Linear(5, 5), 1, 1, torch.device("cpu"))
    assert torch.equal(torch.rand(2), expected)
    finished = nn.Linear(5, 5)
    _construction.check_memory(lambda: finished, 10**15, 1, torch.device("cpu"))


def test_no_weight_is_made_beyond_the_few():
    made = []

    def make():
        model = nn.Linear(10, 10)
        made.append(model)
        model.square = nn.Parameter(torch.eye(2**13))
        return model

    assert _construction._small(make) is None and len(made) == 1
    assert _construction._small(lambda: nn.Embedding(2**13, 2**12)) is None
    for few in (lambda: nn.Linear(3, 3), lambda: nn.LSTM(4, 4), lambda: nn.Embedding(5, 5)):
        assert _construction._small(few) is not None


@pytest.mark.parametrize("name", MODEL_FACTS)
def test_the_size_of_every_model_is_known_before_it_is_built(name, monkeypatch):
    monkeypatch.setattr(_construction, "free_memory", lambda device: 0)
    with pytest.raises(SettingsError, match="out of memory"):
        make_model(name, "parity")


def test_free_memory_is_that_of_the_machine_or_of_its_container(tmp_path, monkeypatch):
    assert _construction.free_memory(torch.device("cpu")) > 10**8
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(_construction, "CGROUP", limit)
    limit.write_text("max\n")
    assert _construction.free_memory(torch.device("cpu")) > 10**8
    limit.write_text("123456\n")
    assert _construction.free_memory(torch.device("cpu")) == 123456


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8.0 GiB for an array"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
        RuntimeError("CUDA out of memory. Tried to allocate 8.00 GiB\nmore"),
    ],
)
def test_an_array_that_does_not_fit_is_one_line(error):
    line, code = app._line_and_code(error, [])
    assert line.startswith("out of memory (") and "\n" not in line and code == app.FAILED


EVERY_SETTINGS = [DataSettings, TrainSettings, GenSettings, AuditSettings] + [
    facts.settings_class for facts in MODEL_FACTS.values()
]


@pytest.mark.parametrize("kind", EVERY_SETTINGS, ids=lambda kind: kind.__name__)
def test_no_whole_number_of_any_settings_is_without_bound(kind):
    for name, field in kind.model_fields.items():
        if inner_type(field.annotation) is int:
            for number in (10**18, 2**64, -(10**18)):
                with pytest.raises(SettingsError, match=f"^{name}: "):
                    kind(**{name: number})


@pytest.mark.parametrize(
    "words",
    [
        f"{command} --{option.replace('_', '-')} {number}"
        for command, kinds in {
            "train": [DataSettings, TrainSettings, MODEL_FACTS["bilinear-cp"].settings_class],
            "gen parity": [GenSettings],
            "audit parity": [AuditSettings],
        }.items()
        for kind in kinds
        for option, field in kind.model_fields.items()
        if inner_type(field.annotation) is int
        for number in (10**18, 2**64)
    ]
    + [f"eval nowhere --{name} {2**64}" for name in ("samples", "seed")],
)
def test_an_absurd_whole_number_on_the_command_line_is_refused_at_once(words, capsys, tmp_path):
    arguments = words.split()
    if arguments[0] != "eval":
        arguments += ["--out", str(tmp_path / "out")] if arguments[0] != "audit" else []
    assert app.run(arguments) in (1, 2)
    told = capsys.readouterr().err
    assert next(word for word in arguments if word.startswith("--")) in told
    assert "Traceback" not in told and "internal error" not in told
    assert not (tmp_path / "out").exists()


def whole_arguments():
    """Every kind's arguments that are whole numbers, by a shipped task of that kind."""
    found = {}
    for name in task_names():
        task = load_task(name)
        for argument, value in arguments_that_can_be_set(task).items():
            if type(value) is int:
                found.setdefault((task.spec.automaton["kind"], argument), name)
    return [f"{name}:{argument}" for (_, argument), name in found.items()]


@pytest.mark.parametrize("argument", whole_arguments())
def test_an_absurd_argument_of_a_kind_is_answered_or_refused_at_once(argument):
    started = time.process_time()
    for number in (10**5, 10**6, 10**9, 10**18, 2**64, 0, -1):
        try:
            assert load_task(f"{argument}={number}").source.num_symbols > 0
        except TaskError as refused:
            assert "\n" not in str(refused)
    assert time.process_time() - started < 30


def test_a_product_has_a_bounded_number_of_factors():
    one = Automaton([[0]], [0])
    with pytest.raises(TaskError, match="33 factors: the most is 32"):
        product(*[one] * 33)
    two = Automaton([[1], [0]])
    with pytest.raises(TaskError, match="20000 factors"):
        interleave(*[two] * 20_000)


def test_a_line_of_states_is_minimised_in_time_in_proportion_to_its_length():
    count = 20_000
    delta = np.minimum(np.arange(count)[:, None] + [1, 2], count - 1)
    started = time.process_time()
    assert minimise(Automaton(delta, 1 * (np.arange(count) == count - 1))).num_states == count
    assert time.process_time() - started < 60


def test_both_ways_to_minimise_find_the_same_partition(monkeypatch):
    draw = np.random.default_rng(1)
    for _ in range(30):
        delta, labels = draw.integers(0, 12, (25, 2)), draw.integers(0, 2, 25)
        first = graphs.numbered(labels)
        by_rounds = graphs.coarsest_partition(delta, first).tolist()
        monkeypatch.setattr(graphs, "MOST_ROUNDS", 0)
        assert graphs.coarsest_partition(delta, first).tolist() == by_rounds
        monkeypatch.undo()


def test_states_that_the_first_of_many_symbols_alone_tells_apart_are_not_merged():
    line = np.minimum(np.arange(16) + 1, 15)[:, None]
    delta = np.hstack([line, np.zeros((16, 39), np.int64)])
    found = graphs.coarsest_partition(delta, 1 * (np.arange(16) == 15))
    assert found.tolist() == list(range(16))
