"""Witness words in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from statetrack import algebra as theory
from statetrack import report, sources

Line = tuple[str, str]
"""A name and a text."""

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
        console.print(Padding(report.drawing.facts(lines), (0, 0, 0, 2)))


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
    if witness.kind == "merge":
        accesses = dict(zip(("u", "u'"), witness.accesses, strict=True))
    else:  # those to other orbits of a group are in --json
        accesses = {"u": witness.access}
    for letter, word in accesses.items():
        yield letter, word_text(word, symbols)
    yield "v", " or ".join(word_text(word, symbols) for word in witness.suffixes)
    if witness.kind in ("powers", "count"):
        yield "labels", _labels(witness, automaton)
    if witness.kind == "group":
        yield "states", _states(witness, automaton)


def _labels(witness: theory.Witness, automaton: sources.Automaton) -> str:
    """The labels after the word's powers, for one period and the beginning of the next."""
    found = [theory.label_after(automaton, state, witness.suffixes[0]) for state in witness.states]
    again = (found * 2)[: witness.order + 2]
    shown = again if len(again) <= MOST_LABELS else found[: MOST_LABELS - 1]
    names = ["(not asked for)" if label is None else automaton.labels[label] for label in shown]
    return ", ".join([*names, "..."])


def _states(witness: theory.Witness, automaton: sources.Automaton) -> str:
    names = [automaton.states[state] for state in witness.states[:MOST_STATES]]
    more = len(witness.states) - len(names)
    return " ".join(names) + (f" and {more} more, in --json" if more else "")
