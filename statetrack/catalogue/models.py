"""Models as rows: family, recurrence, kernels and size; and what a file says of its fidelity.

After `Source:` the docstring of a model's file has a paragraph

    Checked: CODE @ COMMIT, to 6e-6 in tests/references/test_x.py.

(or several such sentences, each beginning with `Checked:`; after the name of the test a remark may
follow a semicolon), and a paragraph `Departures:` that lists every known difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from statetrack.algebra import LinearRecurrence
from statetrack.catalogue.options import describe, flag
from statetrack.errors import StatetrackError
from statetrack.models import MODEL_FACTS, MODELS, recurrence_of, variants
from statetrack.registry import missing_kernels
from statetrack.settings import Settings

Row = dict[str, Any]

SIZES = Path(__file__).with_name("default_sizes.json")
"""The sizes of the models of statetrack at their default settings."""

SIZED_FOR = "modular-addition"
"""The task for whose symbols and labels the sizes of models are given."""


def list_models() -> Iterator[Row]:
    """A row for every registered model, with the error of a model that cannot be loaded."""
    for name in MODELS:
        try:
            yield _row(name)
        except (ImportError, StatetrackError) as error:
            yield {"name": name, "error": str(error)}


def describe_model(name: str) -> Row:
    """All facts about a model, as plain values: the output of `show --json`."""
    row, facts = _row(name), MODEL_FACTS[name]
    return {
        "name": name,
        "type": "model",
        **{
            key: row[key]
            for key in ("summary", "family", "linear", "transition", "kernels", "source")
        },
        "description": facts.description,
        "checked": [asdict(each) for each in comparisons(facts.description)],
        "departures": departures(facts.description),
        "settings": describe(facts.settings_class),
        "training_defaults": dict(facts.training_defaults),
        "parameters": row["parameters"],
        "parameters_on": SIZED_FOR,
        "state": row["state"],
    }


def model_sources(name: str) -> str:
    """The text in which a model names its papers: its source, then its file's docstring."""
    facts = MODEL_FACTS[name]
    return f"{facts.source or ''}\n{facts.description}"


def is_linear(kind: type[Settings]) -> bool | None:
    """Whether the state is an affine function of the previous one, at default settings.

    None where there is no recurrent state, or the settings name no class of recurrence.
    """
    recurrence = recurrence_of(kind())
    if recurrence is None or not recurrence.has_state:
        return None
    return isinstance(recurrence, LinearRecurrence)


def transition_of(kind: type[Settings]) -> str | None:
    """The transition operator and the range of its eigenvalues; None if not linear."""
    recurrence = recurrence_of(kind())
    if not isinstance(recurrence, LinearRecurrence):
        return None
    bounds = "" if recurrence.eigenvalues == "any" else f", {recurrence.eigenvalues}"
    return f"{recurrence.structure}{bounds}" + "".join(
        f"; {flag(other.setting)} {other.value}: {other.recurrence.eigenvalues}"
        for other in variants(kind)
    )


def about_kernels() -> str:
    """Whether flash-linear-attention is installed; on which devices it runs, only torch knows."""
    problem = missing_kernels()
    if problem is None:
        return "fla is installed: `statetrack info` says whether it can be used here."
    return f"fla cannot be used here: {problem}."


def _row(name: str) -> Row:
    sizes, facts = default_sizes().get(name) or sizes_of(name), MODEL_FACTS[name]
    return {
        "name": name,
        "family": facts.family or None,
        "linear": is_linear(facts.settings_class),
        "transition": transition_of(facts.settings_class),
        "kernels": _kernels_of(facts.settings_class),
        **sizes,
        "summary": facts.summary,
        "source": facts.source or None,
    }


@cache
def default_sizes() -> dict[str, dict[str, int | None]]:
    """The sizes of the models of statetrack, as they were when the file was written.

    Building every model takes torch, and seconds. A test builds them, and compares.
    """
    found: dict[str, dict[str, int | None]] = json.loads(SIZES.read_text(encoding="utf-8"))
    return found


def sizes_of(name: str) -> dict[str, int | None]:
    """The numbers in the state and the weights of a model with its default settings.

    It has the symbols and labels of `SIZED_FOR`, and is built for that.
    """
    from statetrack.models import num_parameters, state_size
    from statetrack.spec import load_task

    source = load_task(SIZED_FOR).source
    model = MODELS[name]
    built = model(
        model.settings_class(), num_symbols=source.num_symbols, num_labels=source.num_labels
    )
    return {"state": state_size(built), "parameters": num_parameters(built)}


def _kernels_of(kind: type[Settings]) -> list[str]:
    """The kernels that can compute the recurrence of such settings, by their `--kernel` names."""
    field = kind.model_fields.get("kernel")
    return ["torch"] if field is None else [*get_args(field.annotation)[1:]]


_STATEMENT = re.compile(
    r"Checked: (?P<against>.+?),? to (?P<difference>0|\d(?:\.\d+)?e-\d+)"
    r" in (?P<test>tests/[\w/]+\.py)(?:; (?P<remark>.+))?\."
)
_FORM = "Checked: WHOSE CODE, to 6e-6 in tests/references/test_x.py."


@dataclass(frozen=True)
class Fidelity:
    """One comparison of a model with other code, or with the same function written another way."""

    against: str
    difference: float
    """The largest difference that the test allows; 0: every number is the same."""
    test: str
    """The test's file, from the root of the repository."""
    remark: str | None
    """What else is said, such as that no code was released."""


def comparisons(description: str) -> tuple[Fidelity, ...]:
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
        found.append(Fidelity(match["against"], difference, match["test"], match["remark"]))
    return tuple(found)


def departures(description: str) -> str | None:
    """The paragraph `Departures:` of a file's docstring, without that word; None: there is none."""
    said = _paragraph(description, "Departures")
    return None if said is None else said.removeprefix("Departures: ")


def _paragraph(description: str, word: str) -> str | None:
    """The paragraph that begins with a word and a colon, on one line."""
    found = re.search(rf"(?:^|\n\n)({word}: .+?)(?:\n\n|\s*\Z)", description, re.DOTALL)
    return " ".join(found[1].split()) if found else None
