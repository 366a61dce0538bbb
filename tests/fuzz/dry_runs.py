"""Dry runs: suite files with changed values, sized and timed by `sweep` and `reproduce`.

A dry run measures for half a minute at most; here it gets `SECONDS`, so that what it does beyond
its budget is bounded by the time that a case has.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import yaml

from statetrack import sweep
from statetrack.models import MODELS
from statetrack.ops.native import calls
from statetrack.registry import tasks_folder
from statetrack.settings import Settings
from statetrack.training import DataSettings, TrainSettings
from tests.fuzz import mutations
from tests.fuzz.command_lines import import_all, run_command
from tests.fuzz.harness import Case, require
from tests.fuzz.run_folders import SUITE

SECONDS = 0.5
"""The budget of a dry run's measurements."""

MOST_NAMED = 2
"""The models and the tasks of a shipped suite that are kept."""

SIZES = (*(0, 1, 2, 3, 7, 40, 500, 2_000), *(10**4, 10**5, 10**6, 10**7, 10**9, 2**31, 2**63))
"""Sizes that are small, large, or beyond what fits."""

TASKS = (
    *("parity", "s3", "a5", "flip-flop", "cyclic:n=1000", "modular-addition:m=25"),
    *("random-fsm:states=25,symbols=9", "product(s3,parity)"),
)
"""Tasks of several sizes."""


class DryRuns:
    """A suite file under `sweep FILE --dry-run` or `reproduce FILE --dry-run`."""

    name = "dry-runs"
    cases_per_process = 8  # torch keeps what it compiled for the sizes of each

    def prepare(self, folder: Path) -> None:
        """Read the shipped suites, and import what cases need."""
        import_all()
        importlib.import_module("torch._dynamo")  # torch takes a second for it when first used
        paths = sorted((tasks_folder() / "suites").glob("*.yaml"))
        self.texts = [path.read_text(encoding="utf-8") for path in paths]
        self.contents = [yaml.safe_load(text) for text in self.texts]
        general: list[type[Settings]] = [DataSettings, TrainSettings]
        self.of_all = {name: field for kind in general for name, field in _fields(kind).items()}
        self.of_model = {name: _fields(MODELS[name].settings_class) for name in MODELS}

    def attempt(self, case: Case) -> None:
        """Size and time the points of one file."""
        random = case.random
        Path("suite.yaml").write_bytes(self._file(random))
        words = [random.choice(["sweep", "reproduce"]), "suite.yaml", "--dry-run"]
        if random.random() < 0.2:
            words += random.choice([["--json"], ["--evidence"], ["--stress-seconds", "5"]])
        if words[0] == "reproduce" and random.random() < 0.2:
            words += ["--budget", random.choice(["minutes", "hours", "paper"])]
        bounded = partial(sweep.estimate, budget=SECONDS)
        torchs = mock.patch.object(calls, "_missing", lambda: "compiling would take a case's time")
        with torchs, mock.patch.object(sweep, "estimate", bounded):
            run_command(case, words)
        left = sorted(path.name for path in Path.cwd().iterdir())
        require(left == ["suite.yaml"], f"a dry run leaves files: {left}")

    def _file(self, random: Random) -> bytes:
        draw = random.random()
        if draw < 0.05:
            text = mutations.change_text(random, random.choice(self.texts))
            return text.encode("utf-8", "surrogatepass")
        if draw < 0.35:
            content = _cut(random, random.choice(self.contents))
            if random.random() < 0.7:
                content = mutations.change_values(random, content)
        else:
            content = self._made(random)
            if random.random() < 0.4:
                content = mutations.change_values(random, content)
        return mutations.as_json(content).encode("utf-8", "surrogatepass")

    def _made(self, random: Random) -> dict[str, Any]:
        """One or two models of any size on one or two tasks."""
        made: dict[str, Any] = deepcopy(SUITE) | {"models": {}, "tasks": {}}
        made["settings"] = {"steps": 3, "device": "cpu", "threads": 1}
        for place in range(random.choice([1, 1, 2])):
            name = random.choice(list(self.of_model))
            own = {"model": name}
            for _ in range(random.choice([0, 1, 1, 2])):
                own |= _one_of(random, self.of_model[name])
            made["models"][f"model {place}"] = own
            made["tasks"][f"task {place}"] = random.choice(TASKS)
        for _ in range(random.choice([0, 1, 1, 2])):
            made["settings"] |= _one_of(random, self.of_all)
        for _ in range(random.choice([0, 0, 1])):
            key = random.choice(["length", "samples", "curve_lengths", "horizon_lengths"])
            size = random.choice(SIZES)
            made[key] = [size] if key.endswith("lengths") else size
        if random.random() < 0.15:
            axis = random.choice(list(self.of_all))
            values = [_setting(random, self.of_all[axis]) for _ in range(random.choice([1, 2, 3]))]
            made["axes"] = {axis: values}
        return made


def _fields(kind: type[Settings]) -> dict[str, Any]:
    """The default of every setting."""
    return {name: field.default for name, field in kind.model_fields.items() if name != "task"}


def _one_of(random: Random, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A setting with a value."""
    name = random.choice(list(fields))
    return {name: _setting(random, fields[name])}


def _setting(random: Random, default: Any) -> Any:
    """A value of a setting: most often a size, where the default is one, or lengths."""
    draw = random.random()
    if draw < 0.1:
        return mutations.value(random)
    if isinstance(default, bool) or draw < 0.2:
        return random.choice([True, False, 0.5, [0.1], [1e-3, 1e-2]])
    if isinstance(default, int):
        return random.choice(SIZES)
    if isinstance(default, str) and "-" in default and default[:1].isdigit():
        return f"1-{random.choice(SIZES)}"
    return mutations.similar(random, default) if draw < 0.4 else default


def _cut(random: Random, content: Any) -> dict[str, Any]:
    """A few models and tasks of a suite, without the numbers that were published of them."""
    made: dict[str, Any] = deepcopy(content)
    for key in ("models", "tasks"):
        named = made[key]
        names = list(named)
        kept = random.sample(names, min(len(names), MOST_NAMED))
        made[key] = {name: named[name] for name in kept} if isinstance(named, dict) else kept
    for key in ("published", "tables", "cells", "budgets", "axes"):
        if random.random() < 0.9:
            made.pop(key, None)
    return made
