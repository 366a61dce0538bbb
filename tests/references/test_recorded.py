"""Every model says with whose numbers it was compared, and every file of numbers whose they are."""

from pathlib import Path

import pytest
import torch

from statetrack.catalogue.models import Fidelity, comparisons, departures
from statetrack.errors import StatetrackError
from statetrack.models import MODEL_FACTS, MODELS
from tests.references import recorded

ROOT = Path(__file__).parents[2]

METADATA = {
    "repository": "someone/something",
    "commit": "0123456789abcdef0123456789abcdef01234567",
    "files": "layer.py",
    "licence": "MIT",
    "settings": '{"width": 3}',
}
TENSORS = {"inputs": torch.ones(2), "outputs": torch.ones(2), "weights.a": torch.ones(3)}


def test_every_model_says_with_whose_numbers_it_was_compared_and_what_differs():
    for name in MODELS:
        description = MODEL_FACTS[name].description
        said = comparisons(description)
        assert said, f"{name} has no paragraph 'Checked:'"
        assert departures(description), f"{name} has no paragraph 'Departures:'"


def test_every_test_that_a_model_names_exists_and_names_the_model():
    for name in MODELS:
        for found in comparisons(MODEL_FACTS[name].description):
            path = ROOT / found.test
            assert path.is_file(), f"{name}: there is no {found.test}"
            text = path.read_text(encoding="utf-8")
            assert f'"{name}"' in text, f"{found.test} does not name {name}"


def test_comparisons_are_read_from_their_sentences():
    text = (
        "A model.\n\nSource: X.\n\nChecked: some/code @ 01ab (a\nlayer), to 6e-6 in tests/a.py. "
        "Checked: against an identity, to 0 in tests/b/c.py; no code was released.\n\n"
        "Departures: none\nknown.\n\nB batch."
    )
    assert comparisons(text) == (
        Fidelity("some/code @ 01ab (a layer)", 6e-6, "tests/a.py", None),
        Fidelity("against an identity", 0.0, "tests/b/c.py", "no code was released"),
    )
    assert departures(text) == "none known."
    assert comparisons("A model.") == () and departures("A model.") is None


@pytest.mark.parametrize(
    "sentence",
    ["some code, to 6e-6.", "some code in tests/a.py.", "some code, to 6 % in tests/a.py."],
)
def test_a_comparison_without_code_number_or_test_is_refused(sentence):
    with pytest.raises(StatetrackError, match="is not of the form"):
        comparisons(f"A model.\n\nChecked: {sentence}")


def test_every_file_of_numbers_says_whose_they_are():
    for path in sorted(recorded.FOLDER.glob("*")):
        assert path.suffix == ".safetensors", path.name
        recorded.load(path)


def test_numbers_are_read_as_they_were_saved(tmp_path):
    recorded.save(tmp_path / "x.safetensors", TENSORS, METADATA)
    found = recorded.load(tmp_path / "x.safetensors")
    assert found.settings == {"width": 3} and set(found.weights) == {"a"}
    assert found.metadata["made_with"] == f"torch {torch.__version__}"
    assert torch.equal(found.inputs, found.outputs)


@pytest.mark.parametrize(
    ("tensors", "metadata", "reason"),
    [
        ({}, {"commit": "main"}, "full hash"),
        ({}, {"settings": "[]"}, "JSON object"),
        ({}, {"licence": " "}, "empty"),
        ({}, {"more": "x"}, "metadata has"),
        ({"weights.a": torch.ones(3).half()}, {}, "float16"),
        ({"outputs": torch.tensor([float("nan")])}, {}, "not finite"),
    ],
)
def test_numbers_of_unknown_origin_are_refused(tmp_path, tensors, metadata, reason):
    with pytest.raises(AssertionError, match=reason):
        recorded.save(tmp_path / "x.safetensors", TENSORS | tensors, METADATA | metadata)


def test_the_difference_that_a_test_allows_is_the_one_that_its_model_states():
    assert recorded.stated_difference("lstm", "torch.nn.LSTM") > 0
    with pytest.raises(AssertionError, match="does not say"):
        recorded.stated_difference("lstm", "nobody's code")
