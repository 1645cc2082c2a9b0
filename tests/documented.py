"""What the documentation of many models does alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch


def chat(
    processor: Any, waveform: npt.NDArray[np.float32], question: str, system: str | None = None
) -> dict[str, torch.Tensor]:
    """Prompt with a recording and a question by the processor's chat template."""
    turns = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
    user = [{"type": "audio", "audio": waveform}, {"type": "text", "text": question}]
    return dict(
        processor.apply_chat_template(
            [*turns, {"role": "user", "content": user}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
    )
