"""Pages of reproductions: one for each suite, and the sums of their verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from statetrack.errors import StatetrackError
from statetrack.report.evidence import harmonics_markdown
from statetrack.report.formats.markdown import table_markdown
from statetrack.report.suites import cell_text, curves_markdown, evidence_table, suite_markdown
from statetrack.report.table import Column, Table
from statetrack.report.training import TrainedPoint, training_markdown, training_of
from statetrack.report.verdicts import (
    WORDS,
    beside,
    marks_of,
    published_text,
    summary_of,
    verdicts_markdown,
)
from statetrack.runs import RunFolder, files
from statetrack.sweep import (
    Compared,
    PointResult,
    Suite,
    counts,
    departures_from_paper,
)
from statetrack.text import markdown, markdown_block, markdown_table

if TYPE_CHECKING:  # which import torch
    from statetrack.sweep import Done, Point

MOST_COLUMNS = 12
"""Of more columns than this, and fewer rows, a table has a line for each column."""

EVERY_POINT = """\
Of the replica that validation selected: *selected* is its accuracy at the last symbol, *prefixes*
the share of words with every symbol right, *scaled* the accuracy with chance at 0, *horizon* the
longest tested length up to which every answer is right. *floor*: the accuracy of the best constant
answer; *s*: seconds of training.
"""

WORST_CASE = """\
*worst case*: the length up to which every word is right that was sought to make that replica fail;
`>=` where none fails, *all lengths* where that is proven.
"""

EVIDENCE = """\
*random words right to*: the longest tested length at which every random word is right. *worst word
right to*: the length before the earliest wrong answer known; with `>=` none was found, and every
word that was tried or proven is right up to there. *machine*: what `extract` learned, with its
number of states. *proven to*: every word up to this length is right, in float32, by certificate or
by reading all of them, and by certificate *in exact arithmetic* of the same weights. *fails first
in*: the precision of float64, float32 and bfloat16 in which a random word is wrong first.
"""

BEGIN, END = "<!-- totals -->\n", "<!-- /totals -->\n"
"""Between these lines of the index stand the sums."""


def machine_of(run: Path) -> str:
    """The processor (or device) that a run was trained on, and the versions; empty if not known."""
    try:
        about = RunFolder(run).read(files.ENVIRONMENT)
    except StatetrackError:
        return ""
    versions = [f"{name} {about[name]}" for name in ("statetrack", "torch") if about.get(name)]
    return ", ".join([str(about.get("device_name") or about.get("device") or ""), *versions])


def reproduction_page(
    suite: Suite,
    *,
    command: str,
    points: Sequence[Point],
    results: Sequence[Done],
    compared: Sequence[Compared],
    evidence: bool = False,
    machine: Callable[[Path], str] = machine_of,
) -> str:
    """What was done, with which settings, on which machine, the table, and the verdicts."""
    places = {(point.row, point.column): place for place, point in enumerate(points)}
    done = sorted(
        (each for each in results if isinstance(each, PointResult)),
        key=lambda each: places[each.row, each.column],
    )
    failed = [each for each in results if not isinstance(each, PointResult)]
    machines = sorted({machine(Path(each.run)) for each in done} - {""})
    seconds = math.fsum(each.seconds for each in done)  # sum() differs by versions of Python
    replicas = sum(each.replicas for each in done)
    parts = [f"# {markdown(suite.title)}\n"]
    if suite.reference:
        parts.append(f"{markdown(suite.reference)}\n")
    parts.append(markdown_block(f"$ {command}", "text"))
    parts.append(
        f"{len(done):,} of {len(points):,} points were measured, {replicas:,} replicas in all. "
        f"Their training took {seconds:,.0f} s, added up"
        + (f", on {markdown('; '.join(machines))}.\n" if machines else ".\n")
    )
    training = training_of([TrainedPoint(p.row, p.column, p.experiment) for p in points])
    parts.append(training_markdown(training, suite.reference, suite.departures))
    if derived := departures_from_paper(suite, points):
        parts.append(f"From the settings, ours for the paper's: {markdown(derived)}.\n")
    parts.append("## Table\n")
    parts.append(_matrix(suite, done, compared))
    parts.append(_legend(suite, compared))
    if failed:
        lines = [f"{each.row}, {each.column}: {' '.join(each.error.split())}" for each in failed]
        parts.append("Failed:\n\n" + "".join(f"- {markdown(line)}\n" for line in lines))
    if compared:
        parts.append("## Verdicts\n")
        parts.append("*right*: of how many replicas all answers to all test words are right.\n")
        parts.append(verdicts_markdown(compared))
        parts.append(_sums(compared))
    rows, columns = list(suite.rows), list(suite.columns)
    published = beside(compared, suite.measure)
    parts.append("## Every point\n")
    parts.append(EVERY_POINT)
    if any(each.searched for each in done):
        parts.append(WORST_CASE)
    parts.append(suite_markdown(rows, columns, done, published, suite.published_as))
    if evidence:
        parts.append("## Evidence about the selected replicas\n")
        parts.append(EVIDENCE)
        parts.append(table_markdown(evidence_table(rows, columns, done)))
    if harmonics := harmonics_markdown(done):
        parts.append("## Angles\n")
        parts.append(harmonics)
    if curves := curves_markdown(done):
        parts.append("## Accuracy by length, seed by seed\n")
        parts.append(curves)
    return "\n".join(parts)


def totals_markdown(pages: Mapping[str, tuple[str, Sequence[Compared]]]) -> str:
    """The sums over pages of their verdicts: of all, by paper and by page.

    `pages` are the titles and verdicts by file names; without verdicts there are no sums.
    """
    every = [each for _, compared in pages.values() for each in compared]
    head = (*(said for _, said in WORDS.values()), "published")
    by_paper: dict[str, list[Compared]] = {}
    for each in every:
        by_paper.setdefault(each.reference, []).append(each)
    papers = [[paper, *_numbers(of)] for paper, of in sorted(by_paper.items())]
    lines = [
        [f"[{markdown(title)}]({name})", *(_numbers(of) if of else "-" * len(head))]
        for name, (title, of) in pages.items()
    ]
    return "\n".join(
        [
            f"Of all pages: {summary_of(counts(every))}.\n",
            table_markdown(Table([Column(each) for each in ("paper", *head)], papers)),
            markdown_table(("page", *head), lines),
        ]
    )


def with_totals(index: str, pages: Mapping[str, tuple[str, Sequence[Compared]]]) -> str:
    """The text of the index with the sums over these pages in the place for them."""
    before, _, rest = index.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{totals_markdown(pages)}\n{END}{after}"


def _numbers(compared: Sequence[Compared]) -> list[str]:
    return [*map(str, counts(compared).values()), str(len(compared))]


def _sums(compared: Sequence[Compared]) -> str:
    papers = dict.fromkeys(each.reference for each in compared)
    lines = []
    for paper in papers:
        numbers = counts(each for each in compared if each.reference == paper)
        lines.append(f"Verdicts on {markdown(paper or 'no paper')}: {summary_of(numbers)}.\n")
    return "\n".join(lines)


def _matrix(suite: Suite, done: Sequence[PointResult], compared: Sequence[Compared]) -> str:
    """The table of rows and columns: measured, replicas right, and in brackets published."""
    found = {(each.row, each.column): each for each in done}

    def cell(row: str, column: str) -> str:
        result = found.get((row, column))
        text = "-" if result is None else cell_text(result, suite.measure, None).split("\n")[0]
        beside = [each for each in compared if row in each.rows and each.column == column]
        return text + (f" [{'; '.join(map(published_text, beside))}]" if beside else "")

    rows, columns = list(suite.rows), list(suite.columns)
    if len(columns) > MOST_COLUMNS > len(rows):
        lines = [[column, *(cell(row, column) for row in rows)] for column in columns]
        columns = rows
    else:
        lines = [[row, *(cell(row, column) for column in columns)] for row in rows]
    return table_markdown(Table([Column(each) for each in ("", *columns)], lines))


def _legend(suite: Suite, compared: Sequence[Compared]) -> str:
    """What a place of the table shows."""
    shown = {
        "accuracy": "accuracy of the replica that validation selected",
        "scaled": "accuracy with chance at 0 of the replica that validation selected",
        "success": "share of replicas that are right on every test word",
    }[suite.measure]
    text = f"At length {suite.length:,}, {suite.samples:,} words for each replica: {shown}"
    if suite.measure != "success":
        text += ", and how many replicas have every answer right"
    if compared:
        text += "; in brackets the published number"
    for said in marks_of(compared):
        text += f", {said}"
    return f"{text}.\n"
