"""Settings classes as command-line options, and models with options of their own.

One field of a `Settings` class is one option: its name in kebab-case, its type, default,
bounds and help. An option has the first of these values that is given:

    command line  >  --config file  >  preset of the model  >  default of the class

The middle two become the *defaults of the options*, so nothing is merged by hand, and
`--config run.yaml --help` shows the file's values. The options of a command depend on an option
of its own command line (`--model`), which is looked up first, with `peek`.

Where several models are named, as by `--models`, commas stand between them, and the options of
each, those of `statetrack train --model NAME`, behind its name:

    deltanet --beta double,deltaproduct --householders 2,lstm
"""

from __future__ import annotations

import inspect
import re
import shlex
import typing
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from statetrack import models, pictures, runs
from statetrack.catalogue import as_text as as_text
from statetrack.catalogue import bounds, inner_type, names_for, type_of
from statetrack.catalogue import flag as flag
from statetrack.cli._usage import (
    UnknownOptionError,
    UsageError,
    refuse_missing_values,
    refuse_odd_number,
    refuse_odd_numbers,
    refuse_unknown,
    usage_line,
)
from statetrack.cli._usage import peek as peek
from statetrack.errors import (
    SettingsError,
    StatetrackError,
    UnknownNameError,
    nearest,
    nearest_or_known,
)
from statetrack.registry import modules_in
from statetrack.text import visible

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from statetrack.settings import Settings

S = TypeVar("S", bound="Settings")

TestLengths = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LENGTH",
        help="Lengths to test at: 500, or a range as 100-500:100 or 10-100000:x10; repeatable. "
        "By default the task's own.",
    ),
]
"""The option for lengths to test at, of every command that makes test words of a task."""

TestWords = Annotated[
    list[str] | None,
    typer.Option(
        "--words",
        metavar="WORDS",
        help="How test words are drawn: task, uniform, group, group:NAME or weighted:FILE; "
        "repeatable. By default as those of training.",
    ),
]
"""The option for how test words are drawn."""

SuiteFolder = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The suite's runs; by default suites/SUITE."),
]
SuiteBudget = Annotated[str | None, typer.Option(help="The budget that the suite was run with.")]
TrustPlugin = Annotated[
    bool,
    typer.Option(
        "--trust-plugin",
        help="Run the code of the run's own plugin.py, which you have read.",
    ),
]
"""The option for commands that run a model which the run's own plugin may define."""

RunArgument = Annotated[
    Path | None, typer.Argument(metavar="[RUN]", help="A run folder; by default the newest.")
]
"""The run of a command that reads one."""

OtherTask = Annotated[
    str | None,
    typer.Option("--task", help="Another task with the same symbols and labels.", metavar="TASK"),
]
"""The option for a task in place of the run's own, of every command that looks for evidence."""

Replica = Annotated[
    int | None,
    typer.Option("--replica", metavar="N", min=0, help="This replica, and not the selected one."),
]
"""The option for one replica, of every command that looks for evidence about a run."""

Everyone = Annotated[bool, typer.Option("--all", help="Every replica, not only the selected one.")]
"""The option for all replicas."""

Seconds = Annotated[
    float,
    typer.Option(
        "--seconds",
        min=0.1,
        max=10**6,
        help="Work of the search, for each replica, in seconds of a nominal speed.",
    ),
]
"""The option for the work that a search may do."""

RoundingModel = Annotated[
    str | None,
    typer.Option(
        "--rounding",
        metavar="NAME|FILE",
        help="Compute under a rounding model (`statetrack list roundings`), a file of one, or with "
        "a state of a type such as bfloat16 or e8m12; nothing is kept in the run's folder.",
    ),
]
"""The option for a rounding model, of every command that reads words with a run."""

Device = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda or cuda:INDEX; by default the run's own.")
]
"""The option for the device that a run's model is read on."""

AsJson = Annotated[
    bool, typer.Option("--json", help="One JSON object on stdout, and nothing else.")
]
"""The option for JSON in place of a report."""

DEFAULT_MODEL = "bilinear-cp"
"""The model of commands that make a run, where none is given."""

Model = Annotated[
    str, typer.Option(metavar="NAME", help="The model; its own options are listed below.")
]
"""The option for the model of a command that makes a run."""

NewRun = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="The run folder; by default a new one in runs/."),
]
"""The option `--out` of commands that make a run."""

Force = Annotated[
    bool,
    typer.Option("--force", help="Replace what stands there, where it is nothing else."),
]
"""The option of commands that refuse to write over what is there."""

PrintJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
"""The same for commands whose JSON may be a list."""

MarkdownFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write everything as a Markdown page.")
]
"""The option for a page beside what is printed."""

Logs = Annotated[
    Any,
    typer.Option(
        "--log",
        metavar="NAME,...",
        parser=lambda text: _logs(text),
        help=f"Also log to these, besides metrics.jsonl: {', '.join(runs.LOGS)}.",
    ),
]
"""The option for where training is logged."""

Width = Annotated[
    str | None,
    typer.Option(metavar="WIDTH", help="column (3.25 in), page (6.75 in), or inches."),
]
Height = Annotated[float | None, typer.Option(metavar="INCHES", help="The height.")]
Dpi = Annotated[int, typer.Option(help="Dots per inch of a PNG.", min=30, max=1200)]
Font = Annotated[
    float | None, typer.Option(metavar="POINTS", help="Size of letters.", min=3, max=60)
]
Style = Annotated[
    str,
    typer.Option(
        metavar="STYLE",
        help="plain, paper or slides; or a style sheet of matplotlib, by name or file.",
    ),
]
Title = Annotated[str | None, typer.Option(help="The title, in place of the usual one.")]
NoTitle = Annotated[bool, typer.Option("--no-title", help="No title.")]

CONTEXT = inspect.Parameter(
    "context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
)
"""The parameter of a command that is given the words which Typer does not parse."""

TYPES_OF_TYPER = (bool, int, float, str, Path)
"""The types that Typer parses; all others are parsed from text by pydantic."""


def look_of(
    *,
    width: Width = None,
    height: Height = None,
    dpi: Dpi = 200,
    font: Font = None,
    style: Style = "plain",
    title: Title = None,
    no_title: NoTitle = False,
    legend: bool = True,
) -> pictures.Look:
    """The look that options ask for.

    Raises `SettingsError` for a size, style or title that cannot be had.
    """
    if title is not None and no_title:
        raise SettingsError("--title and --no-title: choose one")
    return pictures.Look(
        width=None if width is None else pictures.width_of(width),
        height=height,
        dpi=dpi,
        font=font,
        style=style,
        title="" if no_title else title,
        legend=legend,
    )


LOOK = [
    one
    for one in inspect.signature(look_of, eval_str=True).parameters.values()
    if typing.get_origin(one.annotation) is Annotated
]
"""The options of commands that draw: those of `look_of`."""


def models_option(left_out: str) -> Any:
    """The option for models by text; `left_out` says which ones are meant where it is not given."""
    return typer.Option(
        "--models",
        metavar="TEXT",
        help="Models with commas between, each with options of its own: "
        f"'deltanet --beta double,lstm'; left out, {left_out}.",
    )


def written(name: str, *value: Any) -> str:
    """A setting in the notation of the command line: `--hidden`, `--hidden 64`, `--no-bias`."""
    if value and isinstance(value[0], bool):
        return flag(name if value[0] else f"no_{name}")
    return f"{flag(name)} {as_text(value[0])}" if value else flag(name)


def parameters(
    kind: type[Settings],
    panel: str,
    preset: Mapping[str, Any] | None = None,
    panels: Mapping[str, Sequence[str]] | None = None,
) -> list[inspect.Parameter]:
    """One keyword-only parameter per field of a settings class, for a command's signature.

    In help they stand in the group `panel`, but for the fields that `panels` gives to others.

    Every field of the class has a default.
    `preset` replaces defaults of the class, by field name; keys that are not fields of this
    class belong to other classes and are ignored (`check_preset` finds those of no class).
    """
    settings = kind()
    defaults = {name: getattr(settings, name) for name in kind.model_fields} | dict(preset or {})
    elsewhere = {name: other for other, names in (panels or {}).items() for name in names}
    return [
        _parameter(name, field, elsewhere.get(name, panel), defaults[name])
        for name, field in kind.model_fields.items()
    ]


def optional(kind: type[Settings], names: Iterable[str], panel: str) -> list[inspect.Parameter]:
    """Parameters for some fields of a settings class: None where they are not given."""
    return [_parameter(name, kind.model_fields[name], panel, None) for name in names]


def with_parameters(
    command: Callable[..., None], given: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """A function that calls the command, with these parameters in its signature."""

    def called(**values: Any) -> None:
        command(**values)

    called.__doc__ = command.__doc__
    called.__signature__ = inspect.Signature(list(given))  # type: ignore[attr-defined]
    return called


def with_settings(
    command: Callable[..., None], settings: Iterable[inspect.Parameter], after: str | None = None
) -> Callable[..., None]:
    """The command, with these parameters in the place of its `**given`.

    They stand behind its parameter `after`, by default behind all.
    """
    written = inspect.signature(command, eval_str=True).parameters.values()
    own = [one for one in written if one.kind is not inspect.Parameter.VAR_KEYWORD]
    place = len(own) if after is None else [one.name for one in own].index(after) + 1
    return with_parameters(command, [*own[:place], *settings, *own[place:]])


def collect(kind: type[S], given: Mapping[str, Any]) -> S:
    """The settings of one component, selected from all values that a command was given.

    Raises `SettingsError` naming the option whose value the class refuses.
    """
    return kind(**{name: given[name] for name in kind.model_fields})


def on_command_line(context: typer.Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the values of a command that its command line has, and not a default."""
    return {
        name: value
        for name, value in given.items()
        if (source := context.get_parameter_source(name)) is not None
        and source.name == "COMMANDLINE"
    }


def check_preset(
    values: Mapping[str, Any],
    where: str,
    kinds: Sequence[type[Settings]],
    also: Collection[str] = (),
) -> dict[str, Any]:
    """The values of a preset or a `--config` file, each checked by the field it is for.

    `also` names keys that belong to the command itself; their values are returned unchanged.
    Raises `SettingsError` for a key that is no field of `kinds`, with the nearest, and for
    a value that the field refuses. The message begins with `where`.
    """
    from statetrack.settings import build  # with pydantic, which not every command needs

    known = [name for kind in kinds for name in kind.model_fields]
    for key in values:
        if key not in (*known, *also):
            raise SettingsError(f"{where}: unknown setting '{key}'.{nearest(key, [*known, *also])}")
    checked = {key: values[key] for key in also if key in values}
    for kind in kinds:
        own = {key: value for key, value in values.items() if key in kind.model_fields}
        built = build(kind, own, where)
        checked |= {key: getattr(built, key) for key in own}
    return checked


def _parameter(name: str, field: FieldInfo, panel: str, default: Any) -> inspect.Parameter:
    core = inner_type(field.annotation)
    lower, upper, above = bounds(field)
    is_number = core in (int, float)
    help_text = visible(field.description or "", lines=True)
    if above is not None:
        help_text += f" Above {above:g}."
    text = "" if default is None else as_text(default)
    of_typer = core in TYPES_OF_TYPER and names_for(field) is None
    info = typer.Option(
        flag(name) if core is not bool else f"{flag(name)}/{flag('no_' + name)}",
        help=help_text,
        show_default=True if text == visible(text) else visible(text),
        metavar=None if core is bool else type_of(field),
        rich_help_panel=panel,
        min=lower if of_typer and is_number else None,
        max=upper if of_typer and is_number else None,
        parser=None if of_typer else _reader(field),
    )
    annotation: Any = field.annotation
    if not of_typer:
        annotation, default = (str | None, None) if default is None else (str, text)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[annotation, info],
        default=default,
    )


def _reader(field: FieldInfo) -> Callable[[Any], Any]:
    """A parser of `1e-3,3e-3` (a sequence) or of one word (anything else)."""
    core: Any = inner_type(field.annotation)
    is_sequence = typing.get_origin(core) in (tuple, list)
    numbers = is_sequence and typing.get_args(core)[0] in (int, float)

    from pydantic import ConfigDict, TypeAdapter, ValidationError

    def read(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        parts = _split(text) if is_sequence else [text]
        for part in parts if numbers else ():
            refuse_odd_number(part, text)
        kind: Any = field.annotation
        kind = Annotated[(kind, *field.metadata)] if field.metadata else kind
        adapter = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
        try:
            return adapter.validate_python(parts if is_sequence else text)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False)[0]
            wrong, message = first["input"], first["msg"]
            message = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
            inside = f" in {text!r}" if wrong != text and isinstance(wrong, str) else ""
            raise typer.BadParameter(
                f"{wrong!r}{inside}: {message[:1].lower()}{message[1:]}"
            ) from None

    return read


def require_new_run(out: Path | None, *, force: bool) -> None:
    """Raise `StatetrackError` where a run cannot be made there, or `--force` is without `--out`."""
    if out is not None:
        runs.require_new(out, force=force)
    elif force:
        raise SettingsError("--force replaces the run that --out names: name one")


def _logs(text: str) -> tuple[str, ...]:
    """The names of logs, each once."""
    names = tuple(dict.fromkeys(_split(text)))
    for name in names:
        if name not in runs.LOGS:
            known = ", ".join(runs.LOGS)
            raise typer.BadParameter(f"'{name}' is no log: {known}.{nearest(name, runs.LOGS)}")
    return names


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")] if text.strip() else []


def names_among(
    given: Sequence[str],
    names: Mapping[str, str],
    option: str,
    left_out: Mapping[str, str] | None = None,
) -> list[str]:
    """Those of some names that texts ask for, in the order in which they ask.

    A text is a name, or several with commas between. `names` has for every name another one that
    stands for it too, such as that of its model. Raises `SettingsError` for one that there is not,
    with the nearest, for a text that can be read in several ways, and for one of `left_out`, with
    what that says of it.
    """
    known = {_spaced(name): name for name in (*names, *names.values())}
    asked: list[str] = []
    for text in given:
        parts, whole = [part for part in _split(text) if part], _spaced(text)
        ways = [[whole]] if whole in known else list(_ways(parts, known))
        if len(ways) == 1:
            asked += (known[name] for name in ways[0])
        elif ways:
            raise SettingsError(
                f"{option}: '{text}' can be read as different names: repeat {option} for each"
            )
        else:
            gone = {_spaced(name): why for name, why in (left_out or {}).items()}
            for name in chain.from_iterable(_ways(parts, {**known, **gone})):
                if name in gone:
                    raise SettingsError(f"{option}: {gone[name]}")
            wrong = next(part for part in parts if part not in known)
            commas = next((name for name in known if "," in name), None)
            how = f" A name with a comma is one option: {option} '{commas}'." if commas else ""
            raise SettingsError(
                f"{option}: there is no '{wrong}'.{nearest_or_known(wrong, known)}{how}"
            )
    if not asked:
        raise SettingsError(f"{option}: names none.{nearest_or_known('', names)}")
    found: list[str] = []
    for each in asked:
        found += [each] if each in names else [name for name in names if names[name] == each]
    return list(dict.fromkeys(found))


def by_beginning(names: Sequence[str]) -> dict[str, str]:
    """What each name begins with, up to a comma or a space: of a row, its model."""
    return {name: re.split("[, ]", name)[0] for name in names}


def _spaced(name: str) -> str:
    """A name with one space behind every comma."""
    return ", ".join(part.strip() for part in name.split(","))


def _ways(parts: Sequence[str], known: Container[str]) -> Iterator[list[str]]:
    """Every way in which parts between commas, in their order, are known names."""
    if not parts:
        yield []
    for count in range(1, len(parts) + 1):
        name = _spaced(",".join(parts[:count]))
        if name in known:
            yield from ([name, *rest] for rest in _ways(parts[count:], known))


def chosen_models(written: str, option: str = "--models") -> dict[str, Settings]:
    """The settings of every model in a text, by the text that gives them; of all, where empty.

    The key of a model is its name and the options that were given, each once, in the order of the
    settings: `deltanet --beta double`.

    Raises `UnknownNameError` for a model or an option that does not exist, with those that do, and
    `SettingsError` for a value that the option refuses, and for a model that is named twice; all
    say which model is meant. Only what was given is in the `model_fields_set` of a model's
    settings.
    """
    try:
        return _chosen_models(written)
    except StatetrackError as problem:
        said = str(problem.args[0]).replace("--models:", f"{option}:", 1)
        raise type(problem)(said) from None


def _chosen_models(written: str) -> dict[str, Settings]:
    if not written.strip():
        return {name: models.MODEL_FACTS[name].settings_class() for name in models.MODELS}
    found: dict[str, Settings] = {}
    for name, *words in models_in(written):
        text, settings = _chosen(name, words)
        if text in found:
            raise SettingsError(f"--models: '{text}' is named twice")
        found[text] = settings
    if not found:
        raise UnknownNameError(f"--models: '{written}' names no model")
    return found


def models_in(written: str) -> Iterator[list[str]]:
    """The words of every model; a comma between quotes separates nothing."""
    reader = shlex.shlex(written, posix=True, punctuation_chars=",")
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        for word in [*reader, ","]:
            if not word.strip(","):
                yield from [words] if words else []
                words = []
            else:
                words.append(word)
    except ValueError:
        raise SettingsError(f"--models: a quotation mark is not closed: {written}") from None


def _chosen(name: str, words: Sequence[str]) -> tuple[str, Settings]:
    """A model's own text, and its settings."""
    if name not in models.MODELS:
        hint = nearest(name, models.MODELS) or " `statetrack list models` shows all."
        hint += models.MODELS.hint
        if "," not in name and not name.startswith("-"):
            raise UnknownNameError(f"--models: there is no model '{name}'.{hint}")
        raise UnknownNameError(
            f"--models: '{name}' is no model: each is written as NAME --option value, with commas "
            "between models"
        )
    from statetrack.settings import build  # with pydantic, which not every command needs

    kind = models.MODEL_FACTS[name].settings_class
    given = _given(name, kind, words)
    settings = build(kind, given, f"--models: {name}")
    named = [each for each in kind.model_fields if each in given]
    return _with_options(name, settings, named), settings


def _given(name: str, kind: type[Settings], words: Sequence[str]) -> dict[str, Any]:
    """The values of the options that stand behind a model's name."""
    found: dict[str, Any] = {}

    def keep(context: typer.Context, **values: Any) -> None:
        refuse_unknown(context.args, name, kind.model_fields, fields_of_models, "")
        found.update(on_command_line(context, values))

    own = parameters(kind, "")
    app = typer.Typer(add_completion=False)
    app.command(
        name,
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )(with_parameters(keep, [CONTEXT, *own]))
    try:
        refuse_missing_values(words, own)
        refuse_odd_numbers(words, own)
        typer.main.get_command(app).main(args=list(words), prog_name=name, standalone_mode=False)
    except UnknownOptionError as unknown:
        told = str(unknown) if str(unknown).startswith(f"{name} ") else f"{name}: {unknown}"
        raise UnknownOptionError(f"--models: {told} {_known_options(name, kind)}") from None
    except UsageError as misused:
        told = usage_line(misused, words).partition(". `statetrack")[0].rstrip(".")
        raise SettingsError(f"--models: {name}: {told}. {_known_options(name, kind)}") from None
    return found


def _known_options(name: str, kind: type[Settings]) -> str:
    return f"Options of {name}: {', '.join(map(flag, kind.model_fields))}."


def others_of(model: str) -> Callable[[], Mapping[str, Collection[str]]]:
    """The options of other models, for advice; none for a model of the user's own.

    Whoever writes a model asks for its own options, and not which of all others have one.
    """
    return fields_of_models if model in modules_in("statetrack.models") else dict


def own_of(model: str) -> str:
    """A sentence that names the options of a model."""
    fields = models.MODEL_FACTS[model].settings_class.model_fields
    return f"Its own are {', '.join(map(flag, fields)) or 'none'}; `--help` shows all."


def fields_of_models() -> dict[str, set[str]]:
    """The names of the settings of every model."""
    return {
        name: set(facts.settings_class.model_fields) for name, facts in models.MODEL_FACTS.items()
    }


def with_own_options(model: str, settings: Settings) -> str:
    """A model and the options in which it differs from its defaults, as `--models` takes them."""
    usual = type(settings)()
    other = [name for name, value in settings if value != getattr(usual, name)]
    return _with_options(model, settings, other)


def _with_options(model: str, settings: Settings, names: Iterable[str]) -> str:
    """A model and some of its settings, as `--models` takes them."""
    return " ".join([model, *(_written(name, getattr(settings, name)) for name in names)])


def _written(name: str, value: Any) -> str:
    """A setting as an option; a value with a comma or a space in quotes."""
    if isinstance(value, bool):
        return written(name, value)
    text = as_text(value)
    quoted = f"'{text}'" if "," in text else shlex.quote(text)
    return f"{flag(name)} {quoted}"
