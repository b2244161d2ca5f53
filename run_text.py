"""What a training script prints: a line an epoch, and its summary.

Apart from tables.py, whose imports (scipy.stats) would add 43 MB to what the scripts measure.
"""

from __future__ import annotations

import re
from typing import Any

from tabulate import tabulate

# What stands for a figure that the result files do not have: a loss that is not finite, a speedup
# that was not computed.
ABSENT = "n/a"
# How a line begins that tells of progress: benchmark.py moves its bar by these lines.
PROGRESS_LINE = re.compile(r"(?:epoch|measured) +(\d+)/(\d+) ")


def number(value: float | None, pattern: str) -> str:
    """Formats a figure by a str.format pattern such as "{:.2f} s"; ABSENT if it is None."""
    return ABSENT if value is None else pattern.format(value)


def epoch_line(epoch: int, n_epochs: int, loss: float, test_accuracy: float, time_s: float) -> str:
    """Returns the line that a training script prints after each epoch."""
    return (
        f"epoch {epoch:{len(str(n_epochs))}d}/{n_epochs}  loss {loss:.4f}  "
        f"test accuracy {test_accuracy:.2%}  time {time_s:.3f} s"
    )


def study_line(done: int, total: int, text: str) -> str:
    """Returns the line that a study's process prints after each part of its work."""
    return f"measured {done:{len(str(total))}d}/{total}  {text}"


def summary_text(result: dict[str, Any]) -> str:
    """Returns the summary that a training script prints at its end.

    Args:
        result: A mode's result, as result_files.mode_result returns it.
    """
    return tabulate([(name, text(result)) for name, text, _ in SUMMARY_ROWS], tablefmt="plain")


# The rows of the side-by-side table: name, figure of one mode, and the last column.
SUMMARY_ROWS = (
    ("Total Training Time", lambda r: number(r["total_training_time_s"], "{:.2f} s"), "speedup"),
    ("Avg. Time per Epoch", lambda r: number(r["avg_epoch_time_s"], "{:.3f} s"), "speedup"),
    ("Final Loss", lambda r: number(r["final_loss"], "{:.4f}"), "\N{EM DASH}"),
    ("Final Test Accuracy", lambda r: number(r["final_test_accuracy"], "{:.2%}"), "\N{EM DASH}"),
    ("Peak Memory (MB)", lambda r: number(r["peak_memory_mb"], "{:.1f} MB"), "\N{EM DASH}"),
    ("Memory Delta (MB)", lambda r: number(r["memory_delta_mb"], "{:.1f} MB"), "\N{EM DASH}"),
    ("Warm-up Time", lambda r: number(r["warmup_time_ms"], "{:.1f} ms"), "one-time"),
)
