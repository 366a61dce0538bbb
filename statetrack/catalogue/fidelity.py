"""What a model's file says of its fidelity: with whose numbers it was compared, and what differs.

After `Source:` the docstring of a model's file has a paragraph

    Checked: CODE @ COMMIT, to 6e-6 in tests/references/test_x.py.

(or several such sentences, each beginning with `Checked:`; after the name of the test a remark may
follow a semicolon), and a paragraph `Departures:` that lists every known difference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from statetrack.errors import StatetrackError

_STATEMENT = re.compile(
    r"Checked: (?P<against>.+?),? to (?P<difference>0|\d(?:\.\d+)?e-\d+)"
    r" in (?P<test>tests/[\w/]+\.py)(?:; (?P<remark>.+))?\."
)
_FORM = "Checked: WHOSE CODE, to 6e-6 in tests/references/test_x.py."


@dataclass(frozen=True)
class Comparison:
    """One comparison of a model with other code, or with the same function written another way."""

    against: str
    difference: float
    """The largest difference that the test allows; 0: every number is the same."""
    test: str
    """The test's file, from the root of the repository."""
    remark: str | None
    """What else is said, such as that no code was released."""


def comparisons(description: str) -> tuple[Comparison, ...]:
    """What the paragraph `Checked:` of a file's docstring says; empty where there is none.

    Raises `StatetrackError` where the paragraph is not of the stated form.
    """
    found = []
    for sentence in re.split(r" (?=Checked: )", _paragraph(description, "Checked") or ""):
        if not sentence:
            continue
        match = _STATEMENT.fullmatch(sentence)
        if match is None:
            raise StatetrackError(f"'{sentence}' is not of the form '{_FORM}'")
        difference = float(match["difference"])
        found.append(Comparison(match["against"], difference, match["test"], match["remark"]))
    return tuple(found)


def departures(description: str) -> str | None:
    """The paragraph `Departures:` of a file's docstring, without that word; None: there is none."""
    said = _paragraph(description, "Departures")
    return None if said is None else said.removeprefix("Departures: ")


def _paragraph(description: str, word: str) -> str | None:
    """The paragraph that begins with a word and a colon, on one line."""
    found = re.search(rf"(?:^|\n\n)({word}: .+?)(?:\n\n|\s*\Z)", description, re.DOTALL)
    return " ".join(found[1].split()) if found else None
