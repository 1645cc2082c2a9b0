"""The voting page: people listen and vote in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import soundfile
from arena_page import SECONDS, Site, form, is_louder, listen, serving, visiting, wait_for_keys
from browser import NARROW
from playwright.sync_api import Browser, Page, expect

from s2s_tasks.arena.features import loudness
from s2s_tasks.arena.page.sounds import PADDING
from s2s_tasks.arena.records import CRITERIA


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Six battles and annotators, who all are to judge one that nobody else does."""
    with serving(tmp_path_factory.mktemp("crowd"), list("abcdef"), 6) as site:
        yield site


def test_a_whole_annotation_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    keys = ["abtn", "bbbb", "aaaa"]
    by_key = {"a": "first", "b": "second", "t": "tie", "n": "both_bad"}
    heard = []
    with serving(tmp_path, ["anna"]) as site, visiting(browser, site, "anna") as page:
        for number, choices in enumerate(keys, 1):
            expect(page).to_have_title(f"Battle {number} of 3")
            assert page.locator("progress").get_attribute("value") == str(number - 1)
            text = page.locator("blockquote").text_content()
            (instruction,) = (one for one in site.world.instructions if one.text == text)
            heard.append((instruction, page.locator("#first").get_attribute("src")))
            listen(page, "1", "2", "3")
            page.keyboard.type(choices)
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading")).to_have_text("Thank you, anna")
        assert "3 of 3" in page.locator("main").inner_text()
        found = site.votes()
        for judgement, choices, (instruction, source) in zip(found, keys, heard, strict=True):
            assert judgement.judge == "anna"
            assert judgement.battle.instruction == instruction.id
            chosen = dict(zip(CRITERIA, map(by_key.__getitem__, choices), strict=True))
            assert judgement.winners == chosen
            seconds = json.loads(judgement.reply)["heard"]
            longest = 1.1 * (SECONDS + PADDING)
            assert all(0.9 * SECONDS <= seconds[role] <= longest for role in seconds)
            # What was played as A is what the log calls first.
            played, rate = soundfile.read(BytesIO(site.ask(source or "")[2]), dtype="float32")
            answer = site.world.answers[judgement.battle.first][instruction.id].audio
            assert answer is not None
            sound = answer.load(rate)
            assert is_louder(played, sound)
            assert not played[len(sound) :].any()


def test_answers_are_equally_loud(crowd: Site, browser: Browser) -> None:
    def level(page: Page, player: str) -> float:
        source = page.locator(player).get_attribute("src")
        played, rate = soundfile.read(BytesIO(crowd.ask(source or "")[2]), dtype="float32")
        return loudness(np.trim_zeros(played), rate)

    stored = {
        round(loudness(answer.audio.load(answer.audio.sampling_rate), answer.audio.sampling_rate))
        for given in crowd.world.answers.values()
        for answer in given.values()
        if answer.audio
    }
    assert len(stored) > 1
    for name in "ab":
        with visiting(browser, crowd, name) as page:
            assert level(page, "#first") == pytest.approx(level(page, "#second"), abs=0.2)


def test_nothing_is_sent_before_both_answers_were_heard(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "a") as page:
        button, hint = page.get_by_role("button", name="Save"), page.locator("#hint")
        assert button.get_attribute("aria-disabled") == "true"
        page.keyboard.type("aaaa")
        page.keyboard.press("Enter")
        expect(page.locator("#live")).to_contain_text("answer A and answer B")
        listen(page, "3")
        expect(hint).to_contain_text("Listen to answer A to the end first")
        page.keyboard.press("Enter")
        assert crowd.store.progress("a").done == 0
        listen(page, "2")
        expect(hint).to_have_text("Both answers heard: you can vote.")
        assert button.get_attribute("aria-disabled") == "false"
        assert page.locator(".card.heard").count() == 2
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading")).to_contain_text("Thank you")
    assert crowd.store.progress("a").voted == 1


def test_a_battle_is_skipped_with_a_reason_by_keyboard(crowd: Site, browser: Browser) -> None:
    before = len(crowd.votes())
    with visiting(browser, crowd, "b") as page:
        page.keyboard.press("s")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        page.keyboard.type("too quiet, 1 2 3 s")  # no key but letters here
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("skipped 1")
    assert len(crowd.votes()) == before
    assert crowd.store.progress("b").skipped == 1


def test_letters_can_be_switched_off(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "c") as page:
        page.get_by_label("Keys of one letter or digit are on").uncheck()
        page.reload()
        page.keyboard.type("as")
        assert page.locator(":checked").count() == 0
        assert not page.locator("#skip form").is_visible()


def test_two_players_do_not_play_at_once_and_can_be_sought(crowd: Site, browser: Browser) -> None:
    with visiting(browser, crowd, "c") as page:
        page.evaluate("document.querySelectorAll('audio').forEach(one => one.loop = true)")
        for key in "12":
            page.keyboard.press(key)
            page.wait_for_function(
                "index => document.querySelectorAll('audio')[index].currentTime > 0.05",
                arg="12".index(key),
            )
        paused = page.locator("audio").evaluate_all("all => all.map(one => one.paused)")
        assert paused == [True, False, True]
        page.keyboard.press("2")
        place = page.locator("#first").evaluate(
            "one => new Promise(done => { one.onseeked = () => done(one.currentTime);"
            " one.currentTime = 0.2; })"
        )
        assert place == pytest.approx(0.2, abs=0.01)


def test_without_script_a_finger_can_vote(crowd: Site, browser: Browser) -> None:
    phone = {"viewport": {"width": NARROW, "height": 667}, "has_touch": True}
    with visiting(browser, crowd, "d", java_script_enabled=False, **phone) as page:
        for criterion in CRITERIA:
            page.locator(f"[name={criterion}][value=second]").tap()
        page.get_by_role("button", name="Save").tap()
        expect(page.get_by_role("heading")).to_contain_text("Thank you")
    (vote,) = (one for one in crowd.votes() if one.judge == "d")
    assert set(vote.winners.values()) == {"second"}
    assert json.loads(vote.reply)["heard"]["first"] is None  # nobody can know


def test_two_browsers_and_two_tabs_at_once(browser: Browser, tmp_path: Path) -> None:
    with (
        serving(tmp_path, ["anna", "ben"], 2, share=1.0) as site,
        visiting(browser, site, "anna") as anna,
        visiting(browser, site, "ben") as ben,
    ):
        tab = anna.context.new_page()
        tab.goto(site.root + site.links["anna"])
        assert tab.locator("#first").get_attribute("src") == anna.locator("#first").get_attribute(
            "src"
        )
        for page, choice in ((anna, "a"), (ben, "b"), (tab, "b")):
            listen(page, "2", "3")
            page.keyboard.type(choice * 4)
        for page in (anna, ben, tab):
            page.keyboard.press("Enter")
            expect(page).to_have_title("Battle 2 of 2")
        expect(tab.locator(".notice")).to_contain_text("What was saved there stands")
        assert [(one.judge, one.winners["overall"]) for one in site.votes()] == [
            ("anna", "first"),
            ("ben", "second"),
        ]


def test_the_last_vote_is_changed_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 2) as site, visiting(browser, site, "anna") as page:
        wait_for_keys(page)
        page.keyboard.press("p")  # there is nothing to go back to
        listen(page, "2", "3")
        page.keyboard.type("aatn")
        page.keyboard.press("Enter")
        expect(page).to_have_title("Battle 2 of 2")
        (before,) = site.votes()

        wait_for_keys(page)
        page.keyboard.press("p")
        expect(page).to_have_title("Battle 1 of 2, again")
        chosen = page.locator("#vote :checked").evaluate_all("all => all.map(one => one.value)")
        assert chosen == ["first", "first", "tie", "both_bad"]
        # Who has listened need not do so again.
        expect(page.get_by_role("button", name="Save")).to_have_attribute("aria-disabled", "false")
        page.keyboard.press("b")
        page.keyboard.press("Enter")
        expect(page).to_have_title("Battle 2 of 2")
        expect(page.locator(".notice")).to_have_text("Your last battle is saved anew.")
        (after,) = site.votes()
        assert after.winners == {**before.winners, "instruction": "second"}
        assert json.loads(after.reply)["heard"] == json.loads(before.reply)["heard"]
        assert (after.battle, after.answers) == (before.battle, before.answers)

        wait_for_keys(page)
        page.keyboard.press("p")
        expect(page).to_have_title("Battle 1 of 2, again")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")  # leave it as it is
        expect(page).to_have_title("Battle 2 of 2")
        assert site.votes() == [after]

        wait_for_keys(page)
        page.keyboard.press("s")
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Thank you, anna")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page).to_have_title("Battle 2 of 2, again")
        assert page.locator("#skip :checked").get_attribute("value") == "no_sound"
        listen(page, "2", "3")  # whoever skipped has not listened
        page.keyboard.type("bbbb")
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_contain_text("you voted on 2 of 2 battles.")


def test_what_was_not_shown_is_not_replaced(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 2) as site:
        link = site.links["anna"]
        back = link.replace("vote", "back")
        assert site.ask(back)[1]["location"] == link
        first = form(site, link)
        assert site.ask(link, first)[1]["location"] == link
        again = form(site, back, overall="second")
        for sent, told in ((first, "twice"), (again, "changed"), (again, "twice")):
            assert site.ask(link, sent)[1]["location"] == f"{link}?notice={told}"
        (vote,) = site.votes()
        assert vote.winners["overall"] == "second"
        # Another tab has gone on meanwhile: what it shows is still its own.
        earlier = form(site, back, overall="tie")
        site.ask(link, form(site, link))
        assert site.ask(link, earlier)[1]["location"] == f"{link}?notice=changed"
        assert sorted(one.winners["overall"] for one in site.votes()) == ["first", "tie"]
        assert site.store.progress("anna").voted == 2


def test_strictly_one_answer_wins(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 1, ties=False) as site:
        with visiting(browser, site, "anna") as page:
            assert page.locator("[data-criterion]").first.get_by_role("radio").count() == 2
            page.keyboard.type("tn")
            assert page.locator(":checked[type=radio]").count() == 0
            assert "Both bad" not in page.locator("main").inner_text()
        link = site.links["anna"]
        status, _, body = site.ask(link, form(site, link, overall="tie"))
        assert status == 422 and b"has to win" in body
        assert site.ask(link, form(site, link))[0] == 303


def test_the_leaderboard_has_a_link_of_its_own(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"]) as site:
        link = site.links["anna"]
        board = site.links["the leaderboard"]
        assert b"battles that are open: 3." in site.ask(board)[2]
        site.ask(link, form(site, link))
        (vote,) = site.votes()
        with visiting(browser, site, "the leaderboard") as page:
            assert page.locator("#votes-systems tbody th").all_text_contents() == [
                vote.battle.first,
                vote.battle.second,
            ]
            page.locator("#votes-systems thead button").first.click()  # its script may run
            assert page.locator("#votes-annotators tbody tr").inner_text().split("\t") == [
                "anna",
                "3",
                "1",
                "0",
            ]
        # A vote that is changed is counted anew.
        site.ask(link, form(site, link.replace("vote", "back"), overall="tie"))
        site.ask(board)
        assert (
            b"\n" + vote.battle.first.encode() + b",1,0,0,1,"
            in site.ask(f"{board}votes-systems.csv")[2]
        )
        status, headers, body = site.ask(f"{board}votes-systems.csv")
        assert status == 200 and vote.battle.first.encode() in body
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert site.ask(board.rstrip("/"))[0] == 307
