"""Where what can be made again is kept between runs: indexes, unpacked archives, models."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from s2s_tasks.errors import S2STasksError


def cache_folder(kind: str) -> Path:
    """Return the folder for one kind of file, made if need be.

    It lies in `S2S_TASKS_CACHE`, or in `s2s_tasks` below `XDG_CACHE_HOME` or `~/.cache`.

    Raises:
        S2STasksError: when it cannot be written to.
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(os.environ.get("S2S_TASKS_CACHE") or Path(base) / "s2s_tasks")
    folder = root.expanduser() / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise S2STasksError(
            f"{folder}: cannot make the cache folder ({error}); "
            "set S2S_TASKS_CACHE to a folder that can be written to"
        ) from error
    return folder


def file_key(path: Path) -> str:
    """Return a short name that changes when the file's place, size or time of change does."""
    stat = path.stat()
    text = f"{path.resolve()}\0{stat.st_size}\0{stat.st_mtime_ns}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
