"""`statetrack`: which commands there are, and what a user sees when one of them fails.

A command's module is imported when that command is asked for, never before, so that
`statetrack --help` stays quick. Its contract: the first line of its docstring is the line
in the list of commands, and `build(argv)` returns the function to run, whose docstring is
the help and whose signature gives the options. A command that takes a `typer.Context` gets
in `context.args` the words that no option took, and must refuse them itself.

Exit codes: 0 done; 1 an error the user can mend, one line on stderr; 2 a command line that
cannot be parsed; 130 interrupted. `STATETRACK_DEBUG=1` shows the traceback instead.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from statetrack import __version__
from statetrack.errors import StatetrackError, nearest

COMMANDS: Mapping[str, str] = {
    "gen": "gen",
    "train": "train",
    "eval": "evaluate",
    "list": "listing",
    "show": "show",
    "check": "check",
    "predict": "predict",
    "audit": "audit",
    "compare": "compare",
    "reproduce": "reproduce",
    "cite": "cite",
}
"""The module in `statetrack.cli` of each command, in the order of the help."""

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit codes."""

Plugins = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE.py",
        help="A Python file of your own that registers models or automaton kinds; repeatable.",
    ),
]


def main() -> None:
    """The program `statetrack`."""
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        _application(argv)(args=list(argv), prog_name="statetrack")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        return _explain(error)
    return 0


def _application(argv: Sequence[str]) -> typer.Typer:
    """The Typer application; of commands that are not invoked it has names and summaries only."""
    app = typer.Typer(
        name="statetrack",
        help="Can this recurrent architecture track state, and how far?",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        add_completion=False,
    )
    app.callback()(_version_only)
    invoked = next((word for word in argv if not word.startswith("-")), None)
    if invoked is not None and invoked not in COMMANDS:
        raise typer.BadParameter(
            f"there is no command '{invoked}'.{nearest(invoked, COMMANDS)} "
            "`statetrack --help` shows all."
        )
    for name, module in COMMANDS.items():
        if name == invoked:
            _add_command(app, name, module, argv)
        else:
            app.command(name, help=_summary(module))(_not_invoked)
    return app


def _add_command(app: typer.Typer, name: str, module: str, argv: Sequence[str]) -> None:
    """Build the invoked command; what that needs is imported here, to keep `--help` quick."""
    from statetrack.cli import options
    from statetrack.plugins import load_plugin

    for path in options.peek_all(argv, "--plugin"):
        load_plugin(Path(path))
    build = importlib.import_module(f"statetrack.cli.{module}").build
    command: Callable[..., None] = build(list(argv[list(argv).index(name) + 1 :]))
    taken = list(inspect.signature(command, eval_str=True).parameters.values())
    takes_rest = any(parameter.annotation is typer.Context for parameter in taken)
    plugin = inspect.Parameter(
        "plugin", inspect.Parameter.KEYWORD_ONLY, annotation=Plugins, default=None
    )
    options.refuse_missing_values(argv, taken)
    app.command(
        name,
        help=inspect.getdoc(command),
        context_settings={"ignore_unknown_options": takes_rest, "allow_extra_args": takes_rest},
    )(options.with_parameters(_guarded(command), [*taken, plugin]))


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with every failure turned into one line and an exit code."""

    def guarded(**given: object) -> None:
        given.pop("plugin")
        try:
            command(**given)
            sys.stdout.flush()
        except (typer.Exit, typer.Abort, SystemExit):
            raise
        except BaseException as error:
            raise typer.Exit(_explain(error)) from None

    return guarded


def _explain(error: BaseException) -> int:
    """Say on stderr, in one line, what went wrong; return the exit code."""
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if os.environ.get("STATETRACK_DEBUG"):
        traceback.print_exception(error)
    line, code = _line_and_code(error)
    _print_error("" if code == INTERRUPTED else "error: ", " ".join(line.splitlines()))
    return code


def _print_error(label: str, line: str) -> None:
    from rich.text import Text

    from statetrack.report.drawing import error_console

    error_console().print(Text(label, "bold red") + Text(line, "red"))


def _line_and_code(error: BaseException) -> tuple[str, int]:
    match error:
        case StatetrackError():
            return _as_options(error), FAILED
        case typer.BadParameter():
            return error.message, MISUSED
        case KeyboardInterrupt():
            return "interrupted", INTERRUPTED
        case OSError(filename=str(name), strerror=str(reason)):
            return f"{name}: {reason}", FAILED
        case OSError():
            return error.strerror or str(error), FAILED
        case MemoryError():
            return "out of memory", FAILED
    what = f"{type(error).__name__}: {error}"
    if (line := _line_in_plugin(error)) is not None:
        return f"{line}: {what}. STATETRACK_DEBUG=1 shows the whole traceback.", FAILED
    return (
        f"this is a mistake in statetrack: {what}. "
        "STATETRACK_DEBUG=1 shows where; please report it.",
        FAILED,
    )


def _line_in_plugin(error: BaseException) -> str | None:
    """The file and line of a plugin that an error arose in, if it did."""
    from statetrack.plugins import line_of

    return line_of(error)


def _as_options(error: StatetrackError) -> str:
    """The message, with the settings in it written as options."""
    from statetrack.cli.options import written

    return error.message(written)


def _summary(module: str) -> str:
    """The first line of a command module's docstring, read without importing the module."""
    spec = importlib.util.find_spec(f"statetrack.cli.{module}")
    assert spec is not None and spec.origin is not None, f"there is no statetrack.cli.{module}"
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    assert docstring, f"statetrack.cli.{module} has no docstring"
    return docstring.splitlines()[0]


def _not_invoked() -> None:
    """Stands for a command that this command line does not invoke."""


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
) -> None:
    """Options that stand before any command."""
