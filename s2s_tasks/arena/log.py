"""The log of judgements: JSON lines that are only ever added to, by any number at a time.

Whoever is killed while writing leaves a line without an end. The next to write puts the ASCII
character CAN behind it ("disregard the data preceding it"), which JSON never holds, and a line end.
"""

from __future__ import annotations

import fcntl
import json
import logging
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from s2s_tasks.arena.records import CRITERIA, Judgement, Level, Winner
from s2s_tasks.errors import S2STasksError

log = logging.getLogger(__name__)

_CANCEL = b"\x18"


def append(path: Path, *judgements: Judgement) -> None:
    """Add judgements to a log, which is made if need be; they are on the disk on return.

    Threads and processes, on one machine, may call this at the same time.

    Raises:
        S2STasksError: when the file cannot be written.
        ValueError: when a number is not finite.
    """
    lines = b"".join(
        json.dumps(judgement.to_json(), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        for judgement in judgements
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened for each call: a lock belongs to what `open` returned, so threads wait too.
        with open(path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _write(file.fileno(), _ending(file.fileno()) + lines)
            os.fsync(file.fileno())
    except OSError as error:
        raise S2STasksError(
            f"{path}: cannot be written ({error}); name a file that can be, on a disk with room"
        ) from error


def read(path: Path) -> Iterator[Judgement]:
    """Give the judgements of a log, one at a time, in the order in which they were added.

    What somebody left unfinished is skipped, with a warning in the log of the program.

    Raises:
        S2STasksError: when the file cannot be read, or a line is none of ours.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                finished = line.endswith(b"\n") and not line.endswith(_CANCEL + b"\n")
                # What has no end may lack nothing else.
                judgement = _parsed(line, path, number) if finished else _parse(line)
                if judgement is None:
                    log.warning("%s, line %d: unfinished, left out", path, number)
                else:
                    yield judgement
    except OSError as error:
        raise S2STasksError(f"{path}: cannot be read ({error}); name a log") from error


def _ending(file: int) -> bytes:
    """Return what the last line lacks before another can follow."""
    size = os.fstat(file).st_size
    if not size or os.pread(file, 1, size - 1) == b"\n":
        return b""
    start = size
    tail = b""
    while start and b"\n" not in tail:
        length = min(65536, start)
        start -= length
        tail = os.pread(file, length, start) + tail
    whole = _parse(tail.rpartition(b"\n")[2]) is not None
    return b"\n" if whole else _CANCEL + b"\n"


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _parse(line: bytes) -> Judgement | None:
    try:
        return _checked(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None


def _parsed(line: bytes, path: Path, number: int) -> Judgement:
    try:
        return _checked(json.loads(line))
    except (ValueError, TypeError, KeyError) as error:
        raise S2STasksError(
            f"{path}, line {number}: not a judgement of the arena ({error}); take the line out, or "
            "name another file"
        ) from error


def _checked(line: Any) -> Judgement:
    judgement = Judgement.from_json(line)
    if not set(judgement.winners) <= set(CRITERIA):
        raise ValueError(f"criteria {sorted(judgement.winners)}, known are {CRITERIA}")
    if unknown := set(judgement.winners.values()) - set(get_args(Winner)):
        raise ValueError(f"verdicts {sorted(unknown)}, known are {get_args(Winner)}")
    if judgement.level not in (None, *get_args(Level)):
        raise ValueError(f"level {judgement.level!r}")
    if not 0 < judgement.battle.propensity <= 1:
        raise ValueError(f"propensity {judgement.battle.propensity!r}")
    if not all(math.isfinite(value) for value in judgement.features.values()):
        raise ValueError("a feature that is not finite")
    return judgement
