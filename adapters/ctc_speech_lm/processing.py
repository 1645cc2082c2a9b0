"""`CTCSpeechLMProcessor`: text to token ids, recordings to log-mel spectrograms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoFeatureExtractor, AutoTokenizer

from s2s_tasks.adapters.ctc_speech_lm.configuration import CTCSpeechLMConfig
from s2s_tasks.adapters.ctc_speech_lm.parts import load_part

AUDIO_TOKEN = "<|audio|>"
"""Added to the LM's tokenizer; the LM has no embedding of it and never sees it."""
SHORTEST = 400
"""Samples in a window of Whisper's spectrogram, 25 ms; a shorter recording gets silence behind."""


class CTCSpeechLMProcessor:
    """The text part's tokenizer and the audio part's feature extractor."""

    audio_token = AUDIO_TOKEN

    def __init__(self, feature_extractor: Any, tokenizer: Any) -> None:
        """Teach the tokenizer the audio token."""
        self.feature_extractor = feature_extractor
        self.tokenizer = tokenizer
        tokenizer.add_tokens([AUDIO_TOKEN], special_tokens=True)
        self.chat_template = tokenizer.chat_template

    @classmethod
    def from_pretrained(
        cls, pretrained: str | Path, *, revision: str | None = None, **_: Any
    ) -> CTCSpeechLMProcessor:
        """Load the processors of the parts that a checkpoint names."""
        config = CTCSpeechLMConfig.from_pretrained(pretrained, revision=revision)
        processor = cls(
            load_part(AutoFeatureExtractor.from_pretrained, config.audio_model_id),
            load_part(AutoTokenizer.from_pretrained, config.text_model_id),
        )
        found = processor.tokenizer.convert_tokens_to_ids(AUDIO_TOKEN)
        if found != config.audio_token_id:
            raise ValueError(
                f"{AUDIO_TOKEN} is token {found} of {config.text_model_id}, but "
                f"{config.audio_token_id} in {pretrained}/config.json: is it the tokenizer with "
                "which the checkpoint was trained?"
            )
        return processor

    def __call__(
        self,
        text: Sequence[str],
        audio: Sequence[NDArray[np.float32]],
        sampling_rate: int,
        **options: Any,
    ) -> dict[str, torch.Tensor]:
        """Return `input_ids`, one audio token a recording, and the recordings' spectrograms.

        Args:
            text: one prompt.
            audio: mono recordings: [frames] each.
            sampling_rate: of the recordings, in Hz.
            **options: the tokenizer's.
        """
        inputs = dict(self.tokenizer(list(text), **options))
        spectrograms = [
            torch.from_numpy(
                self.feature_extractor(
                    np.pad(samples, (0, max(0, SHORTEST - len(samples)))),
                    sampling_rate=sampling_rate,
                    padding="longest",  # of one: not padded to 30 s
                    truncation=False,
                ).input_features[0]
            )
            for samples in audio
        ]
        longest = max(spectrogram.shape[1] for spectrogram in spectrograms)
        return inputs | {
            "input_features": torch.stack(
                [torch.nn.functional.pad(s, (0, longest - s.shape[1])) for s in spectrograms]
            ),
            "feature_lengths": torch.tensor([s.shape[1] for s in spectrograms]),
        }

    def apply_chat_template(self, conversation: Sequence[Mapping[str, Any]], **options: Any) -> str:
        """Render a conversation with the LM's template; recordings become audio tokens."""
        written = [
            {
                "role": message["role"],
                "content": "".join(
                    part["text"] if part["type"] == "text" else AUDIO_TOKEN
                    for part in message["content"]
                ),
            }
            for message in conversation
        ]
        return cast(str, self.tokenizer.apply_chat_template(written, **options))
