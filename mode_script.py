"""What a training script does around the training: options, platform, data and result file."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping, Sequence
from functools import partial

import jax
import numpy as np

import model
import result_files
from config import REPOSITORY, add_training_options, config_from_options, load_data
from environment import describe_environment, settings_to_clear
from modes import LADDER
from run_text import summary_text
from steps import Step, with_loss
from training import first_step_params, train
from utils import (
    BYTES_PER_MB,
    MemoryTracker,
    OptionError,
    OptionParser,
    ScriptError,
    run_script,
    say,
)

# The names to ask JAX for, one after the other. By its own "gpu" it wants all of them at once, and
# fails on every machine (https://github.com/jax-ml/jax/issues/25315).
JAX_PLATFORMS = {"gpu": ("cuda", "rocm")}


def main(steps: Mapping[str, Step], argv: Sequence[str] | None = None) -> int:
    """Runs a training script: parses its options and trains its mode.

    Args:
        steps: The step of each mode that the script trains; of several, its first word chooses one.
        argv: The words of the command line; None for those of this process.

    Returns:
        The exit status.
    """
    first, *others = steps
    what = "in a further mode" if others else LADDER[first]["phrase"]
    file = result_files.mode_file("MODE" if others else first)
    parser = OptionParser(description=f"Train the MLP on MNIST {what} and write results/{file}.")
    if others:
        modes = "; ".join(f"{mode}: {LADDER[mode]['change']}" for mode in steps)
        parser.add_argument("mode", choices=steps, metavar="MODE", help=modes)
    else:
        parser.set_defaults(mode=first)
    add_training_options(parser)
    parser.add_argument(
        "--worker",
        action="store_true",
        help="run as a process of benchmark.py: no summary, and the parameters after one step "
        f"beside the result, as {result_files.FIRST_STEP_FILE} (default: off)",
    )
    options = parser.parse_args(argv)
    return run_script(lambda: run_mode(options.mode, steps[options.mode], options))


def refuse_settings() -> None:
    """Refuses to train under variables of JAX that would change the run in silence.

    Raises:
        ScriptError: If there is one.
    """
    names = settings_to_clear(os.environ)
    if names:
        raise ScriptError(
            f"{', '.join(names)} would change what is measured; unset it (benchmark.py clears it "
            "for its own processes)"
        )


def use_platform(platform: str) -> jax.Device:
    """Makes JAX run on cpu, gpu or tpu, and returns its first device.

    Raises:
        OptionError: If JAX finds no such device.
    """
    reasons = []
    for name in JAX_PLATFORMS.get(platform, (platform,)):
        jax.config.update("jax_platforms", name)
        try:
            return jax.devices()[0]
        except (RuntimeError, AssertionError) as error:  # JAX 0.4.38 to 0.12 assert for cuda
            first_line = (str(error).splitlines() or [f"no {name} device"])[0]
            reasons.append(first_line.partition(" (set JAX_PLATFORMS")[0])
    raise OptionError(
        f"JAX finds no {platform} here: try --platform cpu, or install a build of JAX for it "
        f"({'; '.join(reasons)})"
    )


def device_peak_mb(device: jax.Device) -> float | None:
    """Returns the most memory of its own that a device has used, in MB (10^6 bytes).

    None if it keeps no such figure, as the CPU does not: there all memory is the process's.
    """
    try:
        peak = (device.memory_stats() or {}).get("peak_bytes_in_use")
    except RuntimeError:  # a device that does not implement it
        return None
    return None if peak is None or peak < 0 else peak / BYTES_PER_MB


def run_mode(mode: str, train_step: Step, options: argparse.Namespace) -> int:
    """Trains one mode by the options, prints a summary and writes the mode's result file."""
    refuse_settings()
    config = config_from_options(options)
    if config.activation == "nn_relu":
        loss_fn = partial(model.cross_entropy_loss, activation=jax.nn.relu)
        train_step = with_loss(train_step, loss_fn)
    result_files.require_writable(options.results_dir)
    device = use_platform(config.platform)
    memory = MemoryTracker()
    with memory.stage("loading"):
        data = load_data(options)
    say(f"{LADDER[mode]['label']}, on {device.platform}; MNIST from {data.source}")
    run = train(train_step, data, config, memory, show_progress=not options.no_progress)
    run["memory"]["device_peak_mb"] = device_peak_mb(device)
    settings = {**dataclasses.asdict(config), "layer_sizes": model.LAYER_SIZES}
    environment = {
        **describe_environment(REPOSITORY),
        "device": device.platform,
        "device_kind": device.device_kind,
    }
    run["config_sha256"] = result_files.json_sha256(settings)
    run["environment_sha256"] = result_files.json_sha256(environment)
    result = result_files.mode_result(
        mode,
        settings,
        {
            "name": "MNIST",
            "source": data.source,
            "train_examples": len(data.train_images),
            "test_examples": len(data.test_images),
            "sha256": data.sha256,
        },
        environment,
        [run],
    )
    path = options.results_dir / result_files.mode_file(mode)
    result_files.write_json(path, result)
    if options.worker:
        first_step = jax.tree_util.tree_leaves(first_step_params(train_step, data, config))
        np.savez(options.results_dir / result_files.FIRST_STEP_FILE, *first_step)
    else:
        say(summary_text(result))
        say(f"written to {path}")
    return 0
