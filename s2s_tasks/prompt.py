"""What is asked of a model: a `Prompt` of text and audio segments, then a continuation.

lm-eval hands contexts over as strings. There, the audio of segment i stands as the placeholder
`<|audio:i|>` and the recordings travel beside the string. `Prompt.to_request` and
`parse_request` are each other's inverse; a look-alike in a data set's own text is escaped, so
it is never taken for a recording.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from s2s_tasks.audio import Audio
from s2s_tasks.errors import S2STasksError

Segment = str | Audio
Continuation = str | Audio

_OPENING = "<|audio:"
_ESCAPED = "<|audio::"
_PLACEHOLDER = re.compile(r"<\|audio:(?:(\d+)\|>|:)")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A sequence of text and audio segments; neighbouring texts are one segment."""

    segments: tuple[Segment, ...]

    @classmethod
    def of(cls, *segments: Segment) -> Prompt:
        """Build a prompt; empty texts vanish and neighbouring texts are joined."""
        return cls(tuple(_merge(segments)))

    @property
    def audio(self) -> tuple[Audio, ...]:
        """The recordings, in order."""
        return tuple(segment for segment in self.segments if isinstance(segment, Audio))

    @property
    def seconds(self) -> float:
        """Seconds of audio."""
        return sum(audio.seconds for audio in self.audio)

    @property
    def text(self) -> str:
        """The text segments joined: all of a prompt without audio."""
        return "".join(segment for segment in self.segments if isinstance(segment, str))

    def to_request(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the context string with placeholders, and the recordings beside it."""
        pieces: list[str] = []
        recordings: list[dict[str, Any]] = []
        for segment in self.segments:
            if isinstance(segment, Audio):
                pieces.append(placeholder(len(recordings)))
                recordings.append(segment.to_json())
            else:
                pieces.append(escape(segment))
        return "".join(pieces), recordings


@dataclass(frozen=True, slots=True)
class Request:
    """One continuation to score after one prompt."""

    prompt: Prompt
    continuation: Continuation


def placeholder(index: int) -> str:
    """Return what stands for recording `index` in a context string."""
    return f"<|audio:{index}|>"


def escape(text: str) -> str:
    """Return `text` such that nothing in it reads as a placeholder."""
    return text.replace(_OPENING, _ESCAPED)


def split_context(context: str) -> list[str | int]:
    """Split a context string into texts, unescaped, and the indices of recordings."""
    pieces: list[str | int] = []
    text, end = "", 0
    for match in _PLACEHOLDER.finditer(context):
        text += context[end : match.start()]
        end = match.end()
        if match[1] is None:
            text += _OPENING
        else:
            pieces += [text, int(match[1])]
            text = ""
    pieces.append(text + context[end:])
    return [piece for piece in pieces if piece != ""]


def parse_request(context: str, recordings: Sequence[dict[str, Any]]) -> Prompt:
    """Rebuild the prompt from a context string and the recordings beside it.

    Raises:
        S2STasksError: when a placeholder names a recording that is not there, or none names one
            that is.
    """
    segments: list[Segment] = []
    for piece in split_context(context):
        if isinstance(piece, str):
            segments.append(piece)
        elif piece < len(recordings):
            segments.append(Audio.from_json(recordings[piece]))
        else:
            raise S2STasksError(
                f"the context names recording {piece}, but {len(recordings)} came with it; text "
                f"that only looks like a placeholder must go through s2s_tasks.prompt.escape: "
                f"{context!r}"
            )
    prompt = Prompt.of(*segments)
    if len(set(prompt.audio)) < len({Audio.from_json(handle) for handle in recordings}):
        raise S2STasksError(
            f"{len(recordings)} recording(s) came with a context that does not name them all by "
            f"{placeholder(0)} …: {context!r}"
        )
    return prompt


def move_boundary(request: Request) -> Request:
    """Move spaces at the end of the prompt to the head of a text continuation.

    Tokenizers attach a space to the word after it, so a boundary space belongs to the scored
    continuation (lm_eval.api.model.TemplateLM._encode_pair does the same). Line breaks stay:
    the end of a chat template's header is not part of the reply.
    """
    segments, continuation = request.prompt.segments, request.continuation
    if not (segments and isinstance(segments[-1], str) and isinstance(continuation, str)):
        return request
    kept = segments[-1].rstrip(" ")
    moved = segments[-1][len(kept) :]
    return Request(Prompt.of(*segments[:-1], kept), moved + continuation) if moved else request


def _merge(segments: Iterable[Segment]) -> Iterable[Segment]:
    text = ""
    for segment in segments:
        if isinstance(segment, str):
            text += segment
            continue
        if text:
            yield text
            text = ""
        yield segment
    if text:
        yield text
