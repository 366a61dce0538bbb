"""Linear models with hand-set weights that represent their task exactly, but for rounding."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

import statetrack as st
from statetrack.sources import Automaton, Floats
from statetrack.spec import load_task


def put(parameter: Any, values: Any) -> None:
    with torch.no_grad():
        parameter.copy_(torch.as_tensor(np.asarray(values), dtype=parameter.dtype))


def of_points(
    name: str, automaton: Automaton, matrices: Floats, points: Floats, **settings: Any
) -> Any:
    """A dense or block model with these matrices, that reads labels by the nearest point [S, H]."""
    model = st.MODELS[name](
        st.MODELS[name].settings_class(hidden=points.shape[1], **settings),
        num_symbols=automaton.num_symbols,
        num_labels=automaton.num_labels,
    ).eval()
    put(model.first, points[automaton.start])
    put(model.readout.weight, points / np.square(points).sum(1, keepdims=True))
    if name == "bilinear":
        put(model.weight, matrices)
    return model


def actions(automaton: Automaton) -> Floats:
    """The maps of states as matrices of 0 and 1, [V, S, S]."""
    return np.eye(automaton.num_states)[automaton.delta.T].transpose(0, 2, 1)


def one_hot(task: str) -> tuple[Any, Automaton]:
    automaton = load_task(task).source.automaton
    assert automaton is not None
    return of_points(
        "bilinear", automaton, actions(automaton), np.eye(automaton.num_states)
    ), automaton


def rotating(modulus: int = 5) -> tuple[Any, Automaton]:
    """All harmonics of modular addition, by rotations."""
    automaton = load_task(f"modular-addition:m={modulus}").source.automaton
    assert automaton is not None
    harmonics = np.arange(1, (modulus + 1) // 2)
    turns = 2 * np.pi / modulus * np.outer(np.arange(modulus), harmonics)
    points = np.stack([np.cos(turns), np.sin(turns)], -1).reshape(modulus, -1)
    model = of_points("bilinear-rotation", automaton, np.zeros(0), points)
    put(model.angles, turns)
    return model, automaton


def in_blocks() -> tuple[Any, Automaton]:
    """S3 as the symmetries of a triangle, and their signs, in blocks of 2."""
    automaton = load_task("s3").source.automaton
    assert automaton is not None
    maps = actions(automaton)
    # the columns span the functions of states that the representation of dimension 2 makes
    group = np.array([matrix @ np.eye(6)[automaton.start] for matrix in maps]).argmax(1)
    corner = np.exp(2j * np.pi * np.arange(3) / 3)
    triangle = np.stack([corner.real, corner.imag], 1)
    planes = {}
    for images in itertools.permutations(range(3)):
        plane = np.linalg.lstsq(triangle, triangle[list(images)], rcond=None)[0].T
        planes[images] = plane
    # which permutation each state is: the one whose products agree with the automaton's table
    for names in itertools.permutations(planes):
        if names[automaton.start] != (0, 1, 2):
            continue
        symbol = [names[state] for state in group]
        table = [[names.index(tuple(x[image] for image in s)) for x in symbol] for s in names]
        if np.array_equal(table, automaton.delta):
            break
    matrices = np.zeros((len(symbol), 2, 2, 2))
    for place, images in enumerate(symbol):
        matrices[place, 0] = planes[images]
        matrices[place, 1] = np.diag([np.linalg.det(planes[images]), 0.0])
    first = np.array([1.0, 0.3, 0.5, 0.0])
    # a point for each state: the image of the first
    points = np.zeros((6, 4))
    points[group] = np.concatenate([matrices[:, 0] @ first[:2], matrices[:, 1] @ first[2:]], 1)
    model = of_points("bilinear-block", automaton, np.zeros(0), points, block_size=2)
    put(model.weight, matrices)
    put(model.readout.weight, np.linalg.pinv(points).T)
    return model, automaton


def factored() -> tuple[Any, Automaton]:
    """The one-hot model of parity, in factors: two terms, of which 1 turns the second around."""
    automaton = load_task("parity").source.automaton
    assert automaton is not None
    settings = st.MODELS["bilinear-cp"].settings_class(hidden=2, rank=2)
    model: Any = st.MODELS["bilinear-cp"](settings, num_symbols=2, num_labels=2).eval()
    put(model.left, [[1.0, 1.0], [1.0, -1.0]])
    put(model.right, [[0.5, 0.5], [0.5, -0.5]])
    put(model.gains, [[1.0, 1.0], [1.0, -1.0]])
    put(model.first, [1.0, 0.0])
    put(model.readout.weight, np.eye(2))
    return model, automaton


def rotating_in_factors(modulus: int = 5) -> tuple[Any, Automaton]:
    """The same rotations in factors: three products of real numbers for every plane."""
    rotations, automaton = rotating(modulus)
    turns = rotations.angles.detach().double().numpy()
    planes = turns.shape[1]
    settings = st.MODELS["bilinear-cp"].settings_class(hidden=2 * planes, rank=3 * planes)
    model: Any = st.MODELS["bilinear-cp"](
        settings, num_symbols=modulus, num_labels=automaton.num_labels
    ).eval()
    # (a + bi)(c + di): c (a + b) - b (c + d) and c (a + b) + a (d - c)
    cos, sin = np.cos(turns), np.sin(turns)
    put(model.gains, np.stack([cos, sin - cos, cos + sin], -1).reshape(modulus, -1))
    put(model.left, np.kron(np.eye(planes), [[1.0, 0.0, -1.0], [1.0, 1.0, 0.0]]))
    put(model.right, np.kron(np.eye(planes), [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
    put(model.first, rotations.first)
    put(model.readout.weight, rotations.readout.weight.detach())
    return model, automaton
