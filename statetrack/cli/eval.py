"""Evaluate trained runs on long words."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from statetrack import algebra, evidence, pictures, report, sources, spec
from statetrack import runs as running
from statetrack.cli import _terminal as terminal
from statetrack.cli import _warnings as warnings
from statetrack.cli import options
from statetrack.cli._terminal import (
    evidence_json,
    failure_json,
    replica_json,
    require_writable,
    searching,
)
from statetrack.errors import RunError, SettingsError, StatetrackError
from statetrack.rounding import Rounding, load_rounding
from statetrack.text import GREATEST_SEED, visible

PLACE = 3
"""Its place among the commands that `statetrack --help` lists."""

SECONDS = 20.0
"""The work of `--stress` where no option says more or less."""

CURVE_FROM = 5
"""The least number of lengths for which a curve is drawn below the table."""


def command(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN ...]", help="Run folders, or folders of them; by default the newest run."
        ),
    ] = None,
    *,
    task: Annotated[
        str | None,
        typer.Option(
            help="Test on the words of another task with the same symbols and labels.",
            metavar="TASK",
        ),
    ] = None,
    length: Annotated[
        list[str] | None,
        typer.Option(
            help="500, or a range as 10-1000:10 or 10-100000:x10; repeatable. By default the "
            "task's own.",
            metavar="LENGTH",
        ),
    ] = None,
    words: options.TestWords = None,
    samples: Annotated[int, typer.Option(help="Test words.", min=1, max=10**7)] = 2000,
    seed: Annotated[
        int, typer.Option(help="Seed of the test words.", min=0, max=GREATEST_SEED)
    ] = 0,
    everyone: options.Everyone = False,
    as_json: options.AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="The rows as CSV on stdout.")] = False,
    out: terminal.Out = None,
    force: terminal.Force = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw accuracy by length into a file whose name ends in .svg, .pdf or .png.",
        ),
    ] = None,
    errors: Annotated[
        int,
        typer.Option(
            help="Show so many test words of the longest length that are answered wrongly.",
            metavar="N",
            min=0,
            max=10_000,
        ),
    ] = 0,
    stress: Annotated[
        bool,
        typer.Option("--stress", help="Search for the word that is answered wrongly earliest."),
    ] = False,
    seconds: Annotated[
        float,
        typer.Option(
            help="Work of --stress, for each replica, in seconds of a nominal speed.",
            min=0.1,
            max=10**6,
        ),
    ] = SECONDS,
    rounding: options.RoundingModel = None,
    device: options.Device = None,
    trust_plugin: options.TrustPlugin = False,
) -> None:
    """Evaluate trained runs on long words: accuracy by length, with its floor.

    A run that has not finished is evaluated at the best weights of its last checkpoint; the output
    says so, and nothing is kept in its folder. Of several runs, one that cannot be evaluated is
    named, the others are evaluated, and the exit code is 1.

    Words of all lengths are prefixes of the same test words; for a sampler, separate words are
    drawn for each length. They are of the kind that training drew, or of each kind that `--words`
    names. They are drawn apart from those of training. Words longer than those of
    training are new to the model; shorter ones may occur in training too. Accuracy is that at the
    last scored position of each word; `symbols` counts all scored positions (token accuracy), and
    `prefixes` words without any mistake (exact match). An answer whose logits are not all finite is
    wrong. The sentence below the table is about the answers at all positions.

    Examples:
        statetrack eval
        statetrack eval runs/mine --length 100-1000:100 --all
        statetrack eval runs/mine --stress --seconds 60
        statetrack eval runs/mine --rounding bfloat16 --length 10-10000:x10

    """
    if as_json and as_csv:
        raise SettingsError("--json and --csv: choose one")
    if seconds != SECONDS and not stress:
        raise SettingsError("--seconds: is the work of --stress: give that as well")
    if as_csv and (stress or errors):
        raise SettingsError("--csv has rows of accuracies only: leave out --stress and --errors")
    if as_csv and terminal.named_file(out, force=force) is not None:
        raise SettingsError("--csv: prints CSV: leave it out, or --out")
    file = terminal.wanted_file(out, force=force, as_json=as_json)
    if file is not None and (stress or errors) and report.format_of(file) != "json":
        raise SettingsError(
            f"--out {file}: has rows of accuracies only: leave out --stress and --errors, or name "
            "a file that ends in .json"
        )
    if plot is not None:
        pictures.check_path(plot)
        require_writable(plot, "--plot")
    lengths = tuple(sources.parse_lengths(length or []))
    if plot is not None and len(lengths) < 2:
        raise SettingsError(
            "--plot: is drawn by length: give two lengths or more, such as --length 10-10000:x10"
        )
    other = None if task is None else spec.load_task(task)
    kinds = tuple(dict.fromkeys(words or ()))
    how = None if rounding is None else load_rounding(rounding)

    def evaluated(path: Path, said: str) -> Evaluated:
        running.RunFolder.open(path)  # where there is none, this is said before torch is imported
        run = running.Run.open(path, device=device, trust_plugin=trust_plugin, unfinished=True)
        tested = [run.tested(other, words) for words in kinds or (None,)]
        task = other or run.task
        if stress:
            run.require_automaton(task)
        # where no replica is selected, `score` says why
        all_of_them = everyone and run.summary.selected is not None
        at = lengths or task.spec.test_lengths
        scoring = itertools.chain.from_iterable(
            run.score(
                at, num_words=samples, seed=seed, everyone=all_of_them, task=kind, rounding=how
            )
            for kind in tested
        )
        found: list[running.EvaluationRow] = []
        with terminal.status(f"evaluating {said or path}") as shown:
            shown.say(f"{samples:,} words, to length {max(at):,}")
            for row in scoring:
                found.append(row)
                shown.say(f"{samples:,} words, length {row.length:,} of {max(at):,}")
        rows = tuple(found)
        worst = tuple(_stressed(run, task, rows, seconds, seed, how)) if stress else None
        wrong = [_errors(run, kind, rows, samples, seed, errors, how) for kind in tested if errors]
        return Evaluated(
            run=run,
            task=task,
            samples=samples,
            everyone=all_of_them,
            rows=rows,
            stress=worst,
            errors=tuple(itertools.chain.from_iterable(wrong)) if errors else None,
            kinds=tuple(tested),
            rounding=rounding,
        )

    found = _evaluate_all(runs or (), evaluated)
    caption: tuple[str, ...] = ()
    if plot is not None and any(each.rows for each in found.evaluated):
        gathered, look = _gathered(found), pictures.Look()
        caption = pictures.draw_report(gathered, "length", plot, pictures.Choice(), look)
    drawn = not (as_json or as_csv or file is not None)
    if file is not None:
        terminal.write_document(found.document(), file)
    elif as_json:
        typer.echo(running.to_json(found.to_json()))
    elif as_csv:
        terminal.show_document(found.document(), "csv")
    else:
        found.draw()
    if not (as_json or as_csv):
        for line in caption:
            report.console().print(f"{line}.")
        if caption:
            typer.echo(f"figure: {plot}")
    for each in found.evaluated:
        each.warn(str(each.run.path) if found.several else "", told=drawn)
    terminal.say_warnings()
    if drawn:
        typer.echo(found.last_line)
    if found.failed:
        names = [str(each) for each in found.failed]
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        number = len(names) + len(found.evaluated)
        raise RunError(f"{len(names)} of {number} runs could not be evaluated: {shown}")


def _evaluate_all(given: Sequence[Path], evaluated: Callable[[Path, str], Evaluated]) -> Found:
    """Evaluate run folders, or folders that hold them at any depth, one after the other.

    Of several, those that cannot be evaluated are named on standard error at once. Raises
    `RunError`, before any is evaluated, for a place without runs.
    """
    for place in given:
        if place.name.isdigit() and not place.exists():
            raise RunError(
                f"{place}: there is no such folder; a length is given by --length {place}"
            )
    failed: dict[Path, str] = {}

    def fail(run: Path, error: str) -> None:
        failed[run] = error
        line = visible(" ".join(error.splitlines()))
        named = line if str(run) in error else f"{run}: {line}"
        report.error_console().print(f"warning: not evaluated: {named}")

    if not given:
        return Found((evaluated(running.newest_run(running.RUNS).path, ""),), {}, several=False)
    if len(given) == 1 and not _holds_runs(given[0]):
        return Found((evaluated(given[0], ""),), {}, several=False)
    done = []
    for folder in running.find_run_folders(given):
        try:
            done.append(evaluated(folder, str(folder)))
        except StatetrackError as problem:
            fail(folder, problem.message(options.written))
    return Found(tuple(done), failed, several=True)


def _holds_runs(place: Path) -> bool:
    """Whether a folder is no run itself, and holds any."""
    try:
        return running.find_run_folders([place]) != [place]
    except RunError:
        return False


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """The scores of one run, with what `--stress` and `--errors` found."""

    run: running.Run
    task: spec.Task
    samples: int
    everyone: bool
    rows: tuple[running.EvaluationRow, ...]
    stress: tuple[Stressed, ...] | None
    errors: tuple[Errors, ...] | None
    kinds: tuple[spec.Task, ...]
    """The task with every kind of words that was tested on."""
    rounding: str | None = None
    """The rounding model under which it was computed."""

    @cached_property
    def merging(self) -> dict[str, algebra.Merging | None]:
        """How soon the words of every kind, of the longest length, merge the states of the task."""
        longest = max((row.length for row in self.rows), default=1)
        return {kind.words: algebra.merging_in(kind.source, longest) for kind in self.kinds}

    @property
    def about(self) -> dict[str, str]:
        """The run's folder, its task and its model."""
        return {
            "run": str(self.run.path),
            "task": self.run.task.name,
            "model": self.run.experiment.model,
        }

    @property
    def unfinished(self) -> dict[str, int] | None:
        """The step of the checkpoint and the number of steps, of a run that has not finished."""
        now = self.run.unfinished
        return None if now is None else {"step": now.summary.steps, "steps": now.steps}

    def to_json(self) -> dict[str, Any]:
        """As `eval --json` prints it."""
        found: dict[str, Any] = {**self.about, "unfinished": self.unfinished}
        found["rows"] = [row.to_json() for row in self.rows]
        found["merging"] = {
            words: merging and merging.to_json() for words, merging in self.merging.items()
        }
        found["rounding"] = self.rounding
        found["extended_at"] = list(self.run.experiment.training.extended_at)
        if self.stress is not None:
            found["stress"] = [each.to_json(self.task.source) for each in self.stress]
        if self.errors is not None:
            found["errors"] = [each.to_json(self.task.source) for each in self.errors]
        return found

    def csv_rows(self) -> list[dict[str, Any]]:
        """The rows as `eval --csv` prints them."""
        now = self.unfinished
        step = {"unfinished_step": None if now is None else now["step"]}
        return [self.about | row.to_json() | step for row in self.rows]

    @property
    def rising(self) -> list[running.EvaluationRow]:
        """The rows in rising order of length, kind by kind of words."""
        kinds = list(dict.fromkeys(row.words for row in self.rows))
        return sorted(self.rows, key=lambda row: (kinds.index(row.words), row.length))

    @property
    def by_words(self) -> dict[str, list[running.EvaluationRow]]:
        """The rising rows of each kind of words."""
        kinds: dict[str, list[running.EvaluationRow]] = {}
        for row in self.rising:
            kinds.setdefault(row.words, []).append(row)
        return kinds

    @property
    def title(self) -> str:
        """The model, the tasks, and that the run has not finished."""
        trained, tested = self.about["task"], self.task.name
        where = f"on {tested}" if tested == trained else f"of {trained} on {tested}"
        title = f"{self.about['model']} {where}"
        if [*self.by_words] not in ([], [spec.OWN]):
            title += f", {', '.join(map(visible, self.by_words))} words"
        if self.rounding is not None:
            title += f", rounding {self.rounding}"
        return title if self.run.unfinished is None else f"{title}, {self.run.unfinished}"

    def sentences(self, before: str = "") -> Iterator[str]:
        """One sentence for each replica, and what the words test at most."""
        for kind, rows in self.by_words.items():
            of = f"{visible(kind)} words, " if len(self.by_words) > 1 else ""
            for replica in dict.fromkeys(row.replica for row in rows):
                mine = [row for row in rows if row.replica == replica]
                about = f"{of}seed {mine[0].seed}, lr {mine[0].lr:g}"
                yield f"{before}{about}: {report.closing_sentence(mine)}"
            merging, longest = self.merging[kind], max(row.length for row in rows)
            if merging is not None and (limit := merging.limit_of(longest)):
                on = f"{visible(kind)} words" if len(self.by_words) > 1 else "these words"
                yield f"{before}on {on}, {limit}"

    @property
    def table(self) -> report.Table:
        """Accuracy by length."""
        return report.evaluation_table(f"{self.title}, {self.samples:,} words", self.rising)

    def draw(self) -> None:
        """The table, the curve, and what follows."""
        out = report.console()
        out.print(self.table)
        if len({row.length for row in self.rows}) >= CURVE_FROM:
            for kind, mine in self.by_words.items():
                if len(self.by_words) > 1:
                    typer.echo(f"words: {visible(kind)}")
                coloured = out.color_system is not None and not out.no_color
                curve = report.accuracy_curve(
                    mine, width=out.width, coloured=coloured, ascii_only=out.in_ascii
                )
                typer.echo(curve)
        for line in self.sentences():
            out.print(line)
        self.draw_words()

    def draw_words(self) -> None:
        """The worst words, and those that fail."""
        shown: list[Stressed | Errors] = [*(self.stress or ()), *(self.errors or ())]
        for each in shown:
            each.draw(self.task.source)

    def warn(self, of: str, *, told: bool) -> None:
        """The warnings about the scores; `of` names the run.

        Where the sentences below the table are `told`, what they say is not said again.
        """
        if self.everyone:
            warnings.warn_of_divergence(self.run.summary, of)
        if not told:
            warnings.warn_of_nonfinite_logits(self.rows, of)
        warnings.warn_of_trained_lengths(self.rows, self.run.words.lengths, of)
        for kind, rows in self.by_words.items():
            on = f"on {kind} words " if len(self.by_words) > 1 else ""
            warnings.warn_of_shortcuts(rows, of, on)
        if not any(task.words.startswith("group") for task in self.kinds):
            for task in self.kinds:
                warnings.warn_of_hidden_groups(self.rows, task, of, told=told)


@dataclass(frozen=True)
class Found:
    """The evaluations of all runs, and the runs that could not be evaluated."""

    evaluated: tuple[Evaluated, ...]
    failed: Mapping[Path, str]
    several: bool

    def to_json(self) -> dict[str, Any]:
        """One object: of the run, or with `runs` and `failed`."""
        if not self.several:
            return self.evaluated[0].to_json()
        failed = [{"run": str(run), "error": error} for run, error in self.failed.items()]
        return {"runs": [each.to_json() for each in self.evaluated], "failed": failed}

    def csv_rows(self) -> list[dict[str, Any]]:
        """The rows of all runs."""
        return [row for each in self.evaluated for row in each.csv_rows()]

    def document(self) -> report.Document:
        """The table and its sentences, for a file."""
        return report.Document(
            title="accuracy by length",
            parts=lambda: [self.table, *(line for lines in self.sentences() for line in lines)],
            rows=lambda: report.values_table(self.csv_rows()),
            json=self.to_json,
        )

    @property
    def last_line(self) -> str:
        """The run; of several how many were evaluated."""
        if not self.several:
            return f"run: {self.evaluated[0].run.path}"
        number = len(self.evaluated)
        return f"evaluated: {number} of {number + len(self.failed)} runs"

    @property
    def names(self) -> list[str]:
        """The runs as they are told apart."""
        paths = [str(each.run.path) for each in self.evaluated]
        below = _common_folder(paths)
        return [os.path.relpath(path, below) if below else path for path in paths]

    @property
    def table(self) -> report.Table:
        """A table of all runs."""
        if not self.several:
            return self.evaluated[0].table
        marked = [
            name if each.run.unfinished is None else f"{name} ({each.run.unfinished})"
            for name, each in zip(self.names, self.evaluated, strict=True)
        ]
        below = _common_folder([str(each.run.path) for each in self.evaluated])
        words = f"{self.evaluated[0].samples:,} words" if self.evaluated else "no words"
        number = "1 run" if len(marked) == 1 else f"{len(marked)} runs"
        title = f"{number} in {below}, {words}" if below else f"{number}, {words}"
        rows = [(mark, each.rising) for mark, each in zip(marked, self.evaluated, strict=True)]
        return report.evaluations_table(title, rows)

    def sentences(self) -> Iterator[list[str]]:
        """The sentences of each run."""
        for name, each in zip(self.names, self.evaluated, strict=True):
            yield list(each.sentences(f"{name} ({each.title}): " if self.several else ""))

    def draw(self) -> None:
        """A table of all runs, with their sentences."""
        if not self.several:
            self.evaluated[0].draw()
        elif self.evaluated:
            to = report.console()
            to.print(self.table)
            for each, lines in zip(self.evaluated, self.sentences(), strict=True):
                for line in lines:
                    to.print(line)
                each.draw_words()


def _gathered(found: Found) -> report.Report:
    """The scores as a report, whose columns are the tasks that were tested on."""
    asked = [
        report.Placeable(each.run.experiment.model, each.task.name, each.run.experiment.values())
        for each in found.evaluated
    ]
    places = report.places_of(asked)
    rows, columns = report.in_order(asked, places)
    entries = [
        entry
        for each, place in zip(found.evaluated, places, strict=True)
        for entry in _entries(each, place)
    ]
    title = found.evaluated[0].title if len(entries) == 1 else f"{len(entries)} runs"
    return report.Report(
        title=title,
        entries=tuple(entries),
        row_names=tuple(rows),
        column_names=tuple(columns),
        length=max((row.length for entry in entries for row in entry.rows), default=0),
    )


def _entries(found: Evaluated, place: report.Placed) -> Iterator[report.Entry]:
    """An entry for each kind of words: their accuracies do not stand in one curve."""
    run, summary = found.run, found.run.summary
    entry = report.Entry(
        row=place.row,
        column=place.column,
        axes=place.axes,
        run=run.path,
        state="finished" if run.unfinished is None else "unfinished",
        model=run.experiment.model,
        task=found.task.name,
        settings=run.experiment.values(),
        replicas=len(summary.replicas),
        diverged=len(summary.diverged),
        steps=summary.steps,
        trained_to=run.words.lengths.longest,
        outcomes=summary.replicas,
        selected=summary.selected,
        rows=found.rows,
    )
    if len(found.by_words) < 2:
        yield entry
        return
    for kind, rows in found.by_words.items():
        row = f"{entry.row}, {kind} words" if entry.row else f"{kind} words"
        yield replace(entry, row=row, axes={**entry.axes, "words": kind}, rows=tuple(rows))


def _common_folder(paths: Sequence[str]) -> str:
    """The folder that holds all runs; empty where that is the current one or a root."""
    if len(paths) < 2:
        return ""
    try:
        common = os.path.commonpath(paths)
    except ValueError:  # some absolute, others not
        return ""
    return "" if common in ("", ".", os.sep) or common in paths else common


@dataclass(frozen=True)
class Stressed:
    """The worst case of one replica, beside the horizon of its test words."""

    outcome: running.Outcome
    selected: bool
    found: evidence.WorstCase
    window: evidence.Window | None
    random_horizon: int
    origin: dict[str, Any]

    def to_json(self, source: sources.Source) -> dict[str, Any]:
        """As `eval --json` prints it: an entry of `stress`."""
        from statetrack.scoring import plain  # numpy, which `--help` does not need

        about, found = replica_json(self.outcome, self.selected), self.found
        content: dict[str, Any] = plain(
            about
            | {
                "horizon": found.horizon,
                "random_horizon": self.random_horizon,
                "failure": failure_json(found.failure, source),
                "window": None if self.window is None else _window_json(self.window, source),
                "evidence": evidence_json(found, source),
                "found": self.origin,
            }
        )
        return content

    def draw(self, source: sources.Source) -> None:
        """The report."""
        out = report.console()
        out.print(f"seed {self.outcome.seed}, lr {self.outcome.lr:g}, worst words")
        names = source.symbols, source.labels
        for line in self.found.beside(self.random_horizon, source):
            out.print(f"  {line}")
        if self.window is not None:
            out.print(report.window_table(self.window, *names, out.width))
        out.print(*report.drawn([self.found.families_tried(source)], indent="  "))


@dataclass(frozen=True)
class Errors:
    """The test words that one replica answers wrongly."""

    outcome: running.Outcome
    selected: bool
    found: evidence.FailingWords
    words: str
    """How the words were drawn."""

    def to_json(self, source: sources.Source) -> dict[str, Any]:
        """As `eval --json` prints it: an entry of `errors`."""
        found = self.found
        return replica_json(self.outcome, self.selected) | {
            "drawn": self.words,
            "length": found.length,
            "sequences": found.words,
            "failing": found.failing,
            "words": [{"word": each.word} | _window_json(each, source) for each in found.shown],
        }

    def draw(self, source: sources.Source) -> None:
        """The report."""
        out = report.console()
        outcome, names = self.outcome, (source.symbols, source.labels)
        line = report.failing_words_line(self.found)
        of = "" if self.words == spec.OWN else f"{visible(self.words)} words, "
        out.print(f"{of}seed {outcome.seed}, lr {outcome.lr:g}: {line}")
        for each in self.found.shown:
            answer = "no answer" if each.answer is None else source.labels[each.answer]
            assert each.label is not None, "a label is asked for where an answer is wrong"
            out.print(
                f"word {each.word:,}, position {each.position:,}: the answer is {answer}, and "
                f"{source.labels[each.label]} is right",
            )
            out.print(report.window_table(each, *names, out.width))


def _stressed(
    run: running.Run,
    task: spec.Task,
    rows: Sequence[running.EvaluationRow],
    seconds: float,
    seed: int,
    rounding: Rounding | None,
) -> Iterable[Stressed]:
    """The worst case of every replica that has rows; each is kept in the run's folder.

    Under a rounding model it is not.
    """
    import numpy as np

    from statetrack.scoring import horizon

    run.evidence()  # what cannot be read is said before a search that would add to it
    selected = run.summary.selected
    for outcome, model in run.models(_replicas(rows)):
        subject = evidence.Subject(model, task, rounding=rounding)
        what = f"{run.experiment.model} on {task.name}, replica {outcome.replica}"
        with searching(what, seconds) as budget:
            found = evidence.WorstCase.search(subject, budget=budget, seed=seed)
        conditions = running.Conditions.of(subject, seed, seconds)
        keep = rounding is None
        row = run.add_evidence(found, outcome, task, conditions=conditions, keep=keep)
        window = None
        if (failure := found.failure) is not None:
            window = evidence.window_of(subject, np.array(failure.word), failure.position)
        mine = [row for row in rows if row.replica == outcome.replica]
        chosen = outcome.replica == selected
        yield Stressed(outcome, chosen, found, window, horizon(mine), row.origin)


def _errors(
    run: running.Run,
    task: spec.Task,
    rows: Sequence[running.EvaluationRow],
    num_words: int,
    seed: int,
    most: int,
    rounding: Rounding | None,
) -> Iterable[Errors]:
    """The failing test words of the longest length, of every replica that has rows."""
    from statetrack.models import Rounded

    selected = run.summary.selected
    rows = [row for row in rows if row.words == task.words]
    longest = max((row.length for row in rows), default=0)
    for outcome, model in run.models(_replicas(rows)) if rows else ():
        found = evidence.find_failing_words(
            model if rounding is None else Rounded(model, rounding),
            task.source,
            longest,
            num_words=num_words,
            seed=seed,
            most=most,
            device=run.device,
        )
        yield Errors(outcome, outcome.replica == selected, found, task.words)


def _replicas(rows: Sequence[running.EvaluationRow]) -> list[int]:
    return list(dict.fromkeys(row.replica for row in rows))


def _window_json(window: evidence.Window, source: sources.Source) -> dict[str, Any]:
    """A window by the names of symbols and labels."""

    def named(row: Sequence[int | None]) -> list[str | None]:
        return [None if each is None else source.labels[each] for each in row]

    return {
        "position": window.position,
        "begin": window.begin,
        "symbols": [source.symbols[each] for each in window.symbols],
        "labels": named(window.labels),
        "answers": named(window.answers),
    }
