"""The comparison of two modes: the speedup, its interval, and what else the times tell.

Reads result objects and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean, median
from typing import Any

import numpy as np

from gates import check_gates, drift
from intervals import Ratio, best_coverage, paired_ratio, spread

# Below this number of processes per mode a comparison is called preliminary.
PROCESSES_FOR_A_CLAIM = 10
FASTER, SLOWER, NO_DIFFERENCE = "faster", "slower", "no measurable difference"


def compare(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Compares two modes' results, run in pairs: a block has one process of each.

    Args:
        base: Result of the mode whose time is above the fraction line (without JIT).
        other: Result of the mode that is compared with it (with JIT).

    Returns:
        The object that stands as "comparison" in the result file. Figures are None if a gate
        failed, and intervals also if there is but one process per mode.
    """
    gates = check_gates(base, other)
    failed = [gate for gate in gates if gate["passed"] is False]
    n_processes = min(len(base["runs"]), len(other["runs"]))
    return {
        **(_no_figures() if failed else _figures(base, other)),
        "processes_per_mode": n_processes,
        "preliminary": n_processes < PROCESSES_FOR_A_CLAIM,
        "interval_coverage_at_best": best_coverage(n_processes),
        "modes": [_mode_figures(base), _mode_figures(other)],
        "warnings": [f"gate '{gate['name']}' failed: {gate['detail']}" for gate in failed],
        "gates": gates,
    }


def comparison_without(failures: Iterable[str]) -> dict[str, Any]:
    """Returns what stands for the comparison when a mode has no result: no speedup, and why."""
    return {
        **_no_figures(),
        "processes_per_mode": 0,
        "preliminary": True,
        "interval_coverage_at_best": None,
        "modes": [],
        "warnings": list(failures),
        "gates": [],
    }


def break_even_steps(
    warmup_s: float, step_s: float, other_warmup_s: float, other_step_s: float
) -> int | None:
    """Computes the first step after which the second mode has taken less time in all.

    Args:
        warmup_s: Warm-up of the first mode, in seconds.
        step_s: A step of the first mode, in seconds.
        other_warmup_s: Warm-up of the second mode.
        other_step_s: A step of the second mode.

    Returns:
        The number of steps, 0 if the second mode is ahead at once; None if it never is.
    """
    saved = step_s - other_step_s
    extra = other_warmup_s - warmup_s
    if saved <= 0:
        return 0 if extra < 0 and saved == 0 else None
    return max(0, math.ceil(extra / saved))


def block_ratios(base: dict[str, Any], other: dict[str, Any]) -> np.ndarray:
    """Returns the ratio of total training times of each block that has both; (blocks,)."""
    totals = [
        {
            run.get("block", i): total
            for i, (run, total) in enumerate(zip(mode["runs"], _totals(mode)))
        }
        for mode in (base, other)
    ]
    shared = sorted(totals[0].keys() & totals[1].keys())
    return np.array([totals[0][block] / totals[1][block] for block in shared])


def _figures(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    speedup = paired_ratio(_totals(base), _totals(other))
    with_warmup = paired_ratio(_totals(base, True), _totals(other, True))
    n_steps = math.ceil(base["dataset"]["train_examples"] / base["config"]["batch_size"])
    step_s = [mode["avg_epoch_time_s"] / n_steps for mode in (base, other)]
    warmup_s = [mode["warmup_time_ms"] / 1000 for mode in (base, other)]
    return {
        "speedup": speedup.value,
        "speedup_ci95": speedup.ci95,
        "finding": _finding(speedup),
        "speedup_with_warmup": with_warmup.value,
        "speedup_with_warmup_ci95": with_warmup.ci95,
        "epoch_ratios": np.exp(np.mean(_log_times(base) - _log_times(other), axis=0)).tolist(),
        "break_even_steps": break_even_steps(0.0, step_s[0], warmup_s[1], step_s[1]),
        "break_even_steps_both_warm_ups": break_even_steps(
            warmup_s[0], step_s[0], warmup_s[1], step_s[1]
        ),
    }


def _no_figures() -> dict[str, Any]:
    names = ("speedup", "speedup_ci95", "finding", "speedup_with_warmup")
    names += ("speedup_with_warmup_ci95", "epoch_ratios", "break_even_steps")
    return dict.fromkeys((*names, "break_even_steps_both_warm_ups"))


def _finding(speedup: Ratio) -> str | None:
    if speedup.ci95 is None:
        return None
    if speedup.holds_one:
        return NO_DIFFERENCE
    return FASTER if speedup.value > 1 else SLOWER


def _mode_figures(mode: dict[str, Any]) -> dict[str, Any]:
    times = [time for run in mode["runs"] for time in run["epoch_times_s"]]
    middle = median(times)
    cpu_time = sum(time for run in mode["runs"] for time in run["epoch_cpu_times_s"])
    return {
        "mode": mode["mode"],
        "median_epoch_s": middle,
        "epoch_mad_s": median(abs(time - middle) for time in times),
        "spread_of_totals": spread(_totals(mode)),
        "drift": drift(mode),
        "cpu_over_wall": cpu_time / math.fsum(times),
        "programs_compiled": fmean(run["warmup"]["programs_compiled"] for run in mode["runs"]),
        "warmup_parts_ms": _warmup_parts(mode),
        "device_peak_mb": _device_peak(mode),
    }


def _device_peak(mode: dict[str, Any]) -> float | None:
    peaks = [run["memory"]["device_peak_mb"] for run in mode["runs"]]
    return None if None in peaks else fmean(peaks)


def _warmup_parts(mode: dict[str, Any]) -> dict[str, float] | None:
    """Returns the mean of each part of the warm-up over the runs, summed over batch shapes."""
    names = ("trace_ms", "lower_ms", "compile_ms", "first_run_ms")
    if not all("trace_ms" in part for run in mode["runs"] for part in run["warmup"]["parts"]):
        return None
    return {
        name: fmean(sum(part[name] for part in run["warmup"]["parts"]) for run in mode["runs"])
        for name in names
    }


def _device_peak(mode: dict[str, Any]) -> float | None:
    """Returns the mean of the device's own peak in MB; None on a CPU."""
    peaks = [run["memory"].get("device_peak_mb") for run in mode["runs"]]
    return None if None in peaks else fmean(peaks)


def _log_times(mode: dict[str, Any]) -> np.ndarray:
    return np.log([run["epoch_times_s"] for run in mode["runs"]])  # (processes, epochs)


def _totals(mode: dict[str, Any], with_warmup: bool = False) -> np.ndarray:
    return np.array(
        [
            math.fsum(run["epoch_times_s"]) + with_warmup * run["warmup"]["time_ms"] / 1000
            for run in mode["runs"]
        ]
    )
