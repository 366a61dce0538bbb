"""Losses of logits and their backward passes, and answers.

M positions, C labels.
"""

from __future__ import annotations

import math
from typing import Any

from statetrack.ops.loops.compiling import loop
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.memory import Array, at, put
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    filled,
    first_lane,
    greater,
    keep_some,
    largest,
    less_in_lane,
    load_some,
    splat,
    store_some,
    total,
)


@loop
def entropy_forward(
    logits: Array, labels: Any, losses: Array, sums: Array, sizes: Any, smoothing: float
) -> None:
    """Of logits z [M, C], -log p of the label, with p = softmax(z): [M].

    With a smoothing s, (1 - s) times that and s times the mean of -log p over all labels. Sums
    [M, 2] are the largest logit m and log sum e^(z - m).
    """
    M, C = sizes
    zero, one = losses.dtype.type(0), losses.dtype.type(1)
    share, lowest = losses.dtype.type(smoothing), losses.dtype.type(-math.inf)
    for row in up_to(M):
        highest, summed = splat(lowest), splat(zero)
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = filled(load_some(logits, row * C + i, count), count, lowest)
            highest = greater(part, highest)
        most = largest(highest)
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = exponential(load_some(logits, row * C + i, count) - most)
            summed = summed + keep_some(part, count)
        log_sum = losses.dtype.type(math.log(total(summed)))
        loss = log_sum - (at(logits, row * C + at(labels, row)) - most)
        if smoothing > 0:
            mean = splat(zero)
            for i in spaced(0, C, LANES):
                mean = mean + load_some(logits, row * C + i, least(LANES, C - i))
            others = total(mean) / losses.dtype.type(C) - most
            loss = (one - share) * loss + share * (log_sum - others)
        put(sums, 2 * row, most)
        put(sums, 2 * row + 1, log_sum)
        put(losses, row, loss)


@loop
def entropy_backward(
    logits: Array,
    labels: Any,
    sums: Array,
    by_losses: Array,
    by_logits: Array,
    sizes: Any,
    smoothing: float,
) -> None:
    """The gradients by logits."""
    M, C = sizes
    share = by_losses.dtype.type(smoothing)
    for row in up_to(M):
        along, each = at(by_losses, row), share / by_losses.dtype.type(C)
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = load_some(logits, row * C + i, count) - at(sums, 2 * row)
            part = exponential(part - at(sums, 2 * row + 1)) - each
            part = less_in_lane(part, at(labels, row) - i, by_losses.dtype.type(1) - share)
            store_some(by_logits, row * C + i, count, along * part)


@loop
def error_forward(logits: Array, labels: Any, losses: Array, sizes: Any) -> None:
    """The sums over c of (z_c + 1 / C - [c is the label])^2 of logits z [M, C]: [M]."""
    M, C = sizes
    one, share = losses.dtype.type(1), losses.dtype.type(1) / losses.dtype.type(C)
    for row in up_to(M):
        summed = splat(losses.dtype.type(0))
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = load_some(logits, row * C + i, count) + share
            part = keep_some(less_in_lane(part, at(labels, row) - i, one), count)
            summed = summed + part * part
        put(losses, row, total(summed))


@loop
def error_backward(
    logits: Array, labels: Any, by_losses: Array, by_logits: Array, sizes: Any
) -> None:
    """The gradients by logits."""
    M, C = sizes
    one, share = by_losses.dtype.type(1), by_losses.dtype.type(1) / by_losses.dtype.type(C)
    for row in up_to(M):
        along = at(by_losses, row) + at(by_losses, row)
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = load_some(logits, row * C + i, count) + share
            part = less_in_lane(part, at(labels, row) - i, one)
            store_some(by_logits, row * C + i, count, along * part)


@loop
def find_answers(logits: Array, answers: Any, finite: Any, sizes: Any) -> None:
    """The first label of the largest of logits [M, C], NaN above all; 1 where all are finite."""
    M, C = sizes
    lowest = logits.dtype.type(-math.inf)
    for row in up_to(M):
        highest, differ = splat(lowest), splat(logits.dtype.type(0))
        for i in spaced(0, C, LANES):
            count = least(LANES, C - i)
            part = load_some(logits, row * C + i, count)
            differ = differ + (part - part)
            highest = greater(filled(part, count, lowest), highest)
        best, all_finite = 0, total(differ) == 0
        if all_finite:
            most, found = largest(highest), LANES
            while found == LANES:
                part = load_some(logits, row * C + best, least(LANES, C - best))
                found = first_lane(part, most)
                best += found
        else:
            most = at(logits, row * C)
            for label in spaced(1, C, 1):
                number = at(logits, row * C + label)
                if not number <= most and most == most:
                    best, most = label, number
        put(answers, row, best)
        put(finite, row, 1 if all_finite else 0)
