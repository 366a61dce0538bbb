"""Does any model of a family that is certified fail within its certified length?

Every family is a class of models with a proof of its own. Exact weights of it, written by hand, are
perturbed by numbers of several sizes, certified, and asked words of the certified length: powers of
short words, random ones, and for linear models those along which errors grow fastest. They are read
in pieces of several lengths, since scans in one piece round otherwise than steps do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from tests.evidence import networks, words
from tests.evidence.certificates import LINEAR, SATURATING, Case, _claimed, certificate_of
from tests.evidence.checks import Check
from tests.evidence.machines import Table

Builder = Callable[[np.random.Generator], Case]

CASES = 500
"""Perturbed models of every family."""

SIZES = (-7.0, -1.0)
"""The powers of ten between which the sizes of perturbations are drawn."""

FAR, FARTHER = 1_000, 70_000
"""Symbols to which words are read, of most models and of one in 32: beyond the longest piece."""

PIECES = (1000, 80, 65_536, 7)
"""Symbols that are read at once."""


def _with(name: str, build: Builder, **settings: object) -> Builder:
    """The models of a family with more settings, whose new weights are 0."""

    def made(draws: np.random.Generator) -> Case:
        case = build(draws)
        old = case.model
        fields = old.settings.model_dump() | settings
        kind: Any = type(old)
        model = kind(
            kind.settings_class(**fields), num_symbols=old.num_symbols, num_labels=old.num_labels
        )
        found = old.state_dict()
        with torch.no_grad():
            for key, weight in model.state_dict().items():
                weight.copy_(found.get(key, torch.zeros_like(weight)))
        more = tuple(key for key in model.state_dict() if key not in found)
        return replace(case, name=name, model=model.eval(), weights=case.weights + more)

    return made


def _in_float64(draws: np.random.Generator) -> Case:
    case = LINEAR[0](draws)
    return replace(case, name="rotations in float64", model=case.model.double())


def _in_rank_space(draws: np.random.Generator) -> Case:
    case = LINEAR[6](draws)
    model: Any = case.model
    model.running_operators = model.operators
    return replace(case, name="terms of rank one, in rank space")


def _signs(draws: np.random.Generator) -> Case:
    """Two parities by real gains."""
    delta = tuple(tuple(state ^ symbol for symbol in range(4)) for state in range(4))
    table = Table(delta, (0, 1, 2, 3))
    model = networks.blank("diagonal-real", table, 4, hidden=2)
    points = np.array([[1 - 2 * (s & 1), 1 - (s & 2)] for s in range(4)], float)
    networks.fill(model.gains, points)
    networks.fill(model.first, points[0])
    networks.fill(model.readout.weight, points)
    return Case("signs", table, model.eval(), ("gains", "first", "readout.weight"), points)


def _kept_numbers(draws: np.random.Generator) -> Case:
    """A number that a symbol keeps, turns around or sets, by real gains and terms."""
    table = Table(((0, 1, 0, 1), (1, 0, 0, 1)), (0, 1))
    model = networks.blank("diagonal-real", table, 2, hidden=1, additive="input", readout_bias=True)
    networks.fill(model.gains, np.array([[1.0], [-1.0], [0.0], [0.0]]))
    networks.fill(model.additive, np.array([[0.0], [0.0], [1.0], [-1.0]]))
    networks.fill(model.first, np.ones(1))
    networks.fill(model.readout.weight, np.array([[1.0], [-1.0]]))
    networks.fill(model.readout.bias, np.zeros(2))
    names = ("readout.weight", "readout.bias", "first")  # others leave the arithmetic that is known
    return Case("gains and terms", table, model.eval(), names)


def _complex_gains(draws: np.random.Generator) -> Case:
    exact = networks.planes(int(draws.choice([3, 5, 7])), (1, 2))
    model = networks.blank("diagonal-complex", exact.table, len(exact.readout), hidden=4)
    gains = exact.matrices[:, [0, 2], [0, 2]] + 1j * exact.matrices[:, [1, 3], [0, 2]]
    weight = next(each for key, each in model.named_parameters() if "gains" in key)
    networks.fill(weight, np.stack([gains.real, gains.imag], -1).reshape(weight.shape))
    networks.fill(model.first, exact.points[0])
    networks.fill(model.readout.weight, exact.readout)
    name = next(key for key, _ in model.named_parameters() if "gains" in key)
    weights = (name, "first", "readout.weight")
    return Case("complex gains", exact.table, model.eval(), weights, exact.points)


def _last_symbol(name: str) -> Builder:
    """A network of small recurrent weights that says which symbol was the last one."""

    def made(draws: np.random.Generator) -> Case:
        table = Table(tuple((0, 1, 2) for _ in range(3)), (0, 1, 2))
        torch.manual_seed(int(draws.integers(2**31)))
        model = networks.blank(name, table, 3, hidden=8).eval()
        with torch.no_grad():
            for key, weight in model.named_parameters():
                weight.mul_(0.3 if "hh" in key or "transition" in key else 1.0)
            asked = torch.from_numpy(draws.integers(3, size=(256, 6)))
            kept: list[torch.Tensor] = []
            hook = model.readout.register_forward_hook(lambda _, given, __: kept.append(given[0]))
            model(asked)
            hook.remove()
            states = kept[0].reshape(-1, kept[0].shape[-1]).double()
            order = asked if kept[0].shape[:2] == asked.shape else asked.T
            wanted = torch.nn.functional.one_hot(order.reshape(-1), 3).double()
            whole = torch.cat([states, torch.ones_like(states[:, :1])], 1)
            found = torch.linalg.lstsq(whole, wanted, driver="gelsd").solution.T
            model.readout.weight.copy_(4 * found[:, :-1])
            model.readout.bias.copy_(4 * found[:, -1])
        weights = tuple(key for key, _ in model.named_parameters())
        return Case(f"last symbol, {name}", table, model, weights)

    return made


FAMILIES: dict[str, Builder] = {
    "rotations": LINEAR[0],
    "rotations in float64": _in_float64,
    "blocks": LINEAR[1],
    "blocks of S3": LINEAR[2],
    "dense": LINEAR[4],
    "dense, of a group": LINEAR[5],
    "dense, with a bias": _with("biased", LINEAR[4], readout_bias=True),
    "dense, with terms": _with("with terms", LINEAR[5], additive="input"),
    "factors": LINEAR[6],
    "factors in rank space": _in_rank_space,
    "real gains": _signs,
    "real gains with terms": _kept_numbers,
    "complex gains": _complex_gains,
    "tanh": SATURATING[0],
    "rnn": _last_symbol("rnn"),
    "gru": _last_symbol("gru"),
    "lstm": _last_symbol("lstm"),
    "second-order-rnn": _last_symbol("second-order-rnn"),
}


def soundness(
    cases: int, seconds: float, first_seed: int = 0, families: Sequence[str] = tuple(FAMILIES)
) -> Iterator[Check]:
    """Families, so many perturbed models of each; a family's do not depend on the others."""
    for name in families:
        build = FAMILIES[name]
        check = Check(f"no perturbed model fails within its certified length: {name}")
        for number in range(cases):
            attack(check, build, number, seconds, first_seed)
        yield check


def attack(check: Check, build: Builder, number: int, seconds: float, first_seed: int) -> None:
    """Perturb a model, certify it, and ask it words of its certified length."""
    draws = np.random.default_rng([first_seed, number])
    case = build(draws)
    size = float(10 ** draws.uniform(*SIZES))
    if any(key.startswith("network") for key in case.weights):
        size *= 10  # saturated units
    chosen = case.weights if number % 3 == 0 else case.weights[:1]
    networks.perturbed(case.model, size, draws, *chosen)
    found = certificate_of(case.model, case.table, seconds)
    claimed = _claimed(found)
    check.add(found.verdict)
    if not claimed:
        return
    length = int(min(claimed, FARTHER if number % 32 == 0 else FAR))
    asked = worst(case, draws, length)
    if length > FAR:
        asked = asked[:: len(asked) // 6]
    piece = PIECES[number % len(PIECES)] if length <= FAR else PIECES[2]
    errors = words.first_errors(case.model, case.table, asked, piece)
    check.note("longest word", length)
    check.add("words", len(asked))
    first = int(errors[errors > 0].min()) if errors.any() else 0
    detail = f"seed {first_seed} {number}, size {size:.1e}, certified {claimed}, fails at {first}"
    check.case(not first, detail)


def worst(case: Case, draws: np.random.Generator, length: int) -> words.Words:
    """Words of a length that are most likely to fail: [B, T]."""
    symbols = case.table.num_symbols
    tried = [words.powers(words.short_words(symbols, 3, 24, draws), length)]
    tried.append(draws.integers(symbols, size=(8, length)))
    if case.points is not None:
        matrices = matrices_of(case.model)
        points = case.points
        if matrices.shape[1] == points.shape[1]:
            spoilt = words.spoiling_words(matrices, points, case.table, min(length, 300), beam=6)
            tried.append(words.powers(list(spoilt), length))
    return np.concatenate(tried)


@torch.no_grad()
def matrices_of(model: Any) -> networks.Floats:
    """The operators of a linear model as matrices, in float64."""
    found: networks.Floats = model.operators().dense().double().numpy()
    return found
