"""Warns of what makes a result doubtful, as `benchmark.py --check` does. Reads results alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from comparison import PROCESSES_FOR_A_CLAIM
from config import MODES
from intervals import OUTLIER_SCORE, modified_z_scores, spread
from result_files import BENCHMARK_FILE, read_results
from utils import ScriptError, say

# From this spread on (standard deviation over mean of total times), pyperf calls a result unstable.
SPREAD_LIMIT = 0.10
# An outlier is told if it is also this far from the median: nearer, it cannot matter.
OUTLIER_DISTANCE = 0.05
# Below this number of values, an outlier cannot be told from the rest.
VALUES_FOR_OUTLIERS = 5


def check_folder(folder: Path) -> int:
    """Prints a line for each doubt about a folder's results; returns the exit status.

    Raises:
        ScriptError: If there is a doubt, or no result.
    """
    doubts = list(find_doubts(read_results(folder / BENCHMARK_FILE)))
    for doubt in doubts:
        say(f"warning: {doubt}")
    if doubts:
        count = f"{len(doubts)} doubt{'s' if len(doubts) > 1 else ''}"
        raise ScriptError(f"{count} about {folder}: run it again on a quieter machine, or longer")
    say(f"no doubt about {folder}")
    return 0


def find_doubts(results: dict[str, Any]) -> Iterator[str]:
    """Yields a sentence for each thing that makes a benchmark's result doubtful."""
    if results["status"] != "complete":
        yield f"the benchmark's status is '{results['status']}'"
    yield from results["comparison"]["warnings"]
    for gate in results["comparison"]["gates"]:
        if gate["passed"] is None:
            yield f"gate '{gate['name']}': {gate['detail']}"
    n_processes = results["comparison"]["processes_per_mode"]
    if n_processes < PROCESSES_FOR_A_CLAIM:
        yield f"too few processes per mode: {n_processes}, of {PROCESSES_FOR_A_CLAIM} at least"
    for mode, names in MODES.items():
        if results[mode]:
            for doubt in _doubts_of_mode(results[mode]):
                yield f"{names['phrase']}, {doubt}"


def _doubts_of_mode(result: dict[str, Any]) -> Iterator[str]:
    totals = [math.fsum(run["epoch_times_s"]) for run in result["runs"]]
    if spread(totals) >= SPREAD_LIMIT:
        yield (
            f"the total times spread by {spread(totals):.0%} of their mean: at or above "
            f"{SPREAD_LIMIT:.0%}"
        )
    for i in _outliers(totals):
        slow_start = " (a slow first run: was something else still busy?)" if i == 0 else ""
        yield (
            f"process {i + 1} is an outlier: {totals[i]:.2f} s, median {median(totals):.2f} s"
            f"{slow_start if totals[0] > median(totals) else ''}"
        )
    times = np.array([run["epoch_times_s"] for run in result["runs"]])
    n_outliers = len(_outliers(times.ravel()))
    # One in twenty may be: the slow tail that any machine has.
    if n_outliers > times.size / 20:
        yield f"{n_outliers} of {times.size} epoch times are outliers (reported, never dropped)"


def _outliers(values: Any) -> list[int]:  # noqa: ANN401 (list or array)
    if len(values) < VALUES_FOR_OUTLIERS:
        return []
    far = np.abs(np.asarray(values) / median(values) - 1) > OUTLIER_DISTANCE
    return np.flatnonzero(far & (np.abs(modified_z_scores(values)) > OUTLIER_SCORE)).tolist()
