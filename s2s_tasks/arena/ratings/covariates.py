"""Ratings freed from what should not decide: being heard first, length, loudness.

A logistic regression of winning on who met whom, the order, and how much the two answers differ
(style control of Chatbot Arena, lmsys.org/blog/2024-08-28-style-control). With all covariates left
out it is the Bradley–Terry model.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import statsmodels.api as sm
from scipy.special import expit
from scipy.stats import norm
from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

from s2s_tasks.arena.ratings.bradley_terry import PRIOR, Fit, hold
from s2s_tasks.arena.ratings.outcomes import Array, Numbers, Pairs, tally
from s2s_tasks.arena.records import Criterion, Judgement
from s2s_tasks.inference import CONFIDENCE, Interval

POSITION = "heard first"
DEFAULT = ("seconds", "loudness")
"""Features of answers that are controlled for."""


@dataclass(frozen=True)
class Effect:
    """What one covariate does to the verdict."""

    name: str
    coefficient: Interval
    """Log-odds: of being heard first, or by a standard deviation of the difference. Bounds are nan
    where the battles do not tell."""
    win_rate: Interval
    """Of the favoured one of two answers that are otherwise alike."""


@dataclass(frozen=True)
class Control:
    """Ratings as if all answers were alike in the covariates."""

    effects: tuple[Effect, ...]
    ratings: dict[str, Interval]
    """By system, from the best; bounds are nan where made-up ties hold it."""
    plain: dict[str, float]
    """Ratings from the same battles without covariates, by system."""
    battles: int
    left_out: tuple[str, ...]
    """Features that were not measured of all answers, or do not vary."""


def control(
    judgements: Sequence[Judgement],
    fit: Fit,
    criterion: Criterion = "overall",
    features: Sequence[str] = DEFAULT,
    *,
    weighted: bool = False,
) -> Control:
    """Rate the largest group of linked systems with covariates, by maximum likelihood.

    A feature enters as (a - b) / (a + b) where it is negative of no answer, else as a - b,
    divided by its standard deviation. It is not centred: 0 stays for answers that are alike.
    Intervals are Wald's, from a covariance that is robust to the likeness of battles on
    one instruction (statsmodels). Each covariate has a log-F(1,1) prior, which holds it finite
    where it explains every verdict, and systems have made-up ties where `bradley_terry` needs some.

    Args:
        judgements: those that `fit` is of.
        fit: their ratings, which tell the largest group.
        criterion: which verdicts.
        features: names; `first_<name>` and `second_<name>` are looked up in the judgements.
        weighted: see `tally`.
    """
    group = {rating.system for rating in fit.ratings if rating.group == 1}
    inside = [judgement for judgement in judgements if judgement.battle.first in group]
    outcomes = tally(inside, criterion, weighted=weighted)
    systems = len(outcomes.systems)
    columns = {POSITION: np.ones(len(inside))}
    for name in features:
        difference = _difference(inside, name)
        if difference is not None:
            columns[name] = difference
    made_up, ties = _made_up(outcomes.pairs(), len(columns))
    meeting = np.eye(systems)[outcomes.first] - np.eye(systems)[outcomes.second]
    rows = np.concatenate([np.column_stack([meeting, *columns.values()]), made_up])
    score = np.concatenate([outcomes.score, np.full(len(made_up), 0.5)])
    weight = np.concatenate([outcomes.weight, ties])
    clusters = np.concatenate([outcomes.cluster, outcomes.clusters + np.arange(len(made_up))])
    estimates, covariance = _regress(rows, systems, score, weight, clusters)
    errors = np.sqrt(np.diag(covariance))
    scale = 400 / np.log(10)
    # Made-up ties would seem sure.
    held = {rating.system for rating in fit.ratings if rating.held}
    rated = {
        name: _interval(
            1000 + scale * estimates[place], np.nan if name in held else scale * errors[place]
        )
        for place, name in enumerate(outcomes.systems)
    }
    effects = []
    for place, name in enumerate(columns, systems):
        effect = _interval(estimates[place], errors[place])
        shares = (float(expit(value)) for value in (effect.estimate, effect.low, effect.high))
        effects.append(Effect(name, effect, Interval(*shares)))
    return Control(
        tuple(effects),
        dict(sorted(rated.items(), key=lambda item: -item[1].estimate)),
        {rating.system: rating.rating.estimate for rating in fit.ratings if rating.group == 1},
        len(inside),
        tuple(name for name in features if name not in columns),
    )


def _difference(judgements: Sequence[Judgement], name: str) -> Array | None:
    """Return how the first answers differ from the second, in standard deviations."""
    keys = (f"first_{name}", f"second_{name}")
    if not all(key in judgement.features for judgement in judgements for key in keys):
        return None
    first, second = (
        np.array([judgement.features[key] for judgement in judgements], np.float64) for key in keys
    )
    difference: Array = first - second
    if min(first.min(), second.min()) >= 0:
        total = first + second
        difference = np.divide(difference, total, out=np.zeros_like(total), where=total > 0)
    spread = difference.std()
    return difference / spread if spread > 1e-9 else None


def _made_up(pairs: Pairs, covariates: int) -> tuple[Array, Array]:
    """Return rows of ties and their weights: a row for each prior."""
    wins = pairs.wins
    held, _ = hold(pairs, wins)
    ties = np.flatnonzero((held - wins)[0, 0] > 0)
    rows = np.zeros((len(ties) + covariates, pairs.systems + covariates))
    rows[np.arange(len(ties)), pairs.one[ties]] = 1
    rows[np.arange(len(ties)), pairs.other[ties]] = -1
    rows[len(ties) :, pairs.systems :] = np.eye(covariates)
    return rows, np.full(len(rows), PRIOR)


def _regress(
    rows: Array, systems: int, score: Array, weight: Array, clusters: Numbers
) -> tuple[Array, Array]:
    """Return coefficients, those of systems with a mean of 0, and their covariance."""
    # Ratings have one degree of freedom less than there are systems.
    basis = np.eye(rows.shape[1])
    basis = np.delete(basis, systems - 1, axis=1)
    basis[systems - 1, : systems - 1] = -1
    model = sm.GLM(score, rows @ basis, family=sm.families.Binomial(), var_weights=weight)
    with warnings.catch_warnings():
        # The priors bound what would run away.
        warnings.simplefilter("ignore", PerfectSeparationWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        result = model.fit()
    # Liang and Zeger 1986 (doi 10.1093/biomet/73.1.13); statsmodels' own ignores weights in part.
    slopes = (rows @ basis) * (weight * (score - result.fittedvalues))[:, None]
    sums = np.zeros((clusters.max() + 1, slopes.shape[1]))
    np.add.at(sums, clusters, slopes)
    bread = basis @ result.cov_params()
    return basis @ result.params, bread @ (sums.T @ sums) @ bread.T


def _interval(estimate: float, error: float) -> Interval:
    # No error at all: battles do not tell, as where a system is always heard first.
    reach = norm.ppf((1 + CONFIDENCE) / 2) * (error if error > 1e-6 else np.nan)
    return Interval(float(estimate), float(estimate - reach), float(estimate + reach))
