"""Pictures of tasks: diagrams, Cayley graphs, panels, tables and matrices, as files.

The same task gives the same bytes. Matplotlib is needed, which `pip install '.[plot]'`
installs; without it, and for anything that cannot be drawn, a `StatetrackError` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from statetrack.errors import TaskError, setting
from statetrack.pictures.canvas import SMALLEST, UNIT, Canvas, Room
from statetrack.pictures.cayley_graph import MOST_GENERATORS, cayley_graph
from statetrack.pictures.grids import matrix, table_size, transition_table
from statetrack.pictures.looks import Look, Manner, check_path, save_figure
from statetrack.pictures.machine import (
    MOST_LINES,
    DrawnMachine,
    drawn_machine,
    few_generators,
    group_of,
    lines_at_a_node,
    mealy_form,
    symbol_generators,
)
from statetrack.pictures.state_diagram import moves_of, panels_of, state_diagram, symbol_panels
from statetrack.spec import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_IN_DIAGRAM, MOST_ARROWS, MOST_ELEMENTS, MOST_IN_TABLE, MOST_IN_MATRIX = 40, 90, 120, 144, 600
"""The most states, arrows, elements, rows or columns, and states, that can be distinguished."""

MOST_PANELS = 40
"""The most panels, and the most states in one."""

LEGIBLE_STATES, LEGIBLE_SYMBOLS = 16, 8
"""The most states and symbols per arrow for which a diagram is chosen."""

LEGIBLE_MOVES, FEW_STATES, FEW_MOVES = 2.0, 8, 3.0
"""The most arrows per state for which a diagram is chosen, and those where there are few states."""

FEWEST_ELEMENTS, LEGIBLE_ELEMENTS = 5, 60
"""The fewest and the most elements for which a Cayley graph is chosen."""

FEW_PANELS, SMALL_PANELS = 6, 16
"""The most panels, and the most elements in one, for which a cyclic group is drawn in panels."""

TABLE_WIDTH, TABLE_HEIGHT = 486.0, 660.0
"""The largest table that is chosen, in points: that of a page."""


class Picture(NamedTuple):
    """What was drawn: its title, and what there is to say of it, one line each."""

    title: str
    notes: tuple[str, ...]


def draw_task(
    task: Task,
    path: Path,
    plot_as: Manner | None = None,
    look: Look | None = None,
    caption: str | None = None,
) -> Picture:
    """Draw a task into a file; None chooses the manner by the task, and the usual caption.

    Raises `SettingsError` as `save_figure` does, and `TaskError` for a task that cannot be drawn
    in this manner.
    """
    check_path(path)
    look = look or Look()
    drawn = drawn_machine(task)
    manner, why = _chosen(task, drawn) if plot_as is None else (plot_as, "")
    way = WAYS[manner]
    if manner == "mealy":
        drawn = mealy_form(drawn)
    if refusal := way.refusal(drawn):
        raise TaskError(f"task '{task.name}'{refusal}")
    notes = [why] if why else []

    def figure() -> Figure:
        import matplotlib

        canvas = way.draw(drawn, _room(look, float(matplotlib.rcParams["font.size"]) / UNIT))
        if caption is not None:
            canvas.write_caption(caption.split("\n") if caption else [])
        found, letters = canvas.figure(look, look.titled(drawn.title))
        if letters < SMALLEST:
            enough = float(found.get_figwidth()) * 7 / letters
            notes.append(
                f"its smallest letters are {letters:.1f} points high: {enough:.1f} inches of width "
                "would make them 7"
            )
        return found

    save_figure(figure, path, look)
    return Picture(f"{way.title} of {drawn.title}", tuple(notes))


def _room(look: Look, scale: float) -> Room:
    """What a look leaves for the drawing itself, below its title and above its caption."""
    usual = Room()
    width = usual.width if look.width is None else 72 * look.width / scale - 16
    height = usual.height if look.height is None else 72 * look.height / scale - 60
    return Room(width, max(height, 60.0), look.width is not None)


def _chosen(task: Task, drawn: DrawnMachine) -> tuple[Manner, str]:
    """How a task is drawn, and why it is not drawn as something simpler."""
    num_states, num_symbols = drawn.delta.shape
    if FEWEST_ELEMENTS <= num_states <= LEGIBLE_ELEMENTS and drawn.regular_group:
        generators = symbol_generators(drawn)
        if lines_at_a_node(generators) > MOST_LINES:
            one = len(few_generators(generators)) == 1
            if one and num_states <= SMALL_PANELS and len(generators) <= FEW_PANELS:
                return "panels", ""
            return "cayley", ""
        if len(generators) > 1:
            return "cayley", ""
    if drawn.is_mealy and _is_legible(mealy_form(drawn)):
        return "mealy", ""
    if _is_legible(drawn):
        return "diagram", ""
    if num_states <= MOST_IN_TABLE and num_symbols <= MOST_IN_TABLE:
        width, height = table_size(drawn)
        if width <= TABLE_WIDTH and height <= TABLE_HEIGHT:
            return "table", ""
    if num_states > MOST_IN_MATRIX:
        raise TaskError(
            f"task '{task.name}' is too large to draw: {num_states:,} states and {num_symbols:,} "
            f"symbols, where {MOST_IN_MATRIX} states are the most"
        )
    return (
        "matrix",
        f"{num_states:,} states x {num_symbols:,} symbols: a table would not fit a page, so a "
        "matrix shows which states lead to which",
    )


def _is_legible(drawn: DrawnMachine) -> bool:
    """Whether a diagram has few enough states, arrows and symbols to be chosen."""
    num_states = len(drawn.states)
    if num_states > LEGIBLE_STATES:
        return False
    moves = moves_of(drawn)
    most = FEW_MOVES if num_states <= FEW_STATES else LEGIBLE_MOVES
    few = sum(a != b for a, b in moves) <= most * num_states
    return few and max(map(len, moves.values())) <= LEGIBLE_SYMBOLS


def _take(*manners: Manner) -> str:
    return "take " + " or ".join(setting("plot_as", manner) for manner in manners)


def _no_diagram(drawn: DrawnMachine) -> str:
    num_states, arrows = len(drawn.states), len(moves_of(drawn))
    if num_states > MOST_IN_DIAGRAM:
        return (
            f": a diagram of {num_states:,} states cannot be read: {MOST_IN_DIAGRAM} are the most; "
            + _take("table", "matrix")
        )
    if arrows > MOST_ARROWS:
        return (
            f": a diagram of {arrows:,} arrows cannot be read: {MOST_ARROWS} are the most; "
            + _take("table", "panels")
        )
    return ""


def _no_cayley_graph(drawn: DrawnMachine) -> str:
    if not drawn.is_group:
        return (
            " generates no group: not every symbol permutes its states, so it has no Cayley "
            "graph; " + _take("diagram", "table")
        )
    if group_of(drawn.delta, MOST_ELEMENTS) is None:
        return (
            f": its group has more than {MOST_ELEMENTS} elements, too many for a Cayley graph; "
            + _take("diagram", "table")
        )
    if not symbol_generators(drawn):
        return ": no symbol changes its state, so its group has one element; " + _take("diagram")
    colours = len(few_generators(symbol_generators(drawn)))
    if colours > MOST_GENERATORS:
        return (
            f": {colours} generators are too many for a Cayley graph: {MOST_GENERATORS} kinds of "
            "lines are the most; " + _take("table", "matrix")
        )
    return ""


def _no_panels(drawn: DrawnMachine) -> str:
    num_states, number = len(drawn.states), len(panels_of(drawn))
    if num_states > MOST_PANELS or number > MOST_PANELS:
        return (
            f": {number:,} panels of {num_states:,} states cannot be read: {MOST_PANELS} of each "
            "are the most; " + _take("matrix")
        )
    if not number:
        return ": no symbol changes its state, so there are no panels; " + _take("diagram")
    return ""


def _no_table(drawn: DrawnMachine) -> str:
    num_states, num_symbols = drawn.delta.shape
    if max(num_states, num_symbols) > MOST_IN_TABLE:
        return (
            f": a table of {num_states:,} states x {num_symbols:,} symbols is too large to draw: "
            f"{MOST_IN_TABLE} of each are the most; " + _take("matrix")
        )
    return ""


def _no_matrix(drawn: DrawnMachine) -> str:
    if len(drawn.states) > MOST_IN_MATRIX:
        return (
            f": a matrix of {len(drawn.states):,} states cannot be read: {MOST_IN_MATRIX} are the "
            "most"
        )
    return ""


class Way(NamedTuple):
    """One way to draw a machine: what it is called, why it cannot be, and what draws it."""

    title: str
    refusal: Callable[[DrawnMachine], str]
    draw: Callable[[DrawnMachine, Room], Canvas]


WAYS: Mapping[Manner, Way] = {
    "diagram": Way("state diagram", _no_diagram, state_diagram),
    "mealy": Way("state diagram", _no_diagram, state_diagram),
    "cayley": Way("Cayley graph", _no_cayley_graph, partial(cayley_graph, most=MOST_ELEMENTS)),
    "panels": Way("symbols in panels", _no_panels, symbol_panels),
    "table": Way("transition table", _no_table, transition_table),
    "matrix": Way("matrix", _no_matrix, matrix),
}
