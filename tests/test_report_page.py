"""The page of a report in a real browser."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import NARROW, WIDE
from matplotlib.figure import Figure as Drawing
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from s2s_tasks.data.rows import Row
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.report import drawing
from s2s_tasks.report.document import Clip, Clips, Document, Figure, Section, Table, Theme
from s2s_tasks.report.writing import write


def scatter(theme: Theme) -> Drawing:
    margins = np.random.default_rng(0).normal(size=(2, 500))
    figure, (axes,) = drawing.canvas(theme)
    axes.plot(*margins, **drawing.series(theme, 0).points, rasterized=True, label="a model")
    drawing.legend(figure)
    return figure


def clip(row: Row) -> Clip:
    """Return a real question with made-up margins."""
    true, false = row.endings[row.gold], row.endings[1 - row.gold]
    heard = "<script>alert('heard')</script>"
    where = "a model, sstorycloze"
    audio = row.context_audio[0]
    return Clip(row.id, where, row.context, true, false, 0.25, -0.5, heard, audio)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = pd.DataFrame(
        {
            "model": ["model 10", "model 9", "<script>alert('model')</script>", "模型"],
            "lost": [9.0, -10.5, np.nan, 10.0],
            **{f"condition {number}": [f"as spoken by voice {number}"] * 4 for number in range(8)},
        }
    )
    folded = Table("folded", "More numbers", frame, folded=True)
    loss = Table("loss", "What was lost", frame, {"lost": "{:+.1f} points"}, "<b>Not bold.</b>")
    figure = Figure("margins", "Margins", "A cloud of points.", scatter)
    clips = Clips("clips", "Clips", [clip(row) for row in mini_rows("sstorycloze")[:2]])
    titles = ["Loss", "Why it is lost: a long title that needs several lines", "Clips", "小明😀"]
    sections = [
        Section(f"section-{number}", title, ["Some text."], blocks)
        for number, (title, blocks) in enumerate(
            zip(titles, ([loss, figure], [folded], [clips], []), strict=True)
        )
    ]
    folder = tmp_path_factory.mktemp("report")
    document = Document("A report with a longish title", ["Found."], ["Beware."], sections)
    return write(document, folder)[0]


@pytest.fixture
def page(browser: Browser, report: Path) -> Iterator[Page]:
    """The page on a desk; whatever it complains of, or asks for, fails the test."""
    page = browser.new_page(viewport={"width": WIDE, "height": 900}, color_scheme="light")
    events: list[str] = []

    def said(message: ConsoleMessage) -> None:
        events.append(message.text)

    def asked(request: Request) -> None:
        if not request.url.startswith("data:"):
            events.append(request.url)

    page.on("console", said)
    page.on("pageerror", lambda error: events.append(str(error)))
    page.on("request", asked)
    page.goto(report.as_uri())
    yield page
    page.close()
    assert events == [report.as_uri()]


def first_column(page: Page) -> list[str]:
    return page.locator("#loss tbody th").all_text_contents()


def test_a_table_sorts_by_keyboard(page: Page) -> None:
    written = ["model 10", "model 9", "<script>alert('model')</script>", "模型"]
    assert first_column(page) == written
    heading = page.locator("#loss thead th").nth(1)
    heading.locator("button").focus()
    upwards = ["model 9", "model 10", "模型", "<script>alert('model')</script>"]
    page.keyboard.press("Enter")
    assert first_column(page) == upwards
    assert heading.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert first_column(page) == [*upwards[2::-1], upwards[3]]  # what is missing stays below
    assert heading.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert first_column(page) == written
    assert heading.get_attribute("aria-sort") is None


def test_a_table_sorts_text_by_click(page: Page) -> None:
    page.get_by_role("button", name="model").first.click()
    assert first_column(page)[1:3] == ["model 9", "model 10"]
    page.locator("#loss thead button").nth(1).click()
    assert page.locator("#loss [aria-sort]").count() == 1


def test_a_folded_table_opens(page: Page) -> None:
    table = page.locator("#folded table")
    assert not table.is_visible()
    page.locator("#folded summary").focus()
    page.keyboard.press("Enter")
    assert table.is_visible()


def test_players_play_one_at_a_time(page: Page) -> None:
    for index in (0, 1):
        player = page.locator("audio").nth(index)
        player.focus()
        page.keyboard.press("Space")
        page.wait_for_function(
            "index => document.querySelectorAll('audio')[index].currentTime > 0.2", arg=index
        )
    state = "players => players.map(({ paused, duration }) => [paused, duration])"
    (first, second) = page.locator("audio").evaluate_all(state)
    assert (first[0], second[0]) == (True, False)
    lengths = [row.context_audio[0].seconds for row in mini_rows("sstorycloze")[:2]]
    assert [first[1], second[1]] == pytest.approx(lengths, abs=0.05)


def test_players_cost_nothing_before_they_play(page: Page) -> None:
    # HAVE_NOTHING: no recording is decoded when the page opens.
    assert page.locator("audio").evaluate_all("all => all.map(one => one.readyState)") == [0, 0]


def shown_figure(page: Page) -> str:
    """Return the source of the figure that is shown, once it is."""
    image = page.locator("#margins img")
    image.scroll_into_view_if_needed()
    source: str = image.evaluate("async image => (await image.decode(), image.currentSrc)")
    return source


def background(page: Page) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


def test_a_dark_page_has_dark_figures_and_paper_is_white(page: Page) -> None:
    light = background(page), shown_figure(page)
    page.emulate_media(color_scheme="dark")
    dark = background(page), shown_figure(page)
    assert light[0] == "rgb(255, 255, 255)" and dark[0] == "rgb(20, 23, 27)"
    assert light[1] != dark[1]
    page.emulate_media(color_scheme="dark", media="print")
    assert (background(page), shown_figure(page)) == light


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_nothing_sticks_out_or_overlaps(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.locator("summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#loss .scroll").evaluate("box => box.scrollWidth > box.clientWidth")
    links = page.locator("nav a").evaluate_all(
        "links => links.map(link => link.getBoundingClientRect().toJSON())"
    )
    assert len(links) == 5
    for one, other in itertools.combinations(links, 2):
        apart = one["bottom"] <= other["top"] or one["right"] <= other["left"]
        assert apart, (one, other)
    assert not page.locator("nav a").evaluate_all(
        "links => links.some(link => link.scrollWidth > link.clientWidth)"
    )


def test_figures_keep_their_shape_and_stay_legible(page: Page) -> None:
    page.set_viewport_size({"width": NARROW, "height": 800})
    shown_figure(page)
    box = page.locator("#margins img").bounding_box()
    assert box is not None
    assert box["width"] / box["height"] == pytest.approx(7 / 4, rel=0.01)
    assert box["width"] / 7 >= 70  # CSS pixels an inch: ten points are about ten pixels


def test_the_keyboard_can_skip_to_the_content(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.locator(":focus").bounding_box()["x"] >= 0  # type: ignore[index]
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#Content"
    page.keyboard.press("Tab")
    assert page.locator("main :focus").count() == 1


def test_no_other_script_runs(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    page.evaluate(
        "() => { const script = document.createElement('script');"
        "script.textContent = 'window.ran = true'; document.body.append(script); }"
    )
    assert page.evaluate("window.ran") is None
    page.close()
