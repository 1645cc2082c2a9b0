"""What is lost by hearing instead of reading, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import norm
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from s2s_tasks.inference.clusters import (
    RESAMPLES,
    Array,
    Clusters,
    are_binary,
    are_shares,
    batches,
    cluster_totals,
    finite_values,
    lack_spread,
    resample,
    standard_error,
)
from s2s_tasks.inference.intervals import Interval, ratio_interval

Test = Literal["exact McNemar test", "sign-flip permutation test"]


@dataclass(frozen=True)
class Gap:
    """What is lost by hearing instead of reading."""

    difference: Interval
    """Mean of reading minus hearing."""
    standard_error: float
    """Of the mean difference between paired questions; nan for a single cluster."""
    relative_loss: Interval
    """The difference as a share of what reading has above chance; nan where the interval of that
    reaches 0. Only the bounds are nan where every cluster has lost the same share."""
    questions: int
    p_value: float
    """Two-sided, of the hypothesis that hearing is as good as reading."""
    test: Test


def paired_gap(
    reading: npt.ArrayLike,
    hearing: npt.ArrayLike,
    clusters: Clusters | None = None,
    chance: float = 0.5,
    seed: int = 0,
) -> Gap:
    """Return what is lost by hearing the questions that were read, both of shape (questions,).

    `chance` is the mean of a model that cannot tell endings apart; of margins it is 0. Intervals
    are BCa bootstraps of the same resampled clusters. The standard error is lm-eval's
    `mean_stderr` of the differences, or the cluster-robust one. Zeros and ones, each its own
    cluster, are tested by McNemar's exact test (statsmodels); all else by flipping the signs of
    clusters' summed differences, in every way up to 13 of them and at random beyond.

    Raises:
        ValueError: when the arrays differ in length, are empty or hold numbers that are not
            finite, or `clusters` is not as long.
    """
    read, heard = finite_values(reading), finite_values(hearing)
    if len(read) != len(heard):
        raise ValueError(f"{len(read)} values of reading cannot pair with {len(heard)} of hearing")
    totals = cluster_totals([read - heard, read - chance], clusters)
    draws = resample(totals, seed)
    lost, lost_of_above, above = [0, 2], [0, 1], [1, 2]
    shares = are_shares(read) and are_shares(heard)
    above_chance = ratio_interval(
        totals[:, above], draws[:, above], (-chance, 1 - chance) if shares else None
    )
    test: Test
    if len(totals) == len(read) and are_binary(read) and are_binary(heard):
        test, p_value = "exact McNemar test", _mcnemar(read, heard)
    else:
        test, p_value = "sign-flip permutation test", _sign_flip(totals[:, 0], seed)
    return Gap(
        difference=ratio_interval(totals[:, lost], draws[:, lost], (-1, 1) if shares else None),
        standard_error=standard_error(totals[:, lost]),
        relative_loss=ratio_interval(totals[:, lost_of_above], draws[:, lost_of_above])
        if above_chance.low > 0
        else Interval(np.nan, np.nan, np.nan),
        questions=len(read),
        p_value=p_value,
        test=test,
    )


def minimum_detectable_gap(
    differences: npt.ArrayLike,
    clusters: Clusters | None = None,
    power: float = 0.8,
    level: float = 0.05,
) -> float:
    """Return the smallest true gap that a two-sided test at `level` finds with `power`.

    The standard error of the mean of differences of shape (questions,), times z(1 - level / 2) +
    z(power) (Bloom 1995, doi 10.1177/0193841X9501900504; for paired questions, the power analysis
    of Miller 2024, arXiv 2411.00640). It is nan for a single cluster, and for equal differences,
    which do not tell how much differences vary.

    Raises:
        ValueError: when there are no differences, or some are not finite, or `clusters` is not as
            long.
    """
    totals = cluster_totals([finite_values(differences)], clusters)
    if lack_spread(totals):
        return np.nan
    return float((norm.ppf(1 - level / 2) + norm.ppf(power)) * standard_error(totals))


def holm(p_values: npt.ArrayLike) -> Array:
    """Return Holm's adjusted p-values, of the same shape (tests,); nan is no test and stays nan.

    Rejecting those below a level keeps the chance of any false alarm below it (Holm 1979, Scand.
    J. Statist. 6:65-70; statsmodels).
    """
    adjusted = np.array(p_values, dtype=np.float64)
    tested = ~np.isnan(adjusted)
    if tested.any():
        adjusted[tested] = multipletests(adjusted[tested], method="holm")[1]
    return adjusted


def _mcnemar(read: Array, heard: Array) -> float:
    table = np.zeros((2, 2), dtype=int)
    np.add.at(table, (read.astype(int), heard.astype(int)), 1)
    return float(mcnemar(table, exact=True).pvalue)


def _sign_flip(differences: Array, seed: int) -> float:
    """Return the p-value of a permutation test of paired differences.

    The test of scipy.stats.permutation_test, which takes 6 s for 5,000 questions.
    """
    # What is 0 but for rounding has no sign to flip; equal sums in another order tie.
    kept = differences[np.abs(differences) > 1e-12]
    total = kept.sum()
    least = abs(total) - 1e-9
    if 2 ** len(kept) <= RESAMPLES:
        flips = np.arange(2 ** len(kept))[:, None] >> np.arange(len(kept)) & 1
        return float(np.mean(np.abs(total - 2 * flips @ kept) >= least))
    rng = np.random.default_rng(seed)
    extreme = 0
    for size in batches(len(kept)):
        flips = rng.integers(2, size=(size, len(kept)), dtype=np.bool_)
        extreme += int(np.sum(np.abs(total - 2 * flips.astype(np.float64) @ kept) >= least))
    return (extreme + 1) / (RESAMPLES + 1)
