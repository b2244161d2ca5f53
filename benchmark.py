"""Trains the same MLP without and with JIT, each run in a process of its own, and compares them."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import compare_folders
import result_files
import stability
from comparison import PROCESSES_FOR_A_CLAIM, compare, comparison_without
from config import MODES, REPOSITORY, add_training_options, load_data, repository_path, whole_number
from environment import hide_paths, load_average, settings_to_clear, steal_seconds
from plots import write_plots
from tables import benchmark_text, control_text
from utils import OptionParser, ScriptError, progress_bar, run_script, say
from workers import Workers

QUICK_EPOCHS, QUICK_REPEATS = 2, 1
DEFAULT_REPEATS = 3
RIGOROUS_REPEATS = PROCESSES_FOR_A_CLAIM


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark by the options of the command line; returns the exit status."""
    options = make_parser().parse_args(argv)
    if options.quick:
        options.epochs = QUICK_EPOCHS
    if options.repeats is None:
        options.repeats = default_repeats(options)
    if options.check:
        return run_script(lambda: stability.check_folder(options.check))
    if options.compare:
        return run_script(lambda: compare_folders.compare_folders(*options.compare))
    return run_script(lambda: run_control(options) if options.control else run_benchmark(options))


def default_repeats(options: argparse.Namespace) -> int:
    """Returns the processes per mode where --repeats does not tell."""
    if options.rigorous or options.control:  # an interval from fewer could miss 1.0 by chance
        return RIGOROUS_REPEATS
    return QUICK_REPEATS if options.quick else DEFAULT_REPEATS


def make_parser() -> OptionParser:
    """Returns the parser of the benchmark's options."""
    parser = OptionParser(
        description="Train the same MLP on MNIST without and with JIT, each run in a process of "
        "its own; print tables and write JSON files and plots."
    )
    add_training_options(parser)
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_EPOCHS} epochs, whatever --epochs says, and {QUICK_REPEATS} process per mode "
        "unless --repeats tells (default: off)",
    )
    length.add_argument(
        "--rigorous",
        action="store_true",
        help=f"{RIGOROUS_REPEATS} processes per mode, unless --repeats tells (default: off)",
    )
    parser.add_argument(
        "--repeats",
        type=lambda text: whole_number(text, 1, 1000),
        metavar="N",
        help=f"processes per mode, in alternating order (default: {DEFAULT_REPEATS})",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--control",
        action="store_true",
        help="compare each mode with itself instead: the interval must hold 1.0, or the machine "
        f"is too noisy; {RIGOROUS_REPEATS} processes a side, unless --repeats tells (default: off)",
    )
    action.add_argument(
        "--check",
        nargs="?",
        const=REPOSITORY / "results",
        type=repository_path,
        metavar="RESULTS",
        help="run nothing; read a results folder and warn of what makes it doubtful (default of "
        "RESULTS: results)",
    )
    action.add_argument(
        "--compare",
        nargs=2,
        type=repository_path,
        metavar=("A", "B"),
        help="run nothing; set two results folders side by side",
    )
    return parser


def run_benchmark(options: argparse.Namespace) -> int:
    """Trains every mode, then compares, writes and prints; returns the exit status.

    Raises:
        ScriptError: If a mode or a gate failed, after what there is was written.
    """
    results, failures = measure({mode: mode for mode in MODES}, options)
    write_results(results, options.results_dir)
    if failures:
        written = [result_files.mode_file(mode) for mode in MODES if results[mode]]
        written = ", ".join([*written, result_files.BENCHMARK_FILE])
        raise ScriptError(
            f"{'; '.join(failures)}; written: {written}; any other file there is of an earlier run"
        )
    say(benchmark_text(results, sys.stdout.encoding))
    say(f"written to {options.results_dir}")
    warnings = results["comparison"]["warnings"]
    if warnings:
        raise ScriptError("no speedup: " + "; ".join(warnings))
    return 0


def run_control(options: argparse.Namespace) -> int:
    """Compares each mode with itself, by the machinery of the benchmark; returns the exit status.

    Raises:
        ScriptError: If a process or a gate failed, or an interval does not hold 1.0.
    """
    controls, faults = {}, []
    for mode in MODES:
        results, failures = measure({"a": mode, "b": mode}, options)
        controls[mode] = results
        result_files.write_json(options.results_dir / result_files.CONTROL_FILE, controls)
        text, passed = control_text(mode, results["comparison"])
        say(text)
        faults += failures or ([] if passed else [text])
    if faults:
        raise ScriptError("the control failed: " + "; ".join(faults))
    say(f"written to {options.results_dir / result_files.CONTROL_FILE}")
    return 0


def measure(
    arms: Mapping[str, str], options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Runs the processes of two arms and compares the first arm with the second.

    Args:
        arms: The mode of each arm, by the arm's name.
        options: The parsed options.

    Returns:
        The object of the benchmark's result file, with the arms' names as keys, and a sentence for
        each arm that failed.
    """
    result_files.require_writable(options.results_dir)
    load_data(options)  # fills the cache before the processes need it, and shows faults early
    load, steal, start = load_average(), steal_seconds(), time.perf_counter()
    with progress_bar(options.epochs * options.repeats * len(arms), "benchmark") as bar:
        workers = Workers(arms, options, bar)
        workers.run()
    cpu_seconds = (time.perf_counter() - start) * (os.cpu_count() or 1)
    results = {arm: workers.result(arm) for arm in arms}
    failures = list(workers.failures.values())
    if failures:
        comparison = comparison_without(map(hide_paths, failures))
    else:
        comparison = compare(*results.values())
    return {
        "schema_version": result_files.SCHEMA_VERSION,
        "status": "failed" if failures else "complete",
        "noise": {
            "load_average_at_start": load,
            "steal_share": None if steal is None else (steal_seconds() - steal) / cpu_seconds,
            "settings_cleared": settings_to_clear(os.environ),
        },
        **results,
        "comparison": comparison,
    }, failures


def write_results(results: dict[str, Any], folder: Path) -> None:
    """Writes the file of each mode that there is, the benchmark's own, and the plots of both."""
    modes = {mode: results[mode] for mode in MODES if results[mode]}
    for mode, result in modes.items():
        result_files.write_json(folder / result_files.mode_file(mode), result)
    result_files.write_json(folder / result_files.BENCHMARK_FILE, results)
    if results["status"] == "complete":
        write_plots(results, folder)


if __name__ == "__main__":
    sys.exit(main())
