"""Elo ratings as S2S-Arena publishes them (arXiv 2503.05085), and what their order does to them."""

from __future__ import annotations

from dataclasses import dataclass

import evalica
import numpy as np
import pandas as pd

from s2s_tasks.arena.ratings.outcomes import Array, Numbers, Outcomes

START = 1000.0
K = 32.0
SCALE = 400.0
SHUFFLES = 100


@dataclass(frozen=True)
class Elo:
    """Ratings of shape (systems,). They depend on the order of battles, and have no ties."""

    published: Array
    """In the order of the log."""
    mean: Array
    """Over shuffles of the same battles."""
    spread: Array
    """Standard deviation over shuffles."""
    ties: int
    """Battles left out, both bad ones among them."""


def elo(outcomes: Outcomes, shuffles: int = SHUFFLES, seed: int = 0) -> Elo:
    """Rate systems one decisive battle after another.

    R' = R + 32 (S - 1 / (1 + 10^((R_other - R) / 400))), from 1000 on; what one gains the other
    loses, so that the sum stays. Weights do not count.
    """
    decisive = np.flatnonzero(outcomes.score != 0.5)
    rng = np.random.default_rng(seed)
    shuffled = np.array([_rate(outcomes, rng.permutation(decisive)) for _ in range(shuffles)])
    return Elo(
        published=_rate(outcomes, decisive),
        mean=shuffled.mean(axis=0),
        spread=shuffled.std(axis=0, ddof=1),
        ties=len(outcomes.score) - len(decisive),
    )


def _rate(outcomes: Outcomes, order: Numbers) -> Array:
    systems = len(outcomes.systems)
    if not len(order):
        return np.full(systems, START)
    winners = np.where(outcomes.score[order] == 1, evalica.Winner.X, evalica.Winner.Y)
    result = evalica.elo(
        outcomes.first[order].tolist(),
        outcomes.second[order].tolist(),
        winners.tolist(),
        index=pd.RangeIndex(systems),
        initial=START,
        base=10.0,
        scale=SCALE,
        k=K,
    )
    return np.asarray(result.scores.reindex(range(systems)), dtype=np.float64)
