"""What the browser sends."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from s2s_tasks.arena.records import CRITERIA, Criterion, Winner

REASONS = {
    "no_sound": "A recording does not play",
    "instruction": "I cannot understand the instruction",
    "language": "I do not speak this language",
    "upsetting": "I do not want to listen to this",
    "other": "Another reason",
}
"""Why a battle is skipped: what is stored, and what is read."""
LONGEST_NOTE = 500
"""Characters."""

Seconds = Annotated[
    float | None,
    Field(ge=0, allow_inf_nan=False),
    BeforeValidator(lambda value: None if value == "" else value),
]


class Form(BaseModel):
    """What both forms have."""

    assignment: str
    signature: str
    revision: int = Field(default=0, ge=0)
    """How often it was said before, as the page knew."""
    heard_instruction: Seconds = None
    heard_first: Seconds = None
    heard_second: Seconds = None

    @property
    def heard(self) -> dict[str, float | None]:
        """Seconds of each recording that were played, as the browser says; None where it did not.

        What was played twice counts once.
        """
        return {
            "instruction": self.heard_instruction,
            "first": self.heard_first,
            "second": self.heard_second,
        }


class Vote(Form):
    """A verdict."""

    instruction: Winner
    expression: Winner
    quality: Winner
    overall: Winner

    @property
    def winners(self) -> Mapping[Criterion, Winner]:
        """Who won, by criterion."""
        return {criterion: getattr(self, criterion) for criterion in CRITERIA}

    def reply(self) -> str:
        """Return what was sent, as JSON."""
        return json.dumps({"winners": self.winners, "heard": self.heard})


class Skip(Form):
    """No verdict, and why."""

    reason: str = Field(pattern=f"^({'|'.join(REASONS)})$")
    note: str = Field(default="", max_length=LONGEST_NOTE)

    def reply(self) -> str:
        """Return what was sent, as JSON."""
        return json.dumps(
            {"skipped": self.reason, "note": self.note, "heard": self.heard}, ensure_ascii=False
        )
