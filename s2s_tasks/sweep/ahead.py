"""Read files ahead of their use, so that the operating system has them in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

PIECE = 16 * 2**20
"""Bytes read at once; between two pieces the reading can be stopped."""


@contextmanager
def reading_ahead(files: Sequence[Path]) -> Iterator[threading.Thread | None]:
    """Read files in another thread while the block runs, and stop when it ends.

    Nothing is read where the files are larger than the memory that is free, or by another process
    than the first of a machine; then None is yielded instead of the thread. What cannot be read
    is left to whoever needs it.
    """
    if not files or int(os.environ.get("LOCAL_RANK", "0")) or not _fit_memory(files):
        yield None
        return
    stop = threading.Event()
    thread = threading.Thread(target=_read, args=(files, stop), name="s2s-read-ahead", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


def _fit_memory(files: Sequence[Path]) -> bool:
    try:
        size = sum(path.stat().st_size for path in files)
    except OSError:
        return False
    return size <= int(psutil.virtual_memory().available)


def _read(files: Sequence[Path], stop: threading.Event) -> None:
    piece = bytearray(PIECE)
    for path in files:
        try:
            with path.open("rb", buffering=0) as file:
                while not stop.is_set() and file.readinto(piece):
                    pass
        except OSError:
            continue
