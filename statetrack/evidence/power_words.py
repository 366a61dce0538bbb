"""When a linear model first answers u w w w ... wrongly, predicted from the eigenvalues of A_w.

The state after u w^n is A_w^n h, with h the state after u. With A_w v_i = lambda_i v_i and
h = sum_i a_i v_i, the logits after u w^n x_1 .. x_j, where x_1 .. x_j is a *tail*, are

    C A(x_j) ... A(x_1) sum_i lambda_i^n a_i v_i

Tails are the beginnings of w, and these with one other symbol behind them: so words are looked at
that leave their period once.

so the logits at any n are one sum over modes, and the word need not be read. A mode that the right
label does not need grows against those that it does: the first n at which the right label's logit
is not the largest is the predicted failure. All arithmetic is in float64; nothing is rounded to
float32, so a mode that only rounding excites is not seen.

An additive term and a readout's bias are one more coordinate, which is always 1.

H hidden, V symbols, C labels, U prefixes, P tails, M modes, N repetitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from statetrack.errors import SettingsError
from statetrack.evidence.budget import CALL, MULTIPLICATION
from statetrack.evidence.linear_maps import affine_maps
from statetrack.evidence.records import Failure
from statetrack.evidence.subject import Subject
from statetrack.evidence.words import Periodic, Word, follow
from statetrack.models import is_linear
from statetrack.sources import Automaton

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

STEPS = 48
"""Repetitions that are read one by one before the modes are followed."""

KEPT = 0.5
"""Modes whose eigenvalue is smaller than this share of the largest have vanished by then."""

TOLERANCE = 1e-6
"""The relative error with which modes give the state; where it is larger, nothing is predicted."""

RATIO = 1.05
"""Between two numbers of repetitions that are looked at first."""

MOST_IN_A_ROW, FINER = 20_000, 64
"""Up to how many repetitions every one is looked at for the first wrong answer; of more, some."""

LONGEST_CYCLE = 64
"""Most repetitions that follow one another among these."""

MOST_TAILS = 64
"""Of more tails than these, those that end with another symbol are not looked at."""

AT_ONCE = 1 << 22
"""Most numbers of a table of modes or logits."""


@dataclass(frozen=True)
class LinearForm:
    """h_t = A(x_t) h_{t-1}, logits = C h_t, in float64, with one more coordinate where needed."""

    operators: Floats  # [V, H, H]
    first: Floats  # [H]
    readout: Floats  # [C, H]

    @classmethod
    def of(cls, subject: Subject) -> LinearForm | None:
        """That of a model whose recurrence and readout are linear; None for any other."""
        if not is_linear(subject.model):  # of others the readout is not linear
            return None
        try:
            operators, first, readout = affine_maps(subject).homogeneous
        except SettingsError:
            return None
        return None if readout is None else cls(operators, first, readout)

    def operator_of(self, word: Word) -> Floats:
        """A(x_n) ... A(x_1) of a word x_1 .. x_n: [H, H]."""
        product = np.eye(len(self.first))
        for symbol in word:
            product = self.operators[symbol] @ product
        return product

    def after(self, word: Word) -> Floats:
        """The state after a word, divided by its norm: [H]."""
        state = self.first
        for symbol in word:
            state = self.operators[symbol] @ state
            norm = np.linalg.norm(state)
            state = state / norm if np.isfinite(norm) and norm > 0 else state
        return state


@dataclass(frozen=True)
class PredictedFailure:
    """The position of the first wrong answer to a word, from 1; None: none up to `longest`.

    A `suffix` takes the place of the last symbols up to there. `known` is False where modes do not
    give the state well enough to say.
    """

    word: Periodic
    position: int | None
    known: bool
    suffix: Word = ()


def predict_failures(
    form: LinearForm, automaton: Automaton, words: Sequence[Periodic], longest: int
) -> list[PredictedFailure]:
    """The predictions for words whose periods are equal."""
    (period,) = {word.period for word in words}
    return _Power(form, automaton, period, _beginnings(period)).predict(words, longest)


def predict_failures_on_leaving(
    form: LinearForm, automaton: Automaton, words: Sequence[Periodic], longest: int
) -> list[PredictedFailure]:
    """The predictions for words with one period, where they end with a symbol that leaves it.

    None where there are too many such symbols.
    """
    (period,) = {word.period for word in words}
    tails = [
        (*period[:end], symbol)
        for end in range(len(period))
        for symbol in range(automaton.num_symbols)
        if symbol != period[end]
    ]
    if not 0 < len(tails) <= MOST_TAILS:
        return []
    return _Power(form, automaton, period, tails).predict(words, longest)


def work_of_predicting(
    form: LinearForm, automaton: Automaton, words: Sequence[Periodic], longest: int
) -> float:
    """The seconds of work of both predictions for words whose periods are equal."""
    size, length = len(form.first), len(words[0].period)
    left = length * (len(form.operators) - 1)
    rows = (length + (left if left <= MOST_TAILS else 0)) * len(form.readout)
    grid = len(_geometric(STEPS, max(STEPS + 1, longest // length)))
    grid *= min(automaton.num_states, LONGEST_CYCLE)
    each = STEPS * size * (size + rows) + grid * size * (20 + 2 * rows)
    return 2 * CALL + MULTIPLICATION * (60 * size**3 + len(words) * each)


def predict_failure(
    form: LinearForm, automaton: Automaton, failure: Failure, longest: int
) -> int | None:
    """The position at which a failing word is predicted to fail, up to `longest`; None: nowhere.

    With a suffix only answers after it count: the period is left for it after any number of
    repetitions, and as many of its symbols as in the failing word.
    """
    period, suffix = failure.period, failure.suffix
    tails = _beginnings(period)
    if suffix:
        turns = failure.position - len(failure.prefix) - len(suffix)
        tails = [period[: turns % len(period)] + suffix]
    word = Periodic(failure.prefix, period)
    (found,) = _Power(form, automaton, period, tails).predict([word], longest)
    return found.position


def _beginnings(word: Word) -> list[Word]:
    """The first symbols of a word, from one to all of them."""
    return [word[:end] for end in range(1, len(word) + 1)]


class _Power:
    """One word w, which is repeated after different prefixes."""

    def __init__(
        self, form: LinearForm, automaton: Automaton, period: Word, tails: Sequence[Word]
    ) -> None:
        self._form = form
        self._automaton = automaton
        self._period = period
        self._tails = tails
        self._product = form.operator_of(period)
        self._reads = np.stack([form.readout @ form.operator_of(tail) for tail in tails])
        self._orbits: dict[int, _AskedFor] = {}

    @np.errstate(all="ignore")  # what overflows is not finite, and says "not known"
    def predict(self, words: Sequence[Periodic], longest: int) -> list[PredictedFailure]:
        last = max(1, -(-longest // len(self._period)))  # repetitions
        states = np.stack([self._form.after(word.prefix) for word in words])  # [U, H]
        starts = [follow(self._automaton, word.prefix)[0] for word in words]
        repeats = np.arange(min(STEPS, last))
        passed = np.empty((len(repeats), *states.shape))  # [N, U, H]
        for number in repeats:
            passed[number] = states
            states = states @ self._product.T
            norms = np.sqrt(np.square(states).sum(1, keepdims=True))
            states = states / np.where(norms > 0, norms, 1.0)
        read = np.einsum("pch,nuh->unpc", self._reads, passed)
        found = [
            self._first_wrong(each, start, repeats)
            for each, start in zip(read, starts, strict=True)
        ]
        open_rows = [row for row, place in enumerate(found) if place is None]
        known = np.ones(len(words), bool)
        if open_rows and last > STEPS:
            known[open_rows] = self._follow(states, starts, open_rows, found, last)
        return [
            self._prediction(word, place, bool(sure), longest)
            for word, place, sure in zip(words, found, known, strict=True)
        ]

    def _prediction(
        self, word: Periodic, place: tuple[int, int] | None, known: bool, longest: int
    ) -> PredictedFailure:
        if place is None:
            return PredictedFailure(word, None, known)
        tail = self._tails[place[1]]
        position = len(word.prefix) + place[0] * len(self._period) + len(tail)
        if position > longest:
            return PredictedFailure(word, None, known)
        follows = tail == self._period[: len(tail)]
        return PredictedFailure(word, position, known, () if follows else tail[-1:])

    def _follow(
        self,
        states: Floats,
        starts: Sequence[int],
        rows: Sequence[int],
        found: list[tuple[int, int] | None],
        last: int,
    ) -> NDArray[np.bool_]:
        """Find the first wrong answer of some words from `STEPS` repetitions on, by modes.

        Returns whether modes give their states.
        """
        sure = np.zeros(len(rows), bool)
        if not (np.isfinite(states).all() and np.isfinite(self._product).all()):
            return sure
        values, vectors = np.linalg.eig(self._product)
        kept = np.abs(values) >= KEPT * np.abs(values).max()
        values, vectors = values[kept].astype(complex), vectors[:, kept].astype(complex)
        weights = np.linalg.lstsq(vectors, states[rows].T.astype(complex), rcond=None)[0]  # [M, U]
        errors = np.linalg.norm(vectors @ weights - states[rows].T, axis=0)
        reads = np.einsum("pch,hm->mpc", self._reads, vectors)  # [M, P, C]
        for number, row in enumerate(rows):
            if not errors[number] <= TOLERANCE:
                continue
            sure[number] = True
            modes = _Modes(values, weights[:, number], reads)
            found[row] = self._search(modes, starts[row], last)
        return sure

    def _search(self, modes: _Modes, start: int, last: int) -> tuple[int, int] | None:
        """The first wrong answer: the repetition, from 0, and the place in the period.

        What is asked for repeats after a cycle of repetitions, and the margin may differ from one
        to the next of them: all of a cycle are looked at, at distances that grow.
        """
        cycle = min(self._orbit(start).cycle, LONGEST_CYCLE)
        grid = np.unique(np.add.outer(_geometric(STEPS, last), np.arange(cycle)))
        grid = grid[grid < last]
        wrong = np.zeros(len(grid), bool)
        for begin in range(0, len(grid), modes.at_once):
            piece = slice(begin, begin + modes.at_once)
            logits = modes.logits(grid[piece] - STEPS)
            wrong[piece] = self._wrong(logits, start, grid[piece]).any(1)
        if not wrong.any():
            return None
        high = int(grid[wrong.argmax()])
        low = max(STEPS, int(high / RATIO**2) - 2 * cycle)
        while high - low > MOST_IN_A_ROW:  # so far out, the first of some is near enough
            step = (high - low) // FINER
            grid = np.add.outer(np.arange(low, high, step), np.arange(cycle)).ravel()
            some = self._wrong(modes.logits(grid - STEPS), start, grid).any(1)
            high = int(grid[some.argmax()]) if some.any() else high
            low = max(low, high - step - cycle)
        for begin in range(low, high + 1, modes.at_once):
            repeats = np.arange(begin, min(begin + modes.at_once, high + 1))
            first = self._first_wrong(modes.logits(repeats - STEPS), start, repeats)
            if first is not None:
                return first
        return None

    def _first_wrong(
        self, logits: Floats, start: int, repeats: NDArray[np.int64]
    ) -> tuple[int, int] | None:
        wrong = self._wrong(logits, start, repeats)
        if not wrong.any():
            return None
        row = int(wrong.any(1).argmax())
        return int(repeats[row]), int(wrong[row].argmax())

    def _wrong(self, logits: Floats, start: int, repeats: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether logits [N, P, C] after so many repetitions answer wrongly: [N, P]."""
        orbit = self._orbit(start)
        numbers = orbit.numbers(repeats)
        wanted = orbit.labels[numbers]  # [N, P]
        right = np.take_along_axis(logits, wanted[..., None], 2)
        others = logits.copy()
        np.put_along_axis(others, wanted[..., None], -np.inf, 2)
        wrong: NDArray[np.bool_] = ~(right[..., 0] > others.max(2)) & orbit.scored[numbers]
        return wrong

    def _orbit(self, start: int) -> _AskedFor:
        """What is asked for inside every repetition, from a state on."""
        if start not in self._orbits:
            self._orbits[start] = _AskedFor.of(self._automaton, self._period, self._tails, start)
        return self._orbits[start]


@dataclass(frozen=True)
class _AskedFor:
    """Labels after tails of repetitions: those of number `back` follow the last ones."""

    labels: NDArray[np.int64]  # [N, P]
    scored: NDArray[np.bool_]  # [N, P]: and whether the tail can be drawn there
    back: int

    @classmethod
    def of(cls, automaton: Automaton, period: Word, tails: Sequence[Word], start: int) -> _AskedFor:
        """From a state of the automaton on."""
        seen: dict[int, int] = {}
        state = start
        ends, drawn = [], []
        while state not in seen:
            seen[state] = len(seen)
            row = [follow(automaton, tail, state) for tail in tails]
            ends.append([end for end, _ in row])
            drawn.append([allowed for _, allowed in row])
            state, _ = follow(automaton, period, state)
        states = np.array(ends)
        return cls(automaton.output[states], automaton.scored[states] & drawn, seen[state])

    @property
    def cycle(self) -> int:
        """After how many repetitions the same is asked for again."""
        return len(self.labels) - self.back

    def numbers(self, repeats: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each repetition, counted from 0."""
        rows = len(self.labels)
        return np.where(
            repeats < rows, repeats, self.back + (repeats - self.back) % (rows - self.back)
        )


@dataclass(frozen=True)
class _Modes:
    """A state as a sum of modes: `weights` times `values` to the power of repetitions."""

    values: Complexes  # [M]
    weights: Complexes  # [M]
    reads: Complexes  # [M, P, C]

    @property
    def at_once(self) -> int:
        """Rows of the largest table that `logits` makes."""
        return max(1, AT_ONCE // (int(max(4 * len(self.values), 2 * self.reads[0].size)) + 1))

    def logits(self, repeats: NDArray[np.int64]) -> Floats:
        """Logits [N, P, C] after so many repetitions, each row times a positive number."""
        sizes = np.log(np.abs(self.weights) + 1e-300) + np.log(
            np.abs(self.reads).max((1, 2)) + 1e-300
        )
        growth = np.log(np.abs(self.values))
        scale = (repeats[:, None] * growth + sizes).max(1)
        powers = np.exp(
            repeats[:, None] * np.log(self.values) + np.log(self.weights + 1e-300) - scale[:, None]
        )  # [N, M]
        flat = self.reads.reshape(len(self.values), -1)
        logits: Floats = powers.real @ flat.real - powers.imag @ flat.imag
        return np.reshape(logits, (-1, *self.reads.shape[1:]))


@lru_cache(8)
def _geometric(first: int, last: int) -> NDArray[np.int64]:
    """Numbers of repetitions from first to last - 1, each at most `RATIO` times the one before."""
    grid = [first]
    while grid[-1] < last - 1:
        grid.append(min(last - 1, max(grid[-1] + 1, int(grid[-1] * RATIO))))
    return np.array(grid)
