"""The documentation: MyST Markdown and the furo theme.

Lists made from the registries stand in the pages themselves, by `generated.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TypeGuard

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parents[1]))

import statetrack
from statetrack.catalogue import as_text
from statetrack.settings import Settings

project = "statetrack"
author = "The statetrack contributors"
copyright = "The statetrack contributors"
release = version = statetrack.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
default_role = "py:obj"  # a link where a page has the name, and code elsewhere
nitpicky = True
autodoc_default_options = {"exclude-members": "model_config"}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name.split(".")[-1]
    for name in (
        "ArrayLike",
        "npt.ArrayLike",
        "Booleans",
        "Floats",
        "Integers",
        "State",
        "Unsigned",
    )
}
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries = False
nitpick_ignore_regex = [
    (r"py:obj", r"[\s\S]*"),
    # Of other packages, whose pages are not linked.
    (r"py:.*", r"(torch|numpy|collections|contextlib|pathlib|typing|npt|np|nn)\..*|Path|Tensor"),
    # Aliases of types, and type variables.
    (r"py:.*", r"(.*\.)?(ArrayLike|Booleans|Floats|Found|Integers|RandomBits|State|T|Unsigned)"),
    (r"py:.*", r"NDArray|TypeAliasForwardRef|tuple\[float"),
    (r"py:.*", r"(statetrack\.evidence\.records\.)?(Drawing|Facts|Figure|Grid|Measure|Named)"),
    # Arguments and attributes that are the program's own business.
    (r"py:.*", r"statetrack\.(data\.splits\.(DrawingProgress|Words)|plugins\.PluginFiles)"),
    (r"py:.*", r"(statetrack\.evidence\.budget\.)?SearchBudget"),
    (r"py:.*", r"statetrack\.runs\.folder\.(Readable|Writable|W)"),
    (r"py:.*", r"statetrack\.(runs\.facts\.Algebras|algebra\.counters\.Counters)"),
    (r"py:.*", r"statetrack\.constructions\.registry\.MakeT"),
    (r"py:.*", r"(statetrack\.runs\.rows\.)?Identity|(statetrack\.training\.words\.)?TaskWords"),
]

html_theme = "furo"
html_title = f"statetrack {release}"
html_copy_source = False
html_static_path = ["theme"]
html_css_files = ["statetrack.css"]
html_js_files = ["copy.js"]
html_math_renderer = "mathml"
smartquotes = False  # they make one dash of the two of an option


def with_short_types(
    app: Sphinx, what: str, name: str, thing: object, options: object, *signature: str | None
) -> tuple[str | None, ...]:
    """A signature and what it returns, with aliases by their names; of settings, none."""
    if is_settings(thing):
        return "(**settings)", None
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return tuple(part and alias.sub(r"\1", part) for part in signature)


def with_blocks(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """Indented paragraphs, which are equations and examples, keep their lines."""
    text = "\n".join(lines)
    lines[:] = re.sub(r"(?<!::)\n\n(?=    \S)", "\n\n::\n\n", text).split("\n")


def with_settings(
    app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]
) -> None:
    """The fields of settings, which are no attributes with docstrings, below their class."""
    if is_settings(thing):
        for field, facts in thing.model_fields.items():
            default = "" if facts.is_required() else f" ({as_text(facts.get_default()) or 'empty'})"
            lines += ["", f"- `{field}`{default}: {facts.description}"]


def is_settings(thing: object) -> TypeGuard[type[Settings]]:
    """Whether it is a class of settings that has some."""
    return isinstance(thing, type) and issubclass(thing, Settings) and bool(thing.model_fields)


def write_mathml(writer: HTML5Translator, node: nodes.Element) -> None:
    """A formula that a browser draws by itself: no script is loaded from the network."""
    block = isinstance(node, nodes.math_block)
    writer.body.append(tex2mathml(node.astext(), as_block=block))
    raise nodes.SkipNode


CONTENTS = re.compile(
    r"^<!-- contents(?:: (?P<caption>[^\n]+))? -->\n(?P<text>.*?)^<!-- end of contents -->$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\(([^):#\s]+)\.md(?:#[^)]*)?\)")


def with_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """The sidebar: the pages to which the links between two comments lead, in their order."""

    def contents(found: re.Match[str]) -> str:
        caption = f":caption: {found['caption']}\n" if found["caption"] else ""
        pages = "\n".join(dict.fromkeys(LINK.findall(found["text"])))
        tree = f"```{{toctree}}\n:hidden:\n:maxdepth: 1\n{caption}\n{pages}\n```"
        return f"{found['text']}\n{tree}\n"

    source[0] = CONTENTS.sub(contents, source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_mathml, None), (write_mathml, None))
    app.connect("source-read", with_contents)
    app.connect("autodoc-process-signature", with_short_types)
    app.connect("autodoc-process-docstring", with_blocks)
    app.connect("autodoc-process-docstring", with_settings)
