"""Pictures of tasks: what is in them, that they can be read, and how refusals read."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from statetrack.cli.app import run
from statetrack.pictures._bezier import FINE, Bezier
from statetrack.pictures.drawn import drawn_machine, group_of
from statetrack.pictures.layouts import CLOSEST, _badness, _crossings, circle, layout
from statetrack.pictures.pictures import _chosen
from statetrack.pictures.state_diagram import most_symbols_at_an_arrow
from statetrack.spec import load_task

ADJACENT = 'symmetric:n=4,generators=["(1,2)","(2,3)","(3,4)"]'


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


def drawn(name):
    return drawn_machine(load_task(name))


def texts(path):
    """The lines of text of an SVG."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return [line for each in found for line in ("".join(each.itertext())).split("\n")]


def joined(machine):
    """Which states some symbol joins, and the pairs of them."""
    edges = np.zeros((len(machine.states),) * 2, bool)
    for source, row in enumerate(machine.delta):
        edges[source, row[row >= 0]] = True
    both = edges | edges.T
    np.fill_diagonal(both, False)
    return edges, np.argwhere(np.triu(both))


@pytest.mark.parametrize(
    ("name", "manner"),
    [
        ("parity", "diagram"),
        ("flip-flop", "diagram"),
        ("tomita-4", "diagram"),
        ("cycle-navigation", "diagram"),
        ("dihedral:n=6,generators=[r,s]", "cayley"),
        (ADJACENT, "cayley"),
        ("s3", "table"),
        ("modular-arithmetic-left-to-right", "table"),
        ("s5-swaps", "table"),
    ],
)
def test_the_picture_suits_the_task_and_names_every_state_and_symbol(name, manner, capsys):
    task, machine = load_task(name), drawn(name)
    assert _chosen(task, machine) == manner
    assert run(["show", name, "--plot", "it.svg"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("it.svg: ") and len(said.splitlines()) == 1
    written = texts("it.svg")
    for state in machine.states:
        assert any(state in line for line in written), state
    letters = set(re.split(r"[,\s]+", " ".join(written)))
    for symbol in machine.symbols:
        assert symbol in letters or any(symbol in line for line in written), symbol


def test_the_smallest_automaton_is_drawn_and_the_caption_says_so():
    written = texts_of("tomita-4", "diagram")
    assert "tomita-4: the smallest automaton, 4 of 6 states" in written
    assert "flip-flop: the smallest automaton, 8 of 9 states" in texts_of("flip-flop", "diagram")
    assert "parity: 2 states, 2 symbols" in texts_of("parity", "diagram")


def texts_of(name, manner):
    assert run(["show", name, "--plot", "it.svg", "--plot-as", manner]) == 0
    return texts("it.svg")


@pytest.mark.parametrize("name", ["tomita-1", "tomita-4", "dyck-1-depth-3"])
def test_what_stands_for_all_dead_states_is_called_dead(name):
    assert [state for state in drawn(name).states if state.startswith("dead")] == ["dead"]


def test_symbols_at_an_arrow_are_counted_and_not_the_commas_in_their_names():
    assert most_symbols_at_an_arrow(drawn(ADJACENT)) == 1


def test_symbols_that_are_never_drawn_are_left_out():
    machine = drawn("flip-flop")
    assert machine.leaves_out and "void" not in machine.states
    task = load_task("flip-flop").automaton
    for state, row in zip(machine.states, machine.delta, strict=True):
        place = task.states.index(state)
        assert ((row >= 0) == task.drawable[place]).all(), state


def test_labels_are_shown_where_they_are_not_the_states_own_names():
    assert drawn("parity").labels is None
    assert drawn("ends-with-ab").second == "1"
    assert "double ring: label 1" in texts_of("ends-with-ab", "diagram")
    assert "below a state: its label" in texts_of("tomita-4", "diagram")


@pytest.mark.parametrize(
    "name", ["parity", "flip-flop", "tomita-4", "even-pairs", "dyck-1-depth-4"]
)
def test_planar_automata_are_drawn_without_crossings_and_with_room(name):
    machine = drawn(name)
    edges, pairs = joined(machine)
    places = layout(edges, machine.start)
    assert _crossings(places, pairs) == 0
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert apart[np.triu_indices(len(places), 1)].min() > CLOSEST - 1e-6


def test_a_layout_is_no_worse_than_nodes_on_a_circle_and_always_the_same():
    machine = drawn("random-permutations")
    edges, pairs = joined(machine)
    places = layout(edges, 0)
    on_a_circle = circle(np.arange(len(edges)))
    assert _badness(places, pairs)[0] <= _badness(on_a_circle, pairs)[0]
    assert (layout(edges, 0) == places).all()


@pytest.mark.parametrize("name", ["modular-addition", "s3", "dihedral"])
def test_no_two_nodes_of_a_layout_are_at_one_place(name):
    machine = drawn(name)
    edges, _ = joined(machine)
    rim = [0, int(machine.delta[0, 1]), int(machine.delta[0, 2])]
    places = layout(edges, machine.start, [rim])
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    assert apart[np.triu_indices(len(places), 1)].min() > CLOSEST - 1e-6


@pytest.mark.parametrize("name", ["modular-addition", "s3"])
def test_the_default_task_and_s3_have_a_cayley_graph(name):
    assert run(["show", name, "--plot", "it.svg", "--plot-as", "cayley"]) == 0
    assert drawn(name).states[0] in texts("it.svg")


def test_the_elements_of_a_group_are_all_products_of_its_symbols():
    assert len(group_of(load_task("random-permutations").automaton.delta, 120)) == 120
    assert group_of(load_task("random-permutations").automaton.delta, 119) is None
    assert drawn("s3").regular_group and not drawn("random-permutations").regular_group
    assert not drawn("ends-with-ab").regular_group


def test_a_part_of_a_curve_lies_on_the_curve():
    curve = Bezier(np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [4.0, 0.5]]))
    part = curve.between(0.25, 0.75)
    assert np.allclose(part.at(FINE), curve.at(0.25 + 0.5 * FINE))
    kept = curve.outside(curve.points[0], curve.points[-1], 0.5)
    ends = kept.at(np.array([0.0, 1.0]))
    assert np.linalg.norm(ends[0]) >= 0.5 and np.linalg.norm(ends[1] - [4, 0.5]) >= 0.5


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_task_gives_the_same_bytes(ending):
    for name in ("a", "b"):
        assert run(["show", "turnstile", "--plot", f"{name}.{ending}"]) == 0
    first, second = (Path(f"{name}.{ending}").read_bytes() for name in ("a", "b"))
    assert first == second and len(first) > 1000
    assert first.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])


def test_a_readers_own_settings_of_matplotlib_change_nothing():
    import matplotlib

    assert run(["show", "turnstile", "--plot", "a.svg"]) == 0
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "lines.linewidth": 9}):
        assert run(["show", "turnstile", "--plot", "b.svg"]) == 0
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()


NAMES = """
title: Odd names
version: 1
reference: own example
automaton:
  kind: transitions
  start: $a$_^
  states:
    $a$_^: {"<x>": 状態, "&": $a$_^}
    状態: {"<x>": $a$_^, "&": 状態}
"""


def test_names_are_text_and_nothing_else(capsys):
    Path("odd.yaml").write_text(NAMES, encoding="utf-8")
    written = texts_of("odd.yaml", "diagram")
    assert {"$a$_^", "状態", "<x>", "&"} <= set(written)
    assert run(["show", "odd.yaml", "--plot", "odd.png"]) == 1
    assert "ends in .svg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["parity", "--plot", "it.jpg"], "must end in one of .svg, .png, .pdf"),
        (["parity", "--plot", "nowhere/it.svg"], "cannot be written: No such file"),
        (["parity", "--plot", "it.svg", "--plot-as", "cayly"], "Did you mean 'cayley'?"),
        (["parity", "--plot-as", "table"], "needs --plot FILE"),
        (["parity", "--plot", "it.svg", "--json"], "choose one"),
        (["lstm", "--plot", "it.svg"], "only tasks are drawn"),
        (["symmetric:n=6", "--plot", "it.svg"], "too large to draw"),
        (["symmetric:n=6", "--plot", "it.svg", "--plot-as", "table"], "144 of each are the most"),
        (["s5-swaps", "--plot", "it.svg", "--plot-as", "diagram"], "40 are the most"),
        (["s5-swaps", "--plot", "it.svg", "--plot-as", "cayley"], "6 colours are the most"),
        (["flip-flop", "--plot", "it.svg", "--plot-as", "cayley"], "generates no group"),
        (["dyck-1", "--plot", "it.svg"], "no automaton"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(argv, says, capsys):
    assert run(["show", *argv]) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ") and says in line
    assert not printed.out and not list(Path().iterdir())


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch, capsys):
    whole = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return whole(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["show", "parity", "--plot", "it.svg"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install 'statetrack[plot]'" in line
    assert run(["show", "parity"]) == 0
