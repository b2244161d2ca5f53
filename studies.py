"""The studies of a --full run: their processes, and their result files. Reads no figure."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

import result_files
from config import REPOSITORY
from environment import hide_paths
from modes import LADDER, process_weight
from utils import OptionError, say
from workers import WorkerError, Workers, alternating_order, failure_reason, relay, script_options

LADDER_EPOCHS, LADDER_REPEATS = 1, 6
LADDER_EVERY = {mode: row["every"] for mode, row in LADDER.items() if "every" in row}
HLO_FILE = Path("hlo", "train_step.txt")


class Study(NamedTuple):
    """A study whose parts each run in processes of their own, by study_script.py."""

    what: str  # for --help
    parts: Sequence[str]  # what the processes of one turn do
    repeats: int  # turns; in the short form each part runs once
    weight: float  # about the seconds of a process, for the progress bar alone
    short_weight: float


STUDIES = {
    "ladder": Study(
        "one change at a time, from NumPy to a whole epoch as one program", list(LADDER), 6, 0, 0
    ),
    "range": Study("time per step over batch sizes and widths", ["all"], 3, 40, 12),
    "bound": Study(
        "the modes against what the machine could do", ["modes", "modes", "tries"], 3, 30, 10
    ),
    "inside": Study("what the running program does in a step", list(LADDER), 1, 6, 6),
    "drift": Study(
        "whether the eager step with jax.nn.relu gets slower, and why",
        ["maximum", "nn_relu", "nn_relu, cleared"],
        1,
        38,
        7,
    ),
}


class StudyRun:
    """Runs the processes of one study and gathers their raw values."""

    def __init__(self, study: str, options: argparse.Namespace, bar: tqdm) -> None:
        """Starts nothing yet; the bar is moved by study_weight in all."""
        self._study = study
        self._options = options
        self._bar = bar
        self.failures: list[str] = []
        self.interrupted = False

    def run(self) -> dict[str, Any] | None:
        """Runs everything and returns the object of the study's result file; None for nothing.

        Its status is "complete", "failed" or, after Ctrl-C, "interrupted".
        """
        raw = self._run_ladder() if self._study == "ladder" else self._run_processes()
        if not any(raw.values()):
            return None
        status = "interrupted" if self.interrupted else "failed" if self.failures else "complete"
        return {
            "schema_version": result_files.SCHEMA_VERSION,
            "study": self._study,
            "status": status,
            "short": self._options.quick,
            "failures": [hide_paths(failure) for failure in self.failures],
            **raw,
        }

    def _run_ladder(self) -> dict[str, Any]:
        arms = {mode: mode for mode in ladder_modes(self._options)}
        options = ladder_options(self._options)
        workers = Workers(arms, options, self._bar, LADDER_EVERY)
        workers.run()
        self.failures, self.interrupted = list(workers.failures.values()), workers.interrupted
        return {"modes": {mode: result for mode in arms if (result := workers.result(mode))}}

    def _run_processes(self) -> dict[str, Any]:
        study = STUDIES[self._study]
        order = [
            (part, python)
            for python in _pythons(self._study, self._options)
            for part in _parts(study, self._options)
        ]
        processes = []
        try:
            for position, (part, python) in enumerate(order, start=1):
                say(f"[{position}/{len(order)}] {self._study}: {part}")
                try:
                    processes.append({"order": position - 1, **self._run_process(part, python)})
                except WorkerError as failure:
                    self.failures.append(str(failure))
        except KeyboardInterrupt:
            self.interrupted = True
        return {"processes": processes}

    def _run_process(self, part: str, python: str) -> dict[str, Any]:
        study, options = STUDIES[self._study], self._options
        weight = study.short_weight if options.quick else study.weight
        with tempfile.TemporaryDirectory() as folder:
            command = [python, str(REPOSITORY / "study_script.py"), self._study, part]
            command += [*script_options(options), "--results-dir", folder]
            command += ["--short"] * options.quick
            if options.trace and self._study == "inside":
                command += ["--trace-dir", str(options.trace / part)]
            status, lines = relay(command, lambda share: self._bar.update(share * weight))
            if status != 0:
                name = f"study_script.py {self._study} {part}"
                raise WorkerError(f"{name} {failure_reason(status, lines)}")
            return result_files.read_json(Path(folder) / result_files.STUDY_PROCESS_FILE)


def study_weight(study: str, options: argparse.Namespace) -> float:
    """Returns about how many seconds a study takes, for the progress bar."""
    if study == "ladder":
        ladder = ladder_options(options)
        return sum(
            -(-ladder.repeats // LADDER_EVERY.get(mode, 1)) * process_weight(mode, ladder.epochs)
            for mode in ladder_modes(options)
        )
    row = STUDIES[study]
    n_processes = len(_parts(row, options)) * len(_pythons(study, options))
    return n_processes * (row.short_weight if options.quick else row.weight)


def ladder_modes(options: argparse.Namespace) -> list[str]:
    """Returns the ladder's modes."""
    return [mode for mode in LADDER if not _left_out(mode, options)]


def ladder_options(options: argparse.Namespace) -> argparse.Namespace:
    """Returns the options of the ladder's processes: one epoch, as some rungs are slow."""
    changes = {"epochs": LADDER_EPOCHS, "repeats": 1 if options.quick else LADDER_REPEATS}
    return argparse.Namespace(**{**vars(options), **changes})


def write_study(result: dict[str, Any], folder: Path) -> list[Path]:
    """Writes a study's result file and, of the view inside, the HLO; returns their paths.

    Raises:
        ScriptError: If a file cannot be written.
    """
    paths = []
    for process in result.get("processes", []):
        hlo = process.pop("hlo", None)
        if hlo:
            environment = process["environment"]
            what = f"the jitted train_step, optimised by XLA for the {environment['device']}"
            text = f"// {what}, batch {process['config']['batch_size']}; JAX {environment['jax']}\n"
            paths.append(folder / HLO_FILE)
            result_files.write_result(paths[-1], (text + hlo.strip() + "\n").encode("utf-8"))
    paths.append(folder / result_files.study_file(result["study"]))
    result_files.write_json(paths[-1], result)
    return paths


def _parts(study: Study, options: argparse.Namespace) -> list[str]:
    """Returns the parts of a study in the order of their processes."""
    if options.quick:
        return [part for part in dict.fromkeys(study.parts) if not _left_out(part, options)]
    return alternating_order(study.parts, study.repeats)


def _left_out(part: str, options: argparse.Namespace) -> bool:
    """Returns whether a part is a slow rung of the ladder, which the short form leaves out."""
    return options.quick and part in LADDER_EVERY


def _pythons(study: str, options: argparse.Namespace) -> list[str]:
    """Returns the interpreters of a study: this one, and for the drift those of --with-python."""
    return [sys.executable, *(options.with_python if study == "drift" else [])]


def check_pythons(options: argparse.Namespace) -> None:
    """Refuses an interpreter of --with-python that cannot be run.

    Raises:
        OptionError: If there is one.
    """
    for python in options.with_python:
        try:
            status, lines = relay([python, "-c", "import jax, psutil, tabulate, tqdm"], print)
        except OSError as error:
            raise OptionError(f"--with-python {python}: {error.strerror}") from error
        if status != 0:
            raise OptionError(f"--with-python {python}: {failure_reason(status, lines)}")
