"""VibeVoice-ASR: https://huggingface.co/microsoft/VibeVoice-ASR-HF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tiny
import torch
from transformers import (
    AutoProcessor,
    VibeVoiceAcousticTokenizerFeatureExtractor,
    VibeVoiceAsrConfig,
    VibeVoiceAsrForConditionalGeneration,
    VibeVoiceAsrProcessor,
)

SAMPLING_RATE = 24000
TOKENS = ["<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>"]
# As published: the system's turn is an argument of the template, the user's text a context, and
# the assistant's turn is opened by the model itself.
TEMPLATE = """\
<|im_start|>system
{{ system_prompt | default('You are a helpful assistant that transcribes audio input into text \
output in JSON format.') }}<|im_end|>
{% for message in messages if message['role'] == 'user' %}<|im_start|>user
{% set texts = message['content'] | selectattr('type', 'equalto', 'text') | list %}
{% for part in message['content'] if part['type'] == 'audio' %}
<|object_ref_start|><|box_start|><|object_ref_end|>
This is a <|AUDIO_DURATION|> seconds audio, \
{% if texts %}with extra info: {{ texts[0]['text'] }}

Please{% else %}please{% endif %} \
transcribe it with these keys: Start time, End time, Speaker ID, Content
{%- endfor %}<|im_end|>
{% endfor %}"""


def save(folder: Path) -> None:
    """Write a checkpoint in the format of transformers."""
    words = tiny.tokenizer(*TOKENS)
    encoder = {
        "model_type": "vibevoice_acoustic_tokenizer_encoder",
        "num_filters": 4,
        "downsampling_ratios": [10, 16, 20],
        "depths": [1, 1, 1, 1],
        "ffn_expansion": 1,
    }
    config = VibeVoiceAsrConfig(
        acoustic_tokenizer_encoder_config={"hidden_size": 8, **encoder},
        semantic_tokenizer_encoder_config={"hidden_size": 16, **encoder},
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
        audio_token_id=words.convert_tokens_to_ids("<|box_start|>"),
        audio_bos_token_id=words.convert_tokens_to_ids("<|object_ref_start|>"),
        audio_eos_token_id=words.convert_tokens_to_ids("<|object_ref_end|>"),
    )
    model = VibeVoiceAsrForConditionalGeneration(config)
    tiny.spread(model)
    model.save_pretrained(folder)
    extractor = VibeVoiceAcousticTokenizerFeatureExtractor()
    VibeVoiceAsrProcessor(extractor, words, chat_template=TEMPLATE).save_pretrained(folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the docs do."""
    model = VibeVoiceAsrForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoProcessor.from_pretrained(folder)


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the markup that the chat template has for a recording."""
    text = f"{before}<|object_ref_start|><|box_start|><|object_ref_end|>{after}"
    inputs = processor(text=text, audio=waveform, sampling_rate=SAMPLING_RATE, return_tensors="pt")
    return {**inputs, "sample": torch.tensor(False)}  # By default, noise is added to the audio.


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the docs do."""
    user = [{"type": "text", "text": question}, {"type": "audio", "audio": waveform}]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": user}],
        tokenize=True,
        return_dict=True,
        **({"system_prompt": system} if system else {}),
    )
    return {**inputs, "sample": torch.tensor(False)}
