"""The model against a hand-written NumPy network, finite differences and fixed counts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_network import numpy_loss_and_grads, numpy_params

import model

SMALL_LAYERS = (7, 6, 5, 4)


def make_batch(n, n_inputs, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    images = rng.random((n, n_inputs), dtype=np.float32)
    labels = rng.integers(0, n_classes, n).astype(np.int32)
    return images, labels


def relative_error(actual, expected):
    return np.linalg.norm(actual - expected) / np.linalg.norm(expected)


def test_full_size_model_has_the_published_number_of_parameters():
    params = model.init_params(jax.random.key(0))
    assert model.count_params(params) == 535_818
    shapes = [(layer["weights"].shape, layer["biases"].shape) for layer in params]
    assert shapes == [((784, 512), (512,)), ((512, 256), (256,)), ((256, 10), (10,))]
    assert {leaf.dtype for leaf in jax.tree_util.tree_leaves(params)} == {jnp.dtype("float32")}


def test_init_is_he_normal_with_zero_biases():
    params = model.init_params(jax.random.key(1))
    for layer in params:
        n_in, n_out = layer["weights"].shape
        weights = np.asarray(layer["weights"], np.float64)
        he_std = np.sqrt(2 / n_in)
        # Five standard errors of a mean and of a standard deviation of n normal numbers.
        assert abs(weights.mean()) < 5 * he_std / np.sqrt(n_in * n_out)
        assert abs(weights.std() / he_std - 1) < 5 / np.sqrt(2 * n_in * n_out)
        assert not np.asarray(layer["biases"]).any()


def test_init_depends_on_the_key_alone():
    def leaves(seed):
        return jax.tree_util.tree_leaves(model.init_params(jax.random.key(seed)))

    assert [leaf.tobytes() for leaf in map(np.asarray, leaves(3))] == [
        leaf.tobytes() for leaf in map(np.asarray, leaves(3))
    ]
    weights = [leaf for leaf in leaves(3) if leaf.ndim == 2]
    other_weights = [leaf for leaf in leaves(4) if leaf.ndim == 2]
    assert all((a != b).any() for a, b in zip(weights, other_weights))


def test_layers_draw_different_numbers():
    first, second = model.init_params(jax.random.key(0), (8, 8, 8))
    assert (first["weights"] != second["weights"]).any()


@pytest.mark.parametrize("layer_sizes", [(), (784,), (784, 0, 10), (784, -1)])
def test_impossible_layer_sizes_are_refused(layer_sizes):
    with pytest.raises(ValueError, match="layer_sizes"):
        model.init_params(jax.random.key(0), layer_sizes)


@pytest.mark.parametrize("batch_size", [1, 96, 128])
def test_loss_and_every_gradient_equal_the_numpy_network(batch_size):
    params = model.init_params(jax.random.key(0))
    images, labels = make_batch(batch_size, 784, 10)
    loss, grads = jax.value_and_grad(model.cross_entropy_loss)(params, images, labels)
    expected_loss, expected_grads = numpy_loss_and_grads(
        numpy_params(params), images.astype(np.float64), labels
    )
    assert loss.dtype == jnp.float32
    assert abs(float(loss) / expected_loss - 1) < 1e-5
    for layer, expected_layer in zip(grads, expected_grads):
        for name in ("weights", "biases"):
            assert layer[name].dtype == jnp.float32
            assert relative_error(np.asarray(layer[name], np.float64), expected_layer[name]) < 1e-5


def test_gradient_equals_finite_differences_in_float64():
    # jax.experimental.enable_x64 and jax.enable_x64 exist in different versions; this is in all.
    jax.config.update("jax_enable_x64", True)
    try:
        params = jax.tree_util.tree_map(
            lambda leaf: jnp.asarray(leaf, jnp.float64),
            model.init_params(jax.random.key(0), SMALL_LAYERS),
        )
        images, labels = make_batch(9, SMALL_LAYERS[0], SMALL_LAYERS[-1])
        images = images.astype(np.float64)
        leaves, treedef = jax.tree_util.tree_flatten(params)
        flat = np.concatenate([np.ravel(leaf) for leaf in leaves])
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]

        def loss_at(vector):
            parts = [p.reshape(leaf.shape) for p, leaf in zip(np.split(vector, ends), leaves)]
            tree = jax.tree_util.tree_unflatten(treedef, [jnp.asarray(p) for p in parts])
            return float(model.cross_entropy_loss(tree, images, labels))

        step = 1e-6
        numeric = np.empty_like(flat)
        for i in range(flat.size):
            shift = np.zeros_like(flat)
            shift[i] = step
            numeric[i] = (loss_at(flat + shift) - loss_at(flat - shift)) / (2 * step)
        grads = jax.grad(model.cross_entropy_loss)(params, images, labels)
        analytic = np.concatenate([np.ravel(g) for g in jax.tree_util.tree_leaves(grads)])
        assert analytic.dtype == np.float64
        assert relative_error(analytic, numeric) < 1e-7
    finally:
        jax.config.update("jax_enable_x64", False)


def test_huge_logits_give_finite_loss_and_gradients():
    # One layer with weights of +-1e4: the logits are +-1e4, where a naive exp overflows.
    weights = jnp.asarray([[1e4, -1e4, 0.0]], jnp.float32)
    params = [{"weights": weights, "biases": jnp.zeros(3, jnp.float32)}]
    images = jnp.ones((2, 1), jnp.float32)
    labels = jnp.asarray([0, 1], jnp.int32)
    loss, grads = jax.value_and_grad(model.cross_entropy_loss)(params, images, labels)
    # The first image is right with certainty (loss 0), the second wrong by 2e4 nats.
    assert float(loss) == pytest.approx(1e4)
    np.testing.assert_allclose(grads[0]["biases"], [0.5, -0.5, 0.0])
    np.testing.assert_allclose(grads[0]["weights"], [[0.5, -0.5, 0.0]])


def test_accuracy_counts_the_largest_logit():
    params = [{"weights": jnp.eye(3), "biases": jnp.zeros(3)}]
    images = jnp.asarray([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0.2, 0.9, 0.1]])
    assert float(model.accuracy(params, images, jnp.asarray([0, 1, 0, 1]))) == 0.75


def test_sgd_update_moves_against_the_gradient_and_keeps_its_inputs():
    params = [{"weights": jnp.asarray([[1.0, 2.0]]), "biases": jnp.asarray([3.0, 4.0])}]
    grads = [{"weights": jnp.asarray([[10.0, -10.0]]), "biases": jnp.asarray([0.0, 1.0])}]
    updated = model.sgd_update(params, grads, 0.1)
    np.testing.assert_allclose(updated[0]["weights"], [[0.0, 3.0]])
    np.testing.assert_allclose(updated[0]["biases"], [3.0, 3.9])
    np.testing.assert_array_equal(params[0]["weights"], [[1.0, 2.0]])


def test_one_numpy_sgd_step_equals_one_jax_step():
    params = model.init_params(jax.random.key(2))
    images, labels = make_batch(128, 784, 10, seed=2)
    grads = jax.grad(model.cross_entropy_loss)(params, images, labels)
    updated = model.sgd_update(params, grads, 0.01)
    reference = numpy_params(params)
    _, reference_grads = numpy_loss_and_grads(reference, images.astype(np.float64), labels)
    for layer, old, gradient in zip(updated, reference, reference_grads):
        for name in ("weights", "biases"):
            expected = old[name] - 0.01 * gradient[name]
            assert np.abs(np.asarray(layer[name]) - expected).max() < 1e-6
