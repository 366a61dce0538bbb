"""The training loop of a population.

Words come in blocks of many batches; the loop yields after every step, so a caller can log, save
or stop after any step. Replicas that stop early are removed from the population.

R replicas, G seeds, B batch, T time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.func import functional_call

from statetrack.errors import SettingsError
from statetrack.training.losses import (
    Loss,
    accuracy,
    mean_over_scored,
    smallest_margin,
    words_right,
)
from statetrack.training.population import Optimiser, Population, Weights
from statetrack.training.records import Finish, Progress, Record, Replica
from statetrack.training.robust import Robust
from statetrack.training.settings import LOSSES, ROBUST, TrainSettings
from statetrack.training.words import Batches, Words

BLOCK = 64
"""Batches that are drawn, labelled and moved to the device at once."""
LOG_EVERY = 10
"""Steps between two records of the training loss."""


@dataclass
class Trainer:
    """Trains a population on batches, and keeps the best weights of each replica.

    The best weights are those with the highest validation accuracy, then the lowest
    validation loss, on words of the training lengths: longer words are never used.
    """

    population: Population
    batches: Batches
    validation: Words  # [G, B, T]
    settings: TrainSettings
    device: torch.device
    step: int = 0
    everyone: tuple[Replica, ...] = field(init=False)
    progress: list[Progress] = field(init=False)
    best: Weights = field(init=False)
    finishes: dict[int, Finish] = field(init=False)  # by replica, once all are finished
    totals: Tensor = field(init=False)  # [2, R]: loss and accuracy, summed since the last record
    counted: int = field(init=False)
    loss: Loss = field(init=False)
    robust: Robust = field(init=False)
    optimiser: Optimiser | None = field(init=False)
    word_rows: Tensor | slice = field(init=False)  # [R]: which row of the words a replica reads
    replica_rows: Tensor = field(init=False)  # [R]: which row of `best` a replica has

    def __post_init__(self) -> None:
        if self.settings.freeze == "recurrence":
            self.population.freeze_recurrence()
        if not self.population.trained:
            raise SettingsError(
                "there is nothing to train: no parameter that could be trained has requires_grad"
            )
        self.everyone = self.population.replicas
        self.progress = [Progress() for _ in self.everyone]
        self.best = self.population.weights()
        self.finishes = {}
        self.loss: Loss = LOSSES[self.settings.loss](self.settings)
        self.robust = ROBUST[self.settings.robust](self.settings, self.population.model)
        self.optimiser = Optimiser(self.population, self.settings, {})
        self._regroup()
        self._restart_totals()

    def _restart_totals(self) -> None:
        """Reset the averages of training loss and accuracy."""
        self.totals = torch.zeros(2, len(self.population), device=self.device)
        self.counted = 0
        self.recent: list[Tensor] = []  # what was added up, [2, R] of each step

    def _regroup(self) -> None:
        """Set the row of the words, [G], that each replica reads, and its row of `best`."""
        seeds = list(dict.fromkeys(replica.seed for replica in self.everyone))
        rows = [seeds.index(replica.seed) for replica in self.population.replicas]
        each_its_own = rows == list(range(len(seeds)))
        self.word_rows = slice(None) if each_its_own else torch.tensor(rows, device=self.device)
        self.replica_rows = torch.tensor(
            [replica.index for replica in self.population.replicas], device=self.device
        )

    @property
    def ends(self) -> tuple[int, ...]:
        """The steps at which training ends, or ended before it was extended."""
        return (*self.settings.extended_at, self.settings.steps)

    @property
    def finished(self) -> bool:
        """Whether all steps are done, or all replicas have stopped, and what follows is done."""
        return self.stepped and (self.settings.finish == "none" or bool(self.finishes))

    @property
    def stepped(self) -> bool:
        """Whether all steps are done, or all replicas have stopped."""
        return self.step >= self.settings.steps or not len(self.population)

    def run(self) -> Iterator[list[Record]]:
        """Train to the end; after each step, yield its records, an empty list at most steps.

        With `finish`, there is one more empty list for every replica.
        """
        first, block = 0, None
        while not self.stepped:
            if block is None or self.step >= first + block.symbols.shape[0]:
                first = self.step
                count = min(BLOCK - first % BLOCK, self.settings.steps - first)
                block = self.batches.block(first, count)
            words = block[self.step - first][self.word_rows]
            self.recent.append(self._train_step(words))
            self.totals = self.totals + self.recent[-1]
            self.counted += 1
            self.step += 1
            validate = self.step % self.settings.validate_every == 0 or self.step in self.ends
            records: list[Record] = []
            if validate or self.step % LOG_EVERY == 0:
                records = self._records(validate)
                self._drop_stopped()
                self._restart_totals()
            yield records
        if not self.finished:
            yield from self.finish()

    def finish(self) -> Iterator[list[Record]]:
        """Finish the best weights of every replica, each as if it were alone.

        Nothing changes before all are done: what is stopped here starts again.
        """
        ends = []
        for row, replica in enumerate(self.everyone):
            ends.append(self._finish_replica(row, replica))
            yield []
        for row, (weights, finish, right, words, loss) in enumerate(ends):
            if weights is not None:
                for name, value in weights.items():
                    self.best[name][row] = value
                progress = self.progress[row]
                progress.best_accuracy, progress.best_prefix_accuracy = right, words
                progress.best_loss = loss
            self.finishes[self.everyone[row].index] = finish

    @torch.no_grad()
    def _finish_replica(
        self, row: int, replica: Replica
    ) -> tuple[Weights | None, Finish, float, float, float]:
        """New weights, if validation is no worse with them, and what was done.

        With them come the accuracies over positions and over words, and the loss.
        """
        # here, since it takes SciPy, which training and evaluation do without
        from statetrack.training.finish import finished

        progress, model = self.progress[row], self.population.model
        if not progress.best_step:
            return None, Finish(refused="it diverged"), math.nan, math.nan, math.nan
        seeds = list(dict.fromkeys(other.seed for other in self.everyone))
        words_row = seeds.index(replica.seed)
        own = {name: value[row] for name, value in self.best.items()}
        for name, value in (*model.named_parameters(), *model.named_buffers()):
            value.copy_(own[name])
        found = finished(model, self._last_words(progress.best_step, words_row), self.settings)
        if isinstance(found, str):
            return None, Finish(refused=found), math.nan, math.nan, math.nan
        words = self.validation[[words_row]]
        weights = own | {name: value.to(self.device) for name, value in found.weights.items()}
        model.eval()
        before, logits = (
            functional_call(
                model, self.population.in_all_places(given), (words.symbols[0],), tie_weights=False
            ).unsqueeze(0)
            for given in (own, weights)
        )
        loss = float(mean_over_scored(self.loss(logits, words.labels), words.scored))
        right = float(accuracy(logits, words.labels, words.scored))
        better = loss <= progress.best_loss
        if not found.minimal:
            better |= smallest_margin(logits, words.labels, words.scored) > smallest_margin(
                before, words.labels, words.scored
            )
        worse = not (right >= progress.best_accuracy and better)
        finish = Finish(
            found.kept,
            len(weights["first"]),
            found.loss_before,
            found.loss_after,
            "validation is worse with it" if worse else "",
        )
        whole = float(words_right(logits, words.labels, words.scored))
        return (None if worse else weights), finish, right, whole, loss

    def _last_words(self, step: int, row: int) -> Words:
        """The last words, at most `MOST_WORDS`, that replicas of a seed read up to a step."""
        from statetrack.training.finish import MOST_SYMBOLS, MOST_WORDS

        size = self.settings.batch_size
        count = min(step, -(-MOST_WORDS // size))
        block = self.batches.block(step - count, count)
        symbols, labels, scored = (
            part[:, row].flatten(0, 1) for part in (block.symbols, block.labels, block.scored)
        )
        most = max(1, min(MOST_WORDS, MOST_SYMBOLS // symbols.shape[1]))
        return Words(symbols, labels, scored)[:most]

    def _train_step(self, words: Words) -> Tensor:
        """One optimisation step; the loss and accuracy of each replica before it, [2, R]."""
        if not self.population.model.training:  # to say so takes long in a model of many parts
            self.population.model.train()
        with self._precision():
            logits, losses = self.robust.train(self.population, words, self.loss, self.step)
        if not losses.requires_grad:
            raise SettingsError(
                "the module's logits depend on no weight that is trained: look for torch.no_grad() "
                "and .detach() in `forward`, and for weights without requires_grad"
            )
        losses.sum().backward()
        assert self.optimiser is not None
        self.optimiser.step(self.step)
        scores = accuracy(logits.detach(), words.labels, words.scored)
        return torch.stack([losses.detach(), scores.to(losses.dtype)])

    def _precision(self) -> AbstractContextManager[Any]:
        if self.settings.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    @torch.no_grad()
    def _validate(self) -> tuple[Tensor, Tensor, Tensor]:
        """Loss of each replica on its validation words, share of right answers, and of words."""
        self.population.model.eval()
        words = self.validation[self.word_rows]
        with self._precision():
            logits = self.population(words.symbols)
            losses = self.robust.validate(self.population, words, logits, self.loss)
        right = logits, words.labels, words.scored
        return losses, accuracy(*right), words_right(*right)

    def _records(self, validate: bool) -> list[Record]:
        """One record for each replica; where validated, selection and stopping are updated."""
        columns = (self.totals / self.counted).tolist()
        if validate:
            columns += [values.tolist() for values in self._validate()]
        rows = zip(self.population.replicas, *columns, strict=True)
        records = [Record(self.step, replica.index, *values) for replica, *values in rows]
        if validate:
            self._select(records)
        for row, record in enumerate(records):
            if not math.isfinite(record.loss):
                self._note_divergence(row)
                self.progress[record.replica].stopped = "diverged"
        return records

    def _note_divergence(self, row: int) -> None:
        """Note the first step at which a replica's loss was not finite, since the last records."""
        broken = [step for step, losses in enumerate(self.recent) if not losses[0, row].isfinite()]
        progress = self.progress[self.population.replicas[row].index]
        if broken and not progress.diverged_at:
            progress.diverged_at = self.step - len(self.recent) + broken[0] + 1

    def _select(self, records: list[Record]) -> None:
        """Keep the weights of replicas that improved; mark those that are to stop."""
        better = []
        for row, record in enumerate(records):
            loss, score = record.validation_loss, record.validation_accuracy
            words = record.validation_prefix_accuracy
            assert loss is not None and score is not None
            progress = self.progress[record.replica]
            best_so_far = (progress.best_accuracy, -progress.best_loss)
            if math.isfinite(loss) and (score, -loss) > best_so_far:
                progress.best_accuracy, progress.best_loss = score, loss
                progress.best_prefix_accuracy = -1.0 if words is None else words
                progress.best_step, progress.since_best = record.step, 0
                better.append(row)
            else:
                progress.since_best += 1
            if self.settings.patience and progress.since_best >= self.settings.patience:
                progress.stopped = "no improvement"
            if self.settings.stop_loss and -math.inf < loss <= self.settings.stop_loss:
                progress.stopped = "loss reached"
        if better:
            rows = torch.tensor(better, device=self.device)
            kept = self.replica_rows[rows]
            population = self.population
            with torch.no_grad():
                for name, value in (population.parameters | population.buffers).items():
                    self.best[name][kept] = value[rows]

    def _drop_stopped(self) -> None:
        """Remove stopped replicas from the population."""
        replicas = self.population.replicas
        going = [
            row for row, replica in enumerate(replicas) if not self.progress[replica.index].stopped
        ]
        if len(going) < len(replicas):
            moments = self.optimiser.moments() if self.optimiser else {}
            self.population.keep(going)
            self.optimiser = Optimiser(self.population, self.settings, moments) if going else None
            self._regroup()

    def state(self) -> dict[str, Any]:
        """The state from which `restore` continues training bit-identically."""
        for row, loss in enumerate(self.totals[0].tolist()):
            if not math.isfinite(loss):  # of the losses since the last records only sums are kept
                self._note_divergence(row)
        return {
            "step": self.step,
            "replicas": [replica.index for replica in self.population.replicas],
            "weights": self.population.weights(),
            "moments": self.optimiser.moments() if self.optimiser else {},
            "best": self.best,
            "progress": [vars(progress) for progress in self.progress],
            "totals": self.totals,
            "counted": self.counted,
            "rng": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state` returned for the same population and settings."""
        self.step = state["step"]
        self.population.keep(state["replicas"])
        self.population.load(state["weights"])
        self.best = {name: value.to(self.device) for name, value in state["best"].items()}
        self.progress = [Progress(**progress) for progress in state["progress"]]
        torch.set_rng_state(state["rng"])
        moments = state["moments"]
        self.optimiser = Optimiser(self.population, self.settings, moments) if moments else None
        self._regroup()
        self.totals, self.counted = state["totals"].to(self.device), state["counted"]
        self.recent = []
