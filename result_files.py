"""The result files: strict JSON, one object per mode and one for the comparison of both.

Tables, plots and README read these files and nothing else, so each figure can be made again.
Times are in seconds unless a name says otherwise; MB is 10^6 bytes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from modes import MODES
from utils import BYTES_PER_MB, ScriptError, write_whole

try:
    import fcntl
except ImportError:  # Windows
    import msvcrt

    fcntl = None

SCHEMA_VERSION = 1
BENCHMARK_FILE = "benchmark_results.json"
BENCHMARK_KEYS = {"schema_version", "status", "noise", *MODES, "comparison"}
CONTROL_FILE = "control_results.json"
LOCK_FILE = "benchmark.lock"  # on Windows alone
FREE_BYTES = 10_000_000  # what a run's files need at most, with room to spare
FIRST_STEP_FILE = "first_step.npz"
STUDY_PROCESS_FILE = "study_process.json"


def mode_file(mode: str) -> str:
    """Returns the name of a mode's result file."""
    return f"{mode}_results.json"


def study_file(study: str) -> str:
    """Returns the name of a study's result file."""
    return f"{study}_results.json"


def mode_result(
    mode: str,
    config: dict,
    dataset: dict,
    environment: dict,
    runs: list[dict],
    status: str = "complete",
) -> dict[str, Any]:
    """Joins the runs of one mode with their summary: means over the runs.

    Args:
        mode: A key of modes.MODES.
        config: The fields of Config and "layer_sizes".
        dataset: Name, source, sizes and hashes of the data.
        environment: What environment.describe_environment returned, and the device.
        runs: The raw values, one dict per process.
        status: "complete", or "interrupted" if there should be more runs.

    Returns:
        The object of the mode's result file.
    """
    epochs = [
        {
            "epoch": epoch + 1,
            "loss": _mean([run["losses"][epoch] for run in runs]),
            "test_accuracy": _mean([run["test_accuracies"][epoch] for run in runs]),
            "time_s": _mean([run["epoch_times_s"][epoch] for run in runs]),
        }
        for epoch in range(config["epochs"])
    ]
    total = math.fsum(epoch["time_s"] for epoch in epochs)
    return {
        "schema_version": SCHEMA_VERSION,
        "mode": mode,
        "status": status,
        "config": config,
        "dataset": dataset,
        "environment": environment,
        "total_training_time_s": total,
        "avg_epoch_time_s": total / len(epochs),
        "final_loss": epochs[-1]["loss"],
        "final_test_accuracy": epochs[-1]["test_accuracy"],
        "peak_memory_mb": _mean([run["memory"]["peak_mb"] for run in runs]),
        "memory_delta_mb": _mean([run["memory"]["delta_mb"] for run in runs]),
        "warmup_time_ms": _mean([run["warmup"]["time_ms"] for run in runs]),
        "epochs": epochs,
        "runs": runs,
    }


def require_writable(folder: Path) -> None:
    """Makes the results folder, and tries a file in it: before the training, not after it.

    Raises:
        ScriptError: If the folder cannot be made or written, or its disk is nearly full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise ScriptError(
            f"cannot write to {folder}: {error.strerror}; try --results-dir"
        ) from error
    if free < FREE_BYTES:
        raise ScriptError(
            f"{folder} has {free / BYTES_PER_MB:.1f} MB left on its disk, and results take up to "
            f"{FREE_BYTES / BYTES_PER_MB:.0f} MB; try --results-dir"
        )


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keeps other benchmarks out of a results folder: files of two runs would be mixed.

    The lock is the operating system's and ends with the process, however that ends. Where it knows
    none for this folder, there is none.

    Raises:
        ScriptError: If another benchmark has the folder.
    """
    with ExitStack() as stack:
        try:
            if fcntl is None:  # Windows locks no folders
                file = stack.enter_context(open(folder / LOCK_FILE, "a+", encoding="utf-8"))
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                handle = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK):
                raise ScriptError(
                    f"another benchmark writes to {folder}: wait for its end, or try --results-dir"
                ) from error
        yield


def write_json(path: Path, result: dict[str, Any]) -> None:
    """Writes a result file whole or not at all; what is not finite becomes null.

    Raises:
        ScriptError: If the file cannot be written.
    """
    text = json.dumps(_finite(result), indent=2, allow_nan=False, ensure_ascii=False)
    write_result(path, (text + "\n").encode("utf-8"))


def write_result(path: Path, content: bytes) -> None:
    """Writes a file among the results, whole or not at all.

    Raises:
        ScriptError: If the file cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise ScriptError(f"cannot write {path}: {error.strerror}; try --results-dir") from error


def read_json(path: Path) -> dict[str, Any]:
    """Reads a result file.

    Raises:
        ScriptError: If it is not there or is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScriptError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise ScriptError(f"{path} is not a result file: {error}") from error


def json_sha256(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    """Returns a hash of a JSON value, the same whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8")).hexdigest()


def read_results(path: Path) -> dict[str, Any]:
    """Reads a benchmark's result file.

    Raises:
        ScriptError: If it is not there, or is not one of this version.
    """
    results = read_json(path)
    if not isinstance(results, dict) or not results.keys() >= BENCHMARK_KEYS:
        raise ScriptError(f"{path} is not a benchmark's result file")
    return _checked(path, results)


def read_version(path: Path) -> dict[str, Any]:
    """Reads a result file of any kind.

    Raises:
        ScriptError: If it is not there, or is not one of this version.
    """
    return _checked(path, read_json(path))


def _checked(path: Path, result: Any) -> dict[str, Any]:  # noqa: ANN401 (any JSON value)
    if not isinstance(result, dict) or "schema_version" not in result:
        raise ScriptError(f"{path} is not a result file")
    if result["schema_version"] != SCHEMA_VERSION:
        raise ScriptError(
            f"{path} has schema version {result['schema_version']}, not {SCHEMA_VERSION}"
        )
    return result


def _mean(values: list[float | None]) -> float | None:
    # null stands in the files for a loss that is not finite.
    return None if None in values else fmean(values)


def _finite(value: Any) -> Any:  # noqa: ANN401 (any JSON value)
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
