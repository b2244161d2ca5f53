"""The studies as text: tables and sentences, for the console and for the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple, Union

from tabulate import tabulate

import original
from bound_figures import bound_figures
from intervals import CONFIDENCE, Ratio, best_coverage
from modes import LADDER
from range_figures import NEAR, range_figures
from run_text import ABSENT, number
from study_figures import drift_figures, inside_figures, ladder_figures, original_without_growth
from tables import console_style, fill, times

# From this growth on, of the line through the records, a drift is told.
DRIFT_SEEN = 1.1


class Table(NamedTuple):
    """A table; the first column holds names, the others figures."""

    headers: Sequence[str]
    rows: list[Sequence[str]]


Block = Union[Table, str]  # a string is a sentence or a few


def study_text(study: str, result: dict[str, Any], encoding: str | None) -> str:
    """Returns what the benchmark prints of a study.

    Args:
        study: A key of STUDY_BLOCKS.
        result: The object of the study's result file.
        encoding: The console's; without box characters in it, the tables are plain ASCII.
    """
    style, signs = console_style(encoding)
    parts = ["", f"{study.capitalize()}: {STUDY_TITLES[study]}"]
    for block in study_blocks(study, result):
        parts.append(fill(block) if isinstance(block, str) else render(block, style))
    return "\n".join(parts).translate(signs)


def study_blocks(study: str, result: dict[str, Any]) -> list[Block]:
    """Returns a study's tables and sentences, all from its result file's object."""
    return STUDY_BLOCKS[study](result)


def markdown(blocks: list[Block]) -> str:
    """Returns tables and sentences as Markdown.

    What stands right before a table introduces it; other sentences become a list after a table.
    """
    parts, after_table = [], False
    for block, following in zip(blocks, [*blocks[1:], ""]):
        if isinstance(block, Table):
            parts.append(f"\n{render(block, 'pipe')}\n")
        elif isinstance(following, Table):
            parts.append(f"\n{block}")
        else:
            parts.append(f"- {block}" if after_table else block)
        after_table = after_table or isinstance(block, Table)
    return "\n".join(parts).strip()


def render(table: Table, style: str) -> str:
    """Returns a table in one of tabulate's formats."""
    align = ("left", *("right",) * (len(table.headers) - 1))
    return tabulate(table.rows, table.headers, style, colalign=align, disable_numparse=True)


def ratio_text(ratio: Ratio) -> str:
    """Returns a ratio with its interval, if it has one."""
    if ratio.ci95 is None:
        return times(ratio.value)
    return f"{times(ratio.value)} ({ratio.ci95[0]:.2f} to {ratio.ci95[1]:.2f})"


def share_text(ratio: Ratio) -> str:
    """Returns a share in percent with its interval, if it has one."""
    if ratio.ci95 is None:
        return f"{ratio.value:.0%}"
    return f"{ratio.value:.0%} ({100 * ratio.ci95[0]:.0f} to {100 * ratio.ci95[1]:.0f})"


def finding(ratio: Ratio) -> str:
    """Returns what a ratio of times, old over new, says of the new one."""
    if ratio.ci95 is None:
        return f"{times(ratio.value)} as fast (no interval)"
    if ratio.holds_one:
        return f"no measurable difference: {ratio_text(ratio)}"
    if ratio.value > 1:
        return f"{ratio_text(ratio)} as fast"
    inverse = Ratio(1 / ratio.value, (1 / ratio.ci95[1], 1 / ratio.ci95[0]))
    return f"slower: {ratio_text(inverse)} the time"


def step_text(before: dict[str, Any], rung: dict[str, Any]) -> str:
    """Returns what a rung of the ladder saves of the time of the one before it."""
    saved = before["epoch_s"] - rung["epoch_s"]
    ratio = before["to_next"]
    if ratio.holds_one:
        return finding(ratio)
    return f"{'saves' if saved > 0 else 'costs'} {abs(saved):.3f} s; {finding(ratio)}"


def ladder_blocks(result: dict[str, Any]) -> list[Block]:
    """Returns the ladder's table, what each rung changes, and the headline in its parts."""
    figures = ladder_figures(result)
    rungs = figures["rungs"]
    rows = [
        (
            LADDER[rung["mode"]]["label"],
            f"{rung['epoch_s']:.3f} s",
            ratio_text(rung["to_next"]) if rung["to_next"] else "",
            "no: " + ", ".join(rung["failed_gates"]) if rung["failed_gates"] else "yes",
        )
        for rung in rungs
    ]
    table = Table(("Mode", "Time per epoch", "Ratio to the next", "Gates passed"), rows)
    epochs = len(result["modes"][rungs[0]["mode"]]["epochs"])
    processes = sorted({rung["processes"] for rung in rungs})
    fewer = "".join(
        f" ({rung['processes']} of {LADDER[rung['mode']]['label']})"
        for rung in rungs
        if rung["processes"] < processes[-1]
    )
    blocks: list[Block] = [
        table,
        f"Geometric means; processes per mode: {processes[-1]}{fewer}, epochs each: "
        f"{epochs}; in parentheses 95 % intervals over processes.{_coverage(processes)}",
    ]
    blocks += _left_out(result["modes"])
    for before, rung in zip(rungs, rungs[1:]):
        row = LADDER[rung["mode"]]
        blocks.append(f"{row['label']} ({row['change']}): {step_text(before, rung)}.")
    headline, second_pass, alone = (
        ratio_text(figures[key]) for key in ("headline", "second_pass", "jit_alone")
    )
    blocks.append(
        f"Without JIT over with JIT: {headline} = {second_pass} for the eager step's second "
        f"forward pass, times {alone} for JIT alone."
    )
    return blocks


def _left_out(measured: Collection[str]) -> list[Block]:
    """Returns a sentence on the rungs that were not measured, if there are any."""
    labels = [row["label"] for mode, row in LADDER.items() if mode not in measured]
    return [f"Left out: {', '.join(labels)}."] if labels else []


def _coverage(processes: Sequence[int]) -> str:
    """Returns a sentence on the intervals that cannot cover 95 %, after a space; or nothing."""
    few = [n for n in processes if n > 1 and best_coverage(n) < CONFIDENCE]
    return "".join(
        f" An interval from {n} processes covers {best_coverage(n):.0%} at best." for n in few
    )


def range_blocks(result: dict[str, Any]) -> list[Block]:
    """Returns, for each width, the table over batch sizes, the fits and the crossing."""
    blocks: list[Block] = []
    n_processes = len(result["processes"])
    for figures in range_figures(result):
        layers = "-".join(map(str, figures["layer_sizes"]))
        modes = list(figures["step_s"])
        headers = ("Batch", *(SHORT_LABELS[mode] for mode in modes), "Images", "Ratio")
        rows = []
        for i, size in enumerate(figures["batch_sizes"]):
            step_ms = [f"{1000 * figures['step_s'][mode][i]:#.4g}" for mode in modes]
            rate = f"{size / figures['step_s']['jit'][i]:,.0f}"
            rows.append((str(size), *step_ms, rate, ratio_text(figures["ratios"][ONE_PASS][i])))
        blocks.append(
            f"Layers {layers}: milliseconds per step; images per second with JIT; and the time of "
            "the eager step in one pass over that of the jitted one, so what JIT alone does "
            f"(processes: {n_processes}).{_coverage([n_processes])}"
        )
        blocks.append(Table(headers, rows))
        for mode, fit in figures["fits"].items():
            blocks.append(
                f"{LADDER[mode]['label']}: a step takes {fit['dispatch_us']:.0f} us whatever its "
                "batch (Python, dispatch, update of the parameters) and "
                f"{fit['work_us']:.2f} us an image; the model is off by {fit['error']:.0%} "
                "(root mean square)."
            )
        for mode, size in figures["near"].items():
            reached = "at no batch size here" if size is None else f"from batch {size:.0f} on"
            label = LADDER[mode]["label"]
            blocks.append(f"{label} reaches {NEAR:.0%} of the speed with JIT {reached}.")
    return blocks


def bound_blocks(result: dict[str, Any]) -> list[Block]:
    """Returns the floors, each mode's share of them, and each way to scan."""
    figures = bound_figures(result)
    rows = [
        (
            LADDER[mode["mode"]]["label"],
            f"{mode['epoch_s']:.3f} s",
            f"{mode['of_peak'].value:.0%}",
            f"{mode['of_products'].value:.0%}",
            ratio_text(mode["to_jit"]),
        )
        for mode in figures["modes"]
    ]
    blocks: list[Block] = [
        f"Floors (processes: {figures['processes']}): {figures['peak_flops'] / 1e9:.0f} GFLOP/s at "
        "best, for square float32 products; "
        f"{figures['products_flops'] / 1e9:.0f} GFLOP/s at the shapes of the step's own products; "
        f"the parameters are updated at {figures['update_bytes'] / 1e9:.0f} GB/s, so in "
        f"{1e6 * figures['update_s']:.0f} us a step. The table gives, as a share of a mode's "
        "time, what its products take at the peak rate and at that of their own shapes.",
        Table(("Mode", "Epoch", "Of peak", "Of own", "Speed to JIT"), rows),
    ]
    rows = [
        (each["name"], f"{each['epoch_s']:.3f} s", ratio_text(each["to_scan"]))
        for each in figures["tries"]
    ]
    rows += [(name, "refused", ABSENT) for name in figures["refused"]]
    scan = next(mode for mode in figures["modes"] if mode["mode"] == "jit_scan")
    blocks.append(
        f"{LADDER['jit_scan']['label']}: {share_text(scan['of_peak'])} of the peak, "
        f"{share_text(scan['of_products'])} of what the step's own products need, "
        f"{share_text(scan['of_scan_products'])} of what they need with the last layer's weights "
        f"transposed, as they lie here; against the jitted step, {finding(scan['to_jit'])}."
    )
    blocks.append(
        "What was tried on the whole epoch as one program, one change at a time, and the speed "
        f"then (processes: {figures['tries_processes']}):{_coverage([figures['tries_processes']])}"
    )
    blocks.append(Table(("Change", "Epoch", "Speed"), rows))
    return blocks


def inside_blocks(result: dict[str, Any]) -> list[Block]:
    """Returns what a step of each mode does, and what the jitted program holds."""
    figures = inside_figures(result)
    rows = [
        (
            LADDER[mode]["label"],
            f"{of_mode['executions']:.1f}",
            f"{of_mode['python_calls']:.0f}",
            f"{of_mode['first_step_programs']}",
            number(of_mode["step_flops"] and of_mode["step_flops"] / 1e6, "{:.1f}"),
        )
        for mode, of_mode in figures["modes"].items()
    ]
    headers = ("Mode", "Programs", "Python calls", "Compiled", "MFLOP")
    blocks: list[Block] = [
        "A step, counted in its profile: XLA programs run, and Python functions called (the making "
        "of its batch included). Also the programs that the first step compiled, and the work of "
        "the step as one program by XLA's account, before it optimises.",
        Table(headers, rows),
        *_left_out(figures["modes"]),
    ]
    program = figures["program"]
    if program:
        held = ", ".join(f"{n} {opcode}" for opcode, n in program["instructions"].items())
        blocks.append(
            f"The jitted step's program holds {held}; and {program['products']} matrix products, "
            "those within fusions included."
        )
        blocks.append(
            f"Work of a step, by hand: {figures['analytic_flops'] / 1e6:.1f} MFLOP in products, "
            f"and {figures['analytic_bytes'] / 1e6:.1f} MB moved. By XLA's account, before it "
            f"optimises: {_work(program['before_optimisation'])}; after it: "
            f"{_work(program['after_optimisation'])}."
        )
    return blocks


def _work(cost: dict[str, float | None]) -> str:
    flops, moved = (value and value / 1e6 for value in (cost["flops"], cost["bytes_accessed"]))
    return f"{number(flops, '{:.1f}')} MFLOP and {number(moved, '{:.1f}')} MB"


def drift_blocks(result: dict[str, Any]) -> list[Block]:
    """Returns how the eager step changes with the steps taken, and the original's share of it."""
    figures = drift_figures(result)
    rows = [
        (
            f"{arm['jax']}, {arm['part']}",
            f"{1000 * arm['first_s']:.2f} ms",
            f"{1000 * arm['last_s']:.2f} ms",
            f"{arm['growth']:.2f}",
            number(arm["entries_per_step"], "{:.2f}"),
            f"{arm['mb_per_1000_steps']:+.1f}",
        )
        for arm in figures
    ]
    headers = ("JAX, activation", "First", "Last", "Growth", "Entries", "MB")
    n_steps = figures[0]["records"][-1]["steps"]
    return [
        f"The eager step over {n_steps} steps: its time at the first record and at the last one, "
        "on the straight line through all records, their ratio, the entries that jnp.greater's "
        "jit cache gains at a step until it is full, and the MB that RSS gains in 1000 steps.",
        Table(headers, rows),
        *_causes(figures),
        f"The README that this project follows reports {times(original.SPEEDUP)} with JAX "
        f"{original.JAX}. Had each of its eager epochs taken as long as its fastest one, that "
        f"would be {times(original.speedup_without_drift())}: an estimate, and a bound on what the "
        "drift accounts for.",
    ]


def _causes(figures: list[dict[str, Any]]) -> Iterator[str]:
    """Yields what the arms of each version of JAX tell of the cause, and what it would mean."""
    for jax in dict.fromkeys(arm["jax"] for arm in figures):
        arms = {arm["part"]: arm for arm in figures if arm["jax"] == jax}
        if not {"maximum", "nn_relu", "nn_relu, cleared"} <= arms.keys():
            continue
        plain, grown, cleared = (arms[part] for part in ("maximum", "nn_relu", "nn_relu, cleared"))
        sentence = (
            f"JAX {jax}: {grown['entries_per_step']:.2f} new entries a step with jax.nn.relu (the "
            f"network has two), {grown['most_entries']} at most in the cache; "
            f"{plain['entries_per_step']:.2f} with jnp.maximum. The time grows "
            f"by {grown['growth'] - 1:+.0%} and {plain['growth'] - 1:+.0%}"
        )
        if grown["growth"] < DRIFT_SEEN or grown["growth"] <= plain["growth"]:
            yield f"{sentence}: no drift is seen here in so many steps."
            continue
        undone = 1 - (cleared["growth"] - 1) / (grown["growth"] - 1)
        cause = f"the entries account for {min(undone, 1):.0%} of the growth"
        yield (
            f"{sentence}; where that cache is emptied between the records, by "
            f"{cleared['growth'] - 1:+.0%}, so "
            f"{cause if undone > 0 else 'the entries are not the cause'}."
        )
        if jax == original.JAX:
            yield (
                "If the original's eager step grew as it does here with the same version, its "
                f"speedup without that growth would be "
                f"{times(original_without_growth(grown['slope']))}: an estimate that takes the "
                "growth to be a straight line over its 4690 steps."
            )
    yield (
        "In code of your own: compile the whole step, where jax.nn.relu leaves no entry; in a step "
        "that must stay eager, write jnp.maximum(x, 0)."
    )


ONE_PASS = "eager_value_and_grad"
SHORT_LABELS = {"no_jit": "No JIT", ONE_PASS: "1 pass", "jit": "JIT"}
STUDY_TITLES = {
    "ladder": "one change at a time",
    "range": "when does JIT matter?",
    "bound": "how good is the jitted step?",
    "inside": "what a step does",
    "drift": "does the eager step get slower with jax.nn.relu?",
}
STUDY_BLOCKS: dict[str, Callable[[dict[str, Any]], list[Block]]] = {
    "ladder": ladder_blocks,
    "range": range_blocks,
    "bound": bound_blocks,
    "inside": inside_blocks,
    "drift": drift_blocks,
}
