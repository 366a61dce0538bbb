"""The third part: attacks on every *cannot*, and on sizes that are said to be the smallest.

One task for each variant of a model and each reason given, the one with the fewest states. The real
model is drawn with large weights and run on words that the reason names; then it is trained on such
words, and on random ones, and run on longer ones. An attack succeeds where every answer is right on
words of up to 10,000 symbols.

B words, T time.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Algebra
from statetrack.constructions import leads_of
from statetrack.errors import StatetrackError
from statetrack.models import MODELS
from statetrack.predicting import predict
from statetrack.settings import Settings, build
from statetrack.sources import Automaton, Integers
from tests.claims.cells import Cell, algebra_of, automaton_of
from tests.claims.words import hard_words

TRAINED_LENGTH = 16
NUM_WORDS = 12
STEPS = 100
SEEDS = 1
RATE = 1e-2
BEYOND = (60, 300, 2_000, 10_000)
"""Lengths that answers are checked at, one after the other, as long as all are right."""

SMALL_SIZES = {"width": 16, "heads": 2, "state": 8, "key_dim": 8, "value_dim": 8, "layers": 2}
"""Values of settings, where a model has them and the claim holds for them too."""

MOST_STATES = 60
"""Tasks with more states are not attacked: the reasons given for them are given for others."""

MOST_ELEMENTS = 2_000
"""Words that are tried for one whose powers cycle."""


@dataclass(frozen=True)
class Target:
    """A claim to attack: a model with these settings cannot track a task."""

    cell: Cell
    settings: Settings
    claim: str


@dataclass(frozen=True)
class Attack:
    """What an attack came to: the greatest length up to which every answer was right."""

    target: Target
    trained_right: float
    """The part of answers that was right on the training words."""
    right_up_to: int
    succeeded: bool

    @property
    def cell(self) -> Cell:
        """The cell that the claim is about."""
        return self.target.cell

    @property
    def detail(self) -> str:
        """One line: the claim, and how far answers were right."""
        return (
            f"{self.target.claim}: {self.trained_right:.3f} right in training, all right up to "
            f"{self.right_up_to} symbols"
        )

    def to_json(self) -> dict[str, Any]:
        """The attack as plain values."""
        return {
            "model": self.cell.variant.name,
            "task": self.cell.task,
            "claim": self.target.claim,
            "trained_right": round(self.trained_right, 3),
            "right_up_to": self.right_up_to,
            "succeeded": self.succeeded,
        }


def chosen_targets(found: Iterable[Cell]) -> list[Target]:
    """One target for each variant and each reason for *cannot*, or each smallest size."""
    best: dict[tuple[str, str], tuple[int, Target]] = {}
    for cell in found:
        states = algebra_of(cell.task).num_states
        if states > MOST_STATES:
            continue
        for target in _targets(cell):
            key = (cell.variant.name, _reason(target, cell))
            if key not in best or states < best[key][0]:
                best[key] = (states, target)
    return [target for _, target in best.values()]


def _targets(cell: Cell) -> list[Target]:
    """The claims of one cell, with small settings under which they are made too."""
    if cell.prediction.can == "no":
        settings = _small(cell, {}, "no")
        return [] if settings is None else [Target(cell, settings, "cannot")]
    found = []
    for need in cell.prediction.needs:
        if cell.prediction.can == "yes" and need.smallest and need.value and need.value > 1:
            settings = _small(cell, {need.setting: need.value - 1}, "no")
            if settings is not None:
                claim = f"{need.setting} = {need.value - 1} is too small"
                found.append(Target(cell, settings, claim))
    return found


def _small(cell: Cell, fixed: Mapping[str, Any], answer: str) -> Settings | None:
    """Small settings for which the answer is still this one; None where there are none."""
    kind = MODELS[cell.variant.model].settings_class
    options = {**fixed, **dict(cell.variant.options)}
    free = {k: v for k, v in SMALL_SIZES.items() if k in kind.model_fields and k not in options}
    if "block_size" in fixed and "hidden" in kind.model_fields:
        free["hidden"] = 12 * fixed["block_size"]
    algebra = algebra_of(cell.task)
    for chosen in (free, {k: v for k, v in free.items() if k != "layers"}, {}):
        try:
            settings = build(kind, {**chosen, **options}, cell.variant.model)
            _model_of(settings, cell)
        except StatetrackError:
            continue
        if predict(algebra, settings).answer == answer:
            return settings
    return None


def _reason(target: Target, cell: Cell) -> str:
    """The reason without the names of groups and numbers."""
    theorem = re.sub(r"the group \S+( x \S+)*|\d+", "", cell.prediction.theorem)
    return f"{re.sub(r'[0-9]+', '', target.claim)}: {theorem}"


def _model_of(settings: Settings, cell: Cell) -> Any:
    automaton = automaton_of(cell.task)
    return MODELS[cell.variant.model](
        settings, num_symbols=automaton.num_symbols, num_labels=automaton.num_labels
    )


def attack(target: Target, *, steps: int = STEPS, seeds: int = SEEDS) -> Attack:
    """Train the real model on short hard words, and see how far its answers are right."""
    automaton, algebra = automaton_of(target.cell.task), algebra_of(target.cell.task)
    best: Attack | None = None
    for seed in range(seeds):
        torch.manual_seed(seed)
        model = _model_of(target.settings, target.cell).double()
        words = _named_words(automaton, algebra, TRAINED_LENGTH, seed)
        right = _train(model, automaton, words, steps)
        reached = 0
        for length in BEYOND:
            few = NUM_WORDS if length < 1000 else 6
            longer = _named_words(automaton, algebra, length, seed + 1)[-few:]
            try:
                if not _all_right(model, automaton, longer):
                    break
            except StatetrackError:  # a model with learned positions reads no longer words
                break
            reached = length
        found = Attack(target, right, reached, reached == BEYOND[-1])
        if best is None or (found.right_up_to, found.trained_right) > (
            best.right_up_to,
            best.trained_right,
        ):
            best = found
    assert best is not None
    return best


def _named_words(automaton: Automaton, algebra: Algebra, length: int, seed: int) -> Integers:
    """Hard words, and powers of a word that cycles, where there is one and it can be drawn."""
    words = hard_words(automaton, NUM_WORDS, length, seed)
    cycle = word_that_cycles(algebra)
    if cycle is None:
        return words
    power = np.resize(np.array(cycle), length)
    states = np.append(automaton.start, automaton.states_after(power))[:-1]
    return np.vstack([words, power]) if automaton.drawable[states, power].all() else words


def word_that_cycles(algebra: Algebra) -> list[int] | None:
    """The symbols of a word whose powers go through states that labels tell apart."""
    apart, delta = algebra.machine.apart, algebra.machine.delta
    if apart is None:
        return None
    identity = np.arange(len(delta))
    known, fresh = {identity.tobytes()}, [(list[int](), identity)]
    while fresh and len(known) < MOST_ELEMENTS:
        longer = []
        for word, reached in fresh:
            for symbol, action in enumerate(delta.T):
                after = action[reached]
                if after.tobytes() in known:
                    continue
                known.add(after.tobytes())
                longer.append(([*word, symbol], after))
                settled = after
                for _ in range(len(after).bit_length()):
                    settled = settled[settled]
                if apart[settled, after[settled]].any():
                    return longer[-1][0]
        fresh = longer
    return None


def words_in_another_order(automaton: Automaton) -> tuple[Integers, Integers] | None:
    """Two drawn words with the same symbols and, both asked for, different labels."""
    for length in range(2, 6):
        found: dict[tuple[int, ...], tuple[Integers, int]] = {}
        for word in itertools.product(range(automaton.num_symbols), repeat=length):
            states = [automaton.start, *automaton.states_after(np.array(word)).tolist()]
            drawn = all(automaton.drawable[s, x] for s, x in zip(states, word, strict=False))
            if not drawn or not automaton.scored[states[-1]]:
                continue
            label = int(automaton.output[states[-1]])
            other, other_label = found.setdefault(tuple(sorted(word)), (np.array(word), label))
            if label != other_label:
                return other, np.array(word)
        if automaton.num_symbols**length > 20_000:
            break
    return None


def _train(model: nn.Module, automaton: Automaton, words: Integers, steps: int) -> float:
    """Adam on cross-entropy over whole words; gives the part of answers that is right at last."""
    labels, scored = automaton.read(words)
    symbols = torch.from_numpy(words.astype(np.int64))
    answers = torch.from_numpy(labels.astype(np.int64))
    asked = torch.from_numpy(np.ascontiguousarray(scored))
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    model.train()
    for _ in range(steps):
        logits: Tensor = model(symbols)
        loss = functional.cross_entropy(logits[asked], answers[asked])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    model.eval()
    with torch.no_grad():
        return float((leads_of(model(symbols), answers) > 0)[asked].double().mean())


def _all_right(model: Any, automaton: Automaton, words: Integers) -> bool:
    """Whether all answers on these words are right; stops at the first piece where one is not."""
    labels, scored = automaton.read(words)
    with torch.no_grad():
        if not hasattr(model, "initial_state"):
            return _right(model(torch.from_numpy(words.astype(np.int64))), labels, scored)
        state = model.initial_state(len(words))
        for begin in range(0, words.shape[1], 100):
            span = slice(begin, begin + 100)
            piece = torch.from_numpy(words[:, span].astype(np.int64))
            logits, state = model.scan(piece, state)
            if not _right(logits, labels[:, span], scored[:, span]):
                return False
    return True


def _right(logits: Tensor, labels: Sequence[Any] | np.ndarray, scored: np.ndarray) -> bool:
    answers = torch.from_numpy(np.asarray(labels).astype(np.int64))
    return bool((leads_of(logits, answers) > 0)[torch.from_numpy(scored.copy())].all())


# --- mechanisms: what the reasons say of every model of a class, whatever its weights ---


def settles(model: Any, word: Sequence[int], powers: int = 200) -> float:
    """How much logits still change, at the end of a word's powers: the largest difference.

    It is 0, to rounding, where states settle along the powers of every word.
    """
    symbols = torch.tensor([list(word) * powers])
    with torch.no_grad():
        ends = model(symbols)[0, len(word) - 1 :: len(word)]
    late = ends[3 * powers // 4 :]
    return float((late[1:] - late[:-1]).abs().max() / ends.abs().max().clamp_min(1e-300))


def with_large_weights(settings: Settings, cell: Cell, factor: float, seed: int) -> Any:
    """The real model in float64 with its initial weights times a factor."""
    torch.manual_seed(seed)
    model = _model_of(settings, cell).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model
