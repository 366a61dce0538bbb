"""The commands, and the pages that `--help` prints of the program and of every command.

Commands are modules of this folder, and those that installed packages add. A command's name,
summary and place are read from its source: none is imported.

A page has the usage, the docstring of the command, its arguments and options in groups, and its
examples. No word is broken at any width, choices and ranges stand in the text of an option, and a
default is always stated. A docstring is Markdown with paragraphs and code only; what stands behind
a paragraph `Examples:` comes last.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import math
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text
from typer.models import ArgumentInfo, OptionInfo

from statetrack.catalogue import as_text, flag, inner_type, type_name
from statetrack.errors import StatetrackError
from statetrack.registry import described
from statetrack.report import console

WIDEST = 100
"""The most columns that a page takes."""

MOST_NAMED = 22
"""The most columns of an option and its value that has its help beside it; others have it below."""

SHORT_CHOICE = 13
"""The most characters of choices that stand beside an option; others stand in its text."""

UNBOUNDED = 10**9
"""An upper bound from here on is not shown: nobody comes near it."""

KEPT_TOGETHER = "\ue000"
"""A space at which no line is broken, until the page is printed: Rich breaks at every other."""

GENERAL = "General"
"""The group of the options that every command has; it comes last."""

NAMES = "cyan"
"""How the names of options, arguments and commands look."""

OPTIONS, ARGUMENTS, COMMANDS, EXAMPLES = "Options", "Arguments", "Commands", "Examples"

METAVARS = {"integer": "N", "number": "NUMBER", "path": "PATH"}
"""What stands for a value of a type; TEXT for any other."""

PROGRAM = f"""Can this recurrent architecture track state, and how far?

{EXAMPLES}:

    statetrack predict s3
    statetrack train --model lstm --task s3
    statetrack eval
    statetrack COMMAND -h
"""
"""The help of the program."""


@dataclass(frozen=True)
class Command:
    """A command, as it is listed without importing its module."""

    name: str
    module: str
    summary: str
    place: float


def find_commands() -> dict[str, Command]:
    """Every command by its name, in the order of the help.

    Raises `StatetrackError` where an installed package names a command that cannot be read.
    """
    import importlib.metadata  # takes as long as all other imports of this module together

    files = Path(__file__).parent.glob("[a-z]*.py")
    own = [_read_command(path.stem, f"{__package__}.{path.stem}") for path in files]
    found = {each.name: each for each in own if each is not None}
    for entry in importlib.metadata.entry_points(group="statetrack.commands"):
        command = None if entry.name in found else _read_command(entry.name, entry.value)
        if command is None:
            raise StatetrackError(
                f"{described(entry)} is to "
                "name a module with a docstring and `build` or `command`, under a name that no "
                "command has: "
                "update that package, or uninstall it"
            )
        found[entry.name] = command
    return {each.name: each for each in sorted(found.values(), key=lambda one: one.place)}


def find_command(name: str) -> Command | None:
    """The command of a name; None where there is none."""
    if name.isidentifier() and (Path(__file__).parent / f"{name}.py").is_file():
        return _read_command(name, f"{__package__}.{name}")
    return find_commands().get(name)


def function_of(command: Command, argv: list[str]) -> Callable[..., None]:
    """The function that a command runs with these arguments; its module is imported for it."""
    module = importlib.import_module(command.module)
    found: Callable[..., None]
    found = module.build(argv) if hasattr(module, "build") else module.command
    return found


def _read_command(name: str, module: str) -> Command | None:
    """The command of a module; None where that is none, or defines no command."""
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:
        return None
    if spec is None or spec.origin is None:
        return None
    source = Path(spec.origin).read_text(encoding="utf-8")
    head = _AFTER_DOCSTRING.split(source, maxsplit=1)[0]  # to parse the whole takes far longer
    try:
        docstring = ast.get_docstring(ast.parse(head))
    except SyntaxError:  # the docstring has a line that looks like code
        docstring = ast.get_docstring(ast.parse(source))
    if not docstring or not _DEFINED.search(source):
        return None
    found = _PLACE.search(source)
    place = math.inf if found is None else float(found[1])
    return Command(name, module, docstring.splitlines()[0], place)


_AFTER_DOCSTRING = re.compile(r"^(?=from |import |def |class |@)", re.MULTILINE)
_DEFINED = re.compile(r"^def (build|command)\(", re.MULTILINE)
_PLACE = re.compile(r"^PLACE = ([-+.\de]+)$", re.MULTILINE)


class HelpEntry(NamedTuple):
    """One option, argument or command, and what is said about it."""

    name: Text
    about: Text


def help_option(page: Callable[[typer.Context, Console], Iterator[Text]]) -> Any:
    """The option `--help`, which prints the lines of a page."""

    def show(context: typer.Context, wanted: bool) -> None:
        if not wanted or context.resilient_parsing:
            return
        out = console()
        out.width = min(out.width, WIDEST)
        with out.capture() as captured:
            for line in page(context, out):
                line.rstrip()
                line.plain = line.plain.replace(KEPT_TOGETHER, " ")
                out.print(line, soft_wrap=True)
        typer.echo(captured.get().rstrip())
        raise typer.Exit

    return typer.Option(
        "-h",
        "--help",
        help="Show this page and exit.",
        is_eager=True,
        callback=show,
        rich_help_panel=GENERAL,
    )


def command_page(
    context: typer.Context, out: Console, docstring: str, parameters: Sequence[inspect.Parameter]
) -> Iterator[Text]:
    """The page of a command: its docstring, and its parameters as its signature has them."""
    usage = [context.command_path, "[OPTIONS]"]
    groups: dict[str, list[HelpEntry]] = {ARGUMENTS: []}
    for each in parameters:
        info = info_of(each)
        if isinstance(info, ArgumentInfo):
            # `RUN` of `RUN`, `[RUN]` and `[RUN ...]`; `RUN|SUITE` of `RUN ... | SUITE`
            name = re.sub(r"[\s\[\].]", "", info.metavar or each.name.upper())
            repeats = typing.get_origin(inner_type(each.annotation)) is list
            named = name + "..." * repeats
            usage.append(named if _is_required(each) else f"[{named}]")
            groups[ARGUMENTS].append(HelpEntry(Text(name, NAMES), _about(each, None)))
        elif isinstance(info, OptionInfo) and not info.hidden:
            groups.setdefault(info.rich_help_panel or OPTIONS, []).append(_option(each, info))
    groups[GENERAL] = groups.pop(GENERAL)
    yield from _page(usage, docstring, groups, out)


def program_page(context: typer.Context, out: Console) -> Iterator[Text]:
    """The page of the program, which lists its commands."""
    groups = {
        COMMANDS: [
            HelpEntry(Text(each.name, NAMES), _plain(each.summary))
            for each in find_commands().values()
        ],
        OPTIONS: [
            HelpEntry(_flags(each.opts), _plain(getattr(each, "help", None) or ""))
            for each in sorted(
                context.command.get_params(context), key=lambda one: one.name == "help"
            )
        ],
    }
    yield from _page([context.command_path, "COMMAND ..."], PROGRAM, groups, out)


def _page(
    usage: Iterable[str], docstring: str, groups: Mapping[str, Sequence[HelpEntry]], out: Console
) -> Iterator[Text]:
    yield Text.assemble(("Usage: ", "bold"), " ".join(usage))
    yield Text()
    prose, _, examples = docstring.partition(f"\n{EXAMPLES}:\n")
    for paragraph in filter(str.strip, prose.split("\n\n")):
        if paragraph.lstrip("\n").startswith(" "):  # code
            yield Text(paragraph.strip("\n"))
        else:
            yield from _plain(" ".join(paragraph.split())).wrap(out, out.width)
        yield Text()
    for heading, entries in groups.items():
        if entries:
            yield Text(heading, "bold")
            yield from _entries(entries, out)
            yield Text()
    if examples.strip():
        yield Text(EXAMPLES, "bold")
        for line in examples.strip().splitlines():
            yield Text(f"  {line.strip()}")


def _plain(markdown: str) -> Text:
    """Text without its backticks and asterisks; what stood between them has a style instead."""
    text = Text()
    for part in re.split(r"(`[^`]+`|(?<![\w*])\*[^\s*][^*]*\*(?![\w*]))", markdown):
        marked = part[:1] if len(part) > 2 and part[0] == part[-1] else ""
        style = {"`": NAMES, "*": "italic"}.get(marked, "")
        text.append(part[1:-1] if style else part, style)
    return text


def _entries(entries: Sequence[HelpEntry], out: Console) -> Iterator[Text]:
    """The lines of a group: names on the left, and what is said about them on the right."""
    most = min(MOST_NAMED, out.width // 3)
    widths = [len(each.name) for each in entries if len(each.name) <= most]
    indent = 2 + max(widths, default=4) + 2
    for name, about in entries:
        first, lines = Text("  ") + name, about.wrap(out, max(out.width - indent, 20))
        if lines and len(name) <= indent - 4:
            first += Text(" " * (indent - 2 - len(name))) + lines.pop(0)
        yield first
        for line in lines:
            yield Text(" " * indent) + line


def _flags(names: Iterable[str]) -> Text:
    """`-h, --help`."""
    return Text(", ").join([Text(each, NAMES) for each in names])


def info_of(parameter: inspect.Parameter) -> Any:
    """What Typer is told of a parameter; None for a context."""
    return next(iter(getattr(parameter.annotation, "__metadata__", ())), None)


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _option(parameter: inspect.Parameter, info: OptionInfo) -> HelpEntry:
    """An option: its names with what stands for its value, and its text, which names choices."""
    flags, kind = _flags(flags_of(parameter)), inner_type(parameter.annotation)
    if kind is bool:
        return HelpEntry(flags, _about(parameter, None))
    if typing.get_origin(kind) is list:
        kind = inner_type(typing.get_args(kind)[0])
    written, choices = info.metavar or type_name(kind), None
    if "|" in written:
        if len(written) > SHORT_CHOICE:
            written, choices = "WORD", written.split("|")
    elif not any(letter.isupper() for letter in written):
        base, comma, _ = written.partition(",")
        written = METAVARS.get(base, "TEXT") + (",..." if comma else "")
    return HelpEntry(flags + Text(f" {written}", "yellow"), _about(parameter, choices))


def flags_of(parameter: inspect.Parameter) -> list[str]:
    """The names by which an option is given, short ones first, as Typer reads its declaration."""
    info = info_of(parameter)
    # in an annotation, what Typer calls the default is the first of the names
    written = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    declared = [part for each in written for part in each.split("/")]
    if not declared:
        declared = [flag(parameter.name)]
        if inner_type(parameter.annotation) is bool:
            declared.append(flag(f"no_{parameter.name}"))
    return sorted(declared, key=lambda each: each.startswith("--"))


def _about(parameter: inspect.Parameter, choices: Iterable[str] | None) -> Text:
    """The help of an option or argument with its choices, its range and its default."""
    info = info_of(parameter)
    text = _plain(" ".join((info.help or "").split()))
    facts = [f"one of {', '.join(choices)}"] if choices else []
    whole = _default(parameter, info.show_default), _range(info.min, info.max)
    facts += [each.replace(" ", KEPT_TOGETHER) for each in whole if each]
    if _is_required(parameter) and isinstance(info, OptionInfo):
        facts.append("required")
    if not facts:
        return text
    return Text.assemble(text, " " if text else "", ("[" + "; ".join(facts) + "]", "dim"))


def _default(parameter: inspect.Parameter, shown: bool | str) -> str:
    """`default: 64`; empty where there is none to show."""
    value = parameter.default
    if isinstance(shown, str):
        text = shown
    elif inner_type(parameter.annotation) is bool:
        text = as_text(value) if flag(f"no_{parameter.name}") in flags_of(parameter) else ""
    elif not shown or value is None or _is_required(parameter):
        text = ""
    elif isinstance(value, float) and float(f"{value:g}") == value:
        text = f"{value:g}"
    else:
        text = as_text(value)
    return f"default: {text}" if text else ""


def _range(lowest: float | None, most: float | None) -> str:
    """`1 to 64`, `at least 1`; empty where there is no bound."""

    def number(value: float) -> str:
        return f"{int(value):,}" if float(value).is_integer() else str(value)

    if most is None or most >= UNBOUNDED:
        return "" if lowest is None else f"at least {number(lowest)}"
    return f"at most {number(most)}" if lowest is None else f"{number(lowest)} to {number(most)}"
