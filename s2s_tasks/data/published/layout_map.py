"""`eval_s2t.yaml`: the map in which the published scripts, or the user, name a set's parts.

It maps `datasets` to one entry a set: the key that the published scripts use or the set's name
here, with `path` (the table), `audio_path` (the folder of recordings) and `lang`. Paths are
relative to `root_dir`, where that is given, or to the map.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from s2s_tasks.data.published.layout import (
    Files,
    LayoutError,
    Parts,
    layout_error,
    list_files,
    set_of,
)
from s2s_tasks.data.published.records import sample
from s2s_tasks.data.sets import SETS

_PATH_KEYS = ("path", "jsonl", "file")
_AUDIO_KEYS = ("audio_path", "audio_dir", "audio")
_LANGUAGE_KEYS = ("lang", "language")


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    audio_path: str | None
    language: str | None


def mapped_parts(files: Files, wanted: Sequence[str]) -> dict[str, Parts]:
    """Return the parts of those wanted sets that a map names; the topmost map counts.

    Raises:
        LayoutError: when the map is malformed or names what is not there.
    """
    if not files.maps:
        return {}
    map_path = files.maps[0]
    root, entries = _read_map(map_path)
    parts, complaints = {}, []
    for key, entry in entries.items():
        try:
            found = _entry_parts(key, entry, root, files, wanted)
        except LookupError as error:
            complaints.append(f"{map_path}: {key}: {error.args[0]}")
        else:
            parts.update({found.name: found} if found else {})
    if complaints:
        raise layout_error(files, complaints)
    return parts


def _entry_parts(
    key: str, entry: _Entry, root: Path, files: Files, wanted: Sequence[str]
) -> Parts | None:
    """Return the parts that an entry names; None when they are of no wanted set.

    Raises:
        LookupError: when it names what is not there.
    """
    name = _name_by_key(key)
    if name and name not in wanted:
        return None
    table = _resolve(entry.path, root, files.tables, files.roots)
    if table is None:
        raise LookupError(f"there is no {entry.path}, or several")
    name = name or _name_by_content(table)
    if name not in wanted:
        return None
    language = SETS[name].language
    if entry.language not in (None, language):
        raise LookupError(f"lang is {entry.language!r}, but {name} is {language!r}")
    if entry.audio_path is None:
        if table.suffix != ".parquet":
            raise LookupError("it names no audio_path")
        return Parts(name, (table,), recordings=None)
    folder = _resolve(entry.audio_path, root, files.audio, files.roots)
    if folder is None:
        raise LookupError(f"there is no folder {entry.audio_path} with recordings, or several")
    held = files.audio.get(folder) or list_files([folder]).audio.get(folder, {})
    return Parts(name, (table,), held, folder)


def _read_map(path: Path) -> tuple[Path, dict[str, _Entry]]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise LayoutError(f"{path}: not a YAML file: {error}") from error
    if not isinstance(content, dict):
        raise LayoutError(f"{path}: expected a mapping with a key `datasets`")
    datasets = content.get("datasets", content)
    if not isinstance(datasets, dict):
        raise LayoutError(f"{path}: `datasets` must map names to path, audio_path and lang")
    root = path.parent / str(content.get("root_dir") or ".")
    entries = {
        str(key): _Entry(str(table), _first(fields, _AUDIO_KEYS), _first(fields, _LANGUAGE_KEYS))
        for key, fields in datasets.items()
        if isinstance(fields, dict) and (table := _first(fields, _PATH_KEYS))
    }
    if not entries:
        raise LayoutError(f"{path}: it names no set: each needs path, audio_path and lang")
    return root, entries


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((str(fields[key]) for key in keys if fields.get(key)), None)


def _name_by_key(key: str) -> str | None:
    return next((name for name, spec in SETS.items() if key in (name, spec.key)), None)


def _name_by_content(table: Path) -> str:
    look = sample(table)
    return (look and set_of(look)) or ""


def _resolve(named: str, root: Path, there: Collection[Path], roots: Sequence[Path]) -> Path | None:
    """Find what a map names: below its root, else the only thing whose path ends alike.

    The published map is written for its authors' tree (`S2S/StoryCloze/...`), of which a download
    or an archive may hold a part only: the longest tail of the path that exists decides.
    """
    for base in (root, *roots):
        path = base / named
        if path in there or (path.exists() and not any(path.is_relative_to(r) for r in roots)):
            return path
    tail = Path(named).parts
    for start in range(len(tail)):
        wanted = tail[start:]
        found = [path for path in there if path.parts[-len(wanted) :] == wanted]
        if found:
            return found[0] if len(found) == 1 else None
    return None
