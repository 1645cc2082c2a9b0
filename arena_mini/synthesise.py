"""Speak the mini set of the arena: an Ogg/Opus file for every recording, and a manifest.

    npm pack kokoro-js@1.2.1
    PYTHONPATH=mini_set python arena_mini/synthesise.py OUT --voices kokoro-js-1.2.1.tgz

The voices and their weights are those of mini_set/. What is there already, said in the same way, is
kept. `OUT/manifest.jsonl` has one line a recording, as mini_set/check_speech.py reads it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import audio  # of mini_set, like the next
import delivery
import numpy as np
from items import HERE, Clip, clips
from speaker import Speaker
from tqdm import tqdm

GAP = 0.04
"""Seconds of silence between pieces that belong together."""
BIT_RATE = 28_000
"""Higher than for neutral speech: breath and rain need it."""


@dataclass(frozen=True)
class Utterance:
    """What the synthesiser is asked for."""

    text: str
    voice: str
    speed: float


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--weights", type=Path, help="folder with onnx/ and voices/")
    parser.add_argument("--voices", type=Path, help="kokoro-js-1.2.1.tgz")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    audio.BIT_RATE = BIT_RATE
    deliveries = delivery.read(HERE / "deliveries.yaml")
    path = given.out / "manifest.jsonl"
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    old = {entry["id"]: entry for entry in map(json.loads, lines)}
    wanted = list(clips())
    how = {clip.id: _how(clip, deliveries) for clip in wanted}
    new = [clip for clip in wanted if old.get(clip.id, {}).get("how") != how[clip.id]]
    if new:
        speaker = Speaker(given.weights, given.voices, given.threads)
        for clip in tqdm(new, unit="clip"):
            samples, rate = speak(clip, speaker, deliveries)
            file = given.out / f"{clip.id}.ogg"
            audio.write(file, samples, rate)
            old[clip.id] = {
                "id": clip.id,
                "set": "zh" if clip.language == "zh" else "en",
                "language": clip.language,
                "voice": clip.voice,
                "text": clip.text,
                "how": how[clip.id],
                "file": file.name,
                "seconds": round(len(samples) / rate, 3),
                "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
            }
            _write(path, old)
    _write(path, {clip.id: old[clip.id] for clip in wanted})
    seconds = sum(old[clip.id]["seconds"] for clip in wanted)
    size = sum((given.out / old[clip.id]["file"]).stat().st_size for clip in wanted)
    print(f"{len(wanted)} recordings, {seconds:.0f} s, {size / 1e6:.2f} MB")


def speak(
    clip: Clip, speaker: Speaker, deliveries: dict[str, delivery.Delivery]
) -> tuple[audio.Samples, int]:
    """Return samples and rate (Hz) of a recording."""
    asked = [
        Utterance(piece.text, clip.voice, deliveries[piece.delivery].synthesis_speed)
        for piece in clip.pieces
    ]
    parts: list[audio.Samples] = []
    rain = None
    rate = 0
    for piece, (speech, rate) in zip(clip.pieces, speaker.speak(asked), strict=True):
        manner = deliveries[piece.delivery]
        rain = manner.rain
        if len(clip.pieces) > 1:
            speech = _trim(speech, rate)
        parts += [manner.apply(speech, rate), np.zeros(round((piece.pause or GAP) * rate))]
    whole = np.concatenate(parts[:-1]).astype(np.float32)
    quieter = max(max(deliveries[piece.delivery].level) for piece in clip.pieces)
    even = audio.tidy(whole, rate)
    if rain is not None:
        even = delivery.with_rain(even, rate, *rain)
        even *= np.float32(audio.PEAK / np.abs(even).max())
    return even * np.float32(10 ** (min(quieter, 0) / 20)), rate


def _trim(speech: audio.Samples, rate: int) -> audio.Samples:
    loud = audio.loud_frames(speech, rate)
    length = round(audio.FRAME * rate)
    return speech[loud[0] * length : (loud[-1] + 1) * length]


def _how(clip: Clip, deliveries: dict[str, delivery.Delivery]) -> str:
    """Identify text, voice and deliveries."""
    said = [[asdict(piece), asdict(deliveries[piece.delivery])] for piece in clip.pieces]
    text = json.dumps([clip.voice, BIT_RATE, said])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(path: Path, entries: dict[str, dict]) -> None:
    new = path.with_suffix(".new")
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries.values()]
    new.write_text("".join(lines), "utf-8")
    new.replace(path)


if __name__ == "__main__":
    main()
