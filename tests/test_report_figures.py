"""Figures of reports: what is drawn, how it looks, what captions say, and how refusals read."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetrack.cli.app import run as command
from statetrack.cli.options import by_beginning, names_among
from statetrack.errors import SettingsError
from statetrack.pictures import Look, width_of
from statetrack.report import Entry, Report, accuracy_curve
from statetrack.report.entries import statistics_at
from statetrack.runs import EvaluationRow
from statetrack.scoring import wilson
from statetrack.sweep import Compared
from tests.setups import outcome_of

matplotlib = pytest.importorskip("matplotlib")

from statetrack.pictures import Choice, draw_report, heat_map, sketch, usual_kind  # noqa: E402
from statetrack.pictures.looks import REPRODUCIBLE, STYLE  # noqa: E402
from statetrack.pictures.report_figures import KINDS  # noqa: E402

LENGTHS = (10, 100, 1000, 20_000)


def row_of(length: int, replica: int, accuracy: float, **changed: Any) -> EvaluationRow:
    """A score over 1,000 words; replicas 0-2 are seeds at one learning rate, 3-5 at another."""
    low, high = wilson(round(accuracy * 1000), 1000)
    given: dict[str, Any] = {"floor": 0.25, "chance": 0.25, "selected": replica == 0} | changed
    return EvaluationRow(
        length=length,
        sequences=1000,
        accuracy=accuracy,
        low=low,
        high=high,
        symbol_accuracy=accuracy,
        prefix_accuracy=accuracy if accuracy == 1 else accuracy / 2,
        scaled=0.0,
        scaled_to_floor=0.0,
        replica=replica,
        seed=replica % 3,
        lr=(0.1, 0.01)[replica // 3],
        **given,
    )


def entry_of(
    row: str,
    column: str,
    accuracies: tuple[float, ...] = (0.9, 0.7, 0.3, 0.5, 0.4, 0.6),
    lengths: tuple[int, ...] = LENGTHS,
    **changed: Any,
) -> Entry:
    """An entry whose replicas have the same accuracies at all lengths."""
    rows = (row_of(at, n, value) for at in lengths for n, value in enumerate(accuracies))
    given = {"state": "finished", "settings": {}, "replicas": 6, "rows": tuple(rows)} | changed
    about = {"run": Path("runs/a"), "model": "gru", "task": column, "trained_to": 10}
    return Entry(row=row, column=column, **{**about, **given})


def waiting(row: str, column: str) -> Entry:
    """An entry of a point that is not run yet."""
    about = {"run": Path("b"), "model": "gru", "task": "late"}
    return Entry(row=row, column=column, state="waiting", settings={}, **about)


def report_of(*entries: Entry, **changed: Any) -> Report:
    rows = dict.fromkeys(entry.row for entry in entries)
    columns = dict.fromkeys(entry.column for entry in entries)
    given = {"title": "two models", "length": 100} | changed
    return Report(entries=entries, row_names=tuple(rows), column_names=tuple(columns), **given)


TWO = report_of(
    entry_of("solved", "S5", (1.0,) * 6),
    entry_of("partly", "S5"),
    entry_of("partly", "a task with a rather long name $x_1$"),
    waiting("solved", "late"),
)


def drawn(
    report: Report, kind: str, look: Look | None = None, **choice: Any
) -> sketch.CaptionedFigure:
    look = look or Look()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**STYLE, **look.settings(), **REPRODUCIBLE})
        found = KINDS[kind](report, Choice(**choice), look)
    return found


def legend_of(figure: Any) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def ticks_of(axes: Any) -> list[str]:
    axes.figure.draw_without_rendering()
    low, high = axes.get_xlim()
    ticks = axes.xaxis.get_major_ticks()
    return [t.label1.get_text() for t in ticks if low <= t.get_loc() <= high]


# --- accuracy by length ---


def test_accuracy_by_length_has_a_panel_for_each_task_and_a_line_for_each_row() -> None:
    figure, caption = drawn(TWO, "length")
    left, right = figure.axes
    assert [axes.get_title("left") for axes in figure.axes] == ["S5", TWO.column_names[1]]
    assert legend_of(figure) == [
        *("solved", "partly", "floor", "band: 95 % interval", "training lengths")
    ]
    for axes, lines in ((left, 2), (right, 1)):
        assert axes.get_xscale() == "log" and ticks_of(axes) == ["10", "100", "1000", "10k"]
        data = [line for line in axes.lines if line.get_marker() not in ("None", "")]
        assert [list(line.get_xdata()) for line in data] == [list(LENGTHS)] * lines
        (floor,) = [line for line in axes.lines if line.get_marker() in ("None", "")]
        assert set(floor.get_ydata()) == {0.25}
        (shade,) = axes.patches
        assert shade.get_x() + shade.get_width() == 10
        assert len(axes.collections) == lines  # the bands
    assert len({(line.get_color(), line.get_linestyle()) for line in left.lines}) == 3
    top, bottom = left.collections[1].get_paths()[0].get_extents().get_points()[::-1, 1]
    assert (bottom, top) == pytest.approx(wilson(900, 1000))
    said = ". ".join(caption)
    for fact in (
        *("10 to 20,000", "that validation selected", "95 % interval (Wilson)", "1,000 words"),
        *("3 seeds and 2 learning rates", "not drawn: 1 of 4 runs (1 waiting)", "training (10)"),
    ):
        assert fact in said


def test_the_median_is_over_the_seeds_of_the_selected_learning_rate() -> None:
    figure, caption = drawn(report_of(entry_of("partly", "S5")), "length", of="median")
    (axes,) = figure.axes
    line = next(line for line in axes.lines if line.get_marker() not in ("None", ""))
    assert set(line.get_ydata()) == {0.7}
    extents = axes.collections[0].get_paths()[0].get_extents()
    assert (extents.y0, extents.y1) == (0.3, 0.9)
    assert "median over seeds at the selected learning rate, with their range" in caption[0]
    assert "band: range over seeds" in legend_of(figure)


def test_chance_is_drawn_where_it_is_not_the_floor() -> None:
    rows = tuple(row_of(at, 0, 0.9, chance=0.2) for at in LENGTHS)
    figure, _ = drawn(report_of(entry_of("partly", "S5", rows=rows)), "length")
    levels = {line.get_ydata()[0] for line in figure.axes[0].lines}
    assert levels == {0.9, 0.25, 0.2} and "chance" in legend_of(figure)


def test_thirteen_rows_differ_in_colour_or_dashes_and_in_markers_or_size() -> None:
    strokes = sketch.strokes_of([str(n) for n in range(28)])
    assert len({(one.colour, str(one.dashes)) for one in strokes.values()}) == 28
    few = sketch.strokes_of([str(n) for n in range(13)]).values()
    assert len({(one.marker, one.scale) for one in few}) == 13
    after = zip([*few], [*few][1:], strict=False)
    assert all(a.dashes != b.dashes and a.marker != b.marker for a, b in after)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (10, 100_000, [10, 100, 1000, 10_000, 100_000]),
        (10, 300, [10, 20, 50, 100, 200]),
        (7, 90, [10, 20, 50]),
        (1, 1_000_000, [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]),
    ],
)
def test_ticks_of_lengths_are_whole_numbers(low: int, high: int, ticks: list[int]) -> None:
    assert sketch.log_ticks(low, high) == ticks


# --- heat maps ---


def test_a_heat_map_prints_the_value_and_how_many_replicas_are_right() -> None:
    published = Compared(
        row="solved",
        rows=("solved",),
        column="S5",
        source="Table 1",
        reference="Someone 2025",
        trust="primary",
        measure="accuracy",
        of="selected",
        lengths=(100,),
        published=0.5,
        measured=1.0,
        verdict="differs",
        why="",
    )
    lost = entry_of("lost", "S5", (), diverged=6)
    solved = entry_of("solved", "S5", (1.0, 1.0, 0.5), compared=(published,), diverged=3)
    partly = entry_of("partly", "S5", (0.999,), diverged=5)
    waiting = Entry(
        row="lost",
        column="late",
        run=Path("b"),
        state="waiting",
        **{
            "model": "gru",
            "task": "late",
            "settings": {},
        },
    )
    figure, caption = drawn(report_of(solved, partly, lost, waiting), "heat", published=True)
    cells = {text.get_text() for text in figure.axes[0].texts}
    assert cells == {"1.00\n2/6\n[0.50]", "0.99\n0/6", "diverged", "waiting"}
    assert "in brackets: published, Table 1, Someone 2025 (primary)" in caption[1]
    assert len(figure.axes[0].patches) == 4
    assert figure.axes[1].get_ylabel() == "accuracy", "the scale says what it is of"
    _, caption = drawn(report_of(solved, partly), "heat", measure="success", length=1000)
    assert caption[0] == "share of replicas right on every word at length 1,000"


def test_nothing_is_drawn_of_several_replicas_where_some_were_not_evaluated() -> None:
    some, all_of_it = entry_of("some", "S5", (1.0,)), entry_of("all", "S5", (0.9,) * 6)
    report, said = report_of(some, all_of_it), "only some replicas of 1 run were evaluated"
    for choice, cells in (
        ({}, {"1.00", "0.90\n0/6"}),
        ({"of": "median", "measure": "success"}, {"not all\ntested", "0.00\n0/6"}),
    ):
        figure, caption = drawn(report, "heat", **choice)
        assert {text.get_text() for text in figure.axes[0].texts} == cells
        assert any(line.startswith(said) for line in caption)
    outcomes = tuple(outcome_of(seed, seed=seed, lr=0.1) for seed in range(3))
    some = replace(some, outcomes=outcomes, replicas=3)
    for kind in ("length", "ablation"):
        _, caption = drawn(report_of(some, all_of_it), kind)
        assert not any(line.startswith(said) for line in caption)
        figure, caption = drawn(report_of(some, all_of_it), kind, of="median")
        assert any(line.startswith(said) for line in caption)
        if kind == "length":
            assert legend_of(figure)[0] == "all"
        else:
            assert [text.get_text() for text in figure.axes[0].texts] == ["not all tested"]


def test_a_replica_that_diverged_counts_as_0_in_a_median_as_in_a_table() -> None:
    outcomes = [outcome_of(seed, seed=seed, lr=0.1, best_step=9 * (seed < 2)) for seed in range(3)]
    two = entry_of("two", "S5", (0.9, 0.7), outcomes=tuple(outcomes), replicas=3, diverged=1)
    two = replace(two, selected=0)
    point = sketch.point_at(two, 100, "median")
    assert point == (0.7, 0.0, 0.9)
    assert point.value == statistics_at(two, 100).of("median", "accuracy", "seeds")


def test_letters_in_every_cell_can_be_read() -> None:
    shades = matplotlib.colormaps[heat_map.SHADES]
    lightness = []
    for value in range(101):
        red, green, blue, _ = shades(value / 100)
        parts = [
            c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
        ]
        light = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
        lightness.append(light)
        white = heat_map._ink_on(red, green, blue) == "white"
        contrast = 1.05 / (light + 0.05) if white else (light + 0.05) / 0.0603
        assert contrast > 4
    assert lightness == sorted(lightness)


# --- along a setting, and ablation ---


def efficiency() -> Report:
    entries = [
        entry_of(
            f"{name}, train_samples={words}",
            "S5",
            (min(1.0, 0.3 + words / 2000 + best),) if words else (1.0,),
            (100,),
            axes={"train_samples": words},
            replicas=1,
        )
        for name, best in (("a, hidden=4", 0.1), ("b", 0.0))
        for words in (100, 300, 3000, 0)
    ]
    return report_of(*entries)


def test_data_efficiency_has_a_line_for_each_row_and_words_without_limit_at_the_end() -> None:
    figure, caption = drawn(efficiency(), "data")
    (axes,) = figure.axes
    assert axes.get_xscale() == "log" and axes.get_xlabel() == "training words"
    assert legend_of(figure) == ["a, hidden=4", "b", "floor"]
    first, second = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    assert list(first.get_xdata())[:3] == [100, 300, 3000] and first.get_xdata()[3] > 3000
    assert list(first.get_ydata()) == pytest.approx([0.45, 0.55, 1.0, 1.0])
    assert list(second.get_ydata())[:2] == pytest.approx([0.35, 0.45])
    assert ticks_of(axes)[-1] == "∞" and ticks_of(axes)[0] == "100"
    assert "∞: new words at every step" in caption
    figure, caption = drawn(efficiency(), "data", measure="success")
    assert figure.axes[0].get_ylabel() == "success" and "floor" not in legend_of(figure)


def test_an_ablation_has_a_bar_for_each_row_and_a_point_for_each_seed() -> None:
    figure, caption = drawn(TWO, "ablation")
    left, right = figure.axes
    assert [bar.get_width() for bar in left.patches] == [1.0, 0.9]
    seeds = sorted(line.get_xdata()[0] for line in right.lines if line.get_marker() == "o")
    assert seeds == [0.3, 0.7, 0.9]
    assert [label.get_text() for label in left.get_yticklabels()] == ["solved", "partly"]
    assert [text.get_text() for text in right.texts] == ["not tested"]
    assert "points: the seeds at the selected learning rate" in caption[0]


def test_panels_without_room_beside_long_names_stand_below_each_other() -> None:
    named = "bilinear-block --hidden 8 --block-size 2"
    report = report_of(*(entry_of(named, task, (1.0,)) for task in ("S5", "modular-addition:m=3")))
    column = Look(width=width_of("column"))
    for look, beside in ((column, 1), (Look(), 2)):
        figure, _ = drawn(report, "ablation", look)
        shown = figure.axes[1].get_title("left").replace("\n", "")
        assert figure.axes[0].get_gridspec().ncols == beside and shown == "modular-addition:m=3"


def test_the_usual_kind_is_by_length_and_of_one_length_a_heat_map() -> None:
    assert usual_kind(TWO, Choice()) == "length"
    assert usual_kind(report_of(entry_of("a", "b", lengths=(9,))), Choice()) == "heat"
    assert usual_kind(TWO, Choice(axis="steps")) == "data"


# --- looks ---


def test_a_figure_has_the_size_the_letters_and_the_parts_that_are_asked_for() -> None:
    figure, _ = drawn(TWO, "length", Look(width=width_of("column"), height=2.5, font=7.0))
    assert list(figure.get_size_inches()) == [3.25, 2.5]
    assert figure.axes[0].xaxis.label.get_size() == 7.0
    assert figure.get_suptitle() == "two models"
    figure, _ = drawn(TWO, "length", Look(title="", legend=False))
    assert figure.get_suptitle() == "" and not figure.legends
    figure, _ = drawn(TWO, "heat", Look(title="mine", legend=False, style="slides"))
    assert [text.get_text() for text in figure.texts] == ["mine"] and len(figure.axes) == 1
    figure, _ = drawn(TWO, "length", Look(style="ggplot"))
    assert figure.axes[0].get_facecolor()[:3] != (1.0, 1.0, 1.0)


@pytest.mark.parametrize("ending", [".svg", ".pdf", ".png"])
def test_the_same_report_gives_the_same_bytes_with_text_as_text(
    tmp_path: Path, ending: str
) -> None:
    first, second = tmp_path / f"a{ending}", tmp_path / f"b{ending}"
    for path in (first, second):
        draw_report(TWO, "length", path, Choice(), Look(dpi=40))
    content = first.read_bytes()
    assert content == second.read_bytes()
    if ending == ".svg":
        text = content.decode()
        assert "band: 95 % interval" in text and "$x_1$" in text and "<dc:date>" not in text
    if ending == ".pdf":
        assert b"/Type3" not in content and b"CreationDate" not in content


# --- refusals ---

ONE_LENGTH = report_of(entry_of("a", "b", lengths=(9,)), length=9)
NOTHING = report_of(
    waiting("a", "b"),
    suite="mine",
)


@pytest.mark.parametrize(
    ("report", "kind", "choice", "said"),
    [
        (ONE_LENGTH, "length", {}, "every run was evaluated at one length only: `statetrack eval"),
        (NOTHING, "heat", {}, "no run was evaluated (1 waiting): `statetrack reproduce mine`"),
        (TWO, "heat", {"length": 7}, "at length 7; there are 10, 100, 1,000, 20,000"),
        (TWO, "data", {"axis": "hiden"}, "axis 'hiden': no run has such a setting"),
        (TWO, "data", {"axis": "words"}, "nothing to draw along 'words': all runs have 0"),
        (
            report_of(entry_of("a", "b", axes={"loss": "x"})),
            "data",
            {"axis": "loss"},
            "axis 'loss': 'x' of a is no number",
        ),
        (TWO, "angles", {}, "angles are those of one run, and 4 are given"),
        (report_of(TWO.entries[0]), "angles", {}, "`statetrack probe runs/a --only repres"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_line(
    tmp_path: Path, report: Report, kind: str, choice: dict[str, Any], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        draw_report(report, kind, tmp_path / "a.svg", Choice(**choice), Look())
    assert said in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "a.svg").exists()


def test_an_unknown_style_or_width_is_refused_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"style 'papr': .*Did you mean 'paper'"):
        Look(style="papr").settings()
    with pytest.raises(SettingsError, match="there is no such file"):
        Look(style=str(tmp_path / "mine.mplstyle")).settings()
    with pytest.raises(SettingsError, match="write column, page or a number"):
        width_of("wide")
    with pytest.raises(SettingsError, match=r"width of 99 inches: must be from 1.5 to 40"):
        Look(width=99)


# --- the commands ---


def test_help_for_plot_imports_no_matplotlib(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert command(["plot", "--help"]) == 0
    assert "column (3.25 in)" in capsys.readouterr().out
    assert command(["plot", "runs", "--out", "a.svg"]) == 1
    assert "pip install '.[plot]'" in capsys.readouterr().err


def test_rows_are_chosen_and_ordered_by_name_or_model() -> None:
    names = ["gru", "lstm, hidden=8", "lstm, hidden=16", "mamba --layers 2"]
    given = {
        "mamba,gru": ["mamba --layers 2", "gru"],
        "lstm": names[1:3],
        "lstm, hidden=16": ["lstm, hidden=16"],
    }
    for text, expected in given.items():
        assert names_among([text], by_beginning(names), "--rows") == expected
    twice = ["lstm, hidden=16", "lstm"]
    assert names_among(twice, by_beginning(names), "--rows") == names[2:0:-1]
    several = ["lstm, hidden=16, gru"]  # a name with a comma, and another one
    assert names_among(several, by_beginning(names), "--rows") == ["lstm, hidden=16", "gru"]
    for text, told in (("mambo", "Did you mean 'mamba'"), (" ", "names none")):
        with pytest.raises(SettingsError, match=told):
            names_among([text], by_beginning(names), "--rows")
    both = report_of(entry_of("a", "S5"), entry_of("b", "S5"))
    figure, _ = drawn(both.with_rows(["b", "a"]), "length")
    assert legend_of(figure)[:2] == ["b", "a"]
    assert legend_of(drawn(both.with_rows(["b"]), "length")[0])[:2] == ["b", "floor"]


def test_a_single_panel_names_its_task() -> None:
    figure, _ = drawn(report_of(entry_of("a", "S5")), "length")
    assert figure.axes[0].get_title(loc="left") == "S5"


def test_eval_draws_what_it_found_and_plot_what_it_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.test_eval_command import FEW
    from tests.test_run import trained

    monkeypatch.chdir(tmp_path)
    trained(Path("runs/mine"), **FEW)
    asked = ["eval", "runs/mine", "--samples", "20"]
    assert command([*asked, "--length", "6,12,90", "--plot", "by-length.svg"]) == 0
    printed = capsys.readouterr().out
    assert "figure: by-length.svg" in printed and "20 words at each length" in printed
    text = Path("by-length.svg").read_text(encoding="utf-8")
    assert "modular-addition:m=3" in text and "training lengths" in text
    assert command([*asked, "--length", "6", "--plot", "by-length.svg"]) == 1
    assert "give two lengths or more" in capsys.readouterr().err
    plotted = ["plot", "runs", "--out", "again.svg", "--no-title", "--width", "column", "--json"]
    assert command(plotted) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["figure"] == "again.svg" and said["kind"] == "length"
    assert re.search(r'<svg[^>]* width="234pt"', Path("again.svg").read_text(encoding="utf-8"))
    assert command(["plot", "runs/mine", "--out", "again.jpg"]) == 1
    assert "must end in one of .svg, .png, .pdf" in capsys.readouterr().err


# --- in a terminal ---


def several_replicas() -> list[EvaluationRow]:
    lengths, falls = (10, 100, 1000), (0.0, 0.1, 0.2)
    return [
        row_of(length, replica, 1 - fall * place)
        for replica, fall in enumerate(falls)
        for place, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("width", [80, 60, 30])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_replicas_in_a_terminal_are_told_apart_by_letters_and_named_below(width, ascii_only):
    text = accuracy_curve(several_replicas(), width=width, coloured=False, ascii_only=ascii_only)
    lines = text.splitlines()
    plot = [line for line in lines if line[4:5] in "|│┤+" and line[4:5]]
    for letter in "abc":
        assert any(letter in line[5:] for line in plot)
    below = " ".join(lines[lines.index(plot[-1]) + 1 :])
    for replica, letter in enumerate("abc"):
        assert re.search(rf"{letter} seed {replica}, lr [0-9.e-]+", below)
    assert "seed" not in "".join(plot) and "\x1b" not in text
    assert all(len(line) <= max(width, 40) for line in lines)
    assert text.isascii() == ascii_only


def test_of_many_replicas_the_selected_one_is_drawn_and_the_others_are_counted():
    rows = [
        replace(row_of(length, 0, 0.5), replica=replica, selected=not replica)
        for replica in range(11)
        for length in (10, 20)
    ]
    text = accuracy_curve(rows, coloured=False)
    assert "a seed 0, lr" in text and "(selected)" in text
    assert "3 more replicas are not drawn" in " ".join(text.split())


def test_a_length_without_scored_words_leaves_a_gap_and_not_a_crash():
    nothing = dict.fromkeys(("accuracy", "low", "high"), float("nan"))
    rows = [row_of(10, 0, 0.5), replace(row_of(20, 0, 0.5), **nothing)]
    assert "length" in accuracy_curve(rows, coloured=False)


def test_the_curve_in_a_terminal_has_ticks_at_tested_lengths() -> None:
    rows = [row_of(length, 0, 0.9) for length in (10, 20, 50, 100, 1000, 10_000)]
    drawn = accuracy_curve(rows, coloured=False).splitlines()
    last = next(line.split() for line in drawn if line.split()[0] == "10")
    assert last == ["10", "50", "1,000", "10,000"] and "46.4" not in last
