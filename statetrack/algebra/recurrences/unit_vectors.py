"""One layer with restricted matrices, among which are the transition matrices of any automaton."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import OWN, LinearRecurrence, robustness

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra


@dataclass(frozen=True, kw_only=True)
class TransitionMatrices(LinearRecurrence):
    """Matrices that can be those of any symbol of an automaton, with a coordinate for each state.

    States are unit vectors, and the matrix of a symbol has a 1 in each column, in the row of the
    state that the column's state goes to.

    With `from_zero` the first state is 0 and every step adds a function B(x) of its input. One
    more coordinate, the constant c, makes up for both: the row of c is 0 and B(x) adds 1 to it, so
    c = 1 after the first symbol. B(x) also adds the unit vector of the state that x leads to from
    the start, and the column of c has -1 in that row: it takes the addition back at every step but
    the first, at which c was still 0.

    `dictionary` is the number of matrices to choose from, where they are not made anew for each
    input; one is needed for each different action of a symbol.
    """

    state: Size
    from_zero: bool = False
    dictionary: Size | None = None
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton; whether fewer coordinates suffice is not said."""
        needs = [self.state.at_least(algebra.num_states + self.from_zero)]
        if self.dictionary is not None:
            actions = {tuple(each) for each in algebra.machine.actions.tolist()}
            needs.append(self.dictionary.at_least(len(actions)))
        return Prediction(
            "yes",
            "states as unit vectors, symbols as their transition matrices",
            OWN,
            tuple(needs),
            robust=robustness(algebra),
        )
