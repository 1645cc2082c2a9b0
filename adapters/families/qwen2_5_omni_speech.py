"""What Qwen2.5-Omni speaks with: its Talker, and Token2Wav, which makes waveforms."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from transformers import Qwen2_5OmniForConditionalGeneration
from transformers.utils import cached_file

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.speaking import Speaker
from s2s_tasks.adapters.whole import load_whole
from s2s_tasks.audio import Waveform

SHARED = ("input_ids", "attention_mask", "input_features", "feature_attention_mask")
OTHERS = ("talker_", "token2wav_")
"""What the whole model's `generate` takes as it is called, and how that is called which is for
other parts than the Thinker; all else would go to every part."""


class Talker(Speaker):
    """https://huggingface.co/Qwen/Qwen2.5-Omni-7B, as its page has it speak."""

    sampling_rate = 24_000

    def __init__(self, whole: Any, voice: str | None) -> None:
        """Take the whole model; its voices are in `spk_dict.pt`."""
        default = inspect.signature(whole.generate).parameters["speaker"].default
        self._voice = voice or default
        if self._voice not in whole.speaker_map:
            raise AdapterError(
                f"voice={self._voice}: the model has {', '.join(sorted(whole.speaker_map))}"
            )
        self._whole = whole
        digest = hashlib.sha256()
        for name, part in sorted(whole.speaker_map[self._voice].items()):
            digest.update(name.encode() + torch.as_tensor(part).float().cpu().numpy().tobytes())
        self.identity = f"{self._voice}:{digest.hexdigest()[:12]}"

    @staticmethod
    def load(pretrained: str, **options: Any) -> Any:
        """Load all parts, and the voices."""
        return load_whole(_Loader, pretrained, **options)

    @staticmethod
    def writer(whole: Any) -> Any:
        """Return the Thinker."""
        return whole.thinker

    def generate(self, **given: Any) -> tuple[torch.Tensor, Waveform]:
        """Think, talk, and make a waveform of it."""
        ids, waveform = self._whole.generate(**self._named(given))
        return ids, waveform.float().cpu().numpy()

    def write(self, **given: Any) -> torch.Tensor:
        """Think alone."""
        ids: torch.Tensor = self._whole.generate(**self._named(given), generation_mode="text")
        return ids

    def _named(self, given: Mapping[str, Any]) -> dict[str, Any]:
        named = {
            name if name in SHARED or name.startswith(OTHERS) else f"thinker_{name}": value
            for name, value in given.items()
        }
        return {"speaker": self._voice, **named}


class _Loader:
    """`from_pretrained` that tells what was missing, which the class's own cannot."""

    @staticmethod
    def from_pretrained(pretrained: str, **options: Any) -> tuple[Any, Any]:
        kind = Qwen2_5OmniForConditionalGeneration
        plain: Any = super(kind, kind)
        model, told = plain.from_pretrained(pretrained, **options)
        if not model.has_talker:
            raise AdapterError(
                f"pretrained={pretrained} has no Talker (enable_audio_output is off in its "
                "configuration): leave speech out"
            )
        model.load_speakers(
            cached_file(pretrained, "spk_dict.pt", revision=options.get("revision"))
        )
        return model, told
