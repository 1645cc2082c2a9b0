"""Voxtral: its tokenizer and its chats are mistral-common's, and take audio in chats only."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
import soundfile
import torch
import transformers

from s2s_tasks.audio import Waveform

RECORDING = re.compile(r"\[BEGIN_AUDIO\](\[AUDIO\])+")


class VoxtralProcessor:
    """Voxtral's processor, called as those of other models are.

    A text says `[AUDIO]` where a recording goes, which becomes what mistral-common writes for it in
    a user's turn. Control tokens that a text spells are those tokens, as in other tokenizers.
    """

    audio_token = "[AUDIO]"
    chat_template = "mistral-common"

    def __init__(self, processor: Any) -> None:
        """Take transformers' `VoxtralProcessor`."""
        self._processor = processor
        self.tokenizer = ControlledTokenizer(processor.tokenizer)
        self.feature_extractor = processor.feature_extractor

    def __call__(
        self, text: Sequence[str], audio: Sequence[Waveform], *, sampling_rate: int, **options: Any
    ) -> dict[str, torch.Tensor]:
        """Return `input_ids` and `input_features`; `text` is one prompt."""
        first, *others = text[0].split(self.audio_token)
        ids = self.tokenizer.encode(first, options.get("add_special_tokens", True))
        features = []
        for waveform, following in zip(audio, others, strict=True):
            tokens, heard = self._hear(waveform, sampling_rate)
            ids += tokens + self.tokenizer.encode(following, add_special_tokens=False)
            features.append(heard)
        return {"input_ids": torch.tensor([ids]), "input_features": torch.cat(features)}

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        *,
        tokenize: bool,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
    ) -> str:
        """Return a conversation as text, `[AUDIO]` in place of each recording.

        Raises:
            ValueError: for what mistral-common refuses, a system's turn beside audio among it.
        """
        del tokenize, add_generation_prompt  # A turn of the user ends where the reply begins.
        silence = _part(np.zeros(1600, dtype=np.float32), self.feature_extractor.sampling_rate)
        turns = [
            {
                "role": turn["role"],
                "content": [silence if p["type"] == "audio" else p for p in turn["content"]],
            }
            for turn in conversation
        ]
        made = self._processor.apply_chat_template(
            turns, continue_final_message=continue_final_message
        )
        written = self.tokenizer.decode(made["input_ids"][0], skip_special_tokens=False)
        return RECORDING.sub(lambda _: self.audio_token, written)

    def to_json_string(self) -> str:
        """Return what changes features: nothing that the extractor's own settings leave out."""
        return "VoxtralProcessor"

    def _hear(self, waveform: Waveform, sampling_rate: int) -> tuple[list[int], torch.Tensor]:
        """Return a recording's tokens, and its windows of 30 s: [windows, mel bins, frames]."""
        turn = {"role": "user", "content": [_part(waveform, sampling_rate)]}
        made = self._processor.apply_chat_template([turn])
        ids = made["input_ids"][0].tolist()
        begin, end = (self.tokenizer.convert_tokens_to_ids(t) for t in ("[INST]", "[/INST]"))
        return ids[ids.index(begin) + 1 : ids.index(end)], made["input_features"]


class ControlledTokenizer:
    """A tokenizer of mistral-common that knows the control tokens in a text."""

    def __init__(self, tokenizer: Any) -> None:
        """Take transformers' `MistralCommonBackend`."""
        self._tokenizer = tokenizer
        names = sorted(map(re.escape, tokenizer.all_special_tokens), key=len, reverse=True)
        self._control = re.compile(f"({'|'.join(names)})")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_tokenizer":
            raise AttributeError(name)
        return getattr(self._tokenizer, name)

    def to_json_string(self) -> str:
        """Return what changes tokens and chats: mistral-common's version, a hash of its file."""
        words = self._tokenizer.tokenizer.instruct_tokenizer.tokenizer.file_path.read_bytes()
        return json.dumps([version("mistral_common"), hashlib.sha256(words).hexdigest()])

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Tokenize; `add_special_tokens` puts the one that begins a text before it."""
        ids = [self._tokenizer.bos_token_id] if add_special_tokens else []
        for place, piece in enumerate(self._control.split(text)):
            if place % 2:
                ids.append(self._tokenizer.convert_tokens_to_ids(piece))
            else:
                ids += self._tokenizer.encode(piece, add_special_tokens=False)
        return cast(list[int], ids)


def load_processor(pretrained: str, model_type: str, source: Mapping[str, Any]) -> VoxtralProcessor:
    """Load Voxtral's processor.

    Raises:
        ImportError: without mistral-common.
    """
    del model_type
    if find_spec("mistral_common") is None:
        # transformers would load another tokenizer, which begins no text and has no template.
        raise ImportError("Voxtral needs its own tokenizer: pip install mistral-common")
    return VoxtralProcessor(transformers.VoxtralProcessor.from_pretrained(pretrained, **source))


def _part(waveform: Waveform, sampling_rate: int) -> dict[str, str]:
    # From a path the processor would make 16-bit samples; base64 stays as it is.
    with io.BytesIO() as file:
        soundfile.write(file, waveform, sampling_rate, format="WAV", subtype="FLOAT")
        return {"type": "audio", "base64": base64.b64encode(file.getvalue()).decode()}
