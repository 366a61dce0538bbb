"""An extracted machine in the terminal: what is known of it, and its transitions."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from statetrack.evidence import (
    EXTRACTION_ENDINGS,
    Extraction,
    MyhillNerode,
    NerodeScores,
    failure_text,
)
from statetrack.report.drawing import plain_table, share
from statetrack.report.formats.rich import FittedTable
from statetrack.sources import Automaton

ALGORITHMS = {"lstar": "L*", "kv": "KV"}
"""The algorithms as they are written."""


def extraction_lines(
    found: Extraction, symbols: Sequence[str], labels: Sequence[str]
) -> list[tuple[str, str]]:
    """What was found, and how far it was tested: names and values."""
    lines = [("machine", _size(found)), ("compared", _comparison(found, symbols, labels))]
    read = f"{found.words:,} words, of up to {_symbols(found.longest)}"
    if found.all_to:
        read += f"; all that are drawn of up to {found.all_to}"
    lines.append(("read", read))
    if found.states:
        lines.append(("tested", _tests(found)))
    return lines


def distinction_lines(found: MyhillNerode) -> list[tuple[str, str]]:
    """Compression and distinction: on all short words, and on random ones."""
    if not found.prefixes:
        return [("keeps apart", "not measured: the time was spent")]
    told = "" if found.tells_apart else ", which do not tell all states apart"
    where = (
        f"on all {found.prefixes:,} words of up to {found.prefix_length} symbols, with all "
        f"suffixes of up to {found.suffix_length}{told}"
    )
    if found.reached < found.states:
        where += f"; they reach {found.reached} of {found.states} states"
    sampled = (
        f"on {found.sampled_prefixes:,} random words of up to {found.sampled_length:,} symbols"
    )
    exact = ("keeps apart", f"{_scores(found.exact)}, {where}")
    return (
        [exact, ("", f"{_scores(found.sampled)}, {sampled}")] if found.sampled_prefixes else [exact]
    )


def transitions(machine: Automaton) -> FittedTable:
    """The transition table; a symbol that is never drawn in a state has `-`."""
    table = plain_table("state", "label", *machine.symbols, more="--json has the machine")
    for state, targets in enumerate(machine.delta.tolist()):
        label = machine.labels[machine.output[state]] if machine.scored[state] else "-"
        reached = [
            machine.states[target] if drawn else Text("-", "dim")
            for target, drawn in zip(targets, machine.drawable[state], strict=True)
        ]
        style = "bold" if state == machine.start else None
        table.add_row(machine.states[state], label, *reached, style=style)
    return table


def _size(found: Extraction) -> str:
    if not found.states:
        return f"none was learned: {EXTRACTION_ENDINGS[found.reason]}"
    states = f"{found.states:,} state{'s' if found.states > 1 else ''}"
    if found.needed is None:
        return f"{states}, by {ALGORITHMS[found.algorithm]}"
    return f"{states}, by {ALGORITHMS[found.algorithm]}; the task needs {found.needed:,}"


def _comparison(found: Extraction, symbols: Sequence[str], labels: Sequence[str]) -> str:
    if found.difference is not None:
        shortest = found.reason == "tested" or found.difference.position <= found.all_to + 1
        which = "the shortest word" if shortest else "the shortest word that was met"
        who = "the network is " if found.reason == "length" else ""
        return (
            f"{who}not equivalent to the task; {which}: "
            f"{failure_text(found.difference, symbols, labels)}"
        )
    if found.equivalent:
        return "equivalent to the task: the machine answers every word as the task does"
    return "not decided"


def _tests(found: Extraction) -> str:
    random = f"{found.random_words:,} random words of up to {_symbols(found.random_length)}"
    if found.reason == "length":
        return (
            f"{random} among them: machine and network agree on all but a longer word that was "
            "known to fail, so the machine is what the network computes on short words at most "
            "(--length)"
        )
    if found.reason != "tested":
        ended = EXTRACTION_ENDINGS[found.reason]
        return f"not to the end: {ended}; the machine is the last hypothesis"
    more = ""
    if found.extra_states is not None:
        states = f"{found.extra_states} more state{'' if found.extra_states == 1 else 's'}"
        more = f"; if the network is a machine with at most {states}, it is this one"
    return f"{random} among them: machine and network agree on all{more}"


def _scores(scores: NerodeScores) -> str:
    return (
        f"compression precision {share(scores.compression_precision)}, distinction precision "
        f"{share(scores.distinction_precision)}, recall {share(scores.distinction_recall)}"
    )


def _symbols(number: int) -> str:
    return "1 symbol" if number == 1 else f"{number:,} symbols"
