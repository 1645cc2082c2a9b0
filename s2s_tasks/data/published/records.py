"""Source rows as they lie in jsonl and Parquet files, with the place of each one."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from s2s_tasks.data.problems import Kind, Problem
from s2s_tasks.data.published.embedded import audio_column
from s2s_tasks.data.rows import Language

_SAMPLED = 20
"""Records that decide which set a file holds: a broken first line must not hide a set."""


@dataclass(frozen=True, slots=True)
class Record:
    """One source row, not checked yet."""

    where: str
    """File and line, for messages."""
    fields: Mapping[str, Any]
    embedded: tuple[str, int] | None = None
    """File and row number, where the file embeds the row's recording."""

    @property
    def uttid(self) -> str:
        """The row's id as text: the name of its recording."""
        return str(self.fields.get("uttid"))


@dataclass(frozen=True, slots=True)
class Sample:
    """What the first records of a file show of all of them."""

    fields: frozenset[str]
    language: Language
    embeds_audio: bool


def read_records(paths: Sequence[Path]) -> Iterator[Record | Problem]:
    """Yield the rows of jsonl or Parquet files in order, and a problem for each malformed line."""
    for path in paths:
        yield from _read_parquet(path) if path.suffix == ".parquet" else _read_jsonl(path)


def sample(path: Path) -> Sample | None:
    """Look at the first records of a file; None when it holds none."""
    try:
        found = islice(read_records([path]), _SAMPLED)
        records = [record for record in found if isinstance(record, Record)]
    except (OSError, pa.ArrowException):
        return None
    if not records:
        return None
    return Sample(
        # The fields that most records have: a key that one record lacks is that record's problem.
        fields=frozenset(
            field
            for field in {field for record in records for field in record.fields}
            if 2 * sum(field in record.fields for record in records) > len(records)
        ),
        language=language_of("".join(str(record.fields.get("first")) for record in records)),
        embeds_audio=records[0].embedded is not None,
    )


def language_of(text: str) -> Language:
    """Tell Chinese from English by script: most letters of a Chinese text are Han."""
    letters = [letter for letter in text if letter.isalpha()]
    han = sum(unicodedata.name(letter, "").startswith("CJK") for letter in letters)
    return "zh" if 2 * han > len(letters) else "en"


def _read_jsonl(path: Path) -> Iterator[Record | Problem]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            where = f"{path}:{number}"
            if not line.strip():
                continue
            try:
                fields = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                yield Problem(Kind.MALFORMED, f"line {number}", f"{where}: {error}")
                continue
            if isinstance(fields, dict):
                yield Record(where, fields)
            else:
                yield Problem(Kind.MALFORMED, f"line {number}", f"{where}: not a JSON object")


def _read_parquet(path: Path) -> Iterator[Record]:
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    audio = audio_column(schema)
    row = 0
    for batch in file.iter_batches(columns=[name for name in schema.names if name != audio]):
        for fields in batch.to_pylist():
            yield Record(f"{path} row {row}", fields, (str(path), row) if audio else None)
            row += 1
