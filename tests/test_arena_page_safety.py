"""The voting page: what must not happen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from arena_page import SYSTEMS, Site, form, serving, visiting
from playwright.sync_api import Browser, Response

from s2s_tasks.arena.page.app import app
from s2s_tasks.errors import S2STasksError

REFUSED = "That did not work"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Six battles and annotators, who all are to judge one that nobody else does."""
    with serving(tmp_path_factory.mktemp("crowd"), list("abcdef"), 6) as site:
        yield site


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
    # Both answers are gone: one is as loud as the other lets it be.
    assert sorted(status for status, _, _ in replies) == [200, 500, 500]
    for broken in (reply for reply in replies if reply[0] == 500):
        assert b"skip the battle" in broken[2]
        assert not any(word in repr(broken).lower() for word in ("gravel", "traceback", "flac"))


def test_a_vote_on_what_cannot_be_heard_any_more_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 2) as site:
        link = site.links["anna"]
        site.ask(link, form(site, link))
        (kept,) = site.votes()
        for path in tmp_path.glob(f"{SYSTEMS[0]}*"):
            path.write_bytes(b"something else")
        for path in (link, link.replace("vote", "back")):
            status, _, body = site.ask(link, form(site, path, overall="second"))
            assert status == 409 and b"Go back, and skip" in body
        assert site.votes() == [kept]
        assert site.ask(link.replace("vote", "skip"), form(site, link, reason="no_sound"))[0] == 303
        assert site.store.progress("anna").skipped == 1


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


def test_battles_of_other_recordings_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, ["anna"], 1) as site:
        world = site.world
        (instruction,) = world.instructions
        answers = {**world.answers, SYSTEMS[0]: {}}
        with pytest.raises(S2STasksError, match=SYSTEMS[0]):
            app(world.instructions, answers, site.store)
        changed = replace(instruction, audio=replace(instruction.audio, sha256="0" * 64))
        with pytest.raises(S2STasksError, match="another one"):
            app([changed], world.answers, site.store)
