"""Made-up data and results, small and with known values."""

import copy

import numpy as np

import data_loader
import result_files
from comparison import compare
from mnist_sources import IMAGE_PIXELS

N_TRAIN, N_TEST = 70, 30
STAGE = {"stage": "training", "rss_before_mb": 380.0, "rss_after_mb": 390.0, "peak_mb": 400.0}
MEMORY = {
    "peak_mb": 400.0,
    "delta_mb": 20.0,
    "peak_source": "VmHWM",
    "stages": [STAGE],
    "device_peak_mb": None,
}
WARMUP = {
    "time_ms": 123.4,
    "programs_compiled": 2,
    "parts": [
        {
            "batch_size": 128,
            "time_ms": 123.4,
            "programs_compiled": 2,
            "trace_ms": 10.0,
            "lower_ms": 5.0,
            "compile_ms": 100.0,
            "first_run_ms": 8.4,
        }
    ],
}
# Counted by hand: 535,040 weights; two or three passes over them, one more without the first layer.
STEP_FLOPS = {"no_jit": 445_120_512.0, "jit": 308_150_272.0}
NOISE = {"load_average_at_start": 0.25, "steal_share": 0.001, "settings_cleared": []}
ENVIRONMENT = {
    "python": "3.11.7",
    "jax": "0.10.2",
    "os": "Linux",
    "cpu_model": "Made-up CPU",
    "cores_visible": 4,
    "cores_usable": 2,
    "device": "cpu",
    "device_kind": "cpu",
    "cpu_governor": None,
    "settings_honoured": {},
    "commit": "0123456789abcdef",
    "tree_clean": True,
}


def tiny_mnist():
    """70 and 30 random images in place of MNIST, as bytes."""
    rng = np.random.default_rng(0)

    def images(n):
        return rng.integers(0, 256, (n, IMAGE_PIXELS), dtype=np.uint8)

    def labels(n):
        return rng.integers(0, 10, n).astype(np.int32)

    return data_loader.Mnist(
        images(N_TRAIN), labels(N_TRAIN), images(N_TEST), labels(N_TEST), "made up", {"train": "0"}
    )


def make_run(epoch_times, **changes):
    n_epochs = len(epoch_times)
    run = {
        "pid": 1,
        "epoch_times_s": list(epoch_times),
        "epoch_cpu_times_s": [1.5 * time for time in epoch_times],
        "losses": [1 / epoch for epoch in range(1, n_epochs + 1)],
        "test_accuracies": [1 - 0.1 / epoch for epoch in range(1, n_epochs + 1)],
        "config_sha256": "config",
        "environment_sha256": "environment",
        "data_sha256": "data",
        "initial_params_sha256": "params",
        "epoch_orders_sha256": [f"order {epoch}" for epoch in range(n_epochs)],
        "warmup": WARMUP,
        "programs_compiled_in_epochs": [0] * n_epochs,
        "memory": MEMORY,
        "first_step_difference": 0.0,
        "dtypes": ["float32"],
    }
    return copy.deepcopy({**run, **changes})


def make_mode(mode, *runs, step_flops=None):
    config = {
        "epochs": len(runs[0]["epoch_times_s"]),
        "batch_size": 128,
        "learning_rate": 0.01,
        "seed": 0,
        "activation": "maximum",
        "platform": "cpu",
        "layer_sizes": [784, 512, 256, 10],
    }
    dataset = {
        "name": "MNIST",
        "source": "made up",
        "train_examples": 60_000,
        "test_examples": 10_000,
        "sha256": {"train": "0"},
    }
    runs = [{"step_flops": STEP_FLOPS.get(mode, step_flops), **run} for run in runs]
    return result_files.mode_result(mode, config, dataset, dict(ENVIRONMENT), list(runs))


def make_results(no_jit_times=(3.0, 5.0), jit_times=(1.0, 1.0), **changes):
    """A benchmark's result with a speedup of 4; `changes` go into the run with JIT."""
    return make_benchmark([make_run(no_jit_times)], [make_run(jit_times, **changes)])


def make_benchmark(no_jit_runs, jit_runs):
    no_jit, jit = make_mode("no_jit", *no_jit_runs), make_mode("jit", *jit_runs)
    return {
        "schema_version": result_files.SCHEMA_VERSION,
        "status": "complete",
        "noise": dict(NOISE),
        "no_jit": no_jit,
        "jit": jit,
        "comparison": compare(no_jit, jit),
    }


def noisy_runs(seconds, n_runs=10, n_epochs=10, noise=0.02, seed=0, growth=0.0):
    """Runs whose epoch times are log-normal around a known one and grow by a known share."""
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(n_runs):
        of_process = rng.normal(0, noise)  # what an epoch shares with the others of its process
        times = seconds * np.exp(of_process + rng.normal(0, noise, n_epochs))
        runs.append(make_run((times * (1 + growth) ** np.arange(n_epochs)).tolist()))
    return runs
