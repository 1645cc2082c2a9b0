"""The frozen parts of a checkpoint: from packages, the hub or a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from s2s_tasks.demo.weights import MODELS, packages_or_hub


def load_part(load: Callable[..., Any], model_id: str, **options: Any) -> Any:
    """Call what loads a folder or a hub model, as `from_pretrained` of transformers' classes does.

    Raises:
        OSError: when the part is nowhere; the message says what to install.
    """
    try:
        return load(packages_or_hub(model_id), **options)
    except (OSError, ImportError) as error:
        remedy = "".join(
            f"\nWithout a hub: {model.install}"
            for model in MODELS.values()
            if model.hub_id == model_id
        )
        raise OSError(
            f"its frozen part {model_id} is to be had neither from packages nor from the hub: "
            f"{error}{remedy}"
        ) from error
