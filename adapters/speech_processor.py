"""`SpeechProcessor`: a processor of transformers, asked in one way whatever the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import jinja2
import numpy as np
import torch
import transformers
from transformers.image_processing_utils import BaseImageProcessor
from transformers.models.auto.processing_auto import (
    PROCESSOR_MAPPING_NAMES,
    processor_class_from_name,
)
from transformers.video_processing_utils import BaseVideoProcessor

from s2s_tasks.adapters.contract import AUDIO, AdapterError
from s2s_tasks.audio import Waveform

Turn = tuple[str, Sequence[str | int]]
"""Role, and content: texts, and recordings by their number."""
Inputs = tuple[list[int], dict[str, torch.Tensor]]
"""Token ids, `AUDIO` at each position of a recording; and what else `forward` takes."""
PER_POSITION = ("input_ids", "attention_mask", "token_type_ids", "mm_token_type_ids")
"""What a processor returns for each position: we pad rows ourselves, and none of the models needs
to be told which positions are audio beside the audio token."""


class SpeechProcessor:
    """Text and recordings in, token ids and features out."""

    def __init__(
        self, processor: Any, markup: str | None = None, system_option: str | None = None
    ) -> None:
        """Take a processor of transformers, or what is called as one.

        Args:
            processor: with a `tokenizer`, an audio part and an `audio_token`. One that has a
                `filler_id`, which the model wants at audio positions, marks these with `AUDIO`.
            markup: what stands for one recording, where the processor does not tell.
            system_option: what the chat template calls a system's text that is not a turn.

        Raises:
            AdapterError: when it has no audio part, or no token that stands for audio.
        """
        self.processor = processor
        self.tokenizer = processor.tokenizer
        self.extractor = _audio_part(processor)
        self.audio_token = self._find_audio_token()
        filler: int | None = getattr(processor, "filler_id", None)
        self.marked = filler is not None
        self.audio_token_id: int = (
            self.tokenizer.convert_tokens_to_ids(self.audio_token) if filler is None else filler
        )
        self._markup = markup
        self._system_option = system_option

    @property
    def parts(self) -> tuple[Any, ...]:
        """What has settings that change what a recording becomes."""
        return (self.processor, self.extractor)

    @property
    def sampling_rate(self) -> int:
        """Rate that recordings must have, in Hz."""
        return cast(int, self.extractor.sampling_rate)

    @cached_property
    def markup(self) -> str:
        """What stands for one recording in a text that `__call__` takes."""
        if self._markup is not None:
            return self._markup
        opening, closing = (
            getattr(self.processor, f"audio_{end}_token", None) or "" for end in ("bos", "eos")
        )
        if not opening:
            return self.audio_token
        # Some processors put these around a recording themselves.
        ids, _ = self(self.audio_token, [self._sound()])
        written = self.tokenizer.convert_tokens_to_ids(opening) in ids
        return self.audio_token if written else f"{opening}{self.audio_token}{closing}"

    @cached_property
    def closing(self) -> str:
        """What a text after a recording follows: the recording's last token and what comes then."""
        ids, _ = self(self.markup, [self._sound()])
        after = ids[len(ids) - ids[::-1].index(AUDIO) :]
        return cast(str, self.tokenizer.decode(after)) if after else self.audio_token

    def __call__(self, text: str, waveforms: Sequence[Waveform]) -> Inputs:
        """Return what the model takes for a text with `markup` in place of each waveform.

        Args:
            text: no special tokens beside those that the tokenizer adds.
            waveforms: mono, at `sampling_rate`: [frames] each.
        """
        twice = {"add_special_tokens": False} if opens_with_bos(self.tokenizer, text) else {}
        inputs = self.processor(
            text=[text],
            audio=list(waveforms),
            sampling_rate=self.sampling_rate,
            return_tensors="pt",
            **twice,
        )
        ids = inputs["input_ids"][0].tolist()
        features = {
            name: torch.as_tensor(value)
            for name, value in inputs.items()
            if name not in PER_POSITION
        }
        if not self.marked:
            ids = [AUDIO if id_ == self.audio_token_id else id_ for id_ in ids]
        return ids, features

    def chat(self, turns: Sequence[Turn], **options: Any) -> list[str]:
        """Return a conversation as the texts before, between and after its recordings."""
        if self._system_option and turns[0][0] == "system":
            options[self._system_option] = "".join(map(str, turns[0][1]))
            turns = turns[1:]
        form = _as_parts if self._takes_parts else self._as_string
        rendered = self.template_owner.apply_chat_template(
            [form(turn) for turn in turns], tokenize=False, **options
        )
        return cast(list[str], rendered.split(self.markup))

    @cached_property
    def _takes_parts(self) -> bool:
        """Whether the template takes a recording as a part of a message, or only texts."""
        try:
            pieces = self.template_owner.apply_chat_template(
                [_as_parts(("user", (0, "Hello")))], tokenize=False
            ).split(self.markup)
        except (jinja2.TemplateError, TypeError, ValueError, KeyError):
            return False
        return len(pieces) == 2 and "'type'" not in "".join(pieces)

    def _as_string(self, turn: Turn) -> dict[str, Any]:
        role, content = turn
        pieces = (piece if isinstance(piece, str) else self.markup for piece in content)
        return {"role": role, "content": "".join(pieces)}

    @property
    def template_owner(self) -> Any:
        """What has the chat template: the processor, else the tokenizer; None without one."""
        for owner in (self.processor, self.tokenizer):
            if getattr(owner, "chat_template", None):
                return owner
        return None

    def _find_audio_token(self) -> str:
        for owner in (self.processor, self.tokenizer):
            if token := getattr(owner, "audio_token", None):
                return cast(str, token)
        raise AdapterError(
            f"{type(self.processor).__name__} names no audio_token, by which transformers' "
            "processors say where a recording goes in a text; this model needs a row in "
            "adapters/families/table.py"
        )

    def _sound(self) -> Waveform:
        return sound(1.0, self.sampling_rate)


def opens_with_bos(tokenizer: Any, text: str) -> bool:
    """Tell whether a text, as of a chat template, has the token that begins texts already."""
    bos = tokenizer.bos_token
    return bool(bos) and text.startswith(bos)


def encode(tokenizer: Any, text: str) -> list[int]:
    """Tokenize text, with the special tokens that the tokenizer adds by itself, once."""
    add = not opens_with_bos(tokenizer, text)
    return cast(list[int], tokenizer.encode(text, add_special_tokens=add))


def sound(seconds: float, sampling_rate: int) -> Waveform:
    """Return noise to try a processor with: [frames]."""
    frames = round(seconds * sampling_rate)
    return np.random.default_rng(0).normal(scale=0.1, size=frames).astype(np.float32)


def load_processor(pretrained: str, model_type: str, source: Mapping[str, Any]) -> Any:
    """Return transformers' own processor of a model, but for the parts that see.

    These need torchvision, and see nothing here.
    """
    name = PROCESSOR_MAPPING_NAMES.get(model_type)
    kind: Any = processor_class_from_name(name) if name else None
    parts = kind.get_attributes() if kind else []
    if not any(re.search("image|video", part) for part in parts):
        return transformers.AutoProcessor.from_pretrained(pretrained, **source)
    settings, _ = kind.get_processor_dict(pretrained, **source)
    loaded = [_load_part(part, pretrained, source) for part in parts]
    # The check of a video part fails where torchvision is not installed, whatever the part is.
    blind: Any = type(kind.__name__, (kind,), {"check_argument_for_proper_class": accept_any_part})
    processor = blind.from_args_and_dict(loaded, settings)
    # Where __init__ does not name it, from_args_and_dict drops it.
    processor.chat_template = processor.chat_template or settings.get("chat_template")
    return processor


def _load_part(part: str, pretrained: str, source: Mapping[str, Any]) -> Any:
    if part == "image_processor":
        return _NoImages()
    if part == "video_processor":
        return _NoVideos()
    loader = (
        transformers.AutoTokenizer if part == "tokenizer" else transformers.AutoFeatureExtractor
    )
    return loader.from_pretrained(pretrained, **source)


def accept_any_part(_: Any, __: str, part: object) -> type:
    """Stand for a processor's check of its parts' classes."""
    return type(part)


class _NoImages(BaseImageProcessor):
    """Stands where a processor asks for its image part."""

    model_input_names: tuple[str, ...] = ()


class _NoVideos(BaseVideoProcessor):
    """Stands where a processor asks for its video part."""

    model_input_names: tuple[str, ...] = ()

    def __init__(self) -> None:
        pass


def _audio_part(processor: Any) -> Any:
    for name in ("feature_extractor", "audio_processor"):
        if (part := getattr(processor, name, None)) is not None:
            return part
    raise AdapterError(f"{type(processor).__name__} has no part that takes audio")


def _as_parts(turn: Turn) -> dict[str, Any]:
    role, content = turn
    parts = [
        {"type": "text", "text": piece} if isinstance(piece, str) else {"type": "audio"}
        for piece in content
    ]
    return {"role": role, "content": parts}
