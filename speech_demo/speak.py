"""Speak the sentences: a 16 kHz FLAC file for each line of sentences.txt.

Needs flite (a Debian package) and what mini_set/requirements.txt lists. What is there already is
kept: after an interruption run it again.
"""

import hashlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray
from tqdm import tqdm
from voices import FLITE, KOKORO

SEED = 1
RATE = 16_000  # Hz
KOKORO_SHARE = 0.13  # of the lines: it takes twenty times as long as flite
SPEEDS = (0.85, 1.2)  # times the voice's own
THREADS = 2


@dataclass(frozen=True)
class Line:
    """A line of sentences.txt and how it is spoken."""

    number: int
    text: str
    engine: str  # "kokoro" or "flite"
    voice: str
    speed: float

    @property
    def file(self) -> str:
        """Its recording, below the folder of the speech; another text or voice, another name."""
        key = f"{self.text}|{self.engine}|{self.voice}|{self.speed}"
        return f"{self.number:05d}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.flac"


def cast(texts: Sequence[str]) -> list[Line]:
    """Give every text an engine, a voice and a speed: the same in every run."""
    draw = random.Random(SEED)
    lines = []
    for number, text in enumerate(texts):
        engine = "kokoro" if draw.random() < KOKORO_SHARE else "flite"
        voice = draw.choice(KOKORO if engine == "kokoro" else FLITE)
        speed = round(draw.uniform(*SPEEDS), 3)
        lines.append(Line(number, text, engine, voice, speed))
    return lines


def speak(lines: Sequence[Line], folder: Path, kokoro_voices: Path) -> None:
    """Write the recordings that are not there yet.

    Raises:
        FileNotFoundError: when flite is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [line for line in lines if not (folder / line.file).is_file()]
    for engine in ("flite", "kokoro"):
        todo = [line for line in missing if line.engine == engine]
        if not todo:
            continue
        spoken = _flite(todo) if engine == "flite" else _kokoro(todo, kokoro_voices)
        progress = tqdm(spoken, total=len(todo), desc=engine, unit="line")
        for line, (samples, rate) in zip(todo, progress, strict=True):
            new = folder / f"{line.file}.new"
            samples = soxr.resample(samples, rate, RATE)
            soundfile.write(new, samples / np.abs(samples).max() * 0.7, RATE, format="FLAC")
            new.rename(folder / line.file)


def _flite(lines: Sequence[Line]) -> Iterator[tuple[NDArray[np.float32], int]]:
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(THREADS) as pool:

        def say(line: Line) -> tuple[NDArray[np.float32], int]:
            path = Path(work) / f"{line.number}.wav"
            stretch = f"duration_stretch={1 / line.speed}"
            command = ["flite", "-voice", line.voice, "--setf", stretch, "-t", line.text]
            subprocess.run([*command, "-o", str(path)], check=True)
            samples, rate = soundfile.read(path, dtype="float32")
            path.unlink()
            return samples, rate

        yield from pool.map(say, lines)


def _kokoro(lines: Sequence[Line], voices: Path) -> Iterator[tuple[NDArray[np.float32], int]]:
    sys.path.append(str(Path(__file__).parents[1] / "mini_set"))  # one Kokoro for both
    from speaker import Speaker

    yield from Speaker(None, voices, THREADS).speak(lines)
