"""Verdicts from another seed beside those of the pages: how many of them a seed changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statetrack.report.recorded import RecordedTable
from statetrack.report.verdicts import WORDS, legend, measured_text, published_text
from statetrack.sweep import Compared
from statetrack.text import markdown, markdown_table

HEAD = ("row", "column", "source", "published", "measured", "verdict", "again", "verdict again")

ABOUT = """\
Of recorded pages the cells that took the least time of those with a verdict, trained and tested
again from another seed. Those that *agree* or *differ* come first, since what is impossible needs
no training. Everything else is as on the page. A cell stands in a line for each published number
that it is compared with.

```text
$ python docs/recorded.py repeat SUITE...
```
"""


def decided_cells(table: RecordedTable) -> list[tuple[str, str]]:
    """The cells of a suite with a verdict, those first that are not impossible, then by seconds.

    Left out are those that the source prints in one number with others.
    """
    decided: dict[tuple[str, str], bool] = {}
    for each in table.compared:
        if each.verdict != "not comparable" and len(each.rows) == 1:
            place = (each.rows[0], each.column)
            decided[place] = decided.get(place, True) and each.verdict == "impossible"
    seconds = {(cell.row, cell.column): cell.seconds for cell in table.cells}
    return sorted(decided, key=lambda place: (decided[place], seconds[place]))


def repeated_page(
    records: Mapping[str, RecordedTable], repeated: Mapping[str, RecordedTable]
) -> str:
    """The page: a table for every suite of which cells were trained again.

    Left out are records that do not hold any more.
    """
    found = {
        name: pairs_of(records[name], again)
        for name, again in repeated.items()
        if name in records and not again.why_stale() and not records[name].why_stale()
    }
    pairs = [pair for every in found.values() for pair in every]
    decided = [(one, again) for one, again in pairs if one.verdict != "not comparable"]
    kept = sum(one.verdict == again.verdict for one, again in decided)
    cells = {(name, one.row, one.column) for name in found for one, _ in found[name]}
    parts = [
        "# Cells trained again from other seeds\n",
        ABOUT,
        f"{len(cells):,} cells of {len(found):,} pages: of {len(decided):,} verdicts, {kept:,} "
        "are the same from the other seed.\n",
        *(f"{markdown(line)}.\n" for line in legend([one for one, _ in pairs])),
    ]
    for name, every in found.items():
        again = repeated[name]
        parts.append(f"## [{markdown(again.suite_now.title)}]({name}.md)\n")
        parts.append(
            f"From seed {again.seed:,} on; {again.date}, commit {again.commit}, "
            f"{again.seconds:,.0f} s of training.\n"
        )
        parts.append(markdown_table(HEAD, [_line(*pair) for pair in every]))
    return "\n".join(parts)


def pairs_of(table: RecordedTable, again: RecordedTable) -> list[tuple[Compared, Compared]]:
    """The verdicts on the cells that were trained again: those of the page, and the others."""
    there = {(cell.row, cell.column) for cell in again.cells}
    first = [each for each in table.compared if set(_places(each)) <= there]
    second = [each for each in again.compared if set(_places(each)) <= there]
    return list(zip(first, second, strict=True))


def _places(each: Compared) -> list[tuple[str, str]]:
    return [(row, each.column) for row in each.rows]


def _line(first: Compared, second: Compared) -> Sequence[str]:
    texts = (
        *(first.row, first.column, first.source),
        *(published_text(first), measured_text(first), WORDS[first.verdict][0]),
        *(measured_text(second), WORDS[second.verdict][0]),
    )
    return [markdown(text) for text in texts]
