"""What is wrong with a command line before its plugins are imported, which takes seconds of torch.

A name that is neither known nor registered by a plugin is found out by the plugin's text. Where
that does not tell what it registers, nothing is refused here: the command does it later.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from statetrack import models, runs, spec
from statetrack.cli import options
from statetrack.cli._usage import peek_all
from statetrack.errors import UnknownNameError, nearest
from statetrack.text import visible

REGISTER_NOTHING = frozenset({"statetrack", "torch", "numpy", *sys.stdlib_module_names})
"""Packages whose import registers nothing for a plugin."""


def refuse_early(command: str, argv: Sequence[str], plugins: Sequence[Path]) -> None:
    """Raise the error of a command line that names a model, a task or a place it cannot have.

    Raises `UnknownNameError` for a model that is neither known nor registered by the plugins, or a
    task, and `RunError` for an `--out` of `train` that is taken.
    """
    registered = [registered_names(path) for path in plugins]
    own = [name for names in registered for name in names or ()]
    if None not in registered:
        for option in ("--model", "--models"):
            for text in peek_all(argv, option):
                for name, *_ in options.models_in(text):
                    if name not in models.MODELS and name not in own:
                        raise UnknownNameError(_of_no_model(option, name, own, plugins))
    for text in peek_all(argv, "--task"):
        for name in spec.names_in(text, f"tasks '{text}'"):
            if re.fullmatch(r"[\w-]+", name) and name not in spec.TASKS:
                spec.load_task(name)
    if command == "train" and "--force" not in argv:
        for text in peek_all(argv, "--out"):
            runs.require_new(Path(text))


def _of_no_model(option: str, name: str, own: Sequence[str], plugins: Sequence[Path]) -> str:
    hint = nearest(name, [*own, *models.MODELS]) or " `statetrack list models` shows all."
    files = ", ".join(map(str, plugins))
    return (
        f"{option}: there is no model '{visible(name)}'.{hint} {files}: registers {', '.join(own)}."
    )


def registered_names(path: Path) -> set[str] | None:
    """The names that a plugin registers, by its text; None where its text does not tell."""
    try:
        nodes = [*ast.walk(ast.parse(path.read_bytes()))] if path.is_file() else None
    except (OSError, SyntaxError, ValueError):
        nodes = None
    if nodes is None:
        return None  # importing it says what is wrong
    if not {module for node in nodes for module in _imported(node)} <= REGISTER_NOTHING:
        return None
    names: set[str] = set()
    calls = 0
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(attr="register"), args=[ast.Constant(value=str(name))]
            ):
                names.add(name)
                calls += 1
    uses = sum(isinstance(node, ast.Attribute) and node.attr == "register" for node in nodes)
    return names if names and calls == uses else None


def _imported(node: ast.AST) -> Iterator[str]:
    """The packages that a statement imports; `.` for one relative to the file."""
    if isinstance(node, ast.Import):
        yield from (each.name.partition(".")[0] for each in node.names)
    elif isinstance(node, ast.ImportFrom):
        yield "." if node.level else str(node.module).partition(".")[0]
