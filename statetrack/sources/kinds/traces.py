"""Recorded traces, with a machine that reads them or with recorded outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from statetrack.errors import TaskError
from statetrack.sources.automaton import Source
from statetrack.sources.corpus import Corpus, Trace
from statetrack.sources.kinds import KINDS, argument, build_inner


@KINDS.register("traces")
def traces(
    *,
    traces: Annotated[
        list[str],
        argument("the recorded words: names of symbols with spaces between them"),
        Field(min_length=1),
    ],
    outputs: Annotated[
        list[str] | None,
        argument("what was recorded after each symbol, as the traces are written"),
    ] = None,
    counts: Annotated[
        list[int] | None, argument("how often each trace was recorded; left out, once")
    ] = None,
    machine: Annotated[
        dict[str, Any] | None,
        argument("the automaton that labels the words; left out, the outputs are the labels"),
    ] = None,
) -> Source:
    """Words that were recorded, and what a machine says to them or said when they were.

    A word of n symbols is the beginning of a recorded trace of at least n symbols, drawn as often
    as it was recorded among those. Of ten traces eight are for training, one is for validation and
    one for tests, dealt from the longest to the shortest: no trace is for two of them. Short
    beginnings of different traces may be equal words.

    With a machine, any word of its symbols has labels, and outputs must be those of the machine.
    Without one, a word that begins no recorded trace has none: it is refused.
    """
    for name, given in (("outputs", outputs), ("counts", counts)):
        if given is not None and len(given) != len(traces):
            raise TaskError(f"{name}: {len(given)} for {len(traces)} traces")
    if counts is not None and min(counts) < 1:
        raise TaskError(f"counts: {min(counts)} is less than 1")
    found = [
        Trace(
            tuple(word.split()),
            None if outputs is None else tuple(outputs[place].split()),
            times=1 if counts is None else counts[place],
        )
        for place, word in enumerate(traces)
    ]
    return Corpus.of(found, None if machine is None else build_inner(machine, "machine"))


def written(found: Sequence[Trace], *, with_outputs: bool) -> dict[str, Any]:
    """The arguments of `traces` that make a corpus of these traces, equal ones together."""
    counts: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
    for trace in found:
        outputs = trace.outputs if with_outputs and trace.outputs else ()
        counts[trace.symbols, outputs] += trace.times
    arguments: dict[str, Any] = {"traces": [" ".join(symbols) for symbols, _ in counts]}
    if with_outputs:
        arguments["outputs"] = [" ".join(outputs) for _, outputs in counts]
    if counts.total() > len(counts):
        arguments["counts"] = list(counts.values())
    return arguments
