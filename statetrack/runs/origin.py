"""Where the weights of a run come from, other than random initial ones: keys of config.yaml.

`built` says how they were set by construction, `started_from` which weights training began with.
torch is not imported here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from statetrack.settings import Settings, option
from statetrack.text import GREATEST_SEED


class ByConstruction(Settings):
    """How weights were set by construction: `statetrack build`."""

    construction: str = option(..., "The name of the construction.")
    equation: str = option(..., "What the recurrence computes with these weights.")
    source: str = option(..., "The paper, by its id in references.yaml, or `own`.")
    margin: float | None = option(
        None,
        "The least lead of the right label, as a part of the spread of logits, in float64; none "
        "is promised with noise.",
    )
    sizes: dict[str, int] = Field(
        default_factory=dict, description="The settings that have to be large enough."
    )
    precision: Literal["float32", "float64"] = option("float32", "The type of the weights.")
    noise: float = option(0.0, "The deviation of what was added to every weight.", min=0)
    seed: int = option(0, "The seed that it was drawn by.", min=0, max=GREATEST_SEED)
    integers: bool = option(False, "Whether all weights are integers, but for noise.")


class StartedFrom(Settings):
    """Which weights training began with: `train --from`."""

    run: str = option(..., "The run, as it was given.")
    replica: int = option(0, "The replica.", min=0)
    weights: str = option(..., "The hash of its weights, as weights.safetensors has it.")
    built: bool = option(False, "Whether these were set by construction.")
    noise: float = option(0.0, "The deviation of what was added to these, where they were.", min=0)


ORIGINS = ("built", "started_from")
"""The keys of config.yaml that no option of training sets."""
