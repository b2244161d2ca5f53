"""The modes: the two that the benchmark compares, and all rungs of the ladder between them."""

from __future__ import annotations

# In the order of the ladder. A mode's name is that of its result file; its label stands in tables
# and plots, its phrase in sentences; change is what differs from the rung before. forward_passes is
# how often its step computes the loss; by_xla is false where no operation runs in XLA. A row's
# script may train several modes: then its second word tells which, and is the function's name.
# every, where it is given, lets a slow rung run in every so many blocks of the ladder alone.
# weight is about how long an epoch takes, in any unit: for the estimate of the progress bar alone.
LADDER = {
    "numpy": {
        "label": "NumPy",
        "phrase": "in NumPy",
        "script": "train_variants.py numpy",
        "change": "forward and backward pass written by hand, no JAX",
        "forward_passes": 1,
        "by_xla": False,
        "weight": 1,
    },
    "disable_jit": {
        "label": "disable_jit",
        "phrase": "under jax.disable_jit",
        "script": "train_variants.py disable_jit",
        "change": "the eager step, JAX's own inner jits taken apart, too",
        "forward_passes": 2,
        "by_xla": True,
        "weight": 10,
        "every": 3,
    },
    "no_jit": {
        "label": "Without JIT",
        "phrase": "without JIT",
        "script": "train_no_jit.py",
        "change": "the eager step: gradient, then the loss in a second forward pass",
        "forward_passes": 2,
        "by_xla": True,
        "weight": 2.5,
    },
    "eager_value_and_grad": {
        "label": "Eager, one pass",
        "phrase": "without JIT in one forward pass",
        "script": "train_variants.py eager_value_and_grad",
        "change": "loss and gradient share one forward pass",
        "forward_passes": 1,
        "by_xla": True,
        "weight": 2.2,
    },
    "jit": {
        "label": "With JIT",
        "phrase": "with JIT",
        "script": "train_with_jit.py",
        "change": "the same step, compiled: JIT alone",
        "forward_passes": 1,
        "by_xla": True,
        "weight": 0.5,
    },
    "jit_donated": {
        "label": "JIT, donated",
        "phrase": "with JIT and donated parameters",
        "script": "train_variants.py jit_donated",
        "change": "the new parameters may take the old ones' memory",
        "forward_passes": 1,
        "by_xla": True,
        "weight": 0.5,
    },
    "jit_scan": {
        "label": "JIT, whole epoch",
        "phrase": "with JIT over a whole epoch",
        "script": "train_variants.py jit_scan",
        "change": "an epoch is one program (lax.scan), data on the device; tuned, see the bound",
        "forward_passes": 1,
        "by_xla": True,
        "weight": 0.5,
    },
}
# The benchmark's own two, in the order of its columns.
MODES = {mode: LADDER[mode] for mode in ("no_jit", "jit")}


START_WEIGHT = 4  # of a process before its first epoch and after its last one


def process_weight(mode: str, epochs: int) -> float:
    """Returns about how long a process of a mode takes, in the unit of the rows' weights."""
    return START_WEIGHT + epochs * LADDER[mode]["weight"]


def modes_of(script: str) -> list[str]:
    """Returns the modes that a script trains."""
    return [mode for mode, row in LADDER.items() if row["script"].split()[0] == script]
