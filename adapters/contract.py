"""The contract of an adapter: what the engine asks of a model family."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from s2s_tasks.audio import Waveform
from s2s_tasks.errors import S2STasksError
from s2s_tasks.prompt import Continuation, Prompt
from s2s_tasks.score import Score

AUDIO = -1
"""Stands in `Prefix.ids` at each position of a recording."""
Message = Mapping[str, str]
"""A chat message: `role`, and as `content` a context string as `Prompt.to_request` writes it."""


class AdapterError(S2STasksError):
    """A model that cannot be loaded, or cannot do what is asked of it."""


@dataclass(frozen=True)
class Prefix:
    """A prompt as the model takes it."""

    ids: list[int]
    """Token ids, `AUDIO` at audio positions: [L]."""
    features: dict[str, torch.Tensor] = field(default_factory=dict)
    """What else `forward` takes; along the first dimension recordings, or the positions of soft
    tokens, so that those of several prompts can be joined there."""
    recordings: tuple[str, ...] = ()
    """sha256 of each recording, in order."""
    transcripts: tuple[str, ...] = ()
    """What a cascade heard in the prompt's recordings."""


@dataclass(frozen=True)
class Group:
    """Continuations of one prefix."""

    prefix: Prefix
    continuations: Sequence[Sequence[int]]
    """Token ids of each: [T]."""


@dataclass(frozen=True)
class Generation:
    """How to continue a prompt."""

    max_new_tokens: int
    until: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed to the model's own `generate`: `do_sample`, `temperature` …"""


class Reply(str):
    """What a model answers: a text, which may come with speech."""

    waveform: Waveform | None
    """The speech: mono, `[frames]`, full scale is 1; None of a model that only writes."""
    sampling_rate: int | None
    """Of the speech, in Hz."""
    seed: int | None
    """That the speech was drawn with."""
    error: str
    """Why there is no speech, where there should be."""

    def __new__(
        cls,
        text: str,
        waveform: Waveform | None = None,
        sampling_rate: int | None = None,
        seed: int | None = None,
        error: str = "",
    ) -> Reply:
        """Build the text, and keep what was said beside it."""
        reply = super().__new__(cls, text)
        reply.waveform, reply.sampling_rate = waveform, sampling_rate
        reply.seed, reply.error = seed, error
        return reply


class Adapter(ABC):
    """A model that answers for text, and for audio where it hears."""

    sampling_rate: int | None = None
    """Rate at which the model takes audio, in Hz; None for a model that does not hear."""
    shortest_audio: float = 0.1
    """Seconds below which the model may hear nothing: no speech is shorter."""
    longest_audio: float | None = None
    """Seconds that the model hears of one recording; None for no limit."""
    hears_several: bool = True
    """Whether a prompt may have several recordings."""
    max_length: int
    """Tokens that the model can attend to."""
    name: str
    """As the user named it."""
    fingerprint: str
    """Model, revision, dtype, checksum of the weights: whatever changes scores."""
    device: torch.device
    rounding: float
    """Nats by which two ways to the same score may differ a token, on average, for want of
    precision."""
    embeds_audio: bool = False
    """Whether recordings go into the model itself, not through a transcript."""
    speaks: bool = False
    """Whether replies come with speech."""
    keeps_audio: bool = False
    """Whether encodings of recordings come from a store; may be switched off."""

    def notes(self) -> list[str]:
        """Return what is to be told at the end of a run."""
        return []

    @property
    @abstractmethod
    def tokenizer(self) -> Any:
        """The tokenizer of the text side."""

    @property
    @abstractmethod
    def chat_template(self) -> str | None:
        """What `chat` writes by, for lm-eval's results; None without one."""

    @abstractmethod
    def prepare(self, prompt: Prompt) -> Any:
        """Do what needs no model: decode recordings, compute features. Called in other threads.

        Raises:
            AudioError: when a recording cannot be used; the message names it.
        """

    @abstractmethod
    def render(
        self, prompts: Sequence[Prompt], prepared: Sequence[Any] | None = None
    ) -> list[Prefix]:
        """Turn prompts into what the model takes.

        Args:
            prompts: what to render.
            prepared: what `prepare` returned for each, where it has been called.

        Raises:
            AudioError: when a recording cannot be used; the message names it.
        """

    @abstractmethod
    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Return the continuation's token ids [T] as they follow the prompt."""

    @abstractmethod
    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score continuations, each after its prefix, by one plain forward over each row."""

    @abstractmethod
    def score_groups(
        self, groups: Sequence[Group], most_positions: int | None = None
    ) -> list[list[Score]]:
        """Score the continuations of each prefix, which is read once.

        Args:
            groups: none longer than `max_length`.
            most_positions: how much to compute at once after the prefixes; None for all of it.
        """

    @abstractmethod
    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[Reply]:
        """Continue each prefix; a model that speaks says what it writes."""

    @abstractmethod
    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the model's chat template, placeholders kept in place.

        Raises:
            AdapterError: when the model has no template.
        """
