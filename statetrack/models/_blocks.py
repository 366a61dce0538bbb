"""Residual blocks around a sequence mixer, in which most published recurrences are trained.

    x = E[symbols];    x = x + mixer(norm(x));    x = x + mlp(norm(x));    logits = C norm(x)

where each model's own file defines its mixer. A mixer reads vectors one position after the other
and keeps only its state, so the whole model reads words of any length in constant memory.

B batch, T time, V symbols, C labels, D width of the residual stream.
"""

from __future__ import annotations

import abc
import itertools
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from statetrack.models._base import RecurrentModel, State, WithTransition, through
from statetrack.models._settings import BlockSettings
from statetrack.ops import KernelChoice, kernel_for

StateT = TypeVar("StateT", bound=State)
WindowT = TypeVar("WindowT", bound=State)
SettingsT = TypeVar("SettingsT", bound=BlockSettings)


class Mixer(nn.Module, abc.ABC, Generic[StateT]):
    """One layer's recurrence over vectors: a causal map [B, T, D] -> [B, T, D] with a state.

    `kernel` names the implementation of the scan; it is torch where no other library has one.
    """

    kernel: KernelChoice = "torch"

    @abc.abstractmethod
    def initial_state(self, num_words: int) -> StateT:
        """The state of `num_words` words before their first position."""

    @abc.abstractmethod
    def scan(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""

    def step(self, inputs: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Outputs [B, D] and the next state, of inputs [B, D]: a scan of one position."""
        outputs, state = self.scan(inputs.unsqueeze(1), state)
        return outputs.squeeze(1), state


class LinearMixer(Mixer[StateT], WithTransition):
    """A mixer whose next state is, for given inputs, an affine function of its last state."""


class PlainMixer(LinearMixer[Tensor]):
    """A linear mixer whose state is the recurrent part alone, real or complex."""

    def recurrent_part(self, state: Tensor) -> Tensor:
        """The state as real numbers."""
        return _as_real(state)

    def with_recurrent_part(self, state: Tensor, part: Tensor) -> Tensor:
        """The part, complex where the state is."""
        return _like(state, part)


class WindowedMixer(LinearMixer[tuple[WindowT, Tensor]]):
    """A linear mixer whose state is a window of the last inputs, and then the recurrent part."""

    def recurrent_part(self, state: tuple[WindowT, Tensor]) -> Tensor:
        """The second part of the state as real numbers."""
        return _as_real(state[1])

    def with_recurrent_part(
        self, state: tuple[WindowT, Tensor], part: Tensor
    ) -> tuple[WindowT, Tensor]:
        """The same window with another recurrent part, complex where the state's is."""
        return state[0], _like(state[1], part)

    def window(self, state: tuple[WindowT, Tensor] | None, num_words: int) -> WindowT:
        """The window of the last inputs: of the given state, or of the initial one for None."""
        return (self.initial_state(num_words) if state is None else state)[0]


class BlockModel(RecurrentModel, Generic[SettingsT]):
    """Embedding, blocks of a mixer and an optional MLP, normalised linear readout.

    A subclass names its `mixer_class`, which is built from the model's settings; where mixers
    differ from layer to layer, it overrides `make_mixer`. A mixer draws its first weights itself;
    those of the frame around the mixers are torch's defaults, unless a subclass overrides
    `initialise_frame`.
    """

    family = "gated"
    training_defaults = {"lrs": (3e-3,), "steps": 2000, "warmup": 0.1, "clip": 1.0}
    mixer_class: ClassVar[type[Mixer[Any]]]
    settings: SettingsT

    def __init__(self, settings: SettingsT, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.embedding = self.make_embedding()
        self.blocks = nn.ModuleList(self.make_block(layer) for layer in range(settings.layers))
        self.norm = make_norm(settings.norm, settings.width)
        self.readout = nn.Linear(settings.width, num_labels)
        self.initialise_frame()

    def initialise_frame(self) -> None:
        """Draw the first weights of embedding, norms, MLPs and readout anew, where a source does.

        It is called once, at the end of `__init__`, and leaves the mixers as they are.
        """

    def make_embedding(self) -> nn.Embedding:
        """The map from symbols [B, T] to the stream [B, T, D]; called from `__init__`."""
        return nn.Embedding(self.num_symbols, self.settings.width)

    def make_mixer(self, layer: int) -> Mixer[Any]:
        """The mixer of block number `layer`, freshly initialised; called from `__init__`."""
        return self.mixer_class(self.settings)

    def make_block(self, layer: int) -> Block:
        """Block number `layer`: by default every block has the model's settings."""
        return Block(self.settings, self.make_mixer(layer))

    def kernel_on(self, device: torch.device) -> Literal["torch", "fla"]:
        """The implementation of the scan on a device: that of the first block's mixer."""
        return kernel_for(self.mixers[0].kernel, device)

    @property
    def mixers(self) -> list[Mixer[Any]]:
        """The mixers of all blocks; the tuple of their states, in order, is the model's state."""
        return [block.mixer for block in self._blocks()]

    def initial_state(self, num_words: int) -> State:
        """The state of every block, in a tuple."""
        return tuple(mixer.initial_state(num_words) for mixer in self.mixers)

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        stream, after = self.embedding(symbols), []
        for block, own in zip(self._blocks(), state, strict=True):
            stream, own = block.scan(stream, own)
            after.append(own)
        return self.readout(self.norm(stream)), tuple(after)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        stream, after = self.embedding(symbols), []
        for block, own in zip(self._blocks(), state, strict=True):
            stream, own = block.step(stream, own)
            after.append(own)
        return self.readout(self.norm(stream)), tuple(after)

    def _blocks(self) -> list[Block]:
        return [block for block in self.blocks if isinstance(block, Block)]


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
        """The stream [B, T, D] after this block, and the mixer's last state."""
        mixed, state = self.mixer.scan(self.mixer_norm(stream), state)
        return self._finish(stream, mixed), state

    def step(self, stream: Tensor, state: State) -> tuple[Tensor, State]:
        """The stream [B, D] after this block, and the mixer's next state."""
        mixed, state = self.mixer.step(self.mixer_norm(stream), state)
        return self._finish(stream, mixed), state

    def _finish(self, stream: Tensor, mixed: Tensor) -> Tensor:
        stream = stream + mixed if self.residual else mixed
        if self.mlp is None:
            return stream
        output = through(self.mlp, stream)
        return stream + output if self.residual else output


class ShortConvolution(nn.Module):
    """A causal convolution over the last `kernel` positions, one filter per channel.

    Its state is the last `kernel - 1` inputs, [B, kernel - 1, D], zeros before the first.
    """

    def __init__(self, width: int, kernel: int, *, bias: bool = True) -> None:
        super().__init__()
        self.filters = nn.Conv1d(width, width, kernel, groups=width, bias=bias)

    def initial_state(self, num_words: int) -> Tensor:
        """Zeros [B, kernel - 1, D]."""
        return _zeros_before(self.filters, num_words)

    def scan(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        return _convolved(self.filters, inputs, state)

    def step(self, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        return _convolved_at_once(self.filters, inputs, state)


Window: TypeAlias = "Tensor | tuple[()]"
"""The state of an optional convolution: its last inputs, or an empty tuple."""


class OptionalConvolution(nn.Module):
    """A short convolution and an activation; with a `kernel` of 0, the identity."""

    def __init__(
        self, width: int, kernel: int, activation: nn.Module, *, bias: bool = True
    ) -> None:
        super().__init__()
        self.activation = activation
        self.filters: nn.Conv1d | None = None
        if kernel:
            self.filters = nn.Conv1d(width, width, kernel, groups=width, bias=bias)

    def initial_state(self, num_words: int) -> Window:
        """Zeros [B, kernel - 1, D], or an empty tuple."""
        return () if self.filters is None else _zeros_before(self.filters, num_words)

    def scan(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        if self.filters is None or isinstance(state, tuple):
            return inputs, state
        outputs, state = _convolved(self.filters, inputs, state)
        return self.activation(outputs), state

    def step(self, inputs: Tensor, state: Window) -> tuple[Tensor, Window]:
        """Outputs [B, D] and the next state, of inputs [B, D]."""
        if self.filters is None or isinstance(state, tuple):
            return inputs, state
        outputs, state = _convolved_at_once(self.filters, inputs, state)
        return self.activation(outputs), state


def _zeros_before(filters: nn.Conv1d, num_words: int) -> Tensor:
    """Zeros [B, kernel - 1, D]."""
    return filters.weight.new_zeros(num_words, filters.kernel_size[0] - 1, filters.in_channels)


def _convolved(filters: nn.Conv1d, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    padded = torch.cat([state, inputs], 1)
    outputs = through(filters, padded.mT).mT
    return outputs, padded[:, padded.shape[1] - filters.kernel_size[0] + 1 :]


def _convolved_at_once(filters: nn.Conv1d, inputs: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    window = torch.cat([state, inputs.unsqueeze(1)], 1)  # [B, kernel, D]
    outputs = torch.einsum("bkd,dk->bd", window, filters.weight.squeeze(1))
    if filters.bias is not None:
        outputs = outputs + filters.bias
    return outputs, window[:, 1:]


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + epsilon) * g (Zhang & Sennrich 2019, arXiv:1910.07467)."""

    def __init__(self, width: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, inputs: Tensor) -> Tensor:
        """Normalise over the last axis."""
        return rms_norm(inputs, self.weight, self.epsilon)


LARGEST_SQUARED = 2.0**30
"""Magnitude up to which numbers are squared without scaling."""


def rms_norm(inputs: Tensor, gain: Tensor | None = None, epsilon: float = 1e-6) -> Tensor:
    """Vectors [..., D] divided by their root mean square, without overflow at any magnitude.

    In float32 the square of a number above about 10^19 overflows, which growing states reach, and
    the gradient contains third powers, which overflow earlier. So a vector with numbers above
    `LARGEST_SQUARED` is first scaled down to that magnitude; all others are multiplied by 1.
    """
    largest = inputs.detach().abs().amax(-1, keepdim=True)
    scale = (largest / LARGEST_SQUARED).clamp_min(1.0).reciprocal()
    return functional.rms_norm(inputs * scale, inputs.shape[-1:], gain, epsilon)


def draw_frame(model: BlockModel[Any], deviation: float = 0.02, *, by_depth: bool = False) -> None:
    """Draw a model's frame from N(0, deviation^2), with biases of 0, for its `initialise_frame`.

    This is how models of flash-linear-attention start; in their first releases the last map of
    each of L MLPs was divided by sqrt(2 L), which `by_depth` does.
    """
    with torch.no_grad():
        model.embedding.weight.normal_(0, deviation)
        mlps = [block.mlp for block in model.blocks if isinstance(block, Block) and block.mlp]
        linears = [
            [part for part in whole.modules() if isinstance(part, nn.Linear)]
            for whole in (*mlps, model.readout)
        ]
        for linear in itertools.chain(*linears):
            linear.weight.normal_(0, deviation)
            if linear.bias is not None:
                linear.bias.zero_()
        for *_, last in linears[:-1] if by_depth else ():
            last.weight.div_((2 * len(model.blocks)) ** 0.5)


class GatedMLP(nn.Module):
    """W_2 (f(W_g x) * W_1 x), by default without biases (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(
        self, width: int, inner: int, activation: nn.Module, *, bias: bool = False
    ) -> None:
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=bias)
        self.up = nn.Linear(width, inner, bias=bias)
        self.activation = activation
        self.down = nn.Linear(inner, width, bias=bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """[..., D] of inputs [..., D]."""
        return through(self.down, self.activation(self.gate(inputs)) * self.up(inputs))


GATED = {"swiglu": nn.SiLU, "geglu": nn.GELU, "reglu": nn.ReLU}
"""The activation f of each kind of gated MLP."""


def make_mlp(settings: BlockSettings, *, bias: bool = False) -> nn.Module | None:
    """A norm and an MLP of the width and kind of the settings; None where that width is 0.

    `bias` is whether a gated MLP has biases.
    """
    width, inner = settings.width, round(settings.mlp * settings.width)
    if not inner:
        return None
    if settings.mlp_kind != "gelu":
        gated = GatedMLP(width, inner, GATED[settings.mlp_kind](), bias=bias)
        return nn.Sequential(make_norm(settings.norm, width), gated)
    return nn.Sequential(
        make_norm(settings.norm, width),
        nn.Linear(width, inner),
        nn.GELU(),
        nn.Linear(inner, width),
    )


def make_norm(name: Literal["rms", "layer", "none"], width: int) -> nn.Module:
    """The normalisation layer that a setting names."""
    if name == "rms":
        return RMSNorm(width)
    return nn.LayerNorm(width) if name == "layer" else nn.Identity()


def _as_real(part: Tensor) -> Tensor:
    """Complex numbers as pairs along a last axis, real ones as they are."""
    return torch.view_as_real(part) if part.is_complex() else part


def _like(part: Tensor, real: Tensor) -> Tensor:
    """The inverse of `_as_real`: complex where `part` is."""
    return torch.view_as_complex(real.contiguous()) if part.is_complex() else real
