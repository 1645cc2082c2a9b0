"""`config.json` of a checkpoint: which frozen parts it needs, and the projector's sizes."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig


class CTCSpeechLMConfig(PreTrainedConfig):
    """What is needed to build the model.

    `audio_config` and `text_config` are those of the frozen parts, once these are loaded; they are
    not stored.

    Args:
        audio_model_id: Whisper model whose encoder hears: hub id or folder.
        text_model_id: causal LM that answers: hub id or folder.
        audio_token_id: stands for a recording; the id that the text model's tokenizer gives to a
            token added to it.
        vocabulary_size: tokens that the projector can hear, the blank not counted.
        projector_hidden_size: width of the projector.
        projector_layers: its transformer layers.
        projector_heads: attention heads of each.
        projector_intermediate_size: width of their feed-forward nets.
    """

    model_type = "ctc_speech_lm"

    audio_model_id: str = "openai/whisper-base"
    text_model_id: str = "HuggingFaceTB/SmolLM2-135M-Instruct"
    audio_token_id: int = 49152
    vocabulary_size: int = 5000
    projector_hidden_size: int = 384
    projector_layers: int = 2
    projector_heads: int = 6
    projector_intermediate_size: int = 768

    def own(self) -> dict[str, Any]:
        """Return what a checkpoint stores: all but the frozen parts' configurations."""
        return {name: getattr(self, name) for name in CTCSpeechLMConfig.__annotations__}
