"""One layer with operators that are free parameters: dense, block-diagonal, factored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from statetrack.algebra.prediction import Prediction, Size
from statetrack.algebra.recurrences.base import (
    BILINEAR,
    OWN,
    Additive,
    LinearRecurrence,
    robustness,
)

if TYPE_CHECKING:
    from statetrack.algebra.analysing import Algebra
    from statetrack.algebra.smallest_spaces import Choice


@dataclass(frozen=True, kw_only=True)
class Dense(LinearRecurrence):
    """A matrix for every symbol: any automaton, with at most one dimension for each state.

    A readout with a bias has the constant for nothing, so a width that is the smallest for one
    without need not be; but the constant tells no states apart, and numbers commute with it too.
    `reads_product` says whether the readout sees the whole product of the matrices: that is as many
    copies of the same operators as it has columns.
    """

    size: Size
    additive: Additive = "none"
    readout_bias: bool = False
    reads_product: bool = False
    structure: str = "any matrix"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """The smallest representation of a group, or space of functions of the states."""
        size, why, source = _linear_width(algebra)
        least = self._least(algebra)
        any_task = Prediction(
            "yes",
            why + _bounded(size, least),
            source,
            (self.size.at_least(size, least=least),),
            robust=robustness(algebra),
        )
        choice = algebra.representation or (None if algebra.is_group else algebra.narrowest)
        if not choice or choice.cost > size:
            return any_task
        what = (
            "a real representation that distinguishes the labels, with irreducible parts"
            if algebra.is_group
            else "functions of the states that symbols map into each other and that give the "
            "labels, a space"
        )
        return replace(
            any_task,
            theorem=f"{what} of dimension {dimensions_of(choice)}" + _bounded(choice.cost, least),
            source=OWN,
            needs=(self.size.at_least(choice.cost, least=least),),
            margin=choice.readout.margin,
        )

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

    size: Size
    additive: Additive = "none"
    linear_readout: bool = True
    structure: str = "blocks of size b"
    eigenvalues: str = "any"

    def predict(self, algebra: Algebra) -> Prediction:
        """The largest part of a representation of a group, or space of functions of the states."""
        size, why, source = _linear_width(algebra)
        plain = self.additive == "none" and self.linear_readout
        least = algebra.width_bounds.block if plain and not algebra.is_group else None
        one_block = Prediction(
            "yes",
            why + _bounded(size, least),
            source,
            (self.size.at_least(size, least=least),),
            robust=robustness(algebra),
        )
        if algebra.is_group:
            space = algebra.space
            choice = space and space.with_smallest_largest(space.dimensions)
            what = (
                "one block for each irreducible part of a real representation that distinguishes "
                "the labels,"
            )
        else:
            choice = algebra.smallest_blocks
            what = (
                "one block for each of several spaces of functions of the states, each of which "
                "symbols map into itself, and that together give the labels,"
            )
        if not choice or choice.cost > size:
            return one_block
        if algebra.is_group and choice.smallest and plain:
            least = choice.cost
        return replace(
            one_block,
            theorem=f"{what} of dimension {dimensions_of(choice)}" + _bounded(choice.cost, least),
            source=OWN,
            needs=(self.size.at_least(choice.cost, least=least),),
            margin=choice.readout.margin,
        )


@dataclass(frozen=True, kw_only=True)
class Factored(LinearRecurrence):
    """A sum of K terms a b^T for every symbol, with gains that depend on the symbol.

    After the first symbol the state lies in the span of the K columns a, which every symbol maps
    into itself: K is at least the width of a model with any matrices.
    """

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
        needs = (self.rank.at_least(size, least=least),)
        prediction = Prediction("yes", why, BILINEAR, needs, robust=robustness(algebra))
        choice = algebra.space and algebra.space.with_smallest_sum(algebra.space.ranks)
        if not choice or choice.cost > size:
            return prediction
        parts = (
            "terms a b^T that span the operators of a real representation with irreducible parts "
            f"of dimension {dimensions_of(choice)}"
        )
        needs = (self.rank.at_least(choice.cost, least=least),)
        return replace(prediction, theorem=parts, source=OWN, needs=needs)


def dimensions_of(choice: Choice) -> str:
    """`3`, or `2 + 3`, or, of more than six parts, each dimension once."""
    sizes = sorted(part.dimension for part in choice.parts)
    return " + ".join(map(str, sizes if len(sizes) <= 6 else sorted(set(sizes))))


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
