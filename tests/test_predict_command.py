"""`predict` in the terminal: models with settings, the table and the reasons beneath it."""

import json
import re
import subprocess
import sys

import pytest

from statetrack.algebra import analyse
from statetrack.cli._algebra import word_text
from statetrack.cli.app import run
from statetrack.cli.options import chosen_models, with_own_options
from statetrack.errors import SettingsError, UnknownNameError
from statetrack.models import MODEL_FACTS, MODELS
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


def test_the_options_of_a_model_that_are_no_defaults_are_written_as_they_are_read():
    for text in ("lstm --hidden 3", "mamba --layers 2 --eigenvalues signed", "gla"):
        (settings,) = chosen_models(text).values()
        assert chosen_models(with_own_options(text.split()[0], settings)) == {text: settings}
    wanted = "hybrid --recurrent gated-deltanet:beta=double"
    (settings,) = chosen_models(f"{wanted} --pattern RA").values()
    assert with_own_options("hybrid", settings) == wanted, "RA is the default"


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
        ("lstm,deltanet --beta triple", r"deltanet: --beta: 'triple': input should be.*Options"),
        ("deltanet --beta", r"deltanet: --beta needs a value. Options"),
        ("deltanet --beta --layers 2", r"deltanet: --beta needs a value"),
        ("bilinear-block --block-size two", r"--block-size: .* integer \(given: two\)"),
        ("deltanet --layers 1_0", r"deltanet: --layers: '1_0' is not a number"),
        ("deltanet --layers 0", r"deltanet: --layers: Input should be greater.*given: 0"),
        ("deltanet --beta 'double", "a quotation mark is not closed"),
        ("linear-atention", "Did you mean 'linear-attention'"),
        ("lstm --hidden 8,16", "there is no model '16'"),
        ("--beta double", "'--beta' is no model: each is written as NAME --option value"),
        ("deltanet --beta '1,2'", "deltanet: --beta: '1,2': input should be"),
        (" , ", "names no model"),
        ("deltanet --help", "deltanet has no option --help"),
        ("lstm,gru,lstm", "'lstm' is named twice"),
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
    numbers = {name: each.pop("witness") for name, each in found.items()}
    assert numbers == {name: 0 if name == "deltanet" else None for name in found}
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


def test_many_options_behind_a_model_leave_room_for_the_other_columns(printed):
    models = "gated-deltaproduct --householders 2 --heads 2 --key-dim 32 --value-dim 64,lstm"
    lines = printed("predict", "s3", "--models", models).splitlines()
    (heading,) = [line.split() for line in lines if line.startswith("model ")]
    assert heading[:4] == ["model", "can", "size", "as"]
    (row,) = [line.split() for line in lines if line.startswith("gated-deltaproduct ")][:1]
    assert "can" in row and row[-2:] == ["yes", "no"]


@pytest.mark.parametrize("task", ["s4", "parity", "flip-flop"])
def test_without_names_every_model_has_one_line_and_no_theorem(printed, task):
    lines = printed("predict", task).splitlines()
    assert max(map(len, lines)) <= 80
    begin = next(place for place, line in enumerate(lines) if line.startswith("───"))
    table, told = lines[begin + 1 : begin + 1 + len(MODELS)], lines[begin + 1 + len(MODELS) :]
    assert [line.split()[0] for line in table] == list(MODELS)
    assert told[-1].startswith("--why") and "as set" not in " ".join(told)
    if task == "s4":
        (gru,) = (line for line in table if line.startswith("gru "))
        assert "hidden 577 is enough [has 64]" in gru and gru.split()[-1] == "?"


def test_models_with_one_reason_share_it_and_no_line_is_wider_than_the_terminal(printed):
    text = printed("predict", "s4", "--why")
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    theorem = predict(load_task("s4"), "gru").theorem
    assert flat.count(theorem) == 1
    (named,) = re.findall(r"\n\n([^\n]*(?<![\w-])gru\b[^\n]*)\n", text)
    assert {"gru", "lstm", "rnn"} <= set(named.split(", "))
    assert all(re.search(rf"(?m)^{re.escape(model)} ", text) for model in MODELS)


# --- what is said of the task itself ---


def test_a_theorem_that_answers_both_questions_stands_once(printed):
    text = " ".join(printed("predict", "s3", "--models", "transformer --positions learned").split())
    theorem = predict(load_task("s3"), "transformer", positions="learned").theorem
    assert text.count(theorem) == 1


def test_predict_and_show_print_the_same_algebra_and_a_smallest_machine(printed):
    def facts(text):
        lines = text.splitlines()
        begin = next(place for place, line in enumerate(lines) if line.startswith("states needed"))
        return " ".join(" ".join(lines[begin : lines.index("", begin)]).split())

    for task in ("flip-flop", "random-fsm"):
        shown = facts(printed("show", task))
        assert shown == facts(printed("predict", task, "--models", "lstm"))
    assert "at most 4 levels of resets and groups; group complexity 2 to 3" in shown
    assert "words of up to 3 symbols, not of fewer than 2; training has 2-10: enough" in shown
    group = facts(printed("show", "s4"))
    assert "margin 0.346 of the state's norm, in 3 dimensions" in group
    assert "horizon at least 2,900,000 symbols in float32 and 44 in bfloat16, about 130" in group
    flip_flop = facts(printed("show", "flip-flop"))
    assert "states needed 3, of 8" in flip_flop and "star-free" in flip_flop


def test_json_has_the_quantities_of_the_task(printed):
    found = json.loads(printed("predict", "s3-cascade", "--models", "lstm", "--json"))["s3-cascade"]
    identification = found["identification"]
    replaced = identification.pop("replaced")
    assert identification == {"needed": 3, "enough": 3, "identified": True}
    automaton = load_task("s3-cascade").automaton
    assert replaced["symbol"] in automaton.symbols
    assert {replaced["state"], replaced["target"]} <= set(automaton.states)
    algebra = found["algebra"]
    assert algebra["fewest_states"] == [6, 6] and algebra["group_complexity"] == [1, 1]
    assert algebra["cascade_levels"] == 1
    assert [algebra[f"{order}_trivial"] for order in "rlj"] == [False] * 3
    assert json.loads(printed("show", "dyck-1", "--json"))["identification"] is None


COUNTER = """
title: A ring of 20 states, one of which has a label of its own
version: 1
reference: own
train_length: [2, 10]
automaton:
  kind: regex
  alphabet: a
  pattern: "(a{20})*"
"""


@pytest.mark.parametrize(("lengths", "warned"), [("2-10", True), ("2-60", False)])
def test_train_warns_of_words_too_short_to_identify_the_machine(
    lengths, warned, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ring.yaml").write_text(COUNTER)
    words = "train --model rnn --hidden 2 --task ring.yaml --steps 1 --seeds 1 --lrs 1e-3"
    assert run([*words.split(), "--train-length", lengths, "--out", f"run-{lengths}"]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "do not identify" in line]
    assert len(told) == warned
    for line in told:
        assert line.startswith("warning: training words of 2-10 symbols do not identify ring")
        assert "--train-length" in line and "the machine in which a leads from" in line


def test_a_reader_who_closes_the_pipe_early_is_no_internal_error():
    command = [sys.executable, "-m", "statetrack", "show", "s4"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_predict_prints_each_witness_once_and_json_has_the_names_of_its_symbols(printed):
    text = printed("predict", "parity", "--models", "mamba,gla,rwkv7")
    assert max(map(len, text.splitlines())) <= 80
    _, words = text.split("witness words")
    assert words.count("repeat with period 2 and never settle") == 1
    assert re.search(r"(?m)^ +w +1 *$", words)
    assert re.search(r"(?m)^ +labels +0, 1, 0, 1, \.\.\. *$", words)
    assert text.count("; words 1") >= 1
    written = json.loads(printed("predict", "parity", "--json", "--models", "mamba,lstm"))["parity"]
    assert written["predictions"]["mamba"]["witness"] == 0
    assert written["predictions"]["lstm"]["witness"] is None
    (witness,) = written["witnesses"]
    assert (witness["kind"], witness["words"], witness["states"]) == ("powers", [["1"]], ["0", "1"])


def test_long_words_are_shown_with_repeats_counted_and_say_how_long_they_are():
    symbols = ["ACK+PSH(V,V,1)", "b"]
    assert word_text((0, 0, 0, 1), symbols) == "ACK+PSH(V,V,1)^3 b"
    assert word_text((), symbols) == "(no symbol)"
    assert word_text((0, 1) * 100, symbols).endswith("b ... (200 symbols, in --json)")
