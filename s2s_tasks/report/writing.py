"""Files of a report."""

from __future__ import annotations

import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.document import Block, Document, Figure, Table
from s2s_tasks.report.drawing import render
from s2s_tasks.report.html import page, recordings
from s2s_tasks.report.markdown import clips_frame, markdown

FILES = ".report"
"""Lists the files of a report, so that the next one leaves none of them behind."""


def write(document: Document, folder: Path) -> list[Path]:
    """Write a report, and return its files, the page first.

    They are `report.html`, which needs no other; `report.md`, with a PNG for each figure; and a CSV
    for each table and each set of clips. A file appears whole or not at all, and replaces the
    one that was there. Recordings that cannot be read have no player in the page, and a warning
    in the log.

    Args:
        document: what the report says.
        folder: where to; made if need be.

    Raises:
        S2STasksError: when a file cannot be written.
        ValueError: when two parts of the document have one key, or a key cannot name a file.
    """
    _check_keys(document)
    path = folder
    earlier = _earlier(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        with tqdm(total=_steps(document), desc="Writing", unit="part", leave=False) as bar:
            for name, content in _files(document, bar.update):
                path = folder / name
                _replace(path, content)
                paths.append(path)
        for stale in earlier - {path.name for path in paths}:
            (folder / stale).unlink(missing_ok=True)
        _replace(folder / FILES, "\n".join(path.name for path in paths).encode())
    except OSError as error:
        raise S2STasksError(
            f"{path}: cannot be written ({error}); name a folder that can be written to, on a disk "
            "with room"
        ) from error
    return paths


def _earlier(folder: Path) -> set[str]:
    """Return the names of what an earlier report left in the folder."""
    listed = folder / FILES
    return set(listed.read_text(encoding="utf-8").split("\n")) if listed.exists() else set()


def _steps(document: Document) -> int:
    """Count what takes long: a figure is drawn for two themes and as PNG, a recording encoded."""
    blocks = [block for section in document.sections for block in section.blocks]
    figures = sum(isinstance(block, Figure) for block in blocks)
    return 3 * figures + len(recordings(document))


def _files(document: Document, step: Callable[[], object]) -> Iterator[tuple[str, bytes]]:
    yield "report.html", page(document, step).encode()
    yield "report.md", markdown(document).encode()
    for section in document.sections:
        for block in section.blocks:
            yield _beside(block)
            if isinstance(block, Figure):
                step()


def _beside(block: Block) -> tuple[str, bytes]:
    if isinstance(block, Figure):
        return f"{block.key}.png", render(block, "light", "png").data
    frame = block.frame if isinstance(block, Table) else clips_frame(block)
    return f"{block.key}.csv", frame.to_csv(index=False, lineterminator="\n").encode()


def _check_keys(document: Document) -> None:
    keys = Counter(part.key for section in document.sections for part in (section, *section.blocks))
    for key, count in keys.items():
        if count > 1:
            raise ValueError(f"{key}: the key of {count} parts of the document; each needs its own")
        if not re.fullmatch(r"[a-z0-9-]+", key):
            raise ValueError(f"{key!r}: a key is of small letters, digits and hyphens")


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever sees a part of it."""
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
