"""Hand-set weights of the real models: one function for each class, by the model's name."""

from tests.claims.constructions import layered
from tests.claims.constructions.base import BeyondBudget, Case, Construction, NotBuilt
from tests.claims.constructions.delta import reflecting
from tests.claims.constructions.linear import (
    bilinear,
    bilinear_block,
    bilinear_cp,
    diagonal,
    full_matrix,
    ids4,
    pd_ssm,
    sd_ssm,
    slice_blocks,
    state_gated,
    token_gated,
)
from tests.claims.constructions.saturating import (
    matrix_network,
    scalar_lstm,
    second_order,
    stacked_lstm,
    torch_network,
)

CONSTRUCTIONS: dict[str, Construction] = {
    "aussm": layered.turning,
    "bilinear": bilinear,
    "bilinear-block": bilinear_block,
    "bilinear-cp": bilinear_cp,
    "bilinear-rotation": diagonal,
    "deltanet": reflecting,
    "deltaproduct": reflecting,
    "diagonal-complex": diagonal,
    "diagonal-positive": diagonal,
    "diagonal-real": diagonal,
    "full-matrix": full_matrix,
    "gated-deltanet": reflecting,
    "gated-deltaproduct": reflecting,
    "gla": layered.gla,
    "gru": torch_network,
    "ids4": ids4,
    "hgrn": layered.hgrn,
    "hgrn2": layered.hgrn2,
    "kda": reflecting,
    "lstm": torch_network,
    "m2rnn": matrix_network,
    "mamba": layered.selective,
    "mamba2": layered.mamba2,
    "mamba3": layered.mamba3,
    "min-gru": layered.min_gru,
    "minmax": layered.minmax,
    "mlstm": layered.mlstm,
    "pd-ssm": pd_ssm,
    "rnn": torch_network,
    "rg-lru": layered.rg_lru,
    "rwkv4": layered.rwkv4,
    "rwkv6": layered.rwkv6,
    "rwkv7": layered.rwkv7,
    "sd-ssm": sd_ssm,
    "second-order-rnn": second_order,
    "slice": slice_blocks,
    "slstm": scalar_lstm,
    "state-gated-rnn": state_gated,
    "token-gated-rnn": token_gated,
    "xlstm": stacked_lstm,
}

__all__ = ["CONSTRUCTIONS", "BeyondBudget", "Case", "Construction", "NotBuilt"]
