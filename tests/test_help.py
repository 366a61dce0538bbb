"""Help pages, at every width: whole words, true defaults, examples that can be typed."""

import inspect
import shlex

import pytest
from typer.main import get_command
from typer.models import OptionInfo

from statetrack.cli import app, train
from statetrack.cli._help import EXAMPLES, flags_of, function_of, info_of
from statetrack.training import TrainSettings

COMMANDS = list(app.find_commands())


def shown(capsys, monkeypatch, words, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert app.run(words.split()) == 0
    return capsys.readouterr().out


@pytest.fixture(scope="module")
def built():
    """Every command as Typer has it, and the parameters of its signature."""
    found = {}
    for name in COMMANDS:
        made = get_command(app._application([name])).commands[name]
        taken = inspect.signature(made.callback, eval_str=True).parameters.values()
        found[name] = made, [each for each in taken if info_of(each) is not None]
    return found


@pytest.mark.parametrize("width", [60, 80])
def test_no_line_of_a_page_is_too_wide_and_no_word_is_broken(capsys, monkeypatch, built, width):
    for name, (_, parameters) in built.items():
        page = shown(capsys, monkeypatch, f"{name} -h", width)
        lines = page.partition(f"\n{EXAMPLES}\n")[0]
        code = [line for line in lines.splitlines() if line.startswith("    statetrack ")]
        assert max(len(line) for line in lines.splitlines() if line not in code) <= width
        assert width < 80 or max(len(line) for line in page.splitlines()) <= width, name
        assert not any(line.endswith(" ") for line in page.splitlines())
        words = page.replace(",", " ").replace("[", " ").replace("]", " ").replace(";", " ").split()
        for each in parameters:
            if isinstance(info_of(each), OptionInfo):
                assert set(flags_of(each)) <= set(words), name
                choices = (info_of(each).metavar or "").split("|")[1:]
                assert set(choices) <= {*words, *page.replace("|", " ").split()}, name


def test_a_page_has_no_type_for_a_flag_and_no_range_of_seventeen_digits(capsys, monkeypatch):
    page = shown(capsys, monkeypatch, "train --help", 80)
    assert "<bool>" not in page and "<=" not in page and "9007199254740992" not in page
    assert "  --seed N " in page and "at least 0]" in page
    assert "smoothed-cross-entropy" in page and "[default: bilinear-cp]" in page
    assert "--readout-bias, --no-readout-bias" in page and page.count("[default: off]") == 1


def test_the_default_of_a_model_is_the_one_that_is_trained(capsys, monkeypatch):
    page = shown(capsys, monkeypatch, "train -h", 200)
    assert "[default: bilinear-cp]" in page and "Model bilinear-cp" in page
    page = shown(capsys, monkeypatch, "train --model gru -h", 200)
    assert "[default: gru]" in page and "Model gru" in page and "Model bilinear-cp" not in page


def test_the_settings_of_training_are_in_groups(capsys, monkeypatch):
    page = shown(capsys, monkeypatch, "train -h", 80)
    fields = [name for names in train.PANELS.values() for name in names]
    assert set(fields) <= set(TrainSettings.model_fields) and len(fields) == len(set(fields))
    headings = [line for line in page.splitlines() if line in (*train.PANELS, "Training")]
    assert headings == ["Training", *train.PANELS]
    machine = page.partition("\nMachine\n")[2].partition("\nGeneral\n")[0]
    assert all(f"  --{name} " in machine for name in train.PANELS["Machine"])


def test_the_page_names_options_as_typer_takes_them(built):
    for name, (made, parameters) in built.items():
        typed = {option for each in made.params for option in (*each.opts, *each.secondary_opts)}
        paged = {
            option
            for each in parameters
            if isinstance(info_of(each), OptionInfo)
            for option in flags_of(each)
        }
        typed = {each for each in typed if each.startswith("-")}
        assert typed == paged, name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_can_be_typed(name, built, tmp_path, monkeypatch):
    docstring = function_of(app.find_command(name), []).__doc__
    examples = inspect.cleandoc(docstring).partition(f"\n{EXAMPLES}:\n")[2].split("\n")
    examples = [line.strip() for line in examples if line.strip()]
    assert 2 <= len(examples) <= 5
    for line in examples:
        program, invoked, *words = shlex.split(line, comments=True)
        assert (program, invoked) == ("statetrack", name)
        made = get_command(app._application([invoked, *words])).commands[invoked]
        with made.make_context(invoked, list(words)) as context:
            assert not context.args, f"{line}: {context.args}"


def test_the_first_page_lists_every_command_and_no_word_is_broken(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for words, code in ((["-h"], 0), (["--help"], 0), ([], app.MISUSED)):
        assert app.run(words) == code
        page = capsys.readouterr().out
        assert max(map(len, page.splitlines())) <= 60
        assert all(f"\n  {name} " in page for name in COMMANDS)


def test_help_of_a_model_that_is_not_there_is_the_nearest(capsys):
    assert app.run("train --model LSTM -h".split()) == 1
    assert "Did you mean 'lstm'?" in capsys.readouterr().err


def test_typer_has_no_box_around_a_mistake(capsys):
    for words in ("show", "show s3 --foo", "list a b", "eval --samples 0", "--foo", "nothing"):
        assert app.run(words.split()) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1, error


@pytest.mark.parametrize(("line", "same"), [("help", "--help"), ("help train", "train --help")])
def test_help_is_a_command_too(line, same, capsys):
    assert app.run(line.split()) == app.run(same.split()) == 0
    shown = capsys.readouterr().out
    assert shown[: len(shown) // 2] == shown[len(shown) // 2 :]
