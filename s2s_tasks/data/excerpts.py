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
def excerpts(seconds: float, count: int = 2) -> Iterator[list[Audio]]:
    """Lend the openings of different stories of the mini set, each at most so many seconds long."""
    spoken = [row.context_audio[0] for row in mini_rows(SET)[:count]]
    with TemporaryDirectory(prefix="s2s-tasks-") as folder:
        handles = []
        for number, audio in enumerate(spoken):
            path = Path(folder) / f"{number}.wav"
            signal = audio.load(audio.sampling_rate)
            soundfile.write(path, signal[: int(seconds * audio.sampling_rate)], audio.sampling_rate)
            handles.append(probe(path))
        yield handles
