"""A training script from its options to its result file."""

import json
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest
from made_up import N_TEST, N_TRAIN, tiny_mnist

import config
import mode_script
import train_no_jit
import train_variants
import train_with_jit
from modes import LADDER
from studies import STUDIES
from utils import OptionError

MAINS = {"no_jit": train_no_jit.main, "jit": train_with_jit.main}


@pytest.fixture
def run_script(monkeypatch, tmp_path):
    """Runs a mode's main() on made-up data; returns its status and its result file's path."""
    monkeypatch.setattr(config.data_loader, "load_mnist", lambda *_, **__: tiny_mnist())

    def run(mode, *words):
        argv = [f"{mode}.py", "--batch-size", "32", "--results-dir", str(tmp_path), *words]
        monkeypatch.setattr(sys, "argv", argv)
        return MAINS[mode](), tmp_path / f"{mode}_results.json"

    return run


@pytest.mark.parametrize("mode", MAINS)
def test_script_prints_a_line_an_epoch_and_writes_its_result(run_script, capsys, mode):
    status, path = run_script(mode, "--epochs", "2", "--seed", "5", "--learning-rate", "0.2")
    assert status == 0
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["mode"] == mode and result["status"] == "complete"
    assert result["config"] == {
        "epochs": 2,
        "batch_size": 32,
        "learning_rate": 0.2,
        "seed": 5,
        "activation": "maximum",
        "platform": "cpu",
        "layer_sizes": [784, 512, 256, 10],
    }
    dataset = result["dataset"]
    assert (dataset["train_examples"], dataset["test_examples"]) == (N_TRAIN, N_TEST)
    assert [epoch["epoch"] for epoch in result["epochs"]] == [1, 2]
    (run,) = result["runs"]
    stages = [stage["stage"] for stage in run["memory"]["stages"]]
    assert stages == ["loading", "initialisation", "warm-up", "training"]
    assert run["memory"]["device_peak_mb"] is None  # on the CPU

    out, err = capsys.readouterr()
    assert err == ""
    lines = [line for line in out.splitlines() if line.startswith("epoch ")]
    for epoch, line in zip(result["epochs"], lines):
        assert line == (
            f"epoch {epoch['epoch']}/2  loss {epoch['loss']:.4f}  "
            f"test accuracy {epoch['test_accuracy']:.2%}  time {epoch['time_s']:.3f} s"
        )
    assert len(lines) == 2
    assert "Total Training Time" in out and str(path) in out


def test_no_summary_ends_with_the_last_epoch(run_script, capsys):
    run_script("jit", "--epochs", "1", "--worker")
    assert capsys.readouterr().out.splitlines()[-1].startswith("epoch 1/1")


def test_result_file_names_no_path_host_or_home(run_script, tmp_path):
    _, path = run_script("jit", "--epochs", "1", "--data-dir", str(tmp_path / "data"))
    text = path.read_text(encoding="utf-8")
    for private in (str(tmp_path), str(config.REPOSITORY), str(Path.home()), platform.node()):
        assert private not in text


def test_seed_decides_the_initial_parameters(run_script):
    hashes = []
    for seed in ("0", "1", "0"):
        _, path = run_script("jit", "--epochs", "1", "--seed", seed)
        hashes.append(json.loads(path.read_text())["runs"][0]["initial_params_sha256"])
    assert hashes[0] == hashes[2] != hashes[1]


def test_divergence_gives_strict_json(run_script, capsys):
    status, path = run_script("jit", "--epochs", "2", "--learning-rate", "1e6")
    assert status == 0
    assert json.loads(path.read_text())["final_loss"] is None
    assert "loss nan" in capsys.readouterr().out


def test_a_setting_that_would_change_the_run_is_refused(run_script, monkeypatch, capsys):
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert run_script("jit", "--epochs", "1")[0] == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "JAX_ENABLE_X64" in err


@pytest.mark.parametrize("mode", train_variants.STEPS)
def test_a_further_mode_is_chosen_by_the_scripts_first_word(monkeypatch, run_script, mode):
    monkeypatch.setitem(MAINS, mode, train_variants.main)
    status, path = run_script(mode, mode, "--epochs", "1", "--activation", "nn_relu")
    assert status == 0
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["mode"] == mode and len(result["epochs"]) == 1


def test_an_unknown_mode_is_one_line_and_status_2(monkeypatch, run_script, capsys):
    monkeypatch.setitem(MAINS, "none", train_variants.main)
    with pytest.raises(SystemExit) as end:
        run_script("none", "none")
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("mode", MAINS)
def test_nn_relu_trains_alike(run_script, mode):
    losses = []
    for activation in ("maximum", "nn_relu"):
        _, path = run_script(mode, "--epochs", "2", "--activation", activation)
        result = json.loads(path.read_text())
        assert result["config"]["activation"] == activation
        losses.append(result["runs"][0]["losses"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("platform", ["gpu", "tpu"])
@pytest.mark.parametrize("script", ["train_no_jit.py", "train_with_jit.py"])
def test_a_missing_platform_is_one_line_and_status_2(tmp_path, script, platform):
    if platform == "gpu" and gpu_builds():
        pytest.skip("this JAX may find a GPU")
    # A process of its own: JAX chooses its platform once.
    words = ["--platform", platform, "--results-dir", str(tmp_path)]
    command = [sys.executable, str(config.REPOSITORY / script), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: JAX finds no {platform} here")
    assert list(tmp_path.iterdir()) == []


def gpu_builds():
    names = [distribution.metadata["Name"] or "" for distribution in metadata.distributions()]
    return [name for name in names if re.match(r"jax[-_](cuda|rocm)", name)]


class Gpu:
    """A device as JAX gives it, whose figures a test decides."""

    platform, device_kind = "gpu", "Made-up GPU"

    def __init__(self, stats=None):
        self.stats = stats

    def memory_stats(self):
        if isinstance(self.stats, Exception):
            raise self.stats
        return self.stats


@pytest.mark.parametrize("build", ["cuda", "rocm", None])
def test_gpu_asks_jax_for_one_platform_after_the_other(monkeypatch, build):
    # As JAX does it: "gpu" would want both, and a name that is not there raises one or the other.
    asked = []

    def devices():
        if asked[-1] == build:
            return [Gpu()]
        raise AssertionError if asked[-1] == "cuda" else RuntimeError("no such backend (set JAX_P")

    monkeypatch.setattr(mode_script.jax.config, "update", lambda _, name: asked.append(name))
    monkeypatch.setattr(mode_script.jax, "devices", devices)
    if build:
        assert mode_script.use_platform("gpu").device_kind == "Made-up GPU"
        assert asked == (["cuda"] if build == "cuda" else ["cuda", "rocm"])
    else:
        with pytest.raises(OptionError, match=r"no gpu here.*\(no cuda device; no such backend"):
            mode_script.use_platform("gpu")


@pytest.mark.parametrize(
    "stats, peak",
    [
        ({"bytes_in_use": 1, "peak_bytes_in_use": 2_500_000}, 2.5),
        ({"peak_bytes_in_use": 0}, 0.0),
        ({"peak_bytes_in_use": -1}, None),  # JAX's word for "not known"
        ({"bytes_in_use": 1}, None),
        ({}, None),
        (None, None),
        (RuntimeError("UNIMPLEMENTED"), None),
        (NotImplementedError(), None),
    ],
)
def test_peak_of_a_device_is_its_own_figure_if_it_has_one(stats, peak):
    assert mode_script.device_peak_mb(Gpu(stats)) == peak


@pytest.mark.parametrize("mode", MAINS)
def test_a_run_on_a_gpu_says_so(run_script, monkeypatch, capsys, mode):
    device = Gpu({"peak_bytes_in_use": 7_000_000})
    monkeypatch.setattr(mode_script, "use_platform", lambda platform: {"gpu": device}[platform])
    status, path = run_script(mode, "--epochs", "1", "--platform", "gpu")
    result = json.loads(path.read_text())
    assert status == 0 and result["config"]["platform"] == "gpu"
    described = [result["environment"][key] for key in ("device", "device_kind")]
    assert described == ["gpu", "Made-up GPU"]
    assert result["runs"][0]["memory"]["device_peak_mb"] == 7.0
    assert result["peak_memory_mb"] > 7.0  # that of the process, as ever
    assert f"{LADDER[mode]['label']}, on gpu" in capsys.readouterr().out


def test_an_unwritable_results_folder_is_found_before_training(run_script, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    status, _ = run_script("jit", "--results-dir", str(tmp_path / "file"))
    assert status == 1
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "--results-dir" in err


def test_importing_a_module_prints_nothing_and_needs_jax_only_where_it_says_so():
    modules = {path.stem for path in config.REPOSITORY.glob("*.py")} - {"noxfile"}  # nox reads it
    assert {"model", "benchmark", "train_no_jit"} <= set(modules)
    uses_jax = {"model", "steps", "compiling", "training", "mode_script"}
    uses_jax |= {"study_script", *(f"measure_{study}" for study in STUDIES if study != "ladder")}
    uses_jax |= {Path(row["script"].split()[0]).stem for row in LADDER.values()}

    def import_alone(module):
        code = f"import {module}, sys; sys.exit(3 if 'jax' in sys.modules else 0)"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=config.REPOSITORY
        )

    names = sorted(modules)
    with ThreadPoolExecutor() as pool:
        for module, done in zip(names, pool.map(import_alone, names)):
            assert (done.stdout, done.stderr) == ("", "")
            assert done.returncode == (3 if module in uses_jax else 0), module


def test_a_training_script_imports_nothing_big_beside_jax():
    # It would count as memory of the mode.
    code = "import train_with_jit, sys; print([m for m in %r if m in sys.modules])"
    command = [sys.executable, "-c", code % ["scipy.stats", "matplotlib", "pip"]]
    done = subprocess.run(command, capture_output=True, text=True, cwd=config.REPOSITORY)
    assert done.stdout == "[]\n"
