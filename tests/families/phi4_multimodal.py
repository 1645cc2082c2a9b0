"""Phi-4 Multimodal: https://huggingface.co/microsoft/Phi-4-multimodal-instruct, refs/pr/70."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lora
import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from transformers import (
    AutoTokenizer,
    Phi4MultimodalConfig,
    Phi4MultimodalFeatureExtractor,
    Phi4MultimodalForCausalLM,
    Phi4MultimodalProcessor,
)

from .unseen import Images

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
TOKENS = {"image_token": "<|image|>", "audio_token": "<|audio|>"}
TEMPLATE = """\
{% for message in messages -%}
<|{{ message['role'] }}|>
{%- if message['content'] is string %}{{ message['content'] }}{% else %}
{%- for part in message['content'] %}
{%- if part['type'] == 'audio' %}<|audio|>
{%- elif part['type'] == 'image' %}<|image|>
{%- else %}{{ part['text'] }}{% endif %}
{%- endfor %}{% endif %}<|end|>
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% else %}<|endoftext|>{% endif %}"""


def save(folder: Path) -> None:
    """Write a checkpoint with an adapter for speech and one for images in their own folders."""
    words = tiny.tokenizer(*TOKENS.values(), "<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
    words = type(words)(
        tokenizer_object=words.backend_tokenizer,
        bos_token="<|endoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=TOKENS,
    )
    config = Phi4MultimodalConfig(
        audio_config={
            "input_size": 16,
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_blocks": 2,
            "num_attention_heads": 2,
            "ext_pw_out_channel": 16,
            "depthwise_separable_out_channel": 16,
            "nemo_conv_channels": 8,
            "bias_max_distance": 500,
            "audio_token_id": words.audio_token_id,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 56,
            "crop_size": 56,
            "image_token_id": words.image_token_id,
        },
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        original_max_position_embeddings=4096,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.0, 1.0],
            "long_factor": [1.0, 2.0, 4.0],
        },
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
    )
    model = Phi4MultimodalForCausalLM(config)
    tiny.spread(model)
    norm = model.model.embed_tokens_extend.audio_embed.encoder.encoder_embedding
    norm.global_mean.fill_(8.0)
    norm.global_invstd.fill_(0.25)
    model.save_pretrained(folder)
    targets = ("qkv_proj", "o_proj", "gate_up_proj", "down_proj")
    for seed, name in enumerate(("speech-lora", "vision-lora")):
        lora.write(folder / name, model, *targets, within="model.layers", seed=seed)
    words.save_pretrained(folder)
    extractor = Phi4MultimodalFeatureExtractor(feature_size=16)
    published = {
        **json.loads(extractor.to_json_string()),
        "image_processor_type": "Phi4MultimodalImageProcessorFast",
        "dynamic_hd": 36,
        "processor_class": "Phi4MultimodalProcessor",
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(published, indent=2))
    processor = {"processor_class": "Phi4MultimodalProcessor"}
    (folder / "processor_config.json").write_text(json.dumps(processor))
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the docs do; an adapter is on once it is loaded."""
    model = Phi4MultimodalForCausalLM.from_pretrained(folder, dtype=torch.float32)
    model.load_adapter(
        str(folder), adapter_name="speech", adapter_kwargs={"subfolder": "speech-lora"}
    )
    processor = Phi4MultimodalProcessor(
        Images(),
        Phi4MultimodalFeatureExtractor.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the one token that the processor repeats."""
    text = f"{before}<|audio|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
