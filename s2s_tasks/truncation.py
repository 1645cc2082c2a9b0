"""What an audio container holds against what libsndfile would make of it.

libsndfile clamps a cut wav or ogg to what is there, and an mp3 of varying bit rate to a guess of
its length, and says nothing: half a question would be scored as a whole one. (A cut flac or mp3
fails to decode, which `audio.decode` reports.)
"""

from __future__ import annotations

import struct

_UNKNOWN_SIZE = 0x7FFFF000
"""Writers to a pipe cannot know the length; sox writes this, ffmpeg 0xFFFFFFFF, others 0."""
_OGG_HEADER = 27
"""Bytes of an Ogg page before its segment table (RFC 3533, section 6)."""
_OGG_END_OF_STREAM = 4
"""Flag of the last page of a stream (RFC 3533, section 6)."""
_MPEG1_RATES = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
"""Bit rates of MPEG-1 layer III in kbit/s, by header index (ISO 11172-3, 2.4.2.3)."""
_MPEG2_RATES = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
"""The same for MPEG-2 and 2.5 (ISO 13818-3)."""
_MPEG1_SAMPLING = (44100, 48000, 32000)
"""Sampling rates of MPEG-1 in Hz; MPEG-2 has half of them, MPEG-2.5 a quarter."""
_MPEG_LENGTH_TAGS = (b"Xing", b"Info", b"VBRI")
"""Each marks a first frame that tells how many follow."""


def truncation(data: bytes) -> str | None:
    """Return why less than a whole recording would be decoded, or None where nothing is amiss."""
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        return _riff_truncation(data)
    if data[:4] == b"OggS":
        return _ogg_truncation(data)
    if data[:3] == b"ID3" or _mpeg_frame(data, 0):
        return _mpeg_truncation(data)
    return None


def _riff_truncation(data: bytes) -> str | None:
    at = 12
    while at + 8 <= len(data):
        tag, size = struct.unpack_from("<4sI", data, at)
        there = len(data) - at - 8
        if tag == b"data":
            known = 0 < size < _UNKNOWN_SIZE
            short = known and there < size
            return f"{there} of {size} bytes of samples are there" if short else None
        at += 8 + size + size % 2  # chunks are padded to even sizes
    return "it ends before its samples begin"


def _ogg_truncation(data: bytes) -> str | None:
    page = data[data.rfind(b"OggS\0") :]
    table_end = _OGG_HEADER + page[_OGG_HEADER - 1] if len(page) >= _OGG_HEADER else len(page) + 1
    if len(page) < table_end + sum(page[_OGG_HEADER:table_end]):
        return "its last page is cut"
    if not page[5] & _OGG_END_OF_STREAM:
        return "its end-of-stream page is missing"
    return None


def _mpeg_truncation(data: bytes) -> str | None:
    at = 0
    if data[:3] == b"ID3":  # its size is in four bytes of seven bits (ID3v2, section 3.1)
        high, second, third, low = data[6:10]
        at = 10 + (high << 21 | second << 14 | third << 7 | low)
    rates: set[int] = set()
    while frame := _mpeg_frame(data, at):
        rate, size = frame
        if not rates and any(tag in data[at : at + size] for tag in _MPEG_LENGTH_TAGS):
            return None
        rates.add(rate)
        at += size
    if len(rates) > 1:
        return (
            "its bit rate varies and it does not state its length, so that only a part would be "
            "decoded; convert it to flac"
        )
    return None


def _mpeg_frame(data: bytes, at: int) -> tuple[int, int] | None:
    """Return bit rate in kbit/s and size in bytes of a layer III frame, if there is one."""
    if len(data) < at + 4:
        return None
    (header,) = struct.unpack_from(">I", data, at)
    sync, version, layer = header >> 21, header >> 19 & 3, header >> 17 & 3
    rate_index, sampling_index, padding = header >> 12 & 15, header >> 10 & 3, header >> 9 & 1
    if sync != 0x7FF or layer != 1 or rate_index in (0, 15) or sampling_index == 3 or version == 1:
        return None
    first = version == 3
    rate = (_MPEG1_RATES if first else _MPEG2_RATES)[rate_index]
    sampling = _MPEG1_SAMPLING[sampling_index] // {3: 1, 2: 2, 0: 4}[version]
    return rate, (144_000 if first else 72_000) * rate // sampling + padding
