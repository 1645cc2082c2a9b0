"""Find and load what a `pretrained=` names: model class, processor, tokenizer."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_CTC_MAPPING_NAMES,
    MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
)

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM, CTCSpeechLMConfig
from s2s_tasks.adapters.families.family import Family
from s2s_tasks.adapters.families.table import FAMILIES
from s2s_tasks.adapters.placing import parse_dtype, pick_device
from s2s_tasks.adapters.speaking import Speaker
from s2s_tasks.adapters.speech_processor import SpeechProcessor
from s2s_tasks.adapters.whole import load_whole, refuse_missing_folder

log = logging.getLogger(__name__)

BROKEN = (OSError, ValueError, ImportError, RuntimeError, SafetensorError)
"""What transformers and peft raise for files that are missing or damaged."""
OWN_TOKENIZER = (
    "Put the tokenizer files of this very model there (tokenizer.json, tokenizer_config.json), not "
    "those of the LM it was made of."
)


@dataclass(frozen=True)
class Loaded:
    """A model ready to score."""

    model: Any
    tokenizer: Any
    processor: SpeechProcessor | None
    """None for a model that only reads."""
    device: torch.device
    family: Family
    whole: Any
    """The model with the parts that speak; else the model itself."""
    speaker: type[Speaker] | None
    """What speaks; None where nothing does, or nothing is to."""


def load(
    pretrained: str,
    *,
    device: str | None,
    dtype: str,
    revision: str | None,
    attn_implementation: str | None,
    trust_remote_code: bool,
    device_map: str | None = None,
    peft: str | None = None,
    quantization: Mapping[str, Any] | None = None,
    speaks: bool = False,
) -> Loaded:
    """Load a folder or a hub model.

    The arguments are those of `HFAdapter`, but for `quantization`: the arguments of transformers'
    `BitsAndBytesConfig`.

    Raises:
        AdapterError: when it is not there or not whole, or transformers knows no class for it.
    """
    refuse_missing_folder("pretrained", pretrained)
    source = {"revision": revision, "trust_remote_code": trust_remote_code}
    if device_map and (device == "cpu" or int(os.environ.get("WORLD_SIZE", "1")) > 1):
        raise AdapterError(
            f"device_map={device_map} places the model itself: leave --device cpu out, and start "
            "one process"
        )
    target = pick_device(device)
    placement: dict[str, Any] = {"device_map": device_map} if device_map else {}
    if quantization:
        # bitsandbytes quantises while it places the weights: they cannot be moved later.
        placement = {
            "device_map": device_map or {"": target},
            "quantization_config": _bitsandbytes(quantization),
        }
    try:
        config = transformers.AutoConfig.from_pretrained(pretrained, **source)
        model_type = config.model_type
        family = FAMILIES.get(model_type, Family(model_type))
        model_class = find_model_class(config, family)
        speaker = family.speaker if speaks else None
        if model_class is CTCSpeechLM and (placement or peft):
            raise AdapterError(
                f"{pretrained}: this kind of model is small, placed whole and takes no peft: leave "
                "device_map, quantisation and peft out"
            )
        if family.adjust_config:
            family.adjust_config(config)
            placement["config"] = config
        load_model = family.load_model or partial(load_whole, model_class)
        if speaker:
            load_model = speaker.load
        whole = load_model(
            pretrained,
            dtype=parse_dtype(dtype),
            attn_implementation=attn_implementation,
            **placement,
            **source,
        )
        model = speaker.writer(whole) if speaker else whole
        if family.finish:
            family.finish(model, pretrained, source)
        if peft:
            model = _with_peft(model, peft)
        processor = None
        if hears(model.config, family):
            processor = _load_processor(pretrained, model_type, family, source)
        tokenizer = (
            processor.tokenizer
            if processor is not None
            else transformers.AutoTokenizer.from_pretrained(pretrained, **source)
        )
    except BROKEN as error:
        raise _cannot_load(pretrained, error) from error
    _refuse_wordless(pretrained, tokenizer, processor)
    placed = placement.keys() & {"device_map"}
    for part in (whole, model):
        part.eval() if placed else part.to(target).eval()
    if placed:
        target = model.get_input_embeddings().weight.device
    log.info(
        "Loaded %s: %s, %s, on %s",
        pretrained,
        type(whole).__name__,
        str(model.dtype).removeprefix("torch."),
        target,
    )
    return Loaded(model, tokenizer, processor, target, family, whole, speaker)


def _cannot_load(pretrained: str, error: Exception) -> AdapterError:
    if "trust_remote_code" in str(error):
        return AdapterError(
            f"pretrained={pretrained} brings its own code: add trust_remote_code=true if you trust "
            "it"
        )
    advice = (
        "Give a folder that save_pretrained wrote, or the id of a model on the hub; without a "
        "network, download it first and give the folder."
    )
    if isinstance(error, SafetensorError):
        advice = "A file of its weights is cut or damaged: save or fetch it again."
    elif "instantiate the backend tokenizer" in str(error):
        advice = f"Are its tokenizer files there? {OWN_TOKENIZER}"
    return AdapterError(f"pretrained={pretrained} cannot be loaded: {str(error).strip()}\n{advice}")


def _load_processor(
    pretrained: str, model_type: str, family: Family, source: Mapping[str, Any]
) -> SpeechProcessor:
    try:
        own = family.load_processor(pretrained, model_type, source)
    # Some read their audio token off a tokenizer that has none.
    except AttributeError as error:
        raise AdapterError(
            f"the processor of {pretrained} cannot be built: {error}. {OWN_TOKENIZER}"
        ) from error
    return SpeechProcessor(own, family.markup, family.system_option)


def _refuse_wordless(pretrained: str, tokenizer: Any, processor: SpeechProcessor | None) -> None:
    """Refuse a tokenizer that transformers made of nothing, and one that knows no audio.

    Raises:
        AdapterError: for both.
    """
    words = tokenizer.get_vocab()
    if words.keys() <= set(tokenizer.all_special_tokens):
        raise AdapterError(f"{pretrained} has no tokenizer files, or empty ones. {OWN_TOKENIZER}")
    if processor is not None and not processor.marked and processor.audio_token not in words:
        raise AdapterError(
            f"the tokenizer of {pretrained} has no {processor.audio_token!r}, which stands for "
            f"audio. {OWN_TOKENIZER}"
        )


def _bitsandbytes(settings: Mapping[str, Any]) -> Any:
    if find_spec("bitsandbytes") is None:
        raise AdapterError("load_in_8bit and load_in_4bit need it: pip install bitsandbytes")
    dtype = settings["bnb_4bit_compute_dtype"]
    given = dict(settings, bnb_4bit_compute_dtype=parse_dtype(dtype) if dtype else None)
    return transformers.BitsAndBytesConfig(**given)


def _with_peft(model: Any, peft: str) -> Any:
    """Put a PEFT adapter into a model, which stays of its own class."""
    if find_spec("peft") is None:
        raise AdapterError(f"peft={peft} needs the package peft: pip install peft")
    from peft import PeftModel

    refuse_missing_folder("peft", peft)
    try:
        with warnings.catch_warnings():
            # Weights that find no place: what is left would be the model without the adapter.
            warnings.filterwarnings("error", message="Found missing adapter keys")
            adapted = PeftModel.from_pretrained(model, peft)
    except (*BROKEN, UserWarning) as error:
        raise AdapterError(f"peft={peft} cannot be loaded: {str(error).strip()}") from error
    if adapted.active_peft_config.is_prompt_learning:
        raise AdapterError(f"peft={peft}: adapters that add virtual tokens are not supported")
    return adapted.get_base_model()


def find_model_class(config: Any, family: Family) -> Any:
    """Return the class that gives text logits for a configuration.

    Raises:
        AdapterError: when transformers has none, or it cannot be scored.
    """
    model_type = config.model_type
    if family.refused:
        raise AdapterError(f"{family.name} cannot be scored: {family.refused}")
    if model_type == CTCSpeechLMConfig.model_type:
        return CTCSpeechLM
    if family.scored_class:
        return getattr(transformers, family.scored_class)
    _refuse_recognizers(config)
    if model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in FAMILIES:
        return transformers.AutoModelForCausalLM
    if model_type in MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES:
        return transformers.AutoModelForMultimodalLM
    if auto_map := getattr(config, "auto_map", None):
        causal = "AutoModelForCausalLM" in auto_map or "AutoModel" not in auto_map
        return transformers.AutoModelForCausalLM if causal else transformers.AutoModel
    # The automatic classes leave some out, Audio Flamingo among them.
    names = getattr(config, "architectures", None) or [""]
    named = getattr(transformers, names[0], None)
    if named is not None and hears(config, family):
        return named
    raise AdapterError(
        f"model type {model_type!r} is neither a causal language model nor one that "
        f"transformers {transformers.__version__} lists as hearing or seeing "
        "(AutoModelForCausalLM, AutoModelForMultimodalLM)"
    )


def _refuse_recognizers(config: Any) -> None:
    """Refuse encoder-decoders, whose decoder transformers would take for an LM, and CTC models.

    Raises:
        AdapterError: for these.
    """
    kind = f"model type {config.model_type!r}"
    if config.model_type in MODEL_FOR_CTC_MAPPING_NAMES:
        problem = f"{kind} is neither a causal language model nor a speech LLM: it only recognizes"
    elif config.is_encoder_decoder:
        problem = f"{kind} is an encoder-decoder: without its encoder it is no language model"
    else:
        return
    recognizes = (*MODEL_FOR_CTC_MAPPING_NAMES, *MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES)
    remedy = (
        "put it before a text LM: --model speech-cascade --model_args asr=…,lm=…"
        if config.model_type in recognizes
        else "give a causal LM or a speech LLM"
    )
    raise AdapterError(f"{problem}; {remedy}")


def hears(config: Any, family: Family) -> bool:
    """Tell whether the configuration of a scored model has a part for audio."""
    return getattr(config, family.audio_config, None) is not None
