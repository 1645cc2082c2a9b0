"""The English mini set as other people, rooms and mistakes would have it.

Each condition is a folder in the canonical form, which the benchmark's own tasks read: nothing but
the recordings of the contexts differs from the mini set.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import librosa
import numpy as np
import soundfile
from sound import Samples, babble, mix
from tqdm import tqdm

from s2s_tasks.audio import Audio, probe
from s2s_tasks.cache import file_key
from s2s_tasks.data.parquet import write_rows
from s2s_tasks.data.rows import Row
from s2s_tasks.data.sources import mini_rows

RATE = 16_000  # Hz
TALKERS = 6
SNRS = (20, 10, 5, 0, -5)  # dB
SPEEDS = (0.6, 0.8, 1.25, 1.6)  # times the speed of the mini set
Change = Callable[[int, Sequence[Row]], Samples]  # number of the row, all rows -> the context


def as_it_is(number: int, rows: Sequence[Row]) -> Samples:
    """The recording itself."""
    return _load(rows[number])


def in_babble(snr: float) -> Change:
    """Six people talk at once beside the speaker, in Mandarin: nothing they say is an answer."""
    others = mini_rows("zh_sstorycloze")

    def change(number: int, rows: Sequence[Row]) -> Samples:
        speech, draw = _load(rows[number]), np.random.default_rng([number])
        talkers = [_load(others[i]) for i in draw.choice(len(others), TALKERS, replace=False)]
        return mix(speech, babble(len(speech), talkers, draw), snr)

    return change


def at_speed(factor: float) -> Change:
    """Faster or slower at the same pitch."""
    return lambda number, rows: librosa.effects.time_stretch(_load(rows[number]), rate=factor)


def swapped(number: int, rows: Sequence[Row]) -> Samples:
    """The context of the question half the set away, so of another block."""
    other = rows[(number + len(rows) // 2) % len(rows)]
    assert other.pair_id != rows[number].pair_id
    return _load(other)


def by_piper(model: Path) -> Change:
    """Spoken again by Piper, an engine that training never heard; `model` is its ONNX file."""
    from piper import PiperVoice, SynthesisConfig

    voice = PiperVoice.load(model)
    plain = SynthesisConfig(noise_scale=0, noise_w_scale=0)  # the same in every run

    def change(number: int, rows: Sequence[Row]) -> Samples:
        chunks = list(voice.synthesize(rows[number].context, plain))
        samples = np.concatenate([chunk.audio_float_array for chunk in chunks])
        return librosa.resample(samples, orig_sr=chunks[0].sample_rate, target_sr=RATE)

    return change


def conditions(piper: Path | None) -> dict[str, Change]:
    """Every condition by name; that of Piper only where its voice is at hand."""
    named = {"clean": as_it_is, "swapped": swapped}
    named |= {f"babble {snr} dB": in_babble(snr) for snr in SNRS}
    named |= {f"speed {speed}": at_speed(speed) for speed in SPEEDS}
    return named | ({"piper": by_piper(piper)} if piper else {})


def make(name: str, change: Change, folder: Path) -> Path:
    """Write the altered mini set, unless it is there; returns its folder."""
    source = Path(mini_rows("sstorycloze")[0].context_audio[0].path)
    folder = folder / file_key(source) / name.replace(" ", "_")
    table = folder / "sstorycloze.parquet"
    if not table.is_file():
        rows, recordings = mini_rows("sstorycloze"), folder / "recordings"
        recordings.mkdir(parents=True, exist_ok=True)
        altered = [
            replace(row, context_audio=(_write(recordings / f"{row.id}.wav", change(n, rows)),))
            for n, row in enumerate(tqdm(rows, desc=name, unit="context"))
        ]
        write_rows(table, altered, source=f"the mini set of s2s-tasks, {name}")
    return folder


def _load(row: Row) -> Samples:
    return row.context_audio[0].load(RATE)


def _write(path: Path, samples: Samples) -> Audio:
    # Floating point, because babble may go beyond full scale.
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    return probe(path)
