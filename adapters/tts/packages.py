"""Kokoro and Piper, where their packages are installed."""

from __future__ import annotations

import hashlib
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.fingerprint import checksum
from s2s_tasks.adapters.speaking import explain
from s2s_tasks.adapters.tts.engine import Engine, Speech, named
from s2s_tasks.adapters.tts.pipeline import to_factor
from s2s_tasks.audio import Waveform
from s2s_tasks.errors import S2STasksError

KOKORO_PHONEMES = 510
"""Kokoro drops what a piece has beyond these, and tells nobody."""
KOKORO_CUTS = r"\n+|(?<=[。！？；।])"
"""Where texts are cut before Kokoro does, which knows no stops but those of Latin script."""


class Kokoro(Engine):
    """https://github.com/hexgrad/kokoro. A voice's first letter is its language: `af_heart`."""

    def __init__(self, voice: str | None, speed: str | float | None, device: torch.device) -> None:
        """Load the model; the hub is asked for what is not in its cache.

        Raises:
            AdapterError: without the package, and when model or voice cannot be loaded.
        """
        package = _require("kokoro", "kokoro")
        self._voice = voice or "af_heart"
        self._speed = 1.0 if speed is None else to_factor(speed)
        try:
            self._pipeline = package.KPipeline(
                lang_code=Path(self._voice).name[:1],
                repo_id="hexgrad/Kokoro-82M",
                device=str(device),
            )
            style = self._pipeline.load_voice(self._voice)
        # Each language has packages of its own, and spaCy exits where it cannot get its model.
        except (Exception, SystemExit) as error:
            raise AdapterError(
                f"tts=kokoro,voice={self._voice} cannot be loaded: {explain(error)}\nGive a voice "
                "of hexgrad/Kokoro-82M or a .pt file; its first letter is its language. English "
                "needs spaCy's en_core_web_sm, Japanese misaki[ja], Chinese misaki[zh]"
            ) from error
        self.name = named("kokoro", self._voice, speed)
        model = self._pipeline.model
        digest = hashlib.sha256(style.numpy().tobytes()).hexdigest()
        settings = (digest, repr(model.vocab), package.__version__)
        self.fingerprint = f"{self.name}:{checksum(model, *settings)}"

    def say(self, text: str) -> Speech:
        """Say it piece by piece, as the pipeline cuts it.

        Raises:
            S2STasksError: when Kokoro would leave the end of a piece unsaid.
        """
        options = {"voice": self._voice, "speed": self._speed, "split_pattern": KOKORO_CUTS}
        pieces = list(self._pipeline(text, **options))
        # English is cut to fit.
        if self._pipeline.lang_code not in "ab":
            for piece in pieces:
                if len(piece.phonemes) >= KOKORO_PHONEMES:
                    raise S2STasksError(f"Kokoro cannot say all of: {piece.graphemes}")
        return Speech(_join([piece.audio.numpy() for piece in pieces]), 24_000)


class Piper(Engine):
    """https://github.com/OHF-Voice/piper1-gpl. A voice is a file, .onnx.json beside .onnx."""

    def __init__(self, voice: str | None, speed: str | float | None) -> None:
        """Load a voice.

        Raises:
            AdapterError: without the package, and when the voice cannot be loaded.
        """
        package = _require("piper", "piper-tts")
        if voice is None:
            raise AdapterError("tts=piper needs voice=…: the .onnx file of a Piper voice")
        factor = 1.0 if speed is None else to_factor(speed)
        self._set_seed = import_module("onnxruntime").set_seed
        self._load = partial(package.PiperVoice.load, voice)
        try:
            config = self._load().config
            with Path(voice).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        # onnxruntime raises what is no class of its own to name here.
        except Exception as error:
            raise AdapterError(f"tts=piper,voice={voice} cannot be loaded: {error}") from error
        self.name = named("piper", voice, speed)
        self.fingerprint = f"{self.name}:{digest}"
        # Piper's measure is how long a sound lasts, and a voice has its own.
        length = config.length_scale / factor
        self._settings = package.SynthesisConfig(length_scale=length)

    def say(self, text: str) -> Speech:
        """Say it sentence by sentence."""
        # A seed holds for what is loaded after it; what is loaded draws on from answer to answer.
        self._set_seed(torch.initial_seed() % 2**31)
        voice = self._load()
        pieces = list(voice.synthesize(text, syn_config=self._settings))
        return Speech(
            _join([piece.audio_float_array for piece in pieces]), voice.config.sample_rate
        )


def _join(pieces: list[Waveform]) -> Waveform:
    joined: Waveform = np.concatenate([np.zeros(0, np.float32), *pieces]).astype(np.float32)
    return joined


def _require(module: str, package: str) -> Any:
    if find_spec(module) is None:
        raise AdapterError(f"tts={module} needs the package {package}: pip install {package}")
    return import_module(module)
