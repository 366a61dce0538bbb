"""The machines that are held out: no cell that the law is fitted on is on any of them.

Groups, some by few generators; machines whose symbols permute few states; regular expressions; and
machines of protocols: registers, corridors, an adder, random transitions. They are trained in this
order, each with all models that can, so that what a limit of time leaves out is whole machines, in
an order that was chosen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from statetrack.report import RecordedTable
from statetrack.sweep import SUITES, Point, Suite, points_of

MACHINES = (
    "dihedral:n=5",
    "regex:(a|b)*aba",
    "random-fsm:states=4,symbols=3,seed=2",
    "cyclic:n=7",
    "regex:(ab|ba)*;words=mixed",
    "gridworld:size=4",
    "permutations:(1 2 3),(1 2)",
    "regex:(a*ba*ba*)*",
    "register:values=[a,b,c]",
    "random-permutations:states=4,symbols=2,seed=1",
    "regex:(a|b)*a(a|b)(a|b)",
    "random-fsm:states=6,symbols=2,seed=3",
    "word-problem:group=Dic3",
    "regex:(abc)*;words=mixed",
    "adder:base=3",
    "cycle-navigation:size=8",
    "regex:(a|b)*abb(a|b)*",
    "gridworld:size=7",
    "word-problem:group=F21",
    "regex:(aa|bb)*;words=mixed",
    "random-fsm:states=7,symbols=4,seed=5",
    "point:group=S4",
    "regex:(b*ab*ab*a)*b*",
    "product(parity,parity)",
    "permutations:(1 2 3 4),(1 2)",
)


def suite_of(table: RecordedTable) -> Suite:
    """The suite of a recorded map, with its recorded models, on the machines that are held out."""
    rows = {cell.row for cell in table.cells}
    suite = SUITES[table.suite]
    models = {name: given for name, given in suite.models.items() if name in rows}
    return suite.model_copy(
        update={"models": models, "tasks": {machine: machine for machine in MACHINES}}
    )


def points(suite: Suite, folder: Path = Path()) -> Sequence[Point]:
    """The points of the suite, machine by machine."""
    return points_of(suite, folder, {}, to_train=False)
