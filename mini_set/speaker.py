"""Kokoro at work: texts in, samples out, several clips at once."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol

import audio
import onnxruntime
import weights
from kokoro_onnx import Kokoro
from misaki.zh import ZHG2P

from s2s_tasks.cache import cache_folder


class Utterance(Protocol):
    """A text to be spoken, and how."""

    @property
    def text(self) -> str: ...  # noqa: D102

    @property
    def voice(self) -> str:
        """Kokoro's name of it, such as `af_heart`; the first letter says the language."""

    @property
    def speed(self) -> float:
        """1 is the voice's own."""


class Speaker:
    """Kokoro, with `threads` clips in the making at once, each computed by one thread.

    One thread a clip also makes the sums, and so the samples, the same in every run.
    """

    def __init__(self, folder: Path | None, archive: Path | None, threads: int) -> None:
        cache = cache_folder("kokoro")
        cache.mkdir(parents=True, exist_ok=True)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            weights.model(folder, cache / "model.onnx"), options, ["CPUExecutionProvider"]
        )
        npz = cache / "voices.npz"
        npz.write_bytes(weights.as_npz(weights.voices(folder, archive)).getvalue())
        self.kokoro = Kokoro.from_session(session, str(npz))
        self.mandarin = ZHG2P()
        self.threads = threads

    def speak(self, utterances: Sequence[Utterance]) -> Iterator[tuple[audio.Samples, int]]:
        """Samples and rate (Hz) of each utterance, in order."""
        phonemes = [self._phonemes(it) for it in utterances]  # espeak-ng wants one thread
        with ThreadPoolExecutor(self.threads) as pool:
            yield from pool.map(self._say, utterances, phonemes)

    def _phonemes(self, utterance: Utterance) -> str:
        if utterance.voice.startswith("z"):
            return self.mandarin(utterance.text)[0]
        lang = "en-gb" if utterance.voice.startswith("b") else "en-us"
        return self.kokoro.tokenizer.phonemize(utterance.text, lang)

    def _say(self, utterance: Utterance, phonemes: str) -> tuple[audio.Samples, int]:
        return self.kokoro.create(
            phonemes, utterance.voice, utterance.speed, is_phonemes=True, trim=False
        )
