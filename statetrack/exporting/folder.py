"""An exported folder: weights in a layout, golden words, and programs that check a kernel by them.

README.md            what is here, and the commands
config.json          the layout, its layers and the frame around them
layer-0.safetensors  each layer's weights as the authors' state dict (or model.safetensors)
frame.safetensors    embedding, norms, MLPs and readout
machine.json         the machine that is followed
words.npz            golden words
kernel.npz           what the kernel of the only layer is given (where there is one)
model.py             the model, of the authors' layers
check_kernel.py      does a kernel follow the machine?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from safetensors.torch import save as to_bytes
from torch import Tensor

from statetrack.errors import SettingsError, setting
from statetrack.exporting.kernel import Tables, tables_of
from statetrack.exporting.layer import LAYOUTS, Layout, Weights, blocks_of
from statetrack.exporting.words import GoldenWords, golden_words
from statetrack.models import BlockModel, SequenceModel, cast, copy_of
from statetrack.runs import Run, require_new, to_json, write_file
from statetrack.sources import Automaton
from statetrack.spec import Task, load_task

STANDALONE: Final = Path(__file__).parent / "standalone"
CONFIG_VERSION: Final = 1


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    layout: str
    layers: tuple[str, ...]
    """The authors' classes, in order."""
    words: int
    answers: int
    """How many answers are asked for on the golden words."""
    longest: int
    """Symbols of the longest golden word."""
    margin: float
    """The least margin of a right answer, in float64."""
    kernel: str
    """What the kernel computes; empty where no kernel can be checked alone."""
    why_no_kernel: str = ""


def export(
    subject: Run | SequenceModel | str | Path,
    layout: str,
    folder: str | Path,
    *,
    task: Task | str | Path | None = None,
    length: int = 2048,
    seed: int = 0,
) -> Exported:
    """Write a model in a layout, with golden words, into a new folder.

    `subject` is a run, its folder, or a model with its `task`; the golden words are drawn by
    `seed`, the longest have `length` symbols. Weights keep their precision.

    Raises `UnknownNameError` for a layout that does not exist, and `SettingsError` where it has no
    layer that can be what the model's is, where the task is no automaton, and where the model is
    wrong on all golden words from the start.
    """
    chosen = LAYOUTS[layout]
    model, task = _opened(subject, task)
    automaton = task.automaton
    layers = _layers(chosen, model, layout)
    exact = copy_of(model).cpu().eval().requires_grad_(False)
    cast(exact, torch.float64)
    words = golden_words(exact, automaton, length=length, seed=seed)
    tables, why = _tables(exact, words, seed)
    path = Path(folder)
    require_new(path)
    path.mkdir(parents=True, exist_ok=True)
    for layer in layers:
        _save(path / layer.file, layer.weights)
    if isinstance(model, BlockModel) and layers:
        _save(path / "frame.safetensors", _frame(model))
        _copy("model.py", path)
    else:
        _save(path / "model.safetensors", dict(model.state_dict()))
    _copy("check_kernel.py", path)
    config = _config(chosen, model, layout, layers, task)
    for name, content in (("config.json", config), ("machine.json", _machine(task, automaton))):
        write_file(path / name, (to_json(content, indent=2) + "\n").encode())
    arrays = _words(words)
    arrays |= {} if tables is None else {"contexts": tables.contexts.astype(np.int32)}
    np.savez_compressed(path / "words.npz", allow_pickle=False, **arrays)
    if tables is not None:
        np.savez_compressed(path / "kernel.npz", allow_pickle=False, **_arrays(model, tables))
    found = Exported(
        path,
        layout,
        tuple(layer.home for layer in layers),
        len(words.lengths),
        words.num_answers,
        int(words.lengths.max()),
        words.margin,
        "" if tables is None else tables.kernel.says,
        why,
    )
    write_file(path / "README.md", _readme(found, chosen, task, tables).encode())
    return found


class _File(NamedTuple):
    """A layer in a file of its own."""

    file: str
    home: str
    weights: Weights
    config: dict[str, Any]


def _opened(
    subject: Run | SequenceModel | str | Path, task: Task | str | Path | None
) -> tuple[SequenceModel, Task]:
    """The model and its task, of a run or of what was given."""
    if isinstance(subject, str | Path):
        subject = Run.open(subject)
    if isinstance(subject, Run):
        return subject.model(), subject.task if task is None else load_task(task)
    if task is None:
        raise SettingsError(f"a model that is no run needs {setting('task')}: the one it follows")
    return subject, load_task(task)


def _layers(chosen: Layout, model: SequenceModel, layout: str) -> list[_File]:
    """The authors' layers with a model's weights, in order; none where it is exported whole."""
    if chosen.whole:
        return []
    blocks, found = blocks_of(model, layout), []
    for number, mixer in enumerate(blocks.mixers):
        layer = chosen.layer_of(mixer, type(model).__name__, layout)
        call = {name: value.tolist() for name, value in layer.call(mixer).items()}
        said = {
            "class": layer.home,
            "arguments": dict(layer.arguments(mixer, blocks.settings.width)),
            "configuration": layer.configuration,
            "more": dict(layer.more),
            "attributes": dict(layer.attributes),
            "call": call,
            "file": f"layer-{number}.safetensors",
        }
        found.append(_File(str(said["file"]), layer.home, layer.weights(mixer), said))
    return found


def _frame(model: BlockModel[Any]) -> Weights:
    """All weights but the mixers', under our names; the embedding of every symbol as it is read."""
    own = {name: value for name, value in model.state_dict().items() if ".mixer." not in name}
    kept = ("blocks.", "norm.", "readout.")
    frame = {name: value for name, value in own.items() if name.startswith(kept)}
    with torch.no_grad():
        frame["embedding"] = model.embedding(torch.arange(model.num_symbols))
    return frame


def _tables(exact: SequenceModel, words: GoldenWords, seed: int) -> tuple[Tables | None, str]:
    """The tables of the model's kernel, or why there are none."""
    if not isinstance(exact, BlockModel):
        return None, "the model is not made of blocks around recurrent layers"
    try:
        return tables_of(exact, words.tokens, seed=seed), ""
    except SettingsError as why:
        return None, str(why)


def _arrays(model: SequenceModel, tables: Tables) -> dict[str, Any]:
    """What kernel.npz holds, in float64: a row for each context, and what follows the kernel."""
    kernel, after, one = tables.kernel, tables.kernel.after, torch.ones(1)
    assert isinstance(model, BlockModel)
    rows = len(tables.stream)
    found = {f"layer.{name}": value for name, value in kernel.arguments.items()}
    if kernel.gauged:
        other = {**kernel.arguments, **kernel.gauged}
        found |= {f"other-gauge.{name}": value for name, value in other.items()}
    found |= {f"fixed.{name}": value for name, value in kernel.constants.items()}
    for name, default in (("plus", 0 * one), ("before", one), ("shift", 0 * one), ("scale", one)):
        value = getattr(after, name)
        found[name] = default.expand(rows, 1) if value is None else value
    found |= {
        "groups": torch.tensor(after.groups if after.norm != "none" else 0),
        "centred": torch.tensor(float(after.norm == "layer")),
        "epsilon": torch.tensor(after.epsilon),
        "gain": one if after.gain is None else after.gain.flatten(),
        "bias": 0 * one if after.bias is None else after.bias,
        "output": after.output,
        "stream": tables.stream,
        **_last_norm(model),
        "readout": model.readout.weight,
        "readout_bias": model.readout.bias,
    }
    return {name: value.detach().double().numpy() for name, value in found.items()}


def _last_norm(model: BlockModel[Any]) -> Weights:
    """The norm before the readout."""
    norm, kind, one = model.norm, model.settings.norm, torch.ones(1)
    epsilon = {"rms": getattr(norm, "epsilon", 0.0), "layer": getattr(norm, "eps", 0.0)}
    bias = getattr(norm, "bias", None)
    return {
        "last_norm": torch.tensor(float(kind != "none")),
        "last_centred": torch.tensor(float(kind == "layer")),
        "last_epsilon": torch.tensor(epsilon.get(kind, 0.0)),
        "last_gain": getattr(norm, "weight", one),
        "last_bias": 0 * one if bias is None else bias,
    }


def _words(words: GoldenWords) -> dict[str, Any]:
    """What words.npz holds."""
    return {
        "kinds": np.array(words.kinds),
        "tokens": words.tokens.astype(np.int32),
        "lengths": words.lengths.astype(np.int32),
        "answers": words.answers.astype(np.int32),
        "margins": words.margins.astype(np.float32),
        "least": np.float64(words.margin),
        "places": words.places.astype(np.int32),
        "logits": words.logits,
    }


def _config(
    chosen: Layout, model: SequenceModel, layout: str, layers: list[_File], task: Task
) -> dict[str, Any]:
    """What config.json says."""
    settings: Mapping[str, Any] = model.settings.model_dump()
    said = {
        "version": CONFIG_VERSION,
        "layout": layout,
        "of": chosen.title,
        "model": type(model).__name__,
        "settings": settings,
        "task": task.name,
        "symbols": model.num_symbols,
        "labels": model.num_labels,
    }
    if not layers:
        return said
    frame = ("norm", "mlp_kind", "residual")
    return (
        said
        | {name: settings[name] for name in frame}
        | {"layers": [each.config for each in layers]}
    )


def _machine(task: Task, automaton: Automaton) -> dict[str, Any]:
    """What machine.json says: integers, and their names."""
    return {
        "task": task.name,
        "title": task.spec.title,
        "symbols": list(automaton.symbols),
        "states": list(automaton.states),
        "start": automaton.start,
        "delta": automaton.delta.tolist(),
        "output": automaton.output.tolist(),
        "scored": automaton.scored.tolist(),
    }


def _readme(found: Exported, chosen: Layout, task: Task, tables: Tables | None) -> str:
    """Ten lines: what is here, and what to do with it."""
    layers = ", ".join(dict.fromkeys(found.layers)) or "model.safetensors"
    lines = [
        f"# {task.name}: {task.spec.title}",
        f"Weights for {chosen.title} ({layers}), and {found.words} golden words of up to "
        f"{found.longest:,} symbols with the answers of the machine of machine.json (words.npz). "
        "In float64 these weights give all of these answers, with a margin of "
        f"{found.margin:.3g} at least; what they answer to longer words is not tested.",
    ]
    if found.layers:
        lines += [
            "The whole model, of the authors' layers:\n\n"
            "    python check_kernel.py model.py:forward --whole"
        ]
    else:
        lines += [
            "A whole model of yours, from tokens [words, time] to logits [words, time, labels]:\n\n"
            "    python check_kernel.py FILE.py:FUNCTION --whole"
        ]
    if tables is None:
        lines += [f"A kernel cannot be checked without the model: {found.why_no_kernel}."]
    else:
        lines += _about_kernel(tables)
    return "\n\n".join(lines) + "\n"


def _about_kernel(tables: Tables) -> list[str]:
    kernel = tables.kernel
    shapes = {name: [*value.shape[1:]] for name, value in kernel.arguments.items()}
    given = [f"{name} [{', '.join(['B', 'T', *map(str, own)])}]" for name, own in shapes.items()]
    given += [f"{n} {list(v.shape) or '(a number)'}" for n, v in kernel.constants.items()]
    lines = [
        "A kernel alone, by its arguments' names:\n\n"
        f"    python check_kernel.py my_kernel.py:forward\n\n"
        f"def forward({', '.join([*kernel.arguments, *kernel.constants])}): return o\n\n"
        f"{'; '.join(given)}. It computes {kernel.says}. With --pieces N it also takes `state` and "
        "returns (o, state); with --packed also `cu_seqlens`.",
    ]
    if kernel.gauged:
        lines += [
            "`layer` has the layer's own arguments, `other-gauge` the same map with other beta, k, "
            "v (and g where it can be): k is then not of unit length, and beta |k|^2 may be above "
            "2. A kernel must not normalise k."
        ]
    return lines


def _save(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights under all their names, each with numbers of its own."""
    whole = torch.contiguous_format
    own = {name: value.detach().cpu().clone(memory_format=whole) for name, value in weights.items()}
    write_file(path, to_bytes(own))


def _copy(name: str, folder: Path) -> None:
    write_file(folder / name, (STANDALONE / name).read_bytes())
