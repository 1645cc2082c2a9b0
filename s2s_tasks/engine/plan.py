"""Which requests share work: the same prompt is read once, the same question is asked once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Continuation, Prompt, Request, move_boundary

AUDIO_SECOND_IN_CHARACTERS = 75
"""About 25 positions a second of audio against 3 characters a token: for sorting only."""


@dataclass(frozen=True)
class Branches:
    """A prompt, and all that is asked after it."""

    prompt: Prompt
    askers: dict[Continuation, list[int]] = field(default_factory=dict)
    """Each distinct continuation, and the indices of the requests that ask for it."""


def plan(requests: Sequence[Request]) -> list[Branches]:
    """Group requests by prompt, longest first, so that memory runs out at once or never.

    Two prompts are one when their texts are, and their recordings by content, wherever these lie.
    """
    groups: dict[Hashable, Branches] = {}
    for index, request in enumerate(map(move_boundary, requests)):
        group = groups.setdefault(_identity(request.prompt), Branches(request.prompt))
        group.askers.setdefault(request.continuation, []).append(index)
    return sorted(groups.values(), key=_length, reverse=True)


def _identity(prompt: Prompt) -> Hashable:
    return tuple(
        (segment.sha256, segment.language) if isinstance(segment, Audio) else segment
        for segment in prompt.segments
    )


def _length(group: Branches) -> float:
    return text_length(group.prompt) + sum(len(c) for c in group.askers if isinstance(c, str))


def text_length(prompt: Prompt) -> float:
    """Guess how long a prompt is before it is rendered, in characters."""
    return len(prompt.text) + prompt.seconds * AUDIO_SECOND_IN_CHARACTERS
