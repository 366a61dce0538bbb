"""The one place where the stations are joined: a task, a model, training, a run folder.

An `Experiment` is everything a run depends on, and is what `config.yaml` holds, flat.
"""

from __future__ import annotations

import datetime
import itertools
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

import statetrack
from statetrack.audit import Shortcuts, best_by_length, draw_tests
from statetrack.data import (
    Batch,
    BatchStream,
    LengthDistribution,
    WordStream,
    count_words,
    fixed_words,
)
from statetrack.errors import DeviceError, RunError, SettingsError, nearest
from statetrack.evaluation import Score, evaluate
from statetrack.models import MODELS
from statetrack.models._base import SequenceModel
from statetrack.models._settings import KernelSettings
from statetrack.ops.memory import keep_freed_memory
from statetrack.registry import load_plugin, plugin_file
from statetrack.runs import RunFolder, to_json, to_yaml
from statetrack.settings import Settings, build, option
from statetrack.sources import Automaton, Source
from statetrack.spec import Task, load_task
from statetrack.training import Population, Record, Trainer, TrainSettings
from statetrack.training.population import Replica, replicas_of
from statetrack.training.words import SeedStreams, Words, to_words


class DataSettings(Settings):
    """Which words a model is trained on."""

    task: str = option("modular-addition", "A task's name, or a path ending in .yaml.")
    train_length: str = option(
        "task", "Lengths to train on, as 2-10 or 10; `task`: the task's own."
    )
    curriculum: float = option(
        0.0,
        "Share of the steps over which the longest length grows; 0 means all lengths at once.",
        min=0,
        max=1,
    )
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    train_samples: int = option(
        0,
        "A fixed training set of so many distinct words; 0 means fresh words at every step.",
        min=0,
    )


@dataclass(frozen=True)
class Experiment:
    """A model, its settings, the words and the training: everything a run depends on."""

    model: str
    model_settings: Settings
    data: DataSettings
    training: TrainSettings

    @classmethod
    def from_values(cls, values: Mapping[str, Any], where: str) -> Experiment:
        """An experiment from flat values, as in config.yaml; what is left out has its default.

        Defaults are those of the settings' classes, and before them the training settings
        that work for the model. Raises `SettingsError`, which `where` opens, for a wrong one.
        """
        if "model" not in values:
            raise SettingsError(f"{where}: 'model' is missing")
        model_class = MODELS[str(values["model"])]
        parts = (model_class.settings_class, DataSettings, TrainSettings)
        known = {"model", *(name for part in parts for name in part.model_fields)}
        for key in values:
            if key not in known:
                raise SettingsError(f"{where}: unknown setting '{key}'.{nearest(key, known)}")
        filled = {**model_class.training_defaults, **values}
        model_settings, data, training = (
            build(part, {k: v for k, v in filled.items() if k in part.model_fields}, where)
            for part in parts
        )
        assert isinstance(data, DataSettings) and isinstance(training, TrainSettings)
        return cls(str(values["model"]), model_settings, data, training)

    def values(self) -> dict[str, Any]:
        """All settings, flat, as plain values: the content of config.yaml."""
        parts = (self.data, self.model_settings, self.training)
        flat: dict[str, Any] = {"model": self.model}
        for part in parts:
            flat |= part.model_dump(mode="json")
        return flat

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """Every seed at every learning rate."""
        training = self.training
        return replicas_of(range(training.seed, training.seed + training.seeds), training.lrs)


@dataclass(frozen=True)
class Setup:
    """An experiment with its task loaded and its defaults resolved."""

    experiment: Experiment
    task: Task

    @classmethod
    def of(cls, experiment: Experiment) -> Setup:
        """The set-up of an experiment whose task goes by name."""
        return cls(experiment, load_task(experiment.data.task))

    def tested_on(self, task: Task) -> Setup:
        """The same set-up with the words of another task.

        Raises `SettingsError` unless its symbols and labels are those of the task trained on.
        """
        for what in ("symbols", "labels"):
            ours: tuple[str, ...] = getattr(self.source, what)
            theirs: tuple[str, ...] = getattr(task.source, what)
            if ours != theirs:
                raise SettingsError(
                    f"task '{task.name}' has other {what} than '{self.task.name}', which the run "
                    f"was trained on: {_difference(theirs, ours)}; a run is tested on tasks whose "
                    "symbols and labels have the same names in the same order"
                )
        return replace(self, task=task)

    @cached_property
    def device(self) -> torch.device:
        """The device that the settings ask for."""
        return choose_device(self.experiment.training.device)

    @property
    def source(self) -> Source:
        """The task's automaton, or the sampler that its words come from."""
        return self.task.source

    @property
    def supervision(self) -> Literal["every", "last"]:
        """Where labels are given in training."""
        asked = self.experiment.data.supervision
        return self.task.spec.supervision if asked == "task" else asked

    @property
    def lengths(self) -> LengthDistribution:
        """The lengths to train on."""
        data = self.experiment.data
        if data.train_length == "task":
            return LengthDistribution(*self.task.spec.train_length, data.curriculum)
        return LengthDistribution.parse(data.train_length, data.curriculum)

    def make_model(self, *, to_read: bool = False) -> SequenceModel:
        """One replica, freshly initialised by torch's current seed.

        One that is made `to_read` trained weights runs also where the kernel that trained them
        cannot.
        """
        settings = self.experiment.model_settings
        if to_read and isinstance(settings, KernelSettings) and settings.kernel == "fla":
            settings = settings.model_copy(update={"kernel": "auto"})
        return MODELS[self.experiment.model](
            settings,
            num_symbols=self.source.num_symbols,
            num_labels=self.source.num_labels,
        )

    def words(self) -> tuple[SeedStreams, Words]:
        """The training batches, and the validation words [G, B, T], of every seed."""
        training = self.experiment.training
        seeds = range(training.seed, training.seed + training.seeds)
        pairs = [self.words_of(seed) for seed in seeds]
        streams, held_out = [stream for stream, _ in pairs], [words for _, words in pairs]
        batches = SeedStreams(streams, training.batch_size, training.steps, self.device)
        return batches, to_words(held_out, self.device)

    def words_of(self, seed: int) -> tuple[BatchStream, Batch]:
        """The training batches and the validation words `[B, T]` of one seed."""
        return self._fixed(seed) if self.experiment.data.train_samples else self._fresh(seed)

    def _fresh(self, seed: int) -> tuple[BatchStream, Batch]:
        """Words drawn anew for every batch, and validation words from a stream of their own."""
        about = (self.source, self.lengths, self.supervision, seed)
        num_words = self.experiment.training.validation_words
        held_out = WordStream(*about, "validation").block(0, 1, num_words)[0]
        return WordStream(*about, "train"), held_out

    def _fixed(self, seed: int) -> tuple[BatchStream, Batch]:
        """A fixed set of words, and validation words that are not in it.

        Where training takes every word there is, those same words are what is validated on.
        """
        num_words = self.experiment.data.train_samples
        num_held_out = self.experiment.training.validation_words
        if isinstance(self.source, Automaton):
            left = max(0, count_words(self.source, self.lengths) - num_words)
            num_held_out = min(left, num_held_out)
        words = fixed_words(
            self.source,
            self.lengths,
            self.supervision,
            num_words,
            num_held_out,
            seed,
        )
        return words, words.held_out if num_held_out else words.train


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> str:
    """Where two lists of names part, in words."""
    if len(theirs) != len(ours):
        return f"{len(theirs)} and not {len(ours)}"
    place = next(
        place for place, pair in enumerate(zip(theirs, ours, strict=True)) if len({*pair}) == 2
    )
    return f"number {place} is '{theirs[place]}' and not '{ours[place]}'"


def choose_device(name: str) -> torch.device:
    """The device that `auto`, `cpu`, `cuda` or `cuda:INDEX` means here.

    Raises `DeviceError` where CUDA is asked for and not there.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        found = torch.cuda.device_count()
        if not found:
            raise DeviceError(
                f"--device {name}: no CUDA device is available here; take cpu or auto"
            )
        if device.index is not None and device.index >= found:
            raise DeviceError(f"--device {name}: there are only {found} CUDA devices, from cuda:0")
    return device


OnRecords = Callable[[Trainer, list[Record]], None]
"""Called after every step with the trainer and the step's records (often none)."""


def start(experiment: Experiment, out: Path | None) -> tuple[Setup, RunFolder]:
    """Make the run folder of a new experiment, with everything in it that is known beforehand.

    Raises `StatetrackError` for anything that would make the run fail later.
    """
    setup = Setup.of(experiment)
    choose_device(experiment.training.device)
    kernel = setup.make_model().kernel_on(setup.device)
    setup.words()
    plugin = plugin_file(MODELS[experiment.model])
    files = {
        "task.yaml": setup.task.document(),
        "environment.json": to_json(environment(setup.device, kernel), indent=2) + "\n",
        **({} if plugin is None else {"plugin.py": plugin.read_text(encoding="utf-8")}),
        "config.yaml": to_yaml(experiment.values()),
    }
    return setup, RunFolder.create(out or _new_path(experiment, setup.task), files)


def reopen(path: Path, device: str | None = None) -> tuple[Setup, RunFolder]:
    """The experiment of an existing run folder, from its own copies of task and plugin.

    `device` takes the place of the one that the run was trained on.
    """
    folder = RunFolder.open(path)
    values = folder.config()
    if folder.plugin_file is not None and values.get("model") not in MODELS:
        load_plugin(folder.plugin_file)
    if device is not None:
        values["device"] = device
    experiment = Experiment.from_values(values, str(folder.path / "config.yaml"))
    return Setup(experiment, load_task(str(folder.task_file))), folder


def train(setup: Setup, folder: RunFolder, on_records: OnRecords, stop: Callable[[], bool]) -> bool:
    """Train to the end, or until `stop()`; return whether the end was reached.

    Goes on from the folder's checkpoint where there is one. Raises `RunError` where the run
    has already finished, or where a file cannot be written.
    """
    if folder.finished:
        raise RunError(f"{folder.path}: this run has finished; nothing is left to resume")
    keep_freed_memory()
    settings = setup.experiment.training
    population = Population(setup.make_model, setup.experiment.replicas, setup.device)
    prepare_cpu(settings.threads, sum(v.numel() for v in population.parameters.values()))
    batches, validation = setup.words()
    torch.manual_seed(settings.seed)
    trainer = Trainer(population, batches, validation, settings, setup.device)
    seconds = 0.0
    if (checkpoint := folder.checkpoint()) is not None:
        trainer.restore(checkpoint["trainer"])
        seconds = checkpoint["seconds"]
    folder.cut_metrics(trainer.step)
    started = time.perf_counter() - seconds
    for records in trainer.run():
        folder.append("metrics.jsonl", [_plain(record) for record in records])
        on_records(trainer, records)
        due = settings.checkpoint_every and trainer.step % settings.checkpoint_every == 0
        stopping = stop()
        if (due or stopping) and not trainer.finished:
            spent = time.perf_counter() - started
            folder.write_checkpoint({"trainer": trainer.state(), "seconds": spent})
        if stopping and not trainer.finished:
            return False
    folder.write_weights(trainer.best)
    folder.write_json("summary.json", summary(trainer, time.perf_counter() - started))
    folder.drop_checkpoint()
    return True


SMALL = 1_000_000
"""Weights of a population below which one thread is faster than several."""


def prepare_cpu(threads: int, num_weights: int) -> None:
    """Give torch the threads that were asked for; 0: as many as pay."""
    if threads or num_weights < SMALL:
        torch.set_num_threads(threads or 1)


def _plain(record: Record) -> dict[str, Any]:
    return {key: value for key, value in asdict(record).items() if value is not None}


def summary(trainer: Trainer, seconds: float) -> dict[str, Any]:
    """The outcome of every replica, and which one is selected.

    The selected replica has the highest validation accuracy, then the lowest validation loss.
    """
    outcomes = [
        {
            "replica": replica.index,
            "seed": replica.seed,
            "lr": replica.lr,
            "validation_accuracy": progress.best_accuracy if progress.best_step else None,
            "validation_loss": progress.best_loss,
            "best_step": progress.best_step,
            "stopped": progress.stopped,
        }
        for replica, progress in zip(trainer.everyone, trainer.progress, strict=True)
    ]
    best = max(trainer.progress, key=lambda one: (one.best_accuracy, -one.best_loss))
    return {
        "steps": trainer.step,
        "seconds": round(seconds, 3),
        "selected": trainer.everyone[trainer.progress.index(best)].index,
        "replicas": outcomes,
    }


def trained_models(
    setup: Setup, folder: RunFolder, rows: list[int]
) -> Iterator[tuple[dict[str, Any], SequenceModel]]:
    """The given replicas of a finished run, each with its line of the summary."""
    outcomes = {
        outcome["replica"]: outcome for outcome in folder.read_json("summary.json")["replicas"]
    }
    weights = folder.weights()
    keep_freed_memory()
    model = setup.make_model(to_read=True).to(setup.device)
    prepare_cpu(setup.experiment.training.threads, sum(p.numel() for p in model.parameters()))
    for row in rows:
        try:
            model.load_state_dict({name: value[row] for name, value in weights.items()})
        except (RuntimeError, IndexError):
            raise RunError(
                f"{folder.path}: weights.safetensors does not belong to config.yaml"
            ) from None
        yield outcomes[row], model


def evaluate_run(
    setup: Setup,
    folder: RunFolder,
    lengths: list[int],
    *,
    num_words: int,
    seed: int,
    everyone: bool,
    task: Task | None = None,
) -> Iterator[dict[str, Any]]:
    """Score the selected replica of a run (or every one) at each length, one row at a time.

    The words are those of the run's own task, or of another `task` with the same symbols and
    labels. Each row is appended to eval.jsonl once its replica is done.

    Raises `SettingsError` for a task whose symbols or labels are others.
    """
    tested = setup if task is None else setup.tested_on(task)
    shortcuts = _shortcuts_by_length(setup, tested.task, lengths, num_words, seed)
    outcome = folder.read_json("summary.json")
    rows = [o["replica"] for o in outcome["replicas"]] if everyone else [outcome["selected"]]
    for replica, model in trained_models(setup, folder, rows):
        about = {
            "replica": replica["replica"],
            "seed": replica["seed"],
            "lr": replica["lr"],
            "selected": replica["replica"] == outcome["selected"],
            "task": tested.task.name,
        }
        scored = []
        for score in score_model(tested, model, lengths, num_words, seed):
            row = about | asdict(score) | shortcuts[score.length]
            scored.append(row)
            yield row
        folder.append("eval.jsonl", [row | {"evaluation_seed": seed} for row in scored])


FITTED_WORDS, FITTED_SYMBOLS = 2048, 2**16
"""The most training words, and symbols in them, that shortcuts are fitted on beside a run."""


def strongest_shortcut(setup: Setup, seed: int) -> tuple[str, float] | None:
    """The shortcut that is right most often on the validation words of a seed, and how often.

    Counted over all scored positions, as the validation accuracy of a replica is; None where
    nothing is scored.
    """
    stream, held_out = setup.words_of(seed)
    shortcuts = _fitted(setup, stream)
    if shortcuts is None or not held_out.scored.any():
        return None
    measured = shortcuts.measure(held_out, [held_out.longest])[held_out.longest]
    name = max(measured, key=lambda name: measured[name].symbol_accuracy)
    return name, measured[name].symbol_accuracy


def _shortcuts_by_length(
    setup: Setup, tested: Task, lengths: list[int], num_words: int, seed: int
) -> dict[int, dict[str, Any]]:
    """What a row of an evaluation says of shortcuts, which is the same for every replica.

    They are fitted on words that the run trained on, and measured on those it is tested on.
    """
    rows: dict[int, dict[str, Any]] = {
        length: {"shortcut": None, "shortcut_accuracy": None} for length in lengths
    }
    parts = list(draw_tests(tested, lengths, num_words, seed, setup.lengths.longest))
    if not parts:
        return rows
    stream, _ = setup.words_of(setup.experiment.training.seed)
    shortcuts = _fitted(setup, stream)
    if shortcuts is not None:
        for length, (name, accuracy) in best_by_length(shortcuts, parts).items():
            rows[length] = {"shortcut": name, "shortcut_accuracy": accuracy}
    return rows


def _fitted(setup: Setup, stream: BatchStream) -> Shortcuts | None:
    """The shortcuts of a run's training words; None where no label is asked for in them."""
    num_words = max(1, min(FITTED_WORDS, FITTED_SYMBOLS // setup.lengths.longest))
    words = stream.block(0, 1, num_words)[0]
    return Shortcuts(words) if words.scored.any() else None


def score_model(
    setup: Setup, model: SequenceModel, lengths: list[int], num_words: int, seed: int
) -> Iterator[Score]:
    """Score one model at each length, on test words that no training stream contains."""
    return evaluate(
        model, setup.source, lengths, num_words=num_words, seed=seed, device=setup.device
    )


def environment(device: torch.device, kernel: Literal["torch", "fla"]) -> dict[str, Any]:
    """What a reader needs to know of the machine that made a run."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor()
    return {
        "statetrack": statetrack.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "device": str(device),
        "device_name": name,
        "kernel": f"fla {version('fla-core')}" if kernel == "fla" else kernel,
        "threads": torch.get_num_threads(),
        "started": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": shlex.join(["statetrack", *sys.argv[1:]]),
    }


def _new_path(experiment: Experiment, task: Task) -> Path:
    """A path in runs/ that does not exist yet: what it is, and when."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    plain = "".join(c if c.isalnum() or c in "-=." else "-" for c in task.name).strip("-")
    base = f"{experiment.model}_{Path(plain).stem if plain.endswith('.yaml') else plain}_{now}"
    for number in itertools.count(1):
        path = Path("runs") / (base if number == 1 else f"{base}-{number}")
        if not path.exists():
            return path
    raise AssertionError
