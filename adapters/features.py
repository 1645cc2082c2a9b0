"""What a model takes beside token ids, put together for a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def expand(ids: Sequence[int], token: int, counts: Sequence[int]) -> list[int]:
    """Repeat each occurrence of `token` as often as the recording it stands for has positions."""
    left = iter(counts)
    return [repeated for id_ in ids for repeated in [id_] * (next(left) if id_ == token else 1)]


def collate(features: Sequence[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Join the features of several prompts along the first dimension, padding the others."""
    joined: dict[str, torch.Tensor] = {}
    for name in dict.fromkeys(name for item in features for name in item):
        tensors = [item[name] for item in features if name in item]
        longest = [max(sizes) for sizes in zip(*(t.shape[1:] for t in tensors), strict=True)]
        joined[name] = torch.cat([_pad(tensor, longest) for tensor in tensors])
    return joined


def _pad(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    missing = [target - size for target, size in zip(shape, tensor.shape[1:], strict=True)]
    padding = [amount for size in reversed(missing) for amount in (0, size)]
    return torch.nn.functional.pad(tensor, padding)
