"""The linear representation that a model learned: eigenvalues, angles, characters, defects.

A model whose symbols act on its state by matrices A_x, and that tracks a task, represents the
task's transition monoid: words that do the same to the automaton's states are the same operator, on
the used subspace (`used_space`). How far that holds is the homomorphism defect. Where the monoid is
a group, the traces of the operators are a character, and its inner products with the irreducible
characters say which irreducible representations were learned, and how often (Frobenius 1896; over
the reals Frobenius and Schur 1906).

For operators that keep a plane each, `Plane.harmonic` is what Ebrahimi and Memisevic (2025,
arXiv:2505.21749) draw in their Figure 4 for modular addition: the angle learned for the integer 1,
over 2 pi / m. It is an integer in a solution that is right on words of every length.

V symbols, S states, N elements, K coordinates of hidden states, k dimensions of the used subspace.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra import (
    Complexes,
    Group,
    Machine,
    Monoid,
    MonoidBudget,
    RealType,
    character_table,
    name_of,
    needed_machine,
    transition_monoid,
)
from statetrack.evidence.budget import MULTIPLICATION, SearchBudget
from statetrack.evidence.kinds import representation as rows
from statetrack.evidence.linear_maps import AffineMaps, UsedSpace, affine_maps, used_space
from statetrack.evidence.subject import Subject
from statetrack.sources import Booleans, Floats, Integers

MOST_ELEMENTS = 2000
"""The most elements of a monoid whose operators are worked with."""

MOST_NUMBERS = 2**24
"""The most numbers that their operators may have: N K k."""

MOST_PAIRS = 5000
MOST_CUBES = 2 * 10**9
"""The most pairs of symbols whose commutators are worked out: so many, and so many times k^3."""

MOST_SPECTRA = 16
"""The most symbols whose eigenvalues are listed."""

MOST_WIDTH = 512
"""The widest operators all of whose eigenvalues are listed."""

DIGITS = 9
"""Digits after the point of the numbers listed."""

ON_A_LINE = 1e-4
"""States lie on a line where their mean square across it is at most this part of that along it."""

AT_ONCE = 2**21
"""Numbers of the matrices whose norms are taken at once."""


def find_representation(
    subject: Subject, *, budget: SearchBudget, seed: int = 0, most_elements: int = MOST_ELEMENTS
) -> rows.Representation:
    """The representation that a model with one operator per symbol learned.

    Of monoids with more than `most_elements` elements, those of the shortest words are worked
    with. Raises `SettingsError` for a model without such operators.
    """
    began = time.monotonic()
    budget.say("the operators")
    maps = affine_maps(subject, seed=seed)
    machine = needed_machine(subject.automaton)
    budget.say("the used subspace")
    space = used_space(maps, machine, seed=seed)
    monoid = transition_monoid(machine.actions, MonoidBudget())
    counting = _counting(machine, monoid)
    planes, planes_are = _planes(maps, space, machine, counting)
    budget.say("commutators")
    commutators = _commutators(space, machine.delta, budget.part(0.3), seed)
    budget.say("words that do the same")
    most = min(most_elements, MOST_NUMBERS // max(1, space.lift.size))
    represented = _Represented(space, machine, most, budget)
    homomorphism = represented.homomorphism() if space.dimension else None
    budget.say("characters")
    groups, groups_are = _groups(represented, monoid, machine)
    checked = [each for each in (commutators, homomorphism) if each is not None]
    kept = space.strengths[: space.dimension]
    return rows.Representation(
        symbols=subject.automaton.symbols,
        width=maps.matrices.shape[1],
        affine=not maps.is_linear or maps.bias is not None,
        read=maps.readout is not None,
        dimension=space.dimension,
        strengths=_rounded(kept),
        spread=_number((space.spreads[: len(kept)] / kept).max()) if len(kept) else 0.0,
        next_strength=_number(max(space.strengths[len(kept) :], default=0.0)),
        growth=_rounded(space.growth),
        spectra=_spectra(maps, space, subject.automaton.symbols),
        planes=planes,
        planes_are=planes_are,
        modulus=None if counting is None else counting.order,
        unit=None if counting is None else counting.unit,
        commutators=commutators,
        homomorphism=homomorphism,
        groups=groups,
        groups_are=groups_are,
        complete=all(each.complete for each in checked),
        seconds=time.monotonic() - began,
    )


# --- eigenvalues ---


def _spectra(
    maps: AffineMaps, space: UsedSpace, symbols: Sequence[str]
) -> tuple[rows.Spectrum, ...]:
    matrices = maps.homogeneous[0]
    found = []
    for place, name in enumerate(symbols[:MOST_SPECTRA]):
        used = np.linalg.eigvals(space.operators[place]) * space.growth[place]
        wide = matrices.shape[1] > MOST_WIDTH
        every = np.zeros(0) if wide else np.linalg.eigvals(matrices[place])
        found.append(rows.Spectrum(symbol=name, used=_pairs(used), every=_pairs(every)))
    return tuple(found)


def _pairs(values: Complexes | Floats) -> rows.Complexes:
    """Eigenvalues as pairs, by modulus and then angle."""
    order = np.lexsort((np.round(np.angle(values), 6), -np.round(np.abs(values), 6)))
    return tuple((_number(each.real), _number(each.imag)) for each in values[order])


# --- planes ---


@dataclass(frozen=True, eq=False)
class _Counting:
    """The order m of a cyclic group that symbols generate, and how far each of them counts.

    Counting is by the first symbol that generates it; where none does, by some element.
    """

    order: int
    counts: Integers  # [V]

    @property
    def unit(self) -> int | None:
        """The first symbol that counts 1."""
        found = np.flatnonzero(self.counts % self.order == 1)
        return int(found[0]) if len(found) else None


def _counting(machine: Machine, monoid: Monoid | None) -> _Counting | None:
    """How symbols count; None where they generate no cyclic group."""
    if monoid is None or not monoid.is_group or machine.sink is not None:
        return None
    group = Group(monoid.elements.astype(np.int64))
    numbers = np.array([group.number_of(action) for action in machine.delta.T])
    order = len(group)
    generating = np.flatnonzero(group.orders == order)
    if order == 1 or not len(generating):
        return None
    among = [int(number) for number in numbers if number in generating]
    powers = [0]
    while len(powers) < order:
        powers.append(int(group.times(powers[-1], among[0] if among else generating[0])))
    return _Counting(order, np.argsort(powers)[numbers])


def _planes(
    maps: AffineMaps, space: UsedSpace, machine: Machine, counting: _Counting | None
) -> tuple[tuple[rows.Plane, ...], str]:
    """The planes that all operators keep, most read first, and what they are."""
    if maps.in_planes and maps.matrices.shape[1] > 1:
        parts = maps.matrices.shape[1] // 2
        blocks = maps.matrices.reshape(len(maps.matrices), parts, 2, parts, 2)
        own = blocks[:, np.arange(parts), :, np.arange(parts)]  # [N, V, 2, 2]
        found = _own_planes(maps, space, own, counting)
        return found, "the model's own planes, of two coordinates each"
    if not space.dimension:
        return (), "none: no direction of the hidden states says what the automaton's state is"
    if not all(
        _commute(machine.delta, one, other).all()
        for one, other in itertools.combinations(range(machine.delta.shape[1]), 2)
    ):
        return (), "none: the task's symbols do not commute, so no plane is kept by all"
    return _joint_planes(space, counting), "planes and lines that all operators keep"


def _commute(delta: Integers, one: Integers | int, other: Integers | int) -> Booleans:
    """In which states two symbols do the same in either order, [S], or for each pair [S, N]."""
    found: Booleans = delta[delta[:, one], other] == delta[delta[:, other], one]
    return found


def _own_planes(
    maps: AffineMaps, space: UsedSpace, blocks: Floats, counting: _Counting | None
) -> tuple[rows.Plane, ...]:
    """Planes of two coordinates each with 2 x 2 blocks `[N, V, 2, 2]`.

    The weight is the share of the squared logits that a plane gives; without a linear readout, of
    the squared states. Where a block is no rotation, and all states lie on a line, that line is
    what is kept.
    """
    hidden = space.samples[..., : 2 * len(blocks)].reshape(-1, len(blocks), 2)
    spreads = np.einsum("bni,bnj->nij", hidden, hidden) / len(hidden)
    if maps.readout is None:
        weights = np.trace(spreads, axis1=1, axis2=2)
    else:
        readout = maps.readout.reshape(-1, len(blocks), 2)
        weights = np.einsum("cni,cnj,nij->n", readout, readout, spreads)
    weights = weights / max(float(weights.sum()), 1e-300)
    lengths, axes = np.linalg.eigh(spreads)
    on_line = lengths[:, 0] <= ON_A_LINE * lengths[:, 1]
    angles, moduli = _turns(blocks)
    found = []
    for place in np.argsort(-weights, kind="stable"):
        dimension, turned, sizes = 2, angles[place], moduli[place]
        if on_line[place] and not np.isfinite(turned).all():
            axis = axes[place, :, 1]
            kept = np.einsum("i,vij,j->v", axis, blocks[place], axis)
            dimension, turned, sizes = 1, np.where(kept < 0, np.pi, 0.0), np.abs(kept)
        found.append(_plane(dimension, weights[place], turned, sizes, counting))
    return tuple(found)


def _turns(blocks: Floats) -> tuple[Floats, Floats]:
    """Angles and moduli of 2 x 2 matrices `[..., 2, 2]` up to a change of basis.

    The angle is 0 or pi for two real eigenvalues of one sign, and not a number for others.
    """
    traces = (blocks[..., 0, 0] + blocks[..., 1, 1]) / 2
    turns = (blocks[..., 1, 0] - blocks[..., 0, 1]) / 2
    determinants = np.linalg.det(blocks)
    moduli = np.sqrt(np.abs(determinants))
    cosines = np.clip(traces / np.maximum(moduli, 1e-300), -1.0, 1.0)
    angles = np.where(turns < 0, -1.0, 1.0) * np.arccos(cosines)
    return np.where(determinants > 0, angles, np.nan), moduli


def _joint_planes(space: UsedSpace, counting: _Counting | None) -> tuple[rows.Plane, ...]:
    """Planes and lines of the used subspace that operators keep that commute."""
    operators, points = space.operators, space.points
    factors = np.random.default_rng(0).normal(size=len(operators))
    combined, vectors = np.linalg.eig(np.einsum("v,vij->ij", factors, operators))
    try:
        inverse = np.linalg.inv(vectors)
    except np.linalg.LinAlgError:
        return ()
    values = np.einsum("ai,vij,ja->va", inverse, operators, vectors)  # [V, k]
    parts = np.einsum("ia,as->sai", vectors, inverse @ points.T)  # [S, k, k]: by eigenvector
    total = max(float((points**2).sum()), 1e-300)
    found = []
    for place, value in enumerate(combined):
        if value.imag < 0:  # the partner of the one before, which has the other sign
            continue
        part = parts[:, place] if value.imag == 0 else 2 * parts[:, place].real
        eigenvalues = values[:, place] * space.growth
        found.append(
            _plane(
                1 if value.imag == 0 else 2,
                float((part.real**2).sum()) / total,
                np.angle(eigenvalues),
                np.abs(eigenvalues),
                counting,
            )
        )
    return tuple(sorted(found, key=lambda plane: -plane.weight))


def _plane(
    dimension: int, weight: float, angles: Floats, moduli: Floats, counting: _Counting | None
) -> rows.Plane:
    harmonic, integer, deviation = None, None, None
    if counting is not None:
        unit, turn = counting.unit, 2 * np.pi / counting.order
        if unit is not None and np.isfinite(angles[unit]):
            if angles[unit] < 0:
                angles = -angles
            harmonic = _number(angles[unit] / turn)
        if np.isfinite(angles).all():
            candidates = turn * np.outer(np.arange(counting.order), counting.counts)  # [m, V]
            away = np.abs(np.angle(np.exp(1j * (angles - candidates)))).max(axis=1)
            integer = int(away.argmin())
            deviation = _number(away[integer])
    angles = np.where(angles <= -np.pi + 1e-12, np.pi, angles)
    return rows.Plane(
        dimension=dimension,
        weight=_number(weight),
        angles=tuple(_number(each) if np.isfinite(each) else None for each in angles),
        moduli=_rounded(moduli),
        harmonic=harmonic,
        integer=integer,
        deviation=deviation,
    )


# --- commutators and the homomorphism ---


def _commutators(
    space: UsedSpace, delta: Integers, budget: SearchBudget, seed: int
) -> rows.Commutators | None:
    operators = space.operators * space.growth[:, None, None]
    pairs = list(itertools.combinations(range(len(operators)), 2))
    if not pairs or not space.dimension:
        return None
    most = max(1, min(MOST_PAIRS, MOST_CUBES // space.dimension**3))
    everything = len(pairs) <= most
    if not everything:
        chosen = np.random.default_rng(seed).choice(len(pairs), most, replace=False)
        pairs = [pairs[place] for place in np.sort(chosen)]
    norms = _norms(operators)
    size = max(1, AT_ONCE // operators[0].size)
    found: list[Floats] = []
    for begin in range(0, len(pairs), size):
        if budget.spent and found:
            everything = False
            break
        one, other = np.array(pairs[begin : begin + size]).T
        budget.use(MULTIPLICATION * len(one) * 4 * space.dimension**3)
        products = operators[one] @ operators[other] - operators[other] @ operators[one]
        found.append(_norms(products))
    values = np.concatenate(found)
    pairs = pairs[: len(values)]
    one, other = np.array(pairs).T
    commute = _commute(delta, one, other).all(axis=0)
    relative = values / np.maximum(norms[one] * norms[other], 1e-300)
    return rows.Commutators(
        pairs=len(pairs),
        largest=_number(values.max()),
        relative=_number(relative.max()),
        largest_of_commuting=_number(values[commute].max()) if commute.any() else None,
        smallest_of_others=_number(values[~commute].min()) if (~commute).any() else None,
        complete=everything,
    )


class _Represented:
    """The operators of the maps that words make, by shortest words, `most` of them at most.

    `operators[g]` [K, k] is A_w lift, for the shortest word w that does g.
    """

    def __init__(self, space: UsedSpace, machine: Machine, most: int, budget: SearchBudget) -> None:
        self.space = space
        self._budget = budget
        self._delta = machine.delta
        identity = np.arange(len(machine.delta))
        self.number = {identity.tobytes(): 0}
        self.elements = [identity]
        self.words: list[tuple[int, ...]] = [()]
        self.operators = [space.lift]
        self.complete = True
        for place in itertools.count():
            if place == len(self.elements) or (place and budget.spent):
                self.complete = place == len(self.elements) and self.complete
                break
            budget.use(MULTIPLICATION * space.matrices.size * space.lift.shape[-1])
            for symbol in range(machine.delta.shape[1]):
                after = machine.delta[self.elements[place], symbol]
                if after.tobytes() in self.number:
                    continue
                if len(self.elements) >= most:
                    self.complete = False
                    break
                self.number[after.tobytes()] = len(self.elements)
                self.elements.append(after)
                self.words.append((*self.words[place], symbol))
                self.operators.append(space.matrices[symbol] @ self.operators[place])

    def find(self, element: Integers) -> int:
        """The number of a map of the states."""
        return self.number[element.astype(np.int64).tobytes()]

    def homomorphism(self) -> rows.Homomorphism:
        """The defect over all elements and symbols."""
        complete = self.complete
        steps = self.space.weigh @ self.space.matrices  # [V, K', K]
        weighed = [self.space.weigh @ each for each in self.operators]
        largest, squares, pairs = 0.0, 0.0, 0
        for place, element in enumerate(self.elements):
            if self._budget.spent and place:
                complete = False
                break
            self._budget.use(MULTIPLICATION * 4 * steps.size * self.space.lift.shape[-1])
            targets = [self.number.get(after.tobytes(), -1) for after in self._delta[element].T]
            known = np.flatnonzero(np.array(targets) >= 0)
            if not len(known):
                continue
            wanted = np.stack([weighed[targets[symbol]] for symbol in known])
            gaps = steps[known] @ self.operators[place] - wanted
            frobenius = np.linalg.norm(gaps, axis=(1, 2))
            squares += float((frobenius**2).sum())
            pairs += len(known)
            if frobenius.max() > largest:
                largest = max(largest, float(_norms(gaps[frobenius > largest]).max()))
        return rows.Homomorphism(
            elements=len(self.elements),
            pairs=pairs,
            largest=_number(largest),
            mean=_number((squares / max(1, pairs) / max(1, self.space.dimension)) ** 0.5),
            complete=complete,
        )


def _norms(matrices: Floats) -> Floats:
    """The spectral norms of matrices `[N, a, b]`."""
    grams = matrices.mT @ matrices
    norms: Floats = np.sqrt(np.maximum(np.linalg.eigvalsh(grams)[:, -1], 0.0))
    return norms


# --- characters ---


@dataclass(eq=False)
class _RealCharacter:
    """A real irreducible character: `values` on each class."""

    values: Floats
    dimension: int
    type: RealType
    name: str


def _groups(
    represented: _Represented, monoid: Monoid | None, machine: Machine
) -> tuple[tuple[rows.LearnedGroup, ...], str]:
    """The representation of the task's group, or of its maximal subgroups, largest first."""
    if not represented.space.dimension:
        return (), "no direction of the hidden states says what the automaton's state is"
    if monoid is None or len(represented.elements) < len(monoid):
        size = "too many" if monoid is None else f"{len(monoid):,}"
        return (), (
            f"words make {size} maps of the states, of which {len(represented.elements):,} were "
            "worked with"
        )
    symbols = machine.automaton.symbols
    found = []
    for idempotent in monoid.regular_idempotents:
        if monoid.order_at(int(idempotent)) == 1:
            continue
        same = monoid.frames == monoid.frames[idempotent]
        members = np.flatnonzero(same)
        members = np.concatenate([[idempotent], members[members != idempotent]])
        elements = monoid.elements[members].astype(np.int64)
        points = np.unique(elements[0])
        group = Group(np.searchsorted(points, elements[:, points]))
        places = [represented.find(element) for element in elements]
        found.append(_learned(represented, group, places, points, symbols))
    why = "" if found else "words make no group of maps: none permutes states"
    return tuple(sorted(found, key=lambda each: -each.order)), why


def _learned(
    represented: _Represented,
    group: Group,
    places: Sequence[int],
    states: Integers,
    symbols: Sequence[str],
) -> rows.LearnedGroup:
    """What was learned of a group of elements with these numbers, which permutes these states."""
    space = represented.space
    points = space.points[states]
    operators = np.stack([space.project @ represented.operators[place] for place in places])
    traces = np.trace(operators, axis1=1, axis2=2)
    sizes = np.bincount(group.classes)
    character = np.bincount(group.classes, traces) / sizes
    first = np.unique(group.classes, return_index=True)[1]
    irreducibles = []
    accounted, residue = 0, 0.0
    energy = max(float((points**2).sum()), 1e-300)
    for real in _real_characters(group):
        norm = float((real.values**2 * sizes).sum()) / len(group)
        multiplicity = float((character * real.values * sizes).sum()) / len(group) / norm
        whole = round(multiplicity)
        accounted += whole * real.dimension
        residue = max(residue, abs(multiplicity - whole))
        factor = real.dimension / norm / len(group)
        onto = factor * np.einsum("g,gij->ij", real.values[group.classes], operators)
        kernel = np.flatnonzero(np.abs(real.values - real.dimension) < 1e-6)
        irreducibles.append(
            rows.Irreducible(
                name=real.name,
                dimension=real.dimension,
                type=real.type,
                faithful=kernel.tolist() == [0],
                multiplicity=_number(multiplicity),
                weight=_number(float(((points @ onto.T) ** 2).sum()) / energy),
                character=_rounded(real.values),
            )
        )
    words = [represented.words[places[member]] for member in first]
    return rows.LearnedGroup(
        name=name_of(group),
        order=len(group),
        dimension=_number(traces[0]),
        irreducibles=tuple(irreducibles),
        accounted=accounted,
        residue=_number(residue),
        class_sizes=tuple(sizes.tolist()),
        class_orders=tuple(group.orders[first].tolist()),
        class_words=tuple(" ".join(symbols[symbol] for symbol in word) for word in words),
        character=_rounded(character),
        spread=_number(np.abs(traces - character[group.classes]).max()),
    )


def _real_characters(group: Group) -> list[_RealCharacter]:
    """The irreducible characters over the reals with names, smallest first.

    A cyclic group's are named by harmonics of its first generator. Others by dimension, with primes
    where several have one; those come first that are larger on elements of small order, and then on
    large classes. `sign` is the one that has dimension 1 and is not trivial, if there is one only.
    """
    table = character_table(group)
    sizes = np.bincount(group.classes)
    first = np.unique(group.classes, return_index=True)[1]
    order = np.lexsort((-sizes, group.orders[first]))
    generators = np.flatnonzero(group.orders == len(group))
    types: dict[int, RealType] = {1: "real", 0: "complex", -1: "quaternionic"}
    found: list[tuple[tuple[float, ...], _RealCharacter]] = []
    for place, degree in enumerate(table.degrees.tolist()):
        if table.conjugates[place] < place:
            continue
        kind = types[int(table.indicators[place])]
        double = 1 if kind == "real" else 2
        values = double * table.values[place].real
        key = (degree * double, *(-np.round(values[order], 6)).tolist())
        name = ""
        if len(generators):
            turn = np.angle(table.values[place, group.classes[generators[0]]])
            harmonic = abs(round(float(turn) * len(group) / (2 * np.pi)))
            name = f"harmonic {harmonic}" if harmonic else "trivial"
            key = (float(harmonic),)
        found.append((key, _RealCharacter(values, degree * double, kind, name)))
    every = [each for _, each in sorted(found, key=lambda each: each[0])]
    lines = sum(each.dimension == 1 for each in every)
    counts: Counter[int] = Counter()
    for each in every:
        if not each.name and (each.values == 1).all():
            each.name = "trivial"
        elif not each.name and each.dimension == 1 and lines == 2:
            each.name = "sign"
        elif not each.name:
            each.name = f"{each.dimension}" + "'" * counts[each.dimension]
            counts[each.dimension] += 1
    return every


def _number(value: float | np.floating) -> float:
    return round(float(value), DIGITS) + 0.0


def _rounded(values: Floats | Sequence[float]) -> tuple[float, ...]:
    return tuple(_number(each) for each in values)
