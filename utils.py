"""Timing, memory tracking and messages. Never imports JAX."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import psutil
from tqdm import tqdm

try:
    import resource
except ImportError:  # Windows has no resource module; psutil tells the peak there
    resource = None

BYTES_PER_MB = 1_000_000

# What long work calls with how much of it is done, of how much, and what that was.
Tell = Callable[[int, int, str], None]


class ScriptError(Exception):
    """A fault that the user can act on; its text is the whole message."""

    exit_status = 1


class OptionError(ScriptError):
    """An option asks for what is not there."""

    exit_status = 2


class Interrupted(ScriptError):
    """Ctrl-C or SIGTERM ended the script after what there was had been written."""

    exit_status = 130


class OptionParser(argparse.ArgumentParser):
    """An ArgumentParser that reports a bad option in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        """Ends the script with exit status 2."""
        self.exit(OptionError.exit_status, f"error: {message}; see {self.prog} --help\n")


class Timer:
    """Measures a with-block: `seconds` by the monotonic clock, `cpu_seconds` over all threads."""

    def __enter__(self) -> Timer:
        self._cpu_start = time.process_time()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.cpu_seconds = time.process_time() - self._cpu_start


def rss_mb() -> float:
    """Returns the resident set size of this process in MB (10^6 bytes), from psutil."""
    return psutil.Process().memory_info().rss / BYTES_PER_MB


def peak_rss_mb() -> tuple[float, str]:
    """Returns the highest resident set size so far and the name of its source.

    The operating system keeps this mark, so no peak between two samples is missed, and no sampling
    thread disturbs the timed loop. On Linux it is VmHWM, which belongs to this process alone, not
    ru_maxrss, which a child inherits from its parent.

    Returns:
        MB (10^6 bytes), and "VmHWM", "PeakWorkingSetSize" or "ru_maxrss".
    """
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / BYTES_PER_MB, "VmHWM"
    except OSError:
        pass  # not Linux
    if resource is None:
        return psutil.Process().memory_info().peak_wset / BYTES_PER_MB, "PeakWorkingSetSize"
    unit = 1 if sys.platform == "darwin" else 1024  # bytes on macOS, KiB elsewhere
    maxrss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return maxrss * unit / BYTES_PER_MB, "ru_maxrss"


def reset_peak_rss() -> bool:
    """Lowers the high-water mark to the present RSS; False where that is not possible.

    Linux does this when 5 is written to /proc/self/clear_refs (see proc_pid_clear_refs(5)).
    """
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as clear_refs:
            clear_refs.write("5")
    except OSError:
        return False
    return True


class MemoryTracker:
    """Records RSS before and after each stage of a process, and the peak within it."""

    def __init__(self) -> None:
        """Starts with the peak that the process has reached already (its imports)."""
        peak, self._source = peak_rss_mb()
        self._peaks = [peak]
        self._resettable = True
        self._stages: list[dict[str, Any]] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Records the with-block as one stage."""
        self._resettable = reset_peak_rss() and self._resettable
        before = rss_mb()
        yield
        after = rss_mb()
        peak, _ = peak_rss_mb()
        self._peaks.append(peak)
        self._stages.append(
            {"stage": name, "rss_before_mb": before, "rss_after_mb": after, "peak_mb": peak}
        )

    def summary(self, delta_of: str) -> dict[str, Any]:
        """Returns the stages, the peak, and by how much the stage delta_of rose above its start.

        Where the system's mark cannot be reset, a stage's peak is that of the process so far, and
        "peak_per_stage" is false.
        """
        stage = next(s for s in self._stages if s["stage"] == delta_of)
        return {
            "peak_source": self._source,
            "peak_per_stage": self._resettable,
            "peak_mb": max(self._peaks),
            "delta_mb": max(0.0, stage["peak_mb"] - stage["rss_before_mb"]),
            "stages": self._stages,
        }


def write_whole(path: Path, content: Any) -> None:  # noqa: ANN401 (any buffer of bytes)
    """Writes a file under a temporary name in its folder and renames it: whole or not at all.

    So other processes see the old file or the new one, and several may write the same at once.

    Raises:
        OSError: If the folder or the file cannot be written; nothing is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with open(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)  # mkstemp gives 0600, but users may share the folder
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):
            os.unlink(temporary)
        raise


def progress_bar(total: float, description: str = "", *, shown: bool = True) -> tqdm:
    """Returns a bar on stderr, with an estimate; silent where that is no terminal.

    The caller moves it between measurements, never within a timed region.

    Args:
        total: The work, in any unit: epochs, or what `update` is called with.
        description: What is done.
        shown: False for no bar on a terminal either.
    """
    tqdm.monitor_interval = 0  # no thread that redraws the bar during an epoch
    layout = "{desc} {percentage:3.0f}%|{bar}| {elapsed}, {remaining} left"
    disable = None if shown else True  # None: where stderr is no terminal
    return tqdm(total=total, desc=description, bar_format=layout, leave=False, disable=disable)


def say(line: str = "") -> None:
    """Prints a line on stdout at once, above a progress bar if there is one.

    If who read it has gone (`| head`), the work goes on in silence: its files are still wanted.
    """
    try:
        tqdm.write(line)
        sys.stdout.flush()
    except BrokenPipeError:
        # Not closed: Python itself flushes it at the end.
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def warn(text: str) -> None:
    """Prints a warning on stderr, above a progress bar if there is one."""
    tqdm.write(f"warning: {text}", file=sys.stderr)


def run_script(main: Callable[[], int]) -> int:
    """Runs a script's main; a ScriptError, Ctrl-C or SIGTERM becomes one line on stderr.

    Returns:
        The exit status: main's own, the ScriptError's (1, 2 or 130), or 130 if it was interrupted.
    """
    # As Ctrl-C does: what was finished is written, and no process stays behind.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a path may have letters that the console has not
            stream.reconfigure(errors="backslashreplace")
    try:
        return main()
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
