"""YAML text, read strictly and within bounds, and written so that it is read back the same.

PyYAML turns dates, sets and bytes into Python objects, reads `010` as 8 and `no` as False, repeats
whatever an alias names, and recurses as deep as the text does. A file of settings needs none of
that: here a value is text, a number, a truth value, nothing, a list or a mapping.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import yaml

MOST_BYTES: Final = 32 * 2**20
"""The longest text that is read: 32 MiB."""

MOST_VALUES: Final = 1_500_000
"""The most keys and values of a text: that many take 0.7 GB while they are read. A task with
100,000 states and three symbols, written out, has a million."""

MOST_REPEATED: Final = 100_000
"""The most values that all aliases of a text may stand for together."""

DEEPEST: Final = 100
"""How deep lists and mappings may stand inside each other."""

MOST_DIGITS: Final = 300
"""The longest number: a float has at most 308 digits before its point, and Python refuses to write
an integer of more than 4,300."""


class YamlProblem(Exception):
    """What is wrong with a text, and in which line."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


def load(text: str) -> Any:
    """The value that a text writes.

    Raises `YamlProblem` where the text is not YAML, repeats a key, has a key that is not text
    (`no`, `1`), a number that YAML takes for text (`1e-3`) or reads as another one (`010`), a date
    or a tag without quotes, and where it is larger, deeper or repeats more than the bounds of this
    module.
    """
    if len(text) > MOST_BYTES:
        raise YamlProblem(f"is longer than {MOST_BYTES // 2**20} MiB, the most that is read")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise YamlProblem("it is not text that UTF-8 can write") from None
    try:
        with no_collection():
            root = _root_of(text)
            if root is None:
                return None
            if "&" in text:  # without an anchor nothing can be repeated
                _check_repeated(root)
            return _value(root)
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        character = problem.character
        code = ord(character) if isinstance(character, str) else character
        raise YamlProblem(f"the character U+{code:04X} cannot stand in YAML", line) from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or "not valid YAML"
        told = f"{reason}{_ADVICE.get(reason, '')}"
        raise YamlProblem(told, mark.line + 1 if mark else None) from None


def dump(content: Mapping[str, Any], dumper: type[Dumper] | None = None) -> str:
    """The text of a mapping, keys in the order given; `load` reads the same mapping from it."""
    dumper = dumper or Dumper
    with no_collection():
        return str(yaml.dump(dict(content), Dumper=dumper, sort_keys=False, allow_unicode=True))


def is_plain(text: str) -> bool:
    """Whether `load` reads a text of letters, digits and signs as itself, without quotes."""
    tag: str = _PYYAML.resolve(yaml.ScalarNode, text, (True, False))
    return tag == _TEXT and not _is_number(text)


_ADVICE = {
    "mapping values are not allowed in this context": (
        ": is the line indented as its neighbours are, and a value with `: ` in it quoted?"
    ),
    "did not find expected key": ": is the line indented as its neighbours are?",
    "did not find expected '-' indicator": ": is the line indented as its neighbours are?",
    "found unexpected end of stream": ": is a quote opened and not closed?",
    "but found another document": ": `---` begins one, and a file holds one",
    "found character that cannot start any token": (
        ": lines are indented by spaces, not by tabs, and text with signs is quoted"
    ),
}
"""What a user may look at, by what the parser says."""

# libyaml reads ten times as fast as PyYAML; it is missing where PyYAML was built without it
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PYYAML: Any = yaml.SafeLoader("")
"""What tells how PyYAML reads a scalar."""

_CORE = "tag:yaml.org,2002:"
_TEXT = f"{_CORE}str"
_PLAIN_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)", re.ASCII)


class _Composer(_Loader):  # type: ignore[misc]
    """What turns a text into nodes, within bounds."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._num_values = 0

    def descend_resolver(self, parent: yaml.Node | None, index: Any) -> None:
        """Called before every value: counts them, and how deep they stand."""
        self._depth += 1
        self._num_values += 1
        if self._depth > DEEPEST + 1:
            raise YamlProblem(
                f"lists and mappings stand more than {DEEPEST} deep inside each other",
                None if parent is None else _line(parent),
            )
        if self._num_values > MOST_VALUES:
            raise YamlProblem(f"more than {MOST_VALUES} keys and values are too many")

    def ascend_resolver(self) -> None:
        """Called after every value."""
        self._depth -= 1


def _root_of(text: str) -> yaml.Node | None:
    composer = _Composer(text)
    try:
        root: yaml.Node | None = composer.get_single_node()
        return root
    finally:
        composer.dispose()


@contextmanager
def no_collection() -> Iterator[None]:
    """Many small objects are made and none is garbage: looking for some doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _value(node: yaml.Node) -> Any:
    """What a node says; no deeper than `DEEPEST`."""
    if node.tag == _TEXT:
        return _plain_text(node)
    read = _READERS.get(node.tag)
    if read is None:
        tag = node.tag.replace(_CORE, "!!")
        raise YamlProblem(f"the tag `{_short(tag)}` is not read: write plain values", _line(node))
    return read(node)


def _mapping(node: yaml.Node) -> dict[str, Any]:
    """A mapping, once its keys are texts that all differ."""
    if not isinstance(node, yaml.MappingNode):
        raise YamlProblem("this is no mapping, although its tag says so", _line(node))
    content: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = _key(key_node)
        if key in content:
            first = next(_line(other) for other, _ in node.value if other.value == key)
            raise YamlProblem(
                f"the key '{_short(key)}' appears twice (first in line {first})", _line(key_node)
            )
        content[key] = _value(value_node)
    return content


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise YamlProblem("a key is a list or a mapping: it must be text", _line(node))
    if node.tag == f"{_CORE}merge":
        raise YamlProblem("`<<` merges mappings, which is not read: write them out", _line(node))
    if node.tag != _TEXT:
        raise YamlProblem(
            f"the key `{_short(node.value)}` is not text: write it in quotes", _line(node)
        )
    return _plain_text(node)


def _list(node: yaml.Node) -> list[Any]:
    if not isinstance(node, yaml.SequenceNode):
        raise YamlProblem("this is no list, although its tag says so", _line(node))
    return [_value(part) for part in node.value]


def _check_repeated(root: yaml.Node) -> None:
    """Raises `YamlProblem` for a value inside itself, and for aliases of too many values."""
    sizes: dict[int, int] = {}  # of finished nodes, as they are with every alias written out
    inside: set[int] = set()
    waiting: list[yaml.Node] = [root]
    while waiting:
        node = waiting[-1]
        parts = _parts(node)
        if id(node) in sizes:
            waiting.pop()
        elif id(node) in inside:
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in parts)
            inside.discard(id(node))
            waiting.pop()
        else:
            inside.add(id(node))
            for part in parts:
                if id(part) in inside:
                    raise YamlProblem("a value stands inside itself", _line(part))
                waiting.append(part)
    if sizes[id(root)] - len(sizes) > MOST_REPEATED:
        raise YamlProblem(f"its aliases stand for more than {MOST_REPEATED} values")


def _parts(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.MappingNode():
            return [part for pair in node.value for part in pair]
        case yaml.SequenceNode():
            return list(node.value)
    return []


def _plain_text(node: yaml.Node) -> str:
    """Text; a value without quotes that Python would read as a number is refused."""
    text = _scalar(node)
    assert isinstance(node, yaml.ScalarNode)
    if not node.style and _is_number(text):
        number = float(text)
        better = _scientific(number) if "e" in text.lower() else f"{number:.15g}"
        raise YamlProblem(
            f"`{_short(text)}` is text to YAML: write {better}, or put it in quotes", _line(node)
        )
    return text


def _scientific(number: float) -> str:
    """The shortest text of a number with a point and an exponent, as YAML needs them."""
    written = (f"{number:.{digits}e}" for digits in range(1, 18))
    return next(each for each in written if float(each) == number)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text)) or any(map(str.isdigit, text))
    except ValueError:
        return False


def _plain_integer(node: yaml.Node) -> int:
    """A number; `010` and `1:30` are refused, since YAML reads them as 8 and 90."""
    text = _scalar(node)
    _check_digits(node)
    if not _PLAIN_INTEGER.fullmatch(text):
        value = _as_yaml_reads(_PYYAML.construct_yaml_int, node)
        raise YamlProblem(
            f"`{text}` is {value} to YAML: write it plainly, or put it in quotes", _line(node)
        )
    return int(text)


def _plain_float(node: yaml.Node) -> float:
    """A number with a point; `1_000.5` and `1:30.5` are refused."""
    text = _scalar(node)
    _check_digits(node)
    value: float = _as_yaml_reads(_PYYAML.construct_yaml_float, node)
    if "_" in text or ":" in text:
        raise YamlProblem(
            f"`{_short(text)}` is {value} to YAML: write it plainly, or put it in quotes",
            _line(node),
        )
    return value


def _check_digits(node: yaml.Node) -> None:
    if len(node.value) > MOST_DIGITS:
        raise YamlProblem(
            f"a number of {len(node.value)} digits: the most is {MOST_DIGITS}", _line(node)
        )


def _truth_value(node: yaml.Node) -> bool:
    _scalar(node)
    value: bool = _as_yaml_reads(_PYYAML.construct_yaml_bool, node)
    return value


def _as_yaml_reads(construct: Callable[[Any], Any], node: yaml.Node) -> Any:
    """What PyYAML makes of a scalar, also of one that bears a tag which does not suit it."""
    try:
        return construct(node)
    except (ValueError, KeyError, OverflowError):
        tag = node.tag.removeprefix(_CORE)
        raise YamlProblem(f"`{_short(node.value)}` is no !!{tag}", _line(node)) from None


def _nothing(node: yaml.Node) -> None:
    _scalar(node)


def _date(node: yaml.Node) -> None:
    raise YamlProblem(
        f"`{_short(_scalar(node))}` is a date to YAML: write it in quotes", _line(node)
    )


def _sign(node: yaml.Node) -> None:
    raise YamlProblem(f"`{_scalar(node)}` is a sign of YAML: write it in quotes", _line(node))


_READERS: dict[str, Callable[[yaml.Node], Any]] = {
    f"{_CORE}null": _nothing,
    f"{_CORE}bool": _truth_value,
    f"{_CORE}int": _plain_integer,
    f"{_CORE}float": _plain_float,
    f"{_CORE}timestamp": _date,
    f"{_CORE}merge": _sign,
    f"{_CORE}value": _sign,
    f"{_CORE}seq": _list,
    f"{_CORE}map": _mapping,
}


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes what `load` reads: numbers that are text in quotes, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Every value is written where it stands."""
        return True


def _written(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar(_TEXT, text, style="'" if _is_number(text) else None)


Dumper.add_representer(str, _written)


def _scalar(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        tag = node.tag.removeprefix(_CORE)
        raise YamlProblem(f"a list or a mapping is no !!{tag}", _line(node))
    return str(node.value)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
