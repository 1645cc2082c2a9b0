"""The files of a report, and what all its figures share."""

from __future__ import annotations

import base64
import io
import itertools
import logging
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from matplotlib.figure import Figure as Drawing
from matplotlib.text import Text

from s2s_tasks.audio import Audio, probe
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.errors import S2STasksError
from s2s_tasks.report import drawing, html
from s2s_tasks.report.document import Clip, Clips, Document, Figure, Section, Table, Theme
from s2s_tasks.report.markdown import cells, escaped, markdown
from s2s_tasks.report.writing import write

HOSTILE = "<script>alert(1)</script> \"'&amp; a|b *c* _d_ `e` [f](g) <!-- 小明😀"


def clip(number: int, name: str = "sstorycloze") -> Clip:
    """Return a real question with made-up margins."""
    row = mini_rows(name)[number]
    return Clip(
        question=row.id,
        where=f"a model, {name}",
        context=row.context,
        true_ending=row.endings[row.gold],
        false_ending=row.endings[1 - row.gold],
        margin_t2t=0.25,
        margin_s2t=-0.5,
        transcript="",
        audio=row.context_audio[0],
    )


def draw(theme: Theme) -> Drawing:
    """Use everything that figures share."""
    figure, (left, right) = drawing.canvas(theme, columns=2)
    for number in range(3):
        look = drawing.series(theme, number)
        left.plot([500, 20000], [60, 70 + number], **look.line, label=f"model {number}")
        drawing.fill_band(left, look, [500, 20000], [55, 65], [65, 75])
        right.barh(number, 60 + number, **look.bars)
        right.errorbar(60 + number, number, xerr=4, **look.points)
    drawing.step_axis(left.xaxis)
    drawing.percent_axis(left.yaxis, 40, 100)
    drawing.percent_axis(right.xaxis)
    drawing.chance_line(left, theme)
    drawing.chance_line(right, theme, 25, across="x")
    drawing.legend(figure)
    return figure


FRAME = pd.DataFrame(
    {
        "model": ["a", "小明", None],
        "questions": [80, 120, 3],
        "lost": [-16.24, 2.0, np.nan],
        "sure": [True, False, True],
    }
)
TABLE = Table("loss", "What was lost", FRAME, {"lost": "{:+.1f} points"})


def document(*blocks: Table | Figure | Clips) -> Document:
    return Document("A report", ["Found."], ["Beware."], [Section("one", "One", ["Text."], blocks)])


def hostile() -> Document:
    """Return a document with markup wherever there is text."""
    everywhere = dict.fromkeys(
        ("question", "where", "context", "true_ending", "false_ending", "transcript"), HOSTILE
    )
    frame = pd.DataFrame({HOSTILE: [HOSTILE, "x"], "n": [1, 2]})
    blocks = [
        Table("table", HOSTILE, frame, note=HOSTILE),
        Table("folded", HOSTILE, frame, note=HOSTILE, folded=True),
        Figure("figure", HOSTILE, HOSTILE, draw, HOSTILE),
        Clips("clips", HOSTILE, [replace(clip(0), **everywhere)], HOSTILE),
    ]
    section = Section("section", HOSTILE, [HOSTILE], blocks)
    return Document(HOSTILE, [HOSTILE], [HOSTILE], [section])


# The page


class Page(HTMLParser):
    """The elements and the text of a page; refuses tags that do not match."""

    VOID = ("meta", "img", "source")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)

    def attributes(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name))]


@pytest.fixture(scope="module")
def hostile_page() -> Page:
    return Page(html.page(hostile()))


def test_text_is_shown_and_never_run(hostile_page: Page) -> None:
    assert [tag for tag, _ in hostile_page.elements].count("script") == 1
    shown = Counter(text.strip() for text in hostile_page.text)
    # Title and heading, finding, warning, section in nav and heading, paragraph; table: caption,
    # heading, cell, note, and once more with a summary; figure: caption, note; clip: six texts,
    # title and note.
    assert sum(count for text, count in shown.items() if HOSTILE in text) == 7 + 4 + 5 + 2 + 8
    assert HOSTILE in hostile_page.attributes("alt")


def test_the_page_asks_for_nothing(hostile_page: Page) -> None:
    for name in ("src", "srcset"):
        assert all(value.startswith("data:") for value in hostile_page.attributes(name))
    assert {link for link in hostile_page.attributes("href") if link[0] != "#"} == {
        "table.csv", "folded.csv", "figure.png", "clips.csv",
    }  # fmt: skip
    assert not any(name.startswith("on") for _, found in hostile_page.elements for name in found)


def test_the_page_is_built_for_every_reader(hostile_page: Page) -> None:
    ids = hostile_page.attributes("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in hostile_page.attributes("href") if link[0] == "#"} <= set(ids)
    levels = [int(tag[1]) for tag, _ in hostile_page.elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    by_tag: dict[str, list[dict[str, str | None]]] = {}
    for tag, attributes in hostile_page.elements:
        by_tag.setdefault(tag, []).append(attributes)
    assert by_tag["html"][0]["lang"] == "en"
    assert all(heading["scope"] in ("col", "row") for heading in by_tag["th"])
    assert len(by_tag["caption"]) == len(by_tag["table"]) == 2


def test_a_recording_is_in_the_page() -> None:
    own = clip(0)
    page = Page(html.page(document(Clips("clips", "Clips", [own]))))
    (uri,) = page.attributes("src")
    signal, rate = soundfile.read(io.BytesIO(base64.b64decode(uri.split(",")[1])))
    assert own.audio is not None and rate == html.RATE
    original = own.audio.load(html.RATE)
    assert len(signal) == len(original)
    loudness = [[np.std(part) for part in np.array_split(one, 100)] for one in (signal, original)]
    assert np.corrcoef(loudness)[0, 1] > 0.98


@pytest.fixture
def long(tmp_path: Path) -> Audio:
    path = tmp_path / "long.flac"
    soundfile.write(path, 0.1 * np.sin(np.arange(31 * 8000)), 8000)
    return probe(path)


def test_no_recording_is_cut_silently(long: Audio) -> None:
    page = Page(html.page(document(Clips("clips", "Clips", [replace(clip(0), audio=long)]))))
    assert "Only the first 24 of 31.0 s." in page.text
    (uri,) = page.attributes("src")
    assert soundfile.info(io.BytesIO(base64.b64decode(uri.split(",")[1]))).duration == html.LONGEST


def test_a_lost_recording_loses_its_player_only(
    long: Audio, caplog: pytest.LogCaptureFixture
) -> None:
    Path(long.path).unlink()
    clips = [clip(0), replace(clip(1), audio=long), replace(clip(2), audio=None)]
    with caplog.at_level(logging.WARNING):
        page = Page(html.page(document(Clips("clips", "Clips", clips))))
    assert [tag for tag, _ in page.elements].count("audio") == 1
    assert [text for text in page.text if text.startswith("No player") and long.path in text]
    (warning,) = caplog.messages
    assert long.path in warning


def test_margins_say_which_ending_was_preferred() -> None:
    page = Page(html.page(document(Clips("clips", "Clips", [replace(clip(0), audio=None)]))))
    text = " ".join(" ".join(page.text).split())
    assert "Read: true ending by 0.250" in text
    assert "Heard: false ending by 0.500" in text


# Tables


def test_cells() -> None:
    assert cells(TABLE) == [
        ["a", "80", "−16.2 points", "yes"],
        ["小明", "120", "+2.0 points", "no"],
        ["–", "3", "–", "yes"],
    ]
    assert cells(Table("empty", "Empty", FRAME[:0])) == []
    assert cells(Table("p", "p", pd.DataFrame({"p": [0.1234567, 1e-9, 12000.0]}))) == [
        ["0.123457"], ["1e−09"], ["12000"],
    ]  # fmt: skip


def test_a_table_without_rows_has_its_headings() -> None:
    empty = document(Table("empty", "Empty", FRAME[:0]))
    assert "questions" in Page(html.page(empty)).text
    assert "| model | questions |" in markdown(empty)


# Markdown


def parsed(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def plain(tokens: list[Token]) -> list[str]:
    """Return the text of each paragraph, heading and cell; it must hold no markup."""
    inline = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or ()}
    assert kinds <= {"text", "text_special"}
    return ["".join(child.content for child in token.children or ()) for token in inline]


@given(st.text(st.sampled_from("ab1 _*`~#+-=.)>|<&;[]!\\$(:/\n小😀"), min_size=1))
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    line = " ".join(text.split())
    assert plain(parsed(escaped(text))) == ([line] if line else [])
    assert plain(parsed(f"| a | b |\n|---|---|\n| {escaped(text)} | c |"))[2:] == [line, "c"]


def test_markdown_says_what_the_document_says() -> None:
    text = markdown(document(TABLE, Figure("f", "A figure", "Bars.", draw, "Mean of two.")))
    tokens = parsed(text)
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2"]
    assert "| 小明 | 120 | +2.0 points | no |" in text
    assert "| --- | --: | --: | --- |" in text
    assert "![Bars.](f.png)" in text
    assert "> [!WARNING]\n> - Beware." in text
    assert "Mean of two." in text


def test_markdown_of_a_folded_table_and_clips() -> None:
    text = markdown(document(replace(TABLE, folded=True), Clips("clips", "Clips", [clip(0)])))
    assert text.index("<details>") < text.index("小明") < text.index("</details>")
    assert "| +0.250 | −0.500 |" in text
    assert "transcript" not in text


# Files


def test_files_of_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    blocks = [TABLE, Figure("costs", "Costs", "Bars.", draw), Clips("clips", "Clips", [clip(0)])]
    paths = write(document(*blocks), folder)
    names = ["report.html", "report.md", "loss.csv", "costs.png", "clips.csv"]
    assert paths == [folder / name for name in names]
    assert sorted(folder.glob("[!.]*")) == sorted(paths)
    pd.testing.assert_frame_equal(pd.read_csv(folder / "loss.csv"), FRAME, check_dtype=False)
    assert pd.read_csv(folder / "clips.csv")["context"].tolist() == [clip(0).context]
    assert (folder / "costs.png").read_bytes()[16:24] == b"\0\0\5\x78\0\0\3\x20"  # 1400 x 800


def test_a_report_leaves_nothing_of_an_earlier_one_behind(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("the user's own")
    write(document(TABLE), tmp_path)
    assert (tmp_path / "loss.csv").exists()
    write(document(), tmp_path)
    assert not (tmp_path / "loss.csv").exists() and (tmp_path / "notes.txt").exists()


def test_a_report_replaces_the_one_that_was_there(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    (html_path, markdown_path) = write(document(), tmp_path)
    assert "old" not in html_path.read_text() and markdown_path.exists()


def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(S2STasksError, match=r"report\.md: cannot be written"):
        write(document(), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "report.md"]


@pytest.mark.parametrize("keys", [("same", "same"), ("one", "two"), ("../up", "b"), ("A", "b")])
def test_keys_name_one_file_each(keys: tuple[str, str], tmp_path: Path) -> None:
    blocks = [replace(TABLE, key=key) for key in keys]  # the section is `one`
    with pytest.raises(ValueError, match="key"):
        write(document(*blocks), tmp_path)
    assert not list(tmp_path.iterdir())


# Figures


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2.2."""
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


def linear(colour: str) -> np.ndarray:
    channels = np.array(matplotlib.colors.to_rgb(colour))
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


THEMES: list[Theme] = ["light", "dark"]


@pytest.mark.parametrize("theme", THEMES)
def test_marks_and_text_stand_out(theme: Theme) -> None:
    colours = drawing.COLOURS[theme]
    assert all(contrast(colours.background, colour) >= 3 for colour in colours.series)
    drawn: list[Drawing] = []

    def keep(theme: Theme) -> Drawing:
        drawn.append(draw(theme))
        return drawn[0]

    drawing.render(Figure("f", "f", "f", keep), theme, "svg")
    texts = [text for text in drawn[0].findobj(Text) if text.get_text()]
    assert {"chance\n50 %", "chance 25 %", "model 2", "20k", "40 %"} <= {
        text.get_text() for text in texts
    }
    faint = [text for text in texts if contrast(colours.background, text.get_color()) < 4.5]
    assert not faint


# Severity 1.0, on linear RGB: Machado, Oliveira and Fernandes, IEEE TVCG 15:1291 (2009).
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def lab(rgb: np.ndarray) -> np.ndarray:
    """Return CIE 1976 L*a*b* of linear sRGB."""
    ratio = np.clip(XYZ @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089], 0.0089, None)
    x, y, z = np.cbrt(ratio)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("blindness", BLINDNESS)
def test_series_differ_in_colour_for_everybody(theme: Theme, blindness: str) -> None:
    seen = [
        lab(np.asarray(BLINDNESS[blindness]) @ linear(colour))
        for colour in drawing.COLOURS[theme].series
    ]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 14


@pytest.mark.parametrize("theme", THEMES)
def test_series_differ_without_colour(theme: Theme) -> None:
    looks = [drawing.series(theme, number) for number in range(30)]
    assert len({(look.marker, look.dashes) for look in looks}) == 30
    assert len({(look.colour, look.hatch) for look in looks}) == 30
    assert len({look.hatch for look in looks[:7]}) == 7


@pytest.mark.parametrize("file_format", ["svg", "png"])
def test_a_figure_is_drawn_the_same_wherever(file_format: str) -> None:
    figure = Figure("f", "f", "f", draw)
    first = drawing.render(figure, "dark", file_format)
    with matplotlib.rc_context({"font.size": 30, "lines.markersize": 20, "xtick.direction": "in"}):
        assert drawing.render(figure, "dark", file_format) == first
    assert (first.width, first.height) == (7.0, 4.0)
