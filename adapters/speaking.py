"""Replies that are spoken: what the parts of a model that speak add to its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from s2s_tasks.adapters.contract import AdapterError, Reply
from s2s_tasks.audio import Waveform
from s2s_tasks.engine.batches import out_of_memory

Generate = Callable[..., torch.Tensor]
"""As transformers' `generate`: token ids of prompts with their replies, [rows, T]."""


class Speaker(ABC):
    """The parts of a model that speak, around the one that writes."""

    sampling_rate: int
    """Of what is said, in Hz."""
    identity: str
    """Names the voice, and changes with what makes it."""

    @abstractmethod
    def __init__(self, whole: Any, voice: str | None) -> None:
        """Take what `load` returned, and who is to speak: None for the model's own choice.

        Raises:
            AdapterError: when the model has no such voice.
        """

    @staticmethod
    @abstractmethod
    def load(pretrained: str, **options: Any) -> Any:
        """Load the whole model as its class's `from_pretrained` does.

        Raises:
            AdapterError: when it lacks weights.
        """

    @staticmethod
    @abstractmethod
    def writer(whole: Any) -> Any:
        """Return the part that writes."""

    @abstractmethod
    def generate(self, **given: Any) -> tuple[torch.Tensor, Waveform]:
        """Continue one prompt and say what is written.

        Args:
            **given: what `generate` of the part that writes takes.

        Returns:
            Token ids of the prompt with its reply: [1, T]; and the speech.
        """

    @abstractmethod
    def write(self, **given: Any) -> torch.Tensor:
        """Continue one prompt, and say nothing; as `generate`."""

    def reply(self, write: Callable[[Generate], str]) -> Reply:
        """Return what is written, and spoken; without speech, and why, where that fails.

        Args:
            write: continues one prompt with a given `generate`.

        Raises:
            RuntimeError: when memory does not suffice.
        """
        said: list[Waveform] = []

        def speak(**given: Any) -> torch.Tensor:
            ids, waveform = self.generate(**given)
            said.append(waveform)
            return ids

        try:
            with seeded() as seed:
                text = write(speak)
        # Whatever a talker stumbles over (a reply of one token, say) leaves the text right.
        except Exception as error:
            if isinstance(error, RuntimeError) and out_of_memory(error):
                raise
            with seeded():
                return Reply(write(self.write), error=explain(error.__cause__ or error))
        return Reply(text, said[0], self.sampling_rate, seed)


def speaker_of(
    whole: Any, name: str, kind: type[Speaker] | None, voice: str | None
) -> Speaker | None:
    """Return the parts of a model that speak; None for a model that only writes.

    Args:
        whole: the model.
        name: as the user named it.
        kind: what speaks; None where nothing does, or nothing is to.
        voice: who is to speak.

    Raises:
        AdapterError: for a voice that is not there.
    """
    if kind:
        return kind(whole, voice)
    if voice:
        raise AdapterError(
            f"voice={voice}: {name} only writes; give speech=DIR where it can speak, else leave "
            "voice out"
        )
    return None


def explain(error: BaseException) -> str:
    """Say in one line what went wrong."""
    return f"{type(error).__name__}: {error}".strip().replace("\n", " ")


@contextmanager
def seeded() -> Iterator[int]:
    """Draw as if nothing had been drawn since the run's seed was set, and yield that seed.

    So an answer does not change with those before it: a run that is killed goes on with the answers
    that it would have given. lm-eval's `--seed` sets it.
    """
    seed = torch.initial_seed()
    with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
        torch.manual_seed(seed)
        yield seed
