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

extensions = ["myst_parser", "generated_lists"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = f"statetrack {release}"
html_copy_source = False
