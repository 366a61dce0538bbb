"""What `eval` adds with `--stress` and `--errors`: the worst word, and test words that fail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from statetrack import evidence, report, runs, sources, spec
from statetrack.cli._json import failure_json
from statetrack.text import visible


@dataclass(frozen=True)
class Stressed:
    """The worst case of one replica, beside the horizon of its test words."""

    outcome: runs.Outcome
    selected: bool
    found: evidence.WorstCase
    window: evidence.Window | None
    random_horizon: int

    def to_json(self, source: sources.Source) -> dict[str, Any]:
        """As `eval --json` prints it: an entry of `stress`."""
        from statetrack.scoring import plain  # numpy, which `--help` does not need

        about = _about(self.outcome, self.selected)
        found = self.found
        content: dict[str, Any] = plain(
            about
            | {
                "horizon": found.horizon,
                "random_horizon": self.random_horizon,
                "failure": failure_json(found.failure, source),
                "window": None if self.window is None else _window_json(self.window, source),
                "evidence": asdict(found),
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

    outcome: runs.Outcome
    selected: bool
    found: evidence.FailingWords
    words: str
    """How the words were drawn."""

    def to_json(self, source: sources.Source) -> dict[str, Any]:
        """As `eval --json` prints it: an entry of `errors`."""
        found = self.found
        return _about(self.outcome, self.selected) | {
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


def stressed(
    run: runs.Run, task: spec.Task, rows: Sequence[runs.EvaluationRow], *, seconds: float, seed: int
) -> Iterable[Stressed]:
    """The worst case of every replica that has rows; each is kept in the run's folder."""
    import numpy as np

    from statetrack.cli._progress import searching
    from statetrack.scoring import horizon

    selected = run.summary.selected
    for outcome, model in run.models(_replicas(rows)):
        subject = evidence.Subject(model, task)
        with searching(f"replica {outcome.replica}", seconds) as budget:
            found = evidence.find_worst_case(subject, budget=budget, seed=seed)
        run.add_evidence(found, outcome, task)
        window = None
        if (failure := found.failure) is not None:
            window = evidence.window_of(subject, np.array(failure.word), failure.position)
        mine = [row for row in rows if row.replica == outcome.replica]
        chosen = outcome.replica == selected
        yield Stressed(outcome, chosen, found, window, horizon(mine))


def errors_of(
    run: runs.Run,
    task: spec.Task,
    rows: Sequence[runs.EvaluationRow],
    *,
    samples: int,
    seed: int,
    most: int,
) -> Iterable[Errors]:
    """The failing test words of the longest length, of every replica that has rows."""
    selected = run.summary.selected
    rows = [row for row in rows if row.words == task.words]
    longest = max((row.length for row in rows), default=0)
    for outcome, model in run.models(_replicas(rows)) if rows else ():
        found = evidence.find_failing_words(
            model,
            task.source,
            longest,
            num_words=samples,
            seed=seed,
            most=most,
            device=run.device,
        )
        yield Errors(outcome, outcome.replica == selected, found, task.words)


def _replicas(rows: Sequence[runs.EvaluationRow]) -> list[int]:
    return list(dict.fromkeys(row.replica for row in rows))


def _about(outcome: runs.Outcome, selected: bool) -> dict[str, Any]:
    return {
        "replica": outcome.replica,
        "seed": outcome.seed,
        "lr": outcome.lr,
        "selected": selected,
    }


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
