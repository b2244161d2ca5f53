"""Trains the same MLP without and with JIT, each in a process of its own, and compares them."""

from __future__ import annotations

import argparse
import dataclasses
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

import result_files
from comparison import compare, comparison_without
from config import MODES, REPOSITORY, add_training_options, config_from_options, load_data
from plots import write_plots
from tables import EPOCH_LINE_START, benchmark_text
from utils import OptionError, OptionParser, ScriptError, progress_bar, run_script, say

QUICK_EPOCHS = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark by the options of the command line; returns the exit status."""
    parser = OptionParser(
        description="Train the same MLP on MNIST without and with JIT, each in a process of its "
        "own; print tables and write JSON files and plots."
    )
    add_training_options(parser)
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_EPOCHS} epochs, whatever --epochs says (default: off)",
    )
    options = parser.parse_args(argv)
    if options.quick:
        options.epochs = QUICK_EPOCHS
    return run_script(lambda: run_benchmark(options))


def run_benchmark(options: argparse.Namespace) -> int:
    """Trains every mode, then compares, writes and prints; returns the exit status.

    Raises:
        ScriptError: If a mode or a gate failed, after what there is was written.
    """
    result_files.require_writable(options.results_dir)
    load_data(options)  # fills the cache before the modes need it, and shows faults early
    modes: dict[str, Any] = {}
    failures = []
    with progress_bar(options.epochs * len(MODES), "benchmark") as bar:
        for mode in MODES:
            modes[mode], failure = train_in_process(mode, options, bar)
            failures += [failure] if failure else []

    comparison = comparison_without(failures) if failures else compare(**modes)
    results = {
        "schema_version": result_files.SCHEMA_VERSION,
        "status": "failed" if failures else "complete",
        **modes,
        "comparison": comparison,
    }
    write_results(results, options.results_dir)
    if failures:
        written = [result_files.mode_file(mode) for mode in modes if modes[mode]]
        raise ScriptError("; ".join(failures) + f"; written: {', '.join(written) or 'no mode'}")
    say(benchmark_text(results, sys.stdout.encoding))
    say(f"written to {options.results_dir}")
    if comparison["warnings"]:
        raise ScriptError("no speedup: " + "; ".join(comparison["warnings"]))
    return 0


def train_in_process(
    mode: str, options: argparse.Namespace, bar: tqdm
) -> tuple[dict[str, Any] | None, str | None]:
    """Runs a mode's script, repeats what it prints, and moves the bar with each epoch.

    Returns:
        The mode's result and None, or None and why there is none.
    """
    script = MODES[mode]["script"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(REPOSITORY / script), "--no-summary"]
        command += script_options(options) + ["--results-dir", folder]
        status, last_line = relay(command, bar)
        if status == 0:
            return result_files.read_json(Path(folder) / result_files.mode_file(mode)), None
    if status == OptionError.exit_status:
        raise OptionError(last_line)
    return None, f"{script} ended with exit status {status}: {last_line}"


def relay(command: Sequence[str], bar: tqdm) -> tuple[int, str]:
    """Runs a command, repeats its lines at once and moves the bar with each epoch line.

    Returns:
        The exit status and the last line, which tells why if the command failed.
    """
    last_line = "it printed nothing"
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    ) as process:
        try:
            for line in process.stdout:
                last_line = line.strip().replace("error: ", "", 1) or last_line
                say(line.rstrip())
                bar.update(line.startswith(EPOCH_LINE_START))
        except BaseException:
            process.kill()  # leave no worker behind, whatever ended this script
            raise
    return process.returncode, last_line


def script_options(options: argparse.Namespace) -> list[str]:
    """Returns the options of a training script that say what this benchmark was told."""
    words = []
    for name, value in dataclasses.asdict(config_from_options(options)).items():
        words += ["--" + name.replace("_", "-"), str(value)]
    if options.data_dir:
        words += ["--data-dir", str(options.data_dir)]
    return words + ["--offline"] * options.offline


def write_results(results: dict[str, Any], folder: Path) -> None:
    """Writes the file of each mode that there is, the benchmark's own, and the plots of both."""
    modes = {mode: results[mode] for mode in MODES if results[mode]}
    for mode, result in modes.items():
        result_files.write_json(folder / result_files.mode_file(mode), result)
    result_files.write_json(folder / result_files.BENCHMARK_FILE, results)
    if len(modes) == len(MODES):
        write_plots(results, folder)


if __name__ == "__main__":
    sys.exit(main())
