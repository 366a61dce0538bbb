"""`predict` in the terminal: models with settings, the table and the reasons beneath it."""

import json
import re

import pytest

from statetrack.algebra.analysing import analyse
from statetrack.cli._chosen_models import chosen_models
from statetrack.cli.app import run
from statetrack.errors import SettingsError, UnknownNameError
from statetrack.models import MODELS
from statetrack.models._facts import MODEL_FACTS
from statetrack.predicting import predict
from statetrack.spec import load_task


@pytest.fixture
def printed(monkeypatch, capsys):
    """Runs a command line on 80 columns and returns what it prints on standard output."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words, code=0):
        assert run(words) == code
        shown = capsys.readouterr()
        return shown.err if code else shown.out

    return call


# --- models with settings ---


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("deltanet --beta double", {"deltanet --beta double": {"beta": "double"}}),
        (
            "  deltanet   --beta=double ,deltaproduct --householders 2,lstm,",
            {
                "deltanet --beta double": {"beta": "double"},
                "deltaproduct --householders 2": {"householders": 2},
                "lstm": {},
            },
        ),
        (
            "mamba --layers 3 --eigenvalues signed",
            {"mamba --layers 3 --eigenvalues signed": {"layers": 3, "eigenvalues": "signed"}},
        ),
        ("deltanet --no-output-gate", {"deltanet --no-output-gate": {"output_gate": False}}),
        ("'deltanet' --beta 'double'", {"deltanet --beta double": {"beta": "double"}}),
        ("lstm,lstm", {"lstm": {}}),
    ],
)
def test_models_have_the_options_that_stand_behind_their_names(written, expected):
    found = chosen_models(written)
    assert list(found) == list(expected)
    for (text, settings), values in zip(found.items(), expected.values(), strict=True):
        assert settings == MODEL_FACTS[text.split()[0]].settings_class(**values)


def test_the_text_of_a_model_gives_the_same_model_again():
    (text,) = chosen_models("mamba --eigenvalues=signed --layers  2")
    assert chosen_models(text) == chosen_models("mamba --layers 2 --eigenvalues signed")


def test_without_a_text_every_model_has_its_defaults():
    found = chosen_models(" ")
    assert list(found) == list(MODELS)
    assert found["deltanet"] == MODEL_FACTS["deltanet"].settings_class()


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("deltanet --bta double", r"deltanet has no option --bta. Did you mean --beta\? Options"),
        ("deltanet --householders 2", r"Models that have it: .*deltaproduct.* of deltanet: .*--be"),
        ("deltanet --xyzzy 2", r"deltanet has no option --xyzzy. Options of deltanet: .*--beta"),
        ("deltanet beta=double", r"deltanet: 'beta=double' belongs to no option"),
        ("lstm,deltanet --beta triple", r"deltanet: invalid value for '--beta': 'triple'.*Options"),
        ("deltanet --beta", r"deltanet: option '--beta' requires an argument. Options"),
        ("deltanet --beta --layers 2", r"deltanet: --beta needs a value"),
        ("deltanet --layers 1_0", r"deltanet: --layers: '1_0' is not a number"),
        ("deltanet --layers 0", r"deltanet: invalid value for '--layers': Input should be greater"),
        ("deltanet --beta 'double", "a quotation mark is not closed"),
        ("linear-atention", "Did you mean 'linear-attention'"),
        ("lstm --hidden 8,16", "there is no model '16'"),
        ("--beta double", "'--beta' is no model: each is written as NAME --option value"),
        ("deltanet --beta '1,2'", "invalid value for '--beta': '1,2'"),
        ("deltanet --help", "deltanet has no option --help"),
    ],
)
def test_a_model_that_cannot_be_made_is_refused_in_one_line_that_names_it(written, told):
    with pytest.raises((UnknownNameError, SettingsError), match=told) as refused:
        chosen_models(written)
    assert "\n" not in str(refused.value) and str(refused.value).startswith("--models: ")


def test_predictions_are_those_of_the_settings_and_json_has_them_by_their_text(printed):
    models = "deltanet --beta double,deltanet,deltaproduct --householders=1,deltaproduct"
    found = json.loads(printed("predict", "s3", "--json", "--models", models))["s3"]["predictions"]
    algebra = analyse(load_task("s3").automaton)
    assert found == {
        "deltanet --beta double": predict(algebra, "deltanet", beta="double").to_json(),
        "deltanet": predict(algebra, "deltanet").to_json(),
        "deltaproduct --householders 1": predict(algebra, "deltaproduct", householders=1).to_json(),
        "deltaproduct": predict(algebra, "deltaproduct").to_json(),
    }
    assert found["deltaproduct --householders 1"]["suffices"] == "no"
    assert found["deltaproduct"]["suffices"] == "yes"


# --- what is printed ---


def test_the_table_says_whether_the_settings_at_hand_suffice(printed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    models = "bilinear-block --block-size 1,bilinear-block,bilinear-cp --rank 3,bilinear-rotation"
    table = printed("predict", "s3", "--models", models)
    lines = [line for line in table.splitlines() if "  " in line]
    rows = {line.split("  ")[0]: line.split() for line in lines}
    assert rows["bilinear-block --block-size 1"][-6:-1] == ["2", "[has", "1]", "no", "no"]
    assert rows["bilinear-block"][-3:-1] == ["yes", "no"]
    assert rows["bilinear-cp --rank 3"][-2:] == ["?", "no"]
    assert rows["bilinear-rotation"][1:] == ["cannot", "no"]


def test_models_with_one_reason_share_it_and_no_line_is_wider_than_the_terminal(printed):
    text = printed("predict", "s4")
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    theorem = predict(load_task("s4"), "gru").theorem
    assert flat.count(theorem) == 1
    (named,) = re.findall(r"\n\n([^\n]*\bgru\b[^\n]*)\n", text)
    assert {"gru", "lstm", "rnn"} <= set(named.split(", "))
    assert all(re.search(rf"(?m)^{re.escape(model)} ", text) for model in MODELS)
