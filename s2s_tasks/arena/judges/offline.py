"""`signal`: a judge that measures and understands nothing. It runs anywhere, in no time.

It is no stand-in for ears. It does not know what was asked or said, and cannot tell an answer from
that to another question; its failure on those probes is what shows it. It is good for trying
things out, and as a floor that a judge who listens must beat.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from s2s_tasks.arena.features import features, pitch, speech_quality
from s2s_tasks.arena.judges.contract import Reply
from s2s_tasks.arena.judges.prompt import Mode
from s2s_tasks.arena.records import Criterion, Instruction, Winner
from s2s_tasks.audio import Audio

VERSION = 1
"""Raised when the same recordings would be judged otherwise."""
SPEECH = 1.5
"""DNSMOS below which a recording is taken for noise; speech that is hardly usable has 2."""
ANSWERED = 0.3
"""Seconds of sound below which nothing was answered."""
QUALITY_STEP = 0.1
"""Difference of DNSMOS that counts; opinions of the same speech vary as much."""
RATIO = 1.1
"""Ratio of speech rates or pitches that counts: smaller ones are hardly heard."""
UP = {"rate": ("fast", "faster", "quick", "quickly"), "pitch": ("high", "higher")}
DOWN = {"rate": ("slow", "slower", "slowly"), "pitch": ("low", "lower", "deep", "deeper")}
"""Values of an instruction's target that can be measured."""


@dataclass(frozen=True)
class SignalJudge:
    """Goes by what can be measured.

    instruction: whether there is an answer at all. expression: speech rate and pitch, where the
    instruction's target names them. quality: DNSMOS. overall: the first of these that tells the
    answers apart. Where none is an answer both are bad. Strict verdicts on a criterion that does
    not tell are those of quality, and of a toss that the recordings make where that is equal, too.
    """

    mode: Mode = "strict"

    name = "signal"
    concurrent = True

    @property
    def version(self) -> str:
        """Of the rules above."""
        return f"{self.mode}-{VERSION}"

    def judge(self, instruction: Instruction, first: Audio, second: Audio) -> Reply:
        """Measure both.

        Raises:
            AudioError: when a recording cannot be read.
        """
        quality = _difference(speech_quality(first), speech_quality(second), QUALITY_STEP)
        answered = (_is_answer(first), _is_answer(second))
        leads: dict[Criterion, int] = {
            "instruction": int(answered[0]) - int(answered[1]),
            "expression": _expression(instruction.target, first, second),
            "quality": quality,
        }
        leads["overall"] = next((lead for lead in leads.values() if lead), 0)
        if self.mode == "ties" and not any(answered):
            leads = dict.fromkeys(leads, 0)
        heard = [instruction.audio.sha256, first.sha256, second.sha256]
        if self.mode == "strict":
            toss = 1 if hashlib.sha256("".join(heard).encode()).digest()[0] % 2 else -1
            leads = {criterion: lead or quality or toss for criterion, lead in leads.items()}
        draw = "tie" if any(answered) else "both_bad"
        names = {1: "first", -1: "second", 0: draw}
        winners = {criterion: cast(Winner, names[lead]) for criterion, lead in leads.items()}
        measured = {"first": _measured(first), "second": _measured(second)}
        asked = json.dumps([self.version, dict(instruction.target), *heard])
        return Reply(
            text=json.dumps({"measured": measured, **winners}),
            winners=winners,
            prompt_sha256=hashlib.sha256(asked.encode()).hexdigest(),
        )


def _is_answer(audio: Audio) -> bool:
    measured = features(audio)
    sound = measured["seconds"] * (1 - measured["silence"])
    return sound >= ANSWERED and speech_quality(audio) >= SPEECH


def _expression(target: Mapping[str, str], first: Audio, second: Audio) -> int:
    """Return 1 where the first does more of what is asked for, -1 where the second, else 0."""
    measures: dict[str, Callable[[Audio], float | None]] = {
        "rate": lambda audio: features(audio)["rate"],
        "pitch": pitch,
    }
    leads = 0
    for name, measure in measures.items():
        asked = target.get(name, "").strip().lower()
        wanted = (asked in UP[name]) - (asked in DOWN[name])
        if not wanted:
            continue
        one, other = measure(first), measure(second)
        if one and other and max(one, other) >= RATIO * min(one, other):
            leads += wanted if one > other else -wanted
    return (leads > 0) - (leads < 0)


def _difference(one: float, other: float, step: float) -> int:
    return (one - other >= step) - (other - one >= step)


def _measured(audio: Audio) -> dict[str, float]:
    values = {**features(audio), "dnsmos": speech_quality(audio)}
    return {name: round(value, 3) for name, value in values.items()}
