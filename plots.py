"""The plots of a benchmark's result file, as PNG files: training time, loss and test accuracy.

Reads the result object and nothing else, so that each plot can be drawn again from its file.
"""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import MaxNLocator

from comparison import FASTER, NO_DIFFERENCE
from config import REPOSITORY, repository_path
from modes import MODES
from result_files import BENCHMARK_FILE, read_results, read_version, study_file, write_result
from run_text import ABSENT
from tables import describe_run
from utils import OptionParser, ScriptError, run_script, say

SIZE_INCHES = (8, 4.5)
DPI = 120
PADDING_INCHES = 0.1  # left and right of the axes; matplotlib's own leaves hardly any
BAR_WIDTH = 0.4  # of the distance between two epochs; both modes' bars leave a gap of 0.2
MOST_EPOCHS_IN_BARS = 30  # with more, bars are too narrow to see: the times become curves
MOST_MARKERS = 20  # on a curve; with more epochs, only some are marked

# Colours that colour-blind readers can tell apart (Okabe and Ito); what is light against dark,
# hatch, width, dash and marker tell the modes apart in grey. The curves of both modes coincide,
# nearly: the first is wide and light, so that it shows on both sides of the second.
BAR_STYLES = {
    "no_jit": {"color": "#EEB68C", "hatch": "//", "edgecolor": "#D55E00", "linewidth": 0},
    "jit": {"color": "#0072B2"},
}
LINE_STYLES = {
    "no_jit": {
        "color": "#EEB68C",
        "linewidth": 6,
        "marker": "o",
        "markersize": 12,
        "markeredgecolor": "#D55E00",
        "clip_on": False,  # a marker at the zero line stays whole
    },
    "jit": {
        "color": "#0072B2",
        "linestyle": "--",
        "marker": "s",
        "markersize": 5,
        "clip_on": False,
    },
}


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the plots again from a folder's result files; returns the exit status."""
    parser = OptionParser(description="Draw the plots again from a folder's result files.")
    parser.add_argument(
        "results_dir",
        nargs="?",
        type=repository_path,
        default=REPOSITORY / "results",
        metavar="RESULTS_DIR",
        help="folder with those files (default: results); a relative one starts at the repository",
    )
    options = parser.parse_args(argv)
    return run_script(lambda: redraw(options.results_dir))


def redraw(folder: Path) -> int:
    """Draws the plots of a folder's result files; returns the exit status.

    Raises:
        ScriptError: If the file cannot be read or lacks a mode, or a plot cannot be written.
    """
    import study_plots  # which imports this module

    results = read_results(folder / BENCHMARK_FILE)
    if not all(results[mode] for mode in MODES):
        raise ScriptError(f"{folder / BENCHMARK_FILE} lacks a mode: that benchmark failed")
    paths = write_plots(results, folder)
    for study in study_plots.STUDY_PLOTS:
        path = folder / study_file(study)
        result = read_version(path) if path.exists() else {"status": "absent"}
        if result["status"] == "complete":
            paths += study_plots.write_study_plots(study, result, folder)
    for path in paths:
        say(f"written: {path}")
    return 0


def write_plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """Draws every plot, then writes each one whole or not at all; returns their paths.

    Args:
        results: The object of the benchmark's result file, with a result of every mode.
        folder: Where to write.

    Raises:
        ScriptError: If a file cannot be written.
    """
    pngs = {folder / name: png_bytes(make_figure(results)) for name, make_figure in PLOTS.items()}
    for path, png in pngs.items():
        write_result(path, png)
    return list(pngs)


def training_time_figure(results: dict[str, Any]) -> Figure:
    """Returns the time of every epoch and the total as bars, for both modes."""
    comparison = results["comparison"]
    ground = f"processes per mode: {comparison['processes_per_mode']}"
    ground += " (preliminary)" if comparison["preliminary"] else ""
    figure = new_figure(f"Training time, warm-up not included; {ground}", describe_run(results))
    per_epoch, total = figure.subplots(1, 2, width_ratios=(2, 1))
    for position, (mode, names) in enumerate(MODES.items()):
        result, style = results[mode], BAR_STYLES[mode]
        epochs, times = _series(result, "epoch"), _series(result, "time_s")
        if len(epochs) <= MOST_EPOCHS_IN_BARS:
            offset = (position - (len(MODES) - 1) / 2) * BAR_WIDTH
            per_epoch.bar(epochs + offset, times, BAR_WIDTH, label=names["label"], **style)
        else:
            thin = {**LINE_STYLES[mode], "linewidth": 1.5, "markersize": 3.5}
            per_epoch.plot(epochs, times, label=names["label"], **thin)
        seconds = result["total_training_time_s"]
        bar = total.bar(names["label"], seconds, 0.6, **style)
        total.bar_label(bar, [f"{seconds:.2f} s"], padding=2)
    _set_epoch_axis(per_epoch, len(epochs))
    _start_at_zero(per_epoch)
    per_epoch.set_ylabel("Time per epoch (s)")
    total.set_ylabel("Total training time (s)")
    total.margins(y=0.1)  # room for the labels on the bars
    total.set_title(speedup_text(comparison), fontsize=10, weight="bold")
    _finish_axes(figure)
    return figure


def loss_figure(results: dict[str, Any]) -> Figure:
    """Returns the curves of the training loss; a loss that is not finite is noted, not drawn."""
    title = "Training loss without and with JIT"
    figure = _curves(results, "loss", 1, title, "Mean training loss of the epoch (nats)")
    _start_at_zero(figure.axes[0])
    return figure


def accuracy_figure(results: dict[str, Any]) -> Figure:
    """Returns the curves of the test accuracy in percent."""
    title = "Test accuracy without and with JIT"
    return _curves(results, "test_accuracy", 100, title, "Test accuracy after the epoch (%)")


def speedup_text(comparison: dict[str, Any]) -> str:
    """Returns the finding in at most two short lines, or that a check failed."""
    speedup, finding = comparison["speedup"], comparison["finding"]
    if speedup is None:
        return f"speedup {ABSENT}: check failed"
    sign = "\N{MULTIPLICATION SIGN}"
    if finding == NO_DIFFERENCE:
        return f"{NO_DIFFERENCE}\n({speedup:.2f}{sign})"
    if finding is None:
        return f"speedup {speedup:.2f}{sign}\n(no interval)"
    low, high = comparison["speedup_ci95"]
    if finding == FASTER:
        claim = f"{speedup:.2f}{sign} as fast with JIT"
    else:
        low, high = 1 / high, 1 / low
        claim = f"{1 / speedup:.2f}{sign} the time with JIT"
    return f"{claim}\n(95 % interval {low:.2f} to {high:.2f})"


def _curves(results: dict[str, Any], key: str, factor: float, title: str, unit: str) -> Figure:
    figure = new_figure(title, describe_run(results))
    axes = figure.subplots()
    for mode, names in MODES.items():
        epochs, values = _series(results[mode], "epoch"), _series(results[mode], key) * factor
        label, n_missing = names["label"], np.count_nonzero(~np.isfinite(values))
        if n_missing:
            label += f" (not finite in {n_missing} of {len(values)} epochs)"
        every = -(-len(epochs) // MOST_MARKERS)
        axes.plot(epochs, values, label=label, markevery=every, **LINE_STYLES[mode])
    if not any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
        axes.set_yticks([])
        axes.text(0.5, 0.5, "no finite value", transform=axes.transAxes, ha="center")
    _set_epoch_axis(axes, len(epochs))
    axes.set_ylabel(unit)
    _finish_axes(figure)
    return figure


def new_figure(title: str, footer: str) -> Figure:
    """Returns a figure with its title and, below the axes, what its figures depend on."""
    layout = ConstrainedLayoutEngine(w_pad=PADDING_INCHES)
    figure = Figure(SIZE_INCHES, DPI, layout=layout)
    figure.suptitle(title)
    figure.supxlabel(footer, x=0.01, ha="left", wrap=True, fontsize=10, color="0.3")
    return figure


def _series(result: dict[str, Any], key: str) -> np.ndarray:
    # As floats, null (a loss that was not finite) becomes NaN, which matplotlib leaves out.
    return np.array([epoch[key] for epoch in result["epochs"]], dtype=float)


def _set_epoch_axis(axes: Axes, n_epochs: int) -> None:
    axes.set_xlabel("Epoch")
    padding = max(0.5, 0.03 * n_epochs)  # of a bar, and at least of a marker
    axes.set_xlim(1 - padding, n_epochs + padding)
    ticks = MaxNLocator(10, steps=(1, 2, 5, 10), integer=True).tick_values(1, n_epochs)
    axes.set_xticks([tick for tick in ticks if 1 <= tick <= n_epochs])


def _start_at_zero(axes: Axes) -> None:
    # Zero becomes one of the values, so that the margin above them fits the whole range.
    axes.update_datalim([(1, 0)])
    axes.autoscale_view()
    axes.set_ylim(bottom=0)


def _finish_axes(figure: Figure) -> None:
    # Above the axes, where it can cover neither bars nor curves, whatever their shape.
    figure.axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(MODES), frameon=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.9")
        axes.set_axisbelow(True)
        # Without a factor such as 1e7 above the axis, where the legend is.
        axes.yaxis.set_major_formatter("{x:g}")


def png_bytes(figure: Figure) -> bytes:
    """Returns a figure as PNG."""
    png = BytesIO()
    # Without matplotlib's version, equal results give equal bytes.
    figure.savefig(png, format="png", metadata={"Software": None})
    return png.getvalue()


PLOTS = {
    "training_time.png": training_time_figure,
    "loss_curve.png": loss_figure,
    "accuracy_curve.png": accuracy_figure,
}

if __name__ == "__main__":
    sys.exit(main())
