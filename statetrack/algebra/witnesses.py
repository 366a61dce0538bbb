"""Finding short words that show why a class of models cannot track a task.

Words are found on the smallest machine, and told in the states of the task's own automaton. Words
that go round through states, or permute them, are found on classes of states that behave alike from
the next symbol on (`DistinguishingWords`). No group is lost by that: let words permute some states
of the machine, and let p and q of these be in one class. Some product of these words is not empty
and leaves p and q where they are; so p = q. And labels that tell p from q do so after a word that
is not empty: after that product, and the word that told them apart before.

Short words are tried one by one. What is too long for that is found from the groups on images.

Letters: C classes, N words, P places.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from statetrack.algebra.counters import Counters, counters_in_place
from statetrack.algebra.groups import factorise
from statetrack.algebra.images import HolonomyGroup, StateImages
from statetrack.algebra.machine import Machine
from statetrack.algebra.maps import cycles, order_of, power, recurring_states
from statetrack.algebra.monoid import Monoid, local_order, order_of_short_words, stable_elements
from statetrack.algebra.monoid_facts import (
    MOST_STABLE_STEPS,
    Subgroup,
    generated_subgroup,
    is_seen,
)
from statetrack.algebra.prediction import Witness, Word, period_of
from statetrack.algebra.stabilizer_chain import StabilizerChain
from statetrack.algebra.words import (
    ArrangedStates,
    DistinguishingWords,
    ShortestWords,
    label_after,
    of_one_length,
    run,
    way_back,
)
from statetrack.sources import Booleans, Integers, orbits, strong_components

MOST_WORDS = 20_000
"""Most words with different actions that are tried, in the order of their lengths."""
MOST_ORDERED = 2_000
"""Most of them that are tried with each other, in both orders."""
MOST_SUFFIXES = 16
"""Most pairs of states on a cycle that are told apart, to find labels that are all asked for."""
MOST_LOOPS = 64
"""Most permutations that words make of an image, of which some are to generate its group."""
MOST_IMAGES = 4
"""Most images with a group of one kind, among which the shortest words are looked for."""
MOST_PAIRS = 600
"""Most pairs of them that are tried for two that generate it."""
MOST_FACTORS = 8
"""Most generators of a group whose products with each other are looked at."""
AT_ONCE = 64
"""So many elements or words are looked at together."""
MOST_UNTOLD = 16
"""Most pairs of states of which the words that show them are compared."""
MOST_BEGINNINGS = 256
"""Most states from which a way back is looked for."""

Permutation = tuple[int, ...]


class _Powers:
    """Where a power of some words takes the states that come back under their powers."""

    def __init__(self, numbers: Integers, maps: Integers, step: int) -> None:
        self.numbers, self._maps = numbers, maps[numbers]
        self.recurring = recurring_states(self._maps)
        self.further = np.take_along_axis(power(self._maps, step), self.recurring, axis=1)
        self._first = self.further

    def move(self) -> bool:
        """Go on to the next power; False where it is the one that was begun with."""
        self.further = np.take_along_axis(self._maps, self.further, axis=1)
        return not (self.further == self._first).all()


class Witnesses:
    """The witnesses of a task: each is found when it is asked for first, and kept."""

    def __init__(self, machine: Machine, elements: Monoid | None, images: StateImages) -> None:
        self._machine, self._elements, self._images = machine, elements, images
        self._tell = DistinguishingWords(machine)
        self._powers: dict[tuple[int | None, bool], Witness | None] = {}
        self._by_group: dict[Subgroup, Witness | None] = {}

    # --- words that go round through states ---

    def powers(self, settling: int | None = 1, *, symbol: bool = False) -> Witness | None:
        """A word whose powers give labels with a period that does not divide `settling`.

        With 1 any period is one, with 2 those above 2, with None those with an odd prime factor.
        With `symbol` only words of one symbol are looked at.
        """
        key = (settling, symbol)
        if key not in self._powers:
            found = self._short_powers(settling, symbol)
            if found is None and not symbol:
                found = self._powers_in_groups(settling)
            self._powers[key] = found and self._round(*found)
        return self._powers[key]

    def _short_powers(self, settling: int | None, symbol: bool) -> tuple[Word, int, int] | None:
        """A shortest word, a class that it comes back to, and after how many powers labels differ.

        Only words that are short enough to be tried one by one; of several, one that is near.
        """
        tell, words = self._tell, self._words
        apart = tell.classes_apart
        if apart is None:
            return None
        numbers = words.of_one_symbol if symbol else np.arange(len(words.maps))
        longest = words.maps.shape[1]
        step = 1 << longest.bit_length() if settling is None else settling
        # longer words have powers of other words among them, and need no further steps
        last = max(step, longest - 1) if symbol else step
        blocks: list[_Powers] = []
        for begin in range(0, len(numbers), 512):
            block = _Powers(numbers[begin : begin + 512], words.maps, step)
            if found := self._told_by(block, apart):
                return *found, step
            blocks += [block] if last > step else []
        while step < last and blocks:
            step += 1
            blocks = [block for block in blocks if block.move()]
            for block in blocks:
                if found := self._told_by(block, apart):
                    return *found, step
        return None

    def _told_by(self, block: _Powers, apart: Booleans) -> tuple[Word, int] | None:
        """A shortest word of a block whose powers labels tell apart, and a class that is near."""
        words, recurring = self._words, block.recurring
        told = apart[recurring, block.further]
        if not told.any():
            return None
        rows = np.flatnonzero(told.any(axis=1))
        lengths = words.lengths[block.numbers[rows]]
        rows = rows[lengths == lengths[0]]
        away = np.where(told[rows], self._away[recurring[rows]], np.iinfo(np.int64).max)
        row = rows[away.min(axis=1).argmin()]
        near = told[row] & (self._away[recurring[row]] == away.min())
        return words.word(int(block.numbers[row])), int(recurring[row][near].min())

    @cached_property
    def _away(self) -> Integers:
        """The length of the way to every class that has one, `[C]`."""
        lengths = np.full(len(self._tell.members), -1)
        for each, (_, word) in self._tell.class_ways.items():
            lengths[each] = len(word)
        return lengths

    def _powers_in_groups(self, settling: int | None) -> tuple[Word, int, int] | None:
        """The same for words that are too long to be tried, from the groups on images."""
        best: tuple[Word, int, int] | None = None
        for classes, known in self._rotations(settling):
            # of 4 classes, two steps of the rotation are left out, whose period is 2
            turns = [turn for turn in range(1, len(classes)) if len(classes) != 4 or turn != 2]
            ends = [classes[turn:] + classes[:turn] for turn in turns]
            word = self._arrangements.shortest(classes, ends) or known
            if best is None or len(word) < len(best[0]):
                best = (word, classes[0], len(classes) // 2 if len(classes) == 4 else 1)
        return best

    def _rotations(self, settling: int | None) -> Iterator[tuple[Permutation, Word]]:
        """Classes that some word takes round, p of them for a prime p, or 4, with such a word.

        Labels tell the first one from the one that two steps lead to where they are 4, and from
        the next one otherwise.
        """
        apart = self._tell.classes_apart
        seen = set()
        for group in self._groups if apart is not None else ():
            elements = [*zip(group.permutations.tolist(), group.words, strict=True)]
            some = elements[:MOST_FACTORS]
            elements += [
                ([second[place] for place in first], one + other)
                for first, one in some
                for second, other in some
            ]
            for permutation, word in elements:
                for cycle in cycles(permutation):
                    primes = list(factorise(len(cycle)))
                    if settling != 1:  # of parts of the cycle, those that do not divide it
                        primes = [prime for prime in primes if prime > 2]
                        primes += [4] * (settling is not None and len(cycle) % 4 == 0)
                    for size in primes:
                        step = len(cycle) // size
                        classes = tuple(int(group.points[place]) for place in cycle[::step])
                        other = classes[2 if size == 4 else 1]
                        assert apart is not None
                        if frozenset(classes) not in seen and apart[classes[0], other]:
                            seen.add(frozenset(classes))
                            yield classes, word * step

    def _round(self, word: Word, begin: int, step: int, *beside: Word) -> Witness:
        """A witness whose first word goes round from a class; labels differ some powers later."""
        tell, whole = self._tell, self._machine.whole
        access = tell.class_ways[begin][1]
        # in the task's own automaton the word may come back to another state of the class first
        reached = [run(whole.delta, whole.start, access)]
        while (following := run(whole.delta, reached[-1], word)) not in reached:
            reached.append(following)
        before = reached.index(following)
        cycle = reached[before:]
        classes = tell.round(begin, word)
        fits = []
        for place, first in enumerate(classes[:MOST_SUFFIXES]):
            second = classes[(place + step) % len(classes)]
            if tell.classes_apart is not None and tell.classes_apart[first, second]:
                suffix = tell.class_suffix(first, second)
                labels = [label_after(whole, state, suffix) for state in cycle]
                fits.append((labels.count(None), len(suffix), suffix, period_of(labels)))
        _, _, suffix, order = min(fits)
        return Witness(
            "count" if beside else "powers",
            (word, *beside),
            tuple(cycle),
            (access + word * before,),
            (suffix,),
            order,
        )

    @cached_property
    def count(self) -> Witness | None:
        """Two words of one length: one goes round through states, one leaves them as they are."""
        for classes in self._counted():
            ends = [classes[turn:] + classes[:turn] for turn in range(1, len(classes))]
            found = self._arrangements.words_of_one_length(classes, ends)
            if found:
                word, idle = found
                return self._round(word, classes[0], 1, idle)
        return None

    def _counted(self) -> Iterator[Permutation]:
        """Classes that a word may take round, and another one of its length leave as they are.

        Of a monoid whose elements are listed, these are cycles of elements that words of one
        length make, once the set of these repeats itself: some such word leaves a cycle as it is.
        """
        elements, apart = self._elements, self._tell.classes_apart
        stable = None
        if elements is not None:
            stable = stable_elements(elements, self._machine.actions, MOST_STABLE_STEPS)
        if elements is None or stable is None or apart is None:
            yield from (classes for classes, _ in self._rotations(1))
            return
        seen = set()
        for numbers in np.split(np.flatnonzero(stable), range(AT_ONCE, int(stable.sum()), AT_ONCE)):
            maps = self._tell.class_of[elements.elements[numbers][:, self._tell.members]]
            recurring = recurring_states(maps)
            told = apart[recurring, np.take_along_axis(maps, recurring, axis=1)]
            for row in np.flatnonzero(told.any(axis=1)).tolist():
                for begin in np.unique(recurring[row][told[row]]).tolist():
                    cycle = [begin]
                    while (reached := int(maps[row][cycle[-1]])) != begin:
                        cycle.append(reached)
                    for size in factorise(len(cycle)):
                        classes = tuple(cycle[:: len(cycle) // size])
                        if frozenset(classes) not in seen and apart[classes[0], classes[1]]:
                            seen.add(frozenset(classes))
                            yield classes

    # --- words that generate a group ---

    def group(self, like: Subgroup) -> Witness | None:
        """Words, two where that is enough, that generate a group on some image, as large as one.

        It is not solvable, or not abelian, where the other one is not.
        """
        if like not in self._by_group:
            fitting = [
                ((facts.order != like.order, facts.name != like.name, len(group.points)), place)
                for place, (group, facts) in enumerate(self._seen_groups)
                if facts.solvable <= like.solvable and facts.abelian <= like.abelian
            ]
            best = min((rank for rank, _ in fitting), default=None)
            places = [place for rank, place in fitting if rank == best]
            found = [self._generated(*self._seen_groups[each]) for each in places[:MOST_IMAGES]]
            self._by_group[like] = min(
                found, key=lambda each: sum(map(len, each.words)), default=None
            )
        return self._by_group[like]

    def _generated(self, group: HolonomyGroup, facts: Subgroup) -> Witness:
        tell = self._tell
        moved = (group.permutations != np.arange(len(group.points))).any(axis=0)
        orbit = dict(
            zip(group.points.tolist(), orbits(group.permutations, len(moved)).tolist(), strict=True)
        )
        classes = group.points[moved].tolist()
        classes.sort(key=lambda each: len(tell.class_ways[each][1]))
        entered: dict[int, Word] = {}
        for each in classes:
            entered.setdefault(orbit[each], tell.class_ways[each][1])
        together = np.array([orbit[each] for each in classes])
        return Witness(
            "group",
            self._generators(group, facts.abelian),
            tuple(tell.class_ways[each][0] for each in classes),
            tuple(entered.values()),
            tell.class_suffixes(np.array(classes), together),
            facts.order,
            facts.name,
            facts.abelian,
            facts.solvable,
        )

    def _generators(self, group: HolonomyGroup, abelian: bool) -> tuple[Word, ...]:
        """Short words that generate a group: one, two where that is found, or more."""
        loops, num_points = self._loops(group), len(group.points)
        whole = orbits(group.permutations, num_points)

        def generate(chosen: Sequence[tuple[Permutation, Word]]) -> bool:
            permutations = np.array([each for each, _ in chosen])
            if (orbits(permutations, num_points) != whole).any():
                return False
            return StabilizerChain(num_points, permutations).order == group.order

        if abelian:
            for loop in loops:
                if generate([loop]):
                    return (loop[1],)
        pairs = sorted(
            (len(loops[one][1]) + len(loops[other][1]), other, one)
            for one in range(len(loops))
            for other in range(one)
        )
        for _, one, other in pairs[:MOST_PAIRS]:
            if generate([loops[one], loops[other]]):
                return loops[one][1], loops[other][1]
        # the first ones that each make the group larger, until it is whole
        chain, words = StabilizerChain(num_points), []
        for permutation, word in loops:
            if chain.order < group.order and chain.add(np.array(permutation)):
                words.append(word)
        return tuple(words)

    def _loops(self, group: HolonomyGroup) -> list[tuple[Permutation, Word]]:
        """Permutations that words make of a group's points, the shortest words first."""
        place = {state: number for number, state in enumerate(group.points.tolist())}
        begin = tuple(group.points.tolist())
        back = set(begin)
        near = self._arrangements.ways(begin, lambda reached: back.issuperset(reached), MOST_LOOPS)
        loops = {tuple(place[state] for state in reached): word for reached, word in near}
        for permutation, word in zip(group.permutations.tolist(), group.words, strict=True):
            loops.setdefault(tuple(permutation), word)
        some = sorted(loops.items(), key=lambda each: len(each[1]))[:MOST_FACTORS]
        for first, one in some:
            for second, other in some:
                product = tuple(second[place] for place in first)
                if len(loops.get(product, one + other)) >= len(one + other):
                    loops[product] = one + other
        loops.pop(tuple(range(len(begin))), None)
        return sorted(loops.items(), key=lambda each: len(each[1]))[:MOST_LOOPS]

    @cached_property
    def _groups(self) -> list[HolonomyGroup]:
        """The groups on images, of classes but the sink, and words in symbols."""
        tell, sink = self._tell, self._machine.sink
        groups = []
        for group in self._images.groups or ():
            points, end = self._as_classes(group)
            kept = points != (-1 if sink is None else tell.class_of[sink])
            permutations = (np.cumsum(kept) - 1)[group.permutations[:, kept]]
            words = tuple(word + end for word in group.words)
            groups.append(
                replace(group, points=points[kept], permutations=permutations, words=words)
            )
        return groups

    def _as_classes(self, group: HolonomyGroup) -> tuple[Integers, Word]:
        """Classes that stand for the points of an image, and a word that has to end every word.

        A point of an image is one class, or several ones from which all words of some length lead
        to the same. Let e be a word that leaves the points as they are, and is as long as that. So
        it leads from all classes of a point p to one class of p, which stands for it; and where a
        word x takes p to q, x e takes the class of p to that of q.
        """
        tell = self._tell
        point_of = self._images.settled.classes[tell.members]
        parts = [np.flatnonzero(point_of == point) for point in group.points]
        word = group.words[0]
        idle = word * order_of(group.permutations[0])
        reached, end = np.arange(len(point_of)), Word()
        while any((reached[part] != reached[part[0]]).any() for part in parts):
            for symbol in idle:
                reached = tell.class_step[symbol][reached]
            end += idle
        return reached[[part[0] for part in parts]], end

    @cached_property
    def _seen_groups(self) -> list[tuple[HolonomyGroup, Subgroup]]:
        """Those that labels show, with what is known of each."""
        apart, found = self._tell.classes_apart, []
        for group in self._groups:
            if is_seen(apart, group.permutations, group.points):
                facts = generated_subgroup(group.permutations, True)
                if facts is not None:
                    found.append((group, facts))
        return found

    # --- words whose order matters ---

    @cached_property
    def order(self) -> Witness | None:
        """Two words, symbols where two symbols show it, whose order labels show."""
        most = self._most_actions(MOST_ORDERED)
        words = ShortestWords.of(self._machine.actions, self._tell.symbols, most)
        return self._in_two_orders(words, words.of_one_symbol) or self._in_two_orders(
            words, np.arange(1, len(words.maps))
        )

    @cached_property
    def order_of_symbols(self) -> Witness | None:
        """Two symbols in a row, whose order labels show after a further symbol."""
        words = ShortestWords.of(self._machine.actions, self._tell.symbols, 2)
        return self._in_two_orders(words, words.of_one_symbol, empty=False)

    def _in_two_orders(
        self, words: ShortestWords, numbers: Integers, *, empty: bool = True
    ) -> Witness | None:
        tell = self._tell
        apart = self._machine.apart if empty else tell.apart_later
        maps = words.maps[numbers]
        for first, map_ in zip(numbers.tolist(), maps, strict=True):
            told = np.zeros(maps.shape, bool) if apart is None else apart[maps[:, map_], map_[maps]]
            if told.any():
                row = int(told.any(axis=1).argmax())
                near = np.flatnonzero(told[row]).tolist()
                state = min(near, key=lambda each: len(tell.ways[each][1]))
                ends = int(maps[row][map_[state]]), int(map_[maps[row][state]])
                return Witness(
                    "order",
                    (words.word(first), words.word(int(numbers[row]))),
                    (tell.ways[state][0],),
                    (tell.ways[state][1],),
                    (tell.suffix(*ends, empty=empty),),
                )
        return None

    @cached_property
    def far_order(self) -> Witness | None:
        """Two words of one length, whose order labels show among words that change nothing."""
        tell, elements, actions = self._tell, self._elements, self._machine.actions
        if elements is None:
            return self._far_order_by_short_words()
        found = local_order(self._machine, elements)[1]
        if found is None:
            return None
        wanted = list(found[:3])
        step = elements.times(actions.astype(elements.elements.dtype))
        history = of_one_length(step, lambda made: bool(made[wanted].all()))
        if history is None:
            return None
        words = [[tell.symbols[action] for action in way_back(history, step, e)] for e in wanted]
        return self._told_far_apart(found.state, *map(tuple, words))

    def _far_order_by_short_words(self) -> Witness | None:
        """The same of a monoid that is not listed, with a word of one symbol that changes nothing.

        The monoid is aperiodic: a high power of the symbol is the same with one symbol more.
        """
        tell, told = self._tell, order_of_short_words(self._machine)
        if told is None:
            return None
        found, short = told
        idle, least = self._machine.actions[found.idle], 1
        reached = idle
        while (idle[reached] != reached).any():
            reached, least = idle[reached], least + 1
        words = [short.word(found.first), short.word(found.second)]
        size = max(least, *map(len, words))
        symbol = tell.symbols[found.idle]
        filled = [
            (*(tell.symbols[action] for action in word), *(symbol,) * (size - len(word)))
            for word in ((), *words)
        ]
        return self._told_far_apart(found.state, *filled)

    def _told_far_apart(self, state: int, idle: Word, first: Word, second: Word) -> Witness:
        tell, delta = self._tell, self._machine.delta
        begin = run(delta, state, idle)
        ends = [
            run(delta, begin, (*one, *idle, *two, *idle))
            for one, two in ((first, second), (second, first))
        ]
        place, access = tell.ways[state]
        reached = run(self._machine.whole.delta, place, idle)
        suffix = tell.suffix(*ends)
        return Witness("far order", (idle, first, second), (reached,), (access + idle,), (suffix,))

    # --- words that merge states, or lead away and back ---

    @cached_property
    def merge(self) -> Witness | None:
        """A symbol that takes two states, which labels tell apart, to one."""
        tell, apart, later = self._tell, self._machine.apart, self._tell.apart_later
        if apart is None or later is None:
            return None
        found = []
        for symbol, action in zip(tell.symbols, self._machine.actions, strict=True):
            merged = np.triu((action[:, None] == action[None, :]) & apart)
            for first, second in np.argwhere(merged).tolist():
                # before the first symbol no label is asked for
                ways = tell.ways if later[first, second] else tell.entered
                if first in ways and second in ways:
                    lengths = len(ways[first][1]) + len(ways[second][1])
                    found.append((lengths, symbol, first, second))
        if not found:
            return None
        _, symbol, first, second = min(found)
        ways = tell.ways if later[first, second] else tell.entered
        states, accesses = zip(*(ways[each] for each in (first, second)), strict=True)
        suffix = tell.suffix(first, second, empty=all(accesses))
        return Witness("merge", ((symbol,),), states, accesses, (suffix,))

    @cached_property
    def comes_back(self) -> Witness | None:
        """Two words that lead from one state to another one and back.

        Labels show it after a further symbol: the last one is seen, and may say of itself which of
        the two states a word leads to.
        """
        tell, later, machine = self._tell, self._tell.apart_later, self._machine
        if later is None:
            return None
        component = strong_components(machine.delta)
        together = later & (component[:, None] == component[None, :])
        states = ArrangedStates(tell.symbols, machine.actions)
        nearest = sorted(
            (each for each in tell.ways if together[each].any()),
            key=lambda each: len(tell.ways[each][1]),
        )
        found: list[tuple[Word, Word, int, int]] = []
        for state in nearest[:MOST_BEGINNINGS]:
            others = {(other,) for other in np.flatnonzero(together[state]).tolist()}
            for (other,), away in states.ways((state,), others.__contains__, 1):
                back = states.shortest((other,), [(state,)])
                assert back is not None, "both states are in one strong component"
                found.append((away, back, state, other))
            if any(len(away) == len(back) == 1 for away, back, *_ in found):
                break
        if not found:
            return None
        away, back, state, other = min(found, key=lambda each: len(each[0]) + len(each[1]))
        number, access = tell.ways[state]
        reached = run(machine.whole.delta, number, away)
        suffix = tell.suffix(state, other, empty=False)
        return Witness("return", (away, back), (number, reached), (access,), (suffix,))

    @cached_property
    def repeat(self) -> Witness | None:
        """A symbol, and the two shortest words of it alone whose labels are different."""
        whole = self._machine.whole
        found = []
        for symbol in np.flatnonzero(whole.drawable[whole.start]).tolist():
            state, labelled = whole.start, list[tuple[int, int]]()
            for read in range(1, 2 * len(whole.delta)):  # then labels repeat themselves
                if not whole.drawable[state, symbol]:
                    break
                state = int(whole.delta[state, symbol])
                if whole.scored[state]:
                    labelled.append((read, state))
                    if whole.output[state] != whole.output[labelled[0][1]]:
                        found.append((read, symbol, labelled[0], state))
                        break
        if not found:
            return None
        read, symbol, (before, first), second = min(found)
        accesses = (symbol,) * before, (symbol,) * read
        return Witness("repeat", ((symbol,),), (first, second), accesses, ((),))

    # --- states that no balanced counter tells apart ---

    @cached_property
    def counters(self) -> tuple[Integers, Counters]:
        """What balanced counters tell of the states, where labels are asked for in place."""
        return counters_in_place(self._machine)

    @cached_property
    def uncounted(self) -> Witness | None:
        """Two states that labels tell apart from the next symbol on, and no balanced counter does.

        None where there are none, or finding them takes too much work.
        """
        numbers, counters = self.counters
        apart, nearest = self._tell.apart_later, self._nearest(numbers)
        if counters.classes is None or apart is None:
            return None
        named = np.array(sorted(nearest))
        states = np.array([nearest[number] for number in named.tolist()])
        told = np.zeros((len(counters.classes),) * 2, bool)
        told[np.ix_(named, named)] = apart[np.ix_(states, states)]
        found = itertools.islice(counters.untold(told), MOST_UNTOLD)
        shown = min(found, key=lambda each: len(each.more) + len(each.fewer), default=None)
        if shown is None:
            return None
        first, second = (nearest[number] for number in shown.states)
        begin, access = self._tell.ways[first]
        end = begin
        for symbol in shown.way:
            end = int(self._machine.whole.delta[end, symbol])
        suffix = self._tell.suffix(first, second, empty=False)
        words = (shown.way, shown.more, shown.fewer)
        return Witness("balance", words, (begin, end), (access,), (suffix,), order=shown.times)

    def _nearest(self, numbers: Integers) -> dict[int, int]:
        """By number, the state of that number with the shortest way."""
        nearest: dict[int, int] = {}
        for state in sorted(self._tell.ways, key=lambda each: len(self._tell.ways[each][1])):
            nearest.setdefault(int(numbers[state]), state)
        return nearest

    # --- what they share ---

    @cached_property
    def _words(self) -> ShortestWords:
        """The shortest words of different actions on the classes."""
        tell = self._tell
        every_state = len(tell.members) == len(tell.class_of)  # is a class of its own
        most = self._most_actions(MOST_WORDS) if every_state else MOST_WORDS
        return ShortestWords.of(tell.class_actions, tell.class_symbols, most)

    def _most_actions(self, most: int) -> int:
        """A number, or that of all different actions on the states where it is known and less."""
        return most if self._elements is None else min(most, len(self._elements))

    @cached_property
    def _arrangements(self) -> ArrangedStates:
        return ArrangedStates(self._tell.class_symbols, self._tell.class_actions)
