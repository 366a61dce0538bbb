"""Models of transformers by their configuration: their names, what they compute, their runs."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import statetrack as st
from statetrack.cli import app
from statetrack.errors import SettingsError, UnknownNameError
from statetrack.models import MODEL_FACTS
from statetrack.models._hf_names import (
    ATTENTION,
    DIAGONAL,
    FileSettings,
    HFSettings,
    settings_class,
)

TINY = {"hidden": 8, "layers": 2, "heads": 2}

MAMBA = {"model_type": "mamba", "hidden_size": 8, "num_hidden_layers": 2, "state_size": 4}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="the extra hf installs it"
)


def tiny(name, **settings):
    """The class of a model and small settings of it."""
    model = st.MODELS[name]
    return model, model.settings_class(**TINY | settings)


def made(name, num_symbols=3, num_labels=2, **settings):
    model, chosen = tiny(name, **settings)
    return model(chosen, num_symbols=num_symbols, num_labels=num_labels).eval()


# Names


def test_a_name_has_a_type_and_keys_or_a_file():
    plain, keys = settings_class("hf:gpt2"), settings_class("hf:llama:rms_norm_eps=0.1,head_dim=6")
    assert (plain.model_type, plain.keys) == ("gpt2", {})
    assert (keys.model_type, keys.keys) == ("llama", {"rms_norm_eps": 0.1, "head_dim": 6})
    file = settings_class("hf:some/where.json:state_size=3")
    assert issubclass(file, FileSettings)
    assert (file.file, file.keys) == ("some/where.json", {"state_size": 3})
    assert made("hf:llama:head_dim=6").configuration.head_dim == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:", "write hf:TYPE"),
        ("hf:org/model", "nothing is downloaded"),
        ("hf:gtp2", "no causal language model of the type 'gtp2'. Did you mean 'gpt2'"),
        ("hf:vit", "'vit' is a type of transformers, but no causal language model"),
        ("hf:xlm", "depend on later tokens"),
        ("hf:llama:heads", "'heads' is not key=value"),
        ("hf:llama:a=1,a=2", "'a' is given twice"),
        ("hf:llama:a=[1", "']' is missing"),
        ("hf:llama:num_key_value_head=2", "Did you mean 'num_key_value_heads'"),
        ("hf:llama:_attn_implementation=x", "has no key '_attn_implementation'"),
        ("hf:llama:num_hidden_layers=5000", "'num_hidden_layers' is 5,000, the most is"),
        ("hf:llama:hidden_act=none", "transformers cannot build it"),
        ("hf:git", "is made of several parts"),
        ("hf:no/such/file.json", "cannot be read: No such file"),
    ],
)
def test_a_name_that_cannot_be_built_is_refused_in_one_line(name, message):
    with pytest.raises((SettingsError, UnknownNameError)) as refused:
        st.make_model(name, "parity")
    assert message in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not a configuration in JSON"),
        ("[" * 10**4, "is not a configuration in JSON"),
        ('{"model_type": "mamba", "state_size": NaN}', "is not a configuration in JSON"),
        ("[]", "no text under 'model_type'"),
        ('{"model_type": "mamba"}' + " " * 2**16, "it is no configuration"),
        (json.dumps(MAMBA | {"auto_map": {"AutoModel": "x.Y"}}), "'auto_map' asks for code"),
        (json.dumps(MAMBA | {"num_hidden_layers": 10**6}), "the most is"),
        (json.dumps(MAMBA | {"model_type": "mmaba"}), "Did you mean 'mamba'"),
        (json.dumps(MAMBA | {"hidden_size": "wide"}), "transformers refuses it"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises((SettingsError, UnknownNameError)) as refused:
        st.make_model(f"hf:{path}", "parity")
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_without_transformers_one_line_says_what_installs_it(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda given, *rest: None if given == "transformers" else find(given, *rest),
    )
    assert app.run(["train", "--model", "hf:olmo:clip_qkv=3", "--task", "parity"]) == 1
    assert "`pip install '.[hf]'` in statetrack's checkout installs it" in " ".join(
        capsys.readouterr().err.split()
    )


# What theory says


def test_types_whose_recurrence_is_known_are_predicted_and_others_are_not():
    can = {
        name: st.predict("parity", name).can
        for name in ("hf:mamba", "hf:mamba2", "hf:rwkv", "hf:gpt2", "hf:llama", "hf:qwen3_next")
    }
    assert can == {
        "hf:mamba": "no",
        "hf:mamba2": "no",
        "hf:rwkv": "no",
        "hf:gpt2": "no",  # positions are learned
        "hf:llama": "no",  # parity is asked for of words of one symbol
        "hf:qwen3_next": "unknown",
    }
    assert st.predict("s5", "hf:llama").can == "no"
    for one, other in [("hf:mamba", "mamba"), ("hf:mamba2", "mamba2"), ("hf:rwkv", "rwkv4")]:
        assert MODEL_FACTS[one].recurrence.predict(
            st.analyse(st.load_task("tomita-3").automaton)
        ) == (st.predict("tomita-3", other, layers=2))


def test_what_is_known_of_a_type_needs_neither_torch_nor_transformers():
    program = (
        "import sys, statetrack as st\n"
        "assert st.predict('parity', 'hf:mamba').can == 'no'\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# What they compute


@pytest.mark.parametrize(
    "name", ["hf:gpt2", "hf:llama", "hf:mamba", "hf:mamba2", "hf:rwkv", "hf:qwen3_next"]
)
def test_a_model_is_causal_and_does_what_training_relies_on(name):
    model, settings = tiny(name)
    findings = st.check_model(model, num_symbols=3, num_labels=2, settings=settings)
    assert [finding for finding in findings if not finding.ok] == []
    assert "no logits depend on a later symbol" in {finding.name for finding in findings}


@pytest.mark.parametrize(
    ("name", "whole", "decoder"),
    [("hf:mamba", "MambaForCausalLM", "backbone"), ("hf:gpt2", "GPT2LMHeadModel", "transformer")],
)
def test_the_hidden_states_are_those_of_the_librarys_own_model(name, whole, decoder):
    import transformers

    model = made(name)
    theirs = getattr(transformers, whole)(model.configuration).eval()
    getattr(theirs, decoder).load_state_dict(model.network.state_dict())
    symbols = torch.randint(3, (4, 9))
    states = theirs(symbols, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(model(symbols), model.readout(states), rtol=1e-6, atol=1e-6)


def test_many_words_are_read_in_parts_with_the_same_answers():
    model = made("hf:llama")
    symbols = torch.randint(3, (40, 250))
    with torch.no_grad():
        torch.testing.assert_close(model(symbols), model._read(symbols), rtol=1e-5, atol=1e-6)


def test_words_longer_than_learned_positions_are_refused_and_others_are_read():
    with pytest.raises(SettingsError, match="21 symbols is longer than max_positions=20"):
        made("hf:gpt2", max_positions=20)(torch.zeros(1, 21, dtype=torch.int64))
    assert made("hf:llama", max_positions=20)(torch.zeros(1, 21, dtype=torch.int64)).shape[1] == 21


# Runs


def trained(path, *words):
    command = "--task parity --train-length 2-4 --steps 3 --batch-size 8 --threads 1"
    assert app.run(["train", *words, *command.split(), "--out", str(path)]) == 0
    return st.Run.open(path)


def sizes_of(values):
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def test_replicas_are_trained_as_each_alone_and_a_run_is_opened_as_it_was(tmp_path, capsys):
    both = trained(tmp_path / "both", "--model", "hf:gpt2", *sizes_of(TINY), "--seeds", "2")
    alone = trained(
        tmp_path / "alone", "--model", "hf:gpt2", *sizes_of(TINY), "--seeds", "1", "--seed", "1"
    )
    for name, value in alone.model(0).state_dict().items():
        torch.testing.assert_close(both.model(1).state_dict()[name], value, rtol=1e-6, atol=1e-7)
    symbols = torch.randint(2, (3, 6))
    assert torch.equal(both.model(1)(symbols), st.Run.open(both.path).model(1)(symbols))
    capsys.readouterr()
    assert app.run(["eval", str(both.path), "--length", "20", "--samples", "50", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "hf:gpt2"


def test_a_run_keeps_the_configuration_of_its_file(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(MAMBA | {"architectures": ["MambaForCausalLM"]}))
    run = trained(tmp_path / "run", "--model", f"hf:{file}")
    symbols = torch.randint(2, (3, 6))
    logits = run.model()(symbols)
    for change in (lambda: file.write_text(json.dumps(MAMBA | {"state_size": 9})), file.unlink):
        change()
        again = st.Run.open(run.path)
        assert torch.equal(again.model()(symbols), logits)
        assert again.experiment.model_settings.recurrence is not None


def test_the_list_of_models_says_how_to_name_others(capsys):
    assert not any(name.startswith("hf:") for name in st.MODELS)
    assert "hf:gpt2" in st.MODELS and "hf2:gpt2" not in st.MODELS
    assert issubclass(st.MODELS["hf:gpt2"].settings_class, HFSettings)
    assert app.run(["show", "hf:gpt2", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["name"] == "hf:gpt2" and "max_positions" in {
        each["name"] for each in shown["settings"]
    }


# The page


def types_that_pass():
    """The types that docs/language-models.md lists."""
    page = (Path(__file__).parents[1] / "docs" / "language-models.md").read_text(encoding="utf-8")
    return re.search(r"<!-- types that pass -->\n```text\n(.*?)```", page, re.S)[1].split()


def test_the_page_names_types_of_transformers_and_all_that_are_predicted():
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    assert set(types_that_pass()) <= set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    assert {*DIAGONAL, *ATTENTION, "rwkv"} <= set(types_that_pass())


@pytest.mark.slow
@pytest.mark.parametrize("model_type", types_that_pass())
def test_every_type_of_the_page_passes_every_check(model_type):
    model = st.MODELS[f"hf:{model_type}"]
    findings = st.check_model(model, num_symbols=3, num_labels=2)
    assert [finding for finding in findings if not finding.ok] == []
