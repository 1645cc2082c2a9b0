"""Ultravox: https://huggingface.co/fixie-ai/ultravox-v0_5-llama-3_2-1b, code of its own.

That code is not ours to bring along: `ultravox_code/` is our own, called in the same way, with the
same names of weights, and as much at odds with transformers 5.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import tiny
import torch
import transformers
from safetensors.torch import save_file
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoProcessor,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    WhisperConfig,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
    WhisperModel,
    WhisperProcessor,
    WhisperTokenizer,
)
from transformers.dynamic_module_utils import get_class_from_dynamic_module

SAMPLING_RATE = 16000
ARGUMENTS = {"trust_remote_code": True}
CODE = Path(__file__).parent / "ultravox_code"
BEGIN = "<|begin_of_text|>"
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m['role'] }}<|end_header_id|>\n\n"
    "{{ m['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
WIDTH = 64
"""Of the projector."""


def save(folder: Path) -> None:
    """Write a checkpoint as they are published: the projector, and where the rest is."""
    lm, tower = folder / "llama", folder / "whisper"
    words = _tokenizer()
    llama = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=4096,
            bos_token_id=words.bos_token_id,
            eos_token_id=words.eos_token_id,
        )
    )
    tiny.spread(llama)
    llama.save_pretrained(lm)
    _whisper(tower)
    words.save_pretrained(folder)
    save_file(_projector(), folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "ultravox",
        "architectures": ["UltravoxModel"],
        "auto_map": {
            "AutoConfig": "ultravox_config.UltravoxConfig",
            "AutoModel": "ultravox_model.UltravoxModel",
            "AutoProcessor": "ultravox_processing.UltravoxProcessor",
        },
        "audio_model_id": str(tower),
        "text_model_id": str(lm),
        "hidden_size": WIDTH,
        "stack_factor": 8,
        "projector_act": "swiglu",
        "projector_ln_mid": True,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config))
    for file in CODE.glob("*.py"):
        shutil.copy(file, folder)


def load(folder: Path) -> tuple[Any, Any]:
    """Load as the model card does, with what code for transformers 4 lacks put right by hand."""
    code = get_class_from_dynamic_module("ultravox_model.UltravoxModel", str(folder))
    with (
        mock.patch.object(transformers.modeling_utils, "_init_weights", False, create=True),
        mock.patch.object(code, "tie_weights", lambda *_, **__: None),
    ):
        model = AutoModel.from_pretrained(folder, dtype=torch.float32, trust_remote_code=True)
    config = model.config
    # Drawn at random so far, and without a word.
    model.language_model = AutoModelForCausalLM.from_pretrained(config.text_model_id)
    whisper = WhisperModel.from_pretrained(config.audio_model_id)
    model.audio_tower.load_state_dict(whisper.encoder.state_dict())
    model.audio_tower.get_extended_attention_mask = _added
    for layer in model.audio_tower.layers:
        layer.forward = _as_before(layer.forward)
    with mock.patch.object(
        transformers.ProcessorMixin, "check_argument_for_proper_class", lambda *_: object
    ):
        processor = AutoProcessor.from_pretrained(folder, trust_remote_code=True)
    return model.eval(), processor


def bare(
    processor: Any, before: str, waveform: npt.NDArray[np.float32], after: str
) -> dict[str, torch.Tensor]:
    """Prompt as the processor documents: the caller begins the text."""
    text = f"{BEGIN}{before}<|audio|>{after}"
    return dict(processor(text=text, audios=[waveform], sampling_rate=SAMPLING_RATE))


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt as the model card does: the tokenizer's template, over strings."""
    turns = [{"role": "system", "content": system}] if system else []
    text = processor.tokenizer.apply_chat_template(
        [*turns, {"role": "user", "content": f"<|audio|>{question}"}],
        add_generation_prompt=True,
        tokenize=False,
    )
    return dict(processor(text=text, audios=[waveform], sampling_rate=SAMPLING_RATE))


def _tokenizer() -> PreTrainedTokenizerFast:
    words = tiny.tokenizer(BEGIN, "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>")
    words.bos_token, words.eos_token = BEGIN, "<|eot_id|>"
    words.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{BEGIN} $A", special_tokens=[(BEGIN, words.bos_token_id)]
    )
    words.chat_template = CHAT_TEMPLATE
    return words


def _whisper(folder: Path) -> None:
    config = WhisperConfig(
        vocab_size=8,
        num_mel_bins=16,
        d_model=16,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        max_source_positions=1500,
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        decoder_start_token_id=0,
    )
    model = WhisperForConditionalGeneration(config)
    tiny.spread(model, 1)
    model.save_pretrained(folder)
    words = WhisperTokenizer(vocab={"<|endoftext|>": 0}, merges=[])
    WhisperProcessor(WhisperFeatureExtractor(feature_size=16), words).save_pretrained(folder)


def _projector() -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(2)
    return {
        "multi_modal_projector.ln_pre.weight": torch.full((128,), 0.4),
        "multi_modal_projector.linear_1.weight": torch.randn(WIDTH, 128, generator=random) / 8,
        "multi_modal_projector.ln_mid.weight": torch.full((WIDTH // 2,), 0.4),
        "multi_modal_projector.linear_2.weight": torch.randn(32, WIDTH // 2, generator=random) / 4,
    }


def _added(mask: torch.Tensor, _: Any, dtype: torch.dtype) -> torch.Tensor:
    return (1 - mask[:, None, None].to(dtype)) * torch.finfo(dtype).min


def _as_before(forward: Any) -> Any:
    def returns_a_tuple(hidden: Any, mask: Any, **_: Any) -> tuple[torch.Tensor]:
        return (forward(hidden, mask),)

    return returns_a_tuple
