"""The papers this project builds on: one file of them, found by the ids that texts name.

A model's source, a task's reference and any docstring name a paper by `arXiv:2505.21749`
(or `arXiv 2505.21749`) or `doi:10.1207/s15516709cog1402_1`; `references.yaml` holds the rest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

import statetrack
from statetrack.settings import Settings, build, option, read_yaml
from statetrack.text import latex

_IDS = re.compile(
    r"arXiv[:\s]\s*(?P<arxiv>\d{4}\.\d{4,5})|doi:(?P<doi>10\.\d+/(?:[^\s,;()\"'`]|\([^\s()]*\))+)",
    re.I,
)


class Reference(Settings):
    """One paper."""

    key: str = option(..., "The BibTeX key.")
    title: str = option(..., "The title.")
    authors: tuple[str, ...] = option(..., "Authors, each as Last, First.")
    year: int = option(..., "Year of publication.", min=1900)
    booktitle: str = option("", "The proceedings it appeared in.")
    journal: str = option("", "The journal it appeared in.")
    volume: str = option("", "The journal's volume.")
    number: str = option("", "The journal's number.")
    pages: str = option("", "The pages.")


@functools.cache
def references() -> Mapping[str, Reference]:
    """Every known paper by its id, `arXiv:...` or `doi:...`."""
    path = Path(__file__).parent / "references.yaml"
    return {
        paper: build(Reference, entry, f"{path}: '{paper}'")
        for paper, entry in read_yaml(path).items()
    }


def ids_in(*texts: str) -> list[str]:
    """The ids that texts name, each once, in their order."""
    found: dict[str, None] = {}
    for match in _IDS.finditer("\n".join(texts)):
        arxiv, doi = match["arxiv"], match["doi"]
        found[f"arXiv:{arxiv}" if arxiv else f"doi:{doi.rstrip('.')}"] = None
    return list(found)


def bibtex(paper: str) -> str:
    """The BibTeX entry of a known paper."""
    entry = references()[paper]
    scheme, _, identifier = paper.partition(":")
    where = {"booktitle": latex(entry.booktitle), "journal": latex(entry.journal)}
    kind = "inproceedings" if entry.booktitle else "article" if entry.journal else "misc"
    fields = {
        "title": f"{{{latex(entry.title)}}}",
        "author": " and ".join(map(latex, entry.authors)),
        "year": str(entry.year),
        **where,
        "volume": latex(entry.volume),
        "number": latex(entry.number),
        "pages": latex(entry.pages),
        **(
            {"eprint": identifier, "archivePrefix": "arXiv"}
            if scheme == "arXiv"
            else {"doi": identifier}
        ),
    }
    return _entry(kind, entry.key, fields)


def own_bibtex() -> str:
    """The BibTeX entry of this program, in the version that is running."""
    fields = {
        "title": "{statetrack: can this recurrent architecture track state, and how far?}",
        "author": "{The statetrack contributors}",
        "year": "2026",
        "version": statetrack.__version__,
    }
    return _entry("software", "statetrack", fields)


def _entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name:<13} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
