"""What is known of a model without importing torch is what its imported class says."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statetrack.errors import UnknownNameError
from statetrack.models import MODEL_FACTS, MODELS, KernelSettings, recurrence_of
from statetrack.models._registry import ModelFacts
from statetrack.registry import modules_in
from statetrack.settings import Settings

WITHOUT_TORCH = """
import json, sys
from statetrack.models import MODELS
from statetrack.models._registry import MODEL_FACTS
from tests.test_facts import described

found = {name: described(facts) for name, facts in MODEL_FACTS.items()}
assert "torch" not in sys.modules
assert not [name for name in sys.modules if name.startswith("statetrack.ops")]
print(json.dumps(found))
"""


def described(facts: ModelFacts) -> dict[str, Any]:
    """Everything that facts say, as plain values."""
    settings = facts.settings_class
    return {
        "name": facts.name,
        "classes": [f"{each.__module__}.{each.__qualname__}" for each in settings.__mro__],
        "has_kernel": issubclass(settings, KernelSettings),
        "documented": inspect.getdoc(settings),
        "schema": settings.model_json_schema(),
        "annotations": {key: str(field) for key, field in settings.model_fields.items()},
        "defaults": settings().model_dump(mode="json"),
        "recurrence": repr(facts.recurrence),
        "family": facts.family,
        "source": facts.source,
        "training_defaults": json.loads(json.dumps(facts.training_defaults)),
        "summary": facts.summary,
        "description": facts.description,
    }


def run_python(script: str) -> str:
    """What a fresh interpreter prints."""
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_facts_read_without_torch_are_those_of_the_imported_classes() -> None:
    found = json.loads(run_python(WITHOUT_TORCH))
    assert set(modules_in("statetrack.models")) <= set(found)
    for name in found:
        model = MODELS[name]
        facts = MODEL_FACTS[name]
        assert facts.settings_class is model.settings_class
        assert (facts.family, facts.source) == (model.family, model.source)
        assert facts.training_defaults == model.training_defaults
        assert facts.recurrence == recurrence_of(model.settings_class())
        assert facts.summary == inspect.getdoc(model).partition("\n")[0]
        assert facts.description == inspect.getdoc(sys.modules[model.__module__])
        assert found[name] == described(facts), name


def test_a_model_is_built_from_its_imported_class_whatever_was_read_before(
    shared_folder: Callable[..., Path],
) -> None:
    from tests.new_process import said_without_numba  # not for those who import `described`

    assert said_without_numba(shared_folder)["classes"] == "are those of the imported file"


def test_facts_of_a_users_model_are_those_of_its_class(monkeypatch: pytest.MonkeyPatch) -> None:
    from statetrack.models import SequenceModel  # not for those who import `described`

    monkeypatch.setattr(MODELS, "_things", dict(MODELS._things))

    class SilentSettings(Settings):
        pass

    @MODELS.register("silent")
    class Silent(SequenceModel):
        """A model that says nothing of itself."""

        settings_class = SilentSettings

    facts = MODEL_FACTS["silent"]
    assert facts.settings_class is SilentSettings
    assert facts.summary == "A model that says nothing of itself."
    assert (facts.family, facts.source, facts.recurrence) == (None, None, None)
    assert facts.training_defaults == {}
    assert "silent" in MODEL_FACTS


def test_a_name_that_no_model_has_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="mamba"):
        MODEL_FACTS["mamba9"]
