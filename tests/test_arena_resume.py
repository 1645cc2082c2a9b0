"""Contests that are killed, or whose judge fails: what goes on, and what stops."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import chat_server
import pytest
import soundfile
from arena_contests import RATE, answer, arguments, battles, logged, meet, tone
from arena_judgements import judged
from chat_server import serving

from s2s_tasks.arena import log
from s2s_tasks.arena.contest.history import History
from s2s_tasks.arena.contest.judging import HOPELESS
from s2s_tasks.arena.contest.meeting import asked_in
from s2s_tasks.arena.judges.contract import JudgeError
from s2s_tasks.arena.records import Battle

ALONE = """
import argparse, sys
from s2s_tasks.arena.contest import battle
parser = argparse.ArgumentParser()
battle.add_arguments(parser)
battle.run(parser.parse_args(sys.argv[1:]))
"""


BROKEN: chat_server.Answer = (400, {"error": {"message": "cannot hear that"}}, {})


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return meet(tmp_path)


def failing(fails: Callable[[int], bool]) -> Callable[[dict[str, Any]], chat_server.Answer]:
    """Return a judge that likes pitch, and refuses the requests with some numbers, from 0."""
    count = iter(range(10_000))
    return lambda request: BROKEN if fails(next(count)) else chat_server.likes_pitch(request)


def test_a_killed_contest_goes_on(arena: Path) -> None:
    most, stuck, release = 9, threading.Event(), threading.Event()
    answered = []

    def reply(request: dict[str, Any]) -> chat_server.Answer:
        answered.append(0)
        if len(answered) > most:
            stuck.set()
            release.wait(60)
        return chat_server.likes_pitch(request)

    options = ("--draws", "2", "--seed", "5", "--jobs", "3")
    with serving(reply) as server:
        given = arguments(arena, server.url, *options)
        process = subprocess.Popen([sys.executable, "-c", ALONE, *given])
        assert stuck.wait(60)
        process.kill()
        process.wait()
        release.set()
    kept = logged(arena)
    assert 0 < len(kept) <= most
    with (arena / "log.jsonl").open("a") as file:
        file.write('{"battle": {"instr')  # a write that was cut short
    with serving(chat_server.likes_pitch) as server:
        battles(arguments(arena, server.url, *options))
        whole = logged(arena)
        assert len(server.requests) == len(whole) - len(kept)
    assert len({asked_in(judgement) for judgement in whole}) == len(whole)

    with serving(chat_server.likes_pitch) as server:
        given = arguments(arena, server.url, *options, "--jobs", "1")
        given[given.index("--log") + 1] = str(arena / "at once.jsonl")
        battles(given)
    at_once = list(log.read(arena / "at once.jsonl"))
    assert {j.battle for j in at_once} == {j.battle for j in whole}
    assert sum(j.battle.probe is None for j in whole) == 6 * 2 * 2


def test_a_contest_goes_past_what_fails_and_asks_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meet(tmp_path, 24)
    options = ("--draws", "2", "--probes", "0", "--seed", "3")
    with serving(failing(lambda number: number % 6 == 5)) as server:
        given = arguments(tmp_path, server.url, *options)
        assert battles(given) == 1
        assert len(server.requests) == 96
    told = capsys.readouterr().out
    assert "Could not be judged: 16 battle(s); start the same command again" in told
    assert told.count("cannot hear that") == 3 and "… and 13 more" in told
    first = logged(tmp_path)
    assert len(first) == 80
    for failed, asked, status in ((lambda number: number == 2, 16, 1), (lambda _: False, 1, 0)):
        with serving(failing(failed)) as server:
            assert battles(arguments(tmp_path, server.url, *options)) == status
            assert len(server.requests) == asked
    whole = logged(tmp_path)
    assert whole[:80] == first
    assert len({asked_in(judgement) for judgement in whole}) == len(whole) == 96


def learned(lines: str) -> list[str]:
    """Return what is learned before each of three draws, of systems a and b on q0, q1 and q2.

    A line is named by its instruction and the one heard first.
    """
    names = [lines[start : start + 2] for start in range(0, len(lines), 3)]
    history = History(
        (judged(one, "b" if one == "a" else "a", instruction=f"q{q}") for q, one in names),
        ["q0", "q1", "q2"],
    )
    found = []
    for slot in ("q0", "q1", "q2"):
        news = [judgement.battle for judgement in history.news()]
        found.append(" ".join(f"{battle.instruction[1:]}{battle.first}" for battle in news))
        history.draw([slot], [Battle(slot, *pair, 1.0, 0) for pair in ("ab", "ba")])
    return found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("0a 0b 1b 1a", ["", "0a 0b", "1a 1b"]),
        ("0a 1b 1a 0b", ["", "0a", "0b 1a 1b"]),  # 0b failed, and was asked again after the rest
        ("0b 0a", ["", "0a 0b", ""]),
        ("0b 2a 1a 0a", ["", "0b", ""]),  # all of q1 failed
        ("0x 0a 1a 0b 1x", ["", "0x 0a", "1x 0b 1a"]),  # x is in another contest with this seed
    ],
)
def test_verdicts_are_learned_when_they_were_learned_first(lines: str, expected: list[str]) -> None:
    assert learned(lines) == expected


def test_a_judge_that_always_fails_is_not_asked_on(tmp_path: Path) -> None:
    meet(tmp_path, 40)
    with serving(lambda _: (401, {"error": {"message": "no such key"}}, {})) as server:
        given = arguments(tmp_path, server.url, "--jobs", "2")
        with pytest.raises(JudgeError, match=r"(?s)battles in a row could not.*no such key"):
            battles(given)
        assert HOPELESS <= len(server.requests) <= 2 * HOPELESS + 2
    assert not (tmp_path / "log.jsonl").exists()


def test_a_server_that_breaks_down_ends_the_contest(tmp_path: Path) -> None:
    meet(tmp_path, 40)
    with serving(failing(lambda number: number >= 30)) as server:
        with pytest.raises(JudgeError, match="start the same command again to go on"):
            battles(arguments(tmp_path, server.url))
        assert len(server.requests) < 60
    assert len(logged(tmp_path)) == 30


def test_one_instruction_that_no_judge_takes_does_not_end_it(arena: Path) -> None:
    soundfile.write(arena / "questions" / "3.wav", tone(3000, 0.4), RATE)

    def reply(request: dict[str, Any]) -> chat_server.Answer:
        (signal, rate), *_ = chat_server.heard(request)
        bad = chat_server.tone(signal, rate) > 2000
        return BROKEN if bad else chat_server.likes_pitch(request)

    for system in ("more", "most"):  # 20 battles on it, one after another
        for number in range(6):
            answer(arena, system, f"q/{number}", waveform=tone(700 + number))
    systems = ("high", "middle", "low", "more", "most")
    with serving(reply) as server:
        options = ("--matching", "round_robin", "--probes", "0", "--jobs", "1")
        assert battles(arguments(arena, server.url, *options, systems=systems)) == 1
    assert len(logged(arena)) == 5 * 20
