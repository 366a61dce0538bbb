"""The algebra of a task and its witness words in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from statetrack import algebra as theory
from statetrack import report, sources, spec

Line = tuple[str, str]
"""A name and a text."""


def algebra_facts(algebra: theory.Algebra, words: spec.WordSpec) -> Iterator[Line]:
    """The algebra of a task that is trained on some words."""
    from statetrack.predicting import identification_by

    yield "states needed", _states(algebra)
    monoid = algebra.monoid
    if monoid is None:
        yield "monoid", f"too large: {algebra.too_large}"
    else:
        groups = dict.fromkeys(group.name for group in monoid.subgroups if group.order > 1)
        yield "monoid", _size(algebra, monoid)
        yield "groups in it", " · ".join(groups) or f"none: star-free{_trivial(monoid)}"
    yield from group_words(algebra)
    cascade = algebra.cascade
    levels = "how many levels are enough is not known"
    if cascade.levels is not None:
        levels = f"at most {cascade.levels} level{'s' * (cascade.levels != 1)} of resets and groups"
    low, high = cascade.fewest_groups, cascade.most_groups
    between = f"{low}" if low == high else f"{low} to {'?' if high is None else high}"
    yield "cascade", f"{levels}; group complexity {between}"
    if algebra.irreducibles is not None:
        sizes = algebra.irreducibles.real
        counts = (f"{size} ({sizes.count(size)}x)" for size in sorted(set(sizes)))
        yield "real irreducibles", f"{len(sizes)}, of dimension {', '.join(counts)}"
    yield from _margin(algebra)
    complexity = algebra.complexity
    yield "complexity", f"{complexity.name}: {complexity.theorem} ({complexity.source})"
    found = identification_by(words, algebra.machine)
    shown = f"words of up to {found.enough:,} symbols, not of fewer"
    if found.needed < found.enough:
        shown += f" than {found.needed}"
    told = {True: ": enough", False: ": too short", None: ""}
    answer = told[found.by_words_up_to(words.lengths.longest)]
    yield "identified by", f"{shown}; training has {words.lengths}{answer}"


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


EXPLAINED = "u leads there, v tells states apart, a^3 is a a a"

MOST_SHOWN = 60
"""The most different symbols in a row that are shown of a word; `--json` has all."""

MOST_STATES = 12
"""The most states that are named."""

MOST_LABELS = 12
"""The most labels of a sequence that goes on for ever that are shown."""

MOST_GROUPS = 2
"""The most groups whose words `show` has, the largest ones."""


def draw_witnesses(
    numbers: Mapping[theory.Witness, int], automaton: sources.Automaton, console: Console
) -> None:
    """Print witnesses under their numbers; nothing where there are none."""
    if not numbers:
        return
    console.print()
    console.print(Text.assemble(("witness words", "bold"), (f"  {EXPLAINED}", "dim")))
    for witness, number in numbers.items():
        lines = [(f"{number}", witness.says), *_lines(witness, automaton)]
        console.print(Padding(report.facts(lines), (0, 0, 0, 2)))


def group_words(algebra: theory.Algebra) -> Iterator[Line]:
    """Words that generate the largest groups that labels show, one line for each group."""
    facts = algebra.monoid
    seen = [group for group in facts.subgroups if group.seen and group.order > 1] if facts else []
    for group in list(dict.fromkeys(seen))[:MOST_GROUPS]:
        witness = algebra.witnesses.group(group)
        if witness is not None:
            words = ", ".join(
                f"{letter} = {word_text(word, algebra.machine.whole.symbols)}"
                for letter, word in zip(witness.letters, witness.words, strict=True)
            )
            yield "by words", f"{witness.group}: {words}, on {len(witness.states)} states"


def word_text(word: theory.Word, symbols: Sequence[str]) -> str:
    """A word by the names of its symbols: `a^3 b`; how long it is where it is not shown whole."""
    runs = [(symbols[symbol], len(list(run))) for symbol, run in groupby(word)]
    shown = [name if count == 1 else f"{name}^{count}" for name, count in runs[:MOST_SHOWN]]
    if len(runs) > MOST_SHOWN:
        shown.append(f"... ({len(word):,} symbols, in --json)")
    return " ".join(shown) or "(no symbol)"


def _lines(witness: theory.Witness, automaton: sources.Automaton) -> Iterator[Line]:
    symbols = automaton.symbols
    for letter, word in zip(witness.letters, witness.words, strict=True):
        size = f"  ({len(word)} symbols)" if len(word) > 1 else ""
        yield letter, word_text(word, symbols) + size
    for letter, word in witness.told_accesses.items():
        yield letter, word_text(word, symbols)
    yield "v", " or ".join(word_text(word, symbols) for word in witness.suffixes)
    if witness.kind in ("powers", "count"):
        yield "labels", _labels(witness, automaton)
    if witness.kind == "group":
        yield "states", _state_names(witness, automaton)


def _labels(witness: theory.Witness, automaton: sources.Automaton) -> str:
    """The labels after the word's powers, for one period and the beginning of the next."""
    found = [theory.label_after(automaton, state, witness.suffixes[0]) for state in witness.states]
    again = (found * 2)[: witness.order + 2]
    shown = again if len(again) <= MOST_LABELS else found[: MOST_LABELS - 1]
    names = ["(not asked for)" if label is None else automaton.labels[label] for label in shown]
    return ", ".join([*names, "..."])


def _state_names(witness: theory.Witness, automaton: sources.Automaton) -> str:
    names = [automaton.states[state] for state in witness.states[:MOST_STATES]]
    more = len(witness.states) - len(names)
    return " ".join(names) + (f" and {more} more, in --json" if more else "")
