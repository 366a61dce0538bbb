"""Is a certified length ever beyond a word that the network gets wrong?

Exact models are built by hand and their weights perturbed; then words are sought that they get
wrong, in float32 as the program runs them, and for the length in exact arithmetic in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.models import MODELS, RecurrentModel
from statetrack.ops import FLOAT32, Box
from tests.evidence import machines, networks, words
from tests.evidence.checks import Check
from tests.evidence.machines import Table

SIZES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
FAR = 10**9


@dataclass(frozen=True)
class Case:
    """An exact model, the names of the weights to perturb, and its exact matrices if linear."""

    name: str
    table: Table
    model: RecurrentModel
    weights: tuple[str, ...]
    points: networks.Floats | None = None


def _linear(exact: networks.Linear, block: int = 0) -> Case:
    model = exact.block_model(block) if block else exact.model()
    weights = ("weight", "first", "readout.weight")
    return Case(exact.name, exact.table, model, weights, exact.points)


def _rotations(draws: np.random.Generator) -> Case:
    order = int(draws.choice([3, 5, 7]))
    harmonics = tuple(sorted({1, int(draws.integers(1, order))}))
    exact = networks.planes(order, harmonics)
    model = networks.rotation_model(order, harmonics)
    return Case(exact.name, exact.table, model, ("angles",), exact.points)


def _planes(draws: np.random.Generator) -> Case:
    order = int(draws.choice([3, 5, 7]))
    return _linear(networks.planes(order, (1, 2)), 2)


def _triangle(draws: np.random.Generator) -> Case:
    return _linear(networks.triangle(), 2)


def _machine(draws: np.random.Generator) -> Case:
    exact = networks.one_hot(machines.random_table(draws, int(draws.integers(3, 7)), 3, 3))
    return _linear(exact)


def _mixed_machine(draws: np.random.Generator) -> Case:
    exact = networks.one_hot(machines.random_table(draws, int(draws.integers(3, 6)), 2, 3))
    size = exact.points.shape[1]
    basis = np.linalg.qr(draws.normal(size=(size, size)))[0] * draws.uniform(0.5, 2, size)
    return _linear(networks.changed_basis(exact, basis))


def _mixed_group(draws: np.random.Generator) -> Case:
    elements = machines.symmetric(3)
    exact = networks.one_hot(machines.group_table(elements, elements[1:3]))
    basis = np.linalg.qr(draws.normal(size=(6, 6)))[0]
    return _linear(networks.changed_basis(exact, basis))


def _terms(draws: np.random.Generator) -> Case:
    table = machines.random_table(draws, 4, 2, 3)
    model = networks.factored_model(table)
    return Case("terms of rank one", table, model, ("left", "right", "gains"))


def _tanh(draws: np.random.Generator) -> Case:
    table = machines.random_table(draws, int(draws.integers(2, 6)), 2, 3)
    names = ("network.weight_hh_l0", "network.weight_ih_l0", "readout.weight")
    return Case("saturated units", table, networks.elman(table), names)


LINEAR: tuple[Callable[[np.random.Generator], Case], ...] = (
    _rotations,
    _planes,
    _triangle,
    _machine,
    _mixed_machine,
    _mixed_group,
    _terms,
)
SATURATING = (_tanh,)


def certificate_of(model: RecurrentModel, table: Table, seconds: float) -> Any:
    """What the program proves."""
    labels = model.num_labels
    return Certificate.search(
        Subject(model, table.automaton(labels)), budget=SearchBudget(seconds), seed=0
    )


def case_of(
    number: int,
    builders: tuple[Any, ...] = LINEAR,
    sizes: tuple[float, ...] = SIZES,
    *,
    first_seed: int = 0,
) -> tuple[Case, float]:
    """The perturbed model of a number, and the size of its perturbation."""
    draws = np.random.default_rng([first_seed, number])
    case = builders[number % len(builders)](draws)
    size = float(sizes[number // len(builders) % len(sizes)]) * float(draws.uniform(0.3, 1))
    chosen = case.weights[:1] if number % 3 else case.weights
    networks.perturbed(case.model, size, draws, *chosen)
    return case, size


def attack_exact(check: Check, seed: int, seconds: float, builders: tuple[Any, ...]) -> None:
    """Exact models are certified, and to a length that no word contradicts."""
    for build in builders:
        case = build(np.random.default_rng(seed))
        found = certificate_of(case.model, case.table, seconds)
        proven = found.verdict != "not proven"
        check.case(proven, f"{case.name}, exact: {found.verdict}: {found.reason}")


def attack_perturbed(
    check: Check,
    cases: int,
    seconds: float,
    builders: tuple[Any, ...] = LINEAR,
    *,
    sizes: tuple[float, ...] = SIZES,
    longest: int = 100_000,
    first_seed: int = 0,
) -> None:
    """Perturbed models are certified to less than the first failure of any word that is found."""
    for number in range(cases):
        case, size = case_of(number, builders, sizes, first_seed=first_seed)
        found = certificate_of(case.model, case.table, seconds)
        check.add(found.verdict)
        draws = np.random.default_rng([first_seed, number, 1])
        failed, failed_real = first_failures(case, draws, longest)
        what = f"{case.name}, seed {first_seed} {number}, size {size:.1e}: {found.verdict}"
        claimed = _claimed(found)
        if failed is not None:
            check.add("fails")
            held = claimed < failed
            detail = f"{what} {found.length}, and a word fails at {failed}"
            check.case(held, detail)
            if claimed:
                check.note("greatest ratio of failure to length", failed / claimed)
        else:
            check.case(True, what)
        real = _claimed_real(found)
        if failed_real is not None:
            detail = f"{what}, exact {real:g}, and a word fails at {failed_real}"
            check.case(real < failed_real, detail)
        check.case(claimed <= real, f"{what}: rounded {claimed}, exact {real}")


def _claimed(found: Any) -> float:
    if found.verdict == "all lengths":
        return float("inf")
    return float(found.length or 0)


def _claimed_real(found: Any) -> float:
    if found.verdict_real == "all lengths":
        return float("inf")
    return float(found.length_real or 0)


def first_failures(
    case: Case, draws: np.random.Generator, longest: int
) -> tuple[int | None, int | None]:
    """The first failure of any word that is tried, as implemented and in float64."""
    model, table = case.model.eval(), case.table
    symbols = table.num_symbols
    wide = _widened(model)
    matrices, points = None, case.points
    if points is not None:
        matrices = wide.operators().dense().detach().numpy()
    failed: int | None = None
    failed_real: int | None = None
    length = 50
    while length <= longest and failed is None:
        tried = [words.powers(words.short_words(symbols, 3, 30, draws), length)]
        tried.append(draws.integers(symbols, size=(10, length)))
        if matrices is not None and points is not None:
            spoilt = words.spoiling_words(matrices, points, table, min(length, 2000), beam=6)
            tried.append(words.powers(list(spoilt), length))
        batch = np.concatenate(tried)
        errors = words.first_errors(model, table, batch)
        if errors.any():
            failed = int(errors[errors > 0].min())
            near = batch[:, : min(length, 2 * failed)]
            errors = words.first_errors(wide, table, near)
            failed_real = int(errors[errors > 0].min()) if errors.any() else None
        length *= 8
    if failed_real is None and matrices is not None:
        failed_real = far_failure(wide, matrices, table, draws)
    return failed, failed_real


def _widened(model: RecurrentModel) -> Any:
    kind: Any = type(model)
    wide = kind(model.settings, num_symbols=model.num_symbols, num_labels=model.num_labels)
    wide.load_state_dict(model.state_dict())
    return wide.double().eval()


def far_failure(
    wide: Any, matrices: networks.Floats, table: Table, draws: np.random.Generator
) -> int | None:
    """A position at which a power of a short word is answered wrongly, in exact arithmetic.

    Powers by squaring, in float64, rescaled, so a failure counts only where it is by more than a
    millionth of the largest logit.
    """
    readout = wide.readout.weight.detach().numpy()
    first = wide.initial_state(1)[0].detach().numpy()
    found: int | None = None
    for period in words.short_words(table.num_symbols, 3, 12, draws):
        power = np.eye(len(first))
        for symbol in period:
            power = matrices[symbol] @ power
        repeats = 1
        action = _action(table, tuple(period.tolist()))
        moved = list(action)
        while repeats * len(period) < FAR:
            label = table.output[moved[table.start]]
            logits = readout @ (power @ first)
            own = logits[label]
            rival = np.delete(logits, label).max(initial=-np.inf)
            if rival > own + 1e-6 * np.abs(logits).max():
                position = repeats * len(period)
                found = position if found is None else min(found, position)
                break
            power = power @ power
            power /= np.abs(power).max()
            moved = [moved[state] for state in moved]
            repeats *= 2
    return found


def _action(table: Table, period: tuple[int, ...]) -> list[int]:
    """Where the word leads from every state."""
    ends = []
    for state in range(len(table.delta)):
        for symbol in period:
            state = table.delta[state][symbol]
        ends.append(state)
    return ends


BOXED = ("rnn", "gru", "lstm", "second-order-rnn")


@torch.no_grad()
def attack_boxes(check: Check, cases: int) -> None:
    """The state that a network reaches in float32 lies in the box of the state before it.

    Boxes of a single point hold nothing but rounding. Weights of any scale, from almost linear
    units to saturated ones.
    """
    for number in range(cases):
        draws = torch.Generator().manual_seed(number)
        name = BOXED[number % len(BOXED)]
        kind = MODELS[name]
        settings = kind.settings_class(hidden=1 + number % 40)
        torch.manual_seed(number)
        model: Any = kind(settings, num_symbols=3, num_labels=4).eval()
        scale = float(torch.empty(()).uniform_(-2, 4, generator=draws).exp())
        for parameter in model.parameters():
            parameter.mul_(scale)
        wide = _widened(model)
        state = model.initial_state(32)
        outside = beyond = 0
        for _ in range(20):
            symbols = torch.randint(3, (32,), generator=draws)
            labels = torch.randint(4, (32,), generator=draws)
            before = model.flat(state).double()
            logits, state = model.step(symbols, state)
            after = model.flat(state).double()
            box = wide.box_step(symbols, Box(before, before), FLOAT32)
            outside += int(((after < box.lower) | (after > box.upper)).sum())
            leads = logits.double() - logits.double().gather(1, labels[:, None])
            bound = wide.box_leads(Box(after, after), labels, FLOAT32)
            # the leads are differences of two rounded logits
            beyond += int((leads > bound + 1e-12 * leads.abs()).sum())
            radius = torch.rand(before.shape, generator=draws, dtype=torch.float64) * 0.1
            wider = wide.box_step(symbols, Box(before - radius, before + radius), FLOAT32)
            outside += int(((wider.lower > box.lower) | (wider.upper < box.upper)).sum())
        check.case(not outside and not beyond, f"{name} {number}, scale {scale:.2g}: {outside}")


def attack_scale(
    check: Check,
    seconds: float,
    factors: tuple[float, ...] = (0.97, 1.03, 0.5, 3.0, 1e-6, 1e7),
    length: int = 4000,
) -> None:
    """A length that is certified holds in whatever pieces a word is read.

    Operators times a number other than 1 are exact up to the scale of the state, which goes out of
    the range of floats where it is not normalised.
    """
    for factor in factors:
        exact = networks.one_hot(machines.cyclic(3))
        scaled = networks.Linear(
            "scaled", exact.table, exact.matrices * factor, exact.points, exact.readout
        )
        model = scaled.model()
        found = certificate_of(model, exact.table, seconds)
        word = np.random.default_rng(0).integers(3, size=(2, length))
        for piece in (1, 7, 1000):
            errors = words.first_errors(model, exact.table, word, piece)
            first = int(errors.max())
            holds = not first or _claimed(found) < first
            check.case(
                holds,
                f"gain {factor}, pieces of {piece}: {found.verdict} {found.length}, and a word "
                f"fails at {first}",
            )


def certificates(cases: int, seconds: float, first_seed: int = 0) -> list[Check]:
    """All attacks on certificates."""
    torch.manual_seed(0)
    exact = Check("exact models are certified")
    linear = Check("certified lengths of perturbed linear models are below every failure")
    saturating = Check("certified lengths of perturbed tanh networks are below every failure")
    scale = Check("certified lengths hold in pieces of any size")
    attack_exact(exact, first_seed, seconds, (*LINEAR, *SATURATING))
    attack_perturbed(linear, cases, seconds, first_seed=first_seed)
    attack_perturbed(
        saturating,
        max(1, cases // 8),
        seconds,
        SATURATING,
        sizes=(10.0, 6.0, 4.0, 3.0, 2.0, 1.0, 0.1),
        longest=20_000,
        first_seed=first_seed,
    )
    attack_scale(scale, seconds)
    boxes = Check("states in float32 lie in the boxes that are computed for them")
    attack_boxes(boxes, cases)
    return [exact, linear, saturating, scale, boxes]
