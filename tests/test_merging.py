"""The merging horizon: how many of a word's last symbols the state depends on."""

from __future__ import annotations

import io
import itertools
import json
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pytest

from statetrack.algebra import Machine, Merging, merging, merging_of, needed_machine
from statetrack.algebra.images import Images
from statetrack.audit import Shortcuts, draw_tests, draw_train
from statetrack.cli.app import run
from statetrack.data import read_dataset
from statetrack.sources import Automaton
from statetrack.spec import Task, WordSpec, load_task, task_names

HOLD_OR_SET = [[0, 0, 1], [1, 0, 1]]
TOGGLE_OR_SET = [[1, 0], [0, 0]]
BROKER_TASK = """
title: Three symbols that toggle, reset or wait
version: 1
reference: own example
automaton:
  kind: transitions
  start: closed
  states:
    closed: {connect: open, leave: closed, ping: closed}
    open: {connect: closed, leave: closed, ping: open}
test_lengths: [300]
"""
BROKER = [[1, 0, 0, 0], [0, 1, 2, 1], [0, 2, 3, 1], [3, 3, 0, 3]]


def random_automaton(seed: int, *, forbid: bool = False, slips: bool = False) -> Automaton:
    random = np.random.default_rng(seed)
    states, symbols = 4, 3
    delta = random.integers(states, size=(states, symbols))
    delta[:, 0] = (np.arange(states) + 1) % states  # all are reached
    weights = random.integers(1, 4, size=(states, symbols)).astype(float)
    if forbid:
        weights[random.integers(states), 1:] = 0
    slipping = np.zeros((states, symbols))
    if slips:
        slipping[random.integers(states)] = [0, 0, 1]
    return Automaton(
        delta,
        random.integers(2, size=states),
        weights=weights if forbid or slips else None,
        slips=slipping if slips else None,
        slip_rate=0.5 if slips else 0.0,
    )


def drawn_words(automaton: Automaton, length: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every word that can be drawn, and how likely it is."""
    chances = [automaton.chances_at(position).tolist() for position in range(length)]
    delta = automaton.delta.tolist()
    for word in itertools.product(range(automaton.num_symbols), repeat=length):
        state, chance = automaton.start, 1.0
        for position, symbol in enumerate(word):
            chance *= chances[position][state][symbol]
            state = delta[state][symbol]
        if chance > 0:
            yield word, chance


def merges(machine: Machine, word: tuple[int, ...]) -> bool:
    states = set(np.flatnonzero(machine.live).tolist())
    for symbol in word:
        states = {int(machine.delta[state, symbol]) for state in states} - {machine.sink}
    return len(states) <= 1


def by_all_words(automaton: Automaton, length: int) -> list[float]:
    machine = needed_machine(automaton)
    known: dict[tuple[int, ...], bool] = {}
    shares = [0.0] * (length + 1)
    for word, chance in drawn_words(automaton, length):
        for n in range(length + 1):
            end = word[length - n :]
            if end not in known:
                known[end] = merges(machine, end)
            shares[n] += chance * known[end]
    return shares


def shares_of(found: Merging | None, length: int) -> list[float]:
    assert found is not None and found.words is None
    return [found.share(n) for n in range(length + 1)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "how", [{}, {"forbid": True}, {"slips": True}], ids=["uniform", "forbidden", "slips"]
)
def test_shares_are_those_of_all_words(seed: int, how: dict[str, bool]) -> None:
    automaton = random_automaton(seed, **how)
    found = shares_of(merging_of(automaton, 5), 4)
    assert found == pytest.approx(by_all_words(automaton, 5)[:5], abs=1e-12)
    assert sorted(found) == found


@pytest.mark.parametrize("seed", range(3))
def test_words_that_merge_are_those_after_which_nothing_before_them_counts(seed: int) -> None:
    """Label by label: the ends of words, what may stand before them, and all that may follow."""
    automaton = random_automaton(seed, forbid=True)
    first = [word for n in range(4) for word, _ in drawn_words(automaton, n)]
    answers: dict[tuple[int, ...], set[tuple[str, ...]]] = defaultdict(set)
    for end in itertools.product(range(3), repeat=2):
        for before in first:
            if _state_after(automaton, before + end) is not None:
                answers[end].add(tuple(_answers(automaton, before + end)))
    assert answers
    machine = needed_machine(automaton)
    for end, told in answers.items():
        assert merges(machine, end) == (len(told) == 1)


def _state_after(automaton: Automaton, word: tuple[int, ...]) -> int | None:
    """The state after a word; None for a word that is not drawn."""
    state = automaton.start
    for symbol in word:
        if not automaton.drawable[state, symbol]:
            return None
        state = int(automaton.delta[state, symbol])
    return state


def _answers(automaton: Automaton, word: tuple[int, ...]) -> Iterator[str]:
    """The last label, and the labels of all short continuations, or that they are not drawn."""
    for more in range(4):
        for behind in itertools.product(range(3), repeat=more):
            state = _state_after(automaton, word + behind)
            yield "not" if state is None else str(automaton.output[state])


def test_the_shares_of_a_register_are_a_formula() -> None:
    found = merging_of(Automaton(HOLD_OR_SET), 100)
    assert shares_of(found, 20) == pytest.approx([1 - 3.0**-n for n in range(21)])
    assert found is not None and found.horizon == 5
    assert [found.symbols_for(level) for level in (0.5, 0.9)] == [1, 3]


def test_weights_are_those_of_the_words() -> None:
    rarely = Automaton(HOLD_OR_SET, weights=[[0.98, 0.01, 0.01]] * 2)
    found = merging_of(rarely, 500)
    assert shares_of(found, 50) == pytest.approx([1 - 0.98**n for n in range(51)])
    assert found is not None and found.horizon == 228


def test_the_shipped_flip_flop_forgets_as_its_instructions_say() -> None:
    """A write, of chance 1/10 at every second symbol, or the first, which is one always."""
    found = merging_of(load_task("flip-flop").automaton, 512)
    assert found is not None
    assert found.share(2) == pytest.approx(0.2)
    for pairs in range(1, 40):
        assert found.share(2 * pairs) == pytest.approx(1 - 0.8**pairs)


@pytest.mark.parametrize("name", ["parity", "s3", "s5", "modular-addition"])
def test_a_group_never_merges_its_states(name: str) -> None:
    found = merging_of(load_task(name).automaton, 500)
    assert found is not None
    assert found.horizon is None and found.longest == 499 and found.share(499) == 0
    assert found.never == "every symbol permutes the states"


def test_it_is_said_why_states_never_merge() -> None:
    two_ends = Automaton([[1, 2], [1, 1], [2, 2]])
    toggled_behind_a_start = Automaton([[0, 1], [1, 2], [2, 1]])
    of_its_own_symbols = Automaton(  # states 1 and 2 toggle, and draw no symbol with equal chances
        [[1, 1, 1], [2, 1, 1], [1, 2, 2]], weights=[[1, 1, 1], [1, 2, 3], [3, 2, 1]]
    )
    expected = {
        two_ends: "2 parts of the machine are never left once entered",
        toggled_behind_a_start: "words permute 2 states, and lead no two of them to one",
        load_task("gated-parity").automaton: (
            "words permute 2 states, and lead no two of them to one"
        ),
        of_its_own_symbols: "no word that is drawn leads all states to one",
    }
    for automaton, reason in expected.items():
        found = merging_of(automaton, 50)
        assert found is not None and found.never == reason and found.horizon is None


@pytest.mark.parametrize(
    ("delta", "output", "scored", "horizon"),
    [
        ([[1], [2], [2]], [0, 0, 1], [True, True, False], 1),
        ([[0, 0, 1], [2, 1, 0], [2, 2, 2]], [1, 0, 0], [False, True, False], 12),
        ([[1, 0, 0], [2, 1, 1], [2, 2, 2]], [1, 0, 0], [False, True, False], 12),
    ],
)
def test_words_may_lead_to_where_no_label_is_asked_for_any_more(
    delta: list[list[int]],
    output: list[int],
    scored: list[bool],
    horizon: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What no label is asked for behind does not count: words that lead all other states merge."""
    automaton = Automaton(delta, output, scored=scored)
    found = merging_of(automaton, 20)
    assert found is not None and found.horizon == horizon
    assert shares_of(found, 5) == pytest.approx(by_all_words(automaton, 6)[:6], abs=1e-12)
    monkeypatch.setattr(merging, "images_of", _no_images)
    sampled = merging_of(automaton, 20)
    assert sampled is not None and not sampled.never


def test_one_state_is_merged_before_the_first_symbol() -> None:
    found = merging_of(Automaton([[0, 0]]), 10)
    assert found is not None and found.horizon == 0 and found.share(9) == 1


def test_where_images_are_many_words_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = merging_of(Automaton(BROKER), 60)
    sampled = merging_of(Automaton(BROKER), 60, most_images=2)
    again = merging_of(Automaton(BROKER), 60, most_images=2)
    assert exact is not None and sampled is not None and again is not None
    assert exact.words is None and sampled.words == 10_000
    assert (sampled.shares == again.shares).all()
    outside = 0
    for n in range(1, 40):
        low, high = sampled.interval(n)
        assert low <= sampled.share(n) <= high
        outside += not low <= exact.share(n) <= high
    assert outside <= 4
    monkeypatch.setattr(merging, "images_of", _no_images)
    never = merging_of(load_task("gated-parity").automaton, 50)
    assert never is not None
    assert never.never.startswith("no word leads the states ")


def _no_images(actions: object, most: int) -> Images | None:
    return None


def test_sampled_words_of_weights_that_follow_the_state_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    automaton = random_automaton(1, slips=True)
    exact = by_all_words(automaton, 6)
    monkeypatch.setattr(merging, "images_of", _no_images)
    sampled = merging_of(automaton, 6)
    assert sampled is not None and sampled.words is not None
    for n in range(6):
        assert sampled.share(n) == pytest.approx(exact[n], abs=0.03)


def test_what_is_too_large_is_not_worked_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "MOST_TRANSITIONS", 3)
    assert merging_of(Automaton(TOGGLE_OR_SET), 10) is None


def test_every_shipped_automaton_has_shares_that_rise() -> None:
    for name in task_names():
        task = load_task(name)
        if not task.has_automaton:
            continue
        found = merging_of(task.automaton, 40)
        assert found is not None and (np.diff(found.shares) >= 0).all(), name
        assert 0 <= found.shares.min() and found.shares.max() <= 1
        assert (found.share(found.longest) > 0) != bool(found.never) or not found.never, name


def test_as_plain_values_shares_have_their_intervals() -> None:
    found = merging_of(Automaton(TOGGLE_OR_SET), 100)
    assert found is not None
    content = found.to_json()
    assert content["exact"] is True and content["never"] is None and content["length"] == 100
    assert content["symbols_for"] == {"0.5": 1, "0.9": 4, "0.99": 7, "0.999": 10}
    assert content["shares"][2] == {"symbols": 5, "share": 0.96875, "low": 0.96875, "high": 0.96875}


@pytest.mark.parametrize(
    ("automaton", "summary"),
    [
        (Automaton(HOLD_OR_SET), "5 symbols merge all states in 99 % of words"),
        (load_task("ends-with-ab").automaton, "2 symbols merge all states in 99 % of words"),
        (load_task("turnstile").automaton, "1 symbol merges all states in 99 % of words"),
        (load_task("parity").automaton, "none: every symbol permutes the states"),
        (Automaton([[0, 0]]), "0 symbols: there is one state"),
        (
            Automaton(HOLD_OR_SET, weights=[[0.98, 0.01, 0.01]] * 2),
            "none: the last 99 symbols merge all states in 0.8646 of words",
        ),
    ],
)
def test_the_summary_is_one_line(automaton: Automaton, summary: str) -> None:
    found = merging_of(automaton, 100)
    assert found is not None and found.summary.startswith(summary)
    assert found.to_json()["summary"] == found.summary


def test_what_was_counted_on_words_says_so() -> None:
    found = merging_of(Automaton(BROKER), 300, most_images=2)
    assert found is not None
    exact = merging_of(Automaton(BROKER), 300)
    assert exact is not None and exact.horizon is not None
    assert exact.between == (exact.horizon, exact.horizon)
    low, high = found.between
    assert low is not None and high is not None and low <= exact.horizon <= high
    assert found.summary.endswith(f", counted on 10,000 words, between {low} and {high}")


def test_only_lengths_far_beyond_the_horizon_are_limited() -> None:
    found = merging_of(Automaton(HOLD_OR_SET), 500)
    assert found is not None
    assert found.limit_of(24) == ""
    assert found.limit_of(25) == (
        "accuracy at 25 tests at most the last 5 symbols: 99 % of words have merged all states "
        "by then"
    )
    group = merging_of(load_task("s3").automaton, 500)
    assert group is not None and group.limit_of(500) == ""


def test_show_has_the_merging_horizon(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "turnstile"]) == 0
    assert "merging horizon" in capsys.readouterr().out
    assert run(["show", "turnstile", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["merging"]
    assert (shown["horizon"], shown["exact"], shown["length"]) == (1, True, 500)
    assert run(["show", "dyck-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["merging"] is None


@pytest.mark.parametrize(
    ("name", "has", "hides"),
    [
        ("permutation-reset", True, True),
        ("random-fsm", True, True),
        ("s5", True, False),
        ("parity", True, False),
        ("flip-flop-dense", False, False),
        ("register", False, False),
        ("dyck-1", False, False),
    ],
)
def test_words_hide_groups_where_they_merge_what_groups_permute(
    name: str, has: bool, hides: bool
) -> None:
    task = load_task(name)
    assert not task.has_automaton or merging.has_a_group(task.automaton) == has
    assert merging.hides_groups(task.source, 500) == hides
    assert not merging.hides_groups(task.source, 10)


def test_among_many_images_a_word_that_cycles_proves_a_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toggled_by_a_word_of_two = Automaton([[1, 3, 0], [3, 2, 1], [3, 0, 2], [3, 3, 0]])
    shifts = Automaton([[1, 0], [2, 0], [2, 0]])
    expected = {toggled_by_a_word_of_two: False, shifts: False, Automaton(BROKER): True}
    by_images = {each: merging.has_a_group(each) for each in expected}
    monkeypatch.setattr(merging, "images_of", _no_images)
    monkeypatch.setattr(merging, "MOST_MOVED", 2**12)
    merging.has_a_group.cache_clear()
    for automaton, found in by_images.items():
        assert merging.has_a_group(automaton) == found
    merging.has_a_group.cache_clear()
    assert set(by_images.values()) == {True, False}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a task whose words hide a group, a run on it, and a dataset of it."""
    folder = tmp_path_factory.mktemp("broker")
    (folder / "broker.yaml").write_text(BROKER_TASK, encoding="utf-8")
    train = ["train", "--model", "diagonal-real", "--task", "broker.yaml", "--hidden", "4"]
    train += ["--steps", "5", "--batch-size", "8", "--validation-words", "16", "--out", "run"]
    gen = ["gen", "broker.yaml", "--samples", "40", "--validation-samples", "8"]
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as said:
        patch.chdir(folder)
        assert run(train) == 0
        assert run([*gen, "--test-samples", "8", "--out", "words"]) == 0
    (folder / "said").write_text(said.getvalue(), encoding="utf-8")
    return folder


@pytest.fixture
def in_broker(broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broker)
    monkeypatch.setenv("COLUMNS", "200")


MERGE = "12 symbols merge all states in 99 % of words (2 in 50 %, 6 in 90 %, 18 in 99.9 %)"
LIMIT = (
    "accuracy at 300 tests at most the last 12 symbols: "
    "99 % of words have merged all states by then"
)


def test_training_on_words_that_hide_a_group_is_warned_of(broker: Path) -> None:
    (warning,) = [
        line for line in (broker / "said").read_text("utf-8").splitlines() if "hide" in line
    ]
    assert warning == (
        f"warning: words of broker.yaml hide its groups: {MERGE}, so that a test at length 300 "
        "asks for no more than these; train and test on words that stay inside a group as well "
        "(--words group)"
    )


@pytest.mark.usefixtures("in_broker")
def test_training_on_words_of_the_group_is_not_warned_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["--model", "diagonal-positive", "--steps", "1", "--batch-size", "2"]
    out = ["--out", str(tmp_path / "run")]
    assert run(["train", "--task", "broker.yaml", "--words", "group", *options, *out]) == 0
    assert "hide" not in capsys.readouterr().err


@pytest.mark.usefixtures("in_broker")
def test_eval_says_what_the_words_test_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "run", "--samples", "20"]) == 0
    printed = capsys.readouterr()
    assert f"on these words, {LIMIT}" in printed.out.splitlines()
    (warning,) = [line for line in printed.err.splitlines() if "hide" in line]
    assert LIMIT not in warning, "it stands below the table"
    assert warning.endswith("(--words group)")
    assert run(["eval", "run", "--samples", "20", "--length", "20", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["merging"]["task"]["horizon"] == 12 and found["rows"][0]["merging_horizon"] == 12
    assert "hide" not in printed.err
    assert run(["eval", "run", "--samples", "20", "--length", "20"]) == 0
    assert "on these words" not in capsys.readouterr().out


@pytest.mark.usefixtures("in_broker")
def test_words_of_a_group_have_a_horizon_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["eval", "run", "--samples", "20", "--words", "uniform", "--words", "group"]
    assert run(asked) == 0
    printed = capsys.readouterr()
    assert [line for line in printed.out.splitlines() if "at most" in line] == [
        f"on uniform words, {LIMIT}"
    ]
    assert "hide" not in printed.err  # the words that are asked for are there
    assert run([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {words: each["horizon"] for words, each in found["merging"].items()} == {
        "uniform": 12,
        "group": None,
    }
    assert {(row["words"], row["merging_horizon"]) for row in found["rows"]} == {
        ("uniform", 12),
        ("group", None),
    }
    assert run(["audit", "broker.yaml", "--samples", "50", "--words", "group"]) == 0
    assert "WINDOW" not in capsys.readouterr().out


@pytest.mark.usefixtures("in_broker")
def test_audit_says_which_window_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    window = (
        "WINDOW: the last 12 symbols decide the label in 99 % of words of 300, the last 18 in "
        "99.9 %: all states have merged by then, and what came before is not tested"
    )
    for what in ("broker.yaml", "words"):
        samples = ["--samples", "50"] if what.endswith(".yaml") else []
        assert run(["audit", what, *samples]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == window
        assert run(["audit", what, *samples, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["merging"]["symbols_for"]["0.99"] == 12
    assert run(["audit", "parity", "--samples", "50"]) == 0
    assert "WINDOW" not in capsys.readouterr().out


@pytest.mark.usefixtures("in_broker")
def test_a_data_card_has_the_merging_horizon_and_older_cards_are_read(tmp_path: Path) -> None:
    words = Path(shutil.copytree("words", tmp_path / "words"))
    card = json.loads((words / "card.json").read_text("utf-8"))
    assert (card["merging"]["horizon"], card["merging"]["length"]) == (12, 300)
    assert f"| Merging horizon | {MERGE} |" in (words / "README.md").read_text("utf-8")
    del card["merging"]
    (words / "card.json").write_text(json.dumps(card), encoding="utf-8")
    assert read_dataset(words).card["merging"] is None


@pytest.mark.usefixtures("in_broker")
def test_a_report_has_the_merging_horizon(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", "run", "--samples", "20", "--length", "20,100"]) == 0
    capsys.readouterr()
    asked = ["report", "run", "--columns", "length,merging_horizon", "--format", "csv"]
    assert run(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {"20,12", "100,12"} <= set(lines)
    assert run(["report", "run", "--out", "page.html"]) == 0
    assert "<dt>merging horizon</dt><dd>12</dd>" in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize("seed", range(3))
def test_a_lookup_of_the_last_symbols_is_right_wherever_they_merge(seed: int) -> None:
    """Word by word, where the symbols were met in training: so at least on the share of these."""
    automaton = random_automaton(seed)
    machine, found = needed_machine(automaton), merging_of(automaton, 40)
    assert found is not None
    task = Task.from_automaton(automaton, train_length=(1, 30), test_lengths=(40,))
    words = WordSpec.of(task)
    shortcuts = Shortcuts(draw_train(task, words, 1500, 0))
    (part,) = draw_tests(task, [40], 1000, 0, 30)
    answers = dict(shortcuts.answers(part.batch, np.full((1000, 1), 39)))
    accuracies = shortcuts.measure(part.batch, [40])[40]
    for k in range(1, 6):
        right = answers[f"last-{k}"][:, 0] == part.batch.labels[:, 39]
        ends = [tuple(word[40 - k :].tolist()) for word in part.batch.symbols]
        merged = np.array([merges(machine, end) for end in ends])
        assert right[merged].all()
        assert accuracies[f"last-{k}"].high >= found.share(k)


def as_mealy(automaton: Automaton) -> Automaton:
    """The states that every symbol leads alike as one: those of a machine with outputs on edges."""
    delta = needed_machine(automaton).delta
    rows, number = np.unique(delta, axis=0, return_inverse=True)
    start = int(number.reshape(-1)[needed_machine(automaton).automaton.start])
    return Automaton(number.reshape(-1)[rows], start=start)


@pytest.mark.parametrize("seed", range(5))
def test_states_with_their_last_output_merge_at_most_one_symbol_later(seed: int) -> None:
    random = np.random.default_rng(seed)
    edges = random.integers(2, size=(4, 3))  # an output on every edge
    delta = random.integers(4, size=(4, 3))
    delta[:, 0] = (np.arange(4) + 1) % 4
    pairs = sorted({(delta[s, v], edges[s, v]) for s in range(4) for v in range(3)})
    moore = Automaton(
        [[pairs.index((delta[s, v], edges[s, v])) for v in range(3)] for s, _ in pairs],
        [output for _, output in pairs],
    )
    both = merging_of(moore, 40), merging_of(as_mealy(moore), 40)
    assert both[0] is not None and both[1] is not None
    for n in range(1, 40):
        alone = both[1].share(n)
        assert both[1].share(n - 1) - 1e-12 <= both[0].share(n) <= alone + 1e-12


@pytest.mark.skipif(
    "STATETRACK_MACHINES" not in os.environ,
    reason="STATETRACK_MACHINES names no folder of machines",
)
def test_machines_of_real_systems_merge_as_was_measured_before() -> None:
    """On states of the files themselves, by words drawn at random, before this program had it."""
    measured = {
        "MQTT__mosquitto__mosquitto": {10: 0.965, 20: 0.999},
        "TLS__OpenSSL_1.0.2_server_regular": {5: 0.997},
        "EMV__10_learnresult_MasterCard_fix": {20: 0.77, 50: 0.98},
        "TCP__tcp_server_bsd_trans": {20: 0.49, 50: 0.95},
    }
    for name, shares in measured.items():
        path = Path(os.environ["STATETRACK_MACHINES"]) / f"{name}.dot"
        found = merging_of(as_mealy(load_task(str(path)).automaton), 500, most_images=2**18)
        assert found is not None and found.words is None
        for n, share in shares.items():
            assert found.share(n) == pytest.approx(share, abs=0.011)
