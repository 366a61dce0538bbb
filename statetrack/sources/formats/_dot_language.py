"""The DOT language of Graphviz: a text as nodes and arrows with their attributes and lines.

Written here rather than read with pydot (4.0.1) for three reasons: pydot takes 10 s for a machine
of 657 states (137 kB), where this takes 0.1 s; it keeps no line numbers, which every message about
a machine needs; and its grammar recurses as deep as a hostile file asks. The grammar is that of
https://graphviz.org/doc/info/lang.html, with three liberties that files in use take: a value in
square brackets may be any text without spaces, commas, semicolons and brackets (`label=a/b`),
`--` is refused since a machine's arrows have a direction, and of the keyword `strict` nothing
follows.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from statetrack.errors import TaskError
from statetrack.sources.formats._text import MOST_EDGES, problem
from statetrack.text import shortened, visible

DEEPEST: Final = 50
"""How deep subgraphs may stand inside each other."""

MOST_ARROWS: Final = MOST_EDGES + 1
"""The most arrows of a graph: those from and to a subgraph are one for each pair of nodes.

One of them marks the start.
"""

MOST_TOKENS: Final = 12 * MOST_ARROWS
"""The most names, texts in quotes and signs: enough for `a -> b [label="x", color=red];` in all."""

FEW_TOKENS, TOKENS_OF_ARROW = 200_000, 40
"""Of a text with few arrows there may be fewer: so many, and so many more for each arrow."""

MOST_NODES: Final = MOST_EDGES + 1
"""The most nodes: no transition leads to more states, and one node marks the start."""

LONGEST_TEXT: Final = 1_000_000
"""The most characters of a name or a value; the label of an arrow may hold many symbols."""

KEPT: Final = frozenset({"label", "xlabel", "shape", "style", "peripheries"})
"""The attributes that say something about a machine; others are read and forgotten."""


class Text(NamedTuple):
    """A name or a value: what stands between quotes, or between `<` and `>` (HTML)."""

    text: str
    html: bool = False

    @property
    def word(self) -> str:
        """The text in small letters, without spaces around it."""
        return self.text.strip().lower()


NOTHING: Final = Text("")

Attributes = Mapping[str, Text]


class Arrow(NamedTuple):
    """`source -> target [attributes]`."""

    source: str
    target: str
    attributes: Attributes
    line: int

    def said(self, name: str) -> Text:
        """The value of an attribute, empty without it."""
        return self.attributes.get(name, NOTHING)

    @property
    def label(self) -> Text:
        """What stands beside the arrow."""
        return self.attributes.get("label", self.said("xlabel"))


@dataclass
class Node:
    """What all statements about one node say together; `line` is that of the first."""

    name: str
    line: int
    attributes: dict[str, Text] = field(default_factory=dict)

    def said(self, name: str) -> Text:
        """The value of an attribute, empty without it."""
        return self.attributes.get(name, NOTHING)


@dataclass
class Graph:
    """Nodes by name, in the order in which they are first named, and arrows in that of the text."""

    nodes: dict[str, Node] = field(default_factory=dict)
    arrows: list[Arrow] = field(default_factory=list)


def parse(text: str) -> Graph:
    """The graph of a DOT text.

    Raises `TaskError`, opened by the line, for a text that is not one `digraph` in the DOT
    language, and for one that is deeper or larger than the bounds of this module.
    """
    if (most := text.count("->")) > 2 * MOST_ARROWS:  # some may stand in labels
        raise TaskError(
            f"`->` stands there {most:,} times: more than {MOST_ARROWS:,} arrows are too many"
        )
    return _Parser(text).graph()


class _Token(NamedTuple):
    kind: str  # a sign as itself, "name", "quoted", "html" or "end"
    text: str
    line: int


_COMMENT = r"//[^\n]*+|/\*(?s:.*?)\*/"
_LINE = r"[^\S\n]*+#[^\n]*+"  # a line that begins with `#` is a comment too
# Not a possessive group: Python before 3.11.5 loses its place where a turn fails behind its first
# sign. Others keep every turn in memory, so there are no more of them at once.
_BLANK = rf"((?>(?:\A{_LINE})? ?(?:[^\S\n]++|\n(?:{_LINE})?|{_COMMENT}){{0,1000}}))"
_SIGN = r"->|--|[{}\[\];,=:+]"
_NAME = r"[^\W\d]\w*|-?(?:\.\d+|\d+(?:\.\d*)?)"
_QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
_TOKEN = re.compile(rf"{_BLANK}(?:({_SIGN})|({_NAME})|{_QUOTED})", re.DOTALL)
_LOOSE = re.compile(rf"{_BLANK}(?:()([^\s,;\"\]<][^\s,;\"\]]*)|{_QUOTED})", re.DOTALL)
"""Blanks and comments, and a token behind them: of four groups, the last three are its kinds."""

_NOTHING = re.compile(_BLANK)
_ANGLE = re.compile(r"[<>]")


class _Parser:
    """Reads a text from left to right, one token ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._line = 1
        self._num_tokens = 0
        self._most_tokens = min(MOST_TOKENS, FEW_TOKENS + TOKENS_OF_ARROW * text.count("->"))
        self._found = Graph()
        self._token = self._next()

    def graph(self) -> Graph:
        """The whole text."""
        if self._is_word("strict"):
            self._advance()
        if self._is_word("graph"):
            raise self._wrong("this is a `graph`, whose edges have no direction: write `digraph`")
        if not self._is_word("digraph"):
            raise self._wrong(f"a DOT file begins with `digraph`, not with {self._shown()}")
        self._advance()
        if self._token.kind != "{":
            self._name()
        self._take("{", "after the name of the graph")
        self._statements(_Defaults({}, {}), 1)
        self._take("}", "at the end of the graph")
        if self._token.kind != "end":
            raise self._wrong(f"{self._shown()} stands behind the end of the graph")
        return self._found

    def _statements(self, defaults: _Defaults, depth: int) -> list[str]:
        """The nodes that statements up to a closing bracket name."""
        if depth > DEEPEST:
            raise self._wrong(f"subgraphs stand more than {DEEPEST} deep inside each other")
        named: dict[str, None] = {}
        while self._token.kind not in ("}", "end"):
            named.update(dict.fromkeys(self._statement(defaults, depth)))
            while self._token.kind in (";", ","):
                self._advance()
        return list(named)

    def _statement(self, defaults: _Defaults, depth: int) -> list[str]:
        line = self._token.line
        for word in ("node", "edge", "graph"):
            if self._is_word(word):
                self._advance()
                given = self._attributes()
                if word != "graph":
                    getattr(defaults, word).update(given)
                return []
        ends = [self._end(defaults, depth)]
        if self._token.kind == "=":  # `rankdir=LR`: an attribute of the graph
            self._advance()
            self._value()
            return []
        subgraph = ends[0].subgraph
        lines = [line]
        while self._token.kind in ("->", "--"):
            if self._token.kind == "--":
                raise self._wrong("`--` has no direction: write `->`")
            lines.append(self._token.line)
            self._advance()
            ends.append(self._end(defaults, depth))
        given = self._attributes()
        for end in ends:
            for name in end.names:
                if name in self._found.nodes:
                    continue
                if len(self._found.nodes) == MOST_NODES:
                    raise self._wrong(f"more than {MOST_NODES:,} nodes are too many")
                self._found.nodes[name] = Node(name, end.line, dict(defaults.node))
        if len(ends) == 1:
            if not subgraph:
                self._found.nodes[ends[0].names[0]].attributes.update(given)
            return ends[0].names
        attributes = {**defaults.edge, **given}
        for before, after in itertools.pairwise(ends):
            if len(self._found.arrows) + len(before.names) * len(after.names) > MOST_ARROWS:
                raise self._wrong(f"more than {MOST_ARROWS:,} arrows are too many")
            self._found.arrows += [
                Arrow(source, target, attributes, before.line)
                for source in before.names
                for target in after.names
            ]
        return [name for end in ends for name in end.names]

    def _end(self, defaults: _Defaults, depth: int) -> _End:
        """One end of an arrow: a node with or without a port, or all nodes of a subgraph."""
        line = self._token.line
        named = self._is_word("subgraph")
        if named:
            self._advance()
            if self._token.kind != "{":
                self._name()
        if named or self._token.kind == "{":
            self._take("{", "at the beginning of a subgraph")
            names = self._statements(_Defaults(dict(defaults.node), dict(defaults.edge)), depth + 1)
            self._take("}", "at the end of a subgraph")
            return _End(names, line, True)
        name = self._name()
        for _ in range(2):  # `node:port:side`
            if self._token.kind == ":":
                self._advance()
                self._name()
        return _End([name], line, False)

    def _attributes(self) -> dict[str, Text]:
        """`[key=value, key=value][...]`, or nothing."""
        given: dict[str, Text] = {}
        while self._token.kind == "[":
            opened = self._token.line
            self._advance()
            while self._token.kind != "]":
                if self._token.kind in ("end", "{", "}", "->"):
                    raise problem(opened, "the bracket '[' is not closed")
                key = self._name()
                value = Text("true")
                if self._token.kind == "=":
                    self._advance(loose=True)
                    value = self._value()
                if key in KEPT:
                    given[key] = value
                while self._token.kind in (";", ","):
                    self._advance()
            self._advance()
        return given

    def _name(self) -> str:
        return self._value().text

    def _value(self) -> Text:
        kind, text = self._token.kind, self._token.text
        if kind not in ("name", "quoted", "html"):
            raise self._wrong(f"{self._shown()} cannot stand here: names go into quotes")
        line = self._token.line
        self._advance()
        parts = [text]
        while kind == "quoted" and self._token.kind == "+":
            self._advance()
            if self._token.kind != "quoted":
                raise self._wrong("'+' joins texts in quotes only")
            parts.append(self._token.text)
            self._advance()
        whole = "".join(parts)
        if len(whole) > LONGEST_TEXT:
            raise problem(
                line,
                f"a text of {len(whole):,} characters is too long: {LONGEST_TEXT:,} are the most",
            )
        return Text(whole, kind == "html")

    def _take(self, kind: str, where: str) -> None:
        if self._token.kind != kind:
            raise self._wrong(f"'{kind}' is missing {where}: there is {self._shown()}")
        self._advance()

    def _is_word(self, word: str) -> bool:
        return self._token.kind == "name" and self._token.text.lower() == word

    def _shown(self) -> str:
        if self._token.kind == "end":
            return "the end of the file"
        return f"'{visible(shortened(self._token.text, 30))}'"

    def _wrong(self, reason: str) -> TaskError:
        return problem(self._token.line, reason)

    def _advance(self, *, loose: bool = False) -> None:
        self._token = self._next(loose)

    def _next(self, loose: bool = False) -> _Token:
        """The next token; where it is `loose`, a value may hold signs such as `/` and `-`."""
        self._num_tokens += 1
        if self._num_tokens > self._most_tokens:
            raise self._wrong(f"more than {self._most_tokens:,} names and signs are too many")
        while not (found := (_LOOSE if loose else _TOKEN).match(self._text, self._place)):
            blanks = _NOTHING.match(self._text, self._place)
            assert blanks is not None
            self._move(blanks.end())
            if not blanks[0]:
                return self._other(loose)
        blank, sign, name, quoted = found.groups()
        line = self._line + blank.count("\n")
        self._line, self._place = line, found.end()
        if sign:
            return _Token(sign, sign, line)
        if name is not None:
            return _Token("name", name, line)
        self._line += quoted.count("\n")
        joined = quoted.replace("\\\n", "").replace("\\\r\n", "")
        return _Token("quoted", joined.replace('\\"', '"'), line)

    def _other(self, loose: bool) -> _Token:
        """What stands here and is no sign, name or text in quotes."""
        place, line = self._place, self._line
        letter = self._text[place : place + 1]
        if not letter:
            return _Token("end", "", line)
        if letter == '"':
            raise problem(line, "the quotes that open here are not closed")
        if letter == "<":
            end = self._end_of_html(place, line)
            self._move(end)
            return _Token("html", self._text[place + 1 : end - 1], line)
        if loose:
            return self._next()
        reason = "comments end with `*/`" if letter == "/" else "names with signs go into quotes"
        raise problem(line, f"'{visible(letter)}' cannot stand here: {reason}")

    def _end_of_html(self, place: int, line: int) -> int:
        """The place behind the `>` that closes the `<` at a place."""
        depth = 0
        for sign in _ANGLE.finditer(self._text, place):
            depth += 1 if sign[0] == "<" else -1
            if depth == 0:
                return sign.end()
        raise problem(line, "the '<' that opens HTML here is not closed")

    def _move(self, place: int) -> None:
        """Go on to a place, in whichever line that is."""
        self._line += self._text.count("\n", self._place, place)
        self._place = place


class _Defaults(NamedTuple):
    """What `node [...]` and `edge [...]` said, for all that comes later in the same brackets."""

    node: dict[str, Text]
    edge: dict[str, Text]


class _End(NamedTuple):
    names: list[str]
    line: int
    subgraph: bool
