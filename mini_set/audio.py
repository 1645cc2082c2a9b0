"""A synthesised recording made even: silence trimmed, peak set, written as Ogg/Opus."""

from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float32]  # [frames], mono, in [-1, 1]

MARGIN = 0.1  # s of silence kept before and after the speech
FRAME = 0.01  # s
SILENCE = 10 ** (-40 / 20)  # of the loudest frame's level: 40 dB below it
PEAK = 10 ** (-3 / 20)  # of full scale: lossy coding may overshoot
BIT_RATE = 16_000  # bit/s


def loud_frames(samples: Samples, rate: int) -> NDArray[np.int64]:
    """Numbers of the frames of `FRAME` seconds that are not silent, in order."""
    length = round(FRAME * rate)
    frames = samples[: len(samples) // length * length].reshape(-1, length)
    level = np.sqrt(np.mean(np.square(frames), axis=1))
    return np.flatnonzero(level > SILENCE * level.max())


def tidy(samples: Samples, rate: int) -> Samples:
    """Leave `MARGIN` seconds around the speech and scale it to `PEAK`."""
    loud = loud_frames(samples, rate)
    length = round(FRAME * rate)
    margin = np.zeros(round(MARGIN * rate), np.float32)
    around = np.concatenate([margin, samples, margin])
    first, last = loud[0] * length, (loud[-1] + 1) * length  # the margin before shifts both
    speech = around[first : last + 2 * len(margin)]
    return speech * np.float32(PEAK / np.abs(speech).max())


def write(path: Path, samples: Samples, rate: int) -> None:
    """Write Ogg/Opus at about `BIT_RATE`. libsndfile's level runs from 256 (0) to 6 kbit/s (1)."""
    level = (256_000 - BIT_RATE) / 250_000
    soundfile.write(path, samples, rate, format="OGG", subtype="OPUS", compression_level=level)
