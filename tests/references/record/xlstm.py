"""Numbers of the xLSTM from the authors' package: a language model of both kinds of block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from tests.references.record.command import Tensors, moved, run, weights_of

METADATA = {
    "repository": "NX-AI/xlstm",
    "commit": "8901ba086fb94ced9a277d041ad68fc036f6684f",
    "files": "xlstm (xLSTMLMModel; sLSTM cell: vanilla backend; mLSTM cell: parallel form)",
    "licence": "Apache-2.0",
    "remark": "run from the package xlstm 2.0.6, whose distribution names no commit",
}
SETTINGS = {
    "vocab_size": 4,
    "embedding_dim": 8,
    "num_heads": 2,
    "num_blocks": 2,
    "slstm_at": [1],
    "round_proj_up_to_multiple_of": 1,
    "context_length": 19,
}


def record(settings: Mapping[str, Any]) -> Tensors:
    """Logits [B, T, V] of symbols [B, T], and outputs of both layers alone.

    Those of the mLSTM layer are its parallel form and, step by step, its recurrent form.
    """
    from xlstm import (  # type: ignore[import-not-found]
        FeedForwardConfig,
        mLSTMBlockConfig,
        mLSTMLayerConfig,
        sLSTMBlockConfig,
        sLSTMLayerConfig,
        xLSTMLMModel,
        xLSTMLMModelConfig,
    )

    heads, multiple = settings["num_heads"], settings["round_proj_up_to_multiple_of"]
    matrix = mLSTMLayerConfig(num_heads=heads, round_proj_up_to_multiple_of=multiple)
    scalar = sLSTMLayerConfig(
        num_heads=heads, backend="vanilla", dtype="float32"
    )  # unused by vanilla
    mlp = FeedForwardConfig(
        embedding_dim=settings["embedding_dim"], round_proj_up_to_multiple_of=multiple
    )
    model = xLSTMLMModel(
        xLSTMLMModelConfig(
            mlstm_block=mLSTMBlockConfig(mlstm=matrix),
            slstm_block=sLSTMBlockConfig(slstm=scalar, feedforward=mlp),
            vocab_size=settings["vocab_size"],
            embedding_dim=settings["embedding_dim"],
            num_blocks=settings["num_blocks"],
            slstm_at=list(settings["slstm_at"]),
            context_length=settings["context_length"],
        )
    )
    model.reset_parameters()
    moved(model, spread=0.3)
    symbols = torch.randint(settings["vocab_size"], (3, settings["context_length"]))
    matrix_layer, scalar_layer = (block.xlstm for block in model.xlstm_block_stack.blocks)
    state: dict[str, Any] = {}
    steps = []
    inputs = torch.randn(2, settings["context_length"], settings["embedding_dim"])
    for x in inputs.split(1, 1):
        output, state = matrix_layer.step(x, **state)
        steps.append(output)
    return {
        "inputs": symbols,
        "outputs": model(symbols),
        "layer_inputs": inputs,
        "mlstm_in_parallel": matrix_layer(inputs),
        "mlstm_by_steps": torch.cat(steps, 1),
        "slstm": scalar_layer(inputs),
        **weights_of(model),
    }


if __name__ == "__main__":
    run(record, METADATA, SETTINGS)
