"""Compare the measured results of runs with their predictions, and mark every disagreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from statetrack import report
from statetrack.cli import _terminal as terminal
from statetrack.cli import options
from statetrack.cli._warnings import warn_of_unreadable
from statetrack.evidence import length_text
from statetrack.models import MODEL_FACTS
from statetrack.report import (
    Column,
    Document,
    Table,
    facts,
    interval,
    plain_columns,
    share,
)
from statetrack.report import console as standard_output

if TYPE_CHECKING:
    from statetrack.runs import Comparison, Judged, Tracking

LOOKS: Mapping[Judged, str] = {
    "agree": "green",
    "predicted no, tracks": "bold red",
    "predicted yes, not reached": "yellow",
    "contradiction": "bold red reverse",
    "nothing predicted": "dim",
    "tests nothing": "yellow",
    "not evaluated": "dim",
    "diverged": "red",
    "unfinished": "dim",
    "needs its plugin": "yellow",
    "broken": "red",
}
"""The style of each outcome."""

NUMBERS = ("right to", "length", "words", "accuracy", "95 % interval", "floor", "replicas")
"""The columns of numbers."""

LEFT_OUT = (
    *("words", "95 % interval", "replicas", "floor", "right to"),
    *("machine", "proven", "worst word", "length"),
)
"""The columns that a narrow terminal goes without, in this order."""

MEASURED: Mapping[Tracking, str] = {"tracks": "tracks", "partly": "not always", "no": "no"}
"""What the table says of a replica: a prediction is about every word, so one that errs is enough
to agree with a no."""

EVIDENCE = ("worst word", "proven", "machine")
"""The columns of evidence, each shown for a task of which a run has some."""

COUNTED: Mapping[Judged, str] = {
    "agree": "agree",
    "predicted no, tracks": "DISAGREE",
    "contradiction": "CONTRADICT",
    "tests nothing": "test nothing",
}
"""The words for several, in the last line, where they are others."""

_OF_SELECTED = ("verdict", "horizon", "length", "sequences", "accuracy", "low", "high", "floor")
_SOUGHT = ("fails_at", "worst_case", "proven", "proven_length", "machine")


def _of_selected(name: str) -> Column:
    return Column(name, of=lambda one: one.selected and getattr(one.selected, name))


VALUES = (
    Column("run", of=lambda one: one.run.as_posix()),
    *map(Column, ("outcome", "task", "model", "predicted", "identified")),
    *map(_of_selected, (*_OF_SELECTED, *_SOUGHT)),
    *map(Column, ("num_replicas", "num_diverged", "num_evaluated", "num_tracking")),
    *map(Column, ("reason", "advice")),
)
"""What files for programs have of each run; `--json` has all."""

PLACE = 9
"""Its place among the commands that `statetrack --help` lists."""


def command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUNS ...]", help="Run folders, or folders that hold some; by default runs."
        ),
    ] = None,
    *,
    out: terminal.Out = None,
    force: terminal.Force = False,
    as_json: options.PrintJson = False,
) -> None:
    """Compare the measured results of runs with their predictions, and mark every disagreement.

    The measured results are those of `statetrack eval` on words longer than those of training. A
    prediction that the model can track the task agrees if a single replica does: evaluate `--all`.

    Examples:
        statetrack compare
        statetrack compare runs/one runs/other --json
        statetrack compare --out compared.md

    """
    file = terminal.wanted_file(out, force=force, as_json=as_json)
    from statetrack.runs import (  # numpy, which `--help` does not need
        compare,
        find_run_folders,
        to_json,
    )

    found = compare(find_run_folders(runs or [Path("runs")]))
    unread = {
        str(one.run): one.reason if one.outcome == "broken" else _why_unreadable(one)
        for one in found
        if not one.readable
    }
    warn_of_unreadable(unread, len(found))
    if file is not None:
        terminal.write_document(_document(found), file)
    elif as_json:
        typer.echo(to_json([one.to_json() for one in found], indent=2))
    else:
        _draw(found, standard_output())


def _document(found: Sequence[Comparison]) -> Document:
    """The comparisons for a file: a table for each task, and the sentences of the terminal."""

    def parts() -> Iterator[Table | str]:
        for task, runs in _by_task(found):
            yield replace(_table(runs), title=task)
            for one in runs:
                if one.outcome != "agree":
                    told = [f"{one.run.as_posix()}: {one.reason}"]
                    yield "; ".join(told + [f"{name}: {said}" for name, said in _more(one)])
        yield from map(_unreadable, (one for one in found if not one.readable))
        yield _last_line(found).plain

    return Document(
        title="measured and predicted",
        parts=lambda: list(parts()),
        rows=lambda: Table.of(VALUES, found),
        json=lambda: [one.to_json() for one in found],
    )


def _by_task(found: Sequence[Comparison]) -> Iterator[tuple[str, list[Comparison]]]:
    readable = (one for one in found if one.readable)
    for task, runs in groupby(readable, lambda one: one.task):
        yield task or "", list(runs)


def _draw(found: Sequence[Comparison], console: Console) -> None:
    by_task = [*_by_task(found)]
    tables = report.alike([_table(runs) for _, runs in by_task], console.width)
    for (task, runs), table in zip(by_task, tables, strict=True):
        console.print(Text(task, "bold"))
        console.print(table)
        console.print()
        for one in runs:
            if one.outcome != "agree":
                _explain(one, console)
    for one in found:
        if not one.readable:
            console.print(Text(_unreadable(one), LOOKS[one.outcome]), soft_wrap=True)
    console.print(_last_line(found))


def _verdict(outcome: Judged) -> str:
    from statetrack.runs import VERDICTS

    return VERDICTS[outcome]


def _unreadable(one: Comparison) -> str:
    return f"{one.run}: {_why_unreadable(one)}"


def _why_unreadable(one: Comparison) -> str:
    return ": ".join(filter(None, [_verdict(one.outcome), one.reason, one.advice]))


def _table(runs: Sequence[Comparison]) -> Table:
    """The runs on one task; they are named where models and settings do not tell them apart."""
    evidence = [name for name in EVIDENCE if any(_evidence(one)[name] != "-" for one in runs)]
    models = [_model(one) for one in runs]
    alike = len({model.plain for model in models}) < len(models)
    names = report.short_names([one.run for one in runs]) if alike else []
    headings = ("model", *["run"] * alike, "predicted", "measured", *NUMBERS, *evidence, "")
    rows = []
    for place, one in enumerate(runs):
        cells = _numbers(one) | _evidence(one)
        rows.append(
            [
                models[place],
                *names[place : place + 1],
                _predicted(one),
                MEASURED[one.selected.verdict] if one.selected else "-",
                *(cells[name] for name in (*NUMBERS, *evidence)),
                Text(_verdict(one.outcome), LOOKS[one.outcome]),
            ]
        )
    columns = plain_columns(*headings, right=(*NUMBERS, *evidence), whole=("predicted", "measured"))
    return Table(columns, rows, left_out=LEFT_OUT)


def _model(one: Comparison) -> Text:
    """The model, and below it the settings that differ from the defaults or are too small."""
    assert one.model is not None and one.settings is not None
    defaults = MODEL_FACTS[one.model].settings_class().model_dump(mode="json")
    found = one.prediction
    unmet = () if found is None or found.can != "yes" else found.unmet
    lacking = {need.setting: need.lack for need in unmet}
    lines = [
        lacking.get(name, f"{name} {options.as_text(value)}")
        for name, value in one.settings.items()
        if value != defaults[name] or name in lacking
    ]
    own = [f"\n  {report.breaking_at_brackets(line)}" for line in lines]
    return Text.assemble(one.model, *[(line, "dim") for line in own])


def _predicted(one: Comparison) -> Text:
    if one.predicted is None:
        return Text("-")
    return Text(report.SHOWN[one.predicted], report.LOOKS[one.predicted])


def _numbers(one: Comparison) -> dict[str, str]:
    """The results of the selected replica, and how many evaluated replicas track the task."""
    counted = f"{one.num_tracking}/{one.num_evaluated}" if one.num_evaluated else "-"
    shown = one.selected
    if shown is None:
        return dict.fromkeys(NUMBERS, "-") | {"replicas": counted}
    return {
        "right to": f"{shown.horizon:,}",
        "length": f"{shown.length:,}",
        "words": f"{shown.sequences:,}",
        "accuracy": share(shown.accuracy),
        "95 % interval": interval(shown.low, shown.high),
        "floor": share(shown.floor),
        "replicas": counted,
    }


def _evidence(one: Comparison) -> dict[str, str]:
    """What was found about the selected replica beyond accuracies."""
    shown = one.selected
    if shown is None:
        return dict.fromkeys(EVIDENCE, "-")
    worst = "-"
    if shown.fails_at is not None:
        worst = f"{shown.fails_at - 1:,}"
    elif shown.proven == "all lengths":
        worst = "all lengths"
    elif shown.worst_case is not None:
        worst = f">= {shown.worst_case:,}"
    machines = {True: "equivalent", False: "differs", None: "-"}
    proven = length_text(shown.proven, shown.proven_length) if shown.proven else "-"
    return {"worst word": worst, "proven": proven, "machine": machines[shown.machine]}


def _explain(one: Comparison, console: Console) -> None:
    """The run, the reason for its outcome, and what to do."""
    look = LOOKS[one.outcome]
    console.print(Text.assemble((one.run.as_posix(), "bold"), ": ", (one.reason, look)))
    if rows := _more(one):
        console.print(facts((f"  {name}", said) for name, said in rows))
    console.print()


def _more(one: Comparison) -> list[tuple[str, str]]:
    """The theorem that a disagreeing run stands against, and what to do."""
    rows = []
    if one.disagrees and one.prediction is not None:
        rows.append(("theorem", one.prediction.reason))
    return rows + ([("try", one.advice)] if one.advice else [])


def _last_line(found: Sequence[Comparison]) -> Text:
    counts = Counter(one.outcome for one in found)
    line = Text("1 run: " if len(found) == 1 else f"{len(found)} runs: ")
    told = [
        (f"{number} {COUNTED.get(outcome, _verdict(outcome))}", LOOKS[outcome])
        for outcome, number in counts.items()
    ]
    for place, (text, look) in enumerate(told):
        line.append(", " if place else "").append(text, look)
    return line
