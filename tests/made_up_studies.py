"""Made-up results of the studies, with known constants."""

from made_up import ENVIRONMENT, make_mode, make_run

from modes import LADDER

CONFIG = {
    "epochs": 10,
    "batch_size": 128,
    "learning_rate": 0.01,
    "seed": 0,
    "layer_sizes": [784, 512, 256, 10],
}
EPOCH_S = {
    "numpy": 1.0,
    "disable_jit": 10.0,
    "no_jit": 3.0,
    "eager_value_and_grad": 2.0,
    "jit": 0.5,
    "jit_donated": 0.5,
    "jit_scan": 0.4,
}
STEP_FLOPS = {1: 308_150_272, 2: 445_120_512}  # counted by hand, by forward passes
BATCH_SIZES = [1, 8, 32, 128, 512, 2048, 8192]
# Dispatch and work per image, in microseconds.
MODEL = {"no_jit": (4000.0, 20.0), "eager_value_and_grad": (3000.0, 11.0), "jit": (100.0, 10.0)}
PEAK, PRODUCTS, UPDATE = 400e9, 350e9, 60e9  # FLOP/s, FLOP/s, bytes/s


def study(name, **raw):
    head = {"schema_version": 1, "study": name, "status": "complete", "short": False}
    return {**head, "failures": [], **raw}


def process(part, **raw):
    return {"part": part, "config": dict(CONFIG), "environment": dict(ENVIRONMENT), **raw}


def make_ladder(n=6, **epoch_s):
    modes = {}
    for mode in LADDER:
        flops = STEP_FLOPS[LADDER[mode]["forward_passes"]] if LADDER[mode]["by_xla"] else None
        seconds = {**EPOCH_S, **epoch_s}[mode]
        # The same noise in every block of one process each, so that ratios are exact.
        runs = [make_run([seconds * (1 + 0.01 * i)] * 2, step_flops=flops) for i in range(n)]
        modes[mode] = make_mode(mode, *runs, step_flops=flops)
    return study("ladder", modes=modes)


def make_range(n=3):
    processes = []
    for i in range(n):
        cells = [
            {
                "width_factor": factor,
                "layer_sizes": [784, round(512 * factor), round(256 * factor), 10],
                "batch_size": size,
                "mode": mode,
                # The median over rounds is the middle one.
                "step_s": [
                    1e-6 * (dispatch + work * factor * size) * (1 + 0.01 * i) * noise
                    for noise in (0.9, 1.0, 1.5)
                ],
            }
            for factor in (0.25, 1, 4)
            for size in BATCH_SIZES
            for mode, (dispatch, work) in MODEL.items()
        ]
        processes.append(process("all", cells=cells))
    return study("range", processes=processes)


def make_bound(n=6):
    epoch_flops = 308_150_272 * 60_000 / 128
    samples = [
        ("peak", "512 x 512", PEAK / 2, 0.5 / 0.9),  # 0.9 of the peak
        ("peak", "1024 x 1024", PEAK, 1.0),
        ("products", "the step's own products", PRODUCTS * 0.4, 0.4),
        ("scan_products", "the same as jit_scan lays them out", PRODUCTS * 0.5, 0.4),
        ("update", "parameters", UPDATE * 0.1, 0.1),
        ("mode", "no_jit", 12_800, 3.0 * 12_800 / 60_000),
        ("mode", "jit", 60_000, 0.5),
        ("mode", "jit_scan", 60_000, epoch_flops / PRODUCTS / 0.95),
        ("try", "two steps in one turn of the loop", 60_000, 2 * epoch_flops / PRODUCTS / 0.95),
    ]
    parts = {
        "modes": [sample for sample in samples if sample[0] != "try"],
        "tries": [sample for sample in samples if sample[1] == "jit_scan" or sample[0] == "try"],
    }
    processes = [
        process(
            part,
            samples=[
                {
                    "kind": kind,
                    "name": name,
                    "work": work,
                    "seconds": [seconds * (1 + 0.01 * i) * noise for noise in (0.9, 1.0, 1.5)],
                }
                for kind, name, work, seconds in parts[part]
            ],
            refused={"XLA: an option": "no such option"} if part == "tries" else {},
        )
        for i, part in [*((i, "modes") for i in range(n)), *((i, "tries") for i in range(3))]
    ]
    return study("bound", processes=processes)


def make_inside():
    program = {
        "instructions": {"fusion (Loop)": 25, "dot": 3},
        "products": 8,
        "before_optimisation": {"flops": 310e6, "bytes_accessed": 34e6},
        "after_optimisation": {"flops": None, "bytes_accessed": 16.6e6},
    }
    programs = {"numpy": 0, "disable_jit": 985, "no_jit": 320, "eager_value_and_grad": 260}
    processes = []
    for mode in LADDER:
        executions = programs.get(mode, 5)
        counts = {"steps_traced": 5, "executions": executions, "python_calls": 100 * executions}
        further = {"program": program} if mode == "jit" else {}
        processes.append(
            process(mode, **counts, first_step_programs=63, step_flops=310e6, **further)
        )
    return study("inside", processes=processes)


def make_drift(growth=0.5, steps=1000):
    """Two versions of JAX; nn_relu's step grows by this share per 1000 steps."""
    processes = []
    for jax in ("0.4.38", "0.12.0"):
        for part, entries, slope in (
            ("maximum", 0, 0.0),
            ("nn_relu", 2, growth),
            ("nn_relu, cleared", 0, 0.0),
        ):
            records = [
                {
                    "steps": at,
                    "step_s": 0.005 * (1 + slope * (at - 100) / 1000),
                    "rss_mb": 500 + 80 * entries / 2 * at / 1000,
                    "greater_cache_entries": entries * at,
                }
                for at in range(100, steps + 101, 100)
            ]
            of_version = process(part, records=records)
            of_version["environment"]["jax"] = jax
            processes.append(of_version)
    return study("drift", processes=processes)


STUDIES = {
    "ladder": make_ladder,
    "range": make_range,
    "bound": make_bound,
    "inside": make_inside,
    "drift": make_drift,
}
