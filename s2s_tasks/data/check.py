"""Everything worth knowing about a set before a model is asked: counts, sound, texts, problems."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from s2s_tasks.audio import Audio
from s2s_tasks.data.parquet import read_metadata, read_rows
from s2s_tasks.data.problems import Kind, Problem, describe
from s2s_tasks.data.published.index import AudioIndex
from s2s_tasks.data.published.inspection import Inspection
from s2s_tasks.data.published.reader import locate, read_parts
from s2s_tasks.data.rows import Row


@dataclass(frozen=True, slots=True)
class Source:
    """One set in a folder, in either form."""

    rows: list[Row]
    problems: list[Problem]
    name: str
    """The files it was read from, as the canonical form notes them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a quantity."""

    min: float
    median: float
    max: float
    total: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Return the spread of some numbers; zeros where there are none."""
        known = sorted(values) or [0]
        return cls(known[0], median(known), known[-1], sum(known))

    def text(self, digits: int = 0) -> str:
        """Return it in words."""
        return f"{self.min:.{digits}f} to {self.max:.{digits}f}, median {self.median:.{digits}f}"


@dataclass(frozen=True, slots=True)
class Report:
    """What `s2s-tasks data check` says about one set."""

    name: str
    source: str
    rows: int
    pairs: int
    """(true, false) pairs of endings."""
    languages: dict[str, int]
    subjects: dict[str, int]
    one_context_recording: float
    """Share of the rows whose endings all follow one and the same recording of the context."""
    recordings: int
    """Distinct by content."""
    seconds: Spread
    sampling_rates: dict[str, int]
    channels: dict[str, int]
    formats: dict[str, int]
    context_characters: Spread
    ending_characters: Spread
    problems: list[Problem]

    def lines(self) -> list[str]:
        """Return the report as text."""
        seconds = self.seconds
        lines = [
            f"{self.name}: {self.rows} rows, {self.pairs} pairs of endings",
            f"  source          {self.source}",
            f"  languages       {_counts(self.languages)}",
            f"  subjects        {_counts(self.subjects)}",
            f"  recordings      {self.recordings} distinct; "
            f"{seconds.text(2)} s; {seconds.total / 3600:.2f} h in all",
            f"  sampling rates  {_counts(self.sampling_rates)}",
            f"  channels        {_counts(self.channels)}",
            f"  formats         {_counts(self.formats)}",
            f"  one recording   {self.one_context_recording:.1%} of the rows have the same "
            "context recording for all endings",
            f"  context text    {self.context_characters.text()} characters",
            f"  ending text     {self.ending_characters.text()} characters",
            f"  problems        {len(self.problems) or 'none'}",
        ]
        return lines + describe(self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        problems = [{**asdict(problem), "kind": problem.kind.title} for problem in self.problems]
        return {**asdict(self), "problems": problems}


def read_source(folder: Path, name: str, index: AudioIndex) -> Source:
    """Read one set of a folder in either form, with everything that is wrong with it.

    Raises:
        DataError: when the set is not there.
    """
    canonical = folder / f"{name}.parquet"
    if canonical.exists():
        rows = read_rows(canonical)
        problems = _changed(rows, index, name)
        return Source(rows, problems, read_metadata(canonical)["source"])
    reading = read_parts(locate(folder, [name])[name], index)
    return Source(reading.rows, reading.problems, _describe_files(reading.parts.table))


def check_set(folder: Path, name: str, index: AudioIndex) -> Report:
    """Check one set of a folder.

    Raises:
        DataError: when the set is not there.
    """
    source = read_source(folder, name, index)
    rows = source.rows
    # Published recordings were inspected while reading, embedded ones too: this only looks up.
    seen = _inspect(_recordings(rows), index, name)
    distinct = {
        inspection.audio.sha256: (inspection, inspection.audio)
        for inspection in seen
        if inspection.audio
    }
    return Report(
        name=name,
        source=source.name,
        rows=len(rows),
        pairs=sum(len(row.endings) - 1 for row in rows),
        languages=_count(row.language for row in rows),
        subjects=_count(row.subject or "not named" for row in rows),
        one_context_recording=sum(len(row.context_audio) == 1 for row in rows) / (len(rows) or 1),
        recordings=len(distinct),
        seconds=Spread.of(audio.seconds for _, audio in distinct.values()),
        sampling_rates=_count(f"{audio.sampling_rate} Hz" for _, audio in distinct.values()),
        channels=_count(str(audio.channels) for _, audio in distinct.values()),
        formats=_count(inspection.format for inspection, _ in distinct.values()),
        context_characters=Spread.of(len(row.context) for row in rows),
        ending_characters=Spread.of(len(ending) for row in rows for ending in row.endings),
        problems=source.problems,
    )


def _recordings(rows: Iterable[Row]) -> list[Audio]:
    return [audio for row in rows for audio in (*row.context_audio, *row.ending_audio)]


def _inspect(audios: Sequence[Audio], index: AudioIndex, name: str) -> list[Inspection]:
    places = [(audio.path, audio.cell) for audio in audios]
    seen = index.inspect(places, title=f"{name}: checking recordings")
    return [seen[place] for place in places]


def _changed(rows: Sequence[Row], index: AudioIndex, name: str) -> list[Problem]:
    """Return a problem for each embedded recording that is not what its row says."""
    audios = _recordings(rows)
    problems = []
    for audio, found in zip(audios, _inspect(audios, index, name), strict=True):
        if found.fault:
            problems.append(Problem(found.fault, audio.name, found.detail))
        elif found.audio != audio:
            problems.append(Problem(Kind.AUDIO_CHANGED, audio.name, "its content differs"))
    return problems


def _describe_files(paths: Sequence[Path]) -> str:
    """Name files by their content, and not by where they lie on this machine."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return f"{paths[0].name} (sha256 {digest.hexdigest()[:16]})"


def _count(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _counts(counted: dict[str, int]) -> str:
    return ", ".join(f"{value}: {count}" for value, count in counted.items()) or "none"
