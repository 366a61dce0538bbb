"""Tables of training and evaluation, and of what a sweep would take; accuracy by length as a curve.

In the curve, replicas are told apart by letters, not by colours alone; what they stand for is said
below the plot, where it covers nothing. Without Unicode everything is drawn in ASCII.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from statetrack.report.table import Column, Line, Table, interval, share, small
from statetrack.runs import EvaluationRow, Summary
from statetrack.scoring import Score, horizon
from statetrack.text import visible
from statetrack.training import Finish

if TYPE_CHECKING:
    from statetrack.sweep import Estimate, Estimates


MARK = "◀"
"""The mark of the replica that validation selected."""

OF_TRAINING = (
    Column("replica", "number"),
    Column("seed", "number", write=str),
    Column("lr", "number", write="{:g}".format),
    Column("best step", "number", key="best_step", write=str),
    Column("loss", "number", key="validation_loss", write=small),
    Column("accuracy", "number", key="validation_accuracy", write=share),
    Column("", "whole", key="stopped"),
)
"""What a table of training says of each replica; the last column marks the selected one."""


def training_table(title: str, summary: Summary) -> Table:
    """The outcome of each replica of a run; the selected one is marked."""
    rows = []
    for row in summary.replicas:
        chosen = row.replica == summary.selected
        later = row.stopped == "diverged" and not row.diverged
        stopped = row.stopped
        if row.stopped == "diverged" and row.diverged_at is not None:
            stopped = f"diverged at step {row.diverged_at:,}"
        elif later:
            stopped = "diverged later"
        mark = f"{MARK} selected" + later * f", {stopped}" if chosen else stopped
        cells = [*(column.value_of(row) for column in OF_TRAINING[:-1]), mark]
        rows.append(Line(cells, style="bold" if chosen else None))
    return Table(
        OF_TRAINING,
        rows,
        title=title,
        look="framed",
        left_out=("best step", "loss"),
        more="summary.json has them",
    )


def finish_line(finish: Finish) -> str:
    """What the end of training did to the selected replica."""
    if finish.refused:
        return f"not finished exactly: {finish.refused}"
    return (
        f"finished exactly: {finish.kept} of {finish.hidden} coordinates of the state used, "
        f"squared error {small(finish.loss_before)} before and {small(finish.loss_after)} after"
    )


OF_SCORES = (
    Column("accuracy", "number", write=share),
    Column("95 % interval", "number", of=lambda row: interval(row.low, row.high), key="interval"),
    Column("symbols", "number", key="symbol_accuracy", write=share),
    Column("prefixes", "number", key="prefix_accuracy", write=share),
    Column("floor", "number", write=share),
    Column("scaled", "number", write=share),
)
"""What a table of evaluation says of each row."""

LEFT_OUT_FIRST = ("scaled", "symbols", "prefixes", "95 % interval", "floor")
"""The columns that a narrow terminal goes without, in this order."""


def evaluation_table(title: str, rows: Sequence[EvaluationRow]) -> Table:
    """Accuracy by length, and by replica where there are several, with interval and floor."""
    several = len({row.replica for row in rows}) > 1
    parts = [(row.words, row.length if several else 0) for row in rows]
    return _evaluation(title, rows, several, parts)


def evaluations_table(title: str, runs: Sequence[tuple[str, Sequence[EvaluationRow]]]) -> Table:
    """The same of several runs, named in the first column."""
    rows = [row for _, own in runs for row in own]
    several = any(len({row.replica for row in own}) > 1 for _, own in runs)
    names = [name for name, own in runs for _ in own]
    table = _evaluation(title, rows, several, names)
    shown = [
        name if name != before else "" for name, before in zip(names, ["", *names], strict=False)
    ]
    lines = [
        replace(line, cells=[name, *line.cells])
        for name, line in zip(shown, table.lines, strict=True)
    ]
    return replace(table, columns=[Column("run", "name"), *table.columns], rows=lines)


def _evaluation(
    title: str, rows: Sequence[EvaluationRow], several: bool, parts: Sequence[Any]
) -> Table:
    """A table with a line between rows of different parts, and the selected replica in bold."""
    columns = _columns(rows, several)
    lines = [
        Line(
            [column.value_of(row) for column in columns],
            style="bold" if several and row.selected else None,
            ends=number < len(rows) and parts[number] != parts[number - 1],
        )
        for number, row in enumerate(rows, start=1)
    ]
    return Table(
        columns, lines, title, look="framed", left_out=LEFT_OUT_FIRST, more="--csv has them"
    )


def _columns(rows: Sequence[EvaluationRow], several: bool) -> list[Column]:
    """The columns that rows need; several replicas have columns of their own."""
    columns = [Column("length", "number")]
    if len({row.words for row in rows}) > 1:
        columns.insert(0, Column("words", "number", of=lambda row: visible(row.words)))
    if several:
        columns += [
            Column("seed", "number", write=str),
            Column("lr", "number", write="{:g}".format),
        ]
    columns += OF_SCORES
    if several:
        mark = Column("", "number", of=lambda row: MARK if row.selected else "", key="selected")
        columns.append(mark)
    return columns


def closing_sentence(rows: Sequence[Score]) -> str:
    """Up to which length one replica is right at every position, and where it is not, how often."""
    reach = horizon(rows)
    said = [f"every answer correct up to length {reach:,} of those tested"] if reach else []
    wrong = [row for row in rows if row.length > reach and row.prefix_accuracy < 1]
    if wrong:
        farthest = max(wrong, key=lambda row: row.length)
        said.append(
            f"at length {farthest.length:,}, {_share_of_words(farthest.prefix_accuracy)} right at "
            "every position"
        )
        errors = [row.first_error for row in wrong if row.first_error is not None]
        if errors:
            said[-1] += f", and the first error is at position {min(errors):,}"
    broken = [row.nonfinite_from for row in rows if row.nonfinite_from is not None]
    if broken:
        said.append(f"logits are NaN or infinite from length {min(broken):,}")
    return "; ".join(said) or "no label is asked for at any length tested"


def _share_of_words(value: float) -> str:
    if value == 0:
        return "no word is"
    shown = share(value)
    return f"{shown if float(shown) else 'less than 0.01'} of the words are"


def estimates_table(estimates: Estimates) -> Table:
    """One line a point; seconds that were scaled from another point have a `~`."""

    def seconds(heading: str, key: str, about: str | None = None) -> Column:
        def said(point: Estimate) -> str:
            if point.finished:
                return "finished" if heading == "training" else ""
            before = ("" if point.measured else "~") if about is None else about
            return before + duration(getattr(point, key))

        return Column(heading, "number", of=said)

    searching = any(point.evidence_seconds for point in estimates.points)
    columns = [
        Column("model", "name", key="row"),
        Column("task", key="column"),
        Column("weights", "number"),
        Column("replicas", "number"),
        Column("all weights", "number", of=lambda point: point.weights * point.replicas),
        Column("steps", "number"),
        Column("words per step", "number", key="words_per_step"),
        seconds("training", "training_seconds"),
        seconds("testing", "evaluation_seconds"),
        *([seconds("evidence", "evidence_seconds", "≤ ")] if searching else []),
    ]
    left_out = ("all weights", "words per step", "replicas", "weights")
    return Table.of(columns, estimates.points, left_out=left_out)


def estimates_lines(estimates: Estimates) -> Iterator[str]:
    """The total, and what the numbers mean and leave out."""
    points = estimates.points
    finished = sum(point.finished for point in points)
    yield (
        f"{len(points)} points, {finished} finished; "
        f"{duration(estimates.processor_seconds)} of computing, about "
        f"{duration(estimates.seconds)} with {estimates.jobs} at a time on idle cores"
    )
    if any(not point.measured for point in points):
        yield "~: scaled from the nearest point, or a part of a step, by weights and words"
    yield (
        "from a few timed steps and tests of untrained models; not counted: replicas that stop "
        "early, and most of what solves for operators at the end of training"
    )


def duration(seconds: float) -> str:
    """`0.3 s`, `12 s`, `4 min 10 s`, `3 h 05 min`, `2 d 4 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    minutes = round(seconds / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    hours = round(seconds / 3600)
    return f"{hours // 24} d {hours % 24} h"


WIDTH, HEIGHT = 78, 16
"""The size of a plot, in characters; a narrower terminal has a narrower one."""
NARROWEST = 40
"""The width below which a plot shows nothing."""
MOST_LINES = 8
"""The most replicas whose lines can be told apart; the selected one is among them."""
WIDE_RANGE = 30
"""The ratio of longest to shortest length from which the axis of lengths is logarithmic."""

_IN_ASCII = str.maketrans("┌┐└┘├┤┬┴┼─│·", "+++++++++-|.")


def accuracy_curve(
    rows: Sequence[EvaluationRow], *, width: int = WIDTH, coloured: bool, ascii_only: bool = False
) -> str:
    """A plot of accuracy by length: one line per replica, and one for the floor.

    It has at most `WIDTH` columns, and fewer in a terminal of fewer. Of several replicas each is
    drawn in a letter; at most `MOST_LINES` of them.
    """
    import plotext  # which tables do without

    width = max(NARROWEST, min(width, WIDTH))
    figure = plotext.figure
    figure.clear()
    figure.theme("simple" if coloured else "colorless")
    figure.plot_size(width, HEIGHT)
    lengths = sorted({row.length for row in rows})
    wide = lengths[-1] / lengths[0] >= WIDE_RANGE

    def place(length: int) -> float:
        # the axis is linear in these: ticks of plotext's own are not at whole lengths
        return math.log10(length) if wide else float(length)

    replicas, left_out = _drawn(rows)
    alone = len(replicas) == 1
    legend = []
    first = next(iter(replicas))
    floor = [(row.length, row.floor) for row in rows if row.replica == first]
    lines = [(".", "the floor, the best constant answer", floor)]
    for letter, (replica, name) in zip(ascii_lowercase, replicas.items(), strict=False):
        points = [(row.length, row.accuracy) for row in rows if row.replica == replica]
        marker = ("*" if ascii_only else "hd") if alone else letter
        lines.append((marker, name, points))
    # what is drawn last covers the others: the selected replica, which is the first of all
    for marker, _, points in [lines[0], *reversed(lines[1:])]:
        scored = [(place(length), share) for length, share in points if not math.isnan(share)]
        if not scored:
            continue
        line = figure.signal(
            [at for at, _ in scored],
            [share for _, share in scored],
            marker="·" if marker == "." and not ascii_only else marker,
        )
        line.lines()
        figure.draw(line)
    for marker, name, _ in [*lines[1:], lines[0]]:
        shown = {".": "." if ascii_only else "·", "hd": "▄"}.get(marker, marker)
        legend.append(f"{shown} {name}")
    if left_out:
        legend.append(f"{left_out} more replicas are not drawn, and stand in the table")
    figure.ruler("y").lim(0, 1)
    ticks = _ticks(lengths, [place(length) for length in lengths], width)
    figure.ruler("x").ticks([place(tick) for tick in ticks], [f"{tick:,}" for tick in ticks])
    figure.label("length, on a logarithmic axis" if wide else "length")
    figure.legend(False)
    plot = str(figure.build())
    plot = plot if coloured else str(plotext.uncolorize(plot))
    kept = [line.rstrip() for line in plot.rstrip().splitlines()]
    text = "\n".join([*kept, *_wrapped(["accuracy at the last position:", *legend], width)])
    return text.translate(_IN_ASCII) if ascii_only else text


def _wrapped(entries: Sequence[str], width: int) -> list[str]:
    """Entries in lines of at most so many characters; none is broken unless it is longer."""
    lines = [""]
    for entry in entries:
        if lines[-1] and len(lines[-1]) + 2 + len(entry) > width:
            lines.append("")
        lines[-1] += f"  {entry}" if lines[-1] else entry
    return [part for line in lines for part in textwrap.wrap(line, width, drop_whitespace=False)]


def _drawn(rows: Sequence[EvaluationRow]) -> tuple[dict[int, str], int]:
    """The replicas that are drawn, the selected one first, with their names; how many are not."""
    names: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: not row.selected):
        said = f"seed {row.seed}, lr {row.lr:g}"
        names.setdefault(row.replica, f"{said} (selected)" if row.selected else said)
    kept = dict(list(names.items())[:MOST_LINES])
    return kept, len(names) - len(kept)


def _ticks(lengths: Sequence[int], places: Sequence[float], width: int) -> list[int]:
    """Where the axis of lengths has numbers: its ends, and tested lengths far from each other."""
    spare = (places[-1] - places[0]) * len(f"{lengths[-1]:,}  ") / width
    ticks, reached = [lengths[0]], places[0]
    for length, place in zip(lengths, places, strict=True):
        if place - reached >= spare and (places[-1] - place >= spare or length == lengths[-1]):
            ticks.append(length)
            reached = place
    return ticks
