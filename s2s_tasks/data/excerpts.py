"""Short pieces of real speech, to try a model with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import soundfile

from s2s_tasks.audio import Audio, probe
from s2s_tasks.data.sources import mini_rows

SET = "sstorycloze"


@contextmanager
def excerpts(*seconds: float) -> Iterator[list[Audio]]:
    """Lend the openings of different stories of the mini set, at most so many seconds long each."""
    spoken = [row.context_audio[0] for row in mini_rows(SET)[: len(seconds)]]
    with TemporaryDirectory(prefix="s2s-tasks-") as folder:
        handles = []
        for number, (audio, length) in enumerate(zip(spoken, seconds, strict=True)):
            path = Path(folder) / f"{number}.wav"
            signal = audio.load(audio.sampling_rate)
            soundfile.write(path, signal[: int(length * audio.sampling_rate)], audio.sampling_rate)
            handles.append(probe(path))
        yield handles
