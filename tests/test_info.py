"""`statetrack info`: what a report of a bug needs, and no path of its author."""

import json
import re
import sys
from pathlib import Path

import pytest

from statetrack import __version__, catalogue
from statetrack.catalogue import installation
from statetrack.cli import app


def told(capsys, *words):
    assert app.run(["info", *words]) == 0
    return capsys.readouterr().out


@pytest.fixture
def named_home(monkeypatch, tmp_path):
    """A home folder with a space in its name, to which variables point."""
    home = tmp_path / "Jo Smith"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", f"{home}/code:/opt/other")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    return home


def test_info_names_versions_machine_kernels_and_variables(capsys, named_home, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    shown = told(capsys)
    about = json.loads(told(capsys, "--json"))
    assert about["statetrack"] == __version__ and about["torch"]["version"] in shown
    assert about["cpu"]["name"] in shown and about["cpu"]["usable"] >= 1
    assert about["cpu"]["capability"] in shown and about["cpu"]["threads"] >= 1
    assert about["environment"]["OMP_NUM_THREADS"] == "3" and "OMP_NUM_THREADS=3" in shown
    assert about["kernels"]["torch"] == {"available": True, "why": None}
    fla = about["kernels"]["fla"]
    assert fla["available"] is (fla["why"] is None)
    assert set(about["packages"]) <= set(shown.replace(",", " ").split())
    assert about["shipped"]["tasks"] >= 70


def test_no_path_is_shown_unless_it_is_asked_for(capsys, named_home):
    for words in ([], ["--json"]):
        shown = told(capsys, *words)
        assert "Smith" not in shown and "/opt" not in shown and "PATH" in shown
        assert not re.search(r"(?<![\w.])/\w+/", shown), shown
    places = json.loads(told(capsys, "--json", "--paths"))
    assert Path(places["paths"]["package"]).is_dir()
    assert places["environment"]["PYTHONPATH"].endswith("/opt/other")


def test_a_torch_that_cannot_be_imported_is_told_and_ends_nothing(capsys, monkeypatch, named_home):
    monkeypatch.setitem(sys.modules, "torch", None)
    shown = " ".join(told(capsys).split())
    assert "cannot be imported (ModuleNotFoundError: import of torch halted" in shown
    assert "--kernel fla cannot be used: torch cannot be imported" in shown
    assert json.loads(told(capsys, "--json"))["cpu"]["threads"] is None


def test_the_path_in_an_error_of_torch_is_left_out(monkeypatch, named_home):
    error = f"OSError: {named_home}/lib/libc10.so: cannot open shared object file"
    assert installation._without_paths(error) == "OSError: PATH: cannot open shared object file"


def test_gpus_are_told_with_memory_and_driver(capsys, monkeypatch):
    gpu = {"name": "A GPU", "memory": 80 * 2**30, "capability": "9.0"}
    found = installation.describe_installation() | {"gpus": [gpu], "driver": "570.1"}
    monkeypatch.setitem(vars(catalogue), "describe_installation", lambda paths: found)
    monkeypatch.setenv("COLUMNS", "200")
    assert "A GPU, 80.0 GiB, compute capability 9.0, driver 570.1" in told(capsys)
