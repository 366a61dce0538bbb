"""The frame of the three recurrent networks of `torch.nn`: embedding, layers, linear readout.

Each of them says how it takes boxes of states to boxes, from the weights of a layer.

B batch, T time, L layers, H hidden, D numbers of a state.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn

from statetrack.algebra import Saturating, Size
from statetrack.models._base import RecurrentModel, State, WithBoxes, through
from statetrack.models._linear import Linear, compute_by, is_watched
from statetrack.models._settings import MOST_LAYERS, NetworkSettings
from statetrack.ops import Box, boxes, in_full_precision, kernel_for, native
from statetrack.settings import option

HIDDEN = (..., 0, slice(None))
"""The part of a layer's state [..., parts, H] that is h."""


class TorchRNNSettings(NetworkSettings):
    """Settings of the recurrent networks of torch.nn."""

    layers: int = option(1, "Number of stacked recurrent layers.", min=1, max=MOST_LAYERS)
    embed_dim: int = option(0, "Width of the learned symbol embeddings; 0 means H.", min=0)

    @property
    def recurrence(self) -> Saturating:
        """Saturating units."""
        return Saturating(units=Size("hidden", self.hidden))


def _places(symbols: Tensor) -> Tensor:
    """The number of each position of words [B, T], or [R, B, T]."""
    sizes = symbols.shape[-2:]
    return torch.arange(sizes.numel(), device=symbols.device).view(sizes).expand(symbols.shape)


class TorchRNN(RecurrentModel, WithBoxes):
    """Embedding, a recurrent network of torch.nn, linear readout; the first state is zero."""

    settings_class = TorchRNNSettings
    settings: TorchRNNSettings
    family = "non-linear"
    vectorises = False  # torch's own kernels do not
    training_defaults = {"lrs": (1e-2,), "steps": 2000, "warmup": 0.1, "clip": 1.0}

    network_class: ClassVar[type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]]
    state_parts: ClassVar[int] = 1
    keeping_gate: ClassVar[int | None] = None
    """The place, among the gates of the affine maps, of the one that carries the state along."""

    def __init__(self, settings: TorchRNNSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        embed_dim = settings.embed_dim or settings.hidden
        self.embedding = nn.Embedding(num_symbols, embed_dim)
        self.network = self.network_class(
            embed_dim, settings.hidden, num_layers=settings.layers, batch_first=True
        )
        self.readout = Linear(settings.hidden, num_labels)
        compute_by(settings.kernel, self)

    def initial_state(self, num_words: int) -> State:
        """Zeros [L, B, H] (an LSTM has two: the hidden and the cell state)."""
        network = self.network
        zeros = self.readout.weight.new_zeros(network.num_layers, num_words, network.hidden_size)
        return zeros if self.state_parts == 1 else (zeros, zeros)

    @property
    def _is_native(self) -> bool:
        """Whether loops compute it; a part with a hook is called instead, but for the readout."""
        weight = self.readout.weight
        is_native = kernel_for(self.settings.kernel, weight.device, weight.dtype) == "native"
        return is_native and not is_watched(self.embedding, self.network)

    @property
    def reads_replicas(self) -> bool:
        """Where loops compute all of it: not with a hook, which knows no replicas."""
        return self._is_native and not is_watched(*self.modules())

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        return self._by_loops(symbols)[0] if self._is_native else super().forward(symbols)

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        if self._is_native:
            parts = state if isinstance(state, tuple) else (state,)
            stacked = torch.stack([part for part in parts if isinstance(part, Tensor)], 2)
            logits, after = self._by_loops(symbols, stacked)
            last = torch.stack(after).unbind(2)
            return logits, last if isinstance(state, tuple) else last[0]
        # in bfloat16 torch has no LSTM on CPUs without AVX-512
        outputs, state = in_full_precision(self.network.__call__)(self.embedding(symbols), state)
        return self.readout(outputs), state

    def vectorises_on(self, device: torch.device) -> bool:
        """By compiled loops they are computed as one, unless a hook is to be called."""
        return self.kernel_on(device) == "native" and not is_watched(self.embedding, self.network)

    @in_full_precision
    def _by_loops(
        self, symbols: Tensor, state: Tensor | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Logits, and the last state of each layer, [B, parts, H]: by default after zeros.

        A first state is [L, B, parts, H]. The first layer's affine maps are computed once for each
        symbol. Symbols [R, B, T] are those of R replicas, with weights [R, ...].
        """
        embedding = self.embedding.weight
        if self.num_symbols <= symbols.shape[-2:].numel():
            rows, inputs = symbols, embedding
        else:
            rows, inputs = _places(symbols), native.rows_at(embedding, symbols).flatten(-3, -2)
        after, apart = [], is_watched(self.readout)
        for layer in range(self.network.num_layers):
            is_last = layer + 1 == self.network.num_layers
            reads = is_last and not apart
            readout = (self.readout.weight, self.readout.bias) if reads else None
            first = None if state is None else state[layer]
            outputs, own = native.gated_network(inputs, rows, self._maps(layer), first, readout)
            after.append(own)
            if not is_last:
                rows, inputs = _places(symbols), outputs.flatten(-3, -2)
        return through(self.readout, outputs) if apart else outputs, after

    def _maps(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The weights of a layer's input and of its h, and their biases."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weight, recurrent, bias, more = (
            getattr(self.network, f"{name}_l{layer}") for name in names
        )
        return weight, recurrent, bias, more

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        logits, state = self.scan(symbols.unsqueeze(1), state)
        return logits.squeeze(1), state

    def flat(self, state: State) -> Tensor:
        """The state of every layer, one after the other: [B, D], D = L H (2 L H for an LSTM)."""
        parts = state if isinstance(state, tuple) else (state,)
        stacked = torch.stack([part for part in parts if isinstance(part, Tensor)])
        return stacked.permute(2, 1, 0, 3).flatten(1)  # [B, L, parts, H]

    def box_step(self, symbols: Tensor, box: Box, unit: float = 0.0) -> Box:
        """Layer by layer; the inputs of the first are points."""
        after = [state for _, _, state in self._box_layers(symbols, box, unit)]
        stacked = (torch.stack(bounds, -3).flatten(-3) for bounds in zip(*after, strict=True))
        return Box(*stacked)

    def keeping(self, symbols: Tensor, states: Tensor) -> Tensor:
        """The arguments of one gate of each unit of each layer, [B, L H]; none for an Elman RNN."""
        if self.keeping_gate is None:
            return states[:, :0]
        found = []
        for read, remembered, _ in self._box_layers(symbols, Box(states, states), 0.0):
            sums = read.lower + remembered.lower
            found.append(sums.unflatten(-1, (-1, self.network.hidden_size))[:, self.keeping_gate])
        return torch.cat(found, -1)

    def _box_layers(self, symbols: Tensor, box: Box, unit: float) -> Iterator[tuple[Box, Box, Box]]:
        """For every layer, the affine maps of its input and of its h, and its next state."""
        vectors = self.embedding(symbols)
        inputs = Box(vectors, vectors)
        for layer, own in enumerate(self._layers(box)):
            weight, recurrent, bias, more = self._maps(layer)
            read = boxes.affine(inputs, weight, bias, unit)
            remembered = boxes.affine(own.part(HIDDEN), recurrent, more, unit)
            own = self.box_layer(read, remembered, own, unit)
            inputs = own.part(HIDDEN)
            yield read, remembered, own

    def _layers(self, box: Box) -> list[Box]:
        """The part of every layer, [B, parts, H], of boxes [B, D]."""
        network = self.network
        sizes = (network.num_layers, self.state_parts, network.hidden_size)
        split = box.mapped(lambda bound: bound.unflatten(-1, sizes))
        return [split.part((..., layer, slice(None), slice(None))) for layer in range(sizes[0])]

    @abc.abstractmethod
    def box_layer(self, read: Box, remembered: Box, state: Box, unit: float) -> Box:
        """What one layer makes of its state [B, parts, H], as a box of the same shape.

        `read` and `remembered` are the affine maps of its input and of its h, for all gates.
        """

    def box_leads(self, box: Box, labels: Tensor, unit: float = 0.0) -> Tensor:
        """From h of the last layer."""
        hidden = self._layers(box)[-1].part(HIDDEN)
        return boxes.leads(hidden, self.readout.weight, self.readout.bias, labels, unit)
