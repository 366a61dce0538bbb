"""What `show` prints of a task, a model, a kind of automaton, a suite or a run."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from statetrack import audit, data, report, runs, sources, spec, sweep
from statetrack.catalogue import about_kernels, as_text, flag
from statetrack.cli._algebra import Line
from statetrack.errors import TaskError
from statetrack.references import ids_in, references
from statetrack.report import facts, interval, plain_columns, share, small
from statetrack.text import as_argument, shortened

MOST_STATES = 30
"""The most rows of a transition table that is printed; `--json` has all."""

LONGEST_LOOKED_UP = 10
"""The most last symbols that are called a shortcut where they tell nearly all labels."""

LONGEST_VALUE, LONGEST_EXAMPLE = 200, 600
"""The most letters of an argument's value, and of a kind's example; `--json` has all."""

MOST_NAMES = 24
"""The most symbols or labels that are named."""

MOST_PRODUCTS = 4
"""The most permutations that are written as products of swaps."""

MOST_LENGTHS = 12
"""The most lengths that are written out."""

WITHOUT_AUTOMATON = (
    "drawn whole: no states or transitions, no exact floor, no algebra and no "
    "predictions; `eval` measures the floor on the test words"
)

MEASURES = {
    "accuracy": "accuracy of the selected replica",
    "scaled": "accuracy of the selected replica with chance at 0",
    "success": "share of replicas that are right on every test word",
}

LEFT_OUT = ("symbols", "scaled", "words", "floor")
"""The columns of evaluations that a narrow terminal goes without, in this order."""


def draw_task(about: dict[str, Any], console: Console, *, algebra: list[Line] | None) -> None:
    """Print a task; `algebra` are the lines about its algebra, None where it has no automaton."""
    _draw_heading(console, about["name"], f"task, version {about['version']}")
    console.print(Text(about["title"]))
    console.print()
    if about["description"]:
        report.prose(about["description"].strip(), console)
    console.print(facts(_task_facts(about, algebra)))
    console.print()
    if algebra:
        _draw_transitions(about, console)
    else:
        report.prose(inspect.getdoc(sources.KINDS[about["kind"]]) or "", console)
    for word, labels in about["examples"].items():
        _draw_example(word.split(), labels.split(), console)


def _draw_heading(console: Console, name: str, what: str) -> None:
    console.print(Text.assemble((name, "bold"), (f"  {what}", "dim")))


def _task_facts(about: dict[str, Any], algebra: list[Line] | None) -> Iterator[Line]:
    yield "reference", about["reference"]
    yield "kind", about["kind"]
    if arguments := _arguments(about["arguments"]):
        yield "arguments", arguments
    if algebra:
        states = about["states"]
        yield "states", f"{len(states)}, starting in {states[about['start']]}"
    for what in ("symbols", "labels"):
        names = about[what]
        more = " ..." if len(names) > MOST_NAMES else ""
        yield what, f"{len(names)}: {' '.join(names[:MOST_NAMES])}{more}"
        if what == "symbols":
            yield from _reflections(names)
    after = "every symbol" if about["supervision"] == "every" else "the last symbol"
    shortest, longest = about["train_length"]
    yield "train", f"lengths {shortest}-{longest}, a label after {after}"
    yield "test", f"length {', '.join(f'{length:,}' for length in about['test_lengths'])}"
    if not algebra:
        yield "words", WITHOUT_AUTOMATON
        return
    for length, floor in about["floor"].items():
        told = "not computed" if floor is None else share(floor, 4)  # `eval` measures it then
        yield "floor", f"{told} at length {int(length):,}: the best constant answer"
    yield "words", _how_words_are_drawn(about)
    merging = about["merging"]
    yield "merging horizon", "not computed" if merging is None else merging["summary"]
    yield from (("shortcut", text) for text in _shortcuts(about))
    yield from algebra


def _reflections(symbols: Sequence[str]) -> Iterator[Line]:
    """Symbols that are permutations, in cycle notation, as products of swaps."""
    try:
        swaps = {symbol: sources.as_swaps(symbol) for symbol in symbols}
    except TaskError:
        return
    most = max(map(len, swaps.values()))
    several = [name for name, parts in swaps.items() if len(parts) > 1][:MOST_PRODUCTS]
    examples = "".join(f"; {name} = {' '.join(swaps[name])}" for name in several)
    swap = "a swap of i and j is I - 2 v v^T, v = (e_i - e_j) / sqrt 2"
    yield "reflections", f"at most {most} a symbol: {swap}{examples}"


def _how_words_are_drawn(about: dict[str, Any]) -> str:
    if rate := about["slip_rate"]:
        chance = f"{rate:g} / (t + {1 + rate:g}) at position t, from 0"
        return f"drawn by weights; a slip (dim) has chance {chance}"
    if all(len(set(row)) == 1 for row in about["weights"]):
        return "symbols drawn uniformly"
    return "symbols drawn with the weights of each state; dim targets are never drawn"


def _shortcuts(about: dict[str, Any]) -> Iterator[str]:
    """Answers without a state that are right on nearly all words of a tested length, if any."""
    after = "accuracy there is no evidence of state tracking (`statetrack audit`)"
    for length, floor in about["floor"].items():
        if floor is not None and floor >= audit.SOLVED:
            right = f"one answer is right on {share(floor)} of words of length {int(length):,}"
            yield f"{right}: {after}"
            return
    merging = about["merging"] or {}
    if (horizon := merging.get("horizon")) is not None and horizon <= LONGEST_LOOKED_UP:
        symbols = "symbol tells" if horizon == 1 else f"{horizon} symbols tell"
        length = merging["length"]
        yield f"the last {symbols} the label of 99 % of words of length {length:,}: {after}"


def _arguments(arguments: dict[str, Any]) -> str:
    """Arguments with short values; tables are left out."""
    shown = {name: _in_a_word(value) for name, value in arguments.items()}
    return ", ".join(f"{name}={value}" for name, value in shown.items() if value)


def _in_a_word(value: Any) -> str:
    """A value of an argument; for a machine its kind and arguments, for other tables nothing."""
    if isinstance(value, dict) and "kind" in value:
        inner = _arguments({key: each for key, each in value.items() if key != "kind"})
        return f"{value['kind']}({inner})" if inner else str(value["kind"])
    if isinstance(value, dict):
        return _in_a_word(value.get("of"))
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(map(_in_a_word, value))}]"
    return "" if value is None else shortened(str(value), LONGEST_VALUE)


def _draw_transitions(about: dict[str, Any], console: Console) -> None:
    states, symbols = about["states"], about["symbols"]
    width = max(map(len, states)) * (len(symbols) + 2) + 2 * len(symbols) + 10
    if len(states) > MOST_STATES or width > console.width:
        size = f"{len(states)} states x {len(symbols)} symbols"
        console.print(Text(f"transitions: {size}, too many to print; --json has them", "dim"))
    else:
        rows = []
        for index, state in enumerate(states):
            label = about["labels"][about["output"][index]] if about["scored"][index] else "-"
            reached = [
                states[target] if weight else Text(states[target], "dim")
                for target, weight in zip(
                    about["transitions"][index], about["weights"][index], strict=True
                )
            ]
            style = "bold" if index == about["start"] else None
            rows.append(report.Line((state, label, *reached), style=style))
        console.print(report.Table(plain_columns("state", "label", *symbols), rows))
    console.print()


def _draw_example(word: list[str], labels: list[str], console: Console) -> None:
    """A word above its labels; a long one in several parts, each as wide as the terminal."""
    pairs = list(zip(word, labels, strict=True))
    widths = [max(cell_len(symbol), cell_len(label)) for symbol, label in pairs]
    room = console.width - len("labels  ")
    while pairs:
        fitting = 1
        while fitting < len(pairs) and sum(widths[: fitting + 1]) + fitting <= room:
            fitting += 1
        for name, line in zip(("word", "labels"), zip(*pairs[:fitting], strict=True), strict=True):
            cells = [set_cell_size(cell, width) for cell, width in zip(line, widths, strict=False)]
            console.print(Text.assemble((f"{name:<8}", "dim"), " ".join(cells).rstrip()))
        pairs, widths = pairs[fitting:], widths[fitting:]
    console.print()


def draw_model(about: dict[str, Any], console: Console) -> None:
    """Print the values of `describe_model`."""
    _draw_heading(
        console, about["name"], f"model, {about['family']}" if about["family"] else "model"
    )
    report.prose(about["description"], console)
    recurrence = f"linear in the state; transition: {about['transition']}"
    if not about["linear"]:
        recurrence = "none" if about["linear"] is None else "not linear in the state"
    kernels = ", ".join(about["kernels"])
    usual = about["training_defaults"].items()
    rows = {
        "source": about["source"] or "not given",
        "recurrence": recurrence,
        "kernels": f"{kernels}; {about_kernels()}" if "fla" in about["kernels"] else kernels,
        "parameters": f"{about['parameters']:,} at defaults on {about['parameters_on']}",
        "training": ", ".join(f"{flag(option)} {as_text(value)}" for option, value in usual)
        or "as for every model",
    }
    console.print(facts(rows.items()))
    console.print()
    settings = []
    for each in about["settings"]:
        signs = (("min", ">="), ("above", ">"), ("max", "<="))
        bounds = [f"{sign} {each[key]:g}" for key, sign in signs if each[key] is not None]
        kind = " ".join([each["type"], ", ".join(bounds)]).rstrip()
        settings.append((each["option"], kind, as_text(each["default"]), each["help"]))
    console.print(report.Table(plain_columns("option", "type", "default", "what it is"), settings))


def draw_kind(about: dict[str, Any], console: Console) -> None:
    """Print the values of `describe_kind`: what it is, its arguments, an example and its tasks."""
    _draw_heading(console, about["name"], "kind of automaton")
    report.prose(about["description"], console)
    if about["arguments"]:
        rows = []
        for each in about["arguments"]:
            default = "required" if each["required"] else json.dumps(each["default"])
            rows.append((each["name"], default, each["help"]))
        console.print(report.Table(plain_columns("argument", "default", "what it is"), rows))
        console.print()
    if about["example"] is not None:
        console.print(Text("in a task file", "bold"))
        written = runs.to_yaml({"automaton": about["example"]}).rstrip()
        for line in shortened(written, LONGEST_EXAMPLE).split("\n"):
            console.print(Text(f"    {line}"))
        console.print()
    tasks = ", ".join(about["tasks"]) or "none of those that statetrack has"
    console.print(facts([("tasks", tasks)]))


def draw_suite(name: str, suite: sweep.Suite, file: Path, console: Console) -> None:
    """Print what a suite trains, tests and is compared with, and what each budget changes."""
    _draw_heading(console, name, "suite")
    console.print(Text(suite.title))
    console.print()
    console.print(facts(_suite_facts(suite, file)))
    budgets = [
        (name, "; ".join(_changes(budget)), budget.says) for name, budget in suite.budgets.items()
    ]
    for heading, table in (
        ("rows", _named("model", suite.models)),
        ("columns", _named("task", suite.tasks)),
        ("budgets", report.Table(plain_columns("budget", "changes", "which means"), budgets)),
        ("published", _published(suite)),
    ):
        if table.rows:
            console.print()
            console.print(Text(heading, style="bold"))
            console.print(table)


def _suite_facts(suite: sweep.Suite, file: Path) -> Iterator[Line]:
    if suite.reference:
        yield "paper", suite.reference
        known = references()
        for paper in ids_in(suite.reference):
            if paper in known:
                yield "", f"{known[paper].title} ({known[paper].year})"
    if suite.departures:
        yield "otherwise than there", suite.departures
    yield "protocol", suite.protocol or "none: the models' own training"
    if suite.settings:
        yield "settings", _settings(suite.settings)
    for axis, values in suite.axes.items():
        yield f"axis {axis}", ", ".join(map(as_text, values))
    replicas = [
        len(
            runs.Experiment.from_values(
                {**suite.settings, **row.settings, **column},
                f"suite row '{name}'",
                protocol=suite.protocol,
                to_build=False,
            ).replicas
        )
        for name, row in suite.rows.items()
        for column in suite.columns.values()
    ]
    size = f"{len(suite.rows):,} rows x {len(suite.columns):,} columns"
    yield "points", f"{len(replicas):,}: {size}"
    yield "replicas", f"{sum(replicas):,} in all, by seeds and learning rates"
    yield "table", f"{MEASURES[suite.measure]}, on {suite.samples:,} words of length {suite.length}"
    if suite.curve_lengths:
        yield "every replica also at", _lengths(suite.curve_lengths)
    if suite.horizon_lengths:
        far = _lengths(suite.horizon_lengths)
        yield "the selected one also at", f"{far}, on {suite.horizon_samples:,} words"
    yield "file", str(file)


def _named(kind: str, given: Mapping[str, str | dict[str, Any]]) -> report.Table:
    """The rows or the columns of a suite: what each is, and its settings."""
    rows = []
    for name, content in given.items():
        own = {kind: content} if isinstance(content, str) else dict(content)
        rows.append((name, str(own.pop(kind, "")), _settings(own)))
    return report.Table(plain_columns("name", kind, "settings"), rows)


def _changes(budget: sweep.Budget) -> Iterator[str]:
    """What a budget changes, in words."""
    if budget.protocol is not None:
        yield f"protocol {budget.protocol}" if budget.protocol else "no protocol"
    if budget.settings:
        yield _settings(budget.settings)
    alike: dict[str, list[str]] = {}
    for row, settings in budget.models.items():
        alike.setdefault(_settings(settings), []).append(row)
    for settings_of_rows, rows in alike.items():
        yield f"{', '.join(rows)}: {settings_of_rows}"
    for name in ("length", "samples", "curve_lengths", "horizon_lengths", "horizon_samples"):
        value = getattr(budget, name)
        if value is not None:
            yield f"{name} {_lengths(value) if isinstance(value, tuple) else value}"


def _published(suite: sweep.Suite) -> report.Table:
    """The tables of published numbers, with where and how they were read."""
    rows: list[tuple[Any, ...]] = []
    if suite.published:
        where = (suite.published_as, suite.reference, suite.published_trust)
        numbers = sum(map(len, suite.published.values()))
        rows.append((*where, numbers, suite.measure, str(suite.length)))
    for one in suite.tables:
        where = (one.source, one.reference or suite.reference, one.trust)
        at = _lengths(one.lengths) if one.lengths else str(suite.length)
        rows.append((*where, sum(map(len, one.values.values())), f"{one.measure}, {one.of}", at))
        notes = (one.note, one.unlike and f"not comparable: {one.unlike}")
        rows += [("", Text(note, style="dim")) for note in notes if note]
    headings = ("source", "paper", "read", "numbers", "measure", "at")
    columns = plain_columns(*headings, right=("numbers",))
    return report.Table(columns, rows, left_out=("at", "measure", "read"))


def _settings(settings: Mapping[str, Any]) -> str:
    """Settings as a suite file has them, on one line."""
    return ", ".join(
        f"{name} {'taken away' if value is None else as_text(value)}"
        for name, value in settings.items()
    )


def _lengths(lengths: spec.Lengths) -> str:
    """A few lengths, or the first and last of many."""
    if len(lengths) <= MOST_LENGTHS:
        return ", ".join(f"{length:,}" for length in lengths)
    return f"{len(lengths)} lengths from {min(lengths):,} to {max(lengths):,}"


def draw_run(about: dict[str, Any], console: Console) -> None:
    """Print the values of `describe_run`."""
    _draw_heading(console, about["name"], f"run, {about['state']}")
    console.print(Text(f"{about['model']} on {about['task']}"))
    console.print()
    console.print(facts(_run_facts(about)))
    console.print()
    _draw_evaluations(about, console)
    console.print()
    _draw_evidence(about, console)
    console.print()
    console.print(Text("files", "bold"))
    files = [(f"  {each['name']}", data.in_bytes(each["bytes"])) for each in about["files"]]
    console.print(facts(files))


def _run_facts(about: dict[str, Any]) -> Iterator[Line]:
    config, made, summary = about["config"], about["environment"] or {}, about["summary"]
    lengths = about["train_length"]
    shown = "-".join(map(str, lengths)) if isinstance(lengths, list) else str(lengths)
    after = {"every": "every symbol", "last": "the last symbol"}.get(str(about["supervision"]))
    built, start = config.get("built"), config.get("started_from")
    if built:
        yield from _built_facts(built)
    words = f"words of lengths {shown}" + (f", a label after {after}" if after else "")
    yield ("checked on" if built else "trained on"), words
    if start:
        yield "started from", f"{start['run']}, replica {start['replica']}{_of_built(start)}"
    if about["differs"] is not None:
        own = {name: each for name, each in about["differs"].items() if name != "task"}
        told = ", ".join(f"{name} {as_text(value)}" for name, value in own.items())
        yield "not as by default", told or "nothing"
    if summary is None:
        yield "steps", f"{about['step']:,} of {config.get('steps'):,}"
    elif built:
        yield "right on these", share(summary["replicas"][0]["validation_accuracy"])
    else:
        more = f", {len(about['diverged'])} of them diverged" if about["diverged"] else ""
        yield "replicas", f"{len(summary['replicas'])}{more}; {summary['steps']:,} steps"
        for each in summary["replicas"]:
            if each["replica"] == summary["selected"]:
                yield (
                    "selected",
                    f"replica {each['replica']} (seed {each['seed']}, lr {each['lr']:g}): "
                    f"validation accuracy {share(each['validation_accuracy'])}, loss "
                    f"{small(each['validation_loss'])}, best at step {each['best_step']:,}",
                )
    if made:
        took = f", {summary['seconds']:.1f} s" if summary else ""
        yield "started", f"{made.get('started')}{took}"
        parts = (f"statetrack {made.get('statetrack')}", f"torch {made.get('torch')}")
        yield "with", ", ".join([*parts, str(made.get("device_name"))])
        if made.get("command"):
            yield "made by", str(made["command"])
    if about["needs_plugin"]:
        yield "needs its plugin", "which defines what it needs: read it, then give --plugin FILE"
    else:
        yield "repeated by", about["repeat"]


def _built_facts(built: dict[str, Any]) -> Iterator[Line]:
    yield "built", f"{built['construction']} ({built['source']}), {built['precision']}"
    yield "equation", built["equation"]
    if built["noise"]:
        yield "noise", f"of deviation {built['noise']:g} on every weight, seed {built['seed']}"
    if built["margin"] is not None:
        yield "margin", f"{share(built['margin'])} of the spread of logits, in every state"


def _of_built(start: dict[str, Any]) -> str:
    """Whether weights that training began with were built, and with which noise."""
    if not start["built"]:
        return ""
    noise = f" with noise {start['noise']:g}" if start["noise"] else ""
    return f", built{noise}"


def _draw_evaluations(about: dict[str, Any], console: Console) -> None:
    own = about["task"]
    rows = [row | {"task": row["task"] or own} for row in about["evaluations"] if row["selected"]]
    if not rows:
        console.print(Text(f"not evaluated yet: `statetrack eval {as_argument(about['name'])}`"))
        return
    console.print(Text("evaluations of the selected replica", "bold"))
    columns = []
    if {row["task"] for row in rows} != {own}:
        columns.append(report.Column("task", "name"))
    if {row["words"] for row in rows} != {"task"}:
        columns.append(report.Column("kind of words", "text" if columns else "name", key="words"))
    columns += [
        report.Column("length", "number"),
        report.Column("words", "number", key="sequences"),
        report.Column("accuracy", "number", write=share),
        report.Column("95 % interval", "number", lambda row: interval(row["low"], row["high"])),
        report.Column("symbols", "number", write=share, key="symbol_accuracy"),
        report.Column("floor", "number", write=share),
        report.Column("scaled", "number", write=share),
    ]
    console.print(report.Table.of(columns, rows, left_out=LEFT_OUT))
    if others := len({row["replica"] for row in about["evaluations"]}) - 1:
        more = "1 more replica" if others == 1 else f"{others} more replicas"
        console.print(Text(f"--json has those of {more}", "dim"))


def _draw_evidence(about: dict[str, Any], console: Console) -> None:
    """What was found about the selected replica on its own task, and of which kinds there is."""
    found: Sequence[dict[str, Any]] = about["evidence"]
    if not found:
        console.print(Text("no evidence yet: `statetrack certify`, `probe` and `extract` find it"))
        return
    console.print(Text("evidence", "bold"))
    rows = [each for each in found if each["selected"] and each["task"] == about["task"]]
    where = f"{about['name']}/evidence.jsonl"
    evidence = filter(None, (runs.read_evidence(each["evidence"], where) for each in rows))
    told = {each.kind: each.summary for each in evidence if each.summary}
    kinds = dict.fromkeys(each["evidence"]["kind"] for each in rows)
    kept = "kept; `statetrack probe` and `--json` show it"
    console.print(facts([(f"  {kind}", told.get(kind, kept)) for kind in kinds]))
    if others := len(found) - len(rows):
        console.print(Text(f"--json has {others} more, of other replicas or tasks", "dim"))
