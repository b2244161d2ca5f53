"""The training loop: against hand-written NumPy, by counts, and by the order of what it does."""

import gc
import hashlib
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from made_up import N_TEST, N_TRAIN, tiny_mnist
from numpy_network import numpy_loss_and_grads, numpy_params

import compiling
import data_loader
import model
import steps
import train_no_jit
import train_variants
import train_with_jit
import training
from config import Config
from utils import MemoryTracker

CONFIG = Config(epochs=2, batch_size=32, learning_rate=0.1, seed=3)  # batches of 32, 32 and 6
STEPS = {"no_jit": train_no_jit.train_step, "jit": train_with_jit.train_step}
LADDER_STEPS = {**STEPS, **train_variants.STEPS}


def fresh_jitted_step():
    """The jitted step with caches of its own, whatever other tests have compiled."""
    return jax.jit(lambda *arguments: train_with_jit.train_step.__wrapped__(*arguments))


def numpy_training(data, config):
    """Losses and final parameters of the same training in float64 NumPy."""
    params = numpy_params(model.init_params(jax.random.key(config.seed)))
    images = data.train_images / 255
    losses = []
    for epoch in range(1, config.epochs + 1):
        order = data_loader.epoch_order(config.seed, epoch, len(images))
        total = 0.0
        for start in range(0, len(images), config.batch_size):
            used = order[start : start + config.batch_size]
            loss, grads = numpy_loss_and_grads(params, images[used], data.train_labels[used])
            total += loss * len(used)
            for layer, gradient in zip(params, grads):
                for name in layer:
                    layer[name] = layer[name] - config.learning_rate * gradient[name]
        losses.append(total / len(images))
    return losses, params


@pytest.mark.parametrize("mode", LADDER_STEPS)
def test_training_equals_numpy_training(mode):
    data = tiny_mnist()
    expected_losses, expected_params = numpy_training(data, CONFIG)
    params = model.init_params(jax.random.key(CONFIG.seed))
    for epoch, expected_loss in enumerate(expected_losses, start=1):
        params, result = training.train_epoch(LADDER_STEPS[mode], params, data, CONFIG, epoch)
        assert result.loss == pytest.approx(expected_loss, rel=1e-5)
    for layer, expected in zip(params, expected_params):
        for name in ("weights", "biases"):
            np.testing.assert_allclose(layer[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("mode", LADDER_STEPS)
def test_epochs_compile_nothing_and_start_from_the_initial_params(mode):
    data = tiny_mnist()
    run = training.train(LADDER_STEPS[mode], data, CONFIG, MemoryTracker())
    assert run["programs_compiled_in_epochs"] == [0, 0]
    sizes = [32] if mode == "jit_scan" else [32, 6]
    assert [part["batch_size"] for part in run["warmup"]["parts"]] == sizes
    assert run["dtypes"] == ["float32"]
    initial = model.init_params(jax.random.key(CONFIG.seed))
    digest = hashlib.sha256(
        b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree_util.tree_leaves(initial))
    )
    assert run["initial_params_sha256"] == digest.hexdigest()
    # Had the warm-up's steps been kept, the first loss would be another.
    assert run["losses"] == pytest.approx(numpy_training(data, CONFIG)[0], rel=1e-5)


def test_one_step_is_jitted_and_the_other_is_not():
    assert hasattr(STEPS["jit"], "trace")
    assert not hasattr(STEPS["no_jit"], "trace")


def test_eager_steps_leave_no_entries_in_jax_caches():
    # With jax.nn.relu, JAX 0.4.38 and later add two at each step, and the steps get slower.
    params = model.init_params(jax.random.key(0))
    batch = compiling.first_batch(tiny_mnist(), 32)
    sizes = []
    for _ in range(4):
        params, _ = STEPS["no_jit"](params, *batch, 0.01)
        sizes.append(jnp.greater._cache_size())
    assert len(set(sizes)) == 1


def test_jitted_step_has_one_program_for_each_batch_shape():
    step = fresh_jitted_step()
    compiles = compiling.CompileCounter()
    params = model.init_params(jax.random.key(0))
    warmup = compiling.warm_up(step, tiny_mnist(), CONFIG, compiles)
    assert warmup["programs_compiled"] == 2
    assert step._cache_size() == 2
    training.train_epoch(step, params, tiny_mnist(), CONFIG, epoch=1)
    other_rate = Config(batch_size=32, learning_rate=0.5)
    training.train_epoch(step, params, tiny_mnist(), other_rate, epoch=1)
    assert step._cache_size() == 2
    assert compiles.count == 2


def test_a_compile_within_an_epoch_is_counted():
    step = fresh_jitted_step()
    compiles = compiling.CompileCounter()
    params = model.init_params(jax.random.key(0))
    compiling.warm_up(step, tiny_mnist(), CONFIG, compiles)
    before = compiles.count
    training.train_epoch(step, params, tiny_mnist(), Config(batch_size=31), epoch=1)
    assert compiles.count == before + 2  # batches of 31 and 8


def test_warm_up_of_a_batch_size_without_remainder_takes_one_shape():
    compiles = compiling.CompileCounter()
    config = Config(batch_size=35)
    warmup = compiling.warm_up(STEPS["jit"], tiny_mnist(), config, compiles)
    assert [part["batch_size"] for part in warmup["parts"]] == [35]


def test_an_epoch_uses_every_image_once_in_float32():
    data = tiny_mnist()
    seen = []

    def step(params, images, labels, learning_rate):
        assert images.dtype == np.float32 and labels.dtype == np.int32
        seen.extend((image.tobytes(), label) for image, label in zip(images, labels))
        return params, jnp.float32(0)

    training.train_epoch(step, [], data, CONFIG, epoch=1)
    scaled = data.train_images.astype(np.float32) / np.float32(255)
    expected = [(image.tobytes(), label) for image, label in zip(scaled, data.train_labels)]
    assert sorted(seen) == sorted(expected)
    assert seen != expected  # it was shuffled


def test_an_epochs_loss_is_the_mean_over_images_not_over_batches():
    losses = iter([1.0, 1.0, 36.0])  # batches of 32, 32 and 6

    def step(params, images, labels, learning_rate):
        return params, jnp.float32(next(losses))

    _, result = training.train_epoch(step, [], tiny_mnist(), CONFIG, epoch=1)
    assert result.loss == pytest.approx((64 * 1.0 + 6 * 36.0) / N_TRAIN)


class RecordedTimer:
    seconds = cpu_seconds = 1.0

    def __init__(self, events):
        self.events = events

    def __enter__(self):
        self.events.append("start")
        return self

    def __exit__(self, *exception):
        self.events.append("stop")


def test_the_clock_covers_the_batches_and_stops_when_params_and_losses_are_ready(monkeypatch):
    events = []
    monkeypatch.setattr(training, "Timer", lambda: RecordedTimer(events))
    ready, order = jax.block_until_ready, data_loader.epoch_order

    def recorded_ready(tree):
        params, losses = tree
        events.append(("ready", params, len(losses)))
        return ready(tree)

    def recorded_order(*arguments):
        events.append("shuffle")
        return order(*arguments)

    def step(params, images, labels, learning_rate):
        events.append("step")
        return params + 1, jnp.float32(0)

    monkeypatch.setattr(training.jax, "block_until_ready", recorded_ready)
    monkeypatch.setattr(training.data_loader, "epoch_order", recorded_order)
    training.train_epoch(step, 0, tiny_mnist(), CONFIG, epoch=1)
    assert events == ["start", "shuffle", "step", "step", "step", ("ready", 3, 3), "stop"]


class CountingTimer:
    """A clock on which each block takes as many seconds as there were blocks before it."""

    n_blocks = 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.seconds = self.cpu_seconds = float(CountingTimer.n_blocks)
        CountingTimer.n_blocks += 1


@pytest.mark.parametrize(
    "mode, parts",
    [
        # Trace, lower, compile and first run took 0, 1, 2 and 3 s, then 4, 5, 6 and 7 s.
        (
            "jit",
            [(6_000.0, 0.0, 1000.0, 2000.0, 3000.0), (22_000.0, 4000.0, 5000.0, 6000.0, 7000.0)],
        ),
        ("no_jit", [(0.0,), (1000.0,)]),
    ],
)
def test_warm_up_is_the_sum_of_its_parts(monkeypatch, mode, parts):
    monkeypatch.setattr(compiling, "Timer", CountingTimer)
    monkeypatch.setattr(CountingTimer, "n_blocks", 0)
    compiles = compiling.CompileCounter()
    warmup = compiling.warm_up(STEPS[mode], tiny_mnist(), CONFIG, compiles)
    names = ("time_ms", "trace_ms", "lower_ms", "compile_ms", "first_run_ms")
    told = [tuple(part[name] for name in names if name in part) for part in warmup["parts"]]
    assert told == parts
    assert warmup["time_ms"] == sum(part[0] for part in parts)


def test_warm_up_waits_for_each_shapes_result(monkeypatch):
    waited = []
    ready = jax.block_until_ready
    monkeypatch.setattr(
        compiling.jax, "block_until_ready", lambda tree: waited.append(tree) or ready(tree)
    )
    compiles = compiling.CompileCounter()
    compiling.warm_up(STEPS["jit"], tiny_mnist(), CONFIG, compiles)
    assert len(waited) == 2


def test_a_run_tells_its_own_first_and_last_state():
    data = tiny_mnist()
    memory = MemoryTracker()
    run = training.train(STEPS["jit"], data, CONFIG, memory)
    params = model.init_params(jax.random.key(CONFIG.seed))
    images, labels = data.test_images, data.test_labels
    assert run["initial_test_accuracy"] == training.evaluate(params, images, labels)
    for epoch in (1, 2):
        params = training.train_epoch(STEPS["jit"], params, data, CONFIG, epoch)[0]
    assert run["final_params_sha256"] == training.params_sha256(params)
    assert run["test_accuracies"][-1] == training.evaluate(params, images, labels)
    orders = [data_loader.epoch_order(CONFIG.seed, epoch, N_TRAIN) for epoch in (1, 2)]
    hashes = [hashlib.sha256(order.tobytes()).hexdigest() for order in orders]
    assert run["epoch_orders_sha256"] == hashes
    stages = {stage["stage"]: stage for stage in run["memory"]["stages"]}
    training_stage = stages["training"]
    delta = training_stage["peak_mb"] - training_stage["rss_before_mb"]
    assert run["memory"]["delta_mb"] == delta


def test_evaluation_and_progress_stay_outside_the_timed_region(monkeypatch):
    events = []
    for module in (compiling, training):
        monkeypatch.setattr(module, "Timer", lambda: RecordedTimer(events))
    monkeypatch.setattr(training, "say", lambda line: events.append(line.split()[0]))
    monkeypatch.setattr(training, "evaluate", lambda *_: events.append("evaluate") or 0.5)
    training.train(STEPS["jit"], tiny_mnist(), CONFIG, MemoryTracker())
    # For each batch shape: trace, lower, compile, and the first run.
    warm_up = [*2 * 4 * ["start", "stop"], "evaluate", "warm-up"]
    epoch = ["start", "stop", "evaluate", "epoch"]
    assert events == warm_up + 2 * epoch


def test_the_host_runs_ahead_by_a_bounded_number_of_steps(monkeypatch):
    in_flight, most = set(), 0

    class Loss:
        def __init__(self):
            in_flight.add(self)

        def __float__(self):
            return 0.0

    def step(params, images, labels, learning_rate):
        nonlocal most
        loss = Loss()
        most = max(most, len(in_flight))
        return params, loss

    def ready(tree):
        if isinstance(tree, Loss):  # at the end it is all parameters and losses
            in_flight.remove(tree)

    monkeypatch.setattr(steps.jax, "block_until_ready", ready)
    training.train_epoch(step, [], tiny_mnist(), Config(batch_size=1), epoch=1)
    assert most == steps.STEPS_IN_FLIGHT + 1


def test_training_keeps_no_parameters_of_earlier_epochs():
    # 2 MB an epoch would be in the memory figures of a long training.
    held = []

    def step(params, images, labels, learning_rate):
        held.append(weakref.ref(params))
        return Params(), jnp.float32(0)

    class Params(list):
        """A pytree leaf of no array type, that can be weakly referenced."""

    params = Params()
    results = []
    for epoch in range(1, 4):
        params, result = training.train_epoch(step, params, tiny_mnist(), CONFIG, epoch)
        results.append(result)
    gc.collect()
    assert sum(reference() is not None for reference in held) == 0


def test_evaluation_equals_numpy_also_with_a_last_chunk_that_is_smaller(monkeypatch):
    monkeypatch.setattr(training, "EVALUATION_CHUNK", 8)
    data = tiny_mnist()
    params = model.init_params(jax.random.key(1))
    activations = data.test_images / 255
    for layer in numpy_params(params)[:-1]:
        activations = np.maximum(activations @ layer["weights"] + layer["biases"], 0)
    last = numpy_params(params)[-1]
    predicted = (activations @ last["weights"] + last["biases"]).argmax(axis=1)
    n_correct = int((predicted == data.test_labels).sum())
    assert 0 < n_correct < N_TEST
    assert training.evaluate(params, data.test_images, data.test_labels) == n_correct / N_TEST


def test_both_modes_see_the_same_batches_and_end_alike():
    runs = [training.train(STEPS[m], tiny_mnist(), CONFIG, MemoryTracker()) for m in STEPS]
    assert runs[0]["epoch_orders_sha256"] == runs[1]["epoch_orders_sha256"]
    assert len(set(runs[0]["epoch_orders_sha256"])) == CONFIG.epochs
    assert runs[0]["losses"] == pytest.approx(runs[1]["losses"], rel=1e-5)
    assert runs[0]["test_accuracies"] == runs[1]["test_accuracies"]
