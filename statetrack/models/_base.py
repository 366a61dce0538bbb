"""The interface of a model: symbols in, logits out.

    SequenceModel        forward(symbols [B, T]) -> logits [B, T, C]
    └── RecurrentModel   also step by step, with a state; forward is a scan of steps
        └── LinearModel  each symbol acts on the state by one linear operator

A model knows no task, no device, no file and no replica axis: a population is run through
`torch.func.vmap`, so a model is written for one replica.

B batch, T time, V symbols, C labels, H hidden, D embedding.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, TypeAlias, runtime_checkable

import torch
from torch import Tensor, nn

from statetrack import ops
from statetrack.errors import SettingsError, setting
from statetrack.models._linear import Linear, compute_by, is_watched
from statetrack.models._settings import WITH_KERNEL, KernelSettings, LinearSettings
from statetrack.ops import Box, Kernel, Operators, TanhStep
from statetrack.settings import Settings

State: TypeAlias = "Tensor | tuple[State, ...]"
"""The state of a recurrent model: a tensor, or tensors in nested tuples."""

NORMALISE_EVERY = 8
"""Steps between two rescalings of the state in evaluation: few enough to prevent overflow."""


class SequenceModel(nn.Module, abc.ABC):
    """A causal map from words to logits: logits at `t` depend on symbols up to `t` only.

    A subclass names its `settings_class`, its `family` and `source` (for the listings), and the
    training settings that work for it (`training_defaults`: names of `TrainSettings`). Its
    settings say of which class its recurrence is (`ModelSettings.recurrence`). Raises
    `SettingsError` in `__init__` for settings that cannot be built together.
    """

    settings_class: ClassVar[type[Settings]]
    family: ClassVar[str] = ""
    source: ClassVar[str] = ""
    training_defaults: ClassVar[Mapping[str, Any]] = {}
    readout_name: ClassVar[str] = "readout"
    """The submodule that maps states to logits: the only one that `freeze='recurrence'` trains."""
    vectorises: ClassVar[bool] = True
    """False where torch has no batching rule for a layer: replicas are then run one at a time."""
    same_since: ClassVar[str] = "0.1.0"
    """The first version of statetrack that computed the same from the same weights."""
    computes_in_float32: ClassVar[bool] = False
    """Whether parts of it are computed in float32, whatever the type of its weights."""

    def __new__(cls, *args: Any, **others: Any) -> Self:
        """A model; raises `TypeError` for a class that leaves an abstract method undefined."""
        if inspect.isabstract(cls):
            name = min(cls.__abstractmethods__)
            asks = next(base for base in reversed(cls.__mro__) if name in vars(base))
            raise TypeError(f"it does not define `{name}`, which {asks.__name__} asks for")
        return super().__new__(cls)

    def __init__(self, settings: Settings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__()
        self.settings = settings
        self.num_symbols = num_symbols
        self.num_labels = num_labels

    def __call__(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of symbols [B, T], which may be no words at all, or empty ones.

        Raises `TypeError` for symbols that are not whole numbers, `IndexError` on the CPU for one
        that is not in 0 to V - 1, and `SettingsError` where the model cannot be computed in the
        half precision of its weights.
        """
        _require_symbols(symbols, self.num_symbols)
        if not symbols.numel():
            zero = sum((weight.sum() * 0 for weight in self.parameters()), start=torch.zeros(()))
            return zero.expand(*symbols.shape, self.num_labels)
        try:
            logits: Tensor = super().__call__(symbols)
        except (RuntimeError, NotImplementedError) as problem:
            halves = {each.dtype for each in self.parameters()} & {torch.bfloat16, torch.float16}
            if not halves:
                raise
            raise SettingsError(
                f"weights in {', '.join(sorted(map(str, halves)))}: not all of "
                f"{type(self).__name__} is computed in it ({problem}): keep the weights in "
                "float32, and compute under torch.autocast"
            ) from problem
        return logits

    @abc.abstractmethod
    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""

    def decays(self, name: str) -> bool:
        """Whether weight decay is applied to the parameter of this name.

        It is not to those that their module names in `without_decay`, as its authors' code does.
        """
        path, _, own = name.rpartition(".")
        return own not in getattr(self.get_submodule(path), "without_decay", ())

    @property
    def reads_replicas(self) -> bool:
        """Whether `forward` with weights [R, ...] maps symbols [R, B, T] to logits [R, B, T, C]."""
        return False

    def kernel_on(self, device: torch.device) -> Kernel:
        """What computes recurrences, linear maps, convolutions and norms on a device.

        Raises `SettingsError` where the settings name what cannot run there.
        """
        if not isinstance(self.settings, WITH_KERNEL):
            return "torch"
        kernel = ops.kernel_for(self.settings.kernel, device)
        exists = kernel != "fla" or isinstance(self.settings, KernelSettings)
        return kernel if exists else "torch"

    def vectorises_on(self, device: torch.device) -> bool:
        """Whether the replicas of a population are computed as one on a device."""
        return self.vectorises


class WithTransition(abc.ABC):
    """The interface of a recurrence that is linear in its state: next = A(input) part + u.

    `StateT` is the whole state. Its recurrent part is what A multiplies, as real numbers in the
    units of the equation; the rest of the state (the last inputs, a scale) does not belong to it,
    and A may depend on that rest.
    """

    @abc.abstractmethod
    def recurrent_part(self, state: Any) -> Tensor:
        """The recurrent part [B, ...] of a state; complex numbers are pairs, [..., 2]."""

    @abc.abstractmethod
    def with_recurrent_part(self, state: Any, part: Tensor) -> Any:
        """The state with another recurrent part [B, ...]: the inverse of `recurrent_part`."""

    @abc.abstractmethod
    def transition(self, inputs: Tensor, state: Any = None) -> Operators:
        """The operators A of B T positions, on the flattened recurrent part.

        `inputs` are symbols [B, T] for a model and vectors [B, T, D] for a layer; `state` is the
        state before the first of them (by default the initial state). The operator of word b
        at position t has index b T + t.
        """


class WithBoxes(abc.ABC):
    """The interface of a recurrent model through whose steps boxes of states can be followed.

    A state is one vector here, [D], whose numbers all have bounds. `unit` says how exactly the
    model is computed (`statetrack.ops.boxes`): with 0 it is exact, with `FLOAT32` the boxes also
    contain the states that are reached in float32. Gradients go through all of it.
    """

    @abc.abstractmethod
    def flat(self, state: Any) -> Tensor:
        """The vectors [B, D] of states of the model."""

    @abc.abstractmethod
    def box_step(self, symbols: Tensor, box: Box, unit: float = 0.0) -> Box:
        """Boxes [B, D] that contain what a symbol [B] makes of the states in boxes [B, D]."""

    @abc.abstractmethod
    def box_leads(self, box: Box, labels: Tensor, unit: float = 0.0) -> Tensor:
        """By how much the logit of each label can be above that of the given one: [B, C].

        Boxes are [B, D] and labels [B]; the entry of the given label is 0.
        """

    def keeping(self, symbols: Tensor, states: Tensor) -> Tensor:
        """The arguments [B, G] of gates that carry numbers of states [B, D] along, if any.

        With a gate of 1 a number, and an error in it, stays as it is; sigmoid of 0 is one half.
        """
        return states[:, :0]

    def tanh_step(self, unit: float) -> TanhStep | None:
        """The step as one layer of tanh units, where it is that; None for other networks."""
        return None


class RecurrentModel(SequenceModel):
    """A model that reads one symbol at a time and keeps nothing but its state."""

    @abc.abstractmethod
    def initial_state(self, num_words: int) -> State:
        """The state of `num_words` words before their first symbol."""

    @abc.abstractmethod
    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        logits = []
        for symbol in symbols.unbind(1):
            given = self.step(symbol, state)
            if not isinstance(given, tuple):  # a tensor of two rows would be taken for a pair
                raise TypeError(
                    f"step gives a {type(given).__name__}, and is to give a pair: logits [B, C] "
                    "and the next state"
                )
            output, state = given
            logits.append(output)
        return torch.stack(logits, 1), state

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        logits, _ = self.scan(symbols, self.initial_state(symbols.shape[0]))
        return logits


@runtime_checkable
class Scanning(Protocol):
    """A model that reads words piece by piece and passes a state from one to the next."""

    def initial_state(self, num_words: int) -> Any:
        """The state of `num_words` words before their first symbol."""

    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""


@runtime_checkable
class Stepping(Protocol):
    """A model that reads words symbol by symbol and passes a state from one to the next."""

    def initial_state(self, num_words: int) -> Any:
        """The state of `num_words` words before their first symbol."""

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""


def num_parameters(model: SequenceModel) -> int:
    """The number of trained weights."""
    return sum(parameter.numel() for parameter in model.parameters())


def state_size(model: SequenceModel) -> int | None:
    """The numbers in the state of one word; None where that grows with the word's length."""
    return numbers_in(model.initial_state(1)) if isinstance(model, RecurrentModel) else None


def numbers_in(state: object) -> int:
    """How many numbers the tensors of a state hold, in tuples, lists or dictionaries."""
    if isinstance(state, Tensor):
        return state.numel()
    if isinstance(state, Mapping):
        return sum(map(numbers_in, state.values()))
    return sum(map(numbers_in, state)) if isinstance(state, tuple | list) else 0


def require_constant_size(before: object, after: object) -> None:
    """Raise `SettingsError` where the state after a symbol holds more numbers than that before."""
    first, second = numbers_in(before), numbers_in(after)
    if first != second:
        raise SettingsError(
            f"its state grows: it has {first:,} numbers before a symbol and {second:,} after it"
        )


class LinearModel(RecurrentModel, WithTransition):
    """h_t = A(x_t) h_{t-1} (+ u_t), logits = C h_t.

    Without additive terms and readout bias the model is *scale invariant*: multiplying the state
    by a positive number multiplies the logits by that number, and the argmax is the same. Then, in
    evaluation only, states are divided by their norm every few steps, which keeps them in the
    range of floats on words of any length (Ebrahimi & Memisevic 2025, arXiv:2505.21749).
    """

    family = "bilinear"
    source = "Ebrahimi & Memisevic 2025, arXiv:2505.21749"
    operators_by_replica: ClassVar[bool] = False
    """Whether `operators`, of one-hot symbols, also makes those of replicas of weights [R, ...]."""

    def __init__(self, settings: LinearSettings, *, num_symbols: int, num_labels: int) -> None:
        super().__init__(settings, num_symbols=num_symbols, num_labels=num_labels)
        self.embedding = SymbolEmbedding(num_symbols, settings.embed_dim)
        first = torch.randn(settings.hidden)
        if settings.first == "learned":
            self.first = nn.Parameter(first)
        else:
            self.register_buffer("first", first)
        self.additive: nn.Parameter | None = None
        if settings.additive != "none":
            rows = 1 if settings.additive == "constant" else self.embedding.num_rows
            terms = torch.randn(rows, settings.hidden) / settings.hidden**0.5
            constant = settings.additive == "constant"
            self.additive = nn.Parameter(terms) if constant else self.embedding.parameter(terms)
        self.additive_kind = settings.additive
        self.kernel = settings.kernel
        self.readout = Linear(settings.hidden, num_labels, bias=settings.readout_bias)
        compute_by(settings.kernel, self)

    @property
    def reads_replicas(self) -> bool:
        """With one-hot symbols and without additive terms, if operators can be made by replica.

        Not with a hook, which knows no replicas.
        """
        plain = self.additive is None and self.embedding.vectors is None
        return self.operators_by_replica and plain and not is_watched(*self.modules())

    @property
    def scale_invariant(self) -> bool:
        """Whether the argmax of the logits does not change when the state is rescaled."""
        return self.additive_table() is None and self._linear_readout.bias is None

    @property
    def _linear_readout(self) -> nn.Linear:
        """The readout, whose matrix loops and certificates read."""
        if not isinstance(self.readout, nn.Linear):
            raise TypeError(
                f"{type(self).__name__}: its readout is a {type(self.readout).__name__}, and that "
                "of a LinearModel is an nn.Linear: take RecurrentModel for another"
            )
        return self.readout

    @abc.abstractmethod
    def operators(self) -> Operators:
        """The operators A(x), one for each symbol, in their own structure."""

    def running_operators(self) -> Operators:
        """The operators in the structure in which they are applied; by default their own."""
        return self.operators()

    def recurrent_part(self, state: Tensor) -> Tensor:
        """The state itself, [B, H]."""
        return state

    def with_recurrent_part(self, state: Tensor, part: Tensor) -> Tensor:
        """The part itself, [B, H]."""
        return part

    def transition(self, inputs: Tensor, state: Tensor | None = None) -> Operators:
        """The operators of symbols [B, T], B T maps of R^H; they do not depend on the state."""
        return self.operators().select(inputs.flatten())

    def additive_table(self) -> Tensor | None:
        """The term added for each symbol, [V, H], or None."""
        if self.additive is None:
            return None
        if self.additive_kind == "constant":
            return self.additive.expand(self.num_symbols, -1)
        return through(self.embedding, self.additive)

    def initial_state(self, num_words: int) -> Tensor:
        """The first state, repeated for every word: [B, H]."""
        return self.first.expand(num_words, -1)

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, C] and the next state [B, H], by the operators themselves."""
        assert isinstance(state, Tensor)
        state = self.running_operators().apply(symbols, state)
        table = self.additive_table()
        if table is not None:
            state = state + table[symbols]
        return self.readout(state), state

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T], with the states as they are."""
        logits, _ = self._read(symbols, self.first.unsqueeze(-2), 0, ends=False)
        return logits

    def scan(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits [B, T, C] and the last state [B, H], by the fast recurrence.

        In evaluation, the states of a scale-invariant model are divided by a power of two every few
        steps, which is exact: logits are such multiples of those of `forward`. The last state of a
        piece that ends between two divisions is divided too, so that words can be read in pieces
        of any size.
        """
        assert isinstance(state, Tensor)
        rescale = self.scale_invariant and not self.training and not torch.is_grad_enabled()
        logits, last = self._read(symbols, state, NORMALISE_EVERY if rescale else 0)
        assert last is not None
        if rescale and symbols.shape[1] % NORMALISE_EVERY:
            last = _near_one(last)
        return logits, last

    def _read(
        self, symbols: Tensor, state: Tensor, normalise_every: int, *, ends: bool = True
    ) -> tuple[Tensor, Tensor | None]:
        operators, table = self.running_operators(), self.additive_table()
        inputs = None if table is None else ops.lookup(table, symbols)
        readout = self._linear_readout
        if is_watched(readout):
            first = state.expand(*symbols.shape[:-1], -1)
            states = operators.recur(symbols, first, inputs, normalise_every=normalise_every)
            return through(readout, states.movedim(0, -2)), states[-1]
        logits, last = operators.read(
            symbols,
            state,
            readout.weight,
            inputs,
            normalise_every=normalise_every,
            kernel=self.kernel,
            ends=ends,
        )
        bias = readout.bias
        return (logits if bias is None else logits + bias[..., None, None, :]), last


def _near_one(states: Tensor) -> Tensor:
    """States [B, H] over a power of two for each word: the largest magnitude is in [1, 2)."""
    return states / ops.power_of_two(states.abs().amax(1, keepdim=True))


class SymbolEmbedding(nn.Module):
    """Makes tables with one row per symbol, linear in the symbol's embedding.

    With `embed_dim` 0 symbols are one-hot, and a table is its own parameter. Otherwise symbols
    have learned embeddings X [V, D], with rows of unit norm at the start, and a table is X
    times a parameter. So operators are computed once for each of the V symbols, and not for
    each of the B x T positions.
    """

    def __init__(self, num_symbols: int, embed_dim: int) -> None:
        super().__init__()
        self.num_rows = embed_dim or num_symbols
        self.vectors: nn.Parameter | None = None
        if embed_dim:
            rows = torch.randn(num_symbols, embed_dim)
            self.vectors = nn.Parameter(rows / rows.norm(dim=1, keepdim=True))

    def parameter(self, rows: Tensor) -> nn.Parameter:
        """A parameter for `forward`, from one array for each of the `num_rows`: [D or V, ...].

        For learned embeddings the axis D is stored last, [..., D]: in this layout the product
        with the embeddings, and its gradient above all, is fastest.
        """
        if self.vectors is None:
            return nn.Parameter(rows)
        return nn.Parameter(rows.movedim(0, -1).contiguous())

    def forward(self, weight: Tensor) -> Tensor:
        """The table [V, ...] of a weight that `parameter` made."""
        return weight if self.vectors is None else ops.contract(weight, self.vectors)


def _require_symbols(symbols: Tensor, num_symbols: int) -> None:
    """Raise an error for symbols that are no numbers of symbols, as far as that costs no time.

    On a GPU the host would wait for the numbers, and embeddings check them there; in `vmap` and in
    `torch.compile` there are no numbers yet.
    """
    if symbols.is_floating_point() or symbols.is_complex() or symbols.dtype == torch.bool:
        raise TypeError(f"symbols are whole numbers from 0 on, not {symbols.dtype}")
    if symbols.device.type == "cpu" and symbols.numel() and ops.has_numbers(symbols):
        ops.require_below(symbols, num_symbols)


def zeros(like: Tensor, *sizes: int) -> Tensor:
    """Zeros of some sizes, of a parameter's type and on its device: in `vmap` one for all replicas.

    Those of `like.new_zeros` would be as many as the replicas of a parameter.
    """
    return torch.zeros(sizes, dtype=like.dtype, device=like.device)


def through(module: nn.Module, *inputs: Tensor | None) -> Tensor:
    """The output of a module that returns one tensor; `nn.Module` does not type its calls."""
    output: Tensor = module(*inputs)
    return output


def require_divisor(width: int, name: str, divisor: int, what: str = setting("width")) -> None:
    """Raise `SettingsError` unless `divisor`, the value of the setting `name`, divides `width`."""
    if width % divisor:
        fitting = [size for size in range(1, width + 1) if width % size == 0]
        near = min(fitting, key=lambda size: (abs(size - divisor), size))
        below, above = width // divisor * divisor, -(-width // divisor) * divisor
        widths = f"{below} or {above}" if below else f"{above}"
        raise SettingsError(
            f"{setting(name, divisor)} does not divide {what} {width}: take {near} instead, or "
            f"{what} {widths}"
        )


def require_even(hidden: int, what: str) -> None:
    """Raise `SettingsError` unless `hidden` is a multiple of 2, which is the size of `what`."""
    if hidden % 2:
        raise SettingsError(
            f"{setting('hidden', hidden)} is not a multiple of {what} 2: "
            f"take {hidden - 1} or {hidden + 1}"
        )
