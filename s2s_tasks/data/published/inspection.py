"""`Inspection`: what one look at a recording finds, from its bytes alone."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
import soundfile

from s2s_tasks.audio import CONTAINERS, SILENCE, Audio
from s2s_tasks.data.problems import Kind
from s2s_tasks.truncation import truncation

SHORTEST_SECONDS = 0.025
"""One analysis window of the usual speech front ends: nothing shorter yields a frame."""
_BLOCK = 1 << 20
"""Frames decoded at a time, so that a long recording does not fill memory."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A recording that decodes, or the reason why it does not."""

    audio: Audio | None = None
    format: str = ""
    """Container and encoding, as libsndfile names them."""
    signal: str = ""
    """Hash of rate and decoded samples: two recordings with one hash sound the same."""
    fault: Kind | None = None
    detail: str = ""


def inspect(data: bytes, path: str, cell: str | None = None) -> Inspection:
    """Decode a recording once and report on it; `path` and `cell` say where the bytes lie."""
    if not data:
        return Inspection(fault=Kind.AUDIO_EMPTY, detail="0 bytes")
    if cut := truncation(data):
        return Inspection(fault=Kind.AUDIO_TRUNCATED, detail=cut)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            if file.format not in CONTAINERS:
                return Inspection(fault=Kind.AUDIO_UNREADABLE, detail=f"a {file.format} file")
            audio = Audio(
                path=path,
                sha256=hashlib.sha256(data).hexdigest(),
                sampling_rate=file.samplerate,
                frames=file.frames,
                channels=file.channels,
                cell=cell,
            )
            return _listen(file, audio)
    except soundfile.LibsndfileError as error:
        return Inspection(fault=Kind.AUDIO_UNREADABLE, detail=str(error))


def _listen(file: soundfile.SoundFile, audio: Audio) -> Inspection:
    """Decode everything: promises of the header are only believed once kept."""
    signal = hashlib.sha256(f"{audio.sampling_rate} {audio.channels} ".encode())
    frames, peak = 0, 0.0
    while len(block := file.read(_BLOCK, dtype="float32", always_2d=True)):
        signal.update(block.tobytes())
        frames += len(block)
        peak = float(np.maximum(peak, np.abs(block).max()))  # keeps a nan, as max() does not
    fault, detail = None, ""
    if audio.frames == 0:
        fault, detail = Kind.AUDIO_EMPTY, "no samples"
    elif frames < audio.frames:
        fault, detail = Kind.AUDIO_TRUNCATED, f"{frames} of {audio.frames} frames decode"
    elif not np.isfinite(peak):
        fault, detail = Kind.AUDIO_NOT_FINITE, "it holds nan or inf"
    elif audio.seconds < SHORTEST_SECONDS:
        fault, detail = Kind.AUDIO_SHORT, f"{audio.seconds * 1000:.1f} ms"
    elif peak <= SILENCE:
        fault, detail = Kind.AUDIO_SILENT, f"{audio.seconds:.2f} s of silence"
    return Inspection(
        audio=None if fault else audio,
        format=f"{file.format}/{file.subtype}",
        signal=signal.hexdigest(),
        fault=fault,
        detail=detail,
    )
