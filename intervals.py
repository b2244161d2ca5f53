"""Statistics of measured times: ratios with bootstrap intervals, spread, outliers, drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

CONFIDENCE = 0.95
RESAMPLES = 9999
SEED = 0
# Above this modified z-score a value is an outlier (Iglewicz and Hoaglin, 1993).
OUTLIER_SCORE = 3.5


class Ratio(NamedTuple):
    """A ratio of times with its interval, (low, high); None if there is but one pair."""

    value: float
    ci95: tuple[float, float] | None

    @property
    def holds_one(self) -> bool:
        """Whether a ratio of 1.0, no difference, lies within the interval; False without one."""
        return self.ci95 is not None and self.ci95[0] <= 1.0 <= self.ci95[1]


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Computes the geometric mean of the ratios of pairs, and its 95 % interval over pairs.

    A pair is one process of each kind, run one after the other: what slows both cancels.

    Args:
        numerators: (n,) positive values, one per process.
        denominators: (n,) positive values; each belongs to the numerator at its place.
    """
    logs = np.log(numerators) - np.log(denominators)
    return _ratio(np.mean(logs), (logs,), len(logs))


def unpaired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Computes the ratio of two geometric means, and its 95 % interval over all processes.

    Args:
        numerators: (n,) positive values, one per process.
        denominators: (m,) positive values; n and m may differ.
    """
    samples = (np.log(numerators), np.log(denominators))
    return _ratio(_difference(*samples), samples, min(map(len, samples)))


def geometric_mean(values: Sequence[float]) -> float:
    """Computes the geometric mean of positive values, (n,)."""
    return float(np.exp(np.mean(np.log(values))))


def best_coverage(n: int) -> float:
    """Returns how often an interval from n values can hold the truth at best: 1 - 2^(1 - n).

    A bootstrap interval never leaves the range of its values, and that range misses the median if
    all values fall on one side of it. Below six values this is under 95 %.
    """
    return 1 - 2.0 ** (1 - n)


def modified_z_scores(values: Sequence[float]) -> np.ndarray:
    """Computes 0.6745 (x - median) / MAD, (n,) (Iglewicz and Hoaglin, 1993).

    Where more than half of the values are equal, the MAD is 0; then 1.2533 times the mean absolute
    deviation stands for MAD / 0.6745. All are 0 if all values are equal.
    """
    deviations = np.asarray(values) - np.median(values)
    scale = np.median(np.abs(deviations)) / 0.6745 or 1.2533 * np.mean(np.abs(deviations))
    return deviations / scale if scale else np.zeros(len(deviations))


def spread(values: Sequence[float]) -> float | None:
    """Computes the coefficient of variation, sample standard deviation over mean; None for one."""
    return float(np.std(values, ddof=1) / np.mean(values)) if len(values) > 1 else None


def order_p_value(values: Sequence[float]) -> float:
    """Returns how probable so much likeness of neighbours is, if the order of values is chance.

    A permutation test of the lag-1 autocorrelation, one-sided, with a fixed seed.

    Args:
        values: (n,) in the order of measurement.
    """
    deviations = np.asarray(values) - np.mean(values)
    shuffled = np.random.default_rng(SEED).permuted(np.tile(deviations, (RESAMPLES, 1)), axis=1)
    products = np.sum(shuffled[:, 1:] * shuffled[:, :-1], axis=1)
    observed = np.sum(deviations[1:] * deviations[:-1])
    return float((1 + np.sum(products >= observed)) / (1 + RESAMPLES))


def relative_slope(times: Sequence[float]) -> float:
    """Computes by which share of the median a time grows per step: the Theil-Sen slope.

    The median of the slopes of all pairs of points: one slow epoch does not move it.

    Args:
        times: (n,) at least two.
    """
    return float(stats.theilslopes(times).slope / np.median(times))


def _difference(a: np.ndarray, b: np.ndarray, axis: int = -1) -> Any:  # noqa: ANN401 (scalar or array, as bootstrap asks)
    return np.mean(a, axis=axis) - np.mean(b, axis=axis)


def _ratio(log_ratio: float, samples: tuple[np.ndarray, ...], n: int) -> Ratio:
    value = float(np.exp(log_ratio))
    if n < 2:
        return Ratio(value, None)
    interval = stats.bootstrap(
        samples,
        np.mean if len(samples) == 1 else _difference,
        n_resamples=RESAMPLES,
        confidence_level=_expanded_confidence(n),
        method="percentile",
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return Ratio(value, (float(np.exp(interval.low)), float(np.exp(interval.high))))


def _expanded_confidence(n: int) -> float:
    """Returns the level at which a percentile interval from n values covers 95 %.

    The plain percentile interval is too narrow for few values: it covers 91 % for 10 normal values
    (simulated). This expansion makes it as wide as Student's interval, 95 % (Hesterberg, 2015,
    "What Teachers Should Know About the Bootstrap").
    """
    t = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
    return min(1 - 2 * stats.norm.sf(np.sqrt(n / (n - 1)) * t), 1 - 1e-9)
