r"""Controllers in the KISS2 format of logic synthesis.

    .i 2
    .o 1
    .p 3
    .s 2
    .r s0
    0- s0 s0 0
    1- s0 s1 -
    -- s1 s0 1
    .e

A row says: on these input bits, in this state, go to that state, and say these output bits. It is
a Mealy machine whose symbols are vectors of input bits, `-` standing for both bits. Where there are
more than `MOST_BITS` of them, symbols are sets of vectors instead: the fewest rows `0-1-` that are
found, no two with a vector in common, of which every row of the file is a union. Vectors
that no row has are no symbols.

Output bits are a label as they are written: `1-`, of which the second bit may be anything, is a
label of its own. A row whose state is `*` holds in every state. One that leads to `*` may lead
anywhere: it is as if it were not there, and missing as other rows may be.

Comments begin with `#`. Three of them keep names: `#@ symbol 01 coin` names a vector, and then only
vectors with names are symbols; `#@ label 10 beep` names output bits; and `#@ start beep` says the
label of the start before anything enters it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from statetrack.errors import TaskError
from statetrack.sources.automaton import Automaton
from statetrack.sources.formats import MACHINE_FORMATS, MachineFormat
from statetrack.sources.formats._text import (
    Edge,
    MachineText,
    add,
    first_label,
    number_in,
    problem,
    rows,
    shown,
    steps,
)

MOST_BITS: Final = 8
"""The most input bits whose vectors are symbols one by one."""

WIDEST: Final = 1000
"""The most input or output bits."""

MOST_CUBES: Final = 4096
"""The most sets of input vectors that are symbols."""

MOST_COMPARED: Final = 2**21
"""The most comparisons of two sets of input vectors."""

ANY: Final = "*"
"""Stands for every state, or any."""

_COUNTS = {".i": "inputs", ".o": "outputs", ".p": "rows", ".s": "states"}
_IGNORED = frozenset({".start_kiss", ".end_kiss", ".ilb", ".ob", ".latch_order", ".code"})
_ENDS = frozenset({".e", ".end"})


class _Row(NamedTuple):
    """A row of the table, and its line."""

    inputs: str
    source: str
    target: str
    outputs: str
    line: int


class _Cube(NamedTuple):
    """Vectors of bits: those with the bits of `value` where `care` has ones."""

    care: int
    value: int


class _KissText:
    """What the lines of a file say."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.counts: dict[str, tuple[int, int]] = {}  # by directive: the number and its line
        self.start: tuple[str, int] | None = None
        self.symbols: dict[str, str] = {}
        self.labels: dict[str, str] = {}
        self.given: dict[str, set[str]] = {"symbol": set(), "label": set()}  # names
        self.first: str | None = None


def read(text: str) -> MachineText:
    """The machine of a text; raises `TaskError` with the line of what cannot be read."""
    said = _parsed(text)
    if not said.rows:
        raise TaskError("line 1: no row `inputs state next outputs` is in the file")
    states = dict.fromkeys(
        state for row in said.rows for state in (row.source, row.target) if state != ANY
    )
    if not states:
        raise problem(said.rows[0].line, "no row names a state")
    for key, found in ((".p", len(said.rows)), (".s", len(states))):
        count, line = said.counts.get(key, (found, 0))
        if count != found:
            raise problem(
                line, f"`{key} {count}`, but there are {found:,} {_COUNTS[key]}: is the file whole?"
            )
    start = next(iter(states)) if said.start is None else said.start[0]
    if start not in states and said.start is not None:
        raise problem(said.start[1], f"the start {shown(start)} is in no row")
    covered = _symbols_of(said)
    edges: list[Edge] = []
    for row in said.rows:
        if row.target == ANY:
            continue
        label = said.labels.get(row.outputs, row.outputs)
        for source in states if row.source == ANY else (row.source,):
            for symbol in covered[row.inputs]:
                add(edges, Edge(source, symbol, row.target, label, row.line))
    if not edges:
        raise problem(said.rows[0].line, "every row leads to `*`: nothing is said of any state")
    return MachineText(start, edges, None, said.first)


def _parsed(text: str) -> _KissText:
    said = _KissText()
    ended = 0
    for line, row in rows(text):
        if row.startswith("#@"):
            _name(said, row[2:].split(), line)
            continue
        words = row.partition("#")[0].split()
        if not words:
            continue
        if ended:
            raise problem(line, f"{shown(row)} stands behind the end, line {ended}")
        if words[0] in _ENDS:
            ended = line
        elif words[0].startswith("."):
            _directive(said, words, line)
        else:
            _row(said, words, line)
    for text_of, names in (("inputs", said.symbols), ("outputs", said.labels)):
        for bits in names:
            width = len(getattr(said.rows[0], text_of)) if said.rows else len(bits)
            if len(bits) != width:
                raise TaskError(f"`#@` names {shown(bits)}, but the rows have {width} {text_of}")
    return said


def _name(said: _KissText, words: list[str], line: int) -> None:
    if len(words) == 2 and words[0] == "start" and said.first is None:
        said.first = words[1]
        return
    if len(words) != 3 or words[0] not in ("symbol", "label"):
        raise problem(
            line,
            "`#@` must be followed by `symbol BITS NAME`, `label BITS NAME`, or once `start NAME`",
        )
    kind, bits, name = words
    names = said.symbols if kind == "symbol" else said.labels
    given = said.given[kind]
    if bits.strip("01"):
        raise problem(line, f"{shown(bits)} is no vector of the bits 0 and 1")
    if bits in names or name in given:
        raise problem(line, f"{shown(bits)} or {shown(name)} has been named before")
    if len(bits) > WIDEST or len(names) == MOST_CUBES * 16:
        raise problem(line, "too many bits, or names")
    names[bits] = name
    given.add(name)


def _directive(said: _KissText, words: list[str], line: int) -> None:
    key = words[0]
    if key in _IGNORED:
        return
    if key not in _COUNTS and key != ".r":
        known = ", ".join([*_COUNTS, ".r", ".e"])
        raise problem(line, f"{shown(key)} is not known: a file of KISS2 has {known}")
    if len(words) != 2:
        raise problem(line, f"`{key}` must be followed by one word")
    if key in said.counts or (key == ".r" and said.start):
        raise problem(line, f"`{key}` appears twice")
    if key == ".r":
        said.start = words[1], line
    else:
        most = WIDEST if key in (".i", ".o") else 10**9
        said.counts[key] = number_in(words[1], line, f"the number of {_COUNTS[key]}", most), line


def _row(said: _KissText, words: list[str], line: int) -> None:
    if len(words) != 4:
        raise problem(line, f"has {len(words)} words, and a row has 4: inputs state next outputs")
    inputs, source, target, outputs = words
    row = _Row(inputs, source, target, outputs, line)
    first = said.rows[0] if said.rows else row
    for bits, other, key in (
        (row.inputs, first.inputs, ".i"),
        (row.outputs, first.outputs, ".o"),
    ):
        if bits.strip("01-"):
            raise problem(line, f"{shown(bits)} has other signs than the bits 0, 1 and -")
        width, where = said.counts.get(key, (len(other), first.line))
        if len(bits) != width:
            raise problem(
                line, f"{shown(bits)} has {len(bits)} bits, but line {where} says {width}"
            )
        if len(bits) > WIDEST:
            raise problem(line, f"{len(bits):,} bits are too many: {WIDEST:,} are the most")
    said.rows.append(row)


def _symbols_of(said: _KissText) -> dict[str, list[str]]:
    """The symbols that each text of input bits stands for."""
    patterns = dict.fromkeys(row.inputs for row in said.rows)
    width = len(said.rows[0].inputs)
    if said.symbols:
        return _named(said, list(patterns))
    cubes = {pattern: _cube(pattern) for pattern in patterns}
    if width <= MOST_BITS:
        every = (1 << width) - 1
        atoms = [_Cube(every, value) for value in range(1 << width)]
    else:
        atoms = _disjoint(list(cubes.values()), said.rows[0].line)
    if len(cubes) * len(atoms) > MOST_COMPARED:
        raise problem(said.rows[0].line, _TOO_MANY)
    names = [_text_of(atom, width) for atom in atoms]
    return {
        pattern: [name for atom, name in zip(atoms, names, strict=True) if _inside(atom, cube)]
        for pattern, cube in cubes.items()
    }


_TOO_MANY = f"the rows tell more sets of input bits apart than can be symbols ({MOST_CUBES:,})"


def _named(said: _KissText, patterns: list[str]) -> dict[str, list[str]]:
    """The same where vectors have names."""
    vectors = {bits: _cube(bits) for bits in said.symbols}
    free = [pattern for pattern in patterns if pattern not in vectors]
    if len(free) * len(vectors) > MOST_COMPARED:
        raise problem(said.rows[0].line, _TOO_MANY)
    found = {pattern: [said.symbols[pattern]] for pattern in patterns if pattern in vectors}
    for pattern in free:
        cube = _cube(pattern)
        found[pattern] = [
            said.symbols[bits] for bits, vector in vectors.items() if _inside(vector, cube)
        ]
    for row in said.rows:
        if not found[row.inputs]:
            raise problem(row.line, f"no vector of {shown(row.inputs)} is named by `#@ symbol`")
    return found


def _cube(pattern: str) -> _Cube:
    care = int(pattern.translate({ord("0"): "1", ord("-"): "0"}), 2)
    return _Cube(care, int(pattern.replace("-", "0"), 2))


def _text_of(cube: _Cube, width: int) -> str:
    bits = (1 << place for place in reversed(range(width)))
    return "".join("-" if not cube.care & bit else "01"[bool(cube.value & bit)] for bit in bits)


def _inside(part: _Cube, whole: _Cube) -> bool:
    """Whether all vectors of a cube are in another."""
    return part.care & whole.care == whole.care and part.value & whole.care == whole.value


def _disjoint(cubes: list[_Cube], line: int) -> list[_Cube]:
    """Cubes without a vector in common, of which each of the given ones is a union."""
    parts: list[_Cube] = []
    compared = 0
    for cube in cubes:
        compared += len(parts)
        if compared > MOST_COMPARED or len(parts) > MOST_CUBES:
            raise problem(line, _TOO_MANY)
        rest = [cube]
        split: list[_Cube] = []
        for part in parts:
            if (part.value ^ cube.value) & part.care & cube.care:
                split.append(part)  # they have no vector in common
                continue
            common = _Cube(part.care | cube.care, part.value | cube.value)
            split += [common, *_without(part, common)]
            compared += len(rest)
            rest = [
                piece
                for each in rest
                for piece in (
                    [each]
                    if (each.value ^ part.value) & each.care & part.care
                    else _without(each, _Cube(each.care | part.care, each.value | part.value))
                )
            ]
            if len(split) + len(rest) > MOST_CUBES or compared > MOST_COMPARED:
                raise problem(line, _TOO_MANY)
        parts = split + rest
    return parts


def _without(whole: _Cube, part: _Cube) -> list[_Cube]:
    """The vectors of a cube that are not in a part of it, as cubes without one in common."""
    found = []
    care, value = whole
    free = part.care & ~whole.care
    while free:
        bit = 1 << (free.bit_length() - 1)
        free ^= bit
        care |= bit
        found.append(_Cube(care, value | (bit & ~part.value)))
        value |= bit & part.value
    return found


def write(automaton: Automaton) -> str:
    """The text of a machine: symbols and labels as bits, with their names in comments.

    Every transition says the label it leads to.
    """
    symbols = _codes(automaton.num_symbols)
    labels = _codes(automaton.num_labels)
    said = [labels[label] for label in automaton.output.tolist()]
    lines = [
        f"{symbols[symbol]} s{source} s{target} {said[target]}"
        for source, symbol, target in steps(automaton)
    ]
    head = [
        f".i {len(symbols[0])}",
        f".o {len(labels[0])}",
        f".p {len(lines)}",
        f".s {automaton.num_states}",
        f".r s{automaton.start}",
    ]
    names = [
        *(
            f"#@ symbol {bits} {name}"
            for bits, name in zip(symbols, automaton.symbols, strict=True)
        ),
        *(f"#@ label {bits} {name}" for bits, name in zip(labels, automaton.labels, strict=True)),
    ]
    if (first := first_label(automaton)) is not None:
        names.append(f"#@ start {first}")
    return "\n".join([*names, *head, *lines, ".e", ""])


def _codes(count: int) -> list[str]:
    """So many vectors of bits, as few bits as there need to be."""
    width = max(1, (count - 1).bit_length())
    return [f"{number:0{width}b}" for number in range(count)]


MACHINE_FORMATS.register("kiss2")(MachineFormat((".kiss2", ".kiss"), read, write))
