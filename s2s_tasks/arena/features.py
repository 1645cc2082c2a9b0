"""What can be measured of a recording without understanding it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import librosa
import numpy as np
import numpy.typing as npt
import pyloudnorm
from scipy.signal import butter, find_peaks, sosfiltfilt

from s2s_tasks.audio import Audio, Waveform, is_silent

RATE = 16000
"""Hz at which recordings are measured."""
QUIETEST = -70.0
"""LUFS below which ITU-R BS.1770-4 hears nothing; what silence gets."""
NO_SOUND = {"seconds": 0.0, "loudness": QUIETEST, "silence": 1.0, "rate": 0.0}
"""Features of an answer without sound."""
_BLOCK = 0.4
"""Seconds that BS.1770-4 measures at a time."""
_HOP = 160
_FRAME = 400
_QUIET = 40.0
"""dB below the loudest frame at which a frame is silence."""
_DIP = 2.0
"""dB that part two syllables, as de Jong and Wempe (2009) have it."""
_SYLLABLE = 25.0
"""dB below the loudest frame at which no syllable is, as they have it."""


@lru_cache(maxsize=4096)
def _measure(audio: Audio) -> tuple[tuple[str, float], ...]:
    signal = audio.load(RATE)
    return (
        ("seconds", audio.seconds),
        ("loudness", loudness(signal, RATE)),
        ("silence", silence_share(signal)),
        ("rate", syllable_rate(signal)),
    )


def features(audio: Audio) -> dict[str, float]:
    """Return `seconds`, `loudness` (LUFS), `silence` (share of the time), `rate` (syllables/s).

    Raises:
        AudioError: when the recording cannot be read.
    """
    return dict(_measure(audio))


def loudness(signal: Waveform, sampling_rate: int) -> float:
    """Return the integrated loudness of `[frames]` in LUFS (ITU-R BS.1770-4).

    A signal shorter than what the standard measures at a time is repeated: its level is the same.
    One without frames is silent.
    """
    if not len(signal):
        return QUIETEST
    shortest = int(np.ceil(_BLOCK * sampling_rate))
    if len(signal) < shortest:
        signal = np.tile(signal, -(-shortest // len(signal)))
    if is_silent(signal):
        return QUIETEST
    with np.errstate(all="ignore"):
        found = pyloudnorm.Meter(sampling_rate).integrated_loudness(signal.astype(np.float64))
    return max(float(found), QUIETEST)


def silence_share(signal: Waveform) -> float:
    """Return the share of frames, 10 ms apart, 40 dB or more below the loudest; at 16 kHz."""
    if not len(signal) or is_silent(signal):
        return 1.0
    level = _levels(signal)
    return float(np.mean(level <= level.max() - _QUIET))


def syllable_rate(signal: Waveform) -> float:
    """Return peaks of the intensity a second of `[frames]` at 16 kHz: about its syllables.

    After de Jong and Wempe (2009), doi:10.3758/BRM.41.2.385, without their test for voicing: the
    intensity is that of 300 to 3,000 Hz, where vowels are. Pauses count as time.
    """
    if len(signal) < _FRAME or is_silent(signal):
        return 0.0
    band = butter(4, (300, 3000), "bandpass", fs=RATE, output="sos")
    padding = min(27, len(signal) - 1)
    level = _levels(cast(Waveform, sosfiltfilt(band, signal, padlen=padding)), smooth=5)
    # Its ends are no dips, and a syllable may stand there.
    walled = np.concatenate([[level.min() - _QUIET], level, [level.min() - _QUIET]])
    peaks, _ = find_peaks(walled, prominence=_DIP, height=level.max() - _SYLLABLE)
    return len(peaks) / (len(signal) / RATE)


@lru_cache(maxsize=4096)
def pitch(audio: Audio) -> float | None:
    """Return the median pitch of the voiced frames in Hz (pYIN); None where none is voiced."""
    track, voiced, _ = librosa.pyin(audio.load(RATE), fmin=60, fmax=500, sr=RATE, frame_length=1024)
    return float(np.median(track[voiced])) if voiced.any() else None


@lru_cache(maxsize=4096)
def speech_quality(audio: Audio) -> float:
    """Return the overall quality that DNSMOS P.835 predicts (arXiv 2110.01763): 1 to 5.

    It hears 9.01 s at a time. A shorter recording is repeated until it is as long, and no longer,
    which its authors' script would hear several times over.
    """
    # Its models load slowly, and most that is measured does without.
    from speechmos import dnsmos

    signal = audio.load(RATE)
    within = signal / max(1.0, float(np.abs(signal).max()))
    within = np.resize(within, max(len(within), round(dnsmos.INPUT_LENGTH * RATE)))
    return float(dnsmos.run(within, RATE)["ovrl_mos"])


def _levels(signal: Waveform, smooth: int = 1) -> npt.NDArray[np.floating[Any]]:
    """Return dB of frames 10 ms apart, averaged over `smooth` of them."""
    power = librosa.feature.rms(y=signal, frame_length=_FRAME, hop_length=_HOP)[0] ** 2
    if smooth > 1:
        power = np.convolve(power, np.ones(smooth) / smooth, mode="same")
    return cast(npt.NDArray[np.floating[Any]], 10 * np.log10(np.maximum(power, 1e-12)))
