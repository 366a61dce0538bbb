"""Certificates under rounding models: bounds on every step, proofs, and what is not covered."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import statetrack as st
from statetrack.evidence import Certificate, SearchBudget, Subject
from statetrack.evidence.certificate.arithmetic import Unsupported
from statetrack.evidence.certificate.rounded import arithmetic_under
from statetrack.models import LinearModel, Rounded
from statetrack.rounding import Rounding
from tests.evidence import rounded
from tests.evidence.checks import Check

TYPES = {
    "state alone": Rounding(state="bfloat16", accumulation="float64"),
    "state and gates": Rounding(state="bfloat16", gates="bfloat16", accumulation="float32"),
    "sums": Rounding(accumulation="bfloat16", keys="float16"),
    "factors": Rounding(products="float8-e5m2", accumulation="float32", readout="bfloat16"),
    "all": Rounding(
        state="float16", gates="bfloat16", products="bfloat16", accumulation="e8m10", readout="e8m6"
    ),
}
LINEAR = [
    ("bilinear", {"additive": "input", "readout_bias": True}),
    ("bilinear-block", {"hidden": 12}),
    ("bilinear-block", {"hidden": 3, "block_size": 1}),
    ("bilinear-cp", {}),
    ("bilinear-rotation", {}),
    ("diagonal-real", {}),
    ("diagonal-complex", {}),
]


def certified(model: torch.nn.Module, task: str, rounding: Rounding | str) -> Certificate:
    subject = Subject(model, task, rounding=rounding)
    return Certificate.search(subject, budget=SearchBudget(2.0), seed=0)


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize(("name", "settings"), LINEAR, ids=lambda each: str(each))
def test_no_step_is_off_by_more_than_its_bound(name: str, settings: dict, types: str):
    """States of many sizes, one symbol each, against the matrices in float64."""
    torch.manual_seed(0)
    model = st.make_model(name, "s3", **settings).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    if name == "bilinear-cp":
        model.running_operators = model.operators  # factors, not summed
    no_keys = {} if "additive" in settings else {"keys": "same"}
    under = Rounded(model, TYPES[types].model_copy(update=no_keys))
    found = arithmetic_under(under).executed
    held, width = under.casts.dtype, len(model.first)
    draws = torch.Generator().manual_seed(1)
    states = torch.randn(240, width, generator=draws, dtype=torch.float64)
    states *= 2.0 ** torch.randint(-12, 4, states.shape, generator=draws)
    states = under.casts.part("state", states.to(held))
    symbols = torch.randint(model.num_symbols, (240,), generator=draws)
    logits, (_, after) = under.step(symbols, (0, states))
    constant = np.ones((240, found.matrices.shape[-1] - width))
    before = np.concatenate([states.double().numpy(), constant], 1)
    exact = np.einsum("bij,bj->bi", found.matrices[symbols], before)
    bound = np.einsum("bij,bj->bi", found.rounding[symbols], abs(before)) + found.floor[symbols]
    bound += found.cast * (abs(exact) + bound) + found.cast_floor * (found.cast > 0)
    off = abs(after.double().numpy() - exact[:, :width])
    assert (off <= bound[:, :width]).all()
    assert off.max() > 0
    kept = np.concatenate([after.double().numpy(), constant], 1)
    expected = kept @ found.readout.T
    most = abs(kept) @ found.readout_rounding.T + found.readout_floor
    most += found.readout_cast * (abs(expected) + most)
    assert (abs(logits.double().numpy() - expected) <= most).all()


def test_states_that_are_cast_alone_close_for_every_length():
    """Rotations modulo 5 under bfloat16: what a step is off by, the next cast takes back."""
    model = st.build("cyclic:n=5", "bilinear-rotation").model
    found = certified(model, "cyclic:n=5", "bfloat16")
    assert found.verdict == "all lengths" and "boxes of cast states" in found.method


def test_whole_numbers_close_under_sums_in_bfloat16():
    model = st.build("s3", "bilinear", integers=True).model
    rounding = Rounding(state="bfloat16", gates="bfloat16", accumulation="bfloat16")
    assert certified(model, "s3", rounding).verdict == "all lengths"


def test_what_is_proven_ends_before_the_word_that_fails_first():
    model = st.build("cyclic:n=7", "bilinear-rotation").model
    for name in ("e8m7", "e8m9"):
        rounding = Rounding(state=name, gates=name, accumulation="float64")
        found = certified(model, "cyclic:n=7", rounding)
        subject = Subject(model, "cyclic:n=7", rounding=rounding)
        errors = subject.first_errors(np.arange(7)[:, None].repeat(800, 1))
        first = errors[errors > 0].min()
        assert first / 20 < found.proves < first


def test_a_type_that_nothing_is_cast_to_proves_what_is_proven_without():
    model = st.build("cyclic:n=5", "bilinear-block").model
    plain = Certificate.search(Subject(model, "cyclic:n=5"), budget=SearchBudget(2.0), seed=0)
    under = certified(model, "cyclic:n=5", Rounding(accumulation="float32"))
    assert plain.length is not None and under.length is not None
    assert under.length >= plain.length / 2


def test_the_cast_of_a_first_state_as_a_factor_is_counted():
    """A later state is of the type of sums, which is that of factors; the first one need not be."""
    model = st.build("cyclic:n=5", "bilinear-rotation").model
    with torch.no_grad():
        model.first.copy_(torch.tensor([1 + 2.0**-9, 2.0**-9 / 3]))
    under = Rounded(model, Rounding(products="bfloat16", accumulation="bfloat16"))
    found = arithmetic_under(under).executed
    first = found.first
    for symbol in range(5):
        _, (_, after) = under.step(torch.tensor([symbol]), under.initial_state(1))
        off = abs(after[0].double().numpy() - found.matrices[symbol] @ first)
        assert (off <= found.rounding[symbol] @ abs(first) + found.floor[symbol]).all()
    plain = arithmetic_under(Rounded(model, Rounding(accumulation="bfloat16"))).executed
    assert (found.rounding.sum((1, 2)) > plain.rounding.sum((1, 2))).all()


@pytest.mark.parametrize("name", ["gru", "lstm", "second-order-rnn"])
def test_saturating_states_in_bfloat16_are_proven_for_all_lengths(name: str):
    model = st.build("parity", name).model
    assert certified(model, "parity", "bfloat16").verdict == "all lengths"


def test_what_is_not_covered_is_named():
    rotation = st.build("cyclic:n=5", "bilinear-rotation").model
    restored = certified(rotation, "cyclic:n=5", Rounding(renormalise=1))
    assert "norm is restored" in restored.reason
    layers = certified(st.make_model("deltanet", "parity"), "parity", "bfloat16")
    assert "norms, gates and keys" in layers.reason
    network = st.build("parity", "gru").model
    factors = certified(network, "parity", Rounding(products="bfloat16"))
    assert "factors of matrix products" in factors.reason
    with pytest.raises(Unsupported, match="beyond the largest number"):
        arithmetic_under(Rounded(scaled(rotation, 1e7), Rounding(weights="float16")))


def scaled(model: LinearModel, by: float) -> LinearModel:
    with torch.no_grad():
        model.readout.weight.mul_(by)
    return model


@pytest.mark.parametrize("family", ["rotations", "dense, with terms", "factors", "real gains"])
def test_no_model_fails_within_its_certified_length_under_a_rounding_model(family: str):
    check = Check(family)
    for number in range(4):
        rounded.attack(check, family, number, 0.3, 0)
    assert check.broken == [] and sum(check.noted.values()) > 0
