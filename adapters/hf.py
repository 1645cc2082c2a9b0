"""`HFAdapter`: models that transformers carries, those that hear and those that only read."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import torch
from torch.nn.utils.rnn import pad_sequence

from s2s_tasks.adapters.contract import Adapter, AdapterError, Generation, Message, Prefix
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM
from s2s_tasks.adapters.features import collate, expand
from s2s_tasks.adapters.hf_loading import load
from s2s_tasks.audio import Audio
from s2s_tasks.prompt import Continuation, Prompt, escape, placeholder, split_context
from s2s_tasks.score import Score, score_logits

log = logging.getLogger(__name__)


class HFAdapter(Adapter):
    """A causal LM of transformers, behind its processor where it hears."""

    def __init__(
        self,
        pretrained: str,
        *,
        device: str | None = None,
        dtype: str = "auto",
        revision: str | None = None,
        attn_implementation: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Load a folder or a hub model; the arguments are those of `from_pretrained`.

        Raises:
            AdapterError: when it cannot be loaded.
        """
        loaded = load(
            pretrained,
            device=device,
            dtype=dtype,
            revision=revision,
            attn_implementation=attn_implementation,
            trust_remote_code=trust_remote_code,
        )
        self.model, self.device = loaded.model, loaded.device
        self.processor: Any = loaded.processor
        self._tokenizer = loaded.tokenizer
        config = self.model.config
        commit = revision or getattr(config, "_commit_hash", None) or "local"
        if isinstance(self.model, CTCSpeechLM):
            commit = self.model.identity
        self.fingerprint = f"{pretrained}@{commit}:{type(self.model).__name__}:{self.model.dtype}"
        if self.processor is not None:
            extractor = self.processor.feature_extractor
            self.sampling_rate = extractor.sampling_rate
            self.longest_audio = getattr(extractor, "chunk_length", None)
        self._forward_arguments = inspect.signature(self.model.forward).parameters

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return self._tokenizer

    @cached_property
    def max_length(self) -> int:  # type: ignore[override]
        """Tokens that the model can attend to; its configuration says it."""
        config = self.model.config.get_text_config()
        return cast(int, getattr(config, "max_position_embeddings", None) or 2048)

    @cached_property
    def audio_markup(self) -> str:
        """What stands for one recording in a prompt, as the model's processor writes it."""
        names = ("audio_bos_token", "audio_token", "audio_eos_token")
        return "".join(getattr(self.processor, name, None) or "" for name in names)

    def render(self, prompts: Sequence[Prompt]) -> list[Prefix]:
        """Tokenize prompts; recordings become the processor's features."""
        for prompt in prompts:
            self._refuse_lookalike(prompt.text)
        return [
            self._render_audio(prompt) if prompt.audio else self._render_text(prompt)
            for prompt in prompts
        ]

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the prompt.

        Context and continuation are tokenized together and split after the context's tokens, as
        lm-eval does; where a token would straddle the boundary they are tokenized apart.

        Raises:
            AdapterError: for a spoken continuation, and for one without tokens.
        """
        if isinstance(continuation, Audio):
            raise AdapterError(f"{self.fingerprint} gives no likelihoods of speech, only of text")
        self._refuse_lookalike(continuation)
        before = self._text_before(prompt)
        together, context = self._tokenize(before + continuation), self._tokenize(before)
        if before and together[: len(context)] == context:
            ids = together[len(context) :]
        else:
            ids = self._tokenizer.encode(continuation, add_special_tokens=False)
        if not ids:
            raise AdapterError(f"the continuation {continuation!r} has no tokens to score")
        return ids

    @torch.inference_mode()
    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score by one full forward over right-padded rows of prefix and continuation.

        Only the positions that predict a continuation's tokens go through the output layer,
        where the model allows that.
        """
        sequences = [torch.tensor(self._fit(prefix, continuation)) for prefix, continuation in rows]
        ids = pad_sequence(sequences, batch_first=True).to(self.device)
        lengths = torch.tensor([len(sequence) for sequence in sequences], device=self.device)
        mask = (torch.arange(ids.shape[1], device=self.device) < lengths[:, None]).long()
        spans = [
            range(len(sequence) - len(continuation), len(sequence))
            for sequence, (_, continuation) in zip(sequences, rows, strict=True)
        ]
        kept = sorted({position for span in spans for position in span})
        inputs = self._to_model(collate([prefix.features for prefix, _ in rows]))
        if "logits_to_keep" in self._forward_arguments:
            inputs["logits_to_keep"] = torch.tensor(kept, device=self.device)
            column = {position: index for index, position in enumerate(kept)}
        else:
            column = {position: position for position in kept}
        logits = self.model(input_ids=ids, attention_mask=mask, use_cache=False, **inputs).logits
        return [
            score_logits(
                logits[row, column[span.start] : column[span[-1]] + 1],
                torch.tensor(continuation, device=self.device),
                prefix.transcripts,
            )
            for row, (span, (prefix, continuation)) in enumerate(zip(spans, rows, strict=True))
        ]

    @torch.inference_mode()
    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[str]:
        """Continue left-padded prefixes with the model's own `generate`."""
        room = self.max_length - how.max_new_tokens
        flipped = [torch.tensor(self._cut(prefix, room)[::-1]) for prefix in prefixes]
        pad = self._tokenizer.pad_token_id
        pad = self._tokenizer.eos_token_id if pad is None else pad
        ids = pad_sequence(flipped, batch_first=True, padding_value=pad).flip(1).to(self.device)
        lengths = torch.tensor([len(row) for row in flipped], device=self.device)
        places = torch.arange(ids.shape[1], device=self.device).flip(0)
        stop = {"stop_strings": list(how.until), "tokenizer": self._tokenizer} if how.until else {}
        output = self.model.generate(
            input_ids=ids,
            attention_mask=(places < lengths[:, None]).long(),
            max_new_tokens=how.max_new_tokens,
            pad_token_id=pad,
            **stop,
            **how.options,
            **self._to_model(collate([prefix.features for prefix in prefixes])),
        )
        return cast(
            list[str],
            self._tokenizer.batch_decode(output[:, ids.shape[1] :], skip_special_tokens=True),
        )

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the model's own template."""
        teller = self._tokenizer if self.processor is None else self.processor
        if not getattr(teller, "chat_template", None):
            raise AdapterError(
                f"{self.fingerprint} has no chat template; leave --apply_chat_template out"
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
                f"{self.fingerprint}: the chat template wrote {len(texts) - 1} recording(s) for "
                f"{len(recordings)}; does a text hold {self.audio_markup!r}?"
            )
        marks = [placeholder(index) for index in recordings]
        pieces = [escape(text) for text in texts]
        return pieces[0] + "".join(m + p for m, p in zip(marks, pieces[1:], strict=True))

    def _render_text(self, prompt: Prompt) -> Prefix:
        return Prefix(self._tokenize(prompt.text) or [self._first_id()])

    def _render_audio(self, prompt: Prompt) -> Prefix:
        if self.processor is None or self.sampling_rate is None:
            raise AdapterError(f"{self.fingerprint} only reads text and cannot take a recording")
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
        if not isinstance(self.model, CTCSpeechLM):
            return Prefix(ids, dict(inputs))
        # How many positions a recording takes is known only once the model has heard it.
        embedded = self.model.embed_audio(**self._to_model(inputs))
        ids = expand(ids, self.model.config.audio_token_id, [len(e) for e in embedded])
        return Prefix(ids or [self._first_id()], {"audio_embeds": torch.cat(embedded)})

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
        closing = getattr(self.processor, "audio_eos_token", None) or self.processor.audio_token
        return cast(str, closing) + following

    def _tokenize(self, text: str) -> list[int]:
        return cast(
            list[int],
            self._tokenizer.encode(text, add_special_tokens=not self._opens_with_bos(text)),
        )

    def _first_id(self) -> int:
        """Return what stands before a continuation where nothing else does."""
        bos = self._tokenizer.bos_token_id
        return cast(int, self._tokenizer.eos_token_id if bos is None else bos)

    def _opens_with_bos(self, text: str) -> bool:
        bos = self._tokenizer.bos_token
        return bool(bos) and text.startswith(bos)

    def _fit(self, prefix: Prefix, continuation: Sequence[int]) -> list[int]:
        """Return what the model reads: all but the last token, which is only predicted."""
        room = self.max_length - len(continuation) + 1
        return [*self._cut(prefix, room), *continuation][:-1]

    def _cut(self, prefix: Prefix, room: int) -> list[int]:
        """Return a prefix that fits: one too long loses its head, as in lm-eval.

        Raises:
            AdapterError: when it holds audio, of which nothing is cut, or no room is left.
        """
        excess = len(prefix.ids) - room
        if excess <= 0:
            return prefix.ids
        if prefix.features or room < 1:
            raise AdapterError(
                f"a prompt of {len(prefix.ids)} positions does not fit the {room} that the "
                f"model's {self.max_length} leave it"
            )
        log.warning("A context of %d tokens loses the first %d", len(prefix.ids), excess)
        return prefix.ids[excess:]

    def _to_model(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {
            name: tensor.to(self.device, self.model.dtype)
            if tensor.is_floating_point()
            else tensor.to(self.device)
            for name, tensor in features.items()
        }


def _chat_part(piece: str | int) -> dict[str, str]:
    return {"type": "text", "text": piece} if isinstance(piece, str) else {"type": "audio"}
