"""What an error suggests: usual names of the field, other spellings, other commands."""

from pathlib import Path

import pytest

from statetrack import usual_names
from statetrack.cli import app
from statetrack.cli._early import registered_names
from statetrack.cli._usage import advice, options_of_others
from statetrack.cli.options import fields_of_models
from statetrack.errors import nearest
from statetrack.models import MODELS
from statetrack.spec import TASKS
from statetrack.sweep import SUITES
from statetrack.training import LOSSES, PROTOCOLS
from statetrack.usual_names import bare, meant


@pytest.fixture(scope="module")
def options():
    """Every option of every command and model, without its `--`."""
    of_models = {name.replace("_", "-") for names in fields_of_models().values() for name in names}
    return of_models.union(*options_of_others("").values())


def test_every_name_that_can_be_suggested_exists(options):
    known = {
        "MODELS": MODELS,
        "TASKS": TASKS,
        "SUITES": [*SUITES, *PROTOCOLS],
        "COMMANDS": app.find_commands(),
        "OPTIONS": options,
        "CHOICES": LOSSES,
    }
    for table, names in known.items():
        for usual, ours in getattr(usual_names, table).items():
            assert bare(usual) == usual and ours.split(), usual
            assert set(ours.split()) <= set(names), (table, usual, ours)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict mamba", "mamba is a model, and its predictions are for a task"),
        ("show door.do", "error: door.do: there is no such file. Did you mean 'door.dot'?"),
        ("predict door.fsm", "error: door.fsm: a task's file ends in .yaml, and a machine's in "),
        ("train --task parity --words uniform,group", "--words uniform --words group"),
        ("train --loss mse", "Did you mean 'squared-error'?"),
        ("train --model mine", "there is no model 'mine'."),
    ],
)
def test_what_was_meant_is_said_in_one_line(line, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    for name in ("door.dot", "door.fsm"):
        (tmp_path / name).touch()
    assert app.run(line.split()) in (1, 2)
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1 and "internal" not in error


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        *(("LSTM", "lstm"), ("GRU", "gru"), ("Mamba2", "mamba2"), ("Mamba-2", "mamba2")),
        *(("bilinear_cp", "bilinear-cp"), ("BilinearCP", "bilinear-cp"), ("RNN", "rnn")),
        *(("vanilla-rnn", "rnn"), ("Gated DeltaNet", "gated-deltanet"), ("gpt2", "transformer")),
    ],
)
def test_a_model_by_its_usual_name_suggests_ours(wrong, right):
    assert nearest(wrong, MODELS) == f" Did you mean '{right}'?"


@pytest.mark.parametrize(
    ("wrong", "known", "right"),
    [
        ("S3", TASKS, "s3"),
        ("Parity", TASKS, "parity"),
        ("mod-add", TASKS, "modular-addition"),
        ("flip_flop", TASKS, "flip-flop"),
        ("Hierarchy", SUITES, "hierarchy"),
        ("length-generalization", SUITES, "length-generalisation"),
        ("DeltaProduct", PROTOCOLS, "deltaproduct-paper"),
    ],
)
def test_tasks_suites_and_protocols_are_suggested_likewise(wrong, known, right):
    assert meant(wrong, known) == right


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("evaluate", "eval"),
        ("generate", "gen"),
        ("Train", "train"),
        ("ls", "list"),
        ("fit", "train"),
    ],
)
def test_a_command_by_its_usual_name_suggests_ours(capsys, wrong, right):
    assert app.run([wrong]) == 2
    assert f"Did you mean '{right}'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--learning-rate 1", "--lrs"),
        ("--learning_rate 1", "--lrs"),
        ("--lr 1", "--lrs"),
        ("--epochs 3", "--steps"),
        ("--n-steps 3", "--steps"),
        ("--bs 3", "--batch-size"),
        ("--seq-len 3", "--train-length"),
        ("--gpu 0", "--device"),
        ("--hidden-dim 3", "--hidden"),
        ("--model transformer --d-model 3", "--width"),
        ("--model transformer --num-layers 3", "--layers"),
        ("--model transformer --n_heads 3", "--heads"),
        ("--wd 0.1", "--weight-decay"),
    ],
)
def test_a_usual_option_of_training_suggests_ours(capsys, words, told):
    assert app.run(["train", *words.split()]) == 2
    assert f"Did you mean {told}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("show s3 --jsn", "show has no option --jsn. Did you mean --json?"),
        ("predict s3 --executor 2", "predict has no option --executor. Commands that have it: "),
        (
            "eval --lr 2",
            "eval has no option --lr. Did you mean --lrs? Commands that have it: ",
        ),
        ("gen --task s3", "gen has no option --task. It stands without an option: `statetrack gen"),
        ("predict --tasks s3", "predict has no option --tasks. It stands without an option: `sta"),
        (
            "sweep --hidden 8",
            "sweep has no option --hidden. A setting of a model or of training is",
        ),
        ("sweep --modle a", "sweep has no option --modle. Did you mean --model?"),
        ("show", "show needs NAME: a task"),
        ("list a b", "'b' belongs to no option and no argument of list. `statetrack list --help`"),
        ("list a b.", "'b.' belongs to no option and no argument of list. "),
        ("eval --samples", "--samples needs a value. `statetrack eval --help` shows more."),
        ("eval --samples 0", "--samples: "),
        ("extract --algorithm x", "--algorithm: 'x' is not one of 'lstar', 'kv'"),
        ("--vers", "statetrack has no option --vers. Did you mean --version?"),
        ("-q", "statetrack needs a command: `statetrack --help` lists them"),
    ],
)
def test_a_command_line_that_cannot_be_parsed_is_one_line(capsys, words, line):
    assert app.run(words.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {line}") and error.count("\n") == 1


def test_an_option_of_no_command_has_no_suggestion():
    assert advice("--xyzzy", ["json"], {"lstm": ["hidden"]}, command="show") == ""


def test_options_of_others_are_those_of_their_signatures():
    found = options_of_others("train")
    assert "train" not in found and "json" in found["eval"] and "set" in found["sweep"]
    assert not any(name.startswith("-") for names in found.values() for name in names)


def test_a_model_that_was_not_named_is_said_to_be_the_default(capsys):
    assert app.run("train --householders 2".split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(
        "error: bilinear-cp, the model where none is given, has no option --hou"
    )
    assert "Models that have it: deltaproduct, gated-deltaproduct." in error
    assert app.run("train --model gru --householders 2".split()) == 2
    assert capsys.readouterr().err.startswith("error: gru has no option --householders.")


def test_an_option_that_a_model_of_ones_own_lacks_names_its_own(tmp_path, capsys):
    (tmp_path / "own_rnn.py").write_text(
        "from statetrack import MODELS, Settings, option\n"
        "from statetrack.models.gru import GRU\n\n\n"
        "class OwnSettings(Settings):\n"
        '    planes: int = option(2, "Planes.", min=1)\n\n\n'
        '@MODELS.register("own-planes")\n'
        "class Own(GRU):\n"
        '    """A model of a user."""\n\n'
        "    settings_class = OwnSettings\n",
        encoding="utf-8",
    )
    line = ["train", "--plugin", str(tmp_path / "own_rnn.py"), "--model", "own-planes"]
    assert app.run([*line, "--task", "parity", "--householders", "3"]) == 2
    error = capsys.readouterr().err
    assert "own-planes has no option --householders. Its own are --planes; `--help`" in error
    assert "Models that have it" not in error
    assert app.run([*line, "--hidden", "3"]) == 2  # `build` has it, for its own default model
    assert capsys.readouterr().err.startswith("error: own-planes has no option --hidden. Its own")
    assert app.run([*line, "--layers", "3"]) == 2
    assert "Did you mean --planes? Its own are --planes;" in capsys.readouterr().err
    assert app.run([*line, "--widht", "3"]) == 2
    assert capsys.readouterr().err.startswith("error: own-planes has no option --widht. Its own")
    assert app.run([*line, "--plnaes", "3"]) == 2
    assert "Did you mean --planes?" in capsys.readouterr().err


OWN = (
    "import torch\nfrom statetrack import MODELS\nfrom statetrack.models.gru import GRU\n\n"
    "open('imported', 'w').close()\n\n\n"
    '@MODELS.register("own-ring")\nclass Own(GRU):\n    """A model of a user."""\n'
)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "train --model own-rnig",
            "--model: there is no model 'own-rnig'. Did you mean 'own-ring'?",
        ),
        (
            "sweep --model own-ring,lstn --task s3",
            "no model 'lstn'. Did you mean 'lstm'? own.py: reg",
        ),
        (
            "predict s3 --models zzz",
            "`statetrack list models` shows all. own.py: registers own-ri",
        ),
        (
            "train --model own-ring --task partiy",
            "there is no task 'partiy'. Did you mean 'parity'?",
        ),
        ("sweep --model own-ring --task s3,partiy", "there is no task 'partiy'"),
        ("train --model own-ring --out taken", "taken: already exists and is not empty"),
    ],
)
def test_a_wrong_name_is_seen_before_the_plugin_is_imported(
    line, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    Path("taken").mkdir()
    Path("taken", "notes.txt").touch()
    assert app.run([*line.split(), "--plugin", "own.py"]) == 1
    assert told in capsys.readouterr().err
    assert not Path("imported").exists()
    assert app.run(["list", "tasks", "--plugin", "own.py"]) == 0
    assert Path("imported").exists()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OWN, {"own-ring"}),
        (OWN.replace('"own-ring"', "NAME"), None),
        (OWN.replace("import torch", "import somewhere_else"), None),
        (OWN.replace("import torch", "from . import other"), None),
        (OWN + "\nenter = MODELS.register\n", None),
        ("import torch\n", None),
        ("def", None),
    ],
)
def test_what_a_plugin_registers_is_read_or_left_to_its_import(text, names, tmp_path):
    (tmp_path / "own.py").write_text(text)
    assert registered_names(tmp_path / "own.py") == names
    assert registered_names(tmp_path / "none.py") is None
