"""`AudioIndex`: inspects recordings, and remembers between runs what it found."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from tqdm import tqdm

from s2s_tasks.audio import Audio, read_cell
from s2s_tasks.cache import cache_folder
from s2s_tasks.data.problems import Kind
from s2s_tasks.data.published.inspection import Inspection, inspect

Place = tuple[str, str | None]
"""Where a recording lies: file, and cell in it where it is embedded (see `Audio`)."""

_WORKERS = min(8, os.cpu_count() or 1)
"""Threads: reading, hashing and decoding all release the interpreter."""


class AudioIndex:
    """Inspections of the recordings below one folder.

    They are kept as one JSON line each in the cache folder, written as they are made, so that a
    killed run goes on where it stopped. A file that changed in size or time is looked at again,
    and so is one that was faulty.
    """

    def __init__(self, folder: Path) -> None:
        key = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
        self._path = cache_folder("index") / f"{key}.jsonl"
        self._known = dict(_read_lines(self._path))

    def inspect(self, places: Iterable[Place], title: str) -> dict[Place, Inspection]:
        """Return the inspection of every recording; a progress bar shows the ones still to do.

        Recordings at faulty places are inspections with a fault, not errors.
        """
        wanted = list(dict.fromkeys(places))
        versions = _versions(wanted)
        todo = [place for place in wanted if not self._knows(place, versions[place])]
        if todo:
            # O_APPEND and one write a line: processes that index side by side do not mix lines.
            log = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                for place, inspection in zip(todo, _look_at_all(todo, title), strict=True):
                    self._known[place] = (versions[place], inspection)
                    if not inspection.fault:
                        os.write(log, _line(place, versions[place], inspection))
            finally:
                os.close(log)
        return {place: self._known[place][1] for place in wanted}

    def _knows(self, place: Place, version: str) -> bool:
        known_version, inspection = self._known.get(place, ("", None))
        return known_version == version and inspection is not None and not inspection.fault


def _look_at_all(places: list[Place], title: str) -> Iterator[Inspection]:
    # Closing `map` cancels what is still queued: an interrupt need not wait for it.
    with ThreadPoolExecutor(_WORKERS) as pool, closing(pool.map(_look, places)) as found:  # type: ignore[type-var]
        yield from tqdm(found, total=len(places), desc=title, unit="file")


def _look(place: Place) -> Inspection:
    path, cell = place
    try:
        data = read_cell(path, cell) if cell else Path(path).read_bytes()
    except (OSError, LookupError, pa.ArrowException) as error:
        return Inspection(fault=Kind.AUDIO_UNREADABLE, detail=str(error))
    return inspect(data, path, cell)


def _versions(places: list[Place]) -> dict[Place, str]:
    files = {path: _version(path) for path in {path for path, _ in places}}
    return {place: files[place[0]] for place in places}


def _version(path: str) -> str:
    try:
        stat = os.stat(path)
    except OSError:
        return "absent"
    return f"{stat.st_size} {stat.st_mtime_ns}"


def _line(place: Place, version: str, inspection: Inspection) -> bytes:
    fields = {
        "at": place,
        "version": version,
        "audio": asdict(inspection)["audio"],
        "format": inspection.format,
        "signal": inspection.signal,
    }
    return (json.dumps(fields) + "\n").encode()


def _read_lines(path: Path) -> Iterator[tuple[Place, tuple[str, Inspection]]]:
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            fields: dict[str, Any] = json.loads(line)
        except ValueError:  # the last line of a killed run
            continue
        path_, cell = fields["at"]
        yield (
            (path_, cell),
            (
                fields["version"],
                Inspection(Audio(**fields["audio"]), fields["format"], fields["signal"]),
            ),
        )
