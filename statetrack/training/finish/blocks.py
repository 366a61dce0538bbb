"""Blocks that keep a norm, made exact: every label has a state, and every symbol moves them.

The label of one position of a word and the next symbol often say the next label: as far as
training words show, labels are then states, and x leads from s to d(s, x). A block follows them
exactly if there are vectors m_s with

    A(x) m_s = m_{d(s, x)}    for all transitions that training words show,    A(x) orthogonal.

From a trained block, whose states have nearly the same mean for a label at every position, both
are found by turns: every A(x) is the orthogonal matrix nearest to what its transitions ask for
(Schoenemann 1966, Psychometrika 31: the Procrustes problem), every m_s is drawn to the mean of
where transitions into s end. What agrees is kept, what does not shrinks, and with it blocks that
forget or that follow nothing. No squared error of labels takes part in this: a block can be exact
where the blocks of its size cannot make that error zero.

The readout is the one with the least squared error over all labels. A block of the trained model
that is not used is given the operators of one that is, with another first state, where that makes
this error smaller.

V symbols, B words, T time, S states (the labels, and the beginning of a word), C labels, N blocks,
b block size, k coordinates of a block that are kept. Tensors are float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statetrack.ops import BlockOperators
from statetrack.training.words import Words

MOST_ENTRIES = 50_000
"""Pairs of a label and a symbol: more would take minutes."""
MOST_ROUNDS = 400
"""Turns; where all symbols are equally likely the disagreement halves with each."""
AGREES = 1e-11
"""The largest entry of A(x) m_s - m_d(s, x), for vectors of size about 1, of an exact block."""
EXPLAINED = 0.3
"""The least share of a direction's second moment that labels explain, for it to be kept."""
SHOWN = 0.05
"""The least size of the m_s along a direction, relative to the largest, for it to be kept."""
USEFUL = 1e-9
"""The least share of the squared error that another block has to remove."""


@dataclass(frozen=True)
class Transitions:
    """What words show: `targets` [V, S] after a symbol in a state, where `seen` [V, S].

    A state is a label; the last one is the beginning of a word.
    """

    targets: Tensor
    seen: Tensor

    @property
    def num_states(self) -> int:
        """The number S of states."""
        return self.targets.shape[1]


@dataclass(frozen=True)
class ExactBlock:
    """A block that follows all transitions: operators [V, k, k] and the vectors [S, k] of states.

    `turns` [S, k, k] lead from the first state's vector to that of each state, where all words that
    lead to it turn all vectors alike; otherwise there are none.
    """

    operators: Tensor
    vectors: Tensor
    turns: Tensor | None


@dataclass(frozen=True)
class BlockMachine:
    """Blocks [V, N, b, b], the first state [N, b] and the readout [C, N, b]; `kept` coordinates."""

    blocks: Tensor
    first: Tensor
    readout: Tensor
    kept: int


def exact_machine(
    blocks: Tensor, first: Tensor, words: Words, num_labels: int, height: float
) -> BlockMachine | str:
    """A machine of exact blocks, from trained ones [V, N, b, b]; the reason where there is none.

    `height` is by how much the right logit is to be above the others.
    """
    num_symbols, num_blocks, size, _ = blocks.shape
    if num_symbols * num_labels > MOST_ENTRIES:
        return "it has more labels and symbols than can be solved for"
    transitions = _transitions(words, num_symbols, num_labels)
    if transitions is None:
        return "in training words, a label and the next symbol do not say the next label"
    states = BlockOperators(blocks).recur(
        words.symbols, first.flatten().expand(len(words.symbols), -1)
    )
    late = words.scored.mT.clone()
    longest = int(late.any(1).nonzero().amax()) + 1  # what follows is padding
    late[: longest // 2] = False
    labels, states = words.labels.mT[late], states[late].unflatten(-1, first.shape)
    exact = []
    for number in range(num_blocks):
        block = _followed(blocks[:, number], first[number], states[:, number], labels, transitions)
        if block is not None:
            exact.append(block)
    if not exact:
        return "no block keeps a state of its own for every label"
    return _assembled(exact, transitions, num_labels, height, num_blocks, size)


def _transitions(words: Words, num_symbols: int, num_labels: int) -> Transitions | None:
    """The transitions that words show; None where they contradict each other or show none."""
    before = torch.cat([torch.full_like(words.labels[:, :1], num_labels), words.labels[:, :-1]], 1)
    known = words.scored.clone()
    known[:, 1:] &= words.scored[:, :-1]
    symbols, sources, targets = words.symbols[known], before[known], words.labels[known]
    table = torch.zeros(num_symbols, num_labels + 1, dtype=torch.int64)
    seen = torch.zeros_like(table, dtype=torch.bool)
    table[symbols, sources] = targets
    seen[symbols, sources] = True
    if not bool((table[symbols, sources] == targets).all()) or not bool(seen[:, :-1].any()):
        return None
    return Transitions(table, seen)


def _followed(
    operators: Tensor, first: Tensor, states: Tensor, labels: Tensor, transitions: Transitions
) -> ExactBlock | None:
    """A block [V, b, b] made exact; None where it does not follow the transitions.

    `states` [P, b] are its states at positions with `labels` [P].
    """
    num_states = transitions.num_states
    counts = torch.bincount(labels, minlength=num_states).clamp(min=1).double().unsqueeze(1)
    vectors = states.new_zeros(num_states, len(first)).index_add_(0, labels, states) / counts
    vectors[-1] = first
    directions = _explained(states, vectors[labels])
    if not directions.shape[1]:
        return None
    back = torch.linalg.pinv(directions)
    operators, vectors = back @ operators @ directions, vectors @ back.mT
    while vectors.shape[1]:
        operators, vectors, error = _agreed(operators, vectors, transitions)
        basis = _shown(vectors)
        if basis.shape[1] == vectors.shape[1]:
            break
        operators, vectors = basis.mT @ operators @ basis, vectors @ basis
    if not vectors.shape[1] or not error <= AGREES:
        return None
    return ExactBlock(operators, vectors, _turns(operators, transitions))


def _explained(states: Tensor, means: Tensor) -> Tensor:
    """Directions [b, k] of states [P, b] that the means of their labels explain.

    Along them, in their own units, means have a second moment of 1.
    """
    count = len(states)
    values, vectors = torch.linalg.eigh(states.mT @ states / count)
    large = values > 1e-8 * values[-1].clamp(min=1e-30)
    scaled = vectors[:, large] * values[large].sqrt()
    white = means @ torch.linalg.pinv(scaled).mT
    shares, turned = torch.linalg.eigh(white.mT @ white / count)
    keep = shares >= EXPLAINED
    directions: Tensor = scaled @ (turned[:, keep] * shares[keep].sqrt())
    return directions


def _shown(vectors: Tensor) -> Tensor:
    """An orthonormal basis [k, k'] of the directions in which labels differ.

    What is the same for all labels is left out: symbols that permute labels leave it as it is.
    """
    differences = vectors[:-1] - vectors[:-1].mean(0)
    values, basis = torch.linalg.eigh(differences.mT @ differences)
    shown: Tensor = basis[:, values > SHOWN**2 * vectors.square().sum(0).amax()]
    return shown


def _agreed(
    operators: Tensor, vectors: Tensor, transitions: Transitions
) -> tuple[Tensor, Tensor, float]:
    """Orthogonal operators and vectors after turns, and by how much they disagree at most."""
    targets, seen = transitions.targets, transitions.seen.unsqueeze(2)
    number = len(vectors)
    into = targets[transitions.seen]
    arriving = torch.bincount(into, minlength=number).double().unsqueeze(1)
    leaving = transitions.seen.sum(0).double().unsqueeze(1)
    vectors = vectors * (transitions.num_states / vectors.square().sum()) ** 0.5
    error = float("inf")
    for _ in range(MOST_ROUNDS):
        wanted = vectors[targets] * seen  # [V, S, k]
        left, _, right = torch.linalg.svd(wanted.mT @ vectors + 1e-9 * operators)
        operators = left @ right
        moved = vectors @ operators.mT  # [V, S, k]
        error = float(((moved - wanted) * seen).abs().max())
        if error <= AGREES / 10:
            break
        arrived = torch.zeros_like(vectors).index_add_(0, into, moved[transitions.seen])
        returned = ((wanted @ operators) * seen).sum(0)
        # the beginning of a word is where its transitions come back to: none leads to it
        drawn = torch.where(
            arriving > 0, arrived / arriving.clamp(min=1), returned / leaving.clamp(min=1)
        )
        known = (arriving + leaving) > 0
        vectors = torch.where(known, (vectors + drawn) / 2, 0.0)
        vectors = vectors * (number / vectors.square().sum().clamp(min=1e-300)) ** 0.5
    return operators, vectors, error


def _turns(operators: Tensor, transitions: Transitions) -> Tensor | None:
    """Products [S, k, k] of operators along words to every state; None where words disagree."""
    number, width = transitions.num_states, operators.shape[1]
    turns = operators.new_zeros(number, width, width)
    turns[-1] = torch.eye(width, dtype=operators.dtype)
    reached, waiting = {number - 1}, [number - 1]
    for state in waiting:
        for symbol in transitions.seen[:, state].nonzero().flatten().tolist():
            target = int(transitions.targets[symbol, state])
            if target not in reached:
                reached.add(target)
                waiting.append(target)
                turns[target] = operators[symbol] @ turns[state]
    moved = operators.unsqueeze(1) @ turns  # [V, S, k, k]
    error = (moved - turns[transitions.targets])[transitions.seen].abs().max()
    return turns if float(error) <= 100 * AGREES else None


def _assembled(
    exact: list[ExactBlock],
    transitions: Transitions,
    num_labels: int,
    height: float,
    num_blocks: int,
    size: int,
) -> BlockMachine:
    """Up to N of the blocks, some of them with other first states, and the best readout."""
    candidates: list[tuple[Tensor, Tensor]] = []  # operators, vectors [S, k]
    for block in exact:
        candidates.append((block.operators, block.vectors))
    for block in exact:
        if block.turns is not None:
            width = len(block.vectors[0])
            start = block.vectors[-1]
            identity = torch.eye(width, dtype=start.dtype)
            others = torch.linalg.qr(torch.cat([start.unsqueeze(1), identity], 1)).Q[:, 1:]
            for other in others.mT:
                candidates.append((block.operators, block.turns @ (width**0.5 * other)))
    shown = transitions.seen.any(0)
    shown |= torch.zeros_like(shown).index_fill_(0, transitions.targets[transitions.seen], True)
    shown = shown[:-1]
    targets = height * (torch.eye(num_labels, dtype=torch.float64) - 1 / num_labels)[shown]
    chosen = _chosen([vectors[:-1][shown] for _, vectors in candidates], targets, num_blocks)
    first_operators = candidates[0][0]
    blocks = first_operators.new_zeros(len(first_operators), num_blocks, size, size)
    first = first_operators.new_zeros(num_blocks, size)
    columns = first_operators.new_zeros(int(shown.sum()), num_blocks, size)
    kept = 0
    for place, number in enumerate(chosen):
        operators, vectors = candidates[number]
        width = vectors.shape[1]
        blocks[:, place, :width, :width] = operators
        first[place, :width] = vectors[-1]
        columns[:, place, :width] = vectors[:-1][shown]
        kept += width
    readout = torch.linalg.lstsq(columns.flatten(1), targets, driver="gelsd", rcond=1e-9).solution
    return BlockMachine(blocks, first, readout.mT.unflatten(1, (num_blocks, size)), kept)


def _chosen(columns: list[Tensor], targets: Tensor, most: int) -> list[int]:
    """Which groups of columns remove most of the squared error of `targets`, one after another."""
    total = float(targets.square().sum())
    left, rest = targets, list(columns)
    chosen: list[int] = []
    while len(chosen) < most:
        bases = [_basis(part) for part in rest]
        removed = torch.stack([(basis.mT @ left).square().sum() for basis, _ in bases])
        if float(removed.max()) <= USEFUL * total:
            break
        # of those that remove as much, the one that is most apart from what there is
        apart = torch.stack([least for _, least in bases])
        best = int(torch.where(removed >= (1 - 1e-6) * removed.max(), apart, -1.0).argmax())
        chosen.append(best)
        basis, _ = bases[best]
        left = left - basis @ (basis.mT @ left)
        rest = [part - basis @ (basis.mT @ part) for part in rest]
    return chosen


def _basis(columns: Tensor) -> tuple[Tensor, Tensor]:
    """An orthonormal basis of columns that are not tiny, and the least of their sizes."""
    left, values, _ = torch.linalg.svd(columns, full_matrices=False)
    large = values > 1e-6 * len(columns) ** 0.5
    least = values[large].amin() if bool(large.any()) else values.new_zeros(())
    return left[:, large], least
