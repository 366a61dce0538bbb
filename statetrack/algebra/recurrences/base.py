"""What every class of recurrence is, and what several rules share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from statetrack.algebra.prediction import Answer, Need, Prediction, Size, Witness
from statetrack.errors import SettingsError

if TYPE_CHECKING:
    from statetrack.algebra.analysis import Algebra
    from statetrack.algebra.monoid_facts import Subgroup

Additive = Literal["none", "constant", "input"]
"""The term that is added to the state at every step: none, a constant, or one per symbol."""
BILINEAR = "Ebrahimi and Memisevic 2025, arXiv:2505.21749"
NEGATIVE = "Grazzi et al. 2024, arXiv:2411.12537"
CONSTANT_DEPTH = (
    "Merrill and Sabharwal 2023, arXiv:2207.00729; "
    "Merrill, Petty and Sabharwal 2024, arXiv:2404.08819"
)
CASCADE = "Krohn and Rhodes 1965, doi:10.1090/S0002-9947-1965-0188316-1"
OWN = "own, see statetrack.algebra.recurrences"
NO_RULE = "no rule for this recurrence"
FIXED_PRECISION = "Li and Cotterell 2025, arXiv:2505.23623"


class Recurrence(abc.ABC):
    """The class that the recurrence of a model's layers belongs to, with its parameters.

    `equation` is the step of a layer, and `rule` what it can track, each in one line;
    docs/recurrences.md lists them. Raises `SettingsError` for a size that is a bare number: which
    setting gives it is then unknown.
    """

    equation: ClassVar[str] = ""
    rule: ClassVar[str] = ""

    def __post_init__(self) -> None:
        assert is_dataclass(self)
        for field in fields(self):
            value = getattr(self, field.name)
            if str(field.type).split(" | ")[0] == "Size" and isinstance(value, int):
                raise SettingsError(
                    f"{type(self).__name__}({field.name}={value}): the setting that gives a size "
                    f"has to be named: {field.name}=Size('hidden', self.hidden), for one"
                )

    @property
    def has_state(self) -> bool:
        """Whether there is a recurrent state of fixed size; attention has none."""
        return True

    @abc.abstractmethod
    def predict(self, algebra: Algebra) -> Prediction:
        """Whether such a recurrence can track the task that an algebra is of, and what it takes."""


class LinearRecurrence(Recurrence):
    """A recurrence whose next state is an affine function of the state, for given inputs."""

    @property
    @abc.abstractmethod
    def structure(self) -> str:
        """What multiplies the state."""

    @property
    @abc.abstractmethod
    def eigenvalues(self) -> str:
        """Where the eigenvalues of what multiplies the state lie.

        An interval of real numbers such as `(0, 1)`, or `modulus 1`, `modulus <= 1` or another
        bound, `any`.
        """


def robustness(algebra: Algebra) -> Answer:
    """Whether an affine recurrence keeps states apart for ever under small disturbances: no, or ?

    No, where some word maps two states that labels distinguish each to itself. Let f be the affine
    map of that word, and let it map two disjoint compact sets, one around each of the two states,
    each into its own interior. Then f is a contraction to a single point, which would lie in both
    sets (Dankowiakowski and Ronca 2025, Theorem 3, for a symbol; Chung, Choi and Kim 2026,
    arXiv:2605.07755, Theorem 1, for a word).
    """
    return "no" if algebra.machine.holds_two_states else "unknown"


def refused(algebra: Algebra, theorem: str, source: str, witness: Witness | None) -> Prediction:
    """No, with words that show it."""
    return Prediction("no", theorem, source, robust=robustness(algebra), witness=witness)


def granted(
    algebra: Algebra, theorem: str, source: str, *needs: Need, margin: float | None = None
) -> Prediction:
    """Yes, with the settings that have to be large enough."""
    return Prediction("yes", theorem, source, needs, robust=robustness(algebra), margin=margin)


def undecided(algebra: Algebra, why: str = "no rule decides it") -> Prediction:
    """Unknown, but for robustness."""
    return Prediction("unknown", why, OWN, robust=robustness(algebra))


@dataclass(frozen=True, kw_only=True)
class Undecided(Recurrence):
    """A recurrence without a rule, not linear in the state; or attention (`state=False`)."""

    equation: ClassVar[str] = (
        "any step that is not linear in the state; or `state=False`: attention, without a "
        "recurrent state"
    )
    rule: ClassVar[str] = "nothing is predicted: there is no rule"

    state: bool = True

    @property
    def has_state(self) -> bool:
        """As it was said."""
        return self.state

    def predict(self, algebra: Algebra) -> Prediction:
        """Unknown."""
        return Prediction("unknown", NO_RULE, OWN)


@dataclass(frozen=True, kw_only=True)
class UndecidedLinear(LinearRecurrence):
    """A recurrence that is linear in the state, with any transition."""

    equation: ClassVar[str] = "h_t = A_t h_{t-1} + b_t, with any A_t"
    rule: ClassVar[str] = "nothing is predicted but that states are not robust: there is no rule"

    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Unknown, but for robustness."""
        return undecided(algebra, NO_RULE)


def visible_groups(algebra: Algebra) -> Sequence[Subgroup]:
    """The groups in the monoid whose elements labels distinguish, without the trivial ones."""
    subgroups = algebra.monoid.subgroups if algebra.monoid else ()
    return [group for group in subgroups if group.seen and group.order > 1]


def beyond_tc0(algebra: Algebra) -> Prediction | None:
    """No, for a group that is not solvable, where a model is in TC0, unless TC0 = NC1."""
    for group in visible_groups(algebra):
        if not group.solvable:
            return Prediction(
                "no",
                f"the group {group.name} is not solvable, so the task is NC1-complete, and the "
                "model is in TC0 at its constant depth and logarithmic precision: impossible "
                "unless TC0 = NC1",
                CONSTANT_DEPTH,
                witness=algebra.witnesses.group(group),
            )
    return None


def settling(algebra: Algebra, why: str, source: str) -> Prediction | None:
    """No, where states settle under the powers of every word and some word's powers cycle.

    An element of order n > 1 of a group that labels distinguish is a word whose powers go through
    n states, any two of which some further word tells apart; a symbol that cycles is such a word.
    `why` says what makes the states of the recurrence settle.
    """
    groups = visible_groups(algebra)
    if not groups and not algebra.machine.a_symbol_cycles:
        return None
    cycling = f"the group {groups[0].name}: a word's powers" if groups else "a symbol's powers"
    theorem = f"{cycling} cycle through states with different labels, while {why}"
    return refused(algebra, theorem, source, algebra.witnesses.powers())


def cascade(
    algebra: Algebra,
    layers: Size,
    allowed: Callable[[Subgroup], bool],
    what: str,
    source: str,
    least: int | None = None,
) -> Prediction:
    """Yes, where every group in the monoid is one that a layer can represent, or layers can.

    A cascade of resets and groups does every such monoid. One layer does a reset with any number of
    values; how many layers a cascade takes is known here only where all symbols are resets.
    `least` is a number of layers below which no model does it.
    """
    if algebra.monoid is None or not all(map(allowed, algebra.monoid.subgroups)):
        return undecided(algebra)
    return granted(
        algebra,
        f"all groups in the monoid are {what}: a cascade of resets and groups, with a layer or "
        "more for each factor",
        source if source == CASCADE else f"{source}; {CASCADE}",
        layers.at_least(1 if only_resets(algebra) else None, least=least),
    )


def only_resets(algebra: Algebra) -> bool:
    """Whether every symbol acts as the identity or maps all states to one."""
    identity = list(range(len(algebra.machine.delta)))
    return all(each == identity or len(set(each)) == 1 for each in algebra.machine.actions.tolist())


def is_trivial(group: Subgroup) -> bool:
    """Whether a group has one element."""
    return group.order == 1


def occurrences(algebra: Algebra, layers: Size, bos: bool = False) -> Prediction | None:
    """Yes, where no word leads back to a state that was left and repeating a symbol does nothing.

    States are one here where they answer alike from the next symbol on: the last one is seen.
    A layer can take the average of 1 over the positions read so far, its own included, at which the
    layers below say 1, or of 0 if there are none: the operator *once* of temporal logic. A way
    through the states is a list of symbols, each of which leaves a state; layers say of longer and
    longer ways whether they were gone. With a token before the word (`bos`), whose average with
    such positions tells one of them from more, they say it of the positions before their own, and
    a symbol that is repeated may lead on (docs/proofs.md, *Occurrences*).
    """
    repeating = any((each[each] != each).any() for each in algebra.machine.actions)
    if not algebra.machine.partially_ordered_in_place or (repeating and not bos):
        return None
    twice = "" if repeating else ", and reading a symbol twice is as reading it once"
    token = " and the token before the word" if repeating else ""
    return Prediction(
        "yes",
        f"no word leads back to a state that was left, but for what the last symbol tells{twice}: "
        "layers that say whether something has occurred before, by averages over the positions "
        f"where it did{token}",
        f"{OWN}; {FIXED_PRECISION}",
        (layers.at_least(None),),
    )
