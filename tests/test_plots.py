"""The plots: what their artists hold and say, against the values in the result."""

import json
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from made_up import make_benchmark, make_results, noisy_runs

import plots
import result_files
from config import REPOSITORY
from modes import MODES
from tables import describe_run

LABELS = [names["label"] for names in MODES.values()]
CURVES = {"loss": plots.loss_figure, "test_accuracy": plots.accuracy_figure}
CPU_OF_60 = "Made-up(R) Processor(TM) Platinum 8480CL CPU @ 2.00GHz x86-64"[:60]


def results_of(n_epochs=3, jit_time=1.0, lost=(), loss_scale=1, cpu="Made-up CPU"):
    """A result whose modes differ in every value, though not enough for a gate to fail.

    In the `lost` epochs no loss was finite.
    """
    epochs = range(1, n_epochs + 1)
    results = make_results(
        [4 + epoch / 100 for epoch in epochs],
        [jit_time + epoch / 1000 for epoch in epochs],
        losses=[1.0001 / epoch for epoch in epochs],
        test_accuracies=[0.999 - 0.1 / epoch for epoch in epochs],
    )
    for mode in MODES:
        results[mode]["environment"]["cpu_model"] = cpu
        for epoch in results[mode]["epochs"]:
            epoch["loss"] = None if epoch["epoch"] in lost else epoch["loss"] * loss_scale
    if lost:
        results["comparison"].update(speedup=None, warnings=["a loss is not finite"])
    return results


def values_of(results, mode, key):
    return [epoch[key] for epoch in results[mode]["epochs"]]


def figures_of(results):
    """The figures as they are in the files, so that all sizes and places are settled."""
    figures = [make_figure(results) for make_figure in plots.PLOTS.values()]
    for figure in figures:
        figure.draw_without_rendering()
    return figures


def texts_of(figure):
    texts = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        texts += [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()]
        texts += [text.get_text() for text in axes.texts]
        texts += [text.get_text() for text in axes.get_legend().texts] if axes.get_legend() else []
    return texts


def bars_of(axes):
    """For every mode the heights and the middles of its bars."""
    return [
        ([bar.get_height() for bar in bars], [bar.get_x() + bar.get_width() / 2 for bar in bars])
        for bars in axes.containers
    ]


def test_three_png_files_are_written(tmp_path):
    paths = plots.write_plots(results_of(), tmp_path)
    names = ["training_time.png", "loss_curve.png", "accuracy_curve.png"]
    assert paths == [tmp_path / name for name in names]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    for path in paths:
        png = path.read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", png[16:24])
        assert 830 <= width <= 1660 and 0.4 <= height / width <= 0.8


def test_equal_results_give_equal_bytes(tmp_path):
    for folder in ("a", "b"):
        plots.write_plots(results_of(), tmp_path / folder)
    for name in plots.PLOTS:
        png = (tmp_path / "a" / name).read_bytes()
        assert png == (tmp_path / "b" / name).read_bytes()
        assert b"Software" not in png  # matplotlib's version would differ between machines


def test_bars_are_as_high_as_the_times():
    results = results_of()
    per_epoch, total = plots.training_time_figure(results).axes
    assert len(per_epoch.containers) == len(MODES) and not per_epoch.lines
    for mode, (heights, middles) in zip(MODES, bars_of(per_epoch)):
        assert heights == pytest.approx(values_of(results, mode, "time_s"), rel=1e-12)
        assert np.round(middles).tolist() == [1, 2, 3]
    seconds = [results[mode]["total_training_time_s"] for mode in MODES]
    assert [heights for heights, _ in bars_of(total)] == [[s] for s in seconds]
    assert [text.get_text() for text in total.texts] == [f"{s:.2f} s" for s in seconds]
    for axes in (per_epoch, total):
        assert axes.get_ylim()[0] == 0


def test_bars_of_the_modes_stand_beside_each_other():
    per_epoch = plots.training_time_figure(results_of()).axes[0]
    spans = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in per_epoch.patches)
    assert len(spans) == 6
    assert all(end <= start + 1e-9 for (_, end), (start, _) in zip(spans, spans[1:]))


def test_many_epochs_are_curves_instead_of_bars():
    results = results_of(n_epochs=100)
    per_epoch = plots.training_time_figure(results).axes[0]
    assert not per_epoch.containers and per_epoch.get_ylim()[0] == 0
    for mode, line in zip(MODES, per_epoch.lines):
        assert line.get_ydata().tolist() == values_of(results, mode, "time_s")


@pytest.mark.parametrize("key, factor", [("loss", 1), ("test_accuracy", 100)])
def test_curves_have_the_values_of_the_result(key, factor):
    results = results_of()
    lines = CURVES[key](results).axes[0].lines
    assert [line.get_label() for line in lines] == LABELS
    for mode, line in zip(MODES, lines):
        assert line.get_xdata().tolist() == [1, 2, 3]
        expected = np.array(values_of(results, mode, key)) * factor
        assert line.get_ydata() == pytest.approx(expected, rel=1e-12)
    assert lines[0].get_ydata().tolist() != lines[1].get_ydata().tolist()


@pytest.mark.parametrize("make_figure", CURVES.values(), ids=CURVES)
def test_coinciding_curves_can_be_told_apart(make_figure):
    below, above = make_figure(results_of()).axes[0].lines
    assert below.get_zorder() <= above.get_zorder()  # if equal, the first is drawn first
    assert below.get_linewidth() >= 2 * above.get_linewidth()
    assert below.get_markersize() >= 2 * above.get_markersize()
    assert (below.get_linestyle(), above.get_linestyle()) == ("-", "--")
    assert below.get_marker() != above.get_marker()


def test_labels_units_legend_and_caption():
    results = results_of()
    units = [["Time per epoch (s)", "Total training time (s)"]]
    units += [["Mean training loss of the epoch (nats)"], ["Test accuracy after the epoch (%)"]]
    for figure, expected in zip(figures_of(results), units):
        assert [axes.get_ylabel() for axes in figure.axes] == expected
        assert figure.axes[0].get_xlabel() == "Epoch"
        assert figure.get_suptitle()
        assert [text.get_text() for text in figure.axes[0].get_legend().texts] == LABELS
        assert describe_run(results) in texts_of(figure)
    total = plots.training_time_figure(results).axes[1]
    assert [label.get_text() for label in total.get_xticklabels()] == LABELS


@pytest.mark.parametrize(
    "n_epochs, expected", [(1, [1]), (2, [1, 2]), (10, range(1, 11)), (100, range(10, 101, 10))]
)
def test_ticks_are_epochs(n_epochs, expected):
    for make_figure in plots.PLOTS.values():
        figure = make_figure(results_of(n_epochs))
        assert figure.axes[0].get_xticks().tolist() == list(expected)


@pytest.mark.parametrize(
    "arguments",
    [
        {"n_epochs": 1},
        {"n_epochs": 10, "cpu": CPU_OF_60},
        {"n_epochs": 10, "cpu": CPU_OF_60 + " and Graphics of a Longer Name"},
        {"n_epochs": 100, "jit_time": 5.0},
        {"n_epochs": 10, "lost": range(1, 11)},
        {"n_epochs": 10, "lost": range(3, 11), "loss_scale": 1e9},
    ],
)
def test_nothing_is_cut_off_or_covered(arguments):
    for figure in figures_of(results_of(**arguments)):
        whole, drawn = figure.bbox_inches, figure.get_tightbbox()
        assert drawn.x0 >= whole.x0 and drawn.x1 <= whole.x1
        assert drawn.y0 >= whole.y0 and drawn.y1 <= whole.y1
        caption = next(text for text in figure.texts if text.get_text().startswith("MLP"))
        legend = figure.axes[0].get_legend().get_window_extent()
        for axes in figure.axes:
            assert caption.get_window_extent().y1 <= axes.get_tightbbox().y0
            assert not legend.overlaps(axes.bbox)
            for text in (axes.title, axes.yaxis.get_offset_text()):
                assert not (text.get_text() and legend.overlaps(text.get_window_extent()))


def test_largest_loss_keeps_room_for_its_marker():
    for n_epochs in (1, 2):
        axes = plots.loss_figure(results_of(n_epochs)).axes[0]
        assert axes.get_ylim()[0] == 0
        assert 1.04 <= axes.get_ylim()[1] / axes.lines[0].get_ydata()[0] <= 1.2


def test_losses_that_were_not_finite_are_left_out_and_noted():
    figure = plots.loss_figure(results_of(n_epochs=5, lost=(3, 4, 5)))
    legend = [text.get_text() for text in figure.axes[0].get_legend().texts]
    assert legend == [f"{label} (not finite in 3 of 5 epochs)" for label in LABELS]
    for line in figure.axes[0].lines:
        assert np.isfinite(line.get_ydata()).tolist() == [True, True, False, False, False]
    assert "no finite value" not in texts_of(figure)


def test_without_any_finite_loss_the_axes_say_so():
    figure = plots.loss_figure(results_of(lost=(1, 2, 3)))
    assert "no finite value" in texts_of(figure)
    assert figure.axes[0].get_yticks().tolist() == []  # any scale would be invented
    assert figure.axes[0].get_xticks().tolist() == [1, 2, 3]


def claim_of(results):
    return plots.training_time_figure(results).axes[1].get_title()


@pytest.mark.parametrize(
    "jit_s, n_processes, expected",
    [
        (0.25, 10, r"(3\.9\d|4\.0\d)x as fast with JIT\n\(95 % interval 3\.\d\d to 4\.\d\d\)"),
        (2.0, 10, r"(1\.9\d|2\.0\d)x the time with JIT\n\(95 % interval 1\.\d\d to 2\.\d\d\)"),
        (1.0, 10, r"no measurable difference\n\((0\.9\d|1\.0\d)x\)"),
        (0.25, 1, r"speedup (3\.\d\d|4\.\d\d)x\n\(no interval\)"),
    ],
)
def test_claim_is_the_finding_of_the_comparison(jit_s, n_processes, expected):
    runs = noisy_runs(1.0, n_processes), noisy_runs(jit_s, n_processes, seed=1)
    claim = claim_of(make_benchmark(*runs))
    assert re.fullmatch(expected, claim.replace("\N{MULTIPLICATION SIGN}", "x"))


def test_without_a_speedup_no_figure_claims_one():
    results = results_of()
    results["comparison"]["speedup"] = None
    assert claim_of(results) == "speedup n/a: check failed"
    for figure in figures_of(results):
        said = " ".join(texts_of(figure))
        claims = ("fast", "the time with", "difference", "\N{MULTIPLICATION SIGN}")
        assert not any(claim in said for claim in claims)


def test_times_stand_with_the_number_of_processes():
    results = results_of()
    title = plots.training_time_figure(results).get_suptitle()
    assert title == "Training time, warm-up not included; processes per mode: 1 (preliminary)"
    results["comparison"].update(processes_per_mode=10, preliminary=False)
    title = plots.training_time_figure(results).get_suptitle()
    assert title == "Training time, warm-up not included; processes per mode: 10"


def test_main_draws_again_from_the_result_file(tmp_path, capsys):
    plots.write_plots(results_of(), tmp_path / "first")
    folder = tmp_path / "again"
    result_files.write_json(folder / result_files.BENCHMARK_FILE, results_of())
    assert plots.main([str(folder)]) == 0
    assert capsys.readouterr().out.count("written: ") == 3
    for name in plots.PLOTS:
        assert (folder / name).read_bytes() == (tmp_path / "first" / name).read_bytes()


@pytest.mark.parametrize(
    "content, reason",
    [
        (None, "cannot read"),
        (b"{", "is not a result file"),
        (b'{"no_jit": {"epochs": []}}', "is not a benchmark's result file"),
        (json.dumps({**make_results(), "jit": None}).encode(), "lacks a mode"),
    ],
)
def test_without_both_modes_main_says_so_and_writes_nothing(tmp_path, capsys, content, reason):
    path = tmp_path / result_files.BENCHMARK_FILE
    if content:
        path.write_bytes(content)
    assert plots.main([str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ") and reason in said and str(path) in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == ([path] if content else [])


def test_a_plot_that_fails_leaves_no_files_of_the_others(tmp_path):
    results = results_of()
    del results["jit"]["epochs"][-1]["test_accuracy"]  # the last of the plots needs it
    with pytest.raises(KeyError):
        plots.write_plots(results, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_neither_jax_nor_pyplot_is_imported(tmp_path):
    result_files.write_json(tmp_path / result_files.BENCHMARK_FILE, results_of())
    program = (
        "import sys, plots; status = plots.main(sys.argv[1:]); "
        "unwanted = {'jax', 'matplotlib.pyplot', 'tkinter'} & set(sys.modules); "
        "sys.exit(status or ', '.join(unwanted) or 0)"
    )
    process = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        cwd=REPOSITORY,
        env={**os.environ, "MPLBACKEND": "tkagg"},  # a window, if plots asked for one
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert all((tmp_path / name).exists() for name in plots.PLOTS)
