"""Recordings as they are served: the sound alone, without whatever a file tells beside it."""

from __future__ import annotations

import io
import re

import soundfile
from fastapi import Response

from s2s_tasks.arena.page.work import draw
from s2s_tasks.audio import Waveform, decode, probe_bytes, resample

PADDING = 0.25
"""Seconds of silence, at most, that follow a recording."""
_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")


def waveform(data: bytes, name: str, rate: int) -> Waveform:
    """Decode a recording as `Audio.load` does.

    Raises:
        AudioError: when it does not decode.
    """
    return resample(decode(data, name), probe_bytes(data, path=name).sampling_rate, rate)


def anonymous(signal: Waveform, rate: int, id: str) -> bytes:
    """Return a WAV file of 16 bits with a sound, and a little silence whose length hangs on the id.

    So neither the size of a file nor its rate tells an answer that is heard twice, or silence that
    is as long as the answer it meets.
    """
    file = io.BytesIO()
    # PCM: files of floats carry the time at which they were written.
    with soundfile.SoundFile(file, "w", rate, 1, format="WAV", subtype="PCM_16") as wav:
        wav.write(signal)
        wav.write([0.0] * (draw("padding", id) % round(PADDING * rate)))
    return file.getvalue()


def respond(data: bytes, asked: str) -> Response:
    """Return a recording, or the part of it that a `Range` header asks for (RFC 9110, 14).

    Headers that ask for several parts, or cannot be read, are passed over, as they may be.
    """
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private"}
    first, last = found.groups() if (found := _RANGE.fullmatch(asked)) else ("", "")
    size = len(data)
    if first:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    elif last:
        start, end = max(size - int(last), 0), size
    else:
        return Response(data, 200, headers, "audio/wav")
    if start >= size:
        return Response(b"", 416, headers | {"Content-Range": f"bytes */{size}"}, "audio/wav")
    if last and first and int(last) < start:
        return Response(data, 200, headers, "audio/wav")
    headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return Response(data[start:end], 206, headers, "audio/wav")
