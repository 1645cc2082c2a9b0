"""Verdicts as numbers: who met whom on which instruction, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array

from s2s_tasks.arena.records import Criterion, Judgement, Winner
from s2s_tasks.errors import S2STasksError

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

SCORES: dict[Winner, float] = {"first": 1.0, "second": 0.0, "tie": 0.5, "both_bad": 0.5}
"""What the answer heard first gets of a battle."""


FURTHEST = 1e6
"""Ratio of weights beyond which nothing but the heaviest battles would count."""


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
        """Return weighted wins, a tie being half of one, of row over column.

        The shape is (systems, systems).
        """
        totals = np.zeros((len(self.systems), len(self.systems)))
        np.add.at(totals, (self.first, self.second), self.weight * self.score)
        np.add.at(totals, (self.second, self.first), self.weight * (1 - self.score))
        return totals

    def among(self, members: Numbers) -> Outcomes:
        """Return the battles of some systems, whose numbers ascend, with these alone."""
        inside = np.isin(self.first, members) & np.isin(self.second, members)
        return Outcomes(
            systems=tuple(self.systems[member] for member in members),
            first=np.searchsorted(members, self.first[inside]),
            second=np.searchsorted(members, self.second[inside]),
            score=self.score[inside],
            weight=self.weight[inside],
            cluster=np.unique(self.cluster[inside], return_inverse=True)[1],
        )

    def pairs(self) -> Pairs:
        """Return who won against whom on which instruction."""
        systems = len(self.systems)
        one, other = np.minimum(self.first, self.second), np.maximum(self.first, self.second)
        codes, place = np.unique(one * systems + other, return_inverse=True)
        for_one = np.where(self.first == one, self.score, 1 - self.score)
        wins = coo_array(
            (
                np.concatenate([self.weight * for_one, self.weight * (1 - for_one)]),
                (np.tile(self.cluster, 2), np.concatenate([place, place + len(codes)])),
            ),
            shape=(self.clusters, 2 * len(codes)),
        )
        return Pairs(systems, codes // systems, codes % systems, wins.tocsr())


@dataclass(frozen=True)
class Pairs:
    """Pairs of systems that met: most of many systems never meet most others."""

    systems: int
    one: Numbers
    """Of shape (pairs,): the one with the lower number."""
    other: Numbers
    by_instruction: csr_array
    """Weighted wins of shape (instructions, 2 pairs): of `one`, then of `other`."""

    @property
    def wins(self) -> Array:
        """On all instructions, of shape (1, 2, pairs): of `one`, then of `other`."""
        return np.asarray(self.by_instruction.sum(axis=0)).reshape(1, 2, -1)


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
        S2STasksError: when there are no judgements, or weights are too far apart.
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
    chances = np.array([battle.propensity if weighted else 1.0 for battle in battles])
    if chances.max() > FURTHEST * chances.min():
        raise S2STasksError(
            f"a pair was drawn with a probability of {chances.min():.1g}, others with up to "
            f"{chances.max():.1g}: weighted by one over it, all would rest on a few battles; rate "
            "without inverse propensity"
        )
    weight = 1 / chances
    return Outcomes(
        systems=tuple(systems),
        first=np.array([place[battle.first] for battle in battles]),
        second=np.array([place[battle.second] for battle in battles]),
        score=np.array([SCORES[judgement.winners[criterion]] for judgement in judgements]),
        weight=weight / weight.mean(),
        cluster=np.array([instructions[battle.instruction] for battle in battles]),
    )
