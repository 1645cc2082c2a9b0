"""Manifests: a table of instructions, one a row, with their recordings beside it or in it."""

from __future__ import annotations

import csv
import json
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from s2s_tasks.arena.cells import csv_rows, text_of
from s2s_tasks.arena.records import Instruction, Level
from s2s_tasks.audio import Audio, AudioError, probe, probe_bytes
from s2s_tasks.errors import S2STasksError

NAMES = ("manifest.jsonl", "manifest.csv", "manifest.parquet")
"""What a manifest is called where only its folder is given."""
REQUIRED = ("id", "audio", "language", "domain", "task", "level")
OPTIONAL = ("text", "split", "evaluation")
MAPPINGS = ("cue", "target")
SPLITS = ("", "seed", "augment")
LEVELS = ("0", "1", "2", "3", "4")
"""Old and new ones, without the letter."""
_SHOWN = 10

Row = Mapping[str, Any]


class ManifestError(S2STasksError):
    """A manifest that cannot be used as it is."""


def read(path: Path | None = None, *, old_levels: bool = False) -> list[Instruction]:
    """Return the instructions of a manifest, in its order.

    Its fields are those of `Instruction`: `id`, `audio`, `language`, `domain`, `task` and `level`
    have to be there. `audio` is a path, relative to the manifest, or `{path}`; in Parquet it may
    also be an embedded recording, `{bytes, path}`, or a list of one. `cue` and `target` are
    objects, or their items are fields of their own: `cue.emotion`. Domains and tasks may be any.

    Args:
        path: a JSONL, CSV or Parquet file, or a folder with a `manifest` of these; None for the
            mini set of the package.
        old_levels: the levels are the first version's, L0 to L3, for what are L1 to L4 now.

    Raises:
        ManifestError: when anything is amiss; the message names the rows.
    """
    file = _find(Path(str(files("s2s_tasks.arena.data") / "mini")) if path is None else path)
    faults: list[str] = []
    found: dict[str, Instruction] = {}
    for number, row in enumerate(_rows(file), 1):
        try:
            instruction = _instruction(row, number - 1, file, old_levels)
        except (ManifestError, AudioError) as error:
            name = "no id" if _is_empty(row.get("id")) else row["id"]
            faults.append(f"row {number} ({name}): {error}")
            continue
        if instruction.id in found:
            faults.append(f"row {number} ({instruction.id}): the id is taken")
        found[instruction.id] = instruction
    if faults:
        more = f"\n… and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise ManifestError(
            f"{file}: {len(faults)} row(s) cannot be used:\n" + "\n".join(faults[:_SHOWN]) + more
        )
    if not found:
        raise ManifestError(f"{file}: no instructions are in it")
    return list(found.values())


def _find(path: Path) -> Path:
    if path.is_dir():
        named = [path / name for name in NAMES if (path / name).is_file()]
        if len(named) != 1:
            raise ManifestError(f"{path}: needs one of {', '.join(NAMES)}, and has {len(named)}")
        return named[0]
    if not path.is_file():
        raise ManifestError(f"{path}: no such manifest")
    return path


def _rows(path: Path) -> Iterable[Row]:
    try:
        match path.suffix.lower():
            case ".csv":
                with path.open(encoding="utf-8-sig", newline="") as file:
                    return csv_rows(file)
            case ".jsonl":
                return list(_lines(path))
            case ".parquet":
                table = pq.read_table(path)
                return cast(list[Row], table.to_pylist())
    except (OSError, ValueError, RecursionError, csv.Error, pa.ArrowException) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    raise ManifestError(f"{path}: a manifest is a .jsonl, .csv or .parquet file")


def _lines(path: Path) -> Iterator[Row]:
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError(f"line {number} is not a JSON object")
        yield row


def _instruction(row: Row, index: int, file: Path, old_levels: bool) -> Instruction:
    missing = [name for name in REQUIRED if _is_empty(row.get(name))]
    if missing:
        raise ManifestError(f"{', '.join(missing)} missing")
    texts = {name: _text(row, name) for name in OPTIONAL}
    if texts["split"] not in SPLITS:
        raise ManifestError(f"split {texts['split']!r}: seed, augment or nothing")
    return Instruction(
        id=_text(row, "id"),
        audio=_audio(row["audio"], index, file),
        language=_text(row, "language"),
        domain=_text(row, "domain"),
        task=_text(row, "task"),
        level=_level(_text(row, "level"), old_levels),
        cue=_mapping(row, "cue"),
        target=_mapping(row, "target"),
        **texts,
    )


def _is_empty(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def _text(row: Row, name: str) -> str:
    try:
        return text_of(row.get(name))
    except ValueError as error:
        raise ManifestError(f"{name}: {error}") from error


def _audio(value: object, index: int, file: Path) -> Audio:
    match value:
        case [{"bytes": bytes(data)}]:
            return probe_bytes(data, path=str(file), cell=f"audio/{index}/0")
        case {"bytes": bytes(data)}:
            return probe_bytes(data, path=str(file), cell=f"audio/{index}")
        case str(path) | {"path": str(path)} | [{"path": str(path)}]:
            try:
                return probe(file.parent / path)
            except ValueError as error:
                raise ManifestError(f"audio {path!r}: {error}") from error
    raise ManifestError("audio is neither a path nor one recording {bytes, path}")


def _level(value: str, old: bool) -> Level:
    """Return 1 to 4 from `L1` to `L4`, with or without the letter; old ones are one lower."""
    written = value.strip().upper().removeprefix("L").removesuffix(".0")
    level = LEVELS.index(written) + old if written in LEVELS else 0
    if 1 <= level <= 4:
        return cast(Level, level)
    names = "L0 to L3" if old else "L1 to L4"
    hint = "; those of the first version need --old-levels" if written == "0" and not old else ""
    raise ManifestError(f"level {reprlib.repr(value)}: there are {names}{hint}")


def _mapping(row: Row, name: str) -> dict[str, str]:
    value = row.get(name) or {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict):
        raise ManifestError(f"{name} is no JSON object")
    dotted = {key.split(".", 1)[1]: v for key, v in row.items() if key.startswith(f"{name}.")}
    # Parquet gives every row the keys of all.
    items = {**value, **dotted}.items()
    return {key: str(item) for key, item in items if item not in (None, "")}
