"""The commands: modules of this folder, and those that installed packages add.

A command's name, summary and place are read from its source: none is imported.
"""

from __future__ import annotations

import ast
import importlib.util
import math
from dataclasses import dataclass
from pathlib import Path

from statetrack.errors import StatetrackError
from statetrack.registry import described


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
                "name a module with a docstring and `build`, under a name that no command has: "
                "update that package, or uninstall it"
            )
        found[entry.name] = command
    return {each.name: each for each in sorted(found.values(), key=lambda one: one.place)}


def find_command(name: str) -> Command | None:
    """The command of a name; None where there is none."""
    if name.isidentifier() and (Path(__file__).parent / f"{name}.py").is_file():
        return _read_command(name, f"{__package__}.{name}")
    return find_commands().get(name)


def _read_command(name: str, module: str) -> Command | None:
    """The command of a module, from its source.

    None where there is no such module, or it has no docstring or defines no `build`.
    """
    try:
        spec = importlib.util.find_spec(module)
    except ImportError:
        return None
    if spec is None or spec.origin is None:
        return None
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree)
    builds = (isinstance(node, ast.FunctionDef) and node.name == "build" for node in tree.body)
    if not docstring or not any(builds):
        return None
    places = (
        float(ast.literal_eval(node.value))
        for node in tree.body
        if isinstance(node, ast.Assign)
        if [target.id for target in node.targets if isinstance(target, ast.Name)] == ["PLACE"]
    )
    return Command(name, module, docstring.splitlines()[0], next(places, math.inf))
