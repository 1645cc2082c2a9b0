"""Granite Speech: https://huggingface.co/ibm-granite/granite-speech-3.3-2b."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import librosa
import lora
import numpy as np
import numpy.typing as npt
import tiny
import torch
from transformers import (
    AutoTokenizer,
    GenerationMixin,
    GraniteSpeechConfig,
    GraniteSpeechForConditionalGeneration,
)

SAMPLING_RATE = 16000
MELS = {
    "sample_rate": SAMPLING_RATE,
    "n_fft": 512,
    "win_length": 400,
    "hop_length": 160,
    "n_mels": 80,
}
TEMPLATE = """\
{% for message in messages -%}
<|start_of_role|>{{ message['role'] }}<|end_of_role|>{{ message['content'] }}<|end_of_text|>
{% endfor %}
{%- if add_generation_prompt %}<|start_of_role|>assistant<|end_of_role|>{% endif %}"""


@dataclass
class Processor:
    """The parts of `GraniteSpeechProcessor`, whose feature extractor imports torchaudio."""

    tokenizer: Any
    settings: dict[str, Any]

    @property
    def chat_template(self) -> str:
        """Give the tokenizer's."""
        return str(self.tokenizer.chat_template)


def settings(words: Any) -> dict[str, Any]:
    """Give what Granite Speech and its successor have in common."""
    return {
        "audio_token_index": words.convert_tokens_to_ids("<|audio|>"),
        "encoder_config": {
            "input_dim": 160,
            "num_layers": 4,
            "hidden_dim": 16,
            "feedforward_mult": 2,
            "num_heads": 2,
            "output_dim": 8,
            "context_size": 20,
            "max_pos_emb": 32,
            "conv_kernel_size": 5,
        },
        "projector_config": {
            "model_type": "blip_2_qformer",
            "hidden_size": 16,
            "encoder_hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "cross_attention_frequency": 1,
        },
        "text_config": {
            "model_type": "granite",
            "vocab_size": len(words),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
        },
    }


def write(folder: Path, words: Any, template: str) -> None:
    """Write what the processor consists of."""
    words.chat_template = template
    words.save_pretrained(folder)
    published = {"processor_class": "GraniteSpeechProcessor"}
    extractor = {
        **published,
        "feature_extractor_type": "GraniteSpeechFeatureExtractor",
        "melspec_kwargs": MELS,
        "projector_downsample_rate": 5,
        "projector_window_size": 15,
        "sampling_rate": SAMPLING_RATE,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(extractor, indent=2))
    audio = {**published, "audio_token": "<|audio|>"}
    (folder / "processor_config.json").write_text(json.dumps(audio, indent=2))


def save(folder: Path) -> None:
    """Write a checkpoint with an adapter for speech beside the weights."""
    words = tiny.tokenizer("<|audio|>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>")
    model = GraniteSpeechForConditionalGeneration(GraniteSpeechConfig(**settings(words)))
    tiny.spread(model)
    model.save_pretrained(folder)
    lora.write(folder, model, "q_proj", "v_proj", rename=published)
    write(folder, words, TEMPLATE)


def published(name: str) -> str:
    """Name a layer as the hub's checkpoints do, of an older layout."""
    return name.replace("model.language_model", "language_model.model")


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does; the adapter comes too, and is on, as `generate` has it."""
    model = GraniteSpeechForConditionalGeneration.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), parts(folder)


def parts(folder: Path) -> Processor:
    """Load what the processor consists of."""
    written = json.loads((folder / "preprocessor_config.json").read_text())
    return Processor(AutoTokenizer.from_pretrained(folder), written)


def features(waveform: npt.NDArray[np.float32]) -> torch.Tensor:
    """Compute what `torchaudio.transforms.MelSpectrogram` does, and pairs of its logarithms."""
    mel = librosa.feature.melspectrogram(
        y=waveform,
        sr=SAMPLING_RATE,
        n_fft=512,
        win_length=400,
        hop_length=160,
        n_mels=80,
        pad_mode="reflect",
        htk=True,
        norm=None,
    )
    logs = np.log10(mel.T.clip(min=1e-10))
    logs = np.maximum(logs, logs.max() - 8) / 4 + 1
    return torch.tensor(logs[: len(logs) // 2 * 2].reshape(1, -1, 160), dtype=torch.float32)


def prompt(processor: Any, text: str, waveform: npt.NDArray[np.float32]) -> dict[str, torch.Tensor]:
    """Call the processor, as it were: three soft tokens for 15 pairs of frames begun."""
    mels = features(waveform)
    soft = -(-mels.shape[1] // 15) * 3
    ids = processor.tokenizer(text.replace("<|audio|>", "<|audio|>" * soft), return_tensors="pt")
    return {
        "input_ids": ids["input_ids"],
        "attention_mask": ids["attention_mask"],
        "input_features": mels,
        "input_features_mask": torch.ones(1, soft, dtype=torch.bool),
    }


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt with the one token that the processor repeats."""
    return prompt(processor, f"{before}<|audio|>{after}", waveform)


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does."""
    turns = [{"role": "system", "content": system}] if system else []
    user = {"role": "user", "content": f"<|audio|>{question}"}
    text = processor.tokenizer.apply_chat_template(
        [*turns, user], tokenize=False, add_generation_prompt=True
    )
    return prompt(processor, text, waveform)


def generate(model: Any, **inputs: Any) -> torch.Tensor:
    """Generate without the model's own switch of the adapter, which wants an unpublished peft."""
    return GenerationMixin.generate(model, **inputs)
