"""Recordings that a published Parquet table embeds, unpacked into the cache.

Such tables are written in large row groups: reading one recording out of them costs as much as
reading hundreds. As files they cost what they are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from s2s_tasks.cache import cache_folder, file_key

_BATCH = 16
"""Recordings in memory at a time."""


def audio_column(schema: pa.Schema) -> str | None:
    """Return the first column of recordings as `datasets` stores them: bytes with a path."""
    for field in schema:
        if pa.types.is_struct(field.type) and field.type.get_field_index("bytes") >= 0:
            name: str = field.name
            return name
    return None


def unpack_recordings(tables: Iterable[Path]) -> dict[tuple[str, int], Path]:
    """Write the recordings of some tables to files; a killed run goes on where it stopped.

    Returns:
        The file of every row, by table and row number. Rows without bytes have none.
    """
    found = {}
    for table in tables:
        folder = cache_folder("parquet") / file_key(table)
        if not (folder / ".complete").exists():
            _unpack(table, folder)
        for path in folder.glob("*.audio"):
            found[str(table), int(path.stem)] = path
    return found


def _unpack(table: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    # Without pre-buffering the file is read as the batches go, not a row group at a time.
    file = pq.ParquetFile(table, pre_buffer=False, buffer_size=1 << 20)
    column = audio_column(file.schema_arrow)
    batches = file.iter_batches(_BATCH, columns=[column])
    cells = (cell for batch in batches for cell in batch.column(column))
    total = file.metadata.num_rows
    for row, cell in enumerate(tqdm(cells, f"unpacking {table.name}", total, unit="file")):
        path = folder / f"{row}.audio"
        data = cell["bytes"].as_py() if cell.is_valid else None
        if data is None or path.exists():
            continue
        part = path.with_name(f".{row}.{os.getpid()}.part")
        part.write_bytes(data)
        part.replace(path)
    (folder / ".complete").touch()
