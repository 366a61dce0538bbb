"""Text that comes from files: what may stand in a name or a title, and how any text is shown."""

import re
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from statetrack.errors import SettingsError, StatetrackError, TaskError, setting
from statetrack.models import MODELS
from statetrack.models._facts import MODEL_FACTS
from statetrack.protocols import PROTOCOLS, read_protocol
from statetrack.sources import KINDS, Automaton, build_source
from statetrack.spec import TASKS, Task, load_task
from statetrack.sweep.suite import SUITES, read_suite
from statetrack.text import LONGEST_NAME, escape_of, flaw_in, flaw_in_lines, shortened, visible

HARMFUL = {
    "an escape sequence": "\x1b[31m",
    "a title of the terminal": "\x1b]0;x\x07",
    "a one-character CSI": "\x9b31m",
    "a backspace": "\b",
    "a newline": "\n",
    "a carriage return": "\r",
    "a line separator": "\u2028",
    "a turn of direction": "\u202e",
    "an isolate of direction": "\u2066",
    "a space without width": "\u200b",
    "a lone surrogate": "\ud800",
    "a tag": "\U000e0041",
    "a null": "\0",
}

MARKUP = (
    *("[on]", "[/a]", "[bold]x[/]", ":smile:", "<b>", "|", "\\", "`", "$x$", "$x^{$", "_a_"),
    *("&", '"', "{", "#", "%", "*a*", "~~s~~", "``", "&amp;", "\\|", "</text>", "'", "a|`\\"),
)
"""Names that mean something to rich, HTML, XML, LaTeX, Markdown or YAML."""

any_text = st.text(st.characters(codec=None), max_size=30)


def assert_harmless(text: str, lines: bool = False) -> None:
    """No character of a text has an effect on a terminal but to be shown."""
    for letter in text:
        kind = unicodedata.category(letter)
        assert (lines and letter in "\n\t") or kind == "Zs" or letter.isprintable(), ascii(text)


@pytest.mark.parametrize("harmful", HARMFUL.values(), ids=HARMFUL)
def test_a_flaw_names_the_character_by_its_escape_and_its_position(harmful):
    flaw = flaw_in(f"ab{harmful}c")
    assert flaw is not None and f"{escape_of(harmful[0])} at position 3" in flaw
    assert_harmless(flaw)


@pytest.mark.parametrize("name", MARKUP)
def test_characters_that_are_markup_elsewhere_are_no_flaw(name):
    assert flaw_in(name) is None
    assert visible(name) == name


def test_empty_and_very_long_texts_are_flaws():
    assert "empty" in (flaw_in(" ") or "")
    assert flaw_in("x" * LONGEST_NAME, most=LONGEST_NAME) is None
    assert "1,001 characters" in (flaw_in("x" * (LONGEST_NAME + 1), most=LONGEST_NAME) or "")


def test_a_text_of_lines_may_have_newlines_and_tabs_only():
    assert flaw_in_lines("one\n\ttwo") is None
    assert "\\r at position 4" in (flaw_in_lines("one\r\n") or "")


@given(any_text)
def test_what_is_visible_is_harmless_and_stays_as_it_is_when_shown_again(text):
    assert_harmless(visible(text))
    assert_harmless(visible(text, lines=True), lines=True)
    assert visible(visible(text)) == visible(text)
    assert (flaw_in(text) is None) <= (visible(text) == text)


@given(any_text)
def test_the_message_of_an_error_is_one_harmless_line_whatever_stands_in_it(text):
    assert_harmless(str(StatetrackError(f"{text}: is wrong")))
    assert str(StatetrackError(f"{setting('name', text)}: is wrong")) == f"name={text!r}: is wrong"


@pytest.mark.parametrize("value", ["(", "[" * 5000, "9" * 5000, "x y"])
def test_text_that_imitates_a_setting_in_a_message_is_shown_as_it_is(value):
    message = str(StatetrackError(f"unknown key '\x02hidden={value}\x03'"))
    assert message == f"unknown key '\\x02hidden={value}\\x03'"


def test_a_quoted_text_is_cut_where_it_is_long():
    assert shortened("x" * 60) == "x" * 60
    assert shortened("x" * 61) == "x" * 57 + "..."


class TestTasks:
    def content(self, **changed):
        return {
            "title": "T",
            "version": 1,
            "reference": "own",
            "automaton": {
                "kind": "transitions",
                "start": "p",
                "states": {"p": {"x": "q", "y": "p"}, "q": {"x": "p", "y": "q"}},
            },
        } | changed

    def load(self, folder, content):
        path = folder / "t.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return load_task(str(path))

    @pytest.mark.parametrize("key", ["title", "reference", "description", "name"])
    def test_text_that_cannot_be_printed_is_refused_with_its_key(self, tmp_path, key):
        with pytest.raises(TaskError) as caught:
            self.load(tmp_path, self.content(**{key: "a\x1b]0;x\x07b"}))
        assert f"t.yaml: '{key}': has \\x1b at position 2: only printable" in str(caught.value)
        assert_harmless(str(caught.value))

    @pytest.mark.parametrize("key", ["title", "reference"])
    def test_a_title_and_a_reference_are_one_line_and_not_empty(self, tmp_path, key):
        for text, flaw in (("two\nlines", r"\\n at position 4"), ("", "is empty")):
            with pytest.raises(TaskError, match=f"'{key}': .*{flaw}"):
                self.load(tmp_path, self.content(**{key: text}))

    def test_a_description_may_have_lines(self, tmp_path):
        task = self.load(tmp_path, self.content(description="One.\n\n\tTwo."))
        assert task.spec.description == "One.\n\n\tTwo."

    def test_names_and_arguments_that_cannot_be_printed_are_refused(self, tmp_path):
        for harmful in ("\x1b", "\u202e", "\x9b"):
            automaton = {
                "kind": "transitions",
                "start": "p",
                "states": {"p": {f"x{harmful}": "p", "y": "p"}},
            }
            with pytest.raises(TaskError) as caught:
                self.load(tmp_path, self.content(automaton=automaton))
            assert f"{escape_of(harmful)} at position 2" in str(caught.value)
            assert_harmless(str(caught.value))

    def test_a_key_that_cannot_be_printed_is_shown_by_its_escape(self, tmp_path):
        with pytest.raises(TaskError) as caught:
            self.load(tmp_path, self.content(**{"ti\x1btle": "T"}))
        assert r"unknown key 'ti\x1btle'. Did you mean 'title'?" in str(caught.value)

    def test_a_file_whose_name_cannot_be_printed_needs_a_name_inside_it(self, tmp_path):
        path = tmp_path / "a\x1bb.yaml"
        path.write_text(yaml.safe_dump(self.content()), encoding="utf-8")
        with pytest.raises(TaskError, match=r"a\\x1bb.yaml: the task's name has \\x1b at position"):
            load_task(str(path))
        path.write_text(yaml.safe_dump(self.content(name="mine")), encoding="utf-8")
        assert load_task(str(path)).name == "mine"

    @pytest.mark.parametrize("name", MARKUP)
    def test_names_of_any_printable_characters_are_taken_and_read_back(self, tmp_path, name):
        states = {name: {name: "-q"}, "-q": {name: name}}
        automaton = {"kind": "transitions", "start": name, "states": states}
        task = self.load(tmp_path, self.content(automaton=automaton, title=name, name=name))
        again = self.load(tmp_path, yaml.safe_load(task.document()))
        assert again.name == again.spec.title == name
        assert again.source.symbols == (name,) and again.source.labels == (name, "-q")
        assert again.format_word(again.parse_word(f"{name} {name}")) == f"{name} {name}"


@pytest.mark.parametrize("harmful", ["\x1b", "\u202e", "\x9b", "x" * (LONGEST_NAME + 1)])
@pytest.mark.parametrize("what", ["symbols", "states", "labels"])
def test_an_automaton_refuses_names_that_cannot_be_printed(what, harmful):
    with pytest.raises(TaskError, match=f"{what}: the name '.*' has ") as caught:
        Automaton([[0]], **{what: [f"a{harmful}"]})
    assert_harmless(str(caught.value))
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\x1c", "\x85", "\u2003", "\u2028"])
def test_a_name_has_no_space_of_any_sort(space):
    with pytest.raises(TaskError, match="without spaces"):
        Automaton([[0]], symbols=[f"a{space}b"])


def test_the_names_of_a_source_without_states_are_checked(monkeypatch):
    source = load_task("dyck-1").source
    monkeypatch.setattr(source, "symbols", ("(", ")\x1b"))
    monkeypatch.setitem(KINDS._things, "bad", lambda: source)
    with pytest.raises(TaskError, match=r"here: symbols: the name '\)\\x1b' has \\x1b"):
        build_source({"kind": "bad"}, "here")


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "a\x1b"},
        {"reference": "a\x1b"},
        {"published_as": "a\x1b"},
        {"models": {"a\x1b": "lstm"}},
        {"tasks": {"a\x1b": "s3"}},
    ],
)
def test_a_suite_refuses_text_that_cannot_be_printed(tmp_path, changed):
    suite = {"title": "T", "models": {"l": "lstm"}, "tasks": {"s": "s3"}} | changed
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(suite), encoding="utf-8")
    with pytest.raises(
        SettingsError, match=rf"suite.yaml: '{next(iter(changed))}.*has \\x1b at position 2"
    ):
        read_suite(path)


@pytest.mark.parametrize("key", ["title", "reference"])
def test_a_protocol_refuses_text_that_cannot_be_printed(tmp_path, key):
    path = tmp_path / "protocol.yaml"
    path.write_text(yaml.safe_dump({"title": "T", "reference": "own"} | {key: "a\x1b"}), "utf-8")
    with pytest.raises(SettingsError, match=rf"protocol.yaml: '{key}': has \\x1b at position 2"):
        read_protocol(path)


class TestWhatIsShipped:
    def test_tasks(self):
        for name in TASKS:
            task: Task = TASKS[name]
            assert flaw_in(name) is None
            for text in (*task.source.symbols, *task.source.labels):
                assert flaw_in(text, most=LONGEST_NAME) is None and re.fullmatch(r"\S+", text)

    def test_protocols_and_suites(self):
        for protocol in PROTOCOLS.values():
            assert flaw_in(protocol.title) is None and flaw_in(protocol.reference) is None
        for suite in SUITES.values():
            for text in (suite.title, *suite.models, *suite.tasks):
                assert flaw_in(text) is None

    def test_models(self):
        for name in MODELS:
            facts = MODEL_FACTS[name]
            for text in (name, facts.family, facts.source, facts.summary):
                assert text is not None and flaw_in(text) is None, (name, text)
            assert flaw_in_lines(facts.description) is None
