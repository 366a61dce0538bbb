"""Write the sums of verdicts over all pages of reproductions into their index."""

from __future__ import annotations

from pathlib import Path

from statetrack.report.reproductions import with_totals

FOLDER = Path(__file__).parent / "reproductions"


def main() -> None:
    """Replace what stands between the marks of the index."""
    index = FOLDER / "index.md"
    pages = {
        page.name: page.read_text(encoding="utf-8")
        for page in sorted(FOLDER.glob("*.md"))
        if page != index
    }
    index.write_text(with_totals(index.read_text(encoding="utf-8"), pages), encoding="utf-8")


if __name__ == "__main__":
    main()
