"""Sounds for tests of judges, and of what they measure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, Waveform, probe

RATE = 16000


def tone(pitch: float, seconds: float = 1.0, level: float = 0.2, rate: int = RATE) -> Waveform:
    time = np.arange(round(seconds * rate)) / rate
    return (level * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def bursts(per_second: float, seconds: float = 3.0, pitch: float = 500.0) -> Waveform:
    time = np.arange(round(seconds * RATE)) / RATE
    swing = 0.5 - 0.5 * np.cos(2 * np.pi * per_second * time)
    return (swing * tone(pitch, seconds)).astype(np.float32)


def put(folder: Path, name: str, signal: Waveform, rate: int = RATE) -> Audio:
    path = folder / f"{name}.wav"
    soundfile.write(path, signal, rate)
    return probe(path)


def asked(folder: Path) -> Instruction:
    """Return an instruction whose words no judge may get to read."""
    audio = put(folder, "instruction", tone(300, 0.8, rate=24000), 24000)
    return Instruction("q/1", audio, "The secret words.", "en", "Education", "rhythm", 3)
