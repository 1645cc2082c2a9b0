"""A small program that speaks: the text-to-speech of tests."""

from __future__ import annotations

import sys
from pathlib import Path

BEEPER = '''
"""Says a text as a tone, as long as the text; `faults.json` says what goes wrong with some."""
import json, math, pathlib, struct, sys, wave
output, rate, *texts = sys.argv[1:]
text = texts[0] if texts else sys.stdin.buffer.read().decode()
faults = pathlib.Path(__file__).with_name("faults.json")
fault = json.loads(faults.read_text()).get(text) if faults.exists() else None
if fault == "fails":
    sys.exit("no voice for this")
if fault == "nothing":
    sys.exit()
frames = [0 if fault == "silent" else round(9000 * math.sin(i / 9)) for i in range(100 * len(text))]
with wave.open(output, "wb") as file:
    file.setparams((1, 2, int(float(rate) * 8000), 0, "NONE", ""))
    file.writeframes(struct.pack(f"<{len(frames)}h", *frames))
'''


def write(folder: Path) -> Path:
    """Write the program."""
    path = folder / "beeper.py"
    path.write_text(BEEPER)
    return path


def command(path: Path) -> str:
    """Return how it is called, as `tts=` takes it."""
    return f"{sys.executable} {path} {{output}} 1 {{text}}"
