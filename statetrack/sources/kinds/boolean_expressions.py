"""Boolean expressions with the operator first: one counter says when an expression ends."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import numpy.typing as npt

from statetrack.sources.arrays import Bits, Unsigned, smallest_type
from statetrack.sources.kinds import KINDS, argument
from statetrack.sources.kinds._next_symbols import Language, WordsChoice, from_to, half
from statetrack.sources.randomness import one_of
from statetrack.sources.sampler import Sampler

OPERATORS = "~+>*^"
"""Of one operand, of two, and so on."""

NUM_CHOICES = 4
"""Random integers that concern the whole word: what it is, and how long its expression."""


@KINDS.register("boolean-expressions")
def boolean_expressions(
    *,
    operators: Annotated[
        int, argument("how many operators; the n-th takes n operands", min=1, max=len(OPERATORS))
    ] = 3,
    words: WordsChoice = "members",
) -> Sampler:
    """Boolean-n: whether an expression of truth values and operators is complete.

    The operators `~ + > * ^` take 1, 2, 3, 4 and 5 operands and come before them (Polish
    notation): `+ 0 ~ 1` is complete. Boolean-n has the first n. What an expression is worth does
    not matter: before its end any symbol is legal (label `any`), at its end none is (label `end`).

    Half of the words are complete at their last symbol; the others are cut from an expression
    that is longer by 1 to T symbols, evenly, for words of length T. With `words: mixed`, in one
    half of the words of two symbols or more an expression ends earlier, anywhere from the first
    symbol to the last but one, evenly, and symbols drawn evenly follow; the other half is as
    above. An expression of length m has operators of evenly drawn numbers of operands, as many as
    it takes for m - 1 operands in all (the last operator is trimmed to fit), and truth values for
    the rest; in which order they stand is drawn evenly among the orders that make an expression.

    Bhattamishra et al. 2020, arXiv 2009.11264; Sarrof et al. 2024, arXiv 2405.17394. They draw
    symbol by symbol until an expression is complete, and their words are whole expressions.
    """
    return _BooleanExpressions(operators, words == "mixed")


class _BooleanExpressions(Language):
    """Symbols are the truth values 0 and 1, then the operators; labels `any`, `end`, `none`."""

    def __init__(self, num_operators: int, mixed: bool) -> None:
        symbols = ("0", "1", *OPERATORS[:num_operators])
        legal = np.zeros((3, len(symbols)), bool)
        legal[0] = True
        super().__init__(symbols, ("any", "end"), legal, legal[0])
        self._num_operands = np.array([0, 0, *range(1, num_operators + 1)])
        self._mixed = mixed

    def num_bits(self, longest: int) -> int:
        """Five for each symbol, for an expression may be twice as long as its word."""
        return NUM_CHOICES + 5 * longest

    def draw(self, bits: Bits, lengths: npt.NDArray[np.int64], longest: int) -> Unsigned:
        """Complete expressions and cut ones, and where words are mixed, some that went on."""
        choices, rest = bits[:, :NUM_CHOICES], bits[:, NUM_CHOICES:]
        longer = lengths + from_to(np.ones_like(lengths), lengths, choices[:, 1])
        expression = np.where(half(choices[:, 0]), lengths, longer)
        if self._mixed:
            earlier = from_to(np.ones_like(lengths), lengths - 1, choices[:, 3])
            ends_early = half(choices[:, 2]) & (lengths > 1)
            expression = np.where(ends_early, earlier, expression)
        operands = self._expressions(rest[:, : 4 * longest], expression, longest)
        evenly = rest[:, 4 * longest :]
        symbols = np.where(operands > 0, operands + 1, one_of(2, evenly))
        after = np.arange(longest) >= expression[:, None]
        words = np.where(after, one_of(self.num_symbols, evenly), symbols)
        return words.astype(smallest_type(self.num_symbols))

    def _expressions(
        self, bits: Bits, sizes: npt.NDArray[np.int64], longest: int
    ) -> npt.NDArray[np.int64]:
        """How many operands each symbol takes: the first `longest` places of expressions.

        Any order of these numbers becomes an expression when it is turned until it begins right
        after the first lowest point of its running sum (the cycle lemma of Dvoretzky and Motzkin,
        1947), and every expression comes from equally many orders.
        """
        width = 2 * longest
        places = np.arange(width)
        operands = 1 + one_of(self.num_symbols - 2, bits[:, :width])
        before = operands.cumsum(axis=1) - operands
        wanted = sizes[:, None] - 1
        operands = np.minimum(operands, wanted - before).clip(min=0)
        keys = np.where(places < sizes[:, None], bits[:, width:].astype(np.int64), 2**32)
        operands = np.take_along_axis(operands, np.argsort(keys, axis=1, kind="stable"), axis=1)
        height = np.where(places < sizes[:, None], (operands - 1).cumsum(axis=1), width)
        begin = height.argmin(axis=1)[:, None] + 1
        return np.take_along_axis(operands, (begin + places[:longest]) % sizes[:, None], axis=1)

    def _read_legal(self, words: Unsigned) -> npt.NDArray[np.int64]:
        missing = 1 + (self._num_operands[words] - 1).cumsum(axis=1)
        labels: npt.NDArray[np.int64] = (missing == 0).astype(np.int64)
        return labels
