"""The generated parts of the pages are those that the registries give now."""

import importlib
import inspect
from pathlib import Path

import pytest

from statetrack.algebra import Recurrence, recurrences
from statetrack.errors import StatetrackError

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def generated(monkeypatch):
    """The module that makes the parts."""
    monkeypatch.syspath_prepend(DOCS)
    return importlib.import_module("generated")


def test_the_generated_parts_of_the_pages_are_true(generated):
    stale = generated.renew(DOCS, write=False)
    assert not stale, f"{', '.join(stale)}: run `python docs/generated.py` (or `make generated`)"


def test_every_list_stands_in_a_page(generated):
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("*.md"))
    assert set(generated.LISTS) == {found["name"] for found in generated.PART.finditer(pages)}


def test_a_stale_part_is_named_and_rewritten_and_the_rest_is_left_alone(generated, tmp_path):
    page = "# Kinds\n\n<!-- generated: kinds -->\nold\n<!-- end of generated -->\n\nthe rest\n"
    path = tmp_path / "page.md"
    path.write_text(page, encoding="utf-8")
    assert generated.renew(tmp_path, write=False) == ["page.md: kinds"]
    assert path.read_text(encoding="utf-8") == page
    assert generated.renew(tmp_path, write=True) == ["page.md: kinds"]
    written = path.read_text(encoding="utf-8")
    assert written.startswith("# Kinds\n\n<!-- generated: kinds -->\n\n| name |")
    assert written.endswith("|\n\n<!-- end of generated -->\n\nthe rest\n")
    assert generated.renew(tmp_path, write=False) == []


def test_a_part_with_an_unknown_name_is_refused(generated):
    with pytest.raises(StatetrackError, match="no list 'modles'"):
        generated.renewed("<!-- generated: modles -->\n<!-- end of generated -->\n")


def test_every_class_of_recurrence_has_an_equation_a_rule_and_a_model_or_says_that_it_has_none():
    page = (DOCS / "recurrences.md").read_text(encoding="utf-8")
    parts = {part.splitlines()[0]: part for part in page.split("\n## ")[1:]}
    for name in recurrences.__all__:
        kind = getattr(recurrences, name)
        if not issubclass(kind, Recurrence) or inspect.isabstract(kind):
            continue
        assert kind.equation and kind.rule and "\n" not in kind.equation + kind.rule, name
        assert kind.equation in parts[name] and "- Models: " in parts[name]
        assert ("none of this package" in parts[name]) == (name == "UndecidedLinear"), name
