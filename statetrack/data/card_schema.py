"""What `card.json` must be, held against before anything in a dataset is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from statetrack.data.formats import FormatName
from statetrack.data.formats.filling import MOST_BYTES, Declared, file_size, one_line, reason
from statetrack.errors import DatasetError, SettingsError
from statetrack.settings import Line, LineOrEmpty, Lines, Name
from statetrack.sources import LONGEST_ALLOWED, LengthDistribution, Supervision

CARD_VERSION: Final = 1

MOST_CARD_BYTES: Final = 2**25
"""The largest `card.json`."""

_Count = Annotated[int, Field(ge=0, lt=2**53)]
_Share = Annotated[float, Field(ge=0, le=1)]
_SplitName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$")]
"""The name of a split, which names its files: no path, and nothing that a shell would read."""


class _Schema(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class ConstantAnswer(_Schema):
    """The most frequent label of a split."""

    label: Name
    share: _Share


class SplitFacts(_Schema):
    """What a card says of a split."""

    words: Annotated[_Count, Field(ge=1)]
    shortest: Annotated[int, Field(ge=1)]
    longest: Annotated[int, Field(le=LONGEST_ALLOWED)]
    symbols: _Count
    labels_asked: _Count
    label_balance: dict[str, _Share]
    constant_answer: ConstantAnswer

    @model_validator(mode="after")
    def _fit_each_other(self) -> Self:
        least, most = self.words * self.shortest, self.words * self.longest
        if not self.shortest <= self.longest or not least <= self.symbols <= most:
            raise ValueError("words, lengths and symbols do not fit each other")
        if self.labels_asked > self.symbols:
            raise ValueError("there are more labels than symbols")
        return self


class MergingShare(_Schema):
    """The share of words whose last symbols, so many, merge all states; with its interval."""

    symbols: _Count
    share: _Share
    low: _Share
    high: _Share


class MergingFacts(_Schema):
    """What a card says of how soon words merge all states of the task's machine."""

    length: _Count
    exact: bool
    words: _Count | None
    horizon: _Count | None
    between: tuple[_Count | None, _Count | None]
    symbols_for: dict[Line, _Count | None]
    shares: tuple[MergingShare, ...]
    never: Line | None
    summary: Line


class Card(_Schema):
    """A data card; docs/file-formats.md says what its keys mean."""

    card_version: Literal[1]
    made_by: Line
    task: Name
    title: LineOrEmpty
    reference: LineOrEmpty
    version: int
    seed: int
    supervision: Supervision
    words: Line = "task"
    train_length: str
    distinct: bool
    format: FormatName
    command: LineOrEmpty
    symbols: Annotated[tuple[Name, ...], Field(min_length=1)]
    labels: Annotated[tuple[Name, ...], Field(min_length=1)]
    merging: MergingFacts | None = None
    splits: Annotated[dict[_SplitName, SplitFacts], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    document: Lines

    @field_validator("train_length")
    @classmethod
    def _is_a_length(cls, text: str) -> str:
        try:
            LengthDistribution.parse(text)
        except SettingsError as problem:
            raise ValueError(str(problem)) from None
        return text

    def declared(self) -> dict[str, Declared]:
        """What the readers hold each split against."""
        widest = LengthDistribution.parse(self.train_length).longest
        return {
            name: Declared(
                facts.words,
                facts.shortest,
                facts.longest,
                max(facts.longest, widest),
                facts.symbols,
                facts.labels_asked,
                len(self.symbols),
                len(self.labels),
            )
            for name, facts in self.splits.items()
        }


class _Version(BaseModel):
    """What is read first of a card: the version of its format."""

    card_version: Any = None
    made_by: Any = None


def read_card(folder: Path) -> Card:
    """The card of a dataset's folder.

    Raises `DatasetError` where there is none, it is not a card, or the words that it declares take
    more memory than `MOST_BYTES`.
    """
    path = folder / "card.json"
    try:
        missing = not path.exists()
    except (OSError, ValueError):
        missing = True
    if missing:
        raise DatasetError(
            f"{one_line(folder)}: is no dataset, for it has no card.json: give a folder that "
            "`statetrack gen` wrote"
        )
    size = file_size(path)
    if size > MOST_CARD_BYTES:
        raise DatasetError(f"{path}: has {size:,} bytes, a card at most {MOST_CARD_BYTES:,}")
    try:
        text = path.read_bytes()
    except OSError as problem:
        raise DatasetError(f"{path}: cannot be read: {reason(problem)}") from None
    card = parse_card(text, path)
    total = sum(declared.bytes_held for declared in card.declared().values())
    if total > MOST_BYTES:
        raise DatasetError(
            f"{folder}: its words take {total / 1e9:,.1f} GB of memory, more than the "
            f"{MOST_BYTES / 1e9:,.1f} GB that are read at most: read the files in its folder "
            "`data` piece by piece"
        )
    return card


def parse_card(text: bytes | str, path: Path) -> Card:
    """The card that a text is; `path` opens the message.

    Raises `DatasetError` where it is none.
    """
    _check_version(text, path)
    try:
        return Card.model_validate_json(text)
    except ValidationError as invalid:
        raise DatasetError(f"{path}: is not the card of a dataset: {_first(invalid)}") from None


def _check_version(text: bytes | str, path: Path) -> None:
    try:
        found = _Version.model_validate_json(text)
    except ValidationError as invalid:
        raise DatasetError(f"{path}: is not the card of a dataset: {_first(invalid)}") from None
    if found.card_version is None:
        raise DatasetError(f"{path}: is not the card of a dataset: 'card_version' is missing")
    if type(found.card_version) is not int or found.card_version != CARD_VERSION:
        raise DatasetError(
            f"{path}: was written by another version of statetrack ({one_line(found.made_by)})"
        )


def _first(invalid: ValidationError) -> str:
    """The first mistake as one line: the key, and what is wrong with its value."""
    first = invalid.errors(include_url=False, include_input=False, include_context=False)[0]
    place = one_line(".".join(str(part) for part in first["loc"]))
    message = one_line(first["msg"].removeprefix("Value error, "))
    return f"'{place}': {message}" if first["loc"] else message
