"""Models trained on machines: predicted beside measured, for a terminal, a page and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from statetrack.markup import markdown, markdown_code, markdown_table
from statetrack.report.atlas import groups_text, horizon_text
from statetrack.report.drawing import SHOWN
from statetrack.report.table import Table, interval, share, values_table
from statetrack.report.tables import framed_table
from statetrack.runs import Judged
from statetrack.sweep import KINDS, RIGHT, MachineRow, TrainedRow

VERDICTS: dict[Judged, str] = {
    "agree": "agrees",
    "predicted no, tracks": "REFUTED",
    "predicted yes, not reached": "not reached",
    "nothing predicted": "-",
    "diverged": "diverged",
}
"""How the outcome of a run is shown."""

AT_SOME_SIZE = "can?"
"""What is predicted where some size is enough, and whether that of the model is, is not known."""

TRAINING_LEGEND = (
    f"{AT_SOME_SIZE}: the class of models can, and whether this size is enough is not known; "
    "accuracy of the replica that validation selected, after the last symbol of words of each kind "
    "and length; group: words that stay inside a group, so that nothing is ever forgotten; "
    "REFUTED: a replica of a model that cannot has an accuracy surely above "
    f"{RIGHT} on them at the longest length; not reached: the model can, and accuracy at the "
    f"longest length is below {RIGHT} on some words (for a run trained on words inside a group: on "
    "these, for they may lack symbols), which is no contradiction: training may fail"
)


def training_tables(machines: Sequence[MachineRow], rows: Sequence[TrainedRow]) -> Iterator[Table]:
    """A table for each machine."""
    for machine in machines:
        mine = [row for row in rows if row.machine == machine.name]
        if mine:
            yield _table(machine, mine)


def _table(machine: MachineRow, rows: Sequence[TrainedRow]) -> Table:
    measured = _measured(rows)
    columns = {
        "model": [row.model for row in rows],
        "predicted": [_predicted(row) for row in rows],
        "words": [row.trained_on for row in rows],
    }
    for words, length in measured:
        scores = [row.at(words, length) for row in rows]
        columns[f"{words}\n{length}"] = [
            share(None if one is None else one.accuracy) for one in scores
        ]
        columns[f"{words} {length}\n95 %"] = [
            "-" if one is None else interval(one.low, one.high) for one in scores
        ]
    columns["seeds"] = [str(row.seeds) for row in rows]
    columns["verdict"] = [VERDICTS[row.outcome] for row in rows]
    floors = _floors(rows)
    for heading, cells in columns.items():
        cells.append({"model": "floor", **floors}.get(heading, ""))
    longest = max((length for _, length in measured), default=0)
    return framed_table(
        f"{machine.name}: {_facts(machine)}",
        columns,
        left_out=[
            *(f"{words} {length}\n95 %" for words, length in measured if length < longest),
            *(f"{words} {length}\n95 %" for words, length in measured if length == longest),
            "seeds",
            *(f"{words}\n{length}" for words, length in measured if length < longest),
        ],
        names=["model"],
        ends=[False] * (len(rows) - 1) + [True, False],
    )


def _measured(rows: Sequence[TrainedRow]) -> list[tuple[str, int]]:
    """The kinds of words and the lengths that some run was tested on."""
    known = {(score.words, score.length) for row in rows for score in row.scores}
    return sorted(known, key=lambda one: (KINDS.index(one[0]), one[1]))


def _floors(rows: Sequence[TrainedRow]) -> dict[str, str]:
    """The accuracy of the best constant answer, by the heading of a column."""
    return {
        f"{score.words}\n{score.length}": share(score.floor) for row in rows for score in row.scores
    }


def _predicted(row: TrainedRow) -> str:
    """`can`, `cannot` or `?`, with the settings that the model has; `can?` at some size."""
    if row.at_some_size:
        return AT_SOME_SIZE
    return SHOWN["unknown" if row.predicted is None else row.predicted.as_set]


def _facts(machine: MachineRow) -> str:
    groups = groups_text(machine)
    said = [
        f"{machine.states} states",
        f"groups {groups}" if groups not in ("none", "?") else f"groups: {groups}",
        f"merging horizon {horizon_text(machine.merging)}",
    ]
    return ", ".join(said)


def summary_lines(rows: Sequence[TrainedRow]) -> list[str]:
    """How many runs have which outcome, and whether any refutes what was predicted."""
    counted = Counter(row.outcome for row in rows)
    said = ", ".join(f"{VERDICTS[one]} {counted[one]}" for one in VERDICTS if counted[one])
    lines = [f"{len(rows)} runs: {said.replace('- ', 'nothing predicted ')}"]
    cannot = [row for row in rows if row.predicted is not None and row.predicted.as_set == "no"]
    refuted = [row for row in cannot if row.refutes]
    if cannot and not refuted:
        best = max((row.best.accuracy for row in cannot if row.best is not None), default=0.0)
        lines.append(
            f"none of the {len(cannot)} runs of models that cannot is right: the best replica of "
            f"them has an accuracy of {share(best, 3)} on words that stay inside a group"
        )
    lines += [
        f"REFUTED: {row.model} on {row.machine}, trained on {row.trained_on} words"
        for row in refuted
    ]
    return lines


# --- pages, and files for other programs ---


def training_markdown(
    title: str, machines: Sequence[MachineRow], rows: Sequence[TrainedRow], command: str, how: str
) -> str:
    """A page of what was predicted and what was measured; `how` says how runs are trained."""
    parts = [
        f"# {markdown(title)}\n",
        f"Made by `{command}`.\n" if "`" not in command else "",
        f"{markdown(how)}\n",
        f"{markdown(TRAINING_LEGEND)}.\n",
        "".join(f"- {markdown(line)}\n" for line in summary_lines(rows)),
        "## By model\n",
        _models_markdown(rows),
    ]
    for machine in machines:
        mine = [row for row in rows if row.machine == machine.name]
        if mine:
            parts += [f"## {markdown(machine.name)}\n", f"{markdown(_facts(machine))}.\n"]
            parts.append(_machine_markdown(mine))
    return "\n".join(filter(None, parts))


def _models_markdown(rows: Sequence[TrainedRow]) -> str:
    """Of how many runs of each model which verdict holds, by what was predicted."""
    head = ["model", "predicted", "runs", "right", *VERDICTS.values()]
    lines = []
    for model in dict.fromkeys(row.model for row in rows):
        for predicted in (SHOWN["yes"], AT_SOME_SIZE, SHOWN["no"], SHOWN["unknown"]):
            mine = [row for row in rows if row.model == model and _predicted(row) == predicted]
            if mine:
                counted = Counter(row.outcome for row in mine)
                numbers = [len(mine), sum(row.tracks for row in mine)]
                numbers += [counted[outcome] for outcome in VERDICTS]
                cells = [markdown_code(model), markdown(predicted), *map(str, numbers)]
                lines.append(cells)
    return markdown_table(head, lines)


def _machine_markdown(rows: Sequence[TrainedRow]) -> str:
    measured = _measured(rows)
    head = ["model", "predicted", "trained on"]
    head += [f"{words} {length}" for words, length in measured] + ["seeds", "verdict"]
    lines = [
        [
            markdown_code(row.model),
            *(markdown(_predicted(row)), row.trained_on),
            *(_cell(row, words, length) for words, length in measured),
            *(str(row.seeds), markdown(VERDICTS[row.outcome])),
        ]
        for row in rows
    ]
    floors = _floors(rows)
    lines.append(
        ["floor", "", ""]
        + [floors.get(f"{words}\n{length}", "-") for words, length in measured]
        + ["", ""]
    )
    return markdown_table(head, lines)


def _cell(row: TrainedRow, words: str, length: int) -> str:
    score = row.at(words, length)
    if score is None:
        return "-"
    return f"{share(score.accuracy)} ({interval(score.low, score.high)})"


def training_values(rows: Sequence[TrainedRow]) -> Table:
    """One line for each run, kind of test words and length."""
    return values_table([line for row in rows for line in _flat(row)])


def _flat(row: TrainedRow) -> Iterator[dict[str, Any]]:
    for score in row.scores:
        yield {
            "machine": row.machine,
            "family": row.family,
            "model": row.model,
            "predicted": row.predicted and row.predicted.as_set,
            "trained_on": row.trained_on,
            "seeds": row.seeds,
            "words": score.words,
            "length": score.length,
            "sequences": score.sequences,
            "accuracy": score.accuracy,
            "low": score.low,
            "high": score.high,
            "symbol_accuracy": score.symbol_accuracy,
            "prefix_accuracy": score.prefix_accuracy,
            "floor": score.floor,
            "seed": score.seed,
            "lr": score.lr,
            "outcome": row.outcome,
            "seconds": row.seconds,
        }
