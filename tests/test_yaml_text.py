"""Reading and writing YAML within bounds."""

import re
import time

import pytest

from statetrack import yaml_text
from statetrack.errors import SettingsError
from statetrack.settings import read_yaml

BILLION = "a0: &a0 [x, x]\n" + "".join(
    f"a{place}: &a{place} [{', '.join([f'*a{place - 1}'] * 10)}]\n" for place in range(1, 10)
)

HOSTILE = [
    (f"a: 1\nb: {'9' * 5000}\n", 2, "a number of 5000 digits: the most is 300"),
    (f"a: {'9' * 400}.5\n", 1, "a number of 402 digits"),
    ("a: 1\nb: 2025-02-30\n", 2, "`2025-02-30` is a date to YAML: write it in quotes"),
    ("a: 2025-01-01 10:00:00\n", 1, "is a date to YAML"),
    ("a: !!timestamp x\n", 1, "is a date to YAML"),
    ("a: !!binary aGk=\n", 1, "the tag `!!binary` is not read"),
    ("a: !!set {b}\n", 1, "the tag `!!set` is not read"),
    ("a: !!omap [b: 1]\n", 1, "the tag `!!omap` is not read"),
    ("a: !!python/name:os.system x\n", 1, "the tag `!!python/name:os.system` is not read"),
    ("a: !mine x\n", 1, "the tag `!mine` is not read"),
    ("a: !!int x\n", 1, "`x` is no !!int"),
    ("a: !!bool x\n", 1, "`x` is no !!bool"),
    ("a: !!float [x]\n", 1, "a list or a mapping is no !!float"),
    ("a: !!map [x]\n", 1, "no mapping"),
    ("a: !!seq {x: y}\n", 1, "no list"),
    ("a:\n  <<: {b: 1}\n", 2, "`<<` merges mappings"),
    ("a: =\n", 1, "`=` is a sign of YAML: write it in quotes"),
    ("[a]: 1\n", 1, "a key is a list or a mapping"),
    ("? {a: 1}\n: 2\n", 1, "a key is a list or a mapping"),
    ("b: 1\na: &a [*a]\n", 2, "stands inside itself"),
    ("a: &a {b: [*a]}\n", 1, "stands inside itself"),
    (BILLION, None, "aliases stand for more than 100000 values"),
    ("a: " + "[" * 2000 + "]" * 2000, 1, "more than 100 deep"),
    ("a: " + "[" * 200_000, 1, "more than 100 deep"),  # libyaml's own recursion would crash
    ("a:\n  " + "- " * 100_000, 2, "more than 100 deep"),
    ("".join(f"{' ' * place}a:\n" for place in range(200)), 101, "more than 100 deep"),
    ("a: 1\nb: \0\n", 2, "the character U+0000 cannot stand in YAML"),
    ("a: 1\n\tb: 2\n", 2, ""),
    ("a: *b\n", 1, "undefined alias"),
    ("a: 1\n---\nb: 2\n", 2, "another document"),
    ("a: ٢٥\n", 1, "`٢٥` is text to YAML: write 25, or put it in quotes"),
]


@pytest.mark.parametrize(
    ("text", "line", "reason"), HOSTILE, ids=[text[:12] for text, *_ in HOSTILE]
)
def test_hostile_text_is_refused_with_file_and_line(tmp_path, text, line, reason):
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    place = "" if line is None else f", line {line}"
    started = time.process_time()
    with pytest.raises(SettingsError, match="^" + re.escape(f"{path}{place}: ")) as refused:
        read_yaml(path)
    assert reason in str(refused.value)
    assert time.process_time() - started < 30


def test_text_in_another_encoding_is_refused_and_a_byte_order_mark_is_not(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("a: 1\n", encoding="utf-16")
    with pytest.raises(SettingsError, match="it is not UTF-8 text"):
        read_yaml(path)
    path.write_text("a: 1\n", encoding="utf-8-sig")
    assert read_yaml(path) == {"a": 1}


def test_a_file_is_read_no_further_than_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_text, "MOST_BYTES", 2**20)
    path = tmp_path / "mine.yaml"
    path.write_text("a: 1\n" + "#" * 2**20)
    with pytest.raises(SettingsError, match="longer than 1 MiB"):
        read_yaml(path)


def test_values_are_counted_while_they_are_read(monkeypatch):
    monkeypatch.setattr(yaml_text, "MOST_VALUES", 10)
    assert yaml_text.load("a: [1, 2, 3]") == {"a": [1, 2, 3]}
    with pytest.raises(yaml_text.YamlProblem, match="more than 10 keys and values"):
        yaml_text.load("a: [1, 2, 3, 4, 5, 6, 7, 8, 9")  # stops before the missing bracket


def test_aliases_within_the_bounds_are_read():
    assert yaml_text.load("a: &b [1, {c: 2}]\nd: [*b, *b]") == {
        "a": [1, {"c": 2}],
        "d": [[1, {"c": 2}], [1, {"c": 2}]],
    }
    assert yaml_text.load("") is None


def test_what_stands_twice_is_written_twice():
    rows = {"x": 1}
    text = yaml_text.dump({"a": rows, "b": rows})
    assert text == "a:\n  x: 1\nb:\n  x: 1\n"


@pytest.mark.parametrize("text", ["1e3", "1e-3", "10", "no", "2025-01-01", "=", "<<", "٢٥", "nan"])
def test_text_that_looks_like_something_else_is_written_so_that_it_is_read_back(text):
    assert yaml_text.load(yaml_text.dump({"a": text, text: "b"})) == {"a": text, text: "b"}


def test_reading_ends_with_the_collection_of_garbage_as_it_was():
    import gc

    assert gc.isenabled()
    with pytest.raises(yaml_text.YamlProblem):
        yaml_text.load("a: [")
    assert gc.isenabled()
