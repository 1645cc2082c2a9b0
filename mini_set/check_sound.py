"""Does the speech of the mini set measure as it should? Level, silence, pace, a line a voice.

python mini_set/check_sound.py OUT
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean

import audio
import numpy as np
import soundfile


def measure(path: Path, text: str) -> dict[str, float]:
    """Level and peak in dB of full scale, silences in s, pace in characters a second."""
    samples, rate = soundfile.read(path, dtype="float32")
    loud = audio.loud_frames(samples, rate)
    level = np.sqrt(np.mean(np.square(samples)))
    return {
        "level": 20 * np.log10(level),
        "peak": 20 * np.log10(np.abs(samples).max()),
        "before": loud[0] * audio.FRAME,
        "after": len(samples) / rate - (loud[-1] + 1) * audio.FRAME,
        "pause": np.diff(loud).max() * audio.FRAME,
        "pace": len(text) / (len(samples) / rate),
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, help="the folder that synthesise.py made")
    out = parser.parse_args().out
    voices: dict[str, list[dict[str, float]]] = defaultdict(list)
    for line in (out / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        clip = json.loads(line)
        voices[clip["voice"]].append(measure(out / clip["file"], clip["text"]))
    print("| voice | level dBFS | highest peak dBFS | silence before / after s (longest) "
          "| longest pause s | characters/s (least to most) |")  # fmt: skip
    print("|---|--:|--:|--:|--:|--:|")
    for voice, mine in sorted(voices.items()):
        of = {key: [clip[key] for clip in mine] for key in mine[0]}
        print(
            f"| {voice} | {mean(of['level']):.1f} | {max(of['peak']):.1f} "
            f"| {max(of['before']):.2f} / {max(of['after']):.2f} | {max(of['pause']):.2f} "
            f"| {mean(of['pace']):.1f} ({min(of['pace']):.1f} to {max(of['pace']):.1f}) |"
        )


if __name__ == "__main__":
    main()
