"""Print the BibTeX of what you used: models, tasks, runs, or statetrack itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack.cli import options
from statetrack.errors import RunError
from statetrack.models import MODELS
from statetrack.references import bibtex, ids_in, own_bibtex, references
from statetrack.text import visible

PLACE = 11
"""Its place among the commands that `statetrack --help` lists."""


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME ...]",
            help="Models, tasks, run folders, or folders of runs; none: statetrack itself.",
        ),
    ] = None,
    as_json: options.PrintJson = False,
) -> None:
    """Print the BibTeX of what you used, each entry once.

    For a run folder these are statetrack, the run's model and its task; for a folder of runs, such
    as a sweep's, those of every run in it. Names without a paper are listed on standard error.

    Examples:
        statetrack cite
        statetrack cite mamba2 deltanet s5
        statetrack cite runs/mine

    """
    sources = {name: _sources_of(name) for name in names or ()}
    own = not names or any(Path(name).is_dir() and name not in MODELS for name in names)
    papers = ids_in(*(each for found in sources.values() for each in found))
    unknown = [paper for paper in papers if paper not in references()]
    if as_json:
        from statetrack.cli._terminal import print_json

        said = [each for found in sources.values() for each in found]
        print_json(_as_json(" ".join(sources) or None, own, papers, unknown, said))
    else:
        if own:
            print(own_bibtex())
        for paper in papers:
            if paper in references():
                print(bibtex(paper))
    if unknown:
        _say(f"{' '.join(sources)}: no BibTeX entry is known for {', '.join(unknown)}")
    for name, found in sources.items():
        if not ids_in(*found):
            named = "; ".join(source.splitlines()[0] for source in found if source.strip())
            known = f"; its reference is: {named}" if named else ""
            _say(f"{name}: names no paper{known}")


def _sources_of(name: str) -> list[str]:
    """The texts in which what a name stands for names its papers."""
    from statetrack.runs import find_run_folders, is_run

    path = Path(name)
    if is_run(path):
        return _sources_of_run(path)
    if name in MODELS:
        return [_sources_of_model(name)]
    if path.is_dir():
        found = [each for run in find_run_folders([path]) for each in _sources_of_run(run)]
        return list(dict.fromkeys(found))
    if len(path.parts) > 1 and not name.endswith(".yaml"):
        raise RunError(f"{name}: there is no such folder of runs")
    return [_sources_of_task(name)]


def _as_json(
    name: str | None, own: bool, papers: list[str], unknown: list[str], sources: list[str]
) -> dict[str, Any]:
    """What `--json` prints: the entries, papers without one, and what was cited, as it says."""
    entries: list[dict[str, Any]] = []
    if own:
        entries.append({"id": None, "title": "statetrack", "year": None, "bibtex": own_bibtex()})
    for paper in papers:
        if paper in references():
            known = references()[paper]
            entry = {"id": paper, "title": known.title, "year": known.year}
            entries.append(entry | {"bibtex": bibtex(paper)})
    said = [source.splitlines()[0] for source in sources if source.strip()]
    return {"name": name, "entries": entries, "unknown": unknown, "references": said}


# What the functions below need is imported when they run: `cite --help` is quick without.


def _sources_of_model(name: str) -> str:
    from statetrack.catalogue import model_sources

    return model_sources(name)


def _sources_of_task(name: str) -> str:
    from statetrack.catalogue import load_named_task

    return load_named_task(name).spec.reference


def _sources_of_run(folder: Path) -> list[str]:
    """The sources of a run's model and task, as far as they are known without its plugin."""
    from statetrack.runs import RunFolder, code_of, files, needs_plugin

    run = RunFolder.open(folder)
    run.weights_hash()  # which raises where they are of other settings or another task
    model, reference = (
        str(run.read(files.CONFIG).get("model")),
        str(run.read(files.TASK).get("reference", "")),
    )
    if model in MODELS or not needs_plugin(run):
        return [_sources_of_model(model), reference]
    _say(
        f"{folder}: needs its plugin {code_of(run)}, to name the papers of {model}: "
        "read it, then give it with --plugin"
    )
    return [reference]


def _say(line: str) -> None:
    typer.echo(visible(line), err=True)
