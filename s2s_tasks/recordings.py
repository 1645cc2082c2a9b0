"""Recordings looked at before a run: whatever is wrong with them is said before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

from lm_eval.api.instance import Instance

from s2s_tasks.adapters.contract import Adapter, AdapterError
from s2s_tasks.audio import Audio, AudioError, is_silent
from s2s_tasks.engine.ahead import ahead
from s2s_tasks.prompt import Prompt

AHEAD = 16
"""Recordings decoded ahead."""


def recordings_of(requests: Sequence[Instance], prompts: Sequence[Prompt]) -> dict[Audio, str]:
    """Return each recording once, with the first question that asks for it."""
    found: dict[str, tuple[Audio, str]] = {}
    for instance, prompt in zip(requests, prompts, strict=True):
        for audio in prompt.audio:
            question = f"{instance.task_name} {instance.doc.get('id', instance.doc_id)}"
            found.setdefault(audio.sha256, (audio, question))
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
            f"{audio.name}: {audio.seconds:.1f} s, longer than the {longest:g} s that the model "
            f"hears, and none is cut silently{chunk}"
        )
    if audio.seconds < adapter.shortest_audio:
        return (
            f"{audio.name}: {1000 * audio.seconds:.0f} ms, shorter than the "
            f"{1000 * adapter.shortest_audio:.0f} ms that the model needs to hear anything"
        )
    try:
        silent = is_silent(audio.load(audio.sampling_rate))
    except AudioError as error:
        return str(error)
    return f"{audio.name}: {audio.seconds:.2f} s of silence" if silent else None
