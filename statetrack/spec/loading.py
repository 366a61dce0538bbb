r"""Where tasks come from: the files of the `tasks` folder, a user's own files, and names.

Regular expressions and permutations are written out in the names of their tasks:

    regex:(ab|ba)*                                   whether the word so far is one of these
    regex:(ab|ba)*;labels=next-symbols,words=members the same with arguments of the kind
    regex:(open close)*;alphabet=[open,close,look]   symbols longer than a letter
    permutations:(1 2 3),(1 2)                       the product so far, in the group they generate
    permutations:r=(1 2 3 4),s=(2 4);image_of=1      with names for the symbols, and an argument

A pattern ends at the first `;`; a `;` that is a symbol is written `\;`. Permutations are cycles
with commas or spaces between their points, which are counted from 1; or all images, as in `2 3 1`;
or the identity, `e`. Symbols without a name are called by their cycles: `(1,2,3)`. Left out,
`points` is the greatest that is named, and `alphabet` has the symbols that the pattern names.
Words of a language that can be left for good are `mixed` unless `words` says otherwise: uniform
ones would hardly ever belong to it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from statetrack.errors import (
    StatetrackError,
    TaskError,
    TaskWarning,
    UnknownNameError,
    nearest,
    nearest_or_known,
)
from statetrack.registry import Registry, files_in, tasks_folder
from statetrack.settings import build, read_yaml
from statetrack.sources import (
    MOST_POINTS,
    Source,
    acceptor,
    arguments_of,
    build_source,
    can_be_left,
    cycle_name,
    endings,
    format_of,
    is_trace_file,
    nearest_file,
    read_permutation,
    written_out,
)
from statetrack.spec import names
from statetrack.spec.files import (
    default_lengths,
    from_file,
    machine_task,
    traces_of,
)
from statetrack.spec.names import ALIASES, group_meant
from statetrack.spec.task import Task, TaskSpec, arguments_that_can_be_set
from statetrack.text import LONGEST_NAME, flaw_in, shortened, visible

EXAMPLES: Final = {"regex": "regex:(ab|ba)*", "permutations": "permutations:(1 2 3),(1 2)"}
"""The kinds whose tasks can be written out in a name, and such a name."""

MOST_KEPT: Final = 64
"""Tasks with arguments or written out that are kept, since suites ask for each many times."""

_TEXTS: Final = ("alphabet",)
"""Arguments whose values are texts as they stand: `alphabet=01` has two symbols."""


def load_task(text: str | Path | Task) -> Task:
    """The task of a name (`statetrack.spec.names` says how names are written), or the given one.

    Warns with `TaskWarning` for a name by which a task was called earlier (`spec.aliases`).
    Raises `UnknownNameError` for a name that no file of the `tasks` folder has, and `TaskError`
    for a name that cannot be read, a wrong argument, and a file that holds no task.
    """
    if isinstance(text, Task):
        return text
    if not isinstance(text, str | Path):
        raise TaskError(
            "a task is given by its name, by the path of its file or as a statetrack.Task (given: "
            f"a {type(text).__name__})"
        )
    text = text.as_posix() if isinstance(text, Path) else text.strip()
    names.check_length(text)
    if names.is_product(text):
        return _product_of([load_task(part) for part in names.factors_of(text)])
    if names.own_kind(text):
        return _written_out(text)
    if text in EXAMPLES:
        raise TaskError(f"task '{text}': write it out in the name, as in {EXAMPLES[text]}")
    _check_named(text)
    name, values = names.base_and_arguments(text)
    if format_of(name) or is_trace_file(name):
        return _of_a_file(name, values)
    if name not in TASKS and (hint := group_meant(name, TASKS)):
        raise UnknownNameError(f"there is no task '{name}'.{hint}")
    if name in ALIASES:
        warnings.warn(ALIASES[name].note, TaskWarning, stacklevel=1)
        name = ALIASES[name].name
    if name not in TASKS and not names.is_path(name) and re.search(r"\w\.\w{1,8}$", name):
        raise UnknownNameError(_of_no_task(Path(name)))
    if not names.is_path(name):
        return _varied(name, text) if values else TASKS[name]
    task = _task_file(Path(name))
    return _with_arguments(task, name, values) if values else task


def _check_named(text: str) -> None:
    """Raises where a plain name with arguments is that of no task, or its arguments have no `=`."""
    name, colon, given = (part.strip() for part in text.partition(":"))
    if not colon or not re.fullmatch(r"[\w-]+", name):
        return
    if name not in TASKS:
        hint = group_meant(name, TASKS) or nearest(name, EXAMPLES) or nearest(name, TASKS)
        raise UnknownNameError(
            f"there is no task '{name}'.{hint} `statetrack list tasks` shows all {len(TASKS)}."
        )
    known = list(arguments_that_can_be_set(TASKS[name]))
    if known and re.fullmatch(r"[\w-]+", given):
        raise TaskError(f"task '{text}': '{given}' is not key=value: write {name}:{known[0]}=...")


def _of_no_task(file: Path) -> str:
    """What is said of a name that ends as a file's does, and not as that of a task."""
    if not file.is_file():
        return f"{file}: there is no such file{nearest_file(file)}"
    return f"{file}: a task's file ends in .yaml, and a machine's in {', '.join(endings())}"


def task_names() -> tuple[str, ...]:
    """The names of the shipped tasks, whether or not their files can be read."""
    return tuple(TASKS)


def list_tasks() -> Iterator[tuple[str, Task | StatetrackError]]:
    """Every shipped task, or the reason why its file cannot be read as one."""
    for name in TASKS:
        try:
            yield name, TASKS[name]
        except StatetrackError as error:
            yield name, error


TASKS: Registry[Task] = Registry(
    "task",
    lambda: files_in(tasks_folder(), _shipped_task),
    listing="statetrack list tasks",
    aliases=ALIASES,
)


def _shipped_task(path: Path) -> Task:
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", path.stem):
        raise TaskError(
            f"{path}: a task's file is named in lower case with hyphens, such as `s5-swaps.yaml`"
        )
    task = _task_file(path)
    return Task(path.stem, task.spec, task.source)


def _task_file(path: Path) -> Task:
    if hint := nearest_file(path):
        raise TaskError(f"{path}: cannot be read: No such file or directory{hint}")
    content, where = read_yaml(path, TaskError), str(path)
    if "from" in content:
        if "automaton" in content:
            raise TaskError(f"{where}: 'from' and 'automaton' both say what the automaton is")
        content["automaton"] = {"from": content.pop("from")}
    described = content.get("automaton")
    if isinstance(described, dict):
        content["automaton"] = from_file(described, path.parent, f"{where}: automaton")
        if "from" in described:
            source = build_source(content["automaton"], f"{where}: automaton")
            train_length, test_lengths = default_lengths(source)
            content.setdefault("train_length", train_length)
            content.setdefault("test_lengths", test_lengths)
    spec = build(TaskSpec, content, where, TaskError)
    return Task.from_spec(spec.name or path.as_posix(), spec, where)


def _of_a_file(name: str, values: Mapping[str, Any]) -> Task:
    """The task of following a machine that a file describes, or of predicting recorded traces."""
    path = Path(name)
    full_name = path.as_posix()
    if values:
        full_name = f"{full_name}:{names.key_values(values)}"
    where = f"task '{full_name}'"
    source: Source
    if format_of(name):
        source, about = machine_task(path, values, where)
        description, of = {"kind": "transitions", **written_out(source)}, "of"
    else:
        description, source, about = traces_of(path, values, Path(), where)
        of = "to the traces of"
    train_length, test_lengths = default_lengths(source)
    content = {
        "title": f"The answers {of} {visible(path.stem)}",
        "version": 1,
        "reference": visible(path.name),
        "automaton": description,
        "description": visible(about),
        "train_length": train_length,
        "test_lengths": test_lengths,
        "name": full_name,
    }
    return Task(full_name, build(TaskSpec, content, where, TaskError), source)


@lru_cache(maxsize=MOST_KEPT)
def _varied(name: str, text: str) -> Task:
    """The shipped task of a name, with the arguments that a text has."""
    _, values = names.base_and_arguments(text)
    return _with_arguments(TASKS[name], name, values)


def _with_arguments(task: Task, base: str, values: Mapping[str, Any]) -> Task:
    """The task named `base` with arguments replaced; its examples no longer apply."""
    current = arguments_that_can_be_set(task)
    for key in values:
        if key not in current:
            hint = nearest_or_known(key, current) if current else " It takes none."
            raise TaskError(f"task '{base}' has no argument '{key}'.{hint}")
    changed = {key: values[key] for key in current if key in values and values[key] != current[key]}
    if not changed:
        return task
    name = f"{base}:{names.key_values(changed)}"
    spec = task.spec.model_copy(
        update={"automaton": task.spec.automaton | changed, "examples": {}, "name": ""}
    )
    return Task.from_spec(name, spec, f"task '{name}'")


def _product_of(tasks: Sequence[Task]) -> Task:
    """Tasks side by side; trained and tested on the lengths of all of them."""
    name = names.product_name(task.name for task in tasks)
    specs = [task.spec for task in tasks]
    last = any(spec.supervision == "last" for spec in specs)
    spec = TaskSpec(
        title="Side by side: " + "; ".join(spec.title for spec in specs),
        version=1 + sum(spec.version - 1 for spec in specs),
        reference="; ".join(dict.fromkeys(spec.reference for spec in specs)),
        automaton={"kind": "direct-product", "factors": [spec.automaton for spec in specs]},
        train_length=(
            max(spec.train_length[0] for spec in specs),
            max(spec.train_length[1] for spec in specs),
        ),
        test_lengths=tuple(sorted({length for spec in specs for length in spec.test_lengths})),
        supervision="last" if last else "every",
    )
    return Task.from_spec(name, spec, f"task '{name}'")


@lru_cache(maxsize=MOST_KEPT)
def _written_out(text: str) -> Task:
    """The task that a name writes out.

    Raises `TaskError` for a name that does not, and for arguments that the kind does not take.
    """
    kind, _, rest = text.partition(":")
    where = f"task '{shortened(text)}'"
    body, values = _parts(kind, rest, where)
    if not body:
        raise TaskError(f"{where}: nothing follows '{kind}:'; write it as in {EXAMPLES[kind]}")
    known = [argument.name for argument in arguments_of(kind)]
    free = [name for name in known if name not in ("pattern", "generators")]
    for key in values:
        if key not in free:
            raise TaskError(f"{where}: there is no argument '{key}'.{nearest_or_known(key, free)}")
    read = {"regex": _regex, "permutations": _permutations}[kind]
    written, description, title = read(body, values, where)
    name = f"{kind}:{written}"
    if flaw := flaw_in(name, most=LONGEST_NAME):
        raise TaskError(f"{where}: the task's name {flaw}; write the task into a file")
    source = build_source({"kind": kind, **description}, where)
    train_length, test_lengths = default_lengths(source)
    content = {
        "title": title,
        "version": 1,
        "reference": "own",
        "automaton": {"kind": kind, **description},
        "train_length": train_length,
        "test_lengths": test_lengths,
    }
    return Task(name, build(TaskSpec, content, where, TaskError), source)


def _with_values(written: str, values: Mapping[str, Any]) -> str:
    """What is written out, with its arguments in one order."""
    said = {key: values[key] for key in sorted(values)}
    return f"{written};{names.key_values(said, _TEXTS)}" if said else written


def _parts(kind: str, rest: str, where: str) -> tuple[str, dict[str, Any]]:
    r"""What is written out, and the arguments after the first `;` that has no backslash before."""
    found = re.fullmatch(r"(?P<body>(?:[^;\\]|\\.|\\$)*)(?P<sign>;(?P<arguments>.*))?", rest, re.S)
    assert found is not None, rest
    if not found["sign"]:
        return found["body"].strip(), {}
    try:
        return found["body"].strip(), names.arguments(found["arguments"], where, _TEXTS)
    except TaskError as wrong:
        hint = r"; a ';' that is a symbol is written \;" if kind == "regex" else ""
        raise TaskError(f"{wrong}{hint}") from None


ASKED = {
    "next-symbols": "Which symbols can come next in",
    "states": "Which state is reached in the smallest automaton of",
    "states-before": "Which state is reached, before the last symbol, in the smallest automaton of",
}
"""How the title of a task of the kind `regex` begins, by its labels other than membership."""


def _regex(body: str, values: Mapping[str, Any], where: str) -> tuple[str, dict[str, Any], str]:
    """A pattern with its arguments as a name has them, the description, and a title."""
    alphabet = values.get("alphabet")
    if not isinstance(alphabet, str | list | None):
        raise TaskError(f"{where}: alphabet: '{alphabet}' is neither letters nor a list of names")
    try:
        found = acceptor(body, None if alphabet is None else tuple(alphabet))
    except TaskError as wrong:
        raise TaskError(f"{where}: {wrong}") from None
    own = "mixed" if can_be_left(found.delta, found.accepting) else "uniform"
    usual = {"labels": "membership", "words": own, "alphabet": None}
    said = {key: value for key, value in values.items() if value != usual[key]}
    asked = ASKED.get(str(values.get("labels")), "Whether the word so far matches")
    title = f"{asked} {shortened(body)}"
    return _with_values(body, said), {"pattern": body, "words": own, **values}, title


def _permutations(
    body: str, values: Mapping[str, Any], where: str
) -> tuple[str, dict[str, Any], str]:
    """Permutations with their arguments as a name has them, the description, and a title."""
    given = [_named(part, where) for part in names.split_at_commas(body, where)]
    points = values.get("points", max([2, *(_points(text) for _, text in given)]))
    if type(points) is not int or not 2 <= points <= MOST_POINTS:
        raise TaskError(f"{where}: points: {points} is not a number from 2 to {MOST_POINTS}")
    generators: dict[str, str] = {}
    for name, text in given:
        try:
            cycles = cycle_name(read_permutation(text, points))
        except TaskError as wrong:
            raise TaskError(f"{where}: {wrong}") from None
        if (symbol := name or cycles) in generators:
            raise TaskError(
                f"{where}: '{symbol}' stands for two permutations: name them, as in r=..."
            )
        generators[symbol] = cycles
    each = [
        cycles if symbol == cycles else f"{symbol}={cycles}"
        for symbol, cycles in generators.items()
    ]
    said = {key: value for key, value in values.items() if key != "points" and value is not None}
    if points != max([2, *map(_points, generators.values())]):
        said["points"] = points
    description = {**values, "points": points, "generators": generators}
    title = f"The product of the permutations {shortened(', '.join(each))}"
    return _with_values(",".join(each), said), description, title


def _points(text: str) -> int:
    """The greatest point that a permutation names, or how many images it gives."""
    numbers = [int(number) for number in re.findall("[0-9]{1,9}", text)]
    return max([*numbers, len(numbers) if "(" not in text else 0], default=0)


def _named(part: str, where: str) -> tuple[str, str]:
    """The name of a permutation, empty where it has none, and the permutation."""
    found = re.fullmatch(r"\s*(?:(?P<name>[^\s=()\[\],;]+)\s*=)?\s*(?P<text>.*?)\s*", part, re.S)
    assert found is not None, part
    text = found["text"]
    if re.fullmatch(r"\[[^\[\]]*\]", text):
        text = text[1:-1].strip()
    if not text:
        raise TaskError(f"{where}: a permutation is missing between commas")
    return found["name"] or "", text
