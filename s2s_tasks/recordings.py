"""Recordings looked at before a run: whatever is wrong with them is said before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
from lm_eval.api.instance import Instance

from s2s_tasks.adapters.contract import Adapter, AdapterError
from s2s_tasks.audio import LOUDEST, Audio, AudioError, decode_channels, is_silent, mix
from s2s_tasks.engine.ahead import ahead
from s2s_tasks.instances import name_of
from s2s_tasks.prompt import Prompt

AHEAD = 16
"""Recordings decoded ahead."""


def recordings_of(requests: Sequence[Instance], prompts: Sequence[Prompt]) -> dict[Audio, str]:
    """Return each recording once, with the first question that asks for it."""
    found: dict[str, tuple[Audio, str]] = {}
    for number, (instance, prompt) in enumerate(zip(requests, prompts, strict=True)):
        for audio in prompt.audio:
            found.setdefault(audio.sha256, (audio, name_of(instance, number)))
    return dict(found.values())


def refuse_unusable(
    adapter: Adapter, recordings: Mapping[Audio, str], step: Callable[[], object]
) -> None:
    """Refuse recordings that the model would not hear as they are.

    Args:
        adapter: the model.
        recordings: each with the question that asks for it.
        step: called once a recording.

    Raises:
        AdapterError: when there are some; the message names them and their questions.
    """
    faults = list(_faults(adapter, recordings, step))
    if faults:
        raise AdapterError(
            f"{len(faults)} recording(s) cannot be asked of this model:\n"
            + "\n".join(faults)
            + "\nMend or replace them, or leave those questions out."
        )


def _faults(
    adapter: Adapter, recordings: Mapping[Audio, str], step: Callable[[], object]
) -> Iterator[str]:
    with closing(ahead(recordings, lambda audio: _fault(adapter, audio), AHEAD)) as looked_at:
        for audio, fault in looked_at:
            step()
            if fault:
                yield f"{recordings[audio]}: {fault}"


def _fault(adapter: Adapter, audio: Audio) -> str | None:
    """Say what is wrong with a recording, if anything is."""
    longest = adapter.longest_audio
    if longest is not None and audio.seconds > longest:
        chunk = "; long_audio=chunk splits it" if adapter.hears_several else ""
        return (
            f"{audio.name}: {_apart(audio.seconds, longest, 1)} s, longer than the {longest:g} s "
            f"that the model hears, and none is cut silently{chunk}"
        )
    if audio.seconds < adapter.shortest_audio:
        heard, needed = 1000 * audio.seconds, 1000 * adapter.shortest_audio
        return (
            f"{audio.name}: {_apart(heard, needed, 0)} ms, shorter than the {needed:g} ms that the "
            "model needs to hear anything"
        )
    try:
        channels = decode_channels(audio.read(), audio.name)
    except AudioError as error:
        return str(error)
    peak = float(np.abs(channels).max())
    if peak > LOUDEST:
        return (
            f"{audio.name}: its peak is {peak:,.0f}, where full scale is 1; integers written as "
            "floats must be divided, those of 16 bits by 32768"
        )
    if not is_silent(mix(channels)):
        return None
    if not all(map(is_silent, channels.T)):
        return (
            f"{audio.name}: its channels cancel out when they are averaged, and nothing is left to "
            "hear; keep one of them"
        )
    return f"{audio.name}: {audio.seconds:.2f} s of silence"


def _apart(value: float, bound: float, digits: int) -> str:
    """Write a value with as many digits as tell it from a bound, and at least `digits`."""
    shown = next((n for n in range(digits, 6) if round(value, n) != round(bound, n)), 6)
    return f"{value:.{shown}f}"
