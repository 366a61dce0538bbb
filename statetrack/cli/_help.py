"""The pages that `--help` prints, of the program and of every command.

A page has the usage, the docstring of the command, its arguments and options in groups, and its
examples. No word is broken at any width, choices and ranges stand in the text of an option, and a
default is always stated. A docstring is Markdown with paragraphs and code only; what stands behind
a paragraph `Examples:` comes last.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from statetrack.catalogue import as_text, flag, inner_type, type_name
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


class Entry(NamedTuple):
    """One option, argument or command, and what is said about it."""

    name: Text
    about: Text


class Page(NamedTuple):
    """The help of a command: its docstring, and its parameters as its signature has them."""

    docstring: str
    parameters: Sequence[inspect.Parameter]

    def command_class(self) -> type[TyperCommand]:
        """The class of a command that prints this page."""
        page = self

        class CommandWithHelp(TyperCommand):
            def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
                formatter.write(_printed(page.lines, ctx.command_path))

        return CommandWithHelp

    def lines(self, path: str, out: Console) -> Iterator[Text]:
        """The lines of the page, where `path` is the program and the command."""
        arguments = [each for each in self.parameters if _is_argument(each)]
        groups: dict[str, list[Entry]] = {ARGUMENTS: [_argument(each) for each in arguments]}
        for each in self.parameters:
            if isinstance(info := _info(each), OptionInfo) and not info.hidden:
                groups.setdefault(info.rich_help_panel or OPTIONS, []).append(_option(each, info))
        groups[GENERAL] = [*groups.pop(GENERAL, []), HELP]
        usage = [path, "[OPTIONS]", *map(_argument_in_usage, arguments)]
        yield from _page(usage, self.docstring, groups, out)


class GroupWithHelp(TyperGroup):
    """The program, whose help lists its commands."""

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Called by Typer."""
        known = [
            Entry(Text(name, NAMES), _plain(each.help or ""))
            for name, each in self.commands.items()
        ]
        options = [
            Entry(_flags(each.opts), _plain(getattr(each, "help", None) or ""))
            for each in self.get_params(ctx)
            if "--help" not in each.opts
        ]

        def lines(path: str, out: Console) -> Iterator[Text]:
            groups = {COMMANDS: known, OPTIONS: [*options, HELP]}
            yield from _page([path, "COMMAND ..."], self.help or "", groups, out)

        formatter.write(_printed(lines, ctx.command_path))


def _printed(lines: Callable[[str, Console], Iterator[Text]], path: str) -> str:
    out = console()
    out.width = min(out.width, WIDEST)
    with out.capture() as captured:
        for line in lines(path, out):
            line.rstrip()
            line.plain = line.plain.replace(KEPT_TOGETHER, " ")
            out.print(line, soft_wrap=True)
    return captured.get().rstrip() + "\n"


def _page(
    usage: Iterable[str], docstring: str, groups: Mapping[str, Sequence[Entry]], out: Console
) -> Iterator[Text]:
    yield Text.assemble(("Usage: ", "bold"), " ".join(usage))
    yield Text()
    prose, _, examples = docstring.partition(f"\n{EXAMPLES}:\n")
    yield from _prose(prose, out)
    for heading, entries in groups.items():
        if entries:
            yield Text(heading, "bold")
            yield from _entries(entries, out)
            yield Text()
    if examples.strip():
        yield Text(EXAMPLES, "bold")
        for line in examples.strip().splitlines():
            yield Text(f"  {line.strip()}")


def _prose(docstring: str, out: Console) -> Iterator[Text]:
    """The paragraphs of a docstring, each filled to the width; indented ones are not changed."""
    for paragraph in filter(str.strip, docstring.split("\n\n")):
        if paragraph.lstrip("\n").startswith(" "):
            yield Text(paragraph.strip("\n"))
        else:
            yield from _plain(" ".join(paragraph.split())).wrap(out, out.width)
        yield Text()


def _plain(markdown: str) -> Text:
    """Text without its backticks and asterisks; what stood between them has a style instead."""
    text = Text()
    for part in re.split(r"(`[^`]+`|(?<![\w*])\*[^\s*][^*]*\*(?![\w*]))", markdown):
        marked = part[:1] if len(part) > 2 and part[0] == part[-1] else ""
        style = {"`": NAMES, "*": "italic"}.get(marked, "")
        text.append(part[1:-1] if style else part, style)
    return text


def _entries(entries: Sequence[Entry], out: Console) -> Iterator[Text]:
    """The lines of a group: names on the left, and what is said about them on the right."""
    most = min(MOST_NAMED, out.width // 3)
    widths = [len(each.name) for each in entries if len(each.name) <= most]
    indent = 2 + max(widths, default=4) + 2
    for name, about in entries:
        lines = about.wrap(out, max(out.width - indent, 20))
        if len(name) > indent - 4:
            yield Text("  ") + name
        elif lines:
            yield Text("  ") + name + Text(" " * (indent - 2 - len(name))) + lines.pop(0)
        else:
            yield Text("  ") + name
        for line in lines:
            yield Text(" " * indent) + line


def _flags(names: Iterable[str]) -> Text:
    """`-h, --help`."""
    return Text(", ").join([Text(each, NAMES) for each in names])


HELP = Entry(_flags(["-h", "--help"]), Text("Show this page and exit."))
"""The option that every page lists last."""


def _info(parameter: inspect.Parameter) -> Any:
    """What Typer is told of a parameter; None for a context."""
    return next(iter(getattr(parameter.annotation, "__metadata__", ())), None)


def _is_argument(parameter: inspect.Parameter) -> bool:
    return isinstance(_info(parameter), ArgumentInfo)


def _is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def _argument_in_usage(parameter: inspect.Parameter) -> str:
    repeats = typing.get_origin(inner_type(parameter.annotation)) is list
    name = _argument_name(parameter) + ("..." if repeats else "")
    return name if _is_required(parameter) else f"[{name}]"


def _argument_name(parameter: inspect.Parameter) -> str:
    """`RUN` of `RUN`, `[RUN]` and `[RUN ...]`; `RUN|SUITE` of `RUN ... | SUITE`."""
    written: str = _info(parameter).metavar or parameter.name.upper()
    return re.sub(r"[\s\[\].]", "", written)


def _argument(parameter: inspect.Parameter) -> Entry:
    name = Text(_argument_name(parameter), NAMES)
    return Entry(name, _about(parameter, _info(parameter), None))


def _option(parameter: inspect.Parameter, info: OptionInfo) -> Entry:
    flags = flags_of(parameter)
    if inner_type(parameter.annotation) is bool:
        return Entry(_flags(flags), _about(parameter, info, None))
    written, choices = _value(parameter, info)
    return Entry(_flags(flags) + Text(f" {written}", "yellow"), _about(parameter, info, choices))


def flags_of(parameter: inspect.Parameter) -> list[str]:
    """The names by which an option is given, short ones first, as Typer reads its declaration."""
    info = _info(parameter)
    # in an annotation, what Typer calls the default is the first of the names
    written = [each for each in (info.default, *(info.param_decls or ())) if isinstance(each, str)]
    declared = [part for each in written for part in each.split("/")]
    if not declared:
        declared = [flag(parameter.name)]
        if inner_type(parameter.annotation) is bool:
            declared.append(flag(f"no_{parameter.name}"))
    return sorted(declared, key=lambda each: each.startswith("--"))


def _value(parameter: inspect.Parameter, info: OptionInfo) -> tuple[str, list[str] | None]:
    """What stands for the value of an option, and the choices that its text has to name."""
    kind = inner_type(parameter.annotation)
    if typing.get_origin(kind) is list:
        kind = inner_type(typing.get_args(kind)[0])
    written = info.metavar or type_name(kind)
    if "|" in written:
        choices = written.split("|")
        return (written, None) if len(written) <= SHORT_CHOICE else ("WORD", choices)
    if any(letter.isupper() for letter in written):
        return written, None
    base, comma, _ = written.partition(",")
    return METAVARS.get(base, "TEXT") + (",..." if comma else ""), None


def _about(
    parameter: inspect.Parameter, info: ParameterInfo, choices: Iterable[str] | None
) -> Text:
    """The help of an option or argument with its choices, its range and its default."""
    text = _plain(" ".join((info.help or "").split()))
    facts = [f"one of {', '.join(choices)}"] if choices else []
    whole = _default(parameter, info), _range(info.min, info.max)
    facts += [each.replace(" ", KEPT_TOGETHER) for each in whole if each]
    if _is_required(parameter) and isinstance(info, OptionInfo):
        facts.append("required")
    if not facts:
        return text
    return Text.assemble(text, " " if text else "", ("[" + "; ".join(facts) + "]", "dim"))


def _default(parameter: inspect.Parameter, info: ParameterInfo) -> str:
    """`default: 64`; empty where there is none to show."""
    if isinstance(info.show_default, str):
        return f"default: {info.show_default}" if info.show_default else ""
    value = parameter.default
    if inner_type(parameter.annotation) is bool:
        off = flag(f"no_{parameter.name}")
        return f"default: {as_text(value)}" if off in flags_of(parameter) else ""
    if not info.show_default or value is None or _is_required(parameter):
        return ""
    text = as_text(value)
    if isinstance(value, float) and float(f"{value:g}") == value:
        text = f"{value:g}"
    return f"default: {text}" if text else ""


def _range(lowest: float | None, most: float | None) -> str:
    """`1 to 64`, `at least 1`; empty where there is no bound."""
    if most is None or most >= UNBOUNDED:
        return "" if lowest is None else f"at least {_number(lowest)}"
    return f"at most {_number(most)}" if lowest is None else f"{_number(lowest)} to {_number(most)}"


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else str(value)
