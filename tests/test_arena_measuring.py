"""What is measured of recordings, and the judge that goes by nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from arena_sounds import RATE, asked, bursts, put, tone

from s2s_tasks.arena.features import features, loudness, pitch, speech_quality
from s2s_tasks.arena.judges.offline import SignalJudge
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.records import CRITERIA, Instruction
from s2s_tasks.audio import Audio
from s2s_tasks.data.sources import mini_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sounds")


@pytest.fixture(scope="module")
def instruction(folder: Path) -> Instruction:
    return asked(folder)


@pytest.fixture(scope="module")
def speech(folder: Path) -> Audio:
    signal = mini_rows("sstorycloze")[0].context_audio[0].load(RATE)
    return put(folder, "speech", signal[: 4 * RATE])


def test_features_are_what_was_put_in(folder: Path) -> None:
    signal = np.concatenate([tone(997, 1.0), np.zeros(3 * RATE, np.float32)])
    measured = features(put(folder, "mostly silent", signal))
    assert measured["seconds"] == 4
    assert measured["loudness"] == pytest.approx(loudness(signal, RATE), abs=0.01)
    assert measured["silence"] == pytest.approx(0.75, abs=0.02)
    silent = features(put(folder, "silent", np.zeros(100, np.float32)))
    assert silent == {"seconds": 100 / RATE, "loudness": -70, "silence": 1, "rate": 0}


def test_loudness_of_a_short_signal_is_that_of_a_long_one() -> None:
    # ITU-R BS.1770: a sine of 997 Hz at full scale has -3.01 LUFS.
    assert loudness(tone(997, 2.0, 1.0), RATE) == pytest.approx(-3.01, abs=0.1)
    assert loudness(tone(997, 0.1), RATE) == pytest.approx(loudness(tone(997, 2.0), RATE), abs=0.3)


def test_a_recording_without_a_frame_at_the_rate_of_measuring_is_silent(folder: Path) -> None:
    brief = put(folder, "brief", np.array([0.5, -0.5, 0.5], np.float32), 192000)
    assert features(brief) == {"seconds": 3 / 192000, "loudness": -70, "silence": 1, "rate": 0}


@pytest.mark.parametrize("rate", [2, 4, 6])
def test_syllables_are_counted(folder: Path, rate: int) -> None:
    measured = features(put(folder, f"bursts {rate}", bursts(rate)))
    assert measured["rate"] == pytest.approx(rate, rel=0.1)


def test_speech_has_the_rate_of_speech(speech: Audio) -> None:
    assert 2.5 < features(speech)["rate"] < 7


def test_signal_hears_noise_and_silence(
    folder: Path, instruction: Instruction, speech: Audio
) -> None:
    random = np.random.default_rng(0)
    clean = speech.load(RATE)
    noisy = put(folder, "noisy", (clean + 0.05 * random.normal(size=len(clean))).astype("f4"))
    noise = put(folder, "noise", (0.1 * random.normal(size=2 * RATE)).astype("f4"))
    silence = put(folder, "nothing", np.zeros(2 * RATE, np.float32))
    assert speech_quality(speech) > speech_quality(noisy) + 0.3
    ties, strict = SignalJudge("ties"), SignalJudge("strict")
    for worse in (noisy, noise, silence):
        assert ties.judge(instruction, speech, worse).winners["overall"] == "first"
        assert strict.judge(instruction, worse, speech).winners["overall"] == "second"
    assert ties.judge(instruction, speech, speech).winners == dict.fromkeys(CRITERIA, "tie")
    assert ties.judge(instruction, noise, silence).winners["overall"] == "both_bad"
    toss = strict.judge(instruction, speech, speech)
    assert set(toss.winners.values()) <= {"first", "second"}
    assert toss == strict.judge(instruction, speech, speech)
    assert Rubric("ties").read(toss.text) == toss.winners


def test_signal_hears_rate_and_pitch_where_they_are_asked_for(
    folder: Path, instruction: Instruction
) -> None:
    slow, fast = (put(folder, f"say {n}", bursts(n, 2.0, 150)) for n in (2, 5))
    deep, shrill = (put(folder, f"sing {hz}", tone(hz, 1.0)) for hz in (120, 280))
    assert pitch(deep) == pytest.approx(120, rel=0.02)
    judge = SignalJudge("ties")

    def wins(target: dict[str, str], first: Audio, second: Audio) -> str:
        asked = replace(instruction, target=target)
        return judge.judge(asked, first, second).winners["expression"]

    assert wins({"rate": "fast"}, slow, fast) == "second"
    assert wins({"rate": "Slow"}, slow, fast) == "first"
    assert wins({"pitch": "high"}, shrill, deep) == "first"
    assert wins({"pitch": "deep"}, shrill, deep) == "second"
    assert wins({"style": "whisper"}, slow, fast) in ("tie", "both_bad")
