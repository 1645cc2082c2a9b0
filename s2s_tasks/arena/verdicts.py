"""Judgements, whoever gave them: from logs, and from the voting page's database."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from s2s_tasks.arena.contest.meeting import asked_in
from s2s_tasks.arena.log import read
from s2s_tasks.arena.records import Judgement

HELP = "logs of judgements, or databases of votes"

log = logging.getLogger(__name__)

_SQLITE = b"SQLite format 3\x00"


def read_verdicts(paths: Iterable[Path]) -> Iterator[Judgement]:
    """Give the judgements of some files, one file after another.

    What one judge was asked twice, of the same recordings in the same order, counts once, by the
    first verdict. Of imported lines, which may be alike because several people voted so, those of
    one file all count, and those of another file that are the same word for word do not. A warning
    in the log of the program says how many were left out.

    Raises:
        S2STasksError: when one cannot be read, or is neither a log nor the voting page's.
    """
    seen: set[object] = set()
    repeated = 0
    for path in paths:
        imported = Counter[str]()
        for judgement in _votes(path) if _is_database(path) else read(path):
            key: object = asked_in(judgement)
            if not judgement.answers.get("instruction"):
                line = json.dumps(judgement.to_json(), sort_keys=True)
                imported[line] += 1
                key = line, imported[line]
            if key in seen:
                repeated += 1
            else:
                seen.add(key)
                yield judgement
    if repeated:
        log.warning(
            "%d verdicts are left out: the same judge had judged the same recordings before (a log "
            "that is given twice, or was written by two runs at once)",
            repeated,
        )


def by_rule(judgement: Judgement) -> bool:
    """Return whether no judge was asked, as an answer is silent and a contest's rule decided.

    Such a line has no recording on that side. One that was imported has none at all.
    """
    heard = judgement.answers
    return bool(heard.get("instruction")) and not (heard.get("first") and heard.get("second"))


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # `read` says what is wrong


def _votes(path: Path) -> Iterator[Judgement]:
    from s2s_tasks.arena.page.votes import votes  # SQLAlchemy takes half a second

    return votes(path)
