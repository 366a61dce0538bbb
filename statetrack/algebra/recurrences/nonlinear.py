"""Recurrences that are not linear in the state, and attention, which is no recurrence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from statetrack.algebra.prediction import Generalisation, Prediction, Size
from statetrack.algebra.recurrences.base import (
    CASCADE,
    FIXED_PRECISION,
    NO_RULE,
    OWN,
    Recurrence,
    beyond_tc0,
    cascade,
    is_trivial,
    occurrences,
    settling,
)
from statetrack.algebra.recurrences.gains import IN_ORDER

if TYPE_CHECKING:
    from statetrack.algebra.analysis import Algebra

COUNTED = "Huang et al. 2025, arXiv:2410.02140; Yang et al. 2026, arXiv:2608.13433"
UNCOUNTED = "Yang et al. 2026, arXiv:2608.13433"
SHORTCUTS = "Liu et al. 2022, arXiv:2210.10749"
ADDED = ("learned", "sinusoidal")
"""Positions that are added to the embeddings of symbols; others enter scores alone."""
SATURATION = "Omlin and Giles 1996, doi:10.1145/235809.235811"


@dataclass(frozen=True, kw_only=True)
class Saturating(Recurrence):
    """Units with a saturating activation, such as tanh.

    `units` is the setting that gives their number, and `groups` into how many groups that do not
    read each other they are divided; one group does the task. `beside` is the number of units in
    that group that carry the symbol, or hold what the first state does not. `multiplied` says that
    every symbol has a matrix of its own, which multiplies the units (second-order networks).

    Of second-order networks a unit for each state is enough. Let h be 1 for the state and -1 for
    all others, T(x) the table of moves of a symbol, and g a gain: tanh(g (2 T(x) (1 + h) / 2 - 1))
    is again near 1 for the next state alone. Where symbols are added to the units, none of them is
    a function of state and symbol alone, and a unit is for a pair of a state and an action.
    """

    equation: ClassVar[str] = "h_t = f(x_t, h_{t-1}), with units that saturate, such as tanh"
    rule: ClassVar[str] = (
        "every automaton, robustly: a unit for each pair of a state and a symbol's action, or"
        " for each state where symbols have matrices of their own"
    )

    units: Size
    groups: int = 1
    beside: int = 0
    multiplied: bool = False

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton: a unit for each state; or for each state and action, and for the start."""
        if self.multiplied:
            enough = algebra.num_states
            why = (
                "one unit for each state, saturated in it, which a symbol's matrix leads to others"
            )
        else:
            enough = algebra.num_states * len(algebra.machine.actions) + 1
            why = (
                "one unit for each pair of a state and a symbol's action, saturated where that "
                "symbol was just read in that state"
            )
        return Prediction(
            "yes",
            f"{why}; saturation removes small errors",
            SATURATION,
            (self.units.at_least((enough + self.beside) * self.groups),),
            robust="yes",
        )


@dataclass(frozen=True, kw_only=True)
class Clamped(Recurrence):
    """A stack of layers whose coordinates are each clamped between two bounds (MinMax).

    The maps of one coordinate are the identity, constants, and h -> max(min(r, h), s), which do not
    decrease in h: *Order* says that a stack computes star-free languages only. A coordinate whose
    bounds are equal is reset, one whose bounds are far apart is unchanged; by Krohn and Rhodes
    (1965), a cascade of resets does every aperiodic monoid.
    """

    equation: ClassVar[str] = "h_t = max(min(r(x_t), h_{t-1}), s(x_t))"
    rule: ClassVar[str] = (
        "star-free tasks, all of them in some number of layers; no group, in any number"
    )

    layers: Size

    def predict(self, algebra: Algebra) -> Prediction:
        """Aperiodic monoids."""
        why = IN_ORDER.replace("with a gain of 0 or more", "clamped between two bounds")
        return settling(algebra, why, OWN) or cascade(
            algebra, self.layers, is_trivial, "trivial", CASCADE
        )


@dataclass(frozen=True, kw_only=True)
class Attention(Recurrence):
    """Softmax attention of constant depth: there is no recurrent state.

    What such a model remembers grows with the word. One set of weights has to do for words of every
    length; its attention weights may be at the closed ends of their range. Without positions and at
    fixed precision, sums over positions count them up to a threshold only, so the answer depends on
    the last symbol, which is seen, and on which symbols came before which: no word leads back to a
    state that was left, where states are one that answer alike from the next symbol on. In Li and
    Cotterell (2025) a position does not attend to itself, here it does, so that a symbol that is
    repeated changes nothing: all positions of a word of one symbol have the same numbers. So
    without a token before the word not all of these tasks can be tracked, but those of
    `occurrences` can; with one, all can.

    That last observation holds wherever positions enter scores alone, as all but vectors that are
    added to the embeddings do: rotary ones, ALiBi's, PaTH's reflections. A softmax is an average,
    and averages of equal vectors are that vector, whatever the scores: so words of one symbol alone
    have one answer at all lengths. `bos` says that every word begins with a token of its own; then
    they need not.
    """

    equation: ClassVar[str] = "y_t = sum_{s <= t} softmax(q_t k_s) v_s, in a fixed number of layers"
    rule: ClassVar[str] = (
        "no group that is not solvable, unless TC0 = NC1; without positions, what depends on "
        "the last symbol and on which symbols came before which; beside it, whether what is "
        "learned generalises in length"
    )

    layers: Size
    positions: str
    """none, learned or sinusoidal (added to embeddings); rotary, alibi or path (in scores)."""
    longest: int | None = None
    """The longest word that can be read at all; None where there is no such bound."""
    has_mlp: bool = True
    bos: bool = False
    """Whether a token that is no symbol of the task stands before every word."""

    @property
    def has_state(self) -> bool:
        """No: it grows with the word."""
        return False

    def predict(self, algebra: Algebra) -> Prediction:
        """Tasks in TC0 at most; and whether what is learned on short words holds on longer ones."""
        tracks = self._tracks(algebra)
        if self.positions == "path":  # of which neither source is
            return tracks
        return replace(tracks, generalises=self._generalises(algebra))

    def _generalises(self, algebra: Algebra) -> Generalisation:
        """Whether labels are in C-RASP, where they are asked for at the last symbol."""
        if self.longest is not None:
            return Generalisation(
                "no",
                f"words of more than {self.longest:,} symbols cannot be read: positions are "
                "learned",
                OWN,
            )
        if no := self._of_one_symbol(algebra):
            why = "no weights are right on all words of one symbol"
            return Generalisation("no", why, OWN, no.witness)
        counted = algebra.c_rasp_in_place
        if counted is None:
            return Generalisation(
                "unknown", "whether labels are in C-RASP was not worked out", COUNTED
            )
        if counted and self._begins_unmarked:
            return Generalisation(
                "unknown",
                "labels are in C-RASP, which decides it where a token stands before every word, or "
                "positions are added to the embeddings; here neither holds",
                COUNTED,
            )
        if counted:
            return Generalisation(
                "yes",
                "labels are in C-RASP: balanced counters tell all states apart, and under the "
                "idealised training of Huang et al. weights chosen on short words are right on all",
                COUNTED,
            )
        beside = (
            ""
            if self.positions == "none"
            else "; positions could help with what is periodic or near (Huang et al. 2025), which "
            "GPT-2 was not seen to learn"
        )
        return Generalisation(
            "no",
            "labels are not in C-RASP: no balanced counter tells some states apart, and trained "
            f"transformers hold such states at lengths of training only{beside}",
            UNCOUNTED,
            algebra.witnesses.uncounted,
        )

    @property
    def _begins_unmarked(self) -> bool:
        """Whether nothing tells the first position from others that read the same symbol."""
        return not self.bos and self.positions not in ADDED

    def _of_one_symbol(self, algebra: Algebra) -> Prediction | None:
        """No, where the answers to words of one symbol alone differ, and have to be equal."""
        if not self._begins_unmarked or not (witness := algebra.witnesses.repeat):
            return None
        return Prediction(
            "no",
            "labels of words of one symbol alone differ, and their answers are equal: softmax "
            "averages equal vectors where positions enter scores alone and no token stands before "
            "the word (`bos` puts one there)",
            OWN,
            witness=witness,
        )

    def _tracks(self, algebra: Algebra) -> Prediction:
        if self.positions != "path" and (no := beyond_tc0(algebra)):
            return no
        if no := self._of_one_symbol(algebra):
            return no
        if self.positions == "path":
            return Prediction("unknown", NO_RULE, OWN)
        if self.longest is not None:
            why = (
                f"words of more than {self.longest:,} symbols cannot be read: positions are learned"
            )
            return Prediction("no", why, OWN)
        if self.positions == "none":
            if self.has_mlp and (found := occurrences(algebra, self.layers, self.bos)):
                return found
            if witness := algebra.witnesses.comes_back:
                return Prediction(
                    "no",
                    "some word leads back to a state that was left, as labels after a further "
                    "symbol show: beyond attention without positions at fixed precision",
                    FIXED_PRECISION,
                    witness=witness,
                )
        return Prediction(
            "unknown",
            "no rule decides it for weights that do for every length T; with weights that depend "
            "on T, constant depth does solvable automata, and depth O(log T) all",
            SHORTCUTS,
        )
