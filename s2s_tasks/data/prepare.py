"""The canonical copy of a data set: one Parquet file a set, see `parquet`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tqdm import tqdm

from s2s_tasks.audio import Audio
from s2s_tasks.data.card import write_card
from s2s_tasks.data.check import read_source
from s2s_tasks.data.parquet import read_rows, write_rows
from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published.index import AudioIndex
from s2s_tasks.data.rows import Row


def prepare(source: Path, target: Path, names: Sequence[str], licence: str) -> None:
    """Write the canonical copy of some sets; a set that is there already, unchanged, is kept.

    Raises:
        DataError: when a set is not there, or anything in it is wrong.
    """
    if target.exists() and source.samefile(target):
        raise DataError(f"{target}: is the folder to read from. What to do: name another one.")
    index = AudioIndex(source)
    for name in names:
        found = read_source(source, name, index)
        if found.problems:
            raise DataError(
                f"{name}: {len(found.problems)} problems; it was not written.", found.problems
            )
        path = target / f"{name}.parquet"
        if path.exists() and _alike(read_rows(path), found.rows):
            print(f"{path}: already there, kept")
            continue
        rows = tqdm(found.rows, desc=f"{name}: writing", unit="row")
        count = write_rows(path, rows, source=found.name, licence=licence)
        print(f"{path}: {count} rows, {path.stat().st_size / 1e6:.1f} MB")
    write_card(target, "S2SBench")


def _alike(rows: Sequence[Row], others: Sequence[Row]) -> bool:
    """Tell whether rows are equal but for where their recordings lie."""
    return list(map(_placeless, rows)) == list(map(_placeless, others))


def _placeless(row: Row) -> Row:
    def here(audios: tuple[Audio, ...]) -> tuple[Audio, ...]:
        return tuple(replace(audio, path="", cell=None) for audio in audios)

    return replace(row, context_audio=here(row.context_audio), ending_audio=here(row.ending_audio))
