"""Reports: the numbers over replicas, the table, and its formats."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shutil
import statistics
import subprocess
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from statetrack.cli import app
from statetrack.errors import SettingsError
from statetrack.evidence import Failure
from statetrack.report import (
    PIPED_WIDTH,
    Entry,
    Report,
    Styled,
    Table,
    Wanted,
    json_text,
    make_report,
    text_of,
    worst_text,
)
from statetrack.report.entries import statistics_at
from statetrack.report.formats.csv import csv_text
from statetrack.report.formats.latex import latex_text
from statetrack.report.formats.parquet import parquet_bytes
from statetrack.report.formats.rich import blocks
from statetrack.report.matrix import matrix_of
from statetrack.report.plain_values import COLUMNS, long_form
from statetrack.runs import RunFolder, files
from statetrack.scoring import tells_apart, wilson
from statetrack.sweep import Compared
from tests.setups import (
    certificate_of,
    entry_of,
    exhaustive_of,
    outcome_of,
    parity_run,
    row_of,
    worst_case_of,
)

ODD = "a|b & c_d 50% <script>$x$ #1 ~^\\{}"


def report_of(*entries: Entry, **changed: Any) -> Report:
    given: dict[str, Any] = {
        "title": "Made by hand",
        "entries": entries,
        "row_names": tuple(dict.fromkeys(entry.row for entry in entries if entry.row)),
        "column_names": tuple(dict.fromkeys(entry.column for entry in entries if entry.column)),
        "length": 100,
    }
    return Report(**given | changed)


def cells_of(matrix: Table) -> list[list[Styled]]:
    """The cells by row, without the names and the floors."""
    rows = [list(line.cells) for line in matrix.lines]
    return [cells for name, *cells in rows if name != "floor"]


def texts_of(matrix: Table) -> list[list[str]]:
    """The same as readers see them."""
    return [texts for name, *texts in matrix.texts() if name != "floor"]


def population(*accuracies: float | None, lrs: tuple[float, ...] = ()) -> Entry:
    """A run with a replica for each accuracy at length 100, of which None diverged."""
    rates = lrs or (0.01,) * len(accuracies)
    outcomes = tuple(
        outcome_of(place, seed=place, lr=rates[place], best_step=0 if value is None else 9)
        for place, value in enumerate(accuracies)
    )
    rows = [
        row_of(100, value, replica=place, seed=place, lr=rates[place])
        for place, value in enumerate(accuracies)
        if value is not None
    ]
    return entry_of(rows=rows, outcomes=outcomes)


def test_a_replica_that_diverged_counts_as_0_and_as_one_that_failed():
    found = statistics_at(population(0.5, 1.0, 0.25, None), 100).everyone
    assert (found.replicas, found.diverged, found.evaluated, found.right) == (4, 1, 3, 1)
    assert (found.best, found.median, found.mean, found.least) == (1.0, 0.375, 0.4375, 0.0)
    assert found.deviation == pytest.approx(statistics.stdev([0.5, 1.0, 0.25, 0.0]))
    assert found.success == 0.25 and found.success_interval == wilson(1, 4)


def test_the_seeds_at_the_selected_learning_rate_are_told_apart():
    entry = population(0.5, 1.0, 0.25, None, lrs=(0.1, 0.2, 0.1, 0.1))
    found = statistics_at(entry, 100)
    assert found.lr == 0.1
    assert (found.seeds.replicas, found.seeds.diverged, found.seeds.right) == (3, 1, 0)
    assert (found.seeds.best, found.seeds.median) == (0.5, 0.25)
    assert (found.of("best", "accuracy"), found.of("best", "accuracy", "seeds")) == (1.0, 0.5)


def test_nothing_is_said_of_all_replicas_where_only_some_were_evaluated():
    entry = entry_of(rows=[row_of(100)], outcomes=[outcome_of(0), outcome_of(1, seed=1)])
    found = statistics_at(entry, 100)
    assert found.of("selected", "accuracy") == 1.0
    assert found.everyone.evaluated == 1 and not found.everyone.complete
    for which in ("best", "median", "mean"):
        assert found.of(which, "accuracy") is None
    assert found.everyone.success is None and found.everyone.success_interval is None


def test_one_replica_has_no_deviation():
    assert statistics_at(population(0.5), 100).everyone.deviation is None


def test_the_selected_replica_is_the_one_of_validation_and_not_the_best():
    entry = population(0.5, 1.0)
    (cell,) = cells_of(matrix_of(report_of(entry)))[0]
    assert (cell.text, cell.beside, cell.value) == ("0.50", "1/2", 0.5)


@pytest.mark.parametrize(
    ("measure", "of", "text"),
    [
        ("accuracy", "selected", "0.50"),
        ("accuracy", "best", "1.00"),
        ("accuracy", "median", "0.75"),
        ("accuracy", "mean", "0.75 ± 0.36"),
        ("scaled", "selected", "0.33"),
        ("scaled", "best", "1.00"),
        ("prefix", "median", "0.75"),
        ("success", None, "1/2"),
        ("horizon", None, "0"),
    ],
)
def test_a_table_shows_the_measure_and_the_statistic_that_were_asked_for(measure, of, text):
    matrix = matrix_of(report_of(population(0.5, 1.0)), measure=measure, of=of)
    assert texts_of(matrix)[0][0] == text


def test_accuracies_are_rounded_down_and_deviations_up():
    (cell,) = cells_of(matrix_of(report_of(population(0.999, 1.0)), of="mean"))[0]
    assert cell.text == "0.99 ± 0.01"


@pytest.mark.parametrize("measure", ["success", "horizon", "worst"])
def test_a_statistic_over_replicas_is_refused_where_a_measure_has_none(measure):
    with pytest.raises(SettingsError, match="--of mean"):
        matrix_of(report_of(population(1.0)), measure=measure, of="mean")


def test_the_worst_case_is_that_of_all_evidence():
    failure = Failure((0, 1, 0, 0, 1, 1), (), 6, 1, 0)
    assert worst_text(entry_of().bracket) == "-"
    assert worst_text(entry_of(evidence=(worst_case_of(),)).bracket) == ">= 900"
    assert worst_text(entry_of(evidence=(worst_case_of(), exhaustive_of())).bracket) == "5"
    assert worst_text(entry_of(evidence=(worst_case_of(failure),)).bracket) == "5"
    assert worst_text(entry_of(evidence=(certificate_of(None),)).bracket) == "all lengths"
    wrong = entry_of(rows=[row_of(100, 0.5, first_error=9)], evidence=(worst_case_of(),))
    assert worst_text(wrong.bracket) == "8", "a random word that fails counts too"


def test_cells_without_a_number_say_why_and_what_to_do():
    begun = entry_of("begun", state="unfinished", outcomes=(), run=Path("runs/begun"))
    broken = entry_of("broken", state="failed", error="no memory")
    ahead = entry_of("ahead", state="waiting")
    gone = entry_of("gone", outcomes=[outcome_of(0, best_step=0), outcome_of(1, best_step=0)])
    untested = entry_of("untested", run=Path("runs/untested"))
    here = entry_of("here", rows=[row_of(100)])
    unread = entry_of("", "", state="failed", error="is damaged", run=Path("runs/bad"))
    alike = [entry_of(name, rows=[row_of(100)], notes=("with care",)) for name in ("one", "two")]
    entries = (begun, broken, ahead, gone, untested, here, *alike, unread)
    matrix = matrix_of(report_of(*entries))
    assert [row[0] for row in texts_of(matrix)] == [
        *("unfinished", "failed", "waiting", "diverged", "-", "1.00", "1.00", "1.00")
    ]
    assert cells_of(matrix)[3][0].beside == "0/2"
    said = "\n".join(matrix.notes)
    for text in (
        "not begun (1 run; the command that ran the suite, or `statetrack sweep FOLDER`, conti",
        "`statetrack train --resume RUN` continues): runs/begun",
        "`statetrack eval RUN --all --length 100`): runs/untested",
        "broken on parity: no memory",
        "runs/bad: is damaged",
        "one on parity, two on parity: with care",
    ):
        assert text in said


def test_no_more_notes_than_can_be_read():
    entries = [entry_of(f"{n}", state="failed", error=f"error {n}") for n in range(200)]
    notes = matrix_of(report_of(*entries)).notes
    assert len(notes) == 21 and notes[-1] == "and 180 more such notes: --format json has all"


PUBLISHED = Compared(
    row="one|two",
    rows=("one|two",),
    column="parity",
    source="Table 1",
    reference="A & B 2020",
    trust="second-hand",
    measure="accuracy",
    of="selected",
    lengths=(100,),
    published=0.98,
    measured=1.0,
    verdict="agrees",
    why="at most 0.05 apart",
    right=1,
    replicas=1,
)


def test_published_numbers_are_counted_and_shown_where_asked_for():
    report = report_of(entry_of("one|two", rows=[row_of(100)], compared=(PUBLISHED,)))
    counted = "1 agrees, 0 differ, 0 impossible, as predicted, 0 not comparable (of 1 published)"
    said = f"published numbers: {counted}"
    assert said in matrix_of(report).notes
    assert "0.98†" in shown(report, 100, published=True)
    assert "0.98" not in shown(report, 100)
    text = Wanted(form="markdown", published=True).of_report(report)
    assert isinstance(text, str) and r"one\|two | parity | Table 1 | 0.98† | 1.00" in text
    compared = json.loads(json_text(report))["entries"][0]["compared"]
    assert (compared[0]["verdict"], compared[0]["published"]) == ("agrees", 0.98)


def test_a_place_without_a_run_is_named():
    matrix = matrix_of(
        report_of(entry_of("a", "x", rows=[row_of(100)]), entry_of("b", "y", rows=[row_of(100)]))
    )
    assert texts_of(matrix) == [["1.00", "-"], ["-", "1.00"]]
    assert "no run: 2 of 4 places" in matrix.notes


def test_the_caption_says_over_how_many_words_and_replicas():
    small = entry_of("small", rows=[row_of(100, sequences=50)])
    matrix = matrix_of(report_of(population(1.0, 0.5), small))
    assert matrix.caption == (
        "length 100, 50 to 100 words: accuracy at the last position; of the replica that "
        "validation selected; 1 to 2 replicas each; k/n: replicas with every answer right"
    )
    assert matrix.texts()[-1] == ["floor", "0.30"]


def test_a_length_of_training_is_marked():
    matrix = matrix_of(report_of(entry_of(rows=[row_of(8)], trained_to=10), length=8))
    assert any("not longer than the words of training" in note for note in matrix.notes)


def test_a_length_at_which_nothing_was_evaluated_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match="no run was evaluated there; lengths: 100"):
        matrix_of(report_of(population(1.0)), lengths=(99,))


def test_what_is_over_replicas_is_shown_where_all_of_them_were_evaluated():
    both = [outcome_of(0), outcome_of(1, seed=1)]
    rows = [row_of(100), row_of(100, 0.5, replica=1, seed=1), row_of(900)]
    report = report_of(entry_of(rows=rows, outcomes=both), length=900)
    assert matrix_of(report).caption.startswith("length 900")
    matrix = matrix_of(report, measure="success")
    assert matrix.caption.startswith("length 100") and texts_of(matrix)[0][0] == "1/2"


def curved(name: str, *columns: str) -> list[Entry]:
    """A run on each task, tested at two lengths, with its sizes."""
    rows = [row_of(50), row_of(200, 0.25)]
    given = {"rows": rows, "parameters": 1234, "dimensions": 8, "seconds": 12.34, "replicas": 1}
    return [entry_of(name, column, **given) for column in columns]


def test_several_lengths_have_a_column_each_under_their_task():
    report = report_of(*curved("one", "parity", "s3"), lengths=(50, 200), length=200)
    matrix = matrix_of(report)
    heads = ["parity at 50", "parity at 200", "s3 at 50", "s3 at 200"]
    assert [column.heading for column in matrix.columns[1:]] == heads
    assert texts_of(matrix) == [["1.00", "0.25"] * 2]
    assert matrix.texts()[-1] == ["floor", *["0.30"] * 4]
    assert matrix.caption.startswith("lengths 50 and 200, 100 words: accuracy")
    assert [line.cells[0] for line in matrix_of(report, transpose=True).lines] == heads
    assert texts_of(matrix_of(report, lengths=(200,))) == [["0.25", "0.25"]]
    latex = report.to_latex()
    assert r" & \multicolumn{2}{c}{parity} & \multicolumn{2}{c}{s3} \\" in latex
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in latex and " & 50 & 200 & 50 & 200 " in latex
    assert "horizon" not in report.to_markdown(length=[50]) and report.to_markdown(length=50)
    with pytest.raises(SettingsError, match="--length 60: no run was evaluated there"):
        report.to_markdown(length=[50, 60])


def test_what_was_evaluated_last_is_what_a_report_shows(tmp_path):
    run = parity_run(tmp_path / "runs" / "mine")
    for lengths in ((900,), (20, 60), (40,)):
        files_of = [row_of(length) for length in lengths]
        RunFolder.open(run).append(files.EVALUATIONS, files_of)
        found = make_report(tmp_path / "runs")
        assert found.shown_lengths == lengths
    assert set(found.entries[0].lengths) >= {20, 40, 60, 900}


def test_columns_beside_the_numbers_are_shown_where_they_fit_and_named_where_not():
    report = report_of(*curved("one", "parity"), lengths=(200,), length=200)
    wide = shown(report, 100)
    assert all(each in wide for each in ("95 %", "weights", "1,234", "state", "seconds", "12"))
    assert "no room" not in wide and "0.24" not in shown(report, 100, also=())
    narrow = " ".join(shown(report, 36).split())
    assert "no room for: weights, state, seconds; --also NAME,... has them" in narrow
    assert "1,234" not in narrow and "95 %" in narrow
    latex = report.to_latex(also=["weights", "interval"])
    assert "parity & 95 \\% & weights" in latex and "1,234" in latex and "seconds" not in latex
    assert "% --also interval,weights,state,seconds" in report.to_latex()
    with pytest.raises(SettingsError, match="Did you mean 'weights'"):
        report.to_latex(also=["weight"])
    with pytest.raises(SettingsError, match="leave out --transpose"):
        report.to_latex(also=["weights"], transpose=True)


def test_a_terminal_says_of_single_replicas_too_whether_every_answer_is_right():
    rows = [row_of(100), row_of(200, 0.5)]
    report = report_of(entry_of("one", rows=rows), population(None), lengths=(100, 200), length=200)
    table = shown(report, 100)
    assert "1.00 1/1" in table and "0.50 0/1" in table and "diverged 0/1" in table
    assert "k/n: replicas with every answer right" in table
    assert "1/1" not in report.to_latex() and "0/1" not in report.to_markdown()


def test_a_table_with_the_best_in_bold_says_by_which_test():
    report = report_of(
        entry_of("one", rows=[row_of(100)]), entry_of("two", rows=[row_of(100, 0.5)])
    )
    assert "bold" not in matrix_of(report).caption
    by = "bold: the best, with all that {} does not tell from it"
    interval = by.format("the 95 % interval of the difference (not paired by words)")
    assert matrix_of(report, best=True).caption.endswith(interval)
    means = matrix_of(report, best=True, of="mean").caption
    assert means.endswith(by.format("the permutation test of the replicas"))
    assert matrix_of(report, best=True, measure="horizon").caption.endswith("bold: the longest")


def test_the_best_of_a_column_is_marked_and_nothing_where_all_are_equal():
    one, two = entry_of("one", rows=[row_of(100)]), entry_of("two", rows=[row_of(100, 0.5)])
    marked = cells_of(matrix_of(report_of(one, two), best=True))
    assert [row[0].strong for row in marked] == [True, False]
    few = [row_of(100, share, sequences=200) for share in (0.03, 0.01)]
    one, two = entry_of("one", rows=few[:1]), entry_of("two", rows=few[1:])
    marked = cells_of(matrix_of(report_of(one, two), best=True))
    assert [row[0].strong for row in marked] == [False, False]
    three = entry_of("three", rows=[row_of(100, 0.5, sequences=200)])
    near = entry_of("near", rows=[row_of(100, 0.45, sequences=200)])
    marked = cells_of(matrix_of(report_of(one, three, near), best=True))
    assert [row[0].strong for row in marked] == [False, True, True]
    same = entry_of("same", rows=[row_of(100)])
    whole = entry_of("whole", rows=[row_of(100)])
    marked = cells_of(matrix_of(report_of(whole, same), best=True))
    assert [row[0].strong for row in marked] == [False, False]


def test_the_best_mean_is_marked_where_replicas_tell_it_apart():
    def entry(name, *shares):
        outcomes = [outcome_of(seed, seed=seed) for seed in range(len(shares))]
        rows = [row_of(100, each, replica=seed, seed=seed) for seed, each in enumerate(shares)]
        return entry_of(name, rows=rows, outcomes=outcomes)

    def strong(*entries, of="mean"):
        cells = cells_of(matrix_of(report_of(*entries), of=of, best=True))
        return [row[0].strong for row in cells]

    high, low = (0.9, 0.8, 0.95, 0.85), (0.1, 0.2, 0.15, 0.3)
    assert strong(entry("one", *high), entry("two", *low)) == [True, False]
    assert strong(entry("one", *high), entry("two", 0.1, 0.9, 0.2, 0.95)) == [False, False]
    assert strong(entry("one", *high[:3]), entry("two", *low[:3])) == [False, False]
    assert strong(entry("one", *high[:1]), entry("two", *low[:1]), of="median") == [False, False]
    # the test tells these means apart, and that of the lower median is the higher one
    most, all_near = (1.0,) * 6 + (0.0,) * 5, (0.9,) * 11
    assert strong(entry("one", *most), entry("two", *all_near), of="median") == [False, False]
    assert strong(entry("one", *most), entry("two", *all_near)) == [False, True]


def test_the_best_replica_by_words_is_compared_by_its_own_words():
    def entry(name, *rows):
        rows = [
            row_of(100, last, prefix_accuracy=whole, replica=seed, seed=seed)
            for seed, (last, whole) in enumerate(rows)
        ]
        outcomes = [outcome_of(seed, seed=seed) for seed in range(len(rows))]
        return entry_of(name, rows=rows, outcomes=outcomes)

    entries = entry("one", (0.9, 0.9)), entry("two", (0.9, 0.88), (0.95, 0.1)), entry("no", (0, 0))
    marked = cells_of(matrix_of(report_of(*entries), measure="prefix", of="best", best=True))
    assert [row[0].strong for row in marked] == [True, True, False]


def test_intervals_tell_shares_apart():
    assert tells_apart((100, 100), (90, 100)) and not tells_apart((6, 200), (2, 200))
    assert not tells_apart((0, 10), (0, 10)) and tells_apart((1, 2000), (20, 2000))
    # Newcombe 1998, table II (a): the interval of 56/70 - 48/80 is 0.0524 to 0.3339 by method 10
    assert tells_apart((56, 70), (48, 80))


def test_a_report_shows_its_table_in_python_and_in_a_notebook() -> None:
    rows = [row_of(100), row_of(100, 0.5, replica=1, seed=1)]
    report = report_of(entry_of("a<b", rows=rows, outcomes=[outcome_of(0), outcome_of(1, seed=1)]))
    text, html = repr(report), report._repr_html_()
    assert max(map(len, text.splitlines())) <= PIPED_WIDTH and "a<b" in text and "1.00" in text
    assert "<td>a&lt;b</td><td>1.00 <small>1/2</small></td>" in html and "<script" not in html


def shown(report: Report, width: int, **wanted: Any) -> str:
    parts = Wanted(**wanted).document(report).parts()
    return "".join(text_of(part, width) for part in parts)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(width):
    entries = [
        entry_of(
            f"a-rather-long-model-name, hidden={row}",
            f"modular-addition:m={column}",
            rows=[row_of(100, 0.123456), row_of(100, 1.0, replica=1, seed=1)],
        )
        for row in range(2)
        for column in range(9)
    ]
    for wanted in ({}, {"of": "mean"}, {"measure": "horizon"}, {"long": True}):
        text = shown(report_of(*entries), width, **wanted)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
    assert shown(report_of(*entries), width).count("0.12 1/2") == 18
    assert shown(report_of(*entries), width, of="mean").count("0.56 ± 0.62") == 18


def test_runs_with_the_same_settings_are_named_below_by_what_tells_them_apart():
    alike = [entry_of("m", "t", run=Path("runs/a")), entry_of("m (2)", "t", run=Path("runs/b"))]
    other = entry_of("n (2)", "t", run=Path("more/b"))
    line = "same settings: m on t is a, m (2) on t is runs/b"
    assert f"- {line}\n" in shown(report_of(*alike, other), 80)
    assert "same settings" not in shown(report_of(alike[0], other), 80)


def test_a_table_can_have_tasks_as_rows():
    one, two = entry_of("one", rows=[row_of(100)]), entry_of("two", rows=[row_of(100, 0.5)])
    other = entry_of("one", "s3", rows=[row_of(100, 0.25)])
    text = Wanted(form="markdown", transpose=True, best=True).of_report(report_of(one, two, other))
    assert isinstance(text, str)
    assert [line for line in text.splitlines() if line.startswith("|")] == [
        "|  | one | two | floor |",
        "| --- | --- | --- | --- |",
        "| parity | **1.00** | 0.50 | 0.30 |",
        "| s3 | 0.25 | - | 0.30 |",
    ]


def test_long_names_are_broken_after_signs():
    entry = entry_of("bilinear-rotation, hidden=64", "modular-addition:m=10", rows=[row_of(100)])
    lines = [
        re.sub("[┃│ ]+", " ", line) for line in shown(report_of(entry), 40, also=()).splitlines()
    ]
    assert [line for line in lines if "bilinear" in line or "m=10" in line] == [
        *(" m=10 ", " bilinear- 1.00 1/1 ")
    ]
    assert " rotation, " in lines and " hidden=64 " in lines


def test_columns_that_do_not_fit_stand_below():
    assert blocks([5, 5, 5], 16) == [[0, 1], [2]]
    assert blocks([50, 5], 16) == [[0], [1]]
    assert blocks([], 16) == []


def test_markdown_shows_odd_names_as_they_are():
    text = report_of(entry_of(ODD, ODD, rows=[row_of(100)])).to_markdown()
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 4
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 3 for line in table)
    assert r"a\|b \& c\_d 50% \<script\>\$x\$ \#1 \~^\\{}" in table[2]


LATEX_SPECIAL = re.compile(r"(?<!\\)[#%_&$]")


def test_latex_escapes_every_sign_that_means_something():
    text = latex_text(ODD + " --lr")
    assert text == (
        r"a\textbar{}b \& c\_d 50\% \textless{}script\textgreater{}\$x\$ \#1 "
        r"\textasciitilde{}\textasciicircum{}\textbackslash{}\{\} -{}-lr"
    )


def latex_of(**wanted: Any) -> str:
    entries = [
        entry_of(ODD, ODD, rows=[row_of(100), row_of(100, replica=1, seed=1)]),
        entry_of("[two]", ODD, rows=[row_of(100, 0.1), row_of(100, replica=1, seed=1)]),
        entry_of("* three", ODD, state="failed", error="two\nlines % of \\error"),
        entry_of("four", ODD, evidence=(worst_case_of(),)),
    ]
    content = Wanted(form="latex", **wanted).of_report(report_of(*entries))
    assert isinstance(content, str)
    return content


WAYS: list[dict[str, Any]] = [
    {},
    {"best": True, "caption": f"Of {ODD}", "label": "tab:one_two"},
    {"of": "mean", "measure": "scaled", "best": True},
    {"measure": "worst"},
    {"long": True},
    {"long": True, "columns": "row,command,settings,error"},
]


@pytest.mark.parametrize("wanted", WAYS)
def test_latex_has_balanced_environments_and_as_many_cells_in_every_line(wanted):
    text = latex_of(**wanted)
    begun = re.findall(r"\\(begin|end)\{(\w+)\}", text)
    assert begun == [("begin", "table"), ("begin", "tabular"), ("end", "tabular"), ("end", "table")]
    places = re.search(r"\\begin\{tabular\}\{([lr]+)\}", text)
    assert places is not None
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert lines and all(len(re.findall(r"(?<!\\)&", line)) == len(places[1]) - 1 for line in lines)
    assert not any(line.startswith(("[", "*")) for line in text.splitlines())
    printed = [line for line in text.splitlines() if not line.startswith("%")]
    bare = re.sub(r"\\[{}]", "", "\n".join(printed))
    assert bare.count("{") == bare.count("}")
    for line in printed:
        if not line.startswith(r"\label"):
            inside = line.replace(r"$\pm$", "").replace("$-$", "").replace(r"$\geq$", "")
            inside = re.sub(r"(?<!\\)&", "", inside)
            assert not LATEX_SPECIAL.search(inside), line


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX")
def test_latex_compiles(tmp_path):
    tables = "\n".join(latex_of(**wanted) for wanted in WAYS)
    document = (
        "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage{booktabs}\n"
        f"\\begin{{document}}\n{tables}\\end{{document}}\n"
    )
    (tmp_path / "table.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "table.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "table.pdf").stat().st_size > 1000


def test_bold_is_for_the_best_alone():
    assert latex_of(best=True).count(r"\textbf{1.00}") == 1
    assert r"\textbf" not in latex_of()


def test_a_caption_and_a_label_are_latexs_alone():
    assert r"\caption{Mine \& yours}" in latex_of(caption="Mine & yours")
    assert r"\label{tab:x}" in latex_of(label="tab:x")
    with pytest.raises(SettingsError, match="--label"):
        Wanted(form="latex", label="a}b")
    with pytest.raises(SettingsError, match="that is LaTeX's"):
        Wanted(form="markdown", caption="mine")


def test_what_a_format_has_no_place_for_is_refused():
    refused: list[dict[str, Any]] = [
        {"form": "csv", "measure": "scaled"},
        {"form": "parquet", "best": True},
        {"form": "json", "length": 5},
        {"form": "html", "measure": "scaled"},
        {"form": "html", "long": True},
        {"form": "json", "columns": "row"},
        {"form": "markdown", "columns": "row"},
        {"form": "rich", "long": True, "of": "mean"},
        {"form": "csv", "columns": "row,rwo"},
        {"form": "csv", "columns": "row,row"},
        {"measure": "worst", "over": "seeds"},
        {"form": "latex", "published": True},
        {"form": "csv", "transpose": True},
        {"form": "rich", "long": True, "published": True},
    ]
    for wanted in refused:
        with pytest.raises(SettingsError, match="--"):
            Wanted(**wanted)


def test_published_numbers_are_asked_for_where_there_are_some():
    report = report_of(entry_of("a", "b", rows=[row_of(10)]))
    with pytest.raises(SettingsError, match=r"--published: .* has no published numbers"):
        Wanted(published=True).of_report(report)


EVERYTHING = report_of(
    entry_of(
        ODD, 'say "x", y', rows=[row_of(10), row_of(100, 0.5, first_error=77)], notes=("a", "b")
    ),
    entry_of("waits", "z", state="waiting", parameters=None, trained_to=None),
)


def test_csv_has_a_line_for_each_run_and_length_and_reads_back():
    rows = list(csv.DictReader(io.StringIO(csv_text(long_form(EVERYTHING.entries)))))
    assert [(row["row"], row["length"], row["accuracy"]) for row in rows] == [
        (ODD, "10", "1.0"),
        (ODD, "100", "0.5"),
        ("waits", "", ""),
    ]
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["column"] == 'say "x", y' and rows[0]["notes"] == "a; b"
    assert json.loads(rows[0]["settings"])["hidden"] == 2
    assert (rows[1]["horizon"], rows[1]["fails_at"], rows[1]["trained_to"]) == ("10", "77", "10")


def test_parquet_has_typed_columns_even_where_a_column_is_empty():
    table = pq.read_table(io.BytesIO(parquet_bytes(long_form(EVERYTHING.entries))))
    types = {name: str(table.schema.field(name).type) for name in table.schema.names}
    assert tuple(types) == COLUMNS
    assert (types["length"], types["accuracy"], types["row"]) == ("int64", "double", "string")
    assert (types["proven_length"], types["selected_lr"]) == ("int64", "double")
    assert table.column("length").to_pylist() == [10, 100, None]
    chosen = long_form(EVERYTHING.entries, (10,), ("row", "length"))
    only = pq.read_table(io.BytesIO(parquet_bytes(chosen)))
    assert only.to_pylist() == [{"row": ODD, "length": 10}, {"row": "waits", "length": None}]


def test_json_has_every_replica_and_no_nan():
    nothing = row_of(3, **dict.fromkeys(("accuracy", "low", "high"), math.nan))
    content = json.loads(json_text(report_of(population(0.5, 1.0), entry_of("n", rows=[nothing]))))
    one, other = content["entries"]
    assert [row["accuracy"] for row in one["rows"]] == [0.5, 1.0]
    assert one["statistics"][0]["everyone"]["success"] == 0.5
    assert one["statistics"][0]["everyone"]["success_interval"] == list(wilson(1, 2))
    assert other["rows"][0]["accuracy"] is None
    assert content["format"] == 1 and content["length"] == 100


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was evaluated, under an odd name."""
    folder = tmp_path_factory.mktemp("runs")
    run = Path(parity_run(folder / "a|b&_%"))
    rows = [
        row_of(length, replica=replica, seed=replica) for length in (20, 40) for replica in (0, 1)
    ]
    from statetrack.runs import Run

    Run.open(run).folder.append(files.EVALUATIONS, rows)
    return folder


def test_the_command_writes_every_format_to_a_file_and_to_standard_output(
    runs, tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", str(PIPED_WIDTH))
    forms = {
        "md": "markdown",
        "tex": "latex",
        "csv": "csv",
        "json": "json",
        "txt": "rich",
    }
    for suffix, form in forms.items():
        out = tmp_path / f"table.{suffix}"
        assert app.run(["report", str(runs), "--out", str(out)]) == 0
        assert capsys.readouterr().out == f"report: {out}\n"
        assert app.run(["report", str(runs), "--format", form, "--out", "-"]) == 0
        printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
        assert printed == out.read_text(encoding="utf-8").rstrip("\n")
        assert "bilinear" in printed
    assert app.run(["report", str(runs), "--out", str(tmp_path / "page.html")]) == 0
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert app.run(["report", str(runs), "--out", str(tmp_path / "t.parquet")]) == 0
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "no such folder and no such suite"),
        (["parity", "--format", "csv", "--folder", "x"], "no such folder and no such suite"),
        ([], "^error: runs: there is no such folder: give run folders, or what holds them$"),
        (["{runs}", "--format", "parquet"], "name a file with --out"),
        (["{runs}", "--out", "x.foo"], "its name does not say the format"),
        (["{runs}", "--out", "none/x.csv"], "there is no folder none"),
        (["{runs}", "--length", "7"], "no run was evaluated there; lengths: 20, 40"),
        (["{runs}", "--long", "--length", "7"], "no run was evaluated there"),
        (["{runs}", "--folder", "x"], "--folder: belongs to a suite"),
        (["{runs}", "--budget", "hours"], "--budget: belongs to a suite"),
        (["proposition-3", "{runs}"], "a report is of one suite, or of run folders"),
        (["proposition-3", "--budget", "eons"], "there is no budget 'eons'"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, said, runs, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    given = [word.replace("{runs}", str(runs)) for word in arguments]
    assert app.run(["report", *given]) == 1
    told = capsys.readouterr()
    assert told.out == "" and re.search(said, told.err) and told.err.count("\n") == 1


def test_a_suite_that_was_not_run_is_a_table_of_waiting_points(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(["report", "proposition-3"]) == 0
    text = capsys.readouterr().out
    assert "waiting" in text and "not begun" in text
    assert list(tmp_path.iterdir()) == []


def test_a_report_can_be_made_in_python(runs):
    report = make_report(runs)
    assert report.to_markdown().count("1.00") == 2
    assert report.to_markdown(length=40).count("1.00") == 1
    assert report.to_latex(best=True).startswith("% needs")
    assert report.to_dicts()[0]["accuracy"] == 1.0
    assert report.command == f"statetrack report {runs}"
