"""Warns of what makes a result doubtful, as `benchmark.py --check` does. Reads results alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from comparison import PROCESSES_FOR_A_CLAIM, block_ratios
from gates import check_gates
from intervals import OUTLIER_SCORE, modified_z_scores, order_p_value, spread
from modes import MODES
from result_files import BENCHMARK_FILE, read_results
from utils import ScriptError, say

# From this spread on (standard deviation over mean of total times), pyperf calls a result unstable.
SPREAD_LIMIT = 0.10
# An outlier is told if it is also this far from the median: nearer, it cannot matter.
OUTLIER_DISTANCE = 0.05
# Below this number of values, an outlier cannot be told from the rest; a slow first run can be.
VALUES_FOR_OUTLIERS = 5
SLOW_FIRST_RUN = 1.10
# Neighbouring blocks that are this improbably alike are not independent.
ORDER_P_VALUE = 0.01


def check_folder(folder: Path) -> int:
    """Prints a line for each doubt about a folder's results; returns the exit status.

    Raises:
        ScriptError: If there is a doubt, or no whole result.
    """
    path = folder if folder.is_file() else folder / BENCHMARK_FILE
    results = read_results(path)
    try:
        doubts = list(find_doubts(results))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ScriptError(f"{path} is not a whole result: {error!r}") from error
    for doubt in doubts:
        say(f"warning: {doubt}")
    if doubts:
        raise ScriptError(f"{len(doubts)} doubt{'s' if len(doubts) > 1 else ''} about {path}")
    say(f"no doubt about {path}")
    return 0


def doubt_lines(results: dict[str, Any]) -> list[str]:
    """Returns a line for each doubt, or one that says that there is none."""
    lines = [f"Doubt: {doubt}." for doubt in find_doubts(results)]
    return lines or ["`benchmark.py --check` has no doubt."]


def find_doubts(results: dict[str, Any]) -> Iterator[str]:
    """Yields a sentence for each thing that makes a benchmark's result doubtful.

    The gates are checked again on the runs; what the file says of them is not relied on.
    """
    modes = {mode: results[mode] for mode in MODES if results[mode]}
    if results["status"] != "complete" or len(modes) < len(MODES):
        yield f"the benchmark's status is '{results['status']}'"
        yield from results["comparison"]["warnings"]
    for mode, result in modes.items():
        phrase = MODES[mode]["phrase"]
        if result["status"] != "complete":
            yield f"{phrase}, the status is '{result['status']}'"
        for doubt in _doubts_of_mode(result):
            yield f"{phrase}, {doubt}"
    if len(modes) == len(MODES):
        yield from _doubts_of_comparison(**modes)


def _doubts_of_comparison(no_jit: dict[str, Any], jit: dict[str, Any]) -> Iterator[str]:
    for gate in check_gates(no_jit, jit):
        if not gate["passed"]:
            yield f"gate '{gate['name']}'{' failed' * (gate['passed'] is False)}: {gate['detail']}"
    n_processes = min(len(no_jit["runs"]), len(jit["runs"]))
    if n_processes < PROCESSES_FOR_A_CLAIM:
        yield f"too few processes per mode: {n_processes}, of {PROCESSES_FOR_A_CLAIM} at least"
        return
    p_value = order_p_value(np.log(block_ratios(no_jit, jit)))
    if p_value < ORDER_P_VALUE:
        yield (
            f"the ratios of neighbouring blocks are alike (p = {p_value:.3f} by chance): the "
            "machine changed slowly, and the interval is too narrow"
        )


def _doubts_of_mode(result: dict[str, Any]) -> Iterator[str]:
    totals = [math.fsum(run["epoch_times_s"]) for run in result["runs"]]
    if (spread(totals) or 0) >= SPREAD_LIMIT:
        yield (
            f"the total times spread by {spread(totals):.0%} of their mean: at or above "
            f"{SPREAD_LIMIT:.0%}"
        )
    first_over_others = totals[0] / median(totals[1:] or totals)
    if len(totals) < VALUES_FOR_OUTLIERS and first_over_others > SLOW_FIRST_RUN:
        yield f"a slow first run: {first_over_others:.2f} times the median of the others"
    for i in _outliers(totals):
        slow_start = i == 0 and totals[0] > median(totals)
        yield (
            f"process {i + 1} is an outlier: {totals[i]:.2f} s, median {median(totals):.2f} s"
            f"{' (a slow first run: was something else still busy?)' if slow_start else ''}"
        )
    times = [time for run in result["runs"] for time in run["epoch_times_s"]]
    n_outliers = len(_outliers(times))
    # One in twenty may be: the slow tail that any machine has.
    if n_outliers > len(times) / 20:
        yield f"{n_outliers} of {len(times)} epoch times are outliers (reported, never dropped)"


def _outliers(values: list[float]) -> list[int]:
    if len(values) < VALUES_FOR_OUTLIERS:
        return []
    far = np.abs(np.asarray(values) / median(values) - 1) > OUTLIER_DISTANCE
    return np.flatnonzero(far & (np.abs(modified_z_scores(values)) > OUTLIER_SCORE)).tolist()
