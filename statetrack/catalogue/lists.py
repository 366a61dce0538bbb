"""The lists that `statetrack list` prints and the docs show.

A component that cannot be loaded is a row with its `error`, and is not left out. The imports of a
list are made when its rows are needed: only some lists need torch.

What `--filter` takes are conditions, all of which must hold:

    linear-attention            a word that stands in any text of the row
    linear                      a property of yes or no that holds
    states<=6  labels=2         a number and =, !=, <, <=, > or >=
    group=S3  kind!=regex       a text, or one of a list, in whole words, in any case
    "reference=Merrill 2024"    a value with spaces stands between quotation marks
"""

from __future__ import annotations

import math
import operator
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from statetrack.errors import SettingsError, StatetrackError, nearest
from statetrack.report import Column, Kind, Table, share
from statetrack.text import visible

Row = dict[str, Any]

RUN_FOLDERS = (Path("runs"), Path("sweeps"), Path("suites"))
"""Where runs are looked for: what `train`, `sweep` and `reproduce` make."""

ALGEBRA = ("group", "monoid", "aperiodic", "commutative", "solvable", "complexity")
"""What `list tasks` can be asked about the algebra of a task, which takes longer to find."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One list: its description, its columns, how its rows are found, and the text of an empty one.

    `rows` takes the folders that hold runs; `note` gives a line about all of the rows. `columns`
    are shown, of them `numbers` on the right, `whole` never broken, and `left_out` first where a
    terminal is narrow; `keys` are those that rows have, where these are more. `more` gives
    properties of a row, of which `more_keys` are the names, that take longer to find: they are
    there for who asks for them.
    """

    about: str
    rows: Callable[[Sequence[Path]], Iterator[Row]]
    columns: Sequence[str]
    numbers: Sequence[str] = ()
    whole: Sequence[str] = ("name",)
    left_out: Sequence[str] = ()
    keys: Sequence[str] = ()
    empty: str = "none yet"
    note: Callable[[], str] = str
    more: Callable[[Row], Row] = field(default=lambda row: {})
    more_keys: Sequence[str] = ()

    def filtered(self, folders: Sequence[Path], written: Sequence[str]) -> list[Row]:
        """The rows that fulfil every condition, with the further properties that these ask for.

        Raises `SettingsError` for a condition that no row of this list can have.
        """
        conditions = conditions_of(written, (*(self.keys or self.columns), *self.more_keys))
        first = [each for each in conditions if each.asked not in self.more_keys]
        asked = [each.asked for each in conditions if each.asked in self.more_keys]
        found = [row for row in self.rows(folders) if all(each.holds(row) for each in first)]
        if asked:
            found = [row | _only(self.more(row), asked) for row in found]
        return [row for row in found if all(each.holds(row) for each in conditions)]

    def table(self, rows: Sequence[Row]) -> Table:
        """The rows that could be loaded, for readers."""
        known = [_shown(row) for row in rows if "error" not in row]
        return Table.of(self._columns(rows), known, left_out=self.left_out)

    def values(self, rows: Sequence[Row]) -> Table:
        """All that is known of every row, for programs."""
        keys = dict.fromkeys([*self.keys, *(key for row in rows for key in row)])
        return Table(
            [Column(key) for key in keys], [[row.get(key) for key in keys] for row in rows]
        )

    def _columns(self, rows: Sequence[Row]) -> list[Column]:
        """The columns of a table, and behind the first those that were asked for."""
        more = [name for name in self.more_keys if any(name in row for row in rows)]

        def kind(name: str) -> Kind:
            if name in self.numbers:
                return "number"
            return "whole" if name in self.whole else "text" if name != self.columns[0] else "name"

        names = (self.columns[0], *more, *self.columns[1:])
        return [Column(name, kind(name), write=_written) for name in names]


def _shown(row: Row) -> Row:
    """A row of runs as readers see it."""
    if row.get("needs_plugin"):
        row = row | {"state": f"{row['state']}, needs its plugin"}
    if row.get("started"):
        row = row | {"started": row["started"][:16].replace("T", " ")}
    return row


def _written(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return share(value, digits=4)
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return visible(str(value))


def _only(row: Row, names: Sequence[str]) -> Row:
    return {name: row.get(name) for name in names}


def _found_by(place: str, *given: Any) -> Iterator[Row]:
    """The rows that a function gives, `module:function` of this package, imported for them."""
    module, _, name = place.partition(":")
    found: Iterator[Row] = getattr(import_module(f"{__package__}.{module}"), name)(*given)
    return found


def _about_models() -> str:
    from statetrack.catalogue.models import about_kernels

    return (
        f"{about_kernels()} hf:TYPE is any causal language model of transformers, by the type of "
        "its configuration: hf:gpt2, hf:mamba2."
    )


def _algebra(row: Row) -> Row:
    """The names of the groups in a task's monoid, its size, and what holds of it."""
    from statetrack.predicting import algebra_of
    from statetrack.spec import load_task

    if "error" in row or row["states"] is None:
        return {}
    found = algebra_of(load_task(row["name"]).automaton)
    facts = found.monoid
    known: Row = {"complexity": found.complexity.name}
    if facts is None:
        return known
    return known | {
        "group": list(dict.fromkeys(each.name for each in facts.subgroups if each.order > 1)),
        "monoid": facts.size,
        "aperiodic": facts.aperiodic,
        "commutative": facts.commutative,
        "solvable": facts.solvable,
    }


def _protocols(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.training import PROTOCOLS

    yield from _of_registry(PROTOCOLS, lambda each: {})


def _roundings(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.rounding import ROUNDINGS

    yield from _of_registry(ROUNDINGS, lambda each: {"state": each.state, "kept": each.kept})


def _suites(_: Sequence[Path]) -> Iterator[Row]:
    from statetrack.sweep import SUITES

    yield from _of_registry(
        SUITES, lambda suite: {"models": len(suite.models), "tasks": len(suite.tasks)}
    )


def _of_registry(registry: Mapping[str, Any], counted: Callable[[Any], Row]) -> Iterator[Row]:
    """A row for each file of a registry, with its title and its reference."""
    for name in registry:
        try:
            found = registry[name]
        except StatetrackError as error:
            yield {"name": name, "error": str(error)}
            continue
        about = {"title": found.title, "reference": found.reference}
        yield {"name": name, **counted(found), **about}


LISTINGS: Mapping[str, Listing] = {
    "models": Listing(
        about=(
            "Architectures that `--model` takes: whether the recurrence is linear, what multiplies "
            "its state (with the eigenvalues), what computes it, and how large state and weights "
            "are at default settings."
        ),
        rows=lambda _: _found_by("models:list_models"),
        columns=(
            *("name", "family", "linear", "transition", "kernels", "state", "parameters"),
            *("summary", "source"),
        ),
        numbers=("state", "parameters"),
        whole=("name", "linear"),
        left_out=("source", "family", "summary", "kernels", "parameters", "state"),
        note=_about_models,
    ),
    "tasks": Listing(
        about=(
            "Tasks that `--task` takes; a file of your own works too, and a machine in DOT. "
            "Without a number of states the words come from a sampler."
        ),
        rows=lambda _: _found_by("tasks:rows_of_tasks"),
        columns=("name", "states", "symbols", "labels", "title", "reference"),
        numbers=("states", "symbols", "labels"),
        left_out=("reference", "labels", "symbols"),
        keys=("name", "states", "symbols", "labels", "title", "kind", "version", "reference"),
        more=_algebra,
        more_keys=ALGEBRA,
    ),
    "kinds": Listing(
        about="Kinds of automata and samplers that a task file can name.",
        rows=lambda _: _found_by("tasks:rows_of_kinds"),
        columns=("name", "arguments", "summary"),
        left_out=("arguments",),
    ),
    "protocols": Listing(
        about="Published training protocols that `--protocol` takes.",
        rows=_protocols,
        columns=("name", "title", "reference"),
        left_out=("reference",),
        empty="There are no protocols yet.",
    ),
    "roundings": Listing(
        about="Rounding models that `--rounding` takes: what kernels and servers do.",
        rows=_roundings,
        columns=("name", "state", "kept", "title", "reference"),
        left_out=("reference", "kept"),
        empty="There are no rounding models yet.",
    ),
    "suites": Listing(
        about="Tables of models x tasks that `statetrack reproduce` makes.",
        rows=_suites,
        columns=("name", "models", "tasks", "title", "reference"),
        numbers=("models", "tasks"),
        left_out=("reference", "models", "tasks"),
        empty="There are no suites yet.",
    ),
    "runs": Listing(
        about=(
            "Runs, also those inside sweeps and suites, oldest first: the accuracy of the selected "
            "replica at the longest length that was evaluated."
        ),
        rows=lambda folders: _found_by("runs:rows_of_runs", folders),
        columns=(
            *("run", "model", "task", "accuracy", "length", "state", "started", "validation"),
            *("step", "steps"),
        ),
        numbers=("accuracy", "length", "validation", "step", "steps"),
        whole=("run", "started", "model"),
        left_out=("steps", "step", "validation", "state", "started", "task", "model"),
        keys=(
            *("run", "model", "task", "accuracy", "length", "state", "needs_plugin", "step"),
            *("steps", "validation", "started"),
        ),
        empty="There is no run in {folder} yet: `statetrack train` makes one.",
    ),
}
"""The lists, in the order in which `statetrack list` explains them."""


_CONDITION = re.compile(r"([A-Za-z][A-Za-z_]*)(<=|>=|!=|=|<|>)(.*)", re.DOTALL)

_COMPARED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_YES_OR_NO: Mapping[str, bool] = {"yes": True, "true": True, "no": False, "false": False}

_NULL = ("null", "-")
"""What asks for a value that is not there: null with `--json`, and - in tables."""


@dataclass(frozen=True)
class Condition:
    """One condition: a word, with neither a key nor a sign, or a key, a sign and a value."""

    value: str
    key: str = ""
    sign: str = ""

    @property
    def asked(self) -> str:
        """The key or, of a word, the property that it may be."""
        return self.key or self.value

    def holds(self, row: Row) -> bool:
        """Whether a row fulfils it; what is not known fulfils none but `!=` and `=null`.

        Raises `SettingsError` where a text is compared as a number, and where a value is asked for
        that a number, or a property of yes or no, never has.
        """
        if not self.key:
            return self._is_in(row)
        found = row.get(self.key)
        if self.sign in ("=", "!="):
            return self._is(found) == (self.sign == "=")
        if found is None:
            return False
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self._meaningless(f"'{self.key}' is no number: ask with = or !=")
        return _COMPARED[self.sign](found, float(self.value))

    def _is(self, found: Any) -> bool:
        """Whether a value of a row is what is asked for."""
        value = self.value.lower()
        if isinstance(found, list):
            return value in ([str(each).lower() for each in found] or ["none"])
        if found is None:  # of the algebra it is not known
            return value in _NULL or (value == "none" and self.key not in ALGEBRA)
        if not isinstance(found, int | float):
            pattern = rf"(?<![\w-]){re.escape(value)}(?![\w-])"
            return re.search(pattern, str(found), re.IGNORECASE) is not None
        if value in ("none", *_NULL):
            return False
        if isinstance(found, bool):
            if value not in _YES_OR_NO:
                raise self._meaningless(f"'{self.key}' is yes or no")
            return _YES_OR_NO[value] == found
        if not _is_number(value):
            raise self._meaningless(f"'{self.key}' is a number")
        return found == float(value)

    def _meaningless(self, why: str) -> SettingsError:
        return SettingsError(f"--filter {self.key}{self.sign}{self.value}: {why}")

    def _is_in(self, row: Row) -> bool:
        """Whether the word is a property that holds or, where it is none, stands in a text."""
        if self.value in row and isinstance(row[self.value], bool | None):
            return row[self.value] is True
        return any(self.value.lower() in text.lower() for text in _texts(row.values()))


def conditions_of(written: Iterable[str], keys: Sequence[str]) -> list[Condition]:
    """The conditions in some texts; `keys` are those that rows can have.

    Raises `SettingsError` for a key that there is not, for a sign or a number that is none, and for
    a quotation mark without its end.
    """
    return [_condition(word, keys) for text in written for word in _words(text)]


def _words(text: str) -> list[str]:
    reader = shlex.shlex(text, posix=True)
    reader.whitespace_split, reader.commenters, reader.quotes, reader.escape = True, "", '"', ""
    try:
        return list(reader)
    except ValueError:
        raise SettingsError(f"--filter {text}: a quotation mark has no end") from None


def _condition(word: str, keys: Sequence[str]) -> Condition:
    match = _CONDITION.fullmatch(word)
    if match is None:
        return Condition(word)
    key, sign, value = match.groups()
    if key not in keys:
        raise SettingsError(
            f"--filter {word}: there is no '{key}' here.{nearest(key, keys)} "
            f"There are {', '.join(keys)}."
        )
    if not value:
        raise SettingsError(f"--filter {word}: a value is to stand behind the sign")
    if value[0] in "=<>":
        raise SettingsError(
            f"--filter {word}: no value begins with {value[0]}: signs are =, !=, <, <=, > and >="
        )
    if sign in _COMPARED and not _is_number(value):
        raise SettingsError(f"--filter {word}: '{value}' is no number")
    return Condition(value, key, sign)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts(value)
