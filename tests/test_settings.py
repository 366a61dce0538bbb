"""Settings classes, and the YAML files that fill them."""

import inspect
import os
import re
import typing
from typing import Literal

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from statetrack import errors
from statetrack.catalogue import bounds, inner_type, names_for
from statetrack.cli.audit import AuditSettings
from statetrack.cli.gen import GenSettings
from statetrack.errors import SettingsError, StatetrackError, TaskError
from statetrack.models import MODEL_FACTS
from statetrack.runs import to_yaml
from statetrack.settings import Settings, build, option, read_yaml
from statetrack.sources import LengthDistribution, parse_lengths
from statetrack.training import DataSettings, TrainSettings


class Dial(Settings):
    """Settings of nothing in particular."""

    rank: int = option(64, "A rank.", min=1, max=100)
    rate: float = option(1e-2, "A rate.", above=0)
    loss: Literal["squared", "entropy"] = option("squared", "A loss.")


class Required(Settings):
    """Settings with a field that has to be given."""

    title: str = option(..., "A title.")


def test_defaults_stand_where_nothing_is_given():
    assert build(Dial, {}, "here") == Dial(rank=64, rate=0.01, loss="squared")


def test_settings_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Dial().rank = 3


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rnak": 3}, "here: unknown key 'rnak'. Did you mean 'rank'?"),
        ({"zzz": 3}, "here: unknown key 'zzz'. Known are: rank, rate, loss."),
        ({"rank": 0}, "here: 'rank': Input should be greater than or equal to 1 (given: 0)"),
        ({"rank": 101}, "here: 'rank': Input should be less than or equal to 100 (given: 101)"),
        ({"rate": 0.0}, "here: 'rate': Input should be greater than 0 (given: 0.0)"),
        (
            {"loss": "cubed"},
            "here: 'loss': Input should be 'squared' or 'entropy' (given: 'cubed')",
        ),
    ],
)
def test_a_wrong_setting_is_one_line_with_place_and_value(values, message):
    with pytest.raises(SettingsError) as error:
        build(Dial, values, "here")
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rnak": 3}, "Dial has no setting 'rnak'. Did you mean 'rank'?"),
        ({"rank": 0}, "rank: Input should be greater than or equal to 1 (given: 0)"),
        ({"loss": True}, "loss: `yes` is a truth value to YAML: use quotes (given: True)"),
    ],
)
def test_a_wrong_argument_of_a_settings_class_is_one_line_too(values, message):
    with pytest.raises(SettingsError) as error:
        Dial(**values)
    assert str(error.value) == message
    with pytest.raises(SettingsError, match=r"^Required: 'title' is missing$"):
        Required()


def test_a_missing_setting_is_named():
    with pytest.raises(TaskError, match=r"^mine.yaml: 'title' is missing$"):
        build(Required, {}, "mine.yaml", TaskError)


def test_a_long_value_is_cut_short():
    with pytest.raises(SettingsError) as error:
        build(Dial, {"rank": "x" * 500}, "here")
    assert len(str(error.value)) < 160


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return any(letter.isdigit() for letter in text)  # `nan` and `inf` are text


TEXT = st.text(max_size=5).filter(lambda text: not is_number(text))
"""PyYAML writes `1e3` without quotes, which `read_yaml` refuses: a test below has it."""


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.none() | st.booleans() | st.integers() | TEXT | st.lists(st.integers()),
        min_size=1,
    )
)
def test_what_yaml_writes_is_read_back(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "read-back.yaml"
    path.write_text(yaml.safe_dump({f"key-{key}": value for key, value in content.items()}))
    assert read_yaml(path) == {f"key-{key}": value for key, value in content.items()}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nno: 2\n", ", line 2: the key `no` is not text: write it in quotes"),
        ("1: 2\n", ", line 1: the key `1` is not text: write it in quotes"),
        ("a: 1\nb: 2\na: 3\n", ", line 3: the key 'a' appears twice (first in line 1)"),
        (
            "a: 1\nlr: 1e-3\n",
            ", line 2: `1e-3` is text to YAML: write 1.0e-03, or put it in quotes",
        ),
        ("lr: 125e-5\n", ", line 1: `125e-5` is text to YAML: write 1.25e-03, or put it in quotes"),
        ("n: 1.25e6\n", ", line 1: `1.25e6` is text to YAML: write 1.25e+06, or put it in quotes"),
        ("a: 1\n---\nb: 1\n", ", line 2: but found another document: `---` begins one, and a file"),
        ("a: [1\n", ", line 2: "),
        ("a: 1\n b: 2\n", ", line 2: mapping values are not allowed in this context: is the line"),
        ('a: "x\n', ", line 2: found unexpected end of stream: is a quote opened and not closed?"),
        ("a:\n\tb: 1\n", ", line 2: found character that cannot start any token: lines are indent"),
        ("- a\n- b\n", ": holds no `key: value` lines"),
        ("", ": holds no `key: value` lines"),
        (
            "a: !!python/object:os.system {}\n",
            ", line 1: the tag `!!python/object:os.system`",
        ),
    ],
)
def test_a_trap_of_yaml_is_an_error_that_names_the_line(tmp_path, text, message):
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError, match="^" + re.escape(f"{path}{message}")):
        read_yaml(path)


def test_quoted_numbers_stay_text(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: '1e-3'\nb: \"010\"\n")
    assert read_yaml(path) == {"a": "1e-3", "b": "010"}


def test_a_file_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(TaskError, match="No such file or directory"):
        read_yaml(tmp_path / "none.yaml", TaskError)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="it is not UTF-8 text"):
        read_yaml(binary)
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(SettingsError, match="it is a pipe, not a file"):
        read_yaml(tmp_path / "pipe.yaml")


def test_every_error_is_drawn_in_the_tree_and_descends_from_its_root():
    classes = {
        name
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, Exception)
    } - {"StatetrackWarning", "TaskWarning"}
    drawn = set(re.findall(r"\b\w+Error\b", errors.__doc__))
    assert drawn == classes
    assert all(issubclass(getattr(errors, name), StatetrackError) for name in classes)


@pytest.mark.parametrize(("written", "read"), [("010", "8"), ("1_000", "1000"), ("1:30", "90")])
def test_a_number_that_yaml_reads_as_another_is_refused(tmp_path, written, read):
    path = tmp_path / "mine.yaml"
    path.write_text(f"steps: 3\nhidden: {written}\n")
    with pytest.raises(SettingsError, match=f"line 2: `{written}` is {read} to YAML"):
        read_yaml(path)


class Numbers(Settings):
    """Settings with numbers in every form."""

    one: float = option(1.0, "A number.")
    some: tuple[float, ...] = option((1.0,), "Numbers.")
    either: int | float | None = option(None, "A number or none.")
    whole: int = option(1, "A whole number.")
    words: tuple[str, ...] = option((), "Texts.")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), "nan", "inf"])
@pytest.mark.parametrize("field", ["one", "some", "either"])
def test_no_setting_takes_nan_or_an_infinity(field, number):
    with pytest.raises(SettingsError, match=f"^{field}"):
        Numbers(**{field: (1.0, number) if field == "some" else number})


@pytest.mark.parametrize("written", [".nan", ".inf", "-.inf", "1.0e+999"])
def test_a_file_with_nan_or_an_infinity_is_refused(tmp_path, written):
    path = tmp_path / "mine.yaml"
    path.write_text(f"lrs: [{written}]\n")
    with pytest.raises(SettingsError, match=r"'lrs\.0': Input should be a finite number"):
        build(TrainSettings, read_yaml(path), str(path))


@pytest.mark.parametrize("written", ["٢٥", "1_000", "0x10", "1e", ""])
@pytest.mark.parametrize("field", ["one", "some", "whole"])
def test_a_number_is_written_in_the_digits_0_to_9(field, written):
    with pytest.raises(SettingsError, match=f"^{field}: is not a number"):
        Numbers(**{field: (written,) if field == "some" else written})


def test_a_whole_number_without_a_bound_of_its_own_has_the_common_one():
    assert Numbers(whole=Settings.greatest_integer).whole == 10**9
    for number in (10**9 + 1, 2**64, -(10**18), 10**5000):
        with pytest.raises(SettingsError, match=r"^whole: must be at most 1000000000") as refused:
            Numbers(whole=number)
        assert len(str(refused.value)) < 200


def test_text_that_utf8_cannot_write_is_refused():
    for words in ("\ud800", ("a", "\udcff")):
        with pytest.raises(SettingsError, match="is not text that UTF-8 can write"):
            Numbers(words=words) if isinstance(words, tuple) else Required(title=words)


def test_lengths_are_written_in_ascii_digits():
    for text in ("2-٢٥", "٢٥", "2-1_0", "9" * 5000):
        with pytest.raises(SettingsError, match="not a length"):
            LengthDistribution.parse(text)
        with pytest.raises(SettingsError, match="not a length"):
            parse_lengths([text])
    with pytest.raises(SettingsError, match=r"^device"):
        TrainSettings(device="cuda:٢")


EVERY_CLASS = [DataSettings, TrainSettings, GenSettings, AuditSettings] + [
    facts.settings_class for facts in MODEL_FACTS.values()
]


def values_of(field):
    """Values to try for a field: within its bounds where it is a number, any text for text."""
    lower, upper, above = bounds(field)
    core = inner_type(field.annotation)
    if names_for(field) is not None:
        return st.sampled_from(sorted(names_for(field)))
    if core is bool:
        return st.booleans()
    if core is int:
        return st.integers(lower, upper)
    if core is float:
        return st.floats(lower if above is None else above, upper, exclude_min=above is not None)
    if core is str:
        return st.text(max_size=8) | st.sampled_from(["1e3", "no", "=", "2-10", "cuda:1", "sm"])
    if core == tuple[int, ...]:
        return st.lists(st.integers(), max_size=3).map(tuple)
    if core == tuple[float, ...]:
        return st.lists(st.floats(), max_size=3).map(tuple)
    if core == tuple[int, ...]:
        return st.lists(st.integers(1, 10**6), max_size=2).map(tuple)
    choices = typing.get_args(core)
    assert typing.get_origin(core) is Literal, field
    return st.sampled_from(choices)


@pytest.mark.parametrize("kind", EVERY_CLASS, ids=lambda kind: kind.__name__)
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_a_settings_class_accepts_is_read_back_the_same(tmp_path, kind, data):
    chosen = data.draw(st.sets(st.sampled_from(sorted(kind.model_fields)), max_size=4))
    given_values = {name: data.draw(values_of(kind.model_fields[name])) for name in sorted(chosen)}
    try:
        made = kind(**given_values)
    except SettingsError:
        assume(False)
    path = tmp_path / "config.yaml"
    path.write_text(to_yaml(made.model_dump(mode="json")), encoding="utf-8")
    assert build(kind, read_yaml(path), "config.yaml") == made
