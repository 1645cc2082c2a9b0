"""Contests: who met whom, what was asked, what is in the log, and what a kill leaves."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import chat_server
import numpy as np
import pytest
import soundfile
from chat_server import parts, said, serving, verdict

from s2s_tasks.arena import battle, log
from s2s_tasks.arena.answers import write_answer
from s2s_tasks.arena.contest import BY_RULE
from s2s_tasks.arena.judges.contract import JudgeError
from s2s_tasks.arena.judges.local import LocalJudge
from s2s_tasks.arena.judges.presenting import Presentation
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.meeting import asked_in
from s2s_tasks.arena.records import CRITERIA, Judgement
from s2s_tasks.audio import Waveform
from s2s_tasks.data.sources import mini_rows
from s2s_tasks.errors import S2STasksError

RATE = 16000
PITCHES = {"high": 900.0, "middle": 500.0, "low": 250.0}
ALONE = """
import argparse, sys
from s2s_tasks.arena import battle
parser = argparse.ArgumentParser()
battle.add_arguments(parser)
battle.run(parser.parse_args(sys.argv[1:]))
"""


def tone(pitch: float, seconds: float = 0.5) -> Waveform:
    time = np.arange(round(seconds * RATE)) / RATE
    return (0.2 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def ask(folder: Path, count: int) -> Path:
    """Write a manifest of instructions `q/0` …"""
    folder.mkdir(exist_ok=True)
    rows = []
    for number in range(count):
        soundfile.write(folder / f"{number}.wav", tone(310 + number, 0.4), RATE)
        row = {"id": f"q/{number}", "audio": f"{number}.wav", "language": "en", "text": "Say it."}
        rows.append({**row, "domain": "Social", "task": "irony", "level": f"L{1 + number % 4}"})
    (folder / "manifest.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


def answer(folder: Path, system: str, instruction: str, **given: Any) -> None:
    if given.get("waveform") is not None:
        given["sampling_rate"] = RATE
    write_answer(folder / system, system=system, instruction=instruction, **given)


@pytest.fixture
def arena(tmp_path: Path) -> Path:
    """Six instructions, and three systems that answer in tones of their own."""
    ask(tmp_path / "questions", 6)
    for system, pitch in PITCHES.items():
        for number in range(6):
            answer(tmp_path, system, f"q/{number}", waveform=tone(pitch + number))
    return tmp_path


def arguments(folder: Path, url: str, *more: str, systems: tuple[str, ...] = ()) -> list[str]:
    return [
        *("--answers", *(str(folder / system) for system in systems or PITCHES)),
        *("--instructions", str(folder / "questions"), "--log", str(folder / "log.jsonl")),
        *("--judge", "openai", "--model", "ears", "--base-url", url, *more),
    ]


def battles(given: list[str]) -> int:
    parser = argparse.ArgumentParser()
    battle.add_arguments(parser)
    return battle.run(parser.parse_args(given))


def logged(folder: Path) -> list[Judgement]:
    return list(log.read(folder / "log.jsonl"))


def contests(folder: Path) -> list[Judgement]:
    return [judgement for judgement in logged(folder) if judgement.battle.probe is None]


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


def test_what_could_not_be_asked_is_asked_later(arena: Path) -> None:
    broken = (400, {"error": {"message": "cannot hear that"}}, {})
    count = iter(range(1000))
    with serving(
        lambda request: broken if next(count) % 3 == 2 else chat_server.likes_pitch(request)
    ) as server:
        given = arguments(arena, server.url, "--probes", "0")
        with pytest.raises(JudgeError, match=r"4 battle\(s\) could not be judged.*cannot hear"):
            battles(given)
        assert len(logged(arena)) == 8
    with serving(chat_server.likes_pitch) as server:
        battles(arguments(arena, server.url, "--probes", "0"))
        assert len(server.requests) == 4
    assert len(logged(arena)) == 12


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


@pytest.mark.parametrize("mode", ["strict", "ties"])
def test_answers_without_sound(
    tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(tmp_path / "questions", 3)
    silence = np.zeros(RATE, np.float32)
    for number in range(3):
        answer(tmp_path, "speaks", f"q/{number}", waveform=tone(300 + number))
        answer(tmp_path, "silent", f"q/{number}", waveform=silence)
        answer(tmp_path, "mute", f"q/{number}", waveform=silence)
        answer(tmp_path, "writes", f"q/{number}", waveform=None, transcript="Hello.")
    answer(tmp_path, "breaks", "q/0", waveform=None, error="out of memory")
    systems = ("speaks", "silent", "mute", "writes", "breaks")
    with serving(chat_server.likes_pitch) as server:
        options = ("--matching", "round_robin", "--probes", "0", "--mode", mode)
        battles(arguments(tmp_path, server.url, *options, systems=systems))
        assert server.requests == []
    found = Counter()
    for judgement in logged(tmp_path):
        met = judgement.battle
        assert judgement.reply.startswith(BY_RULE)
        assert judgement.features["second_loudness"] == -70 or met.second == "speaks"
        label = judgement.winners["overall"]
        found[{"first": met.first, "second": met.second}.get(label, label)] += 1
    told = capsys.readouterr().out
    assert "Left out: 3 answer(s) of writes (text_only)" in told
    assert "Left out: 1 answer(s) of breaks (failed)" in told
    if mode == "strict":
        assert found == {"speaks": 12}
        assert "6 battle(s) of two silent answers" in told
    else:
        assert found == {"speaks": 12, "both_bad": 6}


def test_probes_show_a_judge_that_does_not_listen(
    arena: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(lambda _: said(verdict("first"))) as server:
        battles(arguments(arena, server.url, "--probes", "1"))
    told = capsys.readouterr().out
    assert "against itself: the first one won 2 of 2, half would be fair" in told
    for kind in ("silence", "noise", "that to another question"):
        assert f"against {kind}: failed 2 of 4 (50%" in told
    probes = [j for j in logged(arena) if j.battle.probe]
    assert Counter(j.battle.probe for j in probes) == {
        **{"itself": 2, "silence": 4, "noise": 4, "other": 4}
    }
    for judgement in probes:
        names = {judgement.battle.first, judgement.battle.second}
        kind = judgement.battle.probe
        assert len(names & set(PITCHES)) == 1
        assert kind == "itself" or f"<{kind}>" in names
        same = judgement.answers["first"] == judgement.answers["second"]
        assert same == (kind == "itself")


def test_probes_clear_a_judge_that_listens(arena: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving(chat_server.likes_pitch) as server:
        battles(arguments(arena, server.url))
    told = capsys.readouterr().out
    assert "against silence: failed 0 of 4 (0%, 95% interval 0% to 49%)" in told
    assert "against noise: failed 0 of 4" in told


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
            fingerprint="hub/Ears@main:Ears:bf16:0123",
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
