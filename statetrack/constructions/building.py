"""Exact weights for a task and a model: `build`.

built = st.build("s3", "bilinear-block")
built.model, built.margin, built.construction.equation
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import torch

from statetrack.algebra import Algebra, Prediction
from statetrack.constructions.case import BeyondBudget, Case, NotBuilt
from statetrack.constructions.covering import covering_words
from statetrack.constructions.following import Followed, follow_words
from statetrack.constructions.registry import Construction, construction_for
from statetrack.errors import BuildError, SettingsError, setting
from statetrack.models import MODELS, LinearModel, SequenceModel
from statetrack.predicting import algebra_of, predict
from statetrack.settings import Settings
from statetrack.sources import Automaton
from statetrack.spec import Task, load_task

Precision: TypeAlias = Literal["float32", "float64"]
DTYPES: dict[str, torch.dtype] = {"float32": torch.float32, "float64": torch.float64}

LARGEST = 20_000_000
"""The most weights of a model that is built."""


@dataclass(frozen=True, eq=False)
class Built:
    """A model with weights that track a task, and what is promised of it."""

    model: SequenceModel
    settings: Settings
    construction: Construction
    sizes: Mapping[str, int]
    """The settings that have to be large enough, as they were built."""
    margin: float | None
    """The least lead of the right label, as a part of the spread of the logits, in float64.

    It is taken over words that reach every state and read symbols there. None with noise, where
    nothing is promised.
    """
    dtype: Precision
    noise: float
    seed: int
    integers: bool = False
    """Whether all weights are integers."""


def build(
    task: Task | str | Path,
    model: str,
    *,
    dtype: Precision = "float32",
    noise: float = 0.0,
    seed: int = 0,
    integers: bool = False,
    **options: Any,
) -> Built:
    """A model with exact weights: it gives the right label after every word of the task.

    `model` is a name, and `options` are settings of it; those that have to be large enough are as
    large as predicted unless they are given. `noise` is the deviation of normal numbers that are
    added to all weights, drawn by `seed`: a point near the exact ones to start training from.
    With `integers` all weights of a linear model are integers: nothing is ever rounded, and
    `certify` proves all lengths.

    What is built is run over words that reach every state, in float64 and in the type asked for.
    Raises `BuildError` where the model cannot track the task, with the words that show it, where a
    size that is given is too small, and where no construction is known; `TaskError` for a task
    without an automaton, and `SettingsError` for a setting that the model has not.
    """
    if dtype not in DTYPES:
        raise SettingsError(f"build: {setting('dtype', str(dtype))}: one of {', '.join(DTYPES)}")
    if not 0 <= noise < math.inf:
        raise SettingsError(f"build: {setting('noise', noise)}: a deviation is 0 or more")
    chosen = load_task(task)
    automaton = chosen.automaton
    algebra = algebra_of(automaton)
    where = f"{model} on '{chosen.name}'"
    prediction = predict(algebra, model, **options)
    if prediction.can == "no":
        able = _able_with(algebra, model, options)
        raise BuildError(f"{where}: {_refusal(prediction, automaton)}{able}")
    _require_able(prediction, options, where)
    case = Case(model, options, automaton, algebra, prediction, integers)
    try:
        built, construction = build_case(case)
    except NotBuilt as why:
        raise BuildError(f"{where}: no exact weights are known: {why.args[0]}") from None
    except BeyondBudget as why:
        raise BuildError(f"{where}: the exact weights are too many: {why}") from None
    followed = _followed(built, automaton, where, "float64")
    built = built.to(DTYPES[dtype])
    if noise:
        add_noise(built, noise, seed)
    elif dtype != "float64":
        _followed(built, automaton, where, dtype)
    return Built(
        built,
        built.settings,
        construction,
        {name: getattr(built.settings, name) for name in case.sizes},
        None if noise else followed.margin,
        dtype,
        noise,
        seed,
        integers,
    )


def build_case(case: Case) -> tuple[SequenceModel, Construction]:
    """The model of a case in float64, and the construction that its weights are from.

    Raises `NotBuilt` where none is known, and `BeyondBudget` where it has too many weights.
    """
    construction = construction_for(case)
    if case.integers and not (construction.integers and issubclass(case.kind, LinearModel)):
        raise NotBuilt(
            f"{setting('integers', True)}: integers are known for linear models whose operators "
            "are matrices, blocks or sums of terms of rank one"
        )
    model = construction.make(case)
    number = sum(weight.numel() for weight in model.parameters())
    if number > LARGEST:
        raise BeyondBudget(f"{number:,} parameters")
    return model, construction


@torch.no_grad()
def add_noise(model: torch.nn.Module, deviation: float, seed: int) -> None:
    """Add independent normal numbers to every weight of a model, in place."""
    draw = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        drawn = torch.randn(weight.shape, generator=draw, dtype=torch.float64)
        weight.add_((deviation * drawn).to(weight))


def _refusal(prediction: Prediction, automaton: Automaton) -> str:
    """Why a model cannot, with the words that show it."""
    witness = prediction.witness
    shown = ""
    if witness is not None:
        words = zip(witness.letters, witness.words, strict=True)
        named = "; ".join(f"{letter} = {_word(word, automaton)}" for letter, word in words)
        accesses = "; ".join(
            f"{letter} = {_word(word, automaton)}" for letter, word in witness.told_accesses.items()
        )
        shown = f" ({witness.says}: {named}; {accesses})"
    return f"cannot: {prediction.theorem}{shown}"


def _able_with(algebra: Algebra, model: str, options: Mapping[str, Any]) -> str:
    """The one choice of a setting with which a model can in one layer, as a sentence, or nothing.

    Only settings with a few named values are tried, such as the range of beta.
    """
    for name, field in MODELS[model].settings_class.model_fields.items():
        for value in get_args(field.annotation):
            if name in options or not isinstance(value, str) or value == field.default:
                continue
            try:
                found = predict(algebra, model, **options, **{name: value})
            except SettingsError:
                continue
            if found.can == "yes" and all(need.met == "yes" for need in found.needs):
                return f". With {setting(name, value)} it can"
    return ""


def _require_able(prediction: Prediction, options: Mapping[str, Any], where: str) -> None:
    """Raise `BuildError` where a model is not known to track a task, or a size is too small."""
    if prediction.can == "unknown":
        raise BuildError(f"{where}: not known to be possible: {prediction.theorem}")
    for need in prediction.needs:
        if need.value is not None and options.get(need.setting, math.inf) < need.value:
            least = "no less is" if need.smallest else "no smaller construction is known"
            raise BuildError(
                f"{where}: {setting(need.setting, options[need.setting])} is too small: "
                f"{need.value} is enough, and {least}"
            )


def _word(word: tuple[int, ...], automaton: Automaton) -> str:
    return " ".join(automaton.symbols[symbol] for symbol in word) or "the empty word"


def _followed(model: SequenceModel, automaton: Automaton, where: str, dtype: Precision) -> Followed:
    """The model run over words that cover the machine.

    Raises `BuildError` where an answer is wrong.
    """
    words = covering_words(automaton)
    labels, scored = automaton.read(words)
    width = max(automaton.num_labels, sum(weight.numel() for weight in model.parameters()) // 100)
    found = follow_words(model, words, labels, scored, width=width)
    if not found.exact:
        advice = "" if dtype == "float64" else f": use {setting('dtype', 'float64')}"
        raise BuildError(
            f"{where}: the weights answer {found.wrong} of {found.num_symbols} positions wrongly "
            f"in {dtype}{advice}"
        )
    return replace(found, margin=float(found.margin))
