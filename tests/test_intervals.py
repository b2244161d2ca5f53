"""Ratios, intervals, outliers and slopes, against made-up values with known answers."""

import numpy as np
import pytest
from scipy import stats

import intervals


def log_normal(mean, n, seed, noise=0.05):
    return mean * np.exp(np.random.default_rng(seed).normal(0, noise, n))


def test_paired_ratio_is_the_geometric_mean_and_cancels_what_pairs_share():
    shared = np.array([1.0, 5.0, 0.2, 2.0])
    ratio = intervals.paired_ratio(3.0 * shared, shared)
    assert ratio.value == pytest.approx(3.0)
    assert ratio.ci95 == pytest.approx((3.0, 3.0))
    assert not ratio.holds_one


def test_paired_interval_of_ten_covers_95_percent():
    n_held = 0
    for seed in range(200):
        ratio = intervals.paired_ratio(
            log_normal(2.0, 10, 2 * seed), log_normal(1.0, 10, 2 * seed + 1)
        )
        n_held += ratio.ci95[0] <= 2.0 <= ratio.ci95[1]
    # 190 expected of 200; a plain percentile interval holds some 182.
    assert 185 <= n_held <= 198


def test_interval_is_about_that_of_student():
    ratios = log_normal(3.0, 20, 0)
    low, high = intervals.paired_ratio(ratios, np.ones(20)).ci95
    logs = np.log(ratios)
    half = stats.t.ppf(0.975, 19) * logs.std(ddof=1) / np.sqrt(20)
    assert np.log(high / low) == pytest.approx(2 * half, rel=0.1)


def test_interval_is_the_same_each_time_and_absent_for_one_pair():
    values = log_normal(2.0, 10, 3), log_normal(1.0, 10, 4)
    assert intervals.paired_ratio(*values) == intervals.paired_ratio(*values)
    single = intervals.paired_ratio([2.0], [1.0])
    assert single == (2.0, None) and not single.holds_one


def test_unpaired_ratio_of_samples_of_different_size():
    ratio = intervals.unpaired_ratio(log_normal(3.0, 12, 0), log_normal(2.0, 8, 1))
    assert ratio.ci95[0] < 1.5 < ratio.ci95[1]
    assert ratio.value == pytest.approx(1.5, rel=0.1)
    assert intervals.unpaired_ratio(log_normal(2.0, 10, 0), log_normal(2.0, 10, 1)).holds_one


@pytest.mark.parametrize("n, coverage", [(1, 0.0), (2, 0.5), (3, 0.75), (6, 0.96875)])
def test_coverage_at_best_is_that_of_the_range(n, coverage):
    assert intervals.best_coverage(n) == coverage
    rng = np.random.default_rng(0)
    values = rng.normal(size=(20_000, n))
    held = (values.min(axis=1) <= 0) & (values.max(axis=1) >= 0)
    assert held.mean() == pytest.approx(coverage, abs=0.02)


def test_modified_z_scores_are_those_of_the_formula():
    scores = intervals.modified_z_scores([1.0, 2.0, 3.0, 4.0, 100.0])
    assert scores == pytest.approx(0.6745 * np.array([-2.0, -1.0, 0.0, 1.0, 97.0]))
    scores = intervals.modified_z_scores([1.0, 1.0, 1.0, 9.0])
    assert scores == pytest.approx([0, 0, 0, 8 / (1.2533 * 2)])
    assert intervals.modified_z_scores([1.0, 1.0]).tolist() == [0, 0]


def test_order_of_values_is_told_from_chance():
    wave = np.sin(np.arange(10) * 0.5)
    assert intervals.order_p_value(wave) < 0.01
    assert intervals.order_p_value([1, -1, 1, -1, 1, -1, 1, -1, 1, -1]) > 0.9
    rng = np.random.default_rng(0)
    p_values = [intervals.order_p_value(rng.normal(size=10)) for _ in range(100)]
    assert 0 < np.mean(np.array(p_values) < 0.1) < 0.2


def test_spread_is_the_coefficient_of_variation():
    assert intervals.spread([9.0, 11.0]) == pytest.approx(np.sqrt(2) / 10)
    assert intervals.spread([9.0]) is None


def test_slope_is_a_share_of_the_median_and_ignores_one_slow_epoch():
    times = [10.0, 11.0, 12.0, 13.0, 14.0]
    assert intervals.relative_slope(times) == pytest.approx(1 / 12)
    assert intervals.relative_slope([10.0, 10.0, 50.0, 10.0, 10.0]) == 0
