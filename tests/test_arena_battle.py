"""Contests: who met whom, what was asked, and what is in the log."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import chat_server
import numpy as np
import pytest
from arena_contests import (
    PITCHES,
    RATE,
    answer,
    arguments,
    ask,
    battles,
    contests,
    logged,
    meet,
    tone,
)
from chat_server import parts, said, serving, verdict

from s2s_tasks.arena.answers import write_answer
from s2s_tasks.arena.contest import battle
from s2s_tasks.arena.judges.contract import JudgeError
from s2s_tasks.arena.judges.local import LocalJudge
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.records import CRITERIA
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.errors import S2STasksError


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    return meet(tmp_path)


def test_all_meet_and_the_log_tells_everything(
    arena: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(chat_server.likes_pitch) as server:
        given = arguments(arena, server.url, "--matching", "round_robin", "--probes", "0.5")
        assert battles(given) == 0
        asked = len(server.requests)
        judgements = contests(arena)
        assert len(judgements) == 6 * 3 * 2
        assert asked == len(logged(arena))
        for judgement in judgements:
            met = judgement.battle
            better = "first" if PITCHES[met.first] > PITCHES[met.second] else "second"
            assert judgement.winners == dict.fromkeys(CRITERIA, better)
            assert judgement.reply == verdict(better)
            assert (met.propensity, met.seed) == (1, 0)
            assert judgement.judge.startswith("ears@strict-")
            assert (judgement.domain, judgement.task, judgement.language) == (
                ("Social", "irony", "en")
            )
            assert judgement.level == 1 + int(met.instruction[2:]) % 4
            assert judgement.features["first_seconds"] == 0.5
            assert set(judgement.answers) == {"instruction", "first", "second"}
            assert len(judgement.prompt_sha256) == 64
        orders = Counter((j.battle.first, j.battle.second) for j in judgements)
        assert set(orders.values()) == {6} and len(orders) == 6
        for request in server.requests:
            text = " ".join(p.get("text", "") for p in parts(request))
            assert not any(secret in text for secret in ("q/", "Social", "middle", "Say it"))

        capsys.readouterr()
        assert battles(given) == 0
        assert len(server.requests) == asked, "what the log has is not asked again"
        assert "36 battles; 0 new verdicts" in capsys.readouterr().out
        before = len(logged(arena))
        assert battles([*given, "--mode", "ties"]) == 0
        assert len(logged(arena)) == 2 * before, "asked otherwise, it is another judge"


def test_replies_that_cannot_be_read_are_kept_and_counted(
    arena: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: said("Both are nice.")) as server:
        given = arguments(arena, server.url, "--probes", "0")
        battles(given)
        battles(given)
        assert len(server.requests) == 12
    assert {(j.reply, len(j.winners)) for j in logged(arena)} == {("Both are nice.", 0)}
    assert "cannot be read: 12 of 12" in capsys.readouterr().out


def test_a_new_recording_is_judged_anew(arena: Path) -> None:
    with serving(chat_server.likes_pitch) as server:
        given = arguments(arena, server.url, "--matching", "round_robin", "--probes", "0")
        battles(given)
        answer(arena, "low", "q/3", waveform=tone(1500))
        battles(given)
        assert len(server.requests) == 36 + 4
    new = logged(arena)[36:]
    assert all(j.battle.instruction == "q/3" for j in new)
    assert all(j.battle.first == "low" for j in new if j.winners["overall"] == "first")


def test_one_order_alternates(arena: Path) -> None:
    with serving(chat_server.likes_pitch) as server:
        battles(
            arguments(
                *(arena, server.url, "--orders", "one", "--probes", "0"),
                *("--matching", "uniform", "--draws", "3"),
            )
        )
    orders = Counter((j.battle.first, j.battle.second) for j in logged(arena))
    assert sum(orders.values()) == 18
    assert set(orders.values()) == {3}


def test_a_system_does_not_judge_itself(arena: Path) -> None:
    for number in range(6):
        write_answer(
            arena / "me",
            system="me",
            instruction=f"q/{number}",
            waveform=tone(600),
            sampling_rate=RATE,
            model="hub/Ears",
        )
    with serving(chat_server.likes_pitch) as server:
        with pytest.raises(S2STasksError, match="ears cannot judge a contest that it is in, as me"):
            battles(arguments(arena, server.url, systems=("low", "me")))
        assert server.requests == []


def test_those_who_cannot_meet_are_refused(arena: Path) -> None:
    with pytest.raises(S2STasksError, match="no instruction was answered by two systems"):
        battles(arguments(arena, "http://127.0.0.1:9/v1", systems=("low",)))
    with pytest.raises(S2STasksError, match="low answers q/0 twice"):
        battles(arguments(arena, "http://127.0.0.1:9/v1", systems=("low", "low")))
    with pytest.raises(JudgeError, match="--judge local needs --model"):
        given = arguments(arena, "")
        given[given.index("openai")] = "local"
        del given[given.index("--model") :]
        battles(given)


def test_the_command_says_which_judge(
    qwen2_audio: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    battle.add_arguments(parser)
    given = ["--answers", "x", "--judge", "local", "--model", str(qwen2_audio)]
    options = parser.parse_args([*given, "--model-args", "dtype=float32", "--mode", "ties"])
    judge = battle.build_judge(options)
    assert isinstance(judge, LocalJudge)
    assert judge.name == str(qwen2_audio) and judge.version.startswith("ties-")
    assert judge.presentation == Presentation(Rubric("ties"), 16000)
    for wrong in (["--width", "0"], ["--probes", "2"], ["--jobs", "0"]):
        with pytest.raises(SystemExit):
            parser.parse_args(["--answers", "x", *wrong])
    capsys.readouterr()


def test_signal_judges_without_a_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path / "questions", 2)
    random = np.random.default_rng(0)
    for number in range(2):
        clean = mini_rows("sstorycloze")[number].context_audio[0].load(RATE)[: 3 * RATE]
        noisy = (clean + 0.05 * random.normal(size=len(clean))).astype(np.float32)
        answer(tmp_path, "clean", f"q/{number}", waveform=clean)
        answer(tmp_path, "noisy", f"q/{number}", waveform=noisy)
    given = arguments(tmp_path, "", "--mode", "ties", systems=("clean", "noisy"))
    given[given.index("openai")] = "signal"
    battles(given)
    for judgement in contests(tmp_path):
        assert judgement.judge == "signal@ties-1"
        better = "first" if judgement.battle.first == "clean" else "second"
        assert judgement.winners["overall"] == better
        assert Rubric("ties").read(judgement.reply) == judgement.winners
    told = capsys.readouterr().out
    assert "against silence: failed 0 of 2" in told
    assert "against itself: failed 0 of 1" in told
