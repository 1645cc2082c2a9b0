"""Qwen2.5-Omni, its Thinker: https://huggingface.co/Qwen/Qwen2.5-Omni-7B."""

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
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    Qwen2_5OmniProcessor,
    Qwen2_5OmniThinkerForConditionalGeneration,
    WhisperFeatureExtractor,
)

from .unseen import Unchecked, Videos

__all__ = ["SAMPLING_RATE", "bare", "chat", "load", "save"]
SAMPLING_RATE = 16000
LONGEST = 40
TOKENS = {
    "image_token": "<|IMAGE|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|VIDEO|>",
    "vision_bos_token": "<|vision_bos|>",
    "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
TEMPLATE = """\
{% if messages[0]['role'] != 'system' %}<|im_start|>system
You are a helpful assistant.<|im_end|>
{% endif %}
{% for message in messages %}<|im_start|>{{ message['role'] }}
{% if message['content'] is string %}{{ message['content'] }}{% else %}
{% for part in message['content'] %}
{% if part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>
{%- elif part['type'] == 'image' %}<|vision_bos|><|IMAGE|><|vision_eos|>
{%- elif part['type'] == 'video' %}<|vision_bos|><|VIDEO|><|vision_eos|>
{%- else %}{{ part['text'] }}{% endif %}
{% endfor %}{% endif %}<|im_end|>
{% endfor %}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


class Processor(Unchecked, Qwen2_5OmniProcessor):
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
        "audio_token_index": ids["audio_token"],
        "image_token_index": ids["image_token"],
        "video_token_index": ids["video_token"],
        "audio_start_token_id": ids["audio_bos_token"],
        "audio_end_token_id": ids["audio_eos_token"],
        "vision_start_token_id": ids["vision_bos_token"],
        "vision_end_token_id": ids["vision_eos_token"],
    }
    decoder = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 1000000.0,
            "mrope_section": [1, 1, 2],
        },
    }
    config = Qwen2_5OmniConfig(
        thinker_config={
            "audio_config": {
                "num_mel_bins": 16,
                "d_model": 16,
                "encoder_layers": 2,
                "encoder_attention_heads": 2,
                "encoder_ffn_dim": 32,
                "output_dim": 32,
            },
            "vision_config": {
                "depth": 1,
                "hidden_size": 16,
                "intermediate_size": 16,
                "num_heads": 2,
                "out_hidden_size": 32,
                "fullatt_block_indexes": [0],
            },
            "text_config": {"vocab_size": len(words), **decoder},
            **multimodal,
        },
        talker_config={
            "vocab_size": 16,
            "embedding_size": 32,
            "head_dim": 8,
            **decoder,
            **multimodal,
        },
        token2wav_config={
            "dit_config": {
                "hidden_size": 16,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "head_dim": 8,
                "emb_dim": 8,
                "num_embeds": 9,
                "mel_dim": 8,
                "enc_emb_dim": 8,
                "enc_dim": 8,
                "enc_channels": [8, 8, 8, 8, 24],
                "enc_attention_channels": 8,
                "enc_se_channels": 8,
            },
            "bigvgan_config": {
                "mel_dim": 8,
                "upsample_initial_channel": 16,
                "resblock_kernel_sizes": [3],
                "resblock_dilation_sizes": [[1, 3, 5]],
                "upsample_rates": [5],
                "upsample_kernel_sizes": [11],
            },
        },
    )
    model = Qwen2_5OmniForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    torch.save({"Chelsie": {"bos_token": 1}}, folder / "spk_dict.pt")
    words.save_pretrained(folder)
    published = {
        "processor_class": "Qwen2_5OmniProcessor",
        "image_processor_type": "Qwen2VLImageProcessor",
        "merge_size": 2,
        "patch_size": 14,
        "temporal_patch_size": 2,
    }
    # As published, but for 40 s in place of 300, to which every recording is padded.
    extractor = WhisperFeatureExtractor(
        feature_size=16, chunk_length=40, return_attention_mask=True
    )
    (folder / "preprocessor_config.json").write_text(
        json.dumps({**extractor.to_dict(), **published}, indent=2)
    )
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": TEMPLATE}))


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the docs of `Qwen2_5OmniThinkerForConditionalGeneration.forward` do."""
    model = Qwen2_5OmniThinkerForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
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
    text = f"{before}<|audio_bos|><|AUDIO|><|audio_eos|>{after}"
    return dict(
        processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    )
