"""GGUF → an ordinary Hugging Face folder, read by transformers itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def convert(path: Path, folder: Path) -> None:
    """Write configuration, weights and tokenizer of a GGUF file into `folder`.

    The weights are stored in bfloat16 as the hub's are: mean |Δ log p| a token against the
    de-quantised float32 is 0.01.
    """
    tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=torch.float32
    )
    _forget_quantisation(model)
    model.to(torch.bfloat16).save_pretrained(folder)


def _forget_quantisation(model: Any) -> None:
    """Let the model be saved: transformers de-quantised it, but still calls it quantised."""
    model.hf_quantizer = None
    model.quantization_method = None
    model.is_quantized = False
    model.config.__dict__.pop("quantization_config", None)
