"""What a model takes beside token ids, for a batch of prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from s2s_tasks.adapters.audio_front import AudioFront
from s2s_tasks.adapters.contract import AUDIO, Prefix
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM
from s2s_tasks.adapters.families.family import Family
from s2s_tasks.adapters.soft_tokens import embed_recordings

Features = dict[str, torch.Tensor]
Inputs = dict[str, Any]
"""Features, and options of the model's own."""


class ModelInputs:
    """Features of recordings, or the soft tokens that the model's audio part makes of them."""

    def __init__(
        self, model: Any, audio_token_id: int | None, front: AudioFront | None, family: Family
    ) -> None:
        """Take a model.

        Args:
            model: of transformers, on its device.
            audio_token_id: what it wants at audio positions; None for one that only reads.
            front: a store of encodings.
            family: the model's.
        """
        self._model = model
        self._audio = audio_token_id
        self._front = front
        self._family = family
        self._device: torch.device = model.get_input_embeddings().weight.device

    def place(self, prefix: Prefix, first_id: int, *, kept: bool) -> Prefix:
        """Put soft tokens in, where their number is known only once the model has heard.

        Args:
            prefix: one `AUDIO` a recording.
            first_id: stands for a prefix of which nothing is left.
            kept: whether encodings may come from the store.
        """
        if not prefix.features or not isinstance(self._model, CTCSpeechLM):
            return prefix
        with self._hearing(prefix, kept):
            embedded = self._model.embed_audio(**self._to_model(prefix.features))
        ids = expand(prefix.ids, [len(tokens) for tokens in embedded])
        return replace(
            prefix, ids=ids or [first_id], features={"audio_embeds": torch.cat(embedded)}
        )

    def features(self, prefixes: Sequence[Prefix], *, kept: bool) -> Inputs:
        """Return what `forward` takes, soft tokens where recordings do not go in together."""
        if not kept and self._family.batches_audio:
            return self.raw(prefixes)
        return self._to_model(collate([self._soft(prefix, kept) for prefix in prefixes]))

    def raw(self, prefixes: Sequence[Prefix]) -> Inputs:
        """Return what `generate` takes: the processor's features."""
        return self._with_options(collate([prefix.features for prefix in prefixes]))

    def _soft(self, prefix: Prefix, kept: bool) -> Features:
        if not prefix.features or "audio_embeds" in prefix.features:
            return prefix.features
        assert self._audio is not None
        given = self._with_options(prefix.features)
        with self._hearing(prefix, kept):
            embedded = embed_recordings(
                self._model, prefix.ids, self._audio, given, self._family.embedder
            )
        return {"audio_embeds": embedded}

    def _hearing(self, prefix: Prefix, kept: bool) -> Any:
        return self._front.hearing(prefix.recordings) if self._front and kept else nullcontext()

    def _with_options(self, features: Features) -> Inputs:
        return {**self._to_model(features), **(self._family.options if features else {})}

    def _to_model(self, features: Features) -> Features:
        return {
            name: tensor.to(self._device, self._model.dtype)
            if tensor.is_floating_point()
            else tensor.to(self._device)
            for name, tensor in features.items()
        }


def expand(ids: Sequence[int], counts: Sequence[int]) -> list[int]:
    """Repeat each `AUDIO` as often as the recording it stands for has positions."""
    left = iter(counts)
    return [repeated for id_ in ids for repeated in [id_] * (next(left) if id_ == AUDIO else 1)]


def collate(features: Sequence[Features]) -> Features:
    """Join the features of several prompts along the first dimension, padding the others."""
    joined: Features = {}
    for name in dict.fromkeys(name for item in features for name in item):
        tensors = [item[name] for item in features if name in item]
        longest = [max(sizes) for sizes in zip(*(t.shape[1:] for t in tensors), strict=True)]
        joined[name] = torch.cat([_pad(tensor, longest) for tensor in tensors])
    return joined


def _pad(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    missing = [target - size for target, size in zip(shape, tensor.shape[1:], strict=True)]
    padding = [amount for size in reversed(missing) for amount in (0, size)]
    return torch.nn.functional.pad(tensor, padding)
