"""Assemble the embedded mini set from its texts and its speech.

    python mini_set/build.py SPEECH

Texts are the YAML files beside this script: blocks of crossed items, so that a block of k items
becomes k questions with the block's k endings each, of which its own is true. SPEECH is what
`synthesise.py` wrote: recordings, and a `manifest.jsonl` with a line each.

Every text must have one sound recording of exactly that text, or nothing is written.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from s2s_tasks.audio import Audio
from s2s_tasks.data.card import write_card
from s2s_tasks.data.parquet import write_rows
from s2s_tasks.data.published.inspection import inspect
from s2s_tasks.data.published.records import language_of
from s2s_tasks.data.rows import Row, place_gold
from s2s_tasks.data.sets import OPTIONS, SETS, STORY_FIELDS
from s2s_tasks.errors import S2STasksError

HERE = Path(__file__).parent
TARGET = HERE.parent / "s2s_tasks" / "data" / "mini"
LICENCE = "Apache-2.0"
SOURCE = "written and synthesised for s2s-tasks, see mini_set/"
MOST_BYTES = 12_000_000
"""Of all three files: they are part of the package that everyone downloads."""

Part = Literal["context", "ending"]
Speech = Mapping[tuple[str, Part, str], Audio]
"""Recordings by block, part and text."""


class BuildError(S2STasksError):
    """Texts and speech that do not make a set."""


@dataclass(frozen=True)
class Block:
    """Contexts with their endings: the ending of one is false for the others."""

    name: str
    contexts: tuple[str, ...]
    endings: tuple[str, ...]
    subject: str | None


def read_blocks(path: Path, size: int) -> list[Block]:
    """Read the texts of a set and check their form.

    Raises:
        BuildError: when a block is named twice, has another size or an empty or repeated text.
    """
    blocks = [
        Block(
            name=str(entry["block"]),
            contexts=tuple(_plain(item["context"]) for item in entry["items"]),
            endings=tuple(_plain(item["ending"]) for item in entry["items"]),
            subject=entry.get("subject"),
        )
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))
    ]
    twice = [name for name, count in Counter(b.name for b in blocks).items() if count > 1]
    complaints = [f"{name}: two blocks of that name" for name in twice]
    for block in blocks:
        if len(block.contexts) != size:
            complaints.append(f"{block.name}: {len(block.contexts)} items and not {size}")
        for texts in (block.contexts, block.endings):
            if not all(texts) or len(set(texts)) < len(texts):
                complaints.append(f"{block.name}: an empty or repeated text")
    if complaints:
        raise BuildError("\n".join([f"{path}:", *complaints]))
    return blocks


def read_speech(folder: Path) -> Speech:
    """Read the manifest of a folder and check the recordings that it names.

    Raises:
        BuildError: when a recording is missing, faulty, changed, or there twice.
    """
    manifest = folder / "manifest.jsonl"
    if not manifest.is_file():
        raise BuildError(f"{manifest}: there is no such file; run mini_set/synthesise.py first")
    speech: dict[tuple[str, Part, str], Audio] = {}
    complaints = []
    for line in manifest.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        path = folder / entry["file"]
        key = (entry["block"], entry["part"], _plain(entry["text"]))
        found = inspect(path.read_bytes() if path.exists() else b"", str(path))
        if key in speech:
            complaints.append(f"{path}: a second recording of {key}")
        elif not found.audio:
            complaints.append(f"{path}: {found.detail}")
        elif found.audio.sha256 != entry["sha256"]:
            complaints.append(f"{path}: not the recording that the manifest describes")
        else:
            speech[key] = found.audio
    if complaints:
        raise BuildError("\n".join([f"{folder}: unsound speech:", *complaints]))
    return speech


def missing_speech(blocks: Sequence[Block], speech: Speech) -> list[str]:
    """Return the texts that nobody has spoken."""
    return [
        f"{block.name}: no recording of the {part} {text!r}"
        for block in blocks
        for part, text in _texts(block)
        if (block.name, part, text) not in speech
    ]


def block_rows(set_name: str, block: Block, speech: Speech) -> Iterator[Row]:
    """Yield one question an item: all endings of the block after its context."""
    count = len(block.contexts)
    for item, context in enumerate(block.contexts):
        order = [(item + step) % count for step in range(count)]
        endings = tuple(block.endings[at] for at in order)
        yield place_gold(
            Row(
                id=f"mini-{set_name}-{block.name}.{item + 1}",
                language=SETS[set_name].language,
                context=context,
                endings=endings,
                gold=0,
                context_audio=(speech[block.name, "context", context],),
                ending_audio=tuple(speech[block.name, "ending", ending] for ending in endings),
                subject=block.subject,
                pair_id=block.name,
                source_ids=tuple(f"{block.name}.{at + 1}" for at in order),
            )
        )


def build(texts: Path, speech_folder: Path, target: Path, names: Sequence[str]) -> None:
    """Write the Parquet files of some sets, or nothing.

    Raises:
        BuildError: when texts or speech are not sound, do not match, or are too large.
    """
    speech = read_speech(speech_folder)
    blocks = {
        name: read_blocks(
            texts / f"{name}.yaml", 2 if SETS[name].fields == STORY_FIELDS else len(OPTIONS)
        )
        for name in names
    }
    complaints = [
        complaint
        for name, found in blocks.items()
        for complaint in [*missing_speech(found, speech), *_wrong_script(name, found)]
    ]
    if complaints:
        raise BuildError("\n".join([f"{len(complaints)} texts cannot be used:", *complaints]))
    used = {
        name: {speech[block.name, part, text] for block in found for part, text in _texts(block)}
        for name, found in blocks.items()
    }
    size = sum(Path(audio.path).stat().st_size for audios in used.values() for audio in audios)
    if size > MOST_BYTES:
        raise BuildError(f"the speech is {size:,} bytes; at most {MOST_BYTES:,} are to be embedded")
    for name, found in blocks.items():
        rows = (row for block in found for row in block_rows(name, block, speech))
        path = target / f"{name}.parquet"
        count = write_rows(path, rows, source=SOURCE, licence=LICENCE)
        seconds = sum(audio.seconds for audio in used[name])
        print(
            f"{path.name}: {len(found)} blocks, {count} rows, {len(used[name])} recordings, "
            f"{seconds / 60:.1f} min, {path.stat().st_size / 1e6:.2f} MB"
        )
    write_card(target, "Mini set of s2s-tasks")


def _wrong_script(name: str, blocks: Sequence[Block]) -> list[str]:
    language = SETS[name].language
    return [
        f"{block.name}: not in {language!r}: {text!r}"
        for block in blocks
        for _, text in _texts(block)
        if language_of(text) != language
    ]


def _plain(text: str) -> str:
    """Undo the line breaks of YAML."""
    return " ".join(text.split())


def _texts(block: Block) -> Iterator[tuple[Part, str]]:
    yield from (("context", text) for text in block.contexts)
    yield from (("ending", text) for text in block.endings)


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("speech", type=Path, help="folder with recordings and manifests")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--target", type=Path, default=TARGET)
    call = parser.parse_args()
    try:
        build(HERE, call.speech, call.target, call.sets)
    except S2STasksError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
