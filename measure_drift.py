"""The drift study's measurement: eager steps, one after the other, and what grows with them."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import data_loader
import model
import train_no_jit
from config import Config
from steps import take_steps, with_loss
from utils import Tell, Timer, rss_mb

EPOCHS = 10  # as the original trains
RECORDS_PER_EPOCH = 3
SHORT_STEPS = 60  # a record's, in the short form, which takes three of them
NN_RELU = partial(model.cross_entropy_loss, activation=jax.nn.relu)
# Only what grows differs: the activation, and whether jnp.greater's cache is emptied in between.
ARMS = {
    "maximum": (model.cross_entropy_loss, False),
    "nn_relu": (NN_RELU, False),
    "nn_relu, cleared": (NN_RELU, True),
}


def measure(
    data: data_loader.Mnist, config: Config, part: str, short: bool, tell: Tell
) -> dict[str, Any]:
    """Takes eager steps with one activation and records time, memory and cache entries.

    Returns:
        "records": after each chunk of steps "steps" (in all so far), "step_s" (mean of the chunk),
        "rss_mb" and "greater_cache_entries", the entries in the jit cache of jnp.greater.
    """
    loss_fn, clear = ARMS[part]
    train_step = with_loss(train_no_jit.train_step, loss_fn)
    n_steps = len(data.train_images) // config.batch_size
    if short:
        chunks = [(1, i * SHORT_STEPS, (i + 1) * SHORT_STEPS) for i in range(3)]
    else:
        ends = [n_steps * i // RECORDS_PER_EPOCH for i in range(RECORDS_PER_EPOCH + 1)]
        chunks = [(n, *ends[i : i + 2]) for n in range(1, EPOCHS + 1) for i in range(len(ends) - 1)]
    params = model.init_params(jax.random.key(config.seed))
    # One step, so that nothing compiles in the first chunk.
    order = data_loader.epoch_order(config.seed, 1, len(data.train_images))
    jax.block_until_ready(take_steps(train_step, params, data, config, order[: config.batch_size]))
    records, steps = [], 0
    for epoch, start, end in chunks:
        order = data_loader.epoch_order(config.seed, epoch, len(data.train_images))
        chosen = order[start * config.batch_size : end * config.batch_size]
        with Timer() as timer:
            params, losses = take_steps(train_step, params, data, config, chosen)
            jax.block_until_ready((params, losses))
        steps += end - start
        records.append(
            {
                "steps": steps,
                "step_s": timer.seconds / (end - start),
                "rss_mb": rss_mb(),
                "greater_cache_entries": jnp.greater._cache_size(),
            }
        )
        if clear:
            jnp.greater.clear_cache()
        tell(len(records), len(chunks), f"{part}, {steps} steps")
    return {"records": records}
