"""The gates: what must hold before a ratio of times means anything. Reads result objects alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from intervals import relative_slope
from modes import LADDER

# Largest absolute difference of a parameter after one step from equal parameters.
FIRST_STEP_TOLERANCE = 1e-6
# Largest relative difference of an epoch's loss: float32 sums taken in another order drift apart
# by some 1e-5 over ten epochs, while another learning rate or batch shows at 1e-2.
LOSS_TOLERANCE = 1e-3
# Largest difference of the final test accuracy, as a share: half a point.
ACCURACY_TOLERANCE = 0.005
# Largest relative difference between XLA's account of a step and that of its products alone.
FLOPS_TOLERANCE = 0.02
# Steady state: the growth of an epoch's time from one epoch to the next, as a share, and the last
# epoch's over the second's. Single processes showed up to 0.022 and 1.21 in 20 runs on a shared
# machine; what is judged is the median over processes.
SLOPE_LIMIT = 0.03
LAST_OVER_SECOND_LIMIT = 1.25
EPOCHS_FOR_A_SLOPE = 5
# Linux keeps RSS and its high-water mark by counters that lag behind each other by some pages.
MEMORY_TOLERANCE_MB = 5.0


def check_gates(base: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks two modes' results, in every run of both.

    Args:
        base: A mode's result.
        other: The result that is compared with it.

    Returns:
        One dict per gate: "name", "passed" (None if too few epochs were run to tell) and "detail",
        a sentence with the figures.
    """
    modes = [base, other]
    runs = base["runs"] + other["runs"]
    return [
        _equal("same configuration", [run["config_sha256"] for run in runs]),
        _equal("same environment", [run["environment_sha256"] for run in runs]),
        _equal("same data", [run["data_sha256"] for run in runs]),
        _equal("same initial parameters", [run["initial_params_sha256"] for run in runs]),
        _equal("same batches", [run["epoch_orders_sha256"] for run in runs]),
        _same_first_step(runs),
        _same_losses(runs),
        _same_accuracy(runs),
        _same_work(modes),
        _float32(runs),
        _no_compile(modes),
        _steady_state(modes),
        _memory(runs),
    ]


def count_step_flops(batch_size: int, layer_sizes: Sequence[int], forward_passes: int) -> int:
    """Counts the floating-point operations of a training step's matrix products.

    A product of (b, m) and (m, n) takes 2 b m n. A layer has one in each forward pass and one for
    the gradient of its weights; each layer but the first has a third for that of its inputs.

    Args:
        batch_size: b, images a step.
        layer_sizes: Number of units of each layer, input first.
        forward_passes: 2 if the step computes the loss again, apart from the gradient.
    """
    products = [m * n for m, n in zip(layer_sizes[:-1], layer_sizes[1:])]
    return 2 * batch_size * ((forward_passes + 1) * sum(products) + sum(products[1:]))


def drift(result: dict[str, Any]) -> dict[str, float] | None:
    """Computes how a mode's epochs get slower: medians over its processes, from the second epoch.

    Returns:
        "slope_per_epoch" (share of an epoch's time) and "last_over_second"; None below five epochs.
    """
    if len(result["epochs"]) < EPOCHS_FOR_A_SLOPE:
        return None
    times = [run["epoch_times_s"][1:] for run in result["runs"]]
    return {
        "slope_per_epoch": median(relative_slope(epochs) for epochs in times),
        "last_over_second": median(epochs[-1] / epochs[0] for epochs in times),
    }


def _gate(name: str, passed: bool | None, detail: str) -> dict[str, Any]:
    return {"name": name, "passed": passed, "detail": detail}


def _equal(name: str, values: Sequence[Any]) -> dict[str, Any]:
    passed = all(value == values[0] for value in values)
    return _gate(name, passed, "equal in all runs" if passed else "differs between runs")


def _same_first_step(runs: list[dict[str, Any]]) -> dict[str, Any]:
    name = "same parameters after one step"
    differences = [run["first_step_difference"] for run in runs]
    if not _all_finite(differences):
        return _gate(name, False, "a parameter is not finite after one step")
    return _within(name, differences, FIRST_STEP_TOLERANCE, "largest difference")


def _same_losses(runs: list[dict[str, Any]]) -> dict[str, Any]:
    name = "same epoch losses"
    losses = [run["losses"] for run in runs]
    if not all(map(_all_finite, losses)):
        return _gate(name, False, "a loss is not finite: try a lower --learning-rate")
    differences = [
        abs(b - a) / max(abs(a), 1e-12) for run in losses for a, b in zip(losses[0], run)
    ]
    return _within(name, differences, LOSS_TOLERANCE, "largest relative difference")


def _same_accuracy(runs: list[dict[str, Any]]) -> dict[str, Any]:
    final = [run["test_accuracies"][-1] for run in runs]
    differences = [abs(accuracy - final[0]) for accuracy in final]
    return _within("same final accuracy", differences, ACCURACY_TOLERANCE, "largest difference")


def _same_work(modes: list[dict[str, Any]]) -> dict[str, Any]:
    differences = []
    for mode in _by_xla(modes):
        expected = count_step_flops(
            mode["config"]["batch_size"],
            mode["config"]["layer_sizes"],
            LADDER[mode["mode"]]["forward_passes"],
        )
        differences += [abs(run["step_flops"] / expected - 1) for run in mode["runs"]]
    text = "largest relative difference between a step's FLOPs, by XLA, and those of its products"
    return _within("same work", differences, FLOPS_TOLERANCE, text)


def _float32(runs: list[dict[str, Any]]) -> dict[str, Any]:
    dtypes = sorted({dtype for run in runs for dtype in run["dtypes"]})
    return _gate("float32 throughout", dtypes == ["float32"], f"parameters are {dtypes}")


def _no_compile(modes: list[dict[str, Any]]) -> dict[str, Any]:
    name = "no compile in a timed epoch"
    runs = [run for mode in _by_xla(modes) for run in mode["runs"]]
    if min(run["warmup"]["programs_compiled"] for run in runs) == 0:
        return _gate(name, False, "JAX did not even report the compiles of a warm-up")
    compiled = sum(sum(run["programs_compiled_in_epochs"]) for run in runs)
    return _gate(name, compiled == 0, f"programs compiled: {compiled}")


def _steady_state(modes: list[dict[str, Any]]) -> dict[str, Any]:
    name = "steady state"
    drifts = [drift(mode) for mode in modes]
    if None in drifts:
        return _gate(name, None, f"not checked below {EPOCHS_FOR_A_SLOPE} epochs")
    passed = all(
        abs(values["slope_per_epoch"]) <= SLOPE_LIMIT
        and 1 / LAST_OVER_SECOND_LIMIT <= values["last_over_second"] <= LAST_OVER_SECOND_LIMIT
        for values in drifts
    )
    details = [
        f"{LADDER[mode['mode']]['phrase']}, an epoch's time changes by "
        f"{values['slope_per_epoch']:+.1%} an epoch, and the last takes "
        f"{values['last_over_second']:.2f} times the second"
        for mode, values in zip(modes, drifts)
    ]
    limits = f"limits: {SLOPE_LIMIT:.0%} an epoch, {LAST_OVER_SECOND_LIMIT:.2f} times"
    return _gate(name, passed, f"{'' if passed else 'drift: '}{'; '.join(details)} ({limits})")


def _memory(runs: list[dict[str, Any]]) -> dict[str, Any]:
    above = max(
        max(stage["rss_before_mb"], stage["rss_after_mb"]) - run["memory"]["peak_mb"]
        for run in runs
        for stage in run["memory"]["stages"]
    )
    if above <= MEMORY_TOLERANCE_MB:
        return _gate("memory", True, "no sample is above its process's peak")
    return _gate("memory", False, f"a sample is {above:.1f} MB above its process's peak")


def _by_xla(modes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [mode for mode in modes if LADDER[mode["mode"]]["by_xla"]]


def _within(name: str, values: Sequence[float], limit: float, text: str) -> dict[str, Any]:
    value = float(np.max(values))  # NaN if there is one, unlike Python's max
    return _gate(name, value <= limit, f"{text} {value:.1e}, allowed {limit:.0e}")


def _all_finite(values: Sequence[float | None]) -> bool:
    return all(value is not None and math.isfinite(value) for value in values)
