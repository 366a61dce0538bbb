"""The adder: numbers are added digit by digit, with a carry."""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

from statetrack.errors import TaskError
from statetrack.sources.automaton import MOST_TRANSITIONS, Automaton
from statetrack.sources.derived import minimise
from statetrack.sources.graphs import explore
from statetrack.sources.kinds import KINDS, argument

MOST_SYMBOLS = 4096


@KINDS.register("adder")
def adder(
    *,
    addends: Annotated[int, argument("how many numbers are added", min=2, max=12)] = 2,
    base: Annotated[int, argument("how many digits there are", min=2, max=10)] = 2,
    labels: Annotated[
        Literal["digit", "carry", "both"],
        argument("digit: that of the sum; carry: what goes on to the next place; or both"),
    ] = "digit",
) -> Automaton:
    """The sum of numbers whose digits come place by place, the lowest first.

    A symbol has one digit of every addend: `01` is a 0 of the first and a 1 of the second. With t
    the sum of those digits and of the carry, the digit of the sum is t modulo the base and the
    carry becomes what is left of t / base.

    Liu et al. 2022, arXiv 2210.10749. Their data have bases equal to the number of addends, and
    close every word with zeros; here the last carry stays where the word ends.
    """
    if base**addends > MOST_SYMBOLS:
        raise TaskError(
            f"{addends} addends in base {base} make {base**addends} symbols: "
            f"more than {MOST_SYMBOLS} are too many"
        )
    places = list(itertools.product(range(base), repeat=addends))

    def step(state: tuple[int, int], digits: tuple[int, ...]) -> tuple[int, int]:
        carry, _ = state
        return divmod(carry + sum(digits), base)

    states, delta = explore((0, 0), places, step, MOST_TRANSITIONS // len(places))
    names = [f"{carry},{digit}" for carry, digit in states]
    carries, digits = (list(map(str, column)) for column in zip(*states, strict=True))
    shown = {"digit": digits, "carry": carries, "both": names}[labels]
    answers = sorted(set(shown))
    return minimise(
        Automaton(
            delta,
            [answers.index(each) for each in shown],
            symbols=["".join(map(str, digits)) for digits in places],
            states=names,
            labels=answers,
        )
    )
