"""One process of a study: measures in this process and writes the raw values. See studies.py."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

import measure_bound
import measure_drift
import measure_inside
import measure_range
import model
import result_files
from config import REPOSITORY, add_training_options, config_from_options, load_data
from environment import describe_environment
from mode_script import refuse_settings, use_platform
from run_text import study_line
from utils import OptionParser, run_script, say

MEASUREMENTS = {
    "range": measure_range.measure,
    "bound": measure_bound.measure,
    "inside": measure_inside.measure,
    "drift": measure_drift.measure,
}


def main() -> int:
    """Runs a process of a study, by the options of the command line; returns the exit status."""
    parser = OptionParser(description="Run one process of a study, as benchmark.py does.")
    parser.add_argument("study", choices=MEASUREMENTS, help="what to measure")
    parser.add_argument("part", help="the study's part: a mode, an arm, or all")
    parser.add_argument("--short", action="store_true", help="less of it (default: off)")
    parser.add_argument(
        "--trace-dir", type=Path, metavar="DIR", help="keep the profile of `inside` (default: none)"
    )
    add_training_options(parser)
    options = parser.parse_args()
    return run_script(lambda: run_study(options))


def run_study(options: argparse.Namespace) -> int:
    """Measures, and writes the raw values with configuration and environment."""
    refuse_settings()
    device = use_platform(options.platform)
    config = config_from_options(options)
    data = load_data(options)
    further: dict[str, Any] = {"trace_dir": options.trace_dir} if options.trace_dir else {}
    raw = MEASUREMENTS[options.study](
        data,
        config,
        options.part,
        options.short,
        lambda done, total, text: say(study_line(done, total, text)),
        **further,
    )
    result_files.write_json(
        options.results_dir / result_files.STUDY_PROCESS_FILE,
        {
            "part": options.part,
            "config": {**dataclasses.asdict(config), "layer_sizes": model.LAYER_SIZES},
            "environment": {
                **describe_environment(REPOSITORY),
                "device": device.platform,
                "device_kind": device.device_kind,
            },
            **raw,
        },
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
