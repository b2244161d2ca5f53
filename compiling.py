"""What XLA compiles and when: the warm-up in parts, the count of programs, the count of work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import data_loader
import model
from config import Config
from steps import Step, WholeEpoch
from utils import Timer

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


def warm_up(
    train_step: Step, data: data_loader.Mnist, config: Config, compiles: CompileCounter
) -> dict[str, Any]:
    """Runs every program once, so that all are compiled, and drops the results.

    That is a step for each batch shape or, where an epoch is one program, one epoch.

    Returns:
        "time_ms" and "programs_compiled" over all shapes, and "parts" with both for each shape.
        A part of a step that jax.jit made also has "trace_ms", "lower_ms", "compile_ms" and
        "first_run_ms", which add up to its "time_ms".
    """
    # Parameters of its own: a step may donate them.
    params = model.init_params(jax.random.key(config.seed))
    parts = []
    for size, function, arguments in _first_calls(train_step, data, config):
        compiled_before = compiles.count
        compile_parts = compile_ahead(function, (params, *arguments))
        with Timer() as timer:
            # The result goes into the next shape's step: outputs must work as inputs too.
            params, loss = function(params, *arguments)
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


def compile_ahead(function: Callable, arguments: tuple) -> dict[str, float]:
    """Traces, lowers and compiles a jitted function for these arguments, and times each.

    The next call of the function finds the compiled program and only runs it, so that this costs
    nothing beyond what a first call does anyway. Not so in JAX 0.4.38, which compiles it again.

    Returns:
        "trace_ms", "lower_ms" and "compile_ms"; nothing for a function that has no ahead-of-time
        API: an eager one, or one with another activation bound to it.
    """
    if not hasattr(function, "trace"):
        return {}
    with Timer() as trace:
        traced = function.trace(*arguments)
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


def count_flops(train_step: Step, data: data_loader.Mnist, config: Config) -> float | None:
    """Returns the floating-point operations of a step on a full batch, by XLA's own account.

    The account is that of the step as one program before XLA optimises it, for an eager step too:
    the compiled program's leaves out the products in JAX 0.4, which calls a library for them. Where
    an epoch is one program, it is that of an epoch of a single step; None if no XLA runs the step.
    """
    params = model.init_params(jax.random.key(config.seed))
    _, function, arguments = next(_first_calls(train_step, data, config))
    if isinstance(train_step, WholeEpoch):
        images, labels, order, *others = arguments
        arguments = (images, labels, order[: config.batch_size])

        def function(*arrays: jax.Array) -> tuple:  # only arrays: the batch size decides shapes
            return train_step.not_jitted(*arrays, *others)

    try:
        lowered = jax.jit(function).lower(params, *arguments)
    except jax.errors.TracerArrayConversionError:  # NumPy asked for values
        return None
    return lowered.cost_analysis()["flops"]


def _first_calls(
    train_step: Step, data: data_loader.Mnist, config: Config
) -> Iterator[tuple[int, Callable, tuple]]:
    """Yields batch size, function and arguments after the parameters, once for each program."""
    n_images = len(data.train_images)
    full = min(config.batch_size, n_images)
    if isinstance(train_step, WholeEpoch):
        batches = (data.train_images, data.train_labels, np.arange(n_images))
        yield full, train_step.run, (*batches, config.learning_rate, full)
        return
    for size in dict.fromkeys((full, n_images % full or full)):
        yield size, train_step, (*first_batch(data, size), config.learning_rate)
