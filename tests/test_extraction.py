"""Extraction: the machine that a network computes, compared with the task's."""

import json
import random
import shutil

import numpy as np
import pytest
import torch
from torch import nn

import statetrack as st
from statetrack.algebra import needed_machine
from statetrack.cli.app import run as command
from statetrack.errors import SettingsError
from statetrack.evidence import (
    Extraction,
    Failure,
    MyhillNerode,
    SearchBudget,
    Subject,
    find_exhaustive,
    find_extraction,
    find_myhill_nerode,
    machine_of,
)
from statetrack.evidence.extraction.machine import Hypothesis
from statetrack.evidence.subject import Reader
from statetrack.runs import Run
from statetrack.sources import Automaton, equivalent, minimise
from statetrack.spec import load_task
from tests.computing import Computes, right_for, with_wrong_transition
from tests.run_files import append_rows, rows_in
from tests.setups import exhaustive_of, parity_run, worst_case_of
from tests.test_docs import documented

AMPLE = 600.0
ALGORITHMS = ["lstar", "kv"]


def automaton_of(task):
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return automaton


def extract(model, task, **caps):
    caps = {"random_words": 100, "max_length": 100} | caps
    return find_extraction(Subject(model, task), budget=SearchBudget(AMPLE), **caps)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "task", ["s3", "tomita-3", "tomita-5", "flip-flop", "random-fsm", "turnstile", "a5"]
)
def test_a_model_that_computes_the_automaton_is_extracted_and_equivalent(task, algorithm):
    automaton = automaton_of(task)
    found = extract(Computes(automaton), task, algorithm=algorithm)
    assert found.equivalent is True and found.difference is None
    assert found.reason == "tested" and found.complete and found.verdict == "equivalent"
    assert found.states == found.needed == needed_machine(automaton).live.sum()
    assert found.extra_states is not None and found.all_to > 0
    machine = machine_of(found, automaton)
    assert machine.num_states == found.states
    assert set(machine.states) <= set(needed_machine(automaton).automaton.states)
    assert equivalent(needed_machine(machine).automaton, needed_machine(automaton).automaton)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_one_wrong_transition_is_extracted_and_the_shortest_difference_is_the_networks(algorithm):
    automaton = automaton_of("s3")
    for state, symbol in [(0, 0), (1, 2), (3, 1), (5, 5)]:
        to = (int(automaton.delta[state, symbol]) + 1) % 6
        wrong = with_wrong_transition(automaton, state, symbol, to)
        subject = Subject(Computes(wrong), automaton)
        found = extract(Computes(wrong), automaton, algorithm=algorithm)
        assert found.equivalent is False and found.reason == "tested"
        shortest = find_exhaustive(subject, budget=SearchBudget(AMPLE)).failure
        difference = found.difference
        assert difference.position == shortest.position
        assert found.verdict == f"differs at length {shortest.position}"
        answers = subject.answers(np.array([difference.word]))
        assert answers[0, -1] == difference.answer != difference.label
        assert automaton.labels_of(difference.word)[-1] == difference.label
        assert equivalent(machine_of(found, automaton), minimise(wrong))


@pytest.mark.parametrize(("algorithm", "length"), [("lstar", 40), ("kv", 20)])
def test_a_model_that_is_right_for_a_while_is_a_machine_with_states_for_each_length(
    algorithm, length
):
    automaton = automaton_of("parity")
    found = extract(Computes(right_for(automaton, length)), automaton, algorithm=algorithm)
    assert found.states == 2 * length + 1 and found.equivalent is False
    assert found.reason == "tested" and found.difference.position == length + 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_caps_end_learning_are_said_and_leave_the_failure_that_was_met(algorithm):
    automaton = automaton_of("parity")
    late = Computes(right_for(automaton, 40))
    found = extract(late, automaton, algorithm=algorithm, max_states=30)
    assert found.reason == "states" and found.complete and found.states <= 30
    assert found.equivalent is False and found.difference.position == 41
    assert found.random_words == 0 and found.extra_states is None
    few = extract(late, automaton, algorithm=algorithm, max_words=50)
    assert few.reason == "words" and few.words <= 50
    assert few.equivalent is None and few.verdict == "not decided"


RARE = (0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0, 1, 1, 0)
"""A word that neither all short words nor random ones of a small number are likely to be."""


def wrong_on_one_word(automaton, word):
    """The automaton, but for the label after one word: a chain of states beside its own."""
    first = automaton.num_states
    states = [automaton.start]
    for symbol in word:
        states.append(int(automaton.delta[states[-1], symbol]))
    # state first + n: the first n symbols of the word were read
    delta = np.concatenate([automaton.delta, automaton.delta[states]])
    output = np.concatenate([automaton.output, automaton.output[states]])
    for place, symbol in enumerate(word):
        delta[first + place, symbol] = first + place + 1
    output[-1] = 1 - output[-1]
    return Automaton(delta, output, start=first, labels=automaton.labels)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_word_that_is_known_to_fail_is_learned_from(algorithm):
    automaton = automaton_of("parity")
    wrong = wrong_on_one_word(automaton, RARE)
    caps = {"algorithm": algorithm, "random_words": 5}
    assert extract(Computes(wrong), "parity", **caps).verdict == "equivalent"
    known = Failure(RARE, (), len(RARE), 1 - int(wrong.labels_of(RARE)[-1]), 0)
    found = extract(Computes(wrong), "parity", **caps, known=[known])
    assert found.reason == "tested" and found.equivalent is False
    assert found.difference.word == RARE
    assert equivalent(machine_of(found, automaton), minimise(wrong))


def test_a_known_word_that_is_too_long_to_learn_from_is_said():
    automaton = automaton_of("parity")
    late = Computes(right_for(automaton, 150))
    known = Failure((), (1, 0), 153, 1, 0)
    found = extract(late, automaton, known=[known])
    assert (found.states, found.reason, found.random_words) == (2, "length", 100)
    assert found.equivalent is False and found.extra_states is None and found.complete
    assert (found.difference.period, found.longest) == ((1, 0), 153)
    assert found.difference.word == known.word[: found.difference.position]
    (facts,) = found.lines(automaton)
    said = dict(facts.rows)
    assert said["compared"].startswith("the network is not equivalent to the task; the shortest")
    assert said["compared"].endswith("which is a hypothesis about shorter words")
    assert "all but a longer word that was known to fail" in said["tested"]
    assert found.cell() == "differs (2)"
    right = extract(Computes(automaton), automaton, known=[known])
    assert right.reason == "tested" and right.equivalent
    assert right.cell(fails_at=900) == "equivalent (2), fails at 900"


def test_no_time_gives_no_machine_and_says_so():
    automaton = automaton_of("parity")
    found = find_extraction(Subject(Computes(automaton), automaton), budget=SearchBudget(0.0))
    assert found.reason == "time" and not found.complete
    assert found.states == 0 and found.equivalent is None and found.delta == ()
    with pytest.raises(ValueError, match="no machine"):
        machine_of(found)


def test_labels_that_are_not_asked_for_are_not_learned():
    delta = [[0, 1], [1, 2], [2, 0]]
    task = Automaton(delta, [0, 1, 1], scored=[True, True, False], labels=["0", "1"])
    other = Automaton(delta, [0, 1, 0])
    found = extract(Computes(other), task)
    assert found.equivalent and found.states == 3
    assert sorted(found.output, key=str) == [0, 1, None]


def test_what_a_network_does_after_forbidden_symbols_is_not_learned():
    task = Automaton([[1, 0], [0, 1]], [0, 1], weights=[[1, 1], [1, 0]])
    wild = Automaton([[1, 0], [0, 2], [3, 4], [4, 2], [2, 3]], [0, 1, 1, 0, 1])
    found = extract(Computes(wild), task)
    assert found.equivalent and found.states == found.needed == 2
    machine = machine_of(found, task)
    place = [machine.states.index(state) for state in task.states]
    assert (machine.drawable[place] == task.drawable).all()


def test_a_state_after_which_nothing_is_asked_for_keeps_its_symbols():
    task = Automaton([[0, 1], [2, 2], [2, 2]], [0, 1, 0], scored=[True, True, False])
    found = extract(Computes(task), task)
    assert found.equivalent and found.states == 2
    machine = machine_of(found, task)
    assert machine.states == task.states and (machine.delta == task.delta).all()
    assert machine.drawable.all() and machine.scored.tolist() == [True, True, False]


class NotFinite(Computes):
    """Logits that are NaN where its label is 1."""

    def step(self, symbols, state):
        logits, state = super().step(symbols, state)
        return logits.masked_fill(logits[:, 1:2] == 1, torch.nan), state


def test_logits_that_are_not_finite_are_a_label_of_their_own():
    found = extract(NotFinite(automaton_of("parity")), "parity")
    assert found.equivalent is False and found.difference.answer is None
    machine = machine_of(found, automaton_of("parity"))
    assert machine.labels == ("0", "1", "not-finite") and set(found.output) == {0, 2}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_module_without_a_task_is_extracted(algorithm):
    automaton = automaton_of("random-fsm")
    found = find_extraction(
        Reader(Computes(automaton), num_symbols=5, num_labels=5),
        budget=SearchBudget(AMPLE),
        algorithm=algorithm,
        random_words=100,
    )
    assert found.needed is None and found.equivalent is None and found.verdict == "5 states"
    assert equivalent(machine_of(found), minimise(automaton))


class Whole(nn.Module):
    """The last two symbols, added: a module without a state, as convolutions are."""

    def forward(self, symbols):
        before = nn.functional.pad(symbols, (1, 0))[:, :-1]
        return nn.functional.one_hot(symbols + before, 3).float()


def test_a_module_without_a_state_is_extracted():
    found = find_extraction(
        Reader(Whole(), num_symbols=2, num_labels=3), budget=SearchBudget(AMPLE)
    )
    assert found.states == 4 and found.reason == "tested"


def test_the_same_seed_gives_the_same_row_and_the_global_generator_is_left_alone():
    automaton = automaton_of("parity")
    before = random.getstate()
    rows = [
        extract(Computes(right_for(automaton, 12)), automaton, algorithm="kv", seed=seed)
        for seed in (1, 1)
    ]
    assert random.getstate() == before
    first, second = (vars(row) | {"seconds": 0} for row in rows)
    assert first == second


def test_words_that_tell_apart_do_so_for_every_pair_of_states():
    for task in ("s3", "tomita-6", "random-fsm", "gridworld"):
        automaton = minimise(automaton_of(task).with_uniform_weights())
        hypothesis = Hypothesis(automaton.delta, automaton.output, ())
        words = hypothesis.distinguishing_words
        rows = set()
        for state in range(automaton.num_states):
            reached = [state] * len(words)
            for place, word in enumerate(words):
                for symbol in word:
                    reached[place] = int(automaton.delta[reached[place], symbol])
            rows.add(tuple(automaton.output[reached].tolist()))
        assert len(rows) == automaton.num_states


def test_the_w_method_finds_what_short_and_random_words_do_not():
    """A lock that three of 17 symbols open: too many words of three symbols to read all of them."""
    delta = np.full((5, 17), 4)
    delta[[0, 1, 2], [3, 1, 4]] = [1, 2, 3]
    lock = Automaton(delta, [0, 0, 0, 1, 0])
    reader = Reader(Computes(lock), num_symbols=17, num_labels=2)
    found = find_extraction(reader, budget=SearchBudget(AMPLE), random_words=1, max_length=1)
    assert found.all_to == 2 and found.states == 5
    assert equivalent(machine_of(found), lock)
    assert found.extra_states == 0  # of depth 1, of which the start that is not left out takes one


def test_an_algorithm_that_is_not_known_is_refused():
    with pytest.raises(SettingsError, match="there are lstar and kv"):
        extract(Computes(automaton_of("parity")), "parity", algorithm="ttt")


def test_the_library_gives_the_machine_with_what_is_known_of_it():
    automaton = automaton_of("s3")
    extracted = st.extract(Computes(automaton), "s3", random_words=50)
    assert extracted.found.equivalent and extracted.machine.symbols == automaton.symbols
    alone = st.extract(Computes(automaton), num_symbols=6, num_labels=6, random_words=50)
    assert alone.found.needed is None and equivalent(alone.machine, automaton)
    with pytest.raises(SettingsError, match="give a task, or else num_symbols"):
        st.extract(Computes(automaton), num_symbols=6)


@pytest.fixture(scope="module")
def parity(tmp_path_factory):
    return parity_run(tmp_path_factory.mktemp("runs") / "exact")


@pytest.fixture
def run_folder(parity, tmp_path):
    """A copy of it, without evidence."""
    return shutil.copytree(parity, tmp_path / "exact")


QUICK = ["--random-words", "50", "--length", "50"]


def test_extract_says_that_the_machine_is_the_tasks_and_writes_it(run_folder, tmp_path, capsys):
    dot, yaml = tmp_path / "machine.dot", tmp_path / "machine.yaml"
    assert command(["extract", str(run_folder), "--out", str(dot), *QUICK]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "2 states, by L*; the task needs 2" in printed.out
    assert "equivalent to the task" in printed.out
    assert equivalent(load_task(str(dot)).automaton, automaton_of("parity"))
    (row,) = Run.open(run_folder).evidence(Extraction)
    assert row.evidence.equivalent and row.replica == 0
    (row,) = Run.open(run_folder).evidence(MyhillNerode)
    assert row.evidence.exact.compression_precision == 1.0
    assert "keeps apart  compression precision 1.00, distinction precision 1.00" in printed.out
    assert command(["extract", str(run_folder), "--out", str(yaml), *QUICK]) == 0
    capsys.readouterr()
    again = load_task(str(yaml))
    assert equivalent(again.automaton, automaton_of("parity"))
    assert command(["show", str(yaml)]) == 0
    assert "The machine that bilinear computes" in capsys.readouterr().out


def test_extract_shows_the_shortest_word_that_is_answered_wrongly(run_folder, capsys):
    assert command(["extract", str(run_folder), "--replica", "1", "--algorithm", "kv", *QUICK]) == 0
    printed = " ".join(capsys.readouterr().out.split())  # however wide the terminal is
    assert "not equivalent to the task; the shortest word: symbol 2 of 1 0: " in printed
    assert "the answer is 0, and 1 is right" in printed


def test_no_machine_is_equivalent_where_an_evaluation_has_a_wrong_answer(run_folder, capsys):
    run = Run.open(run_folder)
    run.evaluate([60], num_words=5, seed=3)
    (row,) = rows_in(run_folder, "eval.jsonl")
    append_rows(run_folder, "eval.jsonl", [row | {"first_error": 57}, row | {"first_error": 58}])
    assert command(["extract", str(run_folder), *QUICK]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "the network is not equivalent to the task" in printed
    assert "symbol 57 of a word of 60 is answered wrongly (5 words, seed 3)" in printed
    assert command(["extract", str(run_folder), "--json", *QUICK]) == 0
    (found,) = json.loads(capsys.readouterr().out)["replicas"]
    assert found["equivalent"] is False and found["fails_at"] == 57
    assert (found["verdict"], found["difference"]) == ("differs", None)


def test_extract_prints_json_with_the_documented_keys(run_folder, capsys):
    assert command(["extract", str(run_folder), "--all", "--json", *QUICK]) == 0
    content = json.loads(capsys.readouterr().out)
    assert set(content) == documented("extract --json")
    right, wrong = content["replicas"]
    assert set(right) == documented("A replica in extract --json")
    assert right["difference"] is right["fails_at"] is None and right["verdict"] == "equivalent"
    assert wrong["fails_at"] == wrong["difference"]["position"] == 2
    assert wrong["difference"]["prefix"] == ["1", "0"]
    assert set(wrong["machine"]) >= {"kind", "states", "start"}


def test_extract_refuses_what_it_cannot_write_before_it_learns(run_folder, capsys, tmp_path):
    assert command(["extract", str(run_folder), "--out", "machine.txt"]) == 1
    assert "must end in .yaml or in one of .aut, .dot" in capsys.readouterr().err
    assert command(["extract", str(run_folder), "--format", "kiss2"]) == 1
    assert "name it with --out" in capsys.readouterr().err
    assert command(["extract", str(run_folder), "--format", "kiss2", "--out", "m.dot"]) == 1
    assert "must end in .kiss2" in capsys.readouterr().err
    assert command(["extract", str(run_folder), "--format", "kiss", "--out", "m.dot"]) == 1
    assert "Did you mean 'kiss2'?" in capsys.readouterr().err
    assert command(["extract", str(run_folder), "--all", "--out", "machine.dot"]) == 1
    assert "take one machine" in capsys.readouterr().err
    nowhere = str(tmp_path / "nowhere" / "machine.dot")
    assert command(["extract", str(run_folder), "--out", nowhere, *QUICK]) == 1
    assert "there is no folder" in capsys.readouterr().err
    drawing = str(tmp_path / "nowhere" / "machine.svg")
    assert command(["extract", str(run_folder), "--plot", drawing, *QUICK]) == 1
    assert "--plot" in capsys.readouterr().err
    assert not (run_folder / "evidence.jsonl").exists()


def test_where_nothing_was_learned_no_machine_is_spoken_of(run_folder, capsys):
    assert command(["extract", str(run_folder), "--words", "3", *QUICK]) == 0
    printed = capsys.readouterr().out
    assert "none was learned: as many words were read as the cap allows" in printed
    assert "hypothesis" not in printed and "words, of up to 1 symbol\n" in _single_spaced(printed)


def test_metrics_that_no_time_was_left_for_are_not_printed_as_dashes():
    subject = Subject(Computes(automaton_of("parity")), "parity")
    (facts,) = find_myhill_nerode(subject, budget=SearchBudget(0.0)).lines(subject.automaton)
    assert facts.rows == [("keeps apart", "not measured: the budget was spent")]


def test_an_interrupt_keeps_the_machine_that_was_found(run_folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("statetrack.evidence.nerode_scores.find_myhill_nerode", interrupted)
    assert command(["extract", str(run_folder), "--json", *QUICK]) == 130
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "interrupted\n")
    assert [row.kind for row in Run.open(run_folder).evidence()] == ["extraction"]


def test_words_that_a_run_is_known_to_fail_on_are_asked(run_folder, capsys):
    run = Run.open(run_folder)
    outcome = run.selected
    run.add_evidence(worst_case_of(Failure((), (1,), 3, 1, 0)), outcome)
    assert run.failures(outcome) == (Failure((), (1,), 3, 1, 0),)
    run.add_evidence(exhaustive_of(failure=None, reason="time"), outcome)
    run.add_evidence(worst_case_of(Failure((), (0,), 9, 1, 0)), outcome, "flip-flop")
    assert run.failures(outcome) == (Failure((), (1,), 3, 1, 0),)
    assert run.failures(run.summary.of(1)) == ()


def _single_spaced(text):
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "model", "states"),
    [
        ("tomita-1", "gru", 2),
        ("tomita-3", "lstm", 5),
        ("tomita-4", "gru", 4),
        ("tomita-5", "lstm", 4),
        ("s3", "gru", 6),
        ("modular-addition", "lstm", 5),
        ("random-fsm:states=18,symbols=2", "gru", 18),
    ],
)
def test_machines_of_trained_networks_are_those_of_their_targets(task, model, states):
    """The bar of TAYSIR 2023: machines of 2 to 18 states at error 0 on regular targets."""
    loaded = load_task(task)
    network = st.make_model(model, loaded, hidden=32)
    for _ in st.train(network, loaded, steps=1500, lrs=[5e-3], train_length="1-30"):
        pass
    for algorithm in ALGORITHMS:
        # some are wrong on longer words that repeat a short one, although right on random ones
        found = extract(network, loaded, algorithm=algorithm, max_length=15)
        assert found.equivalent, found
        assert found.states == states
