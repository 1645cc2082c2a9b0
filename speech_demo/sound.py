"""What rooms and bystanders do to a recording: pure functions on samples at one rate."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import signal

Samples = NDArray[np.float32]  # [frames], mono


def mix(speech: Samples, noise: Samples, snr: float) -> Samples:
    """Add noise at a signal-to-noise ratio in dB, both measured over the whole recording."""
    gain = np.sqrt(power(speech) / power(noise) / 10 ** (snr / 10))
    return (speech + gain * noise).astype(np.float32)


def power(samples: Samples) -> float:
    """Mean square."""
    return float(np.mean(np.square(samples, dtype=np.float64)))


def white(frames: int, draw: np.random.Generator) -> Samples:
    """Noise that holds all frequencies alike."""
    return draw.standard_normal(frames, dtype=np.float32)


def babble(frames: int, voices: Sequence[Samples], draw: np.random.Generator) -> Samples:
    """Several people talking at once, all as loud, each looped from a random place."""
    talkers = [
        np.resize(np.roll(voice, int(draw.integers(len(voice)))), frames) / np.sqrt(power(voice))
        for voice in voices
    ]
    return np.sum(talkers, axis=0, dtype=np.float32)


def room(seconds: float, rate: int, draw: np.random.Generator, direct: float = 6.0) -> Samples:
    """Impulse response of a room: the direct sound, then noise that decays by 60 dB in `seconds`.

    The classic model of a diffuse field (Moorer 1979, "About this reverberation business").

    Args:
        seconds: the reverberation time, RT60.
        rate: in Hz.
        draw: where the noise comes from.
        direct: how far the direct sound lies above the reverberation, in dB.
    """
    frames = np.arange(round(seconds * rate))
    tail = draw.standard_normal(len(frames)) * 10 ** (-3 * frames / len(frames))
    tail[0] = 0
    tail *= np.sqrt(10 ** (-direct / 10) / np.sum(tail**2))
    tail[0] = 1
    return tail.astype(np.float32)


def reverberate(speech: Samples, response: Samples) -> Samples:
    """Let a recording sound in a room; as long as before."""
    return signal.fftconvolve(speech, response)[: len(speech)].astype(np.float32)
