"""Print the BibTeX of what you used: a model, a task, a run, or statetrack itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli.show import load_named_task
from statetrack.errors import RunError
from statetrack.models import MODELS
from statetrack.plugins import load_plugin
from statetrack.references import bibtex, ids_in, own_bibtex, references
from statetrack.settings import read_yaml
from statetrack.spec import Task, load_task


def build(argv: list[str]) -> Callable[..., None]:
    """The command `statetrack cite`."""
    return cite


def cite(
    name: Annotated[
        str | None,
        typer.Argument(help="A model, a task or a run folder; none: statetrack itself."),
    ] = None,
) -> None:
    """Print the BibTeX of what you used.

    A run folder gives everything that went into the run: statetrack, its model and its task.
    What has no paper is said on standard error.
    """
    if name is None:
        print(own_bibtex())
    elif (Path(name) / "config.yaml").is_file():
        print(own_bibtex())
        _print_papers(name, *_sources_of_run(Path(name)))
    elif name in MODELS:
        _print_papers(name, model_sources(name))
    elif Path(name).is_dir() or (len(Path(name).parts) > 1 and not name.endswith(".yaml")):
        raise RunError(f"{name}: not a run folder (it has no config.yaml)")
    else:
        _print_papers(name, load_named_task(name).spec.reference)


def model_sources(name: str) -> str:
    """The text in which a model names its papers: its source, then its file's docstring."""
    model = MODELS[name]
    return f"{model.source}\n{sys.modules[model.__module__].__doc__ or ''}"


def _sources_of_run(folder: Path) -> list[str]:
    config: dict[str, Any] = read_yaml(folder / "config.yaml", RunError)
    if (folder / "plugin.py").is_file():
        load_plugin(folder / "plugin.py")
    task: Task = load_task(str(folder / "task.yaml"))
    return [model_sources(str(config.get("model"))), task.spec.reference]


def _print_papers(name: str, *sources: str) -> None:
    papers = ids_in(*sources)
    for paper in papers:
        if paper in references():
            print(bibtex(paper))
    unknown = [paper for paper in papers if paper not in references()]
    if unknown:
        typer.echo(f"{name}: no BibTeX entry is known for {', '.join(unknown)}", err=True)
    if not papers:
        said = "; ".join(source.splitlines()[0] for source in sources)
        typer.echo(f"{name}: names no paper; its reference is: {said}", err=True)
