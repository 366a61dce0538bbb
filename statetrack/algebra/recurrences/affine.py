"""One layer whose next state is any affine function of the state, for every input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Answer, Need, Prediction, Size
from statetrack.algebra.recurrences.base import OWN, LinearRecurrence, robustness

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra


@dataclass(frozen=True, kw_only=True)
class Affine(LinearRecurrence):
    """A matrix and an added vector for every input, both linear in the block's input.

    The first state is 0. Let the S states be 0 for the first one and the S - 1 unit vectors for the
    others. These are the corners of a simplex, and every map of its corners is that of one affine
    map of the space; and for every corner some affine function is the largest there. So S - 1
    dimensions do any automaton. Of a group that moves its states, fewer do: the points of a
    representation, moved by minus the first one.

    Matrix and vector are linear in the embedding of the symbol, so the embeddings need as many
    dimensions as affinely independent symbols, or one for each number of matrix and vector; the
    state is added to the residual stream in H more. Without normalisation the logits are affine in
    the state.
    """

    hidden: Size
    width: Size
    gate_reads_state: bool = False
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with at most one dimension fewer than states."""
        hidden = max(algebra.num_states - 1, 1)
        why = "states as the corners of a simplex, the first one at 0; symbols as affine maps"
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.dimensions)
        if choice and choice.cost < hidden:
            hidden = choice.cost
            why = "a real representation that distinguishes the labels, its first point moved to 0"
        symbols = len(algebra.machine.actions)
        width = min(symbols - 1, hidden * (hidden + 1)) + hidden
        robust: Answer = "unknown" if self.gate_reads_state else robustness(algebra)
        needs = (self.hidden.at_least(hidden), *_unless_met(self.width.at_least(width)))
        return Prediction("yes", why, OWN, needs, robust=robust)


def _unless_met(need: Need) -> tuple[Need, ...]:
    """A need beside the one that counts most: told where the model has too little."""
    return () if need.met == "yes" else (need,)
