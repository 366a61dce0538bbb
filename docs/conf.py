"""The documentation: MyST Markdown, the furo theme, and lists made from the registries."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import statetrack  # noqa: E402

project = "statetrack"
author = "The statetrack contributors"
copyright = "The statetrack contributors"
release = version = statetrack.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "generated_lists"]
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
