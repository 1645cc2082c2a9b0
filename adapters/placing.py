"""Where a model computes, and in which precision, as users name both."""

from __future__ import annotations

from typing import Any

import torch

from s2s_tasks.adapters.contract import AdapterError

LM_EVAL_DEFAULT_DEVICE = "cuda:0"
"""What lm-eval's command passes when the user names no device, GPU or not."""
ROUNDING = {torch.float32: 1e-3, torch.float16: 0.02, torch.bfloat16: 0.07}
QUANTISED = 0.15
"""See `Adapter.rounding`, by the dtype of the weights. Measured on five models of 0.1 to 270 M
parameters, two of them trained: right shortcuts differ by less than 1e-4, by 0.006 and by 0.04 in
fp32, fp16 and bf16; one position too many after the prefix makes 0.1 to 2. Quantised weights were
measured in one model only, and a wrong position of theirs may pass."""


def pick_device(device: str | None) -> torch.device:
    """Return the asked-for device, else the first GPU, else the CPU.

    Raises:
        AdapterError: when the device is not there.
    """
    if device in (None, LM_EVAL_DEFAULT_DEVICE):
        device = "cuda:0" if torch.cuda.is_available() else "cpu"
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise AdapterError(f"device={device} is not there: {error}; try device=cpu") from error


def parse_dtype(dtype: str) -> Any:
    """Return the dtype of a name, or `auto` itself.

    Raises:
        AdapterError: when torch has none of that name.
    """
    if dtype == "auto":
        return "auto"
    parsed = getattr(torch, str(dtype), None)
    if not isinstance(parsed, torch.dtype):
        raise AdapterError(f"dtype={dtype} is none of torch's: float32, bfloat16, float16 or auto")
    return parsed


def rounding_of(model: Any) -> float:
    """Return `Adapter.rounding` for a model of transformers, in nats."""
    quantised = getattr(model, "is_quantized", False)
    return QUANTISED if quantised else ROUNDING.get(model.dtype, QUANTISED)
