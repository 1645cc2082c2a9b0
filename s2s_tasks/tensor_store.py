"""A folder of tensors that can be computed again: bounded, and safe for several processes."""

from __future__ import annotations

import logging
import os
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from s2s_tasks.errors import S2STasksError

log = logging.getLogger(__name__)

SUFFIX = ".safetensors"
PART = ".part"
CHECKSUM = "crc32"
ABANDONED = 3600
"""Seconds after which a file that is not whole belongs to a process that was killed."""
RECOUNT = 100
"""Entries written until the folder is counted anew: other processes write into it too."""


class TensorStore:
    """Tensors by key, below the name of what made them.

    An entry is a safetensors file that appears whole or not at all, so that processes need not
    wait for each other. When the folder is full, entries of other makers go, the longest unused
    first; a maker's own stay and no more are added: who reads a data set over and over would
    otherwise throw each entry out just before it is needed.
    """

    def __init__(self, folder: str | Path, maker: str, most_bytes: int) -> None:
        """Open a folder, made if need be.

        Args:
            folder: of all makers' entries.
            maker: what makes the entries; another maker's are never returned.
            most_bytes: that all entries may take together.

        Raises:
            S2STasksError: when the folder cannot be written to.
        """
        self._root, self._own = Path(folder).expanduser(), Path(folder).expanduser() / maker
        self._most_bytes = most_bytes
        self._full = False
        try:
            self._own.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise S2STasksError(
                f"{folder}: cannot make the folder ({error}); give one that can be written to"
            ) from error
        self._count()

    def get(self, key: str) -> dict[str, torch.Tensor] | None:
        """Return an entry, or None where there is none that can be read."""
        path = self._own / f"{key}{SUFFIX}"
        try:
            with safe_open(path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                written = (file.metadata() or {}).get(CHECKSUM)
            if written != _checksum(tensors):
                raise SafetensorError("its content is not what was written")
            with suppress(OSError):  # another user's, perhaps
                os.utime(path)
        except FileNotFoundError:
            return None
        except (SafetensorError, OSError) as error:
            log.warning("%s: cannot be read (%s) and is made again", path, error)
            return None
        return tensors

    def put(self, key: str, tensors: Mapping[str, torch.Tensor]) -> None:
        """Keep an entry, if there is room for it; a folder that fails is not worth a run."""
        if self._full:
            return
        whole = {name: tensor.contiguous().cpu() for name, tensor in tensors.items()}
        data = save(whole, metadata={CHECKSUM: _checksum(whole)})
        try:
            if self._has_room(len(data)):
                self._write(self._own / f"{key}{SUFFIX}", data)
        except OSError as error:
            self._full = True
            log.warning("%s: nothing more is kept (%s)", self._root, error)

    def _write(self, path: Path, data: bytes) -> None:
        part = path.with_name(f"{uuid.uuid4().hex}{PART}")
        try:
            part.write_bytes(data)
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._used += len(data)
        self._written += 1

    def _has_room(self, size: int) -> bool:
        if self._written >= RECOUNT:
            self._count()
        if self._used + size <= self._most_bytes:
            return True
        self._count()
        others = [(path, stat) for path, stat in self._entries() if path.parent != self._own]
        for path, stat in sorted(others, key=lambda entry: entry[1].st_mtime):
            if self._used + size <= self._most_bytes:
                return True
            path.unlink(missing_ok=True)
            self._used -= stat.st_size
        self._full = self._used + size > self._most_bytes
        if self._full:
            log.warning(
                "%s is full (%.1f GB): what is not in it is computed anew each time",
                self._root,
                self._used / 1e9,
            )
        return not self._full

    def _count(self) -> None:
        for path in self._root.glob(f"*/*{PART}"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()
        self._used = sum(stat.st_size for _, stat in self._entries())
        self._written = 0

    def _entries(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._root.glob(f"*/*{SUFFIX}"):
            try:
                yield path, path.stat()
            except FileNotFoundError:  # another process took it away
                continue


def _checksum(tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a checksum of the content: a disk may lose it and keep the file."""
    found = 0
    for name in sorted(tensors):
        found = zlib.crc32(tensors[name].view(-1).view(torch.uint8).numpy().data, found)
    return str(found)
