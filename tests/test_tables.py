"""What is printed: every figure from the results, at most 80 columns, ASCII where it must be."""

import re

import pytest
from made_up import MEMORY, make_benchmark, make_mode, make_results, make_run, noisy_runs

import run_text
import tables
from comparison import compare


def test_summary_table_has_the_seven_rows_of_both_modes():
    rows = tables.summary_table(make_results(), "plain").splitlines()
    cells = [[cell.strip() for cell in row.split("  ") if cell.strip()] for row in rows]
    dash = "\N{EM DASH}"
    assert cells == [
        ["Metric", "Without JIT", "With JIT", "Speedup"],
        ["Total Training Time", "8.00 s", "2.00 s", "4.00\N{MULTIPLICATION SIGN}"],
        ["Avg. Time per Epoch", "4.000 s", "1.000 s", "4.00\N{MULTIPLICATION SIGN}"],
        ["Final Loss", "0.5000", "0.5000", dash],
        ["Final Test Accuracy", "95.00%", "95.00%", dash],
        ["Peak Memory (MB)", "400.0 MB", "400.0 MB", dash],
        ["Memory Delta (MB)", "20.0 MB", "20.0 MB", dash],
        ["Warm-up Time", "123.4 ms", "123.4 ms", "one-time"],
    ]


def test_epoch_table_has_a_row_an_epoch():
    rows = tables.epoch_table(make_results()["no_jit"], "plain").splitlines()
    assert [row.split() for row in rows] == [
        ["Epoch", "Loss", "Accuracy", "Time"],
        ["1", "1.0000", "90.00%", "3.000", "s"],
        ["2", "0.5000", "95.00%", "5.000", "s"],
    ]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-8", None])
def test_tables_fit_any_console(encoding):
    results = make_results()
    text = tables.benchmark_text(results, encoding)
    text.encode(encoding or "ascii")
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii() == (encoding != "utf-8")


TIMES = "\N{MULTIPLICATION SIGN}"


def test_one_process_gives_a_preliminary_speedup_without_an_interval():
    text = tables.verdict(make_results()["comparison"])
    assert text == f"Speedup with JIT: 4.00{TIMES} (preliminary, 1 process per mode: no interval)"


def test_each_mode_has_its_own_epoch_table():
    text = tables.benchmark_text(make_results(), "utf-8")
    without, _, with_jit = text.partition("\nWithout JIT\n")[2].partition("\nWith JIT\n")
    assert "5.000 s" in without and "5.000 s" not in with_jit


def test_verdict_tells_the_finding_with_its_interval():
    def verdict(jit_s, n):
        runs = noisy_runs(1.0, n), noisy_runs(jit_s, n, seed=1)
        return tables.verdict(make_benchmark(*runs)["comparison"])

    assert re.fullmatch(
        r"With JIT, training is 4\.\d\d. as fast "
        r"\(95 % interval 3\.\d\d. to 4\.\d\d.; 10 processes per mode\)",
        verdict(0.25, 10),
    )
    assert re.match(r"With JIT, training takes 2\.0\d. the time, so it is slower", verdict(2.0, 10))
    assert re.match(
        r"No measurable difference, as the interval holds 1\.0: speedup ", verdict(1.0, 10)
    )
    assert "covers 75% at best; preliminary, 3 processes per mode" in verdict(0.25, 3)


def test_details_and_sentences_have_the_figures_of_the_comparison():
    results = make_benchmark(noisy_runs(2.0), noisy_runs(1.0, seed=1))
    jit = results["comparison"]["modes"][1]
    rows = tables.detail_table(results, "plain")
    assert f"{jit['median_epoch_s']:.3f} s" in rows
    assert f"{jit['drift']['slope_per_epoch']:+.2%}" in rows
    assert "100.0 ms" in rows and "1.50" in rows
    text = " ".join(tables.comparison_lines(results["comparison"]))
    assert f"after {results['comparison']['break_even_steps']} steps" in text
    assert f"{results['comparison']['speedup_with_warmup']:.2f}{TIMES}" in text


def test_noise_lines_tell_load_cores_and_settings():
    results = make_results()
    text = " ".join(tables.noise_lines(results))
    assert "Load average 0.25" in text and "2 usable of 4 visible" in text and "steal 0.1%" in text
    assert "Commit 0123456789, files unchanged" in text
    assert "Cleared" not in text and "Settings" not in text and "limited" not in text
    results["jit"]["environment"]["cores_quota"] = 0.5
    text = " ".join(tables.noise_lines(results))
    assert "2 usable of 4 visible (CPU time limited to that of 0.5); steal" in text
    results["noise"]["settings_cleared"] = ["JAX_ENABLE_X64"]
    results["jit"]["environment"]["settings_honoured"] = {"XLA_FLAGS": "--xla_x=1"}
    results["jit"]["environment"]["cpu_governor"] = "powersave"
    text = " ".join(tables.noise_lines(results))
    assert "JAX_ENABLE_X64" in text and "XLA_FLAGS=--xla_x=1" in text and "powersave" in text


@pytest.mark.parametrize(
    "b_s, n, passed, words",
    [
        (1.0, 10, True, "holds 1.0; a difference below"),
        (1.2, 10, False, "does not hold 1.0: too noisy"),
        (1.2, 3, False, "covers 75% at best"),
        (1.0, 1, False, "no interval"),
    ],
)
def test_a_control_passes_if_its_interval_holds_one(b_s, n, passed, words):
    a, b = make_mode("jit", *noisy_runs(1.0, n)), make_mode("jit", *noisy_runs(b_s, n, seed=1))
    text, judged = tables.control_text("jit", compare(a, b))
    assert (judged, words in text) == (passed, True)


def test_a_failed_gate_shows_no_speedup():
    results = make_results(losses=[1.0, float("nan")])
    text = tables.benchmark_text(results, "utf-8")
    assert "4.00\N{MULTIPLICATION SIGN}" not in text
    assert "No speedup: gate 'same epoch losses' failed" in text
    assert tables.summary_table(results, "plain").count(run_text.ABSENT) == 2


def test_a_loss_that_is_not_finite_is_absent_in_the_tables():
    results = make_results(losses=[1.0, 0.5])
    results["jit"]["epochs"][1]["loss"] = results["jit"]["final_loss"] = None
    assert run_text.ABSENT in tables.epoch_table(results["jit"], "plain")
    assert run_text.ABSENT in run_text.summary_text(results["jit"])


def test_run_is_described_by_configuration_and_machine():
    text = tables.describe_run(make_results())
    for part in ("784-512-256-10", "2 epochs", "batch 128", "0.01", "seed 0"):
        assert part in text.splitlines()[0]
    for part in ("Made-up CPU", "2 cores", "Linux", "CPU; ", "JAX 0.10.2", "Python 3.11.7"):
        assert part in text.splitlines()[1]
    assert "1 epoch, " in tables.describe_run(make_results([1.0], [1.0]))


def test_a_device_is_told_with_its_kind_and_its_own_memory():
    cpu = make_results()
    assert "; CPU; JAX" in tables.describe_run(cpu)
    assert tables.DEVICE_ROW not in tables.detail_table(cpu, "plain")

    def runs(*peaks):
        return [make_run([1.0], memory={**MEMORY, "device_peak_mb": peak}) for peak in peaks]

    gpu = make_benchmark(runs(10.0, 20.0), runs(30.0, None))
    gpu["jit"]["environment"].update(device="gpu", device_kind="Made-up GPU")
    assert "; GPU (Made-up GPU); JAX" in tables.describe_run(gpu)
    assert re.search(
        rf"{tables.DEVICE_ROW} +15\.0 MB +n/a$", tables.detail_table(gpu, "plain"), re.MULTILINE
    )
    del gpu["comparison"]["modes"][0]["device_peak_mb"]  # as in a file of an earlier version
    del gpu["comparison"]["modes"][1]["device_peak_mb"]
    assert tables.DEVICE_ROW not in tables.detail_table(gpu, "plain")
