"""An atlas of machines: its tables for a terminal, a page and other programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from statetrack.markup import markdown, markdown_block, markdown_code, markdown_table
from statetrack.report.drawing import LOOKS, SHOWN
from statetrack.report.table import Column, Table, values_table
from statetrack.report.tables import framed_table
from statetrack.sweep import AnswerRow, GroupRow, MachineRow, MergingRow

UNKNOWN = "?"
"""Stands for what was not worked out."""

LONGEST_WORD = 40
"""The most symbols of a witness word that a page shows; a longer one is shown by its length."""

ATLAS_LEGEND = (
    "states: those that a model has to tell apart; group: the largest that words make, none where "
    "the machine is aperiodic (star-free); class: how hard the labels are; horizon: the length "
    "after which 99 % of random words have merged all states, ~ where it is sampled"
)

LEFT_OUT_FIRST = ("s", UNKNOWN, "cannot", "given", "groups", "out", "in", "family")
"""The columns that a narrow terminal goes without, in this order."""


def atlas_table(title: str, rows: Sequence[MachineRow]) -> Table:
    """One line for each machine; those without a row have their error."""
    columns = {
        "machine": [row.name for row in rows],
        "given": [_number(row.given_states) for row in rows],
        "states": [_number(row.states) for row in rows],
        "in": [_number(row.inputs) for row in rows],
        "out": [_number(row.outputs) for row in rows],
        "group": [_largest(row) for row in rows],
        "groups": [_count(row) for row in rows],
        "class": [row.complexity or UNKNOWN for row in rows],
        "horizon": [horizon_text(row.merging) for row in rows],
        "cannot": [_models(row, "no") for row in rows],
        UNKNOWN: [_models(row, "unknown") for row in rows],
        "s": [f"{row.seconds:.1f}" for row in rows],
    }
    families = [row.family for row in rows]
    ends = [one != other for one, other in zip(families, [*families[1:], ""], strict=True)]
    return framed_table(
        title,
        columns,
        left_out=LEFT_OUT_FIRST,
        names=["machine"],
        texts=["group", "class", "cannot", UNKNOWN],
        ends=ends,
    )


def machine_facts(row: MachineRow) -> list[tuple[str, str]]:
    """What a table of several machines has no room for, as lines of names and values."""
    lines = [("groups", groups_text(row))]
    if row.witness is not None:
        words = row.witness.words
        said = "; ".join(" ".join(word) for word in words)
        kind = "words of a group" if len(words) > 1 else "word that cycles"
        lines.append((kind, said))
        lines.append(("on the states", " ".join(row.witness.states)))
        lines.append(("reached by", " ".join(row.witness.access) or "no symbol: it starts there"))
    for answer, named in SHOWN.items():
        if models := _models(row, answer):
            lines.append((named, models))
    return lines


FAMILY_HEADINGS = (
    *("family", "models", "aperiodic", "with groups", "not solvable", "not known", "largest group"),
)


def family_lines(rows: Iterable[MachineRow]) -> list[list[str]]:
    """For each family how many of its machines are aperiodic or have groups, and the largest."""
    lines = []
    for family, of in groupby(sorted(rows, key=lambda row: row.family), lambda row: row.family):
        members = list(of)
        found = [row.largest for row in members if row.largest is not None]
        largest = max(found, key=lambda group: group.order, default=None)
        lines.append(
            [
                family,
                str(len(members)),
                str(sum(row.aperiodic is True for row in members)),
                str(sum(row.aperiodic is False for row in members)),
                str(sum(row.solvable is False for row in members)),
                str(sum(row.aperiodic is None for row in members)),
                "-" if largest is None else group_text(largest),
            ]
        )
    return lines


def family_table(rows: Iterable[MachineRow]) -> Table:
    """The families, for a terminal."""
    lines = family_lines(rows)
    columns = {
        heading: [line[place] for line in lines] for place, heading in enumerate(FAMILY_HEADINGS)
    }
    left_out = ["not known", "largest group", "models"]
    return framed_table(
        "families", columns, left_out=left_out, names=["family"], texts=["largest group"]
    )


MODEL_HEADINGS = ("model", *SHOWN.values(), "as set")


def model_lines(rows: Sequence[MachineRow]) -> list[list[str]]:
    """For each model on how many machines it can track, cannot, and what is not known.

    Last, on how many it can with the settings that it has.
    """
    models = dict.fromkeys(model for row in rows for model in row.answers)
    lines = []
    for model in models:
        answers = [row.answers[model] for row in rows if model in row.answers]
        said = [str(sum(one.can == answer for one in answers)) for answer in SHOWN]
        lines.append([model, *said, str(sum(one.as_set == "yes" for one in answers))])
    return lines


def models_table(rows: Sequence[MachineRow]) -> Table:
    """The models, for a terminal."""
    looks = {SHOWN[answer]: look for answer, look in LOOKS.items()}
    columns = [
        Column(each, "name" if each == "model" else "number", style=looks.get(each, ""))
        for each in MODEL_HEADINGS
    ]
    title = "on how many machines a class of models"
    return Table(columns, model_lines(rows), title=title, look="framed")


def group_text(group: GroupRow) -> str:
    """A group by its name, and its order where the name does not have it: `S6 (720)`."""
    return group.name if str(group.order) in group.name else f"{group.name} ({group.order})"


def groups_text(row: MachineRow) -> str:
    """All groups of a machine, the largest first: `Z2 (3x)`."""
    if row.groups is None:
        return UNKNOWN
    named = [
        group_text(group) + (f" ({group.count}x)" if group.count > 1 else "")
        for group in row.groups
    ]
    return ", ".join(named) or "none"


def horizon_text(merging: MergingRow | None) -> str:
    """The merging horizon: `34`, `~34` where it is sampled, `never`."""
    if merging is None:
        return UNKNOWN
    if merging.never:
        return "never"
    if merging.nearly_all is None:
        return UNKNOWN
    return f"{'' if merging.exact else '~'}{merging.nearly_all:,}"


def answer_text(answer: AnswerRow | None) -> str:
    """`can`, `can, hidden 4`, `cannot` or `?`."""
    if answer is None:
        return UNKNOWN
    size = "" if answer.size is None else f", {answer.size_of} {answer.size}"
    return SHOWN[answer.can] + size


def _largest(row: MachineRow) -> str:
    if row.error or row.groups is None:
        return UNKNOWN
    if row.largest is None:
        return "none"
    named = len(row.largest.name) <= 12
    return row.largest.name if named else f"order {row.largest.order}"


def _count(row: MachineRow) -> str:
    return UNKNOWN if row.groups is None else str(sum(group.count for group in row.groups))


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _models(row: MachineRow, can: str) -> str:
    return ", ".join(model for model, answer in row.answers.items() if answer.can == can)


# --- pages, and files for other programs ---


def atlas_markdown(title: str, rows: Sequence[MachineRow], command: str) -> str:
    """A page of all that is known of the machines."""
    known = [row for row in rows if not row.error]
    parts = [
        f"# {markdown(title)}\n",
        f"Made by `{command}`.\n" if "`" not in command else "",
        f"{markdown(ATLAS_LEGEND)}.\n",
        "## Families\n",
        markdown_table(
            FAMILY_HEADINGS, [list(map(markdown, line)) for line in family_lines(known)]
        ),
        "## Models\n",
        "On how many machines some size of a class of models can track, and with the settings that "
        "it has:\n",
        _table(MODEL_HEADINGS, model_lines(known)),
        "## Machines\n",
        _machines_markdown(known),
        "## What models can, machine by machine\n",
        _answers_markdown(known),
        "## Witness words\n",
        "What a *cannot* rests on, replayed on the machine: a word whose powers go round through "
        "so many states and never settle, or words that generate a group of permutations of "
        "them.\n",
        _witnesses_markdown(known),
        _failures_markdown(rows),
    ]
    return "\n".join(filter(None, parts))


def _table(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return markdown_table(headings, [list(map(markdown, line)) for line in lines])


def _machines_markdown(rows: Sequence[MachineRow]) -> str:
    head = ["machine", "given states", "states", "inputs", "outputs", "groups", "solvable", "class"]
    head += ["half merged", "0.9 merged", "horizon"]
    yes = {True: "yes", False: "no", None: UNKNOWN}
    lines = []
    for row in rows:
        merging = row.merging
        half, most = (
            (_number(merging.half), _number(merging.most)) if merging else (UNKNOWN, UNKNOWN)
        )
        cells = [
            *(_number(row.given_states), _number(row.states)),
            *(_number(row.inputs), _number(row.outputs)),
            *(groups_text(row), yes[row.solvable], row.complexity or UNKNOWN),
            *(half, most, horizon_text(merging)),
        ]
        lines.append([markdown_code(row.name), *map(markdown, cells)])
    return markdown_table(head, lines)


def _answers_markdown(rows: Sequence[MachineRow]) -> str:
    models = list(dict.fromkeys(model for row in rows for model in row.answers))
    lines = [
        [
            markdown_code(row.name),
            *(markdown(answer_text(row.answers.get(model))) for model in models),
        ]
        for row in rows
    ]
    return markdown_table(["machine", *map(markdown, models)], lines)


def _witnesses_markdown(rows: Sequence[MachineRow]) -> str:
    lines = [
        [
            markdown_code(row.name),
            markdown("" if row.largest is None else group_text(row.largest)),
            "; ".join(_word(word) for word in row.witness.words),
            str(len(row.witness.states)),
        ]
        for row in rows
        if row.witness is not None
    ]
    return markdown_table(["machine", "largest group", "words", "states"], lines) if lines else ""


def _word(word: Sequence[str]) -> str:
    if len(word) > LONGEST_WORD:
        return f"{len(word)} symbols"
    return markdown_code(" ".join(word))


def _failures_markdown(rows: Sequence[MachineRow]) -> str:
    lines = [f"{row.name}: {row.error or row.stopped}" for row in rows if row.error or row.stopped]
    return "## Not read, or not finished\n\n" + markdown_block("\n".join(lines)) if lines else ""


def atlas_values(rows: Sequence[MachineRow]) -> Table:
    """One line for each machine, with a column for each model; unknown values are empty."""
    models = list(dict.fromkeys(model for row in rows for model in row.answers))
    return values_table([_flat(row, models) for row in rows])


def _flat(row: MachineRow, models: Sequence[str]) -> Mapping[str, Any]:
    merging, largest = row.merging, row.largest
    return {
        "machine": row.name,
        "family": row.family,
        "given_states": row.given_states,
        "states": row.states,
        "inputs": row.inputs,
        "outputs": row.outputs,
        "aperiodic": row.aperiodic,
        "solvable": row.solvable,
        "largest_group": largest and largest.name,
        "largest_order": 1 if row.groups == () else largest and largest.order,
        "groups": None if row.groups is None else groups_text(row),
        "complexity": row.complexity,
        "witness": row.witness and "; ".join(" ".join(word) for word in row.witness.words),
        "half_merged": merging and merging.half,
        "most_merged": merging and merging.most,
        "merging_horizon": merging and merging.nearly_all,
        "merging_exact": merging and merging.exact,
        "never_merges": merging and merging.never,
        **{model: row.answers[model].can if model in row.answers else None for model in models},
        "seconds": row.seconds,
        "error": row.error,
        "stopped": row.stopped,
    }
