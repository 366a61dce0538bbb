"""Modular arithmetic with brackets: the value of a fully bracketed expression, modulo m."""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Booleans, Unsigned, smallest_type
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.randomness import one_of
from statetrack.sources.sampler import Sampler


@KINDS.register("modular-arithmetic-with-brackets")
def modular_arithmetic_with_brackets(
    *,
    m: Annotated[int, argument("the modulus: digits and values are 0 to m-1", min=2, max=50)],
    multiplication: Annotated[
        bool, argument("whether `*` may stand between expressions, beside `+` and `-`")
    ],
) -> Sampler:
    """The value of a bracketed expression, modulo m, asked for after its last symbol.

    Expressions are `d`, `-d`, `(d)`, `(-d)` and `(L op R)` for a digit d and expressions L and R;
    the minus before a digit is the same symbol as that between expressions. Every drawn word is
    one expression: of length 1 to 4 the form above with so many symbols, of length T >= 5 the
    split `(L op R)` whose left part has 1 to T - 4 symbols, evenly. Digits and operators are drawn
    evenly. No beginning of an expression is an expression itself but for the whole, so a word has
    one label; one that is no expression has none.

    Depth is bounded by length alone, so the language is not regular. Delétang et al. 2022, arXiv
    2207.02098; Grazzi et al. 2024, arXiv 2411.12537, who ask after a closing `=`, and whose code
    was published first without multiplication, later with it.
    """
    return _BracketedArithmetic(m, multiplication)


_CLOSE: Final = -1
_OPERATOR: Final = -2
"""What is still to be written, where it is not an expression (which goes by its length)."""

_FIRST, _DIGIT, _BRACKET, _SECOND, _BOTH = range(5)
"""How far the reader is inside a pair of brackets: it awaits the first operand, has one that is a
digit or one in brackets, awaits the second operand, or has both."""


class _BracketedArithmetic(Sampler):
    """Symbols are the digits, then the operators, then the two brackets."""

    def __init__(self, modulus: int, multiplication: bool) -> None:
        operators = "+-*" if multiplication else "+-"
        self.labels = tuple(map(str, range(modulus)))
        self.symbols = (*self.labels, *operators, "(", ")")
        self._modulus = modulus
        self._num_operators = len(operators)
        self._minus = modulus + 1
        self._open = modulus + len(operators)
        self._close = self._open + 1

    def num_bits(self, longest: int) -> int:
        """One for each symbol: it picks a digit, an operator or where to split."""
        return longest

    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Expressions of exactly the given lengths, written from left to right.

        A stack holds what is still to be written.
        """
        rows = np.arange(len(lengths))
        stack = np.zeros((len(lengths), longest + 4), np.int64)
        stack[:, 0] = lengths
        top = np.ones(len(lengths), np.int64)
        words = np.zeros((len(lengths), longest), smallest_type(self.num_symbols))
        for time in range(longest):
            top = np.maximum(top - 1, 0)
            item = np.where(time < lengths, stack[rows, top], 0)
            chosen = bits[:, time]
            digit, operator = one_of(self._modulus, chosen), one_of(self._num_operators, chosen)
            words[:, time] = np.select(
                [item == 1, item == 2, item == _OPERATOR, item == _CLOSE, item >= 3],
                [digit, self._minus, self._modulus + operator, self._close, self._open],
            )
            left = 1 + one_of(np.maximum(item - 4, 0), chosen)
            split, alone, signed = item >= 5, (item == 3) | (item == 4), item == 2
            for chosen_rows, pushed in (
                (signed, (np.ones_like(item),)),
                (alone, (np.full_like(item, _CLOSE), item - 2)),
                (split, (np.full_like(item, _CLOSE), item - 3 - left)),
                (split, (np.full_like(item, _OPERATOR), left)),
            ):
                for what in pushed:
                    stack[rows[chosen_rows], top[chosen_rows]] = what[chosen_rows]
                    top += chosen_rows
        return words

    def read(self, words: npt.ArrayLike) -> tuple[Unsigned, Booleans]:
        """The value of every prefix that is an expression; no label is asked for after others."""
        given = np.asarray(words)
        flat = given.reshape(-1, given.shape[-1])
        values = np.zeros(flat.shape, smallest_type(self.num_labels))
        scored = np.zeros(flat.shape, bool)
        reader = _BracketReader(*flat.shape, self._modulus)
        for time, symbol in enumerate(flat.T.astype(np.int64)):
            is_operator = (symbol >= self._modulus) & (symbol < self._open)
            reader.read(
                digit=np.where(symbol < self._modulus, symbol, -1),
                operator=np.where(is_operator, symbol - self._modulus, -1),
                opens=symbol == self._open,
                closes=symbol == self._close,
            )
            scored[:, time] = reader.complete
            values[:, time] = np.where(reader.complete, reader.value[:, 0], 0)
        return values.reshape(given.shape), scored.reshape(given.shape)


class _BracketReader:
    """Evaluates many words at once, symbol by symbol, with a place on a stack for each bracket."""

    def __init__(self, num_words: int, longest: int, modulus: int) -> None:
        self._rows = np.arange(num_words)
        self._modulus = modulus
        self._depth = np.zeros(num_words, np.int64)
        self._negative = np.zeros(num_words, bool)  # a minus waits for its digit
        self._broken = np.zeros(num_words, bool)
        self._stage = np.full((num_words, longest + 1), _FIRST, np.int8)
        self._operator = np.zeros((num_words, longest + 1), np.int8)
        self.value = np.zeros((num_words, longest + 1), np.int16)

    @property
    def complete(self) -> Booleans:
        """Whether each word so far is an expression, `[N]`; its value is then `value[:, 0]`."""
        operand = (self._stage[:, 0] == _DIGIT) | (self._stage[:, 0] == _BRACKET)
        done: Booleans = operand & (self._depth == 0) & ~self._broken
        return done

    def read(
        self,
        *,
        digit: npt.NDArray[np.int64],
        operator: npt.NDArray[np.int64],
        opens: Booleans,
        closes: Booleans,
    ) -> None:
        """Take the next symbol of each word; `digit` and `operator` are -1 where it is neither."""
        here = (self._rows, self._depth)
        stage = self._stage[here]
        awaiting = (stage == _FIRST) | (stage == _SECOND)
        is_digit = (digit >= 0) & awaiting
        signs = (operator == 1) & awaiting & ~self._negative
        joins = (operator >= 0) & (self._depth > 0) & ((stage == _DIGIT) | (stage == _BRACKET))
        opens = opens & awaiting & ~self._negative
        closes = closes & (self._depth > 0) & ((stage == _DIGIT) | (stage == _BOTH))
        self._broken |= ~(is_digit | signs | joins | opens | closes)

        closed = self.value[here]
        self._operator[here] = np.where(joins, operator, self._operator[here])
        self._stage[here] = np.where(joins, _SECOND, stage)
        self._depth += opens
        inner = (self._rows[opens], self._depth[opens])
        self._stage[inner] = _FIRST
        self._depth -= closes
        signed = np.where(self._negative, -digit, digit)
        self._take_operand(np.where(closes, closed, signed), is_digit | closes, closes)
        self._negative = signs

    def _take_operand(
        self, operand: npt.NDArray[np.int64], there: Booleans, bracketed: Booleans
    ) -> None:
        """Join an operand, in the words that have one, to what stands before it."""
        here = (self._rows[there], self._depth[there])
        new, old = operand[there], self.value[here].astype(np.int64)
        joined = np.choose(self._operator[here], [old + new, old - new, old * new])
        first = self._stage[here] == _FIRST
        self.value[here] = np.where(first, new, joined) % self._modulus
        alone = np.where(bracketed[there], _BRACKET, _DIGIT)
        self._stage[here] = np.where(first, alone, _BOTH)
