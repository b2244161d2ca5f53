"""Sets two results folders side by side, as `benchmark.py --compare` does. Reads results alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tabulate import tabulate

from config import MODES
from intervals import unpaired_ratio
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
    for folder, results in ((first, a), (second, b)):
        if results["status"] != "complete":
            raise ScriptError(f"{folder} has no complete result: status '{results['status']}'")
    reasons = list(find_obstacles(a, b))
    if reasons:
        raise ScriptError(f"{first} and {second} cannot be compared: {'; '.join(reasons)}")
    say(comparison_text(a, b))
    return 0


def find_obstacles(a: dict[str, Any], b: dict[str, Any]) -> Iterator[str]:
    """Yields a reason for each thing that forbids a comparison of two benchmarks' results."""
    for key in SAME_WORK:
        values = a["jit"]["config"][key], b["jit"]["config"][key]
        if values[0] != values[1]:
            yield f"{key} is {values[0]} in A and {values[1]} in B"
    if a["jit"]["dataset"]["sha256"] != b["jit"]["dataset"]["sha256"]:
        yield "the data differ"
    for name, results in (("A", a), ("B", b)):
        for warning in results["comparison"]["warnings"]:
            yield f"{name}: {warning}"


def comparison_text(a: dict[str, Any], b: dict[str, Any]) -> str:
    """Returns a table of all figures and the differences of configuration and environment."""
    rows = []
    for mode, names in MODES.items():
        for figure, (values_of, pattern) in FIGURES.items():
            values = [values_of(results[mode]) for results in (a, b)]
            ratio, interval, words = _describe_ratio(*values)
            means = [pattern.format(sum(v) / len(v)) for v in values]
            rows.append((f"{figure}, {names['phrase']}", *means, ratio, interval, words))
    headers = ("Figure", "A", "B", "B / A", "95 % interval", "")
    parts = [tabulate(rows, headers, "simple", disable_numparse=True), ""]
    for name, results in (("A", a), ("B", b)):
        speedup = results["comparison"]["speedup"]
        interval = results["comparison"]["speedup_ci95"]
        words = f", 95 % interval {interval[0]:.2f} to {interval[1]:.2f}" if interval else ""
        parts.append(f"Speedup in {name}: {speedup:.2f}{words}")
    parts += [f"Differs: {line}" for line in find_differences(a, b)] or ["Nothing else differs."]
    return "\n".join(parts)


def find_differences(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    """Returns a line for each entry of configuration and environment that differs."""
    return [
        f"{key}: {a['jit'][part].get(key)} in A, {b['jit'][part].get(key)} in B"
        for part in ("config", "environment")
        for key in dict.fromkeys([*a["jit"][part], *b["jit"][part]])
        if a["jit"][part].get(key) != b["jit"][part].get(key)
    ]


def _describe_ratio(a: list[float], b: list[float]) -> tuple[str, str, str]:
    ratio = unpaired_ratio(b, a)
    if ratio.ci95 is None:
        return f"{ratio.value:.3f}", "none", "one process: no interval"
    interval = f"{ratio.ci95[0]:.3f} to {ratio.ci95[1]:.3f}"
    words = "no measurable difference" if ratio.holds_one else "differs"
    return f"{ratio.value:.3f}", interval, words


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
