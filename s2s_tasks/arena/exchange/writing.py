"""Judgements in others' formats.

Written is every verdict that could be read, one that a contest's rule gave against a silent answer
too: nothing tells it apart then. Probes and judgements without a verdict are left out. Neither
format can say what a judge replied, how likely a pair was to meet, what was measured of the
answers, and which recordings they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from s2s_tasks.arena.exchange.formats import CHATBOT_ARENA, TRACE, TRACE_LABELS
from s2s_tasks.arena.records import Criterion, Instruction, Judgement

CHATBOT_ARENA_FIELDS = (
    *("question_id", "model_a", "model_b", "winner", "judge", "language", "tstamp"),
    *("domain", "task", "level"),
)


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
                    field: TRACE[winners[criterion]] if criterion in winners else None
                    for field, criterion in TRACE_LABELS.items()
                },
                "instruction_id": battle.instruction,
                "judge": judgement.judge,
                "domain": judgement.domain,
                "task": judgement.task,
                "level": judgement.level,
                "language": judgement.language,
                "time": judgement.time,
            }
        )
    return records


def to_chatbot_arena(
    judgements: Iterable[Judgement], criterion: Criterion = "overall"
) -> list[dict[str, Any]]:
    """Return Chatbot Arena's records of judgements with a verdict on the criterion; no probes.

    A time that is not ISO 8601 is left out; one without a zone is UTC.
    """
    return [
        {
            "question_id": judgement.battle.instruction,
            "model_a": judgement.battle.first,
            "model_b": judgement.battle.second,
            "winner": CHATBOT_ARENA[judgement.winners[criterion]],
            "judge": judgement.judge,
            "language": judgement.language,
            "tstamp": _timestamp(judgement.time),
            "domain": judgement.domain,
            "task": judgement.task,
            "level": judgement.level,
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
        moment = datetime.fromisoformat(time)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
