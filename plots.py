"""The plots of a benchmark's result file, as PNG files: training time, loss and test accuracy.

Reads the result object and nothing else, so that each plot can be drawn again from its file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from config import MODES, REPOSITORY
from result_files import BENCHMARK_FILE, read_json, write_whole
from tables import describe_run
from utils import ScriptError, run_script, say

SIZE_INCHES = (8, 4.5)
DPI = 120
BAR_WIDTH = 0.4  # of the distance between two epochs; both modes' bars leave a gap of 0.2
MOST_HATCHED_EPOCHS = 30  # with more, bars are too narrow for a hatch
MOST_MARKERS = 20  # on a curve; with more epochs, only some are marked

# Colours that colour-blind readers can tell apart (Okabe and Ito); what is light against dark,
# hatch, width, dash and marker tell the modes apart in grey. The curves of both modes coincide,
# nearly: the first is wide and light, so that it shows on both sides of the second.
BAR_STYLES = {
    "no_jit": {"color": "#EEB68C", "hatch": "//", "edgecolor": "#D55E00", "linewidth": 0},
    "jit": {"color": "#0072B2"},
}
LINE_STYLES = {
    "no_jit": {"color": "#EEB68C", "linewidth": 6, "marker": "o", "markersize": 12},
    "jit": {"color": "#0072B2", "linestyle": "--", "marker": "s", "markersize": 5},
}


def main(argv: Sequence[str] | None = None) -> int:
    """Draws the plots again from a folder's result file; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=f"Draw the plots again from {BENCHMARK_FILE}, beside it."
    )
    parser.add_argument(
        "results_dir",
        nargs="?",
        type=Path,
        default=Path("results"),
        metavar="RESULTS_DIR",
        help="folder with that file (default: %(default)s); a relative folder starts at the "
        "repository",
    )
    options = parser.parse_args(argv)
    return run_script(lambda: redraw(REPOSITORY / options.results_dir.expanduser()))


def redraw(folder: Path) -> int:
    """Draws the plots of a folder's result file; returns the exit status.

    Raises:
        ScriptError: If the file cannot be read or lacks a mode, or a plot cannot be written.
    """
    results = read_json(folder / BENCHMARK_FILE)
    if not all(results[mode] for mode in MODES):
        raise ScriptError(f"{folder / BENCHMARK_FILE} lacks a mode: that benchmark failed")
    for path in write_plots(results, folder):
        say(f"written: {path}")
    return 0


def write_plots(results: dict[str, Any], folder: Path) -> list[Path]:
    """Writes each plot, whole or not at all; returns their paths.

    Args:
        results: The object of the benchmark's result file, with a result of every mode.
        folder: Where to write.

    Raises:
        ScriptError: If a file cannot be written.
    """
    paths = []
    for name, make_figure in PLOTS.items():
        png = BytesIO()
        # Without matplotlib's version, equal results give equal bytes.
        make_figure(results).savefig(png, format="png", metadata={"Software": None})
        write_whole(folder / name, png.getvalue())
        paths.append(folder / name)
    return paths


def training_time_figure(results: dict[str, Any]) -> Figure:
    """Returns bars of the time of every epoch and of the total, for both modes."""
    figure = _figure(results, "Training time without and with JIT (warm-up not included)")
    per_epoch, total = figure.subplots(1, 2, width_ratios=(5, 2))
    for position, (mode, names) in enumerate(MODES.items()):
        result, style = results[mode], BAR_STYLES[mode]
        epochs, times = _series(result, "epoch"), _series(result, "time_s")
        hatch = style.get("hatch") if len(epochs) <= MOST_HATCHED_EPOCHS else None
        offset = (position - (len(MODES) - 1) / 2) * BAR_WIDTH
        per_epoch.bar(epochs + offset, times, BAR_WIDTH, label=names["label"], **{**style, "hatch": hatch})
        seconds = result["total_training_time_s"]
        bar = total.bar(names["label"], seconds, 0.6, **style)
        total.bar_label(bar, [f"{seconds:.1f} s"], padding=2)
    _set_epoch_axis(per_epoch, len(epochs))
    per_epoch.set_ylabel("Time per epoch (s)")
    total.set_ylabel("Total training time (s)")
    total.margins(y=0.1)  # room for the labels on the bars
    total.set_title(speedup_text(results["comparison"]["speedup"]), fontsize=11, weight="bold")
    _add_legend(figure)
    return figure


def loss_figure(results: dict[str, Any]) -> Figure:
    """Returns the curves of the training loss; a loss that is not finite is noted, not drawn."""
    title = "Training loss without and with JIT"
    figure = _curves(results, "loss", 1, title, "Mean training loss of the epoch (nats)")
    figure.axes[0].set_ylim(bottom=0)
    return figure


def accuracy_figure(results: dict[str, Any]) -> Figure:
    """Returns the curves of the test accuracy in percent."""
    title = "Test accuracy without and with JIT"
    return _curves(results, "test_accuracy", 100, title, "Test accuracy after the epoch (%)")


def speedup_text(speedup: float | None) -> str:
    """Returns the speedup in words: faster, slower or the same; nothing if there is none."""
    if speedup is None:
        return ""
    factor = f"{max(speedup, 1 / speedup):.2f}"
    if factor == "1.00":
        return "same time with JIT"
    return f"{factor}\N{MULTIPLICATION SIGN} {'faster' if speedup > 1 else 'slower'} with JIT"


def _curves(results: dict[str, Any], key: str, factor: float, title: str, unit: str) -> Figure:
    figure = _figure(results, title)
    axes = figure.subplots()
    for mode, names in MODES.items():
        epochs, values = _series(results[mode], "epoch"), _series(results[mode], key) * factor
        label, missing = names["label"], epochs[~np.isfinite(values)]
        if len(missing):
            label += f" (no finite {key} from epoch {missing[0]:.0f})"
        every = -(-len(epochs) // MOST_MARKERS)
        axes.plot(epochs, values, label=label, markevery=every, **LINE_STYLES[mode])
    _set_epoch_axis(axes, len(epochs))
    axes.set_ylabel(unit)
    _add_legend(figure)
    return figure


def _figure(results: dict[str, Any], title: str) -> Figure:
    figure = Figure(SIZE_INCHES, DPI, layout="constrained")
    figure.suptitle(title)
    figure.supxlabel(describe_run(results), x=0.01, ha="left", wrap=True, fontsize=10, color="0.3")
    return figure


def _series(result: dict[str, Any], key: str) -> np.ndarray:
    # As floats, null (a loss that was not finite) becomes NaN, which matplotlib leaves out.
    return np.array([epoch[key] for epoch in result["epochs"]], dtype=float)


def _set_epoch_axis(axes: Axes, n_epochs: int) -> None:
    axes.set_xlabel("Epoch")
    axes.set_xlim(0.5, n_epochs + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))


def _add_legend(figure: Figure) -> None:
    # Above the axes, where it can cover neither bars nor curves, whatever their shape.
    figure.axes[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(MODES), frameon=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="0.9")
        axes.set_axisbelow(True)


PLOTS = {
    "training_time.png": training_time_figure,
    "loss_curve.png": loss_figure,
    "accuracy_curve.png": accuracy_figure,
}

if __name__ == "__main__":
    sys.exit(main())
