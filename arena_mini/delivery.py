"""How a cue gets into a neutral voice: speed, pitch, level, breath, noise.

Pitch is moved as a tape is: played faster, a voice is higher, and so are its formants, as of a
smaller speaker. Who speaks is asked for the contrary speed beforehand, so that the pace is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import librosa
import numpy as np
import yaml
from numpy.typing import NDArray
from scipy.signal import butter, lfilter, sosfilt

Samples = NDArray[np.float32]
Pair = tuple[float, float]
ORDER = 24
"""Of the linear prediction of a whisper, at 24 kHz: a formant a kHz, and some for the tilt."""
FRAME = 0.025
"""Seconds over which a vocal tract stands still."""


@dataclass(frozen=True)
class Delivery:
    """How something is said; deliveries.yaml says what the fields mean."""

    speed: float = 1.0
    pitch: Pair = (0.0, 0.0)
    swing: Pair = (0.0, 1.0)
    level: Pair = (0.0, 0.0)
    loud: float = 0.0
    """dB by which the loudest samples are driven into saturation, as in shouting."""
    whisper: bool = False
    rain: Pair | None = None

    @property
    def synthesis_speed(self) -> float:
        """What the synthesiser must be asked for, so that `speed` comes out in the end."""
        return self.speed / 2 ** (sum(self.pitch) / 2 / 12)

    def apply(self, speech: Samples, rate: int) -> Samples:
        """Return the speech as it is delivered, without noise."""
        speech = _glide(speech, rate, self.pitch, self.swing)
        if self.whisper:
            speech = whispered(speech, rate)
        if self.loud:
            speech = np.tanh(_gain(self.loud) * speech / np.abs(speech).max())
        levels = np.linspace(*self.level, len(speech))
        return (speech * 10 ** (levels / 20)).astype(np.float32)


def read(path: Path) -> dict[str, Delivery]:
    """Return the deliveries of a file by name."""
    entries: Mapping[str, Mapping] = yaml.safe_load(path.read_text("utf-8"))
    return {
        name: Delivery(**{k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()})
        for name, entry in entries.items()
    }


def _glide(speech: Samples, rate: int, pitch: Pair, swing: Pair) -> Samples:
    """Play faster or slower, as the pitch wants it at each moment."""
    if not (any(pitch) or swing[0]):
        return speech
    seconds = np.arange(len(speech)) / rate
    semitones = np.linspace(*pitch, len(speech))
    semitones += swing[0] * np.sin(2 * np.pi * swing[1] * seconds)
    # Each sample lasts as long as the tape takes to pass it; fourfold, so that straight lines do.
    passed = np.cumsum(2 ** (-semitones / 12))
    fine = librosa.resample(speech, orig_sr=rate, target_sr=4 * rate, res_type="soxr_hq")
    at = np.interp(np.arange(int(passed[-1])), passed, np.arange(len(speech)))
    glided = np.interp(4 * at, np.arange(len(fine)), fine)
    return glided.astype(np.float32)


def whispered(speech: Samples, rate: int) -> Samples:
    """Return the speech with noise in place of the voice: its vocal tract, by linear prediction.

    Voiced sounds lose their low end, as whispered ones have little of it.
    """
    length = round(FRAME * rate) // 2 * 2
    hop = length // 2
    window = np.hanning(length + 1)[:-1]
    noise = np.random.default_rng(0).standard_normal(len(speech))
    out = np.zeros(len(speech) + length)
    emphasised = lfilter([1, -0.95], [1], speech)
    for start in range(0, len(speech) - length, hop):
        frame = emphasised[start : start + length] * window
        if np.abs(frame).max() < 1e-4:
            continue
        tract = librosa.lpc(frame, order=ORDER)
        residual = np.sqrt(np.mean(lfilter(tract, [1], frame) ** 2))
        excited = lfilter([1], tract, residual * noise[start : start + length])
        out[start : start + length] += excited * window
    low = butter(2, 250, "highpass", fs=rate, output="sos")
    return sosfilt(low, lfilter([1], [1, -0.7], out[: len(speech)])).astype(np.float32)


def with_rain(speech: Samples, rate: int, level: float, around: float) -> Samples:
    """Return the speech in rain, `level` dB against it: a steady hiss and the drops before it.

    It rains `around` seconds before and after, too.
    """
    draw = np.random.default_rng(1)
    loudness = _rms(speech)
    speech = np.pad(speech, round(around * rate))
    hiss = draw.standard_normal(len(speech)) * 0.35
    drops = np.where(draw.random(len(speech)) < 60 / rate, draw.exponential(14, len(speech)), 0.0)
    ring = np.exp(-np.arange(round(0.012 * rate)) / (0.002 * rate))
    ring *= draw.standard_normal(len(ring))
    rain = hiss + np.convolve(drops, ring)[: len(speech)]
    band = butter(1, (500, 7000), "bandpass", fs=rate, output="sos")
    rain = sosfilt(band, rain)
    rain *= _gain(level) * loudness / _rms(rain)
    return (speech + rain).astype(np.float32)


def _gain(decibels: float) -> float:
    return float(10 ** (decibels / 20))


def _rms(signal: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(signal))))
