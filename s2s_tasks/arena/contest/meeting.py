"""A battle with all that is heard in it, and what stands in the log of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import s2s_tasks
from s2s_tasks.arena.features import NO_SOUND, features
from s2s_tasks.arena.judges.contract import Judge, Reply
from s2s_tasks.arena.records import Battle, Instruction, Judgement
from s2s_tasks.audio import Audio

Asked = tuple[str, str, str, str, str]
"""Judge, battle, and the hashes of its three recordings: what is not asked twice."""


@dataclass(frozen=True)
class Meeting:
    """A battle, the instruction, and the two answers."""

    battle: Battle
    instruction: Instruction
    first: Audio | None
    """None where the answer is silent."""
    second: Audio | None

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the recordings, as `Judgement.answers` holds them; empty where none is."""
        return {
            "instruction": self.instruction.audio.sha256,
            "first": self.first.sha256 if self.first else "",
            "second": self.second.sha256 if self.second else "",
        }

    def asked(self, judge: str) -> Asked:
        """Return what tells this question from all others."""
        heard = self.hashes
        return (judge, self.battle.key, heard["instruction"], heard["first"], heard["second"])

    def judgement(self, judge: str, reply: Reply) -> Judgement:
        """Return the line of the log."""
        return Judgement(
            battle=self.battle,
            judge=judge,
            domain=self.instruction.domain,
            task=self.instruction.task,
            level=self.instruction.level,
            language=self.instruction.language,
            winners=reply.winners,
            reply=reply.text,
            prompt_sha256=reply.prompt_sha256,
            answers=self.hashes,
            features={
                f"{side}_{name}": value
                for side, audio in (("first", self.first), ("second", self.second))
                for name, value in (features(audio) if audio else NO_SOUND).items()
            },
            time=datetime.now(UTC).isoformat(timespec="seconds"),
            version=s2s_tasks.__version__,
        )


def identity(judge: Judge) -> str:
    """Return a judge's name in the log."""
    return f"{judge.name}@{judge.version}"


def asked_in(judgement: Judgement) -> Asked:
    """Return what a line of the log answers; the counterpart of `Meeting.asked`."""
    first, second = judgement.answers.get("first", ""), judgement.answers.get("second", "")
    instruction = judgement.answers.get("instruction", "")
    return (judgement.judge, judgement.battle.key, instruction, first, second)
