"""What a model hears, found out by trying its processor."""

from __future__ import annotations

import inspect
import logging
from dataclasses import dataclass
from typing import Any

from s2s_tasks.adapters.contract import AUDIO, AdapterError
from s2s_tasks.adapters.speech_processor import SpeechProcessor, sound

log = logging.getLogger(__name__)

SHORTEST = (0.1, 0.2, 0.4, 0.8)
"""Seconds, tried in turn. No speech fits in less; some models fail at a single frame."""


@dataclass(frozen=True)
class Hearing:
    """How a model takes recordings."""

    sampling_rate: int
    """In Hz."""
    seconds: float
    """Length of a recording that was tried."""
    positions: int
    """What it took in a prompt. Some models take as many for every recording."""
    shortest: float
    """Seconds of the shortest recording that takes a position."""
    longest: float | None
    """Seconds kept of one recording; None for all of it."""
    several: bool
    """Whether a prompt may have several recordings."""

    def __str__(self) -> str:
        most = f"at most {self.longest:g} s" if self.longest else "of any length"
        many = "several recordings a prompt" if self.several else "one recording a prompt"
        # One stands for a recording whose positions are known once it has been heard.
        taken = f"{self.positions} positions" if self.positions > 1 else "as many as it needs"
        rate = f"hears {self.sampling_rate} Hz"
        return f"{rate}, {taken} for {self.seconds:g} s of audio, {most}, {many}"


def try_hearing(processor: SpeechProcessor) -> Hearing:
    """Hand noise to a processor and look at what comes out.

    Raises:
        AdapterError: when it hears nothing.
    """
    shortest = _shortest(processor)
    longest = _longest(processor)
    tried = min(10.0, longest or 10.0)
    return Hearing(
        sampling_rate=processor.sampling_rate,
        seconds=tried,
        positions=_positions(processor, tried),
        shortest=shortest,
        longest=longest,
        several=_takes_several(processor),
    )


def _positions(processor: SpeechProcessor, seconds: float) -> int:
    ids, _ = processor(processor.markup, [sound(seconds, processor.sampling_rate)])
    return ids.count(AUDIO)


def _shortest(processor: SpeechProcessor) -> float:
    """Return the shortest of `SHORTEST` that takes a position."""
    problem: Exception | None = None
    for seconds in SHORTEST:
        try:
            if _positions(processor, seconds):
                return seconds
        # Processors refuse what they cannot take, each in its own way.
        except Exception as error:
            problem = error
    why = f": {type(problem).__name__}: {problem}" if problem else ""
    raise AdapterError(
        f"{type(processor.processor).__name__} makes no position of {processor.audio_token!r} out "
        f"of {SHORTEST[-1]:g} s of audio{why}"
    ) from problem


def _takes_several(processor: SpeechProcessor) -> bool:
    one = sound(1.0, processor.sampling_rate)
    alone, _ = processor(processor.markup, [one])
    try:
        both, _ = processor(2 * processor.markup, [one, one])
    # As above; some say outright that they take one.
    except Exception:
        log.debug("Two recordings in a prompt are refused", exc_info=True)
        return False
    return both.count(AUDIO) == 2 * alone.count(AUDIO)


def _longest(processor: SpeechProcessor) -> float | None:
    """Return the seconds after which a recording is cut; None where it never is."""
    window = _window(processor.extractor)
    promised = getattr(processor.processor, "max_audio_len", None)
    if promised is not None:
        return promised // window * window if window else float(promised)
    if window is None:
        return None
    # A window may also be one of several.
    at, beyond = (_positions(processor, seconds) for seconds in (window, 1.2 * window))
    return None if beyond > at else window


def _window(extractor: Any) -> float | None:
    """Return the seconds that an extractor takes at once, by its attribute or its defaults."""
    window = getattr(extractor, "chunk_length", None)
    if window is not None:
        return float(window)
    defaults = inspect.signature(type(extractor).__call__).parameters
    if "truncation" not in defaults or not defaults["truncation"].default:
        return None
    most = defaults["max_length"].default if "max_length" in defaults else None
    return most / extractor.sampling_rate if isinstance(most, int) else None
