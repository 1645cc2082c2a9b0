"""What the store returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from s2s_tasks.arena.records import Criterion, Winner

ROLES = ("instruction", "first", "second")
"""Of the recordings of a battle, as heard."""


@dataclass(frozen=True)
class Assignment:
    """A battle that an annotator has before them."""

    id: str
    battle: str
    """Its key in the store."""
    swapped: bool
    sounds: Mapping[str, str]
    """Role → the id under which the recording is served."""


@dataclass(frozen=True)
class Said:
    """What an annotator said of a battle."""

    assignment: Assignment
    winners: Mapping[Criterion, Winner]
    """Empty where it was skipped."""
    skipped: str | None
    """Why."""
    reply: str
    revision: int
    """How often it was said: 1 at first."""


@dataclass(frozen=True)
class Sound:
    """What an id stands for."""

    battle: str
    swapped: bool
    role: str


@dataclass(frozen=True)
class Progress:
    """How far an annotator is, in battles."""

    voted: int
    skipped: int
    assigned: int

    @property
    def done(self) -> int:
        """Those that will not be shown again."""
        return self.voted + self.skipped
