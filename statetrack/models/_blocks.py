"""Residual blocks around a sequence mixer, in which most published recurrences are trained.

    x = E[symbols];    x = x + mixer(norm(x));    x = x + mlp(norm(x));    logits = C norm(x)

where each model's own file defines its mixer. A mixer reads vectors one position after the other
and keeps only its state, so the whole model reads words of any length in constant memory. Blocks
may be normalised after their mixer instead (`PostNormModel`).

B batch, T time, V symbols, C labels, D width of the residual stream, N heads, K size of keys.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from itertools import chain
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from statetrack import ops
from statetrack.models._base import RecurrentModel, State, WithTransition, through
from statetrack.models._layers import (
    WideLayerNorm,
    after_mlp,
    beside,
    linear_maps,
    make_mlp,
    make_norm,
)
from statetrack.models._linear import Linear, RowsOfSymbols, WithKernel, at_symbols, compute_by
from statetrack.models._settings import BlockSettings
from statetrack.ops import (
    ColumnwiseOperators,
    DenseOperators,
    DiagonalOperators,
    Operators,
    diagonal_operators,
)

AT_ONCE = 1 << 13
"""Words times positions that a model of blocks reads at once where there are no gradients."""

StateT = TypeVar("StateT", bound=State)
TermsT = TypeVar("TermsT")
SettingsT = TypeVar("SettingsT", bound=BlockSettings)


def _unchanged(terms: Any) -> Any:
    return terms


class Mixer(WithKernel, abc.ABC, Generic[StateT]):
    """One layer's recurrence over vectors: a causal map [B, T, D] -> [B, T, D] with a state."""

    @abc.abstractmethod
    def initial_state(self, num_words: int) -> StateT:
        """The state of `num_words` words before their first position."""

    @abc.abstractmethod
    def scan(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""

    def memory_of(self, state: StateT) -> Any:
        """What the recurrence hands on, of a state: all of it, unless a mixer keeps inputs too."""
        return state

    def step(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, D] and the next state, of inputs [B, D]: a scan of one position."""
        outputs, state = self.scan(inputs.unsqueeze(1), state)
        return outputs.squeeze(1), state


class LinearMixer(Mixer[StateT], WithTransition):
    """A mixer whose next state is, for given inputs, an affine function of its last state."""


class StagedMixer(Mixer[StateT], Generic[StateT, TermsT]):
    """A mixer in stages: the terms of its recurrence, the recurrence itself, its outputs.

    Its state is a window, on which the terms depend besides a position's own input, and a memory,
    which the recurrence hands on: (window, memory), unless `split` and `join` say otherwise.
    """

    late_terms: ClassVar[tuple[str, ...]] = ()
    """The names of terms that are computed within `advance` and `recur`, and given to `cast`."""

    by_position: ClassVar[bool] = True
    """Whether all terms have one entry for each position, so that a part of them can be taken."""

    cast: Callable[[Any], Any] = staticmethod(_unchanged)
    """What is done to late terms: nothing, unless a rounding model replaces this function."""

    normalises_keys: ClassVar[bool] = False
    """Whether `terms` divides keys by their length; it then gives what it divides to `loaded`."""

    loaded: Callable[[Tensor], Tensor] = staticmethod(_unchanged)
    """What is done to queries, keys and values before: nothing, unless as for `cast`."""

    def split(self, state: Any) -> tuple[Any, Any]:
        """The window and the memory of a state."""
        window, memory = state
        return window, memory

    def join(self, window: Any, memory: Any) -> Any:
        """The state of a window and a memory."""
        return window, memory

    def memory_of(self, state: StateT) -> Any:
        """The memory of a state, without its window."""
        return self.split(state)[1]

    @abc.abstractmethod
    def terms(self, inputs: Tensor, window: Any) -> tuple[TermsT, Any]:
        """The terms at positions [B, T, D], or at one of each word, [B, D], and the next window."""

    @abc.abstractmethod
    def advance(self, terms: TermsT, memory: Any) -> tuple[Any, Any]:
        """What is read at one position, [B, ...], and the next memory: the equation itself."""

    def recur(self, terms: TermsT, memory: Any) -> tuple[Any, Any]:
        """What is read at all positions, [B, T, ...], and the last memory; one after the other."""
        parts: Any = terms
        here: Any
        read: list[Tensor] = []
        for here in zip(*(part.unbind(1) for part in parts), strict=True):
            output, memory = self.advance(here, memory)
            read.append(output)
        return torch.stack(read, 1), memory

    def recur_by_symbol(
        self, terms: TermsT, symbols: Tensor, memory: Any
    ) -> tuple[TermsT, Any, Any]:
        """The same of terms by symbol, [V, ...]; with what `finish` is to be given as terms."""
        everywhere = at_symbols(terms, symbols, self.kernel)
        return everywhere, *self.recur(everywhere, memory)

    @abc.abstractmethod
    def finish(self, read: Any, terms: TermsT, inputs: Tensor) -> Tensor:
        """Outputs [..., D] of what was read, at all positions or at one."""

    def scan(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        window, memory = self.split(state)
        if isinstance(inputs, RowsOfSymbols) and isinstance(window, tuple) and not window:
            by_symbol, _ = self.terms(inputs.table, window)
            terms, read, memory = self.recur_by_symbol(by_symbol, inputs.symbols, memory)
        else:
            terms, window = self.terms(inputs, window)
            read, memory = self.recur(terms, memory)
        return self.finish(read, terms, inputs), self.join(window, memory)

    def step(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        window, memory = self.split(state)
        terms, window = self.terms(inputs, window)
        read, memory = self.advance(terms, memory)
        return self.finish(read, terms, inputs), self.join(window, memory)


class AffineMixer(StagedMixer[StateT, TermsT], LinearMixer[StateT]):
    """A mixer in stages whose memory, a tensor, is what its transitions act on."""

    @abc.abstractmethod
    def operators(self, terms: TermsT) -> Operators:
        """The operators of terms at B T positions, on the flattened memory."""

    def recurrent_part(self, state: StateT) -> Tensor:
        """The memory as real numbers."""
        return _as_real(self.split(state)[1])

    def with_recurrent_part(self, state: StateT, part: Tensor) -> StateT:
        """The same window with another memory, complex where the state's is."""
        window, memory = self.split(state)
        with_part: StateT = self.join(window, _like(memory, part))
        return with_part

    def transition(self, inputs: Tensor, state: StateT | None = None) -> Operators:
        """The operators of every position, after the window of a state or of the initial one."""
        before = self.initial_state(len(inputs)) if state is None else state
        return self.operators(self.terms(inputs, self.split(before)[0])[0])


class PlainMixer(AffineMixer[StateT, TermsT]):
    """A mixer whose state is its memory alone, real or complex: it has no window."""

    def split(self, state: Any) -> tuple[Any, Any]:
        """No window, and the state."""
        return (), state

    def join(self, window: Any, memory: Any) -> Any:
        """The memory."""
        return memory


class DenseMixer(PlainMixer[Tensor, tuple[Tensor, Tensor]]):
    """h_t = A_t h_{t-1} + u_t with full matrices: h [B, H] is the memory, and what is read."""

    @ops.in_full_precision
    def advance(self, terms: tuple[Tensor, Tensor], memory: Tensor) -> tuple[Tensor, Tensor]:
        """h_t, twice, of A_t [B, H, H] and u_t [B, H]."""
        matrices, added = terms
        memory = (matrices @ memory.unsqueeze(-1)).squeeze(-1) + added
        return memory, memory

    def recur_by_symbol(
        self, terms: tuple[Tensor, Tensor], symbols: Tensor, memory: Tensor
    ) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """All states [B, T, H], and the last one, by one product for all words of a symbol."""
        matrices, added = terms
        states = ops.dense_recurrence(matrices, symbols, memory, ops.lookup(added, symbols))
        return terms, states.transpose(0, 1), states[-1]

    def operators(self, terms: tuple[Tensor, Tensor]) -> Operators:
        """The matrices of every position."""
        return DenseOperators(terms[0].flatten(0, 1))


class MatrixTerms(NamedTuple):
    """The terms of a matrix memory: queries, keys and log-gains (None: 0) [..., N, K], values."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    log_gains: Tensor | None = None


class MatrixMixer(AffineMixer[StateT, MatrixTerms]):
    """Outer products of keys and values, added up in heads whose rows decay, read by queries.

    S_t = diag(a_t) S_{t-1} + k_t v_t^T is the memory, [B, N, K, V], and S_t^T q_t what is read.
    """

    def advance(self, terms: MatrixTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """S_t^T q_t [B, N, V], and S_t."""
        queries, keys, values, log_gains = terms
        if log_gains is not None:
            memory = log_gains.exp().unsqueeze(-1) * memory
        memory = memory + keys.unsqueeze(-1) * values.unsqueeze(-2)
        return torch.einsum("bnk,bnkv->bnv", queries, memory), memory

    def recur(self, terms: MatrixTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The same at all positions, by chunks or by a kernel."""
        queries, keys, values, log_gains = terms
        if log_gains is None:
            return ops.additive_attention(queries, keys, values, memory, kernel=self.kernel)
        return ops.gated_attention(queries, keys, values, log_gains, memory, kernel=self.kernel)

    def operators(self, terms: MatrixTerms) -> Operators:
        """The gains of every row, on each of the V columns; the identity without gains."""
        keys, columns = terms.keys.flatten(0, 1).flatten(1), terms.values.shape[-1]
        log_gains = terms.log_gains
        gains = torch.ones_like(keys) if log_gains is None else log_gains.exp().view_as(keys)
        return ColumnwiseOperators(DiagonalOperators(gains), columns)


class DiagonalTerms(NamedTuple):
    """The gains of a diagonal recurrence and what it adds, [..., H], real or complex."""

    gains: Tensor
    added: Tensor


class DiagonalMixer(AffineMixer[StateT, DiagonalTerms]):
    """h_t = a_t * h_{t-1} + u_t by coordinate: h [B, H] is the memory, and what is read."""

    def advance(self, terms: DiagonalTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """h_t, twice."""
        gains, added = terms
        memory = gains * memory + added
        return memory, memory

    def recur(self, terms: DiagonalTerms, memory: Tensor) -> tuple[Tensor, Tensor]:
        """All states [B, T, H], and the last one."""
        return ops.gated_diagonal(*terms, memory, kernel=self.kernel)

    def operators(self, terms: DiagonalTerms) -> Operators:
        """The gains of every position."""
        return diagonal_operators(terms.gains.flatten(0, 1))


class BlockModel(RecurrentModel, Generic[SettingsT]):
    """Embedding, blocks of a mixer and an optional MLP, normalised linear readout.

    A subclass names its `mixer_class`, which is built from the model's settings; where mixers
    differ from layer to layer, it overrides `make_mixer`. A mixer draws its first weights itself;
    those of the frame around the mixers are torch's defaults, unless a subclass names another
    `frame` or overrides `initialise_frame`.
    """

    family = "gated"
    training_defaults = {"lrs": (3e-3,), "steps": 2000, "warmup": 0.1, "clip": 1.0}
    mixer_class: ClassVar[type[Mixer[Any]]]
    frame: ClassVar[Literal["torch", "normal", "normal, by depth"]] = "torch"
    """How embedding, MLPs and readout start: as in torch, or from N(0, 0.02^2) with biases of 0.

    The latter is how models of flash-linear-attention start; in their first releases the last map
    of each of L MLPs was divided by sqrt(2 L), `by depth`.
    """
    settings: SettingsT

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.embedding = self.make_embedding()
        self.blocks = nn.ModuleList(self.make_block(layer) for layer in range(settings.layers))
        self.norm = make_norm(settings.norm, settings.width)
        self.readout = Linear(settings.width, num_labels)
        compute_by(settings.kernel, self)
        self.initialise_frame()

    def initialise_frame(self) -> None:
        """Draw the first weights of embedding, norms, MLPs and readout anew, where a source does.

        It is called once, at the end of `__init__`, and leaves the mixers as they are.
        """
        if self.frame == "torch":
            return
        mlps = [maps for block in self._blocks() if (maps := linear_maps(block.mlp))]
        nn.init.normal_(self.embedding.weight, std=0.02)
        for linear in (*chain.from_iterable(mlps), self.readout):
            nn.init.normal_(linear.weight, std=0.02)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        if self.frame == "normal, by depth":
            with torch.no_grad():
                for *_, last in mlps:
                    last.weight.div_((2 * len(self.blocks)) ** 0.5)

    def make_embedding(self) -> nn.Embedding:
        """The map from symbols [B, T] to the stream [B, T, D]; called from `__init__`."""
        return nn.Embedding(self.num_symbols, self.settings.width)

    def make_mixer(self, layer: int) -> Mixer[Any]:
        """The mixer of block number `layer`, freshly initialised; called from `__init__`."""
        return self.mixer_class(self.settings)

    def make_block(self, layer: int) -> Block:
        """Block number `layer`: by default every block has the model's settings."""
        return Block(self.settings, self.make_mixer(layer))

    @property
    def mixers(self) -> list[Mixer[Any]]:
        """The mixers of all blocks; the tuple of their states, in order, is the model's state."""
        return [block.mixer for block in self._blocks()]

    def initial_state(self, num_words: int) -> State:
        """The state of every block, in a tuple."""
        return tuple(mixer.initial_state(num_words) for mixer in self.mixers)

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state, after symbols [B, T].

        Without gradients long words are read piece by piece, in constant memory.
        """
        if symbols.dim() == 1 or reads_at_once(symbols):
            return self._scan(symbols, state)
        logits = []
        for piece in symbols.split(max(1, AT_ONCE // len(symbols)), 1):
            output, state = self._scan(piece, state)
            logits.append(output)
        return torch.cat(logits, 1), state

    def _scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        stream, after = self._embedded(symbols), []
        for block, own in zip(self._blocks(), state, strict=True):
            stream, own = block.scan(stream, own)
            after.append(own)
        return self.readout(self.norm(stream)), tuple(after)

    def _embedded(self, symbols: Tensor) -> Tensor:
        """The stream [B, T, D] of symbols [B, T], or [B, D] of [B]."""
        if symbols.dim() == 1 or symbols.numel() <= self.num_symbols:
            return through(self.embedding, symbols)
        every = torch.arange(self.num_symbols, device=symbols.device)
        return RowsOfSymbols.of(through(self.embedding, every), symbols, self.settings.kernel)

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        if not reads_at_once(symbols):
            return super().forward(symbols)
        with ops.native.whole_words():
            return super().forward(symbols)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        return self.scan(symbols, state)

    def _blocks(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]


def reads_at_once(symbols: Tensor) -> bool:
    """Whether symbols [B, T] are read at once: with gradients, or where they are few."""
    return torch.is_grad_enabled() or symbols.numel() <= AT_ONCE


class Block(nn.Module):
    """norm and mixer, then (unless its width is 0) norm and MLP, each added to its input."""

    def __init__(self, settings: BlockSettings, mixer: Mixer[Any]) -> None:
        super().__init__()
        width = settings.width
        self.residual = settings.residual
        self.mixer_norm = make_norm(settings.norm, width)
        self.mixer = mixer
        self.mlp = make_mlp(settings)

    def scan(self, stream: Tensor, state: State) -> tuple[Tensor, State]:
        """The stream after this block, and the mixer's state: of [B, T, D], or [B, D] at once."""
        mixer = self.mixer.scan if stream.dim() == 3 else self.mixer.step
        inputs: Tensor
        if isinstance(stream, RowsOfSymbols):
            inputs = stream.mapped(self.mixer_norm)
        else:
            inputs, stream = beside(self.mixer_norm, stream)
        mixed, state = mixer(inputs, state)
        return self._finish(stream, mixed), state

    def _finish(self, stream: Tensor, mixed: Tensor) -> Tensor:
        stream = stream + mixed if self.residual else mixed
        return after_mlp(self.mlp, stream, self.residual)


class PostNormModel(BlockModel[SettingsT]):
    """A block model whose blocks end with a norm; a subclass may give them a stage.

        y = x + mixer(x)  (mixer(x) without a residual),    y = y + stage(y),    x = norm(y)

    where the stage is optional; logits = C x + c, without a further norm.
    """

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.norm = nn.Identity()  # the last block's output is normalised

    def make_block(self, layer: int) -> Block:
        """A block with the stage of `make_stage`."""
        return PostNormBlock(self.settings, self.make_mixer(layer), self.make_stage())

    def make_stage(self) -> nn.Module | None:
        """What is added to a block's stream after its mixer; None: nothing."""
        return None


class PostNormBlock(Block):
    """Mixer, stage and (unless its width is 0) norm and MLP, each added; then a norm."""

    def __init__(
        self, settings: BlockSettings, mixer: Mixer[Any], stage: nn.Module | None = None
    ) -> None:
        super().__init__(settings, mixer)
        self.mixer_norm = nn.Identity()
        self.stage = stage
        width = settings.width
        self.norm = (
            WideLayerNorm(width) if settings.norm == "layer" else make_norm(settings.norm, width)
        )

    def _finish(self, stream: Tensor, mixed: Tensor) -> Tensor:
        stream = stream + mixed if self.residual else mixed
        if self.stage is not None:
            stream = stream + through(self.stage, stream)
        if self.mlp is not None:
            stream = self.mlp.added_to(stream)
        return through(self.norm, stream)


def _as_real(part: Tensor) -> Tensor:
    """Complex numbers as pairs along a last axis, real ones as they are."""
    return torch.view_as_real(part) if part.is_complex() else part


def _like(part: Tensor, real: Tensor) -> Tensor:
    """The inverse of `_as_real`: complex where `part` is."""
    return torch.view_as_complex(real.contiguous()) if part.is_complex() else real
