"""Verdicts on published numbers: every branch, on results made by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from statetrack.evidence import Plane, Representation
from statetrack.report import reproduction_page, summary, text_of, verdict_table
from statetrack.report.evidence import harmonics_markdown
from statetrack.report.reproductions import with_totals
from statetrack.report.verdicts import verdicts_markdown
from statetrack.runs import EvaluationRow, EvidenceRow, Outcome, Summary
from statetrack.scoring import rescale, wilson
from statetrack.sweep import (
    Compared,
    Failed,
    Measurement,
    Point,
    PointResult,
    Suite,
    compare_published,
    counts,
    departures_from_paper,
)
from statetrack.training import PROTOCOLS

LENGTH = 500
CHANCE = 0.2


def suite_of(
    *, row: Mapping[str, Any] | None = None, minutes: Mapping[str, Any] | None = None, **table: Any
) -> Suite:
    """A suite of one LSTM on addition modulo 5, as its budget of minutes has it.

    `table` is one published table; its number is 1 unless it says otherwise.
    """
    given = {"source": "Table 1", "trust": "primary", "values": {"LSTM": {"mod 5": 1.0}}, **table}
    suite = Suite(
        title="One model",
        reference="A paper",
        protocol="bilinear-paper",
        models={"LSTM": {"model": "lstm", **(row or {})}},
        tasks={"mod 5": "modular-addition"},
        length=LENGTH,
        budgets={
            "minutes": {
                "says": "fewer steps",
                "settings": {"steps": 1000, "lrs": [0.01], **(minutes or {})},
            },
            "paper": {"says": "nothing"},
        },
        tables=[given],
    )
    return suite.within("minutes")


def row_of(
    accuracy: float, replica: int = 0, length: int = LENGTH, words: int = 1000
) -> EvaluationRow:
    low, high = wilson(round(words * accuracy), words)
    return EvaluationRow(
        length=length,
        sequences=words,
        accuracy=accuracy,
        low=low,
        high=high,
        symbol_accuracy=accuracy,
        prefix_accuracy=accuracy,
        floor=CHANCE,
        chance=CHANCE,
        scaled=rescale(accuracy, CHANCE),
        scaled_to_floor=rescale(accuracy, CHANCE),
        replica=replica,
        seed=replica,
        lr=0.01,
        selected=replica == 0,
    )


def result_of(*accuracies: float, others: Sequence[EvaluationRow] = ()) -> PointResult:
    """The result of replicas with these accuracies; the first is the selected one."""
    rows = tuple(row_of(accuracy, replica) for replica, accuracy in enumerate(accuracies))
    return PointResult(
        row="LSTM",
        column="mod 5",
        run="somewhere",
        replicas=len(rows),
        rows=rows,
        curves=(*rows, *others),
        selected=rows[0] if rows else None,
        success=sum(row.all_right for row in rows) / max(1, len(rows)),
        horizon=0,
        steps=1000,
        seconds=1.0,
        measured=Measurement("0" * 64, 1, LENGTH, 100, 0, (), (), 200, 1),
    )


def point_of(suite: Suite) -> Point:
    values = {**suite.settings, **suite.rows["LSTM"].settings, **suite.columns["mod 5"]}
    return Point("LSTM", "mod 5", values, suite.protocol, Path("somewhere"), ())


def learned(*accuracies: float) -> Summary:
    """Training that ended with these shares of right words of the training lengths.

    Of positions all are right, which does not count.
    """
    outcomes = tuple(
        Outcome(replica, replica, 0.01, 1.0, 0.1, 1000, "", validation_prefix_accuracy=accuracy)
        for replica, accuracy in enumerate(accuracies)
    )
    return Summary(1000, 1.0, 0, outcomes)


def compared(
    suite: Suite, *results: PointResult | Failed, trained: Summary | None = None
) -> Compared:
    """The comparison of the only published number; training was finished, unless it is said."""
    done = trained or learned(1.0, 1.0, 1.0)
    (only,) = compare_published(suite, [point_of(suite)], results, lambda _: done)
    return only


def test_a_number_as_close_as_the_table_asks_agrees() -> None:
    found = compared(suite_of(within=0.1), result_of(0.96))
    assert found.verdict == "agrees" and found.measured == pytest.approx(0.95)
    assert (found.right, found.replicas, found.reference) == (0, 1, "A paper")
    assert compared(suite_of(within=0.01), result_of(0.96, 0.96, 0.96)).verdict != "agrees"


@pytest.mark.parametrize("of", ["selected", "best", "median", "mean"])
@pytest.mark.parametrize("measure", ["accuracy", "prefixes"])
def test_too_few_test_words_decide_nothing_whatever_is_measured(measure: str, of: str) -> None:
    """A range that the words leave open has numbers that agree, and others that do not."""
    for accuracy, words, verdict in [
        (0.96, 1000, "not comparable"),
        (0.96, 100_000, "agrees"),
        (0.94, 1000, "not comparable"),
        (0.94, 100_000, "differs"),
        (1.0, 50, "not comparable"),
        (1.0, 100, "agrees"),
    ]:
        rows = tuple(row_of(accuracy, replica, words=words) for replica in range(3))
        result = replace(result_of(*[accuracy] * 3), rows=rows, curves=(), selected=rows[0])
        suite = suite_of(of=of, measure=measure, minutes={"seeds": 3})
        found = compared(suite, result)
        assert found.verdict == verdict, (accuracy, words, found.why)
        if verdict == "not comparable":
            assert f"{words:,} test words do not tell them apart: 95 % interval" in found.why


def test_a_success_of_few_replicas_is_not_told_from_another() -> None:
    suite = suite_of(measure="success", values={"LSTM": {"mod 5": 0.5}})
    found = compared(suite, replace(result_of(), replicas=4, success=0.5))
    assert found.verdict == "not comparable" and "4 replicas do not tell" in found.why
    found = compared(suite, replace(result_of(), replicas=2000, success=0.5))
    assert found.verdict == "agrees"


def test_a_number_near_the_end_of_what_agrees_takes_three_seeds() -> None:
    for accuracy, verdict in [(0.98, "agrees"), (0.92, "differs")]:
        rows = tuple(row_of(accuracy, replica, words=100_000) for replica in range(3))
        result = replace(result_of(*[accuracy] * 3), rows=rows, curves=(), selected=rows[0])
        alone = compared(suite_of(minutes={"seeds": 1}, measure="accuracy"), result)
        assert alone.verdict == "not comparable"
        assert (
            alone.why
            == "0.03 from where agreeing ends, and 1 seed was run, of 3 that it takes there"
        )
        assert (
            compared(suite_of(minutes={"seeds": 3}, measure="accuracy"), result).verdict == verdict
        )
    exact = compared(suite_of(minutes={"seeds": 1}), result_of(1.0))
    far = compared(suite_of(minutes={"seeds": 1}), result_of(0.5))
    assert (exact.verdict, far.verdict) == ("agrees", "differs")


def test_a_number_that_differs_names_what_was_trained_otherwise() -> None:
    minutes = {"loss": "squared-error", "finish": "exact"}
    found = compared(suite_of(minutes=minutes), result_of(0.5))
    assert found.verdict == "differs"
    assert "below" in found.why and "1 % of the paper's training words" in found.why
    assert "loss squared-error for cross-entropy" in found.why
    assert "finish exact for none" in found.why


def test_a_model_that_does_better_than_published_differs_however_short_its_training() -> None:
    suite = suite_of(values={"LSTM": {"mod 5": 0.1}})
    found = compared(suite, result_of(0.6), trained=learned(0.7))
    assert found.verdict == "differs" and "above" in found.why


def test_a_failure_of_unfinished_training_is_not_comparable_even_where_the_paper_failed() -> None:
    for published in (1.0, 0.0):
        suite = suite_of(values={"LSTM": {"mod 5": published}})
        found = compared(suite, result_of(0.2), trained=learned(0.62))
        assert found.verdict == "not comparable"
        assert (
            found.why
            == "training was not finished: 0.62 of words of its lengths right; it saw 1 % of the "
            "paper's training words"
        )
    finished = compared(suite, result_of(0.2), trained=learned(0.99))
    assert finished.verdict == "agrees"


def test_fewer_words_than_the_papers_are_never_100_percent_of_them() -> None:
    result = replace(result_of(0.2), steps=99_600)  # of the paper's 100,000
    found = compared(suite_of(), result, trained=learned(0.62))
    assert found.why.endswith("it saw 99 % of the paper's training words")


def test_words_that_the_paper_does_not_count_are_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(PROTOCOLS["bilinear-paper"]), "unknown", ("steps",))
    suite = suite_of(minutes={"steps": 200_000})
    unfinished = compared(suite, replace(result_of(0.2), steps=200_000), trained=learned(0.62))
    assert unfinished.verdict == "not comparable"
    assert unfinished.why.endswith("; how many words the paper trained on is not known")
    finished = compared(suite_of(), result_of(0.2))
    assert finished.verdict == "differs" and "training words" not in finished.why
    assert "lrs" in departures_from_paper(suite, [point_of(suite)])
    assert "steps" not in departures_from_paper(suite, [point_of(suite)])


def test_a_failure_with_as_many_words_as_the_paper_agrees_with_its_failure() -> None:
    suite = suite_of(values={"LSTM": {"mod 5": 0.0}}, minutes={"steps": 100_000})
    result = replace(result_of(0.2), steps=100_000)
    assert compared(suite, result, trained=learned(0.62)).verdict == "agrees"


def test_a_failure_that_theory_predicts_is_impossible_and_no_agreement() -> None:
    suite = suite_of(row={"model": "mamba", "layers": 2}, values={"LSTM": {"mod 5": 0.01}})
    for trained in (learned(0.4), learned(1.0)):
        found = compared(suite, result_of(0.2), trained=trained)
        assert found.verdict == "impossible" and "cycle through states" in found.why
    short = suite_of(row={"model": "mamba"}, values={"LSTM": {"mod 5": 0.0}}, lengths=[10])
    result = result_of(0.2, others=[row_of(0.2, length=10)])
    assert compared(short, result, trained=learned(0.4)).verdict == "not comparable"
    suite = suite_of(row={"model": "mamba", "layers": 2}, values={"LSTM": {"mod 5": 0.5}})
    found = compared(suite, result_of(0.2), trained=learned(0.4))
    assert found.verdict == "not comparable" and "training words" in found.why
    suite = suite_of(row={"model": "mamba", "layers": 2})
    assert compared(suite, result_of(1.0), trained=learned(0.4)).verdict == "agrees"


def test_a_cross_is_below_the_first_length_of_the_source_and_theory_may_say_why() -> None:
    table: dict[str, Any] = {
        "measure": "horizon",
        "tested": [100, 200],
        "values": {"LSTM": {"mod 5": 0}},
    }
    short = result_of(0.2, others=[row_of(1.0, length=10), row_of(0.5, length=60)])
    assert compared(suite_of(**table), short).verdict == "agrees"
    untrained = compared(suite_of(**table), short, trained=learned(0.4))
    assert untrained.verdict == "not comparable"
    mamba = compared(suite_of(row={"model": "mamba"}, **table), short, trained=learned(0.4))
    assert mamba.verdict == "impossible"
    longer = result_of(0.2, others=[row_of(1.0, length=200), row_of(0.5, length=220)])
    assert compared(suite_of(row={"model": "mamba"}, **table), longer).verdict == "differs"


def test_a_row_that_the_source_prints_once_counts_once() -> None:
    suite = suite_of().whole
    covers = {"LSTMs": ["LSTM", "another"]}
    table = {
        "source": "T",
        "trust": "primary",
        "covers": covers,
        "values": {"LSTMs": {"mod 5": 1.0}},
    }
    suite = Suite.model_validate(
        suite.model_dump(mode="json")
        | {"models": {"LSTM": "lstm", "another": "lstm"}, "tables": [table]}
    ).within("minutes")
    points = [replace(point_of(suite), row=row) for row in ("LSTM", "another")]
    for accuracy, verdict in [(1.0, "agrees"), (0.2, "differs")]:
        results = [result_of(1.0), replace(result_of(accuracy), row="another")]
        (found,) = compare_published(suite, points, results, lambda _: learned(1.0))
        assert (found.row, found.rows, found.verdict) == ("LSTMs", ("LSTM", "another"), verdict)
        assert found.replicas == 2 and found.why.startswith(
            "LSTM:" if accuracy == 1 else "another:"
        )
    (found,) = compare_published(suite, points, results[:1], lambda _: learned(1.0))
    assert (found.verdict, found.why) == ("not comparable", "another: not measured")


def test_what_theory_says_of_models_whose_state_grows_is_about_no_length_in_particular() -> None:
    suite = suite_of(
        row={"model": "transformer", "positions": "learned"}, values={"LSTM": {"mod 5": 0.0}}
    )
    found = compared(suite, result_of(0.2), trained=learned(0.4))
    assert found.verdict == "not comparable" and "training words" in found.why


def test_solved_is_solved_whatever_validation_says() -> None:
    assert compared(suite_of(), result_of(1.0), trained=learned(0.5)).verdict == "agrees"


def test_without_the_papers_settings_a_failure_of_unfinished_training_says_nothing() -> None:
    suite = suite_of(values={"LSTM": {"mod 5": 0.0}}).whole
    suite = suite.model_copy(update={"protocol": "", "budgets": {}})
    found = compared(suite, result_of(0.2), trained=learned(0.62))
    assert found.verdict == "not comparable" and "is not known" in found.why


@pytest.mark.parametrize(
    ("minutes", "why"),
    [
        ({"supervision": "last"}, "labels after the last symbol only, there after every symbol"),
        ({"train_length": "2-8"}, "trained on lengths 2-8 for 2-10"),
        ({"train_length": "2-11"}, "trained on lengths 2-11 for 2-10"),
    ],
    ids=str,
)
def test_another_question_is_not_comparable_even_with_the_same_number(
    minutes: dict[str, Any], why: str
) -> None:
    found = compared(suite_of(minutes=minutes), result_of(1.0))
    assert (found.verdict, found.why) == ("not comparable", why)


def test_with_a_label_after_every_symbol_shorter_words_are_no_other_question() -> None:
    found = compared(suite_of(minutes={"train_length": "1-10"}), result_of(1.0))
    assert found.verdict == "agrees"


def test_labels_after_every_symbol_for_the_last_are_another_training_alone() -> None:
    def of_last(measure: str) -> Suite:
        suite = suite_of(minutes={"supervision": "every"}, measure=measure)
        paper = suite.whole.model_copy(update={"settings": {"supervision": "last"}})
        suite._file = paper
        return suite

    assert compared(of_last("accuracy"), result_of(1.0)).verdict == "agrees"
    below = compared(of_last("scaled"), result_of(0.6))
    labels = "labels after every symbol, there after the last symbol only"
    assert below.verdict == "differs" and f"trained with {labels}" in below.why
    whole_words = compared(of_last("prefixes"), result_of(1.0))
    assert (whole_words.verdict, whole_words.why) == ("not comparable", labels)


def test_what_a_table_is_unlike_is_not_comparable_with_its_text() -> None:
    found = compared(suite_of(unlike="they score padding too", note="of 5 runs"), result_of(1.0))
    assert (found.verdict, found.why) == ("not comparable", "they score padding too; of 5 runs")


def test_what_was_not_measured_has_no_number() -> None:
    suite = suite_of()
    missing = compared(suite)
    failed = compared(suite, Failed("LSTM", "mod 5", "somewhere", "no space left on device"))
    diverged = compared(suite, replace(result_of(), replicas=3))
    untested = compared(suite_of(lengths=[300, 500]), result_of(1.0))
    for each in (missing, failed, diverged, untested):
        assert each.measured is None and each.verdict == "not comparable"
    assert missing.why == "not measured"
    assert failed.why == "not measured: no space left on device"
    assert diverged.why == "not measured: all replicas diverged"
    assert untested.why == "not measured at length 300, 500: tested at 500"


def test_a_test_at_another_length_than_the_papers_measures_nothing() -> None:
    suite = suite_of()
    shorter = suite.model_copy(update={"length": 20})
    shorter._file = suite.whole
    found = compared(shorter, replace(result_of(), rows=(row_of(1.0, length=20),), replicas=1))
    assert found.measured is None and found.why == "not measured at length 500: tested at 20"


def test_the_mean_over_lengths_is_that_of_the_replicas_that_the_table_says() -> None:
    result = result_of(0.6, 1.0, 0.2, others=[row_of(a, r, 300) for r, a in enumerate([1, 1, 0.2])])
    for of, measured in [("selected", 0.8), ("best", 1.0), ("median", 0.8), ("mean", 2 / 3)]:
        three = {"seeds": 3}
        suite = suite_of(minutes=three, of=of, measure="accuracy", lengths=[300, 500], within=1.0)
        found = compared(suite, result)
        assert found.measured == pytest.approx(measured), of
        assert ("best of all replicas" in found.why) == (of == "best")


def test_a_replica_that_diverged_counts_as_nothing_right() -> None:
    result = replace(result_of(1.0, 1.0), replicas=4)
    suite = suite_of(minutes={"seeds": 4}, of="mean", measure="accuracy")
    assert compared(suite, result, trained=learned(1, 1, 1, 1)).measured == 0.5


def test_median_and_mean_are_of_the_seeds_at_the_selected_learning_rate() -> None:
    """Two learning rates of three seeds each; the third at the selected one diverged."""
    at_both_rates = [row_of(1.0, 0), row_of(0.9, 1)]
    at_both_rates += [replace(row_of(0.2, replica), lr=0.001) for replica in (3, 4, 5)]
    result = replace(result_of(), replicas=6, rows=tuple(at_both_rates), selected=at_both_rates[0])
    for of, measured in [("best", 1.0), ("median", 0.9), ("mean", 1.9 / 3)]:
        suite = suite_of(
            minutes={"seeds": 3, "lrs": [0.01, 0.001]}, of=of, measure="accuracy", within=0.3
        )
        found = compared(suite, result, trained=learned(1.0, 1.0, 1.0, 0.5, 0.5, 0.5))
        assert found.measured == pytest.approx(measured), of
        if of == "median":  # and what the others learned is not asked
            assert found.verdict == "agrees"


def test_prefixes_and_success_are_measures_of_their_own() -> None:
    result = result_of(1.0, 0.9)
    mean = suite_of(minutes={"seeds": 2}, measure="prefixes", of="mean")
    assert compared(mean, result).measured == 0.95
    success = compared(suite_of(measure="success"), result, trained=learned(1.0, 1.0))
    assert (success.measured, success.right, success.replicas) == (0.5, 1, 2)


def test_a_horizon_is_known_between_tested_lengths() -> None:
    others = [row_of(1.0, length=100), row_of(0.97, length=200), row_of(0.96, length=300)]
    result = result_of(0.5, others=others)
    table: dict[str, Any] = {"measure": "horizon", "threshold": 0.9, "tested": ["100-1000:100"]}

    def found(number: float, result: PointResult, **more: Any) -> Compared:
        return compared(suite_of(**{**table, **more}, values={"LSTM": {"mod 5": number}}), result)

    near = found(350, result, tested=[350, 500, 1000])
    assert (near.measured, near.lengths) == (300, ())
    assert near.why == "it lies between two tested lengths, 300 and 500"
    assert found(300, result, within=0.4).verdict == "agrees"  # 500 is the next that fails
    far = found(1000, result)
    assert far.verdict == "differs" and far.why.startswith("700 symbols below")
    right = result_of(1.0, others=others)
    assert found(1000, right).why == "tested to 500 symbols only"
    assert found(500, right, tested=[100, 500]).verdict == "agrees"
    assert found(200, right).verdict == "differs"
    few = result_of(0.5, others=[row_of(1.0, length=100), row_of(0.92, length=200, words=50)])
    assert (
        found(100, few).why == "50 test words do not tell them apart: it lies between 100 and 500"
    )


def test_a_mean_over_a_range_of_lengths_is_known_between_those_that_were_tested() -> None:
    shares = {100: 1.0, 200: 1.0, 300: 0.0, 400: 0.0, 500: 0.0}
    others = [row_of(share, length=n, words=100_000) for n, share in shares.items() if n < 500]
    last = row_of(0.0, words=100_000)
    result = replace(
        result_of(0.0, others=others), rows=(last,), curves=(*others, last), selected=last
    )
    table: dict[str, Any] = {"measure": "prefixes", "lengths": list(shares), "lengths_from": 1}
    table["minutes"] = {"seeds": 3}

    def found(number: float, **more: Any) -> Compared:
        return compared(suite_of(**{**table, **more}, values={"LSTM": {"mod 5": number}}), result)

    assert found(0.5).measured == 0.4  # as it is if the first error is at 201: at 299 it is 0.6
    assert found(0.5, within=0.12).verdict == "agrees" and found(0.8).verdict == "differs"
    assert found(0.5).why.startswith("100,000 test words at 5 lengths do not tell them apart")
    late = found(0.0, lengths=[400, 500], lengths_from=301)
    assert late.verdict == "agrees"  # at 300 none is right any more


def test_the_plain_mapping_of_published_numbers_is_a_table_too() -> None:
    suite = Suite(
        title="One model",
        models={"LSTM": "lstm"},
        tasks={"mod 5": "modular-addition"},
        length=LENGTH,
        measure="scaled",
        published={"LSTM": {"mod 5": 0.98}},
        published_trust="second-hand",
    )
    found = compared(suite, result_of(1.0))
    assert (found.source, found.trust, found.measure) == ("published", "second-hand", "scaled")
    assert found.verdict == "agrees"


def test_the_drawn_table_marks_where_numbers_were_read_and_sums_up() -> None:
    values = {"LSTM": {"mod 5": 0.375}}
    seen = compared(suite_of(trust="second-hand", of="best", values=values), result_of(1.0, 0.2))
    each = [seen, replace(seen, verdict="agrees", trust="primary"), compared(suite_of())]
    assert counts(each) == {"agrees": 1, "differs": 1, "impossible": 0, "not comparable": 1}
    assert (
        summary(each)
        == "1 agrees, 1 differs, 0 impossible, as predicted, 1 not comparable (of 3 published)"
    )
    text = verdicts_markdown(each)
    assert "| LSTM | mod 5 | Table 1 | 0.375† | best 1.00 | 1/2 | differs |" in text
    assert "| LSTM | mod 5 | Table 1 | 1.00 | - | - | not comparable | not measured |" in text
    assert "† read in a digest of the paper, not in the paper" in text and "‡" not in text
    assert text.endswith(f"In all: {summary(each)}.\n")
    shown = text_of(verdict_table(each), width=160)
    assert "not measured" in shown and "0.375†" in shown
    assert verdicts_markdown([]) == ""


def test_a_page_says_what_was_done_and_pages_are_summed_up() -> None:
    suite = suite_of(trust="second-hand", reference="Someone & others 2025, arXiv:1234.5678")
    results = [result_of(1.0, 0.2)]
    points = [point_of(suite)]
    found = compare_published(suite, points, results, lambda _: learned(1.0, 1.0))
    page = reproduction_page(
        suite,
        command="statetrack reproduce one --budget minutes",
        points=points,
        results=results,
        compared=found,
        machine=lambda _: "a processor",
    )
    assert page.startswith("# One model\n")
    for text in (
        "$ statetrack reproduce one --budget minutes",
        "1 of 1 points were measured, 2 replicas in all.",
        "took 1 s, added up, on a processor.",
        "| mod 5 | LSTM | 1.00 | 1.00 | 1.00 0.20 |",
        "Otherwise than in A paper: fewer steps",
        r"| LSTM | 1.00 1/2 \[1.00†\] |",
        "† read in a digest of the paper, not in the paper",
        r"Verdicts on Someone \& others 2025, arXiv:1234.5678: 1 agrees, 0 differ, 0 impossible",
    ):
        assert text in page, text
    pages = {"one.md": (suite.title, found)}
    index = with_totals("# All\n<!-- totals -->\nold\n<!-- /totals -->\nend\n", pages)
    assert f"Of all pages: {summary(found)}." in index
    assert "| [One model](one.md) | 1 | 0 | 0 | 0 | 1 |" in index and "old" not in index
    assert index.endswith("end\n") and with_totals(index, pages) == index


def test_a_failed_point_is_named_on_the_page() -> None:
    suite = suite_of()
    failed = [Failed("LSTM", "mod 5", "somewhere", "no space left on device")]
    points = [point_of(suite)]
    found = compare_published(suite, points, failed)
    page = reproduction_page(suite, command="x", points=points, results=failed, compared=found)
    assert "0 of 1 points were measured" in page
    assert "- LSTM, mod 5: no space left on device" in page
    assert (
        "0 agree, 0 differ, 0 impossible, as predicted, 1 not comparable (of 1 published)" in page
    )


def representation(*planes: Plane) -> Representation:
    return Representation(
        symbols=("0", "1", "2"),
        width=4,
        affine=False,
        read=True,
        dimension=4,
        strengths=(),
        spread=0.0,
        next_strength=0.0,
        growth=(1.0,),
        spectra=(),
        planes=planes,
        planes_are="the model's own",
        modulus=3,
        unit=1,
        commutators=None,
        homomorphism=None,
        groups=(),
        groups_are="",
        complete=True,
        seconds=1.0,
    )


def test_the_harmonics_that_are_read_stand_beside_every_replicas_accuracy() -> None:
    turn = 2 * math.pi / 3
    plane = Plane(
        dimension=2,
        weight=0.9,
        angles=(0.0, turn, -turn),
        moduli=(1.0, 1.0, 1.0),
        harmonic=1.0,
        integer=1,
        deviation=2e-5,
    )
    unread = replace(plane, weight=0.005, harmonic=0.4)
    row = EvidenceRow(
        replica=0,
        seed=100,
        lr=0.01,
        selected=True,
        task="a task",
        version="1",
        found="now",
        weights=None,
        evidence=representation(unread, plane),
    )
    text = harmonics_markdown([result_of(1.0)], lambda _: [row])
    assert "| LSTM | mod 5 | 100 | 0.01 | 1.00 (selected) | 1.000 (90 %) | 2.0e-05 |" in text
    assert "| 90 % | 0.00 | 1.00 | -1.00 |" in text and "0.400" not in text
    assert harmonics_markdown([result_of(1.0)], lambda _: []) == ""
