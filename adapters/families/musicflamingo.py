"""Music Flamingo's processor, without windows that its model hears nothing of and fails at."""

from __future__ import annotations

from typing import Any

from transformers import BatchFeature, MusicFlamingoProcessor

from s2s_tasks.adapters.families.family import Source


class Processor(MusicFlamingoProcessor):
    """Leaves out a last window that is too short for a position, as 10 ms after 30 s are."""

    def __call__(self, *args: Any, **kwargs: Any) -> BatchFeature:
        """Return the features of windows that take positions."""
        inputs = super().__call__(*args, **kwargs)
        if "input_features_mask" in inputs:
            mask = inputs["input_features_mask"]
            taken = self._get_audio_token_length(mask.sum(-1)) > 0
            inputs["input_features"] = inputs["input_features"][taken]
            inputs["input_features_mask"] = mask[taken]
        return inputs


def load_processor(pretrained: str, _: str, source: Source) -> Any:
    """Load the processor of a folder or a hub model."""
    return Processor.from_pretrained(pretrained, **source)
