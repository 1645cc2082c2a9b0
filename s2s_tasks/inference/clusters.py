"""Questions summed by cluster, and clusters resampled.

A mean over questions is a ratio of two sums over clusters: of values and of counts. Totals are
of shape (clusters, columns), one column for each sum.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Clusters = Sequence[Hashable] | npt.NDArray[Any]

RESAMPLES = 9999
"""Draws of a bootstrap, and of a permutation test that cannot try all sign flips."""

_DRAWS_AT_ONCE = 100_000  # fits a core's cache: four times as fast as filling the memory


def finite_values(values: npt.ArrayLike) -> Array:
    """Return values as an array of shape (questions,).

    Raises:
        ValueError: when there are none, or some are not finite, or the shape is another.
    """
    checked = np.asarray(values, dtype=np.float64)
    if checked.ndim != 1 or not len(checked) or not np.isfinite(checked).all():
        raise ValueError("values must be a one-dimensional array of one or more finite numbers")
    return checked


def are_binary(values: Array) -> bool:
    """Whether every value is 0 or 1."""
    return bool(np.isin(values, (0.0, 1.0)).all())


def are_shares(values: Array) -> bool:
    """Whether every value lies in [0, 1]."""
    return bool(np.all((values >= 0) & (values <= 1)))


def cluster_totals(columns: Sequence[Array], clusters: Clusters | None) -> Array:
    """Sum columns of shape (questions,) and the count of questions, which comes last, by cluster.

    Clusters stand in the order of their first question; None makes each question its own.

    Raises:
        ValueError: when `clusters` is not as long as the columns.
    """
    rows = np.stack([*columns, np.ones_like(columns[0])], axis=1)
    if clusters is None:
        return rows
    if len(clusters) != len(rows):
        raise ValueError(f"{len(clusters)} clusters cannot belong to {len(rows)} questions")
    place = {label: index for index, label in enumerate(dict.fromkeys(clusters))}
    totals = np.zeros((len(place), rows.shape[1]))
    np.add.at(totals, [place[label] for label in clusters], rows)
    return totals


def residuals(totals: Array) -> Array:
    """Return how far the first of two columns is from what their ratio foretells of the second."""
    top, bottom = totals.T
    result: Array = top - bottom * (top.sum() / bottom.sum())
    return result


def lack_spread(totals: Array) -> bool:
    """Whether all clusters have the same ratio, so that resampling them would change nothing."""
    return len(totals) < 2 or bool(np.allclose(residuals(totals), 0, atol=1e-12))


def standard_error(totals: Array) -> float:
    """Return the cluster-robust standard error of a mean over questions; nan for one cluster.

    That of Miller 2024 (arXiv 2411.00640) times sqrt(clusters / (clusters - 1)), with which it is
    the sample's standard deviation over sqrt(questions) when each question is its own cluster.
    """
    count = len(totals)
    if count < 2:
        return np.nan
    squares = np.sum(residuals(totals) ** 2) * count / (count - 1)
    return float(np.sqrt(squares) / totals[:, 1].sum())


def resample(totals: Array, seed: int) -> Array:
    """Return the sum of as many clusters drawn with replacement, of shape (RESAMPLES, columns).

    scipy.stats.bootstrap would draw anew for every ratio, and its jackknife grows quadratically.
    """
    rng = np.random.default_rng(seed)
    count = len(totals)
    _, first, times = np.unique(totals, axis=0, return_index=True, return_counts=True)
    if 20 * len(first) < count:
        # Few kinds of clusters: how often each is drawn is quicker to draw than every cluster.
        # In the order of appearance, so that swapping the modes draws the same questions.
        order = np.argsort(first)
        drawn = rng.multinomial(count, times[order] / count, size=RESAMPLES)
        return np.asarray(drawn @ totals[first[order]], dtype=np.float64)
    sums = []
    for size in batches(count):
        chosen = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        drawn = np.bincount(chosen.ravel(), minlength=size * count).reshape(size, count)
        sums.append(drawn @ totals)
    return np.concatenate(sums)


def batches(width: int) -> Iterator[int]:
    """Split RESAMPLES rows of a width into numbers of rows that are quick to work on."""
    step = max(1, _DRAWS_AT_ONCE // width)
    for start in range(0, RESAMPLES, step):
        yield min(step, RESAMPLES - start)
