"""Words that stay inside a group of a machine, so that no two of the group's points ever merge.

Random words of a machine with resets soon merge all its states, and then the label depends on the
last few symbols alone. The words of this module do not. They walk on the *images* of the machine's
states (`statetrack.algebra.images`): from an image of a strong component, only symbols are drawn
that lead to an image of the same component. Such a symbol maps the one image onto the other, one
to one, and so does the whole word.

**What is drawn.** The pairs (J, s) of an image J of a component and a state s in J fall into
*orbits* that no symbol leaves that stays in the component; the states s with (J, s) in one orbit
are its *points* in J. Every word begins with the *prefix*: a shortest word from the machine's start
to a point, of some image (often it is empty). Behind it, a symbol is drawn uniformly among those
that are *allowed* in the image reached so far: all symbols that stay in the component; or, where
these mix the points slowly or it is large, those of a *sub-walk*: the steps of some short words
that lead from one image back to it and generate the group. What is compared is how often the label
can be guessed without the point, `MIXED_BY` symbols behind the prefix (`Walk.guessed`).

**The symbols do not reveal the state** (docs/proofs.md): had the machine been in another point, the
very same words would be drawn with the very same chances, and no answer that looks at the last n
symbols alone is always right, for any n.

Letters: S states of the smallest machine, V symbols, N images of a component, P points of an
image, E steps between images.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from statetrack.algebra.images import Images, Loops, holonomy_groups, images_of
from statetrack.algebra.machine import needed_machine
from statetrack.algebra.monoid_facts import Subgroup, generated_subgroup
from statetrack.algebra.prediction import Word
from statetrack.algebra.stabilizer_chain import StabilizerChain, TooMuchWorkError
from statetrack.errors import TaskError
from statetrack.sources import (
    Automaton,
    BreadthFirst,
    Integers,
    closed,
    coarsest_partition,
    orbits,
    places_of,
    shortest_ways,
)

MIXED_BY = 100
"""The number of symbols behind the prefix after which two walks are compared."""
MOST_PAIRS = 2**17
"""Components with more pairs of an image and a point are walked by a sub-walk alone."""
BIAS_AT = (10, 20, 50, MIXED_BY)
"""The numbers of symbols behind the prefix for which bias and guesses are given."""
SMALL_BIAS = 0.1
"""A walk on a whole component with a bias below this is not compared with a sub-walk."""
MOST_TRIED = 8
"""So many orbits with one group are looked at for one on which labels show the whole of it."""
MOST_ROOTS = 32
"""Sub-walks are made from the short words of so many images of the component."""


@dataclass(frozen=True, eq=False)
class Walk:
    """A group of a machine, and what words that stay inside it are drawn by.

    `group` is what these words make of the points, as far as labels inside the walk show it.
    """

    group: Subgroup
    prefix: Word
    num_images: int
    num_points: int
    automaton: Automaton
    """The task's machine beside the image that is reached: it gives the same labels."""
    bias: dict[int, float]
    """By the number of symbols behind the prefix, how far the points are from equally likely.

    The mean over images, as they are reached, of the total variation distance between the point's
    chances given the image, and equal ones: 0 where the image says nothing of the point.
    """
    guessed: dict[int, float]
    """By that number, how often the best answer is right that knows the image and the last symbol.

    But not the point: the accuracy of a model that follows images and no group. The floor is the
    same without the image and the symbol.
    """


def walks(automaton: Automaton) -> Iterator[Walk]:
    """A walk for each different group that labels show: not solvable ones first, then by order.

    Raises `TaskError` where there are too many images of the machine's states.
    """
    machine = _Quotient.of(automaton)
    images = images_of(np.ascontiguousarray(machine.moves.T))
    if images is None:
        raise TaskError("the machine has too many images of its states to find its groups")
    try:
        found = sorted(_orbits(images), key=lambda one: (*_rank(one.group), *one.order))
    except TooMuchWorkError:
        raise TaskError("the machine has a group on too many states to be worked out") from None
    buckets: dict[str, list[_PointOrbit]] = {}
    for orbit in found:
        buckets.setdefault(orbit.group.name, []).append(orbit)
    waiting: list[_Begun] = []
    given: set[str] = set()
    for bucket in [*buckets.values(), []]:
        waiting.sort(key=lambda one: _rank(one.seen.group))
        while waiting and (not bucket or _rank(waiting[0].seen.group) <= _rank(bucket[0].group)):
            begun = waiting.pop(0)
            if begun.seen.group.name not in given:
                given.add(begun.seen.group.name)
                yield Walk(
                    group=begun.seen.group,
                    prefix=begun.prefix,
                    num_images=int((begun.steps >= 0).any(axis=1).sum()),
                    num_points=begun.seen.points.shape[1],
                    automaton=_drawing(automaton, begun),
                    bias=begun.bias,
                    guessed=begun.guessed,
                )
        if (best := _best_of(machine, images, bucket)) is not None:
            waiting.append(best)


def _best_of(machine: _Quotient, images: Images, bucket: Sequence[_PointOrbit]) -> _Begun | None:
    """The first orbit on which labels show the whole group and the points get equally likely.

    Of the first `MOST_TRIED`; without such a one that on which they show most, and then the one
    with the fewest labels that can be guessed. Its walk is on the whole component, or a sub-walk in
    which less can be guessed. None where labels show nothing.
    """
    best: tuple[tuple[bool, int, float], _Begun] | None = None
    for orbit in bucket[:MOST_TRIED]:
        seen = _seen(machine, images, orbit)
        if seen is None:
            continue
        tried = []
        if seen.points.size <= MOST_PAIRS:
            tried.append(_begun(machine, seen, seen.steps))
        if not tried or tried[0].bias[MIXED_BY] >= SMALL_BIAS:
            roots = range(min(MOST_ROOTS, len(seen.steps)))
            tried += [_begun(machine, seen, _sub_walk(seen, root)) for root in roots]
        begun = min(tried, key=lambda one: one.guessed[MIXED_BY])
        key = (*_rank(seen.group), begun.guessed[MIXED_BY])
        if best is None or key < best[0]:
            best = key, begun
        if seen.group == orbit.group and begun.bias[MIXED_BY] < SMALL_BIAS:
            break
    return None if best is None else best[1]


def chosen_walk(automaton: Automaton, chosen: str = "") -> Walk:
    """The walk of a group by its name or its number from 1; the first one without either.

    Raises `TaskError` where the machine has no such group, and where it has none at all.
    """
    found: list[Walk] = []
    for walk in walks(automaton):
        found.append(walk)
        if chosen in ("", walk.group.name, str(len(found))):
            return walk
    if not found:
        raise TaskError("the machine is aperiodic: no words permute states that labels tell apart")
    names = [walk.group.name for walk in found]
    listed = ", ".join(f"{number} {name}" for number, name in enumerate(names, start=1))
    raise TaskError(f"there is no group '{chosen}': the groups are {listed}")


def _rank(group: Subgroup) -> tuple[bool, int]:
    return group.solvable, -group.order


@dataclass(frozen=True, eq=False)
class _Quotient:
    """A machine whose states with equal rows of transitions are one: labels are on transitions.

    After one symbol such states are the same, so every group of the machine's words is one of this
    quotient's: if e is the identity of the group, p = p e = q e = q for points p and q of its
    image whose rows are equal.
    """

    moves: Integers  # [S, V]
    answers: Integers  # [S, V]: the label after the symbol; -1 where none is asked for
    start: int

    @classmethod
    def of(cls, automaton: Automaton) -> _Quotient:
        machine = needed_machine(automaton).automaton
        rows, joined = np.unique(machine.delta, axis=0, return_inverse=True)
        answers = np.where(machine.scored, machine.output, -1)
        joined = joined.ravel()
        return cls(joined[rows], answers[rows], int(joined[machine.start]))


@dataclass(frozen=True, eq=False)
class _PointOrbit:
    """Some points of an image that a group moves into each other."""

    group: Subgroup  # as it permutes them
    image: int
    points: Integers  # [P]
    order: tuple[float, int, int]
    """Of orbits with one group the least is tried first.

    The mean number of symbols that stay in the component, the most first (words along a single
    symbol repeat themselves); the number of points; and the image.
    """


def _orbits(images: Images) -> Iterator[_PointOrbit]:
    """The orbits of more than one point, in one image of every component."""
    counts = np.bincount(images.components)
    stays = images.components[images.step] == images.components[:, None]
    allowed = np.bincount(images.components, stays.sum(axis=1))
    known: dict[tuple[int, bytes], Subgroup] = {}
    for found in holonomy_groups(images):
        orbit_of = orbits(found.permutations, len(found.points))
        for first in np.unique(orbit_of):
            places = np.flatnonzero(orbit_of == first)
            if len(places) < 2:
                continue
            moved = np.unique(np.searchsorted(places, found.permutations[:, places]), axis=0)
            key = (len(places), moved.tobytes())
            if key not in known:
                known[key] = _generated(moved)
            component = int(images.components[found.image])
            order = (-float(allowed[component]) / int(counts[component]), len(places), found.image)
            yield _PointOrbit(known[key], found.image, found.points[places], order)


def _generated(permutations: Integers) -> Subgroup:
    """What is known of the group that permutations `[K, P]` generate."""
    group = generated_subgroup(permutations, seen=True)
    if group is None:
        raise TooMuchWorkError
    return group


@dataclass(frozen=True, eq=False)
class _Seen:
    """The pairs of an orbit with the steps between them, and what labels show of its group.

    Point number i of an image is the one that a chosen word leads to from point number i of the
    first image. Pairs are numbered image by image.
    """

    group: Subgroup
    steps: Integers  # [N, V]: the image reached; -1 where the symbol leaves the component
    points: Integers  # [N, P]: the state that each point is
    turns: Integers  # [N, V, P]: the number of the point that each point is moved to; -1

    @property
    def pair_steps(self) -> Integers:
        """The pair that each symbol leads to, `[N * P, V]`; -1 where it leaves the component."""
        num_points = self.points.shape[1]
        target = self.steps[:, :, None] * num_points + self.turns
        allowed = (self.steps >= 0)[:, :, None]
        return np.where(allowed, target, -1).transpose(0, 2, 1).reshape(-1, self.steps.shape[1])


def _seen(machine: _Quotient, images: Images, orbit: _PointOrbit) -> _Seen | None:
    """The orbit with its steps; None where labels tell none of its points apart."""
    inside = np.flatnonzero(images.components == images.components[orbit.image])
    local = places_of(inside, len(images))
    steps = local[images.step[inside]]
    root = int(local[orbit.image])
    points = np.full((len(inside), len(orbit.points)), -1)
    points[root] = orbit.points
    origin, symbol = np.nonzero(steps >= 0)
    way, _, levels = shortest_ways(np.array([root]), origin, steps[origin, symbol], len(steps))
    for level in levels:
        last = way[level]
        points[level] = machine.moves[points[origin[last]], symbol[last, None]]
    turns = np.full((*steps.shape, points.shape[1]), -1)
    order = np.argsort(points, axis=1)
    for letter in range(steps.shape[1]):
        leaving = np.flatnonzero(steps[:, letter] >= 0)
        moved = machine.moves[points[leaving], letter]
        there = np.empty_like(moved)
        np.put_along_axis(there, np.argsort(moved, axis=1), order[steps[leaving, letter]], axis=1)
        turns[leaving, letter] = there
    walked = _Seen(orbit.group, steps, points, turns)
    # pairs of one class: no allowed word leads to different labels
    following = walked.pair_steps
    allowed, outside = following >= 0, np.full((1, steps.shape[1]), len(following))
    shown = np.where(allowed, machine.answers[points.ravel()], -2)
    classes = np.unique(shown, axis=0, return_inverse=True)[1].ravel()
    following = np.vstack([np.where(allowed, following, len(following)), outside])
    classes = coarsest_partition(following, np.append(classes, classes.max() + 1))
    blocks = classes[:-1].reshape(points.shape)[root]
    if (blocks == blocks[0]).all():
        return None
    if len(np.unique(blocks)) == len(blocks):
        return walked
    # what labels show is how the group moves whole blocks of points that they do not tell apart
    numbers = np.unique(blocks, return_inverse=True)[1].ravel()
    first = np.unique(numbers, return_index=True)[1]
    loops = _loops(walked, root)
    moves = numbers[loops.done_by(np.arange(len(loops.source)))[:, first]]
    return _Seen(_generated(np.unique(moves, axis=0)), steps, points, turns)


def _loops(seen: _Seen, root: int) -> Loops:
    """Short words from an image back to itself, that together generate the group of its points."""
    source, symbol = np.nonzero(seen.steps >= 0)
    num_symbols, num_points = seen.steps.shape[1], seen.points.shape[1]
    maps = seen.turns.reshape(-1, num_points)
    target = seen.steps[source, symbol]
    return Loops.of(np.array([root]), source, target, source * num_symbols + symbol, maps)


def _sub_walk(seen: _Seen, root: int) -> Integers:
    """The steps of short loops that generate the group: `[N, V]`, -1 where there is none.

    Loops at one image are taken from the shortest on, where they enlarge the group made by those
    before.
    """
    loops = _loops(seen, root)
    everything = np.arange(len(loops.source))
    by_length = np.argsort(loops.lengths(everything), kind="stable")
    permutations = loops.done_by(by_length)
    group = StabilizerChain(seen.points.shape[1])
    firsts = np.sort(np.unique(permutations, axis=0, return_index=True)[1])
    kept = [int(by_length[place]) for place in firsts if group.add(permutations[place])]
    edges = loops.map_of[[edge for loop in kept for edge in loops.edges(loop)]]
    only = np.full_like(seen.steps, -1)
    only.ravel()[edges] = seen.steps.ravel()[edges]
    return only


@dataclass(frozen=True, eq=False)
class _Begun:
    """The steps of a walk, with the place where it begins."""

    seen: _Seen
    steps: Integers  # [N, V]: the image reached; -1 where the symbol is not allowed
    prefix: Word
    image: int
    bias: dict[int, float]
    guessed: dict[int, float]


def _begun(machine: _Quotient, seen: _Seen, steps: Integers) -> _Begun:
    """A walk with its prefix, and how far its points are from equally likely."""
    walked = (steps >= 0).any(axis=1)
    places: dict[int, tuple[int, int]] = {}
    for image in np.flatnonzero(walked)[::-1].tolist():
        for number, state in enumerate(seen.points[image].tolist()):
            places[state] = image, number
    search = BreadthFirst([machine.start], lambda state: enumerate(machine.moves[state].tolist()))
    state = next(state for state, _ in search if state in places)
    image, number = places[state]
    mixing = _mixing(machine, seen, steps, image, number)
    return _Begun(seen, steps, search.word_to(state), image, *mixing)


def _mixing(
    machine: _Quotient, seen: _Seen, steps: Integers, image: int, number: int
) -> tuple[dict[int, float], dict[int, float]]:
    """See `Walk.bias` and `Walk.guessed`."""
    num_images, num_points = seen.points.shape
    origins, symbols = np.nonzero(steps >= 0)
    chance = 1.0 / np.maximum((steps >= 0).sum(axis=1), 1)[origins, None]
    targets = steps[origins, symbols][:, None] * num_points + seen.turns[origins, symbols]
    answers = machine.answers[seen.points[origins], symbols[:, None]]
    asked = answers >= 0
    step_and_label = np.where(asked, np.arange(len(origins))[:, None], -1), answers
    alike = np.unique(np.stack(step_and_label, axis=-1).reshape(-1, 2), axis=0, return_inverse=True)
    step_of, group_of = alike[0][:, 0], alike[1].ravel()
    now = np.zeros((num_images, num_points))
    now[image, number] = 1.0
    bias, guessed = {}, {}
    for length in range(1, BIAS_AT[-1] + 1):
        flow = now[origins] * chance
        reached = np.bincount(targets.ravel(), flow.ravel(), minlength=now.size)
        now = reached.astype(np.float64).reshape(now.shape)
        if length in BIAS_AT:
            bias[length] = float(np.abs(now - now.mean(axis=1, keepdims=True)).sum() / 2)
            shares = np.bincount(group_of, flow.ravel(), minlength=len(step_of))[step_of >= 0]
            begins = np.flatnonzero(np.diff(step_of[step_of >= 0], prepend=-1))
            best = np.maximum.reduceat(shares, begins).sum() if len(begins) else 0.0
            guessed[length] = float(best / max(shares.sum(), 1e-300))
    return bias, guessed


def _drawing(automaton: Automaton, walk: _Begun) -> Automaton:
    """The task's automaton beside the phase of a walk, by which symbols are drawn.

    Phases are the places in the prefix, the images, and `outside`, where any word that is not
    drawn leads, so that it is read as the task reads it.
    """
    before, num_images = len(walk.prefix), len(walk.steps)
    outside = before + num_images
    follow = np.full((outside + 1, automaton.num_symbols), outside)
    for place, symbol in enumerate(walk.prefix):
        follow[place, symbol] = place + 1 if place + 1 < before else before + walk.image
    follow[before:outside] = np.where(walk.steps >= 0, walk.steps + before, outside)
    allowed = follow != outside
    allowed[outside] = True
    first = 0 if before else walk.image
    # a pair of the state s and the phase f has the number s * (number of phases) + f
    start = automaton.start * len(follow) + first

    def targets_of(pairs: Integers) -> Integers:
        states, phases = np.divmod(pairs, len(follow))
        return np.asarray(automaton.delta[states] * len(follow) + follow[phases])

    found = closed(np.array([start]), targets_of)
    assert found is not None
    pairs = np.sort(found)
    states, phases = np.divmod(pairs, len(follow))
    return Automaton(
        np.searchsorted(pairs, targets_of(pairs)),
        automaton.output[states],
        start=int(np.searchsorted(pairs, start)),
        symbols=automaton.symbols,
        labels=automaton.labels,
        weights=allowed[phases].astype(float),
        scored=automaton.scored[states],
    )
