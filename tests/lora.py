"""Adapters of tiny checkpoints, which change scores by nats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig
from safetensors.torch import save_file


def write(
    folder: Path,
    model: Any,
    *targets: str,
    within: str = "",
    seed: int = 1,
    rename: Callable[[str], str] = str,
) -> None:
    """Write an adapter of the linear layers so named, in the files that PEFT reads."""
    names = "|".join(targets)
    config = LoraConfig(
        r=4,
        lora_alpha=4,
        target_modules=rf"{within}.*\.({names})" if within else list(targets),
        task_type="CAUSAL_LM",
        base_model_name_or_path=str(folder),
        inference_mode=True,
    )
    config.save_pretrained(str(folder))
    generator = torch.Generator().manual_seed(seed)
    weights = {}
    for name, layer in model.named_modules():
        if name.startswith(within) and name.rpartition(".")[2] in targets:
            outputs, inputs = layer.weight.shape
            down = torch.randn(4, inputs, generator=generator) / inputs**0.5
            up = torch.randn(outputs, 4, generator=generator)
            weights[f"base_model.model.{rename(name)}.lora_A.weight"] = down
            weights[f"base_model.model.{rename(name)}.lora_B.weight"] = up
    save_file(weights, folder / "adapter_model.safetensors", {"format": "pt"})
