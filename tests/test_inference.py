"""Intervals and tests: by hand, against scipy and statsmodels, as properties, in simulation."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest
import scipy.stats
import statsmodels.api
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from lm_eval.api.metrics import mean_stderr
from statsmodels.stats.power import NormalIndPower

from s2s_tasks.inference import (
    Interval,
    calibration,
    holm,
    mean_interval,
    minimum_detectable_gap,
    paired_gap,
)

pytestmark = pytest.mark.filterwarnings("error")

fast = settings(max_examples=25)
sixths = st.integers(0, 6).map(lambda count: count / 6)
margins = st.integers(-4000, 4000).map(lambda count: count / 1000)
value_pairs = st.one_of(
    st.lists(st.tuples(values, values), min_size=1, max_size=12)
    for values in (st.sampled_from([0.0, 1.0]), sixths, margins)
)


def bounds(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


def answers(right: dict[tuple[int, int], int]) -> tuple[np.ndarray, np.ndarray]:
    """Zeros and ones, from counts by (read right, heard right)."""
    pairs = np.array([pair for pair, count in right.items() for _ in range(count)], dtype=float)
    return pairs[:, 0], pairs[:, 1]


# Means


def test_wilson_by_hand() -> None:
    n, p, z = 10, 0.8, 1.959964
    middle = p + z**2 / (2 * n)
    reach = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    expected = (middle - reach) / (1 + z**2 / n), (middle + reach) / (1 + z**2 / n)
    interval = mean_interval([1.0] * 8 + [0.0] * 2)
    assert interval.estimate == 0.8
    assert bounds(interval) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["margins", "thirds"])
def test_the_bootstrap_is_scipys(kind: str) -> None:
    rng = np.random.default_rng(1)
    values = rng.exponential(size=60) if kind == "margins" else rng.integers(0, 4, 600) / 3
    theirs = scipy.stats.bootstrap((values,), np.mean, rng=np.random.default_rng(2))
    interval = mean_interval(values)
    assert interval.estimate == pytest.approx(values.mean())
    assert bounds(interval) == pytest.approx(
        theirs.confidence_interval, abs=0.1 * theirs.standard_error
    )


def test_the_bootstrap_of_clusters_is_scipys_of_their_sums_and_counts() -> None:
    rng = np.random.default_rng(3)
    clusters = rng.integers(0, 40, 150)
    values = rng.normal(size=150) + rng.normal(size=40)[clusters]
    sums = np.bincount(clusters, weights=values)
    counts = np.bincount(clusters)
    theirs = scipy.stats.bootstrap(
        (sums, counts),
        lambda top, bottom, axis: top.sum(axis) / bottom.sum(axis),
        paired=True,
        vectorized=True,
        rng=np.random.default_rng(4),
    )
    interval = mean_interval(values, [f"story {cluster}" for cluster in clusters])
    assert interval.estimate == pytest.approx(values.mean())
    assert bounds(interval) == pytest.approx(
        theirs.confidence_interval, abs=0.1 * theirs.standard_error
    )
    alone = mean_interval(values)
    assert interval.high - interval.low > 1.3 * (alone.high - alone.low)


def test_equal_values_have_an_interval_with_width() -> None:
    all_right = mean_interval([1.0] * 20)
    unseen = 1 - all_right.low
    assert unseen == pytest.approx(1.959964**2 / (20 + 1.959964**2))
    assert bounds(mean_interval([1.0] * 40, np.arange(40) // 2)) == pytest.approx(bounds(all_right))
    assert bounds(mean_interval([2 / 3] * 20)) == pytest.approx(
        (2 / 3 * (1 - unseen), 2 / 3 + unseen / 3)
    )


@pytest.mark.parametrize(
    ("values", "clusters"),
    [([-0.7], None), ([2 / 3], None), ([2.5, 2.5, 2.5], None), ([1.0, 0.0, 1.0], ["a"] * 3)],
)
def test_what_does_not_tell_its_spread_has_no_bounds(
    values: list[float], clusters: list[str] | None
) -> None:
    interval = mean_interval(values, clusters)
    assert interval.estimate == pytest.approx(np.mean(values))
    assert np.isnan(bounds(interval)).all()


@fast
@given(value_pairs)
@example([(0.0, 0.0)] * 3)
def test_an_interval_contains_its_estimate(pairs: list[tuple[float, float]]) -> None:
    reading, hearing = np.array(pairs).T
    gap = paired_gap(reading, hearing)
    for interval in (mean_interval(reading), gap.difference, gap.relative_loss):
        if not math.isnan(interval.low):
            assert interval.low <= interval.estimate <= interval.high


# Gaps


def test_a_gap_by_hand() -> None:
    gap = paired_gap(*answers({(1, 1): 60, (1, 0): 20, (0, 1): 5, (0, 0): 15}))
    assert gap.questions == 100
    assert gap.difference.estimate == pytest.approx(0.15)
    assert gap.standard_error == pytest.approx(math.sqrt((0.25 - 0.15**2) / 99))
    assert gap.relative_loss.estimate == pytest.approx(0.15 / (0.80 - 0.5))
    assert gap.relative_loss.low > 0.15
    assert gap.test == "exact McNemar test"
    assert gap.p_value == pytest.approx(scipy.stats.binomtest(20, 25).pvalue)


def test_mcnemar_by_hand() -> None:
    gap = paired_gap(*answers({(1, 0): 9, (0, 1): 1, (1, 1): 30}))
    assert gap.p_value == pytest.approx(2 * (1 + 10) / 2**10)


@fast
@given(value_pairs.filter(lambda pairs: len(pairs) > 1))
def test_the_standard_error_is_lm_evals(pairs: list[tuple[float, float]]) -> None:
    reading, hearing = np.array(pairs).T
    expected = mean_stderr((reading - hearing).tolist())
    assert paired_gap(reading, hearing).standard_error == pytest.approx(expected, abs=1e-12)


def test_the_standard_error_of_clusters_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 20, 100)
    reading = rng.normal(size=100)
    hearing = reading + rng.normal(size=20)[clusters]
    fit = statsmodels.api.OLS(reading - hearing, np.ones(100)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}
    )
    assert paired_gap(reading, hearing, clusters).standard_error == pytest.approx(fit.bse[0])


@fast
@given(value_pairs)
def test_swapping_the_modes_turns_the_sign(pairs: list[tuple[float, float]]) -> None:
    reading, hearing = np.array(pairs).T
    one, other = paired_gap(reading, hearing), paired_gap(hearing, reading)
    assert one.difference.estimate == pytest.approx(-other.difference.estimate)
    assert bounds(one.difference) == pytest.approx(
        (-other.difference.high, -other.difference.low), nan_ok=True
    )
    assert one.standard_error == pytest.approx(other.standard_error, nan_ok=True)
    assert (one.p_value, one.test) == (other.p_value, other.test)


def test_swapping_the_modes_turns_the_sign_of_many_questions() -> None:
    reading, hearing = answers({(1, 1): 60, (1, 0): 20, (0, 1): 5, (0, 0): 15})
    one, other = paired_gap(reading, hearing).difference, paired_gap(hearing, reading).difference
    assert bounds(one) == pytest.approx((-other.high, -other.low))


@fast
@given(value_pairs)
def test_clusters_of_one_are_no_clusters(pairs: list[tuple[float, float]]) -> None:
    reading, hearing = np.array(pairs).T
    alone = [("story", index) for index in range(len(pairs))]
    assert repr(paired_gap(reading, hearing, alone)) == repr(paired_gap(reading, hearing))
    assert repr(mean_interval(reading, alone)) == repr(mean_interval(reading))


@fast
@given(st.lists(st.tuples(margins, margins), min_size=2, max_size=8))
def test_copies_of_questions_are_no_news(pairs: list[tuple[float, float]]) -> None:
    reading, hearing = np.array(pairs).T
    once = paired_gap(reading, hearing, chance=0.0)
    thrice = paired_gap(
        np.tile(reading, 3), np.tile(hearing, 3), list(range(len(pairs))) * 3, chance=0.0
    )
    assert thrice.questions == 3 * once.questions
    assert thrice.standard_error == pytest.approx(once.standard_error)
    assert thrice.p_value == once.p_value
    assert bounds(thrice.difference) == pytest.approx(bounds(once.difference), nan_ok=True)


@fast
@given(st.lists(sixths.map(lambda value: value - 0.5), min_size=1, max_size=8))
def test_few_questions_are_tested_exactly(differences: list[float]) -> None:
    hearing = np.full(len(differences), 0.5)
    observed = abs(sum(differences))
    flipped = [
        abs(sum(sign * difference for sign, difference in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = np.mean([total >= observed - 1e-9 for total in flipped])
    # Margins, so that McNemar's test is out of the question.
    gap = paired_gap(hearing + differences + 7, hearing + 7)
    assert gap.test == "sign-flip permutation test"
    assert gap.p_value == pytest.approx(expected)


@pytest.mark.parametrize("count", [10, 200])
def test_the_permutation_test_is_scipys(count: int) -> None:
    differences = np.random.default_rng(6).normal(1.5 / math.sqrt(count), 1, count)
    theirs = scipy.stats.permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        rng=np.random.default_rng(7),
    )
    assert 0.01 < theirs.pvalue < 0.5
    p_value = paired_gap(differences, np.zeros(count)).p_value
    assert p_value == pytest.approx(theirs.pvalue, rel=1e-9 if count == 10 else 0.1)


def test_a_permutation_test_at_random_is_never_certain() -> None:
    assert paired_gap(np.arange(1.0, 101.0), np.zeros(100)).p_value == 1 / 10_000


def test_clusters_are_flipped_as_a_whole() -> None:
    reading, clusters = np.ones(12), np.arange(12) // 4
    gap = paired_gap(reading, np.zeros(12), clusters)
    assert gap.p_value == 2 / 2**3
    assert gap.test == "sign-flip permutation test"


@pytest.mark.parametrize(
    ("reading", "hearing", "reach"),
    [
        ([1.0] * 15 + [0.0] * 5, [1.0] * 15 + [0.0] * 5, 1.959964**2 / (20 + 1.959964**2)),
        ([2.5] * 20, [2.5] * 20, math.nan),
        ([1.0], [0.0], math.nan),
    ],
)
def test_equal_differences(reading: list[float], hearing: list[float], reach: float) -> None:
    gap = paired_gap(reading, hearing)
    assert gap.p_value == 1.0
    estimate = reading[0] - hearing[0]
    assert gap.difference.estimate == estimate
    assert bounds(gap.difference) == pytest.approx((-reach, reach), nan_ok=True)
    assert math.isnan(gap.relative_loss.low)


def test_there_is_no_share_of_nothing() -> None:
    at_chance = paired_gap(*answers({(1, 1): 50, (1, 0): 5, (0, 0): 45}))
    assert np.isnan(bounds(at_chance.relative_loss)).all()
    assert math.isnan(at_chance.relative_loss.estimate)
    above_a_quarter = paired_gap(
        *answers({(1, 1): 50, (1, 0): 5, (0, 0): 45}), chance=0.25
    ).relative_loss
    assert above_a_quarter.estimate == pytest.approx(0.05 / 0.30)


def test_a_few_right_answers_may_be_chance() -> None:
    assert math.isnan(paired_gap([1.0] * 3, [1.0, 0.0, 1.0]).relative_loss.estimate)
    five = paired_gap([1.0] * 5, [1.0, 0.0, 1.0, 0.0, 1.0]).relative_loss
    assert five.estimate == pytest.approx(0.8)


def test_a_share_of_little_is_open_upwards() -> None:
    # Resamples that read below chance have lost all and more: they must not count as gains.
    noise = np.random.default_rng(8).normal(size=(2, 100))
    reading = 0.21 + scipy.stats.zscore(noise[0])
    gap = paired_gap(reading, reading - 0.2 - 0.01 * noise[1], chance=0.0)
    lost, above = gap.difference.estimate, mean_interval(reading)
    assert 0 < above.low < 0.02
    assert gap.relative_loss.low == pytest.approx(lost / above.high, rel=0.02)
    assert gap.relative_loss.high > 10


def test_the_seed_decides() -> None:
    reading, hearing = np.random.default_rng(9).normal(size=(2, 50))
    assert paired_gap(reading, hearing, seed=1) == paired_gap(reading, hearing, seed=1)
    assert paired_gap(reading, hearing, seed=1) != paired_gap(reading, hearing, seed=2)


def test_thousands_of_questions_take_little_memory() -> None:
    reading, hearing = np.random.default_rng(10).normal(size=(2, 5000))
    tracemalloc.start()
    paired_gap(reading, hearing)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6


@pytest.mark.parametrize(
    ("reading", "hearing", "clusters", "message"),
    [
        ([1.0, 0.0], [1.0], None, "2 values of reading cannot pair with 1"),
        ([1.0, 0.0], [1.0, 0.0], ["a"], "1 clusters cannot belong to 2 questions"),
        ([], [], None, "one or more finite numbers"),
        ([math.nan], [1.0], None, "one or more finite numbers"),
        ([[1.0]], [[1.0]], None, "one-dimensional"),
    ],
)
def test_what_cannot_be_paired(reading, hearing, clusters, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paired_gap(reading, hearing, clusters)


# Power, and many tests


def test_the_detectable_gap_has_its_power() -> None:
    differences = np.random.default_rng(11).normal(0.05, 0.4, 300)
    detectable = minimum_detectable_gap(differences, power=0.9, level=0.01)
    power = NormalIndPower().power(
        detectable / differences.std(ddof=1), nobs1=300, alpha=0.01, ratio=0
    )
    assert power == pytest.approx(0.9, abs=1e-6)
    clusters = np.arange(300) // 2
    error = paired_gap(differences, np.zeros(300), clusters).standard_error
    assert minimum_detectable_gap(differences, clusters) == pytest.approx(2.801585 * error)


@pytest.mark.parametrize(
    ("differences", "clusters"), [([0.5], None), ([0.0] * 9, None), ([1.0, 0.0], ["a", "a"])]
)
def test_no_spread_no_power(differences: list[float], clusters: list[str] | None) -> None:
    assert math.isnan(minimum_detectable_gap(differences, clusters))


def test_holm_by_hand() -> None:
    adjusted = holm([0.01, 0.04, math.nan, 0.03])
    assert adjusted == pytest.approx([0.03, 0.06, math.nan, 0.06], nan_ok=True)
    assert np.isnan(holm([math.nan])).all()
    assert holm([]).shape == (0,)


# Few, because statsmodels collects all garbage every time.
@settings(max_examples=10)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_keeps_the_order_and_makes_nothing_surer(p_values: list[float]) -> None:
    raw, adjusted = np.array(p_values), holm(p_values)
    assert (adjusted >= raw).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(raw)]) >= 0).all()


# Calibration


def test_calibration_by_hand() -> None:
    result = calibration([0.9, 0.2, 0.6, 0.5], bins=2)
    unsure, sure = result.bins
    assert (unsure.count, sure.count) == (2, 2)
    assert unsure.confidence == pytest.approx(0.55)
    assert unsure.accuracy.estimate == pytest.approx(0.75)
    assert sure.confidence == pytest.approx(0.85)
    assert sure.accuracy == mean_interval([1.0, 0.0])
    assert result.expected_error == pytest.approx((0.20 + 0.35) / 2)


def test_the_expected_error_tells_sure_from_right() -> None:
    rng = np.random.default_rng(12)
    confidence = rng.uniform(0.5, 1, 4000)
    right = rng.uniform(size=4000) < confidence
    honest = calibration(np.where(right, confidence, 1 - confidence))
    assert [part.count for part in honest.bins] == [400] * 10
    assert honest.expected_error < 0.03
    guess = rng.uniform(size=4000) < 0.5
    boasting = calibration(np.where(guess, confidence, 1 - confidence))
    assert boasting.expected_error == pytest.approx(0.25, abs=0.03)


@fast
@given(
    st.lists(st.integers(0, 20).map(lambda count: count / 20), min_size=1, max_size=30),
    st.integers(1, 12),
    st.randoms(use_true_random=False),
)
def test_equal_confidences_share_a_bin(probabilities: list[float], bins: int, random) -> None:
    result = calibration(probabilities, bins)
    assert sum(part.count for part in result.bins) == len(probabilities)
    assert 1 <= len(result.bins) <= bins
    assert (np.diff([part.confidence for part in result.bins]) > 0).all()
    shuffled = random.sample(probabilities, len(probabilities))
    assert calibration(shuffled, bins).expected_error == pytest.approx(result.expected_error)


@given(st.floats(0, 1), st.integers(1, 50))
def test_one_bin_of_one_confidence(probability: float, count: int) -> None:
    assume(probability != 0.5)
    result = calibration([probability] * count)
    confidence = max(probability, 1 - probability)
    assert len(result.bins) == 1
    assert result.expected_error == pytest.approx(abs(confidence - (probability > 0.5)))


def test_what_is_no_probability() -> None:
    with pytest.raises(ValueError, match=r"lie in \[0, 1\]"):
        calibration([0.5, 1.2])
    with pytest.raises(ValueError, match="0 bins"):
        calibration([0.5], bins=0)


# Simulation


def correlated_pairs(
    rng: np.random.Generator, hearing_alike: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Answers to 200 questions of varied difficulty; hearing is as good, or loses some."""
    difficulty = rng.normal(0, 1, 200)
    reading = difficulty + rng.normal(0, 1, 200) < 1
    hearing = difficulty + rng.normal(0, 1, 200) < (1 if hearing_alike else 0.5)
    return reading.astype(float), hearing.astype(float)


def test_intervals_cover_and_tests_do_not_cry_wolf() -> None:
    rng = np.random.default_rng(13)
    read, heard = scipy.stats.norm.cdf([1, 0.5], scale=math.sqrt(2))
    truths = {"reading": read, "difference": read - heard, "loss": (read - heard) / (read - 0.5)}
    covered = dict.fromkeys(truths, 0)
    for _ in range(300):
        reading, hearing = correlated_pairs(rng, hearing_alike=False)
        gap = paired_gap(reading, hearing)
        intervals = (mean_interval(reading), gap.difference, gap.relative_loss)
        for (name, truth), interval in zip(truths.items(), intervals, strict=True):
            covered[name] += interval.low <= truth <= interval.high
    for count in covered.values():
        assert 0.92 <= count / 300 <= 0.98
    p_values = np.array(
        [paired_gap(*correlated_pairs(rng, hearing_alike=True)).p_value for _ in range(300)]
    )
    assert 0.01 < np.mean(p_values <= 0.05) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 300)
