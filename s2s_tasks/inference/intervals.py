"""Confidence intervals of means and of ratios of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri
from statsmodels.stats.proportion import proportion_confint

from s2s_tasks.inference.clusters import (
    Array,
    Clusters,
    are_binary,
    are_shares,
    cluster_totals,
    finite_values,
    lack_spread,
    resample,
    residuals,
)

CONFIDENCE = 0.95
"""Level of every interval."""


@dataclass(frozen=True)
class Interval:
    """An estimate and its confidence interval; nan where the data do not tell."""

    estimate: float
    low: float
    high: float


def mean_interval(
    values: npt.ArrayLike, clusters: Clusters | None = None, seed: int = 0
) -> Interval:
    """Return the mean of values of shape (questions,), and its interval.

    Zeros and ones, each its own cluster, get Wilson's interval (statsmodels). All else is
    bootstrapped by cluster, as `ratio_interval` says.

    Raises:
        ValueError: when there are no values, or some are not finite, or `clusters` is not as long.
    """
    checked = finite_values(values)
    totals = cluster_totals([checked], clusters)
    if are_binary(checked) and len(totals) == len(checked):
        return _around(float(checked.mean()), *_wilson(int(checked.sum()), len(checked)))
    span = (0.0, 1.0) if are_shares(checked) else None
    return ratio_interval(totals, resample(totals, seed), span)


def ratio_interval(
    totals: Array, draws: Array, span: tuple[float, float] | None = None
) -> Interval:
    """Return the ratio of two sums over clusters and its BCa bootstrap interval.

    `totals` is of shape (clusters, 2), with a positive second sum, and `draws` are its resamples,
    of shape (RESAMPLES, 2). The acceleration is that of the empirical influence function (Efron
    1987, doi 10.1080/01621459.1987.10478410), which of a ratio of sums needs no jackknife. Like
    every bootstrap, the interval is somewhat narrow for fewer than about 30 clusters.

    Clusters that all have the same ratio would bootstrap to an interval without width. `span`,
    where single ratios can lie at all, bounds it instead: of n clusters none was different, which
    Wilson's interval allows for a share of up to z² / (n + z²), and those may lie at either end.
    Without a span, and for a single cluster, bounds are nan.
    """
    estimate = float(_divide(totals.sum(axis=0)))
    if lack_spread(totals):
        if len(totals) < 2 or span is None:
            return Interval(estimate, np.nan, np.nan)
        _, unseen = _wilson(0, len(totals))
        low, high = (estimate + unseen * (end - estimate) for end in span)
        return _around(estimate, low, high)
    ratios = _divide(draws)
    low, high = np.quantile(
        ratios, _bca_levels(ratios - estimate, residuals(totals)), method="inverted_cdf"
    )
    return _around(estimate, float(low), float(high))


def _around(estimate: float, low: float, high: float) -> Interval:
    # By rounding, or with a handful of clusters, bounds can miss the estimate itself.
    return Interval(estimate, min(low, estimate), max(high, estimate))


def _divide(sums: Array) -> Array:
    """Divide sums of shape (…, 2).

    As a denominator vanishes a share grows without bound; past that it does not turn negative.
    """
    top, bottom = sums[..., 0], sums[..., 1]
    endless = np.where(top == 0, 0.0, np.copysign(np.inf, top))
    quotient: Array = np.divide(top, bottom, out=endless, where=bottom > 0)
    return quotient


def _bca_levels(deviations: Array, influence: Array) -> Array:
    # Rounded, so that equal sums taken in another order tie.
    signs = np.sign(np.round(deviations, 12))
    bias = ndtri(np.mean(signs < 0) + np.mean(signs == 0) / 2)
    acceleration = np.sum(influence**3) / (6 * np.sum(influence**2) ** 1.5)
    shifted = bias + ndtri([(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    levels: Array = ndtr(bias + shifted / (1 - acceleration * shifted))
    return levels


def _wilson(successes: int, count: int) -> tuple[float, float]:
    low, high = proportion_confint(successes, count, alpha=1 - CONFIDENCE, method="wilson")
    return float(low), float(high)
