"""Battles in others' formats, as judgements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, cast

from s2s_tasks import __version__
from s2s_tasks.arena.cells import text_of
from s2s_tasks.arena.data.taxonomy import taxonomy
from s2s_tasks.arena.exchange.formats import WORDS, Meaning
from s2s_tasks.arena.exchange.rows import Row, describe, lookup
from s2s_tasks.arena.records import (
    CRITERIA,
    Battle,
    Criterion,
    Instruction,
    Judgement,
    Level,
    Winner,
)
from s2s_tasks.errors import S2STasksError

_CRITERIA: dict[Criterion, str] = {
    criterion: "winner" if criterion == "overall" else criterion for criterion in CRITERIA
}
_LEVELS: dict[str, Level] = {"1": 1, "2": 2, "3": 3, "4": 4}
_LATEST = 1e11
"""Seconds, in the year 5138. As milliseconds they lie in 1973, before anybody judged speech: a
greater number counts milliseconds, or what is finer."""
_UNITS = (1, 1e3, 1e6, 1e9)
_MISSING = object()


def to_judgements(
    rows: Sequence[Row],
    fields: Mapping[str, str],
    source: str,
    *,
    judge: str,
    words: Mapping[str, Meaning] | None = None,
    instructions: Mapping[str, Instruction] | None = None,
) -> list[Judgement]:
    """Return a judgement for each row.

    A verdict that a row leaves empty is not there; one that is not understood is refused. How
    likely a pair was to meet is not known: its propensity is 1. `reply` is the row, as JSON.

    Args:
        rows: of a file.
        fields: what is in which field, by names of `FIELDS`.
        source: the file, for error messages, and for ids where there are none.
        judge: who judged, where no field says.
        words: what verdicts mean, by how they are written, in small letters, whatever systems are
            called. Others are names of systems or `WORDS`; what could be either is refused.
        instructions: by id; what they say of domain, task, level and language goes before the row.

    Raises:
        S2STasksError: when a field is missing or empty, or a verdict is not understood.
    """
    names = ", ".join(name for name in ("first", "second") if name not in fields)
    if names or not any(name in fields for name in _CRITERIA.values()):
        raise S2STasksError(
            f"{source}: it is not known which field holds {names or 'the winner'}; say so with "
            f"--fields, of {describe(rows[0])}"
        )
    reader = _Reader(fields, source, judge, words or {}, instructions or {})
    return [reader.judgement(row, number) for number, row in enumerate(rows, 1)]


@dataclass(frozen=True)
class _Reader:
    fields: Mapping[str, str]
    source: str
    judge: str
    words: Mapping[str, Meaning]
    instructions: Mapping[str, Instruction]

    def judgement(self, row: Row, number: int) -> Judgement:
        where = f"{self.source}, record {number}"
        first, second = (self._name(row, name, where) for name in ("first", "second"))
        if first == second:
            raise S2STasksError(f"{where}: {first} meets itself; take the record out")
        identifier = (
            self._name(row, "id", where)
            if "id" in self.fields
            else f"{PurePosixPath(self.source).stem}-{number}"
        )
        known = self.instructions.get(identifier)
        domain, task = self._kind(row, where)
        return Judgement(
            battle=Battle(identifier, first, second, propensity=1.0, seed=0),
            judge=self._text(row, "judge", where) or self.judge,
            domain=known.domain if known else domain,
            task=known.task if known else task,
            level=known.level if known else self._level(row, where),
            language=known.language if known else self._text(row, "language", where),
            winners={
                criterion: winner
                for criterion, name in _CRITERIA.items()
                if name in self.fields
                and (winner := self._winner(row, name, (first, second), where)) is not None
            },
            reply=json.dumps(row, ensure_ascii=False),
            prompt_sha256="",
            answers={"instruction": "", "first": "", "second": ""},
            features={},
            time=_time(self._text(row, "time", where), where),
            version=__version__,
        )

    def _kind(self, row: Row, where: str) -> tuple[str, str]:
        """Return domain and task; the path says what the row itself does not."""
        domain, named = self._text(row, "domain", where), self._text(row, "task", where)
        path = PurePosixPath(self._text(row, "path", where).replace("\\", "/"))
        task = named or path.parent.name
        kind = taxonomy().task(task) or (None if named else taxonomy().task_of_path(path))
        return (domain or kind.domain, kind.name) if kind else (domain, task)

    def _needed(self, row: Row, name: str, where: str) -> str:
        if lookup(row, self.fields[name], _MISSING) is _MISSING:
            raise S2STasksError(
                f"{where}: no field {self.fields[name]!r}; say --fields {name}=NAME, of "
                f"{describe(row)}"
            )
        return self._text(row, name, where)

    def _name(self, row: Row, name: str, where: str) -> str:
        found = self._needed(row, name, where)
        if not found:
            raise S2STasksError(
                f"{where}: nothing is in {self.fields[name]!r}, {_NAMED[name]}; fill it in, or "
                "take the record out"
            )
        return found

    def _text(self, row: Row, name: str, where: str) -> str:
        value: Any = lookup(row, self.fields[name]) if name in self.fields else None
        try:
            return text_of(value).strip()
        except ValueError as error:
            raise S2STasksError(f"{where}: {self.fields[name]!r}: {error}") from error

    def _winner(self, row: Row, name: str, systems: tuple[str, str], where: str) -> Winner | None:
        written = self._needed(row, name, where)
        if not written:
            return None
        meant = self.words.get(written.lower())
        if meant not in (None, "name"):
            return cast(Winner, meant)
        sides: dict[str, Winner] = {systems[0]: "first", systems[1]: "second"}
        named, word = sides.get(written), None if meant else WORDS.get(written.lower())
        if named and word and named != word:
            raise S2STasksError(
                f"{where}: the verdict {written!r} is the name of the {named} system, and a word "
                f"for {word!r}; say what it means: --verdicts {written!r}=name, or ={word}"
            )
        if winner := named or word:
            return winner
        raise S2STasksError(
            f"{where}: the verdict {written!r} is not understood; say what it means with "
            f"--verdicts {written!r}=first (or second, tie, both_bad)"
        )

    def _level(self, row: Row, where: str) -> Level | None:
        written = self._text(row, "level", where)
        if not written:
            return None
        level = _LEVELS.get(written.upper().removeprefix("L").removesuffix(".0"))
        if level is None:
            raise S2STasksError(f"{where}: level {written!r}; levels are 1 to 4, or L1 to L4")
        return level


_NAMED = {"id": "the instruction's id", "first": "a system's name", "second": "a system's name"}


def _time(written: str, where: str) -> str:
    try:
        number = float(written)
    except ValueError:
        return written
    if number != number:
        return ""
    seconds = next((number / unit for unit in _UNITS if 0 <= number / unit <= _LATEST), None)
    if seconds is None:
        raise S2STasksError(f"{where}: time {written!r}; it is ISO 8601, or seconds since 1970")
    return datetime.fromtimestamp(seconds, UTC).isoformat()
