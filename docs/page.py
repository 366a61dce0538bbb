"""The picture of a report's page, `page.png`, of a suite that was run; nothing is trained.

    statetrack reproduce hierarchy
    python docs/page.py hierarchy

Both from the same folder. It needs Chromium, and playwright, which the extra `dev` installs.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from statetrack.report import make_report, page

PICTURE = Path(__file__).parent / "page.png"

WIDTH, HEIGHT = 1240, 819
"""The size of the picture, in pixels."""


def draw(place: str, file: Path) -> None:
    """Open the page of a suite, or of a folder of runs, and keep what is seen from its table on."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        written = Path(folder) / "page.html"
        written.write_text(page(make_report(place)), encoding="utf-8")
        browser = started.chromium.launch(executable_path=shutil.which("chromium"))
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        opened.goto(written.as_uri())
        opened.evaluate("document.querySelector('#matrix').scrollIntoView()")
        opened.screenshot(path=str(file))
        browser.close()


if __name__ == "__main__":
    draw(sys.argv[1], PICTURE)
