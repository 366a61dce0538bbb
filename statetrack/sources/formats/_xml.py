"""XML as a tree whose elements know their lines, read within bounds.

Expat, of the standard library, reads it. A document type is refused where it begins, and with it
every entity that a file could declare: none can be repeated, and none can name another file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from statetrack.errors import TaskError
from statetrack.sources.formats._text import problem, shown

MOST_ELEMENTS: Final = 600_000
"""The most elements of a file."""

DEEPEST: Final = 20
"""How deep elements may stand inside each other."""

LONGEST_TEXT: Final = 10_000
"""The most characters of text in an element."""


@dataclass(slots=True, eq=False)
class Element:
    """An element: its name without its namespace, what it says, and the line where it begins."""

    name: str
    space: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """The children of one name."""
        return (child for child in self.children if child.name == name)

    def only(self, name: str) -> Element | None:
        """The one child of a name, None without one; `TaskError` for two."""
        found = list(self.all(name))
        if len(found) > 1:
            raise problem(
                found[1].line, f"a second <{name}> in the <{self.name}> of line {self.line}"
            )
        return found[0] if found else None

    def word(self, name: str) -> str | None:
        """The text of the one child of a name, without spaces around it; None without one."""
        child = self.only(name)
        if child is None:
            return None
        if child.children:
            raise problem(child.children[0].line, f"<{name}> must hold text, and nothing else")
        return child.text.strip()


def parse(text: str) -> Element:
    """The root of a document; raises `TaskError` with the line of what cannot be read."""
    parser = expat.ParserCreate(namespace_separator="\n")
    parser.buffer_text = True
    holder = Element("document", "", {}, 0)
    inside = [holder]
    count = 0

    def begin(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        line = parser.CurrentLineNumber
        count += 1
        if count > MOST_ELEMENTS:
            raise problem(line, f"more than {MOST_ELEMENTS:,} elements are too many")
        if len(inside) > DEEPEST:
            raise problem(line, f"elements stand more than {DEEPEST} deep inside each other")
        space, _, local = name.rpartition("\n")
        element = Element(local, space, attributes, line)
        inside[-1].children.append(element)
        inside.append(element)

    def end(name: str) -> None:
        inside.pop()

    def say(piece: str) -> None:
        element = inside[-1]
        if element.text or not piece.isspace():  # between elements there is space, much of it
            element.text += piece
        if len(element.text) > LONGEST_TEXT:
            raise problem(
                element.line, f"<{element.name}> holds more than {LONGEST_TEXT:,} characters"
            )

    def refuse(name: str, *of: object) -> None:
        raise problem(
            parser.CurrentLineNumber,
            f"the document type {shown(name)}: remove <!DOCTYPE>, which is not read, nor entities",
        )

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = say
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise problem(error.lineno, f"this is not XML: {reason}") from None
    except UnicodeEncodeError:
        raise TaskError("it is not text that UTF-8 can write") from None
    return holder.children[0]
