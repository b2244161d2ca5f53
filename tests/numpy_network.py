"""The network written out by hand in NumPy: the source that model and training are held against."""

import numpy as np


def numpy_params(params, dtype=np.float64):
    return [{name: np.asarray(leaf, dtype) for name, leaf in layer.items()} for layer in params]


def numpy_loss_and_grads(params, images, labels):
    """Forward and backward pass written out by hand; everything in the dtype of its arguments."""
    activations = [images]
    for layer in params[:-1]:
        pre = activations[-1] @ layer["weights"] + layer["biases"]
        activations.append(np.where(pre > 0, pre, 0))
    logits = activations[-1] @ params[-1]["weights"] + params[-1]["biases"]

    n = len(labels)
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs = exps / exps.sum(axis=1, keepdims=True)
    loss = -np.mean(np.log(probs[np.arange(n), labels]))

    delta = probs.copy()
    delta[np.arange(n), labels] -= 1
    delta /= n
    grads = []
    for layer, inputs in zip(reversed(params), reversed(activations)):
        grads.insert(0, {"weights": inputs.T @ delta, "biases": delta.sum(axis=0)})
        delta = (delta @ layer["weights"].T) * (inputs > 0)
    return loss, grads
