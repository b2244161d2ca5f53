"""The benchmark's processes: one for each training run, the real scripts, in alternating order."""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import result_files
from config import REPOSITORY, config_from_options
from environment import worker_variables
from modes import LADDER, process_weight
from run_text import PROGRESS_LINE
from utils import OptionError, ScriptError, say

# The slowest line, of an epoch under jax.disable_jit, takes half a minute on a slow machine.
SILENCE_S = 900
LINES_KEPT = 50  # of what a process printed last, to tell why it failed


class WorkerError(ScriptError):
    """A training process failed; its text says which script and why."""


class Workers:
    """Runs the training processes of several arms and gathers their results.

    An arm is one side of a comparison: a mode, or in a control the same mode twice.
    """

    def __init__(
        self,
        arms: Mapping[str, str],
        options: argparse.Namespace,
        bar: tqdm,
        every: Mapping[str, int] | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            arms: The mode of each arm, by the arm's name.
            options: The parsed options of the benchmark, which its processes get, too.
            bar: Is moved by modes.process_weight in all for each process.
            every: Of arms that run in some blocks alone, in which: 3 for the first, fourth, ...
        """
        self._arms = arms
        self._options = options
        self._bar = bar
        self._every = dict(every or {})
        self._results: dict[str, list[dict[str, Any]]] = {arm: [] for arm in arms}
        self._first_step: list[np.ndarray] | None = None
        self.failures: dict[str, str] = {}
        self.interrupted = False

    def run(self) -> None:
        """Runs the processes of all arms, in blocks of one each; the order alternates.

        After a failure, only what has no result yet is still tried. After Ctrl-C `interrupted` is
        true, and the results of the processes that had ended are kept.

        Raises:
            OptionError: If a script refuses an option.
        """
        try:
            self._run_all()
        except KeyboardInterrupt:
            self.interrupted = True

    def _run_all(self) -> None:
        order = [
            (position // len(self._arms), arm)
            for position, arm in enumerate(
                alternating_order(list(self._arms), self._options.repeats)
            )
        ]
        order = [(block, arm) for block, arm in order if block % self._every.get(arm, 1) == 0]
        for position, (block, arm) in enumerate(order):
            if arm in self.failures or (self.failures and self._results[arm]):
                continue
            say(f"[{position + 1}/{len(order)}] {LADDER[self._arms[arm]]['label']}")
            try:
                result = self._run_one(arm)
            except WorkerError as failure:
                self.failures[arm] = str(failure)
                continue
            result["runs"][0] = {"order": position, "block": block, **result["runs"][0]}
            self._results[arm].append(result)

    def result(self, arm: str) -> dict[str, Any] | None:
        """Returns an arm's result over all its processes; None if not one of them ended well.

        Its status is "interrupted" if there are fewer than were asked for.
        """
        results = self._results[arm]
        if not results:
            return None
        first = results[0]
        return result_files.mode_result(
            first["mode"],
            first["config"],
            first["dataset"],
            first["environment"],
            [result["runs"][0] for result in results],
            "complete" if len(results) == self.processes(arm) else "interrupted",
        )

    def processes(self, arm: str) -> int:
        """Returns how many processes an arm has if nothing fails."""
        return -(-self._options.repeats // self._every.get(arm, 1))

    def _run_one(self, arm: str) -> dict[str, Any]:
        mode = self._arms[arm]
        script, *words = LADDER[mode]["script"].split()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, str(REPOSITORY / script), *words, "--worker"]
            command += [*script_options(self._options), "--results-dir", folder]
            weight = process_weight(mode, self._options.epochs)
            status, lines = relay(command, lambda share: self._bar.update(share * weight))
            if status != 0:
                reason = f"{LADDER[mode]['script']} {failure_reason(status, lines)}"
                # The first process tells whether an option is bad; a later one fails on its own.
                first = not any(self._results.values())
                refused = first and lines and status == OptionError.exit_status
                raise OptionError(lines[-1]) if refused else WorkerError(reason)
            result = result_files.read_json(Path(folder) / result_files.mode_file(mode))
            with np.load(Path(folder) / result_files.FIRST_STEP_FILE) as file:
                params = [file[name] for name in file.files]
        if self._first_step is None:
            self._first_step = params
        result["runs"][0]["first_step_difference"] = largest_difference(params, self._first_step)
        return result


def largest_difference(params: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> float:
    """Returns the largest absolute difference of two lists of arrays; NaN if their shapes differ.

    NaN, too, if a value is NaN.
    """
    if [array.shape for array in params] != [array.shape for array in others]:
        return float("nan")
    return float(np.max([np.abs(a - b).max() for a, b in zip(params, others)]))


def alternating_order(arms: Sequence[str], repeats: int) -> list[str]:
    """Returns the order of the processes: ABBA..., so that a slow drift of the machine cancels."""
    return [arm for block in range(repeats) for arm in (arms if block % 2 == 0 else arms[::-1])]


def relay(
    command: Sequence[str], advance: Callable[[float], object], silence_s: float = SILENCE_S
) -> tuple[int, list[str]]:
    """Runs a command and repeats its lines at once.

    Args:
        command: The command's words.
        advance: Is called, after each line that tells of progress, with the share that was done.
        silence_s: A process that prints no line for so many seconds hangs, and is ended.

    Returns:
        The exit status and the last lines.

    Raises:
        WorkerError: If the process was ended because it hung.
    """
    lines: deque[str] = deque(maxlen=LINES_KEPT)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        env={**worker_variables(os.environ), "PYTHONIOENCODING": "utf-8"},
    ) as process:
        try:
            for line in _read_lines(process, silence_s):
                lines.append(line.strip().replace("error: ", "", 1))
                say(line.rstrip())
                progress = PROGRESS_LINE.match(line)
                if progress:
                    advance(1 / int(progress.group(2)))
        except BaseException:
            process.kill()  # leave no worker behind, whatever ended this script
            raise
    return process.returncode, list(lines)


def _read_lines(process: subprocess.Popen, silence_s: float) -> Iterator[str]:
    while True:
        start = time.monotonic()
        watchdog = threading.Timer(silence_s, process.kill)
        watchdog.daemon = True  # an interrupt right here must not leave it to keep the script alive
        try:
            watchdog.start()
            line = process.stdout.readline()
        finally:
            watchdog.cancel()
        if not line and time.monotonic() - start >= silence_s:
            raise WorkerError(
                f"{Path(process.args[1]).name} printed nothing for {silence_s:g} s: it was ended"
            )
        if not line:
            return
        yield line


def failure_reason(status: int, lines: Sequence[str]) -> str:
    """Returns how a process ended and why, from its last lines.

    Of a traceback, that is the line with the exception: JAX adds lines after it.
    """
    if status < 0:
        return f"was ended by signal {-status}"
    exceptions = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    reasons = exceptions or [line for line in lines if line]
    return f"ended with exit status {status}: {(reasons or ['it printed nothing'])[-1]}"


def script_options(options: argparse.Namespace) -> list[str]:
    """Returns the options of a training script that say what this benchmark was told."""
    words = []
    for name, value in dataclasses.asdict(config_from_options(options)).items():
        words += ["--" + name.replace("_", "-"), str(value)]
    if options.data_dir:
        words += ["--data-dir", str(options.data_dir)]
    return words + ["--offline"] * options.offline
