"""Recurrent layers and attention: the exact weights of the recurrent model, and attention of 0."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from statetrack.algebra import Alternating
from statetrack.constructions.case import Case, NotBuilt
from statetrack.constructions.registry import construction, construction_for
from statetrack.errors import setting
from statetrack.models import SequenceModel
from statetrack.predicting import predict
from statetrack.settings import build


@construction(
    Alternating,
    name="recurrent layers alone",
    equation="h_t = that of the recurrent model in its layers; attention writes 0",
    source="own",
    margin="that of the recurrent model's own construction",
)
def by_recurrent_layers(case: Case) -> SequenceModel:
    """The blocks of the recurrent model's exact weights, between blocks that write nothing."""
    given = dict(case.options)
    if given.get("bos"):
        raise NotBuilt(f"{setting('bos', True)}: the weights read no token before the word")
    wanted: Any = build(
        case.kind.settings_class,
        {**given, **case.sizes, "layers": case.sizes.get("layers", given.get("layers", 2))},
        case.model,
    )
    built = _recurrent(case, wanted, {})
    heads = given.get("heads", 1)
    if over := built.settings.width % (2 * heads):  # rotary positions pair coordinates of a head
        built = _recurrent(case, wanted, {"width": built.settings.width + 2 * heads - over})
    own = built.settings
    options = [
        f"{name}={getattr(own, name)}"
        for name in type(own).model_fields
        if name not in (*wanted.shared, "layers")
    ]
    made: Any = case.kind(
        build(
            case.kind.settings_class,
            {
                **given,
                **{name: getattr(own, name) for name in wanted.shared},
                "layers": wanted.layers,
                "heads": heads,
                "recurrent": ":".join([wanted.recurrent_name, ",".join(options)]),
            },
            case.model,
        ),
        num_symbols=case.automaton.num_symbols,
        num_labels=case.automaton.num_labels,
    ).double()
    blocks = iter(built.blocks)
    with torch.no_grad():
        for letter, block in zip(wanted.letters, made.blocks, strict=True):
            if letter == "R":
                block.load_state_dict(next(blocks).state_dict())
                continue
            for module in block.modules():
                is_norm = "norm" in type(module).__name__.lower()
                for name, parameter in module.named_parameters(recurse=False):
                    parameter.fill_(float(is_norm and name == "weight"))
    for name in ("embedding", "norm", "readout"):
        _copy(built.get_submodule(name), made.get_submodule(name), name)
    model: SequenceModel = made.eval()
    return model


def _recurrent(case: Case, wanted: Any, wider: dict[str, int]) -> Any:
    """The recurrent model with exact weights, and as many layers as the pattern has of it."""
    name, settings = wanted.recurrent_name, wanted.recurrent_settings()
    options = {key: case.options[key] for key in wanted.shared if key in case.options}
    options |= {key: getattr(settings, key) for key in wanted.recurrent_options()}
    options |= {"layers": settings.layers, **wider}
    own = Case(name, options, case.automaton, case.algebra, predict(case.algebra, name, **options))
    return construction_for(own).make(own)


def _copy(source: nn.Module, target: nn.Module, name: str) -> None:
    if type(source) is not type(target):
        raise NotBuilt(f"the {name} of the recurrent model is not the hybrid's")
    target.load_state_dict(source.state_dict())
