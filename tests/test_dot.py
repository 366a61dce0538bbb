"""Machines in the DOT language, in the dialects of other programs, against AALpy's own reader."""

import os
import random
import time
from pathlib import Path

import pytest
from aalpy.automata import MealyMachine
from aalpy.utils import load_automaton_from_file

from statetrack.errors import TaskError
from statetrack.sources import Automaton, MachineText, automaton_of, equivalent, minimise
from statetrack.sources.formats import dot
from statetrack.sources.formats._automata import names_of
from statetrack.sources.formats._text import Edge
from tests.references.reading import read_machine
from tests.refusing import message_of

TURNSTILE = """digraph turnstile {
s0 [label="s0"];
s1 [label="s1"];
s0 -> s1 [label="coin/open"];
s0 -> s0 [label="push/shut"];
s1 -> s1 [label="coin/open"];
s1 -> s0 [label="push/open"];
__start0 [label="", shape=none];
__start0 -> s0 [label=""];
}
"""
MOORE = """digraph g {
        __start0 [label="" shape="none"];
        __start0 -> A;
        A [shape="record", style="rounded", label="{ A | 0 }"];
        B [shape="record", style="rounded", label="{ B | 1 }"];
        A -> B [label="a"];
        A -> A [label="b"];
        B -> A [label="a"];
        B -> B [label="b"];
}
"""
ACCEPTOR = """digraph "odd" {
s0 [label=s0];
s1 [label=s1, shape=doublecircle];
s0 -> s1  [label=1];
s0 -> s0  [label=0];
s1 -> s0  [label=1];
s1 -> s1  [label=0];
__start0 [label="", shape=none];
__start0 -> s0  [label=""];
}
"""


def machine(text: str, **how: str) -> Automaton:
    """The automaton of a DOT text."""
    return automaton_of(dot.read(text), **how)


def answers(automaton: Automaton, word: str) -> list[str]:
    """The labels after each symbol of a word written with spaces."""
    symbols = [automaton.symbols.index(name) for name in word.split()]
    return [automaton.labels[label] for label in automaton.labels_of([symbols])[0]]


def refused(text: str, **how: str) -> str:
    """The message with which a DOT text is refused."""
    return message_of(machine, text, **how)


def body(lines: str) -> str:
    """A graph of these statements."""
    return f"digraph g {{\n{lines}\n}}\n"


def test_a_mealy_machine_answers_with_its_outputs():
    automaton = machine(TURNSTILE)
    assert answers(automaton, "push coin coin push push") == [
        "shut",
        "open",
        "open",
        "open",
        "shut",
    ]
    assert automaton.symbols == ("coin", "push")
    assert automaton.labels == ("open", "shut")


def test_a_mealy_state_is_split_by_output_and_the_start_is_one_of_the_parts():
    automaton = machine(TURNSTILE)
    assert automaton.states == ("s0@shut", "s1", "s0@open")
    assert minimise(automaton).num_states == automaton.num_states


def test_a_start_that_is_like_no_other_state_stays():
    automaton = machine(body('a -> b [label="x/1"]; b -> b [label="x/2"];'))
    assert automaton.states == ("a", "b@1", "b@2")
    assert answers(automaton, "x x x") == ["1", "2", "2"]


@pytest.mark.parametrize(
    "label",
    [
        '"coin/open"',
        '"coin / open"',
        '"coin/ open"',
        "coin/open",
        "<coin / open>",
        "<coin<br/>open>",
        r'"coin\nopen"',
        '"coin" + "/open"',
        '<<table border="0"><tr><td>coin</td><td>/</td><td>open</td></tr></table>>',
        "<<B>coin</B> &#47; open>",
    ],
)
def test_every_way_to_write_a_label_is_the_same_label(label):
    edges = "\n".join(
        f"s{source} -> s{target} [label={label.replace('coin', symbol).replace('open', output)}]"
        for source, symbol, target, output in [
            (0, "coin", 1, "open"),
            (0, "push", 0, "shut"),
            (1, "coin", 1, "open"),
            (1, "push", 0, "open"),
        ]
    )
    assert machine(body(edges)).fingerprint() == machine(TURNSTILE).fingerprint()


@pytest.mark.parametrize(
    "label",
    [
        "<a / x<br/>b / x>",
        r'"a / x\nb / x"',
        '"a/x\nb/x"',
        '"a,b / x"',
        '"a | b / x"',
        "<a | b<br/>x>",
        "<<table><tr><td>a / x</td></tr><tr><td>b / x</td></tr></table>>",
    ],
)
def test_one_arrow_may_have_several_transitions(label):
    over = "br" in label and "|" in label
    x, y = ("<a<br/>x>", "<b<br/>y>") if over else ('"a / x"', '"b / y"')
    automaton = machine(body(f"p -> q [label={label}]; q -> p [label={x}]; q -> q [label={y}];"))
    assert automaton.symbols == ("a", "b")
    assert answers(automaton, "a b a b") == ["x", "y", "x", "x"]


def test_an_output_of_several_lines_is_one_output():
    automaton = machine(body(r'p -> p [label="a / one\nanswer"]; p -> p [label="b / two"];'))
    assert automaton.labels == ("one_answer", "two")


def test_symbols_with_commas_in_brackets_are_not_lists():
    text = body('p -> p [label="SYN(V,V,0)/ACK+RST(ZERO,NEXT,0)"]; p -> p [label="a|b/B|C"];')
    assert machine(text).symbols == ("SYN(V,V,0)", "a|b")


def test_a_symbol_is_a_list_only_where_the_machine_is_more_whole_so():
    listed = body(
        'p -> q [label="0,1"]; q -> p [label=0]; q -> q [label=1]; q [shape=doublecircle]'
    )
    assert machine(listed).symbols == ("0", "1")
    pairs = body('p -> q [label="0,1"]; q -> p [label="0,1"]; q [shape=doublecircle]')
    assert machine(pairs).symbols == ("0,1",)


def test_the_slash_that_separates_is_the_one_that_leaves_fewer_gaps():
    outputs = body('p -> p [label="a/x/y"]; p -> q [label="b/z"]; q -> p [label="a/x/y"]; '
                   'q -> q [label="b/x/z"];')  # fmt: skip
    assert machine(outputs).symbols == ("a", "b")
    inputs = body('p -> p [label="GET/a/200"]; p -> p [label="GET/b/404"];')
    assert machine(inputs).symbols == ("GET/a", "GET/b")
    assert machine(inputs).labels == ("200", "404")


def test_a_slash_with_spaces_around_it_separates():
    text = body('p -> p [label="GET/a / 200/ok"]; p -> p [label="b / 404"];')
    assert machine(text).symbols == ("GET/a", "b")
    assert machine(text).labels == ("200/ok", "404")


def test_a_slash_that_could_be_either_is_refused_with_its_line():
    message = refused(body('p -> p [label="a/b/c"];\np -> p [label="d/e/f"];'))
    assert message.startswith("line 2: 'a/b/c' has several '/'")


def test_a_moore_machine_says_the_output_of_the_state_that_is_reached():
    for text in (
        MOORE,
        MOORE.replace("{ A | 0 }", "A|0").replace("{ B | 1 }", "B|1"),
        MOORE.replace("{ A | 0 }", "{<f0> A|<f1> 0}").replace("{ B | 1 }", "{<f0>B|<f1>1}"),
        MOORE.replace('"record"', "circle")
        .replace("{ A | 0 }", "A / 0")
        .replace("{ B | 1 }", "B / 1"),
        MOORE.replace('"record"', "circle")
        .replace("{ A | 0 }", r"A\n0")
        .replace("{ B | 1 }", r"B\n1"),
    ):
        assert answers(machine(text), "b a a a b") == ["0", "1", "0", "1", "1"]
        assert machine(text).fingerprint() == machine(MOORE).fingerprint()


def test_a_record_with_an_accepting_shape_is_a_moore_machine():
    text = MOORE.replace('shape="record", style="rounded", label="{ B | 1', 'shape="doublecircle", '
                         'style="rounded", label="{ B | 1')  # fmt: skip
    assert machine(text).fingerprint() == machine(MOORE).fingerprint()


def test_states_without_outputs_say_their_labels_and_several_may_say_the_same():
    text = body('p [label="N"]; q [label="A"]; r [label="N"]; __start0 -> p;'
                "p -> q [label=d]; q -> r [label=d]; r -> r [label=d];")  # fmt: skip
    assert answers(machine(text), "d d d") == ["A", "N", "N"]
    assert machine(body("p -> q [label=d]; q -> p [label=d]")).labels == ("p", "q")


def test_an_acceptor_says_yes_and_no():
    for text in (ACCEPTOR, ACCEPTOR.replace("shape=doublecircle", "peripheries=2")):
        assert answers(machine(text), "1 0 1 1") == ["yes", "yes", "no", "yes"]
        assert machine(text).labels == ("no", "yes")


def test_a_pushdown_automaton_is_its_finite_control():
    text = body('s0 [label="s0", shape=circle]; s1 [label="s1", shape=doublecircle];'
                's0 -> s1 [label="1"]; s0 -> s0 [label="( / push(()"]; s1 -> s0 [label="+"];'
                's1 -> s1 [label=") / pop(()"]; __start0 -> s0 [label=""];')  # fmt: skip
    automaton = machine(text)
    assert automaton.symbols == ("1", "(_/_push(()", ")_/_pop(()", "+")
    assert answers(automaton, "(_/_push(() 1 )_/_pop(() +") == ["no", "yes", "yes", "no"]


def test_the_start_is_where_an_arrow_from_nothing_leads_else_the_first_source():
    arrows = "p -> q [label=a]; q -> p [label=a];"
    assert machine(body(arrows)).states[0] == "p"
    assert machine(body(f"__start0 -> q; {arrows}")).states[0] == "q"
    assert machine(body(f"{arrows} i [shape=point]; i -> q;")).states[0] == "q"
    assert machine(body(f'"" -> q; {arrows}')).states[0] == "q"
    assert machine(body(f"__start0 -> q [label=<x<br/>y>]; {arrows}")).states[0] == "q"
    assert machine(body(f"node [shape=none]; {arrows}")).states[0] == "p"


def test_two_starts_are_refused_with_both_lines():
    message = refused(body("__start0 -> p;\n__start1 -> q;\np -> q [label=a];"))
    assert message == "line 3: a second start 'q': the first is 'p' in line 2"


def test_the_language_is_read_whole():
    text = r"""/* a comment
       of lines */ strict DiGraph "a \"name\"" {   // the rest is ignored
    # so is this line
    graph [rankdir=LR; fontsize=8] rankdir = LR size="8,5"
    node [shape = circle, style="filled"
          color=red] edge [fontname="x"]
    subgraph cluster_1 { label="states" { "state one" ; s2:n:ne } }
    "state one" -> s2:w [ label = "in \"1\" / o\\ut" , color = blue ; weight=2 ] [penwidth=1]
    s2 -> -1.5 -> "state one" [label="in \"1\" / 2"]
    -1.5 -> s2 [style=invis]
    __start0 -> "state one"
    }"""
    automaton = machine(text)
    assert automaton.symbols == ('in_"1"',)
    assert sorted(automaton.labels) == ["2", "o\\ut"]
    assert automaton.states == ("state_one", "s2", "-1.5")


def test_an_arrow_between_subgraphs_is_one_for_every_pair():
    automaton = machine(
        body(
            "{p q} -> {r} [label=a]; r -> r [label=a]; r -> q [label=b];"
            "p -> p [label=b]; q -> p [label=b]; r [shape=doublecircle]"
        )
    )
    assert answers(automaton, "b a b a") == ["no", "yes", "no", "yes"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a DOT file begins with `digraph`, not with the end of the file"),
        ("graph g { a -- b }", "line 1: this is a `graph`, whose edges have no direction"),
        (body("a -- b [label=x]"), "line 2: `--` has no direction"),
        (body('a -> b [label="x]'), "line 2: the quotes that open here are not closed"),
        (body("a -> b [label=<x]"), "line 2: the '<' that opens HTML here is not closed"),
        (body("\na -> b [label=x"), "line 3: the bracket '[' is not closed"),
        (body("a -> b"), "line 2: the arrow from 'a' to 'b' has no label"),
        (body("a -> [label=x]"), "line 2: '[' cannot stand here"),
        (body("a"), "no transition was found"),
        ("digraph {", "line 1: '}' is missing at the end of the graph"),
        ("digraph { } }", "line 1: '}' stands behind the end of the graph"),
        ("digraph { a -> b [label=x] } digraph { }", "line 1: 'digraph' stands behind"),
        (body('a -> b [label="x/1"]\nb -> a [label="x"]'), "line 3: the label 'x' says no output"),
        (body('a -> b [label="/1"]'), "line 2: '/1' has no input before '/'"),
        (body("a -> __start0 [label=x]"), "line 2: an arrow leads to '__start0'"),
        ("digraph " + "{" * 100_000, "line 1: subgraphs stand more than 50 deep"),
        (body("@"), "line 2: '@' cannot stand here"),
        (body("a /* b"), "line 2: '/' cannot stand here: comments end with `*/`"),
        (
            body("{" + " ".join(f"a{n}" for n in range(1200)) + "} -> {"
                 + " ".join(f"b{n}" for n in range(1200)) + "} [label=x]"),
            "line 3: more than 200,001 arrows are too many",
        ),
        (body('a -> b [label="x\x1b[2J/1"]\na -> b [label="x/1/2"]'), r"line 3: 'x/1/2' has"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_one_line(text, message):
    assert refused(text).startswith(message)


@pytest.mark.parametrize(
    "text",
    [
        body("a -> b [label=<" + "<!-- >" * 20_000 + ">]"),
        body("a -> b [label=<" + "<!---->" * 20_000 + ">]"),
        body("a -> b [label=<" + "<" * 50_000 + ">" * 50_000 + "/>]"),
        'digraph {"' + "\\a" * 50_000,
        "/* " * 50_000,
        body("edge [" + "k=1, " * 20_000 + "]" + "a -> b [label=x] " * 2_000),
        body("a" + "[" * 50_000),
    ],
)
def test_hostile_texts_are_read_or_refused_in_a_time_that_grows_as_they_do(text):
    begun = time.process_time()
    with pytest.raises(TaskError):
        machine(text, missing="refuse")
    assert time.process_time() - begun < 10  # a tenth of a second each


def test_two_transitions_with_one_symbol_are_refused_with_both_lines():
    message = refused(body('a -> b [label="x/1"];\na -> b [label="x/2"];'))
    assert message == (
        "line 3: state 'a' already has a transition for 'x', to 'b' with output '1' in line 2"
    )
    same = machine(body('a -> b [label="x/1"];\na -> b [label="x/1"]; b -> b [label="x/1"];'))
    assert same.num_states == 1


def test_a_start_that_no_transition_leaves_is_refused_by_its_line():
    message = refused(body('init [shape=point];\ninit -> a;\nb -> a [label="x"];'))
    assert message == "line 4: no transition leaves the start, 'a': is another state the start?"


def test_missing_transitions_lead_to_a_sink_or_stay_or_are_refused():
    mealy = body('a -> b [label="x/1"];\nb -> a [label="x/2"];\nb -> b [label="y/3"];')
    assert answers(machine(mealy), "x y y x y x") == ["1", "3", "3", "2", "missing", "missing"]
    assert answers(machine(mealy, missing="stay"), "y x y x y x") == [
        "missing", "1", "3", "2", "missing", "1",
    ]  # fmt: skip
    assert refused(mealy, missing="refuse") == "line 2: state 'a' has no transition for 'y'"
    moore = MOORE.replace('B -> B [label="b"];', "")
    assert answers(machine(moore), "a b a") == ["1", "missing", "missing"]
    assert answers(machine(moore, missing="stay"), "a b a") == ["1", "1", "0"]
    acceptor = ACCEPTOR.replace("s0 -> s0  [label=0];", "")
    assert answers(machine(acceptor), "0 1") == ["no", "no"]
    assert answers(machine(acceptor, missing="stay"), "0 1") == ["no", "yes"]
    assert machine(acceptor).labels == ("no", "yes")


def test_no_answer_is_never_an_output_of_the_machine():
    automaton = machine(body('a -> b [label="x/missing"]; b -> b [label="y/missing"];'))
    assert answers(automaton, "x y x") == ["missing", "missing", "missing~"]


def test_names_without_spaces_stay_different():
    assert names_of(["a b", "a_b", "a  b", "", "\x1b", "empty"]) == {
        "a b": "a_b~2",
        "a_b": "a_b",
        "a  b": "a_b~3",
        "": "empty~2",
        "\x1b": "\\x1b",
        "empty": "empty",
    }


def test_numbers_in_names_are_ordered_by_value():
    text = body("\n".join(f'p -> p [label="i{number}/{number}"]' for number in (10, 9, 100, 2)))
    assert machine(text).symbols == ("i2", "i9", "i10", "i100")
    assert machine(text).labels == ("2", "9", "10", "100")


def test_the_automaton_does_not_depend_on_the_order_of_a_file_or_names_of_states():
    lines = TURNSTILE.splitlines()
    turned = "\n".join([lines[0], *reversed(lines[1:-1]), lines[-1]])
    renamed = TURNSTILE.replace("s0", "idle").replace("s1", "busy")
    assert machine(turned).fingerprint() == machine(TURNSTILE).fingerprint()
    assert machine(renamed).fingerprint() == machine(TURNSTILE).fingerprint()


def test_states_that_cannot_be_reached_and_their_symbols_are_left_out():
    text = TURNSTILE.replace("__start0 [", 's7 -> s0 [label="kick/x"]; __start0 [')
    assert machine(text).fingerprint() == machine(TURNSTILE).fingerprint()


def test_too_many_states_are_refused_in_one_line():
    edges = [Edge(str(number), "x", str(number + 1), "y", number) for number in range(100_001)]
    with pytest.raises(TaskError, match="100,002 states with 1 symbols are too many"):
        automaton_of(MachineText("0", edges, None))


def test_a_machine_of_657_states_is_read_quickly():
    drawn = random.Random(1)
    lines = [f's{state} [shape="circle" label="s{state}"];' for state in range(657)]
    lines += [
        f's{state} -> s{drawn.randrange(657)} [label="in{symbol} / out{drawn.randrange(9)}"];'
        for state in range(657)
        for symbol in range(5)
    ]
    begun = time.process_time()
    automaton = machine(body("\n".join(lines)))
    assert automaton.num_states > 657
    assert time.process_time() - begun < 10  # it takes 0.3 s; pydot took 10 s to parse it


def aalpys_answers(model, symbols: list[str]) -> list[str]:
    """What AALpy's simulator says on a word."""
    typed = [int(name) if name.isdigit() else name for name in symbols]
    model.reset_to_initial()
    said = [model.step(name) for name in typed]
    booleans = {True: "yes", False: "no"}
    return [booleans[each] if isinstance(each, bool) else str(each).strip() for each in said]


def agrees_with_aalpy(path: Path, kind: str, num_words: int = 20, length: int = 30) -> None:
    """Whether this reader and AALpy's say the same on random words of its own symbols."""
    try:
        model = load_automaton_from_file(str(path), kind)
    except (AssertionError, IndexError):
        pytest.skip("AALpy reads no file whose states have no labels of their own")
    ours = read_machine(path)
    alphabet = sorted(map(str, model.get_input_alphabet()))
    name_of = names_of(sorted(" ".join(symbol.split()) for symbol in alphabet))
    drawn = random.Random(7)
    for _ in range(num_words):
        word = drawn.choices(alphabet, k=length)
        expected = ["_".join(each.split()) for each in aalpys_answers(model, word)]
        names = [name_of[" ".join(symbol.split())] for symbol in word]
        assert answers(ours, " ".join(names)) == expected
    if isinstance(model, MealyMachine):
        assert ours.num_symbols == len(alphabet)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TURNSTILE, "mealy"),
        (TURNSTILE.replace("/", " / "), "mealy"),
        (TURNSTILE.replace("/", "/ "), "mealy"),
        (MOORE, "moore"),
        (MOORE.replace('"{ A | 0 }"', '"A|0"').replace('"{ B | 1 }"', '"B|1"'), "moore"),
        (MOORE.replace('"{ A | 0 }"', '"N"').replace('"{ B | 1 }"', '"N"'), "moore"),
        (ACCEPTOR, "dfa"),
    ],
)
def test_aalpys_reader_and_simulator_agree(text, kind, tmp_path):
    path = tmp_path / "machine.dot"
    path.write_text(text, encoding="utf-8")
    agrees_with_aalpy(path, kind)


MACHINES = os.environ.get("STATETRACK_MACHINES")
FILES = sorted(Path(MACHINES).glob("*.dot")) if MACHINES else []


@pytest.mark.skipif(not MACHINES, reason="STATETRACK_MACHINES names no folder of machines")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_folder_of_machines_is_read_as_aalpy_reads_it(path):
    automaton = read_machine(path)
    assert equivalent(automaton, minimise(automaton))
    text = path.read_text(encoding="utf-8")
    if "<br" in text or "push(" in text:
        return  # labels that AALpy does not split, and a machine with a stack
    kind = {"Mealy machine": "mealy", "Moore machine": "moore", "acceptor": "dfa"}
    agrees_with_aalpy(path, kind[dot.read(text).noun])
