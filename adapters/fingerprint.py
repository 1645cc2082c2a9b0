"""Checksums of what was loaded: they tell models apart that share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import torch

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(tensors: Iterable[tuple[str, torch.Tensor]], *settings: str) -> str:
    """Return 12 hexadecimal digits that change when a bit of a tensor, or a setting, does.

    Each tensor adds its name, type, shape, and the sum of its elements' bits as integers: one
    pass at the speed of the device's memory, where a cryptographic hash of a large model would
    take as long as loading it.
    """
    described, sums = [], []
    for name, tensor in tensors:
        described.append(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}")
        if not tensor.is_meta:  # weights that accelerate keeps on disk
            bits = tensor.detach().contiguous().view(_INTEGERS[tensor.element_size()])
            sums.append(bits.sum(dtype=torch.int64).cpu())
    digest = hashlib.sha256("\n".join([*settings, *described]).encode())
    digest.update(torch.stack(sums).numpy().tobytes() if sums else b"")
    return digest.hexdigest()[:12]


def describe(renderer: Any) -> list[str]:
    """Return the settings of a tokenizer and processor that change what a prompt becomes."""
    tokenizer = renderer.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    settings = [backend.to_str() if backend is not None else repr(tokenizer)]
    if renderer.processor is not None:
        settings.append(renderer.processor.feature_extractor.to_json_string())
    return settings
