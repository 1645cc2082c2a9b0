"""The canonical form on disk: one Parquet file a set, with the recordings embedded as they are.

`datasets.load_dataset` reads the files too. Three properties make them cheap to use:

- what a row says about its recordings (hash, rate, length) is a column of its own, so that rows
  are read without touching audio;
- row groups are small, so that one recording can be read by itself (`audio.read_cell`);
- recordings are dictionary-encoded, so that one which several rows of a group share is stored once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import s2s_tasks
from s2s_tasks.audio import Audio
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.rows import Row

FORMAT = 1
"""Raised whenever older readers would misread the file."""
_GROUP_BYTES = 1 << 20
"""A row group is closed once it holds this much audio: about what one read costs."""
_GROUP_BYTES_MOST = 8 << 20
"""... or this much, where the rows of one cluster are still coming."""
_DICTIONARY_BYTES = 1 << 30
"""No limit in practice: above it Parquet falls back to storing every recording again."""
_METADATA_KEY = b"s2s_tasks"
_AUDIO = ("context_audio", "ending_audio")

_RECORDINGS = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
_INFO = pa.list_(
    pa.struct(
        [
            ("sha256", pa.string()),
            ("sampling_rate", pa.int32()),
            ("frames", pa.int64()),
            ("channels", pa.int32()),
        ]
    )
)
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("context", pa.string()),
        ("endings", pa.list_(pa.string())),
        ("gold", pa.int32()),
        ("subject", pa.string()),
        ("pair_id", pa.string()),
        ("source_ids", pa.list_(pa.string())),
        ("context_audio_info", _INFO),
        ("ending_audio_info", _INFO),
        ("context_audio", _RECORDINGS),
        ("ending_audio", _RECORDINGS),
    ]
)
_LIGHT = [name for name in _SCHEMA.names if name not in _AUDIO]
_BYTES = [f"{column}.list.element.bytes" for column in _AUDIO]


def write_rows(path: Path, rows: Iterable[Row], *, source: str, licence: str = "unknown") -> int:
    """Write rows and their recordings; memory holds one row group at a time.

    The file appears under its name only when it is whole.

    Args:
        path: The file to write; its folder is made if need be.
        rows: The rows, in the order they are to be read back.
        source: Where the data came from, for the file's metadata.
        licence: The licence of the data, for the file's metadata.

    Returns:
        The number of rows written.

    Raises:
        AudioError: when a recording cannot be read or is not that of its handle.
        DataError: when the disk refuses.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            count = _write(part, rows, _metadata(source, licence))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written ({error}). "
            "What to do: free some space, or name another folder."
        ) from error
    return count


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file, and none of its audio.

    Raises:
        DataError: when it is not such a file, or one of a newer format.
    """
    read_metadata(path)
    # Many small groups: reading them in turn is faster than handing each to a thread.
    light = pq.ParquetFile(path).read(columns=_LIGHT, use_threads=False).to_pylist()
    return [_row(str(path), number, fields) for number, fields in enumerate(light)]


def read_metadata(path: Path) -> dict[str, Any]:
    """Return what `write_rows` noted: format, version, source and licence.

    Raises:
        DataError: when it is not such a file, or one of a newer format.
    """
    try:
        metadata: dict[bytes, bytes] = pq.read_schema(path).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: not a readable Parquet file ({error}). "
            "What to do: write it again with `s2s-tasks data prepare`."
        ) from error
    if _METADATA_KEY not in metadata:
        raise DataError(
            f"{path}: a Parquet file, but not one written by `s2s-tasks data prepare`. "
            "What to do: run that command on the folder and use the folder it writes."
        )
    noted: dict[str, Any] = json.loads(metadata[_METADATA_KEY])
    if noted["format"] > FORMAT:
        raise DataError(
            f"{path}: written in format {noted['format']} by s2s-tasks {noted['version']}; this "
            f"version ({s2s_tasks.__version__}) reads up to {FORMAT}. "
            "What to do: upgrade s2s-tasks, or prepare the data again."
        )
    return noted


def _write(path: Path, rows: Iterable[Row], metadata: dict[bytes, bytes]) -> int:
    count = 0
    with pq.ParquetWriter(
        path,
        _SCHEMA.with_metadata(metadata),
        use_dictionary=True,
        dictionary_pagesize_limit=_DICTIONARY_BYTES,
        # Recordings are compressed already, or wanted back fast.
        compression={leaf: "none" if leaf in _BYTES else "zstd" for leaf in _leaves()},
        write_statistics=False,
    ) as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, _SCHEMA), row_group_size=len(group))
            count += len(group)
    return count


def _groups(rows: Iterable[Row]) -> Iterator[list[dict[str, Any]]]:
    """Collect rows into groups; clusters, which share recordings, are kept together."""
    group: list[dict[str, Any]] = []
    hashes: set[str] = set()
    size, cluster = 0, None
    for row in rows:
        same_cluster = row.pair_id is not None and row.pair_id == cluster
        if size > (_GROUP_BYTES_MOST if same_cluster else _GROUP_BYTES):
            yield group
            group, hashes, size = [], set(), 0
        fields = _fields(row)
        for column in _AUDIO:
            for info, recording in zip(fields[f"{column}_info"], fields[column], strict=True):
                size += 0 if info["sha256"] in hashes else len(recording["bytes"])
                hashes.add(info["sha256"])
        group.append(fields)
        cluster = row.pair_id
    if group:
        yield group


def _fields(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "language": row.language,
        "context": row.context,
        "endings": row.endings,
        "gold": row.gold,
        "subject": row.subject,
        "pair_id": row.pair_id,
        "source_ids": row.source_ids,
        "context_audio_info": [_info(audio) for audio in row.context_audio],
        "ending_audio_info": [_info(audio) for audio in row.ending_audio],
        "context_audio": [_recording(audio) for audio in row.context_audio],
        "ending_audio": [_recording(audio) for audio in row.ending_audio],
    }


def _info(audio: Audio) -> dict[str, Any]:
    return {field.name: getattr(audio, field.name) for field in _INFO.value_type}


def _recording(audio: Audio) -> dict[str, Any]:
    name = PurePosixPath(audio.path).name if audio.cell is None else None
    return {"bytes": audio.read(), "path": name}


def _row(path: str, number: int, fields: dict[str, Any]) -> Row:
    def handles(column: str) -> tuple[Audio, ...]:
        infos: Sequence[dict[str, Any]] = fields[f"{column}_info"]
        return tuple(
            Audio(path=path, cell=f"{column}/{number}/{item}", **info)
            for item, info in enumerate(infos)
        )

    return Row(
        id=fields["id"],
        language=fields["language"],
        context=fields["context"],
        endings=tuple(fields["endings"]),
        gold=fields["gold"],
        context_audio=handles("context_audio"),
        ending_audio=handles("ending_audio"),
        subject=fields["subject"],
        pair_id=fields["pair_id"],
        source_ids=tuple(fields["source_ids"]),
    )


def _metadata(source: str, licence: str) -> dict[bytes, bytes]:
    noted = {
        "format": FORMAT,
        "version": s2s_tasks.__version__,
        "source": source,
        "licence": licence,
    }
    info = {"info": {"features": _features()}}
    return {_METADATA_KEY: json.dumps(noted).encode(), b"huggingface": json.dumps(info).encode()}


def _features() -> dict[str, Any]:
    """Return the schema as `datasets` writes it, which is what makes recordings `Audio` there.

    Decoding is off: the bytes are for whoever loads them to decode.
    """
    return {
        field.name: [{"_type": "Audio", "decode": False}]
        if field.name in _AUDIO
        else _feature(field.type)
        for field in _SCHEMA
    }


def _feature(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return [_feature(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _feature(field.type) for field in kind}
    return {"_type": "Value", "dtype": str(kind)}


def _leaves() -> list[str]:
    return [leaf for field in _SCHEMA for leaf in _leaves_below(field.name, field.type)]


def _leaves_below(name: str, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_list(kind):
        yield from _leaves_below(f"{name}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves_below(f"{name}.{field.name}", field.type)
    else:
        yield name
