"""A hybrid: blocks of softmax attention and blocks of a recurrent model, in a pattern.

    x = x + mixer_l(norm(x)),    x = x + mlp(norm(x)),    mixer_l = recurrent (R) or attention (A)

The pattern is repeated over the layers: `RRRA` with 4 layers is three recurrent blocks and one of
attention. The recurrent blocks are those of `--recurrent`, any other model here that is made of
blocks and has a state, with options of its own behind a colon: `gated-deltanet:beta=double,conv=0`.
The blocks of attention are the Transformer's. Both have the hybrid's width, norm, MLP and kernel.

Softmax attention keeps all earlier positions, so a hybrid has no state of constant size and reads
words as a whole. A pattern has both letters among its layers: with one kind alone it is that model.

Source: Merrill et al. (2026), Olmo Hybrid: From Theory to Practice and Back, arXiv:2604.03444
(blocks of Gated DeltaNet and of attention); attention of Vaswani et al. (2017), arXiv:1706.03762;
recurrent blocks of the sources of their models.

Parameters: those of its blocks, of V embeddings and of the readout.

Checked: against the Transformer where its recurrent blocks write nothing, against the recurrent
model where attention writes nothing, and against copied blocks of both one after the other, with
gradients, to 1e-9 in tests/references/test_attention_and_gates.py.

Departures: `RA` with two layers by default (`--pattern RRRA --layers 4 --recurrent
gated-deltanet:beta=double` has three recurrent blocks for one of attention); positions are rotary
by default; embeddings start from N(0, 1) and the readout as `torch.nn` draws it, whatever the
recurrent model's frame is; what a recurrent model has outside its blocks is left out.

B batch, T time, D width, N heads.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator, model_validator
from torch import Tensor, nn
from torch.nn import functional

from statetrack.algebra import Alternating, Attention, Size
from statetrack.errors import StatetrackError, setting
from statetrack.models._base import SequenceModel, require_divisor, through
from statetrack.models._blocks import Block, BlockModel
from statetrack.models._layers import make_norm
from statetrack.models._linear import Linear, compute_by
from statetrack.models._registry import MODEL_FACTS, MODELS
from statetrack.models._settings import (
    ABOUT_BOS,
    ABOUT_HEADS,
    ABOUT_MLP,
    MOST_LAYERS,
    BlockSettings,
    ModelSettings,
)
from statetrack.models.transformer import (
    TransformerBlock,
    TransformerSettings,
    distances,
    require_pairs,
)
from statetrack.ops import native
from statetrack.settings import build, option


class HybridSettings(BlockSettings):
    """Settings of a hybrid."""

    shared: ClassVar[tuple[str, ...]] = ("width", "norm", "mlp", "mlp_kind", "residual", "kernel")
    """The settings that both kinds of blocks take from the hybrid."""

    layers: int = option(2, "Number of blocks.", min=2, max=MOST_LAYERS)
    mlp: float = option(4.0, ABOUT_MLP, min=0)
    pattern: str = option(
        "RA", "Blocks in order, R for recurrent and A for attention; the pattern repeats."
    )
    recurrent: str = option(
        "gated-deltanet",
        "The model whose blocks the recurrent ones are, with options of it behind a colon: "
        "gated-deltanet:beta=double,conv=0.",
    )
    heads: int = option(4, f"{ABOUT_HEADS[:-1]}, of attention.", min=1)
    positions: Literal["none", "rotary", "alibi"] = option(
        "rotary", "How positions enter attention; none: by the causal mask alone."
    )
    bos: bool = option(False, ABOUT_BOS)

    @field_validator("pattern")
    @classmethod
    def _only_blocks(cls, pattern: str) -> str:
        if not pattern or set(pattern) - {"R", "A"}:
            raise ValueError("a pattern is made of the letters R and A")
        return pattern

    @model_validator(mode="after")
    def _is_a_hybrid(self) -> HybridSettings:
        if missing := {"R", "A"} - set(self.letters):
            raise ValueError(
                f"the first {self.layers} blocks of the pattern {self.pattern} have no "
                f"{missing.pop()}: a hybrid has both kinds; take more layers, or the model of one "
                "kind itself"
            )
        try:
            self.recurrent_settings()
        except StatetrackError as problem:
            raise ValueError(f"recurrent blocks: {problem}") from None
        return self

    @property
    def letters(self) -> str:
        """The letter of every block, in order."""
        return "".join(self.pattern[layer % len(self.pattern)] for layer in range(self.layers))

    @property
    def recurrent_name(self) -> str:
        """The name of the recurrent model, without its options."""
        return self.recurrent.partition(":")[0]

    def recurrent_settings(self) -> BlockSettings:
        """The settings of the recurrent blocks.

        Raises `UnknownNameError` for a name that no model has, and `SettingsError` for a model
        whose blocks are not recurrent, and for options that it does not have or shares.
        """
        name = self.recurrent_name
        facts = MODEL_FACTS[name]
        kind, recurrence = facts.settings_class, facts.recurrence
        if not issubclass(kind, BlockSettings) or recurrence is None or not recurrence.has_state:
            raise ValueError(f"{name} is not made of recurrent blocks")
        shared = {key: getattr(self, key) for key in self.shared}
        layers = self.letters.count("R")
        return build(kind, {**shared, "layers": layers, **self.recurrent_options()}, name)

    def recurrent_options(self) -> dict[str, str]:
        """The options of the recurrent model alone, as they are written."""
        name, _, options = self.recurrent.partition(":")
        own = {}
        for part in filter(None, options.split(",")):
            key, equals, value = part.partition("=")
            key = key.strip().replace("-", "_")
            if not equals or key in (*self.shared, "layers"):
                shared = ", ".join(map(setting, self.shared))
                raise ValueError(
                    f"'{part}' is no option=value of {name} alone: {shared} and "
                    f"{setting('layers')} are the hybrid's"
                )
            own[key] = value.strip()
        return own

    def attention_settings(self) -> TransformerSettings:
        """The settings of the blocks of attention."""
        shared = {key: getattr(self, key) for key in self.shared}
        return TransformerSettings(
            **shared,
            layers=self.letters.count("A"),
            heads=self.heads,
            positions=self.positions,
            bos=self.bos,
        )

    @property
    def recurrence(self) -> Alternating:
        """Attention and the recurrence of the other blocks."""
        settings = self.recurrent_settings()
        assert isinstance(settings, ModelSettings) and settings.recurrence is not None
        attention = self.attention_settings().recurrence
        assert isinstance(attention, Attention)
        return Alternating(
            layers=Size("layers", self.layers),
            pattern=self.pattern,
            recurrent=settings.recurrence,
            attention=attention,
            passes=self.residual,
        )


@MODELS.register("hybrid")
class Hybrid(SequenceModel):
    """Hybrid: blocks of softmax attention and of a recurrent model, in a pattern."""

    settings_class = HybridSettings
    family = "attention"
    source = "Merrill et al. 2026, arXiv:2604.03444"
    training_defaults = {"lrs": (1e-3,), "steps": 2000, "warmup": 0.1, "clip": 1.0}

    def __init__(self, settings: HybridSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        width = settings.width
        require_divisor(width, "heads", settings.heads)
        self.heads = settings.heads
        self.positions = settings.positions
        if settings.positions == "rotary":
            require_pairs(settings.positions, width // settings.heads)
        self.bos = int(settings.bos)
        whole = MODELS[settings.recurrent_name](
            settings.recurrent_settings(), num_symbols=num_symbols, num_labels=num_labels
        )
        assert isinstance(whole, BlockModel), settings.recurrent
        recurrent, attention = iter(whole.blocks), settings.attention_settings()
        self.embedding = nn.Embedding(num_symbols + self.bos, width)
        self.blocks = nn.ModuleList(
            next(recurrent) if letter == "R" else TransformerBlock(attention)
            for letter in settings.letters
        )
        self.norm = make_norm(settings.norm, width)
        self.readout = Linear(width, num_labels)
        compute_by(settings.kernel, self)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        symbols = functional.pad(symbols, (self.bos, 0), value=self.num_symbols)
        stream: Tensor = self.embedding(symbols)
        alibi = self.positions == "alibi"
        bias = distances(symbols.shape[1], self.heads, stream) if alibi else None
        with native.whole_words():
            for block in self.blocks:
                if isinstance(block, Block):
                    stream, _ = block.scan(stream, block.mixer.initial_state(len(symbols)))
                else:
                    stream = block(stream, bias)
        return through(self.readout, self.norm(stream[:, self.bos :]))
