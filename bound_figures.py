"""The figures of the bound study: every mode, and every way to scan, against the floors."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from gates import count_step_flops
from intervals import geometric_mean, paired_ratio
from mnist_sources import TRAIN_EXAMPLES
from modes import LADDER
from study_figures import FLOAT_BYTES, count_parameters

FLOORS = ("peak", "products", "scan_products")


def bound_figures(result: dict[str, Any]) -> dict[str, Any]:
    """Computes the floors, and each mode and each way to scan against them.

    A mode's own work is that of its matrix products (gates.count_step_flops).

    Args:
        result: The object of the bound study's result file.

    Returns:
        "peak_flops" (per second, the best of the sizes), "products_flops" (at the shapes of the
        step's own products) and "scan_products_flops" (the same, laid out as in jit_scan),
        "update_bytes" (per second) and "update_s" (of a step); "modes", each with "epoch_s",
        "of_peak", "of_products" and "of_scan_products" (Ratio: share of the floor) and "to_jit"
        (Ratio of the jitted mode's time to its own); "tries", each with "name", "epoch_s" and
        "to_scan" (Ratio of jit_scan's time to its own), and "refused"; also "processes" and
        "tries_processes".
    """
    processes = [_medians(process) for process in result["processes"] if process["part"] == "modes"]
    trying = [process for process in result["processes"] if process["part"] == "tries"]
    config = result["processes"][0]["config"]
    rates = [
        {
            kind: max(work / time for (of, _), (work, time) in values.items() if of == kind)
            for kind in (*FLOORS, "update")
        }
        for values in processes
    ]
    epoch_s = _epoch_times(processes)
    modes = []
    for (_, mode), times in epoch_s.items():
        flops = _epoch_flops(config, LADDER[mode]["forward_passes"])
        floors = {kind: [flops / rate[kind] for rate in rates] for kind in FLOORS}
        modes.append(
            {
                "mode": mode,
                "epoch_s": geometric_mean(times),
                **{f"of_{kind}": paired_ratio(floors[kind], times) for kind in FLOORS},
                "to_jit": paired_ratio(epoch_s["mode", "jit"], times),
            }
        )
    tried = _epoch_times([_medians(process) for process in trying])
    tries = [
        {
            "name": name,
            "epoch_s": geometric_mean(times),
            "to_scan": paired_ratio(tried["mode", "jit_scan"], times),
        }
        for (kind, name), times in tried.items()
        if kind == "try"
    ]
    update_bytes = geometric_mean([rate["update"] for rate in rates])
    return {
        **{f"{kind}_flops": geometric_mean([rate[kind] for rate in rates]) for kind in FLOORS},
        "update_bytes": update_bytes,
        "update_s": 3 * FLOAT_BYTES * count_parameters(config["layer_sizes"]) / update_bytes,
        "processes": len(processes),
        "modes": modes,
        "tries": tries,
        "tries_processes": len(trying),
        "refused": trying[0]["refused"] if trying else {},
    }


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
