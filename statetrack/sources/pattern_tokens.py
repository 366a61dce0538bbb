r"""The tokens of a pattern: symbols, signs that join them, and brackets, each with its position.

A pattern is refused here for what its text alone shows; what depends on the places of tokens among
each other is `patterns`'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NoReturn

from statetrack.errors import TaskError, nearest
from statetrack.text import shortened, visible

MOST_LETTERS: Final = 10_000
"""Letters of a pattern."""

MOST_SYMBOLS: Final = 256
"""Symbols of an alphabet."""

WIDEST_RANGE: Final = 1_000
"""Letters between the two of a range such as `[a-z]`."""

MOST_TIMES: Final = 10**6
"""The greatest number that `{...}` is read with; far fewer copies fit into an automaton."""

Kind = Literal["symbol", "open", "close", "or", "and", "repeat", "anchor"]


@dataclass(frozen=True)
class SymbolChoice:
    """Some symbols of an alphabet: these names, ranges and classes, or all others."""

    names: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()
    """Letters of classes: `d` for digits, `D` for all others, `w`, `W`, `s`, `S`."""
    negated: bool = False

    def named(self) -> Iterator[str]:
        """The symbols that it names, those of ranges included."""
        yield from self.names
        for first, last in self.ranges:
            yield from map(chr, range(ord(first), ord(last) + 1))

    def among(self, alphabet: Sequence[str]) -> int:
        """The symbols of an alphabet that it stands for, as bits: 1 for the first, 2, 4, ..."""
        return sum(
            1 << place
            for place, symbol in enumerate(alphabet)
            if self._has(symbol) is not self.negated
        )

    def _has(self, symbol: str) -> bool:
        return (
            symbol in self.names
            or any(len(symbol) == 1 and low <= symbol <= high for low, high in self.ranges)
            or any(re.fullmatch(rf"\{letter}", symbol) for letter in self.classes)
        )


@dataclass(frozen=True)
class Token:
    """A piece of a pattern: its text, and where it begins, counted from 1."""

    kind: Kind
    text: str
    position: int
    choice: SymbolChoice = SymbolChoice()
    least: int = 0
    most: int | None = None
    """How often a `repeat` repeats; None for any number."""

    def refuse(self, why: str) -> NoReturn:
        """Raises `TaskError` about it."""
        refuse(self.text, self.position, why)


def refuse(text: str, position: int, why: str) -> NoReturn:
    """Raises `TaskError` about a piece of a pattern that stands at a position."""
    raise TaskError(f"pattern: '{visible(shortened(text))}' at position {position}: {why}")


def read(pattern: str, alphabet: Sequence[str] | None) -> list[Token]:
    """The tokens of a pattern. Without an alphabet its symbols are those that it names.

    Raises `TaskError` for what is no pattern, or has more than `MOST_LETTERS` letters.
    """
    if len(pattern) > MOST_LETTERS:
        raise TaskError(f"pattern: it has {len(pattern):,} letters, the most is {MOST_LETTERS:,}")
    if alphabet is None:
        spaced = len(pattern.split()) > 1
    else:
        spaced = any(len(symbol) > 1 for symbol in alphabet)
    return _PatternReader(pattern, spaced, alphabet).tokens()


def alphabet_of(tokens: Sequence[Token]) -> tuple[str, ...]:
    """The symbols that tokens name, in order.

    Raises `TaskError` where they name none, and where some stand for others than they name.
    """
    for token in tokens:
        if token.kind == "symbol" and (token.choice.negated or token.choice.classes):
            token.refuse("it stands for symbols of the alphabet: say which there are (`alphabet`)")
    found = {name for token in tokens for name in token.choice.named()}
    if not found:
        raise TaskError("alphabet: the pattern names no symbol: say which symbols there are")
    return tuple(sorted(found))


_SIGNS: Final = frozenset("()[]{}|*+?.^$&\\")
"""Letters that stand for themselves only behind a backslash."""

_CLASSES: Final = "dDwWsS"
_ANCHORS: Final = "AZz"

_BACKREFERENCE: Final = (
    "a backreference is not taken: what it matches is no regular language; write out the words "
    "that may be repeated"
)
_BY_NUMBER: Final = "write the character itself"
_CONTROL: Final = "such a character cannot be the name of a symbol"
_ESCAPES: Final = {
    **dict.fromkeys("123456789gk", _BACKREFERENCE),
    **dict.fromkeys("xuUNo", _BY_NUMBER),
    **dict.fromkeys("0aefnrtv", _CONTROL),
    **dict.fromkeys("bB", "a word boundary is not taken: a word is matched whole, so leave it out"),
    **dict.fromkeys("pPX", "a class of Unicode is not taken: write the symbols, as in [abc]"),
    **dict.fromkeys("QE", "quoting is not taken: write a backslash before each sign"),
    **dict.fromkeys("GK", "it is about where a search begins: a word is matched whole"),
}
"""Why an escape is not taken."""

_GROUPS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"\(\?=",
        "a lookahead is not taken: words that begin with A and match B are (A.*)&(B)",
    ),
    (r"\(\?!", "a negative lookahead is not taken: write what may follow instead, as in [^ab]"),
    (r"\(\?<=", "a lookbehind is not taken: words that match A and end with B are (A)&(.*B)"),
    (r"\(\?<!", "a negative lookbehind is not taken: write what may stand before, as in [^ab]"),
    (r"\(\?>", "an atomic group is not taken: write (...), or list the words that it matches"),
    (r"\(\?#", "a comment is not taken: leave it out"),
    (r"\(\?\(", "a condition is not taken: write the cases with |"),
    (r"\(\?P=", _BACKREFERENCE),
    (
        r"\(\?(?:R|P>|&|[-+]?[0-9])",
        "recursion is not taken: what it matches is no regular language",
    ),
    (r"\(\?\|", "a branch reset is not taken: write (...)"),
    (r"\(\?\^?[a-zA-Z]*(?:-[a-zA-Z]+)?[:)]", "a flag is not taken: for (?i) write [aA] for a"),
)
_NAMED: Final = re.compile(r"\(\?P?<[^\W\d]\w*>")
_SHUFFLE: Final = "(?shuffle:"
_TIMES: Final = re.compile(r"\{(?:([0-9]+)|([0-9]*),([0-9]*))\}")


class _PatternReader:
    """Reads a pattern from its beginning to its end."""

    def __init__(self, pattern: str, spaced: bool, alphabet: Sequence[str] | None) -> None:
        self._text = pattern
        self._spaced = spaced
        self._alphabet = None if alphabet is None else frozenset(alphabet)
        self._order = tuple(alphabet or ())
        self._at = 0

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while self._at < len(self._text):
            if self._text[self._at].isspace():
                self._at += 1
            else:
                begin = self._at
                found.append(self._token(self._text[begin], begin + 1))
        return found

    def _token(self, letter: str, position: int) -> Token:
        if letter == "(":
            return self._opening(position)
        if letter in "*+?{":
            return self._repeat(letter, position)
        if letter == "[":
            return self._choice(position)
        if letter == "\\" and self._text[self._at + 1 : self._at + 2] in (*_ANCHORS,):
            return self._piece("anchor", 2)
        if letter in "]}":
            refuse(
                letter,
                position,
                rf"nothing is open that it closes; the symbol is written \{letter}",
            )
        plain: dict[str, Kind] = {")": "close", "|": "or", "&": "and", "^": "anchor", "$": "anchor"}
        if letter in plain:
            return self._piece(plain[letter], 1)
        if letter == ".":
            return self._piece("symbol", 1, SymbolChoice(negated=True))
        return self._symbol(position)

    def _piece(self, kind: Kind, letters: int, choice: SymbolChoice = SymbolChoice()) -> Token:
        """The next letters as a token."""
        begin = self._at
        self._at += letters
        return Token(kind, self._text[begin : self._at], begin + 1, choice)

    def _opening(self, position: int) -> Token:
        rest = self._text[self._at : self._at + 80]
        if not rest.startswith("(?"):
            return self._piece("open", 1)
        named = _NAMED.match(rest)
        for opening in ("(?:", _SHUFFLE, named and named.group()):
            if opening and rest.startswith(opening):
                return self._piece("open", len(opening))
        for form, why in _GROUPS:
            if found := re.match(form, rest):
                refuse(found.group(), position, why)
        refuse(rest[:3], position, r"no group begins so; a group is (...), a symbol '?' is \?")

    def _repeat(self, letter: str, position: int) -> Token:
        least, most, length = {"*": (0, None, 1), "+": (1, None, 1), "?": (0, 1, 1)}.get(
            letter, (0, None, 0)
        )
        if letter == "{":
            found = _TIMES.match(self._text, self._at)
            if found is None or found.group() == "{,}":
                refuse(
                    self._text[self._at : self._at + 6],
                    position,
                    r"write {2}, {2,}, {,3} or {2,3}; the symbol is written \{",
                )
            exactly, low, high = (_number(part) for part in found.groups())
            least = exactly if exactly is not None else low or 0
            most = exactly if exactly is not None else high
            length = len(found.group())
            if most is not None and least > most:
                refuse(found.group(), position, "the first number is greater than the second")
        text = self._text[self._at : self._at + length]
        self._at += length
        following = self._text[self._at : self._at + 1]
        if following in ("?", "+"):
            name = {"?": "a lazy quantifier", "+": "a possessive quantifier"}[following]
            refuse(
                text + following,
                position,
                f"{name} is not taken: leave out the '{following}'"
                + (", since a word is matched whole" if following == "?" else "")
                + f"; for both signs write (...{text}){following}",
            )
        return Token("repeat", text, position, least=least, most=most)

    def _symbol(self, position: int) -> Token:
        r"""A symbol, or a class such as `\d`."""
        letters, begin = "", self._at
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "\\":
                escaped = self._text[self._at + 1 : self._at + 2]
                if escaped in (*_CLASSES,) and not letters:
                    return self._piece("symbol", 2, SymbolChoice(classes=(self._class(),)))
                if letters and escaped.isascii() and escaped.isalnum():
                    break
                letters += self._escaped()
            elif letter in _SIGNS or letter.isspace():
                break
            else:
                letters += letter
                self._at += 1
            if not self._spaced:
                break
        text = self._text[begin : self._at]
        self._check(letters, text, position)
        return Token("symbol", text, position, SymbolChoice(names=(letters,)))

    def _class(self) -> str:
        """The letter of the class that begins here."""
        text = self._text[self._at : self._at + 2]
        if self._spaced:
            refuse(
                text,
                self._at + 1,
                "it chooses among single letters, and here symbols are longer: write [one another]",
            )
        return text[1]

    def _escaped(self) -> str:
        """The letter behind a backslash, which begins here."""
        letter = self._text[self._at + 1 : self._at + 2]
        if not letter:
            refuse("\\", self._at + 1, "nothing follows the backslash; the symbol is written \\\\")
        if letter.isascii() and letter.isalnum():
            why = _ESCAPES.get(letter, f"it means nothing; the symbol is written {letter}")
            refuse(f"\\{letter}", self._at + 1, why)
        if letter.isspace():
            refuse(f"\\{letter}", self._at + 1, "a space cannot be the name of a symbol")
        self._at += 2
        return letter

    def _check(self, name: str, text: str, position: int) -> None:
        """Refuses a name that is no symbol of the alphabet."""
        if self._alphabet is None:
            if text == "ε":
                refuse(text, position, "the empty word is written (); the symbol is written \\ε")
        elif name not in self._alphabet:
            if name == "ε":
                refuse(text, position, "the empty word is written ()")
            named = shortened(" ".join(self._order), 40)
            between = ", and spaces stand between symbols" if self._spaced else ""
            hint = nearest(name, self._order) if self._spaced else ""
            refuse(text, position, f"no symbol of the alphabet, which is: {named}{between}.{hint}")

    def _choice(self, position: int) -> Token:
        """A choice in square brackets."""
        begin = self._at
        self._at += 1
        if negated := self._text.startswith("^", self._at):
            self._at += 1
        names: list[str] = []
        ranges: list[tuple[str, str]] = []
        classes: list[str] = []
        first = self._at
        while True:
            letter = self._text[self._at : self._at + 1]
            if not letter:
                refuse(
                    self._text[begin : begin + 10],
                    position,
                    r"the bracket '[' is not closed; the symbol is written \[",
                )
            if letter == "]" and self._at > first:
                break
            if letter.isspace():
                self._at += 1
                continue
            self._check_signs(letter)
            at = self._at
            name = self._member()
            if name is None:
                classes.append(self._text[at + 1])
            elif last := self._end_of_range():
                ranges.append(self._range(name, last, at))
            else:
                self._check(name, self._text[at : self._at], at + 1)
                names.append(name)
        self._at += 1
        choice = SymbolChoice(tuple(names), tuple(ranges), tuple(classes), negated)
        return Token("symbol", self._text[begin : self._at], position, choice)

    def _check_signs(self, letter: str) -> None:
        """Refuses what stands for something else in the square brackets of other dialects."""
        two = self._text[self._at : self._at + 2]
        if letter == "[":
            refuse(two, self._at + 1, r"no bracket opens inside [...]; the symbol is written \[")
        if two in ("--", "&&", "~~", "||"):
            refuse(
                two, self._at + 1, f"sets are not combined in [...]; a symbol is written \\{letter}"
            )

    def _member(self) -> str | None:
        r"""The next symbol in square brackets; None for a class such as `\d`, which is passed."""
        letters = ""
        while self._at < len(self._text):
            letter = self._text[self._at]
            if letter == "\\":
                if self._text[self._at + 1 : self._at + 2] in (*_CLASSES,) and not letters:
                    self._class()
                    self._at += 2
                    return None
                letters += self._escaped()
            elif letters and (letter in "[]" or letter.isspace()):
                break
            else:
                letters += letter
                self._at += 1
            if not self._spaced:
                break
        return letters

    def _end_of_range(self) -> str | None:
        """The last symbol of a range, if its `-` comes next, which is passed."""
        rest = self._text[self._at : self._at + 2]
        if self._spaced or len(rest) < 2 or rest[0] != "-" or rest[1] == "]" or rest == "--":
            return None
        self._at += 1
        at = self._at
        last = self._member()
        if last is None:
            refuse(self._text[at : at + 2], at + 1, "a range ends in a symbol, as in [a-z]")
        return last

    def _range(self, first: str, last: str, at: int) -> tuple[str, str]:
        text = self._text[at : self._at]
        if first > last:
            refuse(text, at + 1, "a range goes from the lower letter to the higher one")
        if ord(last) - ord(first) > WIDEST_RANGE:
            refuse(text, at + 1, f"the range has more than {WIDEST_RANGE:,} letters")
        if self._alphabet is not None and not any(
            len(symbol) == 1 and first <= symbol <= last for symbol in self._alphabet
        ):
            refuse(text, at + 1, "the alphabet has no symbol in this range")
        return first, last


def _number(digits: str | None) -> int | None:
    """The number of a group of digits; None where there are none. A larger one than any is cut."""
    if not digits:
        return None
    return int(digits) if len(digits.lstrip("0")) < len(str(MOST_TIMES)) else MOST_TIMES
