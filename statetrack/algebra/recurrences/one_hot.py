"""Operators with one number in every column: a map of coordinates, times a gain for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import LinearRecurrence, beyond_tc0, robustness
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
    """

    state: Size
    dictionary: Size
    layers: Size
    structure: str = "one-hot columns x diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with one coordinate for each state and a matrix for each action."""
        robust = robustness(algebra)
        actions = len(algebra.machine.actions)
        if self.dictionary.value == 1 and actions > 1:
            found = ComplexLayers(layers=self.layers).predict(algebra)
            if found.can == "no":
                found = beyond_tc0(algebra) or replace(found, can="unknown")
            why = f"a dictionary of one matrix leaves complex gains: {found.theorem}"
            return replace(found, theorem=why, robust=robust)
        matrices = self.dictionary.at_least(actions)
        beside = () if matrices.met == "yes" else (matrices,)
        return Prediction(
            "yes",
            "one layer whose states are unit vectors simulates any automaton, with a matrix of the "
            "dictionary for each action of a symbol",
            "Terzic et al. 2025, arXiv:2509.22284",
            (self.state.at_least(algebra.num_states), *beside),
            robust=robust,
        )
