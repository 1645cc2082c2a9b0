"""Judgements, whoever gave them: from logs, and from the voting page's database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from s2s_tasks.arena.log import read
from s2s_tasks.arena.records import Judgement

HELP = "logs of judgements, or databases of votes"

_SQLITE = b"SQLite format 3\x00"


def read_verdicts(paths: Iterable[Path]) -> Iterator[Judgement]:
    """Give the judgements of some files, one file after another.

    Raises:
        S2STasksError: when one cannot be read, or is neither a log nor the voting page's.
    """
    for path in paths:
        yield from _votes(path) if _is_database(path) else read(path)


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # `read` says what is wrong


def _votes(path: Path) -> Iterator[Judgement]:
    from s2s_tasks.arena.page.votes import votes  # SQLAlchemy takes half a second

    return votes(path)
