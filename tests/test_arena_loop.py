"""The whole way, with real models: answers, battles, votes of people, ratings, agreement."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from s2s_tasks.arena.answers import read_answers
from s2s_tasks.arena.data.sources import load
from s2s_tasks.arena.demo import SPEEDS, TASK
from s2s_tasks.arena.log import read
from s2s_tasks.arena.records import Judgement
from s2s_tasks.arena.verdicts import read_verdicts

COMMAND = [sys.executable, "-m", "s2s_tasks.cli"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[list[str]]]:
    """Run the demo on two instructions: its folder, and the commands that it says to go on with."""
    folder = tmp_path_factory.mktemp("loop") / "arena"
    demo = [*COMMAND, "arena", "demo", "--limit", "2", "-o", str(folder)]
    printed = subprocess.run(demo, check=True, stdout=subprocess.PIPE, text=True).stdout
    commands = [shlex.split(line) for line in printed.splitlines()[-2:]]
    assert {Path(program).name for program, *_ in commands} <= {"s2s-tasks", "cli.py"}
    return folder, [arguments for _, *arguments in commands]


@pytest.mark.weights
def test_two_systems_answer_and_are_rated(told: tuple[Path, list[list[str]]]) -> None:
    folder, _ = told
    asked = {one.id for one in load(mini=True) if one.language == "en"}
    seconds = {}
    for system in SPEEDS:
        answers = read_answers(folder / "answers" / system / TASK)
        assert {answer.system for answer in answers} == {system}
        assert len(answers) == 2 and {answer.instruction for answer in answers} < asked
        assert all(answer.status == "ok" and answer.transcript for answer in answers)
        seconds[system] = sum(answer.audio.seconds for answer in answers if answer.audio)
    assert seconds["calm"] > 1.5 * seconds["hasty"]

    verdicts = list(read(folder / "battles.jsonl"))
    probes = [one.battle.probe for one in verdicts if one.battle.probe]
    assert set(probes) == {"itself", "silence", "noise", "other"}
    assert len(verdicts) - len(probes) == 4  # two instructions, both orders
    for name in ("report.html", "report.md", "leaderboard.json"):
        assert (folder / "leaderboard" / name).stat().st_size
    board = json.loads((folder / "leaderboard" / "leaderboard.json").read_text("utf-8"))
    assert board["overall"]["ratings"][0]["system"] == "calm"


@pytest.mark.weights
def test_people_judge_the_same_battles(
    told: tuple[Path, list[list[str]]], browser: Browser
) -> None:
    folder, (serving, comparing) = told
    with served([*serving[:-1], "anna", "ben", "--double", "1", "--port", "0"]) as links:
        for name in ("anna", "ben"):
            page = browser.new_page()
            page.goto(links[name])
            while page.locator("#vote").count():
                vote_for_the_slower(page)
            page.close()
    votes = list(read_verdicts([folder / "votes.sqlite"]))
    battles = [vote for vote in votes if vote.battle.probe is None]
    assert {(vote.judge, vote.battle.instruction) for vote in battles} == {
        (name, one.battle.instruction) for name in ("anna", "ben") for one in logged(folder)
    }
    for vote in battles:
        calm = "first" if vote.battle.first == "calm" else "second"
        assert set(vote.winners.values()) == {calm}

    # The page names its annotators; the command that the demo told names one.
    comparing[comparing.index("me")] = "anna"
    subprocess.run([*COMMAND, *comparing, "--people", "ben"], check=True)
    agreement = json.loads((folder / "agreement" / "agreement.json").read_text("utf-8"))
    (found,) = (
        row
        for row in agreement["compared"]
        if (row["criterion"], row["part"], row["verdicts"]) == ("overall", "all", "all")
    )
    assert (found["units"], found["raw, %"]) == (2, 100.0)
    assert {row["judge"] for row in agreement["probe-failures"]} >= {"anna", "ben"}

    both = [str(folder / "battles.jsonl"), str(folder / "votes.sqlite")]
    subprocess.run([*COMMAND, "arena", "rate", *both, "-o", str(folder / "all")], check=True)
    everything = json.loads((folder / "all" / "leaderboard.json").read_text("utf-8"))
    assert everything["overall"]["battles"] == 4 + len(battles)


def logged(folder: Path) -> list[Judgement]:
    return [one for one in read(folder / "battles.jsonl") if one.battle.probe is None]


@contextmanager
def served(arguments: list[str]) -> Iterator[dict[str, str]]:
    """Serve the page, and say whose link is which."""
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        links: dict[str, str] = {}
        for line in process.stdout:
            words = line.split()
            if words and words[-1].startswith("http"):
                links[words[0].rstrip(":")] = words[-1]
            if {"anna", "ben"} <= links.keys():
                break
        yield links
    finally:
        process.kill()
        process.wait()


def vote_for_the_slower(page: Page) -> None:
    """Play all three recordings to their ends, eight times as fast, and vote by keyboard."""
    page.locator("button[aria-disabled]").wait_for()
    page.evaluate("document.querySelectorAll('audio').forEach(one => one.playbackRate = 8)")
    for key in "123":
        page.keyboard.press(key)
        page.wait_for_function(
            "index => document.querySelectorAll('audio')[index].ended", arg="123".index(key)
        )
    first, second = (
        page.locator(f"#{answer}").evaluate("one => one.duration") for answer in ("first", "second")
    )
    key = "t" if abs(first - second) < 0.1 else "a" if first > second else "b"
    title = page.title()
    page.keyboard.type(key * 4)
    page.keyboard.press("Enter")
    page.wait_for_function("title => document.title !== title", arg=title)
