"""The MLP as pure functions on a pytree of parameters.

The parameters are a list with one dict per layer: float32 "weights" of shape (n_in, n_out) and
"biases" of shape (n_out,). No function holds state; all randomness comes from the key passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

LAYER_SIZES = (784, 512, 256, 10)

Params = list[dict[str, jax.Array]]
Activation = Callable[[jax.Array], jax.Array]
LossFn = Callable[[Params, jax.Array, jax.Array], jax.Array]


def init_params(key: jax.Array, layer_sizes: Sequence[int] = LAYER_SIZES) -> Params:
    """Draws the initial parameters: He-normal weights and zero biases.

    Weights have mean 0 and standard deviation sqrt(2 / n_in), which keeps the variance of the
    activations through ReLU layers (He et al., 2015, "Delving Deep into Rectifiers", eq. 10).

    Args:
        key: A JAX PRNG key. The same key gives bit-equal parameters.
        layer_sizes: Number of units of each layer, input first; at least two, each positive.

    Returns:
        One dict per layer with float32 "weights" (n_in, n_out) and "biases" (n_out,).

    Raises:
        ValueError: If layer_sizes has fewer than two entries or one that is not positive.
    """
    if len(layer_sizes) < 2 or min(layer_sizes) < 1:
        raise ValueError(f"layer_sizes needs at least two positive sizes, got {layer_sizes!r}")
    keys = jax.random.split(key, len(layer_sizes) - 1)
    params = []
    for layer_key, n_in, n_out in zip(keys, layer_sizes[:-1], layer_sizes[1:]):
        normal = jax.random.normal(layer_key, (n_in, n_out), dtype=jnp.float32)
        params.append(
            {
                "weights": normal * (2.0 / n_in) ** 0.5,
                "biases": jnp.zeros((n_out,), dtype=jnp.float32),
            }
        )
    return params


def relu(x: jax.Array) -> jax.Array:
    """Returns max(x, 0), in the shape and dtype of x.

    Not jax.nn.relu: its eager derivative adds jit cache entries at every step (see README.md).
    """
    return jnp.maximum(x, 0)


def forward(params: Params, images: jax.Array, activation: Activation = relu) -> jax.Array:
    """Computes the logits.

    Args:
        params: Parameters from init_params.
        images: (n, 784) float32, pixels in [0, 1].
        activation: What follows each layer but the last, elementwise.

    Returns:
        (n, 10) float32 logits; the softmax is left to the loss.
    """
    activations = images
    for layer in params[:-1]:
        activations = activation(activations @ layer["weights"] + layer["biases"])
    return activations @ params[-1]["weights"] + params[-1]["biases"]


def cross_entropy_loss(
    params: Params, images: jax.Array, labels: jax.Array, activation: Activation = relu
) -> jax.Array:
    """Computes the mean softmax cross-entropy.

    log_softmax subtracts the largest logit first, so large logits neither overflow nor give NaN.

    Args:
        params: Parameters from init_params.
        images: (n, 784) float32, pixels in [0, 1].
        labels: (n,) int32 classes, 0 to 9.
        activation: See forward.

    Returns:
        Scalar float32, in nats.
    """
    log_probs = jax.nn.log_softmax(forward(params, images, activation))
    return -jnp.mean(jnp.take_along_axis(log_probs, labels[:, None], axis=1))


def accuracy(params: Params, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Computes the share of images whose largest logit is at the label.

    Args:
        params: Parameters from init_params.
        images: (n, 784) float32, pixels in [0, 1].
        labels: (n,) int32 classes, 0 to 9.

    Returns:
        Scalar float32 in [0, 1].
    """
    return jnp.mean(jnp.argmax(forward(params, images), axis=1) == labels)


def sgd_update(params: Params, grads: Params, learning_rate: float) -> Params:
    """Takes one step of plain gradient descent: p - learning_rate * g for every leaf.

    Args:
        params: Parameters from init_params.
        grads: Gradients, the same pytree as params.
        learning_rate: Step size; no momentum, no weight decay.

    Returns:
        New parameters, the same pytree, shapes and dtypes as params.
    """
    return jax.tree_util.tree_map(lambda p, g: p - learning_rate * g, params, grads)


def count_params(params: Params) -> int:
    """Counts the scalars in all leaves (535,818 for LAYER_SIZES)."""
    return sum(leaf.size for leaf in jax.tree_util.tree_leaves(params))
