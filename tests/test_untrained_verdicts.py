"""No agreement is earned by a network that was not trained: every suite with published numbers.

Each published number is judged beside a network of one step that happens to measure the very same
number, or nothing where the published one is a success, and as if theory forbade every success: no
guess can do better.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from statetrack.cli.app import run
from statetrack.runs import EvaluationRow, Outcome, Summary
from statetrack.scoring import rescale, wilson
from statetrack.sweep import (
    SUITES,
    Measurement,
    Point,
    PointResult,
    Suite,
    compare_published,
    points_of,
    verdicts,
)

WORDS = 10**9
"""Test words that leave nothing open."""

_OUTCOME = Outcome(0, 0, 0.1, 0.99, 1.0, 1, "", validation_prefix_accuracy=0.0)
UNTRAINED = Summary(1, 0.0, 0, (_OUTCOME,))
"""A network of one step, right at nearly all positions and on no word."""

PUBLISHED = [name for name in SUITES if SUITES[name].published_tables]


def one_by_one(suite: Suite) -> Iterator[tuple[Suite, str, str, float]]:
    """The suite with each of its published numbers alone; our row, the column, what is measured."""
    for table in suite.published_tables:
        for row, values in table.values.items():
            for column, value in values.items():
                alone = table.model_copy(update={"values": {row: {column: value}}})
                number = value if value < 1 - table.within or table.measure == "horizon" else 0.0
                changed = suite._changed({"published": {}, "tables": (alone,)}, suite.whole)
                for ours in table.covers.get(row, (row,)):
                    yield changed, ours, column, number


def untrained(suite: Suite, point: Point, number: float) -> PointResult:
    """A network of one step that measures this number."""
    (table,) = suite.tables
    if table.measure == "horizon":
        passes = min(number, 999)  # it is right to the published length, and not at 1,000
        shares = {length: float(length <= passes) for length in (*suite.curve_lengths, 1000)}
    else:
        shares = dict.fromkeys(table.lengths or (suite.whole.length,), number)

    def row(length: int, share: float) -> EvaluationRow:
        chance = 0.0 if table.measure != "scaled" else 1e-9
        low, high = wilson(round(share * WORDS), WORDS)
        scaled = rescale(share, chance)
        return EvaluationRow(
            *(length, WORDS, share, low, high, share, share, chance, chance, scaled, scaled),
            **{"replica": 0, "seed": 0, "lr": 0.1, "selected": True},
        )

    rows = tuple(row(length, share) for length, share in shares.items())
    return PointResult(
        row=point.row,
        column=point.column,
        run="somewhere",
        replicas=1,
        rows=rows,
        curves=(),
        selected=rows[0],
        success=0.0,
        horizon=0,
        steps=1,
        seconds=0.0,
        measured=Measurement("0" * 64, 1, suite.whole.length, WORDS, 0, (), (), 200, 1),
    )


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_network_of_one_step_agrees_with_no_published_number(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "_theorem", lambda *_: "a theorem")
    budget = "hours" if "hours" in SUITES[name].budgets else None
    suite = SUITES[name].for_budget(budget).with_settings({"steps": 1})
    points = {(p.row, p.column): p for p in points_of(suite, Path(), {}, to_train=False)}
    seen = 0
    for alone, row, column, number in one_by_one(suite):
        if (point := points.get((row, column))) is not None:
            result = untrained(alone, point, number)
            (found,) = compare_published(alone, [point], [result], lambda _: UNTRAINED)
            assert found.verdict in ("not comparable", "impossible"), found
            seen += 1
    assert seen


def test_a_suite_that_is_reproduced_with_one_step_agrees_with_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command: in the version before verdicts asked for training, it had 6 agreements."""
    suite = SUITES["complex-kda-groups"]
    minutes = suite.budgets["minutes"].model_copy(
        update={"samples": 200, "without": ("S3", "gates [0, 1], beta [0, 2]")}
    )
    small = suite.model_copy(update={"budgets": {**suite.budgets, "minutes": minutes}})
    file = tmp_path / "small.yaml"
    file.write_text(small.document(), encoding="utf-8")
    arguments = ["reproduce", str(file), "--steps", "1", "--out", str(tmp_path / "runs")]
    run([*arguments, "--jobs", "1", "--stress-seconds", "0", "--json"])
    found = json.loads(capsys.readouterr().out)
    given = Counter(each["verdict"] for one in found["entries"] for each in one["compared"])
    assert given.total() == 6 and given["impossible"] >= 2
    assert not given["agrees"] and not given["differs"]
