"""The figures of each study, from the raw values in its result file and from nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import nnls

import original
from comparison import block_ratios, break_even_steps
from gates import check_gates, count_step_flops
from intervals import Ratio, paired_ratio
from mnist_sources import TRAIN_EXAMPLES
from modes import LADDER, MODES

NEAR = 0.9  # of the jitted step's speed: from here on, JIT hardly matters
COST_EPOCHS = (1, 2, 5, 10, 20)
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
                "epoch_s": _geometric_mean(times),
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


def range_figures(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Computes, for each width, the time per step over batch sizes, its model and its crossing.

    The model is time = dispatch + work * batch, both not negative, fitted by least squares of the
    relative errors.

    Args:
        result: The object of the range study's result file.

    Returns:
        For each width "width_factor", "layer_sizes", "batch_sizes", "step_s" by mode (geometric
        mean over processes of the median over rounds), "ratios" by eager mode (Ratio of its time to
        the jitted step's, for each batch size), "fits" by mode with "dispatch_us", "work_us" per
        image and "error" (root of the mean squared relative error), and "near" by eager mode: the
        batch size from which on it is at least 0.9 times as fast as with JIT; None for never.
    """
    cells = {
        (cell["width_factor"], cell["mode"], cell["batch_size"]): cell["layer_sizes"]
        for process in result["processes"]
        for cell in process["cells"]
    }
    figures = []
    for factor in sorted({factor for factor, _, _ in cells}):
        batch_sizes = sorted({size for other, _, size in cells if other == factor})
        modes = list(dict.fromkeys(mode for other, mode, _ in cells if other == factor))
        times = {  # (batch sizes, processes)
            mode: np.array([_over_processes(result, factor, mode, size) for size in batch_sizes])
            for mode in modes
        }
        step_s = {mode: np.exp(np.log(values).mean(axis=1)) for mode, values in times.items()}
        eager = [mode for mode in modes if mode != "jit"]
        figures.append(
            {
                "width_factor": factor,
                "layer_sizes": cells[factor, "jit", batch_sizes[0]],
                "batch_sizes": batch_sizes,
                "step_s": {mode: values.tolist() for mode, values in step_s.items()},
                "ratios": {
                    mode: [paired_ratio(*pair) for pair in zip(times[mode], times["jit"])]
                    for mode in eager
                },
                "fits": {mode: fit_step(batch_sizes, values) for mode, values in step_s.items()},
                "near": {
                    mode: crossing(batch_sizes, step_s[mode] / step_s["jit"], 1 / NEAR)
                    for mode in eager
                },
            }
        )
    return figures


def fit_step(batch_sizes: Sequence[int], step_s: Sequence[float]) -> dict[str, float]:
    """Fits time = dispatch + work * batch, both not negative, by the relative errors.

    Args:
        batch_sizes: (n,) images a step.
        step_s: (n,) seconds a step.

    Returns:
        "dispatch_us", "work_us" for an image, and "error", the root mean square of the relative
        errors.
    """
    sizes, times = np.asarray(batch_sizes, float), np.asarray(step_s, float)
    rows = np.stack([1 / times, sizes / times], axis=1)
    (dispatch, work), _ = nnls(rows, np.ones(len(times)))
    errors = rows @ (dispatch, work) - 1
    return {
        "dispatch_us": float(dispatch * 1e6),
        "work_us": float(work * 1e6),
        "error": float(np.sqrt(np.mean(errors**2))),
    }


def crossing(batch_sizes: Sequence[int], ratios: Sequence[float], limit: float) -> float | None:
    """Returns the batch size from which on a ratio stays at or below a limit.

    Between two measured sizes it is read off a straight line in the logarithms of both.

    Args:
        batch_sizes: (n,) in rising order.
        ratios: (n,) times without JIT over those with JIT.
        limit: What the ratio must reach.

    Returns:
        The batch size, that of the first point if all are below; None if the last one is above.
    """
    above = [i for i, ratio in enumerate(ratios) if ratio > limit]
    if not above:
        return float(batch_sizes[0])
    i = above[-1]
    if i == len(ratios) - 1:
        return None
    x, y = np.log(batch_sizes[i : i + 2]), np.log(ratios[i : i + 2])
    share = (math.log(limit) - y[0]) / (y[1] - y[0])
    return float(np.exp(x[0] + share * (x[1] - x[0])))


def cost_figures(results: dict[str, Any]) -> dict[str, Any]:
    """Computes the time to train for some epochs, warm-up included, and where JIT breaks even.

    Args:
        results: The object of the benchmark's result file.

    Returns:
        "epochs", "seconds" by mode for each of them, and "break_even_steps" with
        "break_even_s", the time that the training without JIT has taken by then, its own warm-up
        not counted; None if there is no break-even.
    """
    epoch_s = {mode: results[mode]["avg_epoch_time_s"] for mode in MODES}
    warmup_s = {mode: results[mode]["warmup_time_ms"] / 1000 for mode in MODES}
    config, n_images = results["jit"]["config"], results["jit"]["dataset"]["train_examples"]
    n_steps = math.ceil(n_images / config["batch_size"])
    step_s = {mode: seconds / n_steps for mode, seconds in epoch_s.items()}
    steps = break_even_steps(0.0, step_s["no_jit"], warmup_s["jit"], step_s["jit"])
    return {
        "epochs": list(COST_EPOCHS),
        "seconds": {
            mode: [warmup_s[mode] + n * epoch_s[mode] for n in COST_EPOCHS] for mode in MODES
        },
        "break_even_steps": steps,
        "break_even_s": None if steps is None else steps * step_s["no_jit"],
    }


def bound_figures(result: dict[str, Any]) -> dict[str, Any]:
    """Computes the floors, and each mode and each way to scan against them.

    A mode's own work is that of its matrix products (gates.count_step_flops).

    Args:
        result: The object of the bound study's result file.

    Returns:
        "peak_flops" (per second, the best of the sizes) and "products_flops" (at the shapes of the
        step's own products), "update_bytes" (per second) and "update_s" (of a step); "modes", each
        with "epoch_s", "of_peak" and "of_products" (Ratio: share of the floor) and "to_jit" (Ratio
        of the jitted mode's time to its own); "tries", each with "name", "epoch_s" and "to_scan"
        (Ratio of jit_scan's time to its own), and "refused"; also
        "processes" and "tries_processes".
    """
    processes = [_medians(process) for process in result["processes"] if process["part"] == "modes"]
    trying = [process for process in result["processes"] if process["part"] == "tries"]
    config = result["processes"][0]["config"]
    rates = [
        {
            kind: max(work / time for (of, _), (work, time) in values.items() if of == kind)
            for kind in ("peak", "products", "update")
        }
        for values in processes
    ]
    epoch_s = _epoch_times(processes)
    modes = []
    for (_, mode), times in epoch_s.items():
        flops = _epoch_flops(config, LADDER[mode]["forward_passes"])
        floors = {kind: [flops / rate[kind] for rate in rates] for kind in ("peak", "products")}
        modes.append(
            {
                "mode": mode,
                "epoch_s": _geometric_mean(times),
                "of_peak": paired_ratio(floors["peak"], times),
                "of_products": paired_ratio(floors["products"], times),
                "to_jit": paired_ratio(epoch_s["mode", "jit"], times),
            }
        )
    tried = _epoch_times([_medians(process) for process in trying])
    tries = [
        {
            "name": name,
            "epoch_s": _geometric_mean(times),
            "to_scan": paired_ratio(tried["mode", "jit_scan"], times),
        }
        for (kind, name), times in tried.items()
        if kind == "try"
    ]
    update_bytes = _geometric_mean([rate["update"] for rate in rates])
    return {
        "peak_flops": _geometric_mean([rate["peak"] for rate in rates]),
        "products_flops": _geometric_mean([rate["products"] for rate in rates]),
        "update_bytes": update_bytes,
        "update_s": 3 * FLOAT_BYTES * count_parameters(config["layer_sizes"]) / update_bytes,
        "processes": len(processes),
        "modes": modes,
        "tries": tries,
        "tries_processes": len(trying),
        "refused": trying[0]["refused"] if trying else {},
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
        For each process "jax", "part", "steps" and "step_s" of its records, "growth" (the last
        record's time over the first one's), "slope" (of the time, as a share of the first record's
        and per step, by Theil and Sen), "entries_per_step" (those that jnp.greater's cache gains;
        None where it was emptied in between) and "mb_per_1000_steps" of RSS.
    """
    figures = []
    for process in result["processes"]:
        first, last = process["records"][0], process["records"][-1]
        steps = last["steps"] - first["steps"]
        entries = [record["greater_cache_entries"] for record in process["records"]]
        grew = entries == sorted(entries)
        figures.append(
            {
                "jax": process["environment"]["jax"],
                "part": process["part"],
                "growth": last["step_s"] / first["step_s"],
                "slope": _slope(process["records"]) / first["step_s"],
                "entries_per_step": (entries[-1] - entries[0]) / steps if grew else None,
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


def _slope(records: list[dict[str, Any]]) -> float:
    steps, times = zip(*((record["steps"], record["step_s"]) for record in records))
    return float(stats.theilslopes(times, steps).slope)


def _time_ratio(modes: dict[str, Any], mode: str, other: str) -> Ratio:
    ratios = block_ratios(modes[mode], modes[other])
    return paired_ratio(ratios, np.ones(len(ratios)))


def _over_processes(result: dict[str, Any], factor: float, mode: str, size: int) -> list[float]:
    return [
        median(cell["step_s"])
        for process in result["processes"]
        for cell in process["cells"]
        if (cell["width_factor"], cell["mode"], cell["batch_size"]) == (factor, mode, size)
    ]


def _medians(process: dict[str, Any]) -> dict[tuple[str, str], tuple[float, float]]:
    """Returns work and median seconds by kind and name."""
    return {
        (sample["kind"], sample["name"]): (sample["work"], median(sample["seconds"]))
        for sample in process["samples"]
    }


def _epoch_times(processes: list[dict]) -> dict[tuple[str, str], np.ndarray]:
    """Returns the seconds of an epoch of each mode and try, (processes,), by kind and name."""
    return {
        key: np.array([values[key][1] * TRAIN_EXAMPLES / values[key][0] for values in processes])
        for key in (processes[0] if processes else ())
        if key[0] in ("mode", "try")
    }


def _epoch_flops(config: dict[str, Any], forward_passes: int) -> float:
    step = count_step_flops(config["batch_size"], config["layer_sizes"], forward_passes)
    return step * TRAIN_EXAMPLES / config["batch_size"]


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(fmean(map(math.log, values)))
