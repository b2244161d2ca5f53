"""The comparison of made-up times with known ratios, JIT slower than eager among them."""

import math

import numpy as np
import pytest
from made_up import make_benchmark, make_mode, make_results, make_run, noisy_runs

from comparison import break_even_steps, compare, comparison_without


def compare_times(no_jit_s, jit_s, **words):
    runs = noisy_runs(no_jit_s, **words), noisy_runs(jit_s, seed=1, **words)
    return make_benchmark(*runs)["comparison"]


def test_speedup_of_one_process_is_the_ratio_of_total_times():
    comparison = make_results([3.0, 5.0], [1.0, 1.0])["comparison"]
    assert comparison["speedup"] == pytest.approx(4.0)
    assert comparison["processes_per_mode"] == 1
    assert comparison["preliminary"]
    assert comparison["speedup_ci95"] is None and comparison["finding"] is None
    assert comparison["warnings"] == []
    assert comparison["epoch_ratios"] == pytest.approx([3.0, 5.0])


def test_speedup_is_the_geometric_mean_of_the_pairs():
    no_jit = [make_run([4.0]), make_run([9.0])]
    jit = [make_run([1.0]), make_run([1.0])]
    assert make_benchmark(no_jit, jit)["comparison"]["speedup"] == pytest.approx(6.0)


@pytest.mark.parametrize(
    "jit_s, finding", [(0.25, "faster"), (2.0, "slower"), (1.0, "no measurable difference")]
)
def test_finding_of_ten_processes(jit_s, finding):
    comparison = compare_times(1.0, jit_s)
    low, high = comparison["speedup_ci95"]
    assert low < 1 / jit_s < high
    assert comparison["finding"] == finding
    assert not comparison["preliminary"]


@pytest.mark.parametrize("n_no_jit, n_jit, preliminary", [(10, 10, False), (9, 9, True)])
def test_below_ten_processes_a_comparison_is_preliminary(n_no_jit, n_jit, preliminary):
    runs = noisy_runs(4.0, n_no_jit), noisy_runs(1.0, n_jit, seed=1)
    comparison = make_benchmark(*runs)["comparison"]
    assert comparison["preliminary"] is preliminary
    assert comparison["processes_per_mode"] == n_jit


def test_warm_up_is_included_where_it_says_so():
    warmups = [{"time_ms": ms, "programs_compiled": 1, "parts": []} for ms in (2000.0, 1000.0)]
    no_jit = make_run([3.0, 3.0], warmup=warmups[0])
    jit = make_run([1.0, 1.0], warmup=warmups[1])
    comparison = make_benchmark([no_jit], [jit])["comparison"]
    assert comparison["speedup"] == pytest.approx(3.0)
    assert comparison["speedup_with_warmup"] == pytest.approx((6 + 2) / (2 + 1))
    n_steps = 469
    saved = (3.0 - 1.0) / n_steps
    assert comparison["break_even_steps"] == math.ceil(1.0 / saved)
    assert comparison["break_even_steps_both_warm_ups"] == 0


@pytest.mark.parametrize(
    "times, expected",
    [
        ((0.0, 0.02, 1.0, 0.01), 100),
        ((0.0, 0.02, 1.001, 0.01), 101),
        ((0.5, 0.02, 1.0, 0.01), 50),
        ((2.0, 0.02, 1.0, 0.01), 0),
        ((0.0, 0.01, 1.0, 0.02), None),
        ((0.0, 0.01, 1.0, 0.01), None),
    ],
)
def test_break_even_is_the_first_step_from_which_the_second_mode_is_ahead(times, expected):
    steps = break_even_steps(*times)
    assert steps == expected
    if steps:
        warmup, step, other_warmup, other_step = times
        assert warmup + steps * step >= other_warmup + steps * other_step - 1e-12
        assert warmup + (steps - 1) * step < other_warmup + (steps - 1) * other_step


def test_more_epochs_of_the_same_processes_do_not_narrow_the_interval():
    def doubled(runs):
        return [make_run(2 * run["epoch_times_s"]) for run in runs]

    runs = noisy_runs(4.0), noisy_runs(1.0, seed=1)
    once = make_benchmark(*runs)["comparison"]["speedup_ci95"]
    twice = make_benchmark(*map(doubled, runs))["comparison"]["speedup_ci95"]
    assert twice == pytest.approx(once)


def test_swapping_the_modes_inverts_speedup_and_interval():
    a, b = make_mode("jit", *noisy_runs(4.0)), make_mode("jit", *noisy_runs(1.0, seed=1))
    forth, back = compare(a, b), compare(b, a)
    assert back["speedup"] == pytest.approx(1 / forth["speedup"])
    low, high = forth["speedup_ci95"]
    assert back["speedup_ci95"] == pytest.approx((1 / high, 1 / low), rel=0.01)


def test_spread_median_and_cpu_time_are_those_of_the_runs():
    runs = [make_run([1.0, 2.0]), make_run([3.0, 10.0])]
    figures = make_benchmark(runs, runs)["comparison"]["modes"][0]
    assert figures["median_epoch_s"] == 2.5
    assert figures["epoch_mad_s"] == 1.0  # of 1.5, 0.5, 0.5 and 7.5
    totals = np.array([3.0, 13.0])
    assert figures["spread_of_totals"] == pytest.approx(totals.std(ddof=1) / totals.mean())
    assert figures["cpu_over_wall"] == pytest.approx(1.5)


def test_without_a_mode_there_is_no_speedup_but_the_reason():
    comparison = comparison_without(["train_no_jit.py ended with exit status 1: why"])
    assert comparison["speedup"] is None
    assert comparison["warnings"] == ["train_no_jit.py ended with exit status 1: why"]
    assert comparison.keys() == make_results()["comparison"].keys()
