"""A trained model as evidence reads it: word by word, or state by state, and its automaton.

B words, T time, C labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from statetrack.errors import SettingsError
from statetrack.evaluation import CHUNK, stream_of
from statetrack.evidence.budget import SearchBudget, reading
from statetrack.models import (
    Rounded,
    cast,
    copy_of,
    is_linear,
    require_constant_size,
    require_initialised,
    require_logits,
    require_module,
)
from statetrack.models import reading as reading_symbols
from statetrack.rounding import Rounding, load_rounding
from statetrack.sources import Automaton, Floats, Source
from statetrack.spec import Task, load_task
from statetrack.training import LONGEST, answers_of, warn_of_later_symbols

NO_ANSWER = -1
"""The answer where a logit is NaN or infinite: no label."""


class Reader:
    """A trained model, in evaluation mode, that reads words word by word or symbol by symbol.

    The model is copied, so that nothing done to it here is seen elsewhere. `dtype` replaces the
    type of its weights, `device` the device of its first parameter.

    Raises `SettingsError` where it does not read all symbols, or gives no logits for them.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        num_symbols: int,
        num_labels: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self.num_symbols = num_symbols
        self.num_labels = num_labels
        require_initialised(model, "a search for evidence")
        self.model = copy_of(model).eval()
        if dtype is not None:
            cast(self.model, dtype)
        if not isinstance(self.model, torch.jit.ScriptModule):  # where torch does not allow it
            self.model.requires_grad_(False)
        if device is not None:
            self.model.to(torch.device(device))
        first = next(self.model.parameters(), torch.empty(0))
        self.device, self.dtype = first.device, first.dtype
        self._stream = stream_of(self.model)
        self._budget: SearchBudget | None = None
        if dtype is None:
            self._require_logits()

    @torch.no_grad()
    def _require_logits(self) -> None:
        """Raise `SettingsError` unless the model reads the last symbol, and gives logits of it."""
        word = self.tensor(np.full((1, 1), self.num_symbols - 1))
        with reading_symbols(self.model, self.num_symbols):
            found = self.model(word) if self._stream is None else self.scan(word, self.first(1))[0]
        require_logits(found, word.shape, self.num_labels)

    def look_at_model(self) -> None:
        """What is looked at before a search for evidence.

        Raises `SettingsError` where the first state is not made as later ones are, and warns with
        `StatetrackWarning` where a model without a state is not causal.
        """
        if not self.has_state:
            words = self.tensor(np.arange(2 * LONGEST).reshape(2, LONGEST) % self.num_symbols)
            warn_of_later_symbols(self.model, words, self.num_symbols, self.num_labels)
            return
        after = [self.scan(np.zeros((num, 1), np.int64), self.first(num))[1] for num in (2, 3)]
        if self._word_axes != _axes(*after):
            first = self.first(1)
            given = "None" if first is None else f"a {type(first).__name__}"
            raise SettingsError(
                f"`initial_state` gives {given}, not made as the states after symbols are: "
                "`initial_state(B)` must give the same tensors in the same containers, with the "
                "same axis of B words"
            )

    def counts_for(self, budget: SearchBudget) -> None:
        """Count what is read from now on as work of a budget."""
        self._budget = budget

    def work_of(self, words: int, length: int) -> float:
        """The seconds of work that reading so many words of a length takes."""
        return reading(words, length, *self._sizes)

    def _count(self, words: int, length: int) -> None:
        if self._budget is not None:
            self._budget.use(self.work_of(words, length), words * length)

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """The number of weights, and of numbers in the state of one word."""
        weights = sum(each.numel() for each in self.model.parameters())
        if not self.has_state:
            return weights, 0
        own = _parts(self.first(1), self._word_axes)
        return weights, sum(part.numel() for part, axis in own if axis is not None)

    @property
    def has_state(self) -> bool:
        """Whether words can be read symbol by symbol."""
        return self._stream is not None

    @property
    def scale_invariant(self) -> bool:
        """Whether no answer changes when the state is multiplied by a positive number."""
        return is_linear(self.model) and self.model.scale_invariant

    def require_state(self, what: str) -> None:
        """Raise `SettingsError` where the model has no state; `what` needs one."""
        if not self.has_state:
            raise SettingsError(
                f"{what} needs a model that reads words symbol by symbol: this one has no "
                "`initial_state` with `step` or `scan`"
            )

    def require_constant_size(self) -> None:
        """Raise `SettingsError` where states of different words may differ in size."""
        first = self.first(1)
        require_constant_size(first, self.step(np.zeros(1, np.int64), first)[1])

    @torch.no_grad()
    def first(self, num_words: int) -> Any:
        """The state of so many words before their first symbol."""
        assert self._stream is not None
        return self._stream[0](num_words)

    @torch.no_grad()
    def scan(self, symbols: NDArray[np.integer] | Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, T, C] and the last state, after symbols [B, T]."""
        assert self._stream is not None
        self._count(*symbols.shape)
        return self._stream[1](self.tensor(symbols), state)

    @torch.no_grad()
    def logits(self, words: NDArray[np.integer]) -> Tensor:
        """Logits [B, T, C] of words [B, T], each read from the start as a whole."""
        self._count(*words.shape)
        logits: Tensor = self.model(self.tensor(words))
        return logits

    def step(self, symbols: NDArray[np.integer] | Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits [B, C] and the next state, after one symbol per word, [B]."""
        logits, state = self.scan(self.tensor(symbols).unsqueeze(1), state)
        return logits.squeeze(1), state

    def tensor(self, symbols: NDArray[np.integer] | Tensor) -> Tensor:
        """Symbols as int64 on the model's device."""
        if isinstance(symbols, Tensor):
            return symbols.to(self.device, torch.int64)
        return torch.from_numpy(np.ascontiguousarray(symbols, np.int64)).to(self.device)

    @cached_property
    def _word_axes(self) -> Any:
        """For every tensor of a state, the axis of the words; None where all words share it."""
        return _axes(self.first(2), self.first(3))

    def take(self, state: Any, words: Tensor) -> Any:
        """The states of the given words [N], in that order, out of those of a batch."""
        return _mapped(
            lambda part, axis: part if axis is None else part.index_select(axis, words),
            self._word_axes,
            state,
        )

    def join(self, states: Iterable[Any]) -> Any:
        """The states of several batches as those of one."""
        return _mapped(
            lambda *parts: parts[0] if parts[-1] is None else torch.cat(parts[:-1], parts[-1]),
            self._word_axes,
            *states,
        )

    def vectors(self, state: Any) -> Tensor:
        """All numbers of every word's state that are floating-point, as rows [B, D].

        Complex numbers are pairs. Raises `SettingsError` where the state has none of its own.
        """
        rows: list[Tensor] = []
        for part, axis in _parts(state, self._word_axes):
            if axis is not None and (part.is_complex() or part.is_floating_point()):
                real = torch.view_as_real(part) if part.is_complex() else part
                moved = real.movedim(axis, 0)
                rows.append(moved.reshape(len(moved), -1))
        if not rows:
            raise SettingsError("the model's state has no numbers of its own for every word")
        return torch.cat(rows, 1)

    def compared(self, rows: Tensor) -> Floats:
        """Rows in the units in which they are compared: length 1 where no answer depends on it."""
        wide = rows.double()
        if self.scale_invariant:
            wide = wide / wide.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        return exactly(wide)

    def with_vectors(self, state: Any, rows: Tensor) -> Any:
        """The state with other numbers [B, D], in the order of `vectors`: the inverse of it."""
        taken = 0

        def put(part: Tensor, axis: int | None) -> Tensor:
            nonlocal taken
            real = torch.view_as_real(part) if part.is_complex() else part
            if axis is None or not real.is_floating_point():
                return part
            shape = real.movedim(axis, 0).shape
            size = shape[1:].numel()
            own = rows[:, taken : taken + size].to(real).reshape(shape).movedim(0, axis)
            taken += size
            return torch.view_as_complex(own.contiguous()) if part.is_complex() else own

        return _mapped(put, self._word_axes, state)

    def bits(self, state: Any) -> tuple[NDArray[np.uint8], bytes]:
        """All bytes of every word's state as rows [B, n], and those that all words share.

        Raises `SettingsError` where a state has no tensor of its own for every word, and where it
        has something else than tensors and plain values.
        """
        rows: list[NDArray[np.uint8]] = []
        shared = b""
        for part, axis in _parts(state, self._word_axes):
            if axis is not None:
                moved = _bytes_of(part.movedim(axis, 0))
                rows.append(moved.reshape(part.shape[axis], -1))
            elif isinstance(part, Tensor):
                shared += _bytes_of(part).tobytes()
            elif part is None or isinstance(part, int | float | str):
                shared += repr(part).encode()
            else:
                raise SettingsError(
                    f"the model's state has a {type(part).__name__}: states can be compared where "
                    "they are made of tensors, numbers and texts, in tuples, lists or dicts"
                )
        if not rows:
            raise SettingsError("the model's state has no numbers of its own for every word")
        return np.concatenate(rows, 1), shared

    def answers_of(self, logits: Tensor) -> NDArray[np.int64]:
        """The label with the largest logit, [...] of logits [..., C]; `NO_ANSWER` without one."""
        if logits.shape[-1] != self.num_labels:
            raise SettingsError(
                f"the model gives {logits.shape[-1]} logits, and there are {self.num_labels} labels"
            )
        answers, finite = answers_of(logits)
        found: NDArray[np.int64] = answers.masked_fill(~finite, NO_ANSWER).cpu().numpy()
        return found

    def answers(self, words: NDArray[np.integer]) -> NDArray[np.int64]:
        """The answer after every symbol of words [B, T], each read from the start: [B, T]."""
        found = np.empty(words.shape, np.int64)
        for reached, answers in self._answers_by_piece(words):
            found[:, reached : reached + answers.shape[1]] = answers
        return found

    def _answers_by_piece(
        self, words: NDArray[np.integer]
    ) -> Iterable[tuple[int, NDArray[np.int64]]]:
        """The answers [B, t] to consecutive pieces of words, each after how many symbols."""
        num_words, length = words.shape
        if self._stream is None:
            at_once = max(1, CHUNK // max(1, length))
            parts = [words[row : row + at_once] for row in range(0, num_words, at_once)]
            answers = [self.answers_of(self.logits(part)) for part in parts]
            yield 0, np.concatenate(answers)
            return
        state = self.first(num_words)
        size = max(1, CHUNK // num_words)
        for reached in range(0, length, size):
            logits, state = self.scan(words[:, reached : reached + size], state)
            yield reached, self.answers_of(logits)


class Subject(Reader):
    """A trained model, and the automaton that it should follow, under a rounding model if given.

    Raises `SettingsError` where the task has no automaton.
    """

    def __init__(
        self,
        model: nn.Module,
        task: Task | str | Path | Source,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        rounding: Rounding | str | Path | None = None,
    ) -> None:
        model = require_module(model, "a search for evidence")
        self.rounding = None if rounding is None else load_rounding(rounding)
        self.unrounded = model
        if self.rounding is not None:
            model = Rounded(model, self.rounding)
        if isinstance(task, Task | str | Path):
            known = load_task(task)
            self.automaton: Automaton = self.require_automaton(known.source, f"task '{known.name}'")
        else:
            self.automaton = self.require_automaton(task)
        super().__init__(
            model,
            num_symbols=self.automaton.num_symbols,
            num_labels=self.automaton.num_labels,
            dtype=dtype,
            device=device,
        )
        if dtype is None:
            self.look_at_model()

    @staticmethod
    def require_automaton(source: Source, named: str = "the task") -> Automaton:
        """The automaton that a source is; `SettingsError`, which names it, where it has none."""
        if source.automaton is None:
            raise SettingsError(
                f"{named} is {source.noun}: no automaton says what the model should do on every "
                "word, so only its accuracy can be measured"
            )
        return source.automaton

    def in_precision(self, dtype: torch.dtype) -> Subject:
        """The same model with weights, states and arithmetic of another floating-point type.

        It is no longer under a rounding model.
        """
        other = Subject(self.unrounded, self.automaton, dtype=dtype)
        other._budget = self._budget
        return other

    def first_errors(self, words: NDArray[np.integer]) -> NDArray[np.int64]:
        """The position (from 1) of the first wrong answer to each of words [B, T]; 0: none: [B].

        Labels that are not asked for are not compared.
        """
        labels, scored = self.automaton.read(words)
        found = np.zeros(len(words), np.int64)
        for reached, answers in self._answers_by_piece(words):
            piece = slice(reached, reached + answers.shape[1])
            wrong = (answers != labels[:, piece]) & scored[:, piece]
            new = wrong.any(1) & (found == 0)
            found[new] = reached + wrong[new].argmax(1) + 1
            if found.all():
                break
        return found


def exactly(tensor: Tensor) -> Floats:
    """The numbers of a tensor, float32 or float64, in float64."""
    found: Floats = tensor.detach().to("cpu", torch.float64).numpy()
    return found


def _axes(two: Any, three: Any) -> Any:
    """The axis along which the states of two and of three words differ, for every tensor."""
    if isinstance(two, Tensor):
        differing = [
            axis
            for axis, sizes in enumerate(zip(two.shape, three.shape, strict=True))
            if sizes == (2, 3)
        ]
        return differing[0] if differing else None
    if isinstance(two, Mapping):
        return {key: _axes(two[key], three[key]) for key in two}
    if isinstance(two, tuple | list):
        return [_axes(one, other) for one, other in zip(two, three, strict=True)]
    return None


def _parts(state: Any, axes: Any) -> Iterable[tuple[Any, int | None]]:
    """Everything in a state that is no container, with the axis of the words."""
    if isinstance(state, Mapping):
        for key, part in state.items():
            yield from _parts(part, axes[key])
    elif isinstance(state, tuple | list):
        for part, axis in zip(state, axes, strict=True):
            yield from _parts(part, axis)
    else:
        yield state, axes


def _bytes_of(part: Tensor) -> NDArray[np.uint8]:
    """The bytes of a tensor, whose last axis they lengthen."""
    real = torch.view_as_real(part) if part.is_complex() else part
    found: NDArray[np.uint8] = real.contiguous().unsqueeze(-1).view(torch.uint8).cpu().numpy()
    return found


def _mapped(function: Any, axes: Any, *states: Any) -> Any:
    """`function(*tensors, axis)` for every tensor of states of one structure."""
    first = states[0]
    if isinstance(first, Tensor):
        return function(*states, axes)
    if isinstance(first, Mapping):
        return {key: _mapped(function, axes[key], *(each[key] for each in states)) for key in first}
    if isinstance(first, tuple | list):
        parts = [_mapped(function, axis, *each) for axis, *each in zip(axes, *states, strict=True)]
        named = hasattr(first, "_fields")
        return type(first)(*parts) if named else type(first)(parts)
    return first
