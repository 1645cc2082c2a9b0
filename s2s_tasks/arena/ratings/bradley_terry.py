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

from collections.abc import Iterator
from dataclasses import dataclass

import evalica
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from s2s_tasks.arena.ratings.outcomes import Array, Numbers, Outcomes, Pairs
from s2s_tasks.inference import CONFIDENCE, Interval

RESAMPLES = 1000
PRIOR = 1.0
"""Weight of a tied battle that is made up."""
FEW = 30
"""Battles of a system, or instructions, below which a rating is called uncertain."""

_ITERATIONS = 100
_AT_ONCE = 1_000_000  # numbers of resamples in an array: more would only fill the memory
_SAME = 1e-6  # rating points

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Rating:
    """Where one system stands among those it is linked to by battles."""

    system: str
    rating: Interval
    """Bounds are nan where resampling cannot tell them: it is held, or all resamples agree."""
    rank: int
    rank_low: int | None
    """None where bounds are nan, which those of the rank would only seem to know better."""
    rank_high: int | None
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
    total = outcomes.wins()
    _, labels = connected_components(total + total.T > 0, directed=False)
    found: list[Rating] = []
    for group, label in enumerate(np.argsort(-np.bincount(labels), kind="stable"), 1):
        own = outcomes.among(np.flatnonzero(labels == label))
        found += _rate_group(own, group, resamples, seed)
    return Fit(
        tuple(found),
        battles=len(outcomes.score),
        instructions=outcomes.clusters,
        effective=float(outcomes.weight.sum() ** 2 / np.sum(outcomes.weight**2)),
    )


def ratings(pairs: Pairs, wins: Array) -> Array:
    """Return maximum-likelihood ratings of shape (systems,).

    Args:
        pairs: who met.
        wins: of shape (2, pairs), as `hold` returns them.
    """
    winners = np.concatenate([pairs.one, pairs.other])
    losers = np.concatenate([pairs.other, pairs.one])
    weights = wins.ravel()
    won = weights > 0
    result = evalica.bradley_terry(
        winners[won].tolist(),
        losers[won].tolist(),
        [evalica.Winner.X] * int(won.sum()),
        index=pd.RangeIndex(pairs.systems),
        weights=weights[won].tolist(),
        tolerance=1e-8,
        limit=10_000,
    )
    strengths = np.asarray(result.scores.reindex(range(pairs.systems)), dtype=np.float64)
    return _scale(np.log(strengths))


def many_ratings(pairs: Pairs, wins: Array, start: Array) -> Array:
    """Return what `ratings` would, of shape (resamples, systems).

    Newton's method on all at once: calling evalica for each takes a hundred times as long.

    Args:
        pairs: who met.
        wins: of shape (resamples, 2, pairs), as `hold` returns them.
        start: ratings from which to look, of shape (systems,).
    """
    systems, one, other = pairs.systems, pairs.one, pairs.other
    ends = np.tile(np.arange(len(one)), 2), np.concatenate([one, other])
    shape = (len(one), systems)
    involved = coo_array((np.ones(2 * len(one)), ends), shape=shape).tocsr()
    signed = coo_array((np.repeat([1.0, -1.0], len(one)), ends), shape=shape).tocsr()
    diagonal = np.arange(systems)
    battles = wins.sum(axis=1)
    logs = np.tile((start - 1000) * np.log(10) / 400, (len(wins), 1))
    for _ in range(_ITERATIONS):
        chance = expit(logs[:, one] - logs[:, other])
        slope = (wins[:, 0] - battles * chance) @ signed
        information = battles * chance * (1 - chance)
        # Only differences count: the matrix of ones fixes the mean.
        curvature = np.full((len(wins), systems, systems), 1 / systems)
        curvature[:, one, other] -= information
        curvature[:, other, one] -= information
        curvature[:, diagonal, diagonal] += information @ involved
        step = np.linalg.solve(curvature, slope[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        logs += step / np.maximum(1, longest)
        if longest.max() < 1e-8:
            break
    return _scale(logs)


def hold(pairs: Pairs, wins: Array) -> tuple[Array, Flags]:
    """Add the made-up ties that wins need to have a maximum of likelihood, where they do.

    Args:
        pairs: who met; a chain of them must link all systems.
        wins: of shape (resamples, 2, pairs).

    Returns:
        The wins, and which systems the ties hold, of shape (resamples, systems): all outside the
        largest circle of systems each of which won against another of it.
    """
    count = len(wins)
    resample, place = np.nonzero(wins.reshape(count, -1))
    winners = np.concatenate([pairs.one, pairs.other])[place] + resample * pairs.systems
    losers = np.concatenate([pairs.other, pairs.one])[place] + resample * pairs.systems
    nodes = count * pairs.systems
    graph = coo_array((np.ones(len(place), np.int8), (winners, losers)), shape=(nodes, nodes))
    _, labels = connected_components(graph, connection="strong")
    sizes = np.bincount(labels)[labels].reshape(count, -1)
    circle = labels.reshape(count, -1)
    largest = np.take_along_axis(circle, sizes.argmax(axis=1)[:, None], axis=1)
    held = (circle != largest) | (sizes.max(axis=1, keepdims=True) == 1)
    apart = circle[:, pairs.one] != circle[:, pairs.other]
    return wins + PRIOR / 2 * apart[:, None, :], held


def _scale(logs: Array) -> Array:
    result: Array = (logs - logs.mean(axis=-1, keepdims=True)) * 400 / np.log(10) + 1000
    return result


def _rate_group(outcomes: Outcomes, group: int, resamples: int, seed: int) -> list[Rating]:
    pairs = outcomes.pairs()
    wins, held = hold(pairs, pairs.wins)
    estimates = ratings(pairs, wins[0])
    drawn = np.concatenate(
        [
            many_ratings(pairs, hold(pairs, resampled)[0], estimates)
            for resampled in _resampled(pairs, resamples, seed)
        ]
    )
    ranks = _ranks(drawn)
    levels = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    rank_low, rank_high = np.quantile(ranks, levels, axis=0, method="inverted_cdf")
    low, high = np.quantile(drawn, levels, axis=0)
    # A made-up tie would seem sure, and so would what no choice of instructions changes.
    unknown = held[0] | (np.ptp(drawn, axis=0) < _SAME)
    result = []
    for place, system in enumerate(outcomes.systems):
        first, second = outcomes.first == place, outcomes.second == place
        scores = np.concatenate([outcomes.score[first], 1 - outcomes.score[second]])
        estimate = float(estimates[place])
        # Resamples of few battles can all lie to one side of the estimate.
        bounds = min(float(low[place]), estimate), max(float(high[place]), estimate)
        told = not unknown[place]
        result.append(
            Rating(
                system=system,
                rating=Interval(estimate, *(bounds if told else (np.nan, np.nan))),
                rank=int(_ranks(estimates)[place]),
                rank_low=int(rank_low[place]) if told else None,
                rank_high=int(rank_high[place]) if told else None,
                battles=len(scores),
                wins=int(np.sum(scores == 1)),
                losses=int(np.sum(scores == 0)),
                ties=int(np.sum(scores == 0.5)),
                group=group,
                held=bool(held[0, place]),
                few=len(scores) < FEW,
            )
        )
    return sorted(result, key=lambda rating: (-rating.rating.estimate, rating.system))


def _resampled(pairs: Pairs, resamples: int, seed: int) -> Iterator[Array]:
    """Yield wins of as many instructions drawn with replacement, (resamples, 2, pairs) in all."""
    rng = np.random.default_rng(seed)
    count, columns = pairs.by_instruction.shape
    step = max(1, _AT_ONCE // max(count, columns, pairs.systems**2))
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        times = rng.multinomial(count, np.full(count, 1 / count), size)
        yield (times.astype(np.float64) @ pairs.by_instruction).reshape(size, 2, -1)


def _ranks(values: Array) -> Numbers:
    """Return ranks from 1 along the last axis, the highest first; equals share the better one."""
    better = values[..., None, :] > values[..., :, None] + 1e-6
    result: Numbers = 1 + better.sum(axis=-1)
    return result
