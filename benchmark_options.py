"""The options of benchmark.py."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from comparison import PROCESSES_FOR_A_CLAIM
from config import REPOSITORY, add_training_options, repository_path, whole_number
from studies import STUDIES
from utils import OptionParser

QUICK_EPOCHS, QUICK_REPEATS = 2, 1
DEFAULT_REPEATS = 3
RIGOROUS_REPEATS = PROCESSES_FOR_A_CLAIM


def parse_options(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the benchmark's options, and derives what they leave open.

    Returns:
        The namespace of add_training_options and of what is added here; "repeats" is a number,
        "studies" a list, and "main_run" tells whether the two modes are compared.
    """
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.trace:
        options.studies = [*options.studies, "inside"]
    if options.studies and (options.control or options.check or options.compare):
        parser.error("a study cannot be combined with --control, --check or --compare")
    options.main_run = options.full or not options.studies
    options.studies = [s for s in STUDIES if options.full or s in options.studies]
    if options.quick:
        options.epochs = QUICK_EPOCHS
    if options.repeats is None:
        # An interval from fewer processes could miss the truth, or 1.0, by chance.
        rigorous = options.rigorous or options.control or options.full
        options.repeats = RIGOROUS_REPEATS if rigorous else DEFAULT_REPEATS
        if options.quick and not options.control:
            options.repeats = QUICK_REPEATS
    return options


def make_parser() -> OptionParser:
    """Returns the parser of the benchmark's options."""
    parser = OptionParser(
        description="Train the same MLP on MNIST without and with JIT, each run in a process of "
        "its own; print tables and write JSON files and plots."
    )
    add_training_options(parser)
    _add_lengths(parser)
    _add_actions(parser)
    _add_studies(parser)
    return parser


def _add_lengths(parser: OptionParser) -> None:
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_EPOCHS} epochs, whatever --epochs says, {QUICK_REPEATS} process per mode "
        "unless --repeats tells, and the short form of each study (default: off)",
    )
    length.add_argument(
        "--rigorous",
        action="store_true",
        help=f"{RIGOROUS_REPEATS} processes per mode, unless --repeats tells (default: off)",
    )
    parser.add_argument(
        "--no-report",
        action="store_true",
        help="do not write the report of the results folder again (default: off)",
    )
    parser.add_argument(
        "--repeats",
        type=lambda text: whole_number(text, 1, 1000),
        metavar="N",
        help=f"processes per mode, in alternating order (default: {DEFAULT_REPEATS})",
    )


def _add_actions(parser: OptionParser) -> None:
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--full",
        action="store_true",
        help="the rigorous run and then every study; with --quick all in short form, and without "
        "disable_jit (default: off)",
    )
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


def _add_studies(parser: OptionParser) -> None:
    group = parser.add_argument_group("studies", "instead of the main run, unless with --full")
    for name, study in STUDIES.items():
        group.add_argument(
            f"--{name}",
            action="append_const",
            dest="studies",
            const=name,
            default=[],
            help=f"{study.what} (default: off)",
        )
    group.add_argument(
        "--trace",
        type=repository_path,
        metavar="DIR",
        help="--inside, keeping the profiles of every mode in DIR, a folder each (default: none)",
    )
    group.add_argument(
        "--with-python",
        action="append",
        default=[],
        metavar="PATH",
        help="let --drift run with this Python and its version of JAX, too (default: none)",
    )
