"""`Engine`: what a cascade asks of a text-to-speech."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from s2s_tasks.adapters.contract import Reply
from s2s_tasks.adapters.speaking import explain, seeded
from s2s_tasks.audio import Waveform


@dataclass(frozen=True)
class Speech:
    """What was said."""

    waveform: Waveform
    """Mono, `[frames]`, full scale is 1."""
    sampling_rate: int
    """In Hz."""


class Engine(ABC):
    """Says texts, in one voice and at one speed."""

    name: str
    """As the user named it, with voice and speed."""
    fingerprint: str
    """Whatever changes how it sounds."""

    @abstractmethod
    def say(self, text: str) -> Speech:
        """Say a text.

        Raises:
            Exception: whatever the engine raises where it cannot.
        """

    def reply(self, text: str) -> Reply:
        """Return a text that is spoken; without speech, and why, where that fails."""
        if not text.strip():
            return Reply(text, error="there is nothing to say: the reply is empty")
        try:
            with seeded() as seed:
                speech = self.say(text)
        # Each engine fails in its own ways, and none of them should cost the other answers.
        except Exception as error:
            return Reply(text, error=explain(error))
        return Reply(text, speech.waveform, speech.sampling_rate, seed)


def named(tts: str, voice: str | None, speed: str | float | None) -> str:
    """Name an engine with the voice and the speed that it was given."""
    return tts + (f":{voice}" if voice else "") + ("" if speed is None else f"@{speed}")
