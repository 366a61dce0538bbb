"""An atlas of machines, and of models trained on them: for a terminal, a page and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter

from statetrack.report.formats.markdown import table_markdown
from statetrack.report.table import LOOKS, SHOWN, Column, Line, Styled, Table, interval, share
from statetrack.runs import VERDICTS, EvaluationRow, Judged
from statetrack.sweep import (
    KINDS,
    AnswerRow,
    GroupRow,
    MachineRow,
    MergingRow,
    TrainedRow,
)
from statetrack.text import markdown, markdown_block, markdown_code, markdown_table

UNKNOWN = "?"
"""Stands for what was not worked out."""

LONGEST_WORD = 40
"""The most symbols of a witness word that a page shows; a longer one is shown by its length."""

ATLAS_LEGEND = (
    "states: those that a model has to tell apart; group: the largest that words make, none where "
    "the machine is aperiodic (star-free); class: how hard the labels are; horizon: the length "
    "after which 99 % of random words have merged all states, ~ where it is sampled"
)


# --- texts of single facts ---


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
    """`can`, `can, hidden 4`, `can, any hidden`, `cannot` or `?`."""
    if answer is None:
        return UNKNOWN
    if answer.size == 0:
        return f"{SHOWN[answer.can]}, any {answer.size_of}"
    size = "" if answer.size is None else f", {answer.size_of} {answer.size}"
    return SHOWN[answer.can] + size


def _largest(row: MachineRow) -> str:
    if row.error or row.groups is None:
        return UNKNOWN
    if row.largest is None:
        return "none"
    named = len(row.largest.name) <= 12
    return row.largest.name if named else f"order {row.largest.order}"


def _number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def _models(row: MachineRow, can: str) -> str:
    return ", ".join(model for model, answer in row.answers.items() if answer.can == can)


def _named_models(rows: Iterable[MachineRow]) -> list[str]:
    return list(dict.fromkeys(model for row in rows for model in row.answers))


def _witness(row: MachineRow) -> str | None:
    if row.witness is None:
        return None
    return "; ".join(" ".join(word) for word in row.witness.words)


# --- machines ---

_GIVEN = partial(Column, kind="number", key="given_states", write=_number)
_CLASS = Column("class", of=lambda row: row.complexity or UNKNOWN)
_HORIZON = Column("horizon", "number", of=lambda row: horizon_text(row.merging))

IN_TERMINAL = (
    Column("machine", "name", key="name"),
    _GIVEN("given"),
    Column("states", "number", write=_number),
    Column("in", "number", key="inputs", write=_number),
    Column("out", "number", key="outputs", write=_number),
    Column("group", of=_largest),
    Column(
        "groups",
        "number",
        of=lambda row: None if row.groups is None else sum(group.count for group in row.groups),
        write=lambda count: UNKNOWN if count is None else str(count),
    ),
    _CLASS,
    _HORIZON,
    Column("cannot", of=partial(_models, can="no")),
    Column(UNKNOWN, of=partial(_models, can="unknown")),
    Column("s", "number", key="seconds", write="{:.1f}".format),
)
"""What the terminal shows of each machine."""

ON_A_PAGE = (
    Column("machine", of=lambda row: Styled(row.name, code=True)),
    _GIVEN("given states"),
    *(Column(name, write=_number) for name in ("states", "inputs", "outputs")),
    Column("groups", of=groups_text),
    Column("solvable", write={True: "yes", False: "no", None: UNKNOWN}.__getitem__),
    _CLASS,
    Column("half merged", of=lambda row: row.merging and row.merging.half, write=_number),
    Column("0.9 merged", of=lambda row: row.merging and row.merging.most, write=_number),
    _HORIZON,
)
"""What a page shows of each machine."""


def atlas_table(title: str, rows: Sequence[MachineRow]) -> Table:
    """One line for each machine; those without a row have their error."""
    families = [row.family for row in rows]
    ends = [one != other for one, other in zip(families, [*families[1:], ""], strict=True)]
    lines = [
        Line([column.value_of(row) for column in IN_TERMINAL], ends=end)
        for row, end in zip(rows, ends, strict=True)
    ]
    return Table(
        IN_TERMINAL,
        lines,
        title,
        look="framed",
        left_out=("s", UNKNOWN, "cannot", "given", "groups", "out", "in", "family"),
        more="--csv has them",
    )


def machine_facts(row: MachineRow) -> list[tuple[str, str]]:
    """What a table of several machines has no room for, as lines of names and values."""
    lines = [("groups", groups_text(row))]
    if row.witness is not None:
        kind = "words of a group" if len(row.witness.words) > 1 else "word that cycles"
        lines.append((kind, _witness(row) or ""))
        lines.append(("on the states", " ".join(row.witness.states)))
        lines.append(("reached by", " ".join(row.witness.access) or "no symbol: it starts there"))
    for answer, named in SHOWN.items():
        if models := _models(row, answer):
            lines.append((named, models))
    return lines


def family_table(rows: Iterable[MachineRow]) -> Table:
    """For each family how many of its machines are aperiodic or have groups, and the largest."""
    lines = []
    for family, of in groupby(sorted(rows, key=lambda row: row.family), lambda row: row.family):
        members = list(of)
        found = [row.largest for row in members if row.largest is not None]
        largest = max(found, key=lambda group: group.order, default=None)
        numbers = (
            len(members),
            sum(row.aperiodic is True for row in members),
            sum(row.aperiodic is False for row in members),
            sum(row.solvable is False for row in members),
            sum(row.aperiodic is None for row in members),
        )
        lines.append([family, *map(str, numbers), largest and group_text(largest)])
    counted = ("models", "aperiodic", "with groups", "not solvable", "not known")
    columns = [Column("family", "name"), *(Column(each, "number") for each in counted)]
    return Table(
        [*columns, Column("largest group")],
        lines,
        "families",
        look="framed",
        left_out=("not known", "largest group", "models"),
        more="--csv has them",
    )


def models_table(rows: Sequence[MachineRow]) -> Table:
    """For each model on how many machines it can track, cannot, and what is not known.

    Last, on how many it can with the settings that it has.
    """
    lines = []
    for model in _named_models(rows):
        answers = [row.answers[model] for row in rows if model in row.answers]
        said = [str(sum(one.can == answer for one in answers)) for answer in SHOWN]
        lines.append([model, *said, str(sum(one.as_set == "yes" for one in answers))])
    columns = [
        Column("model", "name"),
        *(Column(SHOWN[answer], "number", style=look) for answer, look in LOOKS.items()),
        Column("as set", "number"),
    ]
    return Table(columns, lines, "on how many machines a class of models", look="framed")


def atlas_markdown(title: str, rows: Sequence[MachineRow], command: str) -> str:
    """A page of all that is known of the machines."""
    known = [row for row in rows if not row.error]
    models = _named_models(known)
    answers = [
        [Styled(row.name, code=True), *(answer_text(row.answers.get(model)) for model in models)]
        for row in known
    ]
    failures = [
        f"{row.name}: {row.error or row.stopped}" for row in rows if row.error or row.stopped
    ]
    parts = [
        *_head(title, command),
        f"{markdown(ATLAS_LEGEND)}.\n",
        "## Families\n",
        table_markdown(family_table(known)),
        "## Models\n",
        "On how many machines some size of a class of models can track, and with the settings that "
        "it has:\n",
        table_markdown(models_table(known)),
        "## Machines\n",
        table_markdown(Table.of(ON_A_PAGE, known)),
        "## What models can, machine by machine\n",
        table_markdown(Table([Column(each) for each in ("machine", *models)], answers)),
        "## Witness words\n",
        "What a *cannot* rests on, replayed on the machine: a word whose powers go round through "
        "so many states and never settle, or words that generate a group of permutations of "
        "them.\n",
        _witnesses_markdown(known),
        "## Not read, or not finished\n\n" + markdown_block("\n".join(failures))
        if failures
        else "",
    ]
    return "\n".join(filter(None, parts))


def _head(title: str, command: str) -> list[str]:
    """The heading of a page, and the command that makes it."""
    return [f"# {markdown(title)}\n", f"Made by `{command}`.\n" if "`" not in command else ""]


def _witnesses_markdown(rows: Sequence[MachineRow]) -> str:
    lines = [
        [
            markdown_code(row.name),
            markdown("" if row.largest is None else group_text(row.largest)),
            "; ".join(
                markdown_code(" ".join(word))
                if len(word) <= LONGEST_WORD
                else f"{len(word)} symbols"
                for word in row.witness.words
            ),
            str(len(row.witness.states)),
        ]
        for row in rows
        if row.witness is not None
    ]
    return markdown_table(["machine", "largest group", "words", "states"], lines) if lines else ""


def atlas_values(rows: Sequence[MachineRow]) -> Table:
    """One line for each machine, with a column for each model; unknown values are empty."""

    def can(row: MachineRow, model: str) -> str | None:
        return row.answers[model].can if model in row.answers else None

    def merged(row: MachineRow, name: str) -> object:
        return row.merging and getattr(row.merging, name)

    plain = ("family", "given_states", "states", "inputs", "outputs", "aperiodic", "solvable")
    merging = {
        "half_merged": "half",
        "most_merged": "most",
        "merging_horizon": "nearly_all",
        "merging_exact": "exact",
        "never_merges": "never",
    }
    columns = [
        Column("machine", of=attrgetter("name")),
        *map(Column, plain),
        Column("largest_group", of=lambda row: row.largest and row.largest.name),
        Column(
            "largest_order",
            of=lambda row: 1 if row.groups == () else row.largest and row.largest.order,
        ),
        Column("groups", of=lambda row: None if row.groups is None else groups_text(row)),
        Column("complexity"),
        Column("witness", of=_witness),
        *(Column(heading, of=partial(merged, name=name)) for heading, name in merging.items()),
        *(Column(model, of=partial(can, model=model)) for model in _named_models(rows)),
        *map(Column, ("seconds", "error", "stopped")),
    ]
    return Table.of(columns, rows)


# --- models trained on machines: predicted beside measured ---

OUTCOMES: tuple[Judged, ...] = (
    "agree",
    "predicted no, tracks",
    "predicted yes, not reached",
    "nothing predicted",
    "tests nothing",
    "not evaluated",
    "diverged",
)
"""What can come of a run, in the order in which it is counted."""

AT_SOME_SIZE = "can?"
"""What is predicted where some size is enough, and whether that of the model is, is not known."""

TRAINING_LEGEND = (
    f"{AT_SOME_SIZE}: the class of models can, and whether this size is enough is not known; "
    "accuracy of the replica that validation selected, after the last symbol of words of each kind "
    "and length, - where one last answer is right for all words (a floor of 1.00), which tests "
    "nothing; group: words that stay inside a group, so that nothing is ever forgotten; "
    f"{VERDICTS['predicted no, tracks']}: a replica of a model that cannot is right at every "
    "position of every word longer than those of training (for a run trained on words inside a "
    f"group: of these, for they may lack symbols); {VERDICTS['predicted yes, not reached']}: the "
    "model can, and no replica is, which is no contradiction: training may fail"
)


def _predicted(row: TrainedRow) -> str:
    """`can`, `cannot` or `?`, with the settings that the model has; `can?` at some size."""
    if row.at_some_size:
        return AT_SOME_SIZE
    return SHOWN["unknown" if row.predicted is None else row.predicted.as_set]


_PREDICTED = Column("predicted", "number", of=_predicted)
_VERDICT = Column("verdict", "number", of=lambda row: VERDICTS[row.outcome])


def training_tables(machines: Sequence[MachineRow], rows: Sequence[TrainedRow]) -> Iterator[Table]:
    """A table for each machine."""
    for machine, mine in _by_machine(machines, rows):
        measured, floors = _measured(mine), _floors(mine)
        columns = [
            Column("model", "name"),
            _PREDICTED,
            Column("words", "number", key="trained_on"),
        ]
        for kind, length in measured:
            columns += [
                Column(f"{kind}\n{length}", "number", of=partial(_accuracy, at=(kind, length))),
                Column(
                    f"{kind} {length}\n95 %", "number", of=partial(_interval, at=(kind, length))
                ),
            ]
        columns += [Column("seeds", "number"), _VERDICT]
        lines = [
            Line([column.value_of(row) for column in columns], ends=row is mine[-1]) for row in mine
        ]
        floor = {f"{kind}\n{length}": text for (kind, length), text in floors.items()}
        lines.append(Line(["floor", *(floor.get(each.heading, "") for each in columns[1:])]))
        longest = max((length for _, length in measured), default=0)
        shorter = [(kind, length) for kind, length in measured if length < longest]
        of_longest = [(kind, length) for kind, length in measured if length == longest]
        yield Table(
            columns,
            lines,
            f"{machine.name}: {_facts(machine)}",
            look="framed",
            left_out=[
                *(f"{kind} {length}\n95 %" for kind, length in [*shorter, *of_longest]),
                "seeds",
                *(f"{kind}\n{length}" for kind, length in shorter),
            ],
            more="--csv has them",
        )


def _by_machine(
    machines: Sequence[MachineRow], rows: Sequence[TrainedRow]
) -> Iterator[tuple[MachineRow, list[TrainedRow]]]:
    """Each machine that runs were trained on, and these."""
    for machine in machines:
        if mine := [row for row in rows if row.machine == machine.name]:
            yield machine, mine


def _measured(rows: Sequence[TrainedRow]) -> list[tuple[str, int]]:
    """The kinds of words and the lengths that some run was tested on."""
    known = {(score.words, score.length) for row in rows for score in row.scores}
    return sorted(known, key=lambda one: (KINDS.index(one[0]), one[1]))


def _floors(rows: Sequence[TrainedRow]) -> dict[tuple[str, int], str]:
    """The accuracy of the best constant answer, by kind of words and length."""
    return {(score.words, score.length): share(score.floor) for row in rows for score in row.scores}


def _score(row: TrainedRow, at: tuple[str, int]) -> EvaluationRow | None:
    """The score on words of which more than one last answer is possible; None where none is."""
    score = row.at(*at)
    return None if score is None or score.floor == 1.0 else score


def _accuracy(row: TrainedRow, at: tuple[str, int]) -> str:
    score = _score(row, at)
    return share(None if score is None else score.accuracy)


def _interval(row: TrainedRow, at: tuple[str, int]) -> str:
    score = _score(row, at)
    return "-" if score is None else interval(score.low, score.high)


def _facts(machine: MachineRow) -> str:
    groups = groups_text(machine)
    said = [
        f"{machine.states} states",
        f"groups {groups}" if groups not in ("none", "?") else f"groups: {groups}",
        f"merging horizon {horizon_text(machine.merging)}",
    ]
    return ", ".join(said)


def summary_lines(rows: Sequence[TrainedRow]) -> list[str]:
    """How many runs have which outcome, and whether any disagrees with what was predicted."""
    counted = Counter(row.outcome for row in rows)
    said = ", ".join(f"{VERDICTS[one]} {counted[one]}" for one in OUTCOMES if counted[one])
    lines = [f"{len(rows)} runs: {said}"]
    cannot = [row for row in rows if row.predicted is not None and row.predicted.as_set == "no"]
    tracking = [row for row in cannot if row.outcome == "predicted no, tracks"]
    if cannot and not tracking:
        tested = [row.best for row in cannot if row.best is not None and row.best.floor < 1.0]
        number = f"none of the {len(cannot)} runs" if len(cannot) > 1 else "the one run"
        verb = "is" if len(cannot) > 1 else "is not"
        line = f"{number} of models that cannot {verb} right on all words"
        if tested:
            best = max(tested, key=lambda score: score.accuracy)
            line += (
                f": the best replica of them on the hardest words of its machine (inside a group, "
                f"where it has one) is right after {share(best.accuracy, 3)} of "
                f"{best.sequences:,} {best.words} words of {best.length:,} symbols"
            )
        lines.append(line)
    lines += [
        f"{VERDICTS[row.outcome]}: {row.model} on {row.machine}, trained on {row.trained_on} words"
        for row in tracking
    ]
    return lines


def training_markdown(
    title: str, machines: Sequence[MachineRow], rows: Sequence[TrainedRow], command: str, how: str
) -> str:
    """A page of what was predicted and what was measured; `how` says how runs are trained."""
    parts = [
        *_head(title, command),
        f"{markdown(how)}\n",
        f"{markdown(TRAINING_LEGEND)}.\n",
        "".join(f"- {markdown(line)}\n" for line in summary_lines(rows)),
        "## By model\n",
        _models_markdown(rows),
    ]
    for machine, mine in _by_machine(machines, rows):
        parts += [f"## {markdown(machine.name)}\n", f"{markdown(_facts(machine))}.\n"]
        parts.append(_machine_markdown(mine))
    return "\n".join(filter(None, parts))


_NAMED = Column("model", of=lambda row: Styled(row.model, code=True))


def _models_markdown(rows: Sequence[TrainedRow]) -> str:
    """Of how many runs of each model which verdict holds, by what was predicted."""
    order = [SHOWN["yes"], AT_SOME_SIZE, SHOWN["no"], SHOWN["unknown"]]
    lines = []
    for model in dict.fromkeys(row.model for row in rows):
        for predicted in order:
            mine = [row for row in rows if row.model == model and _predicted(row) == predicted]
            if mine:
                counted = Counter(row.outcome for row in mine)
                numbers = [len(mine), sum(row.tracks for row in mine)]
                numbers += [counted[outcome] for outcome in OUTCOMES]
                lines.append([Styled(model, code=True), predicted, *map(str, numbers)])
    verdicts = [VERDICTS[outcome] for outcome in OUTCOMES]
    head = ("model", "predicted", "runs", "right", *verdicts)
    return table_markdown(Table([Column(each) for each in head], lines))


def _machine_markdown(rows: Sequence[TrainedRow]) -> str:
    """The same as in a terminal, with each interval behind its accuracy."""

    def cell(row: TrainedRow, at: tuple[str, int]) -> Styled | None:
        found = _score(row, at) is not None
        return Styled(_accuracy(row, at), beside=_interval(row, at)) if found else None

    measured, floors = _measured(rows), _floors(rows)
    columns = [
        _NAMED,
        _PREDICTED,
        Column("trained on", key="trained_on"),
        *(Column(f"{at[0]} {at[1]}", of=partial(cell, at=at)) for at in measured),
        Column("seeds", write=str),
        _VERDICT,
    ]
    table = Table.of(columns, rows)
    floor = ["floor", "", "", *(floors.get(at, "-") for at in measured)]
    return table_markdown(Table(columns, [*table.rows, floor]))


def training_values(rows: Sequence[TrainedRow]) -> Table:
    """One line for each run, kind of test words and length."""

    def of_row(name: str) -> Column:
        return Column(name, of=lambda pair: getattr(pair[0], name))

    def of_score(name: str) -> Column:
        return Column(name, of=lambda pair: getattr(pair[1], name))

    pairs: list[tuple[TrainedRow, EvaluationRow]] = [
        (row, score) for row in rows for score in row.scores
    ]
    scored = ("words", "length", "sequences", "accuracy", "low", "high", "symbol_accuracy")
    columns = [
        *map(of_row, ("machine", "family", "model")),
        Column("predicted", of=lambda pair: pair[0].predicted and pair[0].predicted.as_set),
        *map(of_row, ("trained_on", "seeds")),
        *map(of_score, (*scored, "prefix_accuracy", "floor", "seed", "lr")),
        *map(of_row, ("outcome", "seconds")),
    ]
    return Table.of(columns if pairs else (), pairs)
