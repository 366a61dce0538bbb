"""Settings classes, and the YAML files that fill them."""

import inspect
import re
from typing import Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from statetrack import errors
from statetrack.errors import SettingsError, StatetrackError, TaskError
from statetrack.settings import Settings, build, option, read_yaml


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


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.none() | st.booleans() | st.integers() | TEXT | st.lists(st.integers()),
        min_size=1,
    )
)
def test_what_yaml_writes_is_read_back(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("yaml") / "file.yaml"
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
        ("a: [1\n", ", line 2: "),
        ("- a\n- b\n", ": holds no `key: value` lines"),
        ("", ": holds no `key: value` lines"),
        ("a: !!python/object:os.system {}\n", ", line 1: could not determine a constructor"),
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


def test_every_error_is_drawn_in_the_tree_and_descends_from_its_root():
    classes = {
        name
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, Exception)
    } - {"StatetrackWarning"}
    drawn = set(re.findall(r"\b\w+Error\b", errors.__doc__))
    assert drawn == classes
    assert all(issubclass(getattr(errors, name), StatetrackError) for name in classes)


@pytest.mark.parametrize(("written", "read"), [("010", "8"), ("1_000", "1000"), ("1:30", "90")])
def test_a_number_that_yaml_reads_as_another_is_refused(tmp_path, written, read):
    path = tmp_path / "mine.yaml"
    path.write_text(f"steps: 3\nhidden: {written}\n")
    with pytest.raises(SettingsError, match=f"line 2: `{written}` is {read} to YAML"):
        read_yaml(path)
