"""Gemma 4 without encoders: https://huggingface.co/google/gemma-4-12B-it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny
import torch
from transformers import (
    AutoTokenizer,
    Gemma4UnifiedAudioFeatureExtractor,
    Gemma4UnifiedConfig,
    Gemma4UnifiedForConditionalGeneration,
    Gemma4UnifiedProcessor,
)

from . import gemma4
from .gemma4 import SAMPLING_RATE, TEMPLATE, bare, chat
from .unseen import Images, Unchecked, Videos

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]


class Processor(Unchecked, Gemma4UnifiedProcessor):
    """The model's, but for its stand-ins."""


def save(folder: Path) -> None:
    """Write a checkpoint that takes 40 ms of a waveform as a soft token."""
    words = gemma4.tokenizer(gemma4.TOKENS, "<|video|>")
    config = Gemma4UnifiedConfig(
        audio_config={"audio_embed_dim": 640},
        vision_config={
            "patch_size": 4,
            "mm_embed_dim": 32,
            "mm_posemb_size": 8,
            "output_proj_dims": 32,
        },
        text_config={**gemma4.TEXT_CONFIG, **gemma4.text_ids(words)},
        **gemma4.ids(words),
    )
    model = Gemma4UnifiedForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    gemma4.write(folder, words, Gemma4UnifiedAudioFeatureExtractor(), "Gemma4Unified")


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = Gemma4UnifiedForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    processor = Processor(
        Gemma4UnifiedAudioFeatureExtractor.from_pretrained(folder),
        Images(),
        AutoTokenizer.from_pretrained(folder),
        Videos(),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor
