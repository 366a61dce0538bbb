"""Text that comes from files: what may stand in a name or a title, and how any text is shown."""

import importlib
import json
import os
import re
import shutil
import unicodedata
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from statetrack.cli._terminal import print_json
from statetrack.cli.app import run
from statetrack.errors import SettingsError, StatetrackError, StatetrackWarning, TaskError, setting
from statetrack.models import MODEL_FACTS, MODELS
from statetrack.references import bibtex, references
from statetrack.registry import Registry
from statetrack.report import Column, Table, console, error_console
from statetrack.report.suites import curves_markdown, suite_markdown
from statetrack.runs import EvaluationRow
from statetrack.sources import KINDS, Automaton, build_source
from statetrack.spec import TASKS, Task, load_task
from statetrack.sweep import SUITES
from statetrack.sweep.suite import read_suite
from statetrack.text import (
    LONGEST_NAME,
    escape_of,
    flaw_in,
    flaw_in_lines,
    latex,
    markdown,
    markdown_block,
    markdown_code,
    markdown_table,
    shortened,
    visible,
)
from statetrack.training import PROTOCOLS, read_protocol
from tests.setups import cell_of

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

QUICKLY = settings(deadline=None, max_examples=60)

PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two surrogates that together would be another character, where JSON is read."""

any_text = st.text(st.characters(codec=None), max_size=30).filter(
    lambda text: not PAIR.search(text)
)


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


@QUICKLY
@given(any_text)
def test_what_is_visible_is_harmless_and_stays_as_it_is_when_shown_again(text):
    assert_harmless(visible(text))
    assert_harmless(visible(text, lines=True), lines=True)
    assert visible(visible(text)) == visible(text)
    assert (flaw_in(text) is None) <= (visible(text) == text)


@QUICKLY
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
    def test_a_title_and_a_reference_are_one_line_and_may_be_empty(self, tmp_path, key):
        for text, flaw in (("two\nlines", r"\\n at position 4"), (" ", "is empty")):
            with pytest.raises(TaskError, match=f"'{key}': .*{flaw}"):
                self.load(tmp_path, self.content(**{key: text}))
        self.load(tmp_path, self.content(**{key: ""}))  # as tasks of one's own often have them

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

    def test_a_name_is_no_longer_than_others_are(self, tmp_path):
        assert self.load(tmp_path, self.content(name="x" * LONGEST_NAME)).name
        with pytest.raises(TaskError, match="the task's name has 1,001 characters"):
            self.load(tmp_path, self.content(name="x" * (LONGEST_NAME + 1)))

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


printable_line = st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" "))
printable_line = printable_line.map(str.strip).filter(bool)
line_of_markup = st.lists(
    st.sampled_from([*MARKUP, "`", "|", "\\", "<", "&", " ", "x", "[x](y)", "![x](y)", "--", "1."])
).map(lambda parts: "".join(parts).strip())
lines = (printable_line | line_of_markup).filter(bool)


def parsed(text):
    """The text that a reader of Markdown sees, by block: `(kind, text)`."""
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in reader.parse(text):
        if token.type == "inline":
            found.append("".join(map(seen, token.children)))
        elif token.type == "fence":
            found.append(token.content)
    return found


def seen(token):
    """The text of a token; of HTML the two tags of code only."""
    if token.type == "html_inline":
        assert token.content in ("<code>", "</code>"), token
        return ""
    if token.type in ("link_open", "link_close"):  # names of models lead to their sections
        assert token.attrs.get("href", "#").startswith("#"), token
        return ""
    assert token.type in ("text", "text_special", "code_inline"), token
    return token.content


class TestMarkdown:
    @QUICKLY
    @given(lines)
    def test_text_is_seen_as_it_is_in_a_heading_and_in_a_cell(self, text):
        assert parsed(f"# {markdown(text)}: {markdown(text)}\n") == [f"{text}: {text}"]
        table = markdown_table(["", markdown(text)], [[markdown(text), "1"]] * 2)
        assert parsed(table) == ["", text, text, "1", text, "1"]

    @QUICKLY
    @given(lines)
    def test_code_is_seen_as_it_is_in_a_sentence_and_in_a_cell(self, text):
        assert parsed(f"Symbols: {markdown_code(text)}, {markdown_code(text)}.\n") == [
            f"Symbols: {text}, {text}."
        ]
        table = markdown_table(["", ""], [[markdown_code(text), markdown_code(text)]])
        assert parsed(table) == ["", "", text, text]

    @QUICKLY
    @given(st.lists(lines | st.just("```") | st.just("~~~"), min_size=1).map("\n".join))
    def test_a_block_of_code_ends_at_its_end(self, text):
        assert parsed(f"{markdown_block(text, 'yaml')}\nafter\n") == [f"{text}\n", "after"]

    @pytest.mark.parametrize("name", MARKUP)
    def test_a_formula_is_text_as_well(self, name):
        dollarmath = pytest.importorskip("mdit_py_plugins.dollarmath").dollarmath_plugin
        reader = MarkdownIt("commonmark").enable("strikethrough").use(dollarmath)
        (inline,) = [each for each in reader.parse(markdown(name)) if each.type == "inline"]
        assert "".join(map(seen, inline.children)) == name


@QUICKLY
@given(lines)
def test_latex_has_no_command_in_it_but_those_of_characters(text):
    written = latex(text)
    back = {r"\textbackslash{}": "\\", r"\textasciicircum{}": "^", r"\textasciitilde{}": "~"}
    back |= {r"\textbar{}": "|", r"\textless{}": "<", r"\textgreater{}": ">"}
    pattern = r"\\text\w+\{\}|\\([{}$&%#_])"
    assert re.sub(pattern, lambda found: back.get(found[0], found[1]), written) == text
    assert not re.search(r"[\\{}$&%#_^~]", re.sub(pattern, "", written))


def test_bibtex_escapes_a_title_and_shipped_entries_need_no_escape(monkeypatch):
    paper, entry = next(iter(references().items()))
    hostile = entry.model_copy(update={"title": r"50 % of {$x_1$} & \input{y}"})
    monkeypatch.setitem(references(), paper, hostile)
    title = r"50 \% of \{\$x\_1\$\} \& \textbackslash{}input\{y\}"
    assert f"title         = {{{{{title}}}}}," in bibtex(paper)


class TestConsole:
    def shown(self, capsys, *things):
        to = console()
        for thing in things:
            to.print(thing)
        return capsys.readouterr().out

    def test_nothing_is_markup_in_titles_columns_cells_and_lines(self, capsys):
        for name in MARKUP:
            columns, look = (Column("a", "whole"), Column(name)), {"left_out": [name], "more": name}
            table = Table(columns, [("b", name)], name, look="framed", **look)
            assert self.shown(capsys, table, name).count(name) == 4
            wide = replace(table, rows=[*table.rows, ("x" * 155, "")])
            shown = self.shown(capsys, wide, name)
            assert f"no room for: {name}; {name}" in shown and shown.count(name) == 4

    @pytest.mark.parametrize("harmful", HARMFUL.values(), ids=HARMFUL)
    def test_nothing_reaches_the_terminal_that_has_an_effect(self, capsys, harmful):
        columns, rows = [Column(f"column {harmful}")], [[f"cell {harmful}"]]
        table = Table(columns, rows, f"title {harmful}", look="framed")
        assert_harmless(self.shown(capsys, table, f"line {harmful}"), lines=True)
        error_console().print(f"line {harmful}")
        assert_harmless(capsys.readouterr().err, lines=True)

    def test_styles_reach_a_terminal(self, monkeypatch, capsys):
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        to = console()
        to.print("x\x1b[31my", style="bold")
        assert capsys.readouterr().out == "\x1b[1mx\\x1b[31my\x1b[0m\n"

    @QUICKLY
    @given(content=st.dictionaries(any_text, st.lists(any_text, max_size=2), max_size=3))
    def test_json_is_harmless_and_read_back_as_it_was(self, content):
        with pytest.MonkeyPatch.context() as patch:
            written = []
            patch.setattr("builtins.print", written.append)
            print_json(content)
        assert_harmless(written[0], lines=True)
        assert json.loads(written[0]) == content


def test_errors_and_warnings_on_the_terminal_are_harmless(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hostile, options = "a\x1b]0;x\x07\x9b31m\u202eb", "a\x1b]0;x\x07\x9b31m"
    for words in (
        ["eval", hostile],
        ["show", hostile],
        ["show", f"{hostile}.yaml"],
        ["train", "--config", f"{hostile}.yaml"],
        ["train", "--model", hostile],
        ["audit", hostile],
        ["cite", f"runs/{hostile}"],
        [hostile],
        ["list", hostile],
        ["list", "runs", f"--{options}"],  # Typer itself prints these
        ["gen", "parity", "--format", options],
        ["gen", "parity", "--plugin", f"{hostile}.py"],
    ):
        assert run(words) in (1, 2)
        shown = capsys.readouterr()
        assert_harmless(shown.out + shown.err, lines=True)
        assert "x1b" in shown.err, words

    def warn() -> None:
        """Warn."""
        warnings.warn(StatetrackWarning(hostile), stacklevel=1)

    monkeypatch.setattr("statetrack.cli.check.command", warn)
    assert run(["check"]) == 0
    assert_harmless(capsys.readouterr().err, lines=True)


def test_a_registry_refuses_a_name_that_cannot_be_printed():
    registry = Registry("thing", dict, listing="list")
    with pytest.raises(ValueError, match=r"the name of a thing has \\x1b at position 2"):
        registry.register("a\x1b")(object)


STATES = ("[on]", "[/a]", "[bold]x[/]", ":smile:")
SYMBOLS = ("<b>", "|", "\\", "`", "$x$", "$x^{$", "_a_", "&", '"', "{", "#", "%", "*a*", "``|")
TITLE = "[/b] <script>alert(1)</script> | `t` $x^{$ _a_ # %"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a task whose every name is markup somewhere, its dataset and a run on it."""
    folder = tmp_path_factory.mktemp("markup")
    moves = {
        state: {
            symbol: STATES[(number + place % 2) % len(STATES)]
            for place, symbol in enumerate(SYMBOLS)
        }
        for number, state in enumerate(STATES)
    }
    task = {
        "title": TITLE,
        "name": "[red]t|t`",
        "version": 1,
        "reference": "[/c] <i>R</i> & S | `r` ```",
        "description": "[on] of it.\n\n    ```\n    [/a]\n",
        "automaton": {"kind": "transitions", "start": STATES[0], "states": moves},
        "train_length": [2, 4],
        "test_lengths": [6],
    }
    (folder / "t.yaml").write_text(yaml.safe_dump(task, sort_keys=False), encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        words = ["--samples", "60", "--validation-samples", "9", "--test-samples", "9"]
        assert run(["gen", "t.yaml", "--out", "[set]", "--format", "jsonl", *words]) == 0
        quick = ["--steps", "1", "--hidden", "4", "--validation-words", "8", "--batch-size", "4"]
        train = ["train", "--task", "t.yaml", "--model", "lstm", "--out", "runs/[on]", *quick]
        assert run(train) == 0
        assert run(["eval", "runs/[on]", "--samples", "9", "--length", "6"]) == 0
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def told(home, monkeypatch, capsys):
    """Runs a command in that folder and returns what it printed."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")

    def told(*words):
        assert run([*words]) == 0, capsys.readouterr().err
        shown = capsys.readouterr()
        assert_harmless(shown.out + shown.err, lines=True)
        return shown.out

    return told


class TestATaskOfMarkup:
    def test_show_has_every_name_as_it_is(self, told):
        shown = told("show", "t.yaml")
        for text in (*STATES, *SYMBOLS, TITLE, "[red]t|t`", "[/c] <i>R</i> & S | `r` ```"):
            assert text in shown

    def test_json_has_every_name_as_it_is(self, told):
        about = json.loads(told("show", "t.yaml", "--json"))
        assert about["states"] == [*STATES] and about["symbols"] == [*SYMBOLS]
        assert about["title"] == TITLE

    def test_predict_and_audit_take_it(self, told):
        assert "states needed" in told("predict", "t.yaml", "--models", "lstm")
        shown = told("audit", "t.yaml", "--samples", "20", "--train-samples", "20")
        assert "[red]t|t`" in shown
        assert any(state in shown for state in STATES)
        assert any(state in told("audit", "[set]") for state in STATES)

    def test_a_run_on_it_is_listed_evaluated_and_compared(self, told):
        assert "runs/[on]" in told("list", "runs")
        assert "run: runs/[on]" in told("eval", "runs/[on]", "--samples", "9", "--length", "6")
        shown = told("compare", "runs")
        assert "[red]t|t`" in shown and "runs/[on]" in shown

    @pytest.mark.parametrize("manner", ["diagram", "cayley", "table"])
    def test_a_picture_has_every_symbol_as_it_is(self, told, tmp_path, manner):
        told("show", "t.yaml", "--plot", str(tmp_path / "t.svg"), "--plot-as", manner)
        found = ElementTree.parse(tmp_path / "t.svg").iter("{http://www.w3.org/2000/svg}text")
        text = " ".join("".join(each.itertext()) for each in found)
        for name in (*STATES, *SYMBOLS, "[red]t|t`"):
            assert name in text

    def test_the_readme_of_its_dataset_shows_every_name_as_it_is(self, home):
        text = (home / "[set]" / "README.md").read_text(encoding="utf-8")
        _, front, body = text.split("---\n", 2)
        assert yaml.safe_load(front)["pretty_name"] == TITLE
        blocks = parsed(body)
        assert blocks[0] == f"[red]t|t`: {TITLE}"
        assert "[red]t|t`, version 1" in blocks and "[/c] <i>R</i> & S | `r` ```" in blocks
        assert f"Symbols, numbered from 0: {', '.join(SYMBOLS)}" in blocks
        assert {*STATES} <= {*blocks}
        card = json.loads((home / "[set]" / "card.json").read_text(encoding="utf-8"))
        assert blocks[-1] == f"{card['document'].rstrip()}\n"

    def test_cite_says_what_its_reference_is(self, told, capsys):
        assert run(["cite", "t.yaml"]) == 0
        assert "its reference is: [/c] <i>R</i> & S | `r` ```" in capsys.readouterr().err


def test_what_older_versions_wrote_is_listed_without_harm(told, home, tmp_path, monkeypatch):
    older = tmp_path / "runs" / "a\x1b]0;x\x07b"
    older.parent.mkdir()
    hostile = "\x1b]0;x\x07\x9b31m\u202e"
    shutil.copytree(home / "runs" / "[on]", older)
    shutil.copytree(home / "runs" / "[on]", older.parent / "other")
    config = yaml.safe_load((older / "config.yaml").read_text(encoding="utf-8"))
    changed = yaml.safe_dump(config | {"task": f"t{hostile}"})
    (older / "config.yaml").write_text(changed, encoding="utf-8")
    rows = [json.loads(line) for line in (older / "eval.jsonl").read_text().splitlines()]
    lines = [json.dumps(row | {"task": hostile, "shortcut": hostile}) for row in rows]
    (older / "eval.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert r"t\x1b]0;x\x07\x9b31m\u202e" in told("list", "runs")
    assert r"a\x1b]0;x" in told("compare", "runs")
    told("list", "runs", "--json")
    document = yaml.safe_load((older / "task.yaml").read_text(encoding="utf-8"))
    harmful = yaml.safe_dump(document | {"title": hostile})
    (older / "task.yaml").write_text(harmful, encoding="utf-8")
    told("compare", "runs")


def result_of(row, column):
    """A cell of a suite with one replica that is right on every word."""
    numbers = dict.fromkeys(("accuracy", "low", "high", "symbol_accuracy", "prefix_accuracy"), 1.0)
    numbers |= dict.fromkeys(("floor", "chance", "scaled", "scaled_to_floor"), 0.5)
    about = {"length": 6, "sequences": 9, "replica": 0, "seed": 0, "lr": 0.1, "selected": True}
    one = EvaluationRow(**about, **numbers)
    return cell_of(row, column, (one,))


@pytest.mark.parametrize("name", MARKUP)
def test_the_pages_of_a_suite_show_rows_and_columns_as_they_are(name):
    published, results = {name: {name: 0.5}}, [result_of(name, name)]
    cells = parsed(suite_markdown([name], [name], results, published, name))
    assert cells[11:14] == [name, name, name]
    assert parsed(curves_markdown(results)) == ["task", "model", "6", name, name, "1.00"]


def test_the_lists_of_the_docs_have_no_markup_but_their_own(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "docs")
    lists = importlib.import_module("generated")
    reader = MarkdownIt("commonmark").enable("table")
    for name in ("kinds", "tasks", "suites", "protocols", "training-settings", "model-names"):
        parsed(lists.LISTS[name]())
    for text in (name for name in MARKUP if "`" not in name):
        written = lists.as_prose(f"{text} `a_b|c` {text}")
        (inline,) = [each for each in reader.parse(written) if each.type == "inline"]
        assert "".join(map(seen, inline.children)) == f"{text} a_b|c {text}"
