"""Even pairs: whether a word ends with the symbol it began with."""

from __future__ import annotations

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS


@KINDS.register("even-pairs")
def even_pairs() -> Automaton:
    """Whether the neighbours in a word of a and b differ an odd number of times.

    They do exactly where the first and the last symbol differ; the label is 1 there and 0 where
    they are the same (Delétang et al. 2022, arXiv 2207.02098). Often taken for parity, it needs
    no counting: only the first symbol has to be remembered.
    """
    return Automaton(
        [[1, 4], [1, 2], [1, 2], [3, 4], [3, 4]],
        [0, 0, 1, 1, 0],
        symbols=["a", "b"],
        states=["nothing", "a..a", "a..b", "b..a", "b..b"],
    )
