"""What a prompt is to a model of transformers: token ids, and features of the recordings."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from s2s_tasks.adapters.contract import AdapterError, Message, Prefix
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Continuation, Prompt, escape, placeholder, split_context


class Renderer:
    """A tokenizer, and the processor of a model that hears. It needs no model, and no network."""

    def __init__(self, name: str, tokenizer: Any, processor: Any | None) -> None:
        """Take what was loaded; `name` is the model's, for messages."""
        self._name = name
        self.tokenizer = tokenizer
        self.processor = processor
        self.sampling_rate: int | None = None
        if processor is not None:
            self.sampling_rate = processor.feature_extractor.sampling_rate

    @cached_property
    def audio_markup(self) -> str:
        """What stands for one recording in a prompt, as the model's processor writes it."""
        names = ("audio_bos_token", "audio_token", "audio_eos_token")
        return "".join(getattr(self.processor, name, None) or "" for name in names)

    @property
    def first_id(self) -> int:
        """What stands before a continuation where nothing else does."""
        bos = self.tokenizer.bos_token_id
        return cast(int, self.tokenizer.eos_token_id if bos is None else bos)

    def render(self, prompt: Prompt) -> Prefix:
        """Tokenize a prompt; recordings become the processor's features.

        Raises:
            AdapterError: for recordings of a model that only reads, and for a text that spells
                what stands for a recording.
            AudioError: when a recording cannot be used; the message names it.
        """
        self._refuse_lookalike(prompt.text)
        if not prompt.audio:
            return Prefix(self._tokenize(prompt.text) or [self.first_id])
        if self.processor is None or self.sampling_rate is None:
            raise AdapterError(f"{self._name} only reads text and cannot take a recording")
        text = "".join(
            self.audio_markup if isinstance(segment, Audio) else segment
            for segment in prompt.segments
        )
        inputs = self.processor(
            text=[text],
            audio=[audio.load(self.sampling_rate) for audio in prompt.audio],
            sampling_rate=self.sampling_rate,
            add_special_tokens=not self._opens_with_bos(text),
            return_tensors="pt",
        )
        ids = inputs.pop("input_ids")[0].tolist()
        inputs.pop("attention_mask")
        heard = self.tokenizer.convert_tokens_to_ids(self.processor.audio_token)
        if ids.count(heard) < len(prompt.audio):
            names = ", ".join(f"{a.name} ({1000 * a.seconds:.0f} ms)" for a in prompt.audio)
            raise AdapterError(
                f"{names}: too short for {self._name}, which would hear nothing; leave that "
                "question out"
            )
        return Prefix(ids, dict(inputs), tuple(audio.sha256 for audio in prompt.audio))

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the prompt.

        Context and continuation are tokenized together and split after the context's tokens, as
        lm-eval does; where a token would straddle the boundary they are tokenized apart.

        Raises:
            AdapterError: for a spoken continuation, and for one without tokens.
        """
        if isinstance(continuation, Audio):
            raise AdapterError(f"{self._name} gives no likelihoods of speech, only of text")
        self._refuse_lookalike(continuation)
        before = self._text_before(prompt)
        together, context = self._tokenize(before + continuation), self._tokenize(before)
        if before and together[: len(context)] == context:
            ids = together[len(context) :]
        else:
            ids = self.tokenizer.encode(continuation, add_special_tokens=False)
        if not ids:
            raise AdapterError(f"the continuation {continuation!r} has no tokens to score")
        return ids

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the model's own template.

        Raises:
            AdapterError: when the model has no template, or it does not keep the recordings.
        """
        teller = self.tokenizer if self.processor is None else self.processor
        if not getattr(teller, "chat_template", None):
            raise AdapterError(
                f"{self._name} has no chat template; leave --apply_chat_template out"
            )
        options = {
            "tokenize": False,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": not add_generation_prompt,
        }
        if self.processor is None:
            return cast(str, teller.apply_chat_template(list(messages), **options))
        contents = [split_context(message["content"]) for message in messages]
        conversation = [
            {"role": message["role"], "content": [_chat_part(piece) for piece in content]}
            for message, content in zip(messages, contents, strict=True)
        ]
        recordings = [piece for content in contents for piece in content if isinstance(piece, int)]
        texts = teller.apply_chat_template(conversation, **options).split(self.audio_markup)
        if len(texts) != len(recordings) + 1:
            raise AdapterError(
                f"{self._name}: the chat template wrote {len(texts) - 1} recording(s) for "
                f"{len(recordings)}; does a text hold {self.audio_markup!r}?"
            )
        marks = [placeholder(index) for index in recordings]
        pieces = [escape(text) for text in texts]
        return pieces[0] + "".join(m + p for m, p in zip(marks, pieces[1:], strict=True))

    def _refuse_lookalike(self, text: str) -> None:
        if self.processor is not None and self.processor.audio_token in text:
            raise AdapterError(
                f"a text holds {self.processor.audio_token!r}, which the model would take for a "
                f"recording: {text!r}"
            )

    def _text_before(self, prompt: Prompt) -> str:
        """Return the text that a continuation's tokenization depends on.

        After a recording that is the recording's closing token and what follows it: special
        tokens never merge with their neighbours.
        """
        if not prompt.audio:
            return prompt.text
        last = prompt.segments[-1]
        following = last if isinstance(last, str) else ""
        processor: Any = self.processor
        closing = getattr(processor, "audio_eos_token", None) or processor.audio_token
        return cast(str, closing) + following

    def _tokenize(self, text: str) -> list[int]:
        return cast(
            list[int],
            self.tokenizer.encode(text, add_special_tokens=not self._opens_with_bos(text)),
        )

    def _opens_with_bos(self, text: str) -> bool:
        bos = self.tokenizer.bos_token
        return bool(bos) and text.startswith(bos)


def longest_audio(feature_extractor: Any) -> float | None:
    """Return the seconds that a feature extractor keeps of a recording; None for all of it."""
    window = getattr(feature_extractor, "chunk_length", None)
    if window is not None:
        return float(window)
    defaults = inspect.signature(type(feature_extractor).__call__).parameters
    if "truncation" not in defaults or not defaults["truncation"].default:
        return None
    most = defaults["max_length"].default if "max_length" in defaults else None
    return most / feature_extractor.sampling_rate if isinstance(most, int) else None


def _chat_part(piece: str | int) -> dict[str, str]:
    return {"type": "text", "text": piece} if isinstance(piece, str) else {"type": "audio"}
