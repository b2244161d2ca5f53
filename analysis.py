"""The report: written from the result files and from nothing else, after each run or by hand."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from config import REPOSITORY, repository_path
from findings import finding_sections, original_section
from modes import MODES
from report_sections import SECTIONS, Inputs, study_section
from result_files import BENCHMARK_FILE, read_results, read_version, study_file, write_result
from studies import STUDIES
from tables import verdict
from utils import OptionParser, run_script, say

RESULTS = REPOSITORY / "results"
REPORT = REPOSITORY / "report" / "analysis.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the report again from a folder's result files; returns the exit status."""
    parser = OptionParser(description="Write the report again from a folder's result files.")
    parser.add_argument(
        "results_dir",
        nargs="?",
        type=repository_path,
        default=RESULTS,
        metavar="RESULTS_DIR",
        help="folder with those files (default: results, whose report is report/analysis.md; that "
        "of any other folder is analysis.md within it)",
    )
    options = parser.parse_args(argv)
    return run_script(lambda: write_report(options.results_dir))


def write_report(folder: Path) -> int:
    """Writes the report of a folder's result files, whole or not at all; returns the exit status.

    Raises:
        ScriptError: If the benchmark's result file cannot be read, or the report not be written.
    """
    path = REPORT if folder == RESULTS else folder / REPORT.name
    images = Path(os.path.relpath(folder, path.parent)).as_posix()
    studies = {
        name: read_version(folder / study_file(name))
        for name in STUDIES
        if (folder / study_file(name)).exists()
    }
    inputs = Inputs(
        read_results(folder / BENCHMARK_FILE), studies, "" if images == "." else f"{images}/"
    )
    write_result(path, report_text(inputs).encode("utf-8"))
    say(f"report: {path}")
    return 0


def report_text(inputs: Inputs) -> str:
    """Returns the whole report as Markdown."""
    sections = ["# Analysis", "Written by `analysis.py` from the result files; not by hand."]
    if all(inputs.results[mode] for mode in MODES):
        sections += [make(inputs) for make in SECTIONS]
        sections += [study_section(name, inputs) for name in inputs.studies]
        sections += [original_section(inputs.results, inputs.studies)]
        sections += finding_sections(inputs.results, inputs.studies)
    else:
        sections += ["## The answer", f"{verdict(inputs.results['comparison'])}."]
    return "\n\n".join(sections) + "\n"


if __name__ == "__main__":
    sys.exit(main())
