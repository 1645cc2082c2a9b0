"""The contract of a judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from s2s_tasks.arena.records import Criterion, Instruction, Winner
from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError


class JudgeError(S2STasksError):
    """A judge that cannot be asked: no key, no network, a request that it refuses."""


@dataclass(frozen=True)
class Reply:
    """What a judge said."""

    text: str
    """Word for word."""
    winners: Mapping[Criterion, Winner]
    """Empty where `text` holds no verdict that can be read."""
    prompt_sha256: str
    """Of what it was asked: texts, hashes of the recordings, and how they were presented."""


class Judge(Protocol):
    """Whoever says which of two answers is better."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def version(self) -> str:
        """Begins with the mode and a hyphen, as `prompt.mode_of` reads it.

        Changes with whatever may change verdicts: prompt, mode, presentation.
        """

    @property
    def concurrent(self) -> bool:
        """Whether `judge` may be called from several threads at once."""

    def judge(self, instruction: Instruction, first: Audio, second: Audio) -> Reply:
        """Compare two answers to an instruction, in the order in which they are heard.

        Raises:
            JudgeError: when the judge cannot be asked; it may be later.
            AudioError: when a recording cannot be read.
        """
