"""Any model computed under a rounding model (`statetrack.rounding`), on a copy of it.

Where a recurrence passes from one symbol to the next there is one place for casts: the operators of
a linear model, `terms` and `advance` or `recur` of a mixer in stages, and the step of any other
recurrence, of which only the state can be cast. What lies outside the recurrence (embeddings,
convolutions, norms, MLPs) is computed in the type in which numbers are held: float32 where that is
the type of sums, else float64.

A state holds beside its tensors how many symbols of a call were read, by which casts are placed.

B batch, T time, D width.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from statetrack.errors import SettingsError
from statetrack.models._base import LinearModel, Scanning, Stepping
from statetrack.models._blocks import Block, BlockModel, Mixer, StagedMixer
from statetrack.models._described import is_linear
from statetrack.models._given import cast, copy_of
from statetrack.models._linear import compute_by
from statetrack.ops import BlockOperators, Operators, RotationOperators, arithmetic, rounded
from statetrack.rounding import FORMATS, Rounding

GATES = {
    *("gains", "betas", "log_gates", "log_gains", "log_decays", "steps", "log_input"),
    *("log_forget", "removals", "rates", "rules", "angles"),
}
LOADED = frozenset({"queries", "keys", "values"})
KEYS = LOADED | {"added", "terms", "readings", "writings", "x"}
"""The names of terms of recurrences that a rounding model calls gates, and keys."""


class Casts:
    """The casts of a rounding model, for tensors in the type in which numbers are held."""

    def __init__(self, rounding: Rounding) -> None:
        self.rounding = rounding
        sums = rounding.format("accumulation")
        assert sums is not None
        self.dtype = torch.float32 if sums == FORMATS["float32"] else torch.float64
        self._sums = None if sums in (FORMATS["float32"], FORMATS["float64"]) else sums
        self.period = math.lcm(rounding.every, rounding.chunk, max(1, rounding.renormalise))

    def part(self, name: str, value: Any) -> Any:
        """All tensors of a value, such as a state, cast to the type of a part."""
        to = self.rounding.format(name)
        if to is None:
            return value
        return _mapped(lambda each: rounded(each, to, saturate=self.rounding.saturate), value)

    def arithmetic(self) -> AbstractContextManager[Any]:
        """The context in which the recurrence is computed."""
        return arithmetic(self.rounding.format("products"), self._sums)

    def terms(self, terms: Any, *, but: frozenset[str] = frozenset()) -> Any:
        """The terms of a recurrence, by their names; those without a name stay as they are."""
        if not hasattr(terms, "_fields"):
            if isinstance(terms, tuple):
                return tuple(self.terms(each, but=but) for each in terms)
            return terms
        cast = {
            name: self.part("gates" if name in GATES else "keys", getattr(terms, name))
            for name in terms._fields
            if name in (GATES | KEYS) - but
        }
        return terms._replace(**cast)

    def require(self, named: set[str], where: str) -> None:
        """Raise `SettingsError` for a part that is cast and that a recurrence does not have."""
        for name, known in (("gates", GATES), ("keys", KEYS)):
            if self.rounding.format(name) is not None and not named & known:
                raise SettingsError(
                    f"rounding: {name}: {getattr(self.rounding, name)}: {where} has no {name} "
                    "that can be cast apart: leave it out"
                )

    def pieces(self, count: int, length: int) -> Iterator[tuple[slice, int]]:
        """Slices of the next symbols up to the next cast or chunk, each with the count after it."""
        chunk, first = self.rounding.chunk, 0
        steps = (chunk, self.rounding.every, self.rounding.renormalise or chunk)
        while first < length:
            until = min(step - (count + first) % step for step in steps) if chunk > 1 else 1
            last = min(length, first + until)
            yield slice(first, last), (count + last) % self.period
            first = last

    def kept(self, count: int, state: Any) -> Any:
        """A state after so many symbols, cast where that is its time."""
        return state if count % self.rounding.every else self.part("state", state)


class RoundedMixer(Mixer[Any]):
    """A mixer under a rounding model; its state is a count and that of the mixer."""

    def __init__(self, mixer: Mixer[Any], casts: Casts) -> None:
        super().__init__()
        self.mixer = mixer
        self._casts = casts
        if isinstance(mixer, StagedMixer):
            mixer.cast = casts.terms
            if casts.rounding.keys_cast == "loaded" and mixer.normalises_keys:
                mixer.loaded = partial(casts.part, "keys")
                mixer.cast = partial(casts.terms, but=LOADED)
        else:
            casts.require(set(), f"the layer {type(mixer).__name__}")
            _require_recurrent_form(casts.rounding, f"the layer {type(mixer).__name__}")

    def initial_state(self, num_words: int) -> tuple[int, Any]:
        """The first state, in the type of states."""
        state = self.mixer.initial_state(num_words)
        if isinstance(self.mixer, StagedMixer):
            window, memory = self.mixer.split(state)
            return 0, self.mixer.join(window, self._casts.part("state", memory))
        return 0, self._casts.part("state", state)

    def scan(self, inputs: Tensor, state: tuple[int, Any]) -> tuple[Tensor, tuple[int, Any]]:
        """Outputs [B, T, D] and the last state, of inputs [B, T, D]."""
        count, own = state
        outputs: list[Tensor] = []
        if isinstance(self.mixer, StagedMixer):
            if self.mixer.by_position:
                return self._scan_stages(self.mixer, inputs, count, own)
            for piece, _ in self._casts.pieces(count, inputs.shape[1]):
                output, (count, own) = self._scan_stages(self.mixer, inputs[:, piece], count, own)
                outputs.append(output)
            return torch.cat(outputs, 1), (count, own)
        for vectors in inputs.unbind(1):
            with self._casts.arithmetic():
                output, own = self.mixer.step(vectors, own)
            count = (count + 1) % self._casts.period
            own = self._casts.kept(count, own)
            outputs.append(output)
        return torch.stack(outputs, 1), (count, own)

    def _scan_stages(
        self, mixer: StagedMixer[Any, Any], inputs: Tensor, count: int, state: Any
    ) -> tuple[Tensor, tuple[int, Any]]:
        casts = self._casts
        window, memory = mixer.split(state)
        terms, window = mixer.terms(inputs, window)
        casts.require(_names(terms) | {*mixer.late_terms}, f"the layer {type(mixer).__name__}")
        terms = mixer.cast(terms)
        read = []
        for piece, reached in casts.pieces(count, inputs.shape[1]):
            count, here = reached, terms
            if mixer.by_position:
                here = _mapped(partial(_positions, piece), terms)
            with casts.arithmetic():
                if casts.rounding.chunk == 1 and mixer.by_position:
                    single = _mapped(lambda part: part.squeeze(1), here)
                    output, memory = mixer.advance(single, memory)
                    output = _mapped(lambda part: part.unsqueeze(1), output)
                else:
                    output, memory = mixer.recur(here, memory)
            memory = casts.kept(count, memory)
            read.append(output)
        outputs = mixer.finish(_joined(read), terms, inputs)
        return outputs, (count, mixer.join(window, memory))


class Rounded(nn.Module):
    """A copy of a model that reads words symbol by symbol, or by chunks, under a rounding model.

    Raises `SettingsError` for a model without a state, and for casts that it has no place for.
    """

    def __init__(self, model: nn.Module, rounding: Rounding) -> None:
        super().__init__()
        if not isinstance(model, Scanning | Stepping) or not hasattr(model, "step"):
            raise SettingsError(
                "a rounding model needs a model that reads words symbol by symbol: this one has no "
                "`initial_state` with `step`"
            )
        self.rounding = rounding
        self.casts = Casts(rounding)
        self.model = copy_of(model).requires_grad_(False)
        cast(self.model, self.casts.dtype)
        self.training = self.model.training
        compute_by("torch", self.model)
        if (weights := rounding.format("weights")) is not None:
            for weight in self.model.parameters():
                weight.data = rounded(weight.data, weights, saturate=rounding.saturate)
        if is_linear(self.model):
            _require_norm(not rounding.renormalise or self.model.scale_invariant, rounding)
            _require_recurrent_form(rounding, "a linear model")
            if self.model.additive_table() is None:
                self.casts.require(GATES, "a linear model without additive terms")
            self._scan: Callable[[Tensor, Any], tuple[Tensor, Any]] = self._scan_linear
        elif isinstance(self.model, BlockModel):
            _require_norm(not rounding.renormalise, rounding)
            for block in self.model.blocks:
                assert isinstance(block, Block)
                block.mixer = RoundedMixer(block.mixer, self.casts)
            self._scan = self._scan_blocks
        else:
            self.casts.require(set(), "this model")
            _require_norm(not rounding.renormalise, rounding)
            _require_recurrent_form(rounding, "this model")
            self._scan = self._scan_steps

    def initial_state(self, num_words: int) -> Any:
        """The state of `num_words` words before their first symbol."""
        state = self.model.initial_state(num_words)
        if isinstance(self.model, BlockModel):
            return state
        return 0, self.casts.part("state", state)

    def scan(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        with torch.no_grad():
            logits, state = self._scan(symbols, state)
        return self.casts.part("readout", logits), state

    def step(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        logits, state = self.scan(symbols.unsqueeze(1), state)
        return logits.squeeze(1), state

    def forward(self, symbols: Tensor) -> Tensor:
        """Logits [B, T, C] of int64 symbols [B, T]."""
        return self.scan(symbols, self.initial_state(len(symbols)))[0]

    def _scan_blocks(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        assert isinstance(self.model, BlockModel)
        return self.model.scan(symbols, state)

    def _scan_linear(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The operators as `step` applies them, one symbol after the other."""
        model = self.model
        assert isinstance(model, LinearModel)
        count, own = state
        operators = self.operators()
        table = self.casts.part("keys", model.additive_table())
        first = self.casts.part("state", model.first)
        states = []
        for symbol in symbols.unbind(1):
            with self.casts.arithmetic():
                own = operators.apply(symbol, own)
                if table is not None:
                    own = own + table[symbol]
            count = (count + 1) % self.casts.period
            every = self.rounding.renormalise
            if every and count % every == 0:
                own = _of_first_norm(own, first, operators)
            own = self.casts.kept(count, own)
            states.append(own)
        return model.readout(torch.stack(states, 1)), (count, own)

    def operators(self) -> Operators:
        """The operators of a linear model as they are applied, in the type of gates."""
        assert isinstance(self.model, LinearModel)
        with torch.no_grad():
            operators = self.model.running_operators()
        if isinstance(operators, RotationOperators):
            operators = operators.blocks()
        changed = {
            each.name: self.casts.part("gates", getattr(operators, each.name))
            for each in fields(operators)
        }
        found: Operators = replace(operators, **changed)
        return found

    def _scan_steps(self, symbols: Tensor, state: Any) -> tuple[Tensor, Any]:
        count, own = state
        logits = []
        for symbol in symbols.unbind(1):
            with self.casts.arithmetic():
                output, own = self.model.step(symbol, own)  # type: ignore[operator]
            count = (count + 1) % self.casts.period
            own = self.casts.kept(count, own)
            logits.append(output)
        return torch.stack(logits, 1), (count, own)


def _of_first_norm(states: Tensor, first: Tensor, operators: Operators) -> Tensor:
    """States [B, H] of which every block has the norm that it has in the first state [H]."""
    size = operators.blocks.shape[-1] if isinstance(operators, BlockOperators) else states.shape[-1]
    parts = states.unflatten(-1, (-1, size))
    wanted = first.unflatten(-1, (-1, size)).norm(dim=-1, keepdim=True)
    norms = parts.norm(dim=-1, keepdim=True)
    return torch.where(norms > 0, parts * (wanted / norms), parts).flatten(-2)


def _require_norm(holds: bool, rounding: Rounding) -> None:
    if not holds:
        raise SettingsError(
            f"rounding: renormalise: {rounding.renormalise}: only a linear model without additive "
            "terms and readout bias has a norm to be restored: leave it out"
        )


def _require_recurrent_form(rounding: Rounding, where: str) -> None:
    if rounding.chunk > 1:
        raise SettingsError(
            f"rounding: chunk: {rounding.chunk}: {where} has no form in chunks: take chunk: 1"
        )


def _mapped(function: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The function of every tensor in tuples; what is no tensor stays."""
    if isinstance(value, Tensor):
        return function(value)
    if isinstance(value, tuple):
        parts = [_mapped(function, each) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value


def _names(terms: Any) -> set[str]:
    """The names of the terms of a recurrence."""
    if not isinstance(terms, tuple):
        return set()
    own = zip(getattr(terms, "_fields", ()), terms, strict=False)
    return {name for name, term in own if term is not None}.union(*map(_names, terms))


def _positions(piece: slice, part: Tensor) -> Tensor:
    return part[:, piece]


def _joined(parts: list[Any]) -> Any:
    """What was read at consecutive positions [B, t, ...], as one."""
    if isinstance(first := parts[0], tuple):
        joined = [_joined(list(each)) for each in zip(*parts, strict=True)]
        return type(first)(*joined) if hasattr(first, "_fields") else tuple(joined)
    return torch.cat(parts, 1)
