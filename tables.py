"""Results as text: a line an epoch, the side-by-side table and the epoch tables."""

from __future__ import annotations

import textwrap
from typing import Any

from tabulate import tabulate

from config import MODES

CONSOLE_COLUMNS = 80
# What stands for a figure that the result files do not have: a loss that is not finite, a speedup
# that was not computed.
ABSENT = "n/a"
# How the line of an epoch begins; benchmark.py counts these lines to move its bar.
EPOCH_LINE_START = "epoch "
# Signs that not every console can print, and what stands for them there.
SPECIAL_SIGNS = "\N{BOX DRAWINGS DOUBLE HORIZONTAL}\N{BOX DRAWINGS LIGHT VERTICAL}\N{EM DASH}"
ASCII_SIGNS = str.maketrans({"\N{MULTIPLICATION SIGN}": "x", "\N{EM DASH}": "-"})


def number(value: float | None, pattern: str) -> str:
    """Formats a figure by a str.format pattern such as "{:.2f} s"; ABSENT if it is None."""
    return ABSENT if value is None else pattern.format(value)


def epoch_line(epoch: int, n_epochs: int, loss: float, test_accuracy: float, time_s: float) -> str:
    """Returns the line that a training script prints after each epoch."""
    return (
        f"{EPOCH_LINE_START}{epoch:{len(str(n_epochs))}d}/{n_epochs}  loss {loss:.4f}  "
        f"test accuracy {test_accuracy:.2%}  time {time_s:.3f} s"
    )


def summary_text(result: dict[str, Any]) -> str:
    """Returns the summary that a training script prints at its end.

    Args:
        result: A mode's result, as result_files.mode_result returns it.
    """
    return tabulate([(name, text(result)) for name, text, _ in SUMMARY_ROWS], tablefmt="plain")


def benchmark_text(results: dict[str, Any], encoding: str | None) -> str:
    """Returns what the benchmark prints at its end: what was run, and all tables.

    Args:
        results: The object of the benchmark's result file.
        encoding: The console's; without box characters in it, the tables are plain ASCII.
    """
    try:
        SPECIAL_SIGNS.encode(encoding or "ascii")
        summary_style, epoch_style, ascii_signs = "fancy_grid", "fancy_outline", {}
    except UnicodeEncodeError:
        summary_style, epoch_style, ascii_signs = "grid", "outline", ASCII_SIGNS
    sentences = [verdict(results["comparison"]), *describe_run(results).splitlines()]
    parts = ["", summary_table(results, summary_style)]
    parts += [textwrap.fill(sentence, CONSOLE_COLUMNS) for sentence in sentences]
    for mode, names in MODES.items():
        parts += ["", names["label"], epoch_table(results[mode], epoch_style)]
    return "\n".join(parts).translate(ascii_signs)


def verdict(comparison: dict[str, Any]) -> str:
    """Returns what the comparison says, in a sentence: the speedup and its ground, or why none."""
    speedup = comparison["speedup"]
    if speedup is None:
        return "No speedup: " + "; ".join(comparison["warnings"])
    sign = "\N{MULTIPLICATION SIGN}"
    slower = f"; JIT was {1 / speedup:.2f}{sign} slower" if speedup < 1 else ""
    preliminary = "preliminary, " if comparison["preliminary"] else ""
    return (
        f"Total training time without JIT over that with JIT: {speedup:.2f}{sign}{slower} "
        f"({preliminary}processes per mode: {comparison['processes_per_mode']})"
    )


def describe_run(results: dict[str, Any]) -> str:
    """Returns what the figures depend on, in two lines: the configuration, and the machine."""
    config, environment = results["jit"]["config"], results["jit"]["environment"]
    layers = "-".join(str(size) for size in config["layer_sizes"])
    epochs = "1 epoch" if config["epochs"] == 1 else f"{config['epochs']} epochs"
    return (
        f"MLP {layers} on MNIST, {epochs}, batch {config['batch_size']}, "
        f"SGD {config['learning_rate']:g}, seed {config['seed']}\n"
        f"{environment['cpu_model']}, {environment['cores_usable']} cores, {environment['os']}; "
        f"{environment['device'].upper()}; JAX {environment['jax']}, Python {environment['python']}"
    )


def summary_table(results: dict[str, Any], style: str) -> str:
    """Returns the side-by-side table of both modes.

    Args:
        results: The object of the benchmark's result file.
        style: A table format of tabulate.
    """
    no_jit, jit = results["no_jit"], results["jit"]
    speedup = number(results["comparison"]["speedup"], "{:.2f}\N{MULTIPLICATION SIGN}")
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


# The rows of the side-by-side table: name, figure of one mode, and the last column.
SUMMARY_ROWS = (
    ("Total Training Time", lambda r: number(r["total_training_time_s"], "{:.2f} s"), "speedup"),
    ("Avg. Time per Epoch", lambda r: number(r["avg_epoch_time_s"], "{:.3f} s"), "speedup"),
    ("Final Loss", lambda r: number(r["final_loss"], "{:.4f}"), "\N{EM DASH}"),
    ("Final Test Accuracy", lambda r: number(r["final_test_accuracy"], "{:.2%}"), "\N{EM DASH}"),
    ("Peak Memory (MB)", lambda r: number(r["peak_memory_mb"], "{:.1f} MB"), "\N{EM DASH}"),
    ("Memory Delta (MB)", lambda r: number(r["memory_delta_mb"], "{:.1f} MB"), "\N{EM DASH}"),
    ("Warm-up Time", lambda r: number(r["warmup_time_ms"], "{:.1f} ms"), "one-time"),
)
