"""One row of an atlas: what is known of one machine, as plain values that a file can keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from statetrack.algebra import Answer, ComplexityClass
from statetrack.runs import read_row


@dataclass(frozen=True)
class GroupRow:
    """A group that words of a machine make; `count` is on how many sets of states."""

    name: str
    order: int
    solvable: bool
    count: int = 1


@dataclass(frozen=True)
class WitnessRow:
    """Words that show a group, by the names of symbols and states: see `algebra.Witness`."""

    words: tuple[tuple[str, ...], ...]
    states: tuple[str, ...]
    access: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergingRow:
    """After how many symbols all states have merged, by the share of words that do so.

    Each is the least length at which that share has; None where there is none, or none was found.
    """

    half: int | None
    most: int | None
    """Nine words in ten."""
    nearly_all: int | None
    """99 words in 100: the merging horizon."""
    exact: bool
    never: bool = False
    """Whether no length has that share, since there are states that no word merges."""


@dataclass(frozen=True)
class AnswerRow:
    """What a class of models can do: at some size, and with the settings that the model has."""

    can: Answer
    as_set: Answer
    size_of: str | None = None
    size: int | None = None


@dataclass(frozen=True, kw_only=True)
class MachineRow:
    """What is known of one machine; None stands for what was not worked out.

    `given_states` are those of the file, `states` those that a model has to tell apart.
    `complexity` is the class of its labels. `groups` come largest first, and are all that words
    make. `seconds` are of the processor. `error` says in one line why the file cannot be read, and
    `stopped` what was being worked out when the time or the memory ended; both are empty else. A
    row that has both met a mistake of the program there.
    """

    name: str
    family: str
    given_states: int | None = None
    states: int | None = None
    inputs: int | None = None
    outputs: int | None = None
    aperiodic: bool | None = None
    solvable: bool | None = None
    groups: tuple[GroupRow, ...] | None = None
    complexity: ComplexityClass | None = None
    witness: WitnessRow | None = None
    merging: MergingRow | None = None
    answers: Mapping[str, AnswerRow] = field(default_factory=dict)
    seconds: float = 0.0
    error: str = ""
    stopped: str = ""

    @property
    def largest(self) -> GroupRow | None:
        """The largest group; None where there is none, or none is known."""
        return self.groups[0] if self.groups else None

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> MachineRow:
        """The row that `to_json` gave; raises `RunError` as `read_row` does."""
        return read_row(cls, content, where)
