"""`HFAdapter`: models that transformers carries, those that hear and those that only read."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from functools import cached_property, partial
from queue import Empty, SimpleQueue
from typing import Any

import torch
from transformers import GenerationMixin

from s2s_tasks.adapters.audio_front import AudioFront
from s2s_tasks.adapters.causal_lm import CausalLM
from s2s_tasks.adapters.contract import (
    Adapter,
    AdapterError,
    Generation,
    Group,
    Message,
    Prefix,
    Reply,
)
from s2s_tasks.adapters.ctc_speech_lm import CTCSpeechLM
from s2s_tasks.adapters.families.switched import by_modality
from s2s_tasks.adapters.fingerprint import checksum, describe
from s2s_tasks.adapters.generating import continue_rows
from s2s_tasks.adapters.hf_loading import load
from s2s_tasks.adapters.hf_rendering import Renderer
from s2s_tasks.adapters.likelihood import score_groups, score_rows
from s2s_tasks.adapters.model_inputs import ModelInputs
from s2s_tasks.adapters.placing import rounding_of
from s2s_tasks.adapters.speaking import Generate, speaker_of
from s2s_tasks.prompt import Continuation, Prompt
from s2s_tasks.score import Score

log = logging.getLogger(__name__)

LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "n_ctx")
"""What configurations call the longest sequence; lm_eval.models.utils.resolve_max_length does not
know MPT's `max_seq_len`."""
LONG_AUDIO = ("refuse", "chunk")


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
        long_audio: str = "refuse",
        voice: str | None = None,
        speaks: bool = False,
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
            long_audio: what to do with a recording longer than the model hears: `refuse` it, or
                `chunk` it into several, for models that take several.
            voice: who speaks, by the model's own name; by default the model's own choice.
            speaks: load the parts that speak, too.

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
            speaks=speaks,
        )
        self.model, self.device, self.dtype = loaded.model, loaded.device, loaded.model.dtype
        self.rounding = rounding_of(self.model)
        config = self.model.config
        commit = revision or getattr(config, "_commit_hash", None) or "local"
        if isinstance(self.model, CTCSpeechLM):
            commit = self.model.identity
        self.name = name = f"{pretrained}+{peft}" if peft else pretrained
        if long_audio not in LONG_AUDIO:
            raise AdapterError(f"long_audio={long_audio}: give {' or '.join(LONG_AUDIO)}")
        ears, chunk = loaded.processor, long_audio == "chunk"
        self._renderer = Renderer(name, loaded.tokenizer, ears, chunk=chunk)
        settings = describe(self.tokenizer, *(ears.parts if ears else ()), long_audio)
        self._speaker = speaker_of(loaded.whole, name, loaded.speaker, voice)
        settings += [self._speaker.identity] if self._speaker else []
        self.speaks = self._speaker is not None
        if hasattr(self.model, "peft_config"):
            settings.append(repr(self.model.peft_config))
        weights = checksum(loaded.whole, *settings)
        kind = f"{type(loaded.whole).__name__}:{self.dtype}"
        self.fingerprint = f"{name}@{commit}:{kind}:{weights}"
        audio_token_id = ears.audio_token_id if ears else None
        self._lm = CausalLM(self.model, self._pad_token_id, audio_token_id)
        front: AudioFront | None = None
        if audio_cache:
            if ears is None:
                raise AdapterError(f"audio_cache: {name} only reads text; leave audio_cache out")
            if not loaded.family.keeps_audio:
                raise AdapterError(
                    f"audio_cache: {name}: its encodings cannot be kept (docs/models.md); leave "
                    "audio_cache out"
                )
            tower = loaded.family.tower
            front = AudioFront(self.model, ears.extractor, audio_cache, audio_cache_gb, tower)
        self._front, self.keeps_audio = front, front is not None
        self._family = loaded.family
        self._inputs = ModelInputs(self.model, audio_token_id, front, loaded.family)
        hearing = self._renderer.hearing
        if chunk and not (hearing and hearing.several):
            takes = "takes one recording a prompt" if hearing else "only reads text"
            raise AdapterError(f"long_audio=chunk: {name} {takes}; leave long_audio out")
        log.info(self._renderer)
        if hearing:
            self.embeds_audio = True
            self.sampling_rate = hearing.sampling_rate
            self.shortest_audio = hearing.shortest
            self.longest_audio = None if chunk else hearing.longest
            self.hears_several = hearing.several
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
        """The model's processor, of transformers; None for a model that only reads."""
        return self._renderer.processor and self._renderer.processor.processor

    @property
    def chat_template(self) -> str | None:
        """The template of the processor, else that of the tokenizer."""
        return self._renderer.chat_template

    @cached_property
    def max_length(self) -> int:  # type: ignore[override]
        """Tokens that the model can attend to; its configuration says it."""
        config = self.model.config.get_text_config()
        found = next((n for name in LENGTHS if (n := getattr(config, name, None))), 2048)
        return min(found, self._family.most_positions or found)

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
        first = self._renderer.first_id
        return [self._inputs.place(prefix, first, kept=self.keeps_audio) for prefix in prefixes]

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the prompt; see `Renderer.encode`."""
        return self._renderer.encode(prompt, continuation)

    @torch.inference_mode()
    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score by one full forward over right-padded rows of prefix and continuation."""

        def run(chosen: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
            prefixes = [prefix for prefix, _ in chosen]
            fitted = [(self._cut(p, self.max_length - len(ids) + 1), ids) for p, ids in chosen]
            features = self._inputs.features(prefixes, kept=self.keeps_audio)
            answers = score_rows(self._lm, fitted, features)
            return [Score(*a, p.transcripts) for a, p in zip(answers, prefixes, strict=True)]

        return by_modality(self.model, self._family, [prefix for prefix, _ in rows], rows, run)

    @torch.inference_mode()
    def score_groups(
        self, groups: Sequence[Group], most_positions: int | None = None
    ) -> list[list[Score]]:
        """Score continuations after prefixes that are read once."""

        def run(chosen: Sequence[Group]) -> list[list[Score]]:
            prefixes = [group.prefix for group in chosen]
            features = self._inputs.features(prefixes, kept=self.keeps_audio)
            return score_groups(self._lm, chosen, features, most_positions)

        return by_modality(
            self.model, self._family, [group.prefix for group in groups], groups, run
        )

    @torch.inference_mode()
    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[Reply]:
        """Continue left-padded prefixes with the model's own `generate`."""
        heard = any(prefix.features for prefix in prefixes)
        alone = self.speaks or (heard and not self._family.batches_audio)

        def run(chosen: Sequence[Prefix]) -> list[Reply]:
            batches = [[prefix] for prefix in chosen] if alone else [chosen]
            return [reply for batch in batches for reply in self._generate(batch, how)]

        return by_modality(self.model, self._family, prefixes, prefixes, run)

    def _generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[Reply]:
        rows = [self._cut(prefix, self.max_length - how.max_new_tokens) for prefix in prefixes]
        inputs = self._inputs.raw(prefixes)

        def write(generate: Generate) -> list[str]:
            return continue_rows(generate, self._lm, self.tokenizer, rows, how, **inputs)

        if self._speaker:
            return [self._speaker.reply(lambda generate: write(generate)[0])]
        # Some models' own `generate` only adds a switch, which is set already.
        own = not self._family.switched_adapter
        plain = self.model.generate if own else partial(GenerationMixin.generate, self.model)
        return [Reply(text) for text in write(plain)]

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the model's own template."""
        return self._renderer.chat(messages, add_generation_prompt=add_generation_prompt)

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
        """What fills rows up: masked everywhere, but never what stands for audio."""
        ears = self._renderer.processor
        candidates = (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0, 1)
        taken = (None, ears.audio_token_id if ears else None)
        return next(id_ for id_ in candidates if isinstance(id_, int) and id_ not in taken)
