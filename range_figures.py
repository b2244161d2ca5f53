"""The figures of the range study: dispatch and work per step, where JIT hardly matters, cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import nnls

from comparison import break_even_steps
from intervals import paired_ratio
from modes import MODES

NEAR = 0.9  # of the jitted step's speed: from here on, JIT hardly matters
COST_EPOCHS = (1, 2, 5, 10, 20)


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


def _over_processes(result: dict[str, Any], factor: float, mode: str, size: int) -> list[float]:
    return [
        median(cell["step_s"])
        for process in result["processes"]
        for cell in process["cells"]
        if (cell["width_factor"], cell["mode"], cell["batch_size"]) == (factor, mode, size)
    ]
