"""Sets two results folders side by side, as `benchmark.py --compare` does. Reads results alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from tabulate import tabulate

from comparison import block_ratios
from intervals import CONFIDENCE, best_coverage, unpaired_ratio
from modes import MODES
from result_files import BENCHMARK_FILE, read_results
from utils import ScriptError, say

# What must be equal, as the work of a step depends on it; anything else may differ and is told.
SAME_WORK = ("layer_sizes", "batch_size", "activation")


def compare_folders(first: Path, second: Path) -> int:
    """Prints the ratio of each figure of two folders with its interval; returns the exit status.

    Raises:
        ScriptError: If a folder has no complete result, or the two cannot be compared.
    """
    a, b = (read_results(folder / BENCHMARK_FILE) for folder in (first, second))
    try:
        reasons = list(find_obstacles(a, b))
        text = "" if reasons else comparison_text(a, b)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ScriptError(f"{first} or {second} is not a whole result: {error!r}") from error
    if reasons:
        raise ScriptError(f"{first} and {second} cannot be compared: {'; '.join(reasons)}")
    say(text)
    return 0


def find_obstacles(a: dict[str, Any], b: dict[str, Any]) -> Iterator[str]:
    """Yields a reason for each thing that forbids a comparison of two benchmarks' results."""
    for name, results in (("A", a), ("B", b)):
        if results["status"] != "complete":
            yield f"{name} has no complete result: its status is '{results['status']}'"
            return
        for warning in results["comparison"]["warnings"]:
            yield f"{name}: {warning}"
    for key in SAME_WORK:
        values = a["jit"]["config"][key], b["jit"]["config"][key]
        if values[0] != values[1]:
            yield f"{key} is {values[0]} in A and {values[1]} in B"
    if a["jit"]["dataset"]["sha256"] != b["jit"]["dataset"]["sha256"]:
        yield "the data differ"


def comparison_text(a: dict[str, Any], b: dict[str, Any]) -> str:
    """Returns a table of all figures and the differences of configuration and environment."""
    rows = []
    for mode, names in MODES.items():
        for figure, (values_of, pattern) in FIGURES.items():
            values = [values_of(results[mode]) for results in (a, b)]
            rows.append(_row(f"{figure}, {names['phrase']}", values, pattern))
    ratios = [block_ratios(results["no_jit"], results["jit"]).tolist() for results in (a, b)]
    rows.append(_row("Speedup", ratios, "{:.2f}"))
    headers = ("Figure (geometric mean)", "A", "B", "B / A", "95 % interval", "")
    parts = [tabulate(rows, headers, "simple", disable_numparse=True), ""]
    parts += [f"Differs: {line}" for line in find_differences(a, b)]
    return "\n".join(parts if parts[2:] else [*parts, "Nothing else that is recorded differs."])


def find_differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Returns a line for each entry of configuration, environment and noise that differs."""
    pairs = {"processes per mode": [len(results["jit"]["runs"]) for results in (a, b)]}
    for part in ("config", "environment"):
        for key in dict.fromkeys([*a["jit"][part], *b["jit"][part]]):
            pairs[key] = [results["jit"][part].get(key) for results in (a, b)]
    for key in ("settings_cleared", "load_average_at_start"):
        pairs[key] = [results["noise"].get(key) for results in (a, b)]
    return [f"{key}: {x} in A, {y} in B" for key, (x, y) in pairs.items() if x != y]


def _row(name: str, values: list[list[float]], pattern: str) -> tuple[str, ...]:
    """Returns a row of the table: both figures, their ratio, its interval and what that says."""
    figures = [pattern.format(math.exp(fmean(map(math.log, side)))) for side in values]
    ratio = unpaired_ratio(values[1], values[0])
    coverage = best_coverage(min(map(len, values)))
    if ratio.ci95 is None:
        interval, words = "none", "one process: no interval"
    else:
        interval = f"{ratio.ci95[0]:.3f} to {ratio.ci95[1]:.3f}"
        words = "no measurable difference" if ratio.holds_one else "differs"
        if coverage < CONFIDENCE:
            words += f" (covers {coverage:.0%} at best)"
    return name, *figures, f"{ratio.value:.3f}", interval, words


def _of_runs(value_of: Callable[[dict[str, Any]], float]) -> Callable[[dict[str, Any]], list]:
    return lambda result: [value_of(run) for run in result["runs"]]


# Each figure: its value in every run, and how to print it.
FIGURES = {
    "Time per epoch": (
        _of_runs(lambda run: math.fsum(run["epoch_times_s"]) / len(run["epoch_times_s"])),
        "{:.3f} s",
    ),
    "Warm-up": (_of_runs(lambda run: run["warmup"]["time_ms"]), "{:.0f} ms"),
    "Peak memory": (_of_runs(lambda run: run["memory"]["peak_mb"]), "{:.1f} MB"),
}
