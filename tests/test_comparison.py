"""The comparison: the speedup on made-up times, and every gate in which it fails."""

import copy

import pytest
from made_up import make_mode, make_results, make_run

from comparison import compare, comparison_without


def failed_gates(no_jit, jit):
    comparison = compare(no_jit, jit)
    names = [gate["name"] for gate in comparison["gates"] if not gate["passed"]]
    assert (comparison["speedup"] is None) == bool(names)
    assert len(comparison["warnings"]) == len(names)
    return names


def test_speedup_is_the_ratio_of_total_times():
    comparison = make_results([3.0, 5.0], [1.0, 1.0])["comparison"]
    assert comparison["speedup"] == 4.0
    assert comparison["processes_per_mode"] == 1
    assert comparison["preliminary"]
    assert comparison["speedup_ci95"] is None
    assert comparison["warnings"] == []
    assert all(gate["passed"] for gate in comparison["gates"])


def test_a_slower_jit_gives_a_speedup_below_one():
    assert make_results([1.0, 1.0], [1.0, 3.0])["comparison"]["speedup"] == 0.5


@pytest.mark.parametrize(
    "changes, gate",
    [
        ({"initial_params_sha256": "other"}, "same initial parameters"),
        ({"epoch_orders_sha256": ["order 0", "order 7"]}, "same batches"),
        ({"losses": [1.0, 0.5 * 1.0011]}, "same epoch losses"),
        ({"losses": [1.0011, 0.5]}, "same epoch losses"),
        ({"losses": [1.0, float("nan")]}, "same epoch losses"),
        ({"losses": [1.0, None]}, "same epoch losses"),
        ({"test_accuracies": [0.9, 0.956]}, "same final accuracy"),
        ({"programs_compiled_in_epochs": [0, 1]}, "no compile in a timed epoch"),
    ],
)
def test_a_failed_gate_is_named_and_gives_no_speedup(changes, gate):
    jit = make_mode("jit", make_run([1.0, 1.0], **changes))
    no_jit = make_mode("no_jit", make_run([3.0, 5.0]))
    assert failed_gates(no_jit, jit) == [gate]
    assert failed_gates(jit, no_jit) == [gate]


@pytest.mark.parametrize(
    "changes",
    [
        {"losses": [1.0, 0.5 * 1.0009]},
        {"test_accuracies": [0.9, 0.9549]},
        {"test_accuracies": [0.8, 0.95]},  # the gate is on the final accuracy alone
    ],
)
def test_differences_within_the_tolerances_pass(changes):
    jit = make_mode("jit", make_run([1.0, 1.0], **changes))
    assert failed_gates(make_mode("no_jit", make_run([3.0, 5.0])), jit) == []


@pytest.mark.parametrize(
    "part, key, gate",
    [("config", "batch_size", "same configuration"), ("dataset", "sha256", "same data")],
)
def test_another_configuration_or_other_data_are_refused(part, key, gate):
    no_jit = make_mode("no_jit", make_run([3.0, 5.0]))
    jit = copy.deepcopy(no_jit)
    jit[part][key] = "other"
    assert failed_gates(no_jit, jit) == [gate]


def test_without_a_mode_there_is_no_speedup_but_the_reason():
    comparison = comparison_without(["train_no_jit.py ended with exit status 1: why"])
    assert comparison["speedup"] is None
    assert comparison["warnings"] == ["train_no_jit.py ended with exit status 1: why"]
    assert comparison.keys() == make_results()["comparison"].keys()
