"""The shape of the package: imports point one way, and heavy things stay where they belong."""

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import statetrack
from statetrack.runs.files import FILES as RUN_FILES

pytestmark = pytest.mark.quick

PACKAGE = Path(statetrack.__file__).parent
ROOT = Path(__file__).parents[1]
ORDER = (
    "text figures usual_names errors yaml_text registry plugins settings rounding references "
    "scoring sources algebra spec data audit ops models predicting constructions training "
    "evaluation evidence runs exporting sweep atlas report pictures catalogue cli"
).split()
"""A module imports only from its own station and from those before it."""

FREE_OF_TORCH = {
    "text",
    "usual_names",
    "scoring",
    "sources",
    "algebra",
    "spec",
    "data",
    "audit",
    "predicting",
    "report",
    "pictures",
}
DRAWING = {"cli", "report"}
FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE.parent)


def module_of(path: Path) -> str:
    """`statetrack.cli.app` of its file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in FILES}


def station_of(module: str) -> str:
    """`cli` of `statetrack.cli.app`; empty for the package itself."""
    return ".".join(module.split(".")[1:2])


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(text_of(path))


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def face(package: str) -> dict[str, str]:
    """The public names of a package, each with the module that has it (`__init__.pyi`).

    A package without such a file imports them all at once, so it has them itself (`__init__.py`).
    """
    stub = PACKAGE / package / "__init__.pyi"
    path = stub if stub.exists() else stub.with_suffix(".py")
    if not path.exists():
        return {}
    named: dict[str, str] = {}
    for node in parsed(path).body:
        if isinstance(node, ast.ImportFrom):
            inner = node.module if node.level else None
            home = ".".join(["statetrack", package, *filter(None, [inner])])
            for alias in node.names:
                inside = f"{home}.{alias.name}"
                named[alias.name] = inside if inside in MODULES else home
    return named


def imported_by(node: ast.ImportFrom) -> Iterator[str]:
    """The modules that `from MODULE import NAME, ...` needs, looked up in the faces of packages."""
    assert node.module is not None and node.level == 0, "imports are absolute"
    package = station_of(node.module) if node.module.count(".") == 1 else ""
    for alias in node.names:
        inside = f"{node.module}.{alias.name}"
        yield face(package).get(alias.name) or (inside if inside in MODULES else node.module)


def statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All statements in a body, and in the bodies of these: where imports can stand."""
    for node in body:
        yield node
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from statements(getattr(node, part, []))


@cache
def imports(path: Path, *, when_imported: bool = False) -> frozenset[str]:
    """The modules that a file imports; with `when_imported`, only those of its top level."""
    tree = parsed(path)
    found: set[str] = set()
    for node in tree.body if when_imported else statements(tree.body):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(imported_by(node))
    return frozenset(found)


def test_a_module_imports_only_from_stations_before_its_own():
    for module, path in MODULES.items():
        if station_of(module) in ORDER:
            allowed = {"", *ORDER[: ORDER.index(station_of(module)) + 1]}
            for imported in imports(path):
                if imported.split(".")[0] == "statetrack":
                    assert station_of(imported) in allowed, f"{module} imports {imported}"


def test_every_file_belongs_to_a_station():
    assert {station_of(module) for module in MODULES} <= {"", "__main__", *ORDER}


def test_a_package_is_entered_by_its_public_names_alone():
    for module, path in MODULES.items():
        for node in statements(parsed(path).body):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("statetrack."):
                package = station_of(str(node.module))
                if package in (station_of(module), "cli") or not (PACKAGE / package).is_dir():
                    continue
                place = f"{module}, line {node.lineno}"
                assert node.module == f"statetrack.{package}", f"{place} reaches into {package}"
                assert {alias.name for alias in node.names} <= {*face(package)}, place


def circles() -> list[list[str]]:
    """Modules that import one another in a circle, for types alone or inside functions too."""
    left = {module: imports(path) & MODULES.keys() - {module} for module, path in MODULES.items()}
    while free := {module for module, needed in left.items() if not needed & left.keys()}:
        left = {module: needed for module, needed in left.items() if module not in free}
    while used := {each for needed in left.values() for each in needed} & left.keys():
        if used == left.keys():
            break
        left = {module: needed for module, needed in left.items() if module in used}
    return [sorted(left)] if left else []


def test_no_modules_import_one_another_in_a_circle():
    assert circles() == []


def test_a_class_name_is_borne_by_one_class():
    bearers: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef):
                bearers.setdefault(node.name, []).append(module)
    assert {name: where for name, where in bearers.items() if len(where) > 1} == {}


def brings_in_torch(module: str, seen: set[str]) -> bool:
    """Whether importing a module imports torch, directly or through others of the package."""
    seen.add(module)
    imported = imports(MODULES[module], when_imported=True)
    if any(name.split(".")[0] == "torch" for name in imported):
        return True
    inner = {*imported, *(name.rpartition(".")[0] for name in imported)}
    return any(
        brings_in_torch(name, seen) for name in inner if name in MODULES and name not in seen
    )


def test_torch_stays_out_of_everything_that_is_not_learned():
    free = {module for module in MODULES if station_of(module) in FREE_OF_TORCH}
    seen: set[str] = set()  # what one of them imports without torch needs no second look
    for module in sorted(free):
        assert module in seen or not brings_in_torch(module, seen), module


def test_the_search_for_torch_finds_it_where_it_is():
    assert brings_in_torch("statetrack.runs.run", set())
    assert brings_in_torch("statetrack.evaluation", set())


def test_typer_and_rich_stay_in_the_parts_that_draw():
    for module, path in MODULES.items():
        outside = {name.split(".")[0] for name in imports(path)}
        if station_of(module) not in DRAWING:
            assert not outside & {"typer", "rich", "tqdm"}, module
        assert "click" not in outside, module


def test_only_the_command_line_prints():
    for module, path in MODULES.items():
        if station_of(module) == "cli" or "print" not in text_of(path):
            continue
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        names = {node.func.id for node in calls if isinstance(node.func, ast.Name)}
        assert "print" not in names, module


def test_the_package_itself_names_what_is_public_and_imports_it_when_asked():
    assert {*dir(statetrack), "__version__"} == set(statetrack.__all__)
    for name in statetrack.__all__:
        assert getattr(statetrack, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = statetrack.nonsense


FILES_OF_A_RUN = set(RUN_FILES)


def texts(tree: ast.AST) -> Iterator[str]:
    """The string constants of a file, but for its docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                yield node.value


def test_only_the_run_folder_names_the_files_of_a_run():
    """Help texts may speak of them; no path is made of such a name."""
    for module, path in MODULES.items():
        named = any(name in text_of(path) for name in FILES_OF_A_RUN)
        if named and not module.startswith("statetrack.runs."):
            assert not FILES_OF_A_RUN & set(texts(parsed(path))), module


def test_quick_tests_stand_in_the_files_that_make_quick_reads():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^QUICK := (.*)$", makefile, re.MULTILINE)
    marked = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("tests/**/*.py"))
        if "mark.quick" in path.read_text(encoding="utf-8")
    ]
    assert sorted(listed.split()) == marked


def test_what_is_pinned_can_be_installed_with_the_oldest_python_that_is_asked_for():
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest = f"{asked.removeprefix('>=')}.0"
    pinned = (ROOT / "constraints.txt").read_text()
    names = re.findall(r"^([\w.-]+)==", pinned, re.MULTILINE)
    known = {each.metadata["Name"].lower().replace("_", "-"): each for each in distributions()}
    refused = {}
    for name in names:
        found = known.get(name.lower().replace("_", "-"))
        wanted = found and found.metadata.get("Requires-Python")
        if wanted and not SpecifierSet(wanted).contains(oldest):
            refused[name] = wanted
    assert not refused
