"""The view inside: what the running program does in a step, from its own profile and its HLO."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import jax
import numpy as np

import data_loader
import model
import train_no_jit
import train_variants
import train_with_jit
from compiling import CompileCounter, count_flops, first_batch
from config import Config
from steps import place_data, take_steps
from utils import Tell

STEPS_TRACED = 5
STEPS = {
    **train_variants.STEPS,
    "no_jit": train_no_jit.train_step,
    "jit": train_with_jit.train_step,
}
# The profiler's name for one execution of a compiled program, in JAX 0.4.30 to 0.12.
EXECUTION = "Executable::ExecuteHelper"
PYTHON_CALL = "$"  # what the names of Python's function calls begin with
OPERATION = re.compile(r"PjitFunction\((.*)\)")


def measure(
    data: data_loader.Mnist,
    config: Config,
    part: str,
    short: bool,
    tell: Tell,
    trace_dir: Path | None = None,
) -> dict[str, Any]:
    """Counts what some steps of a mode do; of the jitted step, also what its program holds.

    Args:
        data: MNIST.
        config: Batch size, learning rate and seed.
        part: The mode.
        short: Not used: this is short.
        tell: Is told of what was done.
        trace_dir: Where the profile is kept; None for nowhere.

    Returns:
        "first_step_programs" (compiled by the first step), "steps_traced", "executions" and
        "python_calls" in all those steps, "operations" (how often each of JAX's inner functions was
        called in them), "step_flops" and, of the jitted step, "program" and "hlo".
    """
    train_step = STEPS[part]
    placed = place_data(train_step, data)
    compiles = CompileCounter()
    params = model.init_params(jax.random.key(config.seed))
    order = np.arange(STEPS_TRACED * config.batch_size)
    compiled_before = compiles.count
    first = order if part == "jit_scan" else order[: config.batch_size]
    params, losses = take_steps(train_step, params, placed, config, first)
    jax.block_until_ready((params, losses))
    programs = compiles.count - compiled_before
    with tempfile.TemporaryDirectory() as folder:
        folder = trace_dir or Path(folder)
        with jax.profiler.trace(str(folder)):
            jax.block_until_ready(take_steps(train_step, params, placed, config, order))
        events = read_events(folder)
    tell(1, 1, f"{part}, {STEPS_TRACED} steps")
    return {
        "first_step_programs": programs,
        "steps_traced": STEPS_TRACED,
        **count_events(events),
        "step_flops": count_flops(train_step, placed, config),
        **(describe_program(data, config) if part == "jit" else {}),
    }


def read_events(folder: Path) -> list[str]:
    """Returns the names of all events in the newest profile below a folder."""
    newest = max(folder.rglob("*.trace.json.gz"), key=lambda path: path.stat().st_mtime)
    with gzip.open(newest, "rt", encoding="utf-8") as file:
        return [event["name"] for event in json.load(file)["traceEvents"] if "name" in event]


def count_events(names: list[str]) -> dict[str, Any]:
    """Counts executions of programs, calls of Python functions, and JAX's inner functions."""
    operations = Counter(found.group(1) for found in map(OPERATION.fullmatch, names) if found)
    return {
        "executions": sum(EXECUTION in name for name in names),
        "python_calls": sum(name.startswith(PYTHON_CALL) for name in names),
        "operations": dict(operations.most_common()),
    }


def describe_program(data: data_loader.Mnist, config: Config) -> dict[str, Any]:
    """Returns what the jitted step's compiled program holds, by XLA's own account, and its HLO."""
    params = model.init_params(jax.random.key(config.seed))
    batch = first_batch(data, config.batch_size)
    lowered = train_with_jit.train_step.lower(params, *batch, config.learning_rate)
    compiled = lowered.compile()
    hlo = without_paths(compiled.as_text())
    memory = compiled.memory_analysis()
    return {
        "program": {
            "instructions": dict(count_instructions(hlo).most_common()),
            "products": count_products(hlo),
            "before_optimisation": _cost(lowered),
            "after_optimisation": _cost(compiled),
            "argument_bytes": memory.argument_size_in_bytes,
            "output_bytes": memory.output_size_in_bytes,
            "temporary_bytes": memory.temp_size_in_bytes,
        },
        "hlo": hlo,
    }


def without_paths(hlo: str) -> str:
    """Returns HLO text without where in the source each line came from: paths of this machine."""
    hlo = re.sub(r"(?m)^(FileNames|FunctionNames|FileLocations|StackFrames)\n(.+\n)*\n*", "", hlo)
    return re.sub(r", (metadata|frontend_attributes|backend_config)=\{.*", "", hlo)


def count_instructions(hlo: str) -> Counter:
    """Counts the opcodes of the program's entry, what runs in a step; fusions by their kind."""
    entry = re.search(r"(?ms)^ENTRY .*?^\}", hlo).group()
    return _count_opcodes(entry)


def count_products(hlo: str) -> int:
    """Counts the matrix products in the whole program, those within fusions and calls included."""
    library_calls = re.findall(r"custom_call_target=\"[^\"]*(?:matmul|MatMul|dot)", hlo)
    return _count_opcodes(hlo)["dot"] + len(library_calls)


def _count_opcodes(hlo: str) -> Counter:
    lines = re.findall(r"(?m)^\s+(?:ROOT )?%?\S+ = (.*)$", hlo)
    counts: Counter = Counter()
    for line in lines:
        opcode = re.search(r"[\])}] ([a-z][\w-]*)\(", line)
        if opcode:
            kind = re.search(r", kind=k(\w+)", line)
            counts[f"fusion ({kind.group(1)})" if kind else opcode.group(1)] += 1
    return counts


def _cost(program: Any) -> dict[str, float | None]:  # noqa: ANN401 (Lowered or Compiled)
    cost = program.cost_analysis()
    if isinstance(cost, list):  # JAX 0.4: one dict per device
        cost = cost[0]
    return {"flops": cost.get("flops"), "bytes_accessed": cost.get("bytes accessed")}
