"""`CascadeAdapter`: an ASR writes down the speech, a text LM answers for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
import transformers

from s2s_tasks.adapters.contract import Adapter, AdapterError, Generation, Message, Prefix
from s2s_tasks.adapters.hf import HFAdapter
from s2s_tasks.audio import Audio
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
        language: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        """Load both halves.

        Args:
            asr: folder or hub id for transformers' speech recognition pipeline.
            lm: folder or hub id of a causal LM.
            device: for both halves.
            dtype: of the LM.
            asr_dtype: of the ASR.
            asr_batch_size: recordings heard at once, by ASRs that hear a fixed window.
            language: spoken language, for ASRs that take one; found by the ASR when absent.
            trust_remote_code: let the LM's repository bring its own code.

        Raises:
            AdapterError: when one cannot be loaded.
        """
        self.lm = HFAdapter(lm, device=device, dtype=dtype, trust_remote_code=trust_remote_code)
        self.device = self.lm.device
        self.max_length = self.lm.max_length
        try:
            self._pipeline = transformers.pipeline(
                "automatic-speech-recognition",
                model=asr,
                dtype=getattr(torch, asr_dtype),
                device=self.device,
            )
        except (OSError, ValueError, KeyError) as error:
            raise AdapterError(
                f"asr={asr} cannot be loaded: {str(error).strip()}\nGive a folder or a hub id "
                "of a speech recognition model that transformers knows, e.g. openai/whisper-base"
            ) from error
        extractor = self._pipeline.feature_extractor
        self.sampling_rate = extractor.sampling_rate
        self.longest_audio = getattr(extractor, "chunk_length", None)
        self.fingerprint = f"{asr}:{asr_dtype}:{language or 'auto'}+{self.lm.fingerprint}"
        # Only a fixed window (Whisper's) makes a batch harmless: elsewhere padding is heard.
        self._batch_size = asr_batch_size if self.longest_audio else 1
        self._options: dict[str, Any] = {"language": language} if language else {}
        self._transcripts: dict[str, str] = {}

    @property
    def tokenizer(self) -> Any:
        """The LM's tokenizer."""
        return self.lm.tokenizer

    def render(self, prompts: Sequence[Prompt]) -> list[Prefix]:
        """Put the transcripts where the recordings were."""
        self._hear([audio for prompt in prompts for audio in prompt.audio])
        written = self.lm.render([self._write(prompt) for prompt in prompts])
        return [
            Prefix(prefix.ids, transcripts=tuple(self._transcripts[a.sha256] for a in prompt.audio))
            for prefix, prompt in zip(written, prompts, strict=True)
        ]

    def encode(self, prompt: Prompt, continuation: Continuation) -> list[int]:
        """Tokenize a continuation as it follows the transcript."""
        self._hear(prompt.audio)
        return self.lm.encode(self._write(prompt), continuation)

    def score(self, rows: Sequence[tuple[Prefix, Sequence[int]]]) -> list[Score]:
        """Score with the LM."""
        return self.lm.score(rows)

    def generate(self, prefixes: Sequence[Prefix], how: Generation) -> list[str]:
        """Continue with the LM."""
        return self.lm.generate(prefixes, how)

    def chat(self, messages: Sequence[Message], *, add_generation_prompt: bool) -> str:
        """Render a conversation with the LM's template."""
        return self.lm.chat(messages, add_generation_prompt=add_generation_prompt)

    def _write(self, prompt: Prompt) -> Prompt:
        return Prompt.of(
            *(
                self._transcripts[segment.sha256] if isinstance(segment, Audio) else segment
                for segment in prompt.segments
            )
        )

    def _hear(self, recordings: Sequence[Audio]) -> None:
        """Transcribe what has not been heard yet; a recording is heard once a run."""
        new = {a.sha256: a for a in recordings if a.sha256 not in self._transcripts}
        if not new:
            return
        rate = self.sampling_rate
        assert rate is not None
        heard = self._pipeline(
            [{"raw": audio.load(rate), "sampling_rate": rate} for audio in new.values()],
            batch_size=self._batch_size,
            generate_kwargs=self._options,
        )
        for sha256, result in zip(new, heard, strict=True):
            self._transcripts[sha256] = result["text"].strip()
