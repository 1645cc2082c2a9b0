"""The log of judgements: JSON lines that are only ever added to, by any number at a time.

Whoever is killed while writing leaves a line without an end. The next to write puts the ASCII
character CAN behind it ("disregard the data preceding it"), which JSON never holds, and a line end.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from s2s_tasks.arena.parsing import parse
from s2s_tasks.arena.records import Judgement
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
    lines = b"".join(map(_line, judgements))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened for each call: a lock belongs to what `open` returned, so threads wait too.
        with open(path, "a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            _write(file.fileno(), _ending(file.fileno()) + lines)
            os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(path, error) from error


@contextmanager
def alone(path: Path, judge: str) -> Iterator[None]:
    """Let no other process put battles to the same judge for a log meanwhile.

    It would ask the same again. The lock, on a file beside the log, ends with the process.

    Raises:
        S2STasksError: when another one does, or the folder cannot be written to.
    """
    digest = hashlib.sha256(judge.encode()).hexdigest()[:8]
    lock = path.with_name(f".{path.name}.{digest}.lock")
    with _locked(lock, path, judge):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


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


def _locked(lock: Path, path: Path, judge: str) -> IO[bytes]:
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Another one may just have ended, and removed the file that was opened here.
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(lock)):
                raise BlockingIOError
        except OSError:
            file.close()
            raise
    except (BlockingIOError, FileNotFoundError) as error:
        raise S2STasksError(
            f"{path}: another process is putting battles to {judge} for this log; wait until it "
            "ends, or name another log"
        ) from error
    except OSError as error:
        raise _unwritable(path, error) from error
    return file


def _line(judgement: Judgement) -> bytes:
    line = judgement.to_json()
    try:
        return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        # Half of a character, as of an emoji that a judge's reply breaks off in: kept by its code.
        return json.dumps(line, allow_nan=False).encode() + b"\n"


def _unwritable(path: Path, error: OSError) -> S2STasksError:
    return S2STasksError(
        f"{path}: cannot be written ({error}); name a file that can be, on a disk with room"
    )


def _parse(line: bytes) -> Judgement | None:
    try:
        return parse(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _parsed(line: bytes, path: Path, number: int) -> Judgement:
    try:
        return parse(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise S2STasksError(
            f"{path}, line {number}: not a judgement of the arena ({error}); take the line out, or "
            "name another file"
        ) from error
