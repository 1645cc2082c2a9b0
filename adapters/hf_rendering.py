"""What a prompt is to a model of transformers: token ids, and features of the recordings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import jinja2
import numpy as np

from s2s_tasks.adapters.contract import AUDIO, AdapterError, Message, Prefix
from s2s_tasks.adapters.hearing import Hearing, try_hearing
from s2s_tasks.adapters.speech_processor import SpeechProcessor, encode
from s2s_tasks.audio import Audio, Waveform
from s2s_tasks.prompt import Continuation, Prompt, escape, placeholder, split_context


class Renderer:
    """A tokenizer, and the processor of a model that hears. It needs no model, and no network."""

    def __init__(
        self, name: str, tokenizer: Any, processor: SpeechProcessor | None, *, chunk: bool = False
    ) -> None:
        """Take what was loaded.

        Args:
            name: of the model, for messages.
            tokenizer: of its text side.
            processor: None for a model that only reads.
            chunk: whether a recording that is too long becomes several.
        """
        self._name = name
        self.tokenizer = tokenizer
        self.processor = processor
        self._chunk = chunk

    def __str__(self) -> str:
        template = "a" if self.chat_template else "no"
        split = " (longer ones are split)" if self._chunk else ""
        hears = self.hearing or "only reads"
        return f"{self._name} {hears}{split}; it has {template} chat template"

    @cached_property
    def hearing(self) -> Hearing | None:
        """What the model hears; None for one that only reads."""
        return None if self.processor is None else try_hearing(self.processor)

    @property
    def chat_template(self) -> str | None:
        """The model's chat template: of several the one that is taken by default."""
        owner = self.processor.template_owner if self.processor else self.tokenizer
        template = getattr(owner, "chat_template", None)
        if isinstance(template, dict):
            template = template.get("default")
        return cast(str | None, template or None)

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
            return Prefix(encode(self.tokenizer, prompt.text) or [self.first_id])
        if self.processor is None:
            raise AdapterError(f"{self._name} only reads text and cannot take a recording")
        text, waveforms = "", []
        for segment in prompt.segments:
            pieces = [segment] if isinstance(segment, str) else self._waveforms(segment)
            for piece in pieces:
                text += piece if isinstance(piece, str) else self.processor.markup
                waveforms += [] if isinstance(piece, str) else [piece]
        ids, features = self.processor(text, waveforms)
        if ids.count(AUDIO) < len(waveforms):
            names = ", ".join(f"{a.name} ({1000 * a.seconds:.0f} ms)" for a in prompt.audio)
            raise AdapterError(
                f"{names}: too short for {self._name}, which would hear nothing; leave that "
                "question out"
            )
        return Prefix(ids, features, tuple(audio.sha256 for audio in prompt.audio))

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
        together, context = (
            encode(self.tokenizer, before + continuation),
            encode(self.tokenizer, before),
        )
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
            AdapterError: when the model has no template, or it drops a recording or a text.
        """
        if not self.chat_template:
            raise AdapterError(
                f"{self._name} has no chat template; leave --apply_chat_template out"
            )
        options = {
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": not add_generation_prompt,
        }
        try:
            if self.processor is None:
                history = list(messages)
                return cast(
                    str, self.tokenizer.apply_chat_template(history, tokenize=False, **options)
                )
            turns = [(m["role"], split_context(m["content"])) for m in messages]
            texts = self.processor.chat(turns, **options)
        except (jinja2.TemplateError, ValueError) as error:
            raise AdapterError(
                f"{self._name}: its chat template refuses this conversation (roles: "
                f"{', '.join(m['role'] for m in messages)}): {error}"
            ) from error
        pieces = [piece for _, content in turns for piece in content]
        recordings = [piece for piece in pieces if isinstance(piece, int)]
        if len(texts) != len(recordings) + 1:
            raise AdapterError(
                f"{self._name}: the chat template wrote {len(texts) - 1} recording(s) for "
                f"{len(recordings)}; does a text hold {self.processor.markup!r}?"
            )
        written = "".join(texts)
        for role, content in turns:
            for piece in content:
                if isinstance(piece, str) and piece.strip() not in written:
                    raise AdapterError(
                        f"{self._name}: the chat template drops a text of the {role}: {piece!r}"
                    )
        marks = [placeholder(index) for index in recordings]
        escaped = [escape(text) for text in texts]
        return escaped[0] + "".join(m + p for m, p in zip(marks, escaped[1:], strict=True))

    def _waveforms(self, audio: Audio) -> list[Waveform]:
        """Decode a recording, in as many pieces of alike lengths as the model needs."""
        assert self.hearing is not None
        waveform = audio.load(self.hearing.sampling_rate)
        longest = self.hearing.longest
        if not self._chunk or longest is None or audio.seconds <= longest:
            return [waveform]
        return list(np.array_split(waveform, math.ceil(audio.seconds / longest)))

    def _refuse_lookalike(self, text: str) -> None:
        if self.processor is not None and self.processor.audio_token in text:
            raise AdapterError(
                f"a text holds {self.processor.audio_token!r}, which the model would take for a "
                f"recording: {text!r}"
            )

    def _text_before(self, prompt: Prompt) -> str:
        """Return the text that a continuation's tokenization depends on.

        After a recording that is what closes the recording and what follows: special tokens never
        merge with their neighbours.
        """
        if not prompt.audio:
            return prompt.text
        assert self.processor is not None
        last = prompt.segments[-1]
        return self.processor.closing + (last if isinstance(last, str) else "")
