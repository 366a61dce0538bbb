"""The law of learning: its features, its fit, how it is judged, and what was said before."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from statetrack.report import RecordedTable
from statetrack.report.recorded import RecordedCell
from statetrack.spec import load_task
from tests.learning import judging, law
from tests.learning.features import FEATURES, Cell, Trained, rarest_transition
from tests.learning.machines import MACHINES, points, suite_of

MAP = Path(__file__).parents[1] / "docs/recorded/map.json"


def made(number: int, feature: float, right: int, model: str = "m") -> Trained:
    """A cell of a machine of its own, with one feature that is not 0."""
    features = (feature, *[0.0] * (len(FEATURES) - 1))
    cell = Cell(
        model=model, task=f"t{number}", recurrence="Dense", machine=f"{number}", features=features
    )
    return Trained(cell=cell, right=right, replicas=3)


@pytest.fixture(scope="module")
def trained() -> list[Trained]:
    """Twenty machines; those above 0 in the first feature are learned."""
    return [made(number, number - 9.5, 3 * (number > 9)) for number in range(20)]


def chances_of(trained: list[Trained]) -> law.Floats:
    return np.array([float(each.learned) for each in trained])


def test_the_law_finds_what_decides(trained: list[Trained]) -> None:
    cells, chances = [each.cell for each in trained], chances_of(trained)
    fitted = law.Law.fit(cells, chances)
    found = fitted.chances(cells)
    assert (np.diff(found) > 0).all() and found[0] < 0.1 and found[-1] > 0.9
    assert abs(found.mean() - chances.mean()) < 1e-3  # its constant is hardly penalised
    slope = fitted.terms(cells).T @ (chances - found) - fitted.penalties * fitted.weights
    assert np.abs(slope).max() < 1e-6  # the least penalised loss
    stranger = replace(cells[-1], model="another", recurrence="Blocks")
    assert 0.5 < fitted.chances([stranger])[0] < found[-1]


def test_left_out_cells_are_not_fitted_on(trained: list[Trained]) -> None:
    chances = chances_of(trained)
    wrong = chances.copy()
    wrong[-1] = 0.0
    assert law.left_out(trained, wrong)[-1] == pytest.approx(law.left_out(trained, chances)[-1])
    assert law.left_out(trained, wrong)[0] != pytest.approx(law.left_out(trained, chances)[0])
    every, own = law.left_out_shares(trained, chances)
    assert every[0] == pytest.approx(10 / 19) and every[-1] == pytest.approx(9 / 19)
    assert own == pytest.approx(every)  # there is one model
    ends = law.intervals(trained, chances, [trained[-1].cell])
    assert 0 < ends[0, 0] < ends[0, 1] < 1


def test_the_rarest_transition_is_that_of_drawn_words() -> None:
    task = load_task("regex:(a|b)*aba")
    drawn = task.sample(40_000, length="2-10", seed=1)
    taken = np.zeros(task.automaton.delta.shape)
    for word, scored in zip(drawn.symbols, drawn.scored, strict=True):
        state = task.automaton.start
        for symbol in word[: int(scored.sum())]:
            taken[state, symbol] += 1
            state = task.automaton.delta[state, symbol]
    assert taken.min() / len(drawn.symbols) == pytest.approx(rarest_transition(task), rel=0.05)


def judged(right: list[int], chances: list[float], base: float = 0.5) -> judging.Judged:
    """What is judged of cells of three replicas, each on a machine of its own."""
    said = [
        {
            **{"model": "m", "task": f"t{n}", "longest": 10, "cell": [p], "replica": [p]},
            **{"cell of model": base, "replica of model": base},
        }
        for n, p in enumerate(chances)
    ]
    recorded = {}
    for n, number in enumerate(right):
        rows = [
            [replica, length, 200, 200, 200 if replica < number or length == 10 else 199, 1.0, 0.5]
            for replica in range(3)
            for length in (10, 20, 500)
        ]
        about = {"steps": 1, "seconds": 1.0, "selected": 0, "chance": 0.5, "horizon": 10}
        recorded["m", f"t{n}"] = RecordedCell(
            row="m", column=f"t{n}", rows=rows, outcomes=[[0, 0.1, 1.0, 1.0, 1]] * 3, **about
        )
    content = {"said": said, "cell": {"base": base}, "replica": {"base": base}}
    return judging.Judged.of(content, recorded)


def test_scores_are_brier_scores() -> None:
    found = judged([3, 0, 2], [0.9, 0.2, 0.6])
    assert found.right.tolist() == pytest.approx([1.0, 0.0, 2 / 3])
    assert found.score("cell", "law") == pytest.approx((0.01 + 0.04 + 0.16) / 3)
    assert found.score("cell", "base") == pytest.approx(0.25)
    assert found.score("cell", "hindsight") == pytest.approx(2 / 9)
    third = 2 / 3 * 0.4**2 + 1 / 3 * 0.6**2
    assert found.score("replica", "law") == pytest.approx((0.01 + 0.04 + third) / 3)
    ratio, low, high = found.ratio("cell", "base")
    assert ratio == pytest.approx(0.07 / 0.25) and low < ratio < high
    assert found.passes


def test_a_law_that_only_beats_a_wrong_base_rate_fails() -> None:
    found = judged([3, 3, 3, 0], [0.9, 0.9, 0.9, 0.9], base=0.1)
    assert found.ratio("cell", "base")[0] < 0.5 < found.ratio("cell", "hindsight")[0]
    assert not found.passes
    assert not judged([3, 0], [0.5, 0.5]).passes


def test_a_machine_is_judged_when_all_its_models_are_trained() -> None:
    found = judged([3, 0], [0.9, 0.2, 0.6])  # the third is not trained
    assert list(found.tasks) == ["t0", "t1"]


RECORDED_SINCE = ("word-problem:group=F21",)
"""Machines that the map has got since the law was fitted on it."""


def test_what_was_said_is_about_machines_that_the_map_has_not() -> None:
    predicted = judging.read_predicted()
    assert {row["task"] for row in predicted["said"]} == set(MACHINES)
    table = RecordedTable.read(MAP)
    machines = {load_task(name).source.fingerprint(): name for name in MACHINES}
    assert len(machines) == len(MACHINES)
    names = {point.experiment.data.task for point in table.points}
    both = machines.keys() & {load_task(name).source.fingerprint() for name in names}
    assert {machines[each] for each in both} == set(RECORDED_SINCE)
    wanted = {(row["model"], row["task"]) for row in predicted["said"]}
    assert set(judging.read_recorded()) <= wanted


def test_chances_are_those_of_the_law_that_was_written_down() -> None:
    predicted = judging.read_predicted()
    told = predicted["cell"]["law"]
    fitted = law.Law(
        *(np.array(told[name]) for name in ("mean", "deviation")),
        *(tuple(told[name]) for name in ("models", "recurrences")),
        np.array(told["weights"]),
    )
    rows = {(row["model"], row["task"]): row for row in predicted["said"]}
    chosen = [
        point
        for point in points(suite_of(RecordedTable.read(MAP)))
        if (point.row, point.column) in rows and point.column in MACHINES[:4]
    ]
    cells = [cell for cell in map(Cell.of, chosen) if cell is not None]
    assert len(cells) == len(chosen) > 20
    for cell, chance in zip(cells, fitted.chances(cells), strict=True):
        row = rows[cell.model, cell.task]
        assert row["features"] == pytest.approx(cell.features, abs=1e-3)
        assert row["cell"][0] == pytest.approx(chance, abs=2e-3)
        low, high = row["cell"][1:]
        assert low <= high
    assert json.dumps(predicted["features"]) == json.dumps(FEATURES)
