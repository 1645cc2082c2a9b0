"""Battles in others' formats, as judgements and back.

TRACE (arXiv 2601.13742) labels battles in a JSON list, by content, voice quality, paralinguistics
and overall, with 1, 2, both_good or both_bad. Chatbot Arena has model_a, model_b and a winner:
model_a, model_b, tie or tie (bothbad). Whatever else names two systems and a winner is read by a
mapping of fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from s2s_tasks import __version__
from s2s_tasks.arena.exchange_rows import Row, describe, lookup
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

FIELDS: dict[str, str] = {
    "id": "of the instruction",
    "path": "of its recording, whose folder names the task",
    "first": "the system heard first",
    "second": "the other",
    "winner": "overall",
    "instruction": "the winner in instruction alignment",
    "expression": "the winner in paralinguistic expressiveness",
    "quality": "the winner in audio quality",
    "judge": "who judged",
    "domain": "",
    "task": "",
    "level": "1 to 4, or L1 to L4",
    "language": "ISO 639-1",
    "time": "ISO 8601, or seconds since 1970",
}
"""What a field can hold. Of `path`, `judge` and those below, a row may lack each; without `id`,
rows are instructions of their own."""

_CRITERIA: dict[Criterion, str] = {
    criterion: "winner" if criterion == "overall" else criterion for criterion in CRITERIA
}

PRESETS: dict[str, dict[str, str]] = {
    "trace": {
        "id": "instruction_id",
        "path": "instruction_path",
        "first": "model_a",
        "second": "model_b",
        "winner": "label.overall",
        "instruction": "label.content",
        "expression": "label.paralinguistics",
        "quality": "label.voice_quality",
    },
    "chatbot-arena": {
        "id": "question_id",
        "first": "model_a",
        "second": "model_b",
        "winner": "winner",
        "judge": "judge",
        "time": "tstamp",
    },
    "other": {},
}
"""By format: what is in which field."""

WORDS: dict[str, Winner] = {
    **dict.fromkeys(("1", "a", "model_a", "first", "left", "audio1", "audio_a"), "first"),
    **dict.fromkeys(("2", "b", "model_b", "second", "right", "audio2", "audio_b"), "second"),
    **dict.fromkeys(("tie", "draw", "both_good", "tie (bothgood)"), "tie"),
    **dict.fromkeys(("both_bad", "tie (bothbad)", "bothbad"), "both_bad"),
}
"""How others write a verdict, in small letters; the name of a system is one too."""

_LEVELS: dict[str, Level] = {"1": 1, "2": 2, "3": 3, "4": 4}
_MISSING = object()
_TRACE_LABELS: dict[str, Criterion] = {
    "content": "instruction",
    "voice_quality": "quality",
    "paralinguistics": "expression",
    "overall": "overall",
}
_TRACE: dict[Winner, str] = {
    "first": "1",
    "second": "2",
    "tie": "both_good",
    "both_bad": "both_bad",
}
_CHATBOT_ARENA: dict[Winner, str] = {
    "first": "model_a",
    "second": "model_b",
    "tie": "tie",
    "both_bad": "tie (bothbad)",
}


def to_judgements(
    rows: Sequence[Row],
    fields: Mapping[str, str],
    source: str,
    *,
    judge: str,
    words: Mapping[str, Winner] = WORDS,
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
        words: verdicts by how they are written, in small letters.
        instructions: by id; what they say of domain, task, level and language goes before the row.

    Raises:
        S2STasksError: when a field is missing, or a verdict is not understood.
    """
    names = ", ".join(name for name in ("first", "second") if name not in fields)
    if names or not any(name in fields for name in _CRITERIA.values()):
        raise S2STasksError(
            f"{source}: it is not known which field holds {names or 'the winner'}; say so with "
            f"--fields, of {describe(rows[0])}"
        )
    reader = _Reader(fields, source, judge, words, instructions or {})
    return [reader.judgement(row, number) for number, row in enumerate(rows, 1)]


@dataclass(frozen=True)
class _Reader:
    fields: Mapping[str, str]
    source: str
    judge: str
    words: Mapping[str, Winner]
    instructions: Mapping[str, Instruction]

    def judgement(self, row: Row, number: int) -> Judgement:
        where = f"{self.source}, record {number}"
        first, second = (str(self._needed(row, name, where)) for name in ("first", "second"))
        if first == second:
            raise S2STasksError(f"{where}: {first} meets itself; take the record out")
        identifier = str(self._needed(row, "id", where)) if "id" in self.fields else ""
        identifier = identifier or f"{PurePosixPath(self.source).stem}-{number}"
        known = self.instructions.get(identifier)
        path = PurePosixPath(self._text(row, "path").replace("\\", "/"))
        return Judgement(
            battle=Battle(identifier, first, second, propensity=1.0, seed=0),
            judge=self._text(row, "judge") or self.judge,
            domain=known.domain if known else self._text(row, "domain"),
            task=known.task if known else self._text(row, "task") or path.parent.name,
            level=known.level if known else self._level(row, where),
            language=known.language if known else self._text(row, "language"),
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
            time=_time(self._text(row, "time")),
            version=__version__,
        )

    def _needed(self, row: Row, name: str, where: str) -> Any:
        value = lookup(row, self.fields[name], _MISSING)
        if value is _MISSING:
            raise S2STasksError(
                f"{where}: no field {self.fields[name]!r}; say --fields {name}=NAME, of "
                f"{describe(row)}"
            )
        return value

    def _text(self, row: Row, name: str) -> str:
        value = lookup(row, self.fields[name]) if name in self.fields else None
        return "" if value is None else str(value)

    def _winner(self, row: Row, name: str, systems: tuple[str, str], where: str) -> Winner | None:
        value = self._needed(row, name, where)
        written = "" if value is None else str(value).strip()
        if not written:
            return None
        if written in systems:
            return "first" if written == systems[0] else "second"
        if written.lower() in self.words:
            return self.words[written.lower()]
        raise S2STasksError(
            f"{where}: the verdict {written!r} is not understood; say what it means with "
            f"--verdicts {written!r}=first (or second, tie, both_bad)"
        )

    def _level(self, row: Row, where: str) -> Level | None:
        written = self._text(row, "level").strip().upper().removeprefix("L")
        if not written:
            return None
        if written not in _LEVELS:
            raise S2STasksError(f"{where}: level {written!r}; levels are 1 to 4, or L1 to L4")
        return _LEVELS[written]


def _time(written: str) -> str:
    try:
        seconds = float(written)
    except ValueError:
        return written
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def to_trace(
    judgements: Iterable[Judgement], instructions: Mapping[str, Instruction] | None = None
) -> list[dict[str, Any]]:
    """Return TRACE's records of readable judgements that are no probes.

    Paths follow the published layout: `input/<task>/<id>.wav`, `output/<system>/<task>/<id>.wav`.

    Args:
        judgements: of a log.
        instructions: by id; without them there are no texts.
    """
    records = []
    for index, judgement in enumerate(_exported(judgements)):
        battle, known = judgement.battle, (instructions or {}).get(judgement.battle.instruction)
        name = f"{judgement.task}/{battle.instruction}.wav"
        winners = judgement.winners
        records.append(
            {
                "index": index,
                "instruction_path": f"input/{name}",
                "instruction_text": _with_cues(known) if known else "",
                "model_a": battle.first,
                "model_b": battle.second,
                "audio1_path": f"output/{battle.first}/{name}",
                "audio2_path": f"output/{battle.second}/{name}",
                "label": {
                    field: _TRACE[winners[criterion]] if criterion in winners else None
                    for field, criterion in _TRACE_LABELS.items()
                },
                "instruction_id": battle.instruction,
            }
        )
    return records


def to_chatbot_arena(
    judgements: Iterable[Judgement], criterion: Criterion = "overall"
) -> list[dict[str, Any]]:
    """Return Chatbot Arena's records of judgements with a verdict on the criterion; no probes."""
    return [
        {
            "question_id": judgement.battle.instruction,
            "model_a": judgement.battle.first,
            "model_b": judgement.battle.second,
            "winner": _CHATBOT_ARENA[judgement.winners[criterion]],
            "judge": judgement.judge,
            "language": judgement.language,
            "tstamp": _timestamp(judgement.time),
        }
        for judgement in _exported(judgements)
        if criterion in judgement.winners
    ]


def _exported(judgements: Iterable[Judgement]) -> Iterable[Judgement]:
    return (j for j in judgements if j.winners and j.battle.probe is None)


def _with_cues(instruction: Instruction) -> str:
    cues = "".join(f" [{name}: {value}]" for name, value in instruction.cue.items())
    return instruction.text + cues


def _timestamp(time: str) -> float | None:
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return None
