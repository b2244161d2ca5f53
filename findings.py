"""The original's figures beside ours, and which of its five findings hold here, by the data."""

from __future__ import annotations

from typing import Any

import original
from comparison import FASTER, NO_DIFFERENCE, SLOWER
from gates import drift
from intervals import Ratio, unpaired_ratio
from modes import MODES
from range_figures import cost_figures, range_figures
from run_text import SUMMARY_ROWS, number
from study_figures import inside_figures, ladder_figures
from study_tables import ONE_PASS, Table, ratio_text, render
from tables import times

Results = dict[str, Any]  # the object of the benchmark's result file
Studies = dict[str, dict[str, Any]]  # those of the studies that there are, by name
# Below this share of the time that a training saves, its warm-up is called negligible.
NEGLIGIBLE = 0.05


def original_section(results: Results, studies: Studies) -> str:
    """Returns the original's figures beside ours, and why they differ."""
    rows = []
    for mode, row in MODES.items():
        for name, text, _ in SUMMARY_ROWS:
            cited, here = text(original.MODES[mode]), text(results[mode])
            rows.append((f"{name}, {row['phrase']}", cited, here))
    speedup = number(results["comparison"]["speedup"], "{:.2f}\N{MULTIPLICATION SIGN}")
    rows.append(("Speedup", times(original.SPEEDUP), speedup))
    lines = [f"- {reason}" for reason in _reasons(results, studies)]
    table = render(Table(("Figure", "Original", "Here"), rows), "pipe")
    title = "## The original's figures beside ours"
    return "\n".join([f"{title}\n", table, "\nWhy they may differ:\n", *lines])


def _reasons(results: Results, studies: Studies) -> list[str]:
    environment = results["jit"]["environment"]
    cited = original.MODES["no_jit"]["epoch_times_s"]
    reasons = [
        f"Machine: the original names none; ours is {environment['cpu_model']} with "
        f"{environment['cores_usable']} usable cores.",
        f"Version: the original has JAX {original.JAX}; ours is {environment['jax']}.",
        *_configuration(results),
        f"Drift: the original's eager epochs take {min(cited):.3f} s at best and {cited[-1]:.3f} s "
        f"at last. Had each taken as long as its fastest, its speedup would be "
        f"{times(original.speedup_without_drift())} instead of {times(original.SPEEDUP)}: an "
        "estimate, and a bound, as the rest may be noise.",
    ]
    growth = drift(results["no_jit"])
    if growth:
        reasons.append(
            f"Here an eager epoch changes by {growth['slope_per_epoch']:+.2%} from one to the "
            f"next, and the last takes {growth['last_over_second']:.2f} times the second."
        )
    if "ladder" in studies:
        second_pass = ladder_figures(studies["ladder"])["second_pass"]
        reasons.append(
            "Second forward pass: in both, the eager step has one more than the jitted step; here "
            f"it makes {ratio_text(second_pass)} of the ratio."
        )
    reasons.append(
        "Memory: the original trains both modes in one process, so that the second one's peak "
        "holds what the first one left; here each run has a process of its own."
    )
    return reasons


def _configuration(results: Results) -> list[str]:
    config = results["jit"]["config"]
    pairs = {
        "epochs": original.EPOCHS,
        "batch_size": original.BATCH_SIZE,
        "learning_rate": original.LEARNING_RATE,
    }
    other = [
        f"{key} {config[key]}, not {value}" for key, value in pairs.items() if config[key] != value
    ]
    return [f"Configuration: {'; '.join(other)}."] if other else []


def finding_sections(results: Results, studies: Studies) -> list[str]:
    """Returns a section for the five findings, each with the figure that decides it."""
    makers = (_faster, _same_quality, _warm_up, _memory, _best_practice)
    parts = ["## The original's five findings"]
    for i, make in enumerate(makers, start=1):
        claim, verdict, figures = make(results, studies)
        parts.append(f"{i}. *{claim}* **{verdict}** {figures}")
    kernel = _one_kernel(studies)
    if kernel:
        parts.append(f"Also: *the compiled step is one kernel, with no Python at all.* {kernel}")
    return ["\n\n".join(parts)]


def _faster(results: Results, studies: Studies) -> tuple[str, str, str]:
    claim = f"JIT is {times(original.SPEEDUP)} as fast on the CPU, and more so on a GPU or TPU."
    comparison = results["comparison"]
    if comparison["speedup"] is None:
        return claim, "Not decided:", "; ".join(comparison["warnings"]) + "."
    figures = ratio_text(Ratio(comparison["speedup"], comparison["speedup_ci95"]))
    verdict = {
        FASTER: "Faster here, too:",
        SLOWER: "Does not hold here:",
        NO_DIFFERENCE: "Does not hold here, as there is no measurable difference:",
        None: "Not decided, as one process gives no interval:",
    }[comparison["finding"]]
    device = results["jit"]["environment"]["device"]
    return claim, verdict, f"the ratio is {figures}. Only the {device.upper()} was measured."


def _same_quality(results: Results, studies: Studies) -> tuple[str, str, str]:
    claim = "Both modes end alike, and JIT has no effect on numerical results."
    losses = [results[mode]["final_loss"] for mode in MODES]
    accuracies = [results[mode]["final_test_accuracy"] for mode in MODES]
    names = ("same parameters after one step", "same epoch losses", "same final accuracy")
    failed = [
        gate["name"]
        for gate in results["comparison"]["gates"]
        if gate["name"] in names and gate["passed"] is False
    ]
    if None in losses or failed:
        return claim, "Does not hold here:", f"failed gates: {', '.join(failed)}."
    step = max(run["first_step_difference"] for run in results["jit"]["runs"])
    verdict = "Alike within rounding, but not equal:" if step > 0 else "Holds:"
    return (
        claim,
        verdict,
        f"final losses {losses[0]:.4f} and {losses[1]:.4f}, accuracies {accuracies[0]:.2%} and "
        f"{accuracies[1]:.2%}; after one step from equal parameters the largest difference of a "
        f"parameter is {step:.1e}.",
    )


def _warm_up(results: Results, studies: Studies) -> tuple[str, str, str]:
    claim = "The JIT warm-up, 89.1 ms, is negligible, and later calls use the compiled code."
    saved = results["no_jit"]["total_training_time_s"] - results["jit"]["total_training_time_s"]
    warmup_ms = results["jit"]["warmup_time_ms"]
    compiled = sum(sum(run["programs_compiled_in_epochs"]) for run in results["jit"]["runs"])
    later = f"Programs compiled in its timed epochs: {compiled}."
    if saved <= 0:
        figures = f"it takes {warmup_ms:.0f} ms, and nothing is saved. {later}"
        return claim, "Does not hold here:", figures
    share = warmup_ms / 1000 / saved
    steps = cost_figures(results)["break_even_steps"]
    verdict = "Holds:" if share < NEGLIGIBLE and not compiled else "Holds in part:"
    return (
        claim,
        verdict,
        f"it takes {warmup_ms:.0f} ms, {share:.1%} of what the "
        f"{results['jit']['config']['epochs']} epochs save, made up for after {steps} steps. "
        f"Without JIT the warm-up takes {results['no_jit']['warmup_time_ms']:.0f} ms: "
        f"XLA compiles there, too. {later}",
    )


def _memory(results: Results, studies: Studies) -> tuple[str, str, str]:
    claim = "JIT has a slightly higher peak of memory and a lower delta."
    peak = _memory_ratio(results, "peak_mb")
    delta = _memory_ratio(results, "delta_mb")
    said = [_more_or_less(name, ratio) for name, ratio in (("peak", peak), ("delta", delta))]
    holds = [_significant(peak) < 0, _significant(delta) > 0]
    verdict = ("Does not hold here:", "Half of it holds:", "Holds:")[sum(holds)]
    if peak is None or peak.ci95 is None:
        verdict = "Not decided, as one process gives no interval:"
    figures = ", ".join(
        f"{MODES[mode]['phrase']} {results[mode]['peak_memory_mb']:.1f} MB and "
        f"{results[mode]['memory_delta_mb']:.1f} MB"
        for mode in MODES
    )
    text = f"{'; '.join(said)} (peak and delta {figures}; ratios are without over with JIT)."
    return claim, verdict, text


def _memory_ratio(results: Results, key: str) -> Ratio | None:
    values = [[run["memory"][key] for run in results[mode]["runs"]] for mode in MODES]
    return unpaired_ratio(*values) if min(map(min, values)) > 0 else None


def _significant(ratio: Ratio | None) -> int:
    """Returns 1 where the mode without JIT has measurably more, -1 for less, 0 for neither."""
    if ratio is None or ratio.ci95 is None or ratio.holds_one:
        return 0
    return 1 if ratio.value > 1 else -1


def _more_or_less(name: str, ratio: Ratio | None) -> str:
    if ratio is None or ratio.ci95 is None:
        return f"the {name}s cannot be compared"
    words = {1: "lower with JIT", -1: "higher with JIT", 0: "not measurably different"}
    return f"the {name} is {words[_significant(ratio)]}, ratio {ratio_text(ratio)}"


def _best_practice(results: Results, studies: Studies) -> tuple[str, str, str]:
    claim = "Always use jax.jit in production, and jax.disable_jit only to debug."
    if "range" not in studies:
        return claim, "Not decided:", "`benchmark.py --range` was not run."
    cells = [
        (figures["layer_sizes"], size, ratio)
        for figures in range_figures(studies["range"])
        for size, ratio in zip(figures["batch_sizes"], figures["ratios"][ONE_PASS])
    ]
    faster = [cell for cell in cells if _significant(cell[2]) > 0]
    layers, size, least = min(cells, key=lambda cell: cell[2].value)
    verdict = "Holds in what was measured:" if len(faster) == len(cells) else "Holds in part:"
    if least.ci95 is None:
        verdict = "Not decided, as one process gives no interval:"
    text = (
        f"the step is measurably faster with JIT in {len(faster)} of {len(cells)} combinations of "
        f"batch size and width; least at batch {size} with layers {'-'.join(map(str, layers))}: "
        f"{ratio_text(least)}."
    )
    if "ladder" in studies:
        rungs = {rung["mode"]: rung for rung in ladder_figures(studies["ladder"])["rungs"]}
        if "disable_jit" in rungs:  # the short form leaves it out
            slower = rungs["disable_jit"]["epoch_s"] / rungs["no_jit"]["epoch_s"]
            text += (
                f" Under jax.disable_jit an epoch takes {slower:.1f} times that of the eager step: "
                "it is no measure of a step without jax.jit."
            )
    return claim, verdict, text


def _one_kernel(studies: Studies) -> str | None:
    if "inside" not in studies:
        return None
    figures = inside_figures(studies["inside"])
    if figures["program"] is None or "jit" not in figures["modes"]:
        return None
    jit = figures["modes"]["jit"]
    kernels = sum(
        n
        for opcode, n in figures["program"]["instructions"].items()
        if opcode not in ("parameter", "constant", "tuple", "bitcast", "get-tuple-element")
    )
    verdict = "Does not hold" if kernels > 1 or jit["python_calls"] >= 1 else "Holds"
    return (
        f"**{verdict}:** a step is {jit['executions']:g} program, but the program holds {kernels} "
        f"kernels, and Python still calls {jit['python_calls']:.0f} functions a step, the making "
        "of the batch included."
    )
