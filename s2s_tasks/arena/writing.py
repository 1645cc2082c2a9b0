"""A document, and its numbers as JSON beside it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from s2s_tasks.arena.files import write_whole
from s2s_tasks.errors import S2STasksError
from s2s_tasks.report.document import Document
from s2s_tasks.report.writing import write


def write_with_json(document: Document, folder: Path, name: str, content: Any) -> list[Path]:
    """Write a document and a JSON file, and return all files, the page first.

    Each appears whole or not at all, and replaces the one that was there. What is not finite is
    null in the JSON.

    Raises:
        S2STasksError: when a file cannot be written.
    """
    return [*write(document, folder), replace_with(folder / name, to_text(content))]


def to_text(content: Any) -> str:
    """Return JSON that any reader reads."""
    return json.dumps(_without_nan(content), ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def replace_with(path: Path, text: str) -> Path:
    """Write a file so that nobody ever sees a part of it, and return its path.

    Raises:
        S2STasksError: when it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    except OSError as error:
        raise S2STasksError(
            f"{path}: cannot be written ({error}); name a place that can be, on a disk with room"
        ) from error
    return path


def _without_nan(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
