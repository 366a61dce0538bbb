"""The frame of the command line: options from settings, errors in one line, exit codes."""

import inspect
import json
import os
import shlex
import subprocess
import sys
import types
from functools import cache
from pathlib import Path
from typing import Literal

import pytest
import typer

from statetrack import __version__
from statetrack.cli import _usage, app, options
from statetrack.data import read_dataset
from statetrack.errors import SettingsError, UnknownNameError, setting
from statetrack.models import MODELS
from statetrack.references import bibtex, ids_in, references
from statetrack.settings import Settings, option
from statetrack.spec import TASKS, load_task
from statetrack.sweep import SUITES
from statetrack.training import PROTOCOLS
from tests.right_labels import check_labels

ROOT = Path(__file__).parents[1]


class Dial(Settings):
    """One field of every sort of type that a command line can give."""

    hidden: int = option(8, "Width [B, H].", min=1, max=64)
    rate: float = option(0.5, "A rate.", above=0)
    name: str = option("x", "A name.")
    bias: bool = option(False, "A bias.")
    loss: Literal["squared", "entropy"] = option("squared", "A loss.")
    lrs: tuple[float, ...] = option((1e-3, 3e-3), "Rates.")
    lengths: list[int] | None = option(None, "Lengths.")
    every: int | Literal["never"] = option("never", "When.")
    folder: Path | None = option(None, "Where.")


@pytest.fixture
def command(monkeypatch):
    """Installs a function made by `build(argv)` as the command `dial`, and returns its calls."""
    monkeypatch.setenv("COLUMNS", "100")
    calls = []

    def install(action=lambda given: None, preset=None):
        def build(argv):
            def dial(context: typer.Context, **given):
                """Turn the dial. Shapes are [B, T]."""
                _usage.refuse_unknown(
                    context.args, "lstm", Dial.model_fields, lambda: {"bilinear-cp": ["rank"]}
                )
                calls.append(options.collect(Dial, given))
                action(given)

            first = inspect.signature(dial).parameters["context"]
            return options.with_parameters(dial, [first, *options.parameters(Dial, "P", preset)])

        module = types.ModuleType("statetrack.cli.dial")
        module.build = build
        monkeypatch.setitem(sys.modules, "statetrack.cli.dial", module)
        known = {"dial": app.Command("dial", "statetrack.cli.dial", "Turn the dial.", 1)}
        monkeypatch.setattr(app, "find_command", known.get)
        return calls

    return install


def test_every_sort_of_option_arrives_with_its_type(command):
    calls = command()
    words = "dial --hidden 9 --rate 1e-3 --name y --bias --loss entropy --lrs 1,2e-4 --lengths 3,5"
    assert app.run([*words.split(), "--every", "7", "--folder=a/b"]) == 0
    assert calls == [
        Dial(
            hidden=9,
            rate=1e-3,
            name="y",
            bias=True,
            loss="entropy",
            lrs=(1.0, 2e-4),
            lengths=[3, 5],
            every=7,
            folder=Path("a/b"),
        )
    ]


def test_without_options_the_defaults_of_the_class_hold(command):
    calls = command()
    assert app.run(["dial"]) == 0
    assert calls == [Dial()]


def test_a_preset_replaces_defaults_and_the_command_line_replaces_the_preset(command, capsys):
    preset = {"hidden": 20, "lrs": [0.5], "bias": True, "of-another-class": 3}
    calls = command(preset=preset)
    assert app.run(["dial", "--hidden", "21", "--no-bias"]) == 0
    assert calls == [Dial(hidden=21, lrs=(0.5,), bias=False)]
    assert app.run(["dial", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "[default: 20; 1 to 64]" in shown and "[default: 0.5]" in shown


def test_a_preset_keeps_every_digit(command):
    third = 1 / 3
    calls = command(preset={"lrs": [third, 1e-17], "rate": third})
    assert app.run(["dial"]) == 0
    assert calls == [Dial(lrs=(third, 1e-17), rate=third)]


def test_help_shows_every_option_with_its_panel_default_and_bounds(command, capsys):
    command()
    assert app.run(["dial", "--help"]) == 0
    shown = capsys.readouterr().out
    for name, field in Dial.model_fields.items():
        assert options.flag(name) in shown and field.description in shown
    assert "Shapes are [B, T]." in shown and "1 to 64" in shown and "Above 0." in shown
    assert "one of squared, entropy" in shown and "[default: 0.001,0.003]" in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--rank 3", "lstm has no option --rank. Models that have it: bilinear-cp."),
        ("--rank=3", "lstm has no option --rank. Models that have it: bilinear-cp."),
        ("--hiden 3", "lstm has no option --hiden. Did you mean --hidden?"),
        (
            "--rnak 3",
            "lstm has no option --rnak. Did you mean --rank? Models that have it: bilinear-cp.",
        ),
        ("--no-baias", "lstm has no option --no-baias. Did you mean --bias?"),
        ("--quix 3", "lstm has no option --quix. `--help` shows those it has."),
        ("-z 3", "lstm has no option -z. `--help` shows those it has."),
        ("stray", "'stray' belongs to no option: every setting is written --name value."),
        (
            "stray.py",
            "'stray.py' belongs to no option: every setting is written --name value. "
            "A file of your own is given as --plugin FILE.py.",
        ),
        ("--rate -1", "--rate: Input should be greater than 0 (given: -1.0)"),
    ],
)
def test_a_wrong_word_is_one_line_that_says_what_to_do(command, capsys, words, message):
    calls = command()
    assert app.run(["dial", *words.split()]) == (1 if words == "--rate -1" else 2)
    assert capsys.readouterr().err == f"error: {message}\n"
    assert calls == []


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--hidden", "--hidden"),
        ("--hidden 0", "--hidden"),
        ("--hidden x", "--hidden"),
        ("--loss cubed", "'squared' or 'entropy'"),
        ("--lrs 1,x", "'x' in '1,x'"),
        ("--lengths 3.5", "'3.5'"),
        ("--every now", "'now'"),
        ("--hidden ٢٥", "'٢٥' is not a number"),
        ("--hidden 1_0", "'1_0' is not a number"),
        ("--rate=nan", "'nan' is not a number"),
        ("--lrs 0.1,inf", "'inf' is not a number"),
        ("--lrs 1_0", "'1_0' is not a number"),
    ],
)
def test_a_value_that_cannot_be_read_is_a_usage_error(command, capsys, words, told):
    calls = command()
    assert app.run(["dial", *words.split()]) == 2
    error = capsys.readouterr().err
    assert told in error and "Traceback" not in error
    assert calls == []


def test_an_option_that_swallows_the_next_one_is_told_its_value_is_missing(command, capsys):
    command()
    assert app.run(["dial", "--name", "--hidden", "3"]) == 2
    assert capsys.readouterr().err == ("error: --name needs a value: it is followed by --hidden\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--name", ""], "--name needs a value: it is followed by an empty one"),
        (["--folder="], "--folder needs a value: none follows the `=`"),
        (["--rank", ""], "--rank needs a value: it is followed by an empty one"),
        (["--bias", ""], "an argument is empty: give a name or a path, or leave it out"),
        ([""], "an argument is empty: give a name or a path, or leave it out"),
    ],
)
def test_an_empty_value_is_refused(command, capsys, words, told):
    """A variable of the shell that is not set must not choose a default, or the folder here."""
    calls = command()
    assert app.run(["dial", *words]) == 2
    assert capsys.readouterr().err == f"error: {told}\n"
    assert calls == []


def test_a_title_may_be_empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert app.run(["show", "parity", "--plot", "parity.svg", "--title", ""]) == 0


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SettingsError("a [bold]b[/]: :smile: wrong"), 1, "error: a [bold]b[/]: :smile: wrong"),
        (SettingsError("one\ntwo"), 1, "error: one two"),
        (SettingsError("long " * 60 + "end"), 1, "error: " + "long " * 60 + "end"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device", "a/b"), 1, "error: a/b: No space left on device"),
        (OSError(30, "Read-only file system"), 1, "error: Read-only file system"),
        (MemoryError(), 1, "error: out of memory: take fewer words at once or a smaller model"),
        (BrokenPipeError(), 1, None),
        (typer.Exit(7), 7, None),
    ],
)
def test_every_failure_has_its_line_and_its_exit_code(command, capfd, error, code, line):
    def fail(given):
        raise error

    command(fail)
    silenced = os.dup(1)
    try:
        assert app.run(["dial"]) == code
    finally:
        os.dup2(silenced, 1)
        os.close(silenced)
    assert capfd.readouterr().err == ("" if line is None else line + "\n")


def test_a_mistake_of_ours_is_one_line_too_and_says_how_to_see_more(command, capsys, monkeypatch):
    command(lambda given: 1 // 0)
    assert app.run(["dial"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "ZeroDivisionError" in error and "STATETRACK_DEBUG" in error
    monkeypatch.setenv("STATETRACK_DEBUG", "1")
    assert app.run(["dial"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_peek_finds_the_last_value_of_an_option():
    argv = ["--model", "lstm", "--plugin", "a.py", "--plugin=b.py", "--model=gru", "--task"]
    assert options.peek(argv, "--model") == "gru"
    assert _usage.peek_all(argv, "--plugin") == ["a.py", "b.py"]
    assert options.peek(argv, "--task") is None
    assert options.peek(argv, "--config") is None


def test_a_file_of_settings_is_checked_key_by_key():
    values = {"hidden": 3, "lrs": ["1e-3", 2], "model": "lstm"}
    checked = options.check_preset(values, "run.yaml", [Dial], also=["model"])
    assert checked == {"hidden": 3, "lrs": (1e-3, 2.0), "model": "lstm"}
    with pytest.raises(SettingsError, match=r"run.yaml: unknown setting 'hiden'. Did you mean 'hi"):
        options.check_preset({"hiden": 3}, "run.yaml", [Dial])
    with pytest.raises(SettingsError, match=r"run.yaml: 'hidden': Input should be less .*: 65\)"):
        options.check_preset({"hidden": 65}, "run.yaml", [Dial])


def test_other_models_are_asked_for_only_when_there_is_something_to_refuse():
    _usage.refuse_unknown([], "lstm", [], lambda: pytest.fail("asked"))
    with pytest.raises(UnknownNameError):
        _usage.refuse_unknown(["--x"], "lstm", [], dict)


HELP = ("--help", *(f"{name} --help" for name in app.find_commands()))
SHORT_LISTS = ("list", "list suites", "list runs", "cite")
KNOWN_WITHOUT_TRAINING = (
    *("list models", "list tasks", "list kinds", "list protocols", "show deltanet", "show s3"),
    *("show hierarchy", "predict s3", "cite s3"),
)
IN_ONE_PROCESS = (*HELP, *SHORT_LISTS, *KNOWN_WITHOUT_TRAINING)


@cache
def imported_by(*lines):
    """By command line: the slow packages that it was the first to import, and what it prints.

    The lines are run one after another, in one new process.
    """
    code = (
        "import sys; from statetrack.cli.app import run; known = set()\n"
        "for line in sys.argv[1:]:\n"
        "    assert run(line.split()) == 0\n"
        "    found = {name for name in ('torch', 'numpy') if name in sys.modules}\n"
        "    print('imported:', *found - known, end='imported.')\n"
        "    known |= found"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *lines], cwd=ROOT, capture_output=True, text=True, check=True
    )
    parts = done.stdout.split("imported.")[: len(lines)]
    found = {}
    for line, part in zip(lines, parts, strict=True):
        shown, _, names = part.rpartition("imported:")
        found[line] = set(names.split()), shown
    return found


def test_help_is_quick_because_it_imports_no_slow_package():
    found, shown = imported_by(*IN_ONE_PROCESS)["--help"]
    assert found == set()
    for name in app.find_commands():
        assert f" {name} " in shown


@pytest.mark.parametrize("name", app.find_commands())
def test_the_help_of_a_command_imports_neither_torch_nor_numpy(name):
    found, shown = imported_by(*IN_ONE_PROCESS)[f"{name} --help"]
    assert not found and f"statetrack {name}" in shown


@pytest.mark.parametrize("words", SHORT_LISTS)
def test_short_lists_import_neither_torch_nor_numpy(words):
    assert not imported_by(*IN_ONE_PROCESS)[words][0]


@pytest.mark.parametrize("words", KNOWN_WITHOUT_TRAINING)
def test_what_is_known_without_training_imports_no_torch(words):
    assert "torch" not in imported_by(*IN_ONE_PROCESS)[words][0]


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_shell_has_closed_is_no_failure(closed):
    program = shlex.join([sys.executable, "-m", "statetrack", "cite", "gru"])
    assert subprocess.run(["sh", "-c", f"{program} {closed}"], check=False).returncode == 0


def test_a_width_of_zero_is_that_of_a_pipe():
    asked = [sys.executable, "-m", "statetrack", "list", "protocols"]
    usual = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    outputs = [
        subprocess.run(asked, env=env, check=True, capture_output=True).stdout
        for env in (usual, usual | {"COLUMNS": "0"})
    ]
    assert outputs[0] == outputs[1] != b""


def test_the_package_runs_as_a_module_with_the_exit_code_of_the_program():
    done = subprocess.run(
        [sys.executable, "-m", "statetrack", "show"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and "NAME" in done.stderr


def test_the_end_of_the_program_looks_through_nothing_that_it_imported():
    code = (
        "import atexit, gc; from statetrack.cli.app import main\n"
        "atexit.register(lambda: print('at the end', len(gc.get_objects())))\n"
        "main()"
    )
    command = [sys.executable, "-c", code, "list", "models"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout.rpartition("at the end ")[2]) < 1000


def test_version_and_unknown_commands(capsys):
    assert app.run(["--version"]) == 0
    assert capsys.readouterr().out == f"statetrack {__version__}\n"
    assert app.run(["trian"]) == 2
    assert capsys.readouterr().err == (
        "error: there is no command 'trian'. Did you mean 'train'? `statetrack --help` shows all.\n"
    )


def test_an_unknown_command_is_named_without_its_control_characters(capsys):
    assert app.run(["tr\x1b[31mian"]) == 2
    assert "there is no command 'tr\\x1b[31mian'" in capsys.readouterr().err


@pytest.mark.parametrize("name", app.find_commands())
def test_every_command_has_help(capsys, name):
    assert app.run([name, "--help"]) == 0
    assert f"statetrack {name}" in capsys.readouterr().out


def test_settings_are_arguments_in_python_and_options_on_the_command_line(command, capsys):
    error = SettingsError(
        f"{setting('block_size', 3)} does not divide {setting('hidden')}; give "
        f"{setting('lrs', (0.1, 0.2))} and {setting('bias', False)}, {setting('loss', 'squared')}"
    )
    assert str(error) == (
        "block_size=3 does not divide hidden; give lrs=(0.1, 0.2) and bias=False, loss='squared'"
    )

    def fail(given):
        raise error

    command(fail)
    assert app.run(["dial"]) == 1
    assert capsys.readouterr().err == (
        "error: --block-size 3 does not divide --hidden; give --lrs 0.1,0.2 and --no-bias, "
        "--loss squared\n"
    )


BROKEN_MODEL = """
import helper
from statetrack import MODELS, SequenceModel, Settings

@MODELS.register("broken-here")
class Broken(SequenceModel):
    settings_class = Settings

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        helper.fill({})

    def forward(self, symbols):
        return symbols
"""


def test_an_exception_in_a_users_file_is_reported_with_its_file_and_line(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BROKEN_MODEL)
    (tmp_path / "helper.py").write_text("def fill(table):\n    return table['width']\n")
    assert app.run("train --plugin mine.py --model broken-here --steps 1".split()) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "error: helper.py, line 2: KeyError: 'width'. --verbose (or STATETRACK_DEBUG"
    )
    (tmp_path / "ends.py").write_text("import sys\nsys.exit(0)\n")
    assert app.run(["list", "tasks", "--plugin", "ends.py"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("error: --plugin ends.py: cannot be imported: it ends the program")
    assert told.endswith("(ends.py, line 2)\n")


BARE_MODEL = """
import torch
from statetrack import MODELS, SequenceModel, Settings

@MODELS.register("bare-here")
class Bare(SequenceModel):
    settings_class = Settings

    def __init__(self, settings, *, num_symbols, num_labels):
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.readout = torch.nn.Embedding(num_symbols, num_labels)

    def forward(self, symbols):
        return self.readout(symbols)
"""


def test_a_users_model_needs_no_family_and_no_source(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BARE_MODEL)
    assert app.run("train --plugin mine.py --model bare-here --steps 1 --out run".split()) == 0
    assert app.run(["cite", "run"]) == 0
    assert app.run(["list", "models"]) == 0
    assert "bare-here" in capsys.readouterr().out
    about = shown(capsys, "bare-here")
    assert about["family"] is None and about["source"] is None
    assert app.run(["show", "bare-here"]) == 0
    assert "not given" in capsys.readouterr().out
    assert app.run(["cite", "bare-here"]) == 0
    assert "bare-here: names no paper" in capsys.readouterr().err
    assert app.run(["predict", "parity", "--models", "bare-here"]) == 0


def test_check_says_what_is_wrong_with_a_users_models(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    other = BARE_MODEL.replace("bare-here", "backwards").replace("(symbols)", "(symbols.flip(1))")
    (tmp_path / "mine.py").write_text(BARE_MODEL + other)
    assert app.run("check mine.py --model bare-here".split()) == 0
    told = capsys.readouterr().out
    assert "all hold" in told and "no family and no source" in told and "backwards" not in told
    assert "`statetrack predict` says nothing of it: its settings name no class" in told
    assert "eigenvalues of steps" in told and "claimed" not in told.replace("as claimed", "")
    assert app.run("check mine.py".split()) == 1
    told = capsys.readouterr().out
    assert "logits before position" in told and "properties do not hold" in told
    assert app.run("check mine.py --json".split()) == 1
    found = json.loads(capsys.readouterr().out)
    wrong = [each["name"] for each in found["backwards"] if not each["ok"]]
    assert "no logits depend on a later symbol" in wrong
    assert all(each["ok"] for each in found["bare-here"])


def test_check_says_once_that_a_class_of_recurrence_is_built_wrongly(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sizes.py").write_text(
        "from statetrack import ModelSettings\nfrom statetrack.algebra import Saturating\n\n\n"
        "class Sized(ModelSettings):\n    @property\n    def recurrence(self):\n"
        "        return Saturating(units=3)\n\n\n"
        + BARE_MODEL.replace("bare-here", "sized").replace("= Settings", "= Sized")
    )
    assert app.run("check sizes.py".split()) == 1
    told = capsys.readouterr()
    assert "has to be named" in " ".join(told.out.split()) and not told.err
    assert "says nothing of it" not in told.out


def test_check_refuses_a_file_without_models_and_a_model_that_is_not_in_it(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BARE_MODEL)
    (tmp_path / "empty.py").write_text("")
    assert app.run("check mine.py --model bare".split()) == 1
    told = capsys.readouterr().err
    assert "mine.py registers no such model. Did you mean 'bare-here'?" in told
    assert app.run(["check", "empty.py"]) == 1
    assert "error: empty.py: registers no model" in capsys.readouterr().err
    assert app.run(["check", "none.py"]) == 1
    assert "none.py: there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("written", "otherwise", "told"),
    [
        ("(SequenceModel)", "(torch.nn.Module)", "Bare is no SequenceModel: write it as `class"),
        ("    settings_class = Settings", "", "Bare has no `settings_class`, the class of its"),
    ],
)
@pytest.mark.parametrize("command", ["check mine.py", "train --plugin mine.py --model bare-here"])
def test_what_is_registered_and_is_no_model_is_said_so(
    command, written, otherwise, told, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BARE_MODEL.replace(written, otherwise))
    assert app.run(command.split()) == 1
    assert f"error: model 'bare-here': {told}" in capsys.readouterr().err


def test_a_model_that_does_not_take_its_sizes_is_the_users_mistake(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(BARE_MODEL.replace("settings, *, num_symbols, num", "num"))
    assert app.run("train --plugin mine.py --model bare-here --steps 1".split()) == 1
    told = capsys.readouterr().err
    assert "mine.py, class Bare: TypeError: " in told and "internal error" not in told


def test_a_plugin_is_loaded_for_any_command(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("raise ValueError('read')")
    assert app.run(["list", "tasks", "--plugin", str(path)]) == 1
    assert "mine.py: cannot be imported: ValueError: read" in capsys.readouterr().err


def test_list_explains_itself_and_names_the_nearest_list(capsys):
    assert app.run(["list"]) == 0
    assert "statetrack list runs" in capsys.readouterr().out
    assert app.run(["list", "modles"]) == 1
    assert "Did you mean 'models'?" in capsys.readouterr().err


def listed(capsys, *words):
    """The rows that `statetrack list ... --json` prints."""
    assert app.run(["list", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_lists_name_everything_that_is_registered(capsys):
    assert [row["name"] for row in listed(capsys, "models")] == list(MODELS)
    assert [row["name"] for row in listed(capsys, "tasks")] == list(TASKS)
    states = {row["name"]: row["states"] for row in listed(capsys, "tasks")}
    assert states["s5"] == 120 and states["parity"] == 2


@pytest.mark.parametrize("width", ["80", "120"])
@pytest.mark.parametrize("what", ["", "models", "tasks", "kinds", "protocols", "suites"])
def test_lists_fit_the_terminal(capsys, monkeypatch, what, width):
    monkeypatch.setenv("COLUMNS", width)
    assert app.run(["list", *([what] if what else [])]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= int(width)


def test_a_broken_task_file_is_a_row_with_its_error(capsys, monkeypatch):
    broken = SettingsError("tasks/broken.yaml: 'title' is missing")
    monkeypatch.setattr(
        "statetrack.catalogue.tasks.list_tasks",
        lambda: iter([("broken", broken), ("parity", load_task("parity"))]),
    )
    rows = listed(capsys, "tasks")
    assert rows[0] == {"name": "broken", "error": "tasks/broken.yaml: 'title' is missing"}
    assert rows[1]["name"] == "parity"
    assert app.run(["list", "tasks"]) == 0
    shown = capsys.readouterr().out
    assert "broken: tasks/broken.yaml: 'title' is missing" in shown and "parity" in shown


def make_run(folder, *, finished):
    """A run folder as training leaves it, with two validations behind it."""
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "model: lstm\ntask: turnstile\nsteps: 20\nseed: 0\nseeds: 2\nlrs: [0.1]\n"
    )
    (folder / "task.yaml").write_text(load_task("turnstile").document())
    records = [
        {"step": 10, "replica": 0, "loss": 1.0, "accuracy": 0.5, "validation_accuracy": 0.75},
        {"step": 15, "replica": 0, "loss": 1.0, "accuracy": 0.5},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    replicas = [
        {"replica": 0, "seed": 0, "lr": 0.1, "validation_accuracy": 0.25, "validation_loss": 1.0},
        {"replica": 1, "seed": 1, "lr": 0.1, "validation_accuracy": 0.875, "validation_loss": 0.5},
    ]
    replicas = [each | {"best_step": 10, "stopped": ""} for each in replicas]
    summary = {"steps": 20, "seconds": 1.5, "selected": 1, "replicas": replicas}
    if finished:
        (folder / "summary.json").write_text(json.dumps(summary))


def test_runs_are_listed_with_how_far_they_came(capsys, tmp_path):
    make_run(tmp_path / "a", finished=True)
    make_run(tmp_path / "b", finished=False)
    make_run(tmp_path / "c", finished=True)
    (tmp_path / "c" / "summary.json").write_text("{")
    rows = {
        Path(row.get("run", row.get("name"))).name: row
        for row in listed(capsys, "runs", "--runs", str(tmp_path))
    }
    assert rows["a"] == {
        "run": (tmp_path / "a").as_posix(),
        "model": "lstm",
        "task": "turnstile",
        "state": "finished",
        "needs_plugin": False,
        "step": 20,
        "steps": 20,
        "validation": 0.875,
        **dict.fromkeys(("accuracy", "length", "started")),
    }
    assert (rows["b"]["state"], rows["b"]["step"], rows["b"]["validation"]) == (
        "unfinished",
        15,
        0.75,
    )
    assert "is damaged" in rows["c"]["error"]


def test_where_there_are_no_runs_the_list_says_how_to_make_one(capsys, tmp_path):
    assert app.run(["list", "runs", "--runs", str(tmp_path)]) == 0
    assert "`statetrack train` makes one" in capsys.readouterr().out


def shown(capsys, name):
    """What `statetrack show NAME --json` prints."""
    assert app.run(["show", name, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_show_tells_a_task_with_arguments_in_full(capsys):
    about = shown(capsys, "modular-addition:m=3")
    assert about["type"] == "task" and about["arguments"] == {"m": 3}
    assert about["transitions"] == [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    assert about["floor"]["500"] == pytest.approx(1 / 3)
    (word, labels), *_ = about["examples"].items()
    sums = [sum(map(int, word.split()[: end + 1])) % 3 for end in range(len(word.split()))]
    assert labels.split() == list(map(str, sums))


def test_show_tells_a_model_with_its_equation_and_settings(capsys):
    about = shown(capsys, "bilinear-cp")
    assert about["type"] == "model" and "2505.21749" in about["source"]
    assert "h_t = W1 diag(Wx^T x_t) W2^T h_{t-1}" in about["description"]
    fields = MODELS["bilinear-cp"].settings_class.model_fields
    assert [row["name"] for row in about["settings"]] == list(fields)
    rank = next(row for row in about["settings"] if row["name"] == "rank")
    assert (rank["option"], rank["default"], rank["min"]) == ("--rank", 64, 1)
    assert about["parameters"] > 64 * 64


@pytest.mark.parametrize("name", [*TASKS, "random-fsm:states=9,seed=3"])
def test_every_task_can_be_shown(capsys, name):
    assert app.run(["show", name]) == 0
    assert TASKS[name.partition(":")[0]].spec.title in capsys.readouterr().out


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_shown(capsys, name):
    assert app.run(["show", name]) == 0
    assert "--" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "found"), [("protocol", PROTOCOLS), ("suite", SUITES)])
def test_every_protocol_and_suite_can_be_shown(capsys, kind, found):
    assert not {*found} & {*TASKS, *MODELS}
    for name, content in found.items():
        assert app.run(["show", name]) == 0
        printed = capsys.readouterr().out
        assert content.title in " ".join(printed.replace('"', "").split())
        about = shown(capsys, name)
        assert (about["name"], about["type"], about["title"]) == (name, kind, content.title)


@pytest.mark.parametrize("command_name", ["show", "cite"])
def test_a_name_of_nothing_gets_the_nearest_of_what_the_command_takes(capsys, command_name):
    assert app.run([command_name, "lsmt"]) == 1
    assert "there is nothing called 'lsmt'. Did you mean 'lstm'?" in capsys.readouterr().err
    assert app.run([command_name, "partiy"]) == 1
    assert "Did you mean 'parity'?" in capsys.readouterr().err


def test_a_task_file_of_ones_own_can_be_shown(capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(load_task("turnstile").document())
    assert shown(capsys, str(path))["title"] == load_task("turnstile").spec.title
    assert app.run(["show", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml: cannot be read: No such file" in capsys.readouterr().err


def test_every_paper_that_a_model_or_task_names_can_be_cited():
    from statetrack.catalogue import model_sources

    named = {name: ids_in(model_sources(name)) for name in MODELS}
    named |= {name: ids_in(task.spec.reference) for name, task in TASKS.items()}
    named |= {name: ids_in(suite.reference) for name, suite in SUITES.items()}
    named |= {name: ids_in(protocol.reference) for name, protocol in PROTOCOLS.items()}
    unknown = {name: set(ids) - set(references()) for name, ids in named.items()}
    assert {name: ids for name, ids in unknown.items() if ids} == {}
    assert all(named[name] for name in MODELS)


def test_bibtex_keys_are_unique_and_entries_are_closed():
    keys = [reference.key for reference in references().values()]
    assert len(set(keys)) == len(keys)
    for paper in references():
        entry = bibtex(paper)
        assert entry.startswith("@") and entry.endswith("\n}")
        assert entry.count("{") == entry.count("}")
        assert paper.partition(":")[2] in entry


def test_ids_are_found_however_they_are_written():
    text = (
        "A 2024, arXiv 2411.12537; b arXiv:2505.21749. "
        "doi:10.1162/neco.1997.9.8.1735, arXiv:2411.12537"
    )
    assert ids_in(text) == [
        "arXiv:2411.12537",
        "arXiv:2505.21749",
        "doi:10.1162/neco.1997.9.8.1735",
    ]


def test_cite_prints_what_was_asked_for(capsys, tmp_path):
    assert app.run(["cite"]) == 0
    assert capsys.readouterr().out.startswith("@software{statetrack,")
    assert app.run(["cite", "modular-addition"]) == 0
    assert "@inproceedings{ebrahimi2025bilinear," in capsys.readouterr().out
    assert app.run(["cite", "turnstile"]) == 0
    assert "names no paper" in capsys.readouterr().err
    make_run(tmp_path / "run", finished=True)
    assert app.run(["cite", str(tmp_path / "run")]) == 0
    cited = capsys.readouterr().out
    assert "@software{statetrack," in cited and "hochreiter1997lstm" in cited
    assert app.run(["cite", str(tmp_path), "lstm", "mamba"]) == 0
    table = capsys.readouterr().out
    assert table.count("hochreiter1997lstm") == 1 and "@software{statetrack," in table
    assert "2312.00752" in table
    assert app.run(["cite", str(tmp_path / "none")]) == 1
    assert "there is no such folder of runs" in capsys.readouterr().err


def test_gen_writes_the_starter_set_into_a_folder_for_each_task(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = ["--samples", "40", "--validation-samples", "10", "--test-samples", "5"]
    assert app.run(["gen", *sizes, "--test-length", "20-30:10"]) == 0
    printed = capsys.readouterr().out
    for name in ("parity", "modular-addition", "s3", "random-fsm"):
        dataset = read_dataset(Path("data") / name)
        assert {split: len(batch) for split, batch in dataset.splits.items()} == {
            "train": 40,
            "validation": 10,
            "test_len20": 5,
            "test_len30": 5,
        }
        for batch in dataset.splits.values():
            check_labels(batch, load_task(name).automaton, name)
        assert f"written to data/{name}" in printed
    assert printed.endswith("what is in it and how to read it: data/parity/README.md\n")


def test_gen_takes_every_choice_and_the_card_repeats_it(capsys, tmp_path):
    chosen = "--length 3-5 --samples 30 --validation-samples 4 --test-samples 3 --test-length 9"
    words = f"gen modular-addition:m=7 {chosen} --supervision last --seed 5 --format jsonl"
    assert app.run([*words.split(), "--out", str(tmp_path / "a")]) == 0
    first = read_dataset(tmp_path / "a")
    train = first.splits["train"]
    assert set(train.lengths.tolist()) == {3, 4, 5} and train.symbols.max() == 6
    assert (train.scored.sum(1) == 1).all()
    again = shlex.split(first.card["command"])
    assert again[0] == "statetrack"
    assert app.run([*again[1:], "--out", str(tmp_path / "b")]) == 0
    assert read_dataset(tmp_path / "b").card["sha256"] == first.card["sha256"]
    assert app.run([*again[1:], "--seed", "6", "--out", str(tmp_path / "c")]) == 0
    assert read_dataset(tmp_path / "c").card["sha256"] != first.card["sha256"]


def test_gen_writes_nothing_at_all_where_one_folder_is_taken(capsys, tmp_path):
    (tmp_path / "s3").mkdir()
    (tmp_path / "s3" / "mine.txt").write_text("mine")
    assert app.run(["gen", "parity", "s3", "--samples", "5", "--out", str(tmp_path)]) == 1
    assert f"{tmp_path / 's3'}: already there, and nothing is written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["s3", "mine.txt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("parity parity", "two of the tasks would be written there"),
        ("prity", "Did you mean 'parity'?"),
        ("parity --length 10-2", "lengths are out of order: write 2-10"),
        ("parity --test-length x", "length 'x': not a length"),
        ("flip-flop --format csv", "choose another --format"),
    ],
)
def test_gen_says_in_one_line_what_cannot_be(capsys, tmp_path, words, message):
    assert app.run(["gen", *words.split(), "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert message in error and error.startswith("error: ") and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_gen_asks_for_a_folder_where_the_name_of_a_task_makes_none(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document = load_task("turnstile").document().replace("name: turnstile\n", "name: '..'\n")
    Path("mine.yaml").write_text(document)
    assert app.run(["gen", "mine.yaml"]) == 1
    assert "task '..': no folder can be named after it: give --out" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_gen_names_the_folder_of_a_task_file_after_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = load_task("turnstile").document().replace("name: turnstile\n", "")
    Path("mine.yaml").write_text(text)
    names = ["mine.yaml", "symmetric:n=3,generators=swaps"]
    assert app.run(["gen", *names, "--samples", "5", "--validation-samples", "0"]) == 0
    assert {path.name for path in Path("data").iterdir()} == {
        "mine",
        "symmetric-n=3-generators=swaps",
    }
