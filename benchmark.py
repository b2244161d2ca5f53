"""Trains the same MLP without and with JIT, each run in a process of its own, and compares them."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

import compare_folders
import result_files
import stability
import studies
from analysis import write_report
from benchmark_options import parse_options
from comparison import compare, comparison_without
from config import data_for_processes
from environment import hide_paths, load_average, settings_to_clear, steal_seconds
from modes import MODES, process_weight
from study_tables import study_text
from tables import benchmark_text, control_text
from utils import Interrupted, ScriptError, progress_bar, run_script, say
from workers import Workers


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark by the options of the command line; returns the exit status."""
    options = parse_options(argv)
    if options.check:
        return run_script(lambda: stability.check_folder(options.check))
    if options.compare:
        return run_script(lambda: compare_folders.compare_folders(*options.compare))
    run = run_control if options.control else run_all
    return run_script(lambda: run_prepared(run, options))


def run_prepared(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Calls what runs processes, with the data in place for them; returns the exit status.

    Raises:
        ScriptError: Before any training, if the results folder cannot be written, the data is
            nowhere, or a Python of --with-python cannot be run.
    """
    result_files.require_writable(options.results_dir)
    studies.check_pythons(options)
    with result_files.exclusive(options.results_dir), data_for_processes(options) as told:
        return run(told)


def run_all(options: argparse.Namespace) -> int:
    """Runs what the options ask for: the two modes, studies, or both; returns the exit status.

    Raises:
        ScriptError: If something failed, after all there is was written.
        Interrupted: After Ctrl-C, likewise.
    """
    weight = sum(studies.study_weight(study, options) for study in options.studies)
    weight += main_weight(options) if options.main_run else 0
    faults = []
    with progress_bar(weight, "benchmark", shown=not options.no_progress) as bar:
        if options.main_run:
            faults += run_benchmark(options, bar)
        for study in options.studies:
            faults += run_study(study, options, bar)
    say(f"written to {options.results_dir}")
    if not options.no_report and (options.results_dir / result_files.BENCHMARK_FILE).exists():
        write_report(options.results_dir)
    if faults:
        raise ScriptError("; ".join(faults))
    return 0


def main_weight(options: argparse.Namespace) -> float:
    """Returns about how many seconds the comparison of the two modes takes, for the bar."""
    return options.repeats * sum(process_weight(mode, options.epochs) for mode in MODES)


def run_benchmark(options: argparse.Namespace, bar: tqdm) -> list[str]:
    """Trains both modes, then compares, writes and prints.

    Returns:
        A sentence for each mode or gate that failed.

    Raises:
        Interrupted: After Ctrl-C, when what there is was written.
    """
    results, failures = measure({mode: mode for mode in MODES}, options, bar)
    written = write_results(results, options.results_dir)
    if results["status"] == "interrupted":
        raise Interrupted(f"interrupted; written: {', '.join(written)}")
    if failures:
        written = f"written: {', '.join(written)}; any other file there is of an earlier run"
        return [*failures, written]
    say(benchmark_text(results, sys.stdout.encoding))
    warnings = results["comparison"]["warnings"]
    faults = ["no speedup: " + "; ".join(warnings)] if warnings else []
    return faults + draw(None, results, options.results_dir)


def run_study(study: str, options: argparse.Namespace, bar: tqdm) -> list[str]:
    """Runs one study, writes its files and prints its tables; returns a sentence for each failure.

    Raises:
        Interrupted: After Ctrl-C, when what there is was written.
    """
    run = studies.StudyRun(study, options, bar)
    result = run.run()
    if result:
        studies.write_study(result, options.results_dir)
    if run.interrupted:
        raise Interrupted(f"interrupted in the study {study}; finished processes are written")
    if result and not run.failures:
        say(study_text(study, result, sys.stdout.encoding))
        run.failures += draw(study, result, options.results_dir)
    return run.failures


def draw(study: str | None, result: dict[str, Any], folder: Path) -> list[str]:
    """Draws the plots of a study, or for None those of both modes.

    Returns:
        A sentence, if that failed: whatever is wrong with matplotlib here costs nothing else.
    """
    try:
        # Here, as an unusable backend or cache makes matplotlib's import fail.
        import plots
        import study_plots

        if study is None:
            plots.write_plots(result, folder)
        else:
            study_plots.write_study_plots(study, result, folder)
    except Exception as error:
        return [f"no plots ({error}); the JSON files are whole, and plots.py draws them again"]
    return []


def run_control(options: argparse.Namespace) -> int:
    """Compares each mode with itself, by the machinery of the benchmark; returns the exit status.

    Raises:
        ScriptError: If a process or a gate failed, or an interval does not hold 1.0.
        Interrupted: After Ctrl-C, when what there is was written.
    """
    controls, faults = {}, []
    path = options.results_dir / result_files.CONTROL_FILE
    weight = 2 * main_weight(options)
    with progress_bar(weight, "control", shown=not options.no_progress) as bar:
        for mode in MODES:
            results, failures = measure({"a": mode, "b": mode}, options, bar)
            controls[mode] = results
            result_files.write_json(path, controls)
            if results["status"] == "interrupted":
                raise Interrupted(f"interrupted; written: {path.name}")
            text, passed = control_text(mode, results["comparison"])
            say(text)
            faults += failures or ([] if passed else [text])
    if faults:
        raise ScriptError("the control failed: " + "; ".join(faults))
    say(f"written to {path}")
    return 0


def measure(
    arms: Mapping[str, str], options: argparse.Namespace, bar: tqdm
) -> tuple[dict[str, Any], list[str]]:
    """Runs the processes of two arms and compares the first arm with the second.

    Args:
        arms: The mode of each arm, by the arm's name.
        options: The parsed options.
        bar: Is moved on with the epochs.

    Returns:
        The object of the benchmark's result file, with the arms' names as keys, and a sentence for
        each arm that failed.
    """
    load, steal, start = load_average(), steal_seconds(), time.perf_counter()
    workers = Workers(arms, options, bar)
    workers.run()
    cpu_seconds = (time.perf_counter() - start) * (os.cpu_count() or 1)
    results = {arm: workers.result(arm) for arm in arms}
    failures = list(workers.failures.values())
    if workers.interrupted:
        status, comparison = "interrupted", comparison_without(["the run was interrupted"])
    elif failures:
        status, comparison = "failed", comparison_without(map(hide_paths, failures))
    else:
        status, comparison = "complete", compare(*results.values())
    return {
        "schema_version": result_files.SCHEMA_VERSION,
        "status": status,
        "noise": {
            "load_average_at_start": load,
            "steal_share": None if steal is None else (steal_seconds() - steal) / cpu_seconds,
            "settings_cleared": settings_to_clear(os.environ),
        },
        **results,
        "comparison": comparison,
    }, failures


def write_results(results: dict[str, Any], folder: Path) -> list[str]:
    """Writes the file of each mode that there is, and the benchmark's own.

    Returns:
        The names of the JSON files.
    """
    files = {result_files.mode_file(mode): results[mode] for mode in MODES if results[mode]}
    files[result_files.BENCHMARK_FILE] = results
    for name, result in files.items():
        result_files.write_json(folder / name, result)
    return list(files)


if __name__ == "__main__":
    sys.exit(main())
