"""Figures of a probe: which there are, that they say what they show, and how refusals read."""

from __future__ import annotations

import builtins
import re
from pathlib import Path

import pytest

from statetrack.cli.app import run as command
from statetrack.evidence import SearchBudget, Subject, find_error_control
from statetrack.evidence.learned_operators import find_representation
from statetrack.pictures import draw_evidence
from tests.test_pictures import texts
from tests.test_probe_command import run_of
from tests.test_representation import counter, found, model_of_parts

TASK = "modular-addition:m=5"

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def errors():
    given = {"length": 24, "noise_length": 2, "noise_sizes": (0.1,)}
    return find_error_control(Subject(counter(5, [1]), TASK), budget=SearchBudget(60), **given)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with a run of two replicas."""
    folder = tmp_path_factory.mktemp("runs")
    run_of(folder / "run", counter(5, [1, 2]), counter(5, [2, 1]))
    return folder


@pytest.fixture
def beside_the_run(runs, monkeypatch):
    monkeypatch.chdir(runs)


def test_of_a_counter_there_are_four_figures_that_say_what_they_show(tmp_path, errors):
    counting = find_representation(Subject(counter(5, [1, 2]), TASK), budget=SearchBudget(60))
    written = draw_evidence([counting, errors], tmp_path / "new", ".svg", "bilinear on addition")
    names = ["eigenvalues", "harmonics", "characters", "error-control"]
    assert [path.stem for path in written] == names
    for path in written:
        said = " ".join(texts(path))
        assert "bilinear on addition" in said
    harmonics = texts(tmp_path / "new" / "harmonics.svg")
    assert "harmonic: angle of symbol 1 / (2π/m)" in harmonics
    characters = " ".join(texts(tmp_path / "new" / "characters.svg"))
    assert "they add up to 4 of 4 dimensions" in characters
    assert "threshold" in " ".join(texts(tmp_path / "new" / "error-control.svg"))


def test_of_a_group_that_does_not_commute_there_are_no_planes_to_draw():
    representation = found(model_of_parts("s3", (2,)), "s3")
    drawings = [name for name, _ in representation.figures("s3")]
    assert drawings == ["eigenvalues", "characters"]


def test_the_same_figures_have_the_same_bytes(tmp_path, errors):
    one, two = (draw_evidence([errors], tmp_path / name, ".png", "it") for name in "ab")
    assert one[0].read_bytes() == two[0].read_bytes()


def test_probe_plots_into_a_folder(beside_the_run, capsys):
    assert command("probe run --all --only representation --plot figures".split()) == 0
    said = re.findall(r"^figure: (.*)$", capsys.readouterr().out, re.M)
    assert said == [
        f"figures/replica-{replica}/{name}.svg"
        for replica in (0, 1)
        for name in ("eigenvalues", "harmonics", "characters")
    ]
    assert all(Path(name).stat().st_size > 1000 for name in said)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--plot", "figures", "--plot-as", "bmp"], "must end in one of .svg, .png, .pdf"),
        (["--plot", "run/config.yaml"], "cannot be made"),
    ],
)
def test_figures_that_cannot_be_written_are_refused(given, complaint, beside_the_run, capsys):
    assert command(["probe", "run", "--only", "representation", *given]) == 1
    assert complaint in capsys.readouterr().err


def test_without_matplotlib_nothing_is_measured_and_the_extra_is_named(
    beside_the_run, monkeypatch, capsys
):
    imported = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return imported(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert command(["probe", "run", "--plot", "figures"]) == 1
    assert "pip install '.[plot]'" in capsys.readouterr().err
