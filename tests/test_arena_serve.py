"""`s2s-tasks arena serve`, as a command."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from arena_page import SYSTEMS, World, build, listen
from playwright.sync_api import Browser, expect

from s2s_tasks.arena.page import serve
from s2s_tasks.arena.page.store import Store
from s2s_tasks.arena.page.votes import drafts, votes
from s2s_tasks.errors import S2STasksError

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
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        yield process, [process.stdout.readline() for _ in range(lines)]
    finally:
        process.kill()
        process.wait()


def given(folder: Path, world: World) -> list[str]:
    """Write what is judged, and return the options that name it."""
    manifest = folder / "manifest.jsonl"
    with manifest.open("w") as file:
        for one in world.instructions:
            fields = asdict(one) | {"audio": one.audio.path}
            file.write(json.dumps(fields) + "\n")
    for system, answers in world.answers.items():
        for id, answer in answers.items():
            assert answer.audio is not None
            (folder / system).mkdir(exist_ok=True)
            (folder / system / f"{id}.flac").write_bytes(answer.audio.read())
    battles = folder / "battles.jsonl"
    battles.write_text("".join(json.dumps(asdict(one)) + "\n" for one in world.battles))
    options = ["--battles", str(battles), "--instructions", str(manifest), "--answers"]
    options += [f"{system}={folder / system}" for system in SYSTEMS]
    return [*options, "--probes", "0"]


def known(path: Path, world: World) -> None:
    """Put the battles into a file: known ones are not measured, and what does that loads slowly."""
    store = Store.open(path)
    store.add_battles(drafts(world.battles, {i.id: i for i in world.instructions}, world.answers))
    store.close()


def test_votes_survive_a_kill_of_the_command(browser: Browser, tmp_path: Path) -> None:
    world = build(tmp_path, 3)
    known(tmp_path / "votes.sqlite", world)
    (tmp_path / "temporary").mkdir()
    options = given(tmp_path, world)

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
    assert list((tmp_path / "temporary").iterdir()) == []
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


def test_a_server_that_cannot_listen_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    taken = serve.listen("127.0.0.1", 0)
    with pytest.raises(S2STasksError, match="--port"):
        serve.listen("127.0.0.1", taken.getsockname()[1])
    taken.close()


def run(*options: str) -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    serve.run(parser.parse_args(options))


def test_a_start_that_fails_changes_nothing(tmp_path: Path) -> None:
    world = build(tmp_path, 3)
    path = tmp_path / "votes.sqlite"
    options = [*given(tmp_path, world), "--votes", str(path), "--annotators", "anna", "ben"]
    taken = serve.listen("127.0.0.1", 0)
    with taken, pytest.raises(S2STasksError, match="--port"):
        run(*options, "--port", str(taken.getsockname()[1]))
    assert not path.exists()

    store = Store.open(path)
    known(path, World(world.instructions[:1], world.answers))
    with store.invite(["anna"]):
        pass  # nobody opens the link
    answers = tmp_path / SYSTEMS[0]
    one, other = (answers / f"{each.id}.flac" for each in world.instructions[:2])
    one.write_bytes(other.read_bytes())
    with pytest.raises(S2STasksError, match="another one"):
        run(*options, "--port", "0")
    assert store.annotators() == ["anna"]
    # Battles of wrong answers would be refused when the right ones are given again.
    assert [draft.battle for draft in store.battles().values()] == world.battles[:1]
    store.close()
