"""Configuration: the LM and the audio tower may be other repositories' (`*_model_id`)."""

from __future__ import annotations

from typing import Any

import transformers


class UltravoxConfig(transformers.PretrainedConfig):
    model_type = "ultravox"

    def __init__(
        self,
        audio_config: dict[str, Any] | None = None,
        text_config: dict[str, Any] | None = None,
        audio_model_id: str | None = None,
        text_model_id: str | None = None,
        hidden_size: int = 64,
        stack_factor: int = 8,
        **kwargs: Any,
    ) -> None:
        self.audio_model_id, self.text_model_id = audio_model_id, text_model_id
        self.audio_config = _part(audio_model_id, audio_config, "whisper")
        self.text_config = _part(text_model_id, text_config, "llama")
        self.hidden_size, self.stack_factor = hidden_size, stack_factor
        self.vocab_size = self.text_config.vocab_size
        self.initializer_range = self.text_config.initializer_range
        super().__init__(**kwargs)


def _part(model_id: str | None, given: Any, kind: str) -> Any:
    if model_id is not None:
        return transformers.AutoConfig.from_pretrained(model_id)
    if isinstance(given, transformers.PretrainedConfig):
        return given
    settings = {"model_type": kind, **(given or {})}
    return transformers.CONFIG_MAPPING[settings.pop("model_type")](**settings)
