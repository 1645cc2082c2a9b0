"""Which engine a `tts=` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from s2s_tasks.adapters.tts.command import Command
from s2s_tasks.adapters.tts.engine import Engine
from s2s_tasks.adapters.tts.packages import Kokoro, Piper
from s2s_tasks.adapters.tts.pipeline import Pipeline


def load_engine(tts: str, voice: Any, speed: Any, device: torch.device) -> Engine:
    """Load what a user names.

    Args:
        tts: `kokoro`, `piper`, a command (it has spaces or braces), else a folder or hub id for
            transformers.
        voice: by the engine's own name; None for its own choice.
        speed: a factor (1 is as usual), or what a command takes; None for the engine's own choice.
        device: where to compute.

    Raises:
        AdapterError: when it cannot be loaded, or does not speak.
    """
    # lm-eval makes numbers of what looks like one.
    voice = None if voice is None else str(voice)
    if tts == "kokoro":
        return Kokoro(voice, speed, device)
    if tts == "piper":
        return Piper(voice, speed)
    if not Path(tts).is_dir() and set(tts) & set(" {"):
        return Command(tts, voice, speed)
    return Pipeline(tts, voice, speed, device)
