"""Bradley–Terry ratings as one would write them down, for tests: slow, and on whole matrices."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_array

from s2s_tasks.arena.ratings.outcomes import Array, Outcomes, Pairs

Flags = npt.NDArray[np.bool_]


def all_met(wins: Array) -> Pairs:
    """Return pairs of systems that all met on one instruction, from wins of row over column."""
    one, other = np.triu_indices(len(wins), 1)
    row = np.concatenate([wins[one, other], wins[other, one]])[None]
    return Pairs(len(wins), one, other, csr_array(row))


def likeliest(wins: Array) -> Array:
    """Return maximum-likelihood ratings by a general optimiser."""

    def loss(logs: Array) -> float:
        return float(np.sum(wins * np.logaddexp(0, logs[None, :] - logs[:, None])))

    logs = minimize(loss, np.zeros(len(wins)), method="BFGS", options={"gtol": 1e-8}).x
    scaled: Array = 1000 + 400 / math.log(10) * (logs - logs.mean())
    return scaled


def held_by_powers(wins: Array, met: Flags) -> tuple[Array, Flags]:
    """Add made-up ties between those that met and did not beat each other by any chain."""
    systems = len(wins)
    chains = np.linalg.matrix_power(np.eye(systems) + (wins > 0), systems) > 0
    circle = chains & chains.T
    sizes = circle.sum(axis=1)
    held = ~circle[sizes.argmax()] if sizes.max() > 1 else np.ones(systems, np.bool_)
    return wins + (met & ~circle) / 2, held


def resampled_ratings(outcomes: Outcomes, resamples: int, seed: int) -> Array:
    """Return ratings of resampled instructions, of shape (resamples, systems); all must be linked.

    With wins by instruction as one array of shape (instructions, systems, systems).
    """
    systems, count = len(outcomes.systems), outcomes.clusters
    wins = np.zeros((count, systems, systems))
    np.add.at(wins, (outcomes.cluster, outcomes.first, outcomes.second), outcomes.score)
    np.add.at(wins, (outcomes.cluster, outcomes.second, outcomes.first), 1 - outcomes.score)
    total = wins.sum(axis=0)
    times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), resamples)
    return np.array(
        [
            likeliest(held_by_powers(np.tensordot(row, wins, axes=1), total + total.T > 0)[0])
            for row in times
        ]
    )
