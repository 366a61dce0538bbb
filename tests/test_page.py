"""The page of a report: what stands in it, and what a browser makes of it."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from statetrack.algebra import Need, Prediction
from statetrack.evidence import Failure
from statetrack.report import Entry, Report, page
from statetrack.report.formats.csv import csv_text
from statetrack.report.html.panels import Axis, combined_panels, panel_of
from statetrack.report.html.places import Place, records_of
from statetrack.report.plain_values import long_form
from statetrack.runs import Comparison
from statetrack.sweep import Compared
from tests.setups import certificate_of, entry_of, outcome_of, row_of, worst_case_of

HARMLESS = "<script>alert(1)</script> & \"quoted\" 'too' {{ 7 * 7 }} </style>"
"""A name that is text, whatever it looks like."""


def predicted(can: Any, *needs: Need) -> Prediction:
    return Prediction(can, "an abelian group", "Some authors 2025, arXiv:2505.21749", needs=needs)


CAN = predicted("yes", Need("hidden", 2, 2, smallest=True))
CANNOT = predicted("no")
TOO_SMALL = predicted("yes", Need("block_size", 2, 1, smallest=True))
OPEN = predicted("yes", Need("rank", 60, 6))


def compared(verdict: Any, published: float = 1.0, **changed: Any) -> Compared:
    given: dict[str, Any] = {
        "row": "bilinear",
        "rows": ("bilinear",),
        "column": "parity",
        "source": "Table 1",
        "reference": "Some authors 2025, arXiv:2505.21749",
        "trust": "primary",
        "measure": "accuracy",
        "of": "selected",
        "lengths": (500,),
        "published": published,
        "measured": 1.0,
        "verdict": verdict,
        "why": "" if verdict == "agrees" else "the steps differ",
    }
    return Compared(**given | changed)


def judged_as(outcome: Any, reason: str = "for a reason") -> Comparison:
    return Comparison(Path("run"), outcome, reason=reason)


LENGTHS = (10, 50, 500, 5000)


def scores(*accuracies: float, lengths: tuple[int, ...] = LENGTHS) -> tuple[Any, ...]:
    """The rows of replicas that reach each of some accuracies at the longest length."""
    return tuple(
        row_of(
            length,
            1.0 if length == 10 else round(accuracy, 2),
            replica=replica,
            seed=replica,
            sequences=1000,
        )
        for replica, accuracy in enumerate(accuracies)
        for length in lengths
    )


def report_of(*entries: Entry, **changed: Any) -> Report:
    given: dict[str, Any] = {
        "title": "Parity and others",
        "entries": entries,
        "row_names": tuple(dict.fromkeys(each.row for each in entries if each.row)),
        "column_names": tuple(dict.fromkeys(each.column for each in entries if each.column)),
        "length": 500,
        "suite": "parity-and-others",
        "budget": "minutes",
        "reference": "Some authors 2025, arXiv:2505.21749",
        "departures": "fewer steps than in the paper",
        "differences": "steps 9 for 10",
        "training": "trained with: adam",
        "command": "statetrack reproduce parity-and-others",
    }
    return Report(**given | changed)


FAILURE = Failure((0, 1), (1,), 1702, 1, 0)

ENTRIES = (
    entry_of(
        "bilinear",
        "parity",
        rows=scores(1.0, 1.0, 0.4),
        prediction=CAN,
        compared=(compared("agrees"), compared("not comparable", 0.87, trust="second-hand")),
        evidence=(certificate_of(408), worst_case_of(FAILURE)),
        searched={"worst-case": 5.0},
        symbols=("zero", "one"),
        labels=("even", "odd"),
    ),
    entry_of(
        "diagonal",
        "parity",
        rows=scores(0.6, 0.3),
        prediction=CANNOT,
        dimensions=1,
        compared=(compared("differs", 0.11, measured=0.6),),
    ),
    entry_of("blocks", "parity", rows=scores(1.0), prediction=TOO_SMALL, seconds=3.0, words=320),
    entry_of(
        "bilinear",
        "m=5",
        rows=scores(0.31),
        prediction=CAN,
        judged=judged_as("predicted yes, not reached"),
    ),
    entry_of("diagonal", "m=5", state="failed", error="RunError: the disk is full", rows=()),
    entry_of("blocks", "m=5", rows=scores(0.9), prediction=OPEN),
    entry_of("bilinear", HARMLESS, state="unfinished", prediction=CAN),
    entry_of("diagonal", HARMLESS, state="waiting", notes=("trained, and not measured yet",)),
    entry_of("blocks", HARMLESS, outcomes=(outcome_of(0, best_step=0),), prediction=OPEN),
    entry_of(HARMLESS, HARMLESS, model=HARMLESS, command=HARMLESS, rows=scores(1.0)),
)
REPORT = report_of(*ENTRIES)


def place(entry: Entry, **changed: Any) -> Place:
    return Place(report_of(entry, **changed), entry, 1)


class _Elements(HTMLParser):
    """The elements of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def text() -> str:
    return page(REPORT)


# --- what is said of an entry ---


@pytest.mark.parametrize(
    ("prediction", "kind", "said"),
    [
        (CAN, "can", "can: hidden ≥ 2"),
        (predicted("yes", Need("rank", 3, 8)), "can", "can: rank 3 is enough"),
        (predicted("yes"), "can", "can"),
        (CANNOT, "cannot", "cannot"),
        (TOO_SMALL, "size", "too small: block_size 1 < 2"),
        (OPEN, "open", "not decided: rank 6 (60 is enough)"),
        (predicted("unknown"), "open", "not decided"),
        (None, "none", "no prediction"),
    ],
)
def test_a_prediction_is_told_in_one_of_five_ways(
    prediction: Prediction | None, kind: str, said: str
) -> None:
    shown = place(entry_of(prediction=prediction))
    assert (shown.expected, shown.expected_text) == (kind, said)


@pytest.mark.parametrize(
    ("outcome", "said", "framed", "stands_out"),
    [
        ("agree", "agrees", False, False),
        ("predicted yes, not reached", "not reached", False, True),
        ("predicted no, tracks", "DISAGREES", True, True),
        ("contradiction", "CONTRADICTION", True, True),
        ("tests nothing", "tests nothing", False, True),
        ("nothing predicted", "nothing predicted", False, False),
    ],
)
def test_a_place_says_what_compare_says(
    outcome: Any, said: str, framed: bool, stands_out: bool
) -> None:
    entry = entry_of(rows=scores(1.0), judged=judged_as(outcome, "because of something"))
    shown = place(entry)
    assert (shown.verdict, shown.disagrees, shown.stands_out) == (said, framed, stands_out)
    text = page(shown.report)
    assert f"<strong>{said}</strong>: because of something." in text
    assert ('class="none marked"' in text) == framed


def test_replicas_that_were_not_tested_are_not_counted_as_wrong() -> None:
    outcomes = tuple(outcome_of(replica) for replica in range(9))
    entry = entry_of(rows=scores(1.0), outcomes=outcomes)
    assert place(entry).right_text == "1/1 tested"
    assert place(entry_of(rows=scores(1.0, 0.4, 0.5))).right_text == "1/3"


@pytest.mark.parametrize(
    ("measure", "said"),
    [
        ("accuracy", "0.60"),
        ("scaled", "0.46"),
        ("prefix", "0.60"),
        ("success", "0.50"),
        ("horizon", "10"),
        ("worst", "9"),
    ],
)
def test_the_number_is_what_the_table_shows(measure: str, said: str) -> None:
    entry = entry_of(
        rows=scores(0.6, 1.0), evidence=(worst_case_of(replace(FAILURE, position=10)),)
    )
    assert place(entry, measure=measure).measured == said


@pytest.mark.parametrize(
    ("accuracy", "of_shortcut", "said"),
    [(1.0, 0.996, "last-5"), (1.0, 0.9, ""), (0.6, 0.7, "last-5"), (0.31, 0.9, "")],
)
def test_an_accuracy_that_a_shortcut_reaches_too_is_marked(
    accuracy: float, of_shortcut: float, said: str
) -> None:
    row = row_of(500, accuracy, sequences=500, shortcut="last-5", shortcut_accuracy=of_shortcut)
    shown = place(entry_of(rows=(row,)))
    assert shown.shortcut == said
    assert ("a shortcut too: last-5" in page(shown.report)) == bool(said)


def test_the_best_constant_answer_has_one_name_and_one_number() -> None:
    row = row_of(500, 0.6, sequences=500, shortcut="constant", shortcut_accuracy=0.57)
    shown = place(entry_of(rows=(row,)))
    text = page(shown.report)
    assert shown.shortcut == "" and "0.570" not in text.split("row-data")[0]
    assert "floor (the best constant answer)" in text


def test_a_replica_that_diverged_is_listed_without_accuracies() -> None:
    outcomes = (outcome_of(0), outcome_of(1, seed=1, best_step=0))
    lines = place(entry_of(rows=scores(1.0), outcomes=outcomes)).replicas
    assert [(line.seed, line.said, line.accuracies[0]) for line in lines] == [
        (0, "selected", "1.00"),
        (1, "diverged", ""),
    ]


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ((), ""),
        ((worst_case_of(),), "≥ 900"),
        ((worst_case_of(FAILURE),), "1,701"),
        ((certificate_of(None), worst_case_of()), "all lengths, proven"),
    ],
)
def test_the_worst_case_says_whether_a_word_is_known_to_fail(
    evidence: tuple[Any, ...], said: str
) -> None:
    entry = entry_of(rows=(row_of(500, replica=0),), evidence=evidence)
    assert place(entry).worst_case == said


def test_only_what_is_right_on_every_test_word_holds_a_record() -> None:
    entries = [
        entry_of("a", rows=scores(1.0, 0.3), dimensions=9, words=50, seconds=2.0),
        entry_of("b", rows=scores(1.0), dimensions=4, words=50, seconds=8.0),
        entry_of("c", rows=scores(0.99), dimensions=1, words=1, seconds=0.1),
    ]
    report = report_of(*entries)
    found = records_of("parity", [Place(report, each, n) for n, each in enumerate(entries)])
    assert found.right == 2
    assert found.dimensions is not None and found.words is not None and found.seconds is not None
    assert (found.dimensions.value, found.dimensions.places[0].entry.row) == ("4", "b")
    assert (found.seconds.value, found.seconds.places[0].entry.row) == ("2.0 s", "a")
    assert [each.entry.row for each in found.words.places] == ["a", "b"]


def test_panels_share_one_logarithmic_axis() -> None:
    axis = Axis.of(ENTRIES)
    steps = [axis.at(length) for length in (5, 50, 500, 5000)]
    assert steps[1] - steps[0] == pytest.approx(steps[2] - steps[1], abs=0.2)
    assert [text for _, text in axis.ticks()] == ["10", "100", "1k"]
    drawn = panel_of(ENTRIES[0], axis)
    assert drawn is not None and drawn.last == "1.00" and len(drawn.lines) == 2
    assert drawn.shaded_to == axis.at(10)
    assert panel_of(ENTRIES[4], axis) is None
    alone = Axis.of([entry_of(rows=(row_of(500),), trained_to=None)])
    assert alone.at(250) < alone.at(500) < alone.at(1000)


def test_selected_replicas_on_a_task_stand_together_and_differ_in_more_than_colour() -> None:
    runs = [
        entry_of(f"model-{n}", run=Path(f"runs/{n}"), rows=(row_of(20), row_of(80, n / 10)))
        for n in range(10)
    ]
    axis = Axis.of(runs)
    first, second = combined_panels(runs, axis)
    assert [len(first.lines), len(second.lines)] == [8, 2]
    assert [each.kind for each in first.lines] == list(range(8))
    signs = [each.sign for each in first.lines]
    assert all(one != other for one, other in itertools.pairwise(signs))
    assert first.lines[3].marks[1][2] == "model-3: 0.30 at 80" and "model-7" in first.sentence
    assert combined_panels(runs[:1], axis) == []
    assert combined_panels([entry_of(rows=(row_of(20),)) for _ in range(3)], axis) == []
    text = page(report_of(*runs[:3]))
    assert text.count('<figure class="together">') == 1
    assert all(f'<g class="kind k{n}">' in text for n in range(3))
    assert text.count('text-anchor="middle">length</text>') == 1 + 3


# --- the file ---


def test_the_same_report_gives_the_same_page_and_loads_nothing(text: str) -> None:
    assert text == page(REPORT)
    elements = _Elements(text)
    (policy,) = (
        each["content"]
        for each in elements.named("meta")
        if each.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and policy.startswith("default-src 'none'; ")
    assert not [name for name in ("img", "iframe", "object", "audio") if elements.named(name)]
    assert not [each for each in elements.named("script") if "src" in each]
    assert [each["href"] for each in elements.named("link")] == ["data:,"]
    outside = {
        each["href"] for each in elements.named("a") if not str(each["href"]).startswith("#")
    }
    assert outside == {"https://arxiv.org/abs/2505.21749"}
    assert not re.search(r"url\(|@import", text)


def test_names_are_text_wherever_they_stand(text: str) -> None:
    elements = _Elements(text)
    assert HARMLESS in elements.text  # escaped by the page, read back by the parser
    assert elements.text.count("{{ 7 * 7 }}") > 4
    assert "<script>alert" not in text and "</style> " not in text
    assert len(elements.named("script")) == 2 and len(elements.named("style")) == 1
    (data,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.S)
    assert HARMLESS in json.loads(data)["entries"][-1]
    assert "\x1b" not in page(report_of(entry_of("a\x1b[31m\u202e", rows=scores(1.0))))


def test_every_link_leads_to_a_drawer_and_ids_are_unique(text: str) -> None:
    elements = _Elements(text)
    ids = [each["id"] for _, each in elements.elements if "id" in each]
    assert len(ids) == len(set(ids))
    inside = {str(each["href"])[1:] for each in elements.named("a") if "#" in str(each["href"])}
    assert inside <= set(ids) and {f"run-{n}" for n in range(1, 11)} <= inside
    for each in elements.named("th"):
        assert each["scope"] in ("row", "col")


def test_a_page_tells_everything_about_its_runs(text: str) -> None:
    said = " ".join(_Elements(text).text.split())
    for expected in (
        "parity-and-others, budget minutes",
        "fewer steps than in the paper",
        "statetrack reproduce parity-and-others",
        "statetrack train --model bilinear --task parity --hidden 2",
        "0123456789ab",
        "fails: symbol 1,702 of zero one, then one again and again: the answer is even, and odd",
        "steps 9 for 10",
        "failed: RunError: the disk is full",
        "trained, and not measured yet",
        "diverged",
        "published 0.11, measured 0.60",
        "paper 0.87† ∅",
        "† read in a digest of the paper",
    ):
        assert expected in said, expected


def test_a_report_without_results_is_a_page_too() -> None:
    waiting = entry_of(state="waiting", outcomes=(outcome_of(),), steps=0, seconds=0.0)
    unread = entry_of("", "", state="failed", error="is damaged", run=Path("runs/broken"))
    said = " ".join(_Elements(page(report_of(waiting, unread, length=0))).text.split())
    assert "waiting" in said and "runs/broken" in said and "is damaged" in said
    assert "Accuracy by length" not in said
    assert "nothing was tested" in said


# --- in a browser ---

CHROMIUM = shutil.which("chromium")
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"),
    *("--disable-component-update", "--no-first-run"),
)

CONTRASTS = """() => {
  const numbers = (text) => (text.match(/rgba?\\([^)]*\\)/g) || [])
    .map((each) => each.match(/[\\d.]+/g).map(Number))
    .filter((each) => each.length === 3 || each[3] === 1);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ratio = (one, two) => {
    const [low, high] = [light(one), light(two)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const found = [];
  for (const cell of document.querySelectorAll(".matrix td.can, .matrix td.cannot, " +
      ".matrix td.size, .matrix td.open, .matrix td.none, .matrix th")) {
    const style = getComputedStyle(cell);
    const behind = numbers(style.backgroundColor + " " + style.backgroundImage);
    for (const text of [cell, ...cell.querySelectorAll("*")]) {
      const [ink] = numbers(getComputedStyle(text).color);
      for (const ground of behind) found.push(ratio(ink, ground));
    }
  }
  return found;
}"""
"""The contrast of every text in the table to every colour behind it, as WCAG 2 defines it."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, started once, without a window."""
    if CHROMIUM is None:
        pytest.skip("there is no program 'chromium': `apt-get install chromium` installs it")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def file(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as a file."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(text, encoding="utf-8")
    return path


SIZE = {"width": 1280, "height": 720}
"""Of a window, where a test asks for no other."""


class _Opened:
    """What is open in a tab, with what it asked for and what it complained of."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def load(self, file: Path) -> None:
        """Load a file anew, in a window of the usual size."""
        self.page.set_viewport_size(SIZE)
        self.page.emulate_media(media="null", color_scheme="null")
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(file.as_uri())


@pytest.fixture(scope="module")
def tab(browser: Any) -> Iterator[_Opened]:
    """A tab of the browser: to open one takes longer than to load a page."""
    context = browser.new_context(accept_downloads=True)
    yield _Opened(context.new_page())
    context.close()


@pytest.fixture
def opened(tab: _Opened, file: Path) -> _Opened:
    """The page, loaded anew."""
    tab.load(file)
    return tab


def test_a_browser_asks_for_nothing_and_no_width_scrolls_sideways(
    opened: _Opened, file: Path
) -> None:
    page = opened.page
    for width in (390, 768, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.evaluate("scrollTo(500, 0)")
        assert page.evaluate("scrollX") == 0
    assert (opened.requests, opened.complaints) == ([file.as_uri()], [])


def test_on_a_phone_the_table_scrolls_in_its_own_box_and_keeps_its_rows_names(
    opened: _Opened,
) -> None:
    page = opened.page
    page.set_viewport_size({"width": 390, "height": 800})
    box = page.locator(".scroller").first
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    name = page.locator(".matrix tbody th").first
    before = name.bounding_box()["x"]
    cue = page.locator(".scroller + .cue").first
    cue.wait_for(state="visible")
    box.evaluate("box => box.scrollLeft = 100")
    assert name.bounding_box()["x"] == pytest.approx(before, abs=1)
    box.evaluate("box => box.scrollLeft = box.scrollWidth")
    cue.wait_for(state="hidden")


def test_a_cell_opens_its_drawer_by_click_and_by_keyboard(opened: _Opened) -> None:
    page, drawer = opened.page, opened.page.locator("#drawer")
    link = page.locator('.matrix a[data-run="1"]')
    assert not drawer.is_visible()
    link.click()
    assert drawer.locator("h2").inner_text() == "bilinear on parity"
    assert drawer.locator("code").first.inner_text() == ENTRIES[0].command
    page.keyboard.press("Escape")
    assert not drawer.is_visible()
    link.focus()
    page.keyboard.press("Enter")
    assert drawer.is_visible() and "0123456789ab" in drawer.inner_text()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.run") == "1"
    page.locator("summary", has_text="bilinear").first.click()
    assert page.locator("#run-1 code").first.is_visible()  # it is back in its place
    assert opened.complaints == []


def test_without_scripts_a_link_shows_the_same_text(browser: Any, file: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert not page.locator("#run-1 code").first.is_visible()
    page.locator('.matrix a[data-run="1"]').click()
    assert page.locator("#run-1 code").first.inner_text() == ENTRIES[0].command
    assert not page.locator("button.copy").first.is_visible()
    page.close()


def test_the_downloads_are_the_rows_of_the_report(opened: _Opened) -> None:
    page = opened.page

    def number(text: str) -> float | str:
        return float(text) if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) else text

    def saved(kind: str) -> str:
        with page.expect_download() as download:
            page.locator(f"button[data-as={kind}]").click()
        assert download.value.suggested_filename == f"parity-and-others.{kind}"
        return Path(download.value.path()).read_text(encoding="utf-8")

    entries = json.loads(saved("json"))["entries"]
    assert [each["row"] for each in entries] == [each.row for each in ENTRIES]
    for entry, found in zip(ENTRIES, entries, strict=True):
        assert [(r["replica"], r["length"], r["accuracy"]) for r in found["rows"]] == [
            (r.replica, r.length, r.accuracy) for r in entry.rows
        ]
    names, *lines = csv.reader(io.StringIO(saved("csv")))
    columns, *expected = csv.reader(io.StringIO(csv_text(long_form(REPORT.entries))))
    assert names == columns and len(lines) == len(expected)
    for line, wanted in zip(lines, expected, strict=True):
        assert list(map(number, line)) == list(map(number, wanted))


def test_both_schemes_have_contrast(opened: _Opened) -> None:
    page, grounds = opened.page, []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.reload()
        ratios = page.evaluate(CONTRASTS)
        assert len(ratios) > 100 and min(ratios) >= 4.5, scheme
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2


def test_in_print_the_table_and_what_stands_out_are_on_the_paper(opened: _Opened) -> None:
    page = opened.page
    page.emulate_media(media="print")
    assert page.locator(".matrix").is_visible()
    assert page.locator("#run-4 code").first.is_visible()  # not as predicted
    assert not page.locator("#run-6").is_visible()  # as expected
    assert not page.locator("nav").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF-")
