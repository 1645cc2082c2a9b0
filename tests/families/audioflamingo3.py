"""Audio Flamingo 3: https://huggingface.co/docs/transformers/model_doc/audioflamingo3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from transformers import (
    AudioFlamingo3Config,
    AudioFlamingo3ForConditionalGeneration,
    AudioFlamingo3Processor,
    WhisperFeatureExtractor,
)

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
TEMPLATE = """
{%- if messages[0]['role'] != 'system' -%}
{{ '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
{%- endif -%}
{%- for turn in messages -%}
{{ '<|im_start|>' + turn['role'] + '\\n' }}
{%- if turn['content'] is string -%}
{{ turn['content'] }}
{%- else -%}
{%- if turn['content'] | selectattr('type', 'equalto', 'audio') | list -%}<sound>{%- endif -%}
{{ turn['content'] | selectattr('type', 'equalto', 'text') | map(attribute='text') | join }}
{%- endif -%}
{{ '<|im_end|>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\\n' }}{%- endif -%}
"""
"""As published: the sound goes first in its turn, and without a system's turn comes a default."""


def save(folder: Path) -> None:
    """Write a checkpoint with the chat template beside the processor's configuration."""
    words = tiny.tokenizer("<sound>")
    config = AudioFlamingo3Config(
        audio_config={
            "model_type": "audioflamingo3_encoder",
            "num_mel_bins": 16,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "max_source_positions": 1500,
        },
        text_config={
            "model_type": "qwen2",
            "vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32768,
        },
        audio_token_id=words.convert_tokens_to_ids("<sound>"),
    )
    model = AudioFlamingo3ForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=16, return_attention_mask=True)
    processor = AudioFlamingo3Processor(
        feature_extractor=extractor, tokenizer=words, chat_template=TEMPLATE.strip()
    )
    processor.save_pretrained(folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the documentation does."""
    model = AudioFlamingo3ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AudioFlamingo3Processor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Put the one placeholder that the processor knows where the recording is."""
    return dict(processor(text=f"{before}<sound>{after}", audio=waveform))
