"""How a judge hears a battle: recordings of one loudness and rate, and texts between them."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import soundfile

from s2s_tasks.arena.features import loudness
from s2s_tasks.arena.judges.contract import JudgeError
from s2s_tasks.arena.judges.prompt import Rubric
from s2s_tasks.arena.records import Instruction
from s2s_tasks.audio import Audio, Waveform, is_silent, probe

LOUDNESS = -23.0
"""LUFS, that of EBU R 128."""
PEAK = 10 ** (-1 / 20)
"""The highest sample, 1 dB below full scale."""
PAUSE = 1.0
"""Seconds of silence between recordings."""
PLACES = ("instruction", "first", "second")
"""What is heard, in order; also the names of spoken cues."""
_CUES = ("The instruction:", "The first answer:", "The second answer:")
_FORMAT = 1
"""Raised when the same recordings would be presented otherwise."""

Segment = str | Waveform


@dataclass(frozen=True)
class Presentation:
    """What stands around the recordings, and what is made of them."""

    rubric: Rubric
    sampling_rate: int = 16000
    together: bool = False
    """Whether all is one recording, for models that hear only one; else there are three."""
    cues: Path | None = None
    """Folder of `instruction.wav`, `first.wav` and `second.wav`, which announce what follows in
    one recording; by default texts do."""

    @cached_property
    def identity(self) -> str:
        """Eight digits that change with whatever the judge would be asked otherwise."""
        texts = (self.rubric.closing, self.rubric.opening(_NOTHING))
        return _digest([*texts, *self._settings()])[:8]

    def prompt_sha256(self, instruction: Instruction, first: Audio, second: Audio) -> str:
        """Return the hash of what the judge is asked: texts, hashes of recordings, presentation."""
        heard = [audio.sha256 for audio in (instruction.audio, first, second)]
        texts = (self.rubric.opening(instruction), self.rubric.closing)
        return _digest([*texts, *heard, *self._settings()])

    def segments(self, instruction: Instruction, first: Audio, second: Audio) -> list[Segment]:
        """Return texts and recordings `[frames]` at `sampling_rate`, in order.

        Raises:
            AudioError: when a recording cannot be read.
        """
        rate = self.sampling_rate
        question = equalise([instruction.audio.load(rate)], rate)
        answers = equalise([first.load(rate), second.load(rate)], rate)
        signals = [*question, *answers]
        opening, closing = self.rubric.opening(instruction), self.rubric.closing
        if self.together or self._spoken:
            text, joined = self._join(signals)
            return [f"{opening}\n\n{text}\n", joined, f"\n{closing}"]
        segments: list[Segment] = [f"{opening}\n"]
        for cue, signal in zip(_CUES, signals, strict=True):
            segments += [f"\n{cue}\n", with_pause(signal, rate)]
        return [*segments, f"\n\n{closing}"]

    @cached_property
    def _spoken(self) -> tuple[Audio, ...]:
        if self.cues is None:
            return ()
        missing = [f"{name}.wav" for name in PLACES if not (self.cues / f"{name}.wav").is_file()]
        if missing:
            raise JudgeError(f"{self.cues}: a folder of spoken cues needs {', '.join(missing)}")
        return tuple(probe(self.cues / f"{name}.wav") for name in PLACES)

    def _join(self, signals: Sequence[Waveform]) -> tuple[str, Waveform]:
        rate = self.sampling_rate
        if self._spoken:
            cues = [equalise([cue.load(rate)], rate)[0] for cue in self._spoken]
            pieces = [with_pause(s, rate) for pair in zip(cues, signals, strict=True) for s in pair]
            return "A voice says which of the three you hear next.", np.concatenate(pieces)
        pieces = [with_pause(signal, rate) for signal in signals]
        start, told = 0, []
        for cue, signal, piece in zip(_CUES, signals, pieces, strict=True):
            told.append(f"{cue} {start / rate:.1f} to {(start + len(signal)) / rate:.1f} s.")
            start += len(piece)
        return f"All three are in one recording. {' '.join(told)}", np.concatenate(pieces)

    def _settings(self) -> list[str]:
        settings = (_FORMAT, self.sampling_rate, self.together, LOUDNESS, PEAK, PAUSE, *_CUES)
        return [*map(str, settings), *(cue.sha256 for cue in self._spoken)]


def equalise(signals: Sequence[Waveform], sampling_rate: int) -> list[Waveform]:
    """Bring signals `[frames]` to one loudness: -23 LUFS, or as near as no peak allows more.

    All are made equally loud: where one's peaks would exceed `PEAK`, the others are turned down
    with it, and nothing is clipped. Silence stays as it is.
    """
    levels = [loudness(signal, sampling_rate) for signal in signals]
    heard = [(s, level) for s, level in zip(signals, levels, strict=True) if not is_silent(s)]
    highest = [level + 20 * np.log10(PEAK / np.abs(signal).max()) for signal, level in heard]
    target = min([LOUDNESS, *highest])
    return [
        signal if is_silent(signal) else (signal * 10 ** ((target - level) / 20)).astype(np.float32)
        for signal, level in zip(signals, levels, strict=True)
    ]


def with_pause(signal: Waveform, sampling_rate: int) -> Waveform:
    """Return a signal with `PAUSE` seconds of silence after it."""
    return np.concatenate([signal, np.zeros(round(PAUSE * sampling_rate), np.float32)])


def wav(signal: Waveform, sampling_rate: int) -> bytes:
    """Return a wav file of 16 bits."""
    file = io.BytesIO()
    soundfile.write(file, signal, sampling_rate, format="WAV", subtype="PCM_16")
    return file.getvalue()


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(parts)).encode()).hexdigest()


_NOTHING = Instruction("", Audio("", "", 1, 1, 1), "", "", "", "", 1, evaluation="…")
