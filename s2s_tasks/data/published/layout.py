"""Where the parts of the published sets lie below a folder: named by a map, or by content."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.data.problems import DataError
from s2s_tasks.data.published.records import Record, Sample, read_records, sample
from s2s_tasks.data.sets import SETS, set_spec

AUDIO_SUFFIXES = (".wav", ".flac", ".ogg", ".opus", ".mp3")
"""Formats that libsndfile reads; the first wins where one recording is there twice."""
MAP_NAME = "eval_s2t.yaml"
_NEARLY = 0.5
"""A folder that holds fewer of a set's recordings than this is not the set's folder."""
_AS_GOOD = 0.98
"""Folders that come this close to the best one are as good as it."""

Stems = Mapping[str, Path]
"""The recordings of one folder by file name without ending."""


class LayoutError(DataError):
    """Parts of a data set that are missing, or that cannot be told apart."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The files of one set."""

    name: str
    table: tuple[Path, ...]
    """One jsonl file, or the shards of one Parquet table."""
    recordings: Stems | None
    """None when the table embeds the recordings."""
    audio: Path | None = None
    """The folder of the recordings."""


@dataclass(frozen=True, slots=True)
class Files:
    """What lies below some folders."""

    roots: tuple[Path, ...]
    maps: tuple[Path, ...]
    tables: tuple[Path, ...]
    audio: Mapping[Path, Stems]


def list_files(roots: Sequence[Path]) -> Files:
    """Walk the folders once and sort what lies there."""
    maps, tables = [], []
    audio: dict[Path, dict[str, Path]] = defaultdict(dict)
    for path in sorted(path for root in roots for path in _walk(root)):
        suffix = path.suffix.lower()
        if suffix in AUDIO_SUFFIXES:
            known = audio[path.parent].get(path.stem)
            if known is None or _preference(path) < _preference(known):
                audio[path.parent][path.stem] = path
        elif suffix in (".jsonl", ".parquet"):
            tables.append(path)
        elif path.name in (MAP_NAME, "eval_s2t.yml"):
            maps.append(path)
    maps.sort(key=lambda path: len(path.parts))
    return Files(tuple(roots), tuple(maps), tuple(tables), audio)


def find_tables(files: Files) -> dict[str, list[tuple[Path, ...]]]:
    """Return the candidate tables of every set, told by their fields and their script."""
    shards: dict[str, list[Path]] = defaultdict(list)
    for path in files.tables:
        shards[re.sub(r"-\d{5}-of-\d{5}(?=\.parquet$)", "", str(path))].append(path)
    found: dict[str, list[tuple[Path, ...]]] = defaultdict(list)
    for paths in shards.values():
        look = sample(paths[0])
        name = set_of(look) if look else None
        if name:
            found[name].append(tuple(paths))
    return found


def find_parts(files: Files, wanted: Sequence[str]) -> dict[str, Parts]:
    """Find the parts of the wanted sets by content.

    Raises:
        LayoutError: when a part is missing or ambiguous.
    """
    candidates = find_tables(files)
    tables = {name: table for name, found in candidates.items() if (table := _one(name, found))}
    # Other sets' folders too: one that is certainly theirs is not the wanted set's.
    uttids = {name: _uttids(table) for name, table in tables.items() if not _embeds_audio(table)}
    stems = {name: tables[name][0].stem for name in uttids}
    folders = assign_folders(uttids, stems, {at: set(held) for at, held in files.audio.items()})
    parts, complaints = {}, []
    for name in wanted:
        if name not in tables:
            complaints.append(f"{name}: {_table_complaint(name, candidates.get(name, []))}")
        elif name not in uttids:
            parts[name] = Parts(name, tables[name], recordings=None)
        elif len(folders[name]) == 1:
            (folder,) = folders[name]
            parts[name] = Parts(name, tables[name], files.audio[folder], folder)
        else:
            complaints.append(f"{name}: {_folder_complaint(tables[name][0], folders[name])}")
    if complaints:
        raise layout_error(files, complaints)
    return parts


def assign_folders(
    uttids: Mapping[str, set[str]],
    stems: Mapping[str, str],
    folders: Mapping[Path, set[str]],
) -> dict[str, list[Path]]:
    """Return for every set the folders that may hold its recordings; one where it is certain.

    The sets may number their rows alike, so that one folder fits several sets, and a wrong one
    would be heard by nobody. The name decides: the published one, or the table's own. Then a
    folder that is one set's is no other's, unless the two number their rows differently.
    """
    fitting, named = {}, set()
    for name, ids in uttids.items():
        own = {SETS[name].audio, stems[name]}
        foreign = {spec.audio for spec in SETS.values()} - own
        found = _best_cover(ids, {f: held for f, held in folders.items() if f.name not in foreign})
        by_name = [folder for folder in found if folder.name in own]
        fitting[name] = by_name if len(by_name) == 1 else found
        if len(by_name) == 1:
            named.add(name)
    claims = {name: found[0] for name, found in fitting.items() if len(found) == 1}

    def is_claimed(folder: Path, name: str) -> bool:
        return any(
            claimed == folder and other != name and uttids[other] & uttids[name]
            for other, claimed in claims.items()
        )

    return {
        name: found if name in named else [f for f in found if not is_claimed(f, name)]
        for name, found in fitting.items()
    }


def layout_error(files: Files, complaints: Sequence[str]) -> LayoutError:
    """Say what is wrong, what was found and how to name the parts by hand."""
    roots = ", ".join(map(str, files.roots))
    audio = [f"{folder} ({len(held)} recordings)" for folder, held in files.audio.items()]
    return LayoutError(
        "\n".join(
            [
                f"{roots}: cannot tell where the parts of S2SBench are.",
                *(f"  {complaint}" for complaint in complaints),
                f"Found: tables: {', '.join(map(str, files.tables)) or 'none'}; "
                f"folders with recordings: {', '.join(audio) or 'none'}.",
                f"What to do: name the parts in a file {files.roots[0] / MAP_NAME}, paths relative "
                "to it:",
                "datasets:",
                *(
                    f"  {name}: {{path: {spec.table}.jsonl, audio_path: {spec.audio}, "
                    f"lang: {spec.language}}}"
                    for name, spec in SETS.items()
                ),
            ]
        )
    )


def _walk(root: Path) -> Iterator[Path]:
    """Yield the files below a folder; a link to a folder that was seen is not followed again."""
    seen = set()
    for folder, below, names in os.walk(root, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            below.clear()
            continue
        seen.add(real)
        # Hidden files and macOS resource forks (`._1.wav`) are no data.
        below[:] = sorted(name for name in below if not name.startswith((".", "__MACOSX")))
        yield from (Path(folder, name) for name in names if not name.startswith("."))


def _preference(path: Path) -> int:
    return AUDIO_SUFFIXES.index(path.suffix.lower())


def set_of(look: Sample) -> str | None:
    """Tell which set a table is of by its fields and its script."""
    for name, spec in SETS.items():
        if {"uttid", *spec.fields} <= look.fields and spec.language == look.language:
            return name
    return None


def _one(name: str, found: Sequence[tuple[Path, ...]]) -> tuple[Path, ...] | None:
    """Return the only table there is, or the only one that has the published name."""
    spec = set_spec(name)
    published = [table for table in found if table[0].stem == spec.table]
    for choice in (found, published):
        if len(choice) == 1:
            return choice[0]
    return None


def _embeds_audio(table: tuple[Path, ...]) -> bool:
    look = sample(table[0])
    return look is not None and look.embeds_audio


def _uttids(table: tuple[Path, ...]) -> set[str]:
    return {record.uttid for record in read_records(table) if isinstance(record, Record)}


def _best_cover(uttids: set[str], folders: Mapping[Path, set[str]]) -> list[Path]:
    cover = {folder: len(uttids & held) / len(uttids) for folder, held in folders.items()}
    best = max(cover.values(), default=0.0)
    return [f for f, share in cover.items() if share >= max(_NEARLY, best * _AS_GOOD)]


def _table_complaint(name: str, found: Sequence[tuple[Path, ...]]) -> str:
    if found:
        return f"several tables could be it: {', '.join(str(table[0]) for table in found)}"
    spec = set_spec(name)
    return f"no table with the fields uttid, {', '.join(spec.fields)} and {spec.language!r} texts"


def _folder_complaint(table: Path, found: Sequence[Path]) -> str:
    if found:
        return f"several folders hold recordings for {table}: {', '.join(map(str, found))}"
    return (
        f"no folder holds <uttid>.wav (or {', '.join(AUDIO_SUFFIXES[1:])}) for the rows of {table} "
        "and surely not for another set's"
    )
