"""What depends on which symbols have occurred, and on which of them came before others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import OWN

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra

FIXED_PRECISION = "Li and Cotterell 2025, arXiv:2505.23623"


def occurrences(algebra: Algebra, layers: Size) -> Prediction | None:
    """Yes, where no word leads back to a state that was left and repeating a symbol does nothing.

    A layer can then take the average of 1 over the positions read so far, its own included, at
    which the layers below say 1, or of 0 if there are none: weights that do not see the others
    are at the closed end of their range. That is the operator *once* of temporal logic. Let the
    states be partially ordered, and let reading a symbol twice be as reading it once. A way through
    the states is a list of symbols, each of which leaves a state. Let w be such a way, which ends
    in q, and let done(w) say that it was gone. For every symbol b that leaves q let

        seen(w b) = once(b is read, and done(w))
        done(w b) = once(b is read, and done(w), and not seen(w c) for another c that leaves q).

    The symbol that led to q does not leave it, or reading it twice would, so `b is read, and
    done(w)` holds only after w. At the first symbol that leaves q, no other has been seen; and
    where b is read and no other has been seen, b was the first. So done(w b) is right by induction,
    and the state is the end of the longest way that was gone. MLPs compute `and` and `not`.
    """
    if not (algebra.machine.partially_ordered and _repeating_does_nothing(algebra)):
        return None
    return Prediction(
        "yes",
        "no word leads back to a state that was left, and reading a symbol twice is as reading it "
        "once: layers that say whether something has occurred before, by averages over the "
        "positions where it did",
        f"{OWN}; {FIXED_PRECISION}",
        (layers.at_least(None),),
    )


def _repeating_does_nothing(algebra: Algebra) -> bool:
    """Whether every symbol's action equals its own square."""
    return all(bool((each[each] == each).all()) for each in algebra.machine.actions)
