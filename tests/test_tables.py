"""One table in every format, and the option by which commands write it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import statetrack.report.formats as formats_package
from statetrack.cli import app
from statetrack.errors import SettingsError
from statetrack.report import FORMATS, Column, Document, Line, Styled, Table, format_of, text_of
from statetrack.report.formats.html import table_html
from statetrack.report.formats.latex import table_latex
from statetrack.report.formats.markdown import table_markdown

TABLE = Table(
    (
        Column("name", "name"),
        Column("words", "number"),
        Column("accuracy", "number", write="{:.2f}".format, key="share"),
        Column("done"),
    ),
    [
        ["a|b", 12_000, 0.5, True],
        Line(["c & d", 7, Styled(1.0, strong=True, beside="3/3"), False], style="bold", ends=True),
        [Styled("<e>", code=True), None, Styled(float("nan"), "-")],
    ],
    title="Three rows",
    caption="by hand",
    notes=("the last is short",),
)
DOCUMENT = Document(
    title="T",
    parts=lambda: [TABLE, "A sentence"],
    rows=lambda: TABLE,
    json=lambda: {"rows": TABLE.values()},
)


def test_readers_see_what_columns_write_and_programs_get_values():
    assert TABLE.texts() == [
        ["a|b", "12,000", "0.50", "yes"],
        ["c & d", "7", "1.00", "no"],
        ["<e>", "-", "-", ""],
    ]
    assert TABLE.values()[2] == ["<e>", None, None, None]
    assert TABLE.names == ["name", "words", "share", "done"]
    things = [{"name": "x", "words": 1, "share": 0.25, "done": None}]
    assert Table.of(TABLE.columns, things).texts() == [["x", "1", "0.25", "-"]]


def test_every_format_draws_the_same_table():
    drawn = {name: FORMATS[name].draw(DOCUMENT) for name in FORMATS}
    texts = {name: text for name, text in drawn.items() if isinstance(text, str)}
    assert set(drawn) - set(texts) == {"parquet"}
    assert [*csv.reader(io.StringIO(texts["csv"]))][1] == ["a|b", "12000", "0.5", "True"]
    assert json.loads(texts["json"])["rows"][1] == ["c & d", 7, 1.0, False]
    assert r"| a\|b | 12,000 | 0.50 | yes |" in table_markdown(TABLE)
    assert "| **1.00** (3/3) | no |" in texts["markdown"] and "`<e>`" in texts["markdown"]
    assert texts["markdown"].startswith("Three rows: by hand\n\n|")
    assert texts["markdown"].endswith("- the last is short\n\nA sentence\n")
    assert r"c \& d & 7 & \textbf{1.00} {\scriptsize 3/3} & no \\" in table_latex(TABLE)
    assert r"\begin{tabular}{lrrl}" in texts["latex"] and "% A sentence" in texts["latex"]
    assert "<code>&lt;e&gt;</code>" in table_html(TABLE) and "<html" in texts["html"]
    assert "default-src 'none'" in texts["html"] and "script" not in texts["html"]
    assert text_of(TABLE, 80) in texts["rich"] and "1.00 3/3" in texts["rich"]
    content = drawn["parquet"]
    assert isinstance(content, bytes)
    read = pq.read_table(io.BytesIO(content))
    types = [str(read.schema.field(name).type) for name in read.schema.names]
    assert types == ["string", "int64", "double", "bool"]


def test_a_report_format_is_one_file(tmp_path, monkeypatch):
    (tmp_path / "shouting.py").write_text(
        "from statetrack.report import FORMATS, ReportFormat\n"
        "def draw(document):\n"
        "    return document.title.upper() + '!\\n'\n"
        "FORMATS.register('shouting')(ReportFormat('.loud', draw))\n"
    )
    known = set(FORMATS)
    places = [*formats_package.__path__, str(tmp_path)]
    monkeypatch.setattr(formats_package, "__path__", places)
    monkeypatch.setattr(formats_package.__spec__, "submodule_search_locations", places)
    for name in ("_found", "_elsewhere"):
        monkeypatch.setattr(FORMATS, name, None)
    monkeypatch.setattr(FORMATS, "_things", dict(FORMATS.loaded()))
    monkeypatch.setattr(FORMATS, "_homes", dict(FORMATS._homes))
    monkeypatch.chdir(tmp_path)
    assert set(FORMATS) == {*known, "shouting"} and format_of(Path("x.loud")) == "shouting"
    assert app.run(["list", "suites", "--out", "suites.loud"]) == 0
    assert (tmp_path / "suites.loud").read_text() == "SUITES!\n"


def test_an_ending_of_no_format_is_refused_with_those_there_are():
    with pytest.raises(SettingsError, match=r"x.doc: its name does not say the format: .*\.tex"):
        format_of(Path("x.doc"))


@pytest.mark.parametrize("ending", ["md", "tex", "csv", "parquet", "json", "html", "txt"])
@pytest.mark.parametrize("command", ["list protocols", "list kinds --filter name=regex"])
def test_a_list_is_written_in_every_format(command, ending, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"table.{ending}"
    assert app.run([*command.split(), "--out", file.name]) == 0
    assert capsys.readouterr().out == f"table: table.{ending}\n"
    content = file.read_bytes()
    assert b"regex" in content or b"bilinear" in content
    assert app.run([*command.split(), "--out", file.name]) == 1
    assert "is there already: name another file, or give --force" in capsys.readouterr().err
    file.write_bytes(b"older")
    assert app.run([*command.split(), "--out", file.name, "--force"]) == 0
    assert file.read_bytes() == content


def test_json_in_a_file_is_what_json_prints(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(["list", "protocols", "--out", "x.json"]) == 0
    capsys.readouterr()
    assert app.run(["list", "protocols", "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "x.json").read_text(encoding="utf-8")
    assert app.run(["list", "protocols", "--out", "-"]) == 0
    printed = capsys.readouterr().out
    assert app.run(["list", "protocols"]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("list tasks --force", "--force replaces the file that --out names: name one"),
        ("report --force", "--force replaces the file that --out names: name one"),
        ("list tasks --json --out x.csv", "--json: prints JSON: leave it out, or --out x.csv"),
        ("list --out x.csv", "--out: say which list"),
        ("list tasks --out none/x.csv", "there is no folder none"),
        ("compare --out x.doc", "its name does not say the format"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(arguments.split()) == 1
    told = capsys.readouterr()
    assert told.out == "" and said in told.err and told.err.count("\n") == 1
    assert not any(tmp_path.iterdir())


TRAIN = "train --task parity --model bilinear --hidden 2 --steps 2 --seeds 2 --validation-words 20"
EVALUATED = "eval run --length 12,20 --samples 20 --all --out"
SWEPT = (
    "sweep --model bilinear --task parity --set hidden=2 --steps 2 --samples 20 --jobs 1 --out s"
)


def test_what_is_evaluated_compared_and_swept_is_written_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run([*TRAIN.split(), "--out", "run"]) == 0
    for ending in ("md", "tex", "csv", "parquet", "json", "html", "txt"):
        assert app.run([*EVALUATED.split(), f"scores.{ending}", "--force"]) == 0
        assert app.run(["compare", "run", "--out", f"compared.{ending}"]) == 0
    rows = [*csv.DictReader(io.StringIO(Path("scores.csv").read_text(encoding="utf-8")))]
    assert [row["length"] for row in rows] == ["12", "20", "12", "20"]
    assert [*pq.read_table("scores.parquet").column("length").to_pylist()] == [12, 20, 12, 20]
    assert json.loads(Path("scores.json").read_text(encoding="utf-8"))["run"] == "run"
    assert "| length | seed | lr |" in Path("scores.md").read_text(encoding="utf-8")
    (compared,) = [*csv.DictReader(io.StringIO(Path("compared.csv").read_text(encoding="utf-8")))]
    assert compared["run"] == "run" and compared["length"] == "20"
    capsys.readouterr()
    assert (
        app.run([*SWEPT.split(), "--out", "t.md", "--out", "t.csv", "--stress-seconds", "0"]) == 0
    )
    assert "table: t.md\ntable: t.csv\n" in capsys.readouterr().out
    assert "bilinear" in Path("t.md").read_text(encoding="utf-8") and Path("s").is_dir()
    assert app.run([*SWEPT.split(), "--out", "t.md"]) == 1
    assert "t.md: is there already" in capsys.readouterr().err
    assert app.run([*SWEPT.split(), "--out", "other"]) == 1
    assert "runs are kept in one folder" in capsys.readouterr().err


def test_an_atlas_is_written_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert app.run(["gen", "parity", "--format", "dot", "--out", "parity.dot"]) == 0
    asked = ["atlas", "parity.dot", "--models", "lstm", "--out"]
    for ending in ("md", "tex", "csv", "parquet", "json", "html", "txt"):
        assert app.run([*asked, f"atlas.{ending}"]) == 0
        assert (tmp_path / "atlas").is_dir()
    (row,) = [*csv.DictReader(io.StringIO(Path("atlas.csv").read_text(encoding="utf-8")))]
    assert row["machine"] == "parity" and row["lstm"] == "yes"
