"""Bradley–Terry ratings with intervals: the order of battles does not matter to them.

A rating is 400 log10(strength) + 1000, where strengths have a geometric mean of 1: on the scale of
Elo, a system that wins ten times as often as it loses stands 400 above its opponent. Ties are half
a win for both.

Instructions are resampled, each with all its battles; percentiles over the resamples bound the
intervals of ratings and of ranks.

Systems that no chain of battles links cannot be compared: each group of linked ones is rated and
ranked by itself. Where nobody of some systems ever lost to the others, likelihood has no maximum;
then any two of them that met get one more battle, a tie, which holds the ratings finite. That is
the log-F(1,1) prior of Greenland and Mansournia (2015, doi 10.1002/sim.6537) on their difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import evalica
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from s2s_tasks.arena.ratings.outcomes import Array, Numbers, Outcomes
from s2s_tasks.inference import CONFIDENCE, Interval

RESAMPLES = 1000
PRIOR = 1.0
"""Weight of a tied battle that is made up."""
FEW = 30
"""Battles of a system, or instructions, below which a rating is called uncertain."""

_ITERATIONS = 100

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rating:
    """Where one system stands among those it is linked to by battles."""

    system: str
    rating: Interval
    """Bounds are nan where all battles are on one instruction."""
    rank: int
    rank_low: int
    rank_high: int
    battles: int
    wins: int
    losses: int
    ties: int
    group: int
    """Of linked systems, the largest being 1; ratings of two groups do not compare."""
    held: bool
    """Whether made-up ties hold it finite: it never won, or never lost, outside its circle."""
    few: bool
    """Whether it rests on fewer than `FEW` battles."""

    @property
    def win_rate(self) -> float:
        """Share of battles won; a tie is half."""
        return (self.wins + self.ties / 2) / self.battles


@dataclass(frozen=True)
class Fit:
    """Ratings from one set of battles."""

    ratings: tuple[Rating, ...]
    """By group, and in it from the best."""
    battles: int
    instructions: int
    effective: float
    """Battles of equal weight that would tell as much (Kish): all, where they are unweighted."""

    @property
    def groups(self) -> int:
        """How many groups of linked systems there are."""
        return max(rating.group for rating in self.ratings)


def bradley_terry(outcomes: Outcomes, resamples: int = RESAMPLES, seed: int = 0) -> Fit:
    """Rate systems by maximum likelihood (evalica), with 95 % intervals."""
    by_instruction = outcomes.wins()
    total = by_instruction.sum(axis=0)
    _, labels = connected_components(total + total.T > 0, directed=False)
    found: list[Rating] = []
    for group, label in enumerate(np.argsort(-np.bincount(labels), kind="stable"), 1):
        members = np.flatnonzero(labels == label)
        own = by_instruction[:, members[:, None], members]
        own = own[own.any(axis=(1, 2))]
        found += _rate_group(outcomes, members, own, group, resamples, seed)
    return Fit(
        tuple(found),
        battles=len(outcomes.score),
        instructions=outcomes.clusters,
        effective=float(outcomes.weight.sum() ** 2 / np.sum(outcomes.weight**2)),
    )


def ratings(wins: Array) -> Array:
    """Return maximum-likelihood ratings of shape (systems,).

    Args:
        wins: of row over column, of shape (systems, systems), as `hold` returns them.
    """
    winners, losers = np.nonzero(wins)
    result = evalica.bradley_terry(
        winners.tolist(),
        losers.tolist(),
        [evalica.Winner.X] * len(winners),
        index=pd.RangeIndex(len(wins)),
        weights=wins[winners, losers].tolist(),
        tolerance=1e-8,
        limit=10_000,
    )
    strengths = np.asarray(result.scores.reindex(range(len(wins))), dtype=np.float64)
    return _scale(np.log(strengths))


def many_ratings(wins: Array, start: Array) -> Array:
    """Return what `ratings` would, for arrays of wins of shape (resamples, systems, systems).

    Newton's method on all at once: calling evalica for each takes a hundred times as long.

    Args:
        wins: as `hold` returns them.
        start: ratings from which to look, of shape (systems,).
    """
    battles = wins + np.swapaxes(wins, 1, 2)
    systems = wins.shape[1]
    diagonal = np.eye(systems, dtype=np.bool_)
    logs = np.tile((start - 1000) * np.log(10) / 400, (len(wins), 1))
    for _ in range(_ITERATIONS):
        chance = expit(logs[:, :, None] - logs[:, None, :])
        slope = np.sum(wins - battles * chance, axis=2)
        information = battles * chance * (1 - chance)
        # Only differences count: the matrix of ones fixes the mean.
        curvature = 1 / systems - information + diagonal * information.sum(axis=2)[:, :, None]
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        logs += step / np.maximum(1, longest)
        if longest.max() < 1e-8:
            break
    return _scale(logs)


def hold(wins: Array, met: Flags) -> tuple[Array, Flags]:
    """Add the made-up ties that wins need to have a maximum of likelihood, where they do.

    Args:
        wins: of row over column, of shape (…, systems, systems).
        met: which systems ever met, of shape (systems, systems); a chain of them must link all.

    Returns:
        The wins, and which systems the ties hold, of shape (…, systems): all outside the largest
        circle of systems each of which won against another of it.
    """
    systems = wins.shape[-1]
    reached = (wins > 0) | np.eye(systems, dtype=np.bool_)
    for _ in range(max(1, (systems - 1).bit_length())):
        reached = np.matmul(reached.astype(np.float64), reached) > 0
    circle = reached & np.swapaxes(reached, -1, -2)
    sizes = circle.sum(axis=-1)
    largest = np.take_along_axis(circle, sizes.argmax(axis=-1)[..., None, None], axis=-2)
    held = ~largest[..., 0, :] | (sizes.max(axis=-1, keepdims=True) == 1)
    return wins + PRIOR / 2 * (met & ~circle), held


def _scale(logs: Array) -> Array:
    result: Array = (logs - logs.mean(axis=-1, keepdims=True)) * 400 / np.log(10) + 1000
    return result


def _rate_group(
    outcomes: Outcomes,
    members: Numbers,
    by_instruction: Array,
    group: int,
    resamples: int,
    seed: int,
) -> list[Rating]:
    total = by_instruction.sum(axis=0)
    met = total + total.T > 0
    wins, held = hold(total, met)
    estimates = ratings(wins)
    resampled, _ = hold(_resample(by_instruction, resamples, seed), met)
    drawn = many_ratings(resampled, estimates)
    ranks = _ranks(drawn)
    levels = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    rank_low, rank_high = np.quantile(ranks, levels, axis=0, method="inverted_cdf")
    low, high = np.quantile(drawn, levels, axis=0)
    if len(by_instruction) < 2:
        low, high = np.full((2, len(members)), np.nan)
    result = []
    for place, system in enumerate(members):
        first, second = outcomes.first == system, outcomes.second == system
        scores = np.concatenate([outcomes.score[first], 1 - outcomes.score[second]])
        result.append(
            Rating(
                system=outcomes.systems[system],
                # Resamples of few battles can all lie to one side of the estimate.
                rating=Interval(
                    float(estimates[place]),
                    float(np.minimum(low[place], estimates[place])),
                    float(np.maximum(high[place], estimates[place])),
                ),
                rank=int(_ranks(estimates)[place]),
                rank_low=int(rank_low[place]),
                rank_high=int(rank_high[place]),
                battles=len(scores),
                wins=int(np.sum(scores == 1)),
                losses=int(np.sum(scores == 0)),
                ties=int(np.sum(scores == 0.5)),
                group=group,
                held=bool(held[place]),
                few=len(scores) < FEW,
            )
        )
    return sorted(result, key=lambda rating: (-rating.rating.estimate, rating.system))


def _resample(by_instruction: Array, resamples: int, seed: int) -> Array:
    """Return wins of as many instructions drawn with replacement, (resamples, systems, systems)."""
    count = len(by_instruction)
    times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
    return np.asarray(np.tensordot(times, by_instruction, axes=1), dtype=np.float64)


def _ranks(values: Array) -> Numbers:
    """Return ranks from 1 along the last axis, the highest first; equals share the better one."""
    better = values[..., None, :] > values[..., :, None] + 1e-6
    result: Numbers = 1 + better.sum(axis=-1)
    return result
