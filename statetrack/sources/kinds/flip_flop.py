"""Flip-flop: a bit is written, read, and kept while other things are ignored."""

from __future__ import annotations

from typing import Annotated

from statetrack.sources.automaton import Automaton
from statetrack.sources.kinds import KINDS, argument


@KINDS.register("flip-flop")
def flip_flop(
    *,
    ignore: Annotated[
        float, argument("the chance of `i`; `w` and `r` share what is left", min=0, max=0.999)
    ] = 0.8,
) -> Automaton:
    """The bit that was last written, asked for after `r`.

    Words are instruction, bit, instruction, bit: `w` writes the bit that follows, `i` has it
    ignored, and the bit after `r` is the one last written. The first instruction is `w`, later
    ones are drawn independently. The label is asked for after `r`, before its bit is seen, which
    would give it away.

    Liu et al. 2023, arXiv 2306.00946, who have `ignore` 0.8 for training, 0.98 for sparse and
    0.1 for dense tests. They also end every word with a read; a word is drawn here symbol by
    symbol and cannot know where it will end, so the last read may lie further back.
    """
    other = (1 - ignore) / 2
    bits = {"0": 1.0, "1": 1.0}
    rows: dict[str, tuple[dict[str, str], dict[str, float]]] = {
        "start": ({"w": "write"}, {"w": 1.0}),
        "write": ({"0": "holds-0", "1": "holds-1"}, bits),
    }
    for bit in bits:
        held = f"holds-{bit}"
        rows[held] = (
            {"w": "write", "r": f"read-{bit}", "i": f"ignore-{bit}"},
            {"w": other, "r": other, "i": ignore},
        )
        rows[f"read-{bit}"] = ({bit: held}, {bit: 1.0})
        rows[f"ignore-{bit}"] = ({"0": held, "1": held}, bits)
    rows["broken"] = ({}, dict.fromkeys("wri01", 1.0))
    states = list(rows)
    return Automaton(
        [
            [states.index(row.get(symbol, "broken")) for symbol in "wri01"]
            for row, _ in rows.values()
        ],
        [int(state.endswith("1")) for state in states],
        symbols=list("wri01"),
        states=states,
        labels=["0", "1"],
        weights=[[row.get(symbol, 0.0) for symbol in "wri01"] for _, row in rows.values()],
        scored=[state.startswith("read") for state in states],
    )
