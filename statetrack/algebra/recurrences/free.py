"""One layer of linear operators that are free parameters, or can be those of any automaton.

Dense, block-diagonal and factored ones; affine maps, transition matrices, and one-hot columns
times gains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from statetrack.algebra.prediction import Need, Prediction, Size
from statetrack.algebra.recurrences.base import (
    BILINEAR,
    OWN,
    Additive,
    LinearRecurrence,
    beyond_tc0,
    granted,
    robustness,
    undecided,
)
from statetrack.algebra.recurrences.gains import ComplexLayers

if TYPE_CHECKING:
    from statetrack.algebra.analysis import Algebra
    from statetrack.algebra.smallest_spaces import ChosenSpace


@dataclass(frozen=True, kw_only=True)
class Dense(LinearRecurrence):
    """A matrix for every symbol: any automaton, with at most one dimension for each state.

    A readout with a bias has the constant for nothing, so a width that is the smallest for one
    without need not be; but the constant tells no states apart, and numbers commute with it too.
    `reads_product` says whether the readout sees the whole product of the matrices: that is as many
    copies of the same operators as it has columns.
    """

    equation: ClassVar[str] = "h_t = A(x_t) h_{t-1}, with any matrix for each symbol"
    rule: ClassVar[str] = (
        "every automaton, with one dimension for each state at most; of groups, the "
        "dimensions of parts of the representation that tell labels apart"
    )

    size: Size
    additive: Additive = "none"
    readout_bias: bool = False
    reads_product: bool = False
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """The smallest representation of a group, or space of functions of the states."""
        what = (
            "a real representation that distinguishes the labels, with irreducible parts"
            if algebra.is_group
            else "functions of the states that symbols map into each other and that give the "
            "labels, a space"
        )
        choice = algebra.representation or (None if algebra.is_group else algebra.narrowest)
        return _constructed(algebra, self.size, choice, what, self._least(algebra))

    def _least(self, algebra: Algebra) -> int | None:
        """A width below which none does while products are bounded; None where none is known."""
        if self.additive != "none":
            return None
        if algebra.is_group:
            choice, space = algebra.representation, algebra.space
            if choice is None or space is None or not choice.smallest:
                return None
            free = self.readout_bias and not space.labels.tell_states_apart
            return None if free else choice.cost
        if self.readout_bias or self.reads_product:
            return 2 if algebra.order_matters else None
        return algebra.width_bounds.width


@dataclass(frozen=True, kw_only=True)
class Blocks(LinearRecurrence):
    """A block-diagonal matrix for every symbol.

    `linear_readout` says whether the readout is linear in the state. Where it is not, the argument
    by averaging does not apply, and smaller blocks may do. A bias of it is one more block, of size
    1, that every symbol leaves as it is.
    """

    equation: ClassVar[str] = (
        "h_t = blockdiag(A_1(x_t), .., A_N(x_t)) h_{t-1}, with blocks of size b"
    )
    rule: ClassVar[str] = (
        "every automaton, where b is at least the largest part of the representation that "
        "tells labels apart"
    )

    size: Size
    additive: Additive = "none"
    linear_readout: bool = True
    structure: str = "blocks of size b"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """The largest part of a representation of a group, or space of functions of the states."""
        plain = self.additive == "none" and self.linear_readout
        if not algebra.is_group:
            what = (
                "one block for each of several spaces of functions of the states, each of which "
                "symbols map into itself, and that together give the labels,"
            )
            least = algebra.width_bounds.block if plain else None
            return _constructed(algebra, self.size, algebra.smallest_blocks, what, least)
        space = algebra.space
        choice = None if space is None else space.with_smallest_largest(space.dimensions)
        what = (
            "one block for each irreducible part of a real representation that distinguishes the "
            "labels,"
        )
        known = plain and choice is not None and choice.smallest
        return _constructed(algebra, self.size, choice, what, None, smallest=known)


@dataclass(frozen=True, kw_only=True)
class Factored(LinearRecurrence):
    """A sum of K terms a b^T for every symbol, with gains that depend on the symbol.

    After the first symbol the state lies in the span of the K columns a, which every symbol maps
    into itself: K is at least the width of a model with any matrices.
    """

    equation: ClassVar[str] = "h_t = W_1 diag(g(x_t)) W_2^T h_{t-1}, with K gains for each symbol"
    rule: ClassVar[str] = (
        "every automaton, where K is at least the tensor rank of its matrices, which is bounded "
        "from both sides; never less than the width of matrices without structure"
    )

    rank: Size
    additive: Additive = "none"
    readout_bias: bool = False
    structure: str = "matrix of rank K"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """The smallest number of terms that a known construction needs."""
        width, _, _ = _linear_width(algebra)
        full = Dense(size=self.rank, additive=self.additive, readout_bias=self.readout_bias)
        width_needed = full.predict(algebra).needs[0]
        least = width_needed.least
        if not algebra.is_group:
            width = width_needed.value or width
        moves, square = algebra.num_moves, width * width
        if square < moves:
            why, size = f"{square} terms a b^T span all matrices of size {width} x {width}", square
        else:
            why, size = "one term a b^T for each pair of a state and a next state", moves
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.ranks)
        if not choice or choice.cost > size:
            return granted(algebra, why, BILINEAR, self.rank.at_least(size, least=least))
        parts = (
            "terms a b^T that span the operators of a real representation with irreducible parts "
            f"of dimension {dimensions_of(choice)}"
        )
        return granted(algebra, parts, OWN, self.rank.at_least(choice.cost, least=least))


@dataclass(frozen=True, kw_only=True)
class Affine(LinearRecurrence):
    """A matrix and an added vector for every input, both linear in the block's input.

    The first state is 0. Let the S states be 0 for the first one and the S - 1 unit vectors for the
    others. These are the corners of a simplex, and every map of its corners is that of one affine
    map of the space; and for every corner some affine function is the largest there. So S - 1
    dimensions do any automaton. Of a group that moves its states, fewer do: the points of a
    representation, moved by minus the first one.

    Matrix and vector are linear in the embedding of the symbol, so the embeddings need as many
    dimensions as affinely independent symbols, or one for each number of matrix and vector; the
    state is added to the residual stream in H more. Without normalisation the logits are affine in
    the state.
    """

    equation: ClassVar[str] = (
        "h_t = A(x_t) h_{t-1} + b(x_t) from h_0 = 0, with A and b linear in the input of the block"
    )
    rule: ClassVar[str] = (
        "every automaton, with one dimension for each state but one; of groups that move "
        "their states, fewer"
    )

    hidden: Size
    width: Size
    gate_reads_state: bool = False
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with at most one dimension fewer than states."""
        hidden = max(algebra.num_states - 1, 1)
        why = "states as the corners of a simplex, the first one at 0; symbols as affine maps"
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.dimensions)
        if choice and choice.cost < hidden:
            hidden = choice.cost
            why = "a real representation that distinguishes the labels, its first point moved to 0"
        symbols = len(algebra.machine.actions)
        width = min(symbols - 1, hidden * (hidden + 1)) + hidden
        needs = (self.hidden.at_least(hidden), *unmet(self.width.at_least(width)))
        found = granted(algebra, why, OWN, *needs)
        return replace(found, robust="unknown") if self.gate_reads_state else found


@dataclass(frozen=True, kw_only=True)
class TransitionMatrices(LinearRecurrence):
    """Matrices that can be those of any symbol of an automaton, with a coordinate for each state.

    States are unit vectors, and the matrix of a symbol has a 1 in each column, in the row of the
    state that the column's state goes to.

    With `from_zero` the first state is 0 and every step adds a function B(x) of its input. One
    more coordinate, the constant c, makes up for both: the row of c is 0 and B(x) adds 1 to it, so
    c = 1 after the first symbol. B(x) also adds the unit vector of the state that x leads to from
    the start, and the column of c has -1 in that row: it takes the addition back at every step but
    the first, at which c was still 0.

    `dictionary` is the number of matrices to choose from, where they are not made anew for each
    input; one is needed for each different action of a symbol.
    """

    equation: ClassVar[str] = (
        "h_t = A(x_t) h_{t-1} (+ b(x_t)), with matrices that move unit vectors to unit vectors"
    )
    rule: ClassVar[str] = "every automaton, with a coordinate for each state"

    state: Size
    from_zero: bool = False
    dictionary: Size | None = None
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton; whether fewer coordinates suffice is not said."""
        needs = [self.state.at_least(algebra.num_states + self.from_zero)]
        if self.dictionary is not None:
            needs.append(self.dictionary.at_least(len(algebra.machine.actions)))
        why = "states as unit vectors, symbols as their transition matrices"
        return granted(algebra, why, OWN, *needs)


@dataclass(frozen=True, kw_only=True)
class OneHotTimesDiagonal(LinearRecurrence):
    """A matrix with one-hot columns times a complex diagonal one, for every symbol (PD-SSM).

    The one-hot matrix has its ones at the largest entries of the columns of a mixture of matrices
    from a dictionary. A dictionary with a matrix for each action of a symbol gives every symbol its
    own; with one matrix alone, all symbols have the same, and what depends on the symbol is
    diagonal: with the identity, a layer of complex gains.

    With `rows`, the ones are at the largest entries of the rows and the diagonal matrix acts last.
    Where every symbol permutes the states, its permutation matrix has both forms; elsewhere a
    matrix with one-hot rows is the transpose of a map of states, so a product of them reads a word
    backwards, and no rule is known.
    """

    equation: ClassVar[str] = (
        "h_t = P(x_t) D(x_t) h_{t-1} + b(x_t), P from a dictionary with one-hot columns, D "
        "complex and diagonal"
    )
    rule: ClassVar[str] = (
        "every automaton, with a coordinate for each state and a matrix in the dictionary for"
        " each action of a symbol"
    )

    state: Size
    dictionary: Size
    layers: Size
    rows: bool = False
    structure: str = "one-hot columns x diagonal"
    eigenvalues: str = "modulus <= 1"

    def predict(self, algebra: Algebra) -> Prediction:
        """Any automaton, with one coordinate for each state and a matrix for each action."""
        actions = len(algebra.machine.actions)
        if self.dictionary.value == 1 and actions > 1:
            found = ComplexLayers(layers=self.layers).predict(algebra)
            if found.can == "no":
                found = beyond_tc0(algebra) or replace(found, can="unknown", witness=None)
            why = f"a dictionary of one matrix leaves complex gains: {found.theorem}"
            return replace(found, theorem=why, robust=robustness(algebra))
        if self.rows and not algebra.is_group:
            why = "matrices with one-hot rows are maps of states where symbols permute them alone"
            return undecided(algebra, why)
        return granted(
            algebra,
            "one layer whose states are unit vectors simulates any automaton"
            + (" whose symbols permute the states" if self.rows else "")
            + ", with a matrix of the dictionary for each action of a symbol",
            "Terzic et al. 2025, arXiv:2509.22284",
            self.state.at_least(algebra.num_states),
            *unmet(self.dictionary.at_least(actions)),
        )


def dimensions_of(choice: ChosenSpace) -> str:
    """`3`, or `2 + 3`, or, of more than six parts, each dimension once."""
    sizes = sorted(part.dimension for part in choice.parts)
    return " + ".join(map(str, sizes if len(sizes) <= 6 else sorted(set(sizes))))


def _constructed(
    algebra: Algebra,
    setting: Size,
    choice: ChosenSpace | None,
    what: str,
    least: int | None,
    *,
    smallest: bool = False,
) -> Prediction:
    """Yes: by a choice of parts, or by what suffices for any automaton where that takes less.

    `least` is a size below which none does; `smallest` says that it is that of the choice.
    """
    size, why, source = _linear_width(algebra)
    margin = None
    if choice and choice.cost <= size:
        size, source, margin = choice.cost, OWN, choice.readout.margin
        why = f"{what} of dimension {dimensions_of(choice)}"
        least = size if smallest else least
    need = setting.at_least(size, least=least)
    return granted(algebra, why + _bounded(size, least), source, need, margin=margin)


def _linear_width(algebra: Algebra) -> tuple[int, str, str]:
    """A number of dimensions that suffices for any automaton, with the reason and its source."""
    states, linear = algebra.num_states, algebra.linear_dimension
    if linear is not None and linear < states:
        return linear, "the rank of the labels' Hankel matrix", "Carlyle and Paz 1971"
    why = "states as unit vectors, symbols as their transition matrices"
    return states, why, f"Proposition 1 of {BILINEAR}"


def _bounded(size: int, least: int | None) -> str:
    if least is None or least == 1:
        return ""
    fewer = "no less suffices" if least == size else f"less than {least} does not suffice"
    return f"; {fewer} while products are bounded (averaging)"


def unmet(*needs: Need) -> tuple[Need, ...]:
    """Needs beside the one that counts most: told where the model has too little."""
    return tuple(need for need in needs if need.met != "yes")
