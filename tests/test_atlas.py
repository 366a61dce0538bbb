"""`statetrack atlas`: every machine of a folder in one table, whatever one of the files does."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from statetrack.cli.app import run
from statetrack.errors import RunError, TaskError
from statetrack.report import summary_lines, training_tables
from statetrack.report.atlas import family_table, group_text, horizon_text
from statetrack.runs import EvaluationRow, Measured, compare, read_row
from statetrack.scoring import Accuracies, score_of, wilson
from statetrack.sweep import (
    AnswerRow,
    GroupRow,
    Limits,
    MachineRow,
    MergingRow,
    TrainedRow,
    machine_files,
    survey_all,
    training_suite,
)
from statetrack.sweep import survey as surveying
from statetrack.sweep.survey import KEPT

TOGGLE = """digraph broker {
__start0 -> closed;
closed -> open [label="connect / connack"];
open -> closed [label="connect / connection_closed"];
closed -> closed [label="publish / connection_closed"];
open -> open [label="publish / puback"];
}
"""
LATCH = """digraph latch {
__start0 -> off;
off -> on [label="press / on"];
on -> on [label="press / on"];
off -> off [label="reset / off"];
on -> off [label="reset / off"];
}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of two machines of one family, one without, and one that is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "machines/more").mkdir(parents=True)
    for name, text in {
        "Broker__first.dot": TOGGLE,
        "Broker__second.dot": LATCH,
        "more/latch.dot": LATCH,
        "broken.dot": "digraph g {",
        "notes.txt.md": "no machine",
    }.items():
        (tmp_path / "machines" / name).write_text(text)
    return tmp_path / "machines"


# --- files and families ---


def test_families_come_from_names_and_from_sub_folders(folder):
    found = machine_files(folder, recursive=True)
    assert [(each.name, each.family) for each in found] == [
        ("Broker__first", "Broker"),
        ("Broker__second", "Broker"),
        ("broken", "-"),
        ("more/latch", "more"),
    ]
    assert "more/latch" not in {each.name for each in machine_files(folder)}


def test_two_files_of_one_stem_keep_their_endings(folder):
    (folder / "broken.gv").write_text(LATCH)
    assert {"broken.dot", "broken.gv"} <= {each.name for each in machine_files(folder)}


def test_a_file_stands_alone(folder):
    (alone,) = machine_files(folder / "Broker__first.dot")
    assert (alone.name, alone.family) == ("Broker__first", "Broker")


@pytest.mark.parametrize("name", ["nothing.dot", "nothing", "machines/notes.txt.md"])
def test_what_is_no_machine_is_refused(folder, name):
    with pytest.raises(TaskError, match=name):
        machine_files(folder.parent / name)


def test_a_folder_without_machines_is_refused(tmp_path):
    with pytest.raises(TaskError, match="--recursive looks into its sub-folders"):
        machine_files(tmp_path)


# --- rows ---


def test_a_row_says_what_the_algebra_and_the_predictions_say(folder):
    (file,) = machine_files(folder / "Broker__first.dot")
    *earlier, row = surveying.survey(file, {"mamba": {}, "lstm": {}, "bilinear --hidden 3": {}})
    assert row == read_row(MachineRow, json.loads(json.dumps(row.to_json())), "row")
    assert (row.states, row.inputs) == (3, 2)
    assert (row.aperiodic, row.solvable, row.complexity) == (False, True, "ACC0")
    assert row.largest == GroupRow("Z2", 2, True, 1)
    assert {name: answer.can for name, answer in row.answers.items()} == {
        "mamba": "no",
        "lstm": "yes",
        "bilinear --hidden 3": "yes",
    }
    assert all(each.stopped for each in earlier) and not row.stopped


def test_a_star_free_machine_has_no_group(folder):
    (file,) = machine_files(folder / "Broker__second.dot")
    *_, row = surveying.survey(file, {"mamba": {}})
    assert (row.aperiodic, row.groups, row.largest) == (True, (), None)
    assert row.answers["mamba"].can == "yes"


def test_the_message_of_a_broken_file_is_one_line_without_its_path(folder):
    (file,) = machine_files(folder / "broken.dot")
    *_, row = surveying.survey(file, {})
    assert row.error and str(folder) not in row.error and "\n" not in row.error


# --- work in other processes ---


def surveyed(folder, *, seconds=60, models=None, out=None, stop=lambda: False):
    """The rows of a folder by their names."""
    rows = survey_all(
        machine_files(folder),
        {"mamba": {}} if models is None else models,
        out or folder.parent / "out",
        Limits(seconds=seconds),
        stop=stop,
    )
    return {row.name: row for row in rows}


@pytest.fixture
def in_this_process(monkeypatch):
    """Counts the surveys, which are made in this process."""
    names = []

    def survey_here(machines, models, limits, jobs, stop):
        for machine in machines:
            if stop():
                return
            names.append(machine.name)
            *_, row = surveying.survey(machine, models)
            yield row

    monkeypatch.setattr(surveying, "_in_processes", survey_here)
    return names


def test_rows_are_kept_by_content_and_models(folder, in_this_process):
    first = surveyed(folder)
    assert surveyed(folder) == first and len(in_this_process) == 3
    (folder / "Broker__first.dot").write_text(TOGGLE.replace("publish", "send"))
    surveyed(folder)
    assert in_this_process[3:] == ["Broker__first"]
    surveyed(folder, models={"lstm": {}})
    assert len(in_this_process) == 7


def test_a_file_that_is_renamed_keeps_its_row(folder, in_this_process):
    surveyed(folder)
    (folder / "Broker__first.dot").rename(folder / "Other__name.dot")
    assert surveyed(folder)["Other__name"].family == "Other"
    assert len(in_this_process) == 3


def test_a_row_that_was_stopped_is_made_again_within_larger_limits(folder, in_this_process):
    surveyed(folder, seconds=5)
    kept = folder.parent / "out" / KEPT
    kept.write_text(kept.read_text().replace('"stopped": ""', '"stopped": "late"'))
    assert surveyed(folder, seconds=5)["broken"].stopped == "late"
    assert not surveyed(folder, seconds=6)["broken"].stopped


def test_an_interrupted_survey_continues(folder, in_this_process):
    assert len(surveyed(folder, stop=lambda: len(in_this_process) == 1)) == 1
    assert len(surveyed(folder)) == 3
    assert len(in_this_process) == 3


def test_a_half_written_row_is_done_again_and_a_damaged_one_is_named(folder, in_this_process):
    surveyed(folder)
    kept = folder.parent / "out" / KEPT
    lines = kept.read_text().splitlines(keepends=True)
    kept.write_text("".join(lines[:2]) + lines[2][:50])
    assert len(surveyed(folder)) == 3 and len(in_this_process) == 4
    kept.write_text("{}\n" + "".join(lines))
    with pytest.raises(RunError, match=r"line 1: is damaged: delete the file"):
        surveyed(folder)


def test_a_survey_that_takes_too_long_keeps_what_is_known_by_then(folder):
    plugin = folder.parent / "endless.py"
    plugin.write_text(
        "import statetrack.sweep.survey as surveying\n"
        "def endless(automaton):\n"
        "    while automaton.num_symbols == 2 and 'connect' in automaton.symbols: pass\n"
        "    return analyse(automaton)\n"
        "analyse = surveying.analyse\n"
        "surveying.analyse = endless\n"
    )
    kept = surveying.analyse
    try:
        given = ["atlas", str(folder), "--plugin", str(plugin), "--seconds", "1", "--jobs", "1"]
        assert run([*given, "--models", "lstm"]) == 1
    finally:
        surveying.analyse = kept
    rows = [json.loads(line)["row"] for line in Path("atlas", KEPT).read_text().splitlines()]
    first, second = (
        next(row for row in rows if row["name"] == f"Broker__{n}") for n in ("first", "second")
    )
    assert (first["states"], first["aperiodic"]) == (3, None)
    assert first["stopped"] == "its algebra: 1 s were not enough"
    assert second["aperiodic"] and not second["stopped"]


# --- the command ---


@pytest.fixture
def printed(monkeypatch, capsys, in_this_process):
    """Runs the command on 80 columns; returns what it prints on both outputs."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words, code=0):
        assert run(["atlas", *words]) == code
        return capsys.readouterr()

    return call


def test_the_table_fits_80_columns_and_a_broken_file_is_named_at_the_end(folder, printed):
    shown = printed("machines", code=1)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "Broker__first" in shown.out and "no room for" in shown.out
    assert "failed: broken: " in shown.err
    assert shown.err.endswith("error: 1 of 3 machine files could not be surveyed\n")


def test_csv_has_a_column_for_each_model_and_json_has_every_row(folder, printed):
    (folder / "broken.dot").unlink()
    given = ("machines", "--recursive", "--models", "mamba,bilinear --hidden 2")
    lines = list(csv.DictReader(io.StringIO(printed(*given, "--csv").out)))
    assert [line["mamba"] for line in lines] == ["no", "yes", "yes"]
    assert [line["largest_order"] for line in lines] == ["2", "1", "1"]
    rows = json.loads(printed(*given, "--json").out)
    assert [row["name"] for row in rows] == [line["machine"] for line in lines]
    assert rows[0]["answers"]["bilinear --hidden 2"]["can"] == "yes"


def test_the_page_has_families_models_and_machines(folder, printed):
    (folder / "broken.dot").unlink()
    printed("machines", "--markdown", "page.md")
    page = Path("page.md").read_text()
    assert "| Broker | 2 | 1 | 1 | 0 | 0 | Z2 |" in page
    assert "`statetrack atlas machines`" in page
    assert "Not read" not in page


def test_a_page_that_cannot_be_written_is_refused_before_the_work(folder, printed):
    shown = printed("machines", "--markdown", "nowhere/page.md", code=1)
    assert "--markdown" in shown.err and not Path("atlas").exists()


# --- texts ---


def test_families_are_counted():
    rows = [
        MachineRow(name="a", family="x", aperiodic=True, solvable=True, groups=()),
        MachineRow(
            name="b",
            family="x",
            aperiodic=False,
            solvable=False,
            groups=(GroupRow("S6", 720, False), GroupRow("Z2", 2, True)),
        ),
        MachineRow(name="c", family="x"),
    ]
    assert family_table(rows).texts() == [["x", "3", "1", "1", "1", "1", "S6 (720)"]]


def test_groups_and_horizons_are_written_out():
    assert group_text(GroupRow("order 16, solvable, abelian", 16, True)) == (
        "order 16, solvable, abelian"
    )
    assert horizon_text(MergingRow(3, 7, 1200, exact=True)) == "1,200"
    assert horizon_text(MergingRow(3, 7, 12, exact=False)) == "~12"
    assert horizon_text(MergingRow(None, None, None, exact=True, never=True)) == "never"
    assert horizon_text(None) == "?"


# --- training ---


def score(words, length, accuracy, *, selected=True, sequences=500):
    """The row of a replica with this accuracy."""
    hits = round(accuracy * sequences)
    low, high = wilson(hits, sequences)
    found = Accuracies(sequences, accuracy, low, high, accuracy, accuracy)
    given = vars(score_of(length, found, 0.5, 0.25, None))
    return EvaluationRow(**given, replica=0, seed=0, lr=0.01, selected=selected, words=words)


def trained(*scores, can="yes", on="uniform", **given):
    """A run of a model that can or cannot, with these scores of its selected replica."""
    hardest = [one for one in scores if one.words == scores[-1].words]
    return TrainedRow(
        machine="Broker__first",
        family="Broker",
        model="lstm",
        trained_on=on,
        seeds=2,
        seconds=1.0,
        scores=scores,
        **{
            "predicted": AnswerRow(can, can),
            "best": hardest[-1] if scores else None,
            "measured": Measured(0, "no", 0, 500, 500, 0.5, 0.4, 0.6, 0.5, None),
        }
        | given,
    )


TRACKS = Measured(0, "tracks", 500, 500, 500, 1.0, 0.99, 1.0, 0.5, None)


def test_a_run_is_judged_as_everywhere():
    row = score("group", 500, 1.0)
    for can, tracks, outcome in (
        ("no", True, "predicted no, tracks"),
        ("no", False, "agree"),
        ("yes", True, "agree"),
        ("yes", False, "predicted yes, not reached"),
        ("unknown", True, "nothing predicted"),
    ):
        run = trained(row, can=can)
        run = replace(run, measured=TRACKS) if tracks else run
        assert run.outcome == outcome
        untested = replace(run, measured=replace(run.measured, tests=False))
        assert untested.outcome == "tests nothing"
        assert replace(run, measured=None).outcome == "not evaluated"
    at_some_size = AnswerRow("yes", "unknown")
    assert trained(row, predicted=at_some_size, measured=TRACKS).outcome == "agree"
    assert trained(row, predicted=at_some_size).outcome == "nothing predicted"
    assert trained().outcome == "diverged"


def test_accuracies_that_test_nothing_are_left_out():
    """A push of this door alone leads on: one word of each length, and one last answer."""
    machine = MachineRow(name="Broker__first", family="Broker", states=2, groups=())
    sure = replace(score("group", 500, 1.0), floor=1.0)
    row = trained(score("uniform", 500, 0.9), sure, can="no", best=sure)
    (table,) = training_tables([machine], [row])
    cells = dict(zip((column.heading for column in table.columns), table.texts()[0], strict=True))
    assert (cells["uniform\n500"], cells["group\n500"]) == ("0.90", "-")
    assert "1.00" not in summary_lines([row])[1]


def test_the_summary_names_what_disagrees_and_else_how_near_it_came():
    wrong = trained(score("uniform", 500, 1.0), score("group", 500, 0.55), can="no")
    assert summary_lines([wrong])[1] == (
        "the one run of models that cannot is not right on all words: the best replica of them on "
        "the hardest words of its machine (inside a group, where it has one) is right after 0.550 "
        "of 500 group words of 500 symbols"
    )
    right = trained(score("group", 500, 1.0), can="no", measured=TRACKS)
    assert summary_lines([right])[1] == "DISAGREES: lstm on Broker__first, trained on uniform words"


def test_a_suite_has_group_words_only_where_a_machine_has_a_group(folder):
    (folder / "broken.dot").unlink()
    suite = training_suite("machines", machine_files(folder), {"lstm --hidden 8": {"hidden": 8}})
    assert list(suite.columns) == [
        "Broker__first, uniform words",
        "Broker__first, group words",
        "Broker__second, uniform words",
    ]
    assert suite.rows["lstm --hidden 8"].settings["hidden"] == 8
    assert (suite.length, suite.curve_lengths) == (500, (20,))
    assert suite.for_budget("hours").settings["seeds"] == 3


def test_runs_are_tested_on_both_kinds_of_words_and_kept(folder, printed):
    given = ["machines/Broker__first.dot", "--train", "--models", "lstm --hidden 4", "--jobs", "1"]
    given += ["--length", "3,6", "--samples", "8", "--steps", "2", "--seeds", "1"]
    lines = list(csv.DictReader(io.StringIO(printed(*given, "--csv").out)))
    assert [(line["trained_on"], line["words"], line["length"]) for line in lines] == [
        (on, words, length)
        for on in ("uniform", "group")
        for words in ("uniform", "group")
        for length in ("3", "6")
    ]
    assert {line["sequences"] for line in lines} == {"8"}
    assert all(float(line["low"]) <= float(line["accuracy"]) for line in lines)
    (run_folder,) = Path("atlas/runs").glob("*group-words/*")
    before = (run_folder / "cell.json").stat().st_mtime_ns
    shown = printed(*given, "--finished", "--markdown", "page.md").out
    assert (run_folder / "cell.json").stat().st_mtime_ns == before
    compared = {one.run.parent.name: one.outcome for one in compare([run_folder])}
    shown_json = json.loads(printed(*given, "--finished", "--json").out)
    assert [*compared.values()] == [
        one["outcome"] for one in shown_json if one["trained_on"] == "group"
    ]
    assert max(map(len, shown.splitlines())) <= 80 and "groups Z2" in shown
    page = Path("page.md").read_text()
    assert "| `lstm --hidden 4` | can? | group |" in page and "2 of 2 runs are finished" in page


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--steps", "3"], "--steps: belongs to --train"),
        (["--length", "5,6"], "--length: belongs to --train"),
        (["--train", "--length", "5"], "write two lengths with a comma between"),
        (["--train", "--length", "5,5"], "write two lengths with a comma between"),
        (["--train", "--budget", "paper"], "it is minutes or hours"),
        (["--json", "--csv"], "give one of the two"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder, printed, given, told):
    assert told in printed("machines/Broker__first.dot", *given, code=1).err
