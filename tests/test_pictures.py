"""Pictures of tasks: what is in them, that they can be read, and how refusals read."""

from __future__ import annotations

import builtins
import importlib.util
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from statetrack.cli.app import run
from statetrack.figures import PALETTE
from statetrack.pictures import MANNERS, Look
from statetrack.pictures.canvas import FINE, Bezier, Room, Shape
from statetrack.pictures.grids import STAYS, TINTS
from statetrack.pictures.layouts import CLOSEST, _badness, _crossings, circle, layout
from statetrack.pictures.machine import (
    drawn_machine,
    few_generators,
    group_of,
    mealy_form,
    symbol_generators,
)
from statetrack.pictures.state_diagram import moves_of
from statetrack.pictures.tasks import WAYS, _chosen
from statetrack.registry import tasks_folder
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
        ("s3", "cayley"),
        ("dihedral", "cayley"),
        ("modular-addition", "cayley"),
        ("modular-addition:m=7", "panels"),
        ("modular-arithmetic-left-to-right", "table"),
    ],
)
def test_the_picture_suits_the_task_and_names_every_state_and_symbol(name, manner, capsys):
    task, machine = load_task(name), drawn(name)
    assert _chosen(task, machine)[0] == manner
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


def texts_of(name, manner="auto"):
    assert run(["show", name, "--plot", "it.svg", "--plot-as", manner]) == 0
    return texts("it.svg")


@pytest.mark.parametrize("name", ["tomita-1", "tomita-4", "dyck-1-depth-3"])
def test_what_stands_for_all_dead_states_is_called_dead(name):
    assert [state for state in drawn(name).states if state.startswith("dead")] == ["dead"]


def test_symbols_at_an_arrow_are_counted_and_not_the_commas_in_their_names():
    assert max(map(len, moves_of(drawn(ADJACENT)).values())) == 1


def test_symbols_that_are_never_drawn_are_left_out():
    machine = drawn("flip-flop")
    assert machine.leaves_out and "sink" not in machine.states
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


SHIPPED = sorted(each.stem for each in tasks_folder().glob("*.yaml"))
SMALL = 4
"""The most states of machines that are drawn in every manner in a moment."""


def draw_in_every_manner(name, most, least=0):
    """Which manners draw a shipped task on a page with letters of 7 points or more."""
    task = load_task(name)
    if not task.has_automaton or not least < len(task.automaton.states) <= most:
        return []
    machine, manners = drawn_machine(task), []
    chosen, _ = _chosen(task, machine)
    for manner in MANNERS:
        if refusal := WAYS[manner].refusal(machine):
            assert manner != chosen, refusal
            continue
        canvas = WAYS[manner].draw(machine, Room())
        figure, letters = canvas.figure(Look(), machine.title)
        assert letters >= 6.9, (name, manner, letters)
        if manner == chosen:
            width, height = figure.get_size_inches()
            assert width <= 7.2 and height <= 10.5, (name, chosen, width, height)
        manners.append(manner)
    return manners


def test_every_small_shipped_task_is_drawn_on_a_page_in_letters_that_can_be_read():
    with matplotlib.rc_context({"font.size": 9.0, "lines.linewidth": 1.4}):
        found = {name: draw_in_every_manner(name, SMALL) for name in SHIPPED}
        found["s3"] = draw_in_every_manner("s3", 6)
    assert {"cayley", "panels", "table", "matrix"} <= {*found["s3"]}
    assert sum(map(len, found.values())) > 50


@pytest.mark.slow
def test_every_shipped_task_is_drawn_on_a_page_in_letters_that_can_be_read(tmp_path):
    with matplotlib.rc_context({"font.size": 9.0, "lines.linewidth": 1.4}):
        found = {name: draw_in_every_manner(name, 10**4, SMALL) for name in SHIPPED}
    assert {"cayley", "matrix"} <= {*found["s5-swaps"]}
    for name in SHIPPED:
        if load_task(name).has_automaton:
            for ending in ("png", "pdf"):
                assert run(["show", name, "--plot", str(tmp_path / f"it.{ending}")]) == 0


def generators_of_task(name):
    return symbol_generators(drawn(name))


def test_few_symbols_generate_a_group_and_cycles_of_one_order_it():
    assert [each.text for each in few_generators(generators_of_task("s3"))] == [
        "(1,2,3) (against it: (1,3,2))",
        "(2,3)",
    ]
    assert [each.order for each in few_generators(generators_of_task("dihedral"))] == [4, 2]
    assert [each.order for each in few_generators(generators_of_task("a5"))] == [5, 2]
    (only,) = few_generators(generators_of_task("z60"))
    assert only.order == 60
    swaps = few_generators(generators_of_task("s5-swaps"))
    assert [each.order for each in swaps] == [2, 2, 2, 2]
    for name in ("s4", "a4", "quaternion", "heisenberg"):
        reached = {0}
        actions = [each.action for each in few_generators(generators_of_task(name))]
        while more := {int(a[state]) for a in actions for state in reached} - reached:
            reached |= more
        assert len(reached) == len(drawn(name).states), name


def test_a_graph_of_few_symbols_says_which_and_what_the_others_are():
    written = " ".join(texts_of("s3", "cayley"))
    assert "(1,2,3) (against it: (1,3,2))" in written
    assert "lines: 3 of 6 symbols, which generate the group" in written
    assert "no move: e" in written
    assert "lines:" not in " ".join(texts_of("s3-cascade", "cayley"))


BROKER_OF_TWO = """digraph { s0 [shape="doublecircle"]; start -> s0; start [shape="none"];
s0 -> s1 [label="connect / ack"]; s0 -> s0 [label="ping / closed"];
s1 -> s0 [label="connect / closed"]; s1 -> s1 [label="ping / pong"]; }
"""


def test_a_mealy_machine_is_drawn_as_it_was_and_as_a_moore_machine_on_request(tmp_path):
    file = tmp_path / "two.dot"
    file.write_text(BROKER_OF_TWO)
    machine = drawn(str(file))
    assert machine.is_mealy and machine.states == ("s0", "s1@ack", "s1@pong")
    mealy = mealy_form(machine)
    assert (mealy.states, mealy.start, mealy.labels) == (("s0", "s1"), 0, None)
    assert mealy.delta.tolist() == [[1, 0], [0, 1]]
    assert mealy.outputs == (("ack", "closed"), ("closed", "pong"))
    written = texts_of(str(file))
    assert {"connect / ack", "ping / closed", "ping / pong", "symbol / output"} <= {*written}
    assert any("Mealy machine of 2 states" in each for each in written)
    assert not any(" / " in each for each in texts_of(str(file), "diagram"))
    assert not drawn("parity").is_mealy
    assert len(mealy_form(drawn("flip-flop")).states) < len(drawn("flip-flop").states) + 1


def strokes(path):
    """The style of every line of an SVG that has a colour."""
    found = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}path")
    return [each.get("style", "") for each in found]


def test_generators_differ_in_colour_and_in_dashes():
    texts_of("s4-cascade", "cayley")
    styles = strokes("it.svg")
    kinds = {}
    for style in styles:
        if colour := next((each for each in PALETTE if f"stroke: {each}" in style), None):
            dashes = "".join(re.findall("stroke-dasharray: [^;]*", style))
            kinds.setdefault(colour, set()).add(dashes)
    assert len(kinds) == 3 and all(len(dashes) == 1 for dashes in kinds.values())
    assert len(set.union(*kinds.values())) == 3


def test_a_symbol_and_its_inverse_are_one_line_with_one_head_in_its_direction():
    texts_of("modular-addition", "cayley")
    heads = [each for each in strokes("it.svg") if "stroke" not in each and "fill: #0072b2" in each]
    assert len(heads) == 5 + 1  # five lines and the one in the legend
    texts_of("s3-cascade", "cayley")
    heads = [each for each in strokes("it.svg") if "stroke" not in each and "fill: #0072b2" in each]
    assert len(heads) == 6 + 1


def fills(path):
    return set(re.findall("fill: (#[0-9a-f]{6})", Path(path).read_text()))


def test_colours_of_states_have_no_order_and_where_there_are_many_there_are_none():
    texts_of("random-fsm", "table")
    assert fills("it.svg") & {*TINTS} == {*TINTS[:5]}
    texts_of("modular-arithmetic-left-to-right", "table")
    assert not fills("it.svg") & {*TINTS}
    texts_of("a4", "table")
    assert STAYS in fills("it.svg")


def size_of(path):
    root = ElementTree.parse(path).getroot()
    return [float(root.get(side).removesuffix("pt")) / 72 for side in ("width", "height")]


def show(*argv):
    assert run(["show", *argv]) == 0


def test_size_letters_title_and_caption_are_as_asked_for():
    show("s3", "--plot", "it.svg", "--width", "column")
    assert size_of("it.svg")[0] == pytest.approx(3.25, abs=0.01)
    assert "s3: 6 states, 6 symbols" in texts("it.svg")
    show("s3", "--plot", "it.svg", "--width", "page", "--height", "4", "--no-title")
    assert size_of("it.svg") == pytest.approx([6.75, 4], abs=0.01)
    assert "s3: 6 states, 6 symbols" not in texts("it.svg")
    show("s3", "--plot", "it.svg", "--title", "Swaps", "--caption", "All of S3.\nTwice.")
    written = texts("it.svg")
    assert {"Swaps", "All of S3.", "Twice."} <= {*written}
    assert not any("identity" in line for line in written)
    show("s3", "--plot", "it.svg", "--caption", "")
    assert not any("identity" in line for line in texts("it.svg"))
    usual = size_of("it.svg")
    show("s3", "--plot", "it.svg", "--caption", "", "--font", "18")
    assert size_of("it.svg") == pytest.approx([2 * each for each in usual], rel=0.05)


def test_dots_of_a_png_are_as_asked_for():
    from matplotlib.image import imread

    show("parity", "--plot", "it.png", "--width", "column", "--dpi", "100")
    assert imread("it.png").shape[1] == 325


def test_letters_too_small_for_a_width_are_said(capsys):
    show("a4", "--plot", "it.svg", "--plot-as", "table", "--width", "1.5")
    _, said = capsys.readouterr().out.splitlines()
    assert re.search(r"smallest letters are \d\.\d points high: \d+\.\d inches of width", said)


def test_a_machine_too_large_for_a_table_is_a_matrix_and_why_is_said(capsys):
    show("permutation-reset", "--plot", "it.svg")
    what, why = capsys.readouterr().out.splitlines()
    assert what.startswith("it.svg: matrix of permutation-reset")
    assert "120 states x 122 symbols: a table would not fit a page" in why


def test_fonts_are_in_the_pdf_as_outlines_that_can_be_searched():
    show("parity", "--plot", "it.pdf")
    content = Path("it.pdf").read_bytes()
    assert b"/FontFile2" in content and b"/Type3" not in content


def test_a_name_with_its_kind_is_drawn():
    show("task:parity", "--plot", "it.svg")
    assert "parity: 2 states, 2 symbols" in texts("it.svg")


def test_an_existing_file_is_replaced():
    Path("it.svg").write_text("old")
    show("parity", "--plot", "it.svg")
    assert Path("it.svg").read_text().startswith("<?xml")


def test_states_of_an_imported_machine_are_not_labelled_twice():
    lines = ["digraph g {", '__start0 [label="" shape="none"];', "__start0 -> s0;"]
    for source, target, label in (("s0", "s1", "a / Ready"), ("s1", "s0", "a / Closed")):
        lines += [f'{source} -> {target} [label="{label}"];']
        lines += [f'{source} -> {source} [label="b / Same"];']
    Path("machine.dot").write_text("\n".join([*lines, "}"]))
    machine = drawn_machine(load_task("machine.dot"))
    assert machine.title.startswith("machine.dot: ")
    assert any(name.endswith("@Ready") for name in machine.full_names)
    assert "Ready [Ready]" not in " ".join(machine.full_names)


def test_the_elements_of_a_group_are_all_products_of_its_symbols():
    assert len(group_of(load_task("random-permutations").automaton.delta, 120)) == 120
    assert group_of(load_task("random-permutations").automaton.delta, 119) is None
    assert drawn("s3").regular_group and not drawn("random-permutations").regular_group
    assert not drawn("ends-with-ab").regular_group


def test_a_part_of_a_curve_lies_on_the_curve():
    curve = Bezier(np.array([[0.0, 0.0], [1.0, 2.0], [3.0, -1.0], [4.0, 0.5]]))
    part = curve.between(0.25, 0.75)
    assert np.allclose(part.at(FINE), curve.at(0.25 + 0.5 * FINE))
    ends = curve.points[[0, -1]]
    kept = curve.outside(lambda points: Shape(0.0, 0.5).gaps(points, ends).min(axis=1))
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
        (["parity", "--plot", "nowhere/it.svg"], "there is no folder nowhere"),
        (["parity", "--plot", "it.svg", "--plot-as", "cayly"], "Did you mean 'cayley'?"),
        (["parity", "--plot-as", "table"], "needs --plot FILE"),
        (["parity", "--plot", "it.svg", "--json"], "choose one"),
        (["lstm", "--plot", "it.svg"], "only tasks are drawn"),
        (["bilinear-state-machine", "--plot", "it.svg"], "is a suite, and only tasks"),
        (["kind:parity", "--plot", "it.svg"], "is a kind, and only tasks are drawn"),
        (["symmetric:n=6", "--plot", "it.svg"], "too large to draw"),
        (["symmetric:n=6", "--plot", "it.svg", "--plot-as", "table"], "144 of each are the most"),
        (["s5-swaps", "--plot", "it.svg", "--plot-as", "diagram"], "40 are the most"),
        (["a4", "--plot", "it.svg", "--plot-as", "diagram"], "90 are the most"),
        (["s5-swaps", "--plot", "it.svg", "--plot-as", "panels"], "40 of each are the most"),
        (["symmetric:n=6", "--plot", "it.svg", "--plot-as", "matrix"], "600 are the most"),
        (["symmetric:n=6", "--plot", "it.svg", "--plot-as", "cayley"], "more than 120 elements"),
        (["parity", "--width", "3"], "--width: needs --plot FILE"),
        (["parity", "--caption", ""], "--caption: needs --plot FILE"),
        (["parity", "--plot", "it.svg", "--width", "wide"], "write column, page or a number"),
        (["parity", "--plot", "it.svg", "--width", "0.1"], "must be from 1.5 to 40"),
        (["parity", "--plot", "it.svg", "--style", "papr"], "Did you mean 'paper'?"),
        (["parity", "--plot", "it.svg", "--title", "x", "--no-title"], "choose one"),
        (["parity", "--plot", "folder.svg"], "is a folder: name a file"),
        (["flip-flop", "--plot", "it.svg", "--plot-as", "cayley"], "generates no group"),
        (["dyck-1", "--plot", "it.svg"], "no automaton"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_line(argv, says, capsys):
    folder = Path("folder.svg")
    if str(folder) in argv:
        folder.mkdir()
    assert run(["show", *argv]) == 1
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: ") and says in line
    assert not printed.out and not [each for each in Path().iterdir() if each != folder]


def test_without_matplotlib_one_line_says_how_to_get_it(monkeypatch, capsys):
    whole = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return whole(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run(["show", "parity", "--plot", "it.svg"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install '.[plot]'" in line
    assert run(["show", "parity"]) == 0


@pytest.fixture(scope="module")
def gallery():
    place = Path(__file__).parents[1] / "docs" / "gallery.py"
    description = importlib.util.spec_from_file_location("gallery", place)
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


QUICKLY_DRAWN = ["s3.svg", "modular-addition.svg", "broker.svg"]


def test_the_pictures_in_the_docs_are_what_the_program_draws(gallery):
    stale = gallery.changed(QUICKLY_DRAWN)
    assert not stale, f"{', '.join(stale)}: run `python docs/gallery.py`"


@pytest.mark.slow
def test_all_pictures_in_the_docs_are_what_the_program_draws(gallery):
    stale = gallery.changed([*gallery.GALLERY])
    assert not stale, f"{', '.join(stale)}: run `python docs/gallery.py`"


def test_pictures_in_the_docs_are_small_and_stand_in_the_page(gallery):
    page = (gallery.DOCS / "figures.md").read_text("utf-8")
    for name in gallery.GALLERY:
        assert f"(figures/tasks/{name})" in page
        assert (gallery.PICTURES / name).stat().st_size < 60_000
    assert {each.name for each in gallery.PICTURES.iterdir()} == {*gallery.GALLERY}


def test_pictures_that_differ_are_told_apart_and_last_digits_are_not(gallery):
    text = (gallery.PICTURES / "s3.svg").read_text("utf-8")
    assert gallery.same(text, re.sub(r"(\.\d\d)\d+", r"\g<1>1", text))
    assert not gallery.same(text, text.replace("(2,3)", "(1,2)"))
    assert not gallery.same(text, re.sub(r"x=\"1(\d+\.)", r'x="2\g<1>', text))
