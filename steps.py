"""What a mode brings, a step or a whole epoch as one program, and the loop over its steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Union

import jax
import numpy as np

import data_loader
import model
from config import Config

# (params, images, labels, learning_rate) to (params, loss); images and labels are NumPy arrays.
TrainStep = Callable[
    [model.Params, np.ndarray, np.ndarray, float], "tuple[model.Params, jax.Array]"
]

# The host may run ahead of the device by this many steps. Without a bound it can make a whole
# epoch's batches (190 MB) before the device has used them; with it the device never waits.
STEPS_IN_FLIGHT = 8


class WholeEpoch(NamedTuple):
    """A function that takes all steps of an epoch, jitted and as it was written.

    Both are (params, images, labels, order, learning_rate, batch_size) to (params, losses), with
    all images and labels on the device, the order of the images as (n,) integers and the losses as
    (steps,). The jitted one may donate the parameters, and have options of the compiler; with those
    it cannot stand within another jit.
    """

    run: Callable
    not_jitted: Callable


Step = Union[TrainStep, WholeEpoch]


def with_loss(train_step: Step, loss_fn: model.LossFn) -> Step:
    """Returns a step that trains on another loss function."""
    if isinstance(train_step, WholeEpoch):
        return WholeEpoch(*(partial(function, loss_fn=loss_fn) for function in train_step))
    return partial(train_step, loss_fn=loss_fn)


def place_data(train_step: Step, data: data_loader.Mnist) -> data_loader.Mnist:
    """Returns the data with the training set on the device, if that is where the step wants it."""
    if not isinstance(train_step, WholeEpoch):
        return data
    images, labels = jax.block_until_ready(jax.device_put((data.train_images, data.train_labels)))
    return data._replace(train_images=images, train_labels=labels)


def take_steps(
    train_step: Step,
    params: model.Params,
    data: data_loader.Mnist,
    config: Config,
    order: np.ndarray,
) -> tuple[model.Params, Any]:
    """Trains on the images in this order; does not wait for the last results.

    Args:
        train_step: A step, or a whole epoch.
        params: Parameters at the start.
        data: MNIST as place_data returns it.
        config: Batch size and learning rate.
        order: (n,) integers, the images to use.

    Returns:
        The parameters at the end and a scalar loss for each step, in a list or an array.
    """
    images, labels, batch_size = data.train_images, data.train_labels, config.batch_size
    if isinstance(train_step, WholeEpoch):
        return train_step.run(params, images, labels, order, config.learning_rate, batch_size)
    losses: list[jax.Array] = []
    for batch in data_loader.batches(images, labels, batch_size, order):
        params, loss = train_step(params, *batch, config.learning_rate)
        losses.append(loss)
        if len(losses) > STEPS_IN_FLIGHT:
            jax.block_until_ready(losses[-1 - STEPS_IN_FLIGHT])
    return params, losses
