"""--check and --compare, on made-up results."""

import json
import math

import numpy as np
import pytest
from made_up import make_benchmark, make_results, make_run, noisy_runs

import benchmark
import compare_folders
import result_files
import stability


def doubts_of(no_jit_runs, jit_runs):
    return list(stability.find_doubts(make_benchmark(no_jit_runs, jit_runs)))


def test_ten_quiet_processes_leave_no_doubt():
    assert doubts_of(noisy_runs(4.0), noisy_runs(1.0, seed=1)) == []


@pytest.mark.parametrize("mode", ["no_jit", "jit"])
def test_a_wide_spread_is_told(mode):
    runs = {"no_jit": noisy_runs(4.0), "jit": noisy_runs(1.0, seed=1)}
    runs[mode] = [make_run([1.0 + 0.5 * (i % 2)] * 10) for i in range(10)]
    (doubt,) = doubts_of(**{f"{name}_runs": value for name, value in runs.items()})
    phrase = {"no_jit": "without JIT", "jit": "with JIT"}[mode]
    assert doubt.startswith(f"{phrase}, the total times spread by 21%")


def test_a_slow_first_process_and_an_outlier_are_told():
    runs = [make_run([1.3] * 10)] + noisy_runs(1.0, n_runs=9, noise=0.01)
    doubts = " | ".join(doubts_of(noisy_runs(4.0), runs))
    assert "process 1 is an outlier: 13.00 s" in doubts and "a slow first run" in doubts
    assert "of 100 epoch times are outliers (reported, never dropped)" in doubts


def test_what_lies_near_the_median_is_no_outlier_however_quiet_the_rest():
    runs = [make_run([1.04] * 10)] + noisy_runs(1.0, n_runs=9, noise=0.001)
    assert doubts_of(noisy_runs(4.0), runs) == []


def test_a_fast_first_process_is_an_outlier_but_not_slow():
    runs = [make_run([0.7] * 10)] + noisy_runs(1.0, n_runs=9, noise=0.01)
    doubts = " | ".join(doubts_of(noisy_runs(4.0), runs))
    assert "process 1 is an outlier" in doubts and "first run" not in doubts


def test_a_slow_later_process_is_an_outlier_but_no_slow_first_one():
    runs = noisy_runs(1.0, n_runs=9, noise=0.01) + [make_run([1.3] * 10)]
    doubts = " | ".join(doubts_of(noisy_runs(4.0), runs))
    assert "process 10 is an outlier" in doubts and "first run" not in doubts


def test_few_processes_few_epochs_and_failed_gates_are_told():
    doubts = " | ".join(stability.find_doubts(make_results(losses=[1.0, 0.9])))
    assert "too few processes per mode: 1" in doubts
    assert "gate 'same epoch losses' failed" in doubts
    assert "gate 'steady state': not checked below 5 epochs" in doubts


def test_a_slow_first_of_few_processes_is_told():
    runs = [make_run([1.17] * 10), make_run([1.0] * 10), make_run([1.01] * 10)]
    assert "a slow first run: 1.16 times" in " | ".join(doubts_of(noisy_runs(4.0, 3), runs))


def test_a_machine_that_changes_slowly_is_told():
    runs = [make_run([1.0 + 0.02 * np.sin(i / 2)] * 10) for i in range(10)]
    doubts = " | ".join(doubts_of([make_run([4.0] * 10)] * 10, runs))
    assert "the ratios of neighbouring blocks are alike" in doubts


def test_gates_are_checked_again_on_the_runs():
    results = make_benchmark(noisy_runs(4.0), noisy_runs(1.0, seed=1))
    results["jit"]["runs"][3]["dtypes"] = ["float64"]
    assert "gate 'float32 throughout' failed" in " | ".join(stability.find_doubts(results))
    results["jit"]["status"] = "interrupted"
    assert "with JIT, the status is 'interrupted'" in " | ".join(stability.find_doubts(results))
    results["jit"]["runs"] = results["jit"]["runs"][:2]
    assert "too few processes per mode: 2" in " | ".join(stability.find_doubts(results))


@pytest.mark.parametrize("action", [["--check"], ["--compare", "same"]])
def test_a_file_that_lacks_a_part_is_a_named_fault(tmp_path, capsys, action):
    results = make_results()
    del results["jit"]["runs"]
    folder = str(write(tmp_path, results))
    words = [action[0], folder] if len(action) == 1 else [action[0], folder, folder]
    assert benchmark.main(words) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "not a whole result" in err


def write(folder, results):
    result_files.write_json(folder / result_files.BENCHMARK_FILE, results)
    return folder


def test_check_reads_a_folder_and_tells_by_its_status(tmp_path, capsys):
    good = write(tmp_path / "good", make_benchmark(noisy_runs(4.0), noisy_runs(1.0, seed=1)))
    assert benchmark.main(["--check", str(good)]) == 0
    assert "no doubt" in capsys.readouterr().out
    bad = write(tmp_path / "bad", make_results())
    assert benchmark.main(["--check", str(bad)]) == 1
    out, err = capsys.readouterr()
    assert out.count("warning: ") == 2 and err.count("\n") == 1
    assert benchmark.main(["--check", str(tmp_path / "none")]) == 1
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, words",
    [("[]", "not a benchmark's"), ("{}", "not a benchmark's"), ("99", "schema version 99")],
)
def test_another_file_or_schema_is_a_named_fault(tmp_path, capsys, content, words):
    if content == "99":
        content = json.dumps({**make_results(), "schema_version": 99})
    (tmp_path / result_files.BENCHMARK_FILE).write_text(content)
    assert benchmark.main(["--check", str(tmp_path)]) == 1
    assert words in capsys.readouterr().err


def test_compare_tells_ratios_differences_and_where_there_is_none(tmp_path, capsys):
    a = write(tmp_path / "a", make_benchmark(noisy_runs(4.0), noisy_runs(1.0, seed=1)))
    results = make_benchmark(noisy_runs(4.0, 12, seed=2), noisy_runs(2.0, 12, seed=3))
    for mode in ("no_jit", "jit"):
        results[mode]["environment"]["jax"] = "0.12.0"
    b = write(tmp_path / "b", results)
    assert benchmark.main(["--compare", str(a), str(b)]) == 0
    out = capsys.readouterr().out
    lines = {line.partition("  ")[0]: line for line in out.splitlines()}
    assert "no measurable difference" in lines["Time per epoch, without JIT"]
    jit_line = lines["Time per epoch, with JIT"]
    assert "differs" in jit_line
    ratio = float(jit_line.split()[-5])
    assert math.isclose(ratio, 2.0, rel_tol=0.05)
    assert "Differs: jax: 0.10.2 in A, 0.12.0 in B" in out
    speedups = [float(value) for value in lines["Speedup"].split()[1:4]]
    assert speedups == pytest.approx([4.0, 2.0, 0.5], rel=0.02)
    assert "Differs: processes per mode: 10 in A, 12 in B" in out


@pytest.mark.parametrize(
    "key, value",
    [("layer_sizes", [784, 10]), ("batch_size", 64), ("activation", "nn_relu")],
)
def test_other_work_is_refused_with_the_reason(tmp_path, capsys, key, value):
    a = write(tmp_path / "a", make_results())
    results = make_results()
    for mode in ("no_jit", "jit"):
        results[mode]["config"][key] = value
    b = write(tmp_path / "b", results)
    assert benchmark.main(["--compare", str(a), str(b)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and f"{key} is" in err and "cannot be compared" in err


def test_failed_gates_and_unfinished_results_are_refused(tmp_path, capsys):
    a = write(tmp_path / "a", make_results())
    b = write(tmp_path / "b", make_results(losses=[1.0, 0.9]))
    assert benchmark.main(["--compare", str(a), str(b)]) == 1
    assert "B: gate 'same epoch losses' failed" in capsys.readouterr().err
    c = write(tmp_path / "c", {**make_results(), "status": "failed"})
    assert benchmark.main(["--compare", str(a), str(c)]) == 1
    assert "no complete result" in capsys.readouterr().err


def test_one_process_gives_a_ratio_without_a_claim():
    text = compare_folders.comparison_text(make_results(), make_results())
    assert "one process: no interval" in text
    assert "no measurable difference" not in text
    assert "Nothing else that is recorded differs." in text
