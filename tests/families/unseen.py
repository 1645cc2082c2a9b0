"""Stand-ins for the parts of processors that hear nothing and need torchvision."""

from __future__ import annotations

from transformers.image_processing_utils import BaseImageProcessor
from transformers.video_processing_utils import BaseVideoProcessor


class Images(BaseImageProcessor):
    """An image processor that is shown no image."""


class Videos(BaseVideoProcessor):
    """A video processor that is shown no video."""

    merge_size = 2
    temporal_patch_size = 2


class Unchecked:
    """A processor that takes any part: its check of a video processor imports torchvision."""

    def check_argument_for_proper_class(self, name: str, part: object) -> type:
        """Let it pass."""
        return type(part)
