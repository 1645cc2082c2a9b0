"""`CascadeAdapter`: an ASR writes down the speech, a text LM answers, a TTS may say the answer."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import transformers
from lm_eval.models.utils import postprocess_generated_text

from s2s_tasks.adapters.contract import (
    Adapter,
    AdapterError,
    Generation,
    Group,
    Message,
    Prefix,
    Reply,
)
from s2s_tasks.adapters.fingerprint import checksum, describe
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.adapters.placing import parse_dtype
from s2s_tasks.adapters.tts.choosing import load_engine
from s2s_tasks.adapters.whole import refuse_missing_folder
from s2s_tasks.audio import Audio, Waveform
from s2s_tasks.prompt import Continuation, Prompt
from s2s_tasks.score import Score

log = logging.getLogger(__name__)


class CascadeAdapter(Adapter):
    """Any ASR of transformers before any causal LM: what recognition errors alone cost."""

    def __init__(
        self,
        asr: str,
        lm: str,
        *,
        device: str | None = None,
        dtype: str = "auto",
        asr_dtype: str = "float32",
        asr_batch_size: int = 8,
        asr_num_beams: int = 1,
        language: str | None = None,
        trust_remote_code: bool = False,
        tts: str | None = None,
        voice: str | None = None,
        speed: str | float | None = None,
        speaks: bool = False,
    ) -> None:
        """Load all parts.

        Args:
            asr: folder or hub id for transformers' speech recognition pipeline.
            lm: folder or hub id of a causal LM.
            device: for all parts.
            dtype: of the LM.
            asr_dtype: of the ASR.
            asr_batch_size: recordings heard at once, by ASRs that hear a fixed window.
            asr_num_beams: hypotheses that the ASR follows, where it generates; 1 is greedy.
            language: spoken language, for ASRs that take one. When absent it is that which a
                recording is known to be in; `auto` lets the ASR find it.
            trust_remote_code: let the LM's repository bring its own code.
            tts: what says the replies; see `load_engine`. Without it they are only written.
            voice: of the TTS, by its own name.
            speed: of the TTS: a factor, or what a command takes.
            speaks: whether replies are to be said.

        Raises:
            AdapterError: when one cannot be loaded.
        """
        refuse_missing_folder("asr", asr)
        if tts is None and (voice is not None or speed is not None):
            raise AdapterError("voice and speed are a TTS's: add tts=…, or leave them out")
        if tts and not speaks:
            raise AdapterError(f"tts={tts}: name the folder for what it says: speech=DIR")
        self.name = f"{asr}+{lm}"
        self.lm = HFAdapter(lm, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
        self.device, self.rounding = self.lm.device, self.lm.rounding
        self.max_length = self.lm.max_length
        try:
            self._pipeline = transformers.pipeline(
                "automatic-speech-recognition",
                model=asr,
                dtype=parse_dtype(asr_dtype),
                device=self.device,
            )
        except (OSError, ValueError, KeyError) as error:
            raise AdapterError(
                f"asr={asr} cannot be loaded: {str(error).strip()}\nGive a folder or a hub id "
                "of a speech recognition model that transformers knows, e.g. openai/whisper-base"
            ) from error
        extractor = self._pipeline.feature_extractor
        self.sampling_rate = self._asr_rate = extractor.sampling_rate
        self.longest_audio = getattr(extractor, "chunk_length", None)
        settings = [
            *describe(self._pipeline.tokenizer),
            extractor.to_json_string(),
            repr(getattr(self._pipeline.model, "generation_config", None)),
        ]
        weights = checksum(self._pipeline.model, *settings)
        hearing = f"{asr}:{weights}:{asr_dtype}:{asr_num_beams}:{language}"
        self.fingerprint = f"{hearing}+{self.lm.fingerprint}"
        self._tts = load_engine(tts, voice, speed, self.device) if tts else None
        if self._tts:
            self.speaks = True
            self.name += f"+{self._tts.name}"
            self.fingerprint += f"+{self._tts.fingerprint}"
        # Only a fixed window (Whisper's) makes a batch harmless: elsewhere padding is heard.
        self._batch_size = asr_batch_size if self.longest_audio else 1
        # The pipeline's own default is five beams, at five times the cost.
        self._num_beams = asr_num_beams
        self._language = language
        generation = getattr(self._pipeline.model, "generation_config", None)
        self._takes_language = bool(getattr(generation, "lang_to_id", None))
        if language not in (None, "auto") and not self._takes_language:
            raise AdapterError(f"language={language}: {asr} takes no language; leave it out")
        self._transcripts: dict[tuple[str, str | None], str] = {}

    @property
    def tokenizer(self) -> Any:
        """The LM's tokenizer."""
        return self.lm.tokenizer

    @property
    def chat_template(self) -> str | None:
        """The LM's chat template."""
        return self.lm.chat_template

    def prepare(self, prompt: Prompt) -> dict[str, Waveform]:
        """Decode what has not been heard yet, in any thread."""
        rate = self._asr_rate
        new = [audio for audio in prompt.audio if self._identity(audio) not in self._transcripts]
        return {audio.sha256: audio.load(rate) for audio in new}

    def render(
        self, prompts: Sequence[Prompt], prepared: Sequence[Mapping[str, Waveform]] | None = None
    ) -> list[Prefix]:
        """Put the transcripts where the recordings were."""
        decoded = {k: v for waveforms in prepared or () for k, v in waveforms.items()}
        self._hear([audio for prompt in prompts for audio in prompt.audio], decoded)
        written = self.lm.render([self._write(prompt) for prompt in prompts])
        return [
            Prefix(
                prefix.ids,
                transcripts=tuple(self._transcripts[self._identity(a)] for a in prompt.audio),
            )
            for prefix, prompt in zip(written, prompts, strict=True)
        ]

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the transcript."""
        self._hear(prompt.audio, {})
        return self.lm.encode(self._write(prompt), continuation)

    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score with the LM."""
        return self.lm.score(rows)

    def score_groups(
        self, groups: Sequence[Group], most_positions: int | None = None
    ) -> list[list[Score]]:
        """Score with the LM."""
        return self.lm.score_groups(groups, most_positions)

    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[Reply]:
        """Continue with the LM; the TTS says what of it comes before where it is to end."""
        replies = self.lm.generate(prefixes, how)
        if self._tts is None:
            return replies
        texts = (postprocess_generated_text(reply, list(how.until), None) for reply in replies)
        return [self._tts.reply(text) for text in texts]

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the LM's template."""
        return self.lm.chat(messages, add_generation_prompt=add_generation_prompt)

    def _write(self, prompt: Prompt) -> Prompt:
        return Prompt.of(
            *(
                self._transcripts[self._identity(segment)]
                if isinstance(segment, Audio)
                else segment
                for segment in prompt.segments
            )
        )

    def _hear(self, recordings: Sequence[Audio], decoded: Mapping[str, Waveform]) -> None:
        """Transcribe what has not been heard yet; a recording is heard once a run."""
        identities = {self._identity(audio): audio for audio in recordings}
        new = {key: audio for key, audio in identities.items() if key not in self._transcripts}
        for language in dict.fromkeys(language for _, language in new):
            spoken = [audio for key, audio in new.items() if key[1] == language]
            sounds = [
                decoded[a.sha256] if a.sha256 in decoded else a.load(self._asr_rate) for a in spoken
            ]
            for audio, text in zip(spoken, self._recognize(sounds, language), strict=True):
                self._transcripts[self._identity(audio)] = text

    def _identity(self, audio: Audio) -> tuple[str, str | None]:
        """What a transcript belongs to: the content, and the language it is listened to in."""
        return audio.sha256, self._language_of(audio)

    def _language_of(self, audio: Audio) -> str | None:
        if not self._takes_language or self._language == "auto":
            return None
        return self._language or audio.language

    def _recognize(self, sounds: Sequence[Waveform], language: str | None) -> list[str]:
        options: dict[str, Any] = {"num_beams": self._num_beams}
        if language:
            options["language"] = language
        heard = self._pipeline(
            [{"raw": sound, "sampling_rate": self._asr_rate} for sound in sounds],
            batch_size=self._batch_size,
            generate_kwargs=options,
        )
        return [result["text"].strip() for result in heard]
