"""Evidence in sentences: what is proven, and the first word that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from statetrack.evidence import (
    ENDINGS,
    SYMBOLS_SHOWN,
    Bracket,
    Certificate,
    ErrorControl,
    Exhaustive,
    Extraction,
    Verdict,
    WorstCase,
    failure_text,
    word_text,
)
from statetrack.report.drawing import facts
from statetrack.report.table import Table as FactsTable

if TYPE_CHECKING:
    from statetrack.evidence import FailingWords, Window


NONE_FAILS, NONE_TRIED = "fails: none of the words that were tried", "fails: no word was tried"
"""What is said where no word is known that fails."""


def bracket_lines(bracket: Bracket, symbols: Sequence[str], labels: Sequence[str]) -> list[str]:
    """What is proven, where the model fails, and what lies between: one sentence each."""
    failure = bracket.failure
    if bracket.verdict == "not proven":
        lines = ["proven: nothing"]
    else:
        to = "every length" if bracket.proven is None else f"up to {_symbols(bracket.proven)}"
        lines = [f"proven: every word of {to} is answered rightly ({bracket.proven_by})"]
    position = bracket.fails_at
    if failure is not None and failure.position == position:
        lines.append(f"fails: {failure_text(failure, symbols, labels)}")
    elif position is not None:
        lines.append(f"fails: symbol {position:,} of a random word (`eval --errors` shows some)")
    elif bracket.proven is not None:
        lines.append(NONE_FAILS if bracket.tried else NONE_TRIED)
    if position is not None:
        low, high = bracket.proven or 0, position - 1
        between = f"is {high:,}" if low == high else f"lies between {low:,} and {high:,}"
        lines.append(f"the longest length at which every word is right {between}")
    return lines


def evidence_lines(bracket: Bracket) -> list[tuple[str, str]]:
    """Each kind of evidence, and what it says."""
    told: list[tuple[str, str]] = []
    for each in bracket.evidence:
        match each:
            case Exhaustive():
                told.append((each.kind, _exhaustive(each)))
            case WorstCase():
                told.append((each.kind, _worst_case(each)))
            case Extraction():
                told.append((each.kind, _extraction(each)))
            case Certificate():
                told.append((each.kind, _certificate(each)))
    return told + [(kind, f"not looked for: {reason}") for kind, reason in bracket.skipped]


def _exhaustive(found: Exhaustive) -> str:
    which = "all words that the task draws" if found.forbids else "all words"
    if found.closed:
        what = f"{which} of every length are right: {found.states:,} states lead to no others"
        return what if found.tolerance == 0 else f"{what} (to {found.tolerance:g}: no proof)"
    words = "" if found.words is None else f" ({found.words:,})"
    ended = "" if found.failure is not None else f"; ended: {ENDINGS[found.reason]}"
    return f"{which} of up to {_symbols(found.length)}{words} are right{ended}"


def _worst_case(found: WorstCase) -> str:
    words = sum(family.words for family in found.families)
    tried = f"{words:,} words of up to {_symbols(found.tested)} were tried"
    if found.failure is None:
        return f"{tried}: none fails"
    parts = [f"{tried}: the earliest failure is at symbol {found.failure.position:,}"]
    if found.predicted is not None:
        parts.append(f"predicted from eigenvalues at {found.predicted:,}")
    where = found.position_float64
    parts.append("right in float64" if where is None else f"in float64 at {where:,}")
    return "; ".join(parts)


def _extraction(found: Extraction) -> str:
    what = f"a machine of {found.states:,} states" if found.states else "no machine was learned"
    if found.difference is not None:
        what = f"{what}; the network differs from the task at symbol {found.difference.position:,}"
    elif found.equivalent:
        what = f"{what}, equivalent to the task"
    return f"{what}; {found.words:,} words were read, of up to {_symbols(found.longest)}"


def _certificate(found: Certificate) -> str:
    parts = [f"{_proven(found.verdict, found.length)}, rounding counted"]
    if (found.verdict_real, found.length_real) != (found.verdict, found.length):
        parts.append(f"{_proven(found.verdict_real, found.length_real)} in exact arithmetic")
    if found.method != "none":
        parts.append(f"method: {found.method}")
    if found.reason:
        parts.append(found.reason)
    return "; ".join(parts)


def _proven(verdict: str, length: int | None) -> str:
    return verdict if length is None else f"proven {verdict} {length:,}"


def _symbols(number: int) -> str:
    return "1 symbol" if number == 1 else f"{number:,} symbols"


def length_text(verdict: Verdict, length: int | None) -> str:
    """What is proven, in a cell of a table: `408`, `all lengths`, or `-` for nothing."""
    if verdict == "not proven":
        return "-"
    return verdict if length is None else f"{length:,}"


def machine_text(found: Extraction | None, fails_at: int | None = None) -> str:
    """The machine extracted, in a cell of a table: `equivalent (6)`, `differs (9)`, `-`.

    Where the network is known to fail on some word all the same: `equivalent (6), fails at 29`.
    """
    if found is None:
        return "-"
    known = {True: "equivalent", False: "differs", None: "not decided"}[found.equivalent]
    fails = f", fails at {fails_at:,}" if found.equivalent and fails_at is not None else ""
    return f"{known} ({found.states:,}){fails}"


def precision_text(found: ErrorControl | None) -> str:
    """The precision that fails first, in a cell of a table: `bfloat16 (at 14)`, `none to 500`."""
    if found is None:
        return "-"
    for row in found.precisions:
        if row.precision == found.fails_first and row.first_wrong is not None:
            return f"{row.precision} (at {row.first_wrong:,})"
    lengths = [row.length for row in found.precisions if not row.reason]
    return f"none to {min(lengths):,}" if lengths else "-"


def worst_case_lines(
    found: WorstCase, symbols: Sequence[str], labels: Sequence[str], random_horizon: int
) -> list[str]:
    """Up to which length all words that were tried are right, and the one that fails first."""
    words = sum(family.words for family in found.families)
    beside = f"random words: {random_horizon:,}"
    cut = "" if found.complete else "; the time was spent before all of them were read"
    lines = [f"worst-case horizon: {found.horizon:,} ({beside}), over {words:,} words tried{cut}"]
    failure = found.failure
    if failure is None:
        return [*lines, NONE_FAILS if words else NONE_TRIED]
    lines.append(f"fails: {failure_text(failure, symbols, labels)}")
    exact = found.position_float64
    where = [] if found.predicted is None else [f"predicted at {found.predicted:,}"]
    unknown = "right in float64" if found.complete else "in float64 no wrong answer in the time"
    where.append(unknown if exact is None else f"in float64 at {exact:,}")
    return [*lines, "; ".join(where)]


def families_table(found: WorstCase, symbols: Sequence[str]) -> FactsTable:
    """Which words were tried, and how far they were read."""
    rows = []
    for family in found.families:
        said = f"{family.words:,}, read to {_symbols(family.longest)}"
        if family.settled:
            said += f"; {family.settled:,} come back to a state, so are right at every length"
        if family.first_error is not None:
            said += f"; fails at {family.first_error:,}"
            if family.failure is not None and len(family.failure.prefix) <= SYMBOLS_SHOWN:
                said += f" of {word_text(family.failure, symbols)}"
            if family.predicted is not None:
                said += f", predicted at {family.predicted:,}"
        rows.append((f"  {family.name}", said))
    return facts(rows)


def window_table(
    window: Window, symbols: Sequence[str], labels: Sequence[str], width: int
) -> Table:
    """What stands around a wrong answer: positions, symbols, labels and answers as columns.

    As many positions as a terminal of this width has room for, the wrong one among them.
    """

    def named(row: Sequence[int | None], none: str) -> list[str]:
        return [none if each is None else labels[each] for each in row]

    answers = [
        "-" if label is None else text
        for text, label in zip(named(window.answers, "none"), window.labels, strict=True)
    ]
    rows = {
        "  position": [f"{window.begin + place:,}" for place in range(len(window.symbols))],
        "  symbol": [symbols[each] for each in window.symbols],
        "  label": named(window.labels, "-"),
        "  answer": answers,
    }
    wrong = window.position - window.begin
    widths = [max(map(cell_len, column)) for column in zip(*rows.values(), strict=True)]
    room = width - max(map(len, rows)) - GAP
    shown = range(*_fitting([each + GAP for each in widths], wrong, room))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    for _ in shown:
        table.add_column(justify="right", no_wrap=True)
    styles = ("bold", "", "bold green", "bold red")
    for (name, texts), style in zip(rows.items(), styles, strict=True):
        cells = [Text(texts[place], style if place == wrong else "") for place in shown]
        table.add_row(name, *cells)
    return table


GAP = 2
"""Spaces between two columns."""


def _fitting(widths: Sequence[int], place: int, room: int) -> tuple[int, int]:
    """The first column and the one after the last that fit, at least that of a place.

    What comes before it matters more: two columns before it for each one behind it.
    """
    first, end, used = place, place + 1, widths[place]
    while True:
        before = first > 0 and (place - first <= 2 * (end - place - 1) or end == len(widths))
        if not before and end == len(widths):
            return first, end
        used += widths[first - 1] if before else widths[end]
        if used > room:
            return first, end
        first, end = (first - 1, end) if before else (first, end + 1)


def failing_words_line(found: FailingWords) -> str:
    """How many test words fail, and how many of them follow."""
    if not found.failing:
        return f"length {found.length:,}: none of {found.words:,} words is answered wrongly"
    return (
        f"length {found.length:,}: {found.failing:,} of {found.words:,} words are answered "
        f"wrongly, of which the earliest {len(found.shown):,}:"
    )
