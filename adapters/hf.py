"""`HFAdapter`: models that transformers carries, those that hear and those that only read."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import Any, cast

import torch
from torch.nn.utils.rnn import pad_sequence

from s2s_tasks.adapters.audio_front import AudioFront
from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.contract import (
    Adapter,
    AdapterError,
    Generation,
    Group,
    Message,
    Prefix,
)
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM
from s2s_tasks.adapters.features import collate, expand
from s2s_tasks.adapters.fingerprint import checksum, describe
from s2s_tasks.adapters.hf_loading import load
from s2s_tasks.adapters.hf_rendering import Renderer, longest_audio
from s2s_tasks.adapters.likelihood import score_groups, score_rows
from s2s_tasks.prompt import Continuation, Prompt
from s2s_tasks.score import Score

log = logging.getLogger(__name__)

LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")
"""What configurations call the longest sequence; lm_eval.models.utils.resolve_max_length does not
know MPT's `max_seq_len`."""
ROUNDING = {torch.float32: 1e-3, torch.float16: 0.02, torch.bfloat16: 0.07}
QUANTISED = 0.15
"""See `Adapter.rounding`, by the dtype of the weights. Measured on five models of 0.1 to 270 M
parameters, two of them trained: right shortcuts differ by less than 1e-4, by 0.006 and by 0.04 in
fp32, fp16 and bf16; one position too many after the prefix makes 0.1 to 2. Quantised weights were
measured in one model only, and a wrong position of theirs may pass."""


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
        device_map: str | None = None,
        peft: str | None = None,
        load_in_8bit: bool = False,
        load_in_4bit: bool = False,
        bnb_4bit_quant_type: str = "fp4",
        bnb_4bit_compute_dtype: str | None = None,
        audio_cache: str | None = None,
        audio_cache_gb: float = 20.0,
    ) -> None:
        """Load a folder or a hub model.

        Args:
            pretrained: folder or hub id.
            device: where to compute; by default the first GPU, else the CPU.
            dtype: of the weights; `auto` for that of the checkpoint.
            revision: of the hub's repository.
            attn_implementation: `sdpa`, `eager`, `flash_attention_2` …
            trust_remote_code: let the repository bring its own code.
            device_map: `auto` spreads the model over all devices; else as transformers takes it.
            peft: folder or hub id of a PEFT adapter (LoRA …) on top of the model.
            load_in_8bit: quantise with bitsandbytes.
            load_in_4bit: quantise with bitsandbytes.
            bnb_4bit_quant_type: `fp4` or `nf4`.
            bnb_4bit_compute_dtype: dtype that 4-bit weights are computed in.
            audio_cache: folder that keeps what the model's audio tower makes of recordings, for
                other checkpoints with the same tower.
            audio_cache_gb: how large that folder may become, in GB.

        Raises:
            AdapterError: when it cannot be loaded.
        """
        quantization = {
            "load_in_8bit": load_in_8bit,
            "load_in_4bit": load_in_4bit,
            "bnb_4bit_quant_type": bnb_4bit_quant_type,
            "bnb_4bit_compute_dtype": bnb_4bit_compute_dtype,
        }
        loaded = load(
            pretrained,
            device=device,
            dtype=dtype,
            revision=revision,
            attn_implementation=attn_implementation,
            trust_remote_code=trust_remote_code,
            device_map=device_map,
            peft=peft,
            quantization=quantization if load_in_8bit or load_in_4bit else None,
        )
        self.model, self.device, self.dtype = loaded.model, loaded.device, loaded.model.dtype
        quantised = getattr(self.model, "is_quantized", False)
        self.rounding = QUANTISED if quantised else ROUNDING.get(self.dtype, QUANTISED)
        config = self.model.config
        commit = revision or getattr(config, "_commit_hash", None) or "local"
        if isinstance(self.model, CTCSpeechLM):
            commit = self.model.identity
        name = f"{pretrained}+{peft}" if peft else pretrained
        self._renderer = Renderer(name, loaded.tokenizer, loaded.processor)
        settings = describe(self.tokenizer, self.processor)
        if peft:
            settings.append(repr(self.model.peft_config))
        weights = checksum(self.model, *settings)
        kind = f"{type(self.model).__name__}:{self.dtype}"
        self.fingerprint = f"{name}@{commit}:{kind}:{weights}"
        self.sampling_rate = self._renderer.sampling_rate
        self.embeds_audio = self.processor is not None
        if self.processor is not None:
            self.longest_audio = longest_audio(self.processor.feature_extractor)
        self._lm = CausalLM(self.model, self._pad_token_id, self._audio_token_id)
        self._front: AudioFront | None = None
        if audio_cache:
            if self.processor is None:
                raise AdapterError(f"audio_cache: {name} only reads text; leave audio_cache out")
            extractor = self.processor.feature_extractor
            self._front = AudioFront(self.model, extractor, audio_cache, audio_cache_gb)
            self.keeps_audio = True
        self._idle_renderers: SimpleQueue[Renderer] = SimpleQueue()

    def notes(self) -> list[str]:
        """Tell what the store of encodings was good for."""
        return [str(self._front)] if self._front else []

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer."""
        return self._renderer.tokenizer

    @property
    def processor(self) -> Any | None:
        """The model's processor; None for a model that only reads."""
        return self._renderer.processor

    @cached_property
    def max_length(self) -> int:  # type: ignore[override]
        """Tokens that the model can attend to; its configuration says it."""
        config = self.model.config.get_text_config()
        return next((n for name in LENGTHS if (n := getattr(config, name, None))), 2048)

    def prepare(self, prompt: Prompt) -> Prefix:
        """Tokenize a prompt and compute the features of its recordings, in any thread."""
        # Tokenizers change while they are used, and refuse a second thread meanwhile.
        try:
            renderer = self._idle_renderers.get_nowait()
        except Empty:
            renderer = copy.deepcopy(self._renderer)
        try:
            return renderer.render(prompt)
        finally:
            self._idle_renderers.put(renderer)

    def render(
        self, prompts: Sequence[Prompt], prepared: Sequence[Prefix] | None = None
    ) -> list[Prefix]:
        """Tokenize prompts; recordings become the processor's features, or soft tokens."""
        prefixes = prepared or [self._renderer.render(prompt) for prompt in prompts]
        return [self._embed_audio(p) if p.features else p for p in prefixes]

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the prompt; see `Renderer.encode`."""
        return self._renderer.encode(prompt, continuation)

    @torch.inference_mode()
    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score by one full forward over right-padded rows of prefix and continuation."""
        fitted = [(self._cut(prefix, self.max_length - len(ids) + 1), ids) for prefix, ids in rows]
        features = self._soft_features([prefix for prefix, _ in rows])
        answers = score_rows(self._lm, fitted, features)
        return [
            Score(*answer, prefix.transcripts)
            for answer, (prefix, _) in zip(answers, rows, strict=True)
        ]

    @torch.inference_mode()
    def score_groups(
        self, groups: Sequence[Group], most_positions: int | None = None
    ) -> list[list[Score]]:
        """Score continuations after prefixes that are read once."""
        features = self._soft_features([group.prefix for group in groups])
        return score_groups(self._lm, groups, features, most_positions)

    @torch.inference_mode()
    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[str]:
        """Continue left-padded prefixes with the model's own `generate`."""
        room = self.max_length - how.max_new_tokens
        flipped = [torch.tensor(self._cut(prefix, room)[::-1]) for prefix in prefixes]
        pad = self._pad_token_id
        ids = pad_sequence(flipped, batch_first=True, padding_value=pad).flip(1).to(self.device)
        lengths = torch.tensor([len(row) for row in flipped], device=self.device)
        places = torch.arange(ids.shape[1], device=self.device).flip(0)
        stop = {"stop_strings": list(how.until), "tokenizer": self.tokenizer} if how.until else {}
        output = self.model.generate(
            input_ids=ids,
            attention_mask=(places < lengths[:, None]).long(),
            max_new_tokens=how.max_new_tokens,
            pad_token_id=pad,
            **stop,
            **how.options,
            **self._features(prefixes),
        )
        return cast(
            list[str],
            self.tokenizer.batch_decode(output[:, ids.shape[1] :], skip_special_tokens=True),
        )

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the model's own template."""
        return self._renderer.chat(messages, add_generation_prompt=add_generation_prompt)

    def _embed_audio(self, prefix: Prefix) -> Prefix:
        """Put soft tokens in, where their number is known only once the model has heard."""
        if not isinstance(self.model, CTCSpeechLM):
            return prefix
        front = self._front if self.keeps_audio else None
        with front.hearing(prefix.recordings) if front else nullcontext():
            embedded = self.model.embed_audio(**self._to_model(prefix.features))
        ids = expand(prefix.ids, self.model.config.audio_token_id, [len(e) for e in embedded])
        return replace(
            prefix,
            ids=ids or [self._renderer.first_id],
            features={"audio_embeds": torch.cat(embedded)},
        )

    def _cut(self, prefix: Prefix, room: int) -> list[int]:
        """Return a prefix that fits: one too long loses its head, as in lm-eval.

        Raises:
            AdapterError: when it holds audio, of which nothing is cut, or no room is left.
        """
        excess = len(prefix.ids) - room
        if excess <= 0:
            return prefix.ids
        if room < 1:
            raise AdapterError(
                f"the model has {self.max_length} positions, what is to follow the prompt takes "
                f"{self.max_length - room}: shorten it, or lower max_gen_toks"
            )
        if prefix.features:
            raise AdapterError(
                f"a prompt of {len(prefix.ids)} positions does not fit the {room} that the "
                f"model's {self.max_length} leave it"
            )
        log.warning("A context of %d tokens loses the first %d", len(prefix.ids), excess)
        return prefix.ids[excess:]

    @property
    def _pad_token_id(self) -> int:
        pad, eos = self.tokenizer.pad_token_id, self.tokenizer.eos_token_id
        return next((id_ for id_ in (pad, eos) if isinstance(id_, int)), 0)

    @property
    def _audio_token_id(self) -> int | None:
        token = getattr(self.processor, "audio_token", None)
        return None if token is None else cast(int, self.tokenizer.convert_tokens_to_ids(token))

    def _soft_tokens(self, prefix: Prefix) -> dict[str, torch.Tensor]:
        """Return what the LM gets in place of recordings, from the store where it is there."""
        if not prefix.features or self._front is None or not self.keeps_audio:
            return prefix.features
        if "audio_embeds" in prefix.features:
            return prefix.features
        audio_token = self._audio_token_id
        assert audio_token is not None
        with self._front.hearing(prefix.recordings):
            embedded = self._front.embed(prefix.ids, audio_token, self._to_model(prefix.features))
        return {"audio_embeds": embedded}

    def _soft_features(self, prefixes: Sequence[Prefix]) -> dict[str, torch.Tensor]:
        return self._to_model(collate([self._soft_tokens(prefix) for prefix in prefixes]))

    def _features(self, prefixes: Sequence[Prefix]) -> dict[str, torch.Tensor]:
        return self._to_model(collate([prefix.features for prefix in prefixes]))

    def _to_model(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {
            name: tensor.to(self.device, self.dtype)
            if tensor.is_floating_point()
            else tensor.to(self.device)
            for name, tensor in features.items()
        }
