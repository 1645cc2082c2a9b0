"""How many encodings of recordings a checkpoint took over from the ones before it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from s2s_tasks.tensor_store import SUFFIX

State = Mapping[Path, int]
"""Entries of the folder of `audio_cache`, and when each was used last, in nanoseconds."""


@dataclass(frozen=True)
class Encodings:
    """Of one checkpoint, or of several; those of the self-test at load count."""

    reused: int = 0
    made: int = 0

    def __add__(self, other: Encodings) -> Encodings:
        return Encodings(self.reused + other.reused, self.made + other.made)

    def __str__(self) -> str:
        return f"{self.reused:,} of {self.reused + self.made:,} encodings of recordings reused"


def state_of(folder: Path | None) -> State:
    """Look at all entries, whichever process wrote them."""
    state: dict[Path, int] = {}
    if folder is not None:
        for path in folder.expanduser().glob(f"*/*{SUFFIX}"):
            with suppress(FileNotFoundError):  # a full store drops entries
                state[path] = path.stat().st_mtime_ns
    return state


def used_between(before: State, after: State) -> Encodings:
    """Return what was looked up, which touches an entry, and what is new."""
    reused = sum(1 for path, time in after.items() if before.get(path, time) != time)
    return Encodings(reused, len(after.keys() - before.keys()))
