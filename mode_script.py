"""What a training script does around the training: options, platform, data and result file."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence

import jax

import model
import result_files
from config import MODES, add_training_options, config_from_options, load_data
from environment import describe_environment
from tables import summary_text
from training import TrainStep, train
from utils import MemoryTracker, OptionError, OptionParser, run_script, say


def main(mode: str, train_step: TrainStep, argv: Sequence[str] | None = None) -> int:
    """Runs a training script: parses its options and trains its mode.

    Returns:
        The exit status.
    """
    parser = OptionParser(
        description=f"Train the MLP on MNIST {MODES[mode]['label'].lower()} and write "
        f"results/{result_files.mode_file(mode)}."
    )
    add_training_options(parser)
    parser.add_argument(
        "--no-summary",
        action="store_true",
        help="end after the last epoch's line, as benchmark.py wants it (default: off)",
    )
    options = parser.parse_args(argv)
    return run_script(lambda: run_mode(mode, train_step, options))


def use_platform(platform: str) -> jax.Device:
    """Makes JAX run on cpu, gpu or tpu, and returns its first device.

    Raises:
        OptionError: If JAX finds no such device.
    """
    jax.config.update("jax_platforms", platform)
    try:
        return jax.devices()[0]
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise OptionError(
            f"JAX finds no {platform} here ({reason}); try --platform cpu, or install a build of "
            "JAX for it"
        ) from error


def run_mode(mode: str, train_step: TrainStep, options: argparse.Namespace) -> int:
    """Trains one mode by the options, prints a summary and writes the mode's result file."""
    config = config_from_options(options)
    result_files.require_writable(options.results_dir)
    device = use_platform(config.platform)
    memory = MemoryTracker()
    with memory.stage("loading"):
        data = load_data(options)
    say(f"{MODES[mode]['label']}, on {device.platform}; MNIST from {data.source}")
    run = train(train_step, data, config, memory)
    result = result_files.mode_result(
        mode,
        {**dataclasses.asdict(config), "layer_sizes": model.LAYER_SIZES},
        {
            "name": "MNIST",
            "source": data.source,
            "train_examples": len(data.train_images),
            "test_examples": len(data.test_images),
            "sha256": data.sha256,
        },
        {**describe_environment(), "device": device.platform, "device_kind": device.device_kind},
        [run],
    )
    path = options.results_dir / result_files.mode_file(mode)
    result_files.write_json(path, result)
    if not options.no_summary:
        say(summary_text(result))
        say(f"written to {path}")
    return 0
