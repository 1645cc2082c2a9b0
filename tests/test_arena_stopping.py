"""Contests that are stopped: by Ctrl-C, by a judge that breaks, or before a second one begins."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chat_server
import pytest
from arena_contests import answer, arguments, ask, battles, logged, meet, tone
from chat_server import serving

from s2s_tasks.arena import log
from s2s_tasks.arena.contest import battle
from s2s_tasks.arena.contest.contest import Settings, hold
from s2s_tasks.arena.data.manifest import read as read_instructions
from s2s_tasks.arena.elsewhere import read_given
from s2s_tasks.arena.judges.contract import JudgeError, Reply
from s2s_tasks.arena.records import CRITERIA, Instruction
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError

# What runs in the background is deaf to Ctrl-C, and so is what it starts.
ALONE = """
import signal, sys
from s2s_tasks.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main(["arena", "battle", *sys.argv[1:]]))
"""


def test_ctrl_c_keeps_what_is_under_way_and_says_how_to_go_on(tmp_path: Path) -> None:
    meet(tmp_path)
    stuck, release = threading.Event(), threading.Event()
    count = iter(range(1000))

    def reply(request: dict[str, Any]) -> chat_server.Answer:
        if next(count) >= 4:
            stuck.set()
            release.wait(60)
        return chat_server.likes_pitch(request)

    with serving(reply) as server:
        given = arguments(tmp_path, server.url, "--jobs", "3")
        process = subprocess.Popen(
            [sys.executable, "-c", ALONE, *given], stderr=subprocess.PIPE, text=True
        )
        assert stuck.wait(60)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        release.set()
        _, told = process.communicate(timeout=60)
        asked = len(server.requests)
    assert process.returncode == 130
    assert f"Stopped. What was judged is in {tmp_path / 'log.jsonl'}; start the same comm" in told
    assert "Traceback" not in told
    assert 4 < asked <= 8 and len(logged(tmp_path)) == asked


@dataclass
class Breaking:
    """Fails in a way that nobody thought of while others are still being asked."""

    breaks: Callable[[int], bool]
    asked: int = 0

    name = "glass"
    version = "strict-1"
    concurrent = True

    def judge(self, instruction: Instruction, first: Audio, second: Audio) -> Reply:
        self.asked += 1
        if self.breaks(self.asked):
            raise ZeroDivisionError("of nothing")
        time.sleep(0.2)
        return Reply("…", dict.fromkeys(CRITERIA, "first"), "0" * 64)


def contest(folder: Path, judge: Breaking) -> None:
    instructions = read_instructions(folder / "questions")
    ids = [instruction.id for instruction in instructions]
    answers = [one for name in ("high", "low") for one in read_given(str(folder / name), ids)]
    settings = Settings(jobs=4)
    hold(instructions, answers, judge, folder / "log.jsonl", settings, may_tie=False)


def test_a_judge_that_breaks_loses_no_verdict(tmp_path: Path) -> None:
    meet(tmp_path)
    judge = Breaking(lambda number: number == 6)
    with pytest.raises(JudgeError, match=r"(?s)ZeroDivisionError: of nothing.*What was judged is"):
        contest(tmp_path, judge)
    kept = len(logged(tmp_path))
    assert kept == judge.asked - 1 >= 5
    going_on = Breaking(lambda _: False)
    contest(tmp_path, going_on)
    whole = logged(tmp_path)
    assert len(whole) == kept + going_on.asked == len({(j.battle.key) for j in whole})


def test_where_nothing_was_judged_no_file_is_named(tmp_path: Path) -> None:
    meet(tmp_path)
    with pytest.raises(JudgeError, match=r"Nothing was judged; start the same command again"):
        contest(tmp_path, Breaking(lambda _: True))


def test_two_contests_do_not_ask_the_same(tmp_path: Path) -> None:
    meet(tmp_path)
    with serving(chat_server.likes_pitch) as server:
        given = arguments(tmp_path, server.url)
        with log.alone(tmp_path / "log.jsonl", _identity(given)):
            with pytest.raises(S2STasksError, match="another process is putting battles to ears@"):
                battles(given)
            assert server.requests == []
            battles([*given, "--mode", "ties"])  # another judge
            assert server.requests
        battles(given)


def _identity(given: list[str]) -> str:
    import argparse

    from s2s_tasks.arena.contest.meeting import identity

    parser = argparse.ArgumentParser()
    battle.add_arguments(parser)
    return identity(battle.build_judge(parser.parse_args(given)))


def test_a_system_may_be_called_as_the_judge_that_is_no_model(tmp_path: Path) -> None:
    ask(tmp_path / "questions", 2)
    for number in range(2):
        answer(tmp_path, "signal", f"q/{number}", waveform=tone(300))
        answer(tmp_path, "other", f"q/{number}", waveform=tone(400))
    given = arguments(tmp_path, "", "--probes", "0", systems=("signal", "other"))
    given[given.index("openai")] = "signal"
    assert battles(given) == 0


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--jobs", "abc", "'abc': a whole number, 1 or more"),
        ("--jobs", "0", "'0': a whole number, 1 or more"),
        ("--gap", "nan", "'nan': a number from 0 to 10000"),
        ("--gap", "inf", "'inf': a number from 0 to 10000"),
        ("--width", "1e-200", "'1e-200': a number from 1 to 10000"),
        ("--probes", "2", "'2': a number from 0 to 1"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(
    option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        battles(["--answers", "x", option, value])
    assert told in capsys.readouterr().err


def test_half_a_character_of_a_reply_is_kept(tmp_path: Path) -> None:
    meet(tmp_path, 2)
    reply = f"cut off: \ud83d {json.dumps(dict.fromkeys(CRITERIA, 'first'))}"
    with serving(lambda _: chat_server.said(reply)) as server:
        assert battles(arguments(tmp_path, server.url, "--probes", "0")) == 0
    assert {judgement.reply for judgement in logged(tmp_path)} == {reply}
