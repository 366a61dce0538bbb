"""The generated parts of the pages: lists of what there is, made from the registries.

    python docs/generated.py            rewrite the parts that are no longer true
    python docs/generated.py --check    name them, and exit with 1 where there are any

In a page, a part stands between two comments, and is read like the rest of the page, on a code
host as in the built documentation:

    <!-- generated: models -->
    <!-- end of generated -->

`LISTS` has the names that can stand there. Nothing that a registry knows is typed into a page, so
a new model or task is documented by existing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.algebra import Prediction, Recurrence, Size, analyse
from statetrack.algebra import recurrences as rules
from statetrack.catalogue import (
    LISTINGS,
    as_text,
    describe_model,
    flag,
    model_sources,
)
from statetrack.catalogue.options import describe
from statetrack.cli.audit import AuditSettings
from statetrack.cli.build import BuildSettings
from statetrack.cli.export import ExportSettings
from statetrack.cli.gen import GenSettings
from statetrack.errors import StatetrackError
from statetrack.models import MODELS, recurrence_of
from statetrack.predicting import predict
from statetrack.references import Reference, ids_in, references
from statetrack.registry import Registry
from statetrack.rounding import Rounding
from statetrack.settings import Settings
from statetrack.spec import list_tasks, load_task
from statetrack.sweep import EXECUTORS
from statetrack.text import markdown, markdown_block, markdown_table
from statetrack.text import markdown_code as code
from statetrack.training import DataSettings, TrainSettings

DOCS = Path(__file__).parent

NOWHERE = Path("no-such-folder")
"""Lists other than that of runs look in no folder."""


def as_prose(text: str) -> str:
    """A docstring or a help text as Markdown: only its backticks mean something."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        code(part[1:-1]) if len(part) > 2 and part.startswith("`") else markdown(part)
        for part in parts
    )


def _cell(column: str, value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_cell(column, each) for each in value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return as_prose(value) if column == "summary" else markdown(str(value))


def listing(name: str, *columns: str, linked: bool = False) -> str:
    """The rows of `statetrack list NAME`; the first column is code, and can lead to a heading."""
    rows = list(LISTINGS[name].rows(NOWHERE))
    broken = [row for row in rows if "error" in row]
    if broken:
        raise StatetrackError(f"{name}: {broken[0]['name']}: {broken[0]['error']}")
    if not rows:
        return LISTINGS[name].empty
    name_of = _linked if linked else code
    cells = (
        [name_of(row[columns[0]]), *(_cell(column, row[column]) for column in columns[1:])]
        for row in rows
    )
    return markdown_table(columns, cells)


def _linked(name: str) -> str:
    return f"[{code(name)}](#{name})"


def settings_table(kind: type[Settings]) -> str:
    """The options of a settings class."""
    return markdown_table(
        ("option", "type", "default", "what it is"),
        (
            (
                code(row["option"]),
                _type(row),
                code(text) if (text := as_text(row["default"])) else "",
                as_prose(row["help"]),
            )
            for row in describe(kind)
        ),
    )


def keys_table(kind: type[Settings]) -> str:
    """The keys of a file that holds settings."""
    rows = [
        {**row, "default": "false" if row["default"] is False else row["default"]}
        for row in describe(kind)
    ]
    return markdown_table(
        ("key", "default", "what it is"),
        (
            (
                code(row["name"]),
                code(text) if (text := str(row["default"])) else "",
                as_prose(row["help"]),
            )
            for row in rows
        ),
    )


def _type(row: Mapping[str, Any]) -> str:
    signs = (("min", "≥"), ("above", ">"), ("max", "≤"))
    bounds = [f"{sign} {row[name]:g}" for name, sign in signs if row[name] is not None]
    return markdown(" ".join([row["type"], ", ".join(bounds)]).rstrip())


def models() -> str:
    """Every model: what it is, its own description, its training defaults and options."""
    return "\n".join(_model(name) for name in MODELS)


def fidelity() -> str:
    """With whose numbers every model was compared, to what difference, in which test."""
    return markdown_table(
        ("model", "equal to", "difference at most", "in"),
        (row for name in MODELS for row in _fidelity(name)),
    )


def _fidelity(name: str) -> Iterator[list[str]]:
    """A row for every comparison."""
    for found in describe_model(name)["checked"] or ({"against": "not compared"},):
        remark = f"; {found['remark']}" if found.get("remark") else ""
        yield [
            _linked(name),
            as_prose(found["against"] + remark),
            f"{found['difference']:g}" if "difference" in found else "",
            code(_test_name(found["test"])) if "test" in found else "",
        ]


def _test_name(path: str) -> str:
    """The name of a file of `tests/references` without its folder."""
    return path.removeprefix("tests/references/")


def _model(name: str) -> str:
    about = describe_model(name)
    defaults = ", ".join(
        code(f"{flag(key)} {as_text(value)}") for key, value in about["training_defaults"].items()
    )
    return (
        f"## {name}\n\n"
        f"{as_prose(about['summary'])} Family: {markdown(about['family'])}.\n\n"
        f"{_docstring(about['description'])}\n\n"
        f"Training defaults of its own: {defaults or 'none'}.\n\n"
        f"{settings_table(MODELS[name].settings_class)}\n"
    )


def _docstring(text: str) -> str:
    """A docstring as Markdown: its indented lines are code, the rest is escaped prose."""
    parts = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):
            parts.append(markdown_block(paragraph, "text"))
        else:
            parts.append(as_prose(paragraph))
    return "\n\n".join(parts)


def papers() -> str:
    """Every known paper, with the models and tasks that name it."""
    users = _users()
    ordered = sorted(references().items(), key=lambda item: (item[1].authors[0], item[1].year))
    return "\n".join(_paper(paper, entry, users.get(paper, [])) for paper, entry in ordered)


def _users() -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for user, text in _texts():
        for paper in ids_in(text):
            users.setdefault(paper, []).append(user)
    return users


def _texts() -> Iterator[tuple[str, str]]:
    for name in MODELS:
        yield name, model_sources(name)
    for name, task in list_tasks():
        if isinstance(task, StatetrackError):
            raise task
        yield name, task.spec.reference


def _paper(paper: str, entry: Reference, users: Sequence[str]) -> str:
    scheme, _, identifier = paper.partition(":")
    site = "arxiv.org/abs" if scheme == "arXiv" else "doi.org"
    where = ", ".join(filter(None, (entry.booktitle, entry.journal)))
    names = "; ".join(entry.authors)
    used = f" Named by {', '.join(map(code, users))}." if users else ""
    return (
        f"- {markdown(names)} ({entry.year}). *{markdown(entry.title)}.* "
        f"{markdown(where) + '. ' if where else ''}"
        f"[{paper}](https://{site}/{identifier}).{used}"
    )


CLASSES_ON = ("parity", "cyclic:n=3", "s3", "s4", "a5", "s5", "flip-flop")
"""The tasks of the table of what each class can do: groups from easy to hard, and a memory."""


def classes() -> str:
    """What `statetrack predict` says of every model on a few tasks."""
    algebras = [analyse(load_task(task).automaton) for task in CLASSES_ON]
    rows = (
        [code(model), *(markdown(_prediction(predict(algebra, model))) for algebra in algebras)]
        for model in MODELS
    )
    return markdown_table(["model", *map(code, CLASSES_ON)], rows)


def _prediction(found: Prediction) -> str:
    """`yes: hidden ≥ 2`, `yes: factors ≥ 2, heads 5 is enough`, `no`, or `?`."""
    if found.can != "yes":
        return {"no": "no", "unknown": "?"}[found.can]
    sizes = ", ".join(
        need.bounds.replace(">=", "≥") for need in found.needs if need.value is not None
    )
    return f"yes: {sizes}" if sizes else "yes"


def recurrences() -> str:
    """Every class of recurrence: its equation, its rule, how settings name it, and models of it."""
    used: dict[str, dict[str, Recurrence]] = {}
    for text, settings in _variants():
        found = recurrence_of(settings)
        if found is not None:
            used.setdefault(type(found).__name__, {}).setdefault(text, found)
    parts = []
    for name in rules.__all__:
        kind = getattr(rules, name)
        if not issubclass(kind, Recurrence) or inspect.isabstract(kind):
            continue
        models = used.get(name, {})
        plain = [text for text in models if " " not in text]
        shown = plain or [*models][:3]
        lines = [
            f"## {name}\n",
            f"{_first_line(f'{kind.__module__}.{name}')}\n",
            f"- Equation: {code(kind.equation)}",
            f"- What it tracks: {markdown(kind.rule)}",
            f"- Models: {', '.join(map(code, shown)) or 'none of this package'}",
        ]
        if shown:
            lines.append(f"- In the settings: {code(f'return {_call(models[shown[0]])}')}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _variants() -> Iterator[tuple[str, Settings]]:
    """Every model with its defaults, and with each other choice of one option."""
    for model in MODELS:
        kind = MODELS[model].settings_class
        yield model, kind()
        for name, field in kind.model_fields.items():
            others = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            for value in others:
                if value != field.default:
                    with contextlib.suppress(StatetrackError):  # some do not go with the others
                        yield f"{model} {flag(name)} {value}", kind(**{name: value})


def _call(value: Any) -> str:
    """How settings write a recurrence; sizes are settings: `Size("hidden", self.hidden)`."""
    if isinstance(value, Size):
        return f'Size("{value.setting}", self.{value.setting})'
    if not is_dataclass(value):
        return json.dumps(value) if isinstance(value, str) else repr(value)
    given = (
        f"{field.name}={_call(getattr(value, field.name))}"
        for field in fields(value)
        if getattr(value, field.name) != field.default
    )
    return f"{type(value).__name__}({', '.join(given)})"


def api() -> str:
    """The names of the API, by page and section, each with the first line of its docstring."""
    parts = []
    for path in sorted((DOCS / "api").glob("*.md"), key=_place):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(DOCS).as_posix()
        parts.append(f"## [{text.splitlines()[0].removeprefix('# ')}]({where})\n")
        anchors = iter(anchors_of(text))
        rows = []
        for heading in HEADING.finditer(text):
            anchor = next(anchors)
            if heading["level"] == "###":
                name = _documented_name(text[heading.end() :])
                rows.append((f"[{code(_short(name))}]({where}#{anchor})", _first_line(name)))
        parts.append(markdown_table(("name", "what it is"), rows))
    return "\n".join(parts)


API_PAGES = (
    "tasks",
    "datasets",
    "models",
    "training",
    "runs",
    "evidence",
    "algebra",
    "operations",
    "errors",
)
"""The pages of the API in the order in which they are read."""


def _place(path: Path) -> int:
    return API_PAGES.index(path.stem)


HEADING = re.compile(r"^(?P<level>#{1,6}) (?P<text>.+?)$", re.MULTILINE)
FENCED = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)


def anchors_of(page: str) -> list[str]:
    """The anchors that code hosts and MyST give to the headings of a page, in their order."""
    found: list[str] = []
    for heading in HEADING.finditer(FENCED.sub("", page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading["text"]).replace("\\", "")
        plain = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        same = sum(re.sub(r"~\d+$", "", each) == plain for each in found)
        found.append(f"{plain}~{same}" if same else plain)
    return [each.replace("~", "-") for each in found]


def _documented_name(text: str) -> str:
    """The first name that a directive of autodoc documents."""
    found = re.search(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)
    assert found is not None
    return found[1]


def _short(name: str) -> str:
    """`st.NAME` of a public name of the package."""
    return f"st.{name.removeprefix('statetrack.')}" if name.count(".") == 1 else name


def _first_line(name: str) -> str:
    module, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(module), attribute)
    if isinstance(thing, Registry):
        return f"Every {markdown(thing.kind)}, by its name."
    text = inspect.getdoc(thing)
    assert text is not None, f"{name} has no docstring"
    return as_prose(" ".join(text.split("\n\n")[0].split("\n")))


LISTS: Mapping[str, Callable[[], str]] = {
    "models": models,
    "fidelity": fidelity,
    "model-names": lambda: listing(
        "models",
        "name",
        "summary",
        "family",
        "linear",
        "transition",
        "kernels",
        "source",
        linked=True,
    ),
    "tasks": lambda: listing("tasks", "name", "title", "states", "symbols", "labels", "reference"),
    "kinds": lambda: listing("kinds", "name", "arguments", "summary"),
    "protocols": lambda: listing("protocols", "name", "title", "reference"),
    "suites": lambda: listing("suites", "name", "title", "reference"),
    "classes": classes,
    "recurrences": recurrences,
    "data-settings": lambda: settings_table(DataSettings),
    "training-settings": lambda: settings_table(TrainSettings),
    "executor-local": lambda: settings_table(EXECUTORS["local"]),
    "executor-ray": lambda: settings_table(EXECUTORS["ray"]),
    "executor-slurm": lambda: settings_table(EXECUTORS["slurm"]),
    "gen-settings": lambda: settings_table(GenSettings),
    "audit-settings": lambda: settings_table(AuditSettings),
    "build-settings": lambda: settings_table(BuildSettings),
    "export-settings": lambda: settings_table(ExportSettings),
    "rounding-settings": lambda: keys_table(Rounding),
    "papers": papers,
    "api": api,
}
"""What can stand in a page."""


PART = re.compile(
    r"^<!-- generated: (?P<name>[\w-]+) -->\n(?P<text>.*?)^<!-- end of generated -->$",
    re.MULTILINE | re.DOTALL,
)


def renewed(page: str) -> tuple[str, list[str]]:
    """A page with its generated parts as they are to be, and the names of those that change."""
    stale = []

    def part(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in LISTS:
            raise StatetrackError(f"there is no list '{name}'; there are {', '.join(LISTS)}")
        text = f"\n{LISTS[name]().strip()}\n\n"
        if text != found["text"]:
            stale.append(name)
        return f"<!-- generated: {name} -->\n{text}<!-- end of generated -->"

    return PART.sub(part, page), stale


def renew(folder: Path, write: bool) -> list[str]:
    """`PAGE: LIST` for every part that is not true; with `write` it is made so."""
    found = []
    for path in sorted(folder.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        text, stale = renewed(page)
        found += [f"{path.name}: {name}" for name in stale]
        if write and stale:
            path.write_text(text, encoding="utf-8")
    return found


def main() -> int:
    """Rewrite the generated parts, or check them."""
    reader = argparse.ArgumentParser(description="Rewrite the generated parts of the pages.")
    reader.add_argument("--check", action="store_true", help="write nothing, name what is stale")
    check = reader.parse_args().check
    stale = renew(DOCS, write=not check)
    for each in stale:
        print(f"{each} {'is stale: run `make generated`' if check else 'rewritten'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
