"""Each gate passes where it should, and fails on a run that breaks what it guards."""

import copy

import jax
import numpy as np
import pytest
from made_up import MEMORY, STEP_FLOPS, make_mode, make_run, noisy_runs, tiny_mnist

import gates
import train_no_jit
import train_with_jit
import training
from comparison import compare
from config import Config

NO_COMPILES = {"time_ms": 1.0, "programs_compiled": 0, "parts": []}


def failed_gates(no_jit, jit):
    comparison = compare(no_jit, jit)
    names = [gate["name"] for gate in comparison["gates"] if gate["passed"] is False]
    assert (comparison["speedup"] is None) == bool(names)
    assert len(comparison["warnings"]) == len(names)
    return names


@pytest.mark.parametrize(
    "changes, gate",
    [
        ({"initial_params_sha256": "other"}, "same initial parameters"),
        ({"config_sha256": "other"}, "same configuration"),
        ({"environment_sha256": "other"}, "same environment"),
        ({"data_sha256": "other"}, "same data"),
        ({"epoch_orders_sha256": ["order 0", "order 7"]}, "same batches"),
        ({"first_step_difference": 1.1e-6}, "same parameters after one step"),
        ({"first_step_difference": float("nan")}, "same parameters after one step"),
        ({"losses": [1.0, 0.5 * 1.0011]}, "same epoch losses"),
        ({"losses": [1.0011, 0.5]}, "same epoch losses"),
        ({"losses": [1.0, float("nan")]}, "same epoch losses"),
        ({"losses": [1.0, None]}, "same epoch losses"),
        ({"test_accuracies": [0.9, 0.9551]}, "same final accuracy"),
        ({"step_flops": 1.021 * STEP_FLOPS["jit"]}, "same work"),
        ({"step_flops": STEP_FLOPS["no_jit"]}, "same work"),
        ({"step_flops": float("nan")}, "same work"),
        ({"test_accuracies": [0.9, float("nan")]}, "same final accuracy"),
        ({"warmup": NO_COMPILES}, "no compile in a timed epoch"),
        ({"dtypes": ["float32", "float64"]}, "float32 throughout"),
        ({"programs_compiled_in_epochs": [0, 1]}, "no compile in a timed epoch"),
    ],
)
@pytest.mark.parametrize("position", [0, 1])
def test_a_failed_gate_is_named_and_gives_no_speedup(changes, gate, position):
    # In whichever process it is.
    runs = [make_run([1.0, 1.0]), make_run([1.0, 1.0])]
    runs[position].update(copy.deepcopy(changes))
    no_jit = make_mode("no_jit", make_run([3.0, 5.0]), make_run([3.0, 5.0]))
    assert failed_gates(no_jit, make_mode("jit", *runs)) == [gate]


@pytest.mark.parametrize(
    "changes",
    [
        {"losses": [1.0, 0.5 * 1.0009]},
        {"test_accuracies": [0.9, 0.9549]},
        {"test_accuracies": [0.8, 0.95]},  # the gate is on the final accuracy alone
        {"first_step_difference": 0.9e-6},
        {"step_flops": 1.019 * STEP_FLOPS["jit"]},
    ],
)
def test_differences_within_the_tolerances_pass(changes):
    jit = make_mode("jit", make_run([1.0, 1.0], **changes))
    assert failed_gates(make_mode("no_jit", make_run([3.0, 5.0])), jit) == []


@pytest.mark.parametrize("mode", ["no_jit", "jit"])
@pytest.mark.parametrize("growth", [0.05, -0.05])
def test_a_drift_of_five_percent_an_epoch_is_reported_with_its_slope(mode, growth):
    runs = {"no_jit": noisy_runs(4.0), "jit": noisy_runs(1.0, seed=1)}
    runs[mode] = noisy_runs(2.0, growth=growth, seed=2)
    results = [make_mode(name, *runs[name]) for name in ("no_jit", "jit")]
    assert failed_gates(*results) == ["steady state"]
    (gate,) = (gate for gate in gates.check_gates(*results) if gate["name"] == "steady state")
    figures = gates.drift(results[["no_jit", "jit"].index(mode)])
    assert gate["detail"].startswith("drift: ")
    assert f"changes by {figures['slope_per_epoch']:+.1%} an epoch" in gate["detail"]
    assert figures["slope_per_epoch"] == pytest.approx(growth, rel=0.2)
    assert figures["last_over_second"] == pytest.approx((1 + growth) ** 8, rel=0.1)


def test_noise_without_drift_passes_and_few_epochs_are_not_judged():
    runs = noisy_runs(4.0, noise=0.03), noisy_runs(1.0, noise=0.03, seed=1)
    assert failed_gates(make_mode("no_jit", *runs[0]), make_mode("jit", *runs[1])) == []
    short = [make_mode(mode, make_run([1.0, 9.0, 9.9, 30.0])) for mode in ("no_jit", "jit")]
    (gate,) = (gate for gate in gates.check_gates(*short) if gate["name"] == "steady state")
    assert gate["passed"] is None
    assert failed_gates(*short) == []


def test_a_sample_above_the_peak_fails_the_memory_gate():
    stage = {"stage": "training", "rss_before_mb": 1.0, "rss_after_mb": 406.0, "peak_mb": 2.0}
    memory = {**MEMORY, "stages": [stage]}
    jit = make_mode("jit", make_run([1.0], memory=memory))
    assert failed_gates(make_mode("no_jit", make_run([3.0])), jit) == ["memory"]


def test_flops_of_a_step_are_those_of_its_products():
    assert gates.count_step_flops(128, (784, 512, 256, 10), 1) == STEP_FLOPS["jit"]
    assert gates.count_step_flops(128, (784, 512, 256, 10), 2) == STEP_FLOPS["no_jit"]
    # One layer (3, 2), one image: forward 2 * 6, weights' gradient 2 * 6, no inputs' gradient.
    assert gates.count_step_flops(1, (3, 2), 1) == 24


def only_the_loss(params, images, labels, learning_rate):
    return params, train_with_jit.train_step(params, images, labels, learning_rate)[1]


@pytest.mark.parametrize(
    "step, mode, passed",
    [
        (train_with_jit.train_step, "jit", True),
        (train_no_jit.train_step, "no_jit", True),
        (train_no_jit.train_step, "jit", False),
        (only_the_loss, "jit", False),
        (only_the_loss, "no_jit", False),
    ],
)
def test_work_of_the_real_steps_is_counted_by_xla(step, mode, passed):
    data = tiny_mnist()
    flops = training.count_flops(step, data, Config(batch_size=64))
    result = make_mode(mode, make_run([1.0], step_flops=flops))
    result["config"]["batch_size"] = 64
    gate = gates._same_work([result])
    assert gate["passed"] is passed, gate["detail"]


def test_first_step_of_both_modes_is_within_the_gate_and_a_wrong_one_is_not():
    data, config = tiny_mnist(), Config(batch_size=32, learning_rate=0.01)

    def leaves(step):
        return jax.tree_util.tree_leaves(training.first_step_params(step, data, config))

    def largest_difference(step):
        pairs = zip(leaves(step), leaves(train_no_jit.train_step))
        return max(np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in pairs)

    assert largest_difference(train_with_jit.train_step) <= gates.FIRST_STEP_TOLERANCE
    assert largest_difference(only_the_loss) > gates.FIRST_STEP_TOLERANCE
