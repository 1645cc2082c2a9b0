"""Verdicts as numbers: who met whom on which instruction, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from s2s_tasks.arena.records import Criterion, Judgement, Winner
from s2s_tasks.errors import S2STasksError

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

SCORES: dict[Winner, float] = {"first": 1.0, "second": 0.0, "tie": 0.5, "both_bad": 0.5}
"""What the answer heard first gets of a battle."""


@dataclass(frozen=True)
class Selection:
    """The judgements that are rated, and how many are not."""

    criterion: Criterion
    judgements: tuple[Judgement, ...]
    """In the order of the log."""
    probes: int
    unreadable: int
    """Without a verdict on the criterion."""


def select(judgements: Iterable[Judgement], criterion: Criterion = "overall") -> Selection:
    """Leave out probes, and judgements without a verdict on the criterion.

    Raises:
        S2STasksError: when a system met itself, but for a probe.
    """
    rated = []
    probes = unreadable = 0
    for judgement in judgements:
        battle = judgement.battle
        if battle.probe is not None:
            probes += 1
        elif criterion not in judgement.winners:
            unreadable += 1
        elif battle.first == battle.second:
            raise S2STasksError(
                f"{battle.first} met itself on instruction {battle.instruction}, and not as a "
                "probe; take this battle out of the log"
            )
        else:
            rated.append(judgement)
    return Selection(criterion, tuple(rated), probes, unreadable)


@dataclass(frozen=True)
class Outcomes:
    """Battles as arrays of shape (battles,)."""

    systems: tuple[str, ...]
    """By name; the arrays count them from 0."""
    first: Numbers
    """System heard first."""
    second: Numbers
    score: Array
    """What `first` gets: 1, 0.5 or 0."""
    weight: Array
    """With a mean of 1."""
    cluster: Numbers
    """Number of the instruction; its battles, in both orders, are resampled together."""

    @property
    def clusters(self) -> int:
        """How many instructions there are."""
        return len(np.unique(self.cluster))

    def wins(self) -> Array:
        """Return weighted wins, a tie being half of one, by instruction, of row over column.

        The shape is (instructions, systems, systems).
        """
        systems = len(self.systems)
        totals = np.zeros((self.clusters, systems, systems))
        np.add.at(totals, (self.cluster, self.first, self.second), self.weight * self.score)
        np.add.at(totals, (self.cluster, self.second, self.first), self.weight * (1 - self.score))
        return totals


def tally(
    judgements: Sequence[Judgement], criterion: Criterion = "overall", *, weighted: bool = False
) -> Outcomes:
    """Return the outcomes of judgements that `select` has selected.

    Args:
        judgements: one or more.
        criterion: which verdicts.
        weighted: whether a battle counts as one over the probability with which its pair was
            drawn, instead of each the same.

    Raises:
        S2STasksError: when there are no judgements.
    """
    if not judgements:
        raise S2STasksError(
            f"no battle has a readable verdict on {criterion!r}; rate another log, judge or "
            "criterion"
        )
    battles = [judgement.battle for judgement in judgements]
    systems = sorted({name for battle in battles for name in (battle.first, battle.second)})
    place = {name: number for number, name in enumerate(systems)}
    instructions = {
        name: number for number, name in enumerate(dict.fromkeys(b.instruction for b in battles))
    }
    weight = np.array([1 / battle.propensity if weighted else 1.0 for battle in battles])
    return Outcomes(
        systems=tuple(systems),
        first=np.array([place[battle.first] for battle in battles]),
        second=np.array([place[battle.second] for battle in battles]),
        score=np.array([SCORES[judgement.winners[criterion]] for judgement in judgements]),
        weight=weight / weight.mean(),
        cluster=np.array([instructions[battle.instruction] for battle in battles]),
    )
