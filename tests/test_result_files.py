"""The result files: their summary, strict JSON, whole or not at all."""

import json
import os

import pytest
from made_up import make_mode, make_run

import result_files
from utils import ScriptError


def test_summary_of_one_run_is_its_own_values():
    result = make_mode("jit", make_run([2.0, 1.0, 3.0], losses=[0.9, 0.5, 0.4]))
    assert result["total_training_time_s"] == 6.0
    assert result["avg_epoch_time_s"] == 2.0
    assert result["final_loss"] == 0.4
    assert result["final_test_accuracy"] == pytest.approx(1 - 0.1 / 3)
    assert result["peak_memory_mb"] == 400.0
    assert result["memory_delta_mb"] == 20.0
    assert result["warmup_time_ms"] == 123.4
    assert result["epochs"][1] == {"epoch": 2, "loss": 0.5, "test_accuracy": 0.95, "time_s": 1.0}
    assert result["status"] == "complete"


def test_summary_of_several_runs_is_their_mean():
    result = make_mode("jit", make_run([2.0, 1.0]), make_run([4.0, 2.0]))
    assert [epoch["time_s"] for epoch in result["epochs"]] == [3.0, 1.5]
    assert result["total_training_time_s"] == 4.5


def test_memory_and_warm_up_are_means_over_runs():
    memory = {"peak_mb": 500.0, "delta_mb": 40.0, "stages": []}
    warmup = {"time_ms": 23.4, "programs_compiled": 2, "parts": []}
    other = make_run([1.0], memory=memory, warmup=warmup)
    result = make_mode("jit", make_run([1.0]), other)
    assert result["peak_memory_mb"] == 450.0
    assert result["memory_delta_mb"] == 30.0
    assert result["warmup_time_ms"] == pytest.approx(73.4)


def test_a_loss_that_one_run_lacks_has_no_mean():
    result = make_mode("jit", make_run([2.0, 1.0], losses=[1.0, None]), make_run([4.0, 2.0]))
    assert [epoch["loss"] for epoch in result["epochs"]] == [1.0, None]
    assert result["final_loss"] is None


def test_what_is_not_finite_becomes_null(tmp_path):
    path = tmp_path / "r.json"
    value = {"a": float("nan"), "b": [1.0, float("inf")], "c": (float("-inf"), "NaN")}
    result_files.write_json(path, value)

    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert read == {"a": None, "b": [1.0, None], "c": [None, "NaN"]}


def test_a_result_comes_back_as_it_was(tmp_path):
    result = make_mode("jit", make_run([2.0, 1.0 / 3]))
    result_files.write_json(tmp_path / "new" / "r.json", result)
    assert result_files.read_json(tmp_path / "new" / "r.json") == result


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    result_files.write_json(path, {"old": 1})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ScriptError, match=r"r\.json: No space left on device"):
        result_files.write_json(path, {"new": 2})
    assert result_files.read_json(path) == {"old": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_folder_is_found_before_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ScriptError, match="--results-dir"):
        result_files.require_writable(tmp_path / "file")
    result_files.require_writable(tmp_path / "new" / "folder")
    assert list((tmp_path / "new" / "folder").iterdir()) == []


@pytest.mark.parametrize("content", [None, "", "{", "\x00"])
def test_a_missing_or_broken_file_is_a_named_fault(tmp_path, content):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ScriptError, match=r"r\.json"):
        result_files.read_json(path)
