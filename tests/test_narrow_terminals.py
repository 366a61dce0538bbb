"""What commands print at 60 and 80 columns: no line is wider, no number is cut, no word broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from statetrack.cli.app import run
from statetrack.report import (
    NO_BREAK,
    Column,
    Table,
    console,
    interval,
    plain_columns,
    share,
    short_names,
    text_of,
)
from statetrack.report.formats.rich import wrapped

WIDTHS = (60, 80)

Cells = Iterator[tuple[str, str]]
"""Headings of columns, each with what has to stand in it."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs that differ only in their seed, one of them searched for evidence."""
    folder = tmp_path_factory.mktemp("narrow")
    train = "train --model diagonal-real --task parity --steps 10 --validate-every 5 --seeds 2"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            f"{train} --lrs 0.0003,0.1 --out runs/first",
            f"{train} --lrs 0.0003,0.1 --seed 7 --out runs/second",
            "eval runs --all --length 20 --length 3000 --samples 20",
        ):
            assert run(line.split()) == 0, line
    return folder


def of_models(rows: Any) -> Cells:
    for row in rows:
        yield "name", row["name"]
        yield "state", "-" if row["state"] is None else str(row["state"])
        yield "parameters", str(row["parameters"])


def of_suites(rows: Any) -> Cells:
    for row in rows:
        yield from (("name", row["name"]), ("models", str(row["models"])))


def of_predictions(by_task: Any) -> Cells:
    for model, found in by_task["s3"]["predictions"].items():
        yield "model", model
        for need in found["needs"] if found["can"] == "yes" else ():
            yield "size", need["setting"]
            yield "size", str(need["value"])


def of_evaluation(found: Any) -> Cells:
    for each in found.get("runs", [found]):
        for row in each["rows"]:
            yield from (("length", f"{row['length']:,}"), ("lr", f"{row['lr']:g}"))
            yield "accuracy", share(row["accuracy"])
            yield "95 % interval", interval(row["low"], row["high"])


def of_audit(found: Any) -> Cells:
    for row in found["rows"]:
        yield "accuracy", share(row["accuracy"])
        yield "symbols", share(row["symbol_accuracy"])


def of_comparison(found: Any) -> Cells:
    for one in found:
        yield "run", Path(one["run"]).name
        yield "accuracy", share(one["selected"]["accuracy"])
        yield "length", f"{one['selected']['length']:,}"


AUDIT = "audit parity --length 50 --samples 200 --train-samples 200"
COMMANDS: Mapping[str, Callable[[Any], Cells] | None] = {
    "list": None,
    "list models": of_models,
    "list suites": of_suites,
    "list kinds": None,
    "list protocols": None,
    "list runs": None,
    "show s3": None,
    "show runs/first": None,
    "show kind:dihedral": None,
    "show lstm": None,
    "show deltaproduct-s5": None,
    "predict s3": None,
    "predict s3 --why": of_predictions,
    "predict s3 parity": None,
    AUDIT: of_audit,
    "eval runs/first --all --length 20 --length 3000 --samples 20": of_evaluation,
    "eval runs --all --length 20 --length 3000 --samples 20": of_evaluation,
    "compare runs": of_comparison,
    "certify runs/first --seconds 0.2": None,
    "probe runs/first --seconds 0.2": None,
    "extract runs/first --seconds 0.2": None,
    "report runs": None,
    "report runs --long": None,
}
"""Commands that print tables, and what of their `--json` has to stand in these."""


def printed(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(line.split()) == 0, line
    return capsys.readouterr().out


@pytest.mark.parametrize("line", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_no_number_of_json_is_cut(
    line: str, runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(runs)
    cells = COMMANDS[line]
    found = None if cells is None else json.loads(printed(f"{line} --json", capsys))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = printed(line, capsys)
        wide = [each for each in shown.splitlines() if len(each) > width]
        assert not wide, wide
        assert "…" not in shown
        named = ", ".join(re.findall(r"^no room for: (.*?);", shown, re.M | re.S))
        left_out = re.split(", ", " ".join(named.split()))
        for heading, cell in () if cells is None else cells(found):
            whole = re.search(rf"(?<![\w.,]){re.escape(cell)}(?![\w%])", shown)
            assert whole or heading in left_out, (width, heading, cell)


def test_a_pipe_is_eighty_columns_wide_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS")
    assert console().width == 80
    monkeypatch.setenv("COLUMNS", "132")
    assert console().width == 132


def a_table(**more: Any) -> Table:
    columns = plain_columns("name", "few", "much", "title", right=("few", "much"))
    row = ("modular-addition:m=25", "0.0003", "123,456,789", f"block_size{NO_BREAK}= 2 of it")
    return Table(columns, [row], left_out=("much", "title"), **more)


def test_columns_are_left_out_in_the_stated_order_and_named_below() -> None:
    assert "no room" not in text_of(a_table(), 80)
    narrower = text_of(a_table(), 50)
    assert "no room for: much; --json has them" in narrower and "block_size = 2" in narrower
    assert "no room for: much, title; --json" in " ".join(text_of(a_table(), 40).split())
    for width in range(8, 100):
        shown = text_of(a_table(), width)
        assert max(map(len, shown.splitlines())) <= width
        assert width < 30 or "0.0003" in shown
        assert ("123,456,789" in shown) == ("much" in shown.split("no room")[0])


def test_a_mark_is_kept_where_numbers_have_to_go() -> None:
    columns = plain_columns("name", "number", "", right=("number",))
    table = Table(columns, [("modular-addition", "123,456,789", "DISAGREES")])
    assert "DISAGREES" in text_of(table, 30) and "no room for: number" in text_of(table, 30)


def test_a_table_in_blocks_leaves_nothing_out() -> None:
    shown = text_of(a_table(in_blocks=True, look="framed"), 40)
    assert "no room" not in shown and shown.count("modular-") > 1
    assert "0.0003" in shown and "123,456,789" in shown and max(map(len, shown.split("\n"))) <= 40


def test_words_are_broken_at_signs_and_numbers_never() -> None:
    def lines(text: str, width: int) -> list[str]:
        return [line.plain for line in wrapped(Text(text), width)]

    assert lines("at most 2,900,000 symbols", 10) == ["at most", "2,900,000", "symbols"]
    assert lines("runs/20261122-second", 12) == ["runs/", "20261122-", "second"]
    assert lines("0.701-0.759 1e-05", 11) == ["0.701-0.759", "1e-05"]
    assert lines(f"rank{NO_BREAK}<={NO_BREAK}4, size", 11) == ["rank <= 4,", "size"]


def test_a_character_that_is_shown_as_an_escape_has_the_room_for_it() -> None:
    table = Table(plain_columns("name"), [["a\x1b[31mb"]], look="framed")
    assert r"│ a\x1b[31mb │" in text_of(table, 60)
    to = Console(width=60)
    with to.capture() as drawn:
        to.print(table)
    assert "\x1b[31mb" not in drawn.get()


def test_runs_are_named_by_what_tells_them_apart() -> None:
    paths = [Path("runs/a"), Path("sweeps/x/a"), Path("runs/b"), Path("b")]
    assert short_names(paths) == ["runs/a", "x/a", "runs/b", "b"]
    assert short_names([Path("/tmp/r/one"), Path("/tmp/r/two")]) == ["one", "two"]


def test_a_sentence_goes_on_further_in_and_breaks_after_a_clause():
    from statetrack.report import hanging

    said = "the first part of it, and then a second part that is too long for one line; the end"
    assert hanging(said, 40).plain.split("\n") == [
        "the first part of it, and then a second",
        "  part that is too long for one line;",
        "  the end",
    ]
    said = "  compression precision 1.00, distinction precision 1.00, recall 1.00, on all words"
    assert hanging(said, 64).plain.split("\n") == [
        "  compression precision 1.00, distinction precision 1.00,",
        "    recall 1.00, on all words",
    ]
    assert hanging("short", 40).plain == "short"


def test_a_column_that_is_named_twice_is_left_out_once() -> None:
    columns = [Column(name, "whole") for name in ("title", "much", "more")]
    row = ("a" * 20, "b" * 20, "c" * 20)
    table = Table(columns, [row], left_out=("much", "much"))
    assert "no room for: much" in text_of(table, width=30)
