"""Task files and task names: the shipped files changed, hostile YAML, and names of the grammar."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import yaml

from statetrack.algebra import analyse, merging_of
from statetrack.registry import tasks_folder
from statetrack.spec import Task, arguments_that_can_be_set, folder_name, load_task, task_names
from tests.fuzz import mutations
from tests.fuzz.harness import Case, require, require_printable

YAML_PIECES = (
    "!!python/object/apply:os.system ['touch EXECUTED']",
    "!!python/name:os.system",
    "!!timestamp 2020-99-99",
    "2020-99-99",
    "2020-01-01 25:61:61",
    "2020-01-01",
    "!!binary '@@@@'",
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!omap [a: 1, b: 2]",
    "!!pairs [a: 1]",
    "!!int 'x'",
    "!!float 'x'",
    "!!bool maybe",
    "!!null x",
    "!!str 5",
    "!unknown x",
    "!<tag:yaml.org,2002:int> 0o8",
    "&a [*a, *a]",
    "*missing",
    "&a x",
    "{<<: {a: 1}}",
    "{<<: 5}",
    "{<<: [1, {a: 2}]}",
    "{? [a, b] : c}",
    "{? {a: b} : c}",
    "0o17",
    "0x_",
    "0b",
    "1__0",
    "+.inf",
    "-.INF",
    ".nan",
    "190:20:30",
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e999999999",
    "1." + "0" * 5000,
    "[" * 3000,
    "[" * 3000 + "]" * 3000,
    "{a: " * 2000 + "1" + "}" * 2000,
    "- " * 2000,
    '"\\ud800"',
    '"\\x1b[31m"',
    '"\\0"',
    "|\n  a\n b",
    ">-\n\n\n",
    "%YAML 9.9\n---\n",
    "---\n...\n---\n",
    "\t",
    "@",
    "`",
    "\ufeff",
    "\x00",
    "\x85",
    "\u2028",
    "? a",
    ": b",
    "'",
    '"',
    "a: b: c",
)

SMALL = 100
"""Transitions of a machine whose algebra is worked out."""

MANY_ALIASES = "\n".join(
    [
        "a0: &a0 [x, x, x, x, x, x, x, x, x]",
        *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
    ]
)
"""Nine lists, of which each holds the one before nine times: 9**9 texts if they are copied."""


class TaskFiles:
    """A task file or a task's name, loaded; what loads is described, drawn from and read back."""

    name = "task-files"

    def prepare(self, folder: Path) -> None:
        """Read the shipped files."""
        paths = sorted(tasks_folder().glob("*.yaml"))
        self.texts = [path.read_text(encoding="utf-8") for path in paths]
        self.contents = [yaml.safe_load(text) for text in self.texts]
        self.arguments = {
            name: list(arguments_that_can_be_set(load_task(name))) for name in task_names()
        }

    def attempt(self, case: Case) -> None:
        """Load one file or one name."""
        random = case.random
        if random.random() < 0.3:
            name = self._name(random, depth=0)
        else:
            name = "task.yaml"
            Path(name).write_bytes(self._file(random))
            if random.random() < 0.1:
                name += ":" + self._arguments(random, [])
        task = case.call(f"load_task({name!r})", lambda: load_task(name))
        if task is not None:
            use(case, task)

    def _file(self, random: Random) -> bytes:
        """The content of a task file."""
        draw = random.random()
        if draw < 0.15:
            content = _machine(random)
            if random.random() < 0.3:
                content = mutations.change_values(random, content)
            return mutations.as_json(content).encode("utf-8", "surrogatepass")
        if draw < 0.55:
            content = mutations.change_values(random, deepcopy(random.choice(self.contents)))
            return mutations.as_json(content).encode("utf-8", "surrogatepass")
        text = random.choice(self.texts)
        if draw < 0.7:
            text = mutations.change_text(random, text)
        elif draw < 0.9:
            text = _with_piece(random, text)
        elif draw < 0.92:
            text = f"{text}\n{MANY_ALIASES}\n" if random.random() < 0.5 else MANY_ALIASES
        elif draw < 0.94:
            return text.encode(random.choice(["utf-16", "utf-32", "utf-8-sig", "utf-16-be"]))
        else:
            return mutations.change_bytes(random, text.encode())
        return text.encode("utf-8", "surrogatepass")

    def _name(self, random: Random, depth: int) -> str:
        """A task's name: most often one that could be meant."""
        draw = random.random()
        known = list(self.arguments)
        if draw < 0.2 and depth < 3:
            parts = [self._name(random, depth + 1) for _ in range(random.choice([1, 2, 2, 2, 3]))]
            made = f"product({','.join(parts)})"
        elif draw < 0.8:
            base = random.choice(known)
            made = f"{base}:{self._arguments(random, self.arguments[base])}"
        elif draw < 0.9:
            made = random.choice(known)
        else:
            made = mutations.text(random)
        return mutations.change_text(random, made) if random.random() < 0.15 else made

    def _arguments(self, random: Random, known: list[str]) -> str:
        names = [random.choice(known) if known else mutations.text(random) for _ in range(3)]
        chosen = dict.fromkeys(names[: random.choice([1, 1, 1, 2])])
        return ",".join(f"{name}={self._argument(random)}" for name in chosen)

    def _argument(self, random: Random) -> str:
        draw = random.random()
        if draw < 0.45:
            return str(random.choice([2, 3, 3, 4, 5, 7]))
        if draw < 0.6:
            return str(random.choice([0, 1, 12, 60, 100, 1000, 10**5, 10**9, 2**70]))
        if draw < 0.7:
            return random.choice(YAML_PIECES).replace("\n", " ")
        if draw < 0.8:
            return "[1,2,0]"
        return mutations.as_json(mutations.value(random))[:5000]


def _machine(random: Random) -> dict[str, Any]:
    """A few states: labels of some are asked for, and some symbols are drawn nowhere or seldom."""
    most, symbols = "pqrst"[: random.randint(1, 5)], "xyz"[: random.randint(1, 3)]
    moves, states = {}, ["p"]
    for one in states:
        moves[one] = {symbol: random.choice(most) for symbol in symbols}
        states += sorted(set(moves[one].values()) - set(states))
    machine: dict[str, Any] = {
        "kind": "transitions",
        "start": "p",
        "states": moves,
        "outputs": {one: random.randint(0, 2) for one in states},
    }
    if random.random() < 0.7:
        machine["scored"] = [one for one in states if random.random() < 0.5]
    if random.random() < 0.5:
        weights = {one: {each: random.choice([0, 1, 1, 2.5]) for each in symbols} for one in states}
        machine["weights"] = {one: row for one, row in weights.items() if any(row.values())}
    return {"title": "Any", "version": 1, "reference": "own example", "automaton": machine}


def _with_piece(random: Random, text: str) -> str:
    """The text with hostile YAML in the place of a value, of a line, or in front."""
    piece = random.choice(YAML_PIECES)
    lines = text.split("\n")
    place = random.randrange(len(lines))
    draw = random.random()
    if draw < 0.6 and ":" in lines[place]:
        lines[place] = f"{lines[place].partition(':')[0]}: {piece}"
    elif draw < 0.8:
        lines.insert(place, piece)
    else:
        return f"{piece}\n{text}"
    return "\n".join(lines)


def use(case: Case, task: Task) -> None:
    """What every task that was loaded can do: words, a fingerprint, its own document."""
    shown = [task.name, task.spec.title, task.spec.reference, *task.source.symbols]
    for text in (*shown, *task.source.labels):
        require_printable(text, "a name or title of a task that was loaded")
    require("/" not in folder_name(task.name), "a folder's name has a slash")
    if task.has_automaton and task.automaton.delta.size <= SMALL:
        case.call("analyse", lambda: analyse(task.automaton).to_json())
        case.call("merging_of", lambda: merging_of(task.automaton, 50))
    words = case.call("task.sample(2)", lambda: task.sample(2))
    if words is not None:
        shortest = int(words.lengths.min())
        require(shortest >= 1, "a word has no symbols")
        symbols = words.symbols[0][: min(int(words.lengths[0]), 50)].tolist()
        case.call("task.format_labels", lambda: task.format_labels(symbols))
    document = case.call("task.document()", task.document)
    if document is not None:
        Path("again.yaml").write_text(document, encoding="utf-8")
        again = case.call("load_task('again.yaml')", lambda: load_task("again.yaml"))
        require(again is not None, "a task's document cannot be loaded")
        assert again is not None
        same: Any = again.source.fingerprint() == task.source.fingerprint()
        require(same, "a task's document is another task")
