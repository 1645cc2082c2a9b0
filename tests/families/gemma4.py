"""Gemma 4: https://huggingface.co/google/gemma-4-E2B-it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoTokenizer,
    Gemma4AudioFeatureExtractor,
    Gemma4Config,
    Gemma4ForConditionalGeneration,
    Gemma4Processor,
    PreTrainedTokenizerFast,
)

from .unseen import Images, Unchecked, Videos

SAMPLING_RATE = 16000
TOKENS = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
    "sot_token": "<|turn>",
    "eot_token": "<turn|>",
}
TEMPLATE = """\
{{ bos_token }}
{%- for message in messages %}<|turn>{{ message['role'] | replace('assistant', 'model') }}
{% if message['content'] is string %}{{ message['content'] | trim }}{% else %}
{%- for part in message['content'] %}
{%- if part['type'] == 'audio' %}<|audio|>
{%- elif part['type'] == 'image' %}

<|image|>

{% elif part['type'] == 'video' %}

<|video|>

{% else %}{{ part['text'] | trim }}{% endif %}
{%- endfor %}{% endif %}<turn|>
{% endfor %}
{%- if add_generation_prompt %}<|turn>model
{% endif %}"""
TEXT_CONFIG = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 8,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "final_logit_softcapping": 30.0,
    "max_position_embeddings": 4096,
}


class Processor(Unchecked, Gemma4Processor):
    """The model's, but for its stand-ins."""


def tokenizer(tokens: dict[str, str], *special: str) -> PreTrainedTokenizerFast:
    """Make a tokenizer that puts `<bos>` before all that it reads, as Gemma's do."""
    words = tiny.tokenizer("<pad>", "<eos>", "<bos>", *tokens.values(), *special).backend_tokenizer
    bos = words.token_to_id("<bos>")
    words.post_processor = TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", bos)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
        extra_special_tokens=tokens,
    )


def ids(words: Any) -> dict[str, int]:
    """Name the special tokens' ids as the configuration does."""
    return {
        "image_token_id": words.image_token_id,
        "video_token_id": words.convert_tokens_to_ids("<|video|>"),
        "audio_token_id": words.audio_token_id,
        "boi_token_id": words.boi_token_id,
        "eoi_token_id": words.eoi_token_id,
        "boa_token_id": words.boa_token_id,
        "eoa_token_index": words.eoa_token_id,
    }


def text_ids(words: Any) -> dict[str, int]:
    """Name what the configuration of the decoder says of the tokenizer."""
    return {
        "vocab_size": len(words),
        "pad_token_id": words.pad_token_id,
        "bos_token_id": words.bos_token_id,
        "eos_token_id": words.eos_token_id,
    }


def write(folder: Path, words: Any, extractor: Any, prefix: str = "Gemma4") -> None:
    """Write what the processor consists of."""
    words.save_pretrained(folder)
    image = {"do_normalize": False, "patch_size": 16, "pooling_kernel_size": 3}
    published = {
        "processor_class": f"{prefix}Processor",
        "audio_ms_per_token": 40,
        "audio_seq_length": 750,
        "image_seq_length": 280,
        "feature_extractor": json.loads(extractor.to_json_string()),
        "image_processor": {
            **image,
            "image_processor_type": f"{prefix}ImageProcessor",
            "max_soft_tokens": 280,
        },
        "video_processor": {
            **image,
            "video_processor_type": f"{prefix}VideoProcessor",
            "max_soft_tokens": 70,
            "num_frames": 32,
        },
    }
    (folder / "processor_config.json").write_text(json.dumps(published, indent=2))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def save(folder: Path) -> None:
    """Write a checkpoint with per-layer embeddings and caches shared between layers."""
    words = tokenizer(TOKENS, "<|video|>")
    config = Gemma4Config(
        audio_config={
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "subsampling_conv_channels": [16, 8],
            "output_proj_dims": 32,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "position_embedding_size": 64,
        },
        text_config={
            **TEXT_CONFIG,
            **text_ids(words),
            "vocab_size_per_layer_input": len(words),
            "hidden_size_per_layer_input": 8,
            "num_kv_shared_layers": 2,
        },
        **ids(words),
    )
    model = Gemma4ForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    write(folder, words, Gemma4AudioFeatureExtractor(feature_size=16))


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does."""
    model = Gemma4ForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    processor = Processor(
        Gemma4AudioFeatureExtractor.from_pretrained(folder),
        Images(),
        AutoTokenizer.from_pretrained(folder),
        Videos(),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the one token that the processor replaces."""
    return dict(processor(text=f"{before}<|audio|>{after}", audio=waveform, return_tensors="pt"))


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does."""
    turns = [{"role": "system", "content": system}] if system else []
    user = [{"type": "audio", "audio": waveform}, {"type": "text", "text": question}]
    return dict(
        processor.apply_chat_template(
            [*turns, {"role": "user", "content": user}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
    )
