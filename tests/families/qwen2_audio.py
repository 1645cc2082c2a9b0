"""Qwen2-Audio: https://huggingface.co/Qwen/Qwen2-Audio-7B-Instruct."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from transformers import (
    Qwen2AudioConfig,
    Qwen2AudioForConditionalGeneration,
    Qwen2AudioProcessor,
    WhisperFeatureExtractor,
)

SAMPLING_RATE = 16000


def save(folder: Path) -> None:
    """Write a checkpoint with the processor's own chat template."""
    words = tiny.tokenizer("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>")
    config = Qwen2AudioConfig(
        audio_config={
            "model_type": "qwen2_audio_encoder",
            "num_mel_bins": 16,
            "d_model": 16,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
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
            "max_position_embeddings": 4096,
        },
        audio_token_index=words.convert_tokens_to_ids("<|AUDIO|>"),
    )
    model = Qwen2AudioForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    extractor = WhisperFeatureExtractor(feature_size=16)
    Qwen2AudioProcessor(feature_extractor=extractor, tokenizer=words).save_pretrained(folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = Qwen2AudioForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), Qwen2AudioProcessor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does for the base model."""
    text = f"{before}<|audio_bos|><|AUDIO|><|audio_eos|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does for the instruct model."""
    turns = [{"role": "system", "content": system}] if system else []
    user = [{"type": "audio", "audio": waveform}, {"type": "text", "text": question}]
    text = processor.apply_chat_template(
        [*turns, {"role": "user", "content": user}], add_generation_prompt=True, tokenize=False
    )
    return dict(
        processor(text=text, audio=[waveform], sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
