"""The arena's mini set: what it covers, and that its cues are in the sound."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import yaml

from s2s_tasks.arena.data.sources import load
from s2s_tasks.arena.data.taxonomy import canonical, taxonomy
from s2s_tasks.arena.features import loudness, syllable_rate
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Waveform

MAKING = Path(__file__).parents[1] / "arena_mini"
sys.path.insert(0, str(MAKING))
import cue_measures  # noqa: E402
from cue_measures import RATE  # noqa: E402


@cache
def mini() -> list[Instruction]:
    return load(mini=True)


def test_it_covers_everything_in_both_languages() -> None:
    counts = Counter((i.domain, i.level, i.language) for i in mini())
    assert len(counts) == 4 * 4 * 2
    assert set(counts.values()) == {2}
    for language in ("en", "zh"):
        assert {i.task for i in mini() if i.language == language} == set(taxonomy().tasks)
    assert canonical(mini()) == (mini(), [])


def test_levels_have_the_cues_and_targets_that_they_are_about() -> None:
    for instruction in mini():
        assert bool(instruction.cue) == (instruction.level in (2, 4)), instruction.id
        assert bool(instruction.target) == (instruction.level in (3, 4)), instruction.id
        assert instruction.evaluation


def test_it_is_the_texts_that_a_person_reads() -> None:
    entries = yaml.safe_load((MAKING / "instructions.yaml").read_text("utf-8"))
    assert [i.id for i in mini()] == [
        f"mini-{entry['id']}-{language}" for entry in entries for language in ("en", "zh")
    ]
    for entry in entries:
        for language in ("en", "zh"):
            said = entry[language]["say"]
            pieces = [said] if isinstance(said, str) else [part["text"] for part in said]
            (instruction,) = [i for i in mini() if i.id == f"mini-{entry['id']}-{language}"]
            assert instruction.text == (" " if language == "en" else "").join(pieces)
            assert instruction.evaluation == entry[language]["evaluation"]


def test_it_is_small_and_names_its_licence() -> None:
    path = Path(mini()[0].audio.path)
    assert path.stat().st_size < 3e6
    assert pq.read_schema(path).metadata[b"licence"] == b"Apache-2.0"


def test_every_recording_is_heard() -> None:
    for instruction in mini():
        signal = instruction.audio.load(RATE)
        assert 0.02 < np.abs(signal).max() <= 1.0
        assert 2 < instruction.audio.seconds < 15
        assert instruction.audio.channels == 1


# Cues: each recording against the same words without the cue


@cache
def twins(**cue: str) -> list[tuple[Waveform, Waveform]]:
    """Return pairs of signals: with a cue, without."""
    found = [(i, plain) for i, plain in cue_measures.contrasts() if cue.items() <= i.cue.items()]
    assert {i.language for i, _ in found} == {"en", "zh"}
    return [(i.audio.load(RATE), plain.load(RATE)) for i, plain in found]


def opening(signal: Waveform) -> Waveform:
    """Return the pitch of the first three seconds: all would take long."""
    return cue_measures.pitch_track(signal[: 3 * RATE])


def ending(signal: Waveform) -> Waveform:
    """Return the pitch of the last three seconds."""
    return cue_measures.pitch_track(signal[-3 * RATE :])


def pitch(signal: Waveform) -> float:
    return cue_measures.median_pitch(opening(signal))


def test_every_cue_has_its_contrast() -> None:
    assert [i for i, _ in cue_measures.contrasts()] == [i for i in mini() if i.cue]


def test_children_are_high() -> None:
    for cued, plain in twins(age="child"):
        assert pitch(cued) > 1.2 * pitch(plain)


def test_the_elderly_are_slow() -> None:
    for cued, plain in twins(age="elderly"):
        assert len(cued) > 1.2 * len(plain)
        assert syllable_rate(cued) < syllable_rate(plain)


def test_the_happy_are_high_and_quick() -> None:
    for cued, plain in twins(emotion="happy"):
        assert pitch(cued) > 1.05 * pitch(plain)
        assert len(cued) < len(plain)
        assert syllable_rate(cued) > syllable_rate(plain)


def test_the_sad_are_slow_and_quiet_and_end_low() -> None:
    for cued, plain in twins(emotion="sad"):
        assert len(cued) > 1.15 * len(plain)
        low, high = (cue_measures.median_pitch(ending(signal)) for signal in (cued, plain))
        assert low < 0.97 * high
        assert loudness(cued, RATE) < loudness(plain, RATE) - 4


def test_the_angry_are_loud_and_high() -> None:
    for cued, plain in twins(emotion="angry"):
        assert loudness(cued, RATE) > loudness(plain, RATE) + 3
        assert pitch(cued) > 1.05 * pitch(plain)


def test_the_hurried_are_fast() -> None:
    for cued, plain in twins(rate="fast"):
        assert len(cued) < 0.8 * len(plain)
        assert syllable_rate(cued) > 1.05 * syllable_rate(plain)


def test_sarcasm_is_drawn_out() -> None:
    for cued, plain in twins(style="sarcastic"):
        assert len(cued) > 1.15 * len(plain)
        assert syllable_rate(cued) < 0.9 * syllable_rate(plain)


def test_whispers_have_no_voice() -> None:
    for cued, plain in twins(style="whispered"):
        assert cue_measures.voiced_share(opening(cued)) < 0.1
        assert cue_measures.voiced_share(opening(plain)) > 0.4


def test_rain_falls_before_the_words() -> None:
    for cued, plain in twins(noise="rain"):
        assert cue_measures.edge(cued) > -30
        assert cue_measures.edge(plain) < -40


def test_men_are_low() -> None:
    for cued, plain in twins(gender="male"):
        assert pitch(cued) < 0.8 * pitch(plain)


def test_pauses_are_long() -> None:
    for cued, plain in twins(style="pauses"):
        spare = cue_measures.longest_pauses(cued, 2) - cue_measures.longest_pauses(plain, 2)
        assert spare > 0.8


def test_stressed_words_are_high_and_long() -> None:
    for cued, plain in twins(style="stress"):
        with_stress, without = (cue_measures.median_pitch(ending(s)) for s in (cued, plain))
        assert with_stress > 1.05 * without
        assert len(cued) > len(plain) + 0.5 * RATE
