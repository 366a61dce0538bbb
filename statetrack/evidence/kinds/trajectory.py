"""Trajectories: whether states stay apart along a word that keeps them apart for ever."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from statetrack.evidence.records import EVIDENCE, Drawing, Evidence, Grid, Line, Named
from statetrack.figures import NOTE, PALETTE, entitled, new_figure, with_legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND = (
    "a word is read again and again, from states of the automaton that it keeps different: the "
    "least distance of the model's states, over the length of the longest, after so many times, as "
    "long as all are finite"
)
"""What the columns of the table are."""

MARKS = "osD^vPX*"


@dataclass(frozen=True, kw_only=True)
class Along:
    """The states of words w v v v ... for one word v, w a shortest word to each of some states.

    `states` is how many states of the automaton v leads back to, `followed` how many words were
    read. `apart` has the least distance of two words' states over the length of the longest, by how
    often v was read; where answers do not depend on a state's length, states are divided by it
    first. `first_error` is the symbol that was answered wrongly first, counted from the first v.
    """

    word: tuple[int, ...]
    states: int
    followed: int
    apart: tuple[tuple[int, float], ...]
    first_error: int | None


@dataclass(frozen=True, kw_only=True)
class Traced:
    """One such word by repetitions: the automaton's states, by names, and the model's on a line.

    The line is that along which the states differ most. `word` is v by the names of its symbols.
    """

    word: str
    states: tuple[str, ...]
    places: tuple[float, ...]


@EVIDENCE.register("trajectory")
@dataclass(frozen=True, kw_only=True)
class Trajectory(Evidence):
    """How far apart a model keeps states along words that keep states of the automaton apart.

    Where the distance falls towards 0, no readout of finite precision tells the states apart in the
    end (Grazzi et al. 2024, arXiv:2411.12537, Theorem 1: along 1 1 1 ... where no eigenvalue of
    A(1) is negative).
    """

    kind = "trajectory"
    commands = ("probe",)
    place = 5.7
    share = 0.1
    found_by = "statetrack.evidence.trajectories:find_trajectory"

    words: tuple[Along, ...]
    traced: tuple[Traced, ...]

    def lines(self, names: Named) -> list[Line]:
        """A line for each word."""
        times = sorted({often for each in self.words for often, _ in each.apart})
        headings = ("word", "states", *(f"{each:,}" for each in times), "first error")
        rows = []
        for each in self.words:
            apart = dict(each.apart)
            kept = [f"{apart[often]:.2g}" if often in apart else "-" for often in times]
            wrong = "none" if each.first_error is None else f"{each.first_error:,}"
            some = "" if each.followed == each.states else f" ({each.followed} read)"
            word = " ".join(names.symbols[symbol] for symbol in each.word)
            rows.append((word, f"{each.states:,}{some}", *kept, wrong))
        told: list[Line] = [LEGEND, Grid(headings, rows, right=headings[1:])]
        return told if self.complete else [*told, "time ran out: not all lengths were read"]

    def figures(self, of: str) -> Iterator[Drawing]:
        """One, where some words were kept step by step."""
        if self.traced:
            yield "trajectory", lambda: self.figure(of)

    def figure(self, of: str) -> Figure:
        """A panel for each word that is repeated, coloured by the automaton's state."""
        words = list(dict.fromkeys(one.word for one in self.traced))
        names = list(dict.fromkeys(name for one in self.traced for name in one.states))
        figure, panels = new_figure(6.4, 1.4 + 1.9 * len(words), len(words))
        for axes, word in zip(panels, words, strict=True):
            for one in (each for each in self.traced if each.word == word):
                axes.plot(one.places, color=NOTE, linewidth=0.6, zorder=1)
                for number, name in enumerate(names):
                    at = [often for often, state in enumerate(one.states) if state == name]
                    values = [one.places[often] for often in at]
                    axes.plot(at, values, ls="", ms=3.5, zorder=2, **_look(number))
            axes.set_ylabel(f"{word} {word} ...")
            axes.grid(color="#e6e6e6", linewidth=0.6)
            axes.set_axisbelow(True)
        for number, name in enumerate(names):
            panels[0].plot([], [], ls="", ms=4, label=name, **_look(number))
        panels[-1].set_xlabel("how often the word was read")
        entitled(
            figure,
            f"States of {of} along one word again and again",
            "on the line along which they differ most, by state of the automaton",
        )
        with_legend(figure, panels[0], 6)
        return figure


def _look(number: int) -> dict[str, Any]:
    return {"color": PALETTE[number % len(PALETTE)], "marker": MARKS[number % len(MARKS)]}
