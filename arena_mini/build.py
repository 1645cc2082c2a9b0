"""Assemble the arena's embedded mini set from its texts and its speech.

    python arena_mini/build.py SPEECH

SPEECH is what `synthesise.py` wrote. The file is a manifest as s2s_tasks.arena.data.manifest reads
it. Where the voice bears a cue, `contrast` holds the same words without it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from items import Clip, Item, items

TARGET = Path(__file__).parents[1] / "s2s_tasks/arena/data/mini/manifest.parquet"
MOST_BYTES = 3_000_000
"""It is part of the package that everyone downloads."""
GROUP = 4
"""Rows that are read at a time."""
SOURCE = {
    b"source": b"written and synthesised for s2s-tasks, see arena_mini/",
    b"licence": b"Apache-2.0",
}

Entries = Mapping[str, Mapping[str, Any]]


def row(item: Item, speech: Path, entries: Entries) -> dict[str, Any]:
    """Return a line of the manifest, its recordings embedded."""
    return {
        "id": item.id,
        "language": item.language,
        "domain": item.domain,
        "task": item.task,
        "level": item.level,
        "split": "",
        "text": item.clip.text,
        "cue": json.dumps(dict(item.cue)),
        "target": json.dumps(dict(item.target)),
        "evaluation": item.evaluation,
        "voice": item.clip.voice,
        "audio": [_recording(item.clip, speech, entries)],
        "contrast": [_recording(item.contrast, speech, entries)] if item.contrast else [],
    }


def _recording(clip: Clip, speech: Path, entries: Entries) -> dict[str, Any]:
    entry = entries.get(clip.id)
    if entry is None or (entry["text"], entry["voice"]) != (clip.text, clip.voice):
        raise SystemExit(f"{clip.id}: not spoken as it is written now; run synthesise.py")
    data = (speech / entry["file"]).read_bytes()
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise SystemExit(f"{entry['file']}: not the recording that the manifest describes")
    return {"bytes": data, "path": entry["file"]}


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("speech", type=Path, help="folder with recordings and their manifest")
    parser.add_argument("--target", type=Path, default=TARGET)
    given = parser.parse_args()
    lines = (given.speech / "manifest.jsonl").read_text("utf-8").splitlines()
    entries = {entry["id"]: entry for entry in map(json.loads, lines)}
    table = pa.Table.from_pylist([row(item, given.speech, entries) for item in items()])
    part = given.target.with_suffix(".part")
    given.target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata(SOURCE), part, row_group_size=GROUP)
    if (size := part.stat().st_size) > MOST_BYTES:
        part.unlink()
        print(f"{size:,} bytes are too many; at most {MOST_BYTES:,}", file=sys.stderr)
        return 1
    part.replace(given.target)
    print(f"{given.target}: {len(table)} instructions, {size / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
