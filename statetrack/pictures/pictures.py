"""Pictures of tasks: a state diagram, a Cayley graph or a transition table, as a file.

The same task gives the same bytes. Matplotlib is needed, which `pip install 'statetrack[plot]'`
installs; without it, and for anything that cannot be drawn, a `StatetrackError` is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.errors import TaskError, setting
from statetrack.pictures import Manner
from statetrack.pictures.cayley_graph import MOST_GENERATORS, cayley_graph, degree, num_generators
from statetrack.pictures.drawn import Drawn, drawn_machine, group_of
from statetrack.pictures.saving import check_path, save_figure
from statetrack.pictures.state_diagram import (
    most_symbols_at_an_arrow,
    moves_per_state,
    state_diagram,
)
from statetrack.pictures.transition_table import transition_table
from statetrack.spec import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLES: Mapping[Manner, str] = {
    "diagram": "state diagram",
    "cayley": "Cayley graph",
    "table": "transition table",
}

MOST_IN_DIAGRAM, MOST_ELEMENTS, MOST_IN_TABLE = 40, 120, 144
"""The most states, elements, and rows or columns that can be distinguished in a picture."""

LEGIBLE_STATES, LEGIBLE_MOVES, LEGIBLE_SYMBOLS = 16, 3.0, 8
"""The most states, arrows per state and symbols per arrow for which a diagram is chosen."""

FEWEST_ELEMENTS, LEGIBLE_ELEMENTS, LEGIBLE_DEGREE = 5, 60, 4
"""The fewest and most elements, and the most lines at each, for which a Cayley graph is chosen."""


def draw_task(task: Task, path: Path, plot_as: Manner | None = None) -> str:
    """Draw a task into a file, and return its title; None chooses the manner by the task.

    Raises `SettingsError` as `save_figure` does, and `TaskError` for a task that cannot be drawn
    in this manner.
    """
    check_path(path)
    drawn = drawn_machine(task)
    chosen = plot_as or _chosen(task, drawn)
    save_figure(_drawer(task, drawn, chosen), path)
    return f"{TITLES[chosen]} of {drawn.title}"


def _chosen(task: Task, drawn: Drawn) -> Manner:
    num_states, num_symbols = drawn.delta.shape
    if FEWEST_ELEMENTS <= num_states <= LEGIBLE_ELEMENTS:
        legible = num_generators(drawn) > 1 and degree(drawn) <= LEGIBLE_DEGREE
        if legible and drawn.regular_group:
            return "cayley"
    few = num_states <= LEGIBLE_STATES and moves_per_state(drawn) <= LEGIBLE_MOVES
    if few and most_symbols_at_an_arrow(drawn) <= LEGIBLE_SYMBOLS:
        return "diagram"
    if max(num_states, num_symbols) > MOST_IN_TABLE:
        raise TaskError(
            f"task '{task.name}' is too large to draw: {num_states:,} states and {num_symbols:,} "
            f"symbols, where {MOST_IN_TABLE} of each are the most"
        )
    return "table"


def _drawer(task: Task, drawn: Drawn, manner: Manner) -> Callable[[], Figure]:
    """The function that draws a task in a manner; `TaskError` if it cannot be drawn so."""
    num_states, num_symbols = drawn.delta.shape
    if manner == "table":
        if max(num_states, num_symbols) > MOST_IN_TABLE:
            raise TaskError(
                f"task '{task.name}': a table of {num_states:,} states x {num_symbols:,} symbols "
                f"is too large to draw: {MOST_IN_TABLE} of each are the most"
            )
        return lambda: transition_table(drawn)
    if manner == "diagram":
        if num_states > MOST_IN_DIAGRAM:
            raise TaskError(
                f"task '{task.name}': a diagram of {num_states:,} states cannot be read: "
                f"{MOST_IN_DIAGRAM} are the most; take {setting('plot_as', 'table')}"
            )
        return lambda: state_diagram(drawn)
    if not drawn.is_group:
        raise TaskError(
            f"task '{task.name}' generates no group: not every symbol permutes its states, so it "
            f"has no Cayley graph; take {setting('plot_as', 'diagram')} or "
            f"{setting('plot_as', 'table')}"
        )
    if (colours := num_generators(drawn)) > MOST_GENERATORS:
        raise TaskError(
            f"task '{task.name}': {colours} generators are too many for a Cayley graph: "
            f"{MOST_GENERATORS} colours are the most; take {setting('plot_as', 'table')}"
        )
    if group_of(drawn.delta, MOST_ELEMENTS) is None:
        raise TaskError(
            f"task '{task.name}': its group has more than {MOST_ELEMENTS} elements, too many for a "
            f"Cayley graph; take {setting('plot_as', 'diagram')} or {setting('plot_as', 'table')}"
        )
    return lambda: cayley_graph(drawn, MOST_ELEMENTS)
