"""Laws of the record: how horizons grow with mantissa bits, for each model with weights.

    python -m tests.precision.laws        # the tables of docs/precision.md

A horizon of a law h = c (m / u)^a gives the slope a of log2 h over the bits, since u = 2^-(bits+1).
Slopes are of least squares over points whose horizon was reached, with 95 % intervals of normal
errors (Student's t).
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from statetrack.text import markdown_table

RECORD = Path(__file__).with_name("recorded.json")
Row = dict[str, Any]


class Slope(NamedTuple):
    """A slope, half of its 95 % interval (infinite for two points), and how many points."""

    value: float
    half: float
    points: int


def worst(row: Row) -> int | None:
    """The first failure of any word that was read; None where none failed."""
    found = [row["periodic"][0], row.get("greedy", [None])[0], row.get("all", {}).get("horizon")]
    return min([each for each in [*found, *row["random"]] if each is not None], default=None)


def typical(row: Row) -> float | None:
    """The median over random words; None where half of them did not fail."""
    found = [math.inf if each is None else each for each in row["random"]]
    middle = statistics.median(found)
    return None if math.isinf(middle) else middle


def is_exact(row: Row) -> bool:
    """Whether the worst word is a shortest one that fails, or none fails at any length."""
    found = row.get("all", {})
    return found.get("closed", False) or found.get("horizon") is not None


def predicted(row: Row) -> tuple[float, float]:
    """m / u and its square."""
    ratio = row["sine"] * 2.0 ** (row["bits"] + 1)
    return ratio, ratio**2


def slope(points: Iterable[tuple[float, float]]) -> Slope | None:
    """The slope of log2 of the horizons over bits, of points (bits, horizon)."""
    from scipy import stats  # takes as long to import as all tests of precision

    pairs = [(bits, math.log2(horizon)) for bits, horizon in points]
    if len(pairs) < 2:
        return None
    if len({horizon for _, horizon in pairs}) == 1:  # where no error is defined
        return Slope(0.0, 0.0, len(pairs))
    found = stats.linregress(*zip(*pairs, strict=True))
    half = math.inf
    if len(pairs) > 2:
        half = float(stats.t.ppf(0.975, len(pairs) - 2) * found.stderr)
    return Slope(float(found.slope), half, len(pairs))


def groups(rows: Iterable[Row]) -> dict[tuple[str, str, str, str, str], list[Row]]:
    """Rows by their weights, part and change, in the order of bits."""
    found: dict[tuple[str, str, str, str, str], list[Row]] = defaultdict(list)
    for row in rows:
        options = " ".join(f"{key}={value}" for key, value in row["options"].items())
        model = f"{row['model']} {options}".strip()
        found[row["how"], model, row["task"], row["part"], row["change"]].append(row)
    return {key: sorted(each, key=lambda row: row["bits"]) for key, each in found.items()}


def proven(row: Row) -> int | None:
    """Symbols up to which no word can fail, of built blocks of which states alone are rounded.

    Blocks are orthogonal, and a cast turns a state by an angle of at most arcsin u: n casts leave
    it within an angle of n arcsin u from the exact one, which is at least arcsin m from a wrong
    answer. The first state is cast too. Numbers below the normal ones are far below these lengths.
    """
    whole = row["how"] == "built" and row["part"] == "state" and row["change"] != "decayed"
    if "sine" not in row or not whole:
        return None
    unit = 2.0 ** -(row["bits"] + 1)
    return max(0, math.ceil(math.asin(min(1.0, row["sine"])) / math.asin(unit)) - 2)


def needed_bits(rows: Sequence[Row], length: int) -> int | None:
    """The fewest bits from which on no random word failed up to a length; rows have rising bits."""
    enough = None
    for row in rows:
        if all(each is None or each > length for each in row["random"]):
            assert row["random_read"] >= length
            enough = enough or row["bits"]
        else:
            enough = None
    return enough


LAW = ("model", "task", "m", "worst: slope", "x m/u", "random: slope", "x (m/u)²", "never wrong at")
PARTS = (
    "model",
    "task",
    "rounded",
    "worst: slope",
    "random: slope",
    "bits for 100,000",
)


def tables(rows: Iterable[Row]) -> dict[str, str]:
    """The tables of the page, by name."""
    law, parts, saturating = [], [], []
    for (how, model, task, part, change), own in groups(rows).items():
        named = [f"{'' if how == 'built' else how + ' '}`{model}`", f"`{task}`"]
        what = part if change in ("none", "turned") else f"{part}, {change}"
        saturates = how == "integers" or model.split()[0] in SATURATING
        if len(own) < 3 and not saturates:
            continue
        if change == "turned":
            named[1] += ", turned"
        fits = [_slope(own, worst), _slope(own, typical)]
        if saturates:
            saturating.append([*named, _first(own), _closed(own)])
            continue
        if what == "state":
            factors = [_part(own, worst, 0), _part(own, typical, 1)]
            found = [fits[0], factors[0], fits[1], factors[1], _closed(own)]
            if {*found} != {"-"}:
                law.append([*named, _number(own[0].get("sine")), *found])
        if what == "state" and (task, change) not in BESIDE:
            continue
        enough = needed_bits(own, 100_000) if own[0]["random_read"] >= 100_000 else None
        if enough is not None or {*fits} != {"-"}:
            parts.append([*named, what, *fits, "-" if enough is None else str(enough)])
    return {
        "law": markdown_table(LAW, law),
        "parts": markdown_table(PARTS, parts),
        "no law": markdown_table(("model", "task", "wrong with", "never wrong with"), saturating),
    }


BESIDE = (("s4", "turned"), ("s5", "turned"), ("cyclic:n=25", "turned"), ("s5", "none"))
"""Of which weights other parts and changes are measured too."""

SATURATING = ("lstm", "gru", "second-order-rnn")


def _number(value: float | None) -> str:
    return "-" if value is None or not math.isfinite(value) else f"{value:.2g}"


def _slope(rows: Sequence[Row], horizon: Callable[[Row], float | None]) -> str:
    points = [(row["bits"], found) for row in rows if (found := horizon(row)) is not None]
    # lengths of a few symbols are counted too coarsely
    fit = slope([each for each in points if each[1] >= 4])
    if fit is None or fit.points < 3:
        return "-"
    return f"{fit.value:.2f} ± {fit.half:.2f} ({fit.points})"


def _part(rows: Sequence[Row], horizon: Callable[[Row], float | None], power: int) -> str:
    if "sine" not in rows[0]:
        return "-"
    parts = [
        found / predicted(row)[power] for row in rows if (found := horizon(row)) and found >= 4
    ]
    return f"{statistics.median(parts):.2g}" if len(parts) >= 3 else "-"


def _bits(rows: Iterable[Row]) -> str:
    return ", ".join(str(row["bits"]) for row in rows) or "-"


def _closed(rows: Sequence[Row]) -> str:
    return _bits(row for row in rows if row.get("all", {}).get("closed"))


def _first(rows: Sequence[Row]) -> str:
    return _bits(row for row in rows if worst(row) is not None)


def bracketed(rows: Iterable[Row]) -> list[float]:
    """What is proven as a part of the first failure that was found, where both are known."""
    found = []
    for row in rows:
        length, first = proven(row), worst(row)
        if length is not None and first is not None:
            assert length < first, row["name"]
            found.append(length / first)
    return found


def main() -> None:
    """Print the tables, and what is proven beside what was found."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORD
    rows = json.loads(path.read_text(encoding="utf-8"))["points"]
    for name, text in tables(rows).items():
        print(f"{name}\n\n{text}")
    parts = bracketed(rows)
    print(f"{len(rows)} points; of {len(parts)} proven / first failure: ", end="")
    print(f"median {statistics.median(parts):.2f}, least {min(parts):.2f}")


if __name__ == "__main__":
    main()
