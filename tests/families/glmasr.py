"""GLM-ASR: https://huggingface.co/docs/transformers/model_doc/glmasr."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from transformers import (
    GlmAsrConfig,
    GlmAsrForConditionalGeneration,
    GlmAsrProcessor,
    WhisperFeatureExtractor,
)

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
TEMPLATE = """
{%- for turn in messages -%}
{{ '<|' + turn['role'] + '|>\\n' }}
{%- if turn['content'] is string -%}
{{ turn['content'] | trim }}
{%- else -%}
{%- for part in turn['content'] -%}
{%- if part['type'] == 'audio' -%}
{{ '<|begin_of_audio|><|pad|><|end_of_audio|><|user|>\\n' }}
{%- else -%}
{{ part['text'] }}
{%- endif -%}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|assistant|>\\n' }}{%- endif -%}
"""
"""As published: after a recording the user's turn begins once more."""


def save(folder: Path) -> None:
    """Write a checkpoint with the chat template beside the processor's configuration."""
    words = tiny.tokenizer(
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|begin_of_audio|>",
        "<|end_of_audio|>",
        "<|pad|>",
    )
    config = GlmAsrConfig(
        audio_config={
            "model_type": "glmasr_encoder",
            "num_mel_bins": 16,
            "hidden_size": 16,
            "intermediate_size": 64,  # four frames in one: always four times the hidden size
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
        },
        text_config={
            "model_type": "llama",
            "vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 8192,
            "eos_token_id": words.convert_tokens_to_ids(["<|endoftext|>", "<|user|>"]),
        },
        audio_token_id=words.convert_tokens_to_ids("<|pad|>"),
    )
    model = GlmAsrForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    processor = GlmAsrProcessor(
        feature_extractor=WhisperFeatureExtractor(feature_size=16),
        tokenizer=words,
        chat_template=TEMPLATE.strip(),
    )
    processor.save_pretrained(folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the documentation does."""
    model = GlmAsrForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), GlmAsrProcessor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Put the recording between the marks that the chat template puts it between."""
    text = f"{before}<|begin_of_audio|><|pad|><|end_of_audio|>{after}"
    return dict(processor(text=text, audio=waveform))
