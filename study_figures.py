"""The figures of each study, from the raw values in its result file and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from scipy import stats

import original
from comparison import block_ratios
from gates import check_gates, count_step_flops
from intervals import Ratio, geometric_mean, paired_ratio
from mnist_sources import TRAIN_EXAMPLES
from modes import LADDER

FLOAT_BYTES = 4


def ladder_figures(result: dict[str, Any]) -> dict[str, Any]:
    """Computes each rung's time per epoch, its ratio to the next rung, and its gates.

    Args:
        result: The object of the ladder's result file.

    Returns:
        "rungs", in order, each with "mode", "epoch_s" (geometric mean over processes), "processes",
        "to_next" (Ratio of its time to the next rung's; None for the last) and "failed_gates"
        (against the jitted mode); and of the headline, without JIT over with JIT, the "second_pass"
        and "jit_alone", whose product it is.
    """
    modes = {mode: result["modes"][mode] for mode in LADDER if mode in result["modes"]}
    following = dict(zip(modes, list(modes)[1:]))
    rungs = []
    for mode, of_mode in modes.items():
        times = [
            math.fsum(run["epoch_times_s"]) / len(run["epoch_times_s"]) for run in of_mode["runs"]
        ]
        gates = [] if mode == "jit" else check_gates(of_mode, modes["jit"])
        rungs.append(
            {
                "mode": mode,
                "epoch_s": geometric_mean(times),
                "processes": len(times),
                "to_next": _time_ratio(modes, mode, following[mode]) if mode in following else None,
                "failed_gates": [gate["name"] for gate in gates if gate["passed"] is False],
            }
        )
    return {
        "rungs": rungs,
        "headline": _time_ratio(modes, "no_jit", "jit"),
        "second_pass": _time_ratio(modes, "no_jit", "eager_value_and_grad"),
        "jit_alone": _time_ratio(modes, "eager_value_and_grad", "jit"),
    }


def inside_figures(result: dict[str, Any]) -> dict[str, Any]:
    """Computes what a step of each mode does, and what the jitted step's program holds.

    Args:
        result: The object of the inside study's result file.

    Returns:
        "modes" by mode, each with "executions" and "python_calls" a step, "first_step_programs" and
        "step_flops"; "program", as measured; and by hand "analytic_flops" (of the products) and
        "analytic_bytes" (parameters read and written, the batch read).
    """
    modes, program = {}, None
    for process in result["processes"]:
        steps = process["steps_traced"]
        modes[process["part"]] = {
            "executions": process["executions"] / steps,
            "python_calls": process["python_calls"] / steps,
            "first_step_programs": process["first_step_programs"],
            "step_flops": process["step_flops"],
        }
        program = process.get("program", program)
    config = result["processes"][0]["config"]
    sizes, batch_size = config["layer_sizes"], config["batch_size"]
    return {
        "modes": modes,
        "program": program,
        "analytic_flops": count_step_flops(batch_size, sizes, 1),
        "analytic_bytes": FLOAT_BYTES * (2 * count_parameters(sizes) + batch_size * (sizes[0] + 1)),
    }


def drift_figures(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Computes how the eager step changes with the steps taken, for each JAX version and arm.

    Args:
        result: The object of the drift study's result file.

    Returns:
        For each process "jax", "part", "records"; "first_s" and "last_s", the time of a step at the
        first record and at the last one on the straight line through all records (by Theil and
        Sen, as one record may be disturbed), "growth", the ratio of these two, and "slope", that
        line's as a share of first_s per step; "entries_per_step" (those that jnp.greater's cache
        gains, the median over the records, as a full one gains none; None where it is emptied in
        between), "most_entries" and "mb_per_1000_steps" of RSS.
    """
    figures = []
    for process in result["processes"]:
        first, last = process["records"][0], process["records"][-1]
        steps = last["steps"] - first["steps"]
        entries = [record["greater_cache_entries"] for record in process["records"]]
        gains = [
            (b["greater_cache_entries"] - a["greater_cache_entries"]) / (b["steps"] - a["steps"])
            for a, b in zip(process["records"], process["records"][1:])
        ]
        slope, first_s, last_s = _line(process["records"])
        figures.append(
            {
                "jax": process["environment"]["jax"],
                "part": process["part"],
                "first_s": first_s,
                "last_s": last_s,
                "growth": last_s / first_s,
                "slope": slope / first_s,
                "entries_per_step": None if "cleared" in process["part"] else median(gains),
                "most_entries": max(entries),
                "mb_per_1000_steps": 1000 * (last["rss_mb"] - first["rss_mb"]) / steps,
                "records": process["records"],
            }
        )
    return figures


def original_without_growth(slope: float) -> float:
    """Estimates the original's speedup without the growth of its eager step.

    Its eager steps are taken to get slower in a straight line, as those measured here do: on
    average over n steps, 1 + slope * n / 2 times the first one.

    Args:
        slope: Growth per step, as a share of the first step's time.
    """
    n_steps = original.EPOCHS * math.ceil(TRAIN_EXAMPLES / original.BATCH_SIZE)
    return original.SPEEDUP / (1 + slope * n_steps / 2)


def count_parameters(layer_sizes: Sequence[int]) -> int:
    """Counts the weights and biases of a network with these layers."""
    return sum((n_in + 1) * n_out for n_in, n_out in zip(layer_sizes[:-1], layer_sizes[1:]))


def _line(records: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Returns the slope of the line through the records' times, and its first and last value."""
    steps, times = zip(*((record["steps"], record["step_s"]) for record in records))
    line = stats.theilslopes(times, steps)
    first_s, last_s = (line.intercept + line.slope * at for at in (steps[0], steps[-1]))
    return float(line.slope), float(first_s), float(last_s)


def _time_ratio(modes: dict[str, Any], mode: str, other: str) -> Ratio:
    ratios = block_ratios(modes[mode], modes[other])
    return paired_ratio(ratios, np.ones(len(ratios)))
