"""Comparison: runs with known evaluations, set beside predictions that other tests establish."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetrack import predicting
from statetrack.algebra import analyse
from statetrack.cli.app import run
from statetrack.evidence import Evidence, Failure
from statetrack.models import MODELS
from statetrack.plugins import load_plugin
from statetrack.predicting import predict
from statetrack.report.entries import horizon_of_entry
from statetrack.report.gathering import gather_runs
from statetrack.runs import (
    DISAGREEMENTS,
    EvidenceRow,
    Outcome,
    Run,
    RunFolder,
    Summary,
    compare,
    files,
    find_run_folders,
)
from statetrack.scoring import wilson
from statetrack.sources import LengthDistribution
from statetrack.spec import load_task
from tests.run_files import append_rows
from tests.setups import certificate_of, exhaustive_of, worst_case_of
from tests.test_docs import documented, keys_of

PLUGIN = '''
from statetrack import MODELS, Settings
from statetrack.models.gru import Gru

@MODELS.register("my-own")
class MyOwn(Gru):
    """A model of one's own."""
'''


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def row(length: int, right: int, *, words: int = 100, replica: int = 0, **more: Any) -> dict:
    """A row of eval.jsonl with so many words right; the floor is 1/6."""
    low, high = wilson(right, words)
    accuracy = right / words
    return {
        "replica": replica,
        "seed": replica,
        "lr": 0.01,
        "selected": replica == 0,
        "length": length,
        "sequences": words,
        "accuracy": accuracy,
        "low": low,
        "high": high,
        "symbol_accuracy": accuracy,
        "prefix_accuracy": accuracy,
        "floor": 1 / 6,
        "chance": 1 / 6,
        "scaled": accuracy,
        "scaled_to_floor": accuracy,
    } | more


def make_run(
    name: str, model: str, task: str, rows: list[dict], *, replicas: int = 1, **settings: Any
) -> RunFolder:
    """A finished run whose training never took place."""
    values = {"model": model, "task": task, "train_length": "2-10", **settings}
    values |= {"seeds": replicas, "lrs": [0.01]}
    folder = Run.start(**values, out=Path("runs") / name).folder
    everyone = [Outcome(replica, replica, 0.01, 1.0, 0.0, 1, "") for replica in range(replicas)]
    folder.write(files.SUMMARY, Summary(1, 0.1, 0, tuple(everyone)))
    append_rows(folder, "eval.jsonl", rows)
    return folder


def outcome(folder: RunFolder) -> Any:
    (one,) = compare([folder.path])
    return one


RIGHT, WRONG = [row(500, 100)], [row(500, 17)]
CANNOT, CAN = ("bilinear-rotation", "s3"), ("bilinear-block", "s3")


def test_what_theory_and_measurement_both_say_agrees():
    assert outcome(make_run("a", *CAN, RIGHT)).outcome == "agree"
    assert outcome(make_run("b", *CANNOT, WRONG)).outcome == "agree"


def test_a_model_that_cannot_and_does_disagrees_and_is_to_be_tested_on_longer_words():
    one = outcome(make_run("a", *CANNOT, RIGHT))
    assert one.outcome == "predicted no, tracks" and one.disagrees
    assert one.reason == "predicted no, measured right up to 500"
    assert "--length 5000" in one.advice and "abelian" in one.prediction.theorem


def test_a_model_that_can_and_does_not_is_not_reached_and_is_to_be_trained_again():
    one = outcome(make_run("a", *CAN, WRONG, replicas=3))
    assert one.outcome == "predicted yes, not reached" and not one.disagrees
    assert "the other 2 replicas" in one.advice and "--steps" in one.advice
    far = outcome(make_run("b", *CAN, [row(500, 100), row(5000, 60)]))
    assert far.outcome == "predicted yes, not reached"
    assert "right up to 500 and not beyond" in far.reason and "corrects no errors" in far.reason


def test_the_settings_of_the_run_decide_what_is_predicted_of_it():
    small = outcome(make_run("a", *CAN, WRONG, block_size=1))
    assert (small.predicted, small.size_given, small.outcome) == ("no", 1, "agree")
    assert small.prediction.can == "yes" and small.prediction.size == 2
    few = outcome(make_run("b", "bilinear-cp", "s3", RIGHT, rank=2))
    assert few.outcome == "agree" and "at some size (rank 2 (4 is enough))" in few.reason
    failing = outcome(make_run("c", "bilinear-cp", "s3", WRONG, rank=2))
    assert failing.outcome == "nothing predicted" and "rank 2 (4 is enough)" in failing.reason


@pytest.mark.parametrize(
    ("model", "task", "settings", "predicted", "unmet"),
    [
        ("deltanet", "parity", {"beta": "unit", "layers": 1}, "no", {}),
        ("deltanet", "parity", {"beta": "double", "layers": 1}, "yes", {}),
        ("deltaproduct", "s3", {"householders": 1, "layers": 1}, "no", {"householders": 2}),
        ("deltaproduct", "s3", {"householders": 2, "layers": 1}, "yes", {}),
        ("aussm", "s3", {"layers": 1}, "no", {"layers": 2}),
        ("aussm", "s3", {"layers": 2}, "yes", {}),
        ("aussm", "s4", {"layers": 2}, "unknown", {"layers": 3}),
        ("bilinear-block", "s4", {"block_size": 2, "hidden": 12}, "no", {"block_size": 3}),
        ("bilinear-block", "s4", {"block_size": 3, "hidden": 12}, "yes", {}),
        ("bilinear", "s4", {"hidden": 2}, "no", {"hidden": 3}),
        ("lstm", "s3", {"hidden": 4}, "unknown", {"hidden": 37}),
    ],
)
@pytest.mark.parametrize("rows", [RIGHT, WRONG], ids=["right", "wrong"])
def test_a_run_is_judged_by_its_own_settings(model, task, settings, predicted, unmet, rows, capsys):
    one = outcome(make_run("a", model, task, rows, **settings))
    found = predict(load_task(task), model, **settings)
    assert one.prediction == found and one.predicted == found.answer == predicted
    assert {need.setting: need.value for need in found.unmet} == unmet
    tracks = rows is RIGHT
    expected = {
        "yes": "agree" if tracks else "predicted yes, not reached",
        "no": "predicted no, tracks" if tracks else "agree",
        "unknown": "agree" if tracks and found.can == "yes" else "nothing predicted",
    }
    assert one.outcome == expected[predicted]
    lacks = [need.lack for need in found.unmet]
    assert [lack for lack in lacks if lack not in one.reason] == []
    capsys.readouterr()
    assert run(["compare", "runs"]) == 0
    printed = capsys.readouterr().out
    assert [lack for lack in lacks if lack not in printed] == []


def test_a_size_that_is_too_small_is_not_broken_inside_a_word(capsys, monkeypatch):
    make_run("a", "lstm", "s3", WRONG, hidden=4)
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["compare", "runs"]) == 0
    table = capsys.readouterr().out.partition("\nruns/a:")[0]
    assert {"hidden", "4", "(37", "is", "enough)"} <= {*table.split()}


def test_a_run_on_words_too_short_to_identify_the_machine_is_told_so():
    short = outcome(make_run("a", "bilinear", "s4-cascade", WRONG, train_length="2-5"))
    assert short.identified is False and "do not identify the machine" in short.reason
    assert short.advice.startswith("longer words (--train-length)")
    long = outcome(make_run("b", "bilinear", "s4-cascade", WRONG))
    assert long.identified is True and "identify" not in long.reason


def test_one_replica_that_tracks_is_enough_for_a_yes_and_against_a_no():
    rows = [row(500, 20), row(500, 100, replica=1)]
    agrees = outcome(make_run("a", *CAN, rows, replicas=2))
    assert agrees.outcome == "agree" and "by replica 1" in agrees.reason
    assert (agrees.num_tracking, agrees.num_evaluated, agrees.num_replicas) == (1, 2, 2)
    assert (agrees.selected.verdict, agrees.best.verdict) == ("no", "tracks")
    assert outcome(make_run("b", *CANNOT, rows, replicas=2)).outcome == "predicted no, tracks"


def test_words_with_one_possible_answer_test_nothing():
    Path("late.yaml").write_text(LATE)
    cannot = ("mamba", "late.yaml")
    few = outcome(make_run("a", *cannot, [row(20, 100, floor=1.0)], layers=1))
    assert (few.outcome, few.disagrees) == ("tests nothing", False)
    assert "words of up to 20 symbols have one possible answer" in few.reason
    more = outcome(make_run("b", *cannot, [row(500, 100)], layers=1))
    assert more.outcome != "tests nothing"
    length_alone = outcome(make_run("c", "lstm", "aaaa-star", [row(500, 100, floor=1.0)]))
    assert length_alone.outcome == "agree"  # labels differ from position to position


LATE = "\n".join(
    [
        "title: A parity of b, once thirty symbols have been read",
        "version: 1",
        "reference: own example",
        "automaton:",
        "  kind: transitions",
        "  start: s0",
        "  states:",
        *(f"    s{n}: {{a: s{n + 1}, b: s{n + 1}}}" for n in range(30)),
        "    s30: {a: s30, b: odd}",
        "    odd: {a: odd, b: s30}",
        f"  outputs: {{{', '.join(f's{n}: 0' for n in range(31))}, odd: 1}}",
        "examples: {a a: 0 0, b a b: 0 0 0}",
        "train_length: [2, 10]",
        "test_lengths: [500]",
        "supervision: every",
    ]
)


def test_a_run_trained_on_words_of_a_group_is_judged_by_such_words():
    group = [row(500, 100) | {"words": "group"}]
    assert outcome(make_run("a", *CAN, group, words="group")).outcome == "agree"
    both = [*group, row(500, 17) | {"words": "uniform"}]
    assert outcome(make_run("b", *CAN, both, words="group")).outcome == "agree"
    assert outcome(make_run("c", *CAN, both)).outcome == "predicted yes, not reached"


def test_the_sentence_names_the_replica_that_it_is_about():
    rows = [row(500, 20), row(50, 100, replica=1), row(500, 60, replica=1)]
    one = outcome(make_run("a", *CAN, rows, replicas=2))
    assert "by replica 1, the best, and not by the selected one" in one.reason


def test_verdicts_follow_from_the_rows():
    def verdict(name: str, *rows: dict) -> tuple[str, int]:
        measured = outcome(make_run(name, *CAN, list(rows))).selected
        return measured.verdict, measured.horizon

    assert verdict("a", row(20, 100), row(500, 100)) == ("tracks", 500)
    assert verdict("b", row(20, 100), row(500, 17)) == ("partly", 20)
    assert verdict("c", row(20, 99), row(500, 40)) == ("partly", 0)
    assert verdict("d", row(20, 99), row(500, 20)) == ("no", 0)
    assert verdict("e", row(5, 90), row(500, 100)) == ("tracks", 0)


def test_no_horizon_reaches_a_position_that_any_evaluation_has_wrong():
    right = [row(20, 2, words=2), row(50, 100), row(200, 2, words=2)]
    wrong, again = row(300, 60, first_error=91), row(300, 2, words=2)
    for name, rows in (("a", [wrong, *right]), ("b", [*right, wrong, again])):
        folder = make_run(name, *CAN, rows)
        (entry,) = gather_runs([folder.path]).entries
        assert outcome(folder).selected.horizon == horizon_of_entry(entry) == 50
        assert entry.bracket.fails_at == 91


def test_of_several_evaluations_of_one_length_the_worst_decides_the_horizon():
    rows = [row(20, 100), row(100, 99, first_error=77), row(100, 2, words=2)]
    folder = make_run("a", *CAN, rows)
    (entry,) = gather_runs([folder.path]).entries
    assert outcome(folder).selected.horizon == horizon_of_entry(entry) == 20


def test_logits_that_are_not_finite_are_no_evidence_and_are_the_reason():
    rows = [row(20, 100), row(500, 100, nonfinite_from=311)]
    one = outcome(make_run("a", *CAN, rows))
    assert (one.selected.verdict, one.selected.nonfinite_from) == ("partly", 311)
    assert "NaN or infinite from position 311" in one.reason
    assert outcome(make_run("b", *CAN, RIGHT)).selected.nonfinite_from is None


def test_a_run_that_diverged_is_not_judged_by_its_initial_weights():
    folder = make_run("a", *CAN, WRONG, replicas=2)
    lost = [Outcome(replica, replica, 0.01, None, None, 0, "diverged") for replica in range(2)]
    folder.write(files.SUMMARY, Summary(1, 0.1, None, tuple(lost)))
    one = outcome(folder)
    assert (one.outcome, one.disagrees, one.selected, one.best) == ("diverged", False, None, None)
    assert (one.num_replicas, one.num_diverged, one.num_evaluated) == (2, 2, 0)
    assert "--lrs" in one.advice and "finite" in one.reason


def test_a_replica_that_diverged_is_neither_counted_nor_asked_for():
    folder = make_run("a", *CAN, [*WRONG, row(500, 100, replica=1)], replicas=3)
    kept, *others = folder.read(files.SUMMARY).replicas
    lost = [Outcome(one.replica, one.seed, one.lr, None, None, 0, "diverged") for one in others]
    folder.write(files.SUMMARY, Summary(1, 0.1, 0, (kept, *lost)))
    one = outcome(folder)
    assert (one.outcome, one.num_evaluated, one.num_tracking) == (
        "predicted yes, not reached",
        1,
        0,
    )
    assert "evaluate the other" not in one.advice


def test_a_loss_with_an_exact_optimum_is_advised_where_the_run_had_none():
    held = [row(20, 100), row(500, 17)]
    without = outcome(make_run("a", *CAN, held, loss="cross-entropy"))
    command = f"`statetrack train --from {without.run} --loss squared-error`"
    assert f"a loss that has an exact optimum ({command}); more --steps" in without.advice
    already = outcome(make_run("b", *CAN, held, loss="squared-error"))
    assert already.advice == "more --steps"


def found(folder: RunFolder, *evidence: Evidence, replica: int = 0) -> RunFolder:
    """The run, in which this was found about a replica."""
    about = {
        "seed": replica,
        "lr": 0.01,
        "selected": replica == 0,
        "task": Run.open(folder.path).task.name,
    }
    rows = [
        EvidenceRow(replica=replica, version="1", found="now", weights=None, evidence=each, **about)
        for each in evidence
    ]
    folder.append(files.EVIDENCE, rows)
    return folder


FAILS = Failure((), (2, 0), 711, 1, 0)
CLOSED = exhaustive_of(failure=None, closed=True, reason="closed")


def test_a_word_that_fails_outweighs_random_words_that_are_all_right():
    one = outcome(found(make_run("a", *CAN, RIGHT), worst_case_of(FAILS)))
    assert (one.selected.verdict, one.selected.horizon, one.selected.fails_at) == (
        "partly",
        500,
        711,
    )
    assert one.selected.worst_case == 710
    assert one.outcome == "predicted yes, not reached"
    symbols = load_task("s3").source.symbols
    word = f"{symbols[2]} {symbols[0]} again and again"
    assert one.reason.startswith(
        f"predicted yes, right on every random word up to 500, wrong at symbol 711 of {word}"
    )
    agrees = outcome(found(make_run("b", *CANNOT, RIGHT), worst_case_of(FAILS)))
    assert agrees.outcome == "agree" and "wrong at symbol 711 of" in agrees.reason
    right = outcome(found(make_run("c", *CAN, RIGHT), worst_case_of()))
    assert (right.outcome, right.selected.worst_case) == ("agree", 900)


def test_a_random_word_that_fails_is_told_from_one_that_was_sought():
    rows = [row(500, 100), row(5000, 99, first_error=4100)]
    one = outcome(found(make_run("a", *CAN, rows), worst_case_of()))
    assert (one.selected.fails_at, one.selected.failing_word) == (4100, None)
    assert one.selected.worst_case == 4099 and "right up to 500 and not beyond" in one.reason
    proven = found(make_run("b", *CAN, rows), certificate_of(4100))
    assert outcome(proven).outcome == "contradiction"


def test_a_failing_word_makes_no_verdict_better():
    one = outcome(found(make_run("a", *CAN, WRONG), worst_case_of(FAILS)))
    assert one.selected.verdict == "no"


def test_evidence_counts_for_its_own_replica_and_the_task_of_the_run_only():
    rows = [row(500, 100), row(500, 100, replica=1)]
    folder = found(make_run("a", *CAN, rows, replicas=2), worst_case_of(FAILS), replica=1)
    one = outcome(folder)
    assert (one.outcome, one.selected.fails_at, one.num_tracking) == ("agree", None, 1)
    elsewhere = [replace(each, task="another") for each in folder.evidence()]
    other = make_run("b", *CAN, rows, replicas=2)
    other.append(files.EVIDENCE, elsewhere)
    assert outcome(other).num_tracking == 2


@pytest.mark.parametrize("proof", [CLOSED, certificate_of(None)])
def test_a_proof_of_what_was_predicted_to_be_impossible_is_a_contradiction(proof, capsys):
    one = outcome(found(make_run("a", *CANNOT, RIGHT), proof))
    assert one.outcome == "contradiction" and one.disagrees
    assert f"predicted no, and the evidence '{proof.kind}' proves" in one.reason
    unevaluated = outcome(found(make_run("b", *CANNOT, []), proof))
    assert unevaluated.outcome == "contradiction"
    assert run(["compare", "runs"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("CONTRADICTION: predicted no") == 2
    assert printed.splitlines()[-1] == "2 runs: 2 CONTRADICT"
    assert outcome(found(make_run("c", *CAN, RIGHT), proof)).outcome == "agree"
    assert outcome(found(make_run("d", *CANNOT, WRONG), certificate_of(9))).outcome == "agree"


def test_a_proof_that_a_failing_word_refutes_is_a_contradiction():
    one = outcome(found(make_run("a", *CAN, RIGHT), certificate_of(711), worst_case_of(FAILS)))
    assert one.outcome == "contradiction" and "symbol 711 of a word" in one.reason


def test_the_table_has_columns_for_evidence_where_a_run_has_some(capsys):
    make_run("a", *CAN, RIGHT)
    assert run(["compare", "runs"]) == 0
    assert "worst word" not in capsys.readouterr().out
    found(make_run("b", *CAN, RIGHT), worst_case_of(FAILS), certificate_of(408))
    found(make_run("c", "bilinear", "s3", RIGHT), worst_case_of(), certificate_of(None))
    assert run(["compare", "runs"]) == 0
    printed = capsys.readouterr().out
    assert "worst word" in printed and "proven" in printed and "machine" not in printed
    assert "710" in printed and "408" in printed
    assert "all lengths  all lengths" in printed


def test_of_several_evaluations_at_one_length_the_worst_counts():
    one = outcome(make_run("a", *CAN, [row(500, 100), row(500, 1999, words=2000), row(500, 100)]))
    assert one.selected.sequences == 2000 and one.selected.verdict == "partly"


def test_words_of_another_task_and_words_without_a_label_do_not_count():
    empty = dict.fromkeys(("accuracy", "low", "high"))
    rows = [row(500, 100, task="s3"), row(900, 0, task="other"), row(900, 0, **empty)]
    assert outcome(make_run("a", *CAN, rows)).selected.length == 500


def test_a_run_without_long_words_is_not_evaluated_and_says_the_command():
    one = outcome(make_run("a", *CAN, [row(10, 100)]))
    assert one.outcome == "not evaluated" and one.selected is None
    assert one.advice == "`statetrack eval runs/a --length 500`"


def test_what_has_no_rule_is_not_predicted():
    assert outcome(make_run("a", "ttt-linear", "s3", RIGHT)).outcome == "nothing predicted"


def test_a_task_without_an_automaton_is_not_predicted():
    one = outcome(make_run("a", "gru", "dyck-1", RIGHT, train_length="2-10"))
    assert one.outcome == "nothing predicted" and "no automaton" in one.reason
    assert one.prediction is None and one.selected.verdict == "tracks"


def test_a_run_whose_model_comes_from_a_loaded_plugin_is_compared_as_others_are(capsys):
    Path("mine.py").write_text(
        PLUGIN.replace("Gru", "GatedUnit").replace(
            "from statetrack.models.gru import GatedUnit",
            "from statetrack.models import MODELS as KNOWN\nGatedUnit = KNOWN['gru']",
        )
    )
    train = ["train", "--plugin", "mine.py", "--model", "my-own", "--task", "s3", "--steps", "2"]
    assert run([*train, "--hidden", "4", "--out", "runs/own"]) == 0
    one = outcome(RunFolder(Path("runs/own")))
    assert (one.model, one.outcome) == ("my-own", "not evaluated")
    assert (one.predicted, one.size_given) == ("unknown", 4)
    assert one.prediction.size_of == "hidden" and one.prediction.size > 4


def test_a_model_that_names_no_recurrence_is_not_predicted(monkeypatch):
    monkeypatch.setattr(MODELS, "_things", dict(MODELS._things))
    Path("silent.py").write_text(
        """
from statetrack import MODELS, Settings

class SilentSettings(Settings):
    pass

@MODELS.register("silent")
class Silent(MODELS["gru"]):
    settings_class = SilentSettings
"""
    )
    load_plugin(Path("silent.py"))
    found = predict(analyse(load_task("s3").automaton), "silent")
    assert (found.can, found.size) == ("unknown", None)
    assert found.theorem == "the model names no class of recurrence"


def damaged(folder: RunFolder, name: str) -> Path:
    copy = folder.path.with_name(f"{folder.path.name}-{name}")
    shutil.copytree(folder.path, copy)
    return copy


def test_broken_and_unfinished_runs_are_lines_and_never_left_out(capsys):
    whole = make_run("whole", *CAN, RIGHT)
    (damaged(whole, "no-config") / "config.yaml").unlink()
    (damaged(whole, "no-task") / "task.yaml").unlink()
    (damaged(whole, "unfinished") / "summary.json").unlink()
    (damaged(whole, "foreign") / "summary.json").write_text('{"steps": 3}')
    (damaged(whole, "not-json") / "eval.jsonl").write_text("half a row\n")
    (damaged(whole, "odd-row") / "eval.jsonl").write_text('{"accuracy": 1.0}\n')
    (damaged(whole, "odd-model") / "config.yaml").write_text("model: perceptron\n")
    found = {one.run.name: one for one in compare(find_run_folders([Path("runs")]))}
    assert found.pop("whole").outcome == "agree"
    assert found.pop("whole-unfinished").outcome == "unfinished"
    assert len(found) == 6 and {one.outcome for one in found.values()} == {"broken"}
    for one in found.values():
        assert one.run.name in one.reason or "perceptron" in one.reason, one.reason
    capsys.readouterr()
    assert run(["compare"]) == 0
    printed = capsys.readouterr()
    for name in found:
        (line,) = [line for line in printed.out.splitlines() if line.startswith(f"runs/{name}:")]
        assert "cannot be read" in line
    assert printed.out.splitlines()[-1] == "8 runs: 1 agree, 1 unfinished, 6 cannot be read"
    (warned,) = printed.err.splitlines()
    assert warned.startswith("warning: 6 of 8 runs cannot be read: runs/whole-")


@pytest.mark.parametrize("command", [["compare"], ["report"], ["report", "--out", "table.tex"]])
def test_where_no_run_can_be_read_it_is_an_error_and_no_file_is_written(command, capsys):
    for name in "ab":
        Path(f"runs/{name}").mkdir(parents=True)
        Path(f"runs/{name}/config.yaml").touch()
    assert run([*command, "runs"]) == 1
    printed = capsys.readouterr()
    assert not printed.out and not Path("table.tex").exists()
    (line,) = printed.err.splitlines()
    assert line.startswith("error: runs/a/config.yaml: ")
    assert line.endswith("(and 1 more cannot be read)")
    make_run("whole", *CAN, RIGHT)
    assert run([*command, "runs"]) == 0
    assert "warning: 2 of 3 runs cannot be read: runs/a/config" in capsys.readouterr().err


def test_runs_are_found_at_any_depth_and_each_once():
    make_run("suite/s3/block", *CAN, RIGHT)
    make_run("single", *CAN, RIGHT)
    places = [Path("runs/suite"), Path("runs"), Path("runs/single")]
    assert sorted(path.name for path in find_run_folders(places)) == ["block", "single"]


def test_rows_are_sorted_by_task_then_model():
    for place, (model, task) in enumerate([("lstm", "s3"), ("gru", "s3"), ("lstm", "parity")]):
        make_run(str(place), model, task, RIGHT)
    found = compare(find_run_folders([Path("runs")]))
    assert [(one.task, one.model) for one in found] == [
        ("parity", "lstm"),
        ("s3", "gru"),
        ("s3", "lstm"),
    ]


def test_a_task_that_runs_share_is_analysed_once(monkeypatch):
    analysed = []
    whole = predicting.algebra_of
    monkeypatch.setattr(predicting, "algebra_of", lambda a: analysed.append(a) or whole(a))
    for name in "abc":
        make_run(name, *CAN, RIGHT)
    compare(find_run_folders([Path("runs")]))
    assert len(analysed) == 1


def test_the_command_marks_and_counts_disagreements(capsys):
    make_run("a", *CANNOT, RIGHT)
    make_run("b", *CAN, WRONG)
    make_run("c", *CAN, RIGHT)
    capsys.readouterr()
    assert run(["compare", "runs"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "3 runs: 1 not reached, 1 agree, 1 DISAGREE"
    assert printed.count("DISAGREES") == 1 and printed.count("theorem") == 1
    assert "runs/a: predicted no, measured right up to 500" in printed


def test_runs_of_one_model_with_the_same_settings_are_told_apart_by_name(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    for name in ("b", "a"):
        make_run(name, *CAN, RIGHT)
    make_run("other", "gru", "s3", RIGHT)
    assert run(["compare", "runs"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines if line[:1] == ["bilinear-block"]] == [
        ["bilinear-block", "a"],
        ["bilinear-block", "b"],
    ]
    shutil.rmtree("runs/b")
    assert run(["compare", "runs"]) == 0
    heading = next(x for x in capsys.readouterr().out.splitlines() if x.startswith("model"))
    assert heading.split()[1] == "predicted"


def test_all_tables_of_a_comparison_have_the_same_columns(monkeypatch, capsys):
    make_run("a", *CAN, RIGHT)
    make_run("b", "gated-deltaproduct", "flip-flop", [])
    monkeypatch.setenv("COLUMNS", "72")
    capsys.readouterr()
    assert run(["compare", "runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = (line.split() for line in lines if line.startswith("model"))
    assert first == second
    (said,) = (line for line in lines if line.startswith("no room for: "))
    assert "--json has them" in " ".join(lines) and said.split(": ")[1].split(",")[0] == "words"


@pytest.mark.parametrize("width", [80, 100, 130, 200])
def test_the_table_keeps_its_verdicts_at_any_width(width, monkeypatch, capsys):
    make_run("a", *CAN, RIGHT)
    make_run("b", "gated-deltaproduct", "flip-flop", [])
    monkeypatch.setenv("COLUMNS", str(width))
    capsys.readouterr()
    assert run(["compare", "runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("can" in line and "tracks" in line and "agrees" in line for line in lines)
    assert any(line.rstrip().endswith("not evaluated") for line in lines[:-1])
    assert any("length" in line and "accuracy" in line for line in lines)
    assert all(len(line) <= width for line in lines)


def test_json_has_the_documented_keys(capsys):
    make_run("a", *CAN, RIGHT)
    (damaged(make_run("b", *CAN, RIGHT), "broken") / "config.yaml").unlink()
    capsys.readouterr()
    assert run(["compare", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert keys_of(found) == documented("compare --json")
    assert all(set(one) == set(found[0]) for one in found)
    assert keys_of([found[0]["best"]]) == documented("A measurement in compare --json")
    assert [one["disagrees"] for one in found] == [one["outcome"] in DISAGREEMENTS for one in found]


@pytest.mark.parametrize(("place", "says"), [("nowhere", "no such folder"), (".", "holds no run")])
def test_a_place_without_runs_is_an_error(place, says, capsys):
    assert run(["compare", place]) == 1
    assert says in capsys.readouterr().err


def test_lengths_of_training_are_those_of_the_run():
    one = outcome(make_run("a", *CAN, [row(30, 100)], train_length="2-30"))
    assert one.outcome == "not evaluated"
    assert LengthDistribution.parse("2-30", 0.0).longest == 30


def test_every_damaged_folder_is_a_line_of_its_own_in_list_and_compare(capsys):
    make_run("whole", *CAN, RIGHT)
    for name in ("folder-for-config", "link-to-nothing", "no-config", "binary", "no-names", "loop"):
        shutil.copytree("runs/whole", f"runs/{name}")
    Path("runs/folder-for-config/config.yaml").unlink()
    Path("runs/folder-for-config/config.yaml").mkdir()
    Path("runs/link-to-nothing/config.yaml").unlink()
    Path("runs/link-to-nothing/config.yaml").symlink_to("nowhere")
    Path("runs/no-config/config.yaml").unlink()
    Path("runs/binary/config.yaml").write_bytes(bytes(range(128, 256)))
    Path("runs/no-names/task.yaml").write_text("- 1\n- 2\n")
    Path("runs/loop/loop").symlink_to("..", target_is_directory=True)
    Path("runs/linked").symlink_to("whole", target_is_directory=True)
    Path("elsewhere").mkdir()
    Path("runs/whole").rename("elsewhere/whole")
    Path("runs/linked").unlink()
    Path("runs/linked").symlink_to("../elsewhere/whole", target_is_directory=True)
    good = {"runs/loop", "runs/linked"}
    assert run(["compare", "--json"]) == 0
    outcomes = {one["run"]: one["outcome"] for one in json.loads(capsys.readouterr().out)}
    assert {name for name, one in outcomes.items() if one != "broken"} == good
    assert run(["list", "runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["run"] for row in rows if "error" not in row} == good | {"runs/no-names"}
    bad = {row["name"]: row["error"] for row in rows if "error" in row}
    assert set(bad) == set(outcomes) - good - {"runs/no-names"} and len(bad) == 4
    assert all(name in reason for name, reason in bad.items())


def test_the_newest_run_is_not_passed_over_where_it_is_damaged(capsys):
    make_run("old", *CAN, RIGHT)
    make_run("new", *CAN, RIGHT)
    for sign, time in (("old/config.yaml", 10), ("new/task.yaml", 20)):
        os.utime(Path("runs", sign), (time, time))
    Path("runs/new/config.yaml").unlink()
    assert run(["eval", "--length", "10"]) == 1
    assert "runs/new: not a run folder (it has no config.yaml)" in capsys.readouterr().err


def test_a_folder_that_cannot_be_read_is_a_line_of_its_own(monkeypatch, capsys):
    make_run("whole", *CAN, RIGHT)
    Path("runs/locked").mkdir()
    listdir, scandir = os.listdir, os.scandir

    def refuse(path):
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", lambda path: refuse(path) or listdir(path))
    monkeypatch.setattr(os, "scandir", lambda path=".": refuse(path) or scandir(path))
    assert [one.run.name for one in compare(find_run_folders([Path("runs")]))] == [
        "whole",
        "locked",
    ]
    assert run(["list", "runs", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows if "error" in row] == ["runs/locked"]
