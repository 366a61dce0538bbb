"""How errors of a model's state grow, as facts and tables for the terminal."""

from __future__ import annotations

from rich.console import RenderableType
from rich.text import Text

from statetrack.evidence import ErrorControl, NoiseRow, PrecisionRow
from statetrack.report.drawing import facts, plain_table

MOST_ROWS = 10
"""The most positions that are shown."""


LEGEND = (
    "R: how far hidden states of one automaton state are apart; M: the smallest distance of two\n"
    "automaton states' means; displacement: how far logits have moved from early means, over M"
)
"""What the columns of the table by position are."""


def error_control_lines(found: ErrorControl) -> list[RenderableType]:
    """The spread by position, thresholds and predictions, noise, precisions."""
    return [Text(LEGEND), _spreads(found), facts(_facts(found))]


def _spreads(found: ErrorControl) -> RenderableType:
    headings = ("position", "R/M of states", "R/M of logits", "displacement", "wrong")
    table = plain_table(*headings, right=headings)
    kept = [each for each in found.spreads if each.position & (each.position - 1) == 0]
    if found.spreads and found.spreads[-1] not in kept:
        kept.append(found.spreads[-1])
    step = -(-len(kept) // MOST_ROWS)
    for each in kept[(len(kept) - 1) % max(1, step) :: max(1, step)]:
        table.add_row(
            f"{each.position:,}",
            _small(each.ratio),
            _small(each.output_ratio),
            _small(each.displacement),
            f"{100 * each.wrong:.1f} %",
        )
    return table


def _facts(found: ErrorControl) -> list[tuple[str, str | Text]]:
    told: list[tuple[str, str | Text]] = []
    words = f"{found.words:,} random words of {_symbols(found.length)}"
    if found.first_error is None:
        told.append(("  errors", f"none on {words}"))
    else:
        many = "" if found.observed is None else f", 1 % of the answers from {found.observed:,}"
        told.append(("  errors", f"the first at symbol {found.first_error:,}{many} ({words})"))
    if found.threshold is not None:
        told.append(
            (
                "  threshold",
                f"at a displacement of {found.threshold:.2f}, noise makes 1 % of the answers wrong",
            )
        )
    if found.drift is not None:
        ends = []
        if found.predicted is not None:
            ends.append(f"{found.predicted:,} by a line")
        if found.predicted_by_growth is not None:
            ends.append(f"{found.predicted_by_growth:,} by a power of {found.exponent:.2f}")
        crosses = f"; crosses at {', '.join(ends)}" if ends else "; does not cross"
        told.append(
            (
                "  drift",
                f"{found.drift:+.1e} per symbol up to {found.drift_to:,}{crosses}",
            )
        )
    if found.margin is not None:
        rounded = ", ".join(f"{number:,} in {name}" for name, number in found.horizons)
        told.append(("  margin", f"{found.margin:.3f} of the state; rounding at worst: {rounded}"))
    told += [(f"  noise {row.size:g}", _noise(row)) for row in found.noise]
    told += [(f"  {row.precision}", _precision(row)) for row in found.precisions]
    if found.fails_first is not None:
        why = "" if found.fails_first != "float64" else ": no rounding, but the model itself"
        told.append(("  fails first", f"{found.fails_first}{why}"))
    if not found.complete:
        told.append(("  note", "time ran out: not all lengths were read"))
    return told


def _noise(row: NoiseRow) -> str:
    text = (
        f"no error within {_symbols(row.length)}"
        if row.first_error is None
        else f"first error at symbol {row.first_error:,}"
    )
    expected = "" if row.predicted is None else f"; the margin says {row.predicted:,.0f}"
    return f"{text} ({row.words} words){expected}"


def _precision(row: PrecisionRow) -> str:
    if row.reason:
        return f"cannot be used: {row.reason}"
    wrong = (
        f"right on {row.words} words of {_symbols(row.length)}"
        if row.first_wrong is None
        else f"first error at symbol {row.first_wrong:,}"
    )
    if row.precision == "float64" or row.first_difference is None:
        return wrong
    return f"{wrong}, differs from float64 from {row.first_difference:,}"


def _small(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def _symbols(number: int) -> str:
    return "1 symbol" if number == 1 else f"{number:,} symbols"
