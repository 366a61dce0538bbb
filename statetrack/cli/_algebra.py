"""The algebra of a task as lines of a table in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from statetrack import algebra as theory
from statetrack import report, spec
from statetrack.cli._witness import group_words

Line = tuple[str, str]
"""A name and a text."""


def algebra_facts(algebra: theory.Algebra, words: spec.WordSpec) -> list[Line]:
    """The algebra of a task that is trained on some words."""
    complexity = algebra.complexity
    from statetrack.predicting import identification_by

    found = identification_by(words, algebra.machine)
    return [
        ("states needed", _states(algebra)),
        *_monoid(algebra),
        *group_words(algebra),
        ("cascade", _cascade(algebra)),
        *_irreducibles(algebra),
        *_margin(algebra),
        ("complexity", f"{complexity.name}: {complexity.theorem} ({complexity.source})"),
        ("identified by", _identification(found, words)),
    ]


def _states(algebra: theory.Algebra) -> str:
    """The fewest states; where there can be fewer than states that differ, both."""
    fewest, all_states = algebra.fewest_states, algebra.num_states
    if fewest.low == all_states:
        return str(all_states)
    shown = str(fewest.high) if fewest.known else f"{fewest.low} to {fewest.high}"
    return (
        f"{shown}, of {all_states} that differ in labels asked for or symbols drawn: one state "
        "may stand for several that no drawn word tells apart"
    )


def _monoid(algebra: theory.Algebra) -> Iterator[Line]:
    facts = algebra.monoid
    if facts is None:
        yield "monoid", f"too large: {algebra.too_large}"
        return
    groups = [group.name for group in facts.subgroups if group.order > 1]
    yield "monoid", _size(algebra, facts)
    yield "groups in it", " · ".join(dict.fromkeys(groups)) or f"none: star-free{_trivial(facts)}"


def _size(algebra: theory.Algebra, facts: theory.MonoidFacts) -> str:
    """How many elements there are, or how many images of the states were looked at instead."""
    if facts.size is not None:
        kind = "a group" if algebra.is_group else f"{facts.idempotents} idempotents"
        return f"{facts.size} elements, {kind}"
    assert algebra.images is not None, "what is known without the elements is known from images"
    return (
        f"too large to list, so its groups are those of the {len(algebra.images):,} images of the "
        "states under words"
    )


def _trivial(facts: theory.MonoidFacts) -> str:
    """Which of Green's relations tell all elements apart, beside H."""
    if facts.j_trivial:
        return ", J-trivial"
    return ", R-trivial" * facts.r_trivial + ", L-trivial" * bool(facts.l_trivial)


def _cascade(algebra: theory.Algebra) -> str:
    """How many levels are enough, and between what the group complexity lies."""
    cascade = algebra.cascade
    levels = "how many levels are enough is not known"
    if cascade.levels is not None:
        levels = f"at most {cascade.levels} level{'s' * (cascade.levels != 1)} of resets and groups"
    low, high = cascade.fewest_groups, cascade.most_groups
    groups = f"{low}" if low == high else f"{low} to {'?' if high is None else high}"
    return f"{levels}; group complexity {groups}"


def _irreducibles(algebra: theory.Algebra) -> Iterator[Line]:
    if algebra.irreducibles is not None:
        sizes = algebra.irreducibles.real
        yield "real irreducibles", f"{len(sizes)}, of dimension {_spread(sizes)}"


def _margin(algebra: theory.Algebra) -> Iterator[Line]:
    """The margin of the smallest representation, and how far it reaches."""
    chosen, horizons = algebra.representation, algebra.horizons
    if chosen is None or horizons is None:
        return
    yield (
        "margin",
        f"{report.share(chosen.readout.margin, 3)} of the state's norm, in "
        f"{chosen.cost} dimension{'s' * (chosen.cost > 1)}",
    )
    yield (
        "horizon",
        f"at least {_rounded_down(horizons['float32'])} symbols in float32 and "
        f"{_rounded_down(horizons['bfloat16'])} in bfloat16, about "
        f"{_rounded_down(horizons['noise'])} under noise of {theory.NOISE:.0%} a step",
    )


def _rounded_down(number: float) -> str:
    """A count to two digits: 2,900,000."""
    unit = 10 ** max(len(str(int(number))) - 2, 0)
    return f"{int(number) // unit * unit:,}"


def _identification(found: theory.Identification, words: spec.WordSpec) -> str:
    """How long the words are that tell the machine from all others as small."""
    shown = f"words of up to {found.enough:,} symbols, not of fewer"
    if found.needed < found.enough:
        shown += f" than {found.needed}"
    told = {True: ": enough", False: ": too short", None: ""}
    answer = told[found.by_words_up_to(words.lengths.longest)]
    return f"{shown}; training has {words.lengths}{answer}"


def _spread(sizes: Sequence[int]) -> str:
    counts = {size: sizes.count(size) for size in sorted(set(sizes))}
    return ", ".join(f"{size} ({count}x)" for size, count in counts.items())
