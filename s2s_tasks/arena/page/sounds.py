"""Recordings as they are served: the sound alone, without whatever a file tells beside it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import soundfile

from s2s_tasks.audio import Audio, decode_channels


def anonymous(audio: Audio, folder: Path) -> Path:
    """Return a WAV file of 16 bits with the sound of a recording, made when it is first asked for.

    Rate, channels and loudness stay as they are; tags, names and codec are gone.

    Raises:
        AudioError: when the recording cannot be read.
    """
    path = folder / f"{audio.sha256}.wav"
    if not path.exists():
        # PCM: files of floats carry the time at which they were written.
        part = folder / f"{uuid.uuid4().hex}.part"
        signal = decode_channels(audio.read(), audio.name)
        soundfile.write(part, signal, audio.sampling_rate, format="WAV", subtype="PCM_16")
        os.replace(part, path)
    return path
