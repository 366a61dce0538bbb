"""The pages as a site: what Sphinx makes of their Markdown."""

import re
import subprocess
import sys
import warnings
from html import unescape
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def lines_with_options() -> list[str]:
    """Lines of the pages, outside blocks of code: all headings, and one for every other option."""
    found, seen = [], set()
    for path in DOCS.glob("*.md"):
        text = path.read_text(encoding="utf-8")
        for line in re.sub(r"^(```+).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).split("\n"):
            named = set(OPTION.findall(line))
            if named - seen or (named and line.startswith("#")):
                found.append(line.lstrip("#-> "))
                seen |= named
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A page of lines that name options, built with the settings of the docs."""
    application = pytest.importorskip("sphinx.application")
    folder = tmp_path_factory.mktemp("built")
    lines = lines_with_options()
    rows = [line for line in lines if line.startswith("|")]
    others = [f"## {line}" for line in lines if not line.startswith("|")]
    formulas = ["A formula $h_t$.", "$$h_t = A(x_t)\\, h_{t-1}$$"]
    page = "\n\n".join(["# Options", *others, *rows, *formulas])
    (folder / "index.md").write_text(page, encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of myst_parser about Sphinx
        application.Sphinx(
            folder,
            DOCS,
            folder / "html",
            folder / "trees",
            "html",
            confoverrides={"html_theme": "basic"},
            status=None,
            warning=None,
        ).build()
    return page, (folder / "html" / "index.html").read_text(encoding="utf-8")


def test_options_keep_both_of_their_dashes(built):
    page, html = built
    text = unescape(re.sub(r"<[^>]*>", "", html.split('role="main"')[1].split("sphinxsidebar")[0]))
    assert len(OPTION.findall(page)) > 200
    assert sorted(OPTION.findall(text)) == sorted(OPTION.findall(page))
    assert "\N{EN DASH}" not in text


def test_formulas_need_no_script_and_no_network(built):
    _, html = built
    assert html.count("<math ") >= 2 and 'display="block"' in html
    assert not re.search(r"<script[^>]*https?:", html)


@pytest.mark.slow
def test_all_pages_are_built_without_a_warning(tmp_path):
    """As `make docs` does, references between names included."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", DOCS, tmp_path]
    built = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, timeout=600)
    assert built.returncode == 0, built.stderr
    text = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert 'id="statetrack.train"' in text and "\N{EN DASH}beta" not in text
