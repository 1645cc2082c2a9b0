"""What was asked for, and what it took."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Load:
    """An amount of a model's work."""

    prefixes: int = 0
    positions: int = 0
    """Tokens and positions of audio that a model reads."""
    audio_seconds: float = 0.0

    def add(self, prefixes: int, positions: int, audio_seconds: float) -> None:
        """Count more."""
        self.prefixes += prefixes
        self.positions += positions
        self.audio_seconds += audio_seconds


@dataclass
class Work:
    """What plain forwards, one a request, would take, and what was really computed."""

    asked: Load = field(default_factory=Load)
    computed: Load = field(default_factory=Load)
    start: float = field(default_factory=time.monotonic)

    @property
    def speed(self) -> float:
        """Seconds of audio that were asked for, a second."""
        return self.asked.audio_seconds / max(time.monotonic() - self.start, 1e-9)

    def __str__(self) -> str:
        done, asked = self.computed, self.asked
        return (
            f"Scored in {time.monotonic() - self.start:.1f} s. Of what was asked for was computed: "
            f"{done.prefixes:,} of {asked.prefixes:,} contexts, "
            f"{done.positions:,} of {asked.positions:,} tokens, "
            f"{done.audio_seconds:,.0f} of {asked.audio_seconds:,.0f} s of audio"
        )
