"""Whether there is anything to hear, by what judges hear."""

from __future__ import annotations

from s2s_tasks.audio import Audio, AudioError, Waveform, decode_channels, is_silent, mix

LOWEST = 16000
"""Hz of the lowest rate at which recordings are heard by judges, and measured."""


def is_soundless(audio: Audio) -> bool:
    """Tell whether a recording holds nothing to hear.

    Raises:
        AudioError: when it does not decode, or its channels cancel out where all are averaged.
    """
    channels = decode_channels(audio.read(), audio.name)
    if not is_nothing(mix(channels), audio.sampling_rate):
        return False
    if not all(is_nothing(channel, audio.sampling_rate) for channel in channels.T):
        raise AudioError(
            f"{audio.name}: its channels cancel out when they are averaged, and nothing is left to "
            "hear; keep one of them"
        )
    return True


def is_nothing(signal: Waveform, sampling_rate: int) -> bool:
    """Tell whether a signal `[frames]` is silent, or too short to be more than one sample."""
    return round(len(signal) * LOWEST / sampling_rate) <= 1 or is_silent(signal)
