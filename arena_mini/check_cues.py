"""Are the cues in the sound? Measure each recording beside the one without its cue.

    python arena_mini/check_cues.py

Reads the embedded mini set and prints a Markdown table: with the cue → without.
"""

from __future__ import annotations

from cue_measures import RATE, contrasts, measure


def main() -> None:
    """Command line."""
    rows = []
    for instruction, contrast in contrasts():
        cued, plain = measure(instruction.audio.load(RATE)), measure(contrast.load(RATE))
        cue = ", ".join(f"{name}: {value}" for name, value in instruction.cue.items())
        cells = [f"{cued[name]:{_form(name)}} → {plain[name]:{_form(name)}}" for name in cued]
        rows.append([instruction.id.removeprefix("mini-"), cue, *cells])
    print("| id | cue |", " | ".join(cued), "|")
    print("|---|---|" + "--:|" * len(cued))
    for row in rows:
        print("|", " | ".join(row), "|")


def _form(name: str) -> str:
    return ".0f" if name.endswith(("Hz", "%", "dB")) else ".1f"


if __name__ == "__main__":
    main()
