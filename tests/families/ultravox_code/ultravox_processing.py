"""The processor: a WhisperProcessor and a tokenizer, one text at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import transformers

MARK = "<|audio|>"
FRAMES = 3000


class UltravoxProcessor(transformers.ProcessorMixin):
    attributes = ("audio_processor", "tokenizer")

    def __init__(
        self, audio_processor: Any = None, tokenizer: Any = None, stack_factor: int = 8
    ) -> None:
        self.stack_factor = stack_factor
        super().__init__(audio_processor=audio_processor, tokenizer=tokenizer)

    @classmethod
    def from_pretrained(cls, name: str, **kwargs: Any) -> UltravoxProcessor:
        config = transformers.AutoConfig.from_pretrained(name, **kwargs)
        hearing = transformers.AutoProcessor.from_pretrained(config.audio_model_id)
        words = transformers.AutoTokenizer.from_pretrained(name, **kwargs)
        words.padding_side, words.pad_token = "left", words.eos_token
        return cls(hearing, words, config.stack_factor)

    def __call__(
        self, text: str, audios: list[Any] | None = None, sampling_rate: int | None = None
    ) -> transformers.BatchFeature:
        if not isinstance(text, str):
            raise ValueError("one text at a time")
        first, *following = self.tokenizer(text.split(MARK), add_special_tokens=False).input_ids
        if len(following) != len(audios or []):
            raise ValueError("a text says where each recording goes")
        ids, values, lens, starts, counts = list(first), [], [], [], []
        for mel, after in zip(self._hear(audios or [], sampling_rate), following, strict=True):
            for window in mel.split(FRAMES, dim=-1):
                frames = window.shape[-1]
                values.append(window)
                lens.append(frames)
                starts.append(len(ids))
                counts.append(math.ceil(frames / (2 * self.stack_factor)))
                ids += counts[-1] * [self.tokenizer.eos_token_id]
            ids += after
        made = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids)).long()}
        if values:
            pad, longest = torch.nn.functional.pad, max(lens)
            made |= {
                "audio_values": torch.stack([pad(x, (0, longest - x.shape[-1])) for x in values]),
                "audio_lens": torch.tensor(lens),
                "audio_token_len": torch.tensor(counts, dtype=torch.int),
                "audio_token_start_idx": torch.tensor(starts),
                "audio_batch_size": torch.tensor([len(values)]),
            }
        return transformers.BatchFeature(made)

    def _hear(self, audios: list[Any], rate: int | None) -> list[torch.Tensor]:
        extractor = self.audio_processor.feature_extractor
        hop = extractor.hop_length
        options = {"padding": "longest", "truncation": False, "return_tensors": "pt"}
        padded = [np.pad(wave, (0, -len(wave) % hop)) for wave in audios]
        return [extractor(x, sampling_rate=rate, **options).input_features[0] for x in padded]
