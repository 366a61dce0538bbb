"""Rounding models: casts to the bit, in every model, and what commands make of them.

The references are exact fractions, torch's own casts, and models stepped by hand.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

import statetrack
from statetrack.cli import app
from statetrack.errors import SettingsError
from statetrack.evidence.budget import SearchBudget
from statetrack.evidence.subject import Subject
from statetrack.evidence.word_tree import search_drifting_words
from statetrack.models import MODELS, BlockModel, LinearModel, RecurrentModel, Rounded, Stepping
from statetrack.models._blocks import StagedMixer
from statetrack.models._rounded import GATES, KEYS, RoundedMixer
from statetrack.ops import RoundedArithmetic, rounded
from statetrack.ops.delta_rule import delta_rule_step
from statetrack.rounding import (
    FORMATS,
    ROUNDINGS,
    FloatFormat,
    Rounding,
    format_of,
    load_rounding,
)
from statetrack.spec import load_task
from tests.setups import parity_run

TORCH_TYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float8-e5m2": torch.float8_e5m2,
    "float8-e4m3": torch.float8_e4m3fn,
}
FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8)
ANY_FORMAT = st.builds(FloatFormat, st.integers(2, 8), st.integers(1, 52))
V, C = 5, 7


def nearest(number: Fraction, to: FloatFormat) -> float:
    """A number rounded to nearest, ties to even, with gradual underflow: by exact fractions."""
    if number == 0:
        return 0.0
    exponent = math.floor(math.log2(abs(number)))
    while abs(number) < Fraction(2) ** exponent:
        exponent -= 1
    while abs(number) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    distance = Fraction(2) ** (max(exponent, to.lowest) - to.mantissa)
    found = round(number / distance) * distance  # Python rounds ties of fractions to even
    if abs(found) > Fraction(to.largest):
        return math.copysign(math.nan if to.no_infinity else math.inf, number)
    return float(found)


def same(one: Tensor, other: Tensor) -> bool:
    """Equal bit for bit but for the payload of NaN."""
    nan = one.isnan() & other.isnan()
    return bool((nan | ((one == other) & (one.signbit() == other.signbit()))).all())


@given(ANY_FORMAT, FLOATS)
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_a_cast_is_that_of_exact_fractions(to: FloatFormat, numbers: list[float]):
    expected = torch.tensor([nearest(Fraction(each), to) for each in numbers], dtype=torch.float64)
    given_numbers = torch.tensor(numbers, dtype=torch.float64)
    found = rounded(given_numbers, to)
    assert same(found.abs(), expected.abs())
    assert torch.equal(found.signbit(), given_numbers.signbit())
    assert same(rounded(found, to), found)
    limited = rounded(given_numbers, to, saturate=True)
    beyond = ~(expected.abs() <= to.largest)
    assert torch.equal(limited.abs()[beyond], torch.full_like(limited, to.largest)[beyond])


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_a_cast_is_that_of_torch(name: str):
    """At halves between numbers, at both ends of the range, and at what is not finite."""
    kind, to = TORCH_TYPES[name], format_of(name)
    base = torch.randn(4000) * 2.0 ** torch.randint(-40, 40, (4000,))
    numbers = torch.cat([base, base.to(kind).float() * (1 + to.unit)])
    edges = [0.0, -0.0, to.smallest / 2, to.smallest, to.largest, to.largest * (1 + to.unit)]
    numbers = torch.cat([numbers, torch.tensor([*edges, 1e30, -1e30, math.nan])])
    # torch's float8 e4m3 takes what is too large to the largest number
    found = rounded(numbers, to, saturate=to.no_infinity)
    assert same(found, numbers.to(kind).float())
    assert to.largest == torch.finfo(kind).max
    assert 2.0**to.lowest == torch.finfo(kind).smallest_normal


def test_complex_numbers_are_cast_part_by_part_and_integers_not():
    numbers = torch.randn(9, dtype=torch.complex128)
    found = rounded(numbers, FORMATS["bfloat16"])
    assert torch.equal(found.real, rounded(numbers.real, FORMATS["bfloat16"]))
    assert torch.equal(found.imag, rounded(numbers.imag, FORMATS["bfloat16"]))
    assert torch.equal(rounded(torch.arange(900), FORMATS["bfloat16"]), torch.arange(900))


def generic(name: str) -> RecurrentModel:
    """A model in evaluation, none of whose weights is where it started."""
    torch.manual_seed(0)
    kind = MODELS[name]
    model = kind(kind.settings_class(), num_symbols=V, num_labels=C).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    assert isinstance(model, RecurrentModel)
    return model


RECURRENT = [name for name in MODELS if issubclass(MODELS[name], RecurrentModel)]
EVERY_MODEL = pytest.mark.parametrize("name", RECURRENT)


@EVERY_MODEL
def test_every_model_without_casts_computes_what_it_does(name: str):
    model, words = generic(name), torch.randint(V, (3, 13))
    rounding = Rounding(accumulation="float64")
    read = Rounded(model, rounding)
    with torch.no_grad():
        expected = model(words)
    size = float(expected.abs().max())
    assert float((read(words) - expected).abs().max()) < 1e-12 * size
    state, pieces = read.initial_state(3), []
    for piece in words.split(5, 1):
        logits, state = read.scan(piece, state)
        pieces.append(logits)
    assert float((torch.cat(pieces, 1) - expected).abs().max()) < 1e-12 * size


@EVERY_MODEL
def test_every_model_keeps_its_state_in_the_type_of_states(name: str):
    model, words = generic(name), torch.randint(V, (3, 9))
    to = FORMATS["bfloat16"]
    read = Rounded(model, Rounding(state="bfloat16", accumulation="float64"))
    state = read.initial_state(3)
    for symbols in words.unbind(1):
        logits, state = read.step(symbols, state)
        for memory in memories(read, state):
            assert memory.numel() and same(rounded(memory, to), memory)
    assert bool(logits.isfinite().all())


def memories(read: Rounded, state: object) -> list[Tensor]:
    """The numbers that a recurrence hands on, in every layer."""
    parts: list[object] = []
    if isinstance(read.model, BlockModel):
        for block, (_, own) in zip(read.model.blocks, state, strict=True):  # type: ignore
            mixer = block.mixer
            assert isinstance(mixer, RoundedMixer)
            staged = isinstance(mixer.mixer, StagedMixer)
            parts.append(mixer.mixer.split(own)[1] if staged else own)
    else:
        parts.append(state[1])  # type: ignore[index]
    return list(flat(parts))


def flat(value: object):
    if isinstance(value, Tensor):
        yield torch.view_as_real(value) if value.is_complex() else value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from flat(each)


@pytest.mark.parametrize("name", ["lstm", "gru", "second-order-rnn", "full-matrix", "bilinear"])
def test_a_state_is_that_of_steps_with_casts_of_torch_between(name: str):
    """In float32, as the model itself computes it, and torch's own cast to bfloat16."""
    model, words = generic(name).float(), torch.randint(V, (4, 21))

    def cast(state: object) -> object:
        if isinstance(state, Tensor):
            return state.bfloat16().float()
        return tuple(map(cast, state))  # type: ignore[call-overload]

    state, logits = cast(model.initial_state(4)), []
    with torch.no_grad():
        for symbols in words.unbind(1):
            output, state = model.step(symbols, state)  # type: ignore[arg-type]
            state = cast(state)
            if isinstance(model, LinearModel):  # reads what it keeps
                output = model.readout(state)
            logits.append(output)
    assert torch.equal(torch.stack(logits, 1), Rounded(model, Rounding(state="bfloat16"))(words))


def test_sums_are_rounded_one_after_the_other():
    """A dense recurrence in e8m6, by fractions: products, sums and the state, bit for bit."""
    to = format_of("e8m6")
    model, word = generic("bilinear"), torch.randint(V, (1, 3))
    rounding = Rounding(accumulation="e8m6", gates="e8m6", state="e8m6")
    read = Rounded(model, rounding)
    operators = read.operators().dense()
    state = [nearest(Fraction(each), to) for each in model.first.tolist()]
    _, (_, found) = read.scan(word, read.initial_state(1))
    for symbol in word[0]:
        after = []
        for row in operators[symbol].tolist():
            total = None
            for weight, value in zip(row, state, strict=True):
                term = nearest(Fraction(weight) * Fraction(value), to)
                total = term if total is None else nearest(Fraction(total) + Fraction(term), to)
            after.append(total)
        state = after  # type: ignore[assignment]
    assert found[0].tolist() == state


def test_a_delta_rule_rounds_products_sums_and_the_state():
    """One step in e8m9 by fractions: beta k, errors, and the sum of state and correction."""
    to, sizes = format_of("e8m9"), (1, 1, 3, 2)
    torch.manual_seed(1)
    memory, key = (rounded(torch.randn(s, dtype=torch.float64), to) for s in (sizes, (1, 1, 1, 3)))
    value, query = (
        rounded(torch.randn(s, dtype=torch.float64), to) for s in ((1, 1, 1, 2), (1, 1, 3))
    )
    beta = rounded(torch.tensor([[[1.7]]], dtype=torch.float64), to)
    with RoundedArithmetic(None, to):
        _, found = delta_rule_step(query, key, value, beta, None, memory)
    H = memory[0, 0].tolist()
    k, v, b = key[0, 0, 0].tolist(), value[0, 0, 0].tolist(), float(beta)

    def add(one: float, other: float) -> float:
        return nearest(Fraction(one) + Fraction(other), to)

    def times(one: float, other: float) -> float:
        return nearest(Fraction(one) * Fraction(other), to)

    for column in range(2):
        seen = times(k[0], H[0][column])
        for row in (1, 2):
            seen = add(seen, times(k[row], H[row][column]))
        error = add(v[column], -seen)
        for row in range(3):
            correction = times(times(b, k[row]), error)
            assert float(found[0, 0, row, column]) == add(H[row][column], correction)


def test_factors_of_products_are_cast_and_their_sums_not():
    left, right = torch.randn(4, 6, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    to = FORMATS["tf32"]
    with RoundedArithmetic(to, None):
        found = left @ right
    assert torch.equal(found, rounded(left, to) @ rounded(right, to))


CHUNKED = ["deltanet", "deltaproduct", "gated-deltanet", "gla", "mamba", "mamba2", "hgrn"]


@pytest.mark.parametrize("name", CHUNKED)
def test_a_chunked_form_is_cast_at_the_edges_of_chunks(name: str):
    """Equal to reading chunk by chunk with casts between, at any lengths of pieces."""
    model, words = generic(name), torch.randint(V, (3, 22))
    read = Rounded(model, Rounding(state="e8m5", kept="chunk", chunk=8, accumulation="float64"))
    whole = read(words)
    state, pieces = read.initial_state(3), []
    for piece in words.split([3, 8, 10, 1], 1):
        logits, state = read.scan(piece, state)
        pieces.append(logits)
    size = float(whole.abs().max())
    assert float((torch.cat(pieces, 1) - whole).abs().max()) < 1e-9 * size
    exact = Rounded(model, Rounding(chunk=8, accumulation="float64"))(words)
    assert float((exact[:, :8] - whole[:, :8]).abs().max()) < 1e-9 * size
    assert float((exact - whole).abs().max()) > 1e-7 * size


def test_a_state_is_cast_between_calls_alone():
    model, words = generic("deltanet"), torch.randint(V, (3, 12))
    exact = Rounded(model, Rounding(accumulation="float64"))(words)
    found = Rounded(model, Rounding(state="e8m3", kept="call", call=5, accumulation="float64"))(
        words
    )
    assert torch.equal(found[:, :5], exact[:, :5])
    assert bool((found[:, 5] != exact[:, 5]).any())


def test_norms_of_blocks_are_restored():
    model, words = generic("bilinear-block"), torch.randint(V, (3, 12))
    model.readout.bias = None  # type: ignore[assignment]
    read = Rounded(model, Rounding(renormalise=1, accumulation="float64"))
    if not model.scale_invariant:  # type: ignore[attr-defined]
        pytest.skip("has additive terms")
    _, (_, state) = read.scan(words, read.initial_state(3))
    size = read.operators().blocks.shape[-1]  # type: ignore[attr-defined]
    norms, first = (each.unflatten(-1, (-1, size)).norm(dim=-1) for each in (state, model.first))
    assert torch.allclose(norms, first.expand_as(norms))


@EVERY_MODEL
def test_gates_and_keys_change_what_is_computed_or_are_refused(name: str):
    model, words = generic(name), torch.randint(V, (2, 6))
    exact = Rounded(model, Rounding(accumulation="float64"))(words)
    for part in ("gates", "keys"):
        rounding = Rounding(accumulation="float64", **{part: "e8m2"})
        try:
            found = Rounded(model, rounding)(words)
        except SettingsError as refused:
            assert part in str(refused) and "\n" not in str(refused)
        else:
            assert bool((found != exact).any())


@pytest.mark.parametrize("name", ["deltanet", "gated-deltaproduct", "kda"])
def test_keys_that_are_loaded_in_a_type_have_their_length_after_the_cast(name: str):
    """Every number of a key divided by the largest is a ratio of two numbers of the type."""
    to, coarse = FloatFormat(8, 2), {"accumulation": "float64", "keys": "e8m2"}
    symbols = torch.randint(V, (2, 6))
    models = [
        Rounded(generic(name), Rounding(**coarse, keys_cast=cast)).model
        for cast in ("normalised", "loaded")
    ]
    after, before = (model.blocks[0].mixer.mixer for model in models)
    inputs = torch.randn(2, 6, before.project.in_features, dtype=torch.float64)
    window = before.split(before.initial_state(2))[0]
    numbers = before.terms(inputs, window)[0]
    plain = after.terms(inputs, window)[0]
    projected = before.convolution.scan(before.project(inputs), window)[0]
    rows = rounded(before.activation(projected), to)
    values = rows[..., -math.prod(numbers.values.shape[2:]) :]
    assert torch.equal(numbers.values.flatten(2), values)
    assert not torch.equal(plain.values, numbers.values)
    keys = rows[..., before.sizes[0] :][..., : before.sizes[1]].reshape(numbers.keys.shape)
    length = (keys.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    torch.testing.assert_close(numbers.keys, keys / length, rtol=1e-13, atol=0)
    outputs = [
        Rounded(generic(name), Rounding(**coarse, keys_cast=cast))(symbols)
        for cast in ("normalised", "loaded")
    ]
    assert not torch.equal(*outputs)


def test_names_of_terms_are_gates_or_keys_and_not_both():
    assert not GATES & KEYS


@pytest.mark.parametrize(
    ("rounding", "said"),
    [
        ({"state": "floaty"}, "there is no type 'floaty'"),
        ({"state": "e9m3"}, "there is no type 'e9m3'"),
        ({"state": "bfloat16", "chunk": 4}, "no state after each step"),
        ({"kept": "call", "call": 5, "chunk": 4}, "call 5 is not a multiple of chunk 4"),
        ({"accumulation": "same"}, "there is no type 'same'"),
        ({"accumulation": "e8m25"}, "25 mantissa bits: take 24 or fewer, or float64"),
        ({"accumulation": "e8m52"}, "52 mantissa bits: take 24 or fewer, or float64"),
    ],
)
def test_what_makes_no_rounding_model_is_refused(rounding: dict[str, object], said: str):
    with pytest.raises(SettingsError, match=said):
        Rounding(**rounding)


@pytest.mark.parametrize(
    ("name", "rounding", "said"),
    [
        ("transformer", {}, "symbol by symbol"),
        ("lstm", {"gates": "bfloat16"}, "no gates"),
        ("lstm", {"chunk": 4}, "no form in chunks"),
        ("bilinear", {"chunk": 4}, "no form in chunks"),
        ("deltanet", {"renormalise": 1}, "only a linear model"),
        ("bilinear", {"keys": "bfloat16"}, "without additive terms has no keys"),
    ],
)
def test_a_cast_without_a_place_is_refused(name: str, rounding: dict[str, object], said: str):
    model = statetrack.make_model(name, "parity")
    with pytest.raises(SettingsError, match=said):
        Rounded(model, Rounding(**rounding))(torch.zeros(1, 2, dtype=torch.int64))


def test_every_shipped_rounding_model_has_a_source_and_reads_a_delta_rule():
    words = torch.randint(V, (2, 70))
    model = generic("gated-deltanet")
    for name, rounding in ROUNDINGS.items():
        assert rounding.title and rounding.reference, name
        assert bool(Rounded(model, rounding)(words).isfinite().all())


def test_a_rounding_model_has_a_name_a_type_or_a_file(tmp_path: Path):
    assert load_rounding("fla-recurrent").gates == "bfloat16"
    assert load_rounding("e8m5").state == "e8m5"
    path = tmp_path / "mine.yaml"
    path.write_text("state: float16\nreadout: bfloat16\n")
    assert load_rounding(path) == Rounding(state="float16", readout="bfloat16")
    path.write_text("stat: float16\n")
    with pytest.raises(SettingsError, match="unknown key 'stat'"):
        load_rounding(str(path))


def test_evaluation_and_searches_take_a_rounding_model():
    """A turn by a 25th is lost with 3 bits of mantissa, and held with 23."""
    task = load_task("cyclic:n=25")
    torch.manual_seed(0)
    model = statetrack.make_model("bilinear-rotation", task, hidden=2, first="fixed")
    assert isinstance(model, LinearModel)
    angles = 2 * math.pi / 25 * torch.arange(25.0)
    symbols = torch.arange(task.automaton.num_symbols)
    model.angles.data = angles[task.automaton.delta[0][symbols]].view_as(model.angles)  # type: ignore
    model.first.copy_(torch.tensor([1.0, 0.0]))
    model.readout.weight.data = torch.stack([angles.cos(), angles.sin()], 1)
    lengths = [200]
    (coarse,) = statetrack.evaluate(model, task, lengths, num_words=50, rounding="e8m3")
    (fine,) = statetrack.evaluate(model, task, lengths, num_words=50, rounding="float32")
    assert fine.accuracy == 1 and coarse.accuracy < 0.9
    found = statetrack.stress(model, task, seconds=2, longest=200, rounding="e8m3")
    assert found.failure is not None and found.position_float64 is None
    assert isinstance(Rounded(model, load_rounding("e8m3")), Stepping)


def test_words_on_which_errors_add_up_fail_where_no_other_word_does():
    """Of S4 in 3 dimensions: random words are lost after thousands of symbols."""
    model = statetrack.build("s4", "bilinear-block").model
    found = statetrack.stress(model, "s4", seconds=1, longest=1000, rounding="e8m6")
    assert found.family == "words on which errors add up" and found.failure is not None
    assert found.failure.position == len(found.failure.word) < 200
    task = load_task("s4")
    (score,) = statetrack.evaluate(model, task, [200], num_words=50, rounding="e8m6")
    assert score.accuracy == 1


def test_states_of_whole_numbers_do_not_drift():
    subject = Subject(
        statetrack.build("s4", "bilinear-block", integers=True).model, "s4", rounding="e8m6"
    )
    exact = subject.in_precision(torch.float64)
    budget = SearchBudget(10.0, None)
    found = search_drifting_words(subject, exact, longest=1000, beam=16, budget=budget)
    assert found.failing is None and found.complete and found.longest < 100


def test_commands_keep_nothing_of_a_rounding_model(
    capsys: pytest.CaptureFixture[str], shared_folder
):
    path = shared_folder("parity", lambda place: parity_run(place) and None)
    before = sorted((each.name, each.stat().st_size) for each in path.iterdir())
    argv = ["eval", str(path), "--length", "20", "--samples", "20", "--rounding", "bfloat16"]
    assert app.run([*argv, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rounding"] == "bfloat16" and found["rows"][0]["accuracy"] == 1
    assert app.run(argv) == 0
    assert "rounding bfloat16" in capsys.readouterr().out
    argv = ["certify", str(path), "--rounding", "bfloat16", "--seconds", "0.1", "--json"]
    assert app.run(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rounding"] == "bfloat16"
    assert sorted((each.name, each.stat().st_size) for each in path.iterdir()) == before
    assert app.run(["eval", str(path), "--rounding", "bflot16"]) == 1
    assert "there is no rounding model 'bflot16'" in capsys.readouterr().err
