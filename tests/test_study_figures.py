"""The studies' figures, recomputed from made-up results with known constants."""

import json
import math

import numpy as np
import pytest
from made_up import make_results
from made_up_studies import (
    BATCH_SIZES,
    EPOCH_S,
    MODEL,
    PEAK,
    PRODUCTS,
    UPDATE,
    make_bound,
    make_drift,
    make_inside,
    make_ladder,
    make_range,
)

import original
from bound_figures import bound_figures
from modes import LADDER
from range_figures import cost_figures, crossing, fit_step, range_figures
from study_figures import drift_figures, inside_figures, ladder_figures


def through_json(result):
    """As it comes out of the file."""
    return json.loads(json.dumps(result))


def test_ladder_gives_each_rungs_time_and_ratio_to_the_next():
    figures = ladder_figures(through_json(make_ladder()))
    assert [rung["mode"] for rung in figures["rungs"]] == list(LADDER)
    noise = math.prod(1 + 0.01 * i for i in range(6)) ** (1 / 6)
    seconds = list(EPOCH_S.values())
    for rung, time, following in zip(figures["rungs"], seconds, [*seconds[1:], None]):
        assert rung["epoch_s"] == pytest.approx(time * noise)
        assert rung["failed_gates"] == [] and rung["processes"] == 6
        if following is None:
            assert rung["to_next"] is None
        else:
            assert rung["to_next"].value == pytest.approx(time / following)
            assert rung["to_next"].ci95 == pytest.approx((time / following,) * 2)
    assert figures["headline"].value == pytest.approx(6.0)
    assert figures["second_pass"].value == pytest.approx(1.5)
    assert figures["jit_alone"].value == pytest.approx(4.0)


def test_a_rung_whose_results_differ_is_named():
    result = make_ladder()
    result["modes"]["numpy"]["runs"][2]["losses"][1] *= 1.01
    rungs = {rung["mode"]: rung for rung in ladder_figures(result)["rungs"]}
    assert rungs["numpy"]["failed_gates"] == ["same epoch losses"]
    assert rungs["jit_scan"]["failed_gates"] == []


def test_range_recovers_dispatch_work_and_crossing():
    figures = range_figures(through_json(make_range()))
    assert [width["width_factor"] for width in figures] == [0.25, 1, 4]
    noise = math.prod(1 + 0.01 * i for i in range(3)) ** (1 / 3)
    for width in figures:
        factor = width["width_factor"]
        assert width["batch_sizes"] == BATCH_SIZES
        for mode, (dispatch, work) in MODEL.items():
            times = [1e-6 * noise * (dispatch + work * factor * size) for size in BATCH_SIZES]
            assert width["step_s"][mode] == pytest.approx(times)
            fit = width["fits"][mode]
            assert fit["dispatch_us"] == pytest.approx(dispatch * noise)
            assert fit["work_us"] == pytest.approx(work * factor * noise)
            assert fit["error"] == pytest.approx(0, abs=1e-9)
        ratio = width["ratios"]["eager_value_and_grad"][3]
        expected = (3000 + 11 * factor * 128) / (100 + 10 * factor * 128)
        assert ratio.value == pytest.approx(expected)
        assert width["near"]["no_jit"] is None  # twice the work: never near
    # 3000 + 11 b = (100 + 10 b) / 0.9 at b = 26000 for width 1, beyond 8192; for width 4 at 6500,
    # read off a straight line between 2048 and 8192.
    assert figures[1]["near"]["eager_value_and_grad"] is None
    assert figures[2]["near"]["eager_value_and_grad"] == pytest.approx(6500, rel=0.15)


def test_fit_tells_a_model_that_does_not_fit():
    good = fit_step([1, 10, 100], [2e-6, 11e-6, 101e-6])
    assert good == pytest.approx({"dispatch_us": 1, "work_us": 1, "error": 0}, abs=1e-6)
    bad = fit_step([1, 10, 100], [2e-6, 22e-6, 101e-6])
    assert bad["error"] > 0.2
    assert fit_step([1, 2, 4], [1e-6, 4e-6, 16e-6])["dispatch_us"] == 0  # never negative


@pytest.mark.parametrize(
    "ratios, expected",
    [
        ([4.0, 2.0, 1.0], 20.0),  # halfway in logarithms between 10 and 40 at sqrt(2)
        ([4.0, 2.0, 1.5], None),
        ([1.2, 1.1, 1.0], 2.5),
        ([1.0, 2.0, 1.0], 20.0),  # what comes before the last point above does not count
    ],
)
def test_crossing_is_where_the_ratio_stays_below(ratios, expected):
    found = crossing([2.5, 10, 40], ratios, math.sqrt(2))
    assert found == (None if expected is None else pytest.approx(expected))


def test_cost_adds_the_warm_up_and_finds_the_break_even():
    results = make_results([4.0, 4.0], [1.0, 1.0])
    for mode, warmup_ms in (("no_jit", 2000.0), ("jit", 690.0)):
        results[mode]["warmup_time_ms"] = warmup_ms
    cost = cost_figures(results)
    assert cost["epochs"] == [1, 2, 5, 10, 20]
    assert cost["seconds"]["no_jit"] == [6.0, 10.0, 22.0, 42.0, 82.0]
    assert cost["seconds"]["jit"] == pytest.approx([1.69, 2.69, 5.69, 10.69, 20.69])
    # 3 s an epoch of 469 steps are saved: 0.69 s after 107.9 steps.
    assert cost["break_even_steps"] == 108
    assert cost["break_even_s"] == pytest.approx(108 * 4 / 469)


def test_bound_gives_shares_of_known_floors():
    figures = bound_figures(through_json(make_bound()))
    noise = math.prod(1 + 0.01 * i for i in range(6)) ** (1 / 6)
    assert figures["peak_flops"] == pytest.approx(PEAK / noise)
    assert figures["products_flops"] == pytest.approx(PRODUCTS / noise)
    assert figures["scan_products_flops"] == pytest.approx(1.25 * PRODUCTS / noise)
    assert figures["update_s"] == pytest.approx(3 * 4 * 535_818 / UPDATE * noise)
    modes = {mode["mode"]: mode for mode in figures["modes"]}
    assert list(modes) == ["no_jit", "jit", "jit_scan"]
    assert modes["no_jit"]["epoch_s"] == pytest.approx(3.0 * noise)
    epoch_flops = 445_120_512 * 60_000 / 128
    assert modes["no_jit"]["of_peak"].value == pytest.approx(epoch_flops / PEAK / 3.0)
    assert modes["jit_scan"]["of_products"].value == pytest.approx(0.95)
    assert modes["jit_scan"]["of_scan_products"].value == pytest.approx(0.95 / 1.25)
    assert modes["jit_scan"]["of_peak"].value == pytest.approx(0.95 * PRODUCTS / PEAK)
    assert modes["jit"]["to_jit"].value == pytest.approx(1.0)
    assert [each["to_scan"].value for each in figures["tries"]] == pytest.approx([0.5])


def test_inside_divides_by_the_steps_and_counts_by_hand():
    figures = inside_figures(through_json(make_inside()))
    assert figures["modes"]["no_jit"]["executions"] == 64
    assert figures["modes"]["jit"]["executions"] == 1
    assert figures["modes"]["jit"]["python_calls"] == 100
    assert figures["analytic_flops"] == 308_150_272
    assert figures["analytic_bytes"] == 2 * 4 * 535_818 + 128 * 4 * 785
    assert figures["program"]["products"] == 8


def test_drift_gives_growth_entries_and_memory():
    figures = {(arm["jax"], arm["part"]): arm for arm in drift_figures(make_drift())}
    for jax in ("0.4.38", "0.12.0"):
        grows = figures[jax, "nn_relu"]
        assert grows["growth"] == pytest.approx(1.5)
        assert grows["entries_per_step"] == pytest.approx(2)
        assert grows["mb_per_1000_steps"] == pytest.approx(80)
        assert figures[jax, "maximum"]["growth"] == pytest.approx(1)
        assert figures[jax, "maximum"]["entries_per_step"] == 0


def test_entries_are_counted_while_the_cache_fills_and_not_where_it_is_emptied():
    result = make_drift()
    for record in result["processes"][1]["records"]:
        record["greater_cache_entries"] = min(record["greater_cache_entries"], 1500)
    full, emptied = drift_figures(result)[1:3]
    assert full["entries_per_step"] == pytest.approx(2) and full["most_entries"] == 1500
    assert emptied["entries_per_step"] is None


def test_the_originals_figures_are_consistent():
    for mode in ("no_jit", "jit"):
        figures = original.MODES[mode]
        times = figures["epoch_times_s"]
        assert len(times) == len(figures["losses"]) == len(figures["test_accuracies"]) == 10
        assert sum(times) == pytest.approx(figures["total_training_time_s"], rel=0.015)
        assert figures["avg_epoch_time_s"] == pytest.approx(
            figures["total_training_time_s"] / 10, abs=0.01
        )
        assert figures["losses"][-1] == figures["final_loss"]
        assert np.all(np.diff(figures["losses"]) < 0)
    totals = [original.MODES[mode]["total_training_time_s"] for mode in ("no_jit", "jit")]
    assert round(totals[0] / totals[1], 2) == original.SPEEDUP
    # 10 epochs of 3.369 s over 29.02 s, by hand.
    assert original.speedup_without_drift() == pytest.approx(33.69 / 29.02)
