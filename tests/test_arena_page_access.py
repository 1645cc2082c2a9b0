"""The voting page: everyone can read, reach and hear what it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from arena_page import Site, form, listen, serving, visiting, wait_for_keys
from browser import NARROW, WIDE
from playwright.sync_api import Browser, expect

from s2s_tasks.arena.records import CRITERIA


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Six battles and annotators, who all are to judge one that nobody else does."""
    with serving(tmp_path_factory.mktemp("crowd"), list("abcdef"), 6) as site:
        yield site


CONTRAST = """() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const colour = channels(getComputedStyle(node).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
  };
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (words.nextNode()) {
    const node = words.currentNode.parentElement;
    if (!words.currentNode.textContent.trim() || !node.checkVisibility()) continue;
    const [one, other] = [channels(getComputedStyle(node).color), behind(node)].map(light);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([ratio, words.currentNode.textContent.trim()]);
  }
  return found;
}"""


TARGETS = """() => [...document.querySelectorAll(
  'button, summary, audio, .move, .choices label, .reasons label, .switch label, #note'
)].map(one => one.getBoundingClientRect()).map(({ width, height }) => [width, height])"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_everyone_can_read_and_reach_it(
    crowd: Site, browser: Browser, width: int, scheme: str
) -> None:
    view = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with visiting(browser, crowd, "f", **view) as page:
        page.keyboard.press("a")
        page.locator("#skip summary").click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        contrasts = page.evaluate(CONTRAST)
        assert len(contrasts) > 40
        assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []
        sizes = page.evaluate(TARGETS)
        assert len(sizes) == 29
        assert [size for size in sizes if min(size) < 44] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_so_they_can_when_they_go_back_and_at_the_end(
    crowd: Site, browser: Browser, width: int, scheme: str
) -> None:
    view = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    link = crowd.links["a"]
    if b"Thank you" not in crowd.ask(link)[2]:
        crowd.ask(link.replace("vote", "skip"), form(crowd, link, reason="other"))
    with visiting(browser, crowd, "a", **view) as page:
        for texts, targets in ((3, 1), (40, 30)):
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            contrasts = page.evaluate(CONTRAST)
            assert len(contrasts) >= texts
            assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []
            sizes = page.evaluate(TARGETS)
            assert len(sizes) == targets
            assert [size for size in sizes if min(size) < 44] == []
            page.goto(crowd.root + link.replace("vote", "back"))


def test_keys_are_shown_where_they_vote(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "f") as page:
        shown = page.locator("kbd.key:visible")
        expect(shown).to_have_text(["a", "b", "t", "n"])
        page.locator("[name=quality]").first.focus()
        assert page.locator(".current kbd.key:visible").count() == shown.count() == 4
        page.get_by_label("Keys of one letter or digit are on").uncheck()
        assert shown.count() == 0
    with visiting(browser, crowd, "f", has_touch=True, is_mobile=True) as page:
        wait_for_keys(page)
        assert page.locator("kbd.key:visible, .state kbd:visible").count() == 0


def test_a_screen_reader_is_told_everything(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "f") as page:
        assert page.locator("html[lang=en]").count() == 1
        assert page.get_by_role("main").count() == 1
        assert page.get_by_role("heading", level=1).count() == 1
        assert page.get_by_role("progressbar", name="Battles done").count() == 1
        for name in ("Instruction", "Answer A", "Answer B"):
            assert page.locator(f"audio[aria-label='{name}']").count() == 1
            assert page.get_by_role("region", name=name, exact=True).count() == 1
        groups = page.locator("#vote").get_by_role("group")
        assert groups.count() == 4
        for group in groups.all():
            for name in ("A is better", "B is better", "Tie", "Both bad"):
                assert group.get_by_role("radio", name=name, exact=True).count() == 1
        page.locator("#skip summary").click()
        assert page.get_by_role("group", name="Why?").get_by_role("radio").count() == 5
        assert page.get_by_role("textbox", name="Anything to add?").count() == 1
        assert page.locator("[role=status][aria-live=polite]").count() == 1
        assert page.get_by_role("button", name="Save and go on").get_attribute(
            "aria-describedby"
        ) == page.locator("#hint").get_attribute("id")
        ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
        assert len(set(ids)) == len(ids)
        (instruction,) = (
            one
            for one in crowd.world.instructions
            if one.text == page.locator("blockquote").text_content()
        )
        assert page.locator("blockquote").get_attribute("lang") == instruction.language
        unlabelled = page.locator("input:not([type=hidden])").evaluate_all(
            "all => all.filter(one => !one.labels.length).length"
        )
        assert unlabelled == 0


def test_focus_goes_down_the_page(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "f") as page:
        seen: list[str] = []
        while "INPUT shortcuts" not in seen and len(seen) < 30:
            page.keyboard.press("Tab")
            name: str = page.evaluate(
                "(one => [one.tagName, one.name || one.id].join(' '))(document.activeElement)"
            )
            if seen[-1:] != [name]:  # a player has several places to stop at
                seen.append(name)
        assert [name.strip() for name in seen] == [
            *(f"AUDIO {role}" for role in ("instruction", "first", "second")),
            *(f"INPUT {criterion}" for criterion in CRITERIA),
            "BUTTON",
            "SUMMARY",
            "INPUT shortcuts",
        ]
        page.keyboard.press("1")
        page.locator("[name=quality]").first.focus()
        assert page.locator(".current legend").text_content().startswith("Sound")  # type: ignore[union-attr]
        page.keyboard.press("b")
        assert page.locator("[name=quality]:checked").get_attribute("value") == "second"
        assert page.locator(":focus").get_attribute("name") == "overall"


def test_after_each_vote_it_says_how_far_one_is(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 2) as site, visiting(browser, site, "anna") as page:
        live = page.get_by_role("status")
        expect(live).to_have_text("Battle 1 of 2; 0 done.")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        listen(page, "2", "3")
        page.keyboard.type("aaaa")
        page.keyboard.press("Enter")
        expect(live).to_have_text("Battle 2 of 2; 1 done.")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        assert page.evaluate("scrollY") == 0
        page.keyboard.press("p")
        expect(live).to_contain_text("Battle 1 of 2, again; 1 done. You voted on this battle last.")
        page.keyboard.press("Enter")
        expect(live).to_contain_text("Battle 2 of 2; 1 done. Your last battle is saved anew.")
        listen(page, "2", "3")
        page.keyboard.type("bbbb")
        page.keyboard.press("Enter")
        heading = page.get_by_role("heading", name="Thank you, anna")
        expect(heading).to_be_focused()
        expect(heading).to_have_accessible_description(re.compile("you voted on 2 of 2 battles"))
