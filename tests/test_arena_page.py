"""The voting page: a real browser asks a real server."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pytest
import soundfile
from browser import NARROW, WIDE, launched
from playwright.sync_api import Browser, Page, Response, expect

from s2s_tasks.arena.page import serve
from s2s_tasks.arena.page.app import app
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import drafts, votes
from s2s_tasks.arena.records import CRITERIA, Answer, Battle, Instruction, Judgement
from s2s_tasks.audio import probe
from s2s_tasks.data.sources import mini_rows

SYSTEMS = ("Gravelvoice", "Silkspeech-9B")
SECONDS = 0.3
"""Of an answer: long enough to be heard, short enough to wait for."""
REFUSED = "That did not work"


@dataclass(frozen=True)
class World:
    """What is judged."""

    instructions: list[Instruction]
    answers: dict[str, dict[str, Answer]]

    @property
    def battles(self) -> list[Battle]:
        return [Battle(one.id, *SYSTEMS, 1.0, 0) for one in self.instructions]


def build(folder: Path, count: int) -> World:
    """Real speech, cut short, in files whose names and tags tell the system."""
    rows = [*mini_rows("sstorycloze")[:2], *mini_rows("zh_sstorycloze")[:1]]
    rows = [*rows, *mini_rows("sstorycloze")[2 : count - 1]][:count]

    def cut(name: str, index: int, start: float) -> Any:
        path = folder / f"{name}-{index}.flac"
        if not path.exists():
            rate = 16000
            signal = rows[index].context_audio[0].load(rate)
            begin = int(start * rate)
            with soundfile.SoundFile(path, "w", rate, 1, format="FLAC") as file:
                file.title = file.artist = name
                file.write(signal[begin : begin + int(SECONDS * rate)])
        return probe(path)

    instructions = [
        Instruction(
            id=row.id,
            audio=cut("instruction", index, 0.0),
            text=row.context,
            language=row.language,
            domain="social",
            task="emotion",
            level=4,
            evaluation="Does the <b>voice</b> fit the story?",
        )
        for index, row in enumerate(rows)
    ]
    answers = serve.by_system(
        Answer(system, one.id, "ok", cut(system, index, 1.0 + number))
        for number, system in enumerate(SYSTEMS)
        for index, one in enumerate(instructions)
    )
    return World(instructions, answers)


@dataclass(frozen=True)
class Site:
    """A page that is served."""

    world: World
    store: Store
    database: Path
    links: Mapping[str, str]
    port: int

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def votes(self) -> list[Judgement]:
        return list(votes(self.database))

    def ask(
        self,
        path: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask for a path as it is written: no client tidies it up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        body = None if form is None else urlencode(form)
        connection.request("GET" if form is None else "POST", path, body, sent)
        response = connection.getresponse()
        found = response.status, dict(response.getheaders()), response.read()
        connection.close()
        return found


@contextmanager
def serving(
    folder: Path, annotators: list[str], count: int = 3, *, ties: bool = True, share: float = 0.0
) -> Iterator[Site]:
    world = build(folder, count)
    database = folder / "votes.sqlite"
    store = Store.open(database)
    links = serve.prepare(
        store, world.instructions, world.answers, world.battles, annotators, share=share
    )
    server = serve.server(app(world.instructions, world.answers, store, ties=ties))
    listening = serve.listen("127.0.0.1", 0)
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Site(world, store, database, links, listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
        store.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Six battles and annotators, who all are to judge one that nobody else does."""
    with serving(tmp_path_factory.mktemp("crowd"), list("abcdef"), 6) as site:
        yield site


@contextmanager
def visiting(browser: Browser, site: Site, name: str, **context: Any) -> Iterator[Page]:
    """Open an annotator's link; whatever the page complains of fails the test."""
    opened = browser.new_context(**{"viewport": {"width": WIDE, "height": 900}, **context})
    page = opened.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(site.root + site.links[name])
    yield page
    opened.close()
    assert complaints == []


def listen(page: Page, *keys: str) -> None:
    """Play recordings to their end, by keys."""
    page.locator("button[aria-disabled]").wait_for()  # the script, which comes last, has run
    for key in keys:
        page.keyboard.press(key)
        for reached in ("currentTime > 0.1", "ended"):
            page.wait_for_function(
                f"index => document.querySelectorAll('audio')[index].{reached}",
                arg="123".index(key),
            )


def hidden(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found
    return found[1]


def form(site: Site, link: str, **further: str) -> dict[str, str]:
    """Return what the page of a link would send, had it been filled in."""
    html = site.ask(link)[2].decode()
    known = {name: hidden(html, name) for name in ("assignment", "signature")}
    return {**dict.fromkeys(CRITERIA, "first"), **known, **further}


# To listen and to vote


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
            assert all(0.9 * SECONDS <= seconds[role] <= 1.1 * SECONDS for role in seconds)
            # What was played as A is what the log calls first.
            played, rate = soundfile.read(BytesIO(site.ask(source or "")[2]), dtype="float32")
            answer = site.world.answers[judgement.battle.first][instruction.id].audio
            assert answer is not None
            assert np.array_equal(played, answer.load(rate))


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


# Several annotators


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
        expect(tab.locator(".notice")).to_contain_text("Your first vote stands")
        assert [(one.judge, one.winners["overall"]) for one in site.votes()] == [
            ("anna", "first"),
            ("ben", "second"),
        ]


@pytest.mark.parametrize(("share", "doubled"), [(0.0, 0), (0.34, 1), (1.0, 3)])
def test_a_share_is_judged_twice(tmp_path: Path, share: float, doubled: int) -> None:
    with serving(tmp_path, ["anna", "ben", "carl"], share=share) as site:
        for name in ("anna", "ben", "carl"):
            while b"Battle" in site.ask(site.links[name])[2]:
                site.ask(site.links[name], form(site, site.links[name]))
        judges: dict[str, set[str]] = {}
        for vote in site.votes():
            judges.setdefault(vote.battle.instruction, set()).add(vote.judge)
        assert sorted(map(len, judges.values())) == [1] * (3 - doubled) + [2] * doubled


# What must not happen


COMMAND = """
import argparse, sys
from s2s_tasks.arena.page.serve import add_arguments, run
parser = argparse.ArgumentParser()
add_arguments(parser)
sys.exit(run(parser.parse_args()))
"""


@contextmanager
def commanded(
    folder: Path, lines: int, *options: str
) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Run the command until it has printed some lines, the last thing before it serves."""
    command = [sys.executable, "-c", COMMAND, "--votes", str(folder / "votes.sqlite"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, [process.stdout.readline() for _ in range(lines)]
    finally:
        process.kill()
        process.wait()


def test_votes_survive_a_kill_of_the_command(browser: Browser, tmp_path: Path) -> None:
    world = build(tmp_path, 3)
    store = Store.open(tmp_path / "votes.sqlite")
    # Known battles are not measured again, and to load what measures takes seconds.
    store.add_battles(drafts(world.battles, {i.id: i for i in world.instructions}, world.answers))
    store.close()
    manifest = tmp_path / "manifest.jsonl"
    with manifest.open("w") as file:
        for one in world.instructions:
            fields = asdict(one) | {"audio": one.audio.path}
            file.write(json.dumps(fields) + "\n")
    for system, given in world.answers.items():
        for id, answer in given.items():
            assert answer.audio is not None
            (tmp_path / system).mkdir(exist_ok=True)
            (tmp_path / system / f"{id}.flac").write_bytes(answer.audio.read())
    battles = tmp_path / "battles.jsonl"
    battles.write_text("".join(json.dumps(asdict(one)) + "\n" for one in world.battles))
    options = ["--battles", str(battles), "--instructions", str(manifest), "--answers"]
    options += [f"{system}={tmp_path / system}" for system in SYSTEMS]

    with commanded(tmp_path, 4, *options, "--port", "0", "--annotators", "anna") as (process, said):
        (link,) = (line.split()[-1] for line in said if "/vote/" in line)
        address = urlsplit(link)
        page = browser.new_context().new_page()
        page.goto(link)
        listen(page, "2", "3")
        page.keyboard.type("abab")
        page.keyboard.press("Enter")
        expect(page).to_have_title("Battle 2 of 3")
        listen(page, "2", "3")
        page.keyboard.type("bbbb")
        process.kill()
        process.wait()
    (vote,) = votes(tmp_path / "votes.sqlite")
    assert vote.winners["overall"] == "second"
    port = str(address.port)
    with commanded(tmp_path, 1, *options, "--port", port, "--annotators", "anna") as (
        process,
        said,
    ):
        assert said == [f"Serving at http://127.0.0.1:{port} (Ctrl-C ends it)\n"]
        page.keyboard.press("Enter")  # the page that was open goes on
        expect(page).to_have_title("Battle 3 of 3")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert len(list(votes(tmp_path / "votes.sqlite"))) == 2


@pytest.mark.parametrize(
    "path",
    [
        "/sound/../../../../etc/passwd",
        "/sound/..%2f..%2f..%2fetc%2fpasswd",
        "/sound/%2e%2e/%2e%2e/votes.sqlite",
        "/sound/votes.sqlite",
        "/sound//etc/passwd",
        "/sound/",
        "/sound/x%00.wav",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/%2e%2e/records.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/vote/..%2f..%2fetc%2fpasswd",
        "/vote/",
        "/leaderboard/",
        "/leaderboard/wrong/",
        "/leaderboard/wrong/report.html",
        "/{board}..%2f..%2fetc%2fpasswd",
        "/{board}../../votes.sqlite",
        "/{board}%2fetc%2fpasswd",
        "//etc/passwd",
        "/docs",
        "/openapi.json",
    ],
)
def test_no_path_escapes(crowd: Site, path: str) -> None:
    board = crowd.links["the leaderboard"].lstrip("/")
    status, headers, body = crowd.ask(path.format(board=board))
    assert status == 404
    assert headers["content-type"].startswith("text/html") and REFUSED.encode() in body


def test_nothing_tells_the_system(crowd: Site, browser: Browser) -> None:
    received: list[str] = []

    def keep(response: Response) -> None:
        received.append(f"{response.url} {response.all_headers()}")
        if "/sound/" not in response.url:
            received.append(response.text())

    with visiting(browser, crowd, "e") as page:
        page.on("response", keep)
        page.reload()
        page.wait_for_load_state("networkidle")
        sources = [player.get_attribute("src") for player in page.locator("audio").all()]
        received.append(page.content())
    for source in sources:
        status, headers, body = crowd.ask(source or "")
        assert status == 200 and headers["content-type"] == "audio/wav"
        received += [repr(headers), body.decode("latin-1")]
    received += [repr(crowd.ask(path)) for path in ("/", "/sound/x", "/vote/x", "/leaderboard/x/")]
    text = "\n".join(received).lower()
    assert "blockquote" in text and "voice</b>" not in text  # texts are no HTML
    told = [*SYSTEMS, *(word[:6] for word in SYSTEMS), "flac", str(crowd.database.parent)]
    assert [word for word in told if word.lower() in text] == []


def test_a_recording_that_is_gone_tells_no_name_either(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 1) as site:
        html = site.ask(site.links["anna"])[2].decode()
        for path in tmp_path.glob(f"{SYSTEMS[0]}*"):
            path.unlink()
        replies = [site.ask(source) for source in re.findall(r'src="(/sound/[^"]*)"', html)]
    assert sorted(status for status, _, _ in replies) == [200, 200, 500]
    (broken,) = (reply for reply in replies if reply[0] == 500)
    assert b"skip the battle" in broken[2]
    assert not any(word in repr(broken).lower() for word in ("gravel", "traceback", "flac"))


def test_an_error_of_ours_shows_no_trace(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 1) as site:
        link, sent = site.links["anna"], form(site, site.links["anna"])
        with site.store.engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE votes RENAME TO lost")
        status, headers, body = site.ask(link, sent)
        assert status == 500 and b"nothing was saved" in body
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert not any(word in body.lower() for word in (b"traceback", b"sqlite", b"votes"))


def test_a_part_of_a_recording_can_be_had(crowd: Site) -> None:
    html = crowd.ask(crowd.links["e"])[2].decode()
    source = re.findall(r'src="(/sound/[^"]*)"', html)[1]
    whole = crowd.ask(source)[2]
    status, headers, part = crowd.ask(source, headers={"Range": "bytes=100-299"})
    assert (status, part) == (206, whole[100:300])
    assert headers["content-range"] == f"bytes 100-299/{len(whole)}"
    assert crowd.ask(source, headers={"Range": f"bytes={len(whole)}-"})[0] == 416


def test_a_form_of_another_page_is_refused(crowd: Site) -> None:
    link = crowd.links["f"]
    other = form(crowd, crowd.links["e"])
    for wrong in (form(crowd, link, signature="0" * 64), {**other, "signature": "é"}, other):
        status, _, body = crowd.ask(link, wrong)
        assert status == 403 and b"not made by this page" in body
    assert crowd.ask("/vote/unknown", other)[0] == 404
    status, _, body = crowd.ask(link, form(crowd, link, overall="perhaps", quality=""))
    assert status == 422 and b"overall, quality" in body
    for seconds in ("nan", "-1", "inf"):
        assert crowd.ask(link, form(crowd, link, heard_first=seconds))[0] == 422
    skip = link.replace("vote", "skip")
    assert crowd.ask(skip, form(crowd, link, reason="because"))[0] == 422
    assert crowd.store.progress("f").done == 0


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


def test_every_answer_is_guarded(crowd: Site) -> None:
    replies = [
        crowd.ask(path)
        for path in ("/", "/nowhere", crowd.links["f"], "/static/vote.js", "/static/vote.css")
    ]
    replies += [crowd.ask(crowd.links["f"], form(crowd, crowd.links["f"], signature="x"))]
    for _, headers, _ in replies:
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    html = crowd.ask(crowd.links["f"])[2].decode()
    assert not re.search(r"<script>|<style|\sstyle=|\son\w+=", html)


def test_the_leaderboard_has_a_link_of_its_own(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"]) as site:
        link = site.links["anna"]
        board = site.links["the leaderboard"]
        assert b"3 battles are open" in site.ask(board)[2]
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
        status, headers, body = site.ask(f"{board}votes-systems.csv")
        assert status == 200 and vote.battle.first.encode() in body
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert site.ask(board.rstrip("/"))[0] == 307


# For everyone

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
  'button, summary, audio, .choices label, .reasons label, .switch label, #note'
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


def test_a_server_that_cannot_listen_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    taken = serve.listen("127.0.0.1", 0)
    with pytest.raises(serve.S2STasksError, match="--port"):
        serve.listen("127.0.0.1", taken.getsockname()[1])
    taken.close()


def test_battles_of_other_recordings_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 1) as site:
        world = site.world
        (instruction,) = world.instructions
        answers = {**world.answers, SYSTEMS[0]: {}}
        with pytest.raises(serve.S2STasksError, match=SYSTEMS[0]):
            app(world.instructions, answers, site.store)
        changed = replace(instruction, audio=replace(instruction.audio, sha256="0" * 64))
        with pytest.raises(serve.S2STasksError, match="another one"):
            app([changed], world.answers, site.store)
