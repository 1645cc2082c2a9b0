"""What the frozen encoder makes of the speech, kept on disk: one array of frames, cut into packs.

A pack is a few lines of one voice, with pauses between them, as long as the contexts of a
benchmark; most packs are made a little worse by noise, babble or a room.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray
from sound import Samples, babble, mix, reverberate, room, white
from speak import RATE, Line
from tqdm import tqdm
from transformers import WhisperFeatureExtractor

from s2s_tasks.adapters.ctc_speech_lm.modeling import encode

SEED = 2
SECONDS = (3.0, 22.0)  # of a pack, before the pauses
PAUSE = (0.15, 0.7)  # s between lines
MARGIN = (0.05, 0.3)  # s before and after
NOISE_SHARE, NOISE_SNR = 0.35, (10.0, 35.0)  # of the packs; dB
BABBLE_SHARE, BABBLE_SNR, TALKERS = 0.3, (3.0, 25.0), (3, 7)
ROOM_SHARE, ROOM_SECONDS = 0.3, (0.1, 0.5)
SHARD = 100  # packs a file: what an interruption may cost


@dataclass(frozen=True)
class Pack:
    """Some lines in a row: which, and where their features are."""

    lines: tuple[int, ...]
    text: str
    shard: int
    start: int  # frame of the shard
    frames: int  # at 50 Hz


def plan(lines: Sequence[Line], speech: Path) -> list[list[Line]]:
    """Which lines stand together in a pack."""
    draw = np.random.default_rng(SEED)
    groups: list[list[Line]] = []
    for voice in dict.fromkeys((line.engine, line.voice) for line in lines):
        room_left = 0.0
        for line in lines:
            if (line.engine, line.voice) != voice:
                continue
            seconds = soundfile.info(speech / line.file).duration
            if seconds > room_left:
                groups.append([])
                room_left = draw.uniform(*SECONDS)
            groups[-1].append(line)
            room_left -= seconds
    return [groups[index] for index in draw.permutation(len(groups))]


def make(lines: Sequence[Line], speech: Path, folder: Path, encoder: Any) -> list[Pack]:
    """Compute the features that are not there yet, and return the packs.

    Raises:
        ValueError: when the folder's features are of other speech, or made in another way.
    """
    folder.mkdir(parents=True, exist_ok=True)
    groups = plan(lines, speech)
    settings = (SEED, SECONDS, PAUSE, MARGIN, NOISE_SHARE, NOISE_SNR, BABBLE_SHARE, BABBLE_SNR)
    made_of = [settings, TALKERS, ROOM_SHARE, ROOM_SECONDS, [line.file for line in lines]]
    digest = hashlib.sha256(repr(made_of).encode()).hexdigest()
    stamp = folder / "digest"
    if stamp.is_file() and stamp.read_text() != digest:
        raise ValueError(f"{folder} holds the features of other speech; move it away")
    stamp.write_text(digest)
    extractor = WhisperFeatureExtractor(feature_size=encoder.config.num_mel_bins)
    packs: list[Pack] = []
    for shard in tqdm(range(-(-len(groups) // SHARD)), desc="features", unit="shard"):
        index = folder / f"{shard:04d}.json"
        if not index.is_file():
            here = groups[shard * SHARD : (shard + 1) * SHARD]
            made = list(_encode(here, shard, lines, speech, encoder, extractor))
            np.save(folder / f"{shard:04d}.npy", np.concatenate([array for _, array in made]))
            new = index.with_suffix(".new")
            new.write_text(json.dumps([asdict(pack) for pack, _ in made]), encoding="utf-8")
            new.rename(index)  # last, because it says that the shard is whole
        for entry in json.loads(index.read_text(encoding="utf-8")):
            packs.append(Pack(**entry | {"lines": tuple(entry["lines"])}))
    return packs


def open_shards(folder: Path) -> list[NDArray[np.float16]]:
    """The features as arrays that stay on disk: [frames, width] each."""
    return [np.load(path, mmap_mode="r") for path in sorted(folder.glob("*.npy"))]


@torch.inference_mode()
def _encode(
    groups: Sequence[Sequence[Line]],
    shard: int,
    lines: Sequence[Line],
    speech: Path,
    encoder: Any,
    extractor: WhisperFeatureExtractor,
) -> Iterator[tuple[Pack, NDArray[np.float16]]]:
    draw = np.random.default_rng([SEED, shard])
    start = 0
    for group in groups:
        clean = _join([_read(speech, line) for line in group], draw)
        samples = _worsen(clean, lines, speech, draw)
        spectrogram = extractor(
            samples, sampling_rate=RATE, padding="longest", truncation=False, return_tensors="pt"
        ).input_features[0]
        hidden = encode(encoder, spectrogram).half().numpy()
        text = " ".join(line.text for line in group)
        numbers = tuple(line.number for line in group)
        yield Pack(numbers, text, shard, start, len(hidden)), hidden
        start += len(hidden)


def _read(speech: Path, line: Line) -> Samples:
    samples, rate = soundfile.read(speech / line.file, dtype="float32")
    assert rate == RATE
    return samples


def _silence(seconds: float) -> Samples:
    return np.zeros(round(seconds * RATE), np.float32)


def _join(recordings: Sequence[Samples], draw: np.random.Generator) -> Samples:
    pieces = [_silence(draw.uniform(*MARGIN))]
    for number, samples in enumerate(recordings):
        pieces += [_silence(draw.uniform(*PAUSE)), samples] if number else [samples]
    return np.concatenate([*pieces, _silence(draw.uniform(*MARGIN))])


def _worsen(
    samples: Samples, lines: Sequence[Line], speech: Path, draw: np.random.Generator
) -> Samples:
    if draw.random() < ROOM_SHARE:
        samples = reverberate(samples, room(draw.uniform(*ROOM_SECONDS), RATE, draw))
    kind = draw.random()
    if kind < NOISE_SHARE:
        return mix(samples, white(len(samples), draw), draw.uniform(*NOISE_SNR))
    if kind < NOISE_SHARE + BABBLE_SHARE:
        talkers = draw.choice(len(lines), draw.integers(*TALKERS), replace=False)
        voices = [_read(speech, lines[index]) for index in talkers]
        return mix(samples, babble(len(samples), voices, draw), draw.uniform(*BABBLE_SNR))
    return samples
