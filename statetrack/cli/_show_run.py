"""The description of a run in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from statetrack.catalogue import as_text
from statetrack.data import in_bytes
from statetrack.report import drawing, interval, share, small
from statetrack.runs import read_evidence

LEFT_OUT = ("symbols", "scaled", "words", "floor")
"""The columns of evaluations that a narrow terminal goes without, in this order."""


def draw_run(about: dict[str, Any], console: Console) -> None:
    """The values of `describe_run`."""
    console.print(Text.assemble((about["name"], "bold"), (f"  run, {about['state']}", "dim")))
    console.print(Text(f"{about['model']} on {about['task']}"))
    console.print()
    console.print(drawing.facts(_facts(about)))
    _draw_evaluations(about, console)
    _draw_evidence(about, console)
    console.print()
    console.print(Text("files", "bold"))
    console.print(
        drawing.facts((f"  {each['name']}", in_bytes(each["bytes"])) for each in about["files"])
    )


def _facts(about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    config, made = about["config"], about["environment"] or {}
    yield "trained on", _words(about)
    if about["differs"] is not None:
        own = {name: each for name, each in about["differs"].items() if name != "task"}
        told = ", ".join(f"{name} {as_text(value)}" for name, value in own.items())
        yield "not as by default", told or "nothing"
    summary = about["summary"]
    if summary is None:
        yield "steps", f"{about['step']:,} of {config.get('steps'):,}"
    else:
        replicas = summary["replicas"]
        more = f", {len(about['diverged'])} of them diverged" if about["diverged"] else ""
        yield "replicas", f"{len(replicas)}{more}; {summary['steps']:,} steps"
        yield from _selected(summary)
    if made:
        yield (
            "started",
            f"{made.get('started')}, {summary['seconds']:.1f} s"
            if summary
            else str(made.get("started")),
        )
        parts = (f"statetrack {made.get('statetrack')}", f"torch {made.get('torch')}")
        yield "with", ", ".join([*parts, str(made.get("device_name"))])
        if made.get("command"):
            yield "made by", str(made["command"])
    if about["needs_plugin"]:
        yield "needs its plugin", "which defines what it needs: read it, then give --plugin FILE"
    else:
        yield "repeated by", about["repeat"]


def _words(about: dict[str, Any]) -> str:
    """The lengths of training words, and where their labels are."""
    lengths = about["train_length"]
    shown = "-".join(map(str, lengths)) if isinstance(lengths, list) else str(lengths)
    after = {"every": "every symbol", "last": "the last symbol"}.get(about["supervision"])
    return f"words of lengths {shown}" + (f", a label after {after}" if after else "")


def _selected(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for each in summary["replicas"]:
        if each["replica"] == summary["selected"]:
            yield (
                "selected",
                f"replica {each['replica']} (seed {each['seed']}, lr {each['lr']:g}): validation "
                f"accuracy {share(each['validation_accuracy'])}, loss "
                f"{small(each['validation_loss'])}, best at step {each['best_step']:,}",
            )


def _draw_evaluations(about: dict[str, Any], console: Console) -> None:
    rows = [row for row in about["evaluations"] if row["selected"]]
    console.print()
    if not rows:
        console.print(Text(f"not evaluated yet: `statetrack eval {about['name']}`"))
        return
    others = len({row["replica"] for row in about["evaluations"]}) - 1
    console.print(Text("evaluations of the selected replica", "bold"))
    own = {row["task"] or about["task"] for row in rows} == {about["task"]}
    drawn = {row["words"] for row in rows} == {"task"}
    numbers = ("length", "words", "accuracy", "95 % interval", "symbols", "floor", "scaled")
    headings = (*(() if own else ("task",)), *(() if drawn else ("kind of words",)), *numbers)
    table = drawing.plain_table(*headings, right=numbers, left_out=LEFT_OUT)
    for row in rows:
        cells = {
            "task": row["task"] or about["task"],
            "kind of words": row["words"],
            "length": f"{row['length']:,}",
            "words": f"{row['sequences']:,}",
            "accuracy": share(row["accuracy"]),
            "95 % interval": interval(row["low"], row["high"]),
            "symbols": share(row["symbol_accuracy"]),
            "floor": share(row["floor"]),
            "scaled": share(row["scaled"]),
        }
        table.add_row(*(cells[name] for name in headings))
    console.print(table)
    if others:
        console.print(Text(f"--json has those of {others} more replicas", "dim"))


def _draw_evidence(about: dict[str, Any], console: Console) -> None:
    """What was found about the selected replica on its own task, and of which kinds there is."""
    found = about["evidence"]
    console.print()
    if not found:
        console.print(Text("no evidence yet: `statetrack certify`, `probe` and `extract` find it"))
        return
    console.print(Text("evidence", "bold"))
    rows = [each for each in found if each["selected"] and each["task"] == about["task"]]
    where = f"{about['name']}/evidence.jsonl"
    evidence = filter(None, (read_evidence(each["evidence"], where) for each in rows))
    told = {each.kind: each.summary for each in evidence if each.summary}
    lines = [
        (f"  {kind}", told.get(kind, "kept; `statetrack probe` and `--json` show it"))
        for kind in dict.fromkeys(each["evidence"]["kind"] for each in rows)
    ]
    others = len(found) - len(rows)
    console.print(drawing.facts(lines))
    if others:
        console.print(Text(f"--json has {others} more, of other replicas or tasks", "dim"))
