"""Show versions, machine and kernels, to paste into the report of a bug."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer

from statetrack import catalogue, report
from statetrack.cli import options
from statetrack.cli._terminal import print_json

PLACE = 13
"""Its place among the commands that `statetrack --help` lists."""


def command(
    as_json: options.PrintJson = False,
    paths: Annotated[
        bool,
        typer.Option("--paths", help="Also where files are; without it no path is shown."),
    ] = False,
) -> None:
    """Show versions, machine and kernels, to paste into the report of a bug.

    It works where torch cannot be imported, and says so. No path and no name of a user is shown
    unless `--paths` asks for paths.

    Examples:
        statetrack info
        statetrack info --json
        statetrack info --paths

    """
    found = catalogue.describe_installation(paths=paths)
    if as_json:
        print_json(found)
    else:
        report.console().print(report.facts(_rows(found)))


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "statetrack", found["statetrack"]
    yield "Python", found["python"]
    yield "torch", _torch(found["torch"])
    yield "packages", _listed(f"{name} {each}" for name, each in found["packages"].items() if each)
    missing = [name for name, each in found["packages"].items() if not each]
    if missing:
        yield "missing", _listed(missing)
    optional = {name: each["version"] for name, each in found["optional"].items()}
    yield "optional", _listed(f"{name} {each}" for name, each in optional.items() if each)
    yield "not installed", _listed(name for name, each in optional.items() if not each)
    yield "system", found["system"]
    yield from _of_cpu(found["cpu"], found["memory"])
    driver = found["driver"]
    for gpu in found["gpus"]:
        about = f"{gpu['memory'] / 2**30:.1f} GiB, compute capability {gpu['capability']}"
        yield "GPU", f"{gpu['name']}, {about}, driver {driver or 'unknown'}"
    if not found["gpus"]:
        yield "GPU", "none" if driver is None else f"none that torch can use; driver {driver}"
    for name, kernel in found["kernels"].items():
        told = "can be used" if kernel["available"] else f"cannot be used: {kernel['why']}"
        yield f"--kernel {name}", told
    given = {name: each for name, each in found["environment"].items() if each is not None}
    yield "environment", _listed(f"{name}={each}" for name, each in given.items())
    for group, names in found["added"].items():
        yield f"added {group.rpartition('.')[2]}", _listed(names)
    yield "shipped", _listed(f"{number} {what}" for what, number in found["shipped"].items())
    for name, path in found.get("paths", {}).items():
        yield f"path of {name}", path


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts) or "none"


def _torch(about: Mapping[str, Any]) -> str:
    if "error" in about:
        installed = about["version"]
        named = "not installed" if installed is None else f"{installed} cannot be imported"
        return f"{named} ({about['error']})"
    cuda = f"CUDA {about['cuda']}" if about["cuda"] else "without CUDA"
    return f"{about['version']}, {cuda}"


def _of_cpu(cpu: Mapping[str, Any], memory: int | None) -> Iterator[tuple[str, str]]:
    yield "CPU", cpu["name"]
    cores = f"{cpu['cores']}, of which this process may use {cpu['usable']}"
    if cpu["threads"] is not None:
        threads = "1 thread" if cpu["threads"] == 1 else f"{cpu['threads']} threads"
        cores += f"; torch takes {threads}, and {cpu['capability']}"
    yield "cores", cores
    if cpu["instructions"]:
        yield "instructions", " ".join(cpu["instructions"])
    if memory is not None:
        yield "memory", f"{memory / 2**30:.1f} GiB"
