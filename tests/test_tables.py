"""What is printed: every figure from the results, at most 80 columns, ASCII where it must be."""

import pytest
from made_up import make_results

import tables


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


def test_verdict_tells_speedup_processes_and_that_it_is_preliminary():
    text = " ".join(tables.verdict(make_results()["comparison"]).split())
    assert "4.00\N{MULTIPLICATION SIGN}" in text
    assert "preliminary" in text and "processes per mode: 1" in text
    assert "slower" not in text


def test_a_slower_jit_is_reported_as_slower():
    text = tables.verdict(make_results([1.0, 1.0], [1.0, 3.0])["comparison"])
    assert "0.50\N{MULTIPLICATION SIGN}" in text
    assert "JIT was 2.00\N{MULTIPLICATION SIGN} slower" in text


def test_a_failed_gate_shows_no_speedup():
    results = make_results(losses=[1.0, float("nan")])
    text = tables.benchmark_text(results, "utf-8")
    assert "4.00\N{MULTIPLICATION SIGN}" not in text
    assert "No speedup: gate 'same epoch losses' failed" in text
    assert tables.summary_table(results, "plain").count(tables.ABSENT) == 2


def test_a_loss_that_is_not_finite_is_absent_in_the_tables():
    results = make_results(losses=[1.0, 0.5])
    results["jit"]["epochs"][1]["loss"] = results["jit"]["final_loss"] = None
    assert tables.ABSENT in tables.epoch_table(results["jit"], "plain")
    assert tables.ABSENT in tables.summary_text(results["jit"])


def test_run_is_described_by_configuration_and_machine():
    text = tables.describe_run(make_results())
    for part in ("784-512-256-10", "2 epochs", "batch 128", "0.01", "seed 0"):
        assert part in text.splitlines()[0]
    for part in ("Made-up CPU", "2 cores", "Linux", "CPU; ", "JAX 0.10.2", "Python 3.11.7"):
        assert part in text.splitlines()[1]
    assert "1 epoch, " in tables.describe_run(make_results([1.0], [1.0]))
