"""Qwen3-Omni, its Thinker: https://huggingface.co/Qwen/Qwen3-Omni-30B-A3B-Instruct."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from documented import chat
from transformers import (
    AutoImageProcessor,
    AutoTokenizer,
    Qwen3OmniMoeConfig,
    Qwen3OmniMoeForConditionalGeneration,
    Qwen3OmniMoeProcessor,
    Qwen3OmniMoeThinkerForConditionalGeneration,
    WhisperFeatureExtractor,
)

from .unseen import Unchecked, Videos

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
TOKENS = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|audio_pad|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_start|>",
    "audio_eos_token": "<|audio_end|>",
}
TEMPLATE = """\
{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{% for part in message['content'] %}
{% if part['type'] == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>
{%- elif part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>
{%- elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>
{%- else %}{{ part['text'] }}{% endif %}
{% endfor %}{% endif %}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class Processor(Unchecked, Qwen3OmniMoeProcessor):
    """The processor beside a stand-in."""


def save(folder: Path) -> None:
    """Write a checkpoint of all parts: the thinker, the talker and what makes waveforms."""
    words = tiny.tokenizer(*TOKENS.values())
    words = type(words)(
        tokenizer_object=words.backend_tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens=TOKENS,
    )
    ids = {name: words.convert_tokens_to_ids(token) for name, token in TOKENS.items()}
    multimodal = {
        "audio_token_id": ids["audio_token"],
        "image_token_id": ids["image_token"],
        "video_token_id": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
        "vision_start_token_id": ids["vision_bos_token"],
    }
    decoder = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 4096,
    }
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    rotary = {
        "rope_type": "default",
        "rope_theta": 1000000.0,
        "mrope_section": [2, 1, 1],
        "mrope_interleaved": True,
    }
    config = Qwen3OmniMoeConfig(
        thinker_config={
            "audio_config": {
                "num_mel_bins": 16,
                "d_model": 16,
                "encoder_layers": 2,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 32,
                "downsample_hidden_size": 4,
                "output_dim": 32,
            },
            "vision_config": {
                "depth": 1,
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_heads": 2,
                "out_hidden_size": 32,
                "num_position_embeddings": 4,
                "deepstack_visual_indexes": [0],
            },
            "text_config": {
                "vocab_size": len(words),
                "rope_parameters": rotary,
                **decoder,
                **experts,
            },
            **multimodal,
        },
        talker_config={
            "text_config": {
                "vocab_size": 16,
                "shared_expert_intermediate_size": 16,
                "rope_parameters": rotary,
                **decoder,
                **experts,
            },
            "code_predictor_config": {"vocab_size": 8, "num_code_groups": 2, **decoder},
            "num_code_groups": 2,
            "thinker_hidden_size": 32,
            "accept_hidden_layer": 1,
            "spatial_merge_size": 2,
            "speaker_id": {"chelsie": 1, "ethan": 2, "aiden": 3},
            **multimodal,
        },
        code2wav_config={
            "codebook_size": 8,
            "num_quantizers": 2,
            "hidden_size": 16,
            "intermediate_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            "upsample_rates": [2],
            "upsampling_ratios": [2],
            "decoder_dim": 16,
        },
    )
    model = Qwen3OmniMoeForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    published = {
        "processor_class": "Qwen3OmniMoeProcessor",
        "image_processor_type": "Qwen2VLImageProcessor",
        "merge_size": 2,
        "patch_size": 16,
        "temporal_patch_size": 2,
    }
    extractor = WhisperFeatureExtractor(feature_size=16, return_attention_mask=True)
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**extractor.to_dict(), **published}, indent=2)
    )
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the docs of `Qwen3OmniMoeThinkerForConditionalGeneration.forward` do."""
    model = Qwen3OmniMoeThinkerForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    processor = Processor(
        AutoImageProcessor.from_pretrained(folder),
        Videos(),
        WhisperFeatureExtractor.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the markup that the chat template has for a recording."""
    text = f"{before}<|audio_start|><|audio_pad|><|audio_end|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
