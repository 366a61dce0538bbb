"""A kind of evidence is one file: searched for, kept, read, printed and drawn by its place."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from statetrack.cli.app import run as command
from statetrack.evidence import EVIDENCE, kinds, kinds_of
from statetrack.report import make_report
from statetrack.runs import Run
from tests.setups import parity_run

KIND = '''
"""How many numbers the state has."""

from dataclasses import dataclass
from typing import ClassVar

from statetrack.evidence import EVIDENCE, Grid, Evidence, Facts


@EVIDENCE.register("state-size")
@dataclass(frozen=True, kw_only=True)
class StateSize(Evidence):
    """The numbers of a state, and a length up to which it is said to prove something."""

    kind: ClassVar[str] = "state-size"
    commands = ("certify", "probe")
    place = 6.5
    share = 0.1

    numbers: int
    proven: int

    @staticmethod
    def search(subject, *, budget, seed=0):
        """The numbers that the state of one word has."""
        numbers = subject.vectors(subject.first(1)).shape[1]
        return StateSize(numbers=numbers, proven=1, complete=True, seconds=0.0)

    @property
    def proves(self):
        """A length."""
        return self.proven

    @property
    def summary(self):
        """What was found."""
        return f"{self.numbers} numbers"

    def lines(self, names):
        """A line, facts and a table."""
        table = Grid(("label", "states"), [(each, "1") for each in names.labels])
        return [self.summary, Facts([("state", "small")]), table]

    def figures(self, of):
        """A bar."""
        yield "state-size", lambda: self.figure(of)

    def figure(self, of):
        """One bar, as high as there are numbers."""
        from matplotlib.figure import Figure

        figure = Figure()
        figure.subplots().bar([0], [self.numbers])
        figure.suptitle(of)
        return figure
'''


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run, beside a kind of evidence that is one more file in the folder of kinds."""
    folder = tmp_path / "kinds"
    folder.mkdir()
    (folder / "state_size.py").write_text(textwrap.dedent(KIND))
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    monkeypatch.setattr(
        kinds.__spec__, "submodule_search_locations", [*kinds.__path__], raising=True
    )
    monkeypatch.setattr(EVIDENCE, "_found", None)
    monkeypatch.setattr(EVIDENCE, "_things", dict(EVIDENCE._things))
    monkeypatch.setattr(EVIDENCE, "_homes", dict(EVIDENCE._homes))
    monkeypatch.setitem(sys.modules, "statetrack.evidence.kinds.state_size", None)
    monkeypatch.delitem(sys.modules, "statetrack.evidence.kinds.state_size")
    return parity_run(tmp_path / "run")


def test_a_kind_is_searched_kept_printed_shown_and_drawn_by_being_a_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [kind.kind for kind in kinds_of("probe")].count("state-size") == 1
    plot = tmp_path / "figures"
    assert command(["probe", str(run), "--only", "state-size", "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "state-size\n2 numbers\n  state  small\n" in printed and "label" in printed
    assert (plot / "state-size.svg").stat().st_size > 0
    (row,) = Run.open(run).evidence()
    assert (row.kind, getattr(row.evidence, "numbers", None)) == ("state-size", 2)
    line = make_report(run).to_dicts()[0]  # what it alone proves
    assert (line["proven"], line["proven_length"]) == ("to length", 1)
    assert command(["certify", str(run), "--seconds", "0.1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["replicas"]
    assert found["evidence"]["state-size"]["numbers"] == 2
    assert command(["show", str(run)]) == 0
    assert "state-size" in (shown := capsys.readouterr().out) and "2 numbers" in shown
    report = tmp_path / "report.json"
    assert command(["report", str(run), "--out", str(report)]) == 0
    kept = json.loads(report.read_text())
    assert "state-size" in json.dumps(kept)


def test_rows_are_read_and_said_without_torch_and_numpy() -> None:
    """`show RUN` and `report` of thousands of rows start as fast as without any."""
    code = (
        "import sys; from statetrack.evidence import EVIDENCE; dict(EVIDENCE); "
        "print([name for name in ('torch', 'numpy', 'matplotlib', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
