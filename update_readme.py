"""Writes the README's result blocks again from the committed result files, and nothing else."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from config import MODES, REPOSITORY
from result_files import BENCHMARK_FILE, read_results, write_result
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
BLOCK = "<!-- {0}: written by update_readme.py -->\n{1}\n<!-- end of {0} -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes README.md again; returns the exit status."""
    parser = OptionParser(
        description=f"Write README.md's result blocks again from results/{BENCHMARK_FILE}."
    )
    parser.parse_args(argv)
    return run_script(lambda: update(README, read_results(REPOSITORY / "results" / BENCHMARK_FILE)))


def update(path: Path, results: dict[str, Any]) -> int:
    """Replaces the blocks of a README, whole or not at all; returns the exit status.

    Raises:
        ScriptError: If a block's markers are not there, or the file cannot be written.
    """
    write_result(path, with_blocks(path.read_text(encoding="utf-8"), results).encode("utf-8"))
    say(f"written: {path}")
    return 0


def with_blocks(readme: str, results: dict[str, Any]) -> str:
    """Returns a README's text with its result blocks as these results have them.

    Raises:
        ScriptError: If a block's markers are not there exactly once.
    """
    for name, make_text in BLOCKS.items():
        pattern = re.escape(BLOCK.format(name, "\0")).replace(re.escape("\0"), "(.*?)")
        found = re.findall(pattern, readme, re.DOTALL)
        if len(found) != 1:
            raise ScriptError(f"README.md has {len(found)} blocks '{name}' instead of one")
        block = BLOCK.format(name, f"\n{make_text(results)}\n")
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
    lines = comparison_lines(results["comparison"]) + noise_lines(results)
    return "\n".join([detail_table(results, "pipe"), "", *(f"- {line}" for line in lines)])


def epochs(results: dict[str, Any]) -> str:
    """Returns the epoch table of every mode."""
    return "\n\n".join(
        f"**{names['label']}**\n\n{epoch_table(results[mode], 'pipe')}"
        for mode, names in MODES.items()
    )


BLOCKS = {"answer": answer, "summary": summary, "details": details, "epochs": epochs}

if __name__ == "__main__":
    sys.exit(main())
