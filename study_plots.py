"""The plots of the studies' result files, as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bound_figures import bound_figures
from modes import LADDER
from plots import new_figure, png_bytes
from range_figures import NEAR, range_figures
from result_files import write_result
from study_figures import drift_figures, ladder_figures
from study_tables import ONE_PASS, step_text
from tables import describe

# Okabe and Ito, as in plots.py: the two of the benchmark keep their colours.
ORANGE, BLUE, GREEN, GREY = "#D55E00", "#0072B2", "#009E73", "0.5"
MODE_STYLES = {
    "no_jit": {"color": ORANGE, "marker": "o"},
    ONE_PASS: {"color": GREEN, "marker": "^"},
    "jit": {"color": BLUE, "marker": "s"},
}
# The box of a text that a line would strike through.
OVER_LINES = {"facecolor": "white", "edgecolor": "none", "pad": 1}
LINE_STYLES = ("-", "--", ":", "-.")
PART_COLORS = {"maximum": BLUE, "nn_relu": ORANGE, "nn_relu, cleared": GREEN}


def write_study_plots(study: str, result: dict[str, Any], folder: Path) -> list[Path]:
    """Draws a study's plot, if it has one, and writes it whole or not at all; returns its path.

    Raises:
        ScriptError: If the file cannot be written.
    """
    if study not in STUDY_PLOTS:
        return []
    path = folder / f"{study}.png"
    write_result(path, png_bytes(STUDY_PLOTS[study](result)))
    return [path]


def ladder_figure(result: dict[str, Any]) -> Figure:
    """Returns the time per epoch on each rung, and what each step to the next one saves."""
    rungs = ladder_figures(result)["rungs"]
    first = result["modes"][rungs[0]["mode"]]
    footer = describe(first["config"], first["environment"])
    figure = new_figure("The ladder: one change at a time", footer)
    axes = figure.subplots()
    seconds = [rung["epoch_s"] for rung in rungs]
    positions = range(len(rungs))
    axes.plot(seconds, positions, color="0.8", drawstyle="steps-post", zorder=1)
    for position, (rung, time) in enumerate(zip(rungs, seconds)):
        style = MODE_STYLES.get(rung["mode"], {"color": GREY, "marker": "D"})
        axes.plot(time, position, linestyle="", markersize=9, **style)
        axes.annotate(
            f"{time:.3f} s",
            (time, position),
            (10, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
            bbox=OVER_LINES,
        )
        if rung["to_next"]:
            text = step_text(rung, rungs[position + 1])
            axes.annotate(
                text,
                (1, position + 0.5),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                fontsize=8,
                color="0.35",
                bbox=OVER_LINES,
            )
    axes.set_yticks(positions, [LADDER[rung["mode"]]["label"] for rung in rungs])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel("Time per epoch (s), logarithmic; between two rungs, what the lower one saves")
    axes.set_xlim(min(seconds) / 1.5, max(seconds) * 12)
    _plain_log_ticks(axes, "x")
    _tidy(axes, "x")
    return figure


def range_figure(result: dict[str, Any]) -> Figure:
    """Returns the time per step over batch sizes with the fits, and the ratios for each width."""
    first = result["processes"][0]
    figure = new_figure(
        "When does JIT matter? (dashed: dispatch + work per image)",
        describe({**first["config"], "layer_sizes": "MLP"}, first["environment"]).splitlines()[1],
    )
    left, right = figure.subplots(1, 2)
    widths = range_figures(result)
    middle = next(figures for figures in widths if figures["width_factor"] == 1)
    sizes = np.array(middle["batch_sizes"])
    for mode, step_s in middle["step_s"].items():
        style = MODE_STYLES[mode]
        left.plot(sizes, 1e3 * np.array(step_s), linestyle="", label=LADDER[mode]["label"], **style)
        fit = middle["fits"][mode]
        model = (fit["dispatch_us"] + fit["work_us"] * sizes) / 1e3
        left.plot(sizes, model, "--", color=style["color"])
    left.set_ylabel("Time per step (ms)")
    left.set_yscale("log")
    left.set_title("-".join(map(str, middle["layer_sizes"])), fontsize=10)
    for figures, line in zip(widths, LINE_STYLES):
        ratios = figures["ratios"][ONE_PASS]
        values = np.array([ratio.value for ratio in ratios])
        low, high = np.array([ratio.ci95 or (ratio.value,) * 2 for ratio in ratios]).T
        label = "-".join(map(str, figures["layer_sizes"]))
        errors = np.clip([values - low, high - values], 0, None)
        right.errorbar(
            figures["batch_sizes"], values, errors, fmt=line, marker="^", capsize=2, label=label
        )
    right.axhline(1 / NEAR, color="0.5", linewidth=0.8)
    right.annotate(f" {NEAR:.0%} of JIT's speed", (sizes[0], 1 / NEAR), va="bottom", fontsize=8)
    right.set_ylabel("Time without JIT over with JIT, one pass each")
    right.set_yscale("log")
    right.set_title("The ratio: JIT alone", fontsize=10)
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, map(str, sizes))
        axes.set_xlabel("Batch size")
        axes.legend(frameon=False, fontsize=8)
        _plain_log_ticks(axes, "y")
        _tidy(axes, "y")
    return figure


def bound_figure(result: dict[str, Any]) -> Figure:
    """Returns each mode as a share of the two floors."""
    figures, first = bound_figures(result), result["processes"][0]
    figure = new_figure(
        "How good is the step? Its own matrix products alone, as a share of its time",
        describe(first["config"], first["environment"]),
    )
    axes = figure.subplots()
    shares = (("of_products", "at their own shapes", BLUE), ("of_peak", "at the peak rate", GREY))
    for offset, (key, label, color) in zip((-0.2, 0.2), shares):
        values = np.array([100 * mode[key].value for mode in figures["modes"]])
        positions = np.arange(len(values)) + offset
        axes.barh(positions, values, 0.38, color=color, label=label)
        for value, position in zip(values, positions):
            axes.annotate(f" {value:.0f} %", (value, position), va="center", fontsize=9)
    labels = [LADDER[mode["mode"]]["label"] for mode in figures["modes"]]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 112)
    axes.set_xlabel(
        f"Time that the products alone take (%); peak {figures['peak_flops'] / 1e9:.0f} GFLOP/s"
    )
    axes.axvline(100, color="0.3", linewidth=0.8)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    _tidy(axes, "x")
    return figure


def drift_figure(result: dict[str, Any]) -> Figure:
    """Returns time per step, RSS and cache entries against the steps taken, for every arm."""
    environment = result["processes"][0]["environment"]
    footer = f"{environment['cpu_model']}, {environment['cores_usable']} cores, {environment['os']}"
    figure = new_figure("The drift of the eager step", footer)
    versions = list(dict.fromkeys(arm["jax"] for arm in drift_figures(result)))
    panels = figure.subplots(1, 3)
    quantities = (
        ("step_s", 1e3, "Time per step (ms)"),
        ("rss_mb", 1, "RSS (MB)"),
        ("greater_cache_entries", 1, "Entries in jnp.greater's cache"),
    )
    for axes, (key, factor, label) in zip(panels, quantities):
        for arm in drift_figures(result):
            steps = [record["steps"] for record in arm["records"]]
            values = [factor * record[key] for record in arm["records"]]
            axes.plot(
                steps,
                values,
                LINE_STYLES[versions.index(arm["jax"]) % len(LINE_STYLES)],
                color=PART_COLORS[arm["part"]],
                label=f"{arm['part']}, JAX {arm['jax']}",
            )
        axes.set_title(label, fontsize=10)
        axes.set_xlabel("Steps")
        axes.set_ylim(bottom=0)
        _tidy(axes, "y")
    panels[1].legend(loc="lower left", fontsize=7, frameon=False)  # RSS is far from zero
    return figure


def _plain_log_ticks(axes: Axes, which: str) -> None:
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")


def _tidy(axes: Axes, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="0.9")
    axes.set_axisbelow(True)


STUDY_PLOTS = {
    "ladder": ladder_figure,
    "range": range_figure,
    "bound": bound_figure,
    "drift": drift_figure,
}
