"""The range study's measurement: time per step over batch sizes and widths, in this process."""

from __future__ import annotations

import math
from typing import Any

import jax

import data_loader
import model
import train_no_jit
import train_variants
import train_with_jit
from compiling import first_batch
from config import Config
from steps import TrainStep
from utils import Tell, Timer

BATCH_SIZES = (1, 8, 32, 128, 512, 2048, 8192)
FEWER_BATCH_SIZES = (8, 128, 2048)
# Of the hidden layers, each with its batch sizes; the short form has the first one alone.
WIDTHS = {1: BATCH_SIZES, 0.25: FEWER_BATCH_SIZES, 4: FEWER_BATCH_SIZES}
SHORT_WIDTHS = {1: FEWER_BATCH_SIZES}
ROUNDS = 2
SECONDS_PER_SAMPLE = 0.05  # so many steps that they take about this
STEPS = {
    "no_jit": train_no_jit.train_step,
    "eager_value_and_grad": train_variants.eager_value_and_grad,
    "jit": train_with_jit.train_step,
}


def measure(
    data: data_loader.Mnist, config: Config, part: str, short: bool, tell: Tell
) -> dict[str, Any]:
    """Measures every step at every batch size and width; the modes take turns.

    A step gets the same NumPy batch again and again, with a learning rate of 0, so that its work
    does not depend on what was measured before it. No batch is made in the timed region.

    Returns:
        "cells": for each width, batch size and mode the seconds per step of each round.
    """
    widths = SHORT_WIDTHS if short else WIDTHS
    chosen = [(factor, size) for factor, sizes in widths.items() for size in sizes]
    cells = []
    for i, (factor, batch_size) in enumerate(chosen, start=1):
        sizes = scaled_layers(factor)
        params = model.init_params(jax.random.key(config.seed), sizes)
        seconds = measure_cell(params, first_batch(data, batch_size), 1 if short else ROUNDS)
        for mode, of_mode in seconds.items():
            cell = {"width_factor": factor, "layer_sizes": sizes, "batch_size": batch_size}
            cells.append({**cell, "mode": mode, "step_s": of_mode})
        tell(i, len(chosen), f"width x {factor:g}, batch {batch_size}")
    return {"cells": cells}


def scaled_layers(factor: float) -> list[int]:
    """Returns the layer sizes with the hidden ones multiplied by a factor."""
    first, *hidden, last = model.LAYER_SIZES
    return [first, *(round(size * factor) for size in hidden), last]


def measure_cell(params: model.Params, batch: tuple, rounds: int) -> dict[str, list[float]]:
    """Measures every step on one batch; the modes take turns.

    Args:
        params: Parameters of any width.
        batch: Images (n, 784) float32 and labels (n,) int32.
        rounds: Samples of each mode.

    Returns:
        The seconds per step of each round, by mode.
    """
    n_steps = {}
    for mode, step in STEPS.items():
        _seconds_per_step(step, params, batch, 1)  # compiles
        estimate = _seconds_per_step(step, params, batch, 1)
        n_steps[mode] = math.ceil(SECONDS_PER_SAMPLE / estimate)
    seconds: dict[str, list[float]] = {mode: [] for mode in STEPS}
    for i in range(rounds):
        for mode in list(STEPS)[:: 1 if i % 2 == 0 else -1]:
            step = STEPS[mode]
            seconds[mode].append(_seconds_per_step(step, params, batch, n_steps[mode]))
    return seconds


def _seconds_per_step(step: TrainStep, params: model.Params, batch: tuple, n_steps: int) -> float:
    with Timer() as timer:
        for _ in range(n_steps):
            params, loss = step(params, *batch, 0.0)
        jax.block_until_ready((params, loss))
    return timer.seconds / n_steps
