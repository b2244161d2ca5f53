"""The ladder's further modes: from NumPy to a whole epoch as one program. Each is one function."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import inspect
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import mode_script
import train_no_jit
import train_with_jit
from model import LossFn, Params, cross_entropy_loss, sgd_update
from modes import modes_of
from steps import WholeEpoch


def numpy(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn | None = None,
) -> tuple[Params, np.floating]:
    """Takes one SGD step in NumPy float32: forward and backward pass written out by hand.

    Args:
        params: Parameters from model.init_params, or those that the last step returned.
        images: (n, 784) float32.
        labels: (n,) int32.
        learning_rate: Step size.
        loss_fn: Not used: this step knows the softmax cross-entropy and no other.

    Returns:
        The new parameters as NumPy arrays, and the scalar float32 loss at the old ones.
    """
    params = jax.tree_util.tree_map(np.asarray, params)
    activations = [images]
    for layer in params[:-1]:
        activations.append(np.maximum(activations[-1] @ layer["weights"] + layer["biases"], 0))
    logits = activations[-1] @ params[-1]["weights"] + params[-1]["biases"]
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(labels))
    loss = -log_probs[rows, labels].mean()

    delta = np.exp(log_probs)  # the loss's gradient by the logits: (softmax - one-hot) / n
    delta[rows, labels] -= 1
    delta /= len(labels)
    rate = np.float32(learning_rate)
    new_params = []
    for i in reversed(range(len(params))):
        inputs, weights = activations[i], params[i]["weights"]
        new_params.insert(
            0,
            {
                "weights": weights - rate * (inputs.T @ delta),
                "biases": params[i]["biases"] - rate * delta.sum(axis=0),
            },
        )
        if i > 0:  # nothing needs the gradient by the images
            delta = (delta @ weights.T) * (inputs > 0)
    return new_params, loss


def disable_jit(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn = cross_entropy_loss,
) -> tuple[Params, jax.Array]:
    """Takes the eager step with JAX's own inner jits taken apart; see train_no_jit.train_step."""
    with jax.disable_jit():
        return train_no_jit.train_step(params, images, labels, learning_rate, loss_fn)


def eager_value_and_grad(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn = cross_entropy_loss,
) -> tuple[Params, jax.Array]:
    """Takes the very step of train_with_jit.train_step, op by op."""
    return train_with_jit.train_step.__wrapped__(params, images, labels, learning_rate, loss_fn)


@partial(jax.jit, static_argnames="loss_fn", donate_argnames="params")
def jit_donated(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn = cross_entropy_loss,
) -> tuple[Params, jax.Array]:
    """Takes the step of train_with_jit.train_step; params cannot be used afterwards."""
    return train_with_jit.train_step(params, images, labels, learning_rate, loss_fn)


def scan_epoch(
    params: Params,
    images: jax.Array,
    labels: jax.Array,
    order: jax.Array,
    learning_rate: float,
    batch_size: int,
    loss_fn: LossFn = cross_entropy_loss,
    *,
    last_transposed: bool = True,
    out_of_bounds: str = "clip",
    gather_first: bool = False,
    unroll: int = 1,
) -> tuple[Params, jax.Array]:
    """Takes all steps of an epoch in one lax.scan, and a last one for a smaller batch.

    Args:
        params: Parameters from model.init_params.
        images: (m, 784) uint8, or float32 in [0, 1].
        labels: (m,) int32.
        order: (n,) integers, the images to use.
        learning_rate: Step size.
        batch_size: Images a step.
        loss_fn: (params, images, labels) to the scalar loss.
        last_transposed: Keep the last layer's weights as (10, n_in) from step to step: the same
            products, but XLA has a slow one for so few columns.
        out_of_bounds: How jnp.take treats an index that no image has; "clip" costs the least.
        gather_first: Pick all images of the epoch before the first step, not at each step.
        unroll: Steps in one turn of the loop.

    Returns:
        The new parameters, and the losses as (steps,) float32, each at the step that used it.
    """

    def relaid(params: Params) -> Params:  # the other way round when applied again
        *first, last = params
        return [*first, {**last, "weights": last["weights"].T}] if last_transposed else params

    def loss_of(params: Params, batch_images: jax.Array, batch_labels: jax.Array) -> jax.Array:
        return loss_fn(relaid(params), batch_images, batch_labels)

    def pick(chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
        return tuple(jnp.take(a, chosen, axis=0, mode=out_of_bounds) for a in (images, labels))

    def step(params: Params, batch: tuple[jax.Array, jax.Array]) -> tuple[Params, jax.Array]:
        batch_images, batch_labels = batch
        if batch_images.dtype == jnp.uint8:
            batch_images = batch_images.astype(jnp.float32) / 255
        loss, grads = jax.value_and_grad(loss_of)(params, batch_images, batch_labels)
        return sgd_update(params, grads, learning_rate), loss

    params = relaid(params)
    n_full = len(order) // batch_size
    full = order[: n_full * batch_size].reshape(n_full, batch_size)
    if gather_first:
        params, losses = jax.lax.scan(step, params, pick(full), unroll=unroll)
    else:
        params, losses = jax.lax.scan(
            lambda params, chosen: step(params, pick(chosen)), params, full, unroll=unroll
        )
    if len(order) % batch_size:
        params, loss = step(params, pick(order[n_full * batch_size :]))
        losses = jnp.append(losses, loss)
    return relaid(params), losses


SCAN_STATIC = (
    "batch_size",
    "loss_fn",
    "last_transposed",
    "out_of_bounds",
    "gather_first",
    "unroll",
)
# Spares each turn of the loop copies of the parameters; the bound study tells what that is worth.
# jax.jit of JAX 0.4.30 takes no options.
SCAN_OPTIONS: dict[str, bool] = (
    {"xla_cpu_copy_insertion_use_region_analysis": True}
    if "compiler_options" in inspect.signature(jax.jit).parameters
    else {}
)
jit_scan = WholeEpoch(
    jax.jit(
        scan_epoch,
        static_argnames=SCAN_STATIC,
        donate_argnames="params",
        **({"compiler_options": SCAN_OPTIONS} if SCAN_OPTIONS else {}),
    ),
    scan_epoch,
)

# A mode is the function of its name.
STEPS = {mode: globals()[mode] for mode in modes_of(Path(__file__).name)}


def main() -> int:
    """Trains in one of the further modes, by the command line; returns the exit status."""
    return mode_script.main(STEPS)


if __name__ == "__main__":
    sys.exit(main())
