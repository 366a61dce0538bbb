"""Published numbers beside measured ones, with the verdict on each: for a terminal and a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.report.formats.markdown import table_markdown
from statetrack.report.table import Column, Line, Table, share
from statetrack.sweep import VERDICTS, Compared, Trust, Verdict, counts
from statetrack.text import markdown

MARKS: Mapping[Trust, str] = {"primary": "", "second-hand": "†", "figure": "‡", "sentence": "§"}
"""The mark behind a published number that was not read in a table of the paper or its data."""

_READ: Mapping[Trust, str] = {
    "second-hand": "read in a digest of the paper, not in the paper",
    "figure": "read off a figure",
    "sentence": "said in a sentence about many numbers together",
}

LOOKS: Mapping[Verdict, str] = {
    "agrees": "green",
    "differs": "red",
    "impossible": "cyan",
    "not comparable": "dim",
}

COLUMNS = (
    *(Column(heading, "name") for heading in ("row", "column", "source")),
    *(Column(heading, "number") for heading in ("published", "measured", "right")),
    *(Column(heading) for heading in ("verdict", "why")),
)
"""`right` counts the replicas with every answer to every test word right, out of all replicas."""

WORDS: Mapping[Verdict, tuple[str, str]] = {
    "agrees": ("agrees", "agree"),
    "differs": ("differs", "differ"),
    "impossible": ("impossible, as predicted", "impossible, as predicted"),
    "not comparable": ("not comparable", "not comparable"),
}
"""How a verdict is said of one number, and of several."""


def verdict_table(compared: Sequence[Compared]) -> Table:
    """One line for each published number."""
    return Table(
        COLUMNS,
        [Line(_cells(each), style=LOOKS[each.verdict]) for each in compared],
        title="published numbers and what was measured",
        look="framed",
        left_out=("why", "right", "source"),
        more="--markdown FILE has them",
    )


def verdicts_markdown(compared: Sequence[Compared]) -> str:
    """The same in Markdown, with the legend and the summary; empty without published numbers."""
    if not compared:
        return ""
    after = [markdown(line) for line in (*legend(compared), f"In all: {summary(compared)}")]
    return table_markdown(verdict_table(compared)) + "".join(f"\n{line}.\n" for line in after)


def beside(compared: Sequence[Compared], measure: str) -> dict[str, dict[str, float]]:
    """The published numbers of one measure by row and column: of several, the first."""
    found: dict[str, dict[str, float]] = {}
    for each in compared:
        if each.measure == measure:
            for row in each.rows:
                found.setdefault(row, {}).setdefault(each.column, each.published)
    return found


def summary(compared: Sequence[Compared]) -> str:
    """`41 agree, 3 differ, 6 impossible, as predicted, 12 not comparable (of 62 published)`."""
    return summary_of(counts(compared))


def summary_of(numbers: Mapping[Verdict, int]) -> str:
    """The same of the numbers themselves."""
    said = [f"{numbers[each]} {WORDS[each][numbers[each] != 1]}" for each in VERDICTS]
    return f"{', '.join(said)} (of {sum(numbers.values())} published)"


def legend(compared: Sequence[Compared]) -> list[str]:
    """What the marks mean, of those that are used."""
    marks = marks_of(compared)
    return ["; ".join(marks)] if marks else []


def marks_of(compared: Sequence[Compared]) -> list[str]:
    """Each mark that is used, and what it means."""
    used = {each.trust for each in compared}
    return [f"{MARKS[trust]} {said}" for trust, said in _READ.items() if trust in used]


def published_text(compared: Compared) -> str:
    """The published number as it was printed, and the mark of where it was read."""
    return f"{_number(compared.published, compared)}{MARKS[compared.trust]}"


def measured_text(compared: Compared) -> str:
    """What was measured, rounded down; which statistic, where it is not the selected replica's."""
    if compared.measured is None:
        return "-"
    digits = 3 if compared.measure == "success" else 2
    text = (
        f"{compared.measured:,.0f}"
        if compared.measure == "horizon"
        else share(compared.measured, digits)
    )
    is_plain = compared.of == "selected" or compared.measure == "success"
    return text if is_plain else f"{compared.of} {text}"


def _number(value: float, compared: Compared) -> str:
    if compared.measure == "horizon":
        return f"{value:,.0f}"
    short = f"{value:.2f}"
    return short if float(short) == value else f"{value:g}"


def _cells(each: Compared) -> list[str]:
    return [
        each.row,
        each.column,
        each.source,
        published_text(each),
        measured_text(each),
        f"{each.right}/{each.replicas}" if each.replicas else "-",
        WORDS[each.verdict][0],
        each.why,
    ]
