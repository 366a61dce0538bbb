"""Operators with one number in every column: a map of coordinates, times a gain for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import OWN, LinearRecurrence, beyond_tc0, robustness
from statetrack.algebra.recurrences.gains import ComplexLayers

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra


@dataclass(frozen=True, kw_only=True)
class OneHotTimesDiagonal(LinearRecurrence):
    """A matrix with one-hot columns times a complex diagonal one, for every symbol (PD-SSM).

    The one-hot matrix has its ones at the largest entries of the columns of a mixture of matrices
    from a dictionary. A dictionary with a matrix for each action of a symbol gives every symbol its
    own; with one matrix alone, all symbols have the same, and what depends on the symbol is
    diagonal: with the identity, a layer of complex gains.

    With `rows`, the ones are at the largest entries of the rows and the diagonal matrix acts last.
    Where every symbol permutes the states, its permutation matrix has both forms; elsewhere a
    matrix with one-hot rows is the transpose of a map of states, so a product of them reads a word
    backwards, and no rule is known.
    """

    state: Size
    dictionary: Size
    layers: Size
    rows: bool = False
    structure: str = "one-hot columns x diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with one coordinate for each state and a matrix for each action."""
        robust = robustness(algebra)
        actions = len(algebra.machine.actions)
        if self.dictionary.value == 1 and actions > 1:
            found = ComplexLayers(layers=self.layers).predict(algebra)
            if found.can == "no":
                found = beyond_tc0(algebra) or replace(found, can="unknown", witness=None)
            why = f"a dictionary of one matrix leaves complex gains: {found.theorem}"
            return replace(found, theorem=why, robust=robust)
        if self.rows and not algebra.is_group:
            why = "matrices with one-hot rows are maps of states where symbols permute them alone"
            return Prediction("unknown", why, OWN, robust=robust)
        matrices = self.dictionary.at_least(actions)
        beside = () if matrices.met == "yes" else (matrices,)
        return Prediction(
            "yes",
            "one layer whose states are unit vectors simulates any automaton"
            + (" whose symbols permute the states" if self.rows else "")
            + ", with a matrix of the dictionary for each action of a symbol",
            "Terzic et al. 2025, arXiv:2509.22284",
            (self.state.at_least(algebra.num_states), *beside),
            robust=robust,
        )
