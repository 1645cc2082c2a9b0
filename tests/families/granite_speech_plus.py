"""Granite Speech Plus: https://huggingface.co/ibm-granite/granite-speech-4.1-2b-plus."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tiny
import torch
from transformers import GraniteSpeechPlusConfig, GraniteSpeechPlusForConditionalGeneration

from . import granite_speech
from .granite_speech import SAMPLING_RATE, bare, chat

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
TEMPLATE = """\
{% for message in messages -%}
{% if message['role'] == 'user' %}USER: {{ message['content'] }}
 ASSISTANT:{% elif message['role'] == 'assistant' %}{{ message['content'] }}{% endif %}
{%- endfor %}"""


def save(folder: Path) -> None:
    """Write a checkpoint without an adapter, whose projector reads two layers of the encoder."""
    words = tiny.tokenizer("<|audio|>")
    settings = granite_speech.settings(words)
    settings["encoder_config"]["cat_hidden_layers"] = [1]
    settings["projector_config"]["encoder_hidden_size"] *= 2
    config = GraniteSpeechPlusConfig(**settings, has_lora_adapter=False)
    model = GraniteSpeechPlusForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    granite_speech.write(folder, words, TEMPLATE)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = GraniteSpeechPlusForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), granite_speech.parts(folder)
