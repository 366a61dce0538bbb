"""`statetrack`: the list of commands, and how their failures are reported.

A command is a module of this package that defines `build`, or the module that an entry point of
the group `statetrack.commands` names. It is imported only when that command is invoked, so that
`statetrack --help` is quick. Its contract: the first line of its docstring is the line in the list
of commands, `PLACE` its place there (without it, a command comes last), and `build(argv)` returns
the function to run, whose docstring is the help and whose signature gives the options. A command
that takes a `typer.Context` gets in `context.args` the words that belong to no option, and must
refuse them itself.

Exit codes: 0 done; 1 an error, one line on stderr; 2 a command line that cannot be parsed; 130
interrupted. `STATETRACK_DEBUG=1` shows the traceback of an error as well.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from statetrack import __version__
from statetrack.cli._commands import Command, find_command, find_commands
from statetrack.cli._completing import asked_words, with_completion
from statetrack.cli._help import EXAMPLES, GENERAL, GroupWithHelp, Page
from statetrack.cli._terminal import QUIET, VERBOSE, asked_for, is_verbose, saying
from statetrack.cli._usage_errors import UsageError, usage_line
from statetrack.errors import (
    SettingsError,
    StatetrackError,
    StatetrackWarning,
    TaskWarning,
    nearest,
)
from statetrack.text import visible

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit codes."""

Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A Python file of your own that registers models or automaton kinds; repeatable.",
        rich_help_panel=GENERAL,
    ),
]


Quiet = Annotated[
    bool,
    typer.Option(
        *QUIET,
        help="Say nothing but results, warnings and errors: no progress, no notes.",
        rich_help_panel=GENERAL,
    ),
]
Verbose = Annotated[
    bool,
    typer.Option(
        *VERBOSE,
        help="Say on stderr what happens: versions, files read and written, times, tracebacks.",
        rich_help_panel=GENERAL,
    ),
]
OF_EVERY_COMMAND: Mapping[str, tuple[Any, object]] = {
    "plugin": (Plugins, None),
    "quiet": (Quiet, False),
    "verbose": (Verbose, False),
}
"""The options that every command takes: how each is declared, and its default."""


def main() -> None:
    """The program `statetrack`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode shows escapes
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; `help COMMAND` is `COMMAND --help`."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    with saying(asked_for(argv)):
        return _run(argv)


def _run(argv: Sequence[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            warnings.simplefilter("always", StatetrackWarning)
            warnings.simplefilter("default", TaskWarning)  # once, however often a task is loaded
            application = _application(argv)
            code = application(
                args=list(argv) or ["--help"], prog_name="statetrack", standalone_mode=False
            )
            if not argv and asked_words() is None:  # as for any command line without a command
                return MISUSED
    except UsageError as misused:
        return _explain(misused, argv)
    except typer.Abort:
        return FAILED
    except SystemExit as end:
        if _mistake_in_plugin(end) is not None:
            return _explain(end)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        return _explain(error)
    return code or 0


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line on standard error, without the line of code that warned."""
    typer.echo(f"warning: {visible(' '.join(str(message).splitlines()))}", err=True)


HELP = f"""Can this recurrent architecture track state, and how far?

{EXAMPLES}:

    statetrack predict s3
    statetrack train --model lstm --task s3
    statetrack eval
    statetrack COMMAND -h
"""
"""The help of the program."""


def _application(argv: Sequence[str]) -> typer.Typer:
    """The Typer application; of commands that are not invoked it has names and summaries only.

    Where a shell asks for completion, the words of the command line are those that it gives.
    """
    asked = asked_words()
    argv = argv if asked is None else asked
    app = typer.Typer(
        name="statetrack",
        help=HELP,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        cls=GroupWithHelp,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version_only)
    invoked = next((word for word in argv if not word.startswith("-")), None)
    if invoked is None:
        for each in find_commands().values():
            app.command(each.name, help=each.summary)(_not_invoked)
        return app
    command = find_command(invoked)
    if command is None and asked is not None:
        return app
    if command is None:
        raise typer.BadParameter(
            f"there is no command '{invoked}'.{nearest(invoked, find_commands())} "
            "`statetrack --help` shows all."
        )
    _add_command(app, command, argv)
    return app


def _add_command(app: typer.Typer, known: Command, argv: Sequence[str]) -> None:
    """Build the invoked command; its module is imported here, to keep `--help` quick."""
    from statetrack.cli import options

    if given := options.peek_all(argv, "--plugin"):
        from statetrack.runs import load_given

        for path in given:
            load_given(Path(path))
    build = importlib.import_module(known.module).build
    command: Callable[..., None] = _built(build, argv[list(argv).index(known.name) + 1 :])
    taken = list(inspect.signature(command, eval_str=True).parameters.values())
    takes_rest = any(parameter.annotation is typer.Context for parameter in taken)
    of_every = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in OF_EVERY_COMMAND.items()
    ]
    parameters = [*taken, *of_every]
    if asked_words() is None:
        options.refuse_missing_values(argv, taken)
        options.refuse_odd_numbers(argv, taken)
    else:
        parameters = with_completion(parameters)
    app.command(
        known.name,
        cls=Page(inspect.getdoc(command) or "", parameters).command_class(),
        context_settings={"ignore_unknown_options": takes_rest, "allow_extra_args": takes_rest},
    )(options.with_parameters(_guarded(command), parameters))


def _built(build: Callable[[list[str]], Callable[..., None]], argv: Sequence[str]) -> Any:
    """What a command's `build` makes of its arguments; of none, where they are being typed."""
    try:
        return build(list(argv))
    except StatetrackError:
        if asked_words() is None:
            raise
        return build([])


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with every exception reported as one line and an exit code."""

    def guarded(**given: object) -> None:
        general = {name: given.pop(name) for name in OF_EVERY_COMMAND}
        try:
            if general["quiet"] and general["verbose"]:
                raise SettingsError("--quiet and --verbose: choose one")
            _require_run(given)
            command(**given)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            raise typer.Exit(_explain(error)) from None

    return guarded


def _require_run(given: Mapping[str, object]) -> None:
    """Raise `RunError` where a command's `run` is none, before the command imports torch."""
    if not {"run", "resume"} & set(given):
        return
    from statetrack.runs import RUNS, RunFolder, newest_run

    for name in ("run", "resume"):
        if isinstance(path := given.get(name), Path):
            RunFolder.open(path)
    if "run" in given and given["run"] is None:
        newest_run(RUNS)


def _explain(error: BaseException, argv: Sequence[str] = ()) -> int:
    """Print an error on stderr, in one line; return the exit code."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    line, code = _line_and_code(error, argv)
    if os.environ.get("STATETRACK_DEBUG") or (is_verbose() and _DEBUG in line):
        traceback.print_exception(error)
    _print_error("" if code == INTERRUPTED else "error: ", " ".join(line.splitlines()))
    return code


def _print_error(label: str, line: str) -> None:
    from rich.text import Text

    from statetrack.report import error_console

    error_console().print(Text(label, "bold red") + Text(visible(line), "red"))


def _line_and_code(error: BaseException, argv: Sequence[str]) -> tuple[str, int]:
    match error:
        case StatetrackError():
            return _as_options(error), FAILED
        case UsageError():
            return usage_line(error, argv), MISUSED
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}", FAILED
        case OSError():
            return error.strerror or str(error), FAILED
        case MemoryError():
            return _out_of_memory(error), FAILED
        case RuntimeError() if _ALLOCATION.search(str(error)):
            return _out_of_memory(error), FAILED
    if (mistake := _mistake_in_plugin(error)) is not None:
        return f"{mistake}. {_DEBUG} the whole traceback.", FAILED
    return (
        f"this is an internal error of statetrack: {type(error).__name__}: {error}. "
        f"{_DEBUG} the traceback; please report it, with what `statetrack info` prints.",
        FAILED,
    )


_DEBUG = "--verbose (or STATETRACK_DEBUG=1) shows"
"""In the message of an error that is nobody's but a programmer's."""


_ALLOCATION = re.compile("can't allocate memory|not enough memory|out of memory", re.IGNORECASE)
"""What torch says where memory is short, on a CPU and on CUDA."""


def _out_of_memory(error: BaseException) -> str:
    told = str(error).partition("\n")[0]
    return (
        f"out of memory{f' ({told})' if told else ''}: take fewer words at once or a smaller model"
    )


def _mistake_in_plugin(error: BaseException) -> str | None:
    """The file and line of a plugin in which an error was raised; None for any other error."""
    from statetrack.plugins import explain_mistake

    return explain_mistake(error)


def _as_options(error: StatetrackError) -> str:
    """The message, with the settings in it written as options."""
    from statetrack.cli.options import written

    return error.message(written)


def _not_invoked() -> None:
    """Registered for every command that this command line does not invoke."""


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"statetrack {__version__}")
        raise typer.Exit


def _version_only(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """The options of `statetrack` itself, before any command."""
