"""Training with JIT: XLA compiles the whole step into one program for each batch shape."""

from __future__ import annotations

import requirements_check  # noqa: F401 (ends the script if a package is missing)

import sys
from functools import partial

import jax
import numpy as np

import mode_script
from model import LossFn, Params, cross_entropy_loss, sgd_update


@partial(jax.jit, static_argnames="loss_fn")
def train_step(
    params: Params,
    images: np.ndarray,
    labels: np.ndarray,
    learning_rate: float,
    loss_fn: LossFn = cross_entropy_loss,
) -> tuple[Params, jax.Array]:
    """Takes one SGD step as one compiled program: loss, gradient and update together.

    Args:
        params: Parameters from model.init_params.
        images: (n, 784) float32.
        labels: (n,) int32.
        learning_rate: Step size; traced, so another value needs no new program.
        loss_fn: (params, images, labels) to the scalar loss; static.

    Returns:
        The new parameters, and the scalar float32 loss at the old ones.
    """
    loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    return sgd_update(params, grads, learning_rate), loss


def main() -> int:
    """Trains with JIT, by the options of the command line; returns the exit status."""
    return mode_script.main({"jit": train_step})


if __name__ == "__main__":
    sys.exit(main())
