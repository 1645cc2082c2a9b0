"""What can be measured of a cue: pitch, pace, loudness, pauses, voice, noise."""

from __future__ import annotations

import librosa
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from s2s_tasks.arena.data.sources import load
from s2s_tasks.arena.features import loudness, syllable_rate
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, probe_bytes

RATE = 16_000
"""Hz at which signals are measured."""
Signal = NDArray[np.float32]


def contrasts() -> list[tuple[Instruction, Audio]]:
    """Return the instructions whose voice bears a cue, and the same words without it."""
    instructions = load(mini=True)
    path = instructions[0].audio.path
    column = pq.read_table(path, columns=["contrast"])["contrast"].to_pylist()
    return [
        (instruction, probe_bytes(cells[0]["bytes"], path=path, cell=f"contrast/{number}/0"))
        for number, (instruction, cells) in enumerate(zip(instructions, column, strict=True))
        if cells
    ]


def measure(signal: Signal) -> dict[str, float]:
    """Return every measure of a signal `[frames]` at `RATE`."""
    track = pitch_track(signal)
    return {
        "seconds": len(signal) / RATE,
        "syllables/s": syllable_rate(signal),
        "pitch Hz": median_pitch(track),
        "high Hz": high_pitch(track),
        "voiced %": 100 * voiced_share(track),
        "LUFS": loudness(signal, RATE),
        "edge dB": edge(signal),
        "two pauses s": longest_pauses(signal, 2),
    }


def pitch_track(signal: Signal) -> Signal:
    """Return the pitch in Hz every 32 ms (pYIN); NaN where there is no voice."""
    track: Signal = librosa.pyin(
        signal, fmin=50, fmax=600, sr=RATE, frame_length=1024, hop_length=512, resolution=0.3
    )[0]
    return track


def median_pitch(track: Signal) -> float:
    """Return the median pitch in Hz; 0 where there is no voice."""
    voiced = track[~np.isnan(track)]
    return float(np.median(voiced)) if len(voiced) else 0.0


def high_pitch(track: Signal) -> float:
    """Return the pitch in Hz that a twentieth of the voiced frames exceed."""
    voiced = track[~np.isnan(track)]
    return float(np.percentile(voiced, 95)) if len(voiced) else 0.0


def voiced_share(track: Signal) -> float:
    """Return the share of frames that have a voice."""
    return float(np.mean(~np.isnan(track)))


def edge(signal: Signal) -> float:
    """Return the level of the first 50 ms, before anybody speaks, in dB of the loudest 50 ms."""
    size = RATE // 20
    frames = signal[: len(signal) // size * size].reshape(-1, size)
    levels = np.sqrt(np.mean(np.square(frames), axis=1))
    return float(20 * np.log10(max(levels[0], 1e-6) / levels.max()))


def longest_pauses(signal: Signal, count: int) -> float:
    """Return the seconds that the longest pauses have in all."""
    spoken = librosa.effects.split(signal, top_db=35, hop_length=160)
    pauses = np.sort(spoken[1:, 0] - spoken[:-1, 1])[-count:] / RATE
    return float(pauses.sum())
