"""The smallest linear machine that reads given words as another one does: balanced truncation.

A machine h_t = A(x_t) h_{t-1}, z_t = C h_t is seen by words through two Gramians,

    G_r = mean of h_t h_t^T over all words and t >= 1      (what can be reached)
    G_o = mean over the same of the sum, over all later scored positions, of
          (C A(x_T) .. A(x_{t+1}))^T (C A(x_T) .. A(x_{t+1}))     (what can be observed)

The singular values of G_o^(1/2) G_r^(1/2), which no change of coordinates alters, are those of
the matrix of the logits of all prefixes and suffixes (its Hankel matrix). A direction whose value
is zero is never reached, or never observed: it can be left out. In *balanced* coordinates both
Gramians are the diagonal matrix of these values; for words of a group, all of whose states are
equally likely, operators are then orthogonal, up to what the rounding of weights can do least to.

*Coordinates in which operators are sparse.* Rounding adds to a state what the entries of operators
are, and CP factors need a term for each of them at most, so few entries are good for both. Two
changes of coordinates, which change no answer, make them few. Where every label has one state, and
these are as many as there are coordinates, they become the unit vectors: operators then have a
single one in every column (`at_labels`). And where operators are orthogonal in some inner product,
it is the mean of I seen through all words, and coordinates in which a symmetric matrix that
commutes with all operators is diagonal split them into blocks (`in_blocks`): a generic such matrix
has an eigenspace for every irreducible part, and is the mean of any one turned by all words.

Sources: Moore (1981), IEEE Transactions on Automatic Control 26 (balanced truncation); Balle,
Panangaden & Precup (2015), arXiv:1501.06841 (weighted automata).

V symbols, B words, T time, H hidden, K kept, C labels. Tensors are float64.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from statetrack.ops import dense_recurrence
from statetrack.training.words import Words

GAP = 3.0
"""How many times smaller the first singular value that is left out is than the last one kept."""

AT_ONCE = 32
"""Words whose products are held at once: those of all words do not fit into a processor's cache."""

MOST_ROUNDS = 1000
"""Rounds of a mean over words of all lengths; each also keeps half of what it was."""

SETTLED = 1e-12
"""A mean is found where a round changes it by less, relative to its size."""

EXACT = 1e-6
"""By how much states of one label, or operators from orthogonal ones, may be off."""

TURNS = 3
"""How often blocks are found again from evenly spaced eigenvalues, which tell them apart best."""

SAME = 1e-6
"""Eigenvalues that differ by a smaller share of all of their range are those of one block."""

STARTS_OUTSIDE = 0.1
"""The share of what is observed of the first state, beyond which it has a direction of its own."""


@dataclass(frozen=True)
class LinearMachine:
    """Operators [V, K, K], the first state [K] and the readout [C, K] of a linear machine."""

    operators: Tensor
    first: Tensor
    readout: Tensor

    @property
    def size(self) -> int:
        """The number K of coordinates of a state."""
        return len(self.first)

    def beside(self, other: LinearMachine) -> LinearMachine:
        """The same machine in the coordinates in which it is closest to another one of its size.

        They are those of the T with the least squares of T A(x) - B(x) T, T h - k and C - D T,
        where B, k and D belong to the other machine.
        """
        size, identity = self.size, torch.eye(self.size, dtype=self.first.dtype)
        # rows of equations for T, row by row: X T Y is kron(X, Y^T)
        of_first = torch.kron(identity, self.first.unsqueeze(0))
        of_readout = torch.kron(other.readout, identity)
        rows, right = [of_first, of_readout], [other.first, self.readout.flatten()]
        for mine, theirs in zip(self.operators, other.operators, strict=True):
            rows.append(
                torch.kron(identity, mine.mT.contiguous())
                - torch.kron(theirs.contiguous(), identity)
            )
            right.append(torch.zeros(size * size, dtype=self.first.dtype))
        # by the normal equations, which are small; T need not be exact, only close
        normal = self.first.new_zeros(size * size, size * size)
        projected = self.first.new_zeros(size * size)
        for row, value in zip(rows, right, strict=True):
            normal, projected = normal + row.mT @ row, projected + row.mT @ value
        return self.changed(torch.linalg.solve(normal, projected).view(size, size))

    def changed(self, change: Tensor) -> LinearMachine:
        """The same machine in the coordinates T h, for an invertible T."""
        back = torch.linalg.inv(change)
        return LinearMachine(
            change @ self.operators @ back, change @ self.first, self.readout @ back
        )


@dataclass(frozen=True)
class Coordinates:
    """K coordinates of states of H: `read` [K, H] finds them, `write` [H, K] makes the state.

    `values` [K] are the singular values of the directions that are kept; `first` [K] is the first
    state whose answers are closest to those of the machine's own.
    """

    read: Tensor
    write: Tensor
    values: Tensor
    first: Tensor

    def of(self, machine: LinearMachine) -> LinearMachine:
        """The machine in these coordinates; the parts of states outside them are left out."""
        return LinearMachine(
            self.read @ machine.operators @ self.write,
            self.first,
            machine.readout @ self.write,
        )


def seen_coordinates(machine: LinearMachine, words: Words) -> Coordinates:
    """Balanced coordinates of what words [B, T] show of a machine.

    The largest gap between two singular values says how many there are; all of them, where no
    value is `GAP` times smaller than the one before it.
    """
    reached, observed, observed_later = _gramians(machine, words)
    coordinates = _balanced(reached, observed, machine.first, observed_later)
    # Nothing is asked before the first symbol: whether the first state needs a direction that no
    # later state has, only its later answers say.
    outside = machine.first - coordinates.write @ coordinates.first
    part = outside @ observed_later @ outside
    if part > STARTS_OUTSIDE**2 * (machine.first @ observed_later @ machine.first):
        whole = reached + torch.outer(machine.first, machine.first) / words.symbols.shape[1]
        return _balanced(whole, observed, machine.first, observed_later)
    return coordinates


def _balanced(
    reached: Tensor, observed: Tensor, first: Tensor, observed_later: Tensor
) -> Coordinates:
    """Balanced coordinates up to the largest gap between two singular values."""
    reaching, observing = _root(reached), _root(observed)
    left, values, right = torch.linalg.svd(observing.mT @ reaching)
    values = values.clamp(min=torch.finfo(values.dtype).tiny)
    floor = values[0] * 1e-12
    ratios = values[:-1].clamp(min=floor) / values[1:].clamp(min=floor)
    gap = len(ratios) > 0 and float(ratios.max()) >= GAP
    size = int(ratios.argmax()) + 1 if gap else len(values)
    kept = values[:size]
    read = (observing @ left[:, :size] / kept.sqrt()).mT
    write = reaching @ right.mT[:, :size] / kept.sqrt()
    answers = _root(observed_later).mT
    start = torch.linalg.lstsq(answers @ write, answers @ first, driver="gelsd").solution
    return Coordinates(read, write, kept, start)


def _root(gramian: Tensor) -> Tensor:
    """A matrix R with R R^T = the Gramian."""
    values, vectors = torch.linalg.eigh(gramian)
    root: Tensor = vectors * values.clamp(min=0).sqrt()
    return root


def _gramians(machine: LinearMachine, words: Words) -> tuple[Tensor, Tensor, Tensor]:
    """G_r and G_o, and G_o of the first state, at which nothing is asked: each [H, H]."""
    symbols, scored = words.symbols, words.scored
    num_words = len(symbols)
    first = machine.first.expand(num_words, -1)
    states = dense_recurrence(machine.operators, symbols, first)  # [T, B, H]
    # what follows a word's last scored position is padding
    asked = scored.flip(1).cumsum(1).flip(1) > 0
    reached = states[asked.mT]
    observed = states.new_zeros(2, machine.size, machine.size)
    lengths, order = asked.sum(1).sort(stable=True)  # of words with as much padding as others
    for part in range(0, num_words, AT_ONCE):
        rows = order[part : part + AT_ONCE]
        observed += _observed(machine, words[rows, : int(lengths[part : part + AT_ONCE].max())])
    count = len(reached)
    return reached.mT @ reached / count, observed[0] / count, observed[1] / num_words


def _observed(machine: LinearMachine, words: Words) -> Tensor:
    """The sums of what is observed of all states of some words, and of their first: [2, H, H].

    Of every state it is R^T R, where R [N, H] are the later logits as functions of that state:
    these rows are kept where they are few, and otherwise the products.
    """
    symbols, scored = words.symbols, words.scored
    size, (num_words, length) = machine.size, symbols.shape
    readout = machine.readout
    if len(readout) > size:  # as many rows as coordinates say as much
        readout = torch.linalg.qr(readout, mode="r").R
    as_rows = len(readout) * (length + 1) < 2 * size
    at_once = readout if as_rows else readout.mT @ readout
    later = readout.new_zeros(num_words, 0 if as_rows else size, size)
    observed = readout.new_zeros(2, size, size)
    for t in range(length - 1, -1, -1):
        now = scored[:, t, None, None] * at_once
        now = torch.cat([later, now], dim=1) if as_rows else later + now
        observed[0] += _summed(now, as_rows)
        operators = machine.operators[symbols[:, t]]
        later = now @ operators if as_rows else operators.mT @ now @ operators
    observed[1] = _summed(later, as_rows)
    return observed


def _summed(observed: Tensor, as_rows: bool) -> Tensor:
    """The sum of R^T R over words: of rows R [B, N, H], or of the products [B, H, H]."""
    if not as_rows:
        return observed.sum(0)
    rows = observed.flatten(0, 1)
    return rows.mT @ rows


def at_labels(machine: LinearMachine, words: Words) -> Tensor | None:
    """The T that makes the state of every label a unit vector; None where there is none such."""
    first = machine.first.expand(len(words.symbols), -1)
    states = dense_recurrence(machine.operators, words.symbols, first).transpose(0, 1)
    labels, states = words.labels[words.scored], states[words.scored]
    size, num_labels = machine.size, len(machine.readout)
    counts = torch.bincount(labels, minlength=num_labels).double().unsqueeze(1)
    if num_labels != size or not bool(counts.all()):
        return None
    means = states.new_zeros(size, size).index_add_(0, labels, states) / counts
    spread = float((states - means[labels]).abs().max())
    if not spread <= EXACT * float(means.abs().max()):
        return None
    if not float(torch.linalg.cond(means)) < 1 / EXACT:
        return None
    change: Tensor = torch.linalg.inv(means.mT)
    return change


def in_blocks(machine: LinearMachine) -> Tensor | None:
    """The T in whose coordinates operators are orthogonal, in blocks; None where there is none."""
    operators, identity = machine.operators, torch.eye(machine.size, dtype=torch.float64)
    product = _mean_through(operators.mT, identity)
    root, failed = torch.linalg.cholesky_ex(product)
    if bool(failed):
        return None
    change = root.mT
    turned = machine.changed(change).operators
    if not float((turned.mT @ turned - identity).abs().max()) <= EXACT:
        return None
    # any matrix will do that tells all blocks apart: two of one eigenvalue would stay together
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(machine.size, machine.size, dtype=torch.float64, generator=generator)
    directions = identity
    for _ in range(TURNS):
        commuting = _mean_through(turned, values + values.mT)
        found, directions = torch.linalg.eigh(commuting)
        apart = found.diff() > SAME * (found[-1] - found[0]).clamp(min=1e-300)
        number = torch.cat([torch.zeros(1, dtype=torch.int64), apart.cumsum(0)])
        values = directions @ torch.diag(number.double()) @ directions.mT
    turned_to: Tensor = directions.mT @ change
    return turned_to


def _mean_through(operators: Tensor, value: Tensor) -> Tensor:
    """The mean of A_w X A_w^T over words w of all lengths, for X symmetric: [K, K]."""
    for _ in range(MOST_ROUNDS):
        later = (value + (operators @ value @ operators.mT).mean(0)) / 2
        moved = float((later - value).norm())
        value = (later + later.mT) / 2
        if not moved > SETTLED * float(value.norm()):
            break
    return value
