"""How errors of the state grow along words, by how much the decoder bears them, and by what noise.

After Chung, Choi and Kim (2026, arXiv:2605.07755): a recurrence that is affine in its state cannot
take back an error within the span of the differences of its states, so the spread R of hidden
states that stand for one state of the automaton grows along words, against the separation M of
different ones, until q = R / M crosses what the decoder bears. What R and M are is not settled
there; `Spread` says what they are here.

B words, T time, D numbers of a state, C labels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from statetrack.algebra import ROUNDING, Machine, needed_machine, noise_horizon, rounding_horizon
from statetrack.evaluation import CHUNK
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.kinds.error_control import ErrorControl, NoiseRow, PrecisionRow, Spread
from statetrack.evidence.subject import Subject, exactly
from statetrack.evidence.words import RandomWords
from statetrack.models import is_linear
from statetrack.sources import Booleans, Floats, Integers

LENGTH = 16_384
"""The longest words that are read."""

FEWEST_WORDS, MOST_WORDS = 128, 480
"""Random words: four for each state, within these bounds."""

REFERENCE = (5, 10)
"""The positions that reference means are taken from."""

DRIFT_TO = 1024
"""The last position that the growth is measured at, so that it can predict later ones."""

NOISE_SIZES = (0.003, 0.01, 0.03, 0.1)
NOISE_WORDS, NOISE_LENGTH = 64, 2048
"""The noise added per symbol, over how many words of which length each."""

PRECISION_WORDS = 64
"""Random words, and at most as many powers of short words, that are read in every precision."""

PIECE = 256
"""Symbols that are read in one precision before the next."""

PRECISIONS = {"float64": torch.float64, "float32": torch.float32, "bfloat16": torch.float32}
"""The type of the arithmetic in each precision."""

FAILS = 0.01
"""The share of wrong answers at which a decoder is said to fail."""

FAILED = 0.5
"""The share at which longer words tell nothing more."""

LEAST_GROWTH = 1e-12
"""Growth of the displacement per symbol that is taken for none."""

FARTHEST = 10**15
"""Predictions beyond this are none."""


def find_error_control(
    subject: Subject,
    *,
    budget: SearchBudget,
    seed: int = 0,
    length: int = LENGTH,
    noise_length: int = NOISE_LENGTH,
    noise_sizes: Sequence[float] = NOISE_SIZES,
) -> ErrorControl:
    """How errors of a model's state grow along words of up to so many symbols.

    Raises `SettingsError` where the model has no state, or none of its own for every word, and
    where its state grows.
    """
    began = time.monotonic()
    subject.require_state("error control")
    subject.require_constant_size()
    subject.counts_for(budget)
    machine = needed_machine(subject.automaton)
    num_states = int(machine.live.sum())
    num_words = int(np.clip(4 * num_states, FEWEST_WORDS, MOST_WORDS))
    reference = _Reference(subject, RandomWords(machine, num_words, seed), machine)
    budget.say("spread along words")
    track = _Track(subject, reference, machine)
    track.read(RandomWords(machine, num_words, seed + 1), length, budget.part(0.45))
    budget.say("the decoder's threshold")
    more_words = RandomWords(machine, 2 * num_words, seed + 2)
    threshold = _threshold(subject, reference, more_words, machine, budget)
    margin = _margin(subject, reference, machine)
    budget.say("noise")
    noise = _noise(
        subject, machine, noise_sizes, noise_length, margin, budget.part(0.4), seed=seed + 3
    )
    budget.say("precisions")
    precisions = _precisions(subject, machine, length, budget, seed=seed + 4)
    wrong = [(row.first_wrong, row.precision) for row in precisions if row.first_wrong is not None]
    bounds = {} if margin is None else {n: rounding_horizon(margin, r) for n, r in ROUNDING.items()}
    return ErrorControl(
        states=num_states,
        words=num_words,
        length=track.length,
        reference=REFERENCE,
        spreads=tuple(track.spreads),
        threshold=threshold,
        **_growth(track, threshold),
        observed=track.observed,
        first_error=track.first_error,
        noise=noise,
        precisions=precisions,
        fails_first=min(wrong, key=lambda each: each[0])[1] if wrong else None,
        margin=margin,
        horizons=tuple((name, int(horizon)) for name, horizon in bounds.items()),
        complete=track.complete
        and all(row.first_error is not None or row.length == noise_length for row in noise)
        and all(row.reason or row.first_wrong or row.length == length for row in precisions),
        seconds=time.monotonic() - began,
    )


def _hidden(subject: Subject, state: Any) -> Floats:
    """The numbers of the states, [B, D]."""
    return subject.compared(subject.vectors(state))


def _outputs(subject: Subject, logits: Tensor) -> Floats:
    """Logits [B, C] less their mean."""
    wide = logits.double()
    return subject.compared(wide - wide.mean(-1, keepdim=True))


def _wrong(subject: Subject, machine: Machine, logits: Tensor, states: Integers) -> Booleans:
    """Where a label is asked for in these states and the answer is another: [...]."""
    automaton = machine.automaton
    wrong: Booleans = subject.answers_of(logits) != automaton.output[states]
    return wrong & automaton.scored[states]


@dataclass(frozen=True, eq=False)
class _StateMeans:
    """Means of rows by automaton state, and how often each state was met."""

    means: Floats  # [S, D]: 0 where a state was not met
    counts: Integers  # [S]

    @classmethod
    def of(cls, rows: Floats, states: Integers, num_states: int) -> _StateMeans:
        counts = np.bincount(states, minlength=num_states)
        means = np.zeros((num_states, rows.shape[1]))
        np.add.at(means, states, rows)
        return cls(means / np.maximum(counts, 1)[:, None], counts)

    def spread(self, rows: Floats, states: Integers) -> float | None:
        """The root mean square distance of rows from the means, with what means take corrected."""
        freedom = len(rows) - int((self.counts > 0).sum())
        if freedom < 1:
            return None
        return float(np.sqrt(((rows - self.means[states]) ** 2).sum() / freedom))

    def separation(self, labels: Integers | None, asked: Booleans) -> float | None:
        """The smallest distance of two means of states that count, of different labels if given."""
        met = np.flatnonzero((self.counts > 0) & asked)
        means = self.means[met]
        distances = np.linalg.norm(means[:, None] - means[None], axis=2)
        apart = ~np.eye(len(met), dtype=bool)
        if labels is not None:
            apart = labels[met][:, None] != labels[met][None, :]
        return float(distances[apart].min()) if apart.any() else None


class _Reference:
    """The mean hidden states and outputs of short words, and the states of words to start from."""

    def __init__(self, subject: Subject, words: RandomWords, machine: Machine) -> None:
        first, last = REFERENCE
        state = subject.first(len(words.states))
        hidden, outputs, states = [], [], []
        for position in range(1, last + 1):
            symbols, reached = words.read(1)
            logits, state = subject.step(symbols[:, 0], state)
            if position >= first:
                hidden.append(_hidden(subject, state))
                outputs.append(_outputs(subject, logits))
                states.append(reached[:, 0])
        where = np.concatenate(states)
        num_states = len(machine.delta)
        self.hidden = _StateMeans.of(np.concatenate(hidden), where, num_states)
        self.outputs = _StateMeans.of(np.concatenate(outputs), where, num_states)
        automaton = machine.automaton
        self.separation = self.outputs.separation(automaton.output, automaton.scored)
        self.asked = automaton.scored & (self.outputs.counts > 0)

    def displacement(self, outputs: Floats, states: Integers) -> float | None:
        """The root mean square distance of outputs [B, C] from the reference means, over M."""
        known = self.asked[states]
        if not known.any() or not self.separation:
            return None
        away = outputs[known] - self.outputs.means[states[known]]
        return float(np.sqrt((away**2).sum(axis=1).mean())) / self.separation


class _Track:
    """What random words show, position by position, in constant memory."""

    def __init__(self, subject: Subject, reference: _Reference, machine: Machine) -> None:
        self._subject, self._reference, self._machine = subject, reference, machine
        self.spreads: list[Spread] = []
        self.length = 0
        self.complete = True
        self.observed: int | None = None
        self.first_error: int | None = None

    def read(self, words: RandomWords, length: int, budget: SearchBudget) -> None:
        """Read words up to a length, unless time runs out or half of the answers are wrong."""
        state = self._subject.first(len(words.states))
        size = max(1, CHUNK // len(words.states))
        powers = [2**exponent for exponent in range(max(1, length).bit_length())]
        # 1, 2, 3, 4, 6, 8, 12, 16 ... up to the length, and that
        positions = sorted({*powers, *(power * 3 // 2 for power in powers[1:]), length})
        for position in (each for each in positions if each <= length):
            logits, states = None, words.states
            while self.length < position:
                if self.length and budget.spent:
                    self.complete = False
                    return
                symbols, reached = words.read(min(size, position - self.length))
                logits, state = self._subject.scan(symbols, state)
                self._count(logits, reached)
                states = reached[:, -1]
            assert logits is not None
            self.spreads.append(self._at(position, state, logits[:, -1], states))
            if self.spreads[-1].wrong >= FAILED:
                return

    def _count(self, logits: Tensor, states: Integers) -> None:
        """Note the first wrong answers of a piece, and where 1 % of a position are wrong."""
        wrong = _wrong(self._subject, self._machine, logits, states)
        self.first_error = self.first_error or _first(wrong, self.length)
        many = wrong.mean(axis=0, keepdims=True) >= FAILS
        self.observed = self.observed or _first(many, self.length)
        self.length += states.shape[1]

    def _at(self, position: int, state: Any, logits: Tensor, states: Integers) -> Spread:
        subject, automaton = self._subject, self._machine.automaton
        hidden, outputs = _hidden(subject, state), _outputs(subject, logits)
        of_hidden = _StateMeans.of(hidden, states, automaton.num_states)
        of_outputs = _StateMeans.of(outputs, states, automaton.num_states)
        spread = of_hidden.spread(hidden, states)
        separation = of_hidden.separation(None, self._machine.live)
        asked = int(automaton.scored[states].sum())
        wrong = _wrong(subject, self._machine, logits, states)
        return Spread(
            position=position,
            spread=spread,
            separation=separation,
            ratio=_over(spread, separation),
            output_ratio=_over(
                of_outputs.spread(outputs, states),
                of_outputs.separation(automaton.output, automaton.scored),
            ),
            displacement=self._reference.displacement(outputs, states),
            wrong=float(wrong.sum() / max(1, asked)),
        )


def _over(spread: float | None, separation: float | None) -> float | None:
    return spread / separation if spread is not None and separation else None


# --- threshold and growth ---


def _threshold(
    subject: Subject,
    reference: _Reference,
    words: RandomWords,
    machine: Machine,
    budget: SearchBudget,
) -> float | None:
    """The displacement at which 1 % of the answers are wrong, by noise on the states.

    Gaussian noise on all numbers of the states, after the reference positions, and then one more
    symbol. Its size is halved between one that is borne and one that is not. None where no noise
    has that effect, or time has run out.
    """
    symbols, _ = words.read(REFERENCE[1])
    _, state = subject.scan(symbols, subject.first(len(symbols)))
    last, reached = words.read(1)
    states = reached[:, 0]
    rows = subject.vectors(state).double()
    draw = torch.Generator().manual_seed(0)
    noise = torch.randn(rows.shape, generator=draw, dtype=torch.float64).to(rows)
    noise *= rows.norm(dim=1, keepdim=True) / rows.shape[1] ** 0.5
    asked = reference.asked[states]
    if not asked.any():
        return None
    labels = machine.automaton.output[states]

    def tried(size: float) -> tuple[float, float | None]:
        logits, _ = subject.step(last[:, 0], subject.with_vectors(state, rows + size * noise))
        wrong = (subject.answers_of(logits) != labels) & asked
        moved = reference.displacement(_outputs(subject, logits), states)
        return float(wrong.sum() / asked.sum()), moved

    low, high = 1e-6, 1e-6
    while tried(high)[0] < FAILS:
        low, high = high, high * 4
        if high > 1e6 or budget.spent:
            return None
    if low == high:
        return tried(low)[1]
    for _ in range(0 if budget.spent else 10):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if tried(middle)[0] >= FAILS else (middle, high)
    return tried(high)[1]


def _growth(track: _Track, threshold: float | None) -> dict[str, Any]:
    """How the displacement grows, and where it crosses the threshold: fields of `ErrorControl`.

    Lines through the displacements before anything fails, straight and in logarithms.
    """
    failed = min(track.first_error or track.length + 1, DRIFT_TO + 1)
    points = [
        (each.position, each.displacement)
        for each in track.spreads
        if REFERENCE[1] <= each.position < failed and each.displacement
    ]
    found = dict.fromkeys(("drift", "exponent", "predicted", "predicted_by_growth"))
    if len(points) < 3:
        return {**found, "drift_to": 0}
    positions, values = np.array(points, np.float64).T
    drift, begin = np.polyfit(positions, values, 1)
    exponent, height = np.polyfit(np.log(positions), np.log(values), 1)
    crosses = by_power = None
    if threshold is not None and drift > LEAST_GROWTH:
        crosses = _whole((threshold - begin) / drift)
    if threshold is not None and exponent > 0:
        by_power = _whole(math.exp(min((math.log(threshold) - height) / exponent, 700.0)))
    return {
        "drift": float(drift),
        "drift_to": int(positions[-1]),
        "exponent": float(exponent),
        "predicted": crosses,
        "predicted_by_growth": by_power,
    }


def _whole(position: float) -> int | None:
    return round(max(position, 1.0)) if position < FARTHEST else None


# --- margin and noise ---


def _margin(subject: Subject, reference: _Reference, machine: Machine) -> float | None:
    """The smallest distance of a mean state from the boundary of its label, over the longest."""
    model = subject.model
    if not is_linear(model):
        return None
    rows, bias = exactly(model.readout.weight), model.readout.bias
    offsets = np.zeros(len(rows)) if bias is None else exactly(bias)
    met = np.flatnonzero(reference.asked)
    means, labels = reference.hidden.means[met], machine.automaton.output[met]
    logits = means @ rows.T + offsets
    normals = np.linalg.norm(rows[labels][:, None] - rows[None], axis=2)  # [S, C]
    gaps = logits[np.arange(len(met)), labels][:, None] - logits
    others = np.arange(len(rows))[None] != labels[:, None]
    distances = gaps[others] / np.maximum(normals[others], 1e-300)
    longest = float(np.linalg.norm(means, axis=1).max())
    return float(distances.min()) / longest if longest > 0 and len(distances) else None


def _noise(
    subject: Subject,
    machine: Machine,
    sizes: Sequence[float],
    length: int,
    margin: float | None,
    budget: SearchBudget,
    *,
    seed: int,
) -> tuple[NoiseRow, ...]:
    """Words read with noise of every size, all at once, until each has failed."""
    words = RandomWords(machine, NOISE_WORDS * len(sizes), seed)
    size = torch.tensor(sizes, dtype=torch.float64).repeat_interleave(NOISE_WORDS).unsqueeze(1)
    draw = torch.Generator().manual_seed(seed)
    state = subject.first(len(size))
    first = np.zeros(len(sizes), np.int64)
    width, position = 0, 0
    while position < length and not (first > 0).all() and not (position and budget.spent):
        position += 1
        symbols, reached = words.read(1)
        logits, state = subject.step(symbols[:, 0], state)
        wrong = _wrong(subject, machine, logits, reached[:, 0])
        failed = wrong.reshape(len(sizes), NOISE_WORDS).any(axis=1) & (first == 0)
        first[failed] = position
        rows = subject.vectors(state).double().cpu()
        width = rows.shape[1]
        noise = torch.randn(rows.shape, generator=draw, dtype=torch.float64) / width**0.5
        moved = rows + size * rows.norm(dim=1, keepdim=True) * noise
        state = subject.with_vectors(state, moved)
    return tuple(
        NoiseRow(
            size=each,
            words=NOISE_WORDS,
            length=position,
            first_error=error or None,
            predicted=noise_horizon(margin, each / width**0.5)
            if margin is not None and width and each
            else None,
        )
        for each, error in zip(sizes, first.tolist(), strict=True)
    )


# --- precisions ---


def _precisions(
    subject: Subject, machine: Machine, length: int, budget: SearchBudget, *, seed: int
) -> tuple[PrecisionRow, ...]:
    """The same words in every precision: random ones, and powers of words of up to two symbols."""
    random = RandomWords(machine, PRECISION_WORDS, seed)
    periods = _periods(machine, seed)
    num_words = PRECISION_WORDS + len(periods)
    readers = [_InPrecision(subject, name, num_words) for name in PRECISIONS]
    automaton = machine.automaton
    at = np.full(len(periods), automaton.start)
    most = max(1, min(PIECE, CHUNK // num_words))
    done = 0
    while done < length and not (done and budget.spent):
        size = min(most, max(8, done))  # short at first: a slow model must see that time is up
        symbols, states = random.read(min(size, length - done))
        if len(periods):
            places = (done + np.arange(symbols.shape[1])) % periods.shape[1]
            powers = periods[:, places]
            after = automaton.states_after(powers, at).astype(np.int64)
            at = after[:, -1]
            symbols, states = np.vstack([symbols, powers]), np.vstack([states, after])
        labels, asked = automaton.output[states], automaton.scored[states]
        expected: Integers | None = None
        for reader in readers:
            if not reader.settled:
                expected = reader.read(symbols, labels, asked, expected, done)
        done += symbols.shape[1]
        if all(reader.settled for reader in readers[1:]) and readers[0].wrong:
            break
    return tuple(reader.row(num_words, done) for reader in readers)


class _InPrecision:
    """A model in one precision, and what is known of its answers.

    In bfloat16 weights are rounded once, and states after every symbol; the arithmetic in between
    is that of float32, as in hardware that multiplies bfloat16 and adds up in float32.
    """

    def __init__(self, subject: Subject, name: str, num_words: int) -> None:
        self.name = name
        self._rounds = name == "bfloat16"
        self._subject = subject.in_precision(PRECISIONS[name])
        model = self._subject.model
        for tensor in (*model.parameters(), *model.buffers()) if self._rounds else ():
            if tensor.is_floating_point():
                tensor.copy_(tensor.bfloat16().to(tensor))
        first = self._subject.first(num_words)
        self._state = self._rounded(first) if self._rounds else first
        self.reason = ""
        self.difference: int | None = None
        self.wrong: int | None = None
        self._read = 0

    @property
    def settled(self) -> bool:
        """Whether nothing more can be learned; float64 is needed to compare with."""
        known = self.difference is not None and self.wrong is not None
        return bool(self.reason) or (known and self.name != "float64")

    def read(
        self,
        symbols: Integers,
        labels: Integers,
        asked: Booleans,
        expected: Integers | None,
        offset: int,
    ) -> Integers | None:
        """Read on, compare with labels and with the answers of float64, which are returned."""
        try:
            answers = self._answers(symbols)
        except RuntimeError as problem:
            self.reason = str(problem).splitlines()[0]
            return expected
        self._read = offset + symbols.shape[1]
        expected = answers if self.name == "float64" else expected
        if expected is not None:
            self.difference = self.difference or _first(answers != expected, offset)
        self.wrong = self.wrong or _first((answers != labels) & asked, offset)
        return expected

    def _answers(self, symbols: Integers) -> Integers:
        """The answers [B, T]."""
        if not self._rounds:
            logits, self._state = self._subject.scan(symbols, self._state)
            return self._subject.answers_of(logits)
        answers = []
        for column in symbols.T:
            logits, state = self._subject.step(column, self._state)
            self._state = self._rounded(state)
            answers.append(self._subject.answers_of(logits))
        return np.stack(answers, axis=1)

    def _rounded(self, state: Any) -> Any:
        rows = self._subject.vectors(state)
        return self._subject.with_vectors(state, rows.bfloat16().to(rows))

    def row(self, num_words: int, length: int) -> PrecisionRow:
        """What is known, after words of a length."""
        return PrecisionRow(
            precision=self.name,
            words=num_words,
            length=0 if self.reason else self._read if self.settled else length,
            first_difference=self.difference,
            first_wrong=self.wrong,
            reason=self.reason,
        )


def _first(where: Booleans, offset: int) -> int | None:
    """The first position, counted from 1 behind an offset, that some row marks."""
    at = where.any(axis=0)
    return offset + int(at.argmax()) + 1 if at.any() else None


def _periods(machine: Machine, seed: int) -> Integers:
    """Words of two symbols whose powers can be drawn, `[N, 2]`: `x x` is every power of x."""
    num_symbols = machine.delta.shape[1]
    pairs = np.array([(one, two) for one in range(num_symbols) for two in range(num_symbols)])
    if machine.sink is not None:
        powers = np.tile(pairs, (1, machine.automaton.num_states + 1))
        reached = machine.automaton.states_after(powers)
        pairs = pairs[(reached != machine.sink).all(axis=1)]
    if len(pairs) > PRECISION_WORDS:
        single = np.flatnonzero(pairs[:, 0] == pairs[:, 1])[: PRECISION_WORDS // 2]
        rest = np.setdiff1d(np.arange(len(pairs)), single)
        draw = np.random.default_rng(seed)
        more = draw.choice(rest, PRECISION_WORDS - len(single), replace=False)
        pairs = pairs[np.sort(np.concatenate([single, more]))]
    return pairs
