"""What others' battle files are like: which field holds what, and how verdicts are written.

TRACE (arXiv 2601.13742) labels battles in a JSON list, by content, voice quality, paralinguistics
and overall, with 1, 2, both_good or both_bad. Chatbot Arena has model_a, model_b and a winner:
model_a, model_b, tie or tie (bothbad). Whatever else names two systems and a winner is read by a
mapping of fields. Fields that those formats do not have (of TRACE, who judged; of both, domain,
task and level) are ours: other readers pass over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from s2s_tasks.arena.records import Criterion, Winner

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
    "time": "ISO 8601, or seconds since 1970, or thousandths of them",
}
"""What a field can hold. Of `path`, `judge` and those below, a row may lack each; without `id`,
rows are instructions of their own."""

_OURS = {name: name for name in ("judge", "domain", "task", "level", "language", "time")}

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
        **_OURS,
    },
    "chatbot-arena": {
        "id": "question_id",
        "first": "model_a",
        "second": "model_b",
        "winner": "winner",
        **_OURS,
        "time": "tstamp",
    },
    "other": {},
}
"""By format: what is in which field."""

TRACE_LABELS: dict[str, Criterion] = {
    "content": "instruction",
    "voice_quality": "quality",
    "paralinguistics": "expression",
    "overall": "overall",
}
TRACE: dict[Winner, str] = {
    "first": "1",
    "second": "2",
    "tie": "both_good",
    "both_bad": "both_bad",
}
CHATBOT_ARENA: dict[Winner, str] = {
    "first": "model_a",
    "second": "model_b",
    "tie": "tie",
    "both_bad": "tie (bothbad)",
}

Meaning = Winner | Literal["name"]
"""Of a word; `name`: the system that is called so."""

OWN_WORDS: dict[str, Mapping[str, Meaning]] = {
    "trace": {word: winner for winner, word in TRACE.items()},
    "chatbot-arena": {word: winner for winner, word in CHATBOT_ARENA.items()},
    "other": {},
}
"""By format: its verdicts. They mean that whatever the systems are called."""

WORDS: dict[str, Winner] = {
    **dict.fromkeys(("1", "a", "model_a", "first", "left", "audio1", "audio_a"), "first"),
    **dict.fromkeys(("2", "b", "model_b", "second", "right", "audio2", "audio_b"), "second"),
    **dict.fromkeys(("tie", "draw", "both_good", "tie (bothgood)"), "tie"),
    **dict.fromkeys(("both_bad", "tie (bothbad)", "bothbad"), "both_bad"),
}
"""How others write a verdict, in small letters; the name of a system is one too."""
