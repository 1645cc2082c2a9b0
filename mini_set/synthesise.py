"""Speak the mini set: an Ogg/Opus file for every context and every ending, and a manifest.

    npm pack kokoro-js@1.2.1
    python mini_set/synthesise.py OUT --voices kokoro-js-1.2.1.tgz
    python mini_set/synthesise.py OUT --weights FOLDER_OF_Kokoro-82M-v1.0-ONNX

All clips of a block have one voice, so that an ending of the block fits each of its contexts. What
is there already, from the same text with the same settings, is kept: after an edit or an
interruption run it again. `OUT/manifest.jsonl` has one line a clip, in the order of the texts.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

import audio
import soundfile
import yaml
from speaker import Speaker
from tqdm import tqdm

HERE = Path(__file__).parent
SETS = ("sstorycloze", "zh_sstorycloze", "scmmlu")
SPEED = 1.0
ENGINE = f"Kokoro-82M v1.0 int8, kokoro-onnx {metadata.version('kokoro-onnx')}"


@dataclass(frozen=True)
class Clip:
    """One text to be spoken, and how."""

    id: str
    set: str
    block: str
    item: int
    part: str  # "context" or "ending"
    text: str
    voice: str
    speed: float
    engine: str

    @property
    def file(self) -> str:
        """Where it goes, below the output folder."""
        return f"{self.set}/{self.id}.ogg"


def clips(name: str) -> Iterator[Clip]:
    """The clips of a set; voices.yaml says who speaks."""
    path = HERE / f"{name}.yaml"
    blocks = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []
    voices = yaml.safe_load((HERE / "voices.yaml").read_text(encoding="utf-8"))
    for block in blocks:
        for item, texts in enumerate(block["items"]):
            for part in ("context", "ending"):
                key = f"{block['block']}-{item}-{part}"
                text = " ".join(texts[part].split())
                yield Clip(
                    key,
                    name,
                    block["block"],
                    item,
                    part,
                    text,
                    voices[block["block"]],
                    SPEED,
                    ENGINE,
                )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--weights", type=Path, help="folder with onnx/ and voices/")
    parser.add_argument("--voices", type=Path, help="kokoro-js-1.2.1.tgz")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()

    given.out.mkdir(parents=True, exist_ok=True)
    manifest = given.out / "manifest.jsonl"
    old = _read(manifest)
    wanted = [clip for name in SETS for clip in clips(name)]
    missing = [c for c in wanted if c.set in given.sets and not _done(c, old, given.out)]
    if missing:
        speaker = Speaker(given.weights, given.voices, given.threads)
        with manifest.open("a", encoding="utf-8") as lines:
            spoken = zip(missing, speaker.speak(missing), strict=True)
            for clip, (samples, rate) in tqdm(spoken, total=len(missing), unit="clip"):
                path = given.out / clip.file
                path.parent.mkdir(exist_ok=True)
                audio.write(path, audio.tidy(samples, rate), rate)
                old[clip.id] = _entry(clip, path)
                lines.write(json.dumps(old[clip.id], ensure_ascii=False) + "\n")
                lines.flush()
    entries = [old[clip.id] for clip in wanted if clip.id in old]
    _write(manifest, entries)
    size = sum((given.out / entry["file"]).stat().st_size for entry in entries)
    seconds = sum(entry["seconds"] for entry in entries)
    print(f"{len(entries)} of {len(wanted)} clips, {seconds:.0f} s, {size / 1e6:.2f} MB")


def _entry(clip: Clip, path: Path) -> dict:
    info = soundfile.info(path)
    seconds = round(info.frames / info.samplerate, 3)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    sound = {"file": clip.file, "seconds": seconds, "rate": info.samplerate, "sha256": sha256}
    return asdict(clip) | sound


def _done(clip: Clip, old: dict[str, dict], out: Path) -> bool:
    entry = old.get(clip.id, {})
    same = all(entry.get(key) == value for key, value in asdict(clip).items())
    return same and (out / entry["file"]).is_file()


def _read(manifest: Path) -> dict[str, dict]:
    if not manifest.is_file():
        return {}
    entries = map(json.loads, manifest.read_text(encoding="utf-8").splitlines())
    return {entry["id"]: entry for entry in entries}


def _write(manifest: Path, entries: list[dict]) -> None:
    new = manifest.with_suffix(".new")
    new.write_text(
        "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries), encoding="utf-8"
    )
    new.replace(manifest)


if __name__ == "__main__":
    main()
