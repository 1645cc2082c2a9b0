"""`Audio`: a handle on one recording. It knows where the sound is and keeps none of it."""

from __future__ import annotations

import hashlib
import io
from bisect import bisect_right
from dataclasses import MISSING, asdict, dataclass, fields
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import soundfile
import soxr

from s2s_tasks.errors import S2STasksError
from s2s_tasks.truncation import truncation

Waveform = npt.NDArray[np.float32]
CONTAINERS = ("WAV", "WAVEX", "FLAC", "OGG", "MP3", "MPEG")
"""What is read, by libsndfile's names."""


LOUDEST = 16.0
"""Peak beyond which samples cannot be on the scale where 1 is full. Float files of careless mixes
go a few times beyond 1 and are heard as they are; integers that were written as floats without
being divided, of 16 bits or more, go up to 32,768, which no model was trained on."""
SILENCE = 2.0**-15
"""The step of 16-bit samples: what never exceeds it (lossy codecs of nothing do not reach zero
exactly) holds no sound."""


class AudioError(S2STasksError):
    """A recording that is missing, unreadable or not what its handle says."""


@dataclass(frozen=True, slots=True)
class Audio:
    """Where a recording is, and what it must be.

    Small, hashable and JSON-able, so that requests can be cached and logged while the sound
    itself stays on disk until `load`.
    """

    path: str
    """The file that holds the recording, or the Parquet file it is embedded in."""
    sha256: str
    """Hash of the encoded bytes: two handles with one hash are one recording."""
    sampling_rate: int
    """Of the stored recording, in Hz."""
    frames: int
    """Length of the stored recording, in frames (samples per channel)."""
    channels: int
    cell: str | None = None
    """Of an embedded recording: `column/row/item`, or `column/row` where a row has one and no list;
    None when `path` is the recording itself."""
    language: str | None = None
    """Spoken language (ISO 639-1), where known: recognizers need not guess it."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return self.frames / self.sampling_rate

    @property
    def name(self) -> str:
        """The recording as error messages name it."""
        return f"{self.path}#{self.cell}" if self.cell else self.path

    def read(self) -> bytes:
        """Return the encoded bytes.

        Raises:
            AudioError: when the file is gone or the bytes are not those of the handle.
        """
        try:
            data = read_cell(self.path, self.cell) if self.cell else Path(self.path).read_bytes()
        except (OSError, LookupError, pa.ArrowException) as error:
            raise AudioError(f"{self.name}: cannot read the recording: {error}") from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise AudioError(
                f"{self.name}: the recording changed since it was indexed; start the run again"
            )
        return data

    def load(self, sampling_rate: int) -> Waveform:
        """Decode to mono float32 `[frames]` at `sampling_rate` Hz, where full scale is 1.

        Floats beyond full scale stay as they are, and nothing is clipped. Several channels are
        averaged; another rate is resampled with soxr (HQ).

        Raises:
            AudioError: when the bytes do not decode to a finite signal.
        """
        return resample(decode(self.read(), self.name), self.sampling_rate, sampling_rate)

    def to_json(self) -> dict[str, Any]:
        """Return the handle as a small JSON object, the form that lm-eval's requests carry."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Audio:
        """Build the handle that `to_json` wrote."""
        return cls(**fields)


def is_handle(value: object) -> bool:
    """Tell whether something is what `Audio.to_json` writes."""
    if not isinstance(value, dict):
        return False
    needed = {field.name for field in fields(Audio) if field.default is MISSING}
    return needed <= value.keys() <= {field.name for field in fields(Audio)}


def probe(path: str | Path) -> Audio:
    """Return the handle of a sound file.

    Raises:
        AudioError: when the file is missing, empty or not audio.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise AudioError(f"{path}: cannot read the recording: {error}") from error
    return probe_bytes(data, path=str(path))


def probe_bytes(data: bytes, *, path: str, cell: str | None = None) -> Audio:
    """Return the handle of encoded audio that lies at `path` (and `cell`).

    Raises:
        AudioError: when `data` is empty or not audio.
    """
    name = f"{path}#{cell}" if cell else path
    if not data:
        raise AudioError(f"{name}: the recording is empty (0 bytes)")
    if cut := truncation(data):
        raise AudioError(f"{name}: the recording is truncated: {cut}")
    try:
        info = soundfile.info(io.BytesIO(data))
    except soundfile.LibsndfileError as error:
        raise AudioError(
            f"{name}: not a recording that can be decoded ({error}); "
            "wav, flac, ogg/opus and mp3 can"
        ) from error
    if info.format not in CONTAINERS:
        raise AudioError(
            f"{name}: {info.format} files are not read, because a truncated one cannot be told "
            "from a whole one; convert it to wav or flac"
        )
    if info.frames == 0:
        raise AudioError(f"{name}: the recording has no samples")
    return Audio(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        sampling_rate=info.samplerate,
        frames=info.frames,
        channels=info.channels,
        cell=cell,
    )


def decode(data: bytes, name: str) -> Waveform:
    """Decode to mono float32 `[frames]` as `decode_channels` does; channels are averaged.

    Raises:
        AudioError: when decoding fails, ends early or yields a value that is not finite.
    """
    return mix(decode_channels(data, name))


def decode_channels(data: bytes, name: str) -> Waveform:
    """Decode to float32 `[frames, channels]` at the stored rate.

    Integers are scaled to [-1, 1]; floats stay as they are, those beyond it too.

    Raises:
        AudioError: when decoding fails, ends early or yields a value that is not finite.
    """
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            promised = file.frames
            signal = file.read(dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{name}: the recording does not decode: {error}") from error
    if len(signal) < promised:
        raise AudioError(
            f"{name}: the recording is truncated: {len(signal)} of {promised} frames decode"
        )
    if not np.isfinite(signal).all():
        raise AudioError(f"{name}: the recording holds values that are not finite numbers")
    return cast(Waveform, signal)


def mix(channels: Waveform) -> Waveform:
    """Average `[frames, channels]` to `[frames]`."""
    mono: Waveform = channels.mean(axis=1, dtype=np.float32)
    return mono


def is_silent(signal: Waveform) -> bool:
    """Tell whether a signal `[frames]` never leaves its mean by more than a 16-bit step."""
    return bool(np.abs(signal - signal.mean()).max(initial=0.0) <= SILENCE)


def resample(signal: Waveform, source_rate: int, target_rate: int) -> Waveform:
    """Resample `[frames]` from one rate to another, both in Hz."""
    if source_rate == target_rate:
        return signal
    resampled: Waveform = soxr.resample(signal, source_rate, target_rate, quality="HQ")
    return resampled


def read_cell(path: str, cell: str) -> bytes:
    """Return the bytes that a Parquet file embeds at `column/row/item`, or at `column/row`.

    Raises:
        OSError: when the file cannot be read.
        LookupError: when there is no such cell, or it holds no bytes.
    """
    column, row, *item = cell.split("/")
    stat = Path(path).stat()
    with _PARQUET:
        file, first_rows = _parquet(path, stat.st_size, stat.st_mtime_ns)
        group = bisect_right(first_rows, int(row)) - 1
        if not 0 <= group < file.num_row_groups:
            raise LookupError(f"there is no row {row}")
        table = file.read_row_group(group, columns=[column], use_threads=False)
        cells = table.column(column)
    recording = cells[int(row) - first_rows[group]]
    if item:
        recording = recording[int(item[0])]
    data: bytes | None = recording["bytes"].as_py()
    if data is None:
        raise LookupError("the cell holds no recording")
    return data


_PARQUET = Lock()
"""Adapters load audio from several threads; an Arrow file reader serves one at a time."""


@lru_cache(maxsize=8)
def _parquet(path: str, size: int, mtime_ns: int) -> tuple[pq.ParquetFile, list[int]]:
    """Open a Parquet file once a version; with the first row of every group, and the row count."""
    file = pq.ParquetFile(path)
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    return file, [0, *accumulate(sizes)]
