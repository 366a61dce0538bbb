"""The end of training: what no training word sees is removed, and the rest is solved for.

A linear model that answers every training word still has modes that no such word shows: their
amplitude is tiny, their eigenvalues are a little above 1, and after thousands of symbols they
decide. `realization` finds the directions that training words do show, by singular values alone;
`least_squares` solves the squared error in these few coordinates, by Gauss-Newton steps in float64,
and writes the result in factors where the model has them. Models of small blocks have no such
choice of coordinates: `blocks` finds those that keep a state of their own for every label, and
makes them agree on all transitions between labels. `finished` does all of it.

It reads words of the training lengths that the replica was trained on, and knows nothing else of
the task.

B words, T time, C labels.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from statetrack.models import Bilinear, BilinearBlock, BilinearCP, LinearModel, is_linear
from statetrack.ops import FactoredOperators
from statetrack.training.finish.blocks import exact_machine
from statetrack.training.finish.least_squares import (
    CLOSE,
    UndeterminedError,
    entries_of,
    factored,
    solved,
)
from statetrack.training.finish.realization import (
    Coordinates,
    LinearMachine,
    at_labels,
    in_blocks,
    seen_coordinates,
)
from statetrack.training.losses import height_of
from statetrack.training.settings import TrainSettings
from statetrack.training.words import Words

MOST_WORDS = 2048
"""Words that are read, the last of training."""
MOST_SYMBOLS = 1 << 15
"""Symbols of all these words, with padding."""
MOST_UNKNOWNS = 100_000
"""Numbers that are solved for: more would take minutes."""
LEARNED = 0.1
"""The largest share of the squared error of logits 0 from which a minimum of zero is near."""

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Finished:
    """A replica at the end: its parameters in float32; `kept` coordinates of its states are used.

    The losses are mean squared errors per scored position of the words that were read, in float64,
    before the new parameters are rounded. With `minimal`, they are brought to their minimum;
    otherwise something else was solved for, and the loss may be larger than it was.
    """

    weights: Weights
    kept: int
    loss_before: float
    loss_after: float
    minimal: bool


def obstacle(model: nn.Module, settings: TrainSettings) -> str:
    """Why a model's training cannot end with `finish='exact'`; empty where it can."""
    if not isinstance(model, Bilinear | BilinearCP | BilinearBlock) or not is_linear(model):
        return "its states have no free choice of coordinates"
    if not model.scale_invariant:
        return "it has additive terms or a bias in its readout"
    if model.embedding.vectors is not None:
        return "its symbols have learned embeddings"
    if not isinstance(model.first, nn.Parameter) or settings.freeze != "none":
        return "not all of it is trained"
    if settings.robust != "none":
        return f"robust training ({settings.robust}) minimises more than the loss"
    if height_of(settings) is None:
        return f"the loss {settings.loss} has no minimum that logits reach"
    return ""


@torch.no_grad()
def finished(model: nn.Module, words: Words, settings: TrainSettings) -> Finished | str:
    """A model with exact operators, as far as words [B, T] of its training show them.

    The result is deterministic; where there is none, the reason. `model` is not changed.
    """
    if reason := obstacle(model, settings):
        return reason
    assert isinstance(model, LinearModel)
    height = height_of(settings)
    assert height is not None
    exact = copy.deepcopy(model).to("cpu", torch.float64)
    words = Words(words.symbols.cpu(), words.labels.cpu(), words.scored.cpu())
    raised = height(settings, model.num_labels)
    chosen = torch.nn.functional.one_hot(words.labels, model.num_labels).double()
    targets = raised * (chosen - 1 / model.num_labels)
    # what is added to all logits alike changes no answer, and is no part of the targets
    exact.readout.weight -= exact.readout.weight.mean(0)
    before = _loss(exact, words, targets)
    if isinstance(exact, BilinearBlock):
        kept = _finish_blocks(exact, words, raised)
    else:
        kept = _finish_free(exact, words, targets, before)
    if isinstance(kept, str):
        return kept
    after = _loss(exact, words, targets)
    weights = {name: value.detach().float() for name, value in exact.named_parameters()}
    return Finished(weights, kept, before, after, not isinstance(exact, BilinearBlock))


def _finish_blocks(model: BilinearBlock, words: Words, height: float) -> int | str:
    """Give a model exact blocks; the coordinates in use, or why there are none."""
    blocks = model.operators().blocks
    first = model.first.detach().view(blocks.shape[1:3])
    found = exact_machine(blocks, first, words, model.num_labels, height)
    if isinstance(found, str):
        return found
    model.weight.copy_(found.blocks)
    model.first.copy_(found.first.flatten())
    model.readout.weight.copy_(found.readout.flatten(1))
    return found.kept


def _finish_free(model: LinearModel, words: Words, targets: Tensor, before: float) -> int | str:
    """Give a model the operators of the minimum; the coordinates in use, or why there are none."""
    if not before <= LEARNED * float(targets[words.scored].square().sum(-1).mean()):
        return f"a squared error of {before:.2g} on training words is too far from zero"
    machine = LinearMachine(model.operators().dense(), model.first.detach(), model.readout.weight)
    coordinates = seen_coordinates(machine, words)
    if (size := len(coordinates.values)) ** 2 * len(machine.operators) > MOST_UNKNOWNS:
        return f"training words show {size} dimensions of its states, more than can be solved for"
    begun = coordinates.of(machine)
    unknowns = sum(part.numel() for part in (begun.operators, begun.first, begun.readout))
    if unknowns > (equations := int(words.scored.sum()) * (model.num_labels - 1)):
        return (
            f"training words show {size} dimensions of its states, {unknowns:,} unknowns, and have "
            f"{equations:,} equations for them"
        )
    # one of many machines is as good as another, but hardly any is near a few factors
    determined = isinstance(model, BilinearCP)
    try:
        solution = solved(begun, words, targets, coordinates, determined=determined)
    except UndeterminedError:
        return (
            f"training words show {size} dimensions of its states, and do not determine the "
            "operators on them"
        )
    if isinstance(model, BilinearCP):
        _write_factors(model, solution, begun, words, coordinates)
    else:
        assert isinstance(model, Bilinear)
        model.weight.zero_()[:, :size, :size] = solution.operators
        _write_ends(model, solution)
    return size


def _loss(model: LinearModel, words: Words, targets: Tensor) -> float:
    """The mean squared error per scored position."""
    first = model.first.expand(len(words.symbols), -1)
    states = model.operators().recur(words.symbols, first).transpose(0, 1)
    errors = (states @ model.readout.weight.mT - targets).square().sum(-1)
    return float(errors[words.scored].mean())


def _write_factors(
    model: BilinearCP,
    solution: LinearMachine,
    begun: LinearMachine,
    words: Words,
    coordinates: Coordinates,
) -> None:
    """Give a model factors of the solution, in coordinates in which they are few, if there are.

    Factors that are fitted begin with its own: those of the coordinates in which the solution is
    closest to the machine that it began with.
    """
    rank, size = model.gains.shape[1], solution.size
    near = FactoredOperators(
        coordinates.read @ model.left, model.gains, coordinates.write.mT @ model.right
    )
    changes = [at_labels(solution, words), in_blocks(solution)]
    machines = [solution.changed(change) for change in changes if change is not None]
    few = [each for each in machines if int(entries_of(each.operators).any(0).sum()) <= rank]
    if few:
        solution = few[0]
    else:
        solution = solution.beside(begun)
        change = at_labels(solution, words)
        if change is not None:
            solution = solution.changed(change)
            right = torch.linalg.solve(change.mT, near.right)
            near = FactoredOperators(change @ near.left, near.gains, right)
    factors = factored(solution.operators, near)
    model.left.zero_()[:size] = factors.left
    model.right.zero_()[:size] = factors.right
    model.gains.copy_(factors.gains)
    _write_ends(model, solution)


def _write_ends(model: LinearModel, solution: LinearMachine) -> None:
    """Give a model a solution's first state and readout, in its first coordinates.

    Numbers of the first state that float32 rounds away beside its largest are zero.
    """
    size, first = solution.size, solution.first
    shown = first.abs() > CLOSE * first.abs().max()
    model.first.zero_()[:size] = first * shown
    model.readout.weight.zero_()[:, :size] = solution.readout
