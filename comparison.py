"""The comparison of two modes: first whether they did the same, then how much faster one was.

Reads result objects and nothing else.
"""

from __future__ import annotations

import math
from typing import Any

# Largest relative difference of an epoch's loss: float32 sums taken in another order drift apart
# by some 1e-6 over ten epochs, while another learning rate or batch shows at 1e-2.
LOSS_TOLERANCE = 1e-3
# Largest difference of the final test accuracy, as a share: half a point.
ACCURACY_TOLERANCE = 0.005
# Below this number of processes per mode a comparison is called preliminary.
PROCESSES_FOR_A_CLAIM = 10


def compare(no_jit: dict[str, Any], jit: dict[str, Any]) -> dict[str, Any]:
    """Compares two modes' results.

    Args:
        no_jit: Result of the mode that is the base.
        jit: Result of the mode that is compared with it.

    Returns:
        "speedup" (total training time of no_jit over that of jit; None if a gate failed),
        "speedup_ci95" (None: one process gives no interval), "processes_per_mode", "preliminary",
        "warnings" (a sentence for each failed gate) and "gates" (name, passed, detail).
    """
    gates = check_gates(no_jit, jit)
    failed = [gate for gate in gates if not gate["passed"]]
    n_processes = min(len(no_jit["runs"]), len(jit["runs"]))
    speedup = no_jit["total_training_time_s"] / jit["total_training_time_s"]
    return {
        "speedup": None if failed else speedup,
        "speedup_ci95": None,
        "processes_per_mode": n_processes,
        "preliminary": n_processes < PROCESSES_FOR_A_CLAIM,
        "warnings": [f"gate '{gate['name']}' failed: {gate['detail']}" for gate in failed],
        "gates": gates,
    }


def comparison_without(failures: list[str]) -> dict[str, Any]:
    """Returns what stands for the comparison when a mode has no result: no speedup, and why."""
    return {
        "speedup": None,
        "speedup_ci95": None,
        "processes_per_mode": 0,
        "preliminary": True,
        "warnings": failures,
        "gates": [],
    }


def check_gates(no_jit: dict[str, Any], jit: dict[str, Any]) -> list[dict[str, Any]]:
    """Checks that both modes did the same work, without which a ratio of times means nothing.

    Returns:
        One dict per gate: "name", "passed" and "detail", a sentence with the figures.
    """
    runs = no_jit["runs"] + jit["runs"]
    return [
        _equal_in_all("same configuration", [no_jit["config"], jit["config"]]),
        _equal_in_all("same data", [no_jit["dataset"]["sha256"], jit["dataset"]["sha256"]]),
        _equal_in_all("same initial parameters", [run["initial_params_sha256"] for run in runs]),
        _equal_in_all("same batches", [run["epoch_orders_sha256"] for run in runs]),
        _same_losses(no_jit, jit),
        _same_accuracy(no_jit, jit),
        _no_compile(runs),
    ]


def _gate(name: str, passed: bool, detail: str) -> dict[str, Any]:
    return {"name": name, "passed": passed, "detail": detail}


def _equal_in_all(name: str, values: list[Any]) -> dict[str, Any]:
    passed = all(value == values[0] for value in values)
    return _gate(name, passed, "equal in both modes" if passed else "differs between the modes")


def _same_losses(no_jit: dict[str, Any], jit: dict[str, Any]) -> dict[str, Any]:
    name = "same epoch losses"
    losses = [[epoch["loss"] for epoch in mode["epochs"]] for mode in (no_jit, jit)]
    if not all(loss is not None and math.isfinite(loss) for loss in losses[0] + losses[1]):
        return _gate(name, False, "a loss is not finite: try a lower --learning-rate")
    difference = max(abs(b - a) / max(a, 1e-12) for a, b in zip(*losses))
    return _gate(
        name,
        difference <= LOSS_TOLERANCE,
        f"largest relative difference {difference:.1e}, allowed {LOSS_TOLERANCE:.0e}",
    )


def _same_accuracy(no_jit: dict[str, Any], jit: dict[str, Any]) -> dict[str, Any]:
    difference = abs(no_jit["final_test_accuracy"] - jit["final_test_accuracy"])
    return _gate(
        "same final accuracy",
        difference <= ACCURACY_TOLERANCE,
        f"difference {difference:.2%} points, allowed {ACCURACY_TOLERANCE:.2%} points",
    )


def _no_compile(runs: list[dict[str, Any]]) -> dict[str, Any]:
    compiled = sum(sum(run["programs_compiled_in_epochs"]) for run in runs)
    return _gate("no compile in a timed epoch", compiled == 0, f"programs compiled: {compiled}")
