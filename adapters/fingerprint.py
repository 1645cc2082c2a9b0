"""Checksums of what was loaded: they tell models apart that share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import torch
import transformers
from accelerate.utils import align_module_device

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def checksum(model: torch.nn.Module, *settings: str) -> str:
    """Return 12 hexadecimal digits that change with the weights, the configuration and `settings`.

    Each tensor adds its name, type and shape, the sum of its elements' bits as integers, and that
    of its rows weighted by their number: one pass at the speed of the device's memory, where a
    cryptographic hash of a large model would take as long as loading it.
    """
    described, sums = [], []
    for name, tensor in _tensors(model):
        described.append(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}")
        bits = tensor.detach().contiguous().view(-1).view(_INTEGERS[tensor.element_size()])
        rows = bits.view(len(tensor) if tensor.dim() else 1, -1).sum(1, dtype=torch.int64)
        weights = torch.arange(1, len(rows) + 1, device=rows.device)
        sums.append(torch.stack([rows.sum(), (rows * weights).sum()]).cpu())
    config = getattr(model, "config", None)
    if config is not None:
        described.append(config.to_json_string())
    described += [transformers.__version__, *settings]
    digest = hashlib.sha256("\n".join(described).encode())
    digest.update(torch.cat(sums).numpy().tobytes())
    return digest.hexdigest()[:12]


def describe(tokenizer: Any, *others: Any) -> list[str]:
    """Return the settings of a tokenizer, and of others, that change what a prompt becomes."""
    if hasattr(tokenizer, "to_json_string"):
        words = tokenizer.to_json_string()
    elif (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        words = backend.to_str()
    else:
        words = repr((tokenizer, sorted(tokenizer.get_vocab().items())))
    return [words] + [
        part.to_json_string() if hasattr(part, "to_json_string") else str(part)
        for part in others
        if part is not None
    ]


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield parameters and buffers, those too that accelerate keeps elsewhere until they run."""
    for path, module in model.named_modules():
        with align_module_device(module):
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is not None and tensor.numel():
                    yield f"{path}.{name}", tensor
