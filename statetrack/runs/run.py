"""A run: one model with all its replicas, trained on one task, and the folder that keeps it.

    run = Run.start(model="bilinear-cp", task="s3", rank=16, seeds=3)
    for record in run.train():
        print(record.step, record.replica, record.loss)
    print(run.evaluate([500]).selected.accuracy)
    network = run.model()

The files of the folder are described in docs/file-formats.md; the table `files.FILES` names them.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import statetrack
from statetrack.algebra import merging_in
from statetrack.errors import RunError, SettingsError, StatetrackWarning, setting
from statetrack.evaluation import require_words, rising_lengths, scored
from statetrack.evidence import Evidence, Exhaustive, Failure, Subject, WorstCase
from statetrack.models import MODELS, WITH_KERNEL, SequenceModel, recurrence_of
from statetrack.ops import choose_device, keep_freed_memory, set_threads
from statetrack.rounding import Rounding
from statetrack.runs import files, locking
from statetrack.runs.config import Experiment
from statetrack.runs.environment import environment, timestamp
from statetrack.runs.facts import RunFacts
from statetrack.runs.folder import RUNS, RunFolder, drop_replaced, require_new
from statetrack.runs.loggers._opening import Logs, logging, require_logs
from statetrack.runs.origin import StartedFrom
from statetrack.runs.plugins import load_plugins, plugins_of
from statetrack.runs.rows import (
    Conditions,
    Evaluation,
    EvaluationRow,
    EvidenceRow,
    Identity,
    Outcome,
    merged_row,
)
from statetrack.runs.shortcuts import strongest_by_length
from statetrack.runs.tensors import Stored, Unfinished, check_state, summary_of
from statetrack.spec import Task, file_in, folder_name, load_task
from statetrack.text import as_argument
from statetrack.training import (
    LONGEST,
    ROBUST,
    Pending,
    Population,
    Record,
    SeedStreams,
    TaskWords,
    Trainer,
    Words,
    check_logits,
    require_memory,
)


class Prepared(NamedTuple):
    """What training starts from."""

    population: Population
    batches: SeedStreams
    validation: Words


class Run(RunFacts):
    """One run, from its settings to its evaluations; all its files are in its folder."""

    def __init__(self, experiment: Experiment, task: Task, folder: RunFolder) -> None:
        super().__init__(folder)
        self.experiment, self.task = experiment, task
        self._prepared: Prepared | None = None

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.experiment.model} on {self.task.name})"

    @classmethod
    def start(
        cls,
        experiment: Experiment | None = None,
        *,
        out: Path | str | None = None,
        command: str | None = None,
        protocol: str = "",
        force: bool = False,
        start_from: Run | Path | str | None = None,
        **settings: Any,
    ) -> Run:
        """Begin a run: check that it can be trained, and make its folder.

        It is given by an `experiment`, or by `settings` with the names of config.yaml: `model`,
        `task` (a name or a path), the model's own, and those of training. `out` is a folder that
        does not exist yet; by default a new one in `runs`. With `force`, a run that is there is
        replaced, once this one has been checked and begun; it stands beside it, as
        `.NAME.replaced`, until this one has finished. `command` is the command line that
        environment.json records.

        `start_from` is a run, trained or built, with whose selected weights every replica starts;
        its model, the settings of it and its task are this run's where `settings` give no others.

        Raises `StatetrackError` for anything that would make the run fail later; no folder is made
        then.
        """
        if isinstance(settings.get("task"), Path):
            settings["task"] = settings["task"].as_posix()
        _require_names(settings)
        start = None if start_from is None else WarmStart.of(start_from)
        if experiment is None:
            settings = ({} if start is None else start.settings) | settings
            experiment = Experiment.from_values(settings, "Run.start", protocol=protocol)
        elif settings or protocol:
            raise SettingsError("Run.start: give an experiment, or settings, and not both")
        if start is not None:
            experiment = replace(experiment, built=None, started_from=start.about)
        elif experiment.built or experiment.started_from:
            raise SettingsError(
                "Run.start: these settings are of a run whose weights were not random: "
                f"{setting('start_from')} says which run to start from"
            )
        if out is not None:
            require_new(Path(out), force=force)
        recurrence_of(experiment.model_settings)  # a mistake in it is said before training
        task = load_task(experiment.data.task)
        prepared = prepare(experiment, task, start=None if start is None else start.weights)
        device = prepared.batches.device
        model = prepared.population.model
        assert isinstance(model, SequenceModel)
        folder = _first_made(
            new_paths(experiment, task) if out is None else [Path(out)],
            partial(
                RunFolder.start,
                config=experiment.values(),
                task=task.document(),
                environment=environment(device, model, command),
                plugins=plugins_of(experiment.values(), task.spec.automaton),
                frequencies=file_in(experiment.data.words),
                force=force,
            ),
        )
        if start is not None:
            folder.write(files.INITIAL, start.weights)
        run = cls(experiment, task, folder)
        run._prepared = prepared
        return run

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        device: str | None = None,
        trust_plugin: bool = False,
        unfinished: bool = False,
    ) -> Run:
        """The run of an existing folder, with its own copy of the task.

        `device` replaces the one that the run was trained on. With `trust_plugin`, the run's copy
        of a plugin is imported, which executes it, unless the names that the run needs are
        registered already; so is, unasked, one that a run of this machine was begun with. With
        `unfinished`, a run whose training has not finished is read as its last checkpoint has it,
        and the attribute of that name says so: its summary, its models and its scores are those of
        the best weights so far, and nothing is kept in its folder.

        Raises `RunError` where the folder is not a run, where it needs a plugin that is not
        trusted, and with `unfinished` where there are no best weights yet.
        """
        folder = RunFolder.open(Path(path))
        load_plugins(folder, trust=trust_plugin)
        values = folder.read(files.CONFIG)
        if device is not None:
            values["device"] = device
        experiment = Experiment.from_values(values, str(folder.path / files.CONFIG.name))
        task = load_task(str(files.TASK.require(folder.path)))
        run = cls(experiment, task, folder)
        if unfinished:
            run.unfinished = Unfinished.of(folder, experiment)
        return run

    @classmethod
    def resume(
        cls,
        path: Path | str,
        *,
        steps: int | None = None,
        trust_plugin: bool = False,
        command: str | None = None,
    ) -> Run:
        """An interrupted run, whose `train` continues from the last checkpoint.

        With more `steps` than it has, a finished run becomes an interrupted one: its training is
        extended. The first steps stay what they were; from there on, all is as in a training of so
        many steps (`TrainSettings.extended_at`), and what is selected and finished is so again at
        the new end. What was measured of the old weights is not counted any more. `command` is
        what extensions.jsonl records.

        `trust_plugin` is that of `open`. Raises `RunError` as `open` does, where the run has
        finished and no `steps` are given, and where it cannot be extended to these.
        """
        folder = RunFolder.open(Path(path))
        if folder.extending:
            with folder.training():
                if folder.extending:
                    folder.end_beginning()
        run = cls.open(path, trust_plugin=trust_plugin)
        if steps is None or (steps == run.experiment.training.steps and not run.finished):
            run._refuse_if_finished()
            run._refuse_if_computed_otherwise()
            return run
        run._refuse_if_computed_otherwise()
        run._extend(steps, command)
        return cls.open(path, trust_plugin=trust_plugin)

    def _extend(self, steps: int, command: str | None) -> None:
        """Make an interrupted run of a finished one, with more steps."""
        planned = self.experiment.training.steps
        if not self.finished:
            raise RunError(
                f"{self.path}: has not finished its {planned:,} steps: resume it without "
                f"{setting('steps')} first; then it can be extended"
            )
        config = as_argument(self.path / files.CONFIG.name)
        again = f"train it again, with {setting('config')} {config}"
        summary = self.summary
        if steps <= planned:
            raise RunError(
                f"{self.path}: has {planned:,} steps, and {steps:,} are not more: nothing to extend"
            )
        if self.folder.find(files.CELL) is not None:
            raise RunError(
                f"{self.path}: is a point of a suite, whose result is about {planned:,} steps: "
                f"{again}"
            )
        if all(outcome.stopped for outcome in summary.replicas):
            raise RunError(
                f"{self.path}: every replica stopped before its last step, so that more steps "
                f"change nothing: {again}"
            )
        prepared = self._prepare()
        model = prepared.population.model
        assert isinstance(model, SequenceModel)
        extended = self.experiment.extended(steps)
        if (last := self.folder.read(files.LAST)) is not None:
            trainer = Trainer(*prepared, extended.training, self.device)
            try:
                check_state(last, trainer)
            except ValueError as wrong:
                files.LAST.refuse(self.path, str(wrong))
        about = {"from_step": planned, "to_step": steps} | environment(self.device, model, command)
        with self.folder.training():
            if not self.finished:  # another process has extended it
                raise RunError(f"{self.path}: another process has begun to train it")
            self.folder.begin_extension(extended.values(), about)

    def _prepare(self) -> Prepared:
        """What training starts from, with the run's own initial weights where these are kept."""
        start = None
        if self.experiment.started_from is not None:
            start = self.folder.read(files.INITIAL)
        return prepare(self.experiment, self.task, self.words, start=start)

    @cached_property
    def device(self) -> torch.device:
        """The device that the settings name.

        Raises `DeviceError` where it is not available.
        """
        return choose_device(self.experiment.training.device)

    def train(
        self,
        stop: Callable[[], bool] = lambda: False,
        *,
        checkpoint_seconds: float = math.inf,
        log: Sequence[str] = (),
    ) -> Iterator[Record]:
        """Train to the end, from the last checkpoint or else the start; yield the records.

        `stop` is called after every step; when it returns True, or when the iterator is closed, a
        checkpoint is written and training stops. `finished` says whether training has finished.
        Besides those that `checkpoint_every` asks for, a checkpoint is written after the step at
        which the last is `checkpoint_seconds` old. `log` are names of `LOGS`, in which the records
        are written too.

        One process at a time trains a run: from its first record on, the iterator holds a lock,
        until it ends or is closed. Raises `RunError` where another one holds it, where the run has
        already finished, and where a file cannot be written; the last checkpoint stays then.
        """
        self._refuse_if_finished()
        require_logs(log)
        return Pending(self._train(stop, checkpoint_seconds, log), UNUSED)

    def _train(
        self, stop: Callable[[], bool], checkpoint_seconds: float, log: Sequence[str]
    ) -> Iterator[Record]:
        with self.folder.training(), logging(self, log) as logs:
            self._refuse_if_finished()
            yield from self._train_alone(stop, checkpoint_seconds, logs)
            if self.finished:
                logs.end(self.summary)

    def _train_alone(
        self, stop: Callable[[], bool], checkpoint_seconds: float, logs: Logs
    ) -> Iterator[Record]:
        """Train while no other process does."""
        settings, folder = self.experiment.training, self.folder
        self.unfinished = None
        identity = files.identity_of(self.path)
        prepared = self._prepared or self._prepare()
        self._prepared = None
        torch.manual_seed(settings.seed)
        trainer = Trainer(*prepared, settings, self.device)
        seconds, kept = 0.0, False
        if (checkpoint := self.folder.read(files.CHECKPOINT)) is not None:
            try:
                seconds = check_state(checkpoint, trainer)
            except ValueError as wrong:
                files.CHECKPOINT.refuse(self.path, str(wrong))
            trainer.restore(checkpoint["trainer"])
            kept = trainer.stepped
        folder.cut_metrics(trainer.step)
        logs.begin()
        started = time.perf_counter() - seconds
        saved = time.perf_counter()

        def save() -> None:
            nonlocal saved
            saved = time.perf_counter()
            spent = saved - started
            state = {"trainer": trainer.state(), "seconds": spent}
            files.CHECKPOINT.write(self.path, state, identity)

        for records in trainer.run():
            if records:
                folder.append(files.METRICS, records)
                logs.write(records)
            if trainer.stepped and len(trainer.population) and not kept:
                save()  # before the end: its weights are not those that training goes on from
                kept = True
            try:
                yield from records
            except GeneratorExit:
                if not trainer.stepped:
                    save()
                    raise
                if not trainer.finished:  # left at the last step: what follows it is still due
                    for _ in trainer.finish():
                        pass
                self._finish(trainer, time.perf_counter() - started, identity)
                raise
            due = settings.checkpoint_every and trainer.step % settings.checkpoint_every == 0
            due = not kept and (due or time.perf_counter() - saved >= checkpoint_seconds)
            stopping = stop()
            if (due or stopping) and not trainer.finished:
                save()
            if stopping and not trainer.finished:
                return
        self._finish(trainer, time.perf_counter() - started, identity)

    def _finish(self, trainer: Trainer, seconds: float, identity: Identity) -> None:
        """Keep the result, after which the run is finished, and drop what was there for its sake.

        checkpoint.pt, which is of the last step, becomes last.pt where training could go on.
        """
        files.WEIGHTS.write(self.path, trainer.best, identity)
        summary = replace(summary_of(trainer, seconds), weights=self.folder.weights_hash())
        self.folder.write(files.SUMMARY, summary)
        drop_replaced(self.path)
        if len(trainer.population):
            with suppress(OSError):  # then the run cannot be extended
                (self.path / files.CHECKPOINT.name).replace(self.path / files.LAST.name)
        files.remove(self.path, files.CHECKPOINT)
        locking.remove_training_lock(self.path)

    def _refuse_if_finished(self) -> None:
        if self.finished:
            raise RunError(f"{self.path}: this run has finished; nothing is left to resume")

    def _refuse_if_computed_otherwise(self) -> None:
        """Refuse weights of an earlier version, from which the model computed something else."""
        trained_with = str(self.folder.read(files.ENVIRONMENT).get("statetrack", ""))
        since = MODELS[self.experiment.model].same_since
        if trained_with and _numbers(trained_with) < _numbers(since):
            config = as_argument(self.path / files.CONFIG.name)
            raise RunError(
                f"{self.path}: was trained with statetrack {trained_with}, and since {since} "
                f"{self.experiment.model} computes something else from such weights: train it "
                f"again (`statetrack train --config {config}`), or evaluate it with "
                f"statetrack {trained_with}"
            )

    def model(self, replica: int | None = None) -> SequenceModel:
        """A replica with its best weights, in evaluation mode, on the run's device.

        The default is the selected one. Raises `RunError` where the run has not finished, has no
        such replica, or where the replica, or without `replica` every one, diverged.
        """
        ((_, model),) = self.models([self.selected.replica if replica is None else replica])
        return model

    def models(self, replicas: Sequence[int]) -> Iterator[tuple[Outcome, SequenceModel]]:
        """The outcome of each given replica, with one module that then has its weights.

        Raises `RunError` for a replica that diverged: the file holds its initial weights; and where
        the weights are not those of this run's model.
        """
        summary = self.summary
        self._refuse_if_computed_otherwise()
        weights = (
            self.folder.read(files.WEIGHTS) if self.unfinished is None else self.unfinished.weights
        )
        keep_freed_memory()
        model = make_replica(self.experiment, self.task, to_read=True).to(self.device).eval()
        set_threads(self.experiment.training.threads, sum(p.numel() for p in model.parameters()))
        stored = Stored(weights, model)
        stored_in = "weights.safetensors" if self.unfinished is None else "checkpoint.pt"
        if (wrong := stored.difference(len(summary.replicas))) is not None:
            raise RunError(f"{self.path}: {stored_in} does not belong to config.yaml: {wrong}")
        for replica in replicas:
            outcome = summary.of(replica)
            if outcome.diverged:
                raise RunError(
                    f"{self.path}: replica {replica} (lr {outcome.lr:g}) diverged: it has no "
                    "trained weights, since no validation loss of it was finite"
                )
            if (name := stored.not_finite(replica)) is not None:
                raise RunError(
                    f"{self.path}: {stored_in} is damaged: tensor '{name}' of replica "
                    f"{replica} has values that are not finite"
                )
            stored.load(replica)
            yield outcome, model

    def evaluate(
        self,
        lengths: Sequence[int] | int,
        *,
        num_words: int = 2000,
        seed: int = 0,
        everyone: bool = False,
        task: Task | str | Path | None = None,
        words: str | None = None,
    ) -> Evaluation:
        """Score the selected replica (or every one) at each length: see `score`."""
        rows = self.score(
            lengths, num_words=num_words, seed=seed, everyone=everyone, task=task, words=words
        )
        return Evaluation(tuple(rows))

    def tested(self, task: Task | str | Path | None = None, words: str | None = None) -> Task:
        """The task that test words come from: the run's own, or another, with words of some kind.

        Left out, the words are drawn as those of training are; of another task, as it says.
        Raises `SettingsError` for a task with other symbols or labels, and `TaskError` where the
        task has no such words.
        """
        tested = self.task if task is None else load_task(task)
        require_same_names(tested, self.task)
        own = self.words
        if task is None and words in (None, own.data.words):
            return own.drawn
        return tested if words is None else tested.with_words(words)

    def score(
        self,
        lengths: Sequence[int] | int,
        *,
        num_words: int = 2000,
        seed: int = 0,
        everyone: bool = False,
        replicas: Sequence[int] | None = None,
        task: Task | str | Path | None = None,
        words: str | None = None,
        keep: bool = True,
        rounding: Rounding | str | Path | None = None,
    ) -> Iterator[EvaluationRow]:
        """Score the selected replica (or every one, or these) at each length, a row at a time.

        The `num_words` test words of a `seed` are those of the run's own task, drawn as in
        training, or of another `task` with the same symbols and labels; `words` says how else they
        are drawn (`Task.with_words`). Rows are kept in the folder once their replica
        is done, unless `keep` is False, the run was opened unfinished, or the model is computed
        under a `rounding` model (as `evaluate` takes it); where the folder cannot
        be written, a `StatetrackWarning` says so. Replicas that diverged have no rows.

        Raises `SettingsError` and `TaskError` as `tested` does, and `RunError` where training has
        not finished, where all replicas diverged and not `everyone` is asked for, and where the
        file that rows are appended to is damaged.
        """
        tested = self.tested(task, words)
        summary = self.summary
        chosen = replicas
        if chosen is None:
            chosen = summary.trained if everyone else (self.selected.replica,)
        if not chosen:
            return
        lengths = rising_lengths(lengths, "Run.evaluate")
        require_words(num_words, seed, "Run.evaluate")
        kept = keep and rounding is None
        if kept and self.unfinished is None:
            self._require_rows()
        shortcuts = strongest_by_length(self.words, tested, lengths, num_words, seed)
        merging = merging_in(tested.source, lengths[-1])
        hashed = None if self.unfinished is not None else self.folder.weights_hash()
        for outcome, model in self.models(chosen):
            rows = []
            for score in scored(
                model,
                tested,
                lengths,
                num_words=num_words,
                seed=seed,
                device=self.device,
                threads=self.experiment.training.threads,
                rounding=rounding,
            ):
                name, accuracy = shortcuts.get(score.length, (None, None))
                row = EvaluationRow(
                    **asdict(score),
                    replica=outcome.replica,
                    seed=outcome.seed,
                    lr=outcome.lr,
                    selected=outcome.replica == summary.selected,
                    task=tested.name,
                    words=tested.words,
                    shortcut=name,
                    shortcut_accuracy=accuracy,
                    evaluation_seed=seed,
                    merging_horizon=None if merging is None else merging.horizon,
                    weights=hashed,
                )
                rows.append(row)
                yield row
            kept = kept and self._kept(partial(self.folder.append, files.EVALUATIONS, rows))

    def _require_rows(self) -> None:
        """Raise `RunError`, which says what to do, where rows cannot be appended to sound ones."""
        try:
            self.folder.read(files.EVALUATIONS)
        except RunError as problem:
            raise RunError(
                f"{problem}; nothing was evaluated: mend or delete the file, to which rows are "
                "appended"
            ) from None

    def require_automaton(self, task: Task) -> None:
        """Raise `SettingsError`, which names the run and the task, for one without an automaton."""
        Subject.require_automaton(task.source, f"{self.path}: task '{task.name}'")

    def subjects(
        self,
        *,
        replica: int | None = None,
        everyone: bool = False,
        task: Task | str | Path | None = None,
        rounding: Rounding | str | Path | None = None,
    ) -> Iterator[tuple[Outcome, Subject]]:
        """The outcome of each replica that is asked for, and its model as evidence reads it.

        That is the selected one, or the given `replica`, or with `everyone` all that did not
        diverge. `task` and `rounding` are those of `score`. Raises `RunError` and `SettingsError`
        as `models`, `score` and `evidence` do, and `SettingsError` where the task has no automaton.
        """
        if replica is not None and everyone:
            raise SettingsError("give a replica, or ask for every one, and not both")
        self.evidence()  # what cannot be read is said before a search that would add to it
        tested = self.task if task is None else load_task(task)
        require_same_names(tested, self.task)
        self.require_automaton(tested)
        if replica is not None:
            chosen: Sequence[int] = (replica,)
        else:
            chosen = self.summary.trained if everyone else ()
            chosen = chosen or (self.selected.replica,)
        for outcome, model in self.models(chosen):
            yield outcome, Subject(model, tested, rounding=rounding)

    def failures(
        self, outcome: Outcome, task: Task | str | Path | None = None
    ) -> tuple[Failure, ...]:
        """The words of a task that searches have found a replica, as it is now, to fail on.

        `task` is by default the run's own. Raises `RunError` as `evidence` does.
        """
        tested = self.task if task is None else load_task(task)
        return tuple(
            failure
            for row in self.evidence()
            if (row.replica, row.task) == (outcome.replica, tested.name)
            and isinstance(row.evidence, Exhaustive | WorstCase)
            for failure in row.evidence.failures
        )

    def add_evidence(
        self,
        evidence: Evidence,
        outcome: Outcome,
        task: Task | str | Path | None = None,
        *,
        conditions: Conditions | None = None,
        keep: bool = True,
    ) -> EvidenceRow:
        """Append what was found about a replica to evidence.jsonl; where not possible, warn.

        It is not kept where the run was opened unfinished, or `keep` is False.

        `task` is the one whose words were read, by default the run's own.
        """
        tested = self.task if task is None else load_task(task)
        row = EvidenceRow(
            replica=outcome.replica,
            seed=outcome.seed,
            lr=outcome.lr,
            selected=outcome.replica == self.summary.selected,
            task=tested.name,
            version=statetrack.__version__,
            found=timestamp(),
            weights=self.folder.weights_hash(),
            conditions=conditions,
            evidence=evidence,
        )
        if keep:
            self._kept(lambda: self.folder.append(files.EVIDENCE, [row]))
        return row

    def known_with(self, row: EvidenceRow) -> EvidenceRow:
        """What the run knows of a replica, task and kind, with a row that is its last or not kept.

        Raises `RunError` as `evidence` does.
        """
        same = (row.replica, row.task, row.kind)
        for known in self.evidence():
            if (known.replica, known.task, known.kind) == same:
                return merged_row(known, row)
        return row

    def _kept(self, append: Callable[[], None]) -> bool:
        """Append rows to the folder; where that is not possible, warn, and return False.

        Nothing is kept of an unfinished run: its weights are not the ones that it will have.
        """
        if self.unfinished is not None:
            return False
        try:
            append()
        except RunError as problem:
            warnings.warn(
                f"{problem}; these rows are not kept in the run's folder",
                StatetrackWarning,
                stacklevel=3,
            )
            return False
        return True


@dataclass(frozen=True)
class WarmStart:
    """The weights of a run that training is to start with, each tensor [1, ...]."""

    weights: dict[str, Tensor]
    settings: dict[str, Any]
    """The model, its settings and those of the words."""
    about: StartedFrom

    @classmethod
    def of(cls, given: Run | Path | str) -> WarmStart:
        """The weights of the selected replica of a run.

        Raises `RunError` where it has not finished, and where all replicas diverged.
        """
        run = given if isinstance(given, Run) else Run.open(given)
        chosen, model, built = run.selected, run.model(), run.experiment.built
        weights = {name: value.detach().cpu().clone()[None] for name, value in parts_of(model)}
        return cls(
            weights,
            {"model": run.experiment.model}
            | run.experiment.data.model_dump(mode="json")
            | run.experiment.model_settings.model_dump(mode="json"),
            StartedFrom(
                run=run.path.as_posix(),
                replica=chosen.replica,
                weights=run.folder.weights_hash() or "not known",
                built=built is not None,
                noise=0.0 if built is None else built.noise,
            ),
        )


def prepare(
    experiment: Experiment,
    task: Task,
    words: TaskWords | None = None,
    *,
    start: Mapping[str, Tensor] | None = None,
) -> Prepared:
    """The population and the words of an experiment, on its device.

    `words` are by default those of its settings; `start` are the weights that every replica starts
    with, each tensor [1, ...], by default random ones.

    Raises `StatetrackError` for anything that would make training fail later.
    """
    device = choose_device(experiment.training.device)
    keep_freed_memory()

    def make() -> SequenceModel:
        model = make_replica(experiment, task)
        return model if start is None else started(model, start, experiment)

    words = words or TaskWords(task, experiment.data, experiment.training)
    require_memory(make, words, device)
    population = Population(make, experiment.replicas, device)
    check_logits(population.model, task, device)
    population.check_together(min(LONGEST, task.source.longest_word))
    training = experiment.training
    ROBUST[training.robust](training, population.model)  # which refuses models that it is not for
    set_threads(training.threads, sum(v.numel() for v in population.parameters.values()))
    return Prepared(population, *words.on(device))


def make_replica(experiment: Experiment, task: Task, *, to_read: bool = False) -> SequenceModel:
    """One replica, freshly initialised by torch's current seed.

    With `to_read`, the model also runs where the kernel that the weights were trained with cannot.
    """
    settings = experiment.model_settings
    if to_read and isinstance(settings, WITH_KERNEL) and settings.kernel != "torch":
        settings = settings.model_copy(update={"kernel": "auto"})
    kind = MODELS[experiment.model]  # a local variable, by which `explain_mistake` names its file
    model = kind(settings, num_symbols=task.source.num_symbols, num_labels=task.source.num_labels)
    exact = experiment.built is not None and experiment.built.precision == "float64"
    return model.double() if exact else model


def started(
    model: SequenceModel, weights: Mapping[str, Tensor], experiment: Experiment
) -> SequenceModel:
    """A model that is given initial weights, each tensor [1, ...], in its own type.

    One without values, whose size alone is asked for, stays so. Raises `SettingsError` where it
    has other tensors.
    """
    alike = {
        name: weights[name].to(value.dtype) if name in weights else value[None]
        for name, value in parts_of(model)
    }
    source = None if experiment.started_from is None else experiment.started_from.run
    if (more := sorted(weights.keys() - alike.keys())) or len(weights) < len(alike):
        wrong: str | None = f"there is no '{more[0]}'" if more else "there are more tensors"
    else:
        wrong = Stored(alike, model).difference(1)
    if wrong is not None:
        raise SettingsError(
            f"{source}: its weights are not those of such a model: {wrong}; leave its settings as "
            "they are, and give a task with as many symbols and labels"
        )
    if not any(value.is_meta for _, value in parts_of(model)):
        Stored(alike, model).load(0)
    return model


def parts_of(model: torch.nn.Module) -> list[tuple[str, Tensor]]:
    """The parameters and buffers of a model, by name."""
    return [*model.named_parameters(), *model.named_buffers()]


def require_same_names(tested: Task, trained: Task) -> None:
    """Raise `SettingsError` unless two tasks name the same symbols and labels in the same order."""
    for what, theirs, ours in (
        ("symbols", tested.source.symbols, trained.source.symbols),
        ("labels", tested.source.labels, trained.source.labels),
    ):
        if theirs != ours:
            raise SettingsError(
                f"task '{tested.name}' has other {what} than '{trained.name}', which the run was "
                f"trained on: {_difference(theirs, ours)}; a run is tested on tasks whose symbols "
                "and labels have the same names in the same order"
            )


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """The first place at which two lists of names differ, in words."""
    if len(theirs) != len(ours):
        return f"{len(theirs)} and not {len(ours)}"
    place = next(
        place for place, pair in enumerate(zip(theirs, ours, strict=True)) if len({*pair}) == 2
    )
    return f"number {place} is '{theirs[place]}' and not '{ours[place]}'"


def _require_names(settings: Mapping[str, Any]) -> None:
    """Raise `SettingsError` where a module or a task is given in place of its name."""
    model, task = settings.get("model"), settings.get("task")
    if model is not None and not isinstance(model, str):
        kind = model.__name__ if isinstance(model, type) else type(model).__name__
        raise SettingsError(
            f"Run.start: 'model' is the name of a registered model, and {kind} is none: "
            "statetrack.fit trains a module in memory; for a run, register its class in a file and "
            "load that by statetrack.load_plugin"
        )
    if task is not None and not isinstance(task, str):
        raise SettingsError(
            f"Run.start: 'task' is a task's name or the path of its file (given: a "
            f"{type(task).__name__}): write it to a file by its document(), and give the path"
        )


UNUSED = (
    "Run.train: nothing was trained, since a step is taken as the iterator asks for records: loop "
    "over it, as in `for record in run.train(): ...`"
)


def new_paths(experiment: Experiment, task: Task) -> Iterator[Path]:
    """Paths in `runs` that do not exist yet: model, task and time, from the second on numbered."""
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = folder_name(task.name)
    name = Path(name).stem if name.endswith(".yaml") else name
    base = f"{folder_name(experiment.model)}_{name}_{now}"
    candidates = (RUNS / (base if n == 1 else f"{base}-{n}") for n in count(1))
    return (path for path in candidates if not path.exists())


def _first_made(paths: Iterable[Path], make: Callable[[Path], RunFolder]) -> RunFolder:
    """A new folder at the first path that no other process takes in the meantime.

    Raises the last error of `make` where none can be made.
    """
    taken: RunError | None = None
    for path in paths:
        try:
            return make(path)
        except RunError as problem:
            if not path.exists():
                raise
            taken = problem
    assert taken is not None, "there is a path"
    raise taken


def _numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version, to compare it by."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
