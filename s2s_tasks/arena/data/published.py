"""The published recordings → a manifest.

They lie in folders that are called after tasks, and nothing beside them says what is asked, in
which language and at which level. So a manifest is drafted, to be filled in by a person or from a
table of one's own.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from s2s_tasks.arena.data.manifest import MAPPINGS, OPTIONAL, REQUIRED, ManifestError
from s2s_tasks.arena.data.taxonomy import taxonomy
from s2s_tasks.arena.files import write_whole

HUB_DATASET = "FreedomIntelligence/S2S-Arena"
LICENCE = "CC BY-NC-SA 4.0"
SUFFIXES = (".wav", ".mp3", ".flac", ".ogg", ".opus")
FIELDS = (*REQUIRED, *OPTIONAL, *MAPPINGS)
_SHOWN = 10

Row = dict[str, str]


def draft(target: Path, folder: Path | None = None, details: Path | None = None) -> list[str]:
    """Write a manifest of the published recordings, and return what it lacks, a line a field.

    It is written whole or not at all.

    Domain and task come from the path, by the first of its folders that the taxonomy knows; where
    it knows none, the first folder names the task and the domain stays empty.

    Args:
        target: the CSV file to write; the manifest names recordings relative to it.
        folder: where they lie; None for a snapshot of the hub's.
        details: a CSV, JSONL or Parquet table with a row a recording, `audio` being its path in
            the folder; what its other fields say goes before what the path says.

    Raises:
        ManifestError: when there are no recordings, one has a name that is not UTF-8, the target
            exists or cannot be written, or details fit none of them.
    """
    if target.suffix.lower() != ".csv":
        raise ManifestError(f"{target}: a draft is a table to fill in; call it .csv")
    if target.exists():
        raise ManifestError(f"{target}: is there already, perhaps filled in; name another file")
    root = snapshot() if folder is None else folder
    found = recordings(root)
    known = _details(details) if details else {}
    rows = {path: row | known.get(path, {}) for path, row in found.items()}
    if stray := sorted(known.keys() - found.keys()):
        more = f" and {len(stray) - _SHOWN} more" if len(stray) > _SHOWN else ""
        raise ManifestError(
            f"{details}: field audio names {len(stray)} file(s) that are not in {root}: "
            f"{', '.join(stray[:_SHOWN])}{more}; give paths as they are in that folder"
        )
    for path, row in rows.items():
        row["audio"] = Path(os.path.relpath(root / path, target.parent)).as_posix()
        try:
            row["audio"].encode()
        except UnicodeEncodeError as error:
            raise ManifestError(
                f"the name {os.fsencode(row['audio'])!r} is not UTF-8, which a manifest is written "
                "in; rename the file"
            ) from error
    _write(target, list(rows.values()))
    return [
        f"{field}: {len(lacking)} of {len(rows)} rows have none, {lacking[0]} among them"
        for field in REQUIRED
        if (lacking := [row["id"] for row in rows.values() if not row.get(field)])
    ]


def recordings(root: Path) -> dict[str, Row]:
    """Return what paths say of the recordings below a folder, by path, in order.

    Raises:
        ManifestError: when there are none.
    """
    paths = sorted(
        path.relative_to(root)
        for path in root.rglob("*")
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    if not paths:
        raise ManifestError(f"{root}: no recordings are here ({', '.join(SUFFIXES)})")
    # The dot of `a.1.wav` belongs to the name, and `a.mp3` beside `a.wav` is another recording.
    stems = [path.with_suffix("").as_posix() for path in paths]
    return {
        path.as_posix(): _row(path, stem if stems.count(stem) == 1 else path.as_posix())
        for path, stem in zip(paths, stems, strict=True)
    }


def snapshot() -> Path:
    """Return the folder of the hub's recordings, downloaded if need be.

    Raises:
        ManifestError: when the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(HUB_DATASET, repo_type="dataset"))
    except OSError as error:  # what huggingface_hub's own errors are
        raise ManifestError(
            f"cannot download {HUB_DATASET} from the hub ({error}).\n"
            "What to do: name a folder that holds it: --folder DIR"
        ) from error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `s2s-tasks arena manifest`."""
    parser.add_argument("target", type=Path, metavar="FILE.csv", help="the manifest to write")
    parser.add_argument(
        "--folder", type=Path, help=f"where the recordings lie; default: {HUB_DATASET} of the hub"
    )
    parser.add_argument(
        "--details",
        type=Path,
        metavar="TABLE",
        help="what you know of them: audio (path in the folder), language, level, text …",
    )


def run(options: argparse.Namespace) -> int:
    """Write the manifest and say what is left to fill in."""
    missing = draft(options.target, options.folder, options.details)
    print(f"{options.target}: written. The published recordings are under {LICENCE}.")
    if missing:
        print("Fill in before use:", *missing, sep="\n  ")
        for level, meaning in taxonomy().levels.items():
            print(f"  L{level}: {meaning}")
    return 0


def _row(path: Path, identifier: str) -> Row:
    task = taxonomy().task_of_path(path)
    return {
        "id": identifier,
        "domain": task.domain if task else "",
        "task": task.name if task else "".join(path.parts[:-1][:1]),
    }


def _details(path: Path) -> dict[str, Row]:
    try:
        match path.suffix.lower():
            case ".csv":
                table = pd.read_csv(path, dtype=str, keep_default_na=False)
            case ".jsonl":
                table = pd.read_json(path, lines=True, dtype=False)
            case ".parquet":
                table = pd.read_parquet(path)
            case _:
                raise ManifestError(f"{path}: details are a .csv, .jsonl or .parquet table")
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    if "audio" not in table:
        raise ManifestError(f"{path}: has no field audio, the path of a recording in the folder")
    rows = [_filled(row) for row in table.to_dict("records")]
    if double := table["audio"][table["audio"].duplicated()].tolist():
        raise ManifestError(f"{path}: several rows about {double[0]}; keep one")
    return {row.pop("audio"): row for row in rows}


def _filled(row: Mapping[object, object]) -> Row:
    """Return the fields that say something, as a CSV file holds them."""
    return {
        str(key): json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)
        for key, value in row.items()
        if isinstance(value, dict) or not (value is None or value != value or value == "")
    }


def _write(target: Path, rows: list[Row]) -> None:
    others = sorted({key for row in rows for key in row} - set(FIELDS))
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, [*FIELDS, *others])
    writer.writeheader()
    writer.writerows(rows)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, file.getvalue().encode())
    except OSError as error:
        raise ManifestError(
            f"{target}: cannot be written ({error}); name a place that can be, on a disk with room"
        ) from error
