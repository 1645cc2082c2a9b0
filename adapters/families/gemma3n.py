"""Gemma 3n without its vision tower, which needs timm and hears nothing."""

from __future__ import annotations

import logging
from typing import Any

from transformers import AutoModel, Gemma3nVisionConfig, PreTrainedModel

log = logging.getLogger(__name__)

READ = ("hidden_size", "vocab_size", "vocab_offset", "rms_norm_eps")
"""What the rest of the model reads of the tower's configuration."""


class NoVisionConfig(Gemma3nVisionConfig):
    """Configuration of a tower that is not there."""

    model_type = "gemma3n_no_vision"


class NoVision(PreTrainedModel):
    """A tower that is not there."""

    config_class = NoVisionConfig
    config: NoVisionConfig
    _supports_sdpa = True
    _supports_flash_attn = True

    def __init__(self, config: NoVisionConfig) -> None:
        """Make no weights."""
        super().__init__(config)
        self.post_init()


def leave_vision_out(config: Any) -> None:
    """Change a Gemma 3n's configuration so that the model is built without the tower."""
    log.info(
        "Gemma 3n's vision tower is left out on purpose, for it hears nothing: transformers will "
        "report its weights as UNEXPECTED"
    )
    AutoModel.register(NoVisionConfig, NoVision, exist_ok=True)
    vision = config.vision_config
    config.vision_config = NoVisionConfig(**{name: getattr(vision, name) for name in READ})
