"""Kokoro and Piper, where their packages are installed."""

from __future__ import annotations

import hashlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.tts.engine import Engine, Speech, named
from s2s_tasks.adapters.tts.pipeline import to_factor
from s2s_tasks.audio import Waveform


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
        repository = "hexgrad/Kokoro-82M"
        try:
            self._pipeline = package.KPipeline(
                lang_code=Path(self._voice).name[0], repo_id=repository, device=str(device)
            )
            self._pipeline.load_voice(self._voice)
        except (OSError, ImportError, RuntimeError, AssertionError) as error:
            raise AdapterError(
                f"tts=kokoro,voice={self._voice} cannot be loaded: {error}"
            ) from error
        self.name = named("kokoro", self._voice, speed)
        self.fingerprint = f"{self.name}:{repository}:{package.__version__}"

    def say(self, text: str) -> Speech:
        """Say it piece by piece, as the pipeline cuts it."""
        pieces = self._pipeline(text, voice=self._voice, speed=self._speed)
        return Speech(_join([piece.audio.cpu().numpy() for piece in pieces]), 24_000)


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
        try:
            self._voice = package.PiperVoice.load(voice)
            with Path(voice).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
        # onnxruntime raises what is no class of its own to name here.
        except Exception as error:
            raise AdapterError(f"tts=piper,voice={voice} cannot be loaded: {error}") from error
        self.name = named("piper", voice, speed)
        self.fingerprint = f"{self.name}:{digest}"
        # Piper's measure is how long a sound lasts, and a voice has its own.
        length = self._voice.config.length_scale / factor
        self._settings = package.SynthesisConfig(length_scale=length)

    def say(self, text: str) -> Speech:
        """Say it sentence by sentence."""
        pieces = list(self._voice.synthesize(text, syn_config=self._settings))
        return Speech(
            _join([piece.audio_float_array for piece in pieces]),
            self._voice.config.sample_rate,
        )


def _join(pieces: list[Waveform]) -> Waveform:
    joined: Waveform = np.concatenate([np.zeros(0, np.float32), *pieces]).astype(np.float32)
    return joined


def _require(module: str, package: str) -> Any:
    if find_spec(module) is None:
        raise AdapterError(f"tts={module} needs the package {package}: pip install {package}")
    return import_module(module)
