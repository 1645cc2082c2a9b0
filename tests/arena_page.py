"""A voting page that is served, for tests that ask it."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import numpy as np
import soundfile
from browser import WIDE
from playwright.sync_api import Browser, Page

from s2s_tasks.arena.page import serve
from s2s_tasks.arena.page.app import app
from s2s_tasks.arena.page.preparing import by_system, prepare
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import Answers, votes
from s2s_tasks.arena.records import CRITERIA, Answer, Battle, Instruction, Judgement
from s2s_tasks.audio import probe
from s2s_tasks.data.sources import mini_rows

SYSTEMS = ("Gravelvoice", "Silkspeech-9B")
SECONDS = 0.3
"""Of an answer: long enough to be heard, short enough to wait for."""


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
    answers = by_system(
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


def prepared(
    store: Store,
    instructions: Iterable[Instruction],
    answers: Answers,
    battles: Iterable[Battle],
    annotators: Sequence[str],
    *,
    share: float = 0.0,
    probes: float = 0.0,
    renew: Sequence[str] = (),
) -> dict[str, str]:
    """Prepare a store and deal what is in it; the links that are new."""
    prepare(store, instructions, answers, battles, annotators, share=share, probes=probes)
    with store.invite(annotators, share, renew) as links:
        return links


@contextmanager
def serving(
    folder: Path,
    annotators: list[str],
    count: int = 3,
    *,
    ties: bool = True,
    share: float = 0.0,
    probes: float = 0.0,
) -> Iterator[Site]:
    world = build(folder, count)
    database = folder / "votes.sqlite"
    store = Store.open(database)
    links = prepared(
        *(store, world.instructions, world.answers, world.battles, annotators),
        share=share,
        probes=probes,
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
    assert complaints == [], complaints


def wait_for_keys(page: Page) -> None:
    """Wait until the script, which comes last, has run."""
    page.locator("button[aria-disabled]").first.wait_for()


def listen(page: Page, *keys: str) -> None:
    """Play recordings to their end, by keys."""
    wait_for_keys(page)
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
    known = {name: hidden(html, name) for name in ("assignment", "signature", "revision")}
    return {**dict.fromkeys(CRITERIA, "first"), **known, **further}


def is_louder(played: Any, sound: Any) -> bool:
    """Tell whether a signal opens with a sound, louder or softer by one factor throughout."""
    opening = played[: len(sound)]
    return bool(np.allclose(opening, opening @ sound / (sound @ sound) * sound, atol=2**-14))
