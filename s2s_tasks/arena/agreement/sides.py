"""Whose verdicts are compared: those of judges with those of people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from s2s_tasks.arena.agreement.measures import comparable
from s2s_tasks.arena.records import Judgement
from s2s_tasks.errors import S2STasksError


@dataclass(frozen=True)
class Sides:
    """Whose verdicts are compared."""

    judges: dict[str, list[Judgement]]
    people: list[Judgement]


def split(judgements: Sequence[Judgement], patterns: Sequence[str]) -> Sides:
    """Tell people from judges by their names; a pattern that is a name means this one alone.

    Raises:
        S2STasksError: when a pattern fits nobody.
    """
    judgements = comparable(judgements)
    names = sorted({judgement.judge for judgement in judgements})
    people: set[str] = set()
    for pattern in patterns:
        # A name may have brackets, which a pattern would read as a set of letters.
        meant = {pattern} & set(names) or {name for name in names if fnmatchcase(name, pattern)}
        if not meant:
            raise S2STasksError(
                f"--people {pattern}: nobody is called so; there are {', '.join(names) or 'none'}"
            )
        people |= meant
    return Sides(
        {name: [j for j in judgements if j.judge == name] for name in names if name not in people},
        [judgement for judgement in judgements if judgement.judge in people],
    )
