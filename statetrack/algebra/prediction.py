"""A prediction: whether a class of models can track a task, what it takes, and by which theorem.

A *no* carries a witness: words that show it. Nothing here imports numpy, nor do the classes of
recurrence that are built on it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Answer = Literal["yes", "no", "unknown"]

Word = tuple[int, ...]

Kind = Literal[
    "powers", "group", "count", "order", "far order", "merge", "return", "balance", "repeat"
]
"""What words show:

- `powers`: one word w, whose powers take the states round, so that the labels after u w^n v, with u
  the access and v the suffix, repeat with a period of `order` > 1 and never settle. After some of
  these words no label may be asked for: the period is the least that the others allow.
- `group`: words that permute the states as a group of `order` elements, which labels show: after
  some suffix, two states that the group moves into each other have different labels.
- `count`: words g and e of one length. As for `powers` with w = g, while e changes none of the
  states: labels depend on how often g was read among words of its length, modulo `order`.
- `order`: words x and y, with different labels after u x y v and u y x v.
- `far order`: words e, x and y of one length, with different labels after u e x e y e v and
  u e y e x e v, where e changes nothing wherever it stands there.
- `merge`: one word x that takes two states, each with an access of its own, to one, while labels
  after the suffix tell these states apart.
- `return`: words x and y that lead from one state to the other and back: the labels after
  u (x y)^n v and u (x y)^n x v are different.
- `balance`: a word w from one state to another, and words x and y from the first back to it. Every
  counter whose sums vanish along all cycles, and which may look at what such counters told before,
  adds as much along x as along `order` readings of w and one of y: so none tells the states apart.
- `repeat`: a symbol x, and two words of x alone, the accesses, with different labels.

A suffix of `powers`, `group`, `count`, `return` and `balance` is not empty, and two states are one
there where they behave alike from the next symbol on: as the states of a Mealy machine are.
"""

SAYS: dict[Kind, str] = {
    "powers": "the labels after u w^n v repeat with period {order} and never settle",
    "count": "the labels after u g^n v repeat with period {order}, while e, as long as g, changes "
    "none of these states: labels count g among words of its length",
    "order": "the labels after u x y v and u y x v are different",
    "far order": "the labels after u e x e y e v and u e y e x e v are different, while e, as long "
    "as x and y, changes nothing",
    "merge": "x merges two states, after u and u', that v tells apart",
    "return": "x leads to another state and y back: after u (x y)^n v and u (x y)^n x v the labels "
    "are different",
    "balance": "w leads from one state to another, x and y back to the first; every counter that "
    "returns to its value on all cycles adds as much on x as on {order} w and y: none tells the "
    "states apart",
    "repeat": "u and u' are words of the symbol x alone, and their labels are different",
}
LETTERS: dict[Kind, tuple[str, ...]] = {
    "powers": ("w",),
    "count": ("g", "e"),
    "far order": ("e", "x", "y"),
    "balance": ("w", "x", "y"),
}


def period_of(labels: Sequence[Hashable | None]) -> int:
    """The least period of a sequence that goes on for ever, of which these are the first round.

    It divides the length of the round. None stands for what is not known, and may be anything.
    """
    return next(
        period
        for period in range(1, len(labels) + 1)
        if len(labels) % period == 0
        and all(len({*labels[begin::period]} - {None}) <= 1 for begin in range(period))
    )


@dataclass(frozen=True)
class Witness:
    """Words that show why a class of models cannot track a task, to be replayed on its automaton.

    States and symbols are numbers of the task's own automaton. Every word can be drawn wherever it
    is read, and every label that counts is asked for. `statetrack.algebra.replay` checks
    all that a witness says by running its words.
    """

    kind: Kind
    words: tuple[Word, ...]
    states: tuple[int, ...]
    accesses: tuple[Word, ...]
    """Words from the start to some states, the first of `states` first.

    There is one for each state that the words lead to from no earlier one.
    """
    suffixes: tuple[Word, ...]
    """Words after which labels tell states apart."""
    order: int = 2
    """The period of the labels, the order of the group, a number of readings, or 2 labels."""
    group: str = ""
    """The name of the group; empty for other kinds."""
    abelian: bool | None = None
    """Whether the group is; None for other kinds."""
    solvable: bool | None = None
    """Whether the group is; None for other kinds."""

    @property
    def access(self) -> Word:
        """A word that leads from the start to the first of the states."""
        return self.accesses[0]

    @property
    def told_accesses(self) -> dict[str, Word]:
        """The accesses that `says` speaks of, by their letters: u, and of two words u' too.

        Those to other orbits of a group are in `accesses` alone.
        """
        number = 2 if self.kind in ("merge", "repeat") else 1
        return dict(zip(("u", "u'"), self.accesses[:number], strict=False))

    @property
    def says(self) -> str:
        """One sentence that the words show, in which u is the access and v a suffix."""
        if self.kind != "group":
            return SAYS[self.kind].format(order=self.order)
        trait = "not solvable" if not self.solvable else "not abelian"
        trait = "abelian" if self.abelian else trait
        name = self.group if self.group.startswith("order ") else f"the group {self.group}"
        name = name if "order" in name else f"{name}, of order {self.order:,}, {trait}"
        return (
            f"{' and '.join(self.letters)} permute {len(self.states)} states and generate {name}; "
            "labels tell the states apart"
        )

    @property
    def letters(self) -> tuple[str, ...]:
        """The letters that stand for the words in `says`: `x`, `y`, or `x1`, `x2`, `x3` of many."""
        if self.kind in LETTERS:
            return LETTERS[self.kind]
        if len(self.words) <= 2:
            return ("x", "y")[: len(self.words)]
        return tuple(f"x{number}" for number in range(1, len(self.words) + 1))

    def to_json(self, symbols: Sequence[str], states: Sequence[str]) -> dict[str, Any]:
        """Plain values, with the names of an automaton's symbols and states."""

        def named(words: tuple[Word, ...]) -> list[list[str]]:
            return [[symbols[symbol] for symbol in word] for word in words]

        return {
            "kind": self.kind,
            "says": self.says,
            "letters": list(self.letters),
            "words": named(self.words),
            "states": [states[state] for state in self.states],
            "accesses": named(self.accesses),
            "suffixes": named(self.suffixes),
            "order": self.order,
            "group": self.group or None,
            "abelian": self.abelian,
            "solvable": self.solvable,
        }


@dataclass(frozen=True)
class Need:
    """What a setting has to be at least, such as `block_size`, and what the model has."""

    setting: str
    value: int | None
    """A value that is enough, 0 where any is; None where none is known."""
    given: int
    """The value that the model has."""
    smallest: bool = False
    """Whether no smaller value does, whatever the other settings are."""
    least: int | None = None
    """A value below which none does, whatever the other settings are; None where none is known."""

    @property
    def bounds(self) -> str:
        """Which values do, as it is printed everywhere.

        `hidden >= 5` where all from 5 on do and no other, `hidden >= 3 (5 is enough)` where none
        below 3 does, `hidden 37 is enough` where less may do too, `layers ?` where no number is
        known, `any heads` where all do.
        """
        if self.value == 0:
            return f"any {self.setting}"
        enough = f"{self.value:,} is enough" if self.value is not None else "?"
        if self.smallest:
            return f"{self.setting} >= {self.value:,}"
        if self.least is None or self.least <= 1:
            return f"{self.setting} {enough}"
        return f"{self.setting} >= {self.least:,} " + ("?" if enough == "?" else f"({enough})")

    @property
    def lack(self) -> str:
        """By how much the given value is too small, or smaller than is known to be enough.

        `block_size 2 < 3 (5 is enough)`, `block_size 1 < 2` where no other bound is known, and
        `rank 6 (60 is enough)` where 6 may be enough too.
        """
        below = self.value if self.smallest else self.least
        told = f"{self.setting} {self.given:,}"
        if below is not None and self.given < below:
            told += f" < {below:,}"
        known = self.value is not None and self.value != below
        return f"{told} ({self.value:,} is enough)" if known else told

    @property
    def met(self) -> Answer:
        """Whether the value that the model has is enough."""
        if self.value is not None and self.given >= self.value:
            return "yes"
        too_few = self.least is not None and self.given < self.least
        return "no" if too_few or self.smallest else "unknown"


@dataclass(frozen=True)
class Size:
    """A setting that gives the size of a recurrence, such as `block_size`, and its value."""

    setting: str
    value: int

    def at_least(
        self, value: int | None, smallest: bool = False, *, least: int | None = None
    ) -> Need:
        """The need for a value of this setting, of which less than `least` is known not to do."""
        smallest = value is not None and (smallest or value == least)
        return Need(self.setting, value, self.value, smallest, value if smallest else least)


@dataclass(frozen=True)
class Generalisation:
    """Whether a model that is trained on short words is expected to answer right on longer ones.

    It is another question than whether some weights track the task, and asked of causal attention
    alone: of all weights that do for the lengths of training, which ones does training find?
    """

    answer: Answer
    theorem: str
    source: str
    witness: Witness | None = None

    @property
    def reason(self) -> str:
        """The theorem with its source."""
        return f"{self.theorem} ({self.source})"

    def to_json(self) -> dict[str, Any]:
        """Plain values; the witness stands among those of the task."""
        return {"answer": self.answer, "theorem": self.theorem, "source": self.source}


@dataclass(frozen=True)
class Prediction:
    """What theory says of one class of models on one task.

    Tracking is exact: on words of every length the right label is ahead of all others by a fixed
    margin, in real arithmetic, with gains anywhere in the closure of their range. Whether training
    finds such weights is another question.
    """

    can: Answer
    """Whether it can, where every setting in `needs` is as large as it has to be."""
    theorem: str
    source: str
    needs: tuple[Need, ...] = ()
    """The settings that have to be large enough, the one that counts most first."""
    robust: Answer = "unknown"
    """Whether states stay distinguishable for ever under small disturbances of the hidden state."""
    margin: float | None = None
    """By how much the right label is ahead in the construction; None where not worked out."""
    witness: Witness | None = None
    """Words that show why not; None where the answer is another one, or rests on a size.

    A size is that of a setting in `needs`, or a longest word that can be read at all.
    """
    generalises: Generalisation | None = None
    """The second answer, for causal attention; None for other models."""

    @property
    def reason(self) -> str:
        """The theorem with its source, or why there is none, which has no source."""
        return f"{self.theorem} ({self.source})" if self.source else self.theorem

    @property
    def witnesses(self) -> tuple[Witness, ...]:
        """Those of both answers, the first answer's first."""
        longer = None if self.generalises is None else self.generalises.witness
        return tuple(each for each in (self.witness, longer) if each is not None)

    @property
    def size(self) -> int | None:
        """The value of the first setting that is enough; None where it is not known."""
        return self.needs[0].value if self.needs else None

    @property
    def size_of(self) -> str | None:
        """The name of the first setting that has to be large enough; None where none matters."""
        return self.needs[0].setting if self.needs else None

    @property
    def smallest(self) -> bool:
        """Whether no smaller size does; otherwise the size is one that a construction needs."""
        return bool(self.needs) and self.needs[0].smallest

    @property
    def unmet(self) -> tuple[Need, ...]:
        """The settings that are smaller than they have to be, or than is known to be enough."""
        return tuple(
            need
            for need in self.needs
            if need.met == "no" or (need.value is not None and need.given < need.value)
        )

    @property
    def answer(self) -> Answer:
        """Whether the model can track the task with the settings that it has."""
        if self.can != "yes":
            return self.can
        met = {need.met for need in self.needs}
        return "no" if "no" in met else "unknown" if "unknown" in met else "yes"

    def to_json(self) -> dict[str, Any]:
        """The prediction as plain values."""
        return {
            "can": self.can,
            "suffices": self.answer,
            "theorem": self.theorem,
            "source": self.source,
            "size": self.size,
            "size_of": self.size_of,
            "smallest": self.smallest,
            "needs": [asdict(need) for need in self.needs],
            "robust": self.robust,
            "margin": self.margin,
            "generalises": self.generalises and self.generalises.to_json(),
        }
