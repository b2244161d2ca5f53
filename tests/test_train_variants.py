"""The ladder's further modes: what sets each apart, beside the training that all share."""

import jax
import numpy as np
import pytest
from made_up import STEP_FLOPS, tiny_mnist
from numpy_network import numpy_loss_and_grads, numpy_params

import compiling
import model
import train_no_jit
import train_variants
import train_with_jit
from config import REPOSITORY, Config
from modes import LADDER, modes_of
from steps import place_data, take_steps

STEPS = {
    **train_variants.STEPS,
    "no_jit": train_no_jit.train_step,
    "jit": train_with_jit.train_step,
}
CONFIG = Config(batch_size=32)


def fresh_params():
    return model.init_params(jax.random.key(0))


def test_every_rung_is_a_function_of_its_name_in_a_script_that_is_there():
    assert list(LADDER) == [
        "numpy",
        "disable_jit",
        "no_jit",
        "eager_value_and_grad",
        "jit",
        "jit_donated",
        "jit_scan",
    ]
    assert STEPS.keys() == LADDER.keys()
    for mode, row in LADDER.items():
        script, *words = row["script"].split()
        assert (REPOSITORY / script).is_file()
        assert words == ([mode] if len(modes_of(script)) > 1 else [])


def test_numpy_step_equals_the_float64_network():
    images, labels = compiling.first_batch(tiny_mnist(), 32)
    params, loss = train_variants.numpy(fresh_params(), images, labels, 0.5)
    expected = numpy_params(fresh_params())
    expected_loss, grads = numpy_loss_and_grads(expected, images.astype(float), labels)
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    for layer, before, gradient in zip(params, expected, grads):
        for name in layer:
            assert type(layer[name]) is np.ndarray and layer[name].dtype == np.float32
            np.testing.assert_allclose(layer[name], before[name] - 0.5 * gradient[name], atol=1e-6)


@pytest.mark.parametrize("mode", [mode for mode, row in LADDER.items() if row["by_xla"]])
def test_work_of_a_step_is_that_of_its_forward_passes(mode):
    data = place_data(STEPS[mode], big_mnist())
    flops = compiling.count_flops(STEPS[mode], data, Config(batch_size=128))
    passes = {1: "jit", 2: "no_jit"}[LADDER[mode]["forward_passes"]]
    assert flops == pytest.approx(STEP_FLOPS[passes], rel=0.02)


def big_mnist():
    """Enough images for a whole batch of 128."""
    data = tiny_mnist()
    images, labels = np.tile(data.train_images, (3, 1)), np.tile(data.train_labels, 3)
    return data._replace(train_images=images, train_labels=labels)


def test_xla_knows_no_work_of_the_numpy_step():
    assert compiling.count_flops(STEPS["numpy"], tiny_mnist(), CONFIG) is None


def test_disable_jit_takes_jaxs_own_inner_jits_apart():
    batch = compiling.first_batch(tiny_mnist(), 32)
    compiles = compiling.CompileCounter()
    counts = []
    for mode in ("no_jit", "disable_jit"):
        jax.clear_caches()
        before = compiles.count
        STEPS[mode](fresh_params(), *batch, 0.1)
        counts.append(compiles.count - before)
    assert counts[0] != counts[1]
    assert not jax.config.jax_disable_jit


def test_eager_value_and_grad_is_the_jitted_step_itself(monkeypatch):
    monkeypatch.setattr(train_with_jit, "sgd_update", lambda *_: "updated")
    batch = compiling.first_batch(tiny_mnist(), 32)
    assert train_variants.eager_value_and_grad(fresh_params(), *batch, 0.1)[0] == "updated"


@pytest.mark.parametrize("mode", STEPS)
def test_only_the_donating_modes_use_up_their_parameters(mode):
    params = fresh_params()
    data = place_data(STEPS[mode], tiny_mnist())
    order = np.arange(70)
    jax.block_until_ready(take_steps(STEPS[mode], params, data, CONFIG, order))
    dead = [leaf.is_deleted() for leaf in jax.tree_util.tree_leaves(params)]
    assert all(dead) if mode in ("jit_donated", "jit_scan") else not any(dead)


def test_a_whole_epoch_is_one_program_and_follows_the_order():
    data = place_data(STEPS["jit_scan"], tiny_mnist())
    assert isinstance(data.train_images, jax.Array)
    jax.clear_caches()
    fresh_params()  # its own programs are not counted
    compiles = compiling.CompileCounter()
    order = np.random.default_rng(1).permutation(70)
    params, losses = take_steps(STEPS["jit_scan"], fresh_params(), data, CONFIG, order)
    assert compiles.count == 1 and losses.shape == (3,)
    take_steps(STEPS["jit_scan"], params, data, CONFIG, order[::-1])
    assert compiles.count == 1
    expected = take_steps(STEPS["jit"], fresh_params(), tiny_mnist(), CONFIG, order)
    np.testing.assert_allclose(losses, expected[1], rtol=1e-5)


@pytest.mark.parametrize(
    "choice",
    [
        {"last_transposed": False},
        {"gather_first": True},
        {"unroll": 2},
        {"out_of_bounds": "fill"},
    ],
)
def test_the_ways_to_scan_give_one_result(choice):
    data = tiny_mnist()
    arguments = (data.train_images, data.train_labels, np.arange(70), 0.1, 16)
    params, losses = train_variants.scan_epoch(fresh_params(), *arguments)
    other_params, other_losses = train_variants.scan_epoch(fresh_params(), *arguments, **choice)
    np.testing.assert_allclose(losses, other_losses, rtol=1e-6)
    for leaf, other in zip(*map(jax.tree_util.tree_leaves, (params, other_params))):
        np.testing.assert_allclose(leaf, other, atol=1e-6)
