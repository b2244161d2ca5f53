"""Training without JIT: each operation of the step is dispatched to XLA on its own."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import sys

import jax
import numpy as np

import mode_script
from model import LossFn, Params, cross_entropy_loss, sgd_update


def train_step(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn = cross_entropy_loss,
) -> tuple[Params, jax.Array]:
    """Takes one SGD step, op by op: the gradient, then the loss in a second forward pass.

    Args:
        params: Parameters from model.init_params.
        images: (n, 784) float32.
        labels: (n,) int32.
        learning_rate: Step size.
        loss_fn: (params, images, labels) to the scalar loss.

    Returns:
        The new parameters, and the scalar float32 loss at the old ones.
    """
    grads = jax.grad(loss_fn)(params, images, labels)
    loss = loss_fn(params, images, labels)
    return sgd_update(params, grads, learning_rate), loss


def main() -> int:
    """Trains without JIT, by the options of the command line; returns the exit status."""
    return mode_script.main({"no_jit": train_step})


if __name__ == "__main__":
    sys.exit(main())
