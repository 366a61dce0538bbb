"""The documentation: MyST Markdown and the furo theme.

Lists made from the registries stand in the pages themselves, by `generated.py`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

import statetrack

project = "statetrack"
author = "The statetrack contributors"
copyright = "The statetrack contributors"
release = version = statetrack.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
default_role = "code"
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

html_theme = "furo"
html_title = f"statetrack {release}"
html_copy_source = False
html_static_path = ["theme"]
html_css_files = ["statetrack.css"]
smartquotes = False  # they make one dash of the two of an option


def with_alias_names(
    app: Sphinx, what: str, name: str, thing: object, options: object, *signature: str | None
) -> tuple[str | None, ...]:
    """A signature and what it returns, with the bare names of type aliases inside other types."""
    alias = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")
    return tuple(part and alias.sub(r"\1", part) for part in signature)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-signature", with_alias_names)
