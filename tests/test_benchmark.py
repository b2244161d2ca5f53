"""The benchmark from its options to its files, with real processes on made-up data."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from made_up import tiny_mnist

import benchmark
import config
import data_loader
import utils
import workers
from modes import MODES
from utils import OptionParser

FILES = {"no_jit_results.json", "jit_results.json", "benchmark_results.json"}
PLOTS = {"training_time.png", "loss_curve.png", "accuracy_curve.png"}
# A mode's real script, with made-up data in place of MNIST; {change} comes before it runs.
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import data_loader, made_up
data_loader.load_mnist = lambda *_, **__: made_up.tiny_mnist()
import {module} as script
{change}
sys.exit(script.main())
"""


@pytest.fixture
def run_benchmark(monkeypatch, tmp_path):
    """Runs main() with scripts on made-up data; changes[mode] is code that comes before one's."""
    monkeypatch.setattr(config.data_loader, "load_mnist", lambda *_, **__: tiny_mnist())
    folder = tmp_path / "results"

    def run(*words, **changes):
        scripts = {}
        for mode, names in MODES.items():
            path = tmp_path / f"{mode}.py"
            path.write_text(
                SCRIPT.format(
                    paths=[str(config.REPOSITORY), str(Path(__file__).parent)],
                    module=Path(names["script"]).stem,
                    change=changes.get(mode, ""),
                )
            )
            scripts[mode] = {**names, "script": str(path)}
        monkeypatch.setattr(workers, "LADDER", scripts)
        return benchmark.main(
            ["--batch-size", "32", "--repeats", "1", "--results-dir", str(folder), *words]
        )

    run.folder = folder
    return run


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_benchmark_runs_each_mode_in_its_own_process_and_writes_all_files(run_benchmark, capsys):
    options = ["--epochs", "3", "--seed", "4", "--learning-rate", "0.05", "--repeats", "2"]
    status = run_benchmark(*options)
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert names_in(run_benchmark.folder) == FILES | PLOTS | {"analysis.md"}
    results = read(run_benchmark.folder / "benchmark_results.json")
    for mode in MODES:
        assert read(run_benchmark.folder / f"{mode}_results.json") == results[mode]
        assert results[mode]["mode"] == mode
        options = {key: results[mode]["config"][key] for key in ("epochs", "seed", "batch_size")}
        assert options == {"epochs": 3, "seed": 4, "batch_size": 32}
        assert results[mode]["config"]["learning_rate"] == 0.05
    pids = {run["pid"] for mode in MODES for run in results[mode]["runs"]}
    assert len(pids) == 4 and os.getpid() not in pids
    compiled = {
        mode: {run["warmup"]["programs_compiled"] for run in results[mode]["runs"]}
        for mode in MODES
    }
    assert compiled["jit"] == {2} and min(compiled["no_jit"]) > 50
    orders = {mode: [run["order"] for run in results[mode]["runs"]] for mode in MODES}
    assert orders == {"no_jit": [0, 3], "jit": [1, 2]}
    starts = {run["order"]: run["started_at"] for mode in MODES for run in results[mode]["runs"]}
    assert [starts[i] for i in range(4)] == sorted(starts.values())
    comparison = results["comparison"]
    totals = {mode: [sum(run["epoch_times_s"]) for run in results[mode]["runs"]] for mode in MODES}
    ratios = [a / b for a, b in zip(totals["no_jit"], totals["jit"])]
    assert comparison["speedup"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert [gate["name"] for gate in comparison["gates"] if gate["passed"] is False] == []
    assert out.count("epoch 3/3") == 4
    assert "Total Training Time" in out
    assert out.index("Without JIT, on cpu") < out.index("With JIT, on cpu")


def test_quick_takes_two_epochs(run_benchmark):
    assert run_benchmark("--quick", "--epochs", "7") == 0
    results = read(run_benchmark.folder / "benchmark_results.json")
    assert [len(results[mode]["epochs"]) for mode in MODES] == [2, 2]


@pytest.mark.parametrize(
    "failing, change, reason",
    [
        ("no_jit", "sys.exit('error: boom')", "exit status 1: boom"),
        ("jit", "raise MemoryError('boom')", "exit status 1: MemoryError: boom"),
        ("jit", "import os; os._exit(7)", "exit status 7: it printed nothing"),
        ("jit", "sys.exit(2)", "exit status 2: it printed nothing"),
        ("no_jit", "sys.exit(2)", "exit status 2: it printed nothing"),
    ],
)
def test_a_failed_mode_is_named_and_the_others_data_kept(
    run_benchmark, capsys, failing, change, reason
):
    assert run_benchmark("--epochs", "1", **{failing: change}) == 1
    out, err = capsys.readouterr()
    (other,) = set(MODES) - {failing}
    assert err.count("\n") == 1
    assert f"{failing}.py ended with {reason}" in err
    assert f"{other}_results.json" in err
    assert "peedup" not in out
    files = {f"{other}_results.json", "benchmark_results.json", "analysis.md"}
    assert names_in(run_benchmark.folder) == files
    results = read(run_benchmark.folder / "benchmark_results.json")
    assert results["status"] == "failed"
    assert results[failing] is None and results[other]["status"] == "complete"
    assert results["comparison"]["speedup"] is None


def test_a_failed_gate_keeps_the_data_and_shows_no_speedup(run_benchmark, capsys):
    # The mode with JIT moves by twice the learning rate.
    change = (
        "step = script.train_step\n"
        "script.train_step = lambda params, images, labels, rate:"
        " step(params, images, labels, 2 * rate)"
    )
    assert run_benchmark("--epochs", "2", jit=change) == 1
    out, err = capsys.readouterr()
    assert "gate 'same epoch losses' failed" in err
    assert "\N{MULTIPLICATION SIGN}" not in out
    assert names_in(run_benchmark.folder) == FILES | PLOTS | {"analysis.md"}
    comparison = read(run_benchmark.folder / "benchmark_results.json")["comparison"]
    assert comparison["speedup"] is None
    failed = [gate["name"] for gate in comparison["gates"] if gate["passed"] is False]
    assert failed == ["same parameters after one step", "same epoch losses"]


def test_a_compile_within_an_epoch_fails_the_benchmark(run_benchmark, capsys):
    # The warm-up knows nothing of the smaller last batch.
    change = (
        "import training\n"
        "warm_up = training.warm_up\n"
        "def full_batches_alone(step, data, config, compiles):\n"
        "    data = data._replace(train_images=data.train_images[:64])\n"
        "    return warm_up(step, data, config, compiles)\n"
        "training.warm_up = full_batches_alone"
    )
    assert run_benchmark("--epochs", "1", jit=change) == 1
    out, err = capsys.readouterr()
    assert "gate 'no compile in a timed epoch' failed: programs compiled: 1" in err


def test_inherited_settings_are_cleared_or_told(run_benchmark, monkeypatch, capsys):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=1")
    assert run_benchmark("--epochs", "1") == 0
    out = capsys.readouterr().out
    assert "Cleared for the benchmark's processes: JAX_DISABLE_JIT, JAX_ENABLE_X64" in out
    assert "XLA_FLAGS=--xla_force_host_platform_device_count=1" in out
    results = read(run_benchmark.folder / "benchmark_results.json")
    assert results["noise"]["settings_cleared"] == ["JAX_DISABLE_JIT", "JAX_ENABLE_X64"]
    assert results["jit"]["runs"][0]["dtypes"] == ["float32"]


def test_control_compares_each_mode_with_itself(run_benchmark, capsys):
    status = run_benchmark("--epochs", "1", "--control", "--repeats", "2")
    assert names_in(run_benchmark.folder) == {"control_results.json"}
    controls = read(run_benchmark.folder / "control_results.json")
    out, err = capsys.readouterr()
    passed = []
    for mode, label in (("no_jit", "Without JIT"), ("jit", "With JIT")):
        assert [controls[mode][arm]["mode"] for arm in "ab"] == [mode, mode]
        comparison = controls[mode]["comparison"]
        low, high = comparison["speedup_ci95"]
        passed.append(low <= 1 <= high)
        assert f"{label} against itself: ratio {comparison['speedup']:.3f}" in out
    assert status == (0 if all(passed) else 1)
    assert ("the control failed" in err) == (not all(passed))


def test_a_bad_option_ends_the_benchmark_with_status_2(run_benchmark, capsys):
    change = "print('error: no such device', file=sys.stderr); sys.exit(2)"
    assert run_benchmark("--epochs", "1", no_jit=change) == 2
    assert capsys.readouterr().err == "error: no such device\n"
    assert names_in(run_benchmark.folder) == set()


def test_the_processes_read_what_the_cache_could_not_keep(run_benchmark, monkeypatch, capsys):
    folders = []

    class Stopped:
        def __init__(self, arms, options, bar):
            folders.append(options.data_dir)

        def run(self):
            assert names_in(folders[0]) == set(data_loader.mnist_sources.FILES)
            raise utils.ScriptError("stopped")

    unkept = tiny_mnist()._replace(kept=False)
    monkeypatch.setattr(config.data_loader, "load_mnist", lambda *_, **__: unkept)
    monkeypatch.setattr(benchmark, "Workers", Stopped)
    assert run_benchmark("--epochs", "1") == 1
    assert capsys.readouterr().err == "error: stopped\n"
    assert not folders[0].exists()


def test_all_options_pass_through(tmp_path):
    words = ["--epochs", "3", "--batch-size", "64", "--learning-rate", "0.5", "--seed", "9"]
    words += ["--platform", "gpu", "--data-dir", str(tmp_path), "--offline"]
    parser = config_parser()
    told = parser.parse_args(workers.script_options(parser.parse_args(words)))
    assert told == parser.parse_args(words)


def config_parser():
    parser = OptionParser()
    config.add_training_options(parser)
    return parser


@pytest.mark.real_mnist
def test_quick_run_on_real_mnist(tmp_path):
    command = [sys.executable, str(config.REPOSITORY / "benchmark.py"), "--quick"]
    done = subprocess.run(
        [*command, "--results-dir", str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    results = read(tmp_path / "benchmark_results.json")
    for mode in MODES:
        first = results[mode]["epochs"][0]
        assert first["loss"] == pytest.approx(0.95, abs=0.03)
        assert first["test_accuracy"] == pytest.approx(0.88, abs=0.01)
        assert results[mode]["runs"][0]["programs_compiled_in_epochs"] == [0, 0]
