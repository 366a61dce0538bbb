"""The figure of docs/precision.md, of the record: `python -m tests.precision.figure`.

Every point is a model with weights under one rounding model: to the left its worst word that was
found, to the right the median over random words, over m / u.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.figures import INK, NOTE, PALE, PALETTE, TEXT, new_figure, with_legend
from statetrack.pictures.looks import Look, save_figure
from tests.precision.laws import RECORD, Row, is_exact, predicted, typical, worst

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PICTURE = Path(__file__).parents[2] / "docs" / "figures" / "precision.svg"
LOOK = Look(width=6.75, style="paper", title="")

KINDS: tuple[tuple[str, str], ...] = (
    ("planes, Z3 to Z25 and S3", "o"),
    ("3 dimensions, S4 and A5", "s"),
    ("4 dimensions, S5", "D"),
    ("10 dimensions, M11", "v"),
    ("trained", "P"),
)

TOP = 3e6
"""Where points that never fail are drawn."""


def kind_of(row: Row) -> int | None:
    """The place in `KINDS` of a row that the figure shows: of linear models, but for integers."""
    if row["change"] == "decayed" or row["how"] == "integers" or row.get("sine", 0.0) <= 0:
        return None
    if row["how"] == "trained":
        return 4
    tasks = {"s4": 1, "a5": 1, "s5": 2, "s5-swaps": 2, "point": 3}
    return tasks.get(row["task"], 0)


def draw(rows: Iterable[Row]) -> Figure:
    """The two panels."""
    figure, (left, right) = new_figure(6.75, 3.6, 2, side_by_side=True)
    shown = [(kind, row) for row in rows if (kind := kind_of(row)) is not None]
    for axes, horizon, power, said in (
        (left, worst, 0, "worst word that was found"),
        (right, typical, 1, "median of 8 random words"),
    ):
        _panel(axes, shown, horizon)
        ratios = [0.5, 1e6] if power == 0 else [0.5, 1.2e3]
        law = "m/u" if power == 0 else "(m/u)²"
        axes.plot(ratios, [ratio ** (power + 1) for ratio in ratios], color=NOTE, linewidth=0.8)
        axes.annotate(law, (ratios[-1], ratios[-1] ** (power + 1)), fontsize=TEXT - 1, color=NOTE)
        axes.set_title(said, fontsize=TEXT, color=INK, loc="left")
        axes.set_xlabel("m/u")
    left.set_ylabel("symbols before the first wrong answer")
    with_legend(figure, left, 3)
    return figure


def _panel(
    axes: Axes, shown: list[tuple[int, Row]], horizon: Callable[[Row], float | None]
) -> None:
    axes.set(xscale="log", yscale="log", ylim=(1, 1.5 * TOP), xlim=(0.8, 2e7))
    for kind, (label, mark) in enumerate(KINDS):
        own = [row for each, row in shown if each == kind]
        failed = [(predicted(row)[0], found) for row in own if (found := horizon(row)) is not None]
        never = [predicted(row)[0] for row in own if horizon(row) is None and _never(row, horizon)]
        open_ones = [row for row in own if horizon(row) is None and not _never(row, horizon)]
        axes.scatter(
            [predicted(row)[0] for row in open_ones],
            [read_to(row, horizon) for row in open_ones],
            s=7,
            marker=2,  # a tick that points up
            linewidths=0.7,
            color=PALE,
        )
        color = PALETTE[kind]
        across, up = zip(*failed or [(1e-9, 1)], strict=True)
        axes.scatter(across, up, s=11, marker=mark, color=color, label=label)
        axes.scatter(never, [TOP] * len(never), s=11, marker=mark, facecolors="none", color=color)
    axes.axhline(TOP / 1.7, color=NOTE, linewidth=0.4)
    axes.annotate("never wrong", (2e5, TOP / 1.5), fontsize=TEXT - 2, color=NOTE)


def read_to(row: Row, horizon: Callable[[Row], float | None]) -> int:
    """How far words were read that did not fail: the beam's word, where there is one, or others."""
    if horizon is worst and "greedy" in row:
        return int(row["greedy"][1].rsplit(" ", 1)[1])
    return int(row["random_read"])


def _never(row: Row, horizon: Callable[[Row], float | None]) -> bool:
    """Whether it is known that no word fails; or for random ones, that they end where none does."""
    closed = is_exact(row) and row["all"]["closed"]
    return closed or (horizon is typical and row.get("absorbed", {}).get("closed", False))


def mark(record: bytes) -> str:
    """What the picture says of the record that it shows."""
    return f"<!-- rows {hashlib.sha256(record).hexdigest()[:16]} -->"


def main() -> None:
    """Draw it."""
    record = RECORD.read_bytes()
    rows = json.loads(record)["points"]
    save_figure(lambda: draw(rows), PICTURE, LOOK)
    text = PICTURE.read_text(encoding="utf-8").rstrip()
    PICTURE.write_text(f"{text}\n{mark(record)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
