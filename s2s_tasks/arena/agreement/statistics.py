"""Cohen's kappa and Krippendorff's alpha, as functions on arrays, with bootstrap intervals.

Libraries compute one at a time; these take all resamples of a bootstrap at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from s2s_tasks.inference import CONFIDENCE, Interval
from s2s_tasks.inference.clusters import cluster_totals, resample

Array = npt.NDArray[np.float64]


def kappa_interval(
    one: npt.ArrayLike, other: npt.ArrayLike, clusters: Sequence[Hashable]
) -> Interval:
    """Return Cohen's kappa of two raters' labels, small integers of shape (units,)."""
    first, second = np.asarray(one), np.asarray(other)
    kinds = int(max(first.max(), second.max())) + 1
    cells = np.eye(kinds**2)[first * kinds + second]
    return _by_cluster(list(cells.T), clusters, lambda sums: kappa(_square(sums, kinds)))


def kappa(tables: Array) -> Array:
    """Return Cohen's kappa of contingency tables of shape (…, labels, labels).

    (p_o - p_e) / (1 - p_e), with p_e from the tables' margins (Cohen 1960, doi
    10.1177/001316446002000104); nan where p_e is 1.
    """
    shares = tables / tables.sum(axis=(-2, -1), keepdims=True)
    observed = np.trace(shares, axis1=-2, axis2=-1)
    expected = np.sum(shares.sum(axis=-1) * shares.sum(axis=-2), axis=-1)
    return _divide(observed - expected, 1 - expected)


def alpha_interval(counts: Array, clusters: Sequence[Hashable]) -> Interval:
    """Return Krippendorff's nominal alpha; `counts` as `coincidences` takes them."""
    kinds = counts.shape[1]
    cells = coincidences(counts).reshape(-1, kinds**2)
    return _by_cluster(list(cells.T), clusters, lambda sums: alpha(_square(sums, kinds)))


def same_interval(counts: Array, clusters: Sequence[Hashable]) -> Interval:
    """Return the share of pairs of verdicts on one unit that are the same, weighted as in alpha."""
    kinds = counts.shape[1]
    cells = coincidences(counts).reshape(-1, kinds**2)
    return _by_cluster(list(cells.T), clusters, lambda sums: _observed(_square(sums, kinds)))


def coincidences(counts: Array) -> Array:
    """Return each unit's coincidence matrix, of shape (units, values, values).

    Args:
        counts: how many verdicts of each value a unit has, of shape (units, values), two or more
            of a unit (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability").
    """
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(counts.shape[1]) * counts[:, None, :]
    result: Array = pairs / (counts.sum(axis=1) - 1)[:, None, None]
    return result


def alpha(tables: Array) -> Array:
    """Return Krippendorff's nominal alpha of summed coincidences of shape (…, values, values).

    nan where only one value occurs.
    """
    margins = tables.sum(axis=-1)
    total = margins.sum(axis=-1)
    observed = 1 - _observed(tables)
    expected = _divide(total**2 - np.sum(margins**2, axis=-1), total * (total - 1))
    return 1 - _divide(observed, expected)


def _observed(tables: Array) -> Array:
    return _divide(np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=(-2, -1)))


def _divide(top: Array, bottom: Array) -> Array:
    """Divide; what is over nothing but rounding is nan."""
    empty = np.full(np.shape(top), np.nan)
    result: Array = np.divide(top, bottom, out=empty, where=bottom > 1e-12)
    return result


def _square(sums: Array, kinds: int) -> Array:
    return sums.reshape(*sums.shape[:-1], kinds, kinds)


def _by_cluster(
    columns: Sequence[Array],
    clusters: Sequence[Hashable],
    statistic: Callable[[Array], Array],
) -> Interval:
    """Return a statistic of column sums, of shape (…, columns), and its percentile interval.

    Bounds are nan where resampling changes nothing: for one cluster, or verdicts all alike.
    """
    totals = cluster_totals(columns, clusters)
    estimate = float(statistic(totals[:, :-1].sum(axis=0)))
    drawn = statistic(resample(totals, seed=0)[:, :-1])
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn) or np.ptp(drawn) < 1e-12:
        return Interval(estimate, np.nan, np.nan)
    low, high = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(estimate, float(low), float(high))
