"""Words on which a rounded model fails: random ones, periods, greedy ones, and all of them.

A *horizon* is the number of the first symbol after which the answer is wrong; it is None where no
answer is wrong up to a cap.

- `of_random_words`: uniform ones.
- `of_periodic_words`: powers of short words, of all of period 1, 2 and 3 or of some.
- `of_greedy_words`: by a beam search, of linear models with a loop. Of all words that one symbol
  makes longer, those are kept whose states are at the largest angles from their exact states, and
  none whose state was kept before.
- `of_all_words`: breadth first, every state once. It finds the shortest word that fails, or ends
  with a finite set of states, each of which is rightly read: then no word fails, of any length.

B words, T time, V symbols, S states, H hidden, W words of a beam, N states of a front.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from statetrack.models import LinearModel, RecurrentModel
from statetrack.rounding import Rounding
from statetrack.sources import Automaton
from tests.precision.loops import (
    Looped,
    compiled,
    follow_blocks,
    next_of_blocks,
    rightly_read,
)

PIECE, SHORT_PIECE = 1 << 12, 1 << 8
"""Positions that are read at once, by loops and where torch computes what surrounds them."""

SEEN = 1 << 21
"""Places for hashes of the states of a beam."""


@dataclass(frozen=True)
class Horizon:
    """The first wrong position, from 1, of a word, and which word it is."""

    length: int | None
    word: str


class Rounded:
    """A model under a rounding model, its machine, and the exact states of a linear one."""

    def __init__(self, model: RecurrentModel, automaton: Automaton, rounding: Rounding) -> None:
        self.automaton = automaton
        model.double().eval()
        self.looped = Looped(model, rounding)
        self.blocks: Any = None
        blocks = self.looped.blocks
        if blocks is not None and isinstance(model, LinearModel) and model.scale_invariant:
            self.blocks = blocks.numpy()
            self.norms = self.looped.norms.numpy()
            self.readout = model.readout.weight.detach().double().numpy()
            self.delta = np.ascontiguousarray(automaton.delta.astype(np.int64))
            self.output = automaton.output.astype(np.int64)
            self.points = exact_states(model, automaton)
            self.sine = angle_to_a_wrong_answer(self.points, self.readout, self.output)

    @property
    def piece(self) -> int:
        """The positions that are read at once."""
        return SHORT_PIECE if self.blocks is None else PIECE

    def first_states(self, num_words: int) -> Any:
        """The states [B, H] of a linear model with a loop before the first symbol."""
        _, first = self.looped.initial_state(num_words)
        return first.contiguous().numpy().copy()

    def first_wrong(self, pieces: Iterator[Any], num_words: int, until: int = 1) -> Any:
        """The first wrong position of each word [B], -1 where there is none, from pieces [B, t].

        Words are read on until so many are wrong.
        """
        wrong = np.full(num_words, -1, np.int64)
        at = np.full(num_words, self.automaton.start, np.int64)
        begun = 0
        state = self.first_states(num_words) if self.blocks is not None else None
        carried = None if self.blocks is not None else self.looped.initial_state(num_words)
        for piece in pieces:
            if self.blocks is not None:
                follow_blocks(
                    *(self.blocks, self.readout, self.delta, self.output, self.points, self.sine),
                    *(piece, at, state, wrong, begun),
                    *(self.looped.kept, self.looped.sums, self.norms),
                )
            else:
                logits, carried = self.looped.scan(torch.from_numpy(piece), carried)
                states = states_after(self.automaton, piece, at)
                at = states[:, -1].copy()
                misread = ~right(logits, self.automaton.output[states])
                here = misread.any(1) & (wrong < 0)
                wrong[here] = begun + misread.argmax(1)[here] + 1
            begun += piece.shape[1]
            if (wrong >= 0).sum() >= until:
                break
        return wrong


def states_after(automaton: Automaton, words: Any, first: Any) -> Any:
    """The machine's states [B, T] after symbols [B, T], from states [B]."""
    found = np.empty(words.shape, np.int64)
    state = first
    for time in range(words.shape[1]):
        state = automaton.delta[state, words[:, time]]
        found[:, time] = state
    return found


def right(logits: Tensor, labels: Any) -> Any:
    """Whether the first largest of finite logits [..., C] is the label [...]."""
    answers = logits.argmax(-1).numpy() == labels
    return answers & logits.isfinite().all(-1).numpy()


def exact_states(model: LinearModel, automaton: Automaton) -> Any:
    """The state [S, H] of length 1 that a machine's state has in float64, at its first visit."""
    operators = model.running_operators().dense().detach()
    found = np.full((automaton.num_states, operators.shape[1]), np.nan)
    found[automaton.start] = model.first.detach().numpy()
    queue = [automaton.start]
    for state in queue:
        for symbol, to in enumerate(automaton.delta[state].tolist()):
            if np.isnan(found[to, 0]):
                found[to] = operators[symbol].numpy() @ found[state]
                queue.append(to)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def angle_to_a_wrong_answer(points: Any, readout: Any, output: Any) -> float:
    """The sine of the least angle between an exact state [S, H] and one that is answered wrongly.

    It is the least distance of a state of length 1 from a plane on which two logits are equal.
    """
    logits = points @ readout.T
    own = np.take_along_axis(logits, output[:, None], 1)
    apart = np.linalg.norm(readout[output][:, None] - readout[None], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(apart > 0, (own - logits) / apart, np.inf)
    return float(distances.min())


def of_random_words(
    subject: Rounded, *, num_words: int, cap: int, seed: int
) -> tuple[list[int | None], int]:
    """The horizons of uniform words, and how far they were read at most."""
    draw = np.random.default_rng(seed)
    piece = subject.piece
    shape = (num_words, piece)
    pieces = (
        draw.integers(subject.automaton.num_symbols, size=shape) for _ in range(-(-cap // piece))
    )
    found = subject.first_wrong(pieces, num_words, num_words)
    return [int(each) if 0 < each <= cap else None for each in found], cap


def of_periodic_words(subject: Rounded, *, most: int, symbols: int, seed: int = 0) -> Horizon:
    """Powers of all words of period 1, and of periods 2 and 3 as many as are let."""
    num_symbols, draw = subject.automaton.num_symbols, np.random.default_rng(seed)
    periods: list[tuple[int, ...]] = [(symbol,) for symbol in range(num_symbols)]
    for period in (2, 3):
        count = num_symbols**period
        if count <= most:
            periods += itertools.product(range(num_symbols), repeat=period)
        else:
            periods += map(tuple, draw.integers(num_symbols, size=(most // 4, period)).tolist())
    periods = list(dict.fromkeys(periods))
    piece = 6 * subject.piece  # all periods divide it
    cap = max(piece, symbols // len(periods) // piece * piece)
    rows = np.array([np.resize(each, piece) for each in periods])
    pieces = (rows for _ in range(cap // piece))
    found = subject.first_wrong(pieces, len(periods))
    if (found < 0).all():
        return Horizon(None, f"{len(periods)} periods up to {cap}")
    first = int(np.where(found < 0, np.iinfo(np.int64).max, found).argmin())
    return Horizon(int(found[first]), f"({' '.join(map(str, periods[first]))}) repeated")


def of_greedy_words(
    subject: Rounded, *, width: int, cap: int, keep: bool = False
) -> tuple[Horizon, list[int]]:
    """The word found by a beam search of that width, with its symbols where they are kept."""
    assert subject.blocks is not None
    parents = np.empty((cap if keep else 1, width), np.int32)
    symbols = np.empty((cap if keep else 1, width), np.int32)
    length, row, symbol = _beam(
        *(subject.blocks, subject.readout, subject.delta, subject.output, subject.points),
        *(max(0.0, subject.sine), subject.first_states(1)[0], subject.automaton.start, width, cap),
        *(subject.looped.kept, subject.looped.sums, subject.norms, parents, symbols),
        np.zeros(SEEN, np.int64),
    )
    if length < 0:
        return Horizon(None, f"greedy, width {width}, up to {cap}"), []
    word = [int(symbol)]
    for time in range(length - 2, -1, -1) if keep else ():
        word.append(int(symbols[time, row]))
        row = parents[time, row]
    return Horizon(int(length), f"greedy, width {width}"), word[::-1]


@compiled
def _beam(
    blocks: Any,
    readout: Any,
    delta: Any,
    output: Any,
    points: Any,
    sine: float,
    first: Any,
    start: int,
    width: int,
    cap: int,
    kept: Any,
    sums: Any,
    norms: Any,
    parents: Any,
    symbols: Any,
    seen: Any,
) -> Any:
    """The length of the word, the row of its parent in the beam, and its last symbol; or -1.

    `seen` holds the hashes of states that were in the beam, none of which gets there again.
    """
    num_symbols, size = blocks.shape[0], first.shape[0]
    states, at, filled = np.empty((width, size)), np.empty(width, np.int64), 1
    states[0], at[0] = first, start
    new = np.empty((width * num_symbols, size))
    reached = np.empty(width * num_symbols, np.int64)
    scores = np.empty(width * num_symbols)
    recorded = parents.shape[0] > 1
    for time in range(cap):
        count = filled * num_symbols
        for child in range(count):
            row, symbol = child // num_symbols, child % num_symbols
            next_of_blocks(blocks, symbol, states[row], new[child], kept, sums, norms)
            state = delta[at[row], symbol]
            reached[child] = state
            along, square = 0.0, 0.0
            for place in range(size):
                along += points[state, place] * new[child, place]
                square += new[child, place] * new[child, place]
            across = max(0.0, 1.0 - along * along / square) if square > 0.0 else 1.0
            if along < 0.0:
                across = 2.0 - across
            scores[child] = across
            if across > sine * sine and not rightly_read(readout, new[child], output[state]):
                return time + 1, row, symbol
        filled = 0
        for _ in range(count):
            child = 0
            for other in range(1, count):
                if scores[other] > scores[child]:
                    child = other
            scores[child] = -1.0
            if not _first_seen(new[child], reached[child], seen):
                continue
            states[filled], at[filled] = new[child], reached[child]
            if recorded:
                parents[time, filled] = child // num_symbols
                symbols[time, filled] = child % num_symbols
            filled += 1
            if filled == width:
                break
        if filled == 0:
            break
    return -1, 0, 0


@compiled
def _first_seen(row: Any, state: int, seen: Any) -> bool:
    """Whether a state is not in the table of hashes [2^n], into which it comes; full, it is."""
    key = np.uint64(state + 1)
    for number in row:
        key = (key ^ np.uint64(np.float64(number + 0.0).view(np.int64))) * np.uint64(
            0x9E3779B97F4A7C15
        )
        key ^= key >> np.uint64(29)
    own = np.int64(key | np.uint64(1))
    place = np.int64(key >> np.uint64(3)) & (len(seen) - 1)
    for _ in range(32):
        if seen[place] == own:
            return False
        if seen[place] == 0:
            seen[place] = own
            return True
        place = (place + 1) & (len(seen) - 1)
    return True


@dataclass(frozen=True)
class Exhausted:
    """What a search of all words found: a shortest word that fails, or all states, or neither."""

    horizon: int | None
    closed: bool
    states: int
    word: tuple[int, ...] = ()


def of_all_words(subject: Rounded, *, most_states: int, after: Any = ()) -> Exhausted:
    """Breadth first, every pair of a machine's state and a rounded state once.

    All words begin with `after` here, which is rightly read.
    """
    automaton, looped = subject.automaton, subject.looped
    num_symbols = automaton.num_symbols
    flat, state, at = _Flat(looped.initial_state(61), 61), looped.initial_state(1), automaton.start
    if len(after):
        _, state = looped.scan(torch.as_tensor(after).unsqueeze(0), state)
        at = int(automaton.states_after(np.asarray(after)[None])[0, -1])
    rows, states = flat.rows(state), np.array([at])
    seen = {(at, rows[0].tobytes())}
    paths: list[tuple[Any, Any]] = []
    length = 0
    while len(rows):
        length += 1
        parent = np.repeat(np.arange(len(rows)), num_symbols)
        symbols = np.tile(np.arange(num_symbols), len(rows))
        logits, state = looped.step(torch.from_numpy(symbols), flat.state(rows[parent]))
        reached = automaton.delta[states[parent], symbols].astype(np.int64)
        misread = ~right(logits, automaton.output[reached])
        if misread.any():
            return Exhausted(length, False, len(seen), _path(paths, misread.argmax(), num_symbols))
        found, fresh = flat.rows(state), []
        for place, (own, row) in enumerate(zip(reached.tolist(), found, strict=True)):
            key = (own, row.tobytes())
            if key not in seen:
                seen.add(key)
                fresh.append(place)
        if len(seen) > most_states:
            return Exhausted(None, False, len(seen))
        paths.append((parent[fresh], symbols[fresh]))
        rows, states = found[fresh], reached[fresh]
    return Exhausted(None, True, len(seen))


def _path(paths: list[tuple[Any, Any]], place: int, num_symbols: int) -> tuple[int, ...]:
    word, row = [int(place % num_symbols)], place // num_symbols
    for parent, symbols in reversed(paths):
        word.append(int(symbols[row]))
        row = parent[row]
    return tuple(word[::-1])


class _Flat:
    """Nested states of words as rows of numbers, and back."""

    def __init__(self, state: Any, num_words: int) -> None:
        self._state, self._num_words = state, num_words

    def rows(self, state: Any) -> Any:
        """Rows [N, D] of a state of N words."""
        parts = [
            part.movedim(self._axis(own), 0).unsqueeze(-1).flatten(1)
            for part, own in zip(tensors(state), tensors(self._state), strict=True)
        ]
        return torch.cat(parts, 1).contiguous().numpy() + 0.0  # no number is -0

    def state(self, rows: Any) -> Any:
        """The state of rows [N, D]."""
        left = torch.from_numpy(np.ascontiguousarray(rows))
        sizes = [each.numel() // self._num_words for each in tensors(self._state)]
        parts = iter(left.split(sizes, 1))

        def shaped(own: Any) -> Any:
            if not isinstance(own, Tensor):
                return tuple(map(shaped, own)) if isinstance(own, tuple) else own
            axis, shape = self._axis(own), list(own.shape)
            del shape[axis]
            part = next(parts).to(own.dtype)
            part = part.unflatten(1, shape) if shape else part.squeeze(1)
            return part.movedim(0, axis).contiguous()

        return shaped(self._state)

    def _axis(self, own: Tensor) -> int:
        return own.shape.index(self._num_words)


def tensors(state: Any) -> Iterator[Tensor]:
    """All tensors of a nested state, in their order."""
    if isinstance(state, Tensor):
        yield state
    elif isinstance(state, tuple | list):
        for part in state:
            yield from tensors(part)
