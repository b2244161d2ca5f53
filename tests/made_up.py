"""Made-up data and results, small and with known values."""

import copy

import numpy as np

import data_loader
import result_files
from comparison import compare
from mnist_sources import IMAGE_PIXELS

N_TRAIN, N_TEST = 70, 30
MEMORY = {"peak_mb": 400.0, "delta_mb": 20.0, "peak_source": "VmHWM", "stages": []}
WARMUP = {"time_ms": 123.4, "programs_compiled": 2, "parts": []}
ENVIRONMENT = {
    "python": "3.11.7",
    "jax": "0.10.2",
    "os": "Linux",
    "cpu_model": "Made-up CPU",
    "cores_visible": 4,
    "cores_usable": 2,
    "device": "cpu",
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
        "losses": [1 / epoch for epoch in range(1, n_epochs + 1)],
        "test_accuracies": [1 - 0.1 / epoch for epoch in range(1, n_epochs + 1)],
        "initial_params_sha256": "params",
        "epoch_orders_sha256": [f"order {epoch}" for epoch in range(n_epochs)],
        "warmup": WARMUP,
        "programs_compiled_in_epochs": [0] * n_epochs,
        "memory": MEMORY,
    }
    return copy.deepcopy({**run, **changes})


def make_mode(mode, *runs):
    config = {
        "epochs": len(runs[0]["epoch_times_s"]),
        "batch_size": 128,
        "learning_rate": 0.01,
        "seed": 0,
        "platform": "cpu",
        "layer_sizes": [784, 512, 256, 10],
    }
    dataset = {"name": "MNIST", "source": "made up", "sha256": {"train": "0"}}
    return result_files.mode_result(mode, config, dataset, dict(ENVIRONMENT), list(runs))


def make_results(no_jit_times=(3.0, 5.0), jit_times=(1.0, 1.0), **changes):
    """A benchmark's result with a speedup of 4; `changes` go into the run with JIT."""
    no_jit = make_mode("no_jit", make_run(no_jit_times))
    jit = make_mode("jit", make_run(jit_times, **changes))
    return {
        "schema_version": result_files.SCHEMA_VERSION,
        "status": "complete",
        "no_jit": no_jit,
        "jit": jit,
        "comparison": compare(no_jit, jit),
    }
