"""LoRAs inside a model that are for audio alone."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from s2s_tasks.adapters.contract import AdapterError, Prefix
from s2s_tasks.adapters.families.family import Family

Answer = TypeVar("Answer")
Item = TypeVar("Item")

log = logging.getLogger(__name__)


def load_speech_adapter(model: Any, pretrained: str, source: Mapping[str, Any]) -> None:
    """Load Phi-4-multimodal's, which lies in a folder of its own, as its documentation does.

    Raises:
        AdapterError: without peft.
    """
    _require_peft(pretrained)
    revision = {"revision": source["revision"]} if source.get("revision") else {}
    model.load_adapter(
        pretrained,
        adapter_name="speech",
        adapter_kwargs={"subfolder": "speech-lora", **revision},
    )


def require_adapter(model: Any, pretrained: str, source: Mapping[str, Any]) -> None:
    """Refuse a Granite Speech whose LoRA `from_pretrained` has left out, which it does silently.

    Raises:
        AdapterError: when it was left out for want of peft.
    """
    del source
    if not model.config.has_lora_adapter or model._hf_peft_config_loaded:
        return
    _require_peft(pretrained)
    log.warning(
        "%s: its configuration says that it has a LoRA for speech, and there is none beside its "
        "weights",
        pretrained,
    )


def by_modality(
    model: Any,
    family: Family,
    prefixes: Sequence[Prefix],
    items: Sequence[Item],
    run: Callable[[Sequence[Item]], list[Answer]],
) -> list[Answer]:
    """Run what has audio and what has not apart, where a LoRA is for audio alone.

    Args:
        model: of transformers.
        family: the model's.
        prefixes: one an item.
        items: what to run.
        run: from items to an answer each.
    """
    if not family.switched_adapter:
        return run(items)
    answers: dict[int, Answer] = {}
    for hears in (False, True):
        chosen = [i for i, prefix in enumerate(prefixes) if bool(prefix.recordings) == hears]
        if chosen:
            switch_adapter(model, on=hears)
            answers |= zip(chosen, run([items[index] for index in chosen]), strict=True)
    return [answers[index] for index in range(len(items))]


def switch_adapter(model: Any, *, on: bool) -> None:
    """Switch a model's LoRA on or off, as its own `generate` does.

    transformers' `enable_adapters` does the same, but only with the newest peft.
    """
    if not getattr(model, "_hf_peft_config_loaded", False):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for module in model.modules():
        if isinstance(module, BaseTunerLayer):
            module.enable_adapters(enabled=on)


def _require_peft(pretrained: str) -> None:
    if find_spec("peft") is None:
        raise AdapterError(f"{pretrained} has a LoRA for speech: pip install peft")
