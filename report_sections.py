"""The report's sections on the run itself and on the studies, as Markdown from the data."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, NamedTuple

from gates import drift
from modes import MODES
from range_figures import cost_figures
from run_text import number
from stability import doubt_lines
from study_figures import ladder_figures
from study_tables import STUDY_TITLES, Table, markdown, ratio_text, render, study_blocks
from tables import (
    comparison_lines,
    describe_run,
    detail_table,
    epoch_table,
    noise_lines,
    summary_table,
    verdict,
)

PLOTS = {
    "training_time.png": "Training time without and with JIT",
    "loss_curve.png": "Training loss without and with JIT",
    "accuracy_curve.png": "Test accuracy without and with JIT",
}


ENVIRONMENT_KEYS = ("cpu_model", "cores_usable", "jax", "python", "commit")


class Inputs(NamedTuple):
    """What a report is made of."""

    results: dict[str, Any]  # the object of the benchmark's result file
    studies: dict[str, dict[str, Any]]  # those of the studies that there are, by name
    images: str  # path from the report to the plots, with a slash at its end, or empty


def answer(inputs: Inputs) -> str:
    """Returns the answer in three sentences."""
    configuration, machine = describe_run(inputs.results).splitlines()
    third = (
        "The step without JIT computes the loss in a second forward pass, so the figure is that of "
        "both; `benchmark.py --full` tells them apart."
    )
    if "ladder" in inputs.studies:
        figures = ladder_figures(inputs.studies["ladder"])
        third = (
            f"On the ladder below, {ratio_text(figures['headline'])} is {second_pass(figures)} for "
            f"the eager step's second forward pass, times {ratio_text(figures['jit_alone'])} for "
            "JIT alone."
        )
    return "\n".join(
        [
            "## The answer\n",
            f"**{verdict(inputs.results['comparison'])}.**",
            f"That is for {configuration}, on {machine}.",
            third,
        ]
    )


def second_pass(figures: dict[str, Any]) -> str:
    """Returns the ladder's ratio of the second forward pass, and if it is no difference."""
    ratio = figures["second_pass"]
    return ratio_text(ratio) + (" (no measurable difference)" if ratio.holds_one else "")


def tables(inputs: Inputs) -> str:
    """Returns the summary, the epochs of both modes and the plots."""
    results = inputs.results
    parts = ["## Tables and plots", summary_table(results, "pipe")]
    for mode, row in MODES.items():
        parts += [f"**{row['label']}**", epoch_table(results[mode], "pipe")]
    parts += [f"![{text}]({inputs.images}{name})" for name, text in PLOTS.items()]
    return "\n\n".join(parts)


def method(inputs: Inputs) -> str:
    """Returns how it was measured, and what the timer includes."""
    comparison, config = inputs.results["comparison"], inputs.results["jit"]["config"]
    source = inputs.results["jit"]["runs"][0]["memory"]["peak_source"]
    lines = [
        f"Processes per mode: {comparison['processes_per_mode']}, each for one run; epochs of a "
        f"run: {config['epochs']}. The modes took turns (ABBA...). The speedup is the geometric "
        "mean over pairs of neighbouring processes, its interval a bootstrap over the pairs.",
        "In an epoch's time: the making of the batches (shuffle, pick, scale, move to the device) "
        "and all steps, until the parameters and every loss are ready. Not in it: loading, "
        "warm-up, evaluation, progress.",
        "Warm-up: the first step of each batch shape, with its compiling; its results are dropped.",
        f"Memory: the peak that the operating system keeps ({source}), so that nothing has to "
        "sample it while the clock runs.",
    ]
    return "\n".join(["## How it was measured\n", *(f"- {line}" for line in lines)])


def gates(inputs: Inputs) -> str:
    """Returns the gates and their outcome."""
    outcomes = {True: "passed", False: "**failed**", None: "not checked"}
    checked = inputs.results["comparison"]["gates"]
    rows = [(gate["name"], outcomes[gate["passed"]], gate["detail"]) for gate in checked]
    failed = sum(gate["passed"] is False for gate in checked)
    summary = (
        f"{failed} of {len(checked)} failed: no speedup is claimed." if failed else "None failed."
    )
    lines = ["| Gate | Outcome | Figures |", "|:--|:--|:--|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(["## The gates\n", f"{summary}\n", *lines])


def noise(inputs: Inputs) -> str:
    """Returns what may have disturbed the run, and what makes its figure doubtful."""
    results = inputs.results
    lines = [f"- {line}" for line in noise_lines(results) + doubt_lines(results)]
    for mode, row in MODES.items():
        growth = drift(results[mode])
        if growth:
            slope = f"{growth['slope_per_epoch']:+.2%}"
            lines.append(
                f"- {row['label']}, an epoch's time changes by {slope} from one to the next."
            )
    lines += [
        "- One machine, one network, one device: other machines and versions give other figures.",
        "- The interval covers the noise between processes. On a machine that changes its speed "
        "slowly, neighbouring processes are alike, and it is too narrow.",
    ]
    return "\n".join(
        ["## Noise and threats to validity\n", detail_table(results, "pipe"), "", *lines]
    )


def warm_up(inputs: Inputs) -> str:
    """Returns the warm-up, what it costs, and where JIT breaks even."""
    cost = cost_figures(inputs.results)
    rows = [
        (str(n), *(f"{cost['seconds'][mode][i]:.2f} s" for mode in MODES))
        for i, n in enumerate(cost["epochs"])
    ]
    headers = ("Epochs, with warm-up", *(row["label"] for row in MODES.values()))
    lines = [f"- {line}" for line in comparison_lines(inputs.results["comparison"])]
    if cost["break_even_steps"] is None:
        lines.append("- At these times a step with JIT saves nothing: there is no break-even.")
    else:
        lines.append(
            f"- Break-even comes {cost['break_even_s']:.2f} s into a training without JIT, its own "
            "warm-up not counted."
        )
    return "\n".join(
        ["## Warm-up and break-even\n", render(Table(headers, rows), "pipe"), "", *lines]
    )


def memory(inputs: Inputs) -> str:
    """Returns the memory by stage, means over the processes."""
    rows = []
    first = inputs.results["jit"]["runs"][0]["memory"]["stages"]
    for i, stage in enumerate(first):
        figures = [
            fmean(run["memory"]["stages"][i][key] for run in inputs.results[mode]["runs"])
            for mode in MODES
            for key in ("rss_before_mb", "rss_after_mb", "peak_mb")
        ]
        rows.append((stage["stage"].capitalize(), *(f"{figure:.1f}" for figure in figures)))
    labels = [row["label"] for row in MODES.values()]
    headers = [
        "Stage",
        *(f"{label}: {what}" for label in labels for what in ("before", "after", "peak")),
    ]
    return "\n".join(
        [
            "## Memory by stage\n",
            "RSS in MB (10^6 bytes), means over the processes.\n",
            render(Table(headers, rows), "pipe"),
        ]
    )


def agreement(inputs: Inputs) -> str:
    """Returns the largest differences of both modes after a step, an epoch and the last epoch."""
    base, other = (inputs.results[mode] for mode in MODES)
    runs = base["runs"] + other["runs"]
    step = max((run["first_step_difference"] for run in runs), key=_nan_first)
    rows = [("1 step", number(_finite(step), "{:.1e}"), "", "")]
    for epoch in dict.fromkeys((0, len(base["epochs"]) - 1)):
        pairs = [(a, b) for a in base["runs"] for b in other["runs"]]
        losses = [_relative(a["losses"][epoch], b["losses"][epoch]) for a, b in pairs]
        accuracies = [
            abs(a["test_accuracies"][epoch] - b["test_accuracies"][epoch]) for a, b in pairs
        ]
        worst = None if None in losses else max(losses)
        name = "1 epoch" if epoch == 0 else f"{epoch + 1} epochs"
        rows.append((name, "", number(worst, "{:.1e}"), f"{100 * max(accuracies):.2f} points"))
    headers = (
        "Largest difference after",
        "Of a parameter",
        "Of the loss, relative",
        "Of the accuracy",
    )
    states = {
        mode: {
            run["final_params_sha256"]
            for run in inputs.results[mode]["runs"]
            if "final_params_sha256" in run
        }
        for mode in MODES
    }
    lines = [
        f"- {MODES[mode]['label']}, the final parameters of all processes are "
        + ("equal, bit by bit." if len(hashes) == 1 else f"of {len(hashes)} kinds: not bit-equal.")
        for mode, hashes in states.items()
        if hashes
    ]
    return "\n".join(["## Numerical agreement\n", render(Table(headers, rows), "pipe"), "", *lines])


def study_section(name: str, inputs: Inputs) -> str:
    """Returns a study's tables, sentences and plot, and where it was measured if elsewhere."""
    study = inputs.studies[name]
    parts = [f"## {name.capitalize()}: {STUDY_TITLES[name]}"]
    if study["status"] != "complete":
        parts.append(f"No figures: its status is '{study['status']}'.")
        return "\n\n".join(parts)
    if study["short"]:
        parts.append("In short form: fewer processes and samples.")
    # The drift's table names the version of each row: there may be several.
    keys = ENVIRONMENT_KEYS[:2] if name == "drift" else ENVIRONMENT_KEYS
    differences = environment_differences(inputs.results["jit"]["environment"], study, keys)
    if differences:
        parts.append(f"Measured in another environment than the above: {'; '.join(differences)}.")
    parts.append(markdown(study_blocks(name, study)))
    if name != "inside":
        parts.append(f"![{STUDY_TITLES[name]}]({inputs.images}{name}.png)")
    return "\n\n".join(parts)


def environment_differences(
    environment: dict[str, Any], study: dict[str, Any], keys: Sequence[str]
) -> list[str]:
    """Returns what differs between the benchmark's environment and that of a study's processes."""
    places = study["modes"].values() if "modes" in study else study["processes"]
    differences = []
    for key in keys:
        values = {str(place["environment"].get(key)) for place in places}
        if values != {str(environment.get(key))}:
            differences.append(f"{key} {', '.join(sorted(values))}")
    return differences


def _relative(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else abs(b - a) / max(abs(a), 1e-12)


def _finite(value: float | None) -> float | None:
    return None if value is None or value != value else value


def _nan_first(value: float | None) -> float:
    return float("inf") if _finite(value) is None else value


SECTIONS = (answer, tables, method, gates, noise, warm_up, memory, agreement)
