"""A benchmark's results as text: the side-by-side table, its details and the epoch tables."""

from __future__ import annotations

import textwrap
from typing import Any

from tabulate import tabulate

from comparison import FASTER, NO_DIFFERENCE, SLOWER
from intervals import CONFIDENCE
from modes import MODES
from run_text import ABSENT, SUMMARY_ROWS, number

CONSOLE_COLUMNS = 80
# Signs that not every console can print, and what stands for them there.
SPECIAL_SIGNS = "\N{BOX DRAWINGS DOUBLE HORIZONTAL}\N{BOX DRAWINGS LIGHT VERTICAL}\N{EM DASH}"
ASCII_SIGNS = str.maketrans({"\N{MULTIPLICATION SIGN}": "x", "\N{EM DASH}": "-"})


def benchmark_text(results: dict[str, Any], encoding: str | None) -> str:
    """Returns what the benchmark prints at its end: what was run, and all tables.

    Args:
        results: The object of the benchmark's result file.
        encoding: The console's; without box characters in it, the tables are plain ASCII.
    """
    style, signs = console_style(encoding)
    summary_style = style.replace("outline", "grid")
    sentences = [*describe_run(results).splitlines(), *noise_lines(results)]
    parts = ["", *map(fill, sentences), summary_table(results, summary_style)]
    parts += [fill(f"{verdict(results['comparison'])}."), ""]
    parts += [detail_table(results, style)]
    parts += map(fill, comparison_lines(results["comparison"]))
    for mode, names in MODES.items():
        parts += ["", names["label"], epoch_table(results[mode], style)]
    return "\n".join(parts).translate(signs)


def console_style(encoding: str | None) -> tuple[str, dict[int, str]]:
    """Returns tabulate's format for a console's encoding, and signs to replace in all text."""
    try:
        SPECIAL_SIGNS.encode(encoding or "ascii")
        return "fancy_outline", {}
    except UnicodeEncodeError:
        return "outline", ASCII_SIGNS


def verdict(comparison: dict[str, Any]) -> str:
    """Returns what the comparison says, in a sentence: the finding and its ground, or why none."""
    speedup = comparison["speedup"]
    if speedup is None:
        return "No speedup: " + "; ".join(comparison["warnings"])
    n = comparison["processes_per_mode"]
    processes = f"{n} process{'es' if n > 1 else ''} per mode"
    preliminary = "preliminary, " if comparison["preliminary"] else ""
    if comparison["finding"] is None:
        return f"Speedup with JIT: {times(speedup)} ({preliminary}{processes}: no interval)"
    interval = f"95 % interval {' to '.join(map(times, comparison['speedup_ci95']))}"
    if comparison["interval_coverage_at_best"] < CONFIDENCE:
        interval += f", which covers {comparison['interval_coverage_at_best']:.0%} at best"
    ground = f"({interval}; {preliminary}{processes})"
    return {
        FASTER: f"With JIT, training is {times(speedup)} as fast {ground}",
        SLOWER: f"With JIT, training takes {times(1 / speedup)} the time, so it is slower; "
        f"speedup {times(speedup)} {ground}",
        NO_DIFFERENCE: "No measurable difference, as the interval holds 1.0: speedup "
        f"{times(speedup)} {ground}",
    }[comparison["finding"]]


def detail_table(results: dict[str, Any], style: str) -> str:
    """Returns the second table: spread, warm-up in parts, drift and what else the times tell.

    Args:
        results: The object of the benchmark's result file.
        style: A table format of tabulate.
    """
    comparison = results["comparison"]
    rows = [
        (name, *(text(figures) for figures in comparison["modes"])) for name, text in DETAIL_ROWS
    ]
    peaks = [figures.get("device_peak_mb") for figures in comparison["modes"]]
    if any(peaks):  # the CPU has no memory of its own, and results of earlier versions no such key
        rows.append((DEVICE_ROW, *(number(peak, "{:.1f} MB") for peak in peaks)))
    headers = ("Detail", *(MODES[figures["mode"]]["label"] for figures in comparison["modes"]))
    return tabulate(rows, headers, style, colalign=("left", "right", "right"))


def comparison_lines(comparison: dict[str, Any]) -> list[str]:
    """Returns sentences on the ratio of each epoch, with warm-up, and the break-even step."""
    if comparison["speedup"] is None:
        return []
    with_warmup = f"Speedup with warm-up included: {times(comparison['speedup_with_warmup'])}"
    if comparison["speedup_with_warmup_ci95"]:
        interval = " to ".join(map(times, comparison["speedup_with_warmup_ci95"]))
        with_warmup += f" (95 % interval {interval})"
    ratios = " ".join(f"{ratio:.2f}" for ratio in comparison["epoch_ratios"])
    alone, both = comparison["break_even_steps"], comparison["break_even_steps_both_warm_ups"]
    if alone is None:
        break_even = "JIT never makes up for its warm-up"
    else:
        break_even = f"JIT has made up for its warm-up after {alone} steps"
        if both is not None:
            break_even += f", or after {both} if the other mode's warm-up counts, too"
    unchecked = [
        f"Gate '{gate['name']}' is {gate['detail']}."
        for gate in comparison["gates"]
        if gate["passed"] is None
    ]
    return [f"{with_warmup}.", f"Ratio per epoch: {ratios}.", f"{break_even}.", *unchecked]


def control_text(mode: str, comparison: dict[str, Any]) -> tuple[str, bool]:
    """Returns what a mode's comparison with itself says, and whether it passed."""
    label = MODES[mode]["label"]
    if comparison["speedup"] is None:
        return f"{label}: " + "; ".join(comparison["warnings"]), False
    ratio = f"{label} against itself: ratio {comparison['speedup']:.3f}"
    if comparison["speedup_ci95"] is None:
        return f"{ratio}; one process gives no interval: use --repeats", False
    low, high = comparison["speedup_ci95"]
    text = f"{ratio}, 95 % interval {low:.3f} to {high:.3f} "
    if comparison["finding"] == NO_DIFFERENCE:
        width = max(high - 1, 1 - low)
        return text + f"holds 1.0; a difference below {width:.1%} would not be seen here", True
    coverage = comparison["interval_coverage_at_best"]
    if coverage < CONFIDENCE:
        return text + f"does not hold 1.0, but covers {coverage:.0%} at best: use --rigorous", False
    return text + "does not hold 1.0: too noisy, or the one control in 20 that chance fails", False


def noise_lines(results: dict[str, Any]) -> list[str]:
    """Returns sentences on what may have disturbed the run, and on the settings it had."""
    environment, noise = results["jit"]["environment"], results["noise"]
    steal = number(noise["steal_share"], "{:.1%}")
    governor = environment["cpu_governor"]
    quota = environment.get("cores_quota")  # results of earlier versions lack it
    lines = [
        f"Load average {number(noise['load_average_at_start'], '{:.2f}')} before the start; cores: "
        f"{environment['cores_usable']} usable of {environment['cores_visible']} visible"
        + (f" (CPU time limited to that of {quota:g})" if quota else "")
        + f"; steal {steal} of the time"
        + (f"; governor {governor}" if governor else "")
    ]
    if environment["commit"]:
        clean = "unchanged" if environment["tree_clean"] else "changed since"
        lines.append(f"Commit {environment['commit'][:10]}, files {clean}")
    cleared, honoured = noise["settings_cleared"], environment["settings_honoured"]
    if cleared:
        lines.append(f"Cleared for the benchmark's processes: {', '.join(cleared)}")
    if honoured:
        words = " ".join(f"{name}={value}" for name, value in honoured.items())
        lines.append(f"Settings left as they were: {words}")
    return lines


def describe_run(results: dict[str, Any]) -> str:
    """Returns what the figures depend on, in two lines: the configuration, and the machine."""
    return describe(results["jit"]["config"], results["jit"]["environment"])


def describe(config: dict[str, Any], environment: dict[str, Any]) -> str:
    """Returns a configuration and a machine, a line each."""
    layers = "-".join(str(size) for size in config["layer_sizes"])
    cores = "1 core" if environment["cores_usable"] == 1 else f"{environment['cores_usable']} cores"
    epochs = "1 epoch" if config["epochs"] == 1 else f"{config['epochs']} epochs"
    return (
        f"MLP {layers} on MNIST, {epochs}, batch {config['batch_size']}, "
        f"SGD {config['learning_rate']:g}, seed {config['seed']}\n"
        f"{environment['cpu_model']}, {cores}, {environment['os']}; "
        f"{_device(environment)}; JAX {environment['jax']}, Python {environment['python']}"
    )


def summary_table(results: dict[str, Any], style: str) -> str:
    """Returns the side-by-side table of both modes.

    Args:
        results: The object of the benchmark's result file.
        style: A table format of tabulate.
    """
    no_jit, jit = results["no_jit"], results["jit"]
    ratio = results["comparison"]["speedup"]
    speedup = ABSENT if ratio is None else times(ratio)
    rows = [
        (name, text(no_jit), text(jit), speedup if last == "speedup" else last)
        for name, text, last in SUMMARY_ROWS
    ]
    headers = ("Metric", MODES["no_jit"]["label"], MODES["jit"]["label"], "Speedup")
    return tabulate(rows, headers, style, colalign=("left", "right", "right", "right"))


def epoch_table(result: dict[str, Any], style: str) -> str:
    """Returns the epochs of one mode: loss, test accuracy and time.

    Args:
        result: A mode's result, as it stands in the result files.
        style: A table format of tabulate.
    """
    rows = [
        (
            epoch["epoch"],
            number(epoch["loss"], "{:.4f}"),
            number(epoch["test_accuracy"], "{:.2%}"),
            number(epoch["time_s"], "{:.3f} s"),
        )
        for epoch in result["epochs"]
    ]
    headers = ("Epoch", "Loss", "Accuracy", "Time")
    return tabulate(rows, headers, style, colalign=("right",) * 4, disable_numparse=True)


def _device(environment: dict[str, Any]) -> str:
    platform = environment["device"].upper()
    # The CPU's kind is "cpu", and its model stands in the line already.
    return platform if platform == "CPU" else f"{platform} ({environment['device_kind']})"


def times(ratio: float) -> str:
    """Returns a ratio with two digits and the sign for times."""
    return f"{ratio:.2f}\N{MULTIPLICATION SIGN}"


def fill(sentence: str) -> str:
    """Returns a sentence in lines of the console's width."""
    return textwrap.fill(sentence, CONSOLE_COLUMNS)


# The row of the second table that only a device with memory of its own has.
DEVICE_ROW = "Peak memory on the device"
# The other rows of the second table: name, and figure of one of the comparison's modes.
DETAIL_ROWS = (
    ("Median epoch", lambda m: f"{m['median_epoch_s']:.3f} s"),
    ("Its median absolute deviation", lambda m: f"{m['epoch_mad_s']:.3f} s"),
    ("Spread of total times (SD / mean)", lambda m: number(m["spread_of_totals"], "{:.1%}")),
    ("Growth of an epoch's time, each epoch", lambda m: _drift(m, "slope_per_epoch", "{:+.2%}")),
    ("Last epoch over the second", lambda m: _drift(m, "last_over_second", "{:.2f}")),
    ("CPU time over wall time", lambda m: f"{m['cpu_over_wall']:.2f}"),
    ("Programs compiled", lambda m: f"{m['programs_compiled']:.0f}"),
    ("Warm-up: trace", lambda m: _part(m, "trace_ms")),
    ("Warm-up: lower", lambda m: _part(m, "lower_ms")),
    ("Warm-up: compile", lambda m: _part(m, "compile_ms")),
    ("Warm-up: first runs", lambda m: _part(m, "first_run_ms")),
)


def _drift(figures: dict[str, Any], key: str, pattern: str) -> str:
    return number(figures["drift"] and figures["drift"][key], pattern)


def _part(figures: dict[str, Any], key: str) -> str:
    parts = figures["warmup_parts_ms"]
    return "\N{EM DASH}" if parts is None else f"{parts[key]:.1f} ms"
