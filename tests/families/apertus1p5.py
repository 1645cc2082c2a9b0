"""Apertus 1.5: https://huggingface.co/swiss-ai/Apertus-v1.5-8B."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from tokenizers.processors import TemplateProcessing
from transformers import (
    Apertus1p5Config,
    Apertus1p5ForConditionalGeneration,
    Apertus1p5Processor,
    AutoTokenizer,
    WavTokenizerFeatureExtractor,
)

from .unseen import Images

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 24000
TOKENS = {
    "image_token": "<|image|>",
    "audio_token": "<|audio|>",
    "boi_token": "<|img_start|>",
    "eoi_token": "<|img_end|>",
    "image_wrapper_token": "<|img_token_start|>",
    "eol_token": "<|img_end_of_row|>",
    "boa_token": "<|audio_start|>",
    "eoa_token": "<|audio_end|>",
}
ROLES = ["system", "developer", "user", "assistant"]
TEMPLATE = """\
{% macro render(content) %}{% if content is string %}{{ content }}{% else %}
{% for part in content %}
{% if part['type'] == 'audio' %}<|audio|>
{%- elif part['type'] == 'image' %}<|image|>
{%- else %}{{ part['text'] }}{% endif %}
{% endfor %}{% endif %}{% endmacro %}
<s>
{%- if messages[0]['role'] == 'system' %}
<|system_start|>{{ render(messages[0]['content']) }}<|system_end|>
{%- else %}
<|system_start|>You are Apertus 1.5 Omni, a multimodal assistant developed by the Swiss AI \
Initiative. Extended from Apertus 1 via continued pretraining, you understand images and audio \
and respond in text.<|system_end|>
{%- endif %}
<|developer_start|>Deliberation: disabled
Tool Capabilities: disabled<|developer_end|>
{%- for message in messages if message['role'] != 'system' %}
<|{{ message['role'] }}_start|>{{ render(message['content']) }}<|{{ message['role'] }}_end|>
{%- endfor %}
{% if add_generation_prompt %}<|assistant_start|>{% endif %}"""


def save(folder: Path) -> None:
    """Write a checkpoint whose output layer is pruned to text, as the published one's."""
    turns = [f"<|{role}_{end}|>" for role in ROLES for end in ("start", "end")]
    words = tiny.tokenizer("<s>", *TOKENS.values(), *turns)
    words.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", words.convert_tokens_to_ids("<s>"))]
    )
    words = type(words)(
        tokenizer_object=words.backend_tokenizer,
        bos_token="<s>",
        eos_token="<|assistant_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
        extra_special_tokens=TOKENS,
    )
    config = Apertus1p5Config(
        text_config={
            "vocab_size": len(words) + 8 + 64,
            "output_vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 16384,
            "pad_token_id": words.pad_token_id,
            "bos_token_id": words.bos_token_id,
            "eos_token_id": words.eos_token_id,
        },
        vision_config={
            "codebook_size": 8,
            "embed_dim": 8,
            "latent_channels": 8,
            "base_channels": 32,
            "channel_multiplier": [1],
            "num_res_blocks": 1,
            "attn_resolutions": [],
            "resolution": 16,
        },
        audio_config={
            "model_type": "wavtokenizer_encoder",
            "num_filters": 2,
            "hidden_size": 16,
            "codebook_dim": 16,
            "codebook_size": 64,
        },
        image_token_id=words.convert_tokens_to_ids("<|image|>"),
        audio_token_id=words.convert_tokens_to_ids("<|audio|>"),
        image_token_offset=len(words),
        audio_token_offset=len(words) + 8,
    )
    model = Apertus1p5ForConditionalGeneration(config)
    tiny.spread(model)
    tokenizer = model.model.audio_tokenizer
    noise = torch.randn((1, 1, 64 * 600), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():  # All zero before training: 64 frames of noise become the codes.
        tokenizer.quantizer.codebook.embed.copy_(tokenizer.encoder(noise)[0].T)
    model.save_pretrained(folder)
    extractor = WavTokenizerFeatureExtractor(normalize_audio=True)
    processor = Apertus1p5Processor(Images(), extractor, words, chat_template=TEMPLATE)
    processor.save_pretrained(folder)
    published = json.loads((folder / "processor_config.json").read_text())
    published["image_processor"] = {
        "image_processor_type": "Apertus1p5ImageProcessor",
        "size": {"min_pixels": 128 * 128, "max_pixels": 1400 * 1400},
        "spatial_factor": 16,
    }
    (folder / "processor_config.json").write_text(json.dumps(published, indent=2))


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the docs do."""
    model = Apertus1p5ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    processor = Apertus1p5Processor(
        Images(),
        WavTokenizerFeatureExtractor.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt as the docs do for the base model."""
    text = f"{before}<|audio|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
