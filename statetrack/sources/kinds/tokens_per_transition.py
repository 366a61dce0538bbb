"""Tokens per transition: every symbol of an automaton is spread over a block of symbols.

Letters: S states and V symbols of the automaton inside, B cases in which a block can have begun.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from statetrack.errors import TaskError
from statetrack.sources.arrays import Booleans, Integers
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.kinds import KINDS, argument, build_inner


@KINDS.register("tokens-per-transition")
def tokens_per_transition(
    *,
    of: Annotated[dict[str, Any], argument("the automaton, with its kind and arguments")],
    tokens: Annotated[int, argument("how many symbols a block has", min=1, max=64)],
    filler: Annotated[
        str | None,
        argument(
            "what follows a block's first symbol: a symbol of the automaton or a new one; "
            "left out, the first is repeated"
        ),
    ] = None,
    labels: Annotated[
        Literal["delayed", "at-once", "block-ends"],
        argument(
            "delayed: the new label from a block's last symbol on, and the old one before; "
            "at-once: from its first symbol on; block-ends: asked for after the last one only"
        ),
    ] = "delayed",
) -> Automaton:
    """An automaton that takes `tokens` symbols for every transition: time to compute each step.

    A word is made of blocks: a symbol of the automaton, then `tokens - 1` fillers, or that symbol
    again and again. Nothing else is drawn; what is no block leads to a state where no label is
    asked for. With one token it is the automaton itself, a new filler being never drawn.

    Siems et al. 2025, arXiv 2502.10297. In their data a word may end inside a block, as here.

    A filler leaves `labels: at-once` and `block-ends` with `tokens` states for each one of the
    automaton. Repeats, and labels that are delayed, have to be remembered: then there can be as
    many as `tokens - 1` for each of its transitions.
    """
    inner = build_inner(of, "of")
    symbols = list(inner.symbols)
    if filler is not None and filler not in symbols:
        symbols.append(filler)
    begun = _begun_blocks(inner, None if filler is None else symbols.index(filler), labels)
    num_states, num_begun = inner.num_states, len(begun.target)
    astray = num_states + (tokens - 1) * num_begun
    if (astray + 1) * len(symbols) > MOST_TRANSITIONS:
        raise TaskError(
            f"{astray + 1} states and {len(symbols)} symbols make more than {MOST_TRANSITIONS} "
            "transitions: take fewer tokens, or a filler and labels that are not delayed"
        )
    delta = np.full((astray + 1, len(symbols)), astray)
    weights = np.zeros(delta.shape)
    first = begun.number + num_states if tokens > 1 else inner.delta
    delta[:num_states, : inner.num_symbols] = first
    weights[:num_states, : inner.num_symbols] = inner.weights
    for place in range(1, tokens):
        states = np.arange(num_begun) + num_states + (place - 1) * num_begun
        further = states + num_begun if place < tokens - 1 else begun.target
        delta[states, begun.forced] = further
        weights[states, begun.forced] = 1
    weights[astray] = 1
    kept = len(delta) if (delta[:-1] == astray).any() else astray
    colons = ":"  # as many as no name has, so that names with them are new, in blocks of blocks too
    while any(colons in name for name in inner.states):
        colons += ":"
    inside = [f"{name}{colons}{place}" for place in range(1, tokens) for name in begun.names]
    repeat = tokens - 1
    return Automaton(
        delta[:kept],
        np.concatenate([inner.output, np.tile(begun.output, repeat), [0]])[:kept],
        start=inner.start,
        symbols=symbols,
        states=[*inner.states, *inside, f"no-block{colons}"][:kept],
        labels=inner.labels,
        weights=weights[:kept],
        scored=np.concatenate([inner.scored, np.tile(begun.scored, repeat), [False]])[:kept],
    )


@dataclass(frozen=True, eq=False)
class _BegunBlocks:
    """What has to be remembered inside a block."""

    target: Integers  # [B], the automaton's state after the block
    forced: Integers  # [B], the symbol that must follow
    output: Integers  # [B]
    scored: Booleans  # [B]
    names: list[str]
    number: Integers  # [S, V], the case that a symbol makes where it begins a block in a state


def _begun_blocks(inner: Automaton, filler: int | None, labels: str) -> _BegunBlocks:
    shown = inner.delta if labels == "at-once" else np.arange(inner.num_states)[:, None]
    if labels == "block-ends":
        output, scored = np.zeros((1, 1), np.int64), np.zeros((1, 1), bool)
    else:
        output, scored = inner.output[shown], inner.scored[shown]
    forced = np.arange(inner.num_symbols) if filler is None else np.array(filler)
    columns = np.broadcast_arrays(inner.delta, forced, output, scored)
    cases, first, number = np.unique(
        np.stack(columns, axis=-1).reshape(-1, len(columns)),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    begun = zip(*np.divmod(first, inner.num_symbols), strict=True)
    return _BegunBlocks(
        target=cases[:, 0],
        forced=cases[:, 1],
        output=cases[:, 2],
        scored=cases[:, 3].astype(bool),
        names=[f"{inner.states[state]},{inner.symbols[symbol]}" for state, symbol in begun],
        number=number.reshape(inner.delta.shape),
    )
