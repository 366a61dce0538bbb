"""Budgets of searches: work decides what is found, whatever the clock says."""

import itertools
import time
from dataclasses import replace

import pytest
import torch

import statetrack as st
from statetrack.evidence import SearchBudget, Subject, kinds_of
from statetrack.evidence.budget import LIMIT, reading
from tests.computing import Computes

PARITY = st.load_task("parity").automaton
KINDS = {kind.kind: kind for command in ("certify", "probe") for kind in kinds_of(command)}


def trained_a_little():
    torch.manual_seed(0)
    return st.make_model("rnn", "parity", hidden=8)


def linear():
    torch.manual_seed(0)
    return st.make_model("bilinear", "modular-addition:m=3", hidden=4)


def busy(monkeypatch, rate):
    """Let every clock go on by `rate` seconds whenever it is read."""
    for name in ("monotonic", "perf_counter", "thread_time", "process_time", "time"):
        ticks = itertools.count()
        monkeypatch.setattr(time, name, lambda ticks=ticks: rate * next(ticks))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [trained_a_little, linear])
def test_a_busy_machine_finds_what_a_quiet_one_does(kind, make, monkeypatch):
    task = "parity" if make is trained_a_little else "modular-addition:m=3"

    def found():
        try:
            row = KINDS[kind].search(Subject(make(), task), budget=SearchBudget(0.1), seed=1)
        except st.StatetrackError as refused:
            return str(refused)
        return replace(row, seconds=0.0)

    quiet = found()
    busy(monkeypatch, 1e-6)
    fast = found()
    busy(monkeypatch, 1e-3)
    assert quiet == fast == found()


def test_a_budget_ends_by_the_work_that_is_done_and_not_before():
    budget = SearchBudget(2.0)
    part = budget.part(0.5)
    budget.use(0.75)
    assert (part.left, budget.left) == (0.25, 1.25)
    budget.use(0.5, symbols=7)
    assert part.spent and not budget.spent and budget.symbols == 7
    assert budget.at_least(3.0).left == 3.0 and not budget.limited


def test_what_is_read_is_counted_by_the_sizes_of_the_model():
    subject, budget = Subject(trained_a_little(), "parity"), SearchBudget(9.0)
    subject.counts_for(budget)
    subject.scan(torch.zeros(5, 20, dtype=torch.int64), subject.first(5))
    weights = sum(each.numel() for each in subject.model.parameters())
    assert budget.work == pytest.approx(reading(5, 20, weights, 8)) and budget.symbols == 100
    wide = subject.in_precision(torch.float64)
    wide.first_errors(torch.zeros(1, 30, dtype=torch.int64).numpy())
    assert budget.symbols == 130


def test_a_model_that_is_too_slow_ends_the_search_and_the_row_says_so(monkeypatch):
    subject = Subject(Computes(PARITY), "parity")
    busy(monkeypatch, LIMIT / 2)
    row = KINDS["worst-case"].search(subject, budget=SearchBudget(1.0))
    assert row.limited and not row.complete
    assert "CPU time" in row.summary


def test_a_row_has_its_budget_and_the_work_that_was_done():
    row = KINDS["exhaustive"].search(Subject(Computes(PARITY), "parity"), budget=SearchBudget(3.0))
    assert row.budget == 3.0 and 0 < row.work < 3.0 and not row.limited
