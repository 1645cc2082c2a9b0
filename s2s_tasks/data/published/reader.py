"""S2SBench as published (jsonl tables beside folders of recordings) read into rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.data.problems import Kind, Problem
from s2s_tasks.data.published.archives import find_archives, unpack
from s2s_tasks.data.published.embedded import unpack_recordings
from s2s_tasks.data.published.index import AudioIndex, Place
from s2s_tasks.data.published.inspection import Inspection
from s2s_tasks.data.published.layout import LayoutError, Parts, find_parts, list_files
from s2s_tasks.data.published.layout_map import mapped_parts
from s2s_tasks.data.published.pairs import Pair, StoryRow, id_number, join_pairs
from s2s_tasks.data.published.records import Record, read_records
from s2s_tasks.data.rows import Row, place_gold
from s2s_tasks.data.sets import OPTIONS, STORY_FIELDS, set_spec

_SUBJECT_FIELDS = ("subject", "category", "task", "Subject", "Category", "Task")
"""Columns that may name the CMMLU subject: the published scripts read none."""

Inspections = Mapping[str, Inspection]
"""Inspections by uttid."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One set as read: the sound rows, and everything that is wrong with the others."""

    parts: Parts
    rows: list[Row]
    problems: list[Problem]


def locate(folder: Path, wanted: Sequence[str]) -> dict[str, Parts]:
    """Find the parts of the wanted sets below a folder; archives there are unpacked if need be.

    Raises:
        LayoutError: when a part is missing or ambiguous.
    """
    try:
        return _locate([folder], wanted)
    except LayoutError:
        archives = find_archives(folder)
        if not archives:
            raise
    return _locate([folder, *(unpack(archive) for archive in archives)], wanted)


def read_parts(parts: Parts, index: AudioIndex) -> Reading:
    """Read one set and check all of it; problems are collected, not raised.

    Texts lose blanks at either end: the boundary between context and ending is the task's to set.
    """
    spec = set_spec(parts.name)
    records, problems = [], []
    for record in read_records(parts.table):
        found = _id_problems(record) if isinstance(record, Record) else [record]
        problems += found
        if not found and isinstance(record, Record):
            records.append(record)
    inspections, audio_problems = _inspect(records, parts, index)
    if spec.fields == STORY_FIELDS:
        rows, text_problems = _stories(parts.name, records, inspections)
    else:
        rows, text_problems = _questions(parts.name, records, inspections)
    alike = [
        Problem(Kind.ENDINGS, ", ".join(row.source_ids), repr(row.endings[row.gold]))
        for row in rows
        if row.endings.count(row.endings[row.gold]) > 1
    ]
    return Reading(parts, rows, [*problems, *text_problems, *alike, *audio_problems])


def _locate(roots: Sequence[Path], wanted: Sequence[str]) -> dict[str, Parts]:
    files = list_files(roots)
    mapped = mapped_parts(files, wanted)
    unmapped = [name for name in wanted if name not in mapped]
    return {**mapped, **find_parts(files, unmapped)} if unmapped else mapped


def _inspect(
    records: Sequence[Record], parts: Parts, index: AudioIndex
) -> tuple[Inspections, list[Problem]]:
    """Return the inspections of sound recordings, and a problem for each of the others."""
    unpacked = unpack_recordings(parts.table) if parts.recordings is None else {}
    places: dict[str, Place] = {}
    problems = []
    for record in records:
        if record.embedded:
            path = unpacked.get(record.embedded)
        else:
            path = (parts.recordings or {}).get(record.uttid)
        if path:
            places[record.uttid] = (str(path), None)
        else:
            wanted = parts.audio / f"{record.uttid}.wav" if parts.audio else "embedded recording"
            detail = f"{record.where}: there is no {wanted}"
            problems.append(Problem(Kind.AUDIO_MISSING, record.uttid, detail))
    seen = index.inspect(places.values(), title=f"{parts.name}: checking recordings")
    sound = {}
    for uttid, place in places.items():
        inspection = seen[place]
        if inspection.fault:
            detail = f"{place[0]}: {inspection.detail}"
            problems.append(Problem(inspection.fault, uttid, detail))
        else:
            sound[uttid] = inspection
    return sound, problems


def _stories(
    name: str, records: Sequence[Record], inspections: Inspections
) -> tuple[list[Row], list[Problem]]:
    stories, broken, problems = [], set(), []
    for record in records:
        number = id_number(record.uttid)
        if number is None:
            problems.append(Problem(Kind.ID, record.uttid, record.where))
        elif found := _text_problems(record, STORY_FIELDS):
            problems += found
            broken.add(number)
        else:
            first, last = (record.fields[field].strip() for field in STORY_FIELDS)
            stories.append(StoryRow(record.uttid, number, first, last, record.where))
    pairs, pair_problems = join_pairs(stories, broken)
    rows = [
        _story(name, pair, inspections)
        for pair in pairs
        if {pair.true.uttid, pair.false.uttid} <= inspections.keys()
    ]
    return rows, problems + pair_problems


def _story(name: str, pair: Pair, inspections: Inspections) -> Row:
    found = [inspections[row.uttid] for row in (pair.true, pair.false)]
    recordings = tuple(inspection.audio for inspection in found if inspection.audio)
    # Two recordings of one context: only where they sound alike do both endings follow one prompt.
    identical = found[0].signal == found[1].signal
    return place_gold(
        Row(
            id=f"{name}-{pair.number}",
            language=set_spec(name).language,
            context=pair.true.context,
            endings=(pair.true.ending, pair.false.ending),
            gold=0,
            context_audio=recordings[:1] if identical else recordings,
            source_ids=(pair.true.uttid, pair.false.uttid),
        )
    )


def _questions(
    name: str, records: Sequence[Record], inspections: Inspections
) -> tuple[list[Row], list[Problem]]:
    count = Counter(record.uttid for record in records)
    rows, problems = [], []
    for record in records:
        found = _text_problems(record, ("first", *OPTIONS, "answer"))
        answer = record.fields.get("answer")
        letter = answer.strip().upper() if isinstance(answer, str) else ""
        if letter and letter not in OPTIONS:
            detail = f"{record.where}: answer is {answer!r}"
            found.append(Problem(Kind.ANSWER, record.uttid, detail))
        if count[record.uttid] > 1:
            found.append(Problem(Kind.DUPLICATE, record.uttid, record.where))
        problems += found
        recording = inspections[record.uttid].audio if record.uttid in inspections else None
        if not found and recording:
            row = Row(
                id=f"{name}-{record.uttid}",
                language=set_spec(name).language,
                context=record.fields["first"].strip(),
                endings=tuple(record.fields[option].strip() for option in OPTIONS),
                gold=OPTIONS.index(letter),
                context_audio=(recording,),
                subject=_subject(record),
                source_ids=(record.uttid,),
            )
            rows.append(place_gold(row))
    return rows, problems


def _subject(record: Record) -> str | None:
    named = (record.fields.get(field) for field in _SUBJECT_FIELDS)
    return next((value.strip() for value in named if isinstance(value, str) and value), None)


def _id_problems(record: Record) -> list[Problem]:
    uttid = record.fields.get("uttid")
    if uttid is None:
        return [Problem(Kind.FIELD_MISSING, "?", f"{record.where}: uttid")]
    if isinstance(uttid, bool) or not isinstance(uttid, int | str):
        return [Problem(Kind.FIELD_TYPE, repr(uttid), f"{record.where}: uttid")]
    if not str(uttid).strip():
        return [Problem(Kind.FIELD_EMPTY, repr(uttid), f"{record.where}: uttid")]
    return []


def _text_problems(record: Record, fields: Sequence[str]) -> list[Problem]:
    problems = []
    for field in fields:
        value = record.fields.get(field)
        detail = f"{record.where}: {field}"
        if value is None:
            problems.append(Problem(Kind.FIELD_MISSING, record.uttid, detail))
        elif not isinstance(value, str):
            problems.append(Problem(Kind.FIELD_TYPE, record.uttid, f"{detail} is {value!r}"))
        elif not value.strip():
            problems.append(Problem(Kind.FIELD_EMPTY, record.uttid, detail))
    return problems
