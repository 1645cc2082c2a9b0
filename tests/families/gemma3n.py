"""Gemma 3n: https://huggingface.co/google/gemma-3n-E2B-it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    Gemma3nAudioFeatureExtractor,
    Gemma3nConfig,
    Gemma3nForConditionalGeneration,
    Gemma3nProcessor,
    Gemma3nVisionConfig,
    PreTrainedModel,
    SiglipImageProcessorPil,
)

from . import gemma4

SAMPLING_RATE = 16000
TOKENS = {
    "boi_token": "<start_of_image>",
    "boa_token": "<start_of_audio>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
    "eoa_token": "<end_of_audio>",
    "audio_token": "<audio_soft_token>",
}
TEMPLATE = """\
{{ bos_token }}
{%- set system = messages[0]['content'] if messages[0]['role'] == 'system' else '' %}
{%- set first = (system if system is string else system[0]['text']) + '\n\n' if system else '' %}
{%- for message in messages if message['role'] != 'system' %}
{{- '<start_of_turn>' + message['role'] | replace('assistant', 'model') + '\n' }}
{{- first if loop.first else '' }}
{%- if message['content'] is string %}{{ message['content'] | trim }}{% else %}
{%- for part in message['content'] %}
{%- if part['type'] == 'audio' %}<audio_soft_token>
{%- elif part['type'] == 'image' %}<image_soft_token>
{%- else %}{{ part['text'] | trim }}{% endif %}
{%- endfor %}{% endif %}<end_of_turn>
{% endfor %}
{%- if add_generation_prompt %}<start_of_turn>model
{% endif %}"""


class BlindConfig(Gemma3nVisionConfig):
    """What the rest of the model reads of the vision tower."""

    model_type = "gemma3n_blind"


class Blind(PreTrainedModel):
    """A vision tower without timm, which the real one needs."""

    config_class = BlindConfig

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.post_init()


AutoModel.register(BlindConfig, Blind, exist_ok=True)


def blind(config: Any) -> Any:
    """Give the configuration of a model that sees nothing, else the same."""
    vision = config.vision_config
    names = ("hidden_size", "vocab_size", "vocab_offset", "rms_norm_eps")
    config.vision_config = BlindConfig(**{name: getattr(vision, name) for name in names})
    return config


def save(folder: Path) -> None:
    """Write a checkpoint whose vocabulary ends with that of images and of audio, 4 tokens each."""
    words = gemma4.tokenizer(dict(list(TOKENS.items())[:2]), "<start_of_turn>", "<end_of_turn>")
    text = len(words)
    names = list(TOKENS.values())
    last = [*names[2:4], "<unused0>", "<unused1>", *names[4:], "<unused2>", "<unused3>"]
    words.add_tokens(last, special_tokens=True)
    words = type(words)(
        tokenizer_object=words.backend_tokenizer,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        padding_side="left",
        extra_special_tokens=TOKENS,
    )
    config = Gemma3nConfig(
        audio_config={
            "vocab_size": 4,
            "vocab_offset": text + 4,
            "input_feat_size": 16,
            "hidden_size": 16,
            "conf_num_attention_heads": 2,
            "conf_num_hidden_layers": 2,
            "sscp_conv_channel_size": [16, 8],
        },
        vision_config={"vocab_size": 4, "vocab_offset": text, "hidden_size": 16},
        text_config={
            **gemma4.text_ids(words),
            "vocab_size_per_layer_input": text,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "sliding_window": 16,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "hidden_size_per_layer_input": 8,
            "num_kv_shared_layers": 2,
            "laurel_rank": 4,
            "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
            "max_position_embeddings": 4096,
        },
        **{f"{name}_id": words.convert_tokens_to_ids(token) for name, token in TOKENS.items()},
    )
    published = config.vision_config.to_dict()
    model = Gemma3nForConditionalGeneration(blind(config))
    tiny.spread(model)
    for name, weight in model.named_parameters():
        if "q_norm" in name:  # Sharp attention: else what differs is lost among 188 positions.
            weight.data.fill_(4.0)
    stem = {"model.vision_tower.timm_model.conv_stem.conv.weight": torch.zeros(2, 3, 3, 3)}
    model.save_pretrained(folder, state_dict={**model.state_dict(), **stem})
    written = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**written, "vision_config": published}))
    words.save_pretrained(folder)
    extractor = Gemma3nAudioFeatureExtractor(feature_size=16)
    image = {
        "image_processor_type": "SiglipImageProcessorFast",
        "do_normalize": False,
        "do_rescale": True,
        "do_resize": True,
        "image_seq_length": 256,
        "size": {"height": 768, "width": 768},
    }
    parts = {**json.loads(extractor.to_json_string()), **image}
    processor = {"processor_class": "Gemma3nProcessor"}
    (folder / "preprocessor_config.json").write_text(json.dumps({**parts, **processor}))
    lengths = {"audio_seq_length": 188, "image_seq_length": 256}
    (folder / "processor_config.json").write_text(json.dumps({**lengths, **processor}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does, but for the vision tower."""
    model = Gemma3nForConditionalGeneration.from_pretrained(
        folder, config=blind(Gemma3nConfig.from_pretrained(folder)), dtype=torch.float32
    )
    processor = Gemma3nProcessor(
        Gemma3nAudioFeatureExtractor.from_pretrained(folder),
        SiglipImageProcessorPil.from_pretrained(folder),
        AutoTokenizer.from_pretrained(folder),
        chat_template=TEMPLATE,
    )
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the one token that the processor replaces."""
    text = f"{before}<audio_soft_token>{after}"
    return dict(processor(text=text, audio=[waveform], return_tensors="pt"))


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does."""
    return gemma4.chat(processor, waveform, question, system)
