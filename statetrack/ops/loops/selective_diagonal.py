"""The selective diagonal recurrence of Mamba, and its backward pass.

R replicas, W words, T time, E channels, N numbers of a channel's state.
"""

from __future__ import annotations

from typing import Any

from statetrack.ops.loops.compiling import loop, part
from statetrack.ops.loops.counting import least, spaced, up_to
from statetrack.ops.loops.matrix_states import CHUNK
from statetrack.ops.loops.memory import Array, at, empty, exists, put, release
from statetrack.ops.loops.vectors import (
    LANES,
    exponential,
    load,
    load_some,
    splat,
    store,
    store_some,
    total,
)


@part
def _gain(step: Any, rates: Array, place: int, count: int, signed: bool) -> Any:
    """Gains exp(step rate), or twice that minus 1, and their derivatives by the product."""
    one = rates.dtype.type(1)
    grown = exponential(step * load_some(rates, place, count))
    if signed:
        grown = grown + grown
        return grown - one, grown
    return grown, grown


@loop
def selective_forward(
    steps: Array,
    inputs: Array,
    writings: Array,
    readings: Array,
    rates: Array,
    first: Array,
    outputs: Array,
    last: Array,
    kept: Array,
    sizes: Any,
    signed: bool,
    strides: Any,
) -> None:
    """The states h <- exp(dt A) * h + dt x B^T, read as h C: channels [R, W, T, E] of N numbers.

    The rates A are [R, N, E], states [R, W, N, E], and B and C [R, W, T, N]. Unless empty, `kept`
    gets the states before chunks, [R, W, chunks, blocks, N, LANES].
    """
    R, W, T, E, N = sizes
    zero = first.dtype.type(0)
    (state,) = empty(first, (N * LANES,))
    chunks, blocks = -(-T // CHUNK), -(-E // LANES)
    for number in up_to(R * W):
        rate = number // W * N * E
        for block in up_to(blocks):
            channel = block * LANES
            count = least(LANES, E - channel)
            own = number * N * E + channel
            for n in up_to(N):
                store(state, n * LANES, load_some(first, own + n * E, count))
            for t in up_to(T):
                if exists(kept) and t % CHUNK == 0:
                    place = ((number * chunks + t // CHUNK) * blocks + block) * N * LANES
                    for n in up_to(N):
                        store(kept, place + n * LANES, load(state, n * LANES))
                row = number * T + t
                step = load_some(steps, row * strides[0] + channel, count)
                added = step * load_some(inputs, row * strides[1] + channel, count)
                write, reading = row * strides[2], row * strides[3]
                read = splat(zero)
                for n in up_to(N):
                    gain, _ = _gain(step, rates, rate + n * E + channel, count, signed)
                    after = gain * load(state, n * LANES) + at(writings, write + n) * added
                    store(state, n * LANES, after)
                    read = read + at(readings, reading + n) * after
                store_some(outputs, row * E + channel, count, read)
            for n in up_to(N):
                store_some(last, own + n * E, count, load(state, n * LANES))
    release(state)


@loop
def selective_backward(
    steps: Array,
    inputs: Array,
    writings: Array,
    readings: Array,
    rates: Array,
    kept: Array,
    by_outputs: Array,
    by_last: Array,
    by_steps: Array,
    by_inputs: Array,
    by_writings: Array,
    by_readings: Array,
    by_rates: Array,
    by_first: Array,
    sizes: Any,
    signed: bool,
    strides: Any,
) -> None:
    """The gradients; that by the rates is added to zeros."""
    R, W, T, E, N = sizes
    zero = kept.dtype.type(0)
    size = N * LANES
    chunks, blocks = -(-T // CHUNK), -(-E // LANES)
    states, slopes, adjoints, by_writing, by_reading = empty(
        kept, ((CHUNK + 1) * size, CHUNK * size, blocks * size, CHUNK * size, CHUNK * size)
    )
    one = kept.dtype.type(1)
    for number in up_to(R * W):
        rate = number // W * N * E
        for block in up_to(blocks):
            own = number * N * E + block * LANES
            count = least(LANES, E - block * LANES)
            for n in up_to(N):
                held = load_some(by_last, own + n * E, count)
                store(adjoints, block * size + n * LANES, held)
        for chunk in spaced(chunks - 1, -1, -1):
            start = chunk * CHUNK
            length = least(CHUNK, T - start)
            for i in spaced(0, length * size, LANES):
                store(by_writing, i, splat(zero))
                store(by_reading, i, splat(zero))
            for block in up_to(blocks):
                channel = block * LANES
                count = least(LANES, E - channel)
                place = ((number * chunks + chunk) * blocks + block) * size
                for i in spaced(0, size, LANES):
                    store(states, i, load(kept, place + i))
                for t in up_to(length):
                    row = number * T + start + t
                    step = load_some(steps, row * strides[0] + channel, count)
                    added = step * load_some(inputs, row * strides[1] + channel, count)
                    write = row * strides[2]
                    for n in up_to(N):
                        place = t * size + n * LANES
                        gain, slope = _gain(step, rates, rate + n * E + channel, count, signed)
                        store(slopes, place, slope)
                        after = gain * load(states, place) + at(writings, write + n) * added
                        store(states, place + size, after)
                for t in spaced(length - 1, -1, -1):
                    row = number * T + start + t
                    step = load_some(steps, row * strides[0] + channel, count)
                    given = load_some(inputs, row * strides[1] + channel, count)
                    added = step * given
                    write, reading = row * strides[2], row * strides[3]
                    wanted = load_some(by_outputs, row * E + channel, count)
                    by_added, by_step = splat(zero), splat(zero)
                    for n in up_to(N):
                        place = t * size + n * LANES
                        own = rate + n * E + channel
                        held = load(adjoints, block * size + n * LANES)
                        held = held + at(readings, reading + n) * wanted
                        found = load(by_reading, place) + load(states, place + size) * wanted
                        store(by_reading, place, found)
                        store(by_writing, place, load(by_writing, place) + held * added)
                        by_added = by_added + at(writings, write + n) * held
                        slope = load(slopes, place)
                        by_product = held * load(states, place) * slope
                        by_step = by_step + by_product * load_some(rates, own, count)
                        found = load_some(by_rates, own, count) + by_product * step
                        store_some(by_rates, own, count, found)
                        if signed:
                            slope = slope - one
                        store(adjoints, block * size + n * LANES, slope * held)
                    by_step = by_step + by_added * given
                    store_some(by_steps, row * E + channel, count, by_step)
                    store_some(by_inputs, row * E + channel, count, by_added * step)
            for t in up_to(length):
                for n in up_to(N):
                    place = (number * T + start + t) * N + n
                    put(by_writings, place, total(load(by_writing, t * size + n * LANES)))
                    put(by_readings, place, total(load(by_reading, t * size + n * LANES)))
        for block in up_to(blocks):
            own = number * N * E + block * LANES
            count = least(LANES, E - block * LANES)
            for n in up_to(N):
                store_some(by_first, own + n * E, count, load(adjoints, block * size + n * LANES))
    release(states)
