"""Writes the README's result blocks again from the committed result files, and nothing else."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from config import REPOSITORY
from modes import MODES
from result_files import BENCHMARK_FILE, read_version, study_file, write_result
from stability import doubt_lines
from study_tables import markdown, study_blocks
from tables import (
    comparison_lines,
    describe_run,
    detail_table,
    epoch_table,
    noise_lines,
    summary_table,
    verdict,
)
from utils import OptionParser, ScriptError, run_script, say

README = REPOSITORY / "README.md"
Reader = Callable[[str], "dict[str, Any]"]
BLOCK = "<!-- {0}: written by update_readme.py -->\n{1}\n<!-- end of {0} -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes README.md again; returns the exit status."""
    parser = OptionParser(description="Write README.md's result blocks again from results/.")
    parser.parse_args(argv)
    folder = REPOSITORY / "results"
    return run_script(lambda: update(README, lambda name: read_version(folder / name)))


def update(path: Path, read: Reader) -> int:
    """Replaces the blocks of a README, whole or not at all; returns the exit status.

    Args:
        path: The README.
        read: Returns the object of a result file by its name.

    Raises:
        ScriptError: If a result file or a block's markers are not there, or the README cannot be
            written.
    """
    write_result(path, with_blocks(path.read_text(encoding="utf-8"), read).encode("utf-8"))
    say(f"written: {path}")
    return 0


def with_blocks(readme: str, read: Reader) -> str:
    """Returns a README's text with its result blocks as these results have them.

    Raises:
        ScriptError: If a block's markers are not there exactly once.
    """
    for name, (file, make_text) in BLOCKS.items():
        pattern = re.escape(BLOCK.format(name, "\0")).replace(re.escape("\0"), "(.*?)")
        found = re.findall(pattern, readme, re.DOTALL)
        if len(found) != 1:
            raise ScriptError(f"README.md has {len(found)} blocks '{name}' instead of one")
        block = BLOCK.format(name, f"\n{make_text(read(file))}\n")
        readme = re.sub(pattern, lambda _, block=block: block, readme, flags=re.DOTALL)
    return readme


def answer(results: dict[str, Any]) -> str:
    """Returns the verdict with configuration and machine, as a quotation."""
    configuration, machine = describe_run(results).splitlines()
    return f"> **{verdict(results['comparison'])}**\n>\n> {configuration}<br>\n> {machine}"


def summary(results: dict[str, Any]) -> str:
    """Returns the side-by-side table."""
    return summary_table(results, "pipe")


def details(results: dict[str, Any]) -> str:
    """Returns the second table, and the sentences that go with it and with the machine."""
    comparison = results["comparison"]
    lines = [*comparison_lines(comparison), *noise_lines(results), *doubt_lines(results)]
    return "\n".join([detail_table(results, "pipe"), "", *(f"- {line}" for line in lines)])


def epochs(results: dict[str, Any]) -> str:
    """Returns the epoch table of every mode."""
    return "\n\n".join(
        f"**{names['label']}**\n\n{epoch_table(results[mode], 'pipe')}"
        for mode, names in MODES.items()
    )


def study(name: str) -> Callable[[dict[str, Any]], str]:
    """Returns what makes a study's block: its tables and sentences."""
    return lambda result: markdown(study_blocks(name, result))


BLOCKS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "answer": (BENCHMARK_FILE, answer),
    "summary": (BENCHMARK_FILE, summary),
    "details": (BENCHMARK_FILE, details),
    "epochs": (BENCHMARK_FILE, epochs),
    "ladder": (study_file("ladder"), study("ladder")),
}

if __name__ == "__main__":
    sys.exit(main())
