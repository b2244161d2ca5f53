"""The training run that every mode shares; a mode brings nothing but its train_step.

What is timed: an epoch's time covers all its steps with the making of their batches (shuffle,
gather, scaling, transfer to the device) and ends when the parameters and every loss are ready.
Loading, warm-up, evaluation, progress and the conversion of losses to Python numbers are outside.

A batch goes into the step as NumPy arrays, and JAX moves it to the device within the call: measured
for the jitted step, jax.device_put before the call costs twice as much.
"""

from __future__ import annotations

import hashlib
import os
from datetime import datetime, timezone
from typing import Any, NamedTuple

import jax
import numpy as np

import data_loader
import model
from compiling import CompileCounter, count_flops, warm_up
from config import Config
from environment import load_average, steal_seconds
from run_text import epoch_line
from steps import Step, place_data, take_steps
from utils import MemoryTracker, Timer, progress_bar, say

# Test images per evaluated chunk: divides 10,000, and keeps the activations at some MB.
EVALUATION_CHUNK = 1000


class Epoch(NamedTuple):
    """What is kept of a training epoch: figures alone, no parameters."""

    loss: float  # mean over the images, each at the step that used it
    time_s: float
    cpu_time_s: float  # of all threads of this process
    order_sha256: str  # of the order in which the images were used


def first_step_params(train_step: Step, data: data_loader.Mnist, config: Config) -> model.Params:
    """Returns the parameters after one step from the initial ones, on the first batch."""
    params = model.init_params(jax.random.key(config.seed))
    order = np.arange(min(config.batch_size, len(data.train_images)))
    return take_steps(train_step, params, place_data(train_step, data), config, order)[0]


def train_epoch(
    train_step: Step,
    params: model.Params,
    data: data_loader.Mnist,
    config: Config,
    epoch: int,
) -> tuple[model.Params, Epoch]:
    """Trains on every image once and measures it.

    Args:
        train_step: A step, or a whole epoch.
        params: Parameters at the start.
        data: MNIST as steps.place_data returns it, its images as bytes or as float32.
        config: Batch size, learning rate and seed.
        epoch: Counted from 1; decides the order of the images, together with the seed.

    Returns:
        The parameters at the end, and the figures.
    """
    n_images = len(data.train_images)
    with Timer() as timer:
        order = data_loader.epoch_order(config.seed, epoch, n_images)
        params, losses = take_steps(train_step, params, data, config, order)
        jax.block_until_ready((params, losses))
    batch_sizes = np.full(len(losses), config.batch_size)
    batch_sizes[-1] = n_images - config.batch_size * (len(losses) - 1)
    mean_loss = np.average(np.array(jax.device_get(losses), float), weights=batch_sizes)
    order_hash = hashlib.sha256(order).hexdigest()
    return params, Epoch(float(mean_loss), timer.seconds, timer.cpu_seconds, order_hash)


def evaluate(params: model.Params, images: np.ndarray, labels: np.ndarray) -> float:
    """Computes the accuracy on a whole data set, 0 to 1; the same eager code in every mode."""
    n_correct = 0
    for start in range(0, len(images), EVALUATION_CHUNK):
        chunk = slice(start, start + EVALUATION_CHUNK)
        chunk_images = data_loader.scale_pixels(images[chunk])
        share = model.accuracy(params, chunk_images, labels[chunk])
        n_correct += round(float(share) * len(chunk_images))
    return n_correct / len(images)


def data_sha256(data: data_loader.Mnist) -> str:
    """Returns one hash over the bytes of all four arrays, as they are trained on."""
    digest = hashlib.sha256()
    for array in data[:4]:
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()


def params_sha256(params: model.Params) -> str:
    """Returns one hash over the bytes of all leaves, in tree order."""
    digest = hashlib.sha256()
    for leaf in jax.tree_util.tree_leaves(params):
        digest.update(np.ascontiguousarray(leaf))
    return digest.hexdigest()


def train(
    train_step: Step,
    data: data_loader.Mnist,
    config: Config,
    memory: MemoryTracker,
    *,
    show_progress: bool = True,
) -> dict[str, Any]:
    """Initialises, warms up, trains and evaluates in this process; prints a line an epoch.

    Returns:
        The raw values of this run, as they stand in the result file under "runs".
    """
    started_at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    load_at_start, steal_at_start = load_average(), steal_seconds()
    compiles = CompileCounter()
    with memory.stage("initialisation"):
        params = model.init_params(jax.random.key(config.seed))
        initial_hash = params_sha256(params)
    with memory.stage("warm-up"):
        train_data = place_data(train_step, data)
        warmup = warm_up(train_step, train_data, config, compiles)
        # After it, as its programs would shorten the warm-up; and before any epoch compiles them.
        initial_accuracy = evaluate(params, data.test_images, data.test_labels)
    say(f"warm-up  {warmup['time_ms']:.0f} ms, programs compiled: {warmup['programs_compiled']}")

    epochs, accuracies, compiled = [], [], []
    bar = progress_bar(config.epochs, "training", shown=show_progress)
    with memory.stage("training"), bar:
        for number in range(1, config.epochs + 1):
            compiled_before = compiles.count
            params, epoch = train_epoch(train_step, params, train_data, config, number)
            compiled.append(compiles.count - compiled_before)
            accuracies.append(evaluate(params, data.test_images, data.test_labels))
            epochs.append(epoch)
            say(epoch_line(number, config.epochs, epoch.loss, accuracies[-1], epoch.time_s))
            bar.update()
    return {
        "pid": os.getpid(),
        "started_at": started_at,
        "epoch_times_s": [epoch.time_s for epoch in epochs],
        "epoch_cpu_times_s": [epoch.cpu_time_s for epoch in epochs],
        "losses": [epoch.loss for epoch in epochs],
        "test_accuracies": accuracies,
        "initial_test_accuracy": initial_accuracy,
        "data_sha256": data_sha256(data),
        "initial_params_sha256": initial_hash,
        "final_params_sha256": params_sha256(params),
        "epoch_orders_sha256": [epoch.order_sha256 for epoch in epochs],
        "warmup": warmup,
        "programs_compiled_in_epochs": compiled,
        "dtypes": sorted({str(leaf.dtype) for leaf in jax.tree_util.tree_leaves(params)}),
        "step_flops": count_flops(train_step, train_data, config),
        "load_average_at_start": load_at_start,
        "steal_s": None if steal_at_start is None else steal_seconds() - steal_at_start,
        "memory": memory.summary(delta_of="training"),
    }
