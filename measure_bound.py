"""The bound study's measurement: two floors, every mode, and each way to scan, in this process.

A floor is the least time that a step could take: that of its matrix products at the best rate of
this machine, or at the rate that XLA reaches for products of their own shapes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import data_loader
import model
import train_no_jit
import train_with_jit
from config import Config
from steps import place_data, take_steps
from train_variants import SCAN_OPTIONS, SCAN_STATIC, STEPS, scan_epoch
from utils import Tell, Timer

ROUNDS = 3
SHORT_IMAGES = 12_800  # of the training set, in the short form: a hundred steps of 128
PEAK_SIZES = {512: 80, 1024: 12, 2048: 2}  # of square float32 matrices, and products per sample
UPDATES_PER_SAMPLE = 400
# So little that it changes no product, but makes each depend on the one before: XLA would take a
# product out of the loop that is the same in every turn.
TINY = 1e-30
MODE_STEPS = {
    "numpy": STEPS["numpy"],
    "no_jit": train_no_jit.train_step,
    "eager_value_and_grad": STEPS["eager_value_and_grad"],
    "jit": train_with_jit.train_step,
    "jit_donated": STEPS["jit_donated"],
    "jit_scan": STEPS["jit_scan"],
}
SLOW_MODES = ("numpy", "no_jit", "eager_value_and_grad")
SLOW_MODES_STEPS = 50  # instead of a whole epoch
# Each differs from jit_scan in what it names; the last keys are options of XLA's compiler.
TRIES = {
    "images stored as float32": {"as_float32": True},
    "indices checked as jnp.take does by itself": {"out_of_bounds": "fill"},
    "parameters not donated": {"donate": False},
    "copies placed as XLA does by itself": {
        "xla": {"xla_cpu_copy_insertion_use_region_analysis": False}
    },
    "the last layer's weights not transposed": {"last_transposed": False},
    "all five at once: the careless scan": {
        "as_float32": True,
        "out_of_bounds": "fill",
        "donate": False,
        "last_transposed": False,
        "xla": {"xla_cpu_copy_insertion_use_region_analysis": False},
    },
    "all images picked before the first step": {"gather_first": True},
    "two steps in one turn of the loop": {"unroll": 2},
    "four steps in one turn of the loop": {"unroll": 4},
    "XLA: vectors of 512 bits": {"xla": {"xla_cpu_prefer_vector_width": 512}},
    "XLA: concurrency-optimized scheduler": {
        "xla": {"xla_cpu_enable_concurrency_optimized_scheduler": True}
    },
}


class Sample(NamedTuple):
    """One thing to time: what it is, how much work a call is, and the call, which waits."""

    kind: str  # "peak", "products", "scan_products", "update", "mode" or "try"
    name: str
    work: float  # a call's FLOP (of products), bytes (of the update) or images
    call: Callable[[], object]


def measure(
    data: data_loader.Mnist, config: Config, part: str, short: bool, tell: Tell
) -> dict[str, Any]:
    """Times samples in rounds, as a machine's speed changes from minute to minute.

    Each round has an order of its own: a sample may be faster or slower after a certain other one.

    The part "modes" has the floors and the modes, the part "tries" jit_scan and what differs from
    it in one thing.

    Returns:
        "samples": for each its kind, name, work per call, and the seconds of each round; "refused":
        the reason for each try that this version of XLA does not know.
    """
    if short:
        images, labels = data.train_images[:SHORT_IMAGES], data.train_labels[:SHORT_IMAGES]
        data = data._replace(train_images=images, train_labels=labels)
    refused: dict[str, str] = {}
    if part == "modes":
        samples = [*_floors(data, config), *_modes(data, config, MODE_STEPS)]
    else:
        tries, refused = _tries(data, config)
        samples = [*_modes(data, config, ["jit_scan"]), *tries]
    seconds: list[list[float]] = [[] for _ in samples]
    for sample in samples:
        sample.call()  # compiles what is not compiled yet
    rounds = 1 if short else ROUNDS
    for i in range(rounds):
        for position in random.sample(range(len(samples)), len(samples)):
            with Timer() as timer:
                samples[position].call()
            seconds[position].append(timer.seconds)
        tell(i + 1, rounds, part)
    return {
        "samples": [
            {"kind": sample.kind, "name": sample.name, "work": sample.work, "seconds": times}
            for sample, times in zip(samples, seconds)
        ],
        "refused": refused,
    }


def step_products(
    batch_size: int, last_transposed: bool = False
) -> list[tuple[tuple[int, int], tuple[int, int], bool, bool]]:
    """Returns the matrix products of a training step in one forward pass, eight for three layers.

    Args:
        batch_size: Images a step.
        last_transposed: Whether the last layer's weights lie transposed, as in scan_epoch.

    Returns:
        For each the shapes of both factors as they lie in memory, and whether the step takes the
        first one, and the second one, transposed.
    """
    products = []
    widths = model.LAYER_SIZES
    for i in range(1, len(widths)):
        inputs, outputs = (batch_size, widths[i - 1]), (batch_size, widths[i])
        transposed = last_transposed and i == len(widths) - 1
        weights = (widths[i], widths[i - 1]) if transposed else (widths[i - 1], widths[i])
        products.append((inputs, weights, False, transposed))  # forward
        factors = (outputs, inputs) if transposed else (inputs, outputs)
        products.append((*factors, True, False))  # weights' gradient
        if i > 1:  # inputs' gradient, which the images do not need
            products.append((outputs, weights, False, not transposed))
    return products


def count_flops(products: list) -> int:
    """Counts 2 m k n for each product of (m, k) and (k, n)."""
    total = 0
    for (rows, columns), second, _, second_transposed in products:
        n = second[0] if second_transposed else second[1]
        total += 2 * rows * columns * n
    return total


def _floors(data: data_loader.Mnist, config: Config) -> Iterator[Sample]:
    for size, turns in PEAK_SIZES.items():
        square = [((size, size), (size, size), False, False)]
        call = _loop_of_products(square, turns)
        yield Sample("peak", f"{size} x {size}", turns * count_flops(square), call)
    turns = len(data.train_images) // config.batch_size
    for kind, name, last_transposed in (
        ("products", "the step's own products", False),
        ("scan_products", "the same as jit_scan lays them out", True),
    ):
        products = step_products(config.batch_size, last_transposed)
        yield Sample(kind, name, turns * count_flops(products), _loop_of_products(products, turns))

    params = model.init_params(jax.random.key(config.seed))
    n_bytes = sum(leaf.nbytes for leaf in jax.tree_util.tree_leaves(params))
    update = jax.jit(
        lambda params, grads: jax.lax.fori_loop(
            0, UPDATES_PER_SAMPLE, lambda _, new: model.sgd_update(new, grads, TINY), params
        )
    )
    # An update reads parameters and gradients, and writes parameters.
    work = 3 * n_bytes * UPDATES_PER_SAMPLE
    yield Sample(
        "update", "parameters", work, lambda: jax.block_until_ready(update(params, params))
    )


def _loop_of_products(products: list, turns: int) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    firsts, seconds = (
        [jnp.asarray(rng.standard_normal(product[i]), jnp.float32) for product in products]
        for i in (0, 1)
    )

    @jax.jit
    def loop(firsts: list[jax.Array], seconds: list[jax.Array]) -> list[jax.Array]:
        def turn(_: int, firsts: list[jax.Array]) -> list[jax.Array]:
            new = []
            for a, b, (_, _, a_transposed, b_transposed) in zip(firsts, seconds, products):
                product = jnp.dot(a.T if a_transposed else a, b.T if b_transposed else b)
                new.append(a.at[0, 0].add(product[0, 0] * TINY))
            return new

        return jax.lax.fori_loop(0, turns, turn, firsts)

    return lambda: jax.block_until_ready(loop(firsts, seconds))


def _modes(data: data_loader.Mnist, config: Config, modes: Iterable[str]) -> Iterator[Sample]:
    for mode in modes:
        train_step = MODE_STEPS[mode]
        n_steps = SLOW_MODES_STEPS if mode in SLOW_MODES else len(data.train_images)
        n_images = min(n_steps * config.batch_size, len(data.train_images))
        order = data_loader.epoch_order(config.seed, 1, len(data.train_images))[:n_images]
        placed = place_data(train_step, data)

        def call(train_step=train_step, placed=placed, order=order) -> None:  # noqa: ANN001
            params = model.init_params(jax.random.key(config.seed))
            jax.block_until_ready(take_steps(train_step, params, placed, config, order))

        yield Sample("mode", mode, n_images, call)


def _tries(data: data_loader.Mnist, config: Config) -> tuple[list[Sample], dict[str, str]]:
    placed = place_data(STEPS["jit_scan"], data)
    scaled = jax.device_put(data_loader.scale_pixels(data.train_images))
    order = data_loader.epoch_order(config.seed, 1, len(data.train_images))
    samples, refused = [], {}
    for name, changes in TRIES.items():
        changes = dict(changes)
        images = scaled if changes.pop("as_float32", False) else placed.train_images
        donated = "params" if changes.pop("donate", True) else ()
        options = {**SCAN_OPTIONS, **changes.pop("xla", {})}
        scan = jax.jit(
            partial(scan_epoch, **changes), static_argnames=SCAN_STATIC, donate_argnames=donated
        )
        arrays = (images, placed.train_labels, order, config.learning_rate)
        params = model.init_params(jax.random.key(config.seed))
        lowered = scan.lower(params, *arrays, config.batch_size)
        try:
            program = lowered.compile(compiler_options=options)
        except Exception as error:  # JAX has no narrower type for an unknown option
            refused[name] = str(error).splitlines()[0]
            continue

        def call(program=program, arrays=arrays) -> None:  # noqa: ANN001
            params = model.init_params(jax.random.key(config.seed))
            jax.block_until_ready(program(params, *arrays))

        samples.append(Sample("try", name, len(order), call))
    return samples, refused
