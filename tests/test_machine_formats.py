"""Files of machines in every format: what is read, what is written, and what is refused."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from aalpy.utils import load_automaton_from_file
from automata.fa.dfa import DFA
from hypothesis import given, settings
from hypothesis import strategies as st

from statetrack.cli.app import run as command
from statetrack.errors import TaskError
from statetrack.sources import (
    MACHINE_FORMATS,
    Automaton,
    automaton_of,
    formats,
    minimise,
    reachable,
    write_machine,
)
from statetrack.spec import list_tasks, load_task
from tests.references.reading import read_machine
from tests.refusing import message_of

FORMATS = list(MACHINE_FORMATS)


def machine(form, text, **how):
    """The automaton of a text."""
    return automaton_of(MACHINE_FORMATS[form].read(text), **how)


def answers(automaton, word):
    """The labels after each symbol of a word written with spaces, joined by spaces."""
    symbols = [automaton.symbols.index(name) for name in word.split()]
    return " ".join(automaton.labels[label] for label in automaton.labels_of([symbols])[0])


def refused(form, text):
    """The message with which a text is refused."""
    return message_of(machine, form, text)


def assert_same(one, other):
    """Two minimal machines have the same symbols, used labels and answers, at the start too."""
    assert sorted(one.symbols) == sorted(other.symbols)
    assert one.num_states == other.num_states
    order = [other.symbols.index(name) for name in one.symbols]
    pairs = {(one.start, other.start)}
    for here, there in (waiting := list(pairs)):
        assert one.labels[one.output[here]] == other.labels[other.output[there]]
        for pair in zip(one.delta[here].tolist(), other.delta[there, order].tolist(), strict=True):
            if pair not in pairs:
                pairs.add(pair)
                waiting.append(pair)
    assert len(pairs) == one.num_states


# --- round trips ---

NAMES = ["a", "b", "0", "1", "10", "a.b", "a.b.c", "a.", "a.*", "*", "_x002A_", "_x5F_", "tau", "i"]
NAMES += ['"', "\\", "\\n", "\\0", "a/b", "/", "//", "|", "{x}", "<b>", "<eps>", "ε", "&amp;", "'"]
NAMES += [
    "é",
    "-",
    "yes",
    "no",
    "missing",
    "empty",
    "~2",
    "a,b",
    "(a,b)",
    "#",
    "#@",
    "->",
    ";",
    "]",
]


@st.composite
def machines(draw):
    """Small automata with names that some format has a use for."""
    num_symbols, num_states = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    states = st.integers(0, num_states - 1)
    row = st.lists(states, min_size=num_symbols, max_size=num_symbols)
    delta = np.array(draw(st.lists(row, min_size=num_states, max_size=num_states)))
    kept = np.flatnonzero(reachable(delta, 0))
    place = np.full(num_states, -1)
    place[kept] = np.arange(len(kept))
    names = st.lists(
        st.sampled_from(NAMES), min_size=num_symbols, max_size=num_symbols, unique=True
    )
    labels = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    output = [draw(st.integers(0, len(labels) - 1)) for _ in kept]
    return Automaton(place[delta[kept]], output, symbols=draw(names), labels=labels)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=15, deadline=None)
@given(automaton=machines())
def test_a_machine_that_is_written_and_read_is_the_same(form, automaton):
    again = machine(form, write_machine(automaton, form))
    assert_same(minimise(automaton), again)
    assert machine(form, write_machine(again, form)).fingerprint() == again.fingerprint()


def test_every_small_shipped_task_is_written_and_read():
    tasks = [task for _, task in list_tasks() if not isinstance(task, Exception)]
    small = [t.automaton for t in tasks if t.has_automaton and t.automaton.num_states <= 40]
    assert len(small) > 20
    for automaton in small:
        if automaton.all_scored:
            again = machine("kiss2", write_machine(automaton, "kiss2"))
            assert_same(minimise(automaton.with_uniform_weights()), again)


FOLDER = os.environ.get("STATETRACK_MACHINES")


@pytest.mark.skipif(not FOLDER, reason="STATETRACK_MACHINES names no folder of machines")
@pytest.mark.parametrize("path", sorted(Path(FOLDER or ".").glob("*.dot")), ids=lambda p: p.name)
def test_a_folder_of_machines_goes_through_every_format_unchanged(path):
    automaton = read_machine(path)
    for form in FORMATS:
        again = machine(form, write_machine(automaton, form))
        assert again.fingerprint() == automaton.fingerprint(), form


def test_symbols_that_are_seldom_drawn_and_labels_that_are_not_asked_for_are_written():
    given_ = Automaton(
        [[1, 0], [0, 1]], [0, 1], weights=[[1, 0], [1, 1]], scored=[True, False], labels=["-", "x"]
    )
    again = machine("dot", write_machine(given_, "dot"))
    assert answers(again, "1 0 0") == "- -- -"


@pytest.mark.parametrize("name", ["s3", "parity", "tomita-3"])
def test_aalpy_reads_the_dot_that_is_written(name, tmp_path):
    automaton = load_task(name).automaton
    path = tmp_path / "machine.dot"
    path.write_text(write_machine(automaton, "dot"))
    moore = load_automaton_from_file(path, "moore")
    rng = np.random.default_rng(0)
    for word in rng.integers(0, automaton.num_symbols, (20, 12)):
        read = [_as_aalpy(automaton.symbols[symbol]) for symbol in word]
        said = moore.execute_sequence(moore.initial_state, read)
        labels = [automaton.labels[label] for label in automaton.labels_of([word])[0]]
        assert said == list(map(_as_aalpy, labels))


def _as_aalpy(name):
    """The loader of AALpy makes numbers of names that are some."""
    return int(name) if name.isdigit() else name


def test_names_that_graphviz_has_a_use_for_are_escaped():
    automaton = Automaton([[1, 0], [0, 1]], [1, 0], symbols=['"', "\\"], labels=["a|b", "{}"])
    text = write_machine(automaton, "dot")
    assert '[label="\\""]' in text and '[label="\\\\"]' in text and '|a\\|b"' in text


def test_a_range_of_letters_cannot_be_a_symbol_of_jflap():
    automaton = Automaton([[0]], symbols=["[a-c]"])
    with pytest.raises(TaskError, match="a range of letters to JFLAP: write another format"):
        write_machine(automaton, "jff")
    assert machine("aut", write_machine(automaton, "aut")).symbols == ("[a-c]",)


def test_a_machine_that_would_be_too_large_to_read_is_not_written():
    line = np.minimum(np.arange(1, 1_001), 999)
    large = Automaton(np.stack([line, np.zeros_like(line)] + [line] * 199, axis=1))
    with pytest.raises(TaskError, match="at most 200,000 transitions"):
        write_machine(large, "aut")


# --- KISS2 ---

KISS2 = """# a controller
.i 2
.o 1
.p 5
.s 2
.r idle
0- idle idle 0
10 idle busy -
11 idle idle 1
-0 busy idle 0   # two vectors
-1 busy busy 1
.e
"""


def test_kiss2_has_vectors_of_bits_for_symbols_and_bits_as_written_for_labels():
    automaton = machine("kiss2", KISS2)
    assert automaton.symbols == ("00", "01", "10", "11")
    assert set(automaton.labels) == {"0", "1", "-"}
    assert answers(automaton, "01 11 10 01 10 10") == "0 1 - 1 0 -"


def test_rows_that_a_controller_lacks_are_missing_and_its_first_row_starts_without_r():
    rows = "0 a b 1\n1 b a 0\n0 b b 1\n"
    automaton = machine("kiss2", f".i 1\n.o 1\n{rows}.e")
    assert answers(automaton, "0 0 1 1 0") == "1 1 0 missing missing"
    assert answers(machine("kiss2", rows, missing="stay"), "1 0") == "missing 1"


def test_a_row_of_every_state_holds_in_each_and_one_to_any_state_is_missing():
    automaton = machine("kiss2", "1 * a 0\n0 a b 1\n0 b * 1\n")
    assert answers(automaton, "0 1 0 0 1") == "1 0 1 missing missing"


def test_many_input_bits_are_taken_together_as_rows_tell_them_apart():
    automaton = machine("kiss2", "1---------- a b 1\n01--------- a a 0\n----------1 b a 0\n")
    assert set(automaton.symbols) == {
        "1---------1",
        "1---------0",
        "01--------1",
        "01--------0",
        "00--------1",
    }
    assert answers(automaton, "1---------0 00--------1 01--------0") == "1 0 0"


def test_named_vectors_are_the_symbols_and_named_bits_the_labels():
    text = "#@ symbol 0 coin\n#@ symbol 1 push\n#@ label 1 beep\n0 a a 1\n1 a a 0\n"
    automaton = machine("kiss2", text)
    assert automaton.symbols == ("coin", "push") and answers(automaton, "push coin") == "0 beep"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no row"),
        ("0 a a\n", "line 1: has 3 words"),
        ("0 a a 1\n00 a a 1\n", "line 2: '00' has 2 bits, but line 1 says 1"),
        (".i 2\n0 a a 1\n", "line 2: '0' has 1 bits, but line 1 says 2"),
        ("2 a a 1\n", "line 1: '2' has other signs"),
        (".i x\n", "line 1: the number of inputs is 'x'"),
        (".i 1\n.i 1\n", "line 2: `.i` appears twice"),
        (".frob 1\n", "line 1: '.frob' is not known"),
        (".p 3\n0 a a 1\n.e", "line 1: `.p 3`, but there are 1 rows: is the file whole?"),
        (".s 3\n0 a a 1\n.e", "line 1: `.s 3`, but there are 1 states"),
        (".r b\n0 a a 1\n", "line 1: the start 'b' is in no row"),
        ("0 a a 1\n.e\n1 a a 1\n", "line 3: '1 a a 1' stands behind the end, line 2"),
        ("0 a a 1\n0 a b 1\n", "line 2: state 'a' already has a transition for '0'"),
        ("0 a * 1\n", "line 1: every row leads to `*`"),
        (
            ".r b\n0 a b 1\n",
            "line 2: no transition leaves the start, 'b': is another state the start?",
        ),
        ("#@ symbol 0\n", "line 1: `#@` must be followed by"),
        ("#@ symbol 0 a\n#@ symbol 0 b\n", "line 2: '0' or 'b' has been named before"),
        ("#@ symbol 0 a\n1 a a 1\n", "line 2: no vector of '1' is named"),
        ("\n".join(f"{'-' * n}1{'-' * (29 - n)} a a {n % 2}" for n in range(30)), "more sets"),
    ],
)
def test_a_controller_that_cannot_be_read_is_refused_with_its_line(text, message):
    assert message in refused("kiss2", text)


# --- Aldebaran ---

AUT = 'des (0, 3, 2)\n(0, "coin / beep", 1)\n(1, "coin/beep", 1)\n(1, push/click, 0)\n'


def test_labels_of_two_texts_are_those_of_a_mealy_machine():
    automaton = machine("aut", AUT)
    assert answers(automaton, "coin coin push push") == "beep beep click missing"


def test_states_are_labels_where_a_transition_has_no_output():
    automaton = machine("aut", 'des (1, 3, 3)\n(1, "a", 0)\n(0, "b/c", 2)\n(2, "a", 1)\n')
    assert automaton.symbols == ("a", "b/c")
    assert answers(automaton, "a b/c a a a") == "0 2 1 0 missing"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: nothing is there"),
        ("0 1 a\n", "line 1: '0 1 a' is not `des"),
        ("des (0, 2, 1)\n(0, a, 0)\n", "line 1: 2 transitions are said to be there: 1 are"),
        ("des (2, 1, 2)\n(0, a, 0)\n", "line 1: the first state is 2"),
        ("des (0, 1, 2)\n(0, a, 2)\n", "line 2: state 2, but line 1 says that there are 2"),
        ("des (0, 1, 1)\n(0, a)\n", "line 2: '(0, a)' is no transition"),
        ("des (0, 1, 1)\n0 a 0\n", "line 2: '0 a 0' is no transition"),
        ('des (0, 1, 1)\n(0, "a, 0)\n', "line 2: the label '\"a' must be text between two quotes"),
        ("des (0, 1, 1)\n(0, i, 0)\n", "line 2: the hidden step 'i'"),
        ("des (0, 2, 2)\n(0, a, 0)\n(0, a, 1)\n", "line 3: state '0' already has a transition"),
        (
            "des (0, 99999999999999999999, 2)\n",
            "the number of transitions is '99999999999999999999'",
        ),
        ("des (0, 0, 1)\n", "line 1: a machine without transitions has no symbols"),
    ],
)
def test_a_transition_system_that_cannot_be_read_is_refused_with_its_line(text, message):
    assert message in refused("aut", text)


# --- AT&T ---


def test_a_transducer_is_a_mealy_machine():
    automaton = machine("fst", "0\t1\tcoin\tbeep\n1 1 coin beep 0.0\n1 0 push click\n0\n1 0\n")
    assert answers(automaton, "coin coin push push") == "beep beep click missing"


def test_an_acceptor_says_whether_its_states_are_final():
    automaton = machine("fst", "even odd 1\nodd even 1\neven even \\0\nodd odd \\0\nodd\n")
    assert answers(automaton, "1 0 1 1") == "yes yes no yes"


def test_the_acceptor_of_another_library_says_the_same():
    rows = "s t a\nt s a\ns s b\nt u b\nu u a\nt\nu\n"
    ours = machine("fst", rows)
    delta = {"s": {"a": "t", "b": "s"}, "t": {"a": "s", "b": "u"}, "u": {"a": "u"}}
    theirs = DFA(
        states={"s", "t", "u"},
        input_symbols={"a", "b"},
        transitions=delta,
        initial_state="s",
        final_states={"t", "u"},
        allow_partial=True,
    )
    rng = np.random.default_rng(1)
    for word in rng.integers(0, 2, (50, 6)):
        text = ["ab"[symbol] for symbol in word]
        last = answers(ours, " ".join(text)).split()[-1]
        assert (last == "yes") == theirs.accepts_input("".join(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no transition"),
        ("0 1 a b 0 7\n", "line 1: has 6 columns"),
        ("0 1 a\n1 0 a b\n", "line 2: has 4 columns where others have 3"),
        ("0 1 a b 0.5\n", "line 1: the weight '0.5': weights are not read"),
        ("0 1 a b\n1 inf\n", "line 2: the weight 'inf'"),
        ("0 1 a b\n1 x\n", "line 2: 'x' stands where a weight does"),
        ("0 1 <eps> b\n", "line 1: '<eps>' is the empty word"),
        ("0 1 a 0\n", "line 1: '0' is the empty word"),
        ("0 1 a b\n0 1 <eps> b\n", "line 2: '<eps>' is the empty word"),
        ("0 1 a b\n1 0 a b\n1\n", "line 1: state '0' is not final and others are"),
        ("0 1 a b\n7\n", "line 2: the final state '7' has no transition"),
        ("0 1 a b\n0 0 a b\n", "line 2: state '0' already has a transition for 'a'"),
    ],
)
def test_a_transducer_that_cannot_be_read_is_refused_with_its_line(text, message):
    assert message in refused("fst", text)


# --- JFLAP ---


def jff(kind, body):
    """A file of JFLAP 7."""
    head = '<?xml version="1.0" encoding="UTF-8" standalone="no"?><!--Created with JFLAP 7.1.-->'
    return (
        f"{head}<structure>&#13;\n<type>{kind}</type>\n<automaton>\n{body}</automaton></structure>"
    )


STATES = """<state id="0" name="q0"><x>1.0</x><y>2.0</y><initial/></state>
<state id="1" name="q1"><x>1.0</x><y>2.0</y><final/></state>
"""


def transition(source, target, read, more=""):
    """A transition on a line of its own."""
    return (
        f"<transition><from>{source}</from><to>{target}</to><read>{read}</read>{more}"
        "</transition>\n"
    )


def test_a_finite_automaton_of_jflap_accepts_in_final_states():
    body = STATES + transition(0, 1, "a") + transition(1, 0, "[a-c]") + transition(0, 0, "b")
    automaton = machine("jff", jff("fa", body))
    assert automaton.symbols == ("a", "b", "c")
    assert answers(automaton, "b a c a b c a") == "no yes no yes no no no"


def test_a_mealy_and_a_moore_machine_of_jflap_say_their_outputs():
    steps = transition(0, 1, "a", "<transout>x</transout>") + transition(1, 0, "a", "<transout/>")
    assert answers(machine("jff", jff("mealy", STATES + steps)), "a a a") == "x empty x"
    moore = STATES.replace("<final/>", "<output>one</output>")
    moore = moore.replace("<initial/>", "<initial/><output>nil</output>")
    steps = transition(0, 1, "a") + transition(1, 0, "a")
    assert answers(machine("jff", jff("moore", moore + steps)), "a a a") == "one nil one"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<structure>", "line 1: this is not XML: no element found"),
        ("", "line 1: this is not XML"),
        ("<html/>", "line 1: a file of JFLAP begins with <structure>, not <html>"),
        (jff("pda", ""), "line 1: a pushdown automaton is not read"),
        (jff("turing", ""), "a Turing machine is not read"),
        (jff("mealy2", ""), "the type 'mealy2' is not read"),
        (jff("fa", STATES), "line 3: a machine without transitions"),
        (jff("fa", STATES + transition(0, 1, "")), "line 6: a transition that reads nothing"),
        (jff("fa", STATES + transition(0, 7, "a")), "line 6: <to> of a transition: '7' is the id"),
        (jff("fa", STATES + STATES), "line 6: a second state with the id '0'"),
        (jff("fa", STATES.replace("<initial/>", "") + transition(0, 1, "a")), "0 states are"),
        (jff("fa", STATES.replace("<final/>", "<initial/>") + transition(0, 1, "a")), "2 states"),
        (
            jff("fa", STATES + transition(0, 1, "a") + transition(0, 0, "a")),
            "line 7: state '0' alr",
        ),
        (jff("fa", STATES + "<transition/>"), "line 6: <from> of a transition: is missing"),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "line 1: the document type 'a': remove"),
        ("<a>" * 30 + "</a>" * 30, "elements stand more than 20 deep"),
    ],
)
def test_a_file_of_jflap_that_cannot_be_read_is_refused_with_its_line(text, message):
    assert message in refused("jff", text)


# --- statecharts ---

SCXML = """<?xml version="1.0"?>
<scxml xmlns="http://www.w3.org/2005/07/scxml" version="1.0" initial="off"
       xmlns:e="http://editor.example">
  <e:canvas zoom="2"/>
  <state id="off"><transition event="switch" target="on"/></state>
  <state id="on">
    <transition event="switch error.deep" target="off"/>
    <transition event="error" target="broken"/>
  </state>
  <final id="broken"/>
</scxml>
"""


def test_a_chart_without_outputs_says_its_states_and_stays_on_other_events():
    automaton = machine("scxml", SCXML)
    assert automaton.symbols == ("error", "error.deep", "switch")
    assert answers(automaton, "error switch error.deep switch error switch") == (
        "off on off on broken broken"
    )


def test_a_general_event_matches_those_that_begin_so_and_the_first_in_the_file_is_taken():
    text = SCXML.replace(' error.deep"', '"').replace(
        '"off"><', '"off"><transition event="error.deep" target="off"/><'
    )
    assert answers(machine("scxml", text), "switch error.deep") == "on broken"


def test_a_chart_says_what_transitions_send_or_log_or_what_states_do_on_entry():
    mealy = SCXML.replace(
        'target="on"/>', "target=\"on\"><log expr=\"'click'\"/><send event='b'/></transition>"
    )
    assert answers(machine("scxml", mealy), "switch error.deep error") == "click,b - -"
    moore = SCXML.replace('<state id="on">', '<state id="on"><onentry><log expr="1"/></onentry>')
    assert answers(machine("scxml", moore), "error switch switch") == "- 1 -"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<final id", "<parallel id", "line 10: <parallel>: parallel states are not read"),
        ('<state id="on">', '<state id="on"><state id="x"/>', "line 6: <state>: states inside"),
        ('<state id="on">', '<state id="on"><history id="x"/>', "line 6: <history>: history is"),
        ('event="error"', 'event="error" cond="x"', "line 8: conditions (cond) are not read"),
        ('event="error"', "", "line 8: a transition without an event"),
        ('target="broken"', 'target="lost"', "line 8: target='lost' is the id of no state"),
        ('event="error"', 'event="switch"', "line 8: state 'on' already has a transition for"),
        ('id="broken"', 'id="on"', "line 10: a second state with the id 'on'"),
        ('initial="off"', 'initial="no"', "line 2: initial='no' is the id of no state"),
        ("<final", "<script>x</script><final", "line 10: <script>: scripts are not read"),
        ('"broken"/>', '"broken"><assign/></transition>', "line 8: <assign> is not read"),
        (
            '"broken"/>',
            '"broken"><send event="a" delay="1s"/></transition>',
            "line 8: a <send> with",
        ),
    ],
)
def test_a_chart_that_is_not_flat_is_refused_with_its_line(old, new, message):
    assert old in SCXML
    assert message in refused("scxml", SCXML.replace(old, new, 1))


def test_a_chart_says_things_in_one_way():
    text = SCXML.replace('target="on"/>', 'target="on"><log expr="1"/></transition>')
    text = text.replace('<state id="on">', '<state id="on"><onentry><log expr="1"/></onentry>')
    assert "line 5: a transition says '1' and states have outputs too" in refused("scxml", text)


XSTATE = """{"id": "light", "initial": "off", "on": {"RESET": ".off"}, "states": {
  "off": {"on": {"SWITCH": "on"}},
  "on": {"on": {"SWITCH": [{"target": "off"}], "mouse.*": "broken", "*": "off", "RESET": null}},
  "broken": {"type": "final"}
}}
"""


def test_a_machine_of_xstate_stays_on_other_events_and_knows_patterns():
    text = XSTATE.replace('"SWITCH": "on"', '"SWITCH": "on", "mouse.up": {}, "POKE": {}')
    automaton = machine("xstate", text)
    assert answers(automaton, "POKE SWITCH POKE SWITCH RESET mouse.up RESET") == (
        "off on off on on broken broken"
    )


def test_a_machine_of_xstate_says_actions_entries_or_meta():
    mealy = XSTATE.replace('"target": "off"', '"target": "off", "actions": ["a", {"type": "b"}]')
    assert answers(machine("xstate", mealy), "SWITCH SWITCH RESET") == "- a,b -"
    entry = XSTATE.replace('"off": {', '"off": {"entry": "dark", ')
    assert answers(machine("xstate", entry), "RESET SWITCH") == "dark -"
    meta = XSTATE.replace('"off": {', '"off": {"entry": "dark", "meta": {"output": 0}, ')
    assert answers(machine("xstate", meta), "RESET SWITCH") == "0 -"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (XSTATE, "[1]", "holds no machine of XState"),
        (XSTATE, '{"a": 1}', "holds no machine of XState"),
        (XSTATE, '{"a": 1,\n"b" 2}', "line 2: this is not JSON"),
        (XSTATE, '{"a": 1,\n}', "this is not JSON"),  # in line 1 or 2, by versions of Python
        (XSTATE, "[" * 100_000, "stand too deep inside each other"),
        (XSTATE, '{"initial": NaN}', "NaN is no number of JSON"),
        (XSTATE, f'{{"initial": {"9" * 5000}}}', "a number of 5,000 digits: 300 are the most"),
        ('"initial": "off"', '"initial": "no"', "initial: '\"no\"' is no state"),
        ('"off": {', '"off": {"states": {"x": {}}, ', "states.off.states: states inside states"),
        ('"off": {', '"off": {"always": "on", ', "states.off.always: transitions without an event"),
        ('"off": {', '"off": {"after": {"100": "on"}, ', "states.off.after: delays are not read"),
        ('"off": {', '"off": {"frob": 1, ', "states.off.frob: is not known"),
        ('"off": {', '"off": {"type": "parallel", ', "states.off.type: '\"parallel\"' is not read"),
        ('"target": "off"', '"target": "lost"', "states.on.on.SWITCH: '\"lost\"' is no state"),
        ('"target": "off"', '"guard": "x"', "states.on.on.SWITCH.guard: guards are not read"),
        ('[{"target": "off"}]', '["on", "off"]', "states.on.on.SWITCH: has 2 transitions"),
        ('"broken": {', '"on": {', "the key 'on' appears twice"),
        ('"SWITCH": "on"', '"SWITCH": 5', "states.off.on.SWITCH: '5' is no transition"),
    ],
)
def test_a_machine_of_xstate_that_is_not_flat_is_refused_with_its_path(old, new, message):
    assert old in XSTATE
    assert message in refused("xstate", XSTATE.replace(old, new, 1))


# --- the commands ---


@pytest.mark.parametrize("form", FORMATS)
def test_gen_writes_a_machine_that_is_a_task_at_once(form, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["gen", "parity", "--format", form]) == 0
    written = capsys.readouterr().out
    path = re.search(r"written to (\S+)", written)[1]
    assert_same(load_task("parity").automaton, load_task(path).automaton)
    assert command(["gen", "parity", "--format", form]) == 1
    assert "already there, and nothing is written over" in capsys.readouterr().err
    assert command(["gen", path, "--format", form, "--out", f"again{Path(path).suffix}"]) == 0


def test_gen_writes_machines_of_several_tasks_into_a_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command("gen parity s3 --format dot --out of/all".split()) == 0
    assert sorted(path.name for path in Path("of/all").iterdir()) == ["parity.dot", "s3.dot"]
    Path("taken").write_text("", encoding="utf-8")
    assert command("gen parity s3 --format dot --out taken".split()) == 1
    assert "taken: cannot be made: File exists: choose another" in capsys.readouterr().err


def test_gen_of_a_machine_refuses_what_belongs_to_datasets(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for line, message in (
        ("gen parity --format dot --samples 5", "--samples: --format dot writes a machine"),
        ("gen --format dot", "name a task"),
        ("gen parity s3 --format dot --out x.dot", "name one task"),
        ("gen parity --format kiss2 --out x.dot", "must end in .kiss2 or .kiss"),
        ("gen parity --format dot --out no/x.dot", "there is no folder no"),
        ("gen modular-arithmetic-with-brackets --format dot", "has no automaton"),
        ("gen parity --format kis2", "kis2"),
    ):
        assert command(line.split()) in (1, 2)
        assert message in " ".join(capsys.readouterr().err.split()), line
    assert list(tmp_path.iterdir()) == []


def test_gen_says_what_a_file_of_a_machine_leaves_out(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tasks = [task for _, task in list_tasks() if not isinstance(task, Exception)]
    weighted = next(t for t in tasks if t.has_automaton and not t.automaton.uniform_weights)
    assert command(["gen", weighted.name, "--format", "aut", "--out", "x.aut"]) == 0
    assert "left out is how likely each symbol is drawn" in capsys.readouterr().err


def test_the_help_of_gen_and_extract_names_every_format_of_machines(capsys):
    for line in (["gen", "--help"], ["gen", "--format", "dot", "--help"], ["extract", "--help"]):
        assert command(line) == 0
        printed = capsys.readouterr().out
        assert all(re.search(rf"\b{form}\b", printed) for form in FORMATS)


TOY = """
from statetrack.sources import MachineText
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import Edge


def read(text):
    edges = [Edge(*line.split(), None, number) for number, line in enumerate(text.splitlines(), 1)]
    return MachineText(edges[0].source, edges, {edge.source: edge.source for edge in edges})


def write(automaton):
    return "".join(
        f"{state} {symbol} {automaton.states[target]}\\n"
        for state, row in zip(automaton.states, automaton.delta.tolist())
        for symbol, target in zip(automaton.symbols, row)
    )


MACHINE_FORMATS.register("toy")(MachineFormat((".toy",), read, write))
"""


def test_a_format_is_one_file_and_every_command_then_knows_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "toy.py").write_text(TOY)
    for name in ("_found", "_elsewhere"):
        monkeypatch.setattr(MACHINE_FORMATS, name, None)
    for name in ("_things", "_homes"):
        monkeypatch.setattr(MACHINE_FORMATS, name, dict(getattr(MACHINE_FORMATS, name)))
    places = [*formats.__path__, str(tmp_path)]
    monkeypatch.setattr(formats, "__path__", places)
    monkeypatch.setattr(formats.__spec__, "submodule_search_locations", places)
    monkeypatch.delitem(sys.modules, "statetrack.sources.formats.toy", raising=False)
    out = tmp_path / "parity.toy"
    assert command(["gen", "parity", "--format", "toy", "--out", str(out)]) == 0
    assert out.read_text() == "0 0 0\n0 1 1\n1 0 1\n1 1 0\n"
    again = machine("toy", out.read_text())
    assert again.fingerprint() == load_task("parity").automaton.fingerprint()
    sys.modules.pop("statetrack.sources.formats.toy")


# --- hostile files ---


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b" " * 100_000, id="spaces"),
        pytest.param(b"\0" * 1000, id="zeros"),
        pytest.param(bytes(range(256)), id="binary"),
        pytest.param("digraph { a -> b }".encode("utf-16"), id="utf-16"),
        pytest.param(b"{" * 100_000, id="brackets"),
        pytest.param(b'"' * 100_001, id="quotes"),
        pytest.param(b"<a>" * 100_000, id="elements"),
        pytest.param(b"\x1b]0;title\x07\x1b[31m", id="commands of a terminal"),
    ],
)
def test_what_is_no_machine_is_refused_in_one_printable_line_that_names_the_file(
    form, content, tmp_path
):
    path = tmp_path / f"hostile{MACHINE_FORMATS[form].endings[0]}"
    path.write_bytes(content)
    with pytest.raises(TaskError) as wrong:
        load_task(str(path))
    message = str(wrong.value)
    assert message.startswith(str(path)) and message.isprintable() and len(message) < 1000


@pytest.mark.parametrize("form", FORMATS)
def test_a_mark_of_the_byte_order_is_passed_over_and_a_file_that_is_too_large_is_not_read(
    form, tmp_path
):
    path = tmp_path / f"parity{MACHINE_FORMATS[form].endings[0]}"
    text = write_machine(load_task("parity").automaton, form)
    path.write_text(text, encoding="utf-8-sig")
    assert load_task(str(path)).automaton.num_states == 2
    with path.open("r+b") as file:
        file.truncate(200_000_000)
    with pytest.raises(TaskError, match="is larger than 16 MiB, the most that is read"):
        load_task(str(path))


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        (
            "jff",
            _bomb := "<!DOCTYPE l ["
            + "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 20))
            + "]><structure>&a19;</structure>",
            "line 1: the document type 'l'",
        ),
        ("scxml", _bomb, "line 1: the document type 'l'"),
        ("jff", '<!DOCTYPE l SYSTEM "file:///etc/passwd"><structure/>', "the document type 'l'"),
        (
            "scxml",
            "<scxml><state id='s'><transition event='" + "a." * 10**6 + "'/></state></scxml>",
            "1,000 and 30 are the most",
        ),
        (
            "scxml",
            "<scxml>"
            + "".join(f"<state id='s{n}'><transition event='e{n}'/></state>" for n in range(2000))
            + "</scxml>",
            "2,000 states with 2,000 events are too many",
        ),
        ("kiss2", "-------- a a 1\n" * 800, "line 782: more than 200,000 transitions"),
        ("aut", "des (0, 1, 1000000000)\n(0, a, 999999999)\n(0, a, 1)\n", "1 transitions are said"),
        ("fst", "0 1 a b\n" + "x" * 200_000, "line 2: has 200,000 characters"),
        ("dot", "digraph {" + "{" * 100_000, "deep inside each other"),
        ("dot", "digraph {" + "a->a;" * 450_000, "`->` stands there 450,000 times"),
        ("dot", "digraph {a->a" + " ;" * 500_000, "line 1: more than 200,040 names and signs"),
        ("dot", 'digraph {a->a [label="' + "a\\n" * 500_000 + '"]}', "1,500,000 characters"),
        ("dot", "digraph {a->a [label=<" + "<br/>" * 300_000 + ">]}", "1,500,000 characters"),
    ],
)
def test_a_file_that_would_take_long_to_read_is_refused_before(form, text, message):
    assert message in refused(form, text)


def test_names_of_a_file_cannot_command_a_terminal():
    text = 'digraph { a -> a [label="x\x1b[31m/\u202eb"]; a -> a [label="y/\x07"]; }'
    automaton = machine("dot", text)
    for name in (*automaton.symbols, *automaton.labels):
        assert name.isprintable()
