"""Checkpoints taken whole or not at all: what one lacks, transformers would draw at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.holding import holding

LEARNED_BUFFERS = ("running_mean", "running_var")
"""Buffers that training fills; others are what the model's code makes them."""
NAMED = 3
"""How many of the missing weights a message names."""


def load_whole(loader: Any, pretrained: str, **options: Any) -> Any:
    """Call `from_pretrained` of one of transformers' classes.

    Raises:
        AdapterError: when the checkpoint lacks weights of the model. Weights that the model has no
            place for are left out: towers that see, parts that talk.
    """
    finish: Any = getattr(PreTrainedModel, "_finalize_model_loading", None)
    lacking: set[str] = set()

    def noted(*given: Any, **named: Any) -> Any:
        told = finish(*given, **named)
        lacking.update(told.missing_keys)
        return told

    # Of a checkpoint with a LoRA inside, the loading info that is returned tells of the LoRA alone.
    with holding(PreTrainedModel, "_finalize_model_loading", staticmethod(noted)):
        loaded = loader.from_pretrained(pretrained, output_loading_info=True, **options)
    # A repository's own code may not tell.
    if not isinstance(loaded, tuple):
        return loaded
    model, told = loaded
    buffers = (name for name, _ in model.named_buffers())
    computed = {name for name in buffers if not name.endswith(LEARNED_BUFFERS)}
    lacking.update(told["missing_keys"], (name for name, *_ in told["mismatched_keys"]))
    if missing := sorted(lacking - computed):
        more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
        raise AdapterError(
            f"{pretrained} lacks {len(missing)} weight(s): {', '.join(missing[:NAMED])}{more}. "
            "They would be random, and so would the scores: save or fetch the checkpoint again"
        )
    return model


def refuse_missing_folder(argument: str, pretrained: str) -> None:
    """Refuse what reads as a path and is none, before the hub is asked for a model of that name.

    Args:
        argument: what the user calls it.
        pretrained: folder or hub id.

    Raises:
        AdapterError: when nothing is there.
    """
    path = Path(pretrained)
    local = pretrained.startswith((".", "/", "~")) or pretrained.count("/") > 1
    # `runs/step-9` beside `runs/step-8`; a folder called as an owner on the hub is no sign.
    beside = "/" in pretrained and any(path.parent.glob("*/config.json"))
    if (local or beside) and not path.exists():
        hint = (
            "" if local else f" ({path.parent} holds other checkpoints, so the hub was not asked)"
        )
        if pretrained.startswith("~"):
            hint = " (~ is not expanded here)"
        raise AdapterError(f"{argument}={pretrained} cannot be loaded: no such folder{hint}")
