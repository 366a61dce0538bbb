"""`statetrack`: the list of commands, and how their failures are reported.

A command is a module of this package that defines `command` or `build`, or the module that an entry
point of the group `statetrack.commands` names. It is imported only when that command is invoked, so
that `statetrack --help` is quick. Its contract: the first line of its docstring is the line in the
list of commands, `PLACE` its place there (without it, a command comes last), and `command` is the
function to run, whose docstring is the help and whose signature gives the options. Where options
depend on the arguments, `build(argv)` returns that function. A command that takes a `typer.Context`
gets in `context.args` the words that belong to no option, and must refuse them itself.

Exit codes: 0 done; 1 an error, one line on stderr; 2 a command line that cannot be parsed; 130
interrupted. `STATETRACK_DEBUG=1` shows the traceback of an error as well.
"""

from __future__ import annotations

import gc
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
from rich.text import Text

from statetrack import __version__, report, runs
from statetrack.cli._completion import asked_words, with_completion
from statetrack.cli._help import (
    GENERAL,
    Command,
    command_page,
    find_command,
    find_commands,
    function_of,
    help_option,
    program_page,
)
from statetrack.cli._terminal import (
    INTERRUPTED,
    QUIET,
    VERBOSE,
    asked_for,
    is_verbose,
    say_warnings,
    saying,
    warn,
)
from statetrack.cli._usage import (
    UnknownOptionError,
    UsageError,
    peek_all,
    refuse_missing_values,
    refuse_odd_numbers,
    usage_line,
)
from statetrack.errors import (
    SettingsError,
    StatetrackError,
    StatetrackWarning,
    TaskWarning,
    nearest,
)
from statetrack.plugins import explain_mistake
from statetrack.text import visible

FAILED, MISUSED = 1, 2
"""Exit codes, beside `INTERRUPTED`."""


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
    gc.freeze()  # what is imported so far stays, and no collection is to look through it
    gc.set_threshold(50_000, 20, 20)  # imports make what stays, and training makes no cycles
    if not os.environ.get("COLUMNS", "").strip("0"):
        os.environ.pop("COLUMNS", None)  # 0 is the width of a terminal that has none
    sys.stdout = sys.stdout or open(os.devnull, "w")  # None where the shell has closed it
    sys.stderr = sys.stderr or open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without Unicode shows escapes
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    gc.freeze()  # the interpreter's end would look through all of torch, for half a second
    sys.exit(code)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code; `help COMMAND` is `COMMAND --help`."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    with saying(asked_for(argv)):
        try:
            return _run(argv)
        finally:
            say_warnings()


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
        if explain_mistake(end) is not None:
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
    if isinstance(message, StatetrackWarning):
        warn(message.line, message.of)
    else:
        warn(str(message))


def _application(argv: Sequence[str]) -> typer.Typer:
    """The Typer application; of commands that are not invoked it has names and summaries only.

    Where a shell asks for completion, the words of the command line are those that it gives.
    """
    asked = asked_words()
    argv = argv if asked is None else asked
    app = typer.Typer(
        name="statetrack",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": []},  # `help_option` is in their place
    )
    app.callback()(_before_any_command)
    invoked = next((word for word in argv if not word.startswith("-")), None)
    if invoked is None:
        for each in find_commands().values() if asked is not None else ():  # a shell completes them
            app.command(each.name, help=each.summary)(lambda: None)
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

    plugins = [Path(path) for path in peek_all(argv, "--plugin")]
    if plugins and asked_words() is None:
        from statetrack.cli._early import refuse_early

        refuse_early(known.name, argv, plugins)
    for path in plugins:
        runs.load_given(path)
    try:
        command = function_of(known, list(argv[list(argv).index(known.name) + 1 :]))
    except StatetrackError:
        if asked_words() is None:
            raise
        command = function_of(known, [])  # of what is being typed, nothing can be made yet
    taken = list(inspect.signature(command, eval_str=True).parameters.values())
    takes_rest = any(parameter.annotation is typer.Context for parameter in taken)
    docstring, parameters = inspect.getdoc(command) or "", list(taken)
    page = help_option(lambda context, out: command_page(context, out, docstring, parameters))
    of_every = {**OF_EVERY_COMMAND, "help": (Annotated[bool, page], False)}
    for name, (kind, default) in of_every.items():
        place = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, place, annotation=kind, default=default))
    if asked_words() is None:
        refuse_missing_values(argv, taken)
        refuse_odd_numbers(argv, taken)
    else:
        parameters = with_completion(parameters)
    app.command(
        known.name,
        context_settings={"ignore_unknown_options": takes_rest, "allow_extra_args": takes_rest},
    )(options.with_parameters(_guarded(command), parameters))


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with every exception reported as one line and an exit code."""

    def guarded(**given: object) -> None:
        general = {name: given.pop(name) for name in (*OF_EVERY_COMMAND, "help")}
        try:
            if general["quiet"] and general["verbose"]:
                raise SettingsError("--quiet and --verbose: choose one")
            # a run that is none is found out before the command imports torch
            for name in {"run", "resume"} & set(given):
                if isinstance(path := given[name], Path):
                    runs.RunFolder.open(path)
            if "run" in given and given["run"] is None:
                runs.newest_run(runs.RUNS)
            command(**given)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            raise typer.Exit(_explain(error)) from None

    return guarded


def _explain(error: BaseException, argv: Sequence[str] = ()) -> int:
    """Print an error on stderr, in one line; return the exit code."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    say_warnings()
    line, code = _line_and_code(error, argv)
    if os.environ.get("STATETRACK_DEBUG") or (is_verbose() and _DEBUG in line):
        traceback.print_exception(error)
    label, line = "" if code == INTERRUPTED else "error: ", " ".join(line.splitlines())
    report.error_console().print(Text(label, "bold red") + Text(visible(line), "red"))
    return code


def _line_and_code(error: BaseException, argv: Sequence[str]) -> tuple[str, int]:
    from statetrack.cli.options import written

    match error:
        case UnknownOptionError():
            return error.message(written), MISUSED
        case StatetrackError():
            return error.message(written), FAILED
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
    if (mistake := explain_mistake(error)) is not None:
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


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"statetrack {__version__}")
        raise typer.Exit


PROGRAM_HELP: Any = help_option(program_page)


def _before_any_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    help: Annotated[bool, PROGRAM_HELP] = False,
) -> None:
    """The options of `statetrack` itself, before any command."""
