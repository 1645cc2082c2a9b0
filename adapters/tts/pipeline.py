"""Text-to-speech models of transformers, CSM among them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import transformers

from s2s_tasks.adapters.contract import AdapterError
from s2s_tasks.adapters.fingerprint import checksum
from s2s_tasks.adapters.tts.engine import Engine, Speech, named
from s2s_tasks.adapters.whole import refuse_missing_folder

CSM_FRAMES = 1125
"""90 s of 12.5 frames, where its authors' own code stops; the pipeline would stop after 20."""


class Pipeline(Engine):
    """Whatever transformers' pipeline `text-to-audio` takes.

    CSM (https://huggingface.co/docs/transformers/model_doc/csm) is one of these: it says the text
    that it is given, after `[0]`, the number of who speaks, and answers nothing. It could hear what
    was said before, too; here it does not.
    """

    def __init__(
        self, tts: str, voice: str | None, speed: str | float | None, device: torch.device
    ) -> None:
        """Load a folder or a hub model.

        Raises:
            AdapterError: when it cannot be loaded, or takes no voice or no speed.
        """
        refuse_missing_folder("tts", tts)
        try:
            self._pipeline = transformers.pipeline("text-to-audio", model=tts, device=device)
        except (OSError, ValueError, KeyError, ImportError) as error:
            raise AdapterError(
                f"tts={tts} cannot be loaded: {str(error).strip()}\nGive a folder or a hub id of a "
                "text-to-speech model that transformers knows (facebook/mms-tts-eng), kokoro, "
                'piper, or a command such as "espeak-ng -w {output} {text}"'
            ) from error
        self.name = named(tts, voice, speed)
        self._model = model = self._pipeline.model
        self._kind = model.config.model_type
        self._options: dict[str, Any] = {}
        self._before = ""
        self._take_voice(voice)
        self._take_speed(speed)
        tokenizer = getattr(self._pipeline, "tokenizer", None)
        words = repr(sorted(tokenizer.get_vocab().items())) if tokenizer else ""
        generation = repr(getattr(model, "generation_config", None))
        self.fingerprint = f"{self.name}:{checksum(model, words, generation)}"

    def say(self, text: str) -> Speech:
        """Run the pipeline."""
        said = self._pipeline(self._before + text, **self._options)
        waveform = np.asarray(said["audio"], np.float32)
        if waveform.ndim > 1:  # channels stand first
            waveform = waveform.mean(axis=0)
        return Speech(waveform.reshape(-1), int(said["sampling_rate"]))

    def _take_voice(self, voice: str | None) -> None:
        speakers = getattr(self._model.config, "num_speakers", 1)
        if self._kind == "csm":
            self._before = f"[{voice or 0}]"
            self._options["generate_kwargs"] = {"max_new_tokens": CSM_FRAMES}
        elif voice is None:
            return
        elif self._kind == "vits" and speakers > 1:
            if not voice.isdigit() or int(voice) >= speakers:
                raise AdapterError(f"voice={voice}: {self.name} has 0 to {speakers - 1}")
            self._options["forward_params"] = {"speaker_id": int(voice)}
        else:
            raise AdapterError(f"voice={voice}: {self.name} has one voice; leave voice out")

    def _take_speed(self, speed: str | float | None) -> None:
        if speed is None:
            return
        if not hasattr(self._model, "speaking_rate"):
            raise AdapterError(f"speed={speed}: {self.name} takes no speed; leave speed out")
        self._model.speaking_rate = to_factor(speed)


def to_factor(speed: str | float) -> float:
    """Return a speed as a factor of the usual one.

    Raises:
        AdapterError: when it is not a positive number.
    """
    try:
        factor = float(speed)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise AdapterError(f"speed={speed}: give a number above 0; 1 is as usual, 2 twice as fast")
    return factor
