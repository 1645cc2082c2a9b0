"""Qwen3-ASR: https://huggingface.co/Qwen/Qwen3-ASR-1.7B-hf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from transformers import (
    AutoProcessor,
    Qwen3ASRConfig,
    Qwen3ASRFeatureExtractor,
    Qwen3ASRForConditionalGeneration,
    Qwen3ASRProcessor,
)

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
TOKENS = {
    "audio_token": "<|audio_pad|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
# As published: the user's text is left out, and a system's turn is always there.
TEMPLATE = """\
<|im_start|>system
{% for message in messages if message['role'] == 'system' %}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{% for part in message['content'] if part['type'] == 'text' %}{{ part['text'] }}{% endfor %}
{% endif %}
{% endfor %}<|im_end|>
<|im_start|>user
{% for message in messages if message['content'] is not string %}
{% for part in message['content'] if part['type'] == 'audio' %}
<|audio_start|><|audio_pad|><|audio_end|>
{%- endfor %}
{% endfor %}<|im_end|>
{% for message in messages if message['role'] == 'assistant' %}<|im_start|>assistant
{% for part in message['content'] %}{{ part['text'] }}{% endfor %}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def save(folder: Path) -> None:
    """Write a checkpoint in the format of transformers."""
    words = tiny.tokenizer(*TOKENS.values(), "<asr_text>", "<timestamp>")
    words = type(words)(
        tokenizer_object=words.backend_tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        extra_special_tokens=TOKENS,
    )
    config = Qwen3ASRConfig(
        audio_config={
            "num_mel_bins": 16,
            "d_model": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "downsample_hidden_size": 4,
            "output_dim": 32,
        },
        text_config={
            "vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": True,
        },
        audio_token_id=words.convert_tokens_to_ids("<|audio_pad|>"),
        timestamp_token_id=words.convert_tokens_to_ids("<timestamp>"),
        pad_token_id=words.pad_token_id,
        eos_token_id=[
            words.convert_tokens_to_ids("<|endoftext|>"),
            words.convert_tokens_to_ids("<|im_end|>"),
        ],
    )
    model = Qwen3ASRForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    extractor = Qwen3ASRFeatureExtractor(feature_size=16)
    Qwen3ASRProcessor(extractor, words, chat_template=TEMPLATE).save_pretrained(folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = Qwen3ASRForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoProcessor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the markup that the chat template has for a recording."""
    text = f"{before}<|audio_start|><|audio_pad|><|audio_end|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
