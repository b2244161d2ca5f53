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
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, NamedTuple

import jax
import numpy as np

import data_loader
import model
from config import Config
from environment import load_average, steal_seconds
from run_text import epoch_line
from utils import MemoryTracker, Timer, progress_bar, say

# (params, images, labels, learning_rate) to (params, loss); images and labels are NumPy arrays.
TrainStep = Callable[
    [model.Params, np.ndarray, np.ndarray, float], "tuple[model.Params, jax.Array]"
]

# The host may run ahead of the device by this many steps. Without a bound it can make a whole
# epoch's batches (190 MB) before the device has used them; with it the device never waits.
STEPS_IN_FLIGHT = 8
# Test images per evaluated chunk: divides 10,000, and keeps the activations at some MB.
EVALUATION_CHUNK = 1000
# The event that JAX records for each program that XLA compiles.
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


class CompileCounter:
    """Counts the programs that XLA compiles in this process, from its creation on."""

    def __init__(self) -> None:
        """Starts to listen; JAX has no public call to stop, so a process needs one counter."""
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration: float, **_: object) -> None:
        self.count += event == COMPILE_EVENT


class Epoch(NamedTuple):
    """What is kept of a training epoch: figures alone, no parameters."""

    loss: float  # mean over the images, each at the step that used it
    time_s: float
    cpu_time_s: float  # of all threads of this process
    order_sha256: str  # of the order in which the images were used


def warm_up(
    train_step: TrainStep,
    params: model.Params,
    data: data_loader.Mnist,
    config: Config,
    compiles: CompileCounter,
) -> dict[str, Any]:
    """Takes a step for each batch shape, so that every program is compiled; drops the results.

    Returns:
        "time_ms" and "programs_compiled" over all shapes, and "parts" with both for each shape.
        A part of a step that jax.jit made also has "trace_ms", "lower_ms", "compile_ms" and
        "first_run_ms", which add up to its "time_ms".
    """
    sizes = [min(config.batch_size, len(data.train_images))]
    if len(data.train_images) % config.batch_size:
        sizes.append(len(data.train_images) % config.batch_size)
    parts = []
    for size in dict.fromkeys(sizes):
        compiled_before = compiles.count
        arguments = (params, *first_batch(data, size), config.learning_rate)
        compile_parts = compile_ahead(train_step, arguments)
        with Timer() as timer:
            # The result goes into the next shape's step: outputs must work as inputs too.
            params, loss = train_step(*arguments)
            jax.block_until_ready((params, loss))
        first_run = {"first_run_ms": timer.seconds * 1000}
        parts.append(
            {
                "batch_size": size,
                "time_ms": sum({**compile_parts, **first_run}.values()),
                "programs_compiled": compiles.count - compiled_before,
                **({**compile_parts, **first_run} if compile_parts else {}),
            }
        )
    return {
        "time_ms": sum(part["time_ms"] for part in parts),
        "programs_compiled": sum(part["programs_compiled"] for part in parts),
        "parts": parts,
    }


def compile_ahead(train_step: TrainStep, arguments: tuple) -> dict[str, float]:
    """Traces, lowers and compiles a jitted step for these arguments, and times each.

    The next call of the step finds the compiled program and only runs it, so that this costs
    nothing beyond what a first call does anyway.

    Returns:
        "trace_ms", "lower_ms" and "compile_ms"; nothing for a step that has no ahead-of-time API:
        an eager one, or one with another activation bound to it.
    """
    if not hasattr(train_step, "trace"):
        return {}
    with Timer() as trace:
        traced = train_step.trace(*arguments)
    with Timer() as lower:
        lowered = traced.lower()
    with Timer() as compilation:
        lowered.compile()
    return {
        "trace_ms": trace.seconds * 1000,
        "lower_ms": lower.seconds * 1000,
        "compile_ms": compilation.seconds * 1000,
    }


def first_batch(data: data_loader.Mnist, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the first images, (size, 784) float32, and their labels, (size,) int32."""
    return next(data_loader.batches(data.train_images, data.train_labels, size, np.arange(size)))


def first_step_params(
    train_step: TrainStep, data: data_loader.Mnist, config: Config
) -> model.Params:
    """Returns the parameters after one step from the initial ones, on the first batch."""
    params = model.init_params(jax.random.key(config.seed))
    return train_step(params, *first_batch(data, config.batch_size), config.learning_rate)[0]


def count_flops(train_step: TrainStep, data: data_loader.Mnist, config: Config) -> float:
    """Returns the floating-point operations of a step on a full batch, by XLA's own account.

    The account is that of the step as one program before XLA optimises it, for an eager step too:
    the compiled program's leaves out the products in JAX 0.4, which calls a library for them.
    """
    params = model.init_params(jax.random.key(config.seed))
    arguments = (params, *first_batch(data, config.batch_size), config.learning_rate)
    return jax.jit(train_step).lower(*arguments).cost_analysis()["flops"]


def train_epoch(
    train_step: TrainStep,
    params: model.Params,
    data: data_loader.Mnist,
    config: Config,
    epoch: int,
) -> tuple[model.Params, Epoch]:
    """Trains on every image once and measures it.

    Args:
        train_step: (params, images, labels, learning_rate) to (params, loss).
        params: Parameters at the start.
        data: MNIST, its images as bytes or as float32.
        config: Batch size, learning rate and seed.
        epoch: Counted from 1; decides the order of the images, together with the seed.

    Returns:
        The parameters at the end, and the figures.
    """
    n_images = len(data.train_images)
    losses: list[jax.Array] = []
    with Timer() as timer:
        order = data_loader.epoch_order(config.seed, epoch, n_images)
        for images, labels in data_loader.batches(
            data.train_images, data.train_labels, config.batch_size, order
        ):
            params, loss = train_step(params, images, labels, config.learning_rate)
            losses.append(loss)
            if len(losses) > STEPS_IN_FLIGHT:
                losses[-1 - STEPS_IN_FLIGHT].block_until_ready()
        jax.block_until_ready((params, losses))
    batch_sizes = np.full(len(losses), config.batch_size)
    batch_sizes[-1] = n_images - config.batch_size * (len(losses) - 1)
    mean_loss = np.average([float(loss) for loss in losses], weights=batch_sizes)
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
    train_step: TrainStep, data: data_loader.Mnist, config: Config, memory: MemoryTracker
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
        warmup = warm_up(train_step, params, data, config, compiles)
        # After it, as its programs would shorten the warm-up; and before any epoch compiles them.
        initial_accuracy = evaluate(params, data.test_images, data.test_labels)
    say(f"warm-up  {warmup['time_ms']:.0f} ms, programs compiled: {warmup['programs_compiled']}")

    epochs, accuracies, compiled = [], [], []
    with memory.stage("training"), progress_bar(config.epochs) as bar:
        for number in range(1, config.epochs + 1):
            compiled_before = compiles.count
            params, epoch = train_epoch(train_step, params, data, config, number)
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
        "step_flops": count_flops(train_step, data, config),
        "load_average_at_start": load_at_start,
        "steal_s": None if steal_at_start is None else steal_seconds() - steal_at_start,
        "memory": memory.summary(delta_of="training"),
    }
