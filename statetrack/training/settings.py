"""How a model is trained: words, optimisation, selection, device; and protocols, by paper.

One definition for Python, YAML and the command line. torch is not imported here: losses, optimisers
and kinds of robust training are known by name, each a file of its folder or of a user's own
(`--plugin`). What is registered takes the settings: a function that makes a `losses.Loss`, an
`optimisers.OptimiserKind`, a `robust.Robust`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from statetrack.errors import SettingsError, TaskError, setting
from statetrack.registry import Registry, files_in, modules_in, tasks_folder
from statetrack.settings import Line, Name, NameIn, Settings, build, option, read_yaml
from statetrack.text import GREATEST_SEED

LOSSES: Registry[Callable[[Any], Any]] = Registry(
    "loss",
    find=lambda: modules_in("statetrack.training.losses"),
    listing="statetrack train --help",
)

OPTIMISERS: Registry[type[Any]] = Registry(
    "optimiser",
    find=lambda: modules_in("statetrack.training.optimisers"),
    listing="statetrack train --help",
)

ROBUST: Registry[type[Any]] = Registry(
    "kind of robust training",
    find=lambda: modules_in("statetrack.training.robust"),
    listing="statetrack train --help",
)


class DataSettings(Settings):
    """The words a model is trained on."""

    task: str = option(
        "modular-addition",
        "A task's name, a file of a task or a machine, or a regular expression: regex:PATTERN.",
    )
    train_length: str = option(
        "task", "Lengths to train on, as 2-10 or 10; `task`: the task's own."
    )
    curriculum: float = option(
        0.0,
        "Share of the steps over which the longest length grows; 0 means all lengths at once.",
        min=0,
        max=1,
    )
    words: str = option(
        "task",
        "How words are drawn: as the task says, `uniform`, `group` (words that stay inside the "
        "machine's largest group), `group:NAME`, or `weighted:FILE` (frequencies of symbols).",
    )
    supervision: Literal["task", "every", "last"] = option(
        "task", "A label after every symbol, or after the last only; `task`: the task's own."
    )
    train_samples: int = option(
        0,
        "Size of a fixed training set of distinct words; 0 means fresh words at every step.",
        min=0,
        max=10**8,
    )

    @field_validator("train_length")
    @classmethod
    def _lengths_in_order(cls, train_length: str) -> str:
        from statetrack.sources import LengthDistribution

        if train_length != "task":
            try:
                LengthDistribution.parse(train_length)
            except SettingsError as problem:
                raise ValueError(str(problem)) from None
        return train_length

    @field_validator("words")
    @classmethod
    def _known_words(cls, words: str) -> str:
        if words == "task":
            return words
        from statetrack.spec import check_words  # NumPy, which lists of settings do not need

        try:
            return check_words(words)
        except TaskError as problem:
            raise ValueError(str(problem)) from None


SAME_SINCE = "0.3.0"
"""The first version that trained the same weights from the same settings and words, up to rounding.

It is raised with every change of what training computes: recorded tables depend on it.
"""


class TrainSettings(Settings):
    """The settings of training, apart from the task and the model."""

    steps: int = option(1000, "Optimisation steps.", min=1)
    extended_at: tuple[int, ...] = option(
        (),
        "Steps at which training was extended, separated by commas: until each, what depends on "
        "the number of steps is as in a training of so many.",
    )
    batch_size: int = option(64, "Words in a batch of each replica.", min=1, max=10**6)
    lrs: tuple[float, ...] = option(
        (1e-2,), "Learning rates, separated by commas; each is trained with every seed."
    )
    seeds: int = option(1, "How many seeds.", min=1, max=10_000)
    seed: int = option(0, "The first seed; the others follow it.", min=0, max=GREATEST_SEED)
    loss: Annotated[str, NameIn(LOSSES)] = option(
        "squared-error",
        "Squared error on centred one-hot labels, cross-entropy with label smoothing, or plain "
        "cross-entropy (which saturates on short words before the recurrence is exact).",
    )
    label_smoothing: float = option(
        0.1, "Label smoothing of smoothed-cross-entropy.", above=0, max=0.9
    )
    optimizer: Annotated[str, NameIn(OPTIMISERS)] = option("adam", "The optimiser.")
    beta1: float = option(0.9, "Decay of Adam's average of gradients.", min=0, max=0.9999)
    beta2: float = option(
        0.95,
        "Decay of Adam's average of squared gradients. Gradients fade as a squared error falls; "
        "with the usual 0.999, steps are still divided by those of a thousand steps ago.",
        min=0,
        max=0.99999,
    )
    epsilon: float = option(1e-8, "Adam's guard against division by zero.", above=0)
    weight_decay: float = option(0.0, "Weight decay (decoupled in adamw, L2 elsewhere).", min=0)
    schedule: Literal["constant", "cosine", "linear"] = option(
        "cosine", "How the learning rate falls to zero after the warm-up."
    )
    warmup: float = option(
        0.0, "Share of the steps over which the learning rate rises.", min=0, max=0.9
    )
    clip: float = option(0.0, "Largest gradient norm of a replica; 0 means unlimited.", min=0)
    robust: Annotated[str, NameIn(ROBUST)] = option(
        "none",
        "Training of the states around a word's own: the loss of the worst of them (interval), "
        "also that every symbol brings them nearer to one another (contraction), noise on every "
        "state, a margin of the right logit, or operators that do not expand (spectral).",
    )
    robust_size: float = option(
        0.0,
        "How far states are off (interval, contraction: 0.1), the noise's deviation (0.1), the "
        "margin (1), or the weight of the penalty (spectral: 1); 0 takes the number in brackets.",
        min=0,
    )
    robust_start: float = option(
        0.3,
        "Share of the steps before robust training begins; its size then grows for half of the "
        "others.",
        min=0,
        max=0.99,
    )
    freeze: Literal["none", "recurrence"] = option(
        "none", "Train everything, or the readout alone on a frozen random recurrence."
    )
    finish: Literal["none", "exact"] = option(
        "none",
        "After the last step: `exact` removes what training words do not show of a linear model "
        "and solves for the minimum of the loss on them, or for orthogonal blocks that follow "
        "their labels, where no validation gets worse.",
    )
    validate_every: int = option(50, "Steps between two validations.", min=1)
    validation_words: int = option(
        512, "Words of the training lengths on which replicas are selected.", min=1, max=10**7
    )
    patience: int = option(
        0, "Stop a replica after this many validations without improvement; 0 means never.", min=0
    )
    stop_loss: float = option(
        0.0, "Stop a replica once its validation loss is at most this; 0 means never.", min=0
    )
    checkpoint_every: int = option(500, "Steps between two checkpoints; 0 means at the end.", min=0)
    device: str = option("auto", "auto, cpu, cuda or cuda:INDEX; auto is CUDA where available.")
    threads: int = option(
        0,
        "CPU threads, one for each processor at most; 0 takes one for a small population (below "
        "a million weights), for which more are slower, and torch's default for a large one.",
        min=0,
        max=1024,
    )
    precision: Literal["float32", "bfloat16"] = option(
        "float32", "float32, or bfloat16 autocast (recurrences themselves stay in float32)."
    )

    @field_validator("lrs", mode="before")
    @classmethod
    def _a_number_is_one_rate(cls, lrs: Any) -> Any:
        return (lrs,) if isinstance(lrs, int | float) and not isinstance(lrs, bool) else lrs

    @field_validator("lrs")
    @classmethod
    def _positive_and_distinct(cls, lrs: tuple[float, ...]) -> tuple[float, ...]:
        if not lrs or min(lrs) <= 0:
            raise ValueError("learning rates must be above 0")
        if len(set(lrs)) < len(lrs):
            raise ValueError("a learning rate appears twice")
        return lrs

    @model_validator(mode="after")
    def _extended_before_the_end(self) -> Self:
        steps = (0, *self.extended_at, self.steps)
        if any(later <= step for step, later in itertools.pairwise(steps)):
            where = setting("extended_at")
            raise ValueError(f"{where}: steps rise, from 1 on, and stay below the last one")
        return self

    def steps_at(self, step: int) -> int:
        """The number of steps of the training that step number `step` (from 0) is as in.

        Those before an extension are as in a training that ends there, the others as in one of
        all `steps`: the schedule of the learning rate, the curriculum, and robust training.
        """
        return next((end for end in self.extended_at if step < end), self.steps)

    @model_validator(mode="after")
    def _betas_are_adams(self) -> Self:
        changed = [
            name
            for name in ("beta1", "beta2", "epsilon")
            if getattr(self, name) != type(self).model_fields[name].default
        ]
        if changed and changed[0] not in OPTIMISERS[self.optimizer].uses:
            name = setting(changed[0])
            raise ValueError(f"{name} is Adam's: {self.optimizer} has no such setting")
        return self

    @model_validator(mode="after")
    def _size_is_of_a_kind(self) -> Self:
        for name in ("robust_size", "robust_start"):
            changed = getattr(self, name) != type(self).model_fields[name].default
            if self.robust == "none" and changed:
                given, kind = setting(name), setting("robust")
                raise ValueError(f"{given} is that of robust training: say which, by {kind}")
        return self

    @field_validator("device")
    @classmethod
    def _known_device(cls, device: str) -> str:
        kind, _, index = device.partition(":")
        if kind not in {"auto", "cpu", "cuda"} or (index and not re.fullmatch("[0-9]{1,4}", index)):
            raise ValueError("a device is auto, cpu, cuda or cuda:INDEX")
        return device


class Protocol(Settings):
    """A file with everything that a published number depends on, named after its paper.

    `tasks/protocols/NAME.yaml` holds training settings for every model (`settings`), and model
    settings for those models that have them (`models`). `--protocol NAME` makes them defaults.
    Of those under `unknown` the paper does not say the value: one is taken, and no verdict on a
    published number, nor what departs from the paper, rests on it.
    """

    title: Line
    reference: Line
    settings: dict[str, Any] = Field(default_factory=dict)
    models: dict[str, dict[str, Any]] = Field(default_factory=dict)
    unknown: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _unknown_settings_have_values(self) -> Self:
        if missing := [name for name in self.unknown if name not in self.settings]:
            raise ValueError(
                f"'unknown' names '{missing[0]}', which is not in 'settings': give it the value "
                "that is taken"
            )
        return self


def read_protocol(path: Path) -> Protocol:
    """The protocol that a file holds; `SettingsError` where it is not one."""
    return build(Protocol, read_yaml(path), str(path))


PROTOCOLS: Registry[Protocol] = Registry(
    "protocol",
    find=lambda: files_in(tasks_folder() / "protocols", read_protocol),
    listing="statetrack list protocols",
)


def settings_for(protocol: str, model: str) -> dict[str, Any]:
    """The settings that a protocol prescribes for a model, flat."""
    found = PROTOCOLS[protocol]
    return {**found.settings, **found.models.get(model, {})}
